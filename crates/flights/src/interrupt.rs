//! Ctrl-C while something flies: sessions are ended first, and the program says so.
//!
//! The signal is blocked, and a thread waits for it. So neither what is being written down nor a program
//! of the same terminal is cut off: a session's processes are killed, whoever waits for them is told, and
//! all of it ends by the way it always ends.

use crate::FlightsCode;
use crate::flight::left_here;
use flightproof_core::{Exit, Refusal};
use flightproof_session::interrupt::interrupt;
use nix::sys::signal::{SigSet, Signal};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long the sessions may take to end. Those of an engine finish what they were asked last.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long the program may go on when nothing of it is left that could be lost.
const MANNERS: Duration = Duration::from_secs(2);
/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(50);

/// The state directory, once somebody watches.
static WATCHED: OnceLock<PathBuf> = OnceLock::new();
/// Whether the signal came.
static CAUGHT: AtomicBool = AtomicBool::new(false);
/// Whether it was said what became of that.
static SAID: AtomicBool = AtomicBool::new(false);

/// From here on Ctrl-C ends the sessions before the program. For the first thread, before it starts any
/// other: threads and children block what whoever starts them blocks. Where whoever started the program
/// wants the signal to be ignored, it is.
///
/// # Errors
/// `STATE_UNAVAILABLE`, if the system does not let it.
pub(crate) fn watch(state: &Path) -> Result<(), Refusal> {
    if is_ignored() || WATCHED.set(state.to_owned()).is_err() {
        return Ok(());
    }
    let unavailable = |e: &dyn std::fmt::Display| {
        Refusal::from(FlightsCode::StateUnavailable.refuse(format!("SIGINT: {e}")))
    };
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGINT);
    signals.thread_block().map_err(|e| unavailable(&e))?;
    let thread = std::thread::Builder::new().name("interrupt".to_owned());
    let state = state.to_owned();
    thread
        .spawn(move || await_signal(signals, &state))
        .map_err(|e| unavailable(&e))?;
    Ok(())
}

/// The mask of ignored signals, as `/proc` says it.
fn is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (Signal::SIGINT as u64 - 1)) != 0)
}

fn await_signal(signals: SigSet, state: &Path) {
    if signals.wait().is_err() {
        return;
    }
    CAUGHT.store(true, Ordering::SeqCst);
    // Who asks a second time does not want to wait.
    let _ = signals.thread_unblock();
    let end = Instant::now() + PATIENCE;
    let mut idle = None;
    while Instant::now() < end {
        // A session that is being opened is found the next time.
        let _ = interrupt(state);
        let nothing = left_here(state).is_ok_and(|left| left.is_empty());
        idle = nothing.then(|| idle.unwrap_or_else(Instant::now));
        if idle.is_some_and(|since| since.elapsed() > MANNERS) {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    say(state);
    std::process::exit(i32::from(Exit::Interrupted.code()));
}

/// How the program ends: as it would have, or stopped.
pub(crate) fn ended(exit: Exit) -> Exit {
    match WATCHED.get() {
        Some(state) if CAUGHT.load(Ordering::SeqCst) => {
            say(state);
            Exit::Interrupted
        }
        _ => exit,
    }
}

/// Says once what became of the sessions.
fn say(state: &Path) {
    if SAID.swap(true, Ordering::SeqCst) {
        return;
    }
    let became = match left_here(state) {
        Ok(left) if left.is_empty() => "its sessions were ended, and nothing is left".to_owned(),
        Ok(left) => format!("left: {}; `flights reap` ends it", left.join(", ")),
        Err(e) => format!("what is left is not known ({e}); `flights reap` ends it"),
    };
    let _ = writeln!(std::io::stderr(), "flights: stopped by SIGINT: {became}");
}
