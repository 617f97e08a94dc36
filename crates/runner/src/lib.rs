//! The runner: the first process inside a session. It is handed inputs, runs programs behind
//! walls, and reports what it saw. It never sees an expected output and never judges.
//!
//! It starts as uid 0 of the session's user namespace (an ordinary uid outside), parses nothing of
//! the candidate's with that power except an archive whose every byte is accounted for, and starts
//! everything else as somebody else: builds as one uid, each case as a uid no case ever had.
#![deny(unsafe_code)]

mod bpf;
#[expect(
    unsafe_code,
    reason = "system calls without a safe form; each says why it is sound"
)]
mod calls;
mod code;
mod container;
mod exec;
mod filter;
mod kernel;
mod probe;
mod promote;
mod pump;
mod put;
mod room;
mod scratch;
mod serve;
#[expect(
    unsafe_code,
    reason = "clone, fork and execve have no safe form; the module says why each is sound"
)]
mod spawn;
mod unpack;
mod view;
mod walls;

pub use code::{RunnerCode, RunnerError};
pub use serve::main;
