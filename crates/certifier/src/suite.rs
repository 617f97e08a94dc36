//! What a program with Rust's own test harness says, read as the words of a stranger.
//!
//! The code that judges runs in the same process as the code that is judged, so this proves less
//! than cases do: a program may print what the harness prints. It is good for measuring tests that
//! are trusted.

use flightproof_evidence::{Ending, Observation};

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
