//! The trait that runs tools, and the channel from a running tool back to its thread.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use engine::{Input, Proposal, ProposalDecision, Step, ToolCall, ToolOutcome};
use protocol::{
    FunctionCallOutputBody, GrantedPermissionProfile, ServerNotification, ThreadId, ThreadItem, TurnId,
};
use tokio::sync::{mpsc, oneshot};
use tools::{Bench, CallScope};

use crate::audience::BoxFuture;

/// A call to run, with the step it was made in.
#[derive(Debug)]
pub struct ToolJob {
    pub call: ToolCall,
    pub step: Arc<Step>,
    pub grants: GrantedPermissionProfile,
    pub bench: Arc<Bench>,
    pub progress: Progress,
    /// The lifetime of what it starts.
    pub scope: CallScope,
}

/// Sends a tool's notifications and proposals.
#[derive(Debug, Clone)]
pub struct Progress {
    pub(crate) thread_id: ThreadId,
    pub(crate) turn_id: TurnId,
    pub(crate) call_id: String,
    pub(crate) inputs: mpsc::Sender<Input>,
    pub(crate) proposals: WaitingProposals,
    pub(crate) nested: NestedAnswers,
}

/// Tools that wait for the outputs of nested calls, by the ids of those calls.
#[derive(Debug, Clone, Default)]
pub(crate) struct NestedAnswers(Arc<Mutex<HashMap<String, oneshot::Sender<FunctionCallOutputBody>>>>);

impl NestedAnswers {
    pub(crate) fn give(&self, call_id: &str, output: FunctionCallOutputBody) {
        if let Some(told) = self.0.lock().remove(call_id) {
            let _ = told.send(output);
        }
    }
}

/// Removes a call from the list when its tool no longer waits.
struct NestedWait<'a>(&'a NestedAnswers, String);

impl Drop for NestedWait<'_> {
    fn drop(&mut self) {
        self.0.0.lock().remove(&self.1);
    }
}

/// The proposals that wait for a decision.
#[derive(Debug, Clone, Default)]
pub(crate) struct WaitingProposals(Arc<Mutex<WaitingDecisions>>);

/// By call id and proposal number.
type WaitingDecisions = HashMap<(String, u32), oneshot::Sender<ProposalDecision>>;

impl WaitingProposals {
    fn wait(&self, call_id: &str, number: u32) -> oneshot::Receiver<ProposalDecision> {
        let (told, wait) = oneshot::channel();
        self.0.lock().insert((call_id.to_owned(), number), told);
        wait
    }

    /// A cancelled tool does not receive it.
    pub(crate) fn give(&self, call_id: String, number: u32, decision: ProposalDecision) {
        if let Some(told) = self.0.lock().remove(&(call_id, number)) {
            let _ = told.send(decision);
        }
    }

    pub(crate) fn forget(&self, call_id: &str) {
        self.0.lock().retain(|(waiting, _), _| waiting != call_id);
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
        // A closed thread receives nothing.
        let _ = self.inputs.send(input).await;
    }
}

impl tools::Sink for Progress {
    fn notify(&self, notification: ServerNotification) -> BoxFuture<'_, ()> {
        let call_id = self.call_id.clone();
        Box::pin(self.send(Input::ToolProgress { call_id, notification: Box::new(notification) }))
    }

    fn propose(&self, proposal: Proposal) -> BoxFuture<'_, ProposalDecision> {
        let wait = self.proposals.wait(&self.call_id, proposal.number);
        let (turn_id, call_id) = (self.turn_id.clone(), self.call_id.clone());
        Box::pin(async move {
            self.send(Input::Proposed { turn_id, call_id, proposal: Box::new(proposal) }).await;
            wait.await.unwrap_or(ProposalDecision::declined())
        })
    }

    fn call_tool(&self, call: ToolCall, began_in: Arc<Step>) -> BoxFuture<'_, FunctionCallOutputBody> {
        let (told, wait) = oneshot::channel();
        self.nested.0.lock().insert(call.call_id.clone(), told);
        let until_answered = NestedWait(&self.nested, call.call_id.clone());
        let (turn_id, parent) = (self.turn_id.clone(), self.call_id.clone());
        Box::pin(async move {
            self.send(Input::NestedCall { turn_id, parent, call, began_in }).await;
            let output = wait.await;
            drop(until_answered);
            output.unwrap_or_else(|_| FunctionCallOutputBody::Text("the thread is being closed".to_owned()))
        })
    }

    fn notify_later(&self, notification: ServerNotification) -> BoxFuture<'_, ()> {
        Box::pin(self.send(Input::ItemNotification(Box::new(notification))))
    }

    fn end_item(&self, item: ThreadItem) -> BoxFuture<'_, ()> {
        let turn_id = self.turn_id.clone();
        Box::pin(self.send(Input::ItemEnded { turn_id, item: Box::new(item) }))
    }
}

/// Runs calls. Dropping the future stops the tool.
pub trait ToolRunner: Send + Sync {
    fn run(&self, job: ToolJob) -> BoxFuture<'static, ToolOutcome>;
}

/// Prints only the name: printing the fields would add the `Debug` code of all their types to the program.
impl fmt::Debug for dyn ToolRunner + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ToolRunner")
    }
}
