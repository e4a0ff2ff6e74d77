//! The two tools, under the names and with the arguments that clients of the reference know.

use std::collections::BTreeMap;
use std::path::PathBuf;

use core_api::ThreadOptions;
use core_api::protocol::{AskForApproval, SandboxMode};
use serde::Deserialize;
use serde_json::{Value, json};

pub(super) const START: &str = "codex";
pub(super) const REPLY: &str = "codex-reply";

/// Arguments of the tool that begins a thread.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct StartArguments {
    pub(super) prompt: String,
    model: Option<String>,
    profile: Option<String>,
    cwd: Option<PathBuf>,
    approval_policy: Option<AskForApproval>,
    sandbox: Option<SandboxMode>,
    config: Option<BTreeMap<String, Value>>,
    base_instructions: Option<String>,
    developer_instructions: Option<String>,
    compact_prompt: Option<String>,
}

/// Arguments of the tool that goes on with one.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ReplyArguments {
    pub(super) prompt: String,
    thread_id: Option<String>,
    conversation_id: Option<String>,
}

impl StartArguments {
    pub(super) fn options(self) -> (String, ThreadOptions) {
        let mut config = self.config.unwrap_or_default();
        let texts = [("profile", self.profile), ("compact_prompt", self.compact_prompt)];
        config
            .extend(texts.into_iter().filter_map(|(key, text)| Some((key.to_owned(), Value::String(text?)))));
        let options = ThreadOptions {
            cwd: self.cwd,
            model: self.model,
            approval_policy: self.approval_policy,
            sandbox: self.sandbox,
            base_instructions: self.base_instructions,
            developer_instructions: self.developer_instructions,
            config,
            ..ThreadOptions::default()
        };
        (self.prompt, options)
    }
}

impl ReplyArguments {
    pub(super) fn thread(&self) -> Option<&str> {
        self.thread_id.as_deref().or(self.conversation_id.as_deref())
    }
}

pub(super) fn list() -> Value {
    let text = |about: &str| json!({"type": "string", "description": about});
    let choice =
        |about: &str, values: &[&str]| json!({"type": "string", "description": about, "enum": values});
    let result = json!({
        "type": "object",
        "properties": {"threadId": {"type": "string"}, "content": {"type": "string"}},
        "required": ["threadId", "content"],
    });
    let start = json!({
        "prompt": text("What the agent is asked to do."),
        "cwd": text("The folder it works in. A relative one counts from the folder of this server."),
        "model": text("The model by its name."),
        "profile": text("A profile of config.toml to take the defaults from."),
        "approval-policy": choice(
            "Which actions are asked about.", &["untrusted", "on-failure", "on-request", "never"]),
        "sandbox": choice(
            "What commands may do without being asked about.",
            &["read-only", "workspace-write", "danger-full-access"]),
        "config": {"type": "object", "additionalProperties": true,
                   "description": "More of the configuration, by dotted key."},
        "base-instructions": text("Takes the place of the built-in instructions."),
        "developer-instructions": text("Is added to the built-in instructions."),
        "compact-prompt": text("Is used when a long conversation is summarised."),
    });
    let reply = json!({
        "prompt": text("What to say next."),
        "threadId": text("The thread, as the first call named it."),
        "conversationId": text("The older name of threadId."),
    });
    json!([
        {"name": START, "title": "Oarlock",
         "description": "Have an agent work on something in a folder: it reads, writes and runs commands in a sandbox, \
                         and answers when it is done.",
         "inputSchema": {"type": "object", "properties": start, "required": ["prompt"]}, "outputSchema": result},
        {"name": REPLY, "title": "Oarlock: go on",
         "description": "Say more to an agent that worked before, in the thread that its first answer names.",
         "inputSchema": {"type": "object", "properties": reply, "required": ["prompt"]}, "outputSchema": result},
    ])
}
