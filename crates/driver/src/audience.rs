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
    /// Delivers in order. A slow delivery delays this thread and no other.
    fn notify<'a>(&'a self, thread: &'a ThreadId, notification: ServerNotification) -> BoxFuture<'a, ()>;

    /// Asks a client to run its own tool. `Err` says why there is no usable answer. Dropping the future withdraws the
    /// request.
    fn call_tool(
        &self,
        params: DynamicToolCallParams,
    ) -> BoxFuture<'static, Result<DynamicToolCallResponse, String>>;

    /// Asks a question of a tool. `Err` says why there is no answer and never counts as approval. Dropping the future
    /// withdraws the question.
    fn ask(&self, question: Question) -> BoxFuture<'static, Result<Reply, String>>;

    /// Requests fresh ChatGPT tokens from the client that manages them. `Err` says why there are none.
    fn refresh_tokens(
        &self,
        _params: ChatgptAuthTokensRefreshParams,
    ) -> BoxFuture<'static, Result<ChatgptAuthTokensRefreshResponse, String>> {
        Box::pin(std::future::ready(Err("no client keeps tokens".to_owned())))
    }

    /// A thread was opened that no client requested; any client may subscribe.
    fn appeared(&self, _thread: &ThreadId) {}

    /// Such a thread was closed.
    fn left(&self, _thread: &ThreadId) {}
}

/// Prints only the name: printing the fields would add the `Debug` code of all their types to the program.
impl fmt::Debug for dyn Audience + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Audience")
    }
}
