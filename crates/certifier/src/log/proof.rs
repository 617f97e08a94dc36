//! A proof, in one text, that an entry is in a log: C2SP `tlog-proof`.

use super::{Checkpoint, Entry, LogKey, MAX_ENTRY_BYTES};
use crate::merkle;
use crate::{CertifierCode, CertifierError};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flightproof_core::{Digest, Moment};

/// The first line.
const FIRST: &str = "c2sp.org/tlog-proof@v1";
/// Longest way to a root: no log has more entries than 2^63.
const MAX_PATH: usize = 63;
/// Largest proof in bytes: an entry, a path and a checkpoint.
const MAX_BYTES: usize = 2 * MAX_ENTRY_BYTES + 64 * 1024;

/// A proof. The entry travels with it, in the place that the format has for what is needed to
/// compute the leaf; it counts because the way from it leads to the root, not because it is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    /// The entry's bytes.
    pub entry: Vec<u8>,
    /// Its place.
    pub index: u64,
    /// What lies beside the way to the root.
    pub path: Vec<Digest>,
    /// The signed checkpoint.
    pub checkpoint: String,
}

/// Where a certificate stands in a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Included {
    /// The entry's place.
    pub index: u64,
    /// Number of entries of the checkpoint.
    pub size: u64,
    /// When the entry was written, by the log's own clock.
    pub at: Moment,
}

/// Checks that a log has an entry about a certificate that was certified or admitted.
///
/// # Errors
/// `INCLUSION_INVALID`, `CHECKPOINT_INVALID`.
pub fn included(
    proof: &[u8],
    log: &LogKey,
    certificate: Digest,
) -> Result<Included, CertifierError> {
    let proof = Proof::parse(proof)?;
    let checkpoint = Checkpoint::open(proof.checkpoint.as_bytes(), log)?;
    let leaf = merkle::leaf(&proof.entry);
    let reached = merkle::climb(leaf, proof.index, checkpoint.size, &proof.path);
    if reached != Some(checkpoint.root) {
        return Err(invalid(format_args!(
            "entry {} of {} does not lead to the root",
            proof.index, checkpoint.size
        )));
    }
    let entry = Entry::parse(&proof.entry).map_err(invalid)?;
    if entry.event.certificate() != Some(certificate) {
        return Err(invalid(format_args!(
            "entry {} is about something else",
            proof.index
        )));
    }
    Ok(Included {
        index: proof.index,
        size: checkpoint.size,
        at: entry.at,
    })
}

impl Proof {
    /// The text.
    pub fn text(&self) -> String {
        let mut out = format!(
            "{FIRST}\nextra {}\nindex {}\n",
            STANDARD.encode(&self.entry),
            self.index
        );
        for hash in &self.path {
            out.push_str(&STANDARD.encode(hash.as_bytes()));
            out.push('\n');
        }
        out.push('\n');
        out.push_str(&self.checkpoint);
        out
    }

    /// Reads a proof.
    ///
    /// # Errors
    /// `INCLUSION_INVALID` for anything that this program would not write.
    pub fn parse(bytes: &[u8]) -> Result<Self, CertifierError> {
        if bytes.len() > MAX_BYTES {
            return Err(invalid(format_args!("more than {MAX_BYTES} bytes")));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| invalid("not UTF-8"))?;
        let (head, checkpoint) = text
            .split_once("\n\n")
            .ok_or_else(|| invalid("no checkpoint"))?;
        let mut lines = head.split('\n');
        if lines.next() != Some(FIRST) {
            return Err(invalid(format_args!("does not begin with {FIRST}")));
        }
        let mut field = |name: &str| {
            let line = lines.next().and_then(|line| line.strip_prefix(name));
            line.ok_or_else(|| invalid(format_args!("no {}line", name)))
        };
        let entry = STANDARD.decode(field("extra ")?);
        let index = field("index ")?.parse();
        let path: Option<Vec<Digest>> = lines.map(hash).collect();
        let proof = Self {
            entry: entry.map_err(|_| invalid("the entry is not base64"))?,
            index: index.map_err(|_| invalid("no index"))?,
            path: path.ok_or_else(|| invalid("a hash"))?,
            checkpoint: checkpoint.to_owned(),
        };
        if proof.path.len() > MAX_PATH {
            return Err(invalid(format_args!("more than {MAX_PATH} hashes")));
        }
        match proof.text() == text {
            true => Ok(proof),
            false => Err(invalid("not in its one spelling")),
        }
    }
}

fn hash(line: &str) -> Option<Digest> {
    let bytes = STANDARD.decode(line).ok()?;
    <[u8; 32]>::try_from(bytes).ok().map(Digest::from_bytes)
}

fn invalid(reason: impl std::fmt::Display) -> CertifierError {
    CertifierCode::InclusionInvalid.refuse(reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A proof with a way of so many hashes, and so many bytes in all.
    fn proof(hashes: usize, bytes: usize) -> String {
        let mut proof = Proof {
            entry: b"entry".to_vec(),
            index: 1,
            path: vec![Digest::of(b"beside"); hashes],
            checkpoint: String::new(),
        };
        let short = bytes.saturating_sub(proof.text().len());
        proof.checkpoint = "x".repeat(short);
        proof.text()
    }

    #[test]
    fn a_proof_has_so_many_hashes_and_bytes_and_no_more() {
        let refused = |text: String| Proof::parse(text.as_bytes()).err().map(|e| e.code);
        let invalid = Some(CertifierCode::InclusionInvalid);
        assert_eq!(refused(proof(63, 0)), None);
        assert_eq!(refused(proof(64, 0)), invalid);
        // Twice the longest entry, and 64 KiB for the rest.
        assert_eq!(refused(proof(3, 196_606)), None);
        assert_eq!(refused(proof(3, 196_607)), invalid);
    }
}
