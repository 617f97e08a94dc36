//! One commit comes home: taken out of a repository nobody vouches for, checked, and, once it is
//! cleared, let in by one compare-and-swap.
//!
//! Git is only ever started through [`Git`], with an empty environment, no hook, no filter and no
//! network. Every object it hands over is hashed again here before anything is believed.
#![forbid(unsafe_code)]

mod admit;
mod bundle;
mod capture;
mod clearance;
mod code;
mod commit;
mod git;
mod grant;
mod host;
mod name;
mod objects;
mod receipt;
mod recover;
mod scratch;
mod snapshot;
mod subject;
mod talk;
mod tree;
mod walk;

pub use admit::{Admitted, admit, check_open};
pub use capture::{Capture, CaptureRequest, capture};
pub use clearance::Clearance;
pub use code::{ImportError, ImporterCode};
pub use git::{Git, Version};
pub use grant::{Grants, PROTECTED};
pub use host::Host;
pub use receipt::Receipt;
pub use recover::{Outcome, Recovered, recover};
pub use subject::{limits, snapshot_of};
