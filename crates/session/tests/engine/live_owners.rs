//! Owners that die, at any moment, and owners that live.

use crate::ground::{Ground, artifact, program};
use flightproof_ledger::Ledger;
use flightproof_session::docker::{Engine, reap};
use flightproof_session::lease::{Reaper, Unleased};
use flightproof_session::{Session as _, docker, record};
use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long it may take until nothing is left of all owners.
const SETTLED: Duration = Duration::from_secs(60);

/// Lifetime of the session that must outlive all of them, milliseconds: an hour.
const LASTING_MS: u64 = 3_600_000;

fn owner(ground: &Ground, artifact: &std::path::Path, seed: u128) -> Child {
    Command::new(program())
        .arg("engine")
        .arg(ground.image().to_string())
        .arg(ground.path())
        .arg(artifact)
        .arg(seed.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Kills `count` owners at random moments; then nothing of them may be left.
fn killed_owners_leave_nothing(count: u32) {
    let ground = Ground::new();
    let engine = Engine::connect(ground.endpoint()).unwrap();
    let path = ground.path().join("artifact");
    fs::write(&path, artifact()).unwrap();
    let begun = Instant::now();
    let mut lasting = ground.spec();
    lasting.lifetime_ms = LASTING_MS;
    let mut survivor = ground.open_as(&lasting).unwrap();
    // Some are killed long before there is a container, some long after.
    let longest = begun.elapsed() * 2;
    let (mut ids, mut opened) = (Vec::new(), 0);
    for _ in 0..count {
        let mut entropy = [0; 16];
        rustix::rand::getrandom(&mut entropy, rustix::rand::GetRandomFlags::empty()).unwrap();
        let part = f64::from(u16::from_be_bytes([entropy[0], entropy[1]])) / 65_536.0;
        let seed = u128::from_be_bytes(entropy);
        let mut child = owner(&ground, &path, seed);
        std::thread::sleep(longest.mul_f64(part));
        child.kill().unwrap();
        let said = child.wait_with_output().unwrap().stdout;
        opened += u32::from(said.starts_with(b"open "));
        ids.push(format!("{seed:032x}"));
    }
    assert!(
        0 < opened && opened < count,
        "{opened} of {count} had an open session"
    );
    let end = Instant::now() + SETTLED;
    loop {
        let left = ground.traces_of_all(&ids);
        if left.is_empty() {
            break;
        }
        assert!(Instant::now() < end, "left: {left:?}");
        let mut reaper = Reaper::new(ground.leases());
        reap(&engine, &ground.state_dir(), &mut reaper).unwrap();
        std::thread::sleep(Duration::from_millis(200));
    }
    // And the ledger says so of each, once what came to nothing is settled.
    let leases = ground.leases();
    leases
        .settle(|id| record::is_registered(&ground.state_dir(), id))
        .unwrap();
    let ledger = Ledger::open(&ground.state_dir().join("ledger")).unwrap();
    assert_eq!(ledger.sessions_left().unwrap(), []);
    // Who lives was never touched.
    let probe = flightproof_frame::protocol::Request::Probe;
    assert!(survivor.call(&probe, &[]).is_ok());
    assert!(survivor.close().unwrap().is_clean());
}

/// Rows 40, 56. How many: 20, or `FLIGHTPROOF_OWNERS`.
#[test]
fn owners_killed_at_random_moments_leave_nothing() {
    let count = std::env::var("FLIGHTPROOF_OWNERS").map_or(20, |n| n.parse().unwrap());
    killed_owners_leave_nothing(count);
}

/// Without any reaper: the container ends with the line, and the engine removes it.
#[test]
fn a_session_ends_with_its_owner_even_if_nobody_reaps() {
    let ground = Ground::new();
    let path = ground.path().join("artifact");
    fs::write(&path, artifact()).unwrap();
    let mut child = owner(&ground, &path, 77);
    let id = ground.opened(&mut child);
    assert!(ground.containers(&id) == 1);
    child.kill().unwrap();
    child.wait().unwrap();
    let end = Instant::now() + Duration::from_secs(10);
    while ground.containers(&id) > 0 {
        assert!(Instant::now() < end, "the container outlives its owner");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Rows 57, 58: another state directory is another ledger, whose owners cannot be judged.
#[test]
fn a_reaper_leaves_the_living_and_other_ledgers_alone() {
    let (ours, theirs) = (Ground::new(), Ground::new());
    let engine = Engine::connect(ours.endpoint()).unwrap();
    let mut session = theirs.open();
    let mut own = ours.open();
    let reaped = reap(&engine, &ours.state_dir(), &mut Unleased).unwrap();
    for kept in [&session, &own] {
        let id = &kept.attestation().session;
        assert!(reaped.iter().all(|r| r.id != *id), "{reaped:?}");
    }
    let probe = flightproof_frame::protocol::Request::Probe;
    assert!(session.call(&probe, &[]).is_ok() && own.call(&probe, &[]).is_ok());
    assert_ne!(
        docker::ledger_id(&ours.state_dir()).unwrap(),
        docker::ledger_id(&theirs.state_dir()).unwrap()
    );
    assert!(session.close().unwrap().is_clean() && own.close().unwrap().is_clean());
}

/// Rows 40, 41: made, never started, its maker dead; and beside it one that only looks like ours.
#[test]
fn half_made_containers_of_dead_owners_and_overdue_ones_go_and_strangers_stay() {
    let ground = Ground::new();
    let engine = Engine::connect(ground.endpoint()).unwrap();
    let ledger = docker::ledger_id(&ground.state_dir()).unwrap();
    let image = format!("sha256:{}", ground.image());
    let make = |id: &str, name: &str, ledger: &str, deadline: u64| {
        let owner = r#"{"pid":1,"started":1,"boot":"another","namespace":"pid:[1]"}"#;
        let label = |name: &str, value: &str| format!("flightproof.{name}={value}");
        let status = Command::new("docker")
            .args(["create", "--network", "none", "--name", name])
            .args([
                "--label",
                &label("session", id),
                "--label",
                &label("ledger", ledger),
            ])
            .args([
                "--label",
                &label("owner", owner),
                "--label",
                &label("fence", "1"),
            ])
            .args(["--label", &label("deadline", &deadline.to_string())])
            .args([&image, "/bin/true"])
            .stdout(Stdio::null())
            .status();
        assert!(status.unwrap().success());
    };
    let other = "f".repeat(32);
    let ids: Vec<String> = (0..4u8).map(|n| ground.random_id(n)).collect();
    let name = |id: &str| format!("flightproof-{id}");
    make(&ids[0], &name(&ids[0]), &ledger, u64::MAX);
    make(&ids[1], &name(&ids[1]), &other, 1);
    make(&ids[2], &name(&ids[2]), &other, u64::MAX);
    make(&ids[3], &format!("stranger-{}", ids[3]), &ledger, 1);
    let reaped = reap(&engine, &ground.state_dir(), &mut Unleased).unwrap();
    let left = ids
        .iter()
        .map(|id| ground.containers(id))
        .collect::<Vec<_>>();
    for stranger in [name(&ids[2]), format!("stranger-{}", ids[3])] {
        Command::new("docker")
            .args(["rm", "-f", &stranger])
            .output()
            .unwrap();
    }
    assert_eq!(left, [0, 0, 1, 1]);
    // The overdue one may have been found first by a reaper of another test.
    assert!(
        reaped.iter().any(|r| r.id == ids[0] && !r.foreign),
        "{reaped:?}"
    );
    assert!(
        reaped.iter().all(|r| r.foreign == (r.id != ids[0])),
        "{reaped:?}"
    );
}
