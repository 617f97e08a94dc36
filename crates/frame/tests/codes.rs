//! Every code of this crate is produced by a test of it.

use flightproof_core::Code;
use flightproof_frame::FrameCode;
use flightproof_hostile::frame::{bootstrap_attacks, host_attacks, runner_attacks};

#[test]
fn every_code_is_produced_by_a_test() {
    let attacks = [host_attacks(), runner_attacks(), bootstrap_attacks()].concat();
    let tests = [
        include_str!("channel.rs"),
        include_str!("bootstrap/deadlines.rs"),
        include_str!("bootstrap/delivery.rs"),
        include_str!("bootstrap/descriptors.rs"),
        include_str!("bootstrap/payload.rs"),
        include_str!("bootstrap/refusals.rs"),
    ];
    for code in FrameCode::ALL {
        let name = code.explanation().code.trim_start_matches("frame/");
        let forged = attacks.iter().any(|attack| attack.expect == name);
        let tested = tests
            .iter()
            .any(|test| test.contains(&format!("FrameCode::{code:?}")));
        assert!(forged || tested, "{name}");
    }
}
