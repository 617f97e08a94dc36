#![no_main]

libfuzzer_sys::fuzz_target!(
    |choices: &[u8]| flightproof_certifier::fuzzing::envelope_plan(choices)
);
