//! `wait`: reads a script of `exec` that is still running.

use std::time::Duration;

use engine::ToolOutcome;
use schemars::JsonSchema;
use serde::Deserialize;

use super::script_exec::{CellReport, look, standing, wait_of};
use super::scripts::Scripts;
use crate::builtin::exec_command::max_tokens;
use crate::{BuiltinTool, Offer, Standing, ToolCx, ToolError};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Of the script, from `Script running with cell ID ...`.
    cell_id: String,
    /// How many milliseconds to wait for more output. Default: 10000.
    yield_time_ms: Option<u64>,
    /// How much output to return at most. Default: 10000.
    max_tokens: Option<u64>,
    /// End the script instead.
    terminate: Option<bool>,
}

#[derive(Debug, Clone, Copy)]
pub struct ScriptWait;

impl BuiltinTool for ScriptWait {
    const NAME: &'static str = "wait";
    const ABOUT: &'static str = "Waits for a script of `exec` that returned `Script running with cell ID ...`. Returns \
        the output since the last look, and whether the script has ended. `terminate: true` ends it instead.";
    const NEEDS_PLACE: bool = true;
    type Args = Args;

    fn standing(offer: &Offer) -> Standing {
        standing(offer)
    }

    async fn call(&self, args: Args, cx: &ToolCx) -> Result<ToolOutcome, ToolError> {
        let scripts = Scripts::of(cx);
        let id = args.cell_id.trim().parse().ok();
        let Some((id, mut cell)) = id.and_then(|id| Some((id, scripts.take(id)?))) else {
            let error = format!("exec cell {} not found", args.cell_id);
            return Ok(CellReport::failed(Duration::ZERO, Vec::new(), &error).outcome(None, Duration::ZERO));
        };
        let limit = max_tokens(cx, args.max_tokens);
        let began = cell.began;
        let looked = match args.terminate.unwrap_or(false) {
            true => {
                cell.kernel.kill();
                let parts = cell.output.take(limit.saturating_mul(4));
                CellReport::new("Script terminated", began.elapsed(), parts)
            }
            // Dropping the call drops the cell, and ends it.
            false => look(cx, (id, cell), wait_of(args.yield_time_ms), limit).await,
        };
        Ok(looked.outcome(None, began.elapsed()))
    }
}
