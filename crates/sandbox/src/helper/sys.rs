//! System calls without a safe wrapper, each as a small safe function. The helper has a single thread, which makes
//! `fork` and `clone` followed by ordinary code sound here.

use std::ffi::{CStr, c_char, c_int, c_long, c_uint};
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};

pub(crate) const RDONLY: u64 = libc::MOUNT_ATTR_RDONLY;
pub(crate) const NOSUID: u64 = libc::MOUNT_ATTR_NOSUID;
pub(crate) const NODEV: u64 = libc::MOUNT_ATTR_NODEV;
pub(crate) const NOEXEC: u64 = libc::MOUNT_ATTR_NOEXEC;

fn checked(result: c_long) -> io::Result<c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// The process that continues after a fork.
pub(crate) enum Forked {
    Child,
    Parent { child: i32 },
}

/// `fork` into new namespaces, or a plain one if `flags` is 0.
#[expect(unsafe_code, reason = "a raw clone, as fork cannot make namespaces")]
pub(crate) fn fork_with(flags: c_int) -> io::Result<Forked> {
    let flags = c_long::from(flags | libc::SIGCHLD);
    // SAFETY: without a new stack and without CLONE_VM this is a fork. The process has a single thread, or the child does
    // nothing but system calls. All arguments but the flags are zero, so that their order, which differs between machines, does not matter.
    let pid = checked(unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) })?;
    Ok(if pid == 0 { Forked::Child } else { Forked::Parent { child: i32::try_from(pid).unwrap_or(-1) } })
}

/// Like [`fork_with`], but the child starts in a cgroup of the new hierarchy.
#[expect(unsafe_code, reason = "clone3 has no safe wrapper")]
pub(crate) fn fork_into(flags: c_int, cgroup: impl AsFd) -> io::Result<Forked> {
    #[repr(C)]
    #[derive(Default)]
    struct CloneArguments {
        flags: u64,
        pidfd: u64,
        child_tid: u64,
        parent_tid: u64,
        exit_signal: u64,
        stack: u64,
        stack_size: u64,
        tls: u64,
        set_tid: u64,
        set_tid_size: u64,
        cgroup: u64,
    }
    const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
    let arguments = CloneArguments {
        flags: u64::from(flags.unsigned_abs()) | CLONE_INTO_CGROUP,
        exit_signal: u64::from(libc::SIGCHLD.unsigned_abs()),
        cgroup: u64::from(cgroup.as_fd().as_raw_fd().unsigned_abs()),
        ..CloneArguments::default()
    };
    // SAFETY: without a new stack and without CLONE_VM this is a fork, and the process has a single thread. The
    // structure is whole, of the size given, and outlives the call.
    let pid = checked(unsafe {
        libc::syscall(libc::SYS_clone3, &raw const arguments, size_of::<CloneArguments>())
    })?;
    Ok(if pid == 0 { Forked::Child } else { Forked::Parent { child: i32::try_from(pid).unwrap_or(-1) } })
}

/// Sets attributes on a mount, or on it and all mounts below.
pub(crate) fn mount_setattr(mount: impl AsFd, set: u64, recursive: bool) -> io::Result<()> {
    let attributes = libc::mount_attr { attr_set: set, attr_clr: 0, propagation: 0, userns_fd: 0 };
    set_mount_attributes(mount, attributes, recursive)
}

/// Maps the owners of files in a mount, as a user namespace defines.
pub(crate) fn map_mount(mount: impl AsFd, namespace: impl AsFd, recursive: bool) -> io::Result<()> {
    let userns_fd = u64::from(namespace.as_fd().as_raw_fd().unsigned_abs());
    let attributes =
        libc::mount_attr { attr_set: libc::MOUNT_ATTR_IDMAP, attr_clr: 0, propagation: 0, userns_fd };
    set_mount_attributes(mount, attributes, recursive)
}

#[expect(unsafe_code, reason = "mount_setattr has no safe wrapper")]
fn set_mount_attributes(mount: impl AsFd, attributes: libc::mount_attr, recursive: bool) -> io::Result<()> {
    let flags = libc::AT_EMPTY_PATH | if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the path is a C string, the structure is whole and of the size given, and both outlive the call.
    checked(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_fd().as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    })?;
    Ok(())
}

/// Closes every descriptor from `first` to `last`.
#[expect(unsafe_code, reason = "close_range has no safe wrapper")]
pub(crate) fn close_range(first: c_uint, last: c_uint) -> io::Result<()> {
    // SAFETY: the callers own none of the descriptors in the range any more: they forget what they closed.
    checked(unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) })?;
    Ok(())
}

/// Takes over a descriptor that the server passed by number.
#[expect(unsafe_code, reason = "descriptors come in by number")]
pub(crate) fn inherited(fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: `fcntl` with F_SETFD has no memory effects, and fails for a number that is not open.
    checked(unsafe { c_long::from(libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC)) })?;
    // SAFETY: it is open, as just seen, and each number is taken over once, right after the start.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[expect(unsafe_code, reason = "prctl has no safe wrapper for these")]
pub(crate) fn prctl(option: c_int, argument: u64) -> io::Result<()> {
    // SAFETY: the options used here take plain numbers, never pointers.
    checked(unsafe { c_long::from(libc::prctl(option, argument, 0, 0, 0)) })?;
    Ok(())
}

/// Resets every signal to its default and unblocks it, which commands expect.
#[expect(unsafe_code, reason = "signal dispositions")]
pub(crate) fn default_signals() {
    for signal in 1..=libc::SIGRTMAX() {
        // SAFETY: SIG_DFL is always a valid disposition; what cannot be set is refused without effect.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    let empty = signal_set(&[]);
    // SAFETY: the set is initialised, and the old mask is not asked for.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const empty, std::ptr::null_mut()) };
}

#[expect(unsafe_code, reason = "signal dispositions")]
pub(crate) fn ignore_signal(signal: c_int) {
    // SAFETY: SIG_IGN is a valid disposition.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

#[expect(unsafe_code, reason = "signal sets are C structures")]
fn signal_set(signals: &[c_int]) -> libc::sigset_t {
    let mut set = std::mem::MaybeUninit::uninit();
    // SAFETY: `sigemptyset` initialises the whole set.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: just initialised.
    let mut set = unsafe { set.assume_init() };
    for signal in signals {
        // SAFETY: the set is initialised and the signal numbers are constants of the system.
        unsafe { libc::sigaddset(&raw mut set, *signal) };
    }
    set
}

/// Blocks these signals and returns a signalfd for them.
#[expect(unsafe_code, reason = "signalfd has no safe wrapper")]
pub(crate) fn signals_as_file(signals: &[c_int]) -> io::Result<OwnedFd> {
    let set = signal_set(signals);
    // SAFETY: the set is initialised, and the old mask is not asked for.
    unsafe { libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
    // SAFETY: the set is initialised; -1 asks for a new descriptor.
    let fd = checked(unsafe {
        c_long::from(libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK))
    })?;
    // SAFETY: a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(i32::try_from(fd).unwrap_or(-1)) })
}

/// The number of the next pending signal, if there is one.
pub(crate) fn next_signal(file: &OwnedFd) -> Option<c_int> {
    let mut record = [0_u8; size_of::<libc::signalfd_siginfo>()];
    match rustix::io::read(file, &mut record) {
        // The number is the first member of the record.
        Ok(read) if read == record.len() => {
            Some(i32::from_ne_bytes([record[0], record[1], record[2], record[3]]))
        }
        _ => None,
    }
}

/// Becomes another user and group, without any other group.
#[expect(unsafe_code, reason = "the wrappers of the C library act on all threads, of which there is one")]
pub(crate) fn become_user_of_group(id: u32, group: u32) -> io::Result<()> {
    leave_groups()?;
    // SAFETY: none of these calls has memory effects.
    checked(unsafe { libc::syscall(libc::SYS_setresgid, group, group, group) })?;
    // SAFETY: as above.
    checked(unsafe { libc::syscall(libc::SYS_setresuid, id, id, id) })?;
    Ok(())
}

/// Like `become_user_of_group`, with a group of the same number.
pub(crate) fn become_user(id: u32) -> io::Result<()> {
    become_user_of_group(id, id)
}

/// Drops every group of this thread but its first.
#[expect(unsafe_code, reason = "the wrapper of the C library acts on all threads")]
pub(crate) fn leave_groups() -> io::Result<()> {
    // SAFETY: no list is passed, and the call has no memory effects.
    checked(unsafe { libc::syscall(libc::SYS_setgroups, 0, std::ptr::null::<libc::gid_t>()) })?;
    Ok(())
}

/// Sets the user and group for this thread's file accesses. Meanwhile a root process has no access to everyone's files.
#[expect(
    unsafe_code,
    reason = "there is no safe wrapper, and that of the C library does not say whether it worked"
)]
pub(crate) fn set_file_user(id: u32, group: u32) -> io::Result<()> {
    for (call, wanted) in [(libc::SYS_setfsgid, group), (libc::SYS_setfsuid, id)] {
        // SAFETY: takes a number and has no memory effects.
        unsafe { libc::syscall(call, wanted) };
        // An invalid id changes nothing; both calls return the previous one.
        // SAFETY: as above.
        let now = unsafe { libc::syscall(call, u32::MAX) };
        if u32::try_from(now) != Ok(wanted) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
    }
    Ok(())
}

/// Attaches to another process like a debugger.
#[expect(unsafe_code, reason = "ptrace has no safe wrapper")]
pub(crate) fn trace(pid: i32) -> io::Result<()> {
    // SAFETY: with this request neither address nor data is read, and nothing of this process changes.
    checked(unsafe { libc::syscall(libc::SYS_ptrace, libc::PTRACE_SEIZE, pid, 0, 0) })?;
    Ok(())
}

/// Becomes root, if allowed.
#[expect(unsafe_code, reason = "the wrapper of the C library acts on all threads, of which there is one")]
pub(crate) fn become_root() -> io::Result<()> {
    // SAFETY: takes numbers and has no memory effects.
    checked(unsafe { libc::syscall(libc::SYS_setresuid, 0, 0, 0) })?;
    Ok(())
}

/// Replaces the process. Returns only when that failed.
#[expect(unsafe_code, reason = "execve takes C arrays")]
pub(crate) fn exec(program: &CStr, argv: &[&CStr], env: &[&CStr]) -> io::Error {
    fn array(strings: &[&CStr]) -> Vec<*const c_char> {
        strings.iter().map(|s| s.as_ptr()).chain([std::ptr::null()]).collect()
    }
    let (argv, env) = (array(argv), array(env));
    // SAFETY: both arrays end with a null pointer, and their strings live until the call returns, if it does.
    unsafe { libc::execve(program.as_ptr(), argv.as_ptr(), env.as_ptr()) };
    io::Error::last_os_error()
}

/// Ends the process at once, without running exit handlers.
#[expect(unsafe_code, reason = "_exit has no safe wrapper")]
pub(crate) fn exit(code: c_int) -> ! {
    // SAFETY: never returns, and touches nothing.
    unsafe { libc::_exit(code) }
}

/// Drops every capability of this thread.
#[expect(unsafe_code, reason = "capset has no safe wrapper that covers unknown capabilities")]
pub(crate) fn clear_capabilities() -> io::Result<()> {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: c_int,
    }
    const VERSION_3: u32 = 0x2008_0522;
    let header = Header { version: VERSION_3, pid: 0 };
    let none = [[0_u32; 3]; 2];
    // SAFETY: version 3 of the interface reads one header and two records of three words, as given.
    checked(unsafe { libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr()) })?;
    Ok(())
}

#[expect(unsafe_code, reason = "setrlimit takes a C structure")]
pub(crate) fn set_limit(resource: ResourceLimit, limit: u64) -> io::Result<()> {
    let mut set = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is whole and outlives the call.
    checked(unsafe { c_long::from(libc::getrlimit(resource as _, &raw mut set)) })?;
    // Never above what is set already: only root may raise a limit.
    let limit = limit.min(set.rlim_max);
    let value = libc::rlimit { rlim_cur: limit, rlim_max: limit };
    // SAFETY: the structure is whole and outlives the call.
    checked(unsafe { c_long::from(libc::setrlimit(resource as _, &raw const value)) })?;
    Ok(())
}

/// Resource limits, with the system's numbers.
#[derive(Clone, Copy)]
#[repr(i32)]
pub(crate) enum ResourceLimit {
    Core = libc::RLIMIT_CORE as i32,
    Memory = libc::RLIMIT_AS as i32,
    Processes = libc::RLIMIT_NPROC as i32,
}

/// The version of Landlock that the kernel offers, 0 for none.
#[expect(unsafe_code, reason = "the crate for Landlock does not tell the version")]
pub(crate) fn landlock_version() -> i32 {
    const ASK_FOR_VERSION: c_uint = 1;
    // SAFETY: with this flag the other arguments must be null and zero, and nothing is written.
    let version = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0_usize, ASK_FOR_VERSION)
    };
    i32::try_from(version).unwrap_or(0).max(0)
}

#[expect(unsafe_code, reason = "unshare may break assumptions about threads")]
pub(crate) fn unshare(flags: c_int) -> io::Result<()> {
    // SAFETY: the process has a single thread, and no descriptor table or address space is unshared.
    checked(unsafe { c_long::from(libc::unshare(flags)) })?;
    Ok(())
}

/// Closes a descriptor in a forked process that will never drop its owner.
#[expect(unsafe_code, reason = "closes what another value owns")]
pub(crate) fn close_in_child(fd: impl AsFd) {
    // SAFETY: the forked process ends without returning, so that the owner is never used or dropped in it.
    unsafe { libc::close(fd.as_fd().as_raw_fd()) };
}
