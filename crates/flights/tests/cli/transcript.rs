//! Recordings: whatever is done to one, it is refused with its code; what is recorded is answered.

use crate::forge;
use flightproof_certifier::key::{PublicKey, SecretKey};
use flightproof_core::{Bytes, Digest, Refusal};
use flightproof_flights::FlightsCode;
use flightproof_flights::transcript::{Player, Recorder};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

pub(crate) const BROKEN: &str = "flights/TRANSCRIPT_BROKEN";
const TOO_NEW: &str = "flights/TRANSCRIPT_TOO_NEW";

/// A small signed recording on disk.
pub(crate) struct Kept {
    dir: TempDir,
}

pub(crate) fn key() -> SecretKey {
    SecretKey::from_seed([7; 32])
}

impl Kept {
    /// Three exchanges: bytes, a refusal, a number.
    pub(crate) fn new() -> Self {
        let kept = Self {
            dir: TempDir::new().unwrap(),
        };
        let mut recorder = Recorder::start(&kept.place(), "small", Digest::of(b"plan")).unwrap();
        let asked = recorder.invoke("entropy", &()).unwrap();
        recorder.ok(asked, &Bytes(b"drawn".to_vec())).unwrap();
        let asked = recorder
            .invoke("capture", &json!({"baseline": "main"}))
            .unwrap();
        recorder.fail(asked, &refusal()).unwrap();
        let asked = recorder.invoke("clock", &Bytes(b"asked".to_vec())).unwrap();
        recorder.ok(asked, &17).unwrap();
        recorder
            .finish("held", Some(Digest::of(b"predicate")), &key())
            .unwrap();
        kept
    }

    pub(crate) fn place(&self) -> PathBuf {
        self.dir.path().join("small.flight")
    }

    fn file(&self) -> PathBuf {
        self.place().join("transcript.jsonl")
    }

    fn blob(&self, bytes: &[u8]) -> PathBuf {
        self.place()
            .join("blobs")
            .join(Digest::of(bytes).to_string())
    }

    pub(crate) fn open(&self) -> Result<Player, Refusal> {
        Player::open(&self.place(), &key().public())
    }

    /// The code that reading it ends in; empty if it is accepted.
    pub(crate) fn code(&self) -> &'static str {
        self.open().err().map_or("", |refusal| refusal.code())
    }

    /// Lets a test change the lines and seals them with the right key.
    pub(crate) fn resealed(&self, change: impl FnOnce(&mut Vec<Value>)) -> &'static str {
        let mut lines = forge::lines(&self.place());
        change(&mut lines);
        if let Some(end) = lines.last_mut().and_then(Value::as_object_mut) {
            end.remove("root");
        }
        forge::seal(&self.place(), &lines, &key());
        self.code()
    }
}

fn refusal() -> Refusal {
    FlightsCode::SourceUnavailable
        .refuse("it was not there")
        .into()
}

#[test]
fn a_recording_answers_what_was_asked_then() {
    let mut player = Kept::new().open().unwrap();
    assert_eq!(player.flight(), "small");
    assert_eq!(player.plan(), Digest::of(b"plan"));
    assert_eq!(player.verdict(), "held");
    assert_eq!(player.predicate(), Some(Digest::of(b"predicate")));
    drop(player);

    let kept = Kept::new();
    player = kept.open().unwrap();
    let drawn: Bytes = player.exchange("entropy", &()).unwrap();
    assert_eq!(drawn.0, b"drawn");
    let refused = player.exchange::<_, u64>("capture", &json!({"baseline": "main"}));
    assert_eq!(refused.unwrap_err(), refusal());
    let clock: u64 = player.exchange("clock", &Bytes(b"asked".to_vec())).unwrap();
    assert_eq!(clock, 17);
    player.finish().unwrap();
}

#[test]
fn another_question_than_the_recorded_one_is_not_answered() {
    let kept = Kept::new();
    let diverged = |ask: &dyn Fn(&mut Player) -> Result<u64, Refusal>| {
        let mut player = kept.open().unwrap();
        ask(&mut player).unwrap_err().code()
    };
    const DIVERGED: &str = "flights/TRANSCRIPT_DIVERGED";
    assert_eq!(diverged(&|p| p.exchange("clock", &())), DIVERGED);
    assert_eq!(diverged(&|p| p.exchange("entropy", &1)), DIVERGED);
    let mut player = kept.open().unwrap();
    assert_eq!(player.finish().unwrap_err().code(), DIVERGED);
    let _: Bytes = player.exchange("entropy", &()).unwrap();
    let moved = player.exchange::<_, u64>("capture", &json!({"baseline": "other"}));
    let detail = moved.unwrap_err().detail;
    assert!(
        detail.contains("/baseline: recorded \"main\", asked \"other\""),
        "{detail}"
    );
    let clock = player.exchange::<_, u64>("clock", &Bytes(b"other bytes".to_vec()));
    assert_eq!(clock.unwrap_err().code(), DIVERGED);
    assert_eq!(
        player.exchange::<_, u64>("clock", &()).unwrap_err().code(),
        DIVERGED
    );
}

#[test]
fn no_byte_of_a_recording_can_be_changed() {
    let kept = Kept::new();
    let whole = fs::read(kept.file()).unwrap();
    for place in 0..whole.len() {
        for bit in [0x01, 0x02, 0x20] {
            let mut bytes = whole.clone();
            bytes[place] ^= bit;
            fs::write(kept.file(), &bytes).unwrap();
            let code = kept.code();
            assert!(
                [BROKEN, TOO_NEW].contains(&code),
                "byte {place} ^ {bit}: {code:?}"
            );
        }
    }
    fs::write(kept.file(), &whole).unwrap();
    assert_eq!(kept.code(), "");
}

#[test]
fn no_line_can_be_dropped_doubled_or_moved() {
    let kept = Kept::new();
    let text = fs::read_to_string(kept.file()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let write = |lines: &[&str]| fs::write(kept.file(), lines.join("\n") + "\n").unwrap();
    for i in 0..lines.len() {
        let mut dropped = lines.clone();
        dropped.remove(i);
        write(&dropped);
        assert_eq!(kept.code(), BROKEN, "line {i} dropped");
        let mut doubled = lines.clone();
        doubled.insert(i, lines[i]);
        write(&doubled);
        assert_eq!(kept.code(), BROKEN, "line {i} doubled");
        write(&lines[..i]);
        assert_eq!(kept.code(), BROKEN, "cut before line {i}");
        for j in 0..i {
            let mut moved = lines.clone();
            moved.swap(i, j);
            write(&moved);
            assert_eq!(kept.code(), BROKEN, "lines {i} and {j} changed places");
        }
    }
    write(&lines);
    assert_eq!(kept.code(), "");
}

#[test]
fn a_recording_cannot_be_cut_anywhere_or_go_on_after_its_end() {
    let kept = Kept::new();
    let whole = fs::read(kept.file()).unwrap();
    for end in 0..whole.len() {
        fs::write(kept.file(), &whole[..end]).unwrap();
        assert_eq!(kept.code(), BROKEN, "cut at {end}");
    }
    for more in ["\n", " ", "{}", "{}\n"] {
        fs::write(kept.file(), [&whole, more.as_bytes()].concat()).unwrap();
        assert_eq!(kept.code(), BROKEN, "{more:?}");
    }
}

#[test]
fn another_spelling_of_the_same_line_is_refused() {
    let kept = Kept::new();
    let text = fs::read_to_string(kept.file()).unwrap();
    let spellings = [
        ("{\"fixture\"", "{ \"fixture\""),
        ("\"small\"", "\"sm\\u0061ll\""),
        ("\"i\":0", "\"i\":0e0"),
        ("\"i\":0", "\"i\":-0"),
        ("\"fixture\":true", "\"fixture\":true,\"fixture\":true"),
        ("\n", "\r\n"),
        ("\"v\":17", "\"v\":17.0"),
    ];
    for (from, to) in spellings {
        assert!(text.contains(from), "{from}");
        fs::write(kept.file(), text.replacen(from, to, 1)).unwrap();
        assert_eq!(kept.code(), BROKEN, "{to}");
    }
}

#[test]
fn whoever_has_not_the_recorders_key_cannot_make_a_recording() {
    let kept = Kept::new();
    let lines = forge::lines(&kept.place());

    // Another key.
    let mut unsigned = lines.clone();
    unsigned
        .last_mut()
        .unwrap()
        .as_object_mut()
        .unwrap()
        .remove("root");
    forge::seal(&kept.place(), &unsigned, &SecretKey::from_seed([8; 32]));
    assert_eq!(kept.code(), BROKEN);

    // The old root over a changed and newly chained recording.
    for i in 0..lines.len() {
        let mut changed = lines.clone();
        match i {
            0 => changed[0]["plan"] = json!(Digest::of(b"another plan")),
            i if i + 1 == lines.len() => changed[i]["verdict"] = "certifier/UNSAFE_CODE".into(),
            i => changed[i]["v"] = json!({"changed": true}),
        }
        forge::seal(&kept.place(), &changed, &key());
        assert_eq!(kept.code(), BROKEN, "line {i}");
    }

    // The twin: unchanged and with the right key it is accepted.
    forge::seal(&kept.place(), &unsigned, &key());
    assert_eq!(kept.code(), "");
    let other = SecretKey::from_seed([8; 32]).public();
    let refused: Result<_, Refusal> = Player::open(&kept.place(), &other as &PublicKey);
    assert_eq!(refused.unwrap_err().code(), BROKEN);
}

#[test]
fn a_signed_recording_that_makes_no_sense_is_refused() {
    let cases = [
        ("an answer to another line", 2, "of", json!(3)),
        ("an answer to nothing", 2, "of", Value::Null),
        ("a wrong number", 2, "i", json!(7)),
        ("an unknown kind", 2, "k", json!("info")),
        ("an answer for a question", 1, "k", json!("ok")),
        ("a question for an answer", 2, "k", json!("invoke")),
        ("a field of no version", 2, "extra", json!(1)),
        ("a header's field of no version", 0, "extra", json!(1)),
        ("another format", 0, "format", json!("another/format")),
        ("a wrong count", 7, "exchanges", json!(4)),
        ("no operation", 1, "op", Value::Null),
    ];
    for (what, line, field, value) in cases {
        let code = Kept::new().resealed(|lines| lines[line][field] = value);
        assert_eq!(code, BROKEN, "{what}");
    }
    assert_eq!(Kept::new().resealed(|_| ()), "", "the twin");
}

/// Numbers the lines and counts the exchanges anew.
pub(crate) fn recount(lines: &mut [Value]) {
    let last = lines.len() - 1;
    for (i, line) in lines.iter_mut().enumerate() {
        line["i"] = json!(i);
        if matches!(line["k"].as_str(), Some("ok" | "fail")) {
            line["of"] = json!(i - 1);
        }
    }
    lines[last]["exchanges"] = json!((last - 1) / 2);
}

#[test]
fn a_signed_recording_with_lines_out_of_place_is_refused() {
    type Change = fn(&mut Vec<Value>);
    let cases: [(&str, Change); 5] = [
        ("a second header", |lines| lines.insert(7, lines[0].clone())),
        ("no header", |lines| drop(lines.remove(0))),
        ("a question without an answer", |lines| {
            drop(lines.remove(6))
        }),
        ("an answer without a question", |lines| {
            drop(lines.remove(5))
        }),
        ("an end in the middle", |lines| {
            lines.insert(5, lines[7].clone())
        }),
    ];
    for (what, change) in cases {
        let code = Kept::new().resealed(|lines| {
            change(lines);
            recount(lines);
        });
        assert_eq!(code, BROKEN, "{what}");
    }
    // The twin: a whole exchange less is another recording, but it is one.
    let code = Kept::new().resealed(|lines| {
        lines.drain(5..7);
        recount(lines);
    });
    assert_eq!(code, "");
}

#[test]
fn a_newer_major_is_refused_as_such_and_a_newer_minor_is_read() {
    let version =
        |text: &'static str| Kept::new().resealed(move |lines| lines[0]["version"] = json!(text));
    assert_eq!(version("2.0"), TOO_NEW);
    assert_eq!(version("4294967295.9"), TOO_NEW);
    assert_eq!(version("1.1"), "");
    for none in [
        "",
        "1",
        "1.",
        ".1",
        "0.9",
        "01.0",
        "+1.0",
        "1.0.0",
        "4294967296.0",
        "1.-1",
        " 1.0",
    ] {
        assert_eq!(version(none), BROKEN, "{none:?}");
    }
    // A newer major may look like nothing this program knows.
    let kept = Kept::new();
    fs::write(
        kept.file(),
        "{\"format\":\"flightproof/flight\",\"version\":\"2.0\",\"z\":[]}\n",
    )
    .unwrap();
    assert_eq!(kept.code(), TOO_NEW);
    // A newer minor may have more fields, on every line; what they say is passed over.
    let kept = Kept::new();
    let code = kept.resealed(|lines| {
        lines[0]["version"] = json!("1.1");
        for line in lines {
            line["news"] = json!({"since": "1.1"});
        }
    });
    assert_eq!(code, "");
    let drawn: Bytes = kept.open().unwrap().exchange("entropy", &()).unwrap();
    assert_eq!(drawn.0, b"drawn");
}

#[test]
fn blobs_are_what_their_names_say_or_nothing() {
    let ask = |kept: &Kept| {
        let mut player = kept.open().unwrap();
        player
            .exchange::<_, Bytes>("entropy", &())
            .err()
            .map_or("", |r| r.code())
    };
    assert_eq!(ask(&Kept::new()), "");

    let replaced = Kept::new();
    fs::write(replaced.blob(b"drawn"), b"other").unwrap();
    assert_eq!(ask(&replaced), BROKEN);
    fs::write(replaced.blob(b"drawn"), b"drawn and more").unwrap();
    assert_eq!(ask(&replaced), BROKEN);

    let missing = Kept::new();
    fs::remove_file(missing.blob(b"drawn")).unwrap();
    assert_eq!(ask(&missing), BROKEN);

    // A link is refused even where it leads to the right bytes.
    let linked = Kept::new();
    let elsewhere = linked.dir.path().join("elsewhere");
    fs::rename(linked.blob(b"drawn"), &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, linked.blob(b"drawn")).unwrap();
    assert_eq!(ask(&linked), BROKEN);

    let piped = Kept::new();
    fs::remove_file(piped.blob(b"drawn")).unwrap();
    let mode = rustix::fs::Mode::RUSR;
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, piped.blob(b"drawn"), kind, mode, 0).unwrap();
    assert_eq!(ask(&piped), BROKEN);

    let reference = |value: Value| {
        let kept = Kept::new();
        assert_eq!(kept.resealed(|lines| lines[2]["v"] = value), "");
        ask(&kept)
    };
    assert_eq!(
        reference(json!({"$blob": "../../../etc/passwd", "len": 5})),
        BROKEN
    );
    assert_eq!(
        reference(json!({"$blob": Digest::of(b"drawn"), "len": 4})),
        BROKEN
    );
    assert_eq!(
        reference(json!({"$blob": Digest::of(b"drawn"), "len": (64 << 20) + 1})),
        BROKEN
    );
    let mut deep = json!({"$blob": Digest::of(b"drawn"), "len": 5});
    for _ in 0..80 {
        deep = json!([deep]);
    }
    assert_eq!(reference(deep), BROKEN);
}

#[test]
fn a_transcript_that_is_no_file_is_refused() {
    let kept = Kept::new();
    fs::remove_file(kept.file()).unwrap();
    assert_eq!(kept.code(), "flights/TRANSCRIPT_MISSING");
    std::os::unix::fs::symlink("/dev/zero", kept.file()).unwrap();
    assert_eq!(kept.code(), BROKEN);
    fs::remove_file(kept.file()).unwrap();
    fs::create_dir(kept.file()).unwrap();
    assert_eq!(kept.code(), BROKEN);
}

#[test]
fn a_line_longer_than_any_is_refused() {
    let kept = Kept::new();
    let long = "x".repeat(4 << 20);
    assert_eq!(kept.resealed(|lines| lines[2]["v"] = json!(long)), BROKEN);
}

#[test]
fn a_refusal_that_this_program_does_not_know_is_not_restored() {
    let kept = Kept::new();
    let code = kept.resealed(|lines| lines[4]["v"]["code"] = json!("flights/FROM_THE_FUTURE"));
    assert_eq!(code, "");
    let mut player = kept.open().unwrap();
    let _: Bytes = player.exchange("entropy", &()).unwrap();
    let refused = player.exchange::<_, u64>("capture", &json!({"baseline": "main"}));
    assert_eq!(refused.unwrap_err().code(), BROKEN);
}
