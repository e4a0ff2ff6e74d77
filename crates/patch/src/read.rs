//! Reads a file for a plan: only regular ones, up to the limit, without blocking.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{AtFlags, OFlags, Stat};
use rustix::io::Errno;

use crate::identity::{FileIdentity, FilePermissions, NotRegular, regular};
use crate::kernel::Kernel;
use crate::limits::MAX_FILE_BYTES;

/// A file with its content.
#[derive(Debug, Clone)]
pub(crate) struct FoundFile {
    pub(crate) bytes: Arc<[u8]>,
    pub(crate) identity: FileIdentity,
    pub(crate) permissions: FilePermissions,
}

/// Why a file could not be read.
pub(crate) enum FileReadError {
    Io(io::Error),
    NotRegular(NotRegular),
    TooLarge,
}

impl From<Errno> for FileReadError {
    fn from(errno: Errno) -> Self {
        Self::Io(errno.into())
    }
}

/// Reads the file in a directory; none if it does not exist.
pub(crate) fn read(
    kernel: &Kernel,
    root: impl AsFd,
    path: &Path,
) -> Result<Option<FoundFile>, FileReadError> {
    // Checked before it is opened: opening a device can have effects.
    match look(kernel, root.as_fd(), path) {
        Ok(stat) => check(&stat)?,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err(FileReadError::NotRegular(NotRegular::Symlink)),
        Err(errno) => return Err(errno.into()),
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let fd = kernel.open_beneath(root.as_fd(), path, flags)?;
    let stat = rustix::fs::fstat(&fd)?;
    check(&stat)?;
    let identity = FileIdentity::of(&stat);
    let mut bytes = Vec::with_capacity(usize::try_from(identity.length()).unwrap_or_default());
    File::from(fd).take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(FileReadError::Io)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(FileReadError::TooLarge);
    }
    Ok(Some(FoundFile { bytes: bytes.into(), identity, permissions: FilePermissions::of(&stat) }))
}

fn look(kernel: &Kernel, root: BorrowedFd<'_>, path: &Path) -> Result<Stat, Errno> {
    if path.components().count() == 1 {
        return rustix::fs::statat(root, path, AtFlags::SYMLINK_NOFOLLOW);
    }
    rustix::fs::fstat(kernel.open_beneath(root, path, OFlags::PATH)?)
}

fn check(stat: &Stat) -> Result<(), FileReadError> {
    regular(stat).map_err(FileReadError::NotRegular)?;
    if FileIdentity::of(stat).length() > MAX_FILE_BYTES { Err(FileReadError::TooLarge) } else { Ok(()) }
}

/// The state of a name in a directory, without following links; none if it is free.
pub(crate) fn state(dir: impl AsFd, name: impl rustix::path::Arg) -> Result<Option<FileIdentity>, Errno> {
    match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(FileIdentity::of(&stat))),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}
