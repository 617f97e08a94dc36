//! The same work on another baseline, or as one commit: commits that are written here.

use crate::capture::{BASELINE, CANDIDATE};
use crate::git::Verb;
use crate::objects::{Kind, Objects, Source as _};
use crate::scratch::Scratch;
use crate::talk::Cap;
use crate::{Git, Host, ImportError, ImporterCode, commit, hash, opinion, pack, walk};
use flightproof_core::{CommitId, ObjectId, escape};
use std::ffi::OsStr;
use std::path::Path;

/// Most bytes git says of a merge: the paths of as many conflicts as a commit may change.
const MERGED: Cap = Cap {
    bytes: 1 << 20,
    code: ImporterCode::GitFailed,
};

/// Most conflicts that are named.
const NAMED: usize = 20;

/// Merges the one commit of `baseline..head` into `onto`, which must lead back to the baseline, as one
/// commit on it: same author, committer, dates and message. Git merges in a repository of ours, where
/// no driver and no attribute of the host is known. The objects go into the host's store; nothing
/// refers to them.
///
/// # Errors
/// `ONTO_UNRELATED`, `MERGE_CONFLICT` with the paths, those of reading the commit, `SECOND_OPINION`.
pub fn replay(
    git: &Git,
    host: &Host,
    (baseline, head): (CommitId, CommitId),
    onto: &str,
    scratch: &Path,
) -> Result<CommitId, ImportError> {
    let onto = host.resolve(git, onto)?;
    let window = Scratch::over(scratch.join("merge.git"), &host.objects(), baseline)?;
    let mut objects = Objects::open(git, window.place())?;
    let head_body = objects.read(head, Kind::Commit, CANDIDATE)?;
    let onto_body = objects.read(onto, Kind::Commit, BASELINE)?;
    check_related(git, &window, baseline, onto)?;
    let tree = merge(git, &window, onto, head)?;
    let body = rewritten(&head_body, tree, onto)?;
    let found = walk::compare(&mut objects, commit::tree_of(&onto_body)?, tree, &|_| true)?;
    if found.changes.is_empty() {
        return Err(ImporterCode::NoChange.refuse(format!("{onto} has all of it")));
    }
    let mut new = found.new;
    let id = hash::id_of(Kind::Commit, &body)?;
    new.insert(id, (Kind::Commit, body));
    let pack = pack::write(
        new.iter()
            .map(|(id, (kind, body))| (*id, *kind, body.as_slice())),
    )?;
    opinion::index(git, host.place(), &pack)?;
    host.sync_packs()?;
    Ok(id)
}

fn check_related(
    git: &Git,
    window: &Scratch,
    baseline: CommitId,
    onto: CommitId,
) -> Result<(), ImportError> {
    let detail = match leads_to(git, window, baseline, onto)? {
        true if baseline != onto => return Ok(()),
        true => format!("{onto} is the baseline itself"),
        false => format!("{onto} does not lead back to {baseline}"),
    };
    Err(ImporterCode::OntoUnrelated.refuse(detail))
}

/// Whether a commit is another one or one of those before it.
pub(crate) fn leads_to(
    git: &Git,
    window: &Scratch,
    from: CommitId,
    to: CommitId,
) -> Result<bool, ImportError> {
    let (from, to) = (from.to_string(), to.to_string());
    let words = ["--is-ancestor", &from, &to].map(OsStr::new);
    let answer = git.ask(Verb::MergeBase, window.place(), &words)?;
    match answer.code {
        0 => Ok(true),
        1 => Ok(false),
        _ => Err(ImporterCode::GitFailed.refuse(answer.complaint)),
    }
}

fn merge(
    git: &Git,
    window: &Scratch,
    onto: CommitId,
    head: CommitId,
) -> Result<ObjectId, ImportError> {
    let (onto, head) = (onto.to_string(), head.to_string());
    let words = [&onto, &head].map(OsStr::new);
    let answer = git
        .talk(Verb::MergeTree, window.place(), &words)?
        .finish(MERGED)?;
    let mut said = answer.stdout.split(|b| *b == 0).filter(|w| !w.is_empty());
    let tree = said
        .next()
        .and_then(|id| std::str::from_utf8(id).ok()?.parse().ok());
    match (answer.code, tree) {
        (0, Some(tree)) => Ok(tree),
        (1, Some(_)) => {
            let paths: Vec<String> = said.take(NAMED).map(|path| escape(path, 200)).collect();
            Err(ImporterCode::MergeConflict.refuse(paths.join(", ")))
        }
        _ => Err(ImporterCode::GitFailed.refuse(answer.complaint)),
    }
}

/// The commit with another tree and another parent.
fn rewritten(body: &[u8], tree: ObjectId, parent: CommitId) -> Result<Vec<u8>, ImportError> {
    let text = std::str::from_utf8(body);
    let text = text.map_err(|_| ImporterCode::CommitText.refuse("not UTF-8"))?;
    let rest = text.split_once("\nauthor ").map(|(_, rest)| rest);
    let rest = rest.ok_or_else(|| ImporterCode::CommitMalformed.refuse("no author"))?;
    Ok(format!("tree {tree}\nparent {parent}\nauthor {rest}").into_bytes())
}

/// One commit on the baseline with the tree, the date and the message of another, under an identity.
pub(crate) fn squashed(
    body: &[u8],
    baseline: CommitId,
    identity: &str,
) -> Result<(CommitId, Vec<u8>), ImportError> {
    let malformed = |what: &str| ImporterCode::CommitMalformed.refuse(what);
    let tree = commit::tree_of(body)?;
    let text = std::str::from_utf8(body);
    let text = text.map_err(|_| ImporterCode::CommitText.refuse("not UTF-8"))?;
    let (head, message) = text
        .split_once("\n\n")
        .ok_or_else(|| malformed("no empty line after the headers"))?;
    let committer = head.lines().find_map(|l| l.strip_prefix("committer "));
    let when = committer.and_then(|line| line.rsplit_once("> "));
    let (_, when) = when.ok_or_else(|| malformed("no committer"))?;
    let body = format!(
        "tree {tree}\nparent {baseline}\nauthor {identity} {when}\ncommitter {identity} {when}\n\n\
         {message}"
    )
    .into_bytes();
    Ok((hash::id_of(Kind::Commit, &body)?, body))
}
