#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| flightproof_session::fuzzing::engine_raw(bytes));
