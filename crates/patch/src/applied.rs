//! The effects of a committed plan.

use std::path::PathBuf;
use std::sync::Arc;

use crate::plan::PatchPlan;

/// Every file that a patch changed, with its bytes before and after.
#[derive(Debug, Clone, Default)]
pub struct Applied {
    pub files: Vec<AppliedFile>,
}

/// One changed file; `before` is none for a new one, `after` for a removed one.
#[derive(Debug, Clone)]
pub struct AppliedFile {
    pub path: PathBuf,
    pub before: Option<FileState>,
    pub after: Option<FileState>,
    /// The file's former path, if the patch moved it.
    pub moved_from: Option<PathBuf>,
}

/// The bytes of a file and the mode bits that a diff shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileState {
    pub bytes: Arc<[u8]>,
    pub executable: bool,
}

impl Applied {
    pub(crate) fn of(plan: &PatchPlan) -> Self {
        let files = plan.slots.values().filter(|slot| slot.changes()).map(|slot| AppliedFile {
            path: slot.at.path.clone(),
            before: slot.found.as_ref().map(|found| FileState {
                bytes: Arc::clone(&found.bytes),
                executable: found.permissions.executable(),
            }),
            after: slot.now.as_ref().map(|now| FileState {
                bytes: Arc::clone(&now.bytes),
                executable: now.permissions.is_some_and(|kept| kept.executable()),
            }),
            moved_from: slot
                .moved_from()
                .and_then(|from| plan.slots.get(from))
                .map(|source| source.at.path.clone()),
        });
        Self { files: files.collect() }
    }
}
