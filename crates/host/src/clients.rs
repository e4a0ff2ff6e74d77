//! The clients of the host, as tasks see them.

use std::fmt;

use protocol::{
    DynamicToolCallParams, DynamicToolCallResponse, ModelCancelParams, ModelRequestParams,
    ModelRequestResponse, Operation, ServerNotification, Task, ThreadId,
};
use serde_json::value::RawValue;

pub use crate::link::BoxFuture;

/// An answer to a question about a thread.
#[derive(Debug)]
pub struct ClientReply {
    /// The name of the connection that answered.
    pub by: String,
    /// Nothing when the client answered with an error, which is a no.
    pub result: Option<Box<RawValue>>,
}

/// A tool that a call needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedTool {
    /// The task, whose providers run the calls of its children too.
    pub task: ThreadId,
    pub name: String,
    pub namespace: Option<String>,
    /// As declared when the task was started.
    pub schema_digest: Option<String>,
}

/// A connection that runs a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolProvider {
    pub connection: u64,
    /// For the attempt's row.
    pub name: String,
}

/// How a call at a client ended.
#[derive(Debug)]
pub enum ToolCallEnd {
    Answered(DynamicToolCallResponse),
    /// The connection had ended before the call could be sent.
    NotSent,
    /// It ended before it answered.
    Gone,
}

/// The answer of a client to a model request that it is asked to carry.
#[derive(Debug)]
pub enum CarrierAnswer {
    Answered(ModelRequestResponse),
    /// It answered with an error, or with what cannot be read.
    Refused(String),
    /// Its connection ended before it answered.
    Gone,
}

/// Whoever is connected and follows threads.
pub trait HostClients: Send + Sync {
    /// Passes a notification of a runtime on, byte for byte where that may be, with the last record of its thread.
    fn relay<'a>(
        &'a self,
        thread: &'a ThreadId,
        method: &'a str,
        params: &'a RawValue,
        ordinal: Option<u64>,
    ) -> BoxFuture<'a, ()>;

    /// Tells of something that the host itself found.
    fn notify<'a>(&'a self, thread: &'a ThreadId, notification: ServerNotification) -> BoxFuture<'a, ()>;

    /// To those who follow the task, and those who follow all.
    fn operation_updated(&self, operation: Operation) -> BoxFuture<'_, ()>;

    /// Whether anybody follows all tasks.
    fn is_watched(&self) -> bool;

    /// To those who follow all tasks.
    fn task_updated(&self, task: Task) -> BoxFuture<'_, ()>;

    /// To those who follow the task or start it, and those who follow all.
    fn placement_changed<'a>(
        &'a self,
        thread: &'a ThreadId,
        notification: ServerNotification,
    ) -> BoxFuture<'a, ()>;

    /// Asks the subscribers of the thread, also those who come later, until one answers. Nothing when the question
    /// cannot be answered any more. Dropping the future takes the question back.
    fn ask(
        &self,
        thread: &ThreadId,
        method: &str,
        params: Box<RawValue>,
    ) -> BoxFuture<'static, Option<ClientReply>>;

    /// A connection that runs the tool. Waits until there is one.
    fn provider(&self, tool: WantedTool) -> BoxFuture<'static, ToolProvider>;

    /// Calls a tool at this connection and nowhere else.
    fn call_tool(
        &self,
        provider: &ToolProvider,
        thread: &ThreadId,
        params: DynamicToolCallParams,
    ) -> BoxFuture<'static, ToolCallEnd>;

    /// The connection that carries the model requests of the task. Waits until there is one.
    fn carrier(&self, _task: &ThreadId) -> BoxFuture<'static, u64> {
        Box::pin(std::future::pending())
    }

    /// Sends a model request to this connection and nowhere else.
    fn ask_model(&self, _connection: u64, _params: ModelRequestParams) -> BoxFuture<'static, CarrierAnswer> {
        Box::pin(std::future::ready(CarrierAnswer::Gone))
    }

    /// Tells the connection that nobody wants the rest of its answer.
    fn cancel_model(&self, _connection: u64, _params: ModelCancelParams) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Whether somebody follows the thread here.
    fn is_followed(&self, thread: &ThreadId) -> bool;

    /// Followers of the parent follow the child too.
    fn child_appeared(&self, parent: &ThreadId, child: &ThreadId);

    /// The task has its driver here now, which has not done anything yet. Whoever followed it at another host follows it
    /// here.
    fn taken_up<'a>(&'a self, _root: &'a ThreadId) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// The name alone: to print the values behind it, the program would carry the `Debug` code of all their types.
impl fmt::Debug for dyn HostClients + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostClients")
    }
}
