//! A name that must stay free while a command runs is held by an empty folder, since only something that exists can be
//! mounted over. It is taken away again by the last command that needed it.
//!
//! The folder is marked by its sticky bit, which nobody gives to a folder of that name, so that one left behind by a
//! helper that was killed is recognised and removed by the next. Each user of a placeholder holds a shared lock on it;
//! whoever can get the exclusive lock is the last.
//!
//! Other commands may swap what is behind the name at any moment, and other users of the machine may have put
//! something there to be in the way. So everything is done by descriptor, links are never followed, folders of other
//! users are never locked, and no wait is without a limit.

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

/// How long the helper waits for others before it goes on without them.
const LONGEST_WAIT: Duration = Duration::from_millis(200);
const BETWEEN_TRIES: Duration = Duration::from_millis(2);

/// How long a start may wait: not for long, and not when the command is no longer wanted.
pub(crate) struct Patience<'a> {
    control: &'a OwnedFd,
    /// For all locks of one start together.
    deadline: Instant,
}

impl<'a> Patience<'a> {
    pub(crate) fn new(control: &'a OwnedFd) -> Self {
        Self { control, deadline: Instant::now() + LONGEST_WAIT }
    }

    /// Waits a moment. False when the time is over; an error when the command is to be ended.
    fn wait_until(&self, deadline: Instant) -> io::Result<bool> {
        let [stop] = wait::readable([Some(self.control)], Some(BETWEEN_TRIES));
        if stop {
            return Err(io::Error::other("the command was called off while it was being started"));
        }
        Ok(Instant::now() < deadline)
    }
}

/// Whatever already holds a name: a shared placeholder, a real file, or nothing any more.
enum NameHolder {
    Shared(Placeholder),
    /// Somebody's own, or one that is not let go of: to be treated as any other file.
    Real,
    /// Removed in the meantime.
    Gone,
}

/// Holds the name for as long as it lives; then it is given free.
#[derive(Debug)]
pub(crate) struct Placeholder {
    parent: Rc<OwnedFd>,
    name: OsString,
    /// The permissions that stay when somebody has put something into it.
    rights: u32,
    /// Once removed, it stays open until the process ends: closing it is when the file system does its work, and
    /// nobody has to wait for that.
    folder: ManuallyDrop<File>,
}

impl Placeholder {
    /// Holds a name in a folder, alone or together with other commands. `None`: something real is there.
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
            // Another command may take the folder away between any two steps here.
            match Self::share(parent, name, rights, patience)? {
                NameHolder::Shared(placeholder) => return Ok(Some(placeholder)),
                NameHolder::Real => return Ok(None),
                NameHolder::Gone if patience.wait_until(deadline)? => {}
                NameHolder::Gone => return Err(io::Error::other("it comes and goes")),
            }
        }
    }

    /// Shares a placeholder that is already there. `None` when it is something real, or has just gone.
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
        // Again, of what was really opened.
        if !is_marked(&fstat(&folder)?) || !is_empty(&folder)? {
            return Ok(NameHolder::Real);
        }
        while flock(&folder, FlockOperation::NonBlockingLockShared).is_err() {
            // The last user holds it alone while it is being removed, and until its process has ended.
            if !is_at(parent, name, &folder) {
                return Ok(NameHolder::Gone);
            }
            if !patience.wait_until(patience.deadline)? {
                return Ok(NameHolder::Real);
            }
        }
        // Before the lock was had, the last user may have removed it, or found that it is in use.
        if !is_at(parent, name, &folder) {
            return Ok(NameHolder::Gone);
        }
        if !is_marked(&fstat(&folder)?) {
            return Ok(NameHolder::Real);
        }
        let folder = ManuallyDrop::new(File::from(folder));
        Ok(NameHolder::Shared(Self { parent: parent.clone(), name: name.to_owned(), rights, folder }))
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
        if flock(&*self.folder, FlockOperation::NonBlockingLockExclusive).is_err()
            || !is_at(&self.parent, &self.name, &*self.folder)
        {
            return;
        }
        // Never more than an empty folder, whatever has been put there since.
        let in_use = unlinkat(&*self.parent, &self.name, AtFlags::REMOVEDIR) == Err(Errno::NOTEMPTY);
        if in_use {
            let _ = fchmod(&*self.folder, Mode::from_raw_mode(self.rights));
        }
    }
}

/// Makes the folder with its mark at once: nothing is changed afterwards, as it could be another one by then. The
/// folder around it may have its own rules for what is made in it; they leave the mark alone.
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
