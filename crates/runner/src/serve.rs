//! The life of the runner: request after request until the line ends.

use crate::code::{RunnerCode, RunnerError, inside};
use crate::exec::{self, CaseUids};
use crate::kernel::KernelFiles;
use crate::{calls, container, probe, promote, put, unpack};
use flightproof_core::{Code, parse_strict};
use flightproof_frame::FrameError;
use flightproof_frame::channel::{MAX_BODY_BYTES, RunnerChannel};
use flightproof_frame::protocol::{Hello, PROTOCOL, Reply, Request};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::process::{Gid, Pid, Uid, getpid, getuid, umask};
use rustix::stdio::{dup2_stdin, dup2_stdout, stdin, stdout};
use serde::Serialize;
use std::fs::File;
use std::os::unix::fs::{PermissionsExt, chown};
use std::process::ExitCode;

/// The whole program that runs inside a session, on the two pipes it finds as standard input and
/// output. Ends when the host closes the line; then the kernel ends every process of the session.
///
/// Refuses to do anything unless it is the first process of a pid namespace. Started as the first
/// process of a container (its arguments say so), it makes the session's walls first: see
/// [`container`].
pub fn main() -> ExitCode {
    let ended = match container::order() {
        None => run(KernelFiles::default()),
        Some(order) => container::enter(order, run),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(refusal) => {
            eprintln!("{refusal}");
            ExitCode::from(refusal.code.explanation().fault.exit() as u8)
        }
    }
}

fn run(kernel: KernelFiles) -> Result<(), RunnerError> {
    if getpid() != Pid::INIT || getuid() != Uid::ROOT {
        let who = format!(
            "pid {}, uid {}",
            getpid().as_raw_nonzero(),
            getuid().as_raw()
        );
        return Err(RunnerCode::NotASession.refuse(who));
    }
    calls::hide().map_err(inside("hide"))?;
    // It executes nothing itself, and whoever it starts drops what is left.
    calls::drop_bounding_set().map_err(inside("bounding set"))?;
    umask(Mode::from_raw_mode(0o022));
    let mut channel = take_channel()?;
    close_work()?;
    let hello = Hello {
        protocol: PROTOCOL.to_owned(),
        pid: getpid().as_raw_nonzero().get().unsigned_abs(),
        landlock_abi: calls::landlock_abi(),
    };
    channel.hello(&json(&hello)?).map_err(broken)?;
    serve(&mut channel, &kernel)
}

type Channel = RunnerChannel<File, File>;

/// Answers requests until the host ends the conversation. A request that cannot be read is
/// answered too; only a broken channel ends the runner.
fn serve(channel: &mut Channel, kernel: &KernelFiles) -> Result<(), RunnerError> {
    let mut uids = CaseUids::new()?;
    while let Some(body) = channel.request().map_err(broken)? {
        let reply = parse_strict(&body, MAX_BODY_BYTES)
            .map_err(|error| RunnerCode::BadRequest.refuse(error))
            .and_then(|request| answer(request, channel, &mut uids, kernel))
            .unwrap_or_else(|refusal| refused(&refusal));
        channel.reply(&json(&reply)?).map_err(broken)?;
    }
    Ok(())
}

fn answer(
    request: Request,
    channel: &mut Channel,
    uids: &mut CaseUids,
    kernel: &KernelFiles,
) -> Result<Reply, RunnerError> {
    Ok(match request {
        Request::Put {
            place,
            bytes,
            snapshot,
        } => {
            let payload = channel.payload(bytes).map_err(broken)?;
            let done = put::put(place, bytes, snapshot, payload)?;
            Reply::Put {
                snapshot: done.snapshot.snapshot_id(),
                files: done.files,
            }
        }
        Request::Unpack { crates } => Reply::Unpacked {
            packages: unpack::unpack(&crates)?,
        },
        Request::Exec(exec) => Reply::Exec(exec::run(&exec, uids)?),
        Request::Promote { from, name } => {
            let (sha256, size) = promote::promote(&from, &name)?;
            Reply::Promoted { sha256, size }
        }
        Request::Probe => Reply::Probe {
            readings: probe::probe(uids)?,
        },
        Request::Kernel { files } => Reply::Kernel {
            files: kernel.read(&files)?,
        },
    })
}

fn json(value: &impl Serialize) -> Result<Vec<u8>, RunnerError> {
    serde_json::to_vec(value).map_err(inside("write an answer"))
}

fn broken(error: FrameError) -> RunnerError {
    RunnerCode::BadRequest.refuse(error)
}

fn refused(refusal: &RunnerError) -> Reply {
    Reply::Refused {
        code: refusal.code.explanation().code.to_owned(),
        detail: refusal.detail.clone(),
    }
}

/// Moves the channel away from the standard descriptors, where a child could inherit it, and puts
/// `/dev/null` there.
fn take_channel() -> Result<Channel, RunnerError> {
    let away = |fd| rustix::io::fcntl_dupfd_cloexec(fd, 3).map_err(inside("move the channel"));
    let (input, output): (OwnedFd, OwnedFd) = (away(stdin())?, away(stdout())?);
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
    let null = null.map_err(inside("open /dev/null"))?;
    dup2_stdin(&null).map_err(inside("replace standard input"))?;
    dup2_stdout(&null).map_err(inside("replace standard output"))?;
    Ok(Channel::new(File::from(input), File::from(output)))
}

/// Lets builds walk through the work directory and cases not even look whether a file is there:
/// Landlock does not hide what `stat` says.
fn close_work() -> Result<(), RunnerError> {
    let group = Gid::from_raw(crate::walls::BUILD).as_raw();
    chown("/flight", Some(0), Some(group)).map_err(inside("/flight"))?;
    std::fs::set_permissions("/flight", std::fs::Permissions::from_mode(0o710))
        .map_err(inside("/flight"))
}
