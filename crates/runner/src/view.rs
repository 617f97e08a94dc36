//! The files a program behind the walls can reach: a Landlock allow-list, as data.

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, PathBeneath,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope, make_bitflags,
};
use rustix::fd::BorrowedFd;
use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use rustix::io::Errno;
use std::path::PathBuf;

/// One entry of the allow-list: what lies at or below `path` may be used in this way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) path: PathBuf,
    pub(crate) reach: Reach,
}

/// How a granted path may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Files are read, directories listed.
    Read,
    /// Read, and executed.
    Run,
    /// A device is read and written.
    Device,
    /// Everything a scratch is for; nothing in it can be executed.
    Scratch,
    /// A scratch whose files may be executed: build scripts are built and then run.
    Output,
}

impl Reach {
    fn rights(self) -> BitFlags<AccessFs> {
        let read = make_bitflags!(AccessFs::{ReadFile | ReadDir});
        let write = make_bitflags!(AccessFs::{
            WriteFile | Truncate | RemoveDir | RemoveFile | MakeDir | MakeReg | MakeSym | MakeFifo | Refer
        });
        match self {
            Self::Read => read,
            Self::Run => read | AccessFs::Execute,
            Self::Device => make_bitflags!(AccessFs::{ReadFile | WriteFile}),
            Self::Scratch => read | write,
            Self::Output => read | write | AccessFs::Execute,
        }
    }
}

/// A grant of a path. One that does not exist in this session grants nothing.
pub(crate) fn grant(path: impl Into<PathBuf>, reach: Reach) -> Grant {
    let path = path.into();
    Grant { path, reach }
}

/// A finished allow-list, not yet in force.
pub(crate) struct View(RulesetCreated);

impl View {
    /// Opens the granted paths. Everything the kernel's Landlock knows is handled, so that whatever
    /// is not granted is refused: files, TCP, and from ABI 6 signals and abstract sockets. The
    /// program itself is granted by its descriptor: it has no path where it will run.
    /// `port` is the one that may be connected to, if any.
    pub(crate) fn new(
        grants: &[Grant],
        program: Option<BorrowedFd<'_>>,
        port: Option<u16>,
    ) -> Result<Self, String> {
        let abi = abi(crate::calls::landlock_abi())
            .ok_or("the kernel has no Landlock; nothing is run without it")?;
        let mut ruleset = ruleset(abi).map_err(|e| format!("Landlock: {e}"))?;
        for grant in grants {
            ruleset = allow(ruleset, abi, grant)
                .map_err(|e| format!("Landlock, {}: {e}", grant.path.display()))?;
        }
        if let Some(program) = program {
            let rights = Reach::Run.rights() & AccessFs::from_file(abi);
            ruleset = ruleset
                .add_rule(PathBeneath::new(program, rights))
                .map_err(|e| format!("Landlock, the program: {e}"))?;
        }
        if let Some(port) = port.filter(|_| abi >= ABI::V4) {
            ruleset = ruleset
                .add_rule(NetPort::new(port, AccessNet::ConnectTcp))
                .map_err(|e| format!("Landlock, port {port}: {e}"))?;
        }
        Ok(Self(ruleset))
    }

    /// Puts the list in force for this process and all its children, for ever.
    pub(crate) fn enforce(self) -> Result<(), String> {
        match self.0.restrict_self() {
            Err(error) => Err(format!("Landlock: {error}")),
            Ok(done) if done.ruleset == RulesetStatus::FullyEnforced && done.no_new_privs => Ok(()),
            Ok(_partly) => Err("Landlock is not fully in force".to_owned()),
        }
    }
}

/// The newest ABI both sides know; `None` without Landlock.
fn abi(kernel: u32) -> Option<ABI> {
    Some(match kernel {
        0 => return None,
        1 => ABI::V1,
        2 => ABI::V2,
        3 => ABI::V3,
        4 => ABI::V4,
        5 => ABI::V5,
        6 => ABI::V6,
        7 => ABI::V7,
        8 => ABI::V8,
        9 => ABI::V9,
        _ => ABI::V10,
    })
}

fn ruleset(abi: ABI) -> Result<RulesetCreated, landlock::RulesetError> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(abi))?;
    if abi >= ABI::V4 {
        ruleset = ruleset.handle_access(AccessNet::from_all(abi))?;
    }
    if abi >= ABI::V6 {
        ruleset = ruleset.scope(Scope::from_all(abi))?;
    }
    ruleset.create()
}

fn allow(
    ruleset: RulesetCreated,
    abi: ABI,
    grant: &Grant,
) -> Result<RulesetCreated, Box<dyn std::error::Error>> {
    let place = match open(&grant.path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
        Ok(place) => place,
        Err(Errno::NOENT) => return Ok(ruleset),
        Err(error) => return Err(error.into()),
    };
    let mut rights = grant.reach.rights() & AccessFs::from_all(abi);
    if FileType::from_raw_mode(fstat(&place)?.st_mode) != FileType::Directory {
        rights &= AccessFs::from_file(abi);
    }
    Ok(ruleset.add_rule(PathBeneath::new(place, rights))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_reach_makes_devices_or_sockets() {
        let never = make_bitflags!(AccessFs::{MakeChar | MakeBlock | MakeSock | IoctlDev});
        for reach in [
            Reach::Read,
            Reach::Run,
            Reach::Device,
            Reach::Scratch,
            Reach::Output,
        ] {
            assert!((reach.rights() & never).is_empty(), "{reach:?}");
        }
    }

    #[test]
    fn a_place_that_is_written_is_executed_only_by_a_build() {
        assert!(!Reach::Scratch.rights().contains(AccessFs::Execute));
        assert!(!Reach::Device.rights().contains(AccessFs::Execute));
        assert!(Reach::Output.rights().contains(AccessFs::Execute));
        assert!(!Reach::Run.rights().contains(AccessFs::WriteFile));
    }

    #[test]
    fn a_kernel_without_landlock_has_no_list_and_a_newer_one_the_newest_known() {
        assert_eq!(abi(0), None);
        assert_eq!(abi(7), Some(ABI::V7));
        assert_eq!(abi(99), Some(ABI::V10));
    }
}
