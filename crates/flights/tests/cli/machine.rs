//! What the program says of a machine that lacks something.

use crate::environment::{Environment, PROFILE, workspace};
use insta::assert_snapshot;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// The user `nobody`, who owns nothing and has no cgroup.
const NOBODY: u32 = 65534;

#[test]
fn a_machine_that_can_fly_passes_the_doctor() {
    let environment = Environment::new();
    let run = environment.flights(&["doctor", "--format", "json"]);
    assert_eq!(run.code, 0, "{}", run.text);
    let report = run.json();
    assert_eq!(report["schema"], "flightproof/doctor/1");
    let checks = report["checks"].as_array().unwrap();
    let names: Vec<_> = checks.iter().map(|c| c["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "git",
            "bubblewrap",
            "toolchain",
            "state",
            "clock",
            "session",
            "engine",
            "leftovers"
        ]
    );
    // An engine is not needed to fly here.
    let needed = |c: &&serde_json::Value| c["optional"] != true;
    assert!(
        checks.iter().filter(needed).all(|c| c["ok"] == true),
        "{}",
        run.text
    );
    assert_eq!(environment.listing("tmp").len(), 0);
}

#[test]
fn the_doctor_says_how_to_mend_what_is_missing() {
    let environment = Environment::new();
    let mut command = environment.command(&["doctor"]);
    command.env("PATH", environment.path("empty"));
    assert_snapshot!(environment.run(&mut command).text, @"
    exit 21
    --- stdout
    MISSING  git         flights/PROGRAM_MISSING: git (apt-get install git)
             fix: install the Debian package the message names
    MISSING  bubblewrap  flights/PROGRAM_MISSING: bwrap (apt-get install bubblewrap)
             fix: install the Debian package the message names
    MISSING  toolchain   flights/TOOLCHAIN_MISSING: rustc: No such file or directory (os error 2)
             fix: install one with rustup; where rustup says that none is chosen, `rustup default stable` does both; where it lies elsewhere, name its directory with --toolchain DIR to the command that flies
    ok       state       $TREE/home/.local/state/flightproof
    ok       clock       not behind this program, nor what was booked
    MISSING  session     for the same reason as git
    absent   engine      session/ENGINE_MISSING: unix:///nonexistent/engine.sock: No such file or directory (os error 2)
             fix: where its socket says `Permission denied`, be root or a member of its group (usermod -aG docker USER, then log in anew); else install and start one: apt-get install docker.io && dockerd; or name one that listens elsewhere in DOCKER_HOST
    MISSING  leftovers   for the same reason as git
    ");
}

#[test]
fn without_bubblewrap_nothing_is_flown() {
    let environment = Environment::with_pricing();
    let bin = environment.path("bin");
    fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(which("git"), bin.join("git")).unwrap();
    let mut command = environment.certify_command("candidate", &["--format", "json"]);
    command.env("PATH", bin);
    assert_snapshot!(environment.run(&mut command).text, @r#"
    exit 21
    --- stdout
    {"schema":"flightproof/verdict/1","verdict":"refused","code":"flights/PROGRAM_MISSING","stopped":true,"stage":"plan","detail":"bwrap (apt-get install bubblewrap)","hint":"install the Debian package the message names"}
    "#);
}

fn which(program: &str) -> std::path::PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    std::env::split_paths(&path)
        .map(|dir| dir.join(program))
        .find(|file| file.is_file())
        .unwrap()
}

#[test]
fn a_toolchain_that_is_none_is_refused() {
    let environment = Environment::with_pricing();
    let none = environment.path("work");
    let none = ["--toolchain", none.to_str().unwrap(), "--format", "json"];
    assert_snapshot!(environment.certify("candidate", &none).text, @r#"
    exit 21
    --- stdout
    {"schema":"flightproof/verdict/1","verdict":"refused","code":"flights/TOOLCHAIN_MISSING","stopped":true,"stage":"plan","detail":"$TREE/work has no bin/rustc","hint":"install one with rustup; where rustup says that none is chosen, `rustup default stable` does both; where it lies elsewhere, name its directory with --toolchain DIR to the command that flies"}
    "#);
}

#[test]
fn a_state_directory_that_others_may_write_is_not_used() {
    let environment = Environment::with_pricing();
    fs::set_permissions(environment.state(), fs::Permissions::from_mode(0o777)).unwrap();
    let run = environment.certify("candidate", &["--format", "json"]);
    assert_snapshot!(run.text, @r#"
    exit 21
    --- stdout
    {"schema":"flightproof/verdict/1","verdict":"refused","code":"flights/STATE_UNAVAILABLE","stopped":true,"stage":"plan","detail":"$TREE/home/.local/state/flightproof: mode 777 lets others write","hint":"check the path that is named, its permissions and free space; FLIGHTPROOF_STATE names another state directory, --out another output directory"}
    "#);
    fs::set_permissions(environment.state(), fs::Permissions::from_mode(0o700)).unwrap();
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(environment.state(), Some(NOBODY), None).unwrap();
        let run = environment.certify("candidate", &["--format", "json"]);
        assert_snapshot!(run.text, @r#"
        exit 21
        --- stdout
        {"schema":"flightproof/verdict/1","verdict":"refused","code":"flights/STATE_UNAVAILABLE","stopped":true,"stage":"plan","detail":"$TREE/home/.local/state/flightproof: it belongs to another user","hint":"check the path that is named, its permissions and free space; FLIGHTPROOF_STATE names another state directory, --out another output directory"}
        "#);
    }
}

#[test]
fn an_output_directory_that_cannot_be_made_is_refused() {
    let environment = Environment::with_pricing();
    environment.write("out", "a file");
    let run = environment.certify("candidate", &["--format", "json"]);
    assert_snapshot!(run.text, @r#"
    exit 21
    --- stdout
    {"schema":"flightproof/verdict/1","verdict":"refused","code":"flights/STATE_UNAVAILABLE","stopped":true,"stage":"plan","detail":"$TREE/out: File exists (os error 17)","hint":"check the path that is named, its permissions and free space; FLIGHTPROOF_STATE names another state directory, --out another output directory"}
    "#);
}

/// A copy of the program and its tree that everybody may use, owned by nobody.
fn for_nobody(environment: &Environment) -> Command {
    let program = environment.path("flights");
    fs::copy(env!("CARGO_BIN_EXE_flights"), &program).unwrap();
    let root = environment.path("");
    fs::set_permissions(&root, fs::Permissions::from_mode(0o755)).unwrap();
    for name in environment.listing("").into_keys() {
        std::os::unix::fs::lchown(environment.path(&name), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let mut command = Command::new(&program);
    command
        .env_clear()
        .env("HOME", environment.path("home"))
        .env("TMPDIR", environment.path("tmp"))
        // A program that counts the lines it runs complains where it cannot write.
        .env(PROFILE, "/dev/null")
        .env("LC_ALL", "C")
        .current_dir("/")
        .uid(NOBODY)
        .gid(NOBODY);
    command
}

#[test]
fn an_ordinary_user_without_a_cgroup_is_told_the_one_command_that_helps() {
    assert!(
        rustix::process::geteuid().is_root(),
        "not measured: only root can become another user"
    );
    let environment = Environment::with_pricing();
    // The delegation is asked for before the toolchain is read, and root's is closed to others.
    environment.write("toolchain/bin/rustc", "");
    environment.write("toolchain/bin/cargo", "");
    let witness = environment.write(
        "witness.json",
        &fs::read_to_string(workspace().join("flights/witness/pricing.json")).unwrap(),
    );
    let mut command = for_nobody(&environment);
    command.env("PATH", std::env::var_os("PATH").unwrap());
    let text = |name: &str| environment.path(name).to_str().unwrap().to_owned();
    fs::create_dir(environment.path("out")).unwrap();
    std::os::unix::fs::chown(environment.path("out"), Some(NOBODY), Some(NOBODY)).unwrap();
    command.args(["certify", "--repo", &text("repo"), "--baseline", "main"]);
    command.args(["--candidate", "candidate", "--witness", &witness]);
    command.args(["--out", &text("out"), "--toolchain", &text("toolchain")]);
    command.args(["--format", "json"]);
    let run = environment.run(&mut command);
    assert_eq!(run.code, 21, "{}", run.text);
    let verdict = run.json();
    assert_eq!(verdict["code"], "session/NO_DELEGATION");
    assert_snapshot!(verdict["hint"].as_str().unwrap(), @"start it in a delegated scope: systemd-run --user --scope -p Delegate=yes -- flights …");
    assert_eq!(environment.listing("tmp").len(), 0);
}

#[test]
fn recordings_replay_for_an_ordinary_user_with_nothing_installed() {
    assert!(
        rustix::process::geteuid().is_root(),
        "not measured: only root can become another user"
    );
    let environment = crate::plans::recorded();
    let mut command = for_nobody(&environment);
    command.env("PATH", environment.path("empty"));
    command.env("HOME", environment.path("no-home"));
    command.args(["run", "--root", environment.path("root").to_str().unwrap()]);
    let before = environment.listing("");
    let run = environment.run(&mut command);
    assert_snapshot!(run.text, @r#"
    exit 0
    --- stdout
         flight      time  verdict                                      certificate
    ok   pricing   _.__ s  held                                         -
    1 passed, 0 failed
    "#);
    assert_eq!(environment.listing(""), before, "a replay writes nothing");
}

/// The program where the state directory is mounted read-only, as on a disk of evidence.
fn with_evidence(environment: &Environment, args: &[&str]) -> crate::environment::Run {
    let program = environment.command(args);
    let mut command = Command::new("unshare");
    let mount = "mount --bind \"$0\" \"$0\" && mount -o remount,bind,ro \"$0\" && exec \"$@\"";
    command.args(["--mount", "sh", "-c", mount]);
    command.arg(environment.state()).arg(program.get_program());
    command
        .args(args)
        .current_dir(environment.path("work"))
        .env_clear();
    let set = program.get_envs();
    command.envs(set.filter_map(|(name, value)| Some((name, value?))));
    environment.run(&mut command)
}

#[test]
fn an_auditor_reads_a_state_directory_that_cannot_be_written_to() {
    let environment = crate::import::imported();
    for args in [
        &["spend", "cap", "total", "--usd", "20"][..],
        &["spend", "reserve", "a", "--limit", "1"],
    ] {
        assert_eq!(environment.flights(args).code, 0, "{args:?}");
    }
    let state = environment.state();
    let state = state.strip_prefix(environment.path("")).unwrap();
    let before = environment.listing(state.to_str().unwrap());
    for args in [
        &["spend", "show"][..],
        &["ledger", "check"],
        &["ledger", "export"],
        &["cert", "log", "show"],
        &["cert", "log", "check"],
        &["key", "list"],
        &["explain", "archive/PREFIX_CONFLICT"],
    ] {
        let (free, bound) = (environment.flights(args), with_evidence(&environment, args));
        assert_eq!(
            (bound.code, &bound.stdout),
            (0, &free.stdout),
            "{args:?}: {}",
            bound.text
        );
    }
    let changing = with_evidence(&environment, &["spend", "start", "a", "--format", "json"]);
    assert_eq!(changing.code, 21, "{}", changing.text);
    assert_eq!(changing.json()["code"], "ledger/LEDGER_UNREADABLE");
    assert_eq!(environment.listing(state.to_str().unwrap()), before);
    assert_eq!(environment.listing("tmp").len(), 0);
}

#[test]
fn leftovers_are_looked_for_whatever_else_is_missing() {
    let environment = Environment::new();
    let programs = environment.path("programs");
    fs::create_dir(&programs).unwrap();
    std::os::unix::fs::symlink(which("git"), programs.join("git")).unwrap();
    let leftovers = |more: &str| {
        let mut command = environment.command(&["doctor", "--format", "json"]);
        let report = environment.run(command.env("PATH", &programs)).json();
        let checks = report["checks"].as_array().unwrap().clone();
        let named = |name: &str| checks.iter().find(|c| c["name"] == name).unwrap().clone();
        assert_eq!(named("toolchain")["ok"], false, "{more}");
        named("leftovers")
    };
    assert_eq!(leftovers("sound")["ok"], true);
    fs::set_permissions(environment.state(), fs::Permissions::from_mode(0o777)).unwrap();
    let again = leftovers("a state directory of many");
    assert_eq!(again["ok"], false);
    assert_eq!(again["detail"], "for the same reason as state");
    assert!(again.get("fix").is_none(), "{again}");
    fs::set_permissions(environment.state(), fs::Permissions::from_mode(0o700)).unwrap();
    environment.write("home/.local/state/flightproof/sessions/00ff.json", "{");
    let broken = leftovers("a record that is none");
    assert_eq!(broken["ok"], false);
    let detail = broken["detail"].as_str().unwrap();
    assert!(
        detail.starts_with("session/HOST_IO: ") && detail.contains("00ff.json"),
        "{detail}"
    );
}

#[test]
fn tables_are_cut_to_the_columns_there_are() {
    let environment = Environment::new();
    let root = workspace();
    let root = root.to_str().unwrap();
    for args in [
        &[
            "run",
            "--root",
            root,
            "honest-library",
            "hostile-outside-grant",
        ][..],
        &["list", "--root", root],
        &["explain"],
    ] {
        let longest = |columns: &str| {
            let mut command = environment.command(args);
            let run = environment.run(command.env("COLUMNS", columns));
            assert_eq!(run.code, 0, "{}", run.text);
            run.stdout
                .lines()
                .map(|line| line.chars().count())
                .max()
                .unwrap()
        };
        assert_eq!(longest("50"), 50, "{args:?}");
        assert!(longest("") > 50, "{args:?}");
    }
}
