//! References that are generated: what is in `docs` is what the program says. Run the tests with
//! `FLIGHTPROOF_BLESS=1` to write them anew, and look at the difference.

use crate::environment::workspace;
use flightproof_certifier::exception::EXCUSABLE;
use flightproof_core::{Code as _, Explanation};
use flightproof_flights::{command, registry};
use std::fmt::Write as _;
use std::fs;

/// Holds a file of the workspace against what it must be.
pub(crate) fn hold(file: &str, text: &str) {
    let path = workspace().join(file);
    if std::env::var_os("FLIGHTPROOF_BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        return fs::write(path, text).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    let differs = found.lines().zip(text.lines()).position(|(a, b)| a != b);
    assert!(
        found == text,
        "{file} is out of date at line {}; run the tests with FLIGHTPROOF_BLESS=1",
        differs.map_or(found.lines().count().min(text.lines().count()), |i| i) + 1
    );
}

#[test]
fn the_reference_of_refusals_is_what_explain_says() {
    let mut text = String::from(
        "# Refusals\n\nEvery code of the program, as `flights explain CODE` says it. Generated; a test holds it.\n",
    );
    let mut family = "";
    for e in registry::all() {
        let crate_of = e.code.split('/').next().unwrap();
        if crate_of != family {
            family = crate_of;
            let _ = write!(
                text,
                "\n## {family}\n\n| code | what happened | why it is refused | what to do | exit |\n| --- | --- | --- | --- | --- |\n"
            );
        }
        text.push_str(&row(e));
    }
    hold("docs/refusals.md", &text);
}

fn row(e: &Explanation) -> String {
    let cell = |text: &str| text.replace('|', "\\|");
    format!(
        "| `{}` | {} | {} | {} | {} |\n",
        e.code,
        cell(e.happened),
        cell(e.why),
        cell(e.todo),
        e.fault.exit().code()
    )
}

#[test]
fn what_can_be_excused_is_named_wherever_it_is_listed() {
    let page = fs::read_to_string(workspace().join("docs/certificates.md")).unwrap();
    let section = page.split("## Exceptions").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    for code in EXCUSABLE {
        let code = code.explanation().code.trim_start_matches("certifier/");
        assert!(section.contains(&format!("`{code}`")), "{code}");
    }
}

#[test]
fn the_reference_of_the_command_line_is_what_help_says() {
    let mut text = String::from(
        "# Command line\n\nWhat `--help` says of every command. Generated; a test holds it.\n",
    );
    let mut root = command::command_line();
    root.build();
    describe(&mut root, "flights", &mut text);
    hold("docs/cli.md", &text);
}

#[test]
fn every_command_that_a_hint_names_exists() {
    let root = command::command_line();
    let mut named = 0;
    for e in registry::all() {
        for text in [e.happened, e.why, e.todo] {
            for words in text.split("`flights ").skip(1) {
                let words = words.split('`').next().unwrap();
                let command = words.split(' ').next().unwrap();
                assert!(
                    root.find_subcommand(command).is_some(),
                    "{}: flights {words}",
                    e.code
                );
                named += 1;
            }
        }
    }
    assert!(named > 5, "{named}");
}

fn describe(command: &mut clap::Command, name: &str, text: &mut String) {
    let help = command.render_long_help().to_string();
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    let _ = write!(
        text,
        "\n## `{name}`\n\n```text\n{}\n```\n",
        lines.join("\n").trim_end()
    );
    for inner in command
        .get_subcommands_mut()
        .filter(|c| c.get_name() != "help")
    {
        let name = format!("{name} {}", inner.get_name());
        describe(inner, &name, text);
    }
}
