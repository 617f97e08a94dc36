/* Programs that try to get out of a case. The first argument says how. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

static int is(const char *a, const char *b) { return strcmp(a, b) == 0; }

static void say(const char *what, long result) {
    printf("%s %ld %s\n", what, result, result < 0 ? strerrorname_np(errno) : "ok");
    fflush(stdout);
}

/* Two forks and a session of its own, as a daemon does. The standard streams stay open. */
static void daemonize(void) {
    if (fork() != 0) { wait(0); _exit(0); }
    setsid();
    if (fork() != 0) _exit(0);
}

static void write_file(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CREAT, 0644);
    if (fd >= 0) { write(fd, text, strlen(text)); close(fd); }
    say(path, fd);
}

static void read_file(const char *path) {
    char buffer[64];
    int fd = open(path, O_RDONLY);
    say(path, fd);
    if (fd >= 0) say("read", read(fd, buffer, sizeof buffer));
}

/* The number of a mount, never given twice: later mounts have larger ones. */
static long mount_number(const char *path) {
    struct statx is;
    memset(&is, 0, sizeof is);
    if (syscall(SYS_statx, AT_FDCWD, path, 0, 0x4000, &is) < 0) return -1;
    return ((unsigned long *)&is)[18];
}

/* Whether a directory tells how long ago something happened in the session. */
static int tells_age(const char *path) {
    struct stat is;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (stat(path, &is)) return 0;
    double age = now.tv_sec - is.st_ctim.tv_sec + (now.tv_nsec - is.st_ctim.tv_nsec) / 1e9;
    return age > 0.2 && age < 600;
}

int main(int argc, char **argv, char **envp) {
    const char *act = argc > 1 ? argv[1] : "";
    signal(SIGTERM, SIG_IGN);
    if (is(act, "echo")) {
        char buffer[4096];
        ssize_t n;
        printf("%s|", argv[0]);
        for (int i = 2; i < argc; i++) printf("%s|", argv[i]);
        for (char **e = envp; *e; e++) printf("%s|", *e);
        fflush(stdout);
        while ((n = read(0, buffer, sizeof buffer)) > 0) write(1, buffer, n);
        fputs("err", stderr);
        return 7;
    }
    if (is(act, "whoami")) {
        printf("%d %d %d %d\n", getuid(), getgid(), getpid() == 1, getsid(0) == getpid());
        return 0;
    }
    if (is(act, "bomb")) for (;;) fork();
    if (is(act, "bomb-and-leave")) {
        for (int i = 0; i < 6; i++) fork();
        setsid();
        if (getppid() != 1) pause();
        return 0;
    }
    if (is(act, "daemon")) {
        daemonize();
        for (int i = 0;; i++) { write_file("/case/still-here", "x"); usleep(10000); }
    }
    if (is(act, "hold-pipe")) {
        printf("before");
        fflush(stdout);
        if (fork() == 0) { setsid(); for (;;) pause(); }
        return 3;
    }
    if (is(act, "close-and-stay")) { close(1); close(2); for (;;) pause(); }
    if (is(act, "forever")) {
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, 0);
        for (;;) pause();
    }
    if (is(act, "stop")) { raise(SIGSTOP); return 0; }
    if (is(act, "abort")) abort();
    if (is(act, "flood")) { char block[65536]; memset(block, 'x', sizeof block); for (;;) write(1, block, sizeof block); }
    if (is(act, "print")) { long n = atol(argv[2]); while (n-- > 0) putchar('x'); return 0; }
    if (is(act, "litter")) {
        write_file("/case/left", "behind");
        mkdir("/case/locked", 0700);
        mkdir("/case/locked/in", 0700);
        setxattr("/case", "user.mark", "seen", 4, 0);
        struct timespec times[2] = {{1, 0}, {1, 0}};
        utimensat(AT_FDCWD, "/case", times, 0);
        symlink("/exe", "/case/link");
        mkfifo("/case/pipe", 0600);
        for (int i = 0; i < 1200; i++) if (mkdir("d", 0700) || chdir("d")) break;
        chmod("/case/locked", 0);
        chmod("/case", 0);
        return 0;
    }
    if (is(act, "fill")) {
        char block[65536] = {1};
        int fd = open("/case/full", O_WRONLY | O_CREAT, 0600);
        while (write(fd, block, sizeof block) > 0) {}
        say("full", -1);
        mkdir("/case/a", 0700);
        mkdir("/case/a/b", 0700);
        return 0;
    }
    if (is(act, "look")) {
        execl("/bin/ls", "ls", "-A", "/case", NULL);
        struct stat st;
        say("stat", stat("/case/left", &st));
        say("mode", stat("/case", &st) ? -1 : (st.st_mode & 07777));
        say("entries", st.st_nlink);
        say("mark", getxattr("/case", "user.mark", 0, 0));
        say("old", st.st_mtime < 1000);
        write_file("/case/number", "");
        say("inode", stat("/case/number", &st) ? -1 : st.st_ino);
        return 0;
    }
    if (is(act, "cat")) { read_file(argv[2]); return 0; }
    if (is(act, "kill")) {
        say("all", kill(-1, SIGKILL));
        say("init", kill(1, SIGKILL));
        say("group", kill(0, 0));
        for (int pid = 2; pid < 300; pid++)
            if (pid != getpid() && kill(pid, SIGKILL) == 0) say("killed", pid);
        return 0;
    }
    if (is(act, "trace")) {
        say("attach", ptrace(PTRACE_ATTACH, 1, 0, 0));
        say("seize", ptrace(PTRACE_SEIZE, 1, 0, 0));
        char byte;
        struct { void *p; size_t n; } local = {&byte, 1}, remote = {(void *)0x400000, 1};
        say("read", syscall(SYS_process_vm_readv, 1, &local, 1, &remote, 1, 0));
        int fd = syscall(SYS_pidfd_open, 1, 0);
        say("getfd", fd < 0 ? -1 : syscall(SYS_pidfd_getfd, fd, 0, 0));
        return 0;
    }
    if (is(act, "reach")) {
        const char *paths[] = {"/runner/flights", "/flight/src", "/flight/target/attacker", "/toolchain/attacker",
            "/etc/passwd", "/proc/1/mem", "/proc/self/mem", "/usr/bin/env", "/exe", "/", 0};
        for (const char **p = paths; *p; p++) read_file(*p);
        struct stat st;
        say("stat", stat("/flight/target/attacker", &st));
        say("rename", rename("/exe/attacker", "/exe/other"));
        say("unlink", unlink("/exe/attacker"));
        write_file("/exe/attacker", "x");
        write_file("/tmp/x", "x");
        write_file("/dev/x", "x");
        execl("/toolchain/attacker", "a", "whoami", NULL);
        say("exec", -1);
        return 0;
    }
    if (is(act, "who-am-i-really")) {
        const char *places[] = {"/", "/exe", "/flight", "/tmp", "/runner", "/etc", "/dev", "/toolchain", "/case",
            "/usr/local", "/lib64", 0};
        char name[17] = {0};
        prctl(PR_GET_NAME, name);
        printf("%s %s %s\n", argv[0], (char *)getauxval(AT_EXECFN), name);
        struct stat st;
        say("short", stat("/exe/attacker", &st) ? -1 : st.st_size);
        say("own", open((char *)getauxval(AT_EXECFN), O_RDONLY));
        say("again", fcntl(6, F_GETFD));
        for (const char **p = places; *p; p++) if (tells_age(*p)) printf("%s tells its age\n", *p);
        return 0;
    }
    if (is(act, "mounts")) { printf("%ld\n", mount_number("/case") - mount_number("/")); return 0; }
    if (is(act, "loader")) {
        char *args[] = {"ld", "/case/program", 0}, *none[] = {0};
        execve("/lib64/ld-linux-x86-64.so.2", args, none);
        say("loader", -1);
        return 0;
    }
    if (is(act, "descriptors")) {
        for (int fd = 3; fd < 4096; fd++) if (fcntl(fd, F_GETFD) >= 0) printf("%d ", fd);
        return 0;
    }
    if (is(act, "internet")) { say("socket", socket(AF_INET, SOCK_STREAM, 0)); return 0; }
    if (is(act, "signals")) {
        struct sigaction old;
        sigset_t mask;
        sigprocmask(SIG_BLOCK, 0, &mask);
        sigaction(SIGPIPE, 0, &old);
        printf("%d %d\n", old.sa_handler == SIG_DFL, sigismember(&mask, SIGPIPE));
        return 0;
    }
    if (is(act, "guard")) {
        unsigned long id = 0;
        char end, armed = 6;
        long n = read(3, &id, 8), rest = read(3, &end, 1);
        write(4, &armed, 1);
        close(3); close(4);
        printf("%ld %ld %lu\n", n, rest, id);
        return 0;
    }
    if (is(act, "false-guard")) { write(4, "\6\6", 2); return 0; }
    if (is(act, "memory-exec")) {
        int fd = memfd_create("x", 0);
        say("memfd", fd < 0 ? -1 : 0);
        char *none[] = {0};
        say("exec", syscall(SYS_execveat, fd, "", none, none, AT_EMPTY_PATH));
        return 0;
    }
    return 99;
}
