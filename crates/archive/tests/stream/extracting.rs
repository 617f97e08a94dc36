//! From an archive to a directory, whole or not at all, and nowhere else.

use crate::formats::{BOTH, Format, filled, harvest, into, mode, names, on_disk, small};
use flightproof_archive::{ArchiveCode, Extraction};
use flightproof_core::{Digest, RelPath};
use rustix::fs::XattrFlags;
use std::fs::{self, File, Permissions};
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;

#[test]
fn another_archive_than_the_announced_one_is_refused_before_anything_is_made() {
    let root = TempDir::new().unwrap();
    let made = root.path().join("t");
    for format in BOTH {
        let bytes = format.in_memory(&small());
        let announced = |expected| Extraction {
            expected: Some(expected),
            ..into(&made)
        };
        let other = Digest::of(b"another");
        let refused = format.extract(&bytes[..], &announced(other)).unwrap_err();
        assert_eq!(refused.code, ArchiveCode::SnapshotUnexpected);
        let refused = format
            .extract_file(&on_disk(&bytes), &announced(other))
            .unwrap_err();
        assert_eq!(refused.code, ArchiveCode::SnapshotUnexpected);
        assert_eq!(names(root.path()), [""; 0]);
        let right = format.verify(&bytes[..]).unwrap();
        format.extract(&bytes[..], &announced(right)).unwrap();
        fs::remove_dir_all(&made).unwrap();
    }
}

/// Looks around while it is read from.
struct Watched<'a>(&'a [u8], &'a Path, &'a mut Vec<Vec<String>>);

impl Read for Watched<'_> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let most = to.len().min(1);
        self.2.push(names(self.1));
        self.0.read(&mut to[..most])
    }
}

#[test]
fn whoever_is_killed_while_extracting_leaves_only_a_name_that_says_what_it_is() {
    let root = TempDir::new().unwrap();
    let made = root.path().join("t");
    let bytes = Format::Paws.in_memory(&small());
    let mut seen = Vec::new();
    Format::Paws
        .extract(Watched(&bytes, root.path(), &mut seen), &into(&made))
        .unwrap();
    let staged = seen.iter().filter(|names| !names.is_empty());
    let staged: Vec<_> = staged.map(|names| names.join(" ")).collect();
    assert!(!staged.is_empty());
    // At no moment was there anything but the one reserved name.
    assert!(
        staged
            .iter()
            .all(|name| name.starts_with(".prime-agent-staging-")),
        "{staged:?}"
    );
    assert!(
        staged
            .iter()
            .all(|name| RelPath::new(name).is_err() && *name == staged[0])
    );
    assert_eq!(names(root.path()), ["t"]);
}

#[test]
fn what_a_parent_directory_hands_down_changes_no_mode() {
    let root = TempDir::new().unwrap();
    fs::set_permissions(root.path(), Permissions::from_mode(0o2777)).unwrap();
    // Everything below would be created without rights for others, and with an access list.
    rustix::fs::setxattr(
        root.path(),
        "system.posix_acl_default",
        &access_list(),
        XattrFlags::empty(),
    )
    .expect("the temporary directory must know access lists");
    let twin = root.path().join("twin");
    File::create(&twin).unwrap();
    assert_ne!(mode(&twin), 0o644, "the attack does not work here");
    for format in BOTH {
        let made = root.path().join("t");
        let bytes = format.in_memory(&small());
        format.extract(&bytes[..], &into(&made)).unwrap();
        assert_eq!(mode(&made), 0o755);
        assert!(harvest(&made) == small());
        let mut none = [0u8; 64];
        for path in ["", "a", "a/file"] {
            let list =
                rustix::fs::getxattr(made.join(path), "system.posix_acl_access", &mut none[..]);
            assert_eq!(list, Err(rustix::io::Errno::NODATA), "{path}");
        }
        fs::remove_dir_all(made).unwrap();
    }
}

/// user::rwx user:1234:rwx group::r-x mask::rwx other::---, as the kernel keeps it.
fn access_list() -> Vec<u8> {
    let mut list = 2u32.to_le_bytes().to_vec();
    let nobody = u32::MAX;
    let entries = [
        (1, 7, nobody),
        (2, 7, 1234),
        (4, 5, nobody),
        (16, 7, nobody),
        (32, 0, nobody),
    ];
    for (tag, rights, id) in entries {
        list.extend(u16::to_le_bytes(tag));
        list.extend(u16::to_le_bytes(rights));
        list.extend(u32::to_le_bytes(id));
    }
    list
}

/// Does everything a second thread can do inside the staging directory, over and over: swaps
/// directories for links to `outside`, files for links, and directories for one another.
fn disturb(place: &Path, outside: &Path, stop: &AtomicBool) {
    let mut turn = 0u64;
    while !stop.load(Ordering::Relaxed) {
        let staged = fs::read_dir(place).unwrap().flatten();
        for staging in staged.map(|entry| entry.path()) {
            let Ok(entries) = fs::read_dir(&staging) else {
                continue;
            };
            for entry in entries.flatten().map(|entry| entry.path()) {
                turn += 1;
                let aside: PathBuf = staging.join(format!("aside-{turn}"));
                let _ = fs::rename(&entry, &aside);
                let _ = match turn % 3 {
                    0 => symlink(outside, &entry),
                    1 => fs::hard_link(outside.join("sentinel"), &entry),
                    _ => fs::rename(&aside, &entry),
                };
            }
        }
    }
}

#[test]
fn whatever_a_second_thread_does_in_the_staging_directory_nothing_lands_outside() {
    let root = TempDir::new().unwrap();
    let (outside, place) = (root.path().join("outside"), root.path().join("place"));
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("sentinel"), "untouched").unwrap();
    fs::create_dir(&place).unwrap();
    let files: Vec<_> = (0..600)
        .map(|i| {
            (
                format!("d{:02}/e{}/{i:03}", i / 30, i / 10 % 3),
                false,
                filled(100 + i),
            )
        })
        .collect();
    let stop = AtomicBool::new(false);
    let refused = std::thread::scope(|scope| {
        scope.spawn(|| disturb(&place, &outside, &stop));
        let mut refused = 0;
        for turn in 0..24 {
            let format = BOTH[turn % 2];
            let archive = on_disk(&format.in_memory(&files));
            let made = place.join(format!("t{turn}"));
            let done = match turn % 4 < 2 {
                true => format.extract_file(&archive, &into(&made)),
                false => format.extract(&format.in_memory(&files)[..], &into(&made)),
            };
            refused += u32::from(done.is_err());
        }
        stop.store(true, Ordering::Relaxed);
        refused
    });
    assert!(refused > 0, "the second thread never came in between");
    assert_eq!(names(&outside), ["sentinel"]);
    assert_eq!(fs::read(outside.join("sentinel")).unwrap(), b"untouched");
}
