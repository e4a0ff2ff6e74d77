//! The child agents of a thread, for its tools.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use engine::{Step, SubagentLine};
use futures_util::future::BoxFuture;
use protocol::{CollabAgentState, CollabAgentStatus, ReasoningEffort, ToolEffects, TurnId, UserInput};
use serde::Serialize;

/// The children of one thread. Ids come from `spawn`; errors are texts for the model.
pub trait ChildAgents: Send + Sync {
    /// The open children, as listed for the model.
    fn roster(&self) -> Arc<[SubagentLine]>;

    /// Why such a child cannot be started, as far as that is known beforehand.
    fn check<'a>(&'a self, order: &'a SpawnOrder) -> BoxFuture<'a, Result<(), String>>;

    /// The effects of repeating `spawn` for the same call.
    fn spawn_effects(&self) -> ToolEffects;

    fn spawn(&self, order: SpawnOrder) -> BoxFuture<'_, Result<Spawned, String>>;

    /// Sends input to an idle or working child. Returns the id of the turn that gets it.
    fn send<'a>(
        &'a self,
        id: &'a str,
        input: Vec<UserInput>,
        interrupt: bool,
    ) -> BoxFuture<'a, Result<String, String>>;

    /// Opens a closed child again.
    fn resume<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), String>>;

    /// Closes a child and everything below it.
    fn close<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), String>>;

    fn status<'a>(&'a self, id: &'a str) -> BoxFuture<'a, AgentStatus>;

    /// Returns when one of them has ended, with all that have; empty after the time limit.
    fn wait<'a>(&'a self, ids: &'a [String], limit: Duration)
    -> BoxFuture<'a, BTreeMap<String, AgentStatus>>;
}

/// Prints only the name: printing the fields would add the `Debug` code of all their types to the program.
impl fmt::Debug for dyn ChildAgents + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ChildAgents")
    }
}

/// The model's order for a child.
#[derive(Debug, Clone)]
pub struct SpawnOrder {
    pub turn_id: TurnId,
    pub call_id: String,
    /// The parent's step: its permissions and folders bound those of the child.
    pub step: Arc<Step>,
    pub input: Vec<UserInput>,
    pub role: Option<String>,
    /// The child gets the parent's history.
    pub with_history: bool,
    pub model: Option<String>,
    pub effort: Option<ReasoningEffort>,
}

/// A started child.
#[derive(Debug, Clone)]
pub struct Spawned {
    pub id: String,
    pub nickname: Option<String>,
    pub model: String,
    pub effort: Option<ReasoningEffort>,
    /// It does not run in this process; its end is reported.
    pub is_away: bool,
}

/// A child's status, in the words its parent reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentStatus {
    PendingInit,
    Running,
    Interrupted,
    /// With its last message.
    Completed(Option<String>),
    Errored(String),
    Shutdown,
    NotFound,
}

impl AgentStatus {
    /// Whether the status changes only with new input.
    pub fn is_final(&self) -> bool {
        !matches!(self, Self::PendingInit | Self::Running | Self::Interrupted)
    }

    /// As clients see it.
    pub fn shown(&self) -> CollabAgentState {
        let (status, message) = match self {
            Self::PendingInit => (CollabAgentStatus::PendingInit, None),
            Self::Running => (CollabAgentStatus::Running, None),
            Self::Interrupted => (CollabAgentStatus::Interrupted, None),
            Self::Completed(message) => (CollabAgentStatus::Completed, message.clone()),
            Self::Errored(message) => (CollabAgentStatus::Errored, Some(message.clone())),
            Self::Shutdown => (CollabAgentStatus::Shutdown, None),
            Self::NotFound => (CollabAgentStatus::NotFound, None),
        };
        CollabAgentState { status, message }
    }

    pub(crate) fn is_failure(&self) -> bool {
        matches!(self, Self::Errored(_) | Self::NotFound)
    }
}
