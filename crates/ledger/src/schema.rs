//! The tables, version by version, and how an older ledger becomes one of today.
//!
//! A table's text is kept exactly as SQLite stores it, so that a ledger whose tables are not those
//! of its version is refused. A change of any text below is a new version with its own migration.

use crate::anchor::Head;
use crate::store::{of_storage, store_head, unreadable};
use crate::{LedgerCode, LedgerError};
use flightproof_core::Digest;
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior};

/// Version of the tables; grows with every change of them.
pub(crate) const VERSION: i64 = 4;
/// "FLTP": tells our file from any other SQLite file.
const APPLICATION: i64 = 0x464c_5450;

/// Refuses what is not a ledger this program can read; brings an older one up to today. `identity`
/// names the ledger for its anchor, which is on disk before the migration commits.
pub(crate) fn bring_up_to_date(
    connection: &mut Connection,
    identity: impl FnOnce() -> Result<[u8; 16], LedgerError>,
) -> Result<(), LedgerError> {
    if pragma(connection, "application_id")? != APPLICATION {
        return Err(unreadable("another program's file"));
    }
    match version(connection)? {
        VERSION => check(connection, CURRENT),
        1 => {
            check(connection, VERSION_1)?;
            migrate_1(connection, &identity()?)?;
            check(connection, CURRENT)
        }
        2 => {
            check(connection, &version_2())?;
            migrate_2(connection)?;
            bring_up_to_date(connection, identity)
        }
        3 => {
            check(connection, &version_3())?;
            migrate_3(connection)?;
            check(connection, CURRENT)
        }
        newer if newer > VERSION => Err(LedgerCode::LedgerTooNew
            .refuse(format!("version {newer}, this program reads {VERSION}"))),
        other => Err(unreadable(format!("version {other}"))),
    }
}

/// The version of the tables as the file says it.
pub(crate) fn version(connection: &Connection) -> Result<i64, LedgerError> {
    pragma(connection, "user_version")
}

/// Writes the tables into an empty database.
pub(crate) fn write(connection: &mut Connection, identity: &[u8; 16]) -> Result<(), LedgerError> {
    let tx = connection.transaction().map_err(of_storage)?;
    for text in CURRENT {
        tx.execute_batch(text).map_err(of_storage)?;
    }
    finish(&tx, identity)?;
    tx.pragma_update(None, "application_id", APPLICATION)
        .map_err(of_storage)?;
    tx.commit()
        .map_err(|e| LedgerCode::CommitUncertain.refuse(e))
}

fn migrate_1(connection: &mut Connection, identity: &[u8; 16]) -> Result<(), LedgerError> {
    let tx = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(of_storage)?;
    // Another process may have been first.
    if version(&tx)? != 1 {
        return Ok(());
    }
    let admissions = "id, repository, branch, baseline, head, certificate, state, intended_at, settled_at, receipt";
    let steps = [
        "ALTER TABLE admissions RENAME TO admissions_1".to_owned(),
        "DROP INDEX one_per_key".to_owned(),
    ];
    for step in steps {
        tx.execute_batch(&step).map_err(of_storage)?;
    }
    for text in CURRENT {
        tx.execute_batch(text).map_err(of_storage)?;
    }
    tx.execute_batch(&format!(
        "INSERT INTO admissions ({admissions}, seal)
             SELECT {admissions}, row_seal({admissions}) FROM admissions_1 ORDER BY id;
         DROP TABLE admissions_1"
    ))
    .map_err(of_storage)?;
    finish(&tx, identity)?;
    count_from(&tx, Head::first(identity))?;
    tx.commit()
        .map_err(|e| LedgerCode::CommitUncertain.refuse(e))
}

/// From version 2: heads say how many rows there are. Those that were written stay, for the anchor;
/// one more follows them, which counts.
fn migrate_2(connection: &mut Connection) -> Result<(), LedgerError> {
    let tx = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(of_storage)?;
    if version(&tx)? != 2 {
        return Ok(());
    }
    let identity: [u8; 16] = tx
        .query_row("SELECT id FROM identity WHERE one = 1", (), |row| {
            row.get(0)
        })
        .map_err(of_storage)?;
    let last = tx
        .query_row(
            "SELECT seq, chain FROM heads ORDER BY seq DESC LIMIT 1",
            (),
            |row| {
                Ok(Head {
                    seq: row.get::<_, i64>(0)?.cast_unsigned(),
                    chain: Digest::from_bytes(row.get(1)?),
                })
            },
        )
        .optional()
        .map_err(of_storage)?;
    tx.execute_batch(&format!(
        "ALTER TABLE heads RENAME TO heads_2;
         {HEADS};
         INSERT INTO heads (slot, seq, chain) SELECT slot, seq, chain FROM heads_2;
         DROP TABLE heads_2"
    ))
    .map_err(of_storage)?;
    count_from(&tx, last.unwrap_or(Head::first(&identity)))?;
    tx.pragma_update(None, "user_version", 3)
        .map_err(of_storage)?;
    tx.commit()
        .map_err(|e| LedgerCode::CommitUncertain.refuse(e))
}

/// From version 3: requests move side by side, seals and all. Of the other tables the same conditions
/// are put in other words; no row of theirs is touched, so their texts alone are written anew, in the
/// way that SQLite's documentation of ALTER TABLE gives for it.
fn migrate_3(connection: &mut Connection) -> Result<(), LedgerError> {
    let tx = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(of_storage)?;
    if version(&tx)? != 3 {
        return Ok(());
    }
    move_requests(&tx)?;
    let generation = pragma(&tx, "schema_version")?;
    tx.pragma_update(None, "writable_schema", true)
        .map_err(of_storage)?;
    for text in CURRENT {
        tx.execute(
            "UPDATE sqlite_schema SET sql = ?1 WHERE sql = ?2",
            (text, listed(text)),
        )
        .map_err(of_storage)?;
    }
    for (name, value) in [
        ("schema_version", generation + 1),
        ("writable_schema", 0),
        ("user_version", VERSION),
    ] {
        tx.pragma_update(None, name, value).map_err(of_storage)?;
    }
    tx.commit()
        .map_err(|e| LedgerCode::CommitUncertain.refuse(e))
}

fn move_requests(tx: &Connection) -> Result<(), LedgerError> {
    let columns = "key, request, state, lease, token, answer, answer_digest, seal";
    let texts = CURRENT.iter().filter(|text| text.contains(" inbox "));
    let made: Vec<&str> = texts.copied().collect();
    tx.execute_batch(&format!(
        "ALTER TABLE inbox RENAME TO inbox_3;
         DROP INDEX work_in_progress;
         {};
         INSERT INTO inbox (number, {columns}) SELECT id, {columns} FROM inbox_3;
         DROP TABLE inbox_3",
        made.join(";")
    ))
    .map_err(of_storage)
}

/// Writes the head after `last`, which counts the rows that there are.
fn count_from(tx: &Connection, last: Head) -> Result<(), LedgerError> {
    let mut rows = 0;
    for table in crate::export::TABLES {
        let sql = format!("SELECT COUNT(*) FROM {}", table.name);
        let count: i64 = tx
            .query_row(&sql, (), |row| row.get(0))
            .map_err(of_storage)?;
        rows += count.cast_unsigned();
    }
    let changes = Digest::keyed(b"flightproof-ledger-counted", last.chain.as_bytes());
    let head = Head {
        seq: last.seq + 1,
        chain: Head::link(&changes, rows),
    };
    match store_head(tx, head, &changes, rows).map_err(of_storage)? {
        true => Ok(()),
        false => Err(LedgerCode::LedgerDamaged.refuse("a head stands after the last one")),
    }
}

fn finish(tx: &Connection, identity: &[u8; 16]) -> Result<(), LedgerError> {
    tx.execute("INSERT INTO identity (one, id) VALUES (1, ?1)", [identity])
        .map_err(of_storage)?;
    tx.pragma_update(None, "user_version", VERSION)
        .map_err(of_storage)
}

fn pragma(connection: &Connection, name: &str) -> Result<i64, LedgerError> {
    connection
        .pragma_query_value(None, name, |row| row.get(0))
        .map_err(of_storage)
}

fn check(connection: &Connection, tables: &[impl AsRef<str>]) -> Result<(), LedgerError> {
    let mut select = connection
        .prepare("SELECT sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'")
        .map_err(of_storage)?;
    let mut found: Vec<String> = select
        .query_map((), |row| row.get(0))
        .and_then(Iterator::collect)
        .map_err(of_storage)?;
    found.sort_unstable();
    let mut expected: Vec<&str> = tables.iter().map(AsRef::as_ref).collect();
    expected.sort_unstable();
    if found == expected {
        return Ok(());
    }
    Err(unreadable("its tables are not those of its version"))
}

/// Version 1: admissions alone. An outcome that proved nothing happened frees its key; every other
/// one keeps it for good.
const VERSION_1: &[&str] = &[
    "CREATE TABLE admissions (
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
) STRICT",
    ONE_PER_KEY,
];

const ONE_PER_KEY: &str =
    "CREATE UNIQUE INDEX one_per_key ON admissions (repository, branch, baseline, head)
    WHERE state <> 'not-applied'";

/// Requests in the order they came, so that those of one commit are side by side. Each is found by two
/// indexes, of keys and of numbers made from them, which must agree that a key is new.
const INBOX: &str = "CREATE TABLE inbox (
    id INTEGER PRIMARY KEY,
    number INTEGER NOT NULL,
    key TEXT NOT NULL,
    request BLOB NOT NULL CHECK (length(request) = 32),
    state TEXT NOT NULL CHECK (state = 'working' OR state = 'answered' OR state = 'unknown' OR state = 'forgotten'),
    lease TEXT,
    token INTEGER,
    answer BLOB CHECK ((answer IS NOT NULL) = (state = 'answered')),
    answer_digest BLOB CHECK ((answer_digest IS NOT NULL) = (state = 'forgotten')),
    seal INTEGER NOT NULL
) STRICT";

const WORK_IN_PROGRESS: &str =
    "CREATE INDEX work_in_progress ON inbox (lease) WHERE state = 'working'";

/// Version 3: rows lay where their numbers put them, each on a page of its own.
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

/// The last commits: what each changed, how many rows there were after it, and the digest over both.
/// The first two are absent of what version 2 wrote.
const HEADS: &str = "CREATE TABLE heads (slot INTEGER PRIMARY KEY, seq INTEGER NOT NULL, changes BLOB CHECK (length(changes) = 32), rows INTEGER CHECK ((rows IS NULL) = (changes IS NULL)), chain BLOB NOT NULL CHECK (length(chain) = 32)) STRICT";

/// Version 2: heads without a count.
const HEADS_2: &str = "CREATE TABLE heads (slot INTEGER PRIMARY KEY, seq INTEGER NOT NULL, chain BLOB NOT NULL CHECK (length(chain) = 32)) STRICT";

fn version_2() -> Vec<String> {
    let heads = |text: String| match text == HEADS {
        true => HEADS_2.to_owned(),
        false => text,
    };
    version_3().into_iter().map(heads).collect()
}

/// Version 3: a column's words in a list. For a list SQLite builds a table in memory each time it
/// checks a row, which cost more than the row.
fn version_3() -> Vec<String> {
    let before = |text: &&str| match *text {
        INBOX => Some(INBOX_3.to_owned()),
        text if text.contains("ON inbox") && text != WORK_IN_PROGRESS => None,
        text => Some(listed(text)),
    };
    CURRENT.iter().filter_map(before).collect()
}

fn listed(text: &str) -> String {
    WORDS.iter().fold(text.to_owned(), |text, (column, words)| {
        let each = |word: &&str| format!("{column} = '{word}'");
        let now = words.iter().map(each).collect::<Vec<_>>().join(" OR ");
        let before = format!("{column} IN ('{}')", words.join("', '"));
        text.replace(&now, &before)
    })
}

/// Columns with three words or more, as version 3 listed them.
const WORDS: &[(&str, &[&str])] = &[
    (
        "state",
        &[
            "intended",
            "applied",
            "not-applied",
            "superseded",
            "unknown",
        ],
    ),
    ("scope", &["run", "utc-day", "total"]),
    (
        "state",
        &[
            "reserved", "running", "reported", "settled", "unknown", "resolved", "released",
        ],
    ),
    ("state", &["reported", "settled", "resolved"]),
    (
        "kind",
        &[
            "settled-after-release",
            "settled-twice",
            "settled-after-resolution",
        ],
    ),
    (
        "state",
        &[
            "created",
            "running",
            "passivated",
            "closing",
            "uncertain",
            "deleted",
        ],
    ),
    (
        "kind",
        &["command", "event", "provider-call", "observation"],
    ),
    ("state", &["pending", "applied", "interrupted"]),
];

/// Today's tables. Each row carries `seal`, a digest of its other columns: SQLite has no checksums
/// for the pages of its main file, and a changed bit must never read as another amount or state.
const CURRENT: &[&str] = &[
    "CREATE TABLE identity (one INTEGER PRIMARY KEY CHECK (one = 1), id BLOB NOT NULL CHECK (length(id) = 16)) STRICT",
    HEADS,
    "CREATE TABLE admissions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    repository TEXT NOT NULL,
    branch TEXT NOT NULL,
    baseline TEXT NOT NULL CHECK (length(baseline) = 40),
    head TEXT NOT NULL CHECK (length(head) = 40),
    certificate TEXT NOT NULL CHECK (length(certificate) = 64),
    state TEXT NOT NULL CHECK (state = 'intended' OR state = 'applied' OR state = 'not-applied' OR state = 'superseded' OR state = 'unknown'),
    intended_at INTEGER NOT NULL,
    settled_at INTEGER CHECK ((settled_at IS NULL) = (state = 'intended')),
    receipt BLOB CHECK ((receipt IS NOT NULL) = (state = 'applied')),
    seal INTEGER NOT NULL
) STRICT",
    ONE_PER_KEY,
    "CREATE TABLE caps (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    scope TEXT NOT NULL CHECK (scope = 'run' OR scope = 'utc-day' OR scope = 'total'),
    micro_usd INTEGER NOT NULL CHECK (micro_usd > 0),
    micro_eur INTEGER CHECK (micro_eur > 0),
    rate INTEGER CHECK ((rate IS NULL) = (micro_eur IS NULL)),
    stated_at INTEGER NOT NULL,
    seal INTEGER NOT NULL
) STRICT",
    "CREATE TABLE days (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    utc_day INTEGER NOT NULL CHECK (utc_day >= 0),
    confirmed INTEGER NOT NULL CHECK (confirmed IN (0, 1)),
    noted_at INTEGER NOT NULL,
    seal INTEGER NOT NULL
) STRICT",
    "CREATE TABLE holds (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run TEXT NOT NULL UNIQUE,
    request TEXT NOT NULL CHECK (length(request) = 64),
    parent TEXT,
    parent_cap INTEGER CHECK ((parent_cap IS NULL) = (parent IS NULL)),
    utc_day INTEGER NOT NULL,
    limit_micros INTEGER NOT NULL CHECK (limit_micros > 0),
    held INTEGER NOT NULL CHECK (held >= limit_micros),
    state TEXT NOT NULL CHECK (state = 'reserved' OR state = 'running' OR state = 'reported' OR state = 'settled' OR state = 'unknown' OR state = 'resolved' OR state = 'released'),
    actual INTEGER CHECK ((actual IS NOT NULL) = (state = 'reported' OR state = 'settled' OR state = 'resolved')),
    evidence TEXT CHECK ((evidence IS NOT NULL) = (state = 'reported' OR state = 'settled' OR state = 'resolved')),
    reserved_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    seal INTEGER NOT NULL
) STRICT",
    "CREATE INDEX live_holds ON holds (state, utc_day) WHERE state IN ('reserved', 'running', 'reported', 'unknown')",
    "CREATE INDEX holds_of_a_parent ON holds (parent) WHERE parent IS NOT NULL",
    "CREATE TABLE resolutions (
    run TEXT PRIMARY KEY,
    micro_usd INTEGER NOT NULL CHECK (micro_usd >= 0),
    evidence TEXT NOT NULL CHECK (length(evidence) = 64),
    statement BLOB NOT NULL,
    key BLOB NOT NULL CHECK (length(key) = 32),
    signature BLOB NOT NULL CHECK (length(signature) = 64),
    resolved_at INTEGER NOT NULL,
    seal INTEGER NOT NULL
) STRICT",
    "CREATE TRIGGER resolutions_stay BEFORE DELETE ON resolutions BEGIN SELECT RAISE(ABORT, 'append-only'); END",
    "CREATE TABLE incidents (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind = 'settled-after-release' OR kind = 'settled-twice' OR kind = 'settled-after-resolution'),
    claimed INTEGER NOT NULL CHECK (claimed >= 0),
    added INTEGER NOT NULL CHECK (added >= 0),
    utc_day INTEGER NOT NULL,
    seen_at INTEGER NOT NULL,
    seal INTEGER NOT NULL
) STRICT",
    "CREATE TABLE leases (
    name TEXT PRIMARY KEY,
    token INTEGER NOT NULL CHECK (token > 0),
    owner TEXT,
    granted_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    seal INTEGER NOT NULL
) STRICT",
    INBOX,
    "CREATE UNIQUE INDEX inbox_numbers ON inbox (number)",
    "CREATE UNIQUE INDEX inbox_keys ON inbox (key)",
    WORK_IN_PROGRESS,
    "CREATE TABLE grants (
    id TEXT PRIMARY KEY,
    link TEXT NOT NULL UNIQUE,
    role TEXT NOT NULL CHECK (role IN ('sender', 'receiver')),
    secret BLOB CHECK ((secret IS NULL) = (key IS NOT NULL)),
    nonce BLOB CHECK ((nonce IS NULL) = (key IS NULL)),
    key BLOB CHECK (length(key) = 32),
    seal INTEGER NOT NULL
) STRICT",
    "CREATE TABLE links (
    link TEXT PRIMARY KEY,
    queued INTEGER NOT NULL,
    acknowledged INTEGER NOT NULL CHECK (acknowledged <= queued),
    applied INTEGER NOT NULL,
    seal INTEGER NOT NULL
) STRICT",
    "CREATE TABLE outbox (
    link TEXT NOT NULL,
    seq INTEGER NOT NULL CHECK (seq > 0),
    key TEXT NOT NULL,
    digest BLOB NOT NULL CHECK (length(digest) = 32),
    body BLOB,
    answer BLOB,
    seal INTEGER NOT NULL,
    PRIMARY KEY (link, seq)
) STRICT",
    "CREATE UNIQUE INDEX outbox_keys ON outbox (link, key)",
    "CREATE TABLE arrivals (
    link TEXT NOT NULL,
    seq INTEGER NOT NULL CHECK (seq > 0),
    key TEXT NOT NULL,
    digest BLOB NOT NULL CHECK (length(digest) = 32),
    answer BLOB NOT NULL,
    seal INTEGER NOT NULL,
    PRIMARY KEY (link, seq)
) STRICT",
    "CREATE TABLE flights (
    name TEXT PRIMARY KEY,
    parent TEXT,
    seal INTEGER NOT NULL
) STRICT",
    "CREATE TABLE letters (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    sender TEXT NOT NULL,
    receiver TEXT NOT NULL,
    key TEXT NOT NULL,
    digest BLOB NOT NULL CHECK (length(digest) = 32),
    body BLOB CHECK ((body IS NULL) = (taken = 1)),
    taken INTEGER NOT NULL CHECK (taken IN (0, 1)),
    seal INTEGER NOT NULL
) STRICT",
    "CREATE UNIQUE INDEX letter_keys ON letters (sender, key)",
    "CREATE INDEX letters_waiting ON letters (receiver, id) WHERE taken = 0",
    "CREATE TABLE sessions (
    name TEXT PRIMARY KEY,
    state TEXT NOT NULL CHECK (state = 'created' OR state = 'running' OR state = 'passivated' OR state = 'closing' OR state = 'uncertain' OR state = 'deleted'),
    changed_at INTEGER NOT NULL,
    seal INTEGER NOT NULL
) STRICT",
    "CREATE TABLE records (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT NOT NULL,
    key TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind = 'command' OR kind = 'event' OR kind = 'provider-call' OR kind = 'observation'),
    request BLOB NOT NULL CHECK (length(request) = 32),
    state TEXT NOT NULL CHECK (state = 'pending' OR state = 'applied' OR state = 'interrupted'),
    lease TEXT NOT NULL,
    token INTEGER NOT NULL,
    outcome BLOB CHECK ((outcome IS NOT NULL) = (state = 'applied')),
    seal INTEGER NOT NULL
) STRICT",
    "CREATE UNIQUE INDEX record_keys ON records (session, key)",
    "CREATE INDEX pending_records ON records (lease) WHERE state = 'pending'",
];
