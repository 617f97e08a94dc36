//! Where the lines of a Rust text start: in code, in a comment, or inside a string.
//!
//! Total over any bytes: a text that is no Rust gets some answer, never a failure. It decides
//! nothing about safety by itself; the parser's own lexer does that in [`crate::tokens`].

use crate::blocks::{Block, Blocks};
use flightproof_core::Digest;

/// The state the lexer is in where a line starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum LineStart {
    /// Ordinary code.
    Code,
    /// A block comment, this many levels deep.
    Comment(u32),
    /// A string with escapes.
    Text,
    /// A raw string closed by a quote and this many `#`.
    Raw(usize),
}

/// One line and what stands on it.
#[derive(Debug, Clone)]
pub(crate) struct ScannedLine<'a> {
    /// Its bytes, the line end included.
    pub(crate) bytes: &'a [u8],
    /// Where it starts.
    pub(crate) start: LineStart,
    /// The innermost bracket that is open where it starts.
    pub(crate) block: usize,
    /// Attributes of what it goes on with, if there are any.
    pub(crate) under: Option<Digest>,
    /// Whether anything but white space and comments is on it.
    pub(crate) has_code: bool,
    /// Whether a name or literal is on it that is no keyword and part of no attribute or import:
    /// something that may have a mutant.
    pub(crate) says: bool,
    /// Whether anything is on it beside attributes, imports and aliases.
    pub(crate) acts: bool,
    /// Its tokens, documentation included: lines with the same ones differ in their looks only.
    pub(crate) tokens: Vec<u8>,
}

/// The lines of a text and the brackets they stand in.
pub(crate) struct Scanned<'a> {
    pub(crate) lines: Vec<ScannedLine<'a>>,
    pub(crate) blocks: Vec<Block>,
}

/// Every line of a text.
pub(crate) fn scan(text: &[u8]) -> Scanned<'_> {
    let mut state = LineStart::Code;
    let mut lines = Vec::new();
    let mut blocks = Blocks::new();
    let shebang = is_shebang(text);
    for bytes in text.split_inclusive(|byte| *byte == b'\n') {
        let number = lines.len();
        blocks.begin_line(number);
        let mut line = ScannedLine {
            bytes,
            start: state,
            block: blocks.innermost(),
            under: blocks.attributes(),
            has_code: false,
            says: false,
            acts: false,
            tokens: Vec::new(),
        };
        if !(number == 0 && shebang) {
            Line {
                rest: bytes,
                state: &mut state,
                blocks: &mut blocks,
                line: &mut line,
            }
            .read();
        }
        lines.push(line);
    }
    Scanned {
        lines,
        blocks: blocks.all,
    }
}

/// Whether a text begins with a line that the compiler skips: `#!/bin/sh` is skipped, `#![attribute]`
/// is not, whatever white space and comments, of any number of lines, stand before its bracket.
pub(crate) fn is_shebang(text: &[u8]) -> bool {
    let Some(mut rest) = text.strip_prefix(b"#!") else {
        return false;
    };
    loop {
        rest = rest.trim_ascii_start();
        let unseen = UNSEEN
            .iter()
            .find_map(|mark| rest.strip_prefix(mark.as_bytes()));
        rest = match (unseen, rest) {
            (Some(after), _) => after,
            (None, [b'\x0b', after @ ..]) => after,
            // Documentation is no comment, and the compiler ends its look there.
            (None, [b'/', b'/', b'/' | b'!', ..] | [b'/', b'*', b'*' | b'!', ..])
                if !rest.starts_with(b"/**/")
                    && !rest.starts_with(b"////")
                    && !rest.starts_with(b"/***") =>
            {
                return true;
            }
            (None, [b'/', b'/', ..]) => {
                let end = rest.iter().position(|byte| *byte == b'\n');
                rest.get(end.unwrap_or(rest.len())..).unwrap_or_default()
            }
            (None, [b'/', b'*', ..]) => after_block(rest),
            (None, _) => return rest.first() != Some(&b'['),
        };
    }
}

/// White space beyond ASCII, as the compiler sees it.
const UNSEEN: &[&str] = &["\u{85}", "\u{200e}", "\u{200f}", "\u{2028}", "\u{2029}"];

/// What follows a block comment, others in it included.
fn after_block(text: &[u8]) -> &[u8] {
    let (mut depth, mut rest) = (0_usize, text);
    loop {
        rest = match rest {
            [b'/', b'*', after @ ..] => {
                depth += 1;
                after
            }
            [b'*', b'/', after @ ..] => {
                depth -= 1;
                if depth == 0 {
                    return after;
                }
                after
            }
            [_, after @ ..] => after,
            [] => return rest,
        };
    }
}

struct Line<'a, 's> {
    rest: &'a [u8],
    state: &'s mut LineStart,
    blocks: &'s mut Blocks,
    line: &'s mut ScannedLine<'a>,
}

/// Words that carry no mutant by themselves.
const KEYWORDS: &[&[u8]] = &[
    b"let", b"mut", b"ref", b"if", b"else", b"loop", b"match", b"while", b"for", b"in", b"move",
    b"unsafe", b"async", b"const", b"_", b"as", b"pub", b"crate", b"self",
];

/// Operators of several characters, the longest first.
const OPERATORS: &[&[u8]] = &[
    b"<<=", b">>=", b"...", b"..=", b"&&", b"||", b"==", b"!=", b"<=", b">=", b"->", b"=>", b"::",
    b"..", b"+=", b"-=", b"*=", b"/=", b"%=", b"^=", b"&=", b"|=", b"<<", b">>",
];

impl Line<'_, '_> {
    fn read(mut self) {
        while let Some(&first) = self.rest.first() {
            let used = match *self.state {
                LineStart::Code => self.code(first),
                LineStart::Comment(depth) => self.comment(depth),
                LineStart::Text => self.text(first),
                LineStart::Raw(hashes) => self.raw(hashes, first),
            };
            self.rest = self.rest.get(used..).unwrap_or_default();
        }
    }

    /// Writes a new token down.
    fn token(&mut self, length: usize) -> String {
        let token = self.rest.get(..length).unwrap_or(self.rest);
        self.line.tokens.push(SEPARATOR);
        self.line.tokens.extend_from_slice(token);
        String::from_utf8_lossy(token).into_owned()
    }

    /// Goes on with the token before. A line end is one, whatever its bytes.
    fn more(&mut self, length: usize) -> usize {
        let part = self.rest.get(..length).unwrap_or(self.rest);
        if !(part == b"\r" && self.rest.get(1) == Some(&b'\n')) {
            self.line.tokens.extend_from_slice(part);
        }
        length
    }

    /// Each reader takes one piece off the line and says how many bytes it was.
    fn code(&mut self, first: u8) -> usize {
        if self.rest.starts_with(b"//") {
            let said = self.rest.starts_with(b"//!")
                || self.rest.starts_with(b"///") && !self.rest.starts_with(b"////");
            if said {
                self.token(self.rest.trim_ascii_end().len());
            }
            return self.rest.len();
        }
        if self.rest.starts_with(b"/*") {
            *self.state = LineStart::Comment(1);
            self.token(2);
            return 2;
        }
        if first.is_ascii_whitespace() {
            return 1;
        }
        self.line.has_code = true;
        match first {
            b'(' | b'[' | b'{' => {
                self.token(1);
                self.brace(first);
                self.blocks.open(char::from(first));
                1
            }
            b')' | b']' | b'}' => {
                self.token(1);
                self.brace(first);
                self.blocks.close();
                1
            }
            b'"' => {
                self.literal(1);
                *self.state = LineStart::Text;
                1
            }
            b'\'' => {
                let length = quote(self.rest);
                self.literal(length);
                length
            }
            first if is_name(first) => self.name(),
            _ => {
                let known = OPERATORS.iter().find(|o| self.rest.starts_with(o));
                let length = known.map_or(1, |operator| operator.len());
                let mark = self.token(length);
                self.blocks.mark(&mark);
                length
            }
        }
    }

    fn brace(&mut self, bracket: u8) {
        let quiet = self.blocks.in_attribute() || self.blocks.only_declares();
        self.line.acts |= matches!(bracket, b'{' | b'}') && !quiet;
    }

    fn literal(&mut self, length: usize) {
        let text = self.token(length);
        self.line.says |= !self.blocks.in_attribute();
        self.line.acts |= self.line.says;
        self.blocks.word(&text);
    }

    /// A name, a number, or the prefix of a raw string.
    fn name(&mut self) -> usize {
        let length = name_length(self.rest);
        let (name, after) = self.rest.split_at(length);
        let hashes = after.iter().take_while(|byte| **byte == b'#').count();
        if matches!(name, b"r" | b"br" | b"cr") && after.get(hashes) == Some(&b'"') {
            *self.state = LineStart::Raw(hashes);
            self.literal(length + hashes + 1);
            return length + hashes + 1;
        }
        let word = self.token(length);
        self.blocks.word(&word);
        let quiet = self.blocks.in_attribute() || self.blocks.only_declares();
        self.line.says |= !quiet && !KEYWORDS.contains(&name);
        self.line.acts |= !quiet && name != b"pub";
        length
    }

    fn comment(&mut self, depth: u32) -> usize {
        if self.rest.starts_with(b"/*") {
            *self.state = LineStart::Comment(depth.saturating_add(1));
            return self.more(2);
        }
        if self.rest.starts_with(b"*/") {
            *self.state = match depth {
                0 | 1 => LineStart::Code,
                _ => LineStart::Comment(depth - 1),
            };
            return self.more(2);
        }
        self.more(1)
    }

    fn text(&mut self, first: u8) -> usize {
        self.line.has_code = true;
        match first {
            b'"' => {
                *self.state = LineStart::Code;
                self.more(1)
            }
            b'\\' if !matches!(self.rest.get(1), Some(b'\n' | b'\r')) => self.more(2),
            _ => self.more(1),
        }
    }

    fn raw(&mut self, hashes: usize, first: u8) -> usize {
        self.line.has_code = true;
        let after = self.rest.get(1..).unwrap_or_default();
        let closes =
            first == b'"' && after.iter().take(hashes).filter(|b| **b == b'#').count() == hashes;
        if !closes {
            return self.more(1);
        }
        *self.state = LineStart::Code;
        self.more(1 + hashes)
    }
}

/// Between tokens. No token holds it: it is no character of a source text.
const SEPARATOR: u8 = 0x1f;

/// A character literal as a whole, or the quote and name of a lifetime.
fn quote(rest: &[u8]) -> usize {
    let after = rest.get(1..).unwrap_or_default();
    if after.first() == Some(&b'\\') {
        let body = after.get(2..).unwrap_or_default();
        let close = body.iter().position(|byte| *byte == b'\'');
        return close.map_or(rest.len(), |at| 3 + at + 1);
    }
    let one = character_length(after);
    if after.get(one) == Some(&b'\'') {
        return 1 + one + 1;
    }
    1 + name_length(after)
}

fn character_length(text: &[u8]) -> usize {
    let continuation = |byte: &&u8| **byte & 0xc0 == 0x80;
    1 + text
        .get(1..)
        .unwrap_or_default()
        .iter()
        .take_while(continuation)
        .count()
}

fn name_length(text: &[u8]) -> usize {
    text.iter().take_while(|byte| is_name(**byte)).count()
}

/// Outside ASCII everything counts as part of a name: none of it starts a string or a comment.
fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(text: &str) -> Vec<LineStart> {
        scan(text.as_bytes())
            .lines
            .iter()
            .map(|line| line.start)
            .collect()
    }

    #[test]
    fn the_state_at_each_line_start_is_the_compilers() {
        use LineStart::{Code, Comment, Raw, Text};
        for (text, last) in [
            ("let a = 1;\nx", Code),
            ("/* a\nx", Comment(1)),
            ("/* /* a */\nx", Comment(1)),
            ("/* /* a */ */\nx", Code),
            ("// /*\nx", Code),
            ("\"/*\nx", Text),
            ("\"a\\\"\nx", Text),
            ("\"a\\\\\"\nx", Code),
            ("\"a\\\nx", Text),
            ("r#\"a\"\nx", Raw(1)),
            ("br##\"a\"#\nx", Raw(2)),
            ("r\"\\\"\nx", Code),
            ("r#type\nx", Code),
            ("bar\"a\nx", Text),
            ("'\"'\nx", Code),
            ("b'\\''\nx", Code),
            ("'\\\\'\nx", Code),
            ("'é'\nx", Code),
            ("fn f<'a>(x: &'a str) { \"\nx", Text),
            ("'a: loop { \"\nx", Text),
            ("'\\u{1f600}' \"\nx", Text),
            ("#!/bin/sh '\" /*\nx", Code),
        ] {
            assert_eq!(starts(text).last(), Some(&last), "{text:?}");
        }
    }

    #[test]
    fn only_comments_and_white_space_are_without_code() {
        let text = b"  \n// a\n/* b\nc */\n/* d */ e\n\"\n\n\"\n#![x]\n";
        let code: Vec<bool> = scan(text).lines.iter().map(|line| line.has_code).collect();
        assert_eq!(
            code,
            [false, false, false, false, true, true, true, true, true]
        );
    }
}
