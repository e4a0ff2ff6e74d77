//! The connections of the hub, as tasks of a host see them.

use std::sync::Arc;
use std::time::Duration;

use host::{BoxFuture, ClientReply, HostClients};
use protocol::{
    CommandExecutionRequestApproval, DynamicToolCall, FileChangeRequestApproval, McpServerElicitationAsk,
    Operation, OperationUpdatedNotification, PermissionsRequestApproval, RequestMethod, ServerNotification,
    ThreadId, ToolRequestApproval, ToolRequestUserInput,
};
use serde_json::value::{RawValue, to_raw_value};

use crate::host_face::app::ALL_TASKS;
use crate::hub::{AskTarget, ClientConnection, ConnectionId, Hub};

/// How often a call without a client looks for one.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// A handle on the hub for tasks, which speak to clients through it.
#[derive(Debug, Clone)]
pub struct HubClients(pub Arc<Hub>);

fn follows_all(connection: &ClientConnection) -> bool {
    let agreed = connection.profile().and_then(|profile| profile.agreed.as_ref());
    let agreed = agreed.and_then(|agreed| agreed.host.as_ref());
    agreed.is_some_and(|host| host.features.iter().any(|feature| feature == ALL_TASKS))
}

/// As decisions name it.
pub(crate) fn client_name(name: &str) -> String {
    format!("client:{name}")
}

async fn ask<R: RequestMethod>(
    hub: Arc<Hub>,
    target: AskTarget,
    params: Box<RawValue>,
) -> Option<ClientReply> {
    let read = protocol::decode(params.get());
    let params = read.map_err(|error| tracing::error!(%error, "a runtime's question cannot be read")).ok()?;
    let (response, from) = hub.ask_who::<R>(target, params).await.ok()?;
    let by = client_name(&hub.client_name(from));
    Some(ClientReply { by, result: to_raw_value(&response).ok()? })
}

impl HostClients for HubClients {
    fn relay<'a>(&'a self, thread: &'a ThreadId, method: &'a str, params: &'a RawValue) -> BoxFuture<'a, ()> {
        Box::pin(self.0.relay(thread, method, params))
    }

    fn notify<'a>(&'a self, thread: &'a ThreadId, notification: ServerNotification) -> BoxFuture<'a, ()> {
        Box::pin(self.0.notify_thread(thread, notification))
    }

    fn operation_updated(&self, operation: Operation) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let thread = operation.task_id.clone();
            let told = ServerNotification::OperationUpdated(OperationUpdatedNotification { operation });
            self.0.notify_experimental(&thread, follows_all, told).await;
        })
    }

    fn ask(
        &self,
        thread: &ThreadId,
        method: &str,
        params: Box<RawValue>,
    ) -> BoxFuture<'static, Option<ClientReply>> {
        let (hub, target) = (self.0.clone(), AskTarget::Thread(thread.clone()));
        match method {
            CommandExecutionRequestApproval::METHOD => {
                Box::pin(ask::<CommandExecutionRequestApproval>(hub, target, params))
            }
            FileChangeRequestApproval::METHOD => {
                Box::pin(ask::<FileChangeRequestApproval>(hub, target, params))
            }
            ToolRequestApproval::METHOD => Box::pin(ask::<ToolRequestApproval>(hub, target, params)),
            ToolRequestUserInput::METHOD => Box::pin(ask::<ToolRequestUserInput>(hub, target, params)),
            McpServerElicitationAsk::METHOD => Box::pin(ask::<McpServerElicitationAsk>(hub, target, params)),
            PermissionsRequestApproval::METHOD => {
                Box::pin(ask::<PermissionsRequestApproval>(hub, target, params))
            }
            _ => Box::pin(std::future::ready(None)),
        }
    }

    /// The connection that has been here for longest runs it.
    fn call_tool(&self, thread: &ThreadId, params: Box<RawValue>) -> BoxFuture<'static, Option<ClientReply>> {
        let (hub, thread) = (self.0.clone(), thread.clone());
        Box::pin(async move {
            let connection: ConnectionId = loop {
                match hub.subscribers(&thread).first() {
                    Some(first) => break *first,
                    None => tokio::time::sleep(LOOK_AGAIN).await,
                }
            };
            let target = AskTarget::Connection { connection, thread: Some(thread) };
            ask::<DynamicToolCall>(hub, target, params).await
        })
    }

    fn child_appeared(&self, parent: &ThreadId, child: &ThreadId) {
        self.0.join_child(parent, child);
    }
}
