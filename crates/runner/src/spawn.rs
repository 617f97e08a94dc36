//! Starting a program in its own pid, IPC and mount namespace. All of the crate's `unsafe` is here and
//! in [`crate::calls`].
//!
//! The runner has one thread, always: what `fork` and `clone` copy is therefore complete and
//! consistent, and the children below may allocate and take locks. Neither child ever returns into
//! the code that started it: both end in `execve` or `_exit`.
//!
//! ```text
//! runner ── clone(NEWPID|NEWIPC|NEWNS) ──▶ init (pid 1, uid 0) ── fork ──▶ program (walls, then execve)
//!    ▲                                  │ wait status                     │ why it did not start
//!    └────────── status pipe ◀──────────┴─────────────────────────────────┘ (closed by execve)
//! ```

use crate::walls::Walls;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Pid;
use std::ffi::CString;
use std::io;
use std::os::raw::{c_char, c_int, c_long, c_uint};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The ends of the pipes a program gets.
pub(crate) struct Ends {
    pub(crate) stdin: OwnedFd,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
    pub(crate) selector: Option<SelectorEnds>,
}

/// What the mutation guard gets: it reads its mutant and answers when it has it.
pub(crate) struct SelectorEnds {
    pub(crate) read: OwnedFd,
    pub(crate) write: OwnedFd,
}

/// What happens behind the walls.
pub(crate) enum Act<'a> {
    /// Another program takes over.
    Execute(&'a Image),
    /// Code of ours; its result is the exit status.
    Inside(&'a dyn Fn() -> u8),
}

/// A program as `execve` takes it.
pub(crate) struct Image {
    pub(crate) entry: Entry,
    pub(crate) argv: Vec<CString>,
    pub(crate) env: Vec<CString>,
}

/// How a program is found.
pub(crate) enum Entry {
    /// By its path: a tool.
    Path(CString),
    /// By its descriptor: the name, place and size of a case's program are nothing it may learn.
    Opened(OwnedFd, EmptyName),
}

impl Entry {
    fn program(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Path(_) => None,
            Self::Opened(program, _) => Some(program.as_fd()),
        }
    }
}

impl Act<'_> {
    fn program(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Execute(image) => image.entry.program(),
            Self::Inside(_) => None,
        }
    }
}

/// An empty string at an address drawn at random. The filter of a case lets through one address
/// only, so the address is what tells the start of the program from what the program may try.
pub(crate) struct EmptyName {
    page: *mut libc::c_void,
    offset: usize,
}

impl EmptyName {
    /// # Errors
    /// No random bytes, or no place in memory was free.
    pub(crate) fn new() -> io::Result<Self> {
        (0..MAX_PLACES)
            .find_map(|_try| Self::drawn().transpose())
            .unwrap_or_else(|| Err(io::ErrorKind::OutOfMemory.into()))
    }

    /// `None` if something else is there.
    fn drawn() -> io::Result<Option<Self>> {
        let mut entropy = [0; 8];
        rustix::rand::getrandom(&mut entropy, rustix::rand::GetRandomFlags::empty())?;
        let drawn = usize::from_ne_bytes(entropy) % PLACES;
        let (wanted, offset) = (drawn & !(PAGE - 1), drawn & (PAGE - 1));
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
        // SAFETY: the flag keeps the kernel from replacing anything that is mapped there.
        let page = unsafe {
            let wanted = std::ptr::without_provenance_mut(wanted);
            libc::mmap(wanted, PAGE, libc::PROT_READ, flags, -1, 0)
        };
        Ok((page != libc::MAP_FAILED).then_some(Self { page, offset }))
    }

    pub(crate) fn address(&self) -> u64 {
        (self.page.addr() + self.offset) as u64
    }

    /// The page is all zeros: an empty string begins at each of its bytes.
    fn pointer(&self) -> *const c_char {
        self.page
            .cast_const()
            .cast::<c_char>()
            .wrapping_add(self.offset)
    }
}

impl Drop for EmptyName {
    fn drop(&mut self) {
        // SAFETY: the page is this value's own, and no pointer into it outlives the value.
        unsafe { libc::munmap(self.page, PAGE) };
    }
}

/// Largest page of the systems there are, in bytes: on those with smaller ones it is several.
const PAGE: usize = 64 << 10;
/// Addresses that are drawn from, in bytes: half of what a process has with 47 bits.
const PLACES: usize = 1 << 46;
/// Draws before giving up: the first all but always meets free memory.
const MAX_PLACES: usize = 64;

/// A started namespace: its init, and the pipe that tells how the program ended.
pub(crate) struct Child {
    pub(crate) init: Pid,
    pub(crate) status: OwnedFd,
}

/// First byte of the message of a program that could not be started: then `u16` length, reason.
pub(crate) const FAILED: u8 = b'F';
/// First byte of the message of the init: then the `i32` wait status. Both little endian.
pub(crate) const WAITED: u8 = b'W';
/// Longest reason in bytes; with its header below `PIPE_BUF`, so that it is written in one piece.
pub(crate) const MAX_REASON: usize = 512;

/// The selector's place in a program that has one: read the mutant's number here.
const SELECTOR_READ: c_int = 3;
/// The selector's place in a program that has one: answer here.
const SELECTOR_WRITE: c_int = 4;
/// The status pipe's place in both children.
const STATUS: c_int = 5;
/// The place of a case's program until it runs. It names the file in the auxiliary vector
/// (`/dev/fd/6`), so it is the same for every program.
pub(crate) const PROGRAM: c_int = 6;
/// Descriptors are first moved to here or above, out of the way of the places they get.
const ABOVE: c_int = 16;

/// Starts `act` behind `walls`.
pub(crate) fn spawn(ends: &Ends, walls: &Walls<'_>, act: &Act<'_>) -> io::Result<Child> {
    let (status, status_write) = pipe_with(PipeFlags::CLOEXEC)?;
    match clone_namespace()? {
        None => init(ends, &status_write, walls, act),
        Some(init) => Ok(Child { init, status }),
    }
}

/// The life of the namespace's first process. Whatever fails, it ends here.
fn init(ends: &Ends, status: &OwnedFd, walls: &Walls<'_>, act: &Act<'_>) -> ! {
    let _ = catch_unwind(AssertUnwindSafe(|| {
        if let Err(error) = arrange_descriptors(ends, status, act.program()) {
            return report_failure(status.as_fd(), &format!("descriptors: {error}"));
        }
        if let Err(reason) = walls.make_tree() {
            return report_failure(arranged_status(), &reason);
        }
        match begin(walls, act) {
            Err(error) => report_failure(arranged_status(), &format!("fork: {error}")),
            Ok(program) => {
                close_range(0, SELECTOR_WRITE);
                close_range(PROGRAM, PROGRAM);
                report_end(program);
            }
        }
    }));
    exit_now(0)
}

/// Starts the program's process.
fn begin(walls: &Walls<'_>, act: &Act<'_>) -> io::Result<c_int> {
    match act {
        Act::Execute(_) => lend(&mut || program(walls, act)),
        Act::Inside(_) => match fork()? {
            None => program(walls, act),
            Some(program) => Ok(program),
        },
    }
}

/// The life of the program's process up to `execve`.
fn program(walls: &Walls<'_>, act: &Act<'_>) -> ! {
    let status = catch_unwind(AssertUnwindSafe(|| {
        reset_signals();
        match rustix::process::setsid() {
            Err(error) => return fail(&format!("setsid: {error}")),
            Ok(_leader) => {}
        }
        if let Err(reason) = walls.enter(arranged_program(act)) {
            return fail(&reason);
        }
        match act {
            Act::Execute(image) => fail(&format!("execve: {}", execute(image))),
            Act::Inside(body) => {
                close_range(SELECTOR_READ, c_int::MAX);
                body()
            }
        }
    }));
    exit_now(status.unwrap_or(NOT_STARTED))
}

/// Exit status of a program's process that never became the program. The reason says more.
const NOT_STARTED: u8 = 126;

fn fail(reason: &str) -> u8 {
    report_failure(arranged_status(), reason);
    NOT_STARTED
}

fn report_failure(status: BorrowedFd<'_>, reason: &str) {
    let reason = &reason.as_bytes()[..reason.len().min(MAX_REASON)];
    let length = u16::try_from(reason.len()).unwrap_or(0);
    let mut message = vec![FAILED];
    message.extend(length.to_le_bytes());
    message.extend(reason);
    write_status(status, &message);
}

/// Reaps everything in the namespace until the program itself ends; then says how it ended.
/// When this process ends, the kernel kills whatever is left in the namespace.
fn report_end(program: c_int) {
    loop {
        let mut status: c_int = 0;
        // SAFETY: the pointer is to a live local.
        let pid = unsafe { libc::waitpid(-1, &raw mut status, 0) };
        if pid == program {
            let mut message = vec![WAITED];
            message.extend(status.to_le_bytes());
            return write_status(arranged_status(), &message);
        }
        if pid < 0 && io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return;
        }
    }
}

fn write_status(status: BorrowedFd<'_>, message: &[u8]) {
    // The runner takes silence as the end of the program, so a failed write needs no answer.
    let _ = rustix::io::write(status, message);
}

/// The status pipe, once the descriptors are in their places.
fn arranged_status() -> BorrowedFd<'static> {
    // SAFETY: only called after `arrange_descriptors`, which put it there; it stays open until the
    // process ends or executes.
    unsafe { BorrowedFd::borrow_raw(STATUS) }
}

/// The program's descriptor, once it is in its place.
fn arranged_program(act: &Act<'_>) -> Option<BorrowedFd<'static>> {
    // SAFETY: as above; it is there exactly if the act has one.
    act.program()
        .map(|_before| unsafe { BorrowedFd::borrow_raw(PROGRAM) })
}

/// Puts the pipes where a program expects them and closes everything else.
fn arrange_descriptors(
    ends: &Ends,
    status: &OwnedFd,
    program: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let raise = |fd: BorrowedFd<'_>| rustix::io::fcntl_dupfd_cloexec(fd, ABOVE);
    let mut places = vec![
        (raise(ends.stdin.as_fd())?, 0),
        (raise(ends.stdout.as_fd())?, 1),
        (raise(ends.stderr.as_fd())?, 2),
        (raise(status.as_fd())?, STATUS),
    ];
    let last = match program {
        None => STATUS,
        Some(program) => {
            places.push((raise(program)?, PROGRAM));
            PROGRAM
        }
    };
    if let Some(selector) = &ends.selector {
        places.push((raise(selector.read.as_fd())?, SELECTOR_READ));
        places.push((raise(selector.write.as_fd())?, SELECTOR_WRITE));
    } else {
        close_range(SELECTOR_READ, SELECTOR_WRITE);
    }
    for (from, to) in &places {
        place(from, *to)?;
    }
    close_range(last + 1, c_int::MAX);
    // The table above must not close numbers that now belong to nobody.
    std::mem::forget(places);
    Ok(())
}

fn place(from: &OwnedFd, to: c_int) -> io::Result<()> {
    let flags = if to >= STATUS { libc::O_CLOEXEC } else { 0 };
    // SAFETY: `from` is open and at `ABOVE` or higher, so it differs from `to`. What `to` was before
    // belongs to a copy of the runner's table whose owners never run in this process.
    if unsafe { libc::dup3(from.as_raw_fd(), to, flags) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Closes descriptors `first..=last`. Only in a child: the owners of these numbers never run there.
fn close_range(first: c_int, last: c_int) {
    let (first, last) = (first.unsigned_abs(), last.unsigned_abs());
    // SAFETY: see above; the call itself takes numbers only. It cannot fail for an ordered range.
    unsafe { libc::syscall(libc::SYS_close_range, first, last, 0 as c_uint) };
}

/// `clone` like `fork`, into a new pid, IPC and mount namespace. `None` in the child.
fn clone_namespace() -> io::Result<Option<Pid>> {
    clone_into(libc::CLONE_NEWPID | libc::CLONE_NEWIPC | libc::CLONE_NEWNS)
}

/// `clone` like `fork`, into namespaces of its own of every kind there is. `None` in the child.
pub(crate) fn clone_session() -> io::Result<Option<Pid>> {
    let cut_off = libc::CLONE_NEWNET | libc::CLONE_NEWUTS | libc::CLONE_NEWCGROUP;
    let own = libc::CLONE_NEWPID | libc::CLONE_NEWIPC | libc::CLONE_NEWNS;
    clone_into(libc::CLONE_NEWUSER | own | cut_off)
}

fn clone_into(namespaces: c_int) -> io::Result<Option<Pid>> {
    let flags = namespaces | libc::SIGCHLD;
    // SAFETY: no CLONE_VM and no stack: the child gets a copy of the address space, as with fork.
    // The one thread of this process is the calling one. The C library's handlers of fork are not
    // run; it has no threads and no state that would need them.
    let pid = unsafe { libc::syscall(libc::SYS_clone, c_long::from(flags), 0, 0, 0, 0) };
    if pid < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(c_int::try_from(pid).ok().and_then(Pid::from_raw))
}

fn fork() -> io::Result<Option<c_int>> {
    // SAFETY: the process has one thread, so the child's copy of every lock is free.
    match unsafe { libc::fork() } {
        0 => Ok(None),
        pid if pid > 0 => Ok(Some(pid)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Runs `body` in a child that has this process's memory on loan, and goes on when the child has
/// executed another program or ended. A copy that lives for a millisecond costs more than all else.
fn lend(body: &mut dyn FnMut()) -> io::Result<c_int> {
    extern "C" fn child(body: *mut libc::c_void) -> c_int {
        // SAFETY: it points to `body` below, which outlives the loan.
        let body = unsafe { &mut *body.cast::<&mut dyn FnMut()>() };
        body();
        c_int::from(NOT_STARTED)
    }
    let mut body = body;
    let stack = Stack::new()?;
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: the child runs on a stack of its own, and this process, which has one thread, stands
    // still until the child has left the memory. The child never returns: it executes or ends.
    let pid = unsafe { libc::clone(child, stack.top(), flags, (&raw mut body).cast()) };
    if pid < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(pid)
}

/// A stack for a child that borrows memory, above a page that nobody may touch.
struct Stack(*mut libc::c_void);

impl Stack {
    fn new() -> io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK;
        // SAFETY: new memory at a place of the kernel's choice.
        let base = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(std::ptr::null_mut(), STACK, access, flags, -1, 0)
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let stack = Self(base);
        // SAFETY: the lowest page of what was just mapped.
        if unsafe { libc::mprotect(base, PAGE, libc::PROT_NONE) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(stack)
    }

    /// Stacks grow down. The end of a mapping is aligned for anything.
    fn top(&self) -> *mut libc::c_void {
        self.0.wrapping_byte_add(STACK)
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: this value's own memory; the child has left it.
        unsafe { libc::munmap(self.0, STACK) };
    }
}

/// Bytes of a child's stack with the page below it: walls and their errors take a few KiB.
const STACK: usize = 512 << 10;

/// Runs `body` in a child of its own and returns its raw wait status.
pub(crate) fn in_child(body: impl FnOnce() -> u8) -> io::Result<c_int> {
    let Some(pid) = fork()? else {
        exit_now(catch_unwind(AssertUnwindSafe(body)).unwrap_or(NOT_STARTED));
    };
    let mut status: c_int = 0;
    loop {
        // SAFETY: the pointer is to a live local.
        if unsafe { libc::waitpid(pid, &raw mut status, 0) } == pid {
            return Ok(status);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Ends this process without running anything that belongs to the runner it was copied from.
fn exit_now(status: u8) -> ! {
    // SAFETY: `_exit` takes a number and does not return.
    unsafe { libc::_exit(c_int::from(status)) }
}

/// Gives every signal its default action and blocks none: both survive `execve`, and the runner
/// ignores SIGPIPE.
fn reset_signals() {
    // SAFETY: default actions name no handler; the set is a live local initialised before its use.
    // Signals that cannot be changed give an error, which is right.
    unsafe {
        for signal in 1..=libc::SIGRTMAX() {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

fn execute(image: &Image) -> io::Error {
    let pointers = |list: &[CString]| -> Vec<*const c_char> {
        let end = std::iter::once(std::ptr::null());
        list.iter().map(|text| text.as_ptr()).chain(end).collect()
    };
    let (argv, env) = (pointers(&image.argv), pointers(&image.env));
    let (argv, env) = (argv.as_ptr(), env.as_ptr());
    // SAFETY: both lists end in a null pointer, and they and the strings outlive the call.
    unsafe {
        match &image.entry {
            Entry::Path(path) => c_long::from(libc::execve(path.as_ptr(), argv, env)),
            Entry::Opened(_, name) => {
                let (at, flag) = (c_long::from(PROGRAM), c_long::from(libc::AT_EMPTY_PATH));
                libc::syscall(libc::SYS_execveat, at, name.pointer(), argv, env, flag)
            }
        }
    };
    io::Error::last_os_error()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_in_a_child_stays_in_the_child() {
        let status = in_child(|| panic!("in the child")).unwrap();
        assert_eq!(status >> 8, i32::from(NOT_STARTED));
    }
}
