//! Who races for the money, and what the disk does to it.

use crate::scene::{NOON, Scene, code, name, request, result, usd};
use flightproof_core::Digest;
use flightproof_ledger::{Cap, HoldState, Ledger, LedgerCode, Reserve, Scope};
use std::path::Path;

#[test]
fn row_08_racing_threads_never_get_more_than_the_last_dollar() {
    let scene = Scene::new();
    let admitted = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|thread| {
                let state = &scene.state;
                scope.spawn(move || {
                    let mut ledger = Ledger::open(state).unwrap();
                    (0..12)
                        .filter(|n| {
                            let ask = request(&format!("{thread}/{n}"), "1");
                            match ledger.reserve(&ask, NOON) {
                                Ok(_) => true,
                                Err(e) => {
                                    assert_eq!(e.code, LedgerCode::CapExceeded, "{e}");
                                    false
                                }
                            }
                        })
                        .count()
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|t| t.join().unwrap())
            .sum::<usize>()
    });
    assert_eq!(admitted, 50);
    assert_eq!(scene.used(), (usd("0"), usd("50")));
}

/// Runs only as one of the processes below.
#[test]
#[ignore = "started by the test below"]
fn racer() {
    let state = std::env::var_os("FLIGHTPROOF_TEST_STATE").unwrap();
    let mut ledger = Ledger::open(Path::new(&state)).unwrap();
    let mut admitted = 0;
    for n in 0..30 {
        match ledger.reserve(&request(&format!("{}/{n}", std::process::id()), "1"), NOON) {
            Ok(_) => admitted += 1,
            Err(e) => assert_eq!(e.code, LedgerCode::CapExceeded, "{e}"),
        }
    }
    println!("admitted={admitted}");
}

#[test]
fn row_08_racing_processes_never_get_more_than_the_last_dollar() {
    let scene = Scene::new();
    let racers: Vec<_> = (0..4)
        .map(|_| {
            std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "storage::racer", "--ignored", "--nocapture"])
                .env("FLIGHTPROOF_TEST_STATE", &scene.state)
                .stdout(std::process::Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    let mut admitted = 0;
    for racer in racers {
        let output = racer.wait_with_output().unwrap();
        assert!(output.status.success());
        let said = String::from_utf8(output.stdout).unwrap();
        let count = said
            .lines()
            .find_map(|l| l.split("admitted=").nth(1))
            .unwrap();
        admitted += count.parse::<u64>().unwrap();
    }
    assert_eq!(admitted, 50);
    assert_eq!(scene.used(), (usd("0"), usd("50")));
}

#[test]
fn row_09_a_reservation_that_cannot_be_written_admits_nothing() {
    let mut scene = Scene::new();
    let other = rusqlite::Connection::open(scene.state.join(Ledger::FILE)).unwrap();
    other
        .execute_batch("ALTER TABLE holds RENAME TO elsewhere")
        .unwrap();
    assert_eq!(code(scene.reserve("r", "1")), LedgerCode::LedgerUnreadable);
}

#[test]
fn row_34_a_ledger_put_back_from_a_copy_admits_nothing() {
    let mut scene = Scene::new();
    let copy = scene.state.join("copy");
    scene.reserve("a", "1").unwrap();
    std::fs::copy(scene.state.join(Ledger::FILE), &copy).unwrap();
    scene.settled("r", "20", "20");
    let Scene {
        _temp,
        state,
        ledger,
    } = scene;
    ledger.close().unwrap();
    std::fs::copy(&copy, state.join(Ledger::FILE)).unwrap();
    assert_eq!(code(Ledger::open(&state)), LedgerCode::LedgerBehind);
}

#[test]
fn row_36_files_are_private_and_hold_no_text_of_a_prompt_or_result() {
    use std::os::unix::fs::PermissionsExt as _;
    let mut scene = Scene::new();
    let secret = b"the prompt: refactor everything";
    let ask = Reserve {
        request: Digest::of(secret),
        ..request("r", "1")
    };
    scene.ledger.reserve(&ask, NOON).unwrap();
    scene.ledger.start_run(&name("r"), NOON).unwrap();
    scene
        .ledger
        .settle_run(&name("r"), usd("1"), Digest::of(secret), NOON)
        .unwrap();
    for entry in std::fs::read_dir(&scene.state).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(
            entry.metadata().unwrap().permissions().mode() & 0o777,
            0o600
        );
        let bytes = std::fs::read(entry.path()).unwrap();
        assert!(!bytes.windows(secret.len()).any(|w| w == secret));
    }
}

/// Runs that the victim below may settle: more than fit under its limit.
const STARTED: usize = 60;

/// Runs only as the victim below, under a file-size limit that makes a settlement fail.
#[test]
#[ignore = "started by the test below with a file-size limit"]
fn settler() {
    let state = std::env::var_os("FLIGHTPROOF_TEST_STATE").unwrap();
    let mut ledger = Ledger::open(Path::new(&state)).unwrap();
    for n in 0..STARTED {
        let run = name(&format!("r{n}"));
        let Err(refused) = ledger.settle_run(&run, usd("0.5"), result(), NOON) else {
            continue;
        };
        assert_eq!(refused.code, LedgerCode::CommitUncertain, "{refused}");
        let again = ledger.settle_run(&run, usd("0.5"), result(), NOON);
        assert_eq!(code(again), LedgerCode::CommitUncertain);
        return println!("uncertain={n}");
    }
    panic!("the limit was never met");
}

#[test]
fn row_38_a_settlement_that_cannot_be_written_is_uncertain_and_done_again_by_its_key() {
    let mut scene = Scene::new();
    scene
        .ledger
        .state_cap(Scope::UtcDay, Cap::usd(usd("100")), NOON)
        .unwrap();
    for n in 0..STARTED {
        scene.started(&format!("r{n}"), "1");
    }
    let Scene {
        _temp,
        state,
        ledger,
    } = scene;
    ledger.close().unwrap();
    let output = std::process::Command::new("/bin/sh")
        .args([
            "-c",
            "trap '' XFSZ; ulimit -f 500; exec \"$0\" --exact storage::settler --ignored --nocapture",
        ])
        .arg(std::env::current_exe().unwrap())
        .env("FLIGHTPROOF_TEST_STATE", &state)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{errors}");
    let uncertain = said.lines().find_map(|l| l.split("uncertain=").nth(1));
    let uncertain: usize = uncertain.unwrap().parse().unwrap();
    assert!(uncertain > 0);
    let mut ledger = Ledger::open(&state).unwrap();
    let state_of = |n: usize| ledger.hold(&name(&format!("r{n}"))).unwrap().unwrap().state;
    let settled = HoldState::Settled(usd("0.5"));
    for n in 0..uncertain {
        assert_eq!(state_of(n), settled, "r{n} was acknowledged");
    }
    assert!([HoldState::Running, settled].contains(&state_of(uncertain)));
    assert_eq!(state_of(uncertain + 1), HoldState::Running);
    let run = name(&format!("r{uncertain}"));
    let again = ledger.settle_run(&run, usd("0.5"), result(), NOON).unwrap();
    assert_eq!(again.state, settled);
}
