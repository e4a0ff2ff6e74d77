//! One turn, read as it happens or waited for.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use runtime::protocol::{
    ItemId, ServerNotification, ThreadItem, ThreadStatus, ThreadTokenUsage, Turn, TurnError, TurnId,
    TurnStatus,
};
use tokio::sync::mpsc;

use crate::error::ManagerError;
use crate::event::ThreadEvent;
use crate::input::TurnInput;
use crate::switchboard::TurnMessage;
use crate::thread::ManagedThread;

/// The events of a turn that runs, in order and without gaps.
///
/// The stream is bounded. While it is full the turn waits for its reader, so keep reading, or drop it: the turn goes on
/// unobserved, and what it asks is declined. Whatever else is asked of the thread waits as well, so the task that reads
/// uses the methods here, which do not, and those of [`ManagedThread`] between turns.
///
/// It is a [`Stream`] for whoever has combinators at hand.
#[derive(Debug)]
#[must_use = "a turn whose stream is dropped goes on, and what it asks is declined"]
pub struct TurnStream {
    thread: ManagedThread,
    inbox: mpsc::Receiver<TurnMessage>,
    /// Messages that arrived while something else was waited for.
    backlog: VecDeque<TurnMessage>,
    /// Items that began and have not ended.
    open: HashMap<ItemId, ThreadItem>,
    known: FinishedTurn,
    ending: Option<EventsEnd>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EventsEnd {
    Told,
    CutOff,
}

/// The outcome of a turn.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FinishedTurn {
    /// The turn.
    pub turn_id: TurnId,
    /// Completed or interrupted; failed only within [`ManagerError::TurnFailed`].
    pub status: TurnStatus,
    /// The agent's last message.
    pub message: Option<String>,
    /// Every item that ended, in that order, the user's own message included.
    pub items: Vec<ThreadItem>,
    /// The tokens the thread has used so far, where the provider counts.
    pub usage: Option<ThreadTokenUsage>,
    /// Why the turn failed, where it did.
    pub error: Option<TurnError>,
}

impl TurnStream {
    pub(crate) fn new(thread: ManagedThread, turn_id: TurnId, inbox: mpsc::Receiver<TurnMessage>) -> Self {
        let known = FinishedTurn {
            turn_id,
            status: TurnStatus::InProgress,
            message: None,
            items: Vec::new(),
            usage: None,
            error: None,
        };
        Self { thread, inbox, backlog: VecDeque::new(), open: HashMap::new(), known, ending: None }
    }

    /// The turn's id, as records have it.
    pub fn id(&self) -> &TurnId {
        &self.known.turn_id
    }

    /// The thread that the turn belongs to.
    pub fn thread(&self) -> &ManagedThread {
        &self.thread
    }

    /// The next event, or `None` when the turn is over. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<ThreadEvent> {
        poll_fn(|context| self.poll_event(context)).await
    }

    /// Reads to the end and says what came of the turn. What the turn still asks is declined.
    ///
    /// A turn that failed is an error, [`ManagerError::TurnFailed`]; one that was interrupted is not.
    pub async fn finish(mut self) -> Result<FinishedTurn, ManagerError> {
        while let Some(event) = self.next().await {
            drop(event);
        }
        match (self.ending, self.known.status) {
            (Some(EventsEnd::Told), TurnStatus::Failed) => {
                Err(ManagerError::TurnFailed(Box::new(self.known)))
            }
            (Some(EventsEnd::Told), _) => Ok(self.known),
            _ => Err(ManagerError::CutOff { thread: self.thread.id().clone(), turn: self.known.turn_id }),
        }
    }

    /// Adds to what the user said. The model gets it after its current response; accepted means recorded.
    pub async fn steer(&mut self, input: impl Into<TurnInput>) -> Result<(), ManagerError> {
        let (thread, turn) = (self.thread.clone(), self.known.turn_id.clone());
        let mut steering = pin!(thread.steer_turn(turn, input.into()));
        let mut is_open = true;
        loop {
            tokio::select! {
                biased;
                steered = &mut steering => return steered,
                // The thread may wait for room in this very stream before it hears of the steering.
                message = self.inbox.recv(), if is_open => match message {
                    Some(message) => self.backlog.push_back(message),
                    None => is_open = false,
                },
            }
        }
    }

    /// Asks the turn to stop, and does not wait for it: the stream tells the rest and ends. Has no effect on a turn
    /// that is over.
    pub async fn interrupt(&self) {
        self.thread.interrupt_turn(self.known.turn_id.clone()).await;
    }

    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Option<ThreadEvent>> {
        if self.ending.is_some() {
            return Poll::Ready(None);
        }
        let message = match self.backlog.pop_front() {
            Some(message) => Some(message),
            None => ready!(self.inbox.poll_recv(context)),
        };
        Poll::Ready(match message {
            Some(TurnMessage::Event(mut event)) => {
                self.learn(&mut event);
                Some(event)
            }
            Some(TurnMessage::Ended(Turn { status, error, .. })) => {
                (self.known.status, self.known.error) = (status, error);
                self.ending = Some(EventsEnd::Told);
                None
            }
            None => {
                self.ending = Some(EventsEnd::CutOff);
                None
            }
        })
    }

    fn learn(&mut self, event: &mut ThreadEvent) {
        match event {
            ThreadEvent::ItemStarted(item) => {
                self.open.insert(item.id().clone(), item.clone());
            }
            ThreadEvent::ItemCompleted(item) => {
                self.open.remove(item.id());
                if let ThreadItem::AgentMessage { text, .. } = item {
                    self.known.message = Some(text.clone());
                }
                self.known.items.push(item.clone());
            }
            ThreadEvent::Approval(request) => {
                if let Some(item) = self.open.get(request.item_id()) {
                    request.show(item.clone());
                }
            }
            ThreadEvent::Usage(usage) => self.known.usage = Some(usage.clone()),
            // A thread that broke says nothing more.
            ThreadEvent::Other(told) if is_broken(told) && !self.thread.is_open() => {
                self.ending = Some(EventsEnd::CutOff);
            }
            _ => {}
        }
    }
}

fn is_broken(told: &ServerNotification) -> bool {
    matches!(told, ServerNotification::ThreadStatusChanged(told) if told.status == ThreadStatus::SystemError)
}

impl Stream for TurnStream {
    type Item = ThreadEvent;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<ThreadEvent>> {
        self.poll_event(context)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tempfile::TempDir;

    use super::TurnStream;
    use crate::{ManagerError, ThreadManager, ThreadOptions};

    /// A turn whose stream is full, so that its thread waits for a reader.
    async fn full() -> (TempDir, ThreadManager, TurnStream) {
        let home = tempfile::tempdir().expect("a folder");
        let builder = ThreadManager::builder().home(home.path()).provider("offline");
        let manager = builder.build().expect("a manager");
        let thread = manager.start_thread(ThreadOptions::default()).await.expect("a thread");
        let turn = thread.submit(format!("say {}", "word ".repeat(1_500))).await.expect("a turn");
        while turn.inbox.capacity() > 0 {
            tokio::task::yield_now().await;
        }
        (home, manager, turn)
    }

    async fn soon<T>(work: impl Future<Output = T>) -> T {
        tokio::time::timeout(Duration::from_secs(4), work).await.expect("no deadlock")
    }

    #[tokio::test]
    async fn steering_does_not_wait_for_its_own_stream() {
        let (_home, _manager, mut turn) = full().await;
        soon(turn.steer("say steered")).await.expect("it runs");
        let mut deltas = 0;
        while let Some(event) = turn.next().await {
            deltas += usize::from(event.message_delta().is_some());
        }
        assert!(deltas > 256, "{deltas} would all have fitted");
        let finished = turn.finish().await.expect("a good end");
        assert!(finished.message.is_some_and(|text| text.contains("steered")));
    }

    #[tokio::test]
    async fn interrupting_does_not_wait_for_its_own_stream() {
        let (_home, _manager, turn) = full().await;
        soon(turn.interrupt()).await;
        let finished = soon(turn.finish()).await.expect("no failure");
        assert_eq!(finished.status, super::TurnStatus::Interrupted);
    }

    #[tokio::test]
    async fn a_stream_that_lost_its_end_says_so() {
        let (_home, manager, turn) = full().await;
        soon(manager.shut_down()).await;
        let error = soon(turn.finish()).await.expect_err("there is a gap");
        assert!(matches!(error, ManagerError::CutOff { .. }), "{error}");
        assert!(error.to_string().contains("resume_thread"), "{error}");
    }
}
