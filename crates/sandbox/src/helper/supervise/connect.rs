//! Connecting on behalf of a command: which socket, to whom, and whether that is allowed.

use std::io;
use std::net::{IpAddr, Ipv6Addr, UdpSocket};
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::net::AddressFamily;
use rustix::net::sockopt::{Timeout, socket_domain, socket_timeout};

use super::address::{self, Remote};
use super::calls::{self, Notification, low_half};
use super::domains::Rights;
use super::granted::Granted;
use super::local::LocalAttempt;
use super::target::Target;

/// The longest address that the kernel takes.
const MAX_ADDRESS: usize = 128;

/// The ports that may not be connected to, and the sockets that may all the same.
pub(super) struct ConnectionRules {
    /// Ports of this machine.
    pub(super) closed_ports: Vec<u16>,
    /// Local sockets outside.
    pub(super) granted: Granted,
}

/// How far a connection has come. Errors are for the command.
pub(super) enum ConnectionStep {
    Done,
    Later(ConnectionAttempt),
}

/// A connection in the making, for a command that waits for it.
pub(super) enum ConnectionAttempt {
    /// The kernel works on it.
    Remote { socket: OwnedFd, address: Vec<u8> },
    /// The queue of the one that listens is full.
    Local(LocalAttempt),
}

impl ConnectionAttempt {
    /// The descriptor that becomes ready when there is something to do. `None`: to be tried again after a while.
    pub(super) fn awaited(&self) -> Option<&OwnedFd> {
        match self {
            Self::Remote { socket, .. } => Some(socket),
            Self::Local(_) => None,
        }
    }

    /// How long the command wants to wait.
    pub(super) fn limit(&self) -> Option<Duration> {
        let socket = match self {
            Self::Remote { socket, .. } => socket,
            Self::Local(attempt) => attempt.socket(),
        };
        socket_timeout(socket, Timeout::Send).ok().flatten()
    }

    /// The error of the kernel when that time is over.
    pub(super) fn timed_out(&self) -> i32 {
        match self {
            Self::Remote { .. } => libc::EINPROGRESS,
            Self::Local(_) => libc::EAGAIN,
        }
    }
}

impl ConnectionRules {
    /// Takes up a call.
    pub(super) fn begin(
        &self,
        listener: &OwnedFd,
        asked: &Notification,
        target: Target,
        rights: Rights<'_>,
    ) -> io::Result<ConnectionStep> {
        let number = low_half(asked.arguments[0]);
        let length = usize::try_from(low_half(asked.arguments[2])).unwrap_or(usize::MAX);
        let socket = target.descriptor(number)?;
        if length > MAX_ADDRESS {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        let address = calls::memory_of(target.thread, asked.arguments[1], length)?;
        match socket_domain(&socket)? {
            AddressFamily::UNIX => {
                let attempt = LocalAttempt::new(&self.granted, target, number, socket, address)?;
                still_waiting(listener, asked.id)?;
                attempt.go_on(listener, asked.id, target, rights)
            }
            family => {
                still_waiting(listener, asked.id)?;
                if [AddressFamily::INET, AddressFamily::INET6].contains(&family) {
                    self.check_port(&address)?;
                }
                go_on_remote(socket, address, rights, false)
            }
        }
    }

    /// Goes on with what takes time.
    #[expect(clippy::unused_self, reason = "the other half of `begin`")]
    pub(super) fn go_on(
        &self,
        listener: &OwnedFd,
        id: u64,
        target: Target,
        rights: Rights<'_>,
        attempt: ConnectionAttempt,
    ) -> io::Result<ConnectionStep> {
        match attempt {
            ConnectionAttempt::Remote { socket, address } => go_on_remote(socket, address, rights, true),
            ConnectionAttempt::Local(attempt) => attempt.go_on(listener, id, target, rights),
        }
    }

    fn check_port(&self, address: &[u8]) -> io::Result<()> {
        let refused = match address::remote(address) {
            Remote::Host { ip, port } => {
                (self.closed_ports.contains(&port) && is_this_machine(ip)).then_some(libc::EACCES)
            }
            Remote::Nobody => None,
            Remote::Unknown => Some(libc::EAFNOSUPPORT),
        };
        refused.map_or(Ok(()), |code| Err(io::Error::from_raw_os_error(code)))
    }
}

/// Whether the thread still waits: data read of a thread that is gone may be another's.
pub(super) fn still_waiting(listener: &OwnedFd, id: u64) -> io::Result<()> {
    if calls::is_waiting(listener, id) { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::EINTR)) }
}

fn go_on_remote(
    socket: OwnedFd,
    address: Vec<u8>,
    rights: Rights<'_>,
    again: bool,
) -> io::Result<ConnectionStep> {
    let (waits, outcome) = connect_at_once(&socket, &address, rights)?;
    match outcome {
        Ok(()) => Ok(ConnectionStep::Done),
        Err(error) => match error.raw_os_error() {
            Some(libc::EINPROGRESS | libc::EALREADY) if waits => {
                Ok(ConnectionStep::Later(ConnectionAttempt::Remote { socket, address }))
            }
            // Another thread of the command's has seen its end first.
            Some(libc::EISCONN) if again => Ok(ConnectionStep::Done),
            _ => Err(error),
        },
    }
}

/// Connects without waiting, and says whether the command's socket is one that waits. Whether it does is a property of
/// what the command has open, too; it is put back before the command goes on.
pub(super) fn connect_at_once(
    socket: &OwnedFd,
    address: &[u8],
    rights: Rights<'_>,
) -> io::Result<(bool, io::Result<()>)> {
    let flags = fcntl_getfl(socket)?;
    let waits = !flags.contains(OFlags::NONBLOCK);
    if waits {
        fcntl_setfl(socket, flags | OFlags::NONBLOCK)?;
    }
    let outcome = rights.connect(socket, address);
    if waits {
        fcntl_setfl(socket, flags)?;
    }
    Ok((waits, outcome))
}

/// Whether connecting to it ends on this machine. What a socket can be bound to is this machine's own.
fn is_this_machine(ip: IpAddr) -> bool {
    let link_local = |ip: Ipv6Addr| ip.segments()[0] & 0xffc0 == 0xfe80;
    match ip {
        // Which link is meant is not always in the address.
        IpAddr::V6(ip) if link_local(ip) => true,
        ip => ip.is_loopback() || ip.is_unspecified() || UdpSocket::bind((ip, 0)).is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_recognised() {
        for ip in ["127.0.0.1", "127.9.9.9", "0.0.0.0", "::", "::1", "fe80::1"] {
            assert!(is_this_machine(ip.parse().unwrap()), "{ip}");
        }
        for ip in ["203.0.113.9", "198.51.100.7", "2001:db8::1"] {
            assert!(!is_this_machine(ip.parse().unwrap()), "{ip}");
        }
    }

    #[test]
    fn arguments_are_cut_to_what_the_kernel_takes() {
        assert_eq!(low_half(0xffff_ffff_0000_0003), 3);
        assert_eq!(low_half(0xffff_ffff), -1);
    }
}
