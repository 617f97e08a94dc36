//! Somebody works in the tree while a commit lands in it. Whatever they put anywhere is there
//! afterwards, or kept beside the tree.

use crate::scene::programs;
use crate::yard::{ADDED, CHANGED, DELETED, MODE, UNTOUCHED, Yard};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

/// Rounds of a default run; `FLIGHTPROOF_RACE_ROUNDS` names another number.
const ROUNDS: u64 = 300;

#[test]
fn whatever_is_put_into_the_tree_while_it_lands_is_there_afterwards() {
    let rounds = std::env::var("FLIGHTPROOF_RACE_ROUNDS");
    let rounds = rounds.map_or(ROUNDS, |text| text.parse().unwrap());
    let yard = Yard::new(&programs()[0]);
    let mut landed = 0;
    for seed in 0..rounds {
        landed += u64::from(round(&yard.copy(), seed));
    }
    println!("{rounds} rounds, {landed} landed");
    // Neither side always wins.
    assert!(rounds < 50 || (landed > 0 && landed < rounds), "{landed}");
}

/// One import with somebody at work. Whether it landed.
fn round(yard: &Yard, seed: u64) -> bool {
    let over = AtomicBool::new(false);
    let (result, put) = std::thread::scope(|scope| {
        let landing = scope.spawn(|| {
            let result = yard.land();
            over.store(true, Ordering::Release);
            result
        });
        let put = meddle(yard, seed, &over);
        (landing.join().unwrap(), put)
    });
    if let Err(refused) = &result {
        let expected = [
            "importer/SOURCE_CHANGED",
            "importer/INDEX_LOCKED",
            "importer/BRANCH_MOVED",
            "importer/BRANCH_LOCKED",
            "importer/ADMISSION_UNCERTAIN",
        ];
        assert!(expected.contains(&refused.code()), "{seed}: {refused}");
    }
    for found in yard.recover() {
        assert!(found.look.is_none(), "{seed}: {found:?}");
    }
    let texts = texts(&yard.top);
    for (path, text) in &put {
        let there = std::fs::read_to_string(yard.top.join(path)).is_ok_and(|found| found == *text);
        let kept = || texts.iter().any(|found| found == text);
        assert!(
            there || kept(),
            "{seed}: {path}: {text:?} is nowhere: {result:?}"
        );
    }
    yard.assert_clear();
    let tip = yard.tip();
    let known = [yard.baseline(), yard.head()];
    let theirs = || {
        yard.run(&["rev-list", "--count", "main"])
            .parse::<u32>()
            .unwrap()
            > 1
    };
    assert!(known.contains(&tip) || theirs(), "{seed}");
    let is_in = git(yard, &["merge-base", "--is-ancestor", &yard.head(), "main"]);
    assert_eq!(result.is_ok(), is_in, "{seed}: {result:?}");
    result.is_ok()
}

/// Works in the tree until the import is over. Gives what lies last at each path.
fn meddle(yard: &Yard, seed: u64, over: &AtomicBool) -> BTreeMap<String, String> {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut put = BTreeMap::new();
    // Where in the import the first act falls is what the rounds differ in.
    std::thread::sleep(std::time::Duration::from_micros(dice.below(120) * 1_000));
    let most = 1 + dice.below(4);
    for n in 0..most {
        if over.load(Ordering::Acquire) && n > 0 {
            break;
        }
        let paths = [CHANGED, ADDED, DELETED, MODE, UNTOUCHED, "src/mine.rs"];
        let path = paths[usize::try_from(dice.below(6)).unwrap()];
        match dice.below(8) {
            0..=4 => {
                let text = format!("mine {seed} {n}\n");
                if place(yard, path, &text, n).is_some() {
                    put.insert(path.to_owned(), text);
                }
            }
            5 => {
                let _ = std::fs::hard_link(
                    yard.top.join(path),
                    yard.temp.path().join(format!("link-{n}")),
                );
            }
            6 => drop(git(yard, &["add", "-A", "--", "src"])),
            _ => drop(git(yard, &["commit", "-q", "-m", "mine", "-a"])),
        }
    }
    put
}

/// Puts a file in its place as editors do: written beside it, then renamed over it.
fn place(yard: &Yard, path: &str, text: &str, n: u64) -> Option<()> {
    let draft = yard.temp.path().join(format!("draft-{n}"));
    std::fs::write(&draft, text).unwrap();
    let to = yard.top.join(path);
    std::fs::create_dir_all(to.parent().unwrap()).ok()?;
    std::fs::rename(draft, to).ok()
}

fn git(yard: &Yard, words: &[&str]) -> bool {
    let status = Command::new(&yard.program)
        .args(["-c", "user.name=T", "-c", "user.email=t@x.org"])
        .args(words)
        .current_dir(&yard.top)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.unwrap().success()
}

/// What all files hold that lie anywhere in the tree or are kept there.
fn texts(dir: &Path) -> Vec<String> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().is_some_and(|name| name == ".git") {
            continue;
        }
        match path.is_dir() {
            true => all.extend(texts(&path)),
            false => all.extend(std::fs::read_to_string(&path)),
        }
    }
    all
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}
