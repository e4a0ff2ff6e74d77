//! A plain thread for tests: its identity, its settings, and a silent audience.

use std::sync::Arc;

use oarlock_runtime::{Audience, BoxFuture, Question, Reply, ThreadSettings};
use protocol::{DynamicToolCallParams, DynamicToolCallResponse, ServerNotification, SessionMeta, ThreadId};
use serde_json::json;
use tools::{Bench, BenchOptions};

pub(crate) const THREAD: &str = "019a8b3c-0000-7000-8000-000000000001";
pub(crate) const BEGAN_MS: i64 = 1_763_000_000_000;

#[derive(Debug)]
pub(crate) struct Nobody;

impl Audience for Nobody {
    fn notify<'a>(&'a self, _: &'a ThreadId, _: ServerNotification) -> BoxFuture<'a, ()> {
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

pub(crate) fn meta() -> SessionMeta {
    let meta = json!({
        "threadId": THREAD, "sessionId": THREAD, "createdAtMs": BEGAN_MS, "cwd": "/repo", "originator": "test",
        "cliVersion": "0.1.0", "source": "appServer", "modelProvider": "offline",
    });
    protocol::from_value(&meta).expect("who a thread is")
}

pub(crate) fn settings() -> ThreadSettings {
    ThreadSettings::bare("offline", "/repo")
}

pub(crate) fn bench() -> Arc<Bench> {
    Arc::new(Bench::new(BenchOptions::bare("/bin/sh")))
}
