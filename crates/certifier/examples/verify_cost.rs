//! What verifying a certificate costs, in one process: `verify_cost CERTIFICATE POLICY PUBLIC-KEY SNAPSHOT`
//! prints the median of one verification in microseconds and how many a second one core does, as JSON.
//! Policy and key are read once, as a service does; the envelope is read and checked anew each time.

use flightproof_certifier::key::PublicKey;
use flightproof_certifier::policy::Policy;
use flightproof_certifier::verify::{Beside, ExpectedSubject, verify};
use flightproof_core::{Digest, Refusal};
use std::error::Error;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Verifications that are measured.
const BATCH: usize = 10_000;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [certificate, policy, key, snapshot] = args.as_slice() else {
        return Err("verify_cost CERTIFICATE POLICY PUBLIC-KEY SNAPSHOT".into());
    };
    let (certificate, policy) = (std::fs::read(certificate)?, std::fs::read(policy)?);
    let key = std::fs::read_to_string(key)?;
    let snapshot: Digest = snapshot.parse()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let plainly = |refusal: Refusal| refusal.detail;
    let policy = Policy::parse(&policy).map_err(|e| plainly(e.into()))?;
    let keys = [PublicKey::from_pem(&key).map_err(|e| plainly(e.into()))?];
    let kept = None;
    let (subject, beside) = (ExpectedSubject { snapshot, kept }, Beside::at(now));
    let once = || -> Result<(), Refusal> {
        verify(&certificate, &policy, &keys, &subject, &beside)?;
        Ok(())
    };
    for _ in 0..BATCH / 20 {
        once().map_err(plainly)?;
    }
    let mut each = Vec::with_capacity(BATCH);
    let begun = Instant::now();
    for _ in 0..BATCH {
        let one = Instant::now();
        once().map_err(plainly)?;
        each.push(one.elapsed());
    }
    let whole = begun.elapsed();
    each.sort_unstable();
    let median = each.get(BATCH / 2).copied().unwrap_or_default();
    println!(
        "{{\"median_us\": {:.1}, \"per_second\": {:.0}, \"certificate_bytes\": {}}}",
        median.as_secs_f64() * 1e6,
        BATCH as f64 / whole.as_secs_f64(),
        certificate.len()
    );
    Ok(())
}
