use super::BundleAttack;
use super::encode::{EntryPlan, PackPlan, stored};
use super::world::{BEFORE, World, commit, noise, tree_bytes};
use crate::git::{hex, id_of};

/// Most bytes of a bundle, and of its header.
const BUNDLE: usize = 131_072;
const HEADER: usize = 4_096;

/// What stands in the honest header, what is put there, and the code it must be refused with.
type Edit = (String, String, String, &'static str);

/// Forged headers around an honest pack, and bundles cut short or made long.
pub(super) fn attacks(world: &World) -> Vec<BundleAttack> {
    let edits = [headers(world), prerequisites(world), references(world)].concat();
    let mut all = sizes(world);
    all.extend(edits.into_iter().map(|edit| edited(world, edit)));
    all
}

fn edited(world: &World, (name, find, put, code): Edit) -> BundleAttack {
    let candidate = world.honest();
    let header = world.header(candidate.head);
    assert!(
        header.contains(&find),
        "{name}: {find:?} is not in {header:?}"
    );
    let pack = PackPlan::honest(candidate.entries()).bytes();
    let with = |header: &str| [header.as_bytes(), &pack].concat();
    world.attack(
        name,
        with(&header.replacen(&find, &put, 1)),
        code,
        with(&header),
    )
}

fn sizes(world: &World) -> Vec<BundleAttack> {
    let candidate = world.honest();
    let honest = world.bundle(&candidate);
    let header = world.header(candidate.head).into_bytes();
    let pack = PackPlan::honest(candidate.entries());
    let cut = |end: usize| honest[..end].to_vec();
    let all = [
        ("no bytes at all", Vec::new(), "importer/BUNDLE_MISSING"),
        (
            "a header and no pack",
            header.clone(),
            "importer/PACK_TRUNCATED",
        ),
        (
            "a pack cut in its head",
            cut(header.len() + 7),
            "importer/PACK_TRUNCATED",
        ),
        (
            "a pack cut in the middle",
            cut(honest.len() - 60),
            "importer/PACK_CHECKSUM",
        ),
        (
            "a pack without its last byte",
            cut(honest.len() - 1),
            "importer/PACK_CHECKSUM",
        ),
        (
            "garbage for a pack",
            [&header[..], &noise(500)].concat(),
            "importer/PACK_HEADER",
        ),
        (
            "bytes after the pack",
            [&honest[..], b"junk"].concat(),
            "importer/PACK_CHECKSUM",
        ),
        (
            "a head that is not in the pack",
            world.wrap(id_of("commit", b"absent"), &pack),
            "importer/COMMIT_COUNT",
        ),
        (
            "a head that is a tree of the pack",
            world.wrap(id_of("tree", &candidate.objects[2].1), &pack),
            "importer/COMMIT_COUNT",
        ),
    ];
    let all = all.map(|(name, bytes, code)| world.attack(name, bytes, code, honest.clone()));
    let mut all = all.to_vec();
    all.push(world.attack(
        "one byte more than a bundle may have",
        sized(world, BUNDLE + 1),
        "importer/BUNDLE_OVER_LIMIT",
        sized(world, BUNDLE),
    ));
    for (name, bad, good) in [
        ("a header one byte too long", HEADER + 1, HEADER),
        ("a header line of 64 KiB", 64 << 10, 1 << 10),
    ] {
        let (bad, good) = (header_of(world, bad), header_of(world, good));
        all.push(world.attack(name, bad, "importer/BUNDLE_HEADER", good));
    }
    all
}

fn headers(world: &World) -> Vec<Edit> {
    let line = format!("-{} base\n", hex(&world.baseline));
    let late = format!("head\n{line}");
    [
        ("no line between header and pack", "head\n\n", "head\n"),
        ("version 1", "v2", "v1"),
        ("version 3", "v2", "v3"),
        (
            "a filter",
            "v2 git bundle\n",
            "v3 git bundle\n@filter=blob:none\n",
        ),
        (
            "a filter by ids",
            "v2 git bundle\n",
            "v3 git bundle\n@filter=sparse:oid=a\n",
        ),
        (
            "another hash",
            "v2 git bundle\n",
            "v3 git bundle\n@object-format=sha256\n",
        ),
        (
            "a capability in version 2",
            "bundle\n",
            "bundle\n@filter=blob:none\n",
        ),
        (
            "a capability after the reference",
            "head\n",
            "head\n@filter=blob:none\n",
        ),
        ("carriage returns", "bundle\n", "bundle\r\n"),
        (
            "an escape beside the prerequisite",
            " base",
            " \u{1b}]0;x\u{7}",
        ),
        ("a prerequisite after the reference", "head\n", &late),
        ("a byte order mark", "# v2", "\u{feff}# v2"),
        ("a remark", "bundle\n", "bundle\n# hello\n"),
    ]
    .map(|(name, find, put)| {
        (
            name.into(),
            find.into(),
            put.into(),
            "importer/BUNDLE_HEADER",
        )
    })
    .to_vec()
}

fn prerequisites(world: &World) -> Vec<Edit> {
    const BASE: &str = "importer/BUNDLE_PREREQUISITE";
    let base = hex(&world.baseline);
    let line = format!("-{base} base\n");
    let top = id_of("tree", &tree_bytes(&world.root));
    let other = id_of("commit", commit(&top, &[], "another root\n").as_bytes());
    let blob = id_of("blob", BEFORE);
    [
        ("no prerequisite", String::new(), BASE),
        (
            "another commit as prerequisite",
            format!("-{}\n", hex(&other)),
            BASE,
        ),
        ("a file as prerequisite", format!("-{}\n", hex(&blob)), BASE),
        (
            "a prerequisite in capitals",
            format!("-{}\n", base.to_uppercase()),
            BASE,
        ),
        (
            "a prerequisite cut short",
            format!("-{}\n", &base[..39]),
            BASE,
        ),
        (
            "a prerequisite with a digit more",
            format!("-{base}0\n"),
            BASE,
        ),
        ("a prerequisite twice", line.repeat(2), BASE),
        ("sixty prerequisites", line.repeat(60), BASE),
        (
            "a thousand prerequisites",
            line.repeat(1_000),
            "importer/BUNDLE_HEADER",
        ),
    ]
    .map(|(name, put, code)| (name.into(), line.clone(), put, code))
    .to_vec()
}

fn references(world: &World) -> Vec<Edit> {
    const NAME: &str = "importer/BUNDLE_REFERENCE";
    const FORM: &str = "importer/BUNDLE_HEADER";
    let head = hex(&world.honest().head);
    let whole = format!("{head} refs/export/head\n");
    let names = [
        "HEAD",
        "refs/heads/main",
        "refs/heads/x.lock",
        "refs/tags/v1",
        "refs/notes/commits",
        "refs/remotes/origin/main",
        "refs/replace/1111111111111111111111111111111111111111",
        "../../evil",
        "--upload-pack=touch x",
        "refs/export/head/x",
        "refs/export/head ",
        "Refs/export/head",
        "",
    ]
    .map(|name| {
        (
            format!("the reference {name:?}"),
            format!("{head} {name}\n"),
            NAME,
        )
    });
    let lines = [
        ("no reference", String::new(), NAME),
        (
            "two references",
            format!("{whole}{head} refs/heads/main\n"),
            NAME,
        ),
        ("one reference twice", whole.repeat(2), NAME),
        (
            "a reference without an id",
            "refs/export/head\n".to_owned(),
            NAME,
        ),
        (
            "a head in capitals",
            whole
                .to_uppercase()
                .replace("REFS/EXPORT/HEAD", "refs/export/head"),
            NAME,
        ),
        ("a head cut short", whole[1..].to_owned(), NAME),
        ("a tab in a reference", whole.replace(' ', "\t"), NAME),
        (
            "an escape in a reference",
            format!("{head} refs/\u{1b}[31mx\n"),
            FORM,
        ),
        (
            "a NUL in a reference",
            format!("{head} refs/export/head\0\n"),
            FORM,
        ),
    ]
    .map(|(name, put, code)| (name.to_owned(), put, code));
    names
        .into_iter()
        .chain(lines)
        .map(|(name, put, code)| (name, whole.clone(), put, code))
        .collect()
}

/// An honest bundle whose header has exactly this many bytes, by the text behind the prerequisite.
fn header_of(world: &World, bytes: usize) -> Vec<u8> {
    let candidate = world.honest();
    let header = padded(&world.header(candidate.head), bytes);
    [
        header.as_bytes(),
        &PackPlan::honest(candidate.entries()).bytes(),
    ]
    .concat()
}

fn padded(header: &str, bytes: usize) -> String {
    let text = "x".repeat(bytes + "base".len() - header.len());
    header.replacen(" base", &format!(" {text}"), 1)
}

/// An honest bundle of exactly this many bytes.
fn sized(world: &World, bytes: usize) -> Vec<u8> {
    let body = noise(BUNDLE - 2_500);
    let candidate = world.file("noise", &body);
    let mut entry = EntryPlan::whole("blob", &body);
    entry.stream = stored(&body, 0);
    let pack = PackPlan::honest(candidate.entries_with(0, entry)).bytes();
    let header = padded(&world.header(candidate.head), bytes - pack.len());
    [header.as_bytes(), &pack].concat()
}
