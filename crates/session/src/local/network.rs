//! The one way into a session's network: a listening socket that the host makes there. The network
//! has a loopback and nothing else, so whoever listens on it is all that can be reached.

use super::LocalSession;
use crate::{SessionCode, SessionError};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;

/// The network namespace of a session's first process, which must not be ours.
pub(super) fn of(pid: u32) -> Result<OwnedFd, SessionError> {
    let open = |process: &str| {
        let path = format!("/proc/{process}/ns/net");
        let file = File::open(&path).map_err(|e| refused(format_args!("{path}: {e}")))?;
        let about = file.metadata().map_err(refused)?;
        Ok((file, (about.dev(), about.ino())))
    };
    let (theirs, which) = open(&pid.to_string())?;
    if which == open("self")?.1 {
        return Err(refused("it is the network of the host"));
    }
    Ok(theirs.into())
}

impl LocalSession {
    /// Listens on a port of its own loopback.
    pub(super) fn listen_inside(&self, port: u16) -> Result<TcpListener, SessionError> {
        // A thread of its own: the namespace belongs to the thread that enters it, and ends with it.
        std::thread::scope(|scope| {
            let entered = scope.spawn(|| {
                let network = Some(LinkNameSpaceType::Network);
                move_into_link_name_space(self.network.as_fd(), network)?;
                TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            });
            let joined = entered.join();
            joined.unwrap_or_else(|_| Err(std::io::Error::other("the thread ended")))
        })
        .map_err(refused)
    }
}

fn refused(why: impl std::fmt::Display) -> SessionError {
    SessionCode::NetworkEntry.refuse(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_network_of_the_host_is_never_taken_for_a_session_s() {
        let refused = of(std::process::id()).unwrap_err();
        assert_eq!(refused.code, SessionCode::NetworkEntry);
        assert!(of(u32::MAX).is_err());
    }
}
