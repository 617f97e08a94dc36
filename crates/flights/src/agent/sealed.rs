//! What is asked of a session that an agent works in: lay out a checkout, run the program, make a
//! bundle of what it did. Everything here runs behind the agent's walls; nothing of it is believed.

use flightproof_agent::run::Event;
use flightproof_agent::{AgentCode, AgentRefusal, Ending, Launch, Output, Patience};
use flightproof_core::{Bytes, CommitId, Refusal, RelPath, escape};
use flightproof_frame::protocol::{
    Exec, ExecLimits, Outcome, Place, Reply, Request, Role, Status, layout,
};
use flightproof_importer::ImporterCode;
use flightproof_session::{Session, upload};
use std::collections::BTreeMap;

/// What the session is furnished with.
pub(super) struct Furniture {
    /// The baseline.
    pub(super) commit: CommitId,
    /// The baseline as a pack.
    pub(super) pack: Vec<u8>,
    /// The baseline as a snapshot. It stays outside.
    pub(super) archive: Vec<u8>,
    /// `Name <mail>` of the commits made there.
    pub(super) author: String,
}

/// Most bytes of standard output that leave the session. With [`MAX_STDERR`], and in base64, it stays
/// below the 4 MiB of one reply.
const MAX_STDOUT: u64 = 2 << 20;
/// Most bytes of standard error.
const MAX_STDERR: u64 = 512 << 10;
/// Most bytes of a bundle that leave the session; the importer's own limit is half of it.
const MAX_BUNDLE: u64 = 256 << 10;
/// Time for laying out a checkout, and for making a bundle, milliseconds.
const WALL_MS: u64 = 120_000;
/// Name below [`layout::EXTRA`].
const PACK: &str = "baseline.pack";

/// A repository of one commit without its history, checked out, with an author.
const LAY_OUT: &str = r#"set -e
git init --quiet --template= .
printf '%s\n' "$BASELINE" > .git/shallow
git index-pack --stdin < /flight/extra/baseline.pack > /dev/null
git update-ref refs/heads/work "$BASELINE"
git symbolic-ref HEAD refs/heads/work
git config user.name "$NAME"
git config user.email "$MAIL"
git reset --quiet --hard
"#;
/// What begins a script that asks the repository an agent left. Its hooks stay unused.
const ASK: &str = r#"set -e
quiet="git -c core.hooksPath=/dev/null -c core.fsmonitor=false -c pack.useBitmaps=false"
"#;
/// A bundle of what was committed.
const BUNDLE: &str = r#"
if [ "$($quiet rev-parse --verify --quiet HEAD)" = "$BASELINE" ]; then
    echo "no commit was made" >&2
    exit 3
fi
$quiet update-ref refs/export/head HEAD
exec $quiet bundle create --quiet --version=2 - refs/export/head "^$BASELINE"
"#;
/// The same without the new content of files at and below the paths that are its arguments.
const BUNDLE_WITHOUT: &str = r#"
head=$($quiet rev-parse --verify --quiet 'HEAD^{commit}')
if [ "$head" = "$BASELINE" ]; then
    echo "no commit was made" >&2
    exit 3
fi
$quiet --literal-pathspecs diff-tree -r --no-abbrev --no-renames "$BASELINE" "$head" -- "$@" |
    cut -d ' ' -f 4 > .git/large
printf '# v2 git bundle\n-%s\n%s refs/export/head\n\n' "$BASELINE" "$head"
$quiet rev-list --objects --no-object-names "$head" "^$BASELINE" | grep -vxFf .git/large |
    $quiet pack-objects --quiet --stdout
"#;

/// Lays out the checkout.
///
/// # Errors
/// The session's, and `SPAWN_FAILED` if git does not do it there.
pub(super) fn furnish(session: &mut dyn Session, furniture: &Furniture) -> Result<(), Refusal> {
    let name = RelPath::new(PACK).map_err(|e| AgentCode::SpawnFailed.refuse(e))?;
    let pack = (name, false, furniture.pack.as_slice());
    upload::files(session, Place::Extra, [pack])?;
    let (name, mail) = identity(&furniture.author);
    let commit = furniture.commit.to_string();
    let variables = [
        ("BASELINE", commit.as_str()),
        ("NAME", name),
        ("MAIL", mail),
    ];
    let outcome = script(
        session,
        &Script {
            text: LAY_OUT,
            variables: &variables,
            arguments: &[],
            most: MAX_BUNDLE,
        },
    )?;
    match outcome.status {
        Status::Exited { code: 0 } => Ok(()),
        status => {
            let said = escape(&*outcome.stderr, 300);
            let detail = format!("the checkout was not laid out: {status:?} {said}");
            Err(AgentCode::SpawnFailed.refuse(detail).into())
        }
    }
}

/// Runs the program to its end. The second part says what broke, where the session did.
///
/// # Errors
/// `SPAWN_FAILED`: nothing ran. A session that is lost may have run it: that is an [`Output`].
pub(super) fn start(
    session: &mut dyn Session,
    launch: &Launch,
    patience: Patience,
    tell: &mut dyn FnMut(Event) -> bool,
) -> (Result<Output, AgentRefusal>, Option<Refusal>) {
    let exec = Exec {
        role: Role::Agent,
        program: layout::AGENT_PROGRAM.to_owned(),
        args: launch.argv.clone(),
        env: launch.env.clone(),
        stdin: Bytes(launch.stdin.clone()),
        files: BTreeMap::new(),
        limits: ExecLimits {
            wall_ms: u64::try_from(patience.wall.as_millis()).unwrap_or(u64::MAX),
            stdout_bytes: MAX_STDOUT,
            stderr_bytes: MAX_STDERR,
        },
        selector: None,
        tree: None,
    };
    match session.call(&Request::Exec(exec), &[]) {
        Ok(Reply::Exec(outcome)) => (ended(outcome, tell), None),
        // The one refusal that comes before anything is started.
        Ok(Reply::Refused { code, detail }) if code == BAD_EXEC => (
            Err(AgentCode::SpawnFailed.refuse(escape(detail, 300))),
            None,
        ),
        Ok(other) => (Ok(lost()), Some(unfit(&other))),
        Err(error) => (Ok(lost()), Some(error.into())),
    }
}

/// The runner's code for a request that names nothing it would start.
const BAD_EXEC: &str = "runner/BAD_EXEC";

fn ended(outcome: Outcome, tell: &mut dyn FnMut(Event) -> bool) -> Result<Output, AgentRefusal> {
    if let Status::LaunchFailed { reason } = &outcome.status {
        return Err(AgentCode::SpawnFailed.refuse(escape(reason, 300)));
    }
    // It is over: there is nothing to stop.
    let _ = tell(Event::Started);
    let ending = match outcome.status {
        // What still held the streams is dead by now, and may have said more.
        _ if !outcome.complete && outcome.status != Status::OutputLimit => Ending::Overdue,
        Status::Exited { code } => Ending::Exited(code.into()),
        Status::Signaled { signal } => Ending::Signalled(signal.into()),
        _ => Ending::Overdue,
    };
    if outcome.status == Status::TimedOut {
        let _ = tell(Event::DeadlinePassed);
    }
    Ok(Output {
        ending,
        overflow: outcome.status == Status::OutputLimit,
        stderr_bytes: outcome.stderr.len() as u64,
        stdout: outcome.stdout.0,
    })
}

fn lost() -> Output {
    Output {
        ending: Ending::Lost,
        stdout: Vec::new(),
        stderr_bytes: 0,
        overflow: false,
    }
}

/// The agent's work as a bundle, without what is new at and below the large paths. Its bytes are the
/// agent's: nothing about them is known yet.
///
/// # Errors
/// The session's, `CAPTURE_FAILED` where there is no commit or no repository any more, and
/// `BUNDLE_OVER_LIMIT`.
pub(super) fn bundle(
    session: &mut dyn Session,
    baseline: CommitId,
    large: &[RelPath],
) -> Result<Vec<u8>, Refusal> {
    let paths: Vec<&str> = large.iter().map(RelPath::as_str).collect();
    let text = match paths.as_slice() {
        [] => BUNDLE,
        _ => BUNDLE_WITHOUT,
    };
    let outcome = script(
        session,
        &Script {
            text: &git_script(text),
            variables: &[("BASELINE", &baseline.to_string())],
            arguments: &paths,
            most: MAX_BUNDLE,
        },
    )?;
    match outcome.status {
        Status::Exited { code: 0 } if outcome.complete => Ok(outcome.stdout.0),
        Status::Exited { code: 3 } => {
            Err(AgentCode::CaptureFailed.refuse("no commit was made").into())
        }
        Status::OutputLimit => {
            let detail = format!("more than {MAX_BUNDLE} bytes, and it goes on");
            Err(ImporterCode::BundleOverLimit.refuse(detail).into())
        }
        // Whatever git printed there is the agent's to choose.
        status => {
            let detail = format!("its repository gives no bundle: {status:?}");
            Err(AgentCode::CaptureFailed.refuse(detail).into())
        }
    }
}

/// What a shell in the session is asked.
pub(super) struct Script<'a> {
    pub(super) text: &'a str,
    pub(super) variables: &'a [(&'a str, &'a str)],
    pub(super) arguments: &'a [&'a str],
    /// Most bytes of its answer.
    pub(super) most: u64,
}

/// A script that asks the repository the agent left.
pub(super) fn git_script(text: &str) -> String {
    format!("{ASK}{text}")
}

pub(super) fn script(session: &mut dyn Session, asked: &Script<'_>) -> Result<Outcome, Refusal> {
    let constant = [
        ("PATH", "/usr/bin:/bin"),
        ("HOME", "/nonexistent"),
        ("LC_ALL", "C"),
        ("TZ", "UTC"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_TERMINAL_PROMPT", "0"),
    ];
    let env = constant.iter().chain(asked.variables);
    let args = ["-c", asked.text, "sh"];
    let args = args.iter().chain(asked.arguments);
    let exec = Exec {
        role: Role::Agent,
        program: "/bin/sh".to_owned(),
        args: args.map(|word| (*word).to_owned()).collect(),
        env: env
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        stdin: Bytes(Vec::new()),
        files: BTreeMap::new(),
        limits: ExecLimits {
            wall_ms: WALL_MS,
            stdout_bytes: asked.most,
            stderr_bytes: MAX_STDERR,
        },
        selector: None,
        tree: None,
    };
    match session.call(&Request::Exec(exec), &[])? {
        Reply::Exec(outcome) => Ok(outcome),
        other => Err(unfit(&other)),
    }
}

fn unfit(reply: &Reply) -> Refusal {
    use flightproof_session::SessionCode;
    match reply {
        Reply::Refused { code, detail } => SessionCode::RunnerRefused
            .refuse(format_args!(
                "{}: {}",
                escape(code, 60),
                escape(detail, 300)
            ))
            .into(),
        _ => SessionCode::ProtocolBroken
            .refuse("the reply is of another kind than the request")
            .into(),
    }
}

/// `Name <mail>` in its two parts.
fn identity(author: &str) -> (&str, &str) {
    let (name, rest) = author.split_once(" <").unwrap_or((author, ""));
    (name, rest.trim_end_matches('>'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flightproof_core::Code as _;
    use flightproof_runner::RunnerCode;

    #[test]
    fn an_identity_is_read_in_its_two_parts() {
        assert_eq!(identity("A B <a@b.invalid>"), ("A B", "a@b.invalid"));
        assert_eq!(identity("A"), ("A", ""));
    }

    #[test]
    fn only_what_never_started_is_said_not_to_have_run() {
        assert_eq!(RunnerCode::BadExec.explanation().code, BAD_EXEC);
        let mut told = Vec::new();
        let mut outcome = Outcome {
            status: Status::LaunchFailed {
                reason: "no such file".to_owned(),
            },
            stdout: Bytes(b"{}".to_vec()),
            stderr: Bytes(Vec::new()),
            complete: true,
            armed: false,
        };
        let refused = ended(outcome.clone(), &mut |event| {
            told.push(event);
            true
        });
        assert_eq!(refused.map_err(|e| e.code), Err(AgentCode::SpawnFailed));
        assert!(told.is_empty());
        let late = [Event::Started, Event::DeadlinePassed];
        for (status, complete, ending, overflow, events) in [
            (
                Status::Exited { code: 1 },
                true,
                Ending::Exited(1),
                false,
                1,
            ),
            (Status::Exited { code: 0 }, false, Ending::Overdue, false, 1),
            (
                Status::Signaled { signal: 9 },
                true,
                Ending::Signalled(9),
                false,
                1,
            ),
            (Status::TimedOut, true, Ending::Overdue, false, 2),
            (Status::OutputLimit, false, Ending::Overdue, true, 1),
        ] {
            told.clear();
            (outcome.status, outcome.complete) = (status, complete);
            let output = ended(outcome.clone(), &mut |event| {
                told.push(event);
                true
            });
            let output = output.unwrap();
            assert_eq!((output.ending, output.overflow), (ending, overflow));
            assert_eq!(told, late[..events]);
        }
    }
}
