//! Which stream hears what: the running turn of a thread has one line, and all that the thread says goes down it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};
use runtime::protocol::{
    self, CommandExecutionApprovalDecision, DynamicToolCallParams, DynamicToolCallResponse,
    FileChangeApprovalDecision, McpServerElicitationAction, McpServerElicitationRequestResponse,
    ServerNotification, ThreadId, ToolApprovalDecision, TurnId,
};
use runtime::{Audience, BoxFuture, Question, Reply};
use tokio::sync::{mpsc, oneshot, watch};

use crate::error::ManagerError;
use crate::event::ThreadEvent;
use crate::request::{
    ApprovalRequest, Decision, PermissionRequest, Subject, ToolCallRequest, UserQuestion, no_answers,
    nothing_granted,
};

/// How many events may wait to be read; after that the thread waits.
const WAITING: usize = 256;

/// A message to the stream of a turn.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "almost all are events")]
pub(crate) enum TurnMessage {
    Event(ThreadEvent),
    /// The last one.
    Ended(protocol::Turn),
}

/// The audience of all threads of one manager.
#[derive(Debug, Default)]
pub(crate) struct Switchboard {
    lines: Mutex<HashMap<ThreadId, TurnLine>>,
    made: AtomicU64,
}

/// Exists while a turn runs, whether or not somebody reads.
#[derive(Debug)]
struct TurnLine {
    /// Tells it from an earlier line of the same thread.
    number: u64,
    /// Unset until the turn is accepted.
    turn: Option<TurnId>,
    /// Unset once an event could not be delivered: a stream has no gaps.
    outlet: Option<TurnOutlet>,
}

#[derive(Debug, Clone)]
struct TurnOutlet {
    sender: mpsc::Sender<TurnMessage>,
    /// Set when the thread is about to be closed: from then on nobody waits for a reader.
    closing: Arc<watch::Sender<bool>>,
}

impl TurnOutlet {
    /// Waits for room. None when the stream is gone, or is full and the thread must not wait for it.
    async fn room(&self) -> Option<mpsc::Permit<'_, TurnMessage>> {
        let mut closing = self.closing.subscribe();
        tokio::select! {
            biased;
            room = self.sender.reserve() => room.ok(),
            _ = closing.wait_for(|closing| *closing) => None,
        }
    }

    async fn send(self, event: ThreadEvent) {
        if let Some(room) = self.room().await {
            room.send(TurnMessage::Event(event));
        }
    }
}

/// A line whose turn is not accepted yet. Dropped, it is as if it had never been.
#[derive(Debug)]
pub(crate) struct LineReservation {
    board: Arc<Switchboard>,
    thread: ThreadId,
    number: u64,
    is_kept: bool,
}

impl LineReservation {
    /// To be called before anything of the turn is told.
    pub(crate) fn keep(mut self, turn: &TurnId) {
        self.is_kept = true;
        let mut lines = self.board.lines();
        if let Some(line) = lines.get_mut(&self.thread).filter(|line| line.number == self.number) {
            line.turn = Some(turn.clone());
        }
    }
}

impl Drop for LineReservation {
    fn drop(&mut self) {
        if !self.is_kept {
            self.board.remove(&self.thread, self.number);
        }
    }
}

impl Switchboard {
    fn lines(&self) -> MutexGuard<'_, HashMap<ThreadId, TurnLine>> {
        self.lines.lock()
    }

    /// A line for a turn that is about to begin. Refused while another one runs.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        thread: &ThreadId,
    ) -> Result<(LineReservation, mpsc::Receiver<TurnMessage>), ManagerError> {
        let mut lines = self.lines();
        if lines.contains_key(thread) {
            return Err(ManagerError::TurnRunning(thread.clone()));
        }
        let (sender, inbox) = mpsc::channel(WAITING);
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let outlet = TurnOutlet { sender, closing: Arc::new(watch::Sender::new(false)) };
        lines.insert(thread.clone(), TurnLine { number, turn: None, outlet: Some(outlet) });
        let board = Arc::clone(self);
        Ok((LineReservation { board, thread: thread.clone(), number, is_kept: false }, inbox))
    }

    /// From now on the thread waits for no reader.
    pub(crate) fn release(&self, thread: &ThreadId) {
        if let Some(TurnLine { outlet: Some(outlet), .. }) = self.lines().get(thread) {
            outlet.closing.send_replace(true);
        }
    }

    pub(crate) fn release_all(&self) {
        for outlet in self.lines().values().filter_map(|line| line.outlet.as_ref()) {
            outlet.closing.send_replace(true);
        }
    }

    /// The thread is closed: whoever still reads comes to an end.
    pub(crate) fn forget(&self, thread: &ThreadId) {
        self.release(thread);
        self.lines().remove(thread);
    }

    pub(crate) fn forget_all(&self) {
        self.release_all();
        self.lines().clear();
    }

    fn remove(&self, thread: &ThreadId, number: u64) {
        let mut lines = self.lines();
        if lines.get(thread).is_some_and(|line| line.number == number) {
            lines.remove(thread);
        }
    }

    /// Ends the stream: after an event that could not be delivered, it would have a gap.
    fn mute(&self, thread: &ThreadId, number: u64) {
        if let Some(line) = self.lines().get_mut(thread).filter(|line| line.number == number) {
            line.outlet = None;
        }
    }

    async fn pass_on(&self, thread: &ThreadId, told: ServerNotification) {
        let Some((number, turn, outlet)) =
            self.lines().get(thread).map(|line| (line.number, line.turn.clone(), line.outlet.clone()))
        else {
            return;
        };
        let ended = match told {
            ServerNotification::TurnCompleted(done) if turn.as_ref() == Some(&done.turn.id) => done.turn,
            told => {
                let Some(outlet) = outlet else { return };
                match outlet.room().await {
                    Some(room) => room.send(TurnMessage::Event(ThreadEvent::of(told, turn.as_ref()))),
                    None => self.mute(thread, number),
                }
                return;
            }
        };
        let room = match &outlet {
            Some(outlet) => outlet.room().await,
            None => None,
        };
        // First of all the line is free: whoever reads of the end may begin the next turn.
        self.remove(thread, number);
        if let Some(room) = room {
            room.send(TurnMessage::Ended(ended));
        }
    }

    /// Without an answer it is declined.
    fn approval(&self, thread: &ThreadId, subject: Subject) -> BoxFuture<'static, Decision> {
        let (request, answer) = ApprovalRequest::new(subject);
        let answer = self.put(thread, ThreadEvent::Approval(request), answer);
        Box::pin(async move { answer.await.unwrap_or(Decision::Decline) })
    }

    /// Hands on what wants an answer. None when it was dropped, or nobody is there.
    fn put<T: Send + 'static>(
        &self,
        thread: &ThreadId,
        event: ThreadEvent,
        answer: oneshot::Receiver<T>,
    ) -> BoxFuture<'static, Option<T>> {
        let outlet = self.lines().get(thread).and_then(|line| line.outlet.clone());
        Box::pin(async move {
            outlet?.send(event).await;
            answer.await.ok()
        })
    }
}

/// The word that each kind of question has for a decision.
macro_rules! word {
    ($decision:expr, $words:ident) => {
        match $decision.await {
            Decision::Accept => $words::Accept,
            Decision::AcceptForSession => $words::AcceptForSession,
            Decision::Decline => $words::Decline,
            Decision::Cancel => $words::Cancel,
        }
    };
}

impl Audience for Switchboard {
    fn notify<'a>(&'a self, thread: &'a ThreadId, told: ServerNotification) -> BoxFuture<'a, ()> {
        Box::pin(self.pass_on(thread, told))
    }

    fn call_tool(
        &self,
        asked: DynamicToolCallParams,
    ) -> BoxFuture<'static, Result<DynamicToolCallResponse, String>> {
        let (thread, problem) = (asked.thread_id.clone(), format!("nobody ran the tool `{}`", asked.tool));
        let (call, answer) = ToolCallRequest::new(asked);
        let answer = self.put(&thread, ThreadEvent::ToolCall(call), answer);
        Box::pin(async move { answer.await.ok_or(problem) })
    }

    fn ask(&self, question: Question) -> BoxFuture<'static, Result<Reply, String>> {
        match question {
            Question::Command(asked) => {
                let (thread, subject) = (asked.thread_id.clone(), Subject::Command(asked));
                let decision = self.approval(&thread, subject);
                Box::pin(async move {
                    Ok(Reply::Command(word!(decision, CommandExecutionApprovalDecision).into()))
                })
            }
            Question::FileChange(asked) => {
                let (thread, subject) = (asked.thread_id.clone(), Subject::FileChange(asked));
                let decision = self.approval(&thread, subject);
                Box::pin(
                    async move { Ok(Reply::FileChange(word!(decision, FileChangeApprovalDecision).into())) },
                )
            }
            Question::Tool(asked) => {
                let (thread, subject) = (asked.thread_id.clone(), Subject::Tool(asked));
                let decision = self.approval(&thread, subject);
                Box::pin(async move { Ok(Reply::Tool(word!(decision, ToolApprovalDecision).into())) })
            }
            Question::Permissions(asked) => {
                let thread = asked.thread_id.clone();
                let (request, answer) = PermissionRequest::new(asked);
                let answer = self.put(&thread, ThreadEvent::Permissions(request), answer);
                Box::pin(async move { Ok(Reply::Permissions(answer.await.unwrap_or_else(nothing_granted))) })
            }
            Question::UserInput(asked) => {
                let thread = asked.thread_id.clone();
                let (question, answer) = UserQuestion::new(asked);
                let answer = self.put(&thread, ThreadEvent::Question(question), answer);
                Box::pin(async move { Ok(Reply::UserInput(answer.await.unwrap_or_else(no_answers))) })
            }
            // Programs get no event for the question of an MCP server yet, so nobody can accept it.
            Question::Elicitation(_) => {
                let action = McpServerElicitationAction::Decline;
                let response =
                    McpServerElicitationRequestResponse { action, content: None, meta: None, origin: None };
                Box::pin(std::future::ready(Ok(Reply::Elicitation(response))))
            }
            Question::DynamicTool(asked) => {
                Box::pin(std::future::ready(Err(format!("`{}` is called, not asked about", asked.tool))))
            }
        }
    }
}

#[cfg(test)]
#[path = "switchboard_tests.rs"]
mod tests;
