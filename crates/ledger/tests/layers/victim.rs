//! The program that is killed, failed and cut off, and what must be true after it.

use flightproof_core::{Digest, MicroUsd};
use flightproof_ledger::{
    Cap, HoldSize, Ledger, LedgerCode, LedgerError, Name, Received, Reserve, Scope, Writing,
};
use std::path::Path;

/// How the victim behaves. All but the first two are broken on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// As it should, and dies without closing if something fails.
    Honest,
    /// As it should, and closes in any case.
    Orderly,
    /// Acknowledges before it commits.
    Early,
    /// Calls a failed commit a failure.
    Denies,
    /// A bare database that does not wait for the disk.
    Careless,
    /// Only opens: a recovery.
    Opens,
}

impl Mode {
    const ALL: [Self; 6] = [
        Self::Honest,
        Self::Orderly,
        Self::Early,
        Self::Denies,
        Self::Careless,
        Self::Opens,
    ];

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Honest => "honest",
            Self::Orderly => "orderly",
            Self::Early => "early",
            Self::Denies => "denies",
            Self::Careless => "careless",
            Self::Opens => "opens",
        }
    }
}

/// Requests of a run. The first one states the caps; the others hold a dollar each.
pub(crate) const REQUESTS: usize = 5;
const NOW: u64 = 1_780_000_000;

#[test]
#[ignore = "started by the tests of the other files"]
fn victim() {
    let state = std::env::var_os("FLIGHTPROOF_TEST_STATE").unwrap();
    let word = std::env::var("FLIGHTPROOF_TEST_MODE").unwrap();
    let mode = Mode::ALL
        .into_iter()
        .find(|mode| mode.word() == word)
        .unwrap();
    if mode == Mode::Careless {
        return careless(Path::new(&state));
    }
    let mut ledger = match Ledger::open(Path::new(&state)) {
        Ok(ledger) => ledger,
        Err(refused) => return println!("\nopening {}", refused.code.explanation_code()),
    };
    if mode == Mode::Opens {
        return;
    }
    for n in 0..REQUESTS {
        if mode == Mode::Early {
            println!("\nack {n} early");
        }
        match request(&mut ledger, n) {
            Ok(answer) => println!("\nack {n} {answer}"),
            Err(refused) => {
                let uncertain = refused.code == LedgerCode::CommitUncertain && mode != Mode::Denies;
                println!("\n{} {n}", if uncertain { "uncertain" } else { "failed" });
                match mode {
                    Mode::Orderly => drop(ledger),
                    _ => std::process::abort(),
                }
                return;
            }
        }
    }
    if ledger.close().is_err() {
        println!("\nclose uncertain");
    }
}

trait CodeText {
    fn explanation_code(self) -> &'static str;
}

impl CodeText for LedgerCode {
    fn explanation_code(self) -> &'static str {
        flightproof_core::Code::explanation(self).code
    }
}

fn careless(state: &Path) {
    std::fs::create_dir_all(state).unwrap();
    let database = rusqlite::Connection::open(state.join(Ledger::FILE)).unwrap();
    database
        .execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
             CREATE TABLE IF NOT EXISTS t (n INTEGER PRIMARY KEY, body TEXT)",
        )
        .unwrap();
    for n in 0..REQUESTS {
        database
            .execute(
                "INSERT INTO t VALUES (?1, ?2)",
                (i64::try_from(n).unwrap(), "x".repeat(500)),
            )
            .unwrap();
        println!("\nack {n} careless");
    }
}

/// An answer that no second execution would give again.
pub(crate) fn request(ledger: &mut Ledger, n: usize) -> Result<String, LedgerError> {
    let (key, digest) = key(n);
    let nonce = format!(
        "{n}-by-{}-at-{:?}",
        std::process::id(),
        std::time::SystemTime::now()
    );
    let nonce = Digest::of(nonce.as_bytes()).to_string();
    match ledger.serve(&key, digest, |w| effect(w, n).map(|()| nonce.into_bytes()))? {
        Received::Answered(answer) => Ok(String::from_utf8(answer).unwrap()),
        other => panic!("{other:?}"),
    }
}

fn key(n: usize) -> (Name, Digest) {
    let key = format!("key-{n}");
    (key.parse().unwrap(), Digest::of(key.as_bytes()))
}

fn effect(w: &Writing<'_>, n: usize) -> Result<(), LedgerError> {
    let dollars = |n: u64| MicroUsd::from_micros(n * 1_000_000).unwrap();
    if n == 0 {
        return w.state_cap(Scope::Total, Cap::usd(dollars(100)), NOW);
    }
    let request = Reserve {
        run: format!("run-{n}").parse().unwrap(),
        request: Digest::of(b"run"),
        size: HoldSize {
            limit: dollars(1),
            held: dollars(1),
        },
        parent: None,
    };
    w.reserve(&request, NOW).map(drop)
}

/// What a victim said before it ended.
#[derive(Debug, Default)]
pub(crate) struct Said {
    pub(crate) acknowledged: Vec<String>,
    pub(crate) failed: Option<usize>,
    pub(crate) uncertain: bool,
}

impl Said {
    pub(crate) fn read(stdout: &str) -> Self {
        let mut said = Self::default();
        for line in stdout.lines() {
            match line.split(' ').collect::<Vec<_>>()[..] {
                ["ack", n, answer] => {
                    let n: usize = n.parse().unwrap();
                    said.acknowledged.truncate(n);
                    assert_eq!(said.acknowledged.len(), n);
                    said.acknowledged.push(answer.to_owned());
                }
                ["failed", n] => said.failed = Some(n.parse().unwrap()),
                ["uncertain", _] => said.uncertain = true,
                _ => {}
            }
        }
        said
    }
}

/// Opens what a victim left and holds it against what it said. An error is a violation.
pub(crate) fn hold_against(state: &Path, said: &Said) -> Result<usize, String> {
    let mut ledger = Ledger::open(state).map_err(|e| format!("it cannot be opened: {e}"))?;
    ledger
        .check()
        .map_err(|e| format!("it is not whole: {e}"))?;
    let mut present = Vec::new();
    for n in 0..REQUESTS {
        let (key, digest) = key(n);
        match ledger.known(&key, digest).map_err(|e| e.to_string())? {
            None => break,
            Some(Received::Answered(answer)) => present.push(String::from_utf8(answer).unwrap()),
            Some(other) => return Err(format!("{n} is {other:?}")),
        }
    }
    for n in present.len()..REQUESTS {
        let (key, digest) = key(n);
        if ledger
            .known(&key, digest)
            .map_err(|e| e.to_string())?
            .is_some()
        {
            return Err(format!("{n} is there, and {} is not", present.len()));
        }
    }
    for (n, answer) in said.acknowledged.iter().enumerate() {
        if answer != "early" && present.get(n) != Some(answer) || present.get(n).is_none() {
            return Err(format!("{n} was acknowledged and is lost"));
        }
    }
    if present.len() > said.acknowledged.len() + 1 {
        return Err("more is there than was ever begun".into());
    }
    if let Some(failed) = said.failed
        && present.len() > failed
    {
        return Err(format!("{failed} was called a failure and is there"));
    }
    let held = ledger
        .spending(NOW)
        .map_err(|e| e.to_string())?
        .estimated
        .held;
    let runs = u64::try_from(present.len().saturating_sub(1)).unwrap();
    if held.micros() != runs * 1_000_000 {
        return Err(format!("{runs} runs hold {held}"));
    }
    // Asked again, every request gets the answer it had, and what had none is done once.
    let replay = |ledger: &mut Ledger| -> Result<Vec<String>, String> {
        (0..REQUESTS)
            .map(|n| request(ledger, n).map_err(|e| e.to_string()))
            .collect()
    };
    let first = replay(&mut ledger)?;
    if first[..present.len()] != present || replay(&mut ledger)? != first {
        return Err("something was done again".into());
    }
    Ok(present.len())
}
