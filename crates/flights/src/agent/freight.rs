//! Large files of an agent's commit, taken out of its session piece by piece and put into the changeset
//! that travels beside its bundle. What the session says of them is a claim: the changeset is held
//! against the commit's own tree afterwards, like one that comes from anywhere.

use super::sealed::{Script, git_script, script};
use flightproof_agent::AgentCode;
use flightproof_archive::paws;
use flightproof_core::{Bytes, CommitId, ObjectId, Refusal, RelPath};
use flightproof_evidence::{Change, FileState};
use flightproof_frame::protocol::Status;
use flightproof_importer::{self as importer, Arrival, ImporterCode};
use flightproof_session::Session;
use std::collections::BTreeMap;

/// The commit's changes at and below the paths that are its arguments.
const LIST: &str = r#"
exec $quiet --literal-pathspecs diff-tree -r -z --raw --no-abbrev --no-renames "$BASELINE" HEAD -- "$@"
"#;
/// Most large files: as many as a commit may change.
const MAX_FILES: usize = 1024;
/// One piece of a file.
const PIECE: &str = r#"
$quiet cat-file blob "$ID" | tail -c "+$FROM" | head -c "$MOST"
"#;
/// Most bytes of the list: a thousand long paths.
const MAX_LIST: u64 = 2 << 20;
/// Bytes of a piece: in base64 well below what one reply may have.
const MAX_PIECE: usize = 1 << 20;

/// The large files of the commit as a changeset; `None` if it has none. `before` is the baseline.
///
/// # Errors
/// The session's, `CAPTURE_FAILED` where its repository does not answer, and the importer's for more
/// than a changeset may bring.
pub(super) fn take(
    session: &mut dyn Session,
    baseline: CommitId,
    large: &[RelPath],
    before: &paws::Unpacked<'_>,
) -> Result<Option<Vec<u8>>, Refusal> {
    if large.is_empty() {
        return Ok(None);
    }
    let baseline = baseline.to_string();
    let paths: Vec<&str> = large.iter().map(RelPath::as_str).collect();
    let listed = answer(
        session,
        &Script {
            text: &git_script(LIST),
            variables: &[("BASELINE", &baseline)],
            arguments: &paths,
            most: MAX_LIST,
        },
    )?;
    let mut old: BTreeMap<&RelPath, FileState> = before
        .files()
        .map(|(entry, bytes)| (&entry.path, state(entry.executable, bytes.to_vec())))
        .collect();
    let mut changes = Vec::new();
    let mut left = Arrival::LARGEST_CHANGESET;
    for found in travelling(&listed)? {
        let content = content(session, found.id, left)?;
        left -= content.len();
        changes.push(Change {
            old: old.remove(&found.path),
            new: Some(state(found.executable, content)),
            path: found.path,
        });
    }
    Ok(importer::changeset_of(&changes)?)
}

fn state(executable: bool, content: Vec<u8>) -> FileState {
    FileState {
        executable,
        content: Bytes(content),
    }
}

/// A file that the commit brings or changes.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    path: RelPath,
    executable: bool,
    id: ObjectId,
}

/// Ordinary files whose content is new, of what git says: `:MODE MODE ID ID LETTER` and a path, each
/// ended by a zero byte. Anything else is left to the importer, which reads the commit itself.
fn travelling(listed: &[u8]) -> Result<Vec<Found>, Refusal> {
    let mut words = listed.split(|byte| *byte == 0);
    let mut found = Vec::new();
    while let (Some(said), Some(path)) = (words.next(), words.next()) {
        found.extend(file(said, path));
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found.dedup_by(|a, b| a.path == b.path);
    if found.len() > MAX_FILES {
        let detail = format!("{} large files, at most {MAX_FILES}", found.len());
        return Err(ImporterCode::ChangesOverLimit.refuse(detail).into());
    }
    Ok(found)
}

fn file(said: &[u8], path: &[u8]) -> Option<Found> {
    let said = std::str::from_utf8(said).ok()?;
    let [_, mode, old, new, _] = said.split(' ').collect::<Vec<_>>()[..] else {
        return None;
    };
    let executable = match mode {
        "100644" => false,
        "100755" => true,
        _ => return None,
    };
    if old == new {
        return None;
    }
    Some(Found {
        path: RelPath::new(std::str::from_utf8(path).ok()?).ok()?,
        executable,
        id: new.parse().ok()?,
    })
}

/// A file's bytes, at most this many.
fn content(session: &mut dyn Session, id: ObjectId, most: usize) -> Result<Vec<u8>, Refusal> {
    let id = id.to_string();
    let mut content = Vec::new();
    loop {
        let (from, piece) = ((content.len() + 1).to_string(), MAX_PIECE.to_string());
        let piece = answer(
            session,
            &Script {
                text: &git_script(PIECE),
                variables: &[("ID", &id), ("FROM", &from), ("MOST", &piece)],
                arguments: &[],
                most: MAX_PIECE as u64,
            },
        )?;
        content.extend_from_slice(&piece);
        if content.len() > most {
            let largest = Arrival::LARGEST_CHANGESET;
            let detail = format!("large files of more than {largest} bytes together");
            return Err(ImporterCode::BytesOverLimit.refuse(detail).into());
        }
        if piece.len() < MAX_PIECE {
            return Ok(content);
        }
    }
}

fn answer(session: &mut dyn Session, asked: &Script<'_>) -> Result<Vec<u8>, Refusal> {
    let outcome = script(session, asked)?;
    match outcome.status {
        Status::Exited { code: 0 } if outcome.complete => Ok(outcome.stdout.0),
        status => {
            let detail = format!("its repository does not give its large files: {status:?}");
            Err(AgentCode::CaptureFailed.refuse(detail).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_files_than_a_commit_may_change_are_not_asked_for() {
        let (old, new) = ("1".repeat(40), "2".repeat(40));
        let listed: String = (0..=MAX_FILES)
            .map(|n| format!(":100644 100644 {old} {new} M\0data/{n}\0"))
            .collect();
        let refused = travelling(listed.as_bytes()).unwrap_err();
        assert_eq!(refused.code(), "importer/CHANGES_OVER_LIMIT");
    }

    #[test]
    fn only_ordinary_files_with_new_content_travel() {
        let (old, new) = ("1".repeat(40), "2".repeat(40));
        let said = |modes: &str, from: &str, to: &str, path: &str| {
            format!(":{modes} {from} {to} M\0{path}\0")
        };
        let listed = [
            said("100644 100644", &old, &new, "data/a"),
            said("000000 100755", &"0".repeat(40), &new, "data/b"),
            said("100644 100755", &old, &old, "data/mode"),
            said("100644 000000", &old, &"0".repeat(40), "data/gone"),
            said("000000 120000", &"0".repeat(40), &new, "data/link"),
            said("000000 160000", &"0".repeat(40), &new, "data/module"),
            said("100644 100644", &old, &new, "../out"),
            said("100644 100644", &old, "2222", "data/short"),
            ":100644 100644\0data/cut\0".to_owned(),
            said("100644 100644", &old, &new, ""),
            ":".to_owned(),
        ];
        let found = travelling(listed.concat().as_bytes()).unwrap();
        let path = |text: &str| RelPath::new(text).unwrap();
        let id = new.parse().unwrap();
        assert_eq!(
            found,
            [("data/a", false), ("data/b", true)].map(|(at, executable)| Found {
                path: path(at),
                executable,
                id
            })
        );
    }
}
