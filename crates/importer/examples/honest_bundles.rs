//! Bundles of every commit of a repository that is no merge and no root, made by a git of choice,
//! and what is said about each: `honest_bundles GIT REPOSITORY [REVISIONS]…`. The repository is only
//! read. What is accepted is read once more by another reader of packs, which must find the same
//! objects. Granted is everything but what is protected, and dates are not held against a clock.
#![expect(clippy::unwrap_used, reason = "a count that cannot be made must fail")]

#[path = "../tests/scene/third.rs"]
mod third;

use flightproof_core::Code as _;
use flightproof_importer::{Arrival, Git, Grants, Host, ImportError, Parcel, Rules, check_bundle};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

fn main() {
    let mut words = std::env::args().skip(1).map(PathBuf::from);
    let (program, source) = (words.next().unwrap(), words.next().unwrap());
    let mut revisions: Vec<String> = words.map(|w| w.to_str().unwrap().to_owned()).collect();
    if revisions.is_empty() {
        revisions.push("HEAD".to_owned());
    }
    let temp = tempfile::tempdir().unwrap();
    let top = borrowing(&program, &source, temp.path());
    let mut asked = vec!["rev-list", "--no-merges", "--parents"];
    asked.extend(revisions.iter().map(String::as_str));
    let log = run(&program, &source, &asked);
    let mut answers: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut spent = Duration::ZERO;
    for line in log.lines() {
        let Some((head, baseline)) = line.split_once(' ') else {
            continue;
        };
        let bundle = bundle(&program, &top, head, baseline);
        let answer = arrive(&program, &top, &bundle, baseline, temp.path(), &mut spent);
        let word = match &answer {
            Ok(()) => "accepted".to_owned(),
            Err(e) => e.code.explanation().code.to_owned(),
        };
        let detail = answer.err().map_or_else(String::new, |e| e.detail);
        answers
            .entry(word)
            .or_default()
            .push(format!("{} {detail}", &head[..10]));
    }
    report(&answers, spent);
}

fn report(answers: &BTreeMap<String, Vec<String>>, spent: Duration) {
    let all: usize = answers.values().map(Vec::len).sum();
    println!(
        "{all} bundles, {} ms each with git's opinion",
        spent.as_millis() / all.max(1) as u128
    );
    for (word, found) in answers {
        println!("{:>6} {word}", found.len());
        if word != "accepted" {
            for line in found.iter().take(8) {
                println!("         {line}");
            }
        }
    }
}

fn arrive(
    program: &Path,
    top: &Path,
    bundle: &[u8],
    baseline: &str,
    temp: &Path,
    spent: &mut Duration,
) -> Result<(), ImportError> {
    let git = Git::at(program)?;
    let host = Host::open(&git, top)?;
    let scratch = tempfile::tempdir_in(temp).unwrap();
    let arrival = Arrival {
        parcel: Parcel::bundle(bundle),
        baseline,
        rules: Rules {
            grants: &Grants::default(),
            identity: None,
            now: u64::MAX / 2,
        },
        scratch: scratch.path(),
    };
    let start = Instant::now();
    let checked = check_bundle(&git, &host, &arrival);
    *spent += start.elapsed();
    let checked = checked?;
    let base = |id: &[u8]| object(program, top, id);
    let theirs = third::read(bundle, &base, scratch.path()).unwrap();
    let ours = third::read(&checked.pack()?, &|_| None, scratch.path()).unwrap();
    assert_eq!(ours.len(), checked.objects().len());
    for (id, object) in &ours {
        assert_eq!(
            theirs.get(id),
            Some(object),
            "another reader finds another object"
        );
    }
    Ok(())
}

/// An object of the repository, for deltas that stand on it.
fn object(program: &Path, top: &Path, id: &[u8]) -> Option<(String, Vec<u8>)> {
    let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let ask = |words: &[&str]| {
        let output = Command::new(program).args(words).current_dir(top).output();
        output.ok().filter(|o| o.status.success()).map(|o| o.stdout)
    };
    let word = String::from_utf8(ask(&["cat-file", "-t", &id])?).ok()?;
    let word = word.trim().to_owned();
    let body = ask(&["cat-file", &word, &id])?;
    Some((word, body))
}

/// A repository of our own that sees all objects of another one.
fn borrowing(program: &Path, source: &Path, temp: &Path) -> PathBuf {
    let top = temp.join("top.git");
    run(program, temp, &["init", "-q", "--bare", "top.git"]);
    let objects = run(
        program,
        source,
        &[
            "rev-parse",
            "--path-format=absolute",
            "--git-path",
            "objects",
        ],
    );
    std::fs::write(top.join("objects/info/alternates"), objects).unwrap();
    top
}

fn bundle(program: &Path, top: &Path, head: &str, baseline: &str) -> Vec<u8> {
    run(program, top, &["update-ref", "refs/export/head", head]);
    let without = format!("^{baseline}");
    let output = Command::new(program)
        .args([
            "-c",
            "pack.useBitmaps=false",
            "bundle",
            "create",
            "-q",
            "--version=2",
            "-",
        ])
        .args(["refs/export/head", &without])
        .current_dir(top)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    output.stdout
}

fn run(program: &Path, dir: &Path, words: &[&str]) -> String {
    let output = Command::new(program)
        .args(words)
        .current_dir(dir)
        .output()
        .unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}
