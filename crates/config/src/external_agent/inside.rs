//! Writes only inside a repository, which may contain links to the user's own files.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;

/// A folder reached without any link inside its root.
#[derive(Debug)]
pub(super) struct InnerFolder(OwnedFd);

impl InnerFolder {
    /// `folder` is inside `root`. Creates missing parts, for their owner only.
    pub(super) fn make(root: &Path, folder: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mut at = rustix::fs::openat(CWD, root, flags, Mode::empty())?;
        let way = folder.strip_prefix(root).map_err(|_| io::Error::other("it is not in the repository"))?;
        for part in way.components() {
            let Component::Normal(name) = part else {
                return Err(io::Error::other("its path is not a plain one"));
            };
            match rustix::fs::mkdirat(&at, name, Mode::from_raw_mode(0o700)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            let opened = rustix::fs::openat(&at, name, flags | OFlags::NOFOLLOW, Mode::empty());
            at = opened.map_err(|error| match error {
                Errno::LOOP | Errno::NOTDIR => leads_elsewhere(name.as_ref()),
                other => other.into(),
            })?;
        }
        Ok(Self(at))
    }

    /// A path to the folder that no link can change, as long as this lives.
    pub(super) fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }

    /// The path of a file in it, which may be missing and is no link.
    pub(super) fn file(&self, name: &Path) -> io::Result<PathBuf> {
        match rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile => {
                Err(leads_elsewhere(name))
            }
            Ok(_) | Err(Errno::NOENT) => Ok(self.path().join(name)),
            Err(error) => Err(error.into()),
        }
    }

    /// Appends to a file in it, creating it if needed.
    pub(super) fn append(&self, name: &Path, text: &str) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::NOFOLLOW;
        let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(&self.0, name, flags, Mode::from_raw_mode(0o600));
        let mut file = opened.map(File::from).map_err(|error| match error {
            Errno::LOOP | Errno::NXIO => leads_elsewhere(name),
            other => other.into(),
        })?;
        match file.metadata()?.is_file() {
            true => file.write_all(text.as_bytes()),
            false => Err(leads_elsewhere(name)),
        }
    }
}

fn leads_elsewhere(name: &Path) -> io::Error {
    io::Error::other(format!("{} is a link or no plain file; nothing is written there", name.display()))
}
