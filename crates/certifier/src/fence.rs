//! What changed Rust code may not contain, whatever it does: the fence around the other proofs.
//!
//! Observations and mutants are evidence only of code that cannot reach its observers, cannot look
//! at its own source, and is the same code in every build. So the rules are about tokens, not about
//! meaning. Strings and comments do not trigger them; arguments and bodies of macros do, for a macro
//! can make code of them. Rules hold on changed lines; and a file may nowhere contain more
//! occurrences of a refused construct than its baseline did, for a change that only removes `/*`
//! leaves the lines it uncovers as they were.
//!
//! Refused beside the obvious, and why:
//! - every `cfg` but exactly `#[cfg(test)]`: the judged build has one set of conditions, the shipped
//!   one may have another (`debug_assertions`, a feature, a platform);
//! - `$name!(…)` in a macro definition: the macro's name would be chosen by its caller, past the rules;
//! - names outside ASCII: they can look like other names.
//!
//! Test, bench and example files keep the same rules: which file is only a test is the manifest's
//! claim, and the candidate may write that too.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use flightproof_core::{RelPath, escape};
use flightproof_evidence::{Captured, Change};

use crate::flat::{Kind, Token, flatten};
use crate::lines::{changed_lines, is_rust};
use crate::mutation::takes_expressions;
use crate::tokens::with_tokens;
use crate::tree::{Tree, contains};
use crate::{CertifierCode, CertifierError};

/// Holds every changed file against the rules.
///
/// # Errors
/// `UNSAFE_CODE`, `SOURCE_INTROSPECTION`, `FOREIGN_LINKAGE`, `CONDITIONAL_CODE`, `SOURCE_BIDI` with
/// file, line and construct; `UNCHECKED_SOURCE` for a changed file that is compiled without being
/// named `.rs`; the refusals of [`with_tokens`].
pub fn check(captured: &Captured, tree: &Tree<'_>) -> Result<(), CertifierError> {
    let (rust, data): (Vec<_>, Vec<_>) = captured
        .changes
        .iter()
        .filter(|change| change.new.is_some())
        .partition(|change| is_rust(&change.path));
    rust.into_iter().try_for_each(check_rust)?;
    if data.is_empty() {
        return Ok(());
    }
    let includers = Includer::all(tree);
    data.into_iter()
        .try_for_each(|change| check_data(change, &includers))
}

/// The byte order mark of UTF-8.
const MARK: &[u8] = "\u{feff}".as_bytes();

fn check_rust(change: &Change) -> Result<(), CertifierError> {
    let Some(new) = &change.new else {
        return Ok(());
    };
    let old = change.old.as_ref().map(|state| &state.content[..]);
    // A mark that the baseline has is no news.
    let marked = old.is_some_and(|old| old.starts_with(MARK));
    let unmarked = |text| match marked {
        true => <[u8]>::strip_prefix(text, MARK).unwrap_or(text),
        false => text,
    };
    let old = old.map(unmarked);
    let text = unmarked(&new.content);
    let found = with_tokens(&change.path, text, |tokens| findings(&flatten(tokens)))?;
    let touched = changed_lines(old, text);
    if let Some(finding) = found.iter().find(|finding| finding.is_on(&touched)) {
        return Err(finding.refuse(&change.path, "on a changed line"));
    }
    // A baseline that cannot be read excuses nothing.
    let before = old
        .and_then(|old| with_tokens(&change.path, old, |tokens| findings(&flatten(tokens))).ok())
        .unwrap_or_default();
    match first_added(&before, &found) {
        None => Ok(()),
        Some(finding) => Err(finding.refuse(&change.path, "more often than in the baseline")),
    }
}

/// A construct that occurs more often than before.
fn first_added<'a>(before: &[Finding], now: &'a [Finding]) -> Option<&'a Finding> {
    let mut left: BTreeMap<&str, usize> = BTreeMap::new();
    for finding in before {
        *left.entry(&finding.construct).or_default() += 1;
    }
    now.iter()
        .find(|finding| match left.get_mut(finding.construct.as_str()) {
            Some(count) if *count > 0 => {
                *count -= 1;
                false
            }
            _ => true,
        })
}

/// A file that is no `.rs` file must not be source of one.
fn check_data(change: &Change, includers: &[Includer<'_>]) -> Result<(), CertifierError> {
    let name = change.path.file_name();
    match includers.iter().find(|includer| includer.names(name)) {
        None => Ok(()),
        Some(includer) => Err(CertifierCode::UncheckedSource.refuse(format_args!(
            "{}: named as source by {}",
            escape(change.path.as_str(), 200),
            escape(includer.path, 200)
        ))),
    }
}

/// A Rust file of the tree that takes in others by `include!` or `#[path]`.
struct Includer<'a> {
    path: &'a str,
    /// The literals it does so with; `None` for a file that cannot be read and might mean any.
    literals: Option<Vec<String>>,
    content: &'a [u8],
}

impl<'a> Includer<'a> {
    /// Those in the tree. They stood there before, for no change may add such a construct; so a
    /// plain search finds them.
    fn all(tree: &Tree<'a>) -> Vec<Self> {
        let takes_in =
            |content: &[u8]| contains(content, "include!") || contains(content, "#[path");
        tree.files()
            .filter(|(path, content)| path.ends_with(".rs") && takes_in(content))
            .map(|(path, content)| Self {
                path,
                literals: source_literals(path, content),
                content,
            })
            .collect()
    }

    fn names(&self, file: &str) -> bool {
        match &self.literals {
            Some(literals) => literals
                .iter()
                .any(|text| text.trim_end_matches(['"', '#']).ends_with(file)),
            None => contains(self.content, file),
        }
    }
}

/// The Rust files of a tree that take in others by `include_str!` or `include_bytes!`.
pub(crate) struct Takers<'a>(Vec<Taker<'a>>);

struct Taker<'a> {
    path: &'a str,
    content: &'a [u8],
    /// The literals it takes in values with; `None` for a file that cannot be read and might mean any.
    values: OnceCell<Option<Vec<String>>>,
}

impl<'a> Takers<'a> {
    pub(crate) fn of(tree: &Tree<'a>) -> Self {
        let takes_in =
            |content: &[u8]| contains(content, "include_str") || contains(content, "include_bytes");
        let files = tree
            .files()
            .filter(|(path, content)| path.ends_with(".rs") && takes_in(content));
        Self(
            files
                .map(|(path, content)| Taker {
                    path,
                    content,
                    values: OnceCell::new(),
                })
                .collect(),
        )
    }

    /// Whether one takes in the bytes of a file of this name as a value: documentation is no value.
    pub(crate) fn compile_in(&self, name: &str) -> bool {
        let mut naming = self.0.iter().filter(|taker| contains(taker.content, name));
        naming.any(|taker| match taker.values() {
            Some(values) => values
                .iter()
                .any(|text| text.trim_end_matches(['"', '#']).ends_with(name)),
            None => true,
        })
    }

    /// Whether one takes in a file of this name, as documentation at least.
    pub(crate) fn take_in(&self, name: &str) -> bool {
        self.0.iter().any(|taker| contains(taker.content, name))
    }

    /// Whether one takes in a file whose name its text does not say in one literal. A file that cannot
    /// be read may.
    pub(crate) fn take_in_unseen(&self) -> bool {
        self.0.iter().any(|taker| {
            let unseen = RelPath::new(taker.path).ok().and_then(|path| {
                let unseen = |tokens| names_unseen(&flatten(tokens));
                with_tokens(&path, taker.content, unseen).ok()
            });
            unseen.unwrap_or(true)
        })
    }
}

impl Taker<'_> {
    fn values(&self) -> Option<&Vec<String>> {
        let read = || {
            let path = RelPath::new(self.path).ok()?;
            with_tokens(&path, self.content, |tokens| values_of(&flatten(tokens))).ok()
        };
        self.values.get_or_init(read).as_ref()
    }
}

/// An argument that is neither one literal nor begins in cargo's folder for what a build makes.
fn names_unseen(tokens: &[Token]) -> bool {
    (0..tokens.len()).any(|at| {
        let around = Around { tokens, at };
        let literal = |ahead| matches!(around.kind(ahead), Some(Kind::Literal(_)));
        let plain = around.is_any_open(2)
            && literal(3)
            && (around.is_close(4) || around.is_operator(4, ',') && around.is_close(5));
        let made = around.name(3) == "concat"
            && around.name(6) == "env"
            && matches!(around.kind(9), Some(Kind::Literal(text)) if text == "\"OUT_DIR\"")
            && !values_near(tokens, at)
                .iter()
                .any(|text| text.contains(".."));
        around.is_call(&["include_str", "include_bytes"]) && !plain && !made
    })
}

/// Literals near `include_str!` and `include_bytes!`, except in `#[doc = include_str!(…)]` outside of
/// the arguments of a macro, which may make a value of it.
fn values_of(tokens: &[Token]) -> Vec<String> {
    let mut out = Vec::new();
    let mut open: Vec<bool> = Vec::new();
    for at in 0..tokens.len() {
        let around = Around { tokens, at };
        let back = |by: usize| at.checked_sub(by).and_then(|at| tokens.get(at));
        let is = |by: usize, kind: Kind| back(by).is_some_and(|token| token.kind == kind);
        let named = |by: usize| {
            matches!(
                back(by),
                Some(Token {
                    kind: Kind::Name(_),
                    ..
                })
            )
        };
        if around.is_any_open(0) {
            let called = is(1, Kind::Operator('!')) && named(2);
            let defined = named(1) && is(2, Kind::Operator('!'));
            open.push(called || defined || open.last() == Some(&true));
        } else if around.is_close(0) {
            open.pop();
        }
        if !around.is_call(&["include_str", "include_bytes"]) {
            continue;
        }
        let documents = is(1, Kind::Operator('='))
            && is(2, Kind::Name("doc".to_owned()))
            && is(3, Kind::Open('['))
            && open.last() != Some(&true);
        if !documents {
            out.extend(values_near(tokens, at));
        }
    }
    out
}

fn values_near(tokens: &[Token], at: usize) -> Vec<String> {
    /// `include_str!(concat!(env!("DIR"), "/", "name"))` is about the longest form there is.
    const MOST_TOKENS: usize = 24;
    let near = tokens.iter().skip(at).take(MOST_TOKENS);
    let literals = near.filter_map(|token| match &token.kind {
        Kind::Literal(text) => Some(text.clone()),
        _ => None,
    });
    literals.collect()
}

/// The literals in `include!(…)` and `#[path = …]`.
fn source_literals(path: &str, content: &[u8]) -> Option<Vec<String>> {
    /// `include!(concat!(env!("DIR"), "/", "name"))` is about the longest form there is.
    const MOST_TOKENS: usize = 24;
    with_tokens(&RelPath::new(path).ok()?, content, |tokens| {
        let tokens = flatten(tokens);
        let mut out = Vec::new();
        for at in 0..tokens.len() {
            let around = Around {
                tokens: &tokens,
                at,
            };
            let most = match around.name(0) {
                "include" if around.is_bang(1) => MOST_TOKENS,
                "path" if around.is_operator(1, '=') => 3,
                _ => continue,
            };
            out.extend(
                tokens
                    .iter()
                    .skip(at)
                    .take(most)
                    .filter_map(|token| match &token.kind {
                        Kind::Literal(text) => Some(text.clone()),
                        _ => None,
                    }),
            );
        }
        out
    })
    .ok()
}

/// A refused construct and the lines it stands on.
struct Finding {
    code: CertifierCode,
    construct: String,
    lines: (u32, u32),
}

impl Finding {
    fn is_on(&self, touched: &BTreeSet<u32>) -> bool {
        touched.range(self.lines.0..=self.lines.1).next().is_some()
    }

    fn refuse(&self, path: &RelPath, how: &str) -> CertifierError {
        self.code.refuse(format_args!(
            "{}:{}: {} {how}",
            escape(path.as_str(), 200),
            self.lines.0,
            escape(&self.construct, 80)
        ))
    }
}

fn findings(tokens: &[Token]) -> Vec<Finding> {
    let mut importing = false;
    let mut out = Vec::new();
    let own = Own {
        callers: own_callers(tokens),
        functions: functions(tokens),
    };
    let mut position = Position::default();
    for at in 0..tokens.len() {
        let around = Around { tokens, at };
        position.take(&around);
        importing = match around.name(0) {
            // Not `impl Trait + use<'a>`.
            "use" if !around.is_operator(1, '<') => true,
            _ => importing && !around.is_operator(0, ';'),
        };
        if let Some((code, length)) = around.refused(importing, &position, &own) {
            out.push(around.finding(code, length));
        }
    }
    out
}

/// What a file declares.
struct Own {
    callers: BTreeSet<String>,
    functions: BTreeSet<String>,
}

/// Names that are functions of a file or taken in from another, and no variable, field or parameter
/// in it, as far as its text says.
fn functions(tokens: &[Token]) -> BTreeSet<String> {
    let mut functions = BTreeSet::new();
    let mut bound = BTreeSet::new();
    let mut importing = false;
    for (at, token) in tokens.iter().enumerate() {
        let around = Around { tokens, at };
        let Kind::Name(name) = &token.kind else {
            importing &= token.kind != Kind::Operator(';');
            continue;
        };
        let back = |by: usize| at.checked_sub(by).map(|at| Around { tokens, at });
        let after = |word: &str| back(1).is_some_and(|token| token.name(0) == word);
        let begins = |mark: char| back(1).is_some_and(|token| token.is_operator(0, mark));
        importing |= name == "use";
        let typed = around.is_operator(1, ':') && !around.is_operator(2, ':') && !begins(':');
        if after("fn") || importing && name.starts_with(|c: char| c.is_lowercase()) {
            functions.insert(name.clone());
        } else if ["let", "mut", "ref", "for"].iter().any(|word| after(word))
            || typed
            || begins('|')
            || around.is_operator(1, '|')
            || around.is_operator(1, '@')
        {
            bound.insert(name.clone());
        }
    }
    &functions - &bound
}

/// Types of a file that have a function `caller` of their own, as far as its text says: declared
/// here, and no import, alias or parameter has their name.
fn own_callers(tokens: &[Token]) -> BTreeSet<String> {
    let named = |at: usize, wanted: &str| matches!(tokens.get(at), Some(Token { kind: Kind::Name(name), .. }) if name == wanted);
    let mut pairs = (0..tokens.len()).filter(|at| named(*at, "fn"));
    if !pairs.any(|at| named(at + 1, "caller")) {
        return BTreeSet::new();
    }
    let mut declared = BTreeSet::new();
    let mut other = BTreeSet::new();
    let mut importing = false;
    for (at, token) in tokens.iter().enumerate() {
        let Kind::Name(name) = &token.kind else {
            importing &= token.kind != Kind::Operator(';');
            continue;
        };
        let before = |word: &str| at.checked_sub(1).is_some_and(|before| named(before, word));
        importing |= name == "use";
        if before("struct") || before("enum") || before("union") {
            declared.insert(name.clone());
        } else if importing || before("type") || before("as") {
            other.insert(name.clone());
        }
    }
    &declared - &other
}

/// What the brackets around a token are.
#[derive(Default)]
struct Position(Vec<Bracket>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Bracket {
    Attribute,
    /// Arguments of a macro that is not known to take expressions, or the body of one.
    Macro,
    Other,
}

impl Position {
    fn take(&mut self, around: &Around<'_>) {
        if around.is_close(0) {
            self.0.pop();
        } else if around.is_any_open(0) {
            let back = |by: usize| {
                let at = around.at.checked_sub(by);
                at.and_then(|at| around.tokens.get(at))
                    .map(|token| &token.kind)
            };
            let is = |by: usize, mark: char| back(by) == Some(&Kind::Operator(mark));
            let named = |by: usize| match back(by) {
                Some(Kind::Name(name)) => Some(name.as_str()),
                _ => None,
            };
            let called = named(2).filter(|_| is(1, '!'));
            let defined = named(1).is_some() && is(2, '!');
            let attribute = around.is_open(0, '[') && (is(1, '#') || is(1, '!') && is(2, '#'));
            self.0.push(match (attribute, called) {
                (true, _) => Bracket::Attribute,
                (false, Some(name)) if !takes_expressions(name) => Bracket::Macro,
                _ if defined => Bracket::Macro,
                _ => Bracket::Other,
            });
        }
    }

    fn in_attribute(&self) -> bool {
        self.0.contains(&Bracket::Attribute)
    }

    fn in_macro(&self) -> bool {
        self.0.contains(&Bracket::Macro)
    }
}

/// Names that mean one thing wherever they stand.
const LOOKS: &[&str] = &[
    "type_name_of_val",
    "track_caller",
    "Backtrace",
    "current_exe",
    "set_hook",
    "take_hook",
    // Where functions and values lie, and whether a sum overflows, is another in another build.
    "fn_addr_eq",
    "addr_eq",
    "catch_unwind",
    "panicking",
    "as_ptr",
    "as_mut_ptr",
    "as_ptr_range",
    "expose_provenance",
];
/// What functions and values are compared by behind `ptr::`.
const PLACES: &[&str] = &[
    "eq",
    "hash",
    "from_ref",
    "from_mut",
    "addr_of",
    "addr_of_mut",
];
/// Numbers that the place of a function can be turned into.
const NUMBERS: &[&str] = &[
    "usize", "isize", "u8", "u16", "u32", "u64", "u128", "i8", "i16", "i32", "i64", "i128",
];
/// Names of attributes, which are ordinary names elsewhere: refused where an attribute is or may be
/// made.
const LINKS: &[&str] = &[
    "no_mangle",
    "link_section",
    "export_name",
    "link_name",
    "global_allocator",
    "panic_handler",
    "no_main",
];

/// Macros whose names are also ordinary names: refused when called, imported or renamed.
const LOOK_MACROS: &[&str] = &[
    "include",
    "file",
    "line",
    "column",
    "include_str",
    "include_bytes",
    "module_path",
    "stringify",
    "option_env",
];
/// Those of them that are refused in the arguments of a macro as well, which may call them.
const LOOKS_IN_MACROS: &[&str] = &[
    "include_str",
    "include_bytes",
    "module_path",
    "stringify",
    "option_env",
];
const ASSEMBLY_MACROS: &[&str] = &["asm", "global_asm", "naked_asm"];
const CONDITION_MACROS: &[&str] = &["cfg", "cfg_if", "cfg_select"];

/// Whether a text is a format that shows where a value lies: `{:p}`, `{x:#p}`.
fn shows_a_place(text: &str) -> bool {
    text.split('{').skip(1).any(|part| {
        let inside = part.split('}').next().unwrap_or_default();
        inside.len() < part.len()
            && inside.contains(':')
            && inside.trim_end().ends_with('p')
            && inside.rsplit(':').next().is_some_and(|how| {
                how.trim_end_matches(['p', ' '])
                    .chars()
                    .all(|c| !c.is_alphabetic() || c == '$')
            })
    })
}

/// A token and those after it.
struct Around<'a> {
    tokens: &'a [Token],
    at: usize,
}

impl Around<'_> {
    /// The rule this token breaks, and how many tokens the construct has.
    fn refused(
        &self,
        importing: bool,
        position: &Position,
        own: &Own,
    ) -> Option<(CertifierCode, usize)> {
        use CertifierCode::{
            ConditionalCode, ForeignLinkage, SourceBidi, SourceIntrospection, UnsafeCode,
        };
        let name = self.name(0);
        if name == "unsafe" || self.is_macro_of(ASSEMBLY_MACROS, importing) {
            return Some((UnsafeCode, 1));
        }
        if !name.is_ascii() {
            return Some((SourceBidi, 1));
        }
        let made = position.in_macro() && LOOKS_IN_MACROS.contains(&name);
        if LOOKS.contains(&name)
            || made
            || self.is_type_name(importing)
            || self.is_caller(&own.callers)
        {
            return Some((SourceIntrospection, 1));
        }
        if self.is_place(importing) || self.is_function_as_number(&own.functions) {
            return Some((SourceIntrospection, 3));
        }
        if self.is_macro_of(LOOK_MACROS, importing)
            || self.is_env(importing)
            || self.is_named_by_parameter()
        {
            return Some((SourceIntrospection, 3));
        }
        let names_attribute = position.in_attribute() || position.in_macro();
        if (names_attribute && LINKS.contains(&name)) || self.is_foreign() {
            return Some((ForeignLinkage, 2));
        }
        if self.is_macro_of(CONDITION_MACROS, importing) {
            return Some((ConditionalCode, 2));
        }
        self.refused_attribute()
    }

    /// `#[name …]`, `#![name …]`, `#[unsafe(name …)]`.
    fn refused_attribute(&self) -> Option<(CertifierCode, usize)> {
        if !self.is_operator(0, '#') {
            return None;
        }
        let open = 1 + usize::from(self.is_operator(1, '!'));
        if !self.is_open(open, '[') {
            return None;
        }
        match self.name(open + 1) {
            "path" if self.is_operator(open + 2, '=') => {
                Some((CertifierCode::SourceIntrospection, open + 4))
            }
            "link" | "used" | "linkage" => Some((CertifierCode::ForeignLinkage, open + 2)),
            "cfg" if self.is_test_only(open + 2) => None,
            "cfg" | "cfg_attr" => Some((CertifierCode::ConditionalCode, open + 3)),
            _ => None,
        }
    }

    /// `(test)]`
    fn is_test_only(&self, from: usize) -> bool {
        self.is_open(from, '(')
            && self.name(from + 1) == "test"
            && self.is_close(from + 2)
            && self.is_close(from + 3)
    }

    /// `name!(`, and `name!$` inside a macro definition. Not `name != x`.
    fn is_call(&self, names: &[&str]) -> bool {
        names.contains(&self.name(0)) && self.is_bang(1)
    }

    fn is_bang(&self, ahead: usize) -> bool {
        self.is_operator(ahead, '!')
            && (self.is_any_open(ahead + 1) || self.is_operator(ahead + 1, '$'))
    }

    fn is_macro_of(&self, names: &[&str], importing: bool) -> bool {
        self.is_call(names) || (importing && names.contains(&self.name(0)) && self.is_imported())
    }

    /// The end of an imported path, renamed or not: `use std::line;`, `use core::{line as l}`.
    fn is_imported(&self) -> bool {
        self.name(1) == "as"
            || self.is_close(1)
            || self.is_operator(1, ',')
            || self.is_operator(1, ';')
    }

    /// `env!("CARGO_PKG_…")` is the same in every build of a version; other variables are not.
    /// `use std::env` is needed for the module of that name; renaming it would rename the macro.
    fn is_env(&self, importing: bool) -> bool {
        let package =
            matches!(self.kind(3), Some(Kind::Literal(text)) if text.starts_with("\"CARGO_PKG_"));
        (self.is_call(&["env"]) && !(package && self.is_any_open(2)))
            || (importing && self.name(0) == "env" && self.name(1) == "as")
    }

    fn is_type_name(&self, importing: bool) -> bool {
        let from_path = self.before(':') || (self.is_operator(1, ':') && self.is_operator(3, '<'));
        self.name(0) == "type_name" && (importing || from_path)
    }

    /// `Location::caller`, under whatever name the type goes, unless that is a type of the file.
    fn is_caller(&self, own: &BTreeSet<String>) -> bool {
        let of = self.at.checked_sub(3).and_then(|at| self.tokens.get(at));
        let is_own = matches!(of, Some(Token { kind: Kind::Name(of), .. }) if own.contains(of));
        self.name(0) == "caller" && self.before(':') && !is_own
    }

    /// Where something lies: `as *const u8`, `as fn()`, `ptr::eq`, `{:p}`.
    fn is_place(&self, importing: bool) -> bool {
        let pointer = self.is_operator(0, '*') && ["const", "mut"].contains(&self.name(1))
            || self.name(0) == "raw"
                && self.before('&')
                && ["const", "mut"].contains(&self.name(1));
        let cast = self.name(0) == "as"
            && (self.name(1) == "fn" || self.name(1) == "extern" && self.name(3) == "fn");
        let path = self.name(0) == "ptr" && self.is_operator(1, ':') && self.is_operator(2, ':');
        let compared = path
            && (PLACES.contains(&self.name(3))
                || importing && (self.is_any_open(3) || self.is_operator(3, '*')))
            || importing && self.name(0) == "ptr" && self.name(1) == "as"
            || self.name(0) == "fmt" && self.is_operator(1, ':') && self.name(3) == "Pointer";
        let shown = matches!(self.kind(0), Some(Kind::Literal(text)) if shows_a_place(text));
        pointer || cast || compared || shown
    }

    /// `total as usize`, `prices::total as u64`, `total::<u8> as usize`.
    fn is_function_as_number(&self, functions: &BTreeSet<String>) -> bool {
        let cast =
            |ahead: usize| self.name(ahead) == "as" && NUMBERS.contains(&self.name(ahead + 1));
        let name = self.name(0);
        let lower = name.starts_with(|c: char| c.is_lowercase());
        cast(1)
            && (self.is_operator(0, '>')
                || lower && self.before(':')
                || functions.contains(name) && !self.before('.'))
    }

    /// `$name!(…)`
    fn is_named_by_parameter(&self) -> bool {
        self.is_operator(0, '$') && !self.name(1).is_empty() && self.is_bang(2)
    }

    /// `extern "C"`, `extern fn`, `extern { … }`; not `extern crate`.
    fn is_foreign(&self) -> bool {
        let foreign = matches!(self.kind(1), Some(Kind::Literal(_)))
            || self.is_open(1, '{')
            || self.name(1) == "fn";
        self.name(0) == "extern" && foreign
    }

    fn finding(&self, code: CertifierCode, length: usize) -> Finding {
        let parts = self.tokens.get(self.at..).unwrap_or_default();
        let parts = parts.get(..length).unwrap_or(parts);
        Finding {
            code,
            construct: parts.iter().map(Token::text).collect(),
            lines: (
                parts.first().map_or(0, |token| token.lines.0),
                parts.last().map_or(0, |token| token.lines.1),
            ),
        }
    }

    fn kind(&self, ahead: usize) -> Option<&Kind> {
        self.tokens.get(self.at + ahead).map(|token| &token.kind)
    }

    /// The name at a distance, empty where there is none.
    fn name(&self, ahead: usize) -> &str {
        match self.kind(ahead) {
            Some(Kind::Name(name)) => name,
            _ => "",
        }
    }

    fn is_operator(&self, ahead: usize, operator: char) -> bool {
        self.kind(ahead) == Some(&Kind::Operator(operator))
    }

    fn is_open(&self, ahead: usize, open: char) -> bool {
        self.kind(ahead) == Some(&Kind::Open(open))
    }

    fn is_any_open(&self, ahead: usize) -> bool {
        matches!(self.kind(ahead), Some(Kind::Open(_)))
    }

    fn is_close(&self, ahead: usize) -> bool {
        matches!(self.kind(ahead), Some(Kind::Close(_)))
    }

    fn before(&self, operator: char) -> bool {
        let before = self.at.checked_sub(1).and_then(|at| self.tokens.get(at));
        before.is_some_and(|token| token.kind == Kind::Operator(operator))
    }
}

#[cfg(test)]
mod tests;
