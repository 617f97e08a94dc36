//! Hostile inputs for the tests of all other rooms: plain data, forged by encoders that share no
//! code with the readers they are meant for. Each attack names the refusal it must meet and has a
//! benign twin that must pass.
#![forbid(unsafe_code)]

pub mod agent;
pub mod archive;
pub mod frame;
pub mod git;

/// One attack.
#[derive(Debug, Clone)]
pub struct Attack {
    /// What it tries, for the message of a failed test.
    pub name: String,
    /// The hostile bytes.
    pub bytes: Vec<u8>,
    /// The code of the refusal, without the name of the crate.
    pub expect: &'static str,
    /// Bytes like it that break no rule.
    pub twin: Vec<u8>,
}
