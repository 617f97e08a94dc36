use super::MAX_COMPARED;
use crate::certification::{Account, Ask, Certification, Failure, Judgement, MutantFate, Told};
use crate::samples::{captured, change};
use crate::tree::Tree;
use crate::witness::Witness;
use flightproof_core::{Digest, RelPath};
use flightproof_evidence::{
    BuildAnswer, BuildOrder, BuildRecord, Built, CaseRun, Ending, Observation, ProfileSettings,
};
use std::cell::RefCell;

const MANIFEST: &[u8] = b"[package]\nname = \"p\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";
const OLD: &str = "fn main() {}\n";
const NEW: &str = "fn main() {\n    let n: u32 = std::env::args().nth(1).unwrap().parse().unwrap();\n    println!(\"{}\", n > 3);\n}\n";
/// The mutants nobody notices, by the end of their ids.
const ALIVE: [&str; 2] = ["relational > -> >=", "relational > -> <="];

/// What a program for comparison is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Text {
    Original,
    Mutant,
    Marked,
}

fn text_of(order: &BuildOrder) -> Text {
    let text = order.overlay.values().next().map(|bytes| bytes.to_vec());
    let text = String::from_utf8(text.unwrap_or_default()).unwrap();
    match text {
        text if text.contains("pick(&[])") => Text::Marked,
        text if text.contains("((n) >  (3))") || text.contains("((n) > (3))") => Text::Original,
        _ => Text::Mutant,
    }
}

/// How a made-up session answers what is asked about survivors.
struct World<'a> {
    alive: &'a dyn Fn(&str) -> bool,
    /// What is built, given how many programs for comparison were before.
    builds: &'a dyn Fn(Text, usize) -> BuildAnswer,
    reaches: &'a dyn Fn(&CaseRun) -> Observation,
    source: &'a str,
}

fn built(program: &str) -> BuildAnswer {
    BuildAnswer::Built(Built {
        program: program.to_owned(),
        sha256: Digest::of(program.as_bytes()),
        record: BuildRecord {
            source: Digest::of(b"tree"),
            packages: Vec::new(),
            profile: "dev".to_owned(),
            settings: None,
            build_scripts: false,
            proc_macros: false,
        },
        reads: None,
    })
}

fn said(stdout: &str, code: u8, armed: bool) -> Observation {
    Observation {
        ending: Ending::Exited { code },
        stdout: stdout.as_bytes().into(),
        stderr: b"".as_slice().into(),
        complete: true,
        armed,
    }
}

/// Mutants are the original's program, another one ends at the place, and a case gets there.
fn alike(text: Text, _: usize) -> BuildAnswer {
    match text {
        Text::Original | Text::Mutant => built("one"),
        Text::Marked => built("marked"),
    }
}

fn reached(_: &CaseRun) -> Observation {
    said("", 101, true)
}

fn honest() -> World<'static> {
    World {
        alive: &|id| ALIVE.iter().any(|end| id.ends_with(end)),
        builds: &alike,
        reaches: &reached,
        source: NEW,
    }
}

struct Flown {
    outcome: Result<Judgement, Failure>,
    account: Account,
    compared: Vec<Text>,
}

impl Flown {
    fn equivalent(&self) -> usize {
        let mutants = self.account.mutants.iter();
        mutants.filter(|m| m.fate == MutantFate::Equivalent).count()
    }

    /// Nothing is proven, and so the change is refused.
    fn proves_nothing(&self) {
        assert_eq!(self.equivalent(), 0);
        let code = self.outcome.as_ref().unwrap_err().refusal.code();
        assert_eq!(code, "certifier/MUTANTS_SURVIVED");
    }
}

fn witness(waivers: &str) -> Witness {
    let case = |n: u32| {
        let out = n > 3;
        format!(
            r#"{{"id":"n{n}","args":["{n}"],"stdin":"","files":{{}},"env":{{}},"expect":{{"exit":0,"stdout":"{out}\n"}}}}"#
        )
    };
    let cases = [3, 4].map(case).join(",");
    let text = format!(
        r#"{{"schema":"flightproof/witness/1","bin":"p","cases":[{cases}],"waivers":[{waivers}]}}"#
    );
    Witness::parse(text.as_bytes()).unwrap()
}

fn fly(world: &World<'_>) -> Flown {
    fly_with(world, "")
}

fn fly_with(world: &World<'_>, waivers: &str) -> Flown {
    let changed = change(
        "src/main.rs",
        Some(OLD.as_bytes()),
        Some(world.source.as_bytes()),
    );
    let (captured, witness) = (captured(vec![changed]), witness(waivers));
    let [manifest, source]: [RelPath; 2] =
        ["Cargo.toml", "src/main.rs"].map(|p| p.parse().unwrap());
    let tree: Tree<'_> = [(&manifest, MANIFEST), (&source, world.source.as_bytes())]
        .into_iter()
        .collect();
    let mut machine = Certification::new(&captured, &tree, &witness, [1; 32]).unwrap();
    let compared = RefCell::new(Vec::new());
    while let Some(ask) = machine.ask() {
        let told = match &ask {
            Ask::Compile(order) if order.optimized => {
                let text = text_of(order);
                let before = compared.borrow().len();
                compared.borrow_mut().push(text);
                Told::Compiled((world.builds)(text, before))
            }
            Ask::Compile(_) => Told::Compiled(built("candidate")),
            Ask::Run(run) if !compared.borrow().is_empty() => Told::Ran((world.reaches)(run)),
            Ask::Run(run) => {
                let armed = run.selector.is_some();
                let mutants = &machine.plan.mutants;
                let chosen = run.selector.map(crate::mutation::selected);
                let selected = mutants.iter().find(|m| Some(m.selector) == chosen);
                let wrong = selected.is_some_and(|m| !(world.alive)(&m.id));
                let right = format!("{}\n", run.args[0].parse::<u32>().unwrap() > 3);
                Told::Ran(said(if wrong { "wrong\n" } else { &right }, 0, armed))
            }
        };
        if let Err(failure) = machine.tell(told) {
            panic!("{failure:?}");
        }
    }
    let account = machine.account();
    Flown {
        outcome: machine.finish(),
        account,
        compared: compared.into_inner(),
    }
}

#[test]
fn survivors_that_are_the_same_program_are_counted_and_pass() {
    let flown = fly(&honest());
    let claim = &flown.outcome.as_ref().unwrap().mutation;
    assert_eq!((claim.equivalent, claim.survived), (2, 0));
    assert_eq!(flown.equivalent(), 2);
    // Both have originals of their own, since their blanks differ or not; the last build is one again.
    assert_eq!(flown.compared.last(), Some(&Text::Original));
    let killed: u64 = claim.killed_by.values().sum();
    assert_eq!(killed + claim.equivalent, claim.viable);
    assert_eq!(
        serde_json::to_value(claim).unwrap()["equivalent"],
        serde_json::json!(2)
    );
}

#[test]
fn without_survivors_nothing_is_asked_and_nothing_is_said() {
    let flown = fly(&World {
        alive: &|_| false,
        ..honest()
    });
    assert_eq!(flown.compared, []);
    let claim = serde_json::to_value(flown.outcome.unwrap().mutation).unwrap();
    assert!(claim.get("equivalent").is_none());
}

#[test]
fn another_program_proves_nothing() {
    let other = |text: Text, _: usize| match text {
        Text::Original => built("one"),
        Text::Mutant | Text::Marked => built("other"),
    };
    let flown = fly(&World {
        builds: &other,
        ..honest()
    });
    flown.proves_nothing();
    assert!(!flown.compared.contains(&Text::Marked));
}

#[test]
fn a_compiler_that_does_not_repeat_itself_proves_nothing() {
    let again = RefCell::new(0);
    let wavering = |text: Text, at: usize| match text {
        Text::Original if at > 2 && *again.borrow() > 0 => built("another"),
        Text::Marked => {
            *again.borrow_mut() += 1;
            built("marked")
        }
        other => alike(other, at),
    };
    // One survivor: original, mutant, marked, original.
    let flown = fly(&World {
        alive: &|id| id.ends_with(ALIVE[0]),
        builds: &wavering,
        ..honest()
    });
    assert_eq!(flown.compared.len(), 4);
    flown.proves_nothing();
}

#[test]
fn what_is_not_in_the_program_or_no_case_reaches_stays_a_survivor() {
    // It ends there, and is the same program: the place is none of it.
    let absent = |_: Text, _: usize| built("one");
    fly(&World {
        builds: &absent,
        ..honest()
    })
    .proves_nothing();
    // Every case passes by.
    let runs = RefCell::new(0);
    let passes = |run: &CaseRun| {
        *runs.borrow_mut() += 1;
        assert_eq!(run.selector.map(crate::mutation::selected), Some(0));
        said(
            if run.args[0] == "4" {
                "true\n"
            } else {
                "false\n"
            },
            0,
            true,
        )
    };
    fly(&World {
        reaches: &passes,
        ..honest()
    })
    .proves_nothing();
    assert_eq!(runs.into_inner(), 4);
    // It answers otherwise, or says that it was there without the guard.
    for end in [said("x\n", 0, true), said("", 101, false)] {
        fly(&World {
            reaches: &|_| end.clone(),
            ..honest()
        })
        .proves_nothing();
    }
}

#[test]
fn a_build_that_fails_or_ran_code_of_the_candidate_proves_nothing() {
    let failing = |which: Text| {
        move |text: Text, at: usize| match text == which {
            true => BuildAnswer::Failed {
                diagnostics: Vec::new(),
                tail: b"".as_slice().into(),
            },
            false => alike(text, at),
        }
    };
    for which in [Text::Original, Text::Mutant, Text::Marked] {
        fly(&World {
            builds: &failing(which),
            ..honest()
        })
        .proves_nothing();
    }
    let limit = |_: Text, _: usize| BuildAnswer::Limit {
        limit: "time".to_owned(),
    };
    let flown = fly(&World {
        builds: &limit,
        ..honest()
    });
    flown.proves_nothing();
    assert_eq!(flown.compared.len(), 1);
    let unchecked = |text: Text, at: usize| match alike(text, at) {
        BuildAnswer::Built(mut built) => {
            built.record.settings = Some(ProfileSettings {
                opt_level: "3".to_owned(),
                debug_assertions: true,
                overflow_checks: false,
            });
            BuildAnswer::Built(built)
        }
        other => other,
    };
    fly(&World {
        builds: &unchecked,
        ..honest()
    })
    .proves_nothing();
    let scripted = |text: Text, at: usize| match alike(text, at) {
        BuildAnswer::Built(mut built) => {
            built.record.build_scripts = true;
            BuildAnswer::Built(built)
        }
        other => other,
    };
    fly(&World {
        builds: &scripted,
        ..honest()
    })
    .proves_nothing();
}

#[test]
fn nothing_is_compared_where_a_survivor_stays_one_anyway() {
    // No case gets to where the program could end.
    let branches = "if n > 3 { println!(\"true\"); } else { println!(\"false\"); }";
    let source = NEW.replace("println!(\"{}\", n > 3);", branches);
    let unreached = |id: &str| id.ends_with(ALIVE[0]) || id.ends_with("-> end");
    let flown = fly(&World {
        alive: &unreached,
        source: &source,
        ..honest()
    });
    let mut mutants = flown.account.mutants.iter();
    assert!(mutants.any(|m| m.id.ends_with("-> end")));
    flown.proves_nothing();
    assert_eq!(flown.compared, []);
    // More than are tried.
    let lines = "    println!(\"{}\", n > 3);\n".repeat(MAX_COMPARED);
    let source = NEW.replace("    println!(\"{}\", n > 3);\n", &lines);
    let flown = fly(&World {
        source: &source,
        ..honest()
    });
    flown.proves_nothing();
    assert_eq!(flown.compared, []);
}

#[test]
fn a_waiver_comes_first_and_what_it_accepts_is_not_compared() {
    let flown = fly(&honest());
    let of = |end: &str| {
        let mut mutants = flown.account.mutants.iter();
        mutants.find(|m| m.id.ends_with(end)).unwrap().id.clone()
    };
    let source = Digest::of(NEW.as_bytes());
    let waiver = format!(
        r#"{{"mutant":"{}","source":"{source}","reason":"never equal"}}"#,
        of(ALIVE[1])
    );
    let flown = fly_with(&honest(), &waiver);
    let claim = &flown.outcome.as_ref().unwrap().mutation;
    assert_eq!((claim.equivalent, claim.waived.len()), (1, 1));
}
