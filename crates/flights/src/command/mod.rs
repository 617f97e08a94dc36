//! The commands of the program, one module each.

mod admit;
mod agent;
mod agent_run;
mod archive;
mod bundle;
mod cert;
mod certify;
mod day;
mod doctor;
mod explain;
mod gate;
mod import;
mod import_refly;
mod import_vouch;
mod init;
mod input;
mod key;
mod list;
mod mutate;
mod paper;
mod reap;
mod report;
mod review;
mod run;
mod spend;
mod transcript;
mod witness;

use crate::FlightsCode;
use crate::show::{self, Form, Format};
use cert::CertCommand;
use clap::{Args, CommandFactory as _, Parser, Subcommand};
use flightproof_core::{
    Digest, Exit, MicroEur, MicroUsd, MoneyError, Refusal, RelPath, UsdPerEur, escape,
};
use flightproof_ledger::{Name, Scope};
use key::{KeyCommand, SignerArgs};
pub use paper::SCHEMAS;
use std::path::PathBuf;

/// Flies an untrusted commit in a sealed session and says, signed, what was proven.
#[derive(Parser)]
#[command(name = "flights", version, about, max_term_width = 100)]
struct Cli {
    /// How to print results.
    #[arg(long, global = true, value_enum, default_value = "human")]
    format: Form,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Certify one commit of a repository, and admit it if asked to.
    Certify(CertifyArgs),
    /// Look at a repository and write plan, witness and policy of a first flight.
    Init(init::InitArgs),
    /// Fly certified work again on a baseline that moved on: merged into one commit, from the first gate.
    Refly(ReflyArgs),
    /// Fly the plans in flights/: replay their recordings, or fly them for real.
    Run(RunArgs),
    /// List the plans in flights/, and what each shows.
    List(list::ListArgs),
    /// Write an HTML report about flights: replayed here, or flown before.
    Report(report::ReportArgs),
    /// Show an approver the change of a certificate, with what was proven of each line, and what not.
    Review(review::ReviewArgs),
    /// Show a recording as a timeline.
    Show(transcript::ShowArgs),
    /// Say what changed in meaning between two recordings.
    Diff(transcript::DiffArgs),
    /// Carry recordings: write one as a single file, or take one in that arrived.
    Transcript {
        #[command(subcommand)]
        command: transcript::TranscriptCommand,
    },
    /// Find out what could be wrong with a program without its tests, or a witness, noticing.
    Mutate(mutate::MutateArgs),
    /// Look after witnesses.
    Witness {
        #[command(subcommand)]
        command: WitnessCommand,
    },
    /// Pack, look at, verify and unpack archives.
    Archive {
        #[command(subcommand)]
        command: ArchiveCommand,
    },
    /// Carry one commit as a bundle: make it, or check one that arrived.
    Bundle {
        #[command(subcommand)]
        command: BundleCommand,
    },
    /// Let the one commit of a bundle into a branch, with the working tree that is on it.
    Import(ImportArgs),
    /// Fly agents, and account for what their programs cost.
    Agent {
        #[command(subcommand)]
        command: AgentCommand,
    },
    /// See, cap, hold and settle money. Every amount is an estimate of what will be billed.
    Spend {
        #[command(subcommand)]
        command: SpendCommand,
    },
    /// Look at the durable state as a whole.
    Ledger {
        #[command(subcommand)]
        command: LedgerCommand,
    },
    /// Let the commit of a certificate into a branch, by a second statement.
    Admit(admit::AdmitArgs),
    /// Check certificates, look at them, and what is made beside them.
    Cert {
        #[command(subcommand)]
        command: CertCommand,
    },
    /// Make, list and revoke signing keys.
    Key {
        #[command(subcommand)]
        command: KeyCommand,
    },
    /// Say what a refusal code means; without one, list all.
    Explain {
        /// A code such as archive/PREFIX_CONFLICT.
        code: Option<String>,
    },
    /// Hold a release against the gate's policy, and sign its acceptance if nothing is missing.
    Gate(gate::GateArgs),
    /// Sign measured figures, as evidence for the gate.
    Evidence(gate::EvidenceArgs),
    /// Print the JSON schema of a document; without a name, list all.
    Schema(paper::SchemaArgs),
    /// Print shell completions, or write manual pages.
    Paper {
        #[command(subcommand)]
        command: paper::PaperCommand,
    },
    /// Check that this machine can fly, and say how to mend what is missing.
    Doctor,
    /// Remove what runs that were killed have left: sessions here and on the container engine. One
    /// whose owner lives is never touched.
    Reap,
}

impl Command {
    /// What is under way while the command itself has not begun a stage of its own.
    fn stage(&self) -> &'static str {
        match self {
            Self::Certify(_) | Self::Run(_) => "plan",
            Self::Init(_) => "init",
            Self::Gate(_) | Self::Evidence(_) => "gate",
            Self::List(_) => "list",
            Self::Report(_) => "report",
            Self::Review(_) => "review",
            Self::Schema(_) | Self::Paper { .. } => "paper",
            Self::Show(_) | Self::Diff(_) | Self::Transcript { .. } => "transcript",
            Self::Mutate(_) => "mutate",
            Self::Witness { .. } => "witness",
            Self::Refly(_) => "merge",
            Self::Archive { .. } => "archive",
            Self::Bundle {
                command: BundleCommand::Create { .. },
            } => "bundle",
            Self::Bundle { .. } => "check",
            Self::Import(ImportArgs {
                command: Some(_), ..
            }) => "recover",
            Self::Import(_) => "import",
            Self::Agent {
                command: AgentCommand::CheckResult(_),
            } => "account",
            Self::Agent { .. } => "plan",
            Self::Spend { .. } => "spend",
            Self::Ledger { .. } => "ledger",
            Self::Cert { .. } => "verify",
            Self::Admit(_) => "admit",
            Self::Key { .. } => "key",
            Self::Explain { .. } => "explain",
            Self::Doctor => "doctor",
            Self::Reap => "reap",
        }
    }

    /// The forms of output it has.
    fn forms(&self) -> &'static [Form] {
        match self {
            Self::Run(_) => run::FORMS,
            Self::List(_) => list::FORMS,
            Self::Show(_) => transcript::SHOW_FORMS,
            Self::Transcript { command } => command.forms(),
            _ => Form::BASIC,
        }
    }
}

/// `flights certify`.
#[derive(Args)]
pub struct CertifyArgs {
    /// Directory of the repository.
    #[arg(long, value_name = "DIR")]
    repo: PathBuf,
    /// Commit the change is based on.
    #[arg(long, value_name = "REV")]
    baseline: String,
    /// The candidate: one commit on the baseline.
    #[arg(long, value_name = "REV")]
    candidate: String,
    /// Witness file: the cases that judge the candidate.
    #[arg(long, value_name = "FILE")]
    witness: PathBuf,
    /// A path the candidate may change (repeatable). Without any: everything but protected files.
    #[arg(long = "grant", value_name = "PATH")]
    grants: Vec<RelPath>,
    /// Let only this path, and what lies below it, fly (repeatable). Every change must be among them,
    /// and Cargo.toml, Cargo.lock and every member of the workspace.
    #[arg(long, value_name = "PATH")]
    narrow: Vec<RelPath>,
    /// Author and committer the candidate must have.
    #[arg(long, value_name = "NAME <MAIL>")]
    identity: Option<String>,
    /// Move this branch from baseline to candidate if everything holds.
    #[arg(long, value_name = "BRANCH")]
    admit: Option<String>,
    /// Where to fly.
    #[arg(long, value_enum, default_value = "local")]
    session: Backend,
    /// Id of the image, with --session docker; default: the only session image of the engine.
    #[arg(long, value_name = "ID", value_parser = image_id)]
    image: Option<Digest>,
    #[command(flatten)]
    signer: SignerArgs,
    /// Directory for the certificate and the verdict.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Name of the repository on the certificate; default: the directory's name.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Lock file for a tree without one.
    #[arg(long, value_name = "FILE")]
    lock: Option<PathBuf>,
    /// Toolchain directory to bind into the session; default: rustup's default one.
    #[arg(long, value_name = "DIR")]
    toolchain: Option<PathBuf>,
}

/// `flights refly`.
#[derive(Args)]
struct ReflyArgs {
    /// The certificate of the work as it was.
    certificate: PathBuf,
    /// Commit to fly it on: one that its baseline leads to.
    #[arg(long, value_name = "REV")]
    onto: String,
    /// Directory of the repository, which has the certified commit.
    #[arg(long, value_name = "DIR")]
    repo: PathBuf,
    /// Witness file: the cases that judge the candidate.
    #[arg(long, value_name = "FILE")]
    witness: PathBuf,
    /// A path the candidate may change (repeatable). Without any: everything but protected files.
    #[arg(long = "grant", value_name = "PATH")]
    grants: Vec<RelPath>,
    /// Author and committer the candidate must have.
    #[arg(long, value_name = "NAME <MAIL>")]
    identity: Option<String>,
    /// Move this branch from --onto to the new commit if everything holds.
    #[arg(long, value_name = "BRANCH")]
    admit: Option<String>,
    /// Where to fly.
    #[arg(long, value_enum, default_value = "local")]
    session: Backend,
    /// Id of the image, with --session docker; default: the only session image of the engine.
    #[arg(long, value_name = "ID", value_parser = image_id)]
    image: Option<Digest>,
    /// A public key that the certificate may be of (repeatable); default: that of the signing key.
    #[arg(long, value_name = "PUB")]
    trust: Vec<PathBuf>,
    #[command(flatten)]
    signer: SignerArgs,
    /// Directory for the certificate and the verdict.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Name of the repository on the certificate; default: the directory's name.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Lock file for a tree without one.
    #[arg(long, value_name = "FILE")]
    lock: Option<PathBuf>,
    /// Toolchain directory to bind into the session; default: rustup's default one.
    #[arg(long, value_name = "DIR")]
    toolchain: Option<PathBuf>,
}

/// The session backends of this version.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Backend {
    /// Bubblewrap on this machine.
    Local,
    /// The container engine of DOCKER_HOST, or the one that listens at a usual socket.
    Docker,
}

/// An image's id, with or without the name of its digest.
fn image_id(text: &str) -> Result<Digest, String> {
    let digits = text.strip_prefix("sha256:").unwrap_or(text);
    digits
        .parse()
        .map_err(|_| "an image is named by its id: sha256: and 64 digits".to_owned())
}

/// `flights run`.
#[derive(Args)]
pub struct RunArgs {
    /// Plan files or names; default: every flights/*.toml below the root.
    plans: Vec<PathBuf>,
    /// Fly for real in local sessions.
    #[arg(long, group = "real")]
    local: bool,
    /// Fly for real on the container engine of DOCKER_HOST, or the one at a usual socket.
    #[arg(long, group = "real")]
    live: bool,
    /// Id of the image to fly in, with --live; default: the only session image of the engine.
    #[arg(long, value_name = "ID", value_parser = image_id, requires = "live")]
    image: Option<Digest>,
    /// Write a recording of each flight.
    #[arg(long, requires = "real")]
    record: bool,
    /// Sign what the run came to, as evidence for the gate.
    #[arg(long, value_name = "FILE")]
    evidence: Option<PathBuf>,
    /// Flights at the same time; default: as many as there are cpus for replays, one for real ones.
    #[arg(short, long, value_name = "N")]
    jobs: Option<std::num::NonZeroUsize>,
    /// Directory that holds flights/, which paths in plans are relative to.
    #[arg(long, value_name = "DIR", default_value = ".")]
    root: PathBuf,
    #[command(flatten)]
    signer: SignerArgs,
    /// Directory for certificates and verdicts, one folder a flight.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Toolchain directory to bind into sessions; default: rustup's default one.
    #[arg(long, value_name = "DIR")]
    toolchain: Option<PathBuf>,
}

#[derive(Subcommand)]
enum WitnessCommand {
    /// Check a witness: its file alone, or its cases on a working directory as well.
    Check(witness::CheckArgs),
}

#[derive(Subcommand)]
enum ArchiveCommand {
    /// Pack a working directory: no secrets, no .git, nothing that a .gitignore in it ignores. Says
    /// what was left out.
    Pack {
        /// The directory.
        dir: PathBuf,
        /// The archive. Replaced in one step if it exists.
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
        /// Name of the workspace in the manifest; default: the directory's name.
        #[arg(long, value_name = "ID")]
        workspace: Option<String>,
        #[command(flatten)]
        choice: ChoiceArgs,
    },
    /// Pack what changed in a working directory since a snapshot.
    Changeset {
        /// The snapshot it is compared with.
        #[arg(long, value_name = "FILE")]
        base: PathBuf,
        /// The directory.
        dir: PathBuf,
        /// The changeset. Replaced in one step if it exists.
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
        #[command(flatten)]
        choice: ChoiceArgs,
    },
    /// List the entries of an archive, verified; or read its manifest alone.
    Inspect {
        /// The archive.
        file: PathBuf,
        /// Read header and manifest and nothing else. A workspace must end there.
        #[arg(long)]
        header_only: bool,
        /// Length of the whole archive, for the manifest of an artifact; default: the file's.
        #[arg(long, value_name = "N", requires = "header_only")]
        total_size: Option<u64>,
    },
    /// Verify every byte of an archive.
    Verify {
        /// The archive.
        file: PathBuf,
    },
    /// Write the tree of an archive, whole or not at all.
    Extract {
        /// The archive: a snapshot or an artifact.
        file: PathBuf,
        /// Where to. It must not exist; its parent must.
        dir: PathBuf,
    },
    /// Apply a changeset to a directory: all of it, or nothing.
    Apply {
        /// The changeset.
        file: PathBuf,
        /// The directory, with exactly the base's bytes in every file that changes.
        dir: PathBuf,
    },
    /// Finish or roll back what an apply that was killed left in a directory.
    Recover {
        /// The directory.
        dir: PathBuf,
    },
}

/// What of a working directory travels.
#[derive(Args)]
struct ChoiceArgs {
    /// Take every file but .git: neither .gitignore nor the deny list is asked.
    #[arg(long, conflicts_with_all = ["deny", "admit"])]
    everything: bool,
    /// Leave out what this pattern names as well (repeatable): NAME, DIR/NAME, or NAME/ for a directory.
    #[arg(long, value_name = "PATTERN")]
    deny: Vec<String>,
    /// Take what this pattern names although the deny list says no (repeatable).
    #[arg(long, value_name = "PATTERN")]
    admit: Vec<String>,
}

#[derive(Subcommand)]
enum AgentCommand {
    /// Have an agent work on a plan's task in a sealed session, certify its commit, and hand back what
    /// was refused, until it is certified or the attempts are used up.
    Run(AgentRunArgs),
    /// Bring what killed runs left to its end: sessions, runs, holds. Nothing is started.
    Recover(AgentRecoverArgs),
    /// Read the terminal result of a run: exactly one, successful, within its limits, accounted for.
    CheckResult(CheckResultArgs),
}

/// `flights agent run`.
#[derive(Args)]
pub struct AgentRunArgs {
    /// The plan.
    plan: PathBuf,
    /// How many attempts there may be, 1 to 16; default: the plan's.
    #[arg(long, value_name = "N")]
    attempts: Option<std::num::NonZeroU32>,
    /// Move this branch from baseline to the certified commit.
    #[arg(long, value_name = "BRANCH")]
    admit: Option<String>,
    /// What paths in the plan are relative to.
    #[arg(long, value_name = "DIR", default_value = ".")]
    root: PathBuf,
    #[command(flatten)]
    signer: SignerArgs,
    /// Directory for the certificate, the commit's bundle and the report.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Toolchain directory to bind into sessions; default: rustup's default one.
    #[arg(long, value_name = "DIR")]
    toolchain: Option<PathBuf>,
}

/// `flights agent recover`.
#[derive(Args)]
pub struct AgentRecoverArgs {
    /// Toolchain directory, as for a run; default: rustup's default one.
    #[arg(long, value_name = "DIR")]
    toolchain: Option<PathBuf>,
}

/// `flights agent check-result`.
#[derive(Args)]
struct CheckResultArgs {
    /// Everything the program printed.
    file: PathBuf,
    /// Whose result it is: claude, codex or gemini.
    #[arg(long, value_name = "NAME")]
    profile: String,
    /// The budget the program was told, in US dollars, such as 2.50.
    #[arg(long, value_name = "X")]
    max_budget_usd: String,
    /// Most turns the program was told.
    #[arg(long, value_name = "N")]
    max_turns: String,
    /// The program reports no cost: settle the whole hold.
    #[arg(long)]
    unmetered: bool,
}

#[derive(Subcommand)]
enum SpendCommand {
    /// Show caps, what is spent and held, and runs that are not settled.
    Show,
    /// State a cap. The last one of a scope is in force; nothing is spent without one in total.
    Cap(CapArgs),
    /// Confirm the day after the clock jumped. What was booked to later days still counts.
    ConfirmDay {
        /// Today in UTC, as the clock has it, such as 2026-11-29.
        day: day::Date,
    },
    /// Hold money for a run.
    Reserve {
        /// The run.
        run: Name,
        /// What it may be told to spend, in US dollars.
        #[arg(long, value_name = "USD")]
        limit: MicroUsd,
    },
    /// Say that a run is about to start. From here on its money may be spent.
    Start {
        /// The run.
        run: Name,
    },
    /// Book what a run has spent; the rest of its hold is free again.
    Settle {
        /// The run.
        run: Name,
        /// What it spent, in US dollars.
        #[arg(long = "as", value_name = "AMOUNT", value_parser = amount)]
        amount: MicroUsd,
        /// SHA-256 of its result.
        #[arg(long, value_name = "SHA")]
        result: Digest,
    },
    /// Say that nobody knows what a run has spent. Its hold stays until it is resolved.
    Lose {
        /// The run.
        run: Name,
    },
    /// Give back the hold of a run that was never started.
    Release {
        /// The run.
        run: Name,
    },
    /// Say what a run of unknown outcome has spent. Signed, and recorded for good.
    Resolve {
        /// The run.
        run: Name,
        /// What it spent, in US dollars.
        #[arg(long = "as", value_name = "AMOUNT", value_parser = amount)]
        amount: MicroUsd,
        /// SHA-256 of the evidence: an invoice, a usage export.
        #[arg(long, value_name = "SHA")]
        evidence: Digest,
        #[command(flatten)]
        signer: SignerArgs,
    },
}

/// `flights spend cap`.
#[derive(Args)]
struct CapArgs {
    /// What it is for.
    #[arg(value_enum)]
    scope: CapScope,
    /// The cap in US dollars.
    #[arg(long, value_name = "AMOUNT")]
    usd: Option<MicroUsd>,
    /// The cap in euros.
    #[arg(long, value_name = "AMOUNT", conflicts_with = "usd")]
    eur: Option<MicroEur>,
    /// US dollars for one euro: your own, low rate, which is recorded with the cap.
    #[arg(long, value_name = "RATE", requires = "eur")]
    rate: Option<UsdPerEur>,
}

/// What a cap is for.
#[derive(Clone, Copy, clap::ValueEnum)]
enum CapScope {
    /// The hold of one run.
    Run,
    /// Everything spent and held on one UTC day.
    Day,
    /// Everything spent and held, ever.
    Total,
}

impl From<CapScope> for Scope {
    fn from(scope: CapScope) -> Self {
        match scope {
            CapScope::Run => Self::Run,
            CapScope::Day => Self::UtcDay,
            CapScope::Total => Self::Total,
        }
    }
}

/// An amount that may be nothing: evidence can say so.
fn amount(text: &str) -> Result<MicroUsd, MoneyError> {
    match text {
        "0" => Ok(MicroUsd::ZERO),
        text => text.parse(),
    }
}

#[derive(Subcommand)]
enum LedgerCommand {
    /// Look at every page, row and index, and hold the head against its anchor.
    Check,
    /// Write every row as a line of JSON, without secrets and bodies.
    Export {
        /// Where to; default: standard output.
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

#[derive(Subcommand)]
enum BundleCommand {
    /// Write one commit on a baseline as a bundle of at most 128 KiB.
    Create {
        /// Directory of the repository. Nothing of it is executed or obeyed.
        #[arg(long, value_name = "DIR")]
        repo: PathBuf,
        /// Commit the change is based on.
        #[arg(long, value_name = "REV")]
        baseline: String,
        /// The commit.
        #[arg(long, value_name = "REV")]
        head: String,
        /// The bundle.
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
        /// Make one commit of all up to the head: its tree, date and message, by the identity.
        #[arg(long, requires = "identity")]
        squash: bool,
        #[command(flatten)]
        rules: RuleArgs,
    },
    /// Check a bundle against its baseline, and list what it would change. Nothing is written.
    Check {
        /// The bundle.
        file: PathBuf,
        /// Directory of the repository that has the baseline.
        #[arg(long, value_name = "DIR")]
        repo: PathBuf,
        /// Commit the change must be based on.
        #[arg(long, value_name = "REV")]
        baseline: String,
        #[command(flatten)]
        rules: RuleArgs,
    },
}

/// `flights import`.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
struct ImportArgs {
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
    #[command(flatten)]
    voucher: VoucherArgs,
    #[command(flatten)]
    rules: RuleArgs,
}

#[derive(Subcommand)]
enum ImportCommand {
    /// Judge imports that were cut off: finish them, or take them back. Twice does nothing more.
    Recover {
        /// Directory of the repository.
        #[arg(long, value_name = "DIR")]
        repo: PathBuf,
    },
}

/// What vouches for the commit.
#[derive(Args)]
struct VoucherArgs {
    /// Certificate of exactly this commit, baseline, branch and repository.
    #[arg(
        long,
        value_name = "FILE",
        requires = "policy",
        required_unless_present = "uncertified_i_know",
        conflicts_with = "uncertified_i_know"
    )]
    certificate: Option<PathBuf>,
    /// Policy the certificate must meet. It must name the keys that may sign.
    #[arg(long, value_name = "FILE", requires = "certificate")]
    policy: Option<PathBuf>,
    /// A trusted public key (repeatable); default: the one in the state directory.
    #[arg(long = "key", value_name = "PUB", requires = "certificate")]
    keys: Vec<PathBuf>,
    #[command(flatten)]
    beside: cert::BesideArgs,
    /// Name of the repository on the certificate; default: the directory's name.
    #[arg(long, value_name = "NAME", requires = "certificate")]
    name: Option<String>,
    /// Nothing vouches for the commit. The receipt says so.
    #[arg(long)]
    uncertified_i_know: bool,
}

/// What a commit may be.
#[derive(Args)]
struct RuleArgs {
    /// A path the commit may change (repeatable). Without any: everything but protected files.
    #[arg(long = "grant", value_name = "PATH")]
    grants: Vec<RelPath>,
    /// Author and committer the commit must have.
    #[arg(long, value_name = "NAME <MAIL>")]
    identity: Option<String>,
}

/// The command line, for the reference in `docs/cli.md`.
pub fn command_line() -> clap::Command {
    Cli::command().bin_name("flights")
}

/// A day since 1970 as people write it.
pub(crate) fn date(day: u32) -> String {
    day::Date(flightproof_ledger::UtcDay(day)).to_string()
}

/// Parses the command line, does the work, prints the result.
pub fn main() -> Exit {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return misread(&error),
    };
    let form = cli.format;
    let stage = cli.command.stage();
    let exit = dispatch(cli.command, form).unwrap_or_else(|refusal| {
        show::refusal(stage, &refusal, form.messages());
        refusal.exit()
    });
    show::ended(exit)
}

/// A command line that is wrong, or asks for help.
fn misread(error: &clap::Error) -> Exit {
    if !error.use_stderr() {
        // Help that cannot be printed has no other place to go.
        let _ = error.print();
        return Exit::Passed;
    }
    if wants_data(std::env::args_os()) {
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default();
        let detail = escape(first.trim_start_matches("error: "), 400);
        let refusal = Refusal::from(FlightsCode::UsageInvalid.refuse(detail));
        show::refusal("usage", &refusal, Format::Json);
    } else {
        let _ = error.print();
    }
    Exit::Usage
}

/// Whether a command line that could not be read asks for another form than people's.
fn wants_data(args: impl Iterator<Item = std::ffi::OsString>) -> bool {
    let args: Vec<_> = args.collect();
    let data = |form: &std::ffi::OsStr| form != "human";
    let apart = args
        .windows(2)
        .any(|pair| pair[0] == "--format" && data(&pair[1]));
    let joined = args.iter().any(|arg| {
        let form = arg.to_str().and_then(|arg| arg.strip_prefix("--format="));
        form.is_some_and(|form| data(form.as_ref()))
    });
    apart || joined
}

fn dispatch(command: Command, form: Form) -> Result<Exit, Refusal> {
    let format = form.among(command.forms())?;
    match command {
        Command::Gate(args) => gate::run(&args, format),
        Command::Evidence(args) => gate::figures(&args, format),
        Command::List(args) => list::run(&args, form),
        Command::Report(args) => report::run(&args, format),
        Command::Review(args) => review::run(&args, format),
        Command::Schema(args) => paper::schema(&args),
        Command::Paper { command } => paper::run(&command),
        Command::Show(args) => transcript::show(&args, form),
        Command::Diff(args) => transcript::diff(&args, format),
        Command::Transcript { command } => transcript::run(&command, form),
        Command::Certify(args) => certify::run(&args, format),
        Command::Init(args) => init::run(&args, format),
        Command::Refly(args) => import_refly::run(&args, format),
        Command::Mutate(args) => mutate::run(&args, format),
        Command::Witness {
            command: WitnessCommand::Check(args),
        } => witness::check(&args, format),
        Command::Run(args) => run::run(&args, form),
        Command::Archive { command } => Ok(archive::run(&command, format)),
        Command::Agent {
            command: AgentCommand::CheckResult(args),
        } => agent::check(&args, format),
        Command::Agent {
            command: AgentCommand::Run(args),
        } => agent_run::run(&args, format),
        Command::Agent {
            command: AgentCommand::Recover(args),
        } => agent_run::recover(&args, format),
        Command::Spend { command } => spend::run(&command, format),
        Command::Ledger { command } => spend::ledger(&command, format),
        Command::Bundle { command } => bundle::run(&command, format),
        Command::Import(args) => import::run(&args, format),
        Command::Cert { command } => cert::run(&command, format),
        Command::Admit(args) => admit::run(&args, format),
        Command::Key { command } => key::run(&command, format),
        Command::Explain { code } => explain::run(code.as_deref(), format),
        Command::Doctor => doctor::run(format),
        Command::Reap => reap::run(format),
    }
}
