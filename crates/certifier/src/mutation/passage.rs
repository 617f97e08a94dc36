//! Whether a case gets there: branches, and stretches of statements that run as a whole.

use std::ops::Range;

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Block, Expr, Stmt};

use super::choice::{is_variant, opens_with_dead_end, starts_with_dead_end};
use super::operator::Operator;
use super::plan::Purpose;
use super::survey::{Else, Survey};
use super::syntax::{is_dead_end, known_macro, shown, standard_name};
use super::walker::{Offer, Walker};

impl Walker<'_> {
    /// A branch chosen by a pattern. `pattern` is what it is named by.
    pub(super) fn branch(&mut self, pattern: Range<usize>, taken: &Expr) {
        match taken {
            Expr::Block(node) if node.attrs.is_empty() && node.label.is_none() => {
                self.branch_block(pattern, &node.block);
            }
            Expr::Macro(node) if is_dead_end(&node.mac) => {}
            Expr::Unsafe(_) => {}
            _ => {
                let offer = self.end_of(pattern.start, shown(self.slice(pattern)));
                self.region(taken.span().byte_range(), offer);
            }
        }
    }

    pub(super) fn branch_block(&mut self, pattern: Range<usize>, block: &Block) {
        if opens_with_dead_end(block) {
            return;
        }
        let offer = self.end_of(pattern.start, shown(self.slice(pattern)));
        self.reach(beginning(block), block.span().byte_range(), offer);
    }

    /// Each stretch of a block's statements that holds a changed line: no statement before its last
    /// one leaves the block. What runs the block shows only that its first stretch is reached.
    pub(super) fn stretches(&mut self, block: &Block) {
        if self.purpose != Purpose::Gate {
            return;
        }
        if block.stmts.is_empty() {
            let named = block.span().byte_range();
            let offer = self.end_of(named.start, shown(self.slice(named.clone())));
            self.reach(beginning(block), named, offer);
        }
        let mut stretch: Vec<&Stmt> = Vec::new();
        let mut before = None;
        for stmt in &block.stmts {
            stretch.push(stmt);
            if leaves(stmt) {
                self.stretch(before, &stretch);
                stretch.clear();
                before = Some(stmt);
            }
        }
        self.stretch(before, &stretch);
    }

    /// One stretch. A changed choice before it counts as a line of it: this is its other side.
    fn stretch(&mut self, before: Option<&Stmt>, stretch: &[&Stmt]) {
        let chosen = before.filter(|stmt| matches!(stmt, Stmt::Local(local) if diverges(local)));
        let chosen = chosen.map(|stmt| stmt.span().byte_range());
        let (first, last) = match (stretch, &chosen) {
            ([first, .., last], _) => (first.span().byte_range(), last.span().byte_range()),
            ([only], _) => (only.span().byte_range(), only.span().byte_range()),
            ([], Some(chosen)) => (chosen.end..chosen.end, chosen.end..chosen.end),
            ([], None) => return,
        };
        if stretch
            .first()
            .is_some_and(|stmt| starts_with_dead_end(stmt))
        {
            return;
        }
        let span = chosen.as_ref().map_or(first.start, |c| c.start)..last.end;
        let named = if first.is_empty() {
            span.clone()
        } else {
            first.clone()
        };
        let offer = self.end_of(first.start, shown(self.slice(named)));
        self.reach(first.start, span, offer);
    }

    /// The side of `if let` and `while let` that is not written.
    pub(super) fn not_taken(
        &mut self,
        condition: &Expr,
        block: &Block,
        looping: Option<Range<usize>>,
    ) {
        let condition = condition.span().byte_range();
        let named = format!("else of {}", shown(self.slice(condition.clone())));
        let offer = self.end_of(condition.start, named);
        if self.purpose != Purpose::Gate
            || !self.index.touches(&condition, self.changed)
            || !self.room(&offer)
        {
            return;
        }
        let close = block.brace_token.span.close().byte_range();
        let alternative = self.alternative(condition, offer);
        let other = Else {
            alternative,
            looping,
        };
        self.survey.elses.insert(close.start, other);
    }

    /// `else if let` of the same value as before it, for another variant and no value in it: that none
    /// of them fits is often no case at all.
    pub(super) fn note_rest(&mut self, before: &Expr, next: &syn::ExprIf) {
        let (Expr::Let(first), Expr::Let(second)) = (before, &*next.cond) else {
            return;
        };
        let asked = |of: &syn::ExprLet| self.slice(of.expr.span().byte_range()).to_owned();
        if asked(first) == asked(second) && is_variant(&second.pat) {
            self.rests.insert(next.span().byte_range().start);
        }
    }

    /// The end of the program at the start of some statements, unless something there shows already
    /// that they are reached.
    fn reach(&mut self, at: usize, span: Range<usize>, offer: Offer) {
        let known = self.survey.entries.contains_key(&at);
        if known || !self.index.touches(&span, self.changed) || !self.room(&offer) {
            return;
        }
        let alternative = self.alternative(span, offer);
        self.survey.entries.insert(at, vec![alternative]);
    }

    pub(super) fn end_of(&self, at: usize, original: String) -> Offer {
        Offer {
            operator: Operator::Branch,
            at,
            original,
            replacement: "end".to_owned(),
            code: format!("::{}::end()", self.guard),
            own: None,
        }
    }
}

impl Survey {
    /// Leaves out what stands in for other values of a function, where one of them `lives`.
    pub(super) fn drop_fallbacks(&mut self, lives: impl Fn(&super::survey::Alternative) -> bool) {
        for entry in self.entries.values_mut() {
            let mut values = entry.iter().filter(|value| !value.fallback);
            if values.any(&lives) {
                entry.retain(|value| !value.fallback);
            }
        }
    }
}

/// Where the statements of a block begin: behind inner attributes, which must stay first.
fn beginning(block: &Block) -> usize {
    let inside = block.brace_token.span.open().byte_range().end;
    let first = block.stmts.first();
    first.map_or(inside, |first| first.span().byte_range().start)
}

fn diverges(local: &syn::Local) -> bool {
    local
        .init
        .as_ref()
        .is_some_and(|init| init.diverge.is_some())
}

/// Whether the statements behind this one may not be reached although it was.
fn leaves(stmt: &Stmt) -> bool {
    let mut seen = Exits::default();
    seen.visit_stmt(stmt);
    seen.any
}

/// Ways out of a statement. A loop keeps those that only leave the loop.
#[derive(Default)]
struct Exits {
    any: bool,
    loops: usize,
}

impl Exits {
    fn leaves(&mut self, label: Option<&syn::Lifetime>) {
        self.any |= self.loops == 0 || label.is_some();
    }

    fn inside(&mut self, visit: impl FnOnce(&mut Self)) {
        self.loops += 1;
        visit(self);
        self.loops -= 1;
    }
}

impl<'ast> Visit<'ast> for Exits {
    fn visit_expr_try(&mut self, _: &'ast syn::ExprTry) {
        self.any = true;
    }
    fn visit_expr_return(&mut self, _: &'ast syn::ExprReturn) {
        self.any = true;
    }
    fn visit_expr_break(&mut self, node: &'ast syn::ExprBreak) {
        self.leaves(node.label.as_ref());
        visit::visit_expr_break(self, node);
    }
    fn visit_expr_continue(&mut self, node: &'ast syn::ExprContinue) {
        self.leaves(node.label.as_ref());
    }
    fn visit_expr_loop(&mut self, node: &'ast syn::ExprLoop) {
        self.inside(|seen| visit::visit_expr_loop(seen, node));
    }
    fn visit_expr_while(&mut self, node: &'ast syn::ExprWhile) {
        self.inside(|seen| visit::visit_expr_while(seen, node));
    }
    fn visit_expr_for_loop(&mut self, node: &'ast syn::ExprForLoop) {
        self.inside(|seen| visit::visit_expr_for_loop(seen, node));
    }
    // Their bodies run elsewhere.
    fn visit_expr_closure(&mut self, _: &'ast syn::ExprClosure) {}
    fn visit_expr_async(&mut self, _: &'ast syn::ExprAsync) {}
    fn visit_item(&mut self, _: &'ast syn::Item) {}
    fn visit_macro(&mut self, node: &'ast syn::Macro) {
        let known = standard_name(&node.path).is_some_and(|name| known_macro(&name).is_some());
        self.any |= !known || may_leave(&node.tokens);
    }
}

/// Whether the arguments of a macro may hold a way out.
fn may_leave(tokens: &TokenStream) -> bool {
    let mut open = vec![tokens.clone()];
    while let Some(stream) = open.pop() {
        for token in stream {
            match token {
                TokenTree::Group(group) => open.push(group.stream()),
                TokenTree::Punct(mark) if mark.as_char() == '?' => return true,
                TokenTree::Ident(word) if word == "return" || word == "break" => return true,
                _ => {}
            }
        }
    }
    false
}
