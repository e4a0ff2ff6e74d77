//! Ids and times that the host makes.

use std::hash::{BuildHasher, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};

use protocol::ThreadId;
use uuid::{Builder, Uuid};

use crate::error::TaskError;

pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// A UUID of version 7: those made later sort later.
pub(crate) fn new_uuid() -> String {
    let random = || RandomState::new().hash_one(0_u8).to_be_bytes();
    let mut tail = [0; 10];
    tail[..8].copy_from_slice(&random());
    tail[8..].copy_from_slice(&random()[..2]);
    Builder::from_unix_timestamp_millis(u64::try_from(now_ms()).unwrap_or(0), &tail).into_uuid().to_string()
}

/// The id in lower case with hyphens, or why it is none.
pub(crate) fn check_thread_id(id: &ThreadId) -> Result<ThreadId, TaskError> {
    match Uuid::try_parse(id.as_str()) {
        Ok(uuid) => Ok(ThreadId::new(uuid.to_string())),
        Err(error) => Err(TaskError::InvalidThreadId(format!("invalid thread id: {error}"))),
    }
}
