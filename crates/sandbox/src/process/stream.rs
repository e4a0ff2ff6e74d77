//! One end of a pipe, or the controlling end of a terminal, that never blocks a thread.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use tokio::io::unix::{AsyncFd, AsyncFdReadyGuard};

#[derive(Debug)]
pub(crate) struct PipeStream {
    fd: AsyncFd<OwnedFd>,
}

impl PipeStream {
    /// Must be called on a runtime. The other end is another open file and keeps its own mode.
    pub(crate) fn new(fd: OwnedFd) -> io::Result<Self> {
        fcntl_setfl(&fd, fcntl_getfl(&fd)? | OFlags::NONBLOCK)?;
        Ok(Self { fd: register(fd)? })
    }

    /// Nothing is lost when the future is dropped.
    pub(crate) async fn readable(&self) -> io::Result<Readable<'_>> {
        Ok(Readable(self.fd.readable().await?))
    }

    /// Waits for bytes. Zero is the end.
    pub(crate) async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(result) = self.readable().await?.read(buffer) {
                return result;
            }
        }
    }

    /// Reads bytes that are there already. `WouldBlock` when there is nothing.
    pub(crate) fn read_now(&self, buffer: &mut [u8]) -> io::Result<usize> {
        read_now(self.as_fd(), buffer)
    }

    pub(crate) async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let mut ready = self.fd.writable().await?;
            if let Ok(result) = ready.try_io(|fd| write_now(fd.as_fd(), bytes)) {
                bytes = &bytes[result?..];
            }
        }
        Ok(())
    }
}

/// The system says that there is something to read, which it may take back.
pub(crate) struct Readable<'a>(AsyncFdReadyGuard<'a, OwnedFd>);

impl Readable<'_> {
    /// `None` when there was nothing after all. Zero is the end.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Option<io::Result<usize>> {
        self.0.try_io(|fd| read_now(fd.as_fd(), buffer)).ok()
    }
}

impl AsFd for PipeStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Registers the descriptor, so that a task can wait for it.
pub(crate) fn register(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    #[expect(unsafe_code, reason = "the runtime trusts the caller with what it registers")]
    // SAFETY: an `OwnedFd` is open and stays the same descriptor until it is dropped.
    let registered = unsafe { AsyncFd::register(fd) };
    Ok(registered?)
}

fn read_now(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    match rustix::io::retry_on_intr(|| rustix::io::read(fd, &mut *buffer)) {
        // The error of a terminal when the last program has closed it.
        Err(Errno::IO) => Ok(0),
        result => Ok(result?),
    }
}

fn write_now(fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    Ok(rustix::io::retry_on_intr(|| rustix::io::write(fd, bytes))?)
}
