//! An independent writer of recordings, for those that our own never makes: it takes one apart,
//! lets a test change the lines, and chains and signs them again.

use flightproof_certifier::dsse;
use flightproof_certifier::key::SecretKey;
use flightproof_core::{Digest, Hasher, canonical_json};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// The lines of a recording, without their hashes.
pub(crate) fn lines(directory: &Path) -> Vec<Value> {
    fs::read_to_string(directory.join("transcript.jsonl"))
        .unwrap()
        .lines()
        .map(|line| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            line.as_object_mut().unwrap().remove("h").unwrap();
            line
        })
        .collect()
}

/// Writes the lines with right hashes. A line that is an end and has no `root` gets one by `key`.
pub(crate) fn seal(directory: &Path, lines: &[Value], key: &SecretKey) {
    let flight = lines[0]["flight"].as_str().unwrap_or_default().to_owned();
    let mut hash = Digest::from_bytes([0; 32]);
    let mut text = Vec::new();
    for line in lines {
        let mut line = line.clone();
        if line["k"] == "end" && line.get("root").is_none() {
            let claims = json!({
                "before": hash, "exchanges": line["exchanges"],
                "verdict": line["verdict"], "predicate": line["predicate"],
            });
            let digest = Digest::of(&canonical_json(&claims).unwrap());
            let statement = canonical_json(&json!({
                "_type": "https://in-toto.io/Statement/v1",
                "subject": [{"name": flight, "digest": {"sha256": digest}}],
                "predicateType": "https://flightproof.dev/recording/v1",
                "predicate": {},
            }))
            .unwrap();
            let root = dsse::sign("application/vnd.in-toto+json", &statement, key).unwrap();
            line["root"] = String::from_utf8(root).unwrap().into();
        }
        let mut hasher = Hasher::new();
        hasher.update(hash.as_bytes());
        hasher.update(&canonical_json(&line).unwrap());
        hash = hasher.finish();
        line["h"] = json!(hash);
        text.extend(canonical_json(&line).unwrap());
        text.push(b'\n');
    }
    fs::write(directory.join("transcript.jsonl"), text).unwrap();
}
