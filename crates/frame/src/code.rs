use flightproof_core::Refused;

flightproof_core::refusal_codes! {
    /// Refusals of the frame room.
    pub enum FrameCode in "frame" {
        /// A descriptor that no frame may come from.
        InvalidFd = "INVALID_FD", Usage,
            "the descriptor cannot carry a frame",
            "a terminal, a device, a directory or one of the three standard streams never has an end that means one",
            "hand over one end of a pipe or of a stream socket, or a file, as descriptor 3 or higher";
        /// Time limits outside what is accepted.
        InvalidOptions = "INVALID_OPTIONS", Usage,
            "a time limit is outside what is accepted",
            "without a limit a peer could keep the reader for ever",
            "use 1 to 120,000 milliseconds in all, and 1 to 10,000 for the close";
        /// A message that must carry something is empty.
        Empty = "EMPTY", Input,
            "a frame that must carry something is empty",
            "an empty frame is either a mistake or a way to keep the reader busy",
            "run the flight again; if it repeats, the session was tampered with";
        /// A message is longer than its kind allows.
        Oversize = "OVERSIZE", Input,
            "a frame is longer than its kind allows, or a conversation than all of it may be",
            "its length is a claim of the sender, and memory is set aside by it",
            "ask for less output in one run";
        /// The bytes end where a message should begin, or inside its header.
        ReadHeader = "READ_HEADER", Environment,
            "the other side ended where a frame should begin, or inside its header",
            "an answer that never came says nothing",
            "look at why the session ended: memory, time, or a kill from outside";
        /// The bytes end inside a message.
        ReadPayload = "READ_PAYLOAD", Environment,
            "the other side ended inside a frame",
            "half an answer says nothing",
            "look at why the session ended: memory, time, or a kill from outside";
        /// Bytes follow the last message.
        Trailing = "TRAILING", Input,
            "bytes follow the last frame",
            "what nobody asked for was put there by somebody",
            "run the flight again; if it repeats, the session was tampered with";
        /// The deadline passed.
        Timeout = "TIMEOUT", Environment,
            "the deadline passed before the frame was whole and its stream closed",
            "nobody may keep the host waiting",
            "raise the limit if the work really takes that long";
        /// Reading or writing failed.
        SourceError = "SOURCE_ERROR", Environment,
            "reading or writing failed, or the source broke its contract",
            "what was not carried over was not said",
            "look at why the session ended: memory, time, or a kill from outside";
        /// Closing failed.
        CloseFailed = "CLOSE_FAILED", Environment,
            "the descriptor could not be closed",
            "a frame ends with its stream, and this one's end is in doubt",
            "look at what the descriptor stands for: a remote or failing file system, most likely";
        /// Whether it was closed is not known.
        CloseUnconfirmed = "CLOSE_UNCONFIRMED", Environment,
            "nothing confirmed in time that the descriptor is closed",
            "a secret whose channel may still be open is not handed on",
            "look at what the descriptor stands for: a remote or failing file system, most likely";
        /// The end of a frame could not be read.
        ReadTrailing = "READ_TRAILING", Environment,
            "reading failed where the end of the frame had to show",
            "a frame without a confirmed end may go on",
            "close the sending side after the last byte, and only then let it go";
        /// Whoever consumed a payload failed.
        CallbackFailed = "CALLBACK_FAILED", Environment,
            "what was to use the payload failed, and the payload is erased",
            "its own error is not shown, as it may quote the secret",
            "look at what the consumer does; the payload must be sent again";
        /// A part of the reader panicked.
        Internal = "INTERNAL", Ours,
            "a part of the reader panicked; what it had read is erased",
            "what it did last is not known",
            "please report it";
        /// A message that does not belong there.
        ProtocolViolation = "PROTOCOL_VIOLATION", Input,
            "a message came that nobody asked for, or of an unknown kind, or out of turn",
            "one reply answers one request; anything else was put there by somebody",
            "run the flight again; if it repeats, the session was tampered with";
    }
}

/// A refusal of this crate.
pub type FrameError = Refused<FrameCode>;
