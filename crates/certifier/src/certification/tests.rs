use super::*;
use crate::claim::BaselineResult;
use crate::mutation::{Silence, Unjudged};
use flightproof_core::CommitId;
use flightproof_evidence::{BuildRecord, Change, Ending, FileState};

const MANIFEST: &[u8] = b"[package]\nname = \"p\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";
const OLD: &str = "fn main() {\n    println!(\"0\");\n}\n";
const NEW: &str = "fn main() {\n    let n: u32 = std::env::args().nth(1).unwrap().parse().unwrap();\n    println!(\"{}\", if n > 3 { n * 2 } else { n });\n}\n";

fn captured() -> Captured {
    let state = |text: &str| FileState {
        executable: false,
        content: Bytes::from(text.as_bytes()),
    };
    Captured {
        repository: "r".to_owned(),
        baseline: CommitId::from_bytes([1; 20]),
        head: CommitId::from_bytes([2; 20]),
        author: "A <a@b.c>".to_owned(),
        committer: "A <a@b.c>".to_owned(),
        bundle: Digest::of(b""),
        bundle_bytes: 1,
        changeset: None,
        snapshot: Digest::of(b"tree"),
        archive: Bytes(Vec::new()),
        kept: Vec::new(),
        kept_digest: None,
        changes: vec![Change {
            path: RelPath::new("src/main.rs").unwrap(),
            old: Some(state(OLD)),
            new: Some(state(NEW)),
        }],
    }
}

fn witness() -> Witness {
    let case = |n: u32, out: u32| {
        format!(
            r#"{{"id":"n{n}","args":["{n}"],"stdin":"","files":{{}},"env":{{}},"expect":{{"exit":0,"stdout":"{out}\n"}}}}"#
        )
    };
    let cases = [case(3, 3), case(4, 8), case(0, 0), case(9, 18)].join(",");
    let text =
        format!(r#"{{"schema":"flightproof/witness/1","bin":"p","cases":[{cases}],"waivers":[]}}"#);
    Witness::parse(text.as_bytes()).unwrap()
}

/// A session made up for the test: how the program answers, given its selector (absent for the
/// candidate as it is), its argument, and how many programs ran before.
struct World<'a> {
    program: &'a dyn Fn(Option<Selected>, u32, usize) -> String,
    runs: usize,
    log: Vec<Option<u64>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Selected {
    Nothing,
    Mutant,
}

fn right(n: u32) -> String {
    format!("{}\n", if n > 3 { n * 2 } else { n })
}

fn observation(stdout: String, armed: bool) -> Observation {
    Observation {
        ending: Ending::Exited { code: 0 },
        stdout: Bytes(stdout.into_bytes()),
        stderr: Bytes::default(),
        complete: true,
        armed,
    }
}

fn built() -> BuildAnswer {
    BuildAnswer::Built(Built {
        program: CANDIDATE.to_owned(),
        sha256: Digest::of(b"program"),
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

impl World<'_> {
    fn answer(&mut self, ask: &Ask, machine: &Certification<'_>) -> Told {
        let run = match ask {
            Ask::Compile(_) => return Told::Compiled(built()),
            Ask::Run(run) => run,
        };
        let selected = run.selector.map(crate::mutation::selected).map(|selector| {
            if selector == 0 || machine.plan.placebos.contains(&selector) {
                Selected::Nothing
            } else {
                Selected::Mutant
            }
        });
        let stdout = (self.program)(selected, run.args[0].parse().unwrap(), self.runs);
        self.runs += 1;
        self.log.push(run.selector.map(crate::mutation::selected));
        Told::Ran(observation(stdout, run.selector.is_some()))
    }
}

#[test]
fn an_account_calls_waived_what_the_judge_takes_as_waived() {
    let (captured, witness) = (captured(), witness());
    let source = captured.changes[0].path.clone();
    let tree: Tree<'_> = [(&source, NEW.as_bytes())].into_iter().collect();
    let mut machine = Certification::new(&captured, &tree, &witness, [7; 32]).unwrap();
    let place = Unjudged {
        file: source.clone(),
        line: 1,
        why: Silence::CompiledData,
        what: String::new(),
        source: Digest::of(NEW.as_bytes()),
    };
    machine.plan.unjudged.insert(place.clone());
    machine.fates.insert(0, Fate::Survived);
    let of = |mutant: &str, source: Digest| Waiver {
        mutant: mutant.to_owned(),
        source,
        reason: "why".to_owned(),
    };
    let id = machine.plan.mutants[0].id.clone();
    // One of another text of the file is for something else.
    for (text, fate) in [(NEW, MutantFate::Waived), (OLD, MutantFate::Survived)] {
        let digest = Digest::of(text.as_bytes());
        machine.waivers = vec![of(&id, digest), of(&place.id(), digest)];
        let account = machine.account();
        assert_eq!(account.mutants[0].fate, fate);
        let waived = account.silent.iter().any(|silent| silent.waived);
        assert_eq!(waived, fate == MutantFate::Waived);
    }
}

/// Drives the machine to its end; returns the selectors of all runs too.
fn certify(
    entropy: u8,
    program: &dyn Fn(Option<Selected>, u32, usize) -> String,
) -> (Result<Judgement, Failure>, Vec<Option<u64>>) {
    let (captured, witness) = (captured(), witness());
    let manifest = RelPath::new("Cargo.toml").unwrap();
    let source = captured.changes[0].path.clone();
    let tree: Tree<'_> = [(&manifest, MANIFEST), (&source, NEW.as_bytes())]
        .into_iter()
        .collect();
    let mut machine = Certification::new(&captured, &tree, &witness, [entropy; 32]).unwrap();
    let mut world = World {
        program,
        runs: 0,
        log: Vec::new(),
    };
    while let Some(ask) = machine.ask() {
        let told = world.answer(&ask, &machine);
        if let Err(failure) = machine.tell(told) {
            return (Err(failure), world.log);
        }
    }
    (machine.finish(), world.log)
}

fn code(outcome: &Result<Judgement, Failure>) -> (&'static str, &'static str) {
    let failure = outcome.as_ref().unwrap_err();
    (failure.gate.name(), failure.refusal.code())
}

#[test]
fn a_candidate_that_is_right_and_whose_mutants_are_noticed_passes_every_gate() {
    let (outcome, log) = certify(1, &|selected, n, _| match selected {
        Some(Selected::Mutant) => "wrong\n".to_owned(),
        _ => right(n),
    });
    let judgement = outcome.unwrap();
    assert_eq!(judgement.gates, Gate::ALL);
    assert!(judgement.mutation.viable > 5 && judgement.mutation.survived == 0);
    assert_eq!(log.iter().filter(|selector| selector.is_none()).count(), 8);
}

#[test]
fn a_wrong_answer_ends_it_at_correctness_before_anything_is_mutated() {
    let (outcome, log) = certify(1, &|_, n, _| format!("{n}\n"));
    assert_eq!(
        code(&outcome),
        ("correctness", "certifier/CASE_STDOUT_MISMATCH")
    );
    assert!(log.len() <= 4 && log.iter().all(Option::is_none));
}

#[test]
fn another_answer_in_the_second_pass_ends_it_at_determinism() {
    let (outcome, _) = certify(1, &|_, n, runs| {
        if runs == 6 { "0\n\n".into() } else { right(n) }
    });
    assert_eq!(
        code(&outcome),
        ("determinism", "certifier/NONDETERMINISTIC")
    );
}

#[test]
fn the_second_pass_is_elsewhere_but_for_what_a_case_sets() {
    let own = [("TZ".to_owned(), "UTC".to_owned())];
    let mut run = CaseRun {
        program: "p".to_owned(),
        args: vec![],
        stdin: Bytes(vec![]),
        files: BTreeMap::new(),
        env: own.into(),
        selector: None,
        wall_ms: 1,
        tree: None,
    };
    let mut of_tree = run.clone();
    of_tree.tree = Some(String::new());
    let before = of_tree.clone();
    elsewhere(&mut of_tree);
    assert_eq!(of_tree, before);
    elsewhere(&mut run);
    assert_eq!(run.env["TZ"], "UTC");
    let others = ELSEWHERE.iter().filter(|(name, _)| *name != "TZ");
    others.for_each(|(name, value)| assert_eq!(run.env[*name], *value));
    assert_eq!(run.env.len(), ELSEWHERE.len());
}

/// A program may compute with what is the same in every case: its answers are right in that place alone.
#[test]
fn what_depends_on_its_surroundings_ends_at_determinism() {
    for (name, _) in ELSEWHERE {
        let (captured, witness) = (captured(), witness());
        let source = captured.changes[0].path.clone();
        let tree: Tree<'_> = [(&source, NEW.as_bytes())].into_iter().collect();
        let mut machine = Certification::new(&captured, &tree, &witness, [7; 32]).unwrap();
        let failure = loop {
            let told = match machine.ask().unwrap() {
                Ask::Compile(_) => Told::Compiled(built()),
                Ask::Run(run) => {
                    let n: u32 = run.args[0].parse().unwrap();
                    let added = run.env.get(name).map_or(0, String::len);
                    Told::Ran(observation(right(n) + &" ".repeat(added), false))
                }
            };
            if let Err(failure) = machine.tell(told) {
                break failure;
            }
        };
        assert_eq!(failure.gate, Gate::Determinism, "{name}");
        assert_eq!(failure.refusal.code(), "certifier/NONDETERMINISTIC");
    }
}

#[test]
fn a_mutant_that_no_case_notices_ends_it_at_mutation() {
    let (outcome, _) = certify(1, &|_, n, _| right(n));
    assert_eq!(code(&outcome), ("mutation", "certifier/MUTANTS_SURVIVED"));
}

/// Such a candidate would have every mutant of its back door "killed", whatever they do.
#[test]
fn a_candidate_that_counts_its_runs_and_turns_wrong_voids_its_own_trial() {
    for entropy in 0..20 {
        for turn in [8, 12, 13, 20, 30] {
            let (outcome, _) = certify(entropy, &|selected, n, runs| match selected {
                Some(_) if runs >= turn => "wrong\n".to_owned(),
                Some(Selected::Mutant) => "wrong\n".to_owned(),
                _ => right(n),
            });
            let (gate, code) = code(&outcome);
            let void = ["certifier/CONTROL_FAILED", "certifier/PLACEBO_KILLED"];
            assert!(
                gate == "mutation" && void.contains(&code),
                "{entropy} {turn} {code}"
            );
        }
    }
}

#[test]
fn where_the_controls_stand_cannot_be_known_before() {
    let honest = |selected: Option<Selected>, n: u32, _: usize| match selected {
        Some(Selected::Mutant) => "wrong\n".to_owned(),
        _ => right(n),
    };
    let places = |entropy| -> Vec<usize> {
        let (_, log) = certify(entropy, &honest);
        let at = |(place, selector): (usize, &Option<u64>)| (*selector == Some(0)).then_some(place);
        log.iter().enumerate().filter_map(at).collect()
    };
    let (first, second) = (places(1), places(2));
    assert_ne!(first, second);
    assert!(first.len() >= 4 * 5, "{first:?}");
}

#[test]
fn an_answer_of_another_kind_is_our_own_fault() {
    let (captured, witness) = (captured(), witness());
    let tree: Tree<'_> = std::iter::empty().collect();
    let mut machine = Certification::new(&captured, &tree, &witness, [1; 32]).unwrap();
    let told = Told::Ran(observation(String::new(), false));
    let failure = machine.tell(told).unwrap_err();
    assert_eq!(failure.refusal.code(), "certifier/ANSWER_UNASKED");
}

#[test]
fn cases_that_fail_on_the_baseline_are_counted_and_nothing_of_it_ends_the_flight() {
    let (captured, witness) = (captured(), witness());
    let tree: Tree<'_> = std::iter::empty().collect();
    let machine = Certification::new(&captured, &tree, &witness, [1; 32]).unwrap();
    let run = |mut trial: BaselineTrial<'_>, answers: &dyn Fn(u32) -> String, builds: bool| {
        while let Some(ask) = trial.ask() {
            let told = match ask {
                Ask::Compile(_) if builds => Told::Compiled(built()),
                Ask::Compile(_) => Told::Compiled(BuildAnswer::Limit {
                    limit: "time".to_owned(),
                }),
                Ask::Run(case) => {
                    assert_eq!((case.program.as_str(), case.selector), (CANDIDATE, None));
                    Told::Ran(observation(answers(case.args[0].parse().unwrap()), false))
                }
            };
            trial.tell(&told).unwrap();
        }
        trial.finish().unwrap()
    };
    let same = |n| format!("{n}\n");
    let found = run(machine.on_baseline(), &same, true);
    assert_eq!(found, BaselineResult::Ran { failed: vec![2, 4] });
    assert_eq!(found.failed(), 2);
    let found = run(machine.on_baseline(), &right, true);
    assert_eq!(found, BaselineResult::Ran { failed: vec![] });
    let found = run(machine.on_baseline(), &same, false);
    assert_eq!((found.failed(), found), (0, BaselineResult::Unbuilt {}));
    assert!(machine.on_baseline().finish().is_err());
    let answer = Told::Ran(observation(String::new(), false));
    assert!(machine.on_baseline().tell(&answer).is_err());
}

/// A whole trial whose programs are made up: each run is answered.
fn fly(
    witness: &Witness,
    answer: &mut dyn FnMut(&CaseRun, &MutationPlan) -> Observation,
) -> Result<Judgement, Failure> {
    let captured = captured();
    let manifest = RelPath::new("Cargo.toml").unwrap();
    let source = captured.changes[0].path.clone();
    let tree: Tree<'_> = [(&manifest, MANIFEST), (&source, NEW.as_bytes())]
        .into_iter()
        .collect();
    let mut machine = Certification::new(&captured, &tree, witness, [3; 32]).unwrap();
    while let Some(ask) = machine.ask() {
        let told = match ask {
            Ask::Compile(_) => Told::Compiled(built()),
            Ask::Run(run) => Told::Ran(answer(&run, &machine.plan)),
        };
        machine.tell(told)?;
    }
    machine.finish()
}

/// The right answer to a run, and with which fuel and mutant it is run, if with any. Placebos are no
/// mutants.
fn rightly(run: &CaseRun, plan: &MutationPlan) -> (u32, Observation, Option<(u64, bool)>) {
    let n: u32 = run.args[0].parse().unwrap();
    let chosen = run.selector.map(|word| {
        let mutant = crate::mutation::selected(word);
        (word >> 48, mutant != 0 && !plan.placebos.contains(&mutant))
    });
    (n, observation(right(n), chosen.is_some()), chosen)
}

const DRY: Ending = Ending::Exited {
    code: crate::mutation::FUEL_EXIT,
};

fn wrong() -> Bytes {
    Bytes(b"wrong\n".to_vec())
}

/// What a case needs is found by the first control, by letting it run dry; everything after it, with a
/// mutant or without, has at least eight times as much as that one got by with.
#[test]
fn fuel_follows_from_what_the_program_needs_without_a_mutant() {
    let mut fuels: Vec<(u32, u64)> = Vec::new();
    let flown = fly(&witness(), &mut |run, plan| {
        let (n, mut said, chosen) = rightly(run, plan);
        if let Some((fuel, mutant)) = chosen {
            fuels.push((n, fuel));
            // One case works hard, and so does it with every mutant.
            if n == 9 && fuel < 20 {
                said.ending = DRY;
            } else if mutant {
                said.stdout = wrong();
            }
        }
        said
    });
    flown.unwrap();
    let of = |case| -> Vec<u64> {
        let of = fuels.iter().filter(|(n, _)| *n == case);
        of.map(|(_, fuel)| *fuel).collect()
    };
    assert_eq!(of(9)[..3], [14, 18, 22]);
    assert!(of(9)[3..].iter().all(|fuel| *fuel == 25) && of(9).len() > 6);
    assert_eq!(of(4)[0], 14);
    assert!(of(4)[1..].iter().all(|fuel| *fuel == 17) && of(4).len() > 4);
}

/// A program that waits by spinning may run dry in any run without a mutant. It is given more, and so are
/// those that ran dry on less before.
#[test]
fn a_control_that_runs_dry_is_given_more_and_what_ran_dry_before_is_tried_again() {
    for dry_control in [1, 2, 3] {
        let (mut controls, mut dried) = (0, 0);
        let flown = fly(&witness(), &mut |run, plan| {
            let (n, mut said, chosen) = rightly(run, plan);
            // Only this case notices mutants.
            let Some((fuel, mutant)) = chosen.filter(|_| n == 9) else {
                return said;
            };
            if mutant && fuel < 21 {
                dried += 1;
                said.ending = DRY;
            } else if mutant {
                said.stdout = wrong();
            } else if run.selector.map(crate::mutation::selected) == Some(0) {
                controls += 1;
                if controls > dry_control && fuel < 21 {
                    said.ending = DRY;
                }
            }
            said
        });
        let judgement = flown.unwrap();
        let by = |name: &str| judgement.mutation.killed_by.get(name).copied().unwrap_or(0);
        assert_eq!(by("fuel"), 0, "{dry_control}");
        assert!(by("value") > 5 && dried > 0, "{dry_control} {dried}");
    }
}

/// A status of its own that looks like running dry is an answer only where there is no more to be had.
#[test]
fn a_case_that_expects_the_status_of_running_dry_is_run_to_its_end() {
    let text = r#"{"schema":"flightproof/witness/1","bin":"p","cases":[{"id":"a","args":["4"],"stdin":"","files":{},"env":{},"expect":{"exit":113,"stdout":"8\n"}},{"id":"b","args":["3"],"stdin":"","files":{},"env":{},"expect":{"exit":113,"stdout":"3\n"}}],"waivers":[]}"#;
    let mut fuels = Vec::new();
    let flown = fly(
        &Witness::parse(text.as_bytes()).unwrap(),
        &mut |run, plan| {
            let (_, mut said, chosen) = rightly(run, plan);
            said.ending = DRY;
            match chosen {
                Some((_, true)) => said.stdout = wrong(),
                Some((fuel, false)) => fuels.push(fuel),
                None => {}
            }
            said
        },
    );
    assert_eq!(fuels[..8], [14, 18, 22, 25, 14, 18, 22, 25]);
    assert!(fuels[8..].iter().all(|fuel| *fuel == 28));
    // Such a status is no answer to be noticed by.
    assert_eq!(
        flown.unwrap_err().refusal.code(),
        "certifier/NO_KILL_BY_VALUE"
    );
}
