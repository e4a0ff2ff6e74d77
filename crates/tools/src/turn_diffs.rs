//! What the turn at hand has changed in files.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use patch::{Applied, TurnDiff};
use protocol::TurnId;

/// Only the last turn is of interest: a new one begins with nothing changed.
#[derive(Debug, Default)]
pub(crate) struct TurnDiffs(Mutex<Option<(TurnId, TurnDiff)>>);

impl TurnDiffs {
    /// Takes in one patch and gives the diff of its whole turn. An empty one when the turn undid what it had done.
    pub(crate) fn note(&self, turn_id: &TurnId, cwd: &Path, applied: &Applied) -> Option<String> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, diff) = match &mut *last {
            Some(current) if current.0 == *turn_id => current,
            other => other.insert((turn_id.clone(), TurnDiff::new(repository(cwd)))),
        };
        diff.note(applied);
        Some(diff.unified().unwrap_or_default())
    }
}

/// The folder above which a version control system keeps its books.
fn repository(cwd: &Path) -> Option<PathBuf> {
    // In a worktree it is a file. An empty folder is only the sandbox's, which keeps the name free.
    let is_one = |git: PathBuf| git.is_file() || git.join("HEAD").exists();
    cwd.ancestors().find(|folder| is_one(folder.join(".git"))).map(Path::to_owned)
}
