#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| flightproof_agent::fuzzing::agent_result_raw(bytes));
