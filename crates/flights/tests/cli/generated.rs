//! Generated files: what a rule of the operator's makes again counts as that, and nothing that only
//! passes for it.

use crate::environment::{Environment, Run};
use crate::review::review_under;
use crate::verify::{POLICY, verify};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;

/// Makes a table of a list. `stamp` is what a generator may not hang on.
const TOOL: &str = "import pathlib, sys\n\
    rates = pathlib.Path('data/rates.csv').read_text().split()\n\
    text = '// Made by tools/rates.py.\\n'\n\
    for number, rate in enumerate(rates):\n\
    \x20   text += f'pub const RATE_{number}: u64 = {rate};\\n'\n\
    pathlib.Path('src').mkdir(exist_ok=True)\n\
    pathlib.Path('src/rates.rs').write_text(text)\n";
const RULES: &str = "schema = \"flightproof/generated/1\"\n[[generated]]\nname = \"rates\"\n\
    argv = [\"/usr/bin/python3\", \"tools/rates.py\"]\ntools = [\"tools/rates.py\"]\n\
    inputs = [\"data/rates.csv\"]\noutputs = [\"src/rates.rs\"]\n";

fn made(rates: &str) -> String {
    let rates = rates.split_whitespace().enumerate();
    let lines = rates.map(|(at, rate)| format!("pub const RATE_{at}: u64 = {rate};\n"));
    format!("// Made by tools/rates.py.\n{}", String::from_iter(lines))
}

/// The fixed pricing program with a table that `tool` makes, and rules beside the repository.
fn environment(tool: &str) -> Environment {
    let environment = Environment::with_pricing();
    environment.git(&["merge", "--quiet", "--ff-only", "candidate"]);
    let main = fs::read_to_string(environment.path("repo/src/main.rs")).unwrap();
    let files = [
        ("tools/rates.py", tool.to_owned()),
        ("data/rates.csv", "250\n".to_owned()),
        ("src/rates.rs", made("250")),
        ("src/main.rs", main + "\n#[allow(dead_code)]\nmod rates;\n"),
    ];
    let files = files.map(|(name, text)| (name.to_owned(), text));
    environment.candidate("base", &BTreeMap::from(files));
    environment.git(&["merge", "--quiet", "--ff-only", "base"]);
    environment.write("rules.toml", RULES);
    environment
}

/// Certifies a commit of these files with the rules.
fn certify(environment: &Environment, name: &str, files: &[(&str, &str)], more: &[&str]) -> Run {
    let files = files
        .iter()
        .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
    environment.candidate(name, &files.collect());
    let rules = environment.path("rules.toml");
    let mut args = vec!["--generated", rules.to_str().unwrap()];
    args.extend(more);
    environment.certify(name, &args)
}

fn refused(run: &Run, expected: &str) {
    assert_eq!(run.code, 10, "{}", run.text);
    assert!(run.stdout.contains(expected), "{}", run.text);
}

/// A witness of the pricing program that waives the input.
fn waiving(environment: &Environment, place: &str, text: &str) -> String {
    let witness = crate::environment::workspace().join("flights/witness/pricing.json");
    let mut witness: Value = serde_json::from_slice(&fs::read(witness).unwrap()).unwrap();
    let source = flightproof_core::Digest::of(text.as_bytes());
    witness["waivers"] = json!([{"mutant": place, "source": source, "reason": "the new rates"}]);
    environment.write("witness.json", &witness.to_string())
}

#[test]
fn a_table_that_its_generator_makes_again_comes_in_as_regenerated_and_is_shown_as_that() {
    let environment = environment(TOOL);
    let (rates, table) = ("300\n400\n", made("300 400"));
    let files = [("data/rates.csv", rates), ("src/rates.rs", &table)];
    // What steers the generator is judged by nobody, and said so.
    let run = certify(&environment, "rates", &files, &[]);
    let place = "data/rates.csv unjudged compiled-data";
    refused(&run, "certifier/UNJUDGED_CODE");
    assert!(run.stdout.contains(place), "{}", run.text);
    let witness = waiving(&environment, place, rates);
    let rules = environment.path("rules.toml");
    let args = [
        "--generated",
        rules.to_str().unwrap(),
        "--witness",
        &witness,
    ];
    let run = environment.certify("rates", &args);
    assert_eq!(run.code, 0, "{}", run.text);
    let said = "2 changed lines are as a generator makes them";
    assert!(run.stdout.contains(said), "{}", run.text);
    // Without the rule the same lines are constants that nothing judges.
    let run = environment.certify("rates", &["--witness", &witness]);
    refused(&run, "src/rates.rs:2 unjudged const-context");
    let run = environment.certify("rates", &args);
    assert_eq!(run.code, 0, "{}", run.text);
    let key = environment.public_key();
    let policy = |more: &str| {
        let gates = POLICY.replace("\"mutation\",", "");
        let allow = format!("{more}\"waivers_max\":1");
        environment.write("policy.json", &gates.replace("\"waivers_max\":0", &allow));
    };
    policy("");
    let run = verify(&environment, &key, "rates", &[]);
    assert_eq!(run.code, 13, "{}", run.text);
    let code = "certifier/REGENERATED_NOT_ALLOWED: 2 lines";
    assert!(run.stdout.contains(code), "{}", run.text);
    policy("\"regenerated\":true,");
    let run = verify(&environment, &key, "rates", &[]);
    assert_eq!(run.code, 0, "{}", run.text);
    let run = review_under(&environment, &["--witness", &witness]);
    assert_eq!(run.code, 0, "{}", run.text);
    let shown = "what generator rates makes: src/rates.rs";
    assert!(run.stdout.contains(shown), "{}", run.text);
    let line = run.stdout.lines().find(|line| line.contains("RATE_1"));
    assert!(
        line.is_some_and(|line| line.contains("regenerated")),
        "{}",
        run.text
    );
}

#[test]
fn what_only_passes_for_generated_is_refused() {
    let environment = environment(TOOL);
    let backdoor = made("250").replace("250", "251");
    for (name, files, code) in [
        // Another table than the generator makes.
        (
            "backdoor",
            vec![("src/rates.rs", backdoor.as_str())],
            "certifier/REGENERATED_DIFFERS",
        ),
        // A generator that was taught to make it.
        (
            "taught",
            vec![
                ("src/rates.rs", backdoor.as_str()),
                ("tools/rates.py", "print(open('src/rates.rs').read())\n"),
            ],
            "certifier/GENERATOR_CHANGED",
        ),
        // A module of that name beside the generator, which it would import if it were there.
        (
            "module",
            vec![
                ("src/rates.rs", backdoor.as_str()),
                ("tools/pathlib.py", "raise SystemExit(0)\n"),
            ],
            "certifier/REGENERATED_DIFFERS",
        ),
        // An input the generator cannot read.
        (
            "broken",
            vec![
                ("src/rates.rs", backdoor.as_str()),
                ("data/rates.csv", "\u{0}"),
            ],
            "certifier/REGENERATED_DIFFERS",
        ),
    ] {
        let run = certify(&environment, name, &files, &["--uncompiled", "tools"]);
        refused(&run, &format!("REFUSED at regenerate: {code}"));
    }
    let inside = environment.write("repo/rules.toml", RULES);
    let run = environment.certify("base", &["--generated", &inside]);
    assert_eq!(run.code, 20, "{}", run.text);
    assert!(
        run.stdout.contains("flights/GENERATED_EXPOSED: rules.toml"),
        "{}",
        run.text
    );
}

/// Generators of the baseline's own that vouch for whatever is there, or for nothing.
#[test]
fn a_generator_that_repeats_its_output_or_hangs_on_time_vouches_for_nothing() {
    let echo = "import pathlib\nhere = pathlib.Path('src/rates.rs')\n\
        found = [p for p in [here, *pathlib.Path('/').glob('flight/*/src/rates.rs'), \
        *pathlib.Path('/').glob('flight/src/src/rates.rs')] if p.exists()]\n\
        text = found[0].read_text() if found else 'nothing\\n'\n\
        here.parent.mkdir(exist_ok=True)\nhere.write_text(text)\n";
    let time = "import pathlib, time\npathlib.Path('src').mkdir()\n\
        pathlib.Path('src/rates.rs').write_text(f'// {time.time_ns()}\\n')\n";
    let link = "import os\nos.mkdir('src')\nos.symlink('../data/rates.csv', 'src/rates.rs')\n";
    let reaches = "import pathlib\npathlib.Path('src').mkdir()\n\
        pathlib.Path('src/rates.rs').write_text(pathlib.Path('README.md').read_text())\n";
    for (tool, code) in [
        (echo, "certifier/REGENERATED_DIFFERS"),
        (time, "certifier/GENERATOR_WAVERS"),
        (link, "certifier/REGENERATED_DIFFERS"),
        (reaches, "certifier/GENERATOR_FAILED"),
    ] {
        let environment = environment(tool);
        let table = made("250").replace("250", "251");
        let run = certify(&environment, "change", &[("src/rates.rs", &table)], &[]);
        refused(&run, &format!("REFUSED at regenerate: {code}"));
        assert_eq!(environment.listing("tmp"), BTreeMap::new());
    }
}
