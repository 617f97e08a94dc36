#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    flightproof_certifier::fuzzing::statement_raw(bytes);
});
