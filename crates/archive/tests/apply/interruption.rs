//! The process is killed, or the system refuses, at every call that changes something.

use super::tree::{Bench, Tree, base, changeset, expected, seen, target, tree};
use flightproof_archive::paws::{self, Manifest};
use flightproof_archive::{ArchiveCode, Recovered, apply, recover, rehearsal};
use flightproof_core::Digest;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

/// Where the child finds its work.
const PLACE: &str = "FLIGHTPROOF_APPLY_PLACE";
/// Whether it recovers instead of applying.
const RECOVER: &str = "FLIGHTPROOF_APPLY_RECOVER";

const APPLIED: i32 = 0;
/// Refused, with the tree as it was.
const REFUSED: i32 = 3;
/// Refused half way back: recovery goes on.
const UNFINISHED: i32 = 4;
/// Applied, with something left to remove.
const UNTIDY: i32 = 5;

/// Not a test of its own: the process that the others interrupt.
#[test]
#[ignore = "started by the other tests of this file"]
fn child() {
    let place = std::env::var(PLACE).unwrap();
    let root = Path::new(&place).join("root");
    let result = match std::env::var(RECOVER) {
        Ok(_) => recover(&root).map(|_| None),
        Err(_) => {
            let archive = File::open(Path::new(&place).join("changes")).unwrap();
            apply(&archive, &root, &()).map(|applied| applied.untidy)
        }
    };
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    fs::write(Path::new(&place).join("peak"), peak.unwrap().trim()).unwrap();
    std::process::exit(match result {
        Ok(None) => APPLIED,
        Ok(Some(_)) => UNTIDY,
        Err(e) if e.code == ArchiveCode::ApplyUnfinished => UNFINISHED,
        Err(_) => REFUSED,
    });
}

/// The calls that change something, or that a file is opened or read by.
const CALLS: &[&str] = &[
    "renameat2",
    "renameat",
    "mkdirat",
    "unlinkat",
    "fsync",
    "syncfs",
    "openat2",
    "write",
    "fchmod",
    "flock",
    "read",
    "newfstatat",
];

/// Runs the child under strace. `None` where it was killed.
fn run(bench: &Bench, recovering: bool, strace: &[String]) -> Option<i32> {
    let mut command = Command::new("strace");
    command.args(["-f", "-qq"]).args(strace).arg("--");
    command.arg(std::env::current_exe().unwrap());
    command.args([
        "--exact",
        "interruption::child",
        "--ignored",
        "--test-threads=1",
        "-q",
    ]);
    command.env(PLACE, bench.place.path());
    if recovering {
        command.env(RECOVER, "1");
    }
    let output = command
        .output()
        .expect("strace must be installed: scripts/setup tests");
    output.status.code()
}

/// How often each call is made by an undisturbed run, in the process that makes it most often.
fn calls(bench: &Bench, recovering: bool) -> BTreeMap<&'static str, u32> {
    let log = bench.place.path().join("log");
    let trace = format!("trace={}", CALLS.join(","));
    let strace = [
        "-o".to_owned(),
        log.to_str().unwrap().to_owned(),
        "-e".to_owned(),
        trace,
    ];
    assert_eq!(run(bench, recovering, &strace), Some(APPLIED));
    let log = fs::read_to_string(log).unwrap();
    let mut counts: BTreeMap<(&str, &'static str), u32> = BTreeMap::new();
    for line in log.lines() {
        let (process, rest) = line.split_once(' ').unwrap();
        let found = CALLS
            .iter()
            .find(|call| rest.trim_start().starts_with(&format!("{call}(")));
        if let Some(call) = found {
            *counts.entry((process, *call)).or_default() += 1;
        }
    }
    let mut most = BTreeMap::new();
    for ((_, call), count) in counts {
        let known = most.entry(call).or_insert(0);
        *known = count.max(*known);
    }
    most
}

/// Every point at which something can be injected.
fn points(bench: &Bench, recovering: bool, skip: &[&str]) -> Vec<(&'static str, u32)> {
    let calls = calls(bench, recovering);
    let calls = calls.into_iter().filter(|(call, _)| !skip.contains(call));
    calls
        .flat_map(|(call, count)| (1..=count).map(move |at| (call, at)))
        .collect()
}

fn inject(call: &str, what: &str, when: &str) -> [String; 6] {
    [
        "-o",
        "/dev/null",
        "-e",
        &format!("trace={call}"),
        "-e",
        &format!("inject={call}:{what}:when={when}"),
    ]
    .map(str::to_owned)
}

/// After recovery the tree is the one or the other, wholly, and a second recovery finds nothing.
fn recovered(bench: &Bench, point: &str) -> bool {
    recover(&bench.root()).unwrap_or_else(|e| panic!("{point}: {e}"));
    let seen = bench.seen();
    let applied = seen == expected(&target());
    assert!(applied || seen == expected(&base()), "{point}: {seen:#?}");
    assert_eq!(
        recover(&bench.root()).unwrap(),
        Recovered::Nothing,
        "{point}"
    );
    assert_eq!(bench.seen(), seen, "{point}");
    applied
}

#[test]
fn killed_at_any_call_the_tree_is_old_or_new_after_recovery() {
    let (mut old, mut new) = (0, 0);
    let reads = ["read", "newfstatat"];
    for (call, at) in points(&Bench::usual(), false, &reads) {
        let bench = Bench::usual();
        let status = run(&bench, false, &inject(call, "signal=KILL", &at.to_string()));
        let point = format!("killed at {call} {at}");
        assert_eq!(status, None, "{point}: it was not");
        if recovered(&bench, &point) {
            new += 1;
        } else {
            old += 1;
        }
    }
    // Both sides of the commit were reached.
    assert!(old > 40 && new > 5, "{old} old, {new} new");
}

#[test]
fn killed_at_any_call_of_recovery_the_next_one_ends_it() {
    // Cut off in the middle of the swaps, and after the commit.
    for cut in ["Swap(3)", "Clear", "UndoSwap(2)"] {
        let broken = || {
            let bench = Bench::usual();
            cut_off(&bench, cut);
            bench
        };
        let reads = ["read", "newfstatat", "write", "flock"];
        for (call, at) in points(&broken(), true, &reads) {
            let bench = broken();
            let status = run(&bench, true, &inject(call, "signal=KILL", &at.to_string()));
            assert_eq!(status, None, "{cut}: {call} {at}");
            let applied = recovered(&bench, &format!("{cut}, then killed at {call} {at}"));
            assert_eq!(applied, cut == "Clear");
        }
    }
}

/// Applies up to an act and leaves everything as a kill would: the panic of the one who watches
/// unwinds past all that tidies up.
pub(crate) fn cut_off(bench: &Bench, before: &str) {
    let root = bench.root();
    let mut watch = |act: &str| {
        if before == "UndoSwap(2)" && act == "Swap(4)" {
            fs::write(root.join("dir/added"), "in the way").unwrap();
        }
        if before == "UndoSwap(2)" && act == "UndoSwap(4)" {
            fs::remove_file(root.join("dir/added")).unwrap();
        }
        assert!(act != before, "cut off here");
    };
    let quiet = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let cut = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        rehearsal::apply(&bench.archive(), &root, rehearsal::Care::Full, &mut watch).map(|_| ())
    }));
    std::panic::set_hook(quiet);
    assert!(cut.is_err(), "{before} was never reached");
    assert!(root.join(".prime-agent-staging-apply/journal").exists());
}

#[test]
fn an_error_at_any_call_rolls_back_or_is_finished_by_recovery() {
    let (mut refusals, mut untidy) = (0, 0);
    for error in ["EIO", "ENOSPC"] {
        for (call, at) in points(&Bench::usual(), false, &[]) {
            let bench = Bench::usual();
            let what = format!("error={error}");
            let status = run(&bench, false, &inject(call, &what, &at.to_string()));
            let point = format!("{error} at {call} {at}");
            if status == Some(REFUSED) {
                refusals += 1;
                assert_eq!(bench.seen(), expected(&base()), "{point}");
            }
            let left = bench.root().join(".prime-agent-staging-apply").exists();
            let applied = recovered(&bench, &point);
            if matches!(status, Some(APPLIED | UNTIDY)) {
                assert!(applied, "{point}");
                assert!(!left || status == Some(UNTIDY), "{point}");
                untidy += u32::from(left);
            }
        }
    }
    assert!(refusals > 40 && untidy > 0, "{refusals}, {untidy}");
}

#[test]
fn a_disk_that_stays_full_or_broken_is_finished_when_it_is_mended() {
    let mut unfinished = 0;
    for (call, at) in points(
        &Bench::usual(),
        false,
        &["read", "newfstatat", "openat2", "write"],
    ) {
        for error in ["ENOSPC", "EIO"] {
            let bench = Bench::usual();
            let what = format!("error={error}");
            let status = run(&bench, false, &inject(call, &what, &format!("{at}+")));
            unfinished += u32::from(status == Some(UNFINISHED));
            recovered(&bench, &format!("{error} from {call} {at} on"));
        }
    }
    assert!(unfinished > 3, "{unfinished}");
}

#[test]
fn the_next_application_recovers_first() {
    let bench = Bench::usual();
    cut_off(&bench, "Swap(3)");
    let applied = apply(&bench.archive(), &bench.root(), &()).unwrap();
    assert!(matches!(applied.recovered, Recovered::RolledBack { .. }));
    assert_eq!(bench.seen(), expected(&target()));
    let bench = Bench::usual();
    cut_off(&bench, "Prune");
    let back = changeset(&target(), &base());
    fs::write(bench.place.path().join("changes"), back).unwrap();
    let applied = apply(&bench.archive(), &bench.root(), &()).unwrap();
    assert!(matches!(applied.recovered, Recovered::Finished { .. }));
    assert_eq!(seen(&bench.root()), expected(&base()));
}

/// Most memory of a process that applies a changeset of three files of so many bytes, in KiB.
fn peak(size: usize) -> u64 {
    let tree = |byte: u8| -> Tree {
        let file = |name: &str| (name.to_owned(), (false, vec![byte; size]));
        ["a", "b", "c"].map(file).into()
    };
    let bench = Bench::new(&tree(1), &changeset(&tree(1), &tree(2)));
    let strace = ["-o", "/dev/null", "-e", "trace=renameat2"].map(str::to_owned);
    assert_eq!(run(&bench, false, &strace), Some(APPLIED));
    let peak = fs::read_to_string(bench.place.path().join("peak")).unwrap();
    peak.trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn memory_does_not_grow_with_the_payload() {
    let (small, large) = (peak(100 << 10), peak(40 << 20));
    assert!(large < small + (4 << 10), "{small} KiB, then {large} KiB");
}

#[test]
fn a_journal_that_came_with_a_copied_tree_is_not_believed() {
    let bench = Bench::usual();
    cut_off(&bench, "Swap(3)");
    let copy = Bench::usual();
    fs::remove_dir_all(copy.root()).unwrap();
    let copied = Command::new("cp")
        .arg("-a")
        .args([bench.root(), copy.root()])
        .status();
    assert!(copied.unwrap().success());
    let before = copy.seen();
    assert_eq!(
        recover(&copy.root()).unwrap_err().code,
        ArchiveCode::JournalDamaged
    );
    let refused = apply(&copy.archive(), &copy.root(), &()).unwrap_err();
    assert_eq!(refused.code, ArchiveCode::JournalDamaged);
    assert_eq!(copy.seen(), before);
    assert!(!recovered(&bench, "the original"));
}

#[test]
fn a_journal_of_which_any_fact_was_changed_is_not_believed() {
    let bench = Bench::usual();
    cut_off(&bench, "Swap(3)");
    let place = bench.root().join(".prime-agent-staging-apply/journal");
    let journal = fs::read_to_string(&place).unwrap();
    let line = |start: &str| journal.lines().find(|line| line.starts_with(start));
    let [changeset, staging, keep, inode] =
        ["changeset ", "staging ", "keep ", "inode "].map(|start| line(start).unwrap());
    let other = Digest::of(b"another");
    let before_end = |more: &str| journal.replace("end\n", more);
    let forged = [
        journal.replace("apply/1", "apply/2"),
        journal.replace(changeset, &format!("changeset {other}")),
        journal.replace(staging, "staging 1"),
        journal.replace(keep, "keep src"),
        journal.replace(keep, &format!("{keep}/..")),
        journal.replacen(&format!("{inode}\n"), "", 1),
        before_end("inode 7\nend\n"),
        before_end("directory more\nend\n"),
        before_end("sealed outside\nend\n"),
        before_end(""),
        before_end("end\nend\n"),
    ];
    for forged in forged {
        assert_ne!(forged, journal);
        fs::write(&place, &forged).unwrap();
        let before = bench.seen();
        let refused = recover(&bench.root()).unwrap_err();
        assert_eq!(refused.code, ArchiveCode::JournalDamaged, "{forged}");
        assert!(bench.seen() == before, "{forged}");
    }
    fs::write(&place, &journal).unwrap();
    assert!(!recovered(&bench, "the one that was written"));
}

#[test]
fn a_journal_that_is_a_pipe_is_refused_and_not_waited_for() {
    let bench = Bench::usual();
    cut_off(&bench, "Swap(3)");
    for name in ["journal", "changes"] {
        let place = bench.root().join(".prime-agent-staging-apply").join(name);
        let kept = fs::read(&place).unwrap();
        fs::remove_file(&place).unwrap();
        let fifo = rustix::fs::FileType::Fifo;
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &place, fifo, mode, 0).unwrap();
        let refused = recover(&bench.root()).unwrap_err();
        assert_eq!(refused.code, ArchiveCode::JournalDamaged, "{name}");
        fs::remove_file(&place).unwrap();
        fs::write(&place, kept).unwrap();
    }
    assert!(!recovered(&bench, "what was there before"));
}

#[test]
fn a_forged_journal_gets_no_hook_into_git() {
    let hook = tree(&[(".git/hooks/post-checkout", true, "#!/bin/sh\n")]);
    let bench = Bench::usual();
    cut_off(&bench, "Swap(3)");
    let staging = bench.root().join(".prime-agent-staging-apply");
    let changes = changeset(&hook, &tree(&[]));
    let Manifest::Changeset(forged) = paws::decode(&changes).unwrap() else {
        panic!("no changeset");
    };
    let journal = fs::read_to_string(staging.join("journal")).unwrap();
    let line = |start: &str| {
        journal
            .lines()
            .find(|line| line.starts_with(start))
            .unwrap()
    };
    let [format, inode, keep] = ["flightproof-apply/", "staging ", "keep "].map(line);
    let id = forged.changeset_id();
    fs::write(
        staging.join("journal"),
        format!("{format}\nchangeset {id}\n{inode}\n{keep}\ninode 0\nend\n"),
    )
    .unwrap();
    fs::write(staging.join("changes"), changes).unwrap();
    fs::create_dir_all(bench.root().join(".git/hooks")).unwrap();
    fs::write(staging.join("slots/0"), "#!/bin/sh\n").unwrap();
    assert_eq!(
        recover(&bench.root()).unwrap_err().code,
        ArchiveCode::UnsafeName
    );
    assert!(!bench.root().join(".git/hooks/post-checkout").exists());
}

#[test]
fn nothing_is_swapped_before_the_plan_is_on_the_disk_and_nothing_thrown_away_before_the_tree_is() {
    let bench = Bench::usual();
    let log = bench.place.path().join("log");
    let strace = [
        "-y",
        "-o",
        log.to_str().unwrap(),
        "-e",
        "trace=renameat2,renameat,fsync,unlinkat",
    ];
    assert_eq!(
        run(&bench, false, &strace.map(str::to_owned)),
        Some(APPLIED)
    );
    let log = fs::read_to_string(log).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    let at = |what: &str, from: usize, pattern: &[&str]| {
        let found = lines
            .iter()
            .skip(from)
            .position(|line| pattern.iter().all(|p| line.contains(p)));
        from + found.unwrap_or_else(|| panic!("no {what} after line {from} of\n{log}"))
    };
    let written = at("journal", 0, &["fsync", "journal.new"]);
    let named = at("journal's name", written, &["renameat", "\"journal\""]);
    let durable = at(
        "directory of the journal",
        named,
        &["fsync", "staging-apply>"],
    );
    let parent = at("directory of that", durable, &["fsync", "/root>"]);
    let first = at("swap", 0, &["renameat2", "/slots>"]);
    assert!(parent < first, "{log}");
    let last = lines
        .iter()
        .rposition(|line| line.contains("renameat2"))
        .unwrap();
    let settled = at("settling", last, &["fsync", "/dir>"]);
    let mark = at("mark", settled, &["fsync", "committed"]);
    let marked = at("mark's name", mark, &["fsync", "staging-apply>"]);
    let discarded = at("discarding", 0, &["unlinkat", "/slots>"]);
    assert!(marked < discarded, "{log}");
}

/// The directories and files that a line of strace's shows by their paths.
fn places(line: &str) -> Vec<&str> {
    let paths = line.split('<').skip(1);
    paths
        .filter_map(|rest| Some(rest.split_once('>')?.0))
        .collect()
}

/// Makes one old file something that must be kept: on the way back because another file stands in its
/// place, on the way forward because it was written to.
fn edit_what_is_kept(bench: &Bench, forward: bool) {
    let root = bench.root();
    if forward {
        let slots = fs::read_dir(root.join(".prime-agent-staging-apply/slots")).unwrap();
        let slots = slots.map(|slot| slot.unwrap().path());
        let old: Vec<_> = slots
            .filter(|slot| fs::read(slot).is_ok_and(|bytes| bytes == b"change: old"))
            .collect();
        assert_eq!(old.len(), 1);
        fs::write(&old[0], "change: by hand").unwrap();
    } else {
        fs::write(root.join("another"), "change: by hand").unwrap();
        fs::rename(root.join("another"), root.join("dir/change")).unwrap();
    }
}

#[test]
fn a_refusal_after_a_recovery_names_what_the_recovery_kept() {
    let bench = Bench::usual();
    cut_off(&bench, "Settle");
    edit_what_is_kept(&bench, false);
    let refused = apply(&bench.archive(), &bench.root(), &()).unwrap_err();
    assert_eq!(refused.code, ArchiveCode::BaseMismatch);
    assert!(
        (refused.detail).contains("; \"dir/change\" is kept as \".prime-agent-staging-kept-"),
        "{refused}"
    );
}

#[test]
fn a_recovery_that_is_not_finished_names_what_it_kept_until_then() {
    let bench = Bench::usual();
    let root = bench.root();
    cut_off(&bench, "Settle");
    edit_what_is_kept(&bench, false);
    // The second of two files to be kept finds its place taken.
    fs::write(root.join("gone"), "mine").unwrap();
    let journal = fs::read_to_string(root.join(".prime-agent-staging-apply/journal")).unwrap();
    let place = journal.lines().find_map(|line| line.strip_prefix("keep "));
    let place = root.join(place.unwrap());
    fs::create_dir(&place).unwrap();
    fs::write(place.join("gone"), "in the way").unwrap();
    let refused = recover(&root).unwrap_err();
    assert_eq!(refused.code, ArchiveCode::ApplyUnfinished);
    assert!(
        refused.detail.contains("; \"dir/change\" is kept as"),
        "{refused}"
    );
    fs::remove_file(place.join("gone")).unwrap();
    let recovered = recover(&root).unwrap();
    let kept: Vec<&str> = recovered
        .kept()
        .iter()
        .map(|kept| kept.path.as_str())
        .collect();
    assert_eq!(kept, ["gone"]);
}

#[test]
fn nothing_is_thrown_away_or_forgotten_before_the_tree_and_what_is_kept_are_on_the_disk() {
    for cut in ["Settle", "Clear"] {
        let bench = Bench::usual();
        cut_off(&bench, cut);
        edit_what_is_kept(&bench, cut == "Clear");
        let log = bench.place.path().join("log");
        let strace = [
            "-y",
            "-o",
            log.to_str().unwrap(),
            "-e",
            "trace=renameat2,mkdirat,fsync,unlinkat",
        ];
        let status = run(&bench, true, &strace.map(str::to_owned));
        assert_eq!(status, Some(APPLIED), "{cut}");
        let log = fs::read_to_string(log).unwrap();
        let lines: Vec<&str> = log.lines().filter(|line| line.ends_with("= 0")).collect();
        let first = |call: &str, what: &str| {
            let found = lines
                .iter()
                .position(|line| line.contains(call) && line.contains(what));
            found.unwrap_or_else(|| panic!("{cut}: no {call} of {what} in\n{log}"))
        };
        let discarded = first("unlinkat", "/slots>");
        let forgotten = first("unlinkat", "\"journal\"");
        let mut seen = 0;
        for (at, line) in lines.iter().enumerate() {
            if !line.contains("renameat2") && !line.contains("mkdirat") {
                continue;
            }
            // What is kept has its name before the journal is gone, the tree before anything is.
            let end = match line.contains("staging-kept") {
                true => forgotten,
                false => discarded,
            };
            let after = lines.get(at..end).unwrap_or_default();
            // What was made is gone again, and so is whatever has no name any more.
            let outside = |path: &&str| !path.contains("staging-apply") && Path::new(path).is_dir();
            for place in places(line).into_iter().filter(outside) {
                let synced = after
                    .iter()
                    .any(|line| line.contains("fsync") && places(line).contains(&place));
                assert!(synced, "{cut}: {line}\n{log}");
                seen += 1;
            }
        }
        assert!(seen > 2, "{cut}: {seen}\n{log}");
        assert!(log.contains("staging-kept"), "{cut}\n{log}");
    }
}
