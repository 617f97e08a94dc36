//! Certificates that contradict themselves or claim nothing, properly signed.

use crate::fixture::*;
use flightproof_certifier::CertifierCode;
use flightproof_certifier::judge::Gate;
use flightproof_core::Digest;
use serde_json::{Value, json};

#[test]
fn counts_that_do_not_add_up_are_refused() {
    for (pointer, value) in [
        ("mutation/generated", json!(13)),
        ("mutation/viable", json!(11)),
        ("mutation/unviable", json!(1)),
        ("mutation/survived", json!(1)),
        ("mutation/killedBy", json!({"value": 8, "signal": 2})),
        (
            "mutation/killedBy",
            json!({"value": 9_007_199_254_740_991u64}),
        ),
        ("mutation/waived", json!([])),
        // Ways to notice a mutant, and operators, that there are none of.
        ("mutation/killedBy", json!({"value": 7, "signals": 2})),
        ("mutation/operatorSet", json!("rust")),
        ("mutation/operatorSet", json!("rust-x")),
        ("mutation/operatorSet", json!("cobol-1")),
        // Mutants of comments.
        (
            "mutation/lines",
            json!({"changed": 9, "mutated": 0, "inert": 9, "data": 0, "notCompiled": 0, "unjudged": 0}),
        ),
        ("mutation/lines/changed", json!(10)),
        ("mutation/lines/mutated", json!(4)),
        // A grant without lines, and an order of cases that could say one thing in two ways.
        ("mutation/lines/granted", json!(["ci"])),
        (
            "witness/failedOnBaseline",
            json!({"kind": "ran", "failed": [2, 1]}),
        ),
        (
            "witness/failedOnBaseline",
            json!({"kind": "ran", "failed": [0]}),
        ),
        (
            "witness/failedOnBaseline",
            json!({"kind": "ran", "failed": [99]}),
        ),
        ("session-execution/cases", json!(5)),
        ("session-execution/runsPerCase", json!(1)),
        ("session-execution/remains/processes", json!(1)),
        ("sandbox-spec/asked", json!({"memory-bytes": "1"})),
        ("session-build/source", json!(Digest::of(b"other"))),
        (
            "capture/narrowed",
            json!({"paths": ["src"], "source": Digest::of(b"other")}),
        ),
        ("request/repository", json!("example/other")),
    ] {
        assert_eq!(
            refused(&with(&format!("/predicate/inputs/{pointer}"), value)),
            CertifierCode::Inconsistent,
            "{pointer}"
        );
    }
}

#[test]
fn survivors_are_not_hidden_by_counts_that_add_up() {
    let mut statement = honest();
    let mutation = &mut statement["predicate"]["inputs"]["mutation"];
    mutation["survived"] = json!(1);
    mutation["killedBy"]["value"] = json!(6);
    assert_eq!(refused(&signed(&statement)), CertifierCode::Inconsistent);
    let gates = Gate::ALL
        .map(Gate::name)
        .into_iter()
        .filter(|g| *g != "mutation");
    statement["predicate"]["gates"] = gates.collect();
    assert_eq!(refused(&signed(&statement)), CertifierCode::GateMissing);
}

#[test]
fn lines_that_nothing_judges_are_claimed_with_their_grants_and_waivers_or_not_at_all() {
    let lines = "/predicate/inputs/mutation/lines";
    let classes = |not_compiled: u64, unjudged: u64, granted: Value| {
        let mut claim = json!({"changed": 9, "mutated": 5, "inert": 3 - not_compiled - unjudged,
            "data": 1, "notCompiled": not_compiled, "unjudged": unjudged});
        if granted != json!([]) {
            claim["granted"] = granted;
        }
        with(lines, claim)
    };
    for false_claim in [
        classes(1, 0, json!([])),
        classes(0, 0, json!(["ci"])),
        classes(0, 1, json!([])),
    ] {
        assert_eq!(refused(&false_claim), CertifierCode::Inconsistent);
    }
    assert_eq!(
        refused(&classes(1, 0, json!(["ci"]))),
        CertifierCode::UncompiledNotAllowed
    );
}

#[test]
fn regenerated_lines_are_claimed_with_the_rules_that_made_them_or_not_at_all() {
    let lines = "/predicate/inputs/mutation/lines";
    let rule =
        |name: &str, files: Value| json!({"rule": name, "digest": "0".repeat(64), "files": files});
    let classes = |regenerated: u64, rules: Value| {
        let mut claim = json!({"changed": 9, "mutated": 5, "inert": 3 - regenerated, "data": 1,
            "notCompiled": 0, "unjudged": 0});
        if regenerated > 0 {
            claim["regenerated"] = json!(regenerated);
        }
        if rules != json!([]) {
            claim["generated"] = rules;
        }
        with(lines, claim)
    };
    let one = rule("a", json!(["src/a.rs"]));
    for false_claim in [
        classes(1, json!([])),
        classes(0, json!([one])),
        classes(1, json!([rule("a", json!([]))])),
        classes(1, json!([rule("a", json!(["src/a.rs", "src/b.rs"]))])),
        classes(2, json!([one, rule("a", json!(["src/b.rs"]))])),
        classes(2, json!([one, rule("b", json!(["src/a.rs"]))])),
    ] {
        assert_eq!(refused(&false_claim), CertifierCode::Inconsistent);
    }
    let code = CertifierCode::RegeneratedNotAllowed;
    assert_eq!(refused(&classes(2, json!([one]))), code);
}

#[test]
fn a_kind_of_witness_is_claimed_with_what_makes_it_that_kind_or_not_at_all() {
    let witness = |kind: &str, differential: Value| {
        let mut claim = honest()["predicate"]["inputs"]["witness"].clone();
        claim["kind"] = json!(kind);
        if differential != json!(null) {
            claim["differential"] = differential;
        }
        with("/predicate/inputs/witness", claim)
    };
    let drawn = |generated: u64| json!({"generated": generated, "declared": 1});
    for false_claim in [
        witness("differential", json!(null)),
        witness("differential", drawn(0)),
        witness("differential", drawn(5)),
        witness("cases", drawn(2)),
        witness("suite", json!(null)),
        witness("suite", drawn(2)),
    ] {
        assert_eq!(refused(&false_claim), CertifierCode::Inconsistent);
    }
    let suite = |kind: &str, tests: u64, runs: u64| {
        let mut claim = honest()["predicate"]["inputs"]["witness"].clone();
        claim["kind"] = json!(kind);
        claim["suite"] =
            json!({"tests": tests, "ignored": 0, "failing": 0, "runs": runs, "quarantined": []});
        refused(&with("/predicate/inputs/witness", claim))
    };
    assert_eq!(suite("suite", 1, 2), CertifierCode::WitnessKindNotAllowed);
    for (kind, tests, runs) in [
        ("suite", 0, 2),
        ("suite", 1, 1),
        ("suite", 0, 1),
        ("cases", 1, 2),
    ] {
        let found = suite(kind, tests, runs);
        assert_eq!(found, CertifierCode::Inconsistent, "{kind} {tests} {runs}");
    }
    // As many generated inputs as there are cases are all of them.
    let cases = honest()["predicate"]["inputs"]["witness"]["cases"]
        .as_u64()
        .unwrap();
    let all = refused(&witness("differential", drawn(cases)));
    assert_eq!(all, CertifierCode::WitnessKindNotAllowed);
    assert_eq!(
        refused(&witness("differential", drawn(cases + 1))),
        CertifierCode::Inconsistent
    );
}

#[test]
fn cases_that_failed_on_the_baseline_are_some_of_them_each_once() {
    let cases = honest()["predicate"]["inputs"]["witness"]["cases"]
        .as_u64()
        .unwrap();
    let failed = |failed: Value| {
        let pointer = "/predicate/inputs/witness/failedOnBaseline";
        verdict(&with(pointer, json!({"kind": "ran", "failed": failed}))).map(drop)
    };
    assert_eq!(failed(json!([1, cases])), Ok(()));
    let inconsistent = Err(CertifierCode::Inconsistent);
    for list in [json!([0]), json!([cases + 1]), json!([1, 1]), json!([2, 1])] {
        assert_eq!(failed(list.clone()), inconsistent, "{list}");
    }
}

#[test]
fn one_mutant_waived_twice_is_not_two() {
    let mut statement = honest();
    let waiver = statement["predicate"]["inputs"]["mutation"]["waived"][0].clone();
    let mutation = &mut statement["predicate"]["inputs"]["mutation"];
    mutation["waived"] = json!([waiver, waiver]);
    mutation["killedBy"]["value"] = json!(6);
    assert_eq!(refused(&signed(&statement)), CertifierCode::Inconsistent);
}

#[test]
fn a_package_with_two_contents_is_refused() {
    let mut statement = honest();
    let packages = &mut statement["predicate"]["inputs"]["session-build"]["packages"];
    let mut other = packages[0].clone();
    other["sha256"] = json!(Digest::of(b"other"));
    packages.as_array_mut().unwrap().push(other.clone());
    assert_eq!(refused(&signed(&statement)), CertifierCode::Inconsistent);
    other["version"] = json!("1.0.16");
    statement["predicate"]["inputs"]["session-build"]["packages"][1] = other;
    assert!(verdict(&signed(&statement)).is_ok());
}

#[test]
fn a_new_package_is_one_of_those_that_were_shipped() {
    let mut statement = honest();
    let build = &mut statement["predicate"]["inputs"]["session-build"];
    let mut other = build["packages"][0].clone();
    other["name"] = json!("other");
    build["newPackages"] = json!([other]);
    assert_eq!(refused(&signed(&statement)), CertifierCode::Inconsistent);
}

#[test]
fn a_claim_about_nothing_proves_nothing() {
    let mut no_mutants = honest();
    let mutation = &mut no_mutants["predicate"]["inputs"]["mutation"];
    for (count, value) in [("generated", 2), ("viable", 0)] {
        mutation[count] = json!(value);
    }
    mutation["killedBy"] = json!({});
    mutation["waived"] = json!([]);
    let mut only_crashes = honest();
    only_crashes["predicate"]["inputs"]["mutation"]["killedBy"] = json!({"signal": 9});
    let mut no_cases = honest();
    no_cases["predicate"]["inputs"]["witness"]["cases"] = json!(0);
    no_cases["predicate"]["inputs"]["session-execution"]["cases"] = json!(0);
    let mut no_runs = honest();
    no_runs["predicate"]["inputs"]["session-execution"]["runsPerCase"] = json!(0);
    let mut no_limits = honest();
    no_limits["predicate"]["inputs"]["sandbox-spec"]["asked"] = json!({});
    no_limits["predicate"]["inputs"]["attestation"]["found"] = json!({});
    let mut no_probes = honest();
    no_probes["predicate"]["inputs"]["attestation"]["denied"] = json!({});
    for empty in [
        no_mutants,
        only_crashes,
        no_cases,
        no_runs,
        no_limits,
        no_probes,
    ] {
        assert_eq!(refused(&signed(&empty)), CertifierCode::ClaimEmpty);
    }
}

#[test]
fn build_and_execution_must_share_the_attested_session() {
    for claim in ["session-build", "session-execution", "attestation"] {
        assert_eq!(
            refused(&with(
                &format!("/predicate/inputs/{claim}/session"),
                json!(2)
            )),
            CertifierCode::SessionMismatch
        );
    }
}

#[test]
fn money_is_that_of_the_attempts_and_an_unmetered_run_costs_its_whole_hold() {
    let run = |metering: &str, reserved: u64, settled: Option<u64>| {
        let mut run = json!({"metering": metering, "reserved": reserved, "turns": 4,
            "models": {"claude-opus-5": {"input": 2, "output": 211, "cacheRead": 0, "cacheWritten": 9}}});
        if let Some(settled) = settled {
            run["settled"] = json!(settled);
        }
        run
    };
    let with_runs = |runs: Value| {
        let mut statement = honest();
        statement["predicate"]["inputs"]["request"]["attempt"] =
            json!(runs.as_array().map_or(0, Vec::len).max(1));
        statement["predicate"]["inputs"]["spend"] = json!({ "runs": runs });
        statement
    };
    for good in [
        json!([run("estimated", 15, Some(0))]),
        json!([run("unmetered", 15, Some(15))]),
        // An earlier attempt may have cost more than its hold, or nobody knows how much.
        json!([
            run("estimated", 15, Some(16)),
            run("estimated", 15, Some(15))
        ]),
        json!([run("unmetered", 15, None), run("unmetered", 15, Some(15))]),
    ] {
        assert!(verdict(&signed(&with_runs(good))).is_ok());
    }
    for bad in [
        json!([]),
        json!([run("unmetered", 15, Some(1))]),
        json!([run("unmetered", 15, Some(16))]),
        json!([run("estimated", 15, Some(16))]),
        json!([run("estimated", 15, None)]),
    ] {
        assert_eq!(
            refused(&signed(&with_runs(bad))),
            CertifierCode::Inconsistent
        );
    }
    let mut uncounted = with_runs(json!([run("estimated", 15, Some(1))]));
    uncounted["predicate"]["inputs"]["request"]["attempt"] = json!(2);
    assert_eq!(refused(&signed(&uncounted)), CertifierCode::Inconsistent);
}

#[test]
fn gates_are_passed_in_order_and_once() {
    let all = Gate::ALL.map(Gate::name);
    let mut swapped = all;
    swapped.swap(0, 1);
    let twice = [&all[..], &["determinism"]].concat();
    for bad in [json!(swapped), json!(twice)] {
        assert_eq!(
            refused(&with("/predicate/gates", bad)),
            CertifierCode::Inconsistent
        );
    }
}
