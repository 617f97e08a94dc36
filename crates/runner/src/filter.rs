//! System calls a program behind the walls may not make, as data.

use crate::spawn::PROGRAM;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};
use std::collections::BTreeMap;
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

/// The programs to install, in this order. The strictest answer of all wins.
pub(crate) fn programs(audience: Audience) -> Result<Vec<BpfProgram>, String> {
    let mut list = vec![unknown_numbers()];
    for (errno, rules) in [
        (libc::EPERM, refused(audience)?),
        (libc::EACCES, closed(audience)?),
        (libc::ENOSYS, BTreeMap::from([(libc::SYS_clone3, vec![])])),
    ] {
        list.push(compile(rules, SeccompAction::Errno(errno.unsigned_abs()))?);
    }
    if let Audience::Case(_) = audience {
        list.push(compile(deadly()?, SeccompAction::KillProcess)?);
    }
    Ok(list)
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn compile(rules: Rules, action: SeccompAction) -> Result<BpfProgram, String> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|e| e.to_string())?;
    SeccompFilter::new(rules, SeccompAction::Allow, action, arch)
        .and_then(TryInto::try_into)
        .map_err(|e| e.to_string())
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

fn refused(audience: Audience) -> Result<Rules, String> {
    let mut rules: Rules = REFUSED.iter().map(|number| (*number, vec![])).collect();
    let namespaces = NAMESPACES.iter().map(|flag| {
        let flag = u64::from(flag.unsigned_abs());
        rule(&[(0, SeccompCmpOp::MaskedEq(flag), flag)])
    });
    rules.insert(libc::SYS_clone, namespaces.collect::<Result<_, _>>()?);
    let unix = u64::from(libc::AF_UNIX.unsigned_abs());
    let other_family = || rule(&[(0, SeccompCmpOp::Ne, unix)]);
    rules.insert(
        libc::SYS_socket,
        match audience {
            Audience::Agent => all_but_streams(unix)?,
            _ => vec![other_family()?],
        },
    );
    rules.insert(libc::SYS_socketpair, vec![other_family()?]);
    rules.insert(libc::SYS_personality, vec![change_of_personality()?]);
    if let Audience::Case(entry) = audience {
        // A program written to memory would run without ever having been promoted.
        rules.insert(libc::SYS_execveat, other_entries(entry)?);
        // A core limit of 0 would start the host's core handler for the case. Reading limits is fine.
        rules.insert(libc::SYS_setrlimit, vec![]);
        rules.insert(
            libc::SYS_prlimit64,
            vec![rule(&[(2, SeccompCmpOp::Ne, 0)])?],
        );
    }
    Ok(rules)
}

/// Every socket but plain TCP over IPv4, and those of one's own family, which have an errno of their
/// own.
fn all_but_streams(unix: u64) -> Result<Vec<SeccompRule>, String> {
    let number = |n: c_int| u64::from(n.unsigned_abs());
    let inet = number(libc::AF_INET);
    let foreign = rule(&[(0, SeccompCmpOp::Ne, unix), (0, SeccompCmpOp::Ne, inet)])?;
    let other_protocol = rule(&[
        (0, SeccompCmpOp::Eq, inet),
        (2, SeccompCmpOp::Ne, 0),
        (2, SeccompCmpOp::Ne, number(libc::IPPROTO_TCP)),
    ])?;
    let stream = number(libc::SOCK_STREAM);
    let other_types = (0..=SOCKET_TYPES)
        .filter(|kind| *kind != stream)
        .map(|kind| {
            let is_type = SeccompCmpOp::MaskedEq(SOCKET_TYPES);
            rule(&[(0, SeccompCmpOp::Eq, inet), (1, is_type, kind)])
        });
    let mut rules = vec![foreign, other_protocol];
    rules.extend(other_types.collect::<Result<Vec<_>, _>>()?);
    Ok(rules)
}

/// The bits of a socket's type that are not flags.
const SOCKET_TYPES: u64 = 0xf;

/// Asking (`0xffffffff`) and setting the ordinary one (0) change nothing.
fn change_of_personality() -> Result<SeccompRule, String> {
    let (ordinary, ask) = (0, u64::from(u32::MAX));
    rule(&[(0, SeccompCmpOp::Ne, ordinary), (0, SeccompCmpOp::Ne, ask)])
}

/// Every `execveat` but the one that starts the program. Where the path lies in memory is drawn at
/// random for each run: the program can neither read the address nor try all of them.
fn other_entries(entry: Option<u64>) -> Result<Vec<SeccompRule>, String> {
    let Some(address) = entry else {
        return Ok(vec![]);
    };
    let descriptor = u64::from(PROGRAM.unsigned_abs());
    let by_descriptor = u64::from(libc::AT_EMPTY_PATH.unsigned_abs());
    let elsewhere = SeccompCondition::new(1, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, address);
    Ok(vec![
        rule(&[(0, SeccompCmpOp::Ne, descriptor)])?,
        SeccompRule::new(vec![elsewhere.map_err(|e| e.to_string())?]).map_err(|e| e.to_string())?,
        rule(&[(4, SeccompCmpOp::Ne, by_descriptor)])?,
    ])
}

/// What is refused with the errno of a file one may not open: a socket of one's own family, and to
/// a case every program. Socket pairs stay: they reach only who already holds the other end.
fn closed(audience: Audience) -> Result<Rules, String> {
    let unix = u64::from(libc::AF_UNIX.unsigned_abs());
    let socket = rule(&[(0, SeccompCmpOp::Eq, unix)])?;
    let mut rules = BTreeMap::from([(libc::SYS_socket, vec![socket])]);
    if let Audience::Case(_) = audience {
        // The loader is a program as well, and maps whatever file it is handed.
        rules.insert(libc::SYS_execve, vec![]);
    }
    Ok(rules)
}

fn deadly() -> Result<Rules, String> {
    let families = DEADLY_FAMILIES
        .iter()
        .map(|family| rule(&[(0, SeccompCmpOp::Eq, u64::from(family.unsigned_abs()))]));
    Ok(BTreeMap::from([(
        libc::SYS_socket,
        families.collect::<Result<_, _>>()?,
    )]))
}

/// All conditions at once, on the low 32 bits of each argument: that is what the kernel looks at.
fn rule(conditions: &[(u8, SeccompCmpOp, u64)]) -> Result<SeccompRule, String> {
    conditions
        .iter()
        .map(|(argument, operator, value)| {
            SeccompCondition::new(*argument, SeccompCmpArgLen::Dword, operator.clone(), *value)
        })
        .collect::<Result<_, _>>()
        .and_then(SeccompRule::new)
        .map_err(|e| e.to_string())
}

/// The newest call this list was written against (`mseal`, Linux 6.10). Later ones do not exist for
/// a program behind the walls, and neither does the x32 interface, whose numbers start at 2^30.
const LAST_KNOWN_CALL: u32 = 462;

/// `if number > LAST_KNOWN_CALL { ENOSYS } else { allow }`. The other programs check the architecture.
fn unknown_numbers() -> BpfProgram {
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    let answer = |code| step(BPF_RETURN, 0, 0, code);
    vec![
        step(BPF_LOAD_WORD, 0, 0, OFFSET_OF_NUMBER),
        step(BPF_JUMP_IF_GREATER, 0, 1, LAST_KNOWN_CALL),
        answer(u32::from(SeccompAction::Errno(libc::ENOSYS.unsigned_abs()))),
        answer(u32::from(SeccompAction::Allow)),
    ]
}

/// `BPF_LD | BPF_W | BPF_ABS`
const BPF_LOAD_WORD: u16 = 0x20;
/// `BPF_JMP | BPF_JGT | BPF_K`
const BPF_JUMP_IF_GREATER: u16 = 0x25;
/// `BPF_RET | BPF_K`
const BPF_RETURN: u16 = 0x06;
/// Where `struct seccomp_data` holds the number of the call.
const OFFSET_OF_NUMBER: u32 = 0;

#[cfg(test)]
mod tests {
    use super::*;

    /// What a filter looks at: number, architecture, arguments.
    #[cfg(target_arch = "x86_64")]
    const ARCH: u32 = 0xc000_003e;
    #[cfg(target_arch = "aarch64")]
    const ARCH: u32 = 0xc000_00b7;

    const CASE: Audience = Audience::Case(None);
    const ALLOW: u32 = 0x7fff_0000;
    const KILL: u32 = 0x8000_0000;

    fn errno(number: c_int) -> u32 {
        0x0005_0000 | number.unsigned_abs()
    }

    /// An interpreter of the few instructions these programs use.
    fn verdict(program: &BpfProgram, number: u32, arch: u32, arguments: [u64; 6]) -> u32 {
        let mut data = Vec::new();
        data.extend(number.to_ne_bytes());
        data.extend(arch.to_ne_bytes());
        data.extend(0u64.to_ne_bytes());
        arguments.iter().for_each(|a| data.extend(a.to_ne_bytes()));
        let (mut at, mut acc) = (0usize, 0u32);
        loop {
            let step = &program[at];
            at += 1;
            let mut jump = |yes: bool| at += usize::from(if yes { step.jt } else { step.jf });
            match step.code {
                0x20 => {
                    let from = step.k as usize;
                    acc = u32::from_ne_bytes(data[from..from + 4].try_into().unwrap());
                }
                0x54 => acc &= step.k,
                0x05 => at += step.k as usize,
                0x15 => jump(acc == step.k),
                0x25 => jump(acc > step.k),
                0x35 => jump(acc >= step.k),
                0x06 => return step.k,
                other => panic!("instruction {other:#x} is not interpreted"),
            }
        }
    }

    /// The strictest answer of all programs, as the kernel takes it.
    fn answer(audience: Audience, number: i64, arguments: [u64; 6]) -> u32 {
        answer_raw(audience, u32::try_from(number).unwrap(), ARCH, arguments)
    }

    fn answer_raw(audience: Audience, number: u32, arch: u32, arguments: [u64; 6]) -> u32 {
        let order = |v: &u32| i64::from((*v & 0xffff_0000).cast_signed());
        programs(audience)
            .unwrap()
            .iter()
            .map(|p| verdict(p, number, arch, arguments))
            .min_by_key(order)
            .unwrap()
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
        assert_eq!(answer_raw(CASE, newer, ARCH, [0; 6]), errno(libc::ENOSYS));
        let x32_socket = 0x4000_0000 + 41;
        assert_eq!(
            answer_raw(CASE, x32_socket, ARCH, first(2)),
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
}
