#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    flightproof_certifier::fuzzing::revocations_raw(bytes);
});
