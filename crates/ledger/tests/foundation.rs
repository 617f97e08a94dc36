//! What is refused instead of silently settled for: old copies, lost logs, other modes, older tables.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set up its scene must fail"
)]

use flightproof_core::Digest;
use flightproof_ledger::{
    AdmissionKey, Intended, Ledger, LedgerCode, LedgerError, Received, State,
};
use std::path::{Path, PathBuf};

fn home() -> (tempfile::TempDir, PathBuf) {
    let temp = tempfile::tempdir().unwrap();
    let state = temp.path().join("state");
    (temp, state)
}

fn code<T: std::fmt::Debug>(answer: Result<T, LedgerError>) -> LedgerCode {
    answer.unwrap_err().code
}

fn intend(ledger: &mut Ledger, branch: usize) {
    ledger.intend(&key(branch), Digest::of(b"c"), 100).unwrap();
}

fn key(branch: usize) -> AdmissionKey {
    AdmissionKey {
        repository: "/srv/repo/.git".into(),
        branch: format!("refs/heads/{branch}"),
        baseline: "1".repeat(40).parse().unwrap(),
        head: "2".repeat(40).parse().unwrap(),
    }
}

fn poke(state: &Path, sql: &str) {
    let connection = rusqlite::Connection::open(state.join(Ledger::FILE)).unwrap();
    connection.execute_batch(sql).unwrap();
}

const FILES: [&str; 3] = ["ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-shm"];

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for name in FILES {
        if from.join(name).exists() {
            std::fs::copy(from.join(name), to.join(name)).unwrap();
        }
    }
}

fn put_back(copy_at: &Path, state: &Path) {
    for name in FILES {
        let _ = std::fs::remove_file(state.join(name));
    }
    copy(copy_at, state);
}

#[test]
fn a_ledger_put_back_from_an_old_copy_refuses() {
    let (temp, state) = home();
    let old = temp.path().join("old");
    let mut ledger = Ledger::open(&state).unwrap();
    intend(&mut ledger, 0);
    ledger.close().unwrap();
    copy(&state, &old);
    let mut ledger = Ledger::open(&state).unwrap();
    intend(&mut ledger, 1);
    ledger.close().unwrap();
    let newest = temp.path().join("newest");
    copy(&state, &newest);
    put_back(&old, &state);
    assert_eq!(code(Ledger::open(&state)), LedgerCode::LedgerBehind);
    put_back(&newest, &state);
    let ledger = Ledger::open(&state).unwrap();
    assert_eq!(ledger.head().unwrap().seq, 2);
    assert_eq!(ledger.check().unwrap(), 2);
}

const INBOX_3: &str = "CREATE TABLE inbox (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    request BLOB NOT NULL CHECK (length(request) = 32),
    state TEXT NOT NULL CHECK (state IN ('working', 'answered', 'unknown', 'forgotten')),
    lease TEXT,
    token INTEGER,
    answer BLOB CHECK ((answer IS NOT NULL) = (state = 'answered')),
    answer_digest BLOB CHECK ((answer_digest IS NOT NULL) = (state = 'forgotten')),
    seal INTEGER NOT NULL
) STRICT";

/// Makes a ledger of today one of version 3, whose conditions were lists.
fn version_3(state: &Path) {
    let words = [
        (
            "state",
            "'intended', 'applied', 'not-applied', 'superseded', 'unknown'",
        ),
        ("scope", "'run', 'utc-day', 'total'"),
        (
            "state",
            "'reserved', 'running', 'reported', 'settled', 'unknown', 'resolved', 'released'",
        ),
        ("state", "'reported', 'settled', 'resolved'"),
        (
            "kind",
            "'settled-after-release', 'settled-twice', 'settled-after-resolution'",
        ),
        (
            "state",
            "'created', 'running', 'passivated', 'closing', 'uncertain', 'deleted'",
        ),
        ("kind", "'command', 'event', 'provider-call', 'observation'"),
        ("state", "'pending', 'applied', 'interrupted'"),
    ];
    let mut sql = "sql".to_owned();
    for (column, list) in words {
        let now = list.split(", ").map(|word| format!("{column} = {word}"));
        let now = now.collect::<Vec<_>>().join(" OR ").replace('\'', "''");
        let before = format!("{column} IN ({list})").replace('\'', "''");
        sql = format!("replace({sql}, '{now}', '{before}')");
    }
    poke(
        state,
        &format!(
            "ALTER TABLE inbox RENAME TO inbox_4;
             DROP INDEX work_in_progress;
             {INBOX_3};
             CREATE INDEX work_in_progress ON inbox (lease) WHERE state = 'working';
             INSERT INTO inbox SELECT number, key, request, state, lease, token, answer, answer_digest, seal FROM inbox_4;
             DROP TABLE inbox_4;
             PRAGMA writable_schema = 1;
             UPDATE sqlite_schema SET sql = {sql} WHERE name <> 'inbox';
             PRAGMA writable_schema = 0;
             PRAGMA user_version = 3;"
        ),
    );
}

/// Makes a ledger of today one of version 2, whose heads did not count.
fn version_2(state: &Path) {
    version_3(state);
    poke(
        state,
        "ALTER TABLE heads RENAME TO heads_3;
         CREATE TABLE heads (slot INTEGER PRIMARY KEY, seq INTEGER NOT NULL, chain BLOB NOT NULL CHECK (length(chain) = 32)) STRICT;
         INSERT INTO heads SELECT slot, seq, chain FROM heads_3;
         DROP TABLE heads_3;
         PRAGMA user_version = 2;",
    );
}

#[test]
fn a_ledger_of_version_2_is_brought_up_and_counted() {
    let (_temp, state) = home();
    let mut ledger = Ledger::open(&state).unwrap();
    (0..5).for_each(|branch| intend(&mut ledger, branch));
    ledger.close().unwrap();
    version_2(&state);
    let mut ledger = Ledger::open(&state).unwrap();
    assert_eq!(ledger.head().unwrap().seq, 6);
    intend(&mut ledger, 9);
    assert_eq!(
        (ledger.check().unwrap(), ledger.head().unwrap().seq),
        (6, 7)
    );
    ledger.close().unwrap();
    // One that holds nothing has no head to follow.
    let empty = state.with_file_name("empty");
    drop(Ledger::open(&empty).unwrap());
    version_2(&empty);
    assert_eq!(Ledger::open(&empty).unwrap().check().unwrap(), 0);
}

#[test]
fn a_ledger_of_version_3_is_brought_up_and_keeps_its_conditions() {
    let (_temp, state) = home();
    let mut ledger = Ledger::open(&state).unwrap();
    (0..5).for_each(|branch| intend(&mut ledger, branch));
    let served = |ledger: &mut Ledger, n: u8| {
        let key = format!("request-{n}").parse().unwrap();
        ledger.serve(&key, Digest::of(&[n]), |_| Ok(vec![n]))
    };
    (0..20).for_each(|n| drop(served(&mut ledger, n).unwrap()));
    ledger.forget(&"request-7".parse().unwrap()).unwrap();
    ledger.close().unwrap();
    version_3(&state);
    std::thread::scope(|scope| {
        for branch in 5..9 {
            let state = &state;
            scope.spawn(move || intend(&mut Ledger::open(state).unwrap(), branch));
        }
    });
    let mut ledger = Ledger::open(&state).unwrap();
    assert_eq!(ledger.head().unwrap().seq, 30);
    intend(&mut ledger, 9);
    assert_eq!(ledger.check().unwrap(), 30);
    for n in 0..20 {
        let known = match n {
            7 => Received::Forgotten(Digest::of(&[n])),
            n => Received::Answered(vec![n]),
        };
        assert_eq!(served(&mut ledger, n).unwrap(), known);
    }
    let other = ledger.serve(&"request-3".parse().unwrap(), Digest::of(b"x"), |_| {
        Ok(vec![])
    });
    assert_eq!(code(other), LedgerCode::KeyTaken);
    ledger.close().unwrap();
    let file = rusqlite::Connection::open(state.join(Ledger::FILE)).unwrap();
    let unheard = file.execute("UPDATE admissions SET state = 'lost'", ());
    assert!(unheard.unwrap_err().to_string().contains("CHECK"));
}

#[test]
fn a_row_that_was_taken_is_noticed() {
    let (_temp, state) = home();
    let mut ledger = Ledger::open(&state).unwrap();
    (0..3).for_each(|branch| intend(&mut ledger, branch));
    ledger.close().unwrap();
    let whole = state.with_file_name("whole");
    copy(&state, &whole);
    std::fs::copy(state.join(Ledger::ANCHOR), whole.join(Ledger::ANCHOR)).unwrap();
    poke(&state, "DELETE FROM admissions WHERE id = 2");
    assert_eq!(code(Ledger::open(&state)), LedgerCode::LedgerDamaged);
    // A count that was made to fit is not the one of its head.
    poke(&state, "UPDATE heads SET rows = rows - 1 WHERE seq = 3");
    assert_eq!(code(Ledger::open(&state)), LedgerCode::LedgerDamaged);
    // And one that is gone is no permission.
    poke(
        &state,
        "UPDATE heads SET rows = NULL, changes = NULL WHERE seq = 3",
    );
    assert_eq!(code(Ledger::open(&state)), LedgerCode::LedgerDamaged);
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(&whole, PermissionsExt::from_mode(0o700)).unwrap();
    assert_eq!(Ledger::open(&whole).unwrap().check().unwrap(), 3);
}

#[test]
fn an_old_copy_that_went_on_by_itself_is_another_history() {
    let (temp, state) = home();
    let old = temp.path().join("fork");
    let mut ledger = Ledger::open(&state).unwrap();
    intend(&mut ledger, 0);
    ledger.close().unwrap();
    copy(&state, &old);
    std::fs::copy(state.join(Ledger::ANCHOR), old.join(Ledger::ANCHOR)).unwrap();
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(&old, permissions).unwrap();
    for (folder, branch) in [(&state, 1), (&old, 2)] {
        let mut ledger = Ledger::open(folder).unwrap();
        intend(&mut ledger, branch);
        ledger.close().unwrap();
    }
    put_back(&old, &state);
    assert_eq!(code(Ledger::open(&state)), LedgerCode::LedgerBehind);
}

#[test]
fn a_ledger_that_is_replaced_under_a_running_program_refuses_the_next_write() {
    let (temp, state) = home();
    let mut ledger = Ledger::open(&state).unwrap();
    intend(&mut ledger, 0);
    // Another process has the anchor further on than this one's database can know.
    let other = temp.path().join("other");
    copy(&state, &other);
    let mut forward = Ledger::open(&state).unwrap();
    intend(&mut forward, 1);
    drop((ledger, forward));
    put_back(&other, &state);
    assert_eq!(code(Ledger::open(&state)), LedgerCode::LedgerBehind);
}

#[test]
fn a_lost_log_is_noticed() {
    let (_temp, state) = home();
    let mut ledger = Ledger::open(&state).unwrap();
    intend(&mut ledger, 0);
    let wal = state.join("ledger.sqlite-wal");
    let log = std::fs::read(&wal).unwrap();
    let main = std::fs::read(state.join(Ledger::FILE)).unwrap();
    drop(ledger);
    std::fs::write(state.join(Ledger::FILE), main).unwrap();
    let _ = std::fs::remove_file(&wal);
    let _ = std::fs::remove_file(state.join("ledger.sqlite-shm"));
    assert_eq!(code(Ledger::open(&state)), LedgerCode::LedgerBehind);
    std::fs::write(&wal, log).unwrap();
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&wal, permissions).unwrap();
    assert_eq!(
        Ledger::open(&state).unwrap().open_intents().unwrap().len(),
        1
    );
}

#[test]
fn a_ledger_that_vanished_is_not_made_anew() {
    let (_temp, state) = home();
    let mut ledger = Ledger::open(&state).unwrap();
    intend(&mut ledger, 0);
    ledger.close().unwrap();
    std::fs::remove_file(state.join(Ledger::FILE)).unwrap();
    assert_eq!(code(Ledger::open(&state)), LedgerCode::LedgerBehind);
    assert!(!state.join(Ledger::FILE).exists());
}

#[test]
fn a_ledger_without_its_anchor_or_with_another_ones_refuses() {
    let (temp, state) = home();
    let mut ledger = Ledger::open(&state).unwrap();
    intend(&mut ledger, 0);
    ledger.close().unwrap();
    let anchor = state.join(Ledger::ANCHOR);
    let kept = std::fs::read(&anchor).unwrap();
    std::fs::remove_file(&anchor).unwrap();
    assert_eq!(code(Ledger::open(&state)), LedgerCode::LedgerUnanchored);
    let other = temp.path().join("other");
    drop(Ledger::open(&other).unwrap());
    std::fs::copy(other.join(Ledger::ANCHOR), &anchor).unwrap();
    assert_eq!(code(Ledger::open(&state)), LedgerCode::LedgerUnanchored);
    std::fs::write(&anchor, kept).unwrap();
    assert!(Ledger::open(&state).is_ok());
}

#[test]
fn an_anchor_that_a_dead_program_left_behind_is_brought_up() {
    let (_temp, state) = home();
    let mut ledger = Ledger::open(&state).unwrap();
    let anchor = state.join(Ledger::ANCHOR);
    let first = std::fs::read(&anchor).unwrap();
    for branch in 0..70 {
        intend(&mut ledger, branch);
    }
    let head = ledger.head().unwrap();
    ledger.close().unwrap();
    std::fs::write(&anchor, first).unwrap();
    let ledger = Ledger::open(&state).unwrap();
    assert_eq!((ledger.head().unwrap(), head.seq), (head, 70));
    assert_eq!(std::fs::read(&anchor).unwrap().len(), 1024);
    drop(ledger);
    assert_eq!(Ledger::open(&state).unwrap().head().unwrap(), head);
}

/// It died between its commit and the anchor, while this handle stayed open and had written last.
#[test]
fn a_commit_that_another_program_never_anchored_is_followed_and_not_written_over() {
    let (_temp, state) = home();
    let anchor = state.join(Ledger::ANCHOR);
    let mut ours = Ledger::open(&state).unwrap();
    intend(&mut ours, 0);
    let before = std::fs::read(&anchor).unwrap();
    let mut theirs = Ledger::open(&state).unwrap();
    intend(&mut theirs, 1);
    let followed = theirs.head().unwrap();
    drop(theirs);
    std::fs::write(&anchor, before).unwrap();
    intend(&mut ours, 2);
    assert_eq!((followed.seq, ours.head().unwrap().seq), (2, 3));
    ours.close().unwrap();
    assert_eq!(Ledger::open(&state).unwrap().check().unwrap(), 3);
}

#[test]
fn a_head_that_stands_where_none_can_is_damage() {
    let (_temp, state) = home();
    let mut ledger = Ledger::open(&state).unwrap();
    intend(&mut ledger, 0);
    poke(
        &state,
        "INSERT INTO heads (slot, seq, chain) VALUES (2, 1026, zeroblob(32))",
    );
    let refused = ledger.intend(&key(1), Digest::of(b"c"), 100);
    assert_eq!(code(refused), LedgerCode::LedgerDamaged);
    assert_eq!(ledger.head().unwrap().seq, 1);
}

#[test]
fn the_first_head_cannot_stand_for_one_that_is_too_far_on() {
    let (_temp, state) = home();
    let mut ledger = Ledger::open(&state).unwrap();
    let anchor = state.join(Ledger::ANCHOR);
    let none = std::fs::read(&anchor).unwrap();
    intend(&mut ledger, 0);
    let early = std::fs::read(&anchor).unwrap();
    ledger.close().unwrap();
    // As many commits as the ledger remembers, and one more.
    poke(
        &state,
        "UPDATE heads SET seq = 1025, changes = NULL, rows = NULL WHERE slot = 1",
    );
    for early in [none, early] {
        std::fs::write(&anchor, early).unwrap();
        assert_eq!(code(Ledger::open(&state)), LedgerCode::LedgerUnanchored);
    }
}

#[test]
fn another_journal_mode_is_refused_and_not_switched_back() {
    let (_temp, state) = home();
    drop(Ledger::open(&state).unwrap());
    poke(&state, "PRAGMA journal_mode = DELETE");
    assert_eq!(code(Ledger::open(&state)), LedgerCode::LedgerNotDurable);
    assert_eq!(code(Ledger::open(&state)), LedgerCode::LedgerNotDurable);
}

#[test]
fn a_changed_row_is_noticed_when_it_is_read() {
    let (_temp, state) = home();
    let mut ledger = Ledger::open(&state).unwrap();
    intend(&mut ledger, 0);
    ledger.close().unwrap();
    let ledger = Ledger::open(&state).unwrap();
    poke(&state, "UPDATE admissions SET intended_at = 101");
    assert_eq!(code(ledger.open_intents()), LedgerCode::LedgerDamaged);
}

#[test]
fn a_changed_row_of_a_small_ledger_is_noticed_when_it_is_opened() {
    let (_temp, state) = home();
    let mut ledger = Ledger::open(&state).unwrap();
    intend(&mut ledger, 0);
    ledger.close().unwrap();
    poke(&state, "UPDATE admissions SET intended_at = 101");
    assert_eq!(code(Ledger::open(&state)), LedgerCode::LedgerDamaged);
    poke(&state, "UPDATE admissions SET intended_at = 100");
    assert_eq!(Ledger::open(&state).unwrap().check().unwrap(), 1);
}

#[test]
fn an_uncertain_close_is_said() {
    let (_temp, state) = home();
    let mut ledger = Ledger::open(&state).unwrap();
    intend(&mut ledger, 0);
    std::fs::remove_dir_all(&state).unwrap();
    assert_eq!(code(ledger.close()), LedgerCode::CloseUncertain);
}

/// The tables of version 1, word for word.
const VERSION_1: &str = "CREATE TABLE admissions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    repository TEXT NOT NULL,
    branch TEXT NOT NULL,
    baseline TEXT NOT NULL CHECK (length(baseline) = 40),
    head TEXT NOT NULL CHECK (length(head) = 40),
    certificate TEXT NOT NULL CHECK (length(certificate) = 64),
    state TEXT NOT NULL CHECK (state IN ('intended', 'applied', 'not-applied', 'superseded', 'unknown')),
    intended_at INTEGER NOT NULL,
    settled_at INTEGER CHECK ((settled_at IS NULL) = (state = 'intended')),
    receipt BLOB CHECK ((receipt IS NOT NULL) = (state = 'applied'))
) STRICT;
CREATE UNIQUE INDEX one_per_key ON admissions (repository, branch, baseline, head)
    WHERE state <> 'not-applied';";

fn version_1(state: &Path) {
    use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt};
    std::fs::DirBuilder::new()
        .mode(0o700)
        .create(state)
        .unwrap();
    let (one, two, cert) = ("1".repeat(40), "2".repeat(40), Digest::of(b"c"));
    poke(
        state,
        &format!(
            "PRAGMA journal_mode = WAL; {VERSION_1}
             PRAGMA application_id = {}; PRAGMA user_version = 1;
             INSERT INTO admissions VALUES
                (3, '/srv/repo/.git', 'refs/heads/0', '{one}', '{two}', '{cert}', 'applied', 5, 6, x'7b7d'),
                (8, '/srv/repo/.git', 'refs/heads/1', '{one}', '{two}', '{cert}', 'intended', 7, NULL, NULL);",
            0x464c_5450
        ),
    );
    let file = state.join(Ledger::FILE);
    std::fs::set_permissions(file, PermissionsExt::from_mode(0o600)).unwrap();
}

#[test]
fn a_ledger_of_version_1_is_brought_up_with_all_it_knew() {
    let (_temp, state) = home();
    version_1(&state);
    let mut ledger = Ledger::open(&state).unwrap();
    let open = ledger.open_intents().unwrap();
    assert_eq!((open.len(), open[0].intended_at), (1, 7));
    assert_eq!(open[0].id.to_string(), "8");
    let mut applied = open[0].key.clone();
    applied.branch = "refs/heads/0".into();
    assert_eq!(ledger.receipt(&applied).unwrap().unwrap(), b"{}");
    ledger
        .settle(open[0].id, State::NotApplied, None, 9)
        .unwrap();
    match ledger.intend(&open[0].key, Digest::of(b"d"), 10).unwrap() {
        Intended::Journaled(id) => assert_eq!(id.to_string(), "9"),
        Intended::AlreadyApplied(_) => panic!("it was not applied"),
    }
    ledger.close().unwrap();
    // The migration to counted heads is a commit too.
    assert_eq!(Ledger::open(&state).unwrap().head().unwrap().seq, 3);
}

#[test]
fn a_migration_that_died_after_its_anchor_is_done_again() {
    let (temp, state) = home();
    version_1(&state);
    let other = temp.path().join("other");
    drop(Ledger::open(&other).unwrap());
    std::fs::copy(other.join(Ledger::ANCHOR), state.join(Ledger::ANCHOR)).unwrap();
    assert_eq!(
        Ledger::open(&state).unwrap().open_intents().unwrap().len(),
        1
    );
    assert_eq!(
        Ledger::open(&state).unwrap().open_intents().unwrap().len(),
        1
    );
}

#[test]
fn a_copy_from_before_the_migration_is_an_old_copy() {
    let (temp, state) = home();
    version_1(&state);
    let old = temp.path().join("old");
    copy(&state, &old);
    let mut ledger = Ledger::open(&state).unwrap();
    intend(&mut ledger, 7);
    ledger.close().unwrap();
    put_back(&old, &state);
    assert_eq!(code(Ledger::open(&state)), LedgerCode::LedgerBehind);
}

#[test]
fn eight_migrations_at_once_are_one() {
    let (_temp, state) = home();
    version_1(&state);
    std::thread::scope(|scope| {
        for branch in 10..18 {
            let state = &state;
            scope.spawn(move || intend(&mut Ledger::open(state).unwrap(), branch));
        }
    });
    let ledger = Ledger::open(&state).unwrap();
    assert_eq!(ledger.open_intents().unwrap().len(), 9);
    assert_eq!(ledger.head().unwrap().seq, 9);
}
