//! Whether a certificate is of exactly what is asked for.

use super::super::{bundle, cert, input, key};
use super::Order;
use crate::FlightsCode;
use crate::source::directory_name;
use clap::Args;
use flightproof_certifier::certificate::Admission;
use flightproof_certifier::dsse::MAX_ENVELOPE_BYTES;
use flightproof_certifier::policy::{MAX_POLICY_BYTES, Policy};
use flightproof_certifier::verify::{ExpectedSubject, Verified, verify};
use flightproof_core::{Digest, Refusal, escape};
use flightproof_importer::{Checked, Clearance, snapshot_of_bundle};
use std::path::{Path, PathBuf};

/// Most bytes of a name in a refusal.
const MAX_NAME: usize = 200;

/// What vouches for the commit.
#[derive(Args)]
pub(super) struct VoucherArgs {
    /// Certificate of exactly this commit, baseline, branch and repository.
    #[arg(
        long,
        value_name = "FILE",
        requires = "policy",
        required_unless_present = "uncertified_i_know",
        conflicts_with = "uncertified_i_know"
    )]
    certificate: Option<PathBuf>,
    /// Policy the certificate must meet, and was bound to when it was made. It must name the keys that
    /// may sign.
    #[arg(long, value_name = "FILE", requires = "certificate")]
    policy: Option<PathBuf>,
    /// A trusted public key (repeatable); default: the one in the state directory.
    #[arg(long = "key", value_name = "PUB", requires = "certificate")]
    keys: Vec<PathBuf>,
    #[command(flatten)]
    beside: cert::BesideArgs,
    /// Name of the repository on the certificate; default: the directory's name.
    #[arg(long, value_name = "NAME", requires = "certificate")]
    name: Option<String>,
    /// Nothing vouches for the commit. The receipt says so.
    #[arg(long)]
    uncertified_i_know: bool,
}

impl VoucherArgs {
    /// Whether a certificate speaks for the commit.
    pub(super) fn vouches(&self) -> bool {
        self.certificate.is_some()
    }

    /// The name of the repository that is in a folder.
    pub(super) fn repository(&self, folder: &Path) -> String {
        let name = self.name.clone();
        name.unwrap_or_else(|| directory_name(folder))
    }
}

/// The right to land a checked commit: by its certificate, or by the word of whoever asks.
///
/// # Errors
/// `POLICY_UNPINNED`, those of verifying, `CERTIFICATE_HELD`, `CERTIFICATE_DIFFERS`, `BRANCH_NAME`.
pub(super) fn clear(
    args: &Order<'_>,
    desk: &bundle::Desk,
    checked: &Checked,
) -> Result<Clearance, Refusal> {
    let Some(file) = &args.voucher.certificate else {
        return Ok(Clearance::uncertified(checked, args.branch)?);
    };
    // The command line asks for one wherever it takes the other.
    let policy_file = args.voucher.policy.as_deref().unwrap_or(Path::new(""));
    let policy_text = input::read(policy_file, MAX_POLICY_BYTES)?;
    let policy = Policy::parse(&policy_text).map_err(input::named(policy_file))?;
    if !policy.pins_keys() {
        return Err(FlightsCode::PolicyUnpinned
            .refuse(input::shown(policy_file))
            .into());
    }
    let keys = match args.voucher.keys.as_slice() {
        [] => vec![key::own_public()?],
        named => named
            .iter()
            .map(|path| key::public(path))
            .collect::<Result<_, _>>()?,
    };
    let envelope = input::read(file, MAX_ENVELOPE_BYTES)?;
    let (snapshot, kept) = snapshot_of_bundle(&desk.git, &desk.host, checked, desk.work.path())?;
    let subject = ExpectedSubject { snapshot, kept };
    let beside = args.voucher.beside.read(&policy, &keys)?;
    let verified = verify(&envelope, &policy, &keys, &subject, &beside)?;
    hold_against(args, checked, &verified, Digest::of(&policy_text))?;
    Ok(Clearance::of_bundle(
        &verified.remains,
        verified.id,
        checked,
        args.branch,
    )?)
}

/// An old certificate of the same tree must not bring it back onto another baseline, nor one of another
/// branch or repository let it in here. The witness is the policy's to name.
fn hold_against(
    args: &Order<'_>,
    checked: &Checked,
    verified: &Verified,
    policy: Digest,
) -> Result<(), Refusal> {
    let Admission::Admitted { branch } = &verified.admission else {
        let detail = format!("certificate {}", verified.id);
        return Err(FlightsCode::CertificateHeld.refuse(detail).into());
    };
    let request = &verified.request;
    let name = args.voucher.repository(args.repo);
    let claimed = request.branch.as_deref().unwrap_or("no branch");
    let policy_claimed = match request.policy {
        Some(policy) => policy.to_string(),
        None => "no policy".to_owned(),
    };
    for (what, certified, asked) in [
        ("repository", request.repository.as_str(), name.as_str()),
        ("branch", branch.as_str(), args.branch),
        ("branch", claimed, args.branch),
        (
            "baseline",
            &*request.baseline.to_string(),
            &*checked.baseline().to_string(),
        ),
        (
            "head",
            &*request.head.to_string(),
            &*checked.head().to_string(),
        ),
        ("policy", &*policy_claimed, &*policy.to_string()),
    ] {
        if certified != asked {
            return Err(FlightsCode::CertificateDiffers
                .refuse(format!(
                    "{what}: certified {}, asked {}",
                    escape(certified, MAX_NAME),
                    escape(asked, MAX_NAME)
                ))
                .into());
        }
    }
    Ok(())
}
