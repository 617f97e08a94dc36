//! The mutants of one file: stretches of bytes and what stands there instead.

use super::Language;
use super::numbers::{bits, floats, integers, is_row};
use super::pieces;
use super::syntax::Syntax;
use super::types::Sort;
use crate::mutation::{LineIndex, Operator};
use flightproof_core::escape;
use std::collections::BTreeSet;
use std::ops::Range;

/// Longest text of a mutant that people are shown, bytes.
const MAX_SHOWN: usize = 60;

/// Most mutants of one place: of these none is made twice.
const MOST_ALIKE: usize = 160;

/// One mutant.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) operator: Operator,
    /// The bytes that are replaced.
    pub(super) span: Range<usize>,
    /// By what.
    pub(super) text: String,
    /// What people read.
    pub(super) original: String,
    pub(super) replacement: String,
    /// The statement it belongs to.
    pub(super) statement: Option<usize>,
    /// The bytes it stands for beside that: what is left out, a branch, a function.
    pub(super) covers: Range<usize>,
    /// Names of the functions around it.
    pub(super) function: String,
}

/// Every mutant that touches one of these lines, outside of the nodes in which none is made; no more
/// than the first node beyond `most` has.
pub(super) fn found(
    syntax: &Syntax<'_>,
    lines: &BTreeSet<u32>,
    hidden: &BTreeSet<usize>,
    most: usize,
) -> Vec<Found> {
    let mut finder = Finder {
        syntax,
        index: LineIndex::of(syntax.text),
        lines,
        hidden,
        found: Vec::new(),
    };
    for node in 0..syntax.nodes.len() {
        if finder.found.len() > most {
            break;
        }
        if finder.touches(node) && !finder.is_placed(node) {
            finder.node(node);
        }
    }
    finder.found
}

/// The innermost statement that a node is, or is part of.
pub(super) fn statement_of(syntax: &Syntax<'_>, node: usize) -> Option<usize> {
    let statements = syntax.language.grammar().statements;
    std::iter::once(node)
        .chain(syntax.around(node))
        .find(|at| statements.contains(&syntax.kind(*at)))
}

/// Whether a statement only says what the code around it is for.
pub(super) fn is_docstring(syntax: &Syntax<'_>, node: usize) -> bool {
    let parent = syntax.nodes[node].parent;
    let Some(owner) = Some(parent).filter(|_| syntax.language == Language::Python) else {
        return false;
    };
    let text = || {
        let only = syntax.inner(node);
        matches!(only.as_slice(), [one] if
            matches!(syntax.kind(*one), "string" | "concatenated_string")
                && syntax.within(*one).all(|at| syntax.kind(at) != "interpolation"))
    };
    let documented = match syntax.kind(owner) {
        "module" => true,
        "block" => {
            let of = syntax.nodes[owner].parent;
            matches!(syntax.kind(of), "function_definition" | "class_definition")
        }
        _ => false,
    };
    let first = || syntax.first_inner(owner) == Some(node);
    syntax.kind(node) == "expression_statement" && documented && first() && text()
}

pub(super) struct Finder<'a> {
    pub(super) syntax: &'a Syntax<'a>,
    pub(super) index: LineIndex,
    pub(super) lines: &'a BTreeSet<u32>,
    hidden: &'a BTreeSet<usize>,
    found: Vec<Found>,
}

impl Finder<'_> {
    fn touches(&self, node: usize) -> bool {
        let range = &self.syntax.nodes[node].range;
        !range.is_empty() && self.index.touches(range, self.lines)
    }

    /// Whether a rule of its own says of the place that no mutant can show what it does.
    fn is_placed(&self, node: usize) -> bool {
        let named = ["import_spec", "preproc_include"];
        let typed = self.syntax.sorts[node] != Sort::Code;
        typed
            || std::iter::once(node)
                .chain(self.syntax.around(node))
                .any(|at| self.hidden.contains(&at) || named.contains(&self.syntax.kind(at)))
    }

    fn node(&mut self, node: usize) {
        let grammar = self.syntax.language.grammar();
        let kind = self.syntax.kind(node);
        let one_of = |kinds: &[&str]| kinds.contains(&kind);
        if one_of(grammar.binaries) {
            self.binary(node);
        }
        if one_of(grammar.compounds) {
            self.swap(node, Operator::Compound);
            self.unassigned(node);
        }
        if one_of(grammar.unaries) {
            self.unary(node);
        }
        if kind == "update_expression" {
            self.update(node);
        }
        if one_of(grammar.choices) {
            self.choice(node);
        }
        if one_of(grammar.loops) {
            self.repeat(node);
        }
        self.iterated(node);
        self.literal(node);
        if let Some((_, field)) = grammar.bindings.iter().find(|(of, _)| *of == kind) {
            self.binding(node, field);
        }
        if kind == "return_statement" {
            self.returned(node);
        }
        if one_of(grammar.removable) && self.stands_alone(node) {
            self.removed(node);
        }
        if one_of(grammar.branches) {
            self.branch(node);
        }
        if one_of(grammar.functions) || kind == "lambda" {
            self.function(node);
        }
    }

    pub(super) fn offer(
        &mut self,
        operator: Operator,
        span: Range<usize>,
        text: String,
        covers: Range<usize>,
    ) {
        let said = shown(&text);
        self.offer_as(operator, span, (text, said), covers);
    }

    /// The same, where people read something else than the text.
    fn offer_as(
        &mut self,
        operator: Operator,
        span: Range<usize>,
        (text, said): (String, String),
        covers: Range<usize>,
    ) {
        let own = self.syntax.slice(&span);
        if own.trim() == text.trim() {
            return;
        }
        let node = self.at(&span);
        let found = Found {
            operator,
            original: shown(own),
            replacement: said,
            statement: statement_of(self.syntax, node),
            function: self.function_of(node),
            span,
            text,
            covers,
        };
        let same = |known: &Found| known.span == found.span && known.text == found.text;
        if !self.found.iter().rev().take(MOST_ALIKE).any(same) {
            self.found.push(found);
        }
    }

    /// The outermost node that begins where a stretch does.
    fn at(&self, span: &Range<usize>) -> usize {
        let nodes = &self.syntax.nodes;
        let deepest = nodes.partition_point(|node| node.range.start <= span.start);
        let mut at = deepest.saturating_sub(1);
        while nodes[at].range.end < span.end && nodes[at].parent != at {
            at = nodes[at].parent;
        }
        at
    }

    fn function_of(&self, node: usize) -> String {
        let functions = self.syntax.language.grammar().functions;
        let around = std::iter::once(node).chain(self.syntax.around(node));
        let names = around
            .filter(|at| functions.contains(&self.syntax.kind(*at)))
            .map(|at| name_of(self.syntax, at));
        let mut names: Vec<String> = names.collect();
        names.reverse();
        names.join("::")
    }

    pub(super) fn range(&self, node: usize) -> Range<usize> {
        self.syntax.nodes[node].range.clone()
    }

    /// Every operator of an expression to its neighbours; a logical one to its sides too.
    fn binary(&mut self, node: usize) {
        let said: Vec<&str> = self
            .operators(node)
            .map(|at| self.syntax.said(at))
            .collect();
        self.swap(node, Operator::Arithmetic);
        let (family, sides): (_, &[&str]) = match said.as_slice() {
            ["&&" | "||" | "??" | "and" | "or"] => (Operator::Logical, &["left", "right"]),
            ["&" | "|" | "^" | "&^"] => (Operator::Arithmetic, &["left", "right"]),
            // A remainder of what is smaller is that itself.
            ["<<" | ">>" | ">>>" | "%"] => (Operator::Arithmetic, &["left"]),
            _ => return,
        };
        for side in sides {
            if let Some(side) = self.syntax.part(node, side) {
                let text = format!("({})", self.syntax.said(side));
                self.offer(family, self.range(node), text, 0..0);
            }
        }
    }

    /// An assignment whose value is used becomes what it assigns to: a remainder or a mask of what is
    /// smaller is that itself. As a statement it is left out; Go and Python know it as one alone.
    fn unassigned(&mut self, node: usize) {
        let parent = self.syntax.nodes[node].parent;
        let alone = matches!(self.syntax.language, Language::Go | Language::Python);
        if alone || self.syntax.kind(parent) == "expression_statement" {
            return;
        }
        let cutting = ["%=", "&=", "|=", "^=", "<<=", ">>=", ">>>="];
        let cuts = self
            .operators(node)
            .any(|at| cutting.contains(&self.syntax.said(at)));
        if let (true, Some(left)) = (cuts, self.syntax.part(node, "left")) {
            let text = format!("({})", self.syntax.said(left));
            self.offer(Operator::Compound, self.range(node), text, 0..0);
        }
    }

    /// Whether a number is what an operator on bits works on. A distance is a plain number.
    fn is_operand_of_bits(&self, node: usize) -> bool {
        let grammar = self.syntax.language.grammar();
        let mut at = node;
        let mut parent = self.syntax.nodes[at].parent;
        while self.syntax.kind(parent) == "parenthesized_expression"
            || grammar.unaries.contains(&self.syntax.kind(parent))
        {
            (at, parent) = (parent, self.syntax.nodes[parent].parent);
        }
        // Go has lists on both sides of an assignment.
        if self.syntax.kind(parent) == "expression_list" {
            (at, parent) = (parent, self.syntax.nodes[parent].parent);
        }
        let kind = self.syntax.kind(parent);
        if !grammar.binaries.contains(&kind) && !grammar.compounds.contains(&kind) {
            return false;
        }
        let field = self.syntax.nodes[at].field;
        self.operators(parent).any(|of| match self.syntax.said(of) {
            "&" | "|" | "^" | "&^" => true,
            "<<" | ">>" | ">>>" => field == "left",
            "&=" | "|=" | "^=" | "&^=" => field == "right",
            _ => false,
        })
    }

    fn operators(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        let children = self.syntax.nodes[node].children.iter().copied();
        children.filter(|at| matches!(self.syntax.nodes[*at].field, "operator" | "operators"))
    }

    fn swap(&mut self, node: usize, family: Operator) {
        let operators: Vec<usize> = self.operators(node).collect();
        for at in operators {
            let said = self.syntax.said(at);
            let swaps = self.syntax.language.grammar().swaps.iter();
            let Some((_, others)) = swaps.clone().find(|(own, _)| *own == said) else {
                continue;
            };
            let family = match said {
                "<" | "<=" | ">" | ">=" => Operator::Relational,
                "==" | "!=" | "===" | "!==" | "is" | "is not" | "in" | "not in" => {
                    Operator::Equality
                }
                "&&" | "||" | "??" | "and" | "or" => Operator::Logical,
                _ => family,
            };
            for other in *others {
                self.offer(family, self.range(at), format!(" {other} "), 0..0);
            }
        }
    }

    fn unary(&mut self, node: usize) {
        let children = &self.syntax.nodes[node].children;
        let (Some(operator), Some(operand)) = (children.first(), children.last()) else {
            return;
        };
        if matches!(self.syntax.said(*operator), "!" | "not" | "-" | "~" | "^") {
            let text = format!("({})", self.syntax.said(*operand));
            self.offer(Operator::UnaryDelete, self.range(node), text, 0..0);
        }
    }

    fn update(&mut self, node: usize) {
        if matches!(self.syntax.nodes[node].field, "update" | "increment") {
            return;
        }
        for at in self.operators(node).collect::<Vec<_>>() {
            let other = if self.syntax.said(at) == "++" {
                "--"
            } else {
                "++"
            };
            self.offer(Operator::Compound, self.range(at), other.to_owned(), 0..0);
        }
    }

    /// A condition to true and to false. What it does beside is still done.
    fn choice(&mut self, node: usize) {
        let Some(condition) = self.condition(node) else {
            return;
        };
        for truth in [true, false] {
            self.forced(node, condition, truth);
        }
    }

    /// A loop that is not entered, or not again. One that never ends would say no more.
    fn repeat(&mut self, node: usize) {
        let clause = self.syntax.child(node, "for_clause").unwrap_or(node);
        if let Some(condition) = self.condition(clause) {
            self.forced(node, condition, false);
        }
    }

    fn condition(&self, node: usize) -> Option<usize> {
        let inner = self.syntax.inner(node);
        let found = match self.syntax.kind(node) {
            "conditional_expression" if self.syntax.language == Language::Python => {
                inner.get(1).copied()
            }
            "if_clause" => inner.first().copied(),
            "for_statement" if self.syntax.language == Language::Go => {
                let first = inner.first().copied();
                first.filter(|at| {
                    !matches!(
                        self.syntax.kind(*at),
                        "block" | "for_clause" | "range_clause"
                    )
                })
            }
            _ => self.syntax.part(node, "condition"),
        };
        // Its brackets belong to the statement.
        found.map(|at| match self.syntax.kind(at) {
            "parenthesized_expression" => self.syntax.inner(at).first().copied().unwrap_or(at),
            _ => at,
        })
    }

    fn forced(&mut self, node: usize, condition: usize, truth: bool) {
        if !self.touches(condition) {
            return;
        }
        let grammar = self.syntax.language.grammar();
        let (yes, no) = grammar.booleans;
        let (or, and) = match self.syntax.language {
            Language::Python => ("or", "and"),
            _ => ("||", "&&"),
        };
        let said = self.syntax.said(condition);
        let text = match truth {
            true => format!("(({said}) {or} {yes})"),
            false => format!("(({said}) {and} {no})"),
        };
        let whole = self.range(node);
        self.offer(Operator::Condition, self.range(condition), text, whole);
    }

    /// A loop over something, over nothing.
    fn iterated(&mut self, node: usize) {
        let over = match (self.syntax.language, self.syntax.kind(node)) {
            (Language::Python, "for_statement")
            | (Language::JavaScript | Language::TypeScript, "for_in_statement") => {
                self.syntax.part(node, "right")
            }
            _ => None,
        };
        if let Some(over) = over.filter(|over| self.touches(*over)) {
            let whole = self.range(node);
            self.offer(
                Operator::Condition,
                self.range(over),
                "[]".to_owned(),
                whole,
            );
        }
    }

    fn literal(&mut self, node: usize) {
        let grammar = self.syntax.language.grammar();
        let (kind, said) = (self.syntax.kind(node), self.syntax.said(node));
        let parent = self.syntax.kind(self.syntax.nodes[node].parent);
        let mut others: Vec<(Operator, String)> = Vec::new();
        if grammar.integers.contains(&kind) {
            let all = integers(self.syntax.language, said).into_iter();
            others.extend(all.map(|other| (Operator::IntegerLiteral, other)));
            if is_row(self.syntax.language, said) || self.is_operand_of_bits(node) {
                let all = bits(self.syntax.language, said).into_iter();
                others.extend(all.map(|other| (Operator::IntegerLiteral, other)));
            }
        }
        if grammar.floats.contains(&kind) && others.is_empty() {
            let all = floats(said).into_iter();
            others.extend(all.map(|other| (Operator::PlainLiteral, other)));
        }
        if grammar.characters.contains(&kind) {
            let other = if said == "'x'" { "'~'" } else { "'x'" };
            others.push((Operator::PlainLiteral, other.to_owned()));
        }
        if matches!(kind, "true" | "false") {
            let other = match said {
                "true" => "false",
                "false" => "true",
                "True" => "False",
                "False" => "True",
                _ => return,
            };
            others.push((Operator::BoolLiteral, other.to_owned()));
        }
        let documents = parent == "expression_statement"
            && is_docstring(self.syntax, self.syntax.nodes[node].parent);
        let text = grammar.strings.contains(&kind) && !documents;
        if text && parent != "concatenated_string" {
            others.extend(text_literal(said).map(|other| (Operator::StringLiteral, other)));
        }
        for (operator, other) in others {
            self.offer(operator, self.range(node), other, 0..0);
        }
        if text && kind != "concatenated_string" {
            for other in pieces::of(self.syntax, node) {
                self.offer_as(Operator::StringLiteral, self.range(node), other, 0..0);
            }
        }
    }

    /// A value that has no mutant of its own, to none.
    fn binding(&mut self, node: usize, field: &str) {
        let grammar = self.syntax.language.grammar();
        let Some(value) = self.syntax.part(node, field) else {
            return;
        };
        let plain = self.syntax.within(value).all(|at| {
            let kind = self.syntax.kind(at);
            let lists = [
                grammar.integers,
                grammar.floats,
                grammar.characters,
                grammar.strings,
                grammar.binaries,
                grammar.unaries,
                grammar.choices,
            ];
            !lists.iter().any(|list| list.contains(&kind)) && !matches!(kind, "true" | "false")
        });
        let unfit = matches!(self.syntax.kind(value), "initializer_list" | "assignment");
        let function = grammar.functions.contains(&self.syntax.kind(value));
        let assigns = self.operators(node).all(|at| self.syntax.said(at) == "=");
        if plain && assigns && !unfit && !function && !grammar.no_value.is_empty() {
            let none = grammar.no_value.to_owned();
            self.offer(Operator::AssignedValue, self.range(value), none, 0..0);
        }
    }

    fn returned(&mut self, node: usize) {
        let grammar = self.syntax.language.grammar();
        match self.syntax.inner(node).first() {
            Some(value) if !grammar.no_value.is_empty() => {
                let none = grammar.no_value.to_owned();
                self.offer(Operator::ReturnValue, self.range(*value), none, 0..0);
            }
            Some(_) => {}
            None => self.removed(node),
        }
    }

    /// Whether a statement stands where another one may.
    fn stands_alone(&self, node: usize) -> bool {
        let found = &self.syntax.nodes[node];
        let part = [
            "initializer",
            "update",
            "increment",
            "condition",
            "value",
            "communication",
        ];
        !part.contains(&found.field) && self.syntax.kind(found.parent) != "for_clause"
    }

    fn removed(&mut self, node: usize) {
        if is_docstring(self.syntax, node) {
            return;
        }
        let range = self.range(node);
        let nothing = match self.syntax.kind(node) {
            "decorator" => "",
            _ => self.syntax.language.grammar().nothing,
        };
        self.offer(
            Operator::StatementDelete,
            range.clone(),
            nothing.to_owned(),
            range.clone(),
        );
        let said = self.syntax.said(node);
        let other = match self.syntax.kind(node) {
            "break_statement" => said.replacen("break", "continue", 1),
            "continue_statement" => said.replacen("continue", "break", 1),
            _ => return,
        };
        self.offer(Operator::Jump, range.clone(), other, range);
    }
}

fn shown(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    match words.is_empty() {
        true => "nothing".to_owned(),
        false => escape(words.join(" "), MAX_SHOWN),
    }
}

/// What a function is called.
pub(super) fn name_of(syntax: &Syntax<'_>, node: usize) -> String {
    let mut at = syntax
        .part(node, "name")
        .or_else(|| syntax.part(node, "declarator"));
    while let Some(inner) = at.and_then(|at| syntax.part(at, "declarator")) {
        at = Some(inner);
    }
    at.map_or_else(String::new, |at| syntax.said(at).to_owned())
}

/// Another text of the same kind.
fn text_literal(said: &str) -> Option<String> {
    let quote = said.find(['"', '\'', '`'])?;
    let prefix: String = said
        .get(..quote)?
        .chars()
        .filter(|c| !"fFrRtT".contains(*c))
        .collect();
    let empty = said.get(quote..)?.trim_matches(['"', '\'', '`']).is_empty();
    Some(format!("{prefix}\"{}\"", if empty { "xyzzy" } else { "" }))
}
