//! What is asked first of every session, whatever it was made of: who is there, whether the walls
//! stand, and which compiler it has.

use crate::build::environment;
use crate::profile::Profile;
use crate::upload::{execute, unfit};
use crate::{Session, SessionCode, SessionError};
use flightproof_core::{escape, parse_strict};
use flightproof_evidence::Probe;
use flightproof_frame::channel::MAX_BODY_BYTES;
use flightproof_frame::protocol::acts::{FORBIDDEN, NEEDED};
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

/// Each act exactly once and no other: whoever leaves one out, or says two things of it, has not
/// shown that its wall stands.
fn denied(readings: &[ProbeReading]) -> Result<Vec<Probe>, SessionError> {
    let known = |act: &str| FORBIDDEN.contains(&act) || NEEDED.contains(&act);
    if let Some(reading) = readings.iter().find(|r| !known(&r.act)) {
        return Err(shortfall(&reading.act, "is no act of the self-test"));
    }
    let probes = FORBIDDEN.iter().map(|act| {
        let reading = once(readings, act)?;
        match reading.denied {
            true => Ok(Probe {
                act: reading.act.clone(),
                denied_by: escape(&reading.how, 60),
            }),
            false => Err(otherwise("denied", reading)),
        }
    });
    let probes = probes.collect::<Result<_, _>>()?;
    for act in NEEDED {
        let reading = once(readings, act)?;
        if reading.denied {
            return Err(otherwise("allowed", reading));
        }
    }
    Ok(probes)
}

fn once<'r>(readings: &'r [ProbeReading], act: &str) -> Result<&'r ProbeReading, SessionError> {
    let mut found = readings.iter().filter(|r| r.act == act);
    match (found.next(), found.next()) {
        (Some(reading), None) => Ok(reading),
        (None, _) => Err(shortfall(act, "was not tried")),
        (Some(_), Some(_)) => Err(shortfall(act, "has two readings")),
    }
}

fn otherwise(asked: &str, reading: &ProbeReading) -> SessionError {
    let how = escape(&reading.how, 60);
    shortfall(&reading.act, &format!("asked {asked}, found {how}"))
}

fn shortfall(act: &str, what: &str) -> SessionError {
    SessionCode::Shortfall.refuse(format_args!("probe {}: {what}", escape(act, 60)))
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

/// What is told of a session that did not come to be, once its end was tried: why it did not, or, with
/// that, what is left of it.
pub(crate) fn given_up(cause: SessionError, ended: Result<(), SessionError>) -> SessionError {
    match ended {
        Ok(()) => cause,
        Err(left) => {
            SessionCode::Leak.refuse(format_args!("{left}; what kept it from opening: {cause}"))
        }
    }
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
        let forbidden = FORBIDDEN.map(|act| reading(act, true));
        let needed = NEEDED.map(|act| reading(act, false));
        let good = [&forbidden[..], &needed].concat();
        let probes = denied(&good).unwrap();
        let acts: Vec<_> = probes.iter().map(|p| p.act.as_str()).collect();
        assert_eq!(acts, FORBIDDEN);
        assert!(probes.iter().all(|p| p.denied_by == "EPERM"));

        for (number, left_out) in good.iter().enumerate() {
            let act = &left_out.act;
            let refused = |change: &dyn Fn(&mut Vec<ProbeReading>), what: &str| {
                let mut readings = good.clone();
                change(&mut readings);
                let refused = denied(&readings).unwrap_err();
                assert_eq!(refused.code, SessionCode::Shortfall);
                let detail = format!("probe {act}: {what}");
                assert!(refused.detail.starts_with(&detail), "{refused}");
            };
            refused(&|all| drop(all.remove(number)), "was not tried");
            refused(&|all| all.push(left_out.clone()), "has two readings");
            let asked = match left_out.denied {
                true => "asked denied",
                false => "asked allowed",
            };
            refused(&|all| all[number].denied = !left_out.denied, asked);
        }
        let table = [
            (vec![], "probe connect-inet: was not tried"),
            (forbidden.to_vec(), "probe may-write-case: was not tried"),
            (
                [&good[..], &[reading("fly", true)]].concat(),
                "probe fly: is no act",
            ),
            (
                [&good[..], &[reading("may-fly", false)]].concat(),
                "probe may-fly: is no act",
            ),
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
