//! Names that are harmless bytes in a manifest and something else on a file system.

use crate::code::{ArchiveCode, ArchiveError};
use crate::paws::shown;
use flightproof_core::is_default_ignorable;
use std::collections::HashMap;
use unicode_normalization::UnicodeNormalization;

/// Whose names they are, and so how much they may surprise a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// The tree of a commit as its repository has it. Real repositories hold `aux.c`, and
    /// `xt_TCPMSS.h` beside `xt_tcpmss.h`: they stay where the file system can hold them.
    Captured,
    /// Files somebody just named: nothing that any usual file system reads as another name, and
    /// nothing that a reader cannot see.
    Strict,
}

/// Longest name of one file or directory in bytes: what every Linux file system can hold.
const MAX_SEGMENT_BYTES: usize = 255;

/// Most names in one path: what a commit may have too. Each costs a descriptor while it is written.
const MAX_DEPTH: usize = 64;

impl Names {
    /// Checks all names of a tree, whose paths ascend, before the first is created.
    pub(crate) fn check_paths<'a>(
        self,
        paths: impl Iterator<Item = &'a str> + Clone,
    ) -> Result<(), ArchiveError> {
        let mut before = "";
        for path in paths.clone() {
            let names = new_names(before, path);
            let fault = names.split('/').find_map(|name| self.fault(name));
            if let Some(reason) = fault.or_else(|| depth_fault(path)) {
                let detail = format!("{} {reason}", shown(path));
                return Err(ArchiveCode::UnsafeName.refuse(detail));
            }
            before = path;
        }
        match self {
            Self::Captured => Ok(()),
            Self::Strict => check_collisions(paths),
        }
    }

    /// Why no file may have this name: words that follow it. `None` if it may.
    pub fn fault(self, name: &str) -> Option<&'static str> {
        if name.len() > MAX_SEGMENT_BYTES {
            return Some("has a name of more than 255 bytes");
        }
        if name.chars().any(char::is_control) {
            return Some("has a control character");
        }
        if is_dot_git(name) {
            return Some("is read as .git by some file system");
        }
        match self {
            Self::Captured => None,
            Self::Strict => strict_fault(name),
        }
    }
}

/// What of a path was not looked at with the path before it: the names after the directories that
/// both lie in.
fn new_names<'a>(before: &str, path: &'a str) -> &'a str {
    let bytes = before.bytes().zip(path.bytes());
    let shared = bytes.take_while(|(a, b)| a == b).count();
    let shared = path.as_bytes().get(..shared).unwrap_or_default();
    let start = shared.iter().rposition(|byte| *byte == b'/');
    let start = start.map_or(0, |slash| slash + 1);
    path.get(start..).unwrap_or(path)
}

fn depth_fault(path: &str) -> Option<&'static str> {
    let depth = path.split('/').count();
    (depth > MAX_DEPTH).then_some("lies more than 64 names deep")
}

fn strict_fault(name: &str) -> Option<&'static str> {
    if name.contains(':') {
        return Some("names a drive or a second stream of a file");
    }
    if name.ends_with('.') {
        return Some("ends in a dot, which some file systems drop");
    }
    if name.starts_with(char::is_whitespace) || name.ends_with(char::is_whitespace) {
        return Some("starts or ends in white space, which some file systems drop");
    }
    if name.chars().any(is_unseen) {
        return Some("has a character that cannot be seen or changes what is seen");
    }
    if name.chars().any(is_noncharacter) {
        return Some("has a code point that is no character");
    }
    if is_short_name(name) || fold(name) == ".git" {
        return Some("is read as a name that means something to git by some file system");
    }
    is_device(name).then_some("is a device on some systems")
}

/// Whether git, HFS+ or NTFS reads the name as `.git`: in any case, with characters that HFS+
/// ignores, with what NTFS drops at the end, as its short name, or with a stream name.
pub fn is_dot_git(name: &str) -> bool {
    [".git", "git~1"]
        .iter()
        .any(|known| is_read_as(name, known))
}

fn is_read_as(name: &str, known: &str) -> bool {
    let mut seen = name.chars().filter(|c| !is_default_ignorable(*c));
    let same = |k: char| seen.next().is_some_and(|c| c.eq_ignore_ascii_case(&k));
    known.chars().all(same)
        && seen
            .take_while(|c| *c != ':')
            .all(|c| matches!(c, '.' | ' '))
}

/// The code points of the general categories Cf, Zl and Zp (Unicode 16): they have no width, turn
/// the direction of what follows, or end a line.
#[rustfmt::skip] // one script or purpose, one line
fn is_unseen(c: char) -> bool {
    matches!(c,
        '\u{ad}'
        | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}' | '\u{8e2}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{2064}' | '\u{2066}'..='\u{206f}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0001}' | '\u{e0020}'..='\u{e007f}')
}

/// The 66 code points that never will be characters.
fn is_noncharacter(c: char) -> bool {
    let code = u32::from(c);
    (0xfdd0..=0xfdef).contains(&code) || code & 0xfffe == 0xfffe
}

/// The short names NTFS gives to files that git acts on, with any number: the first six letters,
/// or four digits of a hash where those were taken.
const SHORT_NAMES: &[&str] = &[
    "git", "gitmod", "gi7eba", "gitatt", "gi7d29", "gitign", "gi250a", "mailma", "maba30",
];

/// Length of a short name without extension whose letters were cut.
const SHORT_NAME_BYTES: usize = 8;

/// Whether the name is a short one of NTFS for a file that git acts on. The letters are fewer where
/// the number is longer: `gi7eba~1`, `gi7eb~10`.
fn is_short_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let Some((letters, number)) = name.split_once('~') else {
        return false;
    };
    let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    let shortened = name.len() == SHORT_NAME_BYTES && !letters.is_empty();
    let fits = |known: &str| known == letters || (shortened && known.starts_with(letters));
    is_number && SHORT_NAMES.iter().any(|known| fits(known))
}

/// The names Windows gives to devices, with any extension, also with digits that are written small.
fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default();
    let stem: String = stem
        .trim_end()
        .nfkd()
        .flat_map(char::to_uppercase)
        .collect();
    if matches!(&*stem, "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$") {
        return true;
    }
    let number = stem
        .strip_prefix("COM")
        .or_else(|| stem.strip_prefix("LPT"));
    number.is_some_and(|number| number.len() == 1 && number.bytes().all(|b| b.is_ascii_digit()))
}

/// Refuses two names that fold to one, also where they are names of directories. The paths ascend,
/// so what lies in one directory comes in one run, and each name is met once.
fn check_collisions<'a>(paths: impl Iterator<Item = &'a str>) -> Result<(), ArchiveError> {
    // Each name has a number; what lies in a directory is looked up below the directory's.
    let mut known: HashMap<(usize, String), &str> = HashMap::new();
    let mut open: Vec<(&str, usize)> = Vec::new();
    for path in paths {
        let shared = open.iter().zip(path.split('/'));
        let shared = shared.take_while(|((o, _), name)| o == name).count();
        open.truncate(shared);
        for name in path.split('/').skip(shared) {
            let above = open.last().map_or(0, |(_, number)| *number);
            open.push((name, known.len() + 1));
            if let Some(other) = known.insert((above, fold(name)), name) {
                let detail = format!("{} and {} in {}", shown(other), shown(name), shown(path));
                return Err(ArchiveCode::NameCollision.refuse(detail));
            }
        }
    }
    Ok(())
}

/// One key for all names a file system may take for one: without what HFS+ ignores, compatibility
/// decomposition, then full case folding. Upper case comes between two lower ones, so that `ß`
/// meets `ss` and `ẞ`, which is upper case already, meets both.
pub fn fold(name: &str) -> String {
    if name.is_ascii() {
        return name.to_ascii_lowercase();
    }
    name.chars()
        .filter(|c| !is_default_ignorable(*c))
        .nfkd()
        .flat_map(char::to_lowercase)
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
        let paths = packed.snapshot.entries().iter();
        let checked = names.check_paths(paths.map(|entry| entry.path.as_str()));
        checked.map_err(|e| e.code)
    }

    /// As a file, as a directory, and beside what was looked at before.
    fn placed(name: &str) -> [Vec<String>; 4] {
        [
            vec![name.to_owned()],
            vec![format!("a/{name}/hooks/pre-commit")],
            vec!["a/!".to_owned(), format!("a/{name}")],
            vec![format!("{name}/x"), "~~/y".to_owned()],
        ]
    }

    fn check_placed(names: Names, name: &str) -> Vec<Result<(), ArchiveCode>> {
        let all = placed(name);
        let checked = all.iter().map(|paths| {
            let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
            check(names, &paths)
        });
        checked.collect()
    }

    fn refused(names: Names, name: &str) {
        let found = check_placed(names, name);
        assert_eq!(
            found,
            [Err(ArchiveCode::UnsafeName); 4],
            "{names:?} {name:?}"
        );
    }

    fn accepted(names: Names, name: &str) {
        assert_eq!(check_placed(names, name), [Ok(()); 4], "{names:?} {name:?}");
    }

    #[test]
    fn dot_git_in_every_disguise_is_refused_whoever_named_it() {
        for name in [
            ".git",
            ".GIT",
            ".Git",
            ".g\u{200c}it",
            "\u{202e}.git",
            "\u{200f}.git",
            ".gi\u{202a}t",
            ".git\u{206a}",
            ".git.",
            ".git ",
            ".git . .",
            "git~1",
            "GIT~1",
            "Git~1.",
            "g\u{200d}it~1",
            ".git::$INDEX_ALLOCATION",
            ".git...:stream",
            ".git:",
            ".git\u{206f}",
            ".git\u{206f}.",
            "\u{200c}\u{206f}.git",
        ] {
            refused(Names::Captured, name);
            refused(Names::Strict, name);
        }
        for twin in [
            ".gitignore",
            ".github",
            "git",
            "a.git",
            "git~x",
            "git~",
            ".gitmodules",
            ".gi",
            ".git-",
            ".gitx",
            ".git.x",
            "xgit",
            "..git",
            "g",
            ".gité",
        ] {
            accepted(Names::Captured, twin);
            accepted(Names::Strict, twin);
        }
        accepted(Names::Captured, "git~2");
    }

    #[test]
    fn short_names_of_what_git_acts_on_are_refused_unless_captured() {
        for name in [
            "git~2", "GIT~9", "git~10", "gitmod~1", "GITMOD~4", "gi7eba~1", "GI7EBA~9", "gi7eb~10",
            "gi7e~123", "g~123456", "gitatt~1", "gi7d29~1", "gitign~2", "gi250a~1", "mailma~1",
            "maba30~3",
        ] {
            refused(Names::Strict, name);
            accepted(Names::Captured, name);
        }
        for twin in [
            "git~",
            "git~x",
            "git~1x",
            "~1",
            "x~1",
            "gitmo~1",
            "gi7eb~1",
            "gi7eba",
            "gi7eba1",
            "~1234567",
            "file~1",
            "readme~2",
            "gitmodules~1",
            "backup~",
            "gi7eb~10.txt",
        ] {
            accepted(Names::Strict, twin);
        }
    }

    #[test]
    fn names_of_other_systems_are_refused_unless_captured() {
        for name in [
            "con",
            "PRN",
            "aux.c",
            "NUL",
            "Nul.tar.gz",
            "com1",
            "com0",
            "LPT9.txt",
            "COM¹",
            "com².x",
            "lpt³",
            "LPT⁰",
            "COM⁹",
            "lpt0",
            "conin$",
            "CONOUT$",
            "con .txt",
            "ＣＯＮ",
            "C:",
            "a:b",
            ":",
            "a.",
            "...a.",
            "a ",
            " a",
            "\u{a0}a",
            "a\u{a0}",
            "a\u{3000}",
            "\u{2003}a",
            "a\u{205f}",
        ] {
            refused(Names::Strict, name);
            accepted(Names::Captured, name);
        }
        for twin in [
            "auxiliary.c",
            "nulled",
            "com10",
            "com",
            "lpt",
            "comx",
            "com¹¹",
            "console",
            "a.b",
            ".a",
            "a b",
            "a\u{a0}b",
            "x.con",
            "conin",
            "-rf",
            "--checkpoint-action=exec=x",
            "*?[a]",
            "аdmin",
            "xcom1",
            "prnt",
        ] {
            accepted(Names::Strict, twin);
        }
    }

    #[test]
    fn what_cannot_be_seen_is_refused_unless_captured() {
        for c in [
            '\u{ad}',
            '\u{600}',
            '\u{605}',
            '\u{61c}',
            '\u{6dd}',
            '\u{70f}',
            '\u{890}',
            '\u{891}',
            '\u{8e2}',
            '\u{180e}',
            '\u{200b}',
            '\u{200e}',
            '\u{200f}',
            '\u{2028}',
            '\u{2029}',
            '\u{202a}',
            '\u{202e}',
            '\u{2060}',
            '\u{2064}',
            '\u{2066}',
            '\u{2069}',
            '\u{206f}',
            '\u{fff9}',
            '\u{fffb}',
            '\u{110bd}',
            '\u{110cd}',
            '\u{13430}',
            '\u{1343f}',
            '\u{1bca0}',
            '\u{1bca3}',
            '\u{1d173}',
            '\u{1d17a}',
            '\u{e0001}',
            '\u{e0020}',
            '\u{e007f}',
            '\u{fdd0}',
            '\u{fdef}',
            '\u{fffe}',
            '\u{ffff}',
            '\u{1fffe}',
            '\u{1ffff}',
            '\u{10fffe}',
            '\u{10ffff}',
        ] {
            refused(Names::Strict, &format!("a{c}b"));
            accepted(Names::Captured, &format!("a{c}b"));
        }
        for twin in [
            '\u{ae}',
            '\u{606}',
            '\u{61b}',
            '\u{61d}',
            '\u{70e}',
            '\u{892}',
            '\u{200a}',
            '\u{2010}',
            '\u{2027}',
            '\u{202f}',
            '\u{2065}',
            '\u{2070}',
            '\u{fff8}',
            '\u{fffc}',
            '\u{fffd}',
            '\u{fdcf}',
            '\u{fdf0}',
            '\u{13440}',
            '\u{1bca4}',
            '\u{1d172}',
            '\u{1d17b}',
            '\u{e000}',
            '\u{e0002}',
            '\u{e0080}',
            '\u{e0100}',
            '\u{378}',
            '\u{10fffd}',
            '\u{fe0f}',
            '😀',
        ] {
            accepted(Names::Strict, &format!("a{twin}b"));
        }
    }

    #[test]
    fn control_characters_reach_no_file_system() {
        // Paths of snapshots cannot hold them, those of artifacts can.
        for names in [Names::Captured, Names::Strict] {
            let refused = names.check_paths(["a/b", "a/\u{85}"].into_iter());
            assert_eq!(refused.unwrap_err().code, ArchiveCode::UnsafeName);
        }
    }

    #[test]
    fn names_and_paths_have_a_length_whoever_named_them() {
        for names in [Names::Captured, Names::Strict] {
            refused(names, &"a".repeat(256));
            refused(names, &"é".repeat(128));
            accepted(names, &"a".repeat(255));
            let deep = |depth: usize| vec!["d"; depth].join("/");
            assert_eq!(check(names, &[&deep(65)]), Err(ArchiveCode::UnsafeName));
            assert_eq!(check(names, &[&deep(64)]), Ok(()));
            // Also where most of it was met before.
            let beside = [deep(64), format!("{}/e/f", deep(63))];
            let beside: Vec<&str> = beside.iter().map(String::as_str).collect();
            assert_eq!(check(names, &beside), Err(ArchiveCode::UnsafeName));
        }
    }

    #[test]
    fn only_names_that_were_not_met_are_looked_at_again() {
        for (before, path, new) in [
            ("", "a/b", "a/b"),
            ("a/b", "a/c", "c"),
            ("a/b", "a/bc", "bc"),
            ("a/bc/d", "a/bd", "bd"),
            ("a", "a/c", "a/c"),
            ("a/b/c", "a/b/d/e", "d/e"),
            ("é/a", "è/a", "è/a"),
            ("x/é", "x/è", "è"),
        ] {
            assert_eq!(new_names(before, path), new, "{before} {path}");
        }
    }

    #[test]
    fn names_that_fold_to_one_collide_unless_captured() {
        for pair in [
            ["xt_TCPMSS.h", "xt_tcpmss.h"],
            ["A/x", "a/y"],
            ["d/STRASSE", "d/straße"],
            ["STRAẞE", "strasse"],
            ["STRAẞE", "straße"],
            ["ﬁ", "fi"],
            ["É", "é"],
            ["Σ", "ς"],
            ["ᾳ", "αι"],
            ["①", "1"],
            ["A", "a/b"],
            ["a/B/c", "a/b"],
            ["a/b/c/D", "a/b/c/d"],
        ] {
            let pair = &pair;
            assert_eq!(
                check(Names::Strict, pair),
                Err(ArchiveCode::NameCollision),
                "{pair:?}"
            );
            assert_eq!(check(Names::Captured, pair), Ok(()), "{pair:?}");
        }
        for apart in [
            &["a/b", "b/B", "c/a/b", "c/b/a"][..],
            &["a/x", "a-/x", "a0/X"],
            &["a/b/c", "a/c/b", "b/c", "c"],
            &["a", "á", "ã"],
            &["x/a/b", "y/A/b"],
        ] {
            assert!(apart.len() > 1);
            assert_eq!(check(Names::Strict, apart), Ok(()), "{apart:?}");
        }
    }

    #[test]
    fn folding_is_full_and_once_is_enough() {
        // Above there is nothing that has a case.
        for c in (0..0x2_0000).filter_map(char::from_u32) {
            let folded = fold(&c.to_string());
            assert_eq!(fold(&folded), folded, "{c:?}");
            let lower: String = c.to_lowercase().collect();
            let upper: String = c.to_uppercase().collect();
            assert_eq!(
                (fold(&lower), fold(&upper)),
                (folded.clone(), folded),
                "{c:?}"
            );
        }
    }
}
