//! How others talk to a thread's actor.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use engine::{ChildEnd, UserText};
use protocol::{
    ItemId, PendingOperation, ResolvedOperation, ResponseItem, ThreadId, ThreadMetadataChange, ThreadStatus,
    Turn, TurnId, UserInput,
};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};

use crate::audience::BoxFuture;
use crate::error::RuntimeError;
use crate::settings::{SettingsChange, ThreadSettings};

/// What a turn is started with.
#[derive(Debug, Clone)]
pub struct TurnOptions {
    pub turn_id: TurnId,
    pub text: UserText,
    pub output_schema: Option<Value>,
    /// Holds from this turn on.
    pub change: SettingsChange,
    /// As the provider spells it. Holds for this turn alone.
    pub service_tier: Option<String>,
}

/// Called once with the outcome of a command: before anything that follows from it is told to the audience, so that an
/// answer sent from here arrives first. Must not block.
pub struct Answer<T>(Box<dyn FnOnce(Result<T, RuntimeError>) + Send>);

impl<T> Answer<T> {
    pub fn new(answer: impl FnOnce(Result<T, RuntimeError>) + Send + 'static) -> Self {
        Self(Box::new(answer))
    }

    pub(crate) fn give(self, outcome: Result<T, RuntimeError>) {
        (self.0)(outcome);
    }
}

impl<T> fmt::Debug for Answer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Answer")
    }
}

/// As [`Answer`], and the thread's next event waits until the future ends.
pub struct Then<T>(Box<dyn FnOnce(Result<T, RuntimeError>) -> BoxFuture<'static, ()> + Send>);

impl<T> Then<T> {
    pub fn new(
        then: impl FnOnce(Result<T, RuntimeError>) -> BoxFuture<'static, ()> + Send + 'static,
    ) -> Self {
        Self(Box::new(then))
    }

    pub(crate) async fn give(self, outcome: Result<T, RuntimeError>) {
        (self.0)(outcome).await;
    }
}

impl<T> fmt::Debug for Then<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Then")
    }
}

/// A thread at one moment between two events.
#[derive(Debug, Clone)]
pub struct Snapshot {
    pub settings: ThreadSettings,
    pub status: ThreadStatus,
    /// Unset before the thread has a record.
    pub row: Option<journal::ThreadRow>,
    /// The next ordinal to be written, where the host keeps the record.
    pub next_ordinal: Option<u64>,
    /// What the user said in a turn that was cut off, and the model never saw. Read with the turns.
    pub(crate) unheard: Vec<(ItemId, Vec<UserInput>)>,
    /// The turn that was cut off or put away and waits to be taken up. Read with the turns.
    pub(crate) unfinished: Option<TurnId>,
    /// What waits for somebody. Read with the turns.
    pub(crate) pending: Vec<PendingOperation>,
    /// Empty unless asked for. The turn that runs is the last, without the item that is still growing.
    pub turns: Vec<Turn>,
}

/// What an actor can be asked.
#[derive(Debug)]
pub(crate) enum Command {
    Start(Box<TurnOptions>, Answer<TurnId>),
    Steer {
        expected: TurnId,
        text: UserText,
        answer: Answer<TurnId>,
    },
    /// A host sits down again, with what it has of the record.
    Rejoin(Option<Vec<journal::Entry>>, Answer<()>),
    TakeUp {
        resolved: Vec<ResolvedOperation>,
        texts: Vec<(ItemId, UserText)>,
        answer: Answer<()>,
    },
    Suspend {
        expected: TurnId,
        when_pending: bool,
        limit: Duration,
        answer: Answer<Vec<PendingOperation>>,
    },
    Interrupt {
        expected: Option<TurnId>,
        answer: Answer<()>,
    },
    Compact(TurnId, Answer<()>),
    Rollback {
        num_turns: u32,
        turn_id: TurnId,
        answer: Answer<()>,
    },
    Shell {
        turn_id: TurnId,
        command: String,
        answer: Answer<()>,
    },
    ClearTerminals(Answer<()>),
    Note(Box<ThreadMetadataChange>, Answer<journal::ThreadRow>),
    Look {
        with_turns: bool,
        then: Then<Snapshot>,
    },
    ChildEnded(Box<ChildEnd>, Answer<()>),
    Remembered(Answer<Remembered>),
    Close(Answer<()>),
    /// Closes a thread in which nothing runs or waits, if the caller still wants that when its turn has come. Answers
    /// whether it was closed.
    CloseIdle(Still, Answer<bool>),
}

/// Asked in the actor, one after the other with all that is told of the thread.
pub(crate) struct Still(pub(crate) Box<dyn FnOnce() -> bool + Send>);

impl fmt::Debug for Still {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Still")
    }
}

/// What the model knows, and the context it was last told.
pub(crate) type Remembered = (Vec<ResponseItem>, Option<Value>);

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

    /// The actor has ended: closed, or broken by a panic.
    pub(crate) fn is_gone(&self) -> bool {
        self.commands.is_closed()
    }

    pub fn status(&self) -> ThreadStatus {
        self.status.borrow().clone()
    }

    /// Returns once no turn runs and nothing is waited for.
    pub async fn idle(&self) {
        let mut status = self.status.clone();
        // An error means that the thread is gone, and then it is idle too.
        let _ = status.wait_for(|status| !matches!(status, ThreadStatus::Active { .. })).await;
    }

    /// Accepted means durable: the input survives the process. While a turn runs the input joins it, and the answer is
    /// the id of the running turn.
    pub async fn start_turn(&self, options: TurnOptions) -> Result<TurnId, RuntimeError> {
        self.wait(|answer| self.start_turn_then(options, answer)).await
    }

    pub async fn start_turn_then(&self, options: TurnOptions, answer: Answer<TurnId>) {
        self.send(answer, |answer| Command::Start(Box::new(options), answer)).await;
    }

    /// Adds input to the turn the caller believes is running.
    pub async fn steer(&self, expected: TurnId, text: UserText) -> Result<TurnId, RuntimeError> {
        if expected.as_str().is_empty() {
            return Err(RuntimeError::NoExpectedTurn);
        }
        self.wait(|answer| self.send(answer, |answer| Command::Steer { expected, text, answer })).await
    }

    /// Answered when the turn has stopped. Refused when none runs, or another than the one that is meant.
    pub async fn interrupt(&self, expected: Option<TurnId>) -> Result<(), RuntimeError> {
        self.wait(|answer| self.interrupt_then(expected, answer)).await
    }

    pub async fn interrupt_then(&self, expected: Option<TurnId>, answer: Answer<()>) {
        self.send(answer, |answer| Command::Interrupt { expected, answer }).await;
    }

    /// Goes on from what the host that sits down again has of the record.
    pub(crate) async fn rejoin(&self, entries: Option<Vec<journal::Entry>>) -> Result<(), RuntimeError> {
        self.wait(|answer| self.send(answer, |answer| Command::Rejoin(entries, answer))).await
    }

    /// Takes up the turn that was cut off or put away, if there is one. What was decided meanwhile is recorded first.
    pub(crate) async fn take_up(
        &self,
        resolved: Vec<ResolvedOperation>,
        texts: Vec<(ItemId, UserText)>,
    ) -> Result<(), RuntimeError> {
        self.wait(|answer| self.send(answer, |answer| Command::TakeUp { resolved, texts, answer })).await
    }

    /// Puts the running turn away; answers with what waits for a decision.
    pub(crate) async fn suspend_then(
        &self,
        expected: TurnId,
        when_pending: bool,
        limit: Duration,
        answer: Answer<Vec<PendingOperation>>,
    ) {
        let command = |answer| Command::Suspend { expected, when_pending, limit, answer };
        self.send(answer, command).await;
    }

    /// Starts a turn that compacts the history. A turn that runs is interrupted for it.
    pub async fn compact(&self, turn_id: TurnId) -> Result<(), RuntimeError> {
        self.wait(|answer| self.compact_then(turn_id, answer)).await
    }

    pub async fn compact_then(&self, turn_id: TurnId, answer: Answer<()>) {
        self.send(answer, |answer| Command::Compact(turn_id, answer)).await;
    }

    /// Tokens are counted anew, under the given id.
    pub async fn roll_back(&self, num_turns: u32, turn_id: TurnId) -> Result<(), RuntimeError> {
        self.wait(|answer| self.send(answer, |answer| Command::Rollback { num_turns, turn_id, answer })).await
    }

    /// Runs a command of the user's own: within the running turn, or in one of its own with this id.
    pub async fn shell_then(&self, turn_id: TurnId, command: String, answer: Answer<()>) {
        self.send(answer, |answer| Command::Shell { turn_id, command, answer }).await;
    }

    /// Ends every process that tools left running.
    pub async fn clear_terminals(&self) -> Result<(), RuntimeError> {
        self.wait(|answer| self.send(answer, Command::ClearTerminals)).await
    }

    /// Records a change of what is known about the thread.
    pub async fn note(&self, change: ThreadMetadataChange) -> Result<journal::ThreadRow, RuntimeError> {
        self.wait(|answer| self.send(answer, |answer| Command::Note(Box::new(change), answer))).await
    }

    /// How the thread stands, with all that was told before and nothing that is told later.
    pub async fn look(&self, with_turns: bool) -> Result<Snapshot, RuntimeError> {
        self.wait(|answer| {
            let then = Then::new(|snapshot| {
                answer.give(snapshot);
                Box::pin(async {})
            });
            self.look_then(with_turns, then)
        })
        .await
    }

    pub async fn look_then(&self, with_turns: bool, then: Then<Snapshot>) {
        match self.commands.reserve().await {
            Ok(place) => place.send(Command::Look { with_turns, then }),
            Err(_) => then.give(Err(RuntimeError::Gone(self.id.clone()))).await,
        }
    }

    /// A child came to an end. Accepted means that it is in the record.
    pub(crate) async fn child_ended(&self, end: ChildEnd) -> Result<(), RuntimeError> {
        self.wait(|answer| self.send(answer, |answer| Command::ChildEnded(Box::new(end), answer))).await
    }

    pub(crate) async fn remembered(&self) -> Result<Remembered, RuntimeError> {
        self.wait(|answer| self.send(answer, Command::Remembered)).await
    }

    /// Stops the running turn and lets go of the journal.
    pub async fn close(&self) -> Result<(), RuntimeError> {
        self.wait(|answer| self.send(answer, Command::Close)).await
    }

    /// Lets go of the journal if nothing runs or waits and `still` agrees. Says whether it did.
    pub(crate) async fn close_idle(&self, still: Still) -> Result<bool, RuntimeError> {
        self.wait(|answer| self.send(answer, |answer| Command::CloseIdle(still, answer))).await
    }

    async fn send<T>(&self, answer: Answer<T>, command: impl FnOnce(Answer<T>) -> Command) {
        match self.commands.reserve().await {
            Ok(place) => place.send(command(answer)),
            Err(_) => answer.give(Err(RuntimeError::Gone(self.id.clone()))),
        }
    }

    async fn wait<T, F>(&self, ask: impl FnOnce(Answer<T>) -> F) -> Result<T, RuntimeError>
    where
        T: Send + 'static,
        F: Future<Output = ()>,
    {
        let (told, wait) = oneshot::channel();
        let answer = Answer::new(move |outcome| {
            let _ = told.send(outcome);
        });
        ask(answer).await;
        wait.await.unwrap_or_else(|_| Err(RuntimeError::Gone(self.id.clone())))
    }
}
