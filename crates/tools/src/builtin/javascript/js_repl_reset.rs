//! `js_repl_reset`: ends the kernel of `js_repl`. The next cell starts another.

use engine::ToolOutcome;
use schemars::JsonSchema;
use serde::Deserialize;

use super::js_repl::standing;
use super::scripts::Scripts;
use crate::tool::text;
use crate::{BuiltinTool, Offer, Standing, ToolCx, ToolError};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {}

#[derive(Debug, Clone, Copy)]
pub struct JsReplReset;

impl BuiltinTool for JsReplReset {
    const NAME: &'static str = "js_repl_reset";
    const ABOUT: &'static str =
        "Restarts the js_repl kernel for this run and clears persisted top-level bindings.";
    type Args = Args;

    fn standing(offer: &Offer) -> Standing {
        standing(offer)
    }

    async fn call(&self, _: Args, cx: &ToolCx) -> Result<ToolOutcome, ToolError> {
        if let Some(kernel) = Scripts::of(cx).repl.lock().await.take() {
            kernel.kill();
        }
        Ok(text("js_repl kernel reset"))
    }
}
