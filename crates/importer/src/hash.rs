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

/// The sum at the end of an index: it tells damage, not forgery, and is of megabytes.
pub(crate) fn plain_sha1(bytes: &[u8]) -> [u8; 20] {
    let mut hasher = Sha1::builder().detect_collision(false).build();
    hasher.update(bytes);
    (*hasher.try_finalize().hash()).into()
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

    /// The first 320 bytes of the two documents of 2017 that have one SHA-1.
    const SHATTERED: &str = concat!(
        "255044462d312e330a25e2e3cfd30a0a0a312030206f626a0a3c3c2f57696474682032203020522f",
        "4865696768742033203020522f547970652034203020522f537562747970652035203020522f4669",
        "6c7465722036203020522f436f6c6f7253706163652037203020522f4c656e677468203820302052",
        "2f42697473506572436f6d706f6e656e7420383e3e0a73747265616d0affd8fffe00245348412d31",
        "20697320646561642121212121852fec092339759c39b1a1c63c4c97e1fffe017346dc9166b67e11",
        "8f029ab621b2560ff9ca67cca8c7f85ba84c79030c2b3de218f86db3a90901d5df45c14f26fedfb3",
        "dc38e96ac22fe7bd728f0e45bce046d23c570feb141398bb552ef5a0a82be331fea48037b8b5d71f",
        "0e332edf93ac3500eb4ddc0decc1a864790c782c76215660dd309791d06bd0af3f98cda4bc4629b1",
    );

    #[test]
    fn the_mark_of_a_forged_collision_is_noticed() {
        let digits: Vec<u8> = SHATTERED
            .bytes()
            .map(|b| u8::try_from(char::from(b).to_digit(16).unwrap()).unwrap())
            .collect();
        let bytes: Vec<u8> = digits
            .chunks(2)
            .map(|pair| pair[0] << 4 | pair[1])
            .collect();
        assert!(sha1(&[&bytes]).is_err());
        assert!(sha1(&[&bytes[..256]]).is_ok());
        // As the content of a file the blocks lie elsewhere, and collide with nothing.
        assert!(id_of(Kind::Blob, &bytes).is_ok());
    }
}
