//! Flights in other languages than Rust: the same session, cases and judge; mutants that are builds of
//! their own, and a fence of names.
//!
//! There are no rules of lock files for these: a tree that would need any is refused, and a
//! certificate has no such gate.

use crate::{FlightsCode, near};
use flightproof_certifier::CertifierCode;
use flightproof_certifier::certification::Judgement;
use flightproof_certifier::judge::Gate;
use flightproof_certifier::languages::{Language, fence};
use flightproof_certifier::witness::Witness;
use flightproof_core::{Refusal, RelPath, escape};
use flightproof_evidence::{BuildAnswer, BuildOrder, BuildTarget, Captured};
use flightproof_session::build::Workshop;
use flightproof_session::profile::{Profile, ProfileWorkshop};
use flightproof_session::{Session, SessionError, crates};

/// The profile that a witness names; `None` for Rust.
pub(super) fn profile(witness: &Witness) -> Result<Option<Profile>, Refusal> {
    Ok(witness.language().map(Profile::named).transpose()?)
}

/// Refuses a witness of a program that is not in the tree.
///
/// # Errors
/// `TARGET_MISSING`, naming what was looked for.
pub(crate) fn has_program<'a>(
    profile: &Profile,
    witness: &Witness,
    paths: impl Iterator<Item = &'a RelPath> + Clone,
) -> Result<(), Refusal> {
    let BuildTarget::Bin { name } = witness.target()? else {
        return Ok(());
    };
    let Some(entry) = profile.lacks(&name, paths.clone()) else {
        return Ok(());
    };
    let question = match entry.first() {
        Some(first) => near::question(first, paths.map(RelPath::as_str)),
        None => String::new(),
    };
    let detail = format!(
        "{}: there is no {}{question}",
        profile.name,
        escape(entry.join(" and no "), 400)
    );
    Err(CertifierCode::TargetMissing.refuse(detail).into())
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

/// Holds the change against the names that the language's mutants cannot bear.
pub(super) fn fenced(profile: &Profile, captured: &Captured) -> Result<(), Refusal> {
    match Language::of_toolchain(&profile.name) {
        Some(language) => Ok(fence(captured, language)?),
        None => Err(FlightsCode::LanguageMixed
            .refuse(format!("{} has no fence", profile.name))
            .into()),
    }
}

/// What is claimed: no lock file was read, for there was none.
pub(super) fn judged(mut judgement: Judgement) -> Judgement {
    judgement.gates.retain(|gate| *gate != Gate::Dependency);
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
    fn a_program_that_is_not_in_the_tree_is_the_witness_owners_slip() {
        let judged = |language: &str, files: &[&str]| {
            let paths: Vec<RelPath> = files.iter().map(|n| RelPath::new(n).unwrap()).collect();
            let answers = ["a", "b"]
                .map(|id| format!(r#"{{"id":"{id}","expect":{{"exit":0,"stdout":"{id}"}}}}"#));
            let witness = format!(
                r#"{{"schema":"flightproof/witness/1","language":"{language}","bin":"top","cases":[{}]}}"#,
                answers.join(",")
            );
            let witness = Witness::parse(witness.as_bytes()).unwrap();
            let profile = profile(&witness).unwrap().unwrap();
            has_program(&profile, &witness, paths.iter()).map_err(|refusal| {
                assert_eq!(refusal.code(), "certifier/TARGET_MISSING");
                refusal.detail
            })
        };
        for (language, there, missing) in [
            ("python", "top.py", "tpo.py"),
            ("python", "top/__main__.py", "lib/top/__main__.py"),
            ("node", "top.js", "lib/top.js"),
            ("node", "bin/top.js", "top.ts"),
            ("typescript", "bin/top.ts", "bin/top.js"),
            ("go", "cmd/top/main.go", "cmd/tpo/main.go"),
            ("c", "src/any.c", "top.c"),
        ] {
            assert_eq!(judged(language, &[missing, there]), Ok(()), "{language}");
            assert!(
                judged(language, &[missing]).is_err(),
                "{language} {missing}"
            );
        }
        let told = "python: there is no top.py and no top/; did you mean tops.py?";
        assert_eq!(judged("python", &["tops.py"]), Err(told.to_owned()));
    }

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
