#![no_main]

#[path = "importer/oracle.rs"]
mod oracle;

libfuzzer_sys::fuzz_target!(|script: &[u8]| oracle::script(script));
