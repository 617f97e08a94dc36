//! Making changesets, and that applying one leads where it should.

use super::tree::{
    Bench, Tree, base, changeset, expected, packed, plant, scratch, snapshot, target, tree,
};
use flightproof_archive::paws::{self, Change, Changeset, Entry, Manifest, Snapshot};
use flightproof_archive::{ArchiveCode, Everything, Recovered, Workspace, apply, pack_directory};
use flightproof_core::{Digest, RelPath};
use proptest::prelude::*;
use rustix::fs::XattrFlags;
use serde_json::Value;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

#[test]
fn a_changeset_is_applied_whole_with_exact_modes_and_emptied_directories_go() {
    let bench = Bench::usual();
    let applied = apply(&bench.archive(), &bench.root(), &()).unwrap();
    assert_eq!((applied.added, applied.changed, applied.deleted), (2, 2, 2));
    assert_eq!(applied.recovered, Recovered::Nothing);
    assert!(applied.kept.is_empty() && applied.untidy.is_none());
    assert_eq!(bench.seen(), expected(&target()));
}

#[test]
fn what_the_tree_hands_down_changes_no_mode() {
    let bench = Bench::usual();
    fs::set_permissions(bench.root(), Permissions::from_mode(0o2777)).unwrap();
    // user::rwx user:1234:rwx group::r-x mask::rwx other::---, as the kernel keeps it.
    let nobody = u32::MAX;
    let mut list = 2u32.to_le_bytes().to_vec();
    let entries: [(u16, u16, u32); 5] = [
        (1, 7, nobody),
        (2, 7, 1234),
        (4, 5, nobody),
        (16, 7, nobody),
        (32, 0, nobody),
    ];
    for (tag, rights, id) in entries {
        list.extend(tag.to_le_bytes());
        list.extend(rights.to_le_bytes());
        list.extend(id.to_le_bytes());
    }
    let name = "system.posix_acl_default";
    for dir in ["", "dir"] {
        rustix::fs::setxattr(bench.root().join(dir), name, &list, XattrFlags::empty())
            .expect("the temporary directory must know access lists");
    }
    let twin = bench.root().join("twin");
    File::create(&twin).unwrap();
    let mode = fs::metadata(&twin).unwrap().permissions().mode();
    assert_ne!(mode & 0o777, 0o644, "the attack does not work here");
    fs::remove_file(twin).unwrap();
    apply(&bench.archive(), &bench.root(), &()).unwrap();
    assert_eq!(bench.seen(), expected(&target()));
    for path in ["dir/added", "dir/change", "mode", "new", "new/deep/first"] {
        let path = bench.root().join(path);
        let mut none = [0u8; 64];
        let list = rustix::fs::getxattr(path, "system.posix_acl_access", &mut none[..]);
        assert_eq!(list, Err(rustix::io::Errno::NODATA));
    }
}

#[test]
fn directories_that_others_use_or_emptied_stay() {
    let bench = Bench::usual();
    fs::create_dir(bench.root().join("empty")).unwrap();
    fs::write(bench.root().join("old/mine"), "x").unwrap();
    apply(&bench.archive(), &bench.root(), &()).unwrap();
    let seen = bench.seen();
    assert!(seen.contains_key("empty") && seen.contains_key("old/mine"));
    assert!(!seen.contains_key("old/deep"));
}

#[test]
fn a_changeset_in_memory_is_read_whole_or_not_at_all() {
    let mut bytes = changeset(&base(), &target());
    let wanted: Vec<_> = target()
        .into_iter()
        .filter(|(path, file)| base().get(path) != Some(file))
        .map(|(path, (_, content))| (path, content))
        .collect();
    let read = paws::read_changeset(&bytes).unwrap();
    let files = read.files();
    let files: Vec<_> = files
        .map(|(entry, content)| (entry.path.to_string(), content.to_vec()))
        .collect();
    assert_eq!(files, wanted);
    *bytes.last_mut().unwrap() ^= 1;
    let refused = paws::read_changeset(&bytes).unwrap_err();
    assert_eq!(refused.code, ArchiveCode::PayloadHashMismatch);
}

#[test]
fn a_file_of_the_largest_size_is_changed() {
    let largest = usize::try_from(paws::MAX_FILE_BYTES).unwrap();
    let of = |byte| Tree::from([("large".to_owned(), (false, vec![byte; largest]))]);
    let (base, target) = (of(b'a'), of(b'b'));
    let bench = Bench::new(&base, &changeset(&base, &target));
    let applied = apply(&bench.archive(), &bench.root(), &()).unwrap();
    assert_eq!((applied.added, applied.changed, applied.deleted), (0, 1, 0));
    assert!(fs::read(bench.root().join("large")).unwrap() == target["large"].1);
}

#[test]
fn a_changeset_may_be_empty() {
    let bench = Bench::new(&base(), &changeset(&base(), &base()));
    let applied = apply(&bench.archive(), &bench.root(), &()).unwrap();
    assert_eq!((applied.added, applied.changed, applied.deleted), (0, 0, 0));
    assert_eq!(bench.seen(), expected(&base()));
}

#[test]
fn a_directory_becomes_the_same_changeset_as_the_trees_in_memory() {
    let place = scratch();
    plant(&place.path().join("root"), &target());
    let output = place.path().join("changes");
    let compared = paws::changeset_between(
        &snapshot(&base()),
        &place.path().join("root"),
        &mut Everything,
        &output,
        &(),
    )
    .unwrap();
    assert_eq!(fs::read(&output).unwrap(), changeset(&base(), &target()));
    assert_eq!(compared.target, snapshot(&target()));
    let verified = paws::verify_file(&File::open(&output).unwrap(), &()).unwrap();
    assert_eq!(verified, Manifest::Changeset(compared.changeset));
}

#[test]
fn a_file_that_became_a_directory_takes_two_changesets() {
    let file = tree(&[("a", false, "x")]);
    let directory = tree(&[("a/b", false, "x")]);
    for (from, to) in [(&file, &directory), (&directory, &file)] {
        let refused = Changeset::between(&snapshot(from), &snapshot(to)).unwrap_err();
        assert_eq!(refused.code, ArchiveCode::PrefixConflict);
        let nothing = Tree::new();
        let bench = Bench::new(from, &changeset(from, &nothing));
        apply(&bench.archive(), &bench.root(), &()).unwrap();
        fs::write(bench.place.path().join("changes"), changeset(&nothing, to)).unwrap();
        apply(&bench.archive(), &bench.root(), &()).unwrap();
        assert_eq!(bench.seen(), expected(to));
    }
}

#[test]
fn a_file_of_the_base_that_is_left_out_is_not_taken_for_deleted() {
    let place = scratch();
    let base = tree(&[
        (".env", false, "secret"),
        ("a", false, "x"),
        ("b.log", false, "x"),
    ]);
    let between = |root: &std::path::Path| {
        let mut choice = Workspace::new(&[], &[]).unwrap();
        let output = place.path().join("changes");
        let compared = paws::changeset_between(&snapshot(&base), root, &mut choice, &output, &());
        compared
            .map(|c| c.changeset.changes().len())
            .map_err(|e| e.code)
    };
    let root = place.path().join("root");
    plant(&root, &base);
    assert_eq!(between(&root), Err(ArchiveCode::BaseLeftOut));
    fs::remove_file(root.join(".env")).unwrap();
    assert_eq!(between(&root), Ok(1));
    fs::write(root.join(".gitignore"), "*.log\n").unwrap();
    assert_eq!(between(&root), Err(ArchiveCode::BaseLeftOut));
    fs::remove_file(root.join("b.log")).unwrap();
    assert_eq!(between(&root), Ok(3));
    symlink("a", root.join("b.log")).unwrap();
    assert_eq!(between(&root), Err(ArchiveCode::BaseLeftOut));
    assert!(
        !place.path().join("changes").exists() || fs::read_dir(place.path()).unwrap().count() == 2
    );
}

/// Entries of a vector as the snapshot before and the one after.
fn sides(entries: &[Value]) -> (Vec<Entry>, Vec<Entry>) {
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for entry in entries {
        let text = |key: &str| entry[key].as_str();
        let path = RelPath::new(text("path").unwrap()).unwrap();
        let side = |hash: &str, size| Entry {
            path: path.clone(),
            executable: entry["mode"] == 100_755,
            size,
            sha256: hash.parse().unwrap(),
        };
        let old = text("base_hash").or_else(|| text("baseHash"));
        before.extend(old.map(|hash| side(hash, 0)));
        let size = entry["size"].as_u64();
        after.extend(text("sha256").map(|hash| side(hash, size.unwrap())));
    }
    (before, after)
}

#[test]
fn what_leads_from_one_tree_to_another_is_written_as_the_vectors_have_it() {
    let vectors: Value =
        serde_json::from_str(include_str!("../../../../fixtures/vectors/paws1.json")).unwrap();
    let vectors = vectors["encode"].as_array().unwrap().iter();
    let vectors: Vec<_> = vectors.filter(|v| v["kind"] == "changeset").collect();
    assert!(vectors.len() >= 20);
    for vector in vectors {
        let workspace = vector["workspace_id"].as_str().unwrap();
        let (before, after) = sides(vector["entries"].as_array().unwrap());
        let base = Snapshot::new(workspace, before).unwrap();
        let target = Snapshot::new(workspace, after).unwrap();
        let header = Changeset::between(&base, &target)
            .unwrap()
            .header()
            .unwrap();
        // The vectors name trees of which they hold only the changed files.
        let text = String::from_utf8(header.split_at(13).1.to_vec()).unwrap();
        let text = text
            .replace(
                &base.snapshot_id().to_string(),
                vector["base_snapshot_id"].as_str().unwrap(),
            )
            .replace(
                &target.snapshot_id().to_string(),
                vector["target_snapshot_id"].as_str().unwrap(),
            );
        let hex: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            &vector["header_hex"].as_str().unwrap()[26..],
            hex,
            "{}",
            vector["name"]
        );
    }
}

/// Trees whose paths meet each other, with names that any file system holds.
fn trees() -> impl Strategy<Value = Tree> {
    let path = proptest::collection::vec("[ab]|[cd]{1,2}|é", 1..4).prop_map(|s| s.join("/"));
    let content = prop_oneof![
        "[xy]{0,2}".prop_map(String::into_bytes),
        proptest::collection::vec(any::<u8>(), 0..40)
    ];
    let file = (any::<bool>(), content);
    proptest::collection::btree_map(path, file, 0..10).prop_map(|tree| {
        let above = |path: &str| {
            tree.keys()
                .any(|other| path.starts_with(&format!("{other}/")))
        };
        let fitting = tree.iter().filter(|(path, _)| !above(path));
        fitting
            .map(|(path, file)| (path.clone(), file.clone()))
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_changeset_applied_to_its_base_gives_its_target(base in trees(), target in trees()) {
        let between = Changeset::between(&snapshot(&base), &snapshot(&target));
        // Files that became directories take two, see above.
        prop_assume!(between.is_ok());
        let bench = Bench::new(&base, &changeset(&base, &target));
        apply(&bench.archive(), &bench.root(), &()).unwrap();
        prop_assert_eq!(bench.seen(), expected(&target));
        let now = pack_directory(&bench.root(), "w", &[]).unwrap();
        prop_assert_eq!(now, packed(&target));
    }

    #[test]
    fn a_changeset_names_exactly_what_differs(base in trees(), target in trees()) {
        let Ok(changes) = Changeset::between(&snapshot(&base), &snapshot(&target)) else {
            return Ok(());
        };
        let mut rebuilt = base.clone();
        for change in changes.changes() {
            let path = change.path().as_str();
            let before = base.get(path).map(|(_, content)| Digest::of(content));
            match change {
                Change::Add(_) => prop_assert_eq!(before, None),
                Change::Change { base_hash, .. } | Change::Delete { base_hash, .. } => {
                    prop_assert_eq!(before, Some(*base_hash));
                }
            }
            prop_assert!(base.get(path) != target.get(path));
            match target.get(path) {
                Some(file) => rebuilt.insert(path.to_owned(), file.clone()),
                None => rebuilt.remove(path),
            };
        }
        prop_assert_eq!(rebuilt, target);
    }
}
