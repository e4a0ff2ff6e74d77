//! One file of a plan: its former and its new content.

use std::path::PathBuf;
use std::sync::Arc;

use crate::identity::FilePermissions;
use crate::read::FoundFile;
use crate::resolve::ResolvedTarget;

/// A file the patch touches.
#[derive(Debug)]
pub(crate) struct TouchedFile {
    pub(crate) at: ResolvedTarget,
    pub(crate) found: Option<FoundFile>,
    pub(crate) now: Option<Content>,
}

/// The content of a file after some of the hunks.
#[derive(Debug, Clone)]
pub(crate) struct Content {
    pub(crate) bytes: Arc<[u8]>,
    /// None for a new file, which gets the process's default mode.
    pub(crate) permissions: Option<FilePermissions>,
    /// The resolved path of the file on disk that this one derives from by updates and moves.
    pub(crate) origin: Option<PathBuf>,
}

impl TouchedFile {
    pub(crate) fn new(at: ResolvedTarget, found: Option<FoundFile>) -> Self {
        let now = found.as_ref().map(|found| Content {
            bytes: Arc::clone(&found.bytes),
            permissions: Some(found.permissions),
            origin: Some(at.real.clone()),
        });
        Self { at, found, now }
    }

    /// Whether the plan changes the file.
    pub(crate) fn changes(&self) -> bool {
        match (&self.found, &self.now) {
            (None, None) => false,
            (Some(found), Some(now)) => {
                found.bytes != now.bytes || now.permissions.is_some_and(|kept| kept != found.permissions)
            }
            _ => true,
        }
    }

    /// The file on disk that was moved here, if any.
    pub(crate) fn moved_from(&self) -> Option<&PathBuf> {
        self.now.as_ref()?.origin.as_ref().filter(|origin| **origin != self.at.real)
    }
}
