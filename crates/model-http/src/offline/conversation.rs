//! The conversation in a request: the user's messages, and the tool outputs since.

use model::RequestBody;
use model::protocol::{ContentItem, FunctionCallOutputBody, FunctionCallOutputContentItem, ResponseItem};

/// The part of the input that the offline model uses.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    /// Every real user message, oldest first. The last one is being answered.
    pub(super) requests: Vec<String>,
    /// The tool outputs since the last user message, in the order of the calls.
    pub(super) results: Vec<String>,
    /// The names of all tools called in the conversation.
    pub(super) called: Vec<String>,
    pub(super) last_answer: Option<String>,
    pub(super) cwd: Option<String>,
    /// The last message is a summary of compacted items.
    pub(super) is_compacted: bool,
    /// The ids of calls since the last user message without an output.
    open_calls: Vec<String>,
}

/// The prefix of the offline model's summaries, by which they are recognised.
pub(super) const SUMMARY_HEAD: &str = "Offline model: summary of the conversation so far.";

impl Conversation {
    pub(super) fn read(body: &RequestBody) -> Self {
        let mut conversation = Self::default();
        for item in &body.input {
            match item.as_ref() {
                ResponseItem::Message { role, content, .. } if role == "user" => {
                    conversation.hear(content);
                }
                ResponseItem::Message { role, content, .. } if role == "assistant" => {
                    conversation.last_answer = Some(texts(content).collect::<Vec<_>>().join("\n"));
                }
                ResponseItem::FunctionCall { name, call_id, .. }
                | ResponseItem::CustomToolCall { name, call_id, .. } => {
                    conversation.called.push(name.clone());
                    conversation.open_calls.push(call_id.clone());
                }
                ResponseItem::FunctionCallOutput { call_id, output }
                | ResponseItem::CustomToolCallOutput { call_id, output, .. } => {
                    // An output whose call is not part of this request belongs to an earlier one.
                    if let Some(at) = conversation.open_calls.iter().position(|open| open == call_id) {
                        conversation.open_calls.remove(at);
                        conversation.results.push(output_text(output));
                    }
                }
                _ => {}
            }
        }
        conversation
    }

    pub(super) fn request(&self) -> &str {
        self.requests.last().map_or("", String::as_str)
    }

    /// Takes in a message of the user role. A request begins the work anew.
    fn hear(&mut self, content: &[ContentItem]) {
        for text in texts(content) {
            if let Some((_, rest)) = text.split_once("<cwd>") {
                self.cwd = rest.split_once("</cwd>").map(|(cwd, _)| cwd.trim().to_owned());
            }
        }
        if texts(content).any(is_context) {
            return;
        }
        let words = texts(content).filter(|text| !is_image_frame(text));
        let request = words.collect::<Vec<_>>().join("\n").trim().to_owned();
        self.is_compacted = request.contains(SUMMARY_HEAD);
        if !self.is_compacted {
            self.requests.push(request);
        }
        self.results.clear();
        self.open_calls.clear();
    }
}

fn texts(content: &[ContentItem]) -> impl Iterator<Item = &str> {
    content.iter().filter_map(|part| match part {
        ContentItem::InputText { text } | ContentItem::OutputText { text } => Some(text.as_str()),
        ContentItem::InputImage { .. } => None,
    })
}

/// Prefixes and suffixes of the runtime's messages with the user's role.
const CONTEXT: &[(&str, &str)] = &[
    ("# agents.md instructions for ", "</instructions>"),
    ("<environment_context>", "</environment_context>"),
    ("<skill>", "</skill>"),
    ("<user_shell_command>", "</user_shell_command>"),
    ("<turn_aborted>", "</turn_aborted>"),
    ("<subagent_notification>", "</subagent_notification>"),
    ("<hook_prompt", "</hook_prompt>"),
    ("<external_", ">"),
    ("warning: ", ""),
];

fn is_context(text: &str) -> bool {
    let text = text.trim().to_ascii_lowercase();
    CONTEXT.iter().any(|(start, end)| text.starts_with(start) && text.ends_with(end))
}

fn is_image_frame(text: &str) -> bool {
    let text = text.trim();
    text == "</image>" || (text.starts_with("<image") && text.ends_with('>'))
}

fn output_text(output: &FunctionCallOutputBody) -> String {
    match output {
        FunctionCallOutputBody::Text(text) => text.clone(),
        FunctionCallOutputBody::Content(parts) => {
            let parts = parts.iter().map(|part| match part {
                FunctionCallOutputContentItem::InputText { text } => text.as_str(),
                FunctionCallOutputContentItem::InputImage { .. } => "(an image)",
            });
            parts.collect::<Vec<_>>().join("\n")
        }
    }
}
