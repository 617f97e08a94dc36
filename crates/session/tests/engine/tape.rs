//! A session that an engine once flew, played again from the bytes of its line.

use crate::conformance::tree;
use flightproof_frame::protocol::{Exec, ExecLimits, Place, Reply, Request, Role, Status};
use flightproof_session::docker::tape::{Piece, Side, Tape, TapedSession};
use flightproof_session::{Session, SessionCode, SessionError, upload};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Output on both streams and an end, a flood, an upload, the forbidden acts, the kernel's counters.
pub(crate) fn acts(session: &mut dyn Session) -> Result<Vec<Reply>, SessionError> {
    let mut replies = Vec::new();
    for script in [
        "echo out; echo err >&2; exit 7",
        "while :; do echo flood; done",
    ] {
        replies.push(session.call(&Request::Exec(shell(script)), &[])?);
    }
    let tree = tree(&[("a/b", "content"), ("c", "")]);
    let packed = flightproof_archive::paws::read(&tree).unwrap();
    upload::archive(session, Place::Extra, &tree, packed.snapshot.snapshot_id())?;
    replies.push(session.call(&Request::Probe, &[])?);
    session.events()?;
    Ok(replies)
}

fn shell(script: &str) -> Exec {
    Exec {
        role: Role::Build,
        program: "/bin/sh".to_owned(),
        args: vec!["-c".to_owned(), script.to_owned()],
        env: BTreeMap::new(),
        stdin: Vec::new().into(),
        files: BTreeMap::new(),
        limits: ExecLimits {
            wall_ms: 10_000,
            stdout_bytes: 20_000,
            stderr_bytes: 1_000,
        },
        selector: None,
        tree: None,
    }
}

/// Written by the live test that records one, with `FLIGHTPROOF_BLESS=1`.
pub(crate) fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/engine/session.tape.json")
}

fn recorded() -> Tape {
    serde_json::from_slice(&std::fs::read(file()).unwrap()).unwrap()
}

/// Without the pauses.
fn hurried() -> Tape {
    let mut tape = recorded();
    for piece in &mut tape.pieces {
        piece.pause_us = 0;
    }
    tape
}

fn played(tape: Tape) -> Result<Vec<Reply>, SessionError> {
    let mut session = TapedSession::open(tape)?;
    let replies = acts(&mut session)?;
    session.close()?;
    Ok(replies)
}

#[test]
fn a_recorded_session_is_played_to_its_end_through_the_engines_decoder() {
    let tape = recorded();
    assert!(tape.attestation.backend == "docker" && tape.closed.is_clean());
    let replies = played(tape).unwrap();
    let [
        Reply::Exec(said),
        Reply::Exec(flood),
        Reply::Probe { readings },
    ] = replies.as_slice()
    else {
        panic!("{replies:?}")
    };
    assert_eq!(said.status, Status::Exited { code: 7 });
    assert_eq!(
        (&*said.stdout, &*said.stderr),
        (&b"out\n"[..], &b"err\n"[..])
    );
    assert_eq!(flood.status, Status::OutputLimit);
    assert_eq!(flood.stdout.len(), 20_000);
    assert!(readings.len() > 40);
}

/// However the engine cuts its stream, it says the same.
#[test]
fn another_cut_of_the_same_bytes_is_the_same_session() {
    let expected = played(hurried()).unwrap();
    for size in [7, 8, 9, 1_000] {
        let mut tape = hurried();
        tape.pieces = tape
            .pieces
            .iter()
            .flat_map(|piece| cut(piece, size))
            .collect();
        assert_eq!(played(tape).unwrap(), expected, "{size}");
    }
}

fn cut(piece: &Piece, size: usize) -> Vec<Piece> {
    let parts = piece.bytes.chunks(size).map(|part| Piece {
        bytes: part.to_vec().into(),
        ..piece.clone()
    });
    parts.collect()
}

#[test]
fn unknown_repeated_and_unused_requests_are_refused() {
    let open = || TapedSession::open(hurried()).unwrap();
    let mut unknown = open();
    let refused = unknown
        .call(&Request::Exec(shell("true")), &[])
        .unwrap_err();
    assert_eq!(refused.code, SessionCode::FakeMismatch, "{refused}");
    assert_eq!(unknown.close().unwrap_err().code, SessionCode::FakeMismatch);

    let mut repeated = open();
    let first = Request::Exec(shell("echo out; echo err >&2; exit 7"));
    repeated.call(&first, &[]).unwrap();
    let refused = repeated.call(&first, &[]).unwrap_err();
    assert_eq!(refused.code, SessionCode::FakeMismatch, "{refused}");

    let mut beyond = open();
    acts(&mut beyond).unwrap();
    let refused = beyond.call(&Request::Probe, &[]).unwrap_err();
    assert_eq!(refused.code, SessionCode::FakeMismatch, "{refused}");

    let mut unused = open();
    assert_eq!(unused.close().unwrap_err().code, SessionCode::FakeUnused);
    let refused = unused.call(&Request::Probe, &[]).unwrap_err();
    assert_eq!(refused.code, SessionCode::SessionClosed, "{refused}");
}

/// Each place of the whole session: an engine that breaks off, errs or lies there gives no answer.
#[test]
fn an_engine_that_goes_wrong_anywhere_is_never_an_answer() {
    let whole = hurried();
    let spoil: [fn(&mut Piece); 5] = [
        |piece| piece.bytes = piece.bytes[..piece.bytes.len() - 1].to_vec().into(),
        |piece| piece.bytes = frame(3, b"an error of the engine").into(),
        |piece| piece.bytes = frame(9, b"?").into(),
        |piece| piece.bytes = frame(1, b"OCI runtime exec failed: no space").into(),
        |piece| piece.bytes = frame(1, b"\0\0\0\x02\x05\0\0\0\0{}").into(),
    ];
    let said = |piece: &Piece| piece.from == Side::Engine;
    let places: Vec<usize> = (0..whole.pieces.len())
        .filter(|at| said(&whole.pieces[*at]))
        .collect();
    assert!(places.len() > 8, "{}", places.len());
    for (turn, at) in places.into_iter().enumerate() {
        let mut tape = whole.clone();
        tape.pieces.truncate(at + 1);
        spoil[turn % spoil.len()](&mut tape.pieces[at]);
        tape.pieces.push(Piece {
            bytes: Vec::new().into(),
            ..tape.pieces[at].clone()
        });
        let refused = played(tape).unwrap_err();
        let lost = [SessionCode::SessionLost, SessionCode::ProtocolBroken];
        assert!(lost.contains(&refused.code), "{at}: {refused}");
    }
}

fn frame(kind: u8, content: &[u8]) -> Vec<u8> {
    let mut frame = vec![kind, 0, 0, 0];
    frame.extend(u32::try_from(content.len()).unwrap().to_be_bytes());
    frame.extend(content);
    frame
}
