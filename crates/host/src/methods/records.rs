//! `thread/records/list`: the records of a thread, as the store has them.

use journal::{JournalError, RecordsPage};
use protocol::{ThreadRecordsListParams, ThreadRecordsListResponse};

use crate::error::TaskError;
use crate::ids::check_thread_id;
use crate::task_host::TaskHost;

impl TaskHost {
    /// Also of a thread that is archived. Nothing is started for whoever reads them.
    pub async fn list_records(
        &self,
        params: &ThreadRecordsListParams,
    ) -> Result<ThreadRecordsListResponse, TaskError> {
        let thread = check_thread_id(&params.thread_id)?;
        let row = self.shared.store.task(&thread).await?;
        let row = row.ok_or_else(|| TaskError::UnknownThread(thread.clone()))?;
        let page = RecordsPage::of(params, row.next_ordinal).map_err(refused)?;
        let limit = u32::try_from(page.ordinals.end - page.ordinals.start).unwrap_or(u32::MAX);
        let records = self.shared.store.records(&thread, page.ordinals.start, limit).await?;
        page.filled(records.into_iter().map(|record| (record.ordinal, record.payload)).collect())
            .map_err(refused)
    }
}

fn refused(error: JournalError) -> TaskError {
    match error {
        JournalError::InvalidCursor(cursor) => TaskError::InvalidCursor(cursor),
        other => TaskError::Unreadable(other.to_string()),
    }
}
