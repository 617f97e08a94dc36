//! Results put together from parts, each of which is known to be good or bad. What comes of it is
//! known before it is read: one bad part spoils it.

use super::Document;

/// One part of a result with its raw values; the first is the honest one.
type Part = (&'static str, &'static [(&'static str, bool)]);

const GOOD: bool = true;
const BAD: bool = false;
/// Stands for a field that is left out.
const ABSENT: &str = "";

const PARTS: &[Part] = &[
    (
        "is_error",
        &[
            ("false", GOOD),
            ("true", BAD),
            ("0", BAD),
            ("null", BAD),
            (ABSENT, BAD),
        ],
    ),
    (
        "num_turns",
        &[
            ("4", GOOD),
            ("1", GOOD),
            ("10", GOOD),
            ("11", BAD),
            ("0", BAD),
            ("-1", BAD),
            ("4.0", BAD),
            ("4e0", BAD),
            ("null", BAD),
            ("4294967300", BAD),
            (ABSENT, BAD),
        ],
    ),
    (
        "stop_reason",
        &[
            ("\"end_turn\"", GOOD),
            ("\"tool_use\"", BAD),
            ("null", BAD),
            ("\"end_turn \"", BAD),
            (ABSENT, BAD),
        ],
    ),
    (
        "terminal_reason",
        &[
            ("\"completed\"", GOOD),
            ("\"Completed\"", BAD),
            ("\"max_turns\"", BAD),
            (ABSENT, BAD),
        ],
    ),
    (
        "subtype",
        &[
            ("\"success\"", GOOD),
            ("\"error_max_turns\"", BAD),
            ("\"error_max_budget_usd\"", BAD),
            ("true", BAD),
            (ABSENT, BAD),
        ],
    ),
    (
        "permission_denials",
        &[
            ("[]", GOOD),
            ("[{}]", BAD),
            ("null", BAD),
            ("{}", BAD),
            (ABSENT, BAD),
        ],
    ),
    (
        "result",
        &[
            ("\"ok\"", GOOD),
            ("\"\\u00e9\"", GOOD),
            ("\"\"", BAD),
            ("\"\\t\"", BAD),
            ("1", BAD),
            (ABSENT, BAD),
        ],
    ),
    (
        "api_error_status",
        &[("null", GOOD), (ABSENT, GOOD), ("500", BAD), ("\"\"", BAD)],
    ),
    (
        "errors",
        &[
            (ABSENT, GOOD),
            ("[]", GOOD),
            ("null", GOOD),
            ("[1]", BAD),
            ("\"\"", BAD),
        ],
    ),
    (
        "type",
        &[
            ("\"result\"", GOOD),
            ("\"Result\"", BAD),
            ("[\"result\"]", BAD),
            (ABSENT, BAD),
        ],
    ),
    (
        "origin",
        &[
            (ABSENT, GOOD),
            ("null", GOOD),
            ("{\"kind\":\"human\"}", GOOD),
            ("{}", BAD),
            ("{\"kind\":\"task-notification\"}", BAD),
        ],
    ),
    (
        "cost_usd",
        &[(ABSENT, GOOD), ("0.5331585", BAD), ("null", BAD)],
    ),
    (
        "unheard_of",
        &[
            (ABSENT, GOOD),
            ("[[[{\"a\":1e400}]]]", GOOD),
            ("NaN", BAD),
            ("[1,]", BAD),
            ("\"\\ud800\"", BAD),
        ],
    ),
];

/// Costs of the total and of the one model.
const COSTS: &[(&str, &str, bool)] = &[
    ("0.5331585", "0.5331585", GOOD),
    ("0.53315849999999996", "0.5331585", GOOD),
    ("1", "1.0000000000000002", GOOD),
    ("1", "1.0000011", BAD),
    ("1.0000001", "1.0000001", BAD),
    ("0.000001", "0.000001", GOOD),
    ("0", "0", BAD),
    ("0.5", "0.6", BAD),
    ("5e-1", "0.5", BAD),
    ("0.5", "5e-1", BAD),
    ("-0.5", "0.5", BAD),
    ("1e309", "1e309", BAD),
    ("1000000", "1000000", BAD),
    ("\"0.5\"", "0.5", BAD),
    ("null", "0.5", BAD),
];

/// What stands after the result.
const TAILS: &[(&str, bool)] = &[
    ("", GOOD),
    ("\n \t\r\n", GOOD),
    ("x", BAD),
    ("{}", BAD),
    ("\u{0}", BAD),
    ("\u{feff}", BAD),
    (",", BAD),
];

/// A result, and whether it breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forged {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Whether it must be accepted, under a budget of one dollar and ten turns.
    pub good: bool,
}

/// Puts a result together: each byte chooses one part, a missing byte the honest one. Chosen so
/// that a byte of zero, and most bytes, are honest: else nothing would ever be accepted.
pub fn forge(choices: &[u8]) -> Forged {
    let mut choices = choices.iter().copied();
    let mut pick = |from: usize| {
        let byte = usize::from(choices.next().unwrap_or(0));
        if byte < 128 { 0 } else { byte % from }
    };
    let mut good = true;
    let mut document = Document::honest();
    for (name, values) in PARTS {
        let (raw, fits) = values[pick(values.len())];
        good &= fits;
        document = document.without(name);
        if raw != ABSENT {
            document = document.also(name, raw);
        }
    }
    let (total, model, fits) = COSTS[pick(COSTS.len())];
    good &= fits;
    document = document.cost(model).set("total_cost_usd", total);
    let (tail, fits) = TAILS[pick(TAILS.len())];
    good &= fits;
    let mut bytes = document.bytes();
    bytes.extend_from_slice(tail.as_bytes());
    Forged { bytes, good }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forge_reaches_good_and_bad_results() {
        assert!(forge(&[]).good);
        assert!(forge(&[0; 100]).good);
        assert!(!forge(&[129]).good);
        assert_ne!(forge(&[]).bytes, forge(&[0, 129]).bytes);
        assert!(forge(&[0, 177]).good, "ten turns of ten");
    }
}
