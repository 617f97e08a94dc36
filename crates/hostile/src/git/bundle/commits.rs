use super::BundleAttack;
use super::world::{AFTER, Candidate, WHO, World, commit, row, set, tree_bytes};
use crate::git::{hex, id_of};

const FORM: &str = "importer/COMMIT_MALFORMED";
const HEADER: &str = "importer/COMMIT_HEADER";
const DATE: &str = "importer/COMMIT_DATE";
const TEXT: &str = "importer/COMMIT_TEXT";
const PLACE: &str = "importer/NOT_ON_BASELINE";
const MERGE: &str = "importer/MERGE_COMMIT";

/// What is found in the honest commit, what is put there instead, and the code.
type Edit = (&'static str, String, String, &'static str);

/// Forged commits in an honest pack.
pub(super) fn attacks(world: &World) -> Vec<BundleAttack> {
    let edits = [parents(world), people(), headers(world), texts()].concat();
    edits.into_iter().map(|edit| edited(world, edit)).collect()
}

/// The honest candidate with a commit of these bytes.
fn with_commit(world: &World, body: &[u8]) -> Vec<u8> {
    let mut objects = world.honest().objects;
    objects.pop();
    world.bundle(&Candidate::new(objects, body))
}

fn edited(world: &World, (name, find, put, code): Edit) -> BundleAttack {
    let honest = honest_text(world);
    assert!(
        honest.contains(&find),
        "{name}: {find:?} is not in {honest:?}"
    );
    let bytes = with_commit(world, honest.replacen(&find, &put, 1).as_bytes());
    world.attack(
        format!("{name} in a bundle"),
        bytes,
        code,
        world.bundle(&world.honest()),
    )
}

fn honest_text(world: &World) -> String {
    let mut src = world.src.clone();
    set(&mut src, row("100644", "lib.rs", id_of("blob", AFTER)));
    let mut root = world.root.clone();
    set(
        &mut root,
        row("40000", "src", id_of("tree", &tree_bytes(&src))),
    );
    let root = id_of("tree", &tree_bytes(&root));
    commit(&root, &[world.baseline], "Change a line\n")
}

fn parents(world: &World) -> Vec<Edit> {
    let line = format!("parent {}\n", hex(&world.baseline));
    let other = format!("parent {}\n", "5".repeat(40));
    [
        ("no parent", String::new(), PLACE),
        ("another parent", other.clone(), PLACE),
        ("two parents", format!("{line}{other}"), MERGE),
        (
            "two parents, the baseline second",
            format!("{other}{line}"),
            MERGE,
        ),
        ("one parent twice", line.repeat(2), MERGE),
        ("eight parents", format!("{line}{}", other.repeat(7)), MERGE),
        (
            "a parent in capitals",
            line.to_uppercase().replace("PARENT", "parent"),
            FORM,
        ),
        (
            "a parent cut short",
            line.replace("\n", "")
                .replace(&hex(&world.baseline)[39..], "")
                + "\n",
            FORM,
        ),
        (
            "a parent behind the author",
            format!("author {WHO}\n{line}"),
            FORM,
        ),
    ]
    .map(|(name, put, code)| (name, line.clone(), put, code))
    .to_vec()
}

fn people() -> Vec<Edit> {
    let line = format!("author {WHO}");
    [
        (
            "no space before the date",
            "A Bot <bot@example.org>1700000000 +0100",
            FORM,
        ),
        (
            "no space before the mail",
            "A Bot<bot@example.org> 1700000000 +0100",
            FORM,
        ),
        ("no mail", "A Bot 1700000000 +0100", FORM),
        ("no name", "<bot@example.org> 1700000000 +0100", FORM),
        (
            "a mail within a mail",
            "A Bot <<bot@example.org> 1700000000 +0100",
            FORM,
        ),
        (
            "a name with a bracket",
            "A > Bot <bot@example.org> 1700000000 +0100",
            FORM,
        ),
        ("an empty mail", "A Bot <> 1700000000 +0100", FORM),
        ("no date", "A Bot <bot@example.org>", FORM),
        (
            "a date with a zero before it",
            "A Bot <bot@example.org> 01700000000 +0100",
            DATE,
        ),
        (
            "a date that is no number",
            "A Bot <bot@example.org> now +0100",
            DATE,
        ),
        (
            "a date beyond 64 bits",
            "A Bot <bot@example.org> 18446744073709551617 +0100",
            DATE,
        ),
        ("a date of 1970", "A Bot <bot@example.org> 1 +0100", DATE),
        (
            "a date of 2200",
            "A Bot <bot@example.org> 7258118400 +0100",
            DATE,
        ),
        (
            "a zone of five digits",
            "A Bot <bot@example.org> 1700000000 +00000",
            DATE,
        ),
        (
            "a zone of 99 hours",
            "A Bot <bot@example.org> 1700000000 +9999",
            DATE,
        ),
        (
            "a zone of 60 minutes",
            "A Bot <bot@example.org> 1700000000 +0060",
            DATE,
        ),
        (
            "an escape in the name",
            "A\u{1b}[2J Bot <bot@example.org> 1700000000 +0100",
            TEXT,
        ),
        (
            "a name turned round",
            "A \u{202e}Bot <bot@example.org> 1700000000 +0100",
            TEXT,
        ),
    ]
    .map(|(name, put, code)| (name, line.clone(), format!("author {put}"), code))
    .to_vec()
}

fn headers(world: &World) -> Vec<Edit> {
    let author = format!("author {WHO}\n");
    let committer = format!("committer {WHO}\n");
    let base = hex(&world.baseline);
    let after = |line: &str| format!("{committer}{line}\n");
    [
        ("no tree", "tree ".to_owned(), "trees ".to_owned(), FORM),
        ("a tree cut short", "tree ".into(), "tree 0".into(), FORM),
        (
            "two trees",
            "parent".into(),
            format!("tree {base}\nparent"),
            FORM,
        ),
        ("no author", author.clone(), String::new(), FORM),
        ("no committer", committer.clone(), String::new(), FORM),
        ("two authors", author.clone(), author.repeat(2), FORM),
        (
            "two committers",
            committer.clone(),
            committer.repeat(2),
            HEADER,
        ),
        (
            "a signature",
            committer.clone(),
            after("gpgsig x\n y"),
            HEADER,
        ),
        (
            "a signature for another hash",
            committer.clone(),
            after("gpgsig-sha256 x"),
            HEADER,
        ),
        (
            "a merged tag",
            committer.clone(),
            after("mergetag object x"),
            HEADER,
        ),
        (
            "an encoding",
            committer.clone(),
            after("encoding ISO-2022-JP"),
            HEADER,
        ),
        ("an unknown header", committer.clone(), after("x y"), HEADER),
        (
            "a NUL in the headers",
            committer.clone(),
            after("x\0"),
            FORM,
        ),
        (
            "headers without an end",
            "\n\nChange a line\n".into(),
            "\n".into(),
            FORM,
        ),
    ]
    .to_vec()
}

fn texts() -> Vec<Edit> {
    let line = "Change a line\n";
    [
        ("a NUL in the message", "a\0b\n".to_owned(), FORM),
        (
            "an escape in the message",
            "a\u{1b}]0;x\u{7}\n".into(),
            TEXT,
        ),
        ("a message turned round", "a\u{202e}b\n".into(), TEXT),
        ("a carriage return in the message", "a\r\nb\n".into(), TEXT),
        ("a subject of 64 KiB", "s".repeat(64 << 10), TEXT),
        (
            "a message of 1 MiB",
            format!("s\n\n{}", "long\n".repeat(200_000)),
            TEXT,
        ),
    ]
    .map(|(name, put, code)| (name, line.to_owned(), put, code))
    .to_vec()
}
