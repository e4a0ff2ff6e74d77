//! The Step: one frozen view per model request. What the model is told, the tools it is offered and the place its calls
//! run in all come from here.

use std::sync::Arc;

use protocol::{
    AskForApproval, CollaborationMode, EnvironmentId, Personality, ReadOnlyAccess, ReasoningEffort,
    ReasoningSummary, SandboxPolicy, ToolEffects, Verbosity,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Captured by the driver before a model request; never changed afterwards.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    pub model: ModelInfo,
    pub effort: Option<ReasoningEffort>,
    pub summary: Option<ReasoningSummary>,
    pub verbosity: Option<Verbosity>,
    /// As the provider spells it.
    pub service_tier: Option<String>,
    pub base_instructions: Arc<str>,
    pub developer_instructions: Option<Arc<str>>,
    /// How to ask for a summary, instead of the built-in way.
    pub compact_prompt: Option<Arc<str>>,
    /// What the AGENTS.md files say, joined.
    pub project_instructions: Option<Arc<str>>,
    pub collaboration_mode: Option<CollaborationMode>,
    pub personality: Option<Personality>,
    /// The base instructions already speak in this personality.
    pub personality_is_baked: bool,
    /// What the model can draw on when a task calls for it.
    pub skills: Arc<[SkillLine]>,
    /// Child agents that are open.
    pub subagents: Arc<[SubagentLine]>,
    pub approval_policy: AskForApproval,
    pub sandbox: SandboxPolicy,
    /// Beginnings of commands that rules allow. Each place holds the words that may stand there.
    pub approved_prefixes: Arc<[Vec<Vec<String>>]>,
    /// The attached primary environment's folder, else that of the first that is starting, else the thread's.
    pub cwd: String,
    /// Where this step's calls run, in the order they were chosen: the first attached one is the primary.
    pub environments: Arc<[StepEnvironment]>,
    pub shell: String,
    /// Local, `YYYY-MM-DD`.
    pub current_date: String,
    pub timezone: String,
    pub tools: Vec<ToolSpec>,
    /// Over the tools and who approves them, so that a host can prove what was offered.
    pub tool_set_digest: Arc<str>,
    /// Tools the model can look for; not yet advertised, so not callable.
    pub deferred: Vec<ToolSpec>,
}

impl Step {
    /// The least a step can be: a model this program knows nothing about, this machine, read-only, no tools. To build
    /// on.
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
            project_instructions: None,
            collaboration_mode: None,
            personality: None,
            personality_is_baked: false,
            skills: Arc::new([]),
            subagents: Arc::new([]),
            approval_policy: AskForApproval::Never,
            sandbox: SandboxPolicy::ReadOnly { access: ReadOnlyAccess::FullAccess, network_access: false },
            approved_prefixes: Arc::new([]),
            cwd: cwd.to_owned(),
            environments: Arc::new([StepEnvironment::here(cwd)]),
            shell: "sh".to_owned(),
            current_date: "1970-01-01".to_owned(),
            timezone: "Etc/UTC".to_owned(),
            tools: Vec::new(),
            tool_set_digest: Arc::from(""),
            deferred: Vec::new(),
        }
    }

    /// Offers the deferred tools that were looked for and found.
    pub fn reveal(&mut self, found: &[String]) {
        for name in found {
            if let Some(at) = self.deferred.iter().position(|tool| tool.name == *name) {
                self.tools.push(self.deferred.remove(at));
            }
        }
    }

    /// Where calls run. Without one, nothing that needs a place is offered.
    pub fn primary(&self) -> Option<&StepEnvironment> {
        self.environments.iter().find(|environment| environment.state == EnvironmentState::Attached)
    }

    pub fn tool(&self, name: &str) -> Option<&ToolSpec> {
        self.tools.iter().find(|tool| tool.name == name)
    }
}

/// The folder a model works in: of the attached primary, else of the first that is starting, else the thread's.
pub fn effective_cwd(environments: &[StepEnvironment], of_thread: &str) -> String {
    let first = |state| environments.iter().find(move |environment| environment.state == state);
    first(EnvironmentState::Attached)
        .or_else(|| first(EnvironmentState::Starting))
        .map_or_else(|| of_thread.to_owned(), |environment| environment.cwd.clone())
}

/// A place as it was when the step was captured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepEnvironment {
    pub id: EnvironmentId,
    /// In the environment's own path syntax.
    pub cwd: String,
    pub reach: Reach,
    pub state: EnvironmentState,
    /// Somebody chose it. A thread for which nobody did works on this machine, and its model hears of no choice.
    pub is_chosen: bool,
}

impl StepEnvironment {
    /// This machine, for a thread that chose nothing else.
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
    /// Through a command that runs what comes after it elsewhere, such as `docker exec -i box`.
    Command { argv: Arc<[String]> },
}

/// Whether an environment could be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EnvironmentState {
    Attached,
    /// The model may hear of it; nothing runs there yet.
    Starting,
    Disconnected,
}

/// A skill as the model is told of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SkillLine {
    pub name: String,
    pub description: String,
    /// Its `SKILL.md`.
    pub path: String,
}

/// A child agent as its parent is told of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SubagentLine {
    /// What tools call it by.
    pub id: String,
    pub nickname: Option<String>,
}

/// A tool as offered to the model in this step.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    pub name: String,
    pub kind: ToolKind,
    /// As it stands in the request. Unset for another name of a tool, which answers without being advertised.
    pub json: Option<Arc<Value>>,
    /// May run beside others that may too.
    pub parallel: bool,
    pub gate: Gate,
    /// What may happen when a call is made again.
    pub effects: ToolEffects,
}

/// Who decides about the calls of a tool that asks nothing itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Gate {
    /// Nobody: they are made.
    #[default]
    Open,
    /// The host, each time.
    Ask,
    /// They are refused.
    Closed,
}

/// Who runs a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolKind {
    /// The runtime.
    Builtin,
    /// The client that brought it.
    Dynamic,
    /// The model provider.
    Hosted,
}

/// What the turn needs to know of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelInfo {
    pub slug: String,
    pub context_window: Option<i64>,
    /// How much of the window is counted on, in per cent.
    pub effective_window_percent: i64,
    pub auto_compact_token_limit: Option<i64>,
    pub supports_reasoning_summaries: bool,
    pub supports_parallel_tool_calls: bool,
    pub truncation: Truncation,
    /// How often a broken stream is tried again.
    pub stream_max_retries: u32,
}

impl ModelInfo {
    /// What is assumed of a model that is in no catalogue.
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
        }
    }

    /// The window clients are told.
    pub fn usable_window(&self) -> Option<i64> {
        self.context_window.map(|window| window * self.effective_window_percent / 100)
    }

    /// Above this, the history is compacted.
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
