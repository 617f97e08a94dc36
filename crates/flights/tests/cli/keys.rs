//! `flights key new`, and what the program does with keys.

use crate::environment::Environment;
use insta::assert_snapshot;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

#[test]
fn a_new_key_is_private_and_never_replaces_one() {
    let environment = Environment::new();
    let run = environment.flights(&["key", "new", "--no-passphrase"]);
    assert_snapshot!(run.text, @r#"
    exit 0
    --- stdout
    key ________________________________________________________________
      secret $TREE/home/.local/state/flightproof/keys/flightproof.pem
      public $TREE/home/.local/state/flightproof/keys/flightproof.pem.pub
    "#);
    let secret = environment.state().join("keys/flightproof.pem");
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(secret.clone()), 0o600);
    assert_eq!(mode(environment.state()), 0o700);
    let before = fs::read(&secret).unwrap();
    let again = environment.flights(&["key", "new", "--no-passphrase", "--format", "json"]);
    assert_snapshot!(again.text, @r#"
    exit 21
    --- stdout
    {"schema":"flightproof/verdict/1","verdict":"refused","code":"flights/KEY_FILE","stopped":true,"stage":"key","detail":"$TREE/home/.local/state/flightproof/keys/flightproof.pem: exists already and is never replaced","hint":"check the path and its permissions (chmod 600 for what is secret); `key new` takes another path with --out"}
    "#);
    assert_eq!(fs::read(&secret).unwrap(), before);
}

#[test]
fn a_new_key_follows_no_link_and_leaves_no_half() {
    let environment = Environment::new();
    let target = environment.path("elsewhere");
    std::os::unix::fs::symlink(&target, environment.path("work/key")).unwrap();
    let run = environment.flights(&["key", "new", "--no-passphrase", "--out", "key"]);
    assert_eq!(run.code, 21, "{}", run.text);
    assert!(!target.exists());
    let run = environment.flights(&[
        "key",
        "new",
        "--no-passphrase",
        "--out",
        "no/such/folder/key",
    ]);
    assert_snapshot!(run.text, @r#"
    exit 21
    --- stdout
    STOPPED at key: flights/KEY_FILE: no/such/folder/key.pub: No such file or directory (os error 2)
      hint: check the path and its permissions (chmod 600 for what is secret); `key new` takes another path with --out
    "#);
}

#[test]
fn a_key_that_others_may_read_signs_nothing() {
    let environment = Environment::with_pricing();
    let secret = environment.state().join("keys/flightproof.pem");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o644)).unwrap();
    let run = environment.certify("candidate", &["--format", "json"]);
    assert_snapshot!(run.text, @r#"
    exit 21
    --- stdout
    {"schema":"flightproof/verdict/1","verdict":"refused","code":"flights/KEY_FILE","stopped":true,"stage":"plan","detail":"$TREE/home/.local/state/flightproof/keys/flightproof.pem: mode 644: others may read it","hint":"check the path and its permissions (chmod 600 for what is secret); `key new` takes another path with --out"}
    "#);
}

#[test]
fn without_a_key_nothing_is_flown() {
    let environment = Environment::with_pricing();
    fs::remove_file(environment.state().join("keys/flightproof.pem")).unwrap();
    let run = environment.certify("candidate", &["--format", "json"]);
    assert_snapshot!(run.text, @r#"
    exit 20
    --- stdout
    {"schema":"flightproof/verdict/1","verdict":"refused","code":"flights/KEY_MISSING","stage":"plan","detail":"$TREE/home/.local/state/flightproof/keys/flightproof.pem: No such file or directory (os error 2)","hint":"make one with `flights key new`, or name one with --key FILE"}
    "#);
}

#[test]
fn a_key_file_that_is_no_key_is_refused() {
    let environment = Environment::with_pricing();
    let secret = environment.state().join("keys/flightproof.pem");
    fs::write(
        &secret,
        "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
    )
    .unwrap();
    let run = environment.certify("candidate", &[]);
    assert_snapshot!(run.text, @r#"
    exit 20
    --- stdout
    REFUSED at plan: certifier/KEY_MALFORMED: $TREE/home/.local/state/flightproof/keys/flightproof.pem: no Ed25519 PRIVATE KEY in PKCS#8 PEM
      hint: give the file that is asked for, the secret key (FILE.pem) or the public one (FILE.pem.pub), as `flights key new` or `openssl genpkey -algorithm ed25519` write it; a public key may be the one line `ssh-ed25519 …` of OpenSSH as well
    "#);
    fs::write(&secret, "x".repeat(20_000)).unwrap();
    let run = environment.certify("candidate", &[]);
    assert_snapshot!(run.text, @r#"
    exit 20
    --- stdout
    REFUSED at plan: certifier/KEY_MALFORMED: $TREE/home/.local/state/flightproof/keys/flightproof.pem: more than 16384 bytes
      hint: give the file that is asked for, the secret key (FILE.pem) or the public one (FILE.pem.pub), as `flights key new` or `openssl genpkey -algorithm ed25519` write it; a public key may be the one line `ssh-ed25519 …` of OpenSSH as well
    "#);
}

/// Each half in the place of the other, and a file that is neither.
#[test]
fn a_wrong_key_is_one_kind_of_slip_and_its_file_is_named() {
    let environment = Environment::with_pricing();
    let public = environment.public_key();
    let secret = environment.state().join("keys/flightproof.pem");
    let secret = secret.to_str().unwrap();
    let policy = environment.write("policy.json", crate::verify::POLICY);
    environment.write("work/c", "{}");
    let told = |run: crate::environment::Run, file: &str, why: &str| {
        assert_eq!(run.code, 20, "{}", run.text);
        let said = format!("certifier/KEY_MALFORMED: {file}: {why}");
        assert!(run.stdout.contains(&said), "{}", run.stdout);
    };
    let run = environment.certify("candidate", &["--key", &public]);
    told(run, &public, "it is a public key");
    let run = environment.flights(&["cert", "show", "c", "--key", secret]);
    told(run, secret, "it is a secret key");
    let run = environment.flights(&["cert", "show", "c", "--key", &policy]);
    told(run, &policy, "no Ed25519 key in PEM");
}

/// A passphrase in a file of its owner.
fn passphrase(environment: &Environment, name: &str, text: &str) -> String {
    let path = environment.write(name, text);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path
}

#[test]
fn a_new_key_wants_a_passphrase_or_an_explicit_no() {
    let environment = Environment::new();
    let run = environment.flights(&["key", "new"]);
    assert_snapshot!(run.text, @"
    exit 2
    --- stdout
    REFUSED at key: flights/PASSPHRASE_MISSING: no file with one was named, and there is no terminal
      hint: give one of at least 8 characters at a terminal, twice the same, or in a file with --passphrase-file FILE; say --no-passphrase if the key's file is protected otherwise
    ");
    let short = passphrase(&environment, "short", "seven77\n");
    let run = environment.flights(&["key", "new", "--passphrase-file", &short]);
    assert_eq!(run.code, 2, "{}", run.text);
    assert!(run.text.contains("shorter than 8"), "{}", run.text);
    let open = environment.write("open", "correct horse\n");
    let run = environment.flights(&["key", "new", "--passphrase-file", &open]);
    assert_eq!(run.code, 21, "{}", run.text);
    assert_eq!(
        environment
            .listing("home")
            .keys()
            .filter(|f| f.ends_with(".pem"))
            .count(),
        0
    );
}

#[test]
fn a_key_under_a_passphrase_opens_with_it_alone_and_openssl_reads_it() {
    let environment = Environment::with_pricing();
    let right = passphrase(&environment, "right", "correct horse\n");
    let wrong = passphrase(&environment, "wrong", "correct house\n");
    let run = environment.flights(&[
        "key",
        "new",
        "--out",
        "locked.pem",
        "--passphrase-file",
        &right,
    ]);
    assert_snapshot!(run.text, @"
    exit 0
    --- stdout
    key ________________________________________________________________
      secret locked.pem (under a passphrase)
      public locked.pem.pub
    ");
    let sign = |more: &[&str]| {
        environment.certify(
            "no-such-branch",
            &[&["--key", "locked.pem", "--format", "json"], more].concat(),
        )
    };
    assert_eq!(sign(&[]).json()["code"], "certifier/KEY_LOCKED");
    let refused = sign(&["--passphrase-file", &wrong]).json();
    assert_eq!(refused["code"], "certifier/PASSPHRASE_WRONG");
    // With the right one the command goes on, to a branch that is not there.
    let on = sign(&["--passphrase-file", &right]).json();
    assert_eq!(on["code"], "importer/UNKNOWN_REVISION");
    let mut by_variable = environment.certify_command(
        "no-such-branch",
        &["--key", "locked.pem", "--format", "json"],
    );
    by_variable.env("FLIGHTPROOF_PASSPHRASE_FILE", &right);
    assert_eq!(
        environment.run(&mut by_variable).json()["code"],
        "importer/UNKNOWN_REVISION"
    );

    let openssl = std::process::Command::new("openssl")
        .args([
            "pkey",
            "-in",
            "locked.pem",
            "-passin",
            "pass:correct horse",
            "-pubout",
        ])
        .current_dir(environment.path("work"))
        .output()
        .unwrap();
    let public = fs::read(environment.path("work/locked.pem.pub")).unwrap();
    assert_eq!(
        openssl.stdout,
        public,
        "{}",
        String::from_utf8_lossy(&openssl.stderr)
    );
}

#[test]
fn keys_are_listed_with_what_protects_them() {
    let environment = Environment::new();
    fs::create_dir_all(environment.state()).unwrap();
    assert_eq!(environment.flights(&["key", "list"]).stdout, "no keys\n");
    environment.flights(&["key", "new", "--no-passphrase"]);
    let right = passphrase(&environment, "right", "correct horse");
    let second = environment.state().join("keys/second.pem");
    let second = second.to_str().unwrap();
    environment.flights(&["key", "new", "--out", second, "--passphrase-file", &right]);
    let listed = environment.flights(&["key", "list"]).stdout;
    let protected = listed.lines().filter(|l| l.starts_with("  protected by "));
    let protected: Vec<&str> = protected.collect();
    assert_eq!(
        protected,
        ["  protected by nothing", "  protected by passphrase"]
    );
    assert!(listed.contains("\n  ssh-ed25519 AAAA"), "{listed}");
    let json = environment
        .flights(&["key", "list", "--format", "json"])
        .json();
    assert_eq!(json["keys"][1]["protectedBy"], "passphrase");
}
