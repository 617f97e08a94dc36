use std::ops::Range;

use proc_macro2::TokenStream;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Attribute, BinOp, Expr, ExprUnary, Lit, Macro, Meta, Token, UnOp};

use super::operator::Sign;
pub(super) use crate::flat::plain;

/// An integer literal with its sign.
pub(super) struct IntegerUnit {
    pub(super) magnitude: u128,
    pub(super) sign: Sign,
    pub(super) suffix: String,
    pub(super) span: Range<usize>,
}

pub(super) fn signed_integer(node: &ExprUnary) -> Option<IntegerUnit> {
    let (UnOp::Neg(_), Expr::Lit(lit)) = (&node.op, &*node.expr) else {
        return None;
    };
    Some(IntegerUnit {
        sign: Sign::Minus,
        span: node.span().byte_range(),
        ..plain_integer(&lit.lit)?
    })
}

pub(super) fn plain_integer(lit: &Lit) -> Option<IntegerUnit> {
    let Lit::Int(int) = lit else { return None };
    Some(IntegerUnit {
        magnitude: int.base10_parse().ok()?,
        sign: Sign::Plus,
        suffix: int.suffix().to_owned(),
        span: int.span().byte_range(),
    })
}

/// Whether a condition binds names: such a chain cannot be wrapped or duplicated.
pub(super) fn binds(condition: &Expr) -> bool {
    match condition {
        Expr::Let(_) => true,
        Expr::Binary(node) if matches!(node.op, BinOp::And(_)) => {
            binds(&node.left) || binds(&node.right)
        }
        _ => false,
    }
}

/// `#[test]`, `#[bench]`, `#[cfg(test)]`, `#[cfg(all(test, …))]`. A guess from the text: the
/// tripwire behind the gate proves it.
pub(crate) fn is_test_only(attribute: &Attribute) -> bool {
    match &attribute.meta {
        Meta::Path(path) => path.is_ident("test") || path.is_ident("bench"),
        Meta::List(list) if list.path.is_ident("cfg") => names_test(&list.tokens),
        _ => false,
    }
}

fn names_test(predicate: &TokenStream) -> bool {
    match syn::parse2::<Meta>(predicate.clone()) {
        Ok(Meta::Path(path)) => path.is_ident("test"),
        Ok(Meta::List(list)) if list.path.is_ident("all") => {
            use syn::parse::Parser;
            Punctuated::<Meta, Token![,]>::parse_terminated
                .parse2(list.tokens)
                .is_ok_and(|all| all.iter().any(|one| one.path().is_ident("test")))
        }
        _ => false,
    }
}

/// What the arguments of a known macro are.
pub(super) struct KnownMacro {
    /// Which one is a format string.
    pub(super) text: Option<usize>,
    /// How many are expressions, from the first on.
    pub(super) expressions: usize,
}

pub(super) fn known_macro(name: &str) -> Option<KnownMacro> {
    let text = match name {
        "print" | "println" | "eprint" | "eprintln" | "format" | "panic" | "unreachable"
        | "format_args" => Some(0),
        "write" | "writeln" | "assert" | "debug_assert" => Some(1),
        "assert_eq" | "assert_ne" | "debug_assert_eq" | "debug_assert_ne" => Some(2),
        "vec" | "matches" => None,
        _ => return None,
    };
    let expressions = if name == "matches" { 1 } else { usize::MAX };
    Some(KnownMacro { text, expressions })
}

/// Whether the arguments of a macro of this name are known to be expressions.
pub(crate) fn takes_expressions(name: &str) -> bool {
    known_macro(name).is_some() || DEAD_ENDS.contains(&name)
}

/// Macros that end the program by themselves.
const DEAD_ENDS: &[&str] = &["panic", "unreachable", "todo", "unimplemented"];

/// The name of a macro that is written as one of the standard library's.
pub(super) fn standard_name(path: &syn::Path) -> Option<String> {
    let segments: Vec<String> = path.segments.iter().map(|s| plain(&s.ident)).collect();
    match segments.as_slice() {
        [name] => Some(name.clone()),
        [root, name] if ["std", "core", "alloc"].contains(&root.as_str()) => Some(name.clone()),
        _ => None,
    }
}

/// A macro that ends the program by itself: reaching it is noticed without a mutant.
pub(super) fn is_dead_end(mac: &Macro) -> bool {
    let name = standard_name(&mac.path);
    DEAD_ENDS.contains(&name.as_deref().unwrap_or_default())
}

/// The expressions before anything that is none: all of a call's, both of `[x; n]`, the first of
/// `matches!`.
pub(super) fn parsed_arguments(tokens: &TokenStream, shape: &KnownMacro) -> Option<Vec<Expr>> {
    use syn::parse::{ParseStream, Parser};
    let list = |input: ParseStream<'_>| {
        let mut out = Vec::new();
        while !input.is_empty() {
            let Ok(argument) = input.parse::<Expr>() else {
                break;
            };
            out.push(argument);
            let separated = input.parse::<Option<Token![,]>>()?.is_some()
                || input.parse::<Option<Token![;]>>()?.is_some();
            if !separated {
                break;
            }
        }
        let rest: TokenStream = input.parse()?;
        // What no parser of ours understands may still be code of the macro.
        match rest.is_empty() || out.len() >= shape.expressions {
            true => Ok(out),
            false => Err(syn::Error::new_spanned(rest, "no expression")),
        }
    };
    list.parse2(tokens.clone())
        .ok()
        .filter(|out| !out.is_empty() || tokens.is_empty())
}

/// The same tokens on one line, so that the lines below stay where they are.
pub(super) fn one_line(code: String) -> String {
    if !code.contains('\n') {
        return code;
    }
    // Without quotes there is no string, without slashes no comment: white space is white space.
    if !code.contains(['"', '\'', '/']) {
        return code.replace(['\r', '\n'], " ");
    }
    match code.parse::<TokenStream>() {
        Ok(tokens) => tokens.to_string(),
        Err(_) => code,
    }
}

/// Longest original text in a mutant's id, in characters.
const SHOWN: usize = 40;

pub(super) fn shown(text: &str) -> String {
    let words = text.split_whitespace().enumerate();
    let signs = words.flat_map(|(at, word)| {
        let space = (at > 0).then_some(' ');
        space.into_iter().chain(word.chars())
    });
    let mut line: String = signs.take(SHOWN + 1).collect();
    if let Some((cut, _)) = line.char_indices().nth(SHOWN) {
        line.truncate(cut);
        line.push_str("...");
    }
    line
}

pub(super) fn squeezed(text: &str) -> String {
    text.split_whitespace().collect()
}
