//! `flights show`, `diff` and `transcript`: what people see of a recording, what changed between two,
//! and how one travels. Every hostile file has a benign twin.

use crate::environment::{Environment, Run, workspace};
use crate::forge;
use crate::transcript::{Kept, key, recount};
use flightproof_certifier::key::SecretKey;
use flightproof_core::Digest;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

const BROKEN: &str = "flights/TRANSCRIPT_BROKEN";

/// An environment with a small recording and its recorder's key.
struct Desk {
    environment: Environment,
    kept: Kept,
    key: String,
}

impl Desk {
    fn new() -> Self {
        let environment = Environment::new();
        let key = environment.write("recorder.pem", &key().public().to_pem().unwrap());
        Self {
            environment,
            kept: Kept::new(),
            key,
        }
    }

    fn path(&self, name: &str) -> String {
        self.environment.path(name).to_str().unwrap().to_owned()
    }

    fn export(&self) -> PathBuf {
        let (from, to) = (self.kept.place(), self.path("small.paws"));
        let run = self.environment.flights(&[
            "transcript",
            "export",
            from.to_str().unwrap(),
            "-o",
            &to,
            "--key",
            &self.key,
        ]);
        assert_eq!(run.code, 0, "{}", run.text);
        PathBuf::from(to)
    }

    fn import(&self, file: &Path, to: &str) -> Run {
        self.environment.flights(&[
            "transcript",
            "import",
            file.to_str().unwrap(),
            "-o",
            &self.path(to),
            "--key",
            &self.key,
            "--format",
            "json",
        ])
    }

    /// The code an import of these bytes ends in, or nothing. Refused, it leaves nothing.
    fn import_code(&self, bytes: &[u8]) -> String {
        let file = self.environment.path("arrived.paws");
        fs::write(&file, bytes).unwrap();
        let run = self.import(&file, "taken");
        let taken = self.environment.path("taken");
        if run.code == 0 {
            fs::remove_dir_all(&taken).unwrap();
            return String::new();
        }
        assert!(!taken.exists(), "{}", run.text);
        assert!(!self.environment.path("taken.new").exists(), "{}", run.text);
        run.json()["code"].as_str().unwrap().to_owned()
    }
}

/// A PAWS1 file by an encoder of our own, for what the archive's never writes.
fn paws(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut offset = 0;
    let mut entries = Vec::new();
    let mut ids = Vec::new();
    for (path, bytes) in files {
        let sha = Digest::of(bytes);
        let size = bytes.len();
        entries.push(format!(
            r#"{{"path":"{path}","size":{size},"mode":100644,"sha256":"{sha}","offset":{offset}}}"#
        ));
        ids.push(format!(
            r#"{{"path":"{path}","size":{size},"mode":100644,"sha256":"{sha}"}}"#
        ));
        offset += size;
    }
    let id = Digest::of(format!("[{}]", ids.join(",")).as_bytes());
    let manifest = format!(
        r#"{{"format":"prime-agent-workspace","version":1,"kind":"snapshot","workspaceId":"small","snapshotId":"{id}","totalBytes":{offset},"entries":[{}]}}"#,
        entries.join(",")
    );
    let mut out = b"PAWS1".to_vec();
    out.extend((manifest.len() as u64).to_be_bytes());
    out.extend(manifest.as_bytes());
    files.iter().for_each(|(_, bytes)| out.extend(*bytes));
    out
}

/// The files of a recording, as a file holds them.
fn files(place: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all: Vec<(String, Vec<u8>)> = fs::read_dir(place.join("blobs"))
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            (format!("blobs/{name}"), fs::read(entry.path()).unwrap())
        })
        .collect();
    all.push((
        "transcript.jsonl".into(),
        fs::read(place.join("transcript.jsonl")).unwrap(),
    ));
    all.sort();
    all
}

fn packed(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let borrowed: Vec<(&str, &[u8])> = files
        .iter()
        .map(|(path, bytes)| (path.as_str(), bytes.as_slice()))
        .collect();
    paws(&borrowed)
}

#[test]
fn a_recording_travels_as_one_file_and_arrives_as_it_was() {
    let desk = Desk::new();
    let file = desk.export();
    let bytes = fs::read(&file).unwrap();
    assert_eq!(
        bytes,
        fs::read(desk.export()).unwrap(),
        "the same file again"
    );
    assert_eq!(
        bytes,
        packed(&files(&desk.kept.place())),
        "an encoder of our own agrees"
    );
    let run = desk.import(&file, "arrived.flight");
    assert_eq!(run.json()["verdict"], "accepted", "{}", run.text);
    let arrived = desk.environment.path("arrived.flight");
    assert_eq!(files(&arrived), files(&desk.kept.place()));
    let taken = desk.import(&file, "arrived.flight");
    assert_eq!(taken.json()["code"], "flights/OUTPUT_UNWRITABLE");
    let same = desk.environment.flights(&[
        "diff",
        file.to_str().unwrap(),
        arrived.to_str().unwrap(),
        "--key",
        &desk.key,
    ]);
    assert_eq!(same.code, 0, "{}", same.text);
    assert!(same.stdout.starts_with("the same bytes: "), "{}", same.text);
}

#[test]
fn what_a_killed_import_left_is_in_nobodys_way() {
    let desk = Desk::new();
    let file = desk.export();
    let left = desk.environment.path("taken.new");
    fs::create_dir(&left).unwrap();
    let run = desk.import(&file, "taken");
    assert_eq!(run.code, 0, "{}", run.text);
    assert!(left.exists(), "what somebody else made stays");
    let beside = fs::read_dir(left.parent().unwrap()).unwrap();
    let names = beside.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(names.filter(|name| name.starts_with("taken")).count(), 2);
}

#[test]
fn a_file_that_is_no_sound_recording_is_not_taken_in() {
    let desk = Desk::new();
    let sound = files(&desk.kept.place());
    assert_eq!(desk.import_code(&packed(&sound)), "", "the twin");

    let mut stowaway = sound.clone();
    stowaway.push(("zz.sh".into(), b"#!/bin/sh".to_vec()));
    assert_eq!(desk.import_code(&packed(&stowaway)), BROKEN);

    let extra = format!("blobs/{}", Digest::of(b"nobody refers to it"));
    let mut unreferenced = sound.clone();
    unreferenced.push((extra, b"nobody refers to it".to_vec()));
    unreferenced.sort();
    assert_eq!(desk.import_code(&packed(&unreferenced)), BROKEN);

    let mut missing = sound.clone();
    missing.remove(0);
    assert_eq!(desk.import_code(&packed(&missing)), BROKEN);

    let mut other_bytes = sound.clone();
    other_bytes[0].1 = b"other bytes under the old name".to_vec();
    assert_eq!(desk.import_code(&packed(&other_bytes)), BROKEN);

    let mut no_lines = sound.clone();
    no_lines.pop();
    assert_eq!(desk.import_code(&packed(&no_lines)), BROKEN);

    for path in [
        "../escape",
        "/etc/passwd",
        "blobs/../../escape",
        "a\\\\b",
        "blobs//x",
    ] {
        let mut leaves = sound.clone();
        leaves.push((path.to_owned(), b"x".to_vec()));
        leaves.sort();
        let code = desk.import_code(&packed(&leaves));
        assert!(
            ["archive/INVALID_PATH", "archive/ENTRIES_UNSORTED"].contains(&code.as_str()),
            "{path}: {code}"
        );
    }
}

#[test]
fn a_file_that_claims_more_than_it_has_is_refused_before_it_costs_anything() {
    let desk = Desk::new();
    let sound = packed(&files(&desk.kept.place()));
    let mut huge_manifest = sound.clone();
    huge_manifest[5..13].copy_from_slice(&u64::MAX.to_be_bytes());
    assert_eq!(
        desk.import_code(&huge_manifest),
        "archive/MANIFEST_TOO_LARGE"
    );
    let text = String::from_utf8_lossy(&sound).replace("\"totalBytes\":", "\"totalBytes\":9");
    assert_ne!(desk.import_code(text.as_bytes()), "");
    assert_eq!(desk.import_code(b""), "archive/BUFFER_EMPTY");
    for end in (0..sound.len()).step_by(97) {
        assert_ne!(desk.import_code(&sound[..end]), "", "cut at {end}");
    }
    let mut longer = sound.clone();
    longer.push(b'x');
    assert_ne!(desk.import_code(&longer), "");
    assert_eq!(desk.import_code(&sound), "", "the twin");
}

#[test]
fn a_recording_that_nobody_trusted_signed_is_not_taken_in() {
    let desk = Desk::new();
    let lines = forge::lines(&desk.kept.place());
    let code = |change: &dyn Fn(&mut Vec<Value>), signer: &SecretKey| {
        let mut changed = lines.clone();
        changed
            .last_mut()
            .unwrap()
            .as_object_mut()
            .unwrap()
            .remove("root");
        change(&mut changed);
        forge::seal(&desk.kept.place(), &changed, signer);
        desk.import_code(&packed(&files(&desk.kept.place())))
    };
    assert_eq!(code(&|_| (), &key()), "", "the twin");
    assert_eq!(code(&|_| (), &SecretKey::from_seed([8; 32])), BROKEN);
    let unsigned = |lines: &mut Vec<Value>| lines.last_mut().unwrap()["root"] = json!("{}");
    assert_eq!(code(&unsigned, &key()), BROKEN);
    let newer = |lines: &mut Vec<Value>| lines[0]["version"] = json!("2.0");
    assert_eq!(code(&newer, &key()), "flights/TRANSCRIPT_TOO_NEW");
    forge::seal(&desk.kept.place(), &lines, &key());
    let broken = fs::read_to_string(desk.kept.place().join("transcript.jsonl")).unwrap();
    fs::write(
        desk.kept.place().join("transcript.jsonl"),
        broken.replacen("main", "mane", 1),
    )
    .unwrap();
    assert_eq!(
        desk.import_code(&packed(&files(&desk.kept.place()))),
        BROKEN
    );
}

#[test]
fn a_timeline_is_one_line_for_each_step() {
    let desk = Desk::new();
    let place = desk.kept.place();
    let place = place.to_str().unwrap();
    let shown = desk
        .environment
        .flights(&["show", place, "--key", &desk.key]);
    insta::assert_snapshot!(shown.text, @r"
    exit 0
    --- stdout
      line  stage       act                                                  outcome
         2  plan        draw entropy                                         5 bytes
         4  capture     take ? on main out of ?                              refused flights/SOURCE_UNA…
         6  plan        read the clock                                       1970-01-01 00:00:17 UTC
    small: held after 3 exchanges; predicate ________________________________________________________________
      recording 1.0, signed by ________________________________________________________________
    ");
    let mut jsonl = desk
        .environment
        .command(&["show", place, "--key", &desk.key]);
    let run = desk.environment.run(jsonl.args(["--format", "jsonl"]));
    let lines: Vec<Value> = run
        .stdout
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[0]["schema"], "flightproof/timeline/1");
    assert_eq!(lines[2]["end"], "refused");
    let json = desk
        .environment
        .flights(&["show", place, "--key", &desk.key, "--format", "json"]);
    assert_eq!(json.json()["steps"].as_array().unwrap().len(), 3);
}

#[test]
fn one_exchange_is_shown_in_full() {
    let desk = Desk::new();
    let place = desk.kept.place();
    let place = place.to_str().unwrap();
    let shown = |line: &str| {
        desk.environment
            .flights(&["show", place, "--key", &desk.key, "--line", line])
    };
    insta::assert_snapshot!(shown("4").text, @r#"
    exit 0
    --- stdout
    line 4: capture
    asked
      {
        "baseline": "main"
      }
    fail
      {
        "code": "flights/SOURCE_UNAVAILABLE",
        "detail": "it was not there",
        "notes": []
      }
    "#);
    let missing = shown("3");
    assert_eq!(missing.code, 2, "{}", missing.text);
    assert!(missing.stdout.contains("flights/LINE_MISSING"));
}

#[test]
fn a_recording_of_this_project_is_shown_by_the_name_of_its_plan() {
    let environment = crate::plans::recorded();
    let shown = |args: &[&str]| {
        let mut command = environment.command(args);
        command.current_dir(environment.path("root"));
        environment.run(&mut command)
    };
    let named = shown(&["show", "pricing", "--format", "json"]).json();
    assert_eq!(named["flight"], "pricing");
    let same = shown(&["diff", "pricing", "flights/recordings/pricing.flight"]);
    assert_eq!(same.code, 0, "{}", same.text);
    let missing = shown(&["show", "pricig"]);
    assert_eq!(missing.code, 2, "{}", missing.text);
    let told = "flights/FILE_UNREADABLE: pricig: no such file, and no recording of this name here; did you mean pricing?";
    assert!(missing.stdout.contains(told), "{}", missing.text);
    let missing = shown(&["diff", "pricing", "flights/recordings/pricig.flight"]);
    assert_eq!(missing.code, 2, "{}", missing.text);
    let told = "did you mean pricing.flight?";
    assert!(missing.stdout.contains(told), "{}", missing.text);
}

#[test]
fn a_recording_without_anybodys_key_is_not_shown() {
    let desk = Desk::new();
    let place = desk.kept.place();
    let unknown = desk.environment.flights(&["show", place.to_str().unwrap()]);
    assert_eq!(unknown.code, 2, "{}", unknown.text);
    assert!(
        unknown.stdout.contains("flights/RECORDER_UNKNOWN"),
        "{}",
        unknown.text
    );
    // The twin: the key lies beside it.
    fs::write(
        place.parent().unwrap().join("recorder.pub"),
        key().public().to_pem().unwrap(),
    )
    .unwrap();
    let known = desk.environment.flights(&["show", place.to_str().unwrap()]);
    assert_eq!(known.code, 0, "{}", known.text);
}

#[test]
fn nothing_in_a_recording_reaches_a_terminal_as_it_is() {
    let desk = Desk::new();
    let evil = "\u{1b}[2J\u{202e}\r\n<script>";
    let code = desk.kept.resealed(|lines| {
        lines[0]["flight"] = json!(evil);
        lines[3]["v"] = json!({"baseline": evil, "candidate": evil, "repository": evil});
        lines[4]["v"]["detail"] = json!(evil);
        lines[5]["op"] = json!(evil);
        lines[7]["verdict"] = json!(evil);
    });
    assert_eq!(code, "");
    let place = desk.kept.place();
    for more in [&[][..], &["--all"], &["--line", "4"], &["--line", "6"]] {
        let mut show = desk.environment.command(&["show", place.to_str().unwrap()]);
        let run = desk
            .environment
            .run(show.args(["--key", &desk.key]).args(more));
        assert_eq!(run.code, 0, "{}", run.text);
        assert!(
            !run.stdout.contains(['\u{1b}', '\u{202e}', '\r']),
            "{more:?} {:?}",
            run.stdout
        );
    }
}

/// A recorded flight of this repository, under our own key.
struct Flown {
    dir: tempfile::TempDir,
}

impl Flown {
    fn copy(name: &str) -> Self {
        let dir = tempfile::TempDir::new().unwrap();
        let from = workspace().join(format!("flights/recordings/{name}.flight"));
        crate::environment::copy(&from, &dir.path().join("a.flight"));
        Self { dir }
    }

    fn place(&self) -> PathBuf {
        self.dir.path().join("a.flight")
    }

    /// Changes the lines and seals them.
    fn changed(name: &str, change: impl FnOnce(&mut Vec<Value>)) -> Self {
        let copy = Self::copy(name);
        let mut lines = forge::lines(&copy.place());
        change(&mut lines);
        recount(&mut lines);
        lines
            .last_mut()
            .unwrap()
            .as_object_mut()
            .unwrap()
            .remove("root");
        forge::seal(&copy.place(), &lines, &key());
        copy
    }
}

fn diff(left: &Flown, right: &Flown) -> Value {
    let environment = Environment::new();
    let key = environment.write("recorder.pem", &key().public().to_pem().unwrap());
    let (a, b) = (left.place(), right.place());
    let run = environment.flights(&[
        "diff",
        a.to_str().unwrap(),
        b.to_str().unwrap(),
        "--key",
        &key,
        "--format",
        "json",
    ]);
    let document = run.json();
    let differs = !document["differences"].as_array().unwrap().is_empty();
    assert_eq!(run.code, if differs { 11 } else { 0 }, "{}", run.text);
    document
}

/// The lines of the first case runs without a mutant, question by question.
fn case_runs(lines: &[Value]) -> Vec<usize> {
    (0..lines.len())
        .filter(|i| lines[*i]["v"]["role"] == "case" && lines[*i]["v"]["selector"].is_null())
        .collect()
}

#[test]
fn what_differs_by_design_is_no_difference() {
    let plain = Flown::changed("honest-library", |_| ());
    let again = Flown::changed("honest-library", |lines| {
        // Another session, another time, another guard, another order of the cases.
        for line in lines.iter_mut() {
            let text = line.to_string().replace("fp_7032d30e9f", "fp_0123456789");
            *line = serde_json::from_str(&text).unwrap();
            if !line["v"]["session"].is_null() {
                line["v"]["session"] = json!("0123456789abcdef0123456789abcdef");
            }
        }
        lines[4]["v"] = json!(1_800_000_000);
        let runs = case_runs(lines);
        for offset in 0..4 {
            lines.swap(runs[0] + offset, runs[1] + offset);
        }
    });
    let document = diff(&plain, &again);
    assert_eq!(document["identical"], false);
    assert_eq!(document["differences"], json!([]));
    assert!(document["places"].as_u64().unwrap() > 100);
}

#[test]
fn another_answer_limit_or_verdict_is_a_difference() {
    let plain = Flown::changed("honest-library", |_| ());
    type Change = fn(&mut Vec<Value>);
    let cases: [(&str, Change); 7] = [
        ("candidate", |lines| {
            // A repeat, elsewhere: mutants are held against the first answer.
            let runs = case_runs(lines);
            let repeat = |run: &&usize| lines[**run]["v"]["env"]["LANGUAGE"].is_string();
            let run = *runs.iter().find(repeat).unwrap();
            lines[run + 1]["v"]["status"]["code"] = json!(3);
        }),
        ("candidate", |lines| {
            lines[6]["v"]["head"] = json!("0".repeat(40))
        }),
        ("environment", |lines| {
            lines[10]["v"]["kernel"] = json!("another")
        }),
        ("environment", |lines| {
            let found = &mut lines[10]["v"]["readings"][0]["found"];
            *found = json!(format!("{found} and more"))
        }),
        ("environment", |lines| {
            let last = lines
                .iter()
                .rposition(|line| line["v"]["kernel"].is_string());
            lines[last.unwrap()]["v"]["kernel"] = json!("another");
        }),
        ("request", |lines| lines[5]["v"]["baseline"] = json!("main")),
        ("verdict", |lines| {
            let last = lines.len() - 1;
            lines[last]["verdict"] = json!("certifier/UNSAFE_CODE");
        }),
    ];
    for (about, change) in cases {
        let document = diff(&plain, &Flown::changed("honest-library", change));
        let differences = document["differences"].as_array().unwrap();
        assert_eq!(differences.len(), 1, "{about}: {document}");
        assert_eq!(differences[0]["about"], about, "{document}");
        assert_eq!(document["code"], "flights/TRANSCRIPTS_DIFFER");
    }
}

/// Every leaf of an exchange that is not volatile by design turns the comparison red.
#[test]
fn a_value_of_the_wrong_type_is_never_aliased_away() {
    let plain = Flown::changed("honest-library", |_| ());
    type Change = fn(&mut Vec<Value>);
    let cases: [Change; 3] = [
        |lines| lines[4]["v"] = json!("yesterday"),
        |lines| lines[2]["v"]["len"] = json!(31),
        |lines| lines[10]["v"]["session"] = json!("../../etc"),
    ];
    for (i, change) in cases.into_iter().enumerate() {
        let document = diff(&plain, &Flown::changed("honest-library", change));
        assert_eq!(
            document["differences"][0]["right"], "not of its type",
            "{i}: {document}"
        );
    }
}

#[test]
fn ten_thousand_events_are_shown() {
    let desk = Desk::new();
    let code = desk.kept.resealed(|lines| {
        let exchange: Vec<Value> = lines.drain(5..7).collect();
        let many = std::iter::repeat_n(exchange, 4_998).flatten();
        lines.splice(5..5, many);
        recount(lines);
    });
    assert_eq!(code, "");
    let place = desk.kept.place();
    let started = std::time::Instant::now();
    let run = desk
        .environment
        .flights(&["show", place.to_str().unwrap(), "--key", &desk.key]);
    assert_eq!(run.stdout.lines().count(), 5_000 + 3, "{}", run.code);
    // A bound that only shows what grows out of proportion: this is the build of the tests.
    assert!(started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
}

#[test]
fn a_wrong_command_line_is_told_in_the_form_that_was_asked_for() {
    let environment = Environment::new();
    for args in [
        &["show", "--format", "json"][..],
        &["show", "x", "--nonsense", "--format=jsonl"],
        &["nonsense", "--format", "json"],
        &["--format", "nonsense", "list"],
    ] {
        let run = environment.flights(args);
        assert_eq!(run.code, 2, "{}", run.text);
        assert_eq!(run.json()["code"], "flights/USAGE_INVALID", "{}", run.text);
        assert_eq!(run.stderr, "");
    }
    let people = environment.flights(&["show"]);
    assert_eq!((people.code, people.stdout.as_str()), (2, ""));
    let form = environment.flights(&["doctor", "--format", "sarif"]);
    assert_eq!(form.code, 2);
    assert_eq!(form.json()["code"], "flights/FORMAT_UNSUPPORTED");
    let before = environment.flights(&["--format", "sarif", "doctor"]);
    assert_eq!(before.json(), form.json());
    // A word that is no form of any command is told those of this one.
    let unknown = environment.flights(&["doctor", "--format", "xml"]);
    assert_eq!(unknown.code, 2);
    let told = unknown.json()["detail"].as_str().unwrap().to_owned();
    assert!(told.ends_with("[possible values: human, json]"), "{told}");
}
