//! Tasks of a host: durable threads whose operations wait for a decision, with or without a process behind them.

use super::prelude::*;

/// Features of a host that a client wants to use.
#[wire(omit_null)]
pub struct HostOffer {
    /// Versions of the host's methods the client knows.
    pub versions: Vec<u32>,
    /// Send `task/updated`, and `operation/updated` of tasks this connection does not follow too.
    #[serde(default)]
    pub all_tasks: bool,
}

/// The version and features of the host.
#[wire]
pub struct HostAgreed {
    pub version: u32,
    pub features: Vec<String>,
    /// The role of this connection: `viewer`, `approver`, `operator` or `admin`.
    pub role: String,
}

/// A root thread with its children, or one of these, as the host's store has it.
#[wire]
pub struct Task {
    pub id: ThreadId,
    /// The thread that started it; null for a task.
    pub parent_id: Option<ThreadId>,
    /// How many threads it has beside its root, its agents with theirs; 0 for a child.
    pub children: u32,
    pub name: Option<String>,
    /// Text of the first user message; empty until there is one.
    pub preview: String,
    pub state: TaskStatus,
    /// A runtime process holds the thread now.
    pub has_runtime: bool,
    pub cwd: Option<String>,
    /// As it was last opened; null before that, and for a child.
    pub model: Option<String>,
    /// Null where it works on the host's own machine, in its `cwd`.
    pub placement_id: Option<String>,
    pub labels: BTreeMap<String, String>,
    /// The name of the agent: the `threadSource` that the task was started with, or the nickname of a child.
    pub agent: Option<String>,
    /// The definition of the agent, as named when the task was last opened.
    pub agent_digest: Option<String>,
    pub is_archived: bool,
    /// The host's lease: greater after each restart of the host.
    pub epoch: u64,
    /// Operations that wait for a decision.
    pub waiting_operations: u32,
    /// How its last turn ended; unset before one did.
    #[omit]
    pub last_turn: Option<LastTurn>,
    /// Unix milliseconds.
    pub created_at_ms: i64,
    /// Unix milliseconds.
    pub updated_at_ms: i64,
}

/// The turn of a thread that ended last.
#[wire]
pub struct LastTurn {
    pub id: TurnId,
    pub status: TurnStatus,
    /// For people; set when `status` is `failed`.
    pub error: Option<String>,
}

/// How far a task has come.
#[wire]
pub enum TaskStatus {
    /// Its runtime starts for the first time.
    Creating,
    /// Waits for room among the running ones.
    Queued,
    /// No turn runs.
    Idle,
    Running,
    /// Its turn waits for a decision.
    Waiting,
    /// Its turn waits for a client that carries its model requests.
    WaitingForCarrier,
    /// Its turn waits, and no process is kept for it.
    Suspended,
    /// Its runtime could not be brought back. `task/resume` tries again.
    Failed,
}

/// Lists tasks, the last changed first.
#[wire(omit_null)]
#[derive(Default)]
pub struct TaskListParams {
    /// The children of this task, instead of tasks.
    pub children_of: Option<ThreadId>,
    pub state: Option<TaskStatus>,
    /// Tasks that have all of these.
    pub labels: Option<BTreeMap<String, String>>,
    #[serde(default)]
    pub archived: bool,
    /// From the page before.
    pub cursor: Option<String>,
    /// 50 when unset.
    pub limit: Option<u32>,
}

#[wire]
pub struct TaskListResponse {
    pub data: Vec<Task>,
    /// Null on the last page.
    pub next_cursor: Option<String>,
}

#[wire]
pub struct TaskReadParams {
    pub thread_id: ThreadId,
}

#[wire]
pub struct TaskReadResponse {
    pub task: Task,
    /// Those that wait for a decision.
    pub operations: Vec<Operation>,
}

/// A task is in another state than before. Only for connections that follow all tasks.
#[wire]
pub struct TaskUpdatedNotification {
    pub task: Task,
}

/// Ends the runtime of a task and leaves its turn where it is.
#[wire]
pub struct TaskSuspendParams {
    pub thread_id: ThreadId,
}

#[wire]
pub struct TaskSuspendResponse {
    pub task: Task,
}

/// Brings the turns of a task to a safe point and ends its runtime.
#[wire(omit_null)]
pub struct ThreadSuspendParams {
    /// A thread of the task; all of them are suspended.
    pub thread_id: ThreadId,
    /// Then also keep the workspace of its placement as it is. Refused, with nothing suspended, where it has none.
    #[serde(default)]
    pub snapshot: bool,
}

#[wire]
pub struct ThreadSuspendResponse {
    pub task: Task,
    /// With the snapshot, if one was asked for.
    #[omit]
    pub placement: Option<PlacementInfo>,
}

/// Starts a runtime for a task; an unfinished turn continues.
#[wire]
pub struct TaskResumeParams {
    pub thread_id: ThreadId,
}

#[wire]
pub struct TaskResumeResponse {
    pub task: Task,
}

/// Removes a task with its records, for good.
#[wire]
pub struct TaskDeleteParams {
    pub thread_id: ThreadId,
}

#[wire]
pub struct TaskDeleteResponse {}

/// Lists the hosts that share a store.
#[wire]
#[derive(Default)]
pub struct ReplicaListParams {}

#[wire]
pub struct ReplicaListResponse {
    pub data: Vec<ReplicaInfo>,
}

/// A host among those that share a store.
#[wire]
pub struct ReplicaInfo {
    pub id: String,
    /// The one that answers.
    pub is_this: bool,
    /// Where other hosts reach it; empty where none does.
    pub address: String,
    /// The sites whose placements it reaches.
    pub sites: Vec<String>,
    /// Unix milliseconds by the clock of the store. Null where leases do not expire.
    pub lease_ends_at_ms: Option<i64>,
    /// Its lease holds.
    pub is_alive: bool,
    /// How many tasks it owns.
    pub tasks: u32,
}

/// An operation as the host's store has it.
#[wire]
pub struct Operation {
    pub operation_id: OperationId,
    pub thread_id: ThreadId,
    /// The root of the task the thread belongs to.
    pub task_id: ThreadId,
    pub state: OperationState,
    #[serde(rename = "type")]
    pub kind: OperationType,
    /// The tool's name, as the model knows it.
    pub tool: String,
    pub namespace: Option<String>,
    pub item_id: ItemId,
    /// From the root agent to the one that asks.
    pub agent_path: Vec<String>,
    pub arguments: Value,
    /// To be repeated with the decision.
    pub arguments_digest: String,
    pub effects: ToolEffects,
    /// The decisions that can be carried out now; empty once it is decided.
    pub available_decisions: Vec<String>,
    /// Why it waits, for display.
    pub reason: Option<String>,
    /// Attempts that were started so far.
    pub attempt: u32,
    pub decision: Option<StoredDecision>,
    /// The policy of the runtime that decided, as its record says: `policy:reviewer`. Unset where somebody else did.
    #[omit]
    pub policy: Option<String>,
    /// The record of its runtime has a decision that neither anybody here nor a policy took.
    #[omit]
    pub unbacked_decision: bool,
    /// The changes of a patch. Unset for anything else, and beyond 1 MiB: then the item alone has them.
    #[omit]
    pub changes: Option<Vec<FileUpdateChange>>,
    /// Unix milliseconds.
    pub created_at_ms: i64,
    /// Unix milliseconds.
    pub updated_at_ms: i64,
}

/// How far an operation has come.
#[wire]
pub enum OperationState {
    /// Not decided.
    Proposed,
    /// Decided, not started.
    Decided,
    Started,
    /// Started before a crash and never seen to finish. Waits for `retry`, `respond` or `reject`.
    Unknown,
    Finished,
    /// Given up before it started.
    Withdrawn,
}

/// A decision as the host's store has it.
#[wire]
pub struct StoredDecision {
    pub decision: OperationDecision,
    /// The name the deciding connection has.
    pub by: String,
    /// The name it gave for somebody else.
    pub on_behalf_of: Option<String>,
    /// Unix milliseconds.
    pub decided_at_ms: i64,
}

/// A decision about something that a thread did.
#[wire]
pub struct ThreadDecision {
    pub operation_id: OperationId,
    pub item_id: ItemId,
    /// Null where nobody here decided: then `policy` or `unbackedDecision` is set.
    pub decision: Option<StoredDecision>,
    /// The policy of the runtime that decided, as its record says.
    #[omit]
    pub policy: Option<String>,
    /// The record of its runtime has a decision that neither anybody here nor a policy took.
    #[omit]
    pub unbacked_decision: bool,
}

/// Lists operations, the oldest first. Works with no runtime alive.
#[wire(omit_null)]
#[derive(Default)]
pub struct OperationListParams {
    /// Of this thread; of a root, with those of its children.
    pub thread_id: Option<ThreadId>,
    /// Those that wait for a decision when unset.
    pub state: Option<OperationState>,
    /// From the page before.
    pub cursor: Option<String>,
    /// 50 when unset.
    pub limit: Option<u32>,
}

#[wire]
pub struct OperationListResponse {
    pub data: Vec<Operation>,
    /// Null on the last page.
    pub next_cursor: Option<String>,
}

/// Decides an operation. The first decision counts, and is stored before the runtime hears of it. Works with no runtime
/// alive: the host brings the task back and the turn goes on.
#[wire(omit_null)]
pub struct OperationDecideParams {
    pub operation_id: OperationId,
    /// As the operation showed it; another one is refused with `digestMismatch`.
    pub arguments_digest: String,
    pub decision: OperationDecision,
    /// Who in fact decided, where this client only passes it on.
    pub on_behalf_of: Option<String>,
}

#[wire]
pub struct OperationDecideResponse {
    pub operation: Operation,
}

/// Sent to followers of a thread when another host has taken its task over, before anything that this one has to say. A
/// client that agreed on no methods of a host gets `item/started` again for each open item instead.
#[wire]
pub struct ThreadResyncedNotification {
    pub thread_id: ThreadId,
    /// Its last record, null while there is none. What changed since the last one that the client has seen is in
    /// `thread/resume` with `after`.
    pub ordinal: Option<u64>,
    /// Items that have begun and not ended, as `item/started` has them, with what they hold so far. Others that were open
    /// are not any more.
    pub open_items: Vec<ItemStartedNotification>,
}

/// Sent to followers of the task, and to connections that asked for all tasks, whenever an operation is proposed, decided
/// or over.
#[wire]
pub struct OperationUpdatedNotification {
    pub operation: Operation,
}

/// Lists the audit trail of a host, the newest entries first: who decided, started and stopped what.
#[wire(omit_null)]
#[derive(Default)]
pub struct AuditListParams {
    /// About this task, its threads, turns and operations.
    pub thread_id: Option<ThreadId>,
    /// Not before this time, in Unix milliseconds.
    pub since_ms: Option<i64>,
    /// From the page before.
    pub cursor: Option<String>,
    /// 50 when unset.
    pub limit: Option<u32>,
}

#[wire]
pub struct AuditListResponse {
    pub data: Vec<AuditRecord>,
    /// Null on the last page.
    pub next_cursor: Option<String>,
}

/// One entry of the audit trail. It is never changed.
#[wire]
pub struct AuditRecord {
    /// Counts entries without a gap.
    pub number: i64,
    /// Unix milliseconds, by the clock of the store.
    pub at_ms: i64,
    /// The name of the connection; `host:NAME` for a host that acts by itself, `runtime` for what a runtime did.
    pub who: String,
    /// What was done, mostly the method: `operation/decide`, `turn/start`, `task/adopt`.
    pub action: String,
    /// The id of the task, turn, operation or placement.
    pub subject: String,
    /// The task that it belongs to. The task itself may be gone.
    pub task_id: Option<ThreadId>,
    /// More about it, by action.
    pub details: Value,
}
