//! What the touched tokens of a file belong to: statements that mutants must show to matter, what acts
//! through others, and what no mutant can judge.

use super::Language;
use super::names::{C_EFFECTS, GO_EFFECTS, JS_EFFECTS, PYTHON_EFFECTS, has};
use super::operators::{Found, is_docstring, name_of, statement_of};
use super::plan::Edited;
use super::syntax::Syntax;
use super::texts;
use super::types::Sort;
use crate::mutation::{LineIndex, Operator, Silence};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What was found of the touched tokens.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// Lines with a touched token.
    pub(super) code: BTreeSet<u32>,
    /// Statements with a touched token: the byte and the line where the first of them begins.
    pub(super) statements: BTreeMap<usize, (usize, u32)>,
    /// Lines of declarations that act through what uses them.
    pub(super) declared: BTreeSet<u32>,
    /// Lines that nothing judges.
    pub(super) unjudged: BTreeSet<(u32, Silence)>,
    /// Nodes in which no mutant is made.
    pub(super) hidden: BTreeSet<usize>,
}

/// A statement that mutants must show to matter.
#[derive(Debug, Clone)]
pub(super) struct Statement {
    pub(super) line: u32,
    /// Whether any kill will do: the statement brings in names, or its branch has no other mutant.
    pub(super) any_kill: bool,
    /// Numbers of the mutants that can.
    pub(super) mutants: Vec<usize>,
}

/// What is known of the rest of the tree.
pub(super) struct Around<'a> {
    /// Whether a name stands in another file of the language that did not change.
    pub(super) used: &'a dyn Fn(&str) -> bool,
    /// Whether something reads what documents the code.
    pub(super) documents_read: bool,
}

impl Places {
    pub(super) fn of(edited: &Edited<'_>, around: &Around<'_>) -> Self {
        let mut places = Self::default();
        let syntax = &edited.syntax;
        let index = LineIndex::of(syntax.text);
        let guard = include_guard(syntax);
        let kinds = syntax.language.grammar().places;
        for (at, node) in syntax.nodes.iter().enumerate() {
            let placed = kinds.iter().any(|(kind, _)| *kind == node.kind);
            if placed && !guard.contains(&at) && syntax.said(at).trim() != "#pragma once" {
                places.hidden.insert(at);
            }
        }
        let names = Names::of(edited, around);
        for (number, token) in edited.tokens.iter().enumerate() {
            let edits = edited.touched.edited.contains(&number);
            if !edits && !edited.touched.beside.contains(&number) {
                continue;
            }
            let lines = index.lines(&token.range);
            let line = *lines.start();
            places.code.extend(lines);
            let said = syntax.slice(&token.range);
            let mut up = std::iter::once(token.node).chain(syntax.around(token.node));
            if let Some(at) = up.find(|at| places.hidden.contains(at)) {
                let why = kinds.iter().find(|(kind, _)| *kind == syntax.kind(at));
                let why = why.map_or(Silence::Attribute, |(_, why)| *why);
                places.unjudged.insert((line, why));
                continue;
            }
            let text = match syntax.kind(token.node) {
                "string_content" => texts::piece(syntax, token.node, said),
                "escape_sequence" => {
                    let literal = texts::literal(syntax, syntax.nodes[token.node].parent);
                    literal.unwrap_or_default()
                }
                _ => said.to_owned(),
            };
            if edits
                && (acts_outside(syntax.language, &text) || acts_here(syntax, token.node, said))
            {
                places.unjudged.insert((line, Silence::Effect));
            }
            if edits && names.is_in_acting_assertion(token.node) {
                places.unjudged.insert((line, Silence::DebugOnly));
            }
            if edits && names.is_in_acting_head(token.node) {
                places.unjudged.insert((line, Silence::NoOperator));
            }
            match names.role(token.node, edits, &guard) {
                Role::Statement(at) => {
                    let start = token.range.start;
                    places.statements.entry(at).or_insert((start, line));
                }
                Role::Declaration => {
                    places.declared.insert(line);
                }
                Role::Silent(why) => {
                    places.unjudged.insert((line, why));
                }
            }
        }
        if let (Some((old, _)), Some(line)) = (&edited.old, places.code.first().copied()) {
            let kept: BTreeSet<&str> = includes(syntax).collect();
            let gone = includes(old).any(|name| !kept.contains(name));
            // A function without a declaration answers with an `int`.
            let kept: BTreeSet<&str> = prototypes(syntax).collect();
            let mut lost = prototypes(old).filter(|name| !kept.contains(name));
            if gone || lost.any(|name| names.kept_at.contains_key(name) || (around.used)(name)) {
                places.unjudged.insert((line, Silence::Rebound));
            }
        }
        let stated: BTreeSet<u32> = places.statements.values().map(|(_, line)| *line).collect();
        places.declared = &places.declared - &stated;
        places
    }

    /// The mutants that can show each statement to matter. A statement without any is unjudged.
    pub(super) fn judged(&mut self, syntax: &Syntax<'_>, found: &[Found]) -> Vec<Statement> {
        let mut statements = Vec::new();
        for (at, (probe, line)) in &self.statements {
            let import = syntax.kind(*at).starts_with("import_");
            let near = numbers(found, |m| {
                m.operator != Operator::FunctionValue
                    && (m.statement == Some(*at) || m.covers.contains(probe))
            });
            let range = &syntax.nodes[*at].range;
            let far = numbers(found, |m| {
                m.operator == Operator::FunctionValue && m.covers.contains(probe)
                    || range.start <= m.span.start && m.span.end <= range.end
            });
            let all: BTreeSet<usize> = near.into_iter().chain(far).collect();
            let valued = all.iter().any(|m| found[*m].operator != Operator::Branch);
            match all.is_empty() {
                true => {
                    self.unjudged.insert((*line, Silence::NoOperator));
                }
                false => statements.push(Statement {
                    line: *line,
                    any_kill: import || !valued,
                    mutants: all.into_iter().collect(),
                }),
            }
        }
        statements
    }
}

fn numbers(found: &[Found], which: impl Fn(&Found) -> bool) -> Vec<usize> {
    let all = found.iter().enumerate();
    all.filter(|(_, m)| which(m))
        .map(|(number, _)| number)
        .collect()
}

/// What a touched token belongs to.
enum Role {
    Statement(usize),
    Declaration,
    Silent(Silence),
}

/// The names of a file, before and now.
struct Names<'a> {
    edited: &'a Edited<'a>,
    around: &'a Around<'a>,
    /// Words of the baseline's text.
    before: BTreeSet<&'a str>,
    /// Words that did not change, and where each of them stands, in order.
    kept_at: HashMap<&'a str, Vec<usize>>,
    /// Functions of the baseline, with the tokens of their heads.
    heads: BTreeMap<String, Vec<&'a str>>,
    /// What was asked of statements: every token of one asks the same.
    asked: RefCell<HashMap<(Question, usize), bool>>,
    /// Whether names stand in other files.
    used: RefCell<HashMap<String, bool>>,
}

/// What is asked of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Question {
    Rebinds,
    IsNewList,
    DeclaresNew,
    CallsOtherwise,
    HasValue,
    Hides,
    Acts,
}

impl<'a> Names<'a> {
    fn of(edited: &'a Edited<'a>, around: &'a Around<'a>) -> Self {
        let old = edited.old.as_ref();
        let before = old.map(|(syntax, tokens)| {
            tokens
                .iter()
                .map(|token| syntax.slice(&token.range))
                .collect()
        });
        let all = edited.tokens.iter().enumerate();
        let kept = all.filter(|(number, _)| !edited.touched.edited.contains(number));
        let mut kept_at: HashMap<&str, Vec<usize>> = HashMap::new();
        for (_, token) in kept {
            let places = kept_at.entry(edited.syntax.slice(&token.range));
            places.or_default().push(token.range.start);
        }
        let heads = old.map(|(syntax, _)| {
            let functions = (0..syntax.nodes.len()).filter(|at| is_function(syntax, *at));
            functions
                .map(|at| (name_of(syntax, at), head(syntax, at)))
                .collect()
        });
        Self {
            edited,
            around,
            before: before.unwrap_or_default(),
            kept_at,
            heads: heads.unwrap_or_default(),
            asked: RefCell::default(),
            used: RefCell::default(),
        }
    }

    fn asked(&self, question: Question, statement: usize, ask: impl FnOnce() -> bool) -> bool {
        let key = (question, statement);
        let known = self.asked.borrow().get(&key).copied();
        known.unwrap_or_else(|| {
            let answer = ask();
            self.asked.borrow_mut().insert(key, answer);
            answer
        })
    }

    fn role(&self, node: usize, edits: bool, guard: &BTreeSet<usize>) -> Role {
        let syntax = &self.edited.syntax;
        let grammar = syntax.language.grammar();
        let Some(at) = statement_of(syntax, node) else {
            return self.loose(node, guard);
        };
        let kind = syntax.kind(at);
        let new = |name: &str| !self.before.contains(name);
        let unless = |fine: bool| match fine || !edits {
            true => Role::Declaration,
            false => Role::Silent(Silence::Rebound),
        };
        if is_docstring(syntax, at) && !self.around.documents_read {
            return Role::Declaration;
        }
        if matches!(
            kind,
            "import_statement" | "import_from_statement" | "import_spec"
        ) {
            let rebinds = || self.asked(Question::Rebinds, at, || self.rebinds(at));
            return match edits && rebinds() {
                true => Role::Silent(Silence::Rebound),
                false if kind == "import_spec" => Role::Declaration,
                false => Role::Statement(at),
            };
        }
        if kind == "enum_specifier" {
            let item = std::iter::once(node)
                .chain(syntax.around(node))
                .find(|at| syntax.kind(*at) == "enumerator");
            return match item {
                Some(item) if syntax.part(item, "value").is_some() => Role::Statement(at),
                Some(item) => {
                    let list = || self.asked(Question::IsNewList, at, || self.is_new_list(at));
                    unless(new(&name_of(syntax, item)) && list())
                }
                None => Role::Declaration,
            };
        }
        if kind == "preproc_include" {
            let of = syntax.nodes[at].parent;
            let outside = syntax.kind(of) == "translation_unit" || guard.contains(&of);
            // Its macros stand for functions of the same names.
            return unless(outside && !syntax.said(at).contains("tgmath.h"));
        }
        let named_alone = matches!(
            kind,
            "declaration" | "lexical_declaration" | "variable_declaration" | "var_declaration"
        );
        let valued = || {
            let any = || syntax.within(at).any(|at| has_value(syntax, at));
            self.asked(Question::HasValue, at, any)
        };
        if edits && (named_alone || kind == "type_definition") {
            if self.hides(at, node) {
                return Role::Silent(Silence::Rebound);
            }
            // The length of a list in C.
            if !valued() && self.asked(Question::Acts, at, || acts(syntax, at)) {
                return Role::Silent(Silence::NoOperator);
            }
        }
        if grammar.declarations.contains(&kind) {
            let fine = self.asked(Question::DeclaresNew, at, || {
                let name = name_of(syntax, at);
                matches!(
                    kind,
                    "pass_statement" | "empty_statement" | "type_definition"
                ) || self.declares_new(at)
                    || !name.is_empty() && new(&name)
            });
            return unless(fine);
        }
        if matches!(kind, "global_statement" | "nonlocal_statement")
            && edits
            && syntax.inner(at).len() > 1
            && self.before.contains(syntax.said(node))
        {
            return Role::Silent(Silence::Rebound);
        }
        let otherwise = || self.asked(Question::CallsOtherwise, at, || self.calls_otherwise(at));
        if is_function(syntax, at) && edits && otherwise() {
            return Role::Silent(Silence::Rebound);
        }
        if named_alone && !valued() {
            return Role::Declaration;
        }
        Role::Statement(at)
    }

    /// A token outside of any statement.
    fn loose(&self, node: usize, guard: &BTreeSet<usize>) -> Role {
        let syntax = &self.edited.syntax;
        let said = syntax.said(node);
        let mut up = std::iter::once(node).chain(syntax.around(node));
        let guarded = up.clone().any(|at| guard.contains(&at));
        let packaged = up.any(|at| syntax.kind(at) == "package_clause");
        let grouped = matches!(said, ";" | "," | "(" | ")" | "{" | "}" | "import" | "const");
        let once = syntax.text.contains("#pragma once") && syntax.kind(node).starts_with("preproc");
        match guarded || grouped || once || packaged && self.edited.old.is_none() {
            true => Role::Declaration,
            false => Role::Silent(Silence::NoOperator),
        }
    }

    /// Whether an import gives another meaning to words that did not change.
    fn rebinds(&self, import: usize) -> bool {
        let syntax = &self.edited.syntax;
        let said = syntax.said(import);
        let old = self.edited.old.as_ref();
        let known = old.is_some_and(|(old, _)| {
            let mut all = (0..old.nodes.len()).filter(|at| old.kind(*at).starts_with("import_"));
            all.any(|at| old.said(at) == said)
        });
        if known {
            return false;
        }
        let wild = syntax
            .within(import)
            .any(|at| syntax.kind(at) == "wildcard_import");
        wild || bound(syntax, import)
            .iter()
            .any(|name| self.kept_at.contains_key(name.as_str()))
    }

    fn is_new_list(&self, list: usize) -> bool {
        let syntax = &self.edited.syntax;
        let mut items = syntax
            .within(list)
            .filter(|at| syntax.kind(*at) == "enumerator");
        items.all(|at| !self.before.contains(name_of(syntax, at).as_str()))
    }

    /// Whether a token of a declaration gives a name without a value that the baseline's text has: one in a
    /// declarator that one, one before all declarators each of them.
    fn hides(&self, declaration: usize, node: usize) -> bool {
        let syntax = &self.edited.syntax;
        if matches!(syntax.said(node), "," | ";" | "(" | ")") {
            return false;
        }
        let hidden = |at: usize| {
            let names = names_without_value(syntax, at);
            names
                .iter()
                .any(|name| self.before.contains(syntax.said(*name)))
        };
        let mut around = std::iter::once(node).chain(syntax.around(node));
        // Every token of one part of it asks the same.
        match around.find(|at| is_declarator(syntax, declaration, *at)) {
            Some(own) => self.asked(Question::Hides, own, || hidden(own)),
            None => self.asked(Question::Hides, declaration, || {
                declarators(syntax, declaration).any(hidden)
            }),
        }
    }

    /// Whether every name that a declaration of types gives is new.
    fn declares_new(&self, at: usize) -> bool {
        let syntax = &self.edited.syntax;
        let mut names = syntax
            .within(at)
            .filter(|at| matches!(syntax.kind(*at), "type_spec" | "type_alias"))
            .map(|at| name_of(syntax, at))
            .peekable();
        names.peek().is_some() && names.all(|name| !self.before.contains(name.as_str()))
    }

    /// Whether a function has another head than before, and lines that did not change call it.
    fn calls_otherwise(&self, function: usize) -> bool {
        let syntax = &self.edited.syntax;
        let name = name_of(syntax, function);
        let Some(before) = self.heads.get(&name) else {
            return false;
        };
        let used = || self.kept_beside(&name, function) || self.used(&name);
        *before != head(syntax, function) && used()
    }

    /// Whether a name stands, unchanged, somewhere else than in the head of its own function.
    fn kept_beside(&self, name: &str, function: usize) -> bool {
        let syntax = &self.edited.syntax;
        let body = syntax
            .part(function, "body")
            .map(|at| syntax.nodes[at].range.start);
        let own = syntax.nodes[function].range.start..body.unwrap_or_default();
        let places = self.kept_at.get(name).into_iter().flatten();
        let ends = [places.clone().next(), places.last()];
        ends.into_iter().flatten().any(|at| !own.contains(at))
    }

    /// Whether a name stands in another file.
    fn used(&self, name: &str) -> bool {
        let mut known = self.used.borrow_mut();
        let known = known.entry(name.to_owned());
        *known.or_insert_with(|| (self.around.used)(name))
    }

    /// In an assertion that does more than ask: under `-O` Python leaves it out, with what it does.
    fn is_in_acting_assertion(&self, node: usize) -> bool {
        let syntax = &self.edited.syntax;
        if syntax.language != Language::Python {
            return false;
        }
        let mut around = std::iter::once(node).chain(syntax.around(node));
        let assertion = around.find(|at| syntax.kind(*at) == "assert_statement");
        assertion.is_some_and(|at| self.asked(Question::Acts, at, || acts(syntax, at)))
    }

    /// In what is evaluated where a function or class is defined, or before its body, and does more than
    /// answer: bases, defaults, annotations, lengths. No mutant leaves it out alone.
    fn is_in_acting_head(&self, node: usize) -> bool {
        let syntax = &self.edited.syntax;
        let blocks = syntax.language.grammar().blocks;
        let around = std::iter::once(node).chain(syntax.around(node));
        let mut heads = around
            .take_while(|at| !blocks.contains(&syntax.kind(*at)))
            .filter(|at| syntax.sorts[*at] == Sort::Code && is_head(syntax, *at));
        heads.any(|at| self.asked(Question::Acts, at, || acts(syntax, at)))
    }
}

fn is_function(syntax: &Syntax<'_>, at: usize) -> bool {
    syntax
        .language
        .grammar()
        .functions
        .contains(&syntax.kind(at))
}

/// The tokens before a function's body.
fn head<'a>(syntax: &Syntax<'a>, function: usize) -> Vec<&'a str> {
    let body = syntax.part(function, "body");
    let end = body.map_or(syntax.nodes[function].range.end, |at| {
        syntax.nodes[at].range.start
    });
    let leaves = syntax
        .within(function)
        .filter(|at| syntax.nodes[*at].children.is_empty());
    let before = leaves.take_while(|at| syntax.nodes[*at].range.start < end);
    before.map(|at| syntax.said(at)).collect()
}

fn has_value(syntax: &Syntax<'_>, at: usize) -> bool {
    matches!(syntax.nodes[at].field, "value") && syntax.kind(at) != "enumerator"
}

/// The parts of a declaration that each give names of their own.
fn declarators<'a>(syntax: &'a Syntax<'_>, declaration: usize) -> impl Iterator<Item = usize> + 'a {
    let all = syntax.within(declaration);
    all.filter(move |at| is_declarator(syntax, declaration, *at))
}

fn is_declarator(syntax: &Syntax<'_>, declaration: usize, at: usize) -> bool {
    let node = &syntax.nodes[at];
    match syntax.kind(declaration) {
        "declaration" | "type_definition" => {
            node.parent == declaration && node.field == "declarator"
        }
        "var_declaration" => node.kind == "var_spec",
        _ => node.parent == declaration && node.kind == "variable_declarator",
    }
}

/// The names that such a part gives, unless with a value.
fn names_without_value(syntax: &Syntax<'_>, declarator: usize) -> Vec<usize> {
    if syntax.part(declarator, "value").is_some() {
        return Vec::new();
    }
    let named = |at: &usize| {
        matches!(
            syntax.kind(*at),
            "identifier" | "type_identifier" | "primitive_type"
        )
    };
    let children = syntax.nodes[declarator].children.iter().copied();
    match syntax.kind(declarator) {
        "var_spec" => children
            .filter(|at| syntax.nodes[*at].field == "name")
            .collect(),
        // Brackets and stars may stand around it, lengths and parameters behind it.
        _ => syntax.within(declarator).find(named).into_iter().collect(),
    }
}

/// The functions and variables that a file in C declares or defines outside of any function.
fn prototypes<'a>(syntax: &'a Syntax<'_>) -> impl Iterator<Item = &'a str> + 'a {
    let c = syntax.language == Language::C;
    let all = (0..syntax.nodes.len()).filter(move |at| {
        let of = syntax.kind(syntax.nodes[*at].parent);
        c && matches!(syntax.kind(*at), "declaration" | "function_definition")
            && (of == "translation_unit" || of.starts_with("preproc_"))
    });
    all.flat_map(|at| {
        let children = syntax.nodes[at].children.iter().copied();
        let declarators = children.filter(|at| syntax.nodes[*at].field == "declarator");
        declarators.filter_map(|at| {
            let mut within = syntax.within(at);
            within.find(|at| syntax.kind(*at) == "identifier")
        })
    })
    .map(|at| syntax.said(at))
}

/// What a file in C includes.
fn includes<'a>(syntax: &'a Syntax<'_>) -> impl Iterator<Item = &'a str> + 'a {
    let all = (0..syntax.nodes.len()).filter(|at| syntax.kind(*at) == "preproc_include");
    all.filter_map(|at| syntax.part(at, "path").map(|path| syntax.said(path)))
}

/// The names that an import gives: an alias, or the last word of what it names.
fn bound(syntax: &Syntax<'_>, import: usize) -> Vec<String> {
    let last = |said: &str| {
        let said = said.trim_matches(['"', '`']);
        said.rsplit(['.', '/'])
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    if syntax.kind(import) == "import_spec" {
        let part = syntax
            .part(import, "name")
            .or_else(|| syntax.part(import, "path"));
        return part.map(|at| last(syntax.said(at))).into_iter().collect();
    }
    let children = syntax.nodes[import].children.iter().copied();
    let named = children.filter(|at| syntax.nodes[*at].field == "name");
    let names = named.map(|at| match syntax.part(at, "alias") {
        Some(alias) => syntax.said(alias).to_owned(),
        // `import a.b` gives the name `a`.
        None if syntax.kind(import) == "import_statement" => {
            let first = syntax.said(at).split('.').next();
            first.unwrap_or_default().to_owned()
        }
        None => last(syntax.said(at)),
    });
    names.collect()
}

/// The condition around a whole header that lets it be read once, and the name that it defines.
fn include_guard(syntax: &Syntax<'_>) -> BTreeSet<usize> {
    let mut guard = BTreeSet::new();
    let top = syntax.inner(0);
    let [only] = top.as_slice() else {
        return guard;
    };
    let name = syntax.part(*only, "name").map(|at| syntax.said(at));
    let defined = syntax.child(*only, "preproc_def").filter(|at| {
        let of = syntax.part(*at, "name").map(|at| syntax.said(at));
        of == name && name.is_some() && syntax.part(*at, "value").is_none()
    });
    let first = syntax
        .inner(*only)
        .into_iter()
        .find(|at| syntax.kind(*at).starts_with("preproc_"));
    let ifndef = syntax.said(*only).starts_with("#ifndef");
    let whole = syntax.part(*only, "alternative").is_none();
    if let (Some(defined), true) = (defined, ifndef && whole && first == defined) {
        guard.extend([*only, defined]);
    }
    guard
}

/// Names of the standard libraries that act on something no case compares.
fn acts_outside(language: Language, said: &str) -> bool {
    let names = match language {
        Language::C => C_EFFECTS,
        Language::Go => GO_EFFECTS,
        Language::JavaScript | Language::TypeScript => JS_EFFECTS,
        Language::Python => PYTHON_EFFECTS,
    };
    has(names, said) || is_of_family(language, said)
}

/// Forms of a name that do the same: `renameat2`, `fopen64`, `execveat`, `DialContext`, `lchownSync`.
fn is_of_family(language: Language, said: &str) -> bool {
    let only = |rest: &str, letters: &str| rest.chars().all(|c| letters.contains(c));
    let starts = |begin: &str, letters: &str| {
        said.strip_prefix(begin)
            .is_some_and(|rest| !rest.is_empty() && only(rest, letters))
    };
    match language {
        Language::C => {
            let bare = said.trim_start_matches('_');
            let bare = bare.strip_suffix("64").unwrap_or(bare);
            let bare = bare.strip_suffix('2').unwrap_or(bare);
            let bare = bare.strip_suffix("at").unwrap_or(bare);
            let made = [
                "mkstemp",
                "mkostemp",
                "posix_spawn",
                "getaddrinfo",
                "gethostby",
            ];
            has(C_EFFECTS, bare) && bare != said
                || made.iter().any(|begin| said.starts_with(begin))
                || starts("exec", "lvpeat")
                || starts("fexec", "ve")
        }
        Language::Go => {
            let begins = ["Dial", "Listen", "Lookup", "Serve"];
            let next = |begin| {
                said.strip_prefix(begin)
                    .and_then(|rest: &str| rest.chars().next())
            };
            begins
                .iter()
                .any(|begin| next(begin).is_some_and(|c| c.is_ascii_uppercase()))
        }
        Language::JavaScript | Language::TypeScript => {
            let bare = said.strip_suffix("Sync").unwrap_or(said);
            has(JS_EFFECTS, bare) && bare != said
        }
        Language::Python => {
            starts("exec", "lvpe") || starts("spawn", "lvpe") || said.starts_with("posix_spawn")
        }
    }
}

/// Names that act only where they stand: a module that is imported, a function of `os`.
fn acts_here(syntax: &Syntax<'_>, node: usize, said: &str) -> bool {
    let parent = syntax.nodes[node].parent;
    match (syntax.language, said) {
        (Language::Python, "request") => {
            let mut around = syntax.around(node);
            around.any(|at| syntax.kind(at).starts_with("import_"))
        }
        (Language::Python, "replace") => {
            // A text has two things to say, a path one.
            let call = syntax.nodes[parent].parent;
            let arguments = syntax.part(call, "arguments").map(|at| syntax.inner(at));
            let renames = matches!(arguments.as_deref(), Some([one]) if
                syntax.kind(*one) != "keyword_argument");
            let of = syntax.part(parent, "object");
            of.is_some_and(|of| renames || syntax.said(of) == "os")
        }
        // A tree of elements takes the name of a file; whatever else writes was opened.
        (Language::Python, "write") => {
            let of = syntax.part(parent, "object").map(|of| syntax.said(of));
            let opened = of.is_some_and(|of| {
                let of = of.strip_suffix(".buffer").unwrap_or(of);
                matches!(of, "sys.stdout" | "sys.stderr" | "stdout" | "stderr")
            });
            !opened && syntax.text.contains("etree")
        }
        _ => false,
    }
}

/// Functions and methods that only answer, as assertions call them.
const ANSWERS: &str = "\
    abs all any bool bytes callable chr count dict divmod endswith enumerate find float frozenset get \
    hasattr hash index int is_dir is_file isalnum isalpha isclose isdecimal isdigit isfinite isinf \
    isinstance islower isnan isnumeric issubclass issubset issuperset isspace isupper items keys len \
    list lower max min ord range repr reversed round set sorted split startswith str strip sum tuple \
    type upper values zip";

/// What makes a value or a type, and nothing beside.
const MAKES: &str = "\
    Array BigInt Boolean Date Decimal Enum Error Flag Fraction IntEnum Map NamedTuple NewType Number \
    ParamSpec Path PurePath Set Symbol TypeError TypeVar TypedDict WeakMap WeakSet bytearray field \
    freeze namedtuple object timedelta";

/// Whether something does more than answer when it is evaluated.
fn acts(syntax: &Syntax<'_>, at: usize) -> bool {
    let mut open = vec![at];
    while let Some(at) = open.pop() {
        let acts = match syntax.kind(at) {
            "named_expression"
            | "await"
            | "await_expression"
            | "yield"
            | "yield_expression"
            | "assignment_expression"
            | "augmented_assignment_expression"
            | "update_expression" => true,
            "call" | "call_expression" | "new_expression" => {
                let called = syntax
                    .part(at, "function")
                    .or_else(|| syntax.part(at, "constructor"));
                let name = called.and_then(|at| syntax.said(at).rsplit('.').next());
                !name.is_some_and(|name| has(ANSWERS, name.trim()) || has(MAKES, name.trim()))
            }
            _ => false,
        };
        if acts {
            return true;
        }
        open.extend(syntax.inner(at));
    }
    false
}

fn is_head(syntax: &Syntax<'_>, at: usize) -> bool {
    let node = &syntax.nodes[at];
    let of = syntax.kind(node.parent);
    match (syntax.language, node.kind, node.field) {
        (Language::Python, "parameters", _) | (Language::C, "parameter_declaration", _) => true,
        (Language::Python, _, "superclasses" | "return_type") => true,
        (
            Language::JavaScript | Language::TypeScript,
            "class_heritage" | "formal_parameters",
            _,
        ) => true,
        (Language::JavaScript | Language::TypeScript, "computed_property_name", _) => matches!(
            of,
            "method_definition" | "field_definition" | "public_field_definition"
        ),
        _ => false,
    }
}
