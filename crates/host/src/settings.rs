//! The settings of a task: what its thread was started with, what turns changed, and how its last runtime opened it.

use protocol::{
    DelegatedProvider, DelegatedStream, DelegationMode, ProvidedTool, RolloutOwnership, SandboxPolicy,
    TaskBudget, ThreadDelegation, ThreadResumeParams, ThreadStartParams, TurnStartParams,
};
use serde_json::{Map, Value, json};

use crate::error::TaskError;
use crate::options::{CarriedProvider, HostOptions, PROVIDER_ID};

/// The delegation wire this host speaks.
pub(crate) const DELEGATION_VERSION: u32 = 1;

/// Fields that `thread/resume` takes as `thread/start` does.
const RESUMED: &[&str] = &[
    "model",
    "serviceTier",
    "cwd",
    "approvalPolicy",
    "approvalsReviewer",
    "sandbox",
    "config",
    "baseInstructions",
    "developerInstructions",
    "personality",
    "persistExtendedHistory",
    "toolSet",
];

/// Those that an agent has of its own, in its record.
const OWN_OF_AGENTS: &[&str] =
    &["model", "serviceTier", "cwd", "baseInstructions", "developerInstructions", "personality", "toolSet"];
/// The same in `config`.
const OWN_KEYS_OF_AGENTS: &[&str] = &["model", "model_reasoning_effort", "profile"];

/// As they are in the task's row: `params` to start with, `opened` as the last runtime answered.
#[derive(Debug, Clone, Default)]
pub(crate) struct TaskSettings {
    params: Map<String, Value>,
    opened: Map<String, Value>,
    /// Digests of the schemas of function tools, by `namespace/name`, as declared with the tool set.
    schemas: Map<String, Value>,
    budget: Option<Value>,
    priority: i64,
    /// The user agent of the client that started the task.
    client: String,
    /// The provider of the client that carries the task's model requests; null where the host itself does.
    carried: Value,
}

/// The key of a tool in `schemas`.
fn tool_key(namespace: Option<&str>, name: &str) -> String {
    format!("{}/{name}", namespace.unwrap_or_default())
}

fn schemas_of(provides: Option<&[ProvidedTool]>) -> Map<String, Value> {
    let declared = provides.into_iter().flatten().filter_map(|tool| {
        let digest = tool.schema_digest.as_ref()?;
        Some((tool_key(tool.namespace.as_deref(), &tool.name), json!(digest)))
    });
    declared.collect()
}

impl TaskSettings {
    pub(crate) fn read(value: &Value) -> Self {
        let object = |name: &str| value[name].as_object().cloned().unwrap_or_default();
        Self {
            params: object("params"),
            opened: object("opened"),
            schemas: object("schemas"),
            budget: Some(value["budget"].clone()).filter(|budget| budget.is_object()),
            priority: value["priority"].as_i64().unwrap_or(0),
            client: value["client"].as_str().unwrap_or_default().to_owned(),
            carried: value["carried"].clone(),
        }
    }

    pub(crate) fn to_value(&self) -> Value {
        json!({
            "params": self.params, "opened": self.opened, "schemas": self.schemas, "budget": self.budget,
            "priority": self.priority, "client": self.client, "carried": self.carried,
        })
    }

    /// Changes settings where they are stored.
    pub(crate) fn change<T>(stored: &mut Value, change: impl FnOnce(&mut Self) -> T) -> T {
        let mut settings = Self::read(stored);
        let result = change(&mut settings);
        *stored = settings.to_value();
        result
    }

    /// Of a new thread. Who carries requests and keeps the record is the host's own choice.
    pub(crate) fn started_with(params: &ThreadStartParams, user_agent: &str) -> Self {
        let schemas = schemas_of(params.provides.as_deref());
        let budget = params.budget.as_ref().map(|budget| json!(budget));
        let priority = params.priority.map_or(0, i64::from);
        let carried = carried_by(params.delegation.as_ref());
        let mut params = match serde_json::to_value(params) {
            Ok(Value::Object(params)) => params,
            _ => Map::new(),
        };
        let start = ["threadId", "modelProvider", "placement", "provides", "budget", "priority", "labels"];
        for own in start.into_iter().chain(["delegation", "rolloutOwnership", "resumeTurn", "agentDigest"]) {
            params.remove(own);
        }
        // About the place of the runtime, and nothing to it.
        if let Some(Value::Object(config)) = params.get_mut("config") {
            config.retain(|key, _| !key.starts_with("placements."));
        }
        Self { params, opened: Map::new(), schemas, budget, priority, client: user_agent.to_owned(), carried }
    }

    pub(crate) fn schema_digest(&self, namespace: Option<&str>, name: &str) -> Option<String> {
        self.schemas.get(&tool_key(namespace, name))?.as_str().map(str::to_owned)
    }

    /// How much the task may use, as asked for when it was started.
    pub(crate) fn budget(&self) -> Option<TaskBudget> {
        serde_json::from_value(self.budget.clone()?).ok()
    }

    /// The provider of the client that is to carry the task's model requests.
    pub(crate) fn carried(&self) -> Option<DelegatedProvider> {
        serde_json::from_value(self.carried.clone()).ok()
    }

    /// Whether this opening changes who carries the task's model requests, or with which provider.
    pub(crate) fn has_other_carrier(&self, asked: Option<&ThreadDelegation>) -> bool {
        asked.is_some_and(|asked| self.carried != carried_by(Some(asked)))
    }

    pub(crate) fn carry_as(&mut self, asked: Option<&ThreadDelegation>) {
        if asked.is_some() {
            self.carried = carried_by(asked);
        }
    }

    /// In an answer of a runtime: the provider by the name that its client has for it.
    pub(crate) fn name_carried(&self, shown: &mut Value) {
        let Some(own) = self.carried() else { return };
        for place in ["/modelProvider", "/thread/modelProvider"] {
            if let Some(name) = shown.pointer_mut(place)
                && name.as_str() == Some(PROVIDER_ID)
            {
                *name = json!(own.id);
            }
        }
    }

    pub(crate) fn client(&self) -> &str {
        &self.client
    }

    /// The sandbox of the task's commands, as providers are told: by its mechanism.
    pub(crate) fn sandbox_word(&self) -> &'static str {
        match self.opened.get("sandbox").and_then(|policy| policy["type"].as_str()) {
            Some("readOnly" | "workspaceWrite") => "seccomp",
            Some("externalSandbox") => "external",
            _ => "none",
        }
    }

    /// Tasks with a higher one are started first where there is no room for all.
    pub(crate) fn priority(&self) -> i64 {
        self.priority
    }

    /// Whether somebody decides before a client runs its tool.
    pub(crate) fn asks_before(&self, tool: &str) -> bool {
        let rules = self.params.get("toolSet").map(|tools| &tools["approval"]);
        rules.is_some_and(|rules| {
            let own = rules["perTool"][tool].as_str();
            own.or(rules["default"].as_str()) == Some("host")
        })
    }

    /// The name of the agent that the task was started for.
    pub(crate) fn agent(&self) -> Option<String> {
        self.params.get("threadSource")?.as_str().map(str::to_owned)
    }

    pub(crate) fn cwd(&self) -> Option<String> {
        let of = |map: &Map<String, Value>| map.get("cwd")?.as_str().map(str::to_owned);
        of(&self.opened).or_else(|| of(&self.params))
    }

    /// As the runtime answered when it opened the thread, without the turns.
    pub(crate) fn opened(&self) -> &Map<String, Value> {
        &self.opened
    }

    pub(crate) fn set_opened(&mut self, opened: &Value) {
        let Value::Object(opened) = without_terms(opened.clone()) else { return };
        self.opened = opened;
        if let Some(thread) = self.opened.get_mut("thread") {
            thread["turns"] = json!([]);
        }
    }

    /// Changes of a turn hold for later turns too, and so for the next runtime.
    pub(crate) fn changed_by_turn(&mut self, params: &TurnStartParams) {
        let mut set = |name: &str, value: Value| {
            if !value.is_null() {
                if self.opened.contains_key(name) {
                    self.opened.insert(name.to_owned(), value.clone());
                }
                self.params.insert(name.to_owned(), value);
            }
        };
        set("cwd", json!(params.cwd));
        set("approvalPolicy", json!(params.approval_policy));
        set("approvalsReviewer", json!(params.approvals_reviewer));
        set("model", json!(params.model));
        set("personality", json!(params.personality));
        if let Some(policy) = &params.sandbox_policy {
            self.set_sandbox(policy);
        }
        if let Some(effort) = &params.effort {
            self.opened.insert("reasoningEffort".to_owned(), json!(effort));
            self.set_config("model_reasoning_effort", json!(effort));
        }
    }

    /// A runtime is opened with a sandbox by name; the details go by configuration.
    fn set_sandbox(&mut self, policy: &SandboxPolicy) {
        self.opened.insert("sandbox".to_owned(), json!(policy));
        let mode = match policy {
            SandboxPolicy::DangerFullAccess | SandboxPolicy::ExternalSandbox { .. } => "danger-full-access",
            SandboxPolicy::ReadOnly { .. } => "read-only",
            SandboxPolicy::WorkspaceWrite {
                network_access,
                writable_roots,
                exclude_tmpdir_env_var,
                exclude_slash_tmp,
                ..
            } => {
                let table = json!({
                    "network_access": network_access,
                    "writable_roots": writable_roots,
                    "exclude_tmpdir_env_var": exclude_tmpdir_env_var,
                    "exclude_slash_tmp": exclude_slash_tmp,
                });
                self.set_config("sandbox_workspace_write", table);
                "workspace-write"
            }
        };
        self.params.insert("sandbox".to_owned(), json!(mode));
    }

    fn set_config(&mut self, key: &str, value: Value) {
        let config = self.params.entry("config").or_insert_with(|| json!({}));
        if !config.is_object() {
            *config = json!({});
        }
        config[key] = value;
    }

    /// Whether this opening brings tools of its own that are not those of the task.
    pub(crate) fn has_other_tools(&self, params: &ThreadResumeParams) -> bool {
        let asked = params.provides.as_ref().and(params.tool_set.as_ref());
        asked.is_some_and(|asked| self.params.get("toolSet") != Some(&json!(asked)))
    }

    /// Takes over the choices of `thread/resume`, and the schemas of an opening with tools of its own. Gives the names of tools
    /// that were declared with another schema before.
    pub(crate) fn resume(&mut self, params: &ThreadResumeParams) -> Vec<String> {
        self.override_with(&serde_json::to_value(params).unwrap_or_default());
        if params.tool_set.is_none() {
            return Vec::new();
        }
        let mut changed = Vec::new();
        for (key, digest) in schemas_of(params.provides.as_deref()) {
            let name = key.rsplit('/').next().unwrap_or_default().to_owned();
            if self.schemas.insert(key, digest.clone()).is_some_and(|before| before != digest) {
                changed.push(name);
            }
        }
        changed
    }

    /// The choices of `thread/resume` where no runtime holds the thread, and of `thread/fork`.
    pub(crate) fn override_with(&mut self, params: &Value) {
        for name in RESUMED {
            if let Some(value) = params.get(*name).filter(|value| !value.is_null()) {
                self.params.insert((*name).to_owned(), value.clone());
            }
        }
    }

    /// The params of `thread/start` for a thread without records.
    pub(crate) fn start_params(&self, thread: &str, epoch: u64, provider: &CarriedProvider) -> Value {
        let mut params = self.params.clone();
        params.insert("threadId".to_owned(), json!(thread));
        self.delegated(params, epoch, provider)
    }

    /// The params of `thread/resume`, but for the record.
    pub(crate) fn resume_params(&self, thread: &str, epoch: u64, provider: &CarriedProvider) -> Value {
        self.delegated(self.resumed(thread), epoch, provider)
    }

    fn resumed(&self, thread: &str) -> Map<String, Value> {
        let mut params: Map<String, Value> = RESUMED
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), self.params.get(*name)?.clone())))
            .collect();
        params.insert("threadId".to_owned(), json!(thread));
        params.insert("resumeTurn".to_owned(), json!(true));
        params.insert("excludeTurns".to_owned(), json!(true));
        params
    }

    /// The params of `thread/resume` for an agent of the task, but for its record. It may do what its task may now; its model,
    /// folder and instructions are in its record.
    pub(crate) fn agent_params(&self, thread: &str, epoch: u64, provider: &CarriedProvider) -> Value {
        let params = self.delegated(of_agent(self.resumed(thread)), epoch, provider);
        without(params, "model")
    }

    fn delegated(&self, mut params: Map<String, Value>, epoch: u64, provider: &CarriedProvider) -> Value {
        let carried = self.carried();
        let delegated = match &carried {
            Some(own) => DelegatedProvider { id: PROVIDER_ID.to_owned(), ..own.clone() },
            None => provider.delegated(),
        };
        // A client that carries it may come much later. The host limits how long one that is there may take.
        let stream = carried.as_ref().map(|_| DelegatedStream {
            window_events: None,
            window_bytes: None,
            first_event_timeout_ms: Some(CARRIER_WITHIN_MS),
            idle_timeout_ms: None,
        });
        let delegation = ThreadDelegation {
            mode: DelegationMode::Full,
            version: DELEGATION_VERSION,
            provider: Some(delegated),
            stream,
            subagents: None,
            host_epoch: Some(epoch),
        };
        params.insert("delegation".to_owned(), json!(delegation));
        params.insert("rolloutOwnership".to_owned(), json!(RolloutOwnership::Client));
        if let Some(model) = &provider.default_model
            && carried.is_none()
            && !chooses_model(&params)
        {
            params.insert("model".to_owned(), json!(model));
        }
        Value::Object(params)
    }
}

/// How long a runtime waits for a client that carries its model requests; its host ends it before that.
const CARRIER_WITHIN_MS: u64 = 30 * 24 * 60 * 60 * 1_000;
/// The longest name of a client's provider, in bytes.
const MAX_PROVIDER_NAME: usize = 64;

/// As it is in the task's settings.
fn carried_by(asked: Option<&ThreadDelegation>) -> Value {
    let full = asked.filter(|asked| asked.mode == DelegationMode::Full);
    full.map_or(Value::Null, |asked| json!(asked.provider))
}

/// Checks the delegation that a client asks for to carry a task's model requests.
pub(crate) fn check_delegation(asked: Option<&ThreadDelegation>) -> Result<(), TaskError> {
    let Some(asked) = asked else { return Ok(()) };
    let refused = |field, problem: &str| Err(TaskError::Field { field, problem: problem.to_owned() });
    if asked.version != DELEGATION_VERSION {
        return refused("delegation.version", "this host speaks version 1");
    }
    if asked.host_epoch.is_some() || asked.stream.is_some() || asked.subagents.is_some() {
        let problem = "beside `mode`, `version` and `provider` a host takes nothing; leave the rest out";
        return refused("delegation", problem);
    }
    let provider = match (asked.mode, &asked.provider) {
        (DelegationMode::Direct, _) => return Ok(()),
        (DelegationMode::Full, Some(provider)) => provider,
        (DelegationMode::Full, None) => {
            return refused("delegation.provider", "is missing, and mode `full` needs it");
        }
    };
    let id = provider.id.as_str();
    if id.is_empty() || id.trim() != id || id.len() > MAX_PROVIDER_NAME || id.contains(char::is_control) {
        let problem = "must be a name of at most 64 bytes, without spaces around it";
        return refused("delegation.provider.id", problem);
    }
    if provider.capabilities.context_window == Some(0) {
        return refused("delegation.provider.capabilities.contextWindow", "must be more than 0");
    }
    Ok(())
}

/// Without what an agent has of its own.
fn of_agent(mut params: Map<String, Value>) -> Map<String, Value> {
    params.retain(|name, _| !OWN_OF_AGENTS.contains(&name.as_str()));
    if let Some(Value::Object(config)) = params.get_mut("config") {
        config.retain(|key, _| !OWN_KEYS_OF_AGENTS.contains(&key.as_str()));
    }
    params
}

fn without(mut params: Value, name: &str) -> Value {
    params.as_object_mut().map(|params| params.remove(name));
    params
}

/// Whether the model is chosen by the field, by a key of `config`, or by a profile that may have one.
fn chooses_model(params: &Map<String, Value>) -> bool {
    let of_config = params.get("config").and_then(Value::as_object);
    params.contains_key("model")
        || of_config.is_some_and(|config| config.contains_key("model") || config.contains_key("profile"))
}

/// The terms between the host and its runtime.
const TERMS: &[&str] = &[
    "delegation",
    "rolloutOwnership",
    "fidelity",
    "rebuilt",
    "rolloutOrdinal",
    "itemsDigest",
    "effectiveTools",
    "toolSetDigest",
    "pendingOperations",
];

/// The answer of an opening as clients of the host see it.
pub(crate) fn without_terms(mut opened: Value) -> Value {
    if let Some(opened) = opened.as_object_mut() {
        opened.retain(|name, _| !TERMS.contains(&name.as_str()));
    }
    opened
}

/// The thread in an answer of a runtime as clients see it: with the provider by the name the configuration has for it, and
/// with a path.
pub(crate) fn shown_to_clients(value: &mut Value, options: &HostOptions) {
    for place in ["/modelProvider", "/thread/modelProvider"] {
        if let Some(name) = value.pointer_mut(place)
            && name.as_str() == Some(PROVIDER_ID)
        {
            *name = json!(options.provider.id);
        }
    }
    if let Some(id) = value.pointer("/thread/id").and_then(Value::as_str) {
        value["thread"]["path"] = json!(options.path_of(id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_that_the_thread_chooses_by_any_way_is_not_the_hosts_default() {
        for (params, chooses) in [
            (json!({}), false),
            (json!({"config": {"model_reasoning_effort": "high"}}), false),
            (json!({"model": "m"}), true),
            (json!({"config": {"model": "m"}}), true),
            (json!({"config": {"profile": "p"}}), true),
        ] {
            assert_eq!(chooses_model(params.as_object().expect("an object")), chooses, "{params}");
        }
    }

    #[test]
    fn an_agent_keeps_its_own_model_and_folder_and_has_the_permissions_of_its_task() {
        let start: ThreadStartParams = serde_json::from_value(json!({
            "cwd": "/a", "approvalPolicy": "untrusted", "model": "m", "sandbox": "read-only", "labels": {"a": "b"},
            "config": {"model": "m", "sandbox_workspace_write": {"network_access": true}}, "agentDigest": "sha256:1",
        }))
        .expect("params");
        let settings = TaskSettings::started_with(&start, "");
        assert!(!settings.params.contains_key("labels") && !settings.params.contains_key("agentDigest"));
        let params = of_agent(settings.resumed("agent"));
        assert_eq!(
            (&params["approvalPolicy"], &params["sandbox"]),
            (&json!("untrusted"), &json!("read-only"))
        );
        assert_eq!(params["config"], json!({"sandbox_workspace_write": {"network_access": true}}));
        for own in ["model", "cwd"] {
            assert!(!params.contains_key(own), "{own}");
        }
    }

    #[test]
    fn what_a_turn_changes_is_there_for_the_next_runtime() {
        let start: ThreadStartParams =
            serde_json::from_value(json!({"cwd": "/a", "approvalPolicy": "untrusted", "model": "m"}))
                .expect("params");
        let mut settings = TaskSettings::started_with(&start, "");
        let turn: TurnStartParams = serde_json::from_value(json!({
            "threadId": "t", "input": [], "cwd": "/b", "effort": "high",
            "sandboxPolicy": {"type": "workspaceWrite", "networkAccess": true, "writableRoots": ["/c"]},
        }))
        .expect("params");
        settings.changed_by_turn(&turn);
        let read = TaskSettings::read(&settings.to_value());
        assert_eq!(read.cwd().as_deref(), Some("/b"));
        assert_eq!(read.params["sandbox"], "workspace-write");
        assert_eq!(read.params["config"]["sandbox_workspace_write"]["writable_roots"], json!(["/c"]));
        assert_eq!(read.params["config"]["model_reasoning_effort"], "high");
        assert_eq!(read.params["approvalPolicy"], "untrusted");
    }
}
