//! What the kernel says of a container's session: read by the host where it is the same kernel,
//! otherwise by the runner inside. The texts are the same, and so is what must be in them; only how
//! it is known differs.

use super::spec::DockerSpec;
use crate::cgroup::text::{self, Texts};
use crate::cgroup::{Group, Placement};
use crate::local::attest;
use crate::local::bwrap::{CASE_BYTES, DEVICES, EXE_BYTES, ExpectedMount, TMP_BYTES};
use crate::local::identity::parse_map;
use crate::upload::unfit;
use crate::{LimitEvents, Session, SessionCode, SessionError, toolchain};
use flightproof_core::{Digest, escape};
use flightproof_evidence::{EvidenceClass, Reading};
use flightproof_frame::protocol::{Reply, Request, layout};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// User and group ids of a session.
const WIDTH: u32 = 1_000_000;
/// Files of the runner's own process, as they are asked for.
const OWN: [&str; 6] = [
    "status",
    "mountinfo",
    "limits",
    "uid_map",
    "gid_map",
    "net_dev",
];
/// Where the same files are below `/proc/PID`.
const NET_DEV: &str = "net/dev";
/// What says which kernel it is.
const BOOT_ID: &str = "boot_id";

/// A container on this very kernel, seen from the host.
pub(super) struct Near {
    group: Group,
    runner: u32,
    program: Program,
}

/// A program that runs. Its file is hashed once, and again when it is another or was touched: the
/// kernel lets nobody write to a program that runs, and a time of change cannot be set.
#[derive(Default)]
struct Program(Option<(File, Digest)>);

impl Program {
    fn digest(&mut self, path: &str) -> Option<Digest> {
        let program = fs::File::open(path).ok()?;
        let is = File::of(&program).ok()?;
        if let Some((_, digest)) = self.0.filter(|(hashed, _)| *hashed == is) {
            return Some(digest);
        }
        let digest = toolchain::hash(program).ok()?;
        self.0 = Some((is, digest));
        Some(digest)
    }
}

/// One state of one file: whatever is written to it makes it another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct File {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl File {
    fn of(file: &fs::File) -> std::io::Result<Self> {
        let is = file.metadata()?;
        Ok(Self {
            device: is.dev(),
            inode: is.ino(),
            size: is.size(),
            modified: (is.mtime(), is.mtime_nsec()),
            changed: (is.ctime(), is.ctime_nsec()),
        })
    }
}

impl Near {
    /// The container whose first process has this id on the host, if that is where this program
    /// runs too. Nothing an engine says makes a far container near: the kernel's boot id is read
    /// inside, and the process must be in a cgroup that is named for the container.
    pub(super) fn find(boot_id: &str, pid: i64, container: &str) -> Option<Self> {
        let own = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let pid = u32::try_from(pid).ok().filter(|pid| *pid > 1)?;
        if own.trim() != boot_id.trim() {
            return None;
        }
        let cgroup = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
        let mountinfo = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let group = Group::of(Placement::parse(&cgroup, &mountinfo).ok()?);
        let named = |dir: &PathBuf| dir.to_string_lossy().contains(container);
        let joined = |dir: &PathBuf| is_member(dir, pid);
        if !group.dirs().iter().all(|dir| named(dir) && joined(dir)) {
            return None;
        }
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
        let mut children = children.split_whitespace();
        let runner = children.next()?.parse().ok()?;
        let program = Program::default();
        children.next().is_none().then_some(Self {
            group,
            runner,
            program,
        })
    }

    pub(super) fn group(&self) -> &Group {
        &self.group
    }

    pub(super) fn events(&self) -> Result<LimitEvents, SessionError> {
        self.group.events()
    }

    fn texts(&self) -> Texts {
        let mut texts = self.group.texts();
        let proc = PathBuf::from(format!("/proc/{}", self.runner));
        for name in OWN {
            let file = if name == "net_dev" { NET_DEV } else { name };
            if let Ok(text) = fs::read_to_string(proc.join(file)) {
                texts.insert(name.to_owned(), text);
            }
        }
        if let Ok(swaps) = fs::read_to_string("/proc/swaps") {
            texts.insert(text::SWAPS.to_owned(), swaps);
        }
        texts
    }

    /// SHA-256 of the program that the runner's process executes.
    fn program(&mut self) -> Option<Digest> {
        self.program.digest(&format!("/proc/{}/exe", self.runner))
    }
}

fn is_member(dir: &Path, pid: u32) -> bool {
    let line = pid.to_string();
    fs::read_to_string(dir.join("cgroup.procs")).is_ok_and(|text| text.lines().any(|l| l == line))
}

/// Everything the runner can read of its own session.
pub(super) fn ask(session: &mut dyn Session) -> Result<Texts, SessionError> {
    let own = OWN.iter().copied().chain([BOOT_ID, "osrelease"]);
    let files = own.chain(text::names()).map(str::to_owned).collect();
    ask_for(session, files)
}

/// The counters of limits that were hit, as the runner reads them.
pub(super) fn ask_events(session: &mut dyn Session) -> Result<LimitEvents, SessionError> {
    let files = text::EVENTS.map(str::to_owned).into();
    text::events(&ask_for(session, files)?)
}

fn ask_for(session: &mut dyn Session, files: Vec<String>) -> Result<Texts, SessionError> {
    match session.call(&Request::Kernel { files }, &[])? {
        Reply::Kernel { files } => Ok(files),
        other => Err(unfit(&other)),
    }
}

/// One reading per limit and privilege, from the kernel's texts.
///
/// # Errors
/// `SHORTFALL` for the first that is weaker than asked, missing or unreadable.
pub(super) fn readings(
    spec: &DockerSpec,
    program: Digest,
    near: Option<&mut Near>,
    inside: &Texts,
) -> Result<Vec<Reading>, SessionError> {
    let (texts, class) = match &near {
        Some(near) => (&near.texts(), EvidenceClass::KernelFile),
        None => (inside, EvidenceClass::Probe),
    };
    let text = |name: &str| {
        texts.get(name).map(String::as_str).ok_or_else(|| {
            SessionCode::Shortfall.refuse(format_args!("the runner's {name} cannot be read"))
        })
    };
    let status = text("status")?;
    let mountinfo = text("mountinfo")?;
    let mut readings = text::limits(texts, &spec.limits())?;
    readings.extend([
        mapped_ids(spec.base(), text("uid_map")?, text("gid_map")?)?,
        attest::capabilities(status)?,
        attest::equal("no-new-privs", "1", attest::field(status, "NoNewPrivs"))?,
        attest::equal("seccomp-mode", "2", attest::field(status, "Seccomp"))?,
        attest::mount_table(mountinfo, &expected_mounts(spec, mountinfo))?,
        attest::equal(
            "interfaces",
            attest::INTERFACES,
            Some(attest::interfaces(text("net_dev")?)),
        )?,
        attest::core_dumps(text("limits")?)?,
    ]);
    for reading in &mut readings {
        reading.class = class;
    }
    readings.push(program_reading(program, near)?);
    Ok(readings)
}

/// The image's shell compared the digest before it became the program; on this kernel the host
/// reads the program of the running process itself.
fn program_reading(program: Digest, near: Option<&mut Near>) -> Result<Reading, SessionError> {
    let asked = program.to_string();
    let (found, class) = match near {
        None => (asked.clone(), EvidenceClass::Probe),
        Some(near) => {
            let found = near.program().map(|digest| digest.to_string());
            (
                found.unwrap_or_else(|| "unreadable".to_owned()),
                EvidenceClass::KernelFile,
            )
        }
    };
    let mut reading = attest::reading("runner", &asked, &found, found == asked)?;
    reading.class = class;
    Ok(reading)
}

/// Where the ids lie is chosen anew for each session, so only their number is evidence.
fn mapped_ids(base: u32, users: &str, groups: &str) -> Result<Reading, SessionError> {
    let expected = Some(vec![(0, base, WIDTH)]);
    let holds = parse_map(users) == expected && parse_map(groups) == expected;
    let found = if holds {
        WIDTH.to_string()
    } else {
        escape(users, 80)
    };
    attest::reading("mapped-ids", &WIDTH.to_string(), &found, holds)
}

/// What a session's tree is made of. Whether `/lib` is a directory or a link is the image's choice.
fn expected_mounts(spec: &DockerSpec, mountinfo: &str) -> Vec<ExpectedMount> {
    let bound = |point: &str| ExpectedMount {
        point: point.to_owned(),
        read_only: true,
        devices: false,
        tmpfs: None,
    };
    let present = |point: &&&str| {
        mountinfo
            .lines()
            .any(|l| l.split(' ').nth(4) == Some(**point))
    };
    let mut mounts: Vec<ExpectedMount> = ALWAYS.map(bound).into();
    mounts.extend(SOMETIMES.iter().filter(present).map(|point| bound(point)));
    mounts.extend(DEVICES.map(|name| ExpectedMount {
        read_only: false,
        devices: true,
        ..bound(&format!("/dev/{name}"))
    }));
    let places = [
        ("/flight", spec.scratch_bytes),
        (layout::EXE, EXE_BYTES),
        (layout::CASE, CASE_BYTES),
        ("/tmp", TMP_BYTES),
    ];
    mounts.extend(places.map(|(place, size)| ExpectedMount {
        read_only: false,
        // A tmpfs has whole pages.
        tmpfs: Some(size.next_multiple_of(PAGE)),
        ..bound(place)
    }));
    mounts
}

const ALWAYS: [&str; 4] = ["/", "/usr", layout::TOOLCHAIN, layout::RUNNER];
const SOMETIMES: [&str; 4] = ["/bin", "/lib", "/lib64", "/etc/alternatives"];
/// Largest common page, bytes.
const PAGE: u64 = 64 << 10;

#[cfg(test)]
mod tests {
    use super::super::spec::tests::spec;
    use super::*;

    fn table(spec: &DockerSpec) -> String {
        expected_mounts(spec, "")
            .iter()
            .map(|m| {
                let access = if m.read_only { "ro" } else { "rw" };
                let device = if m.devices { "" } else { ",nodev" };
                let size = m
                    .tmpfs
                    .map_or(String::new(), |s| format!(",size={}k", s / 1024));
                format!(
                    "1 1 0:1 / {} {access},nosuid{device} - tmpfs t rw{size}\n",
                    m.point
                )
            })
            .collect()
    }

    fn inside(spec: &DockerSpec) -> Texts {
        let map = format!("0 {} 1000000\n", spec.base());
        let memory = spec.memory_bytes.to_string();
        [
            ("status", "CapInh:\t0\nCapPrm:\t2001eb\nCapEff:\t2001eb\nCapBnd:\t2001eb\nCapAmb:\t0\nNoNewPrivs:\t1\nSeccomp:\t2\n"),
            ("mountinfo", &table(spec)),
            ("limits", "Max core file size 1 1 bytes\n"),
            ("uid_map", &map),
            ("gid_map", &map),
            ("net_dev", "Inter-|\n face |\n    lo: 0\n"),
            ("v2-memory", &memory),
            ("v2-swap", "0"),
            ("v2-pids", "64"),
            ("v2-cpu", "200000 100000"),
        ]
        .map(|(name, text)| (name.to_owned(), text.to_owned()))
        .into()
    }

    fn judged(texts: &Texts) -> Result<Vec<Reading>, SessionError> {
        readings(&spec(), Digest::of(b"program"), None, texts)
    }

    #[test]
    fn what_an_honest_runner_reads_passes_as_a_probe() {
        let readings = judged(&inside(&spec())).unwrap();
        assert_eq!(readings.len(), 12);
        assert!(readings.iter().all(|r| r.class == EvidenceClass::Probe));
    }

    #[test]
    fn every_text_that_is_weaker_or_missing_is_a_shortfall() {
        let extra = format!(
            "{}9 1 0:1 / /host rw,nosuid,nodev - ext4 d rw\n",
            table(&spec())
        );
        let lies = [
            ("status", "CapBnd:\t0"),
            ("mountinfo", extra.as_str()),
            ("limits", "Max core file size 0 unlimited bytes\n"),
            ("uid_map", "0 0 4294967295\n"),
            ("gid_map", "0 0 1\n"),
            ("net_dev", "a|\nb|\n lo: 0\n eth0: 0\n"),
            ("v2-memory", "max"),
            ("v2-swap", "max"),
            ("v2-pids", "max"),
            ("v2-cpu", "max 100000"),
        ];
        for (name, lie) in lies {
            for spoiled in [Some(lie), None] {
                let mut texts = inside(&spec());
                texts.remove(name);
                texts.extend(spoiled.map(|text| (name.to_owned(), text.to_owned())));
                let refused = judged(&texts).unwrap_err();
                assert_eq!(refused.code, SessionCode::Shortfall, "{name}");
            }
        }
        let status = inside(&spec())["status"].clone();
        for (right, wrong) in [
            ("NoNewPrivs:\t1", "NoNewPrivs:\t0"),
            ("Seccomp:\t2", "Seccomp:\t0"),
            ("CapEff:\t2001eb", "CapEff:\t1ffffffffff"),
        ] {
            let mut texts = inside(&spec());
            texts.insert("status".to_owned(), status.replace(right, wrong));
            assert!(judged(&texts).is_err(), "{wrong}");
        }
    }

    /// An engine that names a process of this machine for one far away gains nothing.
    #[test]
    fn a_container_is_near_only_if_its_process_is_in_a_group_named_for_it() {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        let this = i64::from(std::process::id());
        assert!(Near::find("another", this, "").is_none());
        assert!(Near::find(&boot, this, "0123456789abcdef").is_none());
        for pid in [0, 1, -1, i64::MAX] {
            assert!(Near::find(&boot, pid, "").is_none());
        }
    }

    #[test]
    fn a_program_is_hashed_again_when_its_file_is_another_or_was_touched() {
        let this = "/proc/self/exe";
        let mut program = Program::default();
        let digest = program.digest(this).unwrap();
        assert_eq!(digest, Digest::of(&fs::read(this).unwrap()));
        let (is, remembered) = (program.0.unwrap().0, Digest::of(b"remembered"));
        program.0 = Some((is, remembered));
        assert_eq!(program.digest(this), Some(remembered));
        let (size, inode) = (is.size + 1, is.inode + 1);
        for other in [
            File { size, ..is },
            File { inode, ..is },
            File {
                device: is.device + 1,
                ..is
            },
            File {
                modified: (is.modified.0, is.modified.1 ^ 1),
                ..is
            },
            File {
                changed: (is.changed.0, is.changed.1 ^ 1),
                ..is
            },
        ] {
            program.0 = Some((other, remembered));
            assert_eq!(program.digest(this), Some(digest), "{other:?}");
        }
        assert_eq!(program.digest("/proc/self/no-such-file"), None);
    }
}
