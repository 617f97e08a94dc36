//! Proofs that a certificate is in a log.

use crate::fixture::*;
use flightproof_certifier::CertifierCode;
use flightproof_certifier::key::SecretKey;
use flightproof_certifier::log::{Entry, Event, LogKey, Proof, Tree};
use flightproof_certifier::verify::{Beside, Verified, verify};
use flightproof_core::{CommitId, Digest, Moment};
use serde_json::{Value, json};

fn secret() -> SecretKey {
    SecretKey::from_seed([9; 32])
}

fn key_of_log() -> LogKey {
    LogKey::new("example.org/log".parse().unwrap(), secret().public())
}

fn entry(event: Event) -> Vec<u8> {
    let at = Moment::from_unix(NOW);
    Entry::new(at, event, "example/rounding", "candidate")
        .bytes()
        .unwrap()
}

fn certified(certificate: Digest) -> Vec<u8> {
    entry(Event::Certified {
        certificate,
        head: CommitId::from_bytes([2; 20]),
    })
}

#[test]
fn an_entry_has_the_oldest_version_that_knows_its_event_and_no_other() {
    let head = CommitId::from_bytes([2; 20]);
    let branch = "main".to_owned();
    let uncertified = entry(Event::Uncertified { head, branch });
    let refused = entry(Event::Refused {
        stage: "fence".to_owned(),
        code: "certifier/UNSAFE_CODE".to_owned(),
    });
    for (bytes, version, other) in [(uncertified, "/2", "/1"), (refused, "/1", "/2")] {
        let text = String::from_utf8(bytes.clone()).unwrap();
        let schema = |version: &str| format!("flightproof/log-entry{version}");
        assert!(text.contains(&schema(version)), "{text}");
        let read = Entry::parse(&bytes).unwrap();
        assert_eq!(read.bytes().unwrap(), bytes);
        assert_eq!(read.event.certificate(), None);
        let text = text.replace(&schema(version), &schema(other));
        let refused = Entry::parse(text.as_bytes()).unwrap_err();
        assert_eq!(refused.code, CertifierCode::LogBroken);
    }
}

/// Names are written so that they can be shown anywhere; whoever looks for one has it as it is.
#[test]
fn an_entry_is_of_its_repository_however_that_is_named() {
    let long = "long".repeat(200);
    for name in [
        "pricing",
        "",
        "pri\\cing",
        "pri\u{2013}cing",
        "cafe\u{301}",
        "\u{1f680}",
        "line\nbreak",
        long.as_str(),
    ] {
        let event = Event::Refused {
            stage: "fence".to_owned(),
            code: "certifier/UNSAFE_CODE".to_owned(),
        };
        let entry = Entry::new(Moment::from_unix(NOW), event, name, "candidate");
        let read = Entry::parse(&entry.bytes().unwrap()).unwrap();
        assert!(read.is_of(name), "{name:?}");
        assert!(!read.is_of("another"), "{name:?}");
    }
}

/// A log whose fourth entry is the honest certificate's.
fn log() -> Tree {
    let mut tree = Tree::default();
    let refused = || Event::Refused {
        stage: "fence".to_owned(),
        code: "certifier/UNSAFE_CODE".to_owned(),
    };
    for _ in 0..3 {
        tree.append(entry(refused())).unwrap();
    }
    tree.append(certified(flight().statement().id().unwrap()))
        .unwrap();
    tree.append(certified(Digest::of(b"another"))).unwrap();
    tree
}

fn proof(index: usize) -> Proof {
    let tree = log();
    Proof {
        entry: tree.entries()[index].clone(),
        index: index as u64,
        path: tree.path(index),
        checkpoint: tree.checkpoint(key_of_log().name().clone()).sign(&secret()),
    }
}

fn rule() -> Value {
    let mut policy = policy_json();
    policy["log"] = json!({"key": key_of_log().to_string()});
    policy
}

fn with(proof: Option<&str>) -> Result<Verified, CertifierCode> {
    let beside = Beside {
        inclusion: proof.map(|text| text.as_bytes().to_vec()),
        ..Beside::at(NOW)
    };
    let envelope = signed(&honest());
    verify(&envelope, &policy(&rule()), &keys(), &subject(), &beside).map_err(|e| e.code)
}

#[test]
fn a_certificate_in_the_log_is_proven_to_be_there() {
    let verified = with(Some(&proof(3).text())).unwrap();
    let included = verified.included.unwrap();
    assert_eq!((included.index, included.size), (3, 5));
    assert_eq!(with(None).err(), Some(CertifierCode::InclusionMissing));
    let beside = Beside {
        inclusion: Some(proof(3).text().into_bytes()),
        ..Beside::at(NOW)
    };
    let envelope = signed(&honest());
    let unasked = verify(
        &envelope,
        &policy(&policy_json()),
        &keys(),
        &subject(),
        &beside,
    );
    assert_eq!(
        unasked.err().map(|e| e.code),
        Some(CertifierCode::BesideUnasked)
    );
}

#[test]
fn a_proof_of_another_entry_or_a_changed_one_proves_nothing() {
    let invalid = Some(CertifierCode::InclusionInvalid);
    for other in [0, 4] {
        assert_eq!(with(Some(&proof(other).text())).err(), invalid, "{other}");
    }
    let good = proof(3);
    let certificate = flight().statement().id().unwrap();
    let forged = |change: &dyn Fn(&mut Proof)| {
        let mut proof = good.clone();
        change(&mut proof);
        with(Some(&proof.text())).err()
    };
    assert_eq!(forged(&|_| ()), None);
    assert_eq!(forged(&|p| p.index = 2), invalid);
    assert_eq!(forged(&|p| p.index = 5), invalid);
    assert_eq!(forged(&|p| p.index = u64::MAX), invalid);
    assert_eq!(forged(&|p| p.path.truncate(1)), invalid);
    assert_eq!(forged(&|p| p.path.push(Digest::of(b""))), invalid);
    assert_eq!(forged(&|p| p.path.swap(0, 1)), invalid);
    // Another refused entry made to speak of the certificate.
    assert_eq!(forged(&|p| p.entry = certified(certificate)), None);
    assert_eq!(
        forged(&|p| (p.entry, p.index, p.path) = (certified(certificate), 0, log().path(0))),
        invalid
    );
    // A node passed off as a leaf: its preimage is two hashes.
    let beside = log().path(3);
    let node = [&beside[0].as_bytes()[..], &beside[1].as_bytes()[..]].concat();
    assert_eq!(forged(&|p| p.entry = node.clone()), invalid);
}

#[test]
fn a_checkpoint_of_another_key_or_log_proves_nothing() {
    let tree = log();
    let by_other = |key: &SecretKey, name: &str| {
        let mut proof = proof(3);
        proof.checkpoint = tree.checkpoint(name.parse().unwrap()).sign(key);
        with(Some(&proof.text())).err()
    };
    let other = SecretKey::from_seed([8; 32]);
    let invalid = Some(CertifierCode::CheckpointInvalid);
    assert_eq!(by_other(&other, "example.org/log"), invalid);
    assert_eq!(by_other(&secret(), "example.org/other"), invalid);
    assert_eq!(by_other(&secret(), "example.org/log"), None);
}

#[test]
fn a_proof_has_one_spelling() {
    let good = proof(3).text();
    for bad in [
        good.replace("@v1", "@v2"),
        good.replace("index 3", "index 03"),
        good.replace("index 3", "index -3"),
        good.replacen("extra ", "extra", 1),
        good.replacen('\n', "\r\n", 1),
        good.replacen("\n\n", "\n", 1),
        good.replacen("\n\n", "\n\n\n", 1),
        format!("\n{good}"),
        "x".repeat(1 << 20),
        String::new(),
    ] {
        let refused = with(Some(&bad)).err();
        assert!(
            [
                Some(CertifierCode::InclusionInvalid),
                Some(CertifierCode::CheckpointInvalid)
            ]
            .contains(&refused),
            "{bad}: {refused:?}"
        );
    }
}

#[test]
fn an_entry_is_read_in_one_way_or_not_at_all() {
    let good = String::from_utf8(certified(Digest::of(b"x"))).unwrap();
    assert!(Entry::parse(good.as_bytes()).is_ok());
    for bad in [
        good.replace("log-entry/1", "log-entry/2"),
        good.replacen('{', r#"{"more":1,"#, 1),
        good.replace("certified", "blessed"),
        format!("{good} "),
        "[]".to_owned(),
    ] {
        let refused = Entry::parse(bad.as_bytes()).err().map(|e| e.code);
        assert_eq!(refused, Some(CertifierCode::LogBroken), "{bad}");
    }
}
