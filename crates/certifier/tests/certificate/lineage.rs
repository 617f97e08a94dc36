//! Certificates that build on certificates: walked to their beginning, or not believed.

use crate::fixture::*;
use flightproof_certifier::CertifierCode;
use flightproof_certifier::certificate::Statement;
use flightproof_certifier::key::SecretKey;
use flightproof_certifier::lineage::{Ancestor, MAX_DEPTH, descent};
use flightproof_certifier::revocation::{CheckedRevocations, RevocationList, Revoked};
use flightproof_certifier::verify::{Beside, verify};
use flightproof_core::{CommitId, Digest, Moment};
use serde_json::{Value, json};

fn id(statement: &Value) -> Digest {
    let bytes = serde_json::to_vec(statement).unwrap();
    Statement::parse(&bytes).unwrap().id().unwrap()
}

/// Certificates of a line of commits, the first without a parent; the last one is of the honest
/// commit. Each carries what the one before left.
fn line(generations: u64) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    let commit = |n: u64| json!(CommitId::from_bytes([u8::try_from(n + 100).unwrap(); 20]));
    for depth in 0..generations {
        let mut statement = honest();
        let inputs = &mut statement["predicate"]["inputs"];
        inputs["request"]["baseline"] = commit(depth);
        inputs["request"]["head"] = commit(depth + 1);
        inputs["lineage"] = match all.last() {
            None => json!({"depth": 0}),
            Some(parent) => json!({"depth": depth, "parent": id(parent)}),
        };
        all.push(statement);
    }
    all
}

fn outcome(last: &Value, parents: &[Vec<u8>]) -> Result<(), CertifierCode> {
    let mut beside = Beside::at(NOW);
    beside.parents = parents.to_vec();
    let verified = verify(
        &signed(last),
        &policy(&policy_json()),
        &keys(),
        &subject(),
        &beside,
    );
    verified.map(|_| ()).map_err(|e| e.code)
}

/// Signs each anew.
fn envelopes(line: &[Value]) -> Vec<Vec<u8>> {
    line.iter().map(signed).collect()
}

#[test]
fn a_lineage_is_walked_down_to_its_beginning_in_whatever_order_it_is_given() {
    for generations in 1..=4 {
        let line = line(generations);
        let (last, before) = line.split_last().unwrap();
        let mut parents = envelopes(before);
        assert_eq!(outcome(last, &parents), Ok(()));
        parents.reverse();
        assert_eq!(outcome(last, &parents), Ok(()));
    }
}

#[test]
fn a_parent_that_is_missing_of_another_commit_or_at_another_depth_proves_nothing() {
    let line = line(3);
    let [first, second, last] = line.as_slice() else {
        panic!("three");
    };
    let broken = Err(CertifierCode::LineageBroken);
    assert_eq!(outcome(last, &[]), broken);
    assert_eq!(
        outcome(last, &envelopes(std::slice::from_ref(first))),
        broken
    );
    assert_eq!(
        outcome(last, &envelopes(std::slice::from_ref(second))),
        broken
    );
    let tampered = |edit: &dyn Fn(&mut Value)| {
        let mut parent = second.clone();
        edit(&mut parent["predicate"]["inputs"]);
        let mut child = last.clone();
        child["predicate"]["inputs"]["lineage"]["parent"] = json!(id(&parent));
        outcome(&child, &envelopes(&[first.clone(), parent]))
    };
    assert_eq!(tampered(&|_| {}), Ok(()));
    let other = json!(CommitId::from_bytes([7; 20]));
    assert_eq!(tampered(&|i| i["request"]["head"] = other.clone()), broken);
    assert_eq!(tampered(&|i| i["lineage"]["depth"] = json!(2)), broken);
    // What contradicts itself is no parent either, whoever signed it.
    let contradicting = tampered(&|i| i["mutation"]["equivalent"] = json!(1));
    assert_eq!(contradicting, Err(CertifierCode::Inconsistent));
    let mut lying = last.clone();
    lying["predicate"]["inputs"]["lineage"]["depth"] = json!(1);
    assert_eq!(
        outcome(&lying, &envelopes(&[first.clone(), second.clone()])),
        broken
    );
    let unasked = Err(CertifierCode::BesideUnasked);
    assert_eq!(
        outcome(first, &envelopes(std::slice::from_ref(second))),
        unasked
    );
    let twice = envelopes(&[first.clone(), first.clone(), second.clone()]);
    assert_eq!(outcome(last, &twice), unasked);
}

#[test]
fn a_parent_of_a_stranger_is_no_parent() {
    let line = line(2);
    let stranger = SecretKey::from_seed([9; 32]);
    let payload = serde_json::to_vec(&line[0]).unwrap();
    let statement = Statement::parse(&payload).unwrap();
    let parent = statement.sign(&stranger).unwrap();
    assert_eq!(
        outcome(&line[1], &[parent]),
        Err(CertifierCode::SignatureInvalid)
    );
}

#[test]
fn a_revoked_parent_is_no_parent_however_far_back() {
    let line = line(3);
    let (last, before) = line.split_last().unwrap();
    let lists = SecretKey::from_seed([2; 32]);
    let mut under = policy_json();
    under["keys"] = json!([key().public().id()]);
    under["revocations"] = json!({"list": "main", "keys": [lists.public().id()]});
    let policy = policy(&under);
    let ring = [keys(), vec![lists.public()]].concat();
    let now = Moment::from_unix(NOW);
    let outcome = |revoked: Digest| {
        let mut list = RevocationList::first("main".parse().unwrap(), now, 30);
        let (since, reason) = (now, "wrong".to_owned());
        list.certificates.insert(revoked, Revoked { since, reason });
        let signed_list = list.sign(&lists).unwrap();
        let rule = policy.revocations().unwrap();
        let list = CheckedRevocations::open(&signed_list, rule, &ring, now, None).unwrap();
        let beside = Beside {
            parents: envelopes(before),
            revocations: Some(list),
            ..Beside::at(NOW)
        };
        let verified = verify(&signed(last), &policy, &ring, &subject(), &beside);
        verified.map(|_| ()).map_err(|e| e.code)
    };
    assert_eq!(outcome(Digest::of(b"another")), Ok(()));
    for statement in &line {
        let revoked = Err(CertifierCode::CertificateRevoked);
        assert_eq!(outcome(id(statement)), revoked);
    }
}

#[test]
fn a_depth_and_a_parent_go_together_and_end_at_the_ceiling() {
    let lineage = "/predicate/inputs/lineage";
    let parent = json!(Digest::of(b"p"));
    for (claim, code) in [
        (json!({"depth": 1}), CertifierCode::LineageBroken),
        (
            json!({"depth": 0, "parent": parent}),
            CertifierCode::LineageBroken,
        ),
        (
            json!({"depth": MAX_DEPTH + 1, "parent": parent}),
            CertifierCode::LineageTooDeep,
        ),
        (
            json!({"depth": MAX_DEPTH, "parent": parent}),
            CertifierCode::LineageBroken,
        ),
    ] {
        assert_eq!(refused(&with(lineage, claim)), code);
    }
    let attempt = with("/predicate/inputs/request/attempt", json!(0));
    assert_eq!(refused(&attempt), CertifierCode::ClaimEmpty);
}

#[test]
fn a_commit_descends_from_the_certificate_of_its_baseline() {
    let line = line(MAX_DEPTH + 1);
    let ancestors: Vec<Ancestor> = line
        .iter()
        .map(|statement| Ancestor::open(&signed(statement), &keys()).unwrap())
        .collect();
    let mut captured = flight().captured;
    let mut on = |head: &Value, given: &[Ancestor]| {
        captured.baseline = serde_json::from_value(head.clone()).unwrap();
        descent(&captured, given).map_err(|e| e.code)
    };
    let head = |n: usize| &line[n]["predicate"]["inputs"]["request"]["head"];
    assert_eq!(on(head(0), &[]).unwrap().depth, 0);
    let claim = on(head(1), &ancestors[..2]).unwrap();
    assert_eq!((claim.depth, claim.parent), (2, Some(id(&line[1]))));
    assert_eq!(
        on(head(2), &ancestors[..2]),
        Err(CertifierCode::LineageBroken)
    );
    assert_eq!(
        on(head(1), &ancestors[1..2]),
        Err(CertifierCode::LineageBroken)
    );
    assert_eq!(
        on(head(0), &ancestors[..2]),
        Err(CertifierCode::BesideUnasked)
    );
    let last = line.len() - 1;
    assert_eq!(
        on(head(last), &ancestors),
        Err(CertifierCode::LineageTooDeep)
    );
}
