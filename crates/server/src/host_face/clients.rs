//! The connections of the hub, as tasks of a host see them.

use std::sync::Arc;

use host::{BoxFuture, CarrierAnswer, ClientReply, HostClients, ToolCallEnd, ToolProvider, WantedTool};
use protocol::{
    CommandExecutionRequestApproval, DynamicToolCall, DynamicToolCallOutputContentItem,
    DynamicToolCallParams, DynamicToolCallResponse, FileChangeRequestApproval, McpServerElicitationAsk,
    ModelCancel, ModelCancelParams, ModelRequest, ModelRequestParams, Operation,
    OperationUpdatedNotification, PermissionsRequestApproval, RequestMethod, ServerNotification, Task,
    TaskUpdatedNotification, ThreadId, ToolRequestApproval, ToolRequestUserInput,
};
use serde_json::value::{RawValue, to_raw_value};

use crate::host_face::app::ALL_TASKS;
use crate::host_face::carriers::ModelCarriers;
use crate::host_face::providers::ToolProviders;
use crate::hub::{AskError, AskTarget, ClientConnection, ConnectionId, Hub};
use crate::peers::PeerSlot;

/// A handle on the hub for tasks, which speak to clients through it.
#[derive(Debug, Clone)]
pub struct HubClients {
    hub: Arc<Hub>,
    pub(crate) providers: Arc<ToolProviders>,
    pub(crate) carriers: Arc<ModelCarriers>,
    pub(crate) peers: PeerSlot,
}

impl HubClients {
    pub fn new(hub: Arc<Hub>) -> Self {
        Self { hub, providers: Arc::default(), carriers: Arc::default(), peers: PeerSlot::default() }
    }
}

/// The client said so instead of giving a result.
fn failed(text: &str) -> DynamicToolCallResponse {
    let content_items = vec![DynamicToolCallOutputContentItem::InputText { text: text.to_owned() }];
    DynamicToolCallResponse { content_items, success: false }
}

fn follows_all(connection: &ClientConnection) -> bool {
    let agreed = connection.profile().and_then(|profile| profile.agreed.as_ref());
    let agreed = agreed.and_then(|agreed| agreed.host.as_ref());
    agreed.is_some_and(|host| host.features.iter().any(|feature| feature == ALL_TASKS))
}

async fn ask<R: RequestMethod>(
    hub: Arc<Hub>,
    target: AskTarget,
    params: Box<RawValue>,
) -> Option<ClientReply> {
    let read = protocol::decode(params.get());
    let params = read.map_err(|error| tracing::error!(%error, "a runtime's question cannot be read")).ok()?;
    let (result, from) = match hub.ask_who::<R>(target, params).await {
        Ok((response, from)) => (Some(to_raw_value(&response).ok()?), from),
        Err(AskError::Refused { from, .. }) => (None, from),
        Err(AskError::Unreadable(_) | AskError::TurnEnded | AskError::Gone) => return None,
    };
    Some(ClientReply { by: hub.name_of(from), result })
}

impl HostClients for HubClients {
    fn relay<'a>(
        &'a self,
        thread: &'a ThreadId,
        method: &'a str,
        params: &'a RawValue,
        ordinal: Option<u64>,
    ) -> BoxFuture<'a, ()> {
        Box::pin(self.hub.relay(thread, method, params, ordinal))
    }

    fn notify<'a>(&'a self, thread: &'a ThreadId, notification: ServerNotification) -> BoxFuture<'a, ()> {
        Box::pin(self.hub.notify_thread(thread, notification))
    }

    fn operation_updated(&self, operation: Operation) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let thread = operation.task_id.clone();
            let told = ServerNotification::OperationUpdated(OperationUpdatedNotification { operation });
            self.hub.notify_experimental(&thread, follows_all, told).await;
        })
    }

    fn is_watched(&self) -> bool {
        self.hub.has_connection(follows_all)
    }

    fn task_updated(&self, task: Task) -> BoxFuture<'_, ()> {
        let told = ServerNotification::TaskUpdated(TaskUpdatedNotification { task });
        Box::pin(self.hub.notify_those(follows_all, told))
    }

    fn placement_changed<'a>(
        &'a self,
        thread: &'a ThreadId,
        notification: ServerNotification,
    ) -> BoxFuture<'a, ()> {
        let starter = self.hub.starter(thread);
        let also =
            move |connection: &ClientConnection| follows_all(connection) || Some(connection.id) == starter;
        Box::pin(self.hub.notify_experimental(thread, also, notification))
    }

    fn ask(
        &self,
        thread: &ThreadId,
        method: &str,
        params: Box<RawValue>,
    ) -> BoxFuture<'static, Option<ClientReply>> {
        let (hub, target) = (self.hub.clone(), AskTarget::Thread(thread.clone()));
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

    fn provider(&self, tool: WantedTool) -> BoxFuture<'static, ToolProvider> {
        let (hub, providers) = (self.hub.clone(), self.providers.clone());
        Box::pin(async move {
            let mut changes = providers.changes();
            loop {
                changes.borrow_and_update();
                if let Some(connection) = providers.find(&hub, &tool) {
                    let name = format!("{}#{connection}", hub.name_of(connection));
                    return ToolProvider { connection: connection.0, name };
                }
                if changes.changed().await.is_err() {
                    // The server has ended.
                    std::future::pending::<()>().await;
                }
            }
        })
    }

    fn call_tool(
        &self,
        provider: &ToolProvider,
        thread: &ThreadId,
        params: DynamicToolCallParams,
    ) -> BoxFuture<'static, ToolCallEnd> {
        let (hub, connection, thread) = (self.hub.clone(), ConnectionId(provider.connection), thread.clone());
        Box::pin(async move {
            if !hub.is_connected(connection) {
                return ToolCallEnd::NotSent;
            }
            let target = AskTarget::Connection { connection, thread: Some(thread) };
            match hub.ask_who::<DynamicToolCall>(target, params).await {
                Ok((response, _)) => ToolCallEnd::Answered(response),
                Err(AskError::Refused { .. }) => ToolCallEnd::Answered(failed("dynamic tool request failed")),
                Err(AskError::Unreadable(_)) => {
                    ToolCallEnd::Answered(failed("dynamic tool response was invalid"))
                }
                Err(AskError::TurnEnded | AskError::Gone) => ToolCallEnd::Gone,
            }
        })
    }

    fn carrier(&self, task: &ThreadId) -> BoxFuture<'static, u64> {
        let (hub, carriers, task) = (self.hub.clone(), self.carriers.clone(), task.clone());
        Box::pin(async move {
            let mut changes = carriers.changes();
            loop {
                changes.borrow_and_update();
                if let Some(connection) = carriers.find(&hub, &task) {
                    return connection.0;
                }
                if changes.changed().await.is_err() {
                    // The server has ended.
                    std::future::pending::<()>().await;
                }
            }
        })
    }

    fn ask_model(&self, connection: u64, params: ModelRequestParams) -> BoxFuture<'static, CarrierAnswer> {
        let target = AskTarget::Connection {
            connection: ConnectionId(connection),
            thread: Some(params.thread_id.clone()),
        };
        let answer = self.hub.ask::<ModelRequest>(target, params);
        Box::pin(async move {
            match answer.await {
                Ok(response) => CarrierAnswer::Answered(response),
                Err(AskError::Refused { error, .. }) => CarrierAnswer::Refused(error.message),
                Err(error @ AskError::Unreadable(_)) => CarrierAnswer::Refused(error.to_string()),
                Err(AskError::TurnEnded | AskError::Gone) => CarrierAnswer::Gone,
            }
        })
    }

    fn cancel_model(&self, connection: u64, params: ModelCancelParams) -> BoxFuture<'static, ()> {
        let target = AskTarget::Connection {
            connection: ConnectionId(connection),
            thread: Some(params.thread_id.clone()),
        };
        let answer = self.hub.ask::<ModelCancel>(target, params);
        Box::pin(async move {
            // Whatever it answers, its stream is over.
            let _ = answer.await;
        })
    }

    fn is_followed(&self, thread: &ThreadId) -> bool {
        !self.hub.subscribers(thread).is_empty()
    }

    fn child_appeared(&self, parent: &ThreadId, child: &ThreadId) {
        self.hub.join_child(parent, child);
    }

    fn taken_up<'a>(&'a self, root: &'a ThreadId) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Some(peers) = self.peers.get() {
                peers.taken_up(root).await;
            }
        })
    }
}
