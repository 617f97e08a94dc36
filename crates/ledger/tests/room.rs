//! A disk that is really full: small file systems of their own, filled to the last byte. They are
//! mounted where nobody else sees them, which needs root and `unshare`; without, these tests fail, since
//! nothing was measured.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set up its scene must fail"
)]

use flightproof_core::{Code as _, Digest, MicroUsd};
use flightproof_ledger::relay::Ended;
use flightproof_ledger::{
    Cap, HoldSize, Lease, Ledger, LedgerCode, LedgerError, Name, Received, Reserve, Scope,
};
use std::fs::File;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const NOW: u64 = 1_780_000_000;
/// Acts after which a disk that never fills is given up: a log page each would be twice its size.
const MOST: u32 = 4000;

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn key(n: u32) -> Name {
    name(&format!("k{n}"))
}

/// Something that is acknowledged, told by its number. Doing it again says what it said before.
type Act = fn(&mut Ledger, u32) -> Result<Vec<u8>, LedgerError>;

const ACTS: [(&str, Act); 5] = [
    ("reserve", reserve),
    ("serve", serve),
    ("receive", receive),
    ("queue", queue),
    ("lease", lease),
];

fn reserve(ledger: &mut Ledger, n: u32) -> Result<Vec<u8>, LedgerError> {
    let limit = MicroUsd::from_micros(1_000).unwrap();
    let ask = Reserve {
        run: key(n),
        request: Digest::of(&n.to_be_bytes()),
        parent: None,
        size: HoldSize::for_limit(limit, MicroUsd::ZERO, 1).unwrap(),
    };
    Ok(format!("{:?}", ledger.reserve(&ask, NOW)?).into_bytes())
}

fn serve(ledger: &mut Ledger, n: u32) -> Result<Vec<u8>, LedgerError> {
    let done = ledger.serve(&key(n), Digest::of(b"r"), |_| Ok(n.to_be_bytes().to_vec()))?;
    assert_eq!(done, Received::Answered(n.to_be_bytes().to_vec()));
    Ok(format!("{done:?}").into_bytes())
}

fn receive(ledger: &mut Ledger, n: u32) -> Result<Vec<u8>, LedgerError> {
    let held = ledger.read(|r| r.lease_holder(&name("owner")))?;
    let (_, owner): (Name, Lease) = held.unwrap();
    // Fresh once, in progress from then on: either says that it was taken in.
    ledger.receive(&key(n), Digest::of(b"r"), &owner)?;
    Ok(Vec::new())
}

fn queue(ledger: &mut Ledger, n: u32) -> Result<Vec<u8>, LedgerError> {
    let seq = ledger.queue(&name("link"), &key(n), &[7; 900])?;
    Ok(seq.to_be_bytes().to_vec())
}

fn lease(ledger: &mut Ledger, n: u32) -> Result<Vec<u8>, LedgerError> {
    if let Some((_, held)) = ledger.read(|r| r.lease_holder(&key(n)))? {
        return Ok(held.token.to_be_bytes().to_vec());
    }
    let lease = ledger.lease(&key(n), &name("me"), NOW, 60)?;
    Ok(lease.token.to_be_bytes().to_vec())
}

/// A ledger that knows what the acts need.
fn prepared(state: &Path) -> Ledger {
    let mut ledger = Ledger::open(state).unwrap();
    let cap = Cap::usd(MicroUsd::from_micros(1 << 40).unwrap());
    ledger.state_cap(Scope::Total, cap, NOW).unwrap();
    ledger
        .lease(&name("owner"), &name("me"), NOW, 60)
        .map(drop)
        .unwrap();
    let mut other = Ledger::open(&state.with_extension("other")).unwrap();
    let grant = other.issue_grant(&name("grant"), &name("link")).unwrap();
    ledger.accept_grant(&grant).unwrap();
    ledger
}

/// Takes every byte that is left, and gives it back when dropped.
struct Filler(PathBuf);

impl Filler {
    fn fill(disk: &Path) -> Self {
        let path = disk.join("filler");
        let mut file = File::create(&path).unwrap();
        for size in [64 * 1024, 4096, 512, 1] {
            let bytes = vec![1; size];
            while file.write(&bytes).is_ok_and(|n| n > 0) {}
        }
        let _ = file.sync_all();
        Self(path)
    }
}

impl Drop for Filler {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).unwrap();
    }
}

/// What a full disk may be called: by name, or, where a commit was under way, uncertain because of it.
fn says_full(refused: &LedgerError) -> bool {
    let hint = refused.code.explanation().todo;
    let said = match refused.code {
        LedgerCode::LedgerFull => true,
        LedgerCode::CommitUncertain => refused.detail.contains("full"),
        _ => false,
    };
    said && hint.contains("space")
}

fn disk() -> PathBuf {
    std::env::var_os("FLIGHTPROOF_TEST_DISK").unwrap().into()
}

/// Runs only on a disk of its own, below.
#[test]
#[ignore = "started by the tests below on a small disk"]
fn acts() {
    for (what, act) in ACTS {
        let state = disk().join(what);
        let mut ledger = prepared(&state);
        let mut told: Vec<Vec<u8>> = (0..3).map(|n| act(&mut ledger, n).unwrap()).collect();
        let filler = Filler::fill(&disk());
        let refused = loop {
            let n = u32::try_from(told.len()).unwrap();
            assert!(n < MOST, "{what}: the disk never fills");
            match act(&mut ledger, n) {
                Ok(answer) => told.push(answer),
                Err(refused) => break refused,
            }
        };
        assert!(says_full(&refused), "{what}: {refused:?}");
        let again = act(&mut ledger, 0).map(drop);
        assert_eq!(
            again.unwrap_err().code,
            LedgerCode::CommitUncertain,
            "{what}"
        );
        drop(ledger);
        // Without room it is opened and reads what it has, or says why not.
        match Ledger::open(&state) {
            Err(refused) => assert!(says_full(&refused), "{what}: {refused:?}"),
            Ok(mut ledger) => check_told(&mut ledger, act, &told, what),
        }
        drop(filler);
        let mut ledger = Ledger::open(&state).unwrap();
        check_told(&mut ledger, act, &told, what);
        // What was refused is done now, once, as is what comes after it.
        let n = u32::try_from(told.len()).unwrap();
        for n in n..n + 20 {
            told.push(act(&mut ledger, n).unwrap());
        }
        check_told(&mut ledger, act, &told, what);
        ledger.check().unwrap();
        ledger.close().unwrap();
        println!("{what}: {n} before it was full, {:?} then", refused.code);
        std::fs::remove_dir_all(&state).unwrap();
    }
}

/// Everything that was acknowledged is said again as it was; none of it is written anew.
fn check_told(ledger: &mut Ledger, act: Act, told: &[Vec<u8>], what: &str) {
    let before = ledger.head().unwrap();
    for (n, answer) in told.iter().enumerate() {
        let n = u32::try_from(n).unwrap();
        assert_eq!(&act(ledger, n).unwrap(), answer, "{what} {n}");
    }
    assert_eq!(ledger.head().unwrap(), before, "{what}: written again");
}

/// Runs only on a disk of its own, below.
#[test]
#[ignore = "started by the tests below on a small disk"]
fn relay() {
    const MESSAGES: u64 = 40;
    let link = name("link");
    let (here, there) = (disk().join("sender"), disk().join("receiver"));
    let mut sender = Ledger::open(&here).unwrap();
    let mut receiver = Ledger::open(&there).unwrap();
    let grant = receiver.issue_grant(&name("grant"), &link).unwrap();
    sender.accept_grant(&grant).unwrap();
    for n in 0..u32::try_from(MESSAGES).unwrap() {
        sender.queue(&link, &key(n), &[7; 2000]).unwrap();
    }
    let filler = Filler::fill(&disk());
    // Neither end has room: the receiver for effects, the sender for acknowledgements.
    talk(sender, receiver);
    drop(filler);
    let (mut sender, receiver) = (Ledger::open(&here).unwrap(), Ledger::open(&there).unwrap());
    let applied = receiver.link(&link).unwrap().applied;
    assert!(applied < MESSAGES, "the disk was not full");
    assert!(sender.link(&link).unwrap().acknowledged <= applied);
    for n in 0..u32::try_from(MESSAGES).unwrap() {
        sender.queue(&link, &key(n), &[7; 2000]).unwrap();
    }
    assert!(talk(sender, receiver), "with room it is drained");
    let (sender, receiver) = (Ledger::open(&here).unwrap(), Ledger::open(&there).unwrap());
    let ends = (sender.link(&link).unwrap(), receiver.link(&link).unwrap());
    assert_eq!((ends.0.queued, ends.0.acknowledged), (MESSAGES, MESSAGES));
    assert_eq!(ends.1.applied, MESSAGES);
    let effects: Vec<Received> = (1..=MESSAGES)
        .filter_map(|seq| {
            let effect = name(&format!("effect-{seq}"));
            receiver.known(&effect, Digest::of(b"effect")).unwrap()
        })
        .collect();
    assert_eq!(effects.len(), usize::try_from(MESSAGES).unwrap());
    for ledger in [&sender, &receiver] {
        ledger.check().unwrap();
    }
}

/// One connection; whether everything was acknowledged. Whatever ends it is a full disk.
fn talk(mut sender: Ledger, mut receiver: Ledger) -> bool {
    let (mut ours, mut theirs) = UnixStream::pair().unwrap();
    for stream in [&ours, &theirs] {
        stream
            .set_read_timeout(Some(Duration::from_secs(5)))
            .unwrap();
    }
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let talk = receiver.receive_over(&mut theirs, |w, message| {
                let effect = name(&format!("effect-{}", message.seq));
                w.serve(&effect, Digest::of(b"effect"), |_| Ok(vec![1; 2000]))?;
                Ok(message.seq.to_be_bytes().to_vec())
            });
            if let Err(refused) = talk {
                assert!(says_full(&refused), "{refused:?}");
            }
        });
        let talk = sender.relay(&name("link"), &mut ours);
        drop(ours);
        match talk {
            Ok(talk) => matches!(talk.ended, Ended::Drained),
            Err(refused) => {
                assert!(says_full(&refused), "{refused:?}");
                false
            }
        }
    })
}

/// Runs one of the above on a disk that `mount` makes of a folder, and nobody else sees.
fn on_a_small_disk(test: &str, mount: &str) {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let image = folder.path().join("image");
    File::create(&image).unwrap().set_len(SIZE).unwrap();
    let script = format!("set -e; {mount}; chmod 700 \"$1\"; shift 2; exec \"$@\"");
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", &script, "sh"])
        .args([&disk, &image])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env("FLIGHTPROOF_TEST_DISK", &disk)
        .output()
        .expect("unshare is needed, or nothing is measured");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    print!("{said}");
}

/// Bytes of a small disk: room for two ledgers and their logs.
const SIZE: u64 = 4 << 20;
const IN_MEMORY: &str = "mount -t tmpfs -o size=4m none \"$1\"";
const ON_A_DISK: &str = "mkfs.ext4 -q -m 0 \"$2\"; mount -o loop \"$2\" \"$1\"";

#[test]
fn nothing_acknowledged_is_lost_on_a_full_disk_and_it_goes_on_when_there_is_room() {
    on_a_small_disk("acts", IN_MEMORY);
    on_a_small_disk("acts", ON_A_DISK);
}

#[test]
fn messages_wait_for_room_at_either_end() {
    on_a_small_disk("relay", IN_MEMORY);
    on_a_small_disk("relay", ON_A_DISK);
}
