use super::endpoint::Endpoint;
use crate::cgroup::Limits;
use crate::{SessionCode, SessionError};
use flightproof_core::{Digest, escape};
use std::path::PathBuf;

/// Least memory of a session, bytes: the compiler alone needs more than this for anything real.
const MIN_MEMORY: u64 = 128 << 20;
/// Memory limits are counted in pages; the largest common page is 64 KiB.
const MEMORY_STEP: u64 = 64 << 10;
/// Least number of processes: keeper, runner, a build driver and a few threads of a compiler.
const MIN_PIDS: u64 = 16;
/// Least cpu share, thousandths: the kernel refuses a quota below a millisecond per period.
const MIN_CPU_MILLIS: u64 = 100;
/// Least scratch, bytes.
const MIN_SCRATCH: u64 = 1 << 20;
/// Longest lifetime, milliseconds: a day.
const MAX_LIFETIME_MS: u64 = 24 * 60 * 60 * 1000;
/// First host user id of sessions, and how many ranges of a million ids there are: the same that
/// local sessions of root use.
const BASE: u32 = 2_000_000_000;
const WIDTH: u32 = 1_000_000;
const SLOTS: u32 = 2_000;

/// The image of a session, named by content. A name could come to mean another image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinnedImage {
    /// The image's id: the digest of its configuration, which names its layers.
    pub id: Digest,
    /// The digests of its layers, unpacked, lowest first. Empty: any, and they are attested.
    pub layers: Vec<Digest>,
}

/// What a session on a container engine shall be.
#[derive(Debug, Clone)]
pub struct DockerSpec {
    /// The engine.
    pub endpoint: Endpoint,
    /// The image.
    pub image: PinnedImage,
    /// Memory in bytes, the scratch and our program included. A multiple of 64 KiB.
    pub memory_bytes: u64,
    /// Processes and threads at one time.
    pub pids: u64,
    /// Cpu time per second, milliseconds: 2000 is two cpus.
    pub cpu_millis: u64,
    /// Size of the build's scratch, bytes; charged to the memory.
    pub scratch_bytes: u64,
    /// How long the session may live, milliseconds.
    pub lifetime_ms: u64,
    /// Random bytes: the session's id and its range of user ids come from them.
    pub entropy: [u8; 16],
    /// Directory of the records of open sessions.
    pub state_dir: PathBuf,
    /// The ledger the session belongs to: see [`super::ledger_id`].
    pub ledger: String,
    /// Fencing token of the lease under which the session is opened; 0 without a lease.
    pub fence: u64,
}

impl DockerSpec {
    /// Whether the numbers can be meant.
    pub(super) fn check(&self) -> Result<(), SessionError> {
        let refuse = |what: String| Err(SessionCode::SpecInvalid.refuse(what));
        let least = [
            ("memory_bytes", self.memory_bytes, MIN_MEMORY),
            ("pids", self.pids, MIN_PIDS),
            ("cpu_millis", self.cpu_millis, MIN_CPU_MILLIS),
            ("scratch_bytes", self.scratch_bytes, MIN_SCRATCH),
            ("lifetime_ms", self.lifetime_ms, 1),
        ];
        let most = [
            ("memory_bytes", self.memory_bytes, i64::MAX.unsigned_abs()),
            ("pids", self.pids, u64::from(u32::MAX)),
            ("cpu_millis", self.cpu_millis, u64::from(u32::MAX)),
            ("lifetime_ms", self.lifetime_ms, MAX_LIFETIME_MS),
        ];
        if let Some((name, found, min)) = least.iter().find(|(_, found, min)| found < min) {
            return refuse(format!("{name} is {found}, the least is {min}"));
        }
        if let Some((name, found, max)) = most.iter().find(|(_, found, max)| found > max) {
            return refuse(format!("{name} is {found}, the most is {max}"));
        }
        if !self.memory_bytes.is_multiple_of(MEMORY_STEP) {
            return refuse(format!("memory_bytes is no multiple of {MEMORY_STEP}"));
        }
        if self.scratch_bytes >= self.memory_bytes {
            return refuse(format!(
                "scratch_bytes ({}) is charged to memory_bytes ({}) and must be less",
                self.scratch_bytes, self.memory_bytes
            ));
        }
        if !super::owner::is_ledger_id(&self.ledger) {
            return refuse(format!("ledger {} is no id", escape(&self.ledger, 80)));
        }
        Ok(())
    }

    pub(super) fn limits(&self) -> Limits {
        Limits {
            memory_bytes: self.memory_bytes,
            pids: self.pids,
            cpu_millis: self.cpu_millis,
        }
    }

    /// The session's id.
    pub(super) fn id(&self) -> String {
        self.entropy.iter().map(|b| format!("{b:02x}")).collect()
    }

    /// First host user id of the session.
    pub(super) fn base(&self) -> u32 {
        let slot = u32::from(u16::from_be_bytes([self.entropy[14], self.entropy[15]])) % SLOTS;
        BASE + slot * WIDTH
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn spec() -> DockerSpec {
        DockerSpec {
            endpoint: Endpoint::Unix("/run/engine.sock".into()),
            image: PinnedImage {
                id: Digest::of(b"image"),
                layers: vec![Digest::of(b"layer")],
            },
            memory_bytes: 1 << 30,
            pids: 64,
            cpu_millis: 2000,
            scratch_bytes: 512 << 20,
            lifetime_ms: 60_000,
            entropy: [7; 16],
            state_dir: "/state".into(),
            ledger: "00112233445566778899aabbccddeeff".into(),
            fence: 3,
        }
    }

    #[test]
    fn limits_that_cannot_be_meant_are_refused_by_name() {
        type Spoil = fn(&mut DockerSpec);
        let spoiled: [(&str, Spoil); 9] = [
            ("memory_bytes", |s| s.memory_bytes = 0),
            ("memory_bytes", |s| s.memory_bytes += 1),
            ("memory_bytes", |s| s.memory_bytes = u64::MAX),
            ("pids", |s| s.pids = 1),
            ("cpu_millis", |s| s.cpu_millis = 0),
            ("scratch_bytes", |s| s.scratch_bytes = 0),
            ("scratch_bytes", |s| s.scratch_bytes = s.memory_bytes),
            ("lifetime_ms", |s| s.lifetime_ms = u64::MAX),
            ("ledger", |s| s.ledger = "a b".into()),
        ];
        assert_eq!(spec().check(), Ok(()));
        for (name, spoil) in spoiled {
            let mut bad = spec();
            spoil(&mut bad);
            let refused = bad.check().unwrap_err();
            assert_eq!(refused.code, SessionCode::SpecInvalid);
            assert!(refused.detail.starts_with(name), "{refused}");
        }
    }

    #[test]
    fn the_ids_lie_above_what_systems_hand_out() {
        assert!(spec().base() >= BASE);
        let mut last = spec();
        last.entropy = [0xff; 16];
        assert!(last.base().checked_add(WIDTH).is_some());
    }
}
