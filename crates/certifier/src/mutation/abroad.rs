//! Declarations that give unchanged code of other files another meaning.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use flightproof_core::{Bytes, Digest, RelPath};

use super::kept;
use super::names::{Change, Uses, changes_of, takes_everything, unchanged_uses};
use super::plan::{EditedFile, FileRole, Unjudged};
use super::survey::{LineIndex, Silence};
use super::text::split_prefix;
use crate::population::Packages;
use crate::tokens::{with_parsed, with_tokens};
use crate::tree::{Tree, contains};

/// What the changed files declare or no longer declare and unchanged lines of other files could
/// name: a function or method by calling it, anything else where the tree imports everything of a
/// module.
pub(crate) fn rebound(files: &[EditedFile], tree: &Tree<'_>) -> Vec<Unjudged> {
    let edited = files.iter().filter(|file| file.role == FileRole::Program);
    let changes: Vec<(&EditedFile, Vec<Change>)> = edited
        .map(|file| (file, changes_of(file)))
        .filter(|(_, changes)| !changes.is_empty())
        .collect();
    // What moved to another file is judged there.
    let came: BTreeSet<&str> = changes
        .iter()
        .flat_map(|(_, changes)| changes)
        .filter(|change| change.added)
        .map(|change| change.key.as_str())
        .collect();
    let names = changes.iter().flat_map(|(_, changes)| changes);
    let others = Others::of(files, tree, &names.map(|c| c.name.as_bytes()).collect());
    let mut out = Vec::new();
    for (file, changes) in &changes {
        let source = Digest::of(&file.text);
        for change in changes {
            if !change.added && came.contains(change.key.as_str()) {
                continue;
            }
            // Most names stand nowhere else: that is asked before every file is read for its imports.
            let reached = || change.method || others.import_everything();
            if others.name(change, &file.path) && reached() {
                out.push(Unjudged {
                    file: file.path.clone(),
                    line: change.line,
                    why: match change.added {
                        true => Silence::Rebound,
                        false => Silence::Removed,
                    },
                    what: String::new(),
                    source,
                });
            }
        }
    }
    out
}

/// The Rust files of the tree. Each is read when a name that changed stands in it, and once.
struct Others<'a> {
    files: Vec<Other<'a>>,
    /// Where the names stand that are looked for, if there are many.
    standing: Option<Standing<'a>>,
    packages: Packages<'a>,
    everything: OnceCell<bool>,
}

struct Other<'a> {
    path: RelPath,
    content: &'a [u8],
    edited: Option<&'a EditedFile>,
    is_part: OnceCell<bool>,
    /// The names on its unchanged lines; `None` where it cannot be read.
    uses: OnceCell<Option<Uses>>,
}

/// Most names that are looked for one by one in every file. A change of more is a rewrite, or an
/// attack: then every file is read once for all of them.
const FEW: usize = 64;

/// Files that may have a name, by number.
struct Standing<'a> {
    /// In a file that can be read, a name is a whole word.
    words: BTreeMap<&'a [u8], Vec<usize>>,
    unreadable: Vec<usize>,
}

impl<'a> Standing<'a> {
    fn of(files: &[Other<'a>], names: &BTreeSet<&[u8]>) -> Self {
        let mut standing = Self {
            words: BTreeMap::new(),
            unreadable: Vec::new(),
        };
        let part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii();
        for (number, file) in files.iter().enumerate() {
            if !file.has_tokens() {
                standing.unreadable.push(number);
                continue;
            }
            let words: BTreeSet<&[u8]> = file.content.split(|byte| !part(byte)).collect();
            for word in words.into_iter().filter(|word| names.contains(word)) {
                standing.words.entry(word).or_default().push(number);
            }
        }
        standing
    }
}

impl<'a> Others<'a> {
    fn of(files: &'a [EditedFile], tree: &'a Tree<'a>, names: &BTreeSet<&[u8]>) -> Self {
        let edited: BTreeMap<&RelPath, &EditedFile> =
            files.iter().map(|file| (&file.path, file)).collect();
        let rust = tree.files().filter(|(path, _)| path.ends_with(".rs"));
        let others = rust.filter_map(|(path, content)| {
            let path = RelPath::new(path).ok()?;
            Some(Other {
                edited: edited.get(&path).copied(),
                path,
                content,
                is_part: OnceCell::new(),
                uses: OnceCell::new(),
            })
        });
        let files: Vec<Other<'_>> = others.collect();
        Self {
            standing: (names.len() > FEW).then(|| Standing::of(&files, names)),
            files,
            packages: Packages::of(tree),
            everything: OnceCell::new(),
        }
    }

    /// Whether an unchanged line of another file than `declaring` could mean what changed.
    fn name(&self, change: &Change, declaring: &RelPath) -> bool {
        let standing: Vec<&Other<'_>> = match &self.standing {
            None => self.files.iter().collect(),
            Some(standing) => {
                let words = standing.words.get(change.name.as_bytes());
                let all = words.into_iter().flatten().chain(&standing.unreadable);
                all.filter_map(|number| self.files.get(*number)).collect()
            }
        };
        let mut holding = standing.into_iter().filter(|other| {
            other.path != *declaring && contains(other.content, &change.name) && self.is_part(other)
        });
        holding.any(|other| {
            let uses = other.uses.get_or_init(|| other.read());
            uses.as_ref().is_none_or(|uses| change.is_in(uses))
        })
    }

    /// Whether a module of the tree imports everything of another. A file that cannot be read may.
    fn import_everything(&self) -> bool {
        *self.everything.get_or_init(|| {
            let mut files = self.files.iter();
            files.any(|other| {
                let Ok(text) = std::str::from_utf8(other.content) else {
                    return self.is_part(other);
                };
                let (_, body) = split_prefix(text);
                may_take_everything(body)
                    && self.is_part(other)
                    && with_parsed(&other.path, body.as_bytes(), |parsed| {
                        takes_everything(body, parsed)
                    })
                    .unwrap_or(true)
            })
        })
    }

    /// Whether a file may be part of a program.
    fn is_part(&self, other: &Other<'_>) -> bool {
        let role = || self.packages.role(&other.path);
        *other.is_part.get_or_init(|| role() != FileRole::Tests)
    }
}

impl Other<'_> {
    fn has_tokens(&self) -> bool {
        std::str::from_utf8(self.content).is_ok_and(|text| {
            let (_, body) = split_prefix(text);
            with_tokens(&self.path, body.as_bytes(), |_| ()).is_ok()
        })
    }

    fn read(&self) -> Option<Uses> {
        match self.edited {
            Some(file) => uses(file),
            None => uses(&EditedFile {
                path: self.path.clone(),
                text: Bytes::from(self.content),
                old: None,
                lines: BTreeSet::new(),
                role: FileRole::Program,
                features: BTreeSet::new(),
            }),
        }
    }
}

/// Whether an import of everything could stand in a text: a star, and after it, but for what is no
/// token, the end of an import or a comment.
fn may_take_everything(text: &str) -> bool {
    let ends = |rest: &str| {
        let mut signs = rest.bytes();
        let sign = signs.find(|b| b.is_ascii() && !b.is_ascii_whitespace());
        match sign {
            Some(b'/') => matches!(signs.next(), Some(b'/' | b'*')),
            sign => matches!(sign, Some(b';' | b',' | b'}')),
        }
    };
    let mut stars = text.match_indices('*');
    text.contains("use") && stars.any(|(at, star)| ends(&text[at + star.len()..]))
}

fn uses(file: &EditedFile) -> Option<Uses> {
    let (_, body) = split_prefix(std::str::from_utf8(&file.text).ok()?);
    let index = LineIndex::of(body);
    with_tokens(&file.path, body.as_bytes(), |tokens| {
        let parsed: Option<syn::File> = syn::parse2(tokens.clone()).ok();
        let kept = parsed.map(|parsed| kept::patterns(file, body, &parsed, &tokens));
        unchanged_uses(file, &tokens, &index, &kept.unwrap_or_default())
    })
    .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_import_of_everything_is_seen_however_it_is_written() {
        for text in [
            "use a::*;",
            "use a::{b, *};",
            "use a::{*, b};",
            "use a::* ;",
            "use a::*\n}",
            "use a::*/* b */;",
            "use a::*// b\n;",
            "use a::*\u{200e};",
        ] {
            assert!(may_take_everything(text), "{text}");
        }
        for text in [
            "",
            "use a;",
            "*;",
            "use a; fn f() { *b = c * d; }",
            "/* use */ fn f() {}",
        ] {
            assert!(!may_take_everything(text), "{text}");
        }
    }
}
