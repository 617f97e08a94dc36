//! One commit comes home: taken out of a repository nobody vouches for, checked, and, once it is
//! cleared, let in by one compare-and-swap.
//!
//! Git is only ever started through [`Git`], with an empty environment, no hook, no filter and no
//! network. Every object it hands over is hashed again here before anything is believed. A bundle is
//! read by [`check()`] alone; git gets to read a pack that was written here from what was checked,
//! and must find the same objects in it.
#![forbid(unsafe_code)]

mod admit;
mod arrival;
mod attributes;
mod bases;
mod bundle;
mod capture;
mod changeset;
mod check;
mod checkout;
mod claim;
mod clearance;
mod code;
mod commit;
mod freight;
#[doc(hidden)]
pub mod fuzzing;
mod git;
mod grant;
mod hash;
mod host;
mod index;
mod install;
mod judge;
mod land;
mod name;
mod objects;
mod opinion;
mod pack;
mod protocol;
mod receipt;
mod recover;
mod replay;
mod scratch;
mod signature;
mod snapshot;
mod subject;
mod talk;
mod tree;
mod walk;
mod worktree;

pub use admit::{Admitted, admit, check_open, check_open_or_in};
pub use arrival::{Arrival, capture_bundle, check_bundle};
pub use bases::Bases;
pub use capture::{Capture, CaptureRequest, Packed, capture, pack as pack_commit};
pub use check::{Checked, Parcel, check, check_parcel};
pub use checkout::{Checkout, checkout};
pub use clearance::Clearance;
pub use code::{ImportError, ImporterCode};
pub use freight::changeset_of;
pub use git::{Git, Version};
pub use grant::{BUILD, Grants, is_protected};
pub use host::Host;
pub use judge::Rules;
pub use objects::Kind;
pub use receipt::Receipt;
pub use recover::{Outcome, Recovered, recover, recover_repository};
pub use replay::replay;
pub use subject::{changes_of, limits, snapshot_of, snapshot_of_bundle, tree_of};
