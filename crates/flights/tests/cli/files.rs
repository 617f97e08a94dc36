//! Files of the command line: what lies there instead of one, what several write at once, and what the
//! names and words in them may do to a terminal.

use crate::environment::Environment;
use crate::import::arrived;
use flightproof_certifier::dsse::{PAYLOAD_TYPE, sign, unchecked};
use flightproof_certifier::key::{PublicKey, SecretKey};
use std::fs;
use std::thread;

fn code(run: &crate::environment::Run) -> String {
    run.json()["code"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_pipe_a_device_or_a_file_without_end_in_the_place_of_a_file_is_refused_at_once() {
    let environment = Environment::with_pricing();
    let pipe = environment.path("work/pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    for file in ["pipe", "/dev/zero", "/proc/version"] {
        let json = ["--format", "json"];
        let show = ["cert", "show", "c", "--key", file];
        fs::write(environment.path("work/c"), b"{}").unwrap();
        let run = environment.flights(&[&show[..], &json].concat());
        assert_eq!(code(&run), "flights/KEY_FILE", "{file}: {}", run.text);
        for command in [
            &["cert", "show", file][..],
            &["key", "revoke", "--list", file],
        ] {
            let run = environment.flights(&[command, &json].concat());
            let known = ["flights/FILE_UNREADABLE", "flights/OUTPUT_UNWRITABLE"];
            assert!(known.contains(&&*code(&run)), "{file}: {}", run.text);
        }
        let plan = environment.path(&format!("work/{}.toml", file.replace('/', "_")));
        std::os::unix::fs::symlink(environment.path("work").join(file), &plan).unwrap();
        let run = environment.flights(&[
            "agent",
            "run",
            plan.to_str().unwrap(),
            "--out",
            "flown",
            "--format",
            "json",
        ]);
        assert_eq!(
            code(&run),
            "flights/PLAN_UNREADABLE",
            "{file}: {}",
            run.text
        );
    }
}

#[test]
fn of_several_who_make_one_key_one_makes_the_whole_pair() {
    let environment = Environment::new();
    for round in 0..5 {
        let name = format!("k{round}");
        let make = || environment.flights(&["key", "new", "--no-passphrase", "--out", &name]);
        let codes = thread::scope(|scope| {
            let all: Vec<_> = (0..4).map(|_| scope.spawn(|| make().code)).collect();
            all.into_iter()
                .map(|one| one.join().unwrap())
                .collect::<Vec<_>>()
        });
        assert_eq!(
            codes.iter().filter(|code| **code == 0).count(),
            1,
            "{codes:?}"
        );
        let work = environment.path("work");
        let read = |name: String| fs::read_to_string(work.join(name)).unwrap();
        let secret = SecretKey::from_pem(&read(name.clone())).unwrap();
        let public = PublicKey::from_pem(&read(format!("{name}.pub"))).unwrap();
        assert_eq!(secret.public().id(), public.id());
    }
    let left = fs::read_dir(environment.path("work")).unwrap();
    let names = left.map(|e| e.unwrap().file_name().into_string().unwrap());
    assert_eq!(names.filter(|name| name.ends_with(".new")).count(), 0);
}

#[test]
fn revocations_made_at_once_are_all_on_the_list_and_an_old_list_is_not_built_on() {
    let environment = Environment::new();
    let made = environment.flights(&["key", "new", "--no-passphrase", "--out", "lead"]);
    assert_eq!(made.code, 0, "{}", made.text);
    let revoke = |more: &[&str]| {
        let args = ["key", "revoke", "--list", "list", "--key", "lead"];
        environment.flights(&[&args[..], more, &["--format", "json"]].concat())
    };
    assert_eq!(revoke(&["--new", "team"]).code, 0);
    let list = environment.path("work/list");
    let old = fs::read(&list).unwrap();
    let ids = ["1", "2", "3", "4", "5"].map(|digit| digit.repeat(64));
    thread::scope(|scope| {
        for id in &ids {
            scope.spawn(|| assert_eq!(revoke(&[id]).code, 0));
        }
    });
    let next = revoke(&[]);
    assert!(next.stdout.contains("version 7: 5 keys"), "{}", next.text);
    fs::write(&list, old).unwrap();
    let rolled = revoke(&[&"6".repeat(64)]);
    assert_eq!(
        code(&rolled),
        "certifier/REVOCATION_ROLLED_BACK",
        "{}",
        rolled.text
    );
    fs::remove_file(&list).unwrap();
    let anew = revoke(&["--new", "team"]);
    assert_eq!(
        code(&anew),
        "certifier/REVOCATION_ROLLED_BACK",
        "{}",
        anew.text
    );
    assert!(!list.exists());
}

#[test]
fn words_of_a_stranger_do_nothing_to_a_terminal() {
    let environment = Environment::with_pricing();
    let run = environment.certify("candidate", &[]);
    assert_eq!(run.code, 0, "{}", run.text);
    let certificate = fs::read(environment.path("out/certificate.dsse.json")).unwrap();
    let payload = String::from_utf8(unchecked(&certificate, PAYLOAD_TYPE).unwrap()).unwrap();
    let at = payload.find("\"sha256\":\"").unwrap() + 10;
    let evil = [&payload[..at], "\\u001b[2J\u{202e}", &payload[at + 64..]].concat();
    let key = SecretKey::from_seed([7; 32]);
    let envelope = sign(PAYLOAD_TYPE, evil.as_bytes(), &key).unwrap();
    fs::write(environment.path("work/evil"), envelope).unwrap();
    let plain = |text: &str| {
        let unseen = |c: char| (c.is_control() && c != '\n') || "\u{202e}\u{200b}".contains(c);
        assert!(!text.contains(unseen), "{text:?}");
    };
    let shown = environment.flights(&["cert", "show", "evil"]);
    plain(&shown.stdout);
    assert!(
        shown.stdout.contains("\\u{1b}[2J\\u{202e}"),
        "{}",
        shown.text
    );
    let name = "no\u{202e}\u{200b}\u{1b}[2Jfile";
    for args in [
        &["cert", "show", name][..],
        &["key", "new", "--out", "x/y", name],
        &[name],
    ] {
        let run = environment.flights(args);
        assert_ne!(run.code, 0);
        plain(&run.stdout);
        plain(&run.stderr);
    }
}

#[test]
fn a_command_line_that_lacks_something_says_what_to_programs_too() {
    let environment = Environment::new();
    let run = environment.flights(&["cert", "verify", "--format", "json"]);
    assert_eq!(run.code, 2, "{}", run.text);
    let detail = run.json()["detail"].as_str().unwrap().to_owned();
    for name in ["--policy", "--key"] {
        assert!(detail.contains(name), "{detail}");
    }
}

#[test]
fn an_output_in_the_place_of_its_input_is_refused_and_the_input_stays() {
    let environment = Environment::with_pricing();
    fs::write(environment.path("work/in"), b"mine").unwrap();
    fs::hard_link(environment.path("work/in"), environment.path("work/same")).unwrap();
    for output in ["in", "./in", "same"] {
        for args in [
            &["cert", "log", "prove", "in", "-o", output][..],
            &["archive", "changeset", "--base", "in", ".", "-o", output],
            &["transcript", "export", "in", "-o", output, "--key", "in"],
            &[
                "cert", "except", "in", "--trust", "in", "--code", "X", "--reason", "r", "-o",
                output,
            ],
        ] {
            let run = environment.flights(&[args, &["--format", "json"]].concat());
            assert_eq!(code(&run), "flights/OUTPUT_UNWRITABLE", "{}", run.text);
            assert_eq!(fs::read(environment.path("work/in")).unwrap(), b"mine");
        }
    }
}

#[test]
fn a_figure_is_measured_once() {
    let environment = Environment::with_pricing();
    let twice = ["evidence", "a=1", "a=2", "-o", "e", "--format", "json"];
    let run = environment.flights(&twice);
    assert_eq!(code(&run), "flights/USAGE_INVALID", "{}", run.text);
    assert!(!environment.path("work/e").exists());
}

#[test]
fn an_export_to_a_file_is_told_in_one_document() {
    let environment = Environment::new();
    environment.flights(&["spend", "cap", "total", "--usd", "20"]);
    let run = environment.flights(&["ledger", "export", "-o", "rows", "--format", "json"]);
    assert_eq!(run.code, 0, "{}", run.text);
    assert_eq!(run.json()["verdict"], "accepted");
    assert!(environment.path("work/rows").exists());
}

#[test]
fn whoever_only_looks_makes_no_state() {
    let environment = arrived();
    let (repo, file) = (environment.path("repo"), environment.path("c.bundle"));
    let (repo, file) = (repo.to_str().unwrap(), file.to_str().unwrap());
    let missing = environment.path("mistyped");
    let run = |args: &[&str]| {
        let mut command = environment.command(args);
        let run = environment.run(command.env("FLIGHTPROOF_STATE", &missing));
        assert!(!missing.exists(), "{args:?} made a state: {}", run.text);
        run
    };
    for args in [
        &["spend", "show"][..],
        &["ledger", "check"],
        &["ledger", "export"],
        &["ledger", "export", "-o", "rows"],
        &["cert", "log", "show"],
        &["cert", "log", "check"],
        &["cert", "log", "prove", "x", "-o", "y"],
    ] {
        let run = run(&[args, &["--format", "json"]].concat());
        assert_eq!(run.code, 2, "{args:?}: {}", run.text);
        let verdict = run.json();
        assert_eq!(verdict["code"], "flights/STATE_MISSING", "{args:?}");
        let detail = verdict["detail"].as_str().unwrap();
        assert!(detail.starts_with("no state directory at "), "{detail}");
    }
    let check = [
        "bundle",
        "check",
        file,
        "--repo",
        repo,
        "--baseline",
        "main",
    ];
    for args in [&check[..], &["import", "recover", "--repo", repo]] {
        let run = run(args);
        assert_eq!(run.code, 0, "{args:?}: {}", run.text);
    }
    let none = run(&["key", "list"]);
    let said = format!("no keys: no state at {}\n", missing.display());
    assert_eq!((none.code, none.stdout), (0, said));
    assert_eq!(
        run(&["key", "list", "--format", "json"]).json()["keys"],
        serde_json::json!([])
    );
    // A key that is not there is no reason to make a place for it.
    let signed = ["evidence", "x=1", "--root", repo, "-o", "e.json"];
    assert_eq!(run(&signed).code, 20);

    // A state in which nothing was kept of what is asked for.
    for args in [&["ledger", "check"][..], &["cert", "log", "check"]] {
        let run = environment.flights(&[args, &["--format", "json"]].concat());
        assert_eq!(run.json()["code"], "flights/STATE_MISSING", "{}", run.text);
    }
}
