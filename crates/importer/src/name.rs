use crate::{ImportError, ImporterCode};
use flightproof_core::{escape, is_default_ignorable};
use unicode_normalization::UnicodeNormalization as _;

/// Longest name in bytes: what Linux file systems hold.
const MOST: usize = 255;

/// A name that a candidate brings: it must be the same plain name everywhere.
///
/// The rules are those of every file system and terminal at once, since nobody knows where the
/// branch is checked out next.
pub(crate) fn check_new(name: &[u8]) -> Result<&str, ImportError> {
    let text = std::str::from_utf8(name).map_err(|_| refused(name, "it is not UTF-8"))?;
    if name.len() > MOST {
        let detail = format!("{} bytes: {}", name.len(), escape(name, 40));
        return Err(ImporterCode::PathTooLong.refuse(detail));
    }
    check_not_git(name)?;
    let fault = if text.contains(is_invisible) {
        "it has a control or invisible character"
    } else if text.contains(['\\', ':']) {
        "it has a backslash or a colon"
    } else if text.ends_with('.') {
        "it ends in a dot"
    } else if text.trim() != text {
        "it begins or ends with white space"
    } else if is_device(text) {
        "it is the name of a device"
    } else if is_short(text) {
        "it has the form of the short name that Windows gives to another"
    } else {
        return Ok(text);
    };
    Err(refused(name, fault))
}

/// Refuses what some file system takes for `.git`. Holds for unchanged names too.
pub(crate) fn check_not_git(name: &[u8]) -> Result<(), ImportError> {
    let lossy = String::from_utf8_lossy(name);
    let visible: String = lossy
        .chars()
        .filter(|c| !is_default_ignorable(*c))
        .collect();
    // NTFS: a stream name follows a colon, a backslash starts another segment, and dots and
    // spaces at the end are dropped.
    let is_git = visible.split('\\').any(|segment| {
        let stem = segment.split(':').next().unwrap_or_default();
        let stem = stem.trim_end_matches(['.', ' ']);
        [".git", "git~1"]
            .iter()
            .any(|git| stem.eq_ignore_ascii_case(git))
    });
    if is_git {
        return Err(ImporterCode::GitName.refuse(escape(name, 80)));
    }
    Ok(())
}

/// One key for all names that some file system takes for one.
pub(crate) fn fold(name: &str) -> String {
    name.chars()
        .filter(|c| !is_default_ignorable(*c))
        .nfkd()
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
        .nfkd()
        .collect()
}

/// Emoji carry variation selectors, so those alone are no reason to refuse a name.
fn is_invisible(c: char) -> bool {
    let selector = matches!(c, '\u{fe00}'..='\u{fe0f}');
    c.is_control()
        || (is_default_ignorable(c) && !selector)
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{fff9}'..='\u{fffb}')
}

/// The names Windows gives to devices, with any extension.
fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().trim_end();
    let stem = stem.to_uppercase();
    if matches!(&*stem, "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$") {
        return true;
    }
    ["COM", "LPT"].iter().any(|port| {
        stem.strip_prefix(port).is_some_and(|number| {
            matches!(number, "¹" | "²" | "³") || matches!(number.as_bytes(), [b'0'..=b'9'])
        })
    })
}

/// `GITATT~1` opens `.gitattributes` there, `AGENTS~1.MD` the orders to agents: eight bytes with a
/// tilde and a number at their end, and three more behind a dot. What begins as git's own folder's
/// does is refused whatever follows.
fn is_short(name: &str) -> bool {
    let (stem, extension) = name.split_once('.').unwrap_or((name, ""));
    let is_numbered = stem.rsplit_once('~').is_some_and(|(before, number)| {
        let digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
        digits && !before.is_empty()
    });
    let git = name.get(..4).filter(|s| s.eq_ignore_ascii_case("git~"));
    let is_git = git.is_some() && name.as_bytes().get(4).is_some_and(u8::is_ascii_digit);
    is_git || (is_numbered && stem.len() <= 8 && extension.len() <= 3)
}

fn refused(name: &[u8], why: &str) -> ImportError {
    ImporterCode::NameRefused.refuse(format!("{}: {why}", escape(name, 80)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn git_in_every_disguise_is_found() {
        for name in [
            ".git",
            ".GIT",
            "git~1",
            "GIT~1",
            ".git ",
            ".git.",
            ".git . .",
            ".git::$INDEX_ALLOCATION",
            ".git:foo",
            ".git\\foo",
            "a\\.git",
            ".g\u{200c}it",
            "\u{feff}.git",
            ".gi\u{200d}t",
        ] {
            let refused = check_new(name.as_bytes()).unwrap_err();
            assert_eq!(refused.code, ImporterCode::GitName, "{name:?}");
        }
        assert_eq!(
            check_not_git(b".git\xff").map_err(|e| e.code),
            Ok(()),
            "a longer name is another name"
        );
    }

    #[test]
    fn names_some_system_reads_otherwise_are_refused() {
        for name in [
            "a\\b",
            "C:",
            "a:b",
            "CON",
            "nul",
            "aux.txt",
            "com1",
            "LPT¹.x",
            "x.",
            "x ",
            " x",
            "x\u{a0}",
            "\u{3000}x",
            "a\nb",
            "a\x7f",
            "a\u{1b}[0m",
            "a\u{85}",
            "a\u{202e}b",
            "a\u{200b}",
            "\u{2066}x",
            "git~2",
            "GIT~9x",
            "GITATT~1",
            "a~1",
            "AGENTS~1.MD",
        ] {
            let refused = check_new(name.as_bytes()).unwrap_err();
            assert_eq!(refused.code, ImporterCode::NameRefused, "{name:?}");
        }
        assert_eq!(
            check_new(b"\xff\xfe").unwrap_err().code,
            ImporterCode::NameRefused
        );
        assert_eq!(
            check_new(&[b'a'; 256]).unwrap_err().code,
            ImporterCode::PathTooLong
        );
    }

    #[test]
    fn ordinary_names_pass() {
        for name in [
            ".gitignore",
            "git",
            "git~",
            "main.rs~1",
            "~1",
            "backup~",
            "version~1.lock",
            "console",
            "com10",
            "größe.rs",
            "日本",
            "a b",
            "-rf",
            "..a",
            "...x",
        ] {
            assert!(check_new(name.as_bytes()).is_ok(), "{name}");
        }
        assert!(check_new(&[b'a'; 255]).is_ok());
    }

    #[test]
    fn folding_meets_case_and_unicode_forms() {
        assert_eq!(fold("README.MD"), fold("readme.md"));
        assert_eq!(fold("e\u{301}"), fold("\u{e9}"));
        assert_eq!(fold("straße"), fold("STRASSE"));
        assert_ne!(fold("a"), fold("b"));
    }
}
