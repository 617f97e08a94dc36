//! What each input kind of a certificate claims, and what it does not. `docs/claims.md` has the same
//! in full.

/// One input kind.
pub(super) struct Kind {
    /// Its name on a certificate.
    pub(super) name: &'static str,
    /// What it claims.
    pub(super) claims: &'static str,
    /// What it does not.
    pub(super) not: &'static str,
}

/// The one kind that only stands on certificates of commits that an agent made.
pub(super) const SPEND: &str = "spend";

/// All of them, in the order of a certificate.
pub(super) static KINDS: [Kind; 11] = [
    Kind {
        name: "request",
        claims: "what was asked for, by whoever holds the key",
        not: "who the proposer really was; that the repository's name is unique",
    },
    Kind {
        name: "witness",
        claims: "a salted commitment to the cases and expected answers that judged the commit",
        not: "that the cases are complete",
    },
    Kind {
        name: "image-digest",
        claims: "the toolchain and linker, by content",
        not: "that they are benign",
    },
    Kind {
        name: "sandbox-spec",
        claims: "which limits and privileges were asked for",
        not: "that they were in force",
    },
    Kind {
        name: "attestation",
        claims: "limits and privileges read back, none weaker than asked; forbidden acts that were denied",
        not: "that the host's kernel told the truth",
    },
    Kind {
        name: "session-build",
        claims: "exactly these source and dependency bytes compiled, offline, in this session",
        not: "anything about behaviour",
    },
    Kind {
        name: "session-execution",
        claims: "every case was run that often in this session, and nothing of the session was left",
        not: "that the witness is strong; chance rarer than the repeats",
    },
    Kind {
        name: "mutation",
        claims: "which changes of the changed lines a case notices, and what was waived",
        not: "that equivalent mutants were found",
    },
    Kind {
        name: "capture",
        claims: "the commit's bundle, under these limits",
        not: "that nothing else happened where the commit was made",
    },
    Kind {
        name: "lineage",
        claims: "how many flights it descends from",
        not: "anything about a baseline that no flight made",
    },
    Kind {
        name: SPEND,
        claims: "what each attempt of the agent was held at and booked at, with turns and tokens as reported",
        not: "the provider's invoice",
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use flightproof_certifier::claim::Inputs;

    #[test]
    fn every_input_kind_says_what_it_claims_and_what_not() {
        let names = KINDS.each_ref().map(|kind| kind.name);
        assert_eq!(names[..10], Inputs::KINDS);
        assert_eq!(names[10..], [SPEND]);
    }
}
