//! Copying a file, a link or a tree.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::remove::names;
use super::staged::StagedFile;
use super::write::WriteTarget;
use super::{FileError, MAX_DEPTH, open_folder};
use crate::within::StepCount;

/// Copied between two steps.
const PIECE_BYTES: u64 = 8 << 20;

/// Copies `source`. A link is copied as a link. In a tree, pipes, sockets and devices are skipped, and no link is
/// followed, neither in the source nor in the target.
pub fn copy(
    source: &Path,
    destination: &Path,
    is_recursive: bool,
    steps: &StepCount,
) -> Result<(), FileError> {
    let found = rustix::fs::statat(CWD, source, AtFlags::SYMLINK_NOFOLLOW)?;
    match FileType::from_raw_mode(found.st_mode) {
        FileType::Directory if !is_recursive => Err(FileError::NeedsRecursive),
        FileType::Directory => copy_tree(source, destination, steps),
        FileType::Symlink => {
            let target = rustix::fs::readlinkat(CWD, source, Vec::new())?;
            Ok(rustix::fs::symlinkat(&target, CWD, destination)?)
        }
        FileType::RegularFile => {
            let target = WriteTarget::of(destination)?;
            target.check_regular(destination)?;
            if target.found.is_some_and(|there| is_same(&there, &found)) {
                return Err(FileError::SameFile);
            }
            let opened = open_regular(CWD, source)?.ok_or(FileError::NotCopied)?;
            put(&opened, target.folder.as_fd(), &target.name, target.found.as_ref(), steps)
        }
        _ => Err(FileError::NotCopied),
    }
}

fn is_same(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}

fn copy_tree(source: &Path, destination: &Path, steps: &StepCount) -> Result<(), FileError> {
    let real = fs::canonicalize(source)?;
    if resolved(destination)?.starts_with(&real) {
        return Err(FileError::IntoItself);
    }
    let from = open_folder(CWD, source)?;
    fs::create_dir_all(destination)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let to = rustix::fs::openat(CWD, destination, flags, Mode::empty())?;
    let tree = TreeCopy { root: rustix::fs::fstat(&to)?, steps };
    tree.folder(&from, &to, destination, 0)
}

/// The path with resolved links, as far as it exists.
fn resolved(path: &Path) -> Result<PathBuf, FileError> {
    let mut missing = Vec::new();
    let mut at = plain(path);
    loop {
        match fs::canonicalize(&at) {
            Ok(real) => return Ok(missing.iter().rev().fold(real, |path, name| path.join(name))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let Some(name) = at.file_name().map(OsStr::to_owned) else { return Err(error.into()) };
                missing.push(name);
                at.pop();
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Without `.` and `..`, as text.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

struct TreeCopy<'a> {
    /// The target folder, which must not be inside the source.
    root: Stat,
    steps: &'a StepCount,
}

impl TreeCopy<'_> {
    fn folder(&self, from: &OwnedFd, to: &OwnedFd, path: &Path, depth: usize) -> Result<(), FileError> {
        if depth == MAX_DEPTH {
            return Err(FileError::TooDeep(path.to_owned()));
        }
        if is_same(&rustix::fs::fstat(from)?, &self.root) {
            return Err(FileError::IntoItself);
        }
        for name in names(from)? {
            self.steps.step()?;
            match rustix::fs::statat(from, Path::new(&name), AtFlags::SYMLINK_NOFOLLOW) {
                Ok(found) => self.entry(from, to, &name, &found, &path.join(&name), depth)?,
                // Removed meanwhile.
                Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn entry(
        &self,
        from: &OwnedFd,
        to: &OwnedFd,
        name: &OsStr,
        found: &Stat,
        path: &Path,
        depth: usize,
    ) -> Result<(), FileError> {
        let at = Path::new(name);
        let there = match rustix::fs::statat(to, at, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => None,
            there => Some(there?),
        };
        let kind = FileType::from_raw_mode(found.st_mode);
        let is_link = there.is_some_and(|there| FileType::from_raw_mode(there.st_mode) == FileType::Symlink);
        if is_link && matches!(kind, FileType::Directory | FileType::RegularFile) {
            return Err(FileError::LinkInTheWay(path.to_owned()));
        }
        match kind {
            FileType::Directory => {
                if there.is_none() {
                    rustix::fs::mkdirat(to, at, Mode::from_raw_mode(0o777))?;
                }
                self.folder(&open_folder(from, at)?, &open_folder(to, at)?, path, depth + 1)
            }
            FileType::RegularFile => {
                if there.is_some_and(|there| FileType::from_raw_mode(there.st_mode) == FileType::Directory) {
                    return Err(Errno::ISDIR.into());
                }
                if there.is_some_and(|there| is_same(&there, found)) {
                    return Ok(());
                }
                match open_regular(from, at)? {
                    Some(file) => put(&file, to.as_fd(), name, there.as_ref(), self.steps),
                    None => Ok(()),
                }
            }
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(from, at, Vec::new())?;
                Ok(rustix::fs::symlinkat(&target, to, at)?)
            }
            _ => Ok(()),
        }
    }
}

/// `None` if it is no longer a regular file.
fn open_regular(folder: impl AsFd, name: &Path) -> Result<Option<File>, FileError> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file: File = rustix::fs::openat(folder, name, flags, Mode::empty())?.into();
    Ok(file.metadata()?.is_file().then_some(file))
}

/// Copies content and mode to an entry of a folder. An existing file is replaced as a whole, and so is a link that
/// appears meanwhile.
fn put(
    source: &File,
    folder: BorrowedFd<'_>,
    name: &OsStr,
    former: Option<&Stat>,
    steps: &StepCount,
) -> Result<(), FileError> {
    if let Some(former) = former
        && FileType::from_raw_mode(former.st_mode) != FileType::RegularFile
    {
        return Err(FileError::NotAFile(PathBuf::from(name)));
    }
    let mut staged = StagedFile::new(folder, Mode::from_raw_mode(0o600))?;
    loop {
        steps.step()?;
        if io::copy(&mut source.take(PIECE_BYTES), &mut staged.file)? == 0 {
            break;
        }
    }
    let mode = rustix::fs::fstat(source)?.st_mode & 0o777;
    rustix::fs::fchmod(&staged.file, Mode::from_raw_mode(mode))?;
    staged.place(name)
}
