//! `apply_patch`: changes files by a patch, all or nothing.

mod ask;
mod intercept;
mod patched;
mod patching;
mod preview;
#[cfg(test)]
mod tests;

use engine::{ToolOutcome, ToolPayload};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::offer::{Offer, PatchForm, Standing};
use crate::schema::{freeform_json, function_json, parse_function};
use crate::{BuiltinTool, ToolCx, ToolError};
use patching::Patching;

pub(crate) use intercept::intercept;

/// A separate description, because the free form has no parameters to describe.
const ABOUT_FREEFORM: &str =
    "Change files by a patch. The input is the patch itself, as free text, not wrapped in JSON.";
/// The patch grammar, as model providers read it.
const GRAMMAR: &str = include_str!("apply_patch.lark");

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// The whole patch, from `*** Begin Patch` to `*** End Patch`.
    input: String,
}

#[derive(Debug, Clone, Copy)]
pub struct ApplyPatch;

impl BuiltinTool for ApplyPatch {
    const NAME: &'static str = "apply_patch";
    const ABOUT: &'static str = "Change files by a patch:\n\n\
        *** Begin Patch\n\
        *** Add File: path/of/new.txt\n\
        +every line of it\n\
        *** Update File: path/of/old.txt\n\
        *** Move to: path/of/renamed.txt\n\
        @@ optional: the function or class\n \
        a line that stays\n\
        -a line that goes\n\
        +a line that comes\n\
        *** Delete File: path/of/gone.txt\n\
        *** End Patch";
    const PROMPT: Option<&'static str> = Some(include_str!("apply_patch.md"));
    const NEEDS_PLACE: bool = true;
    const ASKS: bool = true;
    type Args = Args;

    fn standing(offer: &Offer) -> Standing {
        Standing::offered_if(offer.patch.is_some())
    }

    fn spec(offer: &Offer) -> Value {
        if offer.patch == Some(PatchForm::Function) {
            return function_json::<Args>(Self::NAME, Self::ABOUT);
        }
        freeform_json(Self::NAME, ABOUT_FREEFORM, GRAMMAR)
    }

    /// Models confuse the two forms; both are accepted.
    fn parse(payload: ToolPayload) -> Result<Args, ToolError> {
        match payload {
            ToolPayload::Custom { input } => Ok(Args { input }),
            function @ (ToolPayload::Function { .. } | ToolPayload::Search { .. }) => {
                parse_function(Self::NAME, function)
            }
        }
    }

    async fn call(&self, args: Args, cx: &ToolCx) -> Result<ToolOutcome, ToolError> {
        apply(cx, args.input).await
    }
}

/// Applies a patch for a call: shown, decided, recorded, all or nothing.
pub(crate) async fn apply(cx: &ToolCx, patch: String) -> Result<ToolOutcome, ToolError> {
    let patching = Patching { cx, base: cx.cwd().to_owned(), elsewhere: cx.elsewhere() };
    Ok(patching.apply(patch).await?.outcome(|text, _| text))
}
