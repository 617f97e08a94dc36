//! `flights gate` and `flights evidence`: signed evidence, and the gate that counts it.

use super::input;
use super::key::{self, SignerArgs};
use super::run::{PlanResult, plans_below};
use crate::flight::{Host, Order, WorkDirectory, open_repository};
use crate::gate::{
    self, Candidate, Evidence, FlightEvidence, FuzzSummary, GatePolicy, Row, State, acceptance,
    last_policy,
};
use crate::plan::Plan;
use crate::show::{self, Format, Tone};
use crate::{FlightsCode, regular, state};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use flightproof_archive::paws;
use flightproof_certifier::dsse::MAX_ENVELOPE_BYTES;
use flightproof_certifier::key::{PublicKey, Signer};
use flightproof_core::{Decision, Digest, Exit, Refusal, Verdict};
use flightproof_importer as importer;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Largest policy, and summary of a fuzz campaign, in bytes.
const MAX_FILE: usize = 1 << 20;

/// Where the policy for the next candidate lies in a tree.
const NEXT_POLICY: &str = "flights/gate.json";

/// `flights gate`.
#[derive(Args)]
pub(super) struct GateArgs {
    /// Signed evidence (repeatable), from `flights run --evidence` and `flights evidence`.
    #[arg(long, value_name = "FILE")]
    evidence: Vec<PathBuf>,
    /// Summary of a fuzz campaign; its signature is FILE.sig.
    #[arg(long, value_name = "FILE")]
    fuzz: Option<PathBuf>,
    /// Statement of the last acceptance: the policy in it is in force.
    #[arg(long, value_name = "FILE", required_unless_present = "policy")]
    last: Option<PathBuf>,
    /// A policy of your own, such as for the first acceptance.
    #[arg(long, value_name = "FILE", conflicts_with = "last")]
    policy: Option<PathBuf>,
    /// A public key you trust (repeatable). Evidence counts if the policy names its key too.
    #[arg(long, value_name = "PUB", required = true)]
    trust: Vec<PathBuf>,
    /// Directory of the repository, with HEAD checked out.
    #[arg(long, value_name = "DIR", default_value = ".")]
    root: PathBuf,
    /// Where the statement of acceptance is written.
    #[arg(short, long, alias = "out", value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    signer: SignerArgs,
}

/// `flights evidence`.
#[derive(Args)]
pub(super) struct EvidenceArgs {
    /// A measured figure, as a whole number (repeatable).
    #[arg(value_name = "NAME=VALUE", required = true, value_parser = figure)]
    figures: Vec<(String, u64)>,
    /// Directory of the repository, with HEAD checked out.
    #[arg(long, value_name = "DIR", default_value = ".")]
    root: PathBuf,
    /// Where the evidence is written.
    #[arg(short, long, alias = "out", value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    signer: SignerArgs,
}

fn figure(text: &str) -> Result<(String, u64), String> {
    let wrong = || "a figure is NAME=VALUE, with a whole number".to_owned();
    let (name, value) = text.split_once('=').ok_or_else(wrong)?;
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
        return Err("a figure's name has a-z, 0-9 and dashes".to_owned());
    }
    Ok((name.to_owned(), value.parse().map_err(|_| wrong())?))
}

/// Holds evidence against the policy in force, and signs an acceptance if nothing is missing.
///
/// # Errors
/// What keeps the gate from judging. `GATE_UNMET` is printed with the rows.
pub(super) fn run(args: &GateArgs, format: Format) -> Result<Exit, Refusal> {
    input::parent(&args.output)?;
    let trusted = keys(&args.trust)?;
    let (bytes, from) = match (&args.last, &args.policy) {
        (Some(last), _) => {
            let envelope = input::read(last, MAX_ENVELOPE_BYTES)?;
            (last_policy(&envelope, &trusted)?, "last acceptance")
        }
        (None, Some(own)) => (input::read(own, MAX_FILE)?, "operator"),
        (None, None) => {
            return Err(FlightsCode::GatePolicyInvalid.refuse("no policy").into());
        }
    };
    let file = args.last.as_deref().or(args.policy.as_deref());
    let file = file.unwrap_or(Path::new(NEXT_POLICY));
    let policy = GatePolicy::parse(&bytes).map_err(input::named(file))?;
    let keys = policy.authorized(&trusted);
    if keys.is_empty() {
        return Err(FlightsCode::GatePolicyInvalid
            .refuse("its keys are none of the trusted ones")
            .into());
    }
    let candidate = candidate(&args.root)?;
    let own = args.root.join(NEXT_POLICY);
    let next = input::read(&own, MAX_FILE)?;
    GatePolicy::parse(&next).map_err(input::named(&own))?;
    let evidence = args
        .evidence
        .iter()
        .map(|file| Evidence::open(&input::read(file, MAX_ENVELOPE_BYTES)?, &keys))
        .collect::<Result<Vec<_>, _>>()?;
    let fuzz = args
        .fuzz
        .as_deref()
        .map(|file| fuzz(file, &keys))
        .transpose()?;
    let rows = gate::judge(&policy, &candidate, &evidence, fuzz.as_ref());
    let held_against = Digest::of(&bytes);
    let refusal = refusal(&rows);
    let statement = match &refusal {
        Some(_) => None,
        None => {
            let key = key::signer(&args.signer)?;
            let statement = acceptance(&candidate, &rows, held_against, &next, key.as_ref())?;
            input::write(&args.output, &statement, 0o644)?;
            Some(Digest::of(&statement))
        }
    };
    match format {
        Format::Human => people(&rows, &candidate, refusal.as_ref(), &args.output),
        Format::Json => show::print(
            &json!({
                "schema": "flightproof/gate/1", "accepted": statement.is_some(),
                "policy": held_against, "policyFrom": from, "tree": candidate.tree,
                "program": candidate.program, "rows": rows, "statement": statement,
                "code": refusal.as_ref().map(Refusal::code),
            })
            .to_string(),
        ),
    }
    Ok(refusal.map_or(Exit::Passed, |refusal| refusal.exit()))
}

fn refusal(rows: &[Row]) -> Option<Refusal> {
    if gate::accepted(rows) {
        return None;
    }
    let count = |state| rows.iter().filter(|row| row.state == state).count();
    let told = format!(
        "{} of {} demands: {} missed, {} NOT MEASURED",
        rows.len() - count(State::Met),
        rows.len(),
        count(State::Missing),
        count(State::NotMeasured)
    );
    Some(FlightsCode::GateUnmet.refuse(told).into())
}

fn people(rows: &[Row], candidate: &Candidate, refusal: Option<&Refusal>, output: &Path) {
    for row in rows {
        let (word, tone) = match row.state {
            State::Met => ("ok          ", Tone::Good),
            State::Missing => ("MISSING     ", Tone::Bad),
            State::NotMeasured => ("NOT MEASURED", Tone::Bad),
        };
        let told = format!(
            " {:<46} wanted {}, found {}",
            row.what, row.wanted, row.found
        );
        let told = show::cut(&told, show::columns().saturating_sub(word.len()));
        show::print(&format!("{}{told}", show::paint(word, tone)));
    }
    match refusal {
        Some(refusal) => show::refusal("gate", refusal, Format::Human),
        None => {
            let told = format!("{} accepted: {}", candidate.commit, input::shown(output));
            show::verdict(
                &Verdict::passed(Decision::Accepted, "gate", told),
                Format::Human,
            );
        }
    }
}

fn keys(paths: &[PathBuf]) -> Result<Vec<PublicKey>, Refusal> {
    paths.iter().map(|path| key::public(path)).collect()
}

fn fuzz(file: &Path, keys: &[PublicKey]) -> Result<FuzzSummary, Refusal> {
    let mut beside = file.as_os_str().to_owned();
    beside.push(".sig");
    let text = input::read(Path::new(&beside), 1024)?;
    let signature = STANDARD
        .decode(text.trim_ascii())
        .ok()
        .and_then(|bytes| <[u8; 64]>::try_from(bytes).ok())
        .ok_or_else(|| {
            Refusal::from(
                FlightsCode::EvidenceInvalid.refuse("the fuzz summary's signature is none"),
            )
        })?;
    FuzzSummary::open(&input::read(file, MAX_FILE)?, &signature, keys)
}

/// What stands here: the tree of HEAD, this program, and the plans as they are.
///
/// # Errors
/// `TREE_DIFFERS` if what is read here is not what HEAD has.
fn candidate(root: &Path) -> Result<Candidate, Refusal> {
    checked_out(root)?;
    let (commit, subject) = Host::subject(root, "HEAD")?;
    Ok(Candidate {
        tree: subject.snapshot,
        commit,
        program: own_digest()?,
        plans: plans(root)?
            .into_iter()
            .map(|(name, (digest, _))| (name, digest))
            .collect(),
        now: state::unix_seconds(),
    })
}

/// Plans, witnesses and policy are read where they lie, and signed as what HEAD has: so every file of
/// HEAD's tree must lie here as it is there, and nothing else beside the plans.
fn checked_out(root: &Path) -> Result<(), Refusal> {
    let differs = |path: &Path, what: &str| {
        let detail = format!("{}: {what}", input::shown(path));
        Refusal::from(FlightsCode::TreeDiffers.refuse(detail))
    };
    let (git, host) = open_repository(root)?;
    let work = WorkDirectory::to_read()?;
    let archive = importer::tree_of(&git, &host, "HEAD", work.path())?;
    let tree = paws::read(&archive)?;
    let mut known = BTreeSet::new();
    for (entry, bytes) in tree.files() {
        let path = root.join(entry.path.as_str());
        let found = regular::read_arrival(&path, bytes.len() as u64);
        if found.is_ok_and(|found| found == bytes) {
            known.insert(path);
        } else {
            return Err(differs(&path, "not as HEAD has it"));
        }
    }
    let mut folders = vec![root.join("flights")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(path),
                _ if known.contains(&path) => {}
                _ => return Err(differs(&path, "HEAD does not have it")),
            }
        }
    }
    Ok(())
}

fn own_digest() -> Result<Digest, Refusal> {
    let program = std::env::current_exe()
        .and_then(std::fs::read)
        .map_err(|e| {
            Refusal::from(FlightsCode::StateUnavailable.refuse(format!("own program: {e}")))
        })?;
    Ok(Digest::of(&program))
}

/// Digest of each plan that can be read, and whether it expects a refusal.
fn plans(root: &Path) -> Result<BTreeMap<String, (Digest, bool)>, Refusal> {
    let read = |path: &PathBuf| {
        let plan = Plan::read(path).ok()?;
        let order = Order::from_plan(&plan, root).ok()?;
        let digest = order.digest(&plan).ok()?;
        Some((
            plan.name,
            (digest, plan.expect.verdict == Decision::Refused),
        ))
    };
    Ok(plans_below(root)?.iter().filter_map(read).collect())
}

/// Signs what a run came to.
///
/// # Errors
/// What keeps it from being written.
pub(super) fn of_run<'a>(
    results: impl Iterator<Item = &'a PlanResult>,
    mode: &str,
    root: &Path,
    (key, file): (&dyn Signer, &Path),
) -> Result<(), Refusal> {
    checked_out(root)?;
    let plans = plans(root)?;
    let flights = results.filter_map(|result| {
        let (plan, hostile) = plans.get(&result.name)?;
        Some(FlightEvidence {
            name: result.name.clone(),
            plan: *plan,
            hostile: *hostile,
            as_expected: result.failure.is_none(),
        })
    });
    write(root, mode, flights.collect(), BTreeMap::new(), (key, file))
}

/// Signs measured figures.
///
/// # Errors
/// What keeps it from being written.
pub(super) fn figures(args: &EvidenceArgs, format: Format) -> Result<Exit, Refusal> {
    let figures: BTreeMap<String, u64> = args.figures.iter().cloned().collect();
    if figures.len() < args.figures.len() {
        let detail = "a figure is named twice, and only one of them could be signed";
        return Err(FlightsCode::UsageInvalid.refuse(detail).into());
    }
    let key = key::signer(&args.signer)?;
    write(
        &args.root,
        "none",
        Vec::new(),
        figures,
        (key.as_ref(), &args.output),
    )?;
    let told = format!(
        "{}: {}",
        show::count(args.figures.len(), "figure"),
        input::shown(&args.output)
    );
    show::verdict(
        &Verdict::passed(Decision::Accepted, "evidence", told),
        format,
    );
    Ok(Exit::Passed)
}

fn write(
    root: &Path,
    mode: &str,
    flights: Vec<FlightEvidence>,
    figures: BTreeMap<String, u64>,
    (key, file): (&dyn Signer, &Path),
) -> Result<(), Refusal> {
    let evidence = Evidence {
        tree: Host::subject(root, "HEAD")?.1.snapshot,
        program: own_digest()?,
        at: state::unix_seconds(),
        mode: mode.to_owned(),
        flights,
        figures,
    };
    input::write(file, &evidence.sign(key)?, 0o644)
}
