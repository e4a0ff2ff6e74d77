//! The clients of a thread: they get its notifications and answer its questions.

use std::fmt;

use engine::{Question, Reply};
pub use futures_util::future::BoxFuture;
use protocol::{
    ChatgptAuthTokensRefreshParams, ChatgptAuthTokensRefreshResponse, DynamicToolCallParams,
    DynamicToolCallResponse, ServerNotification, ThreadId,
};

/// The clients of a thread, as the runtime sees them.
pub trait Audience: Send + Sync {
    /// Delivers in order. Taking long slows this thread down and no other.
    fn tell<'a>(&'a self, thread: &'a ThreadId, notification: ServerNotification) -> BoxFuture<'a, ()>;

    /// Asks for a client's own tool to be run. `Err` says why there is no usable answer. Dropping the future withdraws
    /// the question.
    fn call_tool(
        &self,
        params: DynamicToolCallParams,
    ) -> BoxFuture<'static, Result<DynamicToolCallResponse, String>>;

    /// Asks what a tool wants to know. `Err` says why there is no answer, which is never a yes. Dropping the future
    /// withdraws the question.
    fn ask(&self, question: Question) -> BoxFuture<'static, Result<Reply, String>>;

    /// Asks the client that keeps its own ChatGPT tokens for fresh ones. `Err` says why there are none.
    fn refresh_tokens(
        &self,
        _params: ChatgptAuthTokensRefreshParams,
    ) -> BoxFuture<'static, Result<ChatgptAuthTokensRefreshResponse, String>> {
        Box::pin(std::future::ready(Err("no client keeps tokens".to_owned())))
    }

    /// A thread that no client asked for is there, and everybody may listen.
    fn appeared(&self, _thread: &ThreadId) {}

    /// Such a thread was put away.
    fn left(&self, _thread: &ThreadId) {}
}

/// The name alone: to print the values behind it, the program would carry the `Debug` code of all their types.
impl fmt::Debug for dyn Audience + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Audience")
    }
}
