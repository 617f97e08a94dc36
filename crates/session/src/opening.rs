//! What is asked first of every session, whatever it was made of: who is there, whether the walls
//! stand, and which compiler it has.

use crate::build::environment;
use crate::profile::Profile;
use crate::upload::{execute, unfit};
use crate::{Session, SessionCode, SessionError};
use flightproof_core::{escape, parse_strict};
use flightproof_evidence::Probe;
use flightproof_frame::channel::MAX_BODY_BYTES;
use flightproof_frame::protocol::{
    Exec, ExecLimits, Hello, Outcome, PROTOCOL, ProbeReading, Reply, Request, Role, Status,
};
use std::collections::BTreeMap;

/// Wall clock for the compiler to say its version, milliseconds.
const VERSION_WALL_MS: u64 = 30_000;
/// Most bytes of that.
const VERSION_BYTES: u64 = 16 << 10;
/// Whether the runner's greeting is the one of a session.
pub(crate) fn check_hello(body: &[u8]) -> Result<(), SessionError> {
    let hello: Hello = parse_strict(body, MAX_BODY_BYTES)
        .map_err(|e| SessionCode::ProtocolBroken.refuse(format_args!("greeting: {e}")))?;
    if hello.protocol != PROTOCOL || hello.pid != 1 {
        return Err(SessionCode::ProtocolBroken.refuse(format_args!(
            "greeting: got {} as process {}, expected {PROTOCOL} as process 1",
            escape(&hello.protocol, 60),
            hello.pid
        )));
    }
    if hello.landlock_abi == 0 {
        return Err(SessionCode::Shortfall.refuse("landlock: the kernel has none"));
    }
    Ok(())
}

/// Tries every forbidden act from a case's place. One that is not denied is a shortfall.
pub(crate) fn probe(session: &mut dyn Session) -> Result<Vec<Probe>, SessionError> {
    match session.call(&Request::Probe, &[])? {
        Reply::Probe { readings } => denied(&readings),
        other => Err(unfit(&other)),
    }
}

/// Acts of every kind must have been tried: network, the runner itself, privilege, the kernel.
const MUST_TRY: [&str; 5] = [
    "connect-inet",
    "read-runner",
    "ptrace-init",
    "become-root",
    "user-namespace",
];
/// Acts that a case may do begin so: walls that refuse everything prove nothing.
const MAY: &str = "may-";

fn denied(readings: &[ProbeReading]) -> Result<Vec<Probe>, SessionError> {
    let tried = |act: &&str| readings.iter().any(|r| r.act == *act);
    if let Some(act) = MUST_TRY.iter().find(|act| !tried(act)) {
        return Err(SessionCode::Shortfall.refuse(format_args!("probe {act}: was not tried")));
    }
    let wrong = |r: &&ProbeReading| r.denied == r.act.starts_with(MAY);
    if let Some(reading) = readings.iter().find(wrong) {
        let asked = if reading.denied { "allowed" } else { "denied" };
        return Err(SessionCode::Shortfall.refuse(format_args!(
            "probe {}: asked {asked}, found {}",
            escape(&reading.act, 60),
            escape(&reading.how, 60)
        )));
    }
    let probes = readings.iter().filter(|r| r.denied).map(|r| Probe {
        act: escape(&r.act, 60),
        denied_by: escape(&r.how, 60),
    });
    Ok(probes.collect())
}

/// What the session's own compiler says of itself, `rustc -vV`: the first line, and what it compiles for.
pub(crate) fn compiler(session: &mut dyn Session) -> Result<(String, String), SessionError> {
    let profile = Profile::named("rust")?;
    let (compiler, args) = profile.question();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = tool(session, &compiler, &args)?;
    match &outcome.status {
        Status::Exited { code: 0 } => {
            Ok((profile.version(&outcome.stdout)?, target(&outcome.stdout)?))
        }
        status => Err(SessionCode::ToolchainInvalid.refuse(format_args!(
            "the compiler does not say its version inside the session: {status:?} {}",
            escape(&*outcome.stderr, 200)
        ))),
    }
}

/// The line of a compiler that names its target, for which it builds unless it is told otherwise.
fn target(said: &[u8]) -> Result<String, SessionError> {
    let text = String::from_utf8_lossy(said);
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"_-.".contains(&b);
    let named = text.lines().find_map(|line| line.strip_prefix("host: "));
    match named.filter(|name| (1..=80).contains(&name.len()) && name.bytes().all(plain)) {
        Some(name) => Ok(name.to_owned()),
        None => Err(SessionCode::ToolchainInvalid
            .refuse("the compiler does not say what it compiles for inside the session")),
    }
}

/// Runs one of the session's own tools.
pub(crate) fn tool(
    session: &mut dyn Session,
    program: &str,
    args: &[&str],
) -> Result<Outcome, SessionError> {
    let exec = Exec {
        role: Role::Build,
        program: program.to_owned(),
        args: args.iter().map(|a| (*a).to_owned()).collect(),
        env: environment(),
        stdin: Vec::new().into(),
        files: BTreeMap::new(),
        limits: ExecLimits {
            wall_ms: VERSION_WALL_MS,
            stdout_bytes: VERSION_BYTES,
            stderr_bytes: VERSION_BYTES,
        },
        selector: None,
        tree: None,
    };
    execute(session, exec)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(act: &str, denied: bool) -> ProbeReading {
        ProbeReading {
            act: act.to_owned(),
            denied,
            how: "EPERM".to_owned(),
        }
    }

    #[test]
    fn every_wall_must_be_tried_and_stand_and_have_its_door() {
        let good: Vec<_> = MUST_TRY
            .map(|act| reading(act, true))
            .into_iter()
            .chain([reading("may-write-case", false)])
            .collect();
        let probes = denied(&good).unwrap();
        assert_eq!(probes.len(), MUST_TRY.len());
        assert_eq!(probes[0].denied_by, "EPERM");

        let mut untried = good.clone();
        untried.remove(2);
        let mut reached = good.clone();
        reached.push(reading("mount-tmpfs", false));
        let mut walled_in = good.clone();
        walled_in.push(reading("may-start-thread", true));
        let table = [
            (vec![], "probe connect-inet: was not tried"),
            (untried, "probe ptrace-init: was not tried"),
            (reached, "probe mount-tmpfs: asked denied"),
            (walled_in, "probe may-start-thread: asked allowed"),
        ];
        for (readings, detail) in table {
            let refused = denied(&readings).unwrap_err();
            assert_eq!(refused.code, SessionCode::Shortfall);
            assert!(refused.detail.starts_with(detail), "{refused}");
        }
    }

    #[test]
    fn a_compiler_says_what_it_compiles_for() {
        let said =
            "rustc 1.95.0 (59807616e 2026-04-14)\nbinary: rustc\nhost: x86_64-unknown-linux-gnu\n";
        assert_eq!(target(said.as_bytes()).unwrap(), "x86_64-unknown-linux-gnu");
        for bad in [
            "",
            "rustc 1.95.0",
            "host: ",
            "host: x y",
            " host: x",
            "host: \u{1b}[31m",
        ] {
            let refused = target(bad.as_bytes()).unwrap_err();
            assert_eq!(refused.code, SessionCode::ToolchainInvalid, "{bad}");
        }
    }

    #[test]
    fn a_greeting_is_exact() {
        let hello = |protocol: &str, pid: u32, landlock_abi: u32| {
            let hello = Hello {
                protocol: protocol.to_owned(),
                pid,
                landlock_abi,
            };
            check_hello(&serde_json::to_vec(&hello).unwrap())
        };
        assert_eq!(hello(PROTOCOL, 1, 7), Ok(()));
        let code = |r: Result<(), SessionError>| r.unwrap_err().code;
        assert_eq!(
            code(hello("flightproof/runner/2", 1, 7)),
            SessionCode::ProtocolBroken
        );
        assert_eq!(code(hello(PROTOCOL, 2, 7)), SessionCode::ProtocolBroken);
        assert_eq!(code(hello(PROTOCOL, 1, 0)), SessionCode::Shortfall);
        assert_eq!(code(check_hello(b"{}")), SessionCode::ProtocolBroken);
    }
}
