//! What must be true for any bytes: one body for unit tests, the replay of seeds, and fuzz targets.
#![doc(hidden)]

use crate::relay::{
    Deframer, Frame, Raw, ReceiverEffect, ReceiverState, SenderEffect, SenderEvent, SenderState,
    receive, send,
};

/// Bytes of a link: how they are cut into reads changes nothing, a frame that decodes encodes to
/// the same bytes, and what is refused stays refused. Returns how many frames were whole.
///
/// # Panics
/// If any of that is not so.
pub fn relay_raw(bytes: &[u8]) -> usize {
    let whole = deframe(bytes, bytes.len().max(1));
    for piece in [1, 7] {
        assert_eq!(deframe(bytes, piece), whole, "split into {piece}");
    }
    for raw in &whole.0 {
        if let Ok(frame) = Frame::decode(&raw.signed) {
            assert_eq!(frame.encode(), raw.signed, "{frame:?}");
        }
    }
    whole.0.len()
}

/// All whole frames, and whether what follows them was refused.
fn deframe(bytes: &[u8], piece: usize) -> (Vec<Raw>, bool) {
    let mut deframer = Deframer::default();
    let mut frames = Vec::new();
    for part in bytes.chunks(piece) {
        deframer.push(part);
        loop {
            match deframer.take() {
                Ok(Some(raw)) => frames.push(raw),
                Ok(None) => break,
                Err(_) => return (frames, true),
            }
        }
    }
    (frames, false)
}

/// A link between two honest ends over a network that each byte tells what to do: whatever it does,
/// everything is applied once and in order, and acknowledged means applied. Returns how many
/// messages were acknowledged.
///
/// # Panics
/// If that is not so.
pub fn relay_plan(plan: &[u8]) -> u64 {
    let mut world = World::default();
    for step in plan {
        world.step(*step);
        assert!(world.log.iter().copied().eq(1..=world.receiver.applied));
        assert!(world.sender.acknowledged <= world.receiver.applied);
        assert!(world.receiver.applied <= world.sender.queued);
    }
    world.sender.acknowledged
}

#[derive(Default)]
struct World {
    sender: SenderState,
    receiver: ReceiverState,
    log: Vec<u64>,
    connection: u32,
    /// Bursts ever sent, each with its connection; answers of this connection.
    bursts: Vec<(u32, u64, u64)>,
    answers: Vec<(u64, u64)>,
}

/// Most messages of a burst in this world.
const BURST: u64 = 3;

impl World {
    fn step(&mut self, step: u8) {
        let pick = usize::from(step >> 3);
        match step & 7 {
            0 => self.tell(SenderEvent::Queue),
            1 => {
                self.answers.clear();
                self.connection += 1;
                let applied = self.receiver.applied;
                self.tell(SenderEvent::Connect { applied });
            }
            2 => self.tell(SenderEvent::Lose),
            3 | 4 => {
                // Any burst ever sent may come, again or late.
                if let Some(&(connection, first, last)) = nth(&self.bursts, pick) {
                    let count = self.arrive(first, last);
                    // An answer to an earlier connection has a code that fits no more.
                    if connection == self.connection {
                        self.answers.push((first, count));
                    }
                }
            }
            5 => {
                // It arrives, and the receiver dies before it answers.
                if let Some(&(_, first, last)) = nth(&self.bursts, pick) {
                    self.arrive(first, last);
                }
            }
            _ => {
                if let Some(&(first, count)) = nth(&self.answers, pick) {
                    self.tell(SenderEvent::Acknowledge { first, count });
                }
            }
        }
    }

    fn tell(&mut self, event: SenderEvent) {
        let (next, effects) = send(self.sender, event, BURST);
        self.sender = next;
        for effect in effects {
            match effect {
                SenderEffect::Send { first, last } => {
                    self.bursts.push((self.connection, first, last));
                }
                SenderEffect::Diverged => panic!("honest ends diverged"),
                _ => {}
            }
        }
    }

    fn arrive(&mut self, first: u64, last: u64) -> u64 {
        let mut count = 0;
        for seq in first..=last {
            let (next, effect) = receive(self.receiver, seq, true);
            match effect {
                ReceiverEffect::Apply => {
                    self.receiver = next;
                    self.log.push(seq);
                }
                ReceiverEffect::Replay => {}
                ReceiverEffect::Gap | ReceiverEffect::Differs => break,
            }
            count += 1;
        }
        count
    }
}

fn nth<T>(all: &[T], pick: usize) -> Option<&T> {
    all.get(pick % all.len().max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flightproof_core::Digest;
    use proptest::prelude::*;

    fn frames() -> Vec<Frame> {
        let name = |text: &str| text.parse().unwrap();
        vec![
            Frame::Hello {
                grant: name("g"),
                link: name("l"),
                nonce: [1; 32],
                fresh: [2; 32],
            },
            Frame::Challenge { fresh: [3; 32] },
            Frame::Proof { proof: [4; 32] },
            Frame::Welcome {
                proof: [5; 32],
                applied: 6,
            },
            Frame::No { spent: true },
            Frame::Burst {
                first: 1,
                messages: vec![(name("k"), b"body".to_vec()), (name("m"), Vec::new())],
            },
            Frame::Answers {
                first: 1,
                answers: vec![(Digest::of(b"x"), b"answer".to_vec())],
            },
            Frame::Bye,
        ]
    }

    fn bytes(frame: &Frame) -> Vec<u8> {
        let mut bytes = frame.encode();
        if bytes[0] >= 16 {
            bytes.extend([0; 32]);
        }
        bytes
    }

    #[test]
    fn every_kind_of_frame_is_read_back_as_it_was_written() {
        let all: Vec<u8> = frames().iter().flat_map(bytes).collect();
        assert_eq!(relay_raw(&all), frames().len());
        for frame in frames() {
            assert_eq!(Frame::decode(&frame.encode()), Ok(frame));
        }
    }

    #[test]
    fn no_byte_of_a_frame_can_be_changed_so_that_another_spelling_is_accepted() {
        for frame in frames() {
            let whole = bytes(&frame);
            for at in 0..whole.len() {
                for bit in 0..8 {
                    let mut bytes = whole.clone();
                    bytes[at] ^= 1 << bit;
                    relay_raw(&bytes);
                }
            }
        }
    }

    #[test]
    fn seeds_are_what_they_are_named() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
        for (target, least) in [("relay_raw", 4), ("relay_plan", 2)] {
            let seeds: Vec<_> = std::fs::read_dir(folder.join(target)).unwrap().collect();
            assert!(seeds.len() >= least, "{target}");
            for seed in seeds {
                let path = seed.unwrap().path();
                let bytes = std::fs::read(&path).unwrap();
                let name = path.file_name().unwrap().to_str().unwrap();
                let reached = match target {
                    "relay_raw" => u64::try_from(relay_raw(&bytes)).unwrap(),
                    _ => relay_plan(&bytes),
                };
                assert_eq!(
                    reached == 0,
                    name.starts_with("nothing-"),
                    "{name}: {reached}"
                );
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_bytes_are_frames_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            relay_raw(&bytes);
        }

        #[test]
        fn any_network_delivers_once_and_in_order(plan in proptest::collection::vec(any::<u8>(), 0..200)) {
            relay_plan(&plan);
        }
    }
}
