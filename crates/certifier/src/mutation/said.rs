//! What a type computes, and what an item says to a macro.

use std::ops::Range;

use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Path, Token};

use super::choice::is_inert;
use super::survey::Silence;

/// Values in a type, which the compiler takes: lengths of arrays, constant arguments, macros.
#[derive(Default)]
pub(super) struct InType(pub(super) Vec<(Range<usize>, Silence)>);

impl<'ast> Visit<'ast> for InType {
    fn visit_type_array(&mut self, node: &'ast syn::TypeArray) {
        let length = node.len.span().byte_range();
        self.0.push((length, Silence::ConstContext));
        self.visit_type(&node.elem);
    }
    fn visit_generic_argument(&mut self, node: &'ast syn::GenericArgument) {
        match node {
            syn::GenericArgument::Const(value) => {
                let value = value.span().byte_range();
                self.0.push((value, Silence::ConstContext));
            }
            _ => visit::visit_generic_argument(self, node),
        }
    }
    fn visit_assoc_const(&mut self, node: &'ast syn::AssocConst) {
        let value = node.value.span().byte_range();
        self.0.push((value, Silence::ConstContext));
    }
    fn visit_macro(&mut self, node: &'ast syn::Macro) {
        self.0.push((node.span().byte_range(), Silence::Macro));
    }
}

/// Documentation of an item and of its parts.
#[derive(Default)]
pub(super) struct Said(pub(super) Vec<Range<usize>>);

impl<'ast> Visit<'ast> for Said {
    fn visit_attribute(&mut self, node: &'ast Attribute) {
        if node.path().is_ident("doc") {
            self.0.push(node.span().byte_range());
        }
    }
}

/// Derives of the standard library: they read no documentation.
const PLAIN: &[&str] = &[
    "Clone",
    "Copy",
    "Debug",
    "Default",
    "Eq",
    "Hash",
    "Ord",
    "PartialEq",
    "PartialOrd",
];

/// Whether a macro gets the item with its documentation, and may make code of that.
pub(super) fn read_by_macro(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        if attribute.path().is_ident("cfg") {
            return false;
        }
        if !attribute.path().is_ident("derive") {
            return !is_inert(attribute);
        }
        let derived = attribute.parse_args_with(Punctuated::<Path, Token![,]>::parse_terminated);
        derived.map_or(true, |derived| {
            let mut last = derived.iter().filter_map(|path| path.segments.last());
            last.any(|name| !PLAIN.contains(&name.ident.to_string().as_str()))
        })
    })
}
