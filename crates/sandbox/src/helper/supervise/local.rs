//! Connects to Unix sockets. Whether it is allowed depends on the listener, which only a connection reveals: so the
//! supervisor connects its own socket, checks the peer, and then replaces the command's socket by it.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{AddressFamily, SocketFlags, SocketType, getpeername, socket_with};

use super::address::{self, Local};
use super::calls;
use super::connect::{ConnectionAttempt, ConnectionStep, connect_at_once};
use super::domains::Rights;
use super::granted::Granted;
use super::target::Target;

/// A connection of the command's socket to a socket on this machine.
pub(super) struct LocalAttempt {
    /// The command's descriptor number of the socket.
    number: i32,
    socket: OwnedFd,
    kind: SocketType,
    /// The socket's file, held so that it cannot be replaced. `None` for an abstract name.
    file: Option<OwnedFd>,
    address: Vec<u8>,
    granted: bool,
}

impl LocalAttempt {
    pub(super) fn new(
        granted: &Granted,
        target: Target,
        number: i32,
        socket: OwnedFd,
        address: Vec<u8>,
    ) -> io::Result<Self> {
        let error = io::Error::from_raw_os_error;
        let kind = sockopt::socket_type(&socket)?;
        if ![SocketType::STREAM, SocketType::SEQPACKET].contains(&kind) {
            return Err(error(libc::EACCES));
        }
        let (file, is_granted) = match address::local(&address).ok_or_else(|| error(libc::EINVAL))? {
            Local::Name => (None, false),
            Local::Path(path) => match target.open(path) {
                Ok(file) => match granted.same(&file) {
                    Some(own) => (Some(own.try_clone()?), true),
                    None => (Some(file), false),
                },
                // Granted, but covered by something else inside.
                Err(failed) => match granted.named(Path::new(OsStr::from_bytes(path))) {
                    Some(file) => (Some(file.try_clone()?), true),
                    None => return Err(failed),
                },
            },
        };
        if getpeername(&socket).is_ok() {
            return Err(error(libc::EISCONN));
        }
        let address = match &file {
            Some(file) => address::of_path(&format!("/proc/self/fd/{}", file.as_raw_fd())),
            None => address,
        };
        Ok(Self { number, socket, kind, file, address, granted: is_granted })
    }

    pub(super) fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    pub(super) fn go_on(
        self,
        listener: &OwnedFd,
        id: u64,
        target: Target,
        rights: Rights<'_>,
    ) -> io::Result<ConnectionStep> {
        let refused = || io::Error::from_raw_os_error(libc::EACCES);
        let flags = fcntl_getfl(&self.socket)?;
        let waits = !flags.contains(OFlags::NONBLOCK);
        let own =
            socket_with(AddressFamily::UNIX, self.kind, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
        match rights.connect(&own, &self.address) {
            Err(error) if waits && is_full(&error) => {
                return Ok(ConnectionStep::Later(ConnectionAttempt::Local(self)));
            }
            other => other?,
        }
        // A listener outside the namespace has no process id in it.
        if !self.granted && calls::peer(&own)? <= 0 {
            return Err(refused());
        }
        if calls::is_bound(&self.socket) {
            return self.connect_itself(waits, rights);
        }
        self.copy_options(&own);
        fcntl_setfl(&own, fcntl_getfl(&own)? & !OFlags::NONBLOCK | flags & OFlags::NONBLOCK)?;
        calls::replace(listener, id, &own, self.number, target.closes_on_exec(self.number))?;
        Ok(ConnectionStep::Done)
    }

    /// A bound socket cannot be replaced. A socket file has the same listener for ever; an abstract name could have
    /// another one by now.
    fn connect_itself(self, waits: bool, rights: Rights<'_>) -> io::Result<ConnectionStep> {
        if self.file.is_none() {
            return Err(io::Error::from_raw_os_error(libc::EACCES));
        }
        match connect_at_once(&self.socket, &self.address, rights)?.1 {
            Err(error) if waits && is_full(&error) => {
                Ok(ConnectionStep::Later(ConnectionAttempt::Local(self)))
            }
            other => other.map(|()| ConnectionStep::Done),
        }
    }

    /// Copies the options that the command has set. Those that cannot be copied keep their defaults.
    fn copy_options(&self, own: &OwnedFd) {
        let from = &self.socket;
        for timeout in [Timeout::Send, Timeout::Recv] {
            if let Ok(Some(limit)) = sockopt::socket_timeout(from, timeout) {
                let _ = sockopt::set_socket_timeout(own, timeout, Some(limit));
            }
        }
        if sockopt::socket_passcred(from) == Ok(true) {
            let _ = sockopt::set_socket_passcred(own, true);
        }
        // The kernel doubles the value.
        if let Ok(size) = sockopt::socket_send_buffer_size(from)
            && sockopt::socket_send_buffer_size(own) != Ok(size)
        {
            let _ = sockopt::set_socket_send_buffer_size(own, size / 2);
        }
        if let Ok(size) = sockopt::socket_recv_buffer_size(from)
            && sockopt::socket_recv_buffer_size(own) != Ok(size)
        {
            let _ = sockopt::set_socket_recv_buffer_size(own, size / 2);
        }
    }
}

fn is_full(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EAGAIN)
}
