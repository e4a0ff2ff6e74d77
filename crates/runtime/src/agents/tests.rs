use journal::{HistoryBuilder, JournalEntry};
use protocol::{
    ItemId, OperationId, OperationRecord, OperationType, RolloutRecord, ThreadId, ToolEffects, TurnId,
};
use serde_json::{Value, json};

use driver::recover;

/// The records of a spawn call: proposed and started, and answered if the child is at the host.
fn spawn_records(call: &str, output: Option<&str>) -> Vec<RolloutRecord> {
    let operation_id = OperationId::new(format!("r:u1:{call}"));
    let item = |item: Value| RolloutRecord::ResponseItem {
        turn_id: Some(TurnId::new("u1")),
        item: serde_json::from_value(item).expect("an item"),
    };
    let proposed = OperationRecord::Proposed {
        operation_id: operation_id.clone(),
        kind: OperationType::Delegation,
        tool: "spawn_agent".to_owned(),
        namespace: None,
        item_id: ItemId::new(call),
        agent_path: vec!["root".to_owned()],
        arguments: json!({}),
        arguments_digest: String::new(),
        effects: ToolEffects::Idempotent,
        available_decisions: Vec::new(),
        reason: None,
        tool_set_digest: None,
        agent_digest: None,
        session_keys: None,
        changes: None,
        created_at_ms: 1,
    };
    let (attempt, executor) = (1, "runtime".to_owned());
    let started = OperationRecord::Started { operation_id, attempt, executor, epoch: None };
    let called = json!({"type": "function_call", "call_id": call, "name": "spawn_agent", "arguments": "{}"});
    let answered = |output: &str| json!({"type": "function_call_output", "call_id": call, "output": output});
    let mut records = vec![
        item(called),
        RolloutRecord::Operation { operation: proposed },
        RolloutRecord::Operation { operation: started },
    ];
    records.extend(output.map(|output| item(answered(output))));
    records
}

#[test]
fn a_restart_keeps_a_placed_child_and_ends_one_that_was_never_placed() {
    let mut records = vec![RolloutRecord::TurnStarted { turn_id: TurnId::new("u1"), at_ms: 1 }];
    records.extend(spawn_records("c1", Some(r#"{"agent_id": "host:x"}"#)));
    records.extend(spawn_records("c2", None));
    let mut builder = HistoryBuilder::new(Some(ThreadId::new("r")));
    for (record, seq) in records.into_iter().zip(1..) {
        builder.add(JournalEntry { seq, at_ms: 1, record: record.into() });
    }
    let recovered = recover(&mut builder.finish(), 9);
    let operations: Vec<_> =
        recovered.iter().filter(|record| matches!(record, RolloutRecord::Operation { .. })).collect();
    let operation_id = OperationId::new("r:u1:c2");
    let operation = OperationRecord::Unknown { operation_id, attempt: 1 };
    assert_eq!(operations, [&RolloutRecord::Operation { operation }]);
}
