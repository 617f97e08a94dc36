//! Payloads that are not what they seem, properly signed.

use crate::fixture::*;
use flightproof_certifier::CertifierCode;
use flightproof_certifier::verify::{Beside, ExpectedSubject, verify};
use flightproof_core::Digest;
use serde_json::{Value, json};

#[test]
fn a_valid_signature_over_another_kind_of_document_certifies_nothing() {
    for (bytes, code) in [
        (&b"hello"[..], CertifierCode::StatementMalformed),
        (b"", CertifierCode::StatementMalformed),
        (b"{}", CertifierCode::StatementMalformed),
        (b"[]", CertifierCode::StatementMalformed),
        (b"null", CertifierCode::StatementMalformed),
    ] {
        assert_eq!(refused(&signed_bytes(bytes)), code);
    }
    for other in [
        "https://slsa.dev/provenance/v1",
        "https://flightproof.dev/certificate/v1/",
        "https://flightproof.dev/certificate/v11",
        "",
    ] {
        assert_eq!(
            refused(&with("/predicateType", json!(other))),
            CertifierCode::PredicateTypeUnsupported
        );
    }
    for other in [
        "https://in-toto.io/Statement/v0.1",
        "https://in-toto.io/Statement/v2",
    ] {
        assert_eq!(
            refused(&with("/_type", json!(other))),
            CertifierCode::StatementTypeUnsupported
        );
    }
}

#[test]
fn a_certificate_has_exactly_one_subject() {
    assert_eq!(refused(&without("/subject")), CertifierCode::SubjectMissing);
    assert_eq!(
        refused(&with("/subject", json!([]))),
        CertifierCode::SubjectMissing
    );
    let ours = honest()["subject"][0].clone();
    let other = json!({"name": "x", "digest": {"sha256": Digest::of(b"x")}});
    for two in [
        json!([other, ours]),
        json!([ours, other]),
        json!([ours, ours]),
    ] {
        assert_eq!(
            refused(&with("/subject", two)),
            CertifierCode::SubjectAmbiguous
        );
    }
    assert_eq!(
        refused(&with("/subject", json!({}))),
        CertifierCode::StatementMalformed
    );
}

#[test]
fn a_certificate_is_about_its_own_bytes_only() {
    let envelope = signed(&honest());
    let policy = policy(&policy_json());
    let (changed, links) = (Digest::of(b"changed"), Digest::of(b"other links"));
    for (snapshot, other, said) in [
        (changed, Some(kept()), format!("this tree {changed}")),
        (snapshot(), None, "this tree none".to_owned()),
        (snapshot(), Some(links), format!("this tree {links}")),
    ] {
        let tree = ExpectedSubject {
            snapshot,
            kept: other,
        };
        let refusal = verify(&envelope, &policy, &keys(), &tree, &Beside::at(NOW)).unwrap_err();
        assert_eq!(refusal.code, CertifierCode::SubjectMismatch);
        assert!(refusal.detail.ends_with(&said), "{refusal}");
    }
    assert!(verify(&envelope, &policy, &keys(), &subject(), &Beside::at(NOW)).is_ok());
}

#[test]
fn a_tree_without_kept_entries_is_not_one_with_them() {
    let mut plain = flight();
    plain.captured.kept_digest = None;
    let envelope = plain.statement().sign(&key()).unwrap();
    assert_eq!(refused(&envelope), CertifierCode::SubjectMismatch);
    let tree = ExpectedSubject {
        snapshot: snapshot(),
        kept: None,
    };
    assert!(
        verify(
            &envelope,
            &policy(&policy_json()),
            &keys(),
            &tree,
            &Beside::at(NOW)
        )
        .is_ok()
    );
    let mut half = honest();
    half["subject"][0]
        .as_object_mut()
        .unwrap()
        .remove("annotations");
    assert_eq!(refused(&signed(&half)), CertifierCode::Inconsistent);
    assert_eq!(
        refused(&without("/predicate/inputs/capture/keptDigest")),
        CertifierCode::Inconsistent
    );
}

#[test]
fn only_one_secure_digest_names_a_subject() {
    let good = snapshot().to_string();
    let sha1 = "a".repeat(40);
    for (digest, code) in [
        (json!({"sha1": sha1}), CertifierCode::DigestUnacceptable),
        (
            json!({"md5": "a", "gitTree": sha1}),
            CertifierCode::DigestUnacceptable,
        ),
        (
            json!({"sha1": sha1, "sha256": good}),
            CertifierCode::DigestUnacceptable,
        ),
        (json!({"SHA256": good}), CertifierCode::DigestUnacceptable),
        (json!({}), CertifierCode::DigestUnacceptable),
        (
            json!({"sha256": good.to_uppercase()}),
            CertifierCode::DigestMalformed,
        ),
        (json!({"sha256": good[1..]}), CertifierCode::DigestMalformed),
        (json!({"sha256": sha1}), CertifierCode::DigestMalformed),
        (
            json!({"sha256": format!(" {good}")}),
            CertifierCode::DigestMalformed,
        ),
        (json!({"sha256": ""}), CertifierCode::DigestMalformed),
        (json!({"sha256": 1}), CertifierCode::StatementMalformed),
    ] {
        let shown = digest.to_string();
        assert_eq!(refused(&with("/subject/0/digest", digest)), code, "{shown}");
    }
}

#[test]
fn every_input_kind_must_be_there_once() {
    let kinds = honest()["predicate"]["inputs"].as_object().unwrap().clone();
    assert_eq!(kinds.len(), 10);
    for kind in kinds.keys() {
        assert_eq!(
            refused(&without(&format!("/predicate/inputs/{kind}"))),
            CertifierCode::InputMissing,
            "{kind}"
        );
    }
    assert_eq!(
        refused(&without("/predicate/inputs")),
        CertifierCode::InputMissing
    );
    let twice = String::from_utf8(flight().statement().payload().unwrap()).unwrap();
    for (name, again) in [
        ("\"lineage\":", "\"lineage\":{\"depth\":0},\"lineage\":"),
        ("\"survived\":0", "\"survived\":0,\"surv\\u0069ved\":0"),
        (
            "\"kind\":\"held\"",
            "\"kind\":\"admitted\",\"kind\":\"held\"",
        ),
    ] {
        assert!(twice.contains(name));
        assert_eq!(
            refused(&signed_bytes(twice.replace(name, again).as_bytes())),
            CertifierCode::StatementMalformed
        );
    }
}

#[test]
fn a_statement_has_one_spelling() {
    let canonical = String::from_utf8(flight().statement().payload().unwrap()).unwrap();
    assert!(verdict(&signed_bytes(canonical.as_bytes())).is_ok());
    for other in [
        format!(" {canonical}"),
        canonical.replace("\"held\"", "\"h\\u0065ld\""),
        canonical.replace("\"lineage\":{", "\"lineage\":{\"parent\":null,"),
        serde_json::to_string_pretty(&honest()).unwrap(),
    ] {
        assert_ne!(other, canonical);
        assert_eq!(
            refused(&signed_bytes(other.as_bytes())),
            CertifierCode::StatementNotCanonical
        );
    }
}

#[test]
fn fields_and_values_nobody_knows_are_refused() {
    for (pointer, value) in [
        ("/extra", json!(1)),
        ("/Subject", json!([])),
        ("/predicate/verdict", json!("failed")),
        ("/predicate/schema", json!("flightproof/certificate/2")),
        ("/predicate/admission", json!({"kind": "refused"})),
        (
            "/predicate/admission",
            json!({"kind": "held", "branch": "main"}),
        ),
        ("/predicate/admission", json!({"kind": "admitted"})),
        ("/predicate/gates", json!(["Lineage"])),
        ("/predicate/gates", json!(["lineage "])),
        ("/predicate/inputs/spend", json!({})),
        ("/predicate/inputs/mutation/escapeRate", json!(0)),
        ("/predicate/inputs/mutation/survived", json!(-1)),
        ("/predicate/inputs/mutation/survived", json!("0")),
        ("/predicate/inputs/capture/bundle", json!("ABC")),
        ("/subject/0/uri", json!("x")),
    ] {
        assert_eq!(
            refused(&with(pointer, value)),
            CertifierCode::StatementMalformed,
            "{pointer}"
        );
    }
}

#[test]
fn numbers_other_readers_would_change_are_refused() {
    let canonical = String::from_utf8(flight().statement().payload().unwrap()).unwrap();
    for number in ["9007199254740993", "1e400", "1234.0", "-0.0", "NaN"] {
        let bad = canonical.replace("\"bundleBytes\":1234", &format!("\"bundleBytes\":{number}"));
        assert_ne!(bad, canonical);
        assert_eq!(
            refused(&signed_bytes(bad.as_bytes())),
            CertifierCode::StatementMalformed,
            "{number}"
        );
    }
}

#[test]
fn an_id_names_the_payload_and_survives_another_envelope() {
    let envelope = signed(&honest());
    let mut rewritten: Value = serde_json::from_slice(&envelope).unwrap();
    rewritten["note"] = json!("unread");
    rewritten["signatures"][0]["keyid"] = json!("");
    let rewritten = serde_json::to_vec_pretty(&rewritten).unwrap();
    assert_ne!(rewritten, envelope);
    assert_eq!(
        verdict(&rewritten).unwrap().id,
        verdict(&envelope).unwrap().id
    );
}

#[test]
fn a_payload_is_not_read_before_its_signature_is_checked() {
    let mut forged: Value = serde_json::from_slice(&signed_bytes(b"not json")).unwrap();
    forged["signatures"][0]["sig"] = json!("AA==");
    assert_eq!(
        refused(forged.to_string().as_bytes()),
        CertifierCode::SignatureInvalid
    );
}

#[test]
fn hostile_names_come_out_escaped() {
    let envelope = with("/predicateType", json!("\u{1b}[31m\u{202e}evil"));
    let refusal = verify(
        &envelope,
        &policy(&policy_json()),
        &keys(),
        &subject(),
        &Beside::at(NOW),
    )
    .unwrap_err();
    assert!(!refusal.to_string().contains(['\u{1b}', '\u{202e}']));
}
