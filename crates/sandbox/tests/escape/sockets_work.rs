//! Actions that must work with network on, done inside by this test program.
#![expect(unsafe_code, reason = "raw system calls are what is tried")]

use std::io::{self, Read};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::sockets_probe::{
    Outcome, abstract_name, bind, checked, connect, error, expect, internet_address, local_address, port,
    socket, talk, timed, variable,
};

pub(crate) fn work(name: &str) -> Outcome {
    match name {
        "online_work_local" => {
            let server = UnixListener::bind("s.sock")?;
            let client = UnixStream::connect("s.sock")?;
            talk(client, server.accept()?.0)
        }
        "online_work_local_long" => local_long(),
        "online_work_local_kept_flags" => local_kept_flags(),
        "online_work_local_bound" => local_bound(),
        "online_work_packets" => packets(),
        "online_work_abstract" => {
            let name = abstract_name(&format!("oarlock-inside-{}", variable("ABSTRACT")))?;
            let server = UnixListener::bind_addr(&name)?;
            let client = UnixStream::connect_addr(&name)?;
            talk(client, server.accept()?.0)
        }
        "online_work_errors" => errors(),
        "online_work_tcp" => {
            let server = TcpListener::bind("127.0.0.1:0")?;
            let client = TcpStream::connect(server.local_addr()?)?;
            talk(client, server.accept()?.0)
        }
        "online_work_udp" => udp(),
        "online_work_not_waiting" => not_waiting(),
        "online_work_open_port" => TcpStream::connect(("127.0.0.1", port("OPEN_PORT"))).map(drop),
        "online_work_granted" => {
            let mut said = String::new();
            UnixStream::connect(variable("GRANTED"))?.read_to_string(&mut said)?;
            expect(said == "granted", &said)
        }
        "online_work_many" => many(),
        "online_work_many_local" => many_local(),
        "online_work_closed_to_others" => {
            // SAFETY: numbers only.
            checked(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) }.into())?;
            work("online_work_local")?;
            work("online_work_tcp")
        }
        "online_work_thread" => std::thread::spawn(thread_apart).join().unwrap_or(Err(error(libc::EIO))),
        "online_work_time_limit" => time_limit(),
        "online_work_signal" => signal(),
        "online_work_killed" => killed(),
        "online_work_ended" => ended(),
        "online_work_blackhole" => TcpStream::connect(("127.0.0.1", port("FULL_PORT"))).map(drop),
        name => panic!("no probe is called {name}"),
    }
}

/// The usual workaround for paths that are too long for an address.
fn local_long() -> Outcome {
    let folder = "long-".repeat(40);
    std::fs::create_dir_all(&folder)?;
    let opened = std::fs::File::open(&folder)?;
    let path = format!("/proc/self/fd/{}/s.sock", opened.as_raw_fd());
    let server = UnixListener::bind(&path)?;
    talk(UnixStream::connect(&path)?, server.accept()?.0)
}

fn flags(fd: RawFd, command: i32) -> io::Result<i64> {
    // SAFETY: only asks.
    checked(unsafe { libc::fcntl(fd, command) }.into())
}

fn local_kept_flags() -> Outcome {
    let server = UnixListener::bind("s.sock")?;
    for (kind, nonblocking) in [(0, false), (libc::SOCK_NONBLOCK, true)] {
        let client = socket(libc::AF_UNIX, libc::SOCK_STREAM | kind, 0)?;
        let number = client.as_raw_fd();
        let stream = UnixStream::from(client);
        stream.set_read_timeout(Some(Duration::from_secs(7)))?;
        connect(number, &local_address(b"s.sock"))?;
        let waits = flags(number, libc::F_GETFL)? & i64::from(libc::O_NONBLOCK) == 0;
        expect(waits != nonblocking, "whether it waits is as it was")?;
        let closes = flags(number, libc::F_GETFD)? == i64::from(libc::FD_CLOEXEC);
        expect(closes, "it is closed when another program is begun")?;
        expect(stream.read_timeout()? == Some(Duration::from_secs(7)), "the time limit is as it was")?;
        server.accept()?;
        let again = connect(number, &local_address(b"s.sock")).map_err(|e| e.raw_os_error());
        expect(again == Err(Some(libc::EISCONN)), "it is connected")?;
    }
    Ok(())
}

/// A client with a bound socket. The server may accept a silent connection first.
fn local_bound() -> Outcome {
    let server = UnixListener::bind("s.sock")?;
    let client = socket(libc::AF_UNIX, libc::SOCK_STREAM, 0)?;
    bind(&client, &local_address(b"c.sock"))?;
    connect(client.as_raw_fd(), &local_address(b"s.sock"))?;
    loop {
        let (stream, from) = server.accept()?;
        if from.as_pathname().is_some() {
            return talk(UnixStream::from(client), stream);
        }
    }
}

fn packets() -> Outcome {
    let server = socket(libc::AF_UNIX, libc::SOCK_SEQPACKET, 0)?;
    bind(&server, &local_address(b"p.sock"))?;
    // SAFETY: numbers only.
    checked(unsafe { libc::listen(server.as_raw_fd(), 4) }.into())?;
    let client = socket(libc::AF_UNIX, libc::SOCK_SEQPACKET, 0)?;
    connect(client.as_raw_fd(), &local_address(b"p.sock"))
}

/// A program gets the kernel's error.
fn errors() -> Outcome {
    let told = |outcome: Outcome, code: i32| {
        let found = outcome.map_err(|error| error.raw_os_error());
        expect(found == Err(Some(code)), &format!("{found:?} instead of {code}"))
    };
    let local = socket(libc::AF_UNIX, libc::SOCK_STREAM, 0)?;
    let to = local.as_raw_fd();
    told(connect(to, &local_address(b"nowhere")), libc::ENOENT)?;
    told(connect(to, &[1, 0]), libc::EINVAL)?;
    told(connect(to, &[0; 200]), libc::EINVAL)?;
    told(connect(to, &internet_address(Ipv4Addr::LOCALHOST, 1)), libc::EINVAL)?;
    drop(UnixListener::bind("gone.sock")?);
    told(connect(to, &local_address(b"gone.sock")), libc::ECONNREFUSED)?;
    std::fs::write("file", "")?;
    told(connect(to, &local_address(b"file")), libc::ECONNREFUSED)?;
    told(connect(to, &local_address(b"/proc/self/fd/-1/x")), libc::EBADF)?;
    told(connect(to, &local_address(b"/proc/self/fd/99999999999/x")), libc::ENOENT)?;
    told(connect(-1, &local_address(b"file")), libc::EBADF)?;
    told(connect(0, &local_address(b"file")), libc::ENOTSOCK)?;
    // SAFETY: an address that is not there, which the kernel is to notice.
    let lost = unsafe { libc::connect(to, 8 as *const libc::sockaddr, 20) };
    told(checked(lost.into()).map(drop), libc::EFAULT)?;
    let tcp = socket(libc::AF_INET, libc::SOCK_STREAM, 0)?;
    let unused = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    told(connect(tcp.as_raw_fd(), &internet_address(Ipv4Addr::LOCALHOST, unused)), libc::ECONNREFUSED)
}

fn udp() -> Outcome {
    let (one, other) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
    one.connect(other.local_addr()?)?;
    one.send(b"hi")?;
    expect(other.recv_from(&mut [0; 2])?.1 == one.local_addr()?, "who sent it")?;
    // Dissolves the association.
    connect(one.as_raw_fd(), &[0; 16])?;
    expect(one.peer_addr().is_err(), "it is connected to nobody")
}

fn wait_until_writable(socket: &OwnedFd) -> Outcome {
    let mut asked = libc::pollfd { fd: socket.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
    // SAFETY: one structure, whole.
    checked(unsafe { libc::poll(&raw mut asked, 1, 10_000) }.into()).map(drop)
}

fn not_waiting() -> Outcome {
    let socket = socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_NONBLOCK, 0)?;
    let address = internet_address(Ipv4Addr::LOCALHOST, port("OPEN_PORT"));
    let outcome = connect(socket.as_raw_fd(), &address).map_err(|error| error.raw_os_error());
    expect(outcome == Err(Some(libc::EINPROGRESS)), &format!("{outcome:?}"))?;
    wait_until_writable(&socket)?;
    TcpStream::from(socket).peer_addr().map(drop)
}

fn many() -> Outcome {
    let server = TcpListener::bind("127.0.0.1:0")?;
    let address = server.local_addr()?;
    std::thread::scope(|scope| {
        scope.spawn(|| (0..200).try_for_each(|_| server.accept().map(drop)));
        let clients: Vec<_> = (0..200).map(|_| scope.spawn(move || TcpStream::connect(address))).collect();
        clients.into_iter().try_for_each(|client| client.join().unwrap_or(Err(error(libc::EIO))).map(drop))
    })
}

/// More concurrent connections than the listener's queue can take.
fn many_local() -> Outcome {
    let server = UnixListener::bind("s.sock")?;
    // SAFETY: numbers only.
    checked(unsafe { libc::listen(server.as_raw_fd(), 1) }.into())?;
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..200).map(|_| scope.spawn(|| UnixStream::connect("s.sock"))).collect();
        scope.spawn(|| (0..200).try_for_each(|_| server.accept().map(drop)));
        clients.into_iter().try_for_each(|client| client.join().unwrap_or(Err(error(libc::EIO))).map(drop))
    })
}

/// A thread with its own descriptor table.
fn thread_apart() -> Outcome {
    // SAFETY: this thread does not use what the others open, nor they what it does.
    checked(unsafe { libc::unshare(libc::CLONE_FILES) }.into())?;
    work("online_work_local")?;
    work("online_work_tcp")
}

fn to_full_port() -> Outcome {
    let socket = socket(libc::AF_INET, libc::SOCK_STREAM, 0)?;
    connect(socket.as_raw_fd(), &internet_address(Ipv4Addr::LOCALHOST, port("FULL_PORT")))
}

fn time_limit() -> Outcome {
    let socket = socket(libc::AF_INET, libc::SOCK_STREAM, 0)?;
    let stream = TcpStream::from(socket);
    stream.set_write_timeout(Some(Duration::from_millis(300)))?;
    let address = internet_address(Ipv4Addr::LOCALHOST, port("FULL_PORT"));
    let (outcome, took) = timed(|| connect(stream.as_raw_fd(), &address));
    let code = outcome.map_err(|error| error.raw_os_error());
    expect(code == Err(Some(libc::EINPROGRESS)), &format!("{code:?}"))?;
    expect(took < super::PATIENCE, &format!("{took:?}"))
}

fn signal() -> Outcome {
    extern "C" fn handler(_: i32) {}
    // SAFETY: a handler that does nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as extern "C" fn(i32) as usize;
        checked(libc::sigaction(libc::SIGALRM, &raw const action, std::ptr::null_mut()).into())?;
    }
    // SAFETY: only asks.
    let thread = unsafe { libc::pthread_self() };
    let over = AtomicBool::new(false);
    let (outcome, took) = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                std::thread::park_timeout(Duration::from_millis(100));
                // SAFETY: that thread waits for this one to end.
                unsafe { libc::pthread_kill(thread, libc::SIGALRM) };
            }
        });
        let outcome = timed(to_full_port);
        over.store(true, Ordering::Relaxed);
        outcome
    });
    let code = outcome.map_err(|error| error.raw_os_error());
    expect(code == Err(Some(libc::EINTR)), &format!("{code:?}"))?;
    expect(took < super::PATIENCE, &format!("{took:?}"))
}

fn blackholed() -> io::Result<std::process::Child> {
    Command::new("/proc/self/exe")
        .args(["--exact", "probe::probe", "--ignored", "--nocapture"])
        .env(super::probe::VARIABLE, "online_work_blackhole")
        .spawn()
}

/// A process that is killed while connecting ends at once, and others continue.
fn killed() -> Outcome {
    for _ in 0..20 {
        let mut child = blackholed()?;
        work("online_work_tcp")?;
        child.kill()?;
        let (_, took) = timed(|| child.wait());
        expect(took < super::PATIENCE, &format!("{took:?}"))?;
    }
    Ok(())
}

/// The command ends while a background process of it is connecting.
fn ended() -> Outcome {
    for _ in 0..5 {
        blackholed()?;
    }
    Ok(())
}
