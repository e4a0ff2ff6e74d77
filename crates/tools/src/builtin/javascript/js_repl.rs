//! `js_repl`: JavaScript in a kernel that keeps its bindings between calls.

use engine::{ToolOutcome, ToolPayload};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::authorize::{authorize, outcome};
use super::kernel::{KernelProgram, NodeKernel};
use super::pragma::repl_cell;
use super::run::{Follow, Followed, ScriptOutput, body_of, follow, texts_of};
use super::scripts::Scripts;
use crate::files::shown::room;
use crate::schema::{freeform_json, parse_function};
use crate::{BuiltinTool, Offer, Standing, ToolCx, ToolError};

const FEATURE: &str = "js_repl";
const TIMED_OUT: &str = "js_repl execution timed out; kernel reset, rerun your request";
const MOVED: &str = "[js_repl: the kernel was started anew because this thread's permissions changed; earlier bindings are \
    gone]\n";
const GRAMMAR: &str = r#"
start: pragma_source | plain_source

pragma_source: PRAGMA_LINE NEWLINE js_source
plain_source: PLAIN_JS_SOURCE

js_source: JS_SOURCE

PRAGMA_LINE: /[ \t]*\/\/ codex-js-repl:[^\r\n]*/
NEWLINE: /\r?\n/
PLAIN_JS_SOURCE: /(?:\s*)(?:[^\s{\"`]|`[^`]|``[^`])[\s\S]*/
JS_SOURCE: /(?:\s*)(?:[^\s{\"`]|`[^`]|``[^`])[\s\S]*/
"#;

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    /// JavaScript source.
    input: String,
}

#[derive(Debug, Clone, Copy)]
pub struct JsRepl;

pub(super) fn standing(offer: &Offer) -> Standing {
    Standing::offered_if(offer.has_feature(FEATURE) && offer.node && offer.freeform)
}

impl BuiltinTool for JsRepl {
    const NAME: &'static str = "js_repl";
    const ABOUT: &'static str = "Runs JavaScript in a persistent Node kernel with top-level await. This is a freeform \
        tool: send raw JavaScript source text, optionally with a first-line pragma like \
        `// codex-js-repl: timeout_ms=15000`; do not send JSON/quotes/markdown fences.";
    const PROMPT: Option<&'static str> = Some(include_str!("js_repl.md"));
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
        let (code, limit) = repl_cell(&args.input)?;
        let scripts = Scripts::of(cx);
        // Cancelling the call ends the kernel with its cell: how far the cell had run is unknown.
        let unless_returned = cx.scope().cancel_on_drop();
        let mut slot = scripts.repl.lock().await;
        let cleared = match authorize(cx, code).await {
            Ok(cleared) => cleared,
            Err(refused) => return refused.into_result(),
        };
        let began = Instant::now();
        let item = cleared.item().clone();
        let mut output = ScriptOutput::default();
        let running = slot.take();
        let is_alive = running.as_ref().is_some_and(NodeKernel::is_alive);
        let started = match running.filter(|kernel| kernel.fits(&cleared)) {
            Some(kernel) => Ok(kernel),
            None => {
                if is_alive {
                    output.push_text(MOVED);
                }
                NodeKernel::start(cleared, KernelProgram::Repl).await
            }
        };
        let ran = match started {
            Ok(mut kernel) => {
                scripts.watch_repl(kernel.process());
                let ran = run_cell(&mut kernel, cx, code, &mut output, limit).await;
                output.push_text(&kernel.take_stray());
                match ran {
                    Ok(failure) => {
                        *slot = Some(kernel);
                        failure
                    }
                    // Dropping the kernel ends it.
                    Err(problem) => Some(problem),
                }
            }
            Err(problem) => Some(problem),
        };
        unless_returned.disarm();
        let is_success = ran.is_none();
        output.push_text(&ran.unwrap_or_default());
        let mut parts = output.take(room(cx.step()));
        join_texts(&mut parts);
        Ok(outcome(item, texts_of(&parts), body_of(parts), (is_success, began.elapsed())))
    }
}

/// The error of the cell, if it failed. `Err`: the kernel is broken.
async fn run_cell(
    kernel: &mut NodeKernel,
    cx: &ToolCx,
    code: &str,
    output: &mut ScriptOutput,
    limit: std::time::Duration,
) -> Result<Option<String>, String> {
    let lost = |problem: String| {
        format!("js_repl kernel was lost and is started anew with the next call: {problem}")
    };
    kernel.send(&json!({"kind": "cell", "code": code})).await.map_err(lost)?;
    let began_in = &cx.shared_step();
    match follow(kernel, Follow { cx, began_in, output, limit, plain_answers: false }).await {
        Followed::Done { failed, text } => Ok(failed.then_some(text)),
        Followed::TimeIsUp => Err(TIMED_OUT.to_owned()),
        Followed::Lost(problem) if problem.starts_with("js_repl kernel") => Err(problem),
        Followed::Lost(problem) => Err(lost(problem)),
        Followed::Yielded => Err(lost("it yielded".to_owned())),
    }
}

/// Joins the texts of a cell; images follow them.
fn join_texts(parts: &mut Vec<protocol::FunctionCallOutputContentItem>) {
    let text = texts_of(parts);
    parts.retain(|part| !matches!(part, protocol::FunctionCallOutputContentItem::InputText { .. }));
    let text = text.strip_suffix('\n').unwrap_or(&text).to_owned();
    if !text.is_empty() {
        parts.insert(0, protocol::FunctionCallOutputContentItem::InputText { text });
    }
}
