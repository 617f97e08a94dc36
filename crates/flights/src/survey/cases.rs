//! The cases of a witness on a program in another language than Rust: which of them fail, and which
//! waver. There are no mutants here: each would be a build of its own, and `certify` makes those of a change.

use super::{LeftOut, Teeth, pack};
use crate::flight::{Host, WorkDirectory, has_program};
use crate::show::Progress;
use crate::state;
use flightproof_archive::paws;
use flightproof_certifier::certification::CASE_WALL_MS;
use flightproof_certifier::witness::{Case, Witness};
use flightproof_certifier::{feedback, judge};
use flightproof_core::Refusal;
use flightproof_evidence::{BuildOrder, CaseRun, Closed, Guard};
use flightproof_session::profile::{Profile, ProfileWorkshop};
use flightproof_session::{Session, SessionCode, observe};
use std::collections::BTreeMap;
use std::path::Path;

/// Longest life of the session, milliseconds: an hour, for a thousand cases that are slow.
const LIFETIME_MS: u64 = 60 * 60 * 1000;
/// Longest build, milliseconds: as in a flight.
const BUILD_WALL_MS: u64 = 15 * 60 * 1000;
/// How often each case is run.
const RUNS: usize = 3;
/// What the program is called in the session.
const PROGRAM: &str = "survey";

/// What each case comes to on a tree.
///
/// # Errors
/// `PROFILE_UNKNOWN`, `DEPENDENCY_UNSUPPORTED`, `TARGET_MISSING`, `BUILD_FAILED`; those of reading the tree
/// and of the session.
pub fn cases_alone(
    host: &Host,
    repo: &Path,
    (witness, language): (&Witness, &str),
    progress: &mut Progress,
) -> Result<Teeth, Refusal> {
    progress.begin("read");
    let work = WorkDirectory::new(&state::directory()?)?;
    let (archive, _) = pack(repo, work.path())?;
    let profile = Profile::named(language)?;
    let unpacked = paws::read(&archive)?;
    let paths: Vec<_> = unpacked.files().map(|(entry, _)| &entry.path).collect();
    profile.check(paths.iter().copied())?;
    has_program(&profile, witness, paths.iter().copied())?;
    progress.done(format_args!("{} files", paths.len()));
    progress.begin("open");
    let mut session = host.open_for(&state::entropy()?, LIFETIME_MS)?;
    progress.done("sealed local session");
    let tried = tried(session.as_mut(), (profile, &archive), witness, progress);
    let closed = session.close()?;
    let tried = tried?;
    match closed.is_clean() {
        true => Ok(tried),
        false => Err(left(&closed)),
    }
}

fn left(closed: &Closed) -> Refusal {
    SessionCode::Leak.refuse(format_args!("{closed:?}")).into()
}

fn tried(
    session: &mut dyn Session,
    (profile, archive): (Profile, &[u8]),
    witness: &Witness,
    progress: &mut Progress,
) -> Result<Teeth, Refusal> {
    progress.begin("build");
    let mut shop = ProfileWorkshop::furnish(session, profile, archive, BUILD_WALL_MS)?;
    let order = BuildOrder {
        program: PROGRAM.to_owned(),
        target: witness.target()?,
        overlay: BTreeMap::new(),
        // Only Rust has one.
        guard: Guard {
            name: String::new(),
            source: String::new(),
        },
        optimized: false,
    };
    judge::built(shop.build(session, &order)?, &[])?;
    progress.done("compiled offline");
    progress.begin("cases");
    let (mut missed, mut flaky) = (Vec::new(), Vec::new());
    for case in witness.cases() {
        let run = run_of(case);
        let first = observe::run(session, &run)?;
        if judge::judge_case(case, &first).is_err() {
            missed.push(LeftOut {
                target: String::new(),
                name: case.id.clone(),
                why: feedback::to_owner(case, &first),
            });
        }
        for _ in 1..RUNS {
            let again = observe::run(session, &run)?;
            if judge::determinism(std::slice::from_ref(&first), &[again]).is_err() {
                flaky.push(case.id.clone());
                break;
            }
        }
    }
    let all = witness.cases().len();
    progress.done(format_args!(
        "{} of {all} answered as expected",
        all - missed.len()
    ));
    Ok(Teeth {
        missed,
        flaky,
        mutants: 0,
        tried: 0,
        cases: Vec::new(),
        proposals: Vec::new(),
        unjudged: Vec::new(),
    })
}

fn run_of(case: &Case) -> CaseRun {
    CaseRun {
        program: PROGRAM.to_owned(),
        args: case.args.clone(),
        stdin: case.stdin.clone(),
        files: case.files.clone(),
        env: case.env.clone(),
        selector: None,
        wall_ms: CASE_WALL_MS,
        tree: None,
    }
}
