//! Bytes that cross the wall of a session: the bootstrap frame (one secret, once), the session
//! channel (many bounded messages), and the vocabulary spoken over that channel.
#![forbid(unsafe_code)]

pub mod protocol;
