//! A name that must stay free while a command runs is held by an empty folder, since only something that exists can be
//! mounted over. It is taken away again by the last command that needed it.
//!
//! The folder is marked by its sticky bit, which nobody gives to a folder of that name, so that one left behind by a
//! helper that was killed is recognised and removed by the next. Each user of a placeholder holds a shared lock on it;
//! whoever can get the exclusive lock is the last.

use std::fs::{self, File};
use std::io;
use std::mem::ManuallyDrop;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::Mode;
use rustix::process::umask;

use super::sys;

const MODE: u32 = 0o1755;

/// Holds the name for as long as it lives; then it is given free.
#[derive(Debug)]
pub(crate) struct Placeholder {
    path: PathBuf,
    /// Once removed, it stays open until the process ends: closing it is when the file system does its work, and
    /// nobody has to wait for that.
    folder: ManuallyDrop<File>,
}

impl Placeholder {
    /// `None`: something real has been put there by somebody else in the meantime.
    pub(crate) fn make(path: &Path) -> io::Result<Option<Self>> {
        // Another command may take the folder away between any two steps here. Each such turn ends one command, so
        // that this ends too.
        loop {
            match create(path) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
            if let Some(placeholder) = Self::adopt(path)? {
                return Ok(Some(placeholder));
            }
            if fs::symlink_metadata(path).is_ok() {
                return Ok(None);
            }
        }
    }

    /// Shares a placeholder that is already there. `None` when it is something real, or has just gone.
    pub(crate) fn adopt(path: &Path) -> io::Result<Option<Self>> {
        let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        let folder = match File::options().read(true).custom_flags(flags).open(path) {
            Ok(folder) => folder,
            // Not ours to share; what it is, the caller finds out.
            Err(_) => return Ok(None),
        };
        if !is_placeholder(path, &folder)? {
            return Ok(None);
        }
        folder.lock_shared()?;
        // Before the lock was had, the last user may have removed it.
        let same = is_at(path, &folder)?;
        Ok(same.then(|| Self { path: path.to_owned(), folder: ManuallyDrop::new(folder) }))
    }

    /// A forked process holds the lock as well, until it lets go.
    pub(crate) fn forget_in_child(&self) {
        sys::close_in_child(&*self.folder);
    }
}

/// Removes the folder, unless another command still needs it or somebody has put something into it.
///
/// Asking for the exclusive lock in vain gives up the shared one, so that of two that end at once one is the last.
impl Drop for Placeholder {
    fn drop(&mut self) {
        if self.folder.try_lock().is_err() || !is_at(&self.path, &self.folder).unwrap_or(false) {
            return;
        }
        let in_use = fs::remove_dir(&self.path).is_err_and(|e| e.kind() == io::ErrorKind::DirectoryNotEmpty);
        if in_use {
            let _ = self.folder.set_permissions(fs::Permissions::from_mode(MODE & 0o777));
        }
    }
}

/// Makes the folder with exactly these rights, at once where that is possible.
fn create(path: &Path) -> io::Result<()> {
    let mask = umask(Mode::empty());
    let created = fs::DirBuilder::new().mode(MODE).create(path);
    umask(mask);
    created?;
    // The folder around it may have its own rules for what is made in it.
    match fs::symlink_metadata(path) {
        Ok(made) if made.mode() & 0o7777 == MODE => Ok(()),
        _ => fs::set_permissions(path, fs::Permissions::from_mode(MODE)).or_else(gone_is_fine),
    }
}

fn is_placeholder(path: &Path, folder: &File) -> io::Result<bool> {
    Ok(folder.metadata()?.mode() & 0o7777 == MODE && fs::read_dir(path)?.next().is_none())
}

fn is_at(path: &Path, folder: &File) -> io::Result<bool> {
    let held = folder.metadata()?;
    Ok(fs::symlink_metadata(path).is_ok_and(|there| (there.dev(), there.ino()) == (held.dev(), held.ino())))
}

fn gone_is_fine(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}
