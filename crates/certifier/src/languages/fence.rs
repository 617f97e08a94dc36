//! What changed code in other languages than Rust may not name: the fence around its mutants.
//!
//! A mutant is another build, and a program that could read what it was built from would know one. No
//! case sees the tree or the program file, so what is left is the language's own view of itself: code
//! objects, frames, names that are put together while it runs. Rules are about names, in changed
//! tokens alone. What they cannot see is in `docs/claims.md`.

use super::names::{
    C_DYNAMIC, C_FOREIGN, C_INTROSPECTION, GO_INTROSPECTION, GO_UNSAFE, JS_DYNAMIC,
    JS_INTROSPECTION, JS_MODULES, PYTHON_DYNAMIC, PYTHON_INTROSPECTION, PYTHON_MODULES,
    PYTHON_SPECIAL, has,
};
use super::plan::{Edited, owned};
use super::syntax::{Syntax, is_comment, shown};
use super::text::line_of;
use super::{Language, tokens};
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
        if has(C_INTROSPECTION, word) {
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
            let words = said.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let mut hidden = words
                .filter(|w| special(w) && !has(PYTHON_SPECIAL, w) || has(PYTHON_INTROSPECTION, w));
            return hidden.next().map(|_| SourceIntrospection);
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
        let arguments = syntax.part(parent, "arguments").map(|at| syntax.inner(at));
        let plain = arguments
            .and_then(|all| all.get(1).copied())
            .is_some_and(|name| {
                syntax.kind(name) == "string" && syntax.child(name, "interpolation").is_none()
            });
        return (!plain).then_some(DynamicCode);
    }
    // A module of the tree is source that was looked at, or is the baseline's.
    let module = imported(syntax, token.node);
    module
        .filter(|module| has(PYTHON_MODULES, module))
        .map(|_| DynamicCode)
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
