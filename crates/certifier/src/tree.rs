//! The candidate's whole tree, as decoded from its snapshot by somebody else.

use std::collections::BTreeMap;

use flightproof_core::RelPath;
use flightproof_evidence::Change;

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

    /// The tree with these changes taken back.
    pub fn before(&self, changes: &'a [Change]) -> Self {
        let mut files = self.files.clone();
        for change in changes {
            match &change.old {
                Some(old) => files.insert(change.path.as_str(), &old.content),
                None => files.remove(change.path.as_str()),
            };
        }
        Self { files }
    }

    /// Every file, ordered by path.
    pub fn files(&self) -> impl Iterator<Item = (&'a str, &'a [u8])> + '_ {
        self.files.iter().map(|(path, content)| (*path, *content))
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

/// Whether a text stands in a file, whatever else does.
pub(crate) fn contains(content: &[u8], text: &str) -> bool {
    match std::str::from_utf8(content) {
        Ok(content) => content.contains(text),
        Err(_) => content
            .windows(text.len().max(1))
            .any(|window| window == text.as_bytes()),
    }
}
