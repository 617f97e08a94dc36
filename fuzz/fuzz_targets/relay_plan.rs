//! A link over a network that does anything.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    flightproof_ledger::fuzzing::relay_plan(bytes);
});
