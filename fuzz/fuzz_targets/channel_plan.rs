#![no_main]

use flightproof_frame::fuzzing::{Conversation, channel_plan};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| channel_plan(&Conversation::from_bytes(bytes)));
