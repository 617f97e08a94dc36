//! The commands of the program, one module each.

mod admit;
mod agent;
mod archive;
mod bundle;
mod cert;
mod certify;
mod day;
mod doctor;
mod explain;
mod forms;
mod gate;
mod import;
mod init;
mod input;
mod key;
mod list;
mod mutate;
mod paper;
mod reap;
mod refly;
mod refused;
mod report;
mod repository;
mod review;
mod run;
mod spend;
mod transcript;
mod witness;

use crate::show::{self, Form, Format};
use crate::{FlightsCode, interrupt};
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use flightproof_core::{Exit, Refusal, escape};
pub use paper::SCHEMAS;

/// What the program ends with; every refusal code has one of these.
const EXIT_STATUSES: &str = "\
Exit status:
   0  admitted, held, or passed
   2  the command line was wrong
   4  there was nothing to run
   5  what ran passed, but something required did not run
  10  a flight failed, or the candidate was refused
  11  evidence, a certificate or a recording does not match
  12  hostile input was admitted
  13  a policy said no
  20  a plan, a witness, a policy or a key is wrong
  21  this machine lacks something, or something on it failed: no verdict
  22  a plan, a witness, a policy, a recording or a ledger is of a newer format
  30  time ran out: no verdict
  70  a bug of ours: no verdict
 130  stopped by Ctrl-C: no verdict";

/// Flies an untrusted commit in a sealed session and says, signed, what was proven.
#[derive(Parser)]
#[command(name = "flights", version, about, max_term_width = 100, after_long_help = EXIT_STATUSES)]
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
    Certify(certify::CertifyArgs),
    /// Look at a repository and write plan, witness and policy of a first flight.
    Init(init::InitArgs),
    /// Fly certified work again on a baseline that moved on: merged into one commit, from the first gate.
    Refly(refly::ReflyArgs),
    /// Fly the plans in flights/: replay their recordings, or fly them for real.
    Run(run::RunArgs),
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
        command: witness::WitnessCommand,
    },
    /// Pack, look at, verify and unpack archives.
    Archive {
        #[command(subcommand)]
        command: archive::ArchiveCommand,
    },
    /// Carry one commit as a bundle: make it, or check one that arrived.
    Bundle {
        #[command(subcommand)]
        command: bundle::BundleCommand,
    },
    /// Let the one commit of a bundle into a branch, with the working tree that is on it.
    Import(import::ImportArgs),
    /// Fly agents, and account for what their programs cost.
    Agent {
        #[command(subcommand)]
        command: agent::AgentCommand,
    },
    /// See, cap, hold and settle money. Every amount is an estimate of what will be billed.
    Spend {
        #[command(subcommand)]
        command: spend::SpendCommand,
    },
    /// Look at the durable state as a whole.
    Ledger {
        #[command(subcommand)]
        command: spend::LedgerCommand,
    },
    /// Let the commit of a certificate into a branch, by a second statement.
    Admit(admit::AdmitArgs),
    /// Check certificates, look at them, and what is made beside them.
    Cert {
        #[command(subcommand)]
        command: cert::CertCommand,
    },
    /// Make, list and revoke signing keys.
    Key {
        #[command(subcommand)]
        command: key::KeyCommand,
    },
    /// Say what a refusal code means; without one, list all.
    Explain {
        /// A code such as archive/PREFIX_CONFLICT, a kind of UNJUDGED_CODE such as rebound, or the class of a
        /// changed line such as inert.
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
            Self::Schema(_) => "schema",
            Self::Paper { .. } => "paper",
            Self::Show(_) | Self::Diff(_) | Self::Transcript { .. } => "transcript",
            Self::Mutate(_) => "mutate",
            Self::Witness { .. } => "witness",
            Self::Refly(_) => "merge",
            Self::Archive { command } => command.stage(),
            Self::Bundle { command } => command.stage(),
            Self::Import(args) => args.stage(),
            Self::Agent { command } => command.stage(),
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
}

/// The command line, for the reference in `docs/cli.md`.
pub fn command_line() -> clap::Command {
    forms::listed(Cli::command().bin_name("flights"))
}

/// A day since 1970 as people write it.
pub(crate) fn date(day: u32) -> String {
    day::Date(flightproof_ledger::UtcDay(day)).to_string()
}

/// Parses the command line, does the work, prints the result.
pub fn main() -> Exit {
    let (cli, forms) = match read() {
        Ok(read) => read,
        Err(error) => return misread(&error),
    };
    let form = cli.format;
    let stage = cli.command.stage();
    let exit = dispatch(cli.command, form, forms).unwrap_or_else(|refusal| {
        show::refusal(stage, &refusal, form.messages());
        refusal.exit()
    });
    interrupt::ended(show::ended(exit))
}

/// The command line, and the forms of output that the command on it has.
fn read() -> Result<(Cli, &'static [Form]), clap::Error> {
    let matches = command_line().try_get_matches()?;
    let cli = Cli::from_arg_matches(&matches).map_err(|e| e.format(&mut command_line()))?;
    Ok((cli, forms::of(&forms::named(&matches))))
}

/// A command line that is wrong, or asks for help.
fn misread(error: &clap::Error) -> Exit {
    if !error.use_stderr() {
        return match error.print() {
            Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => Exit::Environment,
            _ => Exit::Passed,
        };
    }
    if wants_data(std::env::args_os()) {
        let text = error.to_string();
        // The names of missing arguments stand below the first line.
        let first = text.lines().take_while(|line| !line.trim().is_empty());
        let first = first.map(str::trim).collect::<Vec<_>>().join(" ");
        let detail = escape(first.trim_start_matches("error: "), 400);
        let refusal = Refusal::from(FlightsCode::UsageInvalid.refuse(detail));
        show::refusal("usage", &refusal, Format::Json);
    } else {
        show::usage(&error.to_string());
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

fn dispatch(command: Command, form: Form, forms: &[Form]) -> Result<Exit, Refusal> {
    let format = form.among(forms)?;
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
        Command::Certify(args) => certify::run(&args, form),
        Command::Init(args) => init::run(&args, format),
        Command::Refly(args) => refly::run(&args, form),
        Command::Mutate(args) => mutate::run(&args, form),
        Command::Witness {
            command: witness::WitnessCommand::Check(args),
        } => witness::check(&args, format),
        Command::Run(args) => run::run(&args, form),
        Command::Archive { command } => archive::run(&command, format),
        Command::Agent { command } => agent::run(&command, format),
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
