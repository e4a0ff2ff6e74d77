//! The planned effect of a patch, here or in another environment, with that environment's paths.

use std::fmt;
use std::path::{Path, PathBuf};

use patch::{Boundary, ChangeKind, CommitError, Hunk, Patch, PatchPlan, PlannedChange};
use serde_json::json;

use crate::digest::digest_of;
use crate::remote::{Elsewhere, Mirror};

/// A patch planned against the current files.
#[derive(Debug)]
pub(super) struct PatchPreview {
    pub(super) plan: PatchPlan,
    /// The local copies of the files, if they are not on this machine.
    pub(super) mirror: Option<(Elsewhere, Patch, Mirror)>,
    pub(super) standing: PatchScope,
}

/// A patch's files compared with the writable folders of the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PatchScope {
    /// No objection; also used if the files are not on this machine.
    Inside,
    Outside,
    /// This file controls the next start of an agent or of git, or belongs to this program.
    Protected(PathBuf),
}

impl PatchScope {
    pub(super) fn of(plan: &PatchPlan, reach: &Boundary) -> Self {
        match plan.check(reach) {
            Err(CommitError::Protected(path)) => Self::Protected(path),
            Err(CommitError::Outside(_)) => Self::Outside,
            // A target behind a link is refused on writing.
            Ok(()) | Err(_) => Self::Inside,
        }
    }

    /// The reason for the question.
    pub(super) fn concern(&self) -> Option<String> {
        let Self::Protected(path) = self else { return None };
        Some(format!("{} is protected: it decides what agents or git do later", patch::shown(path)))
    }
}

impl PatchPreview {
    pub(super) fn targets(&self) -> Vec<PathBuf> {
        match &self.mirror {
            Some((_, _, mirror)) => mirror.targets(),
            None => self.plan.targets().map(Path::to_owned).collect(),
        }
    }

    pub(super) fn changes(&self) -> Vec<PlannedChange> {
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
            None => format!("sha256:{}", data_encoding::HEXLOWER.encode(&self.plan.digest())),
        }
    }

    /// The summary for the model after the patch is applied, with the model's paths.
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

/// Why an approved patch is not applied.
#[derive(Debug)]
pub(super) enum PatchProblem {
    Commit(CommitError),
    /// The environment cannot be reached, or the connection was lost.
    Place(String),
}

impl fmt::Display for PatchProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Commit(error) => error.fmt(f),
            Self::Place(sentence) => f.write_str(sentence),
        }
    }
}
