//! The one way a stranger's text in another language reaches a parser: bounded in size and work, free
//! of what the parser and a compiler could read in two ways, and without any error.

use super::types::{self, Sort};
use super::{Language, text};
use crate::{CertifierCode, CertifierError};
use flightproof_core::{RelPath, escape};
use std::ops::{ControlFlow, Range};
use std::sync::OnceLock;

/// Most nodes of one file: a line of code has about twenty, and the largest files some ten thousand
/// lines.
const MAX_NODES: usize = 1_000_000;
/// Deepest nesting of nodes. Each level of brackets or blocks is two to four of them; the deepest of
/// the files in the standard libraries of Python and Go has about 90.
const MAX_DEPTH: usize = 512;
/// How often the parser is looked at before it must be done, for each byte of the text. It counts its
/// own steps, so a text is refused on every machine alike.
const MAX_STEPS_PER_BYTE: usize = 16;
/// Looks that every text has.
const LEAST_STEPS: usize = 10_000;

/// One node of a parsed text.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// What the grammar calls it.
    pub(super) kind: &'static str,
    /// Which part of its parent it is.
    pub(super) field: &'static str,
    /// Its bytes.
    pub(super) range: Range<usize>,
    /// Its parent; itself at the top.
    pub(super) parent: usize,
    /// Its children.
    pub(super) children: Vec<usize>,
}

/// A parsed text. Nodes stand in the order in which they begin, parents before their children.
#[derive(Debug, Clone)]
pub(super) struct Syntax<'a> {
    pub(super) language: Language,
    pub(super) text: &'a str,
    pub(super) nodes: Vec<Node>,
    /// What each node is to the program.
    pub(super) sorts: Vec<Sort>,
}

impl<'a> Syntax<'a> {
    /// Parses a file.
    ///
    /// # Errors
    /// `SOURCE_TOO_LARGE`, `SOURCE_BIDI`, `SOURCE_AMBIGUOUS`, `SOURCE_TOO_DEEP`, or `SOURCE_UNREADABLE`
    /// for a text that is no UTF-8, that the grammar does not take as a whole, or that takes it too long.
    pub(super) fn of(
        language: Language,
        path: &RelPath,
        source: &'a [u8],
    ) -> Result<Self, CertifierError> {
        let text = text::honest(language, path, source)?;
        let tree = parsed(language, text).ok_or_else(|| {
            let why = "the parser did not come to an end with it";
            unreadable(path, 1, why)
        })?;
        let nodes = nodes(language, path, &tree)?;
        let syntax = Self {
            language,
            text,
            sorts: types::sorts(language, text, &nodes),
            nodes,
        };
        text::unambiguous(&syntax, path)?;
        Ok(syntax)
    }

    pub(super) fn slice(&self, range: &Range<usize>) -> &'a str {
        self.text.get(range.clone()).unwrap_or_default()
    }

    /// The text of a node.
    pub(super) fn said(&self, node: usize) -> &'a str {
        self.slice(&self.nodes[node].range)
    }

    pub(super) fn kind(&self, node: usize) -> &'static str {
        self.nodes[node].kind
    }

    /// The nodes around one, innermost first.
    pub(super) fn around(&self, node: usize) -> impl Iterator<Item = usize> + Clone + '_ {
        let up = |node: &usize| {
            let parent = self.nodes[*node].parent;
            (parent != *node).then_some(parent)
        };
        std::iter::successors(up(&node), up)
    }

    /// The nodes that hold a byte, innermost first.
    pub(super) fn holding(&self, byte: usize) -> impl Iterator<Item = usize> + Clone + '_ {
        let behind = self.nodes.partition_point(|node| node.range.start <= byte);
        let last = behind.checked_sub(1);
        let chain = last
            .into_iter()
            .chain(last.into_iter().flat_map(|at| self.around(at)));
        chain.filter(move |at| self.nodes[*at].range.contains(&byte))
    }

    /// The child that is this part of a node.
    pub(super) fn part(&self, node: usize, field: &str) -> Option<usize> {
        let children = &self.nodes[node].children;
        children
            .iter()
            .copied()
            .find(|child| self.nodes[*child].field == field)
    }

    /// The first child of a kind.
    pub(super) fn child(&self, node: usize, kind: &str) -> Option<usize> {
        let children = &self.nodes[node].children;
        children.iter().copied().find(|c| self.kind(*c) == kind)
    }

    /// Children that are no punctuation or keyword and no comment.
    pub(super) fn inner(&self, node: usize) -> Vec<usize> {
        let children = self.nodes[node].children.iter().copied();
        children.filter(|child| self.is_inner(*child)).collect()
    }

    /// The first of them.
    pub(super) fn first_inner(&self, node: usize) -> Option<usize> {
        let mut children = self.nodes[node].children.iter().copied();
        children.find(|child| self.is_inner(*child))
    }

    fn is_inner(&self, node: usize) -> bool {
        let kind = self.kind(node);
        kind.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && self.said(node) != kind
            && !is_comment(kind)
            || matches!(kind, "true" | "false" | "nil" | "null")
    }

    /// Every node below one, itself included, in order.
    pub(super) fn within(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        let end = self.nodes[node].range.end;
        (node..self.nodes.len())
            .take_while(move |at| self.nodes[*at].range.start <= end)
            .take_while(move |at| *at == node || self.around(*at).any(|above| above == node))
    }
}

/// Whether a kind of node is a comment.
pub(super) fn is_comment(kind: &str) -> bool {
    matches!(kind, "comment" | "html_comment" | "hash_bang_line")
}

fn grammar(language: Language) -> &'static tree_sitter::Language {
    static GRAMMARS: [OnceLock<tree_sitter::Language>; 5] = [const { OnceLock::new() }; 5];
    let (at, grammar) = match language {
        Language::C => (0, tree_sitter_c::LANGUAGE),
        Language::Go => (1, tree_sitter_go::LANGUAGE),
        Language::JavaScript => (2, tree_sitter_javascript::LANGUAGE),
        Language::Python => (3, tree_sitter_python::LANGUAGE),
        Language::TypeScript => (4, tree_sitter_typescript::LANGUAGE_TYPESCRIPT),
    };
    GRAMMARS[at].get_or_init(|| grammar.into())
}

fn parsed(language: Language, text: &str) -> Option<tree_sitter::Tree> {
    let mut parser = tree_sitter::Parser::new();
    parser.set_language(grammar(language)).ok()?;
    let mut left = LEAST_STEPS + MAX_STEPS_PER_BYTE * text.len();
    let mut looked = |_: &tree_sitter::ParseState| match left.checked_sub(1) {
        Some(less) => {
            left = less;
            ControlFlow::Continue(())
        }
        None => ControlFlow::Break(()),
    };
    let bytes = text.as_bytes();
    let mut rest = |at: usize, _| bytes.get(at..).unwrap_or_default();
    let options = tree_sitter::ParseOptions::new().progress_callback(&mut looked);
    parser.parse_with_options(&mut rest, None, Some(options))
}

/// Walks the tree with a cursor: no depth of it costs any stack.
fn nodes(
    language: Language,
    path: &RelPath,
    tree: &tree_sitter::Tree,
) -> Result<Vec<Node>, CertifierError> {
    let grammar = grammar(language);
    let mut cursor = tree.walk();
    let mut nodes: Vec<Node> = Vec::new();
    let mut above: Vec<usize> = Vec::new();
    loop {
        let found = cursor.node();
        let line = found.start_position().row + 1;
        if found.is_error() || found.is_missing() {
            return Err(unreadable(path, line, "the grammar does not take this"));
        }
        if above.len() >= MAX_DEPTH {
            let what = format_args!("{}:{line}: more than {MAX_DEPTH} levels", shown(path));
            return Err(CertifierCode::SourceTooDeep.refuse(what));
        }
        if nodes.len() >= MAX_NODES {
            return Err(unreadable(path, line, "too many parts"));
        }
        let at = nodes.len();
        let field = cursor.field_id().map(std::num::NonZero::get);
        if let Some(parent) = above.last() {
            nodes[*parent].children.push(at);
        }
        nodes.push(Node {
            kind: grammar.node_kind_for_id(found.kind_id()).unwrap_or(""),
            field: field
                .and_then(|id| grammar.field_name_for_id(id))
                .unwrap_or(""),
            range: found.byte_range(),
            parent: above.last().copied().unwrap_or(at),
            children: Vec::new(),
        });
        above.push(at);
        if cursor.goto_first_child() {
            continue;
        }
        loop {
            above.pop();
            if cursor.goto_next_sibling() {
                break;
            }
            if !cursor.goto_parent() {
                return Ok(nodes);
            }
        }
    }
}

pub(super) fn unreadable(path: &RelPath, line: usize, why: &str) -> CertifierError {
    CertifierCode::SourceUnreadable.refuse(format_args!("{}:{line}: {why}", shown(path)))
}

pub(super) fn shown(path: &RelPath) -> String {
    escape(path.as_str(), 200)
}
