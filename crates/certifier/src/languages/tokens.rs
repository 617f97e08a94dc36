//! The text of a file as a sequence of tokens, and which of them a change touched. White space and
//! comments are no tokens, and neither are types that leave no trace: whoever only moves those has
//! changed nothing.

use super::syntax::{Syntax, is_comment};
use super::types::{self, Sort};
use crate::matching::matches;
use flightproof_core::Digest;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

/// One token.
#[derive(Debug, Clone)]
pub(super) struct Token {
    /// Its bytes in the text.
    pub(super) range: Range<usize>,
    /// The node that it is, or that it is part of.
    pub(super) node: usize,
    /// Its text, and the kinds of what it stands in, up to the innermost block.
    key: Vec<u8>,
    /// The token that began what the innermost block belongs to.
    opener: Option<usize>,
}

/// Every token of a text.
pub(super) fn tokens(syntax: &Syntax<'_>) -> Vec<Token> {
    let mut tokens: Vec<Token> = Vec::new();
    // For each node the number of its first token.
    let mut first = vec![usize::MAX; syntax.nodes.len()];
    let mut at = 0;
    let mut end = 0;
    while at < syntax.nodes.len() {
        let node = &syntax.nodes[at];
        first[at] = tokens.len();
        let erased = syntax.sorts[at] == Sort::Erased;
        let whole = node.children.is_empty() || is_verbatim(node.kind) || erased;
        if !whole {
            at += 1;
            continue;
        }
        let inside = node.range.clone();
        // What no node stands for is code all the same.
        gap(syntax, at, end..inside.start, &first, &mut tokens);
        end = end.max(inside.end);
        if !is_comment(node.kind) && !inside.is_empty() && !erased {
            push(syntax, at, inside.clone(), &first, &mut tokens);
        }
        at += 1;
        while at < syntax.nodes.len() && inside.contains(&syntax.nodes[at].range.start) && whole {
            first[at] = tokens.len();
            at += 1;
        }
    }
    gap(syntax, 0, end..syntax.text.len(), &first, &mut tokens);
    tokens
}

/// Nodes whose every byte counts, white space included.
fn is_verbatim(kind: &str) -> bool {
    matches!(
        kind,
        "string_content"
            | "string_literal"
            | "char_literal"
            | "system_lib_string"
            | "preproc_arg"
            | "interpreted_string_literal"
            | "raw_string_literal"
            | "rune_literal"
            | "regex"
            | "format_specifier"
            | "jsx_text"
    ) || kind == "escape_sequence"
}

fn gap(
    syntax: &Syntax<'_>,
    before: usize,
    range: Range<usize>,
    first: &[usize],
    tokens: &mut Vec<Token>,
) {
    let text = syntax.slice(&range);
    let quoted = syntax
        .around(before)
        .take(2)
        .any(|node| matches!(syntax.kind(node), "string" | "template_string"));
    if range.is_empty() || (text.trim().is_empty() && !quoted) {
        return;
    }
    push(syntax, before, range, first, tokens);
}

fn push(
    syntax: &Syntax<'_>,
    node: usize,
    range: Range<usize>,
    first: &[usize],
    tokens: &mut Vec<Token>,
) {
    let block = syntax.around(node).find(|above| {
        syntax
            .language
            .grammar()
            .blocks
            .contains(&syntax.kind(*above))
    });
    let kinds = syntax
        .around(node)
        .take_while(|above| Some(*above) != block)
        .filter_map(|above| types::plain(syntax.kind(above)));
    let mut key = vec![syntax.kind(node)];
    key.extend(kinds);
    let place = Digest::of(key.join("/").as_bytes());
    let mut key = place.as_bytes().to_vec();
    key.extend_from_slice(syntax.slice(&range).as_bytes());
    let owner = block.map(|block| syntax.nodes[block].parent);
    tokens.push(Token {
        range,
        node,
        key,
        opener: owner.and_then(|owner| first.get(owner).copied()),
    });
}

/// What a change touched, by number in the new text.
#[derive(Debug, Default)]
pub(super) struct Touched {
    /// What was not there before, or stands in another block.
    pub(super) edited: BTreeSet<usize>,
    /// What stands beside something that is gone.
    pub(super) beside: BTreeSet<usize>,
}

/// Which tokens a change touched.
pub(super) fn touched(old: &[Token], new: &[Token]) -> Touched {
    let mut known = HashMap::new();
    let (old_keys, new_keys) = (numbers(old, &mut known), numbers(new, &mut known));
    let pairs = matches(&old_keys, &new_keys);
    let mut touched = Touched::default();
    touched.edited.extend(moved(old, new, &pairs));
    let (mut old_at, mut new_at) = (0, 0);
    for (o, n) in pairs.into_iter().chain([(old.len(), new.len())]) {
        touched.edited.extend(new_at..n);
        if new_at == n && old_at < o {
            let behind = (n < new.len()).then_some(n);
            touched
                .beside
                .extend(n.checked_sub(1).into_iter().chain(behind));
        }
        (old_at, new_at) = (o + 1, n + 1);
    }
    touched
}

/// Kept tokens that stand in another block now. A block is the same if the token that opens it was
/// kept, or was edited in its place: between the same two kept tokens.
fn moved(old: &[Token], new: &[Token], pairs: &[(usize, usize)]) -> Vec<usize> {
    let olds: Vec<usize> = pairs.iter().map(|(o, _)| *o).collect();
    let news: Vec<usize> = pairs.iter().map(|(_, n)| *n).collect();
    // `Ok` for the number of a kept token, `Err` for that of the gap an edited one lies in.
    let place = |kept: &[usize], token: Option<usize>| token.map(|at| kept.binary_search(&at));
    let opener = |tokens: &[Token], at: usize| tokens.get(at).and_then(|token| token.opener);
    let moved = pairs
        .iter()
        .filter(|(o, n)| place(&olds, opener(old, *o)) != place(&news, opener(new, *n)));
    moved.map(|(_, n)| *n).collect()
}

/// Equal numbers for equal tokens, so that matching compares integers.
fn numbers<'a>(tokens: &'a [Token], known: &mut HashMap<&'a [u8], u32>) -> Vec<u32> {
    let keys = tokens.iter().map(|token| {
        let next = u32::try_from(known.len()).unwrap_or(u32::MAX);
        *known.entry(token.key.as_slice()).or_insert(next)
    });
    keys.collect()
}
