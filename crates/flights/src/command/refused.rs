//! Why a commit was refused, for people and for programs: each mutant that survived on its line, anything
//! else at the place that it names.

use crate::annotations::{Finding, Place, line_of};
use crate::flight::Seen;
use crate::registry;
use crate::report::{Survivor, survivor_lines};
use crate::show;
use flightproof_certifier::CertifierCode;
use flightproof_certifier::certification::{MutantAccount, MutantFate};
use flightproof_core::{Code as _, RelPath, Verdict, escape};
use flightproof_evidence::Change;
use std::borrow::Cow;

/// Most bytes of a text that a mutant changes.
const MAX_TEXT: usize = 60;

/// A verdict as people read it: a reader needs the code of the survivors; the waivers, which stand in the
/// notes, are for whoever has made up their mind. What else there is to say stays.
pub(super) fn told(verdict: &Verdict, seen: &Seen) -> Verdict {
    let survivors = survivors(verdict, seen);
    if survivors.is_empty() {
        return verdict.clone();
    }
    let others = verdict.notes.iter().filter(|note| !note.starts_with('{'));
    Verdict {
        notes: survivors.into_iter().chain(others.cloned()).collect(),
        ..verdict.clone()
    }
}

/// The mutants that survived, if the commit was refused for them.
fn alive<'s>(verdict: &Verdict, seen: &'s Seen) -> Vec<&'s MutantAccount> {
    let code = CertifierCode::MutantsSurvived.explanation().code;
    let mutants = seen.account.iter().flat_map(|account| &account.mutants);
    let alive = mutants.filter(|mutant| mutant.fate == MutantFate::Survived);
    alive
        .filter(|_| verdict.code.as_deref() == Some(code))
        .collect()
}

/// Each line that a survivor is on, as the candidate has it, and below it what stood in its place.
pub(super) fn survivors(verdict: &Verdict, seen: &Seen) -> Vec<String> {
    let survivors = alive(verdict, seen).into_iter().map(|mutant| Survivor {
        file: mutant.file.as_str(),
        line: mutant.line,
        text: {
            let text = text_of(&seen.changes, &mutant.file);
            let text = text.as_deref().and_then(|text| line_of(text, mutant.line));
            text.unwrap_or_default().to_owned()
        },
        operator: mutant.operator,
        original: &mutant.original,
        replacement: &mutant.replacement,
    });
    survivor_lines(survivors)
}

/// The text of a file as the commit has it.
fn text_of<'s>(changes: &'s [Change], file: &RelPath) -> Option<Cow<'s, str>> {
    let change = changes.iter().find(|change| change.path == *file);
    let new = change.and_then(|change| change.new.as_ref())?;
    Some(String::from_utf8_lossy(&new.content))
}

/// Each survivor at its place.
pub(super) fn at_lines(verdict: &Verdict, seen: &Seen) -> Vec<Finding> {
    let code = CertifierCode::MutantsSurvived.explanation().code;
    let finding = alive(verdict, seen).into_iter().map(|mutant| Finding {
        code,
        title: format!("mutant survived: {}", mutant.operator),
        text: format!(
            "{} -> {}: no case noticed it",
            escape(&mutant.original, MAX_TEXT),
            escape(&mutant.replacement, MAX_TEXT)
        ),
        place: Some({
            let text = text_of(&seen.changes, &mutant.file);
            let text = text.as_deref().and_then(|text| line_of(text, mutant.line));
            Place::of(mutant.file.as_str(), (mutant.line, mutant.column), text)
        }),
    });
    finding.collect()
}

/// Why a commit was refused: each mutant that survived at its place, anything else at the one it names.
pub(super) fn findings(verdict: &Verdict, seen: &Seen) -> Vec<Finding> {
    let code = verdict.code.as_deref().and_then(registry::find);
    let Some(code) = code.map(|explanation| explanation.code) else {
        return Vec::new();
    };
    let survivors = at_lines(verdict, seen);
    if !survivors.is_empty() {
        return survivors;
    }
    // Only the certifier's refusals speak of lines of the tree.
    let of_the_tree = code.starts_with("certifier/");
    let said = [&verdict.detail].into_iter().chain(&verdict.notes);
    let place = said.filter(|_| of_the_tree).find_map(|text| place(text));
    vec![Finding {
        code,
        title: format!("refused at {}", verdict.stage),
        text: show::human(verdict),
        place,
    }]
}

/// The first `PATH:LINE` or `PATH:LINE:COLUMN` of a text.
fn place(text: &str) -> Option<Place> {
    text.split([' ', '"']).find_map(|word| {
        let mut parts = word.trim_end_matches(':').split(':');
        let file = parts.next().and_then(|file| RelPath::new(file).ok())?;
        let mut number = || parts.next()?.parse().ok().filter(|n| *n > 0);
        let line = number()?;
        Some(Place {
            file: file.to_string(),
            at: Some((line, number())),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_taken_from_what_a_refusal_says_and_from_nothing_that_is_none() {
        let at = |text: &str| place(text).map(|place| (place.file, place.at.unwrap()));
        for (text, file, line) in [
            ("top.py:14: eval makes code", "top.py", (14, None)),
            (
                "2 of them, such as src/main.rs:1 unjudged rebound: use a",
                "src/main.rs",
                (1, None),
            ),
            (
                "1 of them, such as src/main.rs:31:8 condition a -> b",
                "src/main.rs",
                (31, Some(8)),
            ),
        ] {
            assert_eq!(at(text), Some((file.to_owned(), line)), "{text}");
        }
        for text in [
            "src/main.rs:0: x",
            "../a.rs:3: x",
            "/etc/passwd:3: x",
            "a.rs: 3",
        ] {
            assert_eq!(at(text), None, "{text}");
        }
    }
}
