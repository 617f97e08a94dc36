#![no_main]

use flightproof_hostile::archive::plan::{Plan, Shape};

libfuzzer_sys::fuzz_target!(|plan: Plan| {
    let plan = Plan {
        shape: Shape::Artifact,
        ..plan
    };
    flightproof_archive::fuzzing::paar_plan(&plan.bytes(), plan.verdict());
});
