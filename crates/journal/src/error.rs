//! Errors, with advice on what to do.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::Holder;

/// Cheap to clone, because one failed write is reported to every caller that waits for it.
#[derive(Debug, Clone, thiserror::Error)]
pub enum JournalError {
    /// The disk refused. Nothing that was acknowledged is lost, and the next append tries again.
    #[error("cannot {action} {}: {source}. {}", path.display(), advice(source))]
    Storage { action: &'static str, path: PathBuf, source: Arc<io::Error> },
    #[error(
        "{} is being written by {holder}. End the thread there or stop that process, then try again.",
        path.display()
    )]
    Locked { path: PathBuf, holder: Box<Holder> },
    #[error(
        "the file system of {} cannot lock files ({source}), so a second writer would go unnoticed. \
         Put the state folder on a local disk.",
        path.display()
    )]
    LocksUnsupported { path: PathBuf, source: Arc<io::Error> },
    #[error("{} was deleted or replaced while it was open. Restore it, then resume the thread.", path.display())]
    Deleted { path: PathBuf },
    #[error(
        "{} was changed by something else while it was open: {expected} bytes were expected, {found} are there. \
         Resume the thread to read it anew.",
        path.display()
    )]
    Changed { path: PathBuf, expected: u64, found: u64 },
    #[error("{} is not a regular file. Move away what was put in its place.", path.display())]
    NotAFile { path: PathBuf },
    #[error("{} holds no readable record. Restore it from a backup, or delete it.", path.display())]
    Unreadable { path: PathBuf },
    #[error("{} has lost its first record, which says what thread it is. Restore it from a backup.", path.display())]
    Headless { path: PathBuf },
    #[error(
        "{} has {bytes} bytes, and rollouts of up to {limit} are read. Go on with it in the program that wrote it.",
        path.display()
    )]
    RolloutTooLarge { path: PathBuf, bytes: u64, limit: u64 },
    #[error("a record of {bytes} bytes is larger than the limit of {limit}. Make it smaller.")]
    TooLarge { bytes: usize, limit: usize },
    #[error("a record nests {depth} levels deep, and readers stop at {limit}. Make it flatter.")]
    TooDeep { depth: usize, limit: usize },
    #[error("a record cannot be written as JSON: {0}")]
    Encode(Arc<serde_json::Error>),
    #[error("{waiting} bytes wait for the disk already. Wait for an append to finish before the next.")]
    Backlog { waiting: usize },
    #[error("the journal {} is closed. Resume the thread to write to it.", path.display())]
    Closed { path: PathBuf },
    /// The host keeps the record.
    #[error("whoever keeps the record did not take it: {0}")]
    Remote(String),
    #[error("invalid thread id: {0:?} is not a UUID")]
    InvalidThreadId(String),
    #[error("thread {0} is not stored here")]
    NotFound(String),
    #[error("{} belongs to another program, and is not deleted here.", path.display())]
    NotOurs { path: PathBuf },
    #[error("{} is there already. Choose a fresh thread id.", path.display())]
    AlreadyExists { path: PathBuf },
    #[error("invalid cursor: {0}")]
    InvalidCursor(String),
    #[error("the thread index failed: {0}. It is rebuilt from the journals once it is deleted.")]
    Index(Arc<rusqlite::Error>),
}

impl JournalError {
    pub(crate) fn storage(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Storage { action, path: path.to_owned(), source: Arc::new(source) }
    }

    /// Whether the same append may succeed later without opening the journal again.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Storage { .. } | Self::Backlog { .. })
    }
}

impl From<rusqlite::Error> for JournalError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Index(Arc::new(error))
    }
}

impl From<serde_json::Error> for JournalError {
    fn from(error: serde_json::Error) -> Self {
        Self::Encode(Arc::new(error))
    }
}

fn advice(error: &io::Error) -> &'static str {
    use io::ErrorKind as Kind;
    match error.kind() {
        Kind::StorageFull | Kind::QuotaExceeded => {
            "Free space on that disk and try again; what was acknowledged is safe."
        }
        Kind::ReadOnlyFilesystem => "Make that disk writable, or choose another state folder.",
        Kind::PermissionDenied => "Give this user the right to write there, or choose another state folder.",
        Kind::NotADirectory => "Move away what is in its place.",
        Kind::NotFound => "Restore the folder, or choose another state folder.",
        _ => match error.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
            Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE) => {
                "Too many files are open: close threads or raise the limit, then try again."
            }
            Some(rustix::io::Errno::LOOP) => "A symbolic link is in its place: move it away.",
            Some(rustix::io::Errno::IO) => "The disk may be failing: check it before trying again.",
            _ => "Try again once the cause is gone; what was acknowledged is safe.",
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_storage_error_says_what_where_why_and_what_to_do() {
        let error = JournalError::storage(
            "write to",
            Path::new("/state/a.jsonl"),
            io::Error::from(rustix::io::Errno::NOSPC),
        );
        assert_eq!(
            error.to_string(),
            "cannot write to /state/a.jsonl: No space left on device (os error 28). \
             Free space on that disk and try again; what was acknowledged is safe."
        );
    }
}
