use crate::{AgentCode, AgentRefusal, Ending, Launch, Patience, Profile, Program};
use flightproof_core::{Digest, Hasher, escape};
use rustix::fs::{Mode, OFlags};
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Largest program file: agent programs carry a whole JavaScript engine, about 200 MiB.
const MAX_PROGRAM: u64 = 1 << 30;
/// Longest answer to a question for the version, bytes.
const MAX_VERSION: usize = 200;
/// For that answer: a large program on a cold disk takes seconds to start.
const ASKING: Patience = Patience {
    wall: Duration::from_secs(30),
    grace: Duration::from_secs(1),
};

/// One agent program, as a file: where it really lies, and what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binary {
    path: PathBuf,
    digest: Digest,
}

impl Binary {
    /// Finds the program's file, following links once and for all, and hashes it.
    ///
    /// # Errors
    /// `BINARY_UNFIT`: no absolute path, no ordinary file, writable by others, or too large.
    pub fn inspect(path: &Path) -> Result<Self, AgentRefusal> {
        let shown = escape(path.as_os_str().as_encoded_bytes(), 200);
        let unfit =
            |what: &dyn fmt::Display| AgentCode::BinaryUnfit.refuse(format!("{shown}: {what}"));
        if !path.is_absolute() {
            return Err(unfit(&"not an absolute path"));
        }
        let path = path.canonicalize().map_err(|e| unfit(&e))?;
        let digest = digest(&path).map_err(|what| unfit(&what))?;
        Ok(Self { path, digest })
    }

    /// Where the file lies, without links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// SHA-256 of the file.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Asks the file itself for its version, where it will run.
    ///
    /// # Errors
    /// `VERSION_UNREADABLE`, `VERSION_TOO_OLD`, `BINARY_CHANGED`, `SPAWN_FAILED`.
    pub fn version(
        &self,
        program: &mut dyn Program,
        profile: &Profile,
        home: &str,
    ) -> Result<Version, AgentRefusal> {
        let launch = Launch::for_version(profile, self, home);
        self.is_unchanged()?;
        let output = program.run(&launch, ASKING, &mut |_| true)?;
        self.is_unchanged()?;
        if output.ending != Ending::Exited(0) || output.overflow {
            let detail = format!("it ended with {:?}", output.ending);
            return Err(AgentCode::VersionUnreadable.refuse(detail));
        }
        Version::read(&output.stdout, profile)
    }

    /// Hashes the file again: after the run it must be what it was before.
    ///
    /// # Errors
    /// `BINARY_CHANGED`. What the other file has cost is unknown, so the hold is kept.
    pub fn is_unchanged(&self) -> Result<(), AgentRefusal> {
        let shown = escape(self.path.as_os_str().as_encoded_bytes(), 200);
        match digest(&self.path) {
            Ok(now) if now == self.digest => Ok(()),
            Ok(now) => {
                Err(AgentCode::BinaryChanged
                    .refuse(format!("{shown}: was {}, is {now}", self.digest)))
            }
            Err(what) => Err(AgentCode::BinaryChanged.refuse(format!("{shown}: {what}"))),
        }
    }
}

fn digest(path: &Path) -> Result<Digest, String> {
    // A pipe in its place could wait for ever.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty()).map_err(|e| e.to_string())?;
    let file = File::from(file);
    let about = file.metadata().map_err(|e| e.to_string())?;
    if !about.is_file() {
        return Err("not an ordinary file".to_owned());
    }
    if about.permissions().mode() & 0o022 != 0 {
        return Err("writable by others than its owner".to_owned());
    }
    if about.permissions().mode() & 0o111 == 0 {
        return Err("not executable".to_owned());
    }
    if about.size() > MAX_PROGRAM {
        return Err(format!("{} bytes", about.size()));
    }
    let mut hasher = Hasher::new();
    let mut buffer = vec![0; 1 << 16];
    let mut file = file.take(MAX_PROGRAM);
    loop {
        match file.read(&mut buffer).map_err(|e| e.to_string())? {
            0 => return Ok(hasher.finish()),
            read => hasher.update(&buffer[..read]),
        }
    }
}

/// A version in three numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub [u32; 3]);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.0;
        write!(f, "{major}.{minor}.{patch}")
    }
}

impl Version {
    /// Reads everything a program printed when it was asked for its version: the profile's prefix,
    /// three numbers, the profile's suffix, and at most a line end. Nothing else, so that no
    /// wrapper's banner is taken for it.
    ///
    /// # Errors
    /// `VERSION_UNREADABLE`, or `VERSION_TOO_OLD` below the profile's floor.
    pub fn read(printed: &[u8], profile: &Profile) -> Result<Self, AgentRefusal> {
        let version = parse(printed, profile.version_frame()).ok_or_else(|| {
            AgentCode::VersionUnreadable.refuse(format!("got {}", escape(printed, 60)))
        })?;
        let floor = profile.version_floor();
        if version < floor {
            let detail = format!("got {version}, at least {floor} is needed");
            return Err(AgentCode::VersionTooOld.refuse(detail));
        }
        Ok(version)
    }
}

fn parse(printed: &[u8], (prefix, suffix): (&str, &str)) -> Option<Version> {
    if printed.len() > MAX_VERSION {
        return None;
    }
    let line = std::str::from_utf8(printed).ok()?;
    let line = line.strip_suffix('\n').unwrap_or(line);
    let line = line.strip_suffix('\r').unwrap_or(line);
    let numbers = line.strip_prefix(prefix)?.strip_suffix(suffix)?;
    let mut parts = numbers.split('.');
    let mut part = || {
        let text = parts.next()?;
        let plain = text.bytes().all(|b| b.is_ascii_digit());
        let canonical = text == "0" || !text.starts_with('0');
        text.parse::<u32>().ok().filter(|_| plain && canonical)
    };
    let version = Version([part()?, part()?, part()?]);
    parts.next().is_none().then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_program_s_own_version_line_is_a_version() {
        let claude = Profile::built_in("claude").unwrap();
        let read = |text: &str| Version::read(text.as_bytes(), &claude).map_err(|e| e.code);
        for good in [
            "2.1.266 (Claude Code)\n",
            "2.1.266 (Claude Code)",
            "10.0.0 (Claude Code)\r\n",
        ] {
            assert!(read(good).is_ok(), "{good}");
        }
        for old in [
            "2.1.265 (Claude Code)",
            "2.0.999 (Claude Code)",
            "1.9.9 (Claude Code)",
        ] {
            assert_eq!(read(old), Err(AgentCode::VersionTooOld), "{old}");
        }
        for bad in [
            "",
            "2.1.266",
            "wrapper 1.0.0\n2.1.266 (Claude Code)\n",
            "2.1.266 (Claude Code)\nupdate available",
            "2.1.266-beta (Claude Code)",
            "2.1.0266 (Claude Code)",
            "2.1 (Claude Code)",
            "2.1.266.1 (Claude Code)",
            "+2.1.266 (Claude Code)",
            "4294967296.0.0 (Claude Code)",
            "v2.1.266 (Claude Code)",
            "2.1.266 (Claude Code) ",
            "2.1.266 (Claude Code)\u{2028}",
            "2.1.266 (Claude Code)\n\n",
        ] {
            assert_eq!(read(bad), Err(AgentCode::VersionUnreadable), "{bad}");
        }
    }

    #[test]
    fn a_program_that_changes_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("tool"), folder.path().join("link"));
        let write = |content: &str, mode| {
            std::fs::write(&file, content).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        write("one", 0o755);
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let binary = Binary::inspect(&link).unwrap();
        assert_eq!(binary.path(), file.canonicalize().unwrap());
        binary.is_unchanged().unwrap();
        write("two", 0o755);
        let changed = binary.is_unchanged().map_err(|e| e.code);
        assert_eq!(changed, Err(AgentCode::BinaryChanged));
        std::fs::remove_file(&file).unwrap();
        let gone = binary.is_unchanged().map_err(|e| e.code);
        assert_eq!(gone, Err(AgentCode::BinaryChanged));
    }

    #[test]
    fn a_program_others_could_replace_is_not_run() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tool");
        std::fs::write(&file, "x").unwrap();
        for (mode, fit) in [
            (0o755, true),
            (0o775, false),
            (0o757, false),
            (0o644, false),
        ] {
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(Binary::inspect(&file).is_ok(), fit, "{mode:o}");
        }
        for path in [
            Path::new("tool"),
            folder.path(),
            &folder.path().join("none"),
        ] {
            let code = Binary::inspect(path).map_err(|e| e.code);
            assert_eq!(code, Err(AgentCode::BinaryUnfit), "{}", path.display());
        }
    }
}
