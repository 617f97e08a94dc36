//! What a platform does that receives commits with certificates: it decides in its own process, with its
//! own policy and keys, about a tree that it has read itself.
//!
//! `in_process CERTIFICATE POLICY PUBLIC-KEY SNAPSHOT` prints what was proven, or the refusal, and ends
//! 0 or 1. SNAPSHOT is the snapshot id of the tree, as `flights archive pack` prints it or
//! `flightproof_archive` makes it.

use flightproof_certifier::key::PublicKey;
use flightproof_certifier::policy::Policy;
use flightproof_certifier::verify::{Beside, ExpectedSubject, Verified, verify};
use flightproof_core::{Digest, Refusal};
use std::error::Error;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [certificate, policy, key, snapshot] = args.as_slice() else {
        return Err("in_process CERTIFICATE POLICY PUBLIC-KEY SNAPSHOT".into());
    };
    let (certificate, policy) = (std::fs::read(certificate)?, std::fs::read(policy)?);
    let key = std::fs::read_to_string(key)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    match decide(&certificate, &policy, &key, snapshot.parse()?, now) {
        Ok(proven) => {
            let gates: Vec<&str> = proven.gates.iter().map(|gate| gate.name()).collect();
            println!(
                "{} of {}: {}",
                proven.head,
                proven.repository,
                gates.join(", ")
            );
            Ok(ExitCode::SUCCESS)
        }
        Err(refusal) => {
            println!("{}: {}", refusal.code(), refusal.detail);
            println!("  {}", refusal.explanation.todo);
            Ok(ExitCode::FAILURE)
        }
    }
}

/// The whole decision: no file, no process, no network, no clock of its own.
fn decide(
    certificate: &[u8],
    policy: &[u8],
    key: &str,
    snapshot: Digest,
    now: u64,
) -> Result<Verified, Refusal> {
    let policy = Policy::parse(policy)?;
    let key = PublicKey::from_pem(key)?;
    // A tree with symlinks or submodules has a list of those beside its snapshot.
    let subject = ExpectedSubject {
        snapshot,
        kept: None,
    };
    Ok(verify(
        certificate,
        &policy,
        &[key],
        &subject,
        &Beside::at(now),
    )?)
}
