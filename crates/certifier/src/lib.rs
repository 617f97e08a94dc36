//! From evidence to verdict: pure functions and stepwise machines. Nothing here does IO or starts
//! a process; what must be compiled or run is asked for and answered by others.
#![forbid(unsafe_code)]

mod code;
mod scan;

pub mod certificate;
pub mod dependency;
pub mod dsse;
pub mod fence;
pub mod judge;
pub mod key;
pub mod lines;
pub mod mutation;
pub mod policy;
pub mod verify;
pub mod witness;

pub use code::{CertifierCode, CertifierError};
