//! What a tool is, and what it gets to know of its call.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use engine::{Step, ToolOutcome};
use protocol::{FunctionCallOutputBody, ServerNotification, ThreadId, TurnId};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::ToolError;

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A built-in tool. Its parameters are derived from `Args`, whose doc comments are what the model reads.
pub trait Tool: fmt::Debug + Send + Sync + 'static {
    const NAME: &'static str;
    /// For the model: what it does.
    const ABOUT: &'static str;
    /// For the model's instructions: when and how to use it. There exactly when the tool is offered.
    const PROMPT: Option<&'static str> = None;
    type Args: DeserializeOwned + JsonSchema + Send;

    /// Dropping the future stops the tool.
    fn call(
        &self,
        args: Self::Args,
        cx: &ToolCx,
    ) -> impl Future<Output = Result<ToolOutcome, ToolError>> + Send;
}

/// What a call belongs to.
#[derive(Debug, Clone)]
pub struct Caller {
    pub thread_id: ThreadId,
    pub turn_id: TurnId,
    pub sink: Arc<dyn Sink>,
}

/// Where a running tool says what clients should see of it.
pub trait Sink: fmt::Debug + Send + Sync {
    /// Waits when clients are slow.
    fn tell(&self, notification: ServerNotification) -> BoxFuture<'_, ()>;
}

/// One call: the step it was made in, and whom it is for.
#[derive(Debug)]
pub struct ToolCx {
    step: Arc<Step>,
    call_id: String,
    caller: Caller,
}

impl ToolCx {
    pub(crate) fn new(step: Arc<Step>, call_id: String, caller: Caller) -> Self {
        Self { step, call_id, caller }
    }

    /// What the model saw when it made the call.
    pub fn step(&self) -> &Step {
        &self.step
    }

    pub fn call_id(&self) -> &str {
        &self.call_id
    }

    pub fn thread_id(&self) -> &ThreadId {
        &self.caller.thread_id
    }

    pub fn turn_id(&self) -> &TurnId {
        &self.caller.turn_id
    }

    pub async fn tell(&self, notification: ServerNotification) {
        self.caller.sink.tell(notification).await;
    }
}

/// A result that is one text and no item.
pub(crate) fn text(text: impl Into<String>) -> ToolOutcome {
    ToolOutcome { output: FunctionCallOutputBody::Text(text.into()), item: None }
}
