//! The published schemas, and what the program prints held against them: every document that any test
//! of the program reads is.

use flightproof_flights::command::SCHEMAS;
use serde_json::{Value, json};
use std::collections::BTreeSet;

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
        // A table of things by name.
        let things = document.as_object().into_iter().flatten();
        return things.into_iter().try_for_each(|(name, thing)| {
            valid(
                &schema["additionalProperties"],
                thing,
                &format!("{place}/{name}"),
            )
        });
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
    let document =
        json!({"schema": "flightproof/verdict/1", "verdict": "held", "stage": "x", "detail": ""});
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
    assert!(valid(&schema, &json!({}), "").is_err());
}

#[test]
fn what_needs_no_session_is_printed_as_its_schema_says() {
    let environment = crate::import::imported();
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
    let files = ["acceptance", "agent-plan", "gate-policy", "opening"];
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

/// Documents that people write, as data.
fn written() -> Vec<(&'static str, String, Value)> {
    let root = crate::environment::workspace();
    let mut found = Vec::new();
    for folder in ["fixtures/formats", "flights", "flights/witness"] {
        for entry in std::fs::read_dir(root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let text = || std::fs::read_to_string(&path).unwrap();
            let document: Value = match path.extension().and_then(|e| e.to_str()) {
                Some("toml") => toml::from_str(&text()).unwrap(),
                Some("json") => serde_json::from_str(&text()).unwrap(),
                _ => continue,
            };
            let schema = document["schema"].as_str().unwrap_or_default();
            let names = ["plan", "policy", "witness"];
            let name = names
                .into_iter()
                .find(|name| schema == format!("flightproof/{name}/1"));
            if let Some(name) = name {
                found.push((name, path.display().to_string(), document));
            }
        }
    }
    found
}

#[test]
fn what_people_write_is_valid_by_its_schema_and_is_read() {
    let all = written();
    for kind in ["plan", "policy", "witness"] {
        assert!(all.iter().any(|(name, ..)| *name == kind), "no {kind}");
    }
    for (name, file, document) in &all {
        assert_valid(name, document);
        assert_eq!(refused(name, document), None, "{file}");
    }
}

/// Why the program does not read a document.
fn refused(name: &str, document: &Value) -> Option<String> {
    let text = document.to_string();
    match name {
        "policy" => flightproof_certifier::policy::Policy::parse(text.as_bytes())
            .err()
            .map(|e| e.detail),
        "witness" => flightproof_certifier::witness::Witness::parse(text.as_bytes())
            .err()
            .map(|e| e.detail),
        _ => {
            let folder = tempfile::tempdir().unwrap();
            let stem = document["name"].as_str().unwrap_or("none");
            let file = folder.path().join(format!("{stem}.toml"));
            std::fs::write(&file, toml::to_string(document).unwrap()).unwrap();
            flightproof_flights::plan::Plan::read(&file)
                .err()
                .map(|e| e.detail)
        }
    }
}

/// A schema that knows a field more or less than the reader would mislead whoever writes by it: each object
/// of it gets a field that nobody knows, and the reader lists those that it knows.
#[test]
fn schemas_of_what_people_write_know_the_fields_that_are_read() {
    let mut held = 0;
    for (name, document) in examples() {
        let (_, text) = SCHEMAS.iter().find(|(own, _)| *own == name).unwrap();
        let schema: Value = serde_json::from_str(text).unwrap();
        assert_valid(name, &document);
        let mut places = Vec::new();
        objects(&schema, &document, String::new(), &mut places);
        for (place, schema) in places {
            let mut bad = document.clone();
            let object = bad.pointer_mut(&place).unwrap();
            if schema["maxProperties"] == 1 {
                *object = json!({});
            }
            object["unheard"] = 1.into();
            let told = refused(name, &bad).unwrap();
            assert!(told.contains("unheard"), "{name}{place}: {told}");
            let known = schema["properties"].as_object().unwrap();
            let known: BTreeSet<&str> = known.keys().map(String::as_str).collect();
            let listed = told
                .split_once("expected ")
                .map_or("", |(_, listed)| listed);
            let listed: BTreeSet<&str> = listed.split('`').skip(1).step_by(2).collect();
            assert_eq!(listed, known, "{name}{place}: {told}");
            held += 1;
        }
    }
    assert!(held >= 20, "{held}");
}

/// The objects of a document whose fields its schema names, with their schemas.
fn objects<'a>(
    schema: &'a Value,
    document: &Value,
    place: String,
    found: &mut Vec<(String, &'a Value)>,
) {
    match document {
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                objects(&schema["items"], item, format!("{place}/{i}"), found);
            }
        }
        Value::Object(fields) => {
            let Some(known) = schema["properties"].as_object() else {
                return;
            };
            // A choice between a text and an object is told without names.
            if schema["type"] == "object" {
                found.push((place.clone(), schema));
            }
            for (name, value) in fields {
                objects(&known[name], value, format!("{place}/{name}"), found);
            }
        }
        _ => {}
    }
}

/// Documents of each kind, with every object of its schema in one of them.
fn examples() -> Vec<(&'static str, Value)> {
    let (digest, key) = ("0".repeat(64), "1".repeat(64));
    let suite = json!({
        "schema": "flightproof/witness/1", "cases": [], "suite": {"tests": ["a"]},
    });
    let witness = json!({
        "schema": "flightproof/witness/1", "bin": "a",
        "cases": [{"id": "a", "stdin": {"base64": "AA=="}, "files": {"a": "b"}, "expect": {"exit": 0}}],
        "differential": {
            "inputs": 2, "args": [["{n}"]], "rules": {"n": [{"from": 1, "to": 9}, "x"]},
            "differs": [{"reason": "r", "where": {"n": "x"}}],
        },
        "waivers": [{"mutant": "m", "source": digest, "reason": "r"}],
    });
    let policy = json!({
        "schema": "flightproof/policy/1", "threshold": 1, "required_gates": ["build"],
        "keys": [key], "allow": {"tests": true}, "require": {"attempts_max": 3},
        "revocations": {"list": "l", "keys": [key]}, "exceptions": {"keys": [key]},
        "admission": {"keys": [key]}, "witness": digest, "log": {"key": "k"},
    });
    let plan = |source: Value| {
        json!({
            "schema": "flightproof/plan/1", "name": "a", "about": "b", "source": source,
            "change": {"identity": "a <b>"},
            "generated": [{"name": "a", "argv": ["/usr/bin/python3"], "outputs": ["b"]}],
            "witness": {"file": "w"}, "policy": {"file": "p"}, "expect": {"verdict": "held"},
        })
    };
    let ends = json!({"baseline": "a", "candidate": "b"});
    let with = |name: &str| {
        let mut ends = ends.clone();
        ends[name] = "c".into();
        ends
    };
    vec![
        ("witness", witness),
        ("witness", suite),
        ("policy", policy),
        ("plan", plan(json!({"trees": ends}))),
        ("plan", plan(json!({"git": with("repository")}))),
        ("plan", plan(json!({"crate": with("name")}))),
    ]
}
