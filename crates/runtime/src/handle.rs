//! How others talk to a thread's actor.

use engine::UserText;
use protocol::{ThreadId, ThreadStatus, TurnId};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};

use crate::error::RuntimeError;

/// What a turn is started with.
#[derive(Debug, Clone)]
pub struct TurnOptions {
    pub turn_id: TurnId,
    pub text: UserText,
    pub output_schema: Option<Value>,
}

pub(crate) type Reply<T> = oneshot::Sender<Result<T, RuntimeError>>;

/// What an actor can be asked.
#[derive(Debug)]
pub(crate) enum Command {
    Start(Box<TurnOptions>, Reply<TurnId>),
    Steer { expected: TurnId, text: UserText, reply: Reply<TurnId> },
    Interrupt(Reply<()>),
    Compact(TurnId, Reply<()>),
    Rollback(u32, Reply<()>),
    Close(Reply<()>),
}

/// Sends to a thread; clones send to the same one.
#[derive(Debug, Clone)]
pub struct ThreadHandle {
    pub(crate) id: ThreadId,
    pub(crate) commands: mpsc::Sender<Command>,
    pub(crate) status: watch::Receiver<ThreadStatus>,
}

impl ThreadHandle {
    pub fn id(&self) -> &ThreadId {
        &self.id
    }

    pub fn status(&self) -> ThreadStatus {
        self.status.borrow().clone()
    }

    /// Accepted means durable: the input survives the process. While a turn runs the input joins it, and the answer is
    /// the id of the running turn.
    pub async fn start_turn(&self, options: TurnOptions) -> Result<TurnId, RuntimeError> {
        self.ask(|reply| Command::Start(Box::new(options), reply)).await
    }

    /// Adds input to the turn the caller believes is running.
    pub async fn steer(&self, expected: TurnId, text: UserText) -> Result<TurnId, RuntimeError> {
        if expected.as_str().is_empty() {
            return Err(RuntimeError::NoExpectedTurn);
        }
        self.ask(|reply| Command::Steer { expected, text, reply }).await
    }

    /// Answered when the turn has stopped; at once when none runs.
    pub async fn interrupt(&self) -> Result<(), RuntimeError> {
        self.ask(Command::Interrupt).await
    }

    /// Starts a turn that compacts the history.
    pub async fn compact(&self, turn_id: TurnId) -> Result<(), RuntimeError> {
        self.ask(|reply| Command::Compact(turn_id, reply)).await
    }

    pub async fn roll_back(&self, num_turns: u32) -> Result<(), RuntimeError> {
        self.ask(|reply| Command::Rollback(num_turns, reply)).await
    }

    /// Stops the running turn and lets go of the journal.
    pub async fn close(&self) -> Result<(), RuntimeError> {
        self.ask(Command::Close).await
    }

    async fn ask<T>(&self, command: impl FnOnce(Reply<T>) -> Command) -> Result<T, RuntimeError> {
        let gone = || RuntimeError::Gone(self.id.clone());
        let (reply, answer) = oneshot::channel();
        self.commands.send(command(reply)).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}
