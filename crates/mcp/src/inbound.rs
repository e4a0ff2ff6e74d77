//! Requests and notifications from servers.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};

use engine::{Proposal, Question, digest_of};
use parking_lot::Mutex;
use protocol::{
    AskForApproval, McpElicitationSchema, McpServerElicitationAction, McpServerElicitationRequest,
    McpServerElicitationRequestParams, McpServerElicitationRequestResponse, OperationType,
    ServerNotification, ToolEffects,
};
use serde_json::{Value, json};
use tools::{BoxFuture, ToolCx};

use crate::peer::Inbound;
use crate::server::WeakServer;
use crate::tool::cut;

/// The thread of the connections, as far as this crate needs it.
pub trait McpHost: Send + Sync + 'static {
    /// Notifies the thread's clients.
    fn notify(&self, notification: ServerNotification) -> BoxFuture<'static, ()>;

    /// Stores in the configuration that a tool needs no approval from now on.
    fn approve_for_good(&self, server: &str, tool: &str) -> BoxFuture<'static, Result<(), String>>;
}

/// Prints only the name: printing the fields would add the `Debug` code of all their types to the program.
impl std::fmt::Debug for dyn McpHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("McpHost")
    }
}

const METHOD_NOT_FOUND: i64 = -32601;
/// Proposals of the call itself have smaller numbers.
const FIRST_QUESTION: u32 = 1000;
/// Pauses the thread's time limits while a server's question is open.
const CLOCK_HOLDER: u64 = u64::MAX;
const MAX_MESSAGE: usize = 8 * 1024;

/// The running calls of a server. Its questions belong to the last one that started.
#[derive(Debug, Default)]
pub(crate) struct OpenCalls {
    calls: Mutex<Vec<Weak<ToolCx>>>,
    questions: AtomicU32,
}

impl OpenCalls {
    pub(crate) fn enter(&self, cx: &Arc<ToolCx>) {
        let mut calls = self.calls.lock();
        calls.retain(|call| call.strong_count() > 0);
        calls.push(Arc::downgrade(cx));
    }

    fn last(&self) -> Option<Arc<ToolCx>> {
        self.calls.lock().iter().rev().find_map(Weak::upgrade)
    }
}

/// Answers the requests of one server.
#[derive(Debug)]
pub(crate) struct Answering {
    pub(crate) server: WeakServer,
    pub(crate) calls: Arc<OpenCalls>,
}

impl Inbound for Answering {
    fn request(&self, method: &str, params: Value) -> BoxFuture<'static, Result<Value, (i64, String)>> {
        let refused = |why: &str| {
            let answer = Err((METHOD_NOT_FOUND, why.to_owned()));
            Box::pin(std::future::ready(answer)) as BoxFuture<'static, _>
        };
        match method {
            "ping" => Box::pin(std::future::ready(Ok(json!({})))),
            "elicitation/create" => {
                let server = self.server.upgrade().map(|server| server.name().to_owned());
                let calls = self.calls.clone();
                Box::pin(async move { Ok(elicit(&calls, server.unwrap_or_default(), &params).await) })
            }
            "sampling/createMessage" => refused(
                "sampling is refused: the model of this thread works for its user alone. Return the text you would \
                 have sent, and the agent will go on from there.",
            ),
            "roots/list" => refused("this client has no roots"),
            _ => refused("this client does not know the method"),
        }
    }

    fn notification(&self, method: &str, params: &Value) {
        match (method, self.server.upgrade()) {
            ("notifications/tools/list_changed", Some(server)) => server.list_again(),
            ("notifications/message", Some(server)) => {
                let text = params.get("data").map(ToString::to_string).unwrap_or_default();
                tracing::debug!(server = server.name(), "{}", cut(&text, MAX_MESSAGE));
            }
            _ => {}
        }
    }
}

/// Asks the thread's clients a question of a server.
async fn elicit(calls: &OpenCalls, server_name: String, params: &Value) -> Value {
    let answer = |action: &str| json!({"action": action});
    // A server without running calls has no reason to ask.
    let Some(cx) = calls.last() else { return answer("decline") };
    if !may_ask(&cx.step().approval_policy) {
        return answer("decline");
    }
    // A form that clients cannot show is not shown.
    let Some(request) = request_of(params) else { return answer("cancel") };
    let arguments = json!({"server": server_name, "request": request});
    let question = McpServerElicitationRequestParams {
        thread_id: cx.thread_id().clone(),
        turn_id: Some(cx.turn_id().clone()),
        operation_id: None,
        arguments_digest: None,
        server_name,
        request,
    };
    let number = FIRST_QUESTION + calls.questions.fetch_add(1, Ordering::Relaxed);
    let _held = ClockHold::new(&cx);
    let decided = cx
        .propose(Proposal {
            number,
            kind: OperationType::Elicitation,
            effects: ToolEffects::Readonly,
            item: None,
            outlives: false,
            digest: digest_of(&arguments),
            arguments,
            question: Some(Box::new(Question::Elicitation(question))),
            session_keys: Vec::new(),
        })
        .await;
    match decided.elicitation() {
        Some(McpServerElicitationRequestResponse { action, content, meta, .. }) => {
            let mut answer = json!({"action": action});
            let is_accepted = action == McpServerElicitationAction::Accept;
            if let (true, Some(content)) = (is_accepted, content) {
                answer["content"] = content;
            }
            if let Some(meta) = meta {
                answer["_meta"] = meta;
            }
            answer
        }
        None => answer("cancel"),
    }
}

/// The call's time limit is paused while the user decides.
struct ClockHold<'a>(&'a ToolCx);

impl<'a> ClockHold<'a> {
    fn new(cx: &'a ToolCx) -> Self {
        cx.bench().clock().hold(CLOCK_HOLDER);
        Self(cx)
    }
}

impl Drop for ClockHold<'_> {
    fn drop(&mut self) {
        self.0.bench().clock().release(CLOCK_HOLDER);
    }
}

fn may_ask(policy: &AskForApproval) -> bool {
    match policy {
        AskForApproval::Never => false,
        AskForApproval::Granular { mcp_elicitations, .. } => *mcp_elicitations,
        AskForApproval::Untrusted | AskForApproval::OnFailure | AskForApproval::OnRequest => true,
    }
}

fn request_of(params: &Value) -> Option<McpServerElicitationRequest> {
    let text = |key: &str| params.get(key).and_then(Value::as_str);
    let message = cut(text("message")?, MAX_MESSAGE);
    let meta = params.get("_meta").and_then(of_server);
    match text("mode").unwrap_or("form") {
        "form" => {
            let schema = params.get("requestedSchema")?;
            let requested_schema: McpElicitationSchema = protocol::from_value(schema).ok()?;
            Some(McpServerElicitationRequest::Form { meta, message, requested_schema })
        }
        "url" => {
            let url = text("url").filter(|url| url.starts_with("https://") || url.starts_with("http://"))?;
            let elicitation_id = text("elicitationId")?.to_owned();
            Some(McpServerElicitationRequest::Url { meta, message, url: url.to_owned(), elicitation_id })
        }
        _ => None,
    }
}

/// A server's metadata for clients, without the names that mark our own questions: a server must not imitate an
/// approval request.
fn of_server(meta: &Value) -> Option<Value> {
    let kept = meta.as_object()?.iter().filter(|(name, _)| !name.starts_with("codex_"));
    Some(Value::Object(kept.map(|(name, value)| (name.clone(), value.clone())).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_of_a_server_does_not_look_like_one_of_ours() {
        let asked = json!({"mode": "url", "message": "m", "url": "https://h/x", "elicitationId": "1",
            "_meta": {"codex_approval_kind": "mcp_tool_call", "own": 1}});
        let Some(McpServerElicitationRequest::Url { meta, .. }) = request_of(&asked) else {
            panic!("it can be asked for")
        };
        assert_eq!(meta, Some(json!({"own": 1})));
    }

    #[test]
    fn forms_and_pages_can_be_asked_for() {
        let form = json!({"message": "m", "requestedSchema": {"type": "object", "properties": {
            "ok": {"type": "boolean"}}}});
        assert!(matches!(request_of(&form), Some(McpServerElicitationRequest::Form { .. })));
        let page = json!({"mode": "url", "message": "m", "url": "https://h/x", "elicitationId": "1"});
        assert!(matches!(request_of(&page), Some(McpServerElicitationRequest::Url { .. })));
        for bad in [
            json!({}),
            json!({"message": "m"}),
            json!({"message": "m", "requestedSchema": "x"}),
            json!({"message": "m", "requestedSchema": {"type": "object", "properties": {"a": {"type": "object"}}}}),
            json!({"mode": "url", "message": "m", "url": "file:///etc/passwd", "elicitationId": "1"}),
            json!({"mode": "voice", "message": "m"}),
        ] {
            assert_eq!(request_of(&bad), None, "{bad}");
        }
    }
}
