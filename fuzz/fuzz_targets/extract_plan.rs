#![no_main]

#[path = "../../crates/archive/tests/scene/mod.rs"]
mod scene;

use flightproof_hostile::archive::plan::Scene;

libfuzzer_sys::fuzz_target!(|plan: Scene| {
    let bytes = plan.plan.bytes();
    let scene = scene::played(&plan, &bytes);
    scene::in_a_room(|room| flightproof_archive::fuzzing::extract_plan(room, &scene));
});
