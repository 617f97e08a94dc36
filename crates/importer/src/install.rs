use crate::capture::{BASELINE, CANDIDATE};
use crate::objects::{Kind, Objects, Source as _};
use crate::{Git, Host, ImportError, commit, opinion, pack, walk};
use flightproof_ledger::AdmissionKey;

/// Puts the objects of an admission into the repository, as a pack of our own. Git checks it once
/// more and waits for the disk. The same pack twice is one file.
pub(crate) fn install(
    git: &Git,
    host: &Host,
    key: &AdmissionKey,
    carried: Option<&[u8]>,
) -> Result<(), ImportError> {
    let own;
    let pack = match carried {
        Some(pack) => pack,
        None => {
            own = collect(git, host, key)?;
            &own
        }
    };
    opinion::index(git, host.place(), pack)?;
    host.sync_packs()
}

/// The objects of a commit that is in the repository already, each hashed again.
fn collect(git: &Git, host: &Host, key: &AdmissionKey) -> Result<Vec<u8>, ImportError> {
    let mut objects = Objects::open(git, host.place())?;
    let baseline = objects.read(key.baseline, Kind::Commit, BASELINE)?;
    let head = objects.read(key.head, Kind::Commit, CANDIDATE)?;
    let (old, new) = (commit::tree_of(&baseline)?, commit::tree_of(&head)?);
    // What was granted was held against the change before.
    let mut found = walk::compare(&mut objects, old, new, &|_| true)?.new;
    found.insert(key.head, (Kind::Commit, head));
    pack::write(
        found
            .iter()
            .map(|(id, (kind, body))| (*id, *kind, body.as_slice())),
    )
}
