mod history;

use super::plan::{Change, Plan, What};

/// One attack: what is built, what must be said about it, and an honest repository next to it that
/// must be taken.
#[derive(Debug, Clone, Copy)]
pub struct Attack {
    /// A short name.
    pub name: &'static str,
    /// The hostile repository.
    pub plan: Plan,
    /// What must be said.
    pub answer: Answer,
    /// The benign twin: as near as can be, and taken.
    pub twin: Plan,
}

/// What must be said about a hostile repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Refused with this code.
    Refused(&'static str),
    /// Taken as if the lie were not there: it must change nothing and run nothing.
    Unmoved,
}

/// Every attack.
pub fn attacks() -> Vec<Attack> {
    [
        entries(),
        names(),
        shapes(),
        history::commits(),
        history::lies(),
        history::programs(),
    ]
    .concat()
}

const fn refused(name: &'static str, plan: Plan, code: &'static str, twin: Plan) -> Attack {
    Attack {
        name,
        plan,
        answer: Answer::Refused(code),
        twin,
    }
}

const fn change(change: Change) -> Plan {
    Plan {
        change,
        ..Plan::HONEST
    }
}

const fn new(mode: &'static str, name: &'static [u8], what: What) -> Plan {
    change(Change::Add {
        at: "src",
        mode,
        name,
        what,
    })
}

const fn file(name: &'static [u8]) -> Plan {
    new("100644", name, What::Blob(b"new\n"))
}

fn entries() -> Vec<Attack> {
    let plain = file(b"new");
    let folder = new("40000", b"new", What::Directory);
    let text = What::Blob(b"new\n");
    let mode = "importer/TREE_MODE";
    let mut all = vec![
        refused(
            "a symlink added",
            new("120000", b"new", What::Blob(b"/etc/passwd")),
            "importer/SYMLINK_CHANGED",
            plain,
        ),
        refused(
            "a file made a symlink",
            change(Change::Mode("120000")),
            "importer/SYMLINK_CHANGED",
            change(Change::Mode("100755")),
        ),
        refused(
            "a symlink removed",
            change(Change::Remove("link")),
            "importer/SYMLINK_CHANGED",
            change(Change::Remove("run.sh")),
        ),
        refused(
            "a submodule added",
            new("160000", b"new", What::Commit),
            "importer/GITLINK_CHANGED",
            folder,
        ),
        refused(
            "a submodule removed",
            change(Change::Remove("module")),
            "importer/GITLINK_CHANGED",
            change(Change::Remove("src")),
        ),
        refused(
            "an empty directory",
            new("40000", b"new", What::EmptyDirectory),
            "importer/EMPTY_TREE",
            folder,
        ),
        refused(
            "a file that is not there",
            new("100644", b"new", What::Missing),
            "importer/OBJECT_MISSING",
            plain,
        ),
        refused(
            "a commit as a file",
            new("100644", b"new", What::Commit),
            "importer/OBJECT_KIND",
            plain,
        ),
        refused(
            "a file as a directory",
            new("40000", b"new", text),
            "importer/OBJECT_KIND",
            folder,
        ),
        refused(
            "a directory as a file",
            new("100644", b"new", What::Directory),
            "importer/OBJECT_KIND",
            plain,
        ),
        refused(
            "an entry of no object",
            new("100644", b"new", What::Null),
            "importer/TREE_MALFORMED",
            plain,
        ),
        refused(
            "a group-writable file",
            change(Change::Mode("100664")),
            mode,
            change(Change::Mode("100755")),
        ),
    ];
    for (name, raw) in [
        ("a submodule in disguise", "170000"),
        ("another one", "150000"),
        ("a mode without end", "777777777777"),
        ("a set-uid file", "104755"),
        ("a new group-writable file", "100664"),
        ("a mode with a zero before it", "0100644"),
        ("a mode without permissions", "100000"),
        ("no mode", ""),
    ] {
        all.push(refused(name, new(raw, b"new", text), mode, plain));
    }
    all.push(refused(
        "a directory in an old spelling",
        new("040000", b"new", What::Directory),
        mode,
        folder,
    ));
    all
}

fn names() -> Vec<Attack> {
    const GIT: &str = "importer/GIT_NAME";
    const NAME: &str = "importer/NAME_REFUSED";
    const CLASH: &str = "importer/NAME_COLLISION";
    const FORM: &str = "importer/TREE_MALFORMED";
    const LONG: &str = "importer/PATH_TOO_LONG";
    let all: [(&'static str, &'static [u8], &'static str, &'static [u8]); 34] = [
        ("git's folder", b".git", GIT, b".gitx"),
        ("git's folder in capitals", b".GIT", GIT, b"GIT"),
        ("git's folder by its short name", b"git~1", GIT, b"git~"),
        ("a second short name", b"git~2", NAME, b"git2"),
        ("git's folder and a space", b".git ", GIT, b".git x"),
        ("git's folder and a dot", b".git.", GIT, b".git.x"),
        (
            "git's folder as a stream",
            b".git::$INDEX_ALLOCATION",
            GIT,
            b"git$INDEX",
        ),
        ("git's folder behind a backslash", b"a\\.git", GIT, b"a.git"),
        (
            "git's folder with a joiner",
            ".g\u{200c}it".as_bytes(),
            GIT,
            "gït".as_bytes(),
        ),
        (
            "git's folder with a mark",
            "\u{feff}.git".as_bytes(),
            GIT,
            b"x.git",
        ),
        ("a backslash", b"..\\x", NAME, b"..x"),
        ("a drive", b"C:", NAME, b"C"),
        ("a stream", b"a:b", NAME, b"a_b"),
        ("a device", b"aux.txt", NAME, b"auxx.txt"),
        ("a port", b"COM1", NAME, b"COM10"),
        ("a dot at the end", b"x.", NAME, b"x.y"),
        ("a space at the end", b"x ", NAME, b"x y"),
        ("a line feed", b"a\nb", NAME, b"a-b"),
        ("an escape", b"a\x1b[31m", NAME, b"a[31m"),
        ("a delete", b"a\x7f", NAME, b"a~"),
        (
            "a C1 control",
            "a\u{9b}2J".as_bytes(),
            NAME,
            "aß".as_bytes(),
        ),
        (
            "text turned round",
            "a\u{202e}txt.exe".as_bytes(),
            NAME,
            "txt.אבג".as_bytes(),
        ),
        (
            "a zero-width space",
            "a\u{200b}b".as_bytes(),
            NAME,
            "äb".as_bytes(),
        ),
        ("not UTF-8", b"\xff\xfe", NAME, "ÿþ".as_bytes()),
        (
            "letters taken apart",
            "e\u{301}".as_bytes(),
            "importer/PATH_UNFIT",
            "é".as_bytes(),
        ),
        ("the same in another case", b"LIB.rs", CLASH, b"libs.rs"),
        (
            "the same with a joiner",
            "li\u{ad}b.rs".as_bytes(),
            NAME,
            b"li-b.rs",
        ),
        ("a third of a clashing pair", b"XT_TCPMSS.H", CLASH, b"xt.h"),
        ("a name with a slash", b"a/b", FORM, b"a-b"),
        ("the directory itself", b".", FORM, b".a"),
        ("the directory above", b"..", FORM, b"..a"),
        ("no name", b"", FORM, b"_"),
        ("a name of 256 bytes", &[b'n'; 256], LONG, &[b'n'; 255]),
        (
            "our own staging name",
            b".prime-agent-staging-1",
            "importer/PATH_UNFIT",
            b".prime-agent",
        ),
    ];
    all.into_iter()
        .map(|(name, bad, code, good)| refused(name, file(bad), code, file(good)))
        .collect()
}

fn shapes() -> Vec<Attack> {
    let plain = file(b"new");
    vec![
        refused(
            "one name twice",
            change(Change::Duplicate),
            "importer/TREE_DUPLICATE",
            plain,
        ),
        refused(
            "out of order",
            change(Change::Unsorted),
            "importer/TREE_UNSORTED",
            plain,
        ),
        refused(
            "file and directory of one name",
            change(Change::FileAndDirectory),
            "importer/TREE_DUPLICATE",
            plain,
        ),
        refused(
            "ten million paths in nine objects",
            change(Change::Bomb {
                width: 10,
                levels: 7,
            }),
            "importer/CHANGES_OVER_LIMIT",
            change(Change::Bomb {
                width: 10,
                levels: 3,
            }),
        ),
        refused(
            "a wide directory many times",
            change(Change::Bomb {
                width: 300,
                levels: 3,
            }),
            "importer/CHANGES_OVER_LIMIT",
            change(Change::Bomb {
                width: 30,
                levels: 2,
            }),
        ),
        refused(
            "a directory wider than the limit",
            change(Change::Many(16_400)),
            "importer/ENTRIES_OVER_LIMIT",
            change(Change::Many(1_000)),
        ),
        refused(
            "2,000 directories deep",
            change(Change::Deep(2_000)),
            "importer/DEPTH_OVER_LIMIT",
            change(Change::Deep(63)),
        ),
        refused(
            "too many paths",
            change(Change::Many(1_100)),
            "importer/CHANGES_OVER_LIMIT",
            change(Change::Many(1_024)),
        ),
        refused(
            "too many objects",
            change(Change::Distinct(1_022)),
            "importer/OBJECTS_OVER_LIMIT",
            change(Change::Distinct(1_021)),
        ),
        refused(
            "too many bytes",
            change(Change::Large((2 << 20) + 1)),
            "importer/BYTES_OVER_LIMIT",
            change(Change::Large(1 << 20)),
        ),
        refused(
            "too large a bundle",
            change(Change::Noise(140_000)),
            "importer/BUNDLE_OVER_LIMIT",
            change(Change::Noise(120_000)),
        ),
        refused(
            "a repository in the tree",
            change(Change::Nested(&["HEAD", "config", "objects", "refs"])),
            "importer/NESTED_REPOSITORY",
            change(Change::Nested(&["HEAD", "config", "objects"])),
        ),
        refused(
            "no change",
            change(Change::Nothing),
            "importer/NO_CHANGE",
            plain,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_attack_has_a_name_of_its_own() {
        let mut names: Vec<_> = attacks().iter().map(|a| a.name).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
        assert!(all > 90, "{all}");
    }
}
