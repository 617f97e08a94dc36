//! The lines of a recording, read and verified.

use super::line::{Content, End, Header, MAX_LINE, MAX_LINES, chain, root_statement};
use super::recording::{Answer, Exchange};
use super::{TRANSCRIPT_FORMAT, TRANSCRIPT_VERSION};
use flightproof_certifier::dsse;
use flightproof_certifier::key::{KeyId, PublicKey};
use flightproof_core::{Digest, canonical_json, escape, parse_strict_value};
use serde_json::Value;
use std::collections::VecDeque;

/// Why a line is refused.
pub(super) enum LineFault {
    TooNew(String),
    Broken(String),
}

/// Takes a recording line by line: canonical, chained, every invoke answered once.
#[derive(Default)]
pub(super) struct Reader {
    newer_minor: bool,
    pub(super) lines: usize,
    hash: Option<Digest>,
    header: Option<Header>,
    pending: Option<(u64, String, Value)>,
    exchanges: VecDeque<Exchange>,
    end: Option<(End, Digest)>,
}

impl Reader {
    pub(super) fn take(&mut self, number: usize, bytes: &[u8]) -> Result<(), LineFault> {
        let value =
            parse_strict_value(bytes, MAX_LINE).map_err(|e| LineFault::Broken(e.to_string()))?;
        if number == 0 {
            // Looked at before anything else, since a newer format may have other fields.
            self.newer_minor = check_version(&value)?;
        }
        let content = self.link(number, bytes, value).map_err(LineFault::Broken)?;
        self.place(number as u64, content)
            .map_err(LineFault::Broken)
    }

    fn link(&mut self, number: usize, bytes: &[u8], value: Value) -> Result<Content, String> {
        if number >= MAX_LINES {
            return Err(format!("more than {MAX_LINES} lines"));
        }
        if self.end.is_some() {
            return Err("a line after the end".to_owned());
        }
        let canonical = |value: &Value| canonical_json(value).map_err(|e| e.to_string());
        if canonical(&value)? != bytes {
            return Err("not in canonical form".to_owned());
        }
        let Value::Object(mut fields) = value else {
            return Err("no object".to_owned());
        };
        let claimed = fields.remove("h");
        let rest = Value::Object(fields);
        let before = self.hash.unwrap_or_else(|| Digest::from_bytes([0; 32]));
        let hash = chain(&before, &canonical(&rest)?);
        if claimed.as_ref().and_then(Value::as_str) != Some(&hash.to_string()) {
            return Err("its hash does not follow from the line before".to_owned());
        }
        let Value::Object(mut fields) = rest else {
            return Err("no object".to_owned());
        };
        let i = fields.remove("i").unwrap_or_default();
        if i.as_u64() != Some(number as u64) {
            return Err(format!("numbered {}", escape(i.to_string(), 40)));
        }
        let content = Content::read(fields, self.newer_minor)?;
        if let Content::End(end) = &content {
            self.end = Some((end.clone(), before));
        }
        self.hash = Some(hash);
        self.lines = number + 1;
        Ok(content)
    }

    fn place(&mut self, i: u64, content: Content) -> Result<(), String> {
        match (content, self.pending.take()) {
            (Content::Header(header), None) if i == 0 => self.header = Some(header),
            (Content::Invoke(event), None) if i > 0 => {
                let op = event.op.ok_or("an invoke without an operation")?;
                self.pending = Some((i, op, event.v));
            }
            (Content::Ok(event), Some(asked)) => {
                self.answer(asked, event.of, Answer::Ok(event.v))?
            }
            (Content::Fail(event), Some(asked)) => {
                self.answer(asked, event.of, Answer::Fail(event.v))?
            }
            (Content::End(_), None) if i > 0 => {}
            _ => return Err("out of place".to_owned()),
        }
        Ok(())
    }

    fn answer(
        &mut self,
        asked: (u64, String, Value),
        of: Option<u64>,
        answer: Answer,
    ) -> Result<(), String> {
        let (line, op, input) = asked;
        if of != Some(line) {
            return Err(format!("answers line {of:?}, expected {line}"));
        }
        self.exchanges.push_back(Exchange {
            line,
            op,
            input,
            answer,
        });
        Ok(())
    }

    /// Header, end, exchanges and signer of a whole recording whose root one of the keys signed.
    pub(super) fn finish(
        self,
        recorders: &[PublicKey],
    ) -> Result<(Header, End, VecDeque<Exchange>, KeyId), String> {
        let header = self.header.ok_or("no first line")?;
        let (end, before) = self
            .end
            .ok_or("no last line: the recording is incomplete")?;
        if usize::try_from(end.exchanges) != Ok(self.exchanges.len()) {
            return Err(format!(
                "claims {} exchanges, has {}",
                end.exchanges,
                self.exchanges.len()
            ));
        }
        let statement = root_statement(
            &before,
            &header.flight,
            end.exchanges,
            &end.verdict,
            end.predicate.as_ref(),
        )?;
        let signed = dsse::open(end.root.as_bytes(), recorders, 1).map_err(|e| e.to_string())?;
        if signed.bytes() != statement {
            return Err("its root is signed for another recording".to_owned());
        }
        let signer = *signed.signers().first().ok_or("nobody signed it")?;
        Ok((header, end, self.exchanges, signer))
    }
}

/// Whether the recording is of a newer minor version than this program writes.
fn check_version(first: &Value) -> Result<bool, LineFault> {
    let broken = |what: &str| LineFault::Broken(what.to_owned());
    if first.get("format").and_then(Value::as_str) != Some(TRANSCRIPT_FORMAT) {
        return Err(broken("not a flight transcript"));
    }
    let version = first
        .get("version")
        .and_then(Value::as_str)
        .ok_or_else(|| broken("no version"))?;
    let (major, minor) = version
        .split_once('.')
        .and_then(|(major, minor)| Some((number(major)?, number(minor)?)))
        .ok_or_else(|| broken("a version that is none"))?;
    if major > TRANSCRIPT_VERSION.0 {
        return Err(LineFault::TooNew(escape(version, 20)));
    }
    if major < TRANSCRIPT_VERSION.0 {
        return Err(broken("a version that never was"));
    }
    Ok(minor > TRANSCRIPT_VERSION.1)
}

/// A number in the one spelling it has: `u32` alone would also read `+1` and `01`.
fn number(text: &str) -> Option<u32> {
    text.parse().ok().filter(|n: &u32| n.to_string() == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_without_end_are_refused_at_the_limit() {
        for (number, expected) in [(MAX_LINES, "more than 200000 lines"), (MAX_LINES - 1, "")] {
            let Err(LineFault::Broken(what)) = Reader::default().take(number, b"{}") else {
                panic!("a line that is none was taken");
            };
            assert_eq!(
                what.starts_with("more than"),
                !expected.is_empty(),
                "{what}"
            );
        }
    }
}
