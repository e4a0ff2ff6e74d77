//! The changes of a plan, as shown to clients.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::names::shown;
use crate::slot::TouchedFile;
use crate::unified::{deadline, unified};

/// One changed file. The path is absolute; behind a symbolic link it is the resolved one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedChange {
    pub path: PathBuf,
    pub kind: ChangeKind,
}

/// The kind of change to the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeKind {
    Add { content: String },
    Delete { content: String },
    Update { unified_diff: String, move_path: Option<PathBuf> },
}

impl PlannedChange {
    /// The text of the change for a file-change item.
    #[must_use]
    pub fn diff(&self) -> String {
        match &self.kind {
            ChangeKind::Add { content } | ChangeKind::Delete { content } => content.clone(),
            ChangeKind::Update { unified_diff, move_path: None } => unified_diff.clone(),
            ChangeKind::Update { unified_diff, move_path: Some(path) } => {
                format!("{unified_diff}\n\nMoved to: {}", shown(path))
            }
        }
    }
}

pub(crate) fn changes(slots: &BTreeMap<PathBuf, TouchedFile>) -> Vec<PlannedChange> {
    let (moves, deadline) = (moves(slots), deadline());
    let mut changes: Vec<PlannedChange> = slots
        .values()
        .filter_map(|slot| {
            let kind = match moves.get(slot.at.real.as_path()) {
                Some(destination) => moved(slot, destination, deadline),
                // A destination is shown with its source.
                None if slot.moved_from().is_some_and(|from| moves.contains_key(from.as_path())) => {
                    return None;
                }
                None => stayed(slot, deadline)?,
            };
            Some(PlannedChange { path: shown_place(slot).to_owned(), kind })
        })
        .collect();
    changes.sort_by(|one, other| one.path.cmp(&other.path));
    changes
}

/// The moved files, with the slot that has them now.
fn moves(slots: &BTreeMap<PathBuf, TouchedFile>) -> BTreeMap<&Path, &TouchedFile> {
    slots
        .values()
        .filter_map(|slot| {
            let source = slots.get(slot.moved_from()?).filter(|source| source.now.is_none())?;
            Some((source.at.real.as_path(), slot))
        })
        .collect()
}

fn moved(source: &TouchedFile, destination: &TouchedFile, deadline: Instant) -> ChangeKind {
    let old = source.found.as_ref().map_or(&[][..], |found| &found.bytes);
    let new = destination.now.as_ref().map_or(&[][..], |now| &now.bytes);
    ChangeKind::Update {
        unified_diff: unified(&text(old), &text(new), 1, deadline),
        move_path: Some(shown_place(destination).to_owned()),
    }
}

fn stayed(slot: &TouchedFile, deadline: Instant) -> Option<ChangeKind> {
    match (&slot.found, &slot.now) {
        (None, None) => None,
        (Some(found), None) => Some(ChangeKind::Delete { content: text(&found.bytes) }),
        (Some(found), Some(now)) if now.origin.is_some() => Some(ChangeKind::Update {
            unified_diff: unified(&text(&found.bytes), &text(&now.bytes), 1, deadline),
            move_path: None,
        }),
        // A replaced file is an addition for clients, whether or not it existed.
        (_, Some(now)) => Some(ChangeKind::Add { content: text(&now.bytes) }),
    }
}

fn shown_place(slot: &TouchedFile) -> &Path {
    if slot.at.linked { &slot.at.real } else { &slot.at.path }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
