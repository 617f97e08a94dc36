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

pub(super) const C_EFFECTS: &str = "\
    accept accept4 bind chdir chmod chown chroot clearenv clone clone3 connect copy_file_range \
    creat daemon execl execle execlp execv execve execveat execvp fallocate fchdir fchmod fchown \
    fcntl fdopen fopen fork forkpty fremovexattr freopen fsetxattr ftruncate futimens futimes \
    ioctl kill killpg lchown link listen lremovexattr lsetxattr lutimes mkdir mkdtemp mkfifo \
    mknod mkstemp mktemp mount mq_open open openat pidfd_open pivot_root popen posix_fallocate \
    posix_spawn prctl ptrace putenv pwrite pwritev reboot remove removexattr rename renameat \
    renameat2 rmdir sem_open sendfile sendmmsg sendmsg sendto setegid setenv seteuid setgid setns \
    setresuid setreuid setrlimit setuid setxattr shm_open shm_unlink sigaction signal sigqueue \
    socket socketpair splice symlink system tempnam tmpfile tmpnam truncate umask umount unlink \
    unlinkat unsetenv unshare utime utimensat utimes vfork vmsplice wordexp";

pub(super) const GO_EFFECTS: &str = "\
    Chdir Chmod Chown Chroot Chtimes Command CommandContext CopyFS Create CreateTemp Dial \
    DialTimeout Exec ForkExec Lchown Link Listen ListenAndServe Mkdir MkdirAll MkdirTemp Mkfifo \
    Mknod NewFile OpenFile OpenInRoot OpenRoot Remove RemoveAll RemoveXattr Rename Rmdir SetXattr \
    Setenv StartProcess Symlink Truncate Unlink Unsetenv WriteFile exec http httptest rpc smtp";

pub(super) const JS_EFFECTS: &str = "\
    EventSource FileWriteStream WebSocket Worker WriteStream XMLHttpRequest appendFile \
    appendFileSync chdir chmod chmodSync chown copyFile copyFileSync cp cpSync createWriteStream \
    env exec execFile execSync fchmod fchown fdatasync fetch fork fsync ftruncate futimes kill \
    lchmod lchown link linkSync lutimes mkdir mkdirSync mkdtemp mkdtempDisposable open openAsBlob \
    openSync rename renameSync rm rmSync rmdir rmdirSync sendBeacon setegid seteuid setgid setuid \
    spawn spawnSync symlink symlinkSync truncate truncateSync unlink unlinkSync utimes writeFile \
    writeFileSync writev";

pub(super) const PYTHON_EFFECTS: &str = "\
    BZ2File DatagramHandler FancyURLopener FileHandler FileIO GzipFile HTTPHandler \
    HTTPPasswordMgr LZMAFile MemoryHandler NTEventLogHandler OpenerDirector RotatingFileHandler \
    SMTPHandler SocketHandler SysLogHandler TimedRotatingFileHandler URLopener WatchedFileHandler \
    aiohttp asyncio basicConfig build_opener chdir chmod chown chroot concurrent copy_file_range \
    dbm dictConfig environ execv execve fchmod fchown fcntl fdopen fileConfig fileinput fork \
    forkpty ftplib ftruncate hardlink_to http httpx imaplib install_opener kill killpg lchmod \
    lchown link listen mailbox makedirs mkdir mkfifo mknod mmap multiprocessing nntplib open \
    popen poplib posix putenv pwrite remove removedirs removexattr rename renames requests \
    resource rmdir rmtree selectors sendfile setenv setxattr shelve shutil smtplib socket \
    socketserver spawnv sqlite3 ssl startfile subprocess symlink symlink_to system tarfile \
    telnetlib tempfile threading touch truncate unlink unsetenv urllib3 urlopen urlretrieve utime \
    webbrowser write_bytes write_text wsgiref xmlrpc zipfile";

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
