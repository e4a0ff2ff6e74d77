//! Removing a file or a tree. Links are removed, not followed.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType};
use rustix::io::Errno;

use super::{FileError, MAX_DEPTH, open_folder};
use crate::within::StepCount;

/// A folder needs `is_recursive` unless it is empty. With `is_forced`, a missing path is no error.
pub fn remove(path: &Path, is_recursive: bool, is_forced: bool, steps: &StepCount) -> Result<(), FileError> {
    let found = match rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) if is_forced => return Ok(()),
        found => found?,
    };
    // By identity, because the root has many spellings and may be mounted elsewhere.
    let root = rustix::fs::statat(CWD, "/", AtFlags::empty())?;
    if (found.st_dev, found.st_ino) == (root.st_dev, root.st_ino) {
        return Err(FileError::Root);
    }
    match FileType::from_raw_mode(found.st_mode) {
        FileType::Directory if is_recursive => {
            empty(&open_folder(CWD, path)?, path, 0, steps)?;
            Ok(rustix::fs::unlinkat(CWD, path, AtFlags::REMOVEDIR)?)
        }
        FileType::Directory => Ok(rustix::fs::unlinkat(CWD, path, AtFlags::REMOVEDIR)?),
        _ => Ok(rustix::fs::unlinkat(CWD, path, AtFlags::empty())?),
    }
}

/// Removes a folder's contents. Concurrent removals are no errors.
fn empty(folder: &OwnedFd, path: &Path, depth: usize, steps: &StepCount) -> Result<(), FileError> {
    if depth == MAX_DEPTH {
        return Err(FileError::TooDeep(path.to_owned()));
    }
    // Listed completely before removing: a folder that changes while it is listed may show an entry twice.
    for name in names(folder)? {
        steps.step()?;
        let name = Path::new(&name);
        let removed = match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
            Err(Errno::ISDIR | Errno::PERM) => match open_folder(folder, name) {
                Ok(below) => {
                    empty(&below, &path.join(name), depth + 1, steps)?;
                    rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR)
                }
                // A file that cannot be removed.
                Err(_) => rustix::fs::unlinkat(folder, name, AtFlags::empty()),
            },
            removed => removed,
        };
        match removed {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

pub(super) fn names(folder: impl AsFd) -> Result<Vec<std::ffi::OsString>, FileError> {
    use std::os::unix::ffi::OsStringExt;
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            names.push(std::ffi::OsString::from_vec(name));
        }
    }
    Ok(names)
}
