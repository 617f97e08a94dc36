//! The end of a session, and the proof of it.

use super::Inside;
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
        if self.closed.is_none() && self.destroy().is_ok() {
            // What stays behind keeps its record, and the reaper finds it by that.
            let _ = self.record.forget(&self.state_dir);
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

    #[test]
    fn mounts_at_and_below_the_directory_are_counted() {
        let table = "1 0 0:1 / / rw - ext4 x rw\n2 1 0:2 / /w/s rw - tmpfs x rw\n\
                     3 1 0:3 / /w/s/root rw - tmpfs x rw\n4 1 0:4 / /w/s2 rw - tmpfs x rw\n";
        assert_eq!(count_below(table, Path::new("/w/s")), 2);
    }
}
