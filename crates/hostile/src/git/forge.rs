use flate2::Compression;
use flate2::write::ZlibEncoder;
use sha1_checked::{Digest as _, Sha1};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// A SHA-1 object id.
pub type Id = [u8; 20];

/// Forty hexadecimal digits.
pub fn hex(id: &Id) -> String {
    id.iter().map(|b| format!("{b:02x}")).collect()
}

/// The id git gives this content.
pub fn id_of(kind: &str, body: &[u8]) -> Id {
    sha1(&[format!("{kind} {}\0", body.len()).as_bytes(), body].concat())
}

/// A tree object of these entries, in the order and with the bytes given.
pub fn tree(entries: &[(&[u8], &[u8], Id)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (mode, name, id) in entries {
        out.extend_from_slice(mode);
        out.push(b' ');
        out.extend_from_slice(name);
        out.push(0);
        out.extend_from_slice(id);
    }
    out
}

/// A repository into which anything can be written, on disk or in memory alone.
#[derive(Debug)]
pub struct Forge {
    /// Absent if it is in memory alone.
    git: Option<PathBuf>,
    objects: RefCell<BTreeMap<Id, (String, Vec<u8>)>>,
}

impl Forge {
    /// An empty repository with a working tree at `top`.
    ///
    /// # Errors
    /// The disk's.
    pub fn create(top: &Path) -> io::Result<Self> {
        let git = top.join(".git");
        for folder in ["objects/info", "objects/pack", "refs/heads", "info"] {
            fs::create_dir_all(git.join(folder))?;
        }
        let forge = Self {
            git: Some(git),
            objects: RefCell::default(),
        };
        forge.write("HEAD", b"ref: refs/heads/elsewhere\n")?;
        forge.write(
            "config",
            b"[core]\n\trepositoryformatversion = 0\n\tbare = false\n",
        )?;
        Ok(forge)
    }

    /// One that holds objects and nothing else, and writes nothing to disk.
    pub fn in_memory() -> Self {
        Self {
            git: None,
            objects: RefCell::default(),
        }
    }

    /// Kind and content of every object that was put.
    pub fn objects(&self) -> BTreeMap<Id, (String, Vec<u8>)> {
        self.objects.borrow().clone()
    }

    /// The `.git` folder; the empty path for one in memory.
    pub fn git_dir(&self) -> &Path {
        self.git.as_deref().unwrap_or(Path::new(""))
    }

    /// Writes an object under the id it has.
    ///
    /// # Errors
    /// The disk's.
    pub fn put(&self, kind: &str, body: &[u8]) -> io::Result<Id> {
        let id = id_of(kind, body);
        self.put_as(&id, kind, body)?;
        Ok(id)
    }

    /// Writes an object under any id, as a loose one.
    ///
    /// # Errors
    /// The disk's.
    pub fn put_as(&self, id: &Id, kind: &str, body: &[u8]) -> io::Result<()> {
        let known = (kind.to_owned(), body.to_vec());
        self.objects.borrow_mut().insert(*id, known);
        let name = hex(id);
        let content = [format!("{kind} {}\0", body.len()).as_bytes(), body].concat();
        self.write(
            &format!("objects/{}/{}", &name[..2], &name[2..]),
            &deflate(&content)?,
        )
    }

    /// Removes a loose object.
    ///
    /// # Errors
    /// The disk's.
    pub fn remove(&self, id: &Id) -> io::Result<()> {
        let name = hex(id);
        fs::remove_file(
            self.git_dir()
                .join("objects")
                .join(&name[..2])
                .join(&name[2..]),
        )
    }

    /// Points a reference at an object.
    ///
    /// # Errors
    /// The disk's.
    pub fn point(&self, reference: &str, id: &Id) -> io::Result<()> {
        self.write(reference, format!("{}\n", hex(id)).as_bytes())
    }

    /// Writes a file below `.git`.
    ///
    /// # Errors
    /// The disk's.
    pub fn write(&self, path: &str, content: &[u8]) -> io::Result<()> {
        let Some(git) = &self.git else {
            return Ok(());
        };
        let file = git.join(path);
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(file, content)
    }

    /// Adds lines to the repository's configuration.
    ///
    /// # Errors
    /// The disk's.
    pub fn configure(&self, lines: &str) -> io::Result<()> {
        let mut file = fs::OpenOptions::new()
            .append(true)
            .open(self.git_dir().join("config"))?;
        file.write_all(lines.as_bytes())
    }

    /// Writes blobs as a pack whose index names each by the id given, true or not. Checksums are
    /// right, so nothing but hashing the content tells.
    ///
    /// # Errors
    /// The disk's.
    pub fn pack_blobs(&self, blobs: &[(Id, &[u8])]) -> io::Result<()> {
        let mut pack = b"PACK\0\0\0\x02".to_vec();
        pack.extend(count(blobs.len()).to_be_bytes());
        let mut rows = Vec::new();
        for (id, body) in blobs {
            let entry = [entry_header(3, body.len()), deflate(body)?].concat();
            let mut crc = flate2::Crc::new();
            crc.update(&entry);
            rows.push((*id, crc.sum(), count(pack.len())));
            pack.extend(entry);
        }
        let sum = sha1(&pack);
        pack.extend(sum);
        rows.sort_unstable();
        let name = format!("objects/pack/pack-{}", hex(&sum));
        self.write(&format!("{name}.pack"), &pack)?;
        self.write(&format!("{name}.idx"), &index(&rows, &sum))
    }
}

/// A pack index, version 2.
fn index(rows: &[(Id, u32, u32)], pack_sum: &Id) -> Vec<u8> {
    let mut out = b"\xfftOc\0\0\0\x02".to_vec();
    for first in 0..=255u8 {
        let below = rows.iter().filter(|(id, ..)| id[0] <= first).count();
        out.extend(count(below).to_be_bytes());
    }
    out.extend(rows.iter().flat_map(|(id, ..)| *id));
    out.extend(rows.iter().flat_map(|(_, crc, _)| crc.to_be_bytes()));
    out.extend(rows.iter().flat_map(|(.., offset)| offset.to_be_bytes()));
    out.extend(pack_sum);
    let sum = sha1(&out);
    out.extend(sum);
    out
}

/// Type and size of a pack entry: four bits of the size, then seven at a time.
fn entry_header(kind: u8, size: usize) -> Vec<u8> {
    let mut out = vec![kind << 4 | (size & 15).to_le_bytes()[0]];
    let mut rest = size >> 4;
    while rest > 0 {
        if let Some(last) = out.last_mut() {
            *last |= 0x80;
        }
        out.push((rest & 127).to_le_bytes()[0]);
        rest >>= 7;
    }
    out
}

fn deflate(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes)?;
    encoder.finish()
}

fn sha1(bytes: &[u8]) -> Id {
    Sha1::digest(bytes).into()
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_git_gives() {
        assert_eq!(
            hex(&id_of("blob", b"")),
            "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
        );
        assert_eq!(
            hex(&id_of("tree", b"")),
            "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
        );
    }

    #[test]
    fn entry_headers_carry_the_size_in_four_then_seven_bits() {
        assert_eq!(entry_header(3, 15), [0x3f]);
        assert_eq!(entry_header(3, 16), [0xb0, 0x01]);
        assert_eq!(entry_header(3, 3000), [0xb8, 0xbb, 0x01]);
    }
}
