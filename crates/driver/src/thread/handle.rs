//! How others talk to a thread's actor.

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
use crate::thread::resume_turn::UnheardInput;
use crate::thread::settings::{SettingsChange, ThreadSettings};

/// Options of one turn.
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

/// Options of one review.
#[derive(Debug, Clone)]
pub struct ReviewOptions {
    pub turn_id: TurnId,
    pub order: ReviewOrder,
    /// Holds from this turn on.
    pub change: SettingsChange,
}

/// As [`Responder`], and the thread's next event waits until the future ends.
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

/// A thread at one moment between two events.
#[derive(Debug, Clone)]
pub struct Snapshot {
    pub settings: ThreadSettings,
    pub status: ThreadStatus,
    /// Unset before the thread has a record.
    pub row: Option<journal::ThreadRow>,
    /// The next ordinal to be written, where the host keeps the record.
    pub next_ordinal: Option<u64>,
    /// User messages of an unfinished turn that the model never saw. Read with the turns.
    pub unheard: Vec<UnheardInput>,
    /// The turn that was cut off or suspended and can be resumed. Read with the turns.
    pub unfinished: Option<TurnId>,
    /// Pending operations. Read with the turns.
    pub pending: Vec<PendingOperation>,
    /// Empty unless asked for. The turn that runs is the last, without the item that is still growing.
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
    /// A host attaches again, with its copy of the record.
    Rejoin(Option<Vec<journal::JournalEntry>>, Responder<(), ThreadError>),
    ResumeTurn {
        resolved: Vec<ResolvedOperation>,
        texts: Vec<(ItemId, UserText)>,
        responder: Responder<(), ThreadError>,
    },
    /// Of the turn that runs, whichever it is, when none is expected.
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
    /// Answers whether there was one.
    ClearGoal(Responder<bool, ThreadError>),
    /// Work on an active goal goes on, if nothing else is done.
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
    /// Closes a thread in which nothing runs or waits, if the caller still wants that when its turn has come. Answers
    /// whether it was closed.
    CloseIdle(Still, Responder<bool, ThreadError>),
}

/// A command, and the trace that whoever sent it works for.
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

/// Asked in the actor, one after the other with all that is told of the thread.
pub struct Still(pub Box<dyn FnOnce() -> bool + Send>);

impl fmt::Debug for Still {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Still")
    }
}

/// The model's history, and the context of its last request.
pub type Remembered = (Vec<ResponseItem>, Option<Value>);

/// Sends to a thread; clones send to the same one.
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

    /// The actor has ended: closed, or broken by a panic.
    pub fn is_gone(&self) -> bool {
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

    /// Accepted means durable: the input survives the process. While a turn runs the input joins it, and the responder is
    /// the id of the running turn.
    pub async fn start_turn(&self, options: TurnOptions) -> Result<TurnId, ThreadError> {
        self.wait(|responder| self.start_turn_then(options, responder)).await
    }

    pub async fn start_turn_then(&self, options: TurnOptions, responder: Responder<TurnId, ThreadError>) {
        self.send(responder, |responder| ThreadCommand::Start(Box::new(options), responder)).await;
    }

    /// Adds input to the turn the caller believes is running.
    pub async fn steer(&self, expected: TurnId, text: UserText) -> Result<TurnId, ThreadError> {
        if expected.as_str().is_empty() {
            return Err(ThreadError::NoExpectedTurn);
        }
        self.wait(|responder| {
            self.send(responder, |responder| ThreadCommand::Steer { expected, text, responder })
        })
        .await
    }

    /// Answered when the turn has stopped. Refused when none runs, or another than the one that is meant.
    pub async fn interrupt(&self, expected: Option<TurnId>) -> Result<(), ThreadError> {
        self.wait(|responder| self.interrupt_then(expected, responder)).await
    }

    pub async fn interrupt_then(&self, expected: Option<TurnId>, responder: Responder<(), ThreadError>) {
        self.send(responder, |responder| ThreadCommand::Interrupt { expected, responder }).await;
    }

    /// Goes on from the record of a host that attaches again.
    pub async fn rejoin(&self, entries: Option<Vec<journal::JournalEntry>>) -> Result<(), ThreadError> {
        self.wait(|responder| self.send(responder, |responder| ThreadCommand::Rejoin(entries, responder)))
            .await
    }

    /// Resumes the turn that was cut off or suspended, if there is one. Decisions made meanwhile are recorded first.
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

    /// Suspends the running turn; answers with its pending operations.
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

    /// Returns once no turn runs. The turn is suspended when everything in it waits for a client, and after `limit` in any
    /// case.
    pub async fn drain(&self, limit: Duration) {
        // An error means that no turn runs.
        let _ = self.wait(|responder| self.suspend_then(None, true, limit, responder)).await;
        self.idle().await;
    }

    /// Starts a turn that compacts the history. A turn that runs is interrupted for it.
    pub async fn compact(&self, turn_id: TurnId) -> Result<(), ThreadError> {
        self.wait(|responder| self.compact_then(turn_id, responder)).await
    }

    pub async fn compact_then(&self, turn_id: TurnId, responder: Responder<(), ThreadError>) {
        self.send(responder, |responder| ThreadCommand::Compact(turn_id, responder)).await;
    }

    /// Starts a review. A turn that runs is interrupted for it.
    pub async fn review_then(&self, options: ReviewOptions, responder: Responder<(), ThreadError>) {
        self.send(responder, |responder| ThreadCommand::Review(Box::new(options), responder)).await;
    }

    /// Sets or changes the goal. Work on an active one begins at once.
    pub async fn set_goal_then(&self, change: GoalChange, responder: Responder<ThreadGoal, ThreadError>) {
        self.send(responder, |responder| ThreadCommand::SetGoal(Box::new(change), responder)).await;
    }

    pub async fn goal(&self) -> Result<Option<ThreadGoal>, ThreadError> {
        self.wait(|responder| self.send(responder, ThreadCommand::ReadGoal)).await
    }

    pub async fn clear_goal_then(&self, responder: Responder<bool, ThreadError>) {
        self.send(responder, ThreadCommand::ClearGoal).await;
    }

    /// A thread that was resumed goes on with its goal, if that is active.
    pub async fn pursue_goal(&self) {
        // One that is gone has nothing to go on with.
        let _ = self.commands.send(SentCommand::new(ThreadCommand::PursueGoal)).await;
    }

    /// Tokens are counted anew, under the given id.
    pub async fn roll_back(&self, num_turns: u32, turn_id: TurnId) -> Result<(), ThreadError> {
        self.wait(|responder| {
            self.send(responder, |responder| ThreadCommand::Rollback { num_turns, turn_id, responder })
        })
        .await
    }

    /// Runs a command of the user's own: within the running turn, or in one of its own with this id.
    pub async fn shell_then(&self, turn_id: TurnId, command: String, responder: Responder<(), ThreadError>) {
        self.send(responder, |responder| ThreadCommand::Shell { turn_id, command, responder }).await;
    }

    /// Ends every process that tools left running.
    pub async fn clear_terminals(&self) -> Result<(), ThreadError> {
        self.wait(|responder| self.send(responder, ThreadCommand::ClearTerminals)).await
    }

    /// Records a change of what is known about the thread.
    pub async fn note(&self, change: ThreadMetadataChange) -> Result<journal::ThreadRow, ThreadError> {
        self.wait(|responder| {
            self.send(responder, |responder| ThreadCommand::Note(Box::new(change), responder))
        })
        .await
    }

    /// The thread's state, ordered with its notifications: after all earlier ones and before all later ones.
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

    /// A child came to an end. Accepted means that it is in the record.
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

    /// Stops the running turn and lets go of the journal.
    pub async fn close(&self) -> Result<(), ThreadError> {
        self.wait(|responder| self.send(responder, ThreadCommand::Close)).await
    }

    /// Lets go of the journal if nothing runs or waits and `still` agrees. Says whether it did.
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
