//! Patches inside a command line.

use std::path::Path;

use engine::ToolOutcome;
use patch::Invocation;

use super::patching::Patching;
use crate::{ToolCx, ToolError};

/// Applies a patch that a command contains, instead of running the command. `None` for every other command.
pub(crate) async fn intercept(
    argv: &[String],
    cwd: &Path,
    cx: &ToolCx,
) -> Option<Result<ToolOutcome, ToolError>> {
    let (text, dir) = match patch::invocation(argv) {
        Invocation::None => return None,
        Invocation::Implicit => return Some(Err(ToolError::Refused(patch::IMPLICIT_REFUSAL.to_owned()))),
        Invocation::Patch { text, dir } => (text, dir),
    };
    if cx.bench().options().no_patches {
        return Some(Err(ToolError::Refused("patches are not applied in this thread".to_owned())));
    }
    let base = dir.map_or_else(|| cwd.to_owned(), |dir| cwd.join(dir));
    let applied = match (Patching { cx, base, elsewhere: cx.elsewhere() }).apply(text).await {
        Ok(applied) => applied,
        Err(error) => return Some(Err(error)),
    };
    let mut outcome = match cx.name() {
        "shell_command" => applied.outcome(|text, _| text),
        "exec_command" => applied.outcome(|_, json| format!("Wall time: 0.0000 seconds\nOutput:\n{json}")),
        _ => applied.outcome(|_, json| json),
    };
    outcome.note =
        Some(format!("a patch was sent through {}. Send the next one with apply_patch itself.", cx.name()));
    Some(Ok(outcome))
}
