use super::plan::{Change, CommitPlan, HostLie, Parents, Plan, What};

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
    [entries(), names(), shapes(), commits(), lies(), programs()].concat()
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

const fn written(commit: CommitPlan) -> Plan {
    Plan {
        commit,
        ..Plan::HONEST
    }
}

const fn lying(lie: HostLie) -> Plan {
    Plan {
        lie,
        ..Plan::HONEST
    }
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

fn commits() -> Vec<Attack> {
    const HONEST: CommitPlan = CommitPlan::HONEST;
    let parents = |parents| written(CommitPlan { parents, ..HONEST });
    let author = |author| written(CommitPlan { author, ..HONEST });
    let committer = |committer| {
        written(CommitPlan {
            committer,
            ..HONEST
        })
    };
    let message = |message| written(CommitPlan { message, ..HONEST });
    let header = "importer/COMMIT_HEADER";
    let date = "importer/COMMIT_DATE";
    let text = "importer/COMMIT_TEXT";
    let form = "importer/COMMIT_MALFORMED";
    let place = "importer/NOT_ON_BASELINE";
    let plain = Plan::HONEST;
    vec![
        refused("a root commit", parents(Parents::None), place, plain),
        refused(
            "a merge",
            parents(Parents::Merge),
            "importer/MERGE_COMMIT",
            plain,
        ),
        refused(
            "one parent twice",
            parents(Parents::Twice),
            "importer/MERGE_COMMIT",
            plain,
        ),
        refused(
            "a child of the baseline's sibling",
            parents(Parents::Sibling),
            place,
            plain,
        ),
        refused(
            "a child of the baseline's parent",
            parents(Parents::Grandparent),
            place,
            plain,
        ),
        refused(
            "two committers",
            committer(b"A <a@x.org> 1700000000 +0000\ncommitter B <b@x.org> 1700000000 +0000"),
            header,
            committer(b"B <b@x.org> 1700000000 +0000"),
        ),
        refused(
            "an encoding",
            committer(b"A <a@x.org> 1700000000 +0000\nencoding ISO-2022-JP"),
            header,
            message("Größe\n".as_bytes()),
        ),
        refused(
            "a signature",
            committer(b"A <a@x.org> 1700000000 +0000\ngpgsig -----BEGIN PGP SIGNATURE-----\n x"),
            header,
            plain,
        ),
        refused(
            "an unknown header",
            committer(b"A <a@x.org> 1700000000 +0000\nx y"),
            header,
            plain,
        ),
        refused(
            "a time zone of 100 hours",
            author(b"A <a@x.org> 1700000000 +9999"),
            date,
            author(b"A <a@x.org> 1700000000 +1400"),
        ),
        refused(
            "the year 2200",
            author(b"A <a@x.org> 7258118400 +0000"),
            date,
            plain,
        ),
        refused(
            "the year 1970",
            committer(b"A <a@x.org> 1 +0000"),
            date,
            committer(b"A <a@x.org> 1104537600 +0000"),
        ),
        refused(
            "a date that overflows",
            author(b"A <a@x.org> 18446744073709551617 +0000"),
            date,
            plain,
        ),
        refused(
            "an escape in the author",
            author(b"A\x1b[2J <a@x.org> 1700000000 +0000"),
            text,
            author(b"A [2J <a@x.org> 1700000000 +0000"),
        ),
        refused(
            "an author without a mail",
            author(b"A 1700000000 +0000"),
            form,
            author(b"A <a> 1700000000 +0000"),
        ),
        refused(
            "a NUL in the message",
            message(b"a\0b\n"),
            form,
            message(b"a b\n"),
        ),
        refused(
            "an escape in the message",
            message(b"a\x1b]0;x\x07\n"),
            text,
            message(b"a\tb\n"),
        ),
        refused(
            "a message turned round",
            message("a\u{202e}b\n".as_bytes()),
            text,
            message("אב\n".as_bytes()),
        ),
        refused(
            "a message that is not UTF-8",
            message(b"\xff\n"),
            text,
            message("ÿ\n".as_bytes()),
        ),
        refused(
            "a subject of 2,000 bytes",
            message(&[b's'; 2_000]),
            text,
            message(&[b's'; 1_000]),
        ),
    ]
}

fn lies() -> Vec<Attack> {
    let plain = Plan::HONEST;
    let hash = "importer/OBJECT_HASH_MISMATCH";
    let host = "importer/HOST_UNSUPPORTED";
    let config = |lines| lying(HostLie::Config(lines));
    let unmoved = |name, plan| Attack {
        name,
        plan,
        answer: Answer::Unmoved,
        twin: plain,
    };
    let root = Plan {
        commit: CommitPlan {
            parents: Parents::None,
            ..CommitPlan::HONEST
        },
        ..lying(HostLie::Grafted)
    };
    vec![
        refused(
            "a file with other bytes in a pack",
            lying(HostLie::SwappedBlob),
            hash,
            plain,
        ),
        refused(
            "a file with other bytes, loose",
            lying(HostLie::SwappedLoose),
            hash,
            plain,
        ),
        refused(
            "a root commit grafted onto the baseline",
            root,
            "importer/NOT_ON_BASELINE",
            plain,
        ),
        refused(
            "alternates that lead nowhere",
            lying(HostLie::Alternates),
            "importer/OBJECT_MISSING",
            plain,
        ),
        refused(
            "a promisor that runs a program",
            lying(HostLie::Promisor),
            host,
            plain,
        ),
        refused(
            "a remote that promises",
            config("[remote \"o\"]\n\tpromisor = true\n"),
            host,
            config("[remote \"o\"]\n\turl = x\n"),
        ),
        refused(
            "SHA-256",
            config(
                "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = sha256\n",
            ),
            host,
            plain,
        ),
        refused(
            "references in tables",
            config(
                "[core]\n\trepositoryformatversion = 1\n[extensions]\n\trefStorage = reftable\n",
            ),
            host,
            config(
                "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tpreciousObjects = true\n",
            ),
        ),
        refused(
            "objects over a network",
            lying(HostLie::File("objects/info/http-alternates", "http://x/\n")),
            host,
            plain,
        ),
        unmoved("a replaced commit", lying(HostLie::Replaced)),
        unmoved("a history cut short", lying(HostLie::Shallow)),
        unmoved(
            "a commit graph of nonsense",
            lying(HostLie::File("objects/info/commit-graph", "CGPH nonsense")),
        ),
        unmoved(
            "an index of packs of nonsense",
            lying(HostLie::File(
                "objects/pack/multi-pack-index",
                "MIDX nonsense",
            )),
        ),
    ]
}

fn programs() -> Vec<Attack> {
    let configured: [(&'static str, &'static str); 8] = [
        (
            "a file system monitor",
            "[core]\n\tfsmonitor = touch {canary}\n",
        ),
        ("hooks elsewhere", "[core]\n\thooksPath = .git/evil\n"),
        (
            "a hook in the configuration",
            "[hook \"x\"]\n\tcommand = touch {canary}\n\tevent = reference-transaction\n",
        ),
        (
            "filters",
            "[filter \"x\"]\n\tsmudge = touch {canary}\n\tclean = touch {canary}\n\trequired = true\n[core]\n\tattributesFile = .git/info/attributes\n",
        ),
        (
            "a text converter",
            "[diff]\n\texternal = touch {canary}\n[diff \"x\"]\n\ttextconv = touch {canary}\n",
        ),
        (
            "aliases of what is called",
            "[alias]\n\tcat-file = !touch {canary}\n\trev-parse = !touch {canary}\n\tbundle = !touch {canary}\n",
        ),
        (
            "a pager, an editor, ssh, passwords",
            "[core]\n\tpager = touch {canary}\n\teditor = touch {canary}\n\tsshCommand = touch {canary}\n\taskPass = touch {canary}\n\tgitProxy = touch {canary}\n\talternateRefsCommand = touch {canary}\n[credential]\n\thelper = !touch {canary}\n[gpg]\n\tprogram = touch {canary}\n[uploadpack]\n\tpackObjectsHook = touch {canary}\n",
        ),
        (
            "an include of nonsense",
            "[include]\n\tpath = /nonexistent/{canary}\n[includeIf \"gitdir:/\"]\n\tpath = ../x\n",
        ),
    ];
    let mut all: Vec<Attack> = configured
        .into_iter()
        .map(|(name, lines)| Attack {
            name,
            plan: lying(HostLie::Config(lines)),
            answer: Answer::Unmoved,
            twin: Plan::HONEST,
        })
        .collect();
    for (name, path) in [
        (
            "a hook before references move",
            "hooks/reference-transaction",
        ),
        ("a hook after the index changed", "hooks/post-index-change"),
    ] {
        all.push(Attack {
            name,
            plan: lying(HostLie::Program(path, "#!/bin/sh\ntouch {canary}\n")),
            answer: Answer::Unmoved,
            twin: Plan::HONEST,
        });
    }
    all
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
