//! Mutation by schemata: every mutant of the changed lines is compiled into one program, and a
//! selector the program cannot see chooses one of them, or none, before `main`.
//!
//! A mutated expression becomes `(match ::guard::pick(&[ids]) { 0 => (original), 1 => (other), … })`.
//! The original stands first, so that types come from it and what does not compile is an
//! alternative; only the original holds further mutants, so the text stays short; operands are
//! repeated, not bound, so that moves, borrows and drops stay those of the author. Everything is
//! written without a line end: lines stay where they were. Columns do not.
//!
//! What the candidate says about mutants (skip attributes, directives in comments) is ignored.
//! Where the text alone says that code is for tests only, a tripwire is compiled in: if it fires,
//! the code is part of the program and is mutated in the next round.

pub(crate) mod abroad;
mod attribution;
mod calls;
mod choice;
mod condition;
mod examples;
mod fuel;
mod guard;
mod kept;
mod names;
mod operator;
mod outside;
pub(crate) mod parts;
mod passage;
mod plan;
mod reach;
mod render;
mod said;
mod silences;
mod source;
mod stray;
mod survey;
mod syntax;
mod tally;
mod tested;
mod text;
mod twin;
mod values;
mod walker;

pub use attribution::Attribution;
pub(crate) use choice::INERT;
pub use fuel::{Allowance, Fuel, selected};
pub use guard::{FUEL_EXIT, MOST_EACH, UNARMED_EXIT};
pub use operator::Operator;
pub(crate) use plan::id_of;
pub use plan::{
    EditedFile, FileRole, Mutant, MutationInput, MutationPlan, Purpose, Unjudged, Unmutated,
};
pub use reach::{EACH, Part, REACHING, Reach};
pub use survey::Silence;
pub(crate) use survey::{LineIndex, Stretches};
pub(crate) use syntax::{is_test_only, takes_expressions};
pub use tally::{Answer, FamilyCount, Fate, Kill, Run, Tally, Trial};
pub(crate) use tally::{unchanged_control, unnoticed_placebo};
pub(crate) use tested::PageCode;
pub(crate) use twin::Twins;

/// Most mutants of one change. A program of this many is still built in seconds; a change that
/// needs more is too large to be judged as one.
pub const MAX_MUTANTS: usize = 2_000;

/// Most mutants of one survey of trusted tests: nobody is kept waiting by it but the caller.
pub const MAX_SURVEYED: usize = 50_000;

/// Most bytes of alternatives in one change: operands are repeated in every alternative, and a
/// chain of `n` operators repeats `n²` of them.
pub const MAX_CODE_BYTES: usize = 8 * 1024 * 1024;
