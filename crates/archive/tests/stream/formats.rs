//! Both formats behind one face, and trees to put into them.

use flightproof_archive::{
    ArchiveCode, ArchiveError, Choice, Everything, Extraction, Names, paar, paws,
};
use flightproof_core::{CommitId, Digest, RelPath};
use std::fs::{self, File, Permissions};
use std::io::{Read, Seek};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// One of the two formats; what is tested here must hold for either.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Format {
    Paws,
    Paar,
}

pub(crate) const BOTH: [Format; 2] = [Format::Paws, Format::Paar];

pub(crate) fn origin() -> paar::Origin {
    paar::Origin {
        target: paar::Target::LinuxX64,
        source_commit: CommitId::from_bytes([7; 20]),
        daemon_protocol_version: 1,
        daemon_schema_revision: 0,
    }
}

impl Format {
    /// Packs to a file and gives the name of what was packed.
    pub(crate) fn pack(self, dir: &Path, output: &Path) -> Result<Digest, ArchiveError> {
        self.pack_chosen(dir, &mut Everything, output)
    }

    pub(crate) fn pack_chosen(
        self,
        dir: &Path,
        choice: &mut dyn Choice,
        output: &Path,
    ) -> Result<Digest, ArchiveError> {
        match self {
            Self::Paws => paws::pack_file(dir, "w", choice, output, &()).map(|s| s.snapshot_id()),
            Self::Paar => paar::pack_file(dir, origin(), choice, output, &()).map(|a| a.build_id()),
        }
    }

    /// What the encoder that has all in memory makes of the same files.
    pub(crate) fn in_memory(self, files: &[(String, bool, Vec<u8>)]) -> Vec<u8> {
        let files = files
            .iter()
            .map(|(path, executable, bytes)| (RelPath::new(path).unwrap(), *executable, bytes));
        match self {
            Self::Paws => paws::pack("w", files).unwrap().bytes,
            Self::Paar => {
                let files = files.map(|(path, executable, bytes)| (path.into(), executable, bytes));
                paar::pack(origin(), files).unwrap().bytes
            }
        }
    }

    /// Why the reader that has all in memory refuses.
    pub(crate) fn read(self, bytes: &[u8]) -> Option<ArchiveCode> {
        match self {
            Self::Paws => paws::read(bytes).err().map(|e| e.code),
            Self::Paar => paar::read(bytes).err().map(|e| e.code),
        }
    }

    pub(crate) fn verify(self, reader: impl Read) -> Result<Digest, ArchiveError> {
        match self {
            Self::Paws => paws::verify(reader, &()).map(|manifest| id(&manifest)),
            Self::Paar => paar::verify(reader, &()).map(|artifact| artifact.build_id()),
        }
    }

    pub(crate) fn verify_file(self, file: &File) -> Result<Digest, ArchiveError> {
        match self {
            Self::Paws => paws::verify_file(file, &()).map(|manifest| id(&manifest)),
            Self::Paar => paar::verify_file(file, &()).map(|artifact| artifact.build_id()),
        }
    }

    pub(crate) fn extract(
        self,
        reader: impl Read,
        how: &Extraction<'_>,
    ) -> Result<Digest, ArchiveError> {
        match self {
            Self::Paws => paws::extract(reader, how).map(|s| s.snapshot_id()),
            Self::Paar => paar::extract(reader, how).map(|a| a.build_id()),
        }
    }

    pub(crate) fn extract_file(
        self,
        file: &File,
        how: &Extraction<'_>,
    ) -> Result<Digest, ArchiveError> {
        match self {
            Self::Paws => paws::extract_file(file, how).map(|s| s.snapshot_id()),
            Self::Paar => paar::extract_file(file, how).map(|a| a.build_id()),
        }
    }

    /// The answer of all readers to an archive in a file. A stream has no known length: it may be
    /// refused for something else, but not less.
    pub(crate) fn judge(self, bytes: &[u8], root: &Path) -> Result<Digest, ArchiveCode> {
        let file = on_disk(bytes);
        let made = root.join("made");
        let answers = [
            self.verify_file(&file),
            self.extract_file(&file, &into(&made)),
            self.verify(bytes),
            self.extract(bytes, &into(&root.join("streamed"))),
        ];
        let made = names(root);
        let expected: &[&str] = match answers[0] {
            Ok(_) => &["made", "streamed"],
            Err(_) => &[],
        };
        assert_eq!(made, expected, "{self:?}: {answers:?}");
        for made in made {
            fs::remove_dir_all(root.join(made)).unwrap();
        }
        let [file, extracted, streamed, also] = answers.map(|answer| answer.map_err(|e| e.code));
        assert_eq!((file, streamed), (extracted, also));
        assert_eq!(file.ok(), streamed.ok());
        file
    }
}

pub(crate) fn id(manifest: &paws::Manifest) -> Digest {
    match manifest {
        paws::Manifest::Snapshot(snapshot) => snapshot.snapshot_id(),
        paws::Manifest::Changeset(changeset) => changeset.changeset_id(),
    }
}

pub(crate) fn into(path: &Path) -> Extraction<'_> {
    Extraction {
        into: path,
        names: Names::Strict,
        expected: None,
        progress: &(),
    }
}

pub(crate) fn on_disk(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut file, bytes).unwrap();
    file.rewind().unwrap();
    file
}

pub(crate) fn plant(root: &Path, files: &[(String, bool, Vec<u8>)]) {
    for (path, executable, bytes) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        let mode = if *executable { 0o700 } else { 0o600 };
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    }
}

/// The files below a directory, ascending by path, as [`plant`] takes them.
pub(crate) fn harvest(root: &Path) -> Vec<(String, bool, Vec<u8>)> {
    let mut files = Vec::new();
    let mut left = vec![root.to_path_buf()];
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                assert_eq!(mode(&path), 0o755, "{path:?}");
                left.push(path);
                continue;
            }
            let executable = match mode(&path) {
                0o644 => false,
                0o755 => true,
                other => panic!("{path:?} has mode {other:o}"),
            };
            let name = path
                .strip_prefix(root)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned();
            files.push((name, executable, fs::read(path).unwrap()));
        }
    }
    files.sort();
    files
}

pub(crate) fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

pub(crate) fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let mut names: Vec<_> = entries
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

pub(crate) fn small() -> Vec<(String, bool, Vec<u8>)> {
    [
        ("a-b/x", false, "sorts before a/"),
        ("a/deep/er/run", true, "#!"),
        ("a/file", false, "hello"),
        ("empty", false, ""),
    ]
    .map(|(path, executable, text)| (path.to_owned(), executable, text.as_bytes().to_vec()))
    .into()
}

/// Bytes that differ from place to place, so that a piece in the wrong place is noticed.
pub(crate) fn filled(length: usize) -> Vec<u8> {
    (0..length)
        .map(|i| (i ^ (i >> 8) ^ (i >> 16)).to_le_bytes()[0])
        .collect()
}
