//! Opening without side effects: first a handle that only names the file, then, if it is regular, the file itself.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, PROC_SUPER_MAGIC, ResolveFlags};
use rustix::io::Errno;

use crate::ReadProblem;

/// Limit of retries, because a concurrent rename makes the kernel ask for one.
const MAX_TRIES: usize = 16;

/// Names a file without opening it: this has no effect on pipes and devices.
fn handle_flags() -> OFlags {
    OFlags::PATH | OFlags::CLOEXEC
}

/// A handle for any path; links are followed.
pub(crate) fn anywhere(path: &Path) -> Result<File, ReadProblem> {
    rustix::fs::openat(CWD, path, handle_flags(), Mode::empty()).map(File::from).map_err(io_error)
}

/// A folder inside which paths are resolved.
#[derive(Debug)]
pub(crate) struct Root {
    /// The resolved path.
    pub(crate) path: PathBuf,
    /// As the caller named it.
    given: PathBuf,
    handle: OwnedFd,
}

impl Root {
    pub(crate) fn open(given: &Path) -> Result<Self, ReadProblem> {
        let path = std::fs::canonicalize(given)?;
        let flags = handle_flags() | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        let handle = rustix::fs::openat(CWD, &path, flags, Mode::empty()).map_err(io_error)?;
        Ok(Self { path, given: given.to_owned(), handle })
    }

    /// A handle for a path in the folder. Links are followed while they stay inside.
    pub(crate) fn beneath(&self, path: &Path) -> Result<File, ReadProblem> {
        let outside = || ReadProblem::OutsideProject(self.path.clone());
        let relative = match path.strip_prefix(&self.path).or_else(|_| path.strip_prefix(&self.given)) {
            Ok(relative) => relative,
            Err(_) if path.is_absolute() => return Err(outside()),
            Err(_) => path,
        };
        let relative = if relative.as_os_str().is_empty() { Path::new(".") } else { relative };
        match self.resolve(relative, ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS) {
            // Perhaps an absolute link, which the kernel refuses even if it leads back inside.
            Err(Errno::XDEV | Errno::NOSYS | Errno::PERM) => self.beneath_resolved(relative, outside),
            opened => opened.map(File::from).map_err(io_error),
        }
    }

    /// Resolves all links first. If one appears after that, opening fails.
    fn beneath_resolved(
        &self,
        relative: &Path,
        outside: impl Fn() -> ReadProblem,
    ) -> Result<File, ReadProblem> {
        let real = std::fs::canonicalize(self.path.join(relative))?;
        let relative = real.strip_prefix(&self.path).map_err(|_| outside())?;
        let relative = if relative.as_os_str().is_empty() { Path::new(".") } else { relative };
        let strict = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
        match self.resolve(relative, strict) {
            Err(Errno::XDEV | Errno::LOOP) => Err(outside()),
            Err(Errno::NOSYS | Errno::PERM) => self.step_by_step(relative),
            opened => opened.map(File::from).map_err(io_error),
        }
    }

    fn resolve(&self, relative: &Path, resolve: ResolveFlags) -> Result<OwnedFd, Errno> {
        let mut tries = 0;
        loop {
            let opened = rustix::fs::openat2(&self.handle, relative, handle_flags(), Mode::empty(), resolve);
            tries += 1;
            if !matches!(opened, Err(Errno::AGAIN | Errno::INTR)) || tries == MAX_TRIES {
                return opened;
            }
        }
    }

    /// Without `openat2`: one component after another, none of them a link.
    fn step_by_step(&self, relative: &Path) -> Result<File, ReadProblem> {
        let mut at = self.handle.try_clone()?;
        for part in relative.components() {
            let flags = handle_flags() | OFlags::NOFOLLOW;
            at = rustix::fs::openat(&at, Path::new(&part), flags, Mode::empty()).map_err(io_error)?;
        }
        let found = File::from(at);
        match found.metadata()?.is_symlink() {
            true => Err(ReadProblem::OutsideProject(self.path.clone())),
            false => Ok(found),
        }
    }
}

/// Opens the regular file of a handle, which cannot be replaced any more.
pub(crate) fn regular(handle: &File, path: &Path) -> Result<File, ReadProblem> {
    let named = handle.metadata()?;
    if !named.is_file() {
        return Err(ReadProblem::NotAFile);
    }
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let open =
        |path: &Path| OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path);
    let opened = match open(&link_of(handle.as_fd())) {
        // Without /proc, by name; then the identity must match.
        Err(error) if error.kind() == io::ErrorKind::NotFound => open(path),
        opened => opened,
    };
    let file = opened.map_err(|error| match error.kind() {
        // A lease or lock on the file; waiting could take as long as its owner likes.
        io::ErrorKind::WouldBlock => ReadProblem::Locked,
        _ => ReadProblem::Io(error),
    })?;
    let metadata = file.metadata()?;
    if (metadata.dev(), metadata.ino()) != (named.dev(), named.ino()) {
        return Err(ReadProblem::Replaced);
    }
    Ok(file)
}

/// Opens the folder of a handle for listing.
pub(crate) fn folder(handle: &File) -> Result<OwnedFd, ReadProblem> {
    if !handle.metadata()?.is_dir() {
        return Err(ReadProblem::NotAFolder);
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::openat(handle, ".", flags, Mode::empty()).map_err(io_error)
}

/// The resolved path of an open file.
pub(crate) fn real_path(handle: &File, given: &Path) -> PathBuf {
    let link = std::fs::read_link(link_of(handle.as_fd()));
    link.or_else(|_| std::fs::canonicalize(given)).unwrap_or_else(|_| given.to_owned())
}

/// Whether an open file is in a proc file system, wherever it is mounted.
pub(crate) fn is_of_processes(handle: &File) -> bool {
    rustix::fs::fstatfs(handle).is_ok_and(|found| found.f_type == PROC_SUPER_MAGIC)
}

/// Whether an entry of that name exists, also as a dangling link.
pub(crate) fn has_entry(folder: &File, name: &Path) -> bool {
    rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
}

fn link_of(handle: BorrowedFd<'_>) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd()))
}

pub(crate) fn io_error(error: Errno) -> ReadProblem {
    ReadProblem::Io(error.into())
}
