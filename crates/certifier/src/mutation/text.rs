use std::collections::BTreeSet;
use std::ops::Range;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::survey::LineIndex;
use crate::scan::is_shebang;

/// A byte order mark and a `#!` line, which no parser of ours sees, and the rest. The rest starts
/// on the line it always started on.
pub(super) fn split_prefix(text: &str) -> (&str, &str) {
    let mark = if text.starts_with('\u{feff}') { 3 } else { 0 };
    let rest = text.get(mark..).unwrap_or_default();
    let line = match is_shebang(rest.as_bytes()) {
        true => rest.find('\n').unwrap_or(rest.len()),
        false => 0,
    };
    text.split_at_checked(mark + line).unwrap_or(("", text))
}

/// Lines on which code stands: a name or a literal outside doc comments. Brackets alone are none.
pub(super) fn code_lines(body: &str, tokens: &TokenStream, index: &LineIndex) -> BTreeSet<u32> {
    lines_of(body, tokens, index, |token| {
        matches!(token, TokenTree::Ident(_) | TokenTree::Literal(_))
    })
}

/// The same, with lines on which an operator stands alone.
pub(super) fn meant_lines(body: &str, tokens: &TokenStream, index: &LineIndex) -> BTreeSet<u32> {
    lines_of(body, tokens, index, |token| match token {
        TokenTree::Punct(mark) => ![',', ';'].contains(&mark.as_char()),
        _ => true,
    })
}

fn lines_of(
    body: &str,
    tokens: &TokenStream,
    index: &LineIndex,
    counts: impl Fn(&TokenTree) -> bool,
) -> BTreeSet<u32> {
    let code = |token: &TokenTree, comment: bool| !comment && counts(token);
    lines_where(body, tokens, index, code)
}

/// Lines of doc comments.
pub(super) fn doc_lines(body: &str, tokens: &TokenStream, index: &LineIndex) -> BTreeSet<u32> {
    lines_where(body, tokens, index, |_, comment| comment)
}

fn lines_where(
    body: &str,
    tokens: &TokenStream,
    index: &LineIndex,
    counts: impl Fn(&TokenTree, bool) -> bool,
) -> BTreeSet<u32> {
    let mut out = BTreeSet::new();
    let mut open = vec![tokens.clone()];
    while let Some(stream) = open.pop() {
        for token in stream {
            let range = token.span().byte_range();
            let comment = is_comment(body, &range);
            match token {
                TokenTree::Group(group) if !comment => open.push(group.stream()),
                token if counts(&token, comment) => {
                    out.extend(index.lines(&range));
                }
                _ => {}
            }
        }
    }
    out
}

/// Where the first item starts: behind all inner attributes and inner doc comments.
pub(super) fn first_item(tokens: &TokenStream) -> Option<usize> {
    let mut tokens = tokens.clone().into_iter().peekable();
    loop {
        let first = tokens.next()?;
        let at = first.span().byte_range().start;
        if !is_punct(&first, '#') || !tokens.peek().is_some_and(|t| is_punct(t, '!')) {
            return Some(at);
        }
        tokens.next();
        match tokens.next() {
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Bracket => {}
            _ => return Some(at),
        }
    }
}

fn is_punct(token: &TokenTree, c: char) -> bool {
    matches!(token, TokenTree::Punct(p) if p.as_char() == c)
}

/// Tokens made from a doc comment have the comment's place.
pub(super) fn is_comment(body: &str, range: &Range<usize>) -> bool {
    body.get(range.clone())
        .is_some_and(|text| text.starts_with("//") || text.starts_with("/*"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shebang_is_told_from_an_attribute() {
        assert_eq!(split_prefix("#!/bin/x\nfn").0, "#!/bin/x");
        assert_eq!(split_prefix("#![allow(x)]\nfn").0, "");
        assert_eq!(split_prefix("#! [allow(x)]\nfn").0, "");
        for attribute in [
            "#!/**/[allow(x)] fn f() {}\n",
            "#!/* a /* b */ */ [allow(x)]\n",
            "#!/*\n*/[allow(x)]\n",
            "#!// x\n[allow(x)]\n",
            "#!\u{2028}\u{b}[allow(x)]\n",
            "#!/***/[allow(x)]\n",
        ] {
            assert_eq!(split_prefix(attribute).0, "", "{attribute}");
        }
        for skipped in ["#!/** d */[x]", "#!/*! d */[x]", "#!/// d", "#!//! d", "#!"] {
            let text = format!("{skipped}\nfn");
            assert_eq!(split_prefix(&text).0, skipped);
        }
        assert_eq!(split_prefix("\u{feff}#!x\ny").0, "\u{feff}#!x");
        assert_eq!(split_prefix("").0, "");
    }

    #[test]
    fn brackets_and_comments_are_no_code() {
        let body = "//! doc\n\n/// more\nfn f() {\n    // x\n    g(\n        1,\n    );\n}\n";
        let tokens: TokenStream = body.parse().unwrap();
        let lines = code_lines(body, &tokens, &LineIndex::of(body));
        assert_eq!(lines.into_iter().collect::<Vec<_>>(), [4, 6, 7]);
        let body = "/// doc\nconst A: u8 =\n    -\n    (\n    1\n    )\n;\n";
        let tokens: TokenStream = body.parse().unwrap();
        let lines = meant_lines(body, &tokens, &LineIndex::of(body));
        assert_eq!(lines.into_iter().collect::<Vec<_>>(), [2, 3, 5]);
    }

    #[test]
    fn the_first_item_stands_behind_every_inner_attribute() {
        let at = |body: &str| first_item(&body.parse().unwrap());
        assert_eq!(at("//! d\n#![allow(x)]\n\n/// e\nfn f() {}"), Some(20));
        assert_eq!(at("#[test] fn f() {}"), Some(0));
        assert_eq!(at("//! only"), None);
    }
}
