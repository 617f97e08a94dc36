//! The built program, end to end: exit status, standard output and standard error.
#![expect(clippy::unwrap_used, reason = "in a test a panic is a failed test")]

mod agent;
mod agent_keys;
mod agent_programs;
mod archive;
mod beside;
mod bundle;
mod certify;
mod environment;
mod explain;
mod files;
mod forge;
mod formats;
mod gate;
mod import;
mod init;
mod keys;
mod kill;
mod lines;
mod live_flights;
mod machine;
mod mutate;
mod narrow;
mod plans;
mod recertify;
mod recordings;
mod references;
mod reports;
mod review;
mod runs;
mod spend;
mod tape;
mod transcript;
mod tutorial;
mod verify;
mod witness;
