//! One call of a tool: a turn from its beginning to its answer.

use std::sync::Arc;

use core_api::protocol::{ThreadId, ThreadItem, TurnStatus};
use core_api::{ManagedThread, ManagerError, ThreadEvent, TurnStream};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::approval::settle;
use super::peer::ClientPeer;
use super::threads::OpenThreads;
use super::tools::{REPLY, ReplyArguments, START, StartArguments};

/// The result of `tools/call`. Whatever goes wrong is a result too, for the model that made the call.
pub(super) async fn run_call(
    peer: &Arc<ClientPeer>,
    threads: &OpenThreads,
    id: &Value,
    params: &Value,
    stopped: watch::Receiver<bool>,
) -> Value {
    let (thread, prompt) = match open(threads, params).await {
        Ok(opened) => opened,
        Err(problem) => return failure(None, &problem),
    };
    let call = ToolTurn {
        peer: peer.clone(),
        id: id.clone(),
        token: params.pointer("/_meta/progressToken").cloned(),
    };
    match thread.submit(prompt).await {
        Ok(turn) => call.follow(&thread, turn, stopped).await,
        Err(error) => failure(Some(thread.id()), &error.to_string()),
    }
}

async fn open(threads: &OpenThreads, params: &Value) -> Result<(ManagedThread, String), String> {
    let say = |error: ManagerError| error.to_string();
    match params.get("name").and_then(Value::as_str) {
        Some(START) => {
            let (prompt, options) = arguments::<StartArguments>(params)?.options();
            threads.limits.check(&options).await?;
            Ok((threads.start(options).await.map_err(say)?, prompt))
        }
        Some(REPLY) => {
            let arguments: ReplyArguments = arguments(params)?;
            let id = arguments.thread().ok_or("threadId is missing: name the thread to go on with")?;
            let thread = threads.resume(&ThreadId::new(id)).await.map_err(say)?;
            Ok((thread, arguments.prompt))
        }
        other => {
            Err(format!("Unknown tool '{}'", other.unwrap_or_default().chars().take(64).collect::<String>()))
        }
    }
}

fn arguments<T: DeserializeOwned>(params: &Value) -> Result<T, String> {
    let arguments = params.get("arguments").cloned().unwrap_or_else(|| json!({}));
    serde_json::from_value(arguments).map_err(|error| format!("the arguments cannot be used: {error}"))
}

struct ToolTurn {
    peer: Arc<ClientPeer>,
    id: Value,
    /// The client wants to hear of progress under this.
    token: Option<Value>,
}

impl ToolTurn {
    async fn follow(
        &self,
        thread: &ManagedThread,
        mut turn: TurnStream,
        mut stopped: watch::Receiver<bool>,
    ) -> Value {
        let (mut steps, mut is_stopping) = (0_u64, false);
        loop {
            let event = tokio::select! {
                event = turn.next() => event,
                () = until_stopped(&mut stopped), if !is_stopping => {
                    is_stopping = true;
                    turn.interrupt().await;
                    continue;
                }
            };
            match event {
                None => break,
                Some(ThreadEvent::Approval(request)) => {
                    // Beside the turn, which may be stopped while its question is open.
                    let (peer, id, thread) = (self.peer.clone(), self.id.clone(), thread.id().clone());
                    tokio::spawn(async move { settle(&peer, &id, &thread, request).await });
                }
                Some(ThreadEvent::ItemStarted(item)) => self.progress(&mut steps, &item).await,
                // Any other question of a turn is answered with no when it is dropped.
                Some(_) => {}
            }
        }
        match turn.finish().await {
            Ok(finished) if finished.status == TurnStatus::Completed => {
                success(thread.id(), &finished.message.unwrap_or_default())
            }
            Ok(_) => failure(Some(thread.id()), "the turn was interrupted"),
            Err(error) => failure(Some(thread.id()), &error.to_string()),
        }
    }

    async fn progress(&self, steps: &mut u64, item: &ThreadItem) {
        let (Some(token), Some(message)) = (&self.token, sentence(item)) else { return };
        *steps += 1;
        let params = json!({"progressToken": token, "progress": steps, "message": message});
        self.peer.notify("notifications/progress", params).await;
    }
}

/// The sender lives as long as its call.
async fn until_stopped(stopped: &mut watch::Receiver<bool>) {
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

/// The agent's current action, in a line.
fn sentence(item: &ThreadItem) -> Option<String> {
    match item {
        ThreadItem::CommandExecution { command, .. } => Some(format!("runs {command}")),
        ThreadItem::FileChange { changes, .. } => {
            let files: Vec<&str> = changes.iter().map(|change| change.path.as_str()).collect();
            Some(format!("changes {}", files.join(", ")))
        }
        ThreadItem::McpToolCall { server, tool, .. } => Some(format!("calls {tool} of {server}")),
        ThreadItem::WebSearch { query, .. } => Some(format!("searches for {query}")),
        _ => None,
    }
}

fn success(thread: &ThreadId, text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}], "structuredContent": {"threadId": thread, "content": text}})
}

fn failure(thread: Option<&ThreadId>, problem: &str) -> Value {
    let mut result = json!({"content": [{"type": "text", "text": problem}], "isError": true});
    if let Some(thread) = thread {
        result["structuredContent"] = json!({"threadId": thread, "content": problem});
    }
    result
}
