//! Errors of the runtime: they name the field and say what to do.

use engine::Refusal;
use environments::EnvironmentError;
use journal::JournalError;
use mcp::LoginError;
use plugins::PluginError;
use protocol::ThreadId;

use command_exec::CommandExecError;
use delegation::DelegationError;
use driver::{InvalidThreadId, ThreadError};
use workspace::{FileError, SearchError};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuntimeError {
    #[error(transparent)]
    InvalidThreadId(#[from] InvalidThreadId),
    /// Not in memory.
    #[error("thread not found: {0}")]
    UnknownThread(ThreadId),
    /// Neither in memory nor stored.
    #[error("thread not loaded: {0}")]
    NotLoaded(ThreadId),
    #[error("no rollout found for thread id {0}")]
    NoRecord(ThreadId),
    #[error("no archived rollout found for thread id {0}")]
    NotArchived(ThreadId),
    #[error("thread {0} is at work; interrupt its turn before you delete it")]
    AtWork(ThreadId),
    #[error("thread {id} cannot be deleted: {problem}")]
    Undeletable { id: ThreadId, problem: String },
    #[error("failed to load rollout `{path}`: {problem}")]
    UnreadableRecord { path: String, problem: String },
    #[error("thread {0} is not materialized yet; includeTurns is unavailable before first user message")]
    NothingSaid(ThreadId),
    #[error("ephemeral threads do not support includeTurns")]
    NoTurnsKept,
    #[error("thread rollback requires a persisted rollout path")]
    NoRollbackInMemory,
    #[error("ephemeral thread does not support goals: {0}")]
    NoGoalInMemory(ThreadId),
    #[error("thread {0} exists already; choose a fresh threadId")]
    ThreadExists(ThreadId),
    #[error("history must not be empty")]
    EmptyHistory,
    #[error("cannot resume thread {0} with history while it is already running")]
    HistoryWhileLoaded(ThreadId),
    #[error(
        "cannot resume running thread {id} with mismatched path: requested `{requested}`, active `{active}`"
    )]
    OtherPath { id: ThreadId, requested: String, active: String },
    #[error("thread name must not be empty")]
    EmptyName,
    #[error("gitInfo must include at least one field")]
    EmptyGitInfo,
    #[error("gitInfo.{0} must not be empty")]
    EmptyGitField(&'static str),
    #[error("{0}")]
    DynamicTool(String),
    #[error("{0}")]
    BuiltinTool(String),
    /// A value that makes no sense for the field.
    #[error("{field} {problem}")]
    Field { field: &'static str, problem: String },
    #[error(
        "the model provider `{0}` of this thread was a bridge that its host ran, and is not known here; pass modelProvider \
         to go on with another provider, or config {{\"model_providers\": {{\"{0}\": {{\"name\": …, \"base_url\": …}}}}}} \
         to go on with a bridge"
    )]
    NoBridge(String),
    #[error("skills/config/write requires exactly one of path or name")]
    SkillSelector,
    #[error("skills/list perCwdExtraUserRoots extraUserRoots paths must be absolute: {0}")]
    RelativeSkillRoot(String),
    /// The user's settings are unchanged.
    #[error("the configuration could not be written: {0}")]
    ConfigWrite(String),
    /// A change of the user's settings that was refused. Clients act on the code.
    #[error("{message}")]
    ConfigEdit { code: &'static str, message: String },
    #[error("{0}")]
    FeatureEnablement(String),
    /// The files of another agent cannot be read or imported.
    #[error("{0}")]
    ExternalAgent(String),
    #[error("Input exceeds the maximum length of {max} characters.")]
    InputTooLarge { max: usize, actual: usize },
    #[error(
        "additionalContext key {0:?} is not a plain name; use 1 to 64 letters and digits of ASCII, `_`, `-` and `.`"
    )]
    ContextKey(String),
    /// Forbidden by the administrator's requirements.
    #[error("{0}")]
    Forbidden(String),
    #[error("invalid cursor: {0}")]
    InvalidCursor(String),
    #[error("{0}")]
    Cursor(String),
    #[error("command must not be empty")]
    EmptyCommand,
    /// The servers' names, each with the reason.
    #[error("error creating thread: required MCP servers failed to initialize: {0}")]
    RequiredMcpServers(String),
    #[error("No MCP server named '{0}' found.")]
    UnknownMcpServer(String),
    #[error(transparent)]
    McpLogin(#[from] LoginError),
    #[error(transparent)]
    Plugin(#[from] PluginError),
    #[error("failed to load configuration: {0}")]
    Config(String),
    /// The form that `config/read` uses.
    #[error("invalid configuration: {0}")]
    InvalidConfig(String),
    #[error("{0}")]
    Login(&'static str),
    /// Like the previous, with the reason from an issuer or a client.
    #[error("{0}")]
    LoginFailed(String),
    #[error("thread {0} does not support realtime conversation")]
    NoRealtime(ThreadId),
    #[error("{0}")]
    Realtime(#[from] realtime::RealtimeError),
    #[error("failed to fetch codex rate limits: {0}")]
    LimitsUnread(String),
    #[error("invalid login id: {0}")]
    InvalidLoginId(String),
    #[error("the credentials could not be stored: {0}")]
    Credentials(String),
    #[error("the model provider cannot be used: {0}")]
    Provider(String),
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    /// An error of one loaded thread.
    #[error(transparent)]
    Thread(ThreadError),
    /// An error between a host and its threads.
    #[error(transparent)]
    Delegation(#[from] DelegationError),
    /// An error of a command that a client runs outside any thread.
    #[error(transparent)]
    CommandExec(#[from] CommandExecError),
    #[error("failed to compute git diff to remote for cwd: {0:?}")]
    GitDiff(String),
    #[error("no rollout found for conversation id {0}")]
    NoConversation(ThreadId),
    #[error("failed to load conversation summary from {path}: {problem}")]
    UnreadableSummary { path: String, problem: String },
    #[error("sending feedback is disabled by configuration")]
    NoFeedback,
    #[error("the feedback could not be saved: {0}")]
    FeedbackWrite(String),
    /// An error of a file that a client reads or changes.
    #[error(transparent)]
    Files(#[from] FileError),
    #[error(transparent)]
    Search(#[from] SearchError),
    #[error("out-of-band elicitation count is already zero")]
    NoElicitation,
    #[error("the work was cut short by a defect in this program")]
    Defect,
}

impl From<JournalError> for RuntimeError {
    fn from(error: JournalError) -> Self {
        match error {
            JournalError::InvalidCursor(cursor) => Self::InvalidCursor(cursor),
            error => Self::Thread(error.into()),
        }
    }
}

impl From<ThreadError> for RuntimeError {
    fn from(error: ThreadError) -> Self {
        match error {
            ThreadError::Delegation(error) => Self::Delegation(error),
            error => Self::Thread(error),
        }
    }
}

impl From<Refusal> for RuntimeError {
    fn from(refusal: Refusal) -> Self {
        Self::Thread(refusal.into())
    }
}

impl From<support::Panicked> for RuntimeError {
    fn from(_: support::Panicked) -> Self {
        Self::Defect
    }
}
