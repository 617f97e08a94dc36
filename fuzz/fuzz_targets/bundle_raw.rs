#![no_main]

#[path = "importer/oracle.rs"]
mod oracle;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    oracle::bundle(bytes);
});
