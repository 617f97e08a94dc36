//! Stopped at our own seams: the process ends there, and the next one goes on.

use crate::folder;
use flightproof_ledger::faults::{Point, arm};
use flightproof_ledger::{Cap, Ledger, Name, Scope};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const MESSAGES: u64 = 3;
const NOW: u64 = 1_780_000_000;

fn link() -> Name {
    "link".parse().unwrap()
}

/// One end of a link, in a process of its own. It may be told to end at a point.
#[test]
#[ignore = "started by the test below"]
fn end_of_a_link() {
    let place = |name| std::env::var(name).unwrap();
    let mut ledger = Ledger::open(Path::new(&place("FLIGHTPROOF_TEST_STATE"))).unwrap();
    if let Ok(point) = std::env::var("FLIGHTPROOF_TEST_POINT") {
        let point: usize = point.parse().unwrap();
        let nth = place("FLIGHTPROOF_TEST_NTH").parse().unwrap();
        arm(Point::ALL[point], nth);
    }
    let socket = place("FLIGHTPROOF_TEST_SOCKET");
    if place("FLIGHTPROOF_TEST_SIDE") == "sender" {
        let mut stream = UnixStream::connect(socket).unwrap();
        patient(&stream);
        ledger.relay(&link(), &mut stream).unwrap();
        return;
    }
    let listener = UnixListener::bind(socket).unwrap();
    println!("\nlistening");
    let (mut stream, _) = listener.accept().unwrap();
    patient(&stream);
    let careless = std::env::var_os("FLIGHTPROOF_TEST_CARELESS");
    ledger
        .receive_over(&mut stream, |w, message| {
            let amount = flightproof_core::MicroUsd::from_micros(message.seq).unwrap();
            if let Some(file) = &careless {
                // Broken on purpose: an effect outside the transaction.
                use std::io::Write as _;
                let file = std::fs::OpenOptions::new()
                    .append(true)
                    .create(true)
                    .open(file);
                writeln!(file.unwrap(), "{}", message.seq).unwrap();
            } else {
                w.state_cap(Scope::Total, Cap::usd(amount), NOW)?;
            }
            Ok(Vec::new())
        })
        .unwrap();
}

fn patient(stream: &UnixStream) {
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
}

struct Ends {
    folder: tempfile::TempDir,
    careless: bool,
}

impl Ends {
    fn new(careless: bool) -> Self {
        let ends = Self {
            folder: folder(),
            careless,
        };
        let mut receiver = Ledger::open(&ends.state("receiver")).unwrap();
        let grant = receiver
            .issue_grant(&"grant".parse().unwrap(), &link())
            .unwrap();
        let mut sender = Ledger::open(&ends.state("sender")).unwrap();
        sender.accept_grant(&grant).unwrap();
        for n in 1..=MESSAGES {
            sender
                .queue(&link(), &format!("k{n}").parse().unwrap(), b"x")
                .unwrap();
        }
        ends
    }

    fn state(&self, side: &str) -> std::path::PathBuf {
        self.folder.path().join(side)
    }

    fn start(&self, side: &str, point: Option<(usize, u64)>) -> Child {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args([
                "--exact",
                "faults::end_of_a_link",
                "--ignored",
                "--nocapture",
            ])
            .env("FLIGHTPROOF_TEST_STATE", self.state(side))
            .env("FLIGHTPROOF_TEST_SIDE", side)
            .env("FLIGHTPROOF_TEST_SOCKET", self.folder.path().join("socket"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        if self.careless {
            command.env(
                "FLIGHTPROOF_TEST_CARELESS",
                self.folder.path().join("effects"),
            );
        }
        if let Some((point, nth)) = point {
            command
                .env("FLIGHTPROOF_TEST_POINT", point.to_string())
                .env("FLIGHTPROOF_TEST_NTH", nth.to_string());
        }
        command.spawn().unwrap()
    }

    /// One connection. Returns whether the armed end ended at its point.
    fn connect(&self, armed: Option<(&str, usize, u64)>) -> bool {
        let _ = std::fs::remove_file(self.folder.path().join("socket"));
        let point = |side: &str| armed.filter(|a| a.0 == side).map(|a| (a.1, a.2));
        let mut receiver = self.start("receiver", point("receiver"));
        let mut said = std::io::BufReader::new(receiver.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("listening") {
            line.clear();
            let got = std::io::BufRead::read_line(&mut said, &mut line).unwrap();
            assert!(got > 0, "the receiver does not listen");
        }
        let sender = self
            .start("sender", point("sender"))
            .wait_with_output()
            .unwrap();
        let rest = std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        let receiver = receiver.wait().unwrap();
        rest.join().unwrap().unwrap();
        /// What abort() ends with.
        const SIGABRT: i32 = 6;
        let struck = match armed {
            Some(("sender", ..)) => sender.status,
            _ => receiver,
        };
        struck.signal() == Some(SIGABRT)
    }

    /// Every effect, in order.
    fn effects(&self) -> Vec<u64> {
        if self.careless {
            let text = std::fs::read_to_string(self.folder.path().join("effects"));
            return text.unwrap().lines().map(|l| l.parse().unwrap()).collect();
        }
        let raw = rusqlite::Connection::open(self.state("receiver").join(Ledger::FILE)).unwrap();
        let mut select = raw
            .prepare("SELECT micro_usd FROM caps ORDER BY id")
            .unwrap();
        let rows = select.query_map((), |row| row.get::<_, i64>(0)).unwrap();
        rows.map(|row| row.unwrap().cast_unsigned()).collect()
    }
}

/// Where each end passes which point, and how often at most before it is done.
const SEAMS: [(&str, Point); 8] = [
    ("sender", Point::BeforeCommit),
    ("sender", Point::AfterCommit),
    ("sender", Point::AfterSend),
    ("sender", Point::BeforeMark),
    ("receiver", Point::BeforeCommit),
    ("receiver", Point::AfterCommit),
    ("receiver", Point::BeforeAcknowledge),
    ("receiver", Point::AfterAcknowledge),
];

#[test]
fn an_end_that_stops_at_any_seam_goes_on_where_it_was() {
    let mut fired = Vec::new();
    for (side, point) in SEAMS {
        let number = Point::ALL.iter().position(|p| *p == point).unwrap();
        for nth in 1..=2 {
            let ends = Ends::new(false);
            if ends.connect(Some((side, number, nth))) {
                fired.push((side, point));
            }
            ends.connect(None);
            assert_eq!(ends.effects(), [1, 2, 3], "{side} {point:?} {nth}");
            let sender = Ledger::open(&ends.state("sender")).unwrap();
            assert_eq!(sender.link(&link()).unwrap().acknowledged, MESSAGES);
            Ledger::open(&ends.state("receiver"))
                .unwrap()
                .check()
                .unwrap();
        }
    }
    for seam in SEAMS {
        assert!(fired.contains(&seam), "{seam:?} was never passed");
    }
}

/// The same test must catch an effect that is not part of the transaction.
#[test]
fn an_effect_outside_the_transaction_is_caught() {
    let ends = Ends::new(true);
    let before_commit = Point::ALL
        .iter()
        .position(|p| *p == Point::BeforeCommit)
        .unwrap();
    // The first commit redeems the grant, the second is the burst's.
    assert!(ends.connect(Some(("receiver", before_commit, 2))));
    ends.connect(None);
    assert_ne!(ends.effects(), [1, 2, 3]);
}
