//! The life of a session, without storage.

/// How a session stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SessionState {
    /// There never was one of this name.
    Absent,
    /// Written down; its processes may be starting.
    Created,
    /// At work.
    Running,
    /// Stopped, to go on later.
    Passivated,
    /// Being taken down. Nothing runs in it any more that should.
    Closing,
    /// Taken down, and whether everything is gone could not be told. It may be tried again.
    Uncertain,
    /// Gone: somebody looked. The name is never used again.
    Deleted,
}

/// What happens to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SessionEvent {
    /// It is about to be made.
    Create,
    /// It works.
    Run,
    /// It stops for now.
    Passivate,
    /// It is to end.
    Close,
    /// Nothing of it is left: counted, not assumed.
    ConfirmDeletion,
    /// Whether something of it is left could not be told.
    DeletionUncertain,
}

/// What a step asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SessionEffect {
    /// Store the new state.
    Store,
    /// Nothing: it was so already. Closing twice does not run anything again.
    Same,
    /// Refuse.
    Refuse,
}

/// One step in a session's life. [`SessionState::Deleted`] is reached from a confirmation only, and
/// never left.
pub fn decide(state: SessionState, event: SessionEvent) -> (SessionState, SessionEffect) {
    use SessionEffect::{Refuse, Same, Store};
    use SessionEvent as E;
    use SessionState as S;
    match (state, event) {
        (S::Absent, E::Create) => (S::Created, Store),
        (S::Created | S::Passivated, E::Run) => (S::Running, Store),
        (S::Running, E::Passivate) => (S::Passivated, Store),
        (S::Created | S::Running | S::Passivated | S::Uncertain, E::Close) => (S::Closing, Store),
        (S::Closing | S::Uncertain, E::ConfirmDeletion) => (S::Deleted, Store),
        (S::Closing, E::DeletionUncertain) => (S::Uncertain, Store),
        (S::Closing | S::Deleted, E::Close)
        | (S::Deleted, E::ConfirmDeletion)
        | (S::Uncertain, E::DeletionUncertain)
        | (S::Running, E::Run)
        | (S::Passivated, E::Passivate) => (state, Same),
        _ => (state, Refuse),
    }
}

impl SessionState {
    const STORED: [Self; 6] = [
        Self::Created,
        Self::Running,
        Self::Passivated,
        Self::Closing,
        Self::Uncertain,
        Self::Deleted,
    ];

    /// The word in the ledger.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Created => "created",
            Self::Running => "running",
            Self::Passivated => "passivated",
            Self::Closing => "closing",
            Self::Uncertain => "uncertain",
            Self::Deleted => "deleted",
        }
    }

    pub(crate) fn from_word(word: &str) -> Option<Self> {
        Self::STORED.into_iter().find(|state| state.word() == word)
    }
}
