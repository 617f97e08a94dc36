//! Durable state: what was admitted, what was spent, what was answered, and what is still to be sent.
//!
//! One SQLite file, one writer at a time. What is written here is on disk before the call returns; a
//! commit that fails is reported as uncertain, never as undone. Each protocol is a pure function
//! `decide(State, Event) -> (State, Effects)`; SQL only loads and stores.
//!
//! The program `flights` uses admissions, [`hold`], [`lease`], [`session`], the export and the check.
//! [`inbox`], [`record`], [`message`], [`relay`], [`closing`] and [`Shared`] are for programs that embed
//! this crate.
#![forbid(unsafe_code)]

mod admission;
mod admissions;
mod anchor;
pub mod closing;
mod code;
mod export;
pub mod faults;
pub mod fuzzing;
pub mod hold;
pub mod inbox;
pub mod lease;
mod lock;
pub mod message;
mod name;
pub mod record;
pub mod relay;
mod schema;
mod seal;
pub mod session;
mod store;

pub use admission::{Admission, AdmissionId, AdmissionKey, Intended, State};
pub use admissions::uncertified;
pub use anchor::Head;
pub use code::{LedgerCode, LedgerError};
pub use hold::{
    Cap, Hold, HoldSize, HoldState, Overrun, Reserve, Resolution, Scope, Signed, Spending, UtcDay,
};
pub use inbox::Received;
pub use lease::Lease;
pub use lock::AdmissionLock;
pub use name::Name;
pub use record::{Begun, Record, RecordKind};
pub use session::{SessionEvent, SessionState};
pub use store::{Ledger, Reading, Shared, Writer, Writing};
