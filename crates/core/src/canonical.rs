use serde::Serialize;
use serde_json::Value;
use std::fmt;

/// Largest integer that every JSON reader keeps exactly: 2^53 - 1 (RFC 7493).
const MAX_SAFE: u64 = (1 << 53) - 1;

/// Why a value has no canonical form here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CanonicalError {
    /// A number that is not an integer of magnitude at most 2^53 - 1.
    Number(String),
    /// The value could not be turned into JSON at all.
    Serialize(String),
}

impl fmt::Display for CanonicalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(n) => write!(f, "{n} is not an integer of at most 2^53-1"),
            Self::Serialize(e) => write!(f, "not JSON: {e}"),
        }
    }
}

impl std::error::Error for CanonicalError {}

/// The canonical form of a value: RFC 8785 restricted to integers.
///
/// Keys sort by UTF-16 code units, no white space, the fewest escapes. Two equal values give equal
/// bytes, so the bytes can be hashed or signed.
///
/// # Errors
/// A float, or an integer beyond 2^53 - 1: such numbers change on their way through other readers.
pub fn canonical_json<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, CanonicalError> {
    let value =
        serde_json::to_value(value).map_err(|e| CanonicalError::Serialize(e.to_string()))?;
    canonical_value(&value)
}

/// [`canonical_json`] of a document that is JSON already: nothing is copied.
///
/// # Errors
/// As [`canonical_json`].
pub fn canonical_value(value: &Value) -> Result<Vec<u8>, CanonicalError> {
    let mut out = Vec::new();
    write_value(&mut out, value)?;
    Ok(out)
}

fn write_value(out: &mut Vec<u8>, value: &Value) -> Result<(), CanonicalError> {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(b) => out.extend_from_slice(if *b { b"true" } else { b"false" }),
        Value::Number(n) => write_number(out, n)?,
        Value::String(s) => write_string(out, s)?,
        Value::Array(items) => {
            out.push(b'[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write_value(out, item)?;
            }
            out.push(b']');
        }
        Value::Object(map) => {
            let mut fields: Vec<(&String, &Value)> = map.iter().collect();
            fields.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
            out.push(b'{');
            for (i, (key, value)) in fields.into_iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write_string(out, key)?;
                out.push(b':');
                write_value(out, value)?;
            }
            out.push(b'}');
        }
    }
    Ok(())
}

fn write_number(out: &mut Vec<u8>, n: &serde_json::Number) -> Result<(), CanonicalError> {
    let safe = n.as_u64().is_some_and(|v| v <= MAX_SAFE)
        || n.as_i64().is_some_and(|v| v.unsigned_abs() <= MAX_SAFE);
    if !safe {
        return Err(CanonicalError::Number(n.to_string()));
    }
    out.extend_from_slice(n.to_string().as_bytes());
    Ok(())
}

fn write_string(out: &mut Vec<u8>, s: &str) -> Result<(), CanonicalError> {
    // serde_json writes the RFC 8785 escapes: \b \t \n \f \r \" \\ and \u00xx in lower case.
    serde_json::to_writer(out, s).map_err(|e| CanonicalError::Serialize(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn canon(v: Value) -> String {
        String::from_utf8(canonical_json(&v).unwrap()).unwrap()
    }

    #[test]
    fn keys_sort_by_utf16_code_units() {
        // U+10000 is D800 DC00 in UTF-16 and so comes before U+E000, though not in UTF-8.
        let v = json!({"\u{e000}": 1, "\u{10000}": 2, "b": 3, "a": 4});
        assert_eq!(canon(v), "{\"a\":4,\"b\":3,\"\u{10000}\":2,\"\u{e000}\":1}");
    }

    #[test]
    fn escapes_are_minimal() {
        assert_eq!(
            canon(json!("\u{8}\t\n\u{c}\r\"\\\u{1f}/\u{7f}é")),
            "\"\\b\\t\\n\\f\\r\\\"\\\\\\u001f/\u{7f}é\""
        );
    }

    #[test]
    fn numbers_other_readers_would_change_are_refused() {
        assert_eq!(canon(json!(9_007_199_254_740_991u64)), "9007199254740991");
        assert!(canonical_json(&json!(9_007_199_254_740_992u64)).is_err());
        assert!(canonical_json(&json!(-9_007_199_254_740_992i64)).is_err());
        assert!(canonical_json(&json!(1.0)).is_err());
    }
}
