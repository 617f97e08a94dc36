//! Patterns of arms that are the baseline's, on lines that changed.
//!
//! What enters an arm hangs on all that stands ahead of it: what is matched, the arms before, where
//! the match stands. So a pattern is kept only where every token of its function up to it, its guard
//! included, is the baseline's; bodies of arms that end before it do not count, since nothing in them
//! chooses which arm is taken. An arm that moved, a pattern from elsewhere, another thing to match, an
//! arm that came or went: all of them leave other tokens ahead. What the names of a pattern mean is
//! judged beside this, as if it stood on an unchanged line.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use flightproof_core::{Digest, RelPath};
use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::choice::{has_branch, is_single};
use super::plan::EditedFile;
use super::survey::{Silence, Survey};
use super::syntax::{plain, squeezed};
use super::text::split_prefix;
use crate::tokens::with_tokens;

/// The patterns of several choices that are kept, by where they stand now.
pub(super) fn patterns(
    file: &EditedFile,
    body: &str,
    parsed: &syn::File,
    tokens: &TokenStream,
) -> Vec<Range<usize>> {
    let now = of(body, parsed, tokens);
    if now.is_empty() {
        return Vec::new();
    }
    let before: BTreeSet<Place> = before(file).unwrap_or_default();
    let kept = now.into_iter().filter(|(_, place)| before.contains(place));
    kept.map(|(at, _)| at).collect()
}

impl Survey {
    /// Takes kept patterns for unchanged code.
    pub(super) fn keep(&mut self, patterns: &[Range<usize>]) {
        let kept: BTreeSet<(usize, usize)> = patterns.iter().map(|p| (p.start, p.end)).collect();
        let changed = |(range, why): &(Range<usize>, Silence)| {
            *why != Silence::Pattern || !kept.contains(&(range.start, range.end))
        };
        self.hidden.retain(changed);
        self.silences.retain(changed);
    }
}

/// A function, and all that stands in it ahead of the body of an arm.
type Place = (String, Digest);

fn before(file: &EditedFile) -> Option<BTreeSet<Place>> {
    let (_, old) = split_prefix(std::str::from_utf8(file.old.as_ref()?).ok()?);
    let path: &RelPath = &file.path;
    let places = with_tokens(path, old.as_bytes(), |tokens| {
        let parsed: syn::File = syn::parse2(tokens.clone()).ok()?;
        Some(of(old, &parsed, &tokens))
    });
    let places = places.ok().flatten()?;
    Some(places.into_iter().map(|(_, place)| place).collect())
}

/// Where each pattern of several choices stands. Of functions of one name, none.
fn of(text: &str, parsed: &syn::File, tokens: &TokenStream) -> Vec<(Range<usize>, Place)> {
    let mut found = Functions {
        text,
        path: Vec::new(),
        open: Vec::new(),
        all: Vec::new(),
    };
    found.visit_file(parsed);
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for function in &found.all {
        *known.entry(function.name.clone()).or_default() += 1;
    }
    let all = found.all.iter();
    let wanted = all.filter(|f| known.get(&f.name) == Some(&1) && f.arms.iter().any(|a| a.several));
    let mut words = None;
    let places = wanted.flat_map(|function| {
        let words = words.get_or_insert_with(|| Words::of(tokens));
        function.places(words)
    });
    places.collect()
}

struct Functions<'a> {
    text: &'a str,
    /// Headers around, outermost first.
    path: Vec<String>,
    /// Functions around, by index.
    open: Vec<usize>,
    all: Vec<Function>,
}

struct Function {
    name: String,
    range: Range<usize>,
    arms: Vec<Arm>,
}

struct Arm {
    pattern: Range<usize>,
    /// Where pattern and guard end.
    head: usize,
    /// With the comma behind it, which a body in braces does without.
    body: Range<usize>,
    /// A pattern of several choices, before a body that mutants show to be taken.
    several: bool,
}

impl Function {
    /// Walks the words once: what was read before the body of an arm is what counts behind it.
    fn places(&self, words: &Words) -> Vec<(Range<usize>, Place)> {
        let mut out = Vec::new();
        let mut read = Digest::of(&[]);
        let mut ends: Vec<(usize, Digest)> = Vec::new();
        let mut heads: BTreeMap<usize, &Arm> = BTreeMap::new();
        let mut bodies: BTreeMap<usize, &Arm> = BTreeMap::new();
        for arm in &self.arms {
            heads.insert(arm.head, arm);
            bodies.insert(arm.body.start, arm);
        }
        for (at, word) in words.within(&self.range) {
            while let Some((_, around)) = ends.pop_if(|(end, _)| *end <= at.start) {
                read = around;
            }
            if let Some(arm) = bodies.get(&at.start) {
                ends.push((arm.body.end, read));
            }
            read = Digest::keyed(read.as_bytes(), word.as_bytes());
            if let Some(arm) = heads.get(&at.end).filter(|arm| arm.several) {
                out.push((arm.pattern.clone(), (self.name.clone(), read)));
            }
        }
        out
    }
}

/// Tokens in their order, groups opened, each with where it stands.
struct Words(Vec<(Range<usize>, String)>);

impl Words {
    fn of(tokens: &TokenStream) -> Self {
        let mut words = Vec::new();
        collect(tokens.clone(), &mut words);
        Self(words)
    }

    fn within(&self, range: &Range<usize>) -> &[(Range<usize>, String)] {
        let from = self.0.partition_point(|(at, _)| at.start < range.start);
        let to = self.0.partition_point(|(at, _)| at.start < range.end);
        self.0.get(from..to).unwrap_or_default()
    }
}

/// Depth is bounded by whoever lexed them.
fn collect(tokens: TokenStream, words: &mut Vec<(Range<usize>, String)>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                words.push((group.span_open().byte_range(), open.to_owned()));
                collect(group.stream(), words);
                words.push((group.span_close().byte_range(), close.to_owned()));
            }
            TokenTree::Punct(mark) => {
                let joint = if mark.spacing() == Spacing::Joint {
                    "+"
                } else {
                    " "
                };
                words.push((
                    mark.span().byte_range(),
                    format!("{}{joint}", mark.as_char()),
                ));
            }
            other => words.push((other.span().byte_range(), other.to_string())),
        }
    }
}

impl Functions<'_> {
    fn around(&mut self, header: String, inside: impl FnOnce(&mut Self)) {
        self.path.push(header);
        inside(self);
        self.path.pop();
    }

    fn function(&mut self, sig: &syn::Signature, body: &syn::Block) {
        self.path.push(plain(&sig.ident));
        self.open.push(self.all.len());
        self.all.push(Function {
            name: self.path.join("\n"),
            range: sig.span().byte_range().start..body.span().byte_range().end,
            arms: Vec::new(),
        });
        self.visit_block(body);
        self.open.pop();
        self.path.pop();
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_mod(&mut self, node: &'ast syn::ItemMod) {
        self.around(plain(&node.ident), |all| visit::visit_item_mod(all, node));
    }
    fn visit_item_impl(&mut self, node: &'ast syn::ItemImpl) {
        let start = node.impl_token.span().byte_range().start;
        let header = start..node.brace_token.span.open().byte_range().start;
        let header = squeezed(self.text.get(header).unwrap_or_default());
        self.around(header, |all| visit::visit_item_impl(all, node));
    }
    fn visit_item_trait(&mut self, node: &'ast syn::ItemTrait) {
        let name = format!("trait {}", plain(&node.ident));
        self.around(name, |all| visit::visit_item_trait(all, node));
    }
    fn visit_item_fn(&mut self, node: &'ast syn::ItemFn) {
        self.function(&node.sig, &node.block);
    }
    fn visit_impl_item_fn(&mut self, node: &'ast syn::ImplItemFn) {
        self.function(&node.sig, &node.block);
    }
    fn visit_trait_item_fn(&mut self, node: &'ast syn::TraitItemFn) {
        if let Some(body) = &node.default {
            self.function(&node.sig, body);
        }
    }
    fn visit_arm(&mut self, node: &'ast syn::Arm) {
        let pattern = node.pat.span().byte_range();
        let guard = node.guard.as_ref();
        let head = guard.map_or(pattern.end, |(_, guard)| guard.span().byte_range().end);
        let body = node.body.span().byte_range();
        let end = node
            .comma
            .as_ref()
            .map_or(body.end, |c| c.span().byte_range().end);
        let own = self.open.last().and_then(|at| self.all.get_mut(*at));
        if let Some(function) = own {
            function.arms.push(Arm {
                pattern,
                head,
                body: body.start..end,
                several: !is_single(&node.pat) && is_plain(&node.pat) && has_branch(&node.body),
            });
        }
        visit::visit_arm(self, node);
    }
}

/// Whether a pattern says all that it is: no macro, and no constant worked out in it.
fn is_plain(pattern: &syn::Pat) -> bool {
    let mut worked = Worked(false);
    worked.visit_pat(pattern);
    !worked.0
}

struct Worked(bool);

impl<'ast> Visit<'ast> for Worked {
    fn visit_pat(&mut self, node: &'ast syn::Pat) {
        use syn::Pat;
        self.0 |= matches!(node, Pat::Macro(_) | Pat::Const(_) | Pat::Verbatim(_));
        visit::visit_pat(self, node);
    }
}
