use super::{Answer, Attack, refused};
use crate::git::plan::{CommitPlan, HostLie, Parents, Plan};

pub(super) fn commits() -> Vec<Attack> {
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

pub(super) fn lies() -> Vec<Attack> {
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

pub(super) fn programs() -> Vec<Attack> {
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
