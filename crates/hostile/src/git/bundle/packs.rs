use super::BundleAttack;
use super::encode::{self, EntryPlan, PackPlan, stored, zlib};
use super::world::{AFTER, BEFORE, SECRET, World, commit, prefix, row, tree_bytes};
use crate::git::id_of;

const HEAD: &str = "importer/PACK_HEADER";
const CUT: &str = "importer/PACK_TRUNCATED";
const BYTES: &str = "importer/BYTES_OVER_LIMIT";
const NUMBER: &str = "importer/PACK_NUMBER";

/// Forged packs behind an honest header.
pub(super) fn attacks(world: &World) -> Vec<BundleAttack> {
    [frames(world), streams(world), bombs(world), sets(world)].concat()
}

/// An honest pack in which one thing is otherwise.
fn changed(
    world: &World,
    name: &str,
    code: &'static str,
    change: impl FnOnce(&mut PackPlan),
) -> BundleAttack {
    let candidate = world.honest();
    let mut pack = PackPlan::honest(candidate.entries());
    change(&mut pack);
    let bytes = world.wrap(candidate.head, &pack);
    world.attack(name, bytes, code, world.bundle(&candidate))
}

fn frames(world: &World) -> Vec<BundleAttack> {
    let changed = |name, code, change: fn(&mut PackPlan)| changed(world, name, code, change);
    let limit = "importer/OBJECTS_OVER_LIMIT";
    let kind = "importer/PACK_ENTRY_TYPE";
    vec![
        changed("another magic", HEAD, |p| p.magic = *b"KCAP"),
        changed("a pack of version 3", HEAD, |p| p.version = 3),
        changed("a pack of version 4", HEAD, |p| p.version = 4),
        changed("an empty pack", HEAD, |p| p.entries.clear()),
        changed("a count of zero", HEAD, |p| p.count = Some(0)),
        changed("a count of 2^32-1", limit, |p| p.count = Some(u32::MAX)),
        changed("a count of 20,000,000", limit, |p| {
            p.count = Some(20_000_000)
        }),
        changed("a count of 1,025", limit, |p| p.count = Some(1_025)),
        changed("a count no pack of this size has", CUT, |p| {
            p.count = Some(1_024)
        }),
        changed("one object more announced", CUT, |p| p.count = Some(5)),
        changed("one object less announced", "importer/PACK_TRAILING", |p| {
            p.count = Some(3)
        }),
        changed("bytes before the checksum", "importer/PACK_TRAILING", |p| {
            p.before_sum = b"junk".to_vec();
        }),
        changed("a wrong checksum", "importer/PACK_CHECKSUM", |p| {
            p.spoil_sum = 1
        }),
        changed(
            "a second pack behind the first",
            "importer/PACK_CHECKSUM",
            |p| {
                p.after_sum = p.bytes();
            },
        ),
        changed("an entry of type 0", kind, |p| p.entries[0].word = 0),
        changed("an entry of type 5", kind, |p| p.entries[0].word = 5),
        changed("a tag", kind, |p| p.entries[0].word = 4),
        changed("a size in more bytes than it needs", NUMBER, |p| {
            p.entries[0].padding = 1
        }),
        changed("a size in sixty bytes", NUMBER, |p| {
            p.entries[0].padding = 60
        }),
        changed("a size of 2^62", NUMBER, |p| p.entries[0].size = 1 << 62),
        changed("a size of 8 GiB", NUMBER, |p| p.entries[0].size = 8 << 30),
        changed("a size of 1 GiB", BYTES, |p| p.entries[0].size = 1 << 30),
    ]
}

fn streams(world: &World) -> Vec<BundleAttack> {
    let stream =
        |name, code, stream: Vec<u8>| changed(world, name, code, |p| p.entries[0].stream = stream);
    let good = zlib(AFTER);
    let end = good.len();
    let bit = |at: usize, mask: u8| {
        let mut bad = good.clone();
        bad[at] ^= mask;
        bad
    };
    let longer = [AFTER, b"x"].concat();
    let mut empty_blocks = changed(
        world,
        "broken data behind 20,000 empty blocks",
        "importer/INFLATE_BROKEN",
        |p| {
            let mut stream = stored(AFTER, 20_000);
            stream[2 + 5 * 20_000] = 7;
            p.entries[0].stream = stream;
        },
    );
    let candidate = world.honest();
    let mut entry = EntryPlan::whole("blob", AFTER);
    entry.stream = stored(AFTER, 20_000);
    let entries = candidate.entries_with(0, entry);
    empty_blocks.twin = world.wrap(candidate.head, &PackPlan::honest(entries));
    vec![
        stream(
            "one byte more than declared",
            "importer/INFLATE_LONGER",
            zlib(&longer),
        ),
        stream(
            "one byte less than declared",
            "importer/INFLATE_SHORTER",
            zlib(&AFTER[1..]),
        ),
        stream(
            "nothing instead of what is declared",
            "importer/INFLATE_SHORTER",
            zlib(b""),
        ),
        stream(
            "a wrong checksum of the content",
            "importer/INFLATE_CHECKSUM",
            bit(end - 1, 1),
        ),
        stream("a preset dictionary", "importer/INFLATE_HEADER", {
            [&[0x78, 0xbb, 0, 0, 0, 1][..], &good[2..]].concat()
        }),
        stream(
            "another method than deflate",
            "importer/INFLATE_HEADER",
            bit(0, 1),
        ),
        stream("a window of 64 KiB", "importer/INFLATE_HEADER", {
            [&[0x88, 0x1c][..], &good[2..]].concat()
        }),
        stream(
            "a header whose check fails",
            "importer/INFLATE_HEADER",
            bit(1, 1),
        ),
        stream("a block of no known type", "importer/INFLATE_BROKEN", {
            [&good[..2], &[7], &good[3..]].concat()
        }),
        // Whatever follows in the pack is read as if it belonged to the stream.
        stream("bytes between two objects", "importer/PACK_ENTRY_TYPE", {
            [&good[..], &[0, 0]].concat()
        }),
        empty_blocks,
    ]
}

fn bombs(world: &World) -> Vec<BundleAttack> {
    let honest = world.honest();
    let bomb = encode::bomb(120);
    let with = |size: u64| {
        let mut entry = EntryPlan::whole("blob", b"");
        (entry.size, entry.stream) = (size, bomb.clone());
        world.wrap(
            honest.head,
            &PackPlan::honest(honest.entries_with(0, entry)),
        )
    };
    let large = |size: usize| world.bundle(&world.file("zeros", &vec![0; size]));
    // Every object below the limit, all of them above it.
    let many = |count: usize| {
        let files: Vec<Vec<u8>> = (0..count)
            .map(|n| [&[0; 4_000][..], &n.to_be_bytes()].concat())
            .collect();
        world.bundle(&world.many(&files))
    };
    let at_limit = (2 << 20) - 1_000;
    vec![
        world.attack("120 MiB in 120 KB", with(120 << 20), BYTES, large(1 << 20)),
        world.attack(
            "120 MiB that declare 100 bytes",
            with(100),
            "importer/INFLATE_LONGER",
            large(1 << 20),
        ),
        world.attack(
            "one byte more than 2 MiB",
            large((2 << 20) + 1),
            BYTES,
            large(at_limit),
        ),
        world.attack("a thousand objects of 4 KB", many(1_000), BYTES, many(400)),
    ]
}

fn sets(world: &World) -> Vec<BundleAttack> {
    let honest = world.honest();
    let good = world.bundle(&honest);
    let extra = |name, code, entries: Vec<EntryPlan>| {
        let entries = [entries, honest.entries()].concat();
        let bytes = world.wrap(honest.head, &PackPlan::honest(entries));
        world.attack(name, bytes, code, good.clone())
    };
    let top = id_of("tree", &tree_bytes(&world.root));
    let second = commit(&top, &[world.baseline], "second\n");
    let unreached = "importer/OBJECT_UNREACHED";
    let twice = "importer/OBJECT_DUPLICATE";
    let count = "importer/COMMIT_COUNT";
    let mut base_twice = honest.entries();
    base_twice.push(base_twice[0].clone());
    let delta = prefix(AFTER.len(), b"x").bytes();
    base_twice.push(EntryPlan::on_object(id_of("blob", AFTER), &delta));
    vec![
        extra(
            "one object twice",
            twice,
            vec![EntryPlan::whole("blob", AFTER)],
        ),
        world.attack(
            "a delta on an object that is there twice",
            world.wrap(honest.head, &PackPlan::honest(base_twice)),
            twice,
            good.clone(),
        ),
        extra(
            "a second commit",
            count,
            vec![EntryPlan::whole("commit", second.as_bytes())],
        ),
        extra(
            "the baseline itself",
            count,
            vec![EntryPlan::whole("commit", world.body(&world.baseline))],
        ),
        extra(
            "a file nobody refers to",
            unreached,
            vec![EntryPlan::whole("blob", b"extra\n")],
        ),
        extra(
            "a directory nobody refers to",
            unreached,
            vec![EntryPlan::whole(
                "tree",
                &tree_bytes(&[row("100644", "x", id_of("blob", AFTER))]),
            )],
        ),
        extra(
            "the file as it was before",
            unreached,
            vec![EntryPlan::whole("blob", BEFORE)],
        ),
        known_object(world),
        copied_secret(world),
    ]
}

/// A pack may bring what the baseline has, if the change needs it; not if it does not.
fn known_object(world: &World) -> BundleAttack {
    let readme = b"base\n";
    let copy = row("100644", "copy", id_of("blob", readme));
    let needed = world.rows(&[copy], vec![("blob", readme.to_vec())]);
    let mut attack = changed(
        world,
        "an old file that stays as it is",
        "importer/OBJECT_UNREACHED",
        |p| p.entries.push(EntryPlan::whole("blob", readme)),
    );
    attack.twin = world.bundle(&needed);
    attack
}

/// A tree may name objects that the baseline has, and no others, whatever the repository holds.
fn copied_secret(world: &World) -> BundleAttack {
    let named = |body: &[u8]| {
        let copy = row("100644", "copy", id_of("blob", body));
        world.bundle(&world.rows(&[copy], Vec::new()))
    };
    world.attack(
        "somebody's unpublished file, by its id",
        named(SECRET),
        "importer/OBJECT_MISSING",
        named(b"base\n"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bomb_fits_a_bundle() {
        let world = World::usual();
        let all = bombs(&world);
        assert!(all.iter().all(|attack| attack.bytes.len() <= 131_072));
        assert!(all.iter().all(|attack| attack.twin.len() <= 131_072));
    }
}
