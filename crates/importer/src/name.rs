use crate::{ImportError, ImporterCode};
use flightproof_archive::names::{Names, is_dot_git};
use flightproof_core::{escape, is_default_ignorable};

pub(crate) use flightproof_archive::names::fold;

/// Longest name in bytes: what Linux file systems hold.
const MOST: usize = 255;

/// A name at which a candidate brings something: it must be the same plain name everywhere.
///
/// The rules are those of every file system and terminal at once, since nobody knows where the
/// branch is checked out next. What a working tree would not take when the commit lands is refused here.
pub(crate) fn check_new(name: &[u8]) -> Result<&str, ImportError> {
    let text = std::str::from_utf8(name).map_err(|_| refused(name, "is not UTF-8"))?;
    if name.len() > MOST {
        let detail = format!("{} bytes: {}", name.len(), escape(name, 40));
        return Err(ImporterCode::PathTooLong.refuse(detail));
    }
    check_not_git(name)?;
    let fault = if text.contains(is_invisible) {
        Some("has a control or invisible character")
    } else if text.contains('\\') {
        Some("has a backslash")
    } else if is_short(text) {
        Some("has the form of the short name that Windows gives to another")
    } else {
        Names::Strict.fault(text)
    };
    match fault {
        None => Ok(text),
        Some(fault) => Err(refused(name, fault)),
    }
}

/// Refuses what some file system takes for `.git`, also behind a backslash. Holds for unchanged names too.
pub(crate) fn check_not_git(name: &[u8]) -> Result<(), ImportError> {
    if String::from_utf8_lossy(name).split('\\').any(is_dot_git) {
        return Err(ImporterCode::GitName.refuse(escape(name, 80)));
    }
    Ok(())
}

/// Emoji carry variation selectors, so those alone are no reason to refuse a name.
fn is_invisible(c: char) -> bool {
    let selector = matches!(c, '\u{fe00}'..='\u{fe0f}');
    c.is_control() || (is_default_ignorable(c) && !selector)
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
    ImporterCode::NameRefused.refuse(format!("{}: it {why}", escape(name, 80)))
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
    fn what_no_working_tree_would_take_is_refused() {
        for name in [
            "x\u{600}y",
            "a\u{2028}b",
            "a\u{fffb}b",
            "a\u{fdd0}b",
            "\u{10ffff}",
            "\u{ff23}\u{ff2f}\u{ff2e}",
            "LPT\u{2070}",
            "\u{ff0e}git",
        ] {
            let refused = check_new(name.as_bytes()).unwrap_err();
            assert_eq!(refused.code, ImporterCode::NameRefused, "{name:?}");
        }
    }
}
