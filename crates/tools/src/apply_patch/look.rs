//! What a patch would do, here or in another environment, in the words of where its files are.

use std::fmt;
use std::path::{Path, PathBuf};

use patch::{Boundary, ChangeKind, CommitError, FileChange, Hunk, Patch, Plan};
use serde_json::json;

use crate::digest::digest_of;
use crate::remote::{Elsewhere, Mirror};

/// A patch against the files as they were when they were looked at.
#[derive(Debug)]
pub(super) struct Look {
    pub(super) plan: Plan,
    /// Where the files were brought to, if they are not on this machine.
    pub(super) mirror: Option<(Elsewhere, Patch, Mirror)>,
    pub(super) standing: Standing,
}

/// How the files of a patch stand to what the sandbox lets be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Standing {
    /// Nothing speaks against it; also where the files are not on this machine.
    Inside,
    Outside,
    /// This file decides about the next start of an agent or of git, or belongs to this program.
    Protected(PathBuf),
}

impl Standing {
    pub(super) fn of(plan: &Plan, reach: &Boundary) -> Self {
        match plan.check(reach) {
            Err(CommitError::Protected(path)) => Self::Protected(path),
            Err(CommitError::Outside(_)) => Self::Outside,
            // What is reached through a link is refused when it comes to writing.
            Ok(()) | Err(_) => Self::Inside,
        }
    }

    /// What to say to whoever is asked.
    pub(super) fn concern(&self) -> Option<String> {
        let Self::Protected(path) = self else { return None };
        Some(format!("{} is protected: it decides what agents or git do later", patch::shown(path)))
    }
}

impl Look {
    pub(super) fn targets(&self) -> Vec<PathBuf> {
        match &self.mirror {
            Some((_, _, mirror)) => mirror.targets(),
            None => self.plan.targets().map(Path::to_owned).collect(),
        }
    }

    pub(super) fn changes(&self) -> Vec<FileChange> {
        let mut changes = self.plan.changes();
        let Some((_, _, mirror)) = &self.mirror else { return changes };
        for change in &mut changes {
            change.path = mirror.there(&change.path);
            if let ChangeKind::Update { move_path: Some(path), .. } = &mut change.kind {
                *path = mirror.there(path);
            }
        }
        changes
    }

    pub(super) fn digest(&self) -> String {
        match &self.mirror {
            Some((place, patch, mirror)) => {
                digest_of(&json!([place.json(), format!("{patch:?}"), mirror.json()]))
            }
            None => {
                let hex: String = self.plan.digest().iter().map(|byte| format!("{byte:02x}")).collect();
                format!("sha256:{hex}")
            }
        }
    }

    /// What the model is told once it is done: its own paths.
    pub(super) fn summary(&self) -> String {
        let Some((_, patch, _)) = &self.mirror else { return self.plan.summary() };
        let mut text = String::from("Success. Updated the following files:\n");
        for wanted in ['A', 'M', 'D'] {
            let named = patch.hunks.iter().map(|hunk| match hunk {
                Hunk::Add { path, .. } => ('A', path),
                Hunk::Update { path, move_to, .. } => ('M', move_to.as_ref().unwrap_or(path)),
                Hunk::Delete { path } => ('D', path),
            });
            for (kind, path) in named.filter(|(kind, _)| *kind == wanted) {
                text.push_str(&format!("{kind} {}\n", patch::shown(Path::new(path))));
            }
        }
        text
    }
}

/// Why a patch that was decided about is not applied.
#[derive(Debug)]
pub(super) enum Problem {
    Commit(CommitError),
    /// The environment cannot be reached, or was lost.
    Place(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Commit(error) => error.fmt(f),
            Self::Place(sentence) => f.write_str(sentence),
        }
    }
}
