//! A strict reader of one JSON document that keeps every number as it was written. Money is never
//! a float here, not even on its way to becoming an integer.

use std::collections::BTreeMap;

/// Deepest nesting. Recorded results nest five deep; a parser's stack is not the sender's choice.
const MAX_DEPTH: usize = 32;
/// Most values. Recorded results have a few hundred; each value takes up to 60 bytes of memory.
const MAX_VALUES: usize = 65_536;

/// One JSON value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Json<'a> {
    Null,
    Bool(bool),
    /// The number's own text.
    Number(&'a str),
    Text(String),
    List(Vec<Json<'a>>),
    Object(BTreeMap<String, Json<'a>>),
}

/// Why a text is not one JSON document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It ends too early.
    Truncated,
    /// At this byte stands something that is not JSON.
    Malformed(usize),
    /// A key of the object that starts at this byte stands twice.
    DuplicateKey(usize),
    /// NaN or Infinity stands at this byte.
    NotFinite(usize),
    /// Too deep, or too many values.
    TooComplex(usize),
}

impl Json<'_> {
    /// The field of an object; a null counts as absent.
    pub(crate) fn field(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Object(fields) => fields.get(name).filter(|value| **value != Json::Null),
            _ => None,
        }
    }

    /// The value's text, if it is a text.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The value as a count: a whole number without sign, fraction or exponent, at most 2^53 - 1.
    pub(crate) fn count(&self) -> Option<u64> {
        match self {
            Self::Number(text) if text.bytes().all(|b| b.is_ascii_digit()) => text
                .parse()
                .ok()
                .filter(|count| *count <= 9_007_199_254_740_991),
            _ => None,
        }
    }
}

/// Reads the first document of a text, and gives what follows it (without leading white space).
pub(crate) fn first(text: &str) -> Result<(Json<'_>, &str), Fault> {
    let mut reader = Reader {
        text,
        at: 0,
        values: 0,
    };
    reader.skip_space();
    let value = reader.value(0)?;
    reader.skip_space();
    Ok((value, &text[reader.at..]))
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    values: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// The fault of what stands here: nothing, or something else than was expected.
    fn unexpected(&self) -> Fault {
        match self.peek() {
            None => Fault::Truncated,
            Some(_) => Fault::Malformed(self.at),
        }
    }

    fn value(&mut self, depth: usize) -> Result<Json<'a>, Fault> {
        self.values += 1;
        if depth > MAX_DEPTH || self.values > MAX_VALUES {
            return Err(Fault::TooComplex(self.at));
        }
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.list(depth),
            Some(b'"') => self.string().map(Json::Text),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'n') => self.word("null", Json::Null),
            Some(b'N' | b'I') => Err(self.not_finite()),
            _ => Err(self.unexpected()),
        }
    }

    fn not_finite(&self) -> Fault {
        let rest = &self.text[self.at..];
        if rest.starts_with("NaN") || rest.starts_with("Infinity") {
            Fault::NotFinite(self.at)
        } else {
            Fault::Malformed(self.at)
        }
    }

    fn word(&mut self, word: &str, value: Json<'a>) -> Result<Json<'a>, Fault> {
        let rest = &self.text[self.at..];
        if rest.starts_with(word) {
            self.at += word.len();
            return Ok(value);
        }
        if word.starts_with(rest) {
            return Err(Fault::Truncated);
        }
        Err(Fault::Malformed(self.at))
    }

    fn object(&mut self, depth: usize) -> Result<Json<'a>, Fault> {
        let start = self.at;
        let mut fields = BTreeMap::new();
        self.at += 1;
        self.skip_space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Json::Object(fields));
        }
        loop {
            self.skip_space();
            if self.peek() != Some(b'"') {
                return Err(self.unexpected());
            }
            let key = self.string()?;
            self.skip_space();
            if self.peek() != Some(b':') {
                return Err(self.unexpected());
            }
            self.at += 1;
            self.skip_space();
            let value = self.value(depth + 1)?;
            if fields.insert(key, value).is_some() {
                return Err(Fault::DuplicateKey(start));
            }
            if self.closes(b'}')? {
                return Ok(Json::Object(fields));
            }
        }
    }

    fn list(&mut self, depth: usize) -> Result<Json<'a>, Fault> {
        let mut items = Vec::new();
        self.at += 1;
        self.skip_space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Json::List(items));
        }
        loop {
            self.skip_space();
            items.push(self.value(depth + 1)?);
            if self.closes(b']')? {
                return Ok(Json::List(items));
            }
        }
    }

    /// Reads a comma (false) or the end of the group (true).
    fn closes(&mut self, end: u8) -> Result<bool, Fault> {
        self.skip_space();
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                Ok(false)
            }
            Some(byte) if byte == end => {
                self.at += 1;
                Ok(true)
            }
            _ => Err(self.unexpected()),
        }
    }

    fn number(&mut self) -> Result<Json<'a>, Fault> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
            if self.peek() == Some(b'I') {
                return Err(self.not_finite());
            }
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        // `01`, `1_000` and `1x` are no numbers followed by something: they are no numbers.
        match self.peek() {
            Some(b) if b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'+' | b'-') => {
                Err(Fault::Malformed(self.at))
            }
            _ => Ok(Json::Number(&self.text[start..self.at])),
        }
    }

    fn digits(&mut self) -> Result<(), Fault> {
        let start = self.at;
        while self.peek().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == start {
            return Err(self.unexpected());
        }
        Ok(())
    }

    fn string(&mut self) -> Result<String, Fault> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = &self.text[self.at..];
            let plain = rest
                .bytes()
                .position(|b| b == b'"' || b == b'\\' || b < 0x20)
                .ok_or(Fault::Truncated)?;
            out.push_str(&rest[..plain]);
            self.at += plain;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => out.push(self.escaped()?),
                _ => return Err(Fault::Malformed(self.at)),
            }
        }
    }

    fn escaped(&mut self) -> Result<char, Fault> {
        self.at += 1;
        let letter = self.peek().ok_or(Fault::Truncated)?;
        let plain = match letter {
            b'"' | b'\\' | b'/' => char::from(letter),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                self.at += 1;
                return self.code_point();
            }
            _ => return Err(Fault::Malformed(self.at)),
        };
        self.at += 1;
        Ok(plain)
    }

    /// The character of `\uXXXX`, or of two of them; half of a pair is no character.
    fn code_point(&mut self) -> Result<char, Fault> {
        let start = self.at;
        let high = self.hex()?;
        let joined = match high {
            0xd800..=0xdbff => {
                for expected in [b'\\', b'u'] {
                    if self.peek() != Some(expected) {
                        return Err(self.unexpected());
                    }
                    self.at += 1;
                }
                let low = self.hex()?;
                if !(0xdc00..=0xdfff).contains(&low) {
                    return Err(Fault::Malformed(start));
                }
                0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)
            }
            other => other,
        };
        char::from_u32(joined).ok_or(Fault::Malformed(start))
    }

    fn hex(&mut self) -> Result<u32, Fault> {
        let mut value = 0;
        for _ in 0..4 {
            let digit = self.peek().ok_or(Fault::Truncated)?;
            let digit = char::from(digit)
                .to_digit(16)
                .ok_or(Fault::Malformed(self.at))?;
            value = value * 16 + digit;
            self.at += 1;
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> Option<Fault> {
        first(text).err()
    }

    #[test]
    fn numbers_keep_their_text() {
        let (value, rest) = first(r#" {"a":0.15095600000000003,"b":[1,-2e5]} x"#).unwrap();
        assert_eq!(value.field("a"), Some(&Json::Number("0.15095600000000003")));
        assert_eq!(
            value.field("b"),
            Some(&Json::List(vec![Json::Number("1"), Json::Number("-2e5")]))
        );
        assert_eq!(rest, "x");
    }

    #[test]
    fn what_is_no_json_says_where_and_why() {
        use Fault::{DuplicateKey, Malformed, NotFinite, TooComplex, Truncated};
        for (text, expected) in [
            ("", Truncated),
            (r#"{"a"#, Truncated),
            (r#"{"a":"\u12"#, Truncated),
            ("tru", Truncated),
            ("trux", Malformed(0)),
            (r#"{"a":01}"#, Malformed(6)),
            (r#"{"a":1_0}"#, Malformed(6)),
            (r#"{"a":.5}"#, Malformed(5)),
            (r#"{"a":+1}"#, Malformed(5)),
            (r#"{"a":1,}"#, Malformed(7)),
            (r#"{'a':1}"#, Malformed(1)),
            (r#"{"a":"\ud800x"}"#, Malformed(12)),
            (r#"{"a":"\udc00"}"#, Malformed(8)),
            ("{\"a\":\"\n\"}", Malformed(6)),
            (r#"{"a":NaN}"#, NotFinite(5)),
            (r#"{"a":Infinity}"#, NotFinite(5)),
            (r#"{"a":-Infinity}"#, NotFinite(6)),
            (r#"{"a":1,"\u0061":2}"#, DuplicateKey(0)),
            ("\u{feff}{}", Malformed(0)),
        ] {
            assert_eq!(fault(text), Some(expected), "{text}");
        }
        assert!(matches!(fault(&"[".repeat(5_000)), Some(TooComplex(_))));
        let many = format!("[{}0]", "0,".repeat(MAX_VALUES));
        assert!(matches!(fault(&many), Some(TooComplex(_))));
    }

    #[test]
    fn what_is_json_is_read_as_the_common_reader_reads_it() {
        for text in [
            r#"{"a":"\ud83d\ude00\n\/","b":[true,false,null,{}],"c":{"d":[]}}"#,
            r#""\"\\\b\f\r\t""#,
            "-0.0",
            "[1e+9, 0]",
        ] {
            assert!(first(text).is_ok(), "{text}");
            assert!(serde_json::from_str::<serde_json::Value>(text).is_ok());
        }
    }

    #[test]
    fn a_count_is_a_plain_whole_number() {
        for (text, expected) in [
            ("0", Some(0)),
            ("9007199254740991", Some(9_007_199_254_740_991)),
            ("9007199254740992", None),
            ("99999999999999999999999", None),
            ("1.0", None),
            ("1e3", None),
            ("-1", None),
            ("\"1\"", None),
        ] {
            assert_eq!(first(text).unwrap().0.count(), expected, "{text}");
        }
    }
}
