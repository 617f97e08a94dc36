//! Generated inputs: drawn from a grammar of the witness's owner, answered by the baseline, and to be
//! answered alike by the candidate, except where a difference is declared.
//!
//! ```json
//! {"schema":"flightproof/witness/1","bin":"NAME","cases":[],
//!  "differential":{"inputs":100,"args":[["order","{quantity}"],["list"]],"stdin":"{line}",
//!    "rules":{"quantity":[{"from":0,"to":999},"many"],"line":["","{word} {line}"],"word":["a","b"]},
//!    "differs":[{"reason":"bulk orders cost less","where":{"quantity":{"from":100,"to":999}}}]}}
//! ```
//!
//! - `args` is a choice of lists, a rule a choice of texts. `{name}` stands for a rule, `{{` and `}}`
//!   for braces; `{"from","to"}` is a whole number. Deep inside only the first choice of a rule is taken,
//!   so following first choices must end.
//! - Inputs are drawn from the salt of the flight: nobody knows them before, and whoever has its opening
//!   can draw them again. No input stands twice.
//! - An input in which every rule of some `where` came to one of its values is declared to differ. It is
//!   not compared with anything: the cases are what says how it should be answered.

use super::{Case, Expect, MAX_CASES, Witness, invalid};
use crate::certification::derived;
use crate::{CertifierCode, CertifierError};
use flightproof_core::{Bytes, Digest, escape};
use flightproof_evidence::{Ending, Observation};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Most generated inputs: each is run twice on the baseline, twice on the candidate, and for mutants.
pub const MAX_INPUTS: usize = 500;
/// Most rules, choices of one rule, and declared differences.
const MAX_PARTS: usize = 256;
/// Longest text of a choice, bytes.
const MAX_TEXT: usize = 4096;
/// Longest arguments and standard input together, bytes: they travel in one message.
const MAX_EXPANDED: usize = 64 * 1024;
/// From this depth on the first choice of a rule is taken.
const MAX_DEPTH: u32 = 12;
/// Most rules that one input may be put together from.
const MAX_STEPS: u64 = 10_000;
/// Draws for each input that is wanted: a small grammar has few that differ.
const DRAWS: usize = 20;
/// How ids of generated cases start.
pub(super) const ID: &str = "generated-";

/// The grammar, how many inputs are drawn from it, and where answers may differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Differential {
    /// How many inputs are drawn.
    pub inputs: usize,
    /// Choices of arguments.
    pub args: Vec<Vec<String>>,
    /// Standard input.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stdin: String,
    /// The rules by name.
    #[serde(default)]
    pub rules: BTreeMap<String, Vec<Choice>>,
    /// Where answers may differ.
    #[serde(default)]
    pub differs: Vec<Declared>,
}

/// One choice of a rule, or one value of a declaration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Choice {
    /// A text; in a rule, with rules in it.
    Text(String),
    /// A whole number from a range.
    #[serde(deserialize_with = "flightproof_core::exact")]
    Number(Range),
}

/// Whole numbers, both ends among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Range {
    from: i64,
    to: i64,
}

/// A difference that is meant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Declared {
    /// Why.
    pub reason: String,
    /// What the rules of an input came to; all of them must fit.
    #[serde(rename = "where")]
    pub conditions: BTreeMap<String, Choice>,
}

/// One input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// Arguments.
    pub args: Vec<String>,
    /// Standard input.
    pub stdin: String,
    /// Whether its answer may differ.
    pub declared: bool,
}

impl Differential {
    pub(super) fn check(&self) -> Result<(), CertifierError> {
        let wrong =
            |what: std::fmt::Arguments<'_>| Err(invalid(format_args!("differential: {what}")));
        if !(1..=MAX_INPUTS).contains(&self.inputs) {
            return wrong(format_args!(
                "{} inputs, 1 to {MAX_INPUTS} are allowed",
                self.inputs
            ));
        }
        let parts = self.rules.values().map(Vec::len);
        let parts = parts.chain([self.rules.len(), self.args.len(), self.differs.len()]);
        let lists = self.args.iter().map(Vec::len);
        if parts.chain(lists).any(|count| count > MAX_PARTS) || self.args.is_empty() {
            return wrong(format_args!("1 to {MAX_PARTS} choices are allowed"));
        }
        for (name, choices) in &self.rules {
            let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
            if name.is_empty() || name.len() > 64 || !name.bytes().all(plain) || choices.is_empty()
            {
                let name = escape(name, 80);
                return wrong(format_args!("rule \"{name}\": a-z, 0-9, _, and a choice"));
            }
            choices
                .iter()
                .try_for_each(|choice| self.check_choice(choice))?;
        }
        let texts = self.args.iter().flatten().chain([&self.stdin]);
        for text in texts {
            self.pieces(text)?;
        }
        self.ends()?;
        for declared in &self.differs {
            let unknown = declared
                .conditions
                .keys()
                .find(|name| !self.rules.contains_key(*name));
            let reason = declared.reason.trim();
            if reason.is_empty() || reason.len() > MAX_TEXT || declared.conditions.is_empty() {
                return wrong(format_args!("what differs needs a reason and a \"where\""));
            }
            if let Some(name) = unknown {
                return wrong(format_args!("there is no rule \"{}\"", escape(name, 80)));
            }
        }
        Ok(())
    }

    fn check_choice(&self, choice: &Choice) -> Result<(), CertifierError> {
        match choice {
            Choice::Text(text) => self.pieces(text).map(drop),
            Choice::Number(range) if range.from <= range.to => Ok(()),
            Choice::Number(_) => Err(invalid("differential: a range ends before it starts")),
        }
    }

    /// Whether following first choices comes to an end: no rule leads back to itself.
    fn ends(&self) -> Result<(), CertifierError> {
        let mut settled: BTreeSet<&str> = BTreeSet::new();
        loop {
            let before = settled.len();
            for (name, choices) in &self.rules {
                let inside = match choices.first() {
                    Some(Choice::Text(text)) => self.pieces(text)?,
                    _ => Vec::new(),
                };
                let mut rules = inside.iter().filter_map(|piece| match piece {
                    Piece::Rule(rule) => Some(*rule),
                    Piece::Plain(_) => None,
                });
                if rules.all(|rule| settled.contains(rule)) {
                    settled.insert(name);
                }
            }
            if settled.len() == self.rules.len() {
                return Ok(());
            }
            if settled.len() == before {
                let endless = self
                    .rules
                    .keys()
                    .find(|name| !settled.contains(name.as_str()));
                return Err(invalid(format_args!(
                    "differential: the first choices of rule \"{}\" have no end",
                    endless.map_or("", |name| name)
                )));
            }
        }
    }

    /// A text taken apart.
    fn pieces<'t>(&self, text: &'t str) -> Result<Vec<Piece<'t>>, CertifierError> {
        let wrong = |what: &str| {
            Err(invalid(format_args!(
                "differential: \"{}\": {what}",
                escape(text, 80)
            )))
        };
        if text.len() > MAX_TEXT || text.contains('\0') {
            return wrong("too long, or with a NUL");
        }
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (plain, tail) = rest.split_at(at);
            pieces.push(Piece::Plain(plain));
            if tail.starts_with("{{") || tail.starts_with("}}") {
                pieces.push(Piece::Plain(&tail[..1]));
                rest = &tail[2..];
                continue;
            }
            let Some((name, after)) = tail.strip_prefix('{').and_then(|t| t.split_once('}')) else {
                return wrong("a brace alone");
            };
            if !self.rules.contains_key(name) {
                return wrong("it names no rule");
            }
            pieces.push(Piece::Rule(name));
            rest = after;
        }
        pieces.push(Piece::Plain(rest));
        Ok(pieces)
    }

    /// The inputs that follow from a seed, none twice: fewer than were asked for of a small grammar.
    pub fn draw(&self, seed: &[u8; 32]) -> Vec<Input> {
        let mut dice = Dice {
            seed: *seed,
            thrown: 0,
            steps: 0,
        };
        let mut seen = BTreeSet::new();
        let mut inputs = Vec::new();
        for _ in 0..self.inputs * DRAWS {
            if inputs.len() == self.inputs {
                break;
            }
            let Some(input) = self.input(&mut dice) else {
                continue;
            };
            if seen.insert((input.args.clone(), input.stdin.clone())) {
                inputs.push(input);
            }
        }
        inputs
    }

    /// One input; none where the grammar led too far.
    fn input(&self, dice: &mut Dice) -> Option<Input> {
        dice.steps = 0;
        let mut used = Used::new();
        let at = dice.below(self.args.len());
        let words = self.args.get(at)?.iter();
        let args = words.map(|word| self.expand(word, dice, &mut used, 0));
        let args: Vec<String> = args.collect::<Option<_>>()?;
        let stdin = self.expand(&self.stdin, dice, &mut used, 0)?;
        let size = args.iter().map(String::len).sum::<usize>() + stdin.len();
        let declared = self.differs.iter().any(|declared| declared.fits(&used));
        (size <= MAX_EXPANDED).then_some(Input {
            args,
            stdin,
            declared,
        })
    }

    fn expand(&self, text: &str, dice: &mut Dice, used: &mut Used, depth: u32) -> Option<String> {
        let mut out = String::new();
        for piece in self.pieces(text).ok()? {
            dice.steps += 1;
            if dice.steps > MAX_STEPS || out.len() > MAX_EXPANDED {
                return None;
            }
            match piece {
                Piece::Plain(plain) => out.push_str(plain),
                Piece::Rule(name) => {
                    let choices = self.rules.get(name)?;
                    let at = match depth >= MAX_DEPTH {
                        true => 0,
                        false => dice.below(choices.len()),
                    };
                    let value = match choices.get(at)? {
                        Choice::Text(text) => self.expand(text, dice, used, depth + 1)?,
                        Choice::Number(range) => dice.within(*range).to_string(),
                    };
                    out.push_str(&value);
                    used.entry(name.to_owned()).or_default().insert(value);
                }
            }
        }
        Some(out)
    }
}

/// What each rule of an input came to.
type Used = BTreeMap<String, BTreeSet<String>>;

enum Piece<'t> {
    Plain(&'t str),
    Rule(&'t str),
}

impl Declared {
    fn fits(&self, used: &Used) -> bool {
        self.conditions.iter().all(|(name, wanted)| {
            let mut values = used.get(name).into_iter().flatten();
            values.any(|value| match wanted {
                Choice::Text(text) => value == text,
                Choice::Number(range) => {
                    let number = value.parse::<i64>();
                    number.is_ok_and(|number| (range.from..=range.to).contains(&number))
                }
            })
        })
    }
}

/// A stream of numbers that follows from a seed.
struct Dice {
    seed: [u8; 32],
    thrown: u64,
    /// Pieces of the input that is being put together.
    steps: u64,
}

impl Dice {
    fn word(&mut self) -> u64 {
        let block = Digest::keyed(&self.seed, &self.thrown.to_be_bytes());
        self.thrown += 1;
        let mut word = [0; 8];
        word.copy_from_slice(&block.as_bytes()[..8]);
        u64::from_be_bytes(word)
    }

    /// One of `0..count`, 0 of none.
    fn below(&mut self, count: usize) -> usize {
        usize::try_from(self.word() % (count as u64).max(1)).unwrap_or(0)
    }

    fn within(&mut self, range: Range) -> i64 {
        let span = range.to.abs_diff(range.from).saturating_add(1);
        let offset = self.word() % span.max(1);
        range.from.saturating_add_unsigned(offset)
    }
}

impl Witness {
    /// The grammar of a differential witness.
    pub fn differential(&self) -> Option<&Differential> {
        self.differential.as_ref()
    }

    /// The inputs of a flight sealed with this salt.
    pub fn inputs(&self, salt: &[u8; 32]) -> Vec<Input> {
        let seed = derived(salt, "differential inputs");
        self.differential()
            .map_or_else(Vec::new, |grammar| grammar.draw(&seed))
    }

    /// The same witness with what the baseline answered: each input that is not declared to differ is a
    /// case whose answer is the baseline's exit status and standard output.
    ///
    /// # Errors
    /// `BASELINE_UNFIT` for an answer that is none, or is another one the second time;
    /// `WITNESS_TOOTHLESS` where one constant answer meets everything.
    pub fn answered(
        mut self,
        inputs: &[Input],
        answers: &[[Observation; 2]],
    ) -> Result<Self, CertifierError> {
        let mut cases = Vec::new();
        let undeclared = inputs.iter().filter(|input| !input.declared);
        for (number, (input, runs)) in undeclared.zip(answers).enumerate() {
            cases.push(case(number + 1, input, runs)?);
        }
        if cases.is_empty() {
            let what = "every input is declared to differ, so none is compared";
            return Err(CertifierCode::WitnessToothless.refuse(what));
        }
        self.generated = cases.len();
        self.declared = inputs.iter().filter(|input| input.declared).count();
        self.cases.extend(cases);
        if self.cases.len() > MAX_CASES + MAX_INPUTS || !super::rules::has_teeth(&self.cases) {
            let what = "one answer would satisfy every case and every compared input";
            return Err(CertifierCode::WitnessToothless.refuse(what));
        }
        Ok(self)
    }

    /// How many cases were generated, and how many inputs were declared to differ.
    pub fn drawn(&self) -> (usize, usize) {
        (self.generated, self.declared)
    }

    /// The cases of the file.
    pub fn written(&self) -> &[Case] {
        let count = self.cases.len() - self.generated;
        &self.cases[..count]
    }

    /// Whether a case was generated.
    pub fn is_generated(&self, case: usize) -> bool {
        self.differential.is_some() && case >= self.written().len()
    }
}

fn case(number: usize, input: &Input, runs: &[Observation; 2]) -> Result<Case, CertifierError> {
    let unfit = |what: &str| {
        Err(CertifierCode::BaselineUnfit.refuse(format_args!("input {number}: {what}")))
    };
    let [first, second] = runs;
    let Ending::Exited { code } = first.ending else {
        return unfit("it does not end by itself");
    };
    if !first.complete {
        return unfit("its output is not whole");
    }
    if crate::judge::determinism(std::slice::from_ref(first), std::slice::from_ref(second)).is_err()
    {
        return unfit("it answers otherwise the second time");
    }
    Ok(Case {
        id: format!("{ID}{number:04}"),
        args: input.args.clone(),
        stdin: input.stdin.clone().into_bytes().into(),
        files: BTreeMap::new(),
        env: BTreeMap::new(),
        expect: Expect {
            exit: code,
            stdout: Some(Bytes(first.stdout.to_vec())),
            stdout_json: None,
            stderr_contains: None,
        },
    })
}

#[cfg(test)]
mod tests;
