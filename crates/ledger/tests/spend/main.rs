//! Every way in which money is known to get lost between a reservation and a bill, and what this
//! ledger does instead. The numbers are those of the list in `docs/architecture.md`.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set up its scene must fail"
)]

mod amounts;
mod days;
mod ends;
mod scene;
mod storage;
