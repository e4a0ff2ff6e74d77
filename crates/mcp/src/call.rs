//! One call of a server's tool: approved if needed, recorded before it starts, with a time limit.

use std::sync::Arc;
use std::time::Instant;

use engine::{Gate, Proposal, Question, ToolOutcome, ToolPayload, digest_of};
use protocol::{
    FunctionCallOutputBody, ItemId, McpToolCallError, McpToolCallProgressNotification, McpToolCallResult,
    McpToolCallStatus, OperationType, ServerNotification, ThreadItem, ToolEffects,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tools::{ToolCx, ToolError};

use crate::McpError;
use crate::answer::ToolAnswer;
use crate::approval::{Agreed, Consent, asks, consent, question};
use crate::inbound::McpHost;
use crate::server::{LiveServer, Server};
use crate::tool::ServerTool;

/// Limit of queued progress messages; more are dropped.
const WAITING_PROGRESS: usize = 16;

/// Everything a call needs beside its arguments.
#[derive(Debug, Clone)]
pub(crate) struct CallContext {
    pub(crate) agreed: Arc<Agreed>,
    pub(crate) host: Arc<dyn McpHost>,
    pub(crate) takes_images: bool,
}

/// The call as an item, from start to end.
#[derive(Debug)]
pub(crate) struct Shown {
    cx: Arc<ToolCx>,
    server: String,
    tool: String,
    arguments: Value,
    began: Instant,
}

impl Shown {
    pub(crate) fn new(cx: Arc<ToolCx>, server: &str, tool: &str, arguments: Value) -> Self {
        let (server, tool) = (server.to_owned(), tool.to_owned());
        Self { cx, server, tool, arguments, began: Instant::now() }
    }

    pub(crate) fn proposal(&self, number: u32, kind: OperationType, effects: ToolEffects) -> Proposal {
        let arguments = json!({"server": self.server, "tool": self.tool, "arguments": self.arguments});
        Proposal {
            number,
            kind,
            effects,
            item: Some(Box::new(self.item(McpToolCallStatus::InProgress, None, None))),
            outlives: false,
            digest: digest_of(&arguments),
            arguments,
            question: None,
            session_keys: Vec::new(),
        }
    }

    fn item(
        &self,
        status: McpToolCallStatus,
        result: Option<McpToolCallResult>,
        error: Option<String>,
    ) -> ThreadItem {
        let is_over = status != McpToolCallStatus::InProgress;
        let elapsed = i64::try_from(self.began.elapsed().as_millis()).unwrap_or(i64::MAX);
        ThreadItem::McpToolCall {
            id: ItemId::new(self.cx.call_id()),
            server: self.server.clone(),
            tool: self.tool.clone(),
            status,
            arguments: self.arguments.clone(),
            result,
            error: error.map(|message| McpToolCallError { message }),
            duration_ms: is_over.then_some(elapsed),
        }
    }

    /// The end of a call without a result.
    pub(crate) fn failed(&self, message: String) -> ToolOutcome {
        let item = self.item(McpToolCallStatus::Failed, None, Some(message.clone()));
        ToolOutcome { item: Some(Box::new(item)), ..ToolOutcome::failure(message) }
    }

    pub(crate) fn answered(&self, answer: ToolAnswer) -> ToolOutcome {
        let ToolAnswer { output, result, is_error } = answer;
        let status = if is_error { McpToolCallStatus::Failed } else { McpToolCallStatus::Completed };
        let item = self.item(status, Some(result), None);
        ToolOutcome { output, success: !is_error, item: Some(Box::new(item)), ..ToolOutcome::text("") }
    }

    /// The end of a call with one text as result.
    pub(crate) fn told(&self, text: String) -> ToolOutcome {
        let content = vec![json!({"type": "text", "text": text})];
        let result = McpToolCallResult { content, structured_content: None };
        self.answered(ToolAnswer { output: FunctionCallOutputBody::Text(text), result, is_error: false })
    }
}

/// The arguments as JSON. An empty text means none.
pub(crate) fn arguments_of(payload: &ToolPayload) -> Result<Value, ToolError> {
    match payload {
        ToolPayload::Function { arguments } if arguments.trim().is_empty() => Ok(Value::Null),
        ToolPayload::Function { arguments } => Ok(serde_json::from_str(arguments)?),
        ToolPayload::Custom { .. } | ToolPayload::Search { .. } => {
            Err(ToolError::Failed("tools of MCP servers take a JSON object, not free text".to_owned()))
        }
    }
}

pub(crate) async fn call(
    server: Arc<Server>,
    tool: String,
    payload: ToolPayload,
    cx: Arc<ToolCx>,
    context: CallContext,
) -> Result<ToolOutcome, ToolError> {
    let arguments = arguments_of(&payload)?;
    let shown = Shown::new(cx.clone(), server.name(), &tool, arguments);
    let live = server.live();
    let known = live.as_ref().ok().and_then(|live| live.tool(&tool));
    let effects = known.as_ref().map_or(ToolEffects::Once, |tool| tool.effects());
    let mut next = 0;
    if let Some(tool) = &known
        && !approved(&server, tool, &shown, &context, &mut next).await
    {
        return Ok(shown.failed("the user did not allow this call; do not try it again".to_owned()));
    }
    if !cx.propose(shown.proposal(next, OperationType::Mcp, effects)).await.is_approved() {
        return Ok(shown.failed("the call was refused; do not try it again".to_owned()));
    }
    let answer = match (live, known) {
        (Ok(live), Some(_)) => send(&server, &live, &tool, &shown).await,
        (Ok(_), None) => Err(McpError::Ended("the server no longer has this tool".to_owned())),
        (Err(error), _) => Err(error),
    };
    Ok(match answer.and_then(|answer| ToolAnswer::read(answer, context.takes_images)) {
        Ok(answer) => shown.answered(answer),
        Err(error) => shown.failed(format!("MCP server `{}`: {error}", server.name())),
    })
}

/// Asks if needed. `next` is the number of the call's next proposal.
async fn approved(
    server: &Server,
    tool: &ServerTool,
    shown: &Shown,
    context: &CallContext,
    next: &mut u32,
) -> bool {
    let (cx, name) = (&shown.cx, server.name());
    let mode = server.options.approval.get(&tool.name).copied().unwrap_or_default();
    let (policy, sandbox) = (&cx.step().approval_policy, &cx.step().sandbox);
    // A host that decides about every call has approved this one.
    let is_gated = cx.step().tool(cx.name()).is_some_and(|spec| spec.gate == Gate::Ask);
    if is_gated || !asks(mode, tool, policy, sandbox) || context.agreed.has(name, tool) {
        return true;
    }
    let asked = Question::Elicitation(question(cx, name, tool, &shown.arguments, mode));
    let proposal = shown.proposal(*next, OperationType::Elicitation, ToolEffects::Readonly);
    *next += 1;
    let decided = cx.propose(Proposal { question: Some(Box::new(asked)), ..proposal }).await;
    let Some(answer) = decided.elicitation() else { return false };
    let given = consent(&answer, mode);
    if matches!(given, Consent::Session | Consent::Always) {
        context.agreed.add(name, tool);
    }
    if given == Consent::Always
        && let Err(error) = context.host.approve_for_good(name, &tool.name).await
    {
        tracing::warn!(server = name, tool = tool.name, error, "the approval could not be saved");
    }
    given != Consent::No
}

async fn send(server: &Server, live: &LiveServer, tool: &str, shown: &Shown) -> Result<Value, McpError> {
    server.calls.enter(&shown.cx);
    let mut params = json!({"name": tool});
    if !shown.arguments.is_null() {
        params["arguments"] = shown.arguments.clone();
    }
    let (progress, mut heard) = mpsc::channel(WAITING_PROGRESS);
    let request = live.peer.request_with("tools/call", params, Some(progress));
    let limit = server.options.tool_timeout;
    let work = async {
        tokio::pin!(request);
        loop {
            tokio::select! {
                // Progress that came before the result is reported first.
                biased;
                Some(message) = heard.recv() => tell_progress(&shown.cx, message).await,
                answer = &mut request => return answer,
            }
        }
    };
    shown.cx.bench().clock().timeout(limit, work).await.unwrap_or(Err(McpError::Timeout(limit)))
}

async fn tell_progress(cx: &ToolCx, message: String) {
    let (thread_id, turn_id) = (cx.thread_id().clone(), cx.turn_id().clone());
    let item_id = ItemId::new(cx.call_id());
    let told = McpToolCallProgressNotification { thread_id, turn_id, item_id, message };
    cx.notify(ServerNotification::McpToolCallProgress(told)).await;
}
