//! A generator, run in a session that was opened for it: it gets the files it was stated to read and
//! nothing else of the tree, so it can neither repeat what the candidate says it makes, nor change
//! what is judged.

use crate::build::environment;
use crate::observe::ending;
use crate::upload::{self, execute};
use crate::{Session, SessionCode, SessionError};
use flightproof_core::{Digest, RelPath, escape};
use flightproof_evidence::{Ending, Generated, GeneratedEntry, GeneratedFile, GeneratorOrder};
use flightproof_frame::protocol::{Exec, ExecLimits, Outcome, Place, Role, Status};
use std::collections::BTreeMap;

/// Longest run of a generator, milliseconds.
pub const GENERATOR_WALL_MS: u64 = 5 * 60 * 1000;
/// Longest time to list or hash what it left, milliseconds.
const LOOK_WALL_MS: u64 = 60_000;
/// Most bytes of a list: some ten thousand paths.
const MAX_LIST: u64 = 2 << 20;
/// Most bytes of what it prints, on each stream.
const MAX_SAID: u64 = 256 << 10;
/// Last bytes of standard error that are handed on.
const MAX_TAIL: usize = 4096;
/// Files hashed by one process: their names stay far below what arguments may hold.
const HASHED_AT_ONCE: usize = 500;
/// Where it runs: made anew for each run.
const WORK: &str = "/flight/target/work";
/// Empties the one place that is left from run to run, lays the tree there, and looks whether the
/// session has the tool that is the generator. As all scripts here it is for any shell, and for tools
/// as small as those of an image may be.
const PREPARE: &str = r#"chmod -R u+rwx /flight/target
rm -rf /flight/target/* /flight/target/.[!.]* /flight/target/..?* && cp -R /flight/src "$0" || exit 1
case $1 in /*) [ -x "$1" ] || { echo "$1 is not in the session" >&2; exit 1; } ;; esac"#;
/// Becomes the generator.
const START: &str = r#"cd "$0" && exec "$@""#;
/// Says which files there are that their owner may execute, which others, and what is no file.
const LISTS: [(&str, Kind); 3] = [
    (
        r#"cd "$0" && find . -mindepth 1 -type f -perm -100 -print0"#,
        Kind::File { executable: true },
    ),
    (
        r#"cd "$0" && find . -mindepth 1 -type f ! -perm -100 -print0"#,
        Kind::File { executable: false },
    ),
    (
        r#"cd "$0" && find . -mindepth 1 ! -type f ! -type d -print0"#,
        Kind::Other,
    ),
];
/// Says the digest of each file by itself: no name is part of what it says.
const HASH: &str = r#"for file; do sha256sum <"$file" || exit 1; done"#;

/// Uploads the files that generators may read: the whole tree of this session.
///
/// # Errors
/// As [`upload::archive`].
pub fn furnish<B: AsRef<[u8]>>(
    session: &mut dyn Session,
    files: impl IntoIterator<Item = (RelPath, bool, B)>,
) -> Result<(), SessionError> {
    upload::files(session, Place::Source, files)
}

/// Runs a generator once, on those files as they were uploaded, and says what it left.
///
/// # Errors
/// What the session refuses. A generator that fails or hits a limit is an answer, not an error.
pub fn run(session: &mut dyn Session, order: &GeneratorOrder) -> Result<Generated, SessionError> {
    prepare(session, order)?;
    let outcome = execute(session, start(order))?;
    let events = session.events()?;
    let ended = ending(&outcome.status, events)?;
    let from = outcome.stderr.len().saturating_sub(MAX_TAIL);
    let tail = outcome.stderr.get(from..).unwrap_or_default().into();
    let entries = match ended {
        Ending::Exited { code: 0 } => look(session, order)?,
        _ => Vec::new(),
    };
    Ok(Generated {
        ending: ended,
        tail,
        entries,
    })
}

/// A place that cannot be made, or a tool that is not there, is no end of a generator.
fn prepare(session: &mut dyn Session, order: &GeneratorOrder) -> Result<(), SessionError> {
    let program = order.argv.first().cloned().unwrap_or_default();
    let outcome = execute(
        session,
        script(PREPARE, vec![program], LOOK_WALL_MS, MAX_SAID),
    )?;
    match outcome.status {
        Status::Exited { code: 0 } => Ok(()),
        status => Err(SessionCode::LaunchFailed.refuse(format_args!(
            "the generator's place: {status:?} {}",
            escape(&*outcome.stderr, 300)
        ))),
    }
}

/// What lies in the generator's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    File { executable: bool },
    Other,
}

fn look(
    session: &mut dyn Session,
    order: &GeneratorOrder,
) -> Result<Vec<GeneratedEntry>, SessionError> {
    let mut entries = Vec::new();
    for (find, kind) in LISTS {
        let list = whole(session, script(find, vec![], LOOK_WALL_MS, MAX_LIST))?;
        entries.extend(listed(&list, kind, &order.outputs));
    }
    let files: Vec<usize> = (0..entries.len())
        .filter(|at| entries[*at].file.is_some())
        .collect();
    for at_once in files.chunks(HASHED_AT_ONCE) {
        let paths = at_once.iter().map(|at| &entries[*at].path);
        let paths = paths.map(|path| format!("{WORK}/{path}")).collect();
        let sums = whole(session, script(HASH, paths, LOOK_WALL_MS, MAX_LIST))?;
        let sums = summed(&sums, at_once.len())?;
        for (at, sha256) in at_once.iter().zip(sums) {
            if let Some(file) = &mut entries[*at].file {
                file.sha256 = sha256;
            }
        }
    }
    entries.sort();
    Ok(entries)
}

/// What lies at and below the outputs, of paths such as `./src/a.rs`.
fn listed(list: &[u8], kind: Kind, outputs: &[RelPath]) -> Vec<GeneratedEntry> {
    let lines = list.split(|byte| *byte == 0).filter(|l| !l.is_empty());
    let entries = lines.filter_map(|line| {
        let text = String::from_utf8_lossy(line);
        let path = text.strip_prefix("./").unwrap_or(&text);
        let inside = |output: &RelPath| {
            let rest = path.strip_prefix(output.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        // A path above an output that is no directory hides what should lie there.
        let above = |output: &RelPath| {
            let rest = output.as_str().strip_prefix(path);
            rest.is_some_and(|rest| rest.starts_with('/'))
        };
        if !outputs.iter().any(|o| inside(o) || above(o)) {
            return None;
        }
        let is_text = std::str::from_utf8(line).is_ok();
        let file = match kind {
            Kind::File { executable } if is_text => Some(GeneratedFile {
                executable,
                sha256: Digest::of(b""),
            }),
            _ => None,
        };
        let path = path.to_owned();
        Some(GeneratedEntry { path, file })
    });
    entries.collect()
}

/// The digests at the beginning of each line.
fn summed(text: &[u8], count: usize) -> Result<Vec<Digest>, SessionError> {
    let lines = text.split(|byte| *byte == b'\n').filter(|l| !l.is_empty());
    let digest = |line: &[u8]| {
        let hex = std::str::from_utf8(line.get(..64)?).ok()?;
        hex.parse::<Digest>().ok()
    };
    let digests: Option<Vec<Digest>> = lines.map(digest).collect();
    let digests = digests.filter(|digests| digests.len() == count);
    digests.ok_or_else(|| unreadable("a list of digests"))
}

/// The whole output of a script that must succeed.
fn whole(session: &mut dyn Session, script: Exec) -> Result<Vec<u8>, SessionError> {
    let outcome: Outcome = execute(session, script)?;
    match outcome.status {
        Status::Exited { code: 0 } if outcome.complete => Ok(outcome.stdout.to_vec()),
        status => Err(unreadable(format_args!(
            "{status:?} {}",
            escape(&*outcome.stderr, 300)
        ))),
    }
}

fn unreadable(what: impl std::fmt::Display) -> SessionError {
    SessionCode::GeneratedUnreadable.refuse(what)
}

fn start(order: &GeneratorOrder) -> Exec {
    script(START, order.argv.clone(), GENERATOR_WALL_MS, MAX_SAID)
}

/// A script of the session's shell, which finds the generator's place as `$0`.
fn script(text: &str, arguments: Vec<String>, wall_ms: u64, stdout_bytes: u64) -> Exec {
    let mut args: Vec<String> = ["-c", text, WORK].map(str::to_owned).to_vec();
    args.extend(arguments);
    Exec {
        role: Role::Build,
        program: "/bin/sh".to_owned(),
        args,
        env: environment(),
        stdin: Vec::new().into(),
        files: BTreeMap::new(),
        limits: ExecLimits {
            wall_ms,
            stdout_bytes,
            stderr_bytes: MAX_SAID,
        },
        selector: None,
        tree: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flightproof_frame::protocol::layout;

    fn outputs(paths: &[&str]) -> Vec<RelPath> {
        paths.iter().map(|path| path.parse().unwrap()).collect()
    }

    #[test]
    fn a_generator_runs_where_nothing_of_an_earlier_run_is_left_and_in_the_builds_walls() {
        assert!(WORK.starts_with(layout::TARGET) && PREPARE.contains(layout::SOURCE));
        let order = GeneratorOrder {
            argv: vec!["/usr/bin/python3".to_owned(), "tools/x y.py".to_owned()],
            outputs: outputs(&["src/a.rs"]),
        };
        let exec = start(&order);
        assert_eq!((exec.role, exec.tree.as_deref()), (Role::Build, None));
        assert_eq!(exec.args[2..], [WORK, "/usr/bin/python3", "tools/x y.py"]);
        assert!(PREPARE.contains(&format!("rm -rf {0}/* {0}/.", layout::TARGET)));
    }

    #[test]
    fn what_is_no_file_is_said_to_be_none_and_what_lies_elsewhere_is_left_out() {
        let of = |list: &[u8], kind| {
            let found = listed(list, kind, &outputs(&["src/gen"])).into_iter();
            let shown = found.map(|e| (e.path, e.file.map(|file| file.executable)));
            shown.collect::<Vec<_>>()
        };
        let path = |path: &str| path.to_owned();
        let file = |executable| Kind::File { executable };
        assert_eq!(
            of(b"./src/gen/a.rs\0./src/genx\0./in.txt\0", file(false)),
            [(path("src/gen/a.rs"), Some(false))]
        );
        assert_eq!(
            of(b"./src/gen/c d\n.rs\0", file(true)),
            [(path("src/gen/c d\n.rs"), Some(true))]
        );
        // A link in its place, a link above it, and a name that is no text.
        assert_eq!(
            of(b"./src/gen/b.rs\0./src\0./sr\0", Kind::Other),
            [(path("src/gen/b.rs"), None), (path("src"), None)]
        );
        let odd = of(b"./src/gen/\xff\0", file(false));
        assert_eq!(odd, [(path("src/gen/\u{fffd}"), None)]);
    }

    #[test]
    fn a_list_of_digests_has_one_for_each_file() {
        let line = format!("{}  -\n", Digest::of(b"x"));
        assert_eq!(summed(line.as_bytes(), 1).unwrap(), [Digest::of(b"x")]);
        for (text, count) in [(line.as_str(), 2), ("", 1), ("short\n", 1)] {
            let refused = summed(text.as_bytes(), count).unwrap_err();
            assert_eq!(refused.code, SessionCode::GeneratedUnreadable);
        }
    }
}
