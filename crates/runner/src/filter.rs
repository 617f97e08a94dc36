//! System calls a program behind the walls may not make, as data.

use crate::bpf::{self, Answer, Condition, Program, Rule, Rules};
use crate::spawn::PROGRAM;
use std::os::raw::c_int;

/// Who the filter is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    /// Compilers and build scripts: a refused network is an error they can report.
    Build,
    /// An agent: what a build may, and streams of the session's own network, where there is nobody
    /// but its provider's proxy, if it has one.
    Agent,
    /// A candidate's program: reaching for the network ends it. It starts no program; it is itself
    /// started by its descriptor, with an empty path at the address that only the runner knows.
    Case(Option<u64>),
}

/// The filter to install. Where several lists name a call, the strictest answers first.
pub(crate) fn program(audience: Audience) -> Program {
    let mut rules = Rules::new();
    let lists = [
        deadly(audience),
        absent(),
        closed(audience),
        refused(audience),
    ];
    for (number, rule) in lists.into_iter().flatten() {
        // The numbers of all calls are small and positive.
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        rules.entry(number).or_default().push(rule);
    }
    bpf::program(&rules, LAST_KNOWN_CALL)
}

/// Rules with the call each is about.
type List = Vec<(i64, Rule)>;

/// Refused with this error number, if every condition is met.
fn rule(errno: c_int, when: &[Condition]) -> Rule {
    let (when, answer) = (when.to_vec(), Answer::Errno(errno));
    Rule { when, answer }
}

/// Calls that are refused whatever their arguments.
const REFUSED: &[i64] = &[
    // Rings carry calls past every filter.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Other processes' memory, descriptors and state.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Kernel surface nobody here needs and attackers like.
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    libc::SYS_perf_event_open,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_fanotify_init,
    libc::SYS_lookup_dcookie,
    // Files by handle, past the tree a process can see.
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    // The tree itself.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    // Namespaces.
    libc::SYS_unshare,
    libc::SYS_setns,
    // The machine.
    libc::SYS_reboot,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_syslog,
    libc::SYS_acct,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_kexec_file_load,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
];

/// Flags of `clone` that make namespaces. (A time namespace cannot be asked for by `clone`.)
const NAMESPACES: &[c_int] = &[
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// Socket families that end a case: those that lead out of a machine, or deep into its kernel.
const DEADLY_FAMILIES: &[c_int] = &[
    libc::AF_INET,
    libc::AF_INET6,
    libc::AF_NETLINK,
    libc::AF_PACKET,
    libc::AF_ALG,
    libc::AF_VSOCK,
    libc::AF_BLUETOOTH,
    libc::AF_TIPC,
    libc::AF_XDP,
];

fn refused(audience: Audience) -> List {
    let refused = |when: &[Condition]| rule(libc::EPERM, when);
    let mut list: List = REFUSED.iter().map(|call| (*call, refused(&[]))).collect();
    list.extend(NAMESPACES.iter().map(|flag| {
        let flag = flag.unsigned_abs();
        let set = Condition::Masked {
            argument: 0,
            mask: flag,
            is: flag,
        };
        (libc::SYS_clone, refused(&[set]))
    }));
    let other_family = [Condition::IsNot(0, UNIX)];
    if audience == Audience::Agent {
        list.extend(all_but_streams().map(|when| (libc::SYS_socket, refused(&when))));
    } else {
        list.push((libc::SYS_socket, refused(&other_family)));
    }
    list.push((libc::SYS_socketpair, refused(&other_family)));
    // Asking (`0xffffffff`) and setting the ordinary one (0) change nothing.
    let change = [Condition::IsNot(0, 0), Condition::IsNot(0, u32::MAX)];
    list.push((libc::SYS_personality, refused(&change)));
    if let Audience::Case(entry) = audience {
        // A program written to memory would run without ever having been promoted.
        list.extend(other_entries(entry).map(|when| (libc::SYS_execveat, refused(&when))));
        // A core limit of 0 would start the host's core handler for the case. Reading limits is fine.
        list.push((libc::SYS_setrlimit, refused(&[])));
        list.push((libc::SYS_prlimit64, refused(&[Condition::Differs(2, 0)])));
    }
    list
}

/// Every socket but plain TCP over IPv4, and those of one's own family, which have an errno of their
/// own.
fn all_but_streams() -> impl Iterator<Item = Vec<Condition>> {
    let inet = Condition::Is(0, libc::AF_INET.unsigned_abs());
    let foreign = vec![
        Condition::IsNot(0, UNIX),
        Condition::IsNot(0, libc::AF_INET.unsigned_abs()),
    ];
    let other_protocol = vec![
        inet,
        Condition::IsNot(2, 0),
        Condition::IsNot(2, libc::IPPROTO_TCP.unsigned_abs()),
    ];
    let stream = libc::SOCK_STREAM.unsigned_abs();
    let other_types = (0..=SOCKET_TYPES)
        .filter(move |kind| *kind != stream)
        .map(move |is| {
            let (argument, mask) = (1, SOCKET_TYPES);
            vec![inet, Condition::Masked { argument, mask, is }]
        });
    [foreign, other_protocol].into_iter().chain(other_types)
}

const UNIX: u32 = libc::AF_UNIX.unsigned_abs();
/// The bits of a socket's type that are not flags.
const SOCKET_TYPES: u32 = 0xf;

/// Every `execveat` but the one that starts the program. Where the path lies in memory is drawn at
/// random for each run: the program can neither read the address nor try all of them.
fn other_entries(entry: Option<u64>) -> impl Iterator<Item = Vec<Condition>> {
    let refused = match entry {
        None => vec![vec![]],
        Some(address) => vec![
            vec![Condition::IsNot(0, PROGRAM.unsigned_abs())],
            vec![Condition::Differs(1, address)],
            vec![Condition::IsNot(4, libc::AT_EMPTY_PATH.unsigned_abs())],
        ],
    };
    refused.into_iter()
}

/// What is refused with the errno of a file one may not open: a socket of one's own family, and to
/// a case every program. Socket pairs stay: they reach only who already holds the other end.
fn closed(audience: Audience) -> List {
    let socket = rule(libc::EACCES, &[Condition::Is(0, UNIX)]);
    let mut list = vec![(libc::SYS_socket, socket)];
    if let Audience::Case(_) = audience {
        // The loader is a program as well, and maps whatever file it is handed.
        list.push((libc::SYS_execve, rule(libc::EACCES, &[])));
    }
    list
}

/// Calls that do not exist: the flags of this one are in memory, where no filter sees them.
fn absent() -> List {
    vec![(libc::SYS_clone3, rule(libc::ENOSYS, &[]))]
}

fn deadly(audience: Audience) -> List {
    let Audience::Case(_) = audience else {
        return Vec::new();
    };
    let ends = |family: &c_int| {
        let (when, answer) = (vec![Condition::Is(0, family.unsigned_abs())], Answer::Kill);
        (libc::SYS_socket, Rule { when, answer })
    };
    DEADLY_FAMILIES.iter().map(ends).collect()
}

/// The newest call this list was written against (`mseal`, Linux 6.10). Later ones do not exist for
/// a program behind the walls, and neither does the x32 interface, whose numbers start at 2^30.
const LAST_KNOWN_CALL: u32 = 462;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::tests::{OURS, verdict, walk};

    const CASE: Audience = Audience::Case(None);
    const ALLOW: u32 = 0x7fff_0000;
    const KILL: u32 = 0x8000_0000;

    fn errno(number: c_int) -> u32 {
        0x0005_0000 | number.unsigned_abs()
    }

    fn answer(audience: Audience, number: i64, arguments: [u64; 6]) -> u32 {
        answer_raw(audience, u32::try_from(number).unwrap(), OURS, arguments)
    }

    fn answer_raw(audience: Audience, number: u32, arch: u32, arguments: [u64; 6]) -> u32 {
        verdict(&program(audience), number, arch, arguments)
    }

    fn first(argument: c_int) -> [u64; 6] {
        [u64::from(argument.unsigned_abs()), 0, 0, 0, 0, 0]
    }

    #[test]
    fn every_listed_call_is_refused_to_both() {
        for audience in [Audience::Build, CASE] {
            for number in REFUSED {
                assert_eq!(
                    answer(audience, *number, [0; 6]),
                    errno(libc::EPERM),
                    "{number}"
                );
            }
        }
    }

    #[test]
    fn ordinary_calls_pass() {
        for number in [
            libc::SYS_read,
            libc::SYS_openat,
            libc::SYS_futex,
            libc::SYS_getrandom,
            libc::SYS_kill,
        ] {
            assert_eq!(answer(CASE, number, [u64::MAX; 6]), ALLOW);
        }
    }

    #[test]
    fn the_network_ends_a_case_and_fails_in_a_build() {
        for family in DEADLY_FAMILIES {
            let asked = first(*family);
            assert_eq!(answer(CASE, libc::SYS_socket, asked), KILL);
            assert_eq!(
                answer(Audience::Build, libc::SYS_socket, asked),
                errno(libc::EPERM)
            );
        }
        let strange = first(33);
        assert_eq!(answer(CASE, libc::SYS_socket, strange), errno(libc::EPERM));
        let unix = first(libc::AF_UNIX);
        assert_eq!(answer(CASE, libc::SYS_socket, unix), errno(libc::EACCES));
        assert_eq!(answer(CASE, libc::SYS_socketpair, unix), ALLOW);
        let inet = first(libc::AF_INET);
        assert_eq!(answer(CASE, libc::SYS_socketpair, inet), errno(libc::EPERM));
    }

    #[test]
    fn an_agent_gets_plain_streams_and_no_other_socket() {
        let ask = |family: c_int, kind: c_int, protocol: u64| {
            let number = |n: c_int| u64::from(n.unsigned_abs());
            let asked = [number(family), number(kind), protocol, 0, 0, 0];
            answer(Audience::Agent, libc::SYS_socket, asked)
        };
        let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        for (kind, protocol) in [(libc::SOCK_STREAM, 0), (libc::SOCK_STREAM | flags, 6)] {
            assert_eq!(ask(libc::AF_INET, kind, protocol), ALLOW);
        }
        for (family, kind, protocol) in [
            (libc::AF_INET, libc::SOCK_DGRAM, 0),
            (libc::AF_INET, libc::SOCK_RAW | flags, 0),
            (libc::AF_INET, libc::SOCK_STREAM, 132),
            (libc::AF_INET, libc::SOCK_STREAM, 262),
            (libc::AF_INET6, libc::SOCK_STREAM, 0),
            (libc::AF_NETLINK, libc::SOCK_RAW, 0),
            (libc::AF_VSOCK, libc::SOCK_STREAM, 0),
        ] {
            assert_eq!(
                ask(family, kind, protocol),
                errno(libc::EPERM),
                "{family} {kind}"
            );
        }
        assert_eq!(
            ask(libc::AF_UNIX, libc::SOCK_STREAM, 0),
            errno(libc::EACCES)
        );
        for number in REFUSED {
            assert_eq!(answer(Audience::Agent, *number, [0; 6]), errno(libc::EPERM));
        }
    }

    #[test]
    fn high_bits_of_a_family_do_not_hide_it() {
        let asked = [(1 << 32) | 2, 0, 0, 0, 0, 0];
        assert_eq!(answer(CASE, libc::SYS_socket, asked), KILL);
    }

    #[test]
    fn a_clone_may_not_make_a_namespace_and_an_ordinary_one_may_pass() {
        for flag in NAMESPACES {
            let asked = first(*flag | libc::CLONE_VM | libc::SIGCHLD);
            assert_eq!(answer(CASE, libc::SYS_clone, asked), errno(libc::EPERM));
        }
        let thread = libc::CLONE_VM | libc::CLONE_FS | libc::CLONE_FILES | libc::CLONE_SIGHAND;
        assert_eq!(answer(CASE, libc::SYS_clone, first(thread)), ALLOW);
        assert_eq!(answer(CASE, libc::SYS_clone3, [0; 6]), errno(libc::ENOSYS));
    }

    #[test]
    fn personality_may_be_asked_for_and_not_changed() {
        let ask = [u64::from(u32::MAX), 0, 0, 0, 0, 0];
        assert_eq!(answer(CASE, libc::SYS_personality, ask), ALLOW);
        assert_eq!(answer(CASE, libc::SYS_personality, [0; 6]), ALLOW);
        let no_random = first(libc::ADDR_NO_RANDOMIZE);
        assert_eq!(
            answer(CASE, libc::SYS_personality, no_random),
            errno(libc::EPERM)
        );
    }

    #[test]
    fn calls_newer_than_the_list_and_other_interfaces_do_not_exist() {
        let newer = LAST_KNOWN_CALL + 1;
        assert_eq!(answer_raw(CASE, newer, OURS, [0; 6]), errno(libc::ENOSYS));
        let x32_socket = 0x4000_0000 + 41;
        assert_eq!(
            answer_raw(CASE, x32_socket, OURS, first(2)),
            errno(libc::ENOSYS)
        );
        let i386 = 0x4000_0003;
        assert_eq!(answer_raw(Audience::Build, 102, i386, first(2)), KILL);
    }

    #[test]
    fn only_a_case_may_not_execute_from_memory() {
        let execveat = libc::SYS_execveat;
        assert_eq!(answer(CASE, execveat, [0; 6]), errno(libc::EPERM));
        assert_eq!(answer(Audience::Build, execveat, [0; 6]), ALLOW);
        let execve = libc::SYS_execve;
        assert_eq!(answer(CASE, execve, [0; 6]), errno(libc::EACCES));
        assert_eq!(answer(Audience::Build, execve, [0; 6]), ALLOW);
    }

    #[test]
    fn a_case_is_entered_by_one_descriptor_at_one_address_in_one_way() {
        let (address, flag) = (
            0x1234_5678_9abc,
            u64::from(libc::AT_EMPTY_PATH.unsigned_abs()),
        );
        let descriptor = u64::from(PROGRAM.unsigned_abs());
        let entered =
            |arguments| answer(Audience::Case(Some(address)), libc::SYS_execveat, arguments);
        assert_eq!(entered([descriptor, address, 1, 2, flag, 0]), ALLOW);
        for other in [
            [descriptor, address + 1, 1, 2, flag, 0],
            [descriptor, address | (1 << 50), 1, 2, flag, 0],
            [descriptor + 1, address, 1, 2, flag, 0],
            [descriptor, address, 1, 2, 0, 0],
        ] {
            assert_eq!(entered(other), errno(libc::EPERM), "{other:?}");
        }
    }

    /// The kernel walks a new filter for every number: in a list, the way to the last would be ten
    /// times as long.
    #[test]
    fn the_way_to_every_answer_is_short() {
        let program = program(CASE);
        for number in 0..=LAST_KNOWN_CALL {
            let (_, taken) = walk(&program, number, OURS, [0; 6]);
            assert!(taken < 60, "{number}: {taken} of {}", program.len());
        }
        let all = |number| walk(&program, number, OURS, [0; 6]).1;
        assert!((0..=LAST_KNOWN_CALL).map(all).sum::<usize>() < 24 * 463);
    }
}
