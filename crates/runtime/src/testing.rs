//! Shared by the tests of several modules: who listens to threads, and who a thread is.

use std::fmt;

use engine::{Question, Reply};
use protocol::{DynamicToolCallParams, DynamicToolCallResponse, ServerNotification, SessionMeta, ThreadId};
use serde_json::json;

use crate::audience::{Audience, BoxFuture};

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

pub(crate) fn meta(thread: &str) -> SessionMeta {
    let meta = json!({
        "threadId": thread, "sessionId": thread, "createdAtMs": 1, "cwd": "/w", "originator": "test",
        "cliVersion": "0", "source": "appServer", "modelProvider": "p",
    });
    protocol::from_value(&meta).expect("who a thread is")
}
