//! From bytes to the one object that a result is.

use super::{MAX_RESULT, keep};
use crate::document::{Fault, Json, first};
use crate::{AgentCode, AgentError};

/// Bytes as text: bounded, UTF-8, not empty.
pub(crate) fn text(bytes: &[u8]) -> Result<&str, AgentError> {
    if bytes.len() > MAX_RESULT {
        return Err(keep(
            AgentCode::ResultTooLarge,
            format!("{} bytes, at most {MAX_RESULT}", bytes.len()),
        ));
    }
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(keep(AgentCode::NoResult, "nothing was printed"));
    }
    let text = std::str::from_utf8(bytes).map_err(|e| {
        keep(
            AgentCode::ResultEncoding,
            format!("byte {} is not UTF-8", e.valid_up_to()),
        )
    })?;
    if text.starts_with('\u{feff}') {
        return Err(keep(AgentCode::ResultEncoding, "a byte order mark"));
    }
    Ok(text)
}

/// The one object of a text.
pub(crate) fn object(text: &str) -> Result<Json<'_>, AgentError> {
    let (value, rest) = first(text).map_err(refusal)?;
    if !rest.is_empty() {
        return Err(trailing(rest));
    }
    match value {
        Json::Object(_) => Ok(value),
        Json::List(items) => Err(keep(
            AgentCode::ResultArray,
            format!("a list of {} values", items.len()),
        )),
        _ => Err(keep(AgentCode::ResultNotObject, "a bare value")),
    }
}

/// Why a document cannot be read, as a refusal. The cost stays unknown.
pub(crate) fn refusal(fault: Fault) -> AgentError {
    let (code, at) = match fault {
        Fault::Truncated => return keep(AgentCode::ResultTruncated, "the text ends too early"),
        Fault::Malformed(at) => (AgentCode::ResultMalformed, at),
        Fault::DuplicateKey(at) => (AgentCode::DuplicateKey, at),
        Fault::NotFinite(at) => (AgentCode::NotFinite, at),
        Fault::TooComplex(at) => (AgentCode::TooComplex, at),
    };
    keep(code, format!("at byte {at}"))
}

/// What follows the first document: another result, or something else.
fn trailing(rest: &str) -> AgentError {
    let is_result = |value: &Json<'_>| value.field("type").and_then(Json::text) == Some("result");
    let mut left = rest;
    let mut results = 1;
    while let Ok((value, more)) = first(left) {
        results += usize::from(is_result(&value));
        if more.is_empty() {
            break;
        }
        left = more;
    }
    if results > 1 {
        return keep(AgentCode::SeveralResults, format!("{results} of them"));
    }
    keep(AgentCode::TrailingBytes, format!("{} bytes", rest.len()))
}
