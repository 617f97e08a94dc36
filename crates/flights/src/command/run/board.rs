//! How far a run is, on standard error: one bar on a terminal, lines elsewhere.

use crate::show::{Format, Speak, Voice};
use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write as _};
use std::sync::{Arc, Mutex};

/// Cells of the bar.
const CELLS: usize = 24;
/// Columns of the bar's line: more would wrap, and a wrapped line cannot be drawn over.
const MOST: usize = 76;

/// The state of a run that all its flights report to.
pub(super) struct Board {
    total: usize,
    bar: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    done: usize,
    failed: usize,
    running: BTreeMap<String, &'static str>,
}

impl Board {
    /// A board for so many flights.
    pub(super) fn new(total: usize, format: Format) -> Self {
        let smart = std::env::var_os("TERM").is_some_and(|term| term != "dumb");
        Self {
            total,
            bar: format == Format::Human && smart && std::io::stderr().is_terminal(),
            state: Mutex::default(),
        }
    }

    /// How a flight speaks of its stages: to the bar, or in lines of its own.
    pub(super) fn voice(self: &Arc<Self>, name: &str, lines: Speak, together: bool) -> Voice {
        if self.bar {
            let (board, name) = (Arc::clone(self), name.to_owned());
            return Voice::Told(Box::new(move |stage| board.stage(&name, stage)));
        }
        match lines {
            Speak::Nothing => Voice::Nothing,
            Speak::Stages if together => Voice::Lines(format!("{name} ")),
            Speak::Stages => {
                let _ = writeln!(std::io::stderr(), "{name}");
                Voice::Lines(String::new())
            }
        }
    }

    fn stage(&self, name: &str, stage: &'static str) {
        self.change(|state| {
            state.running.insert(name.to_owned(), stage);
        });
    }

    /// A flight ended.
    pub(super) fn ended(&self, name: &str, failed: bool) {
        self.change(|state| {
            state.running.remove(name);
            state.done += 1;
            state.failed += usize::from(failed);
        });
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        // A flight that panicked says nothing more; the others go on.
        let Ok(mut state) = self.state.lock() else {
            return;
        };
        change(&mut state);
        if self.bar {
            let _ = write!(std::io::stderr(), "\r{}\x1b[K", line(&state, self.total));
        }
    }
}

impl Drop for Board {
    /// The bar makes room for the table.
    fn drop(&mut self) {
        if self.bar {
            let _ = std::io::stderr().write_all(b"\r\x1b[K");
        }
    }
}

fn line(state: &State, total: usize) -> String {
    let filled = CELLS * state.done / total.max(1);
    let bar = "#".repeat(filled) + &".".repeat(CELLS - filled);
    let failed = match state.failed {
        0 => String::new(),
        failed => format!(", {failed} FAILED"),
    };
    let running = state
        .running
        .iter()
        .map(|(name, stage)| format!("  {name}: {stage}"));
    let text = format!(
        "[{bar}] {}/{total}{failed}{}",
        state.done,
        running.collect::<String>()
    );
    crate::show::cut(&text, MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_says_what_is_done_what_failed_and_what_flies() {
        let mut state = State::default();
        assert_eq!(line(&state, 0), format!("[{}] 0/0", ".".repeat(24)));
        state.done = 3;
        state.failed = 1;
        state.running.insert("pricing".into(), "mutation");
        assert_eq!(
            line(&state, 4),
            format!(
                "[{}{}] 3/4, 1 FAILED  pricing: mutation",
                "#".repeat(18),
                ".".repeat(6)
            )
        );
        state.running.insert("x".repeat(200), "build");
        assert_eq!(line(&state, 4).chars().count(), MOST);
    }
}
