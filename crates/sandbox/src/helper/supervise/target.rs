//! Data that the supervisor reads from a waiting thread. It is only valid if `calls::is_waiting` confirms afterwards
//! that the thread still waits.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

/// A thread of the command.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    pub(super) thread: i32,
}

impl Target {
    /// A descriptor of the same open file as the thread's descriptor.
    pub(super) fn descriptor(self, number: i32) -> io::Result<OwnedFd> {
        if number < 0 {
            return Err(io::Error::from_raw_os_error(libc::EBADF));
        }
        Ok(pidfd_getfd(self.pidfd()?, number, PidfdGetfdFlags::empty())?)
    }

    /// Before version 6.9 the kernel has pidfds only for whole processes, whose threads usually share their files.
    fn pidfd(self) -> io::Result<OwnedFd> {
        let of_thread = PidfdFlags::from_bits_retain(libc::O_EXCL.unsigned_abs());
        let gone = || io::Error::from_raw_os_error(libc::ESRCH);
        match pidfd_open(Pid::from_raw(self.thread).ok_or_else(gone)?, of_thread) {
            Err(rustix::io::Errno::INVAL) => {
                let process = self.status("Tgid:").and_then(|number| number.parse().ok());
                let process = process.and_then(Pid::from_raw).ok_or_else(gone)?;
                Ok(pidfd_open(process, PidfdFlags::empty())?)
            }
            other => Ok(other?),
        }
    }

    /// A line of the thread's status file.
    pub(super) fn status(self, name: &str) -> Option<String> {
        let text = fs::read_to_string(format!("/proc/{}/status", self.thread)).ok()?;
        text.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned())
    }

    /// Whether the thread's descriptor is closed when it becomes another program.
    pub(super) fn closes_on_exec(self, number: i32) -> bool {
        let text = fs::read_to_string(format!("/proc/{}/fdinfo/{number}", self.thread)).unwrap_or_default();
        let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = flags.and_then(|flags| i32::from_str_radix(flags.trim(), 8).ok());
        flags.is_some_and(|flags| flags & libc::O_CLOEXEC != 0)
    }

    /// Whether a signal is pending that should interrupt the thread.
    pub(super) fn is_signalled(self) -> bool {
        /// Signals that are not meant to interrupt.
        const QUIET: [i32; 5] = [libc::SIGCHLD, libc::SIGCONT, libc::SIGURG, libc::SIGWINCH, libc::SIGTSTP];
        let set =
            |name: &str| self.status(name).and_then(|bits| u64::from_str_radix(&bits, 16).ok()).unwrap_or(0);
        let quiet = QUIET.iter().fold(0, |bits, signal| bits | 1_u64 << (signal - 1));
        (set("SigPnd:") | set("ShdPnd:")) & !set("SigBlk:") & !quiet != 0
    }

    /// Uses the thread's umask for what is created next.
    pub(super) fn take_over_mask(self) -> io::Result<()> {
        let mask = self.status("Umask:").and_then(|mask| u32::from_str_radix(&mask, 8).ok());
        let mask = mask.ok_or_else(|| io::Error::from_raw_os_error(libc::EACCES))?;
        rustix::process::umask(Mode::from_raw_mode(mask));
        Ok(())
    }

    /// Opens a path as that thread would find it, with `O_PATH`. The root is the same for all: it cannot be changed
    /// inside.
    pub(super) fn open(self, path: &[u8]) -> io::Result<OwnedFd> {
        self.open_at(libc::AT_FDCWD, path, OFlags::empty())
    }

    /// The same for a folder; an empty path means the folder itself.
    pub(super) fn open_folder(self, from: i32, path: &[u8]) -> io::Result<OwnedFd> {
        self.open_at(from, path, OFlags::DIRECTORY)
    }

    fn open_at(self, from: i32, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
        let (base, rest) = self.base(from, path)?;
        let base = match base {
            Some(base) if rest.is_empty() => return Ok(base),
            base => base,
        };
        let at = base.as_ref().map_or(CWD, |base| base.as_fd());
        let flags = OFlags::PATH | OFlags::CLOEXEC | flags;
        // Links into a process would lead into the supervisor's own.
        Ok(openat2(at, OsStr::from_bytes(rest), flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS)?)
    }

    /// The folder that a path is relative to, and the rest of the path; `None` is the root. Paths through the thread's
    /// own descriptors are common where the full path would be too long.
    pub(super) fn base(self, from: i32, path: &[u8]) -> io::Result<(Option<OwnedFd>, &[u8])> {
        if let Some(own) = own_files(path) {
            if let Some((number, rest)) = own.strip_prefix(b"fd/").and_then(split_number) {
                return Ok((Some(self.descriptor(number)?), rest));
            }
            if let Some(rest) = own.strip_prefix(b"cwd/") {
                return Ok((Some(self.working_folder()?), relative(rest)));
            }
        }
        if path.first() == Some(&b'/') {
            return Ok((None, path));
        }
        Ok((Some(self.folder(from)?), path))
    }

    /// The folder of this descriptor, or the working folder.
    pub(super) fn folder(self, from: i32) -> io::Result<OwnedFd> {
        if from == libc::AT_FDCWD { self.working_folder() } else { self.descriptor(from) }
    }

    fn working_folder(self) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(openat(CWD, format!("/proc/{}/cwd", self.thread), flags, Mode::empty())?)
    }

    /// The file of a path through the thread's own descriptors.
    pub(super) fn own_descriptor(self, path: &[u8]) -> io::Result<Option<OwnedFd>> {
        match own_files(path).and_then(|own| own.strip_prefix(b"fd/")).and_then(split_number) {
            Some((number, b"")) => self.descriptor(number).map(Some),
            _ => Ok(None),
        }
    }
}

/// The rest of a path after the thread's own folder in `/proc`.
fn own_files(path: &[u8]) -> Option<&[u8]> {
    let own = [b"/proc/self/".as_slice(), b"/proc/thread-self/"];
    own.into_iter().find_map(|prefix| path.strip_prefix(prefix))
}

/// Splits `12/rest` into 12 and `rest`.
fn split_number(path: &[u8]) -> Option<(i32, &[u8])> {
    let end = path.iter().position(|byte| *byte == b'/').unwrap_or(path.len());
    let number = std::str::from_utf8(&path[..end]).ok()?.parse().ok()?;
    Some((number, relative(&path[end..])))
}

fn relative(path: &[u8]) -> &[u8] {
    let start = path.iter().position(|byte| *byte != b'/').unwrap_or(path.len());
    &path[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_split_off() {
        assert_eq!(split_number(b"12/a/b"), Some((12, b"a/b".as_slice())));
        assert_eq!(split_number(b"3//a"), Some((3, b"a".as_slice())));
        assert_eq!(split_number(b"12"), Some((12, b"".as_slice())));
        for odd in [b"x/a".as_slice(), b"/a", b""] {
            assert_eq!(split_number(odd), None);
        }
        assert_eq!(relative(b"//a/b"), b"a/b");
    }
}
