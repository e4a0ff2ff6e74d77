//! Reserves a name while a command runs with an empty folder, because only existing paths can be mounted over. The last
//! command that needs it removes it.
//!
//! The folder is marked by its sticky bit, which folders of that name do not usually have, so that the next helper
//! recognises and removes one that a killed helper left. Each user of a placeholder holds a shared lock on it; whoever
//! gets the exclusive lock is the last.
//!
//! Other commands may replace the path at any moment, and other users of the machine may have created it on purpose. So
//! everything uses descriptors, links are never followed, folders of other users are never locked, and every wait has a
//! limit.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::time::{Duration, Instant};

use rustix::fs::{
    AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, Stat, fchmod, flock, fstat, mkdirat, openat,
    statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::umask;

use super::{sys, wait};

const STICKY: u32 = 0o1000;

/// How long the helper waits for others before it continues without them.
const LONGEST_WAIT: Duration = Duration::from_millis(200);
const BETWEEN_TRIES: Duration = Duration::from_millis(2);

/// The wait limit of a start, which also ends when the command is cancelled.
pub(crate) struct Patience<'a> {
    control: &'a OwnedFd,
    /// For all locks of one start together.
    deadline: Instant,
}

impl<'a> Patience<'a> {
    pub(crate) fn new(control: &'a OwnedFd) -> Self {
        Self { control, deadline: Instant::now() + LONGEST_WAIT }
    }

    /// Waits briefly. False after the deadline; an error if the command is to be ended.
    fn wait_until(&self, deadline: Instant) -> io::Result<bool> {
        let [stop] = wait::readable([Some(self.control)], Some(BETWEEN_TRIES));
        if stop {
            return Err(io::Error::other("the command was called off while it was being started"));
        }
        Ok(Instant::now() < deadline)
    }
}

/// What a name refers to: a shared placeholder, a real file, or nothing any more.
enum NameHolder {
    Shared(Placeholder),
    /// A real file, or a placeholder that is not released: treated like any other file.
    Real,
    /// Removed in the meantime.
    Gone,
}

/// Reserves the name until dropped.
#[derive(Debug)]
pub(crate) struct Placeholder {
    parent: Rc<OwnedFd>,
    name: OsString,
    /// The permissions if something was put into it.
    rights: u32,
    /// Kept open until the process ends: closing is when the file system does its work, which need not delay anyone.
    folder: ManuallyDrop<File>,
}

impl Placeholder {
    /// Reserves a name in a folder, alone or together with other commands. `None` if it is a real file.
    pub(crate) fn hold(
        parent: &Rc<OwnedFd>,
        name: &OsStr,
        rights: u32,
        patience: &Patience<'_>,
    ) -> io::Result<Option<Self>> {
        let deadline = Instant::now() + LONGEST_WAIT;
        loop {
            match create(parent, name, rights) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            // Another command may remove the folder between any two steps here.
            match Self::share(parent, name, rights, patience)? {
                NameHolder::Shared(placeholder) => return Ok(Some(placeholder)),
                NameHolder::Real => return Ok(None),
                NameHolder::Gone if patience.wait_until(deadline)? => {}
                NameHolder::Gone => return Err(io::Error::other("it comes and goes")),
            }
        }
    }

    /// Shares an existing placeholder. `None` if it is a real file or was just removed.
    pub(crate) fn adopt(
        parent: &Rc<OwnedFd>,
        name: &OsStr,
        rights: u32,
        patience: &Patience<'_>,
    ) -> io::Result<Option<Self>> {
        match Self::share(parent, name, rights, patience)? {
            NameHolder::Shared(placeholder) => Ok(Some(placeholder)),
            NameHolder::Real | NameHolder::Gone => Ok(None),
        }
    }

    fn share(
        parent: &Rc<OwnedFd>,
        name: &OsStr,
        rights: u32,
        patience: &Patience<'_>,
    ) -> io::Result<NameHolder> {
        match statat(&**parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) if !is_marked(&found) => return Ok(NameHolder::Real),
            Ok(_) => {}
            Err(Errno::NOENT) => return Ok(NameHolder::Gone),
            Err(error) => return Err(error.into()),
        }
        let flags =
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let folder = match openat(&**parent, name, flags, Mode::empty()) {
            Ok(folder) => folder,
            Err(Errno::NOENT) => return Ok(NameHolder::Gone),
            Err(_) => return Ok(NameHolder::Real),
        };
        // Checked again on the opened folder.
        if !is_marked(&fstat(&folder)?) || !is_empty(&folder)? {
            return Ok(NameHolder::Real);
        }
        while flock(&folder, FlockOperation::NonBlockingLockShared).is_err() {
            // The last user locks it exclusively while removing it, and until its process has ended.
            if !is_at(parent, name, &folder) {
                return Ok(NameHolder::Gone);
            }
            if !patience.wait_until(patience.deadline)? {
                return Ok(NameHolder::Real);
            }
        }
        // Before the lock was acquired, the last user may have removed it.
        if !is_at(parent, name, &folder) {
            return Ok(NameHolder::Gone);
        }
        if !is_marked(&fstat(&folder)?) {
            return Ok(NameHolder::Real);
        }
        let folder = ManuallyDrop::new(File::from(folder));
        Ok(NameHolder::Shared(Self { parent: parent.clone(), name: name.to_owned(), rights, folder }))
    }

    /// A forked process also holds the lock until it releases it.
    pub(crate) fn forget_in_child(&self) {
        sys::close_in_child(&*self.folder);
    }
}

/// Removes the folder, unless another command still needs it or something was put into it.
///
/// A failed attempt for the exclusive lock drops the shared one, so that of two concurrent users one is the last.
impl Drop for Placeholder {
    fn drop(&mut self) {
        if flock(&*self.folder, FlockOperation::NonBlockingLockExclusive).is_err()
            || !is_at(&self.parent, &self.name, &*self.folder)
        {
            return;
        }
        // Only ever removes an empty folder.
        let in_use = unlinkat(&*self.parent, &self.name, AtFlags::REMOVEDIR) == Err(Errno::NOTEMPTY);
        if in_use {
            let _ = fchmod(&*self.folder, Mode::from_raw_mode(self.rights));
        }
    }
}

/// Creates the folder with its mark in one step: later it could be another one. Rules of the parent folder do not
/// affect the mark.
fn create(parent: &OwnedFd, name: &OsStr, rights: u32) -> Result<(), Errno> {
    let mask = umask(Mode::empty());
    let created = mkdirat(parent, name, Mode::from_raw_mode(STICKY | rights));
    umask(mask);
    created
}

/// Ours, and marked as a placeholder.
fn is_marked(found: &Stat) -> bool {
    FileType::from_raw_mode(found.st_mode) == FileType::Directory
        && found.st_mode & STICKY != 0
        && found.st_uid == rustix::process::geteuid().as_raw()
}

fn is_empty(folder: &OwnedFd) -> io::Result<bool> {
    for entry in Dir::read_from(folder)? {
        if !matches!(entry?.file_name().to_bytes(), b"." | b"..") {
            return Ok(false);
        }
    }
    Ok(true)
}

fn is_at(parent: &OwnedFd, name: &OsStr, folder: impl AsFd) -> bool {
    let (Ok(held), Ok(there)) = (fstat(folder), statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)) else {
        return false;
    };
    (there.st_dev, there.st_ino) == (held.st_dev, held.st_ino)
}
