//! Archives made from plans: what a plan deserves is worked out without our code, and every reader
//! must say the same.

#![expect(
    clippy::unwrap_used,
    reason = "a generated case that cannot be made is a failed test"
)]

mod scene;

use flightproof_archive::paar::{self, ArtifactPath, Origin, Target};
use flightproof_archive::{fuzzing, paws};
use flightproof_core::{Code, Digest, RelPath};
use flightproof_hostile::archive::plan::{Change, Lie, Plan, Scene, Shape};
use std::collections::{BTreeMap, BTreeSet};

/// Plans that are looked at: each verdict is among them many times.
const PLANS: u64 = 7000;

fn plans() -> impl Iterator<Item = Plan> {
    (0..PLANS).map(Plan::numbered)
}

#[test]
fn every_plan_meets_its_verdict() {
    for plan in plans() {
        let bytes = plan.bytes();
        match plan.shape {
            Shape::Artifact => fuzzing::paar_plan(&bytes, plan.verdict()),
            Shape::Snapshot | Shape::Changeset => fuzzing::paws_plan(&bytes, plan.verdict()),
        }
    }
}

#[test]
fn the_plans_reach_every_verdict_they_know_and_many_that_are_sound() {
    let mut met: BTreeMap<(bool, &str), usize> = BTreeMap::new();
    for plan in plans() {
        let verdict = plan.verdict().err().unwrap_or("accepted");
        *met.entry((plan.shape == Shape::Artifact, verdict))
            .or_default() += 1;
    }
    let shared = "accepted MANIFEST_TRUNCATED PREFIX_CONFLICT NON_CANONICAL PAYLOAD_HASH_MISMATCH";
    let paws = "INVALID_PATH INVALID_MODE INVALID_SIZE INVALID_SHA256 EXTRA_FIELD \
        DUPLICATE_ENTRY_PATH ENTRIES_UNSORTED INVALID_OFFSET TOTAL_BYTES_MISMATCH \
        SNAPSHOT_ID_MISMATCH PAYLOAD_TRUNCATED TRAILING_BYTES";
    let paar = "FILES_EMPTY INVALID_FILE_PATH INVALID_FILE_MODE INVALID_FILE_SIZE \
        INVALID_FILE_HASH BAD_FILE_ENTRY DUPLICATE_FILE_PATH FILES_UNSORTED INVALID_FILE_OFFSET \
        TOTAL_ARCHIVE_MISMATCH BUILD_ID_MISMATCH";
    for (is_artifact, own) in [(false, paws), (true, paar)] {
        let known: BTreeSet<&str> = shared
            .split_whitespace()
            .chain(own.split_whitespace())
            .collect();
        let seen = met.keys().filter(|(artifact, _)| *artifact == is_artifact);
        assert_eq!(
            seen.map(|(_, verdict)| *verdict).collect::<BTreeSet<_>>(),
            known
        );
    }
    assert!(met.values().all(|times| *times >= 3), "{met:?}");
    let sound: usize = met
        .iter()
        .filter(|((_, v), _)| *v == "accepted")
        .map(|(_, n)| n)
        .sum();
    assert!(sound > 1000, "{sound} of {PLANS} are sound");
}

/// Archives of each kind on which both encoders must agree.
const AGREED: usize = 10_000;

/// Honest plans of one shape.
fn honest(shape: Shape) -> impl Iterator<Item = Plan> {
    (0..)
        .map(Plan::numbered)
        .filter(move |plan| plan.shape == shape)
        .map(Plan::honest)
        .take(AGREED)
}

#[test]
fn an_independent_encoder_agrees_on_ten_thousand_snapshots() {
    let mut reached = Reached::default();
    for plan in honest(Shape::Snapshot) {
        let theirs = plan.bytes();
        let files = plan.entries.iter().rev();
        let files = files.map(|e| (RelPath::new(&e.path()).unwrap(), e.executable, e.content()));
        let ours = paws::pack(plan.workspace.as_str(), files).unwrap();
        assert_eq!(ours.bytes, theirs, "{plan:?}");
        assert_eq!(paws::read(&theirs).unwrap().snapshot, ours.snapshot);
        reached.note(&plan);
    }
    reached.check(Shape::Snapshot);
}

#[test]
fn an_independent_encoder_agrees_on_ten_thousand_changesets() {
    let mut reached = Reached::default();
    for plan in honest(Shape::Changeset) {
        let theirs = plan.header();
        let manifest = paws::decode(&theirs).unwrap_or_else(|e| panic!("{e} {plan:?}"));
        let paws::Manifest::Changeset(ours) = manifest else {
            panic!("{plan:?}");
        };
        assert_eq!(ours.header().unwrap(), theirs, "{plan:?}");
        let changes: Vec<paws::Change> = plan.entries.iter().map(change).collect();
        assert_eq!(ours.changes(), changes, "{plan:?}");
        assert_eq!(ours.workspace_id(), plan.workspace);
        assert!(paws::verify(plan.bytes().as_slice(), &()).is_ok());
        reached.note(&plan);
    }
    reached.check(Shape::Changeset);
}

#[test]
fn an_independent_encoder_agrees_on_ten_thousand_artifacts() {
    let mut reached = Reached::default();
    let origin = Origin {
        target: Target::LinuxX64,
        source_commit: "0123456789abcdef0123456789abcdef01234567".parse().unwrap(),
        daemon_protocol_version: 1,
        daemon_schema_revision: 0,
    };
    for plan in honest(Shape::Artifact) {
        let theirs = plan.bytes();
        let files = plan.entries.iter().rev();
        let files = files.map(|e| {
            (
                ArtifactPath::new(&e.path()).unwrap(),
                e.executable,
                e.content(),
            )
        });
        let ours = paar::pack(origin, files).unwrap();
        assert_eq!(ours.bytes, theirs, "{plan:?}");
        assert_eq!(paar::read(&theirs).unwrap().artifact, ours.artifact);
        reached.note(&plan);
    }
    reached.check(Shape::Artifact);
}

fn change(entry: &flightproof_hostile::archive::plan::Entry) -> paws::Change {
    let path = RelPath::new(&entry.path()).unwrap();
    let base_hash = Digest::of(entry.path().as_bytes());
    let content = entry.content();
    let now = paws::Entry {
        path: path.clone(),
        executable: entry.executable,
        size: content.len() as u64,
        sha256: Digest::of(&content),
    };
    match entry.change {
        Change::Add => paws::Change::Add(now),
        Change::Replace => paws::Change::Change {
            entry: now,
            base_hash,
        },
        Change::Delete => paws::Change::Delete { path, base_hash },
    }
}

/// What the honest plans hold, so that agreement means something.
#[derive(Debug, Default)]
struct Reached {
    distinct: BTreeSet<Digest>,
    entries: BTreeSet<usize>,
    letters: BTreeSet<char>,
    empty_files: usize,
    large_files: usize,
    executable: usize,
    deep: usize,
    longest_path: usize,
    kinds: BTreeSet<u8>,
}

impl Reached {
    fn note(&mut self, plan: &Plan) {
        assert_eq!((plan.lie, plan.verdict()), (Lie::None, Ok(())));
        self.distinct.insert(Digest::of(&plan.bytes()));
        self.entries.insert(plan.entries.len());
        self.letters.extend(plan.workspace.chars());
        for entry in &plan.entries {
            self.letters.extend(entry.path().chars());
            self.empty_files += usize::from(entry.content().is_empty());
            self.large_files += usize::from(entry.content().len() > 200);
            self.executable += usize::from(entry.executable);
            self.deep += usize::from(entry.path().matches('/').count() == 3);
            self.longest_path = self.longest_path.max(entry.path().len());
            self.kinds.insert(entry.change as u8);
        }
    }

    fn check(&self, shape: Shape) {
        assert!(self.distinct.len() > AGREED / 2, "{}", self.distinct.len());
        let least = usize::from(shape == Shape::Artifact);
        assert!(
            (least..=10).all(|n| self.entries.contains(&n)),
            "{:?}",
            self.entries
        );
        let mut letters: BTreeSet<char> = "aé😀\u{10000}\u{e000}ßﬁ\"*:\u{202e}".chars().collect();
        if shape != Shape::Artifact {
            letters.extend("\0\u{8}\t\n\u{b}\u{c}\r\u{1f}\u{7f}\u{2028}\\/".chars());
        }
        assert!(self.letters.is_superset(&letters), "{:?}", self.letters);
        assert!(self.empty_files > 1000 && self.large_files > 1000 && self.executable > 1000);
        assert!(
            self.deep > 500 && self.longest_path == 512,
            "{} {}",
            self.deep,
            self.longest_path
        );
        assert_eq!(self.kinds.len(), 3);
    }
}

/// Plans that controls are held against: enough to catch each of them.
const CONTROLS: usize = 4000;

/// Plans on which a reader of snapshots does not say what they deserve.
fn disagreements(reader: impl Fn(&[u8]) -> Result<(), String>) -> Vec<Plan> {
    let plans = plans()
        .take(CONTROLS)
        .filter(|plan| plan.shape == Shape::Snapshot);
    plans
        .filter(|plan| reader(&plan.bytes()) != plan.verdict().map_err(str::to_owned))
        .collect()
}

fn sound_reader(bytes: &[u8]) -> Result<(), String> {
    let read = paws::read(bytes).map(drop);
    read.map_err(|e| e.code.explanation().code.replacen("archive/", "", 1))
}

/// Paths of a snapshot as another parser sees them.
fn paths(bytes: &[u8]) -> Vec<String> {
    let length = u64::from_be_bytes(bytes[5..13].try_into().unwrap());
    let manifest = &bytes[13..][..usize::try_from(length).unwrap()];
    let manifest: serde_json::Value = serde_json::from_slice(manifest).unwrap();
    let entries = manifest["entries"].as_array().unwrap().iter();
    entries
        .map(|e| e["path"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn readers_that_leave_out_one_check_are_noticed_by_the_same_plans() {
    assert_eq!(disagreements(sound_reader), []);
    let neighbours_only = |bytes: &[u8]| match sound_reader(bytes) {
        Err(code) if code == "PREFIX_CONFLICT" => {
            let paths = paths(bytes);
            let mut pairs = paths.windows(2);
            let found = pairs.any(|pair| pair[1].starts_with(&format!("{}/", pair[0])));
            if found { Err(code) } else { Ok(()) }
        }
        other => other,
    };
    assert!(!disagreements(neighbours_only).is_empty());
    let no_encoding_again = |bytes: &[u8]| match sound_reader(bytes) {
        Err(code) if code == "NON_CANONICAL" => Ok(()),
        other => other,
    };
    assert!(!disagreements(no_encoding_again).is_empty());
    let no_look_at_the_end = |bytes: &[u8]| match sound_reader(bytes) {
        Err(code) if code == "TRAILING_BYTES" => Ok(()),
        other => other,
    };
    assert!(!disagreements(no_look_at_the_end).is_empty());
}

#[test]
fn a_verifier_that_skips_one_hash_is_noticed_by_the_same_plans() {
    // All files but the first are hashed: it is the first byte of the payload that lies.
    let skips_the_first = |bytes: &[u8]| match paws::read(bytes) {
        Err(e) if e.code.explanation().code == "archive/PAYLOAD_HASH_MISMATCH" => {
            let paws::Manifest::Snapshot(snapshot) = header_only(bytes) else {
                return sound_reader(bytes);
            };
            let first = snapshot
                .entries()
                .iter()
                .find(|entry| entry.size > 0)
                .unwrap();
            let named = e.detail.contains(&format!("\"{}\"", first.path));
            if named { Ok(()) } else { sound_reader(bytes) }
        }
        _ => sound_reader(bytes),
    };
    assert!(!disagreements(skips_the_first).is_empty());
}

fn header_only(bytes: &[u8]) -> paws::Manifest {
    let length = u64::from_be_bytes(bytes[5..13].try_into().unwrap());
    let header = &bytes[..13 + usize::try_from(length).unwrap()];
    paws::decode(header).unwrap()
}

/// Scenes that are played, each in a directory of its own in memory where there is one.
const SCENES: u64 = 1500;

#[test]
fn every_scene_is_played_without_a_trace_outside_of_its_tree() {
    let (mut prepared, mut overlays, mut written, mut kinds) = (0, 0, 0, BTreeSet::new());
    for seed in 0..SCENES {
        let scene = Scene::numbered(seed);
        let bytes = scene.plan.bytes();
        let played = scene::played(&scene, &bytes);
        scene::in_a_room(|room| fuzzing::extract_plan(room, &played));
        prepared += usize::from(!scene.prepared.is_empty());
        overlays += usize::from(scene.is_overlay);
        written += usize::from(scene.plan.tree_verdict(scene.names).is_ok());
        kinds.extend(scene.prepared.iter().map(|thing| thing.kind % 7));
    }
    assert!(
        prepared > 400 && overlays > 500 && written > 200,
        "{prepared} {overlays} {written}"
    );
    assert_eq!(kinds.len(), 7);
}
