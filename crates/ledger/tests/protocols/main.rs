//! The protocols by themselves, through every interleaving a small world has: crashes, doubled and
//! reordered messages, clocks that jump. Each model is also run with a broken protocol, which it
//! must catch.
#![expect(clippy::unwrap_used, reason = "a model that cannot be built must fail")]

mod lease;
mod link;
mod money;
mod request;
mod session;

use stateright::{Checker, HasDiscoveries, Model};
use std::time::Duration;

/// Most states of a model, and the most time it may take.
const STATES: usize = 1_000_000;
const PATIENCE: Duration = Duration::from_secs(60);

/// Checks a model that must hold everywhere, to the end of its world.
fn holds<M>(model: M)
where
    M: Model + Send + Sync + 'static,
    M::State: std::fmt::Debug + std::hash::Hash + Clone + PartialEq + Send + Sync,
    M::Action: std::fmt::Debug + Clone + PartialEq + Send + Sync,
{
    let checker = model
        .checker()
        .target_state_count(STATES)
        .timeout(PATIENCE)
        .spawn_bfs()
        .join();
    println!("{} states", checker.unique_state_count());
    assert!(checker.is_done() && checker.unique_state_count() < STATES);
    checker.assert_properties();
}

/// Checks a model that is broken on purpose: the property must be found violated.
fn catches<M>(model: M, property: &'static str)
where
    M: Model + Send + Sync + 'static,
    M::State: std::fmt::Debug + std::hash::Hash + Clone + PartialEq + Send + Sync,
    M::Action: std::fmt::Debug + Clone + PartialEq + Send + Sync,
{
    let checker = model
        .checker()
        .target_state_count(STATES)
        .timeout(PATIENCE)
        .finish_when(HasDiscoveries::AnyFailures)
        .spawn_bfs()
        .join();
    assert!(
        checker.discovery(property).is_some(),
        "{property} was not violated"
    );
}
