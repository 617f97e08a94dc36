//! Who may work, without storage.

/// How a lease stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LeaseState {
    /// Nobody has it.
    Free {
        /// The largest token ever given; 0 if none was.
        last: u64,
    },
    /// Somebody has it.
    Held {
        /// The owner's token.
        token: u64,
        /// When it was given or last renewed, unix seconds of a clock that may be wrong.
        granted_at: u64,
        /// When another may try.
        expires_at: u64,
    },
}

/// What happens to a lease. Times are unix seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LeaseEvent {
    /// Somebody wants it.
    Acquire {
        /// What the clock says.
        now: u64,
        /// For how long.
        seconds: u64,
    },
    /// An owner is still there.
    Renew {
        /// The owner's token.
        token: u64,
        /// What the clock says.
        now: u64,
        /// For how long.
        seconds: u64,
    },
    /// An owner gives it back.
    Release {
        /// The owner's token.
        token: u64,
    },
}

/// What a step asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LeaseEffect {
    /// It is the asker's, under this token; every earlier owner is fenced out.
    Granted {
        /// Larger than any before.
        token: u64,
    },
    /// Store the new state.
    Store,
    /// Keep the state, and refuse.
    Refuse(LeaseRefusal),
}

/// Why a step is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LeaseRefusal {
    /// Another owner has it and its time is not over.
    Held,
    /// The asker's token is not the newest.
    Lost {
        /// The asker's token.
        token: u64,
    },
}

/// One step of a lease. A clock decides only when another may try: an owner loses nothing by time
/// passing, and everything by a larger token.
pub fn decide(state: LeaseState, event: LeaseEvent) -> (LeaseState, LeaseEffect) {
    match event {
        LeaseEvent::Acquire { now, seconds } => acquire(state, now, seconds),
        LeaseEvent::Renew {
            token,
            now,
            seconds,
        } => match state {
            LeaseState::Held { token: held, .. } if held == token => {
                (held_from(token, now, seconds), LeaseEffect::Store)
            }
            _ => (state, LeaseEffect::Refuse(LeaseRefusal::Lost { token })),
        },
        LeaseEvent::Release { token } => match state {
            LeaseState::Held { token: held, .. } if held == token => {
                (LeaseState::Free { last: token }, LeaseEffect::Store)
            }
            _ => (state, LeaseEffect::Refuse(LeaseRefusal::Lost { token })),
        },
    }
}

fn acquire(state: LeaseState, now: u64, seconds: u64) -> (LeaseState, LeaseEffect) {
    if let LeaseState::Held {
        granted_at,
        expires_at,
        ..
    } = state
    {
        // A clock behind the moment of the grant says nothing about how long ago that was.
        if (granted_at..expires_at).contains(&now) {
            return (state, LeaseEffect::Refuse(LeaseRefusal::Held));
        }
    }
    let token = state.token().saturating_add(1);
    (
        held_from(token, now, seconds),
        LeaseEffect::Granted { token },
    )
}

fn held_from(token: u64, now: u64, seconds: u64) -> LeaseState {
    LeaseState::Held {
        token,
        granted_at: now,
        expires_at: now.saturating_add(seconds),
    }
}

impl LeaseState {
    /// The largest token ever given.
    pub const fn token(self) -> u64 {
        match self {
            Self::Free { last } => last,
            Self::Held { token, .. } => token,
        }
    }
}
