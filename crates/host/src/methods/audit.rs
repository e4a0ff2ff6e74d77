//! The audit trail: `audit/list`, and the entries of what is done here. Nothing is done whose entry cannot be stored.

use protocol::{AuditListParams, AuditListResponse, AuditRecord, ThreadId};
use serde_json::{Value, json};
use store::{AuditEntry, AuditFilter, AuditRow, AuditedChange, StoreError};

use crate::error::TaskError;
use crate::ids::check_thread_id;
use crate::shared::HostShared;
use crate::task_host::TaskHost;

const DEFAULT_LIMIT: u32 = 50;

impl HostShared {
    /// The next change, with the entry that somebody did this to a task.
    pub(crate) fn audited(&self, who: &str, action: &str, task: &ThreadId, details: Value) -> AuditedChange {
        let subject = task.as_str();
        self.audited_part(who, action, (subject, Some(task)), details)
    }

    /// As [`HostShared::audited`], for a part of a task or for something that belongs to none.
    pub(crate) fn audited_part(
        &self,
        who: &str,
        action: &str,
        (subject, task): (&str, Option<&ThreadId>),
        details: Value,
    ) -> AuditedChange {
        self.store.audited(AuditEntry {
            who: who.to_owned(),
            action: action.to_owned(),
            subject: subject.to_owned(),
            task: task.cloned(),
            details,
        })
    }

    /// The name of this host where it acts by itself.
    pub(crate) fn own_name(&self) -> String {
        format!("host:{}", self.replica().id)
    }
}

impl TaskHost {
    /// To be called before the method is carried out.
    pub(crate) async fn note(&self, who: &str, action: &str, task: &ThreadId) -> Result<(), StoreError> {
        self.shared.audited(who, action, task, json!({})).note().await
    }

    /// Newest first.
    pub async fn list_audit(&self, params: AuditListParams) -> Result<AuditListResponse, TaskError> {
        let task = match &params.thread_id {
            // The trail of a task outlives the task.
            Some(thread) => {
                let thread = check_thread_id(thread)?;
                let row = self.shared.store.task(&thread).await?;
                Some(row.map_or(thread, |row| row.root))
            }
            None => None,
        };
        let invalid = |cursor: &String| TaskError::InvalidCursor(cursor.clone());
        let number = |cursor: &String| cursor.parse::<i64>().map_err(|_| invalid(cursor));
        let filter = AuditFilter {
            task,
            since_ms: params.since_ms,
            before: params.cursor.as_ref().map(number).transpose()?,
            limit: params.limit.unwrap_or(DEFAULT_LIMIT),
        };
        let page = self.shared.store.audit(filter).await?;
        Ok(AuditListResponse {
            data: page.rows.into_iter().map(shown).collect(),
            next_cursor: page.before.map(|number| number.to_string()),
        })
    }

    /// Removes entries that are older. Gives their number.
    pub async fn forget_audit_older_than(&self, age_ms: i64) -> Result<u64, TaskError> {
        Ok(self.shared.store.forget_audit(self.shared.now_ms() - age_ms).await?)
    }
}

fn shown(row: AuditRow) -> AuditRecord {
    let AuditEntry { who, action, subject, task, details } = row.entry;
    AuditRecord { number: row.number, at_ms: row.at_ms, who, action, subject, task_id: task, details }
}
