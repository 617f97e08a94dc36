//! A digest over the columns of a row, and over what a transaction changed.

use flightproof_core::{Digest, Hasher};
use rusqlite::functions::FunctionFlags;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ToSql};

/// Name of the SQL function: `row_seal(a, b, …)` over any number of values.
pub(crate) const FUNCTION: &str = "row_seal";

/// Bits of a seal: a damaged row reads as whole once in 2^40 times, and eight million seals add up
/// without overflow.
const BITS: u32 = 40;

/// Makes `row_seal` known to a connection. Not to its schema: a file from elsewhere cannot call it.
pub(crate) fn register(connection: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8
        | FunctionFlags::SQLITE_DETERMINISTIC
        | FunctionFlags::SQLITE_DIRECTONLY;
    connection.create_scalar_function(FUNCTION, -1, flags, |context| {
        let mut hasher = Hasher::new();
        for column in 0..context.len() {
            take(&mut hasher, context.get_raw(column));
        }
        Ok(of(&hasher.finish()))
    })
}

/// The seal of a row whose columns have this digest.
pub(crate) fn of(columns: &Digest) -> i64 {
    let mut first = [0; 8];
    first.copy_from_slice(&columns.as_bytes()[..8]);
    (u64::from_be_bytes(first) >> (u64::BITS - BITS)).cast_signed()
}

/// Takes a parameter as SQLite will store it.
pub(crate) fn take_parameter(hasher: &mut Hasher, value: &dyn ToSql) -> rusqlite::Result<()> {
    match value.to_sql()? {
        rusqlite::types::ToSqlOutput::Borrowed(value) => take(hasher, value),
        rusqlite::types::ToSqlOutput::Owned(value) => take(hasher, (&value).into()),
        _ => {
            return Err(rusqlite::Error::ToSqlConversionFailure(
                "a parameter of no storage class".into(),
            ));
        }
    }
    Ok(())
}

/// Each value with its type and length, so that no two rows have the same bytes.
pub(crate) fn take(hasher: &mut Hasher, value: ValueRef<'_>) {
    let (tag, bytes): (u8, &[u8]) = match value {
        ValueRef::Null => (0, &[]),
        ValueRef::Integer(n) => return take_piece(hasher, 1, &n.to_be_bytes()),
        ValueRef::Real(n) => return take_piece(hasher, 2, &n.to_bits().to_be_bytes()),
        ValueRef::Text(text) => (3, text),
        ValueRef::Blob(blob) => (4, blob),
    };
    take_piece(hasher, tag, bytes);
}

fn take_piece(hasher: &mut Hasher, tag: u8, bytes: &[u8]) {
    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    let mut head = [tag; 9];
    head[1..].copy_from_slice(&length.to_be_bytes());
    hasher.update(&head);
    hasher.update(bytes);
}
