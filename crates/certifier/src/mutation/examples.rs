//! Code in documentation, as rustdoc finds it: it is run as tests.
//!
//! Rustdoc joins the comments of an item, takes away what their lines are all indented by, and reads
//! the rest as Markdown. What it takes away depends on comments in other files as well, and its
//! Markdown on its version. So a text is read in every way it may be read in, and what is code in one
//! of them is code.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use super::survey::LineIndex;
use super::text::is_comment;

/// A block of code in the documentation.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Example {
    /// Its lines, with its fences.
    pub(super) lines: BTreeSet<u32>,
    /// The code alone, as it is compiled.
    pub(super) code: String,
    /// The line of the file for each line of the code.
    pub(super) places: Vec<u32>,
    /// It ends with the documentation, not with a fence: what comes next may belong to it.
    pub(super) open: bool,
}

/// One line of documentation, and the lines of the file it may stand on.
struct Said {
    text: String,
    lines: (u32, u32),
    /// In `/** … */`, where lines may begin with a star.
    block: bool,
}

/// Every block of code that rustdoc may find in a file.
pub(super) fn examples(body: &str, tokens: &TokenStream, index: &LineIndex) -> Vec<Example> {
    let documents = documents(body, tokens, index);
    let mut out = Vec::new();
    let mut open = false;
    for document in &documents {
        // A fence that nothing closes goes on in the documentation inside of the item.
        if open {
            out.push(whole(document));
        }
        let found = blocks(document);
        open |= found.iter().any(|example| example.open);
        out.extend(found);
    }
    out
}

/// Every block of code in a document that a Rust file takes in as documentation.
pub(super) fn examples_of_page(text: &str) -> Vec<Example> {
    let lines = text.split('\n').zip(1..).map(|(text, line)| Said {
        text: text.trim_end_matches('\r').to_owned(),
        lines: (line, line),
        block: false,
    });
    blocks(&lines.collect::<Vec<_>>())
}

/// The lines of each item's documentation, in the order of the file.
fn documents(body: &str, tokens: &TokenStream, index: &LineIndex) -> Vec<Vec<Said>> {
    let mut out: Vec<Vec<Said>> = Vec::new();
    let mut open = vec![tokens.clone()];
    while let Some(stream) = open.pop() {
        let mut document = Vec::new();
        let mut marked = false;
        for token in stream {
            match token {
                TokenTree::Punct(mark) if mark.as_char() == '#' => marked = true,
                TokenTree::Punct(mark) if marked && mark.as_char() == '!' => {}
                TokenTree::Group(group) if marked && group.delimiter() == Delimiter::Bracket => {
                    document.extend(said(body, &group.stream(), index));
                    marked = false;
                }
                other => {
                    marked = false;
                    out.push(std::mem::take(&mut document));
                    if let TokenTree::Group(group) = other {
                        open.push(group.stream());
                    }
                }
            }
        }
        out.push(document);
    }
    out.retain(|document| !document.is_empty());
    out.sort_by_key(|document| document.first().map(|said| said.lines));
    out
}

/// The lines of `doc = "…"`.
fn said(body: &str, attribute: &TokenStream, index: &LineIndex) -> Vec<Said> {
    let mut tokens = attribute.clone().into_iter();
    let named = matches!(tokens.next(), Some(TokenTree::Ident(name)) if name == "doc");
    let equal = matches!(tokens.next(), Some(TokenTree::Punct(mark)) if mark.as_char() == '=');
    let Some(TokenTree::Literal(literal)) = tokens.next().filter(|_| named && equal) else {
        return Vec::new();
    };
    let range = literal.span().byte_range();
    let (first, last) = index.lines(&range).into_inner();
    let comment = is_comment(body, &range);
    let block = comment && body.get(range).is_some_and(|text| text.starts_with("/*"));
    let text = syn::parse2::<syn::LitStr>(TokenTree::Literal(literal).into());
    let text = text.map(|text| text.value()).unwrap_or_default();
    let lines = text.split('\n').zip(first..).map(|(text, line)| Said {
        text: text.trim_end_matches('\r').to_owned(),
        lines: match comment {
            true => (line.min(last), line.min(last)),
            false => (first, last),
        },
        block,
    });
    lines.collect()
}

/// The documentation as if all of it were code.
fn whole(document: &[Said]) -> Example {
    Example {
        lines: document
            .iter()
            .flat_map(|s| s.lines.0..=s.lines.1)
            .collect(),
        code: document.iter().map(|s| format!("{}\n", s.text)).collect(),
        places: document.iter().map(|s| s.lines.0).collect(),
        open: false,
    }
}

fn blocks(document: &[Said]) -> Vec<Example> {
    let mut texts = BTreeSet::new();
    for starred in [false, true] {
        let lines: Vec<&str> = document.iter().map(|said| bare(said, starred)).collect();
        let least = |from: usize| {
            let lines = lines
                .iter()
                .skip(from)
                .filter(|line| !line.trim().is_empty());
            lines.map(|line| indent(line)).min().unwrap_or_default()
        };
        for width in [0, 1, least(0), least(1)] {
            let cut = lines.iter().map(|line| {
                let cut = width.min(indent(line));
                format!("{}\n", line.get(cut..).unwrap_or_default())
            });
            texts.insert(cut.collect::<String>());
        }
    }
    let more = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_SMART_PUNCTUATION;
    let mut out = BTreeSet::new();
    for text in texts {
        for options in [Options::empty(), more] {
            out.extend(blocks_of(&text, document, options));
        }
    }
    out.into_iter().collect()
}

/// The line without what a comment begins its lines with.
fn bare(said: &Said, starred: bool) -> &str {
    let star = said.text.trim_start().strip_prefix('*');
    match star {
        Some(rest) if starred && said.block => rest,
        _ => &said.text,
    }
}

/// White space at the beginning, in bytes that are characters.
fn indent(line: &str) -> usize {
    let blank = |c: &char| [' ', '\t'].contains(c);
    line.chars().take_while(blank).count()
}

fn blocks_of(text: &str, document: &[Said], options: Options) -> Vec<Example> {
    let index = LineIndex::of(text);
    let places = |lines: std::ops::RangeInclusive<u32>| {
        let at = |line: u32| usize::try_from(line).unwrap_or(usize::MAX);
        let first = at(*lines.start()).saturating_sub(1);
        let count = (at(*lines.end()) + 1).saturating_sub(at(*lines.start()));
        document.iter().skip(first).take(count)
    };
    let mut out = Vec::new();
    let mut block: Option<Example> = None;
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        match (event, &mut block) {
            (Event::Start(Tag::CodeBlock(kind)), _) => {
                let found = index.lines(&range);
                let closed = match &kind {
                    CodeBlockKind::Indented => true,
                    CodeBlockKind::Fenced(_) => is_closed(text.get(range).unwrap_or_default()),
                };
                block = is_run(&kind).then(|| Example {
                    lines: places(found.clone())
                        .flat_map(|said| said.lines.0..=said.lines.1)
                        .collect(),
                    open: !closed,
                    ..Example::default()
                });
                if !closed && block.is_none() {
                    // Nobody runs it, but what comes after it may be read otherwise.
                    out.push(Example {
                        open: true,
                        ..Example::default()
                    });
                }
            }
            (Event::Text(code), Some(block)) => {
                let first = index.line(range.start);
                for (line, code) in (first..).zip(code.split_inclusive('\n')) {
                    block.code.push_str(code);
                    let place = places(line..=line).next().map_or(0, |said| said.lines.0);
                    if block.code.lines().count() > block.places.len() {
                        block.places.push(place);
                    }
                }
            }
            (Event::End(TagEnd::CodeBlock), _) => out.extend(block.take()),
            _ => {}
        }
    }
    out
}

/// Whether a fenced block ends with its fence.
fn is_closed(block: &str) -> bool {
    let mut lines = block.trim_end().lines();
    let opened = lines.next().unwrap_or_default();
    let fence = |line: &str| {
        let line = line.trim_start_matches([' ', '\t', '>']);
        let mark = line.chars().next().filter(|c| ['`', '~'].contains(c))?;
        let length = line.chars().take_while(|c| *c == mark).count();
        (length >= 3).then_some((mark, length))
    };
    let (Some(opened), Some(last)) = (fence(opened), lines.last().and_then(fence)) else {
        return false;
    };
    last.0 == opened.0 && last.1 >= opened.1
}

/// Words that make Rust of a block, whatever stands beside them.
const RUST: &[&str] = &[
    "rust",
    "should_panic",
    "no_run",
    "ignore",
    "compile_fail",
    "test_harness",
    "standalone",
    "edition",
    "E0",
    "custom",
    "(",
    "{",
    "\"",
];

/// Whether rustdoc may take a block for Rust: unless it is told of another language, and of nothing
/// else.
fn is_run(kind: &CodeBlockKind<'_>) -> bool {
    match kind {
        CodeBlockKind::Indented => true,
        CodeBlockKind::Fenced(info) => {
            let mut words = info.split(|c: char| c == ',' || c.is_whitespace());
            RUST.iter().any(|word| info.contains(word)) || words.all(str::is_empty)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(body: &str) -> Vec<u32> {
        let tokens: TokenStream = body.parse().unwrap();
        let found = examples(body, &tokens, &LineIndex::of(body));
        let lines: BTreeSet<u32> = found.into_iter().flat_map(|found| found.lines).collect();
        lines.into_iter().collect()
    }

    #[test]
    fn every_form_of_code_in_documentation_is_found() {
        for (said, expected) in [
            ("//! ```\n//! a();\n//! ```\n", vec![1, 2, 3]),
            ("//! A.\n//!\n//!     a();\n", vec![3]),
            ("/*!\nA.\n\n    a();\n*/\n", vec![4]),
            ("/*!\n * A.\n *\n *     a();\n */\n", vec![4]),
            ("//! ```rust,context\n//! a();\n//! ```\n", vec![1, 2, 3]),
            ("//! ```(text)\n//! a();\n//! ```\n", vec![1, 2, 3]),
            ("//! > ```\n//! > a();\n//! > ```\n", vec![1, 2, 3]),
            (
                "//! - A\n//!\n//!   ```\n//!   a();\n//!   ```\n",
                vec![3, 4, 5],
            ),
            ("//! ~~~\n//! a();\n//! ~~~\n", vec![1, 2, 3]),
            (
                "//! ```text\n//! a\n//! ```\n//!\n//! ```\n//! a();\n//! ```\n",
                vec![5, 6, 7],
            ),
            (
                "//! > ```text\n//! > a\n//!\n//! ```\n//! a();\n//! ```\n",
                vec![4, 5, 6],
            ),
            ("#![doc = \"```\\na();\\n```\"]\n", vec![1]),
            (
                "#![doc = \"```\"]\n//! a();\n#![doc = \"```\"]\n",
                vec![1, 2, 3],
            ),
            // What takes away the indentation of the second lies in another file.
            ("//!     a();\n", vec![1]),
        ] {
            assert_eq!(lines(&format!("{said}fn f() {{}}\n")), expected, "{said}");
        }
        // A fence that nothing closes goes on inside.
        let open = "/// ```\nmod a {\n    //! a();\n    //! ```\n}\n";
        assert!(lines(open).contains(&3));
        let open = "/// ```text\n/// x\nmod a {\n    //! ```\n    //! ```\n    //! a();\n}\n";
        assert!(lines(open).contains(&6));
    }

    #[test]
    fn prose_is_no_code() {
        for prose in [
            "//! A.\n//!\n//! - one\n//!   two\n//!\n//!   three\n//! > said\n",
            "//! A\n//!      continued\n//!\n//! 1. one\n//!    two `a()` ``b``\n",
            "//! # Errors\n//!\n//! | a | b |\n//! | - | - |\n//!\n//! [a]: https://a\n",
            "//! ```text\n//! a();\n//! ```\n//! and then\n",
            "//! ```sh\n//! a\n//! ```\n",
            "/**\n * A.\n *\n * B.\n */\n",
            "/*! A.\n\n B.\n*/\n",
        ] {
            assert_eq!(lines(&format!("{prose}fn f() {{}}\n")), [0; 0], "{prose}");
        }
        assert_eq!(
            lines("mod a {\n    /// A.\n    ///\n    /// B.\n    fn f() {}\n}\n"),
            [0; 0]
        );
    }
}
