//! Observations before the judge.

use super::Choices;
use crate::judge::{determinism, judge_case};
use crate::witness::{Case, Expect};
use flightproof_evidence::{Ending, Observation};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Texts that are near one another, and what a strict reader makes of each as JSON: its number in
/// this list of values, or none.
const TEXTS: [(&str, Option<u8>); 12] = [
    ("", None),
    ("7", Some(0)),
    ("7\n", Some(0)),
    (" 7", Some(0)),
    ("07", None),
    ("8", Some(1)),
    ("[7,8]", Some(2)),
    ("[7, 8]", Some(2)),
    ("{\"a\":7}", Some(3)),
    ("{\"a\":8,\"a\":7}", None),
    ("7 8", None),
    ("\"7\"", Some(4)),
];

/// A case and what was observed of it, both made from choices.
///
/// # Panics
/// When the judge's answer is not the one that follows from the choices.
pub fn judge_plan(choices: &[u8]) {
    let mut choices = Choices(choices);
    let (expected_exit, exit) = (choices.below(3), choices.below(3));
    let (out, json_out) = (*choices.one_of(&TEXTS), *choices.one_of(&TEXTS));
    let (found_out, found_err) = (*choices.one_of(&TEXTS), *choices.one_of(&TEXTS));
    let (by_bytes, by_value, by_error) = (choices.coin(), choices.coin(), choices.coin());
    let needle = choices.one_of(&TEXTS).0;
    let ended = choices.below(10);
    let complete = choices.below(8) != 0;
    let value = json_out.1.filter(|_| by_value);
    let case = case(Expect {
        exit: expected_exit,
        stdout: by_bytes.then(|| out.0.as_bytes().into()),
        stdout_json: value.map(value_of),
        stderr_contains: by_error.then(|| needle.as_bytes().into()),
    });
    let seen = observation(ending(ended, exit), found_out.0, found_err.0, complete);
    let good = ended < 4
        && complete
        && exit == expected_exit
        && (!by_bytes || out.0 == found_out.0)
        && value.is_none_or(|value| found_out.1 == Some(value))
        && (!by_error || found_err.0.contains(needle));
    assert_eq!(judge_case(&case, &seen).is_ok(), good, "{case:?} {seen:?}");
    let other = observation(ending(ended, exit), out.0, found_err.0, complete);
    assert_eq!(
        determinism(std::slice::from_ref(&seen), &[other]).is_ok(),
        out.0 == found_out.0
    );
    assert!(determinism(std::slice::from_ref(&seen), &[]).is_err());
    assert!(determinism(std::slice::from_ref(&seen), std::slice::from_ref(&seen)).is_ok());
}

/// A stranger's bytes as what a program wrote. The judge takes them for the expected ones only if
/// they are, and for a JSON document only if they are one.
///
/// Returns whether they were the document `7`.
///
/// # Panics
/// When that does not hold.
pub fn judge_raw(data: &[u8]) -> bool {
    let exited = Ending::Exited { code: 0 };
    let seen = Observation {
        ending: exited,
        stdout: data.into(),
        stderr: data.into(),
        complete: true,
        armed: false,
    };
    let expect = |stdout: Option<&[u8]>, value: Option<Value>, error: Option<&[u8]>| Expect {
        exit: 0,
        stdout: stdout.map(Into::into),
        stdout_json: value,
        stderr_contains: error.map(Into::into),
    };
    let accepts = |expect: Expect| judge_case(&case(expect), &seen).is_ok();
    assert!(accepts(expect(Some(data), None, Some(data))));
    assert!(!accepts(expect(Some(&[data, b"x"].concat()), None, None)));
    let longer = [data, b"x"].concat();
    assert!(!accepts(expect(None, None, Some(&longer))));
    let seven = accepts(expect(None, Some(json!(7)), None));
    assert!(!seven || serde_json::from_slice::<Value>(data).is_ok_and(|value| value == json!(7)));
    assert!(!(seven && accepts(expect(None, Some(json!(8)), None))));
    seven
}

fn value_of(number: u8) -> Value {
    [
        json!(7),
        json!(8),
        json!([7, 8]),
        json!({"a": 7}),
        json!("7"),
    ][usize::from(number)]
    .clone()
}

fn case(expect: Expect) -> Case {
    Case {
        id: "made".to_owned(),
        args: Vec::new(),
        stdin: Vec::new().into(),
        files: BTreeMap::new(),
        env: BTreeMap::new(),
        expect,
    }
}

/// The first four numbers are an end of its own.
fn ending(number: u8, code: u8) -> Ending {
    match number {
        4 => Ending::Signaled { signal: 6 },
        5 => Ending::ForbiddenCall,
        6 => Ending::TimedOut,
        7 => Ending::OutputLimit,
        8 => Ending::ProcessLimit,
        9 => Ending::MemoryLimit,
        _ => Ending::Exited { code },
    }
}

fn observation(ending: Ending, out: &str, err: &str, complete: bool) -> Observation {
    Observation {
        ending,
        stdout: out.as_bytes().into(),
        stderr: err.as_bytes().into(),
        complete,
        armed: false,
    }
}
