//! Everything that must hold before an agent is started and money is held for it.

use super::AgentPlan;
use super::plan::AgentSource;
use super::recovery::{folder, unavailable};
use super::sealed::Furniture;
use crate::flight::{self, Host, Order, WorkDirectory, needed};
use crate::source::{self, Laid};
use crate::transcript::Tape;
use crate::{FlightsCode, regular, state};
use flightproof_agent::proxy::Credential;
use flightproof_agent::proxy::Network;
use flightproof_agent::repair::{Leg, Repair};
use flightproof_agent::{
    AgentCode, Binary, Instructions, Limits, LoopLock, LoopRecord, Profile, RunFolder, RunKey,
};
use flightproof_archive::paws;
use flightproof_certifier::generated::GeneratedRules;
use flightproof_certifier::key::Signer;
use flightproof_certifier::policy::{MAX_POLICY_BYTES, Policy};
use flightproof_certifier::tree::Tree;
use flightproof_certifier::witness::Witness;
use flightproof_core::{Bytes, CommitId, Digest, MicroUsd, Moment, Refusal, escape};
use flightproof_importer::Checkout;
use flightproof_ledger::{Cap, Ledger, Scope};
use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

/// Who commits in the session, where the plan does not say.
const AUTHOR: &str = "Agent <agent@flightproof.invalid>";

/// What is asked for.
pub struct Asked<'a> {
    /// The plan.
    pub plan: &'a AgentPlan,
    /// What its paths are relative to.
    pub root: &'a Path,
    /// How many attempts, in place of the plan's.
    pub attempts: Option<NonZeroU32>,
    /// The branch that a certified commit moves.
    pub admit: Option<&'a str>,
    /// Hosts, beside the provider's own, that the operator gives the provider's key to.
    pub key_for: &'a [String],
    /// The signing key; a replay has none, and signs nothing.
    pub key: Option<&'a dyn Signer>,
    /// Where certificate, bundle and report go; a replay writes none.
    pub out: &'a Path,
}

/// A flight of an agent that may begin.
pub struct Sortie<'a> {
    pub(super) asked: Asked<'a>,
    /// Absent where a recording answers.
    pub(super) host: Option<&'a Host>,
    pub(super) tape: Tape,
    /// Digest of the unsigned certificate that the last attempt came to.
    pub(super) predicate: Option<Digest>,
    pub(super) name: RunKey,
    pub(super) profile: Profile,
    pub(super) limits: Limits,
    pub(super) binary: Binary,
    pub(super) instructions: Instructions,
    pub(super) furniture: Furniture,
    pub(super) order: Order,
    pub(super) policy: Policy,
    pub(super) repair: Repair,
    pub(super) ledger: Ledger,
    pub(super) folder: RunFolder,
    pub(super) record: LoopRecord,
    pub(super) network: Option<Network>,
    _lock: LoopLock,
    /// A repository that was made for this flight lies here.
    _work: WorkDirectory,
}

impl<'a> Sortie<'a> {
    /// Reads what the plan names, and refuses a plan that could never succeed. Nothing is held and
    /// nothing is started.
    ///
    /// # Errors
    /// The agent's for profile, limits, task and program; `PLAN_HOPELESS`; those of files, of the
    /// policy, the witness and the repository.
    pub fn prepare(
        asked: Asked<'a>,
        host: Option<&'a Host>,
        mut tape: Tape,
    ) -> Result<Self, Refusal> {
        let plan = asked.plan;
        let profile = Profile::built_in(&plan.agent.profile)?;
        let limits = plan.agent.admit(&profile, &plan.operator_limits()?)?;
        credential(&asked, &profile)?;
        let binary = program(&asked)?;
        let (policy, bound) = policy(&asked.root.join(&plan.policy.file))?;
        let work = match host {
            Some(host) => host.work_directory()?,
            None => WorkDirectory::to_read()?,
        };
        let mut order = order(&asked, host.map(|_| &work))?;
        order.bind(policy.clone(), bound);
        let checkout: Baseline = tape.exchange("checkout", &order.capture_input(), || {
            needed(host)?.checkout(&order).map(Baseline::from)
        })?;
        let unpacked = paws::read(&checkout.archive)?;
        let tree = flight::tree(&unpacked);
        let legs = legs(&asked, &policy, &order, &tree)?;
        let attempts = asked.attempts.unwrap_or(plan.agent.attempts);
        let repair = Repair::start(attempts, &legs)?;
        if let Some(branch) = asked.admit {
            needed(host)?.check_branch(&order, branch)?;
        }
        let instructions = match plan.agent.instructions {
            true => Instructions::read(|name| tree.file(name).map(<[u8]>::to_vec))?,
            false => Instructions::default(),
        };
        let network = network(plan)?;
        let (folder, ledger) = match host {
            Some(host) => (folder(host)?, host.ledger()?),
            None => books(work.path())?,
        };
        let name = new_key(&mut tape)?;
        let lock = folder.lock(&name).map_err(unavailable)?;
        let lock = lock.ok_or_else(|| unavailable(format!("{name} is locked")))?;
        Ok(Self {
            furniture: furniture(checkout, plan),
            record: LoopRecord {
                name: name.clone(),
                plan: plan.name.clone(),
                runs: Vec::new(),
                history: Vec::new(),
                end: None,
            },
            asked,
            host,
            tape,
            predicate: None,
            name,
            profile,
            limits,
            binary,
            instructions,
            order,
            policy,
            repair,
            network,
            ledger,
            folder,
            _lock: lock,
            _work: work,
        })
    }
}

/// The baseline as it is laid out in sessions.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Baseline {
    commit: CommitId,
    pack: Bytes,
    archive: Bytes,
}

impl From<Checkout> for Baseline {
    fn from(checkout: Checkout) -> Self {
        Self {
            commit: checkout.commit,
            pack: Bytes(checkout.pack),
            archive: Bytes(checkout.archive),
        }
    }
}

/// Books for a replay, which holds no money of anybody.
fn books(work: &Path) -> Result<(RunFolder, Ledger), Refusal> {
    let folder = RunFolder::open(&work.join("agent")).map_err(unavailable)?;
    let mut ledger = Ledger::open(&work.join("ledger"))?;
    let all = Cap::usd(MicroUsd::MAX);
    ledger.state_cap(Scope::Total, all, state::unix_seconds())?;
    Ok((folder, ledger))
}

/// The authorities that vouch for providers: the system's, or those of `SSL_CERT_FILE`.
const AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// The way to providers elsewhere; a plan that names none needs no authorities of this machine.
fn network(plan: &AgentPlan) -> Result<Option<Network>, Refusal> {
    let endpoints = plan.agent.read_endpoints()?;
    if endpoints.iter().all(|e| Network::is_in_the_clear(e.host())) {
        return Ok(None);
    }
    let named = std::env::var_os("SSL_CERT_FILE").filter(|file| !file.is_empty());
    let file = named.map_or_else(|| PathBuf::from(AUTHORITIES), PathBuf::from);
    Network::trusting(&file)
        .map(Some)
        .map_err(|e| AgentCode::UpstreamFailed.refuse(e).into())
}

/// A fresh key of a loop or a run.
pub(super) fn new_key(tape: &mut Tape) -> Result<RunKey, Refusal> {
    let entropy = tape.entropy()?;
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&entropy[..16]);
    Ok(RunKey::from_entropy(bytes))
}

fn furniture(checkout: Baseline, plan: &AgentPlan) -> Furniture {
    let author = plan.change.identity.as_deref().unwrap_or(AUTHOR);
    Furniture {
        commit: checkout.commit,
        pack: checkout.pack.0,
        archive: checkout.archive.0,
        author: author.to_owned(),
    }
}

/// The program, exactly the one that is named.
fn program(asked: &Asked<'_>) -> Result<Binary, Refusal> {
    let named = &asked.plan.program;
    let binary = Binary::inspect(&asked.root.join(&named.path))?;
    if binary.digest() == named.sha256 {
        return Ok(binary);
    }
    Err(AgentCode::BinaryChanged
        .refuse(format!(
            "{}: the plan names {}, it is {}",
            escape(binary.path().as_os_str().as_encoded_bytes(), 200),
            named.sha256,
            binary.digest()
        ))
        .into())
}

/// The operator's key for the provider, if there is one. A plan may come from anybody: the hosts that
/// it names get the key only if they are the provider's own, or the operator said so.
pub(super) fn credential(
    asked: &Asked<'_>,
    profile: &Profile,
) -> Result<Option<Credential>, Refusal> {
    let endpoints = asked.plan.agent.read_endpoints()?;
    let Some(provider) = profile.provider().filter(|_| !endpoints.is_empty()) else {
        return Ok(None);
    };
    let Some(value) = std::env::var_os(provider.key()) else {
        return Ok(None);
    };
    let known = |host: &str| provider.is_own(host) || asked.key_for.iter().any(|own| own == host);
    if let Some(other) = endpoints.iter().find(|endpoint| !known(endpoint.host())) {
        let detail = format!("{} would get {}", other.host(), provider.key());
        return Err(AgentCode::CredentialHost.refuse(detail).into());
    }
    let value = value.to_str().ok_or_else(|| {
        AgentCode::CredentialHost.refuse(format!("{} is not text", provider.key()))
    })?;
    Ok(Some(Credential::new(provider.header(), value)?))
}

fn policy(path: &Path) -> Result<(Policy, Digest), Refusal> {
    let bytes = regular::read(path, MAX_POLICY_BYTES as u64).map_err(|e| {
        Refusal::from(FlightsCode::FileUnreadable.refuse(format!("{}: {e}", regular::shown(path))))
    })?;
    let policy = Policy::parse(&bytes).map_err(regular::named(path))?;
    Ok((policy, Digest::of(&bytes)))
}

/// The order of the flight that judges each attempt. Its bundle comes with the attempt. Without a place to
/// work nothing is laid out.
fn order(asked: &Asked<'_>, work: Option<&WorkDirectory>) -> Result<Order, Refusal> {
    let (plan, root) = (asked.plan, asked.root);
    let witness = root.join(&plan.witness.file);
    let (label, baseline, laid, place) = match &plan.source {
        AgentSource::Git {
            repository,
            baseline,
        } => {
            let repository = root.join(repository);
            let place = source::place_inside(&witness, &repository);
            (
                source::directory_name(&repository),
                baseline.clone(),
                work.map(|_| Laid { repository }),
                place,
            )
        }
        AgentSource::Tree { baseline } => {
            if asked.admit.is_some() {
                let what = "a directory has no branch that could move";
                return Err(FlightsCode::PlanInvalid.refuse(what).into());
            }
            let folder = root.join(baseline);
            let lay = |work: &WorkDirectory| source::lay_baseline(&folder, &plan.name, work.path());
            let laid = work.map(lay).transpose()?;
            let place = source::place_inside(&witness, &folder);
            (plan.name.clone(), source::BASELINE.to_owned(), laid, place)
        }
    };
    let mut order = Order::new(&label, (&baseline, ""), &witness)?;
    order.plan = Some(plan.name.clone());
    order.generated = GeneratedRules::new(plan.generated.clone())?;
    order.set_change(&plan.change, root)?;
    order.feedback = Some(plan.feedback);
    order.admit = asked.admit.map(str::to_owned);
    order.source = laid;
    order.witness_place = place;
    Ok(order)
}

/// What the plan demands of every attempt, and what it lacks for it.
fn legs(
    asked: &Asked<'_>,
    policy: &Policy,
    order: &Order,
    tree: &Tree<'_>,
) -> Result<Vec<Leg>, Refusal> {
    let witness = order.witness()?;
    let exposed = witness.refuse_if_inside(tree, &[], order.witness_place.as_ref());
    let exposed = exposed.err().map(|refused| {
        let path = refused.detail;
        format!("expected answers that the agent cannot read: {path} is in its checkout")
    });
    Ok(vec![
        Leg {
            name: "policy".to_owned(),
            lacks: policy_lacks(asked, policy, order, &witness),
        },
        Leg {
            name: "witness".to_owned(),
            lacks: exposed.into_iter().collect(),
        },
    ])
}

fn policy_lacks(
    asked: &Asked<'_>,
    policy: &Policy,
    order: &Order,
    witness: &Witness,
) -> Vec<String> {
    let allow = policy.allow();
    let now = Moment::from_unix(crate::state::unix_seconds());
    let other = policy.repository().filter(|name| *name != order.label);
    let attempts = asked.attempts.unwrap_or(asked.plan.agent.attempts);
    let too_many = policy.require().attempt(attempts.get().into()).err();
    let of_key = asked
        .key
        .map(|key| flight::lacks(policy, &key.public_key(), now));
    let of_key = of_key.unwrap_or_default();
    let of_key = of_key.iter().map(ToString::to_string);
    let of_flight = [
        (witness.is_public() && !allow.public_witness)
            .then(|| "a private witness, or allow.public_witness".to_owned()),
        (order.narrow.is_some() && !allow.narrowed)
            .then(|| "the whole tree, or allow.narrowed".to_owned()),
        other.map(|name| format!("the repository {name}")),
        too_many.map(|refused| format!("fewer attempts: {}", refused.detail)),
        policy
            .witness()
            .map(|_| "the commitment of one witness, and each flight salts its own".to_owned()),
    ];
    of_key.chain(of_flight.into_iter().flatten()).collect()
}
