//! Attributes wherever they stand: before an element of a list, an operand, a field of a literal.

use std::ops::Range;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::choice::INERT;
use super::survey::{Silence, Stretches, Survey};

impl Survey {
    /// Names every attribute that may decide what is compiled and that neither a tripwire nor a
    /// macro around it answers for.
    pub(super) fn note_stray_attributes(&mut self, tokens: &TokenStream) {
        let silences = self.silences.iter();
        let answered =
            silences.filter(|(_, why)| matches!(why, Silence::TestOnly | Silence::Macro));
        let answered = answered.map(|(range, _)| range);
        let answered: Stretches = answered.chain(&self.excused).collect();
        let stray = attributes(tokens).into_iter();
        for at in stray.filter(|at| !answered.hold(at)) {
            self.hidden.push((at.clone(), Silence::Attribute));
            self.silences.push((at, Silence::Attribute));
        }
    }
}

/// Attributes that are not known to be inert.
fn attributes(tokens: &TokenStream) -> Vec<Range<usize>> {
    let mut out = Vec::new();
    let mut open = vec![tokens.clone()];
    while let Some(stream) = open.pop() {
        let mut hash = None;
        for token in stream {
            let range = token.span().byte_range();
            hash = match (&token, hash) {
                (TokenTree::Punct(mark), _) if mark.as_char() == '#' => Some(range.start),
                (TokenTree::Punct(mark), Some(start)) if mark.as_char() == '!' => Some(start),
                (TokenTree::Group(group), Some(start))
                    if group.delimiter() == Delimiter::Bracket =>
                {
                    let first = group.stream().into_iter().next();
                    let inert = first.is_some_and(|name| INERT.contains(&&*name.to_string()));
                    out.extend((!inert).then_some(start..range.end));
                    None
                }
                _ => None,
            };
            if let TokenTree::Group(group) = token {
                open.push(group.stream());
            }
        }
    }
    out
}
