//! The ends of tool calls in a rollout, as items.

use std::collections::BTreeMap;

use protocol::{
    CollabAgentState, CollabAgentStatus, CollabAgentTool, CollabAgentToolCallStatus, CommandAction,
    CommandExecutionSource, CommandExecutionStatus, DynamicToolCallStatus, FileUpdateChange, ItemId,
    McpToolCallError, McpToolCallResult, McpToolCallStatus, PatchApplyStatus, PatchChangeKind, ThreadId,
    ThreadItem,
};
use serde_json::Value;

use super::events::{camel, read, text};

/// None for an event of another kind, or without required fields.
pub(super) fn tool_item(kind: &str, event: &Value) -> Option<ThreadItem> {
    let call_id = || text(&event["call_id"]).or_else(|| text(&event["callId"])).map(ItemId::new);
    let duration_ms = duration(&event["duration"]);
    Some(match kind {
        "exec_command_end" => command(call_id()?, event, duration_ms)?,
        "patch_apply_end" => ThreadItem::FileChange {
            id: call_id()?,
            changes: changes(&event["changes"]),
            status: read(&event["status"]).unwrap_or(match event["success"].as_bool() {
                Some(true) => PatchApplyStatus::Completed,
                _ => PatchApplyStatus::Failed,
            }),
            reason: text(&event["stderr"]).filter(|said| !said.is_empty()),
        },
        "mcp_tool_call_end" => mcp(call_id()?, event, duration_ms)?,
        "web_search_end" => ThreadItem::WebSearch {
            id: call_id()?,
            query: text(&event["query"]).unwrap_or_default(),
            action: read(&camel_type(&event["action"])),
        },
        "view_image_tool_call" => ThreadItem::ImageView { id: call_id()?, path: text(&event["path"])? },
        "image_generation_end" => ThreadItem::ImageGeneration {
            id: call_id()?,
            status: text(&event["status"]).unwrap_or_default(),
            revised_prompt: text(&event["revised_prompt"]),
            result: text(&event["result"]).unwrap_or_default(),
            saved_path: text(&event["saved_path"]),
        },
        "item_completed" if event["item"]["type"].as_str()?.eq_ignore_ascii_case("plan") => {
            let item = &event["item"];
            ThreadItem::Plan { id: ItemId::new(text(&item["id"])?), text: text(&item["text"])? }
        }
        "dynamic_tool_call_request" | "dynamic_tool_call_response" => {
            dynamic(call_id()?, kind, event, duration_ms)?
        }
        _ => collab(kind, call_id()?, event)?,
    })
}

fn command(id: ItemId, event: &Value, duration_ms: Option<i64>) -> Option<ThreadItem> {
    let words: Vec<String> = read(&event["command"])?;
    let actions = event["parsed_cmd"].as_array().into_iter().flatten().filter_map(action).collect();
    Some(ThreadItem::CommandExecution {
        id,
        command: words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "),
        cwd: text(&event["cwd"]).unwrap_or_default(),
        process_id: text(&event["process_id"]),
        source: read(&camel(&event["source"])).unwrap_or(CommandExecutionSource::Agent),
        status: read(&event["status"]).unwrap_or(match event["exit_code"].as_i64() {
            Some(0) => CommandExecutionStatus::Completed,
            _ => CommandExecutionStatus::Failed,
        }),
        command_actions: actions,
        aggregated_output: text(&event["aggregated_output"]).filter(|output| !output.is_empty()),
        exit_code: event["exit_code"].as_i64().and_then(|code| i32::try_from(code).ok()),
        duration_ms,
    })
}

fn action(parsed: &Value) -> Option<CommandAction> {
    let command = text(&parsed["cmd"])?;
    let path = text(&parsed["path"]);
    Some(match parsed["type"].as_str()? {
        "read" => CommandAction::Read {
            command,
            name: text(&parsed["name"]).unwrap_or_default(),
            path: path.unwrap_or_default(),
        },
        "list_files" => CommandAction::ListFiles { command, path },
        "search" => CommandAction::Search { command, path, query: text(&parsed["query"]) },
        _ => CommandAction::Unknown { command },
    })
}

fn changes(changes: &Value) -> Vec<FileUpdateChange> {
    let mut found: Vec<FileUpdateChange> =
        changes.as_object().into_iter().flatten().filter_map(change).collect();
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

fn change((path, change): (&String, &Value)) -> Option<FileUpdateChange> {
    let content = || text(&change["content"]).unwrap_or_default();
    let (kind, diff) = match change["type"].as_str()? {
        "add" => (PatchChangeKind::Add, content()),
        "delete" => (PatchChangeKind::Delete, content()),
        "update" => {
            let (move_path, diff) = (text(&change["move_path"]), text(&change["unified_diff"])?);
            let moved = move_path.as_ref().map(|to| format!("\n\nMoved to: {to}")).unwrap_or_default();
            (PatchChangeKind::Update { move_path }, diff + &moved)
        }
        _ => return None,
    };
    Some(FileUpdateChange { path: path.clone(), kind, diff })
}

fn mcp(id: ItemId, event: &Value, duration_ms: Option<i64>) -> Option<ThreadItem> {
    let invocation = &event["invocation"];
    let (answer, failure) = (&event["result"]["Ok"], text(&event["result"]["Err"]));
    let is_error = answer["isError"].as_bool().or_else(|| answer["is_error"].as_bool()).unwrap_or(false);
    let result = answer.is_object().then(|| McpToolCallResult {
        content: answer["content"].as_array().cloned().unwrap_or_default(),
        structured_content: Some(answer["structuredContent"].clone()).filter(|content| !content.is_null()),
    });
    Some(ThreadItem::McpToolCall {
        id,
        server: text(&invocation["server"])?,
        tool: text(&invocation["tool"])?,
        status: match result.is_some() && !is_error {
            true => McpToolCallStatus::Completed,
            false => McpToolCallStatus::Failed,
        },
        arguments: invocation["arguments"].clone(),
        result,
        error: failure.map(|message| McpToolCallError { message }),
        duration_ms,
    })
}

fn dynamic(id: ItemId, kind: &str, event: &Value, duration_ms: Option<i64>) -> Option<ThreadItem> {
    let success = event["success"].as_bool();
    let status = match (kind, success) {
        ("dynamic_tool_call_request", _) => DynamicToolCallStatus::InProgress,
        (_, Some(true)) => DynamicToolCallStatus::Completed,
        _ => DynamicToolCallStatus::Failed,
    };
    let items =
        if event["content_items"].is_null() { &event["contentItems"] } else { &event["content_items"] };
    Some(ThreadItem::DynamicToolCall {
        id,
        namespace: text(&event["namespace"]),
        tool: text(&event["tool"])?,
        arguments: event["arguments"].clone(),
        status,
        content_items: read(items),
        success,
        duration_ms,
    })
}

fn collab(kind: &str, id: ItemId, event: &Value) -> Option<ThreadItem> {
    let tool = match kind {
        "collab_agent_spawn_end" => CollabAgentTool::SpawnAgent,
        "collab_agent_interaction_end" => CollabAgentTool::SendInput,
        "collab_waiting_end" => CollabAgentTool::Wait,
        "collab_close_end" => CollabAgentTool::CloseAgent,
        "collab_resume_end" => CollabAgentTool::ResumeAgent,
        _ => return None,
    };
    let receiver = text(&event["receiver_thread_id"]).or_else(|| text(&event["new_thread_id"]));
    let mut states: BTreeMap<String, CollabAgentState> = BTreeMap::new();
    for (agent, status) in event["statuses"].as_object().into_iter().flatten() {
        states.insert(agent.clone(), agent_state(status));
    }
    if let Some(receiver) = &receiver {
        states.entry(receiver.clone()).or_insert_with(|| agent_state(&event["status"]));
    }
    let is_there = |state: &CollabAgentState| {
        !matches!(state.status, CollabAgentStatus::Errored | CollabAgentStatus::NotFound)
    };
    let status = match !states.is_empty() && states.values().all(is_there) {
        true => CollabAgentToolCallStatus::Completed,
        false => CollabAgentToolCallStatus::Failed,
    };
    Some(ThreadItem::CollabAgentToolCall {
        id,
        tool,
        status,
        sender_thread_id: ThreadId::new(text(&event["sender_thread_id"])?),
        receiver_thread_ids: states.keys().map(|agent| ThreadId::new(agent.as_str())).collect(),
        prompt: text(&event["prompt"]),
        model: text(&event["model"]),
        reasoning_effort: read(&event["reasoning_effort"]),
        agents_states: states,
    })
}

/// `"running"`, or `{"completed": "said last"}`.
fn agent_state(status: &Value) -> CollabAgentState {
    let (word, message) = match status.as_object().and_then(|status| status.iter().next()) {
        Some((word, message)) => (word.as_str(), text(message)),
        None => (status.as_str().unwrap_or_default(), None),
    };
    let status =
        read(&Value::String(camel(&Value::String(word.to_owned())).as_str().unwrap_or_default().to_owned()));
    CollabAgentState { status: status.unwrap_or(CollabAgentStatus::NotFound), message }
}

/// An action with its type in the wire's spelling: `open_page` becomes `openPage`.
fn camel_type(action: &Value) -> Value {
    let mut action = action.clone();
    if let Some(kind) = action.get_mut("type") {
        *kind = camel(kind);
    }
    action
}

fn duration(duration: &Value) -> Option<i64> {
    let (seconds, nanos) = (duration["secs"].as_i64()?, duration["nanos"].as_i64().unwrap_or(0));
    Some(seconds.saturating_mul(1_000).saturating_add(nanos / 1_000_000))
}

/// A word, quoted for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"+-./:=@_,%^".contains(&byte);
    match !word.is_empty() && word.bytes().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}
