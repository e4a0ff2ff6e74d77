//! A client that sends requests faster than they are answered: every request gets one response, and memory stays
//! bounded.

use std::collections::BTreeMap;

use oarlock_rpc::{
    FrameLimits, FrameReader, Id, Incoming, IncomingRequest, Outbox, OutboxLimits, ReplySlot, drain, error,
    parse, response,
};
use tokio::io::{AsyncRead, AsyncWriteExt, DuplexStream, duplex, split};
use tokio::task::JoinSet;

const REQUESTS: usize = 20_000;

/// The server's peak values.
#[derive(Debug, Default)]
struct Peak {
    open_requests: usize,
    answer_bytes: usize,
}

/// Reads requests like a server: parse, reserve, dispatch.
async fn serve(input: impl AsyncRead + Unpin, outbox: Outbox) -> Peak {
    let mut worst = Peak::default();
    let mut handlers = JoinSet::new();
    let mut reader = FrameReader::new(input, FrameLimits::default());
    while let Some(frame) = reader.next().await {
        let Incoming::Request(request) = parse(frame.unwrap()).unwrap() else { panic!("a request") };
        let id = request.id.clone();
        let slot = outbox.reserve(move || error(Some(&id), -32603, "lost", &()).unwrap()).await.unwrap();
        handlers.spawn(handle(request, slot));
        while handlers.try_join_next().is_some() {}
        worst.open_requests = worst.open_requests.max(outbox.open_requests());
        worst.answer_bytes = worst.answer_bytes.max(outbox.answer_bytes());
    }
    while handlers.join_next().await.is_some() {}
    worst
}

/// Some handlers are slow, some forget to answer, some panic.
async fn handle(request: IncomingRequest, slot: ReplySlot) {
    let Id::Integer(number) = request.id else { panic!("a number") };
    for _ in 0..number % 7 {
        tokio::task::yield_now().await;
    }
    let line = response(&request.id, &"x".repeat(40)).unwrap();
    match number % 1000 {
        1 => panic!("a handler's bug"),
        2 => drop(slot),
        odd if odd % 2 == 1 => slot.reply(line).unwrap(),
        _ => slot.reply_now(line).unwrap(),
    }
}

fn burst() -> Vec<u8> {
    (0..REQUESTS)
        .flat_map(|id| format!("{{\"id\":{id},\"method\":\"a/b\",\"params\":{{}}}}\n").into_bytes())
        .collect()
}

/// How often each request was answered, and how many answers were errors.
async fn answers(from: impl AsyncRead + Unpin) -> (BTreeMap<i64, usize>, usize) {
    let (mut counts, mut errors) = (BTreeMap::new(), 0);
    let mut reader = FrameReader::new(from, FrameLimits::default());
    while let Some(frame) = reader.next().await {
        let id = match parse(frame.unwrap()).unwrap() {
            Incoming::Response(answer) => answer.id,
            Incoming::Error(answer) => {
                errors += 1;
                answer.id.unwrap()
            }
            other => panic!("no answer: {other:?}"),
        };
        let Id::Integer(number) = id else { panic!("a number") };
        *counts.entry(number).or_default() += 1;
    }
    (counts, errors)
}

fn start(limits: OutboxLimits) -> (DuplexStream, tokio::task::JoinHandle<Peak>) {
    let (client, server) = duplex(64 * 1024);
    let (input, output) = split(server);
    let (outbox, backlog) = Outbox::open(limits);
    let served = tokio::spawn(async move {
        let (worst, written) = tokio::join!(serve(input, outbox), drain(backlog, output));
        written.unwrap();
        worst
    });
    (client, served)
}

fn check(counts: &BTreeMap<i64, usize>, errors: usize) {
    assert_eq!(counts.len(), REQUESTS);
    assert!(counts.values().all(|count| *count == 1));
    assert_eq!(errors, 2 * REQUESTS / 1000);
}

#[tokio::test]
async fn every_request_of_a_burst_is_answered_once() {
    let limits = OutboxLimits { max_pending_requests: 64, max_answer_bytes: 64 * 1024, ..Default::default() };
    let (client, served) = start(limits);
    let (from, mut to) = split(client);
    let write = async {
        to.write_all(&burst()).await.unwrap();
        to.shutdown().await.unwrap();
    };
    let ((), (counts, errors)) = tokio::join!(write, answers(from));
    check(&counts, errors);
    let worst = served.await.unwrap();
    assert!(worst.open_requests <= 64, "{worst:?}");
    // Requests that were accepted before the limit was reached may still add their responses.
    assert!(worst.answer_bytes <= 64 * 1024 + 64 * 400, "{worst:?}");
}

#[tokio::test]
async fn a_client_may_write_all_before_it_reads() {
    let (client, served) = start(OutboxLimits::default());
    let (from, mut to) = split(client);
    to.write_all(&burst()).await.unwrap();
    to.shutdown().await.unwrap();
    let (counts, errors) = answers(from).await;
    check(&counts, errors);
    let worst = served.await.unwrap();
    assert!(worst.open_requests <= 1024 && worst.answer_bytes <= 9 * 1024 * 1024, "{worst:?}");
}
