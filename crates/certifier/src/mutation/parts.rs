//! What a literal decides piece by piece. Its neighbours as a whole say nothing of one bit of a set,
//! one word of a list or one byte of a table.

use std::collections::BTreeSet;
use std::ops::Range;

use syn::spanned::Spanned;
use syn::{BinOp, Expr, Lit, Local, Pat, UnOp};

use super::choice::asks;
use super::operator::{Operator, Sign, fits, spelled_in};
use super::syntax::{IntegerUnit, plain, shown};
use super::walker::{Offer, Walker};

/// Most mutants of one kind at one literal: the bits of the widest plain number. What has more
/// pieces loses several at once, each of them once.
const MOST_PIECES: usize = 64;

/// What parts of a text are told apart by. Where two are as frequent, the first of them.
const SEPARATORS: &[&str] = &[
    " ", ",", ";", ":", "|", "\n", "/", ".", "\t", "-", "_", "\\n", "\\t",
];

/// A text that misses some of its pieces.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Lesser {
    /// Number of the first piece that is missing, from 1, and the pieces.
    pub(crate) missing: (usize, String),
    /// What is left.
    pub(crate) rest: String,
}

impl Lesser {
    /// What people read.
    pub(crate) fn said(&self, piece: &str) -> String {
        let (number, text) = &self.missing;
        format!("without {piece} {number}, {}", shown(&format!("{text:?}")))
    }
}

/// Stretches of so many places that hold each of them once.
fn stretches(count: usize) -> impl Iterator<Item = Range<usize>> {
    let size = count.div_ceil(MOST_PIECES).max(1);
    let starts = (0..count).step_by(size);
    starts.map(move |at| at..(at + size).min(count))
}

/// The number without each of its bits, and with the one above them: none is a neighbour.
pub(crate) fn bits(number: u128) -> Vec<u128> {
    let set: Vec<u32> = (0..128).filter(|at| number >> at & 1 == 1).collect();
    let cleared = stretches(set.len()).map(|lost| {
        let lost = set.get(lost).unwrap_or_default().iter();
        lost.fold(number, |left, at| left & !(1 << at))
    });
    let length = u128::BITS - number.leading_zeros();
    // At the width of a type the compiler takes no wider number, and `n & 1` asks for odd ones.
    let full = matches!(length, 0 | 1 | 8 | 16 | 31 | 32 | 63 | 64 | 128);
    let above = (!full).then(|| number | 1 << length);
    let neighbours = [number.checked_add(1), number.checked_sub(1)];
    let mut all: Vec<u128> = cleared.chain(above).collect();
    all.retain(|other| !neighbours.contains(&Some(*other)));
    all
}

/// The text without each of the parts that its most frequent separator makes of it.
pub(crate) fn without_parts(text: &str) -> Vec<Lesser> {
    let counted = SEPARATORS.iter().map(|mark| text.matches(mark).count());
    let counted = counted.zip(SEPARATORS).rev();
    let Some((1.., mark)) = counted.max_by_key(|(count, _)| *count) else {
        return Vec::new();
    };
    let parts: Vec<&str> = text.split(mark).collect();
    let all = 0..parts.len();
    let filled: Vec<usize> = all.filter(|at| !parts[*at].trim().is_empty()).collect();
    match filled.len() {
        0 | 1 => Vec::new(),
        _ => without(&parts, &filled, mark),
    }
}

/// The text without each of these pieces of it, which are all of it.
pub(crate) fn without_each(pieces: &[&str]) -> Vec<Lesser> {
    let all: Vec<usize> = (0..pieces.len()).collect();
    without(pieces, &all, "")
}

/// `of` are the numbers of those that may go, in order.
fn without(pieces: &[&str], of: &[usize], mark: &str) -> Vec<Lesser> {
    let lost = stretches(of.len()).filter_map(|lost| of.get(lost));
    let lesser = lost.map(|lost| {
        let kept = (0..pieces.len()).filter(|at| lost.binary_search(at).is_err());
        let kept: Vec<&str> = kept.map(|at| pieces[at]).collect();
        let missing: Vec<&str> = lost.iter().map(|at| pieces[*at]).collect();
        Lesser {
            missing: (lost.first().map_or(0, |at| at + 1), missing.join(mark)),
            rest: kept.join(mark),
        }
    });
    lesser.collect()
}

/// A number with a fraction to one digit less, rounded down and up: what its last digit decides.
/// A single digit has none behind it.
pub(crate) fn rounded(number: &str) -> Vec<String> {
    let number = number.replace(['_', '\''], "").to_ascii_lowercase();
    let (mantissa, exponent) = number.split_once('e').unwrap_or((&number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_end_matches('0');
    let cut = whole.len() + fraction.len() - digits.len();
    let (Ok(value), Ok(exponent), Ok(own)) = (
        digits.parse::<u128>(),
        exponent.trim_start_matches('+').parse::<i64>(),
        number.parse::<f64>(),
    ) else {
        return Vec::new();
    };
    let moved = |length: usize| i64::try_from(length).unwrap_or(i64::MAX);
    let exponent = exponent
        .saturating_sub(moved(fraction.len()))
        .saturating_add(moved(cut) + 1);
    let others = [value / 10, value / 10 + 1].map(|other| format!("{other}e{exponent}").parse());
    let others = others.into_iter().flatten();
    let differs = |other: &f64| other.is_finite() && (own - other).abs() > 0.0;
    let spelled = others.filter(|other| value >= 10 && differs(other));
    spelled.map(|other| format!("{other:?}")).collect()
}

/// Methods of a text that go through it piece by piece.
const GOING_THROUGH: &[&str] = &[
    "as_bytes",
    "bytes",
    "char_indices",
    "chars",
    "contains",
    "find",
    "into_bytes",
    "matches",
    "rfind",
];

/// Methods that look for a text in another: a shorter one is found wherever the text is.
const LOOKING_FOR: &[&str] = &[
    "find",
    "matches",
    "replace",
    "replacen",
    "rfind",
    "rmatches",
    "rsplit",
    "rsplit_once",
    "split",
    "split_once",
    "splitn",
    "strip_prefix",
    "strip_suffix",
    "trim_end_matches",
    "trim_start_matches",
];

/// Methods of a number that take it for a row of bits.
const OF_BITS: &[&str] = &[
    "checked_shl",
    "checked_shr",
    "overflowing_shl",
    "overflowing_shr",
    "rotate_left",
    "rotate_right",
    "unbounded_shl",
    "unbounded_shr",
    "wrapping_shl",
    "wrapping_shr",
];

/// Whether an operator works on each bit, and whether it shifts them.
pub(super) fn bitwise(op: &BinOp) -> Option<Bitwise> {
    Some(match op {
        BinOp::BitAnd(_) | BinOp::BitOr(_) | BinOp::BitXor(_) => Bitwise::Joins,
        BinOp::Shl(_) | BinOp::Shr(_) => Bitwise::Shifts,
        BinOp::BitAndAssign(_) | BinOp::BitOrAssign(_) | BinOp::BitXorAssign(_) => {
            Bitwise::JoinsInto
        }
        BinOp::ShlAssign(_) | BinOp::ShrAssign(_) => Bitwise::ShiftsInto,
        _ => return None,
    })
}

/// What an operator does with bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bitwise {
    Joins,
    Shifts,
    JoinsInto,
    ShiftsInto,
}

/// How literals are used, by where they start.
#[derive(Debug, Default)]
pub(super) struct Uses {
    /// Numbers that are rows of bits.
    bits: BTreeSet<usize>,
    /// Texts that are gone through.
    through: BTreeSet<usize>,
    /// Texts that are looked for.
    wanted: BTreeSet<usize>,
}

impl Walker<'_> {
    /// What an operator says of the literals beside it. A distance is a plain number.
    pub(super) fn note_operands(&mut self, node: &syn::ExprBinary) {
        match bitwise(&node.op) {
            Some(Bitwise::Joins) => {
                self.note_bits(&node.left);
                self.note_bits(&node.right);
            }
            Some(Bitwise::Shifts) => self.note_bits(&node.left),
            Some(Bitwise::JoinsInto) => self.note_bits(&node.right),
            Some(Bitwise::ShiftsInto) | None => {}
        }
    }

    fn note_bits(&mut self, operand: &Expr) {
        match operand {
            Expr::Paren(node) => self.note_bits(&node.expr),
            Expr::Group(node) => self.note_bits(&node.expr),
            Expr::Cast(node) => self.note_bits(&node.expr),
            Expr::Unary(node) if !matches!(node.op, UnOp::Deref(_)) => {
                self.uses.bits.insert(operand.span().byte_range().start);
                self.note_bits(&node.expr);
            }
            Expr::Lit(_) => {
                self.uses.bits.insert(operand.span().byte_range().start);
            }
            _ => {}
        }
    }

    /// What a method says of the literals it is called with.
    pub(super) fn note_method(&mut self, node: &syn::ExprMethodCall) {
        let name = plain(&node.method);
        if OF_BITS.contains(&name.as_str()) {
            self.note_bits(&node.receiver);
        }
        if GOING_THROUGH.contains(&name.as_str()) && is_text(&node.receiver) {
            let receiver = node.receiver.span().byte_range();
            self.uses.through.insert(receiver.start);
        }
        if asks(&name) || LOOKING_FOR.contains(&name.as_str()) {
            let wanted = node.args.iter().filter(|argument| is_text(argument));
            let wanted = wanted.map(|argument| argument.span().byte_range().start);
            self.uses.wanted.extend(wanted);
        }
    }

    /// What the uses of a name say of the literal it stands for.
    pub(super) fn note_local(&mut self, node: &Local) {
        let pattern = match &node.pat {
            Pat::Type(typed) => &*typed.pat,
            other => other,
        };
        let (Pat::Ident(name), Some(init)) = (pattern, &node.init) else {
            return;
        };
        let name = plain(&name.ident);
        let text = self.text;
        let named = self.named.get_or_insert_with(|| Named::of(text));
        if is_text(&init.expr) {
            if named.is_gone_through(&name) {
                let start = init.expr.span().byte_range().start;
                self.uses.through.insert(start);
            }
        } else if named.is_bits(&name) {
            self.note_bits(&init.expr);
        }
    }

    /// The pieces of a literal.
    pub(super) fn pieces(&mut self, lit: &Lit) {
        let span = lit.span().byte_range();
        match lit {
            Lit::Str(text) if text.suffix().is_empty() => self.text_pieces(&span, &text.value()),
            Lit::ByteStr(bytes) => {
                let own = bytes.value();
                for flipped in stretches(own.len()) {
                    let mut other = own.clone();
                    let number = flipped.start + 1;
                    let places = other.get_mut(flipped).unwrap_or_default();
                    places.iter_mut().for_each(|byte| *byte ^= 1);
                    let said = format!("with byte {number} flipped");
                    let code = format!("b\"{}\"", other.escape_ascii());
                    self.piece(Operator::PlainLiteral, &span, said, code);
                }
            }
            Lit::Float(number) => {
                for other in rounded(number.base10_digits()) {
                    let code = format!("{other}{}", number.suffix());
                    self.piece(Operator::PlainLiteral, &span, code.clone(), code);
                }
            }
            _ => {}
        }
    }

    fn text_pieces(&mut self, span: &Range<usize>, text: &str) {
        let mut lesser: Vec<(&str, Lesser)> = Vec::new();
        if !self.uses.wanted.contains(&span.start) {
            lesser.extend(without_parts(text).into_iter().map(|one| ("part", one)));
        }
        if self.uses.through.contains(&span.start) {
            let characters: Vec<&str> = text.split_inclusive(|_: char| true).collect();
            let all = without_each(&characters).into_iter();
            lesser.extend(all.map(|one| ("character", one)));
        }
        for (piece, one) in lesser {
            let code = format!("{:?}", one.rest);
            self.piece(Operator::StringLiteral, span, one.said(piece), code);
        }
    }

    /// The bits of a number that is written as a row of bits or used as one.
    pub(super) fn number_bits(&mut self, span: &Range<usize>, unit: &IntegerUnit, tail: &str) {
        let said = self.slice(unit.span.clone());
        let said = said.trim_start_matches(['-', ' ']);
        let written = ["0x", "0b", "0o"].iter().any(|mark| said.starts_with(mark));
        let literal = unit.span.end - said.len();
        let used = [unit.span.start, literal];
        if !written && !used.iter().any(|start| self.uses.bits.contains(start)) {
            return;
        }
        for other in bits(unit.magnitude) {
            let decimal = spelled_in(other, unit.sign);
            if other < 2 && unit.sign == Sign::Plus || !fits(&decimal, &unit.suffix) {
                continue;
            }
            let minus = if decimal.starts_with('-') { "-" } else { "" };
            let replacement = format!("{minus}{other:#x}{}", unit.suffix);
            self.other_integer(span, unit, replacement, tail);
        }
    }

    fn piece(&mut self, operator: Operator, span: &Range<usize>, said: String, code: String) {
        let offer = Offer {
            operator,
            at: span.start,
            original: shown(self.slice(span.clone())),
            replacement: said,
            code,
            own: None,
        };
        self.region(span.clone(), offer);
    }
}

fn is_text(expr: &Expr) -> bool {
    matches!(expr, Expr::Lit(node) if matches!(node.lit, Lit::Str(_)))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The text without white space, but for what tells words apart.
fn tight(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if out.ends_with(is_word) && word.starts_with(is_word) {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

/// How names are used anywhere in a text, white space aside: read once, for a text may give a name
/// to thousands of literals.
#[derive(Debug)]
pub(super) struct Named {
    /// What stands before a method that goes through a text, backwards: `kaf` of `a.fak.bytes(`.
    through: BTreeSet<String>,
    /// Words that are used as rows of bits.
    bits: BTreeSet<String>,
    /// The text, for names that are no single words.
    tight: String,
}

impl Named {
    fn of(text: &str) -> Self {
        let tight = tight(text);
        let mut through = BTreeSet::new();
        for (at, _) in tight.match_indices('.') {
            let method = GOING_THROUGH.iter().any(|method| {
                let after = tight[at + 1..].strip_prefix(method);
                after.is_some_and(|after| after.starts_with('('))
            });
            if method {
                let name = tight[..at].chars().rev().take_while(|c| may_name(*c));
                through.insert(name.collect());
            }
        }
        let mut bits = BTreeSet::new();
        let mut end = 0;
        while let Some(start) = tight[end..].find(is_word) {
            let start = end + start;
            let length = tight[start..].find(|c| !is_word(c));
            end = length.map_or(tight.len(), |length| start + length);
            if among_bits(&tight[..start], &tight[end..]) {
                bits.insert(tight[start..end].to_owned());
            }
        }
        Self {
            through,
            bits,
            tight,
        }
    }

    /// Whether the name, or one that ends with it, is gone through piece by piece.
    fn is_gone_through(&self, name: &str) -> bool {
        let backwards: String = name.chars().rev().collect();
        let mut from = self.through.range(backwards.clone()..);
        from.next().is_some_and(|of| of.starts_with(&backwards))
    }

    fn is_bits(&self, name: &str) -> bool {
        if name.chars().all(is_word) {
            return self.bits.contains(name);
        }
        let mut places = self.tight.match_indices(name);
        places.any(|(at, _)| {
            let (before, after) = (&self.tight[..at], &self.tight[at + name.len()..]);
            let apart = !before.ends_with(is_word) && !after.starts_with(is_word);
            apart && among_bits(before, after)
        })
    }
}

/// Whether a character may stand in a name, or beside one in a text that is no Rust.
fn may_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii()
}

/// Whether what stands on both sides of a name takes it for a row of bits.
fn among_bits(before: &str, after: &str) -> bool {
    let joined = |mark: char| {
        let left = before.strip_suffix(mark);
        // A reference has nothing on its left.
        let left = left.is_some_and(|left| left.ends_with(|c| is_word(c) || c == ')'));
        left || after.starts_with(mark) && !after[1..].starts_with([mark, '='])
    };
    let of_bits = |called: &str| OF_BITS.iter().any(|method| called.starts_with(method));
    ['&', '|', '^'].into_iter().any(joined)
        || after.starts_with(">>")
        || after.starts_with("<<")
        || after.strip_prefix('.').is_some_and(of_bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rests(all: Vec<Lesser>) -> Vec<String> {
        all.into_iter().map(|one| one.rest).collect()
    }

    #[test]
    fn a_number_loses_each_of_its_bits_and_gains_the_next() {
        assert_eq!([bits(0), bits(1)], [[0; 0]; 2]);
        assert_eq!(bits(0b1010), [0b1000, 0b0010, 0b11010]);
        // The last bit of one is its neighbour, and so is what lies above all ones.
        assert_eq!(bits(0b101), [0b001, 0b1101]);
        assert_eq!(bits(0x3ff).len(), 10);
        // No type of eight bits has a ninth.
        assert_eq!(bits(0x84), [0x80, 0x04]);
        let set = 0x8000_0000_0000_03fe;
        assert!(bits(set).contains(&0x3fe));
        assert_eq!(bits(u128::MAX).len(), 64);
        let all = bits(u128::MAX).into_iter().fold(u128::MAX, |a, b| a & b);
        assert_eq!(all, 0);
    }

    #[test]
    fn a_text_loses_each_of_its_parts_by_its_own_separator() {
        assert_eq!(
            rests(without_parts("1 133700 9")),
            ["133700 9", "1 9", "1 133700"]
        );
        assert_eq!(rests(without_parts("a b,c,d")), ["c,d", "a b,d", "a b,c"]);
        assert_eq!(rests(without_parts("a::b")), [":b", "a:"]);
        for whole in ["", "a", " ", ", ", "http://", "end\n", "--"] {
            assert_eq!(without_parts(whole), [], "{whole}");
        }
        let many: Vec<String> = (0..130).map(|n| n.to_string()).collect();
        let lesser = without_parts(&many.join(" "));
        assert_eq!(lesser.len(), 44);
        assert_eq!(lesser[0].missing, (1, "0 1 2".to_owned()));
        assert_eq!(lesser[0].said("part"), "without part 1, \"0 1 2\"");
        assert_eq!(rests(without_each(&["a", "b"])), ["b", "a"]);
    }

    #[test]
    fn a_number_with_a_fraction_loses_its_last_digit() {
        assert_eq!(rounded("0.900_000_9"), ["0.9", "0.900001"]);
        assert_eq!(rounded("1.05"), ["1.0", "1.1"]);
        assert_eq!(rounded("2.50"), ["2.0", "3.0"]);
        assert_eq!(rounded("1.25e+3"), ["1200.0", "1300.0"]);
        for plain in ["0.9", "1e-9", "0.0", "100.0", "0x1p3", "5."] {
            assert_eq!(rounded(plain), [] as [&str; 0], "{plain}");
        }
    }

    #[test]
    fn a_name_is_gone_through_where_a_method_behind_it_does() {
        let named = Named::of("let a = 1; xfak\n  .bytes(); \"b.find(\" d.chars");
        for used in ["xfak", "fak", "k", "b"] {
            assert!(named.is_gone_through(used), "{used}");
        }
        for other in ["a", "xfa", "axfak", "d", "e"] {
            assert!(!named.is_gone_through(other), "{other}");
        }
    }

    #[test]
    fn a_name_is_one_of_bits_where_an_operator_on_bits_stands_beside_it() {
        for used in [
            "if q & set",
            "set >> q",
            "(q)|set;",
            "set^1",
            "if set\n  .checked_shr(q)",
        ] {
            assert!(Named::of(used).is_bits("set"), "{used}");
        }
        for other in [
            "f(&set)",
            "set&&x",
            "set+1",
            "offset>>1",
            "settle&1",
            "x==set",
        ] {
            assert!(!Named::of(other).is_bits("set"), "{other}");
        }
    }
}
