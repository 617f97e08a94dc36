//! The channel against forged streams, broken pipes and peers that keep one waiting.

#![expect(
    clippy::unwrap_used,
    reason = "a pipe that cannot be made is a failed test"
)]

use flightproof_core::Code;
use flightproof_frame::channel::{
    Answer, Decoder, Event, HEADER_BYTES, HostChannel, Kind, MAX_BODY_BYTES, MAX_DATA_BYTES,
    MAX_HELLO_BYTES, Message, RequestReader, RunnerChannel, encode,
};
use flightproof_frame::{FrameCode, FrameError, fuzzing};
use flightproof_hostile::{Attack, frame};
use fuzzing::{Conversation, Turn};
use proptest::prelude::*;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

fn hold(attacks: &[Attack], judge: impl Fn(&[u8]) -> Result<(), FrameError>) {
    assert!(!attacks.is_empty());
    let mut wrong = Vec::new();
    for attack in attacks {
        let found = judge(&attack.bytes).map_err(|e| e.code.explanation().code);
        let expected = format!("frame/{}", attack.expect);
        if found != Err(&expected) {
            wrong.push(format!("{}: {found:?}, expected {expected}", attack.name));
        }
        if let Err(e) = judge(&attack.twin) {
            wrong.push(format!("the twin of {}: {e}", attack.name));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A host whose runner has said these bytes already and ended; the other end of its writing side is
/// kept.
fn host(said: &[u8]) -> (HostChannel, OwnedFd) {
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    File::from(writer).write_all(said).unwrap();
    let (kept, to_runner) = rustix::pipe::pipe().unwrap();
    (HostChannel::new(reader, to_runner).unwrap(), kept)
}

/// A host whose runner says the first message at once, each further one after a request, and
/// whatever is left when the host has ended. The thread gives back all that the host said.
fn host_of(said: &[u8]) -> (HostChannel, std::thread::JoinHandle<Vec<u8>>) {
    let (from_runner, to_host) = rustix::pipe::pipe().unwrap();
    let (from_host, to_runner) = rustix::pipe::pipe().unwrap();
    let (mut to_host, mut from_host) = (File::from(to_host), File::from(from_host));
    let pieces = pieces(said);
    let runner = std::thread::spawn(move || {
        let mut asked = Vec::new();
        for (turn, piece) in pieces.iter().enumerate() {
            if turn > 0 {
                hear_request(&mut from_host, &mut asked);
            }
            if to_host.write_all(piece).is_err() {
                break;
            }
        }
        drop(to_host);
        from_host.read_to_end(&mut asked).unwrap();
        asked
    });
    (HostChannel::new(from_runner, to_runner).unwrap(), runner)
}

/// The messages of a stream, by what their headers say; the last piece is what is left.
fn pieces(mut said: &[u8]) -> Vec<Vec<u8>> {
    let mut pieces = Vec::new();
    while let Some((header, rest)) = said.split_first_chunk::<HEADER_BYTES>() {
        let length = u32::from_be_bytes(header[..4].try_into().unwrap());
        let Some((body, rest)) = rest.split_at_checked(length.try_into().unwrap()) else {
            break;
        };
        pieces.push([header, body].concat());
        said = rest;
    }
    pieces.push(said.to_vec());
    pieces
}

/// Reads up to the end of the next request, or of the stream.
fn hear_request(from: &mut impl Read, heard: &mut Vec<u8>) {
    let mut header = [0; HEADER_BYTES];
    while from.read_exact(&mut header).is_ok() {
        let length = u32::from_be_bytes(header[..4].try_into().unwrap());
        heard.extend(header);
        from.take(length.into()).read_to_end(heard).unwrap();
        if header[4] == Kind::End as u8 {
            return;
        }
    }
}

fn converse(said: &[u8]) -> Result<(), FrameError> {
    let (mut host, runner) = host_of(said);
    let result = (|| {
        assert_eq!(host.hello(soon())?, b"hi");
        assert_eq!(host.call(b"one?", b"", soon())?, b"one");
        assert_eq!(host.call(b"two?", b"abc", soon())?, b"two");
        host.finish(soon())
    })();
    drop(host);
    runner.join().unwrap();
    result
}

/// A runner that reads what was promised, replies, and waits for the end.
fn serve(mut said: impl Read) -> Result<Vec<u8>, FrameError> {
    let mut out = Vec::new();
    let mut runner = RunnerChannel::new(&mut said, &mut out);
    runner.hello(b"hi")?;
    let request = runner.request()?;
    assert_eq!(request.as_deref(), Some(&b"put"[..]));
    let mut payload = Vec::new();
    let read = runner.payload(frame::PROMISED)?.read_to_end(&mut payload);
    read.map_err(|e| e.downcast::<FrameError>().unwrap())?;
    assert_eq!(payload, b"abcdef");
    runner.reply(b"done")?;
    assert_eq!(runner.request()?, None);
    Ok(out)
}

#[test]
fn a_host_refuses_every_forged_stream_with_its_code() {
    hold(&frame::host_attacks(), converse);
}

#[test]
fn a_runner_refuses_every_forged_stream_with_its_code() {
    hold(&frame::runner_attacks(), |said| serve(said).map(drop));
}

/// Hands out one byte at a time, and an interruption before each.
struct Dripping<'a>(&'a [u8], bool);

impl Read for Dripping<'_> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        self.1 = !self.1;
        if self.1 {
            return Err(std::io::ErrorKind::Interrupted.into());
        }
        let most = to.len().min(1);
        self.0.read(&mut to[..most])
    }
}

#[test]
fn a_runner_that_gets_one_byte_at_a_time_answers_the_same() {
    for attack in frame::runner_attacks() {
        assert_eq!(
            serve(Dripping(&attack.bytes, false)),
            serve(attack.bytes.as_slice())
        );
        assert_eq!(
            serve(Dripping(&attack.twin, false)),
            serve(attack.twin.as_slice())
        );
    }
}

#[test]
fn host_and_runner_understand_each_other() {
    let (from_runner, to_host) = rustix::pipe::pipe().unwrap();
    let (from_host, to_runner) = rustix::pipe::pipe().unwrap();
    let runner = std::thread::spawn(move || {
        let mut runner = RunnerChannel::new(File::from(from_host), File::from(to_host));
        runner.hello(b"hello").unwrap();
        let mut served = 0;
        while let Some(request) = runner.request().unwrap() {
            let promised = String::from_utf8(request).unwrap().parse().unwrap();
            let mut payload = Vec::new();
            runner
                .payload(promised)
                .unwrap()
                .read_to_end(&mut payload)
                .unwrap();
            assert_eq!(payload.len() as u64, promised);
            let sum = payload
                .iter()
                .fold(0u64, |sum, byte| sum + u64::from(*byte));
            runner.reply(format!("{sum}").as_bytes()).unwrap();
            served += 1;
        }
        served
    });
    let mut host = HostChannel::new(from_runner, to_runner).unwrap();
    assert_eq!(host.hello(soon()).unwrap(), b"hello");
    for size in [
        0,
        1,
        MAX_DATA_BYTES,
        MAX_DATA_BYTES + 1,
        3 * MAX_DATA_BYTES + 7,
    ] {
        let payload = vec![3; size];
        let reply = host
            .call(size.to_string().as_bytes(), &payload, soon())
            .unwrap();
        assert_eq!(reply, (3 * size).to_string().as_bytes());
    }
    host.finish(soon()).unwrap();
    assert_eq!(runner.join().unwrap(), 5);
}

#[test]
fn a_reply_at_the_limit_arrives() {
    let said = [
        encode(Kind::Hello, 0, b"hi").unwrap(),
        encode(Kind::Reply, 1, &vec![7; MAX_BODY_BYTES]).unwrap(),
    ];
    let (mut host, runner) = host_of(&said.concat());
    host.hello(soon()).unwrap();
    assert_eq!(host.call(b"?", b"", soon()).unwrap().len(), MAX_BODY_BYTES);
    drop(host);
    runner.join().unwrap();
}

/// The code of a call that must end at its deadline, and how long it took.
fn timed<T: std::fmt::Debug>(call: impl FnOnce(Instant) -> Result<T, FrameError>) -> FrameCode {
    let start = Instant::now();
    let limit = Duration::from_millis(120);
    let refused = call(start + limit).unwrap_err();
    assert!(start.elapsed() >= limit, "{:?}", start.elapsed());
    assert!(
        start.elapsed() < Duration::from_secs(10),
        "{:?}",
        start.elapsed()
    );
    refused.code
}

#[test]
fn a_runner_that_says_nothing_is_left_at_the_deadline() {
    let (reader, _silent) = rustix::pipe::pipe().unwrap();
    let (_kept, writer) = rustix::pipe::pipe().unwrap();
    let mut host = HostChannel::new(reader, writer).unwrap();
    assert_eq!(timed(|deadline| host.hello(deadline)), FrameCode::Timeout);
}

#[test]
fn a_runner_that_says_one_byte_at_a_time_is_left_at_the_deadline() {
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    let (_kept, to_runner) = rustix::pipe::pipe().unwrap();
    let mut host = HostChannel::new(reader, to_runner).unwrap();
    let dripping = std::thread::spawn(move || {
        let mut writer = File::from(writer);
        let bytes = encode(Kind::Hello, 0, &[b'x'; 4000]).unwrap();
        // Ends when the host is dropped and the pipe with it.
        for byte in bytes {
            if writer.write_all(&[byte]).is_err() {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    assert_eq!(timed(|deadline| host.hello(deadline)), FrameCode::Timeout);
    drop(host);
    dripping.join().unwrap();
}

#[test]
fn a_runner_that_reads_nothing_is_left_at_the_deadline() {
    let (mut host, _kept) = host(&encode(Kind::Hello, 0, b"hi").unwrap());
    host.hello(soon()).unwrap();
    let upload = vec![0; 1 << 20];
    assert_eq!(
        timed(|deadline| host.call(b"put", &upload, deadline)),
        FrameCode::Timeout
    );
}

#[test]
fn a_runner_that_does_not_end_is_left_at_the_deadline() {
    let (reader, _silent) = rustix::pipe::pipe().unwrap();
    let (_kept, writer) = rustix::pipe::pipe().unwrap();
    let mut host = HostChannel::new(reader, writer).unwrap();
    assert_eq!(timed(|deadline| host.finish(deadline)), FrameCode::Timeout);
}

#[test]
fn a_deadline_that_has_passed_wins_over_bytes_that_are_there() {
    let (mut host, _kept) = host(&encode(Kind::Hello, 0, b"hi").unwrap());
    assert_eq!(
        host.hello(Instant::now()).unwrap_err().code,
        FrameCode::Timeout
    );
}

#[test]
fn after_the_first_error_a_host_asks_nothing_more() {
    let said = [
        encode(Kind::Hello, 0, b"hi").unwrap(),
        encode(Kind::Reply, 7, b"forged").unwrap(),
        encode(Kind::Reply, 1, b"honest").unwrap(),
        encode(Kind::Reply, 2, b"honest").unwrap(),
    ];
    let (mut host, runner) = host_of(&said.concat());
    host.hello(soon()).unwrap();
    for _ in 0..3 {
        let refused = host.call(b"?", b"", soon()).unwrap_err();
        assert_eq!(refused.code, FrameCode::ProtocolViolation);
    }
    drop(host);
    let asked = runner.join().unwrap();
    assert_eq!(asked.len(), 2 * HEADER_BYTES + 1, "one request and its end");
}

#[test]
fn an_answer_that_was_written_before_its_request_is_no_answer() {
    // Its number is the right one: numbers can be guessed.
    let hello = encode(Kind::Hello, 0, b"hi").unwrap();
    let ahead = encode(Kind::Reply, 1, b"forged").unwrap();
    let both = [&hello[..], &ahead[..]].concat();
    // Read together with the greeting, or still in the pipe, or a part of each.
    for together in [both.len(), hello.len(), hello.len() + 1] {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let (kept, to_runner) = rustix::pipe::pipe().unwrap();
        let mut writer = File::from(writer);
        let mut host = HostChannel::new(reader, to_runner).unwrap();
        writer.write_all(&both[..together]).unwrap();
        host.hello(soon()).unwrap();
        writer.write_all(&both[together..]).unwrap();
        let refused = host.call(b"?", b"", soon()).unwrap_err();
        assert_eq!(refused.code, FrameCode::ProtocolViolation);
        let unasked = match together - hello.len() {
            // The rest is still in the pipe.
            1 => 1,
            _ => ahead.len(),
        };
        assert_eq!(
            refused.detail,
            format!("{unasked} bytes or more before the request")
        );
        drop(host);
        let mut asked = Vec::new();
        File::from(kept).read_to_end(&mut asked).unwrap();
        assert!(asked.is_empty(), "nothing is asked of a runner that lies");
    }
}

#[test]
fn all_that_a_session_says_is_bounded_by_the_byte() {
    let said = [
        encode(Kind::Hello, 0, b"hi").unwrap(),
        encode(Kind::Reply, 1, b"one").unwrap(),
        encode(Kind::Reply, 2, b"two").unwrap(),
    ]
    .concat();
    let whole = u64::try_from(said.len()).unwrap();
    for step in 1..said.len() {
        let decoded = |budget| {
            let mut decoder = Decoder::with_budget(budget);
            let mut found = 0;
            for mut piece in said.chunks(step) {
                while decoder.feed(&mut piece)?.is_some() {
                    found += 1;
                }
            }
            decoder.finish().map(|()| found)
        };
        assert_eq!(decoded(whole), Ok(3));
        assert_eq!(decoded(whole - 1).unwrap_err().code, FrameCode::Oversize);
    }
}

#[test]
fn a_host_stops_listening_where_its_budget_ends() {
    let said = encode(Kind::Hello, 0, b"hi").unwrap();
    for (budget, taken) in [(said.len(), true), (said.len() - 1, false)] {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let (_kept, to_runner) = rustix::pipe::pipe().unwrap();
        File::from(writer).write_all(&said).unwrap();
        let budget = budget.try_into().unwrap();
        let mut host = HostChannel::with_budget(reader, to_runner, budget).unwrap();
        let heard = host.hello(soon()).map_err(|e| e.code);
        assert_eq!(heard.is_ok(), taken);
        assert!(taken || heard == Err(FrameCode::Oversize));
    }
}

#[test]
fn a_host_changes_no_flag_of_a_pipe_that_others_share() {
    let (reader, to_host) = rustix::pipe::pipe().unwrap();
    let (from_host, writer) = rustix::pipe::pipe().unwrap();
    let shared = [reader.try_clone().unwrap(), writer.try_clone().unwrap()];
    let before = shared
        .each_ref()
        .map(|fd| rustix::fs::fcntl_getfl(fd).unwrap());
    let mut host = HostChannel::new(reader, writer).unwrap();
    let said = encode(Kind::Hello, 0, b"hi").unwrap();
    File::from(to_host).write_all(&said).unwrap();
    host.hello(soon()).unwrap();
    drop(from_host);
    host.call(b"?", b"", soon()).unwrap_err();
    let after = shared
        .each_ref()
        .map(|fd| rustix::fs::fcntl_getfl(fd).unwrap());
    assert_eq!(before, after);
    assert!(!after[0].contains(rustix::fs::OFlags::NONBLOCK));
}

#[test]
fn a_host_talks_over_one_socket_as_over_two_pipes() {
    let (mine, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    let runner = std::thread::spawn(move || {
        let mut runner = RunnerChannel::new(&theirs, &theirs);
        runner.hello(b"hi").unwrap();
        assert_eq!(runner.request().unwrap().as_deref(), Some(&b"?"[..]));
        runner.reply(b"!").unwrap();
    });
    let twice = OwnedFd::from(mine.try_clone().unwrap());
    let mut host = HostChannel::new(mine.into(), twice).unwrap();
    host.hello(soon()).unwrap();
    assert_eq!(host.call(b"?", b"", soon()).unwrap(), b"!");
    runner.join().unwrap();
}

#[test]
fn a_host_takes_neither_files_nor_the_wrong_end_of_a_pipe() {
    let pipe = || rustix::pipe::pipe().unwrap();
    let file = || OwnedFd::from(File::open("/proc/self/exe").unwrap());
    for (reader, writer) in [
        (file(), pipe().1),
        (pipe().1, pipe().1),
        (pipe().0, pipe().0),
    ] {
        let refused = HostChannel::new(reader, writer).unwrap_err();
        assert_eq!(refused.code, FrameCode::InvalidFd);
    }
}

#[test]
fn what_is_left_at_the_end_is_said_by_its_size() {
    let hello = encode(Kind::Hello, 0, b"hi").unwrap();
    for together in [true, false] {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let (_kept, to_runner) = rustix::pipe::pipe().unwrap();
        let mut writer = File::from(writer);
        let mut host = HostChannel::new(reader, to_runner).unwrap();
        let said = [&hello[..], if together { b"extra" } else { b"" }].concat();
        writer.write_all(&said).unwrap();
        host.hello(soon()).unwrap();
        if !together {
            writer.write_all(b"extra").unwrap();
        }
        let refused = host.finish(soon()).unwrap_err();
        assert_eq!(refused.code, FrameCode::Trailing);
        assert_eq!(refused.detail, "5 bytes or more");
    }
}

#[test]
fn a_runner_takes_all_that_one_read_gives() {
    let body = vec![7; 200_000];
    let said = [
        encode(Kind::Request, 1, &body).unwrap(),
        encode(Kind::End, 1, &[]).unwrap(),
    ];
    let said = said.concat();
    let mut runner = RunnerChannel::new(said.as_slice(), Vec::new());
    assert_eq!(runner.request().unwrap(), Some(body));
}

/// Claims a byte more than there was room for.
struct Boasting;

impl Read for Boasting {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        Ok(to.len() + 1)
    }
}

#[test]
fn a_reader_that_claims_more_than_it_was_asked_for_is_not_believed() {
    let mut runner = RunnerChannel::new(Boasting, Vec::new());
    assert_eq!(runner.request().unwrap_err().code, FrameCode::SourceError);
}

/// Fails once; whoever asks again is told that the stream has ended.
struct Failing(bool);

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        match std::mem::take(&mut self.0) {
            true => Err(std::io::ErrorKind::ConnectionReset.into()),
            false => Ok(0),
        }
    }
}

#[test]
fn a_reader_that_fails_is_not_asked_again() {
    let mut runner = RunnerChannel::new(Failing(true), Vec::new());
    assert_eq!(runner.request().unwrap_err().code, FrameCode::SourceError);
}

#[test]
fn what_is_carried_is_never_shown() {
    let body = || b"sesame".to_vec();
    let message = Message {
        kind: Kind::Reply,
        seq: 7,
        body: body(),
    };
    let shown = [
        format!("{message:?}"),
        format!("{:?}", Answer::Hello(body())),
        format!("{:?}", Answer::Reply(body())),
        format!(
            "{:?}",
            Event::Request {
                seq: 7,
                body: body()
            }
        ),
        format!("{:?}", Event::Data(body())),
        format!("{:?}", Event::End),
    ];
    let expected = [
        "Reply 7 of 6 bytes",
        "a greeting of 6 bytes",
        "a reply of 6 bytes",
        "request 7 of 6 bytes",
        "6 bytes of data",
        "an end",
    ];
    assert_eq!(shown, expected);
}

#[test]
fn a_late_reply_is_not_taken_for_the_next_one() {
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    let mut out = File::from(writer);
    out.write_all(&encode(Kind::Hello, 0, b"hi").unwrap())
        .unwrap();
    let (_kept, to_runner) = rustix::pipe::pipe().unwrap();
    let mut host = HostChannel::new(reader, to_runner).unwrap();
    host.hello(soon()).unwrap();
    assert_eq!(
        timed(|deadline| host.call(b"?", b"", deadline)),
        FrameCode::Timeout
    );
    out.write_all(&encode(Kind::Reply, 1, b"late").unwrap())
        .unwrap();
    let refused = host.call(b"?", b"", soon()).unwrap_err();
    assert_eq!(refused.code, FrameCode::ProtocolViolation);
}

#[test]
fn a_side_that_is_gone_is_a_source_error() {
    let (mut host, kept) = host(&encode(Kind::Hello, 0, b"hi").unwrap());
    host.hello(soon()).unwrap();
    drop(kept);
    assert_eq!(
        host.call(b"?", b"", soon()).unwrap_err().code,
        FrameCode::SourceError
    );
    let mut runner = RunnerChannel::new(std::io::empty(), File::open("/dev/null").unwrap());
    assert_eq!(
        runner.hello(b"hi").unwrap_err().code,
        FrameCode::SourceError
    );
}

#[test]
fn what_no_reader_would_accept_is_not_written() {
    for (kind, size, code) in [
        (Kind::Hello, 0, FrameCode::Empty),
        (Kind::Request, 0, FrameCode::Empty),
        (Kind::Data, 0, FrameCode::Empty),
        (Kind::End, 1, FrameCode::Oversize),
        (Kind::Data, MAX_DATA_BYTES + 1, FrameCode::Oversize),
        (Kind::Hello, MAX_HELLO_BYTES + 1, FrameCode::Oversize),
        (Kind::Reply, MAX_BODY_BYTES + 1, FrameCode::Oversize),
    ] {
        assert_eq!(encode(kind, 1, &vec![0; size]).unwrap_err().code, code);
    }
    assert_eq!(
        encode(Kind::End, 0x0102_0304, &[]).unwrap(),
        [0, 0, 0, 0, 4, 1, 2, 3, 4]
    );
}

#[test]
fn a_runner_may_refuse_an_upload_without_reading_it() {
    let twin = &frame::runner_attacks()[0].twin;
    let mut out = Vec::new();
    let mut runner = RunnerChannel::new(twin.as_slice(), &mut out);
    runner.request().unwrap();
    let mut first = [0; 2];
    runner
        .payload(frame::PROMISED)
        .unwrap()
        .read_exact(&mut first)
        .unwrap();
    runner.reply(b"no room").unwrap();
    assert_eq!(runner.request(), Ok(None));
    assert_eq!(out, encode(Kind::Reply, 1, b"no room").unwrap());
}

#[test]
fn a_runner_that_is_used_out_of_turn_says_so() {
    let twin = &frame::runner_attacks()[0].twin;
    let mut runner = RunnerChannel::new(twin.as_slice(), Vec::new());
    assert_eq!(
        runner.reply(b"?").unwrap_err().code,
        FrameCode::ProtocolViolation
    );
    runner.request().unwrap();
    assert_eq!(
        runner.request().unwrap_err().code,
        FrameCode::ProtocolViolation
    );
    assert_eq!(
        RequestReader::new().promise(1).unwrap_err().code,
        FrameCode::ProtocolViolation
    );
}

#[test]
fn what_is_promised_is_promised_once_and_nothing_unless_told() {
    let twin = &frame::runner_attacks()[0].twin;
    let mut runner = RunnerChannel::new(twin.as_slice(), Vec::new());
    runner.request().unwrap();
    let mut first = [0; 3];
    runner
        .payload(frame::PROMISED)
        .unwrap()
        .read_exact(&mut first)
        .unwrap();
    let again = runner.payload(frame::PROMISED).unwrap_err();
    assert_eq!(again.code, FrameCode::ProtocolViolation);
    let mut untold = RunnerChannel::new(twin.as_slice(), Vec::new());
    untold.request().unwrap();
    assert_eq!(
        untold.reply(b"?").unwrap_err().code,
        FrameCode::ProtocolViolation
    );
    let bare = [
        encode(Kind::Request, 1, b"probe").unwrap(),
        encode(Kind::End, 1, &[]).unwrap(),
    ];
    let bare = bare.concat();
    let mut runner = RunnerChannel::new(bare.as_slice(), Vec::new());
    runner.request().unwrap();
    runner.reply(b"done").unwrap();
}

#[test]
fn the_oracle_accepts_every_attack_and_every_twin_in_every_split() {
    for attack in [frame::host_attacks(), frame::runner_attacks()].concat() {
        for step in 0..16 {
            fuzzing::channel_raw(&[&[step], &attack.bytes[..]].concat());
            fuzzing::channel_raw(&[&[step], &attack.twin[..]].concat());
        }
    }
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded_whatever_the_split(
        parts in proptest::collection::vec((2u8..4, any::<u32>(), proptest::collection::vec(any::<u8>(), 1..60)), 0..6),
        step in 1usize..70,
    ) {
        let kind = |kind| if kind == 2 { Kind::Request } else { Kind::Data };
        let stream: Vec<u8> = parts.iter().flat_map(|(k, seq, body)| encode(kind(*k), *seq, body).unwrap()).collect();
        let (messages, error) = fuzzing::decode(&stream, step);
        prop_assert_eq!(error, None);
        let found: Vec<_> = messages.into_iter().map(|m| (m.kind as u8, m.seq, m.body)).collect();
        prop_assert_eq!(found, parts);
    }

    #[test]
    fn every_conversation_goes_as_the_rules_say(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
        fuzzing::channel_plan(&Conversation::from_bytes(&bytes));
    }

    #[test]
    fn any_bytes_give_the_same_result_in_every_split(
        bytes in proptest::collection::vec(prop_oneof![Just(0u8), 0u8..7, any::<u8>()], 0..120)
    ) {
        fuzzing::channel_raw(&bytes);
    }
}

/// Gives an oracle the seeds of a fuzz target, and whatever once broke it.
fn replay(target: &str, oracle: impl Fn(&[u8])) {
    let mut replayed = 0;
    for kind in ["seeds", "regressions"] {
        let folder = format!("{}/../../fuzz/{kind}/{target}", env!("CARGO_MANIFEST_DIR"));
        // There are regressions only where there were findings.
        for file in std::fs::read_dir(folder).into_iter().flatten() {
            oracle(&std::fs::read(file.unwrap().path()).unwrap());
            replayed += 1;
        }
    }
    assert!(replayed > 3, "{target}: {replayed}");
}

#[test]
fn the_oracles_accept_every_seed() {
    replay("channel_raw", fuzzing::channel_raw);
    replay("channel_plan", |bytes| {
        fuzzing::channel_plan(&Conversation::from_bytes(bytes));
    });
}

#[test]
fn any_bytes_stand_for_a_conversation_and_some_go_well() {
    let (mut answered, mut broken) = (0, 0);
    let mut bytes = vec![0; 60];
    let mut state = 1u64;
    for round in 0..4_000 {
        for byte in &mut bytes {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            *byte = state.to_le_bytes()[7];
        }
        let conversation = Conversation::from_bytes(&bytes[round % 60..]);
        fuzzing::channel_plan(&conversation);
        let honest = |turns: &[Turn]| {
            let mut kinds = turns.iter().map(|turn| match turn {
                Turn::Ask => 0,
                Turn::Say { kind, .. } => *kind,
            });
            [1, 0, 5].iter().all(|kind| kinds.next() == Some(*kind))
        };
        answered += usize::from(honest(&conversation.turns));
        broken += usize::from(!honest(&conversation.turns));
    }
    assert!(answered > 20 && broken > 20, "{answered}, {broken}");
}
