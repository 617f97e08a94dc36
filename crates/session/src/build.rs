//! A candidate, built inside a session: offline, locked, from exactly the uploaded bytes.
//!
//! All builds of one session share their flags and the mutation guard, so that dependencies are
//! compiled once.

mod command;
pub(crate) mod overlay;
mod product;
mod reads;
mod suite;

pub(crate) use command::environment;

use crate::crates::Shipment;
use crate::diagnostics::Messages;
use crate::observe::limit;
use crate::upload::{self, execute, promote};
use crate::{LimitEvents, Session, SessionCode, SessionError};
use command::{GUARD_DIR, LINKER, WHOLE, check_guard, guard_path};
use flightproof_archive::paws;
use flightproof_core::{Digest, RelPath, escape};
use flightproof_evidence::{
    BuildAnswer, BuildOrder, BuildRecord, BuildTarget, Built, Diagnostic, Guard, Package,
};
use flightproof_frame::protocol::{CrateFile, Outcome, Place, Status, layout};
use overlay::Overlaid;
use product::{Library, binary, library, settings};
use reads::reads;

/// Last bytes of standard error that are handed on.
const MAX_TAIL: usize = 4096;
/// The cargo profile everything is built in.
const PROFILE: &str = "dev";
/// A session with a candidate's tree and dependencies in it, ready to build.
#[derive(Debug)]
pub struct Workshop {
    source: Digest,
    tree: Overlaid,
    packages: Vec<Package>,
    wall_ms: u64,
    guard: Option<Guard>,
}

impl Workshop {
    /// Uploads the tree (a PAWS1 archive), its dependencies, and a lock file if the tree has none: its own
    /// is never replaced. A build may take `wall_ms` milliseconds.
    ///
    /// # Errors
    /// `UPLOAD_MISMATCH` if the archive is not acceptable or arrives as something else, and what
    /// the session refuses.
    pub fn furnish(
        session: &mut dyn Session,
        archive: &[u8],
        shipment: &Shipment,
        lock: Option<&[u8]>,
        wall_ms: u64,
    ) -> Result<Self, SessionError> {
        let unpacked = paws::read(archive).map_err(upload::unpackable)?;
        let source = unpacked.snapshot.snapshot_id();
        upload::archive(session, Place::Source, archive, source)?;
        let path = RelPath::new("Cargo.lock").map_err(|e| SessionCode::UploadMismatch.refuse(e))?;
        let locked = unpacked.files().any(|(entry, _)| entry.path == path);
        if let Some(lock) = lock.filter(|_| !locked) {
            upload::files(session, Place::Overlay, [(path, false, lock)])?;
        }
        upload::crates(session, shipment)?;
        let tree = Overlaid::of(&unpacked);
        let mut packages: Vec<Package> = shipment.manifest.files.iter().map(package).collect();
        packages.sort();
        Ok(Self {
            source,
            tree,
            packages,
            wall_ms,
            guard: None,
        })
    }

    /// Builds one program and makes it executable for cases.
    ///
    /// # Errors
    /// `BUILD_PRODUCT` if the build ends well without the program, and what the session refuses.
    /// A build that fails or hits a limit is an answer, not an error.
    pub fn build(
        &mut self,
        session: &mut dyn Session,
        order: &BuildOrder,
    ) -> Result<BuildAnswer, SessionError> {
        check_guard(&order.guard)?;
        self.tree.lay(session, &order.overlay)?;
        if let Some(failed) = self.compile_guard(session, &order.guard)? {
            return Ok(failed);
        }
        let outcome = execute(session, command::cargo(order, self.wall_ms))?;
        let messages = match self.answered(session, &outcome, Messages::parse(&outcome.stdout))? {
            Ok(messages) => messages,
            Err(answer) => return Ok(answer),
        };
        let (from, listed) = match &order.target {
            BuildTarget::Bin { name } => {
                let program = binary(&messages, name)?;
                (program.clone(), program)
            }
            BuildTarget::Driver { package, source } => {
                let library = library(&messages, package.as_deref())?;
                match self.drive(session, order, &library, source)? {
                    Ok(program) => (program, library.rlib),
                    Err(answer) => return Ok(answer),
                }
            }
            BuildTarget::Suite { package, tests } => {
                let library = library(&messages, package.as_deref())?;
                let what = (package.as_deref(), &tests[..]);
                return self.build_named_tests(session, order, what, &library.rlib);
            }
        };
        let sha256 = promote(session, &from, &order.program)?;
        // Schemata hold other lines than the tree: only a build of the tree itself tells.
        let reads = match order.overlay.is_empty() {
            true => Some(reads(session, &listed, self.wall_ms)?),
            false => None,
        };
        Ok(BuildAnswer::Built(Built {
            program: order.program.clone(),
            sha256,
            record: self.record(&messages),
            reads,
        }))
    }

    fn record(&self, messages: &Messages) -> BuildRecord {
        BuildRecord {
            source: self.source,
            packages: self.packages.clone(),
            profile: PROFILE.to_owned(),
            settings: settings(messages),
            build_scripts: messages.build_scripts,
            proc_macros: messages.proc_macros(),
        }
    }

    fn compile_guard(
        &mut self,
        session: &mut dyn Session,
        guard: &Guard,
    ) -> Result<Option<BuildAnswer>, SessionError> {
        if self.guard.as_ref() == Some(guard) {
            return Ok(None);
        }
        let file = extra(
            session,
            &format!("{}.rs", guard.name),
            guard.source.as_bytes(),
        )?;
        // Every place that a mutant may stand at calls it, so it is optimised also where the rest is not.
        let args = [
            "--crate-type=rlib",
            "--edition=2021",
            "-Copt-level=3",
            "--error-format=json",
            "--cap-lints=allow",
            "--out-dir",
            GUARD_DIR,
            "--crate-name",
            &guard.name,
            &file,
        ];
        let outcome = execute(session, command::compiler(&args, self.wall_ms))?;
        let messages = Messages::parse_rustc(&outcome.stderr);
        match self.answered(session, &outcome, messages)? {
            Ok(_) => self.guard = Some(guard.clone()),
            Err(answer) => return Ok(Some(answer)),
        }
        Ok(None)
    }

    /// Compiles the witness's driver with the library. The path of the program, or why not.
    fn drive(
        &self,
        session: &mut dyn Session,
        order: &BuildOrder,
        library: &Library,
        source: &[u8],
    ) -> Result<Result<String, BuildAnswer>, SessionError> {
        let file = extra(session, "driver.rs", source)?;
        let program = format!("{}/driver-{}", layout::TARGET, order.program);
        let library_path = format!("{}={}", library.name, library.rlib);
        let dependencies = format!("dependency={}/debug/deps", layout::TARGET);
        // The library names the guard in its own metadata once it holds mutants.
        let guards = format!("dependency={GUARD_DIR}");
        let guard = guard_path(&order.guard);
        let mut args = vec![
            "--crate-name=driver",
            "--edition=2024",
            "-C",
            LINKER,
            "--error-format=json",
            "--cap-lints=allow",
            "--extern",
            &library_path,
            "--extern",
            &guard,
            "-L",
            &dependencies,
            "-L",
            &guards,
            "-o",
            &program,
            &file,
        ];
        if order.optimized {
            args.extend(WHOLE);
            // Debug assertions, and the checks with them, stay on as they are without optimisation.
            args.extend(["-C", "opt-level=3", "-C", "debug-assertions=on"]);
        }
        let outcome = execute(session, command::compiler(&args, self.wall_ms))?;
        let messages = Messages::parse_rustc(&outcome.stderr);
        Ok(self.answered(session, &outcome, messages)?.map(|_| program))
    }

    /// The messages of a compiler that succeeded, or what to answer instead.
    fn answered(
        &self,
        session: &mut dyn Session,
        outcome: &Outcome,
        messages: Messages,
    ) -> Result<Result<Messages, BuildAnswer>, SessionError> {
        let diagnostics = messages.diagnostics.clone();
        Ok(match unbuilt(session, outcome, diagnostics)? {
            None => Ok(messages),
            Some(answer) => Err(answer),
        })
    }
}

/// What to answer for a tool that did not end well; `None` for one that did.
pub(crate) fn unbuilt(
    session: &mut dyn Session,
    outcome: &Outcome,
    diagnostics: Vec<Diagnostic>,
) -> Result<Option<BuildAnswer>, SessionError> {
    let events = session.events()?;
    concluded(outcome, events, diagnostics)
}

/// The same, with the limits that were hit already read.
pub(crate) fn concluded(
    outcome: &Outcome,
    events: LimitEvents,
    diagnostics: Vec<Diagnostic>,
) -> Result<Option<BuildAnswer>, SessionError> {
    if let Some(limit) = limit(outcome, events) {
        let limit = limit.to_owned();
        return Ok(Some(BuildAnswer::Limit { limit }));
    }
    match &outcome.status {
        Status::Exited { code: 0 } => Ok(None),
        Status::LaunchFailed { reason } => {
            Err(SessionCode::LaunchFailed.refuse(escape(reason, 300)))
        }
        _ => {
            let start = outcome.stderr.len().saturating_sub(MAX_TAIL);
            let tail = outcome.stderr.get(start..).unwrap_or_default();
            Ok(Some(BuildAnswer::Failed {
                diagnostics,
                tail: tail.into(),
            }))
        }
    }
}

fn extra(session: &mut dyn Session, name: &str, bytes: &[u8]) -> Result<String, SessionError> {
    let path = RelPath::new(name).map_err(|e| SessionCode::SpecInvalid.refuse(e))?;
    upload::files(session, Place::Extra, [(path, false, bytes)])?;
    Ok(format!("{}/{name}", layout::EXTRA))
}

fn package(file: &CrateFile) -> Package {
    Package {
        name: file.name.clone(),
        version: file.version.clone(),
        sha256: file.sha256,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::tests::recording;
    use crate::fake::{FakeSession, Step};
    use flightproof_core::Bytes;
    use flightproof_evidence::ProfileSettings;
    use std::collections::BTreeMap;

    fn order() -> BuildOrder {
        BuildOrder {
            program: "pristine".to_owned(),
            target: BuildTarget::Bin {
                name: "demo".to_owned(),
            },
            overlay: BTreeMap::new(),
            guard: Guard {
                name: "guard_0".to_owned(),
                source: String::new(),
            },
            optimized: false,
        }
    }

    /// A workshop whose guard is compiled, with one file in its tree.
    fn workshop() -> Workshop {
        let path: RelPath = "src/main.rs".parse().unwrap();
        Workshop {
            source: Digest::of(b""),
            tree: Overlaid::new([(path, (false, b"pristine".to_vec()))]),
            packages: vec![],
            wall_ms: 1000,
            guard: Some(order().guard),
        }
    }

    fn steps(status: Status, stdout: &str, events: LimitEvents) -> Vec<Step> {
        use flightproof_frame::protocol::{Reply, Request};
        let outcome = Outcome {
            status,
            stdout: stdout.as_bytes().into(),
            stderr: b"error: said so".as_slice().into(),
            complete: true,
            armed: false,
        };
        let request = Request::Exec(command::cargo(&order(), 1000));
        vec![
            crate::fake::tests::call(request, Reply::Exec(outcome)),
            Step::Events { events },
        ]
    }

    fn build(
        status: Status,
        stdout: &str,
        events: LimitEvents,
    ) -> Result<BuildAnswer, SessionError> {
        let mut session = FakeSession::new(recording(steps(status, stdout, events)));
        workshop().build(&mut session, &order())
    }

    const QUIET: LimitEvents = LimitEvents { pids: 0, memory: 0 };

    #[test]
    fn a_limit_that_ended_a_build_is_named() {
        let memory = LimitEvents { pids: 0, memory: 1 };
        let processes = LimitEvents { pids: 1, memory: 0 };
        let table = [
            (Status::TimedOut, QUIET, "time"),
            (Status::OutputLimit, QUIET, "output"),
            (Status::Exited { code: 101 }, memory, "memory"),
            (Status::Signaled { signal: 9 }, processes, "processes"),
        ];
        for (status, events, limit) in table {
            let limit = limit.to_owned();
            let expected = BuildAnswer::Limit { limit };
            assert_eq!(build(status, "", events).unwrap(), expected);
        }
    }

    #[test]
    fn a_build_that_fails_hands_on_what_was_said_and_one_that_never_ran_is_no_answer() {
        let failed = build(Status::Exited { code: 101 }, "", QUIET).unwrap();
        let tail: Bytes = b"error: said so".as_slice().into();
        let diagnostics = vec![];
        assert_eq!(failed, BuildAnswer::Failed { diagnostics, tail });
        let reason = "gone".to_owned();
        let refused = build(Status::LaunchFailed { reason }, "", QUIET).unwrap_err();
        assert_eq!(refused.code, SessionCode::LaunchFailed);
    }

    #[test]
    fn a_product_of_another_name_or_from_outside_of_the_tree_is_none() {
        let artifact = |name: &str, manifest: &str| {
            serde_json::json!({"reason": "compiler-artifact", "manifest_path": manifest,
                "target": {"name": name, "kind": ["bin"]}, "filenames": [], "executable": "/flight/target/debug/x"})
            .to_string()
        };
        for stdout in [
            String::new(),
            artifact("other", "/flight/src/Cargo.toml"),
            artifact("demo", "/flight/vendor/demo/Cargo.toml"),
        ] {
            let refused = build(Status::Exited { code: 0 }, &stdout, QUIET).unwrap_err();
            assert_eq!(refused.code, SessionCode::BuildProduct, "{stdout}");
        }
        // The twin is found, and promoting it is the next thing asked of the session.
        let good = artifact("demo", "/flight/src/Cargo.toml");
        let refused = build(Status::Exited { code: 0 }, &good, QUIET).unwrap_err();
        assert_eq!(refused.code, SessionCode::FakeMismatch);
    }

    #[test]
    fn a_manifest_that_changes_the_profile_of_its_own_code_is_noted_and_no_other() {
        let artifact = |kind: &str, manifest: &str, level: &str, checked: bool| {
            serde_json::json!({"reason": "compiler-artifact", "manifest_path": manifest,
                "target": {"name": "demo", "kind": [kind]}, "filenames": [], "executable": null,
                "profile": {"opt_level": level, "debuginfo": 0, "debug_assertions": true,
                    "overflow_checks": checked, "test": false}})
            .to_string()
        };
        let own = "/flight/src/Cargo.toml";
        let found = |lines: &[String]| settings(&Messages::parse(lines.join("\n").as_bytes()));
        let usual = artifact("bin", own, "0", true);
        let beside = [
            usual.clone(),
            artifact("lib", "/flight/vendor/sha2/Cargo.toml", "3", true),
            artifact("proc-macro", own, "3", true),
            artifact("custom-build", own, "3", true),
        ];
        assert_eq!(found(&beside), None);
        for (level, checked) in [("3", true), ("0", false), ("s", false)] {
            let changed = [usual.clone(), artifact("lib", own, level, checked)];
            let expected = ProfileSettings {
                opt_level: level.to_owned(),
                debug_assertions: true,
                overflow_checks: checked,
            };
            assert_eq!(found(&changed), Some(expected));
        }
    }

    #[test]
    fn a_guard_whose_name_is_more_than_a_name_is_refused() {
        for name in ["", "../x", "a b", "a=b", "1a", "A", "a\x1f-Clinker=x", "_a"] {
            let mut order = order();
            order.guard.name = name.to_owned();
            let mut session = FakeSession::new(recording(vec![]));
            let refused = workshop().build(&mut session, &order).unwrap_err();
            assert_eq!(refused.code, SessionCode::SpecInvalid, "{name:?}");
        }
    }

    #[test]
    fn cargo_is_offline_locked_and_has_only_our_environment() {
        let exec = command::cargo(&order(), 1000);
        for word in ["--offline", "--locked", "/flight/src/Cargo.toml"] {
            assert!(exec.args.iter().any(|a| a == word), "{word}");
        }
        assert_eq!(exec.program, "/toolchain/bin/cargo");
        assert_eq!(exec.env["RUSTC"], "/toolchain/bin/rustc");
        assert!(!exec.env.keys().any(|k| k.contains("WRAPPER")));
        assert_eq!(
            exec.env["CARGO_ENCODED_RUSTFLAGS"],
            "--cap-lints\x1fallow\x1f-C\x1flink-arg=-fuse-ld=bfd\x1f--extern\x1fguard_0=/flight/target/guard/libguard_0.rlib\x1f-L\x1fdependency=/flight/target/guard"
        );
    }

    #[test]
    fn a_program_for_comparison_is_optimised_with_the_checks_of_the_judged_one() {
        let judged = command::cargo(&order(), 1000);
        let compared = command::cargo(
            &BuildOrder {
                optimized: true,
                ..order()
            },
            1000,
        );
        let more = compared
            .args
            .iter()
            .filter(|arg| !judged.args.contains(arg));
        let more: Vec<&str> = more.map(String::as_str).collect();
        assert_eq!(more, ["profile.dev.opt-level=3", "profile.dev.lto=\"off\""]);
        let flags = "CARGO_ENCODED_RUSTFLAGS";
        let own = &judged.env[flags];
        assert_eq!(
            compared.env[flags].strip_prefix(own.as_str()),
            Some("\x1f-C\x1fcodegen-units=1\x1f-C\x1flink-dead-code\x1f-C\x1fstrip=symbols")
        );
    }
}
