//! One `Cargo.toml`, as far as it can bring in code or make something run.

use std::collections::BTreeSet;

use flightproof_core::{RelPath, escape};
use toml::{Table, Value};

use crate::tree::Tree;
use crate::{CertifierCode, CertifierError};

/// Largest manifest in bytes; the largest of the field are a tenth of it.
const MAX_MANIFEST_BYTES: usize = 1024 * 1024;

/// Longest keys of one string in bytes, all that lead to it: a condition of a target is the longest there is.
const MAX_KEY_BYTES: usize = 4096;

/// Keys that name where a dependency comes from, other than crates.io.
const SOURCES: &[&str] = &["git", "registry", "registry-index", "base"];

/// Tables whose `path` is a source file of a target, not a dependency.
const TARGETS: &[&str] = &["lib", "bin", "example", "test", "bench"];

/// Whether a path is a manifest, in any case.
pub(super) fn is_manifest(path: &RelPath) -> bool {
    path.file_name().eq_ignore_ascii_case("Cargo.toml")
}

/// A manifest and where it lies. The parser refuses nesting beyond 80 levels.
pub(super) struct Manifest {
    path: RelPath,
    table: Table,
}

impl Manifest {
    pub(super) fn parse(path: &RelPath, content: &[u8]) -> Result<Self, CertifierError> {
        let refuse = |reason: &str| {
            CertifierCode::ManifestUnreadable.refuse(format_args!(
                "{}: {}",
                escape(path.as_str(), 200),
                escape(reason, 200)
            ))
        };
        if content.len() > MAX_MANIFEST_BYTES {
            return Err(refuse(&format!(
                "{} bytes, at most {MAX_MANIFEST_BYTES}",
                content.len()
            )));
        }
        let text = std::str::from_utf8(content).map_err(|error| refuse(&error.to_string()))?;
        let table = text
            .parse()
            .map_err(|error: toml::de::Error| refuse(error.message()))?;
        let manifest = Self {
            path: path.clone(),
            table,
        };
        manifest.check_keys()?;
        Ok(manifest)
    }

    /// What an added manifest is compared with.
    pub(super) fn empty(path: &RelPath) -> Self {
        Self {
            path: path.clone(),
            table: Table::new(),
        }
    }

    /// Refuses everything that the old manifest did not have.
    pub(super) fn refuse_additions(
        &self,
        old: &Self,
        tree: &Tree<'_>,
    ) -> Result<(), CertifierError> {
        let script = self.build_script(tree);
        if let Some(script) =
            script.filter(|script| old.build_script(tree).as_ref() != Some(script))
        {
            return Err(self.refuse(CertifierCode::BuildScriptNew, &script));
        }
        self.refuse_replacements(old)?;
        self.refuse_programs(old)?;
        self.refuse_sources(old)?;
        self.refuse_paths(old)?;
        self.refuse_targets()
    }

    fn refuse_replacements(&self, old: &Self) -> Result<(), CertifierError> {
        for section in ["patch", "replace"] {
            let found = self.table.get(section);
            if found.is_some() && found != old.table.get(section) {
                return Err(self.refuse(CertifierCode::DependencyPatched, section));
            }
        }
        Ok(())
    }

    /// Keys that make something run while the package is built.
    fn refuse_programs(&self, old: &Self) -> Result<(), CertifierError> {
        for (place, code) in [
            (["package", "links"], CertifierCode::NativeLinksNew),
            (["project", "links"], CertifierCode::NativeLinksNew),
            (["lib", "proc-macro"], CertifierCode::ProcMacroNew),
            (["lib", "proc_macro"], CertifierCode::ProcMacroNew),
            (["lib", "plugin"], CertifierCode::ProcMacroNew),
        ] {
            let found = self
                .at(place)
                .filter(|value| value.as_bool() != Some(false));
            if found.is_some() && found != old.at(place) {
                return Err(self.refuse(code, &place.join(".")));
            }
        }
        for spelling in ["crate-type", "crate_type"] {
            if self.is_macro_type(spelling) && !old.is_macro_type(spelling) {
                return Err(self.refuse(CertifierCode::ProcMacroNew, &format!("lib.{spelling}")));
            }
        }
        Ok(())
    }

    fn is_macro_type(&self, spelling: &str) -> bool {
        let kinds = self.at(["lib", spelling]).and_then(Value::as_array);
        kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind.as_str() == Some("proc-macro")))
    }

    fn refuse_sources(&self, old: &Self) -> Result<(), CertifierError> {
        let known = old.entries();
        let added = self.entries().into_iter().find(|entry| {
            SOURCES.contains(&entry.key()) && entry.is_detail() && !known.contains(entry)
        });
        match added {
            None => Ok(()),
            Some(entry) => {
                Err(self.refuse(CertifierCode::DependencyNotRegistry, &entry.to_string()))
            }
        }
    }

    /// Every path of a dependency is an old one that stays inside the tree.
    fn refuse_paths(&self, old: &Self) -> Result<(), CertifierError> {
        let known = old.entries();
        let bad = self.entries().into_iter().find(|entry| {
            let relevant = (entry.key() == "path" && entry.is_detail())
                || entry.place == ["package", "workspace"]
                || entry.place == ["project", "workspace"];
            relevant && (!known.contains(entry) || self.resolve(entry.value).is_none())
        });
        match bad {
            None => Ok(()),
            Some(entry) => Err(self.refuse(CertifierCode::DependencyPath, &entry.to_string())),
        }
    }

    /// Sources of targets are inside the tree and named so that the fence looks at them.
    fn refuse_targets(&self) -> Result<(), CertifierError> {
        let bad = self.entries().into_iter().find(|entry| {
            let inside = self.resolve(entry.value).is_some();
            entry.key() == "path" && entry.is_target() && !(inside && entry.value.ends_with(".rs"))
        });
        match bad {
            None => Ok(()),
            Some(entry) => Err(self.refuse(CertifierCode::UncheckedSource, &entry.to_string())),
        }
    }

    /// The path of the package's build script. Without a `build` key cargo takes a `build.rs` that
    /// lies beside the manifest: an added manifest, or a removed `build = false`, puts an old file of
    /// that name to work.
    pub(super) fn build_script(&self, tree: &Tree<'_>) -> Option<String> {
        let package = self
            .table
            .get("package")
            .or_else(|| self.table.get("project"))?
            .as_table()?;
        match package.get("build") {
            Some(Value::Boolean(false)) => None,
            Some(Value::Boolean(true)) | None => self
                .resolve("build.rs")
                .filter(|path| tree.file(path).is_some()),
            Some(Value::String(path)) => self.resolve(path).or_else(|| Some(path.clone())),
            Some(other) => Some(other.to_string()),
        }
    }

    /// Name and version of the package; the version of a workspace stands elsewhere.
    pub(super) fn package(&self) -> Option<(&str, PackageVersion<'_>)> {
        let package = self
            .table
            .get("package")
            .or_else(|| self.table.get("project"))?
            .as_table()?;
        let version = match package.get("version") {
            None => PackageVersion::Own("0.0.0"),
            Some(Value::String(version)) => PackageVersion::Own(version),
            Some(_) => PackageVersion::Workspace,
        };
        Some((package.get("name")?.as_str()?, version))
    }

    /// The version a workspace gives to its members.
    pub(super) fn workspace_version(&self) -> Option<&str> {
        let package = self.at(["workspace", "package"])?.as_table()?;
        package.get("version")?.as_str()
    }

    fn at(&self, [section, key]: [&str; 2]) -> Option<&Value> {
        self.table.get(section)?.as_table()?.get(key)
    }

    /// A path relative to the manifest as a path of the tree; `None` if it leaves the tree.
    fn resolve(&self, path: &str) -> Option<String> {
        if path.starts_with('/') || path.contains(['\\', ':', '\0']) {
            return None;
        }
        let mut segments: Vec<&str> = self
            .path
            .parent()
            .map_or_else(Vec::new, |dir| dir.split('/').collect());
        for segment in path.split('/') {
            match segment {
                "" | "." => {}
                ".." => {
                    segments.pop()?;
                }
                name => segments.push(name),
            }
        }
        Some(segments.join("/"))
    }

    /// Every string of the document with the keys that lead to it, free-form tables left out.
    fn entries(&self) -> BTreeSet<Entry<'_>> {
        let mut out = BTreeSet::new();
        strings(&self.table, &mut Vec::new(), &mut |place, value| {
            out.insert(Entry {
                place: place.to_vec(),
                value,
            });
        });
        out
    }

    /// The keys that lead to any string are short together: each is compared as often as there are strings
    /// below it.
    fn check_keys(&self) -> Result<(), CertifierError> {
        let mut longest = 0;
        strings(&self.table, &mut Vec::new(), &mut |place, _| {
            longest = longest.max(place.iter().map(|key| key.len()).sum());
        });
        match longest {
            0..=MAX_KEY_BYTES => Ok(()),
            bytes => Err(self.refuse(
                CertifierCode::ManifestUnreadable,
                &format!("keys of {bytes} bytes, at most {MAX_KEY_BYTES}"),
            )),
        }
    }

    fn refuse(&self, code: CertifierCode, what: &str) -> CertifierError {
        code.refuse(format_args!(
            "{}: {}",
            escape(self.path.as_str(), 200),
            escape(what, 200)
        ))
    }
}

/// Where a package's version stands.
pub(super) enum PackageVersion<'a> {
    Own(&'a str),
    Workspace,
}

/// Hands out every string below a table, with the keys that lead to it; free-form tables are left out.
fn strings<'a>(
    table: &'a Table,
    place: &mut Vec<&'a str>,
    take: &mut impl FnMut(&[&'a str], &'a str),
) {
    for (key, value) in table {
        place.push(key);
        // By exact place: a dependency may be called `metadata` too.
        let free = matches!(place[..], ["package" | "workspace", "metadata"]);
        if !(free && value.is_table()) {
            strings_of(value, place, take);
        }
        place.pop();
    }
}

fn strings_of<'a>(
    value: &'a Value,
    place: &mut Vec<&'a str>,
    take: &mut impl FnMut(&[&'a str], &'a str),
) {
    match value {
        Value::String(text) => take(place, text),
        Value::Array(items) => items.iter().for_each(|item| strings_of(item, place, take)),
        Value::Table(table) => strings(table, place, take),
        _ => {}
    }
}

/// A string of a manifest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Entry<'a> {
    place: Vec<&'a str>,
    value: &'a str,
}

impl Entry<'_> {
    fn key(&self) -> &str {
        self.place.last().copied().unwrap_or_default()
    }

    /// Below a dependency. `dependencies.path = "1.0"` is one called `path`.
    fn is_detail(&self) -> bool {
        self.place.len() > 2
    }

    /// `lib.path`, `bin.path`, …: directly below a table of targets, which stands at the top.
    fn is_target(&self) -> bool {
        matches!(self.place[..], [section, _] if TARGETS.contains(&section))
    }
}

impl std::fmt::Display for Entry<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} = \"{}\"", self.place.join("."), self.value)
    }
}
