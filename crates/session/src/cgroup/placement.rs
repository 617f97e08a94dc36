use crate::{SessionCode, SessionError};
use std::path::{Component, Path, PathBuf};

/// The controllers every session needs.
pub(super) const CONTROLLERS: [&str; 3] = ["memory", "pids", "cpu"];

/// Where a process is in the cgroup trees, as far as sessions need to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placement {
    /// Own directory in the hierarchies of memory, pids and cpu, in that order.
    V1([PathBuf; 3]),
    /// The one hierarchy: where it is mounted and the own directory in it.
    V2 {
        /// Mount point.
        root: PathBuf,
        /// Own directory.
        own: PathBuf,
    },
}

/// One mounted cgroup hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CgroupMount {
    /// Which directory of the hierarchy is mounted.
    pub root: PathBuf,
    /// Where.
    pub point: PathBuf,
    /// Version 1: its controllers. Version 2: `None`.
    pub controllers: Option<Vec<String>>,
}

impl Placement {
    /// Decides from `/proc/self/cgroup` and `/proc/self/mountinfo`. Version 1 is used where it has
    /// all three controllers, version 2 where version 1 has none of them; a mixture is refused.
    ///
    /// # Errors
    /// `NO_CONTROLLERS` naming what is missing.
    pub fn parse(cgroup: &str, mountinfo: &str) -> Result<Self, SessionError> {
        let mounts = mounts(mountinfo);
        let found: Vec<Option<PathBuf>> = CONTROLLERS
            .iter()
            .map(|controller| v1_dir(cgroup, &mounts, controller))
            .collect();
        match found.as_slice() {
            [Some(memory), Some(pids), Some(cpu)] => {
                Ok(Self::V1([memory.clone(), pids.clone(), cpu.clone()]))
            }
            [None, None, None] => v2_dir(cgroup, &mounts),
            _ => Err(SessionCode::NoControllers.refuse(format_args!(
                "only part of the controllers is on cgroup v1: {}",
                missing(&found)
            ))),
        }
    }
}

fn missing(found: &[Option<PathBuf>]) -> String {
    let names: Vec<&str> = CONTROLLERS
        .iter()
        .zip(found)
        .filter(|(_, dir)| dir.is_none())
        .map(|(name, _)| *name)
        .collect();
    format!("{} missing there", names.join(", "))
}

fn v1_dir(cgroup: &str, mounts: &[CgroupMount], controller: &str) -> Option<PathBuf> {
    let path = own_paths(cgroup)
        .find(|(names, _)| names.split(',').any(|n| n == controller))?
        .1;
    let mount = mounts.iter().find(|m| {
        m.controllers
            .as_ref()
            .is_some_and(|names| names.iter().any(|n| n == controller))
    })?;
    within(mount, path)
}

fn v2_dir(cgroup: &str, mounts: &[CgroupMount]) -> Result<Placement, SessionError> {
    let mount = mounts.iter().find(|m| m.controllers.is_none());
    let path = own_paths(cgroup).find(|(names, _)| names.is_empty());
    let own = mount.zip(path).and_then(|(m, (_, path))| within(m, path));
    match mount.zip(own) {
        Some((mount, own)) => Ok(Placement::V2 {
            root: mount.point.clone(),
            own,
        }),
        None => Err(SessionCode::NoControllers.refuse("no cgroup hierarchy holds this process")),
    }
}

/// `(controllers, path)` of each line of `/proc/self/cgroup`.
fn own_paths(cgroup: &str) -> impl Iterator<Item = (&str, &str)> {
    cgroup.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        Some((parts.next()?, parts.next()?))
    })
}

/// A cgroup's directory below the mount point. `/../x` (outside of the cgroup namespace) has none.
fn within(mount: &CgroupMount, path: &str) -> Option<PathBuf> {
    let below = Path::new(path).strip_prefix(&mount.root).ok()?;
    let plain = below
        .components()
        .all(|c| matches!(c, Component::Normal(_)));
    plain.then(|| mount.point.join(below))
}

/// The cgroup hierarchies of a `mountinfo` text.
pub fn mounts(mountinfo: &str) -> Vec<CgroupMount> {
    mountinfo.lines().filter_map(cgroup_mount).collect()
}

fn cgroup_mount(line: &str) -> Option<CgroupMount> {
    let (before, after) = line.split_once(" - ")?;
    let mut fields = before.split(' ').skip(3);
    let (root, point) = (fields.next()?, fields.next()?);
    let mut rest = after.split(' ');
    let controllers = match rest.next()? {
        "cgroup2" => None,
        "cgroup" => Some(rest.nth(1)?.split(',').map(str::to_owned).collect()),
        _ => return None,
    };
    Some(CgroupMount {
        root: root.into(),
        point: point.into(),
        controllers,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1_MOUNTS: &str = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";
    const V1_OWN: &str = "8:pids:/\n4:memory:/process_api/cb7c\n1:cpu,cpuacct:/a/b\n0::/\n";
    const V2_MOUNTS: &str = "25 1 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn version_one_with_a_useless_unified_tree_is_version_one() {
        assert_eq!(
            Placement::parse(V1_OWN, V1_MOUNTS).unwrap(),
            Placement::V1([
                "/sys/fs/cgroup/memory/process_api/cb7c".into(),
                "/sys/fs/cgroup/pids".into(),
                "/sys/fs/cgroup/cpu,cpuacct/a/b".into(),
            ])
        );
    }

    #[test]
    fn version_two_alone_is_version_two() {
        assert_eq!(
            Placement::parse("0::/user.slice/run-1.scope\n", V2_MOUNTS).unwrap(),
            Placement::V2 {
                root: "/sys/fs/cgroup".into(),
                own: "/sys/fs/cgroup/user.slice/run-1.scope".into(),
            }
        );
    }

    #[test]
    fn a_mixture_of_both_is_refused_by_name() {
        let mounts = V1_MOUNTS.replace("cgroup rw,memory", "cgroup rw,blkio");
        let refused = Placement::parse(V1_OWN, &mounts).unwrap_err();
        assert_eq!(refused.code, SessionCode::NoControllers);
        assert!(refused.detail.contains("memory missing"), "{refused}");
    }

    #[test]
    fn a_path_outside_of_the_namespace_is_no_place() {
        for own in ["0::/../other\n", "", "0::\n", "garbage", "1:memory\n"] {
            let refused = Placement::parse(own, V2_MOUNTS).unwrap_err();
            assert_eq!(refused.code, SessionCode::NoControllers, "{own:?}");
        }
    }

    #[test]
    fn a_mounted_subtree_is_taken_off_the_path() {
        let mounts = "25 1 0:22 /docker/x /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        assert_eq!(
            Placement::parse("0::/docker/x/y\n", mounts).unwrap(),
            Placement::V2 {
                root: "/sys/fs/cgroup".into(),
                own: "/sys/fs/cgroup/y".into(),
            }
        );
        assert!(Placement::parse("0::/docker/z\n", mounts).is_err());
    }
}
