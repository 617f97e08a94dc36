//! What the host reads back of a started sandbox, from the kernel, before anything of a candidate
//! goes into it. Anything weaker than asked, and anything that cannot be read, is a shortfall.

use super::bwrap::{CAPABILITIES, ExpectedMount};
use super::identity::{Identity, parse_map};
use crate::cgroup::Group;
use crate::{SessionCode, SessionError};
use flightproof_core::escape;
use flightproof_evidence::{EvidenceClass, Reading};
use std::fs;
use std::path::{Path, PathBuf};

/// Namespaces a session must not share with the host.
const NAMESPACES: [&str; 6] = ["user", "pid", "mnt", "net", "ipc", "uts"];
/// The whole environment of the runner: bubblewrap sets this one variable itself.
const ENVIRONMENT: &str = "PWD=/";
/// The only network interface: a loopback of its own.
pub(crate) const INTERFACES: &str = "lo";

/// Reads the sandbox whose first process is `pid`.
pub(super) fn readings(
    pid: u32,
    identity: &Identity,
    mounts: &[ExpectedMount],
    group: &Group,
    block: &Path,
) -> Result<Vec<Reading>, SessionError> {
    let proc = Proc(pid);
    let status = proc.text("status")?;
    Ok(vec![
        membership(pid, group)?,
        ids(&status, identity)?,
        maps(&proc, identity)?,
        capabilities(&status)?,
        equal("no-new-privs", "1", field(&status, "NoNewPrivs"))?,
        namespaces(&proc)?,
        mount_table(&proc.text("mountinfo")?, mounts)?,
        equal("environment", ENVIRONMENT, Some(proc.environment()?))?,
        descriptors(&proc, block)?,
        equal(
            "interfaces",
            INTERFACES,
            Some(interfaces(&proc.text("net/dev")?)),
        )?,
        core_dumps(&proc.text("limits")?)?,
    ])
}

/// The kernel's files about one process.
struct Proc(u32);

impl Proc {
    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{name}", self.0))
    }

    fn text(&self, name: &str) -> Result<String, SessionError> {
        fs::read_to_string(self.path(name)).map_err(|e| unreadable(name, &e))
    }

    fn link(&self, name: &str) -> Result<String, SessionError> {
        fs::read_link(self.path(name))
            .map(|target| target.to_string_lossy().into_owned())
            .map_err(|e| unreadable(name, &e))
    }

    fn environment(&self) -> Result<String, SessionError> {
        let text = self.text("environ")?;
        Ok(text.trim_end_matches('\0').replace('\0', " "))
    }
}

fn membership(pid: u32, group: &Group) -> Result<Reading, SessionError> {
    let line = pid.to_string();
    let inside = |dir: &&PathBuf| {
        fs::read_to_string(dir.join("cgroup.procs"))
            .is_ok_and(|text| text.lines().any(|l| l == line))
    };
    let asked = group.dirs().len().to_string();
    let found = group.dirs().iter().filter(inside).count().to_string();
    equal("cgroup-memberships", &asked, Some(found))
}

/// Real, effective, saved and file system id of user and group, and no further group.
fn ids(status: &str, identity: &Identity) -> Result<Reading, SessionError> {
    let [users, groups] = identity.maps();
    let expected = |map: &[(u32, u32, u32)]| map.first().map(|(_, outside, _)| *outside);
    let all_are = |key: &str, id: Option<u32>| {
        let text = field(status, key).unwrap_or_default();
        let ids: Vec<Option<u32>> = text.split_whitespace().map(|n| n.parse().ok()).collect();
        ids.len() == 4 && id.is_some() && ids.iter().all(|found| *found == id)
    };
    let dropped = identity.drop_to().is_none_or(|id| id != 0)
        && (identity.drop_to().is_none() || field(status, "Groups").is_some_and(|g| g.is_empty()));
    let holds = all_are("Uid", expected(&users)) && all_are("Gid", expected(&groups)) && dropped;
    let found = if holds { "unprivileged" } else { "other" };
    equal("host-ids", "unprivileged", Some(found.to_owned()))
}

/// Where the ids lie is chosen anew for each session, so only the number of ids is evidence.
fn maps(proc: &Proc, identity: &Identity) -> Result<Reading, SessionError> {
    let [users, groups] = identity.maps();
    let width: u32 = users.iter().map(|(_, _, count)| count).sum();
    let holds = parse_map(&proc.text("uid_map")?) == Some(users)
        && parse_map(&proc.text("gid_map")?) == Some(groups);
    let found = if holds {
        width.to_string()
    } else {
        "other".to_owned()
    };
    equal("mapped-ids", &width.to_string(), Some(found))
}

/// No capability beyond the runner's, not even in the bounding set.
pub(crate) fn capabilities(status: &str) -> Result<Reading, SessionError> {
    let asked = CAPABILITIES
        .iter()
        .fold(0u64, |set, (_, bit)| set | 1 << bit);
    let mut union = Some(0);
    for key in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        let set = field(status, key).and_then(|text| u64::from_str_radix(&text, 16).ok());
        union = union.zip(set).map(|(all, set)| all | set);
    }
    let holds = union.is_some_and(|found| found & !asked == 0);
    let found = union.map_or("unreadable".to_owned(), |set| format!("{set:016x}"));
    reading("capabilities", &format!("{asked:016x}"), &found, holds)
}

fn namespaces(proc: &Proc) -> Result<Reading, SessionError> {
    let host = Proc(std::process::id());
    let mut own = Vec::new();
    for name in NAMESPACES {
        let link = format!("ns/{name}");
        if proc.link(&link)? != host.link(&link)? {
            own.push(name);
        }
    }
    equal("namespaces", &NAMESPACES.join(" "), Some(own.join(" ")))
}

/// Exactly the expected mounts, none weaker.
pub(crate) fn mount_table(
    mountinfo: &str,
    expected: &[ExpectedMount],
) -> Result<Reading, SessionError> {
    let asked = format!("{} as asked", expected.len());
    let found = match mount_fault(mountinfo, expected) {
        None => asked.clone(),
        Some(fault) => fault,
    };
    equal("mounts", &asked, Some(found))
}

fn mount_fault(mountinfo: &str, expected: &[ExpectedMount]) -> Option<String> {
    let mut seen = Vec::new();
    for line in mountinfo.lines() {
        let Some(mount) = Mount::parse(line) else {
            return Some(format!("unreadable: {}", escape(line, 80)));
        };
        let Some(wanted) = expected.iter().find(|e| e.point == mount.point) else {
            return Some(format!("unexpected {}", escape(mount.point, 80)));
        };
        if seen.contains(&mount.point) {
            return Some(format!("twice {}", escape(mount.point, 80)));
        }
        if let Some(fault) = mount.weaker_than(wanted) {
            return Some(format!("{} {fault}", wanted.point));
        }
        seen.push(mount.point);
    }
    let missing = expected.iter().find(|e| !seen.contains(&e.point.as_str()));
    missing.map(|e| format!("missing {}", e.point))
}

/// One line of a mount table.
struct Mount<'a> {
    point: &'a str,
    options: Vec<&'a str>,
    kind: &'a str,
    own_options: Vec<&'a str>,
}

impl<'a> Mount<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (before, after) = line.split_once(" - ")?;
        let mut fields = before.split(' ').skip(4);
        let (point, options) = (fields.next()?, fields.next()?);
        let mut rest = after.split(' ');
        let kind = rest.next()?;
        Some(Self {
            point,
            options: options.split(',').collect(),
            kind,
            own_options: rest.nth(1)?.split(',').collect(),
        })
    }

    fn weaker_than(&self, wanted: &ExpectedMount) -> Option<&'static str> {
        let has = |option: &str| self.options.contains(&option);
        if wanted.read_only && !has("ro") {
            return Some("writable");
        }
        if !has("nosuid") {
            return Some("without nosuid");
        }
        if !wanted.devices && !has("nodev") {
            return Some("without nodev");
        }
        let limit = wanted.tmpfs?;
        let size = self.own_options.iter().find_map(|o| tmpfs_size(o));
        let bounded = self.kind == "tmpfs" && size.is_some_and(|size| size <= limit);
        (!bounded).then_some("not of the size asked")
    }
}

/// `size=1048576k`, as a tmpfs shows itself.
fn tmpfs_size(option: &str) -> Option<u64> {
    let kibibytes = option.strip_prefix("size=")?.strip_suffix('k')?;
    kibibytes.parse::<u64>().ok()?.checked_mul(1024)
}

/// Nothing open but pipes, and devices and kernel objects of the sandbox itself. One named pipe is
/// among them: bubblewrap does not close the reading end of `block`, which has no writer by now.
fn descriptors(proc: &Proc, block: &Path) -> Result<Reading, SessionError> {
    let dir = proc.path("fd");
    let entries = fs::read_dir(&dir).map_err(|e| unreadable("fd", &e))?;
    let mut foreign = None;
    for entry in entries {
        let path = entry.map_err(|e| unreadable("fd", &e))?.path();
        // One that was closed since the listing is no longer open.
        if let Ok(target) = fs::read_link(&path)
            && target != block
            && !is_harmless(&target)
        {
            foreign = Some(escape(target.to_string_lossy().as_bytes(), 80));
        }
    }
    equal(
        "descriptors",
        "pipes only",
        Some(foreign.unwrap_or_else(|| "pipes only".to_owned())),
    )
}

fn is_harmless(target: &Path) -> bool {
    let text = target.to_string_lossy();
    text.starts_with("pipe:[") || text.starts_with("anon_inode:[") || text == "/dev/null"
}

pub(crate) fn interfaces(net_dev: &str) -> String {
    let names = net_dev.lines().filter_map(|l| l.split_once(':'));
    let names: Vec<&str> = names.map(|(name, _)| name.trim()).collect();
    names.join(" ")
}

pub(crate) fn core_dumps(limits: &str) -> Result<Reading, SessionError> {
    let most = limits
        .lines()
        .find_map(|l| l.strip_prefix("Max core file size"))
        .and_then(|rest| rest.split_whitespace().nth(1))
        .unwrap_or("unreadable");
    reading("core-bytes", "1", most, matches!(most, "0" | "1"))
}

pub(crate) fn field(status: &str, key: &str) -> Option<String> {
    status.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name == key).then(|| value.trim().to_owned())
    })
}

pub(crate) fn equal(
    name: &str,
    asked: &str,
    found: Option<String>,
) -> Result<Reading, SessionError> {
    let found = found.unwrap_or_else(|| "unreadable".to_owned());
    reading(name, asked, &found, found == asked)
}

pub(crate) fn reading(
    name: &str,
    asked: &str,
    found: &str,
    holds: bool,
) -> Result<Reading, SessionError> {
    if !holds {
        return Err(SessionCode::Shortfall.refuse(format_args!(
            "{name}: asked {asked}, found {}",
            escape(found, 200)
        )));
    }
    Ok(Reading {
        name: name.to_owned(),
        asked: asked.to_owned(),
        found: found.to_owned(),
        class: EvidenceClass::KernelFile,
    })
}

fn unreadable(name: &str, error: &std::io::Error) -> SessionError {
    SessionCode::Shortfall.refuse(format_args!("the runner's {name} cannot be read: {error}"))
}

#[cfg(test)]
mod tests {
    use super::super::bwrap::tests::sandbox;
    use super::*;

    const IDENTITY: Identity = Identity::Unprivileged {
        base: 2_000_000_000,
    };
    const STATUS: &str = "Name:\tflights\nUid:\t2000000000\t2000000000\t2000000000\t2000000000\n\
        Gid:\t2000000000\t2000000000\t2000000000\t2000000000\nGroups:\t \n\
        CapInh:\t0000000000000000\nCapPrm:\t00000000002001eb\nCapEff:\t00000000002001eb\n\
        CapBnd:\t00000000002001eb\nCapAmb:\t0000000000000000\nNoNewPrivs:\t1\n";

    fn table() -> String {
        sandbox()
            .mounts()
            .iter()
            .enumerate()
            .map(|(i, m)| {
                let access = if m.read_only { "ro" } else { "rw" };
                let device = if m.devices { "" } else { ",nodev" };
                let size = m
                    .tmpfs
                    .map_or(String::new(), |s| format!(",size={}k", s / 1024));
                let point = &m.point;
                format!(
                    "{i} 1 0:1 / {point} {access},nosuid{device},relatime - tmpfs tmpfs rw{size}\n"
                )
            })
            .collect()
    }

    #[test]
    fn a_process_of_the_host_is_taken_for_no_sandbox() {
        let host = Proc(std::process::id());
        let status = host.text("status").unwrap();
        let mounts = host.text("mountinfo").unwrap();
        let environment = host.environment().unwrap();
        for (name, reading) in [
            ("host-ids", ids(&status, &IDENTITY)),
            ("mapped-ids", maps(&host, &IDENTITY)),
            ("namespaces", namespaces(&host)),
            ("mounts", mount_table(&mounts, &sandbox().mounts())),
            (
                "environment",
                equal("environment", ENVIRONMENT, Some(environment)),
            ),
        ] {
            let refused = reading.unwrap_err();
            assert_eq!(refused.code, SessionCode::Shortfall);
            assert!(refused.detail.starts_with(name), "{refused}");
        }
    }

    #[test]
    fn the_expected_mounts_pass() {
        assert_eq!(mount_fault(&table(), &sandbox().mounts()), None);
    }

    #[test]
    fn any_other_weaker_missing_or_doubled_mount_is_named() {
        let table = table();
        let extra = format!("{table}99 1 0:1 / /root rw,nosuid,nodev - ext4 /dev/vda rw\n");
        let doubled = format!("{table}{}\n", table.lines().next().unwrap());
        let without: String = table.lines().skip(1).map(|l| format!("{l}\n")).collect();
        let cases = [
            (extra, "unexpected /root"),
            (doubled, "twice /"),
            (without, "missing /"),
            (table.replace("/usr ro,", "/usr rw,"), "/usr writable"),
            (
                table.replace("/exe rw,nosuid,", "/exe rw,"),
                "/exe without nosuid",
            ),
            (
                table.replace("/case rw,nosuid,nodev", "/case rw,nosuid"),
                "/case without nodev",
            ),
            (
                table.replace("size=1024k", "size=2048k"),
                "/flight not of the size asked",
            ),
            (
                table.replace(",size=1024k", ""),
                "/flight not of the size asked",
            ),
            ("nonsense\n".to_owned(), "unreadable"),
        ];
        for (text, fault) in cases {
            let found = mount_fault(&text, &sandbox().mounts()).unwrap();
            assert!(found.starts_with(fault), "{found} for {fault}");
        }
    }

    #[test]
    fn the_status_of_a_dropped_runner_passes() {
        assert!(ids(STATUS, &IDENTITY).is_ok());
        assert_eq!(capabilities(STATUS).unwrap().found, "00000000002001eb");
    }

    #[test]
    fn one_id_one_group_or_one_capability_more_is_a_shortfall() {
        let first = STATUS.replacen("2000000000", "0", 1);
        let group = STATUS.replace("Groups:\t ", "Groups:\t0 ");
        let gid = STATUS.replace("Gid:\t2000000000", "Gid:\t0");
        for status in [first.as_str(), &group, &gid, ""] {
            assert_eq!(
                ids(status, &IDENTITY).unwrap_err().code,
                SessionCode::Shortfall
            );
        }
        let bounding = STATUS.replace("CapBnd:\t00000000002001eb", "CapBnd:\t000001ffffffffff");
        let unreadable = STATUS.replace("CapEff:\t", "CapEff:\tx");
        for status in [bounding, unreadable] {
            let refused = capabilities(&status).unwrap_err();
            assert!(refused.detail.starts_with("capabilities"), "{refused}");
        }
    }

    #[test]
    fn every_interface_is_seen_and_a_core_dump_is_a_shortfall() {
        let dev = "Inter-|   Receive\n face |bytes\n    lo:       0\n  eth0:  5\n";
        assert_eq!(interfaces(dev), "lo eth0");
        let limits = "Max core file size        0        unlimited        bytes\n";
        assert!(core_dumps(limits).is_err());
        assert!(core_dumps(&limits.replace("unlimited", "1")).is_ok());
    }

    #[test]
    fn only_pipes_and_kernel_objects_are_harmless() {
        for good in ["pipe:[1]", "anon_inode:[pidfd]", "/dev/null"] {
            assert!(is_harmless(Path::new(good)), "{good}");
        }
        for bad in [
            "socket:[1]",
            "/etc/passwd",
            "/dev/vda",
            "/tmp/block (deleted)",
        ] {
            assert!(!is_harmless(Path::new(bad)), "{bad}");
        }
    }
}
