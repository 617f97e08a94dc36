//! Killed, or told of an error, at every call that changes something: the importer, a git it started,
//! or both.

use crate::scene::{fake_git, programs};
use crate::yard::{UNTOUCHED, Yard, write};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Calls that change what is on the disk.
const CALLS: [&str; 18] = [
    "open",
    "openat",
    "openat2",
    "creat",
    "write",
    "pwrite64",
    "fsync",
    "fdatasync",
    "syncfs",
    "ftruncate",
    "mkdir",
    "mkdirat",
    "rename",
    "renameat",
    "renameat2",
    "unlink",
    "unlinkat",
    "rmdir",
];

/// Who is struck.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    /// The importer alone: its gits see the end of their input.
    Importer,
    /// A git alone, asked for this.
    Git(&'static str),
    /// A git, and the importer when it is gone.
    Both(&'static str),
    /// A recovery after a run that was killed with all files exchanged.
    Recovery,
}

#[derive(Debug, Clone)]
struct Point {
    victim: Victim,
    call: String,
    nth: usize,
}

fn victim() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let program = test
        .parent()
        .unwrap()
        .parent()
        .unwrap()
        .join("examples/land");
    assert!(program.exists(), "build the examples of this crate first");
    program
}

/// A bench with work of the user's around, and everything a victim is started with.
struct Bench {
    yard: Yard,
}

/// What the user has beside the commit, which must survive everything.
const MINE: [(&str, &str); 4] = [
    (UNTOUCHED, "edited\n"),
    (".env", "ignored\n"),
    ("src/notes", "untracked\n"),
    ("src/deep/mine", "untracked, where a file is added\n"),
];

impl Bench {
    fn of(yard: &Yard) -> Self {
        let yard = yard.copy();
        MINE.iter()
            .for_each(|(path, text)| write(&yard.top, path, text));
        std::fs::write(yard.temp.path().join("bundle"), &yard.capture.bundle).unwrap();
        std::fs::create_dir(yard.temp.path().join("scratch")).unwrap();
        Self { yard }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.yard.temp.path().join(name)
    }

    /// A git that is the real one, but for `verb`, where it is traced with these arguments, and takes
    /// its caller along if `both`.
    fn git(&self, verb: &str, strace: &[String], both: bool) -> PathBuf {
        let real = self.yard.program.display();
        let words: Vec<String> = strace.iter().map(|w| format!("'{w}'")).collect();
        let then = if both { "kill -9 $PPID" } else { "exit $?" };
        let script = format!(
            "for w; do case $w in {verb}) strace {} -- {real} \"$@\"; {then};; esac; done; \
             exec {real} \"$@\"",
            words.join(" ")
        );
        fake_git(self.yard.temp.path(), &script)
    }

    fn command(&self, what: &str, git: &Path, strace: Option<&[String]>) -> Command {
        let mut command = match strace {
            None => Command::new(victim()),
            Some(words) => {
                let mut command = Command::new("strace");
                command.args(words).arg("--").arg(victim());
                command
            }
        };
        command
            .arg(what)
            .args([&self.yard.top, git, &self.path("bundle")])
            .arg(self.yard.baseline())
            .args([self.path("state"), self.path("scratch")]);
        command
    }

    fn run(&self, victim: Victim, strace: &[String]) {
        let real = &self.yard.program;
        let mut command = match victim {
            Victim::Importer => self.command("land", real, Some(strace)),
            Victim::Git(verb) => self.command("land", &self.git(verb, strace, false), None),
            Victim::Both(verb) => self.command("land", &self.git(verb, strace, true), None),
            Victim::Recovery => {
                self.interrupt();
                self.command("recover", real, Some(strace))
            }
        };
        let output = command
            .output()
            .expect("strace must be installed: scripts/setup tests");
        drop(output);
    }

    /// All files exchanged, the branch where it was, and nobody alive.
    fn interrupt(&self) {
        let script = format!(
            "for w; do case $w in update-ref) echo 'start: ok'; echo 'prepare: ok'; \
             while read -r line; do case $line in commit) kill -9 $PPID; exit 1;; esac; done;; esac; \
             done; exec {} \"$@\"",
            self.yard.program.display()
        );
        let git = fake_git(self.yard.temp.path(), &script);
        assert!(
            !self
                .command("land", &git, None)
                .output()
                .unwrap()
                .status
                .success()
        );
    }

    /// The tree is whole after a recovery, what the user has is there, and the import can be asked
    /// for again.
    fn check(&self, point: &Point) -> bool {
        let yard = &self.yard;
        let found = yard.recover();
        assert!(found.len() <= 1, "{point:?}: {found:?}");
        assert!(
            found.iter().all(|f| f.look.is_none()),
            "{point:?}: {found:?}"
        );
        for lock in ["HEAD.lock", "refs/heads/main.lock"] {
            let _ = std::fs::remove_file(yard.top.join(".git").join(lock));
        }
        let landed = yard.tip() == yard.head();
        self.assert_sides(point, landed);
        assert!(yard.recover().is_empty(), "{point:?}");
        let again = yard.land().unwrap_or_else(|e| panic!("{point:?}: {e}"));
        assert_eq!(again.repeated, landed, "{point:?}");
        self.assert_sides(point, true);
        landed
    }

    fn assert_sides(&self, point: &Point, landed: bool) {
        let yard = &self.yard;
        for (path, text) in MINE {
            let found = std::fs::read_to_string(yard.top.join(path)).unwrap_or_default();
            assert_eq!(found, text, "{point:?}: {path}");
        }
        let status = yard.run(&["status", "--porcelain", "-uall"]);
        assert_eq!(
            status, "M src/other.rs\n?? src/deep/mine\n?? src/notes",
            "{point:?}: landed {landed}"
        );
        assert_eq!(yard.tip() == yard.head(), landed, "{point:?}");
        yard.assert_clear();
    }
}

/// How often each call is made by an undisturbed run.
fn points(yard: &Yard, of: Victim) -> Vec<Point> {
    let bench = Bench::of(yard);
    let log = bench.path("log");
    let trace = format!("trace={}", CALLS.join(","));
    let words = [
        "-qq",
        "-e",
        "signal=none",
        "-e",
        &trace,
        "-o",
        log.to_str().unwrap(),
    ];
    bench.run(of, &words.map(str::to_owned));
    let text = std::fs::read_to_string(log).unwrap();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for line in text.lines() {
        if let Some((name, _)) = line.split_once('(') {
            *counts.entry(name.to_owned()).or_default() += 1;
        }
    }
    let all = counts.into_iter().flat_map(|(call, times)| {
        (1..=times).map(move |nth| Point {
            victim: of,
            call: call.clone(),
            nth,
        })
    });
    let reads_only = |point: &Point| {
        // Files that are opened to be read are no points, unless they fail.
        matches!(point.call.as_str(), "open")
    };
    all.filter(|point| !reads_only(point)).collect()
}

fn sweep(victims: &[Victim], hows: &[&str], most: usize) {
    let yard = Yard::new(&programs()[0]);
    let all: Vec<Point> = victims.iter().flat_map(|of| points(&yard, *of)).collect();
    assert!(all.len() > 20, "only {} calls", all.len());
    let chosen = sample(&all, most);
    let (landed, not) = strike(&yard, &chosen, hows);
    println!(
        "{victims:?}: {} calls, struck at {}: {landed} landed, {not} not",
        all.len(),
        landed + not
    );
}

/// How many landed and how many did not.
fn strike(yard: &Yard, chosen: &[Point], hows: &[&str]) -> (usize, usize) {
    let (mut landed, mut not) = (0, 0);
    for (n, point) in chosen.iter().enumerate() {
        for how in pick(hows, n) {
            let bench = Bench::of(yard);
            let inject = format!("inject={}:{how}:when={}", point.call, point.nth);
            let trace = format!("trace={}", point.call);
            let words = ["-qq", "-e", "signal=none", "-e", &trace, "-e", &inject];
            let words = [&words[..], &["-o", "/dev/null"]].concat();
            let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
            bench.run(point.victim, &words);
            match bench.check(point) {
                true => landed += 1,
                false => not += 1,
            }
        }
    }
    (landed, not)
}

fn full() -> bool {
    std::env::var_os("FLIGHTPROOF_FULL_SWEEP").is_some()
}

fn pick<'a>(hows: &'a [&'a str], n: usize) -> Vec<&'a str> {
    if full() {
        hows.to_vec()
    } else {
        vec![hows[n % hows.len()]]
    }
}

/// Evenly spread over all of them, the last one among them.
fn sample(points: &[Point], most: usize) -> Vec<Point> {
    if full() || points.len() <= most {
        return points.to_vec();
    }
    let at = |n: usize| points[(n + 1) * points.len() / most - 1].clone();
    (0..most).map(at).collect()
}

const KILL: &str = "error=EIO:signal=KILL";
const ERRORS: [&str; 2] = ["error=EIO", "error=ENOSPC"];

#[test]
fn an_importer_killed_at_any_call_leaves_what_the_recovery_brings_to_one_side() {
    sweep(&[Victim::Importer], &[KILL], 40);
}

#[test]
fn an_importer_told_of_an_error_at_any_call_loses_nothing() {
    sweep(&[Victim::Importer], &ERRORS, 40);
}

#[test]
fn a_git_struck_at_any_call_alone_or_with_the_importer_leaves_one_side() {
    let verbs = ["update-ref", "index-pack"];
    let victims: Vec<Victim> = verbs
        .into_iter()
        .flat_map(|v| [Victim::Git(v), Victim::Both(v)])
        .collect();
    sweep(&victims, &[KILL, ERRORS[0], ERRORS[1]], 30);
}

#[test]
fn a_recovery_struck_at_any_call_is_done_by_the_next() {
    sweep(&[Victim::Recovery], &[KILL, ERRORS[0], ERRORS[1]], 20);
}

/// A file of ours that could not be opened was taken for somebody's, and put back into the tree.
#[test]
fn a_recovery_that_cannot_open_a_file_takes_it_for_nobodys() {
    let yard = Yard::new(&programs()[0]);
    let mut all = points(&yard, Victim::Recovery);
    all.retain(|point| point.call == "openat2");
    assert!(all.len() > 5, "{}", all.len());
    let (landed, not) = strike(&yard, &all, &ERRORS[..1]);
    assert_eq!((landed, not), (0, all.len()));
}

#[test]
fn a_wait_that_a_signal_cuts_short_goes_on() {
    let bench = Bench::of(&Yard::new(&programs()[0]));
    let words = [
        "-qq",
        "-o",
        "/dev/null",
        "-e",
        "inject=?poll,?ppoll:error=EINTR:when=1+2",
    ];
    bench.run(Victim::Importer, &words.map(str::to_owned));
    assert_eq!(bench.yard.tip(), bench.yard.head());
}
