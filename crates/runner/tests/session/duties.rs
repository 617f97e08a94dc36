//! What an honest program gets, and what the host is told.

use crate::bubble::{Bubble, build, case, open_or_return, text};
use flightproof_core::{Bytes, Digest};
use flightproof_frame::protocol::{CrateFile, PROTOCOL, Place, Reply, Request, Status};

fn exited(code: u8) -> Status {
    Status::Exited { code }
}

#[test]
fn the_runner_introduces_itself_as_the_first_process() {
    let bubble = open_or_return!();
    assert_eq!(bubble.hello.protocol, PROTOCOL);
    assert_eq!(bubble.hello.pid, 1);
    assert!(bubble.hello.landlock_abi >= 1);
}

#[test]
fn every_forbidden_act_is_refused_and_every_needed_one_works() {
    let mut bubble = open_or_return!();
    let Reply::Probe { readings } = bubble.call(&Request::Probe) else {
        panic!("no readings");
    };
    assert!(readings.len() > 40);
    for reading in &readings {
        assert_eq!(
            reading.denied,
            !reading.act.starts_with("may-"),
            "{reading:?}"
        );
    }
    let how = |act: &str| readings.iter().find(|r| r.act == act).unwrap().how.clone();
    assert_eq!(how("connect-inet"), "SIGSYS");
    assert_eq!(how("execute-usr-bin"), "EACCES");
    assert_eq!(how("signal-init"), "EPERM");
    assert_eq!(how("io-uring"), "EPERM");
}
