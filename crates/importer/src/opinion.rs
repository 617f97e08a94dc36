use crate::git::{Git, Verb};
use crate::scratch::Scratch;
use crate::talk::Cap;
use crate::{Checked, ImportError, ImporterCode};
use flightproof_core::{ObjectId, escape};

/// Asks git for a second opinion on a checked commit: it indexes the pack that was written here, in
/// a quarantine, with its own strict checks, and must find exactly the same objects in it.
pub(crate) fn ask(git: &Git, quarantine: &Scratch, checked: &Checked) -> Result<(), ImportError> {
    let name = index(git, quarantine.place(), &checked.pack()?)?;
    let file = quarantine.pack_index(name);
    let index = std::fs::read(file).map_err(|e| disagree(format!("no index: {e}")))?;
    let theirs = read_ids(&index).ok_or_else(|| disagree("an index of another form"))?;
    if theirs.iter().copied().eq(checked.objects()) {
        return Ok(());
    }
    Err(disagree(format!(
        "git found {} objects, we found {}",
        theirs.len(),
        checked.objects().len()
    )))
}

/// Has git store and index a pack of ours. Returns the pack's name.
pub(crate) fn index(
    git: &Git,
    place: crate::git::Place<'_>,
    pack: &[u8],
) -> Result<ObjectId, ImportError> {
    let mut talk = git.talk(Verb::IndexPack, place, &[])?;
    talk.send(pack)?;
    let answer = talk.finish(LINE)?;
    if answer.code != 0 {
        return Err(disagree(answer.complaint));
    }
    let text = std::str::from_utf8(&answer.stdout).unwrap_or_default();
    text.strip_prefix("pack\t")
        .and_then(|rest| rest.strip_suffix('\n'))
        .and_then(|name| name.parse().ok())
        .ok_or_else(|| disagree(format!("git said {}", escape(text, 80))))
}

/// What `index-pack` prints: a word and a name.
const LINE: Cap = Cap {
    bytes: 64,
    code: ImporterCode::GitFailed,
};

/// The ids in a pack index of version 2: after the magic a table of 256 counts, the last of which
/// is that of all, then the ids in their order.
fn read_ids(index: &[u8]) -> Option<Vec<ObjectId>> {
    const COUNTS: usize = 256 * 4;
    let rest = index.strip_prefix(b"\xfftOc\0\0\0\x02")?;
    let (counts, rest) = rest.split_at_checked(COUNTS)?;
    let count = usize::try_from(u32::from_be_bytes(*counts.last_chunk::<4>()?)).ok()?;
    let (ids, _) = rest.split_at_checked(count.checked_mul(20)?)?;
    let (ids, _) = ids.as_chunks::<20>();
    Some(ids.iter().copied().map(ObjectId::from_bytes).collect())
}

fn disagree(why: impl std::fmt::Display) -> ImportError {
    ImporterCode::SecondOpinion.refuse(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_from_an_index_and_from_nothing_else() {
        let mut index = b"\xfftOc\0\0\0\x02".to_vec();
        index.extend([0; 255 * 4]);
        index.extend([0, 0, 0, 2]);
        index.extend([1; 20]);
        index.extend([2; 20]);
        let ids = read_ids(&index).unwrap();
        assert_eq!(ids, [[1; 20], [2; 20]].map(ObjectId::from_bytes));
        for cut in [0, 8, 1_000, index.len() - 1] {
            assert_eq!(read_ids(&index[..cut]), None, "{cut}");
        }
    }
}
