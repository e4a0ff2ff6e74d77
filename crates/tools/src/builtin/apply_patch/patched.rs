//! The outcome of a patch, for the model and for clients.

use std::path::Path;
use std::time::Instant;

use engine::ToolOutcome;
use patch::{Applied, ChangeKind, PlannedChange};
use protocol::{
    FileChangeOutputDeltaNotification, FileUpdateChange, ItemId, PatchApplyStatus, PatchChangeKind,
    ServerNotification, ThreadItem,
};
use serde_json::json;

use super::patching::Patching;
use super::preview::{PatchPreview, PatchProblem};
use crate::turn_diffs::repository;

/// The outcome of a patch.
pub(super) enum Patched {
    /// A client declined. Its item has ended.
    Declined,
    /// The policy refused. Clients see the item end as declined, with the model's reason.
    Refused {
        reason: String,
        item: ThreadItem,
    },
    Tried(TriedPatch),
}

/// A patch that was applied, or failed.
pub(super) struct TriedPatch {
    /// The text for the model, in the form of a command's output.
    pub(super) said: String,
    pub(super) item: ThreadItem,
    pub(super) diff: Option<String>,
    pub(super) success: bool,
    pub(super) seconds: f64,
}

impl Patched {
    /// `form` selects the layout of the shell tools: lines or JSON.
    pub(super) fn outcome(self, form: impl FnOnce(String, String) -> String) -> ToolOutcome {
        let TriedPatch { said, item, diff, success, seconds } = match self {
            Self::Tried(tried) => tried,
            Self::Declined => return ToolOutcome::failure("patch rejected by user"),
            Self::Refused { reason, item } => {
                return ToolOutcome { item: Some(Box::new(item)), ..ToolOutcome::failure(reason) };
            }
        };
        let code = i32::from(!success);
        let lines = format!("Exit code: {code}\nWall time: {seconds:.1} seconds\nOutput:\n{said}");
        let tenths = (seconds * 10.0).round() / 10.0;
        let json = json!({ "output": said, "metadata": { "exit_code": code, "duration_seconds": tenths } });
        let text = form(lines, json.to_string());
        ToolOutcome { item: Some(Box::new(item)), diff, success, ..ToolOutcome::text(text) }
    }
}

impl Patching<'_> {
    /// `reason`: why it was refused or failed.
    pub(super) fn item(
        &self,
        changes: &[PlannedChange],
        status: PatchApplyStatus,
        reason: Option<String>,
    ) -> ThreadItem {
        let changes = changes.iter().map(wire_change).collect();
        ThreadItem::FileChange { id: ItemId::new(self.cx.call_id()), changes, status, reason }
    }

    /// Shows clients a patch that is refused without a question. `number` counts the proposals before it.
    pub(super) async fn refused(&self, preview: &PatchPreview, number: u32, reason: String) -> Patched {
        let changes = preview.changes();
        if number == 0 {
            let begun = self.item(&changes, PatchApplyStatus::InProgress, None);
            let cx = self.cx;
            cx.notify(cx.bench().options().item_started(cx.thread_id(), cx.turn_id(), begun)).await;
        }
        let item = self.item(&changes, PatchApplyStatus::Declined, Some(reason.clone()));
        Patched::Refused { reason, item }
    }

    pub(super) async fn finished(
        &self,
        preview: PatchPreview,
        shown: &[PlannedChange],
        applied: &Applied,
        began: Instant,
    ) -> Patched {
        let said = preview.summary();
        self.cx
            .notify(ServerNotification::FileChangeOutputDelta(FileChangeOutputDeltaNotification {
                thread_id: self.cx.thread_id().clone(),
                turn_id: self.cx.turn_id().clone(),
                item_id: ItemId::new(self.cx.call_id()),
                delta: said.clone(),
            }))
            .await;
        Patched::Tried(TriedPatch {
            said,
            item: self.item(shown, PatchApplyStatus::Completed, None),
            diff: Some(self.diff(preview, applied)),
            success: true,
            seconds: began.elapsed().as_secs_f64(),
        })
    }

    /// The diff of the whole turn, including this patch.
    fn diff(&self, preview: PatchPreview, applied: &Applied) -> String {
        let (diffs, turn_id) = (self.cx.bench().diffs(), self.cx.turn_id());
        let Some((place, _, mirror)) = preview.mirror else {
            return diffs.note(turn_id, None, || repository(self.cx.cwd()), applied);
        };
        let repository = || mirror.repository().map(Path::to_owned);
        let diff = diffs.note(turn_id, Some(place.id()), repository, applied);
        mirror.discard();
        diff
    }

    pub(super) fn failed(&self, shown: &[PlannedChange], problem: &PatchProblem, began: Instant) -> Patched {
        Patched::Tried(TriedPatch {
            said: format!("{problem}\n"),
            item: self.item(shown, PatchApplyStatus::Failed, Some(problem.to_string())),
            diff: None,
            success: false,
            seconds: began.elapsed().as_secs_f64(),
        })
    }
}

fn wire_change(change: &PlannedChange) -> FileUpdateChange {
    let kind = match &change.kind {
        ChangeKind::Add { .. } => PatchChangeKind::Add,
        ChangeKind::Delete { .. } => PatchChangeKind::Delete,
        ChangeKind::Update { move_path, .. } => {
            PatchChangeKind::Update { move_path: move_path.as_ref().map(|path| path.display().to_string()) }
        }
    };
    FileUpdateChange { path: change.path.display().to_string(), kind, diff: change.diff() }
}
