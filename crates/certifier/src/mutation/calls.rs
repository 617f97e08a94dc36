//! Calls, ranges and format strings that choose like conditions, told by their names alone.

use std::ops::Range;

use proc_macro2::TokenTree;
use syn::spanned::Spanned;
use syn::{Expr, Lit, Macro, RangeLimits};

use super::choice::{asks, bounds, keeps, unchanged};
use super::operator::Operator;
use super::survey::Silence;
use super::syntax::{KnownMacro, parsed_arguments, shown};
use super::walker::{Offer, Walker};

impl Walker<'_> {
    /// The text of `expect` shows only when the program has already failed, like the format string
    /// of a panic. A method of the program's own may do anything with it.
    pub(super) fn is_told_on_failure(&self, node: &syn::ExprMethodCall) -> bool {
        let told =
            matches!(node.args.first(), Some(Expr::Lit(text)) if matches!(text.lit, Lit::Str(_)));
        node.method == "expect" && node.args.len() == 1 && told && !self.own.declares("expect")
    }

    /// A call of a method or function of this name, with all it is asked of. Where it lies costs its
    /// length, and chains of calls are long: only a name that chooses is worth it.
    pub(super) fn chosen_by_call(&mut self, name: &str, call: &impl Spanned, operands: &[&Expr]) {
        if !(asks(name) || keeps(name) || bounds(name) || unchanged(name, "").is_some()) {
            return;
        }
        let span = call.span().byte_range();
        if asks(name) {
            self.guess(|walker| walker.constants(&span));
        }
        if keeps(name) {
            self.instead(span.clone(), "nothing", "::core::option::Option::None");
        }
        if let [of, _] = operands {
            let of = self.slice(of.span().byte_range()).to_owned();
            if let Some(code) = unchanged(name, &of) {
                self.instead(span.clone(), "left operand", &code);
            }
        }
        if let ("then" | "then_some", Some(condition)) = (name, operands.first()) {
            let condition = condition.span().byte_range();
            self.guess(|walker| walker.constants(&condition));
        }
        if let (true, [first, rest @ ..]) = (bounds(name), operands) {
            let sides: Vec<(&str, &Expr)> = std::iter::once(("left", *first))
                .chain(rest.iter().map(|other| ("right", *other)))
                .collect();
            if rest.is_empty() {
                return;
            }
            self.guess(|walker| walker.sides(Operator::Logical, &span, name, &sides));
        }
    }

    /// The ends of a range move by one. Those that are literals have mutants of their own.
    pub(super) fn ends(&mut self, node: &syn::ExprRange) {
        let (own, other, moved) = match node.limits {
            RangeLimits::HalfOpen(_) => ("..", "..=", "+"),
            RangeLimits::Closed(_) => ("..=", "..", "-"),
        };
        let at = node.limits.span().byte_range().start;
        let ends = [
            (&node.start, "start one more", "+"),
            (&node.end, other, moved),
        ];
        for (end, replacement, sign) in ends {
            let Some(end) = end.as_ref().filter(|end| !is_number(end)) else {
                continue;
            };
            let span = end.span().byte_range();
            let offer = Offer {
                operator: Operator::Relational,
                at,
                original: own.to_owned(),
                replacement: replacement.to_owned(),
                code: format!("({}) {sign} 1", self.slice(span.clone())),
                own: Some(format!("({})", self.slice(span.clone()))),
            };
            self.guess(|walker| walker.region(span, offer));
        }
    }

    /// Widths and precisions in a format string cut and fill: one more and one less of each. Where they
    /// are not written as such, nothing judges them.
    pub(super) fn widths(&mut self, node: &Macro, shape: &KnownMacro) {
        let span = node.span().byte_range();
        if !self.wants(&span) {
            return;
        }
        let literal = match format_string(node, shape) {
            Format::Absent => return,
            Format::Made => return self.silence(span, Silence::Macro),
            Format::Written(literal) => literal,
        };
        let written = self.slice(literal.clone()).to_owned();
        for number in numbers(&written) {
            // Each is a copy of the whole call.
            if self.survey.overflow {
                return;
            }
            let own: u32 = match written.get(number.clone()).map(str::parse) {
                Some(Ok(own)) => own,
                _ => continue,
            };
            for other in [own.checked_add(1), own.checked_sub(1)]
                .into_iter()
                .flatten()
            {
                let mut changed = written.clone();
                changed.replace_range(number.clone(), &other.to_string());
                let whole = self.slice(span.clone());
                let before = whole.get(..literal.start - span.start).unwrap_or_default();
                let after = whole.get(literal.end - span.start..).unwrap_or_default();
                let offer = Offer {
                    operator: Operator::IntegerLiteral,
                    at: literal.start + number.start,
                    original: shown(&written),
                    replacement: shown(&changed),
                    code: format!("{before}{changed}{after}"),
                    own: None,
                };
                self.region(span.clone(), offer);
            }
        }
    }
}

fn is_number(expr: &Expr) -> bool {
    matches!(expr, Expr::Lit(node) if matches!(node.lit, Lit::Int(_)))
}

/// What the format string of a macro is.
#[derive(Debug, PartialEq, Eq)]
enum Format {
    /// It has none.
    Absent,
    /// It stands where it does, and its widths as its text has them.
    Written(Range<usize>),
    /// Another macro makes it, escapes write its widths, or constants give them.
    Made,
}

/// Of arguments that cannot be read nothing is said here: the whole macro is silenced for them.
fn format_string(node: &Macro, shape: &KnownMacro) -> Format {
    let arguments = parsed_arguments(&node.tokens, shape).unwrap_or_default();
    let Some(argument) = shape.text.and_then(|number| arguments.get(number)) else {
        return Format::Absent;
    };
    let literal = match argument {
        Expr::Lit(literal) => literal,
        Expr::Macro(made) if is_plain_text(&made.mac) => return Format::Absent,
        _ => return Format::Made,
    };
    let Lit::Str(text) = &literal.lit else {
        return Format::Made;
    };
    let (value, written) = (text.value(), text.token().to_string());
    match specs(&value) == specs(&written) && !has_constant_width(&value) {
        true => Format::Written(text.span().byte_range()),
        false => Format::Made,
    }
}

/// The numbers that cut and fill, as they stand.
fn specs(text: &str) -> Vec<&str> {
    let found = numbers(text).into_iter();
    found.filter_map(|at| text.get(at)).collect()
}

/// Whether it only puts literals together, none of which can have a place for an argument.
fn is_plain_text(made: &Macro) -> bool {
    let plain = |token: TokenTree| match token {
        TokenTree::Literal(text) => {
            let text = text.to_string().to_ascii_lowercase();
            !text.contains('{') && !text.contains("x7b")
        }
        TokenTree::Punct(comma) => comma.as_char() == ',',
        _ => false,
    };
    made.path.is_ident("concat") && made.tokens.clone().into_iter().all(plain)
}

/// Whether a width is the value of a constant: `{:.MOST$}`, `{price:.N$}`.
fn has_constant_width(text: &str) -> bool {
    let text = text.replace("{{", "");
    let places = text.split('{').skip(1);
    let specs = places.filter_map(|place| place.split('}').next()?.split_once(':'));
    let named = |width: &str| {
        let before = width.trim_end_matches(|c: char| c.is_alphanumeric() || c == '_');
        let name = width.get(before.len()..).unwrap_or_default();
        name.starts_with(|c: char| c.is_ascii_uppercase())
            && !name.contains(|c: char| c.is_ascii_lowercase())
    };
    specs.into_iter().any(|(_, spec)| {
        let mut widths = spec.split_inclusive('$');
        widths.any(|width| width.strip_suffix('$').is_some_and(named))
    })
}

/// The numbers behind a `:` in braces, without the zero that fills and without names of arguments.
fn numbers(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    let (mut open, mut within) = (false, false);
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'{' if bytes.get(at + 1) == Some(&b'{') => at += 1,
            b'{' | b'}' => (open, within) = (*byte == b'{', false),
            b':' => within |= open,
            b'1'..=b'9' if within => {
                let rest = bytes.get(at..).unwrap_or_default();
                let length = rest.iter().take_while(|b| b.is_ascii_digit()).count();
                let named = bytes.get(at + length) == Some(&b'$');
                out.extend((!named).then_some(at..at + length));
                at += length - 1;
            }
            // `.0` cuts everything; `0` before a width fills.
            b'0' if within && bytes.get(at.wrapping_sub(1)) == Some(&b'.') => {
                out.push(at..at + 1);
            }
            _ => {}
        }
        at += 1;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_and_precisions_are_told_from_everything_else_in_braces() {
        let found = |text: &str| -> Vec<String> {
            let found = numbers(text).into_iter();
            found.map(|at| text[at].to_owned()).collect()
        };
        assert_eq!(found("{:.6} {0:>12.3} 7 {x:05}"), ["6", "12", "3", "5"]);
        assert_eq!(found("{:.0} {:1$} {{:5}} {:?} a: 3"), ["0"]);
        assert_eq!(found("{:.*} {1} {x1:w1$}"), [""; 0]);
    }
}
