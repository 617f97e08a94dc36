//! One oracle per surface and kind of input: unit test, property test, seed replay and fuzz target
//! call the same body. Each knows the rules a second time, over whole inputs, and panics where the
//! code that ships says something else.

mod bootstrap;
mod channel;
mod conversation;

pub use bootstrap::{Delivery, Ending, Step, bootstrap_plan, bootstrap_raw, frame_of};
pub use channel::{channel_raw, decode};
pub use conversation::{Conversation, Turn, channel_plan};
