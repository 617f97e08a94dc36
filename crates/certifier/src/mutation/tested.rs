//! What tests do beside testing. They run where a developer's keys are, and nothing proves them.

use std::collections::BTreeSet;

use flightproof_core::RelPath;
use proc_macro2::TokenStream;

use super::examples::{Example, examples, examples_of_page};
use super::outside::Own;
use super::survey::{Covered, LineIndex, Silence, Survey};
use crate::flat::{Kind, Token, flatten};
use crate::tokens::with_tokens;

/// Names that start a process or open a connection. Files are what honest tests write all day.
const STARTING: &[&str] = &[
    "Command",
    "TcpStream",
    "UdpSocket",
    "UnixStream",
    "UnixDatagram",
    "ToSocketAddrs",
];
/// Modules that hold them, of which a test takes in neither everything nor a name it is given.
const MODULES: &[&str] = &["process", "net", "std"];
/// Roots of paths that no declaration of a file's own stands before.
const STANDARD: &[&str] = &["std", "core", "alloc"];
/// What is no part of a path and acts by itself: a method, and a crate of bare system calls.
const METHOD: &str = "to_socket_addrs";
const SYSTEM: &str = "libc";

impl Survey {
    /// Names tests, and code in documentation, that start a process or open a connection. The
    /// program under test may be started: by the name cargo gives it.
    pub(super) fn note_acting_tests(
        &mut self,
        body: &str,
        tokens: &TokenStream,
        index: &LineIndex,
        own: &Own,
        changed: &BTreeSet<u32>,
    ) {
        let tests = self.silences.iter();
        let tests = tests.filter(|(_, why)| *why == Silence::TestOnly);
        let tests: Covered = tests.map(|(range, _)| index.lines(range)).collect();
        let mut lines: BTreeSet<u32> = starting(&flatten(tokens.clone()), own);
        lines.retain(|line| changed.contains(line) && tests.contains(*line));
        for example in examples(body, tokens, index) {
            lines.extend(example.acting(changed));
        }
        let places = lines
            .iter()
            .map(|line| (index.beginning(*line), Silence::Effect));
        self.hidden.extend(places);
    }
}

/// What changed code of a document does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageCode {
    /// It is run as a test, and starts nothing.
    Quiet,
    /// It starts a process or opens a connection.
    Acting,
}

impl PageCode {
    /// The changed code of a document that a Rust file takes in as documentation.
    pub(crate) fn of(content: &[u8], changed: &BTreeSet<u32>) -> Option<Self> {
        let text = String::from_utf8_lossy(content);
        let mut found = examples_of_page(&text);
        found.retain(|example| !example.lines.is_disjoint(changed));
        let acts = |example: &Example| !example.acting(changed).is_empty();
        let acting = found.iter().any(acts);
        (!found.is_empty()).then_some(if acting { Self::Acting } else { Self::Quiet })
    }
}

impl Example {
    /// Changed lines on which it acts, or with which it became code that does.
    fn acting(&self, changed: &BTreeSet<u32>) -> BTreeSet<u32> {
        let code: String = self.code.lines().map(shown).collect();
        if self.lines.is_disjoint(changed) {
            return BTreeSet::new();
        }
        let path = RelPath::new("example.rs").ok();
        let found = path.and_then(|path| {
            with_tokens(&path, code.as_bytes(), |tokens| {
                let parsed = syn::parse2::<syn::File>(tokens.clone());
                let own = parsed.map_or_else(|_| Own::default(), |parsed| Own::of(&parsed));
                let tokens = flatten(tokens);
                &starting(&tokens, &own) | &linking(&tokens)
            })
            .ok()
        });
        // Of what cannot be read nobody knows where its names stand.
        let found = found.unwrap_or_else(|| {
            let names = |line: &str| STARTING.iter().any(|name| line.contains(name));
            let lines = (1..).zip(code.lines());
            lines
                .filter(|(_, text)| names(text))
                .map(|(at, _)| at)
                .collect()
        });
        let place = |line: &u32| {
            let at = usize::try_from(*line).unwrap_or(usize::MAX);
            self.places.get(at.saturating_sub(1)).copied()
        };
        let acting: BTreeSet<u32> = found.iter().filter_map(place).collect();
        let fences = self.lines.iter().filter(|line| !self.places.contains(line));
        let opened = fences.copied().find(|line| changed.contains(line));
        match opened {
            Some(line) if !acting.is_empty() && acting.is_disjoint(changed) => [line].into(),
            _ => &acting & changed,
        }
    }
}

/// A line as it is compiled: one that is hidden from readers begins with `# `.
fn shown(line: &str) -> String {
    let bare = line.trim_start();
    let hidden = bare
        .strip_prefix("# ")
        .or_else(|| bare.strip_prefix("##").map(|_| &bare[1..]));
    let text = match bare {
        "#" => "",
        _ => hidden.unwrap_or(line),
    };
    format!("{text}\n")
}

/// Lines on which such a name is used or gets another one.
fn starting(tokens: &[Token], own: &Own) -> BTreeSet<u32> {
    let taken = standard_imports(tokens);
    let names = (0..tokens.len()).filter(|at| {
        let path = Path { tokens, at: *at };
        path.hands_on() || path.acts() || path.starts() && !path.is_own(own, &taken)
    });
    names.map(|at| tokens[at].lines.0).collect()
}

/// Lines that reach what is no Rust: in tests the fence refuses them.
fn linking(tokens: &[Token]) -> BTreeSet<u32> {
    let names = (0..tokens.len()).filter(|at| {
        let path = Path { tokens, at: *at };
        let foreign = matches!(path.ahead(1), Some(Kind::Literal(_) | Kind::Open('{')));
        path.name() == "extern" && (foreign || path.named(1, "fn"))
            || path.name() == "include" && path.is(1, '!')
    });
    names.map(|at| tokens[at].lines.0).collect()
}

/// Names that an import takes from the standard library.
fn standard_imports(tokens: &[Token]) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    let mut root: Option<bool> = None;
    for (at, token) in tokens.iter().enumerate() {
        let path = Path { tokens, at };
        match (&token.kind, &mut root) {
            (Kind::Name(name), None) if name == "use" => root = Some(false),
            (Kind::Name(name), Some(standard)) => {
                *standard |= STANDARD.contains(&name.as_str()) && !path.behind();
                if *standard {
                    out.insert(name.clone());
                }
            }
            (Kind::Operator(';'), _) => root = None,
            _ => {}
        }
    }
    out
}

/// A name in a path.
struct Path<'a> {
    tokens: &'a [Token],
    at: usize,
}

impl Path<'_> {
    fn ahead(&self, by: usize) -> Option<&Kind> {
        self.tokens.get(self.at + by).map(|token| &token.kind)
    }

    fn is(&self, by: usize, mark: char) -> bool {
        self.ahead(by) == Some(&Kind::Operator(mark))
    }

    fn named(&self, by: usize, word: &str) -> bool {
        matches!(self.ahead(by), Some(Kind::Name(name)) if name == word)
    }

    fn name(&self) -> &str {
        match self.ahead(0) {
            Some(Kind::Name(name)) => name,
            _ => "",
        }
    }

    /// `name::`
    fn leads(&self) -> bool {
        self.is(1, ':') && self.is(2, ':')
    }

    fn back(&self, by: usize) -> Option<&Kind> {
        let at = self.at.checked_sub(by)?;
        self.tokens.get(at).map(|token| &token.kind)
    }

    /// `a::name`: another name stands before it, not only the root `::`.
    fn behind(&self) -> bool {
        let mark = Some(&Kind::Operator(':'));
        self.back(1) == mark && self.back(2) == mark && matches!(self.back(3), Some(Kind::Name(_)))
    }

    /// The names before it in its path, first to last, and where that begins.
    fn path(&self) -> (Vec<String>, usize) {
        let mut names = vec![self.name().to_owned()];
        let mut at = self.at;
        loop {
            let path = Path {
                tokens: self.tokens,
                at,
            };
            if !path.behind() {
                break;
            }
            at -= 3;
            let first = Path {
                tokens: self.tokens,
                at,
            };
            names.insert(0, first.name().to_owned());
        }
        let mark = |back: usize| {
            let at = at.checked_sub(back).and_then(|at| self.tokens.get(at));
            at.is_some_and(|token| token.kind == Kind::Operator(':'))
        };
        (names, if mark(1) && mark(2) { at - 2 } else { at })
    }

    /// `net::*`, `net::{*}`, `std::$a`: whatever a module has, or what a macro is given.
    fn hands_on(&self) -> bool {
        let all = self.is(3, '*') || self.ahead(3) == Some(&Kind::Open('{')) && self.is(4, '*');
        MODULES.contains(&self.name()) && self.leads() && (all || self.is(3, '$'))
    }

    fn acts(&self) -> bool {
        self.name() == METHOD || self.name() == SYSTEM && self.leads()
    }

    /// It is called, renamed, or handed to a trait.
    fn starts(&self) -> bool {
        if !STARTING.contains(&self.name()) {
            return false;
        }
        let tested = self.named(3, "cargo_bin")
            || self.named(5, "env")
                && matches!(self.ahead(8), Some(Kind::Literal(text)) if text.starts_with("\"CARGO_BIN_EXE_"));
        if self.leads() {
            return !tested;
        }
        let (_, first) = self.path();
        let before = first.checked_sub(1).and_then(|at| self.tokens.get(at));
        let after = |mark| before.is_some_and(|token| token.kind == Kind::Operator(mark));
        let implemented = before.is_some_and(|token| token.kind == Kind::Name("for".to_owned()));
        let qualified = after('<') && self.is(1, '>') && self.is(2, ':') && self.is(3, ':');
        self.named(1, "as") || after('=') || implemented || qualified
    }

    /// The program's own by that name. A path from the root of the standard library is never one,
    /// and neither is a name that the file takes from there.
    fn is_own(&self, own: &Own, taken: &BTreeSet<String>) -> bool {
        let (names, _) = self.path();
        let standard = names
            .first()
            .is_some_and(|first| STANDARD.contains(&first.as_str()));
        !standard && !taken.contains(self.name()) && own.has(&names)
    }
}

/// Lines of documentation that are code: they are run as tests.
pub(super) fn example_lines(body: &str, tokens: &TokenStream, index: &LineIndex) -> BTreeSet<u32> {
    let found = examples(body, tokens, index);
    found
        .into_iter()
        .flat_map(|example| example.lines)
        .collect()
}
