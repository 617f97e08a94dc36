use super::*;
use crate::Git;
use crate::git::Verb;
use crate::scratch::Scratch;
use flightproof_core::CommitId;
use std::ffi::OsStr;

fn tracked(id: u8) -> Tracked {
    let mut stat = [0; STAT];
    stat[24..28].copy_from_slice(&0o100_644_u32.to_be_bytes());
    Tracked {
        stat,
        id: ObjectId::from_bytes([id; 20]),
    }
}

fn empty(version: u32) -> Index<'static> {
    Index {
        version,
        entries: Vec::new(),
        cache: None,
    }
}

fn edits<'a>(names: &'a [&'a str]) -> Edits<'a> {
    names
        .iter()
        .map(|name| (name.as_bytes(), Some(tracked(7))))
        .collect()
}

#[test]
fn what_is_written_is_read_again_in_every_version() {
    let long = "x".repeat(LONGEST);
    let names = ["a", "a/b/c", "a.b", "b", "dir/one", "dir/other", &long];
    for version in [2, 4] {
        let file = empty(version).write(&edits(&names)).unwrap();
        let index = Index::parse(&file).unwrap();
        assert_eq!((index.version, index.len()), (version, names.len()));
        for name in names {
            let found = index.file(name.as_bytes()).unwrap();
            assert_eq!(found, (ObjectId::from_bytes([7; 20]), 0o100_644));
        }
        assert_eq!(index.write(&Edits::new()).unwrap(), file);
        assert_eq!(index.file(b"c"), None);
        let gone = Edits::from([(&b"b"[..], None), (&b"a"[..], Some(tracked(9)))]);
        let file = index.write(&gone).unwrap();
        let index = Index::parse(&file).unwrap();
        assert_eq!(index.len(), names.len() - 1);
        assert_eq!(index.file(b"b"), None);
        assert_eq!(index.file(b"a").unwrap().0, ObjectId::from_bytes([9; 20]));
        let two = index.only([&b"dir/one"[..], b"missing", b"a"].into_iter());
        assert_eq!(two.len(), 2);
    }
}

#[test]
fn every_cut_and_every_changed_byte_is_noticed() {
    let file = empty(2).write(&edits(&["a", "b/c"])).unwrap();
    for cut in 0..file.len() {
        assert!(Index::parse(&file[..cut]).is_err(), "{cut}");
    }
    for at in 0..file.len() {
        let mut changed = file.clone();
        changed[at] ^= 1;
        assert!(Index::parse(&changed).is_err(), "{at}");
    }
}

/// An index without a checksum: what is wrong with it is found by reading.
fn unsummed(version: u32, count: u32, body: &[u8]) -> Vec<u8> {
    let mut file = b"DIRC".to_vec();
    file.extend_from_slice(&version.to_be_bytes());
    file.extend_from_slice(&count.to_be_bytes());
    file.extend_from_slice(body);
    file.extend_from_slice(&[0; TRAILER]);
    file
}

fn entry(name: &str, flags: u16, more: u16) -> Vec<u8> {
    let mut out = tracked(1).stat.to_vec();
    out.extend_from_slice(&[1; 20]);
    out.extend_from_slice(&flags.to_be_bytes());
    if flags & EXTENDED != 0 {
        out.extend_from_slice(&more.to_be_bytes());
    }
    out.extend_from_slice(name.as_bytes());
    out.resize(padded(out.len()), 0);
    out
}

#[test]
fn what_is_not_understood_is_refused_and_what_is_not_needed_left_out() {
    let plain = entry("a", 1, 0);
    let code = |file: &[u8]| Index::parse(file).map(|_| ()).map_err(|e| e.code);
    let with = |extension: &[u8]| unsummed(2, 1, &[&plain, extension].concat());
    assert_eq!(code(&with(b"")), Ok(()));
    assert_eq!(code(&with(b"UNTR\0\0\0\x02xx")), Ok(()));
    for extension in [
        &b"link\0\0\0\0"[..],
        b"sdir\0\0\0\0",
        b"new!\0\0\0\0",
        b"UNTR\0\0\0\x09xx",
        b"UN",
    ] {
        assert_eq!(code(&with(extension)), Err(ImporterCode::HostUnsupported));
    }
    for (flags, more) in [(STAGE & 0x1000, 0), (EXTENDED, INTENT_TO_ADD)] {
        let file = unsummed(3, 1, &entry("a", flags | 1, more));
        assert_eq!(code(&file), Err(ImporterCode::SourceChanged));
    }
    let twice = [plain.clone(), plain].concat();
    assert_eq!(
        code(&unsummed(2, 2, &twice)),
        Err(ImporterCode::HostUnsupported)
    );
    for version in [0, 1, 5] {
        assert!(Index::parse(&unsummed(version, 0, b"")).is_err());
    }
    assert!(Index::parse(&unsummed(2, u32::MAX, b"")).is_err());
}

#[test]
fn names_that_grow_out_of_a_small_index_are_refused() {
    // Each entry shares all of the name before it and adds a byte.
    let mut body = Vec::new();
    for number in 0..=LONGEST {
        let fixed = entry("", 1, 0);
        body.extend_from_slice(&fixed[..FIXED]);
        body.extend_from_slice(b"\0x\0");
        if number + 2 > LONGEST {
            let count = u32::try_from(number + 1).unwrap();
            let refused = Index::parse(&unsummed(4, count, &body)).err();
            let expected = (number >= LONGEST).then_some(ImporterCode::HostUnsupported);
            assert_eq!(refused.map(|e| e.code), expected, "{number}");
        }
    }
    for version in [2, 4] {
        let long = "x".repeat(LONGEST + 1);
        let file = empty(version).write(&edits(&[&long])).unwrap();
        let refused = Index::parse(&file).unwrap_err();
        assert_eq!(refused.code, ImporterCode::HostUnsupported);
    }
}

#[test]
fn shared_beginnings_of_names_are_charged_in_full() {
    let above = "x".repeat(1_000);
    let names: Vec<String> = (10..99).map(|n| format!("{above}/{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let file = empty(4).write(&edits(&names)).unwrap();
    let all: usize = names.iter().map(|name| name.len()).sum();
    assert!(file.len() < all / 10);
    assert!(Index::parse_within(&file, all).is_ok());
    let refused = Index::parse_within(&file, all - 1).unwrap_err();
    assert_eq!(refused.code, ImporterCode::HostUnsupported);
}

#[test]
fn flags_of_untouched_paths_stay() {
    const SKIP: u16 = 0x4000;
    let body = [entry("a", 0x8000 | 1, 0), entry("b", EXTENDED | 1, SKIP)].concat();
    let file = unsummed(3, 2, &body);
    let index = Index::parse(&file).unwrap();
    let written = index.write(&edits(&["c"])).unwrap();
    let again = Index::parse(&written).unwrap();
    assert_eq!(again.version, 3);
    assert_eq!(again.entries[0].flags & 0x8000, 0x8000);
    assert_eq!(again.entries[1].more, SKIP);
    assert_eq!(again.entries[2].more, 0);
}

#[test]
fn only_directories_above_a_change_are_forgotten() {
    let id = [3; 20];
    let record = |name: &str, count: &str, within: u32, id: &[u8]| {
        [format!("{name}\0{count} {within}\n").as_bytes(), id].concat()
    };
    let cache = |root: &str, a: &str| {
        let known = |count: &str| {
            if count == "-1" {
                Vec::new()
            } else {
                id.to_vec()
            }
        };
        [
            record("", root, 2, &known(root)),
            record("a", a, 1, &known(a)),
            record("b", "1", 0, &id),
            record("c", "1", 0, &id),
        ]
        .concat()
    };
    let whole = cache("4", "3");
    let path: &[u8] = b"a/file";
    assert_eq!(
        cache::without(&whole, [path].into_iter()),
        Some(cache("-1", "-1"))
    );
    let nested: &[u8] = b"c/x";
    let root_and_c = cache::without(&whole, [nested].into_iter()).unwrap();
    assert!(root_and_c.ends_with(b"c\0-1 0\n"));
    for cut in 0..whole.len() {
        assert_eq!(
            cache::without(&whole[..cut], [path].into_iter()),
            None,
            "{cut}"
        );
    }
    let mut longer = whole;
    longer.push(0);
    assert_eq!(cache::without(&longer, [path].into_iter()), None);
}

#[test]
fn a_path_is_known_again_after_others_were_left() {
    let record =
        |name: &str, within: u32| [format!("{name}\01 {within}\n").as_bytes(), &[3; 20]].concat();
    let records = [("", 2), ("a", 1), ("b", 1), ("c", 0), ("b", 1), ("c", 0)];
    let whole = records.map(|(name, within)| record(name, within)).concat();
    let path: &[u8] = b"b/c/file";
    let written = cache::without(&whole, [path].into_iter()).unwrap();
    let forgotten = b"b\0-1 1\nc\0-1 0\n";
    assert!(written.ends_with(forgotten));
    assert_eq!(written.len(), whole.len() - 3 * 20 + 3);
}

#[test]
fn git_reads_an_index_of_many_megabytes() {
    let temp = tempfile::tempdir().unwrap();
    let floor = CommitId::from_bytes([1; 20]);
    let window = Scratch::empty(temp.path().join("window.git"), floor).unwrap();
    let file = temp.path().join("index");
    // As much as 600,000 ordinary paths, in fewer.
    let long = "x".repeat(60_000);
    let names: Vec<String> = (0..1_200).map(|n| format!("{n:04}{long}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    std::fs::write(&file, empty(2).write(&edits(&names)).unwrap()).unwrap();
    // The tree that has nothing in it, which git knows without a file.
    let words = ["4b825dc642cb6eb9a060e54bf8d69288fbee4904", "--"].map(OsStr::new);
    let git = Git::find().unwrap();
    let place = window.with_index(&file);
    let answer = git.ask(Verb::DiffIndex, place, &words).unwrap();
    assert_eq!((answer.code, answer.complaint.as_str()), (1, ""));
}
