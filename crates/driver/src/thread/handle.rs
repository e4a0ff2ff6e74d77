//! The handle of a thread: sends commands to its actor.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use engine::{ChildEnd, GoalChange, ReviewOrder, UserText};
use protocol::{
    ItemId, PendingOperation, ResolvedOperation, ResponseItem, ThreadGoal, ThreadId, ThreadMetadataChange,
    ThreadStatus, Turn, TurnId,
};
use serde_json::Value;
use support::Responder;
use tokio::sync::{mpsc, oneshot, watch};
use traces::TraceContext;

use crate::audience::BoxFuture;
use crate::thread::capture::NextRequest;
use crate::thread::error::ThreadError;
use crate::thread::resume_turn::UndeliveredInput;
use crate::thread::settings::{SettingsChange, ThreadSettings};

/// Options of one turn.
#[derive(Debug, Clone)]
pub struct TurnOptions {
    pub turn_id: TurnId,
    pub text: UserText,
    pub output_schema: Option<Value>,
    /// Applies from this turn on.
    pub change: SettingsChange,
    /// In the provider's spelling. Applies to this turn only.
    pub service_tier: Option<String>,
}

/// Options of one review.
#[derive(Debug, Clone)]
pub struct ReviewOptions {
    pub turn_id: TurnId,
    pub order: ReviewOrder,
    /// Applies from this turn on.
    pub change: SettingsChange,
}

/// Like [`Responder`], but the thread handles no event until the future has ended.
pub struct Then<T, E>(Box<dyn FnOnce(Result<T, E>) -> BoxFuture<'static, ()> + Send>);

impl<T, E> Then<T, E> {
    pub fn new(then: impl FnOnce(Result<T, E>) -> BoxFuture<'static, ()> + Send + 'static) -> Self {
        Self(Box::new(then))
    }

    pub async fn give(self, outcome: Result<T, E>) {
        (self.0)(outcome).await;
    }
}

impl<T, E> fmt::Debug for Then<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Then")
    }
}

/// A thread's state between two events.
#[derive(Debug, Clone)]
pub struct Snapshot {
    pub settings: ThreadSettings,
    pub status: ThreadStatus,
    /// Unset before the thread has a record.
    pub row: Option<journal::ThreadRow>,
    /// The next ordinal to be written, where the host keeps the record.
    pub next_ordinal: Option<u64>,
    /// User messages of an unfinished turn that the model never got. Read together with the turns.
    pub undelivered: Vec<UndeliveredInput>,
    /// The interrupted or suspended turn that can be resumed. Read together with the turns.
    pub unfinished: Option<TurnId>,
    /// Pending operations. Read together with the turns.
    pub pending: Vec<PendingOperation>,
    /// Empty unless requested. A running turn is the last, without the item that is still streaming.
    pub turns: Vec<Turn>,
}

/// Commands of an actor.
#[derive(Debug)]
pub(crate) enum ThreadCommand {
    Start(Box<TurnOptions>, Responder<TurnId, ThreadError>),
    Steer {
        expected: TurnId,
        text: UserText,
        responder: Responder<TurnId, ThreadError>,
    },
    /// A host attached again, with its copy of the record.
    Rejoin(Option<Vec<journal::JournalEntry>>, Responder<(), ThreadError>),
    ResumeTurn {
        resolved: Vec<ResolvedOperation>,
        texts: Vec<(ItemId, UserText)>,
        responder: Responder<(), ThreadError>,
    },
    /// Applies to any running turn if `expected` is unset.
    Suspend {
        expected: Option<TurnId>,
        when_pending: bool,
        limit: Duration,
        responder: Responder<Vec<PendingOperation>, ThreadError>,
    },
    Interrupt {
        expected: Option<TurnId>,
        responder: Responder<(), ThreadError>,
    },
    Compact(TurnId, Responder<(), ThreadError>),
    Review(Box<ReviewOptions>, Responder<(), ThreadError>),
    SetGoal(Box<GoalChange>, Responder<ThreadGoal, ThreadError>),
    ReadGoal(Responder<Option<ThreadGoal>, ThreadError>),
    /// Responds whether there was one.
    ClearGoal(Responder<bool, ThreadError>),
    /// Continue an active goal, if the thread is idle.
    PursueGoal,
    Rollback {
        num_turns: u32,
        turn_id: TurnId,
        responder: Responder<(), ThreadError>,
    },
    Shell {
        turn_id: TurnId,
        command: String,
        responder: Responder<(), ThreadError>,
    },
    ClearTerminals(Responder<(), ThreadError>),
    Note(Box<ThreadMetadataChange>, Responder<journal::ThreadRow, ThreadError>),
    Snapshot {
        with_turns: bool,
        then: Then<Snapshot, ThreadError>,
    },
    ChildEnded(Box<ChildEnd>, Responder<(), ThreadError>),
    Remembered(Responder<Remembered, ThreadError>),
    NextRequest(Responder<NextRequest, ThreadError>),
    Close(Responder<(), ThreadError>),
    /// Closes an idle thread, if the caller's condition still holds when the command is handled. Responds whether it
    /// was closed.
    CloseIdle(Still, Responder<bool, ThreadError>),
}

/// A command with its sender's trace context.
#[derive(Debug)]
pub(crate) struct SentCommand {
    pub(crate) command: ThreadCommand,
    pub(crate) trace: Option<TraceContext>,
}

impl SentCommand {
    fn new(command: ThreadCommand) -> Self {
        Self { command, trace: traces::current() }
    }
}

/// Evaluated in the actor, in order with the thread's notifications.
pub struct Still(pub Box<dyn FnOnce() -> bool + Send>);

impl fmt::Debug for Still {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Still")
    }
}

/// The model's history, and the context of its last request.
pub type Remembered = (Vec<ResponseItem>, Option<Value>);

/// Sends commands to a thread. Clones send to the same one.
#[derive(Debug, Clone)]
pub struct ThreadHandle {
    pub(crate) id: ThreadId,
    pub(crate) commands: mpsc::Sender<SentCommand>,
    pub(crate) status: watch::Receiver<ThreadStatus>,
}

impl ThreadHandle {
    pub fn id(&self) -> &ThreadId {
        &self.id
    }

    /// The actor has ended: closed, or after a panic.
    pub fn is_gone(&self) -> bool {
        self.commands.is_closed()
    }

    pub fn status(&self) -> ThreadStatus {
        self.status.borrow().clone()
    }

    /// Returns when no turn runs and no answer is pending.
    pub async fn idle(&self) {
        let mut status = self.status.clone();
        // An error means that the thread has ended, which counts as idle.
        let _ = status.wait_for(|status| !matches!(status, ThreadStatus::Active { .. })).await;
    }

    /// Responds when the input is durable: it survives the process. If a turn is running, the input joins it, and the
    /// response is that turn's id.
    pub async fn start_turn(&self, options: TurnOptions) -> Result<TurnId, ThreadError> {
        self.wait(|responder| self.start_turn_then(options, responder)).await
    }

    pub async fn start_turn_then(&self, options: TurnOptions, responder: Responder<TurnId, ThreadError>) {
        self.send(responder, |responder| ThreadCommand::Start(Box::new(options), responder)).await;
    }

    /// Adds input to the turn that the caller expects to be running.
    pub async fn steer(&self, expected: TurnId, text: UserText) -> Result<TurnId, ThreadError> {
        if expected.as_str().is_empty() {
            return Err(ThreadError::NoExpectedTurn);
        }
        self.wait(|responder| {
            self.send(responder, |responder| ThreadCommand::Steer { expected, text, responder })
        })
        .await
    }

    /// Responds when the turn has stopped. Refused when no turn runs, or another than expected.
    pub async fn interrupt(&self, expected: Option<TurnId>) -> Result<(), ThreadError> {
        self.wait(|responder| self.interrupt_then(expected, responder)).await
    }

    pub async fn interrupt_then(&self, expected: Option<TurnId>, responder: Responder<(), ThreadError>) {
        self.send(responder, |responder| ThreadCommand::Interrupt { expected, responder }).await;
    }

    /// Continues from the record of a host that attached again.
    pub async fn rejoin(&self, entries: Option<Vec<journal::JournalEntry>>) -> Result<(), ThreadError> {
        self.wait(|responder| self.send(responder, |responder| ThreadCommand::Rejoin(entries, responder)))
            .await
    }

    /// Resumes the interrupted or suspended turn, if there is one. Records decisions made meanwhile first.
    pub async fn resume_turn(
        &self,
        resolved: Vec<ResolvedOperation>,
        texts: Vec<(ItemId, UserText)>,
    ) -> Result<(), ThreadError> {
        self.wait(|responder| {
            self.send(responder, |responder| ThreadCommand::ResumeTurn { resolved, texts, responder })
        })
        .await
    }

    /// Suspends the running turn; responds with its pending operations.
    pub async fn suspend_then(
        &self,
        expected: Option<TurnId>,
        when_pending: bool,
        limit: Duration,
        responder: Responder<Vec<PendingOperation>, ThreadError>,
    ) {
        let command = |responder| ThreadCommand::Suspend { expected, when_pending, limit, responder };
        self.send(responder, command).await;
    }

    /// Returns when no turn runs. The turn is suspended when everything in it waits for a client, and after `limit` in
    /// any case.
    pub async fn drain(&self, limit: Duration) {
        // An error means that no turn runs.
        let _ = self.wait(|responder| self.suspend_then(None, true, limit, responder)).await;
        self.idle().await;
    }

    /// Starts a turn that compacts the history. Interrupts a running turn.
    pub async fn compact(&self, turn_id: TurnId) -> Result<(), ThreadError> {
        self.wait(|responder| self.compact_then(turn_id, responder)).await
    }

    pub async fn compact_then(&self, turn_id: TurnId, responder: Responder<(), ThreadError>) {
        self.send(responder, |responder| ThreadCommand::Compact(turn_id, responder)).await;
    }

    /// Starts a review. Interrupts a running turn.
    pub async fn review_then(&self, options: ReviewOptions, responder: Responder<(), ThreadError>) {
        self.send(responder, |responder| ThreadCommand::Review(Box::new(options), responder)).await;
    }

    /// Sets or changes the goal. Work on an active goal starts at once.
    pub async fn set_goal_then(&self, change: GoalChange, responder: Responder<ThreadGoal, ThreadError>) {
        self.send(responder, |responder| ThreadCommand::SetGoal(Box::new(change), responder)).await;
    }

    pub async fn goal(&self) -> Result<Option<ThreadGoal>, ThreadError> {
        self.wait(|responder| self.send(responder, ThreadCommand::ReadGoal)).await
    }

    pub async fn clear_goal_then(&self, responder: Responder<bool, ThreadError>) {
        self.send(responder, ThreadCommand::ClearGoal).await;
    }

    /// Continues the active goal of a resumed thread.
    pub async fn pursue_goal(&self) {
        // A closed thread has no goal to continue.
        let _ = self.commands.send(SentCommand::new(ThreadCommand::PursueGoal)).await;
    }

    /// Rolls turns back. Token usage is notified under the given id.
    pub async fn roll_back(&self, num_turns: u32, turn_id: TurnId) -> Result<(), ThreadError> {
        self.wait(|responder| {
            self.send(responder, |responder| ThreadCommand::Rollback { num_turns, turn_id, responder })
        })
        .await
    }

    /// Runs a command of the user: within the running turn, or in a new turn with this id.
    pub async fn shell_then(&self, turn_id: TurnId, command: String, responder: Responder<(), ThreadError>) {
        self.send(responder, |responder| ThreadCommand::Shell { turn_id, command, responder }).await;
    }

    /// Ends every process that tools left running.
    pub async fn clear_terminals(&self) -> Result<(), ThreadError> {
        self.wait(|responder| self.send(responder, ThreadCommand::ClearTerminals)).await
    }

    /// Records a change of the thread's metadata.
    pub async fn note(&self, change: ThreadMetadataChange) -> Result<journal::ThreadRow, ThreadError> {
        self.wait(|responder| {
            self.send(responder, |responder| ThreadCommand::Note(Box::new(change), responder))
        })
        .await
    }

    /// The thread's state, ordered with its notifications: after all earlier and before all later ones.
    pub async fn snapshot(&self, with_turns: bool) -> Result<Snapshot, ThreadError> {
        self.wait(|responder| {
            let then = Then::new(|snapshot| {
                responder.respond(snapshot);
                Box::pin(async {})
            });
            self.snapshot_then(with_turns, then)
        })
        .await
    }

    pub async fn snapshot_then(&self, with_turns: bool, then: Then<Snapshot, ThreadError>) {
        match self.commands.reserve().await {
            Ok(place) => place.send(SentCommand::new(ThreadCommand::Snapshot { with_turns, then })),
            Err(_) => then.give(Err(ThreadError::Gone(self.id.clone()))).await,
        }
    }

    /// Reports the end of a child. Returns when it is recorded.
    pub async fn child_ended(&self, end: ChildEnd) -> Result<(), ThreadError> {
        self.wait(|responder| {
            self.send(responder, |responder| ThreadCommand::ChildEnded(Box::new(end), responder))
        })
        .await
    }

    pub async fn remembered(&self) -> Result<Remembered, ThreadError> {
        self.wait(|responder| self.send(responder, ThreadCommand::Remembered)).await
    }

    /// The next request as it would be made now, whether or not a turn runs.
    pub async fn next_request(&self) -> Result<NextRequest, ThreadError> {
        self.wait(|responder| self.send(responder, ThreadCommand::NextRequest)).await
    }

    /// Stops the running turn and closes the journal.
    pub async fn close(&self) -> Result<(), ThreadError> {
        self.wait(|responder| self.send(responder, ThreadCommand::Close)).await
    }

    /// Closes the journal if the thread is idle and `still` agrees. Returns whether it did.
    pub async fn close_idle(&self, still: Still) -> Result<bool, ThreadError> {
        self.wait(|responder| self.send(responder, |responder| ThreadCommand::CloseIdle(still, responder)))
            .await
    }

    async fn send<T>(
        &self,
        responder: Responder<T, ThreadError>,
        command: impl FnOnce(Responder<T, ThreadError>) -> ThreadCommand,
    ) {
        match self.commands.reserve().await {
            Ok(place) => place.send(SentCommand::new(command(responder))),
            Err(_) => responder.respond(Err(ThreadError::Gone(self.id.clone()))),
        }
    }

    async fn wait<T, F>(&self, ask: impl FnOnce(Responder<T, ThreadError>) -> F) -> Result<T, ThreadError>
    where
        T: Send + 'static,
        F: Future<Output = ()>,
    {
        let (told, wait) = oneshot::channel();
        let responder = Responder::new(move |outcome| {
            let _ = told.send(outcome);
        });
        ask(responder).await;
        wait.await.unwrap_or_else(|_| Err(ThreadError::Gone(self.id.clone())))
    }
}
