//! Finished model streams, so that a request that is made again is not paid twice.

use protocol::ThreadId;

use crate::backend::query_one;
use crate::error::StoreError;
use crate::store::TaskStore;

/// A stream that reached its end, without deltas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredStream {
    pub thread: ThreadId,
    pub segment_id: String,
    pub request_digest: String,
    /// Opaque to the store.
    pub events: Vec<u8>,
}

impl TaskStore {
    /// The first one counts.
    pub async fn put_stream(&self, stream: StoredStream) -> Result<(), StoreError> {
        self.work_soon(move |transaction| {
            let stream = stream.clone();
            Box::pin(async move {
                let now = transaction.now_ms().await?;
                let sql = "INSERT INTO model_streams (thread_id, segment_id, request_digest, events, finished_at) \
                           VALUES ($1, $2, $3, $4, $5) ON CONFLICT (segment_id, request_digest) DO NOTHING";
                let values = vec![
                    stream.thread.as_str().into(),
                    stream.segment_id.into(),
                    stream.request_digest.into(),
                    stream.events.into(),
                    now.into(),
                ];
                transaction.execute(sql, values).await.map(drop)
            })
        })
        .await
    }

    /// The stream of this segment, if the request was the same.
    pub async fn stream(
        &self,
        segment_id: &str,
        request_digest: &str,
    ) -> Result<Option<StoredStream>, StoreError> {
        let (segment, digest) = (segment_id.to_owned(), request_digest.to_owned());
        self.work(move |transaction| {
            let (segment, digest) = (segment.clone(), digest.clone());
            Box::pin(async move {
                let sql = "SELECT thread_id, events FROM model_streams WHERE segment_id = $1 AND request_digest = $2";
                let values = vec![segment.as_str().into(), digest.as_str().into()];
                let Some(row) = query_one(transaction, sql, values).await? else { return Ok(None) };
                Ok(Some(StoredStream {
                    thread: ThreadId::new(row.text(0)?),
                    segment_id: segment,
                    request_digest: digest,
                    events: row.bytes(1)?,
                }))
            })
        })
        .await
    }

    /// Removes the streams of a thread, whose turn is over.
    pub async fn forget_streams(&self, thread: &ThreadId) -> Result<(), StoreError> {
        let thread = thread.clone();
        self.work_soon(move |transaction| {
            let thread = thread.clone();
            Box::pin(async move {
                let sql = "DELETE FROM model_streams WHERE thread_id = $1";
                transaction.execute(sql, vec![thread.as_str().into()]).await.map(drop)
            })
        })
        .await
    }
}
