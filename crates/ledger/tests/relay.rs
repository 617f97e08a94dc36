//! Two ends of a link, over streams that fail in every way a network does.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set up its scene must fail"
)]

use flightproof_ledger::relay::{Ended, Grant, Message, Talk};
use flightproof_ledger::{Ledger, LedgerCode, LedgerError, Name};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn code<T: std::fmt::Debug>(answer: Result<T, LedgerError>) -> LedgerCode {
    answer.unwrap_err().code
}

fn ended(talk: &Talk) -> LedgerCode {
    match &talk.ended {
        Ended::Drained => panic!("it ended well"),
        Ended::Cut(refused) | Ended::Stopped(refused) => refused.code,
    }
}

/// How long an end waits for a frame that may have been dropped on the way.
const SHORT: Duration = Duration::from_millis(400);
/// How long it waits where nothing is dropped.
const LONG: Duration = Duration::from_secs(20);

struct Pair {
    _temp: tempfile::TempDir,
    sender: Ledger,
    receiver: Ledger,
    link: Name,
}

impl Pair {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let mut sender = Ledger::open(&temp.path().join("sender")).unwrap();
        let mut receiver = Ledger::open(&temp.path().join("receiver")).unwrap();
        let link = name("link");
        let grant = receiver.issue_grant(&name("grant"), &link).unwrap();
        let text = grant.reveal();
        sender.accept_grant(&text.parse().unwrap()).unwrap();
        Self {
            _temp: temp,
            sender,
            receiver,
            link,
        }
    }

    fn queue(&mut self, numbers: std::ops::Range<u64>) {
        let link = &self.link;
        self.sender
            .write(|w| {
                for n in numbers {
                    w.queue(link, &name(&format!("k{n}")), &body(n))?;
                }
                Ok(())
            })
            .unwrap();
    }

    /// One connection, perhaps through something that sits between.
    fn talk(&mut self, between: Option<Meddler>) -> (Talk, Talk, Vec<u64>) {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let patience = if between.is_some() { SHORT } else { LONG };
        let (theirs, meddler) = match between {
            None => (theirs, None),
            Some(meddler) => {
                let (far, near) = UnixStream::pair().unwrap();
                (
                    far,
                    Some(std::thread::spawn(move || meddler.run(&theirs, &near))),
                )
            }
        };
        for stream in [&ours, &theirs] {
            stream.set_read_timeout(Some(patience)).unwrap();
        }
        let mut applied = Vec::new();
        let receiver = &mut self.receiver;
        let (sent, received) = std::thread::scope(|scope| {
            let applied = &mut applied;
            let receiving = scope.spawn(move || {
                let mut theirs = theirs;
                receiver
                    .receive_over(&mut theirs, |_, message| {
                        applied.push(message.seq);
                        answer(&message)
                    })
                    .unwrap()
            });
            let sent = self.sender.relay(&self.link, &mut ours).unwrap();
            drop(ours);
            (sent, receiving.join().unwrap())
        });
        if let Some(meddler) = meddler {
            meddler.join().unwrap();
        }
        (sent, received, applied)
    }
}

fn body(n: u64) -> Vec<u8> {
    format!("message {n}").into_bytes()
}

fn answer(message: &Message<'_>) -> Result<Vec<u8>, LedgerError> {
    assert_eq!(message.body, body(message.seq - 1));
    Ok(format!("answer to {}", message.key).into_bytes())
}

/// Sits between the ends, and knows frames by their headers.
#[derive(Clone, Copy)]
struct Meddler {
    /// What it does, and to which frame from the sender.
    act: Act,
    frame: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Act {
    /// The connection ends before the frame.
    CutBefore,
    /// It ends in the middle of the frame.
    CutWithin,
    /// It ends after the frame: the answer never comes.
    CutAfter,
    /// The frame comes twice.
    Double,
    /// The frame and the one after it change places, or it is dropped if there is none.
    Drop,
    /// One bit is another.
    Flip,
}

impl Meddler {
    fn run(self, from: &UnixStream, to: &UnixStream) {
        let back = (to.try_clone().unwrap(), from.try_clone().unwrap());
        let backwards = std::thread::spawn(move || pipe(back.0, back.1));
        let mut number = 0;
        let (mut reader, mut writer) = (from, to);
        while let Some(mut frame) = read_frame(&mut reader) {
            let mine = number == self.frame;
            number += 1;
            if mine {
                match self.act {
                    Act::CutBefore => break,
                    Act::CutWithin => {
                        let _ = writer.write_all(&frame[..frame.len() / 2]);
                        break;
                    }
                    Act::CutAfter => {
                        // Nobody is left to bring the answer back to.
                        from.shutdown(std::net::Shutdown::Both).unwrap();
                    }
                    Act::Double => {
                        let _ = writer.write_all(&frame);
                    }
                    Act::Drop => continue,
                    Act::Flip => {
                        let middle = frame.len() / 2;
                        frame[middle] ^= 1;
                    }
                }
            }
            if writer.write_all(&frame).is_err() {
                break;
            }
        }
        let _ = to.shutdown(std::net::Shutdown::Write);
        if self.act != Act::CutAfter {
            let _ = from.shutdown(std::net::Shutdown::Read);
        }
        let _ = from.shutdown(std::net::Shutdown::Both);
        let _ = to.shutdown(std::net::Shutdown::Both);
        backwards.join().unwrap();
    }
}

fn read_frame(stream: &mut impl Read) -> Option<Vec<u8>> {
    let mut frame = vec![0; 5];
    stream.read_exact(&mut frame).ok()?;
    let length = u32::from_be_bytes(frame[1..5].try_into().unwrap());
    let code = if frame[0] >= 16 { 32 } else { 0 };
    let mut rest = vec![0; usize::try_from(length).unwrap() + code];
    stream.read_exact(&mut rest).ok()?;
    frame.extend(rest);
    Some(frame)
}

fn pipe(mut from: UnixStream, mut to: UnixStream) {
    let _ = std::io::copy(&mut from, &mut to);
    let _ = to.shutdown(std::net::Shutdown::Write);
}

#[test]
fn messages_arrive_in_order_and_their_answers_come_back() {
    let mut pair = Pair::new();
    pair.queue(0..200);
    let (sent, received, applied) = pair.talk(None);
    assert_eq!((sent.ended, sent.done), (Ended::Drained, 200));
    assert_eq!((received.ended, received.done), (Ended::Drained, 200));
    assert_eq!(applied, (1..=200).collect::<Vec<_>>());
    for n in [0, 99, 199] {
        let got = pair
            .sender
            .acknowledged(&pair.link, &name(&format!("k{n}")))
            .unwrap();
        assert_eq!(got.unwrap(), format!("answer to k{n}").into_bytes());
    }
    pair.sender.forget_sent(&pair.link).unwrap();
    let again = pair
        .sender
        .queue(&pair.link, &name("k7"), &body(7))
        .unwrap();
    assert_eq!(again, 8, "a key outlives its body");
}

#[test]
fn a_queued_message_is_known_by_its_key_and_the_link_by_its_grant() {
    let mut pair = Pair::new();
    let key = name("k0");
    assert_eq!(pair.sender.queue(&pair.link, &key, b"a").unwrap(), 1);
    assert_eq!(pair.sender.queue(&pair.link, &key, b"a").unwrap(), 1);
    assert_eq!(
        code(pair.sender.queue(&pair.link, &key, b"b")),
        LedgerCode::KeyTaken
    );
    assert_eq!(
        code(pair.sender.queue(&name("other"), &key, b"a")),
        LedgerCode::GrantRefused
    );
    let large = vec![0; (1 << 20) + 1];
    assert_eq!(
        code(pair.sender.queue(&pair.link, &name("k1"), &large)),
        LedgerCode::BodyTooLarge
    );
    assert_eq!(pair.sender.acknowledged(&pair.link, &key).unwrap(), None);
    assert_eq!(pair.sender.link(&pair.link).unwrap().queued, 1);
}

/// Frames from the sender: the greeting is 0 and 1, bursts follow.
#[test]
fn whatever_happens_on_the_way_every_message_is_applied_once_and_in_order() {
    for act in [
        Act::CutBefore,
        Act::CutWithin,
        Act::CutAfter,
        Act::Double,
        Act::Drop,
        Act::Flip,
    ] {
        for frame in 0..5 {
            let mut pair = Pair::new();
            pair.queue(0..130);
            let (_, _, mut applied) = pair.talk(Some(Meddler { act, frame }));
            pair.sender = pair.sender.reopen().unwrap();
            pair.receiver = pair.receiver.reopen().unwrap();
            let (sent, _, rest) = pair.talk(None);
            assert_eq!(sent.ended, Ended::Drained, "{act:?} {frame}");
            applied.extend(rest);
            assert_eq!(applied, (1..=130).collect::<Vec<_>>(), "{act:?} {frame}");
            let (sender, receiver) = (
                pair.sender.link(&pair.link).unwrap(),
                pair.receiver.link(&pair.link).unwrap(),
            );
            assert_eq!((sender.acknowledged, receiver.applied), (130, 130));
        }
    }
}

#[test]
fn an_answer_that_was_lost_is_given_again_byte_for_byte_without_a_second_effect() {
    let mut pair = Pair::new();
    pair.queue(0..1);
    let lost = Meddler {
        act: Act::CutAfter,
        frame: 2,
    };
    let (sent, received, applied) = pair.talk(Some(lost));
    assert_eq!(ended(&sent), LedgerCode::RelayCut);
    assert_eq!((received.done, applied), (1, vec![1]));
    assert_eq!(pair.sender.link(&pair.link).unwrap().acknowledged, 0);
    let (sent, received, applied) = pair.talk(None);
    assert_eq!((sent.done, received.done, applied), (1, 0, vec![]));
    let got = pair.sender.acknowledged(&pair.link, &name("k0")).unwrap();
    assert_eq!(got.unwrap(), b"answer to k0");
}

#[test]
fn a_doubled_or_changed_frame_ends_the_connection_and_nothing_else() {
    for act in [Act::Double, Act::Flip] {
        let mut pair = Pair::new();
        pair.queue(0..130);
        let (_, received, _) = pair.talk(Some(Meddler { act, frame: 2 }));
        assert_eq!(ended(&received), LedgerCode::RelayUnproven, "{act:?}");
        assert!(matches!(received.ended, Ended::Cut(_)));
    }
}

#[test]
fn a_grant_is_good_for_the_first_sender_that_proves_itself() {
    let mut pair = Pair::new();
    let temp = tempfile::tempdir().unwrap();
    let grant = pair.receiver.issue_grant(&name("g2"), &name("l2")).unwrap();
    assert!(!format!("{grant:?}").contains(grant.reveal().rsplit(' ').next().unwrap()));
    let mut thief = Ledger::open(&temp.path().join("thief")).unwrap();
    thief.accept_grant(&grant).unwrap();
    pair.sender.accept_grant(&grant).unwrap();
    pair.link = name("l2");
    pair.queue(0..1);
    assert_eq!(pair.talk(None).0.ended, Ended::Drained);
    thief.queue(&pair.link, &name("k"), b"x").unwrap();
    std::mem::swap(&mut pair.sender, &mut thief);
    let (sent, received, applied) = pair.talk(None);
    assert_eq!(
        (ended(&sent), ended(&received)),
        (LedgerCode::GrantSpent, LedgerCode::GrantSpent)
    );
    assert!(matches!(sent.ended, Ended::Stopped(_)) && applied.is_empty());
    // The first one goes on, with a new connection each time.
    std::mem::swap(&mut pair.sender, &mut thief);
    pair.queue(1..2);
    assert_eq!(pair.talk(None).0.ended, Ended::Drained);
}

#[test]
fn whoever_has_no_grant_or_another_secret_is_told_no() {
    let mut pair = Pair::new();
    let temp = tempfile::tempdir().unwrap();
    let forged = |id: &str, link: &str| -> Grant {
        format!("flightproof-grant-1 {id} {link} {}", "ab".repeat(32))
            .parse()
            .unwrap()
    };
    for (id, link, expected) in [
        ("grant", "link", LedgerCode::RelayUnproven),
        ("nobody", "link", LedgerCode::GrantRefused),
        ("grant", "elsewhere", LedgerCode::GrantRefused),
    ] {
        let mut stranger = Ledger::open(&temp.path().join(format!("{id}-{link}"))).unwrap();
        stranger.accept_grant(&forged(id, link)).unwrap();
        std::mem::swap(&mut pair.sender, &mut stranger);
        pair.link = name(link);
        let (sent, received, _) = pair.talk(None);
        assert_eq!(ended(&received), expected);
        assert_eq!(ended(&sent), LedgerCode::GrantRefused);
        std::mem::swap(&mut pair.sender, &mut stranger);
    }
    pair.link = name("link");
    pair.queue(0..1);
    assert_eq!(
        pair.talk(None).0.ended,
        Ended::Drained,
        "the grant is not spent by failures"
    );
    for bad in [
        "",
        "flightproof-grant-1",
        "flightproof-grant-2 a b 00",
        "flightproof-grant-1 a b 00",
        &format!("flightproof-grant-1 a b {} more", "ab".repeat(32)),
    ] {
        assert_eq!(code(bad.parse::<Grant>()), LedgerCode::GrantRefused);
    }
}

#[test]
fn a_grant_or_a_link_is_made_once() {
    let mut pair = Pair::new();
    for (id, link) in [("grant", "new"), ("new", "link")] {
        let again = pair.receiver.issue_grant(&name(id), &name(link));
        assert_eq!(code(again.map(|g| g.reveal())), LedgerCode::KeyTaken);
    }
}

#[test]
fn a_message_the_receiver_refuses_stops_the_link_and_is_not_skipped() {
    let mut pair = Pair::new();
    pair.queue(0..5);
    let run = |pair: &mut Pair, refuse: bool| {
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        let receiver = &mut pair.receiver;
        std::thread::scope(|scope| {
            let receiving = scope.spawn(move || {
                receiver
                    .receive_over(&mut theirs, |_, m| {
                        if refuse && m.seq == 3 {
                            return Err(LedgerCode::QueueFull.refuse("not now"));
                        }
                        answer(&m)
                    })
                    .unwrap()
            });
            let sent = pair.sender.relay(&pair.link, &mut ours).unwrap();
            drop(ours);
            (sent, receiving.join().unwrap())
        })
    };
    let (sent, received) = run(&mut pair, true);
    assert_eq!((sent.done, ended(&sent)), (2, LedgerCode::RelayRefused));
    assert_eq!(
        (received.done, ended(&received)),
        (2, LedgerCode::RelayRefused)
    );
    assert_eq!(pair.sender.link(&pair.link).unwrap().acknowledged, 2);
    let (sent, received) = run(&mut pair, false);
    assert_eq!(
        (sent.ended, sent.done, received.done),
        (Ended::Drained, 3, 3)
    );
}

/// Copies a closed ledger's folder.
fn copy(from: &std::path::Path, to: &std::path::Path) {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().mode(0o700).create(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

#[test]
fn an_end_that_was_put_back_whole_is_noticed_by_the_other_one() {
    for forgetful in ["sender", "receiver"] {
        let mut pair = Pair::new();
        let temp = pair._temp.path().to_owned();
        pair.queue(0..3);
        assert_eq!(pair.talk(None).0.ended, Ended::Drained);
        let old = temp.join("old");
        copy(&temp.join(forgetful), &old);
        pair.queue(3..5);
        assert_eq!(pair.talk(None).0.ended, Ended::Drained);
        // With its anchor, an old copy is a good ledger. Its partner remembers.
        let restored = Ledger::open(&old).unwrap();
        match forgetful {
            "sender" => pair.sender = restored,
            _ => pair.receiver = restored,
        }
        let (sent, _, applied) = pair.talk(None);
        assert_eq!(ended(&sent), LedgerCode::RelayDiverged, "{forgetful}");
        assert!(matches!(sent.ended, Ended::Stopped(_)) && applied.is_empty());
    }
}

#[test]
fn another_message_under_an_applied_number_is_refused() {
    let mut pair = Pair::new();
    let temp = pair._temp.path().to_owned();
    pair.sender = pair.sender.reopen().unwrap();
    copy(&temp.join("sender"), &temp.join("old"));
    pair.queue(0..1);
    let lost = Meddler {
        act: Act::CutAfter,
        frame: 2,
    };
    pair.talk(Some(lost));
    // The sender is put back to before it queued anything, and queues something else.
    pair.sender = Ledger::open(&temp.join("old")).unwrap();
    pair.sender
        .queue(&pair.link, &name("other"), b"other")
        .unwrap();
    let (sent, received, applied) = pair.talk(None);
    assert_eq!(ended(&received), LedgerCode::RelayDiverged);
    assert_eq!(ended(&sent), LedgerCode::RelayRefused);
    assert_eq!((applied, sent.done), (vec![], 0));
}

#[test]
fn a_damaged_row_is_not_made_whole_when_it_is_sealed_anew() {
    let mut pair = Pair::new();
    pair.queue(0..3);
    let (sent, ..) = pair.talk(None);
    assert_eq!(sent.ended, Ended::Drained);
    let file = pair._temp.path().join("sender").join(Ledger::FILE);
    let raw = rusqlite::Connection::open(file).unwrap();
    raw.execute_batch("UPDATE outbox SET answer = x'00' WHERE seq = 2")
        .unwrap();
    assert_eq!(
        code(pair.sender.forget_sent(&pair.link)),
        LedgerCode::LedgerDamaged
    );
    assert_eq!(code(pair.sender.check()), LedgerCode::LedgerDamaged);
    let second = pair.sender.acknowledged(&pair.link, &name("k1"));
    assert_eq!(code(second), LedgerCode::LedgerDamaged);
}

#[test]
fn large_answers_are_split_over_bursts_and_all_come_back() {
    let mut pair = Pair::new();
    pair.queue(1..12);
    let large = |n: u64| vec![u8::try_from(n).unwrap(); 1 << 20];
    let (mut ours, mut theirs) = UnixStream::pair().unwrap();
    for stream in [&ours, &theirs] {
        stream.set_read_timeout(Some(LONG)).unwrap();
    }
    let mut applied = Vec::new();
    let receiver = &mut pair.receiver;
    let (sent, received) = std::thread::scope(|scope| {
        let receiving = scope.spawn(|| {
            receiver.receive_over(&mut theirs, |_, message| {
                applied.push(message.seq);
                Ok(large(message.seq))
            })
        });
        let sent = pair.sender.relay(&pair.link, &mut ours).unwrap();
        drop(ours);
        (sent, receiving.join().unwrap().unwrap())
    });
    assert_eq!((sent.ended, sent.done), (Ended::Drained, 11));
    assert_eq!((received.ended, received.done), (Ended::Drained, 11));
    assert_eq!(applied, (1..12).collect::<Vec<_>>());
    for n in 1..12 {
        let answer = pair
            .sender
            .acknowledged(&pair.link, &name(&format!("k{n}")));
        assert_eq!(answer.unwrap(), Some(large(n)));
    }
}

#[test]
fn large_messages_are_split_over_bursts_and_arrive_whole() {
    let mut pair = Pair::new();
    let large: Vec<Vec<u8>> = (0..4u8).map(|n| vec![n; 700_000]).collect();
    for (n, body) in large.iter().enumerate() {
        pair.sender
            .queue(&pair.link, &name(&format!("k{n}")), body)
            .unwrap();
    }
    let (mut ours, mut theirs) = UnixStream::pair().unwrap();
    let receiver = &mut pair.receiver;
    let mut got = Vec::new();
    let sent = std::thread::scope(|scope| {
        let got = &mut got;
        scope.spawn(move || {
            receiver
                .receive_over(&mut theirs, |_, m| {
                    got.push(m.body.to_vec());
                    Ok(Vec::new())
                })
                .unwrap()
        });
        pair.sender.relay(&pair.link, &mut ours).unwrap()
    });
    assert_eq!(sent.ended, Ended::Drained);
    assert_eq!(got, large);
}

#[test]
fn bytes_that_are_no_frames_end_the_connection_before_anything_is_kept() {
    for bytes in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        &[0; 64],
        &[1, 0xff, 0xff, 0xff, 0xff],
        &[16, 0, 0, 0, 0, 0],
        &[3, 0, 0, 0, 1, 0],
    ] {
        let mut pair = Pair::new();
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        ours.write_all(bytes).unwrap();
        ours.shutdown(std::net::Shutdown::Write).unwrap();
        let head = pair.receiver.head().unwrap();
        let talk = pair
            .receiver
            .receive_over(&mut theirs, |_, m| answer(&m))
            .unwrap();
        assert!(
            matches!(ended(&talk), LedgerCode::RelayFrame | LedgerCode::RelayCut),
            "{talk:?}"
        );
        assert_eq!(pair.receiver.head().unwrap(), head);
    }
}
