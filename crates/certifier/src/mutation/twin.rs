//! A survivor and the original as two texts of one length, for a compiler to say that they are one
//! program.
//!
//! Positions are part of a program: a panic says where it was. So the two differ in the tokens of the
//! mutant alone, and the shorter of the two has blanks behind these. A third text ends the program
//! at the place, and shows that a case gets there.
//!
//! In all of them the function around the place stands alone: it is not compiled into its callers, where
//! what these hand to it could hide the difference.

use std::ops::Range;

use flightproof_core::{Bytes, RelPath};
use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Block, Signature, Visibility};

use super::plan::MutationPlan;
use super::source::Surveyed;
use super::survey::{Alternative, EffectForm};
use super::syntax::one_line;
use crate::tokens::with_tokens;

/// The texts of one mutant's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Twins {
    /// The file.
    pub(crate) file: RelPath,
    /// As the candidate has it, but for white space and brackets that mean nothing.
    pub(crate) original: Bytes,
    /// The same with the mutant.
    pub(crate) mutant: Bytes,
    /// The same, but the program ends where the mutant stands.
    pub(crate) marked: Bytes,
}

/// Before a function's head: it is compiled as it is for any caller, and into none.
const ALONE: &str = "#[inline(never)] ";

/// A place of a text, and what stands there in the original and in the mutant.
#[derive(Debug, Clone)]
pub(super) struct Site {
    span: Range<usize>,
    /// None where it is the text of the place: many places may lie around one long text.
    own: Option<String>,
    other: String,
    form: Form,
    /// Where the head of its function begins.
    head: usize,
}

/// What stands at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Expression,
    Statement,
    Entry,
}

impl MutationPlan {
    /// The texts of a mutant, where there are any that two programs can be compared by.
    pub(crate) fn twins(&self, index: usize) -> Option<Twins> {
        let (mutant, site) = (self.mutants.get(index)?, self.sites.get(&index)?);
        let text = self.edited(&mutant.file)?;
        let own = match &site.own {
            Some(own) => own.clone(),
            None => one_line(text.get(site.span.clone())?.to_owned()),
        };
        let (own, other) = padded(&mutant.file, &own, &site.other)?;
        let with = |code: &str| site.written(text, code);
        Some(Twins {
            file: mutant.file.clone(),
            original: with(&site.form.alone(&own))?,
            mutant: with(&site.form.alone(&other))?,
            marked: with(&site.form.marked(&own, &self.guard.name))?,
        })
    }

    /// Notes where the mutants of a file stand, those from `first` on.
    pub(super) fn note_sites(&mut self, found: &Surveyed, first: usize) {
        let before = found.prefix.len();
        let sites = sites(found).zip(first..);
        let sites = sites.filter_map(|(site, index)| {
            let site = site?;
            let head = found.standing.head(&site.span)?;
            Some((index, Site { head, ..site }.moved(before)))
        });
        if !found.names_place {
            self.sites.extend(sites);
        }
    }
}

impl Site {
    fn moved(self, by: usize) -> Self {
        Self {
            span: self.span.start + by..self.span.end + by,
            head: self.head + by,
            ..self
        }
    }

    fn written(&self, text: &str, code: &str) -> Option<Bytes> {
        let (before, head) = (
            text.get(..self.head)?,
            text.get(self.head..self.span.start)?,
        );
        let after = text.get(self.span.end..)?;
        Some(Bytes(
            [before, ALONE, head, code, after].concat().into_bytes(),
        ))
    }
}

impl Form {
    /// An operand that stands alone in the text.
    fn alone(self, code: &str) -> String {
        match self {
            Self::Expression => format!("({code})"),
            Self::Statement => code.to_owned(),
            Self::Entry => format!("{code} "),
        }
    }

    /// The guard counts no selector among none, and so the program ends.
    fn marked(self, own: &str, guard: &str) -> String {
        let chosen = format!("match ::{guard}::pick(&[]) {{ 1 =>");
        let ends = format!("_ => ::{guard}::end() }}");
        match self {
            Self::Expression => format!("({chosen} ({own}), {ends})"),
            Self::Statement => format!("{chosen} {{ {own}; }} {ends}"),
            Self::Entry => format!("{chosen} {{}} {ends} "),
        }
    }
}

/// The place of every mutant in the order in which they were made; none for those that have no text
/// of their own.
fn sites(found: &Surveyed) -> impl Iterator<Item = Option<Site>> {
    let survey = &found.survey;
    let expressions = survey.regions.values().flatten().map(move |alternative| {
        Some(Site {
            span: alternative.span.clone(),
            own: alternative.own.clone(),
            other: alternative.code.clone(),
            form: Form::Expression,
            head: 0,
        })
    });
    let entries = survey.entries.iter().flat_map(|(at, all)| {
        let site = |alternative: &Alternative| Site {
            span: *at..*at,
            own: Some(String::new()),
            other: format!("{};", alternative.code),
            form: Form::Entry,
            head: 0,
        };
        all.iter().map(move |alternative| Some(site(alternative)))
    });
    let without = survey.guards.values().flatten().count() + survey.elses.len();
    let effects = survey.effects.values().map(move |effect| {
        let statement = effect.form == EffectForm::Statement;
        statement.then(|| Site {
            span: effect.alternative.span.clone(),
            own: None,
            other: String::new(),
            form: Form::Statement,
            head: 0,
        })
    });
    let without = std::iter::repeat_n((), without).map(|()| None);
    expressions.chain(entries).chain(without).chain(effects)
}

fn touch(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start <= other.end && other.start <= one.end
}

/// Two codes that differ in some of their tokens, the shorter one with blanks behind those. `None`
/// where they differ in white space too, or in nothing.
fn padded(path: &RelPath, own: &str, other: &str) -> Option<(String, String)> {
    if [own, other].iter().any(|code| code.contains(['\n', '\r'])) {
        return None;
    }
    let all = [words(path, own)?, words(path, other)?];
    let (ahead, behind) = common(&all, own, other);
    let [ours, theirs] = &all;
    let (before, mine, after) = split(own, ours, ahead, behind)?;
    let (other_before, its, other_after) = split(other, theirs, ahead, behind)?;
    if (before, after) != (other_before, other_after) || mine.trim() == its.trim() {
        return None;
    }
    let wide = mine.len().max(its.len());
    let fill = |middle: &str| {
        let blanks = " ".repeat(wide - middle.len());
        [before, middle, &blanks, after].concat()
    };
    Some((fill(mine), fill(its)))
}

/// How many words two codes begin and end with alike.
fn common([ours, theirs]: &[Vec<Range<usize>>; 2], own: &str, other: &str) -> (usize, usize) {
    let same =
        |(a, b): &(&Range<usize>, &Range<usize>)| own.get((*a).clone()) == other.get((*b).clone());
    let ahead = ours.iter().zip(theirs).take_while(same).count();
    let most = ours.len().min(theirs.len()) - ahead;
    let behind = ours.iter().rev().zip(theirs.iter().rev());
    (ahead, behind.take(most).take_while(same).count())
}

/// A code up to the end of so many words, from the start of so many, and what is between.
fn split<'a>(
    code: &'a str,
    words: &[Range<usize>],
    ahead: usize,
    behind: usize,
) -> Option<(&'a str, &'a str, &'a str)> {
    let start = match ahead {
        0 => 0,
        _ => words.get(ahead - 1)?.end,
    };
    let end = match behind {
        0 => code.len(),
        _ => words.get(words.len() - behind)?.start,
    };
    Some((code.get(..start)?, code.get(start..end)?, code.get(end..)?))
}

/// Where the words of a code lie: names, literals, brackets, and marks that stand together.
fn words(path: &RelPath, code: &str) -> Option<Vec<Range<usize>>> {
    let read = with_tokens(path, code.as_bytes(), |tokens| {
        let mut words = Vec::new();
        collect(tokens, &mut words);
        words
    });
    let mut joined: Vec<(Range<usize>, bool)> = Vec::new();
    for (word, mark) in read.ok()? {
        match joined.last_mut() {
            Some((last, true)) if mark && last.end == word.start => last.end = word.end,
            _ => joined.push((word, mark)),
        }
    }
    Some(joined.into_iter().map(|(word, _)| word).collect())
}

/// Depth is bounded by whoever lexed them.
fn collect(tokens: TokenStream, words: &mut Vec<(Range<usize>, bool)>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                words.push((group.span_open().byte_range(), false));
                collect(group.stream(), words);
                words.push((group.span_close().byte_range(), false));
            }
            TokenTree::Punct(mark) => words.push((mark.span().byte_range(), true)),
            other => words.push((other.span().byte_range(), false)),
        }
    }
}

/// Names of macros that make the text or the place of code part of the program.
const NAMING: &[&str] = &[
    "stringify",
    "include",
    "include_str",
    "include_bytes",
    "column",
    "line",
    "asm",
    "global_asm",
];

/// Whether a file may know its own text.
pub(super) fn names_place(tokens: &TokenStream) -> bool {
    has(tokens, |token, next| {
        let named =
            matches!(token, TokenTree::Ident(name) if NAMING.contains(&name.to_string().as_str()));
        named && matches!(next, Some(TokenTree::Punct(mark)) if mark.as_char() == '!')
    })
}

/// Whether there is such a token, with the one that follows it, at any depth.
fn has(tokens: &TokenStream, wanted: impl Fn(&TokenTree, Option<&TokenTree>) -> bool) -> bool {
    let mut open = vec![tokens.clone()];
    while let Some(stream) = open.pop() {
        let mut stream = stream.into_iter().peekable();
        while let Some(token) = stream.next() {
            if wanted(&token, stream.peek()) {
                return true;
            }
            if let TokenTree::Group(group) = token {
                open.push(group.stream());
            }
        }
    }
    false
}

/// What stands alone in a program, whoever calls it, and what does not.
#[derive(Debug, Default)]
pub(super) struct Standing {
    /// Bodies of functions, and where their heads begin.
    functions: Vec<(Range<usize>, usize)>,
    /// Stretches that are compiled anew where they are used: with the types, or into the code, of whoever
    /// uses them. Equal in one program is not equal for all.
    unlike: Vec<Range<usize>>,
}

impl Standing {
    pub(super) fn of(file: &syn::File) -> Self {
        let mut found = Self::default();
        found.visit_file(file);
        found
    }

    /// Where the head of the function begins that a stretch stands in.
    fn head(&self, span: &Range<usize>) -> Option<usize> {
        if self.unlike.iter().any(|range| touch(range, span)) {
            return None;
        }
        let around = self.functions.iter();
        let around = around.filter(|(body, _)| body.start < span.start && span.end < body.end);
        around
            .min_by_key(|(body, _)| body.len())
            .map(|(_, head)| *head)
    }

    fn function(
        &mut self,
        (attributes, vis): (&[Attribute], &Visibility),
        sig: &Signature,
        body: &Block,
    ) {
        let begin = match vis {
            Visibility::Inherited => sig.span(),
            vis => vis.span(),
        };
        let (head, body) = (begin.byte_range().start, body.span().byte_range());
        let mut hidden = Hidden(false);
        sig.inputs
            .iter()
            .for_each(|input| hidden.visit_fn_arg(input));
        let placed = |a: &Attribute| a.path().is_ident("inline") || a.path().is_ident("cfg_attr");
        let alone = !is_generic(&sig.generics)
            && !hidden.0
            && sig.asyncness.is_none()
            && !attributes.iter().any(placed);
        match alone {
            true => self.functions.push((body, head)),
            false => self.unlike.push(head..body.end),
        }
    }
}

fn is_generic(generics: &syn::Generics) -> bool {
    let mut parameters = generics.params.iter();
    parameters.any(|one| !matches!(one, syn::GenericParam::Lifetime(_)))
}

/// Whether a type is written as `impl Trait`.
struct Hidden(bool);

impl<'ast> Visit<'ast> for Hidden {
    fn visit_type_impl_trait(&mut self, _: &'ast syn::TypeImplTrait) {
        self.0 = true;
    }
}

impl<'ast> Visit<'ast> for Standing {
    fn visit_item_fn(&mut self, node: &'ast syn::ItemFn) {
        self.function((&node.attrs, &node.vis), &node.sig, &node.block);
        visit::visit_item_fn(self, node);
    }
    fn visit_impl_item_fn(&mut self, node: &'ast syn::ImplItemFn) {
        self.function((&node.attrs, &node.vis), &node.sig, &node.block);
        visit::visit_impl_item_fn(self, node);
    }
    fn visit_item_impl(&mut self, node: &'ast syn::ItemImpl) {
        if is_generic(&node.generics) {
            self.unlike.push(node.span().byte_range());
        }
        visit::visit_item_impl(self, node);
    }
    fn visit_item_trait(&mut self, node: &'ast syn::ItemTrait) {
        self.unlike.push(node.span().byte_range());
    }
    fn visit_expr_closure(&mut self, node: &'ast syn::ExprClosure) {
        self.unlike.push(node.span().byte_range());
    }
    /// What a macro takes is not parsed here: there may be a closure behind a bar.
    fn visit_macro(&mut self, node: &'ast syn::Macro) {
        let bar =
            |token: &TokenTree| matches!(token, TokenTree::Punct(mark) if mark.as_char() == '|');
        let waits = |token: &TokenTree| matches!(token, TokenTree::Ident(name) if name == "async");
        if has(&node.tokens, |token, _| bar(token) || waits(token)) {
            self.unlike.push(node.span().byte_range());
        }
    }
    fn visit_expr_async(&mut self, node: &'ast syn::ExprAsync) {
        self.unlike.push(node.span().byte_range());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutation::{EditedFile, FileRole, MutationInput, Purpose};
    use std::collections::{BTreeMap, BTreeSet};

    fn pad(own: &str, other: &str) -> Option<(String, String)> {
        padded(&"a.rs".parse().unwrap(), own, other)
    }

    fn plan(text: &str) -> MutationPlan {
        MutationPlan::new(MutationInput {
            files: vec![EditedFile {
                path: "src/lib.rs".parse().unwrap(),
                text: Bytes::from(text.as_bytes()),
                old: None,
                lines: (1..=99).collect(),
                role: FileRole::Program,
                features: BTreeSet::new(),
            }],
            roots: BTreeMap::new(),
            beside: Vec::new(),
            seed: [1; 32],
            purpose: Purpose::Gate,
        })
        .unwrap()
    }

    fn twins(plan: &MutationPlan, mutant: &str) -> Option<Twins> {
        let mut all = plan.mutants.iter();
        let index = all.position(|m| m.id.ends_with(mutant));
        plan.twins(index.unwrap_or_else(|| panic!("no {mutant}")))
    }

    fn text(bytes: &Bytes) -> &str {
        std::str::from_utf8(bytes).unwrap()
    }

    #[test]
    fn blanks_stand_behind_the_tokens_that_differ() {
        let both = |a: &str, b: &str| Some((a.to_owned(), b.to_owned()));
        assert_eq!(
            pad("(a) < (b)", "(a) <= (b)"),
            both("(a) <  (b)", "(a) <= (b)")
        );
        assert_eq!(
            pad("(a) >= (b)", "(a) > (b)"),
            both("(a) >= (b)", "(a) >  (b)")
        );
        assert_eq!(pad("a && b.c()", "b.c()"), both("a && b.c()", "     b.c()"));
        assert_eq!(pad("9", "10"), both("9 ", "10"));
        assert_eq!(pad("f(x);", ""), both("f(x);", "     "));
        assert_eq!(pad("", "return 0;"), both("         ", "return 0;"));
    }

    /// A blank in a text would make `"a  b"` of `"a b"`, and two programs one.
    #[test]
    fn no_blank_comes_into_a_token_and_white_space_alone_is_no_difference() {
        let (a, b) = pad("f(\"a  b\", x)", "f(\"a b\", x)").unwrap();
        assert_eq!(
            (a.as_str(), b.as_str()),
            ("f(\"a  b\", x)", "f(\"a b\" , x)")
        );
        let (a, b) = pad("x <<= y", "x <= y").unwrap();
        assert_eq!((a.as_str(), b.as_str()), ("x <<= y", "x <=  y"));
        assert_eq!(
            pad("a  < b", "a <= b"),
            Some(("a  < b".to_owned(), "a <= b".to_owned()))
        );
        assert_eq!(pad("f( a) < b", "f(a) <= b"), None);
        assert_eq!(pad("a < b", "a <  b"), None);
        assert_eq!(pad("a\n< b", "a <= b"), None);
        assert_eq!(pad("'", "a"), None);
    }

    #[test]
    fn the_texts_of_a_mutant_are_of_one_length_and_differ_in_it_alone() {
        let plan = plan(
            "pub fn f(a: u32, b: u32) -> bool {\n    g(a);\n    a < b && b\n        < 9\n}\nfn g(_: u32) {}\n",
        );
        let twins_of = |mutant| twins(&plan, mutant).unwrap();
        let one = twins_of("3:7 relational < -> <=");
        let [own, other, marked] = [&one.original, &one.mutant, &one.marked].map(text);
        assert_eq!(own.len(), other.len());
        assert!(
            own.contains("    ((a) <  (b)) && b\n        < 9\n"),
            "{own}"
        );
        assert!(
            other.contains("    ((a) <= (b)) && b\n        < 9\n"),
            "{other}"
        );
        assert!(own.starts_with("#[inline(never)] pub fn f("), "{own}");
        let guard = &plan.guard.name;
        let ends = format!(
            "(match ::{guard}::pick(&[]) {{ 1 => ((a) <  (b)), _ => ::{guard}::end() }}) && b"
        );
        assert!(marked.contains(&ends), "{marked}");
        let left_out = twins_of("-> nothing");
        assert!(text(&left_out.mutant).contains("{\n        ;\n    a < b"));
        for twins in [&one, &left_out, &twins_of("f -> true")] {
            assert_eq!(twins.original.len(), twins.mutant.len());
            assert_ne!(twins.original, twins.mutant);
            assert!(syn::parse_file(text(&twins.marked)).is_ok());
        }
    }

    #[test]
    fn what_one_program_does_not_stand_for_has_no_texts() {
        let body = "{\n    1 < 2\n}\n";
        let has = |head: &str, tail: &str| {
            let plan = plan(&format!("{head} {body}{tail}\n"));
            twins(&plan, "relational < -> <=").is_some()
        };
        assert!(has("pub fn f() -> bool", ""));
        assert!(has(
            "impl S { pub(crate) fn f(&self) -> bool",
            "} struct S;"
        ));
        assert!(has("pub fn f<'a>(_: &'a u8) -> bool", "fn g<T>(_: T) {}"));
        for head in [
            "pub fn f<T>(_: T) -> bool",
            "pub fn f<const N: usize>() -> bool",
            "pub fn f(_: &impl Fn()) -> bool",
            "#[inline(always)] pub fn f() -> bool",
            "#[inline] fn f() -> bool",
            "async fn f() -> bool",
            "pub fn f() -> impl Fn() -> bool { || ",
        ] {
            let tail = "}".repeat(head.matches('{').count());
            assert!(!has(head, &tail), "{head}");
        }
        assert!(!has(
            "impl<T> S<T> { fn f(&self) -> bool",
            "} struct S<T>(T);"
        ));
        assert!(!has("trait S { fn f(&self) -> bool", "}"));
        let printed = |tail: &str| {
            let text = format!("fn f(a: u8) {{ println!(\"{{}}\", a < 2{tail}); }}\n");
            twins(&plan(&text), "relational < -> <=").is_some()
        };
        assert!(printed("") && !printed(", g(|| 1)") && !printed(" || a > 9"));
        for naming in ["stringify!(a)", "include_str!(\"lib.rs\")", "column!()"] {
            assert!(!has(
                "pub fn f() -> bool",
                &format!("fn g() {{ {naming}; }}")
            ));
        }
    }
}
