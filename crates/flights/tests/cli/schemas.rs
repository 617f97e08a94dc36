//! The published schemas, and what the program prints held against them: every document that any test
//! of the program reads is.

use crate::environment::Environment;
use flightproof_flights::command::SCHEMAS;
use serde_json::Value;

/// Holds what the program printed against the schema of its kind.
pub(crate) fn hold(document: &Value) {
    if let Some(name) = kind_of(document) {
        assert_valid(name, document);
    }
}

/// The name of a document's schema; none for what is a standard's. A verdict about something has a schema
/// with its further fields.
fn kind_of(document: &Value) -> Option<&str> {
    if document.get("$schema").is_some() {
        return None;
    }
    let schema = document["schema"].as_str();
    let name = schema
        .and_then(|schema| schema.strip_prefix("flightproof/")?.strip_suffix("/1"))
        .unwrap_or_else(|| panic!("no document of ours: {document}"));
    let about = [
        ("agent", "agent"),
        ("archive", "archive"),
        ("accounting", "account"),
        ("landed", "import"),
        ("bundleBytes", "bundle"),
    ];
    let told = about
        .iter()
        .find(|(field, _)| document.get(field).is_some());
    Some(match told {
        Some((_, about)) if name == "verdict" => about,
        _ => name,
    })
}

/// Holds a document against its schema: the part of JSON Schema that our schemas use.
pub(crate) fn assert_valid(name: &str, document: &Value) {
    let found = SCHEMAS.iter().find(|(known, _)| *known == name);
    let (_, text) =
        found.unwrap_or_else(|| panic!("no schema is published for {name}: {document}"));
    let schema: Value = serde_json::from_str(text).unwrap();
    if let Err(what) = valid(&schema, document, "") {
        panic!("{name}: {what}\n{document}");
    }
}

fn valid(schema: &Value, document: &Value, place: &str) -> Result<(), String> {
    let wrong = |what: &str| Err(format!("{place}: {what}"));
    if let Some(constant) = schema.get("const")
        && constant != document
    {
        return wrong("another constant");
    }
    if let Some(words) = schema["enum"].as_array()
        && !words.contains(document)
    {
        return wrong("a word that is none of them");
    }
    let kind = match document {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let is = |wanted: &Value| wanted == kind;
    match &schema["type"] {
        Value::Null => {}
        Value::Array(kinds) if kinds.iter().any(is) => {}
        one if is(one) => {}
        _ => return wrong(&format!("is {kind}")),
    }
    if let Some(items) = document.as_array() {
        for (i, item) in items.iter().enumerate() {
            valid(&schema["items"], item, &format!("{place}/{i}"))?;
        }
    }
    let (Some(fields), Some(known)) = (document.as_object(), schema["properties"].as_object())
    else {
        return Ok(());
    };
    for name in schema["required"].as_array().unwrap() {
        if !fields.contains_key(name.as_str().unwrap()) {
            return wrong(&format!("lacks {name}"));
        }
    }
    for (name, value) in fields {
        match known.get(name) {
            Some(schema) => valid(schema, value, &format!("{place}/{name}"))?,
            None => return wrong(&format!("has {name}")),
        }
    }
    Ok(())
}

#[test]
fn the_validator_of_these_tests_refuses() {
    let document = serde_json::json!({"schema": "flightproof/verdict/1", "verdict": "held", "stage": "x", "detail": ""});
    assert_valid("verdict", &document);
    let (_, text) = SCHEMAS
        .iter()
        .find(|(known, _)| *known == "verdict")
        .unwrap();
    let schema: Value = serde_json::from_str(text).unwrap();
    for (name, value) in [("verdict", "maybe"), ("schema", "other"), ("more", "x")] {
        let mut bad = document.clone();
        bad[name] = value.into();
        assert!(valid(&schema, &bad, "").is_err(), "{name}");
    }
    assert!(valid(&schema, &serde_json::json!({}), "").is_err());
}

#[test]
fn what_needs_no_session_is_printed_as_its_schema_says() {
    let environment = Environment::with_pricing();
    let repo = environment.path("repo").to_str().unwrap().to_owned();
    let witness = crate::environment::workspace().join("flights/witness/pricing.json");
    let witness = witness.to_str().unwrap();
    let printed: &[(&str, &[&str])] = &[
        (
            "key",
            &["key", "new", "--no-passphrase", "--out", "other.pem"],
        ),
        ("keys", &["key", "list"]),
        ("spend", &["spend", "cap", "total", "--usd", "20"]),
        (
            "spend",
            &["spend", "cap", "day", "--eur", "5", "--rate", "1.05"],
        ),
        ("hold", &["spend", "reserve", "a", "--limit", "1"]),
        ("hold", &["spend", "start", "a"]),
        (
            "hold",
            &[
                "spend",
                "settle",
                "a",
                "--as",
                "0.5",
                "--result",
                &"0".repeat(64),
            ],
        ),
        ("hold", &["spend", "reserve", "b", "--limit", "1"]),
        ("spend", &["spend", "show"]),
        ("ledger", &["ledger", "check"]),
        ("log", &["cert", "log", "show"]),
        ("reap", &["reap"]),
        ("init", &["init", "--repo", &repo]),
        ("mutants", &["mutate", "--repo", &repo, "--list"]),
        ("witness-check", &["witness", "check", witness]),
        ("archive", &["archive", "pack", &repo, "-o", "a.paws"]),
        ("archive", &["archive", "inspect", "a.paws"]),
        (
            "bundle",
            &[
                "bundle",
                "create",
                "--repo",
                &repo,
                "--baseline",
                "main",
                "--head",
                "candidate",
                "-o",
                "a.bundle",
            ],
        ),
        ("import-recovery", &["import", "recover", "--repo", &repo]),
        ("explain", &["explain", "archive/PREFIX_CONFLICT"]),
        ("verdict", &["cert", "show", "nowhere"]),
    ];
    for (name, args) in printed {
        let run = environment.flights(&[*args, &["--format", "json"]].concat());
        let document: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(kind_of(&document), Some(*name), "{args:?}: {}", run.text);
        hold(&document);
    }
}

#[test]
fn there_is_no_document_of_commands_without_a_schema() {
    let sources =
        crate::environment::tree(&crate::environment::workspace().join("crates/flights/src"));
    let mut missing = Vec::new();
    // What is written to files or read has its golden file in `fixtures/formats`.
    let files = [
        "acceptance",
        "agent-plan",
        "gate-policy",
        "opening",
        "plan",
        "policy",
        "witness",
    ];
    for (file, text) in &sources {
        for part in text.split("\"flightproof/").skip(1) {
            let name = part.split('/').next().unwrap_or_default();
            let known = SCHEMAS.iter().any(|(known, _)| *known == name);
            if part.starts_with(&format!("{name}/1\"")) && !known && !files.contains(&name) {
                missing.push(format!("{file}: {name}"));
            }
        }
    }
    assert_eq!(missing, Vec::<String>::new());
}
