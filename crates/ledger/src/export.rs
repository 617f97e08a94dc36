//! Everything the ledger holds, for a person or another program to read.

use crate::store::{Reading, Table};
use crate::{Ledger, LedgerCode, LedgerError};
use flightproof_core::Digest;
use rusqlite::types::ValueRef;
use serde_json::{Map, Value, json};
use std::io::Write;

impl Ledger {
    /// Writes every row as one line of JSON, after a first line that names ledger, tables' version
    /// and head. Bytes are written as length and digest, grants without their secrets; amounts are
    /// micro-dollars, and estimates.
    ///
    /// # Errors
    /// `LEDGER_DAMAGED` before the first damaged row is written, `EXPORT_FAILED` if `out` refuses.
    pub fn export(&self, out: &mut impl Write) -> Result<(), LedgerError> {
        let uncertified = crate::uncertified().to_string();
        // One moment of the ledger, whatever others commit meanwhile.
        self.read(|r| {
            let head = self.head_of(r)?;
            let first = json!({
                "schema": "flightproof/ledger-export/1",
                "ledger": self.identity(),
                "tables": crate::schema::VERSION,
                "commits": head.seq,
                "chain": head.chain.to_string(),
            });
            line(out, &first)?;
            for table in TABLES {
                for row in shown_rows(r, table, &uncertified)? {
                    line(out, &row)?;
                }
            }
            Ok(())
        })?;
        out.flush().map_err(failed)
    }
}

/// All rows of a table, read in one go: none is written before all are found whole.
fn shown_rows(
    r: &Reading<'_>,
    table: &Table,
    uncertified: &str,
) -> Result<Vec<Value>, LedgerError> {
    let columns: Vec<&str> = table.columns.split(", ").collect();
    r.all_sealed(table, "TRUE", &[], |row| {
        let mut object = Map::new();
        object.insert("table".into(), table.name.into());
        for (at, column) in columns.iter().enumerate() {
            if !HIDDEN.contains(&(table.name, column)) {
                object.insert((*column).into(), shown(row.get_ref(at)?));
            }
        }
        // The digest of the row's seal stays what it is; no certificate has it.
        let certificate = object.get("certificate").and_then(Value::as_str);
        if certificate == Some(uncertified) {
            object.insert("uncertified".into(), true.into());
        }
        Ok(Value::Object(object))
    })
}

/// Every table whose rows are sealed.
pub(crate) static TABLES: &[&Table] = &[
    &crate::admissions::ADMISSIONS,
    &crate::hold::CAPS,
    &crate::hold::DAYS,
    &crate::hold::HOLDS,
    &crate::hold::RESOLUTIONS,
    &crate::hold::INCIDENTS,
    &crate::lease::LEASES,
    &crate::inbox::INBOX,
    &crate::relay::GRANTS,
    &crate::relay::LINKS,
    &crate::relay::OUTBOX,
    &crate::relay::ARRIVALS,
    &crate::message::FLIGHTS,
    &crate::message::LETTERS,
    &crate::session::SESSIONS,
    &crate::record::RECORDS,
];

/// Whoever knows these could speak for the other end of a link.
const HIDDEN: [(&str, &str); 3] = [("grants", "secret"), ("grants", "nonce"), ("grants", "key")];

fn shown(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(n) => n.into(),
        // No table has a column for it.
        ValueRef::Real(n) => n.to_string().into(),
        ValueRef::Text(text) => String::from_utf8_lossy(text).into(),
        ValueRef::Blob(bytes) => {
            json!({"bytes": bytes.len(), "sha256": Digest::of(bytes).to_string()})
        }
    }
}

fn line(out: &mut impl Write, value: &Value) -> Result<(), LedgerError> {
    writeln!(out, "{value}").map_err(failed)
}

fn failed(error: std::io::Error) -> LedgerError {
    LedgerCode::ExportFailed.refuse(error)
}
