//! What lines that did not change find under a name: a new file can lie where they look first.

use super::Language;
use super::names::{C_SYSTEM, C_SYSTEM_FOLDERS, has};
use flightproof_core::RelPath;

/// Folders that every build in C looks into before those of the system.
const ROOTS: [&str; 2] = ["include", "src"];
/// Longest line in which a name is looked for, bytes.
const MAX_LINE: usize = 4_096;

/// Whether a new file is what a line of one of these texts finds from now on. That line found another one
/// before, since the baseline works.
pub(super) fn takes_over<'a>(
    language: Language,
    new: &RelPath,
    texts: impl Iterator<Item = (&'a str, &'a [u8])>,
) -> bool {
    let new = new.as_str();
    if language == Language::C && is_of_the_system(new) {
        return true;
    }
    let mut lines = texts.flat_map(|(path, text)| {
        let lines = text.split(|byte| *byte == b'\n');
        lines.filter_map(move |line| {
            let line = std::str::from_utf8(line).ok()?;
            (line.len() <= MAX_LINE).then_some((path, line))
        })
    });
    match language {
        Language::C => lines.any(|(path, line)| includes(new, path, line)),
        Language::JavaScript | Language::TypeScript => {
            lines.any(|(path, line)| requires(new, path, line))
        }
        Language::Python => lines.any(|(_, line)| imports(new, line)),
        Language::Go => false,
    }
}

/// Whether a header has a name that headers of the system have: they include each other.
fn is_of_the_system(new: &str) -> bool {
    let below = ROOTS
        .iter()
        .find_map(|root| new.strip_prefix(root)?.strip_prefix('/'));
    below.is_some_and(|name| match name.split_once('/') {
        Some((folder, _)) => has(C_SYSTEM_FOLDERS, folder),
        None => {
            has(C_SYSTEM, name.strip_suffix(".h").unwrap_or_default()) || name.ends_with("intrin.h")
        }
    })
}

/// `#include` and `__has_include`, in the folder of the file and in those of the build.
fn includes(new: &str, path: &str, line: &str) -> bool {
    if !line.contains("include") {
        return false;
    }
    let mut names = line.split(['"', '<', '>']).skip(1);
    let roots = ROOTS.into_iter().chain([folder(path)]);
    names.any(|name| roots.clone().any(|root| at(root, name) == new))
}

/// `require('./x')` finds `x.js` before `x/index.js`.
fn requires(new: &str, path: &str, line: &str) -> bool {
    let mut names = line.split(['"', '\'', '`']).skip(1);
    names.any(|name| {
        let found = at(folder(path), name);
        name.starts_with('.')
            && new.strip_prefix(&found).is_some_and(|rest| {
                matches!(rest, "" | ".js" | ".cjs" | ".mjs" | ".ts" | ".cts" | ".mts")
            })
    })
}

/// `import x` finds `x.py` beside the program before the standard library's.
fn imports(new: &str, line: &str) -> bool {
    let name = new
        .strip_suffix("/__init__.py")
        .or_else(|| new.strip_suffix(".py"));
    let Some(name) = name else { return false };
    let module = name.rsplit('/').next().unwrap_or_default();
    let line = line.trim_start();
    let first = |name: &str| {
        let name = name.trim_start();
        let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        name.get(..end.unwrap_or(name.len())) == Some(module)
    };
    let top = !name.contains('/');
    if let Some(rest) = line.strip_prefix("from ") {
        return top && first(rest);
    }
    let names = line.strip_prefix("import ");
    top && names.is_some_and(|names| names.split(',').any(first))
}

fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// A path below a folder, with its dots read.
fn at(folder: &str, name: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in name.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}
