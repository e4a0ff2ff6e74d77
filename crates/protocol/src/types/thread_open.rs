//! Opening a thread: starting, resuming and forking, with the choices they share.

use super::prelude::*;

/// Starts a thread and subscribes the caller to it. An unset field keeps the configured value.
#[wire(omit_null)]
#[derive(Default)]
pub struct ThreadStartParams {
    pub model: Option<String>,
    /// Id of a configured provider.
    pub model_provider: Option<String>,
    /// Missing keeps the configured tier, null clears it.
    pub service_tier: TriState<ServiceTier>,
    pub cwd: Option<String>,
    pub approval_policy: Option<AskForApproval>,
    pub approvals_reviewer: Option<ApprovalsReviewer>,
    pub sandbox: Option<SandboxMode>,
    /// Configuration for this thread by dotted key: over the files, under the other fields here. Unknown keys
    /// are accepted.
    pub config: Option<BTreeMap<String, Value>>,
    /// Names the client in metrics.
    pub service_name: Option<String>,
    /// Replaces the built-in instructions.
    pub base_instructions: Option<String>,
    /// Adds to the built-in instructions.
    pub developer_instructions: Option<String>,
    pub personality: Option<Personality>,
    /// A word of the client's own for where the thread came from.
    pub thread_source: Option<String>,
    /// Keep the thread in memory only. False when unset.
    pub ephemeral: Option<bool>,
    /// Tools the client runs for the model, one by one or in groups of type `namespace`.
    #[experimental("thread/start.dynamicTools")]
    #[serde(deserialize_with = "super::dynamic_tool::read_tools")]
    pub dynamic_tools: Option<Vec<DynamicToolSpec>>,
    /// Exists to test the experimental gate.
    #[experimental("thread/start.mockExperimentalField")]
    pub mock_experimental_field: Option<String>,
    /// Also send `rawResponseItem/completed`, to every subscriber of the thread.
    #[experimental("thread/start.experimentalRawEvents")]
    #[serde(default)]
    pub experimental_raw_events: bool,
    /// Record tool items too, so that turns read back later are complete.
    #[experimental("thread/start.persistFullHistory")]
    #[serde(default)]
    pub persist_extended_history: bool,
    /// Where tools run.
    #[experimental("thread/start.environments")]
    pub environments: Option<Vec<EnvironmentSelection>>,
    /// Sends this thread's model requests to an endpoint the host runs.
    #[experimental("thread/start.sdkDelegation")]
    pub sdk_delegation: Option<SdkDelegationConfig>,
    /// Exactly these built-in tools are offered and can run. Unknown, empty, padded or repeated names are
    /// refused.
    #[experimental("thread/start.builtinTools", even_empty)]
    pub builtin_tools: Option<Vec<String>>,
    /// Ask about every built-in execution that can be asked about, known-safe commands included.
    #[experimental("thread/start.manualToolExecution")]
    #[omit]
    pub manual_tool_execution: bool,
    #[experimental("thread/start.delegation")]
    pub delegation: Option<ThreadDelegation>,
    /// `server` when unset.
    #[experimental("thread/start.rolloutOwnership")]
    pub rollout_ownership: Option<RolloutOwnership>,
    /// The exact history. Not together with `turnHistory`.
    #[experimental("thread/start.initialItems")]
    pub initial_items: Option<Vec<RolloutItem>>,
    /// A display-level history, for when the exact one is gone.
    #[experimental("thread/start.turnHistory")]
    pub turn_history: Option<Vec<Turn>>,
    /// The exact history follows by `rollout/load`.
    #[experimental("thread/start.initialItemsRef")]
    pub initial_items_ref: Option<InitialItemsRef>,
    /// Decisions made while no runtime was alive.
    #[experimental("thread/start.resolvedOperations")]
    pub resolved_operations: Option<Vec<ResolvedOperation>>,
    /// Continue the unfinished turn instead of marking it interrupted.
    #[experimental("thread/start.resumeTurn")]
    #[omit]
    pub resume_turn: bool,
    #[experimental("thread/start.toolSet")]
    pub tool_set: Option<ToolSet>,
    /// Tools of the thread that this connection runs, for a host: a call goes to one such connection. Unset means every tool that the thread is started with;
    /// an app-server asks every subscriber and does not read this.
    #[experimental("thread/start.provides")]
    pub provides: Option<Vec<ProvidedTool>>,
    /// How much the task may use, for a host. Its own limits hold all the same; an app-server does not read this.
    #[experimental("thread/start.budget")]
    pub budget: Option<TaskBudget>,
    /// For a host with more tasks than it may run at once: those with a higher number are started first. 0 when unset;
    /// an app-server does not read this.
    #[experimental("thread/start.priority")]
    pub priority: Option<i32>,
    /// Words of the caller's own about the task, by name, for a host: `task/list` finds tasks by them. An app-server does
    /// not read this.
    #[experimental("thread/start.labels")]
    pub labels: Option<BTreeMap<String, String>>,
    /// Names the definition of the agent that the task works by, for a host, which keeps it and shows it. An app-server
    /// does not read this.
    #[experimental("thread/start.agentDigest")]
    pub agent_digest: Option<String>,
    /// A fresh UUID chosen by the caller; made by the server when unset.
    #[experimental("thread/start.threadId")]
    pub thread_id: Option<ThreadId>,
    /// Where the host runs the thread's runtime; its default placement when unset. Only for hosts.
    #[experimental("thread/start.placement")]
    pub placement: Option<PlacementChoice>,
}

/// Loads a stored thread, or joins a loaded one, and subscribes the caller. Overrides have no effect on a
/// loaded thread; its pending requests are sent again after the answer.
#[wire(omit_null)]
pub struct ThreadResumeParams {
    /// Not used when `history` or `path` is given.
    pub thread_id: ThreadId,
    /// Start a new thread with this history instead. Wins over `path`.
    #[experimental("thread/resume.history")]
    pub history: Option<Vec<ResponseItem>>,
    /// The record's file. Wins over `threadId`.
    #[experimental("thread/resume.path")]
    pub path: Option<String>,
    /// When this, `modelProvider` and the model keys of `config` are all unset, the thread goes on with the
    /// model and effort it had.
    pub model: Option<String>,
    /// Id of a configured provider.
    pub model_provider: Option<String>,
    /// Missing keeps the tier, null clears it.
    pub service_tier: TriState<ServiceTier>,
    pub cwd: Option<String>,
    pub approval_policy: Option<AskForApproval>,
    pub approvals_reviewer: Option<ApprovalsReviewer>,
    pub sandbox: Option<SandboxMode>,
    /// Configuration for this thread by dotted key: over the files, under the other fields here. Unknown keys
    /// are accepted.
    pub config: Option<BTreeMap<String, Value>>,
    /// Replaces the built-in instructions.
    pub base_instructions: Option<String>,
    /// Adds to the built-in instructions.
    pub developer_instructions: Option<String>,
    pub personality: Option<Personality>,
    /// Record tool items too from now on. Earlier ones stay missing.
    #[experimental("thread/resume.persistFullHistory")]
    #[serde(default)]
    pub persist_extended_history: bool,
    #[experimental("thread/resume.delegation")]
    pub delegation: Option<ThreadDelegation>,
    /// `server` when unset.
    #[experimental("thread/resume.rolloutOwnership")]
    pub rollout_ownership: Option<RolloutOwnership>,
    /// The exact history. Not together with `turnHistory`.
    #[experimental("thread/resume.initialItems")]
    pub initial_items: Option<Vec<RolloutItem>>,
    /// A display-level history, for when the exact one is gone.
    #[experimental("thread/resume.turnHistory")]
    pub turn_history: Option<Vec<Turn>>,
    /// The exact history follows by `rollout/load`.
    #[experimental("thread/resume.initialItemsRef")]
    pub initial_items_ref: Option<InitialItemsRef>,
    /// Decisions made while no runtime was alive.
    #[experimental("thread/resume.resolvedOperations")]
    pub resolved_operations: Option<Vec<ResolvedOperation>>,
    /// Continue the unfinished turn instead of marking it interrupted.
    #[experimental("thread/resume.resumeTurn")]
    #[omit]
    pub resume_turn: bool,
    #[experimental("thread/resume.toolSet")]
    pub tool_set: Option<ToolSet>,
    /// Tools of the thread that this connection runs, for a host: a call goes to one such connection. Unset means none;
    /// an app-server asks every subscriber and does not read this.
    #[experimental("thread/resume.provides")]
    pub provides: Option<Vec<ProvidedTool>>,
    /// For a host: the last `ordinal` that the client has seen. Only turns that changed since are answered with, and
    /// `rolloutOrdinal` of the answer is the one after the last. An app-server does not read this.
    #[experimental("thread/resume.after")]
    pub after: Option<u64>,
    /// For a host: takes the place of the labels that the task has. An app-server does not read this.
    #[experimental("thread/resume.labels")]
    pub labels: Option<BTreeMap<String, String>>,
    /// For a host: takes the place of the digest that the task has. An app-server does not read this.
    #[experimental("thread/resume.agentDigest")]
    pub agent_digest: Option<String>,
    /// Answer without the turns.
    #[omit]
    pub exclude_turns: bool,
    /// After the answer, `item/started` is sent again for each item that has begun and not ended, with what it holds so far
    /// (of a long one its end), and `turn/plan/updated` for the plan.
    #[experimental("thread/resume.includeOpenItems")]
    #[omit]
    pub include_open_items: bool,
    /// For a host: `thread/resynced` follows the answer, for the thread and its agents, as when another host takes the task
    /// over. Hosts ask for it on behalf of their clients. An app-server does not read this.
    #[experimental("thread/resume.resync")]
    #[omit]
    pub resync: bool,
}

/// Starts a thread with a copy of another's history and subscribes the caller to it. A turn still running in
/// the other is cut off in the copy. The name is not copied.
#[wire(omit_null)]
pub struct ThreadForkParams {
    /// The thread to copy from. Not used when `path` is given.
    pub thread_id: ThreadId,
    /// The record's file to copy from. Wins over `threadId`.
    #[experimental("thread/fork.path")]
    pub path: Option<String>,
    pub model: Option<String>,
    /// Id of a configured provider.
    pub model_provider: Option<String>,
    /// Missing keeps the tier, null clears it.
    pub service_tier: TriState<ServiceTier>,
    pub cwd: Option<String>,
    pub approval_policy: Option<AskForApproval>,
    pub approvals_reviewer: Option<ApprovalsReviewer>,
    pub sandbox: Option<SandboxMode>,
    /// Configuration for this thread by dotted key: over the files, under the other fields here. Unknown keys
    /// are accepted.
    pub config: Option<BTreeMap<String, Value>>,
    /// Replaces the built-in instructions.
    pub base_instructions: Option<String>,
    /// Adds to the built-in instructions.
    pub developer_instructions: Option<String>,
    /// Keep the copy in memory only.
    #[serde(default)]
    pub ephemeral: bool,
    /// Record tool items too. Without it, those of the other thread are not copied.
    #[experimental("thread/fork.persistFullHistory")]
    #[serde(default)]
    pub persist_extended_history: bool,
    #[experimental("thread/fork.delegation")]
    pub delegation: Option<ThreadDelegation>,
    /// `server` when unset.
    #[experimental("thread/fork.rolloutOwnership")]
    pub rollout_ownership: Option<RolloutOwnership>,
    /// The exact history. Not together with `turnHistory`.
    #[experimental("thread/fork.initialItems")]
    pub initial_items: Option<Vec<RolloutItem>>,
    /// A display-level history, for when the exact one is gone.
    #[experimental("thread/fork.turnHistory")]
    pub turn_history: Option<Vec<Turn>>,
    /// The exact history follows by `rollout/load`.
    #[experimental("thread/fork.initialItemsRef")]
    pub initial_items_ref: Option<InitialItemsRef>,
    /// Decisions made while no runtime was alive.
    #[experimental("thread/fork.resolvedOperations")]
    pub resolved_operations: Option<Vec<ResolvedOperation>>,
    /// Continue the unfinished turn instead of marking it interrupted.
    #[experimental("thread/fork.resumeTurn")]
    #[omit]
    pub resume_turn: bool,
    #[experimental("thread/fork.toolSet")]
    pub tool_set: Option<ToolSet>,
    /// A word of the client's own for where the thread came from.
    pub thread_source: Option<String>,
    /// Answer without the turns.
    #[omit]
    pub exclude_turns: bool,
}

impl ThreadForkParams {
    /// A copy of the thread with nothing changed.
    pub fn copy_of(thread_id: ThreadId) -> Self {
        Self {
            thread_id,
            path: None,
            model: None,
            model_provider: None,
            service_tier: TriState::Keep,
            cwd: None,
            approval_policy: None,
            approvals_reviewer: None,
            sandbox: None,
            config: None,
            base_instructions: None,
            developer_instructions: None,
            ephemeral: false,
            persist_extended_history: false,
            delegation: None,
            rollout_ownership: None,
            initial_items: None,
            turn_history: None,
            initial_items_ref: None,
            resolved_operations: None,
            resume_turn: false,
            tool_set: None,
            thread_source: None,
            exclude_turns: false,
        }
    }
}

/// The three ways to open a thread answer with the same fields.
macro_rules! opened_thread {
    ($($(#[$doc:meta])* $name:ident at $method:literal;)*) => { $(
        $(#[$doc])*
        #[wire]
        pub struct $name {
            /// Also sent as `thread/started`, except by `thread/resume`.
            pub thread: Thread,
            pub model: String,
            /// Id of the provider.
            pub model_provider: String,
            pub service_tier: Option<ServiceTier>,
            pub cwd: String,
            pub approval_policy: AskForApproval,
            pub approvals_reviewer: ApprovalsReviewer,
            /// The sandbox in full.
            pub sandbox: SandboxPolicy,
            /// Null for the model's default.
            pub reasoning_effort: Option<ReasoningEffort>,
            /// The effective values of what the host asked for. The host compares them and closes the thread
            /// on a difference.
            #[experimental(concat!($method, ".delegation"))]
            #[omit]
            pub delegation: Option<ThreadDelegation>,
            #[experimental(concat!($method, ".rolloutOwnership"))]
            #[omit]
            pub rollout_ownership: Option<RolloutOwnership>,
            /// Set when the request contained a history.
            #[experimental(concat!($method, ".fidelity"))]
            #[omit]
            pub fidelity: Option<HistoryFidelity>,
            /// The parts that the runtime rebuilt from a lossy history.
            #[experimental(concat!($method, ".rebuilt"))]
            #[omit]
            pub rebuilt: Option<Vec<String>>,
            /// The next ordinal to be written.
            #[experimental(concat!($method, ".rolloutOrdinal"))]
            #[omit]
            pub rollout_ordinal: Option<u64>,
            /// Digest of the history in the request, which is not sent back.
            #[experimental(concat!($method, ".itemsDigest"))]
            #[omit]
            pub items_digest: Option<String>,
            /// The tools the model is offered.
            #[experimental(concat!($method, ".effectiveTools"))]
            #[omit]
            pub effective_tools: Option<Vec<EffectiveTool>>,
            /// Digest of `effectiveTools`; repeated in each model request.
            #[experimental(concat!($method, ".toolSetDigest"))]
            #[omit]
            pub tool_set_digest: Option<String>,
            /// Operations that wait for the host.
            #[experimental(concat!($method, ".pendingOperations"))]
            #[omit]
            pub pending_operations: Option<Vec<PendingOperation>>,
        }
    )* };
}

opened_thread! {
    /// The new thread and the settings it starts with.
    ThreadStartResponse at "thread/start";
    /// The thread with its turns and settings.
    ThreadResumeResponse at "thread/resume";
    /// The copy with its turns and the settings it starts with.
    ThreadForkResponse at "thread/fork";
}
