use crate::git::Place;
use crate::objects::Kind;
use crate::{ImportError, ImporterCode};
use flate2::Compression;
use flate2::write::ZlibEncoder;
use flightproof_core::{CommitId, ObjectId};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// A bare repository of our own: no configuration but three lines, no hook, no attribute, no
/// replacement. With the host's store as an alternate it is a window on the host's objects and on
/// nothing else of the host.
#[derive(Debug)]
pub(crate) struct Scratch {
    dir: PathBuf,
}

impl Scratch {
    /// An empty repository in a new folder.
    pub(crate) fn empty(dir: PathBuf, floor: CommitId) -> Result<Self, ImportError> {
        let scratch = Self { dir };
        scratch.lay_out().map_err(failed)?;
        std::fs::write(scratch.dir.join("shallow"), format!("{floor}\n")).map_err(failed)?;
        Ok(scratch)
    }

    /// One that also sees the objects of `store`.
    pub(crate) fn over(dir: PathBuf, store: &Path, floor: CommitId) -> Result<Self, ImportError> {
        Self::empty(dir, floor)?.lend(store)
    }

    /// A window on `store` for reading objects by their ids: it has no floor, since nobody asks for parents.
    pub(crate) fn window(dir: PathBuf, store: &Path) -> Result<Self, ImportError> {
        let scratch = Self { dir };
        scratch.lay_out().map_err(failed)?;
        scratch.lend(store)
    }

    fn lend(self, store: &Path) -> Result<Self, ImportError> {
        let mut line = store.as_os_str().as_encoded_bytes().to_vec();
        line.push(b'\n');
        std::fs::write(self.dir.join("objects/info/alternates"), line).map_err(failed)?;
        Ok(self)
    }

    pub(crate) fn place(&self) -> Place<'_> {
        Place::Scratch(&self.dir)
    }

    /// The same with the index in this file.
    pub(crate) fn with_index<'a>(&'a self, index: &'a Path) -> Place<'a> {
        Place::Index(&self.dir, index)
    }

    /// Gives it these attributes, as if they were its own.
    pub(crate) fn set_attributes(&self, text: &[u8]) -> Result<(), ImportError> {
        let info = self.dir.join("info");
        let write = || {
            std::fs::create_dir_all(&info)?;
            std::fs::write(info.join("attributes"), text)
        };
        write().map_err(failed)
    }

    /// Writes an object that was hashed before.
    pub(crate) fn put(&self, id: ObjectId, kind: Kind, body: &[u8]) -> Result<(), ImportError> {
        let name = id.to_string();
        let (folder, file) = name.split_at(2);
        let folder = self.dir.join("objects").join(folder);
        let write = || {
            std::fs::create_dir_all(&folder)?;
            let file = std::fs::File::create(folder.join(file))?;
            let mut encoder = ZlibEncoder::new(file, Compression::fast());
            encoder.write_all(&kind.header(body.len()))?;
            encoder.write_all(body)?;
            encoder.finish().map(drop)
        };
        write().map_err(failed)
    }

    /// The index git wrote of a pack here.
    pub(crate) fn pack_index(&self, pack: ObjectId) -> PathBuf {
        self.dir.join(format!("objects/pack/pack-{pack}.idx"))
    }

    /// Points a reference at a commit.
    pub(crate) fn point(&self, reference: &str, to: CommitId) -> Result<(), ImportError> {
        let file = self.dir.join(reference);
        let write = || {
            std::fs::create_dir_all(file.parent().unwrap_or(&self.dir))?;
            std::fs::write(&file, format!("{to}\n"))
        };
        write().map_err(failed)
    }

    fn lay_out(&self) -> std::io::Result<()> {
        std::fs::create_dir(&self.dir)?;
        std::fs::create_dir_all(self.dir.join("objects/info"))?;
        std::fs::create_dir_all(self.dir.join("refs"))?;
        std::fs::write(self.dir.join("HEAD"), "ref: refs/heads/none\n")?;
        std::fs::write(
            self.dir.join("config"),
            "[core]\n\trepositoryformatversion = 0\n\tbare = true\n",
        )
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Best effort: the folder lies in the caller's temporary one.
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn failed(e: std::io::Error) -> ImportError {
    ImporterCode::ScratchFailed.refuse(e)
}
