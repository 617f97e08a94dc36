//! Sessions on tape: written down while they are real, played back afterwards.

use crate::transcript::{BROKEN, Kept, key, recount};
use flightproof_core::Digest;
use flightproof_evidence::{Attestation, Closed};
use flightproof_flights::transcript::{Recorder, Tape};
use flightproof_session::fake::{FakeSession, Recording, Step};
use flightproof_session::{LimitEvents, SessionCode};
use serde_json::json;

fn attestation() -> Attestation {
    serde_json::from_value(json!({
        "backend": "local", "session": "00ff", "kernel": "6.1", "sandbox": "bubblewrap 0.8.0",
        "toolchain": {"digest": Digest::of(b"t"), "version": "rustc 1", "linker": Digest::of(b"l")},
        "runner": {"build_id": Digest::of(b"b"), "sha256": Digest::of(b"s")},
        "readings": [], "probes": [],
    }))
    .unwrap_or_else(|e| panic!("{e}"))
}

/// A session that answers one look at the kernel's events.
fn session(events: LimitEvents) -> Box<dyn flightproof_session::Session> {
    Box::new(FakeSession::new(Recording {
        attestation: attestation(),
        steps: [Step::Events { events }].into(),
        closed: Closed {
            processes: 0,
            cgroups: 0,
            mounts: 0,
            directories: 0,
        },
    }))
}

#[test]
fn a_session_is_recorded_and_played_back_and_must_be_closed() {
    let kept = Kept::new();
    let recorder = Recorder::start(&kept.place(), "small", Digest::of(b"plan")).unwrap();
    let mut tape = Tape::record(recorder);
    let seen = LimitEvents { pids: 3, memory: 0 };
    let mut recorded = tape.session(&[1; 32], || Ok(session(seen))).unwrap();
    assert_eq!(recorded.events().unwrap(), seen);
    recorded.close().unwrap();
    tape.finish("held", None, Some(&key())).unwrap();

    let mut replay = Tape::replay(kept.open().unwrap());
    let mut played = replay
        .session(&[1; 32], || panic!("a replay opens no session"))
        .unwrap();
    assert_eq!(played.events().unwrap(), seen);
    assert!(played.close().unwrap().is_clean());
    replay.finish("held", None, None).unwrap();

    // Cut out the close, and it is no recording of a session any more.
    let code = kept.resealed(|lines| {
        lines.drain(5..7);
        recount(lines);
    });
    assert_eq!(code, "");
    let mut replay = Tape::replay(kept.open().unwrap());
    let refused = replay.session(&[1; 32], || panic!("a replay opens no session"));
    assert_eq!(refused.err().unwrap().code(), BROKEN);
}

#[test]
fn what_a_session_said_and_cannot_be_recorded_fails_the_flight() {
    let kept = Kept::new();
    let recorder = Recorder::start(&kept.place(), "small", Digest::of(b"plan")).unwrap();
    let mut tape = Tape::record(recorder);
    // A count that JSON readers would round.
    let unsayable = LimitEvents {
        pids: u64::MAX,
        memory: 0,
    };
    let mut recorded = tape.session(&[1; 32], || Ok(session(unsayable))).unwrap();
    assert_eq!(recorded.events().unwrap_err().code, SessionCode::Unrecorded);
}
