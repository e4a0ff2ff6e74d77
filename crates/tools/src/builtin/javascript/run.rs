//! Follows a running script for a call: collects its output, runs its nested calls, checks the time limit.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use engine::{Step, ToolCall, ToolKind, ToolPayload, Truncation, truncate_middle};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use protocol::{FunctionCallOutputBody, FunctionCallOutputContentItem, ImageDetail};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::RUN_SCRIPTS;
use super::kernel::{CallAnswer, KernelMessage, NodeKernel};
use super::scripts::Scripts;
use crate::{BoxFuture, ToolCx};

/// Limit of the kept output of a script.
const MOST_TEXT: usize = 1 << 20;
const MOST_IMAGES: usize = 16;
const MOST_IMAGE_BYTES: usize = 32 << 20;
/// Limit of all values that a thread's scripts store.
const MOST_STORED: usize = 1 << 20;
/// Limit of open calls of one script.
const MOST_CALLS: usize = 16;

/// The output of a script since the last report.
#[derive(Debug, Default)]
pub(super) struct ScriptOutput {
    parts: Vec<FunctionCallOutputContentItem>,
    text_bytes: usize,
    image_bytes: usize,
    images: usize,
    is_cut: bool,
}

/// Why a call stops waiting.
#[derive(Debug)]
pub(super) enum Followed {
    Done {
        failed: bool,
        text: String,
    },
    /// The script yields and continues in the background.
    Yielded,
    TimeIsUp,
    /// The process ended, or broke the protocol.
    Lost(String),
}

impl ScriptOutput {
    pub(super) fn push_text(&mut self, text: &str) {
        let left = MOST_TEXT - self.text_bytes;
        if text.len() > left {
            self.is_cut = true;
        }
        let text = crate::files::shown::cut(text, left);
        self.text_bytes += text.len();
        if !text.is_empty() {
            self.parts.push(FunctionCallOutputContentItem::InputText { text: text.to_owned() });
        }
    }

    fn push_image(&mut self, image_url: String, detail: Option<&str>) {
        self.images += 1;
        self.image_bytes += image_url.len();
        if self.images > MOST_IMAGES || self.image_bytes > MOST_IMAGE_BYTES {
            self.is_cut = true;
            return;
        }
        let detail = detail.filter(|detail| *detail == "original").map(|_| ImageDetail::Original);
        self.parts.push(FunctionCallOutputContentItem::InputImage { image_url, detail });
    }

    /// The parts, truncated for the model.
    pub(super) fn take(&mut self, room: usize) -> Vec<FunctionCallOutputContentItem> {
        let Self { parts, text_bytes, is_cut, .. } = std::mem::take(self);
        let mut parts = match text_bytes > room {
            false => parts,
            true => {
                let (texts, images): (Vec<_>, Vec<_>) =
                    parts.into_iter().partition(|part| text_in(part).is_some());
                let texts: Vec<_> = texts.iter().filter_map(text_in).collect();
                let text = truncate_middle(&texts.join("\n"), Truncation::Bytes(room));
                let mut cut = vec![FunctionCallOutputContentItem::InputText { text }];
                cut.extend(images);
                cut
            }
        };
        if is_cut {
            let text = "[the script wrote more than is kept]".to_owned();
            parts.push(FunctionCallOutputContentItem::InputText { text });
        }
        parts
    }
}

fn text_in(part: &FunctionCallOutputContentItem) -> Option<&str> {
    match part {
        FunctionCallOutputContentItem::InputText { text } => Some(text),
        FunctionCallOutputContentItem::InputImage { .. } => None,
    }
}

/// All texts, for the item.
pub(super) fn texts_of(parts: &[FunctionCallOutputContentItem]) -> String {
    parts.iter().filter_map(text_in).collect()
}

/// A single text if there is nothing else.
pub(super) fn body_of(mut parts: Vec<FunctionCallOutputContentItem>) -> FunctionCallOutputBody {
    match parts.as_mut_slice() {
        [] => FunctionCallOutputBody::Text(String::new()),
        [FunctionCallOutputContentItem::InputText { text }] => {
            FunctionCallOutputBody::Text(std::mem::take(text))
        }
        _ => FunctionCallOutputBody::Content(parts),
    }
}

/// Instead of an image that would have to be fetched.
const NO_LINK: &str = "[an image was left out: without network, images are given as data URLs]\n";

/// How to follow a script.
pub(super) struct Follow<'a> {
    pub(super) cx: &'a ToolCx,
    /// The step that the script started in, perhaps of an earlier turn: its calls run there.
    pub(super) began_in: &'a Arc<Step>,
    pub(super) output: &'a mut ScriptOutput,
    pub(super) limit: Duration,
    /// Scripts get plain values, not the wrapped output of a call.
    pub(super) plain_answers: bool,
}

/// Runs until the script has ended, yields, or its time is up. The time is paused while a nested call is open.
pub(super) async fn follow(kernel: &mut NodeKernel, follow: Follow<'_>) -> Followed {
    let Follow { cx, began_in, output, limit, plain_answers } = follow;
    let mut calls: FuturesUnordered<BoxFuture<'_, CallAnswer>> = FuturesUnordered::new();
    let (mut left, mut made, mut yields) = (limit, 0_usize, false);
    loop {
        if yields && calls.is_empty() {
            return Followed::Yielded;
        }
        let began = Instant::now();
        let is_timed = calls.is_empty();
        tokio::select! {
            biased;
            () = tokio::time::sleep(left), if is_timed => return Followed::TimeIsUp,
            Some(answer) = calls.next(), if !is_timed => {
                if let Err(problem) = kernel.send(&answer).await {
                    return Followed::Lost(problem);
                }
            }
            message = kernel.next() => match message {
                None => return Followed::Lost("its process ended".to_owned()),
                Some(Err(problem)) => return Followed::Lost(problem),
                Some(Ok(message)) => match message {
                    KernelMessage::Text { text } => output.push_text(&text),
                    KernelMessage::Image { url, detail } if kernel.may_show(&url) => {
                        output.push_image(url, detail.as_deref());
                    }
                    KernelMessage::Image { .. } => output.push_text(NO_LINK),
                    KernelMessage::Notify { text } => output.push_text(&text),
                    KernelMessage::Store { key, value } => store(cx, key, value),
                    KernelMessage::Yield => yields = true,
                    KernelMessage::Done { failed, text } => return Followed::Done { failed, text },
                    KernelMessage::Fatal { text } => return Followed::Lost(text),
                    KernelMessage::Call { number, name, arguments, is_text } => {
                        let payload = payload(cx, &name, arguments, is_text);
                        let call_id = format!("{}-tool-{made}", cx.call_id());
                        made += 1;
                        let refusal = refusal(&name, calls.len());
                        let answering = answer((cx, began_in), (call_id, name, payload), number, plain_answers);
                        calls.push(match refusal {
                            Some(text) => Box::pin(std::future::ready(failed(number, &text))),
                            None => Box::pin(answering),
                        });
                    }
                },
            }
        }
        if is_timed {
            left = left.saturating_sub(began.elapsed());
        }
    }
}

fn failed(number: u64, text: &str) -> CallAnswer {
    CallAnswer { kind: "answer", number, output: json!(text), is_error: true }
}

fn refusal(name: &str, open: usize) -> Option<String> {
    if RUN_SCRIPTS.contains(&name) {
        return Some(format!("{name} cannot be called from a script"));
    }
    (open >= MOST_CALLS).then(|| "too many calls at once: wait for some of them to end".to_owned())
}

/// Free text for a tool that takes it; for other tools the text is JSON.
fn payload(cx: &ToolCx, name: &str, arguments: String, is_text: bool) -> ToolPayload {
    let is_freeform = cx
        .step()
        .tool(name)
        .and_then(|tool| tool.json.as_deref())
        .is_some_and(|json| json["type"] == "custom");
    match is_text && is_freeform {
        true => ToolPayload::Custom { input: arguments },
        false => ToolPayload::Function { arguments },
    }
}

async fn answer(
    (cx, began_in): (&ToolCx, &Arc<Step>),
    (call_id, name, payload): (String, String, ToolPayload),
    number: u64,
    is_plain: bool,
) -> CallAnswer {
    // A tool of a group is called as `group.tool`, or by its identifier in scripts.
    let in_group = cx.step().tools.iter().find(|tool| {
        tool.namespace.as_ref().is_some_and(|group| format!("{}.{}", group.name, tool.name) == name)
    });
    let (namespace, name) = match in_group {
        Some(tool) => (tool.namespace.as_ref().map(|group| group.name.clone()), tool.name.clone()),
        None => (None, name),
    };
    let call = ToolCall { call_id: call_id.clone(), name, namespace, payload };
    let output = cx.sink().call_tool(call, began_in.clone()).await;
    let output = match output {
        FunctionCallOutputBody::Text(text) if is_plain => {
            // A JSON result is passed parsed.
            let parsed = serde_json::from_str::<Value>(&text).ok();
            parsed.filter(|value| value.is_object() || value.is_array()).unwrap_or(Value::String(text))
        }
        FunctionCallOutputBody::Content(parts) if is_plain => json!(parts),
        FunctionCallOutputBody::Text(text) => json!({"callId": call_id, "output": text}),
        FunctionCallOutputBody::Content(parts) => json!({"callId": call_id, "output": parts}),
    };
    CallAnswer { kind: "answer", number, output, is_error: false }
}

/// Stores a value for later scripts. Values over the limit are dropped.
fn store(cx: &ToolCx, key: String, value: Value) {
    let scripts = Scripts::of(cx);
    let mut stored = scripts.stored.lock();
    let size = |values: &BTreeMap<String, Value>| -> usize {
        values.iter().map(|(key, value)| key.len() + value.to_string().len()).sum()
    };
    let before = stored.insert(key.clone(), value);
    if size(&stored) > MOST_STORED {
        match before {
            Some(before) => drop(stored.insert(key, before)),
            None => drop(stored.remove(&key)),
        }
    }
}

/// The tools that a script can call, with their script names and descriptions.
pub(super) fn callable(cx: &ToolCx) -> Vec<Value> {
    let is_callable = |tool: &&engine::ToolSpec| {
        tool.kind != ToolKind::Hosted && tool.json.is_some() && !RUN_SCRIPTS.contains(&tool.name.as_str())
    };
    let entry = |tool: &engine::ToolSpec| {
        let name = match &tool.namespace {
            Some(group) => format!("{}.{}", group.name, tool.name),
            None => tool.name.clone(),
        };
        let description = tool.json.as_deref().map(|json| json["description"].clone()).unwrap_or_default();
        json!({"name": name, "identifier": identifier(&name), "description": description})
    };
    cx.step().tools.iter().filter(is_callable).map(entry).collect()
}

/// A valid JavaScript identifier for the name.
pub(super) fn identifier(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '$' { c } else { '_' };
    let name: String = name.chars().map(plain).collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("_{name}") } else { name }
}
