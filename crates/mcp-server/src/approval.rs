//! Questions of a turn, put to the user of the client by elicitation.

use core_api::protocol::{FileUpdateChange, ThreadId, ThreadItem};
use core_api::{ApprovalRequest, Subject};
use serde_json::{Value, json};

use super::peer::ClientPeer;

/// Asks and passes the answer on. No answer is a no.
pub(super) async fn settle(peer: &ClientPeer, call: &Value, thread: &ThreadId, mut request: ApprovalRequest) {
    let question = question(&request, call, thread);
    let answer = tokio::select! {
        answer = peer.ask("elicitation/create", question) => answer,
        () = request.withdrawn() => None,
    };
    let text = |key: &str| answer.as_ref().and_then(|answer| answer.get(key)).and_then(Value::as_str);
    // Clients of the reference say more than MCP has words for.
    match text("decision").or(text("action")) {
        Some("approved" | "accept") => request.accept(),
        Some("approved_for_session") => request.accept_for_session(),
        Some("abort" | "cancel") => request.cancel(),
        _ => request.decline(),
    }
}

fn question(request: &ApprovalRequest, call: &Value, thread: &ThreadId) -> Value {
    let call = call.as_str().map_or_else(|| call.to_string(), str::to_owned);
    let mut asked = json!({
        "requestedSchema": {"type": "object", "properties": {}},
        "threadId": thread,
        "codex_mcp_tool_call_id": call,
        "codex_event_id": call,
    });
    let message = match request.subject() {
        Subject::Command(command) => {
            let line = command.command.clone().unwrap_or_default();
            let folder = command.cwd.clone().unwrap_or_default();
            asked["codex_elicitation"] = json!("exec-approval");
            asked["codex_call_id"] = json!(command.item_id);
            asked["codex_command"] = json!([line]);
            asked["codex_cwd"] = json!(folder);
            format!("Allow the agent to run `{line}` in `{folder}`?")
        }
        Subject::FileChange(change) => {
            let files = changed(request.item());
            asked["codex_elicitation"] = json!("patch-approval");
            asked["codex_call_id"] = json!(change.item_id);
            asked["codex_changes"] = json!(files);
            let names: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
            format!("Allow the agent to change {}?", names.join(", "))
        }
        Subject::Tool(tool) => {
            asked["codex_elicitation"] = json!("tool-approval");
            asked["codex_call_id"] = json!(tool.item_id);
            format!("Allow the agent to call `{}`?", tool.tool)
        }
        _ => "Allow the agent to go on?".to_owned(),
    };
    asked["message"] = match request.reason() {
        Some(reason) => json!(format!("{message}\n{reason}")),
        None => json!(message),
    };
    asked
}

fn changed(item: Option<&ThreadItem>) -> &[FileUpdateChange] {
    match item {
        Some(ThreadItem::FileChange { changes, .. }) => changes,
        _ => &[],
    }
}
