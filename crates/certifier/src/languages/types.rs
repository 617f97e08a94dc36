//! What of a text in TypeScript is nothing but types. Node puts blanks in their place and reads the
//! rest ("type stripping"); so they are no code, like comments.
//!
//! A grammar can be wrong about where a type ends. So nothing here is believed: the tree is built once
//! more without what was found, and must come out as the same program, byte for byte
//! ([`bare`], [`crate::certification`]).

use super::Language;
use super::syntax::{Node, Syntax, is_comment};
use std::ops::Range;

/// What a node is to the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    /// Code, or it holds some.
    Code,
    /// A type; over several lines or beside the end of one, where the blanks that Node leaves could end
    /// a statement. A change in it counts as one of code.
    Type,
    /// A type, and no token: whatever it says, the program is the same.
    Erased,
}

/// Nodes that are types as a whole, in the middle of code.
const INLINE: &[&str] = &[
    "accessibility_modifier",
    "asserts_annotation",
    "implements_clause",
    "override_modifier",
    "type_annotation",
    "type_arguments",
    "type_parameters",
    "type_predicate_annotation",
];
/// Statements and members that are types as a whole.
const DECLARED: &[&str] = &[
    "abstract_method_signature",
    "ambient_declaration",
    "function_signature",
    "index_signature",
    "interface_declaration",
    "method_signature",
    "type_alias_declaration",
];
/// Words and signs that are types in some nodes.
const SIGNS: &[(&str, &[&str])] = &[
    ("abstract_class_declaration", &["abstract"]),
    ("method_definition", &["?"]),
    ("non_null_expression", &["!"]),
    ("optional_parameter", &["?"]),
    ("public_field_definition", &["readonly", "?", "!"]),
    ("variable_declarator", &["!"]),
];

/// What each node of a text is; parents stand before their children.
pub(super) fn sorts(language: Language, text: &str, nodes: &[Node]) -> Vec<Sort> {
    let mut sorts = vec![Sort::Code; nodes.len()];
    if language != Language::TypeScript {
        return sorts;
    }
    let reader = Reader { text, nodes };
    for at in 0..nodes.len() {
        let above = sorts[nodes[at].parent];
        sorts[at] = match above {
            Sort::Code => reader.sort(at),
            above => above,
        };
    }
    // The end of a member goes with it.
    for class in nodes.iter().filter(|node| node.kind == "class_body") {
        let members = class.children.iter().copied();
        let mut before = None;
        for member in members.filter(|at| !is_comment(nodes[*at].kind)) {
            if let (";", Some(ended)) = (nodes[member].kind, before) {
                sorts[member] = sorts[ended];
            }
            before = (nodes[member].kind != ";").then_some(member);
        }
    }
    sorts
}

struct Reader<'a> {
    text: &'a str,
    nodes: &'a [Node],
}

impl Reader<'_> {
    fn sort(&self, at: usize) -> Sort {
        let node = &self.nodes[at];
        if self.is_declared(at) {
            return match self.begins_on_one_line(at) {
                true => Sort::Erased,
                // `type` at the end of a line is a name, and the next line is code.
                false => Sort::Code,
            };
        }
        let above = &self.nodes[node.parent];
        let sign = |(kind, signs): &(&str, &[&str])| {
            above.kind == *kind && signs.contains(&node.kind) && node.children.is_empty()
        };
        let cast = matches!(above.kind, "as_expression" | "satisfies_expression")
            && self.before(at).is_some();
        if !INLINE.contains(&node.kind) && !SIGNS.iter().any(sign) && !cast {
            return Sort::Code;
        }
        let start = self
            .before(at)
            .map_or(node.range.start, |b| self.nodes[b].range.end);
        let end = self
            .behind(at)
            .map_or(node.range.end, |b| self.nodes[b].range.start);
        match self.is_one_line(start..end) && !self.keeps_apart(at) {
            true => Sort::Erased,
            false => Sort::Type,
        }
    }

    /// Whether the line ends behind a type, and the next begins with what could go on with it: what
    /// Node puts there in its place ends the statement.
    fn keeps_apart(&self, at: usize) -> bool {
        let end = self.nodes[at].range.end;
        let first = self.nodes.partition_point(|node| node.range.start < end);
        let mut behind = self.nodes.iter().skip(first);
        let next = behind.find(|node| !is_comment(node.kind) && !node.range.is_empty());
        next.is_some_and(|next| {
            let start = next.range.start;
            let sign = self.text.get(start..).and_then(|rest| rest.chars().next());
            !self.is_one_line(end..start) && sign.is_some_and(|sign| "([`/+-*<#@!".contains(sign))
        })
    }

    fn is_declared(&self, at: usize) -> bool {
        let kind = self.nodes[at].kind;
        let has = |kinds: &[&str]| {
            let mut children = self.nodes[at].children.iter();
            children.any(|child| kinds.contains(&self.nodes[*child].kind))
        };
        match kind {
            _ if has(&["decorator"]) => false,
            "public_field_definition" => has(&["declare", "abstract"]),
            "import_statement" => has(&["type"]),
            "export_statement" => has(&["type"]) || has(DECLARED),
            kind => DECLARED.contains(&kind),
        }
    }

    /// Whether the words before the name of a declaration stand on its line.
    fn begins_on_one_line(&self, at: usize) -> bool {
        let children = &self.nodes[at].children;
        let words = children.iter().take_while(|child| {
            let node = &self.nodes[**child];
            node.children.is_empty() && self.text.get(node.range.clone()) == Some(node.kind)
                || INLINE.contains(&node.kind)
        });
        let start = self.nodes[at].range.start;
        let name = children.get(words.count()).copied();
        let end = name.map_or(self.nodes[at].range.end, |name| {
            self.nodes[name].range.start
        });
        let inside = name.is_none_or(|name| {
            !DECLARED.contains(&self.nodes[name].kind) || self.begins_on_one_line(name)
        });
        inside && self.is_one_line(start..end)
    }

    fn is_one_line(&self, range: Range<usize>) -> bool {
        self.text
            .get(range)
            .is_some_and(|text| !text.contains('\n'))
    }

    fn before(&self, at: usize) -> Option<usize> {
        self.beside(at)?.take_while(|other| *other != at).last()
    }

    fn behind(&self, at: usize) -> Option<usize> {
        self.beside(at)?.skip_while(|other| *other != at).nth(1)
    }

    /// The children of the same node, in order; none at the top.
    fn beside(&self, at: usize) -> Option<impl Iterator<Item = usize>> {
        let parent = self.nodes[at].parent;
        let children = self.nodes[parent].children.iter().copied();
        let code = children.filter(|child| !is_comment(self.nodes[*child].kind));
        (parent != at).then_some(code)
    }
}

/// The text without its types, as Node leaves it: blanks of the same width. Nothing for a text that
/// has none.
pub(super) fn bare(syntax: &Syntax<'_>) -> Option<String> {
    let types: Vec<Range<usize>> = (0..syntax.nodes.len())
        .filter(|at| syntax.sorts[*at] != Sort::Code)
        .map(|at| syntax.nodes[at].range.clone())
        .collect();
    let mut text = String::with_capacity(syntax.text.len());
    for range in &types {
        // Types lie in types.
        let Some(code) = syntax.text.get(text.len()..range.start) else {
            continue;
        };
        text.push_str(code);
        text.extend(syntax.slice(range).chars().map(blank));
    }
    text.push_str(syntax.text.get(text.len()..).unwrap_or_default());
    (!types.is_empty()).then_some(text)
}

fn blank(sign: char) -> &'static str {
    match (sign, sign.len_utf8()) {
        ('\n', _) => "\n",
        (_, 1) => " ",
        (_, 2) => "\u{a0}",
        (_, 3) => "\u{2002}",
        _ => "\u{feff} ",
    }
}

/// What a node is called in the key of a token: the same with a type beside it and without.
pub(super) fn plain(kind: &'static str) -> Option<&'static str> {
    match kind {
        "as_expression" | "satisfies_expression" | "non_null_expression" => None,
        "optional_parameter" => Some("required_parameter"),
        "abstract_class_declaration" => Some("class_declaration"),
        kind => Some(kind),
    }
}
