//! Changes that must not be noticed, and changes that must be.

use super::Language;
use super::bodies::is_simple;
use super::operators::is_docstring;
use super::plan::Edited;
use super::syntax::Syntax;
use super::types::Sort;
use crate::mutation::LineIndex;
use flightproof_core::Digest;
use std::collections::BTreeSet;
use std::ops::Range;

/// Replacements in one file, ordered, none over another.
pub(super) type Replacements = Vec<(Range<usize>, String)>;

/// Placebos of one file at single statements, which the flight's entropy draws.
const PLACEBOS: usize = 2;

/// Changes of what is compiled that nothing can show from outside: whoever notices one looks for
/// mutants. They stand before changed statements, or before others where no changed one has room.
pub(super) fn placebos(
    edited: &Edited<'_>,
    lines: &BTreeSet<u32>,
    seed: &[u8; 32],
) -> Vec<Replacements> {
    let syntax = &edited.syntax;
    let index = LineIndex::of(syntax.text);
    let sites: Vec<usize> = (0..syntax.nodes.len())
        .filter(|at| has_room(syntax, *at))
        .collect();
    let starts = |at: &usize| syntax.nodes[*at].range.start;
    let changed = sites
        .iter()
        .filter(|at| lines.contains(&index.line(starts(at))));
    let mut open: Vec<usize> = changed.map(starts).collect();
    if open.is_empty() {
        open = sites.iter().map(starts).collect();
    }
    let text = format!("{} ", syntax.language.grammar().placebo);
    // At all of them at once: whatever stretch of its code a program looks at, it is another.
    let everywhere = open.iter().map(|at| (*at..*at, text.clone()));
    let mut placebos = vec![everywhere.collect()];
    for number in 0..PLACEBOS.min(open.len()) {
        let name = format!("placebo {number} {}", edited.path.as_str());
        let drawn = Digest::keyed(seed, name.as_bytes());
        let (word, _) = drawn.as_bytes().split_at(4);
        let word = word.try_into().map_or(0, u32::from_be_bytes);
        let at = open.swap_remove(word as usize % open.len());
        placebos.push(vec![(at..at, text.clone())]);
    }
    placebos.extend(Some(scattered(edited)).filter(|all| !all.is_empty()));
    placebos
}

/// A function of JavaScript is its own text to itself: one placebo has a comment before every token
/// that changed.
fn scattered(edited: &Edited<'_>) -> Replacements {
    let syntax = &edited.syntax;
    if !matches!(syntax.language, Language::JavaScript | Language::TypeScript) {
        return Vec::new();
    }
    let touched = edited.edited();
    let free = touched.filter(|token| {
        let mut up = std::iter::once(token.node).chain(syntax.around(token.node));
        let texts = ["string", "template_string", "regex", "jsx_text"];
        let parent = syntax.nodes[token.node].parent;
        !texts.contains(&syntax.kind(parent))
            && !up.any(|at| matches!(syntax.kind(at), "jsx_element" | "jsx_self_closing_element"))
    });
    free.map(|token| (token.range.start..token.range.start, "/**/".to_owned()))
        .collect()
}

/// Whether another statement may stand before this one on its line.
fn has_room(syntax: &Syntax<'_>, at: usize) -> bool {
    let kind = syntax.kind(at);
    let parent = syntax.kind(syntax.nodes[at].parent);
    match syntax.language {
        Language::C => {
            parent == "compound_statement"
                && (kind.ends_with("_statement") || kind == "declaration")
                && !matches!(kind, "case_statement" | "labeled_statement")
        }
        Language::Go => {
            matches!(parent, "statement_list" | "block")
                && (kind.ends_with("_statement") || kind.ends_with("_declaration"))
                && kind != "fallthrough_statement"
        }
        Language::JavaScript | Language::TypeScript => {
            matches!(parent, "statement_block" | "program")
                && syntax.sorts[at] == Sort::Code
                && (kind.ends_with("_statement") || kind.ends_with("_declaration"))
                && !is_directive(syntax, at)
        }
        Language::Python => {
            is_simple(syntax, at)
                && matches!(parent, "block" | "module")
                && !is_docstring(syntax, at)
        }
    }
}

fn is_directive(syntax: &Syntax<'_>, at: usize) -> bool {
    let inner = syntax.inner(at);
    syntax.kind(at) == "expression_statement"
        && matches!(inner.as_slice(), [one] if syntax.kind(*one) == "string")
}

/// The end of the program wherever the file is part of it. Nothing for a file without any code.
pub(super) fn canary(edited: &Edited<'_>, seed: &[u8; 32]) -> Option<Replacements> {
    let syntax = &edited.syntax;
    let end = syntax.text.len();
    let name = Digest::keyed(seed, format!("canary {}", edited.path.as_str()).as_bytes());
    let name = name.to_string().get(..16)?.to_owned();
    let (at, text) = match syntax.language {
        Language::C => (
            end,
            format!(
                "\n#ifndef c_{name}\n#define c_{name}\n__attribute__((constructor)) static void \
                 e_{name}(void) {{ __builtin_trap(); }}\n#endif\n"
            ),
        ),
        Language::Go => (end, "\nfunc init() { panic(0) }\n".to_owned()),
        Language::JavaScript | Language::TypeScript => {
            let top = syntax.inner(0).into_iter();
            let first = top.into_iter().find(|at| !is_directive(syntax, *at))?;
            (
                syntax.nodes[first].range.start,
                "process.exit(113);\n".to_owned(),
            )
        }
        Language::Python => {
            let top = syntax.inner(0).into_iter();
            let first = top.into_iter().find(|at| {
                !is_docstring(syntax, *at) && syntax.kind(*at) != "future_import_statement"
            })?;
            let text = "__import__('os')._exit(113)\n".to_owned();
            (syntax.nodes[first].range.start, text)
        }
    };
    Some(vec![(at..at, text)])
}
