//! A candidate built by a profile's toolchain, inside a session.

use super::{HELPERS, Profile};
use crate::build::overlay::Overlaid;
use crate::build::unbuilt;
use crate::upload::{self, execute, promote};
use crate::{Session, SessionCode, SessionError};
use flightproof_archive::paws;
use flightproof_core::{Digest, RelPath};
use flightproof_evidence::{BuildAnswer, BuildOrder, BuildRecord, BuildTarget, Built};
use flightproof_frame::protocol::{Exec, ExecLimits, Outcome, Place, Role, Status, layout};
use std::collections::BTreeMap;

/// Most bytes of what a tool prints, on each stream.
const MAX_OUTPUT: u64 = 1 << 20;
/// Wall clock for a toolchain to say its version, milliseconds.
const VERSION_WALL_MS: u64 = 30_000;

/// A session with a candidate's tree in it, ready to build.
#[derive(Debug)]
pub struct ProfileWorkshop {
    profile: Profile,
    version: String,
    source: Digest,
    tree: Overlaid,
    wall_ms: u64,
}

impl ProfileWorkshop {
    /// Asks the toolchain who it is, and uploads the tree (a PAWS1 archive).
    ///
    /// # Errors
    /// `TOOLCHAIN_INVALID` for one that is missing or too old, `UPLOAD_MISMATCH`, and what the session
    /// refuses.
    pub fn furnish(
        session: &mut dyn Session,
        profile: Profile,
        archive: &[u8],
        wall_ms: u64,
    ) -> Result<Self, SessionError> {
        let (program, args) = profile.question();
        let asked = execute(session, exec(&profile, program, args, VERSION_WALL_MS))?;
        let version = match asked.status {
            Status::Exited { code: 0 } => profile.version(&asked.stdout)?,
            // A program that is not there says nothing, and neither does its version.
            _ => profile.version(&[])?,
        };
        let unpacked = paws::read(archive).map_err(upload::unpackable)?;
        let source = unpacked.snapshot.snapshot_id();
        upload::archive(session, Place::Source, archive, source)?;
        for helper in &profile.helper {
            let text = HELPERS.iter().find(|(name, _)| *name == helper.name);
            let text = text.map_or("", |(_, text)| text).as_bytes();
            let path =
                RelPath::new(&helper.name).map_err(|e| SessionCode::SpecInvalid.refuse(e))?;
            upload::files(session, Place::Extra, [(path, false, text)])?;
        }
        Ok(Self {
            tree: Overlaid::of(&unpacked),
            profile,
            version,
            source,
            wall_ms,
        })
    }

    /// Builds one program and makes it executable for cases.
    ///
    /// # Errors
    /// `SPEC_INVALID` for an order that only Rust has (a driver), and what the session
    /// refuses. A build that fails or hits a limit is an answer, not an error.
    pub fn build(
        &mut self,
        session: &mut dyn Session,
        order: &BuildOrder,
    ) -> Result<BuildAnswer, SessionError> {
        let bin = match &order.target {
            BuildTarget::Bin { name } if is_plain(name) => name,
            _ => {
                return Err(SessionCode::SpecInvalid.refuse(format_args!(
                    "{}: only a program of the tree can be built",
                    self.profile.name
                )));
            }
        };
        let product = format!("{}/program-{}", layout::TARGET, order.program);
        self.tree.lay(session, &order.overlay)?;
        for (program, args) in self.profile.steps(bin, &product, &self.tree.paths()) {
            let step = exec(&self.profile, program, args, self.wall_ms);
            let outcome = execute(session, step)?;
            let diagnostics = self.profile.diagnostics(&outcome_text(&outcome));
            if let Some(answer) = unbuilt(session, &outcome, diagnostics)? {
                return Ok(answer);
            }
        }
        let sha256 = promote(session, &product, &order.program)?;
        Ok(BuildAnswer::Built(Built {
            program: order.program.clone(),
            sha256,
            record: BuildRecord {
                source: self.source,
                packages: Vec::new(),
                profile: format!("{}: {}", self.profile.name, self.version),
                settings: None,
                build_scripts: false,
                proc_macros: false,
            },
            reads: None,
        }))
    }
}

/// Tools print errors on either stream.
fn outcome_text(outcome: &Outcome) -> Vec<u8> {
    [&outcome.stderr[..], b"\n", &outcome.stdout[..]].concat()
}

/// What a program may be called: it becomes part of a command line.
fn is_plain(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    (1..=64).contains(&name.len()) && name.bytes().all(plain)
}

fn exec(profile: &Profile, program: String, args: Vec<String>, wall_ms: u64) -> Exec {
    Exec {
        role: Role::Build,
        program,
        args,
        env: profile.environment(),
        stdin: Vec::new().into(),
        files: BTreeMap::new(),
        limits: ExecLimits {
            wall_ms,
            stdout_bytes: MAX_OUTPUT,
            stderr_bytes: MAX_OUTPUT,
        },
        selector: None,
        tree: None,
    }
}
