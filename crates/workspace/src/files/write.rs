//! Writing a whole file.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::FileError;
use super::staged::StagedFile;
use crate::within::StepCount;

/// The kernel's limit of links.
const MAX_LINKS: usize = 40;
/// Written between two steps.
const PIECE_BYTES: usize = 1 << 20;

/// The target of a path as an entry of an open folder, existing or not.
#[derive(Debug)]
pub(super) struct WriteTarget {
    pub(super) folder: OwnedFd,
    pub(super) name: OsString,
    /// `None` if it does not exist.
    pub(super) found: Option<Stat>,
}

impl WriteTarget {
    /// Follows links, also dangling ones.
    pub(super) fn of(path: &Path) -> Result<Self, FileError> {
        let mut path = path.to_owned();
        for _ in 0..MAX_LINKS {
            let name = match path.file_name() {
                Some(name) => name.to_owned(),
                // It ends in `..`, or is the root.
                None => return Err(Errno::ISDIR.into()),
            };
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            let parent = parent.unwrap_or(Path::new("/"));
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let folder = rustix::fs::openat(CWD, parent, flags, Mode::empty())?;
            let found = match rustix::fs::statat(&folder, Path::new(&name), AtFlags::SYMLINK_NOFOLLOW) {
                Ok(found) => found,
                Err(Errno::NOENT) => return Ok(Self { folder, name, found: None }),
                Err(error) => return Err(error.into()),
            };
            if FileType::from_raw_mode(found.st_mode) != FileType::Symlink {
                return Ok(Self { folder, name, found: Some(found) });
            }
            let target = rustix::fs::readlinkat(&folder, Path::new(&name), Vec::new())?;
            path = parent.join(path_of(&target));
        }
        Err(Errno::LOOP.into())
    }

    /// An error unless it is a regular file.
    pub(super) fn check_regular(&self, path: &Path) -> Result<(), FileError> {
        match self.found.map(|found| FileType::from_raw_mode(found.st_mode)) {
            None | Some(FileType::RegularFile) => Ok(()),
            Some(FileType::Directory) => Err(Errno::ISDIR.into()),
            Some(_) => Err(FileError::NotAFile(path.to_owned())),
        }
    }
}

fn path_of(link: &std::ffi::CStr) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(link.to_bytes()))
}

/// Replaces the content of a file, or creates it. Readers see the old or the new content. Writes the target of a link.
/// Owner and mode are kept. A file with several names, or in a read-only folder, is written in place.
pub fn write_file(path: &Path, content: &[u8], steps: &StepCount) -> Result<(), FileError> {
    // A path with a trailing slash means a folder, which `Path` does not show.
    if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return Err(match fs::metadata(path) {
            Err(error) => error.into(),
            Ok(_) => Errno::ISDIR.into(),
        });
    }
    let target = WriteTarget::of(path)?;
    target.check_regular(path)?;
    match &target.found {
        Some(found) if found.st_nlink > 1 => return write_in_place(&target, path, content, steps),
        // Checked first: a rename would also replace a read-only file.
        Some(_) => rustix::fs::accessat(
            &target.folder,
            Path::new(&target.name),
            rustix::fs::Access::WRITE_OK,
            AtFlags::EACCESS,
        )?,
        None => {}
    }
    let mode = if target.found.is_some() { 0o600 } else { 0o666 };
    let staged = match StagedFile::new(target.folder.as_fd(), Mode::from_raw_mode(mode)) {
        Err(Errno::ACCESS | Errno::PERM | Errno::ROFS) if target.found.is_some() => {
            return write_in_place(&target, path, content, steps);
        }
        staged => staged?,
    };
    write_pieces(&staged.file, content, steps)?;
    if let Some(found) = &target.found {
        staged.adopt(found)?;
    }
    steps.step()?;
    staged.place_durably(&target.name)
}

fn write_in_place(
    target: &WriteTarget,
    path: &Path,
    content: &[u8],
    steps: &StepCount,
) -> Result<(), FileError> {
    let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file: File =
        rustix::fs::openat(&target.folder, Path::new(&target.name), flags, Mode::empty())?.into();
    // It may have been replaced by now.
    if !file.metadata()?.is_file() {
        return Err(FileError::NotAFile(path.to_owned()));
    }
    file.set_len(0)?;
    write_pieces(&file, content, steps)?;
    Ok(file.sync_data()?)
}

fn write_pieces(mut file: &File, content: &[u8], steps: &StepCount) -> io::Result<()> {
    for piece in content.chunks(PIECE_BYTES) {
        steps.step()?;
        file.write_all(piece)?;
    }
    Ok(())
}
