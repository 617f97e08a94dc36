//! What is used up: memory, disk, and what is told about it.

use crate::formats::{BOTH, filled, into, names, on_disk, plant, small};
use flightproof_archive::{ArchiveCode, Everything, Extraction, Progress, paws};
use std::fs::{self, File};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use tempfile::TempDir;

/// Counts what it is told.
#[derive(Default)]
struct Counted(AtomicU64, AtomicU64);

impl Progress for Counted {
    fn advance(&self, files: u64, bytes: u64) {
        self.0.fetch_add(files, Ordering::Relaxed);
        self.1.fetch_add(bytes, Ordering::Relaxed);
    }
}

#[test]
fn progress_adds_up_to_all_files_and_bytes() {
    let root = TempDir::new().unwrap();
    let (tree, output) = (root.path().join("tree"), root.path().join("out"));
    plant(&tree, &small());
    plant(&tree, &[("large".to_owned(), false, filled(700_000))]);
    let seen = |work: &dyn Fn(&Counted)| {
        let counted = Counted::default();
        work(&counted);
        assert_eq!(
            (counted.0.into_inner(), counted.1.into_inner()),
            (5, 700_022)
        );
    };
    seen(&|p| drop(paws::pack_file(&tree, "w", &mut Everything, &output, p).unwrap()));
    let archive = || File::open(&output).unwrap();
    seen(&|p| drop(paws::verify(archive(), p).unwrap()));
    seen(&|p| drop(paws::verify_file(&archive(), p).unwrap()));
    for (name, streamed) in [("a", true), ("b", false)] {
        let made = root.path().join(name);
        seen(&|progress| {
            let how = Extraction {
                progress,
                ..into(&made)
            };
            match streamed {
                true => paws::extract(archive(), &how),
                false => paws::extract_file(&archive(), &how),
            }
            .unwrap();
        });
    }
}

/// A file system of one size, gone when dropped.
pub(crate) struct Tiny(TempDir);

impl Tiny {
    pub(crate) fn of(kib: u32) -> Self {
        let dir = TempDir::new().unwrap();
        let options = std::ffi::CString::new(format!("size={kib}k")).unwrap();
        rustix::mount::mount(
            "tiny",
            dir.path(),
            "tmpfs",
            rustix::mount::MountFlags::empty(),
            options.as_c_str(),
        )
        .expect("this test mounts a file system: run it as root");
        Self(dir)
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Tiny {
    fn drop(&mut self) {
        rustix::mount::unmount(self.path(), rustix::mount::UnmountFlags::DETACH).unwrap();
    }
}

#[test]
fn a_full_disk_is_an_error_and_leaves_nothing() {
    let tiny = Tiny::of(1024);
    let root = TempDir::new().unwrap();
    let tree = root.path().join("tree");
    let files: Vec<_> = (0..40)
        .map(|i| (format!("d{}/{i}", i / 9), false, filled(60_000)))
        .collect();
    plant(&tree, &files);
    for format in BOTH {
        let output = tiny.path().join("out");
        assert_eq!(
            format.pack(&tree, &output).unwrap_err().code,
            ArchiveCode::Io
        );
        assert_eq!(names(tiny.path()), [""; 0]);
        let made = tiny.path().join("t");
        let bytes = format.in_memory(&files);
        let full = format.extract(&bytes[..], &into(&made)).unwrap_err();
        assert_eq!(full.code, ArchiveCode::Io, "{full}");
        let full = format
            .extract_file(&on_disk(&bytes), &into(&made))
            .unwrap_err();
        assert_eq!(full.code, ArchiveCode::Io, "{full}");
        assert_eq!(names(tiny.path()), [""; 0]);
        // The twin fits.
        let bytes = format.in_memory(&files[..10]);
        format.extract_file(&on_disk(&bytes), &into(&made)).unwrap();
        fs::remove_dir_all(made).unwrap();
    }
}

#[test]
fn memory_does_not_grow_with_the_payload() {
    let root = TempDir::new().unwrap();
    let (tree, output) = (root.path().join("tree"), root.path().join("out"));
    fs::create_dir(&tree).unwrap();
    for name in ["1", "2", "3", "4"] {
        File::create(tree.join(name))
            .unwrap()
            .set_len(48 << 20)
            .unwrap();
    }
    let before = peak_kib();
    for format in BOTH {
        format.pack(&tree, &output).unwrap();
        let archive = File::open(&output).unwrap();
        format.verify(&archive).unwrap();
        format.verify_file(&archive).unwrap();
        let made = root.path().join("t");
        format.extract_file(&archive, &into(&made)).unwrap();
        fs::remove_dir_all(&made).unwrap();
    }
    let grown = peak_kib() - before;
    assert!(grown < 8 << 10, "{grown} KiB for 192 MiB of payload");
}

/// The largest this process ever was.
fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
