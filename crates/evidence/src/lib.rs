//! Plain data that travels between the stages of a flight. Each type is what one stage proves to
//! the next; none of them does anything.
#![forbid(unsafe_code)]

mod attestation;
mod build;
mod capture;
mod closing;
mod generation;
mod order;

pub use attestation::{Attestation, EvidenceClass, Probe, Reading, RunnerIdentity, Toolchain};
pub use build::{BuildRecord, Built, Diagnostic, Package, ProfileSettings};
pub use capture::{Captured, Change, FileState, Kept};
pub use closing::Closed;
pub use generation::{Generated, GeneratedEntry, GeneratedFile, GeneratorOrder};
pub use order::{
    BuildAnswer, BuildOrder, BuildTarget, CaseRun, Ending, Guard, Observation, SuiteAnswer,
    SuiteOrder, TestProgram,
};
