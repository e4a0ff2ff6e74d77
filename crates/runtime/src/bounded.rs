//! Reads files that others wrote: never more than asked for, and never something that is no file.

use std::fs::{self, File};
use std::io::{self, Read, Take};
use std::path::Path;

/// Opens a regular file for its first `max` bytes. A pipe or a device could give bytes for ever, or none and never end.
pub(crate) fn open(path: &Path, max: u64) -> io::Result<Take<File>> {
    // Before it is opened, since already that waits for the other end of a pipe; the file opened is what counts.
    require_file(&fs::metadata(path)?)?;
    let file = File::open(path)?;
    require_file(&file.metadata()?)?;
    Ok(file.take(max))
}

/// The first `max` bytes of a regular file.
pub(crate) fn read_start(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path, max)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The whole of a regular file, or an error if it is larger than `max` bytes.
pub(crate) fn read_whole(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let bytes = read_start(path, max.saturating_add(1))?;
    if bytes.len() as u64 > max {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it is larger than {} MiB", max >> 20),
        ));
    }
    Ok(bytes)
}

fn require_file(metadata: &fs::Metadata) -> io::Result<()> {
    if metadata.is_file() {
        Ok(())
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_kept() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("f");
        fs::write(&path, "12345").expect("written");
        assert_eq!(read_start(&path, 3).expect("readable"), b"123");
        assert_eq!(read_start(&path, 9).expect("readable"), b"12345");
        assert_eq!(read_whole(&path, 5).expect("readable"), b"12345");
        let too_large = read_whole(&path, 4).expect_err("one byte too many");
        assert_eq!(too_large.kind(), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn only_regular_files_are_read() {
        let dir = tempfile::tempdir().expect("a directory");
        for path in [dir.path(), Path::new("/dev/zero")] {
            let error = read_start(path, 1).expect_err("not a file");
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{}", path.display());
        }
    }
}
