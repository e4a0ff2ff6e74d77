//! Texts for the automatic reviewer: its instructions, the end of the transcript, the action, and the form of its answer.

use std::sync::Arc;

use protocol::{FunctionCallOutputBody, ResponseItem};
use serde_json::{Value, json};

use crate::calls::ActiveProposal;
use crate::items::text_of;
use crate::tokens::approximate_tokens;
use crate::{Question, Truncation, truncate_middle};

pub(crate) const INSTRUCTIONS: &str = include_str!("assessment.md");

/// Limit of the transcript sent to the reviewer.
const TRANSCRIPT_TOKENS: i64 = 10_000;
const ITEM_TOKENS: usize = 1_000;
/// Limit of the action sent to the reviewer.
const ACTION_TOKENS: i64 = 16_000;

/// Whether the whole action fits.
pub(crate) fn fits(action: &Value) -> bool {
    approximate_tokens(action.to_string().len()) <= ACTION_TOKENS
}

/// The action for the reviewer and for clients.
pub(crate) fn action_of(active: &ActiveProposal) -> Value {
    let arguments = &active.proposal.arguments;
    match active.proposal.question.as_deref() {
        Some(Question::Command(asked)) => json!({
            "tool": "command",
            "command": asked.command,
            "cwd": asked.cwd,
            "reason": asked.reason,
            "additionalPermissions": asked.additional_permissions,
            "network": asked.network_approval_context,
            "arguments": arguments,
        }),
        Some(Question::FileChange(asked)) => json!({
            "tool": "apply_patch",
            "reason": asked.reason,
            "grantRoot": asked.grant_root,
            "arguments": arguments,
        }),
        _ => json!({ "arguments": arguments }),
    }
}

pub(crate) fn question_text(history: &[Arc<ResponseItem>], action: &Value) -> String {
    let transcript = transcript(history);
    format!(
        "The end of the transcript, oldest first, one JSON text per line:\n{transcript}\n\nThe action that needs \
         approval, as JSON:\n{action}"
    )
}

/// The newest items that fit, each on its own line, so that no content can look like another item.
fn transcript(history: &[Arc<ResponseItem>]) -> String {
    let mut lines = Vec::new();
    let mut left = TRANSCRIPT_TOKENS;
    for item in history.iter().rev() {
        let Some((role, text)) = told(item) else { continue };
        let text = truncate_middle(&text, Truncation::Tokens(ITEM_TOKENS));
        let line = json!({ role: text }).to_string();
        left -= approximate_tokens(line.len());
        if left < 0 {
            break;
        }
        lines.push(line);
    }
    lines.reverse();
    lines.join("\n")
}

fn told(item: &ResponseItem) -> Option<(&'static str, String)> {
    match item {
        ResponseItem::Message { role, content, .. } => {
            let role = match role.as_str() {
                "assistant" => "agent",
                "user" if crate::is_user_turn(item) => "user",
                // The runtime's messages to the agent do not express the user's wishes.
                _ => return None,
            };
            Some((role, text_of(content))).filter(|(_, text)| !text.trim().is_empty())
        }
        ResponseItem::FunctionCall { name, arguments, .. } => Some(("call", format!("{name} {arguments}"))),
        ResponseItem::CustomToolCall { name, input, .. } => Some(("call", format!("{name} {input}"))),
        ResponseItem::FunctionCallOutput { output: FunctionCallOutputBody::Text(text), .. }
        | ResponseItem::CustomToolCallOutput { output: FunctionCallOutputBody::Text(text), .. } => {
            Some(("output", text.clone()))
        }
        _ => None,
    }
}

/// The JSON Schema of the answer.
pub(crate) fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "risk_level": { "type": "string", "enum": ["low", "medium", "high"] },
            "risk_score": { "type": "integer", "minimum": 0, "maximum": 100 },
            "rationale": { "type": "string" },
            "evidence": { "type": "array", "items": { "type": "string" } },
        },
        "required": ["risk_level", "risk_score", "rationale", "evidence"],
        "additionalProperties": false,
    })
}
