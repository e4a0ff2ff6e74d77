//! Function tools, which clients run: at one client at a time, after the attempt is stored.

use std::sync::Arc;

use protocol::{DynamicToolCallResponse, OperationId, OperationResult, ThreadId};
use rpc::Id;
use serde::Deserialize;
use serde_json::value::RawValue;
use store::{AttemptStart, StoreError, TaskLease};

use crate::link::RuntimeLink;
use crate::shared::HostShared;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallHead {
    thread_id: ThreadId,
    #[serde(default)]
    operation_id: Option<OperationId>,
}

/// The executor of attempts at tools that clients run.
const EXECUTOR: &str = "client";

pub(crate) fn spawn(
    shared: Arc<HostShared>,
    link: RuntimeLink,
    lease: TaskLease,
    id: Id,
    params: Box<RawValue>,
) {
    tokio::spawn(async move {
        match call(&shared, &lease, params).await {
            Ok(result) => link.respond(&id, &result),
            Err(problem) => link.refuse(&id, -32603, &problem, &None),
        }
    });
}

async fn call(
    shared: &HostShared,
    lease: &TaskLease,
    params: Box<RawValue>,
) -> Result<Box<RawValue>, String> {
    let head: CallHead = serde_json::from_str(params.get()).map_err(|error| error.to_string())?;
    let Some(operation) = head.operation_id else {
        return run(shared, &head.thread_id, params).await;
    };
    let earlier = match shared.store.begin_attempt(lease, &operation, 1, EXECUTOR).await {
        Ok(AttemptStart::Begun(_)) => None,
        Ok(AttemptStart::Repeated(row)) => Some(row),
        Err(StoreError::AttemptTaken { .. }) => {
            shared.store.attempt(&operation, 1).await.map_err(|error| error.to_string())?
        }
        Err(error) => return Err(error.to_string()),
    };
    match earlier.map(|row| row.result) {
        None => {}
        // It ran to its end, and the runtime that asked was gone by then.
        Some(Some(result)) => return response_of(result),
        Some(None) => return Err("an earlier attempt has no result: its outcome is unknown".to_owned()),
    }
    let result = run(shared, &head.thread_id, params).await?;
    if let Ok(response) = serde_json::from_str::<DynamicToolCallResponse>(result.get()) {
        let stored = OperationResult { content_items: response.content_items, success: response.success };
        let finished = shared.store.finish_attempt(&operation, 1, stored).await;
        finished.map_err(|error| format!("the result of the tool is not stored: {error}"))?;
    }
    Ok(result)
}

async fn run(shared: &HostShared, thread: &ThreadId, params: Box<RawValue>) -> Result<Box<RawValue>, String> {
    match shared.clients.call_tool(thread, params).await {
        Some(reply) => Ok(reply.result),
        None => Err("the client that ran the tool is gone; the outcome is unknown".to_owned()),
    }
}

fn response_of(result: OperationResult) -> Result<Box<RawValue>, String> {
    let response = DynamicToolCallResponse { content_items: result.content_items, success: result.success };
    serde_json::value::to_raw_value(&response).map_err(|error| error.to_string())
}
