use std::borrow::Cow;
use std::fmt;

/// The grammar of JSON (RFC 8259). Walks over a text; what it hands out are pieces of it, and it
/// keeps nothing.
#[derive(Clone)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

/// Why a text is not JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    at: usize,
    what: &'static str,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {} of the manifest: {}", self.at, self.what)
    }
}

/// Containers that are open at one time. A manifest needs three; 128 is what most readers take.
const MAX_DEPTH: u32 = 128;

/// Which containers are open, one bit each, so that depth costs neither stack nor memory.
#[derive(Default)]
struct Open {
    objects: u128,
    depth: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Container {
    Object,
    List,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// The whole text as one value, without the white space around it.
    pub(super) fn document(mut self) -> Result<&'a str, Fault> {
        let value = self.value()?;
        self.white();
        match self.peek() {
            None => Ok(value),
            Some(_) => self.fault("something follows the document"),
        }
    }

    /// One value of any kind, whole.
    pub(super) fn value(&mut self) -> Result<&'a str, Fault> {
        self.white();
        let start = self.at;
        let mut open = Open::default();
        loop {
            self.white();
            let ended = match self.peek() {
                Some(b'{') => self.enter(&mut open, Container::Object)?,
                Some(b'[') => self.enter(&mut open, Container::List)?,
                _ => self.scalar().map(|()| true)?,
            };
            if ended && !self.follow(&mut open)? {
                return Ok(self.piece(start));
            }
        }
    }

    /// Opens a container up to its first value. Says whether it ended at once.
    fn enter(&mut self, open: &mut Open, container: Container) -> Result<bool, Fault> {
        if open.depth == MAX_DEPTH {
            return self.fault("nested too deep");
        }
        self.at += 1;
        if self.take(container.end()) {
            return Ok(true);
        }
        open.push(container);
        if container == Container::Object {
            self.key()?;
        }
        Ok(false)
    }

    /// After a value: closes what ends here. Says whether another value follows.
    fn follow(&mut self, open: &mut Open) -> Result<bool, Fault> {
        while let Some(container) = open.last() {
            if self.take(b',') {
                if container == Container::Object {
                    self.key()?;
                }
                return Ok(true);
            }
            if !self.take(container.end()) {
                return self.fault("expected a comma or the end of the container");
            }
            open.pop();
        }
        Ok(false)
    }

    /// A key and its colon; the key with its quotes and escapes.
    pub(super) fn key(&mut self) -> Result<&'a str, Fault> {
        self.white();
        let start = self.at;
        self.string()?;
        let key = self.piece(start);
        if self.take(b':') {
            return Ok(key);
        }
        self.fault("expected a colon")
    }

    /// White space, then this byte if it is there.
    pub(super) fn take(&mut self, byte: u8) -> bool {
        self.white();
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    fn scalar(&mut self) -> Result<(), Fault> {
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.word(),
        }
    }

    fn word(&mut self) -> Result<(), Fault> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        for word in ["true", "false", "null"] {
            if rest.starts_with(word) {
                self.at += word.len();
                return Ok(());
            }
        }
        self.fault("expected a value")
    }

    fn number(&mut self) -> Result<(), Fault> {
        self.step(b'-');
        if !self.step(b'0') {
            self.digits()?;
        }
        if self.step(b'.') {
            self.digits()?;
        }
        if self.step(b'e') || self.step(b'E') {
            let _sign = self.step(b'+') || self.step(b'-');
            self.digits()?;
        }
        Ok(())
    }

    /// At least one digit.
    fn digits(&mut self) -> Result<(), Fault> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at > start {
            return Ok(());
        }
        self.fault("expected a digit")
    }

    fn string(&mut self) -> Result<(), Fault> {
        if !self.step(b'"') {
            return self.fault("expected a string");
        }
        loop {
            let Some(byte) = self.peek() else {
                return self.fault("a string does not end");
            };
            if byte < b' ' {
                return self.fault("a control character in a string");
            }
            self.at += 1;
            match byte {
                b'"' => return Ok(()),
                b'\\' => drop(self.escape()?),
                _ => {}
            }
        }
    }

    /// What stands for a backslash that was just passed.
    fn escape(&mut self) -> Result<char, Fault> {
        let Some(letter) = self.peek() else {
            return self.fault("a string does not end");
        };
        self.at += 1;
        Ok(match letter {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.code_point(),
            _ => return self.fault("no such escape"),
        })
    }

    /// Four digits, or twice four for a pair of surrogates.
    fn code_point(&mut self) -> Result<char, Fault> {
        let unit = self.four_digits()?;
        let mut code = unit;
        if (0xd800..0xdc00).contains(&unit) && self.step(b'\\') && self.step(b'u') {
            let low = self.four_digits()?;
            if (0xdc00..0xe000).contains(&low) {
                code = 0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
            }
        }
        match char::from_u32(code) {
            Some(c) => Ok(c),
            None => self.fault("half a pair of surrogates"),
        }
    }

    fn four_digits(&mut self) -> Result<u32, Fault> {
        let digits = self.text.get(self.at..self.at + 4).unwrap_or_default();
        let hexadecimal = digits.bytes().all(|b| b.is_ascii_hexdigit());
        match u32::from_str_radix(digits, 16) {
            Ok(unit) if hexadecimal => {
                self.at += 4;
                Ok(unit)
            }
            _ => self.fault("expected four hexadecimal digits"),
        }
    }

    fn white(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn step(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn piece(&self, start: usize) -> &'a str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    fn fault<T>(&self, what: &'static str) -> Result<T, Fault> {
        Err(Fault { at: self.at, what })
    }
}

impl Container {
    const fn end(self) -> u8 {
        match self {
            Self::Object => b'}',
            Self::List => b']',
        }
    }
}

impl Open {
    fn push(&mut self, container: Container) {
        self.objects <<= 1;
        if container == Container::Object {
            self.objects += 1;
        }
        self.depth += 1;
    }

    fn pop(&mut self) {
        self.objects >>= 1;
        self.depth -= 1;
    }

    fn last(&self) -> Option<Container> {
        match (self.depth, self.objects & 1) {
            (0, _) => None,
            (_, 1) => Some(Container::Object),
            _ => Some(Container::List),
        }
    }
}

/// The text of a string that was found to be one, given with its quotes.
pub(super) fn unescape(quoted: &str) -> Cow<'_, str> {
    let inner = quoted.strip_prefix('"').and_then(|q| q.strip_suffix('"'));
    let inner = inner.unwrap_or_default();
    if !inner.contains('\\') {
        return Cow::Borrowed(inner);
    }
    let mut text = String::with_capacity(inner.len());
    let mut cursor = Cursor::new(inner);
    while let Some(c) = inner.get(cursor.at..).and_then(|rest| rest.chars().next()) {
        cursor.at += c.len_utf8();
        match c {
            '\\' => text.push(cursor.escape().unwrap_or(char::REPLACEMENT_CHARACTER)),
            c => text.push(c),
        }
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn accepts(text: &str) -> bool {
        Cursor::new(text).document().is_ok()
    }

    #[test]
    fn what_is_json_is_taken_and_nothing_else() {
        for good in [
            "0",
            "-0",
            "10",
            "1.5",
            "0.0",
            "1e5",
            "1E+05",
            "-1.0e-1",
            "true",
            "false",
            "null",
            "\"\"",
            "[]",
            "{}",
            " [ ] ",
            "\t{\r\n}",
            "[1,[2],{\"a\":3}]",
            "{\"a\":{},\"b\":[]}",
            " { \"a\" : [ 1 , 2 ] } ",
            "\"\u{7f}\u{2028}\"",
            r#""\ud83d\ude00""#,
            r#""\"\\\/\b\f\n\r\t\u00E9""#,
        ] {
            assert_eq!(Cursor::new(good).document(), Ok(good.trim()), "{good}");
        }
        for bad in [
            "",
            " ",
            "01",
            "-",
            "+1",
            ".5",
            "1.",
            "1.e5",
            "1e",
            "1e+",
            "0x1",
            "1_0",
            "NaN",
            "Infinity",
            "tru",
            "True",
            "nul",
            "truefalse",
            "1 2",
            "[1]]",
            "{}{}",
            "[",
            "{",
            "]",
            "[1",
            "[1,",
            "[1,]",
            "[,1]",
            "[1 2]",
            "[1}",
            "{\"a\":1]",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{,}",
            "{1:2}",
            "{\"a\" 1}",
            "{\"a\"::1}",
            "{a:1}",
            "'a'",
            "\"",
            "\"a",
            "\"\u{1f}\"",
            "\"\n\"",
            r#""\x41""#,
            r#""\u12""#,
            r#""\u12g4""#,
            r#""\u+123""#,
            r#""\"#,
            r#""\u"#,
            r#""\ud800""#,
            r#""\udc00""#,
            r#""\ud800\u0041""#,
            r#""\ud800\n""#,
            r#""\ud800\ud800""#,
            "/**/1",
            "1//",
            "\u{feff}1",
            "\u{a0}1",
            "\u{b}1",
            "\u{c}1",
        ] {
            assert!(!accepts(bad), "{bad}");
        }
    }

    #[test]
    fn depth_is_bounded_and_costs_no_stack() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(accepts(&nested(128)));
        assert!(!accepts(&nested(129)));
        assert!(!accepts(&"[".repeat(1_000_000)));
        let objects = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
        assert!(accepts(&objects(128)));
        assert!(!accepts(&objects(129)));
        // One list after another is no depth.
        assert!(accepts(&format!("[{}[]]", "[[]],".repeat(500))));
        // Which kinds are open is known at any depth.
        let mixed = |end: &str| format!("{}1{end}", "[{\"a\":".repeat(64));
        assert!(accepts(&mixed(&"}]".repeat(64))));
        assert!(!accepts(&mixed(&format!("{}]}}", "}]".repeat(63)))));
    }

    #[test]
    fn a_fault_says_where_and_what() {
        for (text, at, what) in [
            ("[1,]", 3, "expected a value"),
            ("[1 2]", 3, "expected a comma or the end of the container"),
            ("1 1", 2, "something follows the document"),
            ("{\"a\" 1}", 5, "expected a colon"),
            ("{1:2}", 1, "expected a string"),
            ("\"abc", 4, "a string does not end"),
            ("\"a\\", 3, "a string does not end"),
            ("\"a\n\"", 2, "a control character in a string"),
            ("1.x", 2, "expected a digit"),
        ] {
            let fault = Cursor::new(text).document().unwrap_err();
            assert_eq!(fault, Fault { at, what }, "{text}");
            let shown = format!("at byte {at} of the manifest: {what}");
            assert_eq!(fault.to_string(), shown);
        }
    }

    #[test]
    fn a_value_is_taken_without_what_surrounds_it() {
        let mut cursor = Cursor::new(" [1 , {\"a\":2}] ,3");
        assert_eq!(cursor.value(), Ok("[1 , {\"a\":2}]"));
        assert!(cursor.take(b','));
        assert_eq!(cursor.value(), Ok("3"));
    }

    /// Pieces that meet in many ways that are JSON, and in many that are not.
    fn texts() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            4 => "[\\[\\]{},: ]",
            2 => "[-+.eE0-9]{1,3}",
            2 => Just("\"a\":".to_owned()),
            1 => "\"[a\\\\/bfnrtu0-9]{0,6}\"",
            1 => r"\PC",
            1 => prop_oneof![Just("true"), Just("null"), Just("\\ud83d\\ude00")].prop_map(str::to_owned),
        ];
        proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<u64>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,6}".prop_map(Value::from),
            Just(Value::Null),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::btree_map(".{0,3}", inner, 0..4).prop_map(Value::from_iter),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn any_text_is_judged_as_another_parser_does(text in texts()) {
            let theirs = match serde_json::from_str::<Value>(&text) {
                Ok(_) => true,
                // A matter of values, not of grammar.
                Err(e) if e.to_string().starts_with("number out of range") => return Ok(()),
                Err(_) => false,
            };
            prop_assert_eq!(accepts(&text), theirs);
        }

        #[test]
        fn what_another_writer_writes_is_taken(value in values()) {
            prop_assert!(accepts(&value.to_string()));
            prop_assert!(accepts(&serde_json::to_string_pretty(&value).unwrap()));
        }

        #[test]
        fn strings_are_read_as_another_parser_does(
            text in "(\\\\u00[0-9a-f]{2}|\\\\[nrt/]|[a-zé😀]|\\\\ud83d\\\\ude0[0-9]){0,8}",
        ) {
            let quoted = format!("\"{text}\"");
            let theirs: String = serde_json::from_str(&quoted).unwrap();
            prop_assert_eq!(unescape(&quoted), theirs);
        }
    }
}
