//! Connects on behalf of a command, if the target is allowed.

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

/// The kernel's limit of an address.
const MAX_ADDRESS: usize = 128;

/// Closed ports, and allowed sockets.
pub(super) struct ConnectionRules {
    /// Ports of this machine.
    pub(super) closed_ports: Vec<u16>,
    /// Local sockets outside.
    pub(super) granted: Granted,
}

/// The state of a connection attempt. Errors are for the command.
pub(super) enum ConnectionStep {
    Done,
    Later(ConnectionAttempt),
}

/// A pending connection, for which a command waits.
pub(super) enum ConnectionAttempt {
    /// The kernel is connecting.
    Remote { socket: OwnedFd, address: Vec<u8> },
    /// The listener's queue is full.
    Local(LocalAttempt),
}

impl ConnectionAttempt {
    /// The descriptor to poll. `None`: retry after a while.
    pub(super) fn awaited(&self) -> Option<&OwnedFd> {
        match self {
            Self::Remote { socket, .. } => Some(socket),
            Self::Local(_) => None,
        }
    }

    /// The command's timeout.
    pub(super) fn limit(&self) -> Option<Duration> {
        let socket = match self {
            Self::Remote { socket, .. } => socket,
            Self::Local(attempt) => attempt.socket(),
        };
        socket_timeout(socket, Timeout::Send).ok().flatten()
    }

    /// The kernel's error after that time.
    pub(super) fn timed_out(&self) -> i32 {
        match self {
            Self::Remote { .. } => libc::EINPROGRESS,
            Self::Local(_) => libc::EAGAIN,
        }
    }
}

impl ConnectionRules {
    /// Starts handling a call.
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

    /// Continues a pending connection.
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

/// Whether the thread still waits: data read from a thread that is gone may be another's.
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
            // Another thread of the command has connected it meanwhile.
            Some(libc::EISCONN) if again => Ok(ConnectionStep::Done),
            _ => Err(error),
        },
    }
}

/// Connects without blocking, and returns whether the command's socket is blocking. That flag is shared with the
/// command; it is restored before the command continues.
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

/// Whether the address is on this machine: any address that a socket can be bound to.
fn is_this_machine(ip: IpAddr) -> bool {
    let link_local = |ip: Ipv6Addr| ip.segments()[0] & 0xffc0 == 0xfe80;
    match ip {
        // The link is not always part of the address.
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
