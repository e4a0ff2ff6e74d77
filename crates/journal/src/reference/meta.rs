//! Converts the identity of a thread between the reference's form and ours.

use protocol::{AgentPath, DynamicToolSpec, GitInfo, SessionMeta, SessionSource, SubAgentSource, ThreadId};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::layout::ThreadKey;
use crate::time;

/// The payload of a `session_meta` line. Only the id is required; old files may lack everything else.
#[derive(Serialize, Deserialize)]
pub(super) struct ReferenceMeta {
    id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    forked_from_id: Option<String>,
    #[serde(default)]
    timestamp: String,
    #[serde(default)]
    cwd: String,
    #[serde(default)]
    originator: String,
    #[serde(default)]
    cli_version: String,
    #[serde(default)]
    source: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent_nickname: Option<String>,
    #[serde(default, alias = "agent_type", skip_serializing_if = "Option::is_none")]
    agent_role: Option<String>,
    #[serde(default)]
    model_provider: Option<String>,
    #[serde(default)]
    base_instructions: Option<InstructionText>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dynamic_tools: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    memory_mode: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    git: Option<ReferenceGit>,
}

#[derive(Serialize, Deserialize)]
struct InstructionText {
    text: String,
}

#[derive(Serialize, Deserialize)]
struct ReferenceGit {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    commit_hash: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    repository_url: Option<String>,
}

impl ReferenceMeta {
    /// None if the id is not a thread id.
    pub(super) fn into_ours(self, at_ms: i64) -> Option<SessionMeta> {
        let key = ThreadKey::parse(&self.id).ok()?;
        let forked_from = self.forked_from_id.and_then(|id| ThreadKey::parse(&id).ok());
        let tools = self.dynamic_tools.and_then(|tools| Vec::<DynamicToolSpec>::deserialize(tools).ok());
        Some(SessionMeta {
            thread_id: key.thread_id(),
            session_id: key.as_str().to_owned(),
            created_at_ms: time::parse_ms(&self.timestamp).unwrap_or(at_ms),
            cwd: self.cwd,
            originator: self.originator,
            cli_version: self.cli_version,
            source: source_of(&self.source),
            model_provider: self.model_provider.unwrap_or_default(),
            model: None,
            base_instructions: self.base_instructions.map(|instructions| instructions.text),
            developer_instructions: None,
            forked_from_id: forked_from.map(|key| key.thread_id()),
            thread_source: None,
            agent_nickname: self.agent_nickname,
            agent_role: self.agent_role,
            git_info: self.git.map(|git| GitInfo {
                sha: git.commit_hash,
                branch: git.branch,
                origin_url: git.repository_url,
            }),
            dynamic_tools: tools.filter(|tools| !tools.is_empty()),
            memory_mode: self.memory_mode,
        })
    }

    pub(super) fn of(meta: &SessionMeta) -> Self {
        let tools = meta.dynamic_tools.as_ref().filter(|tools| !tools.is_empty());
        Self {
            id: meta.thread_id.to_string(),
            forked_from_id: meta.forked_from_id.as_ref().map(ToString::to_string),
            timestamp: time::format_ms(meta.created_at_ms),
            cwd: meta.cwd.clone(),
            originator: meta.originator.clone(),
            cli_version: meta.cli_version.clone(),
            source: source_value(&meta.source),
            agent_nickname: meta.agent_nickname.clone(),
            agent_role: meta.agent_role.clone(),
            model_provider: Some(meta.model_provider.clone()),
            base_instructions: meta.base_instructions.clone().map(|text| InstructionText { text }),
            dynamic_tools: tools.map(|tools| json!(tools)),
            memory_mode: meta.memory_mode.clone(),
            git: meta.git_info.as_ref().map(|git| ReferenceGit {
                commit_hash: git.sha.clone(),
                branch: git.branch.clone(),
                repository_url: git.origin_url.clone(),
            }),
        }
    }
}

/// The origin of the thread. A missing word is the reference's default.
fn source_of(source: &Value) -> SessionSource {
    let word = |value: &Value| value.as_str().map(str::to_owned);
    match source.as_str() {
        Some("cli") => return SessionSource::Cli,
        Some("exec") => return SessionSource::Exec,
        Some("mcp") => return SessionSource::AppServer,
        Some("vscode") => return SessionSource::Vscode,
        Some(_) => return SessionSource::Unknown,
        None if source.is_null() => return SessionSource::Vscode,
        None => {}
    }
    if let Some(name) = word(&source["custom"]) {
        return SessionSource::Custom(name);
    }
    let agent = &source["subagent"];
    let spawned = &agent["thread_spawn"];
    let kind = match agent.as_str() {
        Some("review") => SubAgentSource::Review,
        Some("compact") => SubAgentSource::Compact,
        Some("memory_consolidation") => SubAgentSource::MemoryConsolidation,
        Some(other) => SubAgentSource::Other(other.to_owned()),
        None if spawned.is_object() => SubAgentSource::ThreadSpawn {
            parent_thread_id: ThreadId::new(spawned["parent_thread_id"].as_str().unwrap_or_default()),
            depth: spawned["depth"].as_i64().and_then(|depth| i32::try_from(depth).ok()).unwrap_or(1),
            agent_path: word(&spawned["agent_path"]).map(AgentPath::new),
            agent_nickname: word(&spawned["agent_nickname"]),
            agent_role: word(&spawned["agent_role"]),
        },
        None => match word(&agent["other"]) {
            Some(other) => SubAgentSource::Other(other),
            None => return SessionSource::Unknown,
        },
    };
    SessionSource::SubAgent(kind)
}

fn source_value(source: &SessionSource) -> Value {
    match source {
        SessionSource::Cli => json!("cli"),
        SessionSource::Vscode => json!("vscode"),
        SessionSource::Exec => json!("exec"),
        SessionSource::AppServer => json!("mcp"),
        SessionSource::Unknown => json!("unknown"),
        SessionSource::Custom(name) => json!({ "custom": name }),
        SessionSource::SubAgent(agent) => json!({ "subagent": agent }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_to_leave_no_memories_is_kept() {
        let id = "01a1eb03-5606-70d1-bc63-6c0aa903a8e2";
        let theirs = |meta| serde_json::from_value::<ReferenceMeta>(meta).expect("read");
        let meta = theirs(json!({ "id": id, "memory_mode": "disabled" })).into_ours(0).expect("an id");
        assert_eq!(meta.memory_mode.as_deref(), Some("disabled"));
        assert_eq!(json!(ReferenceMeta::of(&meta))["memory_mode"], "disabled");
        let meta = theirs(json!({ "id": id })).into_ours(0).expect("an id");
        assert_eq!(json!(ReferenceMeta::of(&meta)).get("memory_mode"), None);
    }

    #[test]
    fn sources_are_converted_both_ways() {
        let parent = "01a1eb03-5606-70d1-bc63-6c0aa903a8e2";
        for source in [
            json!("cli"),
            json!("vscode"),
            json!("exec"),
            json!("mcp"),
            json!("unknown"),
            json!({ "custom": "atlas" }),
            json!({ "subagent": "review" }),
            json!({ "subagent": "memory_consolidation" }),
            json!({ "subagent": { "other": "agent_job:1" } }),
            json!({ "subagent": { "thread_spawn": {
                "parent_thread_id": parent, "depth": 1, "agent_path": null, "agent_nickname": "n", "agent_role": null,
            } } }),
        ] {
            assert_eq!(source_value(&source_of(&source)), source);
        }
        assert_eq!(source_of(&Value::Null), SessionSource::Vscode);
        for strange in [json!(7), json!({}), json!({ "subagent": 3 }), json!("newer")] {
            assert_eq!(source_of(&strange), SessionSource::Unknown, "{strange}");
        }
    }
}
