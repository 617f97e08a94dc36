//! Golden files in `fixtures/formats`: every document the program writes has the shape that is kept
//! there, and every document it reads is still read. `FLIGHTPROOF_BLESS=1` writes them anew: a shape
//! that lost a field, or a document that is read no more, needs a new major version instead.

use crate::environment::{Environment, copy, workspace};
use crate::references::hold;
use crate::transcript::{Kept, key};
use flightproof_certifier::dsse;
use flightproof_certifier::key::PublicKey;
use flightproof_certifier::policy::Policy;
use flightproof_certifier::witness::Witness;
use flightproof_flights::plan::Plan;
use flightproof_flights::transcript::Player;
use serde_json::{Map, Value, json};
use std::fs;
use std::path::{Path, PathBuf};

fn formats() -> PathBuf {
    workspace().join("fixtures/formats")
}

/// Objects whose keys are data, not fields: the first value stands for all.
const TABLES: [&str; 6] = ["asked", "found", "denied", "limits", "killedBy", "lines"];

/// A document with its values replaced by what they are.
fn shape(value: &Value) -> Value {
    match value {
        Value::Null => json!("null"),
        Value::Bool(_) => json!("boolean"),
        Value::Number(_) => json!("integer"),
        Value::String(text) => json!(kind(text)),
        Value::Array(items) => items.first().map_or(json!([]), |item| json!([shape(item)])),
        Value::Object(map) => Value::Object(
            map.iter()
                .map(|(name, value)| (name.clone(), field(name, value)))
                .collect(),
        ),
    }
}

fn field(name: &str, value: &Value) -> Value {
    match value {
        Value::String(text) if name == "schema" || name.ends_with("Type") || name == "_type" => {
            json!(text)
        }
        Value::Object(map) if TABLES.contains(&name) => {
            let first = map.values().next().map_or(Value::Null, shape);
            Value::Object(Map::from_iter([("*".to_owned(), first)]))
        }
        value => shape(value),
    }
}

fn kind(text: &str) -> &'static str {
    let hex = text
        .bytes()
        .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    match text.len() {
        64 if hex => "sha256",
        40 if hex => "commit",
        _ => "string",
    }
}

fn hold_shape(name: &str, document: &Value) {
    let text = serde_json::to_string_pretty(&shape(document)).unwrap();
    hold(
        &format!("fixtures/formats/{name}.shape.json"),
        &format!("{text}\n"),
    );
}

#[test]
fn what_a_flight_writes_has_the_shape_that_was_promised() {
    let environment = Environment::with_pricing();
    let admitted = environment.certify("candidate", &["--admit", "release", "--format", "json"]);
    let out = |name: &str| -> Value {
        serde_json::from_slice(&fs::read(environment.path("out").join(name)).unwrap()).unwrap()
    };
    hold_shape("verdict-admitted", &admitted.json());
    hold_shape("opening", &out("opening.json"));
    hold_shape("receipt", &out("receipt.json"));
    let envelope = fs::read(environment.path("out/certificate.dsse.json")).unwrap();
    hold_shape(
        "certificate.dsse",
        &serde_json::from_slice(&envelope).unwrap(),
    );
    let public = fs::read_to_string(environment.public_key()).unwrap();
    let signed = dsse::open(&envelope, &[PublicKey::from_pem(&public).unwrap()], 1).unwrap();
    hold_shape(
        "certificate",
        &serde_json::from_slice(signed.bytes()).unwrap(),
    );

    environment.candidate_edit("broken", |text| format!("{text}fn f() {{ missing() }}\n"));
    let refused = environment.certify("broken", &["--format", "json"]);
    hold_shape("verdict-refused", &refused.json());
}

#[test]
fn what_the_other_commands_print_has_the_shape_that_was_promised() {
    let environment = crate::plans::recorded();
    let root = environment.path("root");
    let root = root.to_str().unwrap();
    let json = |args: &[&str]| {
        environment
            .flights(&[args, &["--format", "json"]].concat())
            .json()
    };
    hold_shape("run", &json(&["run", "--root", root]));
    environment.write("root/flights/witness/pricing.json", "{}");
    hold_shape("run-failed", &json(&["run", "--root", root]));
    hold_shape(
        "key",
        &json(&["key", "new", "--no-passphrase", "--out", "key"]),
    );
    hold_shape("explain", &json(&["explain", "KEY_MISSING"]));
    hold_shape("doctor", &json(&["doctor"]));
}

#[test]
fn witnesses_plans_and_policies_that_were_good_are_still_read() {
    let text = |name: &str| fs::read(formats().join(name)).unwrap();
    for name in ["witness-bin.json", "witness-driver.json"] {
        Witness::parse(&text(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
    for name in ["plan-git.toml", "plan-crate.toml", "plan-trees.toml"] {
        Plan::read(&formats().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
    Policy::parse(&text("policy.json")).unwrap();
}

#[test]
fn a_certificate_of_this_version_is_still_accepted() {
    let environment = Environment::with_pricing();
    let tree = environment.path("tree");
    for half in ["baseline", "candidate"] {
        copy(&workspace().join("fixtures/pricing").join(half), &tree);
    }
    if std::env::var_os("FLIGHTPROOF_BLESS").is_some() {
        assert_eq!(
            environment
                .certify("candidate", &["--name", "pricing"])
                .code,
            0
        );
        let made = environment.path("out/certificate.dsse.json");
        fs::copy(made, formats().join("certificate.dsse.json")).unwrap();
        fs::copy(environment.public_key(), formats().join("certificate.pub")).unwrap();
    }
    let text = |name: &str| formats().join(name).to_str().unwrap().to_owned();
    let run = environment.flights(&[
        "cert",
        "verify",
        &text("certificate.dsse.json"),
        "--key",
        &text("certificate.pub"),
        "--policy",
        &text("policy.json"),
        "--subject",
        tree.to_str().unwrap(),
        "--format",
        "json",
    ]);
    assert_eq!(run.code, 0, "{}", run.text);
    hold_shape("verdict-accepted", &run.json());
}

#[test]
fn a_recording_of_this_version_is_still_read_and_would_be_written_so_again() {
    let kept = Kept::new();
    let written = fs::read_to_string(kept.place().join("transcript.jsonl")).unwrap();
    hold("fixtures/formats/small.flight/transcript.jsonl", &written);
    let blobs = formats().join("small.flight/blobs");
    if std::env::var_os("FLIGHTPROOF_BLESS").is_some() {
        copy(&kept.place().join("blobs"), &blobs);
    }
    Player::open(&formats().join("small.flight"), &key().public()).unwrap();
}

#[test]
fn no_golden_file_and_no_recording_tells_of_the_machine_it_was_made_on() {
    let mut files = Vec::new();
    for folder in ["fixtures/formats", "flights/recordings"] {
        let mut pending = vec![workspace().join(folder)];
        while let Some(folder) = pending.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                // Blobs hold sources, which may speak of any path.
                match path.is_dir() {
                    true if path.ends_with("blobs") => {}
                    true => pending.push(path),
                    false => files.push(path),
                }
            }
        }
    }
    assert!(files.len() > 20);
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let checkout = checkout.canonicalize().unwrap();
    for path in files {
        let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
        for telling in [
            "/root/",
            "/home/",
            checkout.to_str().unwrap(),
            "/tmp/flight",
            "PRIVATE KEY",
        ] {
            assert!(!text.contains(telling), "{}: {telling}", path.display());
        }
    }
}
