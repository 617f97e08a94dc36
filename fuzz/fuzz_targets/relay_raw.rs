//! Bytes of a link, as they come from a stranger.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    flightproof_ledger::fuzzing::relay_raw(bytes);
});
