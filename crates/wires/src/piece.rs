//! Items of the history as pieces for Chat and Messages.

use model::protocol::{
    ContentItem, FunctionCallOutputBody, FunctionCallOutputContentItem, LocalShellAction, ResponseItem,
};
use serde_json::{Value, json};

use crate::ids;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum HistoryPiece {
    User(Vec<ContentPart>),
    Developer(String),
    Assistant(String),
    /// The `encrypted_content` of a reasoning item.
    Reasoning(String),
    Call(HistoryCall),
    Output {
        call_id: String,
        parts: Vec<ContentPart>,
        /// The call failed.
        has_failed: bool,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ContentPart {
    Text(String),
    Image(String),
}

/// A call with its name on the wire.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HistoryCall {
    pub(crate) id: String,
    pub(crate) name: String,
    /// JSON as text.
    pub(crate) arguments: String,
}

/// The placeholder of a missing output, because every call needs one.
pub(crate) const NO_OUTPUT: &str = "The call was not finished; it has no output.";

/// `Ok(None)`: not useful for a model of another wire. The error names what cannot be expressed.
pub(crate) fn piece(item: &ResponseItem) -> Result<Option<HistoryPiece>, &'static str> {
    let piece = match item {
        ResponseItem::Message { role, content, .. } => message(role, content),
        ResponseItem::Reasoning { encrypted_content, .. } => {
            return Ok(encrypted_content.clone().map(HistoryPiece::Reasoning));
        }
        ResponseItem::FunctionCall { name, namespace, arguments, call_id, .. } => {
            call(call_id, &ids::tool_name(namespace.as_deref(), name), arguments.clone())
        }
        ResponseItem::CustomToolCall { call_id, name, input, .. } => {
            call(call_id, &ids::tool_name(None, name), json!({ "input": input }).to_string())
        }
        ResponseItem::LocalShellCall { id, call_id, action, .. } => {
            let LocalShellAction::Exec { command, timeout_ms, working_directory, .. } = action;
            let mut arguments = json!({ "command": command });
            if let Some(timeout) = timeout_ms {
                arguments["timeout_ms"] = json!(timeout);
            }
            if let Some(folder) = working_directory {
                arguments["working_directory"] = json!(folder);
            }
            let id = call_id.as_ref().or(id.as_ref());
            call(id.map_or("local_shell", String::as_str), "local_shell", arguments.to_string())
        }
        ResponseItem::ToolSearchCall { call_id: Some(id), arguments, .. } => {
            call(id, "tool_search", arguments.to_string())
        }
        ResponseItem::ToolSearchOutput { call_id: Some(id), tools, .. } => {
            let found = serde_json::to_string(tools).unwrap_or_default();
            HistoryPiece::Output {
                call_id: id.clone(),
                parts: vec![ContentPart::Text(found)],
                has_failed: false,
            }
        }
        ResponseItem::FunctionCallOutput { call_id, output }
        | ResponseItem::CustomToolCallOutput { call_id, output, .. } => {
            let parts = output_parts(output);
            let has_failed = match &parts[..] {
                [ContentPart::Text(text)] => says_failure(text),
                // With images after it.
                [ContentPart::Text(text), ..] => text == "the tool failed:",
                _ => false,
            };
            HistoryPiece::Output { call_id: call_id.clone(), parts, has_failed }
        }
        ResponseItem::Compaction { .. } => return Err("a summary that only its own provider can read"),
        // Run by the provider; the following text reports the result.
        ResponseItem::WebSearchCall { .. }
        | ResponseItem::ImageGenerationCall { .. }
        | ResponseItem::ToolSearchCall { .. }
        | ResponseItem::ToolSearchOutput { .. }
        | ResponseItem::GhostSnapshot { .. }
        | ResponseItem::Other => return Ok(None),
    };
    Ok(Some(piece))
}

/// The text of a developer message at the start of a request.
pub(crate) fn developer_text(item: &ResponseItem) -> Option<String> {
    match item {
        ResponseItem::Message { role, content, .. } if is_developer(role) => Some(joined(content)),
        _ => None,
    }
}

fn is_developer(role: &str) -> bool {
    role == "developer" || role == "system"
}

fn message(role: &str, content: &[ContentItem]) -> HistoryPiece {
    if is_developer(role) {
        return HistoryPiece::Developer(joined(content));
    }
    if role == "assistant" {
        return HistoryPiece::Assistant(joined(content));
    }
    let part = |item: &ContentItem| match item {
        ContentItem::InputText { text } | ContentItem::OutputText { text } => ContentPart::Text(text.clone()),
        ContentItem::InputImage { image_url } => ContentPart::Image(image_url.clone()),
    };
    HistoryPiece::User(content.iter().map(part).collect())
}

fn joined(content: &[ContentItem]) -> String {
    let text = |item: &ContentItem| match item {
        ContentItem::InputText { text } | ContentItem::OutputText { text } => Some(text.clone()),
        ContentItem::InputImage { .. } => None,
    };
    Vec::from_iter(content.iter().filter_map(text)).join("\n\n")
}

fn call(id: &str, name: &str, arguments: String) -> HistoryPiece {
    HistoryPiece::Call(HistoryCall { id: id.to_owned(), name: name.to_owned(), arguments })
}

fn output_parts(output: &FunctionCallOutputBody) -> Vec<ContentPart> {
    let part = |item: &FunctionCallOutputContentItem| match item {
        FunctionCallOutputContentItem::InputText { text } => ContentPart::Text(text.clone()),
        FunctionCallOutputContentItem::InputImage { image_url, .. } => ContentPart::Image(image_url.clone()),
    };
    match output {
        FunctionCallOutputBody::Text(text) => vec![ContentPart::Text(text.clone())],
        FunctionCallOutputBody::Content(items) => items.iter().map(part).collect(),
    }
}

/// Whether an output reports that its call did not complete. A command's output is a result, whatever its exit code.
fn says_failure(text: &str) -> bool {
    let begins = FAILED.iter().any(|words| text.starts_with(words));
    // A command that a rule forbids, quoted.
    begins
        || (text.starts_with('`')
            && text.lines().next().is_some_and(|line| line.contains("` was rejected: ")))
}

/// The prefixes of outputs of refused or invalid calls. The record contains only these texts, and a request's bytes
/// must not change when a thread is opened again.
const FAILED: &[&str] = &[
    "aborted by user",
    "unsupported call: ",
    "unsupported custom tool call: ",
    "failed to parse function arguments: ",
    "exec command rejected",
    "exec_command failed for `",
    "patch rejected",
    "apply_patch verification failed",
    "the script was rejected",
    "This was not carried out: ",
    // Of MCP servers.
    "the tool failed: ",
    "the user did not allow this call",
    "the call was refused; do not try it again",
    "MCP server `",
    "list_mcp_resources failed: ",
    "list_mcp_resource_templates failed: ",
    "read_mcp_resource failed: ",
    "approval policy is ",
];

/// The arguments as an object. Other values are wrapped in one.
pub(crate) fn arguments_object(text: &str) -> Value {
    if text.trim().is_empty() {
        return json!({});
    }
    match serde_json::from_str::<Value>(text) {
        Ok(value @ Value::Object(_)) => value,
        _ => json!({ "arguments": text }),
    }
}

/// A developer message for wires without that role.
pub(crate) fn in_tags(text: &str) -> String {
    format!("<developer_message>\n{text}\n</developer_message>")
}
