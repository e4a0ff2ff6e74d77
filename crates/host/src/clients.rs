//! The clients of the host, as tasks see them.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use protocol::{Operation, ServerNotification, ThreadId};
use serde_json::value::RawValue;

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// An answer to a question about a thread.
#[derive(Debug)]
pub struct ClientReply {
    /// The name of the connection that answered.
    pub by: String,
    pub result: Box<RawValue>,
}

/// Whoever is connected and follows threads.
pub trait HostClients: fmt::Debug + Send + Sync {
    /// Passes a notification of a runtime on, byte for byte where that may be.
    fn relay<'a>(&'a self, thread: &'a ThreadId, method: &'a str, params: &'a RawValue) -> BoxFuture<'a, ()>;

    /// Tells of something that the host itself found.
    fn notify<'a>(&'a self, thread: &'a ThreadId, notification: ServerNotification) -> BoxFuture<'a, ()>;

    /// To those who follow the task, and those who follow all.
    fn operation_updated(&self, operation: Operation) -> BoxFuture<'_, ()>;

    /// Asks the subscribers of the thread, also those who come later, until one answers. Nothing when the question
    /// cannot be answered any more. Dropping the future takes the question back.
    fn ask(
        &self,
        thread: &ThreadId,
        method: &str,
        params: Box<RawValue>,
    ) -> BoxFuture<'static, Option<ClientReply>>;

    /// Calls a tool at one connection that follows the thread: never at two. Nothing when that connection ends before
    /// it answers.
    fn call_tool(&self, thread: &ThreadId, params: Box<RawValue>) -> BoxFuture<'static, Option<ClientReply>>;

    /// Followers of the parent follow the child too.
    fn child_appeared(&self, parent: &ThreadId, child: &ThreadId);
}
