//! A client that stops reading while a model streams: the stream waits, memory stays bounded, nothing is lost. In its
//! own file, so that the process's memory is this test's.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use oarlock_rpc::{
    Closed, DeltaKey, FrameLimits, FrameReader, Incoming, OrderGroup, Outbox, OutboxLimits, OutgoingMessage,
    Render, drain, notification, parse,
};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, duplex};

const PIECE_BYTES: usize = 1000;
/// Five times the capacity of the outbox.
const PIECES: usize = 40_000;

#[derive(Serialize, Deserialize)]
struct Params<'a> {
    delta: &'a str,
}

/// Every piece is different, so that a lost, repeated or misplaced one is detected.
fn piece(number: usize) -> String {
    let mut text = number.to_string();
    text.push_str(&".".repeat(PIECE_BYTES - text.len()));
    text
}

async fn stream(outbox: Outbox) -> Result<(), Closed> {
    let key = DeltaKey { group: OrderGroup(1), stream: "item".into() };
    let render: Render =
        Arc::new(|text| notification("a/delta", &Params { delta: text }).unwrap_or_default());
    for number in 0..PIECES {
        let message =
            OutgoingMessage::Delta { key: key.clone(), text: piece(number), render: render.clone() };
        outbox.send(message).await?;
    }
    Ok(())
}

/// Reads to the end and checks the text. Returns the number of lines.
async fn read(from: impl AsyncRead + Unpin) -> usize {
    let mut reader = FrameReader::new(from, FrameLimits::default());
    let (mut lines, mut next) = (0, 0);
    while let Some(frame) = reader.next().await {
        let Incoming::Notification(delta) = parse(frame.unwrap()).unwrap() else { panic!("a notification") };
        let params = delta.params.unwrap();
        let params: Params<'_> = serde_json::from_str(params.get()).unwrap();
        for text in params.delta.as_bytes().chunks(PIECE_BYTES) {
            assert_eq!(text, piece(next).as_bytes());
            next += 1;
        }
        lines += 1;
    }
    assert_eq!(next, PIECES);
    lines
}

/// Memory of this process, in bytes. Only on Linux.
fn resident_bytes() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.parse::<usize>().ok().map(|kilobytes| kilobytes * 1024)
}

#[tokio::test(start_paused = true)]
async fn a_stream_waits_for_a_slow_reader() {
    let limits = OutboxLimits::default();
    let (outbox, backlog) = Outbox::open(limits);
    let (client, server) = duplex(4096);
    let before = resident_bytes();
    let writer = tokio::spawn(drain(backlog, server));
    let mut producer = tokio::spawn(stream(outbox.clone()));

    // Time is paused: the minute passes only when nothing can progress.
    let stopped = tokio::time::timeout(Duration::from_secs(60), &mut producer).await;
    assert!(stopped.is_err(), "the stream waits");
    let held = outbox.message_bytes();
    assert!(held <= limits.max_message_bytes && held > limits.max_message_bytes - 2 * PIECE_BYTES, "{held}");
    if let (Some(before), Some(now)) = (before, resident_bytes()) {
        let grown = now.saturating_sub(before);
        assert!(grown <= limits.max_message_bytes + 1024 * 1024, "grown by {grown} bytes");
    }

    // A response does not wait for the reader.
    outbox
        .try_reserve(Vec::new)
        .unwrap()
        .reply_now(b"{\"method\":\"a/delta\",\"params\":{\"delta\":\"\"}}\n".to_vec())
        .unwrap();
    drop(outbox);
    let lines = read(client).await;
    assert!(lines < PIECES / 20, "{lines} lines: what waited was merged");
    producer.await.unwrap().unwrap();
    writer.await.unwrap().unwrap();
}
