use crate::git::{Git, Place, SHORT, Verb};
use crate::talk::Talk;
use crate::{ImportError, ImporterCode};
use flightproof_core::{CommitId, escape};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// A repository of the user: where its parts are, found by reading files and not by asking git,
/// which would obey what it finds.
#[derive(Debug, Clone)]
pub struct Host {
    /// What `HEAD` lies in: the folder of this working tree.
    git_dir: PathBuf,
    /// What objects and branches lie in: one for all working trees.
    common: PathBuf,
    /// The same as text, the repository's name in the ledger.
    name: String,
    bare: bool,
    /// The working tree it was opened at, if it was at one.
    top: Option<PathBuf>,
    settings: Settings,
}

/// A name whose commit is wanted.
#[derive(Debug)]
pub(crate) enum LookUp {
    /// It was the commit's own.
    Known(CommitId),
    /// Git was asked for this one.
    Asked(Talk, String),
}

impl LookUp {
    /// Waits for the answer.
    ///
    /// # Errors
    /// `UNKNOWN_REVISION`.
    pub(crate) fn finish(self) -> Result<CommitId, ImportError> {
        let (asked, shown) = match self {
            Self::Known(id) => return Ok(id),
            Self::Asked(asked, shown) => (asked, shown),
        };
        let answer = asked.finish(SHORT)?;
        if answer.code != 0 {
            return Err(ImporterCode::UnknownRevision.refuse(shown));
        }
        let text = std::str::from_utf8(&answer.stdout).unwrap_or_default();
        let id = text.trim_end_matches('\n').parse();
        id.map_err(|e| ImporterCode::GitFailed.refuse(format!("rev-parse: {e}")))
    }
}

/// Longest revision in bytes; the longest sensible ones are branch names.
const REVISION: usize = 256;

/// Longest small file of a repository that is read: a `HEAD`, a `commondir`.
const SMALL_FILE: u64 = 4096;

impl Host {
    /// This program as git, and the repository whose top, or whose git folder, is `top`.
    ///
    /// # Errors
    /// As [`Git::at`] and [`Self::open`].
    pub fn with_git(program: &Path, top: &Path) -> Result<(Git, Self), ImportError> {
        let (git, host) = Git::beside(program, |git| Self::open(git, top))?;
        Ok((git, host?))
    }

    /// Finds the parts of the repository whose top, or whose git folder, is `top`.
    ///
    /// # Errors
    /// `NOT_A_REPOSITORY`, or `HOST_UNSUPPORTED` for SHA-256, reftable, partial clones and
    /// repositories that borrow objects over a network.
    pub fn open(git: &Git, top: &Path) -> Result<Self, ImportError> {
        let top = top.canonicalize().map_err(|e| not_a_repository(top, e))?;
        let git_dir = find_git_dir(&top)?;
        let common = find_common_dir(&git_dir)?;
        // A claim or a HEAD in a folder that is in no list would not be found.
        if git_dir != common && git_dir.parent() != Some(&common.join("worktrees")) {
            return Err(unsupported(
                "its git folder has a commondir file and is no linked working tree's",
            ));
        }
        for part in ["objects", "refs"] {
            if !common.join(part).is_dir() {
                return Err(not_a_repository(&top, format!("it has no {part}")));
            }
        }
        let name = common
            .to_str()
            .filter(|name| !name.contains('\n'))
            .ok_or_else(|| unsupported("its path is not plain UTF-8 on one line"))?
            .to_owned();
        // Git waits for a pipe until its time is up.
        for part in [
            "config",
            "packed-refs",
            "objects/info/alternates",
            "shallow",
        ] {
            let part = common.join(part);
            if std::fs::metadata(&part).is_ok_and(|found| !found.is_file()) {
                let part = escape(part.to_string_lossy().as_ref(), 300);
                return Err(unsupported(format!("{part} is no file")));
            }
        }
        let mut settings = Settings::read(git, &common.join("config"))?;
        settings.check()?;
        let own = git_dir.join("config.worktree");
        if settings.is_true("extensions.worktreeconfig") && own.exists() {
            settings.0.extend(Settings::read(git, &own)?.0);
            settings.check()?;
        }
        if common.join("objects/info/http-alternates").exists() {
            return Err(unsupported("it borrows objects over a network"));
        }
        let bare = settings.is_true("core.bare") && !git_dir.ends_with(".git");
        let entry = top.join(".git");
        let top = std::fs::symlink_metadata(entry).is_ok().then_some(top);
        Ok(Self {
            git_dir,
            common,
            name,
            bare,
            top,
            settings,
        })
    }

    /// The working tree it was opened at. A linked one must be the one its git folder knows.
    pub(crate) fn top(&self) -> Result<&Path, ImportError> {
        let top = self.top.as_deref();
        let top = top.ok_or_else(|| unsupported("it was not named by its working tree"))?;
        if self.git_dir == top.join(".git") {
            return Ok(top);
        }
        let back = read_small(&self.git_dir.join("gitdir"))?.unwrap_or_default();
        let back = self.git_dir.join(back.trim_end_matches('\n'));
        match back.canonicalize() {
            Ok(back) if back == top.join(".git") => Ok(top),
            _ => Err(unsupported(
                "its git folder belongs to another working tree",
            )),
        }
    }

    pub(crate) fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Whether the working tree it was opened at is on this branch.
    ///
    /// # Errors
    /// As [`Self::branch_of`].
    pub(crate) fn is_on(&self, branch: &str) -> Result<bool, ImportError> {
        // Only the folder that all share has no working tree.
        let tree = self.top.is_some() && !(self.bare && self.git_dir == self.common);
        Ok(tree && self.branch_of(&self.git_dir)?.as_deref() == Some(branch))
    }

    /// The branch that the working tree of a git folder is on; `None` if it is on none. No name is
    /// followed: git locks HEAD with its branch only where HEAD names that branch itself.
    ///
    /// # Errors
    /// `HOST_UNSUPPORTED` if HEAD is neither a commit's id nor the name of an ordinary branch.
    fn branch_of(&self, git_dir: &Path) -> Result<Option<String>, ImportError> {
        let file = git_dir.join("HEAD");
        let refuse = |why: &str| {
            Err(unsupported(format!(
                "{}: {why}; check a branch out by its own name: \
                 `git symbolic-ref HEAD refs/heads/BRANCH` in that working tree",
                escape(file.to_string_lossy().as_ref(), 300)
            )))
        };
        match std::fs::symlink_metadata(&file) {
            Err(e) if is_absent(&e) => return Ok(None),
            Err(e) => return Err(unreadable(&file, e)),
            Ok(found) if !found.is_file() => return refuse("it is not an ordinary file"),
            Ok(_) => {}
        }
        let text = read_small(&file)?.unwrap_or_default();
        if is_id(&text) {
            return Ok(None);
        }
        let named = text.strip_prefix("ref:").map(|named| named.trim_ascii());
        let Some(branch) = named.filter(|named| is_branch(named)) else {
            return refuse("it names neither a commit nor a branch");
        };
        match self.crookedness(branch)? {
            None => Ok(Some(branch.to_owned())),
            Some(what) => refuse(&format!("{}: {what}", escape(branch, 200))),
        }
    }

    /// The branch that a rebase or bisect of a working tree will come back to.
    ///
    /// # Errors
    /// `HOST_UNSUPPORTED` if that is no ordinary branch.
    fn returns_to(&self, file: &Path) -> Result<Option<String>, ImportError> {
        let text = read_small(file)?.unwrap_or_default();
        // As git reads it: to the first zero byte.
        let named = text.split('\0').next().unwrap_or_default();
        self.return_in(file, named)
    }

    /// The branches that a rebase of a working tree will move along.
    ///
    /// # Errors
    /// `HOST_UNSUPPORTED` if one is no ordinary branch.
    fn moves_along(&self, file: &Path) -> Result<Vec<String>, ImportError> {
        let text = read_text(file, UPDATES_MOST)?.unwrap_or_default();
        let named = text.lines().map(|line| self.return_in(file, line));
        named.filter_map(Result::transpose).collect()
    }

    /// The branch that a line of such a file names; `None` for the id of a commit. A bisect says `main`, a
    /// rebase `refs/heads/main`.
    fn return_in(&self, file: &Path, line: &str) -> Result<Option<String>, ImportError> {
        let named = line.trim_ascii();
        let branch = match named.starts_with("refs/heads/") {
            true => named.to_owned(),
            false => format!("refs/heads/{named}"),
        };
        if is_id(named) || !is_branch(&branch) {
            return Ok(None);
        }
        match self.crookedness(&branch)? {
            None => Ok(Some(branch)),
            Some(what) => Err(unsupported(format!(
                "{} names {}: {what}",
                escape(file.to_string_lossy().as_ref(), 300),
                escape(branch, 200)
            ))),
        }
    }

    /// The git folders that may have a working tree.
    pub(crate) fn git_dirs(&self) -> Result<Vec<PathBuf>, ImportError> {
        let mut places = vec![self.common.clone()];
        places.extend(self.worktrees()?);
        Ok(places)
    }

    /// The attributes of this repository alone, if it has any.
    pub(crate) fn attributes(&self) -> PathBuf {
        self.common.join("info/attributes")
    }

    /// The folder that all its working trees share, as text: its name in the ledger.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The commit a name stands for, such as a branch, a tag or `HEAD~1`.
    ///
    /// # Errors
    /// `UNKNOWN_REVISION`.
    pub fn resolve(&self, git: &Git, revision: &str) -> Result<CommitId, ImportError> {
        self.look_up(git, revision)?.finish()
    }

    /// Asks for the commit that a name stands for; others can be asked meanwhile.
    ///
    /// # Errors
    /// `UNKNOWN_REVISION` for what is no name.
    pub(crate) fn look_up(&self, git: &Git, revision: &str) -> Result<LookUp, ImportError> {
        let shown = escape(revision, REVISION);
        if revision.is_empty() || revision.len() > REVISION || revision.contains(char::is_control) {
            return Err(ImporterCode::UnknownRevision.refuse(shown));
        }
        // A whole id needs no looking up, and whoever reads it finds out what it is.
        if let Ok(id) = revision.parse() {
            return Ok(LookUp::Known(id));
        }
        let named = format!("{revision}^{{commit}}");
        let words = ["--verify", "--quiet", "--end-of-options", &named].map(OsStr::new);
        let asked = git.talk(Verb::RevParse, self.place(), &words)?;
        Ok(LookUp::Asked(asked, shown))
    }

    /// The commit of a branch by its full name; `None` if there is no such branch, or something else than
    /// a commit under its name. Only that name counts: where a branch is gone, `rev-parse` takes a tag that
    /// is called `refs/heads/main` for it.
    ///
    /// # Errors
    /// `GIT_FAILED` where git fails, or complains instead of naming the branch: one that could not be read
    /// is not one that is not there.
    pub(crate) fn tip(&self, git: &Git, branch: &str) -> Result<Option<CommitId>, ImportError> {
        let form = "--format=%(refname) %(objecttype) %(objectname)";
        let words = [form, branch].map(OsStr::new);
        let answer = git.ask(Verb::ForEachRef, self.place(), &words)?;
        let text = std::str::from_utf8(&answer.stdout).unwrap_or_default();
        let id = text
            .lines()
            .filter_map(|line| line.strip_prefix(branch)?.strip_prefix(" commit "))
            .find_map(|id| id.parse().ok());
        // A reference that it cannot read it leaves out, with a warning and status 0.
        if answer.code != 0 || (id.is_none() && !answer.complaint.is_empty()) {
            let detail = format!("{}: {}", escape(branch, 200), answer.complaint);
            return Err(ImporterCode::GitFailed.refuse(detail));
        }
        Ok(id)
    }

    /// The short names of its branches and tags, and of those it fetched.
    ///
    /// # Errors
    /// `GIT_FAILED`, also where they are more than 1 MiB.
    pub fn names(&self, git: &Git) -> Result<Vec<String>, ImportError> {
        let words = ["--format=%(refname:lstrip=2)"].map(OsStr::new);
        let answer = git.ask(Verb::ForEachRef, self.place(), &words)?;
        let text = String::from_utf8_lossy(&answer.stdout);
        Ok(text.lines().map(str::to_owned).collect())
    }

    pub(crate) fn place(&self) -> Place<'_> {
        Place::Host(&self.git_dir)
    }

    pub(crate) fn objects(&self) -> PathBuf {
        self.common.join("objects")
    }

    /// Refuses a branch that is a pointer to another one, or that lies beyond a symbolic link; so, too,
    /// where what git writes with it would come to lie elsewhere.
    pub(crate) fn check_plain(&self, branch: &str) -> Result<(), ImportError> {
        match self.crookedness(branch)? {
            None => self.check_ways(branch),
            Some(what) => {
                let detail = format!("{}: {what}", escape(branch, 200));
                Err(ImporterCode::BranchUnfit.refuse(detail))
            }
        }
    }

    /// Refuses logs and packs that git would write elsewhere: it follows links, waits for pipes, and adds
    /// to a log under all its names.
    fn check_ways(&self, branch: &str) -> Result<(), ImportError> {
        let logs = [
            self.common.join("logs").join(branch),
            self.git_dir.join("logs/HEAD"),
        ];
        for log in &logs {
            self.check_folders(log.parent().unwrap_or(log))?;
            let alone = |found: &Metadata| found.is_file() && found.nlink() == 1;
            check_kind(log, alone, "is no file of its own")?;
        }
        self.check_folders(&self.objects().join("pack"))
    }

    /// Refuses what is no folder on the way from the git folder to this one, and this one.
    fn check_folders(&self, last: &Path) -> Result<(), ImportError> {
        let ways = last.ancestors();
        ways.take_while(|folder| **folder != *self.common && **folder != *self.git_dir)
            .try_for_each(|folder| check_kind(folder, Metadata::is_dir, "is no folder"))
    }

    /// Why a branch may be another one under a second name, if it may.
    fn crookedness(&self, branch: &str) -> Result<Option<&'static str>, ImportError> {
        let file = self.common.join(branch);
        for folder in file.ancestors().skip(1).take_while(|f| **f != *self.common) {
            if std::fs::symlink_metadata(folder).is_ok_and(|found| !found.is_dir()) {
                return Ok(Some("a folder of it is a link"));
            }
        }
        match std::fs::symlink_metadata(&file) {
            // It lies in packed-refs, where only plain branches are, or is yet to come.
            Err(e) if is_absent(&e) => Ok(None),
            Err(e) => Err(unreadable(&file, e)),
            Ok(found) if !found.is_file() => Ok(Some("it is not an ordinary file")),
            Ok(_) => match read_small(&file)? {
                Some(text) if text.starts_with("ref:") => Ok(Some("it points to another branch")),
                Some(text) if !is_id(&text) => Ok(Some("it does not hold the id of a commit")),
                _ => Ok(None),
            },
        }
    }

    /// Waits until the branch's new value survives a power loss: git syncs the file, and nobody
    /// the folders that hold its name.
    pub(crate) fn sync_branch(&self, branch: &str) -> Result<(), ImportError> {
        let file = self.common.join(branch);
        for folder in file.ancestors().skip(1).take_while(|f| **f != *self.common) {
            let synced = std::fs::File::open(folder).and_then(|f| f.sync_all());
            match synced {
                Ok(()) => {}
                // A branch that lies in packed-refs needs no folder.
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
                Err(e) => return Err(ImporterCode::AdmissionUncertain.refuse(e)),
            }
        }
        Ok(())
    }

    /// Waits until the names of new packs survive a power loss: git syncs the files.
    pub(crate) fn sync_packs(&self) -> Result<(), ImportError> {
        std::fs::File::open(self.objects().join("pack"))
            .and_then(|folder| folder.sync_all())
            .map_err(|e| ImporterCode::GitFailed.refuse(format!("syncing packs: {e}")))
    }

    /// The lock file of a branch, if there is one.
    pub(crate) fn lock_of(&self, branch: &str) -> Option<PathBuf> {
        let file = self.common.join(format!("{branch}.lock"));
        std::fs::symlink_metadata(&file).is_ok().then_some(file)
    }

    /// Refuses to write into a repository of another user.
    pub(crate) fn check_owner(&self, user: u32) -> Result<(), ImportError> {
        let refs = self.common.join("refs");
        for folder in [&self.git_dir, &self.common, &refs, &refs.join("heads")] {
            let found =
                std::fs::symlink_metadata(folder).map_err(|e| not_a_repository(folder, e))?;
            if found.uid() != user || !found.is_dir() {
                return Err(ImporterCode::HostForeign.refuse(format!(
                    "{}: owner {}, we are {user}, folder: {}",
                    escape(folder.to_string_lossy().as_ref(), 200),
                    found.uid(),
                    found.is_dir()
                )));
            }
        }
        Ok(())
    }

    /// Refuses hooks in the configuration where this git could not be told to leave them alone.
    pub(crate) fn check_hooks(&self, git: &Git) -> Result<(), ImportError> {
        if !git.version().runs_config_hooks() {
            return Ok(());
        }
        let words = ["--includes", "--list", "-z"].map(OsStr::new);
        let answer = git.ask(Verb::Config, self.place(), &words)?;
        if answer.code != 0 {
            return Err(ImporterCode::GitFailed.refuse(answer.complaint));
        }
        match Settings::parse(&answer.stdout)?.first_under("hook.", ".command") {
            Some(key) => Err(ImporterCode::HostHooks.refuse(escape(key, 200))),
            None => Ok(()),
        }
    }

    /// The git folders of the linked working trees.
    fn worktrees(&self) -> Result<Vec<PathBuf>, ImportError> {
        let folder = self.common.join("worktrees");
        let trees = match std::fs::read_dir(&folder) {
            Ok(trees) => trees,
            Err(e) if is_absent(&e) => return Ok(Vec::new()),
            Err(e) => return Err(unreadable(&folder, e)),
        };
        trees
            .map(|tree| tree.map(|t| t.path()).map_err(|e| unreadable(&folder, e)))
            .collect()
    }

    /// Refuses a branch that a working tree has checked out, or that a rebase or bisect started
    /// in one will come back to. `here`: the working tree the host was opened at may be on it.
    pub(crate) fn check_idle(&self, branch: &str, here: bool) -> Result<(), ImportError> {
        for place in self.git_dirs()? {
            let bare = self.bare && place == self.common;
            let head = match bare {
                true => None,
                false => self.branch_of(&place)?,
            };
            let own = here && place == self.git_dir;
            let head = head.filter(|_| !own).map(|named| ("HEAD", named));
            let returns = RETURNS.into_iter().map(|pointer| {
                let named = self.returns_to(&place.join(pointer))?;
                Ok(named.map(|named| (pointer, named)))
            });
            let returns = returns.collect::<Result<Vec<_>, ImportError>>()?;
            let along = self.moves_along(&place.join(UPDATES))?;
            let along = along.into_iter().map(|named| (UPDATES, named));
            let returns = returns.into_iter().flatten().chain(along);
            let mut all = head.into_iter().chain(returns);
            if let Some((pointer, _)) = all.find(|(_, named)| named == branch) {
                return Err(ImporterCode::BranchCheckedOut.refuse(format!(
                    "{} in {}",
                    escape(branch, 200),
                    escape(place.join(pointer).to_string_lossy().as_ref(), 300)
                )));
            }
        }
        Ok(())
    }
}

/// Files of a working tree that name the branch it will return to.
const RETURNS: [&str; 3] = [
    "rebase-merge/head-name",
    "rebase-apply/head-name",
    "BISECT_START",
];

/// Where a rebase lists the branches that it moves along with its own: a name and two ids of each, by lines.
const UPDATES: &str = "rebase-merge/update-refs";
/// Most bytes of it that are read: thousands of branches.
const UPDATES_MOST: u64 = 1 << 20;

/// The text of a file that holds the id of an object and nothing else.
fn is_id(text: &str) -> bool {
    text.trim_ascii_end().parse::<CommitId>().is_ok()
}

/// A full name that leads to a file below `refs/heads`, and to no other than it spells.
fn is_branch(name: &str) -> bool {
    let unusual = |c: char| c.is_control() || c.is_whitespace();
    let sound = |part: &str| !part.is_empty() && !part.starts_with('.');
    name.strip_prefix("refs/heads/")
        .is_some_and(|rest| !rest.contains(unusual) && rest.split('/').all(sound))
}

fn find_git_dir(top: &Path) -> Result<PathBuf, ImportError> {
    let entry = top.join(".git");
    let Ok(found) = std::fs::symlink_metadata(&entry) else {
        return Ok(top.to_owned());
    };
    if found.is_dir() {
        return Ok(entry);
    }
    if !found.is_file() {
        return Err(not_a_repository(top, ".git is neither folder nor file"));
    }
    let text = read_small(&entry)?.unwrap_or_default();
    let target = text
        .strip_prefix("gitdir: ")
        .ok_or_else(|| not_a_repository(top, ".git names no folder"))?;
    top.join(target.trim_end_matches('\n'))
        .canonicalize()
        .map_err(|e| not_a_repository(top, e))
}

fn find_common_dir(git_dir: &Path) -> Result<PathBuf, ImportError> {
    match read_small(&git_dir.join("commondir"))? {
        Some(text) => git_dir
            .join(text.trim_end_matches('\n'))
            .canonicalize()
            .map_err(|e| not_a_repository(git_dir, e)),
        None => Ok(git_dir.to_owned()),
    }
}

/// A regular file of at most [`SMALL_FILE`] bytes as text; `None` if there is none.
fn read_small(file: &Path) -> Result<Option<String>, ImportError> {
    read_text(file, SMALL_FILE)
}

/// The same with a limit of its own.
fn read_text(file: &Path, most: u64) -> Result<Option<String>, ImportError> {
    let bytes = read_file(file, OFlags::empty(), most)?;
    let text = bytes.map(String::from_utf8).transpose();
    text.map_err(|e| unreadable(file, e))
}

/// A regular file of at most `most` bytes, opened with these flags too; `None` if there is none. A pipe or
/// a device in its place would block or never end, and what was looked at is what is read.
pub(crate) fn read_file(
    file: &Path,
    flags: OFlags,
    most: u64,
) -> Result<Option<Vec<u8>>, ImportError> {
    let flags = flags | OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = match rustix::fs::open(file, flags, Mode::empty()) {
        Ok(opened) => File::from(opened),
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        Err(e) => return Err(unreadable(file, e)),
    };
    let found = opened.metadata().map_err(|e| unreadable(file, e))?;
    let mut bytes = Vec::new();
    if found.is_file() && found.len() <= most {
        bytes.reserve_exact(usize::try_from(found.len()).unwrap_or_default());
        let read = opened.take(most + 1).read_to_end(&mut bytes);
        read.map_err(|e| unreadable(file, e))?;
    }
    if !found.is_file() || found.len().max(bytes.len() as u64) > most {
        return Err(unreadable(
            file,
            format!("not a file of at most {most} bytes"),
        ));
    }
    Ok(Some(bytes))
}

fn is_absent(e: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn unreadable(file: &Path, e: impl std::fmt::Display) -> ImportError {
    let file = escape(file.to_string_lossy().as_ref(), 300);
    unsupported(format!("{file}: {e}"))
}

/// The repository's own settings, keys in lower case.
#[derive(Debug, Clone)]
pub(crate) struct Settings(Vec<(String, String)>);

impl Settings {
    fn read(git: &Git, file: &Path) -> Result<Self, ImportError> {
        let words = ["--no-includes", "--list", "-z", "--file"].map(OsStr::new);
        let words: Vec<&OsStr> = words.into_iter().chain([file.as_os_str()]).collect();
        let answer = git.ask(Verb::Config, Place::Nowhere, &words)?;
        if answer.code != 0 {
            return Err(unsupported(format!(
                "its configuration: {}",
                answer.complaint
            )));
        }
        Self::parse(&answer.stdout)
    }

    fn parse(list: &[u8]) -> Result<Self, ImportError> {
        let text =
            std::str::from_utf8(list).map_err(|_| unsupported("its configuration is not UTF-8"))?;
        let pairs = text
            .split('\0')
            .filter(|line| !line.is_empty())
            .map(|line| {
                // A key without "=" means true.
                let (key, value) = line.split_once('\n').unwrap_or((line, "true"));
                (key.to_lowercase(), value.to_owned())
            });
        Ok(Self(pairs.collect()))
    }

    fn check(&self) -> Result<(), ImportError> {
        for (key, value) in &self.0 {
            let fine = match key.as_str() {
                "core.repositoryformatversion" => matches!(value.as_str(), "0" | "1"),
                "extensions.objectformat" => value == "sha1",
                "extensions.refstorage" => value == "files",
                key if key.starts_with("extensions.") => HARMLESS_EXTENSIONS.contains(&key),
                key if key.starts_with("remote.") => {
                    !key.ends_with(".promisor") && !key.ends_with(".partialclonefilter")
                }
                _ => true,
            };
            if !fine {
                return Err(unsupported(format!(
                    "{} = {}",
                    escape(key, 100),
                    escape(value, 100)
                )));
            }
        }
        Ok(())
    }

    fn last(&self, wanted: &str) -> Option<&str> {
        let last = self.0.iter().rev().find(|(key, _)| key == wanted);
        last.map(|(_, value)| value.as_str())
    }

    /// What is not one of git's words for false counts as true, as every number but zero does for git.
    fn is_true(&self, wanted: &str) -> bool {
        self.last(wanted).is_some_and(|value| !is_false(value))
    }

    /// A setting under which files do not hold the bytes of the commit, or lie elsewhere, and why.
    pub(crate) fn unfit_for_files(&self) -> Option<(&'static str, &'static str)> {
        let elsewhere = self.last("core.worktree").map(|_| "core.worktree");
        let says = |key, word| self.last(key).is_some_and(|v| v.eq_ignore_ascii_case(word));
        // `input` converts nothing on its way into a file.
        let auto = self.is_true("core.autocrlf") && !says("core.autocrlf", "input");
        let crlf = auto || says("core.eol", "crlf");
        if let Some(key) = elsewhere {
            return Some((key, "the files lie elsewhere, as those of a submodule do"));
        }
        if self.is_true("core.sparsecheckout") {
            return Some(("core.sparseCheckout", "not all files are there"));
        }
        if self.last("core.attributesfile").is_some() {
            let why = "attributes outside the repository are not asked";
            return Some(("core.attributesFile", why));
        }
        crlf.then_some(("core.autocrlf or core.eol", "line ends are converted"))
    }

    /// Whether executable bits count.
    pub(crate) fn has_file_modes(&self) -> bool {
        !self.last("core.filemode").is_some_and(is_false)
    }

    fn first_under(&self, prefix: &str, suffix: &str) -> Option<&str> {
        self.0
            .iter()
            .map(|(key, _)| key.as_str())
            .find(|key| key.starts_with(prefix) && key.ends_with(suffix))
    }
}

/// Git's own words for false: one of these, nothing at all, or the number zero in any spelling.
fn is_false(value: &str) -> bool {
    let value = value.trim_ascii_start().to_ascii_lowercase();
    if matches!(value.as_str(), "" | "false" | "no" | "off") {
        return true;
    }
    let number = value.strip_prefix(['+', '-']).unwrap_or(&value);
    let number = number.strip_suffix(['k', 'm', 'g']).unwrap_or(number);
    let digits = number.strip_prefix("0x").unwrap_or(number);
    !digits.is_empty() && digits.bytes().all(|digit| digit == b'0')
}

/// Extensions that change nothing about objects or branches.
const HARMLESS_EXTENSIONS: [&str; 5] = [
    "extensions.noop",
    "extensions.noop-v1",
    "extensions.preciousobjects",
    "extensions.relativeworktrees",
    "extensions.worktreeconfig",
];

fn not_a_repository(path: &Path, why: impl std::fmt::Display) -> ImportError {
    ImporterCode::NotARepository.refuse(format!(
        "{}: {why}",
        escape(path.to_string_lossy().as_ref(), 300)
    ))
}

/// Refuses a place that is there and is something else.
fn check_kind(
    place: &Path,
    right: impl Fn(&Metadata) -> bool,
    wrong: &str,
) -> Result<(), ImportError> {
    match std::fs::symlink_metadata(place) {
        Err(e) if is_absent(&e) => Ok(()),
        Err(e) => Err(unreadable(place, e)),
        Ok(found) if right(&found) => Ok(()),
        Ok(_) => Err(unsupported(format!(
            "{} {wrong}",
            escape(place.to_string_lossy().as_ref(), 300)
        ))),
    }
}

fn unsupported(why: impl std::fmt::Display) -> ImportError {
    ImporterCode::HostUnsupported.refuse(why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flightproof_hostile::git::Forge;

    #[test]
    fn folders_of_another_user_or_beyond_a_link_are_foreign() {
        let temp = tempfile::tempdir().unwrap();
        let forge = Forge::create(temp.path()).unwrap();
        let git = Git::find().unwrap();
        let host = Host::open(&git, temp.path()).unwrap();
        let user = rustix::process::geteuid().as_raw();
        assert!(host.check_owner(user).is_ok());
        let refused = host.check_owner(user + 1).unwrap_err();
        assert_eq!(refused.code, ImporterCode::HostForeign);
        let heads = forge.git_dir().join("refs/heads");
        std::fs::rename(&heads, forge.git_dir().join("away")).unwrap();
        std::os::unix::fs::symlink("../away", &heads).unwrap();
        assert!(host.check_owner(user).is_err());
    }

    #[test]
    fn what_is_no_small_file_is_neither_waited_for_nor_read_nor_taken_for_none() {
        let temp = tempfile::tempdir().unwrap();
        let file = |name: &str| temp.path().join(name);
        let read = |name: &str| read_text(&file(name), 4).map_err(|e| e.code);
        let refused = Err(ImporterCode::HostUnsupported);
        std::fs::write(file("small"), "1234").unwrap();
        std::fs::write(file("long"), "12345").unwrap();
        std::fs::write(file("other"), b"\xff").unwrap();
        std::fs::create_dir(file("folder")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, file("pipe"), Mode::RWXU).unwrap();
        std::os::unix::fs::symlink("circle", file("circle")).unwrap();
        assert_eq!(read("small"), Ok(Some("1234".to_owned())));
        assert_eq!(read("none"), Ok(None));
        assert_eq!(read("small/none"), Ok(None));
        for name in ["long", "other", "folder", "pipe", "circle"] {
            assert_eq!(read(name), refused, "{name}");
        }
        // A file that says that it is empty, and is not.
        assert_eq!(
            read_text(Path::new("/proc/self/maps"), 4).map_err(|e| e.code),
            refused
        );
    }

    #[test]
    fn a_key_without_a_value_is_true_and_keys_have_no_case() {
        let settings = Settings::parse(b"core.bare\0Remote.x.Promisor\nfalse\0").unwrap();
        assert!(settings.is_true("core.bare"));
        assert!(settings.check().is_err());
        assert!(Settings::parse(b"\xff").is_err());
    }

    #[test]
    fn booleans_are_gits_own() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("config");
        let program = std::process::Command::new("sh")
            .args(["-c", "command -v git"])
            .output()
            .unwrap();
        let program = String::from_utf8(program.stdout).unwrap();
        for value in [
            "= true", "= TRUE", "= yes", "= On", "= 1", "= 2", "= -1", "= 0x2", "= 1k", "", "= ",
            "= false", "= No", "= OFF", "= 0", "= 00", "= 0x0", "= -0", "= 0k", "= \"\"",
        ] {
            std::fs::write(&file, format!("[core]\n\tautocrlf {value}\n")).unwrap();
            let said = std::process::Command::new(program.trim())
                .args(["config", "--type=bool", "--file"])
                .args([file.as_os_str(), OsStr::new("core.autocrlf")])
                .output()
                .unwrap();
            let settings = Settings::read(&Git::find().unwrap(), &file).unwrap();
            let ours = format!("{}\n", settings.is_true("core.autocrlf"));
            assert_eq!(ours.as_bytes(), said.stdout, "{value}");
        }
        let odd = Settings::parse(b"core.autocrlf\nsometimes\0").unwrap();
        assert!(
            odd.is_true("core.autocrlf"),
            "what is not understood counts"
        );
    }

    #[test]
    fn a_git_folder_whose_common_folder_does_not_know_it_is_refused() {
        let temp = tempfile::tempdir().unwrap();
        let [one, two] = ["one", "two"].map(|name| temp.path().join(name));
        for top in [&one, &two] {
            std::fs::create_dir(top).unwrap();
        }
        let (forge, other) = (Forge::create(&one).unwrap(), Forge::create(&two).unwrap());
        let git = Git::find().unwrap();
        assert!(Host::open(&git, &one).is_ok());
        let common = other.git_dir().display().to_string();
        std::fs::write(forge.git_dir().join("commondir"), common).unwrap();
        let refused = Host::open(&git, &one).unwrap_err();
        assert_eq!(refused.code, ImporterCode::HostUnsupported);
        // Nor one that lies elsewhere and is linked into the list.
        let list = other.git_dir().join("worktrees");
        std::fs::create_dir(&list).unwrap();
        std::os::unix::fs::symlink(forge.git_dir(), list.join("one")).unwrap();
        assert!(Host::open(&git, &one).is_err());
    }
}
