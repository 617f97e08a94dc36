use crate::fake::{Fake, limits};
use flightproof_core::Code;
use flightproof_frame::bootstrap::{
    BUFFER_BYTES, Descriptor, FrameState, HEADER_BYTES, MAX_PAYLOAD_BYTES, SecretPayload, receive,
};
use flightproof_frame::{FrameCode, FrameError, fuzzing};
use flightproof_hostile::frame::{bootstrap_attacks, bootstrap_frame};
use std::fs::File;
use std::io::{Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

/// What a reader gets wrong of all forged frames and their twins.
fn wrong(reader: impl Fn(&[u8]) -> Result<Vec<u8>, FrameError>) -> Vec<String> {
    let attacks = bootstrap_attacks();
    assert!(attacks.len() > 20);
    let mut wrong = Vec::new();
    for attack in attacks {
        let found = reader(&attack.bytes).map_err(|e| e.code.explanation().code);
        let expected = format!("frame/{}", attack.expect);
        if found.map(|payload| payload.len()) != Err(&expected) {
            wrong.push(attack.name.clone());
        }
        if reader(&attack.twin).as_deref() != Ok(&attack.twin[HEADER_BYTES..]) {
            wrong.push(format!("the twin of {}", attack.name));
        }
    }
    wrong
}

fn bytes_of(payload: SecretPayload) -> Vec<u8> {
    payload
        .consume(|bytes| Ok::<_, ()>(bytes.to_vec()))
        .unwrap()
}

fn from_descriptor(fd: impl Into<OwnedFd>) -> Result<Vec<u8>, FrameError> {
    receive(Descriptor::adopt(fd.into())?, limits(20_000, 2_000)).map(bytes_of)
}

/// Hands the bytes to the writing end in two pieces, so that no read gets all.
fn written(mut to: impl Write + Send + 'static, bytes: &[u8]) -> std::thread::JoinHandle<()> {
    let bytes = bytes.to_vec();
    std::thread::spawn(move || {
        let (first, second) = bytes.split_at(bytes.len().min(3));
        for piece in [first, second] {
            // Whoever reads may have seen enough.
            let _ = to.write_all(piece);
        }
    })
}

#[test]
fn forged_frames_are_refused_with_their_code_however_they_are_split() {
    for most in [1, 2, 3, 5, 4096, usize::MAX] {
        let found = wrong(|bytes| {
            let source = Fake {
                most,
                ..Fake::of(bytes)
            };
            receive(source, limits(60_000, 2_000)).map(bytes_of)
        });
        assert!(found.is_empty(), "{most} at a time: {found:#?}");
    }
}

#[test]
fn forged_frames_are_refused_over_a_pipe() {
    let found = wrong(|bytes| {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let peer = written(File::from(writer), bytes);
        let result = from_descriptor(reader);
        peer.join().unwrap();
        result
    });
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn forged_frames_are_refused_over_a_pipe_with_a_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &path,
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .unwrap();
    let found = wrong(|bytes| {
        let peer = {
            let (path, bytes) = (path.clone(), bytes.to_vec());
            std::thread::spawn(move || {
                let writer = File::options().write(true).open(path).unwrap();
                written(writer, &bytes).join().unwrap();
            })
        };
        let result = from_descriptor(File::open(&path).unwrap());
        peer.join().unwrap();
        result
    });
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn forged_frames_are_refused_over_a_socket() {
    let found = wrong(|bytes| {
        let (reader, writer) = UnixStream::pair().unwrap();
        let peer = written(writer, bytes);
        let result = from_descriptor(reader);
        peer.join().unwrap();
        result
    });
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn forged_frames_are_refused_in_a_file() {
    let found = wrong(|bytes| {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file.rewind().unwrap();
        from_descriptor(file)
    });
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn a_reader_without_the_trailing_byte_would_be_noticed() {
    let careless = |bytes: &[u8]| {
        let mut buffer = Box::new([0; BUFFER_BYTES]);
        let mut state = FrameState::new();
        let mut left = bytes;
        // Header, then as much as it promises, and that is that.
        for _ in 0..2 {
            let wanted = match state.received() {
                0 => HEADER_BYTES,
                _ => usize::try_from(u32::from_be_bytes(buffer[..4].try_into().unwrap())).unwrap(),
            };
            let count = wanted.min(left.len());
            state.room(&mut buffer)[..count].copy_from_slice(&left[..count]);
            state.advance(&buffer, count)?;
            left = &left[count..];
        }
        let length = state.end()?;
        Ok(buffer[HEADER_BYTES..][..length].to_vec())
    };
    let trailing = bootstrap_attacks().into_iter();
    let trailing = trailing.filter(|attack| attack.expect == "TRAILING");
    let missed: Vec<String> = trailing.map(|attack| attack.name).collect();
    assert!(missed.len() > 3);
    assert_eq!(wrong(careless), missed);
}

#[test]
fn every_split_of_every_short_stream_gives_the_answer_of_the_whole() {
    let mut buffer = Box::new([0; BUFFER_BYTES]);
    let mut splits = 0;
    for total in 0..=8usize {
        for claimed in [
            0,
            1,
            2,
            3,
            4,
            5,
            6,
            0xff,
            0x1_0000,
            0x1_0001,
            1 << 31,
            u32::MAX,
        ] {
            let mut stream = bootstrap_frame(b"abcd");
            stream[..4].copy_from_slice(&u32::to_be_bytes(claimed));
            stream.truncate(total);
            let expected = fuzzing::frame_of(&stream).map(<[u8]>::to_vec);
            // A bit for every place between two bytes: whether the stream is split there.
            for places in 0..1u32 << total.saturating_sub(1) {
                let found = fed(&mut buffer, &stream, places).map_err(|e| e.code);
                assert_eq!(found, expected, "{stream:?} split at {places:b}");
                splits += 1;
            }
        }
    }
    assert_eq!(splits, 12 * (1 + 1 + 2 + 4 + 8 + 16 + 32 + 64 + 128));
}

fn fed(buffer: &mut [u8; BUFFER_BYTES], stream: &[u8], places: u32) -> Result<Vec<u8>, FrameError> {
    let mut state = FrameState::new();
    let mut start = 0;
    for end in 1..=stream.len() {
        if end < stream.len() && places & (1 << (end - 1)) == 0 {
            continue;
        }
        let piece = &stream[start..end];
        state.room(buffer)[..piece.len()].copy_from_slice(piece);
        state.advance(buffer, piece.len())?;
        start = end;
    }
    let length = state.end()?;
    Ok(buffer[HEADER_BYTES..][..length].to_vec())
}

#[test]
fn every_header_length_has_its_class() {
    let mut buffer = Box::new([0; BUFFER_BYTES]);
    let most = u32::try_from(MAX_PAYLOAD_BYTES).unwrap();
    let around_bits = (0..32).flat_map(|bit| [(1u32 << bit) - 1, 1 << bit, (1 << bit) + 1]);
    for length in (0..=most + 300)
        .chain(around_bits)
        .chain([u32::MAX - 1, u32::MAX])
    {
        let mut state = FrameState::new();
        state.room(&mut buffer)[..4].copy_from_slice(&length.to_be_bytes());
        let found = state.advance(&buffer, 4).map_err(|e| e.code);
        let expected = match length {
            0 => Err(FrameCode::Empty),
            length if length > most => Err(FrameCode::Oversize),
            _ => Ok(()),
        };
        assert_eq!(found, expected, "{length}");
        if found.is_ok() {
            assert_eq!(state.end().unwrap_err().code, FrameCode::ReadPayload);
        }
    }
}

#[test]
fn there_is_room_until_a_byte_too_many_has_come() {
    let mut buffer = Box::new([0; BUFFER_BYTES]);
    let mut state = FrameState::new();
    assert_eq!(
        state.room(&mut buffer).len(),
        HEADER_BYTES + MAX_PAYLOAD_BYTES + 1
    );
    buffer[1] = 1;
    state
        .advance(&buffer, HEADER_BYTES + MAX_PAYLOAD_BYTES)
        .unwrap();
    assert_eq!(state.received(), HEADER_BYTES + MAX_PAYLOAD_BYTES);
    assert_eq!(state.room(&mut buffer).len(), 1);
    let claimed = state.advance(&buffer, 2).unwrap_err();
    assert_eq!(claimed.code, FrameCode::SourceError);
    assert_eq!(state.end(), Err(claimed));
}

#[test]
fn the_oracles_accept_every_attack_and_every_twin() {
    for attack in bootstrap_attacks() {
        for step in [0, 1, 3, 7, 200] {
            fuzzing::bootstrap_raw(&[&[step], &attack.bytes[..]].concat());
            fuzzing::bootstrap_raw(&[&[step], &attack.twin[..]].concat());
        }
    }
    fuzzing::bootstrap_raw(&[]);
}
