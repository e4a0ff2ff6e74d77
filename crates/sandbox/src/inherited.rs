//! Sockets that a service manager opened and passed to this process (`LISTEN_FDS`, `LISTEN_PID`).

use std::env;
use std::io;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};

/// The first passed descriptor, by convention.
const FIRST: RawFd = 3;
/// A larger number is an error.
const MOST: RawFd = 64;

static TAKEN: AtomicBool = AtomicBool::new(false);

/// Takes the sockets passed to this process; empty on later calls. Commands do not inherit them.
pub fn inherited_sockets() -> io::Result<Vec<OwnedFd>> {
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let count = passed(&variable("LISTEN_PID"), &variable("LISTEN_FDS"), std::process::id());
    if count == 0 || TAKEN.swap(true, Ordering::SeqCst) {
        return Ok(Vec::new());
    }
    (FIRST..FIRST + count).map(take).collect()
}

/// The number of descriptors for this process. For a child that inherited the variables it is 0.
fn passed(process: &str, count: &str, own: u32) -> RawFd {
    match (process.parse::<u32>(), count.parse::<RawFd>()) {
        (Ok(process), Ok(count)) if process == own => count.clamp(0, MOST),
        _ => 0,
    }
}

#[expect(unsafe_code, reason = "a descriptor that another program passed has no owner in this one yet")]
fn take(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: it is looked at during this call alone, and an error says that nothing is open there.
    let flags = fcntl_getfd(unsafe { BorrowedFd::borrow_raw(number) })?;
    // SAFETY: it is open, whoever set LISTEN_PID to this process gave it to this process, and `TAKEN` lets it be taken once.
    let socket = unsafe { OwnedFd::from_raw_fd(number) };
    fcntl_setfd(&socket, flags | FdFlags::CLOEXEC)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_passed_to_this_very_process_counts() {
        for (process, count, expected) in
            [("7", "2", 2), ("8", "2", 0), ("", "2", 0), ("7", "", 0), ("7", "-1", 0), ("7", "999", MOST)]
        {
            assert_eq!(passed(process, count, 7), expected, "{process} {count}");
        }
    }
}
