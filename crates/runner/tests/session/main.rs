//! The runner in a real session: bubblewrap, a user namespace, hostile programs.
//!
//! Needs root and bubblewrap, as a local session of a root user does. Without them each test
//! fails: what was not measured has not passed.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails where it stands"
)]

mod attacks;
mod bubble;
mod duties;
