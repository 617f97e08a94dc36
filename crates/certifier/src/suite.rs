//! What a program with Rust's own test harness says, read as the words of a stranger.
//!
//! The code that judges runs in the same process as the code that is judged, so this proves less
//! than cases do: a program may print what the harness prints. It is good for measuring tests that
//! are trusted; where the code is not, a program is run whole, with two tests of ours in it ([`whole`]).

use flightproof_evidence::{Ending, Observation};
use std::collections::BTreeMap;

/// Most bytes of a test's name: a path of modules is a tenth of it.
const MAX_NAME: usize = 400;
/// Most tests of one program that one run can name: the arguments of a run are bounded.
pub const MAX_NAMED: usize = 2_000;

/// The names of the tests of a program, from `--list --format terse`. `None` if it is no such list:
/// the program has a harness of its own.
pub fn listed(observation: &Observation, stdout: &[u8]) -> Option<Vec<String>> {
    if observation.ending != (Ending::Exited { code: 0 }) || !observation.complete {
        return None;
    }
    let text = std::str::from_utf8(stdout).ok()?;
    let lines = text.lines().filter(|line| !line.is_empty());
    let mut names = Vec::new();
    for line in lines {
        let (name, kind) = line.rsplit_once(": ")?;
        match kind {
            "test" if name.len() <= MAX_NAME && !name.starts_with('-') => {
                names.push(name.to_owned())
            }
            "test" | "benchmark" => {}
            _ => return None,
        }
    }
    Some(names)
}

/// The arguments with which exactly these tests run, one after the other, in their order.
pub fn arguments<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let fixed = ["--exact", "--test-threads=1"].into_iter();
    fixed.chain(names).map(str::to_owned).collect()
}

/// What a run of tests came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// So many were asked for, and so many passed.
    Passed,
    /// Some did not: the first that said so.
    Failed(Option<String>),
}

/// Holds a run against the number of tests that it was asked for. A test that is missing, ignored,
/// or that nobody knows has not passed.
pub fn heard(observation: &Observation, asked: usize) -> Heard {
    let text = String::from_utf8_lossy(&observation.stdout);
    let summary = format!("test result: ok. {asked} passed; 0 failed; 0 ignored");
    let passed = observation.ending == (Ending::Exited { code: 0 })
        && observation.complete
        && text.lines().any(|line| line.starts_with(&summary));
    if passed {
        return Heard::Passed;
    }
    let failed = text.lines().find_map(|line| {
        let name = line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
        let name = name.strip_suffix(" - should panic").unwrap_or(name);
        (name.len() <= MAX_NAME).then(|| name.to_owned())
    });
    Heard::Failed(failed)
}

/// The names of all tests that said they failed.
pub fn failed(stdout: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(stdout);
    let lines = text.lines().filter_map(|line| {
        let name = line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
        Some(
            name.strip_suffix(" - should panic")
                .unwrap_or(name)
                .to_owned(),
        )
    });
    lines.collect()
}

/// Two tests of ours in a program of tests, by names that nobody knows beforehand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Canaries {
    /// The one that passes.
    pub passes: String,
    /// The one that fails.
    pub fails: String,
}

/// What became of one test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It passed.
    Passed,
    /// It failed.
    Failed,
    /// It did not run.
    Ignored,
}

impl Outcome {
    /// As the harness says it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Passed => "ok",
            Self::Failed => "FAILED",
            Self::Ignored => "ignored",
        }
    }

    fn read(text: &str) -> Option<Self> {
        match text {
            "ok" => Some(Self::Passed),
            "FAILED" => Some(Self::Failed),
            "ignored" => Some(Self::Ignored),
            reason if reason.starts_with("ignored, ") => Some(Self::Ignored),
            _ => None,
        }
    }
}

/// The results of all tests of a program that was run whole, one test after the other, without those of
/// ours. `None` unless it printed, to the line, what a harness prints that ran them all: a line more, one
/// less, or one with anything else on it, and nobody knows who printed what.
pub fn whole(observation: &Observation, canaries: &Canaries) -> Option<BTreeMap<String, Outcome>> {
    if observation.ending != (Ending::Exited { code: 101 }) || !observation.complete {
        return None;
    }
    let text = std::str::from_utf8(&observation.stdout).ok()?;
    let mut lines = text.strip_prefix("\nrunning ")?.split('\n');
    let count: usize = lines.next()?.strip_suffix(" tests")?.parse().ok()?;
    let mut results = BTreeMap::new();
    for line in lines.by_ref().take(count) {
        let (name, outcome) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
        let name = name.strip_suffix(" - should panic").unwrap_or(name);
        let plain = name.len() <= MAX_NAME && !name.contains(" ... ");
        let new = results.insert(name.to_owned(), Outcome::read(outcome)?);
        if !plain || new.is_some() {
            return None;
        }
    }
    let (Some(""), Some("failures:")) = (lines.next(), lines.next()) else {
        return None;
    };
    let of = |wanted: Outcome| results.values().filter(|found| **found == wanted).count();
    let summary = format!(
        "test result: FAILED. {} passed; {} failed; {} ignored; 0 measured; 0 filtered out; finished in ",
        of(Outcome::Passed),
        of(Outcome::Failed),
        of(Outcome::Ignored)
    );
    let last = lines.rfind(|line| !line.is_empty())?;
    let took = last.strip_prefix(&summary)?.strip_suffix('s')?;
    let ours = [
        (&canaries.passes, Outcome::Passed),
        (&canaries.fails, Outcome::Failed),
    ];
    let met = ours
        .iter()
        .all(|(name, outcome)| results.remove(*name) == Some(*outcome));
    let timed = took
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    (met && timed).then_some(results)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(code: u8, stdout: &str) -> Observation {
        Observation {
            ending: Ending::Exited { code },
            stdout: stdout.as_bytes().into(),
            stderr: Vec::new().into(),
            complete: true,
            armed: true,
        }
    }

    fn list(code: u8, stdout: &str) -> Option<Vec<String>> {
        listed(&said(code, stdout), stdout.as_bytes())
    }

    #[test]
    fn a_list_names_tests_and_leaves_benchmarks_out() {
        let names = list(0, "a::b: test\nc: benchmark\nd - x: test\n").unwrap();
        assert_eq!(names, ["a::b", "d - x"]);
        assert_eq!(list(0, "").unwrap(), [""; 0]);
        assert_eq!(list(0, "--exact: test\n").unwrap(), [""; 0]);
        for (code, text) in [(1, "a: test\n"), (0, "usage: of\n"), (0, "hello\n")] {
            assert_eq!(list(code, text), None, "{text}");
        }
    }

    #[test]
    fn only_as_many_passed_tests_as_were_asked_for_pass() {
        let text = |passed, ignored| {
            format!(
                "\nrunning 2 tests\n\ntest result: ok. {passed} passed; 0 failed; {ignored} ignored; 0 measured\n"
            )
        };
        assert_eq!(heard(&said(0, &text(2, 0)), 2), Heard::Passed);
        for (code, passed, ignored) in [(101, 2, 0), (0, 1, 0), (0, 12, 0), (0, 1, 1), (0, 2, 1)] {
            let run = said(code, &text(passed, ignored));
            assert_eq!(
                heard(&run, 2),
                Heard::Failed(None),
                "{code} {passed} {ignored}"
            );
        }
        // Another name for an early end: the harness never spoke.
        assert_eq!(heard(&said(0, ""), 2), Heard::Failed(None));
    }

    #[test]
    fn the_first_failed_test_is_named() {
        let text = "test a ... ok\ntest b::c - should panic ... FAILED\ntest d ... FAILED\n";
        let run = said(101, text);
        assert_eq!(heard(&run, 3), Heard::Failed(Some("b::c".to_owned())));
        assert_eq!(failed(text.as_bytes()), ["b::c", "d"]);
    }
}
