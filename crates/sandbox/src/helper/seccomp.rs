//! The system calls that a command is refused. Calls of ordinary programs stay allowed; those that reach into the
//! kernel, other processes or out of the sandbox do not.

use std::os::fd::OwnedFd;

use seccompiler::{BpfProgram, apply_filter};

use super::bpf::{self, Check, FilterAction};
use super::failure::At;
use super::supervise::{calls, domains, names};
use super::wire::{StartFailure, StartStage};

/// Refused with any arguments.
const REFUSED: &[i64] = &[
    // Other processes' memory and descriptors.
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_process_madvise,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    // Large kernel interfaces that programs rarely need.
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

/// Newer than the C library's list; the same number on all architectures.
const OPEN_TREE_ATTR: i64 = 467;

const NAMESPACES: i32 = libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWUTS;
const NEW_TIME_NAMESPACE: i32 = 0x80;

/// Requests that inject input into a terminal, or load code to serve it.
const TERMINAL_REQUESTS: [u32; 4] = [0x5412, 0x541c, 0x541d, 0x5423];

/// Creates a named subvolume or snapshot: `BTRFS_IOC_SUBVOL_CREATE`, `BTRFS_IOC_SNAP_CREATE`, and the second version of
/// both. Programs copy files by other requests.
const SUBVOLUME_REQUESTS: [u32; 4] = [0x5000_940e, 0x5000_9401, 0x5000_9418, 0x5000_9417];

/// A flag of a new filter.
const LISTENER: u32 = 8;

/// How the filter handles network calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NetworkFilter {
    None,
    /// The supervisor makes every connection.
    Supervised,
    /// The command connects freely, and has no Unix sockets if they could lead out.
    Unwatched {
        local_sockets: bool,
    },
}

/// Restricts this process and all it starts. With a supervisor, returns its listener. `names`: the supervisor creates
/// the command's new files, folders and links.
pub(crate) fn enforce(network: NetworkFilter, names: bool) -> Result<Option<OwnedFd>, StartFailure> {
    const DOING: &str = "install the system call filter";
    // One filter, since each costs time at every start and at every call.
    let filter = filter(network, names);
    if names || network == NetworkFilter::Supervised {
        calls::install(&filter).map(Some).at(StartStage::Seccomp, DOING)
    } else {
        apply_filter(&filter).map(|()| None).at(StartStage::Seccomp, DOING)
    }
}

fn filter(network: NetworkFilter, names: bool) -> BpfProgram {
    let number = |call: i64| u32::try_from(call).unwrap_or(u32::MAX);
    let refused = REFUSED.iter().map(|call| (*call, vec![Check::Refuse]));
    // Its flags are in memory, where a filter cannot look. If it seems not to exist, C libraries use `clone`.
    let no_clone3 = (libc::SYS_clone3, vec![Check::DoesNotExist]);
    let supervised = names || network == NetworkFilter::Supervised;
    let asked = if names { names::CALLS } else { &[] }.iter().map(|call| (*call, vec![Check::Notify]));
    let created = if names { creating() } else { Vec::new() };
    let confining = if supervised { confining() } else { Vec::new() };
    let calls = refused.chain([no_clone3]).chain(by_argument(network)).chain(asked);
    let calls = calls.chain(created).chain(confining);
    bpf::filter(calls.map(|(call, checks)| (number(call), checks)).collect())
}

/// Calls that create a plain file. The supervisor creates new ones; the command opens existing ones itself.
fn creating() -> Vec<(i64, Vec<Check>)> {
    let creates = |argument| {
        let bits = libc::O_CREAT.unsigned_abs();
        vec![Check::AnyBit { argument, bits, then: FilterAction::Notify }]
    };
    vec![
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_open, creates(1)),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_creat, vec![Check::Notify]),
        (libc::SYS_openat, creates(2)),
        // Its flags are in memory.
        (libc::SYS_openat2, vec![Check::Notify]),
        // The mask affects how a file is created.
        (libc::SYS_umask, vec![Check::Notify]),
    ]
}

/// Calls of a program that restricts itself further: the supervisor is notified, and the limit by which it marks such
/// programs cannot be changed.
fn confining() -> Vec<(i64, Vec<Check>)> {
    let marked = |checks| vec![Check::When { argument: 1, value: domains::MARK, checks }];
    let sets = Check::IsSet { argument: 2, then: FilterAction::Refuse };
    vec![
        (libc::SYS_landlock_restrict_self, vec![Check::Notify]),
        (libc::SYS_prlimit64, marked(vec![sets])),
        (
            libc::SYS_setrlimit,
            vec![Check::Is { argument: 0, value: domains::MARK, then: FilterAction::Refuse }],
        ),
    ]
}

fn by_argument(network: NetworkFilter) -> Vec<(i64, Vec<Check>)> {
    let word = i32::unsigned_abs;
    let clone = Check::AnyBit { argument: 0, bits: word(NAMESPACES), then: FilterAction::Refuse };
    let unshare = Check::AnyBit {
        argument: 0,
        bits: word(NAMESPACES | NEW_TIME_NAMESPACE),
        then: FilterAction::Refuse,
    };
    let requests = TERMINAL_REQUESTS.iter().chain(&SUBVOLUME_REQUESTS);
    let requests =
        requests.map(|value| Check::Is { argument: 1, value: *value, then: FilterAction::Refuse }).collect();
    // 0 is the ordinary one, and all ones only queries.
    let usual = [0, u32::MAX].map(|value| Check::Is { argument: 0, value, then: FilterAction::Allow });
    let mut calls = vec![
        (libc::SYS_clone, vec![clone]),
        (libc::SYS_unshare, vec![unshare]),
        (libc::SYS_ioctl, requests),
        // A later listener would be asked instead of the first. The kernel refuses a second one itself.
        (libc::SYS_seccomp, vec![Check::AnyBit { argument: 1, bits: LISTENER, then: FilterAction::Refuse }]),
        (libc::SYS_personality, [usual.as_slice(), &[Check::Refuse]].concat()),
    ];
    calls.extend(match network {
        NetworkFilter::None => offline(),
        NetworkFilter::Supervised => [online(true), supervised()].concat(),
        NetworkFilter::Unwatched { local_sockets } => online(local_sockets),
    });
    calls
}

/// Without network there are only sockets between the command's own processes. A socket that can connect to a path
/// could reach a service that runs commands for its clients.
fn offline() -> Vec<(i64, Vec<Check>)> {
    vec![
        (libc::SYS_socket, pairs()),
        (libc::SYS_socketpair, pairs()),
        (libc::SYS_connect, vec![Check::Refuse]),
    ]
}

/// Unix sockets only.
fn pairs() -> Vec<Check> {
    let other = Check::IsNot { argument: 0, value: libc::AF_UNIX.unsigned_abs(), then: FilterAction::Refuse };
    [vec![other], local_sockets()].concat()
}

/// The bits of the socket type; the others are flags.
const KIND: u32 = 0xf;

/// The types of Unix sockets that must connect before sending. Others name a receiver in each message, and the kernel
/// turns a raw Unix socket into a datagram socket.
fn local_sockets() -> Vec<Check> {
    let connected = [libc::SOCK_STREAM, libc::SOCK_SEQPACKET].map(|kind| Check::Masked {
        argument: 1,
        mask: KIND,
        value: kind.unsigned_abs(),
        then: FilterAction::Allow,
    });
    connected.into_iter().chain([Check::Refuse]).collect()
}

/// With network: internet sockets, Unix sockets, and netlink queries about interfaces and routes.
fn online(local: bool) -> Vec<(i64, Vec<Check>)> {
    const PACKET: u32 = 10;
    let when = |family: i32, checks| Check::When { argument: 0, value: family.unsigned_abs(), checks };
    // The kernel treats this type as a separate family.
    let internet = vec![Check::Masked { argument: 1, mask: KIND, value: PACKET, then: FilterAction::Refuse }];
    let routes = vec![Check::IsNot {
        argument: 2,
        value: libc::NETLINK_ROUTE.unsigned_abs(),
        then: FilterAction::Refuse,
    }];
    let socket = vec![
        when(libc::AF_UNIX, if local { local_sockets() } else { vec![Check::Refuse] }),
        when(libc::AF_INET, internet.clone()),
        when(libc::AF_INET6, internet),
        when(libc::AF_NETLINK, routes),
        Check::Refuse,
    ];
    vec![(libc::SYS_socket, socket), (libc::SYS_socketpair, pairs())]
}

/// The calls that contact a peer: those that the supervisor handles, and those that would bypass it.
fn supervised() -> Vec<(i64, Vec<Check>)> {
    let no_connection = |argument| {
        vec![Check::AnyBit { argument, bits: libc::MSG_FASTOPEN.unsigned_abs(), then: FilterAction::Refuse }]
    };
    vec![
        (libc::SYS_connect, vec![Check::Notify]),
        (libc::SYS_sendto, no_connection(3)),
        (libc::SYS_sendmsg, no_connection(2)),
        (libc::SYS_sendmmsg, no_connection(3)),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::bpf::tests::{Outcome, run};
    use super::*;

    const NONE: NetworkFilter = NetworkFilter::None;
    const WATCHED: NetworkFilter = NetworkFilter::Supervised;
    const ALONE: NetworkFilter = NetworkFilter::Unwatched { local_sockets: false };

    fn outcome(network: NetworkFilter, call: i64, arguments: &[i32]) -> Outcome {
        let arguments: Vec<u64> = arguments.iter().map(|word| u64::from(word.unsigned_abs())).collect();
        run(&filter(network, false), u32::try_from(call).unwrap(), &arguments)
    }

    #[test]
    fn listed_calls_are_refused_and_no_others() {
        const BY_ARGUMENT: [i64; 8] = [
            libc::SYS_landlock_restrict_self,
            libc::SYS_clone,
            libc::SYS_clone3,
            libc::SYS_connect,
            libc::SYS_ioctl,
            libc::SYS_personality,
            libc::SYS_socket,
            libc::SYS_socketpair,
        ];
        for network in [NONE, WATCHED, ALONE] {
            for call in (0..1024).filter(|call| !BY_ARGUMENT.contains(call)) {
                let expected = if REFUSED.contains(&call) { Outcome::Refused } else { Outcome::Allowed };
                assert_eq!(outcome(network, call, &[0; 6]), expected, "{call}");
            }
        }
    }

    #[test]
    fn only_opening_that_may_create_is_asked_about() {
        use Outcome::{Allowed, Notified};
        let creates = u64::from((libc::O_CREAT | libc::O_WRONLY).unsigned_abs());
        let reads = u64::from((libc::O_RDWR | libc::O_TRUNC | libc::O_TMPFILE).unsigned_abs());
        for (call, arguments, expected) in [
            (libc::SYS_openat, [0, 0, creates], Notified),
            (libc::SYS_openat, [0, 0, reads], Allowed),
            (libc::SYS_openat, [0, creates, 0], Allowed),
            (libc::SYS_openat2, [0, 0, 0], Notified),
            (libc::SYS_umask, [0, 0, 0], Notified),
            #[cfg(target_arch = "x86_64")]
            (libc::SYS_open, [0, creates, 0], Notified),
            #[cfg(target_arch = "x86_64")]
            (libc::SYS_open, [0, reads, 0], Allowed),
            #[cfg(target_arch = "x86_64")]
            (libc::SYS_creat, [0, 0, 0], Notified),
        ] {
            let outcome = |names| run(&filter(NONE, names), u32::try_from(call).unwrap(), &arguments);
            assert_eq!((outcome(true), outcome(false)), (expected, Allowed), "{call} {arguments:?}");
        }
    }

    #[test]
    fn the_mark_of_a_confined_program_stays() {
        use Outcome::{Allowed, Notified, Refused};
        let mark = u64::from(domains::MARK);
        for (call, arguments, expected) in [
            (libc::SYS_landlock_restrict_self, [3, 0, 0], Notified),
            (libc::SYS_prlimit64, [0, mark, 0], Allowed),
            (libc::SYS_prlimit64, [0, mark, 0x7fff_1000], Refused),
            (libc::SYS_prlimit64, [0, mark, 0x7fff_0000_0000], Refused),
            (libc::SYS_prlimit64, [0, mark | 1 << 32, 1], Refused),
            (libc::SYS_prlimit64, [0, 7, 0x7fff_1000], Allowed),
            (libc::SYS_setrlimit, [mark, 1, 0], Refused),
            (libc::SYS_setrlimit, [7, 1, 0], Allowed),
            (libc::SYS_getrlimit, [mark, 1, 0], Allowed),
        ] {
            let call = u32::try_from(call).unwrap();
            for (network, names) in [(NONE, true), (WATCHED, false)] {
                assert_eq!(run(&filter(network, names), call, &arguments), expected, "{call} {arguments:?}");
            }
            assert_eq!(run(&filter(NONE, false), call, &arguments), Allowed);
        }
    }

    #[test]
    fn names_are_asked_about_only_with_a_supervisor() {
        for call in names::CALLS {
            let outcome = |names| run(&filter(NONE, names), u32::try_from(*call).unwrap(), &[0; 6]);
            assert_eq!((outcome(true), outcome(false)), (Outcome::Notified, Outcome::Allowed), "{call}");
        }
    }

    #[test]
    fn arguments_decide() {
        use Outcome::{Allowed, DoesNotExist, Notified, Refused};
        let bits = libc::CLONE_VM | libc::SIGCHLD;
        for (network, call, arguments, expected) in [
            (NONE, libc::SYS_clone, vec![bits], Allowed),
            (NONE, libc::SYS_clone, vec![bits | libc::CLONE_NEWUSER], Refused),
            (NONE, libc::SYS_clone, vec![bits | libc::CLONE_NEWCGROUP], Refused),
            (NONE, libc::SYS_clone3, vec![], DoesNotExist),
            (NONE, libc::SYS_unshare, vec![libc::CLONE_FS], Allowed),
            (NONE, libc::SYS_unshare, vec![libc::CLONE_NEWNET], Refused),
            (NONE, libc::SYS_unshare, vec![NEW_TIME_NAMESPACE], Refused),
            (NONE, libc::SYS_ioctl, vec![0, 0x5401], Allowed),
            (NONE, libc::SYS_ioctl, vec![0, 0x5412], Refused),
            (NONE, libc::SYS_ioctl, vec![0, 0x5423], Refused),
            (NONE, libc::SYS_personality, vec![0], Allowed),
            (NONE, libc::SYS_personality, vec![8], Refused),
            (NONE, libc::SYS_connect, vec![], Refused),
            (NONE, libc::SYS_socket, vec![libc::AF_INET, libc::SOCK_STREAM], Refused),
            (NONE, libc::SYS_socket, vec![libc::AF_UNIX, libc::SOCK_STREAM], Allowed),
            (NONE, libc::SYS_socket, vec![libc::AF_UNIX, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC], Refused),
            (NONE, libc::SYS_socketpair, vec![libc::AF_UNIX, libc::SOCK_STREAM], Allowed),
            (NONE, libc::SYS_socket, vec![libc::AF_UNIX, libc::SOCK_RAW], Refused),
            (NONE, libc::SYS_socket, vec![libc::AF_UNIX, libc::SOCK_RAW | libc::SOCK_NONBLOCK], Refused),
            (NONE, libc::SYS_socket, vec![libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC], Allowed),
            (NONE, libc::SYS_socket, vec![libc::AF_UNIX, 0], Refused),
            (NONE, libc::SYS_socketpair, vec![libc::AF_UNIX, libc::SOCK_DGRAM], Refused),
            (NONE, libc::SYS_socketpair, vec![libc::AF_UNIX, libc::SOCK_RAW | libc::SOCK_CLOEXEC], Refused),
            (WATCHED, libc::SYS_connect, vec![], Notified),
            (WATCHED, libc::SYS_socket, vec![libc::AF_INET, libc::SOCK_STREAM], Allowed),
            (WATCHED, libc::SYS_socket, vec![libc::AF_INET6, libc::SOCK_DGRAM], Allowed),
            (WATCHED, libc::SYS_socket, vec![libc::AF_UNIX, libc::SOCK_DGRAM], Refused),
            (WATCHED, libc::SYS_socket, vec![libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE], Allowed),
            (
                WATCHED,
                libc::SYS_socket,
                vec![libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE + 4],
                Refused,
            ),
            (WATCHED, libc::SYS_socket, vec![libc::AF_VSOCK, libc::SOCK_STREAM], Refused),
            (WATCHED, libc::SYS_socket, vec![libc::AF_UNIX, libc::SOCK_RAW], Refused),
            (
                WATCHED,
                libc::SYS_socket,
                vec![libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_NONBLOCK],
                Allowed,
            ),
            (WATCHED, libc::SYS_socket, vec![libc::AF_INET, 10], Refused),
            (WATCHED, libc::SYS_socketpair, vec![libc::AF_UNIX, libc::SOCK_DGRAM], Refused),
            (WATCHED, libc::SYS_socketpair, vec![libc::AF_UNIX, libc::SOCK_SEQPACKET], Allowed),
            (WATCHED, libc::SYS_sendto, vec![3, 0, 0, libc::MSG_FASTOPEN | libc::MSG_NOSIGNAL], Refused),
            (WATCHED, libc::SYS_sendmsg, vec![3, 0, libc::MSG_FASTOPEN], Refused),
            (WATCHED, libc::SYS_sendmmsg, vec![3, 0, 1, libc::MSG_FASTOPEN], Refused),
            (WATCHED, libc::SYS_sendto, vec![3, 0, 0, libc::MSG_NOSIGNAL], Allowed),
            (WATCHED, libc::SYS_seccomp, vec![1, 8], Refused),
            (WATCHED, libc::SYS_seccomp, vec![1, 1], Allowed),
            (ALONE, libc::SYS_connect, vec![], Allowed),
            (ALONE, libc::SYS_socket, vec![libc::AF_UNIX, libc::SOCK_STREAM], Refused),
            (ALONE, libc::SYS_socket, vec![libc::AF_INET, libc::SOCK_STREAM], Allowed),
            (ALONE, libc::SYS_socketpair, vec![libc::AF_UNIX, libc::SOCK_STREAM], Allowed),
            (ALONE, libc::SYS_socketpair, vec![libc::AF_UNIX, libc::SOCK_DGRAM], Refused),
        ] {
            assert_eq!(outcome(network, call, &arguments), expected, "{network:?} {call} {arguments:?}");
        }
        assert_eq!(
            run(&filter(NONE, false), u32::try_from(libc::SYS_personality).unwrap(), &[0xffff_ffff]),
            Allowed
        );
        // The kernel ignores the upper half of these.
        let high = [1 << 40 | u64::from(libc::CLONE_NEWUSER.unsigned_abs())];
        assert_eq!(run(&filter(NONE, false), u32::try_from(libc::SYS_clone).unwrap(), &high), Refused);
    }
}
