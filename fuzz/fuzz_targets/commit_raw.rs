#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| flightproof_importer::fuzzing::commit_raw(bytes));
