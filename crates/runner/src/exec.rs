//! One program run: checked, prepared, driven, cleaned up after.

use crate::calls::sweep;
use crate::code::{RunnerCode, RunnerError, inside};
use crate::pump;
use crate::scratch;
use crate::spawn::{Act, EmptyName, Entry, Image, spawn};
use crate::walls::Walls;
use flightproof_core::{Bytes, RelPath, escape};
use flightproof_frame::protocol::{AGENT_GRACE_MS, Exec, Outcome, Role, Status, layout};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Runs one program to its end. Afterwards no process of the run is left.
pub(crate) fn run(exec: &Exec, uids: &mut CaseUids) -> Result<Outcome, RunnerError> {
    check(exec)?;
    match exec.role {
        Role::Build => {
            let image = image(exec, Entry::Path(text(&exec.program)?))?;
            scratch::make_build_places()?;
            let walls = Walls::build();
            run_behind(&walls, &image, exec)
        }
        Role::Agent => {
            let image = image(exec, Entry::Path(text(&exec.program)?))?;
            scratch::make_agent_places()?;
            let walls = Walls::agent();
            run_behind(&walls, &image, exec)
        }
        Role::Case => match open_program(&exec.program) {
            Ok(program) => run_case(program, exec, uids),
            Err(error) => Ok(never_started(format!("open the program: {error}"))),
        },
    }
}

fn run_case(program: OwnedFd, exec: &Exec, uids: &mut CaseUids) -> Result<Outcome, RunnerError> {
    let uid = uids.fresh()?;
    let name = EmptyName::new().map_err(inside("draw an address"))?;
    let mut walls = Walls::case(uid, Some(name.address())).with_files(&exec.files);
    if let Some(folder) = &exec.tree {
        walls = walls.with_source(folder);
    }
    let image = image(exec, Entry::Opened(program, name))?;
    run_behind(&walls, &image, exec)
}

fn open_program(name: &str) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let path = program_place(Path::new(layout::EXE), name);
    rustix::fs::open(path, flags, Mode::empty())
}

/// Where a promoted program lies. Every one has the same file name, for that is what the kernel
/// calls its process.
pub(crate) fn program_place(exe: &Path, name: &str) -> PathBuf {
    exe.join(name).join(CASE_ARGV0)
}

fn never_started(reason: String) -> Outcome {
    Outcome {
        status: Status::LaunchFailed { reason },
        stdout: Bytes(vec![]),
        stderr: Bytes(vec![]),
        complete: true,
        armed: false,
    }
}

fn run_behind(walls: &Walls<'_>, image: &Image, exec: &Exec) -> Result<Outcome, RunnerError> {
    let (ends, wires) = pump::wires(exec.selector)?;
    let child = spawn(&ends, walls, &Act::Execute(image)).map_err(inside("clone"))?;
    drop(ends);
    let grace = match exec.role {
        Role::Agent => Some(Duration::from_millis(AGENT_GRACE_MS)),
        Role::Build | Role::Case => None,
    };
    let outcome = pump::drive(&child, wires, &exec.stdin, &exec.limits, grace);
    sweep()?;
    outcome
}

/// The uids of cases, each given once.
///
/// They are given in an order nobody can know: a case that could read from its uid how many ran
/// before it could behave in the first runs and answer at random in the later ones, which are those
/// with mutants.
pub(crate) struct CaseUids {
    left: u32,
    next: u32,
    step: u32,
}

impl CaseUids {
    /// Smaller ones belong to the runner, the build, and the system's own names for uids.
    const FIRST: u32 = 1_000;
    /// How many there are: the session's map has a million.
    const COUNT: u32 = 1_000_000 - Self::FIRST;

    /// An order of its own for each session.
    pub(crate) fn new() -> Result<Self, RunnerError> {
        let drawn = || {
            let mut entropy = [0; 4];
            match rustix::rand::getrandom(&mut entropy, rustix::rand::GetRandomFlags::empty()) {
                Ok(4) => Ok(u32::from_le_bytes(entropy)),
                other => Err(RunnerCode::Inside.refuse(format!("random bytes: {other:?}"))),
            }
        };
        Ok(Self::ordered_by(drawn()?, drawn()?))
    }

    /// Every uid comes once before the first comes again, because the step shares no factor with
    /// their number.
    fn ordered_by(start: u32, step: u32) -> Self {
        let mut step = step % Self::COUNT;
        while common_factor(step, Self::COUNT) != 1 {
            step = (step + 1) % Self::COUNT;
        }
        Self {
            left: Self::COUNT,
            next: start % Self::COUNT,
            step,
        }
    }

    pub(crate) fn fresh(&mut self) -> Result<u32, RunnerError> {
        self.left = self.left.checked_sub(1).ok_or_else(|| {
            RunnerCode::UidsExhausted.refuse(format!("{} uids were given", Self::COUNT))
        })?;
        let uid = Self::FIRST + self.next;
        self.next = (self.next + self.step) % Self::COUNT;
        Ok(uid)
    }
}

fn common_factor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { common_factor(b, a % b) }
}

/// What a case finds as its own name, so that it cannot tell programs or runs apart.
const CASE_ARGV0: &str = "program";
/// Longest argument or variable in bytes. The kernel takes 131,071; a launch must not fail there.
const MAX_ARGUMENT: usize = 128 << 10;
/// Most bytes of all arguments and variables together: half of what the kernel takes with the
/// stack limit of these walls.
const MAX_ARGUMENTS: usize = 1 << 20;
/// Most arguments and variables together.
const MAX_ARGUMENT_COUNT: usize = 4_096;
/// Longest wall clock of one run in milliseconds: one hour, the longest session there is.
const MAX_WALL_MS: u64 = 3_600_000;
/// Most bytes kept of both streams together: as base64 they and a few KiB around them travel in one
/// reply of at most 4 MiB.
const MAX_OUTPUT: u64 = (3 << 20) - (4 << 10);

fn check(exec: &Exec) -> Result<(), RunnerError> {
    check_limits(exec)?;
    check_sizes(exec)?;
    match exec.role {
        Role::Build => check_tool(exec, &TOOLS),
        Role::Agent if exec.program == layout::AGENT_PROGRAM => Ok(()),
        Role::Agent => check_tool(exec, &TOOLS),
        Role::Case => check_name(&exec.program),
    }
}

fn image(exec: &Exec, entry: Entry) -> Result<Image, RunnerError> {
    let argv0 = match exec.role {
        Role::Build | Role::Agent => exec.program.as_str(),
        Role::Case => CASE_ARGV0,
    };
    let variables = exec.env.iter().map(|(name, value)| variable(name, value));
    Ok(Image {
        entry,
        argv: std::iter::once(argv0)
            .chain(exec.args.iter().map(String::as_str))
            .map(text)
            .collect::<Result<_, _>>()?,
        env: variables.collect::<Result<_, _>>()?,
    })
}

fn bad(detail: impl std::fmt::Display) -> RunnerError {
    RunnerCode::BadExec.refuse(detail)
}

fn check_limits(exec: &Exec) -> Result<(), RunnerError> {
    let limits = &exec.limits;
    let kept = limits.stdout_bytes.saturating_add(limits.stderr_bytes);
    if !(1..=MAX_WALL_MS).contains(&limits.wall_ms) {
        return Err(bad(format!(
            "wall clock of {} ms, allowed are 1 to {MAX_WALL_MS}",
            limits.wall_ms
        )));
    }
    if kept > MAX_OUTPUT {
        return Err(bad(format!("{kept} bytes of output, at most {MAX_OUTPUT}")));
    }
    if exec.role != Role::Case && !exec.files.is_empty() {
        return Err(bad("only a case has a scratch to lay files into"));
    }
    check_folder(exec)?;
    check_tree(&exec.files)
}

/// A folder of the tree is one by its name, and only for a case: a build sees the tree anyway.
fn check_folder(exec: &Exec) -> Result<(), RunnerError> {
    let Some(folder) = &exec.tree else {
        return Ok(());
    };
    let plain = folder.is_empty() || RelPath::new(folder).is_ok();
    if plain && exec.role == Role::Case {
        Ok(())
    } else {
        Err(bad(format!("{} is no folder for it", escape(folder, 100))))
    }
}

/// No file may also be a directory.
fn check_tree(files: &BTreeMap<RelPath, Bytes>) -> Result<(), RunnerError> {
    let parents = |path: &RelPath| {
        let text = path.as_str();
        let ends = text.match_indices('/').map(|(end, _slash)| end);
        ends.filter_map(|end| RelPath::new(text.get(..end)?).ok())
            .find(|parent| files.contains_key(parent))
    };
    match files.keys().find_map(parents) {
        None => Ok(()),
        Some(both) => Err(bad(format!("{both} is both a file and a directory"))),
    }
}

fn check_sizes(exec: &Exec) -> Result<(), RunnerError> {
    let arguments = exec.args.iter().map(String::len);
    let variables = exec
        .env
        .iter()
        .map(|(name, value)| name.len() + value.len() + 1);
    let sizes: Vec<usize> = arguments.chain(variables).collect();
    if sizes.len() > MAX_ARGUMENT_COUNT {
        return Err(bad(format!(
            "{} arguments and variables, at most {MAX_ARGUMENT_COUNT}",
            sizes.len()
        )));
    }
    if let Some(long) = sizes.iter().find(|size| **size >= MAX_ARGUMENT) {
        return Err(bad(format!(
            "an argument of {long} bytes, at most {}",
            MAX_ARGUMENT - 1
        )));
    }
    let total: usize = sizes.iter().sum();
    if total > MAX_ARGUMENTS {
        return Err(bad(format!(
            "{total} bytes of arguments, at most {MAX_ARGUMENTS}"
        )));
    }
    Ok(())
}

/// Where tools lie.
const TOOLS: [&str; 3] = ["/toolchain/", "/usr/", "/bin/"];

/// A build runs tools, never what it built. An agent runs them, and the program it is.
fn check_tool(exec: &Exec, roots: &[&str]) -> Result<(), RunnerError> {
    let shown = || escape(&exec.program, 200);
    let below = exec
        .program
        .strip_prefix('/')
        .ok_or_else(|| bad(format!("{} is no absolute path", shown())))?;
    let plain = below
        .split('/')
        .all(|part| !matches!(part, "" | "." | ".."));
    let tool = roots.iter().any(|root| exec.program.starts_with(root));
    if plain && tool {
        Ok(())
    } else {
        Err(bad(format!("{} is no tool of the session", shown())))
    }
}

/// The name of a promoted program: letters, digits, `_`, `-` and `.`, not at the start a `.` or `-`.
pub(crate) fn check_name(name: &str) -> Result<(), RunnerError> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    let start = name
        .bytes()
        .next()
        .is_some_and(|b| !matches!(b, b'.' | b'-'));
    if start && name.len() <= MAX_NAME && name.bytes().all(plain) {
        Ok(())
    } else {
        Err(bad(format!(
            "{} is no name of a program",
            escape(name, 100)
        )))
    }
}

/// Longest name of a promoted program in bytes.
const MAX_NAME: usize = 100;

fn variable(name: &str, value: &str) -> Result<CString, RunnerError> {
    if name.is_empty() || name.contains('=') {
        return Err(bad(format!(
            "{} is no name of a variable",
            escape(name, 100)
        )));
    }
    text(&format!("{name}={value}"))
}

fn text(text: &str) -> Result<CString, RunnerError> {
    CString::new(text).map_err(|_nul| bad(format!("{} holds a NUL", escape(text, 100))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flightproof_frame::protocol::ExecLimits;

    fn exec(role: Role, program: &str) -> Exec {
        Exec {
            role,
            program: program.into(),
            args: vec![],
            env: BTreeMap::new(),
            stdin: Bytes(vec![]),
            files: BTreeMap::new(),
            limits: ExecLimits {
                wall_ms: 1_000,
                stdout_bytes: 10,
                stderr_bytes: 10,
            },
            selector: None,
            tree: None,
        }
    }

    fn described(exec: &Exec) -> Result<Image, RunnerError> {
        check(exec)?;
        image(exec, Entry::Path(text(&exec.program)?))
    }

    fn refused(exec: &Exec) -> bool {
        described(exec).is_err_and(|refusal| refusal.code == RunnerCode::BadExec)
    }

    #[test]
    fn a_case_is_named_and_does_not_learn_its_name() {
        let image = described(&exec(Role::Case, "prog-1.2")).unwrap();
        for name in ["prog-1.2", "other"] {
            let place = program_place(Path::new(layout::EXE), name);
            assert_eq!(place, Path::new("/exe").join(name).join("program"));
        }
        assert_eq!(image.argv[0].to_str(), Ok("program"));
        for name in [
            "", ".", "..", "../x", "a/b", "/exe/a", ".hidden", "-x", "a b", "a\0b", "é",
        ] {
            assert!(refused(&exec(Role::Case, name)), "{name:?}");
        }
        assert!(refused(&exec(Role::Case, &"a".repeat(MAX_NAME + 1))));
    }

    #[test]
    fn a_build_runs_tools_only() {
        for tool in ["/toolchain/bin/cargo", "/usr/bin/cc", "/bin/sh"] {
            assert!(described(&exec(Role::Build, tool)).is_ok(), "{tool}");
        }
        for other in [
            "cargo",
            "",
            "/",
            "/flight/target/x",
            "/toolchain/../flight/target/x",
            "/usr//bin/cc",
            "/usr/./bin/cc",
            "/runner/flights",
            "/usrx/bin/cc",
            "/exe/a",
        ] {
            assert!(refused(&exec(Role::Build, other)), "{other}");
        }
    }

    #[test]
    fn an_agent_is_its_program_or_a_tool() {
        for good in [layout::AGENT_PROGRAM, "/usr/bin/git", "/bin/sh"] {
            assert!(described(&exec(Role::Agent, good)).is_ok(), "{good}");
        }
        for bad in [
            "/flight/agent/work/x",
            "/flight/extra/program",
            "/runner/agent/x",
            "/runner/./agent",
            "/runner/flights",
            "/flight/src/x",
            "/exe/a",
            "program",
        ] {
            assert!(refused(&exec(Role::Agent, bad)), "{bad}");
        }
        assert!(refused(&exec(Role::Build, layout::AGENT_PROGRAM)));
    }

    #[test]
    fn arguments_and_variables_have_bounds_below_the_kernels() {
        let with = |args: Vec<String>| Exec {
            args,
            ..exec(Role::Case, "p")
        };
        assert!(!refused(&with(vec!["x".repeat(MAX_ARGUMENT - 1)])));
        assert!(refused(&with(vec!["x".repeat(MAX_ARGUMENT)])));
        assert!(!refused(&with(vec![String::new(); MAX_ARGUMENT_COUNT])));
        assert!(refused(&with(vec![String::new(); MAX_ARGUMENT_COUNT + 1])));
        assert!(refused(&with(vec!["x".repeat(MAX_ARGUMENT - 1); 9])));
        assert!(refused(&with(vec!["a\0b".into()])));
        let variable = |name: &str, value: &str| Exec {
            env: BTreeMap::from([(name.into(), value.into())]),
            ..exec(Role::Case, "p")
        };
        assert!(!refused(&variable("A", "b=c")));
        for (name, value) in [("", "x"), ("A=B", "x"), ("A", "x\0")] {
            assert!(refused(&variable(name, value)));
        }
    }

    #[test]
    fn limits_have_bounds() {
        let with = |wall_ms, stdout_bytes| Exec {
            limits: ExecLimits {
                wall_ms,
                stdout_bytes,
                stderr_bytes: 0,
            },
            ..exec(Role::Case, "p")
        };
        assert!(!refused(&with(1, 0)));
        assert!(!refused(&with(MAX_WALL_MS, MAX_OUTPUT)));
        for (wall, bytes) in [
            (0, 0),
            (MAX_WALL_MS + 1, 0),
            (1, MAX_OUTPUT + 1),
            (1, u64::MAX),
        ] {
            assert!(refused(&with(wall, bytes)));
        }
    }

    #[test]
    fn a_folder_of_the_tree_is_for_cases_and_does_not_lead_out_of_it() {
        let within = |role, program: &str, folder: &str| Exec {
            tree: Some(folder.to_owned()),
            ..exec(role, program)
        };
        for folder in ["", "crates/a"] {
            assert!(!refused(&within(Role::Case, "p", folder)), "{folder}");
        }
        for folder in ["..", "/etc", "a/../b", "a\0"] {
            assert!(refused(&within(Role::Case, "p", folder)), "{folder:?}");
        }
        assert!(refused(&within(Role::Build, "/usr/bin/cc", "")));
    }

    #[test]
    fn files_are_laid_for_cases_only() {
        let mut build = exec(Role::Build, "/usr/bin/cc");
        build.files.insert("a".parse().unwrap(), Bytes(vec![]));
        assert!(refused(&build));
    }

    #[test]
    fn a_file_is_not_also_a_directory() {
        let laid = |paths: &[&str]| {
            let mut case = exec(Role::Case, "p");
            for path in paths {
                case.files.insert(path.parse().unwrap(), Bytes(vec![]));
            }
            case
        };
        assert!(!refused(&laid(&["a/b/c", "a/b/d", "a-b", "b"])));
        assert!(refused(&laid(&["a", "a/b"])));
        assert!(refused(&laid(&["a/b", "a-b", "a/b/c/d"])));
    }

    #[test]
    fn every_uid_is_given_exactly_once() {
        for (start, step) in [(0, 0), (1, 37), (u32::MAX, u32::MAX), (123_456, 789_012)] {
            let mut uids = CaseUids::ordered_by(start, step);
            let mut seen = vec![false; 1_000_000];
            while let Ok(uid) = uids.fresh() {
                assert!(uid >= CaseUids::FIRST);
                assert!(
                    !std::mem::replace(&mut seen[uid as usize], true),
                    "{uid} twice"
                );
            }
            assert_eq!(seen.iter().filter(|given| **given).count(), 999_000);
            assert_eq!(uids.fresh().unwrap_err().code, RunnerCode::UidsExhausted);
        }
    }

    #[test]
    fn the_first_uid_does_not_say_that_it_is_the_first() {
        let firsts: std::collections::BTreeSet<_> = (0..16)
            .map(|_| CaseUids::new().unwrap().fresh().unwrap())
            .collect();
        assert!(firsts.len() > 1, "{firsts:?}");
    }
}
