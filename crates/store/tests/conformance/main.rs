//! Every backend keeps the same promises: each test runs on SQLite, and on a Postgres of its own where one can be
//! started.
#![allow(clippy::expect_used, reason = "a test may panic")]

mod appends;
mod audit;
mod databases;
mod decisions;
mod inputs;
mod owners;
#[allow(unreachable_pub, reason = "the file is a module of the testkit too")]
#[path = "../../../testkit/src/postgres.rs"]
mod postgres;
mod rows;

use std::collections::BTreeMap;

use oarlock_store::{LeaseGrant, NewRecord, NewTask, ReplicaIdentity, TaskCreation, TaskLease, TaskStore};
use protocol::{OperationRecord, RolloutItem, RolloutRecord, ThreadId};
use serde_json::json;

pub(crate) const TTL_MS: i64 = 60_000;

pub(crate) fn thread(name: &str) -> ThreadId {
    ThreadId::new(name)
}

pub(crate) fn replica(id: &str, incarnation: i64) -> ReplicaIdentity {
    let (address, sites) = (format!("ws://{id}"), vec!["here".to_owned()]);
    ReplicaIdentity { id: id.to_owned(), incarnation, address, sites }
}

pub(crate) fn new_task(id: &str, parent: Option<&str>) -> NewTask {
    NewTask {
        id: thread(id),
        parent: parent.map(thread),
        labels: BTreeMap::from([("team".to_owned(), "blue".to_owned())]),
        agent_digest: None,
        placement_id: None,
        site: "here".to_owned(),
        settings: json!({"model": "m"}),
        record_schema: 1,
        priority: 0,
    }
}

pub(crate) async fn create(store: &TaskStore, id: &str, parent: Option<&str>) {
    let created = store.create_task(new_task(id, parent)).await.expect("a task");
    assert!(matches!(created, TaskCreation::Created(_)), "{created:?}");
}

/// A task that a living replica owns.
pub(crate) async fn owned(store: &TaskStore, id: &str, owner: &ReplicaIdentity) -> TaskLease {
    create(store, id, None).await;
    store.renew_replica(owner, TTL_MS).await.expect("a renewal");
    granted(store, id, owner).await
}

pub(crate) async fn granted(store: &TaskStore, id: &str, owner: &ReplicaIdentity) -> TaskLease {
    match store.acquire_task(&thread(id), owner).await.expect("an answer") {
        LeaseGrant::Granted(lease) => lease,
        held => panic!("not granted: {held:?}"),
    }
}

pub(crate) fn plain(text: &str) -> NewRecord {
    NewRecord { payload: json!({"kind": "note", "text": text}).to_string(), operation: None }
}

/// A record as the runtime writes it, from the JSON of its operation.
pub(crate) fn step(ordinal: u64, operation: serde_json::Value) -> NewRecord {
    let operation: OperationRecord = serde_json::from_value(operation).expect("an operation");
    let record = RolloutRecord::Operation { operation: operation.clone() };
    let item = RolloutItem { ordinal, schema: 1, record };
    NewRecord { payload: serde_json::to_string(&item).expect("JSON"), operation: Some(operation) }
}

pub(crate) fn proposed(ordinal: u64, id: &str) -> NewRecord {
    step(
        ordinal,
        json!({
            "state": "proposed", "operationId": id, "type": "function", "tool": "refund", "itemId": "i", "agentPath": ["root"],
            "arguments": {"cents": 4900}, "argumentsDigest": "sha256:aa", "effects": "once",
            "availableDecisions": ["accept", "decline", "respond"], "createdAtMs": 5,
        }),
    )
}
