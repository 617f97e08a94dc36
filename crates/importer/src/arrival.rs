use crate::objects::Objects;
use crate::scratch::Scratch;
use crate::{Checked, Git, Host, ImportError, Rules, check, opinion};
use std::path::Path;

/// A bundle that arrived, and what it is held against.
#[derive(Debug, Clone, Copy)]
pub struct Arrival<'a> {
    /// All bytes of the bundle. Read at most [`Arrival::LARGEST`] and one more of them.
    pub bundle: &'a [u8],
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
}

/// Checks a bundle against a repository, then asks git for its opinion on what was read. Nothing is
/// written into the repository.
///
/// # Errors
/// `UNKNOWN_REVISION`, then those of [`check`](crate::check()), then `SECOND_OPINION`.
pub fn check_bundle(git: &Git, host: &Host, arrival: &Arrival<'_>) -> Result<Checked, ImportError> {
    let baseline = host.resolve(git, arrival.baseline)?;
    let window = Scratch::over(
        arrival.scratch.join("window.git"),
        &host.objects(),
        baseline,
    )?;
    let mut objects = Objects::open(git, window.place())?;
    let checked = check(arrival.bundle, baseline, &mut objects, &arrival.rules)?;
    opinion::ask(git, &window, &checked)?;
    Ok(checked)
}
