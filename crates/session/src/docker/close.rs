//! The end of a session on an engine, and the proof of it.

use super::Inside;
use super::owner::SESSION;
use crate::opening::given_up;
use crate::{SessionCode, SessionError};
use flightproof_evidence::Closed;

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

    /// Kills and removes, and sees that it is gone. Safe to repeat after a failure.
    pub(super) fn destroy(&mut self) -> Result<(), SessionError> {
        // The keeper inside ends everything as soon as nobody holds the line.
        self.channel = None;
        self.line = None;
        match &self.container {
            Some(container) => self.engine.remove(container),
            None => Ok(()),
        }
    }

    /// What carries the name exists, but is not ours: it is left alone.
    pub(super) fn disown(&mut self) {
        self.container = None;
    }

    /// What the engine, and on this kernel the host, still see of the session.
    fn inspect(&self) -> Result<Closed, SessionError> {
        let label = format!("{SESSION}={}", self.name.trim_start_matches("flightproof-"));
        let listed = self
            .engine
            .labelled(&label)
            .map_err(|f| f.refuse("list containers"))?;
        let (mut processes, mut cgroups) = (0, 0);
        if let Some(near) = &self.near {
            let dirs = near.group().dirs();
            processes = near.group().processes()?;
            cgroups = dirs.iter().filter(|dir| dir.exists()).count() as u64;
        }
        Ok(Closed {
            processes,
            cgroups,
            mounts: 0,
            directories: listed.len() as u64,
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
