//! What stands around each program that the runner starts, and the order in which it goes up.

use crate::bpf::Program;
use crate::calls::{drop_bounding_set, install_filter};
use crate::filter::{self, Audience};
use crate::room;
use crate::view::{Grant, Reach, View, grant};
use flightproof_core::{Bytes, RelPath};
use flightproof_frame::protocol::{PROVIDER_PORT, layout};
use rustix::fd::BorrowedFd;
use rustix::process::{Gid, Resource, Rlimit, Uid, setrlimit};
use rustix::thread::{self, CapabilitySet, CapabilitySets};
use std::collections::BTreeMap;

/// The walls around one program.
pub(crate) struct Walls<'f> {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    tree: Tree,
    /// What lies in the scratch of a case.
    files: &'f BTreeMap<RelPath, Bytes>,
    cwd: String,
    grants: Vec<Grant>,
    /// The port that may be connected to.
    port: Option<u16>,
    filter: Program,
    limits: Vec<(Resource, u64)>,
}

/// The directory tree a program finds itself in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tree {
    /// The session's.
    Session,
    /// The session's, with scratches of this run over the build's: see [`room`].
    Build,
    /// One made for this run: see [`room`].
    Own,
    /// As [`Tree::Own`], with the captured tree in it.
    OwnWithSource,
    /// The session's, with the processes of this run in `/proc`: see [`room`].
    Agent,
}

/// The uid and gid of every build in a session: one build reads what the one before wrote.
pub(crate) const BUILD: u32 = 1;
/// The uid that unpacks dependencies. A build has another one, so that it cannot change them.
pub(crate) const UNPACK: u32 = 2;
/// The uid of an agent. No build shares its session, and still it is not a build's.
pub(crate) const AGENT: u32 = 3;

/// Open descriptors of a case: far more than a program with one scratch needs.
const CASE_FILES: u64 = 256;
/// Open descriptors of a build: a linker opens every object at once.
const BUILD_FILES: u64 = 4_096;
/// Largest file of a case in bytes.
const CASE_FILE_BYTES: u64 = 64 << 20;
/// Largest file of a build in bytes: a debug build's archive of a large dependency.
const BUILD_FILE_BYTES: u64 = 2 << 30;
/// Stack of a program's first thread in bytes: eight times the usual, for deep recursion that is
/// correct, and an end for recursion that is not.
const STACK_BYTES: u64 = 64 << 20;
/// Address space of an unpacking child in bytes: a decompressor needs a few hundred KiB.
const UNPACK_MEMORY_BYTES: u64 = 512 << 20;

impl<'f> Walls<'f> {
    /// Around compilers: they read sources and tools and write build output.
    pub(crate) fn build() -> Self {
        let mut grants = devices();
        grants.extend(TOOLS.map(|path| grant(path, Reach::Run)));
        for path in [layout::SOURCE, layout::VENDOR, layout::EXTRA] {
            grants.push(grant(path, Reach::Read));
        }
        grants.push(grant(layout::TARGET, Reach::Output));
        grants.push(grant(layout::CARGO_HOME, Reach::Scratch));
        grants.push(grant(layout::TMP, Reach::Scratch));
        Self {
            uid: BUILD,
            gid: BUILD,
            files: &NO_FILES,
            tree: Tree::Build,
            cwd: layout::TMP.to_owned(),
            grants,
            port: None,
            filter: filter::program(Audience::Build),
            limits: limits(BUILD_FILES, BUILD_FILE_BYTES),
        }
    }

    /// Around an agent: it runs tools and its program, and writes its own places.
    pub(crate) fn agent() -> Self {
        let mut grants = devices();
        grants.extend(TOOLS.map(|path| grant(path, Reach::Run)));
        grants.push(grant(layout::AGENT_PROGRAM, Reach::Run));
        grants.push(grant(layout::EXTRA, Reach::Read));
        grants.push(grant(room::PROCESSES, Reach::Read));
        grants.push(grant(layout::AGENT, Reach::Output));
        Self {
            uid: AGENT,
            // The group that may walk through the work directory.
            gid: BUILD,
            files: &NO_FILES,
            tree: Tree::Agent,
            cwd: layout::AGENT_WORK.to_owned(),
            grants,
            port: Some(PROVIDER_PORT),
            filter: filter::program(Audience::Agent),
            limits: limits(BUILD_FILES, BUILD_FILE_BYTES),
        }
    }

    /// Around one case: it is entered at `entry` (see [`Audience::Case`]) and writes its scratch.
    pub(crate) fn case(uid: u32, entry: Option<u64>) -> Self {
        let mut grants = devices();
        for path in [
            "/usr/lib",
            "/usr/lib32",
            "/usr/lib64",
            layout::NODE,
            "/lib",
            "/lib32",
            "/lib64",
        ] {
            grants.push(grant(path, Reach::Read));
        }
        grants.extend(LOADERS.iter().map(|path| grant(*path, Reach::Run)));
        grants.push(grant(layout::CASE, Reach::Scratch));
        Self {
            uid,
            gid: uid,
            files: &NO_FILES,
            tree: Tree::Own,
            cwd: layout::CASE.to_owned(),
            grants,
            port: None,
            filter: filter::program(Audience::Case(entry)),
            limits: limits(CASE_FILES, CASE_FILE_BYTES),
        }
    }

    /// The same with the captured tree to read, starting in this folder of it: for the tree's own
    /// tests, which have nothing to be kept from knowing.
    pub(crate) fn with_source(mut self, folder: &str) -> Self {
        self.tree = Tree::OwnWithSource;
        self.grants.push(grant(layout::SOURCE, Reach::Read));
        self.cwd = format!("{}/{folder}", layout::SOURCE);
        self
    }

    /// Around the unpacking of one dependency: it writes the vendor directory and nothing else.
    pub(crate) fn unpack() -> Self {
        let mut limits = limits(CASE_FILES, BUILD_FILE_BYTES);
        limits.push((Resource::As, UNPACK_MEMORY_BYTES));
        Self {
            uid: UNPACK,
            gid: BUILD,
            files: &NO_FILES,
            tree: Tree::Session,
            cwd: layout::VENDOR.to_owned(),
            grants: vec![grant(layout::VENDOR, Reach::Scratch)],
            port: None,
            filter: filter::program(Audience::Case(None)),
            limits,
        }
    }

    /// The same with these files in the scratch.
    pub(crate) fn with_files(self, files: &'f BTreeMap<RelPath, Bytes>) -> Self {
        Self { files, ..self }
    }

    /// Makes the tree the program will see. For the first process of its mount namespace, which is
    /// still the session's root.
    pub(crate) fn make_tree(&self) -> Result<(), String> {
        match self.tree {
            Tree::Session => Ok(()),
            Tree::Build => room::renew_scratches(),
            Tree::Own => room::enter(&[], self.uid, self.files),
            Tree::OwnWithSource => room::enter(&[layout::SOURCE], self.uid, self.files),
            Tree::Agent => room::show_own_processes(),
        }
    }

    /// Puts the walls up around the calling process. They cannot be taken down again.
    ///
    /// The order matters: paths are opened while that is still allowed, the uid goes before the
    /// last capability, and the filter comes last, because it forbids what went before.
    pub(crate) fn enter(&self, program: Option<BorrowedFd<'_>>) -> Result<(), String> {
        let view = View::new(&self.grants, program, self.port)?;
        rustix::process::chdir(self.cwd.as_str()).map_err(said("chdir"))?;
        self.set_limits()?;
        self.become_nobody()?;
        thread::set_no_new_privs(true).map_err(said("no_new_privs"))?;
        view.enforce()?;
        install_filter(&self.filter).map_err(said("seccomp"))
    }

    fn set_limits(&self) -> Result<(), String> {
        self.limits.iter().try_for_each(|(resource, most)| {
            let limit = Rlimit {
                current: Some(*most),
                maximum: Some(*most),
            };
            setrlimit(*resource, limit).map_err(said("setrlimit"))
        })
    }

    fn become_nobody(&self) -> Result<(), String> {
        let (uid, gid) = (Uid::from_raw(self.uid), Gid::from_raw(self.gid));
        thread::set_thread_groups(&[]).map_err(said("setgroups"))?;
        drop_bounding_set().map_err(said("bounding set"))?;
        thread::set_thread_res_gid(gid, gid, gid).map_err(said("setresgid"))?;
        thread::set_thread_res_uid(uid, uid, uid).map_err(said("setresuid"))?;
        thread::set_capabilities(None, NO_CAPABILITIES).map_err(said("capset"))?;
        let kept = thread::capabilities(None).map_err(said("capget"))?;
        if kept == NO_CAPABILITIES {
            Ok(())
        } else {
            Err(format!("capabilities are left: {kept:?}"))
        }
    }
}

static NO_FILES: BTreeMap<RelPath, Bytes> = BTreeMap::new();

const NO_CAPABILITIES: CapabilitySets = CapabilitySets {
    effective: CapabilitySet::empty(),
    permitted: CapabilitySet::empty(),
    inheritable: CapabilitySet::empty(),
};

/// The session's tools.
const TOOLS: [&str; 7] = [
    layout::TOOLCHAIN,
    "/usr",
    "/bin",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc/alternatives",
];

/// The loaders of dynamically linked programs: the kernel executes them for the program.
const LOADERS: &[&str] = &["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"];

fn devices() -> Vec<Grant> {
    let both = ["/dev/null", "/dev/zero", "/dev/full"].map(|path| grant(path, Reach::Device));
    let read = ["/dev/random", "/dev/urandom"].map(|path| grant(path, Reach::Read));
    both.into_iter().chain(read).collect()
}

fn limits(files: u64, file_bytes: u64) -> Vec<(Resource, u64)> {
    vec![
        // 1, not 0: a limit of 0 still hands a core to a host program where `core_pattern` names
        // one; of 1 the kernel hands over nothing. The filter keeps a case from lowering it.
        (Resource::Core, 1),
        (Resource::Memlock, 0),
        (Resource::Msgqueue, 0),
        (Resource::Nofile, files),
        (Resource::Fsize, file_bytes),
        (Resource::Stack, STACK_BYTES),
    ]
}

fn said<E: std::fmt::Display>(what: &'static str) -> impl Fn(E) -> String {
    move |error| format!("{what}: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn reach_of(walls: &Walls<'_>, path: &str) -> Option<Reach> {
        let covers = |g: &&Grant| Path::new(path).starts_with(&g.path);
        let nearest = |g: &&Grant| g.path.components().count();
        walls
            .grants
            .iter()
            .filter(covers)
            .max_by_key(nearest)
            .map(|g| g.reach)
    }

    #[test]
    fn a_case_reaches_its_scratch_and_libraries_only() {
        let walls = Walls::case(1000, None);
        assert_eq!(reach_of(&walls, "/case/x"), Some(Reach::Scratch));
        assert_eq!(reach_of(&walls, "/usr/lib/libc.so.6"), Some(Reach::Read));
        for path in [
            "/exe/prog",
            "/flight/src/a",
            "/flight/target/a",
            "/runner/flights",
            "/toolchain/bin/cargo",
            "/usr/bin/env",
            "/etc/passwd",
            "/tmp/a",
            "/dev/kmsg",
            "/proc/self",
        ] {
            assert_eq!(reach_of(&walls, path), None, "{path}");
        }
    }

    #[test]
    fn a_test_of_the_tree_reads_the_tree_and_nothing_else_more() {
        let walls = Walls::case(1000, None).with_source("crates/a");
        assert_eq!(reach_of(&walls, "/flight/src/a"), Some(Reach::Read));
        assert_eq!(reach_of(&walls, "/flight/target/a"), None);
        assert_eq!(reach_of(&walls, "/exe/prog"), None);
        assert_eq!(walls.cwd, "/flight/src/crates/a");
    }

    #[test]
    fn a_build_writes_output_only_and_sees_no_promoted_program() {
        let walls = Walls::build();
        assert_eq!(reach_of(&walls, "/flight/src/a"), Some(Reach::Read));
        assert_eq!(reach_of(&walls, "/flight/vendor/a"), Some(Reach::Read));
        assert_eq!(reach_of(&walls, "/flight/target/a"), Some(Reach::Output));
        assert_eq!(reach_of(&walls, "/flight/home/a"), Some(Reach::Scratch));
        for path in [
            "/exe/prog",
            "/case/x",
            "/flight/crates/a",
            "/runner/flights",
            "/etc/passwd",
        ] {
            assert_eq!(reach_of(&walls, path), None, "{path}");
        }
    }

    #[test]
    fn an_agent_writes_its_own_places_and_cannot_change_what_was_uploaded() {
        let walls = Walls::agent();
        for place in ["/flight/agent/work/a", "/flight/agent/home/a"] {
            assert_eq!(reach_of(&walls, place), Some(Reach::Output));
        }
        assert_eq!(reach_of(&walls, "/runner/agent"), Some(Reach::Run));
        assert_eq!(reach_of(&walls, "/flight/extra/pack"), Some(Reach::Read));
        assert_eq!(reach_of(&walls, "/proc/self/exe"), Some(Reach::Read));
        assert_eq!(reach_of(&walls, "/usr/bin/git"), Some(Reach::Run));
        for path in [
            "/flight/src/a",
            "/flight/target/a",
            "/flight/home/a",
            "/exe/prog",
            "/case/x",
            "/runner/flights",
            "/etc/passwd",
            "/tmp/a",
        ] {
            assert_eq!(reach_of(&walls, path), None, "{path}");
        }
        assert_eq!(walls.port, Some(PROVIDER_PORT));
        let others = [Walls::build(), Walls::unpack(), Walls::case(1_000, None)];
        assert!(others.iter().all(|walls| walls.port.is_none()));
        assert!(![BUILD, UNPACK].contains(&walls.uid));
    }

    #[test]
    fn unpacking_reaches_the_vendor_directory_only() {
        let walls = Walls::unpack();
        assert_eq!(walls.grants, [grant(layout::VENDOR, Reach::Scratch)]);
        assert_ne!(walls.uid, BUILD);
    }
}
