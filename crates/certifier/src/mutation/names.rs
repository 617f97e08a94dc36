//! Declarations that give unchanged code another meaning.
//!
//! A declaration acts through the code that uses its name. Where that code changed too, its mutants
//! judge both. So what counts is a name that unchanged lines use and that now means something else:
//! imported from elsewhere, shadowed, an alias of another type, or no longer implemented here.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use proc_macro2::TokenStream;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItem, Item, UseTree};

use super::choice::names_in;
use super::plan::EditedFile;
use super::survey::{LineIndex, Silence};
use super::syntax::{is_test_only, known_macro, squeezed};
use super::text::split_prefix;
use crate::tokens::with_parsed;

/// What a name stands for: a spelling that differs when the meaning may.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Meaning {
    spelled: String,
    use_of: Use,
    of: Of,
    at: Range<usize>,
}

/// What a meaning is that of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Import,
    Item,
    /// Its mutants judge it where it is added; only its absence needs a rule.
    Method,
}

/// How an unchanged line would use a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    /// In any way.
    Any,
    /// By calling it.
    Call,
    /// Whatever it says: a method of a trait, an import of everything.
    Always,
}

type Names = BTreeMap<String, Meaning>;

/// The declarations of a file that give another meaning to its unchanged lines.
pub(super) fn changed(
    file: &EditedFile,
    body: &str,
    parsed: &syn::File,
    tokens: &TokenStream,
    index: &LineIndex,
) -> Vec<(Range<usize>, Silence)> {
    let Some(old) = &file.old else {
        return Vec::new();
    };
    let before = std::str::from_utf8(old).ok().and_then(|old| {
        let (_, old) = split_prefix(old);
        with_parsed(&file.path, old.as_bytes(), |parsed| declared(old, parsed)).ok()
    });
    let before = before.unwrap_or_default();
    let now = declared(body, parsed);
    let used = unchanged_uses(file, tokens, index);
    let mut out = Vec::new();
    for (key, meaning) in &now {
        let name = key.rsplit(' ').next().unwrap_or(key);
        let matters = match before.get(key) {
            Some(old) => old.spelled != meaning.spelled,
            None if meaning.of == Of::Method => false,
            None => {
                let replaces_macro = meaning.of == Of::Import && known_macro(name).is_some();
                replaces_macro || used.by(name, meaning.use_of)
            }
        };
        out.extend(matters.then(|| (meaning.at.clone(), Silence::Rebound)));
    }
    for (key, meaning) in &before {
        let name = key.rsplit(' ').next().unwrap_or(key);
        let gone = !now.contains_key(key)
            && (meaning.use_of == Use::Always
                || used.by(name, meaning.use_of)
                || used.methods.contains(name) && meaning.use_of == Use::Call);
        // There is no place to point at: the start of the file stands for it.
        out.extend(gone.then_some((0..0, Silence::Removed)));
    }
    out
}

/// Names on unchanged lines, by how they stand there.
#[derive(Default)]
struct Uses {
    any: BTreeSet<String>,
    called: BTreeSet<String>,
    methods: BTreeSet<String>,
}

impl Uses {
    fn by(&self, name: &str, how: Use) -> bool {
        match how {
            Use::Any => self.any.contains(name),
            Use::Call => self.called.contains(name),
            Use::Always => true,
        }
    }
}

fn unchanged_uses(file: &EditedFile, tokens: &TokenStream, index: &LineIndex) -> Uses {
    let mut out = Uses::default();
    names_in(tokens, &mut |name, before, after| {
        if file
            .lines
            .contains(&index.line(name.span().byte_range().start))
        {
            return;
        }
        let (called, text) = (after == '(' || after == '!', name.to_string());
        match before {
            '.' if called => out.methods.insert(text),
            '.' | 'f' => false,
            _ => {
                if called {
                    out.called.insert(text.clone());
                }
                out.any.insert(text)
            }
        };
    });
    out
}

/// Every name a file declares outside of what is for tests only.
fn declared(text: &str, file: &syn::File) -> Names {
    let mut names = Names::new();
    let mut open: Vec<(String, &[Item])> = vec![(String::new(), &file.items)];
    while let Some((place, items)) = open.pop() {
        for item in items {
            if attributes(item).iter().any(is_test_only) {
                continue;
            }
            if let Item::Mod(node) = item
                && let Some((_, inner)) = &node.content
            {
                open.push((format!("{place}{}::", node.ident), inner));
            }
            declare(text, &place, item, &mut names);
        }
    }
    let mut inner = InBlocks(Vec::new());
    inner.visit_file(file);
    for item in inner.0 {
        declare(text, "block::", item, &mut names);
    }
    names
}

/// Items inside of functions. One in a test is only for tests.
struct InBlocks<'a>(Vec<&'a Item>);

impl<'a> Visit<'a> for InBlocks<'a> {
    fn visit_item(&mut self, node: &'a Item) {
        if !attributes(node).iter().any(is_test_only) {
            visit::visit_item(self, node);
        }
    }
    fn visit_stmt(&mut self, node: &'a syn::Stmt) {
        if let syn::Stmt::Item(item) = node {
            self.0.push(item);
        }
        visit::visit_stmt(self, node);
    }
}

fn declare(text: &str, place: &str, item: &Item, names: &mut Names) {
    let at = item.span().byte_range();
    let slice = |range: Range<usize>| squeezed(text.get(range).unwrap_or_default());
    let mut put = |name: String, spelled: String, use_of: Use| {
        let key = format!("{place} {name}");
        let of = if matches!(item, Item::Use(_)) {
            Of::Import
        } else {
            Of::Item
        };
        let meaning = Meaning {
            spelled,
            use_of,
            of,
            at: at.clone(),
        };
        // One name of several namespaces: both together are its meaning.
        names
            .entry(key)
            .and_modify(|known| known.spelled.push_str(&meaning.spelled))
            .or_insert(meaning);
    };
    match item {
        Item::Use(node) => {
            for (name, path) in imported(&node.tree) {
                let how = if name == "*" { Use::Always } else { Use::Any };
                put(name, path, how);
            }
        }
        Item::Type(node) => put(
            node.ident.to_string(),
            slice(node.ty.span().byte_range()),
            Use::Any,
        ),
        Item::Struct(node) => {
            let shape = ordered(&node.attrs).then(|| slice(node.fields.span().byte_range()));
            let spelled = derived(&node.attrs) + &shape.unwrap_or_default();
            put(node.ident.to_string(), spelled, Use::Any);
        }
        Item::Enum(node) => {
            let shape = ordered(&node.attrs).then(|| slice(node.variants.span().byte_range()));
            let spelled = derived(&node.attrs) + &shape.unwrap_or_default();
            put(node.ident.to_string(), spelled, Use::Any);
        }
        Item::ExternCrate(node) => {
            let name = node.rename.as_ref().map_or(&node.ident, |(_, name)| name);
            put(name.to_string(), node.ident.to_string(), Use::Any);
        }
        Item::Union(node) => put(node.ident.to_string(), String::new(), Use::Any),
        Item::Trait(node) => put(node.ident.to_string(), String::new(), Use::Any),
        Item::Mod(node) => put(node.ident.to_string(), String::new(), Use::Any),
        Item::Const(node) => put(node.ident.to_string(), String::new(), Use::Any),
        Item::Static(node) => put(node.ident.to_string(), String::new(), Use::Any),
        Item::Fn(node) => put(node.sig.ident.to_string(), String::new(), Use::Call),
        Item::Impl(node) => {
            let of = slice(node.self_ty.span().byte_range());
            let of_trait = node
                .trait_
                .as_ref()
                .map(|(_, path, _)| slice(path.span().byte_range()));
            let methods = node.items.iter().filter_map(|item| match item {
                ImplItem::Fn(method) if !method.attrs.iter().any(is_test_only) => {
                    Some(method.sig.ident.to_string())
                }
                _ => None,
            });
            for method in methods {
                let key = format!("{of}:{} {method}", of_trait.clone().unwrap_or_default());
                let how = if of_trait.is_some() {
                    Use::Always
                } else {
                    Use::Call
                };
                method_of(place, key, how, at.clone(), names);
            }
        }
        _ => {}
    }
}

/// A method that is added is judged by its mutants; only one that is gone matters.
fn method_of(place: &str, key: String, use_of: Use, at: Range<usize>, names: &mut Names) {
    let meaning = Meaning {
        spelled: String::new(),
        use_of,
        of: Of::Method,
        at,
    };
    names.insert(format!("{place}impl {key}"), meaning);
}

/// Whether the order of its parts is part of a type's meaning.
fn ordered(attributes: &[Attribute]) -> bool {
    let derived = derived(attributes);
    derived.contains("Ord") || derived.contains("repr")
}

/// What is derived, and how a type is laid out.
fn derived(attributes: &[Attribute]) -> String {
    let wanted = attributes
        .iter()
        .filter(|a| a.path().is_ident("derive") || a.path().is_ident("repr"));
    let mut out: Vec<String> = wanted
        .filter_map(|a| a.meta.require_list().ok())
        .map(|list| {
            format!(
                "{}({})",
                squeezed(
                    &list
                        .path
                        .segments
                        .iter()
                        .map(|s| s.ident.to_string())
                        .collect::<String>()
                ),
                squeezed(&list.tokens.to_string())
            )
        })
        .collect();
    out.sort();
    out.concat()
}

/// Names an import binds, with what each is bound to.
pub(super) fn imported(tree: &UseTree) -> Vec<(String, String)> {
    let mut out = Vec::new();
    let mut open = vec![(String::new(), tree)];
    while let Some((path, tree)) = open.pop() {
        match tree {
            UseTree::Path(node) => open.push((format!("{path}{}::", node.ident), &node.tree)),
            UseTree::Name(node) if node.ident == "self" => {
                let name = path
                    .trim_end_matches(':')
                    .rsplit(':')
                    .next()
                    .unwrap_or_default();
                out.push((name.to_owned(), path.trim_end_matches(':').to_owned()));
            }
            UseTree::Name(node) => {
                out.push((node.ident.to_string(), format!("{path}{}", node.ident)))
            }
            UseTree::Rename(node) => {
                out.push((node.rename.to_string(), format!("{path}{}", node.ident)));
            }
            UseTree::Glob(_) => out.push(("*".to_owned(), format!("{path}*"))),
            UseTree::Group(node) => open.extend(node.items.iter().map(|item| (path.clone(), item))),
        }
    }
    out
}

pub(super) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(node) => &node.attrs,
        Item::Enum(node) => &node.attrs,
        Item::Fn(node) => &node.attrs,
        Item::Impl(node) => &node.attrs,
        Item::Mod(node) => &node.attrs,
        Item::Static(node) => &node.attrs,
        Item::Struct(node) => &node.attrs,
        Item::Trait(node) => &node.attrs,
        Item::Type(node) => &node.attrs,
        Item::Use(node) => &node.attrs,
        _ => &[],
    }
}
