//! A token stream as one flat list, so that rules over neighbours need no recursion.

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};

/// One token. Delimiters are tokens of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    /// First and last line, 1-based.
    pub(crate) lines: (u32, u32),
}

/// What a token is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A name or keyword. `r#name` is `name`; a raw keyword (`r#unsafe`) is no keyword and keeps
    /// its prefix.
    Name(String),
    /// One operator character.
    Operator(char),
    /// A literal as written.
    Literal(String),
    /// `(`, `[` or `{`.
    Open(char),
    /// `)`, `]` or `}`.
    Close(char),
}

impl Token {
    /// The token as it would be written.
    pub(crate) fn text(&self) -> String {
        match &self.kind {
            Kind::Name(text) | Kind::Literal(text) => text.clone(),
            Kind::Operator(c) | Kind::Open(c) | Kind::Close(c) => c.to_string(),
        }
    }
}

/// The tokens in order.
pub(crate) fn flatten(tokens: TokenStream) -> Vec<Token> {
    let mut out = Vec::new();
    let mut open = vec![(tokens.into_iter(), None)];
    while let Some((rest, close)) = open.last_mut() {
        match rest.next() {
            Some(TokenTree::Group(group)) => {
                let (left, right) = brackets(group.delimiter());
                out.push(token(Kind::Open(left), group.span_open()));
                let close = token(Kind::Close(right), group.span_close());
                open.push((group.stream().into_iter(), Some(close)));
            }
            Some(TokenTree::Ident(name)) => out.push(token(Kind::Name(plain(&name)), name.span())),
            Some(TokenTree::Punct(punct)) => {
                out.push(token(Kind::Operator(punct.as_char()), punct.span()));
            }
            Some(TokenTree::Literal(literal)) => {
                out.push(token(Kind::Literal(literal.to_string()), literal.span()));
            }
            None => {
                out.extend(close.take());
                open.pop();
            }
        }
    }
    out
}

fn token(kind: Kind, span: Span) -> Token {
    let line = |line: usize| u32::try_from(line).unwrap_or(u32::MAX);
    Token {
        kind,
        lines: (line(span.start().line), line(span.end().line)),
    }
}

pub(crate) fn plain(name: &proc_macro2::Ident) -> String {
    let text = name.to_string();
    match text.strip_prefix("r#") {
        Some("unsafe" | "extern" | "use" | "fn" | "as") | None => text,
        Some(bare) => bare.to_owned(),
    }
}

fn brackets(delimiter: Delimiter) -> (char, char) {
    match delimiter {
        Delimiter::Parenthesis => ('(', ')'),
        Delimiter::Bracket => ('[', ']'),
        Delimiter::Brace | Delimiter::None => ('{', '}'),
    }
}
