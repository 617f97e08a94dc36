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
use super::survey::{LineIndex, Silence, Stretches};
use super::syntax::{is_test_only, known_macro, plain, squeezed};
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
    /// Part of an implementation or trait. What is added of it is judged where it stands; only its
    /// absence, or another type of the same name, needs a rule.
    Method,
    /// A function: who calls it takes what it gives.
    Function,
    /// A field, by its type.
    Field,
    /// A variant of the enum of this name, by what it holds and, where it counts, its place.
    Variant,
    /// An implementation of a trait as a whole.
    Impl {
        /// No function of its own: nothing in it can be mutated.
        empty: bool,
    },
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
    (parsed, tokens): (&syn::File, &TokenStream),
    index: &LineIndex,
    kept: &[Range<usize>],
) -> Vec<(Range<usize>, Silence)> {
    let before = before(file).unwrap_or_default();
    let now = declared(body, parsed);
    let macros = now.iter().filter(|(key, meaning)| {
        let known = before.get(*key).map(|old| &old.spelled);
        replaces_macro(key, meaning) && known != Some(&meaning.spelled)
    });
    let macros = macros.map(|(_, meaning)| (meaning.at.clone(), Silence::Rebound));
    if file.old.is_none() {
        return taken_over(&before, &now)
            .into_iter()
            .chain(macros)
            .collect();
    }
    let mut out: Vec<(Range<usize>, Silence)> = macros.collect();
    let used = unchanged_uses(file, tokens, index, kept);
    let mut owners: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (whose, name) in before.keys().filter_map(|key| key.rsplit_once(' ')) {
        owners.entry(name).or_default().push(whose);
    }
    for (key, meaning) in &now {
        let name = key.rsplit(' ').next().unwrap_or(key);
        let matters = match before.get(key) {
            Some(old) if meaning.of == Of::Function => {
                old.spelled != meaning.spelled && used.by(name, Use::Any)
            }
            Some(old) => {
                let told = meaning.of == Of::Item && used.by(name, Use::Any);
                old.spelled != meaning.spelled || told && is_reordered(key, meaning, &before, &now)
            }
            None => match meaning.of {
                Of::Method => {
                    let used = used.methods.contains(name) || used.by(name, Use::Call);
                    used && takes_calls_over(key, &owners)
                }
                Of::Field | Of::Impl { .. } => false,
                Of::Variant => before.contains_key(&enum_of(key)) && used.by(name, Use::Any),
                Of::Import | Of::Item | Of::Function => used.by(name, meaning.use_of),
            },
        };
        out.extend(matters.then(|| (meaning.at.clone(), Silence::Rebound)));
    }
    out.extend(taken_over(&before, &now));
    for (key, meaning) in &before {
        let name = key.rsplit(' ').next().unwrap_or(key);
        let gone = !now.contains_key(key)
            && meaning.of != Of::Field
            && (meaning.use_of == Use::Always
                || used.by(name, meaning.use_of)
                || used.methods.contains(name) && meaning.use_of == Use::Call);
        // There is no place to point at: the start of the file stands for it.
        out.extend(gone.then_some((0..0, Silence::Removed)));
    }
    out
}

/// Whether a new function of a type has the name of one that a trait gives: calls on unchanged
/// lines then reach the new one. `owners` are those of each name before.
fn takes_calls_over(key: &str, owners: &BTreeMap<&str, Vec<&str>>) -> bool {
    let Some((of, name)) = key.rsplit_once(' ') else {
        return false;
    };
    let by_trait = |whose: &&str| {
        whose.starts_with("trait ")
            || whose.contains("::trait ")
            || *whose != of && whose.starts_with(of)
    };
    of.ends_with(':') && owners.get(name).into_iter().flatten().any(by_trait)
}

/// Whether fields that were there before stand in another order, and a derive tells it.
fn is_reordered(key: &str, meaning: &Meaning, before: &Names, now: &Names) -> bool {
    let Some((place, name)) = key.rsplit_once(' ') else {
        return false;
    };
    let of = format!("{place}{name}. ");
    let fields = |names: &Names, others: &Names| -> Vec<String> {
        let own = names.range(of.clone()..);
        let own = own.take_while(|(key, _)| key.starts_with(&of));
        let both = own.filter(|(key, _)| others.contains_key(*key));
        let mut fields: Vec<_> = both.map(|(key, m)| (m.at.start, key.clone())).collect();
        fields.sort();
        fields.into_iter().map(|(_, key)| key).collect()
    };
    let telling = ["Debug", "Hash", "Serialize"];
    telling
        .iter()
        .any(|derive| meaning.spelled.contains(derive))
        && fields(before, now) != fields(now, before)
}

/// An import under the name of a macro that is read as the standard library's, of anything else. It
/// counts in a new file as well: all of its calls of that name mean it.
fn replaces_macro(key: &str, meaning: &Meaning) -> bool {
    let name = key.rsplit(' ').next().unwrap_or(key);
    let same = ["std", "core", "alloc"].map(|root| format!("{root}::{name}"));
    meaning.of == Of::Import && known_macro(name).is_some() && !same.contains(&meaning.spelled)
}

/// A name that a file declares now and did not before, or the other way round.
pub(super) struct Change {
    /// What it is the name of.
    pub(super) key: String,
    pub(super) name: String,
    pub(super) added: bool,
    /// Called through a value or type, which needs no import.
    pub(super) method: bool,
    /// Where, from 1; 1 for what is gone.
    pub(super) line: u32,
}

impl Change {
    pub(super) fn is_in(&self, used: &Uses) -> bool {
        match self.method {
            true => used.methods.contains(&self.name) || used.any.contains(&self.name),
            false => used.any.contains(&self.name),
        }
    }
}

/// What differs in the names of a file that was there before. Added methods have mutants.
pub(super) fn changes_of(file: &EditedFile) -> Vec<Change> {
    let (Some(before), Ok(text)) = (before(file), std::str::from_utf8(&file.text)) else {
        return Vec::new();
    };
    let (_, body) = split_prefix(text);
    let now = with_parsed(&file.path, body.as_bytes(), |parsed| declared(body, parsed));
    let now = now.unwrap_or_default();
    let index = LineIndex::of(body);
    let mut out = Vec::new();
    for (names, others, added) in [(&now, &before, true), (&before, &now, false)] {
        for (key, meaning) in names.iter().filter(|(key, _)| !others.contains_key(*key)) {
            let method = meaning.of == Of::Method;
            let counts = match meaning.of {
                Of::Field | Of::Impl { .. } => false,
                Of::Method => !added && meaning.use_of != Use::Always,
                Of::Variant => !added || before.contains_key(&enum_of(key)),
                Of::Import | Of::Item | Of::Function => true,
            };
            let name = key.rsplit(' ').next().unwrap_or(key).to_owned();
            let lines = index.lines(&meaning.at);
            let first = file.lines.range(lines.clone()).next().copied();
            out.extend((counts && name != "*" && name != "_").then(|| Change {
                key: key.clone(),
                name,
                added,
                method,
                line: if added {
                    first.unwrap_or(*lines.start())
                } else {
                    1
                },
            }));
        }
    }
    out
}

/// Whether a file imports everything of a module that is not the standard library's.
pub(super) fn takes_everything(body: &str, parsed: &syn::File) -> bool {
    let names = declared(body, parsed);
    let mut all = names.iter().filter(|(key, _)| key.ends_with(" *"));
    all.any(|(_, meaning)| {
        let root = meaning.spelled.split("::").next().unwrap_or_default();
        !["std", "core", "alloc"].contains(&root)
    })
}

fn before(file: &EditedFile) -> Option<Names> {
    let (_, old) = split_prefix(std::str::from_utf8(file.old.as_ref()?).ok()?);
    with_parsed(&file.path, old.as_bytes(), |parsed| declared(old, parsed)).ok()
}

/// Added implementations without a function, of types that were there before: the trait's own
/// functions take over calls on unchanged lines.
fn taken_over(before: &Names, now: &Names) -> Vec<(Range<usize>, Silence)> {
    let (new_items, old_items) = (items(now), items(before));
    let added = now.iter().filter(|(key, _)| !before.contains_key(*key));
    let empty = added.filter(|(key, meaning)| {
        let of = key.rsplit(' ').next().unwrap_or_default();
        let of = of.split('<').next().unwrap_or_default();
        let new = new_items.contains(of) && !old_items.contains(of);
        meaning.of == Of::Impl { empty: true } && !new
    });
    empty
        .map(|(_, meaning)| (meaning.at.clone(), Silence::Rebound))
        .collect()
}

fn items(names: &Names) -> BTreeSet<&str> {
    let items = names.iter().filter(|(_, meaning)| meaning.of == Of::Item);
    items
        .filter_map(|(key, _)| key.rsplit(' ').next())
        .collect()
}

/// The key of the enum that a variant's key names.
fn enum_of(variant: &str) -> String {
    let (of, _) = variant.rsplit_once(' ').unwrap_or((variant, ""));
    of.trim_end_matches(':').replacen('|', " ", 1)
}

/// Names on unchanged lines, by how they stand there.
#[derive(Default)]
pub(super) struct Uses {
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

/// Names in `kept` stand as they did, whatever else changed on their lines.
pub(super) fn unchanged_uses(
    file: &EditedFile,
    tokens: &TokenStream,
    index: &LineIndex,
    kept: &[Range<usize>],
) -> Uses {
    let mut out = Uses::default();
    let kept: Stretches = kept.iter().collect();
    names_in(tokens, &mut |name, before, after| {
        let at = name.span().byte_range().start;
        if file.lines.contains(&index.line(at)) && !kept.hold(&(at..at + 1)) {
            return;
        }
        let (called, text) = (after == '(' || after == '!', plain(name));
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
                open.push((format!("{place}{}::", plain(&node.ident)), inner));
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
        let of = match item {
            Item::Use(_) => Of::Import,
            Item::Fn(_) => Of::Function,
            _ => Of::Item,
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
            plain(&node.ident),
            slice(node.generics.span().byte_range()) + &slice(node.ty.span().byte_range()),
            Use::Any,
        ),
        Item::Struct(node) => {
            let shape = ordered(&node.attrs).then(|| slice(node.fields.span().byte_range()));
            let spelled = derived(&node.attrs)
                + &shape.unwrap_or_default()
                + &slice(node.generics.span().byte_range());
            put(plain(&node.ident), spelled, Use::Any);
            fields(
                text,
                &format!("{place}{}.", plain(&node.ident)),
                &node.fields,
                names,
            );
        }
        Item::Enum(node) => {
            let shape = ordered(&node.attrs).then(|| slice(node.variants.span().byte_range()));
            let spelled = derived(&node.attrs)
                + &shape.unwrap_or_default()
                + &slice(node.generics.span().byte_range());
            put(plain(&node.ident), spelled, Use::Any);
            variants(
                text,
                &format!("{place}|{}::", plain(&node.ident)),
                node,
                names,
            );
        }
        Item::ExternCrate(node) => {
            let name = node.rename.as_ref().map_or(&node.ident, |(_, name)| name);
            put(plain(name), plain(&node.ident), Use::Any);
        }
        Item::Union(node) => {
            let spelled = slice(node.fields.span().byte_range());
            put(
                plain(&node.ident),
                derived(&node.attrs) + &spelled,
                Use::Any,
            );
        }
        Item::Trait(node) => {
            let header = slice(node.generics.span().byte_range())
                + &slice(node.supertraits.span().byte_range());
            put(plain(&node.ident), header, Use::Any);
            for part in &node.items {
                if let syn::TraitItem::Fn(method) = part
                    && !method.attrs.iter().any(is_test_only)
                {
                    let key = format!("trait {} {}", plain(&node.ident), plain(&method.sig.ident));
                    part_of(place, key, Use::Call, String::new(), at.clone(), names);
                }
            }
        }
        Item::Mod(node) => put(plain(&node.ident), String::new(), Use::Any),
        Item::Const(node) => put(plain(&node.ident), String::new(), Use::Any),
        Item::Static(node) => put(plain(&node.ident), String::new(), Use::Any),
        Item::Fn(node) => put(
            plain(&node.sig.ident),
            types_of(&node.sig, &slice),
            Use::Call,
        ),
        Item::Impl(node) => implementation(text, place, node, names),
        _ => {}
    }
}

/// What a function takes and gives, without the names of its parameters.
fn types_of(sig: &syn::Signature, slice: &impl Fn(Range<usize>) -> String) -> String {
    let inputs = sig.inputs.iter().map(|input| match input {
        syn::FnArg::Typed(typed) => slice(typed.ty.span().byte_range()),
        syn::FnArg::Receiver(own) => slice(own.span().byte_range()),
    });
    let inputs: Vec<String> = inputs.collect();
    format!(
        "{}({}){}",
        slice(sig.generics.span().byte_range()),
        inputs.join(","),
        slice(sig.output.span().byte_range())
    )
}

fn fields(text: &str, of: &str, fields: &syn::Fields, names: &mut Names) {
    for (number, field) in fields.iter().enumerate() {
        let name = field.ident.as_ref().map(plain);
        let name = name.unwrap_or_else(|| number.to_string());
        let spelled = text.get(field.ty.span().byte_range()).unwrap_or_default();
        let meaning = Meaning {
            spelled: squeezed(spelled),
            use_of: Use::Any,
            of: Of::Field,
            at: field.span().byte_range(),
        };
        names.insert(format!("{of} {name}"), meaning);
    }
}

/// The place of a variant counts where a cast can tell it: in an enum without fields.
fn variants(text: &str, of: &str, node: &syn::ItemEnum, names: &mut Names) {
    let bare = node
        .variants
        .iter()
        .all(|variant| variant.fields.is_empty());
    for (number, variant) in node.variants.iter().enumerate() {
        let held = text.get(variant.fields.span().byte_range());
        let place = if bare {
            number.to_string()
        } else {
            String::new()
        };
        let meaning = Meaning {
            spelled: place + &squeezed(held.unwrap_or_default()),
            use_of: Use::Any,
            of: Of::Variant,
            at: variant.span().byte_range(),
        };
        names.insert(format!("{of} {}", plain(&variant.ident)), meaning);
    }
}

/// An implementation as a whole, and its parts by name.
fn implementation(text: &str, place: &str, node: &syn::ItemImpl, names: &mut Names) {
    let at = node.span().byte_range();
    let slice = |range: Range<usize>| squeezed(text.get(range).unwrap_or_default());
    let of = slice(node.self_ty.span().byte_range());
    let of_trait = node.trait_.as_ref();
    let of_trait = of_trait.map(|(_, path, _)| slice(path.span().byte_range()));
    let always = of_trait.is_some();
    let whose = format!("{of}:{}", of_trait.clone().unwrap_or_default());
    for part in &node.items {
        let (name, how, spelled) = match part {
            ImplItem::Fn(method) if !method.attrs.iter().any(is_test_only) => {
                (&method.sig.ident, Use::Call, String::new())
            }
            ImplItem::Type(part) => (&part.ident, Use::Any, slice(part.ty.span().byte_range())),
            ImplItem::Const(part) => (&part.ident, Use::Any, String::new()),
            _ => continue,
        };
        let how = if always { Use::Always } else { how };
        let key = format!("impl {whose} {}", plain(name));
        part_of(place, key, how, spelled, at.clone(), names);
    }
    if let Some(of_trait) = of_trait {
        let bounds = slice(node.generics.span().byte_range());
        let bounded = node.generics.where_clause.as_ref();
        let bounded = bounded.map(|clause| slice(clause.span().byte_range()));
        let mut methods = node.items.iter();
        let meaning = Meaning {
            spelled: bounds + &bounded.unwrap_or_default(),
            use_of: Use::Always,
            of: Of::Impl {
                empty: !methods.any(|part| matches!(part, ImplItem::Fn(_))),
            },
            at,
        };
        names.insert(format!("{place}whole {of_trait} {of}"), meaning);
    }
}

fn part_of(
    place: &str,
    key: String,
    use_of: Use,
    spelled: String,
    at: Range<usize>,
    names: &mut Names,
) {
    let meaning = Meaning {
        spelled,
        use_of,
        of: Of::Method,
        at,
    };
    names.insert(format!("{place}{key}"), meaning);
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
                        .map(|s| plain(&s.ident))
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
            UseTree::Path(node) => {
                open.push((format!("{path}{}::", plain(&node.ident)), &node.tree))
            }
            UseTree::Name(node) if node.ident == "self" => {
                let name = path
                    .trim_end_matches(':')
                    .rsplit(':')
                    .next()
                    .unwrap_or_default();
                out.push((name.to_owned(), path.trim_end_matches(':').to_owned()));
            }
            UseTree::Name(node) => {
                out.push((plain(&node.ident), format!("{path}{}", plain(&node.ident))))
            }
            UseTree::Rename(node) => {
                out.push((plain(&node.rename), format!("{path}{}", plain(&node.ident))));
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
        Item::Union(node) => &node.attrs,
        Item::Use(node) => &node.attrs,
        _ => &[],
    }
}
