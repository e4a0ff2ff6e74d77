//! The writing end: the size of a write, and what a response waits for.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use oarlock_rpc::{OrderGroup, Outbox, OutboxLimits, OutgoingMessage, drain};
use tokio::io::{AsyncReadExt, AsyncWrite, duplex};

fn plain(text: &str) -> OutgoingMessage {
    OutgoingMessage::Plain { group: Some(OrderGroup(1)), line: format!("{text}\n").into() }
}

/// Counts writes and flushes.
#[derive(Debug, Default)]
struct Counter {
    bytes: usize,
    writes: usize,
    largest: usize,
    flushes: usize,
}

impl AsyncWrite for &mut Counter {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, batch: &[u8]) -> Poll<io::Result<usize>> {
        self.bytes += batch.len();
        self.writes += 1;
        self.largest = self.largest.max(batch.len());
        Poll::Ready(Ok(batch.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.flushes += 1;
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn messages_are_written_in_batches_and_flushed_at_the_end() {
    let (outbox, backlog) = Outbox::open(OutboxLimits::default());
    for _ in 0..1000 {
        outbox.send(plain(&"x".repeat(999))).await.unwrap();
    }
    drop(outbox);
    let mut sink = Counter::default();
    drain(backlog, &mut sink).await.unwrap();
    assert_eq!(sink.bytes, 1_000_000);
    assert!(sink.largest <= 66_000 && sink.writes <= 21, "{sink:?}");
    assert_eq!(sink.flushes, 2, "when nothing waited, and at the end");
}

#[tokio::test]
async fn an_answer_now_leaves_with_the_next_batch_of_a_flood() {
    let (outbox, backlog) = Outbox::open(OutboxLimits::default());
    let line = "x".repeat(2000);
    while outbox.try_send(plain(&line)).is_ok() {}
    assert!(outbox.message_bytes() > 8_000_000, "the queue is full");
    let (mut client, server) = duplex(4096);
    let writer = tokio::spawn(drain(backlog, server));
    let mut some = vec![0; 1000];
    client.read_exact(&mut some).await.unwrap();

    outbox.try_reserve(Vec::new).unwrap().reply_now(b"ANSWER\n".to_vec()).unwrap();
    outbox.close();
    let mut text = String::new();
    client.read_to_string(&mut text).await.unwrap();
    let before = text.find("ANSWER").unwrap();
    assert!(before <= 66_000, "{before} bytes before the answer");
    writer.await.unwrap().unwrap();
}
