//! A true certificate under policies that want more.

use crate::fixture::*;
use flightproof_certifier::CertifierCode;
use flightproof_certifier::judge::Gate;
use flightproof_certifier::key::SecretKey;
use flightproof_certifier::policy::Policy;
use flightproof_certifier::verify::{Beside, verify};
use flightproof_core::Digest;
use serde_json::{Value, json};

#[test]
fn every_required_gate_must_have_been_passed() {
    for missing in Gate::ALL {
        let rest: Vec<Gate> = Gate::ALL.into_iter().filter(|g| *g != missing).collect();
        let envelope = with("/predicate/gates", json!(rest));
        assert_eq!(refused(&envelope), CertifierCode::GateMissing);
        let mut lenient = policy_json();
        lenient["required_gates"] = json!(rest);
        assert!(verdict_under(&envelope, &lenient).is_ok());
    }
    assert_eq!(
        refused(&with("/predicate/gates", json!([]))),
        CertifierCode::GateMissing
    );
}

/// Of what cannot change the program no mutant can be made: then, and only then, the gate may be missing.
#[test]
fn mutants_are_missed_wherever_there_could_be_some() {
    let with_lines = |lines: Value, without: &[Gate]| {
        let mut statement = honest();
        let gates: Vec<Gate> = Gate::ALL
            .into_iter()
            .filter(|g| !without.contains(g))
            .collect();
        statement["predicate"]["gates"] = json!(gates);
        let mutation = &mut statement["predicate"]["inputs"]["mutation"];
        mutation["lines"] = lines;
        let counts = ["generated", "viable", "unviable", "survived"];
        counts.iter().for_each(|count| mutation[*count] = json!(0));
        mutation["killedBy"] = json!({});
        mutation["waived"] = json!([]);
        signed(&statement)
    };
    let none =
        json!({"changed": 0, "mutated": 0, "inert": 0, "data": 0, "notCompiled": 0, "unjudged": 0});
    let of = |changed: u64, inert: u64, tests: u64, data: u64| {
        let mut lines = none.clone();
        let counts = [
            ("changed", changed),
            ("inert", inert),
            ("tests", tests),
            ("data", data),
        ];
        counts
            .iter()
            .filter(|(_, n)| *n > 0)
            .for_each(|(name, n)| lines[*name] = json!(n));
        lines
    };
    let mut with_tests = policy_json();
    with_tests["allow"]["tests"] = json!(true);
    let missing = Some(CertifierCode::GateMissing);
    for (lines, plain, allowed) in [
        (of(4, 4, 0, 0), None, None),
        (of(4, 1, 3, 0), missing, None),
        (of(4, 1, 2, 1), missing, missing),
        (of(4, 3, 0, 1), missing, missing),
    ] {
        let envelope = with_lines(lines.clone(), &[Gate::Mutation]);
        let found = |policy: &Value| verdict_under(&envelope, policy).err();
        assert_eq!(found(&policy_json()), plain, "{lines}");
        assert_eq!(found(&with_tests), allowed, "{lines}");
    }
    // Another gate is missed all the same.
    let envelope = with_lines(of(4, 4, 0, 0), &[Gate::Mutation, Gate::Determinism]);
    assert_eq!(refused(&envelope), CertifierCode::GateMissing);
}

#[test]
fn a_policy_decides_what_may_have_happened() {
    let inputs = "/predicate/inputs";
    for (pointer, value, allow, code) in [
        (
            "witness/public",
            json!(true),
            json!({"public_witness": true}),
            CertifierCode::WitnessPublic,
        ),
        (
            "witness",
            {
                let mut witness = honest()["predicate"]["inputs"]["witness"].clone();
                witness["kind"] = json!("differential");
                witness["differential"] = json!({"generated": 2, "declared": 0});
                witness
            },
            json!({"witness_kinds": ["differential"]}),
            CertifierCode::WitnessKindNotAllowed,
        ),
        (
            "witness",
            suite(json!([])),
            json!({"witness_kinds": ["suite"]}),
            CertifierCode::WitnessKindNotAllowed,
        ),
        (
            "session-build/buildScripts",
            json!(true),
            json!({"build_scripts": true}),
            CertifierCode::BuildScriptRan,
        ),
        (
            "session-build",
            {
                let mut build = honest()["predicate"]["inputs"]["session-build"].clone();
                let new = json!([{"name": "itoa", "version": "1.0.0", "sha256": "0".repeat(64)}]);
                build["packages"] = new.clone();
                build["newPackages"] = new;
                build
            },
            json!({"new_packages": true}),
            CertifierCode::NewPackagesNotAllowed,
        ),
        (
            "session-build/procMacros",
            json!(true),
            json!({"proc_macros": true}),
            CertifierCode::ProcMacroRan,
        ),
        (
            "capture/narrowed",
            json!({"paths": ["src"], "source": honest()["predicate"]["inputs"]["session-build"]["source"]}),
            json!({"narrowed": true}),
            CertifierCode::NarrowedNotAllowed,
        ),
        (
            "mutation/lines",
            json!({"changed": 9, "mutated": 5, "inert": 2, "data": 1, "notCompiled": 1, "unjudged": 0, "granted": ["ci"]}),
            json!({"not_compiled": true}),
            CertifierCode::UncompiledNotAllowed,
        ),
        (
            "mutation/lines",
            json!({"changed": 9, "mutated": 5, "inert": 2, "data": 1, "regenerated": 1, "notCompiled": 0, "unjudged": 0,
                "generated": [{"rule": "a", "digest": "0".repeat(64), "files": ["src/a.rs"]}]}),
            json!({"regenerated": true}),
            CertifierCode::RegeneratedNotAllowed,
        ),
    ] {
        let envelope = with(&format!("{inputs}/{pointer}"), value);
        assert_eq!(refused(&envelope), code);
        let mut lenient = policy_json();
        lenient["allow"] = allow;
        lenient["allow"]["waivers_max"] = json!(1);
        assert!(verdict_under(&envelope, &lenient).is_ok(), "{pointer}");
    }
    // Another language is named by its operators and by how its mutants ran, together.
    let named = |set: &str, method: Value| {
        let mut mutation = honest()["predicate"]["inputs"]["mutation"].clone();
        mutation["operatorSet"] = json!(set);
        mutation["method"] = method;
        with(&format!("{inputs}/mutation"), mutation)
    };
    let envelope = named("c-1", json!("build-per-mutant"));
    assert_eq!(refused(&envelope), CertifierCode::LanguageNotAllowed);
    let mut lenient = policy_json();
    lenient["allow"] = json!({"waivers_max": 1, "languages": ["python"]});
    let other = verdict_under(&envelope, &lenient).unwrap_err();
    assert_eq!(other, CertifierCode::LanguageNotAllowed);
    lenient["allow"]["languages"] = json!(["python", "c"]);
    assert!(verdict_under(&envelope, &lenient).is_ok());
    let silent = named("rust-4", json!("build-per-mutant"));
    assert_eq!(refused(&silent), CertifierCode::Inconsistent);
    // One of the killed is the same program instead.
    let mut mutation = honest()["predicate"]["inputs"]["mutation"].clone();
    mutation["equivalent"] = json!(1);
    let envelope = with(&format!("{inputs}/mutation"), mutation.clone());
    assert_eq!(refused(&envelope), CertifierCode::Inconsistent);
    mutation["killedBy"]["value"] = json!(6);
    let envelope = with(&format!("{inputs}/mutation"), mutation);
    assert_eq!(refused(&envelope), CertifierCode::EquivalentTooMany);
    let mut lenient = policy_json();
    lenient["allow"] = json!({"waivers_max": 1, "equivalent_max": 1});
    assert!(verdict_under(&envelope, &lenient).is_ok());
    let mut strict = policy_json();
    strict["allow"] = json!({});
    assert_eq!(
        verdict_under(&signed(&honest()), &strict).unwrap_err(),
        CertifierCode::WaiversTooMany
    );
}

#[test]
fn waived_mutants_and_places_count_together() {
    let mut statement = honest();
    let mutation = &mut statement["predicate"]["inputs"]["mutation"];
    let place = json!({"mutant": "src/a.rs:1 unjudged effect", "source": Digest::of(b"source"), "reason": "x"});
    mutation["unjudged"] = json!([place]);
    mutation["lines"]["inert"] = json!(2);
    mutation["lines"]["unjudged"] = json!(1);
    let envelope = signed(&statement);
    let mut policy = policy_json();
    for (most, held) in [(1, false), (2, true)] {
        policy["allow"]["waivers_max"] = json!(most);
        assert_eq!(verdict_under(&envelope, &policy).is_ok(), held, "{most}");
    }
    policy["allow"]["waivers_max"] = json!(2);
    assert_eq!(verdict_under(&envelope, &policy).unwrap().waivers.len(), 2);
}

/// The claim of a suite whose tests wavered so.
fn suite(quarantined: serde_json::Value) -> serde_json::Value {
    let mut witness = honest()["predicate"]["inputs"]["witness"].clone();
    witness["kind"] = json!("suite");
    witness["suite"] =
        json!({"tests": 7, "ignored": 1, "failing": 0, "runs": 3, "quarantined": quarantined});
    witness
}

#[test]
fn a_policy_says_how_many_tests_may_waver_and_none_if_it_does_not_say() {
    let envelope = with(
        "/predicate/inputs/witness",
        suite(json!(["api: a", "api: b"])),
    );
    let under = |most: Option<u64>| {
        let mut policy = policy_json();
        policy["allow"]["witness_kinds"] = json!(["suite"]);
        if let Some(most) = most {
            policy["allow"]["quarantined_max"] = json!(most);
        }
        verdict_under(&envelope, &policy).map(drop)
    };
    assert_eq!(under(None), Err(CertifierCode::QuarantinedTooMany));
    assert_eq!(under(Some(1)), Err(CertifierCode::QuarantinedTooMany));
    assert_eq!(under(Some(2)), Ok(()));
}

#[test]
fn a_policy_may_want_a_case_that_failed_on_the_baseline() {
    let place = "/predicate/inputs/witness/failedOnBaseline";
    let mut strict = policy_json();
    strict["require"] = json!({"failed_on_baseline": true});
    for (found, fixed) in [
        (json!({"kind": "ran", "failed": [2]}), true),
        (json!({"kind": "ran", "failed": []}), false),
        (json!({"kind": "unbuilt"}), false),
        (json!({"kind": "not-run"}), false),
    ] {
        let envelope = with(place, found);
        assert!(verdict_under(&envelope, &policy_json()).is_ok());
        let verdict = verdict_under(&envelope, &strict).map(|_| ());
        let expected = match fixed {
            true => Ok(()),
            false => Err(CertifierCode::NothingFixed),
        };
        assert_eq!(verdict, expected);
    }
}

#[test]
fn a_policy_may_bound_the_attempts_and_one_too_many_is_refused() {
    let place = "/predicate/inputs/request/attempt";
    let mut bounded = policy_json();
    bounded["require"] = json!({"attempts_max": 3});
    for (attempt, held) in [
        (1, true),
        (3, true),
        (4, false),
        (9_007_199_254_740_991_u64, false),
    ] {
        let envelope = with(place, json!(attempt));
        assert!(verdict_under(&envelope, &policy_json()).is_ok());
        let verdict = verdict_under(&envelope, &bounded).map(drop);
        let expected = match held {
            true => Ok(()),
            false => Err(CertifierCode::AttemptsTooMany),
        };
        assert_eq!(verdict, expected, "{attempt}");
    }
    // A bound of none would refuse everything.
    for bad in [json!(0), json!(-1), json!("3")] {
        bounded["require"] = json!({"attempts_max": bad});
        let parsed = Policy::parse(bounded.to_string().as_bytes());
        assert_eq!(parsed.unwrap_err().code, CertifierCode::PolicyInvalid);
    }
}

#[test]
fn a_policy_for_one_repository_and_witness_accepts_no_other() {
    let envelope = signed(&honest());
    for (field, right, wrong, code) in [
        (
            "repository",
            json!("example/rounding"),
            json!("example"),
            CertifierCode::RepositoryMismatch,
        ),
        (
            "witness",
            json!(Digest::of(b"witness")),
            json!(Digest::of(b"w")),
            CertifierCode::WitnessMismatch,
        ),
    ] {
        let mut policy = policy_json();
        policy[field] = right;
        assert!(verdict_under(&envelope, &policy).is_ok());
        policy[field] = wrong;
        assert_eq!(verdict_under(&envelope, &policy).unwrap_err(), code);
    }
}

#[test]
fn only_keys_that_caller_and_policy_trust_count() {
    let envelope = signed(&honest());
    let mut mine = policy_json();
    mine["keys"] = json!([key().public().id()]);
    assert!(verdict_under(&envelope, &mine).is_ok());
    for keys in [json!([]), json!([Digest::of(b"somebody else")])] {
        mine["keys"] = keys;
        assert_eq!(
            verdict_under(&envelope, &mine).unwrap_err(),
            CertifierCode::KeyUnauthorized
        );
    }
    let other = [SecretKey::from_seed([9; 32]).public()];
    let by_other = verify(
        &envelope,
        &policy(&policy_json()),
        &other,
        &subject(),
        &Beside::at(NOW),
    );
    assert_eq!(by_other.unwrap_err().code, CertifierCode::SignatureInvalid);
    let mut two = policy_json();
    two["threshold"] = json!(2);
    assert_eq!(
        verdict_under(&envelope, &two).unwrap_err(),
        CertifierCode::ThresholdNotMet
    );
}

#[test]
fn tests_alone_need_no_mutants_only_where_the_policy_says_so_and_documents_never_do() {
    let without_mutants = |inert: u64, tests: u64| {
        let mut statement = honest();
        let gates = statement["predicate"]["gates"].as_array_mut().unwrap();
        gates.retain(|gate| gate != "mutation");
        let mutation = &mut statement["predicate"]["inputs"]["mutation"];
        for zero in ["generated", "viable", "unviable", "survived"] {
            mutation[zero] = json!(0);
        }
        mutation["killedBy"] = json!({});
        mutation["waived"] = json!([]);
        mutation["lines"] = json!({"changed": inert + tests, "mutated": 0, "inert": inert,
            "tests": tests, "data": 0, "notCompiled": 0, "unjudged": 0});
        signed(&statement)
    };
    let mut lenient = policy_json();
    lenient["allow"]["tests"] = json!(true);
    let missing = |inert, tests, policy: &serde_json::Value| {
        let verdict = verdict_under(&without_mutants(inert, tests), policy);
        verdict.err() == Some(CertifierCode::GateMissing)
    };
    assert!(!missing(2, 0, &policy_json()));
    assert!(missing(1, 1, &policy_json()) && missing(0, 1, &policy_json()));
    assert!(!missing(1, 1, &lenient) && !missing(0, 1, &lenient));
}
