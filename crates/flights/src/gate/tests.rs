use super::*;
use flightproof_certifier::key::SecretKey;
use serde_json::json;

fn digest(text: &str) -> Digest {
    Digest::of(text.as_bytes())
}

fn key() -> SecretKey {
    SecretKey::from_seed([3; 32])
}

fn policy() -> GatePolicy {
    let document = json!({
        "schema": "flightproof/gate-policy/1", "keys": [key().public().id()],
        "flights": [{"name": "honest", "modes": ["replayed", "local"]}],
        "hostile_min": 2, "fresh_days": 7, "floors": {"coverage": 9500},
        "fuzz": {"targets_min": 1, "seconds_min": 60},
    });
    GatePolicy::parse(document.to_string().as_bytes()).unwrap()
}

fn candidate() -> Candidate {
    let plans = ["honest", "evil-a", "evil-b"].map(|n| (n.to_owned(), digest(n)));
    Candidate {
        tree: digest("tree"),
        commit: "0".repeat(40).parse().unwrap(),
        program: digest("program"),
        plans: plans.into(),
        now: 100 * DAY,
    }
}

fn flown(mode: &str) -> Evidence {
    let flight = |name: &str| FlightEvidence {
        name: name.to_owned(),
        plan: digest(name),
        hostile: name != "honest",
        as_expected: true,
    };
    Evidence {
        tree: digest("tree"),
        program: digest("program"),
        at: 99 * DAY,
        mode: mode.to_owned(),
        flights: ["honest", "evil-a", "evil-b"].map(flight).into(),
        figures: BTreeMap::from([("coverage".to_owned(), 9_600)]),
    }
}

fn fuzz() -> FuzzSummary {
    let summary = json!({
        "commit": "0".repeat(40), "ended": 99 * DAY, "canary": "found",
        "targets": [{"seconds": 90, "findings": []}],
    });
    serde_json::from_value(summary).unwrap()
}

fn unmet(evidence: &[Evidence], fuzz: Option<&FuzzSummary>) -> Vec<(String, State)> {
    judge(&policy(), &candidate(), evidence, fuzz)
        .into_iter()
        .filter(|row| row.state != State::Met)
        .map(|row| (row.what, row.state))
        .collect()
}

#[test]
fn whole_fresh_evidence_about_this_tree_and_program_is_accepted() {
    let evidence = [flown("replayed"), flown("local")];
    assert_eq!(unmet(&evidence, Some(&fuzz())), []);
    assert!(accepted(&judge(
        &policy(),
        &candidate(),
        &evidence,
        Some(&fuzz())
    )));
}

#[test]
fn what_nobody_measured_is_never_met() {
    let missing = unmet(&[], None);
    assert_eq!(missing.len(), 6, "{missing:?}");
    assert!(
        missing
            .iter()
            .all(|(_, state)| *state == State::NotMeasured),
        "{missing:?}"
    );
    let one_mode = unmet(&[flown("replayed")], Some(&fuzz()));
    assert_eq!(
        one_mode,
        [("flight honest local".to_owned(), State::NotMeasured)]
    );
}

#[test]
fn evidence_about_another_tree_program_plan_or_time_does_not_count() {
    type Change = fn(&mut Evidence);
    let changes: [Change; 4] = [
        |e| e.tree = digest("another"),
        |e| e.program = digest("another"),
        |e| e.at = 92 * DAY,
        |e| e.at = 101 * DAY,
    ];
    for (i, change) in changes.into_iter().enumerate() {
        let mut local = flown("local");
        change(&mut local);
        let found = unmet(&[flown("replayed"), local], Some(&fuzz()));
        assert_eq!(
            found,
            [("flight honest local".to_owned(), State::NotMeasured)],
            "{i}"
        );
    }
    let mut other_plan = flown("local");
    other_plan.flights[0].plan = digest("another");
    let found = unmet(&[flown("replayed"), other_plan], Some(&fuzz()));
    assert_eq!(
        found,
        [("flight honest local".to_owned(), State::NotMeasured)]
    );
}

#[test]
fn one_failure_counts_against_any_number_of_successes() {
    let mut failed = flown("local");
    failed.flights[0].as_expected = false;
    failed.flights[1].as_expected = false;
    let found = unmet(&[flown("replayed"), flown("local"), failed], Some(&fuzz()));
    assert_eq!(
        found,
        [
            ("flight honest local".to_owned(), State::Missing),
            ("hostile flights refused".to_owned(), State::Missing),
        ]
    );
    let mut low = flown("local");
    low.figures.insert("coverage".to_owned(), 9_499);
    let found = unmet(&[flown("replayed"), low], Some(&fuzz()));
    assert_eq!(found, [("figure coverage".to_owned(), State::Missing)]);
}

#[test]
fn a_campaign_counts_if_it_is_of_this_commit_fresh_found_its_canary_and_nothing_else() {
    let evidence = [flown("replayed"), flown("local")];
    type Change = fn(&mut FuzzSummary);
    let changes: [(Change, &str, State); 5] = [
        (
            |f| f.commit = "1".repeat(40).parse().unwrap(),
            "fuzzing campaign",
            State::NotMeasured,
        ),
        (
            |f| f.canary = "lost".into(),
            "fuzzing campaign",
            State::NotMeasured,
        ),
        (|f| f.ended = 1, "fuzzing campaign", State::NotMeasured),
        (
            |f| f.targets[0].seconds = 59,
            "fuzzing seconds",
            State::Missing,
        ),
        (
            |f| f.targets[0].findings = vec![json!("x")],
            "fuzzing findings",
            State::Missing,
        ),
    ];
    for (change, what, state) in changes {
        let mut changed = fuzz();
        change(&mut changed);
        assert_eq!(unmet(&evidence, Some(&changed)), [(what.to_owned(), state)]);
    }
}

#[test]
fn a_policy_that_demands_nothing_is_refused() {
    let text = serde_json::to_value(policy()).unwrap();
    for (field, value) in [
        ("keys", json!([])),
        ("flights", json!([])),
        ("fresh_days", json!(0)),
        ("schema", json!("flightproof/gate-policy/0")),
        ("more", json!(1)),
        ("flights", json!([{"name": "a", "modes": []}])),
        ("flights", json!([{"name": "a", "modes": ["imagined"]}])),
    ] {
        let mut bad = text.clone();
        bad[field] = value;
        let refused = GatePolicy::parse(bad.to_string().as_bytes()).unwrap_err();
        assert_eq!(refused.code(), "flights/GATE_POLICY_INVALID", "{field}");
    }
    let mut newer = text;
    newer["schema"] = json!("flightproof/gate-policy/2");
    let refused = GatePolicy::parse(newer.to_string().as_bytes()).unwrap_err();
    assert_eq!(refused.code(), "flights/PLAN_TOO_NEW");
}

#[test]
fn only_signed_evidence_is_read() {
    let (ours, other) = (key(), SecretKey::from_seed([4; 32]));
    let envelope = flown("local").sign(&ours).unwrap();
    assert_eq!(
        Evidence::open(&envelope, &[ours.public()]).unwrap(),
        flown("local")
    );
    let refused = Evidence::open(&envelope, &[other.public()]).unwrap_err();
    assert_eq!(refused.code(), "certifier/SIGNATURE_INVALID");
    let rows = judge(&policy(), &candidate(), &[], None);
    let accepted = acceptance(&candidate(), &rows, digest("p"), b"{}", &ours).unwrap();
    let refused = Evidence::open(&accepted, &[ours.public()]).unwrap_err();
    assert_eq!(refused.code(), "flights/EVIDENCE_INVALID");
    assert_eq!(last_policy(&accepted, &[ours.public()]).unwrap(), b"{}");
    assert!(last_policy(&accepted, &[other.public()]).is_err());
    let summary = b"{}";
    let refused = FuzzSummary::open(summary, &other.sign(summary), &[ours.public()]).unwrap_err();
    assert_eq!(refused.code(), "flights/EVIDENCE_INVALID");
}
