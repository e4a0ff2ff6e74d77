//! `exec`: a script that calls other tools. It may continue after the call has returned; `wait` reads it again.

use std::time::Duration;

use engine::{ToolOutcome, ToolPayload, ToolSpec};
use protocol::{FunctionCallOutputContentItem, ThreadItem};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::RUN_SCRIPTS;
use super::authorize::{authorize, outcome};
use super::kernel::{KernelProgram, NodeKernel};
use super::pragma::script;
use super::run::{Follow, Followed, ScriptOutput, body_of, callable, follow, identifier, texts_of};
use super::scripts::{Cell, Scripts};
use crate::builtin::exec_command::max_tokens;
use crate::schema::{freeform_json, parse_function};
use crate::{BuiltinTool, Offer, Standing, ToolCx, ToolError};

const FEATURE: &str = "code_mode";
const WAIT_MS: u64 = 10_000;
/// Limit of one call's wait.
const LONGEST_WAIT: Duration = Duration::from_secs(300);
const GRAMMAR: &str = r"
start: pragma_source | plain_source
pragma_source: PRAGMA_LINE NEWLINE SOURCE
plain_source: SOURCE

PRAGMA_LINE: /[ \t]*\/\/ @exec:[^\r\n]*/
NEWLINE: /\r?\n/
SOURCE: /[\s\S]+/
";

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    /// JavaScript source.
    input: String,
}

#[derive(Debug, Clone, Copy)]
pub struct ScriptExec;

pub(super) fn standing(offer: &Offer) -> Standing {
    Standing::offered_if(offer.has_feature(FEATURE) && offer.node && offer.freeform)
}

impl BuiltinTool for ScriptExec {
    const NAME: &'static str = "exec";
    const ABOUT: &'static str = include_str!("exec.md");
    const NEEDS_PLACE: bool = true;
    const ASKS: bool = true;
    type Args = Args;

    fn standing(offer: &Offer) -> Standing {
        standing(offer)
    }

    fn spec(_offer: &Offer) -> Value {
        freeform_json(Self::NAME, Self::ABOUT, GRAMMAR)
    }

    fn parse(payload: ToolPayload) -> Result<Args, ToolError> {
        match payload {
            ToolPayload::Custom { input } => Ok(Args { input }),
            function => parse_function(Self::NAME, function),
        }
    }

    async fn call(&self, args: Args, cx: &ToolCx) -> Result<ToolOutcome, ToolError> {
        let (code, options) = script(&args.input)?;
        let unless_returned = cx.scope().cancel_on_drop();
        let cleared = match authorize(cx, code).await {
            Ok(cleared) => cleared,
            Err(refused) => return refused.into_result(),
        };
        let (began, item) = (Instant::now(), cleared.item().clone());
        let stored = Scripts::of(cx).stored.lock().clone();
        let message = json!({"kind": "run", "code": code, "tools": callable(cx), "stored": stored});
        let started = match NodeKernel::start(cleared, KernelProgram::Script).await {
            Ok(kernel) => kernel.send(&message).await.map(|()| kernel),
            Err(problem) => Err(problem),
        };
        let cell = match started {
            Ok(kernel) => Cell { kernel, output: ScriptOutput::default(), began, began_in: cx.shared_step() },
            Err(problem) => return Err(ToolError::Failed(problem)),
        };
        let id = Scripts::of(cx).next_id();
        let wait = wait_of(options.yield_time_ms);
        let looked = look(cx, (id, cell), wait, max_tokens(cx, options.max_output_tokens)).await;
        unless_returned.disarm();
        Ok(looked.outcome(Some(item), began.elapsed()))
    }
}

pub(super) fn wait_of(wanted_ms: Option<u64>) -> Duration {
    Duration::from_millis(wanted_ms.unwrap_or(WAIT_MS)).min(LONGEST_WAIT)
}

/// A script's state for one call.
pub(super) struct CellReport {
    pub(super) head: String,
    pub(super) parts: Vec<FunctionCallOutputContentItem>,
    pub(super) is_success: bool,
}

impl CellReport {
    pub(super) fn new(state: &str, wall: Duration, parts: Vec<FunctionCallOutputContentItem>) -> Self {
        let head = format!("{state}\nWall time {:.1} seconds\nOutput:\n", wall.as_secs_f64());
        Self { head, parts, is_success: true }
    }

    pub(super) fn failed(wall: Duration, mut parts: Vec<FunctionCallOutputContentItem>, error: &str) -> Self {
        let text = format!("Script error:\n{error}");
        parts.push(FunctionCallOutputContentItem::InputText { text });
        Self { is_success: false, ..Self::new("Script failed", wall, parts) }
    }

    pub(super) fn outcome(self, item: Option<ThreadItem>, duration: Duration) -> ToolOutcome {
        let shown = format!("{}{}", self.head, texts_of(&self.parts));
        let mut parts = vec![FunctionCallOutputContentItem::InputText { text: self.head }];
        parts.extend(self.parts);
        let body = body_of(parts);
        match item {
            Some(item) => outcome(item, shown, body, (self.is_success, duration)),
            None => ToolOutcome { output: body, success: self.is_success, ..ToolOutcome::text("") },
        }
    }
}

/// Follows a script for a while. One that continues is kept under its id.
pub(super) async fn look(
    cx: &ToolCx,
    (id, cell): (u64, Cell),
    limit: Duration,
    max_tokens: usize,
) -> CellReport {
    let Cell { mut kernel, mut output, began, began_in } = cell;
    let room = max_tokens.saturating_mul(4);
    let following = Follow { cx, began_in: &began_in, output: &mut output, limit, plain_answers: true };
    let followed = follow(&mut kernel, following).await;
    output.push_text(&kernel.take_stray());
    let parts = output.take(room);
    match followed {
        Followed::Done { failed: false, .. } => CellReport::new("Script completed", began.elapsed(), parts),
        Followed::Done { text, .. } => CellReport::failed(began.elapsed(), parts, &text),
        Followed::Lost(problem) => CellReport::failed(began.elapsed(), parts, &problem),
        Followed::Yielded | Followed::TimeIsUp => {
            let wall = began.elapsed();
            Scripts::of(cx).keep(id, Cell { kernel, output, began, began_in });
            CellReport::new(&format!("Script running with cell ID {id}"), wall, parts)
        }
    }
}

/// Adds the tools that scripts can call to the description of `exec`, for a model that does not get them in the list.
pub fn describe_to_scripts(tools: &mut [ToolSpec]) {
    let mut sections = String::new();
    for tool in tools.iter().filter(|tool| !RUN_SCRIPTS.contains(&tool.name.as_str())) {
        let Some(json) = tool.json.as_deref() else { continue };
        let about = json["description"].as_str().unwrap_or_default();
        let name = match &tool.namespace {
            Some(group) => identifier(&format!("{}.{}", group.name, tool.name)),
            None => identifier(&tool.name),
        };
        let takes = match json["type"].as_str() {
            Some("function") => format!("an object that fits {}", json["parameters"]),
            Some("custom") => "a string".to_owned(),
            _ => continue,
        };
        sections.push_str(&format!("\n\n### `tools.{name}`\n{about}\nTakes {takes}"));
    }
    let exec = tools.iter_mut().find(|tool| tool.name == ScriptExec::NAME && tool.namespace.is_none());
    if let Some(json) = exec.and_then(|tool| tool.json.as_mut()) {
        let mut described = (**json).clone();
        described["description"] = json!(format!("{}{sections}", ScriptExec::ABOUT));
        *json = described.into();
    }
}
