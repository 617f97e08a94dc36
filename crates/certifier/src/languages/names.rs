//! Names that changed code in other languages than Rust may not have, or only by a waiver.

/// Whether a list has a word.
pub(super) fn has(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|known| known == word)
}

pub(super) const C_INTROSPECTION: &str = "\
    __BASE_FILE__ __COUNTER__ __DATE__ __FILE__ __FUNCTION__ __INCLUDE_LEVEL__ __LINE__ \
    __PRETTY_FUNCTION__ __TIMESTAMP__ __TIME__ __builtin_FILE __builtin_FUNCTION __builtin_LINE \
    __builtin_frame_address __builtin_return_address __executable_start __func__ assert backtrace \
    dl_iterate_phdr dladdr getauxval program_invocation_name";

/// Names that the linker gives to places of the program, and that a program may give to others.
pub(super) const C_LINKED: &str = "edata end etext";

pub(super) const C_DYNAMIC: &str = "\
    __libc_dlopen_mode __libc_dlsym dlmopen dlopen dlsym dlvsym mmap mmap64 mprotect pkey_mprotect \
    remap_file_pages syscall";

pub(super) const C_FOREIGN: &str = "\
    __attribute __attribute__ __declspec _Pragma alias constructor destructor ifunc section";

pub(super) const GO_INTROSPECTION: &str = "\
    runtime runtime/debug runtime/pprof runtime/trace debug/elf debug/dwarf debug/gosym \
    debug/buildinfo embed testing";

pub(super) const GO_UNSAFE: &str = "\
    unsafe C syscall plugin reflect";

pub(super) const JS_INTROSPECTION: &str = "\
    __dirname __filename callee caller captureStackTrace prepareStackTrace stack toSource \
    toString stackTraceLimit";

pub(super) const JS_DYNAMIC: &str = "\
    AsyncFunction AsyncGeneratorFunction Function GeneratorFunction Proxy Reflect ShadowRealm String \
    WebAssembly __defineGetter__ __defineSetter__ __lookupGetter__ __lookupSetter__ __proto__ \
    _linkedBinding binding constructor dlopen eval execArgv getBuiltinModule \
    getOwnPropertyDescriptor getOwnPropertyDescriptors getPrototypeOf mainModule setEngine \
    setPrototypeOf";

/// Modules that answer and compute. Others look into the program, run another, or reach out.
pub(super) const JS_MODULES: &str = "\
    assert buffer crypto events fs fs/promises os path punycode querystring readline stream \
    string_decoder timers url util zlib";

pub(super) const PYTHON_DYNAMIC: &str = "\
    BaseConfigurator CodeType ConvertingDict ConvertingList DictConfigurator Formatter ForwardRef \
    FunctionType InteractiveConsole InteractiveInterpreter LambdaType _create_fn _evaluate _resolve \
    attrgetter breakpoint builtins c2py compile delattr eval exec format_map get_type_hints globals \
    locals methodcaller resolve_name runcode runsource setattr vars";

pub(super) const PYTHON_INTROSPECTION: &str = "\
    _getframe ag_code ag_frame cr_code cr_frame f_back f_builtins f_code f_globals f_lineno \
    f_locals gi_code gi_frame meta_path modules path_hooks setprofile settrace tb_frame tb_lasti \
    tb_lineno";

/// Names between two pairs of underscores that say nothing of the code behind them.
pub(super) const PYTHON_SPECIAL: &str = "\
    __abs__ __add__ __aenter__ __aexit__ __aiter__ __all__ __and__ __anext__ __bool__ __bytes__ \
    __call__ __contains__ __delitem__ __enter__ __eq__ __exit__ __float__ __floordiv__ __format__ \
    __future__ __ge__ __getitem__ __gt__ __hash__ __iadd__ __index__ __init__ __int__ __invert__ \
    __isub__ __iter__ __le__ __len__ __lt__ __main__ __missing__ __mod__ __mul__ __name__ __ne__ \
    __neg__ __new__ __next__ __or__ __pos__ __post_init__ __pow__ __radd__ __repr__ __reversed__ \
    __rmul__ __round__ __rsub__ __setitem__ __slots__ __str__ __sub__ __truediv__ __version__ \
    __xor__";

/// Headers of the C library and of the compiler that others of them include, and folders of such.
pub(super) const C_SYSTEM: &str = "\
    alloca argz cet complex ctype dirent dlfcn elf endian errno fcntl features features-time64 float \
    getopt gnu-versions inttypes limits locale math mm3dnow mm_malloc nl_types openacc paths pthread \
    quadmath regex sched signal stdarg stdbool stdc-predef stddef stdint stdint-gcc stdio stdlib \
    string strings syslimits termios time unistd utmp";

pub(super) const C_SYSTEM_FOLDERS: &str = "\
    aarch64-linux-gnu arpa asm asm-generic bits c++ drm finclude gnu linux misc mtd net netash \
    netatalk netax25 neteconet netinet netipx netiucv netpacket netrom netrose nfs protocols rdma rpc \
    rpcsvc sanitizer scsi sound sys video x86_64-linux-gnu xen";

pub(super) const C_EFFECTS: &str = "\
    accept accept4 add_key addmntent adjtime adjtimex aio_write aio_write64 bind bpf bsd_signal \
    callrpc chdir chmod chown chroot clearenv clnt_create clock_adjtime clock_settime clone clone3 \
    closelog connect copy_file_range creat daemon dbm_open delete_module execl execle execlp execv \
    execve execveat execvp fallocate fanotify_init fchdir fchmod fchown fcntl fdopen finit_module \
    flock fmtmsg fopen fopencookie fork forkpty fremovexattr freopen fsetxattr ftruncate futimens \
    futimes getnameinfo getpt grantpt init_module initgroups inotify_init inotify_init1 \
    io_uring_setup ioctl ioperm iopl kexec_load keyctl kill killpg landlock_restrict_self lchown \
    lckpwdf link lio_listio listen lockf login login_tty logout logwtmp lremovexattr lsetxattr \
    lutimes memfd_create memfd_secret mkdir mkdtemp mkfifo mknod mkstemp mktemp mount mq_notify \
    mq_open mq_send mq_setattr mq_timedsend mq_unlink msgctl msgget msgsnd ntp_adjtime open \
    open_by_handle_at openat openlog openpty perf_event_open pidfd_getfd pidfd_open pidfd_send_signal \
    pivot_root popen posix_fallocate posix_openpt posix_spawn prctl prlimit process_vm_readv \
    process_vm_writev pthread_kill pthread_sigqueue ptrace putenv putgrent putpwent putsgent putspent \
    pututline pututxline pwrite pwrite64 pwritev pwritev2 quotactl rcmd rcmd_af reboot remove \
    removexattr rename renameat renameat2 request_key res_nquery res_nsearch res_nsend res_query \
    res_search res_send rexec rexec_af rmdir rresvport sched_setaffinity sched_setattr sched_setparam \
    sched_setscheduler seccomp sem_open sem_unlink semctl semget semop semtimedop sendfile sendmmsg \
    sendmsg sendto setdomainname setegid setenv seteuid setfsgid setfsuid setgid setgroups sethostid \
    sethostname setlogin setmntent setns setpgid setpgrp setpriority setresuid setreuid setrlimit \
    setsid settimeofday setuid setxattr shm_open shm_unlink shmat shmctl shmget sigaction signal \
    sigqueue sigset sigvec socket socketpair splice ssignal stime svctcp_create svcudp_create swapoff \
    swapon symlink sync_file_range syslog system sysv_signal tcsendbreak tcsetattr tcsetpgrp tempnam \
    tgkill tkill tmpfile tmpnam tmpnam_r truncate ulckpwdf umask umount umount2 unlink unlinkat \
    unlockpt unsetenv unshare updwtmp updwtmpx uselib userfaultfd utime utimensat utimes utmpname \
    utmpxname vfork vhangup vmsplice vsyslog wordexp";

pub(super) const GO_EFFECTS: &str = "\
    Chdir Chmod Chown Chroot Chtimes Clearenv Command CommandContext CopyFS Create CreateTemp Dial \
    DialTimeout Exec FileConn FileListener FilePacketConn FindProcess ForkExec Lchown Link Listen \
    ListenAndServe Mkdir MkdirAll MkdirTemp Mkfifo Mknod NewFile OpenFile OpenInRoot OpenRoot Remove \
    RemoveAll RemoveXattr Rename ResolveIPAddr ResolveTCPAddr ResolveUDPAddr Rmdir SendMail SetXattr \
    Setenv StartProcess Symlink TempDir TempFile Truncate Unlink Unsetenv WriteFile cgi exec fcgi \
    http httptest httputil rpc smtp syslog";

pub(super) const JS_EFFECTS: &str = "\
    BroadcastChannel EventSource FileWriteStream WebSocket Worker WriteStream XMLHttpRequest \
    _debugProcess _kill appendFile appendFileSync chdir chmod chmodSync chown copyFile copyFileSync \
    cp cpSync createWriteStream env exec execFile execSync execve fchmod fchown fdatasync fetch fork \
    fsync ftruncate futimes initgroups kill lchmod lchown link linkSync loadEnvFile localStorage \
    lutimes mkdir mkdirSync mkdtemp mkdtempDisposable open openAsBlob openSync rename renameSync rm \
    rmSync rmdir rmdirSync sendBeacon sessionStorage setPriority setegid seteuid setgid setgroups \
    setuid spawn spawnSync startupSnapshot symlink symlinkSync truncate truncateSync umask unlink \
    unlinkSync utimes writeFile writeFileSync writeHeapSnapshot writeReport writev";

pub(super) const PYTHON_EFFECTS: &str = "\
    BZ2File DatagramHandler FancyURLopener FileCookieJar FileHandler FileIO GzipFile HTTPHandler \
    HTTPPasswordMgr LWPCookieJar LZMAFile MemoryHandler MozillaCookieJar NTEventLogHandler \
    OpenerDirector RotatingFileHandler SMTPHandler SocketHandler SysLogHandler \
    TimedRotatingFileHandler URLopener WatchedFileHandler aiohttp antigravity append_history_file \
    asyncio basicConfig binhex build_opener chdir chflags chmod chown chroot concurrent cookiejar \
    copy_file_range copy_into curses dbm dictConfig distutils dump_stats environ environb execv \
    execve fchmod fchown fcntl fdopen fileConfig fileinput fork forkpty ftplib ftruncate getnode \
    hardlink_to http httpx imaplib initgroups install_opener kill killpg lchflags lchmod lchown \
    lib2to3 link listen lockf login_tty mailbox makedirs memfd_create mkdir mkfifo mknod mmap \
    move_into msilib msvcrt multiprocessing nntplib open open_code openpty pidfd_open \
    pidfd_send_signal plock popen poplib posix posix_openpt pthread_kill putenv pwrite raise_signal \
    read_init_file remove removedirs removexattr rename renames requests resource rmdir rmtree \
    sched_setaffinity sched_setparam sched_setscheduler selectors sendfile setegid setenv seteuid \
    setgid setgroups setns setpgid setpgrp setpriority setregid setresgid setresuid setreuid \
    setrlimit setsid setuid setxattr shelve shutil smtplib socket socketserver spawnv sqlite3 ssl \
    startfile subprocess symlink symlink_to syslog system tarfile telnetlib tempfile termios \
    threading tkinter touch truncate turtle umask unlink unsetenv unshare urllib3 urlopen urlretrieve \
    utime uu uuid1 webbrowser winreg winsound write_bytes write_history_file write_text wsgiref \
    xmlrpc zipfile";

/// Modules among these that are words of any program.
pub(super) const PYTHON_WORDS: &str = "\
    code opcode pipes profile site timeit token trace tty types venv";

/// Modules of the standard library that see code, or load what no compiler of the flight saw.
pub(super) const PYTHON_MODULES: &str = "\
    _ast _asyncio _ctypes _frozen_importlib _frozen_importlib_external _imp _interpreters _lsprof \
    _opcode _pickle _posixsubprocess _socket _symtable _testcapi _testinternalcapi _thread \
    _tracemalloc _weakref _xxsubinterpreters atexit bdb builtins cProfile cffi code codeop \
    compileall copyreg ctypes dis doctest ensurepip faulthandler gc idlelib imp importlib inspect \
    linecache marshal modulefinder opcode pdb pickle pickletools pipes pkgutil profile pstats pty \
    py_compile pyclbr pydoc rlcompleter runpy site symtable sysconfig tabnanny timeit token \
    tokenize trace traceback tracemalloc tty types unittest venv zipapp zipimport";
