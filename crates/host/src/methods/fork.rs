//! Forking: a new task whose records are a copy of another's, by the rule of the journal.

use protocol::{RolloutItem, RolloutRecord, SessionMeta, ThreadForkParams, ThreadId, TurnStatus};
use serde_json::{Value, json};
use store::{LeaseGrant, NewRecord, NewTask, TaskChange, TaskState};

use crate::error::TaskError;
use crate::methods::{new_task, not_started};
use crate::open_runtime::all_records;
use crate::placing::AskedSandbox;
use crate::settings::TaskSettings;
use crate::task_host::TaskHost;

/// Records of one append.
const CHUNK: usize = 256;

impl TaskHost {
    /// The copy as its runtime opens it.
    pub async fn fork_thread(&self, params: &ThreadForkParams, by: &str) -> Result<Value, TaskError> {
        if params.delegation.is_some() {
            let problem = "fork it, then resume the copy with `delegation`".to_owned();
            return Err(TaskError::Field { field: "delegation", problem });
        }
        for (given, field) in
            [(params.initial_items.is_some(), "initialItems"), (params.ephemeral, "ephemeral")]
        {
            if given {
                let problem = "a host forks its own threads, by threadId".to_owned();
                return Err(TaskError::Field { field, problem });
            }
        }
        let source = match &params.path {
            Some(path) => self.recorded(&Self::thread_at(path)?).await?,
            None => self.recorded(&params.thread_id).await?,
        };
        let asked = AskedSandbox::of(params.sandbox, params.config.as_ref());
        self.check_sandbox_of(&source, asked).await?;
        let id = ThreadId::new(self.shared.new_uuid());
        let records = self.copied(&source.id, &id).await?;
        let mut settings = TaskSettings::read(&source.settings);
        settings.override_with(&serde_json::to_value(params).unwrap_or_default());
        let new = NewTask {
            labels: source.labels,
            agent_digest: source.agent_digest,
            placement_id: source.placement_id,
            site: source.site,
            settings: settings.to_value(),
            priority: source.priority,
            ..new_task(id.clone())
        };
        let details = json!({ "from": source.id });
        self.shared.audited(by, "thread/fork", &id, details).create_task(new).await?;
        let copied = self.write_copy(&id, records, source.preview.clone()).await;
        self.shared.early.conceal(&id);
        let opened = match copied {
            Ok(()) => self.open_now(&id).await,
            Err(error) => Err(error),
        };
        self.shared.early.reveal(&id);
        if opened.is_err() {
            self.shared.audited(by, "task/delete", &id, not_started()).delete_task(&id).await?;
        }
        let mut opened: Value = serde_json::from_str(opened?.get()).unwrap_or_default();
        opened["thread"]["turns"] = json!(self.shared.history(&id).await?.turns);
        opened["thread"]["forkedFromId"] = json!(source.id);
        opened["thread"]["preview"] = json!(source.preview);
        Ok(opened)
    }

    /// The records of the source without its identity and its unfinished operations. An unfinished turn is cut off.
    async fn copied(&self, source: &ThreadId, id: &ThreadId) -> Result<Vec<RolloutRecord>, TaskError> {
        let history = self.shared.history(source).await?;
        let Some(meta) = history.meta else {
            return Err(TaskError::NoRecord(source.clone()));
        };
        let meta = SessionMeta {
            thread_id: id.clone(),
            session_id: id.as_str().to_owned(),
            created_at_ms: self.shared.now_ms(),
            forked_from_id: Some(source.clone()),
            ..meta
        };
        let mut records = vec![RolloutRecord::SessionMeta { meta: Box::new(meta) }];
        for record in all_records(&self.shared, source).await? {
            let item = serde_json::from_str::<RolloutItem>(&record.payload);
            let item = item.map_err(|error| TaskError::Unreadable(error.to_string()))?;
            let stays = matches!(
                item.record,
                RolloutRecord::SessionMeta { .. }
                    | RolloutRecord::Metadata { .. }
                    | RolloutRecord::Operation { .. }
            );
            if !stays {
                records.push(item.record);
            }
        }
        if let Some(turn_id) = history.unfinished_turn {
            let (status, error, at_ms) = (TurnStatus::Interrupted, None, self.shared.now_ms());
            records.push(RolloutRecord::TurnEnded { turn_id, status, error, at_ms });
        }
        Ok(records)
    }

    async fn write_copy(
        &self,
        id: &ThreadId,
        records: Vec<RolloutRecord>,
        preview: String,
    ) -> Result<(), TaskError> {
        let store = &self.shared.store;
        let lease = match store.acquire_task(id, &self.shared.replica()).await? {
            LeaseGrant::Granted(lease) => lease,
            LeaseGrant::Held { address, .. } => {
                return Err(TaskError::OwnedElsewhere { thread: id.clone(), address });
            }
        };
        let mut ordinal = 0;
        for chunk in records.chunks(CHUNK) {
            let mut batch = Vec::with_capacity(chunk.len());
            for (record, ordinal) in chunk.iter().zip(ordinal..) {
                let item = RolloutItem { ordinal, schema: 1, record: record.clone() };
                let payload = serde_json::to_string(&item);
                let payload = payload.map_err(|error| TaskError::Unreadable(error.to_string()))?;
                batch.push(NewRecord { payload, operation: None });
            }
            ordinal = store.append(&lease, id, ordinal, batch).await?.next_ordinal;
        }
        let change =
            TaskChange { preview: Some(preview), state: Some(TaskState::Idle), ..TaskChange::default() };
        store.update_task(id, change).await?;
        Ok(())
    }
}
