//! How far a record may be ahead of the host that keeps it.

use std::sync::Arc;

use protocol::{OperationId, OperationRecord, RolloutRecord, ThreadId, TurnId};
use serde_json::{Value, json};

use super::session::HostSession;
use super::testing::{ScriptedHost, THREAD, meta, terms};
use crate::host_record::HostRecord;

/// How many records of this length are sent before one waits for the host. This host is gone, so waiting fails.
async fn sent_ahead(length: usize) -> usize {
    let host = Arc::new(ScriptedHost::default());
    let session = Arc::new(HostSession::new(ThreadId::new(THREAD), terms(&Value::Null), host));
    let mut record = HostRecord::fresh(session, meta(THREAD));
    let context = json!("x".repeat(length));
    let record_of = RolloutRecord::TurnContext { turn_id: TurnId::new("u1"), context };
    let mut count = 0;
    while record.write(1, std::slice::from_ref(&record_of)).await.is_ok() {
        count += 1;
    }
    count
}

#[tokio::test]
async fn a_record_is_ahead_by_a_limited_number_of_appends_and_bytes() {
    assert_eq!(sent_ahead(100).await, 64);
    assert_eq!(sent_ahead(1_000_000).await, 5);
    // One record is always sent, however large.
    assert_eq!(sent_ahead(10_000_000).await, 1);
}

fn started() -> RolloutRecord {
    let operation_id = OperationId::new("op");
    let operation =
        OperationRecord::Started { operation_id, attempt: 1, executor: "runtime".to_owned(), epoch: None };
    RolloutRecord::Operation { operation }
}

/// Another host may have the thread by the time the acknowledgement arrives.
#[tokio::test]
async fn an_effect_begins_only_while_the_lease_of_the_host_holds() {
    let host = Arc::new(ScriptedHost::default());
    let session = Arc::new(HostSession::new(ThreadId::new(THREAD), terms(&Value::Null), host.clone()));
    let mut record = HostRecord::fresh(session, meta(THREAD));
    *host.valid_for_ms.lock() = Some(60_000);
    assert!(record.write(1, &[started()]).await.is_ok());
    *host.valid_for_ms.lock() = Some(0);
    let refused = record.write(2, &[started()]).await.map_err(|error| error.to_string());
    assert!(refused.as_ref().is_err_and(|text| text.contains("fenced")), "{refused:?}");
    *host.valid_for_ms.lock() = Some(60_000);
    assert!(record.write(3, &[started()]).await.is_err(), "nothing more begins here");
}
