//! The server's own requests: who is asked, who may answer, and what ends a question without an answer.

use std::sync::Arc;

use protocol::{
    DecodeError, ExperimentalGate, RequestId, RequestMethod, ServerNotification,
    ServerRequestResolvedNotification, ThreadId,
};
use rpc::{ErrorObject, Id, OrderGroup, OutgoingMessage};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::oneshot;

use super::connection::{ClientConnection, ConnectionId};
use super::delivery::{ends_with_turn, is_announced};
use super::{Hub, HubState};

/// The clients that are asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AskTarget {
    /// The subscribers of a thread, and whoever joins it while the question is open.
    Thread(ThreadId),
    /// One connection, about a thread or not. Nobody else may answer.
    Connection { connection: ConnectionId, thread: Option<ThreadId> },
    /// Every connection that is initialized.
    Everyone,
}

/// Why there is no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AskError {
    #[error("the client refused: {}", .error.message)]
    Refused { error: ErrorObject, from: ConnectionId },
    #[error("the client's answer cannot be read: {0}")]
    Unreadable(#[from] DecodeError),
    /// The turn that asked is over, or another one began.
    #[error("the question ended with its turn")]
    TurnEnded,
    /// The thread is unloaded, or the only one who could answer is gone.
    #[error("nobody is left to answer")]
    Gone,
}

/// The result, and the connection it came from.
pub(crate) type ClientAnswer = Result<(Box<RawValue>, ConnectionId), AskError>;

#[derive(Debug)]
pub(super) struct PendingQuestion {
    target: AskTarget,
    method: &'static str,
    asked: Vec<ConnectionId>,
    /// For those who join later, if anybody may.
    forms: Option<Forms>,
    answer: oneshot::Sender<ClientAnswer>,
}

/// The params as those may see them who use what is experimental, and as all others may.
#[derive(Debug)]
struct Forms {
    full: Box<RawValue>,
    stable: Box<RawValue>,
    /// For those who use what is experimental and know nothing of hosts, where that is different.
    direct: Option<Box<RawValue>>,
}

impl Forms {
    fn of(mut params: impl ExperimentalGate + Serialize) -> Result<Self, AskError> {
        let full = raw(&params)?;
        params.strip_experimental();
        Ok(Self { full, stable: raw(&params)?, direct: None })
    }

    fn of_host(params: impl ExperimentalGate + Serialize) -> Result<Self, AskError> {
        let forms = Self::of(params)?;
        Ok(Self { direct: without_operation(&forms.full), ..forms })
    }

    fn message(
        &self,
        id: &Id,
        method: &str,
        connection: &ClientConnection,
        group: Option<OrderGroup>,
    ) -> OutgoingMessage {
        let direct = self.direct.as_ref().filter(|_| !connection.knows_hosts());
        let params = match connection.is_experimental() {
            true => direct.unwrap_or(&self.full),
            false => &self.stable,
        };
        // Raw JSON always can be written; a connection skips an empty line.
        let line = rpc::traced_request(id, method, params, &traces::current()).unwrap_or_default();
        OutgoingMessage::Plain { group, line }
    }
}

impl PendingQuestion {
    /// For one client, and nobody who joins later.
    pub(super) fn of_one(
        target: AskTarget,
        method: &'static str,
        asked: ConnectionId,
        answer: oneshot::Sender<ClientAnswer>,
    ) -> Self {
        Self { target, method, asked: vec![asked], forms: None, answer }
    }

    pub(super) fn is_about(&self, thread: &ThreadId) -> bool {
        self.target.thread() == Some(thread)
    }

    /// Whether a host asks, for a task of its own.
    fn is_of_host(&self) -> bool {
        self.forms.as_ref().is_some_and(|forms| forms.direct.is_some())
    }

    /// Whether only this connection could answer.
    pub(super) fn is_for(&self, id: ConnectionId) -> bool {
        matches!(&self.target, AskTarget::Connection { connection, .. } if *connection == id)
    }

    pub(super) fn end(self, answer: ClientAnswer) {
        // The caller may have stopped waiting.
        let _ = self.answer.send(answer);
    }
}

impl AskTarget {
    fn thread(&self) -> Option<&ThreadId> {
        match self {
            Self::Thread(thread) => Some(thread),
            Self::Connection { thread, .. } => thread.as_ref(),
            Self::Everyone => None,
        }
    }
}

/// The effect of a notification on the open questions of its thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TurnEvent {
    /// A turn began, ended, or was put away for the given reason.
    Changed(Option<&'static str>),
    /// The status comes before what it sums up; what was taken back is told after that.
    Status,
    Other,
}

impl TurnEvent {
    pub(super) fn of(notification: &ServerNotification) -> Self {
        match notification {
            ServerNotification::TurnStarted(_) | ServerNotification::TurnCompleted(_) => Self::Changed(None),
            ServerNotification::TurnSuspended(_) => Self::Changed(Some("suspended")),
            ServerNotification::ThreadStatusChanged(_) => Self::Status,
            _ => Self::Other,
        }
    }
}

impl HubState {
    fn targets(&self, target: &AskTarget) -> Vec<Arc<ClientConnection>> {
        match target {
            AskTarget::Thread(thread) => {
                self.subscribers(thread).filter(|connection| connection.may_decide()).cloned().collect()
            }
            AskTarget::Connection { connection, .. } => {
                self.connections.get(connection).into_iter().cloned().collect()
            }
            AskTarget::Everyone => {
                let known = |connection: &&Arc<ClientConnection>| {
                    connection.profile().is_some() && connection.may_work()
                };
                self.connections.values().filter(known).cloned().collect()
            }
        }
    }
}

impl Hub {
    /// Asks, and waits for the first answer of somebody who was asked. With no subscriber a thread's question waits
    /// for one. Dropping the future takes the question back.
    pub fn ask<R: RequestMethod>(
        self: &Arc<Self>,
        target: AskTarget,
        params: R::Params,
    ) -> impl Future<Output = Result<R::Response, AskError>> + Send + 'static {
        let answer = self.ask_in::<R>(target, params, Forms::of);
        async move { Ok(answer.await?.0) }
    }

    /// As `ask`, for a host: clients that know nothing of hosts are asked as an app-server asks. Says whose answer it is.
    pub(crate) fn ask_who<R: RequestMethod>(
        self: &Arc<Self>,
        target: AskTarget,
        params: R::Params,
    ) -> impl Future<Output = Result<(R::Response, ConnectionId), AskError>> + Send + 'static {
        self.ask_in::<R>(target, params, Forms::of_host)
    }

    fn ask_in<R: RequestMethod>(
        self: &Arc<Self>,
        target: AskTarget,
        params: R::Params,
        forms: fn(R::Params) -> Result<Forms, AskError>,
    ) -> impl Future<Output = Result<(R::Response, ConnectionId), AskError>> + Send + 'static {
        let hub = Arc::clone(self);
        async move {
            // Encoded before the lock is taken.
            let (mut open, sent) = hub.open_question::<R>(target, forms(params)?)?;
            for (connection, message) in sent {
                connection.deliver(message).await;
            }
            let answer = open.answered().await;
            open.announce().await;
            let (result, from) = answer?;
            Ok((protocol::decode(result.get())?, from))
        }
    }

    #[allow(clippy::type_complexity, reason = "who is sent what, used once")]
    fn open_question<R: RequestMethod>(
        self: &Arc<Self>,
        target: AskTarget,
        forms: Forms,
    ) -> Result<(OpenQuestion, Vec<(Arc<ClientConnection>, OutgoingMessage)>), AskError> {
        let thread = target.thread().cloned();
        let group = thread.as_ref().map(|thread| self.group(thread));
        let (sender, answer) = oneshot::channel();
        let state = self.state();
        let targets = state.targets(&target);
        if targets.is_empty() && matches!(target, AskTarget::Connection { .. }) {
            return Err(AskError::Gone);
        }
        let mut sent = Vec::new();
        let id = self.questions.insert_with(|id| {
            let message = |connection: Arc<ClientConnection>| {
                let message = forms.message(id, R::METHOD, &connection, group);
                (connection, message)
            };
            let asked = targets.iter().map(|connection| connection.id).collect();
            sent = targets.into_iter().map(message).collect();
            let forms = matches!(target, AskTarget::Thread(_)).then_some(forms);
            PendingQuestion { target, method: R::METHOD, asked, forms, answer: sender }
        });
        drop(state);
        let hub = Arc::clone(self);
        let open = OpenQuestion { hub, id, thread, method: R::METHOD, answer, stage: QuestionStage::Open };
        Ok((open, sent))
    }

    /// Takes an answer. One that is late, for nothing we asked, or from somebody we did not ask, has no effect.
    pub(crate) fn answer(&self, from: ConnectionId, id: &Id, answer: Result<Box<RawValue>, ErrorObject>) {
        if answer.as_ref().is_ok_and(|result| is_deferral(result)) {
            return tracing::debug!(connection = %from, %id, "deferred: the question stays open");
        }
        let found = {
            let state = self.state();
            self.questions.resolve_if(id, |question| match &question.target {
                AskTarget::Thread(thread) => {
                    let connection = state.connections.get(&from);
                    let may_decide = connection.is_some_and(|from| from.may_decide());
                    // Whoever knows hosts says no by a decision. An error of theirs is no word about the operation.
                    let is_failure = answer.is_err()
                        && question.is_of_host()
                        && connection.is_some_and(|connection| connection.knows_hosts());
                    !is_failure
                        && (question.asked.contains(&from)
                            || (may_decide && state.subscriptions.contains(thread, from)))
                }
                AskTarget::Connection { .. } | AskTarget::Everyone => question.asked.contains(&from),
            })
        };
        match found {
            Some(question) => {
                question.end(match answer {
                    Ok(result) => Ok((result, from)),
                    Err(error) => Err(AskError::Refused { error, from }),
                });
            }
            None => tracing::debug!(connection = %from, %id, "an answer to no question is ignored"),
        }
    }

    /// Remembers what subscribers have yet to hear. Without any there is nobody to tell.
    fn withdraw(&self, thread: ThreadId, id: i64) {
        let mut state = self.state();
        if state.subscriptions.of(&thread).next().is_some() {
            state.withdrawn.entry(thread).or_default().push(id);
        }
    }

    /// Questions that are open.
    pub fn open_questions(&self) -> usize {
        self.questions.len()
    }

    /// The open questions of a thread for somebody who joins it, oldest first.
    pub(super) fn questions_of(
        &self,
        thread: &ThreadId,
        connection: &ClientConnection,
    ) -> Vec<OutgoingMessage> {
        if !connection.may_decide() {
            return Vec::new();
        }
        let group = Some(self.group(thread));
        self.questions.filter_map(|id, question| {
            let forms = question.forms.as_ref().filter(|_| question.is_about(thread))?;
            Some(forms.message(id, question.method, connection, group))
        })
    }

    /// Ends what a turn takes with it, and tells subscribers which questions are no longer open.
    pub(super) async fn settle_questions(&self, thread: &ThreadId, event: TurnEvent) {
        let (mut closed, reason) = {
            let mut state = self.state();
            let reason = match event {
                TurnEvent::Status => return,
                TurnEvent::Changed(reason) => reason,
                TurnEvent::Other => None,
            };
            let mut closed = state.withdrawn.remove(thread).unwrap_or_default();
            if matches!(event, TurnEvent::Changed(_)) {
                let ended = self
                    .questions
                    .remove_where(|question| question.is_about(thread) && ends_with_turn(question.method));
                for (id, question) in ended {
                    if let Id::Integer(id) = id
                        && is_announced(question.method)
                    {
                        closed.push(id);
                    }
                    question.end(Err(AskError::TurnEnded));
                }
            }
            (closed, reason)
        };
        closed.sort_unstable();
        for id in closed {
            self.publish(Some(thread), resolved(thread, id, reason)).await;
        }
    }
}

/// Decisions that only those know who know of operations.
const HOST_DECISIONS: &[&str] = &["acceptWithCommandOverride", "acceptWithArguments", "respond"];

/// The question as an app-server asks it that decides by itself.
fn without_operation(params: &RawValue) -> Option<Box<RawValue>> {
    let mut params: Value = serde_json::from_str(params.get()).ok()?;
    let fields = params.as_object_mut()?;
    fields.remove("operationId");
    fields.remove("argumentsDigest");
    if let Some(decisions) = fields.get_mut("availableDecisions").and_then(Value::as_array_mut) {
        let is_host = |decision: &Value| HOST_DECISIONS.iter().any(|name| decision.get(name).is_some());
        decisions.retain(|decision| !is_host(decision) && decision != "defer");
    }
    to_raw_value(&params).ok()
}

/// Not by this client and not now: others may answer, and so may this client later.
fn is_deferral(result: &RawValue) -> bool {
    #[derive(serde::Deserialize)]
    struct DecisionWord<'a> {
        #[serde(borrow)]
        decision: &'a RawValue,
    }
    let text = result.get();
    // Most answers are short; a long one is no deferral and is not read twice.
    text.len() < 64
        && serde_json::from_str::<DecisionWord<'_>>(text)
            .is_ok_and(|answer| answer.decision.get() == r#""defer""#)
}

fn raw(params: &impl Serialize) -> Result<Box<RawValue>, AskError> {
    to_raw_value(params).map_err(|error| {
        tracing::error!(%error, "a question cannot be written as JSON");
        AskError::Gone
    })
}

pub(super) fn resolved(thread: &ThreadId, id: i64, reason: Option<&str>) -> ServerNotification {
    ServerNotification::ServerRequestResolved(ServerRequestResolvedNotification {
        thread_id: thread.clone(),
        request_id: RequestId::Integer(id),
        reason: reason.map(str::to_owned),
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QuestionStage {
    Open,
    /// Answered, and subscribers do not know yet.
    Answered,
    Over,
}

/// A question whose asker waits. Dropped early, the question is taken back.
#[derive(Debug)]
struct OpenQuestion {
    hub: Arc<Hub>,
    id: Id,
    thread: Option<ThreadId>,
    method: &'static str,
    answer: oneshot::Receiver<ClientAnswer>,
    stage: QuestionStage,
}

impl OpenQuestion {
    async fn answered(&mut self) -> ClientAnswer {
        let answer = (&mut self.answer).await.unwrap_or(Err(AskError::Gone));
        self.stage = match &answer {
            Ok(_) | Err(AskError::Refused { .. }) => QuestionStage::Answered,
            // Whoever ended it tells, or has nothing to tell.
            Err(AskError::Unreadable(_) | AskError::TurnEnded | AskError::Gone) => QuestionStage::Over,
        };
        answer
    }

    /// Tells before the asker acts on the answer, so before any event that the answer causes.
    async fn announce(&mut self) {
        if self.stage == QuestionStage::Answered
            && is_announced(self.method)
            && let (Some(thread), Id::Integer(id)) = (&self.thread, &self.id)
        {
            self.hub.publish(Some(thread), resolved(thread, *id, None)).await;
        }
        self.stage = QuestionStage::Over;
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        let is_untold = match self.stage {
            // It may have been answered in the very moment.
            QuestionStage::Open => {
                self.hub.questions.remove(&self.id).is_some()
                    || matches!(self.answer.try_recv(), Ok(Ok(_) | Err(AskError::Refused { .. })))
            }
            QuestionStage::Answered => true,
            QuestionStage::Over => false,
        };
        // Told with the thread's next event: a destructor cannot wait for room in a queue.
        if is_untold
            && is_announced(self.method)
            && let (Some(thread), Id::Integer(id)) = (self.thread.take(), &self.id)
        {
            self.hub.withdraw(thread, *id);
        }
    }
}
