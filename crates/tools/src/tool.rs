//! The interface of a tool, and the context of a call.

use std::fmt;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;

use engine::{Proposal, ProposalDecision, Step, ToolCall, ToolKind, ToolOutcome, ToolPayload, ToolSpec};
use protocol::{
    FunctionCallOutputBody, GrantedPermissionProfile, ServerNotification, ThreadId, ThreadItem, TurnId,
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::bench::Bench;
use crate::call_scope::CallScope;
use crate::offer::{Offer, Standing};
use crate::remote::Elsewhere;
use crate::schema::function_json;
use crate::{ToolError, schema};

pub use futures_util::future::BoxFuture;

/// A built-in tool. Its parameters are derived from `Args`, whose doc comments the model reads.
pub trait BuiltinTool: fmt::Debug + Send + Sync + 'static {
    const NAME: &'static str;
    /// Unadvertised aliases.
    const ALIASES: &'static [&'static str] = &[];
    /// The tool's description for the model.
    const ABOUT: &'static str;
    /// The section in the model's instructions: when and how to use the tool. Present exactly if the tool is offered.
    const PROMPT: Option<&'static str> = None;
    /// May run in parallel with other such calls.
    const PARALLEL: bool = false;
    const KIND: ToolKind = ToolKind::Builtin;
    /// Needs an attached environment: without one it is neither offered nor run.
    const NEEDS_PLACE: bool = false;
    /// Its calls can ask a client themselves.
    const ASKS: bool = false;
    type Args: DeserializeOwned + JsonSchema + Send;

    /// Whether it is available, given configuration, features and model.
    fn standing(_offer: &Offer) -> Standing {
        Standing::Offered
    }

    /// The entry of the request's tool list.
    fn spec(_offer: &Offer) -> Value {
        function_json::<Self::Args>(Self::NAME, Self::ABOUT)
    }

    /// Parses the model's input. Only tools that take free text override this.
    fn parse(payload: ToolPayload) -> Result<Self::Args, ToolError> {
        schema::parse_function(Self::NAME, payload)
    }

    /// Dropping the future stops the tool.
    fn call(
        &self,
        args: Self::Args,
        cx: &ToolCx,
    ) -> impl Future<Output = Result<ToolOutcome, ToolError>> + Send;
}

/// The thread and turn of a call, and the channel back to them.
#[derive(Debug, Clone)]
pub struct Caller {
    pub thread_id: ThreadId,
    pub turn_id: TurnId,
    pub sink: Arc<dyn Sink>,
    /// State that the thread's tools share.
    pub bench: Arc<Bench>,
    /// Permissions that clients granted beyond the sandbox policy.
    pub grants: GrantedPermissionProfile,
    /// The lifetime of what it starts.
    pub scope: CallScope,
}

/// The channel from a tool to its thread.
pub trait Sink: Send + Sync {
    /// Sends a notification about this call. Waits for slow clients. No effect after the call's end.
    fn notify(&self, notification: ServerNotification) -> BoxFuture<'_, ()>;

    /// Requests a decision. Nothing of the proposal may happen before it is approved.
    fn propose(&self, proposal: Proposal) -> BoxFuture<'_, ProposalDecision>;

    /// Makes a nested call, in the environments of the step that the tool started in. It is decided, recorded and shown
    /// like a call of the model.
    fn call_tool(&self, _call: ToolCall, _began_in: Arc<Step>) -> BoxFuture<'_, FunctionCallOutputBody> {
        let text = "tools cannot be called from here".to_owned();
        Box::pin(std::future::ready(FunctionCallOutputBody::Text(text)))
    }

    /// Like `notify`, for an item that may outlive its call and turn.
    fn notify_later(&self, notification: ServerNotification) -> BoxFuture<'_, ()>;

    /// Ends an item that may outlive its call and turn.
    fn end_item(&self, item: ThreadItem) -> BoxFuture<'_, ()>;
}

/// Prints only the name: printing the fields would add the `Debug` code of all their types to the program.
impl fmt::Debug for dyn Sink + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sink")
    }
}

/// One call: its step and its caller.
#[derive(Debug)]
pub struct ToolCx {
    step: Arc<Step>,
    call_id: String,
    /// The name it was called by.
    name: String,
    caller: Caller,
}

impl ToolCx {
    pub(crate) fn new(step: Arc<Step>, call_id: String, name: String, caller: Caller) -> Self {
        Self { step, call_id, name, caller }
    }

    /// The step in which the model made the call.
    pub fn step(&self) -> &Step {
        &self.step
    }

    /// Like `step`, for work that outlives the call.
    pub(crate) fn shared_step(&self) -> Arc<Step> {
        self.step.clone()
    }

    /// Set if the environment is not on this machine.
    pub(crate) fn elsewhere(&self) -> Option<Elsewhere> {
        Elsewhere::of(&self.step)
    }

    /// The working folder in the environment.
    pub fn cwd(&self) -> &Path {
        Path::new(&self.step.cwd)
    }

    pub fn call_id(&self) -> &str {
        &self.call_id
    }

    /// The name the model used, which may be an alias.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn thread_id(&self) -> &ThreadId {
        &self.caller.thread_id
    }

    pub fn turn_id(&self) -> &TurnId {
        &self.caller.turn_id
    }

    pub fn bench(&self) -> &Arc<Bench> {
        &self.caller.bench
    }

    pub fn grants(&self) -> &GrantedPermissionProfile {
        &self.caller.grants
    }

    pub(crate) fn scope(&self) -> &CallScope {
        &self.caller.scope
    }

    /// For work that continues after the call has returned.
    pub fn sink(&self) -> &Arc<dyn Sink> {
        &self.caller.sink
    }

    pub async fn notify(&self, notification: ServerNotification) {
        self.caller.sink.notify(notification).await;
    }

    /// Waits for the decision. A call that is cancelled meanwhile never gets it.
    pub async fn propose(&self, proposal: Proposal) -> ProposalDecision {
        self.caller.sink.propose(proposal).await
    }
}

/// Adds tools to one thread. Shared by all its steps and calls.
pub trait ToolSource: Send + Sync + 'static {
    /// Its current tools. Called once per step; must not block. The order must be stable, because the list is part of
    /// every request's cached prefix.
    fn specs(&self, offer: &Offer) -> Vec<ToolSpec>;

    /// Whether it ever listed this name. A name keeps its meaning while the thread is loaded: a call runs under its own
    /// step, which may be older than the current list.
    fn has(&self, name: &str) -> bool;

    /// Runs a call. Effects are proposed first (`cx.propose`). Dropping the future cancels the call.
    fn run(&self, call: ToolCall, cx: ToolCx) -> BoxFuture<'static, Result<ToolOutcome, ToolError>>;

    /// Set while it starts: resolves when the list is complete, or when waiting longer makes no sense.
    fn starting(&self) -> Option<BoxFuture<'static, ()>> {
        None
    }

    /// Stops everything it runs. The thread is being closed.
    fn close(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// Prints only the name: printing the fields would add the `Debug` code of all their types to the program.
impl fmt::Debug for dyn ToolSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ToolSource")
    }
}

/// A result of one text, without an item.
pub(crate) fn text(text: impl Into<String>) -> ToolOutcome {
    ToolOutcome::text(text)
}
