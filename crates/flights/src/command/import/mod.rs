//! `flights import`: the one commit of a bundle comes home.

mod vouch;

use super::bundle::{Desk, Line, Luggage, RuleArgs};
use super::key;
use crate::show::{self, Format};
use crate::{flight, log, state};
use clap::{Args, Subcommand};
use flightproof_certifier::ssh;
use flightproof_core::{CommitId, Digest, Exit, Refusal, Verdict};
use flightproof_importer::{
    self as importer, Admitted, Arrival, Checked, Clearance, Outcome, Recovered, Rules,
    check_bundle,
};
use flightproof_ledger::{Lease, Ledger, LedgerCode, Name};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use vouch::VoucherArgs;

/// How long somebody else must wait for the lease of an import that died, seconds. An import takes
/// well under one; one that takes longer than this and is overtaken takes everything back.
const LEASE_SECONDS: u64 = 5;
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(50);

/// `flights import`.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(super) struct ImportArgs {
    #[command(subcommand)]
    command: Option<ImportCommand>,
    /// The bundle.
    #[arg(required = true)]
    file: Option<PathBuf>,
    /// Directory of the repository: its working tree if it is on the branch, else any of it.
    #[arg(long, value_name = "DIR", required = true)]
    repo: Option<PathBuf>,
    /// Commit the branch is at and the change is based on.
    #[arg(long, value_name = "REV", required = true)]
    baseline: Option<String>,
    /// The branch that moves.
    #[arg(long, value_name = "NAME", required = true)]
    branch: Option<String>,
    /// The changeset with the commit's large files.
    #[arg(long, value_name = "FILE", requires = "large")]
    changeset: Option<PathBuf>,
    /// Sign the commit with this key: a PKCS#8 PEM file, or agent:NAME for a key in the SSH agent. It
    /// lands under another id, with the signature as its only difference; the receipt names both.
    #[arg(long, value_name = "FILE|agent:NAME")]
    sign: Option<PathBuf>,
    /// File whose first line is the signing key's passphrase; /dev/fd/N for a descriptor. Default:
    /// FLIGHTPROOF_PASSPHRASE_FILE, else the terminal.
    #[arg(long, value_name = "FILE", requires = "sign")]
    passphrase_file: Option<PathBuf>,
    #[command(flatten)]
    voucher: VoucherArgs,
    #[command(flatten)]
    rules: RuleArgs,
}

/// `flights import recover`.
#[derive(Subcommand)]
pub(super) enum ImportCommand {
    /// Judge imports that were cut off: finish them, or take them back. Twice does nothing more.
    Recover {
        /// Directory of the repository.
        #[arg(long, value_name = "DIR")]
        repo: PathBuf,
    },
}

impl ImportArgs {
    pub(super) fn stage(&self) -> &'static str {
        match self.command {
            Some(ImportCommand::Recover { .. }) => "recover",
            None => "import",
        }
    }
}

/// Lands a commit, or judges imports that were cut off.
///
/// # Errors
/// The importer's, the verifier's and the ledger's refusals, and those of files.
pub(super) fn run(args: &ImportArgs, format: Format) -> Result<Exit, Refusal> {
    if let Some(ImportCommand::Recover { repo }) = &args.command {
        return recover(repo, format);
    }
    // Without a subcommand the command line asks for each of them.
    let given = (&args.file, &args.repo, &args.baseline, &args.branch);
    let (Some(file), Some(repo), Some(baseline), Some(branch)) = given else {
        return Ok(Exit::Usage);
    };
    let order = Order {
        files: (file, args.changeset.as_deref()),
        repo,
        baseline,
        branch,
        sign: args.sign.as_deref(),
        passphrase_file: args.passphrase_file.as_deref(),
        voucher: &args.voucher,
        rules: &args.rules,
    };
    import(&order, format)
}

/// What is asked for.
struct Order<'a> {
    /// The bundle, and the changeset with its large files.
    files: (&'a Path, Option<&'a Path>),
    repo: &'a Path,
    baseline: &'a str,
    branch: &'a str,
    /// The key to sign the commit with, and the file of its passphrase.
    sign: Option<&'a Path>,
    passphrase_file: Option<&'a Path>,
    voucher: &'a VoucherArgs,
    rules: &'a RuleArgs,
}

/// Lands the commit. Refusals are in the log.
fn import(args: &Order<'_>, format: Format) -> Result<Exit, Refusal> {
    let mut asked = "no bundle".to_owned();
    match land(args, &mut asked) {
        Ok(report) => report.print(format),
        Err(refusal) => {
            let name = args.voucher.repository(args.repo);
            return Err(log::refused("import", refusal, &name, &asked));
        }
    }
    Ok(Exit::Passed)
}

/// `asked` becomes what the log names: the bundle by its digest, as long as nobody has looked into it, and then
/// the commit.
fn land(args: &Order<'_>, asked: &mut String) -> Result<Report, Refusal> {
    let luggage = Luggage::read(args.files)?;
    *asked = format!("bundle {}", Digest::of(luggage.parcel().bundle));
    let desk = Desk::open(args.repo)?;
    let mut ledger = ledger()?;
    let now = state::unix_seconds();
    let left = importer::recover_repository(&desk.git, &desk.host, &mut ledger, now)?;
    show::recovered(&left.iter().map(flight::settled).collect::<Vec<_>>());
    let grants = match args.voucher.vouches() {
        true => args.rules.grants(),
        false => args.rules.grants_unjudged(),
    };
    let arrival = Arrival {
        parcel: luggage.parcel(),
        baseline: args.baseline,
        rules: Rules {
            grants: &grants,
            identity: args.rules.identity.as_deref(),
            now,
        },
        scratch: desk.work.path(),
    };
    let checked = check_bundle(&desk.git, &desk.host, &arrival)?;
    *asked = checked.head().to_string();
    let clearance = signed(args, vouch::clear(args, &desk, &checked)?, &checked)?;
    let lease = take_lease(&mut ledger, &desk, args.branch)?;
    let clearance = clearance.under(lease.clone());
    let admitted = importer::admit(&desk.git, &desk.host, &mut ledger, &clearance, now);
    // A lease that somebody else has by now is not ours to give back.
    let _ = ledger.release_lease(&lease);
    let admitted = admitted?;
    let mut report = Report::new(
        args,
        arrival.parcel.bundle,
        (&checked, &clearance),
        &admitted,
    );
    let name = args.voucher.repository(args.repo);
    let unlogged = log::moves(Some((clearance.head(), &name)));
    report.verdict.notes.extend(unlogged);
    Ok(report)
}

/// The clearance of the commit with a signature, if one is asked for.
fn signed(args: &Order<'_>, clearance: Clearance, checked: &Checked) -> Result<Clearance, Refusal> {
    let Some(name) = args.sign else {
        return Ok(clearance);
    };
    let key = key::by_name(Some(name), args.passphrase_file)?;
    clearance.signed(checked, |commit| ssh::sign_commit(commit, key.as_ref()))
}

fn ledger() -> Result<Ledger, Refusal> {
    Ok(Ledger::open(&state::directory()?.join("ledger"))?)
}

/// The lease of a branch of a repository. One that is held is waited for.
fn take_lease(ledger: &mut Ledger, desk: &Desk, branch: &str) -> Result<Lease, Refusal> {
    let what = format!("{}\n{branch}", desk.host.name());
    let name: Name = format!("import:{}", Digest::of(what.as_bytes())).parse()?;
    let owner: Name = format!("flights:{}", std::process::id()).parse()?;
    let until = Instant::now() + Duration::from_secs(LEASE_SECONDS + 1);
    loop {
        match ledger.lease(&name, &owner, state::unix_seconds(), LEASE_SECONDS) {
            Err(held) if held.code == LedgerCode::LeaseHeld && Instant::now() < until => {
                std::thread::sleep(PAUSE);
            }
            taken => return Ok(taken?),
        }
    }
}

/// A verdict with what came in.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    #[serde(flatten)]
    verdict: Verdict,
    branch: String,
    baseline: CommitId,
    head: CommitId,
    /// The commit that was certified, where the head is that commit with a signature.
    #[serde(skip_serializing_if = "Option::is_none")]
    unsigned: Option<CommitId>,
    bundle: Digest,
    /// The working tree moved along.
    landed: bool,
    /// It was in already; this is the receipt from then.
    repeated: bool,
    receipt: serde_json::Value,
    kept: Vec<String>,
    changes: Vec<Line>,
}

impl Report {
    fn new(
        args: &Order<'_>,
        bundle: &[u8],
        (checked, clearance): (&Checked, &Clearance),
        admitted: &Admitted,
    ) -> Self {
        let (baseline, head) = (checked.baseline(), clearance.head());
        let moved = flight::moved("import", admitted, args.branch, (baseline, head));
        let receipt = serde_json::from_slice(&admitted.receipt).unwrap_or_default();
        let certificate = |receipt: &serde_json::Value| {
            let id = receipt.get("certificate").and_then(|id| id.as_str());
            id.map(str::to_owned)
        };
        Self {
            verdict: Verdict {
                certificate: certificate(&receipt),
                ..moved
            },
            branch: args.branch.to_owned(),
            baseline,
            head,
            unsigned: clearance.unsigned(),
            bundle: Digest::of(bundle),
            landed: admitted.landed,
            repeated: admitted.repeated,
            receipt,
            kept: admitted.kept.clone(),
            changes: checked.changes().iter().map(Line::of).collect(),
        }
    }

    fn print(&self, format: Format) {
        if format == Format::Json {
            return show::print(&serde_json::to_string(self).unwrap_or_default());
        }
        show::verdict(&self.verdict, format);
        if let Some(unsigned) = self.unsigned {
            show::print(&format!(
                "  signed      {unsigned}, which has another id now"
            ));
        }
        if self.verdict.certificate.is_none() {
            show::print("  uncertified: nothing but the person who asked vouches for it");
        }
        self.changes
            .iter()
            .for_each(|line| show::print(&line.told()));
    }
}

fn recover(repo: &Path, format: Format) -> Result<Exit, Refusal> {
    let desk = Desk::open(repo)?;
    let now = state::unix_seconds();
    // Where no ledger is, no import was ever begun.
    let all = match state::existing()?.filter(|state| state.join("ledger").exists()) {
        Some(_) => {
            let all = importer::recover_repository(&desk.git, &desk.host, &mut ledger()?, now)?;
            show::recovered(&log::moves(None).into_iter().collect::<Vec<_>>());
            all
        }
        None => Vec::new(),
    };
    let unjudged = |found: &&Recovered| found.look.is_some() || found.outcome == Outcome::Unknown;
    let exit = match all.iter().find(unjudged) {
        Some(_) => Exit::Environment,
        None => Exit::Passed,
    };
    let report = Judged {
        schema: "flightproof/import-recovery/1",
        state: all
            .first()
            .map_or("not_started", |found| found.outcome.word()),
        imports: all.iter().map(Import::of).collect(),
    };
    if format == Format::Json {
        show::print(&serde_json::to_string(&report).unwrap_or_default());
        return Ok(exit);
    }
    if all.is_empty() {
        show::print("not_started: no import was cut off here");
    }
    for found in &all {
        let word = found.outcome.word();
        show::print(&format!("{word}: {}", flight::settled(found)));
    }
    Ok(exit)
}

/// What became of imports that were cut off.
#[derive(Serialize)]
struct Judged {
    schema: &'static str,
    /// Of the first; `not_started` if there is none.
    state: &'static str,
    imports: Vec<Import>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Import {
    state: &'static str,
    branch: String,
    baseline: CommitId,
    head: CommitId,
    #[serde(skip_serializing_if = "Option::is_none")]
    tree: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt: Option<serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lock_left: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    kept: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    look: Option<String>,
}

impl Import {
    fn of(found: &Recovered) -> Self {
        let receipt = found.receipt.as_deref();
        Self {
            state: found.outcome.word(),
            branch: found.key.branch.clone(),
            baseline: found.key.baseline,
            head: found.key.head,
            tree: found.tree.clone(),
            receipt: receipt.and_then(|bytes| serde_json::from_slice(bytes).ok()),
            lock_left: (found.lock_left.as_deref()).map(|path| path.to_string_lossy().into_owned()),
            kept: found.kept.clone(),
            look: found.look.clone(),
        }
    }
}
