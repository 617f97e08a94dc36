#![no_main]

#[path = "../../crates/archive/tests/scene/mod.rs"]
mod scene;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    scene::in_a_room(|room| flightproof_archive::fuzzing::extract_raw(room, bytes));
});
