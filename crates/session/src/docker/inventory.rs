//! What stands on an engine, to see what a flight left there.

use super::engine::Engine;
use super::owner::{LEDGER, SESSION};
use crate::{SessionCode, SessionError};
use flightproof_core::{Digest, escape};
use std::collections::BTreeSet;

/// The name that `scripts/session-image` gives to images.
const SESSION_IMAGES: &str = "flightproof-session";
/// Most things that are named in one refusal.
const MAX_NAMED: usize = 8;

/// Containers, volumes and networks of an engine at one moment. Others may work on it too, so only
/// what can be ours is listed: what carries our labels, and volumes that have no name of their own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inventory {
    things: BTreeSet<String>,
}

impl Inventory {
    /// What of one state directory's ledger is on the engine.
    ///
    /// # Errors
    /// `ENGINE_FAULT`.
    pub fn take(engine: &Engine, ledger: &str) -> Result<Self, SessionError> {
        let label = format!("{LEDGER}={ledger}");
        let mut things = BTreeSet::new();
        for container in engine
            .labelled(&label)
            .map_err(|f| f.refuse("list containers"))?
        {
            let labels = container.labels.unwrap_or_default();
            let session = labels.get(SESSION).map_or("", String::as_str);
            things.insert(format!("container of session {}", escape(session, 40)));
        }
        for volume in engine.volumes().map_err(|f| f.refuse("list volumes"))? {
            // A name of 64 digits is one that the engine made up for a container.
            if volume.parse::<Digest>().is_ok() {
                things.insert(format!("volume {volume}"));
            }
        }
        for network in engine
            .networks(&label)
            .map_err(|f| f.refuse("list networks"))?
        {
            things.insert(format!("network {}", escape(&network, 80)));
        }
        Ok(Self { things })
    }

    /// Refuses if anything is there now that was not there `before`.
    ///
    /// # Errors
    /// `LEAK`, naming what is left.
    pub fn nothing_new_since(&self, before: &Self) -> Result<(), SessionError> {
        let new: Vec<&str> = self
            .things
            .difference(&before.things)
            .map(String::as_str)
            .collect();
        if new.is_empty() {
            return Ok(());
        }
        let named = new.get(..MAX_NAMED).unwrap_or(&new).join(", ");
        Err(SessionCode::Leak.refuse(format_args!("{} left on the engine: {named}", new.len())))
    }
}

/// The images that `scripts/session-image` gave to an engine: name and id, by name.
///
/// # Errors
/// `ENGINE_FAULT`.
pub fn session_images(engine: &Engine) -> Result<Vec<(String, Digest)>, SessionError> {
    let listed = engine
        .images(SESSION_IMAGES)
        .map_err(|f| f.refuse("list images"))?;
    let mut images: Vec<(String, Digest)> = listed
        .into_iter()
        .filter_map(|(name, id)| Some((name, id.strip_prefix("sha256:")?.parse().ok()?)))
        .collect();
    images.sort_unstable();
    Ok(images)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(things: &[&str]) -> Inventory {
        Inventory {
            things: things.iter().map(|t| (*t).to_owned()).collect(),
        }
    }

    #[test]
    fn only_what_is_new_is_left_by_a_flight() {
        let before = with(&["volume a", "container b"]);
        assert_eq!(before.nothing_new_since(&before), Ok(()));
        assert_eq!(with(&[]).nothing_new_since(&before), Ok(()));
        let after = with(&["volume a", "network c"]);
        let refused = after.nothing_new_since(&before).unwrap_err();
        assert_eq!(refused.code, SessionCode::Leak);
        assert_eq!(refused.detail, "1 left on the engine: network c");
    }
}
