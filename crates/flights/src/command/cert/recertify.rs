//! `flights cert recertify`: the gates once more, elsewhere, and what they come to beside what a
//! certificate claims.

use super::super::certify::TrialArgs;
use super::super::repository::Repository;
use super::{envelope, public_keys};
use crate::FlightsCode;
use crate::flight::{self, Flown, Opening, Order, Parents};
use crate::show::{self, Format, Progress, Speak};
use clap::Args;
use flightproof_certifier::certificate::{Admission, Statement};
use flightproof_certifier::dsse;
use flightproof_certifier::narrowing::Narrowing;
use flightproof_core::{Decision, Digest, Exit, Refusal, Verdict, escape};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// `flights cert recertify`.
#[derive(Args)]
pub(in super::super) struct RecertifyArgs {
    /// The certificate.
    certificate: PathBuf,
    /// A public key that signed the certificate (repeatable).
    #[arg(long = "key", value_name = "PUB", required = true)]
    keys: Vec<PathBuf>,
    /// `opening.json` of the flight: without it nobody can tell the witness that judged.
    #[arg(long, value_name = "FILE")]
    opening: PathBuf,
    /// Directory of a repository that has the certified commit; default: the one that the current directory
    /// lies in.
    #[arg(long, value_name = "DIR")]
    repo: Option<PathBuf>,
    /// A certificate that the baseline builds on (repeatable), as it was given to the flight.
    #[arg(long = "parent", value_name = "CERT")]
    parents: Vec<PathBuf>,
    #[command(flatten)]
    trial: TrialArgs,
}

/// What is another machine's or another flight's by right, with the reason. Everything else must be
/// as it was.
const MAY_DIFFER: &[(&str, &str)] = &[
    ("attestation/backend", "where it flew"),
    ("attestation/kernel", "the machine's kernel"),
    ("attestation/processor", "the machine's processor"),
    ("attestation/sandbox", "the machine's sandbox program"),
    ("attestation/runner", "the build of this program"),
    ("attestation/runnerBuild", "the build of this program"),
    (
        "attestation/found",
        "the machine's limits, none weaker than asked",
    ),
    ("attestation/denied", "what denied the forbidden acts there"),
    (
        "sandbox-spec/asked",
        "what this build of the program asks for",
    ),
    (
        "session-build/program",
        "holds a name that is drawn for each flight",
    ),
    (
        "mutation/killedBy",
        "which case kills first follows the order that is drawn",
    ),
    ("spend", "what its agent cost, and no agent flies here"),
    ("capture/bundle", "how the machine's git packs"),
    ("capture/bundleBytes", "how the machine's git packs"),
];

/// What older certificates do not say. Nothing claimed is nothing that could be otherwise.
const LATER: &[&str] = &["image-digest/target", "session-build/settings"];

/// Most bytes of one value in a note.
const MAX_VALUE: usize = 100;

/// Flies the commit of a certificate again and holds every claim against it.
///
/// # Errors
/// A certificate that none of the keys signed, files that cannot be read, what the machine lacks;
/// `RECERTIFY_DIFFERS` with the fields.
pub(super) fn run(args: &RecertifyArgs, format: Format) -> Result<Exit, Refusal> {
    let signed = dsse::open(&envelope(&args.certificate)?, &public_keys(&args.keys)?, 1)?;
    let claimed = Statement::parse(signed.bytes())?;
    let id = Digest::of(signed.bytes());
    let opening = opening(&args.opening, id)?;
    let order = order(args, &claimed, &opening)?;
    same_witness(&order, &claimed, &opening)?;
    let host = args.trial.host()?;
    let mut progress = Progress::new(match format {
        Format::Human => Speak::Stages,
        Format::Json => Speak::Nothing,
    });
    let again = match flight::fly_alone(&order, &host, &mut progress)? {
        Flown::Certified(proven) => proven.statement,
        Flown::Refused { stage, refusal } => return Err(refused(stage, refusal)),
    };
    progress.begin("recertify");
    let differences = differences(&claimed, &again);
    let (by_right, others): (Vec<_>, Vec<_>) = differences
        .into_iter()
        .partition(|difference| difference.reason().is_some());
    if !others.is_empty() {
        return Err(differs(&others));
    }
    let request = &claimed.predicate.inputs.request;
    let verdict = Verdict {
        certificate: Some(id.to_string()),
        notes: by_right.iter().map(Difference::to_string).collect(),
        ..Verdict::passed(
            Decision::Accepted,
            "recertify",
            format!(
                "commit {} of {}: flown again, it comes to the same; {} fields differ by right",
                request.head,
                escape(&request.repository, 80),
                by_right.len()
            ),
        )
    };
    show::verdict(&verdict, format);
    Ok(Exit::Passed)
}

fn opening(path: &Path, certificate: Digest) -> Result<Opening, Refusal> {
    let opening = Opening::read(path)?;
    if opening.certificate == certificate {
        return Ok(opening);
    }
    Err(FlightsCode::OpeningUnreadable
        .refuse(format!(
            "{}: it opens certificate {}, not {certificate}",
            path.display(),
            opening.certificate
        ))
        .into())
}

/// The flight that the certificate speaks of, of the commit that it names.
fn order(args: &RecertifyArgs, claimed: &Statement, opening: &Opening) -> Result<Order, Refusal> {
    let inputs = &claimed.predicate.inputs;
    let request = &inputs.request;
    let ends = (request.baseline.to_string(), request.head.to_string());
    let repo = Repository::of(args.repo.as_deref())?.top;
    let mut order = args
        .trial
        .order(&request.repository, &repo, (&ends.0, &ends.1))?;
    order.plan = request.plan.clone();
    order.attempt = request.attempt;
    order.admit = match &claimed.predicate.admission {
        Admission::Held {} => None,
        Admission::Admitted { branch } => Some(branch.clone()),
    };
    if let Some(narrowed) = &inputs.capture.narrowed {
        order.narrow = Some(Narrowing::new(narrowed.paths.clone())?);
    }
    order.feedback = inputs.witness.feedback;
    let parents = args.parents.iter().map(|path| envelope(path));
    order.parents = Parents {
        envelopes: parents.collect::<Result<_, _>>()?,
        keys: public_keys(&args.keys)?,
    };
    order.sealed_as = Some(opening.secrets);
    Ok(order)
}

/// Another witness is seen before anything flies.
fn same_witness(order: &Order, claimed: &Statement, opening: &Opening) -> Result<(), Refusal> {
    let given = order.witness()?.commitment(&opening.secrets.salt)?;
    let claimed = claimed.predicate.inputs.witness.commitment;
    if given == claimed {
        return Ok(());
    }
    Err(differs(&[Difference {
        place: "witness/commitment".to_owned(),
        claimed: Some(claimed.to_string()),
        found: Some(given.to_string()),
    }]))
}

/// A candidate that is refused now is no longer what was certified. What the machine lacks says
/// nothing about it.
fn refused(stage: &str, refusal: Refusal) -> Refusal {
    match refusal.exit() {
        Exit::Refused | Exit::Policy => {
            let why = FlightsCode::RecertifyDiffers.refuse("it is refused now");
            let notes = std::iter::once(format!("at {stage}: {refusal}")).chain(refusal.notes);
            Refusal::from(why).with_notes(notes)
        }
        _ => refusal,
    }
}

fn differs(differences: &[Difference]) -> Refusal {
    let places: Vec<&str> = differences.iter().map(|d| d.place.as_str()).collect();
    Refusal::from(FlightsCode::RecertifyDiffers.refuse(places.join(", ")))
        .with_notes(differences.iter().map(Difference::to_string))
}

/// One field with two values.
struct Difference {
    /// Its place in the inputs, or in the statement.
    place: String,
    claimed: Option<String>,
    found: Option<String>,
}

impl Difference {
    /// Why it may differ, if it may.
    fn reason(&self) -> Option<&'static str> {
        let below = |place: &str| {
            let rest = self.place.strip_prefix(place);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if self.claimed.is_none() && LATER.iter().any(|place| below(place)) {
            return Some("the certificate does not say it");
        }
        let mut known = MAY_DIFFER.iter();
        known.find(|(place, _)| below(place)).map(|(_, why)| *why)
    }
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = |value: &Option<String>| match value {
            Some(value) => escape(value, MAX_VALUE),
            None => "nothing".to_owned(),
        };
        write!(
            f,
            "{}: claimed {}, found {}",
            escape(&self.place, MAX_VALUE),
            shown(&self.claimed),
            shown(&self.found)
        )?;
        match self.reason() {
            Some(why) => write!(f, " ({why})"),
            None => Ok(()),
        }
    }
}

fn differences(claimed: &Statement, again: &Statement) -> Vec<Difference> {
    let (claimed, again) = (fields(claimed), fields(again));
    let places: BTreeSet<&String> = claimed.keys().chain(again.keys()).collect();
    places
        .into_iter()
        .filter(|place| claimed.get(*place) != again.get(*place))
        .map(|place| Difference {
            place: place.clone(),
            claimed: claimed.get(place).cloned(),
            found: again.get(place).cloned(),
        })
        .collect()
}

/// Every value of a statement by its place.
fn fields(statement: &Statement) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    let document = serde_json::to_value(statement).unwrap_or_default();
    flatten(&document, "", &mut out);
    out
}

fn flatten(value: &Value, place: &str, out: &mut BTreeMap<String, String>) {
    let below = |name: &str| match place {
        "" => name.to_owned(),
        _ => format!("{place}/{name}"),
    };
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, value) in fields {
                flatten(value, &below(name), out);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (number, value) in items.iter().enumerate() {
                flatten(value, &below(&number.to_string()), out);
            }
        }
        other => {
            let place = place.strip_prefix("predicate/inputs/").unwrap_or(place);
            out.insert(place.to_owned(), other.to_string());
        }
    }
}
