//! Programs that know nothing of ours: what we sign they verify, and what they sign we verify.
//! `openssl` must be there; without it these tests fail and do not pass quietly.

use crate::fixture::*;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flightproof_certifier::CertifierCode;
use flightproof_certifier::dsse::{PAYLOAD_TYPE, open, pae};
use flightproof_certifier::key::{PublicKey, SecretKey};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Output};

fn openssl(dir: &Path, args: &[&str]) -> Output {
    Command::new("openssl")
        .args(args)
        .current_dir(dir)
        .output()
        .expect("openssl is installed: it is what checks us from outside")
}

fn succeeds(dir: &Path, args: &[&str]) {
    let output = openssl(dir, args);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "openssl {args:?}: {stderr}");
}

const VERIFY: [&str; 10] = [
    "pkeyutl", "-verify", "-pubin", "-inkey", "pub.pem", "-rawin", "-in", "pae", "-sigfile", "sig",
];

/// Writes what openssl needs to check a certificate: the bytes signed, taken from the file.
fn lay_out(dir: &Path, envelope: &[u8], key: &PublicKey) {
    let envelope: Value = serde_json::from_slice(envelope).unwrap();
    let text = |pointer: &str| envelope.pointer(pointer).and_then(Value::as_str).unwrap();
    let payload = STANDARD.decode(text("/payload")).unwrap();
    let payload_type = text("/payloadType");
    let mut signed = format!(
        "DSSEv1 {} {payload_type} {} ",
        payload_type.len(),
        payload.len()
    );
    signed.push_str(std::str::from_utf8(&payload).unwrap());
    std::fs::write(dir.join("pae"), signed).unwrap();
    let signature = STANDARD.decode(text("/signatures/0/sig")).unwrap();
    std::fs::write(dir.join("sig"), signature).unwrap();
    std::fs::write(dir.join("pub.pem"), key.to_pem().unwrap()).unwrap();
}

#[test]
fn openssl_verifies_our_certificate_and_no_changed_one() {
    let dir = tempfile::tempdir().unwrap();
    lay_out(dir.path(), &signed(&honest()), &key().public());
    succeeds(dir.path(), &VERIFY);

    let mut pae = std::fs::read(dir.path().join("pae")).unwrap();
    *pae.last_mut().unwrap() ^= 1;
    std::fs::write(dir.path().join("pae"), pae).unwrap();
    assert!(!openssl(dir.path(), &VERIFY).status.success());
}

#[test]
fn we_verify_what_openssl_signed_with_a_key_openssl_made() {
    let dir = tempfile::tempdir().unwrap();
    let in_dir = |name: &str| dir.path().join(name);
    let payload = flight().statement().payload().unwrap();
    std::fs::write(in_dir("pae"), pae(PAYLOAD_TYPE, &payload)).unwrap();
    succeeds(
        dir.path(),
        &["genpkey", "-algorithm", "ed25519", "-out", "key.pem"],
    );
    succeeds(
        dir.path(),
        &["pkey", "-in", "key.pem", "-pubout", "-out", "pub.pem"],
    );
    succeeds(
        dir.path(),
        &[
            "pkeyutl", "-sign", "-inkey", "key.pem", "-rawin", "-in", "pae", "-out", "sig",
        ],
    );
    let public = PublicKey::from_pem(&std::fs::read_to_string(in_dir("pub.pem")).unwrap()).unwrap();
    let secret = SecretKey::from_pem(&std::fs::read_to_string(in_dir("key.pem")).unwrap()).unwrap();
    assert_eq!(secret.public(), public);

    let signature = std::fs::read(in_dir("sig")).unwrap();
    let mut envelope = json!({
        "payloadType": PAYLOAD_TYPE,
        "payload": STANDARD.encode(&payload),
        "signatures": [{"sig": STANDARD.encode(&signature)}],
    });
    let opened = open(envelope.to_string().as_bytes(), &[public], 1).unwrap();
    assert_eq!(opened.bytes(), payload);
    // Ed25519 signatures are a function of key and message: both programs make the same one.
    let ours: Value = serde_json::from_slice(&flight().statement().sign(&secret).unwrap()).unwrap();
    assert_eq!(
        ours["signatures"][0]["sig"],
        envelope["signatures"][0]["sig"]
    );

    envelope["payload"] = json!(STANDARD.encode(&payload[1..]));
    let refusal = open(envelope.to_string().as_bytes(), &[public], 1).unwrap_err();
    assert_eq!(refusal.code, CertifierCode::SignatureInvalid);
}

#[test]
fn openssl_reads_the_key_files_we_write() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(
        dir.path().join("key.pem"),
        key().to_pem().unwrap().as_bytes(),
    )
    .unwrap();
    succeeds(
        dir.path(),
        &["pkey", "-in", "key.pem", "-pubout", "-out", "pub.pem"],
    );
    let public = std::fs::read_to_string(dir.path().join("pub.pem")).unwrap();
    assert_eq!(public, key().public().to_pem().unwrap());
}

#[test]
fn an_openssl_key_of_another_algorithm_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let in_dir = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
    let curve = "ec_paramgen_curve:P-256";
    succeeds(
        dir.path(),
        &[
            "genpkey",
            "-algorithm",
            "EC",
            "-pkeyopt",
            curve,
            "-out",
            "key.pem",
        ],
    );
    succeeds(
        dir.path(),
        &["pkey", "-in", "key.pem", "-pubout", "-out", "pub.pem"],
    );
    let public = PublicKey::from_pem(&in_dir("pub.pem")).unwrap_err();
    let secret = SecretKey::from_pem(&in_dir("key.pem")).err().unwrap();
    assert_eq!(public.code, CertifierCode::KeyTypeUnsupported);
    assert_eq!(secret.code, CertifierCode::KeyTypeUnsupported);
}
