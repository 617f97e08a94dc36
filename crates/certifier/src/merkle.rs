//! Merkle trees as RFC 6962 has them: leaves and nodes begin with different bytes, and the left
//! subtree is the largest complete one.

use flightproof_core::{Digest, Hasher};

/// The hash of a leaf.
pub fn leaf(content: &[u8]) -> Digest {
    hash(&[&[0], content])
}

/// The hash over two subtrees.
pub fn node(left: &Digest, right: &Digest) -> Digest {
    hash(&[&[1], left.as_bytes(), right.as_bytes()])
}

/// The root over hashes of leaves; of none, the hash of nothing.
pub fn root(leaves: &[Digest]) -> Digest {
    match leaves {
        [] => hash(&[]),
        [only] => *only,
        _ => {
            let (left, right) = leaves.split_at(split(leaves.len()));
            node(&root(left), &root(right))
        }
    }
}

/// What lies beside the way from a leaf to the root, the leaf's sibling first. Empty for a leaf that
/// is not there.
pub fn path(leaves: &[Digest], index: usize) -> Vec<Digest> {
    if leaves.len() < 2 || index >= leaves.len() {
        return Vec::new();
    }
    let at = split(leaves.len());
    let (left, right) = leaves.split_at(at);
    let (mut path, beside) = if index < at {
        (self::path(left, index), root(right))
    } else {
        (self::path(right, index - at), root(left))
    };
    path.push(beside);
    path
}

/// The root that a leaf and its path lead to, in a tree of `size` leaves; none if the path has
/// another length than the place of the leaf demands.
pub fn climb(leaf: Digest, index: u64, size: u64, path: &[Digest]) -> Option<Digest> {
    if index >= size {
        return None;
    }
    let (mut at, mut last) = (index, size - 1);
    let mut hash = leaf;
    for beside in path {
        if last == 0 {
            return None;
        }
        if at % 2 == 1 || at == last {
            hash = node(beside, &hash);
            // A subtree without a right half is its own parent.
            while at % 2 == 0 && at != 0 {
                at /= 2;
                last /= 2;
            }
        } else {
            hash = node(&hash, beside);
        }
        at /= 2;
        last /= 2;
    }
    (last == 0).then_some(hash)
}

/// The largest power of two below a count of at least two.
fn split(count: usize) -> usize {
    count.next_power_of_two() / 2
}

fn hash(parts: &[&[u8]]) -> Digest {
    let mut hasher = Hasher::new();
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaves(count: u8) -> Vec<Digest> {
        (0..count).map(|n| leaf(&[n])).collect()
    }

    #[test]
    fn roots_are_those_of_rfc_6962() {
        // From the test vectors of the certificate transparency reference implementation.
        let inputs: [&[u8]; 4] = [b"", b"\0", b"\x10", b"\x20\x21"];
        let leaves: Vec<Digest> = inputs.iter().map(|input| leaf(input)).collect();
        for (count, expected) in [
            (
                0,
                "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            ),
            (
                1,
                "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
            ),
            (
                2,
                "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
            ),
            (
                3,
                "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
            ),
            (
                4,
                "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
            ),
        ] {
            assert_eq!(root(&leaves[..count]).to_string(), expected, "{count}");
        }
    }

    #[test]
    fn there_is_no_way_from_a_leaf_that_is_not_there() {
        for size in 0..=5u8 {
            assert_eq!(path(&leaves(size), usize::from(size)), []);
            assert_eq!(path(&leaves(size), usize::MAX), []);
        }
    }

    #[test]
    fn every_leaf_of_every_small_tree_climbs_to_its_root_and_to_no_other() {
        for size in 1..=33u8 {
            let leaves = leaves(size);
            let root = root(&leaves);
            for index in 0..size {
                let path = path(&leaves, usize::from(index));
                let (index, size) = (u64::from(index), u64::from(size));
                let leaf = leaves[usize::try_from(index).unwrap()];
                assert_eq!(climb(leaf, index, size, &path), Some(root));
                for wrong in 0..size {
                    let reached = climb(leaf, wrong, size, &path);
                    assert!(wrong == index || reached != Some(root), "{wrong} of {size}");
                }
                assert_ne!(climb(self::leaf(b"x"), index, size, &path), Some(root));
                let longer = [&path[..], &[root]].concat();
                assert_eq!(climb(leaf, index, size, &longer), None);
                if let Some((_, shorter)) = path.split_last() {
                    assert_eq!(climb(leaf, index, size, shorter), None);
                }
            }
            assert_eq!(
                climb(leaves[0], u64::from(size), u64::from(size), &[]),
                None
            );
        }
    }
}
