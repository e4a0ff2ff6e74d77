//! Errors of reading files. Every error names the path.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A path that was not read, with the reason.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct ReadError {
    /// As the caller gave it.
    pub path: PathBuf,
    pub problem: ReadProblem,
}

/// The reason, worded to follow the path.
#[derive(Debug, thiserror::Error)]
pub enum ReadProblem {
    #[error("it leads out of the project {}", .0.display())]
    OutsideProject(PathBuf),
    #[error("it is hidden from this thread")]
    Hidden,
    #[error("it is outside of what this thread may read")]
    NotReadable,
    #[error("it is not a regular file")]
    NotAFile,
    #[error("it is not a folder")]
    NotAFolder,
    #[error("it is larger than {}", size(*.0))]
    TooLarge(u64),
    #[error("it is locked by another process")]
    Locked,
    #[error("it was replaced again and again while it was opened")]
    Replaced,
    #[error("it could not be read within {} seconds", .0.as_secs())]
    TimedOut(Duration),
    /// Their number.
    #[error("an earlier read has not returned; the file system seems to hang")]
    Stuck(usize),
    #[error("{0}")]
    Io(#[from] io::Error),
}

fn size(bytes: u64) -> String {
    match bytes {
        bytes if bytes >= 1 << 20 && bytes % (1 << 20) == 0 => format!("{} MiB", bytes >> 20),
        bytes if bytes >= 1 << 10 && bytes % (1 << 10) == 0 => format!("{} KiB", bytes >> 10),
        bytes => format!("{bytes} bytes"),
    }
}

impl ReadError {
    pub(crate) fn new(path: &Path, problem: impl Into<ReadProblem>) -> Self {
        Self { path: path.to_owned(), problem: problem.into() }
    }

    /// Whether the path does not exist.
    pub fn is_missing(&self) -> bool {
        let ReadProblem::Io(error) = &self.problem else { return false };
        matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
    }

    /// Whether reading is refused: for this thread, or because the path leads out of the project.
    pub fn is_refused(&self) -> bool {
        matches!(
            self.problem,
            ReadProblem::OutsideProject(_) | ReadProblem::Hidden | ReadProblem::NotReadable
        )
    }

    /// Only the reason, for callers that name the path themselves.
    pub fn into_io(self) -> io::Error {
        let kind = match self.problem {
            ReadProblem::Io(error) => return error,
            ReadProblem::OutsideProject(_) | ReadProblem::Hidden | ReadProblem::NotReadable => {
                io::ErrorKind::PermissionDenied
            }
            ReadProblem::NotAFile | ReadProblem::NotAFolder => io::ErrorKind::InvalidInput,
            ReadProblem::TooLarge(_) => io::ErrorKind::FileTooLarge,
            ReadProblem::Locked => io::ErrorKind::ResourceBusy,
            ReadProblem::TimedOut(_) | ReadProblem::Stuck(_) => io::ErrorKind::TimedOut,
            ReadProblem::Replaced => io::ErrorKind::Other,
        };
        io::Error::new(kind, self.problem)
    }
}
