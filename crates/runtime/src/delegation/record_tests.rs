//! How far a record may be ahead of the host that keeps it.

use std::sync::Arc;

use protocol::{RolloutRecord, ThreadId, TurnId};
use serde_json::{Value, json};

use super::seat::Seat;
use super::testing::{ScriptedHost, THREAD, terms};
use crate::host_record::HostRecord;
use crate::testing::meta;

/// How many records of this length are handed over before one waits for the host. This host is gone, so whoever waits
/// for it fails.
async fn handed_over(length: usize) -> usize {
    let host = Arc::new(ScriptedHost::default());
    let seat = Arc::new(Seat::new(ThreadId::new(THREAD), terms(&Value::Null), host));
    let mut record = HostRecord::fresh(seat, meta(THREAD));
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
