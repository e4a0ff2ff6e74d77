//! A file that is written under a temporary name and renamed.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, Gid, Mode, OFlags, Stat, Uid};
use rustix::io::Errno;

use super::FileError;

const PREFIX: &str = ".oarlock-new-";
/// Limit of tried names, which may be taken.
const MAX_TRIES: usize = 16;

/// Whether this is the temporary name of a file being written, which watchers should ignore.
pub fn is_temporary_name(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(PREFIX.as_bytes())
}

/// Removed on drop unless it was renamed.
#[derive(Debug)]
pub(super) struct StagedFile<'a> {
    folder: BorrowedFd<'a>,
    name: OsString,
    pub(super) file: File,
    is_placed: bool,
}

impl<'a> StagedFile<'a> {
    /// In the folder of the file it will replace. If it will get another file's mode, it is private until then.
    pub(super) fn new(folder: BorrowedFd<'a>, mode: Mode) -> Result<Self, Errno> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let mut tries = 0;
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = OsString::from(format!("{PREFIX}{}-{number}", std::process::id()));
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            match rustix::fs::openat(folder, &name, flags, mode) {
                Ok(file) => return Ok(Self { folder, name, file: file.into(), is_placed: false }),
                Err(Errno::EXIST) if tries < MAX_TRIES => tries += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// Owner and mode of the file that this one replaces.
    pub(super) fn adopt(&self, former: &Stat) -> Result<(), FileError> {
        let now = rustix::fs::fstat(&self.file)?;
        let mut mode = former.st_mode & 0o7777;
        if (now.st_uid, now.st_gid) != (former.st_uid, former.st_gid) {
            let (user, group) = (Uid::from_raw(former.st_uid), Gid::from_raw(former.st_gid));
            if rustix::fs::fchown(&self.file, Some(user), Some(group)).is_err() {
                // Another user's file that we may write becomes ours; it must not run with our rights.
                mode &= 0o777;
            }
        }
        Ok(rustix::fs::fchmod(&self.file, Mode::from_raw_mode(mode))?)
    }

    /// Synced first: after a crash the old or the new content is there, never an empty file.
    pub(super) fn place_durably(self, name: &OsStr) -> Result<(), FileError> {
        rustix::fs::fdatasync(&self.file)?;
        self.place(name)
    }

    pub(super) fn place(mut self, name: &OsStr) -> Result<(), FileError> {
        rustix::fs::renameat(self.folder, Path::new(&self.name), self.folder, Path::new(name))?;
        self.is_placed = true;
        Ok(())
    }
}

impl Drop for StagedFile<'_> {
    fn drop(&mut self) {
        if !self.is_placed {
            // If this fails, the temporary file stays.
            let _ = rustix::fs::unlinkat(self.folder.as_fd(), Path::new(&self.name), AtFlags::empty());
        }
    }
}
