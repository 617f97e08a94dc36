//! The raw interface of an engine, as little as one can do: one connection a request, an exec made,
//! started, read to its end and asked for its status.

use crate::Outcome;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::Command;

const SOCKET: &str = "/var/run/docker.sock";
const API: &str = "/v1.41";

/// A container of the same image with the same limits, for the others.
pub(crate) struct Peer {
    pub(crate) id: String,
}

impl Peer {
    pub(crate) fn start(image: &str) -> Outcome<Self> {
        let made = Command::new("docker")
            .args([
                "run",
                "-d",
                "--rm",
                "--network",
                "none",
                "--read-only",
                "--cap-drop",
                "ALL",
            ])
            .args([
                "--security-opt",
                "no-new-privileges",
                "--user",
                "65534:65534",
            ])
            .args([
                "--memory",
                "2g",
                "--memory-swap",
                "2g",
                "--pids-limit",
                "256",
                "--cpus",
                "2",
            ])
            .args([
                "--tmpfs",
                "/scratch:rw,size=1g,uid=65534,gid=65534",
                "--label",
                "flightproof.peer=1",
            ])
            .args([image, "/usr/bin/busybox", "sleep", "3600"])
            .output()?;
        let id = String::from_utf8(made.stdout)?.trim().to_owned();
        match made.status.success() {
            true => Ok(Self { id }),
            false => Err(String::from_utf8_lossy(&made.stderr).into_owned().into()),
        }
    }

    /// Runs a program to its end, with something on its standard input.
    pub(crate) fn exec(&self, argv: &[&str], stdin: &[u8]) -> Outcome {
        let order = serde_json::json!({
            "AttachStdin": !stdin.is_empty(), "AttachStdout": true, "AttachStderr": true, "Cmd": argv,
        });
        let made = ask(
            "POST",
            &format!("/containers/{}/exec", self.id),
            &order.to_string(),
        )?;
        let id = made["Id"].as_str().ok_or("no id of an exec")?;
        start(id, stdin)?;
        let ended = ask("GET", &format!("/exec/{id}/json"), "")?;
        match ended["ExitCode"].as_i64() {
            Some(0) => Ok(()),
            other => Err(format!("exec ended with {other:?}").into()),
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = Command::new("docker").args(["rm", "-f", &self.id]).output();
    }
}

fn send(method: &str, path: &str, more: &str, body: &str) -> Outcome<UnixStream> {
    let mut stream = UnixStream::connect(SOCKET)?;
    write!(
        stream,
        "{method} {API}{path} HTTP/1.1\r\nHost: engine\r\nContent-Type: application/json\r\n{more}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    Ok(stream)
}

fn ask(method: &str, path: &str, body: &str) -> Outcome<serde_json::Value> {
    let stream = send(method, path, "Connection: close\r\n", body)?;
    let mut answer = String::new();
    BufReader::new(stream).read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("no head")?;
    let json = match head
        .to_ascii_lowercase()
        .contains("transfer-encoding: chunked")
    {
        true => body
            .split_once("\r\n")
            .ok_or("no chunk")?
            .1
            .lines()
            .next()
            .unwrap_or_default(),
        false => body,
    };
    Ok(serde_json::from_str(json.trim())?)
}

/// Starts an exec and reads its frames to the end.
fn start(id: &str, stdin: &[u8]) -> Outcome {
    let upgrade = "Connection: Upgrade\r\nUpgrade: tcp\r\n";
    let order = r#"{"Detach":false,"Tty":false}"#;
    let mut stream = send("POST", &format!("/exec/{id}/start"), upgrade, order)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Err("the connection was not upgraded".into());
        }
    }
    if !stdin.is_empty() {
        stream.write_all(stdin)?;
        stream.shutdown(std::net::Shutdown::Write)?;
    }
    std::io::copy(&mut reader, &mut std::io::sink())?;
    Ok(())
}
