//! The child agents of a thread, as its tools reach them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use engine::{Step, SubagentLine};
use futures_util::future::BoxFuture;
use protocol::{CollabAgentState, CollabAgentStatus, ReasoningEffort, ToolEffects, TurnId, UserInput};
use serde::Serialize;

/// The children of one thread. Ids are those that `spawn` gave; what is said in errors is for the model to read.
pub trait ChildAgents: Send + Sync {
    /// Those that are open, as the model is told of them.
    fn roster(&self) -> Arc<[SubagentLine]>;

    /// Why such a child cannot be had, if that can be known before anything is done.
    fn check<'a>(&'a self, order: &'a SpawnOrder) -> BoxFuture<'a, Result<(), String>>;

    /// The effects of asking `spawn` again for the same call.
    fn spawn_effects(&self) -> ToolEffects;

    fn spawn(&self, order: SpawnOrder) -> BoxFuture<'_, Result<Spawned, String>>;

    /// Says something to a child, to one that is at rest as to one that works. Gives the id of the turn that takes it up.
    fn send<'a>(
        &'a self,
        id: &'a str,
        input: Vec<UserInput>,
        interrupt: bool,
    ) -> BoxFuture<'a, Result<String, String>>;

    /// Opens a closed one again.
    fn resume<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), String>>;

    /// Ends a child and everything below it.
    fn close<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), String>>;

    fn status<'a>(&'a self, id: &'a str) -> BoxFuture<'a, AgentStatus>;

    /// Returns when one of them is at an end, with all that are by then; with none when the time is up.
    fn wait<'a>(&'a self, ids: &'a [String], limit: Duration)
    -> BoxFuture<'a, BTreeMap<String, AgentStatus>>;
}

/// The name alone: to print the values behind it, the program would carry the `Debug` code of all their types.
impl fmt::Debug for dyn ChildAgents + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ChildAgents")
    }
}

/// A child as the model wants it.
#[derive(Debug, Clone)]
pub struct SpawnOrder {
    pub turn_id: TurnId,
    pub call_id: String,
    /// The parent's step: its permissions and folders bound those of the child.
    pub step: Arc<Step>,
    pub input: Vec<UserInput>,
    pub role: Option<String>,
    /// The child knows what was said so far.
    pub with_history: bool,
    pub model: Option<String>,
    pub effort: Option<ReasoningEffort>,
}

/// A child that is there.
#[derive(Debug, Clone)]
pub struct Spawned {
    pub id: String,
    pub nickname: Option<String>,
    pub model: String,
    pub effort: Option<ReasoningEffort>,
    /// It does not run in this process; its end is reported.
    pub is_away: bool,
}

/// How a child stands, in the words its parent reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentStatus {
    PendingInit,
    Running,
    Interrupted,
    /// With its last words.
    Completed(Option<String>),
    Errored(String),
    Shutdown,
    NotFound,
}

impl AgentStatus {
    /// Nothing more comes of it by itself.
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
