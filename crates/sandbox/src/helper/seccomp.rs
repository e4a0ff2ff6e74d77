//! Which system calls the command is refused. What most programs use stays allowed; what reaches into the kernel, into
//! other processes or out of the walls does not.

use seccompiler::{BpfProgram, apply_filter};

use super::bpf::{self, Check, Verdict};
use super::failure::At;
use super::wire::{Failure, Stage};

/// Refused whatever the arguments.
const REFUSED: &[i64] = &[
    // Other processes' memory and descriptors.
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_process_madvise,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    // Large kernel interfaces that programs can do without.
    libc::SYS_add_key,
    libc::SYS_bpf,
    libc::SYS_fanotify_init,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_keyctl,
    libc::SYS_perf_event_open,
    libc::SYS_request_key,
    libc::SYS_userfaultfd,
    // Namespaces and mounts.
    libc::SYS_chroot,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    OPEN_TREE_ATTR,
    libc::SYS_pivot_root,
    libc::SYS_setns,
    libc::SYS_umount2,
    // The machine itself.
    libc::SYS_acct,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_finit_module,
    libc::SYS_init_module,
    libc::SYS_kexec_file_load,
    libc::SYS_kexec_load,
    libc::SYS_lookup_dcookie,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_nfsservctl,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_reboot,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_uselib,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ustat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS__sysctl,
];

/// Newer than the C library's list; the same number everywhere.
const OPEN_TREE_ATTR: i64 = 467;

const NAMESPACES: i32 = libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWUTS;
const NEW_TIME_NAMESPACE: i32 = 0x80;

/// Requests that put words into a terminal's mouth, or load code to serve it.
const TERMINAL_REQUESTS: [u32; 4] = [0x5412, 0x541c, 0x541d, 0x5423];

/// Binds this process and all it starts.
pub(crate) fn enforce(network: bool) -> Result<(), Failure> {
    // One filter, since each costs the kernel time at every start and at every call.
    apply_filter(&filter(network)).at(Stage::Seccomp, "install the system call filter")
}

fn filter(network: bool) -> BpfProgram {
    let number = |call: i64| u32::try_from(call).unwrap_or(u32::MAX);
    let refused = REFUSED.iter().map(|call| (*call, vec![Check::Refuse]));
    // Its flags are in memory, where a filter cannot look. Told that it does not exist, C libraries use `clone`.
    let no_clone3 = (libc::SYS_clone3, vec![Check::DoesNotExist]);
    let calls = refused.chain([no_clone3]).chain(by_argument(network));
    bpf::filter(calls.map(|(call, checks)| (number(call), checks)).collect())
}

fn by_argument(network: bool) -> Vec<(i64, Vec<Check>)> {
    let word = i32::unsigned_abs;
    let clone = Check::AnyBit { argument: 0, bits: word(NAMESPACES), then: Verdict::Refuse };
    let unshare =
        Check::AnyBit { argument: 0, bits: word(NAMESPACES | NEW_TIME_NAMESPACE), then: Verdict::Refuse };
    let requests = TERMINAL_REQUESTS.map(|value| Check::Is { argument: 1, value, then: Verdict::Refuse });
    // 0 is the ordinary one, and all ones only asks.
    let usual = [0, u32::MAX].map(|value| Check::Is { argument: 0, value, then: Verdict::Allow });
    let mut calls = vec![
        (libc::SYS_clone, vec![clone]),
        (libc::SYS_unshare, vec![unshare]),
        (libc::SYS_ioctl, requests.to_vec()),
        (libc::SYS_personality, [usual.as_slice(), &[Check::Refuse]].concat()),
    ];
    calls.extend(if network { online() } else { offline() });
    calls
}

/// Without network there are only sockets between the command's own processes. One that could reach a service by its
/// path would lead out: such services run commands for whoever asks.
fn offline() -> Vec<(i64, Vec<Check>)> {
    let socket =
        [vec![Check::IsNot { argument: 0, value: UNIX, then: Verdict::Refuse }], local_sockets()].concat();
    vec![
        (libc::SYS_socket, socket.clone()),
        (libc::SYS_socketpair, socket),
        (libc::SYS_connect, vec![Check::Refuse]),
    ]
}

const UNIX: u32 = libc::AF_UNIX.unsigned_abs();

/// The kinds of local sockets that need a connection before anything can be sent. The others name a receiver in each
/// message, and the kernel makes a datagram socket of a local raw one.
fn local_sockets() -> Vec<Check> {
    /// The flags that are or'ed to the kind are not part of it.
    const KIND: u32 = 0xf;
    let connected = [libc::SOCK_STREAM, libc::SOCK_SEQPACKET].map(|kind| Check::Masked {
        argument: 1,
        mask: KIND,
        value: kind.unsigned_abs(),
        then: Verdict::Allow,
    });
    connected.into_iter().chain([Check::Refuse]).collect()
}

/// With network: the internet, local sockets, and asking the kernel about interfaces and routes.
fn online() -> Vec<(i64, Vec<Check>)> {
    let known = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6].map(i32::unsigned_abs);
    let mut checks: Vec<Check> =
        known.map(|value| Check::Is { argument: 0, value, then: Verdict::Allow }).to_vec();
    checks.extend([
        Check::IsNot { argument: 0, value: libc::AF_NETLINK.unsigned_abs(), then: Verdict::Refuse },
        Check::IsNot { argument: 2, value: libc::NETLINK_ROUTE.unsigned_abs(), then: Verdict::Refuse },
    ]);
    vec![(libc::SYS_socket, checks)]
}

#[cfg(test)]
mod tests {
    use super::super::bpf::tests::{Outcome, run};
    use super::*;

    fn outcome(network: bool, call: i64, arguments: &[i32]) -> Outcome {
        let arguments: Vec<u64> = arguments.iter().map(|word| u64::from(word.unsigned_abs())).collect();
        run(&filter(network), u32::try_from(call).unwrap(), &arguments)
    }

    #[test]
    fn what_is_listed_is_refused_and_nothing_else() {
        const BY_ARGUMENT: [i64; 7] = [
            libc::SYS_clone,
            libc::SYS_clone3,
            libc::SYS_connect,
            libc::SYS_ioctl,
            libc::SYS_personality,
            libc::SYS_socket,
            libc::SYS_socketpair,
        ];
        for network in [false, true] {
            for call in (0..1024).filter(|call| !BY_ARGUMENT.contains(call)) {
                let expected = if REFUSED.contains(&call) { Outcome::Refused } else { Outcome::Allowed };
                assert_eq!(outcome(network, call, &[0; 6]), expected, "{call}");
            }
        }
    }

    #[test]
    fn arguments_decide() {
        use Outcome::{Allowed, DoesNotExist, Refused};
        let bits = libc::CLONE_VM | libc::SIGCHLD;
        for (network, call, arguments, expected) in [
            (false, libc::SYS_clone, vec![bits], Allowed),
            (false, libc::SYS_clone, vec![bits | libc::CLONE_NEWUSER], Refused),
            (false, libc::SYS_clone, vec![bits | libc::CLONE_NEWCGROUP], Refused),
            (false, libc::SYS_clone3, vec![], DoesNotExist),
            (false, libc::SYS_unshare, vec![libc::CLONE_FS], Allowed),
            (false, libc::SYS_unshare, vec![libc::CLONE_NEWNET], Refused),
            (false, libc::SYS_unshare, vec![NEW_TIME_NAMESPACE], Refused),
            (false, libc::SYS_ioctl, vec![0, 0x5401], Allowed),
            (false, libc::SYS_ioctl, vec![0, 0x5412], Refused),
            (false, libc::SYS_ioctl, vec![0, 0x5423], Refused),
            (false, libc::SYS_personality, vec![0], Allowed),
            (false, libc::SYS_personality, vec![8], Refused),
            (false, libc::SYS_connect, vec![], Refused),
            (false, libc::SYS_socket, vec![libc::AF_INET, libc::SOCK_STREAM], Refused),
            (false, libc::SYS_socket, vec![libc::AF_UNIX, libc::SOCK_STREAM], Allowed),
            (false, libc::SYS_socket, vec![libc::AF_UNIX, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC], Refused),
            (false, libc::SYS_socketpair, vec![libc::AF_UNIX, libc::SOCK_STREAM], Allowed),
            (false, libc::SYS_socket, vec![libc::AF_UNIX, libc::SOCK_RAW], Refused),
            (false, libc::SYS_socket, vec![libc::AF_UNIX, libc::SOCK_RAW | libc::SOCK_NONBLOCK], Refused),
            (
                false,
                libc::SYS_socket,
                vec![libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC],
                Allowed,
            ),
            (false, libc::SYS_socket, vec![libc::AF_UNIX, 0], Refused),
            (false, libc::SYS_socketpair, vec![libc::AF_UNIX, libc::SOCK_DGRAM], Refused),
            (false, libc::SYS_socketpair, vec![libc::AF_UNIX, libc::SOCK_RAW | libc::SOCK_CLOEXEC], Refused),
            (true, libc::SYS_connect, vec![], Allowed),
            (true, libc::SYS_socket, vec![libc::AF_INET, libc::SOCK_STREAM], Allowed),
            (true, libc::SYS_socket, vec![libc::AF_INET6, libc::SOCK_DGRAM], Allowed),
            (true, libc::SYS_socket, vec![libc::AF_UNIX, libc::SOCK_DGRAM], Allowed),
            (true, libc::SYS_socket, vec![libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE], Allowed),
            (
                true,
                libc::SYS_socket,
                vec![libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE + 4],
                Refused,
            ),
            (true, libc::SYS_socket, vec![libc::AF_VSOCK, libc::SOCK_STREAM], Refused),
            (true, libc::SYS_socketpair, vec![libc::AF_UNIX, libc::SOCK_DGRAM], Allowed),
        ] {
            assert_eq!(outcome(network, call, &arguments), expected, "{network} {call} {arguments:?}");
        }
        assert_eq!(
            run(&filter(false), u32::try_from(libc::SYS_personality).unwrap(), &[0xffff_ffff]),
            Allowed
        );
        // The kernel ignores the upper half of these.
        let high = [1 << 40 | u64::from(libc::CLONE_NEWUSER.unsigned_abs())];
        assert_eq!(run(&filter(false), u32::try_from(libc::SYS_clone).unwrap(), &high), Refused);
    }
}
