//! Compiles and runs schemata with the toolchain at hand, the way a session does it: the guard as
//! an rlib, the selector on descriptor 3, the acknowledgement on descriptor 4.

use flightproof_certifier::mutation::{
    Attribution, EditedFile, FileRole, Fuel, MutationInput, MutationPlan, Purpose,
};
use flightproof_core::{Bytes, RelPath};
use flightproof_evidence::{Diagnostic, Ending, Observation};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A temporary folder with sources and programs in it.
pub(crate) struct Workshop {
    dir: tempfile::TempDir,
    /// Edition of the crates.
    pub(crate) edition: &'static str,
}

/// One file with every line, or the named ones, changed.
pub(crate) fn edited(path: &str, text: &str, lines: Option<&[u32]>) -> EditedFile {
    let all = 1..=u32::try_from(text.lines().count()).unwrap();
    EditedFile {
        path: RelPath::new(path).unwrap(),
        text: Bytes::from(text.as_bytes()),
        old: None,
        lines: lines.map_or(all.collect(), |l| l.iter().copied().collect()),
        role: if path.starts_with("tests/") {
            FileRole::Tests
        } else {
            FileRole::Program
        },
        features: BTreeSet::new(),
    }
}

/// A plan over these files.
pub(crate) fn plan(files: Vec<EditedFile>) -> MutationPlan {
    MutationPlan::new(MutationInput {
        files,
        roots: BTreeMap::new(),
        beside: Vec::new(),
        seed: [7; 32],
        purpose: Purpose::Gate,
    })
    .unwrap()
}

/// A plan over these files in a crate with this root, which gets the guard declared.
pub(crate) fn plan_with_root(files: Vec<EditedFile>, root: &str, text: &str) -> MutationPlan {
    let root = (RelPath::new(root).unwrap(), Bytes::from(text.as_bytes()));
    MutationPlan::new(MutationInput {
        files,
        roots: BTreeMap::from([root]),
        beside: Vec::new(),
        seed: [7; 32],
        purpose: Purpose::Gate,
    })
    .unwrap()
}

impl Workshop {
    pub(crate) fn new(edition: &'static str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self { dir, edition }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// Lays the sources down, with the plan's overlay over them.
    pub(crate) fn lay(&self, sources: &[(&str, &str)], plan: Option<&MutationPlan>) {
        for (name, text) in sources {
            self.write(name, text.as_bytes());
        }
        for (name, text) in plan.iter().flat_map(|p| &p.overlay) {
            self.write(name.as_str(), text);
        }
    }

    /// Compiles the guard.
    pub(crate) fn guard(&self, plan: &MutationPlan) {
        let name = &plan.guard.name;
        self.write("guard.rs", plan.guard.source.as_bytes());
        let rlib = self.path(&format!("lib{name}.rlib"));
        let mut command = self.rustc("guard.rs", name, "rlib");
        let out = command.args(["-O", "-o"]).arg(rlib).output().unwrap();
        assert!(
            out.status.success(),
            "{}",
            String::from_utf8_lossy(&out.stderr)
        );
        assert!(
            out.stderr.is_empty(),
            "{}",
            String::from_utf8_lossy(&out.stderr)
        );
    }

    fn rustc(&self, root: &str, name: &str, kind: &str) -> Command {
        let mut command = Command::new("rustc");
        command
            .current_dir(self.dir.path())
            .args([
                "--edition",
                self.edition,
                "--crate-name",
                name,
                "--crate-type",
                kind,
            ])
            .args(["-L", "."])
            .arg(root);
        command
    }

    /// Compiles one crate against the guard and earlier crates; its errors where it fails.
    pub(crate) fn compile(
        &self,
        root: &str,
        name: &str,
        kind: &str,
        externs: &[&str],
    ) -> Result<(), Vec<Diagnostic>> {
        let mut command = self.rustc(root, name, kind);
        command.args(["--error-format=json", "--cap-lints=allow", "-Cdebuginfo=0"]);
        for one in externs {
            command.arg("--extern").arg(format!("{one}=lib{one}.rlib"));
        }
        let out = command.output().unwrap();
        if out.status.success() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&out.stderr);
        let lines = text.lines().filter(|l| l.starts_with('{'));
        Err(lines.map(|l| self.diagnostic(l)).collect())
    }

    fn diagnostic(&self, line: &str) -> Diagnostic {
        let json: serde_json::Value = serde_json::from_str(line).unwrap();
        let spans = json["spans"].as_array().unwrap();
        // Follow macro expansions out to the file they were written in.
        let written = |span: &serde_json::Value| {
            let mut span = span.clone();
            while !self.path(span["file_name"].as_str().unwrap()).is_file()
                && span["expansion"].is_object()
            {
                span = span["expansion"]["span"].clone();
            }
            span
        };
        let primary: Vec<_> = spans
            .iter()
            .filter(|s| s["is_primary"] == true)
            .map(written)
            .collect();
        let number = |v: &serde_json::Value| u32::try_from(v.as_u64().unwrap()).unwrap();
        let first = primary.first();
        Diagnostic {
            level: json["level"].as_str().unwrap().to_owned(),
            code: json["code"]["code"].as_str().map(str::to_owned),
            message: json["message"].as_str().unwrap().to_owned(),
            file: first.map_or(String::new(), |s| {
                s["file_name"].as_str().unwrap().to_owned()
            }),
            line: first.map_or(0, |s| number(&s["line_start"])),
            spans: primary
                .iter()
                .map(|s| (number(&s["byte_start"]), number(&s["byte_end"])))
                .collect(),
        }
    }

    /// Builds until the compiler is content. Gives the plan and the number of failed rounds.
    pub(crate) fn settle(
        &self,
        sources: &[(&str, &str)],
        mut plan: MutationPlan,
        build: impl Fn(&Self, &str) -> Result<(), Vec<Diagnostic>>,
    ) -> (MutationPlan, Vec<Attribution>) {
        self.guard(&plan);
        let mut rounds = Vec::new();
        loop {
            self.lay(sources, Some(&plan));
            let Err(diagnostics) = build(self, &plan.guard.name) else {
                return (plan, rounds);
            };
            let attribution = plan.attribute(&diagnostics);
            assert!(rounds.len() < 12, "{diagnostics:#?}");
            let told = |e| panic!("{e}: {diagnostics:#?}");
            plan = plan.without(&attribution).unwrap_or_else(told);
            rounds.push(attribution);
        }
    }

    /// Runs a program with a selector.
    pub(crate) fn run(&self, program: &str, selector: u64, stdin: &str) -> Observation {
        let word = Fuel::LEAST.selecting(selector);
        self.write("selector", &word.to_le_bytes());
        self.write("ack", b"");
        self.write("stdin", stdin.as_bytes());
        let script = format!("exec ./{program} 3<selector 4>ack <stdin");
        let out = shell(self.dir.path(), &script);
        Observation {
            ending: match (out.status.code(), out.status.signal()) {
                (Some(code), _) => Ending::Exited {
                    code: u8::try_from(code).unwrap(),
                },
                (None, signal) => Ending::Signaled {
                    signal: u8::try_from(signal.unwrap()).unwrap(),
                },
            },
            stdout: out.stdout.into(),
            stderr: out.stderr.into(),
            complete: true,
            armed: fs::read(self.path("ack")).unwrap() == [6],
        }
    }

    /// Runs a shell line in the workshop.
    pub(crate) fn shell(&self, script: &str) -> std::process::Output {
        shell(self.dir.path(), script)
    }
}

fn shell(dir: &Path, script: &str) -> std::process::Output {
    Command::new("sh")
        .current_dir(dir)
        .args(["-c", script])
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// The lines of a file that carry mutants.
pub(crate) fn lines_of(plan: &MutationPlan, file: &str) -> BTreeSet<u32> {
    let mutants = plan.mutants.iter().filter(|m| m.file.as_str() == file);
    mutants.map(|m| m.line).collect()
}
