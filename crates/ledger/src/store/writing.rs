use crate::anchor::{Anchor, Head, REMEMBERED};
use crate::seal;
use crate::store::{of_storage, transaction, unreadable};
use crate::{LedgerCode, LedgerError};
use flightproof_core::{Digest, Hasher};
use rusqlite::{Connection, ErrorCode, OptionalExtension as _, Row, Statement, ToSql};
use std::cell::{Cell, RefCell};
use std::ops::Deref;
use std::sync::OnceLock;

/// A head, and how many rows there are at it; not known of one that an older version wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) head: Head,
    pub(super) rows: Option<u64>,
}

/// One moment of the ledger.
#[derive(Debug)]
pub struct Reading<'a> {
    connection: &'a Connection,
    storage_failed: Cell<bool>,
}

impl<'a> Reading<'a> {
    pub(super) fn new(connection: &'a Connection) -> Self {
        Self {
            connection,
            storage_failed: Cell::new(false),
        }
    }

    /// The last commit, found from the anchored one: an anchor may be behind, never ahead.
    pub(super) fn head(
        &self,
        anchor: &Anchor,
        identity: &[u8; 16],
    ) -> Result<Counted, LedgerError> {
        self.last_from(self.anchored(anchor.read(identity)?, identity)?)
    }

    /// The last commit from one that is known.
    fn last_from(&self, mut at: Counted) -> Result<Counted, LedgerError> {
        for _ in 0..REMEMBERED {
            match self.head_at(at.head.seq + 1)? {
                Some(next) if next.head.seq == at.head.seq + 1 => at = next,
                _ => break,
            }
        }
        Ok(at)
    }

    fn anchored(&self, anchored: Head, identity: &[u8; 16]) -> Result<Counted, LedgerError> {
        let found = match anchored.seq {
            // Nothing is kept of the head before the first commit: that the first is still there says
            // as much.
            0 => self
                .head_at(1)?
                .filter(|first| first.head.seq != 1)
                .or(Some(Counted {
                    head: Head::first(identity),
                    rows: Some(0),
                })),
            seq => self.head_at(seq)?,
        };
        let head = found.map(|found| found.head);
        if let Some(found) = found.filter(|found| found.head == anchored) {
            return Ok(found);
        }
        match head {
            Some(found) if found.seq > anchored.seq => {
                Err(LedgerCode::LedgerUnanchored.refuse(format!(
                    "the anchor is at {}, far behind {}",
                    anchored.seq, found.seq
                )))
            }
            found => Err(LedgerCode::LedgerBehind.refuse(format!(
                "anchored at {}, found {}",
                anchored.seq,
                match found {
                    Some(found) if found.seq == anchored.seq => "another history".to_owned(),
                    Some(found) => format!("{} in its place", found.seq),
                    None => "nothing in its place".to_owned(),
                }
            ))),
        }
    }

    fn head_at(&self, seq: u64) -> Result<Option<Counted>, LedgerError> {
        let found = self.first(
            "SELECT seq, chain, rows, changes FROM heads WHERE slot = ?1",
            &[&(seq % REMEMBERED).cast_signed()],
            |row| {
                let head = Head {
                    seq: row.get::<_, i64>(0)?.cast_unsigned(),
                    chain: Digest::from_bytes(row.get(1)?),
                };
                let rows = row.get::<_, Option<i64>>(2)?.map(i64::cast_unsigned);
                let changes = row.get::<_, Option<[u8; 32]>>(3)?.map(Digest::from_bytes);
                Ok((Counted { head, rows }, changes))
            },
        )?;
        let Some((counted, changes)) = found else {
            return Ok(None);
        };
        let linked = changes.zip(counted.rows);
        match linked.is_none_or(|(changes, rows)| Head::link(&changes, rows) == counted.head.chain)
        {
            true => Ok(Some(counted)),
            false => Err(LedgerCode::LedgerDamaged.refuse(format!("head {}", counted.head.seq))),
        }
    }

    /// The first row of a query, if there is one.
    pub(crate) fn first<T>(
        &self,
        sql: &str,
        parameters: &[&dyn ToSql],
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, LedgerError> {
        self.connection
            .prepare_cached(sql)
            .and_then(|mut select| select.query_row(parameters, read).optional())
            .map_err(|e| self.failed(e))
    }

    /// All rows of a query.
    pub(crate) fn all<T>(
        &self,
        sql: &str,
        parameters: &[&dyn ToSql],
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, LedgerError> {
        self.connection
            .prepare_cached(sql)
            .and_then(|mut select| select.query_map(parameters, read)?.collect())
            .map_err(|e| self.failed(e))
    }

    /// The first row of a table that a condition names, its seal verified.
    pub(crate) fn sealed<T>(
        &self,
        table: &Table,
        condition: &str,
        parameters: &[&dyn ToSql],
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, LedgerError> {
        let sql = table.select(condition);
        let whole = table.width();
        self.first(&sql, parameters, |row| {
            Ok((row.get::<_, bool>(whole)?, read(row)?))
        })?
        .map(|(whole, value)| table.whole(whole, value))
        .transpose()
    }

    /// All rows of a table that a condition names, each seal verified.
    pub(crate) fn all_sealed<T>(
        &self,
        table: &Table,
        condition: &str,
        parameters: &[&dyn ToSql],
        mut read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, LedgerError> {
        let sql = table.select(condition);
        let whole = table.width();
        self.all(&sql, parameters, |row| {
            Ok((row.get::<_, bool>(whole)?, read(row)?))
        })?
        .into_iter()
        .map(|(whole, value)| table.whole(whole, value))
        .collect()
    }

    /// Rows of a table, each of them whole.
    pub(super) fn count_whole(&self, table: &Table) -> Result<u64, LedgerError> {
        let (name, columns) = (table.name, table.columns);
        let sql = format!(
            "SELECT COUNT(*), COALESCE(MIN(seal = {}({columns})), 1) FROM {name}",
            seal::FUNCTION
        );
        let found = self.first(&sql, &[], |row| Ok((row.get::<_, i64>(0)?, row.get(1)?)))?;
        let (count, whole) = found.unwrap_or((0, false));
        table.whole(whole, count.cast_unsigned())
    }

    fn failed(&self, error: rusqlite::Error) -> LedgerError {
        let done_for = matches!(
            error.sqlite_error_code(),
            Some(
                ErrorCode::SystemIoFailure
                    | ErrorCode::DiskFull
                    | ErrorCode::CannotOpen
                    | ErrorCode::OutOfMemory
                    | ErrorCode::ReadOnly
            )
        );
        if done_for {
            self.storage_failed.set(true);
        }
        match error.sqlite_error_code() {
            // What was looked up and not found was there: a row that a damaged page hides.
            Some(
                ErrorCode::DatabaseCorrupt
                | ErrorCode::NotADatabase
                | ErrorCode::ConstraintViolation,
            ) => LedgerCode::LedgerDamaged.refuse(error),
            _ => of_storage(error),
        }
    }

    /// Whether the storage refused something: then the handle is done for.
    pub(crate) fn storage_failed(&self) -> bool {
        self.storage_failed.get()
    }
}

/// One transaction that writes. It sees what it wrote.
pub struct Writing<'a> {
    reading: Reading<'a>,
    /// The last commit, or the anchored one that this handle made itself: whoever wrote since then died
    /// before it was anchored, and is found when the new head finds its place taken.
    at: Counted,
    /// What is changed. The chain of the commit before goes in last, when it is known which that is.
    log: RefCell<Hasher>,
    inserted: Cell<u64>,
    changed: Cell<bool>,
    at_once: Cell<bool>,
}

impl<'a> Deref for Writing<'a> {
    type Target = Reading<'a>;
    fn deref(&self) -> &Reading<'a> {
        &self.reading
    }
}

impl std::fmt::Debug for Writing<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Writing(after {})", self.at.head.seq)
    }
}

impl<'a> Writing<'a> {
    pub(super) fn begin(
        connection: &'a Connection,
        anchor: &Anchor,
        identity: &[u8; 16],
        last: Option<Counted>,
    ) -> Result<Self, LedgerError> {
        let reading = Reading::new(connection);
        let anchored = anchor.read(identity)?;
        let at = match last {
            Some(last) if last.head == anchored => last,
            _ => reading.last_from(reading.anchored(anchored, identity)?)?,
        };
        Ok(Self {
            reading,
            at,
            log: RefCell::new(Hasher::new()),
            inserted: Cell::new(0),
            changed: Cell::new(false),
            at_once: Cell::new(false),
        })
    }

    /// Runs one statement that changes rows; returns how many. What it does and with which values goes
    /// into the chain of heads.
    fn change(
        &self,
        what: &str,
        sql: &str,
        parameters: &[&dyn ToSql],
    ) -> Result<usize, LedgerError> {
        let mut log = self.log.borrow_mut();
        seal::take(&mut log, rusqlite::types::ValueRef::Text(what.as_bytes()));
        for parameter in parameters {
            seal::take_parameter(&mut log, *parameter).map_err(unreadable)?;
        }
        self.changed.set(true);
        self.run(sql, parameters)
    }

    fn run(&self, sql: &str, parameters: &[&dyn ToSql]) -> Result<usize, LedgerError> {
        self.reading
            .connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute(parameters))
            .map_err(|e| self.failed(e))
    }

    /// Inserts a sealed row; the values are those of the table's columns, in order.
    pub(crate) fn insert(&self, table: &Table, values: &[&dyn ToSql]) -> Result<(), LedgerError> {
        let mut columns = Hasher::new();
        for value in values {
            seal::take_parameter(&mut columns, *value).map_err(unreadable)?;
        }
        let columns = columns.finish();
        let seal = seal::of(&columns);
        let mut log = self.log.borrow_mut();
        log.update(table.name.as_bytes());
        log.update(columns.as_bytes());
        self.changed.set(true);
        let mut sealed = values.to_vec();
        sealed.push(&seal);
        self.run(table.insert(), &sealed)?;
        self.inserted.set(self.inserted.get() + 1);
        Ok(())
    }

    /// The number the next row of an AUTOINCREMENT table gets: never one that was given before.
    pub(crate) fn next_id(&self, table: &Table) -> Result<i64, LedgerError> {
        let last = self.first(
            "SELECT seq FROM sqlite_sequence WHERE name = ?1",
            &[&table.name],
            |row| row.get::<_, i64>(0),
        )?;
        Ok(last.unwrap_or(0).saturating_add(1))
    }

    /// Changes rows of a sealed table and seals them anew; returns how many. None of them may be damaged:
    /// sealed anew it would pass for what was written. The condition has the first parameters, the
    /// assignments the others; no assignment changes what the condition names.
    pub(crate) fn update(
        &self,
        table: &Table,
        assignments: &str,
        condition: &str,
        parameters: &[&dyn ToSql],
    ) -> Result<usize, LedgerError> {
        let (name, columns) = (table.name, table.columns);
        let broken = format!("{condition} AND seal <> {}({columns})", seal::FUNCTION);
        let damaged = self.of_keys(
            &format!("SELECT EXISTS (SELECT 1 FROM {name} WHERE {broken})"),
            parameters,
            |select, keys| select.query_row(keys, |row| row.get::<_, bool>(0)),
        )?;
        table.whole(!damaged, ())?;
        let statement = format!("UPDATE {name} SET {assignments} WHERE {condition}");
        let changed = self.change(&statement, &statement, parameters)?;
        if changed > 0 {
            self.of_keys(
                &format!(
                    "UPDATE {name} SET seal = {}({columns}) WHERE {broken}",
                    seal::FUNCTION
                ),
                parameters,
                |reseal, keys| reseal.execute(keys),
            )?;
        }
        Ok(changed)
    }

    /// Runs a statement with as many of the parameters as it has: those of the condition alone.
    fn of_keys<T>(
        &self,
        sql: &str,
        parameters: &[&dyn ToSql],
        run: impl FnOnce(&mut Statement<'_>, &[&dyn ToSql]) -> rusqlite::Result<T>,
    ) -> Result<T, LedgerError> {
        self.reading
            .connection
            .prepare_cached(sql)
            .and_then(|mut statement| {
                let keys = statement.parameter_count().min(parameters.len());
                run(&mut statement, &parameters[..keys])
            })
            .map_err(|e| self.failed(e))
    }

    /// Runs a part that may fail by itself: what it changed is undone, and the transaction goes on.
    ///
    /// # Errors
    /// Those of `part`; `LEDGER_UNREADABLE` if undoing fails.
    pub fn attempt<T>(
        &self,
        part: impl FnOnce(&Self) -> Result<T, LedgerError>,
    ) -> Result<T, LedgerError> {
        let run = |sql: &str| {
            let done = transaction::run(self.reading.connection, sql);
            done.map_err(|e| {
                // A part that cannot be undone must not be committed with the rest.
                self.reading.storage_failed.set(true);
                unreadable(e)
            })
        };
        let before = (
            self.log.borrow().clone(),
            self.changed.get(),
            self.at_once.get(),
            self.inserted.get(),
        );
        run("SAVEPOINT part")?;
        let answer = part(self);
        if answer.is_err() {
            run("ROLLBACK TO part")?;
            *self.log.borrow_mut() = before.0;
            self.changed.set(before.1);
            self.at_once.set(before.2);
            self.inserted.set(before.3);
        }
        run("RELEASE part")?;
        answer
    }

    /// Has this commit anchored on disk before it is acknowledged: for money and admissions.
    pub(crate) fn anchor_at_once(&self) {
        self.at_once.set(true);
    }

    /// Records the new head; `None` if nothing changed and there is nothing to commit.
    pub(super) fn finish(&self) -> Result<Option<(Counted, bool)>, LedgerError> {
        if !self.changed.get() {
            return Ok(None);
        }
        let at = match self.follow(self.at)? {
            Some(at) => at,
            None => {
                let taken = || LedgerCode::LedgerDamaged.refuse("a head stands in its place");
                self.follow(self.last_from(self.at)?)?.ok_or_else(taken)?
            }
        };
        Ok(Some((at, self.at_once.get())))
    }

    /// Records the head that follows `last`; `None` if one stands there already.
    fn follow(&self, last: Counted) -> Result<Option<Counted>, LedgerError> {
        let uncounted = || LedgerCode::LedgerDamaged.refuse("its rows are not counted");
        let rows = last.rows.ok_or_else(uncounted)? + self.inserted.get();
        let mut log = self.log.borrow().clone();
        log.update(last.head.chain.as_bytes());
        let changes = log.finish();
        let head = Head {
            seq: last.head.seq + 1,
            chain: Head::link(&changes, rows),
        };
        let stored = store_head(self.reading.connection, head, &changes, rows);
        let rows = Some(rows);
        Ok(stored
            .map_err(|e| self.failed(e))?
            .then_some(Counted { head, rows }))
    }
}

/// Writes a head over the one that is a thousand commits older, and never over a newer one: says
/// whether it was written.
pub(crate) fn store_head(
    connection: &Connection,
    head: Head,
    changes: &Digest,
    rows: u64,
) -> rusqlite::Result<bool> {
    connection
        .prepare_cached(
            "INSERT INTO heads (slot, seq, changes, rows, chain) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (slot) DO UPDATE SET seq = ?2, changes = ?3, rows = ?4, chain = ?5
             WHERE seq < ?2",
        )?
        .execute((
            (head.seq % REMEMBERED).cast_signed(),
            head.seq.cast_signed(),
            changes.as_bytes(),
            rows.cast_signed(),
            head.chain.as_bytes(),
        ))
        .map(|written| written == 1)
}

/// A table whose rows are sealed.
pub(crate) struct Table {
    pub(crate) name: &'static str,
    /// Every column but `seal`, in order, as SQL lists them.
    pub(crate) columns: &'static str,
    select: OnceLock<String>,
    insert: OnceLock<String>,
}

impl Table {
    pub(crate) const fn new(name: &'static str, columns: &'static str) -> Self {
        Self {
            name,
            columns,
            select: OnceLock::new(),
            insert: OnceLock::new(),
        }
    }

    /// Column of a selected row that says whether its seal is right.
    fn width(&self) -> usize {
        self.columns.split(',').count()
    }

    fn select(&self, condition: &str) -> String {
        let (name, columns) = (self.name, self.columns);
        let all = self.select.get_or_init(|| {
            let seal = seal::FUNCTION;
            format!("SELECT {columns}, seal = {seal}({columns}) FROM {name} WHERE ")
        });
        format!("{all}{condition}")
    }

    fn insert(&self) -> &str {
        let (name, columns) = (self.name, self.columns);
        self.insert.get_or_init(|| {
            let places: Vec<String> = (1..=self.width() + 1).map(|n| format!("?{n}")).collect();
            let places = places.join(", ");
            format!("INSERT INTO {name} ({columns}, seal) VALUES ({places})")
        })
    }

    fn whole<T>(&self, whole: bool, value: T) -> Result<T, LedgerError> {
        if whole {
            return Ok(value);
        }
        Err(LedgerCode::LedgerDamaged.refuse(format!("a row of {}", self.name)))
    }
}
