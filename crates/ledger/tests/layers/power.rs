//! Power cuts: every state the disk may be in after one, rebuilt from what was recorded.
//!
//! A file's bytes are certain up to its last synchronisation; of what was written since, any part
//! may be there: all, none, one write missing, one alone, the last one torn. Names are certain up to
//! their folder's last synchronisation; later changes of names happen in order, up to any point.

use crate::trace::{Call, read, recording};
use crate::victim::{Mode, Said, hold_against};
use crate::{folder, full_sweep, sample, traced};
use flightproof_ledger::Ledger;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A file: what is certain, and what was done to it since.
#[derive(Debug, Clone, Default)]
struct File {
    certain: Vec<u8>,
    pending: Vec<Change>,
}

#[derive(Debug, Clone)]
enum Change {
    Write(u64, Vec<u8>),
    Truncate(u64),
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Write(at, written) => {
                let at = usize::try_from(*at).unwrap();
                let end = at + written.len();
                if bytes.len() < end {
                    bytes.resize(end, 0);
                }
                bytes[at..end].copy_from_slice(written);
            }
            Self::Truncate(length) => bytes.resize(usize::try_from(*length).unwrap(), 0),
        }
    }

    fn torn(&self, keep: usize) -> Option<Self> {
        match self {
            Self::Write(at, written) if keep < written.len() => {
                Some(Self::Write(*at, written[..keep].to_vec()))
            }
            _ => None,
        }
    }
}

/// The names of a folder at one moment: which file each one is.
type Names = BTreeMap<PathBuf, usize>;

/// A disk, as far as it is certain, and what happened since.
#[derive(Debug, Clone, Default)]
struct Disk {
    files: Vec<File>,
    names: Names,
    certain_names: Names,
    /// Every state of the names since the certain one.
    pending_names: Vec<Names>,
    acknowledged: Vec<String>,
}

/// A disk after a power cut, and what had been acknowledged by then.
struct Image {
    files: BTreeMap<PathBuf, Vec<u8>>,
    acknowledged: Vec<String>,
}

impl Disk {
    fn step(&mut self, call: &Call) {
        match call {
            Call::Create(path) => {
                if !self.names.contains_key(path) {
                    self.files.push(File::default());
                    self.names.insert(path.clone(), self.files.len() - 1);
                    self.renamed();
                }
            }
            Call::Write(path, at, bytes) => self.change(path, Change::Write(*at, bytes.clone())),
            Call::Truncate(path, length) => self.change(path, Change::Truncate(*length)),
            Call::Sync(path) => match self.names.get(path) {
                Some(file) => {
                    let file = &mut self.files[*file];
                    for change in std::mem::take(&mut file.pending) {
                        change.apply(&mut file.certain);
                    }
                }
                None => {
                    self.certain_names = self.names.clone();
                    self.pending_names.clear();
                }
            },
            Call::Rename(from, to) => {
                let file = self.names.remove(from).unwrap();
                self.names.insert(to.clone(), file);
                self.renamed();
            }
            Call::Unlink(path) => {
                if self.names.remove(path).is_some() {
                    self.renamed();
                }
            }
            Call::Said(text) => {
                for line in text.lines() {
                    if let ["ack", _, answer] = line.split(' ').collect::<Vec<_>>()[..] {
                        self.acknowledged.push(answer.to_owned());
                    }
                }
            }
        }
    }

    fn renamed(&mut self) {
        self.pending_names.push(self.names.clone());
    }

    fn change(&mut self, path: &Path, change: Change) {
        // The shared memory beside the log is made anew after a power cut.
        if path.to_string_lossy().ends_with("-shm") {
            return;
        }
        let file = self.names.get(path).copied();
        let file = file.unwrap_or_else(|| panic!("{} was never made", path.display()));
        self.files[file].pending.push(change);
    }

    /// Every image the model allows at this moment, each as a way to make it.
    fn images(&self, take: &mut dyn FnMut(&dyn Fn() -> Image)) {
        let mut all_names = vec![&self.certain_names];
        all_names.extend(&self.pending_names);
        let mut add = |names: &Names, kept: &dyn Fn(usize, &[Change]) -> Vec<Change>| {
            take(&|| self.image(names, kept));
        };
        for names in all_names {
            add(names, &|_, pending| pending.to_vec());
            add(names, &|_, _| Vec::new());
            for victim in names.values() {
                for part in parts(&self.files[*victim].pending) {
                    // The other files have all of theirs, or none.
                    for others in [true, false] {
                        add(names, &|file, pending| {
                            if file == *victim {
                                part.of(pending)
                            } else if others {
                                pending.to_vec()
                            } else {
                                Vec::new()
                            }
                        });
                    }
                }
            }
        }
    }

    fn image(&self, names: &Names, kept: impl Fn(usize, &[Change]) -> Vec<Change>) -> Image {
        let content = |file: &usize| {
            let mut bytes = self.files[*file].certain.clone();
            for change in kept(*file, &self.files[*file].pending) {
                change.apply(&mut bytes);
            }
            bytes
        };
        Image {
            files: names
                .iter()
                .filter(|(path, _)| !path.to_string_lossy().ends_with("-shm"))
                .map(|(path, file)| (path.clone(), content(file)))
                .collect(),
            acknowledged: self.acknowledged.clone(),
        }
    }
}

/// A part of what was written since the last synchronisation.
#[derive(Debug, Clone, Copy)]
enum Part {
    /// What came before this one.
    Before(usize),
    /// All but this one.
    Without(usize),
    /// This one alone.
    Only(usize),
    /// What came before this one, and its first bytes.
    Torn(usize, usize),
}

impl Part {
    fn of(self, pending: &[Change]) -> Vec<Change> {
        match self {
            Self::Before(n) => pending[..n].to_vec(),
            Self::Without(n) => [&pending[..n], &pending[n + 1..]].concat(),
            Self::Only(n) => vec![pending[n].clone()],
            Self::Torn(n, keep) => {
                let torn = pending[n].torn(keep);
                pending[..n].iter().cloned().chain(torn).collect()
            }
        }
    }
}

fn parts(pending: &[Change]) -> Vec<Part> {
    (0..pending.len())
        .flat_map(|n| {
            [
                Part::Before(n),
                Part::Without(n),
                Part::Only(n),
                Part::Torn(n, 1),
                Part::Torn(n, 512),
                Part::Torn(n, 2048),
            ]
        })
        .collect()
}

/// Everything a run did to its disk.
fn record(mode: Mode, prepare: impl Fn(&Path)) -> (tempfile::TempDir, Vec<Call>) {
    let folder = folder();
    let (state, log) = (folder.path().join("state"), folder.path().join("log"));
    prepare(&state);
    traced(&recording(&log), &state, mode);
    let calls = read(&log, &state);
    (folder, calls)
}

/// Visits images of a disk that starts like this, after every call for which `when` holds: at most
/// `most` of them, evenly spread. Returns how many were visited, and how many there are.
fn visit_images(
    start: &Disk,
    calls: &[Call],
    most: usize,
    when: impl Fn(&Call, &Disk) -> bool,
    mut visit: impl FnMut(usize, Image),
) -> (usize, usize) {
    let walk = |take: &mut dyn FnMut(&dyn Fn() -> Image)| {
        let mut disk = start.clone();
        for call in calls {
            disk.step(call);
            if when(call, &disk) {
                disk.images(take);
            }
        }
    };
    let mut all = 0;
    walk(&mut |_| all += 1);
    let indices: Vec<usize> = (0..all).collect();
    let chosen = sample(&indices, most);
    let (mut n, mut next) = (0, 0);
    walk(&mut |make| {
        if chosen.get(next) == Some(&n) {
            next += 1;
            visit(n, make());
        }
        n += 1;
    });
    (next, all)
}

/// Lays an image out in a folder of its own.
fn lay_out(image: &Image, state: &Path) {
    use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt};
    std::fs::DirBuilder::new()
        .mode(0o700)
        .create(state)
        .unwrap();
    for (path, bytes) in &image.files {
        let file = state.join(path.file_name().unwrap());
        std::fs::write(&file, bytes).unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    }
}

fn said(image: &Image) -> Said {
    Said {
        acknowledged: image.acknowledged.clone(),
        ..Said::default()
    }
}

#[test]
fn after_any_power_cut_everything_acknowledged_is_there() {
    let (_folder, calls) = record(Mode::Honest, |_| {});
    assert!(calls.iter().any(|call| matches!(call, Call::Rename(..))));
    let mut ahead = 0;
    let visit = |n, image: Image| {
        let folder = folder();
        let state = folder.path().join("state");
        lay_out(&image, &state);
        match hold_against(&state, &said(&image)) {
            Ok(present) => ahead += usize::from(present > image.acknowledged.len()),
            Err(why) => panic!("image {n}: {why}"),
        }
    };
    let (visited, all) = visit_images(&Disk::default(), &calls, 260, |_, _| true, visit);
    assert!(all > 2000, "only {all} images");
    println!("{visited} images of {all}, {ahead} ahead of their acknowledgements");
}

/// The power goes again while the ledger recovers from the first cut.
#[test]
fn a_power_cut_within_a_recovery_loses_nothing_either() {
    let (_folder, calls) = record(Mode::Honest, |_| {});
    // Where a log is there to recover from.
    let logged =
        |call: &Call, disk: &Disk| matches!(call, Call::Said(_)) && !disk.acknowledged.is_empty();
    let mut crashed = Vec::new();
    visit_images(&Disk::default(), &calls, 4, logged, |n, image| {
        // Of all of them each is a recording of its own: a full sweep takes every fiftieth.
        if !full_sweep() || n % 50 == 0 {
            crashed.push((n, image));
        }
    });
    for (n, first) in &crashed {
        let (_folder, calls) = record(Mode::Opens, |state| lay_out(first, state));
        let state = _folder.path().join("state");
        let mut start = Disk {
            acknowledged: first.acknowledged.clone(),
            ..Disk::default()
        };
        for (path, bytes) in &first.files {
            start.files.push(File {
                certain: bytes.clone(),
                pending: Vec::new(),
            });
            let name = state.join(path.file_name().unwrap());
            start.names.insert(name, start.files.len() - 1);
        }
        start.certain_names = start.names.clone();
        let visit = |m, image: Image| {
            let folder = folder();
            let state = folder.path().join("state");
            lay_out(&image, &state);
            if let Err(why) = hold_against(&state, &said(&image)) {
                panic!("image {m} of a recovery from image {n}: {why}");
            }
        };
        visit_images(&start, &calls, 30, |_, _| true, visit);
    }
}

/// The same images of a database that does not wait for the disk must show a loss.
#[test]
fn a_database_that_does_not_wait_is_caught() {
    let (_folder, calls) = record(Mode::Careless, |state| {
        std::fs::create_dir_all(state).unwrap()
    });
    let mut lost = 0;
    let visit = |_, image: Image| {
        let folder = folder();
        let state = folder.path().join("state");
        lay_out(&image, &state);
        let database = rusqlite::Connection::open(state.join(Ledger::FILE)).unwrap();
        let found = database.query_row("SELECT COUNT(*) FROM t", (), |row| row.get::<_, i64>(0));
        let found = usize::try_from(found.unwrap_or(0)).unwrap();
        lost += usize::from(found < image.acknowledged.len());
    };
    let (visited, _) = visit_images(&Disk::default(), &calls, 200, |_, _| true, visit);
    println!("{lost} of {visited} images lost something");
    assert!(lost > 0);
}
