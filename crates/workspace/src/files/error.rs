//! Why a file was not read or changed.

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::{ReadError, ReadProblem};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// The system's message, which clients compare.
    #[error("{0}")]
    Io(String),
    #[error("fs/writeFile requires valid base64 dataBase64: {0}")]
    Base64(String),
    #[error("{} is not a regular file; pipes, sockets and devices cannot be read or written here", .0.display())]
    NotAFile(PathBuf),
    #[error("{} is larger than {} MiB, which is the most that fs/readFile reads", .path.display(), .max >> 20)]
    TooLarge { path: PathBuf, max: u64 },
    #[error("{} has more than {max} entries, which is the most that fs/readDirectory lists", .path.display())]
    TooManyEntries { path: PathBuf, max: usize },
    #[error("{} is not absolute on this system", .0.display())]
    NotAbsolute(PathBuf),
    #[error("fs/remove cannot remove the root of the file system")]
    Root,
    #[error("fs/copy requires recursive: true when sourcePath is a directory")]
    NeedsRecursive,
    #[error("fs/copy cannot copy a directory to itself or one of its descendants")]
    IntoItself,
    #[error("fs/copy cannot copy a file to itself")]
    SameFile,
    #[error("fs/copy only supports regular files, directories, and symlinks")]
    NotCopied,
    #[error("fs/copy does not write through links: {} is one; remove it first", .0.display())]
    LinkInTheWay(PathBuf),
    #[error("{} has more than {} folders in each other", .0.display(), super::MAX_DEPTH)]
    TooDeep(PathBuf),
    #[error("{} cannot be watched; the system or this server watches as many folders as it may", .0.display())]
    NotWatched(PathBuf),
    #[error("{count} paths are watched by this connection, which is the most; end one by fs/unwatch")]
    TooManyWatches { count: usize },
    #[error("{}: the file system did not answer in time; the request may still take effect", .0.display())]
    Hangs(PathBuf),
}

impl FileError {
    /// Whether the request is invalid. Otherwise the file system refused it or failed.
    pub fn is_bad_request(&self) -> bool {
        !matches!(self, Self::Io(_) | Self::Hangs(_) | Self::NotWatched(_))
    }

    /// For work that timed out, or could not be started.
    pub fn unanswered(path: &Path, error: &ReadError) -> Self {
        match &error.problem {
            ReadProblem::TimedOut(_) | ReadProblem::Stuck(_) => Self::Hangs(path.to_owned()),
            problem => Self::Io(problem.to_string()),
        }
    }
}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> Self {
        Self::Io(error.to_string())
    }
}

impl From<Errno> for FileError {
    fn from(error: Errno) -> Self {
        io::Error::from(error).into()
    }
}
