//! Keys in a real SSH agent.

use crate::environment::{Environment, Run};
use crate::verify::{POLICY, verify};
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// An agent of this test's own, ended with it.
struct Agent {
    process: Child,
    socket: PathBuf,
}

impl Agent {
    fn start(environment: &Environment) -> Self {
        let socket = environment.path("agent");
        let process = Command::new("ssh-agent")
            .args(["-D", "-a"])
            .arg(&socket)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("ssh-agent is installed: keys in it are a promise");
        let agent = Self { process, socket };
        for _ in 0..200 {
            if agent.socket.exists() {
                return agent;
            }
            std::thread::sleep(Duration::from_millis(25));
        }
        panic!("ssh-agent opens no socket");
    }

    /// A fresh key with a comment, made by OpenSSH and known to the agent alone.
    fn add(&self, environment: &Environment, kind: &str, comment: &str) {
        let file = environment.path("work").join(format!("ssh-{comment}"));
        let ok = |command: &mut Command| {
            let output = command.output().unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{stderr}");
        };
        ok(Command::new("ssh-keygen")
            .args(["-q", "-N", "", "-t", kind, "-C", comment, "-f"])
            .arg(&file));
        ok(Command::new("ssh-add")
            .arg("-q")
            .arg(&file)
            .env("SSH_AUTH_SOCK", &self.socket));
        fs::remove_file(file).unwrap();
    }

    fn flights(&self, environment: &Environment, args: &[&str]) -> Run {
        environment.run(environment.command(args).env("SSH_AUTH_SOCK", &self.socket))
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_key_that_never_leaves_the_agent_signs_a_certificate() {
    let environment = Environment::with_pricing();
    let agent = Agent::start(&environment);
    agent.add(&environment, "ed25519", "judge");
    agent.add(&environment, "ecdsa", "other");
    let listed = agent.flights(&environment, &["key", "list", "--format", "json"]);
    let keys = listed.json()["keys"].as_array().unwrap().clone();
    let judge = keys.iter().find(|key| key["comment"] == "judge").unwrap();
    assert_eq!(keys.len(), 2, "the ecdsa key is none of ours: {keys:?}");
    assert_eq!(judge["protectedBy"], "agent");

    let mut command = environment.certify_command("candidate", &["--key", "agent:judge"]);
    let run = environment.run(command.env("SSH_AUTH_SOCK", &agent.socket));
    assert_eq!(run.code, 0, "{}", run.text);
    let public = environment.path("work/judge.pub");
    fs::write(&public, openssl_form(judge["ssh"].as_str().unwrap())).unwrap();
    environment.write("policy.json", POLICY);
    let verified = verify(&environment, public.to_str().unwrap(), "candidate", &[]);
    assert_eq!(verified.code, 0, "{}", verified.text);
}

#[test]
fn an_agent_that_is_not_there_and_a_key_it_does_not_have_are_refused() {
    let environment = Environment::with_pricing();
    let certify = |key: &str, socket: Option<&PathBuf>| {
        let mut command =
            environment.certify_command("candidate", &["--key", key, "--format", "json"]);
        socket.map(|socket| command.env("SSH_AUTH_SOCK", socket));
        environment.run(&mut command)
    };
    let missing = certify("agent:", None);
    assert_eq!(missing.json()["code"], "flights/AGENT_UNAVAILABLE");
    assert_eq!(missing.code, 21);
    let agent = Agent::start(&environment);
    let unknown = certify("agent:judge", Some(&agent.socket));
    assert_eq!(unknown.json()["code"], "flights/KEY_UNKNOWN");
    agent.add(&environment, "ed25519", "judge");
    agent.add(&environment, "ed25519", "clerk");
    let which = certify("agent:", Some(&agent.socket));
    assert_eq!(which.json()["code"], "flights/KEY_UNKNOWN");
}

#[test]
fn an_agent_that_answers_something_else_signs_nothing() {
    let environment = Environment::with_pricing();
    let socket = environment.path("liar");
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let liar = std::thread::spawn(move || {
        use std::io::{Read as _, Write as _};
        let (mut stream, _) = listener.accept().unwrap();
        let mut asked = [0; 5];
        stream.read_exact(&mut asked).unwrap();
        // SSH_AGENT_FAILURE
        stream.write_all(&[0, 0, 0, 1, 5]).unwrap();
    });
    let mut command =
        environment.certify_command("candidate", &["--key", "agent:", "--format", "json"]);
    let run = environment.run(command.env("SSH_AUTH_SOCK", &socket));
    liar.join().unwrap();
    assert_eq!(run.json()["code"], "flights/AGENT_REFUSED");
}

/// SubjectPublicKeyInfo PEM of an SSH public line.
fn openssl_form(line: &str) -> String {
    use flightproof_certifier::ssh::read_public_blob;
    let blob = decode(line.split(' ').nth(1).unwrap());
    read_public_blob(&blob).unwrap().to_pem().unwrap()
}

fn decode(text: &str) -> Vec<u8> {
    let value = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut out = Vec::new();
    for group in text.as_bytes().chunks(4) {
        let digits: Vec<u32> = group
            .iter()
            .filter(|c| **c != b'=')
            .map(|c| u32::from(value(*c)))
            .collect();
        let whole =
            digits.iter().fold(0, |sum, digit| sum << 6 | digit) << (6 * (4 - digits.len()));
        out.extend(&whole.to_be_bytes()[1..digits.len()]);
    }
    out
}
