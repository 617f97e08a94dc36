//! A change that brings a package: it is agreed to by its content, and nobody takes it for judged.

use crate::environment::{Environment, workspace};
use crate::lines::claim;
use crate::verify::{POLICY, verify};
use std::fs;
use std::path::PathBuf;

/// The flight needs nothing of what the change takes away.
#[test]
fn a_package_that_only_the_baseline_has_need_not_be_there() {
    let environment = Environment::with_pricing();
    let read = |name: &str| fs::read_to_string(environment.path("repo").join(name)).unwrap();
    let (manifest, lock) = (read("Cargo.toml"), read("Cargo.lock"));
    let source = "registry+https://github.com/rust-lang/crates.io-index";
    let own = "name = \"pricing\"\nversion = \"1.0.0\"\n";
    let package = format!(
        "[[package]]\nname = \"gone\"\nversion = \"1.0.0\"\nsource = \"{source}\"\nchecksum = \"{}\"\n\n",
        "0".repeat(64)
    );
    let with = lock
        .replace("[[package]]\n", &format!("{package}[[package]]\n"))
        .replace(own, &format!("{own}dependencies = [\n \"gone\",\n]\n"));
    environment.write("repo/Cargo.lock", &with);
    let depends = manifest.replace("[dependencies]", "[dependencies]\ngone = \"1\"");
    environment.write("repo/Cargo.toml", &depends);
    environment.commit("With a package");
    let fixed = workspace().join("fixtures/pricing/candidate/src/main.rs");
    let files = [
        ("Cargo.toml", manifest),
        ("Cargo.lock", lock),
        ("src/main.rs", fs::read_to_string(fixed).unwrap()),
    ];
    let files = files.map(|(name, text)| (name.to_owned(), text));
    environment.candidate("without", &files.into());
    let mut grants = Vec::new();
    for path in ["src", "Cargo.toml", "Cargo.lock"] {
        grants.extend(["--grant", path]);
    }
    let held = environment.certify("without", &grants);
    assert_eq!(held.code, 0, "{}", held.text);
    let why = "it did not build: session/CRATE_MISSING: gone-1.0.0.crate";
    assert!(held.stderr.contains(why), "{}", held.text);
    let claimed = claim(&environment, "witness/failedOnBaseline");
    assert_eq!(claimed["kind"], "unbuilt");
}

/// Name, version and checksum of a package of this workspace, which is in cargo's cache.
fn locked(name: &str) -> (String, String) {
    let lock = fs::read_to_string(workspace().join("Cargo.lock")).unwrap();
    let lock: toml::Table = lock.parse().unwrap();
    let packages = lock["package"].as_array().unwrap();
    let package = packages.iter().find(|p| p["name"].as_str() == Some(name));
    let text = |key: &str| package.unwrap()[key].as_str().unwrap().to_owned();
    (text("version"), text("checksum"))
}

#[test]
fn a_package_comes_in_by_its_checksum_and_a_policy_says_whether_it_may() {
    let environment = Environment::with_pricing();
    let (version, checksum) = locked("itoa");
    let shared = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let shared = shared.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    let own = environment.path("home/.cargo");
    fs::create_dir_all(&own).unwrap();
    std::os::unix::fs::symlink(shared.unwrap().join("registry"), own.join("registry")).unwrap();
    let read = |name: &str| fs::read_to_string(environment.path("repo").join(name)).unwrap();
    let fixed = workspace().join("fixtures/pricing/candidate/src/main.rs");
    let fixed = fs::read_to_string(fixed).unwrap();
    let printed = "total(u64::from(quantity))";
    let with = format!("itoa::Buffer::new().format({printed})");
    let source = "registry+https://github.com/rust-lang/crates.io-index";
    let own = "name = \"pricing\"\nversion = \"1.0.0\"\n";
    let package = format!(
        "[[package]]\nname = \"itoa\"\nversion = \"{version}\"\nsource = \"{source}\"\nchecksum = \"{checksum}\"\n\n"
    );
    let lock = read("Cargo.lock")
        .replace("[[package]]\n", &format!("{package}[[package]]\n"))
        .replace(own, &format!("{own}dependencies = [\n \"itoa\",\n]\n"));
    let manifest = read("Cargo.toml").replace("[dependencies]", "[dependencies]\nitoa = \"1\"");
    let files = [
        ("Cargo.toml", manifest),
        ("Cargo.lock", lock),
        ("src/main.rs", fixed.replace(printed, &with)),
    ];
    let files = files.map(|(name, text)| (name.to_owned(), text));
    environment.candidate("packed", &files.into());

    let mut grants = vec![
        "--grant",
        "src",
        "--grant",
        "Cargo.toml",
        "--grant",
        "Cargo.lock",
    ];
    let refused = environment.certify("packed", &grants);
    let option = format!("--grant-package itoa@{version}#{checksum}");
    let told = format!("certifier/DEPENDENCY_NOT_GRANTED: {option}\n");
    assert!(refused.stdout.contains(&told), "{}", refused.text);
    assert_eq!(refused.code, 10);

    // As it was printed.
    grants.extend(option.split(' '));
    let held = environment.certify("packed", &grants);
    assert_eq!(held.code, 0, "{}", held.text);
    let open =
        format!("what the new package itoa {version} does: nothing of it was read or mutated");
    assert!(held.stdout.contains(&open), "{}", held.text);
    let key = environment.public_key();
    environment.write("policy.json", POLICY);
    let run = verify(&environment, &key, "packed", &[]);
    let code = format!("certifier/NEW_PACKAGES_NOT_ALLOWED: 1: itoa {version}");
    assert!(run.stdout.contains(&code), "{}", run.text);
    assert_eq!(run.code, 13);
    let allowed = POLICY.replace("\"allow\":{", "\"allow\":{\"new_packages\":true,");
    assert_ne!(allowed, POLICY);
    environment.write("policy.json", &allowed);
    let run = verify(&environment, &key, "packed", &[]);
    assert_eq!(run.code, 0, "{}", run.text);
}
