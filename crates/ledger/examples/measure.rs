//! Measures the ledger against a bare database on the same disk. Run it with `--release`; the folder
//! to write to is its one argument, the temporary folder if there is none.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement that cannot be made must fail, and it speaks on standard output"
)]

use flightproof_core::Digest;
use flightproof_ledger::relay::Ended;
use flightproof_ledger::{Ledger, Name, Received, Shared, Writing};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Commits of one measurement: some tenths of a second.
const COMMITS: u32 = 2000;
const ROUNDS: usize = 5;
/// Commits of one side before the next has its turn.
const TURN: u32 = 20;
const WRITERS: u32 = 16;
const MILLION: u32 = 1_000_000;
const LOOKUPS: u32 = 20_000;
const MESSAGES: u32 = 10_000;
/// Bytes of an answer, and of a message.
const BODY: usize = 400;

fn main() {
    let folder = match std::env::args().nth(1) {
        Some(path) => tempfile::tempdir_in(path),
        None => tempfile::tempdir(),
    };
    let folder = folder.unwrap();
    let mut rounds: Vec<[Duration; 4]> = (0..ROUNDS)
        .map(|round| commits(&folder.path().join(format!("round-{round}"))))
        .collect();
    let [row, rows, bare, ours] = [0, 1, 2, 3].map(|side| {
        rounds.sort_unstable_by_key(|times| times[side]);
        rounds[ROUNDS / 2][side]
    });
    let grouped = grouped_commits(&folder.path().join("group"));
    let replayed = replay(&folder.path().join("round-0"));
    let (opened, looked_up) = million(&folder.path().join("million"));
    let relayed = relay(folder.path());
    // Microseconds by name, for `scripts/bench-peers ledger`.
    println!(
        "{{\"bare_row\":{:.2},\"bare_rows\":{:.2},\"bare_commit\":{:.2},\"commit\":{:.2},\"grouped_commit\":{:.2},\"replay\":{:.2},\"open\":{:.2},\"lookup\":{:.2},\"relay\":{:.2}}}",
        micros(row),
        micros(rows),
        micros(bare),
        micros(ours),
        micros(grouped),
        micros(replayed),
        micros(opened),
        micros(looked_up),
        micros(relayed),
    );
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn key(n: u32) -> Name {
    format!("request-{n:08}").parse().unwrap()
}

fn serve(w: &Writing<'_>, n: u32) -> Result<Received, flightproof_ledger::LedgerError> {
    let key = key(n);
    w.serve(&key, Digest::of(key.as_str().as_bytes()), |_| {
        Ok(vec![7; BODY])
    })
}

/// What each side does: a database that takes the request and its answer alone; one that takes the
/// same rows as the ledger, its head with them, byte for byte as long and found by key alone; one that has
/// the ledger's other index as well, and so writes what the ledger writes; the ledger. In turns of a few
/// commits, so that all four meet the same disk.
fn commits(state: &Path) -> [Duration; 4] {
    let mut ledger = Ledger::open(state).unwrap();
    let row = bare(&state.join("row.sqlite"));
    let rows = bare(&state.join("rows.sqlite"));
    let both = bare(&state.join("both.sqlite"));
    both.execute_batch("CREATE UNIQUE INDEX numbers ON requests (number)")
        .unwrap();
    let mut times = [Duration::ZERO; 4];
    for turn in 0..COMMITS / TURN {
        let keys = turn * TURN..(turn + 1) * TURN;
        times[0] += timed(|| keys.clone().for_each(|n| commit_row(&row, n)));
        times[1] += timed(|| keys.clone().for_each(|n| commit_rows(&rows, n)));
        times[2] += timed(|| keys.clone().for_each(|n| commit_rows(&both, n)));
        times[3] += timed(|| {
            for n in keys.clone() {
                ledger.write(|w| serve(w, n)).unwrap();
            }
        });
    }
    times.map(|time| time / COMMITS)
}

fn timed(work: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    work();
    begun.elapsed()
}

/// A bare database, with the settings of a ledger.
fn bare(file: &Path) -> rusqlite::Connection {
    let database = rusqlite::Connection::open(file).unwrap();
    database
        .execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -16384;
             CREATE TABLE requests (id INTEGER PRIMARY KEY, number INTEGER, key TEXT UNIQUE, request BLOB, state TEXT, lease TEXT, token INTEGER, answer BLOB, answer_digest BLOB, seal INTEGER) STRICT;
             CREATE TABLE heads (slot INTEGER PRIMARY KEY, seq INTEGER, changes BLOB, rows INTEGER, chain BLOB) STRICT",
        )
        .unwrap();
    database.set_prepared_statement_cache_capacity(128);
    database
}

fn commit_row(database: &rusqlite::Connection, n: u32) {
    let tx = database.unchecked_transaction().unwrap();
    let (key, body) = (key(n), vec![7; BODY]);
    let request = Digest::of(key.as_str().as_bytes());
    tx.prepare_cached("INSERT INTO requests (key, request, answer) VALUES (?1, ?2, ?3)")
        .unwrap()
        .execute((key.as_str(), request.as_bytes(), body))
        .unwrap();
    tx.commit().unwrap();
}

fn commit_rows(database: &rusqlite::Connection, n: u32) {
    let tx = database.unchecked_transaction().unwrap();
    let (key, body) = (key(n), vec![7; BODY]);
    let request = Digest::of(key.as_str().as_bytes());
    // Scattered, as the ledger's are.
    let number = i64::from_le_bytes(*request.as_bytes().first_chunk().unwrap());
    let seal = i64::from(n) << 7;
    tx.prepare_cached(
        "INSERT INTO requests (number, key, request, state, answer, seal)
         VALUES (?1, ?2, ?3, 'answered', ?4, ?5)",
    )
    .unwrap()
    .execute((number, key.as_str(), request.as_bytes(), body, seal))
    .unwrap();
    tx.prepare_cached(
        "INSERT OR REPLACE INTO heads (slot, seq, changes, rows, chain)
         VALUES (?1, ?2, ?3, ?2, ?3)",
    )
    .unwrap()
    .execute((n % 1024, n, request.as_bytes()))
    .unwrap();
    tx.commit().unwrap();
}

/// The same requests as one writer's, in the same order, each done by whichever writer is free.
fn grouped_commits(state: &Path) -> Duration {
    let (shared, writer) = Shared::start(Ledger::open(state).unwrap());
    let (all, next) = (WRITERS * 1000, AtomicU32::new(0));
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..WRITERS {
            let (shared, next) = (shared.clone(), &next);
            scope.spawn(move || {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= all {
                        return;
                    }
                    shared.write(move |w| serve(w, n)).unwrap();
                }
            });
        }
    });
    let time = begun.elapsed() / all;
    drop(shared);
    writer.close().unwrap();
    time
}

fn replay(state: &Path) -> Duration {
    let mut ledger = Ledger::open(state).unwrap();
    let begun = Instant::now();
    for n in 0..COMMITS {
        let key = key(n);
        let served = ledger.serve(
            &key,
            Digest::of(key.as_str().as_bytes()),
            |_| unreachable!(),
        );
        assert!(matches!(served.unwrap(), Received::Answered(_)));
    }
    begun.elapsed() / COMMITS
}

/// How long it takes to open a ledger of a million keys, and to look one up.
fn million(state: &Path) -> (Duration, Duration) {
    let mut ledger = Ledger::open(state).unwrap();
    for batch in 0..MILLION / 10_000 {
        ledger
            .write(|w| {
                for n in batch * 10_000..(batch + 1) * 10_000 {
                    let key = key(n);
                    w.serve(&key, Digest::of(key.as_str().as_bytes()), |_| {
                        Ok(vec![7; 40])
                    })?;
                }
                Ok(())
            })
            .unwrap();
    }
    ledger.close().unwrap();
    let begun = Instant::now();
    let ledger = Ledger::open(state).unwrap();
    let opened = begun.elapsed();
    let begun = Instant::now();
    for n in 0..LOOKUPS {
        // A walk through all keys that is no order of any index.
        let key = key(n.wrapping_mul(7_368_787) % MILLION);
        let known = ledger.known(&key, Digest::of(key.as_str().as_bytes()));
        assert!(known.unwrap().is_some());
    }
    (opened, begun.elapsed() / LOOKUPS)
}

fn relay(folder: &Path) -> Duration {
    let link: Name = "link".parse().unwrap();
    let mut receiver = Ledger::open(&folder.join("receiver")).unwrap();
    let mut sender = Ledger::open(&folder.join("sender")).unwrap();
    let grant = receiver
        .issue_grant(&"grant".parse().unwrap(), &link)
        .unwrap();
    sender.accept_grant(&grant).unwrap();
    sender
        .write(|w| {
            for n in 0..MESSAGES {
                w.queue(&link, &key(n), &vec![7; BODY])?;
            }
            Ok(())
        })
        .unwrap();
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let begun = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_nodelay(true).unwrap();
            receiver
                .receive_over(&mut stream, |_, m| Ok(m.body[..8].to_vec()))
                .unwrap();
        });
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        let talk = sender.relay(&link, &mut stream).unwrap();
        assert_eq!(
            (talk.ended, talk.done),
            (Ended::Drained, u64::from(MESSAGES))
        );
    });
    begun.elapsed() / MESSAGES
}
