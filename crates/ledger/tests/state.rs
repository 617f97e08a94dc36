//! Requests, leases, records, sessions and letters: done once, owned by one, ended for certain.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set up its scene must fail"
)]

use flightproof_core::Digest;
use flightproof_ledger::record::RecordState;
use flightproof_ledger::{
    Begun, Cap, HoldSize, Lease, Ledger, LedgerCode, LedgerError, Name, Received, RecordKind,
    Reserve, Scope, SessionEvent, SessionState,
};
use std::path::PathBuf;

const NOW: u64 = 1_780_000_000;
const MINUTE: u64 = 60;

fn open() -> (tempfile::TempDir, PathBuf, Ledger) {
    let temp = tempfile::tempdir().unwrap();
    let state = temp.path().join("state");
    let ledger = Ledger::open(&state).unwrap();
    (temp, state, ledger)
}

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn code<T: std::fmt::Debug>(answer: Result<T, LedgerError>) -> LedgerCode {
    answer.unwrap_err().code
}

fn lease(ledger: &mut Ledger, owner: &str, now: u64) -> Result<Lease, LedgerError> {
    ledger.lease(&name("daemon"), &name(owner), now, MINUTE)
}

#[test]
fn the_same_request_gets_the_first_answer_byte_for_byte_for_ever() {
    let (_temp, _, mut ledger) = open();
    let owner = lease(&mut ledger, "a", NOW).unwrap();
    let (key, request) = (name("k"), Digest::of(b"request"));
    assert_eq!(ledger.known(&key, request).unwrap(), None);
    assert_eq!(
        ledger.receive(&key, request, &owner).unwrap(),
        Received::Fresh
    );
    assert_eq!(
        ledger.receive(&key, request, &owner).unwrap(),
        Received::InProgress
    );
    ledger.answer(&key, &owner, b"\x00the answer\xff").unwrap();
    let answered = Received::Answered(b"\x00the answer\xff".to_vec());
    assert_eq!(ledger.receive(&key, request, &owner).unwrap(), answered);
    let mut ledger = ledger.reopen().unwrap();
    assert_eq!(ledger.known(&key, request).unwrap(), Some(answered));
    assert_eq!(
        code(ledger.answer(&key, &owner, b"another")),
        LedgerCode::KeyState
    );
    assert_eq!(
        code(ledger.reconcile(&key, b"another")),
        LedgerCode::KeyState
    );
    ledger.forget(&key).unwrap();
    ledger.forget(&key).unwrap();
    let forgotten = Received::Forgotten(Digest::of(b"\x00the answer\xff"));
    let mut ledger = ledger.reopen().unwrap();
    assert_eq!(ledger.receive(&key, request, &owner).unwrap(), forgotten);
    assert_eq!(
        ledger
            .serve(&key, request, |_| panic!("done again"))
            .unwrap(),
        forgotten
    );
}

#[test]
fn another_request_under_a_known_key_is_refused_in_every_state() {
    let (_temp, _, mut ledger) = open();
    let owner = lease(&mut ledger, "a", NOW).unwrap();
    let (key, request, other) = (name("k"), Digest::of(b"request"), Digest::of(b"other"));
    ledger.receive(&key, request, &owner).unwrap();
    assert_eq!(
        code(ledger.receive(&key, other, &owner)),
        LedgerCode::KeyTaken
    );
    ledger.answer(&key, &owner, b"x").unwrap();
    assert_eq!(code(ledger.known(&key, other)), LedgerCode::KeyTaken);
    ledger.forget(&key).unwrap();
    let served = ledger.serve(&key, other, |_| Ok(Vec::new()));
    assert_eq!(code(served), LedgerCode::KeyTaken);
}

#[test]
fn an_effect_and_its_answer_are_one_transaction() {
    let (_temp, _, mut ledger) = open();
    let (key, request) = (name("k"), Digest::of(b"request"));
    let cap = Cap::usd("1".parse().unwrap());
    let failed = ledger.serve(&key, request, |w| {
        w.state_cap(Scope::Total, cap, NOW)?;
        Err(LedgerCode::QueueFull.refuse("the effect failed"))
    });
    assert_eq!(code(failed), LedgerCode::QueueFull);
    assert_eq!(ledger.known(&key, request).unwrap(), None);
    assert_eq!(ledger.spending(NOW).unwrap().caps.total, None);
    let mut runs = 0;
    for _ in 0..3 {
        let served = ledger.serve(&key, request, |w| {
            runs += 1;
            w.state_cap(Scope::Total, cap, NOW)?;
            Ok(b"stated".to_vec())
        });
        assert_eq!(served.unwrap(), Received::Answered(b"stated".to_vec()));
    }
    assert_eq!(runs, 1);
    assert_eq!(ledger.spending(NOW).unwrap().caps.total, Some(cap));
}

#[test]
fn work_of_an_owner_that_is_gone_is_unknown_and_never_done_again() {
    let (_temp, _, mut ledger) = open();
    let first = lease(&mut ledger, "a", NOW).unwrap();
    let (key, request) = (name("k"), Digest::of(b"request"));
    ledger.receive(&key, request, &first).unwrap();
    let second = lease(&mut ledger, "b", NOW + MINUTE).unwrap();
    assert_eq!(
        ledger.receive(&key, request, &second).unwrap(),
        Received::Unknown
    );
    assert_eq!(
        code(ledger.answer(&key, &first, b"late")),
        LedgerCode::LeaseLost
    );
    assert_eq!(
        code(ledger.answer(&key, &second, b"guess")),
        LedgerCode::KeyState
    );
    let served = ledger.serve(&key, request, |_| panic!("done again"));
    assert_eq!(served.unwrap(), Received::Unknown);
    ledger.reconcile(&key, b"found out").unwrap();
    assert_eq!(
        ledger.receive(&key, request, &second).unwrap(),
        Received::Answered(b"found out".to_vec())
    );
}

#[test]
fn work_of_an_owner_that_nobody_followed_can_be_reconciled() {
    let (_temp, _, mut ledger) = open();
    let owner = lease(&mut ledger, "a", NOW).unwrap();
    let (key, request) = (name("k"), Digest::of(b"request"));
    ledger.receive(&key, request, &owner).unwrap();
    let early = ledger.reconcile(&key, b"guess");
    assert_eq!(code(early), LedgerCode::KeyState, "its owner works on it");
    ledger.release_lease(&owner).unwrap();
    assert_eq!(
        ledger.known(&key, request).unwrap(),
        Some(Received::Unknown)
    );
    ledger.reconcile(&key, b"found out").unwrap();
    assert_eq!(
        ledger.known(&key, request).unwrap(),
        Some(Received::Answered(b"found out".to_vec()))
    );
    let again = ledger.reconcile(&key, b"another");
    assert_eq!(code(again), LedgerCode::KeyState);
}

#[test]
fn an_answer_that_is_too_large_is_refused_whole() {
    let (_temp, _, mut ledger) = open();
    let key = name("k");
    let served = ledger.serve(&key, Digest::of(b"r"), |_| Ok(vec![0; (1 << 20) + 1]));
    assert_eq!(code(served), LedgerCode::BodyTooLarge);
    assert!(
        ledger
            .serve(&key, Digest::of(b"r"), |_| Ok(vec![0; 1 << 20]))
            .is_ok()
    );
}

#[test]
fn a_key_that_one_index_still_knows_is_not_new() {
    // What a damaged page would do: one of the two ways to a row does not lead there any more.
    for damage in [
        "UPDATE inbox SET number = number + 1",
        "UPDATE inbox SET key = 'x'",
    ] {
        let (_temp, state, mut ledger) = open();
        let key = name("k");
        ledger
            .serve(&key, Digest::of(b"r"), |_| Ok(Vec::new()))
            .unwrap();
        let raw = rusqlite::Connection::open(state.join(Ledger::FILE)).unwrap();
        raw.execute_batch(damage).unwrap();
        let served = ledger.serve(&key, Digest::of(b"r"), |_| panic!("done again"));
        assert_eq!(code(served), LedgerCode::LedgerDamaged, "{damage}");
        let within = ledger.write(|w| w.serve(&key, Digest::of(b"r"), |_| Ok(Vec::new())));
        assert_eq!(code(within), LedgerCode::LedgerDamaged, "{damage}");
    }
}

#[test]
fn a_clock_decides_when_another_may_try_and_nothing_else() {
    let (_temp, _, mut ledger) = open();
    let first = lease(&mut ledger, "a", NOW).unwrap();
    for early in [NOW, NOW + MINUTE - 1] {
        assert_eq!(code(lease(&mut ledger, "b", early)), LedgerCode::LeaseHeld);
    }
    // Its time is over, but nobody else came: it is still the owner.
    ledger.read(|r| r.check_lease(&first)).unwrap();
    ledger
        .renew_lease(&first, NOW + 5 * MINUTE, MINUTE)
        .unwrap();
    assert_eq!(
        code(lease(&mut ledger, "b", NOW + 5 * MINUTE)),
        LedgerCode::LeaseHeld
    );
    // A clock that was set back says nothing about how long ago the grant was.
    let second = lease(&mut ledger, "b", NOW - 1).unwrap();
    assert_eq!((first.token, second.token), (1, 2));
    assert_eq!(
        code(ledger.renew_lease(&first, NOW, MINUTE)),
        LedgerCode::LeaseLost
    );
    assert_eq!(code(ledger.release_lease(&first)), LedgerCode::LeaseLost);
    ledger.release_lease(&second).unwrap();
    assert_eq!(
        code(ledger.read(|r| r.check_lease(&second))),
        LedgerCode::LeaseLost
    );
    assert_eq!(lease(&mut ledger, "c", 0).unwrap().token, 3);
}

#[test]
fn row_33_of_two_daemons_only_the_newest_reserves() {
    let (_temp, _, mut ledger) = open();
    ledger
        .state_cap(Scope::Total, Cap::usd("9".parse().unwrap()), NOW)
        .unwrap();
    let first = lease(&mut ledger, "a", NOW).unwrap();
    let second = lease(&mut ledger, "b", NOW + MINUTE).unwrap();
    let ask = Reserve {
        run: name("r"),
        request: Digest::of(b"r"),
        size: HoldSize::for_limit("1".parse().unwrap(), "1".parse().unwrap(), 1).unwrap(),
        parent: None,
    };
    let mut reserve = |lease: &Lease| {
        ledger.write(|w| {
            w.check_lease(lease)?;
            w.reserve(&ask, NOW)
        })
    };
    assert_eq!(code(reserve(&first)), LedgerCode::LeaseLost);
    assert!(reserve(&second).is_ok());
}

#[test]
fn a_thousand_owners_racing_have_one_at_a_time() {
    let (_temp, state, _ledger) = open();
    let tokens = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                let state = &state;
                scope.spawn(move || {
                    let mut ledger = Ledger::open(state).unwrap();
                    let mut tokens = Vec::new();
                    for n in 0..25 {
                        // Every clock reads differently, and all are past the end of any lease.
                        let now = NOW + (n * 4 + thread) * 10 * MINUTE;
                        if let Ok(lease) = lease(&mut ledger, "x", now) {
                            tokens.push(lease.token);
                        }
                    }
                    tokens
                })
            })
            .collect();
        let mut all: Vec<u64> = threads
            .into_iter()
            .flat_map(|t| t.join().unwrap())
            .collect();
        all.sort_unstable();
        all
    });
    let expected: Vec<u64> = (1..=u64::try_from(tokens.len()).unwrap()).collect();
    assert_eq!(tokens, expected, "no token twice, none left out");
    assert!(tokens.len() > 25);
}

#[test]
fn what_was_interrupted_is_reported_and_not_done_again() {
    let (_temp, _, mut ledger) = open();
    let first = lease(&mut ledger, "a", NOW).unwrap();
    let session = name("s");
    let begin = |ledger: &mut Ledger, key: &str, kind, lease: &Lease| {
        ledger.begin_record(
            &session,
            &name(key),
            kind,
            Digest::of(key.as_bytes()),
            lease,
        )
    };
    for (key, kind) in ["command", "event", "call", "observation"]
        .iter()
        .zip(RecordKind::ALL)
    {
        assert_eq!(begin(&mut ledger, key, kind, &first).unwrap(), Begun::Do);
    }
    let again = begin(&mut ledger, "command", RecordKind::Command, &first);
    assert_eq!(again.unwrap(), Begun::Pending);
    ledger
        .end_record(&session, &name("command"), &first, b"exit 0")
        .unwrap();
    let mut ledger = ledger.reopen().unwrap();
    let second = lease(&mut ledger, "b", NOW + MINUTE).unwrap();
    let done = begin(&mut ledger, "command", RecordKind::Command, &second);
    assert_eq!(done.unwrap(), Begun::Done(b"exit 0".to_vec()));
    let call = begin(&mut ledger, "call", RecordKind::ProviderCall, &second);
    assert_eq!(call.unwrap(), Begun::Interrupted);
    let other_kind = begin(&mut ledger, "call", RecordKind::Event, &second);
    assert_eq!(code(other_kind), LedgerCode::KeyTaken);
    assert_eq!(
        code(begin(&mut ledger, "new", RecordKind::Event, &first)),
        LedgerCode::LeaseLost
    );
    let late = ledger.end_record(&session, &name("call"), &first, b"late");
    assert_eq!(code(late), LedgerCode::LeaseLost);
    let by_the_next = ledger.end_record(&session, &name("call"), &second, b"guess");
    assert_eq!(code(by_the_next), LedgerCode::KeyState);
    let interrupted = ledger.interrupted_records().unwrap();
    assert_eq!(interrupted.len(), 3);
    let records = ledger.records(&session).unwrap();
    assert_eq!(records.len(), 4);
    assert_eq!(
        (records[0].state, records[1].state),
        (RecordState::Applied, RecordState::Interrupted)
    );
    let huge = ledger.end_record(&session, &name("call"), &second, &[0; 4097]);
    assert_eq!(code(huge), LedgerCode::BodyTooLarge);
}

#[test]
fn a_session_is_deleted_when_somebody_looked_and_never_comes_back() {
    use SessionEvent::{Close, ConfirmDeletion, Create, DeletionUncertain, Passivate, Run};
    let (_temp, _, mut ledger) = open();
    let session = name("s");
    let mut step = |event| ledger.session_event(&session, event, NOW);
    assert_eq!(code(step(Run)), LedgerCode::SessionState);
    for (event, state) in [
        (Create, SessionState::Created),
        (Run, SessionState::Running),
        (Passivate, SessionState::Passivated),
        (Run, SessionState::Running),
        (Close, SessionState::Closing),
        (Close, SessionState::Closing),
        (DeletionUncertain, SessionState::Uncertain),
    ] {
        assert_eq!(step(event).unwrap(), state);
    }
    assert_eq!(
        ledger.sessions_left().unwrap(),
        [(session.clone(), SessionState::Uncertain)]
    );
    let mut step = |event| ledger.session_event(&session, event, NOW);
    assert_eq!(step(Close).unwrap(), SessionState::Closing);
    assert_eq!(step(ConfirmDeletion).unwrap(), SessionState::Deleted);
    assert_eq!(step(Close).unwrap(), SessionState::Deleted);
    for dead in [Create, Run, Passivate, DeletionUncertain] {
        assert_eq!(code(step(dead)), LedgerCode::SessionState);
    }
    assert!(ledger.sessions_left().unwrap().is_empty());
    assert_eq!(ledger.session(&session).unwrap(), SessionState::Deleted);
}

#[test]
fn a_running_session_cannot_be_called_deleted() {
    let (_temp, _, mut ledger) = open();
    let session = name("s");
    for event in [SessionEvent::Create, SessionEvent::Run] {
        ledger.session_event(&session, event, NOW).unwrap();
    }
    for early in [
        SessionEvent::ConfirmDeletion,
        SessionEvent::DeletionUncertain,
    ] {
        let refused = ledger.session_event(&session, early, NOW);
        assert_eq!(code(refused), LedgerCode::SessionState);
    }
}

fn family(ledger: &mut Ledger) {
    for (flight, parent) in [
        ("root", None),
        ("left", Some("root")),
        ("right", Some("root")),
        ("grandchild", Some("left")),
        ("stranger", None),
    ] {
        ledger
            .enrol(&name(flight), parent.map(name).as_ref())
            .unwrap();
    }
}

#[test]
fn letters_go_to_parents_children_and_siblings_and_to_nobody_else() {
    let (_temp, _, mut ledger) = open();
    family(&mut ledger);
    let mut write = |from: &str, to: &str| {
        let key = name(&format!("{from}-{to}"));
        ledger.write_letter(&name(from), &name(to), &key, b"hello")
    };
    for (from, to) in [
        ("left", "root"),
        ("root", "left"),
        ("left", "right"),
        ("right", "left"),
        ("grandchild", "left"),
        ("left", "grandchild"),
    ] {
        assert!(write(from, to).is_ok(), "{from} to {to}");
    }
    for (from, to) in [
        ("grandchild", "root"),
        ("root", "grandchild"),
        ("grandchild", "right"),
        ("stranger", "root"),
        ("root", "stranger"),
        ("left", "left"),
        ("left", "nobody"),
        ("nobody", "left"),
    ] {
        assert_eq!(code(write(from, to)), LedgerCode::NotKin, "{from} to {to}");
    }
    let refused = ledger.enrol(&name("left"), None);
    assert_eq!(code(refused), LedgerCode::KeyTaken);
    let refused = ledger.enrol(&name("orphan"), Some(&name("nobody")));
    assert_eq!(code(refused), LedgerCode::NotKin);
    ledger.enrol(&name("left"), Some(&name("root"))).unwrap();
}

#[test]
fn a_letter_waits_in_order_until_it_is_taken_and_is_delivered_once() {
    let (_temp, _, mut ledger) = open();
    family(&mut ledger);
    let (root, left) = (name("root"), name("left"));
    for n in 0..3 {
        let key = name(&format!("k{n}"));
        let id = ledger.write_letter(&root, &left, &key, &[n]).unwrap();
        assert_eq!(ledger.write_letter(&root, &left, &key, &[n]).unwrap(), id);
        let other = ledger.write_letter(&root, &left, &key, &[n + 1]);
        assert_eq!(code(other), LedgerCode::KeyTaken);
    }
    let mut ledger = ledger.reopen().unwrap();
    let waiting = ledger.letters(&left, 10).unwrap();
    let bodies: Vec<u8> = waiting.iter().map(|l| l.body[0]).collect();
    assert_eq!(bodies, [0, 1, 2]);
    assert_eq!(
        code(ledger.take_letter(&root, waiting[0].id)),
        LedgerCode::NotKin
    );
    ledger.take_letter(&left, waiting[0].id).unwrap();
    ledger.take_letter(&left, waiting[0].id).unwrap();
    assert_eq!(ledger.letters(&left, 10).unwrap(), waiting[1..]);
    // Its key outlives it.
    assert_eq!(
        ledger
            .write_letter(&root, &left, &name("k0"), &[0])
            .unwrap(),
        waiting[0].id
    );
    assert_eq!(ledger.letters(&left, 10).unwrap().len(), 2);
}

#[test]
fn a_receiver_that_never_comes_back_does_not_fill_the_disk() {
    let (_temp, _, mut ledger) = open();
    family(&mut ledger);
    let (root, left) = (name("root"), name("left"));
    let full = ledger.write(|w| {
        for n in 0..2000 {
            w.write_letter(&root, &left, &name(&format!("k{n}")), b"x")?;
        }
        Ok(())
    });
    assert_eq!(code(full), LedgerCode::QueueFull);
}

#[test]
fn a_part_that_fails_is_undone_and_the_rest_is_committed() {
    let (_temp, _, mut ledger) = open();
    let cap = |n: u64| Cap::usd(flightproof_core::MicroUsd::from_micros(n).unwrap());
    ledger
        .write(|w| {
            w.state_cap(Scope::Total, cap(1), NOW)?;
            let part = w.attempt(|w| {
                w.state_cap(Scope::Total, cap(2), NOW)?;
                Err::<(), _>(LedgerCode::QueueFull.refuse("no"))
            });
            assert_eq!(code(part), LedgerCode::QueueFull);
            w.state_cap(Scope::UtcDay, cap(3), NOW)
        })
        .unwrap();
    let caps = ledger.spending(NOW).unwrap().caps;
    assert_eq!((caps.total, caps.utc_day), (Some(cap(1)), Some(cap(3))));
}

#[test]
fn a_check_counts_every_row_and_an_export_shows_them_without_secrets() {
    let (_temp, state, mut ledger) = open();
    family(&mut ledger);
    let grant = ledger.issue_grant(&name("g"), &name("l")).unwrap();
    ledger
        .serve(&name("k"), Digest::of(b"r"), |_| Ok(b"the answer".to_vec()))
        .unwrap();
    assert_eq!(ledger.check().unwrap(), 5 + 2 + 1);
    let mut out = Vec::new();
    ledger.export(&mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert_eq!(text.lines().count(), 1 + 8);
    assert!(text.starts_with(r#"{"chain":"#) && text.contains("flightproof/ledger-export/1"));
    let secret = grant.reveal();
    assert!(!text.contains(secret.rsplit(' ').next().unwrap()) && !text.contains("the answer"));
    assert!(text.contains(&Digest::of(b"the answer").to_string()));
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    assert_eq!(code(ledger.export(&mut Full)), LedgerCode::ExportFailed);
    let raw = rusqlite::Connection::open(state.join(Ledger::FILE)).unwrap();
    raw.execute_batch("UPDATE flights SET parent = 'stranger' WHERE name = 'left'")
        .unwrap();
    assert_eq!(code(ledger.check()), LedgerCode::LedgerDamaged);
    assert_eq!(
        code(ledger.export(&mut Vec::new())),
        LedgerCode::LedgerDamaged
    );
}

#[test]
fn whoever_writes_with_others_to_a_ledger_that_is_held_is_told_that_it_is_busy() {
    let (_temp, state, ledger) = open();
    let (shared, writer) = flightproof_ledger::Shared::start(ledger);
    let held = rusqlite::Connection::open(state.join(Ledger::FILE)).unwrap();
    held.execute_batch("BEGIN IMMEDIATE").unwrap();
    let write = |n: u8| {
        let key = name(&format!("k{n}"));
        shared.write(move |w| w.serve(&key, Digest::of(b"r"), |_| Ok(vec![n])))
    };
    std::thread::scope(|scope| {
        let waiting: Vec<_> = (0..4).map(|n| scope.spawn(move || write(n))).collect();
        for refused in waiting {
            assert_eq!(code(refused.join().unwrap()), LedgerCode::LedgerBusy);
        }
    });
    drop(held);
    write(9).unwrap();
    drop(shared);
    writer.close().unwrap();
    assert_eq!(Ledger::open(&state).unwrap().check().unwrap(), 1);
}

#[test]
fn an_export_is_one_moment_whatever_is_committed_meanwhile() {
    struct Meanwhile(Ledger, Vec<u8>);
    impl std::io::Write for Meanwhile {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let key = name(&format!("late-{}", self.1.len()));
            let served = self.0.serve(&key, Digest::of(b"r"), |_| Ok(b"a".to_vec()));
            served.unwrap();
            self.1.extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let (_temp, state, mut ledger) = open();
    family(&mut ledger);
    let (head, rows) = (ledger.head().unwrap(), ledger.check().unwrap());
    let mut out = Meanwhile(Ledger::open(&state).unwrap(), Vec::new());
    ledger.export(&mut out).unwrap();
    assert!(ledger.head().unwrap().seq > head.seq);
    let text = String::from_utf8(out.1).unwrap();
    assert!(
        text.contains(&format!("\"commits\":{}", head.seq)),
        "{text}"
    );
    assert!(!text.contains("late-"), "{text}");
    assert_eq!(text.lines().count() as u64, 1 + rows);
}

#[test]
fn what_many_threads_write_at_once_is_few_commits_and_each_has_its_own_end() {
    let (_temp, state, ledger) = open();
    let before = ledger.head().unwrap().seq;
    let (shared, writer) = flightproof_ledger::Shared::start(ledger);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let shared = shared.clone();
            scope.spawn(move || {
                for n in 0..25 {
                    let key = name(&format!("{thread}/{n}"));
                    let fails = n % 5 == 4;
                    let answer = shared.write(move |w| {
                        let request = Digest::of(b"r");
                        w.serve(&key, request, |_| Ok(vec![n]))?;
                        if fails {
                            return Err(LedgerCode::QueueFull.refuse("no"));
                        }
                        Ok(n)
                    });
                    match fails {
                        true => assert_eq!(code(answer), LedgerCode::QueueFull),
                        false => assert_eq!(answer.unwrap(), n),
                    }
                }
            });
        }
    });
    drop(shared);
    writer.close().unwrap();
    let ledger = Ledger::open(&state).unwrap();
    let commits = ledger.head().unwrap().seq - before;
    assert!(commits < 160, "{commits} commits for 160 writes");
    assert_eq!(ledger.check().unwrap(), 160);
    let failed = ledger.known(&name("3/4"), Digest::of(b"r")).unwrap();
    assert_eq!(failed, None);
}

#[test]
fn whoever_waits_for_a_writer_that_died_is_told() {
    let (_temp, _, ledger) = open();
    let (shared, writer) = flightproof_ledger::Shared::start(ledger);
    let died = shared.write(|_| -> Result<(), _> { panic!("a change that panics") });
    assert_eq!(code(died), LedgerCode::CommitUncertain);
    let after = shared.write(|_| Ok(()));
    assert_eq!(code(after), LedgerCode::CommitUncertain);
    assert_eq!(code(writer.close()), LedgerCode::CloseUncertain);
}
