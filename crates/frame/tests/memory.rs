//! How much memory is set aside for what a stranger sends.

use flightproof_frame::bootstrap::{BUFFER_BYTES, Limits, Source, Waits, receive};
use flightproof_frame::channel::{Decoder, Kind, MAX_BODY_BYTES, encode};
use flightproof_frame::fuzzing;
use proptest::prelude::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::{self, Read};
use std::time::Instant;

thread_local! {
    /// Bytes this thread has set aside, given back or not.
    static TAKEN: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: everything is the system's allocator; only sizes are added up.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        TAKEN.set(TAKEN.get() + layout.size());
        // SAFETY: the caller's conditions are the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's conditions are the same.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn taken<T>(body: impl FnOnce() -> T) -> usize {
    let before = TAKEN.get();
    drop(body());
    TAKEN.get() - before
}

/// All that decoding sets aside, over its whole life, for so many bytes that came: a body that
/// doubles while it grows adds up to four times its bytes, and what is refused costs one text.
fn bound(bytes: usize) -> usize {
    4 * bytes + 2048
}

fn decode(stream: &[u8], step: usize) -> usize {
    let mut decoder = Decoder::new();
    taken(|| {
        for mut piece in stream.chunks(step) {
            while decoder.feed(&mut piece)?.is_some() {}
        }
        decoder.finish()
    })
}

#[test]
fn a_claim_sets_no_memory_aside() {
    let claim = |kind: Kind, length: usize| {
        let length = u32::try_from(length).unwrap().to_be_bytes();
        [&length[..], &[kind as u8, 0, 0, 0, 1, b'x']].concat()
    };
    for stream in [
        claim(Kind::Reply, MAX_BODY_BYTES),
        claim(Kind::Reply, 0xffff_ffff),
        claim(Kind::Request, MAX_BODY_BYTES),
    ] {
        let found = decode(&stream, 1);
        assert!(found <= bound(stream.len()), "{found}");
    }
    // What sets memory aside by the claim would be noticed.
    assert!(taken(|| Vec::<u8>::with_capacity(MAX_BODY_BYTES)) > bound(10));
}

#[test]
fn the_longest_message_costs_a_multiple_of_itself_however_it_comes() {
    let stream = encode(Kind::Reply, 1, &vec![7; MAX_BODY_BYTES]).unwrap();
    for step in [1 << 10, 4093, 64 << 10, stream.len()] {
        let found = decode(&stream, step);
        assert!(found >= MAX_BODY_BYTES);
        assert!(found <= bound(stream.len()), "{found} in steps of {step}");
    }
}

struct Slice(&'static [u8]);

impl Source for Slice {
    fn read(&mut self, to: &mut [u8], _: Instant) -> io::Result<usize> {
        self.0.read(to)
    }

    fn close(self) -> io::Result<()> {
        Ok(())
    }

    fn waits(&self) -> Waits {
        Waits::Never
    }
}

#[test]
fn a_frame_costs_one_buffer_whatever_it_claims() {
    for stream in [
        &b"\0\0\0\x06secret"[..],
        b"\xff\xff\xff\xffsecret",
        b"\0\x01\0\0s",
        b"",
    ] {
        let found = taken(|| receive(Slice(stream), Limits::default()));
        assert!(found >= BUFFER_BYTES);
        assert!(found <= BUFFER_BYTES + 2048, "{found}");
    }
}

proptest! {
    #[test]
    fn decoding_sets_aside_at_most_a_multiple_of_what_came(
        bytes in proptest::collection::vec(prop_oneof![Just(0u8), 0u8..7, any::<u8>()], 0..400),
        step in 1usize..80,
    ) {
        let found = decode(&bytes, step);
        prop_assert!(found <= bound(bytes.len()), "{found} for {}", bytes.len());
    }

    #[test]
    fn many_small_messages_cost_a_multiple_of_all_of_them(
        bodies in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..30), 0..50),
    ) {
        let stream: Vec<u8> = bodies.iter().flat_map(|body| encode(Kind::Data, 1, body).unwrap()).collect();
        prop_assert_eq!(fuzzing::decode(&stream, 7).1, None);
        let found = decode(&stream, 7);
        prop_assert!(found <= bound(stream.len()), "{found} for {}", stream.len());
    }
}
