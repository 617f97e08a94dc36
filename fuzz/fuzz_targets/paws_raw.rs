#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| flightproof_archive::fuzzing::paws_raw(bytes));
