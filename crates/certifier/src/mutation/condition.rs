//! Code that stands under a condition of the baseline: whether the judged build has it.
//!
//! The fence lets no change write a condition, but a change may edit what stands under one. The
//! conditions are evaluated as text, for the one system sessions run on. What is certainly left out
//! is not compiled; where nobody can tell, no mutant judges it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use proc_macro2::{Delimiter, Group, Punct, Spacing, TokenStream, TokenTree};
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, Lit, Meta, Token};

use super::survey::LineIndex;
use super::syntax::is_test_only;

/// What is known of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Truth {
    Yes,
    No,
    Unknown,
}

impl Truth {
    const fn of(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }

    const fn not(self) -> Self {
        match self {
            Self::Yes => Self::No,
            Self::No => Self::Yes,
            Self::Unknown => Self::Unknown,
        }
    }
}

/// Lines that hold nothing but code under a condition that does not certainly hold.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Conditional {
    /// The condition does not hold in the judged build.
    pub(super) off: BTreeSet<u32>,
    /// It may hold or not.
    pub(super) unknown: BTreeSet<u32>,
}

/// The conditional lines of a file. `features` are those that are certainly on.
pub(super) fn of(
    (parsed, tokens): (&syn::File, &TokenStream),
    body: &str,
    index: &LineIndex,
    features: &BTreeSet<String>,
) -> Conditional {
    let mut finder = Finder {
        doubts: Doubts::of(tokens, features),
        found: Vec::new(),
    };
    let whole = truth(&parsed.attrs, features);
    finder.note(0..body.len(), whole);
    finder.visit_file(parsed);
    let mut out = Conditional::default();
    for (range, truth) in finder.found {
        let lines = own_lines(body, index, &range);
        match truth {
            Truth::Yes => {}
            Truth::No => out.off.extend(lines),
            Truth::Unknown => out.unknown.extend(lines),
        }
    }
    out.unknown.retain(|line| !out.off.contains(line));
    out
}

/// The lines of a stretch that nothing else stands on.
fn own_lines(body: &str, index: &LineIndex, range: &Range<usize>) -> BTreeSet<u32> {
    let mut lines: BTreeSet<u32> = index.lines(range).collect();
    let before = body.get(..range.start).unwrap_or_default();
    let before = before.rsplit('\n').next().unwrap_or_default();
    let after = body.get(range.end..).unwrap_or_default();
    let after = after.split('\n').next().unwrap_or_default();
    let after = after.trim_start_matches([',', ';']).trim();
    if !before.trim().is_empty() {
        lines.pop_first();
    }
    if !(after.is_empty() || after.starts_with("//")) {
        lines.pop_last();
    }
    lines
}

struct Finder {
    doubts: Doubts,
    found: Vec<(Range<usize>, Truth)>,
}

impl Finder {
    fn note(&mut self, range: Range<usize>, truth: Truth) {
        if truth != Truth::Yes {
            self.found.push((range, truth));
        }
    }

    /// A node by the attributes it begins with and those inside of its block. Whether anything in it
    /// is doubted.
    fn node(&mut self, range: Range<usize>) -> bool {
        let doubted = self.doubts.all.range(range.clone()).next().is_some();
        if doubted {
            let before = self.doubts.before.get(&range.start);
            let inside = self.doubts.inside.get(&range.end);
            let both = before.into_iter().chain(inside).copied();
            self.note(range, all(both));
        }
        doubted
    }
}

/// Conditions that do not certainly hold, found once among the tokens: of what stands around them, a
/// stranger may write any amount.
#[derive(Default)]
struct Doubts {
    /// Where their attributes begin.
    all: BTreeSet<usize>,
    /// All those of a row of attributes, by where each begins.
    before: BTreeMap<usize, Truth>,
    /// All those that a group begins with, by where it ends.
    inside: BTreeMap<usize, Truth>,
}

impl Doubts {
    fn of(tokens: &TokenStream, features: &BTreeSet<String>) -> Self {
        let mut out = Self::default();
        let mut open = vec![(tokens.clone(), None)];
        while let Some((stream, end)) = open.pop() {
            let tokens: Vec<TokenTree> = stream.into_iter().collect();
            out.note(&tokens, end, features);
            for token in tokens {
                if let TokenTree::Group(group) = token {
                    let end = group.span_close().byte_range().end;
                    open.push((group.stream(), Some(end)));
                }
            }
        }
        out
    }

    fn note(&mut self, tokens: &[TokenTree], end: Option<usize>, features: &BTreeSet<String>) {
        let mut inside = Truth::Yes;
        // Backwards: each attribute counts with those behind it.
        let mut row = Truth::Yes;
        let mut next = tokens.len();
        for at in (0..tokens.len()).rev() {
            let Some(attribute) = Written::at(tokens, at) else {
                continue;
            };
            if attribute.end != next {
                (row, inside) = (Truth::Yes, Truth::Yes);
            }
            next = at;
            let truth = attribute.truth(features);
            let start = tokens[at].span().byte_range().start;
            if truth != Truth::Yes {
                self.all.insert(start);
            }
            match attribute.inner {
                true => (inside, row) = (all([truth, inside]), Truth::Yes),
                false => (row, inside) = (all([truth, row]), Truth::Yes),
            }
            if row != Truth::Yes {
                self.before.insert(start, row);
            }
        }
        if let (Some(end), 0, true) = (end, next, inside != Truth::Yes) {
            self.inside.insert(end, inside);
        }
    }
}

/// An attribute among tokens.
struct Written<'a> {
    inner: bool,
    group: &'a Group,
    /// The number of the token behind it.
    end: usize,
}

impl<'a> Written<'a> {
    fn at(tokens: &'a [TokenTree], at: usize) -> Option<Self> {
        let mark = |at: usize, mark: char| matches!(tokens.get(at), Some(TokenTree::Punct(found)) if found.as_char() == mark);
        let inner = mark(at + 1, '!');
        let end = at + if inner { 3 } else { 2 };
        match tokens.get(end - 1) {
            Some(TokenTree::Group(group))
                if mark(at, '#') && group.delimiter() == Delimiter::Bracket =>
            {
                Some(Self { inner, group, end })
            }
            _ => None,
        }
    }

    fn truth(&self, features: &BTreeSet<String>) -> Truth {
        let first = self.group.stream().into_iter().next();
        let named = matches!(first, Some(TokenTree::Ident(name)) if name == "cfg");
        if !named {
            return Truth::Yes;
        }
        let mark = TokenTree::Punct(Punct::new('#', Spacing::Alone));
        let written = [mark, TokenTree::Group(self.group.clone())];
        let written: TokenStream = written.into_iter().collect();
        let attributes = Attribute::parse_outer.parse2(written).unwrap_or_default();
        truth(&attributes, features)
    }
}

macro_rules! visited {
    ($($method:ident, $node:ident;)*) => {
        impl<'ast> Visit<'ast> for Finder {
            $(fn $method(&mut self, node: &'ast syn::$node) {
                if self.node(node.span().byte_range()) {
                    visit::$method(self, node);
                }
            })*
        }
    };
}

visited! {
    visit_item, Item;
    visit_impl_item, ImplItem;
    visit_trait_item, TraitItem;
    visit_foreign_item, ForeignItem;
    visit_stmt, Stmt;
    visit_expr, Expr;
    visit_arm, Arm;
    visit_field, Field;
    visit_variant, Variant;
    visit_field_value, FieldValue;
    visit_field_pat, FieldPat;
    visit_fn_arg, FnArg;
    visit_generic_param, GenericParam;
}

/// All conditions together. Those for tests have a proof of their own: the tripwire.
fn truth(attributes: &[Attribute], features: &BTreeSet<String>) -> Truth {
    let conditions = attributes.iter().filter(|a| a.path().is_ident("cfg"));
    let conditions = conditions.filter(|a| !is_test_only(a));
    all(conditions.map(|attribute| match &attribute.meta {
        Meta::List(list) => predicate(list.tokens.clone(), features),
        _ => Truth::Unknown,
    }))
}

fn all(truths: impl IntoIterator<Item = Truth>) -> Truth {
    let truths = truths.into_iter();
    truths.fold(Truth::Yes, |sum, one| match (sum, one) {
        (Truth::No, _) | (_, Truth::No) => Truth::No,
        (Truth::Unknown, _) | (_, Truth::Unknown) => Truth::Unknown,
        (Truth::Yes, Truth::Yes) => Truth::Yes,
    })
}

fn predicate(tokens: TokenStream, features: &BTreeSet<String>) -> Truth {
    syn::parse2::<Meta>(tokens).map_or(Truth::Unknown, |meta| holds(&meta, features))
}

fn holds(meta: &Meta, features: &BTreeSet<String>) -> Truth {
    let name = meta.path().get_ident().map(ToString::to_string);
    let name = name.as_deref().unwrap_or_default();
    match meta {
        // The judged profile is `dev`.
        Meta::Path(_) => match name {
            "unix" | "debug_assertions" => Truth::Yes,
            "windows" | "test" | "doc" | "doctest" | "miri" => Truth::No,
            _ => Truth::Unknown,
        },
        Meta::NameValue(pair) => match (name, text(&pair.value).as_deref()) {
            ("target_os", Some(os)) => Truth::of(os == "linux"),
            ("target_family", Some(family)) => Truth::of(family == "unix"),
            ("target_vendor", Some("apple")) => Truth::No,
            ("feature", Some(feature)) if features.contains(feature) => Truth::Yes,
            _ => Truth::Unknown,
        },
        Meta::List(list) => {
            let parts = Punctuated::<Meta, Token![,]>::parse_terminated.parse2(list.tokens.clone());
            let Ok(parts) = parts else {
                return Truth::Unknown;
            };
            let mut each = parts.iter().map(|part| holds(part, features));
            match name {
                "all" => all(each),
                "any" => all(each.map(Truth::not)).not(),
                "not" if parts.len() == 1 => each.next().unwrap_or(Truth::Unknown).not(),
                _ => Truth::Unknown,
            }
        }
    }
}

fn text(value: &Expr) -> Option<String> {
    match value {
        Expr::Lit(lit) => match &lit.lit {
            Lit::Str(text) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(body: &str) -> (Vec<u32>, Vec<u32>) {
        let features = BTreeSet::from(["std".to_owned()]);
        let parsed: syn::File = syn::parse_file(body).unwrap();
        let tokens: TokenStream = body.parse().unwrap();
        let lines = super::of((&parsed, &tokens), body, &LineIndex::of(body), &features);
        (
            lines.off.into_iter().collect(),
            lines.unknown.into_iter().collect(),
        )
    }

    #[test]
    fn a_condition_is_decided_where_it_can_be() {
        for (condition, expected) in [
            ("unix", Truth::Yes),
            ("windows", Truth::No),
            ("not(windows)", Truth::Yes),
            ("target_os = \"linux\"", Truth::Yes),
            ("target_os = \"macos\"", Truth::No),
            ("any(windows, target_os = \"macos\")", Truth::No),
            ("any(windows, unix)", Truth::Yes),
            ("all(unix, target_arch = \"arm\")", Truth::Unknown),
            ("all(windows, target_arch = \"arm\")", Truth::No),
            ("not(test)", Truth::Yes),
            ("feature = \"std\"", Truth::Yes),
            ("feature = \"other\"", Truth::Unknown),
            ("not(feature = \"other\")", Truth::Unknown),
            ("strange", Truth::Unknown),
            ("strange(unix)", Truth::Unknown),
        ] {
            let features = BTreeSet::from(["std".to_owned()]);
            let found = predicate(condition.parse().unwrap(), &features);
            assert_eq!(found, expected, "{condition}");
        }
    }

    #[test]
    fn whatever_can_stand_under_a_condition_is_found() {
        for (body, off) in [
            (
                "#[cfg(windows)]\nfn f() {\n    g();\n}\nfn h() {}\n",
                vec![1, 2, 3, 4],
            ),
            (
                "#[cfg(windows)]\nmod m {\n    fn f() {}\n}\n",
                vec![1, 2, 3, 4],
            ),
            ("#[cfg(windows)]\nconst A: u8 = 1;\n", vec![1, 2]),
            (
                "impl A {\n    #[cfg(windows)]\n    fn f() {}\n}\n",
                vec![2, 3],
            ),
            (
                "fn f() {\n    #[cfg(windows)]\n    g();\n    h();\n}\n",
                vec![2, 3],
            ),
            (
                "fn f() {\n    #[cfg(windows)]\n    let a = 1;\n    h();\n}\n",
                vec![2, 3],
            ),
            (
                "fn f() {\n    #[cfg(windows)]\n    {\n        g();\n    }\n    h();\n}\n",
                vec![2, 3, 4, 5],
            ),
            (
                "fn f() {\n    match a {\n        #[cfg(windows)]\n        1 => g(),\n        _ => {}\n    }\n}\n",
                vec![3, 4],
            ),
            (
                "struct A {\n    #[cfg(windows)]\n    a: u8,\n    b: u8,\n}\n",
                vec![2, 3],
            ),
            (
                "enum A {\n    #[cfg(windows)]\n    B,\n    C,\n}\n",
                vec![2, 3],
            ),
            (
                "mod m {\n    #![cfg(windows)]\n    fn f() {}\n}\n",
                vec![1, 2, 3, 4],
            ),
            (
                "fn f() {\n    g(&[\n        #[cfg(windows)]\n        1,\n        2,\n    ]);\n}\n",
                vec![3, 4],
            ),
        ] {
            assert_eq!(found(body), (off, vec![]), "{body}");
        }
        let whole = "#![cfg(windows)]\nfn f() {}\n";
        assert_eq!(found(whole).0, [1, 2]);
    }

    #[test]
    fn a_line_that_holds_anything_else_stays_a_line_of_the_program() {
        let (off, _) = found("fn g() {} #[cfg(windows)]\nfn f() {} fn h() {}\n");
        assert!(off.is_empty());
        let (off, _) = found("#[cfg(windows)]\nfn f() {} // there\nfn h() {}\n");
        assert_eq!(off, [1, 2]);
        let (off, unknown) = found("#[cfg(feature = \"x\")]\nfn f() {}\n#[cfg(test)]\nfn t() {}\n");
        assert_eq!((off, unknown), (vec![], vec![1, 2]));
    }
}
