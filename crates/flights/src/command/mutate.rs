//! `flights mutate`: the mutation gate alone.

mod survivors;

use super::input;
use super::repository::Repository;
use crate::flight::{self, Host};
use crate::show::{self, Form, Format, Progress, Speak};
use crate::survey::{Oracle, Report, Shard, Survey};
use crate::{FlightsCode, annotations};
use clap::Args;
use flightproof_certifier::CertifierCode;
use flightproof_certifier::mutation::MutationPlan;
use flightproof_core::{Exit, Refusal, RelPath, Verdict, escape};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Most tests that are named in lines for people. The JSON report has all.
const MAX_NAMED: usize = 20;

/// What a survey lacks in which nothing notices mutants.
const NO_JUDGE: &str =
    "say what has to notice mutants, --oracle tests or --witness FILE, or only --list them";

/// `flights mutate`.
#[derive(Args)]
pub(super) struct MutateArgs {
    /// The working directory: what git would track of it is taken, committed or not; default: the
    /// repository that the current directory lies in, or the package where there is none.
    #[arg(long, value_name = "DIR")]
    repo: Option<PathBuf>,
    /// Mutate only lines that differ from this revision.
    #[arg(long, value_name = "REV")]
    in_diff: Option<String>,
    /// What has to notice mutants, where no witness does.
    #[arg(long, value_enum)]
    oracle: Option<OracleName>,
    /// A witness, whose cases have to notice mutants in place of tests.
    #[arg(long, value_name = "FILE", conflicts_with = "oracle")]
    witness: Option<PathBuf>,
    /// A package (repeatable); default: the one at the top, or without --repo the one that the current
    /// directory lies in. Its own tests are those that are run.
    #[arg(long = "package", short, value_name = "NAME")]
    packages: Vec<String>,
    /// Mutate only this file, relative to the directory, or without --repo to the current one (repeatable).
    #[arg(long = "file", short, value_name = "PATH")]
    files: Vec<RelPath>,
    /// Features to build tests with, beyond the default ones (repeatable).
    #[arg(long, value_name = "NAME")]
    features: Vec<String>,
    /// Only the Kth of N equal shares of the mutants.
    #[arg(long, value_name = "K/N")]
    shard: Option<Shard>,
    /// Sessions at the same time. Each builds everything once.
    #[arg(long, short, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    jobs: u16,
    /// Only list the mutants: nothing is compiled or run. `certify` makes more of a change: one for each
    /// stretch of statements, and for the side of an `if let` that is not written.
    #[arg(long)]
    list: bool,
    /// Lock file for a tree without one.
    #[arg(long, value_name = "FILE")]
    lock: Option<PathBuf>,
    /// Toolchain directory to bind into sessions; default: rustup's default one.
    #[arg(long, value_name = "DIR")]
    toolchain: Option<PathBuf>,
}

/// What can notice mutants beside a witness.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum OracleName {
    /// The packages' own unit and integration tests.
    Tests,
}

/// Surveys and prints what was found.
///
/// # Errors
/// What keeps the survey from being made.
pub(super) fn run(args: &MutateArgs, form: Form) -> Result<Exit, Refusal> {
    if args.oracle.is_none() && args.witness.is_none() && !args.list {
        return Err(FlightsCode::UsageInvalid.refuse(NO_JUDGE).into());
    }
    let repository = Repository::or_package(args.repo.as_deref())?;
    input::directory(&repository.top)?;
    let survey = survey(args, &repository)?;
    let mut progress = Progress::new(Speak::to(form));
    if args.list {
        // Mutants that nobody tried are no findings.
        let format = form.among(Form::BASIC)?;
        print_list(&survey.list(&mut progress)?, format);
        return Ok(Exit::Passed);
    }
    let host = Host::prepare(flight::Backend::Local {
        toolchain: args.toolchain.as_deref(),
    })?;
    show::recovered(&host.recover()?);
    let report = survey.run(&host, &mut progress)?;
    Ok(print(&report, &repository, form))
}

fn survey(args: &MutateArgs, repository: &Repository) -> Result<Survey, Refusal> {
    let mut packages = args.packages.clone();
    let oracle = match &args.witness {
        None => Oracle::Tests,
        Some(path) => {
            let witness = flight::read_witness(path)?.witness;
            let own = witness.suite_package().filter(|_| packages.is_empty());
            packages.extend(own.map(str::to_owned));
            Oracle::of(witness)
        }
    };
    let read = |path: &PathBuf| flight::read(path, FlightsCode::FileUnreadable);
    Ok(Survey {
        repo: repository.top.clone(),
        below: repository.below.clone(),
        baseline: args.in_diff.clone(),
        packages,
        files: args
            .files
            .iter()
            .map(|file| from_top(file, repository.below.as_ref()))
            .collect::<Result<_, _>>()?,
        shard: args.shard,
        oracle,
        jobs: usize::from(args.jobs),
        lock: args.lock.as_ref().map(read).transpose()?,
        features: args.features.clone(),
    })
}

fn print_list(plan: &MutationPlan, format: Format) {
    let mutants = plan.mutants.iter().filter(|mutant| !mutant.aside);
    match format {
        Format::Human => mutants.for_each(|mutant| show::print(&escape(&mutant.id, 400))),
        Format::Json => {
            let ids: Vec<&str> = mutants.map(|mutant| mutant.id.as_str()).collect();
            let document = json!({"schema": "flightproof/mutants/1", "mutants": ids});
            show::print(&document.to_string());
        }
    }
}

/// A path of the command line as the tree has it.
fn from_top(file: &RelPath, below: Option<&RelPath>) -> Result<RelPath, Refusal> {
    let Some(below) = below else {
        return Ok(file.clone());
    };
    let whole = format!("{below}/{file}");
    RelPath::new(&whole).map_err(|fault| input::unreadable(Path::new(&whole), fault))
}

fn print(report: &Report, repository: &Repository, form: Form) -> Exit {
    match form {
        Form::Human => lines(report, repository.below.as_ref())
            .iter()
            .for_each(|line| show::print(line)),
        Form::Github | Form::Sarif => {
            let findings = survivors::findings(report, &repository.top);
            annotations::print(&findings, &total(report), form);
        }
        _ => show::print(&serde_json::to_string(report).unwrap_or_default()),
    }
    match report.alive().next() {
        None => Exit::Passed,
        Some(first) => {
            if form == Form::Human {
                let (alive, first) = (report.counts.alive(), escape(&first.id, 120));
                let detail = format!("{alive} of them, such as {first}");
                let refusal = CertifierCode::MutantsSurvived.refuse(detail).into();
                let hint = match report.oracle {
                    "tests" => {
                        "write a test that notices the change, or remove code that no test needs"
                    }
                    _ => "add a case that notices the change, or remove code that no case needs",
                };
                let verdict = Verdict {
                    hint: Some(hint.to_owned()),
                    ..Verdict::refused("mutation", &refusal)
                };
                show::verdict(&verdict, Format::Human);
            }
            Exit::Refused
        }
    }
}

/// Survivors, what else a reader must know to trust the numbers, and the numbers.
fn lines(report: &Report, below: Option<&RelPath>) -> Vec<String> {
    let mut lines = survivors::lines(report, below);
    lines.extend(beside(report));
    lines.push(total(report));
    lines
}

/// What a survey comes to, in one line.
fn total(report: &Report) -> String {
    match report.counts.mutants {
        0 => "no line of code is to be mutated".to_owned(),
        _ => format!("{}{}", report.counts.line(), survivors::spread(report)),
    }
}

/// What a certificate would be refused for, whatever notices the mutants.
pub(super) fn unjudged(places: &[String]) -> Vec<String> {
    let mut lines = Vec::new();
    if places.is_empty() {
        return lines;
    }
    lines.push(format!(
        "{} that no mutant can judge: `certify` refuses each (UNJUDGED_CODE) unless the witness waives it",
        show::count(places.len(), "changed place")
    ));
    let shown = places.iter().take(MAX_NAMED);
    lines.extend(shown.map(|place| format!("  unjudged: {}", escape(place, 200))));
    if places.len() > MAX_NAMED {
        lines.push(format!(
            "  and {} more (--format json)",
            places.len() - MAX_NAMED
        ));
    }
    lines
}

fn beside(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    if !report.unmutated.is_empty() {
        let total: u64 = report.unmutated.values().sum();
        let each = report.unmutated.iter().map(|(why, n)| format!("{n} {why}"));
        let each: Vec<String> = each.collect();
        lines.push(format!(
            "{total} lines of code have no mutant of their own: {}",
            each.join(", ")
        ));
    }
    lines.extend(unjudged(&report.unjudged));
    let out = report.left_out.len();
    let tests = report.oracle == "tests";
    if report.counts.mutants > 0 && (tests || out > 0) {
        let judged = report.checks;
        lines.push(match tests {
            true => format!(
                "{} judged, {out} could not; documentation tests are not run",
                show::count(judged, "test")
            ),
            false => format!(
                "{judged} of {} judged; the others fail on this tree and were asked of no mutant: what only \
                 they reach is told as reached by nothing",
                show::count(judged + out, "case")
            ),
        });
        let shown = report.left_out.iter().take(MAX_NAMED);
        lines.extend(shown.map(|l| {
            let named = format!("{} {}", l.target, l.name);
            format!("  left out: {}: {}", named.trim_start(), l.why)
        }));
        if out > MAX_NAMED {
            lines.push(format!("  and {} more (--format json)", out - MAX_NAMED));
        }
    }
    if !report.withheld.is_empty() {
        let names: Vec<String> = report.withheld.iter().map(|p| escape(p, 120)).collect();
        lines.push(format!(
            "kept out, since they may be secrets: {}",
            names.join(", ")
        ));
    }
    lines
}
