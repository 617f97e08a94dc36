//! One request and its reply, over a session's channel and within a session's time.

use crate::{SessionCode, SessionError};
use flightproof_core::parse_strict;
use flightproof_frame::channel::{HostChannel, MAX_BODY_BYTES};
use flightproof_frame::protocol::{Reply, Request};
use flightproof_frame::{FrameCode, FrameError};
use std::time::{Duration, Instant};

/// How long after a program's own wall clock its answer may take.
const EXEC_GRACE: Duration = Duration::from_secs(30);
/// How long anything else may take: an upload of hundreds of megabytes on a busy machine.
const REQUEST_DEADLINE: Duration = Duration::from_secs(180);

/// Sends a request (and its payload) and waits for its reply, at the longest until `end`, when the
/// session's lifetime is over.
pub(crate) fn converse(
    channel: &mut HostChannel,
    request: &Request,
    payload: &[u8],
    end: Instant,
) -> Result<Reply, SessionError> {
    let body = serde_json::to_vec(request).map_err(|e| SessionCode::ProtocolBroken.refuse(e))?;
    let deadline = end.min(Instant::now() + patience(request));
    let reply = channel.call(&body, payload, deadline).map_err(|e| {
        // Whose clock ran out decides whose fault it is.
        let over = e.code == FrameCode::Timeout && Instant::now() >= end;
        lost(&e, over)
    })?;
    parse_strict(&reply, MAX_BODY_BYTES).map_err(|e| SessionCode::ProtocolBroken.refuse(e))
}

fn patience(request: &Request) -> Duration {
    match request {
        Request::Exec(exec) => Duration::from_millis(exec.limits.wall_ms) + EXEC_GRACE,
        _ => REQUEST_DEADLINE,
    }
}

/// A channel that broke, named by what broke it.
pub(crate) fn lost(error: &FrameError, lifetime_over: bool) -> SessionError {
    let code = match error.code {
        FrameCode::Timeout if lifetime_over => SessionCode::Deadline,
        FrameCode::Timeout
        | FrameCode::ReadHeader
        | FrameCode::ReadPayload
        | FrameCode::SourceError => SessionCode::SessionLost,
        _ => SessionCode::ProtocolBroken,
    };
    code.refuse(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_channel_is_named_by_what_broke_it() {
        let table = [
            (FrameCode::Timeout, true, SessionCode::Deadline),
            (FrameCode::Timeout, false, SessionCode::SessionLost),
            (FrameCode::ReadHeader, false, SessionCode::SessionLost),
            (
                FrameCode::ProtocolViolation,
                false,
                SessionCode::ProtocolBroken,
            ),
            (FrameCode::Oversize, true, SessionCode::ProtocolBroken),
        ];
        for (frame, over, code) in table {
            assert_eq!(lost(&frame.refuse("x"), over).code, code);
        }
    }
}
