//! A generator, run in a session that was opened for it: it gets the files it was stated to read and
//! nothing else of the tree, so it can neither repeat what the candidate says it makes, nor change
//! what is judged.

use crate::build::environment;
use crate::observe::ending;
use crate::upload::{self, execute};
use crate::{Session, SessionCode, SessionError};
use flightproof_core::{Digest, RelPath};
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
/// Empties the one place that is left from run to run, lays the tree there, and becomes the generator.
const START: &str = "find /flight/target -mindepth 1 -delete && cp -R /flight/src \"$0\" && cd \"$0\" && exec \"$@\"";

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

fn look(
    session: &mut dyn Session,
    order: &GeneratorOrder,
) -> Result<Vec<GeneratedEntry>, SessionError> {
    let args = [WORK, "-mindepth", "1", "-printf", "%y %m %P\\0"];
    let list = whole(session, "/usr/bin/find", args.map(str::to_owned).to_vec())?;
    let mut entries = listed(&list, &order.outputs)?;
    let files: Vec<usize> = (0..entries.len())
        .filter(|at| entries[*at].file.is_some())
        .collect();
    for at_once in files.chunks(HASHED_AT_ONCE) {
        let paths = at_once.iter().map(|at| entries[*at].path.clone());
        let mut args = vec!["-z".to_owned(), "--".to_owned()];
        args.extend(paths.map(|path| format!("{WORK}/{path}")));
        let sums = whole(session, "/usr/bin/sha256sum", args)?;
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

/// What lies at and below the outputs, of lines such as `f 644 src/a.rs`.
fn listed(list: &[u8], outputs: &[RelPath]) -> Result<Vec<GeneratedEntry>, SessionError> {
    let mut entries = Vec::new();
    for line in list.split(|byte| *byte == 0).filter(|l| !l.is_empty()) {
        let text = String::from_utf8_lossy(line);
        let mut parts = text.splitn(3, ' ');
        let (Some(kind), Some(mode), Some(path)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(unreadable("a line of the list"));
        };
        let inside = |output: &RelPath| {
            let rest = path.strip_prefix(output.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        // A path above an output that is no directory hides what should lie there.
        let above = |output: &RelPath| {
            let rest = output.as_str().strip_prefix(path);
            rest.is_some_and(|rest| rest.starts_with('/'))
        };
        if kind == "d" || !outputs.iter().any(|o| inside(o) || above(o)) {
            continue;
        }
        let mode = u32::from_str_radix(mode, 8).map_err(|_| unreadable("a mode"))?;
        let plain = kind == "f" && std::str::from_utf8(line).is_ok();
        entries.push(GeneratedEntry {
            path: path.to_owned(),
            file: plain.then(|| GeneratedFile {
                executable: mode & 0o100 != 0,
                sha256: Digest::of(b""),
            }),
        });
    }
    Ok(entries)
}

/// The digests of `sha256sum -z`, in the order of its arguments.
fn summed(text: &[u8], count: usize) -> Result<Vec<Digest>, SessionError> {
    let lines = text.split(|byte| *byte == 0).filter(|l| !l.is_empty());
    let digest = |line: &[u8]| {
        let hex = std::str::from_utf8(line.get(..64)?).ok()?;
        hex.parse::<Digest>().ok()
    };
    let digests: Option<Vec<Digest>> = lines.map(digest).collect();
    let digests = digests.filter(|digests| digests.len() == count);
    digests.ok_or_else(|| unreadable("a list of digests"))
}

/// The whole output of a tool of the session that must succeed.
fn whole(
    session: &mut dyn Session,
    program: &str,
    args: Vec<String>,
) -> Result<Vec<u8>, SessionError> {
    let outcome: Outcome = execute(session, exec(program, args, LOOK_WALL_MS, MAX_LIST))?;
    match outcome.status {
        Status::Exited { code: 0 } if outcome.complete => Ok(outcome.stdout.to_vec()),
        _ => Err(unreadable(program)),
    }
}

fn unreadable(what: &str) -> SessionError {
    SessionCode::GeneratedUnreadable.refuse(what)
}

fn start(order: &GeneratorOrder) -> Exec {
    let mut args: Vec<String> = ["-c", START, WORK].map(str::to_owned).to_vec();
    args.extend(order.argv.iter().cloned());
    exec("/bin/sh", args, GENERATOR_WALL_MS, MAX_SAID)
}

fn exec(program: &str, args: Vec<String>, wall_ms: u64, stdout_bytes: u64) -> Exec {
    Exec {
        role: Role::Build,
        program: program.to_owned(),
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
        assert!(WORK.starts_with(layout::TARGET) && START.contains(layout::SOURCE));
        let order = GeneratorOrder {
            argv: vec!["/usr/bin/python3".to_owned(), "tools/x y.py".to_owned()],
            outputs: outputs(&["src/a.rs"]),
        };
        let exec = start(&order);
        assert_eq!((exec.role, exec.tree.as_deref()), (Role::Build, None));
        assert_eq!(exec.args[2..], [WORK, "/usr/bin/python3", "tools/x y.py"]);
        assert!(exec.args[1].starts_with("find /flight/target -mindepth 1 -delete"));
    }

    #[test]
    fn what_is_no_file_is_said_to_be_none_and_what_lies_elsewhere_is_left_out() {
        let list = b"d 755 src\0f 644 src/gen/a.rs\0l 777 src/gen/b.rs\0f 755 src/gen/c d.rs\0f 644 src/genx\0f 644 in.txt\0";
        let found = listed(list, &outputs(&["src/gen"])).unwrap();
        let shown: Vec<_> = found
            .iter()
            .map(|e| (e.path.as_str(), e.file.as_ref().map(|f| f.executable)))
            .collect();
        assert_eq!(
            shown,
            [
                ("src/gen/a.rs", Some(false)),
                ("src/gen/b.rs", None),
                ("src/gen/c d.rs", Some(true))
            ]
        );
        // A link above the output, and a name that is no text.
        let above = listed(b"l 777 src\0", &outputs(&["src/gen"])).unwrap();
        assert_eq!((above[0].path.as_str(), &above[0].file), ("src", &None));
        let odd = listed(b"f 644 src/gen/\xff\0", &outputs(&["src/gen"])).unwrap();
        assert_eq!(odd[0].file, None);
    }

    #[test]
    fn a_list_of_digests_has_one_for_each_file() {
        let line = format!("{}  /flight/target/work/a\0", Digest::of(b"x"));
        assert_eq!(summed(line.as_bytes(), 1).unwrap(), [Digest::of(b"x")]);
        for (text, count) in [(line.as_str(), 2), ("", 1), ("short\0", 1)] {
            let refused = summed(text.as_bytes(), count).unwrap_err();
            assert_eq!(refused.code, SessionCode::GeneratedUnreadable);
        }
    }
}
