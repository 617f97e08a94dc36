//! What is presented beside a certificate: revocation lists, exceptions, second statements. For each
//! the good one, and everything that is wrong with the others.

use crate::fixture::*;
use flightproof_certifier::CertifierCode;
use flightproof_certifier::CertifierCode::*;
use flightproof_certifier::admission::AdmissionStatement;
use flightproof_certifier::certificate::{Admission, Statement};
use flightproof_certifier::dsse::{self, PAYLOAD_TYPE};
use flightproof_certifier::exception::{self, Exception};
use flightproof_certifier::judge::Gate;
use flightproof_certifier::key::{PublicKey, SecretKey};
use flightproof_certifier::revocation::{
    self, CheckedRevocations, ListName, RevocationList, Revoked, Seen,
};
use flightproof_certifier::verify::{Beside, Verified, open, verify};
use flightproof_core::{Digest, Moment, canonical_json};
use serde_json::{Value, json};

fn secret(seed: u8) -> SecretKey {
    SecretKey::from_seed([seed; 32])
}

fn id_of(seed: u8) -> Digest {
    secret(seed).public().id()
}

fn now() -> Moment {
    Moment::from_unix(NOW)
}

/// Keys 1 to 9, of which a policy names some, and the certificate's.
fn ring() -> Vec<PublicKey> {
    (1..10)
        .map(|seed| secret(seed).public())
        .chain(keys())
        .collect()
}

/// The ordinary policy with the certificate's key named, and one more rule.
fn ruled(field: &str, rule: Value) -> Value {
    let mut policy = policy_json();
    policy["keys"] = json!([key().public().id()]);
    policy[field] = rule;
    policy
}

fn certificate() -> Vec<u8> {
    signed(&honest())
}

fn id() -> Digest {
    flight().statement().id().unwrap()
}

fn verdict(under: &Value, beside: &Beside) -> Result<Verified, CertifierCode> {
    verdict_of(&certificate(), under, beside)
}

fn verdict_of(envelope: &[u8], under: &Value, beside: &Beside) -> Result<Verified, CertifierCode> {
    verify(envelope, &policy(under), &ring(), &subject(), beside).map_err(|e| e.code)
}

mod revocations {
    use super::*;

    fn rule() -> Value {
        ruled("revocations", json!({"list": "main", "keys": [id_of(2)]}))
    }

    fn list() -> RevocationList {
        RevocationList::first("main".parse().unwrap(), now(), 30)
    }

    fn why() -> Revoked {
        Revoked {
            since: now(),
            reason: "lost".to_owned(),
        }
    }

    fn check(
        envelope: &[u8],
        at: Moment,
        remembered: Option<&Seen>,
    ) -> Result<CheckedRevocations, CertifierCode> {
        let policy = policy(&rule());
        let rule = policy.revocations().unwrap();
        CheckedRevocations::open(envelope, rule, &ring(), at, remembered).map_err(|e| e.code)
    }

    fn under(list: &RevocationList) -> Result<Verified, CertifierCode> {
        let checked = check(&list.sign(&secret(2)).unwrap(), now(), None)?;
        let beside = Beside {
            revocations: Some(checked),
            ..Beside::at(NOW)
        };
        verdict(&rule(), &beside)
    }

    #[test]
    fn a_certificate_holds_while_neither_it_nor_its_key_is_on_the_list() {
        assert!(under(&list()).is_ok());
        let mut other = list();
        other.keys.insert(id_of(3), why());
        other.certificates.insert(Digest::of(b"other"), why());
        assert!(under(&other).is_ok());

        let mut key_gone = list();
        key_gone.keys.insert(key().public().id(), why());
        assert_eq!(under(&key_gone).err(), Some(KeyRevoked));
        let mut gone = list();
        gone.certificates.insert(id(), why());
        assert_eq!(under(&gone).err(), Some(CertificateRevoked));
    }

    #[test]
    fn a_revoked_certificate_stays_so_when_its_envelope_is_written_anew() {
        let mut gone = list();
        gone.certificates.insert(id(), why());
        let checked = check(&gone.sign(&secret(2)).unwrap(), now(), None).unwrap();
        let beside = Beside {
            revocations: Some(checked),
            ..Beside::at(NOW)
        };
        let mut envelope: Value = serde_json::from_slice(&certificate()).unwrap();
        envelope["signatures"][0]["keyid"] = json!("another hint");
        let spaced = serde_json::to_vec_pretty(&envelope).unwrap();
        let refused = verdict_of(&spaced, &rule(), &beside).err();
        assert_eq!(refused, Some(CertificateRevoked));
    }

    #[test]
    fn no_list_is_not_nothing_revoked() {
        let refused = verdict(&rule(), &Beside::at(NOW)).err();
        assert_eq!(refused, Some(RevocationUnavailable));
        let unsigned = canonical_json(&list()).unwrap();
        let by_other = list().sign(&secret(3)).unwrap();
        let by_certifier = list().sign(&key()).unwrap();
        for bad in [&by_other, &by_certifier, &unsigned, &Vec::new()] {
            assert_eq!(check(bad, now(), None).err(), Some(RevocationUnavailable));
        }
        // A certificate's envelope is no list, whoever signed it.
        let payload = canonical_json(&list()).unwrap();
        let as_statement = dsse::sign(PAYLOAD_TYPE, &payload, &secret(2)).unwrap();
        let refused = check(&as_statement, now(), None).err();
        assert_eq!(refused, Some(RevocationUnavailable));
    }

    #[test]
    fn a_list_that_is_not_asked_for_is_refused() {
        let checked = check(&list().sign(&secret(2)).unwrap(), now(), None).unwrap();
        let beside = Beside {
            revocations: Some(checked),
            ..Beside::at(NOW)
        };
        assert_eq!(verdict(&policy_json(), &beside).err(), Some(BesideUnasked));
        let other = ruled("revocations", json!({"list": "other", "keys": [id_of(2)]}));
        assert_eq!(verdict(&other, &beside).err(), Some(RevocationInvalid));
    }

    #[test]
    fn an_old_list_and_a_second_of_the_same_number_are_noticed() {
        let first = list();
        let second = first.clone().next(now(), 30);
        let sign = |list: &RevocationList| list.sign(&secret(2)).unwrap();
        let seen = check(&sign(&second), now(), None).unwrap().seen().clone();
        assert!(check(&sign(&second), now(), Some(&seen)).is_ok());
        let rolled = Some(RevocationRolledBack);
        assert_eq!(check(&sign(&first), now(), Some(&seen)).err(), rolled);
        let mut fork = second.clone();
        fork.keys.insert(id_of(3), why());
        assert_eq!(check(&sign(&fork), now(), Some(&seen)).err(), rolled);
        let third = fork.next(now(), 30);
        assert!(check(&sign(&third), now(), Some(&seen)).is_ok());
    }

    #[test]
    fn a_list_counts_from_its_issue_to_its_end() {
        let envelope = list().sign(&secret(2)).unwrap();
        let at = |seconds| check(&envelope, Moment::from_unix(seconds), None).err();
        let end = now().after_days(30).unix();
        assert_eq!(at(NOW), None);
        assert_eq!(at(end - 1), None);
        assert_eq!(at(end), Some(RevocationStale));
        assert_eq!(at(NOW - 1), Some(RevocationStale));
    }

    #[test]
    fn a_list_is_read_in_one_way_or_not_at_all() {
        let payload = String::from_utf8(canonical_json(&list()).unwrap()).unwrap();
        assert!(RevocationList::parse(payload.as_bytes()).is_ok());
        for bad in [
            payload.replacen('{', r#"{"version":9,"#, 1),
            payload.replacen('{', r#"{"more":9,"#, 1),
            payload.replace("\"version\":1", "\"version\":0"),
            payload.replace("\"version\":1", "\"version\":1.0"),
            payload.replace("revocations/1", "revocations/2"),
            payload.replace("\"main\"", "\"../main\""),
            payload.replace("2026-12", "2036-12"),
            payload.replace("2026-12", "2025-12"),
            format!(" {payload}"),
            "[]".to_owned(),
        ] {
            let refused = RevocationList::parse(bad.as_bytes()).err().map(|e| e.code);
            assert_eq!(refused, Some(RevocationInvalid), "{bad}");
            let signed = dsse::sign(revocation::PAYLOAD_TYPE, bad.as_bytes(), &secret(2)).unwrap();
            assert_eq!(check(&signed, now(), None).err(), Some(RevocationInvalid));
        }
    }

    #[test]
    fn a_list_has_so_many_entries_and_so_long_a_life_and_no_more() {
        let signs = |list: &RevocationList| list.sign(&secret(2)).map(drop).map_err(|e| e.code());
        let invalid = Err("certifier/REVOCATION_INVALID");
        let mut many = list();
        for n in 1..revocation::MAX_ENTRIES {
            many.keys.insert(Digest::of(&n.to_be_bytes()), why());
        }
        many.certificates.insert(id(), why());
        assert_eq!(signs(&many), Ok(()));
        many.certificates.insert(Digest::of(b"one more"), why());
        assert_eq!(signs(&many), invalid);
        let mut long = list().next(now(), revocation::MAX_DAYS);
        assert_eq!(signs(&long), Ok(()));
        long.expires = now().after_days(revocation::MAX_DAYS + 1);
        assert_eq!(signs(&long), invalid);
        let mut stillborn = list();
        stillborn.expires = stillborn.issued;
        assert_eq!(signs(&stillborn), invalid);
    }

    #[test]
    fn a_list_is_named_plainly() {
        let longest = "x".repeat(60);
        for good in ["a", "0", "main", "a.b-c_9", &longest] {
            let name: ListName = good.parse().unwrap();
            assert_eq!(name.to_string(), good);
        }
        let longer = "x".repeat(61);
        for bad in [
            "", ".a", "-a", "_a", "A", "aB", "a/b", "a b", "\u{e9}", &longer,
        ] {
            assert!(bad.parse::<ListName>().is_err(), "{bad}");
        }
    }
}

mod time {
    use super::*;

    #[test]
    fn with_a_clock_of_the_past_nothing_is_accepted() {
        for now in [0, 1_500_000_000, 1_767_225_599] {
            let refused = verdict(&policy_json(), &Beside::at(now)).err();
            assert_eq!(refused, Some(ClockImplausible));
        }
        assert!(verdict(&policy_json(), &Beside::at(1_767_225_600)).is_ok());
    }

    #[test]
    fn a_key_out_of_force_is_named_as_such() {
        let mut policy = policy_json();
        policy["keys"] = json!([{"key": key().public().id(), "until": "2026-11-01T00:00:00Z"}]);
        assert_eq!(verdict(&policy, &Beside::at(NOW)).err(), Some(KeyExpired));
        policy["keys"] = json!([{"key": key().public().id(), "until": "2026-12-01T00:00:00Z"}]);
        assert!(verdict(&policy, &Beside::at(NOW)).is_ok());
    }
}

mod exceptions {
    use super::*;

    /// A document's certificate: it never passed the mutation gate.
    fn vacuous() -> Vec<u8> {
        let mut statement = honest();
        let gates = statement["predicate"]["gates"].as_array_mut().unwrap();
        gates.retain(|gate| gate != "mutation");
        let mutation = &mut statement["predicate"]["inputs"]["mutation"];
        for zero in ["generated", "viable", "unviable", "survived"] {
            mutation[zero] = json!(0);
        }
        mutation["killedBy"] = json!({});
        mutation["waived"] = json!([]);
        mutation["lines"] = json!({"changed": 1, "mutated": 0, "inert": 0, "data": 1, "notCompiled": 0, "unjudged": 0});
        signed(&statement)
    }

    fn vacuous_id() -> Digest {
        let payload = dsse::unchecked(&vacuous(), PAYLOAD_TYPE).unwrap();
        Digest::of(&payload)
    }

    fn rule() -> Value {
        ruled("exceptions", json!({"keys": [id_of(3)]}))
    }

    fn exception() -> Exception {
        Exception {
            schema: exception::SCHEMA.to_owned(),
            certificate: vacuous_id(),
            code: "certifier/GATE_MISSING".to_owned(),
            gate: Some(Gate::Mutation),
            issued: now(),
            expires: now().after_days(7),
            reason: "a change of words".to_owned(),
        }
    }

    fn with(envelopes: Vec<Vec<u8>>) -> Result<Verified, CertifierCode> {
        at(NOW, envelopes)
    }

    fn at(now: u64, exceptions: Vec<Vec<u8>>) -> Result<Verified, CertifierCode> {
        let beside = Beside {
            exceptions,
            ..Beside::at(now)
        };
        verdict_of(&vacuous(), &rule(), &beside)
    }

    #[test]
    fn a_signed_exception_excuses_one_rule_for_one_certificate_and_is_shown() {
        assert_eq!(with(vec![]).err(), Some(GateMissing));
        let envelope = exception().sign(&secret(3)).unwrap();
        let verified = with(vec![envelope.clone()]).unwrap();
        assert_eq!(verified.excused.len(), 1);
        assert_eq!(verified.excused[0].signers, [id_of(3)]);
        // It is not needed by the honest certificate, and is for another one.
        let beside = Beside {
            exceptions: vec![envelope],
            ..Beside::at(NOW)
        };
        assert_eq!(verdict(&rule(), &beside).err(), Some(ExceptionInvalid));
    }

    #[test]
    fn an_exception_of_another_gate_excuses_nothing() {
        let mut other = exception();
        other.gate = Some(Gate::Determinism);
        let envelope = other.sign(&secret(3)).unwrap();
        assert_eq!(with(vec![envelope]).err(), Some(GateMissing));
    }

    #[test]
    fn whoever_may_not_make_exceptions_makes_none() {
        for other in [&secret(4), &key()] {
            let envelope = exception().sign(other).unwrap();
            assert_eq!(with(vec![envelope]).err(), Some(ExceptionInvalid));
        }
        let envelope = exception().sign(&secret(3)).unwrap();
        let mut many = vec![envelope.clone(); exception::MAX_EXCEPTIONS];
        assert!(with(many.clone()).is_ok());
        many.push(envelope.clone());
        assert_eq!(with(many).err(), Some(ExceptionInvalid));
        let beside = Beside {
            exceptions: vec![envelope],
            ..Beside::at(NOW)
        };
        let refused = verdict_of(&vacuous(), &policy_json(), &beside).err();
        assert_eq!(refused, Some(BesideUnasked));
    }

    #[test]
    fn an_exception_ends() {
        let envelope = || vec![exception().sign(&secret(3)).unwrap()];
        let end = now().after_days(7).unix();
        assert!(at(end - 1, envelope()).is_ok());
        assert_eq!(at(end, envelope()).err(), Some(ExceptionExpired));
        assert_eq!(at(NOW - 1, envelope()).err(), Some(ExceptionExpired));
    }

    #[test]
    fn only_rules_of_the_policy_can_be_excused() {
        for code in [
            "archive/PREFIX_CONFLICT",
            "importer/TREE_MODE",
            "session/SHORTFALL",
            "certifier/SIGNATURE_INVALID",
            "certifier/SUBJECT_MISMATCH",
            "certifier/INCONSISTENT",
            "certifier/WITNESS_MISMATCH",
            "certifier/REPOSITORY_MISMATCH",
            "certifier/gate_missing",
            "",
        ] {
            let mut forbidden = exception();
            forbidden.code = code.to_owned();
            forbidden.gate = None;
            assert_eq!(
                forbidden.sign(&secret(3)).map_err(|e| e.code()),
                Err("certifier/EXCEPTION_FORBIDDEN"),
                "{code}"
            );
            // Signed all the same, by a program that is not ours.
            let payload = canonical_json(&forbidden).unwrap();
            let envelope = dsse::sign(exception::PAYLOAD_TYPE, &payload, &secret(3)).unwrap();
            assert_eq!(
                with(vec![envelope]).err(),
                Some(ExceptionForbidden),
                "{code}"
            );
        }
    }

    #[test]
    fn an_exception_has_a_reason_a_gate_where_it_needs_one_and_a_short_life() {
        let mut silent = exception();
        silent.reason = "  ".to_owned();
        let mut gateless = exception();
        gateless.gate = None;
        let mut endless = exception();
        endless.expires = now().after_days(exception::MAX_DAYS + 1);
        let mut longest = exception();
        longest.expires = now().after_days(exception::MAX_DAYS);
        assert!(with(vec![longest.sign(&secret(3)).unwrap()]).is_ok());
        let mut backwards = exception();
        backwards.expires = now();
        for bad in [silent, gateless, endless, backwards] {
            let payload = canonical_json(&bad).unwrap();
            let envelope = dsse::sign(exception::PAYLOAD_TYPE, &payload, &secret(3)).unwrap();
            assert_eq!(
                with(vec![envelope]).err(),
                Some(ExceptionInvalid),
                "{bad:?}"
            );
        }
    }
}

mod admissions {
    use super::*;

    fn rule(threshold: usize, other: bool) -> Value {
        ruled(
            "admission",
            json!({"keys": [id_of(5), id_of(6), key().public().id()], "threshold": threshold, "other_than_signer": other}),
        )
    }

    fn statement() -> AdmissionStatement {
        AdmissionStatement::of(&flight().statement(), id(), "main").unwrap()
    }

    fn admission(signers: &[&SecretKey]) -> Vec<u8> {
        signed_by(&statement().payload().unwrap(), signers)
    }

    fn signed_by(payload: &[u8], signers: &[&SecretKey]) -> Vec<u8> {
        let first = dsse::sign(PAYLOAD_TYPE, payload, signers[0]).unwrap();
        signers[1..].iter().fold(first, |envelope, key| {
            dsse::join(&envelope, PAYLOAD_TYPE, payload, *key).unwrap()
        })
    }

    fn with(under: &Value, admission: Vec<u8>) -> Result<Verified, CertifierCode> {
        let beside = Beside {
            admission: Some(admission),
            ..Beside::at(NOW)
        };
        verdict(under, &beside)
    }

    #[test]
    fn a_second_statement_lets_the_commit_in() {
        let verified = with(&rule(1, false), admission(&[&secret(5)])).unwrap();
        let let_in = verified.let_in.unwrap();
        assert_eq!(
            (let_in.branch.as_str(), let_in.signers),
            ("main", vec![id_of(5)])
        );
        let refused = verdict(&rule(1, false), &Beside::at(NOW)).err();
        assert_eq!(refused, Some(AdmissionMissing));
        let unasked = with(&policy_json(), admission(&[&secret(5)])).err();
        assert_eq!(unasked, Some(BesideUnasked));
    }

    #[test]
    fn a_certificate_that_admits_itself_still_needs_the_second_statement() {
        let mut own = flight();
        own.admission = Admission::Admitted {
            branch: "release".to_owned(),
        };
        let statement: Statement = own.statement();
        let envelope = statement.sign(&key()).unwrap();
        let refused = verdict_of(&envelope, &rule(1, false), &Beside::at(NOW)).err();
        assert_eq!(refused, Some(AdmissionMissing));
        let id = statement.id().unwrap();
        let elsewhere = AdmissionStatement::of(&statement, id, "main");
        assert_eq!(elsewhere.map_err(|e| e.code), Err(AdmissionMismatch));
    }

    #[test]
    fn whoever_may_let_a_commit_in_is_named_in_force_and_not_revoked() {
        let may = |under: &Value, beside: &Beside, seed: u8| {
            let (policy, ring) = (policy(under), ring());
            let envelope = certificate();
            let opened = open(&envelope, &policy, &ring, beside).unwrap();
            assert_eq!(opened.id(), id());
            assert_eq!(opened.statement(), &flight().statement());
            assert_eq!(opened.policy(), &policy);
            opened.may_admit(&secret(seed).public()).map_err(|e| e.code)
        };
        let plain = Beside::at(NOW);
        assert_eq!(may(&policy_json(), &plain, 7), Ok(()));
        let mut under = rule(1, false);
        assert_eq!(may(&under, &plain, 5), Ok(()));
        assert_eq!(may(&under, &plain, 7), Err(KeyUnauthorized));
        under["admission"]["keys"] =
            json!([{"key": id_of(5), "until": "2026-11-01T00:00:00Z"}, id_of(6)]);
        assert_eq!(may(&under, &plain, 5), Err(KeyExpired));
        under["revocations"] = json!({"list": "main", "keys": [id_of(2)]});
        let mut list = RevocationList::first("main".parse().unwrap(), now(), 30);
        let reason = "lost".to_owned();
        list.keys.insert(
            id_of(6),
            Revoked {
                since: now(),
                reason,
            },
        );
        let policy = policy(&under);
        let rule = policy.revocations().unwrap();
        let signed = list.sign(&secret(2)).unwrap();
        let beside = Beside {
            revocations: Some(
                CheckedRevocations::open(&signed, rule, &ring(), now(), None).unwrap(),
            ),
            ..Beside::at(NOW)
        };
        assert_eq!(may(&under, &beside, 6), Err(KeyRevoked));
    }

    #[test]
    fn thresholds_count_distinct_keys_and_where_asked_other_ones() {
        let two = rule(2, false);
        assert_eq!(
            with(&two, admission(&[&secret(5)])).err(),
            Some(ThresholdNotMet)
        );
        assert!(with(&two, admission(&[&secret(5), &secret(6)])).is_ok());
        assert!(with(&two, admission(&[&secret(5), &key()])).is_ok());
        let others = rule(2, true);
        assert_eq!(
            with(&others, admission(&[&secret(5), &key()])).err(),
            Some(AdmissionBySigner)
        );
        assert!(with(&others, admission(&[&secret(5), &secret(6), &key()])).is_ok());
        let mut twice: Value = serde_json::from_slice(&admission(&[&secret(5)])).unwrap();
        let again = twice["signatures"][0].clone();
        twice["signatures"].as_array_mut().unwrap().push(again);
        let refused = with(&two, twice.to_string().into_bytes()).err();
        assert_eq!(refused, Some(ThresholdNotMet));
        let stranger = with(&rule(1, false), admission(&[&secret(7)])).err();
        assert_eq!(stranger, Some(SignatureInvalid));
    }

    #[test]
    fn an_admission_of_something_else_lets_nothing_in() {
        let payload = statement().payload().unwrap();
        let text = String::from_utf8(payload).unwrap();
        for bad in [
            text.replace(&id().to_string(), &Digest::of(b"other").to_string()),
            text.replace("example/rounding", "example/other"),
            text.replace("admission/v1", "admission/v2"),
            text.replace("admission/1", "admission/2"),
            text.replace(&snapshot().to_string(), &Digest::of(b"other").to_string()),
            text.replacen('{', r#"{"more":1,"#, 1),
            format!(" {text}"),
            "{}".to_owned(),
            // The certificate itself, signed once more.
            String::from_utf8(flight().statement().payload().unwrap()).unwrap(),
        ] {
            let envelope = signed_by(bad.as_bytes(), &[&secret(5)]);
            let refused = with(&rule(1, false), envelope).err();
            assert_eq!(refused, Some(AdmissionMismatch), "{bad}");
        }
    }
}
