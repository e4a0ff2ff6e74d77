//! Follows the notifications of a child agent, to track its status and notify its parent of its end.

use parking_lot::Mutex;
use std::sync::{Arc, Weak};

use delegation::{Agent, ended};
use engine::{ChildEnd, Question, Reply};
use protocol::{
    DynamicToolCallParams, DynamicToolCallResponse, ServerNotification, ThreadId, ThreadItem, ThreadStatus,
    TurnId,
};
use serde_json::json;
use tools::AgentStatus;

use crate::state::RuntimeState;
use driver::{Audience, BoxFuture};

/// Forwards an agent's notifications to its clients, and tracks its status.
#[derive(Debug)]
pub(crate) struct ChildObserver {
    audience: Arc<dyn Audience>,
    agent: Arc<Agent>,
    state: Weak<RuntimeState>,
    last_words: Mutex<Option<String>>,
}

/// Notifications that change a child's status.
enum ChildEvent {
    Began,
    Said(String),
    /// With the turn, if one ended.
    Over(Option<TurnId>, AgentStatus),
}

impl ChildObserver {
    pub(crate) fn new(audience: Arc<dyn Audience>, agent: Arc<Agent>, state: Weak<RuntimeState>) -> Self {
        Self { audience, agent, state, last_words: Mutex::default() }
    }

    fn event_in(&self, told: &ServerNotification) -> Option<ChildEvent> {
        match told {
            ServerNotification::TurnStarted(_) => Some(ChildEvent::Began),
            ServerNotification::ItemCompleted(completed) => match &completed.item {
                ThreadItem::AgentMessage { text, .. } => Some(ChildEvent::Said(text.clone())),
                _ => None,
            },
            ServerNotification::TurnCompleted(completed) => {
                let last_words = self.last_words.lock().take();
                let turn = &completed.turn;
                let status = ended(turn.status, turn.error.as_ref(), last_words);
                Some(ChildEvent::Over(Some(turn.id.clone()), status))
            }
            ServerNotification::ThreadStatusChanged(changed)
                if changed.status == ThreadStatus::SystemError =>
            {
                let failed = AgentStatus::Errored("the agent failed because of a defect".to_owned());
                Some(ChildEvent::Over(None, failed))
            }
            _ => None,
        }
    }

    fn take(&self, news: ChildEvent) {
        match news {
            ChildEvent::Began => {
                *self.last_words.lock() = None;
                self.agent.set(AgentStatus::Running);
            }
            ChildEvent::Said(words) => *self.last_words.lock() = Some(words),
            ChildEvent::Over(turn, status) => {
                if self.agent.end(turn.as_ref(), status.clone()) {
                    notify_parent(&self.state, &self.agent, &status);
                }
            }
        }
    }
}

/// Runs in its own task: a busy parent must not delay the child.
pub(super) fn notify_parent(state: &Weak<RuntimeState>, agent: &Agent, status: &AgentStatus) {
    let Some(state) = state.upgrade() else { return };
    let Some(parent) = state.loaded(&agent.family.parent) else {
        // The parent is notified when it is loaded again.
        return agent.report_later();
    };
    // A parent that was just loaded may have read the end in the child's record.
    let Some(turn_id) = agent.unreported_end() else { return };
    let end = ChildEnd { id: agent.id.clone(), turn_id, status: Some(json!(status)), operation: None };
    tokio::spawn(async move {
        if let Err(error) = parent.handle.child_ended(end).await {
            tracing::warn!(%error, thread = %parent.handle.id(), "a parent could not be notified of its child's end");
        }
    });
}

impl Audience for ChildObserver {
    fn notify<'a>(&'a self, thread: &'a ThreadId, notification: ServerNotification) -> BoxFuture<'a, ()> {
        let Some(news) = self.event_in(&notification) else {
            return self.audience.notify(thread, notification);
        };
        Box::pin(async move {
            // Clients are notified first.
            self.audience.notify(thread, notification).await;
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
