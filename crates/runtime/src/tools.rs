//! Who runs built-in tools, and the way from a running tool back to its thread.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use engine::{Input, Proposal, Step, ToolCall, ToolOutcome, Verdict};
use protocol::{GrantedPermissionProfile, ServerNotification, ThreadId, ThreadItem, TurnId};
use tokio::sync::{mpsc, oneshot};
use tools::{Bench, CallScope};

use crate::audience::BoxFuture;
use crate::runtime::lock;

/// One call to be run, in the step it was made in.
#[derive(Debug)]
pub struct ToolJob {
    pub call: ToolCall,
    pub step: Arc<Step>,
    pub grants: GrantedPermissionProfile,
    pub bench: Arc<Bench>,
    pub progress: Progress,
    /// How long what it begins may go on.
    pub scope: CallScope,
}

/// Where a running tool says what clients should see of it, and what it wants to do.
#[derive(Debug, Clone)]
pub struct Progress {
    pub(crate) thread_id: ThreadId,
    pub(crate) turn_id: TurnId,
    pub(crate) call_id: String,
    pub(crate) inputs: mpsc::Sender<Input>,
    pub(crate) verdicts: Verdicts,
}

/// The proposals that wait for a verdict.
#[derive(Debug, Clone, Default)]
pub(crate) struct Verdicts(Arc<Mutex<Waiting>>);

/// By call and number.
type Waiting = HashMap<(String, u32), oneshot::Sender<Verdict>>;

impl Verdicts {
    fn wait(&self, call_id: &str, number: u32) -> oneshot::Receiver<Verdict> {
        let (told, wait) = oneshot::channel();
        lock(&self.0).insert((call_id.to_owned(), number), told);
        wait
    }

    /// A tool that was cancelled no longer listens.
    pub(crate) fn give(&self, call_id: String, number: u32, verdict: Verdict) {
        if let Some(told) = lock(&self.0).remove(&(call_id, number)) {
            let _ = told.send(verdict);
        }
    }

    pub(crate) fn forget(&self, call_id: &str) {
        lock(&self.0).retain(|(waiting, _), _| waiting != call_id);
    }
}

impl Progress {
    pub fn thread_id(&self) -> &ThreadId {
        &self.thread_id
    }

    pub fn turn_id(&self) -> &TurnId {
        &self.turn_id
    }

    async fn send(&self, input: Input) {
        // A thread that is gone hears nothing.
        let _ = self.inputs.send(input).await;
    }
}

impl tools::Sink for Progress {
    fn tell(&self, notification: ServerNotification) -> BoxFuture<'_, ()> {
        let call_id = self.call_id.clone();
        Box::pin(self.send(Input::ToolProgress { call_id, notification: Box::new(notification) }))
    }

    fn propose(&self, proposal: Proposal) -> BoxFuture<'_, Verdict> {
        let wait = self.verdicts.wait(&self.call_id, proposal.number);
        let (turn_id, call_id) = (self.turn_id.clone(), self.call_id.clone());
        Box::pin(async move {
            self.send(Input::Proposed { turn_id, call_id, proposal: Box::new(proposal) }).await;
            wait.await.unwrap_or(Verdict::Declined)
        })
    }

    fn tell_later(&self, notification: ServerNotification) -> BoxFuture<'_, ()> {
        Box::pin(self.send(Input::Told(Box::new(notification))))
    }

    fn end_item(&self, item: ThreadItem) -> BoxFuture<'_, ()> {
        let turn_id = self.turn_id.clone();
        Box::pin(self.send(Input::ItemEnded { turn_id, item: Box::new(item) }))
    }
}

/// Runs calls. Dropping the future stops the tool.
pub trait ToolRunner: fmt::Debug + Send + Sync {
    fn run(&self, job: ToolJob) -> BoxFuture<'static, ToolOutcome>;
}
