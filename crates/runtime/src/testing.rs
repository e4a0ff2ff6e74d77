//! An audience for tests.

use std::fmt;

use engine::{Question, Reply};
use protocol::{DynamicToolCallParams, DynamicToolCallResponse, ServerNotification, ThreadId};

use driver::{Audience, BoxFuture};

/// Passes on every notification and answers no question.
pub(crate) struct NotifyAudience<F>(pub(crate) F);

impl<F> fmt::Debug for NotifyAudience<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NotifyAudience")
    }
}

impl<F: Fn(&ThreadId, ServerNotification) + Send + Sync> Audience for NotifyAudience<F> {
    fn notify<'a>(&'a self, thread: &'a ThreadId, notification: ServerNotification) -> BoxFuture<'a, ()> {
        (self.0)(thread, notification);
        Box::pin(async {})
    }

    fn call_tool(
        &self,
        _: DynamicToolCallParams,
    ) -> BoxFuture<'static, Result<DynamicToolCallResponse, String>> {
        Box::pin(async { Err("nobody is asked here".to_owned()) })
    }

    fn ask(&self, _: Question) -> BoxFuture<'static, Result<Reply, String>> {
        Box::pin(async { Err("nobody is asked here".to_owned()) })
    }
}
