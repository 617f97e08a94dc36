//! A recording of any length, made of the exchanges of a real one over and over, and the report's page
//! about it: what `scripts/bench-peers flights` opens.
//!
//! `long_recording SOURCE LINES DIR`: SOURCE is a recording of this repository, with its recorder's key
//! beside it; DIR gets `long.flight`, `recorder.pub` and `page.html`.

use flightproof_certifier::key::{PublicKey, SecretKey};
use flightproof_core::Digest;
use flightproof_flights::report::{self, Flight, Report};
use flightproof_flights::timeline;
use flightproof_flights::transcript::{Recorder, Transcript};
use serde_json::Value;
use std::error::Error;
use std::path::Path;

/// What was asked, with what, and what was answered.
type Exchange = (String, Value, Value);

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [source, lines, out] = args.as_slice() else {
        return Err("long_recording SOURCE LINES DIR".into());
    };
    let (lines, out) = (lines.parse::<usize>()?, Path::new(out));
    let exchanges = exchanges(Path::new(source))?;
    let key = SecretKey::from_seed([7; 32]);
    let recording = out.join("long.flight");
    let mut recorder = Recorder::start(&recording, "long", Digest::of(b"long"))?;
    // A header, an end, and two lines an exchange.
    for (op, asked, answered) in exchanges.iter().cycle().take(lines.saturating_sub(2) / 2) {
        let line = recorder.invoke(op, asked)?;
        recorder.ok(line, answered)?;
    }
    recorder.finish("held", None, &key)?;
    std::fs::write(out.join("recorder.pub"), key.public().to_pem()?)?;
    let transcript = Transcript::open(&recording, &[key.public()])?;
    let flight = Flight {
        name: "long".to_owned(),
        how: "replayed",
        steps: timeline::steps(&transcript).collect(),
        ..Flight::default()
    };
    let page = report::page(&Report {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        program: None,
        flights: vec![flight],
    });
    std::fs::write(out.join("page.html"), page)?;
    Ok(())
}

/// What was asked and answered in a recording, but for what lies in files beside it.
fn exchanges(source: &Path) -> Result<Vec<Exchange>, Box<dyn Error>> {
    let folder = source.parent().ok_or("a recording lies in a folder")?;
    let mut keys = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "pub") {
            keys.push(PublicKey::from_pem(&std::fs::read_to_string(path)?)?);
        }
    }
    let transcript = Transcript::open(source, &keys)?;
    let (mut asked, mut found) = (None, Vec::new());
    for line in std::str::from_utf8(transcript.lines())?.lines() {
        if line.contains("\"$blob\"") {
            asked = None;
            continue;
        }
        let mut line: Value = serde_json::from_str(line)?;
        let value = line["v"].take();
        match (line["k"].as_str(), asked.take()) {
            (Some("invoke"), _) => {
                asked = Some((line["op"].as_str().unwrap_or_default().to_owned(), value));
            }
            (Some("ok"), Some((op, question))) => found.push((op, question, value)),
            _ => {}
        }
    }
    Ok(found)
}
