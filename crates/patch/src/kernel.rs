//! The system calls of a patch, with a fallback for each that older kernels lack.

use std::cell::Cell;
use std::ffi::OsStr;
use std::path::{Component, Path};

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, ResolveFlags};
use rustix::io::{Errno, Result};

/// Opens a directory only to reach its entries.
pub(crate) const AS_DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The kernel's features and, in tests, its planned failure.
#[derive(Debug)]
pub(crate) struct Kernel {
    has_openat2: Cell<bool>,
    has_exchange: Cell<bool>,
    steps_left: Cell<Option<usize>>,
}

impl Default for Kernel {
    fn default() -> Self {
        Self { has_openat2: Cell::new(true), has_exchange: Cell::new(true), steps_left: Cell::new(None) }
    }
}

impl Kernel {
    /// A kernel without the newer calls.
    #[cfg(test)]
    pub(crate) fn old() -> Self {
        Self { has_openat2: Cell::new(false), has_exchange: Cell::new(false), steps_left: Cell::new(None) }
    }

    /// The same kernel, failing from step `steps` on.
    #[cfg(test)]
    pub(crate) fn failing_after(self, steps: usize) -> Self {
        self.steps_left.set(Some(steps));
        self
    }

    /// Whether the planned failure has been reached.
    #[cfg(test)]
    pub(crate) fn failed(&self) -> bool {
        self.steps_left.get() == Some(0)
    }

    /// Counts one step towards the planned failure.
    pub(crate) fn step(&self) -> Result<()> {
        match self.steps_left.get() {
            None => Ok(()),
            Some(0) => Err(Errno::IO),
            Some(left) => {
                self.steps_left.set(Some(left - 1));
                if left == 1 { Err(Errno::IO) } else { Ok(()) }
            }
        }
    }

    /// Undo runs without the planned failure, which stands for a temporary fault.
    pub(crate) fn calm(&self) {
        if self.steps_left.get().is_some() {
            self.steps_left.set(Some(usize::MAX));
        }
    }

    /// Opens a path in a directory; no component may be a symbolic link or `..`.
    pub(crate) fn open_beneath(&self, root: BorrowedFd<'_>, path: &Path, flags: OFlags) -> Result<OwnedFd> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        if self.has_openat2.get() {
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
            match rustix::fs::openat2(root, path, flags, Mode::empty(), resolve) {
                // Container filters return "not permitted" for unknown calls.
                Err(Errno::NOSYS | Errno::PERM) => self.has_openat2.set(false),
                // The kernel could not exclude a race; the walk has none.
                Err(Errno::AGAIN) => {}
                answer => return answer,
            }
        }
        walk(root, path, flags)
    }

    /// Swaps two names of one directory, or reports that kernel or file system cannot.
    pub(crate) fn exchange(&self, dir: &OwnedFd, one: &OsStr, other: &OsStr) -> Result<Exchange> {
        if !self.has_exchange.get() {
            return Ok(Exchange::Unsupported);
        }
        match rustix::fs::renameat_with(dir, one, dir, other, RenameFlags::EXCHANGE) {
            Ok(()) => Ok(Exchange::Done),
            Err(Errno::NOSYS | Errno::INVAL) => {
                self.has_exchange.set(false);
                Ok(Exchange::Unsupported)
            }
            Err(errno) => Err(errno),
        }
    }

    /// Renames within one directory, unless the new name is taken.
    pub(crate) fn rename_new(&self, dir: &OwnedFd, from: &OsStr, to: &OsStr) -> Result<()> {
        if self.has_exchange.get() {
            match rustix::fs::renameat_with(dir, from, dir, to, RenameFlags::NOREPLACE) {
                Err(Errno::NOSYS | Errno::INVAL) => {}
                answer => return answer,
            }
        }
        match rustix::fs::statat(dir, to, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Err(Errno::EXIST),
            Err(Errno::NOENT) => rustix::fs::renameat(dir, from, dir, to),
            Err(errno) => Err(errno),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exchange {
    Done,
    Unsupported,
}

/// Component by component, each opened from the one before it.
fn walk(root: BorrowedFd<'_>, path: &Path, flags: OFlags) -> Result<OwnedFd> {
    let mut at: Option<OwnedFd> = None;
    let mut components = path.components().peekable();
    while let Some(component) = components.next() {
        let name = match component {
            Component::Normal(name) => name,
            Component::CurDir => OsStr::new("."),
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return Err(Errno::XDEV),
        };
        let last = components.peek().is_none();
        let flags = if last { flags } else { AS_DIRECTORY | OFlags::NOFOLLOW };
        let from = at.as_ref().map_or(root, AsFd::as_fd);
        at = Some(rustix::fs::openat(from, name, flags, Mode::empty())?);
    }
    at.ok_or(Errno::NOENT)
}
