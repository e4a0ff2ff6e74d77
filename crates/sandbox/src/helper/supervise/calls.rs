//! System calls of the supervisor without a safe wrapper, each as a small safe function.

use std::ffi::{c_int, c_void};
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use seccompiler::BpfProgram;

fn checked(result: i64) -> io::Result<i64> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Applies a filter to this process and all it starts, and returns the descriptor on which notifications arrive.
///
/// A call that the supervisor has received is interrupted only by a fatal signal: a completed call cannot be repeated.
/// Kernels before 5.19 cannot guarantee that.
#[expect(unsafe_code, reason = "the crate for filters knows no listeners")]
pub(in super::super) fn install(filter: &BpfProgram) -> io::Result<OwnedFd> {
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).map_err(|_| io::Error::from_raw_os_error(libc::E2BIG))?,
        filter: filter.as_ptr().cast::<libc::sock_filter>().cast_mut(),
    };
    let install = |flags: u64| {
        // SAFETY: both descriptions of an instruction have the layout of the kernel's, and the program is only read.
        let fd = checked(unsafe {
            libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program)
        })?;
        // SAFETY: a new descriptor that nobody else owns.
        Ok(unsafe { OwnedFd::from_raw_fd(i32::try_from(fd).unwrap_or(-1)) })
    };
    let listener = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    match install(listener | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV) {
        Err(error) if io::Error::raw_os_error(&error) == Some(libc::EINVAL) => install(listener),
        other => other,
    }
}

/// A blocked call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Notification {
    pub(super) id: u64,
    /// As numbered in the supervisor's namespace.
    pub(super) thread: i32,
    pub(super) call: i64,
    pub(super) arguments: [u64; 6],
}

/// The next notification. An error if the caller is gone.
#[expect(unsafe_code, reason = "ioctl takes a C structure")]
pub(super) fn receive(listener: &OwnedFd) -> io::Result<Notification> {
    // SAFETY: plain numbers, for which zero is a value; the kernel asks for zeros.
    let mut asked: libc::seccomp_notif = unsafe { std::mem::zeroed() };
    // SAFETY: the structure is whole and outlives the call; its size is part of the request.
    checked(i64::from(unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut asked)
    }))?;
    Ok(Notification {
        id: asked.id,
        thread: i32::try_from(asked.pid).unwrap_or(0),
        call: asked.data.nr.into(),
        arguments: asked.data.args,
    })
}

/// Whether the call is still blocked. Only then is data that was read before certainly from its thread.
#[expect(unsafe_code, reason = "ioctl takes a pointer")]
pub(super) fn is_waiting(listener: &OwnedFd, id: u64) -> bool {
    // SAFETY: the number outlives the call, which only reads it.
    unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw const id) == 0 }
}

/// Ends the call with an error, or with 0. Ignores callers that are gone.
#[expect(unsafe_code, reason = "ioctl takes a C structure")]
pub(super) fn answer(listener: &OwnedFd, id: u64, outcome: io::Result<()>) {
    let error = match outcome {
        Ok(()) => 0,
        Err(error) => -error.raw_os_error().filter(|code| *code > 0).unwrap_or(libc::EIO),
    };
    let answer = libc::seccomp_notif_resp { id, val: 0, error, flags: 0 };
    // SAFETY: the structure is whole and outlives the call.
    unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const answer) };
}

/// Lets the kernel perform the call. Only for calls that are safe whatever their arguments are by then.
#[expect(unsafe_code, reason = "ioctl takes a C structure")]
pub(super) fn go_on(listener: &OwnedFd, id: u64) {
    const CONTINUE: u32 = 1;
    let answer = libc::seccomp_notif_resp { id, val: 0, error: 0, flags: CONTINUE };
    // SAFETY: the structure is whole and outlives the call.
    unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const answer) };
}

/// Ends the call with a descriptor of this file, under the lowest free number.
#[expect(unsafe_code, reason = "ioctl takes a C structure")]
pub(super) fn give(listener: &OwnedFd, id: u64, file: &OwnedFd, close_on_exec: bool) -> io::Result<()> {
    const SEND: u32 = 2;
    let flags = if close_on_exec { libc::O_CLOEXEC } else { 0 };
    let place = libc::seccomp_notif_addfd {
        id,
        flags: SEND,
        srcfd: file.as_raw_fd().unsigned_abs(),
        newfd: 0,
        newfd_flags: flags.unsigned_abs(),
    };
    // SAFETY: the structure is whole and outlives the call.
    checked(i64::from(unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ADDFD, &raw const place)
    }))?;
    Ok(())
}

/// The mark of a process: the limit that `domains::MARK` names. 0 is this process.
#[expect(unsafe_code, reason = "prlimit takes a C structure")]
pub(super) fn mark_of(process: i32) -> io::Result<u64> {
    let mut found = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is whole and outlives the call; nothing is set.
    checked(i64::from(unsafe {
        libc::prlimit(process, libc::RLIMIT_LOCKS, std::ptr::null(), &raw mut found)
    }))?;
    Ok(found.rlim_max)
}

#[expect(unsafe_code, reason = "prlimit takes a C structure")]
pub(super) fn set_mark(process: i32, mark: u64) -> io::Result<()> {
    let value = libc::rlimit { rlim_cur: mark, rlim_max: mark };
    // SAFETY: the structure is whole and outlives the call; the old value is not asked for.
    checked(i64::from(unsafe {
        libc::prlimit(process, libc::RLIMIT_LOCKS, &raw const value, std::ptr::null_mut())
    }))?;
    Ok(())
}

/// Applies Landlock rules to this thread only.
#[expect(unsafe_code, reason = "the crate for Landlock takes no set that somebody else made")]
pub(super) fn restrict_thread(rules: &OwnedFd, flags: u32) -> io::Result<()> {
    const ALL_THREADS: u32 = 1 << 3;
    super::super::sys::prctl(libc::PR_SET_NO_NEW_PRIVS, 1)?;
    let (rules, flags) = (rules.as_raw_fd(), flags & !ALL_THREADS);
    // SAFETY: numbers only.
    checked(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, rules, flags) })?;
    Ok(())
}

/// Whether two descriptors of this process refer to the same open file.
#[expect(unsafe_code, reason = "kcmp has no safe wrapper")]
pub(super) fn is_same_file(one: &OwnedFd, other: &OwnedFd) -> bool {
    const FILES: i32 = 0;
    let this = rustix::process::getpid().as_raw_nonzero().get();
    // SAFETY: numbers only.
    unsafe { libc::syscall(libc::SYS_kcmp, this, this, FILES, one.as_raw_fd(), other.as_raw_fd()) == 0 }
}

/// Replaces a descriptor of the waiting thread.
#[expect(unsafe_code, reason = "ioctl takes a C structure")]
pub(super) fn replace(
    listener: &OwnedFd,
    id: u64,
    source: &OwnedFd,
    number: i32,
    close_on_exec: bool,
) -> io::Result<()> {
    let flags = if close_on_exec { libc::O_CLOEXEC } else { 0 };
    let place = libc::seccomp_notif_addfd {
        id,
        flags: 1, // SECCOMP_ADDFD_FLAG_SETFD
        srcfd: source.as_raw_fd().unsigned_abs(),
        newfd: number.unsigned_abs(),
        newfd_flags: flags.unsigned_abs(),
    };
    // SAFETY: the structure is whole and outlives the call.
    checked(i64::from(unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ADDFD, &raw const place)
    }))?;
    Ok(())
}

/// A copy of another thread's memory. All of it or nothing.
#[expect(unsafe_code, reason = "reads another process")]
pub(super) fn memory_of(thread: i32, address: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut copy = vec![0_u8; length];
    let here = libc::iovec { iov_base: copy.as_mut_ptr().cast(), iov_len: length };
    let there = libc::iovec { iov_base: address as *mut c_void, iov_len: length };
    // SAFETY: writes no more than `length` bytes to the copy; the other address is not of this process, and the kernel
    // checks it.
    let read = unsafe { libc::process_vm_readv(thread, &raw const here, 1, &raw const there, 1, 0) };
    match usize::try_from(read) {
        Ok(read) if read == length => Ok(copy),
        Ok(_) => Err(io::Error::from_raw_os_error(libc::EFAULT)),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

/// A copy of a string in another thread's memory, without its terminating zero.
pub(super) fn text_of(thread: i32, address: u64) -> io::Result<Vec<u8>> {
    const LONGEST: usize = 4096;
    const PAGE: u64 = 4096;
    let mut text = Vec::new();
    while text.len() < LONGEST {
        let at = address.wrapping_add(text.len() as u64);
        // Up to the end of the page, as the next one may not exist. Most strings are short.
        let short = if text.is_empty() { 256 } else { PAGE };
        let length = usize::try_from((PAGE - at % PAGE).min(short)).unwrap_or(1);
        let piece = memory_of(thread, at, length)?;
        if let Some(end) = piece.iter().position(|byte| *byte == 0) {
            text.extend(&piece[..end]);
            break;
        }
        text.extend(piece);
    }
    if text.len() < LONGEST { Ok(text) } else { Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG)) }
}

/// The kernel uses 32 bits of most arguments.
pub(super) fn low_half(argument: u64) -> i32 {
    let [a, b, c, d, ..] = argument.to_le_bytes();
    i32::from_le_bytes([a, b, c, d])
}

/// Caller and supervisor alternate, so the kernel can run them on one processor. Not supported by older ones.
#[expect(unsafe_code, reason = "ioctl takes a number")]
pub(super) fn take_turns(listener: &OwnedFd) {
    const SYNC_WAKE_UP: u64 = 1;
    // SAFETY: a number only.
    unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS, SYNC_WAKE_UP) };
}

/// Like `connect`, with an address as the kernel takes it.
#[expect(unsafe_code, reason = "addresses of any family")]
pub(super) fn connect(socket: impl AsFd, address: &[u8]) -> io::Result<()> {
    let length = libc::socklen_t::try_from(address.len()).unwrap_or(0);
    // SAFETY: the kernel reads `length` bytes of the address, which are there, and copies them to where they are
    // aligned.
    let result = unsafe { libc::connect(socket.as_fd().as_raw_fd(), address.as_ptr().cast(), length) };
    checked(result.into()).map(drop)
}

/// Whether a local socket has a name of its own.
#[expect(unsafe_code, reason = "addresses of any family")]
pub(super) fn is_bound(socket: impl AsFd) -> bool {
    let mut address = [0_u8; 128];
    let mut length: libc::socklen_t = 128;
    // SAFETY: the kernel writes no more than `length` bytes.
    let result = unsafe {
        libc::getsockname(socket.as_fd().as_raw_fd(), address.as_mut_ptr().cast(), &raw mut length)
    };
    result == 0 && length > 2
}

/// The process that listened at the other end of a Unix connection. 0 if it is not in this namespace, which is why the
/// usual wrapper cannot be used.
#[expect(unsafe_code, reason = "the safe wrapper cannot say 0")]
pub(super) fn peer(socket: impl AsFd) -> io::Result<c_int> {
    let mut found = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = libc::socklen_t::try_from(size_of::<libc::ucred>()).unwrap_or(0);
    // SAFETY: the structure is whole and of the size given.
    checked(i64::from(unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut found).cast(),
            &raw mut length,
        )
    }))?;
    Ok(found.pid)
}

/// Drops every capability except the one for reading the command's processes, some of which hide from processes of the
/// same user. Without that capability, keeps none.
#[expect(unsafe_code, reason = "capset has no safe wrapper that covers unknown capabilities")]
pub(in super::super) fn keep_looking_into_processes() -> io::Result<()> {
    const VERSION_3: u32 = 0x2008_0522;
    const SYS_PTRACE: u32 = 1 << 19;
    let header = [VERSION_3, 0];
    let set = |kept: u32| {
        // Effective, permitted, inheritable; the second record has the higher capabilities.
        let records = [[kept, kept, 0], [0, 0, 0]];
        // SAFETY: version 3 of the interface reads one header of two words and two records of three words, as given.
        checked(unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), records.as_ptr()) }).map(drop)
    };
    set(SYS_PTRACE).or_else(|_| set(0))
}
