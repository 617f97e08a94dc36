//! `flights key new`, and what the program does with keys.

use crate::environment::Environment;
use insta::assert_snapshot;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

#[test]
fn a_new_key_is_private_and_never_replaces_one() {
    let environment = Environment::new();
    let run = environment.flights(&["key", "new"]);
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
    let again = environment.flights(&["key", "new", "--format", "json"]);
    assert_snapshot!(again.text, @r#"
    exit 21
    --- stdout
    {"schema":"flightproof/verdict/1","verdict":"refused","code":"flights/KEY_FILE","stage":"key","detail":"$TREE/home/.local/state/flightproof/keys/flightproof.pem: exists already and is never replaced","hint":"check the path and its permissions (chmod 600); for a new key name another path with --out"}
    "#);
    assert_eq!(fs::read(&secret).unwrap(), before);
}

#[test]
fn a_new_key_follows_no_link_and_leaves_no_half() {
    let environment = Environment::new();
    let target = environment.path("elsewhere");
    std::os::unix::fs::symlink(&target, environment.path("work/key")).unwrap();
    let run = environment.flights(&["key", "new", "--out", "key"]);
    assert_eq!(run.code, 21, "{}", run.text);
    assert!(!target.exists());
    let run = environment.flights(&["key", "new", "--out", "no/such/folder/key"]);
    assert_snapshot!(run.text, @r#"
    exit 21
    --- stdout
    REFUSED at key: flights/KEY_FILE: no/such/folder/key: No such file or directory (os error 2)
      hint: check the path and its permissions (chmod 600); for a new key name another path with --out
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
    {"schema":"flightproof/verdict/1","verdict":"refused","code":"flights/KEY_FILE","stage":"plan","detail":"$TREE/home/.local/state/flightproof/keys/flightproof.pem: mode 644: others may read it","hint":"check the path and its permissions (chmod 600); for a new key name another path with --out"}
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
    REFUSED at plan: certifier/KEY_MALFORMED: no Ed25519 PRIVATE KEY in PKCS#8 PEM
      hint: give a PKCS#8 PEM (secret) or SubjectPublicKeyInfo PEM (public) file, as `flights key new` or `openssl genpkey -algorithm ed25519` write it
    "#);
    fs::write(&secret, "x".repeat(20_000)).unwrap();
    let run = environment.certify("candidate", &[]);
    assert_snapshot!(run.text, @r#"
    exit 21
    --- stdout
    REFUSED at plan: flights/KEY_FILE: $TREE/home/.local/state/flightproof/keys/flightproof.pem: 20000 bytes, at most 16384 allowed
      hint: check the path and its permissions (chmod 600); for a new key name another path with --out
    "#);
}
