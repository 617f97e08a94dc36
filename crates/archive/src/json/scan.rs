use super::MAX_SAFE;
use super::grammar::{Cursor, unescape};
use flightproof_core::Digest;
use std::borrow::Cow;

/// Walks over a text that is expected to be canonical and to have one known shape. Each step takes
/// what it names or gives up; what was given up on is never an acceptance.
pub(crate) struct Scan<'a> {
    rest: &'a str,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { rest: text }
    }

    /// Exactly this text.
    pub(crate) fn literal(&mut self, text: &str) -> Option<()> {
        self.rest = self.rest.strip_prefix(text)?;
        Some(())
    }

    /// A whole number of at most 2^53 - 1 without sign, point or leading zero.
    pub(crate) fn number(&mut self) -> Option<u64> {
        let length = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.rest.split_at_checked(length)?;
        if digits.len() > 1 && digits.starts_with('0') {
            return None;
        }
        let number = digits.parse().ok().filter(|n| *n <= MAX_SAFE)?;
        self.rest = rest;
        Some(number)
    }

    /// A string, read. Only one with escapes is copied.
    pub(crate) fn text(&mut self) -> Option<Cow<'a, str>> {
        let inner = self.rest.strip_prefix('"')?;
        let special = |byte: u8| byte == b'"' || byte == b'\\' || byte < b' ';
        let end = inner.bytes().position(special)?;
        let (text, rest) = inner.split_at_checked(end)?;
        if let Some(rest) = rest.strip_prefix('"') {
            self.rest = rest;
            return Some(Cow::Borrowed(text));
        }
        let mut cursor = Cursor::new(self.rest);
        let quoted = cursor.value().ok()?;
        self.rest = self.rest.strip_prefix(quoted)?;
        Some(unescape(quoted))
    }

    /// A string of 64 lower-case hexadecimal digits.
    pub(crate) fn digest(&mut self) -> Option<Digest> {
        self.literal("\"")?;
        let (digits, rest) = self.rest.split_at_checked(DIGEST_DIGITS)?;
        let digest = digits.parse().ok()?;
        self.rest = rest;
        self.literal("\"")?;
        Some(digest)
    }

    /// The items of a list, by a function that takes one and is told its index. `room` is set
    /// aside for them, more than `most` are not taken.
    pub(crate) fn list<T>(
        &mut self,
        room: usize,
        most: usize,
        mut item: impl FnMut(&mut Self, usize) -> Option<T>,
    ) -> Option<Vec<T>> {
        let mut items = Vec::with_capacity(room);
        self.literal("[")?;
        if self.literal("]").is_some() {
            return Some(items);
        }
        while items.len() < most {
            items.push(item(self, items.len())?);
            if self.literal("]").is_some() {
                return Some(items);
            }
            self.literal(",")?;
        }
        None
    }

    /// The end of the text.
    pub(crate) fn end(&self) -> Option<()> {
        self.rest.is_empty().then_some(())
    }
}

const DIGEST_DIGITS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_one_spelling() {
        for (text, number, rest) in [
            ("0,", 0, ","),
            ("10", 10, ""),
            ("9007199254740991x", MAX_SAFE, "x"),
        ] {
            let mut scan = Scan::new(text);
            assert_eq!((scan.number(), scan.rest), (Some(number), rest), "{text}");
        }
        for text in [
            "",
            "-0",
            "00",
            "01",
            "+1",
            "x",
            "9007199254740992",
            "99999999999999999999",
        ] {
            assert_eq!(Scan::new(text).number(), None, "{text}");
        }
    }

    #[test]
    fn strings_are_read_with_their_escapes() {
        for (text, read, rest) in [
            ("\"\",", "", ","),
            ("\"é\"", "é", ""),
            ("\"a\\\"b\"x", "a\"b", "x"),
            ("\"\\\\\"\"", "\\", "\""),
        ] {
            let mut scan = Scan::new(text);
            assert_eq!(scan.text().as_deref(), Some(read), "{text}");
            assert_eq!(scan.rest, rest, "{text}");
        }
        for text in [
            "",
            "a",
            "\"",
            "\"a",
            "\"\n\"",
            "\"\\x\"",
            "\"\\ud800\"",
            "\"\\\n\"",
        ] {
            assert_eq!(Scan::new(text).text(), None, "{text}");
        }
    }

    #[test]
    fn a_digest_has_64_digits_between_quotes() {
        let hex = Digest::of(b"").to_string();
        let mut scan = Scan {
            rest: &format!("\"{hex}\","),
        };
        assert_eq!((scan.digest(), scan.rest), (Some(Digest::of(b"")), ","));
        for bad in [
            hex.clone(),
            format!("\"{hex}"),
            format!("\"{hex}0\""),
            format!("\"{}\"", hex.to_uppercase()),
            format!("\"{}\"", &hex[1..]),
            format!("\"{}\"", "é".repeat(32)),
            format!("\"{}é\"", &hex[1..]),
        ] {
            assert_eq!(Scan::new(&bad).digest(), None, "{bad}");
        }
    }

    #[test]
    fn a_list_has_commas_between_its_items_and_no_more_of_them_than_allowed() {
        let read = |text, most| {
            let mut scan = Scan::new(text);
            let items = scan.list(0, most, |scan, index| Some((scan.number()?, index)))?;
            scan.end().map(|()| items)
        };
        assert_eq!(read("[]", 0), Some(vec![]));
        assert_eq!(read("[1]", 1), Some(vec![(1, 0)]));
        assert_eq!(read("[1,2]", 2), Some(vec![(1, 0), (2, 1)]));
        for text in [
            "[1,2,3]", "[1,]", "[,1]", "[1 2]", "[1,2", "[", "", "1]", "[1]]", "[x]",
        ] {
            assert_eq!(read(text, 2), None, "{text}");
        }
    }
}
