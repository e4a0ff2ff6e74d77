//! An agent's status after its turns.

use protocol::{
    DynamicToolCallOutputContentItem, ResponseItem, SessionMeta, SessionSource, SubAgentSource, ThreadItem,
    Turn, TurnError, TurnStatus,
};
use tools::AgentStatus;

/// The status of an agent after a turn with this end.
pub fn ended(status: TurnStatus, error: Option<&TurnError>, last_words: Option<String>) -> AgentStatus {
    match status {
        TurnStatus::Completed => AgentStatus::Completed(last_words),
        TurnStatus::Failed => {
            let message = error.map(|error| error.message.clone());
            AgentStatus::Errored(message.unwrap_or_else(|| "the turn failed".to_owned()))
        }
        TurnStatus::Interrupted | TurnStatus::InProgress => AgentStatus::Interrupted,
    }
}

/// The status of an agent from its recorded turns.
pub fn recorded_status(turns: &[Turn]) -> AgentStatus {
    let Some(last) = turns.last() else { return AgentStatus::PendingInit };
    let words = last.items.iter().rev().find_map(|item| match item {
        ThreadItem::AgentMessage { text, .. } => Some(text.clone()),
        _ => None,
    });
    ended(last.status, last.error.as_ref(), words)
}

/// The depth of a thread's agent below the root: 0 for the root.
pub fn depth_of(meta: &SessionMeta) -> u32 {
    match &meta.source {
        SessionSource::SubAgent(SubAgentSource::ThreadSpawn { depth, .. }) => {
            u32::try_from(*depth).unwrap_or(0)
        }
        _ => 0,
    }
}

/// The text of an output, a line for each part.
pub fn output_text(output: &[DynamicToolCallOutputContentItem]) -> String {
    let text = |part: &DynamicToolCallOutputContentItem| match part {
        DynamicToolCallOutputContentItem::InputText { text } => Some(text.clone()),
        DynamicToolCallOutputContentItem::InputImage { .. } => None,
    };
    output.iter().filter_map(text).collect::<Vec<_>>().join("\n")
}

/// Whether an item is the output of this call.
pub fn is_output_of(item: &ResponseItem, wanted: &str) -> bool {
    match item {
        ResponseItem::FunctionCallOutput { call_id, .. }
        | ResponseItem::CustomToolCallOutput { call_id, .. } => call_id == wanted,
        _ => false,
    }
}
