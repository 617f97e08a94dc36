//! What bubblewrap is told: pure functions from a [`Sandbox`] to its arguments and to the mounts
//! that must then be there.

use crate::toolchain;
use flightproof_frame::protocol::layout;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Size of the place for promoted programs, bytes: some dozens of debug builds.
pub(crate) const EXE_BYTES: u64 = 512 << 20;
/// Size of a case's scratch, bytes.
pub(crate) const CASE_BYTES: u64 = 64 << 20;
/// Size of `/tmp`, bytes. Only the runner could write there.
pub(crate) const TMP_BYTES: u64 = 16 << 20;
/// What the runner needs to give each case its own walls; nothing else is left to it.
pub(super) const CAPABILITIES: [(&str, u32); 8] = [
    ("CAP_CHOWN", 0),
    ("CAP_DAC_OVERRIDE", 1),
    ("CAP_FOWNER", 3),
    ("CAP_KILL", 5),
    ("CAP_SETGID", 6),
    ("CAP_SETUID", 7),
    ("CAP_SETPCAP", 8),
    ("CAP_SYS_ADMIN", 21),
];
/// The devices programs expect; none of them reaches anything.
pub(crate) const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];
/// Directories of the root that are symlinks into `/usr` on most systems.
const ROOT_DIRS: [&str; 4] = ["bin", "lib", "lib64", "sbin"];
/// The kernel's files about processes. The kernel lets a run have its own only where there is one.
const PROC: &str = "/proc";
/// All that the compiler driver needs of `/etc`: `cc` and `ld` are links through it.
const ALTERNATIVES: &str = "/etc/alternatives";

/// What of the host goes into a sandbox, and how large its own places are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sandbox {
    /// Where the toolchain lies, as bubblewrap sees the host.
    pub(super) toolchain: PathBuf,
    /// Which of [`toolchain::PARTS`] it has.
    pub(super) parts: Vec<String>,
    /// Where the runner program lies, as bubblewrap sees the host.
    pub(super) runner: PathBuf,
    /// The host's `/bin` and the like.
    pub(super) root: Vec<RootEntry>,
    /// Where an agent's program lies, as bubblewrap sees the host, if one works in it.
    pub(super) agent: Option<PathBuf>,
    /// Whether the host has `/etc/alternatives`.
    pub(super) alternatives: bool,
    /// Size of the build's scratch, bytes.
    pub(super) scratch_bytes: u64,
}

/// One directory of the host's root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RootEntry {
    /// A symlink into `/usr`: its name and target.
    Link(String, String),
    /// A directory of its own.
    Directory(String),
}

/// One mount that must be in the sandbox, and nothing beside them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExpectedMount {
    /// Where.
    pub(crate) point: String,
    /// Whether it must be read-only.
    pub(crate) read_only: bool,
    /// Whether devices may work there: single device nodes only.
    pub(crate) devices: bool,
    /// A tmpfs of that size in bytes at most.
    pub(crate) tmpfs: Option<u64>,
}

impl Sandbox {
    /// The sandbox of this host, with sources at these places.
    pub(super) fn of_host(sysroot: &Path, scratch_bytes: u64) -> Self {
        let parts = toolchain::PARTS.iter().filter(|p| sysroot.join(p).is_dir());
        Self {
            toolchain: sysroot.to_owned(),
            parts: parts.map(|p| (*p).to_owned()).collect(),
            runner: PathBuf::new(),
            agent: None,
            root: ROOT_DIRS.iter().filter_map(|n| root_entry(n)).collect(),
            alternatives: Path::new(ALTERNATIVES).is_dir(),
            scratch_bytes,
        }
    }

    /// Every argument after argv\[0\]. `info` receives the sandbox's process id, `block` holds the
    /// sandbox back until its user ids are mapped.
    pub(super) fn argv(&self, info: i32, block: i32) -> Vec<String> {
        let mut argv = Argv::default();
        for flag in [
            "--unshare-user",
            "--unshare-ipc",
            "--unshare-pid",
            "--unshare-net",
            "--unshare-uts",
            "--unshare-cgroup-try",
            "--die-with-parent",
            "--new-session",
            "--as-pid-1",
            "--clearenv",
        ] {
            argv.add([flag]);
        }
        argv.add(["--userns-block-fd", &block.to_string()]);
        argv.add(["--info-fd", &info.to_string()]);
        argv.add(["--uid", "0", "--gid", "0", "--hostname", "flight"]);
        for (name, _) in CAPABILITIES {
            argv.add(["--cap-add", name]);
        }
        self.host_parts(&mut argv);
        for (place, size) in self.places() {
            argv.add([
                "--perms",
                "0755",
                "--size",
                &size.to_string(),
                "--tmpfs",
                place,
            ]);
        }
        for part in &self.parts {
            let target = format!("{}/{part}", layout::TOOLCHAIN);
            argv.add(["--ro-bind", &text(&self.toolchain.join(part)), &target]);
        }
        argv.add(["--ro-bind", &text(&self.runner), layout::RUNNER]);
        if let Some(agent) = &self.agent {
            argv.add(["--ro-bind", &text(agent), layout::AGENT_PROGRAM]);
            argv.add(["--proc", PROC]);
        }
        argv.add(["--remount-ro", "/usr/local", "--remount-ro", "/"]);
        argv.add(["--", layout::RUNNER, "__runner"]);
        argv.0
    }

    fn host_parts(&self, argv: &mut Argv) {
        argv.add(["--ro-bind", "/usr", "/usr", "--tmpfs", "/usr/local"]);
        for entry in &self.root {
            match entry {
                RootEntry::Link(name, target) => {
                    argv.add(["--symlink", target, &format!("/{name}")]);
                }
                RootEntry::Directory(name) => {
                    let dir = format!("/{name}");
                    argv.add(["--ro-bind", &dir, &dir]);
                }
            }
        }
        for dir in ["/etc", "/dev", layout::TOOLCHAIN, "/runner"] {
            argv.add(["--perms", "0755", "--dir", dir]);
        }
        if self.alternatives {
            argv.add(["--ro-bind", ALTERNATIVES, ALTERNATIVES]);
        }
        for name in DEVICES {
            let device = format!("/dev/{name}");
            argv.add(["--dev-bind", &device, &device]);
        }
    }

    fn places(&self) -> [(&'static str, u64); 4] {
        [
            ("/flight", self.scratch_bytes),
            (layout::EXE, EXE_BYTES),
            (layout::CASE, CASE_BYTES),
            ("/tmp", TMP_BYTES),
        ]
    }

    /// Every mount the sandbox must have.
    pub(super) fn mounts(&self) -> Vec<ExpectedMount> {
        let bound = |point: &str| ExpectedMount {
            point: point.to_owned(),
            read_only: true,
            devices: false,
            tmpfs: None,
        };
        let mut mounts = vec![bound("/"), bound("/usr"), bound("/usr/local")];
        for entry in &self.root {
            if let RootEntry::Directory(name) = entry {
                mounts.push(bound(&format!("/{name}")));
            }
        }
        if self.alternatives {
            mounts.push(bound(ALTERNATIVES));
        }
        mounts.extend(DEVICES.map(|name| ExpectedMount {
            read_only: false,
            devices: true,
            ..bound(&format!("/dev/{name}"))
        }));
        mounts.extend(self.places().map(|(place, size)| ExpectedMount {
            read_only: false,
            tmpfs: Some(size),
            ..bound(place)
        }));
        let parts = self.parts.iter();
        mounts.extend(parts.map(|part| bound(&format!("{}/{part}", layout::TOOLCHAIN))));
        mounts.push(bound(layout::RUNNER));
        if self.agent.is_some() {
            mounts.push(bound(layout::AGENT_PROGRAM));
            mounts.push(ExpectedMount {
                read_only: false,
                ..bound(PROC)
            });
        }
        mounts
    }
}

fn root_entry(name: &str) -> Option<RootEntry> {
    let path = Path::new("/").join(name);
    match std::fs::read_link(&path) {
        Ok(target) => {
            let target = target.to_str()?.to_owned();
            Some(RootEntry::Link(name.to_owned(), target))
        }
        Err(_) => path.is_dir().then(|| RootEntry::Directory(name.to_owned())),
    }
}

/// Paths were checked to be UTF-8 when the specification was.
fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[derive(Default)]
struct Argv(Vec<String>);

impl Argv {
    fn add<const N: usize>(&mut self, words: [&str; N]) {
        self.0.extend(words.map(str::to_owned));
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn sandbox() -> Sandbox {
        Sandbox {
            toolchain: "/tc".into(),
            parts: vec!["bin".to_owned(), "lib".to_owned()],
            runner: "/session/runner/flights".into(),
            agent: None,
            root: vec![
                RootEntry::Link("bin".to_owned(), "usr/bin".to_owned()),
                RootEntry::Directory("lib64".to_owned()),
            ],
            alternatives: true,
            scratch_bytes: 1 << 20,
        }
    }

    fn after<'a>(argv: &'a [String], flag: &str) -> Vec<&'a str> {
        argv.windows(2)
            .filter(|w| w[0] == flag)
            .map(|w| w[1].as_str())
            .collect()
    }

    #[test]
    fn every_namespace_is_asked_for_and_nothing_weakens_it() {
        let argv = sandbox().argv(3, 4);
        for flag in [
            "--unshare-user",
            "--unshare-ipc",
            "--unshare-pid",
            "--unshare-net",
            "--unshare-uts",
            "--die-with-parent",
            "--new-session",
            "--clearenv",
            "--as-pid-1",
        ] {
            assert!(argv.iter().any(|a| a == flag), "{flag}");
        }
        for flag in [
            "--proc",
            "--dev",
            "--bind",
            "--share-net",
            "--unshare-user-try",
            "--setenv",
        ] {
            assert!(argv.iter().all(|a| a != flag), "{flag}");
        }
    }

    #[test]
    fn of_the_host_only_the_named_parts_are_bound() {
        let argv = sandbox().argv(3, 4);
        assert_eq!(
            after(&argv, "--ro-bind"),
            [
                "/usr",
                "/lib64",
                "/etc/alternatives",
                "/tc/bin",
                "/tc/lib",
                "/session/runner/flights"
            ]
        );
        assert_eq!(
            after(&argv, "--dev-bind"),
            [
                "/dev/null",
                "/dev/zero",
                "/dev/full",
                "/dev/random",
                "/dev/urandom"
            ]
        );
        assert_eq!(after(&argv, "--symlink"), ["usr/bin"]);
    }

    #[test]
    fn every_tmpfs_but_the_masked_one_has_a_size_and_the_root_ends_read_only() {
        let argv = sandbox().argv(3, 4);
        let sized: Vec<_> = argv
            .windows(4)
            .filter(|w| w[0] == "--size")
            .map(|w| (w[2].as_str(), w[3].as_str()))
            .collect();
        assert_eq!(
            sized,
            ["/flight", "/exe", "/case", "/tmp"].map(|p| ("--tmpfs", p))
        );
        assert_eq!(after(&argv, "--tmpfs").len(), 5);
        assert_eq!(after(&argv, "--remount-ro"), ["/usr/local", "/"]);
        assert_eq!(
            argv[argv.len() - 3..],
            ["--", "/runner/flights", "__runner"]
        );
    }

    /// One that an agent works in, which judges nothing.
    fn with_agent() -> Sandbox {
        Sandbox {
            agent: Some("/session/runner/agent".into()),
            ..sandbox()
        }
    }

    #[test]
    fn only_an_agent_has_processes_to_look_at_and_a_program_of_the_host() {
        let argv = with_agent().argv(3, 4);
        assert_eq!(after(&argv, "--proc"), ["/proc"]);
        assert!(after(&argv, "--ro-bind").contains(&"/session/runner/agent"));
        assert_eq!(after(&sandbox().argv(3, 4), "--proc"), [] as [&str; 0]);
    }

    #[test]
    fn every_mount_point_of_the_arguments_is_expected_and_no_other() {
        [sandbox(), with_agent()].iter().for_each(are_as_made);
    }

    fn are_as_made(sandbox: &Sandbox) {
        let argv = sandbox.argv(3, 4);
        let mut made: Vec<&str> = argv
            .windows(3)
            .filter(|w| w[0] == "--ro-bind" || w[0] == "--dev-bind")
            .map(|w| w[2].as_str())
            .chain(after(&argv, "--tmpfs"))
            .chain(after(&argv, "--proc"))
            .chain(["/"])
            .collect();
        made.sort_unstable();
        let mounts = sandbox.mounts();
        let mut expected: Vec<&str> = mounts.iter().map(|m| m.point.as_str()).collect();
        expected.sort_unstable();
        assert_eq!(made, expected);
    }
}
