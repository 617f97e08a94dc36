use crate::capture::{CANDIDATE, evidence};
use crate::objects::{Kind, Objects, Source as _};
use crate::scratch::Scratch;
use crate::walk::Shelf;
use crate::{
    Capture, Checked, Git, Host, ImportError, Parcel, Rules, check_parcel, commit, opinion,
    snapshot,
};
use std::path::Path;

/// A bundle that arrived, and what it is held against.
#[derive(Debug, Clone, Copy)]
pub struct Arrival<'a> {
    /// What it came in. Read at most [`Arrival::LARGEST`] and one more byte of a bundle, and
    /// [`Arrival::LARGEST_CHANGESET`] of a changeset.
    pub parcel: Parcel<'a>,
    /// A revision of the repository: what the work must be based on.
    pub baseline: &'a str,
    /// What the commit may be.
    pub rules: Rules<'a>,
    /// An empty folder only we can write. Emptied again.
    pub scratch: &'a Path,
}

impl Arrival<'_> {
    /// Most bytes of a bundle.
    pub const LARGEST: usize = crate::bundle::BUNDLE;
    /// Most bytes of the changeset with its large files.
    pub const LARGEST_CHANGESET: usize = crate::freight::MOST;
}

/// Checks a bundle against a repository, then asks git for its opinion on what was read. Nothing is
/// written into the repository.
///
/// # Errors
/// `UNKNOWN_REVISION`, then those of [`check_parcel`], then `SECOND_OPINION`.
pub fn check_bundle(git: &Git, host: &Host, arrival: &Arrival<'_>) -> Result<Checked, ImportError> {
    Ok(receive(git, host, arrival)?.0)
}

/// Checks a bundle as [`check_bundle`] does, and takes the commit's whole tree beside it: the same
/// evidence as a capture out of a repository gives. `name` is the operator's for the repository.
///
/// # Errors
/// Those of [`check_bundle`], and those of reading a tree.
pub fn capture_bundle(
    git: &Git,
    host: &Host,
    name: &str,
    arrival: &Arrival<'_>,
) -> Result<Capture, ImportError> {
    let (checked, window) = receive(git, host, arrival)?;
    // Opened after git has taken in what the bundle brought.
    let mut objects = Objects::open(git, window.place())?;
    let body = objects.read(checked.head(), Kind::Commit, CANDIDATE)?;
    let whole = snapshot::take(&mut objects, &Shelf::new(), commit::tree_of(&body)?)?;
    Ok(Capture {
        captured: evidence(name, &checked, &arrival.parcel, whole)?,
        bundle: arrival.parcel.bundle.to_vec(),
        changeset: arrival.parcel.changeset.map(<[u8]>::to_vec),
        checked,
    })
}

fn receive(
    git: &Git,
    host: &Host,
    arrival: &Arrival<'_>,
) -> Result<(Checked, Scratch), ImportError> {
    let baseline = host.resolve(git, arrival.baseline)?;
    let window = Scratch::over(
        arrival.scratch.join("window.git"),
        &host.objects(),
        baseline,
    )?;
    let mut objects = Objects::open(git, window.place())?;
    let checked = check_parcel(&arrival.parcel, baseline, &mut objects, &arrival.rules)?;
    opinion::ask(git, &window, &checked)?;
    Ok((checked, window))
}
