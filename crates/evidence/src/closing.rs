use serde::{Deserialize, Serialize};

/// Proof that a closed session left nothing: every count is what was found after the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Closed {
    /// Processes still in the session's cgroups.
    pub processes: u64,
    /// Cgroup directories of the session that still exist.
    pub cgroups: u64,
    /// Mounts below the session's directory in the host's mount table.
    pub mounts: u64,
    /// Directories of the session that still exist.
    pub directories: u64,
}

impl Closed {
    /// Nothing is left.
    pub fn is_clean(&self) -> bool {
        *self
            == Self {
                processes: 0,
                cgroups: 0,
                mounts: 0,
                directories: 0,
            }
    }
}
