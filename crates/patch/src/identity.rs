//! The identity of a file that was read, so that a replacement is noticed.

use std::io;

use rustix::fs::{FileType, Mode, Stat};

/// The metadata that distinguishes two states of a file, without its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileIdentity {
    device: u64,
    inode: u64,
    modified: (i64, u64),
    length: u64,
}

impl FileIdentity {
    #[allow(clippy::unnecessary_cast, reason = "the widths differ between targets")]
    pub(crate) fn of(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as u64),
            length: u64::try_from(stat.st_size).unwrap_or_default(),
        }
    }

    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Whether both are the same file, whatever its state.
    pub(crate) fn same_file(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    pub(crate) fn to_bytes(self) -> [u8; 40] {
        let mut bytes = [0; 40];
        let fields = [
            self.device.to_le_bytes(),
            self.inode.to_le_bytes(),
            self.modified.0.to_le_bytes(),
            self.modified.1.to_le_bytes(),
            self.length.to_le_bytes(),
        ];
        for (to, from) in bytes.chunks_exact_mut(8).zip(fields) {
            to.copy_from_slice(&from);
        }
        bytes
    }
}

/// Owner and mode of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FilePermissions {
    pub(crate) mode: u32,
    pub(crate) user: u32,
    pub(crate) group: u32,
}

impl FilePermissions {
    pub(crate) fn of(stat: &Stat) -> Self {
        Self {
            mode: Mode::from_raw_mode(stat.st_mode).bits() & 0o7777,
            user: stat.st_uid,
            group: stat.st_gid,
        }
    }

    pub(crate) fn executable(self) -> bool {
        self.mode & 0o100 != 0
    }
}

/// The kind of a path that is not a regular file.
pub(crate) enum NotRegular {
    Directory,
    Symlink,
    Special(&'static str),
}

pub(crate) fn regular(stat: &Stat) -> Result<(), NotRegular> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err(NotRegular::Directory),
        FileType::Symlink => Err(NotRegular::Symlink),
        FileType::Fifo => Err(NotRegular::Special("FIFO")),
        FileType::Socket => Err(NotRegular::Special("socket")),
        FileType::CharacterDevice | FileType::BlockDevice => Err(NotRegular::Special("device")),
        FileType::Unknown => Err(NotRegular::Special("file of unknown kind")),
    }
}

pub(crate) fn is_a_directory() -> io::Error {
    rustix::io::Errno::ISDIR.into()
}
