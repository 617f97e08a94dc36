//! The candidate's whole tree, as decoded from its snapshot by somebody else.

use std::collections::BTreeMap;

use flightproof_core::{Digest, RelPath};

/// Every file of the captured tree by path. This crate cannot open archives: the caller decodes
/// the snapshot named by `Captured::snapshot` and lends its entries.
#[derive(Debug, Clone, Default)]
pub struct Tree<'a> {
    files: BTreeMap<&'a str, &'a [u8]>,
}

impl<'a> Tree<'a> {
    /// The content of the file at exactly this path.
    pub fn file(&self, path: &str) -> Option<&'a [u8]> {
        self.files.get(path).copied()
    }

    /// Every file, ordered by path.
    pub fn files(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> + '_ {
        self.files.iter().map(|(path, content)| (*path, *content))
    }

    /// The first path whose file has this digest.
    pub fn path_of(&self, wanted: Digest) -> Option<&'a str> {
        self.files()
            .find(|(_, content)| Digest::of(content) == wanted)
            .map(|(path, _)| path)
    }
}

impl<'a> FromIterator<(&'a RelPath, &'a [u8])> for Tree<'a> {
    fn from_iter<I: IntoIterator<Item = (&'a RelPath, &'a [u8])>>(entries: I) -> Self {
        let files = entries
            .into_iter()
            .map(|(path, content)| (path.as_str(), content))
            .collect();
        Self { files }
    }
}
