//! For tests: somebody who listens to threads.

use std::fmt;

use engine::{Question, Reply};
use protocol::{DynamicToolCallParams, DynamicToolCallResponse, ServerNotification, ThreadId};

use driver::{Audience, BoxFuture};

/// Somebody who hears what is told and is never asked.
pub(crate) struct Ear<F>(pub(crate) F);

impl<F> fmt::Debug for Ear<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ear")
    }
}

impl<F: Fn(&ThreadId, ServerNotification) + Send + Sync> Audience for Ear<F> {
    fn tell<'a>(&'a self, thread: &'a ThreadId, notification: ServerNotification) -> BoxFuture<'a, ()> {
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
