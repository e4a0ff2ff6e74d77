//! The names in a folder, bounded.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType};

use crate::Problem;
use crate::open::io_error;

/// What a folder holds, in no particular order.
#[derive(Debug)]
pub struct Listing {
    /// Without links.
    pub folder: PathBuf,
    pub entries: Vec<Entry>,
    /// Whether these are all.
    pub is_complete: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub name: OsString,
    pub kind: Kind,
}

/// Of an entry itself; links are not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    File,
    Folder,
    Link,
    /// A pipe, a socket or a device.
    Other,
}

impl From<FileType> for Kind {
    fn from(kind: FileType) -> Self {
        match kind {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Folder,
            FileType::Symlink => Self::Link,
            _ => Self::Other,
        }
    }
}

pub(crate) fn list(opened: OwnedFd, folder: PathBuf, max: usize) -> Result<Listing, Problem> {
    let mut entries = Vec::new();
    let mut is_complete = true;
    let at = opened.try_clone()?;
    for entry in Dir::new(opened).map_err(io_error)? {
        let entry = entry.map_err(io_error)?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        if entries.len() == max {
            is_complete = false;
            break;
        }
        let name = OsString::from_vec(name.to_vec());
        let kind = match entry.file_type() {
            FileType::Unknown => {
                let found = rustix::fs::statat(&at, Path::new(&name), AtFlags::SYMLINK_NOFOLLOW);
                found.map_or(FileType::Unknown, |found| FileType::from_raw_mode(found.st_mode))
            }
            known => known,
        };
        entries.push(Entry { name, kind: kind.into() });
    }
    Ok(Listing { folder, entries, is_complete })
}
