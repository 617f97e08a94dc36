//! Lands the commit of a bundle and says how it ended, in one thread: what `tests/sweep.rs` kills and
//! fails at every call.

use flightproof_core::{Digest, Refusal};
use flightproof_evidence::Closed;
use flightproof_importer::{
    Arrival, Clearance, Git, Grants, Host, Parcel, Rules, admit, check_bundle, recover_repository,
};
use flightproof_ledger::Ledger;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [what, top, git, bundle, baseline, state, scratch] = arguments.as_slice() else {
        eprintln!("land|recover TOP GIT BUNDLE BASELINE STATE SCRATCH");
        return ExitCode::from(2);
    };
    let place = Place {
        top: Path::new(top),
        git: Path::new(git),
        bundle: Path::new(bundle),
        baseline,
        state: Path::new(state),
        scratch: Path::new(scratch),
    };
    let done = match what.as_str() {
        "recover" => place.recover(),
        _ => place.land(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(refused) => {
            println!("{}", refused.code());
            ExitCode::from(10)
        }
    }
}

struct Place<'a> {
    top: &'a Path,
    git: &'a Path,
    bundle: &'a Path,
    baseline: &'a str,
    state: &'a Path,
    scratch: &'a Path,
}

const CLEAN: Closed = Closed {
    processes: 0,
    cgroups: 0,
    mounts: 0,
    directories: 0,
};
const NOW: u64 = 1_700_000_100;

impl Place<'_> {
    fn land(&self) -> Result<(), Refusal> {
        let git = Git::at(self.git)?;
        let host = Host::open(&git, self.top)?;
        let bundle = std::fs::read(self.bundle).unwrap_or_default();
        let arrival = Arrival {
            parcel: Parcel::bundle(&bundle),
            baseline: self.baseline,
            rules: Rules {
                grants: &Grants::default(),
                identity: None,
                now: std::time::UNIX_EPOCH.elapsed().map_or(NOW, |d| d.as_secs()),
            },
            scratch: self.scratch,
        };
        let checked = check_bundle(&git, &host, &arrival)?;
        let certificate = Digest::of(b"certificate");
        let clearance = Clearance::of_bundle(&CLEAN, certificate, &checked, "main")?;
        let mut ledger = Ledger::open(self.state)?;
        admit(&git, &host, &mut ledger, &clearance, NOW).map(|_| ())
    }

    fn recover(&self) -> Result<(), Refusal> {
        let git = Git::at(self.git)?;
        let host = Host::open(&git, self.top)?;
        let mut ledger = Ledger::open(self.state)?;
        recover_repository(&git, &host, &mut ledger, NOW).map(|_| ())
    }
}
