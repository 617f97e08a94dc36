use crate::exact::exactly;
use serde::de::{DeserializeOwned, DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;

/// Why a JSON document is not acceptable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StrictError {
    /// More bytes than the caller allows.
    TooLarge {
        /// The caller's limit in bytes.
        limit: usize,
        /// The size of the document in bytes.
        found: usize,
    },
    /// Not JSON, a duplicate key, a number that is no safe integer, nesting beyond 128, or a shape
    /// the reader does not know.
    Malformed(String),
}

impl fmt::Display for StrictError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { limit, found } => write!(f, "{found} bytes, at most {limit} allowed"),
            Self::Malformed(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for StrictError {}

/// Reads one JSON document from untrusted bytes.
///
/// Stricter than serde: size first; duplicate keys at any depth refused (compared after unescaping);
/// only integers of magnitude at most 2^53 - 1; nesting at most 128; nothing after the document.
/// Unknown fields are refused where the type says so, and a list of fields is no object.
///
/// # Errors
/// [`StrictError`] with the reason; never any content beyond key names.
pub fn parse_strict<T: DeserializeOwned>(bytes: &[u8], limit: usize) -> Result<T, StrictError> {
    read_strict(parse_strict_value(bytes, limit)?)
}

/// The second half of [`parse_strict`], for a value of [`parse_strict_value`].
///
/// # Errors
/// [`StrictError::Malformed`].
pub fn read_strict<T: DeserializeOwned>(value: Value) -> Result<T, StrictError> {
    exactly(value).map_err(|e| StrictError::Malformed(e.to_string()))
}

/// [`parse_strict`] of a document whose shape is not known yet.
///
/// # Errors
/// As [`parse_strict`].
pub fn parse_strict_value(bytes: &[u8], limit: usize) -> Result<Value, StrictError> {
    if bytes.len() > limit {
        return Err(StrictError::TooLarge {
            limit,
            found: bytes.len(),
        });
    }
    let malformed = |e: serde_json::Error| StrictError::Malformed(e.to_string());
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = Unique.deserialize(&mut reader).map_err(malformed)?;
    reader.end().map_err(malformed)?;
    Ok(value)
}

/// Builds a [`Value`] and refuses what a plain `Value` would silently merge or round.
struct Unique;

impl<'de> DeserializeSeed<'de> for Unique {
    type Value = Value;
    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Unique {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }
    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }
    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        if value > 9_007_199_254_740_991 {
            return Err(E::custom("an integer beyond 2^53-1 (write it as a string)"));
        }
        Ok(Value::Number(Number::from(value)))
    }
    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Value, E> {
        if value.unsigned_abs() > 9_007_199_254_740_991 {
            return Err(E::custom("an integer beyond 2^53-1 (write it as a string)"));
        }
        Ok(Value::Number(Number::from(value)))
    }
    fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<Value, E> {
        Err(E::custom(
            "a number that is not an integer (write it as a string)",
        ))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut out = Vec::new();
        while let Some(item) = items.next_element_seed(Unique)? {
            out.push(item);
        }
        Ok(Value::Array(out))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut out = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let value = entries.next_value_seed(Unique)?;
            if out.contains_key(&key) {
                return Err(A::Error::custom(format_args!(
                    "the key {} stands twice",
                    crate::escape(&key, 60)
                )));
            }
            out.insert(key, value);
        }
        Ok(Value::Object(out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Value, StrictError> {
        parse_strict(text.as_bytes(), 10_000)
    }

    #[test]
    fn duplicate_keys_are_found_at_any_depth_and_in_any_spelling() {
        assert!(parse(r#"{"a":1,"b":2}"#).is_ok());
        for bad in [r#"{"a":1,"a":2}"#, r#"[{"x":{"a":1,"\u0061":2}}]"#] {
            assert!(
                matches!(parse(bad), Err(StrictError::Malformed(m)) if m.contains("twice")),
                "{bad}"
            );
        }
    }

    #[test]
    fn numbers_that_readers_disagree_on_are_refused() {
        for bad in [
            "1.0",
            "1e3",
            "-0.0",
            "9007199254740992",
            "-9007199254740992",
            "1e400",
            "01",
            "NaN",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        assert!(parse("9007199254740991").is_ok());
    }

    #[test]
    fn size_depth_and_trailing_bytes_are_bounded() {
        assert!(matches!(
            parse(&" ".repeat(10_001)),
            Err(StrictError::TooLarge { .. })
        ));
        assert!(parse(&"[".repeat(5_000)).is_err());
        assert!(parse("{} {}").is_err());
        assert!(parse("\u{feff}{}").is_err());
    }
}
