#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| flightproof_frame::fuzzing::bootstrap_raw(bytes));
