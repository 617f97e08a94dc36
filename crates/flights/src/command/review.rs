//! `flights review`: what an approver must see before signing: the change, line by line, with what was
//! proven of each, and what was not.

use super::cert::{BesideArgs, envelope, policy, public_keys};
use super::input::shown;
use super::repository::Repository;
use crate::flight::{self, Opening, Order, WorkDirectory, open_repository};
use crate::patch::{self, Kind};
use crate::proof::{not_proven, proven};
use crate::show::{self, Format, Tone};
use crate::state;
use clap::Args;
use flightproof_archive::paws;
use flightproof_certifier::CertifierCode;
use flightproof_certifier::certification::{Account, Certification, MutantFate};
use flightproof_certifier::claim::Inputs;
use flightproof_certifier::generated::Regenerated;
use flightproof_certifier::narrowing::Narrowing;
use flightproof_certifier::tree::Tree;
use flightproof_certifier::verify::{ExpectedSubject, open};
use flightproof_certifier::witness::Witness;
use flightproof_core::{Digest, Exit, Refusal, RelPath, escape};
use flightproof_evidence::{Captured, Change};
use flightproof_importer::{self as importer, CaptureRequest, Grants};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Most bytes of a line of source, and of a reason, in a review.
const MAX_TEXT: usize = 400;
/// Unchanged lines around changed ones.
const CONTEXT: usize = 3;

/// `flights review`.
#[derive(Args)]
pub(super) struct ReviewArgs {
    /// The certificate (a DSSE envelope).
    certificate: PathBuf,
    /// A trusted public key (repeatable).
    #[arg(long = "key", value_name = "PUB", required = true)]
    keys: Vec<PathBuf>,
    /// What the certificate must prove.
    #[arg(long, value_name = "FILE")]
    policy: PathBuf,
    #[command(flatten)]
    beside: BesideArgs,
    /// Repository that has the commit; default: the one that the current directory lies in.
    #[arg(long, value_name = "DIR")]
    repo: Option<PathBuf>,
    /// A path the commit was allowed to change (repeatable), as for `certify`: without any, everything but
    /// protected files; with one, nothing beside those that are named.
    #[arg(long = "grant", value_name = "PATH")]
    grants: Vec<RelPath>,
    /// A path where files of the commit may be large (repeatable).
    #[arg(long, value_name = "PATH")]
    large: Vec<RelPath>,
    /// The witness it was certified with: tells which changed lines carry mutants.
    #[arg(long, value_name = "FILE")]
    witness: Option<PathBuf>,
    /// `opening.json` of the flight: shows that it is that witness. Default: the one beside the
    /// certificate; without one, its number of cases must do.
    #[arg(long, value_name = "FILE", requires = "witness")]
    opening: Option<PathBuf>,
}

/// Verifies the certificate, then shows the change it is about.
///
/// # Errors
/// What the certificate is refused for; what keeps the change from being read.
pub(super) fn run(args: &ReviewArgs, format: Format) -> Result<Exit, Refusal> {
    let keys = public_keys(&args.keys)?;
    let policy = policy(&args.policy)?;
    let repo = Repository::of(args.repo.as_deref())?.top;
    let envelope = envelope(&args.certificate)?;
    let beside = args.beside.read(&policy, &keys)?;
    let opened = open(&envelope, &policy, &keys, &beside)?;
    let statement = opened.statement();
    let inputs = &statement.predicate.inputs;
    let captured = capture(args, &repo, inputs)?;
    // About exactly the tree that was read, and good enough for the policy, or there is nothing to see.
    // Whoever reviews may be about to sign the second statement, so none is asked for.
    let subject = ExpectedSubject {
        snapshot: captured.snapshot,
        kept: captured.kept_digest,
    };
    opened.holds(&subject)?;
    let account = account(args, &captured, inputs)?;
    let (proven, open) = (proven(statement), not_proven(inputs));
    match format {
        Format::Json => {
            let files: Vec<Value> = captured
                .changes
                .iter()
                .map(|c| file_json(c, account.as_ref()))
                .collect();
            show::print(
                &json!({
                    "schema": "flightproof/review/1", "certificate": opened.id(),
                    "commit": captured.head, "baseline": captured.baseline,
                    "proven": proven, "notProven": open, "files": files,
                })
                .to_string(),
            );
        }
        Format::Human => {
            show::print(&format!(
                "commit {} on {}, by {}\ncertificate {}",
                captured.head,
                captured.baseline,
                escape(&captured.author, MAX_TEXT),
                opened.id()
            ));
            captured
                .changes
                .iter()
                .for_each(|c| file_human(c, account.as_ref()));
            proven
                .iter()
                .for_each(|line| show::print(&format!("proven      {line}")));
            if account.is_none() {
                show::print(
                    "mutants     not told by line: --witness FILE, the witness it was certified with, tells which changed lines carry some",
                );
            }
            open.iter().for_each(|line| {
                show::print(&format!("{} {line}", show::paint("NOT PROVEN ", Tone::Bad)));
            });
            if let Some(rule) = opened.policy().admission() {
                show::print(&format!(
                    "wanted      a second statement by {} of {}, if it is not there yet",
                    rule.threshold,
                    show::count(rule.keys.len(), "key")
                ));
            }
            show::print(&next(args, &repo, opened.id()));
        }
    }
    Ok(Exit::Passed)
}

/// The command with which an approver signs, unless the commit came in by this certificate.
fn next(args: &ReviewArgs, repo: &Path, certificate: Digest) -> String {
    let receipt = args.certificate.with_file_name("receipt.json");
    if let Some(branch) = flight::branch_of_receipt(&receipt, certificate) {
        let (branch, receipt) = (escape(branch, MAX_TEXT), shown(&receipt));
        return format!("in already: {branch} was moved to it, as {receipt} says");
    }
    let keys = args
        .keys
        .iter()
        .map(|key| format!(" --trust {}", shown(key)));
    format!(
        "to sign and let it in: flights admit {} --repo {} --branch BRANCH --policy {}{}",
        shown(&args.certificate),
        shown(repo),
        shown(&args.policy),
        String::from_iter(keys)
    )
}

/// The certified commit, read out of the repository and hashed again.
fn capture(args: &ReviewArgs, repo: &Path, inputs: &Inputs) -> Result<Captured, Refusal> {
    let (git, repository) = open_repository(repo)?;
    let work = WorkDirectory::to_read()?;
    let request = CaptureRequest {
        name: &inputs.request.repository,
        baseline: &inputs.request.baseline.to_string(),
        candidate: &inputs.request.head.to_string(),
        grants: &Grants::new(args.grants.clone()).with_large(args.large.clone()),
        identity: None,
        squash: false,
        scratch: work.path(),
        now: state::unix_seconds(),
    };
    Ok(importer::capture(&git, &repository, &request)?.captured)
}

/// The mutants of the change, made anew as text. Their fates are on the certificate as counts.
fn account(
    args: &ReviewArgs,
    captured: &Captured,
    inputs: &Inputs,
) -> Result<Option<Account>, Refusal> {
    let Some(file) = &args.witness else {
        return Ok(None);
    };
    let order = Order::new(&captured.repository, ("", ""), file)?;
    let witness = order.witness()?;
    check_witness(args, &witness, inputs)?;
    let unpacked = paws::read(&captured.archive)?;
    let narrowed = inputs.capture.narrowed.as_ref();
    let narrowing = narrowed.map(|claim| Narrowing::new(claim.paths.clone()));
    let narrowing = narrowing.transpose()?;
    let files = unpacked.files().map(|(entry, bytes)| (&entry.path, bytes));
    let flew = |path: &RelPath| narrowing.as_ref().is_none_or(|part| part.admits(path));
    let tree: Tree<'_> = files.filter(|(path, _)| flew(path)).collect();
    // A suite's tests are the baseline's; what is drawn for them is no part of the account.
    let baseline = tree.before(&captured.changes);
    let witness = witness.found(&baseline, &captured.changes, &[0; 32])?;
    // Which text a mutant has follows from the change alone; entropy only names its selector.
    let made = Regenerated::claimed(&inputs.mutation.lines.generated);
    let machine = Certification::beside(made, captured, &tree, &witness, [0; 32])
        .map_err(|failure| failure.refusal)?;
    Ok(Some(machine.account()))
}

/// Another witness would tell of other mutants.
fn check_witness(args: &ReviewArgs, witness: &Witness, inputs: &Inputs) -> Result<(), Refusal> {
    let claim = &inputs.witness;
    let beside = args.certificate.with_file_name("opening.json");
    let opening = match &args.opening {
        Some(named) => Some(Opening::read(named)?),
        None => beside
            .is_file()
            .then(|| Opening::read(&beside))
            .transpose()?,
    };
    let found = match opening {
        Some(opening) => witness.commitment(&opening.secrets.salt)? == claim.commitment,
        // What was generated, and the programs of a suite, are in no file.
        None => {
            let generated = claim.differential.as_ref().map(|claim| claim.generated);
            let written = match claim.suite {
                Some(_) => 0,
                None => claim.cases.saturating_sub(generated.unwrap_or(0)),
            };
            let kinds = (witness.suite().is_some(), witness.differential().is_some());
            kinds == (claim.suite.is_some(), generated.is_some())
                && (witness.cases().len() as u64, witness.is_public()) == (written, claim.public)
        }
    };
    match found {
        true => Ok(()),
        false => Err(CertifierCode::WitnessMismatch
            .refuse("it is not the one that the certificate commits to")
            .into()),
    }
}

/// How many mutants a line of the new text carries that compile.
fn mutants(path: &str, line: u32, account: Option<&Account>) -> usize {
    let all = account.iter().flat_map(|account| &account.mutants);
    let here = all.filter(|m| m.line == line && m.file.as_str() == path);
    here.filter(|m| m.fate != MutantFate::Unviable).count()
}

/// What was shown of a line of the new text.
fn class(path: &str, line: u32, account: Option<&Account>) -> String {
    let mutants = mutants(path, line, account);
    let Some(account) = account.filter(|_| line != 0) else {
        return String::new();
    };
    let silent = account
        .silent
        .iter()
        .find(|s| s.line == line && s.file.as_str() == path);
    match (mutants, silent) {
        (_, Some(silent)) if silent.waived => format!("waived: {}", silent.why),
        (0, Some(silent)) => format!("no mutant: {}", silent.why),
        (0, None) => account
            .class(path, line)
            .map_or_else(String::new, |class| class.name().to_owned()),
        (n, _) => show::count(n, "mutant"),
    }
}

fn texts(change: &Change) -> Option<(String, String)> {
    let text = |state: &Option<flightproof_evidence::FileState>| match state {
        None => Some(String::new()),
        Some(state) => String::from_utf8(state.content.0.clone()).ok(),
    };
    Some((text(&change.old)?, text(&change.new)?))
}

fn file_json(change: &Change, account: Option<&Account>) -> Value {
    let path = change.path.as_str();
    let Some((old, new)) = texts(change) else {
        return json!({"path": path, "text": false, "lines": []});
    };
    let lines: Vec<Value> = patch::rows(&old, &new)
        .iter()
        .filter(|row| row.kind != Kind::Same)
        .map(|row| {
            json!({
                "kind": if row.kind == Kind::Added { "added" } else { "removed" },
                "old": row.old, "new": row.new, "text": escape(row.text, MAX_TEXT),
                "class": class(path, row.new, account),
            })
        })
        .collect();
    json!({"path": path, "text": true, "lines": lines})
}

fn file_human(change: &Change, account: Option<&Account>) {
    let path = change.path.as_str();
    let Some((old, new)) = texts(change) else {
        return show::print(&format!("\n{path}: not text"));
    };
    show::print(&format!("\n{path}"));
    let rows = patch::rows(&old, &new);
    let mut hidden = false;
    for (i, row) in rows.iter().enumerate() {
        let around = &rows[i.saturating_sub(CONTEXT)..(i + CONTEXT + 1).min(rows.len())];
        let apart = around.iter().all(|row| row.kind == Kind::Same);
        if apart && mutants(path, row.new, account) == 0 {
            hidden = true;
            continue;
        }
        if std::mem::take(&mut hidden) {
            show::print("          …");
        }
        let number = |n: u32| if n == 0 { String::new() } else { n.to_string() };
        let (mark, tone) = match row.kind {
            Kind::Same => (' ', Tone::Faint),
            Kind::Removed => ('-', Tone::Bad),
            Kind::Added => ('+', Tone::Good),
        };
        // A tab is four columns here: escaped it would hide the shape of the code.
        let text = escape(row.text.replace('\t', "    "), MAX_TEXT).replace("\\\\", "\\");
        let line = format!(
            "{:>4} {:>4} {mark} {text}",
            number(row.old),
            number(row.new)
        );
        let class = match row.kind {
            Kind::Removed => String::new(),
            _ => class(path, row.new, account),
        };
        let pad = if class.is_empty() { "" } else { "  | " };
        show::print(&format!(
            "{}{pad}{class}",
            show::paint(&format!("{line:<72}"), tone).trim_end()
        ));
    }
}
