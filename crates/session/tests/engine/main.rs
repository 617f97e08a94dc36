//! Sessions of every backend under the same suite, and what only engines do. What needs an engine
//! is in modules whose names begin with `live_`; it fails without one.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod conformance;
mod faults;
mod ground;
mod live_docker;
mod live_languages;
mod live_owners;
mod live_remote;
mod local;
#[path = "../site/mod.rs"]
#[expect(dead_code, reason = "other tests use more of it")]
mod site;
mod tape;
