//! The pack of a bundle: entries, inflation, deltas, and the pack of our own that git gets to see.

mod delta;
mod entry;
mod inflate;
mod resolve;
mod write;

pub(crate) use delta::apply;
pub(crate) use entry::{Base, Entry, Form, read};
pub(crate) use resolve::{Object, Resolver};
pub(crate) use write::write;

/// Most objects of a pack.
pub(crate) const OBJECTS: usize = 1_024;
/// Most bytes that come out of all its compressed streams: 2 MiB.
pub(crate) const RAW: usize = 2 << 20;
/// Most bytes of all its objects, deltas applied: 2 MiB.
pub(crate) const RESOLVED: usize = 2 << 20;
