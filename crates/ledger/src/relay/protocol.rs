//! Both ends of a link, without storage or network.
//!
//! Messages have numbers from 1, without gaps. One burst of consecutive messages is in flight at a
//! time. What is stored of the states below is `queued`, `acknowledged` and `applied`; the rest is
//! gone with a connection.

/// The sending end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SenderState {
    /// Number of the last message that was queued.
    pub queued: u64,
    /// Number of the last one whose acknowledgement is on disk.
    pub acknowledged: u64,
    /// First and last message of the burst that is under way.
    pub in_flight: Option<(u64, u64)>,
    /// A connection is up.
    pub connected: bool,
}

/// What happens to the sending end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SenderEvent {
    /// One more message was queued.
    Queue,
    /// A connection is up; the receiver has applied so many.
    Connect {
        /// Number of the last message the receiver applied.
        applied: u64,
    },
    /// The receiver acknowledged so many messages from `first` on.
    Acknowledge {
        /// Number of the first one.
        first: u64,
        /// How many; none means that it refused the first one, fewer than were sent that the rest is
        /// to come again.
        count: u64,
    },
    /// The connection is gone.
    Lose,
}

/// What a step of the sending end asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SenderEffect {
    /// Send these messages, byte for byte as they were queued.
    Send {
        /// Number of the first one.
        first: u64,
        /// Number of the last one.
        last: u64,
    },
    /// Record the acknowledgements up to this one; they count when that is on disk.
    Mark {
        /// Number of the last one.
        last: u64,
    },
    /// Everything queued is acknowledged.
    Idle,
    /// Stop: the receiver refused this message. It stays queued.
    Refused {
        /// Its number.
        at: u64,
    },
    /// Stop: the receiver's history is not ours.
    Diverged,
}

/// One step of the sending end. `burst` is the most messages of one burst. Losing a connection
/// never ends anything: what is not acknowledged is sent again over the next.
pub fn send(
    state: SenderState,
    event: SenderEvent,
    burst: u64,
) -> (SenderState, Vec<SenderEffect>) {
    let mut next = state;
    match event {
        SenderEvent::Queue => {
            next.queued += 1;
            if !state.connected || state.in_flight.is_some() {
                return (next, Vec::new());
            }
            let effect = launch(&mut next, burst);
            (next, vec![effect])
        }
        SenderEvent::Connect { applied } => {
            next.in_flight = None;
            // One that forgot what it acknowledged, or knows what was never queued.
            if applied < state.acknowledged || applied > state.queued {
                next.connected = false;
                return (next, vec![SenderEffect::Diverged]);
            }
            next.connected = true;
            let effect = launch(&mut next, burst);
            (next, vec![effect])
        }
        SenderEvent::Acknowledge { first, count } => acknowledge(next, first, count, burst),
        SenderEvent::Lose => {
            next.in_flight = None;
            next.connected = false;
            (next, Vec::new())
        }
    }
}

fn launch(state: &mut SenderState, burst: u64) -> SenderEffect {
    let first = state.acknowledged + 1;
    let last = state.queued.min(state.acknowledged + burst.max(1));
    if first > last {
        return SenderEffect::Idle;
    }
    state.in_flight = Some((first, last));
    SenderEffect::Send { first, last }
}

fn acknowledge(
    mut state: SenderState,
    first: u64,
    count: u64,
    burst: u64,
) -> (SenderState, Vec<SenderEffect>) {
    let Some((sent, last)) = state.in_flight else {
        // One that was answered before: it came twice.
        return (state, Vec::new());
    };
    if first != sent {
        return (state, Vec::new());
    }
    let sent_count = last - sent + 1;
    if count > sent_count {
        state.in_flight = None;
        state.connected = false;
        return (state, vec![SenderEffect::Diverged]);
    }
    state.in_flight = None;
    if count == 0 {
        state.connected = false;
        return (state, vec![SenderEffect::Refused { at: first }]);
    }
    state.acknowledged = first + count - 1;
    let mark = SenderEffect::Mark {
        last: state.acknowledged,
    };
    let following = launch(&mut state, burst);
    (state, vec![mark, following])
}

/// The receiving end: number of the last message that was applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ReceiverState {
    /// Its effect and its answer are on disk.
    pub applied: u64,
}

/// What to do with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReceiverEffect {
    /// Apply it, and store its answer in the same transaction.
    Apply,
    /// Give the stored answer again.
    Replay,
    /// Refuse: one before it is missing.
    Gap,
    /// Refuse: it is not the message that had this number.
    Differs,
}

/// One message at the receiving end. `same` says whether it is the one that was applied under its
/// number, if one was.
pub fn receive(state: ReceiverState, seq: u64, same: bool) -> (ReceiverState, ReceiverEffect) {
    if seq == 0 || seq > state.applied.saturating_add(1) {
        (state, ReceiverEffect::Gap)
    } else if seq > state.applied {
        (ReceiverState { applied: seq }, ReceiverEffect::Apply)
    } else if same {
        (state, ReceiverEffect::Replay)
    } else {
        (state, ReceiverEffect::Differs)
    }
}
