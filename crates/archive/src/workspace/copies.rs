//! What a name is a copy of: editors, package managers and people put something around it.

/// The names that a folded name is a copy of, itself first: `id_rsa.bak~` is one of `id_rsa.bak` and
/// of `id_rsa`.
pub(super) fn originals(name: &str) -> Vec<&str> {
    let mut names = vec![name];
    let mut rest = name;
    let mut swapped = false;
    while let Some(inner) = original(rest) {
        swapped |= SWAPS.iter().any(|ending| rest.ends_with(ending));
        names.push(inner);
        rest = inner;
    }
    // A swap file has a dot in front, which the file may not have.
    if let Some(inner) = rest
        .strip_prefix('.')
        .filter(|inner| swapped && holds(inner))
    {
        names.push(inner);
    }
    names
}

/// One layer less, if there is one and something is left.
fn original(name: &str) -> Option<&str> {
    let inner = saved(name)
        .or_else(|| ended(name))
        .or_else(|| counted(name));
    inner.filter(|inner| holds(inner))
}

/// `#NAME#`, as Emacs saves it, and `copy of NAME`.
fn saved(name: &str) -> Option<&str> {
    let hashed = name
        .strip_prefix('#')
        .and_then(|name| name.strip_suffix('#'));
    hashed.or_else(|| name.strip_prefix("copy of "))
}

fn ended(name: &str) -> Option<&str> {
    let bare = name.trim_end_matches('~');
    if bare.len() < name.len() {
        return Some(bare);
    }
    let mut endings = SWAPS.iter().chain(&ENDINGS);
    endings
        .find_map(|ending| name.strip_suffix(ending))
        .map(str::trim_end)
}

/// What has a number behind it: `NAME.1`, `NAME.bak2`, `NAME copy 2`, `NAME (2)`.
fn counted(name: &str) -> Option<&str> {
    let bracketed = name.strip_suffix(')');
    let text = bracketed.unwrap_or(name);
    let bare = text.trim_end_matches(|c: char| c.is_ascii_digit());
    if bare.len() == text.len() {
        return None;
    }
    if bracketed.is_some() {
        return bare.strip_suffix('(').map(str::trim_end);
    }
    bare.strip_suffix(".~")
        .or_else(|| bare.strip_suffix('.'))
        .or_else(|| ended(bare.trim_end()))
}

/// Whether more than dots is left.
fn holds(name: &str) -> bool {
    name.chars().any(|c| c != '.')
}

/// Of swap files, which have a dot in front.
const SWAPS: [&str; 4] = [".swp", ".swo", ".swn", ".kate-swp"];

/// Folded, as the names are.
const ENDINGS: [&str; 33] = [
    ".bak",
    ".bk",
    ".bkp",
    ".old",
    ".orig",
    ".save",
    ".saved",
    ".backup",
    ".copy",
    ".tmp",
    ".temp",
    ".rej",
    ".new",
    ".prev",
    ".rpmsave",
    ".rpmorig",
    ".rpmnew",
    ".dpkg-old",
    ".dpkg-dist",
    ".dpkg-new",
    ".dpkg-bak",
    ".ucf-old",
    "-backup",
    "_backup",
    "-bak",
    "_bak",
    "-old",
    "_old",
    " - copy",
    " copy",
    "-copy",
    "_copy",
    "(copy)",
];
