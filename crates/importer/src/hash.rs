//! Git's SHA-1, by a hasher that notices content built to collide with other content.

use crate::objects::Kind;
use crate::{ImportError, ImporterCode};
use flightproof_core::ObjectId;
use sha1_checked::{Digest as _, Sha1};

/// The hash of these pieces, or why it is none.
pub(crate) fn sha1(pieces: &[&[u8]]) -> Result<ObjectId, &'static str> {
    let mut hasher = Sha1::new();
    for piece in pieces {
        hasher.update(piece);
    }
    let result = hasher.try_finalize();
    if result.has_collision() {
        return Err("the mark of a forged collision");
    }
    Ok(ObjectId::from_bytes((*result.hash()).into()))
}

/// The id of an object of this content.
pub(crate) fn id_of(kind: Kind, body: &[u8]) -> Result<ObjectId, ImportError> {
    sha1(&[&kind.header(body.len()), body])
        .map_err(|mark| ImporterCode::ObjectHashMismatch.refuse(format!("{}: {mark}", kind.word())))
}

/// Refuses content that does not have the id that names it.
pub(crate) fn check(id: ObjectId, kind: Kind, body: &[u8]) -> Result<(), ImportError> {
    let found = id_of(kind, body)?;
    if found == id {
        return Ok(());
    }
    Err(ImporterCode::ObjectHashMismatch.refuse(format!("expected {id}, got {found}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_one_git_uses() {
        let empty = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391".parse().unwrap();
        assert!(check(empty, Kind::Blob, b"").is_ok());
        assert_eq!(
            check(empty, Kind::Blob, b"x").unwrap_err().code,
            ImporterCode::ObjectHashMismatch
        );
        assert!(check(empty, Kind::Tree, b"").is_err());
    }
}
