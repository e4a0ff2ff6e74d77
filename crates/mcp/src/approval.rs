//! Whether a client is asked before a tool is called, and the question.

use std::collections::{BTreeMap, HashSet};

use config::McpApprovalMode;
use parking_lot::Mutex;
use protocol::{
    AskForApproval, McpElicitationObjectType, McpElicitationSchema, McpServerElicitationAction,
    McpServerElicitationRequest, McpServerElicitationRequestParams, McpServerElicitationRequestResponse,
    SandboxPolicy,
};
use serde_json::{Value, json};
use tools::ToolCx;

use crate::tool::ServerTool;

/// Approvals while the thread is loaded: server, tool, and the tool's description at that time.
#[derive(Debug, Default)]
pub(crate) struct Agreed(Mutex<HashSet<String>>);

impl Agreed {
    fn key(server: &str, tool: &ServerTool) -> String {
        json!([server, tool.name, tool.raw]).to_string()
    }

    pub(crate) fn has(&self, server: &str, tool: &ServerTool) -> bool {
        self.0.lock().contains(&Self::key(server, tool))
    }

    pub(crate) fn add(&self, server: &str, tool: &ServerTool) {
        self.0.lock().insert(Self::key(server, tool));
    }
}

/// The scope of an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Consent {
    No,
    Once,
    Session,
    /// Permanently.
    Always,
}

/// Whether a client is asked, before earlier approvals are considered.
pub(crate) fn asks(
    mode: McpApprovalMode,
    tool: &ServerTool,
    policy: &AskForApproval,
    sandbox: &SandboxPolicy,
) -> bool {
    let has_no_sandbox =
        matches!(sandbox, SandboxPolicy::DangerFullAccess | SandboxPolicy::ExternalSandbox { .. });
    if *policy == AskForApproval::Never && has_no_sandbox {
        return false;
    }
    match mode {
        McpApprovalMode::Auto => tool.needs_approval(),
        McpApprovalMode::Prompt => true,
        // Approved in the configuration, but with its earlier description.
        McpApprovalMode::Approve => tool.is_changed,
    }
}

pub(crate) fn question(
    cx: &ToolCx,
    server: &str,
    tool: &ServerTool,
    arguments: &Value,
    mode: McpApprovalMode,
) -> McpServerElicitationRequestParams {
    let title = tool.title.as_deref().unwrap_or(&tool.name);
    let display: Vec<Value> = arguments
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| json!({"name": name, "display_name": name, "value": value}))
        .collect();
    let mut meta = json!({
        "codex_approval_kind": "mcp_tool_call",
        "tool_title": title,
        "tool_description": tool.description,
        "tool_params": arguments,
        "tool_params_display": display,
    });
    if mode != McpApprovalMode::Prompt {
        meta["persist"] = json!(["session", "always"]);
    }
    McpServerElicitationRequestParams {
        thread_id: cx.thread_id().clone(),
        turn_id: Some(cx.turn_id().clone()),
        operation_id: None,
        arguments_digest: None,
        server_name: server.to_owned(),
        request: McpServerElicitationRequest::Form {
            meta: Some(meta),
            message: format!("Allow the MCP server {server} to run the tool \"{title}\"?"),
            requested_schema: McpElicitationSchema {
                dollar_schema: None,
                r#type: McpElicitationObjectType::Object,
                properties: BTreeMap::new(),
                required: None,
            },
        },
    }
}

/// The scope in an answer. If each call needs approval, it covers one call.
pub(crate) fn consent(answer: &McpServerElicitationRequestResponse, mode: McpApprovalMode) -> Consent {
    if answer.action != McpServerElicitationAction::Accept {
        return Consent::No;
    }
    let persist = answer.meta.as_ref().and_then(|meta| meta.get("persist")).and_then(Value::as_str);
    match persist {
        _ if mode == McpApprovalMode::Prompt => Consent::Once,
        Some("session") => Consent::Session,
        Some("always") => Consent::Always,
        _ => Consent::Once,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(annotations: &Value) -> ServerTool {
        ServerTool::read(&json!({"name": "t", "annotations": annotations})).expect("a tool")
    }

    #[test]
    fn who_is_asked() {
        use McpApprovalMode::{Approve, Auto, Prompt};
        let confined = SandboxPolicy::ReadOnly { access: Default::default(), network_access: false };
        let full = SandboxPolicy::DangerFullAccess;
        let (reads, writes) = (tool(&json!({"readOnlyHint": true})), tool(&json!({})));
        let mut changed = reads.clone();
        changed.is_changed = true;
        for (mode, tool, policy, sandbox, expected) in [
            (Auto, &reads, AskForApproval::OnRequest, &confined, false),
            (Auto, &writes, AskForApproval::OnRequest, &confined, true),
            (Auto, &writes, AskForApproval::OnRequest, &full, true),
            (Auto, &writes, AskForApproval::Never, &confined, true),
            (Auto, &writes, AskForApproval::Never, &full, false),
            (Prompt, &reads, AskForApproval::OnRequest, &confined, true),
            (Approve, &writes, AskForApproval::OnRequest, &confined, false),
            (Approve, &changed, AskForApproval::OnRequest, &confined, true),
            (Auto, &changed, AskForApproval::OnRequest, &confined, true),
        ] {
            assert_eq!(asks(mode, tool, &policy, sandbox), expected, "{mode:?} {policy:?} {sandbox:?}");
        }
    }

    #[test]
    fn a_yes_lasts_as_long_as_it_says() {
        let answer =
            |action, meta| McpServerElicitationRequestResponse { action, content: None, meta, origin: None };
        use McpServerElicitationAction::{Accept, Cancel, Decline};
        for (given, mode, expected) in [
            (answer(Accept, None), McpApprovalMode::Auto, Consent::Once),
            (answer(Accept, Some(json!({"persist": "session"}))), McpApprovalMode::Auto, Consent::Session),
            (answer(Accept, Some(json!({"persist": "always"}))), McpApprovalMode::Auto, Consent::Always),
            (answer(Accept, Some(json!({"persist": "always"}))), McpApprovalMode::Prompt, Consent::Once),
            (answer(Decline, Some(json!({"persist": "always"}))), McpApprovalMode::Auto, Consent::No),
            (answer(Cancel, None), McpApprovalMode::Auto, Consent::No),
        ] {
            assert_eq!(consent(&given, mode), expected, "{given:?}");
        }
    }

    #[test]
    fn a_yes_is_for_the_tool_as_it_was_described() {
        let agreed = Agreed::default();
        let before = tool(&json!({}));
        agreed.add("s", &before);
        assert!(agreed.has("s", &before) && !agreed.has("other", &before));
        assert!(!agreed.has("s", &tool(&json!({"title": "other"}))));
    }
}
