#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| flightproof_importer::fuzzing::tree_raw(bytes));
