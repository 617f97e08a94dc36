//! What a piece of syntax can decide without a mutant noticing.

use std::collections::HashMap;

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, BinOp, Block, Expr, Pat, Stmt, Token, UnOp};

use super::operator::Operator;
use super::survey::{EffectForm, Silence};
use super::syntax::{is_dead_end, plain, shown};
use super::walker::{Offer, Walker};

/// Attributes that change what a reader or a lint sees, or that other rules judge: `derive` by the
/// names of [`super::names`], `test` by its tripwire. Not `cfg(test)`: before a statement it takes a
/// check out of the program.
pub(crate) const INERT: &[&str] = &[
    "doc",
    "allow",
    "warn",
    "deny",
    "expect",
    "forbid",
    "inline",
    "cold",
    "must_use",
    "deprecated",
    "non_exhaustive",
    "rustfmt",
    "clippy",
    "test",
    "bench",
    "ignore",
    "should_panic",
    "derive",
];

/// Whether an attribute cannot change the program.
pub(super) fn is_inert(attribute: &Attribute) -> bool {
    let first = attribute.path().segments.first();
    first.is_some_and(|s| INERT.contains(&s.ident.to_string().as_str()))
}

/// Whether a pattern is one choice: if its branch is taken, every literal in it was met.
pub(super) fn is_single(pattern: &Pat) -> bool {
    let mut seen = Choices::default();
    seen.visit_pat(pattern);
    !seen.several
}

/// Whether a pattern asks for a variant, and for no value in it.
pub(super) fn is_variant(pattern: &Pat) -> bool {
    let mut seen = Choices::default();
    seen.visit_pat(pattern);
    let of_enum = matches!(pattern, Pat::TupleStruct(_) | Pat::Struct(_));
    of_enum && !seen.several && !seen.refutable
}

#[derive(Default)]
struct Choices {
    several: bool,
    refutable: bool,
}

impl<'ast> Visit<'ast> for Choices {
    fn visit_pat(&mut self, node: &'ast Pat) {
        match node {
            Pat::Or(_) | Pat::Range(_) | Pat::Macro(_) | Pat::Verbatim(_) => self.several = true,
            Pat::Lit(_) | Pat::Path(_) | Pat::Const(_) | Pat::Slice(_) => self.refutable = true,
            // Whether a name binds or is one of a constant, only the compiler knows.
            Pat::Ident(name) if name.subpat.is_none() => {
                self.refutable |= is_constant(&plain(&name.ident));
            }
            _ => {}
        }
        visit::visit_pat(self, node);
    }
}

/// A pattern that everything meets: `_`, or a name for it. A name that begins with a capital is a
/// constant's.
fn is_catch_all(pattern: &Pat) -> bool {
    match pattern {
        Pat::Wild(_) => true,
        Pat::Ident(name) => {
            let small = plain(&name.ident).starts_with(|c: char| c.is_lowercase() || c == '_');
            small && name.subpat.is_none()
        }
        _ => false,
    }
}

/// Whether the branch a pattern chooses has a mutant that shows that it is taken.
pub(super) fn has_branch(taken: &Expr) -> bool {
    match taken {
        Expr::Block(node) => !opens_with_dead_end(&node.block),
        Expr::Macro(node) => !is_dead_end(&node.mac),
        Expr::Unsafe(_) => false,
        _ => true,
    }
}

/// Whether nothing but a panic is done in a block: reaching it has no mutant.
pub(super) fn opens_with_dead_end(block: &Block) -> bool {
    block.stmts.first().is_some_and(starts_with_dead_end)
}

pub(super) fn starts_with_dead_end(stmt: &Stmt) -> bool {
    match stmt {
        Stmt::Macro(only) => is_dead_end(&only.mac),
        Stmt::Expr(Expr::Macro(only), _) => is_dead_end(&only.mac),
        _ => false,
    }
}

/// Whether a `matches!` asks for one choice, without a guard.
pub(super) fn is_single_match(tokens: &TokenStream) -> bool {
    use syn::parse::{ParseStream, Parser};
    let one = |input: ParseStream<'_>| {
        input.parse::<Expr>()?;
        input.parse::<Token![,]>()?;
        let pattern = Pat::parse_multi_with_leading_vert(input)?;
        input.parse::<Option<Token![,]>>()?;
        Ok(is_single(&pattern))
    };
    one.parse2(tokens.clone()).unwrap_or(false)
}

/// Whether an expression statement may be there for its effect. What decides about control is
/// mutated by its conditions and branches, and what prints is seen by every case.
pub(super) fn is_effect(expr: &Expr) -> bool {
    match expr {
        Expr::Call(_) | Expr::MethodCall(_) | Expr::Assign(_) | Expr::Await(_) => true,
        Expr::Binary(node) => !matches!(
            node.op,
            BinOp::And(_) | BinOp::Or(_) | BinOp::Eq(_) | BinOp::Ne(_)
        ),
        Expr::Try(node) => is_effect(&node.expr) || matches!(&*node.expr, Expr::Macro(_)),
        _ => false,
    }
}

/// Methods that answer yes or no, whatever they are asked of.
const ASKING: &[&str] = &[
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "contains",
    "contains_key",
    "starts_with",
    "ends_with",
    "any",
    "all",
    "exists",
    "try_exists",
    "eq_ignore_ascii_case",
];

/// Whether a call chooses like a condition: its answer can be a constant.
pub(super) fn asks(name: &str) -> bool {
    ASKING.contains(&name) || name.starts_with("is_")
}

/// Methods whose answer may as well be what they are asked of, or an argument.
const BOUNDING: &[&str] = &[
    "min",
    "max",
    "clamp",
    "rem",
    "rem_euclid",
    "wrapping_rem",
    "wrapping_rem_euclid",
    "strict_rem",
    "strict_rem_euclid",
    "bitand",
    "bitor",
    "bitxor",
];

/// Whether a call bounds a value.
pub(super) fn bounds(name: &str) -> bool {
    BOUNDING.contains(&name)
}

/// What a remainder in another form is where it changes nothing: a call of this name, of this.
pub(super) fn unchanged(name: &str, of: &str) -> Option<String> {
    match name {
        "checked_rem" | "checked_rem_euclid" => Some(format!("::core::option::Option::Some({of})")),
        "overflowing_rem" | "overflowing_rem_euclid" => Some(format!("(({of}), false)")),
        _ => None,
    }
}

/// Methods that make an option of something, or keep one only sometimes.
const KEEPING: &[&str] = &["then_some", "then", "filter", "and_then", "xor", "zip"];

/// Whether the answer of a call may as well be nothing.
pub(super) fn keeps(name: &str) -> bool {
    KEEPING.contains(&name) || name.starts_with("checked_")
}

/// Whether a name is one of a constant: `MAX`, `UNIT_PRICE`.
pub(super) fn is_constant(name: &str) -> bool {
    name.len() > 1
        && name.starts_with(|c: char| c.is_ascii_uppercase())
        && name
            .chars()
            .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

/// Methods without arguments that every reader knows to change nothing.
const QUIET: &[&str] = &[
    "len",
    "is_empty",
    "is_some",
    "is_none",
    "is_ok",
    "is_err",
    "is_ascii",
    "is_sorted",
    "abs",
];

/// Whether the arguments of a debug assertion only compare: then the program without it does the
/// same wherever the assertion holds.
pub(super) fn is_quiet_call(tokens: &TokenStream) -> bool {
    use syn::parse::Parser;
    syn::punctuated::Punctuated::<Expr, Token![,]>::parse_terminated
        .parse2(tokens.clone())
        .is_ok_and(|all| all.iter().all(is_quiet))
}

fn is_quiet(expr: &Expr) -> bool {
    match expr {
        Expr::Lit(_) | Expr::Path(_) => true,
        Expr::Paren(node) => is_quiet(&node.expr),
        Expr::Field(node) => is_quiet(&node.base),
        Expr::Reference(node) => node.mutability.is_none() && is_quiet(&node.expr),
        Expr::Cast(node) => is_quiet(&node.expr),
        Expr::Unary(node) => !matches!(node.op, UnOp::Deref(_)) && is_quiet(&node.expr),
        Expr::Binary(node) => {
            let compared = super::operator::binary(&node.op);
            let assigns = compared.is_some_and(|(o, ..)| o == super::Operator::Compound);
            !assigns && is_quiet(&node.left) && is_quiet(&node.right)
        }
        Expr::MethodCall(node) => {
            node.args.is_empty()
                && QUIET.contains(&node.method.to_string().as_str())
                && is_quiet(&node.receiver)
        }
        _ => false,
    }
}

impl Walker<'_> {
    /// A pattern whose branch has no mutant of its own.
    pub(super) fn chosen_unseen(&mut self, pattern: &Pat) {
        let mut seen = Choices::default();
        seen.visit_pat(pattern);
        if seen.refutable && !seen.several {
            self.silence(pattern.span().byte_range(), Silence::Pattern);
        }
    }

    /// Arms without a guard that an arm behind them, which takes everything, would stand in for.
    pub(super) fn arms_left_out(&mut self, node: &syn::ExprMatch) {
        let takes_all = |arm: &syn::Arm| arm.guard.is_none() && is_catch_all(&arm.pat);
        let Some(last) = node.arms.iter().rposition(takes_all) else {
            return;
        };
        for arm in node.arms.iter().take(last) {
            let span = arm.pat.span().byte_range();
            let offer = Offer {
                operator: Operator::ArmDelete,
                at: span.start,
                original: shown(self.slice(span.clone())),
                replacement: "nothing".to_owned(),
                code: "false".to_owned(),
                own: None,
            };
            let touched = self.index.touches(&span, self.changed);
            if arm.guard.is_some() || takes_all(arm) || !touched || !self.room(&offer) {
                continue;
            }
            let alternative = self.alternative(span.clone(), offer);
            let at = self.survey.guards.entry(span.end).or_default();
            at.push(alternative);
        }
    }

    /// `let _ = f();`, and values of names that nobody uses.
    pub(super) fn unused_values(&mut self, block: &Block) {
        let locals = block.stmts.iter().filter_map(|stmt| match stmt {
            Stmt::Local(local) => Some(local),
            _ => None,
        });
        let mut words = None;
        for local in locals {
            // Beyond the limit on mutants nothing is looked at: each look costs the length of its local.
            if self.survey.overflow {
                return;
            }
            let Some(init) = local.init.as_ref().filter(|init| init.diverge.is_none()) else {
                continue;
            };
            let value = init.expr.span().byte_range();
            match &local.pat {
                _ if matches!(&*init.expr, Expr::Lit(_) | Expr::Path(_) | Expr::Closure(_)) => {}
                Pat::Wild(_) => {
                    let start = local.let_token.span().byte_range().start;
                    self.effect(start..value.end, EffectForm::Statement);
                }
                Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => {
                    let words = words.get_or_insert_with(|| {
                        let braces = &block.brace_token.span;
                        let within =
                            braces.open().byte_range().start..braces.close().byte_range().end;
                        Words::of(self.slice(within))
                    });
                    if words.once(&plain(&name.ident)) {
                        self.effect(value, EffectForm::UnusedValue);
                    }
                }
                _ => {}
            }
        }
    }
}

/// How often each word stands in a stretch, strings of `format!` included.
struct Words(HashMap<String, u32>);

impl Words {
    fn of(text: &str) -> Self {
        let mut counts = HashMap::new();
        for word in text.split(|c: char| !(c.is_alphanumeric() || c == '_')) {
            *counts.entry(word.to_owned()).or_default() += 1;
        }
        Self(counts)
    }

    fn once(&self, word: &str) -> bool {
        self.0.get(word) == Some(&1)
    }
}

/// The names and how they stand in a stream: with the token before and after.
pub(super) fn names_in(
    tokens: &TokenStream,
    each: &mut dyn FnMut(&proc_macro2::Ident, char, char),
) {
    let mut open = vec![tokens.clone()];
    while let Some(stream) = open.pop() {
        let tokens: Vec<TokenTree> = stream.into_iter().collect();
        for (at, token) in tokens.iter().enumerate() {
            let sign = |at: Option<usize>| match at.and_then(|at| tokens.get(at)) {
                Some(TokenTree::Punct(p)) => p.as_char(),
                Some(TokenTree::Group(_)) => '(',
                Some(TokenTree::Ident(i)) if i == "fn" => 'f',
                _ => ' ',
            };
            match token {
                TokenTree::Group(group) => open.push(group.stream()),
                TokenTree::Ident(name) => each(name, sign(at.checked_sub(1)), sign(Some(at + 1))),
                _ => {}
            }
        }
    }
}
