//! `flights witness check`: is a witness fit to judge?

use super::input;
use crate::FlightsCode;
use crate::flight::{self, Host};
use crate::show::{self, Format, Progress, Speak};
use crate::survey::{LeftOut, Oracle, Proposal, Survey, Teeth, cases_alone};
use clap::{Args, Subcommand};
use flightproof_certifier::witness::{Twins, Witness};
use flightproof_core::{Exit, Refusal, escape};
use serde_json::json;
use std::path::PathBuf;

/// Most proposals in lines for people. The JSON report has all.
const MAX_SHOWN: usize = 20;

/// `flights witness`.
#[derive(Subcommand)]
pub(super) enum WitnessCommand {
    /// Check a witness: its file alone, or its cases on a working directory as well.
    Check(CheckArgs),
}

/// `flights witness check`.
#[derive(Args)]
pub(super) struct CheckArgs {
    /// The witness.
    file: PathBuf,
    /// A working directory whose program the cases are tried on, or whose tests a suite names: which of
    /// them fail, waver, or notice no mutant that another does not notice too. In another language than
    /// Rust there are no mutants here.
    #[arg(long, value_name = "DIR")]
    repo: Option<PathBuf>,
    /// Mutate only lines that differ from this revision.
    #[arg(long, value_name = "REV", requires = "repo")]
    in_diff: Option<String>,
    /// A package to mutate (repeatable); default: the one at the top.
    #[arg(long = "package", short, value_name = "NAME", requires = "repo")]
    packages: Vec<String>,
    /// Lock file for a tree without one.
    #[arg(long, value_name = "FILE", requires = "repo")]
    lock: Option<PathBuf>,
    /// Toolchain directory to bind into the session; default: rustup's default one.
    #[arg(long, value_name = "DIR", requires = "repo")]
    toolchain: Option<PathBuf>,
}

/// Checks and prints what was found.
///
/// # Errors
/// `WITNESS_UNSOUND` with what was found; what keeps the check from being made.
pub(super) fn check(args: &CheckArgs, format: Format) -> Result<Exit, Refusal> {
    let witness = flight::read_witness(&args.file)?.witness;
    let (cases, public, twins) = (witness.cases().len(), witness.is_public(), witness.twins());
    let judges = match witness.suite() {
        Some(_) => Judges::Tests,
        None => Judges::Cases {
            written: cases,
            generates: witness.differential().is_some(),
        },
    };
    let language = witness.language().map(str::to_owned);
    let teeth = args
        .repo
        .is_some()
        .then(|| teeth(args, witness, format))
        .transpose()?;
    let wrong = wrong(&twins, teeth.as_ref());
    match format {
        Format::Json => {
            let same: Vec<_> = twins
                .iter()
                .map(|t| json!({"first": t.first, "second": t.second, "agree": t.agree}))
                .collect();
            let document = json!({
                "schema": "flightproof/witness-check/1", "cases": cases, "public": public,
                "sound": wrong.is_empty(), "same_input": same, "tree": teeth,
            });
            show::print(&document.to_string());
        }
        Format::Human => {
            let mut told = lines(judges, public, &twins, teeth.as_ref());
            if let Some(teeth) = &teeth {
                told.push(match &language {
                    None => noticed(judges, teeth),
                    Some(language) => format!(
                        "{} of {cases} cases answered as expected; no mutant was tried: `certify` makes those of \
                         a change in {language}",
                        cases - teeth.missed.len()
                    ),
                });
            }
            told.iter().for_each(|line| show::print(line));
        }
    }
    let Some(first) = wrong.first() else {
        return Ok(Exit::Passed);
    };
    let detail = format!("{}, such as {first}", show::count(wrong.len(), "finding"));
    let refusal = Refusal::from(FlightsCode::WitnessUnsound.refuse(detail));
    if format == Format::Human {
        show::refusal("witness", &refusal, format);
    }
    Ok(refusal.exit())
}

fn teeth(args: &CheckArgs, witness: Witness, format: Format) -> Result<Teeth, Refusal> {
    let repo = args.repo.clone().unwrap_or_default();
    input::directory(&repo)?;
    let language = witness.language().map(str::to_owned);
    let picks = args.in_diff.is_some() || !args.packages.is_empty() || args.lock.is_some();
    if let Some(language) = language.as_ref().filter(|_| picks) {
        let detail =
            format!("--in-diff, --package and --lock are for Rust, and this is {language}");
        return Err(FlightsCode::UsageInvalid.refuse(detail).into());
    }
    let host = || -> Result<Host, Refusal> {
        let toolchain = args.toolchain.as_deref();
        let host = Host::prepare(flight::Backend::Local { toolchain })?;
        show::recovered(&host.recover()?);
        Ok(host)
    };
    let mut progress = Progress::new(match format {
        Format::Human => Speak::Stages,
        Format::Json => Speak::Nothing,
    });
    if let Some(language) = &language {
        return cases_alone(&host()?, &repo, (&witness, language), &mut progress);
    }
    let read = |path: &PathBuf| flight::read(path, FlightsCode::FileUnreadable);
    let mut packages = args.packages.clone();
    let own = witness.suite_package().filter(|_| packages.is_empty());
    packages.extend(own.map(str::to_owned));
    let survey = Survey {
        repo,
        below: None,
        baseline: args.in_diff.clone(),
        packages,
        files: Vec::new(),
        shard: None,
        oracle: Oracle::of(witness),
        jobs: 1,
        lock: args.lock.as_ref().map(read).transpose()?,
        features: Vec::new(),
    };
    survey.teeth(&host()?, &mut progress)
}

/// What makes a witness unfit, each in a few words.
fn wrong(twins: &[Twins], teeth: Option<&Teeth>) -> Vec<String> {
    let contradictions = twins.iter().filter(|twins| !twins.agree).map(|twins| {
        format!(
            "{} and {} ask the same and expect different answers",
            twins.first, twins.second
        )
    });
    let flaky = teeth.into_iter().flat_map(|teeth| &teeth.flaky);
    let flaky = flaky.map(|case| format!("{case} does not answer the same way each time"));
    contradictions.chain(flaky).collect()
}

/// What of a witness judges.
#[derive(Clone, Copy)]
enum Judges {
    Cases {
        written: usize,
        /// Whether a flight asks of the baseline what it generates, beside them.
        generates: bool,
    },
    /// Those of a suite: how many there are, a tree must say.
    Tests,
}

impl Judges {
    fn noun(self) -> &'static str {
        match self {
            Self::Cases { .. } => "case",
            Self::Tests => "test",
        }
    }

    fn told(self) -> String {
        match self {
            Self::Cases { written, generates } => {
                let more = match generates {
                    true => ", and inputs that are generated in a flight alone",
                    false => "",
                };
                format!("{}{more}", show::count(written, "case"))
            }
            Self::Tests => "a suite of tests".to_owned(),
        }
    }

    /// One that was asked of no mutant.
    fn missed(self, missed: &LeftOut) -> String {
        match self {
            Self::Cases { .. } => format!("fails here {}: {}", missed.name, missed.why),
            Self::Tests => format!(
                "left out   {}: {}: {}",
                missed.target, missed.name, missed.why
            ),
        }
    }

    fn all_missed(self, missed: usize) -> String {
        match self {
            Self::Cases { written, .. } => format!(
                "{missed} of {} fail on this tree and were asked of no mutant: no fault of the witness where \
                 the tree is the baseline",
                show::count(written, "case")
            ),
            Self::Tests => format!("{} here judge nothing", show::count(missed, "test")),
        }
    }
}

fn lines(judges: Judges, public: bool, twins: &[Twins], teeth: Option<&Teeth>) -> Vec<String> {
    let who = match public {
        true => "public: its author may have written the program to it",
        false => "private",
    };
    let noun = judges.noun();
    let mut lines = vec![format!("{}, {who}", judges.told())];
    for twins in twins.iter().filter(|twins| twins.agree) {
        lines.push(format!(
            "same       {} asks what {} asks",
            twins.second, twins.first
        ));
    }
    let Some(teeth) = teeth else {
        lines.push("not tried on any program: name one with --repo DIR".to_owned());
        return lines;
    };
    lines.extend(teeth.missed.iter().map(|missed| judges.missed(missed)));
    for case in teeth.toothless() {
        lines.push(format!(
            "no teeth   {case}: it notices no mutant that another {noun} does not notice too"
        ));
    }
    let shown = teeth.proposals.iter().take(MAX_SHOWN);
    lines.extend(shown.map(|proposal| missing(proposal, noun)));
    if teeth.proposals.len() > MAX_SHOWN {
        lines.push(format!(
            "and {} more that no {noun} notices (--format json)",
            teeth.proposals.len() - MAX_SHOWN
        ));
    }
    lines.extend(super::mutate::unjudged(&teeth.unjudged));
    if !teeth.missed.is_empty() {
        lines.push(judges.all_missed(teeth.missed.len()));
    }
    lines
}

/// What mutants came to, in one line.
fn noticed(judges: Judges, teeth: &Teeth) -> String {
    let noun = judges.noun();
    let generates = matches!(
        judges,
        Judges::Cases {
            generates: true,
            ..
        }
    );
    let untried = match generates {
        true => "; what generated inputs notice, a flight says",
        false => "",
    };
    format!(
        "{} of {} tried, {} noticed by no {noun}, {} without teeth of their own{untried}",
        teeth.tried,
        show::count(teeth.mutants, "mutant"),
        teeth.proposals.len(),
        show::count(teeth.toothless().len(), noun)
    )
}

fn missing(proposal: &Proposal, noun: &str) -> String {
    let reached = match proposal.reached {
        true => format!("{noun}s come here, and no answer depends on it"),
        false => format!("no {noun} comes here"),
    };
    let input = proposal.input.as_ref();
    let input = input.map_or_else(String::new, |input| {
        format!("; a case of this input would notice: {}", input.line())
    });
    format!(
        "missing    {}  in {}: {reached}{input}",
        escape(&proposal.mutant, 200),
        escape(&proposal.function, 120)
    )
}
