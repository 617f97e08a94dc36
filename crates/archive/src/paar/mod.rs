//! PAAR1: a built artifact, such as the program that becomes the runner of a session.

mod file;
mod manifest;

pub use file::{extract, extract_file, pack_file, pack_to, verify, verify_file};
pub use manifest::decode;
pub(crate) use manifest::{decode_manifest, readers_agree};

use crate::code::{ArchiveCode, ArchiveError};
use crate::header::Layout;
use crate::listing::Limits;
use crate::payload::check_hash;
use flightproof_core::{CommitId, Digest, PathFault, RelPath};

/// Bytes before the manifest: magic and length. A fact of the format.
pub const HEADER_BYTES: usize = LAYOUT.header_bytes();
/// Most bytes of a manifest, 4 MiB. A fact of the format.
pub const MAX_MANIFEST_BYTES: usize = 4 << 20;
/// Most files. A fact of the format.
pub const MAX_FILES: usize = 20_000;
/// Most bytes of one file, 256 MiB. A fact of the format.
pub const MAX_FILE_BYTES: u64 = 256 << 20;
/// Most bytes of all files together, and of a whole archive, 1 GiB. A fact of the format.
pub const MAX_ARCHIVE_BYTES: u64 = 1 << 30;

pub(crate) const LAYOUT: Layout = Layout {
    magic: b"PAAR1",
    length_bytes: 4,
    max_manifest: MAX_MANIFEST_BYTES,
    max_archive: MAX_ARCHIVE_BYTES,
    empty: ArchiveCode::ArchiveTooLarge,
    truncated: ArchiveCode::TotalArchiveMismatch,
    trailing: ArchiveCode::TotalArchiveMismatch,
};

pub(crate) const LIMITS: Limits = Limits {
    files: MAX_FILES,
    too_many: ArchiveCode::BadFiles,
    file_bytes: MAX_FILE_BYTES,
    too_big: ArchiveCode::InvalidFileSize,
    total_bytes: MAX_ARCHIVE_BYTES,
    too_much: ArchiveCode::PayloadOverflow,
};

/// What an artifact runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// 64-bit x86.
    LinuxX64,
    /// 64-bit ARM.
    LinuxArm64,
}

/// What an artifact says about itself beside its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// What it runs on.
    pub target: Target,
    /// The commit it was built from.
    pub source_commit: CommitId,
    /// Version of the protocol it speaks: 1..=2^53-1.
    pub daemon_protocol_version: u64,
    /// Revision of its data: at most 2^53-1.
    pub daemon_schema_revision: u64,
}

/// A path of an artifact. The rules of [`RelPath`], except that C1 controls are allowed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ArtifactPath(String);

/// One file of an artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Where it lies.
    pub path: ArtifactPath,
    /// Whether it may be executed: mode 0755, else 0644. No other mode exists here.
    pub executable: bool,
    /// Its size in bytes.
    pub size: u64,
    /// The hash of its bytes.
    pub sha256: Digest,
}

/// A manifest: its files ascend, none is twice or below another, all limits hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    origin: Origin,
    files: Vec<File>,
    files_digest: Digest,
    build_id: Digest,
}

/// A verified archive in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unpacked<'a> {
    /// The manifest.
    pub artifact: Artifact,
    payload: &'a [u8],
}

/// An archive that was just made, and what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed {
    /// The manifest.
    pub artifact: Artifact,
    /// The archive: header, manifest, payload.
    pub bytes: Vec<u8>,
}

impl Target {
    /// The target this program was compiled for, if artifacts can be made for it.
    pub const CURRENT: Option<Self> = if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        Some(Self::LinuxX64)
    } else if cfg!(all(target_os = "linux", target_arch = "aarch64")) {
        Some(Self::LinuxArm64)
    } else {
        None
    };

    /// Its name in manifests.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LinuxX64 => "linux-x64",
            Self::LinuxArm64 => "linux-arm64",
        }
    }
}

impl ArtifactPath {
    /// Checks a text.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub fn new(text: &str) -> Result<Self, PathFault> {
        RelPath::check(text, false).map(|()| Self(text.to_owned()))
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<RelPath> for ArtifactPath {
    fn from(path: RelPath) -> Self {
        Self(path.into())
    }
}

impl Artifact {
    /// An artifact of these files, in any order.
    ///
    /// # Errors
    /// Versions out of range, no file, a path twice or below another, or a limit exceeded.
    pub fn new(origin: Origin, mut files: Vec<File>) -> Result<Self, ArchiveError> {
        files.sort_by(|a, b| a.path.cmp(&b.path));
        manifest::check_origin(&origin)?;
        manifest::check_count(files.len())?;
        manifest::check_files(&files)?;
        let artifact = Self::checked(origin, files);
        let total = artifact.header()?.len() as u64 + artifact.payload_bytes();
        check_size(total)?;
        Ok(artifact)
    }

    /// Files whose rules were checked by the caller.
    fn checked(origin: Origin, files: Vec<File>) -> Self {
        let files_digest = manifest::files_digest(&files);
        Self {
            build_id: manifest::build_id(&origin, files_digest),
            origin,
            files,
            files_digest,
        }
    }

    /// What it says about itself.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The files, ascending by the bytes of their paths.
    pub fn files(&self) -> &[File] {
        &self.files
    }

    /// The hash over all files as the manifest lists them.
    pub fn files_digest(&self) -> Digest {
        self.files_digest
    }

    /// The name of the build: what a session attests it runs.
    pub fn build_id(&self) -> Digest {
        self.build_id
    }

    /// Sum of all sizes: the length of the payload in bytes.
    pub fn payload_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.size).sum()
    }

    /// The archive without its payload: magic, length, manifest.
    ///
    /// # Errors
    /// The manifest exceeds its limit.
    pub fn header(&self) -> Result<Vec<u8>, ArchiveError> {
        LAYOUT.join(manifest::encode(self).as_bytes())
    }
}

/// Packs files that are in memory: path, whether it may be executed, content. In any order.
///
/// # Errors
/// As [`Artifact::new`].
pub fn pack<B: AsRef<[u8]>>(
    origin: Origin,
    files: impl IntoIterator<Item = (ArtifactPath, bool, B)>,
) -> Result<Packed, ArchiveError> {
    let mut files: Vec<_> = files.into_iter().collect();
    files.sort_by(|a, b| a.0.cmp(&b.0));
    let listed = files
        .iter()
        .map(|(path, executable, bytes)| File {
            path: path.clone(),
            executable: *executable,
            size: bytes.as_ref().len() as u64,
            sha256: Digest::of(bytes.as_ref()),
        })
        .collect();
    let artifact = Artifact::new(origin, listed)?;
    let mut bytes = artifact.header()?;
    for (_, _, content) in &files {
        bytes.extend_from_slice(content.as_ref());
    }
    Ok(Packed { artifact, bytes })
}

/// Reads a whole archive and verifies every byte of it.
///
/// # Errors
/// Everything [`decode`] refuses, and a file that does not have its hash.
pub fn read(bytes: &[u8]) -> Result<Unpacked<'_>, ArchiveError> {
    let artifact = decode(bytes, bytes.len() as u64)?;
    let (_, payload) = LAYOUT.split(bytes)?;
    let unpacked = Unpacked { artifact, payload };
    for (file, content) in unpacked.files() {
        check_hash(file, Digest::of(content))?;
    }
    Ok(unpacked)
}

impl<'a> Unpacked<'a> {
    /// The files with their bytes, ascending by path.
    pub fn files(&self) -> impl Iterator<Item = (&File, &'a [u8])> {
        let mut rest = self.payload;
        self.artifact.files.iter().map(move |file| {
            let size = usize::try_from(file.size).unwrap_or(usize::MAX);
            let (content, after) = rest.split_at_checked(size).unwrap_or((rest, &[]));
            rest = after;
            (file, content)
        })
    }
}

fn check_size(total: u64) -> Result<(), ArchiveError> {
    if total == 0 || total > MAX_ARCHIVE_BYTES {
        return Err(ArchiveCode::ArchiveTooLarge.refuse(format_args!(
            "{total} bytes, 1 to {MAX_ARCHIVE_BYTES} allowed"
        )));
    }
    Ok(())
}
