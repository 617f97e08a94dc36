//! What becomes of a request under its key, without storage.

/// How a key stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyState {
    /// Never seen.
    Free,
    /// An owner works on it.
    Working,
    /// Answered, and the answer is kept.
    Answered,
    /// The owner is gone, and nobody knows whether the work was done.
    Unknown,
    /// Answered once; the answer's bytes are gone, the key never is.
    Forgotten,
}

/// What happens to a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyEvent {
    /// A request arrives.
    Receive {
        /// It is the one the key was first seen with, if it was.
        same: bool,
        /// The owner of work in progress still has its lease.
        owner_alive: bool,
    },
    /// The owner has the answer.
    Answer {
        /// The owner is the one that began.
        owner: bool,
    },
    /// Another owner has taken over.
    OwnerGone,
    /// Somebody found out what happened.
    Reconcile {
        /// The owner of work in progress still has its lease.
        owner_alive: bool,
    },
    /// The answer's bytes are no longer needed.
    Forget,
}

/// What a step asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyEffect {
    /// Do the work: nobody ever did.
    Work,
    /// Give the stored answer.
    Replay,
    /// Say that it is being worked on.
    Wait,
    /// Say that nobody knows.
    SayUnknown,
    /// Say that it was answered, and that the bytes are gone.
    SayForgotten,
    /// Store the new state.
    Store,
    /// Nothing.
    Same,
    /// Refuse: the key belongs to another request.
    RefuseOther,
    /// Refuse: this is not the owner, or there is nothing to do this to.
    RefuseState,
}

/// One step of a key. There is no way from any state back to [`KeyState::Free`]: work is done once.
pub fn decide(state: KeyState, event: KeyEvent) -> (KeyState, KeyEffect) {
    use KeyEffect as E;
    use KeyState as S;
    match (state, event) {
        (S::Free, KeyEvent::Receive { .. }) => (S::Working, E::Work),
        (_, KeyEvent::Receive { same: false, .. }) => (state, E::RefuseOther),
        (
            S::Working,
            KeyEvent::Receive {
                owner_alive: true, ..
            },
        ) => (state, E::Wait),
        (S::Working, KeyEvent::Receive { .. }) | (S::Unknown, KeyEvent::Receive { .. }) => {
            (S::Unknown, E::SayUnknown)
        }
        (S::Answered, KeyEvent::Receive { .. }) => (state, E::Replay),
        (S::Forgotten, KeyEvent::Receive { .. }) => (state, E::SayForgotten),
        (S::Working, KeyEvent::Answer { owner: true })
        | (S::Working, KeyEvent::Reconcile { owner_alive: false })
        | (S::Unknown, KeyEvent::Reconcile { .. }) => (S::Answered, E::Store),
        (S::Working, KeyEvent::OwnerGone) => (S::Unknown, E::Store),
        (_, KeyEvent::OwnerGone) | (S::Forgotten, KeyEvent::Forget) => (state, E::Same),
        (S::Answered, KeyEvent::Forget) => (S::Forgotten, E::Store),
        (_, KeyEvent::Answer { .. } | KeyEvent::Reconcile { .. } | KeyEvent::Forget) => {
            (state, E::RefuseState)
        }
    }
}

impl KeyState {
    /// The word in the ledger.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Working => "working",
            Self::Answered => "answered",
            Self::Unknown => "unknown",
            Self::Forgotten => "forgotten",
        }
    }

    pub(crate) fn from_word(word: &str) -> Option<Self> {
        [
            Self::Working,
            Self::Answered,
            Self::Unknown,
            Self::Forgotten,
        ]
        .into_iter()
        .find(|state| state.word() == word)
    }
}
