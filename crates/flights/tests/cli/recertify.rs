//! `flights cert recertify`: a certified commit flown again, and held against what was claimed of it.

use crate::environment::{Environment, Run, workspace};
use crate::transcript::key;
use flightproof_certifier::certificate::Statement;
use flightproof_certifier::dsse;
use flightproof_core::Digest;
use insta::assert_snapshot;
use serde_json::Value;
use std::fs;

/// A certified candidate.
fn certified() -> Environment {
    let environment = Environment::with_pricing();
    let run = environment.certify("candidate", &[]);
    assert_eq!(run.code, 0, "{}", run.text);
    environment
}

pub(crate) fn recertify(environment: &Environment, key: &str, more: &[&str]) -> Run {
    let text = |name: &str| environment.path(name).to_str().unwrap().to_owned();
    let (certificate, opening, repo) = (
        text("out/certificate.dsse.json"),
        text("out/opening.json"),
        text("repo"),
    );
    let witness = workspace().join("flights/witness/pricing.json");
    let mut args = vec!["cert", "recertify", &certificate, "--key", key];
    args.extend(["--opening", &opening, "--repo", &repo, "--format", "json"]);
    if !more.contains(&"--witness") {
        args.extend(["--witness", witness.to_str().unwrap()]);
    }
    args.extend(more);
    environment.flights(&args)
}

/// Replaces the certificate by one that claims something else, well signed, and returns its key.
fn claim_otherwise(environment: &Environment, change: impl FnOnce(&mut Statement)) -> String {
    let file = environment.path("out/certificate.dsse.json");
    let envelope: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let payload = decoded(envelope["payload"].as_str().unwrap());
    let mut statement = Statement::parse(&payload).unwrap();
    change(&mut statement);
    let payload = statement.payload().unwrap();
    fs::write(
        &file,
        dsse::sign(dsse::PAYLOAD_TYPE, &payload, &key()).unwrap(),
    )
    .unwrap();
    let file = environment.path("out/opening.json");
    let mut opening: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    opening["certificate"] = Digest::of(&payload).to_string().into();
    fs::write(&file, opening.to_string()).unwrap();
    environment.write("other.pub", &key().public().to_pem().unwrap())
}

fn decoded(text: &str) -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD
        .decode(text)
        .unwrap()
}

#[test]
fn a_commit_flown_again_comes_to_what_its_certificate_claims() {
    let environment = certified();
    let before = environment.listing("out");
    let run = recertify(&environment, &environment.public_key(), &[]);
    assert_eq!(run.code, 0, "{}", run.text);
    let verdict = run.json();
    assert_eq!(verdict["verdict"], "accepted");
    assert_eq!(verdict["stage"], "recertify");
    // Which case kills a mutant first is the only thing that may differ on one machine.
    let notes = verdict["notes"].as_array().cloned().unwrap_or_default();
    let killed = |note: &Value| note.as_str().unwrap().starts_with("mutation/killedBy/");
    assert!(notes.iter().all(killed), "{}", run.text);
    assert_eq!(environment.listing("out"), before, "nothing is signed");
    assert_eq!(environment.listing("tmp").len(), 0, "the temporary folder");
}

#[test]
fn another_witness_or_opening_is_seen_before_anything_flies() {
    let environment = certified();
    let witness = fs::read_to_string(workspace().join("flights/witness/pricing.json")).unwrap();
    let other = witness.replacen("\"exit\": 0", "\"exit\": 1", 1);
    assert_ne!(other, witness);
    let other = environment.write("other.json", &other);
    let key = environment.public_key();
    let run = recertify(&environment, &key, &["--witness", &other]);
    assert_snapshot!(run.text, @r#"
    exit 11
    --- stdout
    {"schema":"flightproof/verdict/1","verdict":"refused","code":"flights/RECERTIFY_DIFFERS","stage":"verify","detail":"witness/commitment","hint":"read the fields that differ; another toolchain, witness or tree is another flight, and its certificate claims other things","notes":["witness/commitment: claimed ________________________________________________________________, found ________________________________________________________________"]}
    "#);
    let mut opening: Value =
        serde_json::from_slice(&fs::read(environment.path("out/opening.json")).unwrap()).unwrap();
    opening["certificate"] = Digest::of(b"another").to_string().into();
    environment.write("out/opening.json", &opening.to_string());
    let run = recertify(&environment, &key, &[]);
    assert_snapshot!(run.text, @r#"
    exit 2
    --- stdout
    {"schema":"flightproof/verdict/1","verdict":"refused","code":"flights/OPENING_UNREADABLE","stage":"verify","detail":"$TREE/out/opening.json: it opens certificate ________________________________________________________________, not ________________________________________________________________","hint":"give the opening.json that the flight wrote beside the certificate"}
    "#);
}

#[test]
fn a_certificate_of_another_tree_or_toolchain_differs_there() {
    let environment = certified();
    let key = claim_otherwise(&environment, |statement| {
        let other = Digest::of(b"another").to_string();
        statement.subject[0]
            .digest
            .insert("sha256".to_owned(), other);
        statement.predicate.inputs.image_digest.toolchain = Digest::of(b"another");
        statement.predicate.inputs.mutation.generated += 1;
    });
    let run = recertify(&environment, &key, &[]);
    assert_snapshot!(run.text, @r#"
    exit 11
    --- stdout
    {"schema":"flightproof/verdict/1","verdict":"refused","code":"flights/RECERTIFY_DIFFERS","stage":"verify","detail":"image-digest/toolchain, mutation/generated, subject/0/digest/sha256","hint":"read the fields that differ; another toolchain, witness or tree is another flight, and its certificate claims other things","notes":["image-digest/toolchain: claimed \"________________________________________________________________\", found \"________________________________________________________________\"","mutation/generated: claimed 46, found 45","subject/0/digest/sha256: claimed \"________________________________________________________________\", found \"________________________________________________________________\""]}
    "#);
}

#[test]
fn a_certificate_of_a_commit_that_is_refused_is_found_out() {
    let environment = certified();
    environment.candidate_edit("wrong", |text| {
        text.replace("quantity >= 100", "quantity > 100")
    });
    let head = environment.git(&["rev-parse", "wrong"]).parse().unwrap();
    let key = claim_otherwise(&environment, |statement| {
        statement.predicate.inputs.request.head = head;
    });
    let run = recertify(&environment, &key, &[]);
    assert_snapshot!(run.text, @r#"
    exit 11
    --- stdout
    {"schema":"flightproof/verdict/1","verdict":"refused","code":"flights/RECERTIFY_DIFFERS","stage":"verify","detail":"it is refused now","hint":"read the fields that differ; another toolchain, witness or tree is another flight, and its certificate claims other things","notes":["at correctness: certifier/CASE_STDOUT_MISMATCH: case first-with-discount"]}
    "#);
}
