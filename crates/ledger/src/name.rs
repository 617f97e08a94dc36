use crate::{LedgerCode, LedgerError};
use std::fmt;
use std::str::FromStr;

/// A name of a run, a session, a flight, a lease, a link, or a request's key: 1 to 200 characters,
/// each a letter or digit of ASCII or one of `. _ : / @ + -`. What holds no space and no control
/// character cannot deceive a log.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

impl Name {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = LedgerError;
    fn from_str(text: &str) -> Result<Self, LedgerError> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b"._:/@+-".contains(&b);
        if (1..=MAX).contains(&text.len()) && text.bytes().all(allowed) {
            return Ok(Self(text.to_owned()));
        }
        Err(LedgerCode::BadName.refuse(format!(
            "{} ({} bytes)",
            flightproof_core::escape(text, 60),
            text.len()
        )))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl rusqlite::ToSql for Name {
    fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
        self.0.to_sql()
    }
}

/// Longest name, bytes: a path-like run name with a digest in it.
const MAX: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_and_plain() {
        for good in ["a", "run-7/attempt.2", "sha256:0f", &"x".repeat(200)] {
            assert_eq!(good.parse::<Name>().unwrap().as_str(), good);
        }
        for bad in [
            "",
            " ",
            "a b",
            "a\n",
            "a\u{1b}",
            "é",
            "a'b",
            &"x".repeat(201),
        ] {
            assert_eq!(bad.parse::<Name>().unwrap_err().code, LedgerCode::BadName);
        }
    }
}
