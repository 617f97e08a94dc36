use crate::{AgentCode, AgentRefusal, Binary, Instructions, Limits, Profile, RunKey};
use flightproof_core::{Digest, Hasher, escape};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Most bytes of a task.
const MAX_TASK: usize = 64 << 10;
/// Where a program looks for others: the session's toolchain, then the system's tools.
const PATH: &str = "/toolchain/bin:/usr/local/bin:/usr/bin:/bin";
/// What the prompt starts with. A task never comes first: a program may read a first line such as
/// `/clear` as a command of its own, and that one resets the budget.
const PREFACE: &str = "Work on the task below in the current directory. Make exactly one commit.";

/// What the agent is asked to do, and with what. Text and choices only: no limit is in here.
#[derive(Debug, Clone, Copy)]
pub struct Task<'a> {
    /// The task, 1 to 65,536 bytes.
    pub text: &'a str,
    /// The model, a name the profile lists.
    pub model: &'a str,
    /// The tools, names the profile lists.
    pub tools: &'a BTreeSet<String>,
    /// The repository's own instructions.
    pub instructions: &'a Instructions,
    /// What the last attempt was refused for, already made fit for an author to see.
    pub feedback: Option<&'a str>,
}

/// Everything an agent program is started with.
#[derive(Clone, PartialEq, Eq)]
pub struct Launch {
    /// The program's file.
    pub program: PathBuf,
    /// Its arguments, without the program's name.
    pub argv: Vec<String>,
    /// Its whole environment. May hold a secret: never shown.
    pub env: BTreeMap<String, String>,
    /// What it reads: the prompt.
    pub stdin: Vec<u8>,
}

impl std::fmt::Debug for Launch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Launch")
            .field("program", &self.program)
            .field("argv", &self.argv)
            .field("env", &self.env.keys())
            .field("stdin", &format_args!("{} bytes", self.stdin.len()))
            .finish()
    }
}

impl Launch {
    /// Puts a run together. `environment` is the operator's; only names the profile passes are
    /// taken from it, and what the profile sets wins. `home` becomes `HOME` and `TMPDIR`.
    ///
    /// # Errors
    /// `TASK_UNFIT`, or `PLAN_HOPELESS` for a model or a tool that the profile does not list.
    pub fn new(
        profile: &Profile,
        limits: &Limits,
        binary: &Binary,
        run: &RunKey,
        task: &Task<'_>,
        environment: &BTreeMap<String, String>,
        home: &str,
    ) -> Result<Self, AgentRefusal> {
        task.check(profile)?;
        let list = |names: &BTreeSet<String>| {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            names.join(",")
        };
        let fill = |argument: &String| match argument.as_str() {
            "{budget}" => limits.budget().to_string(),
            "{turns}" => limits.turns().to_string(),
            "{tools}" => list(task.tools),
            "{denied}" => list(profile.denied()),
            "{settings}" => profile.settings().to_owned(),
            "{session}" => run.to_string(),
            "{model}" => task.model.to_owned(),
            other => other.to_owned(),
        };
        Ok(Self {
            program: binary.path().to_owned(),
            argv: profile.argv().iter().map(fill).collect(),
            env: variables(profile, environment, home),
            stdin: task.prompt().into_bytes(),
        })
    }
}

impl Launch {
    /// What asks a program for its version, in the environment of a run.
    pub fn for_version(profile: &Profile, binary: &Binary, home: &str) -> Self {
        Self {
            program: binary.path().to_owned(),
            argv: profile.version_argv().to_vec(),
            env: variables(profile, &BTreeMap::new(), home),
            stdin: Vec::new(),
        }
    }

    /// Digest of what will be started: the program's bytes, its arguments, the names of its
    /// variables (a secret's value can be guessed from no digest), its prompt.
    pub fn digest(&self, binary: &Binary) -> Digest {
        let mut hasher = Hasher::new();
        let mut part = |bytes: &[u8]| {
            hasher.update(&(bytes.len() as u64).to_be_bytes());
            hasher.update(bytes);
        };
        part(binary.digest().to_string().as_bytes());
        part(&self.argv.len().to_be_bytes());
        for text in self.argv.iter().chain(self.env.keys()) {
            part(text.as_bytes());
        }
        part(&self.stdin);
        hasher.finish()
    }
}

impl Task<'_> {
    pub(crate) fn check(&self, profile: &Profile) -> Result<(), AgentRefusal> {
        if self.text.trim().is_empty() || self.text.len() > MAX_TASK {
            let detail = format!("{} bytes, expected 1 to {MAX_TASK}", self.text.len());
            return Err(AgentCode::TaskUnfit.refuse(detail));
        }
        if self.text.contains('\0') {
            return Err(AgentCode::TaskUnfit.refuse("a zero byte"));
        }
        if !profile.knows_model(self.model) {
            let detail = format!(
                "model {}; {} may use {}",
                escape(self.model, 60),
                profile.name(),
                profile.models().join(", ")
            );
            return Err(AgentCode::PlanHopeless.refuse(detail));
        }
        let unknown = self.tools.difference(profile.tools()).next();
        if let Some(tool) = unknown {
            return Err(AgentCode::PlanHopeless.refuse(format!("tool {}", escape(tool, 60))));
        }
        if profile.reports_cost() && self.tools.is_empty() {
            return Err(AgentCode::PlanHopeless.refuse("no tools: nothing could be changed"));
        }
        Ok(())
    }

    fn prompt(&self) -> String {
        let mut prompt = format!("{PREFACE}\n\n# Task\n\n{}\n", self.text.trim());
        if let Some(feedback) = self.feedback {
            prompt.push_str("\n# Why the last attempt was refused\n\n");
            prompt.push_str(feedback.trim());
            prompt.push('\n');
        }
        self.instructions.write_to(&mut prompt);
        prompt
    }
}

fn variables(
    profile: &Profile,
    environment: &BTreeMap<String, String>,
    home: &str,
) -> BTreeMap<String, String> {
    let passed = environment
        .iter()
        .filter(|(name, _)| profile.pass().contains(*name));
    let mut variables: BTreeMap<String, String> = passed
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    for (name, value) in [("HOME", home), ("TMPDIR", home), ("PATH", PATH)] {
        variables.insert(name.to_owned(), value.to_owned());
    }
    variables.extend(profile.env().clone());
    variables
}
