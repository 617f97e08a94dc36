//! The environment every test of the program runs in: its own home, state, temporary folder and
//! repository, every variable pinned, and what was printed in one text with volatile values replaced.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// Root of this workspace.
pub(crate) fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// Where a program that counts the lines it runs writes them to.
pub(crate) const PROFILE: &str = "LLVM_PROFILE_FILE";

/// A temporary tree with everything a run of the program may touch.
pub(crate) struct Environment {
    dir: TempDir,
    toolchain: PathBuf,
}

impl Environment {
    /// An empty one: a home, a temporary folder, no key.
    pub(crate) fn new() -> Self {
        let dir = TempDir::with_prefix("flights-test-").unwrap();
        let environment = Self {
            dir,
            toolchain: sysroot(),
        };
        for folder in ["home", "tmp", "work"] {
            fs::create_dir(environment.path(folder)).unwrap();
        }
        environment
    }

    /// One with a signing key and the repository of the pricing program: `main` is the baseline,
    /// and is checked out; `release` is at it too; `candidate` is the honest change.
    pub(crate) fn with_pricing() -> Self {
        let environment = Self::new();
        let keys = environment.flights(&["key", "new", "--no-passphrase"]);
        assert_eq!(keys.code, 0, "{}", keys.text);
        environment.share_cache();
        environment.lay_pricing();
        environment
    }

    /// Makes the repository of [`Environment::with_pricing`].
    pub(crate) fn lay_pricing(&self) {
        let pricing = workspace().join("fixtures/pricing");
        self.git(&["init", "--quiet", "-b", "main"]);
        copy(&pricing.join("baseline"), &self.path("repo"));
        self.commit("Baseline");
        self.git(&["branch", "release"]);
        self.candidate("candidate", &tree(&pricing.join("candidate")));
    }

    /// The toolchain is named by its content. Hashing it is what most tests would wait for.
    pub(crate) fn share_cache(&self) {
        let shared = Path::new(env!("CARGO_TARGET_TMPDIR")).join("toolchain-cache");
        fs::create_dir_all(&shared).unwrap();
        fs::create_dir_all(self.state()).unwrap();
        std::os::unix::fs::symlink(shared, self.state().join("cache")).unwrap();
    }

    /// A place in the temporary tree.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The state directory.
    pub(crate) fn state(&self) -> PathBuf {
        self.path("home/.local/state/flightproof")
    }

    /// The default signing key's public half.
    pub(crate) fn public_key(&self) -> String {
        let path = self.state().join("keys/flightproof.pem.pub");
        path.to_str().unwrap().to_owned()
    }

    /// Writes a file of the tree and returns its path.
    pub(crate) fn write(&self, name: &str, content: &str) -> String {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Runs git in the repository.
    pub(crate) fn git(&self, args: &[&str]) -> String {
        fs::create_dir_all(self.path("repo")).unwrap();
        let mut git = Command::new("git");
        git.args(args).current_dir(self.path("repo"));
        self.pin(&mut git);
        git.env("PATH", std::env::var_os("PATH").unwrap());
        let output = git.output().unwrap();
        assert!(output.status.success(), "git {args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    pub(crate) fn commit(&self, message: &str) {
        self.git(&["add", "--all", "--force"]);
        self.git(&["commit", "--quiet", "--allow-empty", "-m", message]);
    }

    /// Makes a branch with one commit on the baseline that writes these files. An empty text
    /// removes its file. `main` stays checked out.
    pub(crate) fn candidate(&self, branch: &str, files: &BTreeMap<String, String>) {
        self.git(&["checkout", "--quiet", "-b", branch, "main"]);
        for (name, content) in files {
            if content.is_empty() {
                fs::remove_file(self.path("repo").join(name)).unwrap();
            } else {
                self.write(&format!("repo/{name}"), content);
            }
        }
        self.commit("Improve the program");
        self.git(&["checkout", "--quiet", "main"]);
    }

    /// A candidate that changes the honest one's source text.
    pub(crate) fn candidate_edit(&self, branch: &str, edit: impl FnOnce(String) -> String) {
        let source = workspace().join("fixtures/pricing/candidate/src/main.rs");
        let text = edit(fs::read_to_string(source).unwrap());
        self.candidate(branch, &BTreeMap::from([("src/main.rs".to_owned(), text)]));
    }

    /// The program with arguments, ready to start.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_flights"));
        command.args(args).current_dir(self.path("work"));
        self.pin(&mut command);
        command
    }

    fn pin(&self, command: &mut Command) {
        let bin = self.toolchain.join("bin");
        command
            .env_clear()
            .env("HOME", self.path("home"))
            .env("TMPDIR", self.path("tmp"))
            .env("CARGO_HOME", self.path("home/.cargo"))
            .env("PATH", format!("{}:{}", bin.display(), programs()))
            .env("LC_ALL", "C")
            .env("TZ", "UTC")
            .env("COLUMNS", "100")
            .env("DOCKER_HOST", "unix:///nonexistent/engine.sock")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_AUTHOR_NAME", "An Author")
            .env("GIT_AUTHOR_EMAIL", "author@example.invalid")
            .env("GIT_AUTHOR_DATE", "1700000000 +0000")
            .env("GIT_COMMITTER_NAME", "An Author")
            .env("GIT_COMMITTER_EMAIL", "author@example.invalid")
            .env("GIT_COMMITTER_DATE", "1700000000 +0000")
            .stdin(Stdio::null());
        // Where the lines it ran are counted, if they are.
        command.envs(std::env::var_os(PROFILE).map(|to| (PROFILE, to)));
    }

    /// Runs the program.
    pub(crate) fn flights(&self, args: &[&str]) -> Run {
        self.run(&mut self.command(args))
    }

    /// Runs a prepared command.
    pub(crate) fn run(&self, command: &mut Command) -> Run {
        self.told(&command.output().unwrap())
    }

    /// What kinds of events are in the certificate log, oldest first.
    pub(crate) fn logged(&self) -> Vec<String> {
        let log = self
            .flights(&["cert", "log", "show", "--format", "json"])
            .json();
        let kind = |entry: &serde_json::Value| entry["event"]["kind"].as_str().unwrap().to_owned();
        log["entries"]
            .as_array()
            .unwrap()
            .iter()
            .map(kind)
            .collect()
    }

    /// Does something, and puts the log back to what it was before: as if the run that did it had been killed
    /// before it wrote what it did into the log.
    pub(crate) fn unlogged<T>(&self, act: impl FnOnce() -> T) -> T {
        let (state, kept) = (self.state(), self.path("kept-log"));
        let _ = fs::remove_dir_all(&kept);
        copy(&state.join("log"), &kept.join("log"));
        fs::copy(state.join("log-seen"), kept.join("log-seen")).unwrap();
        let done = act();
        fs::remove_dir_all(state.join("log")).unwrap();
        copy(&kept.join("log"), &state.join("log"));
        fs::copy(kept.join("log-seen"), state.join("log-seen")).unwrap();
        done
    }

    /// How often the log says that a commit was let in.
    pub(crate) fn moves_logged(&self, commit: &str) -> usize {
        let log = self.flights(&["cert", "log", "show", "--format", "json"]);
        let log = log.json();
        let entries = log["entries"].as_array().unwrap().iter();
        let moved = |entry: &&serde_json::Value| {
            let kind = entry["event"]["kind"].as_str().unwrap();
            ["admitted", "uncertified"].contains(&kind) && entry["event"]["head"] == commit
        };
        entries.filter(moved).count()
    }

    /// `flights certify` of a branch of the repository, with the pricing witness and more arguments.
    pub(crate) fn certify(&self, candidate: &str, more: &[&str]) -> Run {
        self.run(&mut self.certify_command(candidate, more))
    }

    /// As [`Environment::certify`], not started.
    pub(crate) fn certify_command(&self, candidate: &str, more: &[&str]) -> Command {
        let witness = workspace().join("flights/witness/pricing.json");
        let (repo, out) = (self.path("repo"), self.path("out"));
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let (repo, out, witness) = (text(&repo), text(&out), text(&witness));
        let mut args = vec!["certify", "--repo", &repo, "--baseline", "main"];
        args.extend(["--candidate", candidate, "--out", &out]);
        if !more.contains(&"--witness") {
            args.extend(["--witness", &witness]);
        }
        args.extend(more);
        self.command(&args)
    }

    /// Everything in the tree: path and, for a file, the bytes.
    pub(crate) fn listing(&self, below: &str) -> BTreeMap<String, Vec<u8>> {
        let mut found = BTreeMap::new();
        list(&self.path(below), "", &mut found);
        found
    }

    /// What a run came to, with volatile values replaced.
    pub(crate) fn told(&self, output: &Output) -> Run {
        let code = output.status.code().unwrap_or(-1);
        let show = |bytes: &[u8]| self.redact(&String::from_utf8_lossy(bytes));
        let (stdout, stderr) = (show(&output.stdout), show(&output.stderr));
        let mut text = format!("exit {code}\n");
        for (name, part) in [("stdout", &stdout), ("stderr", &stderr)] {
            if !part.is_empty() {
                let _ = write!(text, "--- {name}\n{part}");
            }
        }
        Run {
            code,
            stdout: String::from_utf8(output.stdout.clone()).unwrap(),
            stderr: String::from_utf8(output.stderr.clone()).unwrap(),
            text,
        }
    }

    fn redact(&self, text: &str) -> String {
        let text = text
            .replace(self.dir.path().to_str().unwrap(), "$TREE")
            .replace(self.toolchain.to_str().unwrap(), "$TOOLCHAIN")
            .replace(workspace().to_str().unwrap(), "$WORKSPACE");
        counts(&durations(&digests(&text)))
    }
}

/// What a run of the program came to.
pub(crate) struct Run {
    /// Exit status.
    pub(crate) code: i32,
    /// Standard output as it was.
    pub(crate) stdout: String,
    /// Standard error as it was.
    pub(crate) stderr: String,
    /// All three for a snapshot, redacted.
    pub(crate) text: String,
}

impl Run {
    /// Standard output as one JSON document, as its schema says.
    pub(crate) fn json(&self) -> serde_json::Value {
        let document = serde_json::from_str(&self.stdout);
        let document = document.unwrap_or_else(|e| panic!("{e}: {}", self.text));
        crate::schemas::hold(&document);
        document
    }
}

/// Replaces digests, and their short forms, by as many `_`, so that columns stay.
fn digests(text: &str) -> String {
    let mut out = String::new();
    let mut word = String::new();
    let flush = |word: &mut String, out: &mut String| {
        match word.len() {
            16 | 40 | 64 => out.push_str(&"_".repeat(word.len())),
            _ => out.push_str(word),
        }
        word.clear();
    };
    for c in text.chars() {
        if c.is_ascii_digit() || ('a'..='f').contains(&c) {
            word.push(c);
        } else {
            flush(&mut word, &mut out);
            out.push(c);
        }
    }
    flush(&mut word, &mut out);
    out
}

/// Replaces durations such as `0.51 s` by `_.__ s`.
fn durations(text: &str) -> String {
    let mut words: Vec<String> = text.split(' ').map(ToOwned::to_owned).collect();
    for i in 0..words.len().saturating_sub(1) {
        let number = words[i].trim_start_matches('(');
        let followed = words[i + 1] == "s" || words[i + 1].starts_with("s)");
        if followed && number.contains('.') && number.parse::<f64>().is_ok() {
            // However many digits: a busy machine takes ten seconds for what else takes one.
            let open = if words[i].starts_with('(') { "(" } else { "" };
            words[i] = format!("{open}_.__");
        }
    }
    words.join(" ")
}

/// What other crates may count otherwise without breaking a promise of the program.
const COUNTED: [&str; 4] = [
    "limits read back",
    "mutants killed",
    " mutants, ",
    "bundle of ",
];

fn counts(text: &str) -> String {
    let line = |line: &str| match COUNTED.iter().any(|counted| line.contains(counted)) {
        true => numbers(line),
        false => line.to_owned(),
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// Each number by one `_`, however many digits it has.
fn numbers(line: &str) -> String {
    let mut out = String::new();
    for c in line.chars() {
        match c.is_ascii_digit() {
            true if out.ends_with('_') => {}
            true => out.push('_'),
            false => out.push(c),
        }
    }
    out
}

/// Folders of the programs of this machine, without those of a user.
fn programs() -> String {
    let path = std::env::var("PATH").unwrap();
    let system = |dir: &&str| dir.starts_with("/usr") || dir.starts_with("/bin");
    path.split(':').filter(system).collect::<Vec<_>>().join(":")
}

fn sysroot() -> PathBuf {
    let output = Command::new("rustc")
        .args(["--print", "sysroot"])
        .output()
        .unwrap();
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
}

/// The text files below a directory.
pub(crate) fn tree(root: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    list(root, "", &mut found);
    found
        .into_iter()
        .filter(|(name, _)| !name.ends_with('/'))
        .map(|(name, bytes)| (name, String::from_utf8(bytes).unwrap()))
        .collect()
}

/// Copies the files below a directory.
pub(crate) fn copy(from: &Path, to: &Path) {
    let mut found = BTreeMap::new();
    list(from, "", &mut found);
    fs::create_dir_all(to).unwrap();
    for (name, bytes) in found {
        let path = to.join(&name);
        if name.ends_with('/') {
            fs::create_dir_all(&path).unwrap();
        } else {
            fs::write(&path, bytes).unwrap();
            let mode = fs::metadata(from.join(&name)).unwrap().permissions().mode();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
    }
}

fn list(root: &Path, inner: &str, found: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(root.join(inner)).into_iter().flatten() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            let inner = format!("{inner}{name}/");
            found.insert(inner.clone(), Vec::new());
            list(root, &inner, found);
        } else {
            let bytes = if kind.is_file() {
                fs::read(entry.path()).unwrap()
            } else {
                b"no file".to_vec()
            };
            found.insert(format!("{inner}{name}"), bytes);
        }
    }
}
