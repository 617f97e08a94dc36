use crate::code::ArchiveError;
use crate::header::Layout;
use flightproof_core::Digest;

/// One of the two formats, as far as verifying and extracting can tell them apart.
pub(crate) trait Format {
    /// What a manifest says.
    type Manifest;
    /// One file that the payload holds.
    type Member: Member;

    const LAYOUT: Layout;

    /// Reads a manifest strictly. The total is the length of the whole archive, where it is known.
    fn decode(manifest: &[u8], total: Option<u64>) -> Result<Self::Manifest, ArchiveError>;

    /// The files of the payload in its order.
    fn members(manifest: &Self::Manifest) -> Vec<&Self::Member>;

    /// The name of the whole: what an archive is announced by.
    fn id(manifest: &Self::Manifest) -> Digest;
}

/// One file that a payload holds.
pub(crate) trait Member: Sync {
    /// Where it lies: a path by the rules of its format.
    fn path(&self) -> &str;
    fn executable(&self) -> bool;
    /// Bytes.
    fn size(&self) -> u64;
    fn sha256(&self) -> Digest;
}

/// The length of the payload of these files in bytes.
pub(crate) fn payload_bytes<M: Member>(members: &[&M]) -> u64 {
    members.iter().map(|member| member.size()).sum()
}
