//! File operations of clients: by absolute path, with the rights of this process. They never block on a pipe or open a
//! device, replace files as a whole, and walk trees by descriptors, so that no link leads out of a tree.

mod copy;
mod error;
mod facts;
mod read;
mod remove;
mod staged;
mod write;

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

pub use copy::copy;
pub use error::FileError;
pub use facts::{DirectoryEntry, PathFacts, create_directory, path_facts, read_directory};
pub use read::read_in_pieces;
pub use remove::remove;
pub use staged::is_temporary_name;
pub use write::write_file;

/// Limit of nested folders. Each keeps a descriptor open while the tree is copied or removed.
const MAX_DEPTH: usize = 200;

/// Opens a folder for listing and for looking up its entries. A link is refused.
fn open_folder(parent: impl AsFd, name: &Path) -> Result<OwnedFd, FileError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(parent, name, flags, Mode::empty())?)
}

#[cfg(test)]
mod tests;
