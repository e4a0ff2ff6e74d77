//! The errors of a patch in each of its three stages.

use std::io;
use std::path::{Path, PathBuf};

use crate::names::shown;

/// The text is not a patch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    #[error("invalid patch: it must begin with the line '*** Begin Patch'")]
    NoBegin,
    #[error("invalid patch: it must end with the line '*** End Patch'")]
    NoEnd,
    #[error("invalid hunk at line {line}, {problem}")]
    Hunk { line: usize, problem: HunkProblem },
}

/// The error in one hunk.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HunkProblem {
    #[error(
        "'{0}' is not a valid hunk header. Valid hunk headers: '*** Add File: {{path}}', \
         '*** Delete File: {{path}}', '*** Update File: {{path}}'"
    )]
    BadHeader(String),
    #[error("the update of '{0}' changes nothing: it has no chunk")]
    EmptyUpdate(String),
    #[error("the chunk has no lines")]
    EmptyChunk,
    #[error("a line of a chunk begins with ' ', '-' or '+', but this one is '{0}'")]
    UnexpectedLine(String),
    #[error("a further chunk begins with '@@', but this line is '{0}'")]
    NoChunkMarker(String),
}

/// The patch does not match the disk. Nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    #[error("patch rejected: empty patch")]
    Empty,
    #[error("the path '{shown}' {why}")]
    BadPath { shown: String, why: &'static str },
    #[error("the base directory {} cannot be used: {source}", shown(.path))]
    Base { path: PathBuf, source: io::Error },
    #[error("Failed to read file to update {}: {source}", shown(.path))]
    ReadForUpdate { path: PathBuf, source: io::Error },
    #[error("Failed to read {}: {source}", shown(.path))]
    ReadForDelete { path: PathBuf, source: io::Error },
    #[error("cannot write {}: {source}", shown(.path))]
    Write { path: PathBuf, source: io::Error },
    #[error("{} is a symbolic link; name the file it leads to", shown(.0))]
    Symlink(PathBuf),
    #[error("{} is a {what}, not a regular file", shown(.path))]
    Special { path: PathBuf, what: &'static str },
    #[error("{} is larger than {} MiB", shown(.0), crate::MAX_FILE_BYTES >> 20)]
    TooLarge(PathBuf),
    #[error("the files of the patch hold more than {} MiB together", crate::MAX_TOTAL_BYTES >> 20)]
    TooMuch,
    #[error("{} would have to be both a file and a directory", shown(.0))]
    FileAndDirectory(PathBuf),
    #[error("context '{context}' not found in {}", shown(.path))]
    ContextNotFound { path: PathBuf, context: String },
    #[error("lines not found in {}:\n{lines}", shown(.path))]
    LinesNotFound { path: PathBuf, lines: String },
}

/// Why a patch cannot be applied, worded for the model.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    #[error("patch rejected: empty patch")]
    Empty,
    #[error("apply_patch verification failed: {0}")]
    Parse(#[from] ParseError),
    #[error("apply_patch verification failed: {0}")]
    Plan(PlanError),
}

impl From<PlanError> for VerifyError {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::Empty => Self::Empty,
            other => Self::Plan(other),
        }
    }
}

/// The plan could not be carried out. Every file is unchanged, except after `NotRestored`.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    #[error("patch rejected: {} is outside the writable area", shown(.0))]
    Outside(PathBuf),
    #[error("patch rejected: {} is protected", shown(.0))]
    Protected(PathBuf),
    #[error("patch rejected: {} is reached through a symbolic link", shown(.0))]
    Symlink(PathBuf),
    #[error("{} changed since the patch was checked; nothing was applied", shown(.0))]
    Changed(PathBuf),
    #[error("cannot {doing} {}: {source}; nothing was applied", shown(.path))]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
    #[error("{cause}, but not everything could be put back: {}", list(.lost))]
    NotRestored { cause: Box<CommitError>, lost: Vec<Lost> },
}

/// A file that undo could not restore, and the path of its former content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    pub path: PathBuf,
    pub kept_as: PathBuf,
}

fn list(lost: &[Lost]) -> String {
    let one = |lost: &Lost| format!("{} is kept as {}", shown(&lost.path), shown(&lost.kept_as));
    lost.iter().map(one).collect::<Vec<_>>().join(", ")
}

pub(crate) fn io_at(doing: &'static str, path: &Path, errno: rustix::io::Errno) -> CommitError {
    CommitError::Io { doing, path: path.to_owned(), source: errno.into() }
}
