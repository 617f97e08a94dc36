//! Dependencies: from the `.crate` files that were uploaded to a cargo directory source.
//!
//! The runner itself only hashes them. Their bytes are parsed by a child behind walls of its own.

use crate::calls::sweep;
use crate::code::{RunnerCode, RunnerError, inside};
use crate::spawn::{Act, spawn};
use crate::walls::{UNPACK, Walls};
use crate::{pump, scratch};
use flate2::read::GzDecoder;
use flightproof_core::{Digest, Hasher, escape};
use flightproof_frame::protocol::{CrateFile, ExecLimits, Outcome, Status, layout};
use rustix::fs::{Mode, OFlags};
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use tar::{Archive, Entry, EntryType};

/// Most packages of one candidate: several times the largest lock files known.
const MAX_PACKAGES: usize = 4_000;
/// What one package may hold.
#[derive(Clone, Copy)]
struct Caps {
    entries: usize,
    bytes: u64,
}

/// The largest published packages hold some ten thousand entries and less than 200 MB.
const CAPS: Caps = Caps {
    entries: 50_000,
    bytes: 512 << 20,
};
/// Longest path in a package in bytes.
const MAX_PATH: usize = 1_024;
/// Time for one package in milliseconds.
const LIMITS: ExecLimits = ExecLimits {
    wall_ms: 60_000,
    stdout_bytes: 4_096,
    stderr_bytes: 4_096,
};

/// Unpacks the packages into the vendor directory. How many there are.
pub(crate) fn unpack(crates: &[CrateFile]) -> Result<u64, RunnerError> {
    if crates.len() > MAX_PACKAGES {
        let detail = format!("{} packages, at most {MAX_PACKAGES}", crates.len());
        return Err(RunnerCode::CrateRefused.refuse(detail));
    }
    crates.iter().try_for_each(check_names)?;
    if fs::symlink_metadata(layout::VENDOR).is_ok() {
        return Err(RunnerCode::PlaceOccupied.refuse(layout::VENDOR));
    }
    scratch::make_owned(layout::VENDOR, UNPACK)?;
    let walls = Walls::unpack();
    crates
        .iter()
        .try_for_each(|package| unpack_one(&walls, package))?;
    Ok(crates.len() as u64)
}

/// Name and version become a file name, so they are held to what registries allow in them.
fn check_names(package: &CrateFile) -> Result<(), RunnerError> {
    let name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    let version = |b: u8| name(b) || matches!(b, b'.' | b'+');
    let fits = |text: &str| (1..=100).contains(&text.len());
    let starts = package.version.starts_with(|c: char| c.is_ascii_digit());
    if fits(&package.name)
        && fits(&package.version)
        && starts
        && package.name.bytes().all(name)
        && package.version.bytes().all(version)
    {
        return Ok(());
    }
    let shown = escape(package.file_name(), 200);
    Err(RunnerCode::CrateRefused.refuse(format!("{shown} is no name of a package")))
}

fn unpack_one(walls: &Walls, package: &CrateFile) -> Result<(), RunnerError> {
    let file = open_checked(
        &Path::new(layout::CRATES).join(package.file_name()),
        package,
    )?;
    let (mut ends, wires) = pump::wires(None)?;
    ends.stdin = file.into();
    let body = || unpack_from_stdin(package);
    let child = spawn(&ends, walls, &Act::Inside(&body)).map_err(inside("clone"))?;
    drop(ends);
    let outcome = pump::drive(&child, wires, &[], &LIMITS, None);
    sweep()?;
    judge(package, &outcome?)
}

fn judge(package: &CrateFile, outcome: &Outcome) -> Result<(), RunnerError> {
    if outcome.status == (Status::Exited { code: 0 }) {
        return Ok(());
    }
    let said = escape(&*outcome.stdout, 300);
    let detail = format!("{}: {:?} {said}", package.file_name(), outcome.status);
    Err(RunnerCode::CrateRefused.refuse(detail))
}

/// The file, positioned at its start, after its whole content was hashed.
fn open_checked(path: &Path, package: &CrateFile) -> Result<File, RunnerError> {
    let name = package.file_name();
    let mismatch = |why: &str| RunnerCode::CrateMismatch.refuse(format!("{name}: {why}"));
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty());
    let mut file = File::from(file.map_err(|error| mismatch(&error.to_string()))?);
    let found = digest_of(&mut file).map_err(inside("read a package"))?;
    if found != package.sha256 {
        return Err(mismatch(&format!(
            "got {found}, expected {}",
            package.sha256
        )));
    }
    file.rewind().map_err(inside("read a package"))?;
    Ok(file)
}

fn digest_of(file: &mut File) -> std::io::Result<Digest> {
    let mut hasher = Hasher::new();
    let mut piece = vec![0; 256 << 10];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hasher.finish()),
            read => hasher.update(&piece[..read]),
        }
    }
}

/// In the child, in the vendor directory. The reason of a refusal goes to standard output.
fn unpack_from_stdin(package: &CrateFile) -> u8 {
    match unpack_stream(Path::new("."), std::io::stdin().lock(), package, CAPS) {
        Ok(()) => 0,
        Err(reason) => {
            let mut out = std::io::stdout();
            // The exit status alone says enough if this cannot be written.
            let _ = out.write_all(reason.as_bytes()).and_then(|()| out.flush());
            1
        }
    }
}

fn unpack_stream(
    vendor: &Path,
    gzip: impl Read,
    package: &CrateFile,
    caps: Caps,
) -> Result<(), String> {
    let prefix = format!("{}-{}", package.name, package.version);
    let home = vendor.join(&prefix);
    fs::create_dir(&home).map_err(|e| format!("create: {e}"))?;
    // One byte more than allowed, so that too much is seen as such.
    let plain = GzDecoder::new(gzip).take(caps.bytes + 1);
    let mut archive = Archive::new(plain);
    let mut seen = BTreeSet::new();
    for entry in archive.entries().map_err(|e| e.to_string())? {
        let entry = entry.map_err(|e| e.to_string())?;
        if seen.len() >= caps.entries {
            return Err(format!("more than {} entries", caps.entries));
        }
        unpack_entry(&home, &prefix, entry, &mut seen)?;
    }
    if seen.is_empty() {
        return Err("no entries".to_owned());
    }
    if archive.into_inner().limit() == 0 {
        return Err(format!("more than {} bytes", caps.bytes));
    }
    let checksum = format!("{{\"files\":{{}},\"package\":\"{}\"}}", package.sha256);
    fs::write(home.join(".cargo-checksum.json"), checksum).map_err(|e| e.to_string())
}

fn unpack_entry(
    home: &Path,
    prefix: &str,
    mut entry: Entry<'_, impl Read>,
    seen: &mut BTreeSet<Vec<u8>>,
) -> Result<(), String> {
    let path = entry.path_bytes().into_owned();
    let shown = escape(&path, 200);
    let inner = inner_path(&path, prefix).map_err(|why| format!("{shown}: {why}"))?;
    if !seen.insert(inner.as_bytes().to_vec()) {
        return Err(format!("{shown}: twice"));
    }
    let to = home.join(inner);
    match entry.header().entry_type() {
        EntryType::Directory => fs::create_dir_all(&to).map_err(|e| format!("{shown}: {e}")),
        EntryType::Regular if !inner.is_empty() => {
            let executable = entry.header().mode().map_err(|e| e.to_string())? & 0o111 != 0;
            write_file(&mut entry, &to, executable).map_err(|e| format!("{shown}: {e}"))
        }
        other => Err(format!("{shown}: neither file nor directory: {other:?}")),
    }
}

/// The path below the package's one directory; empty for that directory itself.
fn inner_path<'a>(path: &'a [u8], prefix: &str) -> Result<&'a str, &'static str> {
    if path.len() > MAX_PATH {
        return Err("longer than 1024 bytes");
    }
    let path = std::str::from_utf8(path).map_err(|_bytes| "not UTF-8")?;
    let path = path.strip_suffix('/').unwrap_or(path);
    let inner = match path.strip_prefix(prefix) {
        Some("") => return Ok(""),
        Some(rest) => rest.strip_prefix('/'),
        None => None,
    };
    let inner = inner.ok_or("outside of the package's directory")?;
    if inner.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Err("not a plain path");
    }
    if inner.contains('\0') {
        return Err("holds a NUL");
    }
    Ok(inner)
}

fn write_file(from: &mut impl Read, to: &Path, executable: bool) -> std::io::Result<()> {
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    let mode = if executable { 0o755 } else { 0o644 };
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(to)?;
    std::io::copy(from, &mut file).map(|_bytes| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use tar::{Builder, Header};

    struct Packed(Builder<GzEncoder<Vec<u8>>>);

    impl Packed {
        fn new() -> Self {
            Self(Builder::new(GzEncoder::new(
                Vec::new(),
                Compression::fast(),
            )))
        }

        /// An entry with a raw name: the writer of the crate would refuse the hostile ones.
        fn entry(mut self, kind: EntryType, name: &[u8], link: &str, data: &[u8]) -> Self {
            let mut header = Header::new_ustar();
            header.as_mut_bytes()[..name.len()].copy_from_slice(name);
            header.set_entry_type(kind);
            header.set_mode(0o4777);
            header.set_size(data.len() as u64);
            if !link.is_empty() {
                header.set_link_name_literal(link).unwrap();
            }
            header.set_cksum();
            self.0.append(&header, data).unwrap();
            self
        }

        fn file(self, name: &str, data: &[u8]) -> Self {
            self.entry(EntryType::Regular, name.as_bytes(), "", data)
        }

        fn bytes(self) -> Vec<u8> {
            self.0.into_inner().unwrap().finish().unwrap()
        }
    }

    fn package() -> CrateFile {
        CrateFile {
            name: "a".into(),
            version: "1.0.0".into(),
            sha256: Digest::of(b"a"),
        }
    }

    /// Unpacks into `vendor` in a folder of its own, so that nobody else's files are beside it.
    fn unpacked(packed: Packed) -> (tempfile::TempDir, Result<(), String>) {
        let room = tempfile::tempdir().unwrap();
        let vendor = room.path().join("vendor");
        std::fs::create_dir(&vendor).unwrap();
        let result = unpack_stream(&vendor, &packed.bytes()[..], &package(), CAPS);
        (room, result)
    }

    #[test]
    fn a_package_is_unpacked_with_its_checksum_and_without_special_modes() {
        let packed = Packed::new()
            .entry(EntryType::Directory, b"a-1.0.0/", "", b"")
            .file("a-1.0.0/src/lib.rs", b"code")
            .file("a-1.0.0/Cargo.toml", b"[package]");
        let (room, result) = unpacked(packed);
        result.unwrap();
        let home = room.path().join("vendor/a-1.0.0");
        assert_eq!(fs::read(home.join("src/lib.rs")).unwrap(), b"code");
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(home.join("src/lib.rs"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o7022, 0);
        let checksum = fs::read_to_string(home.join(".cargo-checksum.json")).unwrap();
        assert_eq!(
            checksum,
            format!("{{\"files\":{{}},\"package\":\"{}\"}}", Digest::of(b"a"))
        );
    }

    #[test]
    fn whatever_is_neither_file_nor_directory_is_refused() {
        for kind in [
            EntryType::Symlink,
            EntryType::Link,
            EntryType::Char,
            EntryType::Block,
            EntryType::Fifo,
            EntryType::Continuous,
            EntryType::GNUSparse,
            EntryType::XGlobalHeader,
        ] {
            let (_vendor, result) =
                unpacked(Packed::new().entry(kind, b"a-1.0.0/x", "/etc/passwd", b""));
            assert!(result.is_err(), "{kind:?}");
        }
    }

    #[test]
    fn names_that_leave_the_package_are_refused() {
        for name in [
            "../x",
            "/etc/x",
            "a-1.0.0/../x",
            "a-1.0.0/./x",
            "a-1.0.0//x",
            "b-1.0.0/x",
            "a-1.0.0x/y",
            "x",
            "a-1.0.0",
        ] {
            let (room, result) = unpacked(Packed::new().file(name, b"data"));
            assert!(result.is_err(), "{name}");
            assert!(!room.path().join("x").exists());
        }
        let (_vendor, result) =
            unpacked(Packed::new().entry(EntryType::Regular, b"a-1.0.0/\xff", "", b""));
        assert!(result.is_err());
    }

    #[test]
    fn duplicates_and_conflicts_are_refused() {
        let twice = Packed::new()
            .file("a-1.0.0/x", b"1")
            .file("a-1.0.0/x", b"2");
        assert!(unpacked(twice).1.unwrap_err().contains("twice"));
        let under_file = Packed::new()
            .file("a-1.0.0/x", b"1")
            .file("a-1.0.0/x/y", b"2");
        assert!(unpacked(under_file).1.is_err());
    }

    /// What an extended header says of the entry after it: the record's length, a name and a value.
    fn extended(records: &[(&str, &str)], then: (&str, &[u8])) -> Packed {
        let record = |(name, value): &(&str, &str)| {
            let rest = name.len() + value.len() + 3;
            // The length counts its own digits: two, for these.
            format!("{} {name}={value}\n", rest + 2)
        };
        let data: String = records.iter().map(record).collect();
        Packed::new()
            .entry(EntryType::XHeader, b"a-1.0.0/pax", "", data.as_bytes())
            .file(then.0, then.1)
    }

    /// Other readers take the name, or the size, of the plain header: nothing lands beside the
    /// package, and no size is believed that the bytes do not have.
    #[test]
    fn extended_headers_change_no_place_and_no_size_beyond_the_bytes() {
        for (record, of) in [
            (("path", "../../target/x"), "a-1.0.0/x"),
            (("path", "/etc/x"), "a-1.0.0/x"),
            (("path", "a-1.0.0/../x"), "a-1.0.0/x"),
            (("linkpath", "/etc/passwd"), "../x"),
            (("size", "99999999999999"), "a-1.0.0/x"),
            (("size", "00"), "a-1.0.0/x"),
            (("size", "18446744073709551615"), "a-1.0.0/x"),
            (("GNU.sparse.realsize", "4096"), "../x"),
        ] {
            let (room, result) = unpacked(extended(&[record], (of, b"data")));
            assert!(result.is_err(), "{record:?}: {result:?}");
            assert!(!room.path().join("x").exists());
        }
        // Attributes are not set, owners and times neither.
        let records = [("SCHILY.xattr.user.a", "b"), ("uname", "somebody else")];
        let (room, result) = unpacked(extended(&records, ("a-1.0.0/x", b"data")));
        result.unwrap();
        let file = room.path().join("vendor/a-1.0.0/x");
        assert_eq!(fs::read(&file).unwrap(), b"data");
        let mut names = [0u8; 256];
        assert_eq!(rustix::fs::listxattr(&file, &mut names[..]), Ok(0));
    }

    #[test]
    fn an_empty_a_cut_and_a_foreign_archive_are_refused() {
        assert!(unpacked(Packed::new()).1.is_err());
        let vendor = tempfile::tempdir().unwrap();
        let whole = Packed::new().file("a-1.0.0/x", &[7; 5_000]).bytes();
        assert!(unpack_stream(vendor.path(), &whole[..whole.len() / 2], &package(), CAPS).is_err());
        let vendor = tempfile::tempdir().unwrap();
        assert!(unpack_stream(vendor.path(), &b"no gzip at all"[..], &package(), CAPS).is_err());
    }

    #[test]
    fn a_package_may_fill_its_caps_and_not_exceed_them() {
        let packed = || {
            Packed::new()
                .file("a-1.0.0/x", &[7; 1_000])
                .file("a-1.0.0/y", b"")
        };
        let within = |entries, bytes| {
            let vendor = tempfile::tempdir().unwrap();
            unpack_stream(
                vendor.path(),
                &packed().bytes()[..],
                &package(),
                Caps { entries, bytes },
            )
        };
        // Two headers, one padded file, and the two blocks of zeros at the end.
        let size = 512 + 1_024 + 512 + 1_024;
        assert_eq!(within(2, size), Ok(()));
        assert!(within(1, size).unwrap_err().contains("entries"));
        assert!(within(2, 1_500).is_err());
    }

    #[test]
    fn names_of_packages_are_those_of_a_registry() {
        let named = |name: &str, version: &str| {
            check_names(&CrateFile {
                name: name.into(),
                version: version.into(),
                ..package()
            })
            .is_ok()
        };
        assert!(named("serde_json", "1.0.0-rc.1+x86"));
        for (name, version) in [
            ("", "1"),
            ("a/b", "1"),
            ("..", "1"),
            ("a", ""),
            ("a", "../1"),
            ("a", "x1"),
            ("a\0", "1"),
        ] {
            assert!(!named(name, version), "{name} {version}");
        }
    }

    #[test]
    fn a_file_must_have_the_digest_of_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a-1.0.0.crate");
        let absent = open_checked(&path, &package()).unwrap_err();
        assert_eq!(absent.code, RunnerCode::CrateMismatch);
        fs::write(&path, b"b").unwrap();
        assert_eq!(
            open_checked(&path, &package()).unwrap_err().code,
            RunnerCode::CrateMismatch
        );
        fs::write(&path, b"a").unwrap();
        assert!(open_checked(&path, &package()).is_ok());
    }
}
