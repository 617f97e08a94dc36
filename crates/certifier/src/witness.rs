//! The witness, version 1: cases with their expected answers, and the mutants its owner waives.
//!
//! ```json
//! {"schema":"flightproof/witness/1","bin":"NAME","public":false,"waivers":[],
//!  "cases":[{"id":"one","args":["-n"],"stdin":"","files":{},"env":{},
//!            "expect":{"exit":0,"stdout":"1\n","stderr_contains":"note"}}]}
//! ```
//!
//! - Exactly one of `suite`, `bin` (a binary of the candidate) and `driver` (for a library: a source file
//!   beside the witness that reads one case from standard input and prints one answer). `package`
//!   only with `driver`: the package that holds the library.
//! - `expect` has `exit`, at most one of `stdout` and `stdout_json` (compared as canonical JSON), and
//!   at most one `stderr_contains`. What is absent is not compared.
//! - Bytes that are no UTF-8 stand as `{"base64":"…"}` in place of a string: `stdin`, the contents of
//!   `files`, `stdout`, `stderr_contains`.
//! - `language`, only with `bin`: the toolchain profile that builds the program; absent, Rust.
//! - `suite`, in place of `bin` and `driver`: the baseline's own integration tests judge, see [`suite`].
//! - `differential`: inputs that are generated and compared with the baseline, see [`differential`].
//!   There may be no cases then.
//! - At least two cases must exclude each other's answer. That goes for a witness of one case too:
//!   whatever it checks, a program that ignores its input and prints that one answer passes it.
//! - Unknown fields, `null` for an absent field, and duplicate keys are refused.

mod commitment;
mod differential;
mod opening;
mod rules;
mod schema;
mod suite;
mod twins;

pub use differential::{Declared, Differential, Input, MAX_INPUTS};
pub use opening::{CaseOpening, MAX_OPENING_BYTES};

use std::collections::BTreeMap;

use flightproof_core::{Bytes, Digest, RelPath, canonical_json, escape, parse_strict};
use flightproof_evidence::{BuildTarget, Change};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::newer::too_new;
use crate::tree::Tree;
use crate::{CertifierCode, CertifierError};

pub use rules::{MAX_CASES, MAX_DRIVER_BYTES, MAX_INPUT_BYTES, MAX_WAIVERS};
pub use suite::{BASELINE_RUNS, Suite, TestPlan};
pub use twins::Twins;

/// The schema this program reads.
pub const WITNESS_SCHEMA: &str = "flightproof/witness/1";

/// Largest witness file in bytes: it is held in memory several times.
pub const MAX_WITNESS_BYTES: usize = 8 * 1024 * 1024;

/// Cases, expected answers and waivers, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Witness {
    target: Target,
    cases: Vec<Case>,
    waivers: Vec<Waiver>,
    public: bool,
    language: Option<String>,
    differential: Option<Differential>,
    /// How many of the cases, the last ones, were generated.
    generated: usize,
    /// How many generated inputs are declared to differ.
    declared: usize,
    /// The tests of a suite, once they were found.
    tests: Option<TestPlan>,
    source: Digest,
}

/// What of the candidate the cases run.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Target {
    Bin(String),
    Driver {
        package: Option<String>,
        file: RelPath,
        text: Option<Bytes>,
    },
    Suite {
        package: Option<String>,
        suite: Suite,
    },
}

/// One case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Unique: `[a-z0-9._-]`, 1 to 64 characters.
    pub id: String,
    /// Arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// Standard input.
    #[serde(default, deserialize_with = "schema::bytes")]
    pub stdin: Bytes,
    /// Files laid into the working directory.
    #[serde(default, deserialize_with = "schema::files")]
    pub files: BTreeMap<RelPath, Bytes>,
    /// Environment beyond the constant one.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// The answer.
    pub expect: Expect,
}

/// The answer of a case. Never enters a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// Exit status.
    pub exit: u8,
    /// Standard output, byte for byte.
    #[serde(
        default,
        deserialize_with = "schema::present_bytes",
        skip_serializing_if = "Option::is_none"
    )]
    pub stdout: Option<Bytes>,
    /// Standard output as one JSON document, compared in canonical form.
    #[serde(
        default,
        deserialize_with = "schema::present",
        skip_serializing_if = "Option::is_none"
    )]
    pub stdout_json: Option<Value>,
    /// Text that occurs on standard error.
    #[serde(
        default,
        deserialize_with = "schema::present_bytes",
        skip_serializing_if = "Option::is_none"
    )]
    pub stderr_contains: Option<Bytes>,
}

/// A surviving mutant the witness's owner accepts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Waiver {
    /// The mutant's id.
    pub mutant: String,
    /// SHA-256 of the source file the mutant is in: a changed file needs a new waiver.
    pub source: Digest,
    /// Why it is accepted.
    pub reason: String,
}

/// What stands where the owner of a witness has still to say something.
pub const TO_FILL_IN: &str = "REPLACE: ";

impl Waiver {
    /// Whether it accepts a mutant or place of this id, in a file of this digest.
    pub(crate) fn accepts(&self, id: &str, source: Digest) -> bool {
        self.source == source && self.mutant == id
    }

    /// The object that waives a mutant or place, but for its reason, in ASCII and on one line.
    pub fn to_paste(mutant: &str, source: Digest) -> String {
        let quoted = |text: &str| {
            let json = Value::from(text).to_string();
            let mut out = String::with_capacity(json.len());
            for c in json.chars() {
                match c {
                    ' '..='~' => out.push(c),
                    c => c
                        .encode_utf16(&mut [0; 2])
                        .iter()
                        .for_each(|unit| out.push_str(&format!("\\u{unit:04x}"))),
                }
            }
            out
        };
        format!(
            r#"{{"mutant": {}, "source": "{source}", "reason": "{TO_FILL_IN}why it is accepted"}}"#,
            quoted(mutant)
        )
    }
}

impl Witness {
    /// What its owner has still to fill in: cases as `flights init` writes them, and waivers as the notes
    /// of a refusal print them.
    pub fn unfilled(&self) -> Vec<String> {
        let asks = format!("{TO_FILL_IN}what it must print");
        let cases = self.cases.iter().filter(|case| {
            let expected = case.expect.stdout.as_ref();
            expected.is_some_and(|stdout| stdout.starts_with(asks.as_bytes()))
        });
        let cases = cases.map(|case| format!("case {}", escape(&case.id, 64)));
        let waivers = self.waivers.iter();
        let waivers = waivers.filter(|waiver| waiver.reason.starts_with(TO_FILL_IN));
        let waivers =
            waivers.map(|waiver| format!("the waiver of {}", escape(&waiver.mutant, 120)));
        cases.chain(waivers).collect()
    }

    /// Reads and checks a witness file.
    ///
    /// # Errors
    /// `WITNESS_INVALID` naming the case or field, `WITNESS_TOOTHLESS`, `FORMAT_TOO_NEW`.
    pub fn parse(bytes: &[u8]) -> Result<Self, CertifierError> {
        Self::read(bytes).map_err(|refused| too_new(bytes, WITNESS_SCHEMA, refused))
    }

    fn read(bytes: &[u8]) -> Result<Self, CertifierError> {
        let file: schema::WitnessFile = parse_strict(bytes, MAX_WITNESS_BYTES)
            .map_err(|error| invalid(escape(error.to_string(), 300)))?;
        let witness = Self {
            target: file.target()?,
            language: file.language()?,
            cases: file.cases,
            waivers: file.waivers,
            public: file.public,
            differential: file.differential,
            generated: 0,
            declared: 0,
            tests: None,
            source: Digest::of(bytes),
        };
        rules::check(&witness)?;
        Ok(witness)
    }

    /// The driver's file, relative to the witness file; `None` for a witness of a binary.
    pub fn driver_file(&self) -> Option<&RelPath> {
        match &self.target {
            Target::Bin(_) | Target::Suite { .. } => None,
            Target::Driver { file, .. } => Some(file),
        }
    }

    /// The same witness with the text of its driver.
    ///
    /// # Errors
    /// `WITNESS_INVALID` if it names no driver, or the text is no UTF-8, empty, or too large.
    pub fn with_driver(mut self, source: &[u8]) -> Result<Self, CertifierError> {
        rules::check_driver(source)?;
        match &mut self.target {
            Target::Bin(_) | Target::Suite { .. } => {
                return Err(invalid("only a witness of a library has a driver"));
            }
            Target::Driver { text, .. } => *text = Some(source.into()),
        }
        Ok(self)
    }

    /// What the session must build.
    ///
    /// # Errors
    /// `WITNESS_INVALID` while the driver's text is missing.
    pub fn target(&self) -> Result<BuildTarget, CertifierError> {
        match &self.target {
            Target::Bin(name) => Ok(BuildTarget::Bin { name: name.clone() }),
            Target::Suite { .. } => {
                self.tests.as_ref().map(TestPlan::target).ok_or_else(|| {
                    invalid("a suite has no tests before the baseline was looked at")
                })
            }
            Target::Driver {
                package,
                file,
                text,
            } => match text {
                Some(text) => Ok(BuildTarget::Driver {
                    package: package.clone(),
                    source: text.clone(),
                }),
                None => Err(invalid(format_args!(
                    "the text of driver {} was not given",
                    escape(file.as_str(), 200)
                ))),
            },
        }
    }

    /// The cases in the order of the file, and behind them those that were generated. Never empty once a
    /// baseline has answered.
    pub fn cases(&self) -> &[Case] {
        &self.cases
    }

    /// The mutants its owner accepts.
    pub fn waivers(&self) -> &[Waiver] {
        &self.waivers
    }

    /// The toolchain profile its program is built with; `None` for Rust.
    pub fn language(&self) -> Option<&str> {
        self.language.as_deref()
    }

    /// Whether its owner lets the candidate's author read it.
    pub fn is_public(&self) -> bool {
        self.public
    }

    /// Whether a case is held out of all feedback: a third of those of a private witness, at least
    /// one. Which, follows from the bytes of the witness, which its owner alone has.
    pub fn is_held_out(&self, case: usize) -> bool {
        if self.public || case >= self.cases.len() {
            return false;
        }
        let rank = |at: usize| Digest::keyed(self.source.as_bytes(), &(at as u64).to_be_bytes());
        let before = (0..self.cases.len()).filter(|other| rank(*other) < rank(case));
        before.count() < self.cases.len().div_ceil(3)
    }

    /// The salted commitment that goes on the certificate; see [`commitment`] for its construction.
    ///
    /// # Errors
    /// `WITNESS_INVALID` while the driver's text is missing.
    pub fn commitment(&self, salt: &[u8; 32]) -> Result<Digest, CertifierError> {
        commitment::commit(self, salt)
    }

    /// Refuses a private witness that the candidate's author has at hand: one that lies at a path
    /// of the tree (`place`, relative to its root, where the file is in the repository at all), or
    /// whose bytes, or whose driver's bytes, are those of any file of the tree; of the tree as it was
    /// before these changes, too.
    ///
    /// # Errors
    /// `WITNESS_EXPOSED`.
    pub fn refuse_if_inside(
        &self,
        tree: &Tree<'_>,
        changes: &[Change],
        place: Option<&RelPath>,
    ) -> Result<(), CertifierError> {
        if self.public {
            return Ok(());
        }
        let driver = match &self.target {
            Target::Driver {
                text: Some(text), ..
            } => Some(Digest::of(text)),
            _ => None,
        };
        let secrets = Vec::from_iter([self.source].into_iter().chain(driver));
        let old = changes.iter().filter_map(|change| {
            let old = change.old.as_ref()?;
            Some((change.path.as_str(), &old.content[..]))
        });
        let exposes = |(path, content): &(&str, &[u8])| {
            place.is_some_and(|place| place.as_str() == *path)
                || secrets.contains(&Digest::of(content))
        };
        match tree.files().chain(old).find(exposes) {
            None => Ok(()),
            Some((path, _)) => Err(CertifierCode::WitnessExposed.refuse(escape(path, 200))),
        }
    }
}

impl Expect {
    /// Whether this standard output is the expected one.
    pub fn accepts_stdout(&self, found: &[u8]) -> bool {
        let bytes = self
            .stdout
            .as_ref()
            .is_none_or(|expected| expected[..] == *found);
        let json = self
            .stdout_json
            .as_ref()
            .is_none_or(|expected| is_json(found, expected));
        bytes && json
    }

    /// Whether this standard error has the expected text.
    pub fn accepts_stderr(&self, found: &[u8]) -> bool {
        self.stderr_contains.as_ref().is_none_or(|needle| {
            needle.is_empty()
                || found
                    .windows(needle.len())
                    .any(|window| *window == needle[..])
        })
    }
}

/// Numbers that have no canonical form equal nothing.
fn is_json(found: &[u8], expected: &Value) -> bool {
    let canonical = |value: &Value| canonical_json(value).ok();
    parse_strict::<Value>(found, MAX_WITNESS_BYTES)
        .ok()
        .and_then(|found| canonical(&found))
        .is_some_and(|found| Some(found) == canonical(expected))
}

fn invalid(detail: impl std::fmt::Display) -> CertifierError {
    CertifierCode::WitnessInvalid.refuse(detail)
}

#[cfg(test)]
mod tests;
