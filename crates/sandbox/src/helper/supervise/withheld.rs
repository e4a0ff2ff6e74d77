//! Individual names that no command may create: missing files of the user's settings, behind a link in the state folder
//! that leads to a writable folder.

use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{fstat, stat};

use super::names::last_name;
use crate::Confinement;
use crate::helper::files::hidden;

/// One such name. Its parent folder may be renamed, so the folder counts; it may be created again, so the path counts
/// too.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::helper) struct WithheldName {
    path: PathBuf,
    /// Device and number of its folder.
    folder: Option<(u64, u64)>,
}

impl WithheldName {
    /// All of them, for the process's lifetime. Found before the command runs.
    pub(in crate::helper) fn find(confinement: &Confinement) -> &'static [Self] {
        let found = hidden::withheld(confinement).into_iter().map(|path| {
            let folder = path.parent().and_then(|folder| stat(folder).ok());
            Self { folder: folder.map(|folder| (folder.st_dev, folder.st_ino)), path }
        });
        let found: Vec<Self> = found.collect();
        Vec::leak(found)
    }

    /// Some file systems ignore case.
    fn is_called(&self, name: &[u8]) -> bool {
        self.path.file_name().is_some_and(|own| own.as_bytes().eq_ignore_ascii_case(name))
    }
}

/// Whether the last name of a path may be withheld, which is rare.
pub(super) fn may_be_withheld(names: &[WithheldName], path: &[u8]) -> bool {
    !names.is_empty() && last_name(path).is_some_and(|last| names.iter().any(|name| name.is_called(last)))
}

/// Whether nothing may be created under this name in this folder.
pub(super) fn is_withheld(names: &[WithheldName], folder: Option<BorrowedFd<'_>>, name: &[u8]) -> bool {
    if !may_be_withheld(names, name) {
        return false;
    }
    let (Some(last), Some(place)) = (last_name(name), full_path(folder, name)) else { return true };
    let found = folder.and_then(|folder| fstat(folder).ok()).map(|found| (found.st_dev, found.st_ino));
    let is_it = |withheld: &WithheldName| {
        (found.is_some() && withheld.folder == found) || has_same_name(&withheld.path, &place)
    };
    names.iter().filter(|withheld| withheld.is_called(last)).any(is_it)
}

/// Whether the name is that of a parent folder of a withheld one. A renamed folder may contain anything.
pub(super) fn is_on_the_way(names: &[WithheldName], folder: Option<BorrowedFd<'_>>, name: &[u8]) -> bool {
    let Some(last) = last_name(name).filter(|_| !names.is_empty()) else { return false };
    let is_part = |part: &OsStr| part.as_bytes().eq_ignore_ascii_case(last);
    let mut ways = names.iter().filter(|name| name.path.iter().any(is_part)).peekable();
    if ways.peek().is_none() {
        return false;
    }
    let Some(place) = full_path(folder, name) else { return true };
    ways.any(|name| name.path.ancestors().skip(1).any(|above| has_same_name(above, &place)))
}

fn has_same_name(one: &Path, other: &Path) -> bool {
    one.as_os_str().as_bytes().eq_ignore_ascii_case(other.as_os_str().as_bytes())
}

/// The full path of a name in an open folder; `None` if the kernel does not know it.
fn full_path(folder: Option<BorrowedFd<'_>>, name: &[u8]) -> Option<PathBuf> {
    let above = match folder {
        None => PathBuf::from("/"),
        Some(folder) => std::fs::read_link(format!("/proc/self/fd/{}", folder.as_fd().as_raw_fd())).ok()?,
    };
    Some(above.join(OsStr::from_bytes(last_name(name)?)))
}
