//! Whose a container is. It says so itself, in labels; and a record of ours says so before it is
//! made. Two kinds of owners never touch each other's containers: those of another ledger, and
//! those that live.

use super::engine::{Engine, Fault};
use crate::lease::Claims;
use crate::record::{self, Left, Owner};
use crate::{SessionCode, SessionError};
use bollard::models::ContainerSummary;
use flightproof_core::{escape, parse_strict};
use rustix::rand::{GetRandomFlags, getrandom};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Names of the labels. All are set on every container of ours.
pub(super) const SESSION: &str = "flightproof.session";
pub(super) const LEDGER: &str = "flightproof.ledger";
const OWNER: &str = "flightproof.owner";
const FENCE: &str = "flightproof.fence";
const DEADLINE: &str = "flightproof.deadline";

/// Directory of the records below the state directory.
pub(crate) const RECORDS: &str = "engines";
/// File of the ledger's id below the state directory.
const LEDGER_ID: &str = "engine-ledger";
/// Schema of a record.
const SCHEMA: &str = "flightproof/engine-session/1";
/// Most bytes of a record or of the owner label.
const MAX_RECORD: usize = 16 << 10;
/// How long an engine may work on a container whose maker is dead before it shows up: its record is
/// kept that long.
const GRACE: Duration = Duration::from_secs(10);

/// The id under which containers of this state directory are known: random, made once.
///
/// # Errors
/// `HOST_IO`.
pub fn ledger_id(state_dir: &Path) -> Result<String, SessionError> {
    let path = state_dir.join(LEDGER_ID);
    let io = |e: &dyn std::fmt::Display| {
        SessionCode::HostIo.refuse(format_args!("{}: {e}", path.display()))
    };
    for _made_by_another in 0..2 {
        match fs::read_to_string(&path) {
            Ok(id) if is_ledger_id(&id) => return Ok(id),
            Ok(_) => return Err(io(&"no id")),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(io(&e)),
        }
        let mut entropy = [0u8; 16];
        getrandom(&mut entropy, GetRandomFlags::empty()).map_err(|e| io(&e))?;
        let id: String = entropy.iter().map(|b| format!("{b:02x}")).collect();
        let temporary = state_dir.join(format!("{LEDGER_ID}.{id}"));
        let written = fs::create_dir_all(state_dir).and_then(|()| {
            let mut file = fs::File::create_new(&temporary)?;
            file.write_all(id.as_bytes())?;
            file.sync_all()
        });
        if let Err(e) = written {
            let _ = fs::remove_file(&temporary);
            return Err(io(&e));
        }
        // The first one to link it wins; everybody reads what is there then.
        let linked = fs::hard_link(&temporary, &path);
        let _ = fs::remove_file(&temporary);
        match linked {
            Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => return Err(io(&e)),
            _ => {}
        }
    }
    fs::read_to_string(&path).map_err(|e| io(&e))
}

/// Ledger ids are 32 hexadecimal digits.
pub(super) fn is_ledger_id(id: &str) -> bool {
    id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit())
}

/// The name of a session's container.
pub(super) fn container_name(session: &str) -> String {
    format!("flightproof-{session}")
}

/// What the labels of a container say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Labels {
    pub(super) session: String,
    pub(super) ledger: String,
    pub(super) owner: Owner,
    pub(super) fence: u64,
    /// When it may be removed whoever owns it: seconds since 1970 by the engine's clock.
    pub(super) deadline: u64,
}

impl Labels {
    pub(super) fn written(&self) -> Result<HashMap<String, String>, SessionError> {
        let owner =
            serde_json::to_string(&self.owner).map_err(|e| SessionCode::HostIo.refuse(e))?;
        let pairs = [
            (SESSION, self.session.clone()),
            (LEDGER, self.ledger.clone()),
            (OWNER, owner),
            (FENCE, self.fence.to_string()),
            (DEADLINE, self.deadline.to_string()),
        ];
        Ok(pairs.map(|(name, value)| (name.to_owned(), value)).into())
    }

    /// `None` if anything is missing or not as we write it: then it is not ours.
    pub(super) fn read(labels: &HashMap<String, String>) -> Option<Self> {
        let session = labels.get(SESSION)?.clone();
        let ledger = labels.get(LEDGER)?.clone();
        let owner = parse_strict(labels.get(OWNER)?.as_bytes(), MAX_RECORD).ok()?;
        (is_ledger_id(&session) && is_ledger_id(&ledger)).then_some(())?;
        Some(Self {
            session,
            ledger,
            owner,
            fence: labels.get(FENCE)?.parse().ok()?,
            deadline: labels.get(DEADLINE)?.parse().ok()?,
        })
    }

    /// Whether a reaper of `ledger` may remove the container at `now`, by the engine's clock.
    fn is_abandoned(&self, ledger: &str, now: u64) -> Result<bool, SessionError> {
        let over = now > self.deadline;
        if self.ledger != ledger {
            // Whether its owner lives cannot be seen from here: it may be on another machine.
            return Ok(over);
        }
        Ok(self.owner.is_dead()? || over && !self.owner.is_visible()?)
    }
}

/// A session on an engine, written down before its container is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EngineRecord {
    schema: String,
    id: String,
    owner: Owner,
    endpoint: String,
}

impl EngineRecord {
    pub(super) fn new(id: &str, owner: &Owner, endpoint: &str) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            id: id.to_owned(),
            owner: owner.clone(),
            endpoint: endpoint.to_owned(),
        }
    }

    pub(super) fn store(&self, state_dir: &Path) -> Result<(), SessionError> {
        let json = serde_json::to_vec(self).map_err(|e| SessionCode::HostIo.refuse(e))?;
        record::store_file(
            &state_dir.join(RECORDS),
            &format!("{}.json", self.id),
            &json,
        )
    }

    pub(super) fn forget(&self, state_dir: &Path) -> Result<(), SessionError> {
        record::remove(&state_dir.join(RECORDS).join(format!("{}.json", self.id)))
    }
}

/// One container that was found without an owner and removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReapedContainer {
    /// The session.
    pub id: String,
    /// Whether it was of another ledger, past its deadline.
    pub foreign: bool,
}

/// Removes the containers of dead owners from an engine: those of this state directory's ledger
/// whose owner is dead, if `claims` lets us have them, and those of other ledgers past their deadline
/// by the engine's clock. What lacks our labels, or has them in another form, is left alone.
///
/// # Errors
/// `LEAK`, `ENGINE_FAULT` or `HOST_IO` for the first container that cannot be removed, once all others
/// were.
pub fn reap(
    engine: &Engine,
    state_dir: &Path,
    claims: &mut dyn Claims,
) -> Result<Vec<ReapedContainer>, SessionError> {
    let ledger = ledger_id(state_dir)?;
    let now = engine.clock()?;
    let found = engine
        .labelled(LEDGER)
        .map_err(|f| f.refuse("list containers"))?;
    let (mut reaped, mut failed) = (Vec::new(), None);
    for container in &found {
        match reap_one(engine, container, &ledger, now, claims) {
            Ok(gone) => reaped.extend(gone),
            Err(refused) => failed = failed.or(Some(refused)),
        }
    }
    failed = failed.or(forget_dead(engine, state_dir).err());
    failed.map_or(Ok(reaped), Err)
}

fn reap_one(
    engine: &Engine,
    container: &ContainerSummary,
    ledger: &str,
    now: u64,
    claims: &mut dyn Claims,
) -> Result<Option<ReapedContainer>, SessionError> {
    let Some((id, labels)) = ours(container) else {
        return Ok(None);
    };
    if !labels.is_abandoned(ledger, now)? {
        return Ok(None);
    }
    let (foreign, fence) = (labels.ledger != ledger, labels.fence);
    let reaped = ReapedContainer {
        id: labels.session,
        foreign,
    };
    // The token of another ledger means nothing in ours.
    if foreign {
        engine.remove(id)?;
        return Ok(Some(reaped));
    }
    if !claims.claim(&reaped.id, fence)? {
        return Ok(None);
    }
    let removed = engine.remove(id);
    removed.inspect_err(|_| claims.give_back(&reaped.id))?;
    claims.gone(&reaped.id)?;
    Ok(Some(reaped))
}

/// The containers of this state directory's ledger that stand on an engine although nobody is seen who
/// owns them, as [`record::left`] says of this machine.
///
/// # Errors
/// `ENGINE_FAULT`, `HOST_IO`.
pub fn left(engine: &Engine, state_dir: &Path) -> Result<Vec<Left>, SessionError> {
    let ledger = ledger_id(state_dir)?;
    let found = engine
        .labelled(LEDGER)
        .map_err(|f| f.refuse("list containers"))?;
    let mut left = Vec::new();
    for (_, labels) in found.iter().filter_map(ours) {
        if labels.ledger == ledger {
            left.extend(labels.owner.left(&labels.session)?);
        }
    }
    Ok(left)
}

/// Whether sessions of this state directory were opened on an engine and not seen to be gone.
///
/// # Errors
/// `HOST_IO`.
pub fn has_records(state_dir: &Path) -> Result<bool, SessionError> {
    Ok(!record::files(&state_dir.join(RECORDS))?.is_empty())
}

/// The engine's id and the labels of a container that is one of a session.
fn ours(container: &ContainerSummary) -> Option<(&str, Labels)> {
    let labels = Labels::read(container.labels.as_ref()?)?;
    let name = format!("/{}", container_name(&labels.session));
    let named = container.names.as_ref()?.contains(&name);
    named.then_some((container.id.as_deref()?, labels))
}

/// Forgets the records of dead owners on this engine whose container is not there, nor can still
/// be on its way.
fn forget_dead(engine: &Engine, state_dir: &Path) -> Result<(), SessionError> {
    let mut failed = None;
    for path in record::files(&state_dir.join(RECORDS))? {
        failed = failed.or(forget_one(engine, state_dir, &path).err());
    }
    failed.map_or(Ok(()), Err)
}

fn forget_one(engine: &Engine, state_dir: &Path, path: &PathBuf) -> Result<(), SessionError> {
    let Some((record, age)) = read_record(path)? else {
        return Ok(());
    };
    let here = record.endpoint == engine.endpoint().to_string();
    if !here || !record.owner.is_dead()? || age < GRACE {
        return Ok(());
    }
    match engine.inspect(&container_name(&record.id)) {
        // Made since it was looked for: the next run removes it.
        Ok(_) => Ok(()),
        Err(Fault::Status(404, _)) => record.forget(state_dir),
        Err(fault) => Err(fault.refuse("inspect")),
    }
}

fn read_record(path: &PathBuf) -> Result<Option<(EngineRecord, Duration)>, SessionError> {
    let io = |e: &dyn std::fmt::Display| {
        SessionCode::HostIo.refuse(format_args!("{}: {e}", path.display()))
    };
    let read = fs::metadata(path).and_then(|about| Ok((about.modified()?, fs::read(path)?)));
    let (written, bytes) = match read {
        Ok(read) => read,
        // Its owner closed it in between.
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(io(&e)),
    };
    let record: EngineRecord = parse_strict(&bytes, MAX_RECORD).map_err(|e| io(&e))?;
    let named = path.file_stem().is_some_and(|stem| *stem == *record.id);
    if !named || record.schema != SCHEMA || !is_ledger_id(&record.id) {
        return Err(io(&format!("it names {}", escape(&record.id, 80))));
    }
    // A clock that was set back makes it young; then it is kept for another run.
    let age = SystemTime::now()
        .duration_since(written)
        .unwrap_or_default();
    Ok(Some((record, age)))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const LEDGER_A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const LEDGER_B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
    const NOW: u64 = 1_800_000_000;

    fn labels(ledger: &str, owner: Owner, deadline: u64) -> Labels {
        Labels {
            session: "00".repeat(16),
            ledger: ledger.to_owned(),
            owner,
            fence: 7,
            deadline,
        }
    }

    fn alive() -> Owner {
        Owner::this_process().unwrap()
    }

    fn dead() -> Owner {
        let this = alive();
        Owner {
            started: this.started + 1,
            ..this
        }
    }

    fn elsewhere() -> Owner {
        Owner {
            namespace: "pid:[1]".to_owned(),
            ..alive()
        }
    }

    #[test]
    fn only_the_dead_of_our_ledger_and_the_overdue_of_others_are_abandoned() {
        let (past, ahead) = (NOW - 1, NOW + 1);
        let table = [
            (LEDGER_A, alive(), ahead, false),
            (LEDGER_A, alive(), past, false),
            (LEDGER_A, dead(), ahead, true),
            (LEDGER_A, elsewhere(), ahead, false),
            (LEDGER_A, elsewhere(), past, true),
            (LEDGER_B, dead(), ahead, false),
            (LEDGER_B, alive(), ahead, false),
            (LEDGER_B, alive(), past, true),
        ];
        for (ledger, owner, deadline, expected) in table {
            let labels = labels(ledger, owner, deadline);
            let found = labels.is_abandoned(LEDGER_A, NOW).unwrap();
            assert_eq!(found, expected, "{labels:?}");
        }
    }

    #[test]
    fn labels_come_back_as_they_were_written_and_others_are_not_ours() {
        let ours = labels(LEDGER_A, alive(), NOW);
        let written = ours.written().unwrap();
        assert_eq!(Labels::read(&written).unwrap(), ours);
        for name in [SESSION, LEDGER, OWNER, FENCE, DEADLINE] {
            let mut without = written.clone();
            without.remove(name);
            assert_eq!(Labels::read(&without), None, "{name}");
            for strange in ["", "x", "-1", "{}", "../../etc"] {
                let mut changed = written.clone();
                changed.insert(name.to_owned(), strange.to_owned());
                assert_eq!(Labels::read(&changed), None, "{name} {strange}");
            }
        }
    }

    #[test]
    fn a_container_of_another_name_is_not_ours_whatever_its_labels_say() {
        let labels = labels(LEDGER_A, dead(), NOW);
        let mut container = ContainerSummary {
            id: Some("id".to_owned()),
            names: Some(vec![format!("/{}", container_name(&labels.session))]),
            labels: Some(labels.written().unwrap()),
            ..ContainerSummary::default()
        };
        assert_eq!(ours(&container), Some(("id", labels)));
        container.names = Some(vec!["/precious".to_owned()]);
        assert_eq!(ours(&container), None);
    }

    #[test]
    fn the_ledger_has_one_id_whoever_asks_first() {
        let dir = tempfile::tempdir().unwrap();
        let ids: Vec<String> = std::thread::scope(|scope| {
            let asked: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| ledger_id(dir.path()).unwrap()))
                .collect();
            asked.into_iter().map(|a| a.join().unwrap()).collect()
        });
        assert!(
            ids.iter().all(|id| *id == ids[0] && is_ledger_id(id)),
            "{ids:?}"
        );
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        fs::write(dir.path().join(LEDGER_ID), "planted").unwrap();
        let refused = ledger_id(dir.path()).unwrap_err();
        assert_eq!(refused.code, SessionCode::HostIo);
    }
}
