//! From evidence to a signed certificate.

use crate::fixture::*;
use flightproof_certifier::CertifierCode;
use flightproof_certifier::certificate::Admission;
use flightproof_certifier::certificate::Statement;
use flightproof_certifier::dsse;
use flightproof_certifier::judge::Gate;
use flightproof_core::Digest;
use flightproof_evidence::ProfileSettings;
use serde_json::{Value, json};

#[test]
fn an_honest_certificate_holds() {
    let statement = flight().statement();
    let verified = verdict(&statement.sign(&key()).unwrap()).unwrap();
    assert_eq!(verified.id, statement.id().unwrap());
    assert_eq!(verified.admission, Admission::Held {});
    assert_eq!(verified.gates, Gate::ALL);
    assert_eq!(verified.waivers.len(), 1);
    assert_eq!(verified.signers, [key().public().id()]);
    assert_eq!(verified.repository, "example/rounding");
}

#[test]
fn an_admitting_certificate_says_so_and_where() {
    let mut flight = flight();
    flight.admission = Admission::Admitted {
        branch: "main".to_owned(),
    };
    let verified = verdict(&flight.statement().sign(&key()).unwrap()).unwrap();
    assert_eq!(verified.admission, flight.admission);
    let mut lie: Value = serde_json::from_slice(&flight.statement().payload().unwrap()).unwrap();
    lie["predicate"]["admission"]["branch"] = json!("release");
    assert_eq!(refused(&signed(&lie)), CertifierCode::Inconsistent);
}

#[test]
fn two_flights_with_equal_evidence_reach_equal_bytes() {
    let mut replay = flight();
    replay.attestation.session = "<session:1>".to_owned();
    replay.build_session = "<session:1>".to_owned();
    assert_eq!(
        replay.statement().payload().unwrap(),
        flight().statement().payload().unwrap()
    );
}

#[test]
fn what_decides_about_a_number_s_last_digits_is_claimed_and_older_certificates_say_nothing_of_it() {
    let older = honest();
    let mut flight = flight();
    flight.attestation.toolchain.target = Some("x86_64-unknown-linux-gnu".to_owned());
    flight.attestation.processor = Some("avx2 fma".to_owned());
    flight.built.record.settings = Some(ProfileSettings {
        opt_level: "3".to_owned(),
        debug_assertions: true,
        overflow_checks: false,
    });
    let statement = flight.statement();
    assert!(verdict(&statement.sign(&key()).unwrap()).is_ok());
    let newer: Value = serde_json::from_slice(&statement.payload().unwrap()).unwrap();
    for (place, value) in [
        ("image-digest/target", json!("x86_64-unknown-linux-gnu")),
        ("attestation/processor", json!("avx2 fma")),
        (
            "session-build/settings",
            json!({"optLevel": "3", "debugAssertions": true, "overflowChecks": false}),
        ),
    ] {
        let place = format!("/predicate/inputs/{place}");
        assert_eq!(newer.pointer(&place), Some(&value));
        assert_eq!(older.pointer(&place), None);
    }
    assert!(verdict(&signed(&older)).is_ok());
}

#[test]
fn evidence_of_another_session_is_not_certified() {
    let mut mixed = flight();
    mixed.build_session = "volatile-0000".to_owned();
    assert_eq!(mixed.refusal(), CertifierCode::SessionMismatch);
}

#[test]
fn a_session_that_left_something_is_not_certified() {
    let mut dirty = flight();
    dirty.closed.mounts = 1;
    assert_eq!(dirty.refusal(), CertifierCode::SessionNotClean);
}

#[test]
fn what_the_verifier_refuses_is_never_signed() {
    for (spoil, code) in [
        (survivor as fn(&mut Flight), CertifierCode::Inconsistent),
        (other_source, CertifierCode::Inconsistent),
        (reading_twice, CertifierCode::Inconsistent),
        (no_readings, CertifierCode::ClaimEmpty),
    ] {
        let mut spoilt = flight();
        spoil(&mut spoilt);
        assert_eq!(spoilt.refusal(), code);
    }
}

fn survivor(flight: &mut Flight) {
    flight.mutation.survived = 1;
}

fn other_source(flight: &mut Flight) {
    flight.built.record.source = Digest::of(b"other");
}

fn reading_twice(flight: &mut Flight) {
    let twice = flight.attestation.readings[0].clone();
    flight.attestation.readings.push(twice);
}

fn no_readings(flight: &mut Flight) {
    flight.attestation.readings.clear();
}

#[test]
fn a_certificate_fits_into_its_envelope_limit() {
    let envelope = flight().statement().sign(&key()).unwrap();
    assert!(envelope.len() * 100 < dsse::MAX_ENVELOPE_BYTES);
    let parsed = Statement::parse(&flight().statement().payload().unwrap()).unwrap();
    assert_eq!(parsed, flight().statement());
}
