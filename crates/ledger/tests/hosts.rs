//! Two programs on two hosts: network namespaces with one wire between them, cut and restored while
//! programs die and come back. Needs root and `ip`; without them it fails, since nothing was measured.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set up its scene must fail"
)]

use flightproof_ledger::relay::Ended;
use flightproof_ledger::{Ledger, Name};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Messages of a round, and of all rounds.
const PART: u64 = 100;
const MESSAGES: u64 = PART * (ROUNDS + 1);
const ROUNDS: u64 = 6;
const PORT: u16 = 4711;
/// Where the meddler listens, on the receiver's host.
const MEDDLED: u16 = 4712;
/// Connections that are meddled with; the ones after them are left alone.
const MEDDLING: usize = 24;
/// No test lasts longer, whatever the network does.
const PATIENCE: Duration = Duration::from_secs(60);

fn link() -> Name {
    "link".parse().unwrap()
}

fn place(name: &str) -> String {
    std::env::var(name).unwrap()
}

fn patient(stream: &TcpStream) {
    for set in [TcpStream::set_read_timeout, TcpStream::set_write_timeout] {
        set(stream, Some(Duration::from_millis(500))).unwrap();
    }
}

/// Listens, and takes what comes, one connection after the other, until it is killed.
#[test]
#[ignore = "started by the test below on another host"]
fn receiver() {
    let mut ledger = Ledger::open(Path::new(&place("FLIGHTPROOF_TEST_STATE"))).unwrap();
    let listener = TcpListener::bind(("0.0.0.0", PORT)).unwrap();
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        patient(&stream);
        ledger
            .receive_over(&mut stream, |w, message| {
                // The effect is in the same ledger: a letter for each message, in its order.
                let key = format!("effect-{}", message.seq).parse()?;
                w.write_letter(&"a".parse()?, &"b".parse()?, &key, message.body)?;
                Ok(message.body.to_vec())
            })
            .unwrap();
    }
}

/// Connects again and again until everything is acknowledged.
#[test]
#[ignore = "started by the test below on another host"]
fn sender() {
    let mut ledger = Ledger::open(Path::new(&place("FLIGHTPROOF_TEST_STATE"))).unwrap();
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        let address = (
            place("FLIGHTPROOF_TEST_PEER")
                .as_str()
                .parse::<std::net::Ipv4Addr>()
                .unwrap(),
            MEDDLED,
        );
        let connected = TcpStream::connect_timeout(&address.into(), Duration::from_millis(300));
        let Ok(mut stream) = connected else {
            std::thread::sleep(Duration::from_millis(20));
            continue;
        };
        patient(&stream);
        match ledger.relay(&link(), &mut stream).unwrap().ended {
            Ended::Drained => return,
            Ended::Cut(_) => {}
            Ended::Stopped(refused) => panic!("{refused}"),
        }
    }
    panic!("not everything was acknowledged in time");
}

/// Sits between the hosts: doubles, drops, changes and cuts frames, and sends ones that belong to an
/// earlier connection.
#[test]
#[ignore = "started by the test below on another host"]
fn meddler() {
    let listener = TcpListener::bind(("0.0.0.0", MEDDLED)).unwrap();
    let mut earlier: Vec<Vec<u8>> = Vec::new();
    for (number, stream) in listener.incoming().enumerate() {
        let from = stream.unwrap();
        let Ok(to) = TcpStream::connect(("127.0.0.1", PORT)) else {
            continue;
        };
        patient(&from);
        patient(&to);
        let back = (to.try_clone().unwrap(), from.try_clone().unwrap());
        let backwards = std::thread::spawn(move || {
            let (mut from, mut to) = back;
            let _ = std::io::copy(&mut from, &mut to);
            let _ = to.shutdown(std::net::Shutdown::Both);
        });
        meddle(number, &from, &to, &mut earlier);
        for end in [&from, &to] {
            let _ = end.shutdown(std::net::Shutdown::Both);
        }
        backwards.join().unwrap();
    }
}

fn meddle(number: usize, from: &TcpStream, to: &TcpStream, earlier: &mut Vec<Vec<u8>>) {
    let (mut reader, mut writer) = (from, to);
    let struck = if number < MEDDLING {
        number % 5
    } else {
        usize::MAX
    };
    for at in 0.. {
        let Some(mut frame) = read_frame(&mut reader) else {
            return;
        };
        let whole = frame.clone();
        let mut send = |bytes: &[u8]| writer.write_all(bytes).is_ok();
        if at == struck {
            match (number / 5) % 5 {
                0 if !send(&frame) => return,
                1 => continue,
                2 => {
                    let middle = frame.len() / 2;
                    frame[middle] ^= 1;
                }
                3 => {
                    send(&frame[..frame.len() / 2]);
                    return;
                }
                4 if earlier.last().is_some_and(|late| !send(late)) => return,
                _ => {}
            }
        }
        if !send(&frame) {
            return;
        }
        earlier.push(whole);
    }
}

fn read_frame(stream: &mut impl Read) -> Option<Vec<u8>> {
    let mut frame = vec![0; 5];
    stream.read_exact(&mut frame).ok()?;
    let length = u32::from_be_bytes(frame[1..5].try_into().unwrap());
    let code = if frame[0] >= 16 { 32 } else { 0 };
    let mut rest = vec![0; usize::try_from(length).unwrap() + code];
    stream.read_exact(&mut rest).ok()?;
    frame.extend(rest);
    Some(frame)
}

fn ip(arguments: &str) {
    let done = Command::new("ip")
        .args(arguments.split(' '))
        .output()
        .expect("ip is needed, or nothing is measured");
    assert!(
        done.status.success(),
        "ip {arguments}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
}

/// Two hosts and the wire between them; gone when dropped.
struct Hosts {
    names: [String; 2],
}

impl Hosts {
    fn new() -> Self {
        // Names of interfaces have at most 15 characters.
        let id = std::process::id() % 1_000_000;
        let hosts = Self {
            names: [format!("fp{id}a"), format!("fp{id}b")],
        };
        let [a, b] = &hosts.names;
        for host in &hosts.names {
            ip(&format!("netns add {host}"));
        }
        ip(&format!(
            "link add {a} netns {a} type veth peer name {b} netns {b}"
        ));
        for (host, address) in [(a, "10.77.0.1/24"), (b, "10.77.0.2/24")] {
            ip(&format!("-n {host} addr add {address} dev {host}"));
            ip(&format!("-n {host} link set {host} up"));
            ip(&format!("-n {host} link set lo up"));
        }
        hosts
    }

    fn wire(&self, state: &str) {
        let host = &self.names[0];
        ip(&format!("-n {host} link set {host} {state}"));
    }

    fn start(&self, host: usize, program: &str, state: &Path) -> Program {
        let child = Command::new("ip")
            .args(["netns", "exec", &self.names[host]])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", program, "--ignored", "--nocapture"])
            .env("FLIGHTPROOF_TEST_STATE", state)
            .env("FLIGHTPROOF_TEST_PEER", "10.77.0.1")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Program(child)
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for host in &self.names {
            let _ = Command::new("ip").args(["netns", "del", host]).status();
        }
    }
}

/// A program of this test; killed when dropped. `ip netns exec` becomes the program.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn prepare(folder: &Path) -> [PathBuf; 2] {
    let states = [folder.join("receiver"), folder.join("sender")];
    let mut receiver = Ledger::open(&states[0]).unwrap();
    for (flight, parent) in [("a", None), ("b", Some("a"))] {
        let parent = parent.map(|p: &str| p.parse().unwrap());
        receiver
            .enrol(&flight.parse().unwrap(), parent.as_ref())
            .unwrap();
    }
    let grant = receiver
        .issue_grant(&"grant".parse().unwrap(), &link())
        .unwrap();
    let mut sender = Ledger::open(&states[1]).unwrap();
    sender.accept_grant(&grant).unwrap();
    drop(sender);
    queue_more(&states[1], 0);
    states
}

/// The next part of the messages.
fn queue_more(sender: &Path, part: u64) {
    let mut sender = Ledger::open(sender).unwrap();
    sender
        .write(|w| {
            for n in part * PART + 1..=(part + 1) * PART {
                w.queue(&link(), &format!("k{n}").parse()?, &vec![7; 3000])?;
            }
            Ok(())
        })
        .unwrap();
}

#[test]
fn two_programs_on_two_hosts_agree_whatever_the_wire_and_the_programs_do() {
    let folder = tempfile::tempdir().unwrap();
    let states = prepare(folder.path());
    let hosts = Hosts::new();
    let _meddler = hosts.start(0, "meddler", folder.path());
    let begun = Instant::now();
    let mut deaths = 0;
    // Each round something else dies or is cut, a little later than in the one before.
    for round in 0..ROUNDS {
        let receiver = hosts.start(0, "receiver", &states[0]);
        let sender = hosts.start(1, "sender", &states[1]);
        std::thread::sleep(Duration::from_millis(60 + 25 * round));
        match round % 3 {
            0 => drop(receiver),
            1 => drop(sender),
            _ => {
                hosts.wire("down");
                std::thread::sleep(Duration::from_millis(50));
                hosts.wire("up");
            }
        }
        deaths += 1;
        // There is always something left to send.
        queue_more(&states[1], round + 1);
    }
    let _receiver = hosts.start(0, "receiver", &states[0]);
    let mut sender = hosts.start(1, "sender", &states[1]);
    while sender.0.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < PATIENCE, "it takes too long");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(sender.0.wait().unwrap().success());
    drop(_receiver);
    let (receiver, sender) = (
        Ledger::open(&states[0]).unwrap(),
        Ledger::open(&states[1]).unwrap(),
    );
    assert_eq!(sender.link(&link()).unwrap().acknowledged, MESSAGES);
    assert_eq!(receiver.link(&link()).unwrap().applied, MESSAGES);
    let letters = receiver.letters(&"b".parse().unwrap(), 1000).unwrap();
    let keys: Vec<String> = letters.iter().map(|l| l.key.to_string()).collect();
    let expected: Vec<String> = (1..=MESSAGES).map(|n| format!("effect-{n}")).collect();
    assert_eq!(keys, expected, "each once, and in order");
    for ledger in [&receiver, &sender] {
        ledger.check().unwrap();
    }
    println!("{deaths} deaths and cuts, {:?}", begun.elapsed());
}
