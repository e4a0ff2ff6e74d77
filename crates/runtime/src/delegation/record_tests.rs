//! How far a record may be ahead of the host that keeps it.

use std::sync::Arc;

use protocol::{RolloutRecord, SessionMeta, SessionSource, ThreadId, TurnId};
use serde_json::{Value, json};

use super::seat::Seat;
use super::testing::{ScriptedHost, THREAD, terms};
use crate::host_record::HostRecord;

fn meta() -> SessionMeta {
    SessionMeta {
        thread_id: ThreadId::new(THREAD),
        session_id: THREAD.to_owned(),
        created_at_ms: 1,
        cwd: "/work".to_owned(),
        originator: "test".to_owned(),
        cli_version: "1".to_owned(),
        source: SessionSource::AppServer,
        model_provider: "p".to_owned(),
        model: None,
        base_instructions: None,
        developer_instructions: None,
        forked_from_id: None,
        thread_source: None,
        agent_nickname: None,
        agent_role: None,
        git_info: None,
        dynamic_tools: None,
    }
}

/// How many records of this length are handed over before one waits for the host. This host is gone, so whoever waits
/// for it fails.
async fn handed_over(length: usize) -> usize {
    let host = Arc::new(ScriptedHost::default());
    let seat = Arc::new(Seat::new(ThreadId::new(THREAD), terms(&Value::Null), host));
    let mut record = HostRecord::fresh(seat, meta());
    let context = json!("x".repeat(length));
    let record_of = RolloutRecord::TurnContext { turn_id: TurnId::new("u1"), context };
    let mut count = 0;
    while record.write(1, std::slice::from_ref(&record_of)).await.is_ok() {
        count += 1;
    }
    count
}

#[tokio::test]
async fn a_record_is_ahead_by_so_many_appends_and_so_many_bytes() {
    assert_eq!(handed_over(100).await, 64);
    assert_eq!(handed_over(1_000_000).await, 5);
    // However large, one is always handed over.
    assert_eq!(handed_over(10_000_000).await, 1);
}
