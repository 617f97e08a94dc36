//! Mutants of whole branches and functions: what stands where their first statement does.

use super::Language;
use super::operators::{Finder, is_docstring};
use super::syntax::Syntax;
use crate::mutation::Operator;
use std::ops::Range;

impl Finder<'_> {
    /// A branch that nothing but a pattern or an exception chooses, to the end of the program.
    pub(super) fn branch(&mut self, node: usize) {
        let start = self.range(node).start;
        let first = self.index.line(start);
        let grammar = self.syntax.language.grammar();
        if !self.lines.contains(&first) {
            return;
        }
        if self.syntax.language == Language::Python {
            if let Some(block) = self.syntax.child(node, "block") {
                self.python_body(Operator::Branch, block, grammar.end, 0..0);
            }
            return;
        }
        let after = match self.syntax.part(node, "body") {
            Some(body) if self.syntax.kind(body) == "statement_block" => {
                Some(self.range(body).start + 1)
            }
            _ => self.syntax.child(node, ":").map(|at| self.range(at).end),
        };
        if let Some(after) = after {
            let text = format!(" {}", grammar.end);
            self.offer(Operator::Branch, after..after, text, 0..0);
        }
    }

    /// A function that returns at once.
    pub(super) fn function(&mut self, node: usize) {
        let whole = self.range(node);
        let operator = Operator::FunctionValue;
        let Some(body) = self.syntax.part(node, "body") else {
            return;
        };
        let start = self.range(body).start + 1;
        let block = self
            .syntax
            .language
            .grammar()
            .blocks
            .contains(&self.syntax.kind(body));
        match self.syntax.language {
            Language::Python if block => {
                let yields = self
                    .syntax
                    .within(body)
                    .any(|at| self.syntax.kind(at) == "yield");
                let text = if yields {
                    "return; yield"
                } else {
                    "return None"
                };
                self.python_body(operator, body, text, whole);
            }
            Language::Python | Language::JavaScript | Language::TypeScript if !block => {
                let none = self.syntax.language.grammar().no_value.to_owned();
                self.offer(operator, self.range(body), none, whole);
            }
            _ if self.syntax.inner(body).is_empty() => {}
            Language::JavaScript | Language::TypeScript => {
                self.offer(
                    operator,
                    start..start,
                    " return undefined;".to_owned(),
                    whole,
                );
            }
            Language::C => {
                let declarator = self.syntax.part(node, "declarator");
                let of = self
                    .syntax
                    .part(node, "type")
                    .map(|at| self.syntax.said(at));
                let plain =
                    declarator.is_some_and(|at| self.syntax.kind(at) == "function_declarator");
                let void = of == Some("void") && plain;
                let text = if void { " return;" } else { " return 0;" };
                self.offer(operator, start..start, text.to_owned(), whole);
            }
            _ => {
                let text = format!(" return {};", self.go_results(node));
                self.offer(operator, start..start, text, whole);
            }
        }
    }

    /// A zero value for each result, by the types that the function names.
    fn go_results(&self, node: usize) -> String {
        let Some(result) = self.syntax.part(node, "result") else {
            return String::new();
        };
        let zero = |at: usize| format!("*new({})", self.syntax.said(at));
        if self.syntax.kind(result) != "parameter_list" {
            return zero(result);
        }
        let mut values = Vec::new();
        for declared in self.syntax.inner(result) {
            let Some(of) = self.syntax.part(declared, "type") else {
                continue;
            };
            let children = self.syntax.nodes[declared].children.iter();
            let names = children
                .filter(|at| self.syntax.nodes[**at].field == "name")
                .count();
            values.extend(std::iter::repeat_n(zero(of), names.max(1)));
        }
        values.join(", ")
    }

    /// Puts a statement before a block's first, or in the place of all if that one has a block too.
    fn python_body(&mut self, operator: Operator, block: usize, text: &str, covers: Range<usize>) {
        let inner = self.syntax.inner(block);
        let mut statements = inner
            .into_iter()
            .filter(|at| !is_docstring(self.syntax, *at));
        let first = statements.next();
        let simple = first.filter(|at| is_simple(self.syntax, *at));
        match (simple, first) {
            (Some(at), _) => {
                let start = self.range(at).start;
                self.offer(operator, start..start, format!("{text}; "), covers);
            }
            (None, Some(at)) => {
                let rest = self.range(at).start..self.range(block).end;
                let lines = self.syntax.slice(&rest).matches('\n').count();
                let text = format!("{text}{}", "\n".repeat(lines));
                self.offer(operator, rest, text, covers);
            }
            (None, None) => {}
        }
    }
}

/// Whether a statement of Python has no block: others may stand before it on its line.
pub(super) fn is_simple(syntax: &Syntax<'_>, node: usize) -> bool {
    let kind = syntax.kind(node);
    let others = [
        "future_import_statement",
        "decorated_definition",
        "class_definition",
    ];
    (kind.ends_with("_statement") && syntax.child(node, "block").is_none())
        && !others.contains(&kind)
        && !matches!(
            kind,
            "match_statement" | "if_statement" | "try_statement" | "with_statement"
        )
}
