//! Reads files that an attacker may have created, or may replace while they are read.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// A regular file opened for reading. Later changes of its path have no effect.
#[derive(Debug)]
pub struct PlainFile {
    file: File,
    metadata: Metadata,
}

impl PlainFile {
    /// Checks the opened file and not its name, and never blocks on a pipe. Links are followed.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        let metadata = file.metadata()?;
        match metadata.is_file() {
            true => Ok(Self { file, metadata }),
            false => Err(io::Error::other("it is not a regular file")),
        }
    }

    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The whole file, or an error if it exceeds `max` bytes.
    pub fn read(self, max: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.file.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
        match bytes.len() as u64 <= max {
            true => Ok(bytes),
            false => Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("it has more than the {max} bytes that are read"),
            )),
        }
    }
}

/// The content of a regular file of at most `max` bytes.
pub fn read_plain(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    PlainFile::open(path)?.read(max)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_short_regular_files_are_read_and_nothing_is_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("four"), "four").expect("written");
        symlink("/dev/zero", at("zero")).expect("linked");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let pipe = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), pipe, mode, 0).expect("made");
        assert_eq!(read_plain(&at("four"), 4).expect("read"), b"four");
        assert_eq!(read_plain(&at("four"), 3).expect_err("longer").kind(), io::ErrorKind::FileTooLarge);
        for name in ["zero", "pipe", ".", "none"] {
            assert!(read_plain(&at(name), 4).is_err(), "{name}");
        }
    }
}
