//! What a certificate proves and what it does not, in sentences for people: the same wherever they are
//! shown.

use crate::show::count;
use flightproof_certifier::certificate::Statement;
use flightproof_certifier::claim::{BaselineResult, Inputs};
use flightproof_core::escape;

/// Most bytes of a name, and of a reason.
const MAX_TEXT: usize = 400;

/// What a certificate proves, a line each.
pub(crate) fn proven(statement: &Statement) -> Vec<String> {
    let predicate = &statement.predicate;
    let inputs = &predicate.inputs;
    let gates: Vec<&str> = predicate.gates.iter().map(|gate| gate.name()).collect();
    let mutation = &inputs.mutation;
    vec![
        format!("gates passed: {}", gates.join(", ")),
        format!(
            "{}{} of a {} witness, each run {}, gave the expected answers",
            count(inputs.witness.cases, "case"),
            drawn(inputs),
            if inputs.witness.public {
                "public"
            } else {
                "private"
            },
            count(inputs.session_execution.runs_per_case, "time")
        ),
        format!(
            "{}; of the changed lines {} {} code of the program, and {} {} no program",
            match mutation.viable {
                0 => "the change has no mutants".to_owned(),
                viable => format!(
                    "{} of {viable} {} noticed",
                    mutation.killed_by.values().sum::<u64>(),
                    if viable == 1 {
                        "mutant that compiles was"
                    } else {
                        "mutants that compile were"
                    }
                ),
            },
            mutation.lines.mutated,
            if mutation.lines.mutated == 1 {
                "is"
            } else {
                "are"
            },
            mutation.lines.inert,
            if mutation.lines.inert == 1 {
                "changes"
            } else {
                "change"
            }
        ),
        format!(
            "built offline in a {} session with {}, nothing left of it",
            escape(&inputs.attestation.backend, 40),
            escape(compiler(inputs), 80)
        ),
    ]
}

/// What built it: a session has the Rust toolchain whatever the language of the program is.
fn compiler(inputs: &Inputs) -> &str {
    let named = inputs.session_build.profile.split_once(": ");
    named.map_or(&inputs.image_digest.version, |(_, compiler)| compiler)
}

/// What it does not, a line each.
pub(crate) fn not_proven(inputs: &Inputs) -> Vec<String> {
    let mutation = &inputs.mutation;
    let mut open = vec!["that the cases are complete".to_owned()];
    if let Some(suite) = &inputs.witness.suite {
        open.push(format!(
            "that nothing spoke for the tests: {} of the baseline ran in one process with what they judge; {} \
             more fail on the baseline and judged nothing",
            count(suite.tests, "test"),
            suite.failing
        ));
        let names = suite.quarantined.iter();
        open.extend(names.map(|name| format!("test {}: it wavers", escape(name, MAX_TEXT))));
    }
    if let Some(drawn) = &inputs.witness.differential {
        open.push(format!(
            "that the baseline answers rightly: {} of the cases expect its answers; {} generated inputs \
             were declared to differ and compared with nothing",
            drawn.generated, drawn.declared
        ));
    }
    for (what, waivers) in [("mutant", &mutation.waived), ("place", &mutation.unjudged)] {
        for waiver in waivers {
            open.push(format!(
                "waived {what} {}: {}",
                escape(&waiver.mutant, MAX_TEXT),
                escape(&waiver.reason, MAX_TEXT)
            ));
        }
    }
    if matches!(&inputs.witness.failed_on_baseline, BaselineResult::Ran { failed } if failed.is_empty())
    {
        open.push(
            "that the commit changes an answer: every case passes on its baseline too".to_owned(),
        );
    }
    let lines = &mutation.lines;
    for (count, one, more) in [
        (
            mutation.equivalent,
            "mutant no case notices: that it changes nothing is the word of one compiler",
            "mutants no case notices: that they change nothing is the word of one compiler",
        ),
        (
            lines.unjudged,
            "changed line no mutant can judge",
            "changed lines no mutant can judge",
        ),
        (
            lines.not_compiled,
            "changed line is code that nothing compiled and no case ran",
            "changed lines are code that nothing compiled and no case ran",
        ),
        (
            lines.regenerated,
            "changed line is as a generator makes it, and no mutant judges that",
            "changed lines are as a generator makes them, and no mutant judges those",
        ),
        (
            lines.tests,
            "changed line is of tests or examples, which nothing proves",
            "changed lines are tests or examples, which nothing proves",
        ),
        (
            lines.data,
            "changed line is data that is not compiled",
            "changed lines are data that is not compiled",
        ),
    ] {
        match count {
            0 => {}
            1 => open.push(format!("1 {one}")),
            _ => open.push(format!("{count} {more}")),
        }
    }
    for made in &lines.generated {
        let files = made
            .files
            .iter()
            .map(|file| escape(file.as_str(), MAX_TEXT));
        let files: Vec<String> = files.collect();
        let rule = escape(&made.rule, MAX_TEXT);
        open.push(format!("what generator {rule} makes: {}", files.join(", ")));
    }
    for package in &inputs.session_build.new_packages {
        open.push(format!(
            "what the new package {} {} does: nothing of it was read or mutated",
            escape(&package.name, MAX_TEXT),
            escape(&package.version, MAX_TEXT)
        ));
    }
    if inputs.capture.narrowed.is_some() {
        open.push("that the rest of the tree works with the change: a part flew".to_owned());
    }
    for (ran, what) in [
        (inputs.session_build.build_scripts, "build scripts"),
        (inputs.session_build.proc_macros, "procedural macros"),
    ] {
        if ran {
            open.push(format!("what {what} made of the build: they ran in it"));
        }
    }
    open
}

/// How cases came to be that nobody wrote down.
pub(crate) fn drawn(inputs: &Inputs) -> String {
    if let Some(suite) = &inputs.witness.suite {
        return format!(
            " (programs with {} of the baseline, {} more ignored, {} failing, {} wavering)",
            count(suite.tests, "test"),
            suite.ignored,
            suite.failing,
            suite.quarantined.len()
        );
    }
    let drawn = inputs.witness.differential.as_ref();
    drawn.map_or_else(String::new, |drawn| {
        format!(
            " ({} generated and answered as by the baseline, {} more declared to differ)",
            drawn.generated, drawn.declared
        )
    })
}
