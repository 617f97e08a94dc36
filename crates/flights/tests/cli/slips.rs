//! Simple slips: a file, a repository or a revision that is not there is a usage error in every command,
//! told with what may have been meant.

use crate::environment::{Environment, Run, workspace};

/// A repository, a witness, a policy and a file that is nothing in particular.
fn place() -> Environment {
    let environment = Environment::with_pricing();
    environment.write("work/policy.json", crate::verify::POLICY);
    environment.write("work/some", "{}");
    environment.write("work/empty/file", "");
    let witness = workspace().join("flights/witness/pricing.json");
    std::fs::copy(witness, environment.path("work/witness.json")).unwrap();
    std::fs::copy(environment.public_key(), environment.path("work/key.pub")).unwrap();
    let repo = environment.path("work/repo");
    std::os::unix::fs::symlink(environment.path("repo"), repo).unwrap();
    environment
}

fn run(environment: &Environment, line: &str) -> Run {
    environment.flights(&line.split(' ').collect::<Vec<_>>())
}

#[test]
fn what_is_not_there_is_a_usage_error_in_every_command() {
    let environment = place();
    let certify = "certify --baseline main --candidate candidate --witness witness.json --out out";
    let lines = [
        // No such file.
        format!("{certify} --repo repo --policy none"),
        format!("{certify} --repo repo --lock none"),
        format!("{certify} --repo repo --generated none"),
        format!("{certify} --repo repo --parent none"),
        format!("{certify} --repo repo --key none"),
        format!("{certify} --repo repo --toolchain none"),
        "certify --baseline main --candidate candidate --witness none --out out --repo repo".into(),
        "mutate --repo repo --witness none --list".into(),
        "mutate --repo repo --oracle tests --toolchain none".into(),
        "mutate --repo repo --list --lock none".into(),
        "witness check none".into(),
        "bundle check none --repo repo --baseline main".into(),
        "import none --repo repo --baseline main --branch main --uncertified-i-know".into(),
        "cert verify none --key key.pub --subject main --repo repo --policy policy.json".into(),
        "cert verify some --key none --subject main --repo repo --policy policy.json".into(),
        "cert verify some --key key.pub --subject main --repo repo --policy none".into(),
        "cert show none".into(),
        "refly none --onto main --repo repo --witness witness.json --out out".into(),
        "review none --key key.pub --policy policy.json --repo repo".into(),
        "run none".into(),
        "run --root none".into(),
        "list --root none".into(),
        "report none -o report.html".into(),
        "show none".into(),
        "show none.flight".into(),
        "diff none some".into(),
        "transcript export none -o some.flight".into(),
        "archive inspect none".into(),
        "archive verify none".into(),
        "archive extract none folder".into(),
        "archive pack none -o some.paws".into(),
        "archive apply none empty".into(),
        "agent run none --out out".into(),
        "gate --policy none --trust key.pub --root repo -o some --evidence some".into(),
        // No repository.
        format!("{certify} --repo none"),
        format!("{certify} --repo empty"),
        "mutate --repo none --oracle tests".into(),
        "init --repo none".into(),
        "bundle create --repo empty --baseline main --head candidate -o new".into(),
        "bundle check some --repo empty --baseline main".into(),
        "import some --repo empty --baseline main --branch main --uncertified-i-know".into(),
        "import recover --repo empty".into(),
        "cert verify some --key key.pub --subject main --repo empty --policy policy.json".into(),
        // No such revision.
        "certify --baseline none --candidate candidate --witness witness.json --out out --repo repo".into(),
        "certify --baseline main --candidate none --witness witness.json --out out --repo repo".into(),
        "mutate --repo repo --oracle tests --list --in-diff none".into(),
        "bundle create --repo repo --baseline none --head candidate -o new".into(),
        "cert verify some --key key.pub --subject none --repo repo --policy policy.json".into(),
    ];
    for line in lines {
        let run = run(&environment, &line);
        assert_eq!(run.code, 2, "{line}\n{}", run.text);
        // A command line that cannot be read would be one too.
        assert!(
            run.stdout.starts_with("REFUSED at "),
            "{line}\n{}",
            run.text
        );
    }
}

#[test]
fn a_file_beside_the_one_that_is_meant_is_told() {
    let environment = place();
    environment.write("work/flight/verdict.json", "{}");
    environment.write("work/some.flight/verdict", "{}");
    for (line, code, said) in [
        (
            "cert show flight",
            2,
            "is certificate.dsse.json in its directory",
        ),
        ("cert show flight/verdict.json", 11, "flight/verdict.json: "),
        (
            "cert show flight/verdict.json",
            11,
            "of a flight that is certificate.dsse.json",
        ),
        (
            "cert show flight/certificate.dsse.json",
            2,
            "a flight that was refused has no certificate",
        ),
        (
            "report some.flight -o r.html",
            2,
            "by the name of its plan, some",
        ),
        (
            "report none -o r.html",
            2,
            "without names every plan in flights/ is meant",
        ),
    ] {
        let run = run(&environment, line);
        assert_eq!(run.code, code, "{line}: {}", run.text);
        assert!(run.text.contains(said), "{line}: {}", run.text);
    }
}

/// A new output may lie in the place of an older one, and of nothing else.
#[test]
fn a_file_of_another_kind_is_not_replaced() {
    let environment = place();
    let bundle = "bundle create --repo repo --baseline main --head candidate -o";
    for command in ["archive pack empty -o", bundle] {
        let line = format!("{command} witness.json");
        let kept = run(&environment, &line);
        assert_eq!(kept.code, 2, "{line}: {}", kept.text);
        let said = "flights/OUTPUT_UNWRITABLE: witness.json: a file of another kind is there";
        assert!(kept.text.contains(said), "{line}: {}", kept.text);
        environment.write("work/output", "");
        // First one that holds nothing, then its own.
        for _ in 0..2 {
            let line = format!("{command} output");
            let run = run(&environment, &line);
            assert_eq!(run.code, 0, "{line}: {}", run.text);
        }
    }
    let large = format!("{bundle} large.bundle --large src --changeset witness.json");
    assert_eq!(run(&environment, &large).code, 2);
    let witness = std::fs::read(environment.path("work/witness.json")).unwrap();
    assert!(witness.starts_with(b"{"));
}

#[test]
fn what_is_nearly_there_is_suggested() {
    let environment = place();
    crate::environment::copy(
        &workspace().join("flights/witness"),
        &environment.path("work/flights/witness"),
    );
    environment.write("work/flights/pricing.toml", "");
    let certify = "certify --witness witness.json --out out --repo repo";
    for (line, meant) in [
        (format!("{certify} --baseline mian --candidate candidate"), "main"),
        (format!("{certify} --baseline main --candidate cadidate~0"), "candidate"),
        ("certify --baseline main --candidate candidate --witness witnes.json --out out --repo repo".into(), "witness.json"),
        (format!("{certify} --baseline main --candidate candidate --policy polcy.json"), "policy.json"),
        ("mutate --repo repo --oracle tests --list --in-diff candidat".into(), "candidate"),
        (format!("{certify} --baseline mian --candidate candidate --admit main"), "main"),
        (format!("{certify} --baseline main --candidate candidate --admit mian"), "main"),
        ("mutate --repo repo --list --package pircing".into(), "pricing"),
        ("bundle create --repo repo --baseline mian --head candidate -o new".into(), "main"),
        ("cert verify some --key key.pub --subject candidte --repo repo --policy policy.json".into(), "candidate"),
        ("run prcing".into(), "pricing.toml"),
        ("report pricng -o report.html".into(), "pricing.toml"),
    ] {
        let run = run(&environment, &line);
        assert_eq!(run.code, 2, "{line}\n{}", run.text);
        let told = format!("; did you mean {meant}?");
        assert!(run.stdout.contains(&told), "{line}\n{}", run.text);
    }
}
