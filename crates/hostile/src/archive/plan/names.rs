//! Names, each with what is known of it. Nothing here is computed.

/// One name of a path.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) text: &'static str,
    /// How far it comes.
    pub(super) reach: Reach,
    /// What a file system that folds takes it for.
    pub(super) folded: &'static str,
}

/// How far a name comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reach {
    /// No path may have it.
    Nowhere,
    /// The path of an artifact, and no file system.
    Artifact,
    /// Any path, and no file system.
    Manifest,
    /// A captured tree.
    Captured,
    /// Any tree.
    Anywhere,
}

use Reach::{Anywhere, Artifact, Captured, Manifest, Nowhere};

const fn name(text: &'static str, reach: Reach, folded: &'static str) -> Segment {
    Segment {
        text,
        reach,
        folded,
    }
}

/// One byte longer than a file system holds.
const LONG: [u8; 256] = [b'n'; 256];

const fn text(bytes: &'static [u8]) -> &'static str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(_) => "",
    }
}

#[rustfmt::skip] // one name, one line
pub(super) const SEGMENTS: &[Segment] = &[
    name("a", Anywhere, "a"),
    name("a-b", Anywhere, "a-b"),
    name("a.", Captured, "a."),
    name("a b", Anywhere, "a b"),
    name("a!", Anywhere, "a!"),
    name("a.rs", Anywhere, "a.rs"),
    name("a0", Anywhere, "a0"),
    name("ab", Anywhere, "ab"),
    name("A", Anywhere, "a"),
    name("AB", Anywhere, "ab"),
    name("b", Anywhere, "b"),
    name("c", Anywhere, "c"),
    name("src", Anywhere, "src"),
    name("lib.rs", Anywhere, "lib.rs"),
    name("é", Anywhere, "é"),
    name("É", Anywhere, "é"),
    name("ß", Anywhere, "ss"),
    name("ss", Anywhere, "ss"),
    name("ẞ", Anywhere, "ss"),
    name("ﬁ", Anywhere, "fi"),
    name("fi", Anywhere, "fi"),
    name("😀", Anywhere, "😀"),
    name("\u{e000}", Anywhere, "\u{e000}"),
    name("\u{10000}", Anywhere, "\u{10000}"),
    name("\"", Anywhere, "\""),
    name("-rf", Anywhere, "-rf"),
    name("*", Anywhere, "*"),
    name(".a", Anywhere, ".a"),
    name("...a", Anywhere, "...a"),
    name(".gitignore", Anywhere, ".gitignore"),
    name(".prime-agent", Anywhere, ".prime-agent"),
    name("nulled", Anywhere, "nulled"),
    name("com10", Anywhere, "com10"),
    name("\u{378}", Anywhere, "\u{378}"),
    name(text(LONG.split_at(255).0), Anywhere, "n"),
    name(text(&LONG), Manifest, "nn"),
    name("aux", Captured, "aux"),
    name("NUL.txt", Captured, "nul.txt"),
    name("COM¹", Captured, "com1"),
    name("a:b", Captured, "a:b"),
    name("a ", Captured, "a "),
    name("\u{a0}a", Captured, " a"),
    name("exe\u{202e}txt", Captured, "exetxt"),
    name("a\u{200b}", Captured, "a\u{200b}"),
    name("\u{ffff}", Captured, "\u{ffff}"),
    name("git~2", Captured, "git~2"),
    name("gi7eba~1", Captured, "gi7eba~1"),
    name(".git", Manifest, ".git"),
    name(".GIT", Manifest, ".git"),
    name(".g\u{200c}it", Manifest, ".git"),
    name("git~1", Manifest, "git~1"),
    name(".git. ", Manifest, ".git. "),
    name(".git::$INDEX_ALLOCATION", Manifest, ".git::$index_allocation"),
    name("c1\u{85}", Artifact, "c1"),
    name("", Nowhere, ""),
    name(".", Nowhere, ""),
    name("..", Nowhere, ""),
    name("a\\b", Nowhere, ""),
    name("a\0", Nowhere, ""),
    name("a\n", Nowhere, ""),
    name("\u{7f}", Nowhere, ""),
    name("a\u{feff}", Nowhere, ""),
    name("e\u{301}", Nowhere, ""),
    name(".prime-agent-staging-1", Nowhere, ""),
];
