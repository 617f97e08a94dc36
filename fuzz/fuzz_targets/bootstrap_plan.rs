#![no_main]

use flightproof_frame::fuzzing::{Delivery, bootstrap_plan};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bootstrap_plan(&Delivery::from_bytes(bytes)));
