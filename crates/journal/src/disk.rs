//! A writer's disk operations behind one trait, so that tests can make any of them fail.

use std::fmt::Debug;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

/// Every operation of a writer that the disk can refuse. The default methods are real; a test overrides them.
pub trait JournalDisk: Send + Sync {
    /// A new file for this user only. Fails if the path exists.
    fn create(&self, path: &Path) -> io::Result<File> {
        options().create_new(true).open(path)
    }

    /// An existing file, to be read and appended to. Follows no link.
    fn open(&self, path: &Path) -> io::Result<File> {
        options().open(path)
    }

    /// May write less than requested.
    fn write(&self, file: &File, bytes: &[u8]) -> io::Result<usize> {
        let mut file = file;
        file.write(bytes)
    }

    /// Returns when everything written is on the disk.
    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_data()
    }

    fn truncate(&self, file: &File, len: u64) -> io::Result<()> {
        file.set_len(len)
    }

    fn stat(&self, file: &File) -> io::Result<Stat> {
        let metadata = file.metadata()?;
        Ok(Stat {
            len: metadata.len(),
            links: metadata.nlink(),
            inode: (metadata.dev(), metadata.ino()),
            is_file: metadata.is_file(),
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    /// Returns when a folder's entries are on the disk.
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    /// One new folder for this user only.
    fn make_dir(&self, path: &Path) -> io::Result<()> {
        DirBuilder::new().mode(0o700).create(path)
    }
}

/// Prints only the name: printing the fields would add the `Debug` code of all their types to the program.
impl Debug for dyn JournalDisk + '_ {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JournalDisk")
    }
}

/// The metadata of its open file that a writer needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    pub len: u64,
    /// 0 when the file was deleted.
    pub links: u64,
    /// Device and inode, which identify a file.
    pub inode: (u64, u64),
    pub is_file: bool,
}

/// The disk of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealDisk;

impl JournalDisk for RealDisk {}

fn options() -> OpenOptions {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    options.read(true).append(true).mode(0o600).custom_flags(flags.bits().cast_signed());
    options
}

/// Creates a folder and its missing parents, each durable before the next. Refuses links in their place.
pub(crate) fn make_dirs(disk: &dyn JournalDisk, path: &Path) -> io::Result<()> {
    if is_real_dir(path)? {
        return Ok(());
    }
    let Some(parent) = path.parent() else { return Err(io::ErrorKind::NotFound.into()) };
    make_dirs(disk, parent)?;
    match disk.make_dir(path) {
        // Another process was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && is_real_dir(path)? => {}
        result => result?,
    }
    disk.sync_dir(parent)
}

fn is_real_dir(path: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => Ok(true),
        Ok(_) => Err(io::ErrorKind::NotADirectory.into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Writes everything, continuing after short writes.
pub(crate) fn write_all(disk: &dyn JournalDisk, file: &File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match disk.write(file, bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
