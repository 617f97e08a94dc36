//! `flights mutate`: the mutation gate alone.

use super::input;
use crate::FlightsCode;
use crate::flight::{self, Host};
use crate::show::{self, Format, Progress, Speak};
use crate::survey::{Oracle, Report, Shard, Survey, Tried};
use clap::Args;
use flightproof_certifier::CertifierCode;
use flightproof_certifier::mutation::MutationPlan;
use flightproof_certifier::witness::Witness;
use flightproof_core::{Exit, Refusal, RelPath, escape};
use serde_json::json;
use std::path::PathBuf;

/// Most tests that are named in lines for people. The JSON report has all.
const MAX_NAMED: usize = 20;

/// `flights mutate`.
#[derive(Args)]
pub(super) struct MutateArgs {
    /// The working directory: what git would track of it is taken, committed or not.
    #[arg(long, value_name = "DIR", default_value = ".")]
    repo: PathBuf,
    /// Mutate only lines that differ from this revision.
    #[arg(long, value_name = "REV")]
    in_diff: Option<String>,
    /// What has to notice mutants.
    #[arg(long, value_enum, required_unless_present_any = ["witness", "list"])]
    oracle: Option<OracleName>,
    /// A witness, whose cases have to notice mutants.
    #[arg(long, value_name = "FILE", conflicts_with = "oracle")]
    witness: Option<PathBuf>,
    /// A package (repeatable); default: the one at the top. Its own tests are those that are run.
    #[arg(long = "package", short, value_name = "NAME")]
    packages: Vec<String>,
    /// Mutate only this file, relative to the directory (repeatable).
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
    /// Only list the mutants: nothing is compiled or run.
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
pub(super) fn run(args: &MutateArgs, format: Format) -> Result<Exit, Refusal> {
    input::directory(&args.repo)?;
    let survey = survey(args)?;
    let speak = match format {
        Format::Human => Speak::Stages,
        Format::Json => Speak::Nothing,
    };
    let mut progress = Progress::new(speak);
    if args.list {
        print_list(&survey.list(&mut progress)?, format);
        return Ok(Exit::Passed);
    }
    let host = Host::prepare(flight::Backend::Local {
        toolchain: args.toolchain.as_deref(),
    })?;
    show::recovered(&host.recover()?);
    let report = survey.run(&host, &mut progress)?;
    Ok(print(&report, format))
}

fn survey(args: &MutateArgs) -> Result<Survey, Refusal> {
    let oracle = match &args.witness {
        None => Oracle::Tests,
        Some(path) => {
            let (bytes, driver) = flight::read_witness(path)?;
            let witness = Witness::parse(&bytes)?;
            Oracle::Witness(Box::new(match driver {
                Some(driver) => witness.with_driver(&driver)?,
                None => witness,
            }))
        }
    };
    let read = |path: &PathBuf| flight::read(path, FlightsCode::FileUnreadable);
    Ok(Survey {
        repo: args.repo.clone(),
        baseline: args.in_diff.clone(),
        packages: args.packages.clone(),
        files: args.files.clone(),
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

fn print(report: &Report, format: Format) -> Exit {
    let alive = report.counts.alive();
    if format == Format::Json {
        show::print(&serde_json::to_string(report).unwrap_or_default());
    } else {
        for line in table(report) {
            show::print(&line);
        }
        if alive > 0 {
            let first = report.alive().next().map_or("", |m| m.id.as_str());
            let detail = format!("{alive} of them, such as {}", escape(first, 120));
            let refusal = CertifierCode::MutantsSurvived.refuse(detail).into();
            show::refusal("mutation", &refusal, format);
        }
    }
    match alive {
        0 => Exit::Passed,
        _ => Exit::Refused,
    }
}

/// Survivors, then what else a reader must know to trust the numbers.
fn table(report: &Report) -> Vec<String> {
    let rows: Vec<(String, &Tried)> = report
        .alive()
        .map(|m| (format!("{}:{}:{}", m.file, m.line, m.column), m))
        .collect();
    let width = rows.iter().map(|(place, _)| place.len()).max().unwrap_or(0);
    let mut lines: Vec<String> = rows.iter().map(|(place, m)| row(place, width, m)).collect();
    if report.counts.mutants == 0 {
        lines.push("no line of code is to be mutated".to_owned());
    } else {
        lines.push(report.counts.line());
    }
    lines.extend(beside(report));
    lines
}

fn row(place: &str, width: usize, mutant: &Tried) -> String {
    let reached = match (mutant.status, mutant.reaching) {
        ("survived", Some(1)) => "1 reaches it".to_owned(),
        ("survived", Some(number)) => format!("{number} reach it"),
        _ => "nothing reaches it".to_owned(),
    };
    format!(
        "{:<9} {place:<width$}  {:<16} {} -> {}  in {} ({reached})",
        mutant.status,
        mutant.operator,
        escape(&mutant.original, 60),
        escape(&mutant.replacement, 60),
        match mutant.function.as_str() {
            "" => "no function".to_owned(),
            name => escape(name, 120),
        },
    )
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
    if report.oracle == "tests" && report.counts.mutants > 0 {
        let out = report.left_out.len();
        lines.push(format!(
            "{} tests judged, {out} could not; documentation tests are not run",
            report.checks
        ));
        let shown = report.left_out.iter().take(MAX_NAMED);
        lines.extend(shown.map(|l| format!("  left out: {} {}: {}", l.target, l.name, l.why)));
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
