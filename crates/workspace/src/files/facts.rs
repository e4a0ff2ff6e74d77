//! Metadata of a path, the entries of a folder, and creating folders.

use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::io::Errno;

use super::FileError;
use crate::within::StepCount;
use crate::{EntryKind, ReadProblem, Reader};

/// Limit of a folder's entries: the response stays at a few MiB.
const MAX_ENTRIES: usize = 100_000;

/// Metadata of a path's target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathFacts {
    pub is_directory: bool,
    pub is_file: bool,
    /// The path itself is a link; the rest is about its target.
    pub is_link: bool,
    /// Unix milliseconds; 0 if unknown.
    pub created_ms: i64,
    pub modified_ms: i64,
}

/// Links are followed; a dangling one is an error.
pub fn path_facts(path: &Path) -> Result<PathFacts, FileError> {
    let metadata = fs::metadata(path)?;
    let is_link = fs::symlink_metadata(path)?.is_symlink();
    Ok(PathFacts {
        is_directory: metadata.is_dir(),
        is_file: metadata.is_file(),
        is_link,
        created_ms: metadata.created().map_or(0, unix_ms),
        modified_ms: metadata.modified().map_or(0, unix_ms),
    })
}

fn unix_ms(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(0)
}

/// One entry of a folder. For a link, its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryEntry {
    pub name: String,
    pub is_directory: bool,
    pub is_file: bool,
}

/// The direct entries of a folder, sorted by name. A dangling link is neither a file nor a folder.
pub fn read_directory(path: &Path, steps: &StepCount) -> Result<Vec<DirectoryEntry>, FileError> {
    let listing = Reader::default().list(path, MAX_ENTRIES).map_err(|error| match error.problem {
        ReadProblem::NotAFolder => Errno::NOTDIR.into(),
        ReadProblem::Io(error) => error.into(),
        problem => FileError::Io(problem.to_string()),
    })?;
    if !listing.is_complete {
        return Err(FileError::TooManyEntries { path: path.to_owned(), max: MAX_ENTRIES });
    }
    let mut entries = Vec::with_capacity(listing.entries.len());
    for entry in listing.entries {
        steps.step()?;
        let (is_directory, is_file) = match entry.kind {
            EntryKind::Link => fs::metadata(listing.folder.join(&entry.name))
                .map_or((false, false), |target| (target.is_dir(), target.is_file())),
            kind => (kind == EntryKind::Folder, kind == EntryKind::File),
        };
        let name = entry.name.to_string_lossy().into_owned();
        entries.push(DirectoryEntry { name, is_directory, is_file });
    }
    entries.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    Ok(entries)
}

/// Creates a folder, with missing parents if `is_recursive`; then an existing one is no error.
pub fn create_directory(path: &Path, is_recursive: bool) -> Result<(), FileError> {
    match is_recursive {
        true => fs::create_dir_all(path)?,
        false => fs::create_dir(path)?,
    }
    Ok(())
}
