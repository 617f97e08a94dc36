//! From evidence to verdict: pure functions and stepwise machines. Nothing here does IO or starts
//! a process; what must be compiled or run is asked for and answered by others.
#![forbid(unsafe_code)]

mod blocks;
mod classes;
mod code;
mod consistency;
mod flat;
mod matching;
mod population;
#[cfg(test)]
mod samples;
mod scan;
mod standing;

pub mod admission;
pub mod certificate;
pub mod certification;
pub mod claim;
pub mod dependency;
pub mod derived;
pub mod dsse;
pub mod exception;
pub mod feedback;
pub mod fence;
#[doc(hidden)]
pub mod fuzzing;
pub mod generated;
pub mod judge;
pub mod key;
pub mod languages;
pub mod lineage;
pub mod lines;
pub mod log;
pub mod merkle;
pub mod mutation;
pub mod narrowing;
pub mod newer;
pub mod policy;
pub mod revocation;
pub mod ring;
pub mod scope;
pub mod spend;
pub mod ssh;
pub mod suite;
pub mod tokens;
pub mod tree;
pub mod verify;
pub mod witness;

pub use classes::{ClassedLine, LineClass};
pub use code::{CertifierCode, CertifierError};
