//! The writing end of one connection.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncWrite, AsyncWriteExt};

use crate::encode::EncodedLine;
use crate::lanes::HeldBytes;
use crate::queue::{NextBatch, OutboxQueue};

/// The approximate size of one write.
const BATCH_BYTES: usize = 64 * 1024;

/// The queued messages. Dropping it closes the connection: they are lost, and senders get `Closed`.
#[derive(Debug)]
pub struct Backlog {
    queue: Arc<OutboxQueue>,
    /// Taken, and not yet known to be written.
    in_flight: HeldBytes,
}

impl Backlog {
    pub(crate) fn new(queue: Arc<OutboxQueue>) -> Self {
        Self { queue, in_flight: HeldBytes::default() }
    }

    /// The next line, for a transport that sends messages one by one; `None` when the outbox is closed and empty.
    /// Calling it again confirms that the last line was written. Cancel-safe.
    pub async fn next(&mut self) -> Option<EncodedLine> {
        let mut line = EncodedLine::new();
        self.take(1, &mut line).await.then_some(line)
    }

    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Fills `batch` with the next lines. False at the end.
    async fn take(&mut self, max_bytes: usize, batch: &mut EncodedLine) -> bool {
        batch.clear();
        // A delta that cannot be rendered produces no bytes, but frees its place.
        while batch.is_empty() {
            self.queue.settle(std::mem::take(&mut self.in_flight));
            let entries = match self.queue.take(max_bytes) {
                NextBatch::Entries(entries) => entries,
                NextBatch::Nothing => {
                    self.queue.wait_for_arrival().await;
                    continue;
                }
                NextBatch::End => return false,
            };
            for entry in entries {
                self.in_flight.add(&entry);
                append(batch, entry.into_line());
            }
        }
        true
    }
}

impl Drop for Backlog {
    fn drop(&mut self) {
        self.queue.kill();
    }
}

/// Moves a long line instead of copying it, and drops the buffer of an earlier long one.
fn append(batch: &mut EncodedLine, mut line: EncodedLine) {
    let usable = BATCH_BYTES / 2..4 * BATCH_BYTES;
    if line.len() >= BATCH_BYTES && batch.len() < line.len() {
        line.splice(..0, batch.iter().copied());
        *batch = line;
    } else if batch.is_empty() && !usable.contains(&batch.capacity()) {
        *batch = line;
    } else {
        batch.extend_from_slice(&line);
    }
}

/// Writes everything that is sent on a connection, several messages at once, and flushes when the queue is empty. Ends
/// when the outbox is closed and empty, or with the first write error.
pub async fn drain(mut backlog: Backlog, mut sink: impl AsyncWrite + Unpin) -> io::Result<()> {
    let mut batch = EncodedLine::new();
    while backlog.take(BATCH_BYTES, &mut batch).await {
        sink.write_all(&batch).await?;
        if backlog.is_empty() {
            sink.flush().await?;
        }
    }
    sink.flush().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_follow_each_other_whatever_their_length() {
        let lengths = [1, 10, BATCH_BYTES, 3, 5 * BATCH_BYTES, 2 * BATCH_BYTES, 0, 7];
        let (mut batch, mut expected) = (EncodedLine::new(), EncodedLine::new());
        for (fill, length) in (0..).zip(lengths) {
            append(&mut batch, vec![fill; length]);
            expected.extend(std::iter::repeat_n(fill, length));
            assert!(batch == expected, "{length}");
        }
    }
}
