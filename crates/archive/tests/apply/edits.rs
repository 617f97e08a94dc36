//! Somebody edits the tree while a changeset is applied: nothing they wrote is lost.

use super::tree::{Bench, Seen, Tree, base, target};
use flightproof_archive::rehearsal::{self, Care};
use flightproof_archive::{ArchiveCode, apply, recover};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// How a file is edited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// Opened, emptied and written.
    Overwrite,
    /// Another file is put in its place by a rename, as careful editors do.
    Replace,
    /// Written to through a descriptor that was opened before anything began.
    Held,
    /// Removed.
    Remove,
    /// A directory with a file in it takes its place.
    Directory,
}

const MANNERS: [Manner; 5] = [
    Manner::Overwrite,
    Manner::Replace,
    Manner::Held,
    Manner::Remove,
    Manner::Directory,
];

/// Every path the changeset touches, and two it does not.
const PATHS: [&str; 8] = [
    "dir/change",
    "gone",
    "mode",
    "old/deep/last",
    "dir/added",
    "new/deep/first",
    "new/mine",
    "dir/stays",
];

/// The acts of an application of the usual changeset, in order.
fn acts() -> Vec<String> {
    let bench = Bench::usual();
    let mut acts = Vec::new();
    let mut watch = |act: &str| acts.push(act.to_owned());
    rehearsal::apply(&bench.archive(), &bench.root(), Care::Full, &mut watch).unwrap();
    assert!(acts.len() > 12, "{acts:?}");
    acts
}

#[derive(Debug, Clone, Copy)]
struct Edit<'a> {
    before: &'a str,
    path: &'static str,
    manner: Manner,
}

impl Edit<'_> {
    /// Who writes through a descriptor to a file that was thrown away writes to no file any more.
    /// Nothing can be done about that, and the documentation says so.
    fn is_too_late(&self) -> bool {
        self.manner == Manner::Held && ["Prune", "Forget"].contains(&self.before)
    }
}

/// Does an edit where it can be done. Says what was written, if something was.
fn edit(root: &Path, edit: Edit<'_>, held: &mut [(&'static str, File)]) -> Option<String> {
    let path = root.join(edit.path);
    let content = format!("written by hand to {} before {}", edit.path, edit.before);
    let written = match edit.manner {
        Manner::Overwrite => fs::write(&path, &content).is_ok(),
        Manner::Replace => {
            let new = root.join("new-version-of-an-editor");
            fs::write(&new, &content).unwrap();
            let put = fs::rename(&new, &path).is_ok();
            let _ = fs::remove_file(new);
            put
        }
        Manner::Held => match held.iter_mut().find(|(path, _)| *path == edit.path) {
            Some((_, file)) => file.write_all(content.as_bytes()).is_ok(),
            None => false,
        },
        Manner::Remove => {
            let _ = fs::remove_file(&path);
            false
        }
        Manner::Directory => {
            let _ = fs::remove_file(&path);
            fs::create_dir_all(&path).is_ok() && fs::write(path.join("within"), &content).is_ok()
        }
    };
    written.then_some(content)
}

/// The paths whose edits were lost, and what else is wrong.
fn faults(edits: &[Edit<'_>], care: Care) -> Vec<String> {
    let bench = Bench::usual();
    let root = bench.root();
    let holding = edits.iter().filter(|edit| edit.manner == Manner::Held);
    let mut held: Vec<_> = holding
        .filter_map(|edit| {
            let file = OpenOptions::new().append(true).open(root.join(edit.path));
            Some((edit.path, file.ok()?))
        })
        .collect();
    let mut written = Vec::new();
    let mut watch = |act: &str| {
        for edit_now in edits.iter().filter(|edit| edit.before == act) {
            // A later edit of the same path may undo an earlier one: then only it counts.
            written.retain(|(path, _): &(&str, String)| *path != edit_now.path);
            let content = edit(&root, *edit_now, &mut held);
            written.extend(content.map(|content| (edit_now.path, content)));
        }
    };
    let applied = rehearsal::apply(&bench.archive(), &root, care, &mut watch);
    let mut faults = lost(&bench, &written);
    let side = match &applied {
        Ok(_) => target(),
        Err(e) if e.code == ArchiveCode::EditedMeanwhile => base(),
        Err(e) => {
            faults.push(format!("refused otherwise: {e}"));
            base()
        }
    };
    faults.extend(strangers(&bench, &side, edits));
    if root.join(".prime-agent-staging-apply").exists() {
        faults.push("staging was left".to_owned());
    }
    faults
}

/// What was written and is nowhere.
fn lost(bench: &Bench, written: &[(&str, String)]) -> Vec<String> {
    let seen = bench.seen();
    let holds = |content: &str| {
        seen.values().any(|seen| match seen {
            Seen::File(_, bytes) => String::from_utf8_lossy(bytes).contains(content),
            _ => false,
        })
    };
    let lost = written.iter().filter(|(_, content)| !holds(content));
    lost.map(|(path, content)| format!("lost: {path}: {content}"))
        .collect()
}

/// Paths that nobody edited and that are not as they should be.
fn strangers(bench: &Bench, side: &Tree, edits: &[Edit<'_>]) -> Vec<String> {
    let seen = bench.seen();
    let quiet = PATHS
        .iter()
        .filter(|path| !edits.iter().any(|edit| edit.path == **path));
    let wrong = quiet.filter(|path| {
        let wanted = side.get(**path).map(|(executable, content)| {
            Seen::File(if *executable { 0o755 } else { 0o644 }, content.clone())
        });
        seen.get(**path) != wanted.as_ref()
    });
    wrong
        .map(|path| format!("not as it should be: {path}: {:?}", seen.get(*path)))
        .collect()
}

#[test]
fn one_edit_at_any_moment_in_any_manner_is_not_lost() {
    let acts = acts();
    for before in &acts {
        for path in PATHS {
            for manner in MANNERS {
                let edits = [Edit {
                    before,
                    path,
                    manner,
                }];
                if edits.iter().any(Edit::is_too_late) {
                    continue;
                }
                let faults = faults(&edits, Care::Full);
                assert!(faults.is_empty(), "{edits:?}\n{faults:#?}");
            }
        }
    }
}

#[test]
fn two_edits_at_any_moments_are_not_lost() {
    let acts = acts();
    let mut drawn: u32 = 1;
    let mut draw = |most: usize| {
        drawn = drawn.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        usize::try_from(drawn >> 8).unwrap() % most
    };
    for _ in 0..1_500 {
        let edits = [(), ()].map(|()| Edit {
            before: &acts[draw(acts.len())],
            path: PATHS[draw(PATHS.len())],
            manner: MANNERS[draw(MANNERS.len())],
        });
        let [one, other] = edits;
        let held = one.manner == Manner::Held || other.manner == Manner::Held;
        // One edit may throw away the file that the other has open: then the editor lost it.
        if (held && one.path == other.path) || edits.iter().any(Edit::is_too_late) {
            continue;
        }
        let faults = faults(&edits, Care::Full);
        assert!(faults.is_empty(), "{edits:?}\n{faults:#?}");
    }
}

#[test]
fn an_applier_that_does_not_look_again_loses_edits() {
    let acts = acts();
    let lost = |manner| {
        let mut at = acts
            .iter()
            .flat_map(|before| PATHS.map(|path| (before, path)));
        at.any(|(before, path)| {
            let edits = [Edit {
                before,
                path,
                manner,
            }];
            !edits.iter().any(Edit::is_too_late)
                && faults(&edits, Care::NoSecondLook)
                    .iter()
                    .any(|fault| fault.starts_with("lost"))
        })
    };
    assert!(lost(Manner::Overwrite) && lost(Manner::Replace) && lost(Manner::Held));
}

#[test]
fn what_cannot_stay_in_the_tree_is_kept_and_named() {
    let bench = Bench::usual();
    let root = bench.root();
    let mut held = OpenOptions::new()
        .append(true)
        .open(root.join("gone"))
        .unwrap();
    let mut watch = |act: &str| {
        if act == "Clear" {
            held.write_all(b" and a line more").unwrap();
        }
    };
    let applied = rehearsal::apply(&bench.archive(), &root, Care::Full, &mut watch).unwrap();
    let kept: Vec<_> = applied.kept.iter().map(|kept| kept.path.as_str()).collect();
    assert_eq!(kept, ["gone"]);
    let at = &applied.kept.first().unwrap().at;
    assert!(at.starts_with(".prime-agent-staging-kept-") && at.ends_with("/gone"));
    assert_eq!(
        fs::read_to_string(root.join(at)).unwrap(),
        "gone: old and a line more"
    );
}

#[test]
fn a_refusal_names_what_was_kept() {
    let bench = Bench::usual();
    let root = bench.root();
    let mut watch = |act: &str| match act {
        // The changed file is deleted after it was swapped, and another takes the place of a
        // deleted one: so the old one cannot go back.
        "Settle" => fs::write(root.join("gone"), "mine").unwrap(),
        "MakeDirectory(0)" => fs::write(root.join("new"), "in the way").unwrap(),
        _ => {}
    };
    let refused = rehearsal::apply(&bench.archive(), &root, Care::Full, &mut watch).unwrap_err();
    assert_eq!(refused.code, ArchiveCode::EditedMeanwhile);
    let mut fail = |act: &str| match act {
        "Swap(1)" => fs::write(root.join("gone"), "mine").unwrap(),
        "Swap(4)" => fs::write(root.join("dir/added"), "mine too").unwrap(),
        _ => {}
    };
    fs::remove_file(root.join("new")).unwrap();
    let refused = rehearsal::apply(&bench.archive(), &root, Care::Full, &mut fail).unwrap_err();
    assert_eq!(refused.code, ArchiveCode::EditedMeanwhile);
    assert!(
        refused
            .detail
            .contains("\"gone\" is kept as \".prime-agent-staging-kept-"),
        "{refused}"
    );
    assert_eq!(fs::read_to_string(root.join("gone")).unwrap(), "mine");
}

/// Rounds of an editor and an applier side by side.
const ROUNDS: u32 = 150;

#[test]
fn an_editor_that_saves_all_the_time_loses_nothing() {
    let (mut applied, mut refused) = (0, 0);
    for round in 0..ROUNDS {
        let bench = Bench::usual();
        let root = bench.root();
        let over = AtomicBool::new(false);
        let (result, saved) = std::thread::scope(|scope| {
            let editor = scope.spawn(|| saves(&root, round, &over));
            // The editor begins now and then a little earlier.
            std::thread::sleep(std::time::Duration::from_micros(u64::from(round % 10) * 40));
            let result = apply(&bench.archive(), &root, &());
            over.store(true, Ordering::Release);
            (result, editor.join().unwrap())
        });
        let allowed = [
            ArchiveCode::EditedMeanwhile,
            ArchiveCode::BaseMismatch,
            ArchiveCode::AddedExists,
        ];
        match result {
            Ok(_) => applied += 1,
            Err(e) if allowed.contains(&e.code) => refused += 1,
            Err(e) => panic!("round {round}: {e}"),
        }
        recover(&root).unwrap();
        let faults = lost(&bench, &saved);
        assert!(
            faults.is_empty(),
            "round {round}: {faults:#?}\n{:#?}",
            bench.seen()
        );
    }
    assert!(
        refused > 0,
        "{applied} applied, {refused} refused: the two never met"
    );
}

/// Saves one version after the other of three files. Says the last of each.
fn saves(root: &Path, round: u32, over: &AtomicBool) -> Vec<(&'static str, String)> {
    let mut saved: Vec<(&'static str, String)> = Vec::new();
    let paths = ["dir/change", "gone", "dir/added"];
    for version in 0..u32::MAX {
        if over.load(Ordering::Acquire) {
            break;
        }
        let path = paths[usize::try_from(version + round).unwrap() % paths.len()];
        let content = format!("round {round}, version {version} of {path}.");
        let new = root.join(format!("new-version-{version}"));
        fs::write(&new, &content).unwrap();
        fs::rename(&new, root.join(path)).unwrap();
        saved.retain(|(saved, _)| *saved != path);
        saved.push((path, content));
        std::thread::sleep(std::time::Duration::from_micros(150));
    }
    saved
}
