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

/// A built-in tool. Its parameters are derived from `Args`, whose doc comments are what the model reads.
pub trait BuiltinTool: fmt::Debug + Send + Sync + 'static {
    const NAME: &'static str;
    /// Other names it answers to without being advertised under them.
    const ALIASES: &'static [&'static str] = &[];
    /// For the model: what it does.
    const ABOUT: &'static str;
    /// For the model's instructions: when and how to use it. There exactly when the tool is offered.
    const PROMPT: Option<&'static str> = None;
    /// May run beside others that may too.
    const PARALLEL: bool = false;
    const KIND: ToolKind = ToolKind::Builtin;
    /// Works in an environment: without one that is attached it is neither offered nor run.
    const NEEDS_PLACE: bool = false;
    /// Its calls can have a client asked about them in a way of their own.
    const ASKS: bool = false;
    type Args: DeserializeOwned + JsonSchema + Send;

    /// Whether it is there, given configuration, features and model.
    fn standing(_offer: &Offer) -> Standing {
        Standing::Offered
    }

    /// The entry of the request's tool list.
    fn spec(_offer: &Offer) -> Value {
        function_json::<Self::Args>(Self::NAME, Self::ABOUT)
    }

    /// The model's input, as arguments. Only tools that take free text have a way of their own.
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

/// The thread and turn of a call, and the way back to them.
#[derive(Debug, Clone)]
pub struct Caller {
    pub thread_id: ThreadId,
    pub turn_id: TurnId,
    pub sink: Arc<dyn Sink>,
    /// State that the thread's tools share.
    pub bench: Arc<Bench>,
    /// Permissions that clients granted on top of the sandbox.
    pub grants: GrantedPermissionProfile,
    /// How long what it begins may go on.
    pub scope: CallScope,
}

/// The way from a tool to the thread it works for.
pub trait Sink: Send + Sync {
    /// Something clients should see of this call. Waits when clients are slow; nothing is said any more once the call
    /// is over.
    fn tell(&self, notification: ServerNotification) -> BoxFuture<'_, ()>;

    /// Has something decided. Nothing of it may happen before it is approved.
    fn propose(&self, proposal: Proposal) -> BoxFuture<'_, ProposalDecision>;

    /// Makes another call in the name of this one, in the environments of the step that the tool began in. It is decided,
    /// recorded and shown like one of the model.
    fn call_tool(&self, _call: ToolCall, _began_in: Arc<Step>) -> BoxFuture<'_, FunctionCallOutputBody> {
        let text = "tools cannot be called from here".to_owned();
        Box::pin(std::future::ready(FunctionCallOutputBody::Text(text)))
    }

    /// As `tell`, for an item that may outlive its call and its turn.
    fn tell_later(&self, notification: ServerNotification) -> BoxFuture<'_, ()>;

    /// The end of an item that may have outlived its call and its turn.
    fn end_item(&self, item: ThreadItem) -> BoxFuture<'_, ()>;
}

/// The name alone: to print the values behind it, the program would carry the `Debug` code of all their types.
impl fmt::Debug for dyn Sink + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sink")
    }
}

/// One call: the step it was made in, and whom it is for.
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

    /// The same, for what outlives the call.
    pub(crate) fn shared_step(&self) -> Arc<Step> {
        self.step.clone()
    }

    /// Set when the work is not on this machine.
    pub(crate) fn elsewhere(&self) -> Option<Elsewhere> {
        Elsewhere::of(&self.step)
    }

    /// Where the work is.
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

    /// For what goes on after the call has returned.
    pub fn sink(&self) -> &Arc<dyn Sink> {
        &self.caller.sink
    }

    pub async fn tell(&self, notification: ServerNotification) {
        self.caller.sink.tell(notification).await;
    }

    /// Waits for the decision. A call that is cancelled meanwhile never hears it.
    pub async fn propose(&self, proposal: Proposal) -> ProposalDecision {
        self.caller.sink.propose(proposal).await
    }
}

/// Brings tools to one thread. It is shared by all steps and calls of that thread.
pub trait ToolSource: Send + Sync + 'static {
    /// The tools it has now. Called once per step and must not wait. The same tools come in the same order each time,
    /// because the list is part of the cached beginning of every request.
    fn specs(&self, offer: &Offer) -> Vec<ToolSpec>;

    /// Whether a name that it listed once is one of its tools. A name keeps its meaning for as long as the thread is
    /// loaded: a call is made under the step it was offered in, which may be older than the list of today.
    fn has(&self, name: &str) -> bool;

    /// Runs a call. What has an effect is proposed first (`cx.propose`). Dropping the future cancels the call.
    fn run(&self, call: ToolCall, cx: ToolCx) -> BoxFuture<'static, Result<ToolOutcome, ToolError>>;

    /// Set while it starts: resolves when the list is complete, or when nobody should wait for it any longer.
    fn starting(&self) -> Option<BoxFuture<'static, ()>> {
        None
    }

    /// Ends everything that it runs. The thread is being closed.
    fn close(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// The name alone: to print the values behind it, the program would carry the `Debug` code of all their types.
impl fmt::Debug for dyn ToolSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ToolSource")
    }
}

/// A result that is one text and no item.
pub(crate) fn text(text: impl Into<String>) -> ToolOutcome {
    ToolOutcome::text(text)
}
