//! Plans, stages, transcripts, and the commands of the `flights` program. The only place where the
//! stages of a flight are wired together.
#![forbid(unsafe_code)]

mod code;

pub mod agent;
mod annotations;
pub mod command;
pub mod comparison;
pub mod flight;
pub mod gate;
mod interrupt;
pub mod log;
pub mod meter;
mod near;
pub mod patch;
pub mod plan;
mod proof;
pub mod registry;
mod regular;
pub mod report;
pub mod show;
pub mod source;
pub mod ssh_agent;
pub mod state;
pub mod survey;
pub mod timeline;
pub mod transcript;

pub use code::FlightsCode;
