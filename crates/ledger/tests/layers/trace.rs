//! Reads what strace wrote down.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// One call that changed what a disk holds, or told somebody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Call {
    Create(PathBuf),
    Write(PathBuf, u64, Vec<u8>),
    Truncate(PathBuf, u64),
    /// Of a file or a folder.
    Sync(PathBuf),
    Rename(PathBuf, PathBuf),
    Unlink(PathBuf),
    /// Something the victim said.
    Said(String),
}

/// Arguments that make strace write every such call with all its bytes into a file.
pub(crate) fn recording(log: &Path) -> Vec<String> {
    let calls = "trace=open,creat,openat,pwrite64,write,fsync,fdatasync,ftruncate,unlink,unlinkat,rename,renameat,renameat2";
    [
        "-f",
        "-y",
        "-xx",
        "-s",
        "1000000",
        "-e",
        calls,
        "-e",
        "signal=none",
        "-o",
    ]
    .into_iter()
    .map(ToOwned::to_owned)
    .chain([log.to_str().unwrap().to_owned()])
    .collect()
}

/// The calls below a folder, in order. A call that is not understood fails the test: a model that
/// leaves something out would prove nothing.
pub(crate) fn read(log: &Path, below: &Path) -> Vec<Call> {
    let lines = lines(log);
    lines.iter().filter_map(|line| call(line, below)).collect()
}

/// How often each call was made by the thread that made it most: the victim's. strace counts by thread
/// when it strikes.
pub(crate) fn count(log: &Path) -> BTreeMap<String, usize> {
    let text = std::fs::read_to_string(log).unwrap();
    let mut by_thread: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for line in text.lines() {
        let (thread, line) = line.split_once(' ').unwrap();
        let line = line.trim_start();
        if let Some((name, _)) = line
            .split_once('(')
            .filter(|(name, _)| !name.starts_with('<'))
        {
            *by_thread.entry((name, thread)).or_default() += 1;
        }
    }
    let mut counts = BTreeMap::new();
    for ((name, _), times) in by_thread {
        let most = counts.entry(name.to_owned()).or_insert(0);
        *most = times.max(*most);
    }
    counts
}

/// One line for each call, without the number of its thread. Where two threads call at once (the
/// test's and the one that reports on it), strace writes a call's end on a line of its own.
fn lines(log: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(log).unwrap();
    let mut begun = BTreeMap::new();
    let mut whole = Vec::new();
    for line in text.lines() {
        let (thread, line) = line.split_once(' ').unwrap();
        let line = line.trim_start();
        if let Some(beginning) = line.strip_suffix(" <unfinished ...>") {
            begun.insert(thread, beginning.to_owned());
        } else if let Some((_, end)) = line.split_once(" resumed>") {
            let beginning: String = begun.remove(thread).unwrap_or_default();
            whole.push(beginning + end);
        } else {
            whole.push(line.to_owned());
        }
    }
    whole
}

fn call(line: &str, below: &Path) -> Option<Call> {
    let (name, rest) = line.split_once('(')?;
    let (arguments, result) = rest.rsplit_once(" = ")?;
    if result.starts_with('-') {
        return None;
    }
    let arguments = arguments.trim_end().strip_suffix(')').unwrap_or(arguments);
    let strings: Vec<Vec<u8>> = quoted(arguments);
    let path = |n: usize| PathBuf::from(String::from_utf8(strings[n].clone()).unwrap());
    let ours = |path: PathBuf| path.starts_with(below).then_some(path);
    let descriptor = || ours(described(arguments)?);
    let last_number = || -> u64 {
        let number = arguments.rsplit(", ").next().unwrap();
        number
            .parse()
            .unwrap_or_else(|_| panic!("no number at the end of {name}"))
    };
    match name {
        "open" | "openat" if arguments.contains("O_CREAT") => ours(path(0)).map(Call::Create),
        "open" | "openat" => None,
        "pwrite64" => {
            let file = descriptor()?;
            let mut bytes = strings[0].clone();
            bytes.truncate(result.trim().parse().unwrap());
            Some(Call::Write(file, last_number(), bytes))
        }
        "write" => {
            if arguments.starts_with("1<") {
                return Some(Call::Said(
                    String::from_utf8_lossy(&strings[0]).into_owned(),
                ));
            }
            assert_eq!(descriptor(), None, "a write that the model does not know");
            None
        }
        "ftruncate" => Some(Call::Truncate(descriptor()?, last_number())),
        "fsync" | "fdatasync" => descriptor().map(Call::Sync),
        "unlink" => ours(path(0)).map(Call::Unlink),
        "rename" => ours(path(0)).map(|from| Call::Rename(from, path(1))),
        other => {
            let known = strings.iter().all(|s| {
                String::from_utf8(s.clone()).is_ok_and(|s| ours(PathBuf::from(s)).is_none())
            });
            assert!(known, "{other} is not in the model");
            None
        }
    }
}

/// The path behind the first descriptor, written by strace as `5<\x2f\x74…>`.
fn described(arguments: &str) -> Option<PathBuf> {
    let (_, rest) = arguments.split_once('<')?;
    let (path, _) = rest.split_once('>')?;
    let bytes = unescape(path);
    Some(PathBuf::from(String::from_utf8(bytes).ok()?))
}

fn quoted(arguments: &str) -> Vec<Vec<u8>> {
    arguments
        .split('"')
        .skip(1)
        .step_by(2)
        .map(unescape)
        .collect()
}

/// Bytes as strace writes them with `-xx`: each as `\x` and two digits.
fn unescape(text: &str) -> Vec<u8> {
    if !text.starts_with("\\x") {
        return text.as_bytes().to_vec();
    }
    text.split("\\x")
        .skip(1)
        .map(|digits| u8::from_str_radix(digits, 16).unwrap())
        .collect()
}
