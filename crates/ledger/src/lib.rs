//! Durable state: which admissions were intended, how each ended, and the receipt of each.
//!
//! One SQLite file, written by one process at a time. What is written here is on disk before the
//! call returns; a commit that fails is reported as uncertain, never as undone.
#![forbid(unsafe_code)]

mod admission;
mod code;
mod lock;
mod store;

pub use admission::{Admission, AdmissionId, AdmissionKey, Intended, State};
pub use code::{LedgerCode, LedgerError};
pub use lock::AdmissionLock;
pub use store::Ledger;
