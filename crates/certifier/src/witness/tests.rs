use super::*;
use crate::samples::change;
use CertifierCode::{FormatTooNew, WitnessExposed, WitnessInvalid, WitnessToothless};
use serde_json::json;

/// A witness of two cases that differ in exit status, with fields set or replaced.
fn document(fields: &[(&str, Value)]) -> Value {
    let mut out = json!({
        "schema": WITNESS_SCHEMA, "bin": "calc",
        "cases": [
            {"id": "one", "expect": {"exit": 0, "stdout": "1\n"}},
            {"id": "two", "expect": {"exit": 3}},
        ],
    });
    for (name, value) in fields {
        if value.is_null() {
            out.as_object_mut().unwrap().remove(*name);
        } else {
            out[*name] = value.clone();
        }
    }
    out
}

fn read(value: &Value) -> Result<Witness, CertifierCode> {
    Witness::parse(value.to_string().as_bytes()).map_err(|refused| refused.code)
}

/// The first case with one field replaced.
fn with_case_field(name: &str, value: Value) -> Result<Witness, CertifierCode> {
    let mut out = document(&[]);
    out["cases"][0][name] = value;
    read(&out)
}

fn with_expectations(expectations: &[Value]) -> Result<Witness, CertifierCode> {
    let case =
        |(index, expect): (usize, &Value)| json!({"id": format!("c{index}"), "expect": expect});
    let cases: Vec<Value> = expectations.iter().enumerate().map(case).collect();
    read(&document(&[("cases", json!(cases))]))
}

#[test]
fn a_witness_of_a_binary_is_read_whole() {
    let text = r#"{"schema":"flightproof/witness/1","bin":"calc","public":true,
        "cases":[
          {"id":"a","args":["-n","1"],"stdin":"x","files":{"in/a.txt":"y","b":{"base64":"/w=="}},"env":{"TZ":"UTC"},
           "expect":{"exit":0,"stdout":{"base64":"/wA="},"stderr_contains":"note"}},
          {"id":"b","expect":{"exit":0,"stdout_json":null}}],
        "waivers":[{"mutant":"m1","source":"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad","reason":"same result"}]}"#;
    let witness = Witness::parse(text.as_bytes()).unwrap();
    let [a, b] = witness.cases() else {
        panic!("two cases")
    };
    assert_eq!(a.args, ["-n", "1"]);
    assert_eq!(a.files[&RelPath::new("b").unwrap()][..], [0xff]);
    assert!(a.expect.accepts_stdout(&[0xff, 0]) && !a.expect.accepts_stdout(b"x"));
    assert!(a.expect.accepts_stderr(b"a note.") && !a.expect.accepts_stderr(b"a not"));
    assert!(b.expect.accepts_stdout(b" null\n") && !b.expect.accepts_stdout(b""));
    assert_eq!(
        witness.target().unwrap(),
        BuildTarget::Bin {
            name: "calc".to_owned()
        }
    );
    assert!(witness.is_public() && witness.driver_file().is_none());
    assert_eq!(witness.waivers()[0].reason, "same result");
}

#[test]
fn a_witness_of_a_library_needs_the_text_of_its_driver() {
    let library = document(&[
        ("bin", Value::Null),
        ("driver", json!("drive.rs")),
        ("package", json!("calc")),
    ]);
    let witness = read(&library).unwrap();
    assert_eq!(witness.driver_file().unwrap().as_str(), "drive.rs");
    assert_eq!(witness.target().unwrap_err().code, WitnessInvalid);
    assert_eq!(
        witness.commitment(&[0; 32]).unwrap_err().code,
        WitnessInvalid
    );
    for bad in [&b""[..], b"\xff", &vec![b' '; MAX_DRIVER_BYTES + 1]] {
        assert_eq!(
            witness.clone().with_driver(bad).unwrap_err().code,
            WitnessInvalid
        );
    }
    let whole = witness.with_driver(b"fn main() {}").unwrap();
    let source = b"fn main() {}"[..].into();
    assert_eq!(
        whole.target().unwrap(),
        BuildTarget::Driver {
            package: Some("calc".to_owned()),
            source
        }
    );
    let binary = read(&document(&[])).unwrap();
    assert_eq!(
        binary.with_driver(b"fn main() {}").unwrap_err().code,
        WitnessInvalid
    );
}

#[test]
fn another_shape_is_refused() {
    let fields: &[&[(&str, Value)]] = &[
        &[("schema", json!("flightproof/witness/0"))],
        &[("schema", Value::Null)],
        &[("bin", Value::Null)],
        &[("driver", json!("d.rs"))],
        &[("package", json!("calc"))],
        &[("extra", json!(1))],
        &[("public", json!("no"))],
        &[("cases", json!([]))],
        &[("bin", json!("--config"))],
        &[("bin", json!("a/b"))],
        &[("bin", json!(""))],
        &[("bin", Value::Null), ("driver", json!("../d.rs"))],
        &[("bin", Value::Null), ("driver", json!("d.sh"))],
        &[
            ("bin", Value::Null),
            ("driver", json!("d.rs")),
            ("package", json!("-p")),
        ],
    ];
    for change in fields {
        assert_eq!(read(&document(change)), Err(WitnessInvalid), "{change:?}");
    }
    assert!(read(&document(&[])).is_ok());
    let newer = [
        ("schema", json!("flightproof/witness/2")),
        ("extra", json!(1)),
    ];
    assert_eq!(read(&document(&newer)), Err(FormatTooNew));
    for text in [
        &b"{\"schema\":1,\"schema\":2}"[..],
        b"",
        b"{\"bin\":null}",
        &vec![b' '; MAX_WITNESS_BYTES + 1],
    ] {
        assert_eq!(Witness::parse(text).unwrap_err().code, WitnessInvalid);
    }
}

#[test]
fn a_case_that_cannot_be_run_or_read_is_refused() {
    let long = "a".repeat(128 * 1024);
    for (name, bad, good) in [
        ("id", json!("two"), json!("a-b_c.9")),
        ("id", json!("A"), json!("a")),
        ("id", json!(""), json!("0")),
        ("id", json!("a".repeat(65)), json!("a".repeat(64))),
        ("args", json!(["a\0b"]), json!(["a b", ""])),
        ("args", json!([long]), json!(["a".repeat(100_000)])),
        (
            "args",
            json!(vec!["a".repeat(100_000); 11]),
            json!(vec!["a".repeat(100_000); 10]),
        ),
        ("args", json!(vec!["a"; 1_025]), json!(vec!["a"; 1_024])),
        ("env", json!({"A": "\0"}), json!({"A": "="})),
        ("env", json!({"LD_PRELOAD": "x"}), json!({"LDX": "x"})),
        ("env", json!({"PATH": "x"}), json!({"PATHS": "x"})),
        ("env", json!({"RUST_BACKTRACE": "1"}), json!({"TZ": "UTC"})),
        ("env", json!({"ld_preload": "x"}), json!({"LANG": "C"})),
        ("env", json!({"A=B": "x"}), json!({"A_B": "x"})),
        ("env", json!({"": "x"}), json!({})),
        ("files", json!({"../a": ""}), json!({"a": ""})),
        ("files", json!({"/a": ""}), json!({"a/b": ""})),
        (
            "files",
            json!({"a": "", "a/b": ""}),
            json!({"a": "", "a-b": ""}),
        ),
        (
            "files",
            json!({"a": {"base64": "/w"}}),
            json!({"a": {"base64": "/w=="}}),
        ),
        (
            "files",
            json!({"a": {"base64": "", "x": 1}}),
            json!({"a": {"base64": ""}}),
        ),
        (
            "stdin",
            json!("a".repeat(MAX_INPUT_BYTES + 1)),
            json!("a".repeat(MAX_INPUT_BYTES)),
        ),
        ("stdin", json!(1), json!({"base64": ""})),
        ("expect", json!({}), json!({"exit": 0})),
        ("expect", json!({"exit": 256}), json!({"exit": 255})),
        (
            "expect",
            json!({"exit": 0, "stdout": null}),
            json!({"exit": 0, "stdout": ""}),
        ),
        (
            "expect",
            json!({"exit": 0, "stdout": "", "stdout_json": 1}),
            json!({"exit": 0, "stdout_json": 1}),
        ),
        (
            "expect",
            json!({"exit": 0, "stderr_contains": ""}),
            json!({"exit": 0, "stderr_contains": "a"}),
        ),
        (
            "expect",
            json!({"exit": 0, "stdout_json": 1.5}),
            json!({"exit": 0, "stdout_json": [1, "1.5"]}),
        ),
        ("expects", json!({"exit": 0}), json!(null)),
    ] {
        assert_eq!(
            with_case_field(name, bad.clone()),
            Err(WitnessInvalid),
            "{name}: {:.80}",
            bad.to_string()
        );
        if !good.is_null() {
            assert!(
                with_case_field(name, good.clone()).is_ok(),
                "{name}: {:.80}",
                good.to_string()
            );
        }
    }
    let many: Vec<Value> = (0..=MAX_CASES)
        .map(|i| json!({"id": format!("c{i}"), "expect": {"exit": i % 2}}))
        .collect();
    assert_eq!(
        read(&document(&[("cases", json!(many))])),
        Err(WitnessInvalid)
    );
}

#[test]
fn a_witness_that_one_constant_answer_meets_is_toothless() {
    for same in [
        vec![json!({"exit": 0, "stdout": "a"})],
        vec![
            json!({"exit": 0, "stdout": "a"}),
            json!({"exit": 0, "stdout": "a"}),
        ],
        vec![json!({"exit": 0, "stdout": "a"}), json!({"exit": 0})],
        vec![
            json!({"exit": 0, "stderr_contains": "a"}),
            json!({"exit": 0, "stderr_contains": "b"}),
        ],
        vec![
            json!({"exit": 0, "stdout": "{\"b\": 1,\"a\":2}"}),
            json!({"exit": 0, "stdout_json": {"a": 2, "b": 1}}),
        ],
    ] {
        assert_eq!(with_expectations(&same), Err(WitnessToothless), "{same:?}");
    }
    for different in [
        [json!({"exit": 0}), json!({"exit": 1})],
        [
            json!({"exit": 0, "stdout": "a"}),
            json!({"exit": 0, "stdout": "b"}),
        ],
        [
            json!({"exit": 0, "stdout_json": 1}),
            json!({"exit": 0, "stdout_json": 2}),
        ],
        [
            json!({"exit": 0, "stdout": "1"}),
            json!({"exit": 0, "stdout_json": 2}),
        ],
        [
            json!({"exit": 0, "stdout": "a"}),
            json!({"exit": 0, "stdout_json": "a"}),
        ],
    ] {
        assert!(with_expectations(&different).is_ok(), "{different:?}");
    }
}

#[test]
fn a_waiver_names_mutant_source_and_reason_once() {
    let source = Digest::of(b"abc").to_string();
    let waiver =
        |mutant: &str, reason: &str| json!({"mutant": mutant, "source": source, "reason": reason});
    let with = |waivers: Vec<Value>| read(&document(&[("waivers", json!(waivers))]));
    assert!(with(vec![waiver("a", "why"), waiver("b", "why")]).is_ok());
    for id in [
        "src/lib.rs:41:12 relational < -> <=",
        "src/lib.rs:2:5 condition a_long_condition_that_is_cut_after_fort… -> true",
        "src/lib.rs:7 unjudged const-context",
    ] {
        assert!(with(vec![waiver(id, "why")]).is_ok(), "{id}");
    }
    for bad in [
        vec![waiver("", "why")],
        vec![waiver("a\nb", "why")],
        vec![waiver("a", " \n")],
        vec![waiver("a", &"x".repeat(1_001))],
        vec![waiver("a", "why"), waiver("a", "again")],
        vec![json!({"mutant": "a", "source": "00", "reason": "why"})],
        vec![json!({"mutant": "a", "reason": "why"})],
        (0..=MAX_WAIVERS)
            .map(|i| waiver(&format!("m{i}"), "why"))
            .collect(),
    ] {
        assert_eq!(with(bad.clone()), Err(WitnessInvalid), "{:?}", bad.first());
    }
}

#[test]
fn a_private_witness_inside_the_tree_is_refused_and_a_public_one_is_not() {
    let text = document(&[("bin", Value::Null), ("driver", json!("drive.rs"))]).to_string();
    let witness = Witness::parse(text.as_bytes())
        .unwrap()
        .with_driver(b"fn main() {}")
        .unwrap();
    let (copy, driver, other) = (
        RelPath::new("tests/data/x.bin").unwrap(),
        RelPath::new("examples/d.rs").unwrap(),
        RelPath::new("witness.json").unwrap(),
    );
    let verdict = |witness: &Witness, path: &RelPath, content: &[u8], place: Option<&RelPath>| {
        let tree = [(path, content)].into_iter().collect();
        let inside = |tree, changes: &[Change]| {
            let refused = witness.refuse_if_inside(&tree, changes, place);
            refused.map_err(|refused| refused.code)
        };
        // What the change takes away was there to be read.
        let gone = inside(
            Tree::default(),
            &[change(path.as_str(), Some(content), None)],
        );
        let now = inside(tree, &[]);
        assert_eq!(gone, now, "{path}");
        now
    };
    assert_eq!(
        verdict(&witness, &copy, text.as_bytes(), None),
        Err(WitnessExposed)
    );
    assert_eq!(
        verdict(&witness, &driver, b"fn main() {}", None),
        Err(WitnessExposed)
    );
    assert_eq!(
        verdict(&witness, &other, b"another", Some(&other)),
        Err(WitnessExposed)
    );
    assert_eq!(verdict(&witness, &other, b"another", None), Ok(()));
    assert_eq!(verdict(&witness, &copy, b"another", Some(&other)), Ok(()));
    let public = text.replacen('{', "{\"public\":true,", 1);
    let witness = Witness::parse(public.as_bytes()).unwrap();
    assert_eq!(
        verdict(&witness, &other, public.as_bytes(), Some(&other)),
        Ok(())
    );
}

#[test]
fn numbers_without_a_canonical_form_on_standard_output_equal_nothing() {
    let expect = Expect {
        exit: 0,
        stdout: None,
        stdout_json: Some(json!({"a": [1], "b": 2})),
        stderr_contains: None,
    };
    assert!(expect.accepts_stdout(b"{\"b\":2, \"a\":[1]}\n"));
    for other in [
        &b"{\"b\":2,\"a\":[1.0]}"[..],
        b"{\"b\":2,\"b\":2,\"a\":[1]}",
        b"{\"b\":2,\"a\":[1]} x",
        b"",
        b"\xff",
    ] {
        assert!(!expect.accepts_stdout(other), "{}", escape(other, 40));
    }
}

#[test]
fn the_commitment_changes_with_every_part_and_with_the_salt() {
    let commit = |value: &Value, salt: u8| read(value).unwrap().commitment(&[salt; 32]).unwrap();
    let base = commit(&document(&[]), 1);
    assert_eq!(base, commit(&document(&[]), 1));
    let waiver = json!([{"mutant": "a", "source": Digest::of(b""), "reason": "r"}]);
    let mut case = document(&[]);
    case["cases"][1]["stdin"] = json!("x");
    let mut order = document(&[]);
    order["cases"].as_array_mut().unwrap().reverse();
    let others = [
        commit(&document(&[]), 2),
        commit(&document(&[("bin", json!("other"))]), 1),
        commit(&document(&[("public", json!(true))]), 1),
        commit(&document(&[("waivers", waiver)]), 1),
        commit(&case, 1),
        commit(&order, 1),
    ];
    let distinct: std::collections::BTreeSet<_> = others.iter().chain([&base]).collect();
    assert_eq!(distinct.len(), 7);
    let library = read(&document(&[
        ("bin", Value::Null),
        ("driver", json!("d.rs")),
    ]))
    .unwrap();
    let driven = |text: &[u8]| {
        library
            .clone()
            .with_driver(text)
            .unwrap()
            .commitment(&[1; 32])
            .unwrap()
    };
    assert_ne!(driven(b"a"), driven(b"b"));
}

#[test]
fn another_language_is_named_with_a_program_only() {
    let with = |more: &[(&str, Value)]| read(&document(more));
    assert_eq!(with(&[]).unwrap().language(), None);
    let python = with(&[("language", json!("python"))]).unwrap();
    assert_eq!(python.language(), Some("python"));
    let waiver = json!([{"mutant": "m", "source": Digest::of(b""), "reason": "r"}]);
    let waived = with(&[("language", json!("c")), ("waivers", waiver)]).unwrap();
    assert_eq!(waived.waivers().len(), 1);
    for bad in [
        vec![("language", json!("rust"))],
        vec![("language", json!("../c"))],
        vec![("language", json!(""))],
    ] {
        assert_eq!(
            with(&bad).unwrap_err(),
            CertifierCode::WitnessInvalid,
            "{bad:?}"
        );
    }
    // The same cases for another language are another witness.
    let rust = with(&[]).unwrap().commitment(&[1; 32]).unwrap();
    assert_ne!(python.commitment(&[1; 32]).unwrap(), rust);
}

/// Written from the description alone: what somebody who is shown case 2 of 3 computes.
#[test]
fn one_case_can_be_opened_without_showing_the_others() {
    let cases = json!([
        {"id": "a", "expect": {"exit": 0}},
        {"id": "b", "expect": {"exit": 1}},
        {"id": "c", "stdin": "in", "expect": {"exit": 2, "stdout": "out"}},
    ]);
    let witness = read(&document(&[("cases", cases)])).unwrap();
    let salt = [7u8; 32];
    let own = |i: u64| {
        Digest::of(&[&b"flightproof/witness-salt/1"[..], &salt, &i.to_be_bytes()].concat())
    };
    let leaf =
        |i: u64, case: &str| Digest::of(&[&[0][..], own(i).as_bytes(), case.as_bytes()].concat());
    let node = |l: Digest, r: Digest| Digest::of(&[&[1][..], l.as_bytes(), r.as_bytes()].concat());
    let empty = |id: &str, exit: u8| {
        format!(
            r#"{{"args":[],"env":{{}},"expect":{{"exit":{exit}}},"files":{{}},"id":"{id}","stdin":{{"$bytes":""}}}}"#
        )
    };
    let shown = r#"{"args":[],"env":{},"expect":{"exit":2,"stdout":{"$bytes":"b3V0"}},"files":{},"id":"c","stdin":{"$bytes":"aW4="}}"#;
    let beside = node(leaf(0, &empty("a", 0)), leaf(1, &empty("b", 1)));
    let root = node(beside, leaf(2, shown));
    let document = format!(
        r#"{{"cases":3,"public":false,"root":"{root}","schema":"flightproof/witness-commitment/1","target":{{"bin":"calc"}},"waivers":[]}}"#
    );
    assert_eq!(
        witness.commitment(&salt).unwrap(),
        Digest::of(document.as_bytes())
    );
}
