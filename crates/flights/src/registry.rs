//! Every refusal code of the program, in one list.

use crate::{FlightsCode, near};
use flightproof_agent::AgentCode;
use flightproof_archive::ArchiveCode;
use flightproof_certifier::CertifierCode;
use flightproof_core::{Code, Explanation};
use flightproof_frame::FrameCode;
use flightproof_importer::ImporterCode;
use flightproof_ledger::LedgerCode;
use flightproof_runner::RunnerCode;
use flightproof_session::SessionCode;

/// All explanations, ordered by code.
pub fn all() -> Vec<&'static Explanation> {
    fn family<C: Code>() -> impl Iterator<Item = &'static Explanation> {
        C::ALL.iter().map(|code| code.explanation())
    }
    let mut all: Vec<_> = family::<AgentCode>()
        .chain(family::<ArchiveCode>())
        .chain(family::<CertifierCode>())
        .chain(family::<FlightsCode>())
        .chain(family::<FrameCode>())
        .chain(family::<ImporterCode>())
        .chain(family::<LedgerCode>())
        .chain(family::<RunnerCode>())
        .chain(family::<SessionCode>())
        .collect();
    all.sort_by_key(|e| e.code);
    all
}

/// The explanation of a code such as `archive/PREFIX_CONFLICT`.
pub fn find(code: &str) -> Option<&'static Explanation> {
    all().into_iter().find(|e| e.code == code)
}

/// The explanations of a code, or of its last part, in any case: more than one crate may have it.
pub fn matching(code: &str) -> Vec<&'static Explanation> {
    let mut all = all();
    all.retain(|e| e.code.eq_ignore_ascii_case(code) || name(e).eq_ignore_ascii_case(code));
    all
}

/// The codes, at most three, that somebody may have meant who wrote another one; the nearest first.
pub fn near(code: &str) -> Vec<&'static str> {
    let code = code.rsplit('/').next().unwrap_or(code).to_ascii_uppercase();
    let known = all().into_iter().map(|e| (name(e), e.code));
    near::nearest(&code, known)
}

fn name(explanation: &Explanation) -> &str {
    explanation.code.rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_fully_explained() {
        let all = all();
        for pair in all.windows(2) {
            assert!(pair[0].code < pair[1].code, "{} stands twice", pair[0].code);
        }
        for e in all {
            let name = e.code.split_once('/').map(|(_, name)| name).unwrap();
            assert!(
                name.bytes()
                    .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_'),
                "{}",
                e.code
            );
            for text in [e.happened, e.why, e.todo] {
                assert!(text.len() >= 8, "{}: {text:?}", e.code);
            }
        }
    }

    #[test]
    fn a_code_is_found_by_its_full_and_its_short_name() {
        assert_eq!(
            find("flights/KEY_MISSING").unwrap().code,
            "flights/KEY_MISSING"
        );
        let codes = |name: &str| matching(name).iter().map(|e| e.code).collect::<Vec<_>>();
        assert_eq!(codes("KEY_MISSING"), ["flights/KEY_MISSING"]);
        assert_eq!(codes("flights/KEY_MISSING"), ["flights/KEY_MISSING"]);
        assert!(find("flights/NO_SUCH").is_none());
        assert_eq!(codes("Flights/key_missing"), ["flights/KEY_MISSING"]);
        assert!(codes("SUCH").is_empty());
    }

    #[test]
    fn a_name_that_is_nearly_one_is_told() {
        assert_eq!(near("KEY_MISING")[0], "flights/KEY_MISSING");
        assert_eq!(
            near("archive/prefix_conflicts")[0],
            "archive/PREFIX_CONFLICT"
        );
        assert!(near("").is_empty() && near("XYZZY").is_empty());
        assert!(near("MUTANT").len() <= 3);
    }
}
