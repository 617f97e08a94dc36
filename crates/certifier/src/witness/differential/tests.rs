use super::*;
use serde_json::{Value, json};

fn file() -> Value {
    json!({"schema": "flightproof/witness/1", "bin": "price", "cases": [], "differential": {
        "inputs": 60, "args": [["order", "{quantity}"], ["list"], ["note", "{line}"]], "stdin": "{line}",
        "rules": {"quantity": [{"from": 0, "to": 999}, "many"], "line": ["", "{word} {line}"],
            "word": ["a", "b{{}}"]},
        "differs": [{"reason": "bulk", "where": {"quantity": {"from": 100, "to": 999}}}]}})
}

fn parse(file: &Value) -> Result<Witness, CertifierError> {
    Witness::parse(file.to_string().as_bytes())
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

/// What a baseline that repeats its arguments answers.
fn echo(inputs: &[Input]) -> Vec<[Observation; 2]> {
    let undeclared = inputs.iter().filter(|input| !input.declared);
    let answer = |input: &Input| said(0, &input.args.join(" "));
    undeclared
        .map(|input| [answer(input), answer(input)])
        .collect()
}

#[test]
fn inputs_follow_from_the_salt_alone_stand_once_and_are_of_the_grammar() {
    let witness = parse(&file()).unwrap();
    let inputs = witness.inputs(&[1; 32]);
    assert_eq!(inputs.len(), 60);
    assert_eq!(inputs, witness.inputs(&[1; 32]));
    assert_ne!(inputs, witness.inputs(&[2; 32]));
    for (at, input) in inputs.iter().enumerate() {
        let asked = |other: &Input| (&other.args, &other.stdin) == (&input.args, &input.stdin);
        assert!(!inputs[..at].iter().any(asked));
        let quantity = input.args.get(1).filter(|_| input.args[0] == "order");
        let number = quantity.and_then(|text| text.parse::<u64>().ok());
        assert!(number.is_none_or(|number| number <= 999));
        assert_eq!(
            input.declared,
            number.is_some_and(|number| number >= 100),
            "{input:?}"
        );
        let words = input.stdin.split(' ').filter(|word| !word.is_empty());
        assert!(
            words.clone().all(|word| ["a", "b{}"].contains(&word)),
            "{input:?}"
        );
    }
    assert!(inputs.iter().any(|input| input.declared));
    assert!(
        inputs
            .iter()
            .any(|input| !input.declared && input.args[0] == "order")
    );
}

#[test]
fn a_small_grammar_gives_what_it_has_and_a_large_one_no_more_than_travels() {
    let mut small = file();
    small["differential"]["args"] = json!([["{word}"]]);
    small["differential"]["stdin"] = json!("");
    assert_eq!(parse(&small).unwrap().inputs(&[1; 32]).len(), 2);
    let mut large = file();
    for level in 1..40 {
        let inside = format!("{{l{}}}", level + 1).repeat(2);
        large["differential"]["rules"][format!("l{level}")] = json!([inside]);
    }
    large["differential"]["rules"]["l40"] = json!(["x"]);
    large["differential"]["args"] = json!([["{l1}"]]);
    large["differential"]["inputs"] = json!(2);
    assert_eq!(parse(&large).unwrap().inputs(&[1; 32]), []);
}

#[test]
fn what_the_baseline_answers_is_expected_except_where_a_difference_is_declared() {
    let witness = parse(&file()).unwrap();
    let inputs = witness.inputs(&[1; 32]);
    let whole = witness.clone().answered(&inputs, &echo(&inputs)).unwrap();
    let declared = inputs.iter().filter(|input| input.declared).count();
    assert_eq!(whole.drawn(), (60 - declared, declared));
    let undeclared = inputs.iter().filter(|input| !input.declared);
    for (case, input) in whole.cases().iter().zip(undeclared) {
        assert_eq!(case.args, input.args);
        let answer = input.args.join(" ").into_bytes();
        assert_eq!(case.expect.stdout.as_ref().unwrap()[..], answer);
        assert!(case.expect.accepts_stdout(&answer) && !case.expect.accepts_stdout(b"other"));
    }
    // What is committed to is the file, before and after, with its grammar.
    let salt = [7; 32];
    assert_eq!(
        whole.commitment(&salt).unwrap(),
        witness.commitment(&salt).unwrap()
    );
    let mut wider = file();
    wider["differential"]["differs"][0]["where"]["quantity"]["from"] = json!(0);
    let wider = parse(&wider).unwrap();
    assert_ne!(
        wider.commitment(&salt).unwrap(),
        witness.commitment(&salt).unwrap()
    );
}

#[test]
fn a_baseline_that_wavers_crashes_or_is_cut_is_nothing_to_compare_with() {
    let witness = parse(&file()).unwrap();
    let inputs = witness.inputs(&[1; 32]);
    let unfit = |change: &dyn Fn(&mut [Observation; 2])| {
        let mut answers = echo(&inputs);
        change(&mut answers[3]);
        let refused = witness.clone().answered(&inputs, &answers).unwrap_err();
        assert_eq!(refused.code, CertifierCode::BaselineUnfit);
        assert_eq!(refused.detail.split(':').next(), Some("input 4"));
    };
    unfit(&|runs| runs[1].stdout = b"12:01".as_slice().into());
    unfit(&|runs| runs[1].ending = Ending::Exited { code: 1 });
    unfit(&|runs| runs.iter_mut().for_each(|run| run.complete = false));
    for ending in [
        Ending::TimedOut,
        Ending::Signaled { signal: 11 },
        Ending::MemoryLimit,
    ] {
        unfit(&|runs| runs.iter_mut().for_each(|run| run.ending = ending.clone()));
    }
}

#[test]
fn a_baseline_that_answers_everything_alike_or_a_declaration_of_everything_has_no_teeth() {
    let witness = parse(&file()).unwrap();
    let inputs = witness.inputs(&[1; 32]);
    let constant: Vec<_> = echo(&inputs)
        .iter()
        .map(|_| [said(0, "x"), said(0, "x")])
        .collect();
    let code = |found: Result<Witness, CertifierError>| found.unwrap_err().code;
    let toothless = CertifierCode::WitnessToothless;
    assert_eq!(code(witness.answered(&inputs, &constant)), toothless);
    let mut all = file();
    all["differential"]["args"] = json!([["{quantity}"]]);
    all["differential"]["rules"]["quantity"] = json!([{"from": 100, "to": 999}]);
    let all = parse(&all).unwrap();
    let inputs = all.inputs(&[1; 32]);
    assert_eq!(code(all.answered(&inputs, &[])), toothless);
}

#[test]
fn a_grammar_that_has_no_end_or_two_readings_is_refused() {
    for (place, value) in [
        ("inputs", json!(0)),
        ("inputs", json!(501)),
        ("args", json!([])),
        ("args", json!([["{unknown}"]])),
        ("args", json!([["{"]])),
        ("args", json!([["}"]])),
        ("args", json!([["a\u{0}"]])),
        ("stdin", json!("{quantity")),
        ("rules/line/0", json!("{line}")),
        ("rules/word/0", json!("{line}")),
        ("rules/quantity", json!([])),
        ("rules/quantity/0", json!({"from": 2, "to": 1})),
        ("rules/Word", json!(["x"])),
        ("differs/0/where", json!({})),
        ("differs/0/where", json!({"unknown": "x"})),
        ("differs/0/reason", json!(" ")),
        ("seed", json!(7)),
    ] {
        let mut file = file();
        let (parent, name) = place.rsplit_once('/').unwrap_or(("", place));
        let parent = match parent {
            "" => "/differential".to_owned(),
            parent => format!("/differential/{parent}"),
        };
        let parent = file.pointer_mut(&parent).unwrap();
        match (parent.as_array_mut(), name.parse::<usize>()) {
            (Some(list), Ok(at)) => list[at] = value.clone(),
            _ => parent[name] = value.clone(),
        }
        if place == "rules/word/0" {
            file["differential"]["rules"]["line"][0] = json!("{word}");
        }
        let refused = parse(&file).map(|_| (place, &value)).unwrap_err();
        assert_eq!(
            refused.code,
            CertifierCode::WitnessInvalid,
            "{place} {value}"
        );
    }
    let mut named = file();
    named["cases"] = json!([{"id": "generated-0001", "expect": {"exit": 0}}]);
    assert_eq!(
        parse(&named).unwrap_err().code,
        CertifierCode::WitnessInvalid
    );
}
