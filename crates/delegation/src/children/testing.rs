//! A parent's record for tests, and what is read from it.

use engine::{operation_of, subagent_notification};
use journal::{HistoryBuilder, JournalEntry, ThreadHistory};
use protocol::{
    DynamicToolCallOutputContentItem, FunctionCallOutputBody, ItemId, OperationId, OperationRecord,
    OperationType, ResponseItem, RolloutRecord, SessionMeta, SessionSource, ThreadId, ThreadItem,
    ToolEffects, TurnId, TurnStatus,
};
use serde_json::{Value, json};

use crate::testing;

pub(super) const PARENT: &str = "parent";

#[derive(Debug, Clone)]
pub(super) struct Story {
    records: Vec<RolloutRecord>,
    turn: TurnId,
}

impl Story {
    /// A parent in its first turn, `u1`.
    pub(super) fn new() -> Self {
        let meta = Box::new(meta(PARENT, SessionSource::AppServer));
        Self { records: vec![RolloutRecord::SessionMeta { meta }], turn: TurnId::new("") }.turn("u1")
    }

    pub(super) fn turn(mut self, id: &str) -> Self {
        self.turn = TurnId::new(id);
        self.with(RolloutRecord::TurnStarted { turn_id: TurnId::new(id), at_ms: 1 })
    }

    pub(super) fn end(self) -> Self {
        let turn_id = self.turn.clone();
        self.with(RolloutRecord::TurnEnded { turn_id, status: TurnStatus::Completed, error: None, at_ms: 2 })
    }

    pub(super) fn with(mut self, record: RolloutRecord) -> Self {
        self.records.push(record);
        self
    }

    /// A call whose operation has started.
    pub(super) fn begins(self, call: &str) -> Self {
        let item = json!({
            "type": "function_call", "call_id": call, "name": "spawn_agent", "arguments": "{}",
        });
        let proposed = OperationRecord::Proposed {
            operation_id: self.operation(call),
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
        let (operation_id, attempt, executor) = (self.operation(call), 1, "runtime".to_owned());
        let started = OperationRecord::Started { operation_id, attempt, executor, epoch: None };
        self.hears(serde_json::from_value(item).expect("a call"))
            .with(RolloutRecord::Operation { operation: proposed })
            .with(RolloutRecord::Operation { operation: started })
    }

    /// A child with a nickname, in this process or, with the prefix `host:`, at the host.
    pub(super) fn spawns(self, call: &str, child: &str) -> Self {
        let output = json!({ "agent_id": child, "nickname": format!("{child} by name") }).to_string();
        let runs_at_host = child.starts_with("host:");
        let begun = self.begins(call);
        let ended = if runs_at_host { begun } else { begun.finishes(call, true, None) };
        ended.uses("spawnAgent", call, child, ("completed", "pendingInit")).answers(call, output)
    }

    /// An item of an agent tool, with its status and the child's.
    pub(super) fn uses(self, tool: &str, call: &str, child: &str, stood: (&str, &str)) -> Self {
        self.uses_from(PARENT, tool, (call, child), stood)
    }

    pub(super) fn uses_from(
        self,
        sender: &str,
        tool: &str,
        (call, child): (&str, &str),
        (status, state): (&str, &str),
    ) -> Self {
        let states = match state {
            "" => json!({}),
            state => json!({ child: { "status": state, "message": null } }),
        };
        let item: ThreadItem = serde_json::from_value(json!({
            "type": "collabAgentToolCall", "id": call, "tool": tool, "status": status,
            "senderThreadId": sender, "receiverThreadIds": [child], "prompt": null, "model": null,
            "reasoningEffort": null, "agentsStates": states,
        }))
        .expect("an item");
        let turn_id = self.turn.clone();
        self.with(RolloutRecord::ThreadItem { turn_id, item })
    }

    pub(super) fn finishes(self, call: &str, success: bool, output: Option<&str>) -> Self {
        let operation_id = self.operation(call);
        self.finishes_as(operation_id, success, output)
    }

    /// The end of an operation of another turn.
    pub(super) fn finishes_as(self, operation_id: OperationId, success: bool, output: Option<&str>) -> Self {
        let text = |text: &str| DynamicToolCallOutputContentItem::InputText { text: text.to_owned() };
        let output = output.map(text).into_iter().collect();
        let operation =
            OperationRecord::Finished { operation_id, attempt: 1, success, output, output_digest: None };
        self.with(RolloutRecord::Operation { operation })
    }

    pub(super) fn answers(self, call: &str, output: String) -> Self {
        let (call_id, output) = (call.to_owned(), FunctionCallOutputBody::Text(output));
        self.hears(ResponseItem::FunctionCallOutput { call_id, output })
    }

    /// A report between two turns.
    pub(super) fn tells(self, child: &str, status: &Value) -> Self {
        let item = subagent_notification(child, None, status);
        self.with(RolloutRecord::ResponseItem { turn_id: None, item })
    }

    fn hears(self, item: ResponseItem) -> Self {
        let turn_id = Some(self.turn.clone());
        self.with(RolloutRecord::ResponseItem { turn_id, item })
    }

    pub(super) fn operation(&self, call: &str) -> OperationId {
        operation_of(&ThreadId::new(PARENT), &self.turn, call)
    }

    pub(super) fn records(&self) -> &[RolloutRecord] {
        &self.records
    }

    pub(super) fn history(&self) -> ThreadHistory {
        let mut builder = HistoryBuilder::new(Some(ThreadId::new(PARENT)));
        for (record, seq) in self.records.iter().zip(1..) {
            builder.add(JournalEntry { seq, at_ms: 1, record: record.clone().into() });
        }
        builder.finish()
    }
}

pub(super) fn meta(thread: &str, source: SessionSource) -> SessionMeta {
    SessionMeta { session_id: PARENT.to_owned(), source, ..testing::meta(thread) }
}
