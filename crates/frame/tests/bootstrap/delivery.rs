use crate::fake::{Act, Fake, Gate, limits};
use flightproof_frame::bootstrap::{Waits, receive};
use flightproof_frame::{FrameCode, FrameError, fuzzing};
use flightproof_hostile::frame::bootstrap_frame;
use fuzzing::{Delivery, Ending, Step};
use proptest::prelude::*;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The code of the answer to a source; it must be closed exactly once.
fn code_of(source: Fake, close_ms: u64) -> Result<(), FrameCode> {
    let closed = Arc::clone(&source.closed);
    let result = receive(source, limits(20_000, close_ms)).map(drop);
    assert_eq!(closed.load(Ordering::SeqCst), 1);
    result.map_err(|e| e.code)
}

fn frame() -> Vec<u8> {
    bootstrap_frame(b"secret")
}

#[test]
fn what_a_source_does_wrong_has_its_code() {
    let fail = || Act::Fail(ErrorKind::Other);
    let table = [
        (Act::Claim(usize::MAX), Act::Nothing, FrameCode::SourceError),
        (Act::Claim(65_542), Act::Nothing, FrameCode::SourceError),
        (fail(), Act::Nothing, FrameCode::SourceError),
        (Act::Errno(libc::EIO), Act::Nothing, FrameCode::SourceError),
        (Act::Panic, Act::Nothing, FrameCode::Internal),
        (Act::Nothing, fail(), FrameCode::CloseFailed),
        (Act::Nothing, Act::Errno(libc::EIO), FrameCode::CloseFailed),
        (Act::Nothing, Act::Panic, FrameCode::CloseUnconfirmed),
        // The first thing that went wrong is named, unless it is not known whether it is closed.
        (fail(), fail(), FrameCode::SourceError),
        (Act::Panic, fail(), FrameCode::Internal),
        (fail(), Act::Panic, FrameCode::CloseUnconfirmed),
        (Act::Panic, Act::Panic, FrameCode::CloseUnconfirmed),
    ];
    for waits in [Waits::Never, Waits::Close, Waits::Anywhere] {
        assert_eq!(
            code_of(
                Fake {
                    waits,
                    ..Fake::of(&frame())
                },
                2_000
            ),
            Ok(())
        );
        for (first, close, code) in table.clone() {
            let source = Fake {
                waits,
                first,
                close,
                ..Fake::of(&frame())
            };
            assert_eq!(code_of(source, 2_000), Err(code));
        }
    }
}

#[test]
fn a_close_that_hangs_is_left_behind_and_never_a_success() {
    for waits in [Waits::Close, Waits::Anywhere] {
        for bytes in [frame(), vec![0; 4], vec![]] {
            let (gate, _open) = Gate::new();
            let start = Instant::now();
            let source = Fake {
                waits,
                close: Act::Hang(gate),
                ..Fake::of(&bytes)
            };
            assert_eq!(code_of(source, 100), Err(FrameCode::CloseUnconfirmed));
            assert!(start.elapsed() >= Duration::from_millis(100));
            assert!(start.elapsed() < Duration::from_secs(5));
        }
    }
}

#[test]
fn the_total_deadline_wins_over_a_close_that_hangs() {
    let (gate, _open) = Gate::new();
    let source = Fake {
        close: Act::Hang(gate),
        ..Fake::of(&frame())
    };
    let start = Instant::now();
    let refused = receive(source, limits(100, 10_000)).unwrap_err();
    assert_eq!(refused.code, FrameCode::Timeout);
    assert!(start.elapsed() >= Duration::from_millis(100));
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_close_that_takes_longer_than_it_may_is_not_confirmed_even_where_it_cannot_be_left() {
    let slow = |total, close| {
        let source = Fake {
            waits: Waits::Never,
            close: Act::Sleep(Duration::from_millis(60)),
            ..Fake::of(&frame())
        };
        receive(source, limits(total, close))
            .map(drop)
            .map_err(|e| e.code)
    };
    assert_eq!(slow(10_000, 20), Err(FrameCode::CloseUnconfirmed));
    assert_eq!(slow(20, 10_000), Err(FrameCode::Timeout));
    assert_eq!(slow(10_000, 10_000), Ok(()));
}

#[test]
fn a_read_that_hangs_is_left_behind_at_the_deadline() {
    let (gate, _open) = Gate::new();
    let source = Fake {
        waits: Waits::Anywhere,
        first: Act::Hang(gate),
        ..Fake::of(&frame())
    };
    let start = Instant::now();
    let refused = receive(source, limits(100, 100)).unwrap_err();
    assert_eq!(refused.code, FrameCode::Timeout);
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[test]
fn bytes_that_are_always_there_do_not_win_over_the_clock() {
    let source = Fake {
        most: 1,
        first: Act::Sleep(Duration::from_millis(1)),
        ..Fake::of(&bootstrap_frame(&[1; 30_000]))
    };
    let refused = receive(source, limits(50, 100)).unwrap_err();
    assert_eq!(refused.code, FrameCode::Timeout);
}

#[test]
fn a_source_that_always_comes_back_early_is_left_at_the_deadline() {
    for kind in [
        ErrorKind::Interrupted,
        ErrorKind::WouldBlock,
        ErrorKind::TimedOut,
    ] {
        let source = Fake {
            first: Act::Fail(kind),
            ..Fake::of(&frame())
        };
        let refused = receive(source, limits(50, 100)).unwrap_err();
        assert_eq!(refused.code, FrameCode::Timeout);
    }
}

#[test]
fn the_words_of_a_foreign_error_are_not_shown() {
    let shown = |error: FrameError| format!("{error} {error:?}");
    for kind in [ErrorKind::Other, ErrorKind::InvalidData] {
        let read = Fake {
            first: Act::Fail(kind),
            ..Fake::of(&frame())
        };
        let closed = Fake {
            close: Act::Fail(kind),
            ..Fake::of(&frame())
        };
        for source in [read, closed] {
            let text = shown(receive(source, limits(1_000, 1_000)).unwrap_err());
            assert!(!text.contains("sesame"), "{text}");
            assert!(text.contains(&kind.to_string()), "{text}");
        }
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (0u16..12).prop_map(Step::Give),
        2 => Just(Step::Give(u16::MAX)),
        2 => Just(Step::Interrupted),
        2 => Just(Step::Early),
        1 => prop_oneof![Just(Step::Boast), Just(Step::Fail), Just(Step::Panic)],
    ];
    proptest::collection::vec(step, 0..12)
}

fn stream() -> impl Strategy<Value = Vec<u8>> {
    let body = || proptest::collection::vec(any::<u8>(), 0..24);
    prop_oneof![
        body().prop_map(|body| bootstrap_frame(&body)),
        (0u32..30, body()).prop_map(|(length, body)| [&length.to_be_bytes()[..], &body].concat()),
        (any::<u32>(), body())
            .prop_map(|(length, body)| [&length.to_be_bytes()[..], &body].concat()),
        body(),
    ]
}

proptest! {
    #[test]
    fn however_a_stream_is_delivered_the_answer_is_the_one_the_rules_give(
        stream in stream(),
        steps in steps(),
        ending in prop_oneof![4 => Just(Ending::Closed), 1 => Just(Ending::Failed), 1 => Just(Ending::Panicked)],
    ) {
        fuzzing::bootstrap_plan(&Delivery { stream, steps, ending });
    }

    #[test]
    fn any_stream_gives_the_same_answer_in_every_split(step in any::<u8>(), stream in stream()) {
        fuzzing::bootstrap_raw(&[&[step][..], &stream].concat());
    }
}

#[test]
fn a_failure_is_named_by_where_in_the_frame_it_came() {
    for (given, code) in [
        (0, FrameCode::SourceError),
        (3, FrameCode::SourceError),
        (9, FrameCode::SourceError),
        (10, FrameCode::ReadTrailing),
    ] {
        let steps = match given {
            0 => vec![Step::Fail],
            given => vec![Step::Give(given), Step::Fail],
        };
        let delivery = Delivery {
            stream: frame(),
            steps,
            ending: Ending::Closed,
        };
        fuzzing::bootstrap_plan(&delivery);
        let source = TwoReads(given.into(), Fake::of(&frame()));
        assert_eq!(
            receive(source, limits(1_000, 1_000)).unwrap_err().code,
            code
        );
    }
}

/// Gives so many bytes and then fails.
struct TwoReads(usize, Fake);

impl flightproof_frame::bootstrap::Source for TwoReads {
    fn read(&mut self, to: &mut [u8], deadline: Instant) -> std::io::Result<usize> {
        self.1.most = std::mem::take(&mut self.0);
        if self.1.most == 0 {
            return Err(ErrorKind::Other.into());
        }
        flightproof_frame::bootstrap::Source::read(&mut self.1, to, deadline)
    }

    fn close(self) -> std::io::Result<()> {
        flightproof_frame::bootstrap::Source::close(self.1)
    }

    fn waits(&self) -> Waits {
        Waits::Never
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
    replay("bootstrap_raw", fuzzing::bootstrap_raw);
    replay("bootstrap_plan", |bytes| {
        fuzzing::bootstrap_plan(&Delivery::from_bytes(bytes));
    });
}

#[test]
fn any_bytes_stand_for_a_plan_and_plans_reach_success_and_refusal() {
    let mut whole = 0;
    let mut bytes = vec![0; 40];
    let mut state = 1u64;
    for round in 0..2_000 {
        for byte in &mut bytes {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            *byte = state.to_le_bytes()[7];
        }
        let delivery = Delivery::from_bytes(&bytes[round % 40..]);
        fuzzing::bootstrap_plan(&delivery);
        let faithful = delivery.ending == Ending::Closed
            && !delivery
                .steps
                .iter()
                .any(|step| matches!(step, Step::Boast | Step::Fail | Step::Panic));
        whole += usize::from(faithful && fuzzing::frame_of(&delivery.stream).is_ok());
    }
    assert!((200..1_800).contains(&whole), "{whole} of 2000");
}
