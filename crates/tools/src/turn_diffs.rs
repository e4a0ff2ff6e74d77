//! The file changes of the current turn.

use parking_lot::Mutex;
use std::path::{Path, PathBuf};

use patch::{Applied, TurnDiff};
use protocol::TurnId;

/// Only for the last turn: a new one starts without changes.
#[derive(Debug, Default)]
pub(crate) struct TurnDiffs(Mutex<Option<(TurnId, Vec<OfPlace>)>>);

/// Files of the same name in two environments are different files.
#[derive(Debug)]
struct OfPlace {
    /// `None` for this machine.
    id: Option<String>,
    diff: TurnDiff,
}

impl TurnDiffs {
    /// Adds one patch and returns the diff of its whole turn. Empty if the turn undid its own changes.
    pub(crate) fn note(
        &self,
        turn_id: &TurnId,
        place: Option<&str>,
        repository: impl FnOnce() -> Option<PathBuf>,
        applied: &Applied,
    ) -> String {
        let mut last = self.0.lock();
        let (_, places) = match &mut *last {
            Some(current) if current.0 == *turn_id => current,
            other => other.insert((turn_id.clone(), Vec::new())),
        };
        let known = places.iter().position(|one| one.id.as_deref() == place);
        let at = known.unwrap_or_else(|| {
            let diff = TurnDiff::new(repository());
            places.push(OfPlace { id: place.map(str::to_owned), diff });
            places.len() - 1
        });
        places[at].diff.note(applied);
        places.iter().filter_map(|one| one.diff.unified()).collect()
    }
}

/// The folder of the git repository around `cwd`.
pub(crate) fn repository(cwd: &Path) -> Option<PathBuf> {
    // In a worktree it is a file. An empty folder is only the sandbox's placeholder.
    let is_one = |git: PathBuf| git.is_file() || git.join("HEAD").exists();
    cwd.ancestors().find(|folder| is_one(folder.join(".git"))).map(Path::to_owned)
}
