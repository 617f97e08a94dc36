//! What a text in a program says once its escapes are read, and which keys are no text at all: names
//! that are looked for while a program runs.

use super::Language;
use super::syntax::Syntax;
use std::collections::{BTreeMap, BTreeSet};

/// Most parts of a text that are put together: no name is longer.
const MAX_PIECES: usize = 128;
/// How often names are followed to what they are given.
const MAX_ROUNDS: usize = 16;

/// What a literal says; nothing for one that is filled in, and for what is no literal.
pub(super) fn literal(syntax: &Syntax<'_>, node: usize) -> Option<String> {
    let kind = syntax.kind(node);
    if !matches!(kind, "string" | "template_string") {
        return None;
    }
    let filled = |at: &usize| matches!(syntax.kind(*at), "interpolation" | "template_substitution");
    if syntax.nodes[node].children.iter().any(filled) {
        return None;
    }
    let said = syntax.said(node);
    let quote = said.find(['"', '\'', '`'])?;
    let (prefix, body) = said.split_at(quote);
    let body = body.trim_matches(['"', '\'', '`']);
    let raw = prefix.contains(['r', 'R']);
    Some(match raw {
        true => body.to_owned(),
        false => decoded(syntax.language, body),
    })
}

/// What a piece of a text of Python says.
pub(super) fn piece(syntax: &Syntax<'_>, node: usize, said: &str) -> String {
    let start = syntax.child(syntax.nodes[node].parent, "string_start");
    match start.is_some_and(|at| syntax.said(at).contains(['r', 'R'])) {
        true => said.to_owned(),
        false => decoded(syntax.language, said),
    }
}

/// A text with its escapes read.
pub(super) fn decoded(language: Language, text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('\\') {
        out.push_str(before);
        rest = behind;
        let mut chars = rest.chars();
        let Some(mark) = chars.next() else {
            break;
        };
        let tail = chars.as_str();
        let number = |text: &str, most: usize, base: u32| {
            let digits = text.chars().take(most).take_while(|c| c.is_digit(base));
            let digits: String = digits.collect();
            let value = u32::from_str_radix(&digits, base).ok();
            value.map(|value| (value, digits.len()))
        };
        let braced = |most| match tail.strip_prefix('{') {
            Some(inner) => number(inner, 8, 16).map(|(value, len)| (value, len + 2)),
            None => number(tail, most, 16),
        };
        let read = match mark {
            'x' => number(tail, 2, 16),
            'u' => braced(4),
            'U' if language == Language::Python => number(tail, 8, 16),
            '0'..='7' => number(rest, 3, 8).map(|(value, len)| (value, len - 1)),
            'N' if language == Language::Python => named(tail),
            'n' | 'r' | 't' | 'b' | 'f' | 'v' => Some((u32::from(b' '), 0)),
            '\n' => {
                rest = tail;
                continue;
            }
            _ => None,
        };
        match read {
            Some((value, len)) => {
                out.push(char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER));
                rest = tail.get(len..).unwrap_or_default();
            }
            None => {
                // Python keeps the backslash of what is no escape.
                if language == Language::Python && !matches!(mark, '\\' | '\'' | '"') {
                    out.push('\\');
                }
                out.push(mark);
                rest = tail;
            }
        }
    }
    out.push_str(rest);
    out
}

/// The letter behind `\N{LATIN SMALL LETTER E}`, and how long its name is.
fn named(tail: &str) -> Option<(u32, usize)> {
    let (name, _) = tail.strip_prefix('{')?.split_once('}')?;
    let upper = name.to_ascii_uppercase();
    let letter = |start: &str| {
        let rest = upper.strip_prefix(start)?;
        (rest.len() == 1).then(|| rest.chars().next()).flatten()
    };
    let small = letter("LATIN SMALL LETTER ").map(|c| c.to_ascii_lowercase());
    let found = small.or_else(|| letter("LATIN CAPITAL LETTER "));
    let found =
        found.or_else(|| matches!(&*upper, "LOW LINE" | "SPACING UNDERSCORE").then_some('_'));
    let found = found.unwrap_or(char::REPLACEMENT_CHARACTER);
    Some((u32::from(found), name.len() + 2))
}

/// What a text of JavaScript says that is put together of literals, as far as a name could go.
pub(super) fn joined(syntax: &Syntax<'_>, node: usize) -> Option<String> {
    let mut out = String::new();
    let mut open = vec![node];
    for _ in 0..MAX_PIECES {
        let Some(at) = open.pop() else {
            return Some(out);
        };
        match syntax.kind(at) {
            "binary_expression" if operator(syntax, at) == "+" => {
                open.push(syntax.part(at, "right")?);
                open.push(syntax.part(at, "left")?);
            }
            kind if is_wrapper(kind) => open.push(*syntax.inner(at).first()?),
            _ => out.push_str(&literal(syntax, at)?),
        }
    }
    None
}

fn is_wrapper(kind: &str) -> bool {
    matches!(
        kind,
        "parenthesized_expression"
            | "as_expression"
            | "satisfies_expression"
            | "non_null_expression"
    )
}

fn operator<'a>(syntax: &Syntax<'a>, node: usize) -> &'a str {
    syntax
        .part(node, "operator")
        .map_or("", |at| syntax.said(at))
}

/// What the names of a file in JavaScript are given, wherever they are declared.
#[derive(Debug, Default)]
pub(super) struct Given<'a> {
    /// Names that are only ever given numbers.
    counters: BTreeSet<&'a str>,
    /// Names of one list or table that the text spells out.
    tables: BTreeSet<&'a str>,
}

impl<'a> Given<'a> {
    pub(super) fn of(syntax: &'a Syntax<'_>) -> Self {
        let mut values: BTreeMap<&str, Vec<Option<usize>>> = BTreeMap::new();
        let mut declared: BTreeMap<&str, usize> = BTreeMap::new();
        let mut unknown: BTreeSet<&str> = BTreeSet::new();
        for (at, node) in syntax.nodes.iter().enumerate() {
            if !is_name(node.kind) {
                continue;
            }
            let (said, of) = (syntax.said(at), node.parent);
            let mut give = |field| {
                let all = values.entry(said).or_default();
                all.push(syntax.part(of, field));
            };
            match (syntax.kind(of), node.field) {
                ("variable_declarator", "name") => {
                    give("value");
                    *declared.entry(said).or_default() += 1;
                }
                ("assignment_expression" | "augmented_assignment_expression", "left") => {
                    give("right");
                }
                _ if gives(syntax, at) => {
                    unknown.insert(said);
                }
                _ => {}
            }
        }
        values.retain(|name, _| declared.contains_key(name) && !unknown.contains(name));
        let is_table = |at: &Option<usize>| {
            let value = at.map(|at| syntax.kind(bare(syntax, at)));
            value.is_some_and(|kind| matches!(kind, "object" | "array"))
        };
        let one = |all: &[Option<usize>]| matches!(all, [one] if is_table(one));
        let mut given = Self {
            counters: values.keys().copied().collect(),
            tables: values
                .iter()
                .filter(|(_, all)| one(all))
                .map(|(name, _)| *name)
                .collect(),
        };
        // What is given a number by way of other names.
        for _ in 0..MAX_ROUNDS {
            let number = |at: &Option<usize>| at.is_none_or(|at| given.is_number(syntax, at));
            let counters: BTreeSet<&str> = values
                .iter()
                .filter(|(_, all)| all.iter().all(number))
                .map(|(name, _)| *name)
                .collect();
            if counters == given.counters {
                return given;
            }
            given.counters = counters;
        }
        given.counters.clear();
        given
    }

    /// Whether a key cannot name anything but a place in a list, or is a literal, which other rules read.
    pub(super) fn names_nothing(&self, syntax: &Syntax<'_>, key: usize) -> bool {
        literal(syntax, key).is_some() || self.is_number(syntax, key)
    }

    pub(super) fn is_table(&self, syntax: &Syntax<'_>, node: usize) -> bool {
        syntax.kind(node) == "identifier" && self.tables.contains(syntax.said(node))
    }

    /// Whether an expression is a number whatever runs, or a text that has one in it.
    fn is_number(&self, syntax: &Syntax<'_>, at: usize) -> bool {
        let number = |field| {
            let part = syntax.part(at, field);
            part.is_some_and(|part| self.is_number(syntax, part))
        };
        match syntax.kind(at) {
            "number" | "update_expression" | "true" | "false" => true,
            kind if is_wrapper(kind) => {
                let inner = syntax.inner(at);
                inner.first().is_some_and(|at| self.is_number(syntax, *at))
            }
            "unary_expression" => matches!(operator(syntax, at), "-" | "+" | "~" | "!"),
            "binary_expression" => match operator(syntax, at) {
                "-" | "*" | "/" | "%" | "**" | "&" | "|" | "^" | "<<" | ">>" | ">>>" => true,
                "+" => number("left") || number("right"),
                _ => false,
            },
            "ternary_expression" => number("consequence") && number("alternative"),
            "identifier" => self.counters.contains(syntax.said(at)),
            _ => false,
        }
    }
}

/// What stands inside of brackets, of `as const` and of `Object.freeze(…)`.
fn bare(syntax: &Syntax<'_>, mut at: usize) -> usize {
    loop {
        let inner = match syntax.kind(at) {
            kind if is_wrapper(kind) => syntax.inner(at).first().copied(),
            "call_expression" => {
                let frozen = syntax
                    .part(at, "function")
                    .is_some_and(|of| syntax.said(of) == "Object.freeze");
                let arguments = syntax.part(at, "arguments").filter(|_| frozen);
                arguments.and_then(|at| syntax.inner(at).first().copied())
            }
            _ => None,
        };
        match inner {
            Some(inner) => at = inner,
            None => return at,
        }
    }
}

fn is_name(kind: &str) -> bool {
    matches!(kind, "identifier" | "shorthand_property_identifier_pattern")
}

/// Whether a name is given something here that no declaration with a value shows.
fn gives(syntax: &Syntax<'_>, at: usize) -> bool {
    let node = &syntax.nodes[at];
    matches!(
        (syntax.kind(node.parent), node.field),
        ("arrow_function", "parameter")
            | ("assignment_pattern" | "for_in_statement", "left")
            | ("required_parameter" | "optional_parameter", "pattern")
            | ("catch_clause", "parameter")
            | ("pair_pattern", "value")
            | (
                "function_declaration"
                    | "function_expression"
                    | "generator_function"
                    | "generator_function_declaration"
                    | "class_declaration"
                    | "class",
                "name"
            )
    ) || matches!(
        syntax.kind(node.parent),
        "formal_parameters"
            | "array_pattern"
            | "object_pattern"
            | "object_assignment_pattern"
            | "rest_pattern"
            | "import_specifier"
            | "import_clause"
            | "namespace_import"
    )
}
