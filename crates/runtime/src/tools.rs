//! Who runs built-in tools.

use std::fmt;
use std::sync::Arc;

use engine::{Step, ToolCall, ToolOutcome};
use protocol::{ServerNotification, ThreadId, TurnId};
use tokio::sync::mpsc;

use crate::audience::BoxFuture;

/// Where a running tool says what clients should see of it.
#[derive(Debug, Clone)]
pub struct Progress {
    pub(crate) thread_id: ThreadId,
    pub(crate) turn_id: TurnId,
    pub(crate) call_id: String,
    pub(crate) inputs: mpsc::Sender<engine::Input>,
}

impl Progress {
    pub fn thread_id(&self) -> &ThreadId {
        &self.thread_id
    }

    pub fn turn_id(&self) -> &TurnId {
        &self.turn_id
    }

    /// Waits when clients are slow. Nothing is said any more once the turn is over.
    pub async fn tell(&self, notification: ServerNotification) {
        let call_id = self.call_id.clone();
        let _ = self
            .inputs
            .send(engine::Input::ToolProgress { call_id, notification: Box::new(notification) })
            .await;
    }
}

impl tools::Sink for Progress {
    fn tell(&self, notification: ServerNotification) -> BoxFuture<'_, ()> {
        Box::pin(Progress::tell(self, notification))
    }
}

/// Runs calls in the step they were made in. Dropping the future stops the tool.
pub trait ToolRunner: fmt::Debug + Send + Sync {
    fn run(&self, call: ToolCall, step: Arc<Step>, progress: Progress) -> BoxFuture<'static, ToolOutcome>;
}
