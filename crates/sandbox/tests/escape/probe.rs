//! Attempts by system call, made inside by this test program. The arguments are harmless, so that the error alone
//! distinguishes "reached the kernel" from "was stopped".
#![expect(unsafe_code, reason = "raw system calls are what is tried")]

use std::io;
use std::net::TcpStream;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};

/// The variable with the attempt's name.
pub(crate) const VARIABLE: &str = "OARLOCK_PROBE";

/// Not a test: started inside the sandbox with the name of an attempt.
#[test]
#[ignore = "runs inside the sandbox, started by another test"]
fn probe() {
    let Ok(name) = std::env::var(VARIABLE) else { return };
    let attempt = match name.split('_').next() {
        Some("online") => Some(super::sockets_probe::attempt as fn(&str) -> io::Result<()>),
        Some("names") => Some(super::names_at_depth::attempt as _),
        Some("files") => Some(super::files_at_depth::attempt as _),
        Some("confined") => Some(super::confined::attempt as _),
        _ => None,
    };
    if let Some(attempt) = attempt {
        let outcome = attempt(&name);
        if let Err(error) = &outcome {
            eprintln!("{name}: {error}");
        }
        std::process::exit(i32::from(outcome.is_err()));
    }
    std::process::exit(i32::from(!reached(&name)));
}

/// Whether the call passed the sandbox: it succeeded, or the kernel rejected its arguments.
fn reached(name: &str) -> bool {
    match attempt(name) {
        Ok(()) => true,
        Err(error) => {
            let stopped = [libc::EPERM, libc::EACCES, libc::ENOSYS, libc::EROFS];
            // No listener, as in a separate network namespace.
            let nobody = [libc::ECONNREFUSED, libc::ENETUNREACH, libc::ENOENT, libc::ESRCH];
            let code = error.raw_os_error().unwrap_or(0);
            eprintln!("{name}: {error}");
            !(stopped.contains(&code) || name.starts_with("connect") && nobody.contains(&code))
        }
    }
}

type Arguments = [libc::c_long; 6];

const BAD: libc::c_long = -1;

fn call(number: libc::c_long, [a, b, c, d, e, f]: Arguments) -> io::Result<()> {
    // SAFETY: pointers among the arguments are null, invalid on purpose, or to static texts, and the kernel checks.
    let result = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn text(text: &'static std::ffi::CStr) -> libc::c_long {
    text.as_ptr() as libc::c_long
}

fn socket(family: i32, kind: i32) -> io::Result<()> {
    call(libc::SYS_socket, [family.into(), kind.into(), 0, 0, 0, 0])
}

fn attempt(name: &str) -> io::Result<()> {
    match name {
        "descriptors" => descriptors(),
        // The user does not exist inside, which is an invalid argument.
        "setuid" => call(libc::SYS_setuid, [0; 6]).map_err(|_| io::Error::from_raw_os_error(libc::EPERM)),
        "x32" => call(libc::SYS_getpid | 0x4000_0000, [0; 6]),
        "int80" => int80(),
        "connect_tcp" => TcpStream::connect(("127.0.0.1", host_port())).map(drop),
        "connect_local" => UnixStream::connect("host.sock").map(drop),
        "connect_abstract" => {
            let address = SocketAddr::from_abstract_name(std::env::var("ABSTRACT").unwrap_or_default())?;
            UnixStream::connect_addr(&address).map(drop)
        }
        name if name.starts_with("socket_") => sockets(name),
        name => table(name),
    }
}

fn sockets(name: &str) -> io::Result<()> {
    match name {
        "socket_tcp" => socket(libc::AF_INET, libc::SOCK_STREAM),
        "socket_udp" => socket(libc::AF_INET, libc::SOCK_DGRAM),
        "socket_v6" => socket(libc::AF_INET6, libc::SOCK_STREAM),
        "socket_raw" => socket(libc::AF_INET, libc::SOCK_RAW),
        "socket_packet" => socket(libc::AF_PACKET, libc::SOCK_RAW),
        "socket_vsock" => socket(libc::AF_VSOCK, libc::SOCK_STREAM),
        "socket_netlink" => socket(libc::AF_NETLINK, libc::SOCK_RAW),
        "socket_alg" => socket(libc::AF_ALG, libc::SOCK_SEQPACKET),
        "socket_local_datagram" => socket(libc::AF_UNIX, libc::SOCK_DGRAM),
        // The kernel turns it into a datagram socket.
        "socket_local_raw" => socket(libc::AF_UNIX, libc::SOCK_RAW),
        "socket_local_raw_flags" => {
            socket(libc::AF_UNIX, libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK)
        }
        "socket_local_raw_pair" => {
            let mut pair = [0_i32; 2];
            let at = pair.as_mut_ptr() as libc::c_long;
            call(libc::SYS_socketpair, [libc::AF_UNIX.into(), libc::SOCK_RAW.into(), 0, at, 0, 0])
        }
        name => panic!("no probe is called {name}"),
    }
}

/// The calls that need only a number and arguments.
fn table(name: &str) -> io::Result<()> {
    let user: libc::c_long = libc::CLONE_NEWUSER.into();
    let (root, tmpfs, here) = (text(c"/"), text(c"tmpfs"), text(c"."));
    let remount = (libc::MS_REMOUNT | libc::MS_BIND) as libc::c_long;
    let host: libc::c_long = std::env::var("HOST").ok().and_then(|pid| pid.parse().ok()).unwrap_or(1);
    let (number, arguments): (libc::c_long, Arguments) = match name {
        "acct" => (libc::SYS_acct, [text(c"/nowhere"), 0, 0, 0, 0, 0]),
        "add_key" => (libc::SYS_add_key, [0; 6]),
        "bpf" => (libc::SYS_bpf, [BAD, 0, 0, 0, 0, 0]),
        "chroot" => (libc::SYS_chroot, [here, 0, 0, 0, 0, 0]),
        "clone_user" => (libc::SYS_clone, [user | libc::c_long::from(libc::SIGCHLD), 0, 0, 0, 0, 0]),
        "clone3_user" => (libc::SYS_clone3, [0; 6]),
        "clock_settime" => (libc::SYS_clock_settime, [BAD, 0, 0, 0, 0, 0]),
        "delete_module" => (libc::SYS_delete_module, [text(c"oarlock"), 0, 0, 0, 0, 0]),
        "fanotify_init" => (libc::SYS_fanotify_init, [0x200, 0, 0, 0, 0, 0]),
        "finit_module" => (libc::SYS_finit_module, [BAD, 0, 0, 0, 0, 0]),
        "fsopen" => (libc::SYS_fsopen, [tmpfs, 0, 0, 0, 0, 0]),
        "init_module" => (libc::SYS_init_module, [0; 6]),
        "io_uring_setup" => (libc::SYS_io_uring_setup, [0; 6]),
        "io_uring_enter" => (libc::SYS_io_uring_enter, [BAD, 0, 0, 0, 0, 0]),
        "kcmp" => (libc::SYS_kcmp, [host, host, 0, 0, 0, 0]),
        "kexec_load" => (libc::SYS_kexec_load, [0, 17, 0, BAD, 0, 0]),
        "kexec_file_load" => (libc::SYS_kexec_file_load, [BAD, BAD, 0, 0, BAD, 0]),
        "keyctl" => (libc::SYS_keyctl, [BAD, 0, 0, 0, 0, 0]),
        "mknod" => (libc::SYS_mknodat, [libc::AT_FDCWD.into(), text(c"disk"), 0o60_600, 0xfe00, 0, 0]),
        "mount" => (libc::SYS_mount, [tmpfs, here, tmpfs, 0, 0, 0]),
        "mount_setattr" => (libc::SYS_mount_setattr, [BAD, 0, 0, 0, 0, 0]),
        "move_mount" => (libc::SYS_move_mount, [BAD, 0, BAD, 0, 0, 0]),
        "open_by_handle_at" => (libc::SYS_open_by_handle_at, [BAD, 0, 0, 0, 0, 0]),
        "open_tree" => (libc::SYS_open_tree, [libc::AT_FDCWD.into(), root, 1, 0, 0, 0]),
        "perf_event_open" => (libc::SYS_perf_event_open, [0; 6]),
        "personality" => (libc::SYS_personality, [0x0004_0000, 0, 0, 0, 0, 0]),
        "pidfd_getfd" => (libc::SYS_pidfd_getfd, [BAD, 0, 0, 0, 0, 0]),
        "pivot_root" => (libc::SYS_pivot_root, [here, here, 0, 0, 0, 0]),
        "process_vm_readv" => (libc::SYS_process_vm_readv, [host, 0, BAD, 0, BAD, 0]),
        "process_vm_writev" => (libc::SYS_process_vm_writev, [host, 0, BAD, 0, BAD, 0]),
        "ptrace" => (libc::SYS_ptrace, [libc::PTRACE_PEEKDATA.into(), host, 0, 0, 0, 0]),
        "quotactl" => (libc::SYS_quotactl, [BAD, 0, 0, 0, 0, 0]),
        "reboot" => (libc::SYS_reboot, [0; 6]),
        "remount" => (libc::SYS_mount, [0, root, 0, remount, 0, 0]),
        "request_key" => (libc::SYS_request_key, [0; 6]),
        "setdomainname" => (libc::SYS_setdomainname, [0, BAD, 0, 0, 0, 0]),
        "sethostname" => (libc::SYS_sethostname, [0, BAD, 0, 0, 0, 0]),
        "setns" => (libc::SYS_setns, [BAD, 0, 0, 0, 0, 0]),
        "swapon" => (libc::SYS_swapon, [0, BAD, 0, 0, 0, 0]),
        "syslog" => (libc::SYS_syslog, [BAD, 0, 0, 0, 0, 0]),
        "tiocsti" => (libc::SYS_ioctl, [0, 0x5412, 0, 0, 0, 0]),
        "tiocsti_high" => (libc::SYS_ioctl, [0, 0x5412 | (1 << 32), 0, 0, 0, 0]),
        "tioclinux" => (libc::SYS_ioctl, [0, 0x541c, 0, 0, 0, 0]),
        "umount" => (libc::SYS_umount2, [text(c"/proc"), libc::MNT_DETACH.into(), 0, 0, 0, 0]),
        "unshare_mounts" => (libc::SYS_unshare, [libc::CLONE_NEWNS.into(), 0, 0, 0, 0, 0]),
        // With an invalid bit: the filter refuses it before the kernel sees it.
        "unshare_user" => (libc::SYS_unshare, [user | 1, 0, 0, 0, 0, 0]),
        "userfaultfd" => (libc::SYS_userfaultfd, [BAD, 0, 0, 0, 0, 0]),
        name => panic!("no probe is called {name}"),
    };
    call(number, arguments)
}

fn host_port() -> u16 {
    std::env::var("PORT").ok().and_then(|port| port.parse().ok()).unwrap_or(1)
}

/// Succeeds if a descriptor beyond the standard three was inherited.
fn descriptors() -> io::Result<()> {
    let entries = std::fs::read_dir("/proc/self/fd")?.flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    // The listing uses one itself, which is closed by now.
    let open: Vec<i32> =
        numbers.collect::<Vec<_>>().into_iter().filter(|fd| *fd > 2 && is_open(*fd)).collect();
    if open.is_empty() { Err(io::Error::from_raw_os_error(libc::EPERM)) } else { Ok(()) }
}

fn is_open(fd: i32) -> bool {
    // SAFETY: only asks.
    unsafe { libc::fcntl(fd, libc::F_GETFD) >= 0 }
}

#[cfg(target_arch = "x86_64")]
fn int80() -> io::Result<()> {
    const GETPID: i64 = 20;
    let result: i64;
    // SAFETY: the old way into the kernel, with a call that has no arguments and no effect.
    unsafe {
        std::arch::asm!(
            "int 0x80", inlateout("rax") GETPID => result,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
    if result < 0 { Err(io::Error::from_raw_os_error(libc::ENOSYS)) } else { Ok(()) }
}

#[cfg(not(target_arch = "x86_64"))]
fn int80() -> io::Result<()> {
    Err(io::Error::from_raw_os_error(libc::ENOSYS))
}
