//! Where a passphrase comes from: a file, a descriptor, or a person at a terminal. Never an argument,
//! which every process of the machine can read.

use super::key_file;
use crate::{FlightsCode, regular};
use flightproof_certifier::CertifierCode;
use flightproof_core::Refusal;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use std::io::{IsTerminal as _, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Names a file with the passphrase.
const VARIABLE: &str = "FLIGHTPROOF_PASSPHRASE_FILE";
/// Longest passphrase in bytes.
const MAX: u64 = 1024;
/// Shortest new passphrase in characters: below it the work of opening a key protects nothing.
const MIN: usize = 8;

/// The passphrase of a key that exists.
///
/// # Errors
/// `KEY_LOCKED` if none can be had; `KEY_FILE` for a file that cannot be used.
pub(super) fn of_existing(key: &Path, named: Option<&Path>) -> Result<Zeroizing<Vec<u8>>, Refusal> {
    match place(named) {
        Some(file) => read(&file),
        None if std::io::stdin().is_terminal() => {
            ask(&format!("Passphrase of {}: ", key.display()))
        }
        None => Err(CertifierCode::KeyLocked.refuse(key.display()).into()),
    }
}

/// The passphrase of a key that is about to be made.
///
/// # Errors
/// `PASSPHRASE_MISSING` if none can be had, if it is too short, or if a person typed two different
/// ones.
pub(super) fn of_new(named: Option<&Path>) -> Result<Zeroizing<Vec<u8>>, Refusal> {
    let missing = |why: &str| Refusal::from(FlightsCode::PassphraseMissing.refuse(why));
    let passphrase = match place(named) {
        Some(file) => read(&file)?,
        None if std::io::stdin().is_terminal() => {
            let first = ask("New passphrase: ")?;
            if first != ask("Once more: ")? {
                return Err(missing("the two are different"));
            }
            first
        }
        None => {
            return Err(missing(
                "no file with one was named, and there is no terminal",
            ));
        }
    };
    if String::from_utf8_lossy(&passphrase).chars().count() < MIN {
        return Err(missing(&format!("shorter than {MIN} characters")));
    }
    Ok(passphrase)
}

fn place(named: Option<&Path>) -> Option<PathBuf> {
    let variable = || std::env::var_os(VARIABLE).filter(|v| !v.is_empty());
    named
        .map(Path::to_owned)
        .or_else(|| variable().map(PathBuf::from))
}

/// The first line of a file or descriptor, without its end.
fn read(path: &Path) -> Result<Zeroizing<Vec<u8>>, Refusal> {
    let file = regular::open_named(path).map_err(|e| key_file(path, e))?;
    let meta = file.metadata().map_err(|e| key_file(path, e))?;
    if meta.is_file() && meta.permissions().mode() & 0o077 != 0 {
        return Err(key_file(path, "others may read it"));
    }
    let mut all = Zeroizing::new(Vec::new());
    file.take(MAX + 2)
        .read_to_end(&mut all)
        .map_err(|e| key_file(path, e))?;
    let line = all.split(|b| *b == b'\n').next().unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() as u64 > MAX {
        return Err(key_file(path, format!("a line of more than {MAX} bytes")));
    }
    Ok(Zeroizing::new(line.to_vec()))
}

/// Asks at the terminal, without showing what is typed. Keys that would stop the program end the
/// question instead: a program that dies here would leave a terminal that shows nothing.
fn ask(prompt: &str) -> Result<Zeroizing<Vec<u8>>, Refusal> {
    let terminal = |e: std::io::Error| key_file(Path::new("the terminal"), e);
    let hidden = Hidden::new().map_err(terminal)?;
    let _ = std::io::stderr().write_all(prompt.as_bytes());
    let mut line = Zeroizing::new(Vec::new());
    let ended = loop {
        let mut byte = Zeroizing::new([0]);
        let got = rustix::io::read(std::io::stdin(), &mut *byte);
        match (got.map_err(|e| terminal(e.into()))?, byte[0]) {
            (0, _) | (_, ETX | EOT | FS | SUB) => break false,
            (_, b'\n' | b'\r') => break true,
            (_, BACKSPACE | DELETE) => drop(line.pop()),
            (_, byte) if (line.len() as u64) < MAX => line.push(byte),
            _ => break false,
        }
    };
    drop(hidden);
    let _ = std::io::stderr().write_all(b"\n");
    match ended {
        true => Ok(line),
        false => Err(key_file(
            Path::new("the terminal"),
            "no passphrase was given",
        )),
    }
}

/// Ctrl-C, Ctrl-D, Ctrl-\\ and Ctrl-Z, as a terminal sends them.
const ETX: u8 = 3;
const EOT: u8 = 4;
const FS: u8 = 28;
const SUB: u8 = 26;
const BACKSPACE: u8 = 8;
const DELETE: u8 = 127;

/// A terminal that shows nothing and hands over every key, until this is dropped.
struct Hidden(Termios);

impl Hidden {
    fn new() -> std::io::Result<Self> {
        let before = tcgetattr(std::io::stdin())?;
        let mut quiet = before.clone();
        let modes = LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
        quiet.local_modes.remove(modes);
        tcsetattr(std::io::stdin(), OptionalActions::Flush, &quiet)?;
        Ok(Self(before))
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Flush, &self.0);
    }
}
