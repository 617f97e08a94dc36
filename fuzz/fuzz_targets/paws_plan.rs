#![no_main]

use flightproof_hostile::archive::plan::{Plan, Shape};

libfuzzer_sys::fuzz_target!(|plan: Plan| {
    if plan.shape != Shape::Artifact {
        flightproof_archive::fuzzing::paws_plan(&plan.bytes(), plan.verdict());
    }
});
