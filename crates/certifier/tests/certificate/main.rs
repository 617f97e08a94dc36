//! A certificate against everybody who would like another one to be accepted.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod beside;
mod build;
mod claims;
mod fixture;
mod fuzz;
mod lineage;
mod log;
mod outside;
mod policy;
mod statement;
