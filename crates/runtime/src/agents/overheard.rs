//! Listening to what a child tells its clients, to know how it stands.

use std::sync::{Arc, Mutex, Weak};

use engine::{ChildEnd, Question, Reply};
use protocol::{
    DynamicToolCallParams, DynamicToolCallResponse, ServerNotification, ThreadId, ThreadItem, ThreadStatus,
    TurnError, TurnId, TurnStatus,
};
use serde_json::json;
use tools::AgentStatus;

use super::Agent;
use crate::audience::{Audience, BoxFuture};
use crate::runtime::{Inner, Runtime, lock};

/// An agent's audience, with one more listener.
#[derive(Debug)]
pub(crate) struct Overheard {
    audience: Arc<dyn Audience>,
    agent: Arc<Agent>,
    runtime: Weak<Inner>,
    last_words: Mutex<Option<String>>,
}

/// What matters to a parent.
enum News {
    Began,
    Said(String),
    /// With the turn, if one ended.
    Over(Option<TurnId>, AgentStatus),
}

impl Overheard {
    pub(crate) fn new(audience: Arc<dyn Audience>, agent: Arc<Agent>, runtime: Weak<Inner>) -> Self {
        Self { audience, agent, runtime, last_words: Mutex::default() }
    }

    fn news(&self, told: &ServerNotification) -> Option<News> {
        match told {
            ServerNotification::TurnStarted(_) => Some(News::Began),
            ServerNotification::ItemCompleted(completed) => match &completed.item {
                ThreadItem::AgentMessage { text, .. } => Some(News::Said(text.clone())),
                _ => None,
            },
            ServerNotification::TurnCompleted(completed) => {
                let last_words = lock(&self.last_words).take();
                let turn = &completed.turn;
                let status = ended(turn.status, turn.error.as_ref(), last_words);
                Some(News::Over(Some(turn.id.clone()), status))
            }
            ServerNotification::ThreadStatusChanged(changed)
                if changed.status == ThreadStatus::SystemError =>
            {
                let failed = AgentStatus::Errored("the agent failed because of a defect".to_owned());
                Some(News::Over(None, failed))
            }
            _ => None,
        }
    }

    fn take(&self, news: News) {
        match news {
            News::Began => {
                *lock(&self.last_words) = None;
                self.agent.set(AgentStatus::Running);
            }
            News::Said(words) => *lock(&self.last_words) = Some(words),
            News::Over(turn, status) => {
                if self.agent.end(turn.as_ref(), status.clone()) {
                    tell_parent(&self.runtime, &self.agent, &status);
                }
            }
        }
    }
}

/// How a turn leaves an agent.
pub(super) fn ended(
    status: TurnStatus,
    error: Option<&TurnError>,
    last_words: Option<String>,
) -> AgentStatus {
    match status {
        TurnStatus::Completed => AgentStatus::Completed(last_words),
        TurnStatus::Failed => {
            let message = error.map(|error| error.message.clone());
            AgentStatus::Errored(message.unwrap_or_else(|| "the turn failed".to_owned()))
        }
        TurnStatus::Interrupted | TurnStatus::InProgress => AgentStatus::Interrupted,
    }
}

/// Beside the child's own work: a parent that is busy holds up nobody.
pub(super) fn tell_parent(runtime: &Weak<Inner>, agent: &Agent, status: &AgentStatus) {
    let Some(inner) = runtime.upgrade() else { return };
    let Some(parent) = Runtime { inner }.loaded(&agent.family.parent) else {
        // It hears of it when it is in memory again.
        return agent.keep_news();
    };
    // One that came back a moment ago may have read it in the child's record.
    let Some(turn_id) = agent.untold_end() else { return };
    let end = ChildEnd { id: agent.id.clone(), turn_id, status: Some(json!(status)), operation: None };
    tokio::spawn(async move {
        if let Err(error) = parent.handle.child_ended(end).await {
            tracing::warn!(%error, thread = %parent.handle.id(), "a parent could not be told of its child");
        }
    });
}

impl Audience for Overheard {
    fn tell<'a>(&'a self, thread: &'a ThreadId, notification: ServerNotification) -> BoxFuture<'a, ()> {
        let Some(news) = self.news(&notification) else { return self.audience.tell(thread, notification) };
        Box::pin(async move {
            // Clients hear of it first.
            self.audience.tell(thread, notification).await;
            self.take(news);
        })
    }

    fn call_tool(
        &self,
        params: DynamicToolCallParams,
    ) -> BoxFuture<'static, Result<DynamicToolCallResponse, String>> {
        self.audience.call_tool(params)
    }

    fn ask(&self, question: Question) -> BoxFuture<'static, Result<Reply, String>> {
        self.audience.ask(question)
    }

    fn appeared(&self, thread: &ThreadId) {
        self.audience.appeared(thread);
    }

    fn left(&self, thread: &ThreadId) {
        self.audience.left(thread);
    }
}
