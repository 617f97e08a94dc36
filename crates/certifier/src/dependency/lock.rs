//! `Cargo.lock`: an exact list of packages by name, version, source and checksum.

use std::collections::BTreeSet;

use flightproof_core::{Digest, RelPath, escape};
use flightproof_evidence::Package;
use serde::Deserialize;

use super::manifest::{Manifest, PackageVersion, is_manifest};
use crate::tree::Tree;
use crate::{CertifierCode, CertifierError};

/// Largest lock file in bytes; the largest of the field are an eighth of it.
const MAX_LOCK_BYTES: usize = 4 * 1024 * 1024;

/// Most packages: each is a file to find, hash and ship.
const MAX_PACKAGES: usize = 2_000;

/// Longest name or version in bytes: both become part of a file name.
const MAX_NAME_BYTES: usize = 128;

/// The one registry, in the two spellings cargo writes.
const CRATES_IO: &[&str] = &[
    "registry+https://github.com/rust-lang/crates.io-index",
    "sparse+https://index.crates.io/",
];

#[derive(Deserialize)]
struct Lock {
    version: Option<i64>,
    #[serde(default)]
    package: Vec<Locked>,
    /// Where format version 1 has its checksums.
    metadata: Option<toml::Value>,
}

/// Fields without a meaning here (`dependencies`) are cargo's to check, with `--locked`.
#[derive(Deserialize)]
struct Locked {
    name: String,
    version: String,
    source: Option<String>,
    checksum: Option<String>,
    replace: Option<toml::Value>,
}

/// The packages to ship, ordered. Every other one is a package of the tree.
pub(super) fn packages(lock: &[u8], tree: &Tree<'_>) -> Result<Vec<Package>, CertifierError> {
    let lock = parse(lock)?;
    let members = members(tree);
    let mut seen = BTreeSet::new();
    let mut out = BTreeSet::new();
    for locked in &lock.package {
        locked.check_names()?;
        if !seen.insert((&locked.name, &locked.version)) {
            return Err(locked.refuse(CertifierCode::LockInconsistent, "stands twice"));
        }
        if let Some(checksum) = locked.registry_checksum()? {
            out.insert(Package {
                name: locked.name.clone(),
                version: locked.version.clone(),
                sha256: checksum,
            });
        } else if !members.contains(&(locked.name.clone(), locked.version.clone())) {
            return Err(locked.refuse(CertifierCode::LockInconsistent, "is no package of the tree"));
        }
    }
    Ok(out.into_iter().collect())
}

/// The packages of crates.io that the baseline's lock file names. One that cannot be read names none.
pub(super) fn named(lock: &[u8]) -> BTreeSet<Package> {
    let locked = parse(lock).map(|lock| lock.package).unwrap_or_default();
    let packages = locked.into_iter().filter_map(|locked| {
        let sha256 = locked.registry_checksum().ok()??;
        let (name, version) = (locked.name, locked.version);
        Some(Package {
            name,
            version,
            sha256,
        })
    });
    packages.collect()
}

fn parse(lock: &[u8]) -> Result<Lock, CertifierError> {
    let refuse = |reason: &str| CertifierCode::LockUnreadable.refuse(escape(reason, 200));
    if lock.len() > MAX_LOCK_BYTES {
        return Err(refuse(&format!(
            "{} bytes, at most {MAX_LOCK_BYTES}",
            lock.len()
        )));
    }
    let text = std::str::from_utf8(lock).map_err(|error| refuse(&error.to_string()))?;
    let lock: Lock = toml::from_str(text).map_err(|error| refuse(error.message()))?;
    // Version 1 has checksums elsewhere; after version 4 they may stand elsewhere again. Version 2 does
    // not say its number, and nor does version 1: without metadata they are the same.
    if !matches!(
        (lock.version, &lock.metadata),
        (Some(3 | 4), _) | (None, None)
    ) {
        return Err(refuse("not of format version 2, 3 or 4"));
    }
    if lock.package.is_empty() || lock.package.len() > MAX_PACKAGES {
        return Err(refuse(&format!(
            "{} packages, 1 to {MAX_PACKAGES} are allowed",
            lock.package.len()
        )));
    }
    Ok(lock)
}

impl Locked {
    /// Name and version become a file name and text of a manifest: nothing else may be in them.
    fn check_names(&self) -> Result<(), CertifierError> {
        let word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let name = self.name.len() <= MAX_NAME_BYTES
            && self
                .name
                .starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
            && self.name.chars().all(word);
        let version = self.version.len() <= MAX_NAME_BYTES
            && self.version.starts_with(|c: char| c.is_ascii_digit())
            && self
                .version
                .chars()
                .all(|c| word(c) && c != '_' || c == '.' || c == '+');
        if name && version {
            return Ok(());
        }
        Err(self.refuse(CertifierCode::LockUnreadable, "is no name with a version"))
    }

    /// `None` for a package of the tree.
    fn registry_checksum(&self) -> Result<Option<Digest>, CertifierError> {
        let foreign = |what: &str| Err(self.refuse(CertifierCode::DependencyNotRegistry, what));
        match (&self.source, &self.checksum, &self.replace) {
            (None, None, None) => Ok(None),
            (_, _, Some(_)) => foreign("is replaced by another package"),
            (None, Some(_), None) => foreign("has a checksum and no source"),
            (Some(source), _, _) if !CRATES_IO.contains(&source.as_str()) => {
                foreign(&format!("comes from {}", escape(source, 120)))
            }
            (Some(_), None, None) => foreign("has no checksum"),
            (Some(_), Some(checksum), None) => match checksum.parse() {
                Ok(digest) => Ok(Some(digest)),
                Err(_) => foreign("has a checksum that is no SHA-256"),
            },
        }
    }

    fn refuse(&self, code: CertifierCode, what: &str) -> CertifierError {
        code.refuse(format_args!(
            "{} {} {what}",
            escape(&self.name, 80),
            escape(&self.version, 80)
        ))
    }
}

/// Name and version of every package the tree's manifests declare. A manifest that cannot be read
/// declares none; one that the change touches was refused before.
fn members(tree: &Tree<'_>) -> BTreeSet<(String, String)> {
    let manifests: Vec<(RelPath, Manifest)> = tree
        .files()
        .filter_map(|(path, content)| {
            let path = RelPath::new(path).ok().filter(is_manifest)?;
            let manifest = Manifest::parse(&path, content).ok()?;
            Some((path, manifest))
        })
        .collect();
    let inherited: Vec<&str> = manifests
        .iter()
        .filter_map(|(_, m)| m.workspace_version())
        .collect();
    let mut out = BTreeSet::new();
    for (name, version) in manifests
        .iter()
        .filter_map(|(_, manifest)| manifest.package())
    {
        let versions = match version {
            PackageVersion::Own(own) => vec![own],
            PackageVersion::Workspace => inherited.clone(),
        };
        out.extend(
            versions
                .into_iter()
                .map(|version| (name.to_owned(), version.to_owned())),
        );
    }
    out
}
