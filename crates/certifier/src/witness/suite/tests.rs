use super::*;
use crate::samples::change;

const API: &str = "#[test]\nfn adds() {}\n";

fn witness(text: &str) -> Result<Witness, CertifierError> {
    let text = format!("{{\"schema\":\"flightproof/witness/1\",\"cases\":[],{text}}}");
    Witness::parse(text.as_bytes())
}

/// The tests of a baseline with two programs, of which the candidate changed these.
fn found(suite: &str, changes: &[Change]) -> Result<Witness, CertifierError> {
    let manifest = "[package]\nname = \"a\"\nversion = \"1.0.0\"\n";
    let files = [
        ("Cargo.toml", manifest),
        ("src/lib.rs", ""),
        ("tests/api.rs", API),
        ("tests/more/main.rs", API),
        ("tests/more/deep.rs", ""),
        ("testdata/a.txt", "1\n"),
    ];
    let paths = files.map(|(path, _)| RelPath::new(path).unwrap());
    let texts = files.map(|(_, text)| text.as_bytes());
    let tree: Tree<'_> = paths.iter().zip(texts).collect();
    witness(&format!("\"suite\":{suite}"))?.found(&tree, changes, &[7; 32])
}

fn plan() -> Witness {
    found("{\"tests\":[\"api\"]}", &[]).unwrap()
}

/// What a harness prints of these results and the two tests of ours.
fn printed(witness: &Witness, results: &[(&str, &str)]) -> String {
    let canaries = &witness.tests().unwrap().programs[0].canaries;
    let mut all = results.to_vec();
    all.extend([
        (canaries.passes.as_str(), "ok"),
        (canaries.fails.as_str(), "FAILED"),
    ]);
    let count = |wanted: &str| all.iter().filter(|(_, found)| *found == wanted).count();
    let lines = all
        .iter()
        .map(|(name, outcome)| format!("test {name} ... {outcome}\n"));
    format!(
        "\nrunning {} tests\n{}\nfailures:\n\n---- {f} stdout ----\n\nthread '{f}' panicked\n\n\nfailures:\n    {f}\n\n\
         test result: FAILED. {} passed; {} failed; {} ignored; 0 measured; 0 filtered out; finished in 0.01s\n\n",
        all.len(),
        String::from_iter(lines),
        count("ok"),
        count("FAILED"),
        count("ignored"),
        f = canaries.fails,
    )
}

fn said(code: u8, stdout: &str) -> Observation {
    Observation {
        ending: Ending::Exited { code },
        stdout: stdout.as_bytes().into(),
        stderr: Vec::new().into(),
        complete: true,
        armed: false,
    }
}

const RESULTS: [(&str, &str); 3] = [
    ("a::adds", "ok"),
    ("b - should panic", "ok"),
    ("slow", "ignored"),
];

/// A witness whose baseline came to these results, run by run.
fn measured(runs: [&[(&str, &str)]; 3]) -> Result<Witness, CertifierError> {
    let witness = plan();
    let runs = runs.map(|results| said(101, &printed(&witness, results)));
    witness.measured(&[runs.to_vec()])
}

/// Whether a candidate that prints this passes.
fn passes(witness: &Witness, code: u8, stdout: &str) -> bool {
    let heard = witness.heard(0, said(code, stdout));
    crate::judge::judge_case(&witness.cases()[0], &heard).is_ok()
}

#[test]
fn exactly_the_tests_of_the_baseline_must_come_to_what_they_came_to_there() {
    let witness = measured([&RESULTS; 3]).unwrap();
    let plan = witness.tests().unwrap();
    assert_eq!((plan.expected, plan.ignored, plan.failing), (2, 1, 0));
    assert!(passes(&witness, 101, &printed(&witness, &RESULTS)));
    let with = |at: usize, to: (&'static str, &'static str)| {
        let mut results = RESULTS;
        results[at] = to;
        printed(&witness, &results)
    };
    for text in [
        with(0, ("a::adds", "FAILED")),
        with(0, ("a::adds", "ignored")),
        with(0, ("a::renamed", "ok")),
        with(2, ("slow", "ok")),
        printed(&witness, &RESULTS[1..]),
        printed(&witness, &[&RESULTS[..], &[("new", "ok")]].concat()),
        printed(&witness, &[&RESULTS[..], &RESULTS[..1]].concat()),
    ] {
        assert!(!passes(&witness, 101, &text), "{text}");
    }
    let heard = witness.heard(0, said(101, &with(0, ("a::adds", "FAILED"))));
    assert_eq!(witness.fallen(0, &heard), ["a::adds ok"]);
}

#[test]
fn what_a_program_says_in_place_of_the_harness_passes_nothing() {
    let witness = measured([&RESULTS; 3]).unwrap();
    let honest = printed(&witness, &RESULTS);
    let canaries = &witness.tests().unwrap().programs[0].canaries;
    let fake = "\nrunning 3 tests\ntest a::adds ... ok\ntest b - should panic ... ok\ntest slow ... ignored\n\n\
        test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n";
    let failed = honest.replace("adds ... ok", "adds ... FAILED");
    let expected = witness.cases()[0].expect.stdout.clone().unwrap();
    let list = String::from_utf8(expected.to_vec()).unwrap();
    let guessed = list.replace(&canaries.passes, "t000000000000000000000000");
    for (code, text) in [
        // An end before the harness's, with all that it would have said.
        (0, fake.to_owned()),
        (101, fake.to_owned()),
        (
            101,
            honest
                .replace(&canaries.fails, "t0123")
                .replace(&canaries.passes, "t4567"),
        ),
        // The list that the host compares, as far as it can be known.
        (0, guessed),
        // A result beside the real one, before, after, or on its line.
        (
            101,
            failed.replace("test a::adds", "test a::adds ... ok\ntest a::adds"),
        ),
        (
            101,
            failed.replace("adds ... FAILED", "adds ... ok\ntest x ... FAILED"),
        ),
        (
            101,
            failed.replace("adds ... FAILED", "adds ... \rtest a::adds ... okFAILED"),
        ),
        (
            101,
            failed.replace("adds ... FAILED", "adds ... ok ... FAILED"),
        ),
        // Something among the results, or behind them.
        (101, honest.replace("test slow", "note\ntest slow")),
        (101, format!("{honest}bye\n")),
        (101, format!("note\n{honest}")),
        (101, honest.replace("1 failed", "0 failed")),
        (0, honest.clone()),
        // Ours did not fail.
        (
            101,
            honest.replace(
                &format!("{} ... FAILED", canaries.fails),
                &format!("{} ... ok", canaries.fails),
            ),
        ),
        (101, String::new()),
    ] {
        assert!(!passes(&witness, code, &text), "{text}");
    }
    let mut cut = said(101, &honest);
    cut.complete = false;
    let heard = witness.heard(0, cut);
    assert!(crate::judge::judge_case(&witness.cases()[0], &heard).is_err());
}

#[test]
fn a_test_that_fails_or_wavers_on_the_baseline_judges_nothing_and_is_counted_or_named() {
    let with = |outcomes: [&'static str; 2]| {
        [
            ("flaky", outcomes[0]),
            ("broken", "FAILED"),
            ("a", outcomes[1]),
        ]
    };
    let (one, other) = (with(["ok", "ok"]), with(["FAILED", "ok"]));
    let witness = measured([&one, &other, &one]).unwrap();
    let plan = witness.tests().unwrap();
    assert_eq!((plan.expected, plan.failing), (1, 1));
    assert_eq!(plan.quarantined, ["api: flaky"]);
    let told = "1 test judges; left out: api: broken (fails on the baseline), api: flaky (wavers on the baseline)";
    assert_eq!(plan.told(), told);
    // Whatever they come to on the candidate; they must run all the same.
    for outcome in ["ok", "FAILED"] {
        assert!(passes(
            &witness,
            101,
            &printed(&witness, &with([outcome, "ok"]))
        ));
        assert!(!passes(
            &witness,
            101,
            &printed(&witness, &with([outcome, "FAILED"]))
        ));
    }
    assert!(!passes(&witness, 101, &printed(&witness, &one[1..])));
    let failing = [("a", "FAILED")];
    let code = |found: Result<Witness, CertifierError>| found.unwrap_err().code;
    assert_eq!(
        code(measured([&failing; 3])),
        CertifierCode::WitnessToothless
    );
    let others = [("other", "ok")];
    assert_eq!(
        code(measured([&failing, &others, &failing])),
        CertifierCode::SuiteUnfit
    );
    let witness = plan_that_prints();
    assert_eq!(code(witness), CertifierCode::SuiteUnfit);
}

/// A baseline with a harness of its own.
fn plan_that_prints() -> Result<Witness, CertifierError> {
    let own = said(0, "1..2\nok 1\nok 2\n");
    plan().measured(&[vec![own.clone(), own.clone(), own]])
}

#[test]
fn the_baselines_files_lie_over_the_candidates_and_ours_cannot_be_guessed() {
    let changes = [
        change("tests/api.rs", Some(API.as_bytes()), Some(b"// nothing\n")),
        change("tests/more/deep.rs", Some(b""), Some(b"x")),
        change("tests/new.rs", None, Some(b"x")),
        change("testdata/a.txt", Some(b"1\n"), Some(b"2\n")),
        change("src/lib.rs", Some(b""), Some(b"x")),
    ];
    let all = found("{\"with\":[\"testdata\"]}", &changes).unwrap();
    let overlay = all.tests().unwrap().overlay();
    let paths: Vec<&str> = overlay.keys().map(RelPath::as_str).collect();
    assert_eq!(
        paths,
        [
            "testdata/a.txt",
            "tests/api.rs",
            "tests/more/deep.rs",
            "tests/more/main.rs"
        ]
    );
    let text = |path: &str| {
        let content = &overlay[&RelPath::new(path).unwrap()];
        String::from_utf8(content.to_vec()).unwrap()
    };
    assert!(text("tests/api.rs").starts_with(API));
    let canaries: Vec<_> = all
        .tests()
        .unwrap()
        .programs
        .iter()
        .map(|p| &p.canaries)
        .collect();
    assert_ne!(canaries[0], canaries[1]);
    assert!(text("tests/api.rs").contains(&format!("fn {}() {{}}", canaries[0].passes)));
    let target = all.target().unwrap();
    let tests = vec!["api".to_owned(), "more".to_owned()];
    assert_eq!(
        target,
        BuildTarget::Suite {
            package: None,
            tests
        }
    );

    let gone = [change("tests/more/deep.rs", Some(b""), None)];
    let code = |found: Result<Witness, CertifierError>| found.unwrap_err().code;
    assert_eq!(code(found("{}", &gone)), CertifierCode::SuiteChanged);
    assert_eq!(
        code(found("{\"tests\":[\"none\"]}", &[])),
        CertifierCode::SuiteUnfit
    );
}

#[test]
fn a_suite_stands_alone_and_is_read_in_one_way() {
    assert!(witness("\"suite\":{}").is_ok());
    for text in [
        "\"suite\":{},\"bin\":\"a\"",
        "\"suite\":{},\"driver\":\"d.rs\"",
        "\"suite\":{},\"language\":\"c\"",
        "\"suite\":{\"tests\":[\"--all\"]}",
        "\"suite\":{\"flaky_max\":1}",
        "\"suite\":null",
        "\"suite\":{},\"differential\":{\"inputs\":1,\"args\":[[]]}",
    ] {
        assert_eq!(
            witness(text).unwrap_err().code,
            CertifierCode::WitnessInvalid,
            "{text}"
        );
    }
}
