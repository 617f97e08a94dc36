//! The provider proxy against forged requests, and against a stand-in provider on the loopback.

#![expect(clippy::unwrap_used, reason = "in a test a panic is a failed test")]

use flightproof_agent::proxy::{Counts, Credential, Endpoint, Gate, Head, Proxy, TcpLoopback};
use flightproof_agent::{AgentCode, fuzzing};
use flightproof_core::{Code, MicroUsd};
use flightproof_hostile::agent::heads;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

#[test]
fn forged_heads_are_refused_with_their_code() {
    let mut wrong = Vec::new();
    for attack in heads() {
        let found = Head::read(&attack.bytes).map_err(|e| e.code.explanation().code);
        let expected = format!("agent/{}", attack.expect);
        if found.clone().map(drop) != Err(&expected) {
            wrong.push(format!("{}: {found:?}, expected {expected}", attack.name));
        }
        if !matches!(Head::read(&attack.twin), Ok(Some(_))) {
            wrong.push(format!("the twin of {}", attack.name));
        }
        fuzzing::agent_head_raw(&attack.bytes);
        fuzzing::agent_head_raw(&attack.twin);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A provider that answers every request with these bytes, and tells what it was sent.
struct Provider {
    host: String,
    requests: Receiver<String>,
}

fn provider(answer: &'static [u8]) -> Provider {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let (told, requests) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut bytes = Vec::new();
            let mut piece = [0; 4096];
            while !complete(&bytes) {
                match stream.read(&mut piece) {
                    Ok(read) if read > 0 => bytes.extend_from_slice(&piece[..read]),
                    _ => break,
                }
            }
            let _ = stream.write_all(answer);
            let _ = told.send(String::from_utf8_lossy(&bytes).into_owned());
        }
    });
    Provider { host, requests }
}

fn complete(bytes: &[u8]) -> bool {
    matches!(Head::read(bytes), Ok(Some((head, at))) if (bytes.len() - at) as u64 >= head.body.0)
}

struct Scene {
    socket: SocketAddr,
    proxy: Proxy,
}

fn scene(host: &str, hold: u64, most: u32) -> Scene {
    let endpoint = Endpoint::read(&format!("POST {host}/v1/messages")).unwrap();
    let micros = |n| MicroUsd::from_micros(n).unwrap();
    let gate = Gate::new(vec![endpoint], micros(hold), micros(1), most);
    let key = Credential::new("x-api-key", "sk-ours").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    Scene {
        socket: listener.local_addr().unwrap(),
        proxy: Proxy::listen(listener, gate, Box::new(TcpLoopback), Some(key)),
    }
}

impl Scene {
    fn ask(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.socket).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        // A refused connection may be reset while its answer is read.
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }
}

fn post(host: &str, target: &str, body: &str) -> String {
    format!(
        "POST {target} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer theirs\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";

#[test]
fn a_request_goes_to_the_plan_s_provider_with_our_key_and_is_counted() {
    let provider = provider(OK);
    let scene = scene(&provider.host, 10, 10);
    let answer = scene.ask(&post(&provider.host, "/v1/messages?beta=true", "{\"a\":1}"));
    assert_eq!(answer.as_bytes(), OK);
    let sent = provider.requests.recv().unwrap();
    assert!(sent.contains("x-api-key: sk-ours\r\n"), "{sent}");
    assert!(!sent.contains("theirs"), "{sent}");
    assert!(sent.ends_with("\r\n\r\n{\"a\":1}"), "{sent}");
    let expected = Counts {
        admitted: 1,
        refused: 0,
    };
    assert_eq!(scene.proxy.stop(), expected);
}

#[test]
fn nothing_else_reaches_anybody() {
    let provider = provider(OK);
    let scene = scene(&provider.host, 10, 10);
    let host = provider.host.as_str();
    for (request, status, code) in [
        (post(host, "/v1/files", ""), "403", "ENDPOINT_REFUSED"),
        (
            post("127.0.0.1:1", "/v1/messages", ""),
            "403",
            "HOST_REFUSED",
        ),
        (post("evil.net", "/v1/messages", ""), "403", "HOST_REFUSED"),
        (
            "CONNECT evil.net:443 HTTP/1.1\r\n\r\n".into(),
            "400",
            "HEAD_MALFORMED",
        ),
        (
            post(host, "/v1/messages/../files", ""),
            "400",
            "HEAD_MALFORMED",
        ),
    ] {
        let answer = scene.ask(&request);
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{answer}"
        );
        assert!(answer.contains(code), "{answer}");
    }
    // A second request in the body's place: more bytes than were announced.
    let smuggled = post(host, "/v1/messages", "") + &post(host, "/v1/files", "");
    assert!(scene.ask(&smuggled).contains("BODY_REFUSED"));
    assert_eq!(scene.proxy.counts().admitted, 0);
    assert_eq!(scene.proxy.stop().refused, 6);
    assert!(
        provider.requests.try_recv().is_err(),
        "the provider was reached"
    );
}

#[test]
fn the_hold_ends_even_if_the_program_s_own_budget_does_not() {
    let provider = provider(OK);
    let scene = scene(&provider.host, 3, 10);
    let ask = || scene.ask(&post(&provider.host, "/v1/messages", "{}"));
    for _ in 0..3 {
        assert_eq!(ask().as_bytes(), OK);
    }
    let refused = ask();
    assert!(refused.starts_with("HTTP/1.1 403"), "{refused}");
    assert!(refused.contains("agent/HOLD_USED_UP"), "{refused}");
    assert_eq!(provider.requests.iter().take(3).count(), 3);
    assert!(provider.requests.try_recv().is_err());
}

#[test]
fn many_at_once_never_get_more_than_the_count() {
    let provider = provider(OK);
    let scene = scene(&provider.host, 1_000, 5);
    let request = post(&provider.host, "/v1/messages", "{}");
    let answered = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..7)
            .map(|_| scope.spawn(|| scene.ask(&request)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .filter(|answer| answer.as_bytes() == OK)
            .count()
    });
    assert_eq!(answered, 5);
    let counts = scene.proxy.stop();
    assert_eq!((counts.admitted, counts.refused), (5, 2));
}

#[test]
fn a_provider_that_is_not_there_or_speaks_otherwise_is_said_so_and_counts() {
    let provider = provider(b"SSH-2.0-OpenSSH\r\n");
    let scene = scene(&provider.host, 10, 10);
    let answer = scene.ask(&post(&provider.host, "/v1/messages", "{}"));
    assert!(answer.starts_with("HTTP/1.1 502"), "{answer}");
    assert!(answer.contains("UPSTREAM_FAILED"), "{answer}");
    assert_eq!(scene.proxy.stop().admitted, 1);

    let gone = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = gone.local_addr().unwrap().to_string();
    drop(gone);
    let scene = self::scene(&host, 10, 10);
    let answer = scene.ask(&post(&host, "/v1/messages", "{}"));
    assert!(answer.contains("UPSTREAM_FAILED"), "{answer}");
}

const TOO_LARGE: &[u8] =
    b"HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno";

/// More than all buffers between the program and the provider hold.
const MANY: usize = 8 << 20;

/// Answers once it has read a head, and closes with the body unread: its side then resets.
fn hasty(answer: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut piece = [0; 4096];
            let _ = stream.read(&mut piece);
            let _ = stream.write_all(answer);
        }
    });
    host
}

/// Another status than its own would be tried again, and each try costs a charge.
#[test]
fn a_provider_that_refuses_before_it_has_read_all_is_heard() {
    let host = hasty(TOO_LARGE);
    let scene = scene(&host, 10, 10);
    let body = "x".repeat(MANY);
    for _ in 0..5 {
        let answer = scene.ask(&post(&host, "/v1/messages", &body));
        assert_eq!(answer.as_bytes(), TOO_LARGE);
    }
    assert_eq!(scene.proxy.stop().admitted, 5);
}

/// A program that is cut off while it sends sees no status, and asks again.
#[test]
fn what_the_proxy_refuses_unread_is_heard_by_who_still_sends() {
    let provider = provider(OK);
    let scene = scene(&provider.host, 10, 10);
    let body = "x".repeat(MANY);
    for _ in 0..5 {
        let answer = scene.ask(&post(&provider.host, "/v1/files", &body));
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
        assert!(answer.contains("ENDPOINT_REFUSED"), "{answer}");
    }
}

#[test]
fn a_provider_that_closes_without_a_word_has_failed() {
    let host = hasty(b"");
    let scene = scene(&host, 10, 10);
    let answer = scene.ask(&post(&host, "/v1/messages", &"x".repeat(MANY)));
    assert!(answer.starts_with("HTTP/1.1 502"), "{answer}");
    assert!(answer.contains("UPSTREAM_FAILED"), "{answer}");
}

#[test]
fn half_a_request_and_a_closed_proxy_get_nowhere() {
    let provider = provider(OK);
    let scene = scene(&provider.host, 10, 10);
    let mut stream = TcpStream::connect(scene.socket).unwrap();
    let request = post(&provider.host, "/v1/messages", "{\"whole\":true}");
    stream
        .write_all(&request.as_bytes()[..request.len() - 3])
        .unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("BODY_REFUSED"), "{answer}");

    let socket = scene.socket;
    scene.proxy.stop();
    assert!(TcpStream::connect(socket).is_err());
}

#[test]
fn a_key_never_crosses_a_network_in_the_clear_and_is_never_shown() {
    use flightproof_agent::proxy::Dial;
    let refused = TcpLoopback.dial("192.0.2.1:443").err().unwrap();
    assert_eq!(refused.kind(), std::io::ErrorKind::PermissionDenied);
    let key = Credential::new("x-api-key", "sk-ours").unwrap();
    assert!(!format!("{key:?}").contains("sk-ours"));
    for (name, value) in [
        ("x-api-key", "a\r\nb: c"),
        ("X", "a"),
        ("", "a"),
        ("x", ""),
        ("x:", "a"),
    ] {
        let code = Credential::new(name, value).map(drop).map_err(|e| e.code);
        assert_eq!(code, Err(AgentCode::HeadMalformed), "{name}");
    }
}
