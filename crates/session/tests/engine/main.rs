//! Sessions on container engines.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod live_docker;
mod ground;
