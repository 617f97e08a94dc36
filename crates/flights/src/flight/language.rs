//! Flights in other languages than Rust: the same session, cases and judge, and fewer gates.
//!
//! There are no mutants, no fence and no lock file's rules for these, so a certificate has none of
//! those gates. A policy that requires one refuses it; that is the policy's to say, not ours.

use crate::FlightsCode;
use flightproof_certifier::certification::Judgement;
use flightproof_certifier::judge::Gate;
use flightproof_certifier::witness::Witness;
use flightproof_core::{Refusal, RelPath, escape};
use flightproof_evidence::{BuildAnswer, BuildOrder, Captured};
use flightproof_session::build::Workshop;
use flightproof_session::profile::{Profile, ProfileWorkshop};
use flightproof_session::{Session, SessionError, crates};

/// The gates that mean the same in every language.
const GATES: [Gate; 4] = [
    Gate::Lineage,
    Gate::Build,
    Gate::Correctness,
    Gate::Determinism,
];

/// The profile that a witness names; `None` for Rust.
pub(super) fn profile(witness: &Witness) -> Result<Option<Profile>, Refusal> {
    Ok(witness.language().map(Profile::named).transpose()?)
}

/// What can be said of the tree before anything is built.
pub(super) fn check<'a>(
    profile: &Profile,
    captured: &Captured,
    paths: impl Iterator<Item = &'a RelPath>,
) -> Result<(), Refusal> {
    profile.check(paths)?;
    one_language(&profile.name, captured.changes.iter().map(|c| &c.path))
}

/// A Rust file would be taken for what the Rust gates judge, and none of them is passed here.
fn one_language<'a>(
    language: &str,
    mut changed: impl Iterator<Item = &'a RelPath>,
) -> Result<(), Refusal> {
    match changed.find(|path| path.as_str().to_ascii_lowercase().ends_with(".rs")) {
        None => Ok(()),
        Some(path) => Err(FlightsCode::LanguageMixed
            .refuse(format!(
                "{} in a flight of {language}",
                escape(path.as_str(), 200)
            ))
            .into()),
    }
}

/// What is claimed of a candidate that no mutant judged: no gate but those that were passed.
pub(super) fn judged(mut judgement: Judgement, profile: &Profile) -> Judgement {
    judgement.gates.retain(|gate| GATES.contains(gate));
    judgement.mutation.operator_set = format!("none: {} has no operators", profile.name);
    judgement
}

/// Who builds.
pub(super) enum Shop {
    Rust(Box<Workshop>),
    Other(Box<ProfileWorkshop>),
}

impl Shop {
    pub(super) fn furnish(
        session: &mut dyn Session,
        profile: Option<&Profile>,
        archive: &[u8],
        (shipment, lock): (&crates::Shipment, Option<&[u8]>),
        wall_ms: u64,
    ) -> Result<Self, SessionError> {
        Ok(match profile {
            None => Self::Rust(Box::new(Workshop::furnish(
                session, archive, shipment, lock, wall_ms,
            )?)),
            Some(profile) => Self::Other(Box::new(ProfileWorkshop::furnish(
                session,
                profile.clone(),
                archive,
                wall_ms,
            )?)),
        })
    }

    pub(super) fn build(
        &mut self,
        session: &mut dyn Session,
        order: &BuildOrder,
    ) -> Result<BuildAnswer, SessionError> {
        match self {
            Self::Rust(shop) => shop.build(session, order),
            Self::Other(shop) => shop.build(session, order),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rust_file_does_not_ride_along_in_a_flight_of_another_language() {
        let change = |names: &[&str]| {
            let paths: Vec<RelPath> = names.iter().map(|n| RelPath::new(n).unwrap()).collect();
            one_language("c", paths.iter())
        };
        assert!(change(&["src/price.c", "src/rs.h", "docs/x.rst"]).is_ok());
        for hidden in ["build.rs", "src/LIB.RS"] {
            let refusal = change(&["src/price.c", hidden]).unwrap_err();
            assert_eq!(refusal.code(), "flights/LANGUAGE_MIXED");
        }
    }
}
