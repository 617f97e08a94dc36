//! What becomes of something that is done outside the ledger, without storage.

/// How a record stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RecordState {
    /// It may have been done.
    Pending,
    /// It was done, and the outcome is kept.
    Applied,
    /// Its owner is gone; whether it was done is unknown.
    Interrupted,
}

/// What happens to a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RecordEvent {
    /// Somebody is about to do it.
    Begin {
        /// It is what the key was first seen with.
        same: bool,
        /// The asker is the owner that began it.
        owner: bool,
    },
    /// It was done.
    End {
        /// The one who says so is the owner that began it.
        owner: bool,
    },
    /// Another owner has taken over.
    OwnerGone,
}

/// What a step asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RecordEffect {
    /// Store it as pending, then do it.
    Do,
    /// Give the stored outcome.
    Replay,
    /// Say that it is being done.
    SayPending,
    /// Say that it was interrupted.
    SayInterrupted,
    /// Store the new state.
    Store,
    /// Nothing.
    Same,
    /// Refuse.
    Refuse,
}

/// One step of a record; `None` is one that does not exist. Only what does not exist is ever done.
pub fn decide(
    state: Option<RecordState>,
    event: RecordEvent,
) -> (Option<RecordState>, RecordEffect) {
    use RecordEffect as E;
    use RecordState as S;
    match (state, event) {
        (None, RecordEvent::Begin { .. }) => (Some(S::Pending), E::Do),
        (Some(_), RecordEvent::Begin { same: false, .. }) => (state, E::Refuse),
        (Some(S::Pending), RecordEvent::Begin { owner: true, .. }) => (state, E::SayPending),
        (Some(S::Pending), RecordEvent::Begin { owner: false, .. }) => (state, E::SayInterrupted),
        (Some(S::Applied), RecordEvent::Begin { .. }) => (state, E::Replay),
        (Some(S::Interrupted), RecordEvent::Begin { .. }) => (state, E::SayInterrupted),
        (Some(S::Pending), RecordEvent::End { owner: true }) => (Some(S::Applied), E::Store),
        (Some(S::Pending), RecordEvent::OwnerGone) => (Some(S::Interrupted), E::Store),
        (_, RecordEvent::End { .. }) => (state, E::Refuse),
        (_, RecordEvent::OwnerGone) => (state, E::Same),
    }
}

impl RecordState {
    /// The word in the ledger.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Applied => "applied",
            Self::Interrupted => "interrupted",
        }
    }

    pub(crate) fn from_word(word: &str) -> Option<Self> {
        [Self::Pending, Self::Applied, Self::Interrupted]
            .into_iter()
            .find(|state| state.word() == word)
    }
}
