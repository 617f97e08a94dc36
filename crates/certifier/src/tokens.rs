//! The one way a stranger's Rust text reaches a parser: bounded in size, free of characters that
//! show a reader something else than the compiler sees, and too shallow to exhaust the stack.
//!
//! `syn` descends once per nested construct, and so does dropping or visiting what it built. Two
//! bounds keep that finite. Delimiters nest at most [`MAX_DELIMITER_DEPTH`] levels. And because
//! constructs nest without delimiters too (`!!!!x`, `A<A<A<…`, `if … else if …`, `x.a().b()`,
//! `a+a+a`, `|| || ||`), no token may have more than [`MAX_CHAIN`] tokens before it that could
//! still be open around it. Lexing and dropping a token stream is iterative in `proc_macro2`
//! (`parse.rs` keeps its own stack, `fallback.rs` implements `Drop` with one), so the lexer may see
//! the text before the bounds are known.

use std::str::FromStr;

use flightproof_core::{RelPath, escape};
use proc_macro2::{Delimiter, Spacing, Span, TokenStream, TokenTree};

use crate::{CertifierCode, CertifierError};

/// Largest Rust file in bytes. The largest hand-written files of the field are about half of it.
pub const MAX_SOURCE_BYTES: usize = 512 * 1024;

/// Deepest nesting of `(`, `[` and `{`. Formatted code of 128 levels would start in column 512.
pub const MAX_DELIMITER_DEPTH: usize = 128;

/// Most tokens that can be open around one token. No file of some 4,500 in published crates comes
/// near it. In an unoptimised build the worst construct took 18 KiB of stack a token, 72 MiB in all.
pub const MAX_CHAIN: usize = 4_000;

/// Stack of the reading thread in bytes. Only the touched part of it is ever real memory.
const STACK_BYTES: usize = 256 * 1024 * 1024;

/// Parses a Rust file and hands it to `read`, all on a thread whose stack is large enough.
///
/// The tree is not `Send`, so what is needed of it is taken out by `read`, and it is dropped there.
/// Byte ranges and lines of its spans are those of `source`.
///
/// # Errors
/// `SOURCE_TOO_LARGE`, `SOURCE_BIDI`, `SOURCE_TOO_DEEP`, or `SOURCE_UNREADABLE` for a text that is
/// no UTF-8 or no Rust.
pub fn with_parsed<T: Send>(
    path: &RelPath,
    source: &[u8],
    read: impl FnOnce(&syn::File) -> T + Send,
) -> Result<T, CertifierError> {
    with_tokens(path, source, |tokens| {
        let file: syn::File = syn::parse2(tokens)
            .map_err(|error| unreadable(path, error.span(), &error.to_string()))?;
        Ok(read(&file))
    })?
}

/// Lexes a Rust file and hands its tokens to `read`, under the same bounds and on such a thread.
///
/// # Errors
/// As [`with_parsed`], but a text need only be a sequence of tokens.
pub fn with_tokens<T: Send>(
    path: &RelPath,
    source: &[u8],
    read: impl FnOnce(TokenStream) -> T + Send,
) -> Result<T, CertifierError> {
    let text = honest_text(path, source)?;
    std::thread::scope(|scope| {
        let reader = std::thread::Builder::new().stack_size(STACK_BYTES);
        let running = reader.spawn_scoped(scope, || {
            let tokens = TokenStream::from_str(text)
                .map_err(|error| unreadable(path, error.span(), "is no sequence of Rust tokens"))?;
            refuse_depth(path, tokens.clone())?;
            Ok(read(tokens))
        });
        match running.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(answer)) => answer,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(error) => Err(CertifierCode::SourceUnreadable.refuse(format_args!(
                "{}: no thread to read it on: {error}",
                shown(path)
            ))),
        }
    })
}

/// Size, encoding and characters: what can be said before any lexer runs.
pub(crate) fn honest_text<'a>(path: &RelPath, source: &'a [u8]) -> Result<&'a str, CertifierError> {
    if source.len() > MAX_SOURCE_BYTES {
        return Err(CertifierCode::SourceTooLarge.refuse(format_args!(
            "{}: {} bytes, at most {MAX_SOURCE_BYTES}",
            shown(path),
            source.len()
        )));
    }
    let text = std::str::from_utf8(source).map_err(|error| {
        CertifierCode::SourceUnreadable.refuse(format_args!(
            "{}: not UTF-8 at byte {}",
            shown(path),
            error.valid_up_to()
        ))
    })?;
    match deceptive_character(text) {
        None => Ok(text),
        Some((line, found)) => Err(CertifierCode::SourceBidi.refuse(format_args!(
            "{}:{line}: U+{:04X}",
            shown(path),
            u32::from(found)
        ))),
    }
}

/// The first character that is invisible, reorders its neighbours or moves the cursor.
fn deceptive_character(text: &str) -> Option<(usize, char)> {
    text.split('\n').enumerate().find_map(|(index, line)| {
        // "\r\n" is a line end; "\r" anywhere else lets a terminal overwrite the line.
        let line = line.strip_suffix('\r').unwrap_or(line);
        line.chars()
            .find(|c| is_deceptive(*c))
            .map(|c| (index + 1, c))
    })
}

fn is_deceptive(c: char) -> bool {
    let invisible = matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}');
    invisible || (c.is_control() && c != '\t')
}

/// One group of tokens on the way down.
struct Level {
    rest: proc_macro2::token_stream::IntoIter,
    /// Tokens that can be open around this group.
    around: usize,
    /// Tokens since the last one that ends every construct before it.
    run: usize,
    /// `<` without its `>`, and `|` that open a closure: a comma does not end what these opened.
    angles: usize,
    closures: usize,
    before: Before,
}

/// What the token before was, as far as it matters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// Nothing, or an operator after which an operand is due.
    Operator,
    /// `-` or `=` directly followed by another operator character: `->`, `=>`.
    ArrowShaft,
    /// The end of an operand.
    Operand,
    /// `{ … }`: the end of an operand or of a whole statement or item.
    Block,
}

impl Level {
    fn new(group: TokenStream, around: usize) -> Self {
        let rest = group.into_iter();
        Self {
            rest,
            around,
            run: 0,
            angles: 0,
            closures: 0,
            before: Before::Operator,
        }
    }

    fn open(&self) -> usize {
        self.around + self.run + self.angles + self.closures
    }

    /// Accounts for one token.
    fn take(&mut self, token: &TokenTree) {
        self.run += 1;
        self.before = match token {
            TokenTree::Punct(punct) => self.take_operator(punct.as_char(), punct.spacing()),
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Before::Block,
            TokenTree::Group(_) => Before::Operand,
            TokenTree::Ident(_) | TokenTree::Literal(_) => {
                self.start_after_block(token);
                self.operand_or_keyword(token)
            }
        };
    }

    /// After `{ … }` a name or a literal starts a new statement, item or match arm, except for the
    /// words that carry the construct on: `if … {} else`, `match … {} as`, `for S {} in`.
    fn start_after_block(&mut self, token: &TokenTree) {
        let carries_on = matches!(token.to_string().as_str(), "else" | "as" | "in");
        if self.before == Before::Block && !carries_on {
            (self.run, self.angles, self.closures) = (1, 0, 0);
        }
    }

    /// A `|` after `return` or `move` opens a closure, after another name it is an operator.
    fn operand_or_keyword(&self, token: &TokenTree) -> Before {
        match token.to_string().as_str() {
            "return" | "break" | "move" | "in" | "if" | "while" | "match" | "else" | "async" => {
                Before::Operator
            }
            _ => Before::Operand,
        }
    }

    fn take_operator(&mut self, operator: char, spacing: Spacing) -> Before {
        match operator {
            ';' => (self.run, self.angles, self.closures) = (0, 0, 0),
            ',' => self.run = 0,
            '#' | '\'' if self.before == Before::Block => {
                (self.run, self.angles, self.closures) = (1, 0, 0);
            }
            '<' => self.angles += 1,
            '>' if self.before != Before::ArrowShaft => self.angles = self.angles.saturating_sub(1),
            '|' if self.before == Before::Operator => self.closures += 1,
            _ => {}
        }
        match (operator, spacing) {
            ('-' | '=', Spacing::Joint) => Before::ArrowShaft,
            _ => Before::Operator,
        }
    }
}

/// Walks the groups with a stack of its own.
fn refuse_depth(path: &RelPath, tokens: TokenStream) -> Result<(), CertifierError> {
    let mut levels = vec![Level::new(tokens, 0)];
    while let Some(level) = levels.last_mut() {
        let Some(token) = level.rest.next() else {
            levels.pop();
            continue;
        };
        level.take(&token);
        let open = level.open();
        if open > MAX_CHAIN {
            return Err(too_deep(path, &token, "tokens in one chain", MAX_CHAIN));
        }
        if let TokenTree::Group(group) = &token {
            if levels.len() > MAX_DELIMITER_DEPTH {
                return Err(too_deep(
                    path,
                    &token,
                    "levels of delimiters",
                    MAX_DELIMITER_DEPTH,
                ));
            }
            levels.push(Level::new(group.stream(), open));
        }
    }
    Ok(())
}

fn too_deep(path: &RelPath, token: &TokenTree, what: &str, most: usize) -> CertifierError {
    let line = token.span().start().line;
    CertifierCode::SourceTooDeep.refuse(format_args!(
        "{}:{line}: more than {most} {what}",
        shown(path)
    ))
}

fn unreadable(path: &RelPath, place: Span, reason: &str) -> CertifierError {
    CertifierCode::SourceUnreadable.refuse(format_args!(
        "{}:{}: {}",
        shown(path),
        place.start().line,
        escape(reason, 200)
    ))
}

fn shown(path: &RelPath) -> String {
    escape(path.as_str(), 200)
}

#[cfg(test)]
mod tests {
    use super::*;
    use CertifierCode::{SourceBidi, SourceTooDeep, SourceTooLarge, SourceUnreadable};

    fn parse(source: &[u8]) -> Result<usize, CertifierCode> {
        let path = RelPath::new("src/lib.rs").unwrap();
        with_parsed(&path, source, |file| file.items.len()).map_err(|refused| refused.code)
    }

    fn body(expression: &str) -> String {
        format!("fn f() {{ let x = {expression}; }}")
    }

    /// Constructs that nest: head, repeated part, innermost part, tail of each repetition.
    const NESTS: &[(&str, &str, &str, &str)] = &[
        ("parentheses", "(", "x", ")"),
        ("array", "[", "x", "]"),
        ("block", "{", "x", "}"),
        ("generics", "x as A<", "B", ">"),
        ("generic list", "x as A<B, ", "B", ">"),
        ("turbofish", "A::<", "B", ">::c()"),
        ("not", "!", "x", ""),
        ("minus", "-", "x", ""),
        ("reference", "&", "x", ""),
        ("deref", "*", "x", ""),
        ("else if", "if a {} else ", "{}", ""),
        ("method chain", "", "x", ".a()"),
        ("field chain", "", "x", ".a"),
        ("call chain", "", "x", "()"),
        ("index chain", "", "x", "[0]"),
        ("try chain", "", "x", "?"),
        ("cast chain", "", "x", " as u8"),
        ("sum", "a + ", "x", ""),
        ("or", "a || ", "x", ""),
        ("assignment", "a = ", "x", ""),
        ("range", "a.. ", "x", ""),
        ("closure", "|| ", "x", ""),
        ("closure with a comma", "|a,| ", "x", ""),
        ("closure with commas", "move |a, b| ", "x", ""),
        ("return", "return ", "x", ""),
        ("for over a struct pattern", "for S{} in ", "x", " {}"),
        ("pointer type", "x as *const ", "B", ""),
        ("reference type", "x as &", "B", ""),
        ("function type", "x as fn() -> ", "B", ""),
        ("function type list", "x as fn(u8) -> A<B, ", "B", ">"),
        ("trait object", "x as A<dyn for<'a, 'b> F<", "B", ">>"),
        ("struct sum", "S {} + ", "x", ""),
        ("await chain", "", "async {}", ".await"),
        ("match", "match ", "x", " {}"),
        ("label", "'a: loop { ", "x", "}"),
        ("macro arguments", "m!(", "x", ")"),
    ];

    fn nested(part: &(&str, &str, &str, &str), times: usize) -> String {
        let (_, head, inner, tail) = *part;
        body(&format!(
            "{}{inner}{}",
            head.repeat(times),
            tail.repeat(times)
        ))
    }

    #[test]
    fn a_construct_nested_without_end_is_refused_and_a_little_nesting_is_not() {
        for part in NESTS {
            let attack = nested(part, MAX_CHAIN + 500);
            assert_eq!(parse(attack.as_bytes()), Err(SourceTooDeep), "{}", part.0);
            let answer = parse(nested(part, 2).as_bytes());
            assert!(
                matches!(answer, Ok(1) | Err(SourceUnreadable)),
                "{}: {answer:?}",
                part.0
            );
        }
    }

    /// The bound is safe only if the deepest text it lets through does not exhaust the stack.
    #[test]
    fn the_deepest_accepted_text_is_parsed_and_dropped_within_the_stack() {
        for part in NESTS {
            let mut times = MAX_CHAIN;
            let mut answer = Err(SourceTooDeep);
            while answer == Err(SourceTooDeep) {
                times = times * 4 / 5;
                answer = parse(nested(part, times).as_bytes());
            }
            assert!(times >= 100, "{}: only {times}", part.0);
        }
    }

    #[test]
    fn nesting_in_types_patterns_and_items_is_refused_too() {
        for (name, attack) in [
            (
                "generic item",
                format!("type T = {}u8{};", "A<".repeat(8_000), ">".repeat(8_000)),
            ),
            (
                "pattern",
                format!("fn f() {{ let {}x = y; }}", "&".repeat(8_000)),
            ),
            (
                "modules",
                format!("{}{}", "mod a {".repeat(3_000), "}".repeat(3_000)),
            ),
            (
                "use tree",
                format!("use {}b{};", "a::{".repeat(3_000), "}".repeat(3_000)),
            ),
            ("path", format!("use {}b;", "a::".repeat(8_000))),
            (
                "bounds",
                format!("fn f<T: {}>() {{}}", "A + ".repeat(8_000)),
            ),
            (
                "attribute",
                format!(
                    "#[a({}x{})] fn f() {{}}",
                    "(".repeat(3_000),
                    ")".repeat(3_000)
                ),
            ),
            (
                "alternatives",
                format!("fn f() {{ match x {{ {}a => 1 }} }}", "a | ".repeat(8_000)),
            ),
        ] {
            assert_eq!(parse(attack.as_bytes()), Err(SourceTooDeep), "{name}");
        }
    }

    #[test]
    fn long_but_flat_files_are_read() {
        for (name, source, items) in [
            (
                "items",
                "fn f(a: u8) -> u8 { a + 1 }\n".repeat(4_000),
                4_000,
            ),
            ("constants", "const A: u8 = 1;\n".repeat(5_000), 5_000),
            (
                "table",
                format!("const T: &[u32] = &[{}];", "0x1234, ".repeat(10_000)),
                1,
            ),
            (
                "arms",
                format!(
                    "fn f() {{ match x {{ {} _ => {{}} }} }}",
                    "1 => { y } ".repeat(5_000)
                ),
                1,
            ),
            (
                "guards",
                format!("fn f() {{ {} }}", "if a < b { c() } ".repeat(5_000)),
                1,
            ),
            (
                "comment",
                format!("{}{}fn f() {{}}", "/*".repeat(8_000), "*/".repeat(8_000)),
                1,
            ),
            (
                "string",
                format!("const S: &str = \"{}\";", "(".repeat(50_000)),
                1,
            ),
        ] {
            assert_eq!(parse(source.as_bytes()), Ok(items), "{name}");
        }
    }

    #[test]
    fn a_text_that_shows_something_else_than_the_compiler_sees_is_refused() {
        for hostile in [
            "// \u{202e}",
            "const A: &str = \"\u{2066}\";",
            "// a\u{200b}b",
            "\u{feff}fn f() {}",
            "// a\rb",
            "// \x1b[1m",
        ] {
            assert_eq!(parse(hostile.as_bytes()), Err(SourceBidi), "{hostile:?}");
        }
        assert_eq!(
            parse("// größe, 日本語, ±\r\nfn f() {}\r\n".as_bytes()),
            Ok(1)
        );
    }

    #[test]
    fn what_is_too_large_or_no_rust_is_refused() {
        assert_eq!(
            parse(&vec![b' '; MAX_SOURCE_BYTES + 1]),
            Err(SourceTooLarge)
        );
        assert_eq!(parse(&vec![b' '; MAX_SOURCE_BYTES]), Ok(0));
        for bad in [
            &b"fn f() { \xff }"[..],
            b"fn f( {",
            b"fn f() {} }",
            b"let",
            b"\"open",
            b"#!/bin/sh\nfn f() {}",
        ] {
            assert_eq!(parse(bad), Err(SourceUnreadable), "{}", escape(bad, 40));
        }
    }

    #[test]
    fn a_panic_of_the_reader_is_not_taken_for_a_refusal() {
        let path = RelPath::new("a.rs").unwrap();
        let run = || with_parsed(&path, b"", |_| -> u8 { panic!("reader") });
        assert!(std::panic::catch_unwind(run).is_err());
    }
}
