use crate::talk::{Answer, Cap, Talk};
use crate::{ImportError, ImporterCode};
use std::ffi::{OsStr, OsString};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The one way to start git. The program is an absolute path, found once.
#[derive(Debug, Clone)]
pub struct Git {
    program: PathBuf,
    version: Version,
}

/// A version of git.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// First number.
    pub major: u32,
    /// Second number.
    pub minor: u32,
}

impl Version {
    /// Oldest one accepted: what Debian 12 ships.
    pub const OLDEST: Self = Self {
        major: 2,
        minor: 39,
    };
    /// Runs hooks defined in configuration and has no switch against it; 2.55 has the switch.
    const CONFIG_HOOKS: Self = Self {
        major: 2,
        minor: 54,
    };

    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.trim().strip_prefix("git version ")?.split('.');
        Some(Self {
            major: numbers.next()?.parse().ok()?,
            minor: numbers.next()?.parse().ok()?,
        })
    }

    /// Whether this version would run a hook that the repository's configuration defines.
    pub(crate) fn runs_config_hooks(self) -> bool {
        self == Self::CONFIG_HOOKS
    }
}

/// What git may be asked. There is no verb that talks to a network, or reads or writes a working
/// tree. An index is read where it is named, in a repository of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Version,
    Config,
    RevParse,
    ForEachRef,
    CatFile,
    BundleCreate,
    IndexPack,
    MergeBase,
    UpdateRef,
    DiffIndex,
    CheckAttr,
    MergeTree,
}

impl Verb {
    fn words(self) -> &'static [&'static str] {
        match self {
            Self::Version => &["version"],
            Self::Config => &["config"],
            Self::RevParse => &["rev-parse"],
            Self::ForEachRef => &["for-each-ref"],
            Self::CatFile => &["cat-file"],
            Self::BundleCreate => &["bundle", "create"],
            Self::IndexPack => &["index-pack", "--stdin", STRICT],
            Self::MergeBase => &["merge-base"],
            Self::UpdateRef => &["update-ref"],
            Self::DiffIndex => &["diff-index", "--cached", "--quiet", "--no-renames"],
            Self::MergeTree => &[
                "merge-tree",
                "--write-tree",
                "-z",
                "--name-only",
                "--no-messages",
            ],
            Self::CheckAttr => &["check-attr", "--cached", "--stdin", "-z"],
        }
    }

    /// Most bytes it may allocate at once. A pack of a thousand bytes can ask for a thousand million.
    fn alloc_limit(self) -> &'static str {
        match self {
            // It holds the user's whole index in one piece: 1.5 GiB of the largest that is read.
            Self::DiffIndex => "2g",
            _ => "64m",
        }
    }
}

/// Git's own checks of objects, all as errors but one: an unchanged directory of the baseline may
/// be spelled `040000`, as old programs wrote it, inside a tree that changes.
const STRICT: &str = "--strict=zeroPaddedFilemode=ignore";

/// Where git works. Never found by looking around: always named.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place<'a> {
    /// In no repository.
    Nowhere,
    /// A scratch repository of ours.
    Scratch(&'a Path),
    /// A scratch repository of ours, with the index in this file.
    Index(&'a Path, &'a Path),
    /// The repository of the user.
    Host(&'a Path),
}

/// Longest answer of an ordinary question, a configuration: 1 MiB.
pub(crate) const SHORT: Cap = Cap {
    bytes: 1 << 20,
    code: ImporterCode::GitFailed,
};

/// Time for one command. Reading a large tree is the slowest and takes seconds.
const DEADLINE: Duration = Duration::from_secs(60);

impl Git {
    /// The first program called `git` in an absolute folder of `PATH`.
    ///
    /// # Errors
    /// `GIT_MISSING`, `GIT_TOO_OLD`.
    pub fn find() -> Result<Self, ImportError> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let program = std::env::split_paths(&path)
            .filter(|folder| folder.is_absolute())
            .map(|folder| folder.join("git"))
            .find(|file| is_program(file))
            .ok_or_else(|| ImporterCode::GitMissing.refuse("no git in PATH"))?;
        Self::at(&program)
    }

    /// This program.
    ///
    /// # Errors
    /// `GIT_MISSING` if it is no absolute path of a program or does not say its version,
    /// `GIT_TOO_OLD`.
    pub fn at(program: &Path) -> Result<Self, ImportError> {
        Ok(Self::beside(program, |_| ())?.0)
    }

    /// This program, and what it answers to another question while it says its version. The answer counts
    /// for nothing where this fails.
    pub(crate) fn beside<T>(
        program: &Path,
        ask: impl FnOnce(&Self) -> T,
    ) -> Result<(Self, T), ImportError> {
        let missing = |why: &str| {
            ImporterCode::GitMissing.refuse(format!("{}: {why}", program.to_string_lossy()))
        };
        if !program.is_absolute() || !is_program(program) {
            return Err(missing("not the absolute path of a program"));
        }
        let mut git = Self {
            program: program.to_owned(),
            version: Version::OLDEST,
        };
        let asked = git.talk(Verb::Version, Place::Nowhere, &[])?;
        let beside = ask(&git);
        let answer = asked.finish(SHORT)?;
        let text = String::from_utf8_lossy(&answer.stdout);
        git.version = Version::parse(&text).ok_or_else(|| missing("it says no version"))?;
        if git.version < Version::OLDEST {
            return Err(ImporterCode::GitTooOld.refuse(text.trim()));
        }
        Ok((git, beside))
    }

    /// Its version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// One question with a short answer.
    pub(crate) fn ask(
        &self,
        verb: Verb,
        place: Place<'_>,
        arguments: &[&OsStr],
    ) -> Result<Answer, ImportError> {
        self.talk(verb, place, arguments)?.finish(SHORT)
    }

    /// A conversation: the caller writes and reads.
    pub(crate) fn talk(
        &self,
        verb: Verb,
        place: Place<'_>,
        arguments: &[&OsStr],
    ) -> Result<Talk, ImportError> {
        self.start(self.command(verb, place, arguments))
    }

    /// A conversation whose child also holds `kept` open until it is gone. So would a process that another
    /// thread starts at the same moment: then a lock is held longer than it need be, and never less.
    pub(crate) fn talk_holding(
        &self,
        verb: Verb,
        place: Place<'_>,
        arguments: &[&OsStr],
        kept: BorrowedFd<'_>,
    ) -> Result<Talk, ImportError> {
        let flags =
            |f| rustix::io::fcntl_setfd(kept, f).map_err(|e| ImporterCode::GitFailed.refuse(e));
        flags(rustix::io::FdFlags::empty())?;
        let talk = self.talk(verb, place, arguments);
        flags(rustix::io::FdFlags::CLOEXEC)?;
        talk
    }

    fn start(&self, mut command: Command) -> Result<Talk, ImportError> {
        let child = command.spawn().map_err(|e| {
            ImporterCode::GitMissing.refuse(format!("{}: {e}", self.program.to_string_lossy()))
        })?;
        Talk::new(child, DEADLINE)
    }

    fn command(&self, verb: Verb, place: Place<'_>, arguments: &[&OsStr]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .env_clear()
            .envs(ENVIRONMENT)
            .env("GIT_ALLOC_LIMIT", verb.alloc_limit())
            .envs(place.environment())
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(value) = place.fsync() {
            command.args(["-c", value]);
        }
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        for event in HOOK_EVENTS {
            command.arg("-c").arg(format!("hook.{event}.enabled=false"));
        }
        command.args(verb.words()).args(arguments);
        command
    }
}

impl Place<'_> {
    fn environment(self) -> Vec<(&'static str, OsString)> {
        match self {
            Self::Nowhere => vec![("GIT_DIR", "/dev/null".into())],
            Self::Host(dir) => vec![
                ("GIT_DIR", dir.into()),
                ("GIT_SHALLOW_FILE", "/dev/null".into()),
            ],
            // Scratch repositories are only read by git; their refs are written by us. The
            // baseline is their floor, so that nobody asks for its parents.
            Self::Scratch(dir) => vec![
                ("GIT_DIR", dir.into()),
                ("GIT_SHALLOW_FILE", dir.join("shallow").into()),
                ("GIT_QUARANTINE_PATH", dir.join("objects").into()),
            ],
            Self::Index(dir, index) => {
                let mut all = Place::Scratch(dir).environment();
                all.push(("GIT_INDEX_FILE", index.into()));
                all
            }
        }
    }

    /// Where a write must be on disk before it is believed. A scratch repository is gone a moment later,
    /// and git would wait for the disk three times for a pack in it.
    fn fsync(self) -> Option<&'static str> {
        match self {
            Self::Host(_) => Some("core.fsync=all"),
            Self::Scratch(_) | Self::Index(..) => Some("core.fsync=none"),
            Self::Nowhere => None,
        }
    }
}

fn is_program(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// The whole environment, but for places and limits. Each line answers something that was seen to run a
/// program, open a connection, or change what a repository says.
const ENVIRONMENT: [(&str, &str); 24] = [
    ("PATH", "/usr/bin:/bin"),
    ("HOME", "/nonexistent"),
    ("XDG_CONFIG_HOME", "/nonexistent"),
    ("LC_ALL", "C"),
    ("TZ", "UTC"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_SYSTEM", "/dev/null"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_GRAFT_FILE", "/dev/null"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", ""),
    ("GIT_PROTOCOL_FROM_USER", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", "/bin/false"),
    ("SSH_ASKPASS", "/bin/false"),
    ("GIT_SSH_COMMAND", "/bin/false"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "/bin/false"),
    ("GIT_ADVICE", "0"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_COMMITTER_NAME", "flightproof"),
    ("GIT_COMMITTER_EMAIL", "flightproof@localhost"),
];

/// Settings that win over the repository's own configuration.
const SETTINGS: [&str; 29] = [
    // Git complains about the empty graft file it is given; before 2.46 no variable stops that.
    "advice.graftFileDeprecated=false",
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    // The repository may not weaken a sync, nor make git wait for a lock for ever.
    "core.fsyncMethod=fsync",
    "core.filesRefLockTimeout=1000",
    "core.alternateRefsCommand=",
    "core.commitGraph=false",
    "core.multiPackIndex=false",
    "core.packedGitWindowSize=1m",
    "core.packedGitLimit=32m",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.protectHFS=true",
    "core.protectNTFS=true",
    "core.sshCommand=/bin/false",
    "core.pager=cat",
    "pack.threads=1",
    "pack.useBitmaps=false",
    "pack.readReverseIndex=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
    "protocol.allow=never",
    "protocol.ext.allow=never",
    "protocol.file.allow=never",
    "transfer.bundleURI=false",
    "log.showSignature=false",
    "credential.helper=",
    "safe.bareRepository=explicit",
];

/// Every event git knows a hook for. Since 2.54 a hook can be defined in configuration, where
/// `core.hooksPath` does not reach; since 2.55 each event can be switched off.
const HOOK_EVENTS: [&str; 24] = [
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-receive",
    "post-rewrite",
    "post-update",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "pre-receive",
    "prepare-commit-msg",
    "proc-receive",
    "push-to-checkout",
    "reference-transaction",
    "sendemail-validate",
    "update",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_what_git_prints() {
        for (text, version) in [
            ("git version 2.47.3\n", Some((2, 47))),
            ("git version 2.39.5 (Apple Git-154)", Some((2, 39))),
            ("git version 2.55.GIT", Some((2, 55))),
            ("hello", None),
            ("git version x.y", None),
        ] {
            let found = Version::parse(text).map(|v| (v.major, v.minor));
            assert_eq!(found, version, "{text}");
        }
    }

    #[test]
    fn only_the_version_without_a_switch_is_asked_about_configured_hooks() {
        let at = |minor| Version { major: 2, minor };
        assert!(at(54).runs_config_hooks());
        assert!(!at(47).runs_config_hooks() && !at(55).runs_config_hooks());
    }
}
