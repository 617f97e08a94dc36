use super::bundle::{EntryPlan, PackPlan};
use super::forge::{Forge, Id, hex, tree};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// A repository as plain data: one honest baseline, one candidate on it, and lies around them.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// How the candidate's tree differs.
    pub change: Change,
    /// How its commit is written.
    pub commit: CommitPlan,
    /// What the repository lies about.
    pub lie: HostLie,
}

/// One change of the baseline's tree.
#[derive(Debug, Clone, Copy)]
pub enum Change {
    /// A line of `src/lib.rs`.
    Edit,
    /// No change at all.
    Nothing,
    /// A new entry, in git's order.
    Add {
        /// Directory: `""` or `"src"`.
        at: &'static str,
        /// Raw mode.
        mode: &'static str,
        /// Raw name.
        name: &'static [u8],
        /// What it names.
        what: What,
    },
    /// An entry of the top without which the candidate is.
    Remove(&'static str),
    /// The mode of `src/lib.rs`.
    Mode(&'static str),
    /// The same new file twice.
    Duplicate,
    /// New files in the wrong order.
    Unsorted,
    /// A new file and a new directory of one name.
    FileAndDirectory,
    /// A new directory that lists one directory `width` times, and so on for `levels` levels.
    Bomb {
        /// Entries of each.
        width: usize,
        /// Levels.
        levels: usize,
    },
    /// A new file below this many directories.
    Deep(usize),
    /// This many new files, all with one content.
    Many(usize),
    /// This many new files, each with its own content.
    Distinct(usize),
    /// A new file of this many bytes that do not compress.
    Noise(usize),
    /// A new file of this many equal bytes.
    Large(usize),
    /// A directory that becomes a repository of its own.
    Nested(&'static [&'static str]),
}

/// What a new entry names.
#[derive(Debug, Clone, Copy)]
pub enum What {
    /// A file's content.
    Blob(&'static [u8]),
    /// A directory with one file.
    Directory,
    /// A directory with nothing.
    EmptyDirectory,
    /// An object that is not there.
    Missing,
    /// The baseline commit.
    Commit,
    /// No object at all.
    Null,
}

/// How a commit is written.
#[derive(Debug, Clone, Copy)]
pub struct CommitPlan {
    /// Its parents.
    pub parents: Parents,
    /// Bytes after `author `.
    pub author: &'static [u8],
    /// Bytes after `committer `, and any further header lines.
    pub committer: &'static [u8],
    /// Bytes after the empty line.
    pub message: &'static [u8],
}

/// Parents of a commit.
#[derive(Debug, Clone, Copy)]
pub enum Parents {
    /// The baseline.
    Baseline,
    /// None.
    None,
    /// The baseline and another commit.
    Merge,
    /// The baseline twice.
    Twice,
    /// A commit beside the baseline, with the same tree.
    Sibling,
    /// The parent of the baseline.
    Grandparent,
}

/// What a repository lies about. `{canary}` in text stands for a file that must never appear.
#[derive(Debug, Clone, Copy)]
pub enum HostLie {
    /// Nothing.
    None,
    /// Lines of its configuration.
    Config(&'static str),
    /// A file below `.git` and its content, executable.
    Program(&'static str, &'static str),
    /// A file below `.git` and its content.
    File(&'static str, &'static str),
    /// The candidate's new blob has other bytes, in a pack with right checksums.
    SwappedBlob,
    /// The candidate's new blob has other bytes, as a loose object.
    SwappedLoose,
    /// A replacement makes the candidate look like the baseline.
    Replaced,
    /// A graft gives a root commit the baseline as its parent.
    Grafted,
    /// The baseline is said to be the end of history.
    Shallow,
    /// The candidate's blob is gone, and a promisor would run a program to fetch it.
    Promisor,
    /// The candidate's blob is gone, and alternates point at a folder without it.
    Alternates,
}

/// The two commits of a built plan, also at `refs/heads/main` and `refs/heads/work`.
#[derive(Debug, Clone, Copy)]
pub struct Built {
    /// The baseline.
    pub baseline: Id,
    /// The candidate.
    pub head: Id,
}

impl Plan {
    /// A small honest change.
    pub const HONEST: Self = Self {
        change: Change::Edit,
        commit: CommitPlan::HONEST,
        lie: HostLie::None,
    };

    /// Writes the repository with its working tree's top at `top`.
    ///
    /// # Errors
    /// The disk's.
    pub fn build(&self, top: &Path, canary: &Path) -> io::Result<Built> {
        let forge = Forge::create(top)?;
        let base = Baseline::write(&forge)?;
        let root = self.change.root(&forge, &base)?;
        let head = forge.put("commit", &self.commit.body(&forge, &base, &root)?)?;
        for branch in ["main", "elsewhere"] {
            forge.point(&format!("refs/heads/{branch}"), &base.commit)?;
        }
        forge.point("refs/heads/work", &head)?;
        self.lie.tell(&forge, &base, &head, canary)?;
        Ok(Built {
            baseline: base.commit,
            head,
        })
    }
}

/// What a plan's candidate brings, and what its baseline has, in memory.
#[derive(Debug, Clone)]
pub struct Bundled {
    /// The baseline.
    pub baseline: Id,
    /// Objects of the repository before the candidate.
    pub store: Objects,
    /// The candidate as a bundle with an honest header and pack.
    pub bytes: Vec<u8>,
}

/// Objects by id: kind and content.
pub type Objects = BTreeMap<Id, (String, Vec<u8>)>;

impl Plan {
    /// The candidate of a plan as a bundle, whatever the repository lies about.
    ///
    /// # Errors
    /// None: nothing is written to disk.
    pub fn bundle(&self) -> io::Result<Bundled> {
        let forge = Forge::in_memory();
        let base = Baseline::write(&forge)?;
        let store = forge.objects();
        let root = self.change.root(&forge, &base)?;
        let head = forge.put("commit", &self.commit.body(&forge, &base, &root)?)?;
        let new: Vec<EntryPlan> = forge
            .objects()
            .iter()
            // A commit beside the baseline is written for some plans; it does not travel.
            .filter(|(id, (kind, _))| {
                !store.contains_key(*id) && (kind != "commit" || **id == head)
            })
            .map(|(_, (kind, body))| EntryPlan::whole(kind, body))
            .collect();
        let header = format!(
            "# v2 git bundle\n-{}\n{} refs/export/head\n\n",
            hex(&base.commit),
            hex(&head)
        );
        Ok(Bundled {
            baseline: base.commit,
            store,
            bytes: [header.as_bytes(), &PackPlan::honest(new).bytes()].concat(),
        })
    }
}

impl CommitPlan {
    /// What git writes.
    pub const HONEST: Self = Self {
        parents: Parents::Baseline,
        author: b"A Bot <bot@example.org> 1700000000 +0100",
        committer: b"A Bot <bot@example.org> 1700000000 +0100",
        message: b"Change a line\n",
    };

    fn body(&self, forge: &Forge, base: &Baseline, root: &Id) -> io::Result<Vec<u8>> {
        let sibling = || {
            let parents = [base.parent];
            let plan = Self {
                message: b"A sibling\n",
                ..Self::HONEST
            };
            forge.put("commit", &plan.lines(&base.root, &parents))
        };
        let parents = match self.parents {
            Parents::Baseline => vec![base.commit],
            Parents::None => vec![],
            Parents::Merge => vec![base.commit, sibling()?],
            Parents::Twice => vec![base.commit, base.commit],
            Parents::Sibling => vec![sibling()?],
            Parents::Grandparent => vec![base.parent],
        };
        Ok(self.lines(root, &parents))
    }

    fn lines(&self, root: &Id, parents: &[Id]) -> Vec<u8> {
        let mut out = format!("tree {}\n", hex(root)).into_bytes();
        for parent in parents {
            out.extend(format!("parent {}\n", hex(parent)).into_bytes());
        }
        let rest: [&[u8]; 6] = [
            b"author ",
            self.author,
            b"\ncommitter ",
            self.committer,
            b"\n\n",
            self.message,
        ];
        out.extend(rest.concat());
        out
    }
}

type Rows = Vec<(Vec<u8>, Vec<u8>, Id)>;

/// The honest part: a file, a crate, a symbolic link, a submodule, and names that clash with each
/// other but not with anything new.
struct Baseline {
    commit: Id,
    parent: Id,
    root: Id,
    top: Rows,
    src: Rows,
}

/// Content of `src/lib.rs` in every honest candidate.
const EDITED: &[u8] = b"pub fn a() -> u8 { 2 }\n";

impl Baseline {
    fn write(forge: &Forge) -> io::Result<Self> {
        let blob = |body: &[u8]| forge.put("blob", body);
        let mut src = Rows::new();
        add(
            &mut src,
            b"100644",
            b"lib.rs",
            blob(b"pub fn a() -> u8 { 1 }\n")?,
        );
        add(&mut src, b"100644", b"xt_TCPMSS.h", blob(b"upper\n")?);
        add(&mut src, b"100644", b"xt_tcpmss.h", blob(b"lower\n")?);
        let mut top = Rows::new();
        add(&mut top, b"100644", b"README.md", blob(b"base\n")?);
        add(&mut top, b"100755", b"run.sh", blob(b"#!/bin/sh\n")?);
        add(&mut top, b"120000", b"link", blob(b"README.md")?);
        add(&mut top, b"160000", b"module", [7; 20]);
        add(&mut top, b"40000", b"src", write_rows(forge, &src)?);
        let root = write_rows(forge, &top)?;
        let first = forge.put("tree", b"")?;
        let plan = CommitPlan::HONEST;
        let parent = forge.put("commit", &plan.lines(&first, &[]))?;
        let commit = forge.put("commit", &plan.lines(&root, &[parent]))?;
        Ok(Self {
            commit,
            parent,
            root,
            top,
            src,
        })
    }
}

fn add(rows: &mut Rows, mode: &[u8], name: &[u8], id: Id) {
    rows.push((mode.to_vec(), name.to_vec(), id));
    let is_directory = |mode: &[u8]| mode.ends_with(b"40000");
    rows.sort_by_key(|(mode, name, _)| {
        let end: &[u8] = if is_directory(mode) { b"/" } else { b"" };
        [name, end].concat()
    });
}

fn write_rows(forge: &Forge, rows: &Rows) -> io::Result<Id> {
    let rows: Vec<_> = rows
        .iter()
        .map(|(m, n, id)| (m.as_slice(), n.as_slice(), *id))
        .collect();
    forge.put("tree", &tree(&rows))
}

impl Change {
    fn root(&self, forge: &Forge, base: &Baseline) -> io::Result<Id> {
        let (mut top, mut src) = (base.top.clone(), base.src.clone());
        let blob = || forge.put("blob", b"new\n");
        match *self {
            Self::Edit => set(&mut src, b"lib.rs", None, Some(forge.put("blob", EDITED)?)),
            Self::Nothing => {}
            Self::Add {
                at,
                mode,
                name,
                what,
            } => {
                let rows = if at.is_empty() { &mut top } else { &mut src };
                let id = what.write(forge, base)?;
                add(rows, mode.as_bytes(), name, id);
            }
            Self::Remove(name) => top.retain(|(_, n, _)| n != name.as_bytes()),
            Self::Mode(mode) => set(&mut src, b"lib.rs", Some(mode), None),
            Self::Duplicate => {
                for _ in 0..2 {
                    add(&mut src, b"100644", b"new.rs", blob()?);
                }
            }
            Self::Unsorted => {
                for name in [b"z.rs", b"y.rs"] {
                    src.push((b"100644".to_vec(), name.to_vec(), blob()?));
                }
            }
            Self::FileAndDirectory => {
                add(&mut src, b"100644", b"new", blob()?);
                add(
                    &mut src,
                    b"40000",
                    b"new",
                    What::Directory.write(forge, base)?,
                );
            }
            Self::Bomb { width, levels } => {
                add(&mut top, b"40000", b"bomb", bomb(forge, width, levels)?);
            }
            Self::Deep(depth) => add(&mut top, b"40000", b"deep", deep(forge, depth)?),
            Self::Many(files) => add(&mut top, b"40000", b"many", many(forge, files)?),
            Self::Distinct(files) => {
                let mut rows = Rows::new();
                for n in 0..files {
                    let name = format!("f{n:05}").into_bytes();
                    rows.push((b"100644".to_vec(), name.clone(), forge.put("blob", &name)?));
                }
                add(&mut top, b"40000", b"many", write_rows(forge, &rows)?);
            }
            Self::Noise(size) => add(
                &mut src,
                b"100644",
                b"new",
                forge.put("blob", &noise(size))?,
            ),
            Self::Large(size) => add(
                &mut src,
                b"100644",
                b"new",
                forge.put("blob", &vec![b'x'; size])?,
            ),
            Self::Nested(names) => {
                let mut rows = Rows::new();
                for name in names {
                    add(&mut rows, b"100644", name.as_bytes(), blob()?);
                }
                add(&mut top, b"40000", b"nested", write_rows(forge, &rows)?);
            }
        }
        set(&mut top, b"src", None, Some(write_rows(forge, &src)?));
        write_rows(forge, &top)
    }
}

fn set(rows: &mut Rows, name: &[u8], mode: Option<&str>, id: Option<Id>) {
    for row in rows.iter_mut().filter(|row| row.1 == name) {
        row.0 = mode.map_or_else(|| row.0.clone(), |m| m.as_bytes().to_vec());
        row.2 = id.unwrap_or(row.2);
    }
}

impl What {
    fn write(self, forge: &Forge, base: &Baseline) -> io::Result<Id> {
        match self {
            Self::Blob(body) => forge.put("blob", body),
            Self::Directory => {
                let file = forge.put("blob", b"new\n")?;
                forge.put("tree", &tree(&[(b"100644", b"file", file)]))
            }
            Self::EmptyDirectory => forge.put("tree", b""),
            Self::Missing => Ok([9; 20]),
            Self::Commit => Ok(base.commit),
            Self::Null => Ok([0; 20]),
        }
    }
}

fn bomb(forge: &Forge, width: usize, levels: usize) -> io::Result<Id> {
    let mut id = forge.put("blob", b"boom\n")?;
    for level in 0..levels {
        let mode: &[u8] = if level == 0 { b"100644" } else { b"40000" };
        let names: Vec<String> = (0..width).map(|n| format!("f{n:04}")).collect();
        let rows: Vec<_> = names.iter().map(|n| (mode, n.as_bytes(), id)).collect();
        id = forge.put("tree", &tree(&rows))?;
    }
    Ok(id)
}

fn deep(forge: &Forge, depth: usize) -> io::Result<Id> {
    let file = forge.put("blob", b"deep\n")?;
    let mut id = forge.put("tree", &tree(&[(b"100644", b"f", file)]))?;
    for _ in 1..depth {
        id = forge.put("tree", &tree(&[(b"40000", b"d", id)]))?;
    }
    Ok(id)
}

fn many(forge: &Forge, files: usize) -> io::Result<Id> {
    // One blob for all: the limit on paths is what is tried, not the one on objects.
    let blob = forge.put("blob", b"same\n")?;
    let row = |n| (b"100644".to_vec(), format!("f{n:05}").into_bytes(), blob);
    write_rows(forge, &(0..files).map(row).collect())
}

/// Bytes without a pattern: a linear congruential sequence with a fixed seed.
fn noise(size: usize) -> Vec<u8> {
    let mut state = 1u64;
    let step = |_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state.to_be_bytes()[0]
    };
    (0..size).map(step).collect()
}

impl HostLie {
    fn tell(self, forge: &Forge, base: &Baseline, head: &Id, canary: &Path) -> io::Result<()> {
        let fill = |text: &str| text.replace("{canary}", &canary.to_string_lossy());
        let blob = super::forge::id_of("blob", EDITED);
        match self {
            Self::None => Ok(()),
            Self::Config(lines) => forge.configure(&fill(lines)),
            Self::File(path, content) => forge.write(path, fill(content).as_bytes()),
            Self::Program(path, content) => {
                forge.write(path, fill(content).as_bytes())?;
                make_executable(&forge.git_dir().join(path))
            }
            Self::SwappedBlob => {
                forge.remove(&blob)?;
                forge.pack_blobs(&[(blob, b"pub fn a() -> u8 { 6 }\n")])
            }
            Self::SwappedLoose => forge.put_as(&blob, "blob", b"pub fn a() -> u8 { 6 }\n"),
            Self::Replaced => forge.point(&format!("refs/replace/{}", hex(head)), &base.commit),
            Self::Grafted => {
                let line = format!("{} {}\n", hex(head), hex(&base.commit));
                forge.write("info/grafts", line.as_bytes())
            }
            Self::Shallow => forge.write("shallow", format!("{}\n", hex(head)).as_bytes()),
            Self::Promisor => {
                forge.remove(&blob)?;
                forge.configure(&fill(
                    "[extensions]\n\tpartialclone = evil\n[remote \"evil\"]\n\turl = ext::touch {canary}\n\tpromisor = true\n[protocol \"ext\"]\n\tallow = always\n",
                ))
            }
            Self::Alternates => {
                forge.remove(&blob)?;
                forge.write(
                    "objects/info/alternates",
                    b"/proc/self\n../../..\n/dev/zero\n",
                )
            }
        }
    }
}

fn make_executable(file: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755))
}
