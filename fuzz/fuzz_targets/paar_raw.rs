#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| flightproof_archive::fuzzing::paar_raw(bytes));
