//! From a thread's item to what a line of `exec --json` says of it.

use protocol::{
    CollabAgentStatus, CollabAgentTool, CollabAgentToolCallStatus, CommandExecutionStatus, McpToolCallStatus,
    PatchApplyStatus, PatchChangeKind, ThreadItem, WebSearchAction,
};

use super::event::{AgentState, Change, Details, ExecProblem, ItemStatus, McpResult, SearchAction};

/// None for items that have no event of their own.
pub(crate) fn details(item: &ThreadItem) -> Option<Details> {
    match item {
        ThreadItem::AgentMessage { text, .. } => Some(Details::AgentMessage { text: text.clone() }),
        ThreadItem::Reasoning { summary, .. } => reasoning(summary),
        ThreadItem::CommandExecution { command, aggregated_output, exit_code, status, .. } => {
            Some(Details::CommandExecution {
                command: command.clone(),
                aggregated_output: aggregated_output.clone().unwrap_or_default(),
                exit_code: *exit_code,
                status: match status {
                    CommandExecutionStatus::InProgress => ItemStatus::InProgress,
                    CommandExecutionStatus::Completed => ItemStatus::Completed,
                    CommandExecutionStatus::Failed => ItemStatus::Failed,
                    CommandExecutionStatus::Declined => ItemStatus::Declined,
                },
            })
        }
        ThreadItem::FileChange { changes, status, reason, .. } => Some(Details::FileChange {
            changes: changes
                .iter()
                .map(|change| Change { path: change.path.clone(), kind: kind(&change.kind) })
                .collect(),
            status: match status {
                PatchApplyStatus::InProgress => ItemStatus::InProgress,
                PatchApplyStatus::Completed => ItemStatus::Completed,
                PatchApplyStatus::Failed => ItemStatus::Failed,
                PatchApplyStatus::Declined => ItemStatus::Declined,
            },
            reason: reason.clone(),
        }),
        ThreadItem::McpToolCall { .. } => mcp_call(item),
        ThreadItem::CollabAgentToolCall { .. } => collab_call(item),
        ThreadItem::WebSearch { query, action, .. } => {
            Some(Details::WebSearch { query: query.clone(), action: search(action.as_ref()) })
        }
        ThreadItem::UserMessage { .. }
        | ThreadItem::HookPrompt { .. }
        | ThreadItem::Plan { .. }
        | ThreadItem::DynamicToolCall { .. }
        | ThreadItem::ImageView { .. }
        | ThreadItem::ImageGeneration { .. }
        | ThreadItem::FunctionCallOutput { .. }
        | ThreadItem::EnteredReviewMode { .. }
        | ThreadItem::ExitedReviewMode { .. }
        | ThreadItem::ContextCompaction { .. } => None,
    }
}

/// Whether the item is told when it begins, and not only when it has ended.
pub(crate) fn begins(details: &Details) -> bool {
    !matches!(details, Details::AgentMessage { .. } | Details::Reasoning { .. })
}

fn reasoning(summary: &[String]) -> Option<Details> {
    let parts: Vec<&str> =
        summary.iter().map(String::as_str).filter(|part| !part.trim().is_empty()).collect();
    (!parts.is_empty()).then(|| Details::Reasoning { text: parts.join("\n") })
}

fn kind(kind: &PatchChangeKind) -> &'static str {
    match kind {
        PatchChangeKind::Add => "add",
        PatchChangeKind::Delete => "delete",
        PatchChangeKind::Update { .. } => "update",
    }
}

fn mcp_call(item: &ThreadItem) -> Option<Details> {
    let ThreadItem::McpToolCall { server, tool, status, arguments, result, error, .. } = item else {
        return None;
    };
    Some(Details::McpToolCall {
        server: server.clone(),
        tool: tool.clone(),
        arguments: arguments.clone(),
        result: result.as_ref().map(|result| McpResult {
            content: result.content.clone(),
            structured_content: result.structured_content.clone(),
        }),
        error: error.as_ref().map(|error| ExecProblem { message: error.message.clone() }),
        status: match status {
            McpToolCallStatus::InProgress => ItemStatus::InProgress,
            McpToolCallStatus::Completed => ItemStatus::Completed,
            McpToolCallStatus::Failed => ItemStatus::Failed,
        },
    })
}

fn collab_call(item: &ThreadItem) -> Option<Details> {
    let ThreadItem::CollabAgentToolCall {
        tool,
        status,
        sender_thread_id,
        receiver_thread_ids,
        prompt,
        agents_states,
        ..
    } = item
    else {
        return None;
    };
    let states = agents_states.iter().map(|(id, state)| {
        (id.clone(), AgentState { status: agent_status(&state.status), message: state.message.clone() })
    });
    Some(Details::CollabToolCall {
        tool: match tool {
            CollabAgentTool::SpawnAgent => "spawn_agent",
            CollabAgentTool::SendInput => "send_input",
            CollabAgentTool::ResumeAgent | CollabAgentTool::Wait => "wait",
            CollabAgentTool::CloseAgent => "close_agent",
        },
        sender_thread_id: sender_thread_id.to_string(),
        receiver_thread_ids: receiver_thread_ids.iter().map(ToString::to_string).collect(),
        prompt: prompt.clone(),
        agents_states: states.collect(),
        status: match status {
            CollabAgentToolCallStatus::InProgress => ItemStatus::InProgress,
            CollabAgentToolCallStatus::Completed => ItemStatus::Completed,
            CollabAgentToolCallStatus::Failed => ItemStatus::Failed,
        },
    })
}

fn agent_status(status: &CollabAgentStatus) -> &'static str {
    match status {
        CollabAgentStatus::PendingInit => "pending_init",
        CollabAgentStatus::Running => "running",
        CollabAgentStatus::Interrupted => "interrupted",
        CollabAgentStatus::Completed => "completed",
        CollabAgentStatus::Errored => "errored",
        CollabAgentStatus::Shutdown => "shutdown",
        CollabAgentStatus::NotFound => "not_found",
    }
}

fn search(action: Option<&WebSearchAction>) -> SearchAction {
    match action {
        Some(WebSearchAction::Search { query, queries }) => {
            SearchAction::Search { query: query.clone(), queries: queries.clone() }
        }
        Some(WebSearchAction::OpenPage { url }) => SearchAction::OpenPage { url: url.clone() },
        Some(WebSearchAction::FindInPage { url, pattern }) => {
            SearchAction::FindInPage { url: url.clone(), pattern: pattern.clone() }
        }
        Some(WebSearchAction::Other) | None => SearchAction::Other,
    }
}
