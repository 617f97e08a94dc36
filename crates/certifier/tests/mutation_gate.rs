//! What the mutation engine makes of a change, and how its outcome is judged. No compiler runs here.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up fails")]

use flightproof_certifier::mutation::{
    Answer, Attribution, EditedFile, Fate, FileRole, Kill, MAX_MUTANTS, MutationInput,
    MutationPlan, Operator, Purpose, Run, Silence, Tally, Trial,
};
use flightproof_certifier::witness::Waiver;
use flightproof_core::{Bytes, Digest, Refusal, RelPath};
use flightproof_evidence::{Diagnostic, Ending, Observation};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const SOURCE: &str = "fn fee(cents: u64) -> u64 {\n    cents / 10\n}\n";

fn input(files: &[(&str, &str, FileRole)], lines: Option<&[u32]>) -> MutationInput {
    let edited = |(path, text, role): &(&str, &str, FileRole)| EditedFile {
        path: RelPath::new(path).unwrap(),
        text: Bytes::from(text.as_bytes()),
        old: None,
        lines: lines.map_or_else(|| (1..=9999).collect(), |l| l.iter().copied().collect()),
        role: *role,
        features: BTreeSet::new(),
    };
    MutationInput {
        files: files.iter().map(edited).collect(),
        roots: BTreeMap::new(),
        beside: Vec::new(),
        seed: [1; 32],
        purpose: Purpose::Gate,
    }
}

fn plan_of(text: &str, lines: Option<&[u32]>) -> MutationPlan {
    MutationPlan::new(input(&[("src/lib.rs", text, FileRole::Program)], lines)).unwrap()
}

fn ids(plan: &MutationPlan) -> Vec<&str> {
    plan.mutants.iter().map(|m| m.id.as_str()).collect()
}

/// Every viable mutant killed by its answer, controls good.
fn good(plan: &MutationPlan) -> Trial<'_> {
    Trial {
        plan,
        control: Fate::Survived,
        placebos: plan.placebos.iter().map(|p| (*p, Fate::Survived)).collect(),
        fates: plan
            .viable()
            .map(|i| (i, Fate::Killed(Kill::Value)))
            .collect(),
        waivers: &[],
        equivalent: BTreeSet::new(),
    }
}

fn code(judged: Result<Tally, Refusal>) -> &'static str {
    judged.unwrap_err().code()
}

fn observation(ending: Ending, armed: bool) -> Observation {
    Observation {
        ending,
        stdout: Bytes::default(),
        stderr: Bytes::default(),
        complete: true,
        armed,
    }
}

fn error_at(plan: &MutationPlan, file: &str, needle: &str) -> Diagnostic {
    let text = String::from_utf8(plan.overlay[&RelPath::new(file).unwrap()].0.clone()).unwrap();
    let start = text
        .find(needle)
        .unwrap_or_else(|| panic!("{needle} in {text}"));
    let at = |n: usize| u32::try_from(n).unwrap();
    Diagnostic {
        level: "error".to_owned(),
        code: None,
        message: format!("at {needle}"),
        file: file.to_owned(),
        line: 1,
        spans: vec![(at(start), at(start + needle.len()))],
    }
}

#[test]
fn the_same_entropy_gives_the_same_plan_and_other_entropy_other_names() {
    let (one, two) = (plan_of(SOURCE, None), plan_of(SOURCE, None));
    assert_eq!(one.overlay, two.overlay);
    assert_eq!(one.mutants, two.mutants);
    let mut other = input(&[("src/lib.rs", SOURCE, FileRole::Program)], None);
    other.seed = [2; 32];
    let other = MutationPlan::new(other).unwrap();
    assert_eq!(ids(&one), ids(&other));
    assert_ne!(one.guard.name, other.guard.name);
    let selectors = |p: &MutationPlan| -> BTreeSet<u64> {
        let all = p.mutants.iter().map(|m| m.selector);
        all.chain(p.placebos.clone()).collect()
    };
    assert!(selectors(&one).is_disjoint(&selectors(&other)));
    assert_eq!(selectors(&one).len(), one.mutants.len() + 1);
}

#[test]
fn only_changed_lines_carry_mutants() {
    let text = "fn a(x: u32) -> u32 {\n    x + 1\n}\nfn b(x: u32) -> u32 {\n    x + 2\n}\n";
    let plan = plan_of(text, Some(&[5]));
    assert!(
        plan.mutants
            .iter()
            .all(|m| m.line == 5 || m.function == "b")
    );
    assert!(plan_of(text, Some(&[])).mutants.is_empty());
}

#[test]
fn every_family_has_a_mutant_and_lines_stay_where_they_were() {
    let text = "fn f(a: i32, b: bool, s: &str) -> i32 {\n    if s.contains('y') && b && a < 3 {\n        return -a;\n    }\n    if s == \"x\" {\n        return 1;\n    }\n    let mut n = a\n        * 2;\n    n += 1;\n    match n { 3 => g(true), _ => n }\n}\n";
    let plan = plan_of(text, None);
    let families: BTreeSet<Operator> = plan.mutants.iter().map(|m| m.operator).collect();
    // Those that only languages whose mutants are builds of their own have.
    let others = [
        Operator::ReturnValue,
        Operator::AssignedValue,
        Operator::Jump,
    ];
    let own = Operator::ALL.into_iter().filter(|o| !others.contains(o));
    assert_eq!(families, own.collect());
    let names: BTreeSet<&str> = Operator::ALL.iter().map(|o| o.name()).collect();
    assert_eq!(names.len(), Operator::ALL.len());
    let new = &plan.overlay[&RelPath::new("src/lib.rs").unwrap()];
    let new = std::str::from_utf8(new).unwrap();
    assert_eq!(new.lines().count(), text.lines().count());
    for (old, new) in text.lines().zip(new.lines()) {
        let word = old.split_whitespace().next().unwrap();
        assert!(new.contains(word), "{old} / {new}");
    }
}

#[test]
fn an_arm_is_left_out_only_where_one_behind_it_takes_everything() {
    let left_out = |arms: &str| -> Vec<String> {
        let text = format!("fn f(n: K) -> u8 {{\n    match n {{ {arms} }}\n}}\n");
        let plan = plan_of(&text, None);
        let own = plan
            .mutants
            .iter()
            .filter(|m| m.operator == Operator::ArmDelete);
        own.map(|m| m.original.clone()).collect()
    };
    assert_eq!(
        left_out("K::A => g(), K::B(x) => x, _ => 3"),
        ["K::A", "K::B(x)"]
    );
    assert_eq!(left_out("K::A => g(), other => h(other)"), ["K::A"]);
    // What has a guard is left out by its condition.
    assert_eq!(left_out("K::A if g() => 1, _ => 3"), [""; 0]);
    // Nothing would take what the arm took.
    for arms in [
        "K::A => 1, K::B(x) => x",
        "K::A => 1, OTHER => 2",
        "_ if g() => 1, K::A => 2",
    ] {
        assert_eq!(left_out(arms), [""; 0], "{arms}");
    }
    assert_eq!(left_out("_ => 3, K::A => 1"), [""; 0]);
}

#[test]
fn places_without_mutants_are_named_with_the_reason() {
    let text = "const A: u64 = 133_700;\nconst fn c(x: u64) -> u64 {\n    x + 1\n}\nunsafe fn u(x: u64) -> u64 {\n    x + 1\n}\n#[cfg(test)]\nmod tests {\n    fn t() { assert!(1 < 2) }\n}\nstruct S(u8);\nfn f(v: &mut Vec<u64>) {\n    let w = fill(v);\n    other! { w }\n}\n";
    let plan = plan_of(text, None);
    let why: BTreeMap<u32, Silence> = plan.unmutated.iter().map(|u| (u.line, u.why)).collect();
    for (line, expected) in [
        (1, Silence::ConstContext),
        (3, Silence::ConstContext),
        (6, Silence::Unsafe),
        (10, Silence::TestOnly),
        (12, Silence::Declaration),
        (14, Silence::WholeFunction),
        (15, Silence::Macro),
    ] {
        assert_eq!(why.get(&line), Some(&expected), "line {line}");
    }
    assert!(plan.mutants.iter().all(|m| m.function == "f"));
    let build = input(&[("build.rs", SOURCE, FileRole::BuildTime)], None);
    let plan = MutationPlan::new(build).unwrap();
    assert!(plan.mutants.is_empty() && plan.overlay.is_empty());
    assert!(plan.unmutated.iter().all(|u| u.why == Silence::BuildTime));
    assert_eq!(code(good(&plan).judge()), "certifier/UNJUDGED_CODE");
}

#[test]
fn limits_hold_and_no_source_breaks_the_engine() {
    let many = format!(
        "fn f(a: u64) -> u64 {{ a{} }}\n",
        " + a".repeat(MAX_MUTANTS)
    );
    let sum = " + a\n".repeat(600);
    let refused = |text: &str| {
        MutationPlan::new(input(&[("src/lib.rs", text, FileRole::Program)], None))
            .unwrap_err()
            .to_string()
    };
    let text = format!("fn f() {{ {} }}\n", "let _ = 1 + 1;\n".repeat(MAX_MUTANTS));
    assert!(refused(&text).starts_with("certifier/MUTANTS_TOO_MANY"));
    // Refused for its depth or its number, whichever rule sees it first.
    assert!(refused(&many).starts_with("certifier/"));
    assert!(refused("fn f( {").starts_with("certifier/SOURCE_UNREADABLE"));
    assert!(
        plan_of(&format!("fn f(a: u64) -> u64 {{ a {sum} }}\n"), None)
            .mutants
            .len()
            > 1000
    );
}

#[test]
fn the_deepest_source_that_is_read_at_all_is_walked_to_its_end() {
    for deepest in [
        format!("{}x", "!".repeat(5_900)),
        format!("{}x", "|| ".repeat(1_900)),
        format!("x{}", ".a()".repeat(1_400)),
        format!("x{}", " as u8".repeat(2_800)),
        format!("if a {{}} {}", "else if a {} ".repeat(1_100)),
        format!("{}1{}", "(".repeat(120), ")".repeat(120)),
        format!("{}1{}", "vec![".repeat(120), "]".repeat(120)),
    ] {
        let text = format!("fn f() {{ {deepest} }}\n");
        let made = MutationPlan::new(input(&[("src/lib.rs", &text, FileRole::Program)], None));
        let code = made.err().map(|e| e.to_string()).unwrap_or_default();
        let allowed = [
            "",
            "certifier/SOURCE_TOO_DEEP",
            "certifier/MUTANTS_TOO_MANY",
        ];
        assert!(allowed.contains(&code.split(':').next().unwrap()), "{code}");
    }
}

#[test]
fn an_error_is_blamed_on_the_alternative_it_lies_in() {
    let plan = plan_of(SOURCE, None);
    let error = error_at(&plan, "src/lib.rs", "(cents) % (10)");
    let found = plan.attribute(std::slice::from_ref(&error));
    let blamed: Vec<&str> = found.unviable.iter().map(|i| ids(&plan)[*i]).collect();
    assert_eq!(blamed, ["src/lib.rs:2:11 arithmetic / -> %"]);
    assert!(found.doubted.is_empty() && found.foreign.is_empty());
    let next = plan.without(&found).unwrap();
    assert_eq!(next.viable().count(), plan.viable().count() - 1);
    assert_eq!(next.mutants.len(), plan.mutants.len());
    let text = String::from_utf8(next.overlay.values().next().unwrap().0.clone()).unwrap();
    assert!(!text.contains('%') && text.contains("(cents) * (10)"));
}

#[test]
fn an_error_in_the_authors_text_is_blamed_on_what_stands_around_it() {
    let plan = plan_of(SOURCE, None);
    let region = plan.attribute(&[error_at(&plan, "src/lib.rs", "(cents / ")]);
    assert!(
        region
            .unviable
            .iter()
            .all(|i| plan.mutants[*i].operator == Operator::Arithmetic)
    );
    assert_eq!(region.unviable.len(), 2);
    assert_eq!(region.doubted, region.unviable);
    let function = plan.attribute(&[error_at(&plan, "src/lib.rs", "cents: u64")]);
    assert_eq!(function.unviable.len(), plan.mutants.len());
}

#[test]
fn an_error_that_no_mutant_can_have_caused_ends_the_trial() {
    let plan = plan_of(SOURCE, None);
    let mut elsewhere = error_at(&plan, "src/lib.rs", "cents");
    elsewhere.file = "src/other.rs".to_owned();
    let mut warning = error_at(&plan, "src/lib.rs", "cents");
    warning.level = "warning".to_owned();
    let found = plan.attribute(&[elsewhere.clone(), warning]);
    assert_eq!(found.foreign, [elsewhere]);
    assert!(found.unviable.is_empty());
    let refused = plan.without(&found).unwrap_err().to_string();
    assert!(refused.starts_with("certifier/SCHEMATA_BROKEN: src/other.rs:1: at cents"));
    let nothing = plan.without(&Attribution::default()).unwrap_err();
    assert!(nothing.to_string().starts_with("certifier/SCHEMATA_BROKEN"));
}

#[test]
fn a_fired_tripwire_opens_what_looked_like_tests() {
    let text = "#[cfg(test)]\nmod tests {\n    fn t(x: u64) -> u64 { x + 1 }\n}\n";
    let plan = plan_of(text, None);
    assert!(plan.mutants.is_empty() && plan.is_vacuous());
    let found = plan.attribute(&[error_at(&plan, "src/lib.rs", "::core::compile_error!")]);
    let next = plan.without(&found).unwrap();
    assert!(!next.mutants.is_empty() && !next.is_vacuous());
}

#[test]
fn a_change_of_tests_alone_has_nothing_to_mutate_and_a_change_of_constants_is_refused() {
    let tests = plan_of(
        "#[cfg(test)]\nmod tests {\n    fn t() {}\n}\n// text\n",
        None,
    );
    assert_eq!(good(&tests).judge().unwrap(), Tally::default());
    let constants = plan_of("const A: u64 = 5;\n", None);
    assert_eq!(code(good(&constants).judge()), "certifier/UNJUDGED_CODE");
    let declaration = plan_of("struct A;\n", None);
    assert_eq!(code(good(&declaration).judge()), "certifier/NO_MUTANTS");
}

#[test]
fn runs_become_fates_and_an_unarmed_run_is_never_a_kill() {
    let exited = |code| Ending::Exited { code };
    for (ending, kill) in [
        (exited(0), Kill::Value),
        (exited(1), Kill::Value),
        (exited(101), Kill::Panic),
        (exited(113), Kill::Fuel),
        (Ending::Signaled { signal: 6 }, Kill::Signal),
        (Ending::TimedOut, Kill::Time),
        (Ending::OutputLimit, Kill::Limit),
        (Ending::ForbiddenCall, Kill::Limit),
    ] {
        let seen = observation(ending.clone(), true);
        let run = |answer| Run {
            observation: &seen,
            answer,
        };
        assert_eq!(
            Fate::of(&[run(Answer::AsExpected), run(Answer::Differs)]),
            Fate::Killed(kill)
        );
        assert_eq!(Fate::of(&[run(Answer::AsExpected)]), Fate::Survived);
        let unjudged = match ending {
            Ending::TimedOut => Fate::Starved,
            _ => Fate::NotLoaded,
        };
        let unarmed = observation(ending, false);
        for answer in [Answer::AsExpected, Answer::Differs] {
            let runs = [
                run(Answer::AsExpected),
                Run {
                    observation: &unarmed,
                    answer,
                },
            ];
            assert_eq!(Fate::of(&runs), unjudged);
        }
    }
    let mut cut = observation(exited(0), true);
    cut.complete = false;
    let run = Run {
        observation: &cut,
        answer: Answer::Differs,
    };
    assert_eq!(Fate::of(&[run]), Fate::Killed(Kill::Limit));
    assert_eq!(Fate::of(&[]), Fate::NotRun);
}

#[test]
fn a_trial_in_which_every_mutant_is_noticed_passes_with_its_counts() {
    let plan = plan_of(SOURCE, None);
    let tally = good(&plan).judge().unwrap();
    assert_eq!(tally.generated, plan.mutants.len() as u64);
    assert_eq!(
        tally.killed,
        BTreeMap::from([(Kill::Value, tally.generated)])
    );
    let arithmetic = tally.families[&Operator::Arithmetic];
    assert_eq!((arithmetic.generated, arithmetic.unviable), (2, 0));
}

#[test]
fn each_way_to_void_or_fail_a_trial_has_its_own_code() {
    let plan = plan_of(SOURCE, None);
    let first = plan.viable().next().unwrap();
    let placebo = plan.placebos[0];
    let with = |change: &dyn Fn(&mut Trial<'_>)| {
        let mut trial = good(&plan);
        change(&mut trial);
        code(trial.judge())
    };
    let killed = Fate::Killed(Kill::Value);
    assert_eq!(with(&|t| t.control = killed), "certifier/CONTROL_FAILED");
    assert_eq!(
        with(&|t| t.control = Fate::NotRun),
        "certifier/MUTANT_NOT_LOADED"
    );
    assert_eq!(
        with(&|t| {
            t.placebos.insert(placebo, killed);
        }),
        "certifier/PLACEBO_KILLED"
    );
    assert_eq!(with(&|t| t.placebos.clear()), "certifier/MUTANT_NOT_LOADED");
    assert_eq!(
        with(&|t| {
            t.fates.remove(&first);
        }),
        "certifier/MUTANT_NOT_LOADED"
    );
    assert_eq!(
        with(&|t| {
            t.fates.insert(first, Fate::NotLoaded);
        }),
        "certifier/MUTANT_NOT_LOADED"
    );
    assert_eq!(
        with(&|t| {
            t.fates.insert(first, Fate::Starved);
        }),
        "certifier/MUTANT_STARVED"
    );
    assert_eq!(
        with(&|t| {
            t.fates.insert(first, Fate::Survived);
        }),
        "certifier/MUTANTS_SURVIVED"
    );
    let panics = |t: &mut Trial<'_>| {
        t.fates
            .values_mut()
            .for_each(|f| *f = Fate::Killed(Kill::Panic))
    };
    assert_eq!(with(&panics), "certifier/NO_KILL_BY_VALUE");
}

#[test]
fn one_survivor_is_named_in_the_line_and_each_as_a_waiver_to_paste_in_the_notes() {
    let plan = plan_of(SOURCE, None);
    let mut trial = good(&plan);
    trial.fates.values_mut().for_each(|f| *f = Fate::Survived);
    let refusal = trial.judge().unwrap_err();
    assert_eq!(refusal.notes.len(), plan.mutants.len());
    assert_eq!(refusal.detail.matches("src/lib.rs:").count(), 1);
    let first = &plan.mutants[0];
    let waivers: Vec<Waiver> = refusal
        .notes
        .iter()
        .map(|note| serde_json::from_str(note).unwrap())
        .collect();
    let named = |w: &&Waiver| (&w.mutant, w.source) == (&first.id, first.source);
    assert!(waivers.iter().any(|w| named(&w)), "{waivers:?}");
    // Quotes, backslashes and letters of other scripts come through, and nothing else does.
    let odd = r#"src/lib.rs:1:2 string "\n\u{e9}" -> "é𝒳""#;
    let note = Waiver::to_paste(odd, first.source);
    assert!(note.bytes().all(|b| (b' '..=b'~').contains(&b)), "{note}");
    assert_eq!(serde_json::from_str::<Waiver>(&note).unwrap().mutant, odd);
}

#[test]
fn a_waiver_accepts_exactly_the_survivor_it_names_in_exactly_that_file() {
    let plan = plan_of(SOURCE, None);
    let first = plan.viable().next().unwrap();
    let right = Waiver {
        mutant: plan.mutants[first].id.clone(),
        source: Digest::of(SOURCE.as_bytes()),
        reason: "equivalent".to_owned(),
    };
    let judged = |waivers: &[Waiver], fate| {
        let mut trial = Trial {
            waivers,
            ..good(&plan)
        };
        trial.fates.insert(first, fate);
        trial.judge().map_err(|r| r.code())
    };
    let stale = Err("certifier/WAIVER_STALE");
    let tally = judged(std::slice::from_ref(&right), Fate::Survived).unwrap();
    assert_eq!(tally.waived, 1);
    assert_eq!(
        judged(std::slice::from_ref(&right), Fate::Killed(Kill::Value)),
        stale
    );
    assert_eq!(
        judged(&[right.clone(), right.clone()], Fate::Survived),
        stale
    );
    let other_file = Waiver {
        source: Digest::of(b"other"),
        ..right.clone()
    };
    assert_eq!(judged(&[other_file], Fate::Survived), stale);
    let other_mutant = Waiver {
        mutant: "src/lib.rs:1:1 x".to_owned(),
        ..right
    };
    assert_eq!(judged(&[other_mutant], Fate::Survived), stale);
}

/// The plan of a text once the compiler has refused every mutant of a function.
fn without_mutants_of(text: &str, function: &str) -> MutationPlan {
    let plan = plan_of(text, None);
    let mutants = plan.mutants.iter().enumerate();
    let refused = mutants.filter(|(_, m)| m.function == function);
    let attribution = Attribution {
        unviable: refused.map(|(index, _)| index).collect(),
        ..Attribution::default()
    };
    assert!(!attribution.unviable.is_empty());
    plan.without(&attribution).unwrap()
}

#[test]
fn a_function_that_accepts_no_mutant_is_refused_even_beside_one_that_does() {
    // The outer call can be left out, which covers the lines of the function inside it.
    let text = "fn a(x: u32) {\n    g({\n        fn b(x: u32) -> u32 {\n            x + 2\n        }\n        b(x)\n    });\n}\n";
    let plan = without_mutants_of(text, "a::b");
    let refusal = good(&plan).judge().unwrap_err();
    assert_eq!(refusal.code(), "certifier/FUNCTION_NOT_MUTATED");
    assert_eq!(refusal.detail, "src/lib.rs: a::b");
}

#[test]
fn a_function_that_accepts_no_mutant_must_be_waived_line_by_line() {
    let text = "fn a(x: u32) -> u32 {\n    x + 1\n}\nfn b(x: u32) -> u32 {\n    x + 2\n}\n";
    let plan = without_mutants_of(text, "a");
    let line = plan.unmutated.iter().find(|u| u.line == 2).unwrap();
    assert_eq!(line.why, Silence::Unviable);
    let refusal = good(&plan).judge().unwrap_err();
    assert_eq!(refusal.code(), "certifier/UNJUDGED_CODE");
    let waivers = waivers_of(&plan);
    assert!(!waivers.is_empty());
    let waived = Trial {
        waivers: &waivers,
        ..good(&plan)
    };
    assert!(waived.judge().is_ok());
}

/// A waiver for every place that no mutant judges.
fn waivers_of(plan: &MutationPlan) -> Vec<Waiver> {
    let places = plan.unjudged.iter();
    let waivers = places.map(|place| Waiver {
        mutant: place.id(),
        source: place.source,
        reason: "seen".to_owned(),
    });
    waivers.collect()
}

proptest! {
    // Each case starts a thread.
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_text_is_planned_or_refused_and_never_panics(text in "\\PC{0,60}", pick in 0..6usize) {
        let frames = ["", "fn f() { X }", "fn f() -> u8 { if X {} 1 }", "fn f() { println!(X) }", "#[cfg(test)] mod t { X }", "fn f() { match x { X => 1, _ => 2 } }"];
        let text = frames[pick].replace('X', &text);
        let made = MutationPlan::new(input(&[("src/lib.rs", &text, FileRole::Program)], None));
        if let Ok(plan) = made {
            for bytes in plan.overlay.values() {
                prop_assert!(std::str::from_utf8(bytes).is_ok());
            }
        }
    }
}
