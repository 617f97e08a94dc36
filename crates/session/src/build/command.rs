//! The programs a build starts, as data: arguments, environment, limits.

use crate::profile::Profile;
use crate::{SessionCode, SessionError};
use flightproof_core::escape;
use flightproof_evidence::{BuildOrder, BuildTarget, Guard, SuiteOrder};
use flightproof_frame::protocol::{Exec, ExecLimits, Role, layout};
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// Most bytes of cargo's messages: some thousand short diagnostics. With [`MAX_STDERR`], and in
/// base64, it stays below the 4 MiB of one reply.
const MAX_STDOUT: u64 = 2560 << 10;
/// Most bytes of standard error of a build.
const MAX_STDERR: u64 = 256 << 10;
/// Separator of `CARGO_ENCODED_RUSTFLAGS`: unlike a space it cannot be part of a path.
const FLAG_SEPARATOR: &str = "\x1f";
/// The system's linker. The toolchain's own one is started by a wrapper that looks for it in
/// /proc, which a session does not have.
pub(super) const LINKER: &str = "link-arg=-fuse-ld=bfd";
/// Flags by which what is known of the callers of a function that is not inlined changes nothing about it
/// (without `link-dead-code` a function of the crate alone is cut to what its callers hand to it), and by
/// which a program holds nothing beside what runs.
pub(super) const WHOLE: [&str; 6] = [
    "-C",
    "codegen-units=1",
    "-C",
    "link-dead-code",
    "-C",
    "strip=symbols",
];
/// Where cargo looks for the flags of every crate.
const RUST_FLAGS: &str = "CARGO_ENCODED_RUSTFLAGS";
/// Where the compiled guard lies.
pub(super) const GUARD_DIR: &str = "/flight/target/guard";

/// `cargo build` of what is ordered: offline, locked, the dependencies from the vendor directory.
pub(super) fn cargo(order: &BuildOrder, wall_ms: u64) -> Exec {
    let mut args = vec![];
    match &order.target {
        BuildTarget::Bin { name } => args.extend(["--bin", name.as_str()]),
        BuildTarget::Driver { package, .. } | BuildTarget::Suite { package, .. } => {
            // The driver, or test, is linked with it and unwinds.
            args.extend(["--config", "profile.dev.panic=\"unwind\"", "--lib"]);
            if let Some(package) = package {
                args.extend(["--package", package.as_str()]);
            }
        }
    }
    if !order.optimized {
        return started(&["build"], &args, &order.guard, wall_ms);
    }
    // Checks and debug assertions stay those of the profile.
    args.extend(["--config", "profile.dev.opt-level=3"]);
    args.extend(["--config", "profile.dev.lto=\"off\""]);
    let started = started(&["build"], &args, &order.guard, wall_ms);
    let mut env = started.env;
    let whole = WHOLE.map(|flag| format!("{FLAG_SEPARATOR}{flag}")).concat();
    env.entry(RUST_FLAGS.to_owned())
        .or_default()
        .push_str(&whole);
    Exec { env, ..started }
}

/// `cargo test --no-run` of named integration tests: the library is built as it is shipped, without its
/// own tests.
pub(super) fn cargo_named_tests(
    (package, tests): (Option<&str>, &[String]),
    guard: &Guard,
    wall_ms: u64,
) -> Exec {
    let mut args = vec!["--config", "profile.dev.panic=\"unwind\""];
    for test in tests {
        args.extend(["--test", test.as_str()]);
    }
    if let Some(package) = package {
        args.extend(["--package", package]);
    }
    started(&["test", "--no-run"], &args, guard, wall_ms)
}

/// `cargo test --no-run` of the tests of packages: unit tests and integration tests. Documentation
/// tests are compiled while they run, and so are left out.
pub(super) fn cargo_tests(order: &SuiteOrder, wall_ms: u64) -> Exec {
    let mut args = vec!["--tests"];
    for package in &order.packages {
        args.extend(["--package", package.as_str()]);
    }
    for feature in &order.features {
        args.extend(["--features", feature.as_str()]);
    }
    started(&["test", "--no-run"], &args, &order.guard, wall_ms)
}

fn started(command: &[&str], what: &[&str], guard: &Guard, wall_ms: u64) -> Exec {
    let manifest = format!("{}/Cargo.toml", layout::SOURCE);
    let vendor = format!("source.flightproof.directory=\"{}\"", layout::VENDOR);
    let mut args = command.to_vec();
    args.extend([
        "--offline",
        "--locked",
        "--message-format=json-diagnostic-short",
        "--manifest-path",
        &manifest,
        "--config",
        "source.crates-io.replace-with=\"flightproof\"",
        "--config",
        &vendor,
        "--config",
        "profile.dev.debug=false",
        "--config",
        "profile.dev.incremental=false",
    ]);
    args.extend(what);
    let mut env = environment();
    env.insert(RUST_FLAGS.to_owned(), flags(guard));
    program("cargo", &args, env, wall_ms)
}

/// The compiler itself.
pub(super) fn compiler(args: &[&str], wall_ms: u64) -> Exec {
    program("rustc", args, environment(), wall_ms)
}

/// What prints a file of the build.
pub(super) fn reader(file: &str, wall_ms: u64) -> Exec {
    let started = program("cat", &[file], environment(), wall_ms);
    Exec {
        program: "/bin/cat".to_owned(),
        ..started
    }
}

fn program(tool: &str, args: &[&str], env: BTreeMap<String, String>, wall_ms: u64) -> Exec {
    Exec {
        role: Role::Build,
        program: format!("{}/bin/{tool}", layout::TOOLCHAIN),
        args: args.iter().map(|a| (*a).to_owned()).collect(),
        env,
        stdin: Vec::new().into(),
        files: BTreeMap::new(),
        limits: ExecLimits {
            wall_ms,
            stdout_bytes: MAX_STDOUT,
            stderr_bytes: MAX_STDERR,
        },
        selector: None,
        tree: None,
    }
}

/// The environment of every build tool: the same in every session, nothing of the host.
pub(crate) fn environment() -> BTreeMap<String, String> {
    static RUST: OnceLock<BTreeMap<String, String>> = OnceLock::new();
    let rust = || Profile::named("rust").map(|profile| profile.environment());
    RUST.get_or_init(|| rust().unwrap_or_default()).clone()
}

/// Flags of every crate of every build: lints are the author's business, not ours.
fn flags(guard: &Guard) -> String {
    let guard = guard_path(guard);
    // A library with mutants names the guard in its own metadata, and whatever links the library,
    // changed or not, must find it.
    let found = format!("dependency={GUARD_DIR}");
    let flags = [
        "--cap-lints",
        "allow",
        "-C",
        LINKER,
        "--extern",
        &guard,
        "-L",
        &found,
    ];
    flags.join(FLAG_SEPARATOR)
}

pub(super) fn guard_path(guard: &Guard) -> String {
    format!("{0}={GUARD_DIR}/lib{0}.rlib", guard.name)
}

/// The guard's name becomes part of paths and flags.
pub(super) fn check_guard(guard: &Guard) -> Result<(), SessionError> {
    let plain = guard
        .name
        .bytes()
        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    let starts = guard
        .name
        .bytes()
        .next()
        .is_some_and(|b| b.is_ascii_lowercase());
    if plain && starts && guard.name.len() <= 64 {
        return Ok(());
    }
    Err(SessionCode::SpecInvalid.refuse(format_args!(
        "{} is no crate name of a guard",
        escape(&guard.name, 64)
    )))
}
