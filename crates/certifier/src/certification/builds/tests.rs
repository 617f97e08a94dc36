use crate::certification::{Ask, Certification, Failure, Judgement, Told};
use crate::claim::MutationMethod;
use crate::judge::Gate;
use crate::samples::{captured, change};
use crate::tree::Tree;
use crate::witness::Witness;
use flightproof_core::{Bytes, Digest, RelPath};
use flightproof_evidence::{
    BuildAnswer, BuildOrder, BuildRecord, Built, Diagnostic, Ending, Observation,
};

const OLD: &str =
    "import sys\n\n\ndef price(n):\n    return n\n\n\nprint(price(int(sys.argv[1])))\n";
const NEW: &str = "import sys\n\n\ndef price(n):\n    if n > 3:\n        return n * 2\n    return n\n\n\nprint(price(int(sys.argv[1])))\n";

/// What the session is made to hold now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    Tree,
    Placebo,
    Canary,
    Mutant,
}

fn held(order: &BuildOrder) -> (Held, String) {
    let texts: Vec<String> = order.overlay.values().map(text_of).collect();
    let text = texts.concat();
    let held = match text.as_str() {
        "" => Held::Tree,
        text if text.contains("_exit(113)") => Held::Canary,
        text if text.contains("[]; ") => Held::Placebo,
        _ => Held::Mutant,
    };
    (held, text)
}

fn text_of(bytes: &Bytes) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn said(stdout: String, code: u8, stderr: &str) -> Observation {
    Observation {
        ending: Ending::Exited { code },
        stdout: stdout.into_bytes().into(),
        stderr: stderr.as_bytes().into(),
        complete: true,
        armed: false,
    }
}

fn right(n: u32) -> Observation {
    said(format!("{}\n", if n > 3 { n * 2 } else { n }), 0, "")
}

fn wrong() -> Observation {
    said("wrong\n".to_owned(), 0, "")
}

fn crash() -> Observation {
    said(
        String::new(),
        1,
        "Traceback (most recent call last):\nNameError: x\n",
    )
}

fn witness(waivers: &str) -> Witness {
    witness_in("python", waivers)
}

fn witness_in(language: &str, waivers: &str) -> Witness {
    let case = |n: u32, out: u32| {
        format!(
            r#"{{"id":"n{n}","args":["{n}"],"stdin":"","files":{{}},"env":{{}},"expect":{{"exit":0,"stdout":"{out}\n"}}}}"#
        )
    };
    let cases = [case(3, 3), case(4, 8), case(0, 0), case(9, 18)].join(",");
    let text = format!(
        r#"{{"schema":"flightproof/witness/1","bin":"p","language":"{language}","cases":[{cases}],"waivers":[{waivers}]}}"#
    );
    Witness::parse(text.as_bytes()).unwrap()
}

type Builds<'a> = &'a dyn Fn(Held, &str) -> bool;
type Answers<'a> = &'a dyn Fn(Held, &str, u32, usize) -> Observation;

/// Flies in a session made up for the test: what it builds, and how that answers, given the text that
/// was built, the argument, and how many cases ran before.
fn fly(
    entropy: u8,
    waivers: &str,
    builds: Builds<'_>,
    answers: Answers<'_>,
) -> Result<Judgement, Failure> {
    let captured = captured(vec![change(
        "p.py",
        Some(OLD.as_bytes()),
        Some(NEW.as_bytes()),
    )]);
    let witness = witness(waivers);
    let path: RelPath = "p.py".parse().unwrap();
    let tree: Tree<'_> = [(&path, NEW.as_bytes())].into_iter().collect();
    let mut machine = Certification::new(&captured, &tree, &witness, [entropy; 32])?;
    let (mut holds, mut runs) = ((Held::Tree, String::new()), 0);
    while let Some(ask) = machine.ask() {
        let told = match ask {
            Ask::Compile(order) => {
                holds = held(&order);
                Told::Compiled(built(&order, builds(holds.0, &holds.1)))
            }
            Ask::Run(run) => {
                assert_eq!(run.selector, None, "nothing tells a build of its mutant");
                runs += 1;
                let n = run.args[0].parse().unwrap();
                Told::Ran(answers(holds.0, &holds.1, n, runs))
            }
        };
        machine.tell(told)?;
    }
    machine.finish()
}

fn built(order: &BuildOrder, builds: bool) -> BuildAnswer {
    if !builds {
        return BuildAnswer::Failed {
            diagnostics: vec![Diagnostic {
                level: "error".to_owned(),
                code: None,
                message: "no".to_owned(),
                file: "p.py".to_owned(),
                line: 1,
                spans: Vec::new(),
            }],
            tail: Bytes::default(),
        };
    }
    BuildAnswer::Built(Built {
        program: order.program.clone(),
        sha256: Digest::of(b"program"),
        record: BuildRecord {
            source: Digest::of(b"tree"),
            packages: Vec::new(),
            profile: "python: Python 3.11.2".to_owned(),
            settings: None,
            build_scripts: false,
            proc_macros: false,
        },
        reads: None,
    })
}

/// A session that tells the truth, of a witness that sees everything.
fn honest(held: Held, _: &str, n: u32, _: usize) -> Observation {
    match held {
        Held::Tree | Held::Placebo => right(n),
        Held::Canary => said(String::new(), 113, ""),
        Held::Mutant => wrong(),
    }
}

fn all(_: Held, _: &str) -> bool {
    true
}

fn code(flown: &Result<Judgement, Failure>) -> (Gate, &'static str) {
    let failure = flown.as_ref().unwrap_err();
    (failure.gate, failure.refusal.code())
}

#[test]
fn a_change_whose_every_mutant_is_noticed_passes_and_says_how() {
    let judgement = fly(1, "", &all, &honest).unwrap();
    assert!(judgement.gates.contains(&Gate::Mutation));
    let claim = &judgement.mutation;
    assert_eq!(claim.operator_set, "python-3");
    assert_eq!(claim.method, Some(MutationMethod::BuildPerMutant));
    assert!(claim.viable > 8 && claim.survived == 0, "{claim:?}");
    assert_eq!(claim.killed_by["value"], claim.viable);
    assert_eq!((claim.lines.changed, claim.lines.mutated), (2, 2));
}

#[test]
fn a_mutant_that_does_not_compile_is_none_and_is_counted() {
    let builds = |held, text: &str| held != Held::Mutant || !text.contains("n * 3");
    let claim = fly(1, "", &builds, &honest).unwrap().mutation;
    assert_eq!((claim.unviable, claim.generated), (1, claim.viable + 1));
}

#[test]
fn a_survivor_is_refused_and_a_waiver_accepts_exactly_it() {
    let answers = |held, text: &str, n, runs| match text.contains("n > 4") {
        true => right(n),
        false => honest(held, text, n, runs),
    };
    let flown = fly(1, "", &all, &answers);
    assert_eq!(code(&flown), (Gate::Mutation, "certifier/MUTANTS_SURVIVED"));
    let source = Digest::of(NEW.as_bytes());
    let waiver = |id: &str| format!(r#"{{"mutant":"{id}","source":"{source}","reason":"r"}}"#);
    let own = waiver("p.py:5:12 integer-literal 3 -> 4");
    let claim = fly(1, &own, &all, &answers).unwrap().mutation;
    assert_eq!((claim.waived.len(), claim.survived), (1, 0));
    let flown = fly(
        1,
        &waiver("p.py:5:12 integer-literal 3 -> 2"),
        &all,
        &answers,
    );
    assert_eq!(code(&flown), (Gate::Mutation, "certifier/WAIVER_STALE"));
}

/// Otherwise any program that ends itself when it is not as it was would pass.
#[test]
fn a_statement_that_only_crashes_is_not_shown_to_matter() {
    let answers = |held, text: &str, n, runs| match held {
        Held::Mutant => crash(),
        _ => honest(held, text, n, runs),
    };
    let flown = fly(1, "", &all, &answers);
    assert_eq!(code(&flown), (Gate::Mutation, "certifier/UNJUDGED_CODE"));
    let notes = &flown.unwrap_err().refusal.notes;
    assert!(
        notes.iter().any(|n| n.contains("unjudged crash-only")),
        "{notes:?}"
    );
}

#[test]
fn a_statement_of_which_no_mutant_compiles_must_be_waived() {
    let builds = |held, _: &str| held != Held::Mutant;
    let flown = fly(1, "", &builds, &honest);
    assert_eq!(code(&flown), (Gate::Mutation, "certifier/NO_MUTANTS"));
}

#[test]
fn who_notices_a_placebo_is_refused() {
    for entropy in 0..8 {
        let answers = |held, text: &str, n, runs| match held {
            Held::Placebo => wrong(),
            _ => honest(held, text, n, runs),
        };
        let flown = fly(entropy, "", &all, &answers);
        assert_eq!(code(&flown), (Gate::Mutation, "certifier/PLACEBO_KILLED"));
    }
}

#[test]
fn who_counts_its_runs_and_turns_wrong_voids_its_own_trial() {
    for entropy in 0..8 {
        for turn in [9, 20, 40] {
            let answers = |held, text: &str, n, runs| match runs >= turn {
                true => wrong(),
                false => honest(held, text, n, runs),
            };
            let (gate, code) = code(&fly(entropy, "", &all, &answers));
            let void = ["certifier/CONTROL_FAILED", "certifier/PLACEBO_KILLED"];
            assert!(
                gate == Gate::Mutation && void.contains(&code),
                "{entropy} {turn} {code}"
            );
        }
    }
}

#[test]
fn a_file_that_no_case_runs_is_no_part_of_what_is_judged() {
    let answers = |held, text: &str, n, runs| match held {
        Held::Canary => right(n),
        _ => honest(held, text, n, runs),
    };
    let flown = fly(1, "", &all, &answers);
    assert_eq!(code(&flown), (Gate::Mutation, "certifier/CANARY_SURVIVED"));
    assert_eq!(flown.unwrap_err().refusal.detail, "p.py");
}

#[test]
fn what_is_no_mutant_must_be_built() {
    for kept in [Held::Placebo, Held::Canary] {
        let builds = |held, _: &str| held != kept;
        let flown = fly(1, "", &builds, &honest);
        assert_eq!(code(&flown), (Gate::Mutation, "certifier/SCHEMATA_BROKEN"));
    }
}

#[test]
fn a_language_without_operators_is_refused() {
    let captured = captured(vec![change("p.rb", None, Some(b"puts 1\n"))]);
    let text = r#"{"schema":"flightproof/witness/1","bin":"p","language":"ruby","cases":[{"id":"a","expect":{"exit":0}},{"id":"b","expect":{"exit":1}}]}"#;
    let witness = Witness::parse(text.as_bytes()).unwrap();
    let tree: Tree<'_> = std::iter::empty().collect();
    let made = Certification::new(&captured, &tree, &witness, [1; 32]);
    let refused = made.err().unwrap().refusal;
    assert_eq!(refused.code(), "certifier/WITNESS_INVALID");
}

/// Flies a change of nothing but a type, in a session that gives this program for each build beside the
/// candidate's; it takes no type off.
fn fly_types(builds: impl Fn(&str) -> Option<Digest>) -> Result<Judgement, Failure> {
    let text = |of: &str| format!("const f = (n: {of}) => n;\nconsole.log(f(1));\n");
    let (old, new) = (text("any"), text("number"));
    let change = change("p.ts", Some(old.as_bytes()), Some(new.as_bytes()));
    let captured = captured(vec![change]);
    let witness = witness_in("typescript", "");
    let path: RelPath = "p.ts".parse().unwrap();
    let tree: Tree<'_> = [(&path, new.as_bytes())].into_iter().collect();
    let mut machine = Certification::new(&captured, &tree, &witness, [1; 32])?;
    while let Some(ask) = machine.ask() {
        let told = match ask {
            Ask::Compile(order) => {
                let text: String = order.overlay.values().map(text_of).collect();
                let head = text.split(" =>").next().unwrap_or_default();
                let program = builds(head);
                let mut answer = built(&order, program.is_some());
                if let (BuildAnswer::Built(built), Some(program)) = (&mut answer, program) {
                    built.sha256 = program;
                }
                Told::Compiled(answer)
            }
            Ask::Run(run) => Told::Ran(right(run.args[0].parse().unwrap())),
        };
        machine.tell(told)?;
    }
    machine.finish()
}

#[test]
fn what_is_taken_for_types_must_leave_the_same_program() {
    const FORMS: [&str; 4] = [
        "",
        "const f = (n        )",
        "const f = (n: any)",
        "const f = (n     )",
    ];
    let (now, before) = (Some(Digest::of(b"now")), Some(Digest::of(b"before")));
    let honest = |head: &str| match FORMS.iter().position(|form| *form == head) {
        Some(0 | 1) => now,
        Some(_) => before,
        None => panic!("{head}"),
    };
    let judgement = fly_types(honest).unwrap();
    assert!(!judgement.gates.contains(&Gate::Mutation));
    assert_eq!(judgement.mutation.lines.inert, 1);
    for (form, of) in [(1, "the change"), (3, "the baseline")] {
        for other in [None, Some(Digest::of(b"another"))] {
            let flown = fly_types(|head| match head == FORMS[form] {
                true => other,
                false => honest(head),
            });
            assert_eq!(code(&flown), (Gate::Mutation, "certifier/SOURCE_AMBIGUOUS"));
            let detail = flown.unwrap_err().refusal.detail;
            assert!(detail.starts_with(&format!("p.ts of {of}: ")), "{detail}");
        }
    }
}
