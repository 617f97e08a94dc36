//! The end of a session, and the proof of it.

use super::Inside;
use crate::opening::given_up;
use crate::record::remove_directory;
use crate::{SessionCode, SessionError};
use flightproof_evidence::Closed;
use std::fs;
use std::path::Path;

impl Inside {
    /// Ends the session once; later calls say again what was found.
    pub(super) fn close(&mut self) -> Result<Closed, SessionError> {
        if let Some(closed) = &self.closed {
            return Ok(closed.clone());
        }
        self.destroy()?;
        let closed = self.inspect()?;
        if !closed.is_clean() {
            return Err(SessionCode::Leak.refuse(format_args!("{closed:?}")));
        }
        self.record.forget(&self.state_dir)?;
        self.closed = Some(closed.clone());
        Ok(closed)
    }

    /// Ends a session that did not come to be: what kept it from that, or that something is left.
    pub(super) fn give_up(&mut self, cause: SessionError) -> SessionError {
        self.given_up = true;
        given_up(cause, self.end())
    }

    /// What stays behind keeps its record, and the reaper finds it by that.
    fn end(&mut self) -> Result<(), SessionError> {
        self.destroy()?;
        self.record.forget(&self.state_dir)
    }

    /// Kills, reaps and removes. Safe to repeat after a failure.
    pub(super) fn destroy(&mut self) -> Result<(), SessionError> {
        // Nothing can be said through a channel whose other end is killed.
        self.channel = None;
        let killed = self.group.kill();
        if let Some(keeper) = &mut self.keeper {
            // Also where the cgroup could not be emptied: this is another way to the same end.
            keeper.end()?;
        }
        self.keeper = None;
        killed?;
        self.group.remove()?;
        remove_directory(&self.record.id, &self.record.directory)
    }

    fn inspect(&self) -> Result<Closed, SessionError> {
        let dirs = self.group.dirs();
        let cgroups = dirs.iter().filter(|d| d.exists()).count();
        let directory = fs::symlink_metadata(&self.record.directory).is_ok();
        Ok(Closed {
            processes: self.group.processes()?,
            cgroups: cgroups as u64,
            mounts: mounts_below(&self.record.directory)?,
            directories: u64::from(directory),
        })
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        if self.closed.is_none() && !self.given_up {
            let _ = self.end();
        }
    }
}

fn mounts_below(dir: &Path) -> Result<u64, SessionError> {
    let table = fs::read_to_string("/proc/self/mountinfo")
        .map_err(|e| SessionCode::HostIo.refuse(format_args!("mountinfo: {e}")))?;
    Ok(count_below(&table, dir))
}

fn count_below(table: &str, dir: &Path) -> u64 {
    let points = table.lines().filter_map(|line| line.split(' ').nth(4));
    points
        .filter(|point| Path::new(point).starts_with(dir))
        .count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LimitEvents;
    use crate::cgroup::{Group, Placement};
    use crate::record::Record;
    use std::path::PathBuf;
    use std::time::Instant;

    const ID: &str = "00112233445566778899aabbccddeeff";

    /// A session of which nothing was begun.
    fn registered(state_dir: &Path) -> Inside {
        let group = Group::of(Placement::V2 {
            root: state_dir.to_owned(),
            own: state_dir.join("group"),
        });
        let directory = state_dir.join(format!("flightproof-{ID}"));
        let record = Record::new(ID, group.dirs(), &directory).unwrap();
        record.store(state_dir).unwrap();
        Inside {
            record,
            state_dir: state_dir.to_owned(),
            group,
            keeper: None,
            channel: None,
            deadline: Instant::now(),
            seen: LimitEvents::default(),
            given_up: false,
            closed: None,
        }
    }

    fn records(state_dir: &Path) -> Vec<PathBuf> {
        crate::record::own(state_dir).unwrap()
    }

    #[test]
    fn what_did_not_come_to_be_says_why_and_what_is_left_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let weak = || SessionCode::Shortfall.refuse("weak");
        assert_eq!(registered(dir.path()).give_up(weak()), weak());
        assert_eq!(records(dir.path()), [] as [PathBuf; 0]);
        let mut inside = registered(dir.path());
        fs::write(&inside.record.directory, "in the way").unwrap();
        let told = inside.give_up(weak());
        drop(inside);
        assert_eq!(told.code, SessionCode::Leak, "{told}");
        assert!(told.detail.contains("SHORTFALL") && told.detail.contains("weak"));
        assert_eq!(records(dir.path()).len(), 1);
    }

    #[test]
    fn mounts_at_and_below_the_directory_are_counted() {
        let table = "1 0 0:1 / / rw - ext4 x rw\n2 1 0:2 / /w/s rw - tmpfs x rw\n\
                     3 1 0:3 / /w/s/root rw - tmpfs x rw\n4 1 0:4 / /w/s2 rw - tmpfs x rw\n";
        assert_eq!(count_below(table, Path::new("/w/s")), 2);
    }
}
