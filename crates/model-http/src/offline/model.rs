//! The offline model that follows rules.

use model::{EventStream, ModelTransport, OutputFormat, PreparedRequest, Purpose, RequestBody};

use serde_json::json;

use super::conversation::{Conversation, SUMMARY_HEAD};
use super::emit::Emitter;
use super::reply::{OfflineReply, OfflineRequest, OfflineResponder, ReplyStream};
use super::schema;
use super::task::tasks;
use super::toolbox::{OfflineToolCall, Toolbox};
use super::work::{self, NextAction};

/// A model of fixed rules, named `offline`. Deterministic: the same request has the same answer, byte for byte.
///
/// It reads the last message of the user as simple sentences ("list files then read a.txt"), calls one of the offered
/// tools per response, goes on when the output comes back, and ends with a message that quotes the outputs.
#[derive(Debug, Clone, Copy, Default)]
pub struct OfflineModel;

impl OfflineModel {
    /// Its model slug and its provider id.
    pub const NAME: &'static str = "offline";
}

impl ModelTransport for OfflineModel {
    fn open(&self, request: PreparedRequest) -> EventStream {
        Box::pin(ReplyStream::new(*self, request))
    }
}

impl OfflineResponder for OfflineModel {
    fn respond(&self, request: OfflineRequest<'_>) -> OfflineReply {
        let mut emitter = Emitter::new(request.body);
        match decide(request) {
            Say::Message(text) => emitter.message(&text),
            Say::Call(OfflineToolCall::Function { name, arguments }) => {
                emitter.function_call((None, &name), &arguments, None);
            }
            Say::Call(OfflineToolCall::Custom { name, input }) => emitter.custom_call(&name, &input, None),
            Say::Refusal(text) => {
                let error = json!({ "error": { "type": "invalid_request_error", "message": text } });
                return OfflineReply::refused(400, error.to_string());
            }
        }
        OfflineReply::events(emitter.completed(None))
    }
}

enum Say {
    Message(String),
    Call(OfflineToolCall),
    Refusal(String),
}

fn decide(OfflineRequest { body, purpose }: OfflineRequest<'_>) -> Say {
    let conversation = Conversation::read(body);
    if purpose == Purpose::Compaction || asks_for_summary(body, &conversation) {
        return Say::Message(summary(&conversation));
    }
    let tools = Toolbox::new(&body.tools, conversation.cwd.as_deref());
    let wanted = tasks(conversation.request());
    let text = match work::next(&wanted, &tools, &conversation.results) {
        _ if conversation.is_compacted => COMPACTED.to_owned(),
        NextAction::Call(call) => return Say::Call(call),
        NextAction::Refuse(text) => return Say::Refusal(text),
        NextAction::Report(_) if purpose == Purpose::Review => REVIEW.to_owned(),
        NextAction::Report(notes) => work::report(&notes, conversation.cwd.as_deref()),
    };
    match body.text.as_ref().and_then(|text| text.format.as_ref()) {
        Some(OutputFormat::JsonSchema { schema, .. }) => Say::Message(schema::smallest(schema).to_string()),
        None => Say::Message(text),
    }
}

const COMPACTED: &str = "Offline model: the conversation was compacted while I worked, and I do not carry on from a \
                         summary. Ask again for what is left.";
const REVIEW: &str =
    "Offline model: I cannot judge code, so this is no review. Configure a model provider for one.";

/// A request for compaction that came over HTTP from a program that does not mark it.
fn asks_for_summary(body: &RequestBody, conversation: &Conversation) -> bool {
    let request = conversation.request().to_ascii_lowercase();
    let names = |words: &[&str]| words.iter().any(|word| request.contains(word));
    body.tools.is_empty()
        && conversation.requests.len() > 1
        && names(&["summary", "summarize", "summarise"])
        && names(&["handoff", "hand-off", "hand off", "compact", "checkpoint", "conversation"])
}

const SUMMARY_REQUESTS: usize = 20;

fn summary(conversation: &Conversation) -> String {
    // The last one is the request for this summary.
    let earlier = &conversation.requests[..conversation.requests.len().saturating_sub(1)];
    let left_out = earlier.len().saturating_sub(SUMMARY_REQUESTS);
    let mut lines = vec![SUMMARY_HEAD.to_owned(), format!("The user made {} requests:", earlier.len())];
    if left_out > 0 {
        lines.push(format!("- ({left_out} older ones)"));
    }
    lines.extend(earlier[left_out..].iter().map(|request| format!("- {}", one_line(request))));
    let mut called: Vec<&str> = conversation.called.iter().map(String::as_str).collect();
    let calls = called.len();
    called.sort_unstable();
    called.dedup();
    lines.push(if calls == 0 {
        "No tool was called.".to_owned()
    } else {
        format!("Tools called ({calls} calls): {}.", called.join(", "))
    });
    if let Some(answer) = &conversation.last_answer {
        lines.push(format!("The last answer began: {}", one_line(answer)));
    }
    lines.join("\n")
}

fn one_line(text: &str) -> String {
    work::shortened(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}
