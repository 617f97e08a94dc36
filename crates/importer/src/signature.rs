//! A commit with a signature of its host: what `git verify-commit` looks for.
//!
//! The signature is one more header, over the commit without it. Whoever takes it out again has the
//! commit that was certified, byte for byte.

use crate::objects::{Kind, Source};
use crate::talk::Cap;
use crate::{ImportError, ImporterCode, hash};
use flightproof_core::CommitId;

/// The header.
const HEADER: &str = "\ngpgsig ";
/// Most bytes of an armoured signature: one by an Ed25519 key has 300.
const MOST: usize = 4 << 10;
/// Most bytes of a commit with one.
const SIGNED: Cap = Cap {
    bytes: (32 << 10) + MOST,
    code: ImporterCode::BytesOverLimit,
};

/// The commit with an armoured signature over it, behind its other headers.
pub(crate) fn signed(body: &[u8], armour: &str) -> Result<Vec<u8>, ImportError> {
    let unfit = |why: &str| Err(ImporterCode::SignatureUnfit.refuse(why));
    let lines: Vec<&str> = armour.lines().collect();
    let is_armour = matches!(
        lines.as_slice(),
        [
            "-----BEGIN SSH SIGNATURE-----",
            ..,
            "-----END SSH SIGNATURE-----"
        ]
    );
    let is_plain =
        |line: &&str| line.bytes().all(|b| b.is_ascii_graphic() || b == b' ') && !line.is_empty();
    if !is_armour || armour.len() > MOST || !lines.iter().all(is_plain) {
        return unfit("it is no armoured SSH signature");
    }
    let Some((head, message)) = split(body) else {
        return unfit("the commit has no message");
    };
    let header = format!("{HEADER}{}", lines.join("\n "));
    Ok([head, header.as_bytes(), b"\n\n", message].concat())
}

/// The commit that was signed; `None` for one without a signature.
pub(crate) fn unsigned(body: &[u8]) -> Option<Vec<u8>> {
    let (head, message) = split(body)?;
    let at = head
        .windows(HEADER.len())
        .position(|w| w == HEADER.as_bytes())?;
    let (before, header) = head.split_at_checked(at)?;
    // Lines of a header that is continued begin with a space.
    let end = header
        .windows(2)
        .skip(1)
        .position(|w| w[0] == b'\n' && w[1] != b' ');
    let after = end
        .and_then(|end| header.get(end + 1..))
        .unwrap_or_default();
    Some([before, after, b"\n\n", message].concat())
}

/// The id of the commit that was signed to make this one, if it is one that was signed here: nothing
/// that is admitted had a signature when it arrived.
pub(crate) fn unsigned_of(
    objects: &mut dyn Source,
    head: CommitId,
) -> Result<Option<CommitId>, ImportError> {
    let body = objects.read(head, Kind::Commit, SIGNED)?;
    let unsigned = unsigned(&body);
    unsigned
        .map(|body| hash::id_of(Kind::Commit, &body))
        .transpose()
}

/// Headers and message.
fn split(body: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = body.windows(2).position(|w| w == b"\n\n")?;
    Some((body.get(..at)?, body.get(at + 2..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARMOUR: &str = "-----BEGIN SSH SIGNATURE-----\nU1NI\nabc=\n-----END SSH SIGNATURE-----\n";
    const PLAIN: &[u8] =
        b"tree 1\nauthor A <a@x> 1 +0000\ncommitter A <a@x> 1 +0000\n\nm\n\ngpgsig x\n";

    #[test]
    fn a_signature_can_be_taken_out_again() {
        let whole = signed(PLAIN, ARMOUR).unwrap();
        let text = String::from_utf8(whole.clone()).unwrap();
        let header = "+0000\ngpgsig -----BEGIN SSH SIGNATURE-----\n U1NI\n abc=\n -----END SSH \
                      SIGNATURE-----\n\nm\n\ngpgsig x\n";
        assert!(text.ends_with(header), "{text}");
        assert_eq!(unsigned(&whole).unwrap(), PLAIN);
        assert_eq!(unsigned(PLAIN), None, "a message may say what it likes");
        let between = text.replace("\n\nm", "\nother x\n\nm");
        assert!(
            unsigned(between.as_bytes())
                .unwrap()
                .ends_with(b"+0000\nother x\n\nm\n\ngpgsig x\n")
        );
    }

    #[test]
    fn what_is_no_signature_does_not_become_a_header() {
        for armour in [
            "",
            "-----BEGIN SSH SIGNATURE-----",
            "-----BEGIN PGP SIGNATURE-----\nU1NI\n-----END PGP SIGNATURE-----\n",
            "-----BEGIN SSH SIGNATURE-----\n\nparent x\n-----END SSH SIGNATURE-----\n",
            "-----BEGIN SSH SIGNATURE-----\n\u{1b}[m\n-----END SSH SIGNATURE-----\n",
            &ARMOUR.replace("U1NI", &"U1NI".repeat(MOST)),
        ] {
            let refused = signed(PLAIN, armour).unwrap_err();
            assert_eq!(refused.code, ImporterCode::SignatureUnfit, "{armour:?}");
        }
        assert!(signed(b"tree 1\n", ARMOUR).is_err());
    }
}
