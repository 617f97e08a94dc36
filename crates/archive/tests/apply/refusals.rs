//! What is refused, and that it leaves the tree as it was.

use super::tree::{Bench, Seen, base, changeset, packed, target, tree};
use flightproof_archive::{ArchiveCode, Recovered, apply, recover};
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

type Prepare = fn(&Path);

/// Applies the usual changeset to a tree that was prepared, and wants it refused with no trace.
fn refused_after(prepare: impl FnOnce(&Path)) -> ArchiveCode {
    let bench = Bench::usual();
    prepare(&bench.root());
    refused(&bench)
}

fn refused(bench: &Bench) -> ArchiveCode {
    let before = bench.seen();
    let refused = apply(&bench.archive(), &bench.root(), &()).unwrap_err();
    assert_eq!(bench.seen(), before, "{refused}");
    refused.code
}

#[test]
fn a_file_that_is_not_the_bases_is_refused() {
    let cases: [(&str, Prepare); 6] = [
        ("other bytes", |path| fs::write(path, "mine").unwrap()),
        ("gone", |path| fs::remove_file(path).unwrap()),
        ("a directory", |path| {
            fs::remove_file(path).unwrap();
            fs::create_dir(path).unwrap();
        }),
        ("a pipe", |path| {
            fs::remove_file(path).unwrap();
            let fifo = rustix::fs::FileType::Fifo;
            let mode = rustix::fs::Mode::RWXU;
            rustix::fs::mknodat(rustix::fs::CWD, path, fifo, mode, 0).unwrap();
        }),
        ("a giant", |path| {
            File::create(path).unwrap().set_len(1 << 40).unwrap();
        }),
        ("a socket", |path| {
            fs::remove_file(path).unwrap();
            drop(std::os::unix::net::UnixListener::bind(path).unwrap());
        }),
    ];
    for (what, prepare) in cases {
        for path in ["dir/change", "gone", "mode", "old/deep/last"] {
            let code = refused_after(|root| prepare(&root.join(path)));
            assert_eq!(code, ArchiveCode::BaseMismatch, "{what}: {path}");
        }
    }
}

#[test]
fn something_in_the_place_of_an_added_file_is_refused_whatever_it_is() {
    let cases: [Prepare; 4] = [
        |path| fs::write(path, "mine").unwrap(),
        |path| fs::create_dir(path).unwrap(),
        |path| symlink("nowhere", path).unwrap(),
        |path| {
            fs::write(path.parent().unwrap().join(".gitignore"), "*\n").unwrap();
            fs::write(path, "ignored, and mine").unwrap();
        },
    ];
    for prepare in cases {
        let code = refused_after(|root| prepare(&root.join("dir/added")));
        assert_eq!(code, ArchiveCode::AddedExists);
    }
}

#[test]
fn no_link_is_followed_and_no_file_taken_for_a_directory() {
    for path in ["dir/change", "gone", "mode"] {
        let code = refused_after(|root| {
            fs::rename(root.join(path), root.join("elsewhere")).unwrap();
            symlink(root.join("elsewhere"), root.join(path)).unwrap();
        });
        assert_eq!(code, ArchiveCode::DestinationUnsafe, "{path}");
    }
    for directory in ["dir", "old", "old/deep"] {
        let code = refused_after(|root| {
            fs::rename(root.join(directory), root.join("elsewhere")).unwrap();
            symlink(root.join("elsewhere"), root.join(directory)).unwrap();
        });
        assert_eq!(code, ArchiveCode::DestinationUnsafe, "{directory}");
    }
    let code = refused_after(|root| symlink("dir", root.join("new")).unwrap());
    assert_eq!(code, ArchiveCode::DestinationUnsafe);
    let code = refused_after(|root| fs::write(root.join("new"), "mine").unwrap());
    assert_eq!(code, ArchiveCode::DestinationUnsafe);
}

#[test]
fn a_new_name_that_folds_to_one_that_is_there_is_refused() {
    for neighbour in ["dir/ADDED", "NEW/x", "ｎew"] {
        let code = refused_after(|root| {
            fs::create_dir_all(root.join(neighbour).parent().unwrap()).unwrap();
            fs::write(root.join(neighbour), "mine").unwrap();
        });
        assert_eq!(code, ArchiveCode::NameCollision, "{neighbour}");
    }
}

#[test]
fn a_file_may_be_renamed_in_its_letter_case_alone() {
    let (from, to) = (
        tree(&[("readme", false, "x")]),
        tree(&[("README", false, "x")]),
    );
    let bench = Bench::new(&from, &changeset(&from, &to));
    apply(&bench.archive(), &bench.root(), &()).unwrap();
    assert_eq!(bench.seen().keys().collect::<Vec<_>>(), ["README"]);
}

#[test]
fn names_that_must_not_be_written_are_not_removed_either() {
    let nothing = tree(&[]);
    for name in [
        ".git/hooks/pre-commit",
        "sub/.GIT/config",
        "aux.c",
        "a:b",
        "a.",
    ] {
        let with = tree(&[(name, true, "x")]);
        let bench = Bench::new(&nothing, &changeset(&nothing, &with));
        assert_eq!(refused(&bench), ArchiveCode::UnsafeName, "{name}");
        let bench = Bench::new(&with, &changeset(&with, &nothing));
        if name.to_lowercase().contains(".git") {
            assert_eq!(refused(&bench), ArchiveCode::UnsafeName, "{name}");
        } else {
            apply(&bench.archive(), &bench.root(), &()).unwrap();
        }
    }
    let both = tree(&[("A", false, "x"), ("a", false, "x")]);
    let bench = Bench::new(&nothing, &changeset(&nothing, &both));
    assert_eq!(refused(&bench), ArchiveCode::NameCollision);
}

#[test]
fn directories_are_counted_before_names_are_compared() {
    let nothing = tree(&[]);
    let deep = "a/".repeat(250);
    let mut many = tree(&[("aux.c", false, "x")]);
    many.extend((0..400).map(|number| (format!("{number}/{deep}x"), (false, Vec::new()))));
    let bench = Bench::new(&nothing, &changeset(&nothing, &many));
    assert_eq!(refused(&bench), ArchiveCode::MaxEntriesExceeded);
}

#[test]
fn an_archive_that_is_not_exactly_right_touches_nothing() {
    let good = changeset(&base(), &target());
    let mut flipped = good.clone();
    *flipped.last_mut().unwrap() ^= 1;
    let mut longer = good.clone();
    longer.push(0);
    let shorter = good[..good.len() - 1].to_vec();
    for (archive, code) in [
        (flipped, ArchiveCode::PayloadHashMismatch),
        (longer, ArchiveCode::TrailingBytes),
        (shorter, ArchiveCode::PayloadTruncated),
        (packed(&target()).bytes, ArchiveCode::BadKind),
        (Vec::new(), ArchiveCode::BufferEmpty),
    ] {
        assert_eq!(refused(&Bench::new(&base(), &archive)), code);
    }
}

#[test]
fn an_archive_from_a_pipe_is_applied_and_refused_as_one_from_a_file() {
    for (edit, expected) in [(0, Ok(())), (1, Err(ArchiveCode::PayloadHashMismatch))] {
        let mut archive = changeset(&base(), &target());
        *archive.last_mut().unwrap() ^= edit;
        let bench = Bench::new(&base(), b"");
        let (reader, mut writer) = std::io::pipe().unwrap();
        std::io::Write::write_all(&mut writer, &archive).unwrap();
        drop(writer);
        let pipe = File::from(std::os::fd::OwnedFd::from(reader));
        let applied = apply(&pipe, &bench.root(), &());
        assert_eq!(applied.map(|_| ()).map_err(|e| e.code), expected);
    }
}

#[test]
fn one_at_a_time() {
    let bench = Bench::usual();
    let other = File::open(bench.root()).unwrap();
    rustix::fs::flock(&other, rustix::fs::FlockOperation::LockExclusive).unwrap();
    assert_eq!(refused(&bench), ArchiveCode::ApplyBusy);
    assert_eq!(
        recover(&bench.root()).unwrap_err().code,
        ArchiveCode::ApplyBusy
    );
    drop(other);
    apply(&bench.archive(), &bench.root(), &()).unwrap();
}

const STAGING: &str = ".prime-agent-staging-apply";

#[test]
fn a_journal_that_is_not_ours_or_not_readable_is_not_believed() {
    let bench = Bench::usual();
    let staging = bench.root().join(STAGING);
    let private = |mode| fs::set_permissions(&staging, Permissions::from_mode(mode)).unwrap();
    fs::create_dir(&staging).unwrap();
    private(0o777);
    assert_eq!(refused(&bench), ArchiveCode::DestinationUnsafe);
    private(0o700);
    fs::write(staging.join("journal"), "flightproof-apply/1\n").unwrap();
    assert_eq!(refused(&bench), ArchiveCode::JournalDamaged);
    assert_eq!(
        recover(&bench.root()).unwrap_err().code,
        ArchiveCode::JournalDamaged
    );
    fs::remove_file(staging.join("journal")).unwrap();
    assert_eq!(recover(&bench.root()).unwrap(), Recovered::Nothing);
    assert!(!staging.exists());
    symlink("dir", &staging).unwrap();
    assert_eq!(refused(&bench), ArchiveCode::DestinationUnsafe);
}

#[test]
fn recovery_where_nothing_happened_does_nothing() {
    let bench = Bench::usual();
    let before = bench.seen();
    assert_eq!(recover(&bench.root()).unwrap(), Recovered::Nothing);
    assert_eq!(bench.seen(), before);
    assert!(matches!(before.get("gone"), Some(Seen::File(..))));
}
