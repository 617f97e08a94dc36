//! The suite on the engine of this environment, and what engines do by themselves.

use crate::conformance;
use crate::ground::{Ground, docker_command};
use crate::tape;
use flightproof_core::Digest;
use flightproof_evidence::EvidenceClass;
use flightproof_session::docker::tape::TapedSession;
use flightproof_session::docker::{Endpoint, PinnedImage};
use flightproof_session::{Session as _, SessionCode};

#[test]
fn a_session_is_attested_used_and_leaves_nothing() {
    conformance::a_session_is_attested_used_and_leaves_nothing(&Ground::new());
}

#[test]
fn a_dropped_session_leaves_nothing_either() {
    conformance::a_dropped_session_leaves_nothing_either(&Ground::new());
}

#[test]
fn output_comes_through_byte_for_byte_and_never_without_end() {
    conformance::output_comes_through_byte_for_byte_and_never_without_end(&Ground::new());
}

#[test]
fn no_process_outlives_its_case_nor_its_time() {
    conformance::no_process_outlives_its_case_nor_its_time(&Ground::new());
}

#[test]
fn limits_are_named_whatever_the_program_made_of_them() {
    conformance::limits_are_named_whatever_the_program_made_of_them(&Ground::new());
}

#[test]
fn what_cannot_start_says_nothing_about_the_candidate() {
    conformance::what_cannot_start_says_nothing_about_the_candidate(&Ground::new());
}

#[test]
fn nothing_of_the_machine_or_of_another_case_is_in_reach() {
    conformance::nothing_of_the_machine_or_of_another_case_is_in_reach(&Ground::new());
}

#[test]
fn what_arrives_must_be_what_was_sent() {
    conformance::what_arrives_must_be_what_was_sent(&Ground::new());
}

#[test]
fn the_lifetime_ends_a_session_whatever_it_is_doing() {
    conformance::the_lifetime_ends_a_session_whatever_it_is_doing(&Ground::new());
}

#[test]
fn a_session_that_dies_is_lost_and_never_an_answer() {
    conformance::a_session_that_dies_is_lost_and_never_an_answer(&Ground::new());
}

#[test]
fn a_session_outlives_the_thread_that_opened_it() {
    conformance::a_session_outlives_the_thread_that_opened_it(&Ground::new());
}

#[test]
fn no_forged_archive_is_unpacked() {
    conformance::no_forged_archive_is_unpacked(&Ground::new());
}

#[test]
fn what_a_build_leaves_is_taken_whole_and_at_rest() {
    conformance::what_a_build_leaves_is_taken_whole_and_at_rest(&Ground::new());
}

#[test]
fn no_tree_has_a_say_in_how_it_is_built() {
    conformance::no_tree_has_a_say_in_how_it_is_built(&Ground::new());
}

#[test]
fn a_build_reaches_nothing_but_its_places() {
    conformance::a_build_reaches_nothing_but_its_places(&Ground::new());
}

#[test]
fn a_flood_costs_the_host_no_more_than_its_cap() {
    conformance::a_flood_costs_the_host_no_more_than_its_cap(&Ground::new());
}

#[test]
fn on_this_kernel_limits_are_read_by_the_host_itself() {
    let ground = Ground::new();
    let mut session = ground.open();
    let readings = &session.attestation().readings;
    for (name, class) in [
        ("memory-bytes", EvidenceClass::KernelFile),
        ("capabilities", EvidenceClass::KernelFile),
        ("runner", EvidenceClass::KernelFile),
        ("engine-seccomp", EvidenceClass::EngineClaim),
        ("image-layers", EvidenceClass::EngineClaim),
    ] {
        let reading = readings.iter().find(|r| r.name == name).unwrap();
        assert_eq!(reading.class, class, "{name}");
    }
    // Row 76: what it is made of is named with its versions.
    let sandbox = &session.attestation().sandbox;
    assert!(
        sandbox.starts_with("engine ") && sandbox.contains("runc"),
        "{sandbox}"
    );
    assert!(session.close().unwrap().is_clean());
}

/// Row 41.
#[test]
fn a_second_session_of_the_same_id_is_refused_and_the_first_lives_on() {
    let ground = Ground::new();
    let spec = ground.spec();
    let mut first = ground.open_as(&spec).unwrap();
    let refused = ground.open_as(&spec).unwrap_err();
    assert_eq!(refused.code, SessionCode::HostIo, "{refused}");
    let probe = flightproof_frame::protocol::Request::Probe;
    assert!(first.call(&probe, &[]).is_ok());
    assert!(first.close().unwrap().is_clean());
}

/// Rows 50 to 53.
#[test]
fn an_image_that_is_not_there_or_not_as_pinned_is_unfit() {
    let ground = Ground::new();
    let mut absent = ground.spec();
    absent.image.id = Digest::of(b"no such image");
    let mut other = ground.spec();
    other.image = PinnedImage {
        layers: vec![Digest::of(b"no such layer")],
        ..other.image
    };
    for spec in [absent, other] {
        let refused = ground.open_as(&spec).unwrap_err();
        assert_eq!(refused.code, SessionCode::ImageUnfit, "{refused}");
        assert_eq!(ground.traces_of(&spec), [] as [String; 0]);
    }
}

/// Row 54: what an image asks for is not done, or refuses it where it would be.
#[test]
fn what_an_image_asks_for_is_not_done() {
    let ground = Ground::new();
    let asks = Image::with(
        &ground,
        &[
            "ENV RUSTC_WRAPPER=/usr/bin/false CARGO_BUILD_RUSTC_WRAPPER=/usr/bin/false HEARD=yes HOME=/evil",
            "ENTRYPOINT [\"/bin/false\"]",
            "CMD [\"--no\"]",
            "USER 1000:1000",
            "WORKDIR /proc/self/fd/8",
            "HEALTHCHECK --interval=1s CMD /usr/bin/touch /runner/checked",
            "EXPOSE 80",
        ],
    );
    let odd = Ground::on(ground.endpoint().clone(), asks.id());
    let mut session = odd.open();
    let id = session.attestation().session.clone();
    let form = "{{json .Config.Healthcheck}} {{.Config.WorkingDir}} {{.Config.User}}";
    let said = odd.docker(&["inspect", "--format", form, &format!("flightproof-{id}")]);
    assert!(
        !said.contains("touch") && said.ends_with(" / 0:0\n"),
        "{said}"
    );
    assert!(session.close().unwrap().is_clean());
    conformance::no_tree_has_a_say_in_how_it_is_built(&odd);
    drop(odd);

    let volumes = Image::with(&ground, &["VOLUME /data"]);
    let mut spec = ground.spec();
    spec.image.id = volumes.id();
    let refused = ground.open_as(&spec).unwrap_err();
    assert_eq!(refused.code, SessionCode::ImageUnfit, "{refused}");
    assert!(refused.detail.contains("volumes"), "{refused}");
}

/// The session image with other words in its configuration, as long as this lives.
struct Image<'a> {
    ground: &'a Ground,
    id: String,
}

impl<'a> Image<'a> {
    fn with(ground: &'a Ground, changes: &[&str]) -> Self {
        let from = format!("sha256:{}", ground.image());
        let made = ground.docker(&["create", "--network", "none", &from, "/bin/true"]);
        let mut words = vec!["commit"];
        words.extend(changes.iter().flat_map(|change| ["--change", *change]));
        words.push(made.trim());
        let id = ground.docker(&words).trim().to_owned();
        ground.docker(&["rm", made.trim()]);
        Self { ground, id }
    }

    fn id(&self) -> Digest {
        self.id.trim_start_matches("sha256:").parse().unwrap()
    }
}

impl Drop for Image<'_> {
    fn drop(&mut self) {
        let mut remove = docker_command(self.ground.endpoint());
        let _ = remove.args(["rmi", "-f", &self.id]).output();
    }
}

/// Row 73: what a session says fills no disk of the engine.
#[test]
fn what_a_session_says_is_written_down_nowhere() {
    let ground = Ground::new();
    let mut session = ground.open();
    let id = session.attestation().session.clone();
    let form = "{{.HostConfig.LogConfig.Type}} {{.LogPath}}";
    let said = ground.docker(&["inspect", "--format", form, &format!("flightproof-{id}")]);
    assert_eq!(said, "none \n");
    assert!(session.close().unwrap().is_clean());
}

/// The benign twin: pinned by every layer, it opens.
#[test]
fn an_image_pinned_by_all_its_layers_opens() {
    let ground = Ground::new();
    let mut spec = ground.spec();
    let mut session = ground.open_as(&spec).unwrap();
    let readings = &session.attestation().readings;
    let layers = readings.iter().find(|r| r.name == "image-layers").unwrap();
    spec.image.layers = layers
        .found
        .split(' ')
        .map(|l| l.parse().unwrap())
        .collect();
    assert_eq!(spec.image.layers.len(), 2);
    session.close().unwrap();
    spec.entropy[0] ^= 1;
    assert!(ground.open_as(&spec).unwrap().close().unwrap().is_clean());
}

/// Row 39.
#[test]
fn an_engine_that_is_not_there_is_missing() {
    let ground = Ground::new();
    let mut spec = ground.spec();
    for endpoint in ["unix:///nonexistent/engine.sock", "tcp://127.0.0.1:1"] {
        spec.endpoint = Endpoint::parse(endpoint, None).unwrap();
        let refused = ground.open_as(&spec).unwrap_err();
        assert_eq!(refused.code, SessionCode::EngineMissing);
        assert!(refused.detail.starts_with(endpoint), "{refused}");
    }
}

/// What the engine says today is what the tape of this repository has it say.
#[test]
fn a_session_is_recorded_frame_by_frame_and_plays_as_it_was() {
    let ground = Ground::new();
    let (mut session, recorder) = ground.open_taped();
    let said = tape::acts(&mut session).unwrap();
    let closed = session.close().unwrap();
    let tape = recorder.tape(session.attestation().clone(), closed);
    if std::env::var_os("FLIGHTPROOF_BLESS").is_some() {
        std::fs::create_dir_all(tape::file().parent().unwrap()).unwrap();
        std::fs::write(tape::file(), serde_json::to_vec(&tape).unwrap()).unwrap();
    }
    let mut again = TapedSession::open(tape).unwrap();
    assert_eq!(tape::acts(&mut again).unwrap(), said);
    assert!(again.close().unwrap().is_clean());
}
