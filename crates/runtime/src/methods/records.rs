//! `thread/records/list`.

use journal::JournalError;
use protocol::{ThreadRecordsListParams, ThreadRecordsListResponse};

use crate::error::RuntimeError;
use crate::runtime::Runtime;
use driver::check_thread_id;

impl Runtime {
    /// Of a thread whose record is here. Reading does not load it.
    pub async fn list_records(
        &self,
        params: ThreadRecordsListParams,
    ) -> Result<ThreadRecordsListResponse, RuntimeError> {
        let id = check_thread_id(&params.thread_id)?;
        match self.state.on_disk(move |store| store.list_records(&params)).await? {
            Err(JournalError::NotFound(_)) => Err(RuntimeError::NoRecord(id)),
            page => Ok(page?),
        }
    }
}
