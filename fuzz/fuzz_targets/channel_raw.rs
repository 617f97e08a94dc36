#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| flightproof_frame::fuzzing::channel_raw(bytes));
