//! Choices, and the wire's own parameters that they become. What is left unset is as configured.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use runtime::protocol::{
    AskForApproval, DynamicToolSpec, ReasoningEffort, SandboxMode, SandboxPolicy, ThreadForkParams, ThreadId,
    ThreadListCwd, ThreadListParams, ThreadResumeParams, ThreadSourceKind, ThreadStartParams,
    TurnStartParams,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::error::ManagerError;
use crate::input::TurnInput;

/// Settings of a thread. An unset field keeps what the configuration says, and for a stored thread the folder,
/// model and instructions it had.
#[derive(Debug, Clone, Default)]
pub struct ThreadOptions {
    /// The folder the agent works in; the current one when unset.
    pub cwd: Option<PathBuf>,
    /// The model by its name.
    pub model: Option<String>,
    /// The id of a configured provider, or `offline`.
    pub provider: Option<String>,
    /// Decides which actions need approval.
    pub approval_policy: Option<AskForApproval>,
    /// The files and network that commands may use without approval.
    pub sandbox: Option<SandboxMode>,
    /// Replaces the built-in instructions.
    pub base_instructions: Option<String>,
    /// Adds to the built-in instructions.
    pub developer_instructions: Option<String>,
    /// More of the configuration, by dotted key.
    pub config: BTreeMap<String, Value>,
    /// Tools of your own, which come as [`ThreadEvent::ToolCall`](crate::ThreadEvent::ToolCall). Kept with the thread: a
    /// stored or copied one has those it began with, whatever stands here.
    pub tools: Vec<DynamicToolSpec>,
    /// Nothing is written down, and the thread is gone once it is closed. Has no effect on a thread that is resumed.
    pub ephemeral: bool,
}

impl ThreadOptions {
    fn cwd(&self) -> Result<Option<String>, ManagerError> {
        self.cwd.as_deref().map(absolute).transpose()
    }

    fn config(&self) -> Option<BTreeMap<String, Value>> {
        (!self.config.is_empty()).then(|| self.config.clone())
    }
}

/// The fields that all three ways to open a thread have.
macro_rules! fill {
    ($params:ident, $options:ident) => {
        $params.cwd = $options.cwd()?;
        $params.config = $options.config();
        $params.model = $options.model;
        $params.model_provider = $options.provider;
        $params.approval_policy = $options.approval_policy;
        $params.sandbox = $options.sandbox;
        $params.base_instructions = $options.base_instructions;
        $params.developer_instructions = $options.developer_instructions;
    };
}

pub(crate) fn start_params(options: ThreadOptions) -> Result<ThreadStartParams, ManagerError> {
    let mut params = ThreadStartParams { ephemeral: Some(options.ephemeral), ..Default::default() };
    fill!(params, options);
    params.dynamic_tools = (!options.tools.is_empty()).then_some(options.tools);
    Ok(params)
}

pub(crate) fn resume_params(
    id: &ThreadId,
    options: ThreadOptions,
) -> Result<ThreadResumeParams, ManagerError> {
    let mut params: ThreadResumeParams = least(json!({ "threadId": id, "excludeTurns": true }))?;
    fill!(params, options);
    Ok(params)
}

pub(crate) fn fork_params(id: &ThreadId, options: ThreadOptions) -> Result<ThreadForkParams, ManagerError> {
    let mut params: ThreadForkParams = least(json!({ "threadId": id, "excludeTurns": true }))?;
    params.ephemeral = options.ephemeral;
    fill!(params, options);
    Ok(params)
}

/// Settings that a turn changes. All but the schema holds for later turns too.
#[derive(Debug, Clone, Default)]
pub struct TurnOverrides {
    /// The final message is JSON that follows this schema. For this turn alone.
    pub output_schema: Option<Value>,
    /// The model by its name.
    pub model: Option<String>,
    /// How long the model thinks.
    pub effort: Option<ReasoningEffort>,
    /// The folder the agent works in.
    pub cwd: Option<PathBuf>,
    /// Decides which actions need approval.
    pub approval_policy: Option<AskForApproval>,
    /// The files and network that commands may use. Replaces the policy as a whole.
    pub sandbox: Option<SandboxPolicy>,
}

pub(crate) fn turn_params(
    id: &ThreadId,
    input: TurnInput,
    options: TurnOverrides,
) -> Result<TurnStartParams, ManagerError> {
    let mut params: TurnStartParams = least(json!({ "threadId": id, "input": [] }))?;
    params.input = input.into_parts();
    params.output_schema = options.output_schema;
    params.model = options.model;
    params.effort = options.effort;
    params.cwd = options.cwd.as_deref().map(absolute).transpose()?;
    params.approval_policy = options.approval_policy;
    params.sandbox_policy = options.sandbox;
    Ok(params)
}

/// Which stored threads to list, the one used last first.
#[derive(Debug, Clone, Default)]
pub struct ListOptions {
    /// Only threads of this folder.
    pub cwd: Option<PathBuf>,
    /// Only threads whose first message contains this. Case counts.
    pub search: Option<String>,
    /// Most threads on a page: 25 when unset, never more than 100.
    pub limit: Option<u32>,
    /// `next_cursor` of the page before; unset for the first page.
    pub cursor: Option<String>,
}

/// Everything but the children of other threads.
const OWN_KINDS: &[ThreadSourceKind] = &[
    ThreadSourceKind::Cli,
    ThreadSourceKind::Vscode,
    ThreadSourceKind::Exec,
    ThreadSourceKind::AppServer,
    ThreadSourceKind::Unknown,
];

pub(crate) fn list_params(options: ListOptions) -> Result<ThreadListParams, ManagerError> {
    let mut params: ThreadListParams =
        least(json!({ "sortKey": "updated_at", "modelProviders": [], "sourceKinds": OWN_KINDS }))?;
    params.cwd = options.cwd.as_deref().map(absolute).transpose()?.map(ThreadListCwd::One);
    params.search_term = options.search;
    params.limit = options.limit;
    params.cursor = options.cursor;
    Ok(params)
}

/// Parameters of the wire with nothing set but this.
fn least<T: DeserializeOwned>(required: Value) -> Result<T, ManagerError> {
    serde_json::from_value(required).map_err(|error| ManagerError::Refused(error.to_string()))
}

/// As text, because that is what records hold.
pub(crate) fn absolute(path: &Path) -> Result<String, ManagerError> {
    let refused = || ManagerError::Path(path.display().to_string());
    std::path::absolute(path).map_err(|_| refused())?.into_os_string().into_string().map_err(|_| refused())
}
