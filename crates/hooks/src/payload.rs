//! The JSON that a hook reads from its standard input.

use protocol::{AskForApproval, HookEventName, ThreadId, TurnId};
use serde_json::{Value, json};

use crate::definition::word;

/// The facts that every hook gets.
#[derive(Debug, Clone)]
pub struct HookFacts {
    pub thread_id: ThreadId,
    pub turn_id: TurnId,
    /// The path of the thread's record, if it has one here.
    pub transcript_path: Option<String>,
    pub cwd: String,
    pub model: String,
    pub approval_policy: AskForApproval,
}

/// Why hooks run.
#[derive(Debug, Clone, PartialEq)]
pub enum HookTrigger {
    SessionStart {
        /// The thread existed before this process.
        is_resumed: bool,
    },
    UserPromptSubmit {
        prompt: String,
    },
    PreToolUse {
        call_id: String,
        command: String,
    },
    PostToolUse {
        call_id: String,
        command: String,
        response: Value,
    },
    Stop {
        is_repeated: bool,
        last_message: Option<String>,
    },
}

/// The name of every command tool for hooks.
const TOOL: &str = "Bash";

impl HookTrigger {
    pub fn event(&self) -> HookEventName {
        match self {
            Self::SessionStart { .. } => HookEventName::SessionStart,
            Self::UserPromptSubmit { .. } => HookEventName::UserPromptSubmit,
            Self::PreToolUse { .. } => HookEventName::PreToolUse,
            Self::PostToolUse { .. } => HookEventName::PostToolUse,
            Self::Stop { .. } => HookEventName::Stop,
        }
    }

    /// The text that matchers match.
    pub(crate) fn subject(&self) -> &'static str {
        match self {
            Self::SessionStart { is_resumed } => start_source(*is_resumed),
            Self::PreToolUse { .. } | Self::PostToolUse { .. } => TOOL,
            Self::UserPromptSubmit { .. } | Self::Stop { .. } => "",
        }
    }

    /// One JSON object.
    pub(crate) fn payload(&self, facts: &HookFacts) -> Value {
        let mode = match facts.approval_policy {
            AskForApproval::Never => "bypassPermissions",
            _ => "default",
        };
        let mut payload = json!({
            "session_id": facts.thread_id,
            "transcript_path": facts.transcript_path,
            "cwd": facts.cwd,
            "hook_event_name": word(self.event()),
            "model": facts.model,
            "permission_mode": mode,
        });
        let own = match self {
            Self::SessionStart { is_resumed } => json!({"source": start_source(*is_resumed)}),
            Self::UserPromptSubmit { prompt } => json!({"turn_id": facts.turn_id, "prompt": prompt}),
            Self::PreToolUse { call_id, command } => json!({
                "turn_id": facts.turn_id,
                "tool_name": TOOL,
                "tool_input": {"command": command},
                "tool_use_id": call_id,
            }),
            Self::PostToolUse { call_id, command, response } => json!({
                "turn_id": facts.turn_id,
                "tool_name": TOOL,
                "tool_input": {"command": command},
                "tool_use_id": call_id,
                "tool_response": response,
            }),
            Self::Stop { is_repeated, last_message } => json!({
                "turn_id": facts.turn_id,
                "stop_hook_active": is_repeated,
                "last_assistant_message": last_message,
            }),
        };
        if let (Some(payload), Value::Object(own)) = (payload.as_object_mut(), own) {
            payload.extend(own);
        }
        payload
    }
}

fn start_source(is_resumed: bool) -> &'static str {
    if is_resumed { "resume" } else { "startup" }
}
