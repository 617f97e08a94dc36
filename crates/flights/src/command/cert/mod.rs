//! `flights cert`: check certificates, look at them, and what is made beside them.

pub(super) mod beside;
mod case;
mod claims;
mod cosign;
mod except;
mod log;
mod recertify;
mod show;
mod verify;

pub(super) use beside::BesideArgs;
pub(super) use log::LogCommand;

use super::{input, key};
use crate::show::Format;
use clap::{Args, Subcommand};
use flightproof_certifier::dsse::MAX_ENVELOPE_BYTES;
use flightproof_certifier::key::PublicKey;
use flightproof_certifier::policy::{MAX_POLICY_BYTES, Policy};
use flightproof_core::{CommitId, Exit, Refusal};
use std::path::{Path, PathBuf};

/// `flights cert`.
#[derive(Subcommand)]
pub(super) enum CertCommand {
    /// Check a certificate against keys, a subject and a policy.
    Verify(VerifyArgs),
    /// Print what a certificate claims, and what it does not.
    Show(ShowArgs),
    /// Fly the commit of a certificate again, from the first gate, and compare what is claimed.
    Recertify(recertify::RecertifyArgs),
    /// Add your signature to a certificate or a revocation list that others have signed.
    Cosign(cosign::CosignArgs),
    /// Excuse one certificate from one rule of a policy, for a while, signed.
    Except(except::ExceptArgs),
    /// Open one case of the witness for whoever has the certificate, and no other case.
    OpenCase(case::OpenArgs),
    /// Check that an opened case was among those that judged a certificate's commit.
    CheckCase(case::CheckArgs),
    /// The log of what was certified, admitted and refused on this machine.
    Log {
        #[command(subcommand)]
        command: LogCommand,
    },
}

/// `flights cert verify`.
#[derive(Args)]
pub(super) struct VerifyArgs {
    /// The certificate (a DSSE envelope).
    certificate: PathBuf,
    /// A trusted public key (repeatable), for whatever role the policy gives it.
    #[arg(long = "key", value_name = "PUB", required = true)]
    keys: Vec<PathBuf>,
    /// What it must be about: a directory with exactly the tree, or a revision of --repo.
    #[arg(long, value_name = "DIR|REV")]
    subject: String,
    /// Repository in which a revision is looked up; default: the one that the current directory lies in.
    #[arg(long, value_name = "DIR")]
    repo: Option<PathBuf>,
    /// The commit it must have been made for, in full: another with the same tree is not enough.
    #[arg(long, value_name = "COMMIT")]
    head: Option<CommitId>,
    /// The commit it must have been made on, in full: the same tree elsewhere undoes what came between.
    #[arg(long, value_name = "COMMIT")]
    baseline: Option<CommitId>,
    /// What a certificate must prove. Without a policy nothing passes.
    #[arg(long, value_name = "FILE")]
    policy: PathBuf,
    #[command(flatten)]
    beside: BesideArgs,
    /// The second statement, where the policy wants one.
    #[arg(long, value_name = "FILE")]
    admission: Option<PathBuf>,
}

/// `flights cert show`.
#[derive(Args)]
pub(super) struct ShowArgs {
    /// The certificate.
    certificate: PathBuf,
    /// A public key that may have signed it (repeatable). Without any, no signature is checked.
    #[arg(long = "key", value_name = "PUB")]
    keys: Vec<PathBuf>,
}

/// Does what is asked.
///
/// # Errors
/// As the commands.
pub(super) fn run(command: &CertCommand, format: Format) -> Result<Exit, Refusal> {
    match command {
        CertCommand::Verify(args) => verify::verify(args, format),
        CertCommand::Show(args) => show::show(args, format),
        CertCommand::Recertify(args) => recertify::run(args, format),
        CertCommand::Cosign(args) => cosign::run(args, format),
        CertCommand::Except(args) => except::run(args, format),
        CertCommand::OpenCase(args) => case::open(args, format),
        CertCommand::CheckCase(args) => case::check(args, format),
        CertCommand::Log { command } => log::run(command, format),
    }
}

/// Reads a certificate file, or another envelope.
pub(super) fn envelope(path: &Path) -> Result<Vec<u8>, Refusal> {
    input::read(path, MAX_ENVELOPE_BYTES).map_err(|refusal| {
        let flown = !path.exists() && path.with_file_name("verdict.json").is_file();
        let told = match (path.is_dir(), flown) {
            (true, _) => "; the certificate of a flight is certificate.dsse.json in its directory",
            (_, true) => "; a flight that was refused has no certificate",
            _ => "",
        };
        let detail = format!("{}{told}", refusal.detail);
        Refusal { detail, ..refusal }
    })
}

/// Reads a policy file.
pub(super) fn policy(path: &Path) -> Result<Policy, Refusal> {
    Policy::parse(&input::read(path, MAX_POLICY_BYTES)?).map_err(input::named(path))
}

/// Reads public keys.
pub(super) fn public_keys(paths: &[PathBuf]) -> Result<Vec<PublicKey>, Refusal> {
    paths.iter().map(|path| key::public(path)).collect()
}
