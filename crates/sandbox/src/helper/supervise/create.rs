//! New plain files on behalf of a command.
//!
//! The filter notifies the supervisor of every open call that may create a file. A missing file is created by the
//! supervisor from its own copy of the path, and the command gets the descriptor. Every other call is performed by the
//! kernel with the command's own rights: that is safe whatever the command has changed in its memory meanwhile, because
//! Landlock forbids the command to create any file.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, PROC_SUPER_MAGIC, ResolveFlags, Stat, fstat, fstatfs, openat2,
    readlinkat, statat, unlinkat,
};

use super::calls::{self, Notification, low_half};
use super::connect::still_waiting;
use super::domains::Rights;
use super::names::{NameGuard, last_name, split};
use super::target::Target;
use super::withheld::{is_withheld, may_be_withheld};

/// The kernel's limit of consecutive links.
const MAX_LINKS: usize = 40;

/// The flags that apply to a new file.
const FLAGS: OFlags = OFlags::from_bits_retain(
    OFlags::ACCMODE.bits()
        | OFlags::APPEND.bits()
        | OFlags::DIRECT.bits()
        | OFlags::DSYNC.bits()
        | OFlags::SYNC.bits()
        | OFlags::NOATIME.bits()
        | OFlags::NONBLOCK.bits()
        | OFlags::LARGEFILE.bits(),
);

/// An open call that may create a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Opening {
    folder: i32,
    path: u64,
    flags: OFlags,
    mode: Mode,
    resolve: ResolveFlags,
}

impl Opening {
    /// Checks the path. With `resolve` flags only the kernel knows what exists, so creating the file finds out.
    fn find(self, base: Option<&OwnedFd>, path: &[u8]) -> rustix::io::Result<Stat> {
        if !self.resolve.is_empty() {
            return Err(rustix::io::Errno::NOENT);
        }
        statat(at(base), OsStr::from_bytes(path), AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Whether it is a link to follow. Not another user's, which the kernel does not follow everywhere, and none with
    /// `resolve` flags.
    fn follows(self, found: &Stat) -> bool {
        FileType::from_raw_mode(found.st_mode) == FileType::Symlink
            && found.st_uid == rustix::process::geteuid().as_raw()
            && !self.flags.intersects(OFlags::EXCL | OFlags::NOFOLLOW)
            && self.resolve.is_empty()
    }
}

/// The result of an open call.
pub(super) enum OpenOutcome {
    New(NewFile),
    /// The kernel is to perform the call.
    ByKernel,
}

/// A file created for the command.
pub(super) struct NewFile {
    pub(super) file: OwnedFd,
    /// Closed on exec.
    pub(super) is_closed: bool,
    base: Option<OwnedFd>,
    path: Vec<u8>,
}

impl NewFile {
    /// Removes the name again, unless it is another file's by now: the command has no free descriptor.
    pub(super) fn remove(self) {
        let path = OsStr::from_bytes(&self.path);
        let found = statat(at(self.base.as_ref()), path, AtFlags::SYMLINK_NOFOLLOW);
        let is_same = |found: &Stat, own: &Stat| (found.st_dev, found.st_ino) == (own.st_dev, own.st_ino);
        if let (Ok(found), Ok(own)) = (found, fstat(&self.file))
            && is_same(&found, &own)
        {
            let _ = unlinkat(at(self.base.as_ref()), path, AtFlags::empty());
        }
    }
}

fn decode(asked: &Notification, target: Target) -> io::Result<Option<Opening>> {
    let [a, b, c, d, ..] = asked.arguments;
    let opening = |folder: u64, path, flags: u64, mode: u64, resolve: u64| Opening {
        folder: low_half(folder),
        path,
        flags: OFlags::from_bits_retain(low_half(flags).unsigned_abs()),
        mode: Mode::from_raw_mode(low_half(mode).unsigned_abs() & 0o7777),
        resolve: ResolveFlags::from_bits_retain(resolve),
    };
    #[cfg(target_arch = "x86_64")]
    const HERE: u64 = libc::AT_FDCWD as u64;
    Ok(match asked.call {
        #[cfg(target_arch = "x86_64")]
        libc::SYS_open => Some(opening(HERE, a, b, c, 0)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_creat => {
            let flags = (libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC).unsigned_abs();
            Some(opening(HERE, a, flags.into(), b, 0))
        }
        libc::SYS_openat => Some(opening(a, b, c, d, 0)),
        libc::SYS_openat2 => {
            let words = calls::memory_of(target.thread, c, 24)?;
            let word = |at: usize| {
                words.get(at..at + 8).and_then(|word| word.try_into().ok()).map_or(0, u64::from_ne_bytes)
            };
            Some(opening(a, b, word(0), word(8), word(16)))
        }
        _ => None,
    })
}

/// `None` if the call does not open anything.
pub(super) fn answer(
    guard: NameGuard,
    listener: &OwnedFd,
    asked: &Notification,
    target: Target,
    rights: Rights<'_>,
) -> Option<io::Result<OpenOutcome>> {
    let opening = match decode(asked, target) {
        Ok(None) => return None,
        Ok(Some(opening)) => opening,
        Err(error) => return Some(Err(error)),
    };
    let wait = || still_waiting(listener, asked.id);
    Some(match open(guard, opening, target, rights, wait) {
        // The kernel would not report these, because it refuses the command earlier.
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT | libc::EIO)) => {
            Err(error)
        }
        // The kernel reports the same error, or a better one.
        Err(_) => Ok(OpenOutcome::ByKernel),
        other => other,
    })
}

fn open(
    guard: NameGuard,
    opening: Opening,
    target: Target,
    rights: Rights<'_>,
    still_waiting: impl Fn() -> io::Result<()>,
) -> io::Result<OpenOutcome> {
    // These flags create nothing, or nothing with a name.
    let elsewhere =
        OFlags::PATH | OFlags::DIRECTORY | OFlags::from_bits_retain(libc::O_TMPFILE.unsigned_abs());
    if !opening.flags.contains(OFlags::CREATE) || opening.flags.intersects(elsewhere) {
        return Ok(OpenOutcome::ByKernel);
    }
    let copy = calls::text_of(target.thread, opening.path)?;
    let confined = ResolveFlags::BENEATH | ResolveFlags::IN_ROOT;
    let (mut base, path) = if opening.resolve.intersects(confined) {
        (Some(target.folder(opening.folder)?), copy.as_slice())
    } else {
        target.base(opening.folder, &copy)?
    };
    let mut path = path.to_vec();
    if may_not_make(guard, &path) {
        return Ok(OpenOutcome::ByKernel);
    }
    for _ in 0..MAX_LINKS {
        match opening.find(base.as_ref(), &path) {
            Ok(found) if !opening.follows(&found) => return Ok(OpenOutcome::ByKernel),
            // A link to a missing file creates that file.
            Ok(_) => match follow(base.as_ref(), &path)? {
                Some((folder, text)) if !may_not_make(guard, &text) => (base, path) = (Some(folder), text),
                _ => return Ok(OpenOutcome::ByKernel),
            },
            Err(rustix::io::Errno::NOENT) => {
                guard.take_over_mask(target)?;
                still_waiting()?;
                if may_be_withheld(guard.withheld, &path) {
                    // The folder is held from here on: the command could change the path meanwhile.
                    let folder = folder_of(base.as_ref(), &path, opening.resolve)?;
                    let name = last_name(&path).unwrap_or_default().to_vec();
                    if is_withheld(guard.withheld, Some(folder.as_fd()), &name) {
                        return Ok(OpenOutcome::ByKernel);
                    }
                    (base, path) = (Some(folder), name);
                }
                let file = make(opening, base.as_ref(), &path, rights)?;
                let is_closed = opening.flags.contains(OFlags::CLOEXEC);
                return Ok(OpenOutcome::New(NewFile { file, is_closed, base, path }));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(OpenOutcome::ByKernel)
}

/// Whether a path ends in a protected name, or in none: the kernel then opens what exists, and creates nothing.
fn may_not_make(guard: NameGuard, path: &[u8]) -> bool {
    let is_name = path.last().is_some_and(|byte| *byte != b'/')
        && last_name(path).is_some_and(|name| name != b"." && name != b"..");
    !is_name || guard.forbids(path)
}

fn at(base: Option<&OwnedFd>) -> BorrowedFd<'_> {
    base.map_or(CWD, AsFd::as_fd)
}

/// Fails if the path exists by now, so it never blocks.
fn make(opening: Opening, base: Option<&OwnedFd>, path: &[u8], rights: Rights<'_>) -> io::Result<OwnedFd> {
    let flags = (opening.flags & FLAGS) | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let resolve = opening.resolve | ResolveFlags::NO_MAGICLINKS;
    let mode = opening.mode;
    if !rights.is_confined() {
        return Ok(openat2(at(base), OsStr::from_bytes(path), flags, mode, resolve)?);
    }
    let (base, path) = (base.map(OwnedFd::try_clone).transpose()?, path.to_vec());
    Ok(rights.run(move || openat2(at(base.as_ref()), OsStr::from_bytes(&path), flags, mode, resolve))??)
}

/// The parent folder of a path.
fn folder_of(base: Option<&OwnedFd>, path: &[u8], resolve: ResolveFlags) -> io::Result<OwnedFd> {
    let (folder, _) = split(path);
    let folder = if folder.is_empty() { b"." } else { folder };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = resolve | ResolveFlags::NO_MAGICLINKS;
    Ok(openat2(at(base), OsStr::from_bytes(folder), flags, Mode::empty(), resolve)?)
}

/// The folder of a link, and its target relative to that. `None` for a link into a process.
fn follow(base: Option<&OwnedFd>, path: &[u8]) -> io::Result<Option<(OwnedFd, Vec<u8>)>> {
    let (_, name) = split(path);
    let folder = folder_of(base, path, ResolveFlags::empty())?;
    if fstatfs(&folder)?.f_type == PROC_SUPER_MAGIC {
        return Ok(None);
    }
    // A name in the root is given with its slash.
    let text = readlinkat(&folder, OsStr::from_bytes(name), Vec::new())?.into_bytes();
    Ok(Some((folder, text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn existing_names_are_left_to_the_kernel() {
        let guard = NameGuard { protects: true, mask_changed: false, withheld: &[] };
        for path in ["", ".", "..", "a/..", "a/", "/", "sub/.git", ".GIT", "a/.g\u{200c}it", ".codex"] {
            assert!(may_not_make(guard, path.as_bytes()), "{path:?}");
        }
        for path in ["a", "/a", "sub/.gitignore", ".git/a", "...", ".github"] {
            assert!(!may_not_make(guard, path.as_bytes()), "{path:?}");
        }
    }

    #[test]
    fn openings_are_read() {
        let target = Target { thread: i32::try_from(std::process::id()).unwrap() };
        let how: [u64; 3] = [u64::from(OFlags::CREATE.bits()), 0o644, ResolveFlags::BENEATH.bits()];
        let asked = |call, arguments| Notification { id: 0, thread: 0, call, arguments };
        let found = decode(&asked(libc::SYS_openat2, [7, 9, how.as_ptr() as u64, 24, 0, 0]), target);
        let expected = Opening {
            folder: 7,
            path: 9,
            flags: OFlags::CREATE,
            mode: Mode::from_raw_mode(0o644),
            resolve: ResolveFlags::BENEATH,
        };
        assert_eq!(found.unwrap(), Some(expected));
        let arguments = [7, 9, u64::from(OFlags::CREATE.bits()), 0o10_0644, 0, 0];
        let found = decode(&asked(libc::SYS_openat, arguments), target).unwrap();
        assert_eq!(found, Some(Opening { resolve: ResolveFlags::empty(), ..expected }));
        assert_eq!(decode(&asked(libc::SYS_mkdirat, [0; 6]), target).unwrap(), None);
    }
}
