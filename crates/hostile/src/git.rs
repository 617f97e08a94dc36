//! Git repositories nobody should trust, written byte by byte without git's help.
//!
//! An [`Attack`] is plain data: a plan, the answer it must get, and a benign twin that must be
//! taken. [`Plan::build`] writes the repository of a plan to disk.

mod attack;
mod bundle;
mod catalogue;
mod forge;
mod plan;

pub use attack::{Answer, Attack, attacks};
pub use bundle::{
    BasePlan, BundleAttack, DeltaPlan, EntryPlan, PackPlan, Row, Scripted, Step, Store, World,
    bundle_attacks,
};
pub use catalogue::{Held, Row as Trick, catalogue};
pub use forge::{Forge, Id, hex, id_of, tree};
pub use plan::{Built, Bundled, Change, CommitPlan, HostLie, Objects, Parents, Plan, What};
