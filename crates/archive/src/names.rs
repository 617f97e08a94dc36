//! Names that are harmless bytes in a manifest and something else on a file system.

use crate::code::{ArchiveCode, ArchiveError};
use crate::paws::{Snapshot, shown};
use std::collections::HashMap;
use unicode_normalization::UnicodeNormalization;

/// Whose names they are, and so how much they may surprise a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// The tree of a commit as its repository has it. Real repositories hold `aux.c`, and
    /// `xt_TCPMSS.h` beside `xt_tcpmss.h`: they stay where the file system can hold them.
    Captured,
    /// Files somebody just named: nothing that any usual file system reads as another name.
    Strict,
}

/// Longest name of one file or directory in bytes: what every Linux file system can hold.
const MAX_SEGMENT_BYTES: usize = 255;

impl Names {
    /// Checks all names of a tree before the first is created.
    pub(crate) fn check(self, snapshot: &Snapshot) -> Result<(), ArchiveError> {
        let paths = || snapshot.entries().iter().map(|entry| entry.path.as_str());
        for path in paths() {
            for segment in path.split('/') {
                if let Some(reason) = self.fault(segment) {
                    let detail = format!("{} {reason}", shown(path));
                    return Err(ArchiveCode::UnsafeName.refuse(detail));
                }
            }
        }
        match self {
            Self::Captured => Ok(()),
            Self::Strict => check_collisions(paths()),
        }
    }

    fn fault(self, segment: &str) -> Option<&'static str> {
        if segment.len() > MAX_SEGMENT_BYTES {
            return Some("has a name of more than 255 bytes");
        }
        if is_dot_git(segment) {
            return Some("is read as .git by some file system");
        }
        if self == Self::Captured {
            return None;
        }
        if segment.contains(':') {
            return Some("names a drive or a second stream of a file");
        }
        if segment.ends_with(['.', ' ']) {
            return Some("ends in a dot or a space, which some file systems drop");
        }
        is_device(segment).then_some("is a device on some systems")
    }
}

/// Whether git, HFS+ or NTFS reads the name as `.git`: in any case, with characters that HFS+
/// ignores, with what NTFS drops at the end, as its short name, or with a stream name.
pub(crate) fn is_dot_git(segment: &str) -> bool {
    let visible: String = segment.chars().filter(|c| !is_ignored(*c)).collect();
    let stem = visible.split(':').next().unwrap_or_default();
    let stem = stem.trim_end_matches(['.', ' ']);
    stem.eq_ignore_ascii_case(".git") || stem.eq_ignore_ascii_case("git~1")
}

/// The code points HFS+ leaves out when it compares names.
fn is_ignored(c: char) -> bool {
    matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

/// The names Windows gives to devices, with any extension.
fn is_device(segment: &str) -> bool {
    let stem = segment.split('.').next().unwrap_or_default().trim_end();
    let stem = stem.to_uppercase();
    if matches!(&*stem, "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$") {
        return true;
    }
    let numbered = stem
        .strip_prefix("COM")
        .or_else(|| stem.strip_prefix("LPT"));
    numbered.is_some_and(|number| {
        let mut digits = number.chars();
        matches!(digits.next(), Some('0'..='9' | '¹' | '²' | '³')) && digits.next().is_none()
    })
}

/// Refuses two names that fold to one, also where they are names of directories.
fn check_collisions<'a>(paths: impl Iterator<Item = &'a str>) -> Result<(), ArchiveError> {
    // Each directory has a number; a name is looked up below the number of its directory.
    let mut known: HashMap<(usize, String), (&str, usize)> = HashMap::new();
    let mut before: Vec<(&str, usize)> = Vec::new();
    for path in paths {
        let mut above = 0;
        let mut open = Vec::new();
        for (depth, segment) in path.split('/').enumerate() {
            let same = before.get(depth).filter(|(name, _)| *name == segment);
            above = if let (Some((_, number)), true) = (same, open.len() == depth) {
                *number
            } else {
                let next = known.len() + 1;
                let key = (above, fold(segment));
                let (name, number) = *known.entry(key).or_insert((segment, next));
                if name != segment {
                    let detail =
                        format!("{} and {} in {}", shown(name), shown(segment), shown(path));
                    return Err(ArchiveCode::NameCollision.refuse(detail));
                }
                before.truncate(depth);
                number
            };
            open.push((segment, above));
        }
        before = open;
    }
    Ok(())
}

/// One key for all names a file system may take for one: compatibility decomposition, then upper
/// and lower case, so that `ß` meets `ss` as it does under full case folding.
pub(crate) fn fold(segment: &str) -> String {
    if segment.is_ascii() {
        return segment.to_ascii_lowercase();
    }
    segment
        .chars()
        .filter(|c| !is_ignored(*c))
        .nfkd()
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
        .nfkd()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paws::pack;
    use flightproof_core::RelPath;

    fn check(names: Names, paths: &[&str]) -> Result<(), ArchiveCode> {
        let files = paths.iter().map(|p| (RelPath::new(p).unwrap(), false, "x"));
        let packed = pack("w", files).unwrap();
        names.check(&packed.snapshot).map_err(|e| e.code)
    }

    #[test]
    fn dot_git_in_every_disguise_is_refused_whoever_named_it() {
        for name in [
            ".git",
            ".GIT",
            ".Git",
            ".g\u{200c}it",
            "\u{202e}.git",
            ".git.",
            ".git ",
            ".git . .",
            "git~1",
            "GIT~1",
            ".git::$INDEX_ALLOCATION",
            ".git...:stream",
            ".git\u{206f}",
        ] {
            for path in [name.to_owned(), format!("a/{name}/hooks/pre-commit")] {
                for names in [Names::Captured, Names::Strict] {
                    assert_eq!(
                        check(names, &[&path]),
                        Err(ArchiveCode::UnsafeName),
                        "{path:?}"
                    );
                }
            }
        }
        for twin in [
            ".gitignore",
            ".github/x",
            "git",
            "a.git",
            "git~2",
            ".gitmodules",
        ] {
            assert_eq!(check(Names::Strict, &[twin]), Ok(()), "{twin}");
        }
    }

    #[test]
    fn names_of_other_systems_are_refused_unless_captured() {
        for name in [
            "aux.c", "NUL", "com1", "LPT9.txt", "COM¹", "lpt0", "conin$", "con .txt", "C:", "a:b",
            "a.", "a ",
        ] {
            assert_eq!(
                check(Names::Strict, &[name]),
                Err(ArchiveCode::UnsafeName),
                "{name}"
            );
            assert_eq!(check(Names::Captured, &[name]), Ok(()), "{name}");
        }
        for twin in [
            "auxiliary.c",
            "nulled",
            "com10",
            "lpt",
            "console",
            "a.b",
            ".a",
        ] {
            assert_eq!(check(Names::Strict, &[twin]), Ok(()), "{twin}");
        }
    }

    #[test]
    fn a_name_no_file_system_holds_is_refused_before_anything_is_written() {
        assert_eq!(
            check(Names::Captured, &[&"a".repeat(256)]),
            Err(ArchiveCode::UnsafeName)
        );
        assert_eq!(check(Names::Captured, &[&"a".repeat(255)]), Ok(()));
    }

    #[test]
    fn names_that_fold_to_one_collide_unless_captured() {
        for pair in [
            ["xt_TCPMSS.h", "xt_tcpmss.h"],
            ["A/x", "a/y"],
            ["d/STRASSE", "d/straße"],
            ["ﬁ", "fi"],
            ["a\u{200d}", "a"],
            ["A", "a/b"],
            ["a/B/c", "a/b"],
        ] {
            let pair = &pair;
            assert_eq!(
                check(Names::Strict, pair),
                Err(ArchiveCode::NameCollision),
                "{pair:?}"
            );
            assert_eq!(check(Names::Captured, pair), Ok(()), "{pair:?}");
        }
        assert_eq!(
            check(Names::Strict, &["a/b", "b/B", "c/a/b", "c/b/a"]),
            Ok(())
        );
    }
}
