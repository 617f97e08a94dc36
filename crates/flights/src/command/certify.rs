//! `flights certify`: one commit, certified, and admitted if asked for.

use super::cert::envelope;
use super::input;
use super::key::{self, SignerArgs};
use super::refused;
use super::repository::Repository;
use crate::FlightsCode;
use crate::annotations;
use crate::flight::{self, Flown, Host, Lack, Order, Parents, Proven, Seen};
use crate::proof::not_proven;
use crate::report::write_mutants;
use crate::show::{self, Form, Format, Progress, Speak};
use crate::source::{Laid, UNNAMED, directory_name, place_inside};
use crate::{log, state};
use clap::Args;
use flightproof_certifier::certificate::Statement;
use flightproof_certifier::dependency::GrantedPackage;
use flightproof_certifier::key::{PublicKey, Signer};
use flightproof_certifier::narrowing::Narrowing;
use flightproof_certifier::policy::Policy;
use flightproof_certifier::verify::objection;
use flightproof_core::{Digest, Exit, Moment, Refusal, RelPath, Verdict, escape};
use flightproof_evidence::Change;
use std::path::{Path, PathBuf};

/// Most files that are gone and named.
const MAX_GONE: usize = 5;

/// `flights certify`.
#[derive(Args)]
pub(super) struct CertifyArgs {
    /// Directory of the repository; default: the one that the current directory lies in.
    #[arg(long, value_name = "DIR")]
    pub(super) repo: Option<PathBuf>,
    /// Commit the change is based on.
    #[arg(long, value_name = "REV")]
    pub(super) baseline: String,
    /// The candidate: one commit on the baseline.
    #[arg(long, value_name = "REV")]
    pub(super) candidate: String,
    /// Let only this path, and what lies below it, fly (repeatable). Every change must be among them,
    /// and Cargo.toml, Cargo.lock and every member of the workspace.
    #[arg(long, value_name = "PATH")]
    pub(super) narrow: Vec<RelPath>,
    /// The baseline's certificate, and those it builds on (repeatable): all of them, down to the one
    /// without a parent.
    #[arg(long = "parent", value_name = "CERT")]
    pub(super) parents: Vec<PathBuf>,
    /// A public key that those may be of (repeatable); default: that of the signing key.
    #[arg(long, value_name = "PUB", requires = "parents")]
    pub(super) trust: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) flight: FlightArgs,
}

/// How a commit is flown, whichever it is.
#[derive(Args, Clone)]
pub(super) struct FlightArgs {
    #[command(flatten)]
    trial: TrialArgs,
    /// Move this branch from the baseline to the certified commit if everything holds. The repository is then
    /// named with --repo, also where the current directory lies in it.
    #[arg(long, value_name = "BRANCH", requires = "repo")]
    admit: Option<String>,
    #[command(flatten)]
    pub(super) signer: SignerArgs,
    /// Directory for the certificate and the verdict.
    #[arg(short = 'o', long, alias = "output", value_name = "DIR")]
    out: PathBuf,
    /// Name of the repository on the certificate; default: the directory's name.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

/// What judges a commit, and where.
#[derive(Args, Clone)]
pub(super) struct TrialArgs {
    /// Witness file: the cases that judge the candidate.
    #[arg(long, value_name = "FILE")]
    witness: PathBuf,
    /// A path the candidate may change (repeatable). Without any: everything but protected files.
    #[arg(long = "grant", value_name = "PATH")]
    grants: Vec<RelPath>,
    /// A package that may be new in Cargo.lock, by the checksum that stands there (repeatable); beside
    /// --grant Cargo.lock.
    #[arg(long = "grant-package", value_name = "NAME@VERSION#SHA256")]
    packages: Vec<GrantedPackage>,
    /// A path where files may be large, up to 16 MiB each (repeatable). This alone grants nothing.
    #[arg(long, value_name = "PATH")]
    large: Vec<RelPath>,
    /// A name of a file or folder that is protected as well, in any case (repeatable).
    #[arg(long, value_name = "NAME")]
    protect: Vec<String>,
    /// Let changes at and below this path come in though no build compiles them and no case runs them:
    /// a script, another platform's code, a package that is not built (repeatable).
    #[arg(long, value_name = "PATH")]
    uncompiled: Vec<RelPath>,
    /// Rules for generated files, outside the repository: what a rule makes again, byte for byte, needs
    /// no mutants.
    #[arg(long, value_name = "FILE")]
    generated: Option<PathBuf>,
    /// Author and committer the candidate must have.
    #[arg(long, value_name = "NAME <MAIL>")]
    identity: Option<String>,
    /// Where to fly.
    #[arg(long, value_enum, default_value = "local")]
    session: Backend,
    /// Id of the image, with --session docker; default: the only session image of the engine.
    #[arg(long, value_name = "ID", value_parser = image_id)]
    image: Option<Digest>,
    /// Policy the certificate is bound to: its digest stands on it, no branch moves (--admit) unless it is
    /// satisfied, the status is not 0 where it refuses the certificate, whatever others give it later, and an
    /// import holds it against the policy it is given.
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Lock file for a tree without one.
    #[arg(long, value_name = "FILE")]
    lock: Option<PathBuf>,
    /// Toolchain directory to bind into the session; default: rustup's default one.
    #[arg(long, value_name = "DIR")]
    toolchain: Option<PathBuf>,
}

impl TrialArgs {
    /// The order to fly a commit of a repository, given by its baseline and itself.
    ///
    /// # Errors
    /// Files that cannot be read.
    pub(super) fn order(
        &self,
        label: &str,
        repo: &Path,
        ends: (&str, &str),
    ) -> Result<Order, Refusal> {
        let mut order = Order::new(label, ends, &self.witness)?;
        order.grants = (!self.grants.is_empty()).then(|| self.grants.clone());
        order.packages.clone_from(&self.packages);
        order.large.clone_from(&self.large);
        order.protect.clone_from(&self.protect);
        order.uncompiled.clone_from(&self.uncompiled);
        order.identity = self.identity.clone();
        order.source = Some(Laid {
            repository: repo.to_owned(),
        });
        order.witness_place = place_inside(&self.witness, repo);
        if let Some(rules) = &self.generated {
            order.set_generated(rules, place_inside(rules, repo))?;
        }
        if let Some(policy) = &self.policy {
            order.set_policy(policy)?;
        }
        if let Some(lock) = &self.lock {
            order.set_lock(lock)?;
        }
        Ok(order)
    }

    /// The host it flies on, rid of what killed flights left.
    ///
    /// # Errors
    /// What the machine lacks.
    pub(super) fn host(&self) -> Result<Host, Refusal> {
        let toolchain = self.toolchain.as_deref();
        let host = Host::prepare(match self.session {
            Backend::Local => flight::Backend::Local { toolchain },
            Backend::Docker => flight::Backend::Engine { image: self.image },
        })?;
        show::recovered(&host.recover()?);
        Ok(host)
    }
}

/// The session backends of this version.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Backend {
    /// Bubblewrap on this machine.
    Local,
    /// The container engine of DOCKER_HOST, or the one that listens at a usual socket.
    Docker,
}

/// An image's id, with or without the name of its digest.
pub(super) fn image_id(text: &str) -> Result<Digest, String> {
    let digits = text.strip_prefix("sha256:").unwrap_or(text);
    digits
        .parse()
        .map_err(|_| "an image is named by its id: sha256: and 64 digits".to_owned())
}

/// Certifies and prints the verdict, which is in the output directory then, whatever it is. It stands if it
/// cannot be written there: a branch may have moved, and the log has it.
///
/// # Errors
/// An output directory that cannot be used. All else is a verdict.
pub(super) fn run(args: &CertifyArgs, form: Form) -> Result<Exit, Refusal> {
    run_with(args, None, form)
}

/// As [`run`], with the signing key if it was opened before: a passphrase is asked for once, and what hands it
/// over may hold it once.
pub(super) fn run_with(
    args: &CertifyArgs,
    key: Option<Box<dyn Signer>>,
    form: Form,
) -> Result<Exit, Refusal> {
    let out = flight::clear_out(&args.flight.out)?;
    let mut progress = Progress::new(Speak::to(form));
    let mut made = Made::default();
    let (mut verdict, exit) = match fly(args, key, &mut progress, &mut made) {
        Ok(ended) => ended,
        Err(refusal) => {
            let (name, candidate) = (label(args), &args.candidate);
            let refusal = log::refused(progress.stage(), refusal, &name, candidate);
            let exit = refusal.exit();
            let verdict = Verdict::refused(progress.stage(), &refusal);
            (flight::not_let_in(verdict, made.certificate), exit)
        }
    };
    let unwritten = write_mutants(&args.flight.out, &progress.seen).err();
    verdict.notes.extend(unwritten.map(flight::unwritten));
    verdict.notes.extend(out.note());
    let unwritten = flight::write_verdict(&args.flight.out, &verdict).err();
    verdict.notes.extend(unwritten.map(flight::unwritten));
    print(&verdict, &progress.seen, (&args.flight.out, form));
    if form == Form::Human && !made.open.is_empty() {
        // What `review` shows an approver, at once for whoever certifies.
        show::print(&format!("  not proven: {}", made.open.join("; ")));
    }
    Ok(exit)
}

fn print(verdict: &Verdict, seen: &Seen, (out, form): (&Path, Form)) {
    match form {
        Form::Human => {
            show::verdict(&refused::told(verdict, seen), Format::Human);
            let written = out.join("verdict.json");
            if written.is_file() && !refused::survivors(verdict, seen).is_empty() {
                show::print(&format!(
                    "  waivers: to paste, those are the notes in {}",
                    input::shown(&written)
                ));
            }
        }
        Form::Github | Form::Sarif => {
            let mut total = show::human(verdict);
            if verdict.code.is_some() {
                // The finding has the rest.
                total.truncate(total.find('\n').unwrap_or(total.len()));
            }
            annotations::print(&refused::findings(verdict, seen), &total, form);
        }
        form => show::verdict(verdict, form.messages()),
    }
}

/// The repository's name on the certificate.
fn label(args: &CertifyArgs) -> String {
    let name = args.flight.name.clone();
    name.unwrap_or_else(|| match Repository::of(args.repo.as_deref()) {
        Ok(repository) => directory_name(&repository.top),
        Err(_) => UNNAMED.to_owned(),
    })
}

/// What stands of a flight whatever comes after it.
#[derive(Default)]
struct Made {
    certificate: Option<Digest>,
    /// What the certificate does not prove.
    open: Vec<String>,
}

/// The verdict of a flight that was not refused, and how the program ends.
fn fly(
    args: &CertifyArgs,
    key: Option<Box<dyn Signer>>,
    progress: &mut Progress,
    made: &mut Made,
) -> Result<(Verdict, Exit), Refusal> {
    let key = match key {
        Some(key) => key,
        None => key::signer(&args.flight.signer)?,
    };
    let mut order = order(args)?;
    order.parents = parents(args, &key.public_key())?;
    if args.flight.admit.is_some() {
        can_be_met(order.bound.as_ref(), &key.public_key())?;
    }
    let host = args.flight.trial.host()?;
    // What let a commit in and died is in the log now.
    order.attempt = log::attempt(&order.label)?;
    if let Some(branch) = &args.flight.admit {
        host.check_open(&order, branch)?;
    }
    let flown = flight::fly_alone(&order, &host, progress)?;
    let proven = match &flown {
        Flown::Certified(proven) => proven,
        Flown::Refused { stage, refusal } => {
            progress.begin(stage);
            return Err(refusal.clone());
        }
    };
    progress.begin("certify");
    let certificate = flight::certify(proven, key.as_ref())?;
    flight::write_certificate(&args.flight.out, &certificate, proven, key.as_ref())?;
    made.certificate = Some(certificate.id);
    let file = args.flight.out.join("certificate.dsse.json");
    progress.done(file.display());
    let open = &mut made.open;
    open.extend(not_proven(&proven.statement.predicate.inputs));
    open.extend(gone(&proven.captured.changes));
    let mut exit = Exit::Passed;
    let mut verdict = match &args.flight.admit {
        None => {
            let mut verdict = flown.verdict(Some(certificate.id.to_string()));
            if let Some(policy) = &order.bound {
                let (notes, refused) = held_under(policy, &proven.statement, &key.public_key());
                verdict.notes.extend(notes);
                exit = refused;
            }
            verdict
        }
        Some(branch) => {
            progress.begin("admit");
            // What the policy that it is bound to does not let in later does not come in now.
            if let Some(policy) = &order.bound {
                flight::satisfied(policy, &certificate.envelope, proven, &key.public_key())?;
            }
            let admitted = host.admit(&order, proven, branch, certificate.id)?;
            let notes = flight::hand_over(
                &admitted,
                &args.flight.out.join("receipt.json"),
                (proven.captured.head, &proven.captured.repository),
            );
            let ends = (proven.captured.baseline, proven.captured.head);
            let mut verdict = flight::moved("admit", &admitted, branch, ends);
            progress.done(&verdict.detail);
            notes.iter().for_each(|note| progress.done(note));
            verdict.notes.extend(notes);
            Verdict {
                certificate: Some(certificate.id.to_string()),
                ..verdict
            }
        }
    };
    verdict.notes.extend(within_reach(&order, proven));
    Ok((verdict, exit))
}

/// Files that the commit takes away. Nothing need notice that a document is gone.
fn gone(changes: &[Change]) -> Option<String> {
    let gone = changes.iter().filter(|change| change.new.is_none());
    let mut names: Vec<String> = gone
        .map(|change| escape(change.path.as_str(), 200))
        .collect();
    let count = names.len();
    names.truncate(MAX_GONE);
    (count > 0).then(|| {
        let more = if count > MAX_GONE { ", …" } else { "" };
        let files = if count == 1 {
            "file that is"
        } else {
            "files that are"
        };
        format!(
            "that nobody misses the {count} {files} gone: {}{more}",
            names.join(", ")
        )
    })
}

/// A private witness that lies where candidates are made, though in no tree that was captured.
fn within_reach(order: &Order, proven: &Proven) -> Option<String> {
    let private = !proven.statement.predicate.inputs.witness.public;
    let place = order.witness_place.as_ref().filter(|_| private)?;
    Some(format!(
        "the witness lies in the repository's directory ({}): whoever makes candidates there can read it; keep \
         it outside",
        escape(place.as_str(), 200)
    ))
}

/// Refuses a policy that no certificate meets which this key has only just signed.
fn can_be_met(policy: Option<&Policy>, key: &PublicKey) -> Result<(), Refusal> {
    let lacks = policy.map_or_else(Vec::new, |policy| lacks(policy, key));
    if lacks.is_empty() {
        return Ok(());
    }
    let lacks: Vec<String> = lacks.iter().map(ToString::to_string).collect();
    Err(FlightsCode::PolicyWantsMore.refuse(lacks.join(", ")).into())
}

fn lacks(policy: &Policy, key: &PublicKey) -> Vec<Lack> {
    flight::lacks(policy, key, Moment::from_unix(state::unix_seconds()))
}

/// What the policy has against a held certificate, of this key, in notes. What others can give it later is no
/// refusal; the first thing that is one decides how the program ends.
fn held_under(policy: &Policy, statement: &Statement, key: &PublicKey) -> (Vec<String>, Exit) {
    let mut notes = Vec::new();
    let mut refused: Vec<Refusal> = Vec::new();
    for lack in lacks(policy, key) {
        match lack {
            Lack::Signer(refusal) => refused.push(refusal.into()),
            Lack::Others(_) => notes.push(format!("the policy wants beside it: {lack}")),
        }
    }
    refused.extend(objection(statement, policy).map(Refusal::from));
    let exit = refused.first().map_or(Exit::Passed, Refusal::exit);
    let told = refused.iter();
    notes.extend(told.map(|refusal| format!("the policy does not let it in: {refusal}")));
    (notes, exit)
}

/// What the baseline descends from.
fn parents(args: &CertifyArgs, own: &PublicKey) -> Result<Parents, Refusal> {
    let envelopes = args.parents.iter().map(|path| envelope(path));
    let trusted = args.trust.iter().map(|path| key::public(path));
    let trusted: Vec<PublicKey> = trusted.collect::<Result<_, _>>()?;
    Ok(Parents {
        envelopes: envelopes.collect::<Result<_, _>>()?,
        keys: if trusted.is_empty() {
            vec![*own]
        } else {
            trusted
        },
    })
}

fn order(args: &CertifyArgs) -> Result<Order, Refusal> {
    let ends = (args.baseline.as_str(), args.candidate.as_str());
    let repo = Repository::of(args.repo.as_deref())?.top;
    let mut order = args.flight.trial.order(&label(args), &repo, ends)?;
    if !args.narrow.is_empty() {
        order.narrow = Some(Narrowing::new(args.narrow.clone())?);
    }
    order.admit = args.flight.admit.clone();
    Ok(order)
}
