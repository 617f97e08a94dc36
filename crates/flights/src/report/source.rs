//! The change: each file as rows, each changed line with what mutation made of it.

use super::Flight;
use super::text::{h, source};
use crate::patch::{Kind, Row, rows};
use crate::show::count;
use flightproof_certifier::LineClass;
use flightproof_certifier::certification::{Account, MutantAccount, MutantFate};
use flightproof_evidence::Change;
use std::fmt::Write as _;

/// Unchanged rows that are shown around changed ones.
const CONTEXT: usize = 3;
/// Most rows of one file: generated files have more than anybody reads here.
const MAX_ROWS: usize = 4_000;

pub(super) fn section(flight: &Flight, out: &mut String) {
    if flight.changes.is_empty() {
        return;
    }
    out.push_str("<h3>Change</h3>\n");
    let none = Account::default();
    let account = flight.account.as_ref().unwrap_or(&none);
    for change in &flight.changes {
        file(change, account, flight.account.is_some(), out);
    }
}

fn file(change: &Change, account: &Account, tried: bool, out: &mut String) {
    let bytes = |state: &Option<flightproof_evidence::FileState>| {
        state
            .as_ref()
            .map(|s| s.content.0.clone())
            .unwrap_or_default()
    };
    let (old, new) = (bytes(&change.old), bytes(&change.new));
    let word = match (&change.old, &change.new) {
        (None, _) => "added",
        (_, None) => "removed",
        _ => "changed",
    };
    let path = change.path.as_str();
    let (Ok(old), Ok(new)) = (std::str::from_utf8(&old), std::str::from_utf8(&new)) else {
        let _ = writeln!(
            out,
            "<p><code>{}</code> {word}: {} bytes before, {} after, not text.</p>",
            h(path),
            old.len(),
            new.len()
        );
        return;
    };
    let all = rows(old, new);
    let _ = write!(
        out,
        "<details open><summary><code>{}</code> <span>{word}{}</span></summary>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Change of {}\"><table class=\"src\">\n<thead hidden><tr><th scope=\"col\">Old line</th><th scope=\"col\">New line</th><th scope=\"col\">Text</th><th scope=\"col\">What was shown</th></tr></thead>\n<tbody>\n",
        h(path),
        counts(path, account),
        h(path)
    );
    let mut hidden = false;
    for (i, row) in all.iter().enumerate().take(MAX_ROWS) {
        if row.kind == Kind::Same && !near(&all, i) && !has_mutant(path, row, account) {
            hidden = true;
            continue;
        }
        if std::mem::take(&mut hidden) {
            out.push_str(
                "<tr class=\"gap\"><td colspan=\"4\">unchanged lines left out</td></tr>\n",
            );
        }
        line(path, row, account, tried, out);
    }
    if all.len() > MAX_ROWS {
        out.push_str("<tr class=\"gap\"><td colspan=\"4\">the rest is left out</td></tr>\n");
    }
    out.push_str("</tbody></table></div></details>\n");
}

fn near(all: &[Row<'_>], i: usize) -> bool {
    let from = i.saturating_sub(CONTEXT);
    let to = (i + CONTEXT + 1).min(all.len());
    all[from..to].iter().any(|row| row.kind != Kind::Same)
}

fn of_line<'a>(path: &'a str, row: &Row<'_>, account: &'a Account) -> Vec<&'a MutantAccount> {
    let number = row.new;
    account
        .mutants
        .iter()
        .filter(|m| number != 0 && m.line == number && m.file.as_str() == path)
        .collect()
}

fn has_mutant(path: &str, row: &Row<'_>, account: &Account) -> bool {
    !of_line(path, row, account).is_empty()
}

fn counts(path: &str, account: &Account) -> String {
    let mutants = account
        .mutants
        .iter()
        .filter(|m| m.file.as_str() == path)
        .count();
    match mutants {
        0 => String::new(),
        n => format!(", {}", count(n, "mutant")),
    }
}

fn line(path: &str, row: &Row<'_>, account: &Account, tried: bool, out: &mut String) {
    let mutants = of_line(path, row, account);
    let survived = mutants.iter().any(|m| m.fate == MutantFate::Survived);
    let (class, mark) = match row.kind {
        _ if survived => (" class=\"live\"", "+"),
        Kind::Same => ("", " "),
        Kind::Removed => (" class=\"del\"", "−"),
        Kind::Added => (" class=\"add\"", "+"),
    };
    let number = |n: u32| if n == 0 { String::new() } else { n.to_string() };
    let _ = writeln!(
        out,
        "<tr{class}><td class=\"no\">{}</td><td class=\"no\">{}</td><td class=\"text\">{mark} {}</td><td class=\"say\">{}</td></tr>",
        number(row.old),
        number(row.new),
        source(row.text),
        said(path, row, &mutants, account, tried)
    );
    if mutants.is_empty() {
        return;
    }
    out.push_str("<tr class=\"mut\"><td colspan=\"4\"><ul>");
    for mutant in mutants {
        let _ = write!(
            out,
            "<li><code>{}</code> {} <code>{}</code> {}</li>",
            h(&mutant.original),
            arrow(mutant),
            h(&mutant.replacement),
            fate(mutant.fate)
        );
    }
    out.push_str("</ul></td></tr>\n");
}

fn arrow(mutant: &MutantAccount) -> String {
    format!(
        "<span title=\"{}, column {}\">→</span>",
        h(mutant.operator),
        mutant.column
    )
}

/// What was shown about a line, in one word.
fn said(
    path: &str,
    row: &Row<'_>,
    mutants: &[&MutantAccount],
    account: &Account,
    tried: bool,
) -> String {
    if row.kind == Kind::Removed || !tried {
        return String::new();
    }
    let silent = account
        .silent
        .iter()
        .find(|s| s.line == row.new && s.file.as_str() == path);
    // What was waived is said whatever else is there; that there is no mutant, only where there is none.
    if let Some(silent) = silent.filter(|silent| silent.waived || mutants.is_empty()) {
        let (class, word) = if silent.waived {
            ("warn", "waived")
        } else {
            ("plain", "no mutant")
        };
        return badge(class, &format!("{word}: {}", silent.why));
    }
    let count = |wanted: fn(MutantFate) -> bool| mutants.iter().filter(|m| wanted(m.fate)).count();
    let survived = count(|f| f == MutantFate::Survived);
    let killed = count(|f| matches!(f, MutantFate::Killed(_)));
    let waived = count(|f| f == MutantFate::Waived);
    let equivalent = count(|f| f == MutantFate::Equivalent);
    let untried = count(|f| f == MutantFate::Untried);
    match row.kind {
        _ if survived > 0 => badge("bad", &format!("✗ {survived} survived")),
        _ if waived > 0 => badge("warn", &format!("{waived} waived")),
        _ if equivalent > 0 => badge("warn", &format!("{equivalent} equivalent")),
        _ if untried > 0 => badge("plain", &format!("{untried} not tried")),
        _ if killed > 0 => badge("good", &format!("✓ {killed} killed")),
        Kind::Added if row.text.trim().is_empty() => String::new(),
        Kind::Added => match account.class(path, row.new) {
            Some(class @ (LineClass::NotCompiled | LineClass::Unjudged)) => {
                badge("warn", class.name())
            }
            Some(class) => badge("plain", class.name()),
            None => badge("plain", "no code"),
        },
        _ => String::new(),
    }
}

fn badge(class: &str, text: &str) -> String {
    format!("<span class=\"badge {class}\">{}</span>", h(text))
}

fn fate(fate: MutantFate) -> String {
    match fate {
        MutantFate::Killed(class) => format!("killed by {class}"),
        MutantFate::Survived => "<strong>survived</strong>".to_owned(),
        MutantFate::Waived => "survived, waived".to_owned(),
        MutantFate::Equivalent => "survived, and is the same program".to_owned(),
        MutantFate::Unviable => "does not compile".to_owned(),
        MutantFate::Untried => "not tried".to_owned(),
    }
}
