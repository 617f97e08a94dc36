use super::group::{Applied, Limits, PERIOD_US, read, write};
use super::placement::CONTROLLERS;
use crate::{SessionCode, SessionError};
use std::path::{Path, PathBuf};

/// Where our own process goes so that its delegated group may have children with limits: a group
/// with processes of its own cannot.
const HOST_LEAF: &str = "flightproof-host";

/// The group below which sessions are made, ready for children with limits.
///
/// As root that is the top of the hierarchy, which may have processes and children. As an ordinary
/// user it is the own, delegated group, after our process moved into a leaf of it.
pub(super) fn parent(root: &Path, own: &Path, privileged: bool) -> Result<PathBuf, SessionError> {
    let parent = match (privileged, own.file_name()) {
        (true, _) => root.to_owned(),
        (false, Some(name)) if name == HOST_LEAF => own.parent().unwrap_or(own).to_owned(),
        (false, _) => own.to_owned(),
    };
    let offered = read(&parent.join("cgroup.controllers"))?;
    let lacking = |controller: &&str| !offered.split(' ').any(|o| o == *controller);
    if let Some(controller) = CONTROLLERS.iter().find(|c| lacking(c)) {
        let code = if privileged {
            SessionCode::NoControllers
        } else {
            SessionCode::NoDelegation
        };
        return Err(code.refuse(format_args!(
            "{controller} is not offered in {}",
            parent.display()
        )));
    }
    if !privileged && parent == own {
        retire_to_leaf(&parent)?;
    }
    enable(&parent)?;
    Ok(parent)
}

fn retire_to_leaf(parent: &Path) -> Result<(), SessionError> {
    let leaf = parent.join(HOST_LEAF);
    let moved = std::fs::create_dir(&leaf).or_else(|e| {
        (e.kind() == std::io::ErrorKind::AlreadyExists)
            .then_some(())
            .ok_or(e)
    });
    moved
        .and_then(|()| std::fs::write(leaf.join("cgroup.procs"), std::process::id().to_string()))
        .map_err(|e| undelegated(parent, &e))
}

fn enable(parent: &Path) -> Result<(), SessionError> {
    let file = parent.join("cgroup.subtree_control");
    let enabled = read(&file)?;
    if CONTROLLERS
        .iter()
        .all(|c| enabled.split(' ').any(|e| e == *c))
    {
        return Ok(());
    }
    std::fs::write(&file, "+memory +pids +cpu").map_err(|e| undelegated(parent, &e))
}

fn undelegated(parent: &Path, error: &std::io::Error) -> SessionError {
    SessionCode::NoDelegation.refuse(format_args!("{}: {error}", parent.display()))
}

/// Sets and reads back the limits of version 2.
pub(super) fn apply(
    dir: &Path,
    limits: &Limits,
    swap_exists: bool,
) -> Result<Applied, SessionError> {
    write(&dir.join("memory.max"), &limits.memory_bytes.to_string())?;
    let swap_file = dir.join("memory.swap.max");
    let swap = if swap_file.exists() {
        write(&swap_file, "0")?;
        read(&swap_file)?
    } else {
        if swap_exists { "unlimited" } else { "0" }.to_owned()
    };
    write(&dir.join("pids.max"), &limits.pids.to_string())?;
    let cpu = format!("{} {PERIOD_US}", limits.quota_us());
    write(&dir.join("cpu.max"), &cpu)?;
    let found = read(&dir.join("cpu.max"))?;
    let (quota, period) = found.split_once(' ').unwrap_or((&found, ""));
    Ok(Applied {
        memory: read(&dir.join("memory.max"))?,
        swap,
        pids: read(&dir.join("pids.max"))?,
        cpu_quota: quota.to_owned(),
        cpu_period: period.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const LIMITS: Limits = Limits {
        memory_bytes: 1 << 30,
        pids: 64,
        cpu_millis: 1500,
    };

    /// A directory that looks like a cgroup v2 group. Ordinary files keep what is written, as the
    /// kernel's do for these values.
    fn group(dir: &Path, controllers: &str, enabled: &str) {
        fs::create_dir_all(dir).unwrap();
        for (name, text) in [
            ("cgroup.controllers", controllers),
            ("cgroup.subtree_control", enabled),
            ("cgroup.procs", ""),
            ("memory.max", "max\n"),
            ("memory.swap.max", "max\n"),
            ("pids.max", "max\n"),
            ("cpu.max", "max 100000\n"),
        ] {
            fs::write(dir.join(name), text).unwrap();
        }
    }

    #[test]
    fn limits_are_written_and_read_back() {
        let dir = tempfile::tempdir().unwrap();
        group(dir.path(), "", "");
        let applied = apply(dir.path(), &LIMITS, true).unwrap();
        assert_eq!(applied.weaker_than(&LIMITS), None);
        assert_eq!(
            fs::read_to_string(dir.path().join("cpu.max")).unwrap(),
            "150000 100000"
        );
    }

    #[test]
    fn swap_without_a_limit_file_counts_only_if_there_is_swap() {
        let dir = tempfile::tempdir().unwrap();
        group(dir.path(), "", "");
        fs::remove_file(dir.path().join("memory.swap.max")).unwrap();
        let with = apply(dir.path(), &LIMITS, true).unwrap();
        assert!(with.weaker_than(&LIMITS).unwrap().contains("swap-bytes"));
        let without = apply(dir.path(), &LIMITS, false).unwrap();
        assert_eq!(without.weaker_than(&LIMITS), None);
    }

    #[test]
    fn as_root_sessions_are_made_at_the_top() {
        let root = tempfile::tempdir().unwrap();
        group(root.path(), "cpuset cpu io memory pids", "");
        let own = root.path().join("init.scope");
        group(&own, "cpu memory pids", "");
        assert_eq!(parent(root.path(), &own, true).unwrap(), root.path());
        assert_eq!(
            fs::read_to_string(root.path().join("cgroup.subtree_control")).unwrap(),
            "+memory +pids +cpu"
        );
    }

    #[test]
    fn as_a_user_the_own_group_is_cleared_for_children() {
        let root = tempfile::tempdir().unwrap();
        let own = root.path().join("run.scope");
        group(&own, "cpu memory pids", "");
        group(&own.join(HOST_LEAF), "cpu memory pids", "");
        assert_eq!(parent(root.path(), &own, false).unwrap(), own);
        let leaf = own.join(HOST_LEAF);
        assert_eq!(
            fs::read_to_string(leaf.join("cgroup.procs")).unwrap(),
            std::process::id().to_string()
        );
        assert_eq!(parent(root.path(), &leaf, false).unwrap(), own);
    }

    #[test]
    fn a_controller_that_is_not_offered_is_named() {
        let root = tempfile::tempdir().unwrap();
        group(root.path(), "cpu pids hugetlb", "");
        for (privileged, code) in [
            (true, SessionCode::NoControllers),
            (false, SessionCode::NoDelegation),
        ] {
            let refused = parent(root.path(), root.path(), privileged).unwrap_err();
            assert_eq!(refused.code, code);
            assert!(refused.detail.starts_with("memory"), "{refused}");
        }
    }
}
