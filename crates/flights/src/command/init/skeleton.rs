//! The files of a first flight. Until their owner has filled them in, what they judge is refused.

use super::look::Target;
use crate::flight::CALL_TO_FILL_IN;
use crate::plan::PLAN_SCHEMA;
use flightproof_certifier::witness::TO_FILL_IN;
use std::path::{Path, PathBuf};

/// What the files are about.
pub(super) struct Facts<'a> {
    /// Name of the plan.
    pub name: &'a str,
    /// The repository, as the plan names it.
    pub repository: &'a Path,
    /// The branch that work comes into.
    pub branch: Option<&'a str>,
    /// The branch that is checked out, where it is another.
    pub candidate: Option<&'a str>,
    /// Id of the key that signs here, if there is one.
    pub key: Option<String>,
    /// Whether the tree has a lock file.
    pub locked: bool,
    /// Whether there is more than one package.
    pub workspace: bool,
    /// What is judged.
    pub target: &'a Target,
}

/// Every file with its path.
pub(super) fn files(facts: &Facts<'_>) -> Vec<(PathBuf, String)> {
    let name = facts.name;
    let mut files = vec![
        (format!("flights/{name}.toml").into(), plan(facts)),
        (
            format!("flights/witness/{name}.json").into(),
            witness(facts),
        ),
        ("policy.json".into(), policy(facts)),
    ];
    if let Target::Library(package) = facts.target {
        files.push((format!("flights/witness/{name}.rs").into(), driver(package)));
    }
    files
}

fn plan(facts: &Facts<'_>) -> String {
    let name = facts.name;
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let repository = quoted(&facts.repository.to_string_lossy());
    let baseline = quoted(facts.branch.unwrap_or("main"));
    let candidate = quoted(facts.candidate.unwrap_or("candidate"));
    let lock = match facts.locked {
        true => "",
        false => {
            "# The tree has no Cargo.lock: one made with `cargo generate-lockfile`, by its path from here.\n# lock = \"flights/Cargo.lock\"\n"
        }
    };
    format!(
        r#"schema = "{PLAN_SCHEMA}"
name = "{name}"
about = "One commit of {name}, certified."

# Two commits, by branch, tag or id. The candidate is one commit directly on the baseline. Once it is let in, the
# branch is another commit: to fly this again, or to record it, write ids (git rev-parse BRANCH).
[source]
git = {{ repository = {repository}, baseline = {baseline}, candidate = {candidate} }}

# Without grants a candidate may change everything but the protected files. With them, these alone.
[change]
# grants = ["src"]
# identity = "Agent <agent@example.org>"
{lock}
[witness]
file = "flights/witness/{name}.json"

[expect]
verdict = "held"
"#
    )
}

/// Two cases that no program satisfies yet.
fn witness(facts: &Facts<'_>) -> String {
    let judged = match facts.target {
        Target::Bin(bin) => format!("\"bin\": \"{bin}\""),
        Target::Library(package) => {
            let package = match facts.workspace {
                true => format!(",\n  \"package\": \"{package}\""),
                false => String::new(),
            };
            format!("\"driver\": \"{}.rs\"{package}", facts.name)
        }
    };
    format!(
        r#"{{
  "schema": "flightproof/witness/1",
  {judged},
  "cases": [
    {{"id": "first", "args": [], "stdin": "", "expect": {{"exit": 0, "stdout": "{TO_FILL_IN}what it must print\n"}}}},
    {{"id": "second", "args": [], "stdin": "", "expect": {{"exit": 0, "stdout": "{TO_FILL_IN}what it must print for another input\n"}}}}
  ],
  "waivers": []
}}
"#
    )
}

fn driver(package: &str) -> String {
    let library = package.replace('-', "_");
    format!(
        r#"//! Reads one case from standard input, asks the library, prints one answer.

use std::io::Read;

fn main() {{
    let mut input = String::new();
    std::io::stdin().read_to_string(&mut input).expect("cases are text");
    {CALL_TO_FILL_IN}, such as {library}::answer(input.trim()).
    let answer: String = todo!("the answer of {library}");
    println!("{{answer}}");
}}
"#
    )
}

/// An import asks for the keys that may sign; whoever has none yet writes it in later.
fn policy(facts: &Facts<'_>) -> String {
    let keys = facts.key.as_ref();
    let keys = keys.map_or_else(String::new, |id| format!("\n  \"keys\": [\"{id}\"],"));
    format!(
        r#"{{
  "schema": "flightproof/policy/1",{keys}
  "threshold": 1,
  "required_gates": ["correctness", "mutation", "determinism"]
}}
"#
    )
}
