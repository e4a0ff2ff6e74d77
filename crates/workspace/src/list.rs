//! The names in a folder, bounded.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType};

use crate::ReadProblem;
use crate::open::io_error;

/// The entries of a folder, in no particular order.
#[derive(Debug)]
pub struct Listing {
    /// The resolved path.
    pub folder: PathBuf,
    pub entries: Vec<Entry>,
    /// Whether the list is complete.
    pub is_complete: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub name: OsString,
    pub kind: EntryKind,
}

/// The type of the entry itself; links are not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    File,
    Folder,
    Link,
    /// A pipe, a socket or a device.
    Other,
}

impl From<FileType> for EntryKind {
    fn from(kind: FileType) -> Self {
        match kind {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Folder,
            FileType::Symlink => Self::Link,
            _ => Self::Other,
        }
    }
}

pub(crate) fn list(opened: OwnedFd, folder: PathBuf, max: usize) -> Result<Listing, ReadProblem> {
    let mut entries = Vec::new();
    let mut is_complete = true;
    each_entry(opened, &mut |entry| {
        is_complete = entries.len() < max;
        if is_complete {
            entries.push(entry);
        }
        is_complete
    })?;
    Ok(Listing { folder, entries, is_complete })
}

/// Passes each entry to `take` until it returns false.
pub(crate) fn each_entry(opened: OwnedFd, take: &mut dyn FnMut(Entry) -> bool) -> Result<(), ReadProblem> {
    let at = opened.try_clone()?;
    for entry in Dir::new(opened).map_err(io_error)? {
        let entry = entry.map_err(io_error)?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        let name = OsString::from_vec(name.to_vec());
        let kind = match entry.file_type() {
            FileType::Unknown => {
                let found = rustix::fs::statat(&at, Path::new(&name), AtFlags::SYMLINK_NOFOLLOW);
                found.map_or(FileType::Unknown, |found| FileType::from_raw_mode(found.st_mode))
            }
            known => known,
        };
        if !take(Entry { name, kind: kind.into() }) {
            break;
        }
    }
    Ok(())
}
