//! Writes the seeds of the importer's fuzz targets below a folder: `fuzz_seeds fuzz/seeds`.
#![expect(clippy::unwrap_used, reason = "seeds that cannot be written must fail")]

use flightproof_hostile::git::{DeltaPlan, Step, World, bundle_attacks};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Largest seed in bytes: mutations of long inputs come to nothing.
const LARGEST: usize = 1_500;

fn main() {
    let top = PathBuf::from(std::env::args().nth(1).unwrap());
    let write = |target: &str, name: &str, bytes: &[u8]| {
        let name: String = name
            .chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() {
                    c.to_ascii_lowercase()
                } else {
                    '-'
                }
            })
            .collect();
        std::fs::create_dir_all(top.join(target)).unwrap();
        std::fs::write(top.join(target).join(name.trim_matches('-')), bytes).unwrap();
    };
    let world = World::usual();
    // One attack of each code, and its twin.
    let mut codes = BTreeMap::new();
    for attack in bundle_attacks() {
        let fits = attack.bytes.len() <= LARGEST && attack.twin.len() <= LARGEST;
        if fits && attack.baseline == world.baseline {
            codes.entry(attack.expect).or_insert(attack);
        }
    }
    for attack in codes.values() {
        write("bundle_raw", &attack.name, &attack.bytes);
        write("bundle_raw", &format!("{} twin", attack.name), &attack.twin);
        let pack = |bytes: &[u8]| {
            let start = bytes.windows(4).position(|word| word == b"PACK");
            start.map(|start| bytes[start..].to_vec())
        };
        if let Some(pack) = pack(&attack.bytes) {
            write("pack_raw", &attack.name, &pack);
        }
    }
    for number in 0..12u8 {
        let script: Vec<u8> = (0..40 + number)
            .map(|n| n.wrapping_mul(37) ^ number.wrapping_mul(91))
            .collect();
        write("bundle_plan", &format!("script {number}"), &script);
        let pack = world.scripted(&script).bytes;
        let start = pack.windows(4).position(|word| word == b"PACK").unwrap();
        write("pack_raw", &format!("script {number}"), &pack[start..]);
    }
    deltas(&write);
    for (kind, body) in world.store.values() {
        match *kind {
            "tree" => write("tree_raw", &format!("tree of {} bytes", body.len()), body),
            "commit" => write(
                "commit_raw",
                &format!("commit of {} bytes", body.len()),
                body,
            ),
            _ => {}
        }
    }
    texts(&write);
}

fn deltas(write: &impl Fn(&str, &str, &[u8])) {
    let base = b"pub fn a() -> u8 { 1 }\n";
    let long = u32::try_from(base.len()).unwrap();
    let plans = [
        ("a copy", vec![Step::Copy(0, long)]),
        ("an insertion", vec![Step::Insert(b"new".to_vec())]),
        (
            "both",
            vec![
                Step::Copy(3, 5),
                Step::Insert(b"x".to_vec()),
                Step::Copy(0, 9),
            ],
        ),
        ("a copy too far", vec![Step::Copy(1, long)]),
        ("instruction zero", vec![Step::Raw(vec![0])]),
        ("nothing", vec![]),
    ];
    for (name, steps) in plans {
        let delta = DeltaPlan::honest(base.len(), steps).bytes();
        let length = u16::try_from(base.len()).unwrap().to_le_bytes();
        write("delta_raw", name, &[&length[..], base, &delta].concat());
    }
}

fn texts(write: &impl Fn(&str, &str, &[u8])) {
    let id = "1".repeat(40);
    let who = "A Bot <bot@example.org> 1700000000 +0100";
    for (name, text) in [
        (
            "two parents",
            format!("tree {id}\nparent {id}\nparent {id}\nauthor {who}\ncommitter {who}\n\nm\n"),
        ),
        (
            "a signature",
            format!("tree {id}\nparent {id}\nauthor {who}\ncommitter {who}\ngpgsig x\n y\n\nm\n"),
        ),
        (
            "a body",
            format!("tree {id}\nparent {id}\nauthor {who}\ncommitter {who}\n\ns\n\nb\u{f6}dy\n"),
        ),
        (
            "no message",
            format!("tree {id}\nauthor {who}\ncommitter {who}\n\n"),
        ),
    ] {
        write("commit_raw", name, text.as_bytes());
    }
    for (name, rows) in [
        ("old modes", &[("100664", "a"), ("040000", "b")][..]),
        (
            "a directory between files",
            &[("100644", "a.b"), ("40000", "a"), ("100755", "a0")],
        ),
        ("out of order", &[("100644", "b"), ("100644", "a")]),
        ("links", &[("120000", "l"), ("160000", "m")]),
    ] {
        let tree: Vec<u8> = rows
            .iter()
            .flat_map(|(mode, name)| {
                [mode.as_bytes(), b" ", name.as_bytes(), b"\0", &[7; 20]].concat()
            })
            .collect();
        write("tree_raw", name, &tree);
    }
}
