//! Which forms of output each command has: one table, for its help, for completions, and for what is
//! refused.

use super::{list, run, transcript};
use crate::annotations;
use crate::show::Form;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, ArgMatches, Command, ValueEnum as _};
use std::ffi::OsStr;

/// The forms of a command, which is named by its words.
pub(super) fn of(words: &[&str]) -> &'static [Form] {
    match words {
        ["run"] => run::FORMS,
        ["certify" | "refly" | "mutate"] => annotations::FORMS,
        ["list"] => list::FORMS,
        ["show"] | ["transcript", "show"] => transcript::SHOW_FORMS,
        _ => Form::BASIC,
    }
}

/// The words of the command that was named.
pub(super) fn named(matches: &ArgMatches) -> Vec<&str> {
    let mut words = Vec::new();
    let mut inner = matches.subcommand();
    while let Some((word, matches)) = inner {
        words.push(word);
        inner = matches.subcommand();
    }
    words
}

/// A program whose commands list what each of them has at `--format`, and whose groups of commands what
/// any in the group has.
pub(super) fn listed(program: Command) -> Command {
    let named = |arg: &&Arg| arg.get_id() == "format";
    let format = program.get_arguments().find(named).cloned();
    match format {
        Some(format) => listed_below(program, &format, &[]),
        None => program,
    }
}

fn listed_below(group: Command, format: &Arg, words: &[&str]) -> Command {
    group.mut_subcommands(|command| {
        let name = command.get_name().to_owned();
        let words = [words, &[name.as_str()]].concat();
        let parser = FormParser(forms(&command, &words));
        // An argument of its own is not overlaid by the program's.
        let command = command.arg(format.clone().value_parser(parser));
        listed_below(command, format, &words)
    })
}

/// The forms of a command, or of any in a group.
fn forms(command: &Command, words: &[&str]) -> Vec<Form> {
    if !command.has_subcommands() {
        return of(words).to_vec();
    }
    let inner = command.get_subcommands();
    let inner = inner.map(|inner| forms(inner, &[words, &[inner.get_name()]].concat()));
    let inner: Vec<Form> = inner.flatten().collect();
    let all = Form::value_variants().iter().copied();
    all.filter(|form| inner.contains(form)).collect()
}

/// Reads a form, and lists those that a command has. One that only another command has is refused later,
/// with the code for that, wherever on the line it stands.
#[derive(Clone)]
struct FormParser(Vec<Form>);

impl FormParser {
    fn values(&self) -> impl Iterator<Item = PossibleValue> + '_ {
        self.0.iter().filter_map(Form::to_possible_value)
    }
}

impl TypedValueParser for FormParser {
    type Value = Form;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Form, clap::Error> {
        let read = |word: &str| Form::from_str(word, false);
        match value.to_str().map(read) {
            Some(Ok(form)) => Ok(form),
            _ => PossibleValuesParser::new(self.values())
                .try_map(move |word| read(&word))
                .parse_ref(command, arg, value),
        }
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.values()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaves(command: &Command, words: &[String], all: &mut Vec<Vec<String>>) {
        for inner in command.get_subcommands() {
            let words = [words, &[inner.get_name().to_owned()]].concat();
            match inner.has_subcommands() {
                true => leaves(inner, &words, all),
                false => all.push(words),
            }
        }
    }

    #[test]
    fn every_command_lists_the_forms_that_it_takes_and_no_other() {
        let program = super::super::command_line();
        let mut all = Vec::new();
        leaves(&program, &[], &mut all);
        let mut beyond = Vec::new();
        for words in &all {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let command = words.iter().fold(&program, |command, word| {
                command.find_subcommand(word).unwrap()
            });
            let mut own = command.get_arguments();
            let format = own.find(|arg| arg.get_id() == "format").unwrap();
            let values = format.get_possible_values();
            let listed: Vec<&str> = values.iter().map(PossibleValue::get_name).collect();
            for form in Form::value_variants() {
                let name = form.to_possible_value().unwrap();
                let taken = form.among(of(&words)).is_ok();
                assert_eq!(listed.contains(&name.get_name()), taken, "{words:?}");
            }
            if of(&words) != Form::BASIC {
                beyond.push(words.join(" "));
            }
        }
        // Nobody in the table is missing from the program.
        let expected = [
            "certify",
            "refly",
            "run",
            "list",
            "show",
            "transcript show",
            "mutate",
        ];
        assert_eq!(beyond, expected);
    }
}
