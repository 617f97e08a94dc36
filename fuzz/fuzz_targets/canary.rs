#![no_main]

// A bug that a fuzzer with working coverage finds in seconds and blind guessing does not find in
// a night: five bytes, one comparison each. A campaign that misses it counts for nothing.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut matching = 0;
    for (found, wanted) in bytes.iter().zip(b"proof") {
        if found != wanted {
            return;
        }
        matching += 1;
    }
    assert!(matching < 5, "the planted bug");
});
