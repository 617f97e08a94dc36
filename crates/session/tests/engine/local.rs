//! The suite on this machine, without an engine.

use crate::conformance::{self, Backend, Opened};
use crate::site::Site;
use flightproof_session::SessionError;
use std::time::Duration;

struct Local(Site);

impl Backend for Local {
    fn open(&self, lifetime: Duration) -> Result<Opened, SessionError> {
        let mut spec = self.0.spec();
        spec.lifetime_ms = u64::try_from(lifetime.as_millis()).unwrap();
        Ok(Box::new(self.0.open_as(&spec)?))
    }

    fn kill(&self, session: &str) {
        self.0.kill(session);
    }

    fn traces(&self, session: &str) -> Vec<String> {
        self.0.traces(session)
    }
}

#[test]
fn a_session_is_attested_used_and_leaves_nothing() {
    conformance::a_session_is_attested_used_and_leaves_nothing(&Local(Site::new()));
}

#[test]
fn a_dropped_session_leaves_nothing_either() {
    conformance::a_dropped_session_leaves_nothing_either(&Local(Site::new()));
}

#[test]
fn output_comes_through_byte_for_byte_and_never_without_end() {
    conformance::output_comes_through_byte_for_byte_and_never_without_end(&Local(Site::new()));
}

#[test]
fn no_process_outlives_its_case_nor_its_time() {
    conformance::no_process_outlives_its_case_nor_its_time(&Local(Site::new()));
}

#[test]
fn limits_are_named_whatever_the_program_made_of_them() {
    conformance::limits_are_named_whatever_the_program_made_of_them(&Local(Site::new()));
}

#[test]
fn what_cannot_start_says_nothing_about_the_candidate() {
    conformance::what_cannot_start_says_nothing_about_the_candidate(&Local(Site::new()));
}

#[test]
fn nothing_of_the_machine_or_of_another_case_is_in_reach() {
    conformance::nothing_of_the_machine_or_of_another_case_is_in_reach(&Local(Site::new()));
}

#[test]
fn what_arrives_must_be_what_was_sent() {
    conformance::what_arrives_must_be_what_was_sent(&Local(Site::new()));
}

#[test]
fn the_lifetime_ends_a_session_whatever_it_is_doing() {
    conformance::the_lifetime_ends_a_session_whatever_it_is_doing(&Local(Site::new()));
}

#[test]
fn a_session_that_dies_is_lost_and_never_an_answer() {
    conformance::a_session_that_dies_is_lost_and_never_an_answer(&Local(Site::new()));
}

#[test]
fn a_session_outlives_the_thread_that_opened_it() {
    conformance::a_session_outlives_the_thread_that_opened_it(&Local(Site::new()));
}

#[test]
fn no_forged_archive_is_unpacked() {
    conformance::no_forged_archive_is_unpacked(&Local(Site::new()));
}

#[test]
fn what_a_build_leaves_is_taken_whole_and_at_rest() {
    conformance::what_a_build_leaves_is_taken_whole_and_at_rest(&Local(Site::new()));
}

#[test]
fn no_tree_has_a_say_in_how_it_is_built() {
    conformance::no_tree_has_a_say_in_how_it_is_built(&Local(Site::new()));
}

#[test]
fn a_build_reaches_nothing_but_its_places() {
    conformance::a_build_reaches_nothing_but_its_places(&Local(Site::new()));
}

#[test]
fn a_flood_costs_the_host_no_more_than_its_cap() {
    conformance::a_flood_costs_the_host_no_more_than_its_cap(&Local(Site::new()));
}
