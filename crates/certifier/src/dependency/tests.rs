use super::*;
use crate::samples::{captured, change};
use CertifierCode::*;
use std::collections::BTreeMap;

const SUM: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
const MANIFEST: &str = "[package]\nname = \"calc\"\nversion = \"1.2.3\"\n";

fn lock(packages: &str) -> String {
    format!("version = 4\n[[package]]\nname = \"calc\"\nversion = \"1.2.3\"\n{packages}")
}

fn registry(name: &str, source: &str, checksum: &str) -> String {
    lock(&format!(
        "[[package]]\nname = \"{name}\"\nversion = \"1.0.0\"\n{source}\n{checksum}\n"
    ))
}

/// A change in a repository that is in order: the files of the tree, and what is changed in it.
struct Scene {
    files: BTreeMap<RelPath, Vec<u8>>,
    changes: Vec<Change>,
    grants: Vec<RelPath>,
    packages: Vec<GrantedPackage>,
    plan_lock: Option<String>,
}

impl Scene {
    fn new() -> Self {
        let scene = Self {
            files: BTreeMap::new(),
            changes: Vec::new(),
            grants: Vec::new(),
            packages: Vec::new(),
            plan_lock: None,
        };
        scene
            .with("Cargo.toml", MANIFEST)
            .with("Cargo.lock", &lock(""))
    }

    fn with(mut self, path: &str, content: &str) -> Self {
        self.files
            .insert(RelPath::new(path).unwrap(), content.into());
        self
    }

    fn without(mut self, path: &str) -> Self {
        self.files.remove(&RelPath::new(path).unwrap());
        self
    }

    fn changing(self, path: &str, old: Option<&str>, new: &str) -> Self {
        let mut scene = self.with(path, new);
        scene
            .changes
            .push(change(path, old.map(str::as_bytes), Some(new.as_bytes())));
        scene
    }

    fn deleting(mut self, path: &str, old: &str) -> Self {
        self.changes.push(change(path, Some(old.as_bytes()), None));
        self
    }

    fn granting(mut self, path: &str) -> Self {
        self.grants.push(RelPath::new(path).unwrap());
        self
    }

    fn bringing(mut self, package: &str) -> Self {
        self.packages.push(package.parse().unwrap());
        self
    }

    fn planning(mut self, lock: &str) -> Self {
        self.plan_lock = Some(lock.to_owned());
        self
    }

    fn judge(&self) -> Result<DependencyReport, CertifierCode> {
        let tree = self
            .files
            .iter()
            .map(|(path, content)| (path, &content[..]))
            .collect();
        let plan_lock = self.plan_lock.as_ref().map(String::as_bytes);
        check(
            &captured(self.changes.clone()),
            &tree,
            Allowed {
                paths: &self.grants,
                packages: &self.packages,
            },
            plan_lock,
        )
        .map_err(|refused| refused.code)
    }

    fn code(&self) -> Option<CertifierCode> {
        self.judge().err()
    }
}

/// The verdict on a root manifest that becomes `MANIFEST` and this.
fn manifest(added: &str) -> Option<CertifierCode> {
    Scene::new()
        .changing(
            "Cargo.toml",
            Some(MANIFEST),
            &format!("{MANIFEST}{added}\n"),
        )
        .code()
}

#[test]
fn files_that_act_by_their_name_are_refused_whatever_is_granted() {
    for (path, code) in [
        (".cargo/config.toml", CargoConfig),
        ("a/b/.cargo/config", CargoConfig),
        (".Cargo/anything", CargoConfig),
        ("rust-toolchain", ToolchainFile),
        ("a/rust-toolchain.toml", ToolchainFile),
        ("Rust-Toolchain.TOML", ToolchainFile),
        ("build.rs", BuildScriptNew),
        ("a/Build.rs", BuildScriptNew),
    ] {
        assert_eq!(
            Scene::new().granting(path).changing(path, None, "").code(),
            Some(code),
            "{path}"
        );
        assert_eq!(
            Scene::new().changing(path, Some("a"), "b").code(),
            Some(code),
            "{path}"
        );
        assert_eq!(
            Scene::new().deleting(path, "a").code(),
            Some(code),
            "{path}"
        );
        assert_eq!(Scene::new().with(path, "old").code(), None, "{path}");
    }
    for twin in [
        "cargo/config.toml",
        ".cargo-ok",
        "src/rust_toolchain.rs",
        "src/rebuild.rs",
        "clippy.toml",
    ] {
        assert_eq!(Scene::new().changing(twin, None, "").code(), None, "{twin}");
    }
}

#[test]
fn a_lock_changes_only_by_a_grant_of_exactly_its_path() {
    let new = registry(
        "dep",
        "source = \"registry+https://github.com/rust-lang/crates.io-index\"",
        &format!("checksum = \"{SUM}\""),
    );
    let changing = || Scene::new().changing("Cargo.lock", Some(&lock("")), &new);
    assert_eq!(changing().code(), Some(LockChanged));
    assert_eq!(
        changing().granting("src").granting("Cargo.lock2").code(),
        Some(LockChanged)
    );
    assert_eq!(
        changing().granting("a/Cargo.lock").code(),
        Some(LockChanged)
    );
    let granted = changing().granting("Cargo.lock");
    let report = granted
        .bringing(&format!("dep@1.0.0#{SUM}"))
        .judge()
        .unwrap();
    assert_eq!(report.packages[0].name, "dep");
    assert_eq!(report.packages[0].sha256.to_string(), SUM);
    assert_eq!(report.new, report.packages);
    assert_eq!(
        Scene::new().changing("a/Cargo.lock", None, "").code(),
        Some(LockChanged)
    );
    assert_eq!(
        Scene::new().deleting("Cargo.lock", "").code(),
        Some(LockChanged)
    );
}

#[test]
fn each_new_package_of_a_lock_is_granted_by_name_version_and_checksum() {
    let source = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";
    let entry = |name: &str, version: &str, sum: &str| {
        format!(
            "[[package]]\nname = \"{name}\"\nversion = \"{version}\"\n{source}\nchecksum = \"{sum}\"\n"
        )
    };
    let other = "0".repeat(64);
    let old = lock(&(entry("kept", "1.0.0", SUM) + &entry("gone", "1.0.0", SUM)));
    let changed = |old: Option<&str>, packages: &str| {
        Scene::new()
            .changing("Cargo.lock", old, &lock(packages))
            .granting("Cargo.lock")
    };
    // What was there may stay or go.
    for packages in [
        entry("kept", "1.0.0", SUM),
        entry("gone", "1.0.0", SUM) + &entry("kept", "1.0.0", SUM),
        String::new(),
    ] {
        assert_eq!(changed(Some(&old), &packages).code(), None, "{packages}");
    }
    // Another name, another version, other bytes.
    for (name, version, sum) in [
        ("new", "1.0.0", SUM),
        ("kept", "1.0.1", SUM),
        ("kept", "1.0.0", &other),
    ] {
        let packages = entry(name, version, sum);
        let bare = || changed(Some(&old), &packages);
        assert_eq!(bare().code(), Some(DependencyNotGranted), "{packages}");
        for wrong in [
            format!("{name}x@{version}#{sum}"),
            format!("{name}@{version}1#{sum}"),
            format!("{name}@{version}#{}", "1".repeat(64)),
        ] {
            let judged = bare().bringing(&wrong).code();
            assert_eq!(judged, Some(DependencyNotGranted), "{wrong}");
        }
        let right = format!("{name}@{version}#{sum}");
        assert_eq!(bare().bringing(&right).code(), None, "{right}");
    }
    // A lock that is new, or that nobody can read, had none; the plan's stood in its place.
    let one = entry("new", "1.0.0", SUM);
    for old in [None, Some("version = 1")] {
        assert_eq!(changed(old, &one).code(), Some(DependencyNotGranted));
    }
    let known = changed(None, &one).planning(&lock(&one)).judge().unwrap();
    assert_eq!((known.packages.len(), known.new), (1, Vec::new()));
    // A tree whose lock stays brings nothing.
    let still = Scene::new().with("Cargo.lock", &lock(&one));
    assert_eq!(still.code(), None);
}

#[test]
fn a_refused_lock_spells_the_options_that_grant_it() {
    let source = "source = \"sparse+https://index.crates.io/\"";
    let new = registry("dep", source, &format!("checksum = \"{SUM}\""));
    let scene = Scene::new()
        .changing("Cargo.lock", Some(&lock("")), &new)
        .granting("Cargo.lock");
    let files = scene.files.iter();
    let tree = files.map(|(path, content)| (path, &content[..])).collect();
    let allowed = Allowed {
        paths: &scene.grants,
        packages: &[],
    };
    let refused = check(&captured(scene.changes.clone()), &tree, allowed, None).unwrap_err();
    assert_eq!(refused.detail, format!("--grant-package dep@1.0.0#{SUM}"));
}

#[test]
fn a_tree_without_a_lock_takes_the_plans_or_is_refused() {
    let bare = || Scene::new().without("Cargo.lock");
    assert_eq!(bare().code(), Some(LockMissing));
    let detail = |scene: Scene| {
        let files = scene.files.iter();
        let tree = files.map(|(path, content)| (path, &content[..])).collect();
        let allowed = Allowed {
            paths: &[],
            packages: &[],
        };
        let refused = check(&captured(Vec::new()), &tree, allowed, None);
        refused.unwrap_err().detail
    };
    assert_eq!(detail(bare()), "Cargo.lock");
    let other = detail(bare().without("Cargo.toml"));
    assert_eq!(other, "Cargo.lock, and no Cargo.toml at the top");
    let source = "source = \"sparse+https://index.crates.io/\"";
    let one = registry("dep", source, &format!("checksum = \"{SUM}\""));
    let report = bare().planning(&one).judge().unwrap();
    assert_eq!((report.packages.len(), report.new.len()), (1, 0));
    // The tree's own is never replaced.
    for other in [one.as_str(), "version = 9"] {
        let report = Scene::new().planning(other).judge().unwrap();
        assert_eq!(report.packages, []);
    }
}

#[test]
fn every_locked_package_is_of_the_tree_or_of_crates_io_with_a_checksum() {
    let sum = &format!("checksum = \"{SUM}\"");
    let git = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";
    for (source, checksum, code) in [
        (git, sum.as_str(), None),
        ("source = \"sparse+https://index.crates.io/\"", sum, None),
        (git, "", Some(DependencyNotRegistry)),
        (git, "checksum = \"00\"", Some(DependencyNotRegistry)),
        (git, "checksum = \"<none>\"", Some(DependencyNotRegistry)),
        (
            "source = \"git+https://example.org/x?rev=1#1\"",
            "",
            Some(DependencyNotRegistry),
        ),
        (
            "source = \"registry+https://example.org/index\"",
            sum,
            Some(DependencyNotRegistry),
        ),
        (
            "source = \"sparse+https://index.crates.io.example.org/\"",
            sum,
            Some(DependencyNotRegistry),
        ),
        ("source = \"\"", sum, Some(DependencyNotRegistry)),
        ("", sum, Some(DependencyNotRegistry)),
        (
            git,
            &format!("{sum}\nreplace = \"other 1.0.0\""),
            Some(DependencyNotRegistry),
        ),
        ("", "", Some(LockInconsistent)),
    ] {
        let scene = Scene::new().with("Cargo.lock", &registry("dep", source, checksum));
        assert_eq!(scene.code(), code, "{source} {checksum}");
    }
}

#[test]
fn a_local_package_of_the_lock_is_in_the_tree_with_that_version() {
    let member = "[[package]]\nname = \"member\"\nversion = \"0.4.0\"\n";
    let scene = |manifest: &str| {
        Scene::new()
            .with("Cargo.lock", &lock(member))
            .with("m/Cargo.toml", manifest)
    };
    assert_eq!(
        scene("[package]\nname = \"member\"\nversion = \"0.4.0\"\n").code(),
        None
    );
    assert_eq!(
        scene("[package]\nname = \"member\"\nversion = \"0.4.1\"\n").code(),
        Some(LockInconsistent)
    );
    assert_eq!(
        scene("[package]\nname = \"other\"\nversion = \"0.4.0\"\n").code(),
        Some(LockInconsistent)
    );
    assert_eq!(scene("no toml [").code(), Some(LockInconsistent));
    let inherited = scene("[package]\nname = \"member\"\nversion.workspace = true\n");
    assert_eq!(inherited.code(), Some(LockInconsistent));
    let root = format!("{MANIFEST}[workspace.package]\nversion = \"0.4.0\"\n");
    let inherited =
        scene("[package]\nname = \"member\"\nversion.workspace = true\n").with("Cargo.toml", &root);
    assert_eq!(inherited.code(), None);
    assert_eq!(
        Scene::new()
            .with(
                "Cargo.lock",
                &lock("[[package]]\nname = \"calc\"\nversion = \"1.2.3\"\n")
            )
            .code(),
        Some(LockInconsistent)
    );
}

#[test]
fn a_lock_that_cannot_be_read_in_one_way_is_refused() {
    let name = |name: &str, version: &str| {
        format!("version = 4\n[[package]]\nname = \"{name}\"\nversion = \"{version}\"\n")
    };
    for bad in [
        String::new(),
        "version = 4\n".to_owned(),
        lock("").replace("version = 4", "version = 2"),
        lock("").replace("version = 4", "") + "[metadata]\n\"checksum a 1.0.0\" = \"00\"\n",
        lock("").replace("version = 4", "version = 5"),
        "package = 1".to_owned(),
        "\u{0}".to_owned(),
        name("../calc", "1.2.3"),
        name("calc", "../1"),
        name("calc", ""),
        name("", "1.2.3"),
        name("-calc", "1.2.3"),
        format!("{}#{}", lock(""), "x".repeat(4 * 1024 * 1024)),
        format!(
            "version = 4\n{}",
            "[[package]]\nname = \"calc\"\nversion = \"1.2.3\"\n".repeat(2_001)
        ),
        format!("a = {}", "[".repeat(100_000)),
    ] {
        assert_eq!(
            Scene::new().with("Cargo.lock", &bad).code(),
            Some(LockUnreadable),
            "{bad:.60}"
        );
    }
}

#[test]
fn a_lock_of_an_earlier_cargo_that_has_its_checksums_in_place_is_read() {
    let old = lock("").replace("version = 4", "");
    assert_eq!(Scene::new().with("Cargo.lock", &old).code(), None);
    let old = "[[package]]\nname = \"calc\"\nversion = \"1.2.3\"\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nsource = \"registry+https://github.com/rust-lang/crates.io-index\"\n";
    assert_eq!(
        Scene::new().with("Cargo.lock", old).code(),
        Some(DependencyNotRegistry),
        "one without checksums"
    );
}

#[test]
fn a_manifest_may_not_bring_in_what_runs_while_others_build() {
    for (attack, code) in [
        ("build = \"make.rs\"", BuildScriptNew),
        ("build = [\"a.rs\", \"b.rs\"]", BuildScriptNew),
        ("links = \"z\"", NativeLinksNew),
        ("[lib]\nproc-macro = true", ProcMacroNew),
        ("[lib]\nproc_macro = true", ProcMacroNew),
        ("[lib]\ncrate-type = [\"proc-macro\"]", ProcMacroNew),
        ("[lib]\nplugin = true", ProcMacroNew),
        ("[patch.crates-io]\na = { path = \"a\" }", DependencyPatched),
        (
            "[replace]\n\"a:1.0.0\" = { path = \"a\" }",
            DependencyPatched,
        ),
    ] {
        assert_eq!(manifest(attack), Some(code), "{attack}");
        let old = format!("{MANIFEST}{attack}\n");
        let same = Scene::new().changing("Cargo.toml", Some(&old), &format!("{old}# said\n"));
        assert_eq!(same.code(), None, "{attack}");
    }
    for twin in [
        "build = false",
        "[lib]\nproc-macro = false",
        "[lib]\ncrate-type = [\"rlib\"]",
        "[features]\na = []",
        "[dependencies]\nlinks = \"1\"",
    ] {
        assert_eq!(manifest(twin), None, "{twin}");
    }
}

#[test]
fn an_old_file_may_not_become_a_build_script() {
    let off = format!("{MANIFEST}build = false\n");
    let scene = || Scene::new().changing("Cargo.toml", Some(&off), MANIFEST);
    assert_eq!(
        scene().with("build.rs", "fn main() {}").code(),
        Some(BuildScriptNew)
    );
    assert_eq!(scene().code(), None);
    let added = || Scene::new().changing("tool/Cargo.toml", None, "[package]\nname = \"tool\"\n");
    assert_eq!(
        added().with("tool/build.rs", "fn main() {}").code(),
        Some(BuildScriptNew)
    );
    assert_eq!(added().with("build.rs", "fn main() {}").code(), None);
}

#[test]
fn a_script_that_a_manifest_names_may_not_change() {
    let named = format!("{MANIFEST}build = \"tools/make.rs\"\n");
    let scene = || Scene::new().with("Cargo.toml", &named);
    assert_eq!(
        scene().changing("tools/make.rs", Some("a"), "b").code(),
        Some(BuildScriptNew)
    );
    assert_eq!(
        scene().changing("tools/other.rs", Some("a"), "b").code(),
        None
    );
    let nested = Scene::new().with(
        "m/Cargo.toml",
        "[package]\nname = \"m\"\nbuild = \"../tools/./make.rs\"\n",
    );
    assert_eq!(
        nested.changing("tools/make.rs", Some("a"), "b").code(),
        Some(BuildScriptNew)
    );
}

#[test]
fn path_dependencies_are_old_and_inside() {
    for attack in [
        "[dependencies]\na = { path = \"a\" }",
        "[dependencies.a]\npath = \"../a\"",
        "[dependencies.metadata]\npath = \"a\"",
        "[dependencies.dependencies]\npath = \"a\"",
        "[dev-dependencies]\na = { path = \"/etc\" }",
        "[build_dependencies]\na = { path = \"a\" }",
        "[target.'cfg(unix)'.dependencies]\na = { path = \"a\" }",
        "[workspace.dependencies]\na = { path = \"a\" }",
        "workspace = \"../elsewhere\"",
        "[dependencies.bin]\npath = \"a\"",
    ] {
        assert_eq!(manifest(attack), Some(DependencyPath), "{attack}");
    }
    for twin in [
        "[dependencies]\npath = \"1.0\"",
        "[package.metadata.docs]\npath = \"../a\"",
        "[dependencies]\na = \"1\"",
    ] {
        assert_eq!(manifest(twin), None, "{twin}");
    }
    let inside = format!("{MANIFEST}[dependencies]\na = {{ path = \"a/../b\" }}\n");
    assert_eq!(
        Scene::new()
            .changing("Cargo.toml", Some(&inside), &format!("{inside}c = \"1\"\n"))
            .code(),
        None
    );
    let leaving = inside.replace("a/../b", "a/../../b");
    assert_eq!(
        Scene::new()
            .changing(
                "Cargo.toml",
                Some(&leaving),
                &format!("{leaving}c = \"1\"\n")
            )
            .code(),
        Some(DependencyPath)
    );
}

#[test]
fn new_sources_elsewhere_than_crates_io_are_refused() {
    for attack in [
        "[dependencies]\na = { git = \"https://example.org/a\" }",
        "[dependencies]\na = { version = \"1\", registry = \"mine\" }",
        "[target.x86_64-unknown-linux-gnu.dev-dependencies.a]\nregistry-index = \"https://example.org\"",
        "[dependencies.git]\ngit = \"https://example.org/a\"",
    ] {
        assert_eq!(manifest(attack), Some(DependencyNotRegistry), "{attack}");
    }
    for twin in [
        "[dependencies]\ngit = \"1\"",
        "[dependencies]\na = { version = \"1\", features = [\"git\"] }",
    ] {
        assert_eq!(manifest(twin), None, "{twin}");
    }
}

#[test]
fn sources_of_targets_are_rust_files_inside_the_tree() {
    for attack in [
        "[lib]\npath = \"src/lib.txt\"",
        "[[bin]]\nname = \"a\"\npath = \"../a.rs\"",
        "[[example]]\nname = \"a\"\npath = \"/tmp/a.rs\"",
    ] {
        assert_eq!(manifest(attack), Some(UncheckedSource), "{attack}");
    }
    assert_eq!(
        manifest("[lib]\npath = \"src/other.rs\"\n[[bin]]\nname = \"a\"\npath = \"./b/a.rs\""),
        None
    );
}

#[test]
fn a_manifest_that_cannot_be_read_is_refused() {
    let oversized = format!("#{}", "x".repeat(1024 * 1024));
    let deep = format!("a = {}", "[".repeat(10_000));
    // No part of them is long.
    let keys = format!("{}.{} = [\"\"]", "a".repeat(2048), "b".repeat(2049));
    for bad in [
        "[package",
        "a = 1\na = 2",
        oversized.as_str(),
        deep.as_str(),
        keys.as_str(),
    ] {
        assert_eq!(
            Scene::new().changing("a/cargo.toml", None, bad).code(),
            Some(ManifestUnreadable),
            "{bad:.40}"
        );
        // An old one excuses nothing and stops nothing.
        assert_eq!(
            Scene::new()
                .changing("Cargo.toml", Some(bad), MANIFEST)
                .code(),
            None,
            "{bad:.40}"
        );
    }
}
