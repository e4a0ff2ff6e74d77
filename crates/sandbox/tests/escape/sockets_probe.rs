//! Attempts to reach peers by sockets with network on, made inside by this test program. Success is an escape for those
//! in `sockets::ATTEMPTS`, and required for those in `sockets::WORK`.
#![expect(unsafe_code, reason = "raw system calls are what is tried")]

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as LocalAddr, UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

pub(crate) type Outcome = io::Result<()>;

pub(crate) fn error(code: i32) -> io::Error {
    io::Error::from_raw_os_error(code)
}

pub(crate) fn expect(holds: bool, what: &str) -> Outcome {
    if holds { Ok(()) } else { Err(io::Error::other(what.to_owned())) }
}

pub(crate) fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

pub(crate) fn port(name: &str) -> u16 {
    variable(name).parse().unwrap_or(1)
}

pub(crate) fn checked(result: i64) -> io::Result<i64> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

pub(crate) fn socket(family: i32, kind: i32, protocol: i32) -> io::Result<OwnedFd> {
    // SAFETY: numbers only, and a new descriptor that nobody else owns.
    unsafe {
        let fd = checked(libc::socket(family, kind | libc::SOCK_CLOEXEC, protocol).into())?;
        Ok(OwnedFd::from_raw_fd(i32::try_from(fd).unwrap()))
    }
}

pub(crate) fn connect(fd: RawFd, address: &[u8]) -> Outcome {
    let length = libc::socklen_t::try_from(address.len()).unwrap();
    // SAFETY: the address is there for its whole length.
    checked(unsafe { libc::connect(fd, address.as_ptr().cast(), length) }.into()).map(drop)
}

pub(crate) fn local_address(path: &[u8]) -> Vec<u8> {
    [[1, 0].as_slice(), path, &[0]].concat()
}

pub(crate) fn internet_address(ip: Ipv4Addr, port: u16) -> Vec<u8> {
    [[2, 0].as_slice(), &port.to_be_bytes(), &ip.octets(), &[0; 8]].concat()
}

fn tcp(ip: impl Into<IpAddr>) -> Outcome {
    TcpStream::connect(SocketAddr::new(ip.into(), port("CLOSED_PORT"))).map(drop)
}

pub(crate) fn abstract_name(name: &str) -> io::Result<LocalAddr> {
    LocalAddr::from_abstract_name(name)
}

pub(crate) fn attempt(name: &str) -> Outcome {
    match name {
        "online_local_path" => UnixStream::connect("host.sock").map(drop),
        "online_local_tmp" => UnixStream::connect(variable("TMP_SOCKET")).map(drop),
        "online_local_link" => {
            std::os::unix::fs::symlink(variable("TMP_SOCKET"), "link")?;
            UnixStream::connect("link").map(drop)
        }
        "online_local_own_folder" => UnixStream::connect("/proc/self/cwd/host.sock").map(drop),
        "online_local_descriptor" => {
            let folder = std::fs::File::open(".")?;
            UnixStream::connect(format!("/proc/self/fd/{}/host.sock", folder.as_raw_fd())).map(drop)
        }
        "online_local_bound" => {
            let socket = socket(libc::AF_UNIX, libc::SOCK_STREAM, 0)?;
            bind(&socket, &local_address(b"own-name"))?;
            connect(socket.as_raw_fd(), &local_address(b"host.sock"))
        }
        "online_local_datagram" => socket(libc::AF_UNIX, libc::SOCK_DGRAM, 0).map(drop),
        "online_local_raw" => socket(libc::AF_UNIX, libc::SOCK_RAW, 0).map(drop),
        "online_abstract" => UnixStream::connect_addr(&abstract_name(&variable("ABSTRACT"))?).map(drop),
        "online_closed" => tcp(Ipv4Addr::LOCALHOST),
        "online_closed_any" => tcp(Ipv4Addr::UNSPECIFIED),
        "online_closed_other" => tcp(Ipv4Addr::new(127, 3, 2, 1)),
        "online_closed_six" => tcp(Ipv6Addr::LOCALHOST),
        "online_closed_six_any" => tcp(Ipv6Addr::UNSPECIFIED),
        "online_closed_mapped" => tcp(Ipv4Addr::LOCALHOST.to_ipv6_mapped()),
        "online_closed_mapped_any" => tcp(Ipv4Addr::UNSPECIFIED.to_ipv6_mapped()),
        "online_closed_interface" => {
            let ip: IpAddr = variable("LOCAL_IP").parse().unwrap_or(Ipv4Addr::LOCALHOST.into());
            tcp(ip)
        }
        "online_closed_later" => closed_by_fast_open(),
        "online_closed_at_once" => closed_by_message(),
        "online_closed_multipath" => {
            let socket = socket(libc::AF_INET, libc::SOCK_STREAM, libc::IPPROTO_MPTCP)?;
            connect(socket.as_raw_fd(), &internet_address(Ipv4Addr::LOCALHOST, port("CLOSED_PORT")))
        }
        "online_second_listener" => second_listener(),
        "online_swapped_address" => swapped_address(),
        "online_swapped_descriptor" => swapped_descriptor(),
        "online_swapped_path" => swapped_path(),
        name => super::sockets_work::work(name),
    }
}

pub(crate) fn bind(socket: &OwnedFd, address: &[u8]) -> Outcome {
    let length = libc::socklen_t::try_from(address.len()).unwrap();
    // SAFETY: the address is there for its whole length.
    checked(unsafe { libc::bind(socket.as_raw_fd(), address.as_ptr().cast(), length) }.into()).map(drop)
}

/// The connection is made by the first write.
fn closed_by_fast_open() -> Outcome {
    let socket = socket(libc::AF_INET, libc::SOCK_STREAM, 0)?;
    let on: i32 = 1;
    // SAFETY: one number, of the size given.
    checked(i64::from(unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, 30, (&raw const on).cast(), 4)
    }))?;
    connect(socket.as_raw_fd(), &internet_address(Ipv4Addr::LOCALHOST, port("CLOSED_PORT")))?;
    TcpStream::from(socket).write_all(b"x")
}

fn closed_by_message() -> Outcome {
    let address = internet_address(Ipv4Addr::LOCALHOST, port("CLOSED_PORT"));
    let length = libc::socklen_t::try_from(address.len()).unwrap();
    let socket = socket(libc::AF_INET, libc::SOCK_STREAM, 0)?;
    // SAFETY: both texts are there for their whole lengths.
    checked(unsafe {
        libc::sendto(
            socket.as_raw_fd(),
            b"x".as_ptr().cast(),
            1,
            libc::MSG_FASTOPEN,
            address.as_ptr().cast(),
            length,
        )
    } as i64)
    .map(drop)
}

/// A later listener would be notified instead of the supervisor, and could answer "continue".
fn second_listener() -> Outcome {
    let mut code = [libc::sock_filter { code: 6, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW }];
    let program = libc::sock_fprog { len: 1, filter: code.as_mut_ptr() };
    // SAFETY: a program of one instruction, which allows everything.
    checked(unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &raw const program,
        )
    })
    .map(drop)
}

/// How many attempts must overlap with a swap: fewer prove nothing, and on a busy machine thousands of attempts may run
/// before the other thread starts.
const SWAPPED: usize = 500;

/// Repeats `swap` in another thread during the attempts, until enough overlapped.
pub(crate) fn while_swapping(
    swap: impl Fn() + Sync,
    mut attempt: impl FnMut() -> io::Result<bool>,
) -> Outcome {
    let (over, swaps) = (AtomicBool::new(false), AtomicUsize::new(0));
    let escaped = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                swap();
                swaps.fetch_add(1, Ordering::Relaxed);
            }
        });
        let (mut escaped, mut swapped) = (Ok(false), 0);
        while matches!(escaped, Ok(false)) && swapped < SWAPPED {
            let before = swaps.load(Ordering::Relaxed);
            escaped = attempt();
            swapped += usize::from(swaps.load(Ordering::Relaxed) != before);
        }
        over.store(true, Ordering::Relaxed);
        escaped
    })?;
    if escaped { Ok(()) } else { Err(error(libc::EACCES)) }
}

/// An address in memory that alternates between an open and a closed port.
fn swapped_address() -> Outcome {
    let (open, closed) = (port("OPEN_PORT"), port("CLOSED_PORT"));
    let shared: Vec<u8> = internet_address(Ipv4Addr::LOCALHOST, open);
    let at = shared.as_ptr() as usize;
    let swap = move || {
        for port in [closed, open] {
            // SAFETY: the two bytes of the port, within the address; that they change at any moment is the attempt.
            unsafe { std::ptr::write_volatile((at + 2) as *mut [u8; 2], port.to_be_bytes()) };
        }
    };
    while_swapping(swap, || {
        let socket = socket(libc::AF_INET, libc::SOCK_STREAM, 0)?;
        let connected = connect(socket.as_raw_fd(), &shared).is_ok();
        let stream = TcpStream::from(socket);
        Ok(connected && stream.peer_addr().is_ok_and(|peer| peer.port() == closed))
    })
}

/// A descriptor that alternates between two socket families, with an address for one of them.
fn swapped_descriptor() -> Outcome {
    let (open, closed) = (port("OPEN_PORT"), port("CLOSED_PORT"));
    let internet = socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_NONBLOCK, 0)?;
    let local = socket(libc::AF_UNIX, libc::SOCK_STREAM, 0)?;
    let number = socket(libc::AF_INET, libc::SOCK_STREAM, 0)?;
    let (a, b, n) = (internet.as_raw_fd(), local.as_raw_fd(), number.as_raw_fd());
    let swap = move || {
        for from in [a, b] {
            // SAFETY: all three are open for as long as this runs.
            unsafe { libc::dup2(from, n) };
        }
    };
    let addresses = [
        local_address(b"host.sock"),
        internet_address(Ipv4Addr::LOCALHOST, closed),
        internet_address(Ipv4Addr::LOCALHOST, open),
    ];
    let peer = |fd: RawFd| {
        let mut address = [0_u8; 128];
        let mut length: libc::socklen_t = 128;
        // SAFETY: no more than the length given is written.
        let found = unsafe { libc::getpeername(fd, address.as_mut_ptr().cast(), &raw mut length) == 0 };
        found.then(|| (address[0], u16::from_be_bytes([address[2], address[3]])))
    };
    let mut round = 0;
    while_swapping(swap, || {
        round += 1;
        let _ = connect(n, &addresses[round % addresses.len()]);
        Ok([a, b, n].into_iter().filter_map(peer).any(|(family, port)| family == 1 || port == closed))
    })
}

/// A link that alternates between a socket inside and one outside.
fn swapped_path() -> Outcome {
    let _own = UnixListener::bind("own.sock")?;
    let drain = _own.try_clone()?;
    std::thread::spawn(move || drain.incoming().for_each(drop));
    std::os::unix::fs::symlink("own.sock", "to-own")?;
    std::os::unix::fs::symlink("host.sock", "to-host")?;
    std::fs::hard_link("to-own", "way")?;
    let swap = || {
        for name in ["to-host", "to-own"] {
            // Left if both names were the same file, because a rename then does nothing.
            let _ = std::fs::remove_file("next");
            let _ = std::fs::hard_link(name, "next").and_then(|()| std::fs::rename("next", "way"));
        }
    };
    while_swapping(swap, || {
        let Ok(stream) = UnixStream::connect("way") else { return Ok(false) };
        Ok(stream.peer_addr().is_ok_and(|peer| peer.as_pathname().is_some_and(|p| p.ends_with("host.sock"))))
    })
}

/// Used by what must work.
pub(crate) fn talk(mut one: impl Read + Write, mut other: impl Read + Write) -> Outcome {
    let mut said = [0; 2];
    one.write_all(b"hi")?;
    other.read_exact(&mut said)?;
    other.write_all(&said)?;
    one.read_exact(&mut said)?;
    expect(&said == b"hi", "what was said came back as something else")
}

/// How long something took.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let began = Instant::now();
    (work(), began.elapsed())
}
