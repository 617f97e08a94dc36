use super::BundleAttack;
use super::world::{AFTER, BEFORE, Row, World, row, set, tree_bytes};
use crate::git::{Id, id_of};

/// Objects a candidate brings.
type Objects = Vec<(&'static str, Vec<u8>)>;

/// Forged trees in an honest pack. Those that a repository on disk can hold as well are built from
/// the plans of [`attacks`](crate::git::attacks).
pub(super) fn attacks(world: &World) -> Vec<BundleAttack> {
    let mut all = [
        bytes(world),
        modes(world),
        names(world),
        edges(world),
        shapes(world),
    ]
    .concat();
    all.extend(protected(world));
    all.extend(granted(world));
    all
}

/// `src` with one file more, behind which these bytes stand.
fn bytes(world: &World) -> Vec<BundleAttack> {
    let honest = world.bundle(&world.honest());
    let blob = id_of("blob", AFTER);
    let new = || vec![("blob", AFTER.to_vec())];
    let src = |tail: &[u8]| {
        let mut rows = world.src.clone();
        set(&mut rows, row("100644", "zz", blob));
        [&tree_bytes(&rows)[..], tail].concat()
    };
    let form = "importer/TREE_MALFORMED";
    let id = [1; 20];
    let tails: [(&str, Vec<u8>); 6] = [
        ("half an entry", b"100644 zzz".to_vec()),
        ("an entry without its object", b"100644 zzz\0".to_vec()),
        (
            "nineteen bytes of an id",
            [b"100644 zzz\0", &id[..19]].concat(),
        ),
        ("an entry of nothing but an id", id.to_vec()),
        ("an absolute path", [b"100644 /etc\0", &id[..]].concat()),
        ("a NUL more", b"\0".to_vec()),
    ];
    tails
        .map(|(name, tail)| {
            let bytes = world.bundle(&world.with_src(&src(&tail), new()));
            world.attack(name, bytes, form, honest.clone())
        })
        .to_vec()
}

fn modes(world: &World) -> Vec<BundleAttack> {
    let blob = id_of("blob", AFTER);
    let with = |mode: &str, name: &str| {
        let rows = [row(mode, name, blob)];
        world.bundle(&world.rows(&rows, vec![("blob", AFTER.to_vec())]))
    };
    let mode = "importer/TREE_MODE";
    let link = "importer/SYMLINK_CHANGED";
    let other = |name: &str| id_of("blob", name.as_bytes());
    let mut all = vec![
        world.attack(
            "a file only its owner may read",
            with("100600", "new"),
            mode,
            with("100644", "new"),
        ),
        world.attack(
            "a file anybody may write",
            with("100777", "new"),
            mode,
            with("100755", "new"),
        ),
        world.attack(
            "a file made a link",
            with("120000", "lib.rs"),
            link,
            with("100755", "lib.rs"),
        ),
    ];
    // What the links and submodules of the baseline are, they stay.
    let root = |row: Row, objects: Objects| {
        let mut root = world.root.clone();
        set(&mut root, row);
        world.bundle(&world.with_root(&tree_bytes(&root), objects))
    };
    let readme = root(
        row("100644", "README.md", blob),
        vec![("blob", AFTER.to_vec())],
    );
    let target = |text: &str| (other(text), vec![("blob", text.as_bytes().to_vec())]);
    for (name, text) in [
        ("a link that leads elsewhere", "/etc/passwd"),
        ("a link with a NUL in its target", "a\0b"),
    ] {
        let (id, objects) = target(text);
        all.push(world.attack(
            name,
            root(row("120000", "link", id), objects),
            link,
            readme.clone(),
        ));
    }
    let gitlink = "importer/GITLINK_CHANGED";
    let moved = root(row("160000", "module", [8; 20]), vec![]);
    all.push(world.attack(
        "a submodule at another commit",
        moved,
        gitlink,
        readme.clone(),
    ));
    let became = root(
        row("100644", "module", blob),
        vec![("blob", AFTER.to_vec())],
    );
    all.push(world.attack("a submodule made a file", became, gitlink, readme));
    all
}

fn names(world: &World) -> Vec<BundleAttack> {
    let with = |name: &str| {
        let rows = [row("100644", name, id_of("blob", AFTER))];
        world.bundle(&world.rows(&rows, vec![("blob", AFTER.to_vec())]))
    };
    let both = |one: &str, two: &str| {
        let blob = id_of("blob", AFTER);
        let rows = [row("100644", one, blob), row("100644", two, blob)];
        world.bundle(&world.rows(&rows, vec![("blob", AFTER.to_vec())]))
    };
    let git = "importer/GIT_NAME";
    let name = "importer/NAME_REFUSED";
    let clash = "importer/NAME_COLLISION";
    vec![
        world.attack(
            "git's folder with a joiner inside",
            with(".gi\u{200d}t"),
            git,
            with(".gi-t"),
        ),
        world.attack(
            "git's folder and dots and spaces",
            with(".git . ."),
            git,
            with(".git . x"),
        ),
        world.attack(
            "git's folder as another stream",
            with(".git:foo"),
            git,
            with(".git-foo"),
        ),
        world.attack("another device", with("nul"), name, with("null")),
        world.attack("a third device", with("CON"), name, with("CONS")),
        world.attack("a carriage return", with("a\rb"), name, with("a b")),
        world.attack(
            "two new names but for case",
            both("A", "a"),
            clash,
            both("A", "b"),
        ),
        world.attack(
            "sharp s and two of them",
            both("stra\u{df}e", "strasse"),
            clash,
            both("strase", "strasse"),
        ),
        world.attack("an option and a stream", with("-rf:"), name, with("-rf")),
        world.attack(
            "a long option and a stream",
            with("--upload-pack:"),
            name,
            with("--upload-pack"),
        ),
        world.attack(
            "a name of 5,000 bytes",
            with(&"n".repeat(5_000)),
            "importer/PATH_TOO_LONG",
            with("n"),
        ),
    ]
}

/// Objects of another kind than their place says.
fn edges(world: &World) -> Vec<BundleAttack> {
    let honest = world.bundle(&world.honest());
    let kind = "importer/OBJECT_KIND";
    let with = |mode: &str, id: Id, objects: Objects| {
        world.bundle(&world.rows(&[row(mode, "new", id)], objects))
    };
    let tree = tree_bytes(&[row("100644", "x", id_of("blob", BEFORE))]);
    let tree_id = id_of("tree", &tree);
    let blob = id_of("blob", AFTER);
    let root = super::world::commit(&blob, &[world.baseline], "a file as root\n");
    let file_as_root =
        super::world::Candidate::new(vec![("blob", AFTER.to_vec())], root.as_bytes());
    vec![
        world.attack(
            "the baseline as a file",
            with("100644", world.baseline, vec![]),
            kind,
            honest.clone(),
        ),
        world.attack(
            "the baseline as a directory",
            with("40000", world.baseline, vec![]),
            kind,
            honest.clone(),
        ),
        world.attack(
            "a new directory as a file",
            with("100644", tree_id, vec![("tree", tree.clone())]),
            kind,
            with("40000", tree_id, vec![("tree", tree)]),
        ),
        world.attack(
            "a new file as a directory",
            with("40000", blob, vec![("blob", AFTER.to_vec())]),
            kind,
            with("100644", blob, vec![("blob", AFTER.to_vec())]),
        ),
        world.attack(
            "a file as the top",
            world.bundle(&file_as_root),
            kind,
            honest.clone(),
        ),
        world.attack(
            "a file that does not travel",
            with("100644", [9; 20], vec![]),
            "importer/OBJECT_MISSING",
            honest,
        ),
    ]
}

fn shapes(world: &World) -> Vec<BundleAttack> {
    let top = id_of("tree", &tree_bytes(&world.root));
    let src = id_of("tree", &tree_bytes(&world.src));
    // One new object that lists an old directory over and over.
    let fold = |count: usize, id: Id| {
        let row = |n: usize| row("40000", &format!("d{n:04}"), id);
        let many = tree_bytes(&(0..count).map(row).collect::<Vec<Row>>());
        let new = self::row("40000", "many", id_of("tree", &many));
        root_with(world, "many", Some(new), vec![("tree", many)])
    };
    let without = |name: &str| root_with(world, name, None, vec![]);
    let link = "importer/SYMLINK_CHANGED";
    let everything = world.bundle(&world.with_root(b"", vec![]));
    vec![
        // The old top holds a link, which nobody may add anywhere.
        world.attack("the old top once more", fold(1, top), link, fold(1, src)),
        world.attack(
            "an old directory 600 times",
            fold(600, src),
            "importer/CHANGES_OVER_LIMIT",
            fold(500, src),
        ),
        world.attack(
            "everything removed",
            everything,
            "importer/EMPTY_TREE",
            without("src"),
        ),
        world.attack(
            "66 directories inside one another",
            deep(world, 66),
            "importer/DEPTH_OVER_LIMIT",
            deep(world, 60),
        ),
        world.attack(
            "only a link removed",
            without("link"),
            link,
            without("README.md"),
        ),
    ]
}

/// A new file so many directories below the top.
fn deep(world: &World, depth: usize) -> Vec<u8> {
    let mut objects = vec![("blob", AFTER.to_vec())];
    let mut below = row("100644", "f", id_of("blob", AFTER));
    for _ in 0..depth {
        let tree = tree_bytes(&[below]);
        below = row("40000", "d", id_of("tree", &tree));
        objects.push(("tree", tree));
    }
    root_with(world, "d", Some(below), objects)
}

/// The top with one entry otherwise or gone.
fn root_with(world: &World, name: &str, new: Option<Row>, objects: Objects) -> Vec<u8> {
    let mut root = world.root.clone();
    root.retain(|row| row.1 != name.as_bytes());
    if let Some(new) = new {
        set(&mut root, new);
    }
    world.bundle(&world.with_root(&tree_bytes(&root), objects))
}

/// Changes beyond what was granted.
fn granted(world: &World) -> Vec<BundleAttack> {
    let honest = world.bundle(&world.honest());
    let blob = id_of("blob", AFTER);
    let file = || vec![("blob", AFTER.to_vec())];
    let inside = tree_bytes(&[row("100644", "x", blob)]);
    let directory = row("40000", "README.md", id_of("tree", &inside));
    let became_directory = root_with(
        world,
        "README.md",
        Some(directory),
        vec![("blob", AFTER.to_vec()), ("tree", inside)],
    );
    let became_file = root_with(world, "src", Some(row("100644", "src", blob)), file());
    let short = root_with(world, "sr", Some(row("100644", "sr", blob)), file());
    let gone = root_with(world, "README.md", None, vec![]);
    let attack = |name, grants, bytes: Vec<u8>, twin: &Vec<u8>| BundleAttack {
        grants,
        ..world.attack(name, bytes, "importer/PATH_NOT_GRANTED", twin.clone())
    };
    vec![
        attack(
            "a file made a directory outside the grant",
            &["src"],
            became_directory,
            &honest,
        ),
        attack(
            "a directory made a file beside the grant",
            &["src/lib.rs"],
            became_file,
            &honest,
        ),
        attack("a file removed outside the grant", &["src"], gone, &honest),
        attack(
            "a grant that is the start of another name",
            &["sr"],
            honest.clone(),
            &short,
        ),
    ]
}

/// Names that act by themselves; the twin is a name that does not.
fn protected(world: &World) -> Vec<BundleAttack> {
    let with = |name: &str| {
        let rows = [row("100644", name, id_of("blob", AFTER))];
        world.bundle(&world.rows(&rows, vec![("blob", AFTER.to_vec())]))
    };
    [
        ".gitattributes",
        ".GitAttributes",
        ".gitmodules",
        ".gitignore",
        ".lfsconfig",
        ".mailmap",
        ".git-blame-ignore-revs",
        ".gitreview",
        ".githooks",
        ".husky",
        ".envrc",
        ".vscode",
        ".github",
        "Makefile",
        "CLAUDE.md",
        "AGENTS.md",
    ]
    .map(|name| {
        let twin = with(&format!("{name}-example"));
        world.attack(
            format!("a new {name}"),
            with(name),
            "importer/PROTECTED_PATH",
            twin,
        )
    })
    .to_vec()
}
