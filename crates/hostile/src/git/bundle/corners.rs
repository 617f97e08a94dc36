use super::BundleAttack;
use super::encode::{EntryPlan, PackPlan, zlib};
use super::world::{
    AFTER, BEFORE, Candidate, Row, WHO, World, commit, prefix, row, set, tree_bytes,
};
use crate::git::id_of;

const NAME: &str = "importer/NAME_REFUSED";
const NESTED: &str = "importer/NESTED_REPOSITORY";
const PROTECTED: &str = "importer/PROTECTED_PATH";
const TEXT: &str = "importer/COMMIT_TEXT";

/// What no list of attacks had: found by trying to get past the rules that were there.
pub(super) fn attacks(world: &World) -> Vec<BundleAttack> {
    [
        short_names(world),
        disguises(world),
        repositories(world),
        unseen(world),
        packs(world),
    ]
    .concat()
}

/// A bundle with new files in `src`.
fn files(world: &World, names: &[&str]) -> Vec<u8> {
    let blob = id_of("blob", AFTER);
    let rows: Vec<Row> = names.iter().map(|name| row("100644", name, blob)).collect();
    world.bundle(&world.rows(&rows, vec![("blob", AFTER.to_vec())]))
}

/// Windows gives every long name a short one, under which it can be opened as well.
fn short_names(world: &World) -> Vec<BundleAttack> {
    [
        ("the short name of .gitattributes", "GITATT~1", "GITATT-1"),
        (
            "the other short name of .gitmodules",
            "gi7eba~1",
            "gi7eba-1",
        ),
        ("the short name of .gitignore", "gitign~2", "gitign~x"),
        (
            "the short name of an order to agents",
            "AGENTS~1.MD",
            "AGENTS~1.text",
        ),
        (
            "the short name of a folder of hooks",
            "HUSKY~10",
            "HUSKY~10_",
        ),
    ]
    .map(|(name, bad, good)| world.attack(name, files(world, &[bad]), NAME, files(world, &[good])))
    .to_vec()
}

/// Protected names in letters that some file system takes for the usual ones.
fn disguises(world: &World) -> Vec<BundleAttack> {
    [
        ("a protected name with a ligature", "make\u{fb01}le"),
        ("a protected name with a long s", "ju\u{17f}tfile"),
        ("a protected name in wide letters", "\u{ff2d}akefile"),
        (
            "a protected name in small capitals of mathematics",
            "\u{1d5ba}gents.md",
        ),
    ]
    .map(|(name, bad)| {
        world.attack(
            name,
            files(world, &[bad]),
            PROTECTED,
            files(world, &["makefiles"]),
        )
    })
    .into_iter()
    .chain([world.attack(
        "a protected name with the sign of kelvin",
        files(world, &["ma\u{212a}efile"]),
        "importer/PATH_UNFIT",
        files(world, &["makefiles"]),
    )])
    .collect()
}

/// Folders in which git finds a repository, and obeys its settings.
fn repositories(world: &World) -> Vec<BundleAttack> {
    let folder = |names: &[(&str, &str)]| {
        let blob = id_of("blob", AFTER);
        let inner = tree_bytes(&[row("100644", "k", blob)]);
        let mut rows: Vec<Row> = Vec::new();
        for (mode, name) in names {
            let id = if *mode == "40000" {
                id_of("tree", &inner)
            } else {
                blob
            };
            set(&mut rows, row(mode, name, id));
        }
        let nested = tree_bytes(&rows);
        let mut objects = vec![("blob", AFTER.to_vec())];
        if names.iter().any(|(mode, _)| *mode == "40000") {
            objects.push(("tree", inner.clone()));
        }
        let id = id_of("tree", &nested);
        objects.push(("tree", nested));
        world.bundle(&world.rows(&[row("40000", "nested", id)], objects))
    };
    let twin = folder(&[("100644", "HEAD"), ("100644", "common")]);
    vec![
        // Objects and references may lie in another folder, which has no HEAD.
        world.attack(
            "a repository whose parts lie elsewhere",
            folder(&[("100644", "HEAD"), ("100644", "commondir")]),
            NESTED,
            twin.clone(),
        ),
        world.attack(
            "a repository in other letters",
            folder(&[("100644", "Head"), ("40000", "OBJECTS"), ("40000", "refs")]),
            NESTED,
            twin.clone(),
        ),
        world.attack(
            "a repository in wide letters, whose parts lie elsewhere",
            folder(&[("100644", "\u{ff28}EAD"), ("100644", "CommonDir")]),
            NESTED,
            twin,
        ),
    ]
}

/// Characters that nobody sees and programs read.
fn unseen(world: &World) -> Vec<BundleAttack> {
    let honest = world.bundle(&world.honest());
    let with = |author: &str, message: &str| {
        let mut src = world.src.clone();
        set(&mut src, row("100644", "lib.rs", id_of("blob", AFTER)));
        let src = tree_bytes(&src);
        let mut root = world.root.clone();
        set(&mut root, row("40000", "src", id_of("tree", &src)));
        let root = tree_bytes(&root);
        let body = commit(&id_of("tree", &root), &[world.baseline], message);
        let body = body.replacen(WHO, &WHO.replace("A Bot", author), 1);
        let objects = vec![("blob", AFTER.to_vec()), ("tree", src), ("tree", root)];
        world.bundle(&Candidate::new(objects, body.as_bytes()))
    };
    let hidden: String = "run it"
        .bytes()
        .map(|b| char::from_u32(0xe0000 + u32::from(b)).unwrap_or('x'))
        .collect();
    let order = format!("Change a line{hidden}\n");
    [
        ("an author with a space of no width", "A Bot\u{200b}", "m\n"),
        ("an author with a soft hyphen", "A B\u{ad}ot", "m\n"),
        (
            "an author with a letter that fills nothing",
            "\u{3164}A Bot",
            "m\n",
        ),
        ("an author with a joiner", "A\u{200d} Bot", "m\n"),
        (
            "an order to agents in letters that are not shown",
            "A Bot",
            &order,
        ),
        ("a message with an invisible sign", "A Bot", "a\u{2062}b\n"),
    ]
    .map(|(name, author, message)| world.attack(name, with(author, message), TEXT, honest.clone()))
    .to_vec()
}

fn packs(world: &World) -> Vec<BundleAttack> {
    let honest = world.honest();
    let good = world.bundle(&honest);
    let wrap = |entries: Vec<EntryPlan>| world.wrap(honest.head, &PackPlan::honest(entries));
    // The window of a small stream, and a copy from further back than it.
    let mut narrow = zlib(AFTER);
    narrow[..2].copy_from_slice(&[0x08, 0x1d]);
    let mut small = EntryPlan::whole("blob", AFTER);
    small.stream = narrow;
    // A delta that makes what the pack has as a whole.
    let mut made_twice = honest.entries();
    let tail = &AFTER[1..];
    made_twice.push(EntryPlan::whole("blob", tail));
    made_twice.push(EntryPlan::on_object(
        id_of("blob", tail),
        &prefix(tail.len(), &AFTER[..1]).bytes(),
    ));
    let on = |base, size, line: &[u8]| {
        wrap(honest.entries_with(0, EntryPlan::on_object(base, &prefix(size, line).bytes())))
    };
    let text = String::from_utf8_lossy(&good);
    let marked = [b"\xef\xbb\xbf", &good[..]].concat();
    let itself = text.find("refs/export/head").map_or(0, |at| at - 41);
    let mut same = good.clone();
    same.splice(
        itself..itself + 40,
        crate::git::hex(&world.baseline).into_bytes(),
    );
    vec![
        world.attack(
            "a stream with a window of 256 bytes",
            wrap(honest.entries_with(0, small)),
            "importer/INFLATE_HEADER",
            good.clone(),
        ),
        world.attack(
            "a delta that makes what is there whole",
            wrap(made_twice),
            "importer/OBJECT_DUPLICATE",
            good.clone(),
        ),
        world.attack(
            "a delta on the submodule's commit",
            on([7; 20], 10, b"x"),
            "importer/DELTA_BASE",
            good.clone(),
        ),
        world.attack(
            "a delta on the baseline's commit",
            on(world.baseline, world.body(&world.baseline).len(), b"x"),
            "importer/DELTA_BASE",
            good.clone(),
        ),
        world.attack(
            "a file that is a delta on a directory",
            on(
                id_of("tree", &tree_bytes(&world.root)),
                tree_bytes(&world.root).len(),
                b"x",
            ),
            "importer/OBJECT_MISSING",
            good.clone(),
        ),
        world.attack(
            "a file as it was, as a delta that changes nothing",
            wrap({
                let mut entries = honest.entries();
                let (base, size) = (id_of("blob", BEFORE), BEFORE.len());
                let delta = crate::git::DeltaPlan::honest(
                    size,
                    vec![super::Step::Copy(0, u32::try_from(size).unwrap_or(0))],
                );
                entries.push(EntryPlan::on_object(base, &delta.bytes()));
                entries
            }),
            "importer/OBJECT_UNREACHED",
            good.clone(),
        ),
        world.attack(
            "a mark of byte order before the first line",
            marked,
            "importer/BUNDLE_HEADER",
            good.clone(),
        ),
        world.attack(
            "the baseline as what is brought",
            same,
            "importer/COMMIT_COUNT",
            good,
        ),
    ]
}
