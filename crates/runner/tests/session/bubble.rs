//! A session as the local backend makes one, reduced to what the runner needs.

use flightproof_core::{Bytes, Digest};
use flightproof_frame::channel::HostChannel;
use flightproof_frame::protocol::{
    Exec, ExecLimits, Hello, Outcome, Place, Reply, Request, Role, Status,
};
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// First of the ordinary uids that sessions of these tests get, each a range of its own: limits are
/// counted by uid, and a fork bomb in one session must not reach another.
const FIRST_BASE: u32 = 700_000_000;
const MAPPED: u32 = 1_000_000;
/// Processes and threads of a session: enough for a build, an end for a fork bomb.
const MAX_PROCESSES: u64 = 120;

const CAPABILITIES: [&str; 8] = [
    "CAP_SETUID",
    "CAP_SETGID",
    "CAP_KILL",
    "CAP_SYS_ADMIN",
    "CAP_SETPCAP",
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_FOWNER",
];

pub(crate) struct Bubble {
    bwrap: Child,
    channel: HostChannel,
    pub(crate) hello: Hello,
    tools: tempfile::TempDir,
}

impl Bubble {
    pub(crate) fn open() -> Self {
        let able = rustix::process::getuid().is_root() && Path::new("/usr/bin/bwrap").exists();
        assert!(able, "not measured: needs root and bubblewrap");
        let base = fresh_base();
        let tools = tempfile::tempdir().unwrap();
        compile_attacker(tools.path());
        let runner = tools.path().join("flights");
        fs::copy(runner_program(), &runner).unwrap();
        fs::create_dir(tools.path().join("rust")).unwrap();
        open_to_all(tools.path());
        let (mut bwrap, info) = start(base, tools.path(), &runner);
        info.map(base, &mut bwrap);
        let (to, from) = (bwrap.stdin.take().unwrap(), bwrap.stdout.take().unwrap());
        let mut channel = HostChannel::new(from.into(), to.into()).unwrap();
        let hello = channel.hello(soon()).unwrap();
        Self {
            bwrap,
            channel,
            hello: serde_json::from_slice(&hello).unwrap(),
            tools,
        }
    }

    /// A session in which the attacker is already a program of the cases.
    pub(crate) fn with_attacker() -> Self {
        let mut bubble = Self::open();
        bubble.promote_tool("/toolchain/attacker");
        bubble
    }

    /// Makes a tool of the build a program of the cases.
    pub(crate) fn promote_tool(&mut self, tool: &str) {
        self.promote_as(tool, tool.rsplit('/').next().unwrap());
    }

    pub(crate) fn promote_as(&mut self, tool: &str, name: &str) {
        let name = name.to_owned();
        let from = format!("/flight/target/{name}");
        let copied = self.exec(&build("/usr/bin/cp", &[tool, &from]));
        let done = (copied.status, text(&copied.stderr));
        assert_eq!(done, (Status::Exited { code: 0 }, String::new()));
        let promoted = self.call(&Request::Promote { from, name });
        assert!(matches!(promoted, Reply::Promoted { .. }), "{promoted:?}");
    }

    pub(crate) fn call(&mut self, request: &Request) -> Reply {
        self.send(&serde_json::to_vec(request).unwrap(), &[])
    }

    pub(crate) fn put(&mut self, place: Place, snapshot: Digest, payload: &[u8]) -> Reply {
        let bytes = payload.len() as u64;
        let request = Request::Put {
            place,
            bytes,
            snapshot,
        };
        self.send(&serde_json::to_vec(&request).unwrap(), payload)
    }

    pub(crate) fn send(&mut self, request: &[u8], payload: &[u8]) -> Reply {
        let reply = self.channel.call(request, payload, soon()).unwrap();
        serde_json::from_slice(&reply).unwrap()
    }

    pub(crate) fn exec(&mut self, exec: &Exec) -> Outcome {
        match self.call(&Request::Exec(exec.clone())) {
            Reply::Exec(outcome) => outcome,
            other => panic!("{other:?}"),
        }
    }

    /// Runs the attacker as a case.
    pub(crate) fn attack(&mut self, act: &str) -> Outcome {
        self.exec(&case(&[act]))
    }
}

/// No call of these tests takes this long; one that does fails instead of hanging.
fn soon() -> Instant {
    Instant::now() + Duration::from_secs(90)
}

impl Drop for Bubble {
    fn drop(&mut self) {
        let _ = self.bwrap.kill();
        let _ = self.bwrap.wait();
        keep_counts(self.tools.path());
    }
}

/// A case of the attacker with these arguments.
pub(crate) fn case(args: &[&str]) -> Exec {
    Exec {
        role: Role::Case,
        ..build("attacker", args)
    }
}

/// A tool of the build.
pub(crate) fn build(program: &str, args: &[&str]) -> Exec {
    Exec {
        role: Role::Build,
        program: program.into(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        env: BTreeMap::new(),
        stdin: Bytes(vec![]),
        files: BTreeMap::new(),
        limits: ExecLimits {
            wall_ms: 5_000,
            stdout_bytes: 100_000,
            stderr_bytes: 100_000,
        },
        selector: None,
        tree: None,
    }
}

pub(crate) fn text(bytes: &Bytes) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What the parent does between bubblewrap's clone and its exec.
struct Handshake {
    info: fs::File,
    go: fs::File,
}

impl Handshake {
    fn map(mut self, base: u32, bwrap: &mut Child) {
        let mut said = String::new();
        while !said.trim_end().ends_with('}') {
            let mut piece = [0; 512];
            let read = self.info.read(&mut piece).unwrap();
            assert_ne!(read, 0, "bubblewrap ended: {:?}", bwrap.wait());
            said.push_str(std::str::from_utf8(&piece[..read]).unwrap());
        }
        let info: serde_json::Value = serde_json::from_str(&said).unwrap();
        let pid = info["child-pid"].as_u64().unwrap();
        for map in ["uid_map", "gid_map"] {
            fs::write(format!("/proc/{pid}/{map}"), format!("0 {base} {MAPPED}\n")).unwrap();
        }
        self.go.write_all(b"x").unwrap();
    }
}

fn start(base: u32, tools: &Path, runner: &Path) -> (Child, Handshake) {
    let (info, info_write) = pipe();
    let (go_read, go) = pipe();
    // What lies in a home directory is bound where an ordinary uid can reach it, then the uid goes.
    let steps = format!(
        "mount --bind \"$1\" \"$2\" && shift 2 && exec setpriv --reuid {base} --regid {base} \
         --clear-groups prlimit --nproc={MAX_PROCESSES} bwrap \"$@\""
    );
    let mut command = Command::new("/usr/bin/unshare");
    command.args([
        "--mount",
        "--propagation",
        "private",
        "/bin/sh",
        "-c",
        &steps,
        "sh",
    ]);
    command.args([rust(), tools.join("rust")]);
    command.args([
        "--unshare-user",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-net",
        "--unshare-uts",
    ]);
    command.args([
        "--as-pid-1",
        "--die-with-parent",
        "--new-session",
        "--clearenv",
    ]);
    command.args(["--info-fd", &info_write.as_raw_fd().to_string()]);
    command.args(["--userns-block-fd", &go_read.as_raw_fd().to_string()]);
    CAPABILITIES.iter().for_each(|name| {
        command.args(["--cap-add", name]);
    });
    command.args(["--ro-bind", "/usr", "/usr"]);
    for (to, link) in [
        ("usr/bin", "/bin"),
        ("usr/lib", "/lib"),
        ("usr/lib64", "/lib64"),
    ] {
        command.args(["--symlink", to, link]);
    }
    command
        .arg("--ro-bind")
        .args([tools, Path::new("/toolchain")]);
    command
        .arg("--ro-bind")
        .args([runner, Path::new("/runner/flights")]);
    for (place, mib) in [("/flight", 256), ("/exe", 64), ("/case", 32), ("/tmp", 1)] {
        let size = (mib << 20).to_string();
        command.args(["--size", &size, "--tmpfs", place]);
    }
    // The parents of bound files would be closed to everybody but the session's root.
    for dir in ["/dev", "/etc"] {
        command.args(["--perms", "0755", "--dir", dir]);
    }
    command.args(["--ro-bind-try", "/etc/alternatives", "/etc/alternatives"]);
    for device in ["null", "zero", "full", "random", "urandom"] {
        let path = format!("/dev/{device}");
        command.args(["--dev-bind", &path, &path]);
    }
    counted(&mut command, tools);
    command.args(["--remount-ro", "/", "--", "/runner/flights", "__runner"]);
    let bwrap = command
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    (
        bwrap,
        Handshake {
            info: info.into(),
            go: go.into(),
        },
    )
}

/// Where a run counts its lines, the runner counts its own as it goes, in a file beside its tools: a
/// session ends with a kill, and whoever is killed writes nothing any more.
fn counted(command: &mut Command, tools: &Path) {
    if profiles().is_none() {
        return;
    }
    let here = tools.join(PROFILES);
    fs::create_dir(&here).unwrap();
    // Its uid is nobody here.
    fs::set_permissions(&here, fs::Permissions::from_mode(0o777)).unwrap();
    command.arg("--bind").args([&here, Path::new("/profiles")]);
    command.args(["--setenv", "LLVM_PROFILE_FILE", "/profiles/%p%c.profraw"]);
}

/// Where in the directory of its tools a runner counts its lines.
const PROFILES: &str = "profiles";

/// Where those of a run that counts its lines end up.
fn profiles() -> Option<PathBuf> {
    let pattern = std::env::var_os("LLVM_PROFILE_FILE").filter(|it| it != "/dev/null")?;
    Some(Path::new(&pattern).parent()?.to_owned())
}

/// Keeps what the runner has counted.
fn keep_counts(tools: &Path) {
    let Some(kept) = profiles() else { return };
    let name = tools.file_name().unwrap().to_str().unwrap();
    for (n, counts) in fs::read_dir(tools.join(PROFILES)).unwrap().enumerate() {
        let to = kept.join(format!("session-{name}-{n}.profraw"));
        fs::copy(counts.unwrap().path(), to).unwrap();
    }
}

/// The toolchain that runs these tests.
fn rust() -> PathBuf {
    let printed = Command::new("rustc")
        .args(["--print", "sysroot"])
        .output()
        .unwrap();
    PathBuf::from(String::from_utf8(printed.stdout).unwrap().trim_end())
}

fn fresh_base() -> u32 {
    static OPENED: AtomicU32 = AtomicU32::new(0);
    let number = std::process::id() * 16 + OPENED.fetch_add(1, Ordering::Relaxed);
    FIRST_BASE + number % 1_000 * MAPPED
}

/// A pipe that children inherit.
fn pipe() -> (OwnedFd, OwnedFd) {
    rustix::pipe::pipe().unwrap()
}

pub(crate) fn runner_program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let runner = test.ancestors().nth(2).unwrap().join("examples/runner");
    assert!(
        runner.exists(),
        "{} is built with the tests",
        runner.display()
    );
    runner
}

/// Compiled once for all tests of a build; a finished one appears under its name in one step.
fn compile_attacker(into: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/session/attacker.c");
    let name = format!("attacker-{}", Digest::of(&fs::read(&source).unwrap()));
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let fresh = into.join("attacker");
    if fs::copy(&kept, &fresh).is_ok() {
        return;
    }
    let mut cc = Command::new("cc");
    cc.args(["-static", "-O1", "-w", "-o"])
        .arg(&fresh)
        .arg(source);
    assert!(cc.status().unwrap().success(), "the attacker compiles");
    let staged = kept.with_extension(std::process::id().to_string());
    fs::copy(&fresh, &staged).unwrap();
    fs::rename(staged, kept).unwrap();
}

/// The session's uid is nobody here: it needs read and execute for all.
fn open_to_all(dir: &Path) {
    let mode = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    mode(dir);
    fs::read_dir(dir)
        .unwrap()
        .for_each(|entry| mode(&entry.unwrap().path()));
}
