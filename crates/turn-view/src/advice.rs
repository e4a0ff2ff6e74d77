//! The flag that would have allowed what was refused.

use terminal::{FailedWork, WriteAccess};

use crate::items::{WorkItem, WorkKind, WorkStatus};

/// Nothing where the work did what it should, or where no flag would have helped.
pub(crate) fn advice(work: &WorkItem, access: WriteAccess) -> Option<&'static str> {
    let is_edit = match work.kind {
        _ if work.standing != WorkStatus::Failed => return None,
        WorkKind::Edit => true,
        WorkKind::Command => false,
        WorkKind::Other => return None,
    };
    let failed = FailedWork {
        is_edit,
        is_refused: work.is_refused,
        output: work.output.as_deref().unwrap_or_default(),
        reason: work.reason.as_deref().unwrap_or_default(),
    };
    terminal::advice(&failed, access).map(|advice| advice.flag)
}
