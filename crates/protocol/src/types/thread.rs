//! Threads: what they are, where they came from and how they stand.

use super::prelude::*;

/// The sort key of a list of threads.
#[wire(snake_case)]
pub enum ThreadSortKey {
    CreatedAt,
    UpdatedAt,
    /// The same as `updated_at` here.
    RecencyAt,
    /// Sections are the client's own: the same as `updated_at` here.
    SectionPosition,
}

/// Kinds of `source` to filter by.
#[wire]
pub enum ThreadSourceKind {
    Cli,
    Vscode,
    Exec,
    AppServer,
    /// A child agent of any kind.
    SubAgent,
    SubAgentReview,
    SubAgentCompact,
    /// A child another agent spawned.
    SubAgentThreadSpawn,
    SubAgentOther,
    Unknown,
}

/// The state of the git repository. Null where unknown.
#[wire]
pub struct GitInfo {
    /// The commit checked out.
    pub sha: Option<String>,
    pub branch: Option<String>,
    pub origin_url: Option<String>,
}

/// The origin of a thread.
#[wire]
pub enum SessionSource {
    Cli,
    /// An editor or any other client of this server.
    Vscode,
    /// A run without a user present.
    Exec,
    AppServer,
    Unknown,
    /// A client with a name of its own.
    Custom(String),
    /// Another agent.
    SubAgent(SubAgentSource),
}

/// The purpose of a child agent.
#[wire(snake_case)]
pub enum SubAgentSource {
    Review,
    Compact,
    /// Putting memories in order.
    MemoryConsolidation,
    /// Another agent asked for it.
    ThreadSpawn {
        parent_thread_id: ThreadId,
        /// 1 for a child of the root.
        depth: i32,
        #[serde(default)]
        agent_path: Option<AgentPath>,
        agent_nickname: Option<String>,
        agent_role: Option<String>,
    },
    Other(String),
}

/// A conversation with the agent.
#[wire]
pub struct Thread {
    pub id: ThreadId,
    /// Shared by a thread and its children.
    #[serde(default)]
    pub session_id: String,
    /// The thread whose history this one began with.
    pub forked_from_id: Option<ThreadId>,
    /// Text of the first user message; empty until there is one.
    pub preview: String,
    /// Kept in memory only and never listed.
    pub ephemeral: bool,
    pub project_id: Option<String>,
    /// Id of the provider.
    pub model_provider: String,
    /// Unix seconds.
    pub created_at: i64,
    /// Unix seconds.
    pub updated_at: i64,
    pub status: ThreadStatus,
    /// The record's file; null for an ephemeral thread. The file is written from the first user message on.
    pub path: Option<String>,
    pub cwd: String,
    /// The version that made the thread.
    pub cli_version: String,
    pub source: SessionSource,
    /// A word of the client's own for where the thread came from.
    pub thread_source: Option<String>,
    /// Set for a child another agent spawned.
    pub agent_nickname: Option<String>,
    /// Set for a child another agent spawned.
    pub agent_role: Option<String>,
    pub git_info: Option<GitInfo>,
    /// Null until `thread/name/set` gives one.
    pub name: Option<String>,
    /// Oldest first. Filled by `thread/read` with `includeTurns`, `thread/resume`, `thread/fork` and its
    /// `thread/started`, and `thread/rollback`; else empty.
    pub turns: Vec<Turn>,
}

/// The kind of answer an active thread waits for.
#[wire]
pub enum ThreadActiveFlag {
    /// An approval, a permission, or the answer to an MCP server's question.
    WaitingOnApproval,
    /// The answer to a question of the agent.
    WaitingOnUserInput,
}

/// The status of a thread.
#[wire(tag = "type")]
pub enum ThreadStatus {
    /// Stored only; `thread/resume` loads it.
    NotLoaded,
    /// In memory, with no turn running.
    Idle,
    /// Something went wrong. Stays so until the next turn begins.
    SystemError,
    /// A turn runs or a request waits.
    Active {
        /// Empty when it waits for nothing.
        active_flags: Vec<ThreadActiveFlag>,
    },
}

/// Sent to all connections when a thread was started or forked, also for a detached review.
#[wire]
pub struct ThreadStartedNotification {
    pub thread: Thread,
}

/// Sent to all connections whenever a thread's status changes. Child agents announce themselves with it.
#[wire]
pub struct ThreadStatusChangedNotification {
    pub thread_id: ThreadId,
    pub status: ThreadStatus,
}

/// Sent to all connections when a thread was moved to the archive.
#[wire]
pub struct ThreadArchivedNotification {
    pub thread_id: ThreadId,
}

/// Sent to all connections when a thread left the archive.
#[wire]
pub struct ThreadUnarchivedNotification {
    pub thread_id: ThreadId,
}

/// Sent to all connections when a thread was deleted for good.
#[wire]
pub struct ThreadDeletedNotification {
    pub thread_id: ThreadId,
}

/// Sent to all connections when a thread is no longer in memory.
#[wire]
pub struct ThreadClosedNotification {
    pub thread_id: ThreadId,
}

/// Sent to all connections when a thread has a new name.
#[wire(omit_null)]
pub struct ThreadNameUpdatedNotification {
    pub thread_id: ThreadId,
    pub thread_name: Option<String>,
}
