//! One open thread.

use std::sync::Arc;

use runtime::protocol::{
    Thread, ThreadId, ThreadReadParams, Turn, TurnId, TurnInterruptParams, TurnStartParams, TurnSteerParams,
};
use runtime::{OpenedThread, Responder, Runtime, RuntimeError};
use tokio::sync::oneshot;

use crate::error::ManagerError;
use crate::input::TurnInput;
use crate::options::{TurnOverrides, turn_params};
use crate::switchboard::Switchboard;
use crate::turn::TurnStream;

/// An open thread. Clones are the same thread; dropping them all leaves it open, so that what it does goes on.
#[derive(Debug, Clone)]
pub struct ManagedThread {
    runtime: Runtime,
    board: Arc<Switchboard>,
    id: ThreadId,
    model: String,
}

impl ManagedThread {
    pub(crate) fn new(runtime: Runtime, board: Arc<Switchboard>, opened: OpenedThread) -> Self {
        Self { runtime, board, id: opened.thread.id, model: opened.settings.model }
    }

    /// The id for [`ThreadManager::resume_thread`](crate::ThreadManager::resume_thread).
    pub fn id(&self) -> &ThreadId {
        &self.id
    }

    /// The model it was opened with.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// Says whether turns can be submitted, as far as this process can tell.
    pub fn is_open(&self) -> bool {
        self.runtime.thread(&self.id).is_ok()
    }

    /// Begins a turn. Accepted means recorded: what the user said survives the process.
    ///
    /// One thread runs one turn at a time: while it does, this is [`ManagerError::TurnRunning`].
    pub async fn submit(&self, input: impl Into<TurnInput>) -> Result<TurnStream, ManagerError> {
        self.submit_with(input, TurnOverrides::default()).await
    }

    /// As [`ManagedThread::submit`], with other settings from this turn on.
    pub async fn submit_with(
        &self,
        input: impl Into<TurnInput>,
        options: TurnOverrides,
    ) -> Result<TurnStream, ManagerError> {
        let input = input.into();
        if input.parts().is_empty() {
            return Err(ManagerError::EmptyInput);
        }
        self.begin(turn_params(&self.id, input, options)?).await
    }

    async fn begin(&self, params: TurnStartParams) -> Result<TurnStream, ManagerError> {
        // Said before it is said that a turn runs, which would be of a thread that is gone.
        self.runtime.thread(&self.id)?;
        let (line, inbox) = self.board.reserve(&self.id)?;
        let (told, answer) = oneshot::channel();
        // The line lives on with the answer, even when nobody waits for it any more.
        let accepted = Responder::new(move |turn: Result<Turn, RuntimeError>| {
            if let Ok(turn) = &turn {
                line.keep(&turn.id);
            }
            let _ = told.send(turn.map(|turn| turn.id));
        });
        self.runtime.start_turn(params, accepted).await;
        let turn_id = answer.await.map_err(|_| ManagerError::Closed(self.id.clone()))??;
        Ok(TurnStream::new(self.clone(), turn_id, inbox))
    }

    /// Adds to what the user said in the turn that runs, if it is this one.
    ///
    /// For other tasks than the one that reads the stream: that one uses [`TurnStream::steer`], which cannot end up
    /// waiting for itself.
    pub async fn steer(&self, turn: &TurnId, input: impl Into<TurnInput>) -> Result<(), ManagerError> {
        self.steer_turn(turn.clone(), input.into()).await
    }

    pub(crate) async fn steer_turn(&self, turn: TurnId, input: TurnInput) -> Result<(), ManagerError> {
        let params = TurnSteerParams {
            thread_id: self.id.clone(),
            input: input.into_parts(),
            expected_turn_id: turn,
            additional_context: None,
            input_id: None,
        };
        self.runtime.steer_turn(params).await?;
        Ok(())
    }

    /// Asks whatever turn runs to stop, and does not wait for it. Has no effect when none runs.
    pub async fn interrupt(&self) {
        self.interrupt_turn(TurnId::new("")).await;
    }

    /// Without an id, whatever runs is meant.
    pub(crate) async fn interrupt_turn(&self, turn_id: TurnId) {
        let params = TurnInterruptParams { thread_id: self.id.clone(), turn_id };
        self.runtime.interrupt_turn(params, Responder::new(drop)).await;
    }

    /// The thread's present state: its status, name, preview and place.
    pub async fn read(&self) -> Result<Thread, ManagerError> {
        Ok(self.runtime.read_thread(self.read_params(false)).await?)
    }

    /// All turns so far with their items, from the record. Empty before the first one.
    ///
    /// An ephemeral thread has no record to read from.
    pub async fn turns(&self) -> Result<Vec<Turn>, ManagerError> {
        match self.runtime.read_thread(self.read_params(true)).await {
            Ok(thread) => Ok(thread.turns),
            Err(RuntimeError::NothingSaid(_)) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    fn read_params(&self, include_turns: bool) -> ThreadReadParams {
        ThreadReadParams { thread_id: self.id.clone(), include_turns, exclude_turns: false }
    }

    /// Puts the thread away. A turn that runs is interrupted, and commands that were left running are ended.
    pub async fn close(&self) -> Result<(), ManagerError> {
        self.board.release(&self.id);
        self.runtime.unload(&self.id).await?;
        self.board.forget(&self.id);
        Ok(())
    }
}
