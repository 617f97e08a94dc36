//! Bundles nobody should trust: forged headers, packs, deltas, trees and commits.

mod commits;
mod corners;
mod deltas;
mod encode;
mod envelope;
mod packs;
mod script;
mod trees;
mod world;

pub use encode::{BasePlan, DeltaPlan, EntryPlan, PackPlan, Step};
pub use script::Scripted;
pub use world::{Row, Store, World};

use super::Id;
use std::sync::Arc;

/// One forged bundle, what must be said about it, and an honest one next to it.
#[derive(Debug, Clone)]
pub struct BundleAttack {
    /// What it tries.
    pub name: String,
    /// What the repository it is meant for holds.
    pub store: Arc<Store>,
    /// The commit it must be based on.
    pub baseline: Id,
    /// Paths that are granted; none for everything.
    pub grants: &'static [&'static str],
    /// The hostile bytes.
    pub bytes: Vec<u8>,
    /// The code it must be refused with.
    pub expect: &'static str,
    /// Like it, and accepted.
    pub twin: Vec<u8>,
}

/// Every forged bundle.
pub fn bundle_attacks() -> Vec<BundleAttack> {
    let world = World::usual();
    [
        envelope::attacks(&world),
        packs::attacks(&world),
        deltas::attacks(&world),
        trees::attacks(&world),
        commits::attacks(&world),
        corners::attacks(&world),
    ]
    .concat()
}

impl World {
    fn attack(
        &self,
        name: impl Into<String>,
        bytes: Vec<u8>,
        expect: &'static str,
        twin: Vec<u8>,
    ) -> BundleAttack {
        BundleAttack {
            name: name.into(),
            store: Arc::clone(&self.store),
            baseline: self.baseline,
            grants: &[],
            bytes,
            expect,
            twin,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bundle_has_a_name_of_its_own_and_differs_from_its_twin() {
        let attacks = bundle_attacks();
        let mut names: Vec<_> = attacks.iter().map(|a| a.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), attacks.len());
        assert!(
            attacks
                .iter()
                .all(|a| a.bytes != a.twin || !a.grants.is_empty())
        );
        assert!(attacks.len() > 130, "{}", attacks.len());
    }
}
