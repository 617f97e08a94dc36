//! The shape of a change's dependencies, judged as text before anything is compiled.
//!
//! Nothing here asks cargo. A change may use the packages its lock file names, if the operator granted that
//! file, and each package that is new in it by name, version and checksum; it may not bring code that runs
//! while others build (build scripts, procedural macros, native libraries, cargo and toolchain
//! configuration), nor code from anywhere but crates.io or the tree. No grant lifts these other rules: a
//! grant is about paths and packages, and these files act on whoever touches the tree later. Names are
//! compared without regard to case, for `.Cargo` is `.cargo` on some file systems.

mod granted;
mod lock;
mod manifest;

pub use granted::GrantedPackage;

use flightproof_core::{RelPath, escape};
use flightproof_evidence::{Captured, Change, Package};

use crate::tree::Tree;
use crate::{CertifierCode, CertifierError};

use manifest::Manifest;

/// Where the lock file of a captured tree lies.
const LOCK_PATH: &str = "Cargo.lock";

/// What the static rules found out about a change's dependencies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DependencyReport {
    /// Every package to ship, ordered by name and version: its `.crate` file has this SHA-256.
    pub packages: Vec<Package>,
    /// Those of them that the baseline's lock file does not have.
    pub new: Vec<Package>,
}

/// What the operator lets a change bring.
#[derive(Debug, Clone, Copy, Default)]
pub struct Allowed<'a> {
    /// Paths that may change though they are protected.
    pub paths: &'a [RelPath],
    /// Packages that the baseline does not have.
    pub packages: &'a [GrantedPackage],
}

/// Holds a change against the rules. `plan_lock` is the lock file of the plan, used only where the tree
/// has none.
///
/// # Errors
/// `TOOLCHAIN_FILE`, `CARGO_CONFIG`, `BUILD_SCRIPT_NEW`, `LOCK_CHANGED` by path;
/// `MANIFEST_UNREADABLE`, `DEPENDENCY_PATCHED`, `DEPENDENCY_PATH`, `DEPENDENCY_NOT_REGISTRY`,
/// `PROC_MACRO_NEW`, `NATIVE_LINKS_NEW`, `UNCHECKED_SOURCE` by manifest; `LOCK_MISSING`,
/// `LOCK_UNREADABLE`, `LOCK_INCONSISTENT`, `DEPENDENCY_NOT_REGISTRY`, `DEPENDENCY_NOT_GRANTED` by lock
/// file.
pub fn check(
    captured: &Captured,
    tree: &Tree<'_>,
    allowed: Allowed<'_>,
    plan_lock: Option<&[u8]>,
) -> Result<DependencyReport, CertifierError> {
    captured.changes.iter().try_for_each(|change| {
        check_path(&change.path, allowed.paths)?;
        check_manifest(change, tree)
    })?;
    check_build_scripts(captured, tree)?;
    let Some(lock) = tree.file(LOCK_PATH).or(plan_lock) else {
        return Err(CertifierCode::LockMissing.refuse(missing_lock(tree)));
    };
    let packages = lock::packages(lock, tree)?;
    let new = brought(captured, &packages, plan_lock);
    check_new(&new, allowed.packages)?;
    Ok(DependencyReport { packages, new })
}

/// A tree that has no manifest either may be a program of another language.
fn missing_lock(tree: &Tree<'_>) -> String {
    match tree.file("Cargo.toml") {
        Some(_) => LOCK_PATH.to_owned(),
        None => format!("{LOCK_PATH}, and no Cargo.toml at the top"),
    }
}

/// The packages that a change of the lock file brings: those which the baseline's does not have. `plan_lock`
/// stands in the place of one that is not there. Which of them depends on which is cargo's to say.
fn brought(captured: &Captured, packages: &[Package], plan_lock: Option<&[u8]>) -> Vec<Package> {
    let lock = |change: &&Change| change.path.as_str() == LOCK_PATH;
    let Some(change) = captured.changes.iter().find(lock) else {
        return Vec::new();
    };
    let old = change.old.as_ref().map(|state| &state.content[..]);
    let known = old.or(plan_lock).map(lock::named).unwrap_or_default();
    let new = packages.iter().filter(|package| !known.contains(*package));
    new.cloned().collect()
}

/// Somebody agreed to each of these packages.
fn check_new(brought: &[Package], granted: &[GrantedPackage]) -> Result<(), CertifierError> {
    /// Most packages that a refusal spells out.
    const MOST: usize = 16;
    let missing: Vec<String> = brought
        .iter()
        .filter(|package| !granted.iter().any(|granted| granted.is(package)))
        .map(|package| {
            format!(
                "--grant-package {}",
                GrantedPackage::from((*package).clone())
            )
        })
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let shown = missing[..missing.len().min(MOST)].join(" ");
    let more = match missing.len().saturating_sub(MOST) {
        0 => String::new(),
        n => format!(", and {n} more"),
    };
    Err(CertifierCode::DependencyNotGranted.refuse(format_args!("{shown}{more}")))
}

/// The packages a lock file names, for a tree that is built as it is: nothing is held against rules.
///
/// # Errors
/// `LOCK_MISSING`, `LOCK_UNREADABLE`, `LOCK_INCONSISTENT`, `DEPENDENCY_NOT_REGISTRY`.
pub fn locked(tree: &Tree<'_>, given: Option<&[u8]>) -> Result<Vec<Package>, CertifierError> {
    match tree.file(LOCK_PATH).or(given) {
        Some(lock) => lock::packages(lock, tree),
        None => Err(CertifierCode::LockMissing.refuse(LOCK_PATH)),
    }
}

/// Files that act by their name alone. Deleting one changes what others run, too.
fn check_path(path: &RelPath, grants: &[RelPath]) -> Result<(), CertifierError> {
    let is = |name: &str| path.file_name().eq_ignore_ascii_case(name);
    let code = if path
        .segments()
        .any(|segment| segment.eq_ignore_ascii_case(".cargo"))
    {
        CertifierCode::CargoConfig
    } else if is("rust-toolchain") || is("rust-toolchain.toml") {
        CertifierCode::ToolchainFile
    } else if is("build.rs") {
        CertifierCode::BuildScriptNew
    } else if is("Cargo.lock") && !grants.contains(path) {
        CertifierCode::LockChanged
    } else {
        return Ok(());
    };
    Err(code.refuse(escape(path.as_str(), 200)))
}

fn check_manifest(change: &Change, tree: &Tree<'_>) -> Result<(), CertifierError> {
    let Some(new) = change
        .new
        .as_ref()
        .filter(|_| manifest::is_manifest(&change.path))
    else {
        return Ok(());
    };
    let new = Manifest::parse(&change.path, &new.content)?;
    // A baseline that cannot be read excuses nothing.
    let old = change
        .old
        .as_ref()
        .and_then(|old| Manifest::parse(&change.path, &old.content).ok());
    new.refuse_additions(&old.unwrap_or_else(|| Manifest::empty(&change.path)), tree)
}

/// A build script need not be called `build.rs`: `package.build` of any manifest names it.
fn check_build_scripts(captured: &Captured, tree: &Tree<'_>) -> Result<(), CertifierError> {
    for (_, script) in build_scripts(tree) {
        if let Some(change) = captured
            .changes
            .iter()
            .find(|change| change.path.as_str() == script)
        {
            return Err(CertifierCode::BuildScriptNew.refuse(escape(change.path.as_str(), 200)));
        }
    }
    Ok(())
}

/// The build scripts that the manifests of a tree name, or that lie beside them: the folder of the package,
/// with a slash at the end, or empty; and the path of the script.
pub(crate) fn build_scripts<'a>(tree: &Tree<'a>) -> impl Iterator<Item = (&'a str, String)> {
    tree.files().filter_map(|(at, content)| {
        let path = RelPath::new(at).ok().filter(manifest::is_manifest)?;
        let script = Manifest::parse(&path, content).ok()?.build_script(tree)?;
        let folder = at.strip_suffix(path.file_name())?;
        Some((folder, script))
    })
}

#[cfg(test)]
mod tests;
