//! The events of a rollout about a thread's turns.

use protocol::{ItemId, MemoryCitation, MessagePhase, TextElement, ThreadItem, UserInput};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::convert::ReferenceUsage;
use super::tool_events::tool_item;

/// One event in our types.
#[derive(Debug)]
pub(super) enum Event {
    TaskStarted {
        turn_id: String,
    },
    TaskComplete {
        turn_id: Option<String>,
    },
    TurnAborted {
        turn_id: Option<String>,
    },
    ThreadRolledBack {
        num_turns: u32,
    },
    TokenCount {
        info: Option<ReferenceUsage>,
    },
    Error {
        message: String,
        affects_turn: bool,
        info: Option<Value>,
    },
    UserMessage {
        content: Vec<UserInput>,
    },
    /// Extends the preceding reasoning.
    Reasoning {
        summary: Option<String>,
        content: Option<String>,
    },
    /// An item without an id.
    Unnumbered(Box<UnnumberedItem>),
    /// An item with the id of its call, in this turn or the current one.
    Tool {
        turn_id: Option<String>,
        item: Box<ThreadItem>,
    },
    /// Known and not needed.
    Ignored,
}

#[derive(Debug)]
pub(super) enum UnnumberedItem {
    AgentMessage { text: String, phase: Option<MessagePhase>, memory_citation: Option<MemoryCitation> },
    ContextCompaction,
    EnteredReview(String),
    ExitedReview(String),
}

impl Event {
    /// None for an event of an unknown kind, or without required fields.
    pub(super) fn of(event: &Value) -> Option<Self> {
        let turn_id = || text(&event["turn_id"]);
        Some(match event["type"].as_str()? {
            "task_started" | "turn_started" => Self::TaskStarted { turn_id: turn_id()? },
            "task_complete" | "turn_complete" => Self::TaskComplete { turn_id: turn_id() },
            "turn_aborted" => Self::TurnAborted { turn_id: turn_id() },
            "thread_rolled_back" => {
                Self::ThreadRolledBack { num_turns: u32::try_from(event["num_turns"].as_u64()?).ok()? }
            }
            "token_count" => Self::TokenCount { info: read(&event["info"]) },
            "error" => {
                let info = &event["codex_error_info"];
                let word = info.as_str().or_else(|| info.as_object()?.keys().next().map(String::as_str));
                let affects_turn =
                    !matches!(word, Some("thread_rollback_failed" | "active_turn_not_steerable"));
                let message = text(&event["message"])?;
                Self::Error { message, affects_turn, info: Some(camel(info)).filter(|info| !info.is_null()) }
            }
            "user_message" => Self::UserMessage { content: user_content(event) },
            "agent_reasoning" => Self::Reasoning { summary: Some(text(&event["text"])?), content: None },
            "agent_reasoning_raw_content" => {
                Self::Reasoning { summary: None, content: Some(text(&event["text"])?) }
            }
            "undo_completed" | "guardian_assessment" => Self::Ignored,
            kind => match unnumbered(kind, event) {
                Some(Some(item)) => Self::Unnumbered(Box::new(item)),
                Some(None) => Self::Ignored,
                None => {
                    let item = Box::new(tool_item(kind, event)?);
                    Self::Tool { turn_id: turn_id().or_else(|| text(&event["turnId"])), item }
                }
            },
        })
    }
}

/// None for an event of another kind; `Some(None)` if there is nothing to show.
fn unnumbered(kind: &str, event: &Value) -> Option<Option<UnnumberedItem>> {
    Some(match kind {
        "agent_message" => {
            let text = text(&event["message"])?;
            let (phase, memory_citation) = (read(&event["phase"]), read(&camel(&event["memory_citation"])));
            let is_said = !text.is_empty();
            is_said.then_some(UnnumberedItem::AgentMessage { text, phase, memory_citation })
        }
        "context_compacted" => Some(UnnumberedItem::ContextCompaction),
        "entered_review_mode" => {
            Some(UnnumberedItem::EnteredReview(text(&event["user_facing_hint"]).unwrap_or_default()))
        }
        "exited_review_mode" => {
            let explanation = text(&event["review_output"]["overall_explanation"]);
            Some(UnnumberedItem::ExitedReview(explanation.unwrap_or_default()))
        }
        _ => return None,
    })
}

pub(super) fn item_of(item: UnnumberedItem, id: ItemId) -> ThreadItem {
    match item {
        UnnumberedItem::AgentMessage { text, phase, memory_citation } => {
            ThreadItem::AgentMessage { id, text, phase, memory_citation }
        }
        UnnumberedItem::ContextCompaction => ThreadItem::ContextCompaction { id },
        UnnumberedItem::EnteredReview(review) => ThreadItem::EnteredReviewMode { id, review },
        UnnumberedItem::ExitedReview(review) => ThreadItem::ExitedReviewMode { id, review },
    }
}

fn user_content(event: &Value) -> Vec<UserInput> {
    let mut content = Vec::new();
    if let Some(said) = text(&event["message"]).filter(|said| !said.trim().is_empty()) {
        let text_elements: Vec<TextElement> = read(&camel(&event["text_elements"])).unwrap_or_default();
        content.push(UserInput::Text { text: said, text_elements });
    }
    let list = |name: &str| event[name].as_array().into_iter().flatten().filter_map(text).collect::<Vec<_>>();
    content.extend(list("images").into_iter().map(|url| UserInput::Image { url }));
    content.extend(list("local_images").into_iter().map(|path| UserInput::LocalImage { path }));
    content
}

pub(super) fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// An unexpected value counts as missing.
pub(super) fn read<T: DeserializeOwned>(value: &Value) -> Option<T> {
    protocol::from_value(value).ok()
}

/// Names of members, and single words, in the wire's spelling: `byte_range` becomes `byteRange`.
pub(super) fn camel(value: &Value) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (camel_word(name), camel(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::Array(values) => values.iter().map(camel).collect(),
        Value::String(word) if word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_') => {
            camel_word(word).into()
        }
        other => other.clone(),
    }
}

fn camel_word(word: &str) -> String {
    let mut parts = word.split('_');
    let mut joined = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut letters = part.chars();
        joined.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        joined.push_str(letters.as_str());
    }
    joined
}
