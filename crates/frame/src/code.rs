use flightproof_core::Refused;

flightproof_core::refusal_codes! {
    /// Refusals of the frame room.
    pub enum FrameCode in "frame" {
        /// A message that must carry something is empty.
        Empty = "EMPTY", Input,
            "a message that must carry something is empty",
            "an empty message is either a mistake or a way to keep the reader busy",
            "run the flight again; if it repeats, the session was tampered with";
        /// A message is longer than its kind allows.
        Oversize = "OVERSIZE", Input,
            "a message is longer than its kind allows",
            "its length is a claim of the sender, and memory is set aside by it",
            "ask for less output in one run";
        /// The bytes end where a message should begin, or inside its header.
        ReadHeader = "READ_HEADER", Environment,
            "the other side ended where a message should begin, or inside its header",
            "an answer that never came says nothing",
            "look at why the session ended: memory, time, or a kill from outside";
        /// The bytes end inside a message.
        ReadPayload = "READ_PAYLOAD", Environment,
            "the other side ended inside a message",
            "half an answer says nothing",
            "look at why the session ended: memory, time, or a kill from outside";
        /// Bytes follow the last message.
        Trailing = "TRAILING", Input,
            "bytes follow the last message",
            "what nobody asked for was put there by somebody",
            "run the flight again; if it repeats, the session was tampered with";
        /// The deadline passed.
        Timeout = "TIMEOUT", Environment,
            "the deadline passed before the message was whole",
            "nobody may keep the host waiting",
            "raise the limit if the work really takes that long";
        /// Reading or writing failed.
        SourceError = "SOURCE_ERROR", Environment,
            "the operating system refused to read or write the channel",
            "what was not carried over was not said",
            "look at why the session ended: memory, time, or a kill from outside";
        /// A message that does not belong there.
        ProtocolViolation = "PROTOCOL_VIOLATION", Input,
            "a message came that nobody asked for, or of an unknown kind, or out of turn",
            "one reply answers one request; anything else was put there by somebody",
            "run the flight again; if it repeats, the session was tampered with";
    }
}

/// A refusal of this crate.
pub type FrameError = Refused<FrameCode>;
