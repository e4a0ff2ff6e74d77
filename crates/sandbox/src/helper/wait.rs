//! Waits for descriptors, and converts wait statuses.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::wire::HelperStatus;

/// Blocks until at least one is readable or closed, or the time is over. Missing ones are never ready.
pub(super) fn readable<const N: usize>(files: [Option<&OwnedFd>; N], limit: Option<Duration>) -> [bool; N] {
    let mut asked: Vec<PollFd<'_>> =
        files.iter().flatten().map(|file| PollFd::new(*file, PollFlags::IN)).collect();
    let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
    let outcome = loop {
        match poll(&mut asked, limit.as_ref()) {
            Err(rustix::io::Errno::INTR) => {}
            outcome => break outcome,
        }
    };
    // If polling fails, the only way is to end: then everything counts as ready.
    let mut ready = asked.iter().map(|file| outcome.is_err() || !file.revents().is_empty());
    files.map(|file| file.is_some() && ready.next().unwrap_or(false))
}

/// Whether the other end of a pipe is still open.
pub(super) fn has_reader(pipe: &OwnedFd) -> bool {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut asked = [PollFd::new(pipe, PollFlags::empty())];
    poll(&mut asked, Some(&at_once)).is_ok() && !asked[0].revents().contains(PollFlags::ERR)
}

/// From the number that `wait` returns.
pub(super) fn status(raw: i32) -> HelperStatus {
    if libc::WIFSIGNALED(raw) {
        HelperStatus::Signaled { signal: libc::WTERMSIG(raw) }
    } else {
        HelperStatus::Exited { code: libc::WEXITSTATUS(raw) }
    }
}
