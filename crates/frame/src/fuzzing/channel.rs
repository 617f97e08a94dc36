use crate::FrameError;
use crate::channel::{Decoder, Message, ReplyReader, RequestReader, encode};

/// The first byte says where the rest is split; whatever the split, messages and error are the
/// same, what was decoded encodes to what was read, and the rules end at their first refusal.
///
/// # Panics
/// One of these does not hold.
pub fn channel_raw(bytes: &[u8]) {
    let (step, stream) = bytes
        .split_first()
        .map_or((1, bytes), |(b, rest)| (*b, rest));
    let (messages, error) = decode(stream, stream.len().max(1));
    let split = decode(stream, usize::from(step).max(1));
    assert_eq!(
        (&messages, &error),
        (&split.0, &split.1),
        "the split mattered"
    );
    assert_eq!(
        decode(stream, 1),
        (messages.clone(), error),
        "the split mattered"
    );
    let mut again = Vec::new();
    for message in &messages {
        let encoded = encode(message.kind, message.seq, &message.body);
        again.extend(encoded.unwrap_or_else(|e| panic!("decoded but not encodable: {e}")));
    }
    assert!(stream.starts_with(&again), "a second spelling was accepted");
    follow_rules(messages);
}

/// All messages of a stream fed in pieces of `step` bytes, and how it ended.
pub fn decode(stream: &[u8], step: usize) -> (Vec<Message>, Option<FrameError>) {
    decode_within(stream, step, u64::MAX)
}

pub(super) fn decode_within(
    stream: &[u8],
    step: usize,
    budget: u64,
) -> (Vec<Message>, Option<FrameError>) {
    let mut decoder = Decoder::with_budget(budget);
    let mut messages = Vec::new();
    for mut piece in stream.chunks(step) {
        loop {
            match decoder.feed(&mut piece) {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => break,
                Err(error) => return (messages, Some(error)),
            }
        }
    }
    (messages, decoder.finish().err())
}

fn follow_rules(messages: Vec<Message>) {
    let (mut host, mut runner) = (ReplyReader::new(), RequestReader::new());
    let (mut host_broke, mut runner_broke) = (false, false);
    for message in messages {
        let refused = host.accept(message.clone()).is_err();
        assert!(!host_broke || refused, "the host went on after a violation");
        host_broke = refused;
        if !host_broke {
            // Refused while the greeting is awaited, and that ends the conversation as well.
            host_broke = host.request().is_err();
        }
        let refused = runner.accept(message).is_err();
        assert!(
            !runner_broke || refused,
            "the runner went on after a violation"
        );
        runner_broke = refused;
    }
}
