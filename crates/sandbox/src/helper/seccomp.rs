//! Which system calls the command is refused. What most programs use stays allowed; what reaches into the kernel, into
//! other processes or out of the walls does not.

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter, sock_filter,
};
use std::collections::BTreeMap;

use super::failure::At;
use super::wire::{Failure, Stage};

#[cfg(target_arch = "x86_64")]
const ARCH: TargetArch = TargetArch::x86_64;
#[cfg(target_arch = "aarch64")]
const ARCH: TargetArch = TargetArch::aarch64;

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

const NAMESPACES: &[i32] = &[
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWUTS,
];
const NEW_TIME_NAMESPACE: i32 = 0x80;

/// Requests that put words into a terminal's mouth, or load code to serve it.
const TERMINAL_REQUESTS: &[u64] = &[0x5412, 0x541c, 0x541d, 0x5423];

/// Binds this process and all it starts.
pub(crate) fn enforce(network: bool) -> Result<(), Failure> {
    let install = || -> Result<(), seccompiler::Error> {
        apply_filter(&refusals(network)?)?;
        apply_filter(&no_clone3()?)?;
        #[cfg(target_arch = "x86_64")]
        apply_filter(&no_x32())?;
        Ok(())
    };
    install().at(Stage::Seccomp, "install the system call filter")
}

fn refusals(network: bool) -> Result<BpfProgram, seccompiler::Error> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    let has_flag = |flag: &i32| {
        let flag = u64::from(flag.unsigned_abs());
        all(&[(0, SeccompCmpOp::MaskedEq(flag), flag)])
    };
    rules.insert(libc::SYS_clone, NAMESPACES.iter().map(has_flag).collect::<Result<_, _>>()?);
    let unshared = NAMESPACES.iter().chain([&NEW_TIME_NAMESPACE]);
    rules.insert(libc::SYS_unshare, unshared.map(has_flag).collect::<Result<_, _>>()?);
    let asked = |request: &u64| all(&[(1, SeccompCmpOp::Eq, *request)]);
    rules.insert(libc::SYS_ioctl, TERMINAL_REQUESTS.iter().map(asked).collect::<Result<_, _>>()?);
    // 0 is the ordinary one, and all ones only asks.
    let unusual = all(&[(0, SeccompCmpOp::Ne, 0), (0, SeccompCmpOp::Ne, 0xffff_ffff)])?;
    rules.insert(libc::SYS_personality, vec![unusual]);
    rules.extend(if network { online()? } else { offline()? });
    let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    Ok(SeccompFilter::new(rules, SeccompAction::Allow, refuse, ARCH)?.try_into()?)
}

/// Without network there are only sockets between the command's own processes. One that could reach a service by its
/// path would lead out: such services run commands for whoever asks.
fn offline() -> Result<Vec<(i64, Vec<SeccompRule>)>, seccompiler::Error> {
    const KIND: u64 = 0xf;
    let elsewhere = all(&[(0, SeccompCmpOp::Ne, family(libc::AF_UNIX))])?;
    // Needs no connection: each message says where it goes.
    let datagram = all(&[(1, SeccompCmpOp::MaskedEq(KIND), libc::SOCK_DGRAM.unsigned_abs().into())])?;
    let sockets = vec![elsewhere, datagram];
    Ok(vec![
        (libc::SYS_socket, sockets.clone()),
        (libc::SYS_socketpair, sockets),
        (libc::SYS_connect, Vec::new()),
    ])
}

/// With network: the internet, local sockets, and asking the kernel about interfaces and routes.
fn online() -> Result<Vec<(i64, Vec<SeccompRule>)>, seccompiler::Error> {
    let other = all(&[
        (0, SeccompCmpOp::Ne, family(libc::AF_UNIX)),
        (0, SeccompCmpOp::Ne, family(libc::AF_INET)),
        (0, SeccompCmpOp::Ne, family(libc::AF_INET6)),
        (0, SeccompCmpOp::Ne, family(libc::AF_NETLINK)),
    ])?;
    let not_routes = all(&[
        (0, SeccompCmpOp::Eq, family(libc::AF_NETLINK)),
        (2, SeccompCmpOp::Ne, libc::NETLINK_ROUTE.unsigned_abs().into()),
    ])?;
    Ok(vec![(libc::SYS_socket, vec![other, not_routes])])
}

fn family(number: i32) -> u64 {
    number.unsigned_abs().into()
}

/// A rule that matches when every condition on an argument does. Only the low half is compared, as the kernel takes
/// these arguments to be 32 bits wide and ignores what else is in the register.
fn all(conditions: &[(u8, SeccompCmpOp, u64)]) -> Result<SeccompRule, seccompiler::BackendError> {
    let conditions = conditions.iter().map(|(argument, operator, value)| {
        SeccompCondition::new(*argument, SeccompCmpArgLen::Dword, operator.clone(), *value)
    });
    SeccompRule::new(conditions.collect::<Result<_, _>>()?)
}

/// Its flags are in memory, where a filter cannot look. Told that it does not exist, C libraries use `clone`.
fn no_clone3() -> Result<BpfProgram, seccompiler::Error> {
    let missing = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    let rules = [(libc::SYS_clone3, Vec::new())].into();
    Ok(SeccompFilter::new(rules, SeccompAction::Allow, missing, ARCH)?.try_into()?)
}

/// A second set of numbers for the same system calls, which the other filters would not recognise.
#[cfg(target_arch = "x86_64")]
fn no_x32() -> BpfProgram {
    const X32_BIT: u32 = 0x4000_0000;
    const LOAD_NUMBER: u16 = 0x20;
    const JUMP_IF_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    vec![
        sock_filter { code: LOAD_NUMBER, jt: 0, jf: 0, k: 0 },
        sock_filter { code: JUMP_IF_AT_LEAST, jt: 0, jf: 1, k: X32_BIT },
        sock_filter { code: RETURN, jt: 0, jf: 0, k: libc::SECCOMP_RET_KILL_PROCESS },
        sock_filter { code: RETURN, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW },
    ]
}
