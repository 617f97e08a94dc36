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
use std::time::{Duration, Instant};

/// Commits of one measurement: some tenths of a second.
const COMMITS: u32 = 2000;
const ROUNDS: usize = 5;
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
    let (mut bare, mut ours) = (Vec::new(), Vec::new());
    // In turns, so that both meet the same disk.
    for round in 0..ROUNDS {
        bare.push(bare_commits(&folder.path().join(format!("bare-{round}"))));
        ours.push(durable_commits(
            &folder.path().join(format!("ours-{round}")),
        ));
    }
    let (bare, ours) = (median(bare), median(ours));
    let grouped = grouped_commits(&folder.path().join("group"));
    let replayed = replay(&folder.path().join("ours-0"));
    let (opened, looked_up) = million(&folder.path().join("million"));
    let relayed = relay(folder.path());
    // Microseconds by name, for `scripts/bench-peers ledger`.
    println!(
        "{{\"bare_commit\":{:.2},\"commit\":{:.2},\"grouped_commit\":{:.2},\"replay\":{:.2},\"open\":{:.2},\"lookup\":{:.2},\"relay\":{:.2}}}",
        micros(bare),
        micros(ours),
        micros(grouped),
        micros(replayed),
        micros(opened),
        micros(looked_up),
        micros(relayed),
    );
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
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

/// One row of the same bytes per transaction: key, digest, answer, and the answer's digest.
fn bare_commits(state: &Path) -> Duration {
    std::fs::create_dir(state).unwrap();
    let mut database = rusqlite::Connection::open(state.join("bare.sqlite")).unwrap();
    database
        .execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
             CREATE TABLE t (key TEXT PRIMARY KEY, request BLOB, answer BLOB, digest BLOB) STRICT",
        )
        .unwrap();
    let begun = Instant::now();
    for n in 0..COMMITS {
        let tx = database
            .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
            .unwrap();
        let key = key(n);
        let body = vec![7; BODY];
        let (request, answer) = (Digest::of(key.as_str().as_bytes()), Digest::of(&body));
        tx.prepare_cached("INSERT INTO t VALUES (?1, ?2, ?3, ?4)")
            .unwrap()
            .execute((key.as_str(), request.as_bytes(), body, answer.as_bytes()))
            .unwrap();
        tx.commit().unwrap();
    }
    begun.elapsed() / COMMITS
}

fn durable_commits(state: &Path) -> Duration {
    let mut ledger = Ledger::open(state).unwrap();
    let begun = Instant::now();
    for n in 0..COMMITS {
        ledger.write(|w| serve(w, n)).unwrap();
    }
    begun.elapsed() / COMMITS
}

fn grouped_commits(state: &Path) -> Duration {
    let (shared, writer) = Shared::start(Ledger::open(state).unwrap());
    let each = 1000;
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let shared = shared.clone();
            scope.spawn(move || {
                for n in 0..each {
                    shared.write(move |w| serve(w, writer * each + n)).unwrap();
                }
            });
        }
    });
    let time = begun.elapsed() / (WRITERS * each);
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
