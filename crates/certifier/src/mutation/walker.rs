use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Range;

use proc_macro2::TokenStream;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, BinOp, Block, Expr, ExprBinary, ExprUnary, Macro, Signature, Stmt, UnOp};

use super::choice::{
    has_branch, is_constant, is_effect, is_inert, is_quiet_call, is_single, is_single_match,
    opens_with_dead_end,
};
use super::names;
use super::operator::{Operator, binary, integers, literal};
use super::outside::{Own, acts_outside, renames_acting};
use super::parts::{Bitwise, Named, Uses, bitwise};
use super::plan::Purpose;
use super::said::{InType, Said, read_by_macro};
use super::survey::{
    Alternative, Effect, EffectForm, Function, Gate, Insertion, LineIndex, Silence, Survey,
};
use super::syntax::{
    IntegerUnit, KnownMacro, binds, is_test_only, known_macro, one_line, parsed_arguments, plain,
    plain_integer, shown, signed_integer, squeezed, standard_name,
};
use super::{MAX_CODE_BYTES, values};

/// Walks one parsed file and writes down every mutant that touches a changed line.
pub(super) struct Walker<'a> {
    /// The text that was parsed; spans index into it.
    pub(super) text: &'a str,
    pub(super) index: &'a LineIndex,
    /// Name of the guard crate.
    pub(super) guard: &'a str,
    pub(super) changed: &'a BTreeSet<u32>,
    /// Gates whose tripwire fired: what is behind them is part of the program.
    pub(super) opened: &'a BTreeSet<usize>,
    pub(super) survey: Survey,
    /// Names of the enclosing items, outermost first.
    pub(super) path: Vec<String>,
    pub(super) mutants: usize,
    /// What they are for.
    pub(super) purpose: Purpose,
    pub(super) code_bytes: usize,
    /// What is offered now rests on a name alone.
    pub(super) guessing: bool,
    /// Where `else if let` asks what the `if let` before it asked: for another variant.
    pub(super) rests: BTreeSet<usize>,
    /// Names of the file that are the program's own.
    pub(super) own: Own,
    /// The type of the implementation around.
    pub(super) own_type: Vec<String>,
    /// How literals are used.
    pub(super) uses: Uses,
    /// How its names are, once somebody asked.
    pub(super) named: Option<Named>,
}

/// Macros that are statements for what they do, and leave no value.
const FOR_EFFECT: &[&str] = &["assert", "assert_eq", "assert_ne", "eprint", "eprintln"];

/// The names a type is written with.
fn names_of(ty: &syn::Type) -> Vec<String> {
    match ty {
        syn::Type::Path(of) => of.path.segments.iter().map(|s| plain(&s.ident)).collect(),
        _ => Vec::new(),
    }
}

/// A replacement before it is written down.
pub(super) struct Offer {
    pub(super) operator: Operator,
    pub(super) at: usize,
    pub(super) original: String,
    pub(super) replacement: String,
    pub(super) code: String,
    /// The original in the form of the code, where its text has another.
    pub(super) own: Option<String>,
}

impl Walker<'_> {
    pub(super) fn slice(&self, range: Range<usize>) -> &str {
        self.text.get(range).unwrap_or_default()
    }

    /// Whether anything offered for a stretch can still become a mutant.
    pub(super) fn wants(&self, span: &Range<usize>) -> bool {
        !self.survey.overflow && self.index.touches(span, self.changed)
    }

    pub(super) fn region(&mut self, span: Range<usize>, offer: Offer) {
        let own = self.slice(span.clone()).trim() == offer.code.trim();
        if own || !self.index.touches(&span, self.changed) || !self.room(&offer) {
            return;
        }
        let alternative = self.alternative(span.clone(), offer);
        let list = self
            .survey
            .regions
            .entry((span.start, Reverse(span.end)))
            .or_default();
        if list.iter().all(|known| known.code != alternative.code) {
            list.push(alternative);
        }
    }

    /// Counts an offer against the limits; beyond them nothing more is walked.
    pub(super) fn room(&mut self, offer: &Offer) -> bool {
        self.mutants += 1;
        self.code_bytes += offer.code.len();
        self.survey.overflow |=
            self.mutants > self.purpose.most() || self.code_bytes > MAX_CODE_BYTES;
        !self.survey.overflow
    }

    pub(super) fn alternative(&self, span: Range<usize>, offer: Offer) -> Alternative {
        Alternative {
            operator: offer.operator,
            at: offer.at,
            span,
            original: offer.original,
            replacement: offer.replacement,
            code: one_line(offer.code),
            own: offer.own.map(one_line),
            function: self.path.join("::"),
            guessed: self.guessing,
            fallback: false,
        }
    }

    /// Offers that rest on a name alone.
    pub(super) fn guess(&mut self, offers: impl FnOnce(&mut Self)) {
        self.guessing = true;
        offers(self);
        self.guessing = false;
    }

    pub(super) fn silence(&mut self, span: Range<usize>, why: Silence) {
        if why.must_be_waived() {
            self.survey.hidden.push((span.clone(), why));
        }
        self.survey.silences.push((span, why));
    }

    /// Silences what a type holds beside types.
    fn silence_within(&mut self, visit: impl FnOnce(&mut InType)) {
        let mut inside = InType::default();
        visit(&mut inside);
        for (range, why) in inside.0 {
            self.silence(range, why);
        }
    }

    /// A statement or value that may be left out.
    pub(super) fn effect(&mut self, span: Range<usize>, form: EffectForm) {
        let offer = Offer {
            operator: Operator::StatementDelete,
            at: span.start,
            original: shown(self.slice(span.clone())),
            replacement: "nothing".to_owned(),
            code: match form {
                EffectForm::Statement => String::new(),
                EffectForm::UnusedValue => "::core::option::Option::None".to_owned(),
            },
            own: None,
        };
        if !self.index.touches(&span, self.changed) || !self.room(&offer) {
            return;
        }
        let alternative = self.alternative(span.clone(), offer);
        let place = (span.start, Reverse(span.end));
        self.survey
            .effects
            .insert(place, Effect { form, alternative });
    }

    /// A function: its whole-value mutants, then what is inside.
    fn function(&mut self, attributes: &[Attribute], sig: &Signature, body: &Block) {
        let range = sig.span().byte_range().start..body.span().byte_range().end;
        let inside = body.brace_token.span.open().byte_range().end;
        let first = body.stmts.first();
        let first = first.map_or(inside, |s| s.span().byte_range().start);
        if self.gate(attributes, range.clone(), first) {
            return;
        }
        attributes.iter().for_each(|a| self.visit_attribute(a));
        if sig.constness.is_some() {
            return self.silence(range, Silence::ConstContext);
        }
        if sig.unsafety.is_some() {
            return self.silence(range, Silence::Unsafe);
        }
        self.path.push(sig.ident.to_string());
        self.survey.functions.push(Function {
            range: range.clone(),
            body: body.span().byte_range(),
        });
        self.whole_values(sig, body, range, first);
        self.visit_block(body);
        self.path.pop();
    }

    /// `first` is where the first statement starts: behind inner attributes, which must stay first.
    fn whole_values(&mut self, sig: &Signature, body: &Block, range: Range<usize>, first: usize) {
        if !self.index.touches(&range, self.changed) {
            return;
        }
        let inside = body.brace_token.span.open().byte_range().end;
        let close = body.brace_token.span.close().byte_range().start;
        let own = squeezed(self.slice(inside..close));
        let values = values::of_return(&sig.output);
        let valued = !values.is_empty() && !body.stmts.is_empty();
        // A type without a value to write down still shows whether any case gets here.
        let reached = ("end".to_owned(), format!("::{}::end()", self.guard));
        // So does a function that does nothing: returning at once is what it does already.
        let mut offers: Vec<(String, String)> = values
            .into_iter()
            .filter(|_| valued)
            .map(|value| (value.clone(), format!("return {value}")))
            .collect();
        // Where the compiler takes none of the values, this stands in for them.
        if !valued || self.purpose == Purpose::Gate {
            offers.push(reached);
        }
        for (replacement, code) in offers {
            let offer = Offer {
                operator: Operator::FunctionValue,
                at: sig.ident.span().byte_range().start,
                original: sig.ident.to_string(),
                code,
                replacement,
                own: None,
            };
            if squeezed(&offer.replacement) == own || !self.room(&offer) {
                continue;
            }
            let fallback = valued && offer.replacement == "end";
            let alternative = Alternative {
                fallback,
                ..self.alternative(range.clone(), offer)
            };
            self.survey
                .entries
                .entry(first)
                .or_default()
                .push(alternative);
        }
    }

    /// Closes the gate before a test-only item. True: nothing inside is to be mutated.
    fn gate(&mut self, attributes: &[Attribute], range: Range<usize>, at: usize) -> bool {
        if !attributes.iter().any(is_test_only) || self.opened.contains(&at) {
            return false;
        }
        self.excuse(attributes);
        self.silence(range.clone(), Silence::TestOnly);
        self.survey.gates.push(Gate { at, range });
        true
    }

    /// Notes attributes that something else than a mutant answers for.
    fn excuse(&mut self, attributes: &[Attribute]) {
        let all = attributes.iter().filter(|a| is_test_only(a));
        self.survey
            .excused
            .extend(all.map(|a| a.span().byte_range()));
    }

    /// `matches!` is a condition that is never written as one.
    fn matched(&mut self, node: &Macro) {
        let span = node.span().byte_range();
        if !is_single_match(&node.tokens) {
            self.silence(span.clone(), Silence::Pattern);
        }
        self.constants(&span);
    }

    pub(super) fn constants(&mut self, span: &Range<usize>) {
        if !self.wants(span) {
            return;
        }
        for constant in ["true", "false"] {
            let offer = Offer {
                operator: Operator::Condition,
                at: span.start,
                original: shown(self.slice(span.clone())),
                replacement: constant.to_owned(),
                code: constant.to_owned(),
                own: None,
            };
            self.region(span.clone(), offer);
        }
    }

    /// A value that decides becomes one that does not.
    pub(super) fn instead(&mut self, span: Range<usize>, replacement: &str, code: &str) {
        let offer = Offer {
            operator: Operator::Condition,
            at: span.start,
            original: shown(self.slice(span.clone())),
            replacement: replacement.to_owned(),
            code: code.to_owned(),
            own: None,
        };
        self.guess(|walker| walker.region(span, offer));
    }

    /// A condition becomes a constant, unless it binds names with `let`.
    fn condition(&mut self, condition: &Expr) {
        if binds(condition) {
            return;
        }
        self.constants(&condition.span().byte_range());
    }

    pub(super) fn sides(
        &mut self,
        operator: Operator,
        span: &Range<usize>,
        own: &str,
        sides: &[(&str, &Expr)],
    ) {
        for (side, operand) in sides {
            let offer = Offer {
                operator,
                at: span.start,
                original: own.to_owned(),
                replacement: format!("{side} operand"),
                code: self.slice(operand.span().byte_range()).to_owned(),
                own: None,
            };
            self.region(span.clone(), offer);
        }
    }

    /// Integers as one unit with their sign and their cast: `-128i8` has no half `128i8`, and in
    /// `4000000000 as u64` the literal takes its type from the cast.
    fn integer_unit(&mut self, span: Range<usize>, unit: &IntegerUnit, tail: &str) {
        for replacement in integers(unit.magnitude, unit.sign, &unit.suffix) {
            self.other_integer(&span, unit, replacement, tail);
        }
        self.number_bits(&span, unit, tail);
    }

    /// Another number in the place of an integer and its cast.
    pub(super) fn other_integer(
        &mut self,
        span: &Range<usize>,
        unit: &IntegerUnit,
        replacement: String,
        tail: &str,
    ) {
        let offer = Offer {
            operator: Operator::IntegerLiteral,
            at: span.start,
            original: self.slice(unit.span.clone()).to_owned(),
            code: format!("{replacement}{tail}"),
            replacement,
            own: None,
        };
        self.region(span.clone(), offer);
    }

    /// An operator on bits or a remainder, without what it does: a mask that masks nothing in any case.
    fn without_operator(&mut self, node: &ExprBinary, span: &Range<usize>, own: &str) {
        let (left, right) = (("left", &*node.left), ("right", &*node.right));
        match (bitwise(&node.op), &node.op) {
            (Some(Bitwise::Joins), _) => {
                self.sides(Operator::Arithmetic, span, own, &[left, right]);
            }
            // A distance in place of what is moved has mostly another type, and says no more; and the
            // remainder of what is smaller is that itself.
            (Some(Bitwise::Shifts), _) | (_, BinOp::Rem(_)) => {
                self.sides(Operator::Arithmetic, span, own, &[left]);
            }
            (Some(Bitwise::JoinsInto | Bitwise::ShiftsInto), _) | (_, BinOp::RemAssign(_)) => {
                self.without_effect(node, span, own);
            }
            (None, _) => {}
        }
    }

    /// An assignment that is left out where it is no statement.
    fn without_effect(&mut self, node: &ExprBinary, span: &Range<usize>, own: &str) {
        let place = (span.start, Reverse(span.end));
        if self.survey.effects.contains_key(&place) {
            return;
        }
        let offer = Offer {
            operator: Operator::Compound,
            at: node.op.span().byte_range().start,
            original: own.to_owned(),
            replacement: "nothing".to_owned(),
            code: "()".to_owned(),
            own: None,
        };
        self.region(span.clone(), offer);
    }

    fn unary_delete(&mut self, node: &ExprUnary) {
        let sign = match node.op {
            UnOp::Neg(_) => "-",
            UnOp::Not(_) => "!",
            _ => return,
        };
        let span = node.span().byte_range();
        let offer = Offer {
            operator: Operator::UnaryDelete,
            at: span.start,
            original: sign.to_owned(),
            replacement: "nothing".to_owned(),
            code: self.slice(node.expr.span().byte_range()).to_owned(),
            own: None,
        };
        self.region(span, offer);
    }

    /// Arguments of a macro that is known to take expressions.
    fn arguments(&mut self, shape: &KnownMacro, tokens: &TokenStream, name: &str) -> Option<()> {
        let arguments = parsed_arguments(tokens, shape)?;
        for (at, argument) in arguments.iter().enumerate() {
            if Some(at) != shape.text && at < shape.expressions {
                self.visit_expr(argument);
            }
        }
        if let ("assert" | "debug_assert", [only]) = (name, arguments.as_slice()) {
            // Without a message the macro prints its own argument, which must not show the mutants.
            let within = only.span().byte_range();
            let original = one_line(self.slice(within.clone()).to_owned());
            self.survey.insertions.push(Insertion {
                at: within.end,
                text: format!(
                    ", \"{{}}\", concat!(\"assertion failed: \", stringify!({original}))"
                ),
                within,
            });
        }
        Some(())
    }

    fn item_in(&mut self, name: String, inside: impl FnOnce(&mut Self)) {
        self.path.push(name);
        inside(self);
        self.path.pop();
    }
}

impl<'ast> Visit<'ast> for Walker<'_> {
    fn visit_expr(&mut self, node: &'ast Expr) {
        if !self.survey.overflow {
            visit::visit_expr(self, node);
        }
    }

    // Places where nothing can be switched at run time, or where no expression of the program is.
    fn visit_attribute(&mut self, node: &'ast Attribute) {
        if !is_inert(node) {
            self.silence(node.span().byte_range(), Silence::Attribute);
        }
    }
    fn visit_pat(&mut self, node: &'ast syn::Pat) {
        if !is_single(node) {
            self.silence(node.span().byte_range(), Silence::Pattern);
        }
        if let syn::Pat::Type(typed) = node {
            self.visit_type(&typed.ty);
        }
    }
    fn visit_type(&mut self, node: &'ast syn::Type) {
        self.silence_within(|inside| inside.visit_type(node));
    }
    fn visit_generics(&mut self, node: &'ast syn::Generics) {
        for parameter in node.const_params() {
            if let Some(value) = &parameter.default {
                self.silence(value.span().byte_range(), Silence::ConstContext);
            }
        }
    }
    fn visit_generic_argument(&mut self, node: &'ast syn::GenericArgument) {
        self.silence_within(|inside| inside.visit_generic_argument(node));
    }

    fn visit_path(&mut self, node: &'ast syn::Path) {
        self.acting_path(node);
        visit::visit_path(self, node);
    }
    fn visit_item_use(&mut self, node: &'ast syn::ItemUse) {
        self.acting_import(node);
    }

    fn visit_stmt(&mut self, node: &'ast Stmt) {
        if self.survey.overflow {
            return;
        }
        if let Stmt::Expr(expr, Some(_)) = node
            && is_effect(expr)
        {
            self.effect(expr.span().byte_range(), EffectForm::Statement);
        }
        // What a case compares of standard error, its witness says: what is written there is there
        // for its effect. And an assertion is a choice of which only one side is seen.
        if let Stmt::Macro(node) = node
            && self.purpose == Purpose::Gate
            && standard_name(&node.mac.path).is_some_and(|n| FOR_EFFECT.contains(&&*n))
        {
            self.effect(node.mac.span().byte_range(), EffectForm::Statement);
        }
        visit::visit_stmt(self, node);
    }
    fn visit_block(&mut self, node: &'ast Block) {
        self.unused_values(node);
        self.stretches(node);
        visit::visit_block(self, node);
    }
    fn visit_expr_closure(&mut self, node: &'ast syn::ExprClosure) {
        let named =
            node.or1_token.span().byte_range().start..node.or2_token.span().byte_range().end;
        self.branch(named, &node.body);
        visit::visit_expr_closure(self, node);
    }
    fn visit_expr_async(&mut self, node: &'ast syn::ExprAsync) {
        self.branch_block(node.async_token.span().byte_range(), &node.block);
        visit::visit_expr_async(self, node);
    }
    fn visit_expr_for_loop(&mut self, node: &'ast syn::ExprForLoop) {
        self.branch_block(node.pat.span().byte_range(), &node.body);
        visit::visit_expr_for_loop(self, node);
    }

    fn visit_item(&mut self, node: &'ast syn::Item) {
        if self.survey.overflow {
            return;
        }
        // Those with a body get a tripwire of their own.
        let gated = matches!(
            node,
            syn::Item::Fn(_) | syn::Item::Mod(_) | syn::Item::Impl(_)
        );
        if !gated && names::attributes(node).iter().any(is_test_only) {
            return self.silence(node.span().byte_range(), Silence::TestOnly);
        }
        if read_by_macro(names::attributes(node)) {
            let mut said = Said::default();
            said.visit_item(node);
            for range in said.0 {
                self.silence(range, Silence::Macro);
            }
        }
        visit::visit_item(self, node);
    }
    fn visit_item_enum(&mut self, node: &'ast syn::ItemEnum) {
        node.attrs.iter().for_each(|a| self.visit_attribute(a));
        for variant in &node.variants {
            variant.attrs.iter().for_each(|a| self.visit_attribute(a));
            let fields = variant.fields.iter().flat_map(|field| &field.attrs);
            fields.for_each(|a| self.visit_attribute(a));
            let held = variant.fields.iter().map(|field| &field.ty);
            held.for_each(|held| self.visit_type(held));
            if let Some((_, value)) = &variant.discriminant {
                self.silence(value.span().byte_range(), Silence::ConstContext);
            }
        }
    }
    fn visit_item_const(&mut self, node: &'ast syn::ItemConst) {
        self.silence(node.span().byte_range(), Silence::ConstContext);
    }
    fn visit_item_static(&mut self, node: &'ast syn::ItemStatic) {
        self.silence(node.span().byte_range(), Silence::ConstContext);
    }
    fn visit_impl_item_const(&mut self, node: &'ast syn::ImplItemConst) {
        self.silence(node.span().byte_range(), Silence::ConstContext);
    }
    fn visit_trait_item_const(&mut self, node: &'ast syn::TraitItemConst) {
        self.silence(node.span().byte_range(), Silence::ConstContext);
    }
    fn visit_expr_const(&mut self, node: &'ast syn::ExprConst) {
        self.silence(node.span().byte_range(), Silence::ConstContext);
    }
    fn visit_expr_unsafe(&mut self, node: &'ast syn::ExprUnsafe) {
        self.silence(node.span().byte_range(), Silence::Unsafe);
    }
    fn visit_expr_repeat(&mut self, node: &'ast syn::ExprRepeat) {
        self.silence(node.len.span().byte_range(), Silence::ConstContext);
        self.visit_expr(&node.expr);
    }
    fn visit_item_macro(&mut self, node: &'ast syn::ItemMacro) {
        self.silence(node.span().byte_range(), Silence::Macro);
    }

    fn visit_item_mod(&mut self, node: &'ast syn::ItemMod) {
        let Some((items, first)) = node.content.as_ref().and_then(|(_, items)| {
            let first = items.first()?.span().byte_range().start;
            Some((items, first))
        }) else {
            match node.attrs.iter().any(is_test_only) {
                true => self.excuse(&node.attrs),
                false => node.attrs.iter().for_each(|a| self.visit_attribute(a)),
            }
            return;
        };
        if !self.gate(&node.attrs, node.span().byte_range(), first) {
            node.attrs.iter().for_each(|a| self.visit_attribute(a));
            self.item_in(node.ident.to_string(), |walker| {
                items.iter().for_each(|item| walker.visit_item(item));
            });
        }
    }
    fn visit_item_impl(&mut self, node: &'ast syn::ItemImpl) {
        let Some(first) = node.items.first().map(|i| i.span().byte_range().start) else {
            match node.attrs.iter().any(is_test_only) {
                true => self.excuse(&node.attrs),
                false => node.attrs.iter().for_each(|a| self.visit_attribute(a)),
            }
            return;
        };
        if !self.gate(&node.attrs, node.span().byte_range(), first) {
            let name = squeezed(self.slice(node.self_ty.span().byte_range()));
            let outer = std::mem::replace(&mut self.own_type, names_of(&node.self_ty));
            self.item_in(name, |walker| visit::visit_item_impl(walker, node));
            self.own_type = outer;
        }
    }
    fn visit_item_trait(&mut self, node: &'ast syn::ItemTrait) {
        self.item_in(node.ident.to_string(), |walker| {
            visit::visit_item_trait(walker, node);
        });
    }
    fn visit_item_fn(&mut self, node: &'ast syn::ItemFn) {
        self.function(&node.attrs, &node.sig, &node.block);
    }
    fn visit_impl_item_fn(&mut self, node: &'ast syn::ImplItemFn) {
        self.function(&node.attrs, &node.sig, &node.block);
    }
    fn visit_trait_item_fn(&mut self, node: &'ast syn::TraitItemFn) {
        if let Some(body) = &node.default {
            self.function(&node.attrs, &node.sig, body);
        }
    }

    fn visit_expr_if(&mut self, node: &'ast syn::ExprIf) {
        self.condition(&node.cond);
        if binds(&node.cond) {
            let condition = node.cond.span().byte_range();
            if opens_with_dead_end(&node.then_branch) {
                self.silence(condition.clone(), Silence::Pattern);
            }
            self.branch_block(condition, &node.then_branch);
            if let Some((word, Expr::Block(other))) =
                node.else_branch.as_ref().map(|(w, e)| (w, &**e))
            {
                self.branch_block(word.span().byte_range(), &other.block);
            }
            if let Some((_, Expr::If(next))) = node.else_branch.as_ref().map(|(w, e)| (w, &**e)) {
                self.note_rest(&node.cond, next);
            }
            let rest = self.rests.contains(&node.span().byte_range().start);
            if node.else_branch.is_none() && !rest {
                self.not_taken(&node.cond, &node.then_branch, None);
            }
        }
        visit::visit_expr_if(self, node);
    }
    fn visit_expr_while(&mut self, node: &'ast syn::ExprWhile) {
        self.condition(&node.cond);
        if binds(&node.cond) {
            self.branch_block(node.cond.span().byte_range(), &node.body);
            let word = node.while_token.span().byte_range();
            self.not_taken(&node.cond, &node.body, Some(word));
        }
        visit::visit_expr_while(self, node);
    }
    fn visit_expr_match(&mut self, node: &'ast syn::ExprMatch) {
        self.arms_left_out(node);
        visit::visit_expr_match(self, node);
    }
    fn visit_arm(&mut self, node: &'ast syn::Arm) {
        if let Some((_, guard)) = &node.guard {
            self.condition(guard);
        }
        self.branch(node.pat.span().byte_range(), &node.body);
        if node.guard.is_none() && !has_branch(&node.body) {
            self.chosen_unseen(&node.pat);
        }
        visit::visit_arm(self, node);
    }
    fn visit_local_init(&mut self, node: &'ast syn::LocalInit) {
        if let Some((word, taken)) = &node.diverge {
            self.branch(word.span().byte_range(), taken);
        }
        visit::visit_local_init(self, node);
    }

    fn visit_expr_binary(&mut self, node: &'ast ExprBinary) {
        self.note_operands(node);
        visit::visit_expr_binary(self, node);
        let Some((operator, own, others)) = binary(&node.op) else {
            return;
        };
        if binds(&node.left) || binds(&node.right) {
            return;
        }
        let span = node.span().byte_range();
        if !self.wants(&span) {
            return;
        }
        let left = self.slice(node.left.span().byte_range()).to_owned();
        let right = self.slice(node.right.span().byte_range()).to_owned();
        for other in others {
            let offer = Offer {
                operator,
                at: node.op.span().byte_range().start,
                original: own.to_owned(),
                replacement: (*other).to_owned(),
                code: format!("({left}) {other} ({right})"),
                own: Some(format!("({left}) {own} ({right})")),
            };
            self.region(span.clone(), offer);
        }
        if matches!(node.op, BinOp::And(_) | BinOp::Or(_)) {
            let sides = [("left", &*node.left), ("right", &*node.right)];
            self.sides(Operator::Logical, &span, own, &sides);
        }
        self.without_operator(node, &span, own);
    }
    fn visit_expr_unary(&mut self, node: &'ast ExprUnary) {
        self.unary_delete(node);
        match signed_integer(node) {
            Some(unit) => self.integer_unit(node.span().byte_range(), &unit, ""),
            None => visit::visit_expr_unary(self, node),
        }
    }
    fn visit_expr_cast(&mut self, node: &'ast syn::ExprCast) {
        let unit = match &*node.expr {
            Expr::Unary(unary) => signed_integer(unary),
            Expr::Lit(lit) => plain_integer(&lit.lit),
            _ => None,
        };
        let Some(unit) = unit else {
            return visit::visit_expr_cast(self, node);
        };
        let span = node.span().byte_range();
        let tail = self.slice(unit.span.end..span.end).to_owned();
        self.integer_unit(span, &unit, &tail);
    }
    fn visit_expr_lit(&mut self, node: &'ast syn::ExprLit) {
        let Some((operator, others)) = literal(&node.lit) else {
            return;
        };
        let span = node.lit.span().byte_range();
        if !self.wants(&span) {
            return;
        }
        for replacement in others {
            let offer = Offer {
                operator,
                at: span.start,
                original: shown(self.slice(span.clone())),
                code: replacement.clone(),
                replacement,
                own: None,
            };
            self.region(span.clone(), offer);
        }
        match plain_integer(&node.lit) {
            Some(unit) => self.number_bits(&span, &unit, ""),
            None => self.pieces(&node.lit),
        }
    }
    fn visit_local(&mut self, node: &'ast syn::Local) {
        self.note_local(node);
        visit::visit_local(self, node);
    }
    fn visit_expr_method_call(&mut self, node: &'ast syn::ExprMethodCall) {
        self.note_method(node);
        self.acting_method(node);
        if self.is_told_on_failure(node) {
            return self.visit_expr(&node.receiver);
        }
        visit::visit_expr_method_call(self, node);
        let operands: Vec<&Expr> = std::iter::once(&*node.receiver).chain(&node.args).collect();
        self.chosen_by_call(&plain(&node.method), node, &operands);
    }
    fn visit_expr_call(&mut self, node: &'ast syn::ExprCall) {
        visit::visit_expr_call(self, node);
        if let Expr::Path(function) = &*node.func
            && let Some(last) = function.path.segments.last()
        {
            let operands: Vec<&Expr> = node.args.iter().collect();
            self.chosen_by_call(&plain(&last.ident), node, &operands);
        }
    }
    fn visit_expr_break(&mut self, node: &'ast syn::ExprBreak) {
        if node.label.is_some() && node.expr.is_none() {
            self.instead(node.span().byte_range(), "break", "break");
        }
        visit::visit_expr_break(self, node);
    }
    fn visit_expr_continue(&mut self, node: &'ast syn::ExprContinue) {
        if node.label.is_some() {
            self.instead(node.span().byte_range(), "continue", "continue");
        }
    }
    fn visit_expr_range(&mut self, node: &'ast syn::ExprRange) {
        visit::visit_expr_range(self, node);
        self.ends(node);
    }
    fn visit_expr_path(&mut self, node: &'ast syn::ExprPath) {
        if let Some(of) = &node.qself
            && let syn::Type::Path(of) = &*of.ty
        {
            let all = of.path.segments.iter().chain(&node.path.segments);
            let names: Vec<String> = all.map(|s| plain(&s.ident)).collect();
            if acts_outside(&names) {
                self.silence(node.span().byte_range(), Silence::Effect);
            }
        }
        let last = node.path.segments.last();
        if last.is_some_and(|last| is_constant(&plain(&last.ident))) {
            let span = node.span().byte_range();
            self.instead(span, "default", "::core::default::Default::default()");
        }
        visit::visit_expr_path(self, node);
    }
    fn visit_expr_macro(&mut self, node: &'ast syn::ExprMacro) {
        let name = standard_name(&node.mac.path);
        if name.as_deref() == Some("format") {
            let span = node.span().byte_range();
            self.instead(span, "an empty text", "::std::string::String::new()");
        }
        if self.purpose == Purpose::Gate && name.is_some_and(|n| n.starts_with("assert")) {
            self.instead(node.span().byte_range(), "nothing", "()");
        }
        visit::visit_expr_macro(self, node);
    }
    fn visit_item_extern_crate(&mut self, node: &'ast syn::ItemExternCrate) {
        node.attrs.iter().for_each(|a| self.visit_attribute(a));
        let renamed = node.rename.as_ref();
        if renamed.is_some_and(|(_, name)| renames_acting(&plain(name), &plain(&node.ident))) {
            self.silence(node.span().byte_range(), Silence::Effect);
        }
    }
    fn visit_item_type(&mut self, node: &'ast syn::ItemType) {
        if let syn::Type::Path(of) = &*node.ty {
            let names: Vec<String> = of.path.segments.iter().map(|s| plain(&s.ident)).collect();
            if renames_acting(&plain(&node.ident), &names.join("::")) {
                self.silence(node.span().byte_range(), Silence::Effect);
            }
        }
        visit::visit_item_type(self, node);
    }
    fn visit_macro(&mut self, node: &'ast Macro) {
        let name = standard_name(&node.path);
        let known = name.as_deref().and_then(known_macro);
        if name.as_deref().is_some_and(|n| n.starts_with("debug_")) && !is_quiet_call(&node.tokens)
        {
            return self.silence(node.span().byte_range(), Silence::DebugOnly);
        }
        if name.as_deref() == Some("matches") {
            self.matched(node);
        }
        if let Some(shape) = &known {
            self.widths(node, shape);
        }
        let walked = known.and_then(|shape| {
            self.arguments(&shape, &node.tokens, name.as_deref().unwrap_or_default())
        });
        if walked.is_none() {
            self.silence(node.span().byte_range(), Silence::Macro);
        }
    }
}
