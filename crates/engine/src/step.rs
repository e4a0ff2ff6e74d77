//! The Step: one frozen view per model request. The model's context, its tools and the environments of its calls all
//! come from here.

use std::sync::Arc;

use protocol::{
    AskForApproval, CollaborationMode, EnvironmentId, Personality, ReadOnlyAccess, ReasoningEffort,
    ReasoningSummary, SandboxPolicy, ToolEffects, Verbosity,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::calls::TOOL_SEARCH;
use crate::{HookPoints, ToolCall};

/// Captured by the driver before a model request; never changed afterwards.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    pub model: ModelInfo,
    pub effort: Option<ReasoningEffort>,
    pub summary: Option<ReasoningSummary>,
    pub verbosity: Option<Verbosity>,
    /// In the provider's spelling.
    pub service_tier: Option<String>,
    pub base_instructions: Arc<str>,
    pub developer_instructions: Option<Arc<str>>,
    /// Replaces the built-in prompt for summaries.
    pub compact_prompt: Option<Arc<str>>,
    /// Notes from earlier threads, and how to cite them.
    pub memories: Option<Arc<str>>,
    /// Text of the AGENTS.md files, joined.
    pub project_instructions: Option<Arc<str>>,
    pub collaboration_mode: Option<CollaborationMode>,
    pub personality: Option<Personality>,
    /// The base instructions already contain this personality.
    pub personality_is_baked: bool,
    /// Skills that are offered.
    pub skills: Arc<[SkillLine]>,
    /// Plugins that are installed.
    pub plugins: Arc<[PluginLine]>,
    /// Open child agents.
    pub subagents: Arc<[SubagentLine]>,
    pub approval_policy: AskForApproval,
    /// The automatic reviewer decides about commands and patches that need approval.
    pub reviews_approvals: bool,
    /// The administrator's instructions for that reviewer.
    pub reviewer_instructions: Option<Arc<str>>,
    pub sandbox: SandboxPolicy,
    /// Command prefixes that rules approve. Each position lists its possible words.
    pub approved_prefixes: Arc<[Vec<Vec<String>>]>,
    /// The folder of the attached primary environment, else of the first one that is starting, else of the thread.
    pub cwd: String,
    /// The environments of this step's calls, in the chosen order: the first attached one is the primary.
    pub environments: Arc<[StepEnvironment]>,
    pub shell: String,
    /// Local, `YYYY-MM-DD`.
    pub current_date: String,
    pub timezone: String,
    pub tools: Vec<ToolSpec>,
    /// A tool source is still starting: a turn that begins with this step captures another one before its first
    /// request.
    pub is_preliminary: bool,
    /// Digest over the tools and their approvers, so that a host can verify what was offered.
    pub tool_set_digest: Arc<str>,
    /// Tools that the model can search for. Not advertised yet, so not callable.
    pub deferred: Vec<ToolSpec>,
    /// Set if the model has to call most tools through scripts.
    pub direct: Option<DirectCalls>,
    /// Settings of the thread under this name, recorded with the context and not sent to the model: opening the thread
    /// again needs them.
    pub recorded_with: Option<(&'static str, Arc<Value>)>,
    /// The points at which a turn waits for hooks.
    pub hooks: HookPoints,
    /// The git repository around the folder, by its root. Sent to the provider, not shown to the model.
    pub repository: Option<Arc<Value>>,
}

impl Step {
    /// A minimal step to build on: an unknown model, this machine, read-only, no tools.
    pub fn bare(model: &str, cwd: &str) -> Self {
        Self {
            model: ModelInfo::unknown(model),
            effort: None,
            summary: None,
            verbosity: None,
            service_tier: None,
            base_instructions: Arc::from(""),
            developer_instructions: None,
            compact_prompt: None,
            memories: None,
            project_instructions: None,
            collaboration_mode: None,
            personality: None,
            personality_is_baked: false,
            skills: Arc::new([]),
            plugins: Arc::new([]),
            subagents: Arc::new([]),
            approval_policy: AskForApproval::Never,
            reviews_approvals: false,
            reviewer_instructions: None,
            sandbox: SandboxPolicy::ReadOnly { access: ReadOnlyAccess::FullAccess, network_access: false },
            approved_prefixes: Arc::new([]),
            cwd: cwd.to_owned(),
            environments: Arc::new([StepEnvironment::here(cwd)]),
            shell: "sh".to_owned(),
            current_date: "1970-01-01".to_owned(),
            timezone: "Etc/UTC".to_owned(),
            tools: Vec::new(),
            is_preliminary: false,
            tool_set_digest: Arc::from(""),
            deferred: Vec::new(),
            direct: None,
            recorded_with: None,
            hooks: HookPoints::default(),
            repository: None,
        }
    }

    /// Offers deferred tools that a search found. If the search used the provider's own format, the model has them
    /// already, and the request's tool list stays unchanged.
    pub fn reveal(&mut self, found: &[String]) {
        let is_told = self.tool(TOOL_SEARCH).is_some_and(|tool| tool.json.is_some());
        for name in found {
            if let Some(at) = self.deferred.iter().position(|tool| tool.full_name() == *name) {
                let tool = self.deferred.remove(at);
                let json = tool.json.clone().filter(|_| !is_told);
                self.tools.push(ToolSpec { json, ..tool });
            }
        }
    }

    /// The environment of calls. Without one, tools that need an environment are not offered.
    pub fn primary(&self) -> Option<&StepEnvironment> {
        self.environments.iter().find(|environment| environment.state == EnvironmentState::Attached)
    }

    /// A tool outside any group.
    pub fn tool(&self, name: &str) -> Option<&ToolSpec> {
        self.tools.iter().find(|tool| tool.name == name && tool.namespace.is_none())
    }

    /// The tool of a call.
    pub fn called(&self, call: &ToolCall) -> Option<&ToolSpec> {
        let namespace = |tool: &&ToolSpec| {
            tool.namespace.as_ref().map(|namespace| namespace.name.as_str()) == call.namespace.as_deref()
        };
        self.tools.iter().filter(namespace).find(|tool| tool.name == call.name)
    }

    /// Why the model may not make this call directly, if it may not.
    pub(crate) fn refuses(&self, tool: &ToolSpec) -> Option<&'static str> {
        let direct = self.direct.as_ref().filter(|direct| !direct.has(tool) && tool.kind != ToolKind::Hosted);
        direct.map(|direct| direct.refusal)
    }

    /// The tools as a request lists them. Tools of a group follow its first one.
    pub fn tools_json(&self) -> Vec<Arc<Value>> {
        let mut entries: Vec<Arc<Value>> = Vec::new();
        let mut told: Vec<&str> = Vec::new();
        let hides = |tool: &&ToolSpec| {
            self.direct.as_ref().is_none_or(|direct| !direct.hides_others || direct.has(tool))
        };
        for tool in self.tools.iter().filter(hides) {
            let (Some(json), namespace) = (&tool.json, tool.namespace.as_deref()) else { continue };
            let Some(ToolNamespace { name, description }) = namespace else {
                entries.push(json.clone());
                continue;
            };
            if told.contains(&name.as_str()) {
                continue;
            }
            told.push(name);
            let is_inside =
                |other: &&ToolSpec| other.namespace.as_deref().is_some_and(|group| group.name == *name);
            let inner: Vec<_> =
                self.tools.iter().filter(is_inside).filter_map(|tool| tool.json.as_deref()).collect();
            let group =
                json!({"type": "namespace", "name": name, "description": description, "tools": inner});
            entries.push(Arc::new(group));
        }
        entries
    }
}

/// The model's working folder: of the attached primary, else of the first environment that is starting, else of the
/// thread.
pub fn effective_cwd(environments: &[StepEnvironment], of_thread: &str) -> String {
    let first = |state| environments.iter().find(move |environment| environment.state == state);
    first(EnvironmentState::Attached)
        .or_else(|| first(EnvironmentState::Starting))
        .map_or_else(|| of_thread.to_owned(), |environment| environment.cwd.clone())
}

/// An environment at the time the step was captured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepEnvironment {
    pub id: EnvironmentId,
    /// In the environment's own path syntax.
    pub cwd: String,
    pub reach: Reach,
    pub state: EnvironmentState,
    /// The client chose it. Without a choice the thread works on this machine, and the model is not told of
    /// environments.
    pub is_chosen: bool,
}

impl StepEnvironment {
    /// This machine, for a thread without chosen environments.
    pub fn here(cwd: impl Into<String>) -> Self {
        Self {
            id: EnvironmentId::new("local"),
            cwd: cwd.into(),
            reach: Reach::Local,
            state: EnvironmentState::Attached,
            is_chosen: false,
        }
    }
}

/// How processes and files of an environment are reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// They are on this machine.
    Local,
    /// Through a command that runs its arguments elsewhere, such as `docker exec -i box`.
    Command { argv: Arc<[String]> },
}

/// Whether an environment could be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EnvironmentState {
    Attached,
    /// Mentioned to the model; nothing runs there yet.
    Starting,
    Disconnected,
}

/// A skill as listed for the model.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SkillLine {
    pub name: String,
    pub description: String,
    /// Its `SKILL.md`.
    pub path: String,
}

/// A plugin as listed for the model.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PluginLine {
    pub name: String,
    /// Empty for none.
    pub description: String,
}

/// A child agent as listed for its parent's model.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SubagentLine {
    /// The agent's id in tool calls.
    pub id: String,
    pub nickname: Option<String>,
}

/// A tool as offered to the model in this step.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    pub name: String,
    /// The group in which it is offered and called.
    pub namespace: Option<Arc<ToolNamespace>>,
    pub kind: ToolKind,
    /// The tool in the request. Unset for an alias, which works without being advertised.
    pub json: Option<Arc<Value>>,
    /// May run in parallel with other such calls.
    pub parallel: bool,
    pub gate: Gate,
    /// Effects of repeating a call.
    pub effects: ToolEffects,
}

impl ToolSpec {
    /// Unique among the thread's tools.
    pub fn full_name(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{}::{}", namespace.name, self.name),
            None => self.name.clone(),
        }
    }
}

/// The tools that a model may call directly. It reaches all others through scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectCalls {
    pub names: &'static [&'static str],
    /// The other tools are not listed in the request.
    pub hides_others: bool,
    /// The output of a direct call to another tool.
    pub refusal: &'static str,
}

impl DirectCalls {
    fn has(&self, tool: &ToolSpec) -> bool {
        tool.namespace.is_none() && self.names.contains(&tool.name.as_str())
    }
}

/// A group of tools as listed for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolNamespace {
    pub name: String,
    pub description: String,
}

/// Who approves the calls of a tool that asks nothing itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Gate {
    /// No approval is needed.
    #[default]
    Open,
    /// The host, for each call.
    Ask,
    /// All calls are refused.
    Closed,
}

/// Who runs a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolKind {
    /// The runtime.
    Builtin,
    /// The client that registered it.
    Dynamic,
    /// The model provider.
    Hosted,
}

/// Model properties that a turn needs.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelInfo {
    pub slug: String,
    pub context_window: Option<i64>,
    /// The usable part of the window, in per cent.
    pub effective_window_percent: i64,
    pub auto_compact_token_limit: Option<i64>,
    pub supports_reasoning_summaries: bool,
    pub supports_parallel_tool_calls: bool,
    pub truncation: Truncation,
    /// Retries of a broken stream.
    pub stream_max_retries: u32,
    /// The token price, if configured.
    pub price: Option<crate::TokenPrice>,
}

impl ModelInfo {
    /// Assumptions about a model that is not in the catalogue.
    pub fn unknown(slug: &str) -> Self {
        Self {
            slug: slug.to_owned(),
            context_window: Some(272_000),
            effective_window_percent: 95,
            auto_compact_token_limit: None,
            supports_reasoning_summaries: false,
            supports_parallel_tool_calls: false,
            truncation: Truncation::Bytes(10_000),
            stream_max_retries: 5,
            price: None,
        }
    }

    /// The window reported to clients.
    pub fn usable_window(&self) -> Option<i64> {
        self.context_window.map(|window| window * self.effective_window_percent / 100)
    }

    /// Compact the history above this many tokens.
    pub fn compaction_limit(&self) -> Option<i64> {
        let most = self.context_window.map(|window| window * 9 / 10);
        match (self.auto_compact_token_limit, most) {
            (Some(limit), Some(most)) => Some(limit.min(most)),
            (limit, most) => limit.or(most),
        }
    }
}

/// How much of a tool's output is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truncation {
    Bytes(usize),
    Tokens(usize),
}
