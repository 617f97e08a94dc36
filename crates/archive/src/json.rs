//! JSON as the manifests use it: one canonical writer, and two readers.
//!
//! [`scan`] takes canonical text only and is what an honest manifest is read with. Whatever it does
//! not take is read again by [`lenient`], which is there to find the most telling refusal (white
//! space, escapes, key order, `1e1`, a key that stands twice: the last one counts). Neither is
//! believed: what was read is written again and compared with the text, byte for byte.

mod grammar;
pub(crate) mod lenient;
pub(crate) mod scan;

use flightproof_core::{Digest, Hasher};

/// Largest integer every JSON reader keeps exactly: 2^53 - 1 (RFC 7493).
pub(crate) const MAX_SAFE: u64 = (1 << 53) - 1;

/// Where canonical text goes.
pub(crate) trait Sink {
    fn put(&mut self, text: &str);
}

impl Sink for String {
    fn put(&mut self, text: &str) {
        self.push_str(text);
    }
}

/// A text that is compared with what is written, without a second copy of it.
pub(crate) struct Comparison<'a> {
    text: &'a str,
    at: usize,
    differs: bool,
}

impl<'a> Comparison<'a> {
    pub(crate) fn with(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            differs: false,
        }
    }

    /// Where the text leaves what was written, as a byte of the text; `None` if it is the same.
    pub(crate) fn difference(&self) -> Option<usize> {
        (self.differs || self.at < self.text.len()).then_some(self.at)
    }
}

impl Sink for Comparison<'_> {
    fn put(&mut self, written: &str) {
        if self.differs {
            return;
        }
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        if rest.starts_with(written.as_bytes()) {
            self.at += written.len();
            return;
        }
        let same = rest.iter().zip(written.as_bytes());
        self.at += same
            .take_while(|(found, expected)| found == expected)
            .count();
        self.differs = true;
    }
}

/// A hash over what is written. Pieces are gathered first: hashing many small ones costs more.
pub(crate) struct Hashed {
    hasher: Hasher,
    gathered: String,
}

/// Bytes gathered before they are hashed, 8 KiB: larger gains nothing measurable.
const GATHERED_BYTES: usize = 8192;

impl Hashed {
    pub(crate) fn new() -> Self {
        Self {
            hasher: Hasher::new(),
            gathered: String::with_capacity(GATHERED_BYTES),
        }
    }

    pub(crate) fn finish(mut self) -> Digest {
        self.hasher.update(self.gathered.as_bytes());
        self.hasher.finish()
    }
}

impl Sink for Hashed {
    fn put(&mut self, text: &str) {
        if self.gathered.len() + text.len() > GATHERED_BYTES {
            self.hasher.update(self.gathered.as_bytes());
            self.gathered.clear();
        }
        if text.len() > GATHERED_BYTES {
            self.hasher.update(text.as_bytes());
        } else {
            self.gathered.push_str(text);
        }
    }
}

/// Writes one object, fields in the order of the calls.
pub(crate) struct ObjectWriter<'a, S> {
    out: &'a mut S,
    before: &'static str,
}

impl<'a, S: Sink> ObjectWriter<'a, S> {
    pub(crate) fn open(out: &'a mut S) -> Self {
        Self { out, before: "{\"" }
    }

    /// The key, which needs no escapes; the value is to be appended to what is returned.
    pub(crate) fn key(&mut self, key: &'static str) -> &mut S {
        self.out.put(self.before);
        self.before = ",\"";
        self.out.put(key);
        self.out.put("\":");
        self.out
    }

    pub(crate) fn text(&mut self, key: &'static str, value: &str) -> &mut Self {
        write_text(self.key(key), value);
        self
    }

    pub(crate) fn digest(&mut self, key: &'static str, value: &Digest) -> &mut Self {
        let out = self.key(key);
        out.put("\"");
        out.put(std::str::from_utf8(&value.hex()).unwrap_or_default());
        out.put("\"");
        self
    }

    pub(crate) fn number(&mut self, key: &'static str, value: u64) -> &mut Self {
        write_number(self.key(key), value);
        self
    }

    pub(crate) fn close(&mut self) {
        self.out.put("}");
    }
}

/// Writes a list, one call per item.
pub(crate) fn write_list<S: Sink, T>(
    out: &mut S,
    items: impl IntoIterator<Item = T>,
    mut write_item: impl FnMut(&mut S, T),
) {
    out.put("[");
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.put(",");
        }
        write_item(out, item);
    }
    out.put("]");
}

/// Decimal digits of the largest number there is.
const MAX_DIGITS: usize = 20;

fn write_number(out: &mut impl Sink, value: u64) {
    let mut digits = [b'0'; MAX_DIGITS];
    let mut rest = value;
    let mut length = 0;
    for digit in digits.iter_mut().rev() {
        // Below ten, so it fits.
        *digit += u8::try_from(rest % 10).unwrap_or_default();
        rest /= 10;
        length += 1;
        if rest == 0 {
            break;
        }
    }
    let written = digits.get(MAX_DIGITS - length..).unwrap_or_default();
    out.put(std::str::from_utf8(written).unwrap_or_default());
}

/// The fewest escapes, as RFC 8785 and `JSON.stringify` have them.
fn write_text(out: &mut impl Sink, text: &str) {
    out.put("\"");
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte >= b' ' && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.put(text.get(plain..at).unwrap_or_default());
        write_escape(out, byte);
        plain = at + 1;
    }
    out.put(text.get(plain..).unwrap_or_default());
    out.put("\"");
}

fn write_escape(out: &mut impl Sink, byte: u8) {
    match byte {
        b'"' => out.put("\\\""),
        b'\\' => out.put("\\\\"),
        0x08 => out.put("\\b"),
        b'\t' => out.put("\\t"),
        b'\n' => out.put("\\n"),
        0x0c => out.put("\\f"),
        b'\r' => out.put("\\r"),
        control => out.put(&format!("\\u{control:04x}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_comparison_says_where_two_texts_part() {
        for (text, pieces, difference) in [
            ("abc", &["a", "bc"][..], None),
            ("", &[], None),
            ("abc", &["ab"], Some(2)),
            ("ab", &["abc"], Some(2)),
            ("ab", &["ab", "c"], Some(2)),
            ("abc", &["a", "x", "c"], Some(1)),
            ("abc", &["ax", "bc"], Some(1)),
            // What is right again after a fault does not heal it.
            ("abc", &["x", "abc"], Some(0)),
        ] {
            let mut comparison = Comparison::with(text);
            pieces.iter().for_each(|piece| comparison.put(piece));
            assert_eq!(comparison.difference(), difference, "{text} {pieces:?}");
        }
    }

    #[test]
    fn pieces_of_any_length_hash_as_the_whole() {
        for lengths in [
            &[0usize, 1][..],
            &[GATHERED_BYTES, 1],
            &[1, GATHERED_BYTES, 1],
            &[GATHERED_BYTES - 1, 1, 1],
            &[5, GATHERED_BYTES + 1, 5],
            &[GATHERED_BYTES + 1, GATHERED_BYTES + 1],
        ] {
            let mut hashed = Hashed::new();
            let mut whole = String::new();
            for (index, length) in lengths.iter().enumerate() {
                let piece = index.to_string().repeat(*length);
                hashed.put(&piece);
                whole.push_str(&piece);
                assert!(hashed.gathered.capacity() <= GATHERED_BYTES);
            }
            assert_eq!(hashed.finish(), Digest::of(whole.as_bytes()), "{lengths:?}");
        }
    }

    #[test]
    fn numbers_have_no_leading_zero_and_any_length() {
        for number in [0, 1, 9, 10, 100, 1_000_000, MAX_SAFE, u64::MAX] {
            let mut out = String::new();
            write_number(&mut out, number);
            assert_eq!(out, number.to_string());
        }
    }

    #[test]
    fn an_object_is_written_in_the_order_of_the_calls() {
        let mut out = String::new();
        let digest = Digest::of(b"");
        let mut object = ObjectWriter::open(&mut out);
        object.text("b", "x\"").number("a", 7).digest("c", &digest);
        write_list(object.key("d"), [1, 2], |out, n| {
            ObjectWriter::open(out).number("n", n).close();
        });
        write_list(object.key("e"), [0u8; 0], |out, _| out.put("?"));
        object.close();
        assert_eq!(
            out,
            format!(r#"{{"b":"x\"","a":7,"c":"{digest}","d":[{{"n":1}},{{"n":2}}],"e":[]}}"#)
        );
    }

    proptest! {
        #[test]
        fn text_is_written_as_the_reference_writer_does(text in ".{0,40}|[\\x00-\\x7f]{0,40}") {
            let mut out = String::new();
            write_text(&mut out, &text);
            prop_assert_eq!(out, serde_json::to_string(&text).unwrap());
        }
    }
}
