//! The limits of a session, set in cgroups and read back, on version 1 and version 2.
//!
//! [`Placement`] decides from the text of two kernel files where a session's groups can be made;
//! it is pure. [`Group`] makes them, applies and reads back the limits, counts what was hit, kills
//! and removes.

mod group;
mod placement;
pub(crate) mod text;
mod v1;
mod v2;

pub use group::{Group, Limits, kill_dir, process_count, remove_dir};
pub use placement::{CgroupMount, Placement, mounts};

/// Name of the directory of one session in every hierarchy, and of its private directory.
pub fn session_name(id: &str) -> String {
    format!("flightproof-{id}")
}

/// Reads `key value` lines, as kernel counters are written.
fn counter(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(' ')?;
        (name == key).then(|| value.trim().parse().ok()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_found_by_its_whole_name() {
        let text = "oom_kill_disable 0\nunder_oom 0\noom_kill 7\n";
        assert_eq!(counter(text, "oom_kill"), Some(7));
        assert_eq!(counter(text, "oom"), None);
        assert_eq!(counter("max x", "max"), None);
    }
}
