#![no_main]

use flightproof_hostile::agent::plan::forge;

libfuzzer_sys::fuzz_target!(|choices: &[u8]| {
    let forged = forge(choices);
    flightproof_agent::fuzzing::agent_result_plan(&forged.bytes, forged.good);
});
