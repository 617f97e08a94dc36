//! What a hostile program tries. None of it may work, and the session is as good after as before.

use crate::bubble::{Bubble, case, text};
use crate::duties::exited;
use flightproof_core::Bytes;
use flightproof_frame::protocol::{Outcome, Status};
use std::time::{Duration, Instant};

/// Runs the attack with a short wall clock and proves that the session still serves an honest case.
fn attack(bubble: &mut Bubble, act: &str) -> Outcome {
    attack_within(bubble, act, 300)
}

/// A wall clock for what must come to its own end, milliseconds, also on a busy machine.
const ITS_OWN_END: u64 = 10_000;

/// The same with another wall clock, milliseconds.
fn attack_within(bubble: &mut Bubble, act: &str, wall_ms: u64) -> Outcome {
    let mut exec = case(&[act]);
    exec.limits.wall_ms = wall_ms;
    let started = Instant::now();
    let outcome = bubble.exec(&exec);
    assert!(
        started.elapsed() < Duration::from_millis(wall_ms) + Duration::from_secs(10),
        "{act} took {:?}",
        started.elapsed()
    );
    let look = bubble.attack("look");
    assert_eq!(text(&look.stdout), CLEAN, "after {act}");
    outcome
}

/// What a case sees of an untouched scratch: no leftover, its own mode, no subdirectory, nothing on
/// the directory itself, and the inode number of the first file of a file system.
const CLEAN: &str = "stat -1 ENOENT\nmode 448 ok\nentries 2 ok\nmark -1 ENODATA\nold 0 ok\n/case/number 3 ok\ninode 2 ok\n";

#[test]
fn a_fork_bomb_ends_with_its_wall_clock() {
    let mut bubble = Bubble::with_attacker();
    assert_eq!(attack(&mut bubble, "bomb").status, Status::TimedOut);
    attack(&mut bubble, "bomb-and-leave");
}

#[test]
fn nothing_outlives_its_case() {
    let mut bubble = Bubble::with_attacker();
    let outcome = attack_within(&mut bubble, "daemon", ITS_OWN_END);
    assert_eq!((outcome.status, outcome.complete), (exited(0), true));
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(text(&bubble.attack("look").stdout), CLEAN);
}

#[test]
fn a_grandchild_that_holds_the_pipe_delays_nobody() {
    let mut bubble = Bubble::with_attacker();
    let mut exec = case(&["hold-pipe"]);
    exec.limits.wall_ms = 60_000;
    let started = Instant::now();
    let outcome = bubble.exec(&exec);
    assert!(started.elapsed() < Duration::from_secs(30));
    assert_eq!(outcome.status, exited(3));
    assert_eq!(
        (text(&outcome.stdout).as_str(), outcome.complete),
        ("before", true)
    );
}

#[test]
fn whoever_does_not_end_is_ended() {
    let mut bubble = Bubble::with_attacker();
    for act in ["forever", "stop", "close-and-stay"] {
        let outcome = attack(&mut bubble, act);
        assert_eq!(
            (outcome.status, outcome.complete),
            (Status::TimedOut, true),
            "{act}"
        );
    }
}

#[test]
fn a_flood_is_cut_at_its_limit() {
    let mut bubble = Bubble::with_attacker();
    let outcome = attack_within(&mut bubble, "flood", ITS_OWN_END);
    assert_eq!(
        (outcome.status, outcome.complete),
        (Status::OutputLimit, false)
    );
    assert_eq!(outcome.stdout.len(), 100_000);
}

#[test]
fn input_nobody_reads_is_no_fault() {
    let mut bubble = Bubble::with_attacker();
    let mut whoami = case(&["whoami"]);
    whoami.stdin = Bytes(vec![0; 1 << 20]);
    assert_eq!(bubble.exec(&whoami).status, exited(0));
}

#[test]
fn litter_is_cleared_whatever_it_is() {
    let mut bubble = Bubble::with_attacker();
    for act in ["litter", "fill"] {
        let outcome = attack_within(&mut bubble, act, ITS_OWN_END);
        assert_eq!(outcome.status, exited(0), "{act}");
    }
}

#[test]
fn no_signal_reaches_anybody_else() {
    let mut bubble = Bubble::with_attacker();
    let outcome = bubble.attack("kill");
    assert_eq!(
        text(&outcome.stdout),
        "all -1 ESRCH\ninit -1 EPERM\ngroup 0 ok\n"
    );
}

#[test]
fn no_memory_or_descriptor_of_the_init_is_reached() {
    let mut bubble = Bubble::with_attacker();
    let outcome = bubble.attack("trace");
    let wanted = "attach -1 EPERM\nseize -1 EPERM\nread -1 EPERM\ngetfd -1 EPERM\n";
    assert_eq!(text(&outcome.stdout), wanted);
}

#[test]
fn no_file_but_the_scratch_is_reached() {
    let mut bubble = Bubble::with_attacker();
    let seen = text(&bubble.attack("reach").stdout);
    assert_eq!(seen.lines().count(), 17, "{seen}");
    assert!(seen.lines().all(|line| line.contains(" -1 E")), "{seen}");
    assert_eq!(bubble.attack("whoami").status, exited(0));
}

#[test]
fn nothing_of_the_runner_is_inherited() {
    let mut bubble = Bubble::with_attacker();
    assert_eq!(text(&bubble.attack("descriptors").stdout), "");
    let mut guarded = case(&["descriptors"]);
    guarded.selector = Some(1);
    assert_eq!(text(&bubble.exec(&guarded).stdout), "3 4 ");
}

#[test]
fn the_network_ends_a_case() {
    let mut bubble = Bubble::with_attacker();
    let outcome = bubble.attack("internet");
    assert_eq!(outcome.status, Status::Signaled { signal: 31 });
    assert_eq!(text(&outcome.stdout), "");
}

#[test]
fn a_program_in_memory_is_not_executed() {
    let mut bubble = Bubble::with_attacker();
    let outcome = bubble.attack("memory-exec");
    assert_eq!(text(&outcome.stdout), "memfd 0 ok\nexec -1 EPERM\n");
}

/// A program that knew whether it is the pristine or the mutated one, or how many runs there were
/// before it, could behave while it is judged and fall over only where that counts as a kill.
#[test]
fn a_program_learns_neither_its_name_nor_the_age_of_the_session() {
    let mut bubble = Bubble::with_attacker();
    bubble.promote_as("/toolchain/attacker", "other");
    std::thread::sleep(Duration::from_millis(400));
    for program in ["attacker", "other"] {
        let mut exec = case(&["who-am-i-really"]);
        exec.program = program.to_owned();
        let seen = bubble.exec(&exec);
        let wanted = "program /dev/fd/6 program\nshort -1 ENOENT\nown -1 ENOENT\nagain -1 EBADF\n";
        assert_eq!(
            (text(&seen.stdout).as_str(), seen.status),
            (wanted, exited(0)),
            "{program}"
        );
    }
}

#[test]
fn mounts_do_not_number_the_runs() {
    let mut bubble = Bubble::with_attacker();
    let mut apart = || -> i64 {
        text(&bubble.attack("mounts").stdout)
            .trim()
            .parse()
            .unwrap()
    };
    let seen: Vec<i64> = (0..70).map(|_| apart()).collect();
    // Other tests mount things, too, but not that many each time that one run starts.
    let least = seen[50..].iter().map(|apart| apart.abs()).min().unwrap();
    assert!(least < 50, "{seen:?}");
}

#[test]
fn the_loader_starts_no_program_of_the_scratch() {
    let mut bubble = Bubble::with_attacker();
    let seen = text(&bubble.attack("loader").stdout);
    assert_eq!(seen, "loader -1 EACCES\n");
}
