//! A build product becomes a program of the cases.

use crate::code::{RunnerCode, RunnerError, inside};
use crate::exec::{check_name, program_place};
use flightproof_core::{Digest, Hasher, escape};
use flightproof_frame::protocol::layout;
use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Largest program in bytes: a debug build of a large dependency tree.
const MAX_PROGRAM: u64 = 512 << 20;

/// Copies `from` (below the build output) to the program `name`. Digest and size of the copy.
pub(crate) fn promote(from: &str, name: &str) -> Result<(Digest, u64), RunnerError> {
    check_name(name)?;
    promote_between(
        Path::new(layout::TARGET),
        Path::new(layout::EXE),
        from,
        name,
    )
}

fn promote_between(
    target: &Path,
    exe: &Path,
    from: &str,
    name: &str,
) -> Result<(Digest, u64), RunnerError> {
    let product = open_product(target, from)?;
    let place = program_place(exe, name);
    if let Some(dir) = place.parent() {
        let made = fs::DirBuilder::new().mode(0o700).create(dir);
        made.or_else(|e| if dir.is_dir() { Ok(()) } else { Err(e) })
            .map_err(inside("promote"))?;
    }
    let staged = exe.join(format!(".{name}"));
    let copied = copy(product, &staged).inspect_err(|_refusal| {
        // A part of a program would keep the place of the next.
        let _ = fs::remove_file(&staged);
    })?;
    fs::rename(&staged, place).map_err(inside("promote"))?;
    Ok(copied)
}

/// Opens a regular file below the build output. No part of the way may be a link: the build wrote
/// it, and a link could lead to anything the runner may read.
fn open_product(target: &Path, from: &str) -> Result<File, RunnerError> {
    let refuse =
        |why: &str| RunnerCode::PromoteRefused.refuse(format!("{}: {why}", escape(from, 300)));
    let inner = Path::new(from)
        .strip_prefix(target)
        .map_err(|_other| refuse("not below the build output"))?;
    let top = File::open(target).map_err(|e| refuse(&e.to_string()))?;
    let product = openat2(
        &top,
        inner,
        OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK,
        Mode::empty(),
        ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV,
    );
    let product = File::from(product.map_err(|e| refuse(&e.to_string()))?);
    let is = product.metadata().map_err(|e| refuse(&e.to_string()))?;
    if !is.is_file() {
        return Err(refuse("not a regular file"));
    }
    if is.len() > MAX_PROGRAM {
        return Err(refuse(&format!(
            "{} bytes, at most {MAX_PROGRAM}",
            is.len()
        )));
    }
    Ok(product)
}

fn copy(product: File, to: &Path) -> Result<(Digest, u64), RunnerError> {
    let mut copy = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(to)
        .map_err(inside("promote"))?;
    let mut product = product.take(MAX_PROGRAM);
    let mut hasher = Hasher::new();
    let (mut size, mut piece) = (0, vec![0; PIECE]);
    loop {
        let read = product.read(&mut piece).map_err(inside("promote"))?;
        if read == 0 {
            break;
        }
        hasher.update(&piece[..read]);
        copy.write_all(&piece[..read]).map_err(inside("promote"))?;
        size += read as u64;
    }
    copy.set_permissions(fs::Permissions::from_mode(PROGRAM_MODE))
        .map_err(inside("promote"))?;
    Ok((hasher.finish(), size))
}

/// A case executes its program and cannot read it.
const PROGRAM_MODE: u32 = 0o711;
/// Bytes copied at once.
const PIECE: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    struct Places(tempfile::TempDir);

    impl Places {
        fn new() -> Self {
            let root = tempfile::tempdir().unwrap();
            fs::create_dir(root.path().join("target")).unwrap();
            fs::create_dir(root.path().join("exe")).unwrap();
            Self(root)
        }

        fn target(&self, name: &str) -> std::path::PathBuf {
            self.0.path().join("target").join(name)
        }

        fn promote(&self, from: &Path) -> Result<(Digest, u64), RunnerError> {
            let root = self.0.path();
            promote_between(
                &root.join("target"),
                &root.join("exe"),
                from.to_str().unwrap(),
                "prog",
            )
        }
    }

    #[test]
    fn a_product_is_copied_hashed_and_executable_but_not_readable() {
        let places = Places::new();
        fs::create_dir(places.target("debug")).unwrap();
        fs::write(places.target("debug/prog"), b"bytes").unwrap();
        let copied = places.promote(&places.target("debug/prog")).unwrap();
        assert_eq!(copied, (Digest::of(b"bytes"), 5));
        let exe = places.0.path().join("exe/prog/program");
        assert_eq!(
            fs::metadata(&exe).unwrap().permissions().mode() & 0o7777,
            PROGRAM_MODE
        );
        assert_eq!(fs::read(&exe).unwrap(), b"bytes");
        assert_eq!(
            fs::read_dir(places.0.path().join("exe")).unwrap().count(),
            1
        );
    }

    #[test]
    fn links_directories_and_paths_that_leave_are_refused() {
        let places = Places::new();
        fs::write(places.0.path().join("secret"), b"secret").unwrap();
        symlink(places.0.path().join("secret"), places.target("link")).unwrap();
        symlink(places.0.path(), places.target("dir")).unwrap();
        fs::create_dir(places.target("real")).unwrap();
        for from in [
            "link",
            "dir/secret",
            "real",
            "real/../../secret",
            "absent",
            "",
        ] {
            let refusal = places.promote(&places.target(from)).unwrap_err();
            assert_eq!(refusal.code, RunnerCode::PromoteRefused, "{from}");
        }
        let outside = places.0.path().join("secret");
        assert_eq!(
            places.promote(&outside).unwrap_err().code,
            RunnerCode::PromoteRefused
        );
    }

    #[test]
    fn a_pipe_is_refused_without_waiting_for_a_writer() {
        let places = Places::new();
        let fifo = places.target("fifo");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &fifo,
            rustix::fs::FileType::Fifo,
            Mode::RWXU,
            0,
        )
        .unwrap();
        assert_eq!(
            places.promote(&fifo).unwrap_err().code,
            RunnerCode::PromoteRefused
        );
    }

    #[test]
    fn a_copy_that_cannot_be_written_is_the_sessions_fault() {
        let places = Places::new();
        fs::write(places.target("prog"), b"bytes").unwrap();
        fs::remove_dir(places.0.path().join("exe")).unwrap();
        let refusal = places.promote(&places.target("prog")).unwrap_err();
        assert_eq!(refusal.code, RunnerCode::Inside);
    }

    #[test]
    fn a_copy_that_finds_no_room_leaves_nothing_of_itself() {
        let places = Places::new();
        fs::write(places.target("prog"), b"bytes").unwrap();
        let exe = places.0.path().join("exe");
        symlink("/dev/full", exe.join(".prog")).unwrap();
        let refusal = places.promote(&places.target("prog")).unwrap_err();
        assert_eq!(refusal.code, RunnerCode::Inside);
        assert!(fs::symlink_metadata(exe.join(".prog")).is_err());
        assert!(places.promote(&places.target("prog")).is_ok());
    }

    #[test]
    fn a_program_has_a_plain_name() {
        assert_eq!(
            promote("/flight/target/a", "../a").unwrap_err().code,
            RunnerCode::BadExec
        );
    }
}
