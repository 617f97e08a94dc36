//! What changed code in other languages than Rust may not name: the fence around its mutants.
//!
//! A mutant is another build, and a program that could read what it was built from would know one. No
//! case sees the tree or the program file, so what is left is the language's own view of itself: code
//! objects, frames, names that are put together while it runs. Rules are about names, in changed
//! tokens alone. What they cannot see is in `docs/claims.md`.

use super::names::{
    C_DYNAMIC, C_FOREIGN, C_INTROSPECTION, C_LINKED, GO_INTROSPECTION, GO_UNSAFE, JS_DYNAMIC,
    JS_INTROSPECTION, JS_MODULES, PYTHON_DYNAMIC, PYTHON_INTROSPECTION, PYTHON_MODULES,
    PYTHON_SPECIAL, PYTHON_WORDS, has,
};
use super::plan::{Edited, owned};
use super::syntax::{Syntax, is_comment, shown};
use super::text::line_of;
use super::{Language, texts, tokens};
use crate::{CertifierCode, CertifierError};
use CertifierCode::{
    ConditionalCode, DynamicCode, ForeignLinkage, SourceIntrospection, UnsafeCode,
};
use flightproof_core::escape;
use flightproof_evidence::Captured;
use std::collections::BTreeSet;

/// Holds every changed file of the language against the rules.
///
/// # Errors
/// `SOURCE_INTROSPECTION`, `DYNAMIC_CODE`, `UNSAFE_CODE`, `FOREIGN_LINKAGE`, `CONDITIONAL_CODE` with
/// file, line and name; the refusals of reading a file.
pub fn check(captured: &Captured, language: Language) -> Result<(), CertifierError> {
    for change in owned(&captured.changes, language) {
        let Some(edited) = Edited::of(language, change)? else {
            continue;
        };
        check_edited(&edited)?;
    }
    Ok(())
}

fn check_edited(edited: &Edited<'_>) -> Result<(), CertifierError> {
    let syntax = &edited.syntax;
    for token in edited.edited() {
        if let Some(code) = refused(syntax, token) {
            return Err(refuse(edited, token, code));
        }
    }
    if matches!(syntax.language, Language::JavaScript | Language::TypeScript) {
        let tokens: Vec<&tokens::Token> = edited.edited().collect();
        for (at, code) in named_in_texts(syntax) {
            let within = &syntax.nodes[at].range;
            let first = tokens.partition_point(|token| token.range.start < within.start);
            let token = tokens
                .get(first)
                .filter(|token| within.contains(&token.range.start));
            if let Some(token) = token {
                return Err(refuse(edited, token, code));
            }
        }
    }
    let old = edited.old.as_ref();
    let before: BTreeSet<&str> = old
        .map(|(old, _)| comments(old).collect())
        .unwrap_or_default();
    for (at, node) in syntax.nodes.iter().enumerate() {
        let new = is_comment(node.kind) && !before.contains(syntax.said(at));
        if new && directs(syntax.language, syntax.said(at)) {
            let what = format_args!(
                "{}:{}: {}",
                shown(edited.path),
                line_of(syntax.text, node.range.start),
                escape(syntax.said(at), 80)
            );
            return Err(ConditionalCode.refuse(what));
        }
    }
    Ok(())
}

fn comments<'a>(syntax: &'a Syntax<'_>) -> impl Iterator<Item = &'a str> + 'a {
    let all = syntax.nodes.iter().enumerate();
    all.filter(|(_, node)| is_comment(node.kind))
        .map(|(at, _)| syntax.said(at))
}

fn refuse(edited: &Edited<'_>, token: &tokens::Token, code: CertifierCode) -> CertifierError {
    code.refuse(format_args!(
        "{}:{}: {}, on a changed line",
        shown(edited.path),
        line_of(edited.syntax.text, token.range.start),
        escape(edited.syntax.slice(&token.range), 80)
    ))
}

/// A comment that a compiler obeys.
fn directs(language: Language, comment: &str) -> bool {
    let body = comment.trim_start_matches("//").trim_start();
    language == Language::Go
        && (["//go:", "//line ", "/*line ", "//export ", "//extern "]
            .iter()
            .any(|start| comment.starts_with(start))
            || (comment.starts_with("//") && body.starts_with("+build")))
}

/// The rule that a token breaks.
fn refused(syntax: &Syntax<'_>, token: &tokens::Token) -> Option<CertifierCode> {
    let (kind, said) = (syntax.kind(token.node), syntax.slice(&token.range));
    match syntax.language {
        Language::C => c(syntax, token, kind, said),
        Language::Go => go(syntax, token, said),
        Language::JavaScript | Language::TypeScript => javascript(syntax, token, said),
        Language::Python => python(syntax, token, kind, said),
    }
}

fn c(syntax: &Syntax<'_>, token: &tokens::Token, kind: &str, said: &str) -> Option<CertifierCode> {
    if matches!(said, "asm" | "__asm__" | "__asm") {
        return Some(UnsafeCode);
    }
    // A macro's text is one token: its words count too.
    let words: Vec<&str> = match kind {
        "preproc_arg" => said
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .collect(),
        _ => vec![said],
    };
    for word in words {
        if has(C_INTROSPECTION, word) || has(C_LINKED, word) && is_linked(syntax, token.node, said)
        {
            return Some(SourceIntrospection);
        }
        if has(C_DYNAMIC, word) {
            return Some(DynamicCode);
        }
        if has(C_FOREIGN, word) {
            return Some(ForeignLinkage);
        }
    }
    // The address of a label or of a function as bytes: a view of the program's own code.
    if kind == "&&" && syntax.kind(syntax.nodes[token.node].parent) != "binary_expression" {
        return Some(SourceIntrospection);
    }
    let included = syntax.kind(syntax.nodes[token.node].parent) == "preproc_include"
        && matches!(kind, "string_literal" | "system_lib_string");
    let name = said.trim_matches(['"', '<', '>']);
    let inside = name.ends_with(".h")
        && !name.starts_with('/')
        && name.split('/').all(|part| !matches!(part, ".." | "." | ""));
    let computed =
        kind == "identifier" && syntax.kind(syntax.nodes[token.node].parent) == "preproc_include";
    (included && !inside || computed).then_some(SourceIntrospection)
}

/// Whether a name is one of the linker's: no parameter, variable or field of the program's own.
fn is_linked(syntax: &Syntax<'_>, node: usize, said: &str) -> bool {
    let mut around = syntax.around(node);
    let Some(function) = around.find(|at| syntax.kind(*at) == "function_definition") else {
        let mut around = syntax.around(node);
        return syntax.kind(node) != "field_identifier"
            && !around.any(|at| syntax.kind(at) == "parameter_declaration");
    };
    let mut own = false;
    let names = syntax.within(function).filter(|at| {
        matches!(syntax.kind(*at), "identifier" | "field_identifier") && syntax.said(*at) == said
    });
    for name in names {
        match declaration_of(syntax, name) {
            Some((of, _)) if syntax.kind(of) == "parameter_declaration" => own = true,
            Some((of, function)) => {
                let mut parts = syntax.nodes[of].children.iter();
                if function || parts.any(|part| syntax.said(*part) == "extern") {
                    return true;
                }
                own = true;
            }
            None => own |= name == node && syntax.kind(node) == "field_identifier",
        }
    }
    !own
}

/// The declaration in C that gives a name, and whether it gives it to a function.
fn declaration_of(syntax: &Syntax<'_>, name: usize) -> Option<(usize, bool)> {
    let (mut at, mut function) = (name, false);
    loop {
        let node = &syntax.nodes[at];
        let of = syntax.kind(node.parent);
        match (of, node.field) {
            ("parameter_declaration" | "declaration", "declarator") => {
                return Some((node.parent, function));
            }
            (_, "declarator") | ("parenthesized_declarator", _) => {}
            _ => return None,
        }
        function |= of == "function_declarator";
        at = node.parent;
    }
}

fn go(syntax: &Syntax<'_>, token: &tokens::Token, said: &str) -> Option<CertifierCode> {
    let import = std::iter::once(token.node)
        .chain(syntax.around(token.node))
        .find(|at| syntax.kind(*at) == "import_spec")?;
    let path = syntax.part(import, "path").map(|at| syntax.said(at));
    let path = path.unwrap_or_default().trim_matches(['"', '`']);
    if has(GO_UNSAFE, path) {
        return Some(UnsafeCode);
    }
    if has(GO_INTROSPECTION, path) || said == "." {
        return Some(SourceIntrospection);
    }
    None
}

fn javascript(syntax: &Syntax<'_>, token: &tokens::Token, said: &str) -> Option<CertifierCode> {
    // What a computed name is put together of is text.
    let bare = said.trim_matches(['"', '\'', '`']);
    // A constructor of a class is none of a value.
    let defines = said == "constructor"
        && syntax.kind(syntax.nodes[token.node].parent) == "method_definition";
    if defines {
        return None;
    }
    if has(JS_INTROSPECTION, bare) {
        return Some(SourceIntrospection);
    }
    if has(JS_DYNAMIC, bare) || said == "import" {
        return Some(DynamicCode);
    }
    if said != "require" {
        return None;
    }
    let call = syntax.nodes[token.node].parent;
    let arguments = syntax.part(call, "arguments").map(|at| syntax.inner(at));
    let named = match arguments.as_deref() {
        Some([one]) if syntax.kind(*one) == "string" => syntax.said(*one),
        _ => return Some(DynamicCode),
    };
    let name = named.trim_matches(['"', '\'']);
    let known = has(JS_MODULES, name.trim_start_matches("node:"));
    (!known && !name.starts_with("./") && !name.starts_with("../")).then_some(DynamicCode)
}

/// What texts of JavaScript name, whole or put together, and names that are only known while the program
/// runs; with the place. A list or table that the text spells out has none that matter.
fn named_in_texts(syntax: &Syntax<'_>) -> Vec<(usize, CertifierCode)> {
    let given = texts::Given::of(syntax);
    let mut found = Vec::new();
    for (at, node) in syntax.nodes.iter().enumerate() {
        let key = match node.kind {
            "string" | "template_string" | "binary_expression" => {
                let name = texts::joined(syntax, at).unwrap_or_default();
                let shown = has(JS_INTROSPECTION, &name);
                let dynamic = has(JS_DYNAMIC, &name);
                found.extend(shown.then_some((at, SourceIntrospection)));
                found.extend(dynamic.then_some((at, DynamicCode)));
                continue;
            }
            "subscript_expression" => {
                let of = syntax.part(at, "object");
                let table = of.is_some_and(|of| given.is_table(syntax, of));
                syntax.part(at, "index").filter(|_| !table)
            }
            "computed_property_name" => {
                let mut around = syntax.around(at).take(2);
                let taken = around.any(|of| syntax.kind(of) == "object_pattern");
                syntax.inner(at).first().copied().filter(|_| taken)
            }
            _ => continue,
        };
        let hidden = key.is_some_and(|key| !given.names_nothing(syntax, key));
        found.extend(hidden.then_some((at, DynamicCode)));
    }
    found
}

fn python(
    syntax: &Syntax<'_>,
    token: &tokens::Token,
    kind: &str,
    said: &str,
) -> Option<CertifierCode> {
    let special = |name: &str| name.len() > 4 && name.starts_with("__") && name.ends_with("__");
    match kind {
        // An attribute can be named in a text that is filled in.
        "string_content" => {
            let text = texts::piece(syntax, token.node, said);
            let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let mut hidden = words
                .filter(|w| special(w) && !has(PYTHON_SPECIAL, w) || has(PYTHON_INTROSPECTION, w));
            if hidden.next().is_some() {
                return Some(SourceIntrospection);
            }
            let looked_up = syntax
                .around(token.node)
                .any(|at| looked_up(syntax, at).is_some());
            let named = has(PYTHON_DYNAMIC, &text) || looked_up && has(PYTHON_MODULES, &text);
            return (named && (looked_up || text != "compile")).then_some(DynamicCode);
        }
        "identifier" => {}
        _ => return None,
    }
    let parent = syntax.nodes[token.node].parent;
    if special(said) && !has(PYTHON_SPECIAL, said) || has(PYTHON_INTROSPECTION, said) {
        return Some(SourceIntrospection);
    }
    // `compile` and `format` of a module or a text are others than the built-in ones.
    let attribute = syntax.nodes[token.node].field == "attribute";
    if has(PYTHON_DYNAMIC, said) && !(attribute && said == "compile") {
        return Some(DynamicCode);
    }
    if attribute && said == "format" {
        let of = syntax.part(parent, "object").map(|at| syntax.kind(at));
        return (of != Some("string")).then_some(DynamicCode);
    }
    if said == "getattr" && !attribute {
        let name = looked_up(syntax, parent);
        let hidden = |name: &str| {
            special(name) && !has(PYTHON_SPECIAL, name) || has(PYTHON_INTROSPECTION, name)
        };
        return match name.and_then(|name| texts::literal(syntax, name)) {
            Some(name) if hidden(&name) => Some(SourceIntrospection),
            Some(name) if !has(PYTHON_DYNAMIC, &name) && !has(PYTHON_MODULES, &name) => None,
            _ => Some(DynamicCode),
        };
    }
    // What looks into programs is found through any module that uses it.
    if has(PYTHON_MODULES, said)
        && !has(PYTHON_WORDS, said)
        && (attribute || brought(syntax, token.node))
    {
        return Some(DynamicCode);
    }
    // A module of the tree is source that was looked at, or is the baseline's.
    let module = imported(syntax, token.node);
    module
        .filter(|module| has(PYTHON_MODULES, module))
        .map(|_| DynamicCode)
}

/// The argument of `getattr` that names what it finds.
fn looked_up(syntax: &Syntax<'_>, call: usize) -> Option<usize> {
    let called = syntax.part(call, "function")?;
    if syntax.said(called) != "getattr" {
        return None;
    }
    let arguments = syntax.inner(syntax.part(call, "arguments")?);
    arguments.get(1).copied()
}

/// Whether a name is what `from … import` brings in.
fn brought(syntax: &Syntax<'_>, node: usize) -> bool {
    let mut around = std::iter::once(node).chain(syntax.around(node));
    around.any(|at| {
        let of = syntax.nodes[at].parent;
        syntax.kind(of) == "import_from_statement" && syntax.nodes[at].field == "name"
    })
}

/// The first word of the module that an import names, for its name.
fn imported<'a>(syntax: &'a Syntax<'_>, node: usize) -> Option<&'a str> {
    let mut around = syntax.around(node);
    let import = around.find(|at| {
        matches!(
            syntax.kind(*at),
            "import_statement" | "import_from_statement"
        )
    })?;
    let dotted = std::iter::once(node)
        .chain(syntax.around(node))
        .find(|at| syntax.kind(*at) == "dotted_name")?;
    let module = match syntax.kind(import) {
        "import_from_statement" => syntax.part(import, "module_name") == Some(dotted),
        _ => true,
    };
    let first = syntax.said(dotted).split('.').next()?;
    module.then_some(first)
}
