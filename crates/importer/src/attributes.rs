//! Whether a file's bytes on disk would be others than those of the commit.

use crate::git::Verb;
use crate::index::{Edits, Index};
use crate::scratch::Scratch;
use crate::talk::Cap;
use crate::{Git, Host, ImportError, ImporterCode, host};
use flightproof_core::escape;
use flightproof_evidence::Change;
use rustix::fs::OFlags;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;

/// What converts. `crlf` is the old name of `text`.
const ASKED: [&str; 6] = [
    "filter",
    "working-tree-encoding",
    "ident",
    "eol",
    "text",
    "crlf",
];

/// Most bytes of a file of attributes that is read: git itself ignores larger ones.
const MOST: u64 = 100 << 20;

/// Most bytes git says about 1,024 paths and six attributes.
const ANSWER: Cap = Cap {
    bytes: 8 << 20,
    code: ImporterCode::GitFailed,
};

/// Refuses a change of a path whose content git would convert on its way into a file: the file would
/// not hold what was certified. Asked of the attributes before the change and after it.
///
/// # Errors
/// `HOST_UNSUPPORTED`.
pub(crate) fn check(
    git: &Git,
    host: &Host,
    window: &Scratch,
    (index, edits): (&Index<'_>, &Edits<'_>),
    (changes, dir): (&[Change], &Path),
) -> Result<(), ImportError> {
    let own = host::read_file(&host.attributes(), OFlags::empty(), MOST)?;
    let names = attribute_files(changes);
    let names = || names.iter().map(String::as_bytes);
    let before = index.only(names());
    let mut after = edits.clone();
    after.retain(|path, _| names().any(|name| name == *path));
    if own.is_none() && before.len() == 0 && after.is_empty() {
        return Ok(());
    }
    if let Some(own) = own {
        window.set_attributes(&own)?;
    }
    let file = dir.join("attributes");
    ask(git, window, &file, &before.write(&Edits::new())?, changes)?;
    if after.is_empty() {
        return Ok(());
    }
    ask(git, window, &file, &before.write(&after)?, changes)
}

fn ask(
    git: &Git,
    window: &Scratch,
    file: &Path,
    index: &[u8],
    changes: &[Change],
) -> Result<(), ImportError> {
    std::fs::write(file, index).map_err(|e| ImporterCode::ScratchFailed.refuse(e))?;
    let asked = ASKED.map(OsStr::new);
    let mut talk = git.talk(Verb::CheckAttr, window.with_index(file), &asked)?;
    let mut paths = Vec::new();
    for change in changes {
        paths.extend_from_slice(change.path.as_str().as_bytes());
        paths.push(0);
    }
    talk.send(&paths)?;
    let answer = talk.finish(ANSWER)?;
    if answer.code != 0 {
        return Err(ImporterCode::GitFailed.refuse(answer.complaint));
    }
    let words: Vec<&[u8]> = answer.stdout.split(|b| *b == 0).collect();
    let (answers, _) = words.as_chunks::<3>();
    if answers.len() != changes.len() * ASKED.len() {
        return Err(ImporterCode::GitFailed.refuse("it does not say all attributes"));
    }
    let said = answers.chunks(ASKED.len()).zip(changes);
    for (answers, change) in said {
        for [path, name, value] in answers {
            if *path != change.path.as_str().as_bytes() {
                return Err(ImporterCode::GitFailed.refuse("it says attributes of another path"));
            }
            if converts(name, value, change) {
                return Err(ImporterCode::HostUnsupported.refuse(format!(
                    "{}: attribute {}={} converts its content",
                    escape(path, 300),
                    escape(name, 40),
                    escape(value, 80)
                )));
            }
        }
    }
    Ok(())
}

/// `text` and its old name change a file only where it has carriage returns. `text=auto` never does:
/// git takes such a file as it is.
fn converts(name: &[u8], value: &[u8], change: &Change) -> bool {
    let given = !matches!(value, b"unspecified" | b"unset");
    match name {
        b"eol" => value == b"crlf",
        b"text" | b"crlf" => given && value != b"auto" && has_carriage_returns(change),
        _ => given,
    }
}

fn has_carriage_returns(change: &Change) -> bool {
    let sides = [&change.old, &change.new].into_iter().flatten();
    sides.into_iter().any(|side| side.content.contains(&b'\r'))
}

/// Every place where attributes of a changed path can stand.
fn attribute_files(changes: &[Change]) -> BTreeSet<String> {
    let mut files = BTreeSet::new();
    for change in changes {
        let path = change.path.as_str();
        files.insert(".gitattributes".to_owned());
        for (end, _) in path.match_indices('/') {
            let above = path.get(..=end).unwrap_or_default();
            files.insert(format!("{above}.gitattributes"));
        }
    }
    files
}
