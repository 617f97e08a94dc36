//! How far long work got, on standard error: a bar on a terminal, a line now and then elsewhere.

use crate::show::{Format, count};
use flightproof_archive::Progress;
use std::io::{IsTerminal as _, Write as _};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Between two drawings on a terminal: a tenth of a second looks continuous.
const REDRAW: Duration = Duration::from_millis(100);
/// Between two lines of a log.
const LINE: Duration = Duration::from_secs(5);
/// Cells of the bar.
const CELLS: u64 = 30;

/// Counts files and bytes, and shows them.
pub struct Meter {
    what: &'static str,
    form: Form,
    /// Bytes of the whole, where they are known before.
    total: Option<u64>,
    files: AtomicU64,
    bytes: AtomicU64,
    shown: Mutex<Instant>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Bar,
    Lines,
    Silent,
}

impl Meter {
    /// A meter for people; results for programs come without.
    pub fn new(what: &'static str, total: Option<u64>, format: Format) -> Self {
        let smart = std::env::var_os("TERM").is_some_and(|term| term != "dumb");
        let form = match format {
            Format::Json => Form::Silent,
            Format::Human if smart && std::io::stderr().is_terminal() => Form::Bar,
            Format::Human => Form::Lines,
        };
        Self {
            what,
            form,
            total,
            files: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            shown: Mutex::new(Instant::now()),
        }
    }

    fn draw(&self) {
        let (files, bytes) = (
            self.files.load(Ordering::Relaxed),
            self.bytes.load(Ordering::Relaxed),
        );
        let text = match (self.form, self.total) {
            (Form::Silent, _) => return,
            (Form::Bar, total) => format!(
                "\r  {} {}{}\x1b[K",
                self.what,
                bar(bytes, total),
                counts(files, bytes)
            ),
            (Form::Lines, _) => format!("  {} {}\n", self.what, counts(files, bytes)),
        };
        // Progress that cannot be shown is no reason to stop the work.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}

impl Progress for Meter {
    fn advance(&self, files: u64, bytes: u64) {
        self.files.fetch_add(files, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let pause = if self.form == Form::Bar { REDRAW } else { LINE };
        // Whoever comes while another draws has nothing to add.
        if let Ok(mut shown) = self.shown.try_lock()
            && shown.elapsed() >= pause
        {
            *shown = Instant::now();
            self.draw();
        }
    }
}

impl Drop for Meter {
    /// The bar makes room for the result.
    fn drop(&mut self) {
        if self.form == Form::Bar {
            let _ = std::io::stderr().write_all(b"\r\x1b[K");
        }
    }
}

fn bar(bytes: u64, total: Option<u64>) -> String {
    let Some(total) = total.filter(|total| *total > 0) else {
        return String::new();
    };
    let done = bytes.min(total);
    let share = |of: u64| {
        u64::try_from(u128::from(done) * u128::from(of) / u128::from(total)).unwrap_or(of)
    };
    let filled = share(CELLS);
    let cells: String = (0..CELLS)
        .map(|cell| if cell < filled { '#' } else { '.' })
        .collect();
    format!("[{cells}] {:3} %  ", share(100))
}

fn counts(files: u64, bytes: u64) -> String {
    format!("{}, {}", count(files, "file"), size(bytes))
}

/// A size as people read it: `999 bytes`, `1.5 MiB`.
pub fn size(bytes: u64) -> String {
    let units = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1u64 << 10)];
    match units.into_iter().find(|(_, unit)| bytes >= *unit) {
        None => format!("{bytes} bytes"),
        Some((name, unit)) => {
            let (whole, tenths) = (bytes / unit, bytes % unit * 10 / unit);
            format!("{whole}.{tenths} {name}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_cut_to_one_decimal_and_never_rounded_up() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (1023, "1023 bytes"),
            (1024, "1.0 KiB"),
            (1024 * 1024 - 1, "1023.9 KiB"),
            (3 << 19, "1.5 MiB"),
            (u64::MAX, "17179869183.9 GiB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn a_bar_needs_a_total_and_never_exceeds_it() {
        assert_eq!(bar(5, None), "");
        assert_eq!(bar(5, Some(0)), "");
        assert_eq!(
            bar(1, Some(2)),
            format!("[{}{}]  50 %  ", "#".repeat(15), ".".repeat(15))
        );
        assert_eq!(bar(9, Some(2)), format!("[{}] 100 %  ", "#".repeat(30)));
        assert_eq!(
            bar(u64::MAX - 1, Some(u64::MAX)),
            format!("[{}.]  99 %  ", "#".repeat(29))
        );
    }
}
