//! Both ends of the outbox: order, fairness, limits, and how it ends.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use oarlock_rpc::{
    Backlog, Closed, DeltaKey, OrderGroup, Outbox, OutboxLimits, OutgoingMessage, Refused, ReplySlot, drain,
};
use tokio::io::{AsyncReadExt, duplex};

/// The cost of one message in addition to its bytes.
const PLACE: usize = 256;

fn plain(text: &str) -> OutgoingMessage {
    OutgoingMessage::Plain { group: Some(OrderGroup(1)), line: format!("{text}\n").into() }
}

fn delta(group: u64, stream: &str, text: &str) -> OutgoingMessage {
    let name = stream.to_owned();
    OutgoingMessage::Delta {
        key: DeltaKey { group: OrderGroup(group), stream: stream.into() },
        text: text.to_owned(),
        render: Arc::new(move |text| format!("{name}={text}\n").into()),
    }
}

fn limits() -> OutboxLimits {
    OutboxLimits::default()
}

fn slot(outbox: &Outbox, name: &'static str) -> ReplySlot {
    outbox.try_reserve(move || format!("{name} unanswered\n").into()).unwrap()
}

/// From this many messages on, deltas are merged.
const PILE: usize = 16;

async fn pile_up(outbox: &Outbox) {
    for _ in 0..PILE {
        let waiting = OutgoingMessage::Plain { group: Some(OrderGroup(9)), line: b"waiting\n".to_vec() };
        outbox.send(waiting).await.unwrap();
    }
}

/// Closes the outbox and takes the queued messages.
async fn rest(outbox: Outbox, mut backlog: Backlog) -> Vec<String> {
    outbox.close();
    let mut lines = Vec::new();
    while let Some(line) = backlog.next().await {
        lines.push(String::from_utf8(line).unwrap().trim_end().to_owned());
    }
    lines
}

/// Whether a future is still pending when nothing else can progress. Time is paused, so the hour passes only then.
async fn waits<F: Future + Unpin>(future: &mut F) -> bool {
    tokio::time::timeout(Duration::from_secs(3600), future).await.is_err()
}

#[tokio::test]
async fn an_ordered_response_follows_earlier_messages() {
    let (outbox, backlog) = Outbox::open(limits());
    let first = slot(&outbox, "first");
    outbox.send(plain("before")).await.unwrap();
    first.reply(b"answer\n".to_vec()).unwrap();
    outbox.send(plain("after")).await.unwrap();
    assert_eq!(rest(outbox, backlog).await, ["before", "answer", "after"]);
}

#[tokio::test]
async fn an_immediate_response_passes_queued_messages_and_is_not_passed() {
    let (outbox, backlog) = Outbox::open(limits());
    let first = slot(&outbox, "first");
    outbox.send(plain("before")).await.unwrap();
    first.reply_now(b"answer\n".to_vec()).unwrap();
    outbox.send(plain("after")).await.unwrap();
    assert_eq!(rest(outbox, backlog).await, ["answer", "before", "after"]);
}

#[tokio::test]
async fn no_message_passes_an_earlier_response() {
    let (outbox, backlog) = Outbox::open(limits());
    for _ in 0..100 {
        slot(&outbox, "x").reply_now(b"answer\n".to_vec()).unwrap();
    }
    outbox.send(plain("begun by the last request")).await.unwrap();
    let lines = rest(outbox, backlog).await;
    assert_eq!(lines.iter().position(|line| line != "answer"), Some(100));
}

#[tokio::test]
async fn an_older_message_gets_its_turn_among_answers() {
    let (outbox, backlog) = Outbox::open(limits());
    outbox.send(plain("old")).await.unwrap();
    outbox.send(plain("older")).await.unwrap();
    for _ in 0..100 {
        slot(&outbox, "x").reply_now(b"answer\n".to_vec()).unwrap();
    }
    let lines = rest(outbox, backlog).await;
    assert_eq!(lines.iter().position(|line| line == "old"), Some(32));
    assert_eq!(lines.iter().position(|line| line == "older"), Some(65));
    assert_eq!(lines.len(), 102);
}

#[tokio::test]
async fn a_merged_delta_does_not_carry_new_text_past_an_answer() {
    let (outbox, backlog) = Outbox::open(limits());
    pile_up(&outbox).await;
    outbox.send(delta(1, "a", "old")).await.unwrap();
    for _ in 0..100 {
        slot(&outbox, "x").reply_now(b"answer\n".to_vec()).unwrap();
    }
    outbox.send(delta(1, "a", " and new")).await.unwrap();
    let lines = rest(outbox, backlog).await;
    assert_eq!(lines.last().unwrap(), "a=old and new");
    assert_eq!(lines.len(), 101 + PILE);
}

#[tokio::test]
async fn deltas_that_wait_are_merged_and_an_answer_in_order_keeps_them_apart() {
    let (outbox, backlog) = Outbox::open(limits());
    pile_up(&outbox).await;
    for text in ["Hel", "lo", ", wörld"] {
        outbox.send(delta(1, "a", text)).await.unwrap();
        outbox.send(delta(2, "b", "#")).await.unwrap();
    }
    slot(&outbox, "x").reply(b"snapshot\n".to_vec()).unwrap();
    outbox.send(delta(1, "a", "!")).await.unwrap();
    outbox.send(plain("item of 1 completed")).await.unwrap();
    outbox.send(delta(1, "a", "late")).await.unwrap();
    let expected = ["a=Hello, wörld", "b=###", "snapshot", "a=!", "item of 1 completed", "a=late"];
    assert_eq!(rest(outbox, backlog).await[PILE..], expected);
}

#[tokio::test(start_paused = true)]
async fn an_empty_delta_frees_its_space() {
    let (outbox, mut backlog) = Outbox::open(OutboxLimits { max_message_bytes: PLACE + 10, ..limits() });
    let key = DeltaKey { group: OrderGroup(1), stream: "a".into() };
    let nothing = OutgoingMessage::Delta { key, text: "x".to_owned(), render: Arc::new(|_| Vec::new()) };
    outbox.send(nothing).await.unwrap();
    let mut waiting = Box::pin(outbox.send(plain("next")));
    assert!(waits(&mut waiting).await);
    let (next, sent) = tokio::join!(backlog.next(), waiting);
    sent.unwrap();
    assert_eq!(next.unwrap(), b"next\n");
}

#[tokio::test]
async fn an_unused_slot_sends_its_response() {
    let (outbox, backlog) = Outbox::open(limits());
    drop(slot(&outbox, "dropped"));
    let held = slot(&outbox, "panicked");
    let handler = tokio::spawn(async move {
        let _held = held;
        panic!("a handler's bug");
    });
    assert!(handler.await.is_err());
    assert_eq!(outbox.open_requests(), 0);
    assert_eq!(rest(outbox, backlog).await, ["dropped unanswered", "panicked unanswered"]);
}

#[tokio::test(start_paused = true)]
async fn a_request_waits_until_one_is_answered() {
    let (outbox, backlog) = Outbox::open(OutboxLimits { max_pending_requests: 2, ..limits() });
    let first = slot(&outbox, "first");
    let second = slot(&outbox, "second");
    assert_eq!(outbox.try_reserve(Vec::new).unwrap_err(), Refused::Full);
    let mut third = Box::pin(outbox.reserve(|| b"third unanswered\n".to_vec()));
    assert!(waits(&mut third).await);
    second.reply_now(b"second\n".to_vec()).unwrap();
    drop(third.await.unwrap());
    first.reply_now(b"first\n".to_vec()).unwrap();
    assert_eq!(rest(outbox, backlog).await, ["second", "third unanswered", "first"]);
}

#[tokio::test(start_paused = true)]
async fn a_request_waits_while_answers_hold_too_much() {
    let (outbox, mut backlog) = Outbox::open(OutboxLimits { max_answer_bytes: 2 * PLACE, ..limits() });
    slot(&outbox, "first").reply_now(b"first\n".to_vec()).unwrap();
    slot(&outbox, "second").reply(b"second\n".to_vec()).unwrap();
    assert_eq!(outbox.try_reserve(Vec::new).unwrap_err(), Refused::Full);
    let mut third = Box::pin(outbox.reserve(Vec::new));
    let mut refusal = Box::pin(outbox.answer(b"busy\n".to_vec()));
    assert!(waits(&mut third).await && waits(&mut refusal).await);
    outbox.try_send(plain("messages have their own budget")).unwrap();
    assert_eq!(backlog.next().await.unwrap(), b"first\n");
    assert!(waits(&mut third).await, "taken is not yet written");
    assert_eq!(backlog.next().await.unwrap(), b"second\n");
    let third = third.await.unwrap();
    refusal.await.unwrap();
    third.reply_now(b"third\n".to_vec()).unwrap();
    assert_eq!(rest(outbox, backlog).await, ["busy", "third", "messages have their own budget"]);
}

#[tokio::test(start_paused = true)]
async fn senders_wait_for_room_in_turn() {
    let (outbox, mut backlog) = Outbox::open(OutboxLimits { max_message_bytes: 3 * PLACE, ..limits() });
    outbox.send(plain("1")).await.unwrap();
    outbox.send(plain("2")).await.unwrap();
    let mut large = Box::pin(outbox.send(plain(&"3".repeat(10 * PLACE))));
    assert!(waits(&mut large).await);
    let mut small = Box::pin(outbox.send(plain("4")));
    assert!(waits(&mut small).await, "a small message does not pass a large one");
    assert_eq!(outbox.try_send(plain("5")), Err(Refused::Full));
    assert_eq!(backlog.next().await.unwrap(), b"1\n");
    assert_eq!(backlog.next().await.unwrap(), b"2\n");
    assert!(waits(&mut large).await, "it waits until it is alone");
    let (next, sent) = tokio::join!(backlog.next(), large);
    sent.unwrap();
    assert_eq!(next.unwrap().len(), 10 * PLACE + 1);
    assert!(waits(&mut small).await);
    let (next, sent) = tokio::join!(backlog.next(), small);
    sent.unwrap();
    assert_eq!(next.unwrap(), b"4\n");
    assert!(rest(outbox.clone(), backlog).await.is_empty());
    assert_eq!((outbox.message_bytes(), outbox.answer_bytes()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn closing_writes_queued_messages_and_allows_open_responses() {
    let (outbox, backlog) = Outbox::open(OutboxLimits { max_message_bytes: 2 * PLACE, ..limits() });
    let open = slot(&outbox, "open");
    outbox.send(plain("queued")).await.unwrap();
    let mut waiting = Box::pin(outbox.send(plain(&"x".repeat(PLACE))));
    assert!(waits(&mut waiting).await);
    outbox.close();
    assert_eq!(waiting.await, Err(Closed));
    assert!(outbox.is_closed());
    assert_eq!(outbox.send(plain("late")).await, Err(Closed));
    assert_eq!(outbox.try_send(plain("late")), Err(Refused::Closed));
    assert_eq!(outbox.answer(b"late\n".to_vec()).await, Err(Closed));
    assert!(outbox.reserve(Vec::new).await.is_err());

    let (mut client, server) = duplex(1024);
    let mut writer = tokio::spawn(drain(backlog, server));
    assert!(waits(&mut writer).await, "a request is open");
    open.room().await;
    open.reply(b"answer\n".to_vec()).unwrap();
    writer.await.unwrap().unwrap();
    let mut text = String::new();
    client.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "queued\nanswer\n");
}

#[tokio::test]
async fn the_last_handle_closes() {
    let (outbox, backlog) = Outbox::open(limits());
    let (mut client, server) = duplex(1024);
    let other = outbox.clone();
    outbox.send(plain("one")).await.unwrap();
    drop(outbox);
    other.send(plain("two")).await.unwrap();
    drop(other);
    drain(backlog, server).await.unwrap();
    let mut text = String::new();
    client.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "one\ntwo\n");
}

#[tokio::test(start_paused = true)]
async fn everything_is_closed_once_the_writer_is_gone() {
    let (outbox, backlog) =
        Outbox::open(OutboxLimits { max_message_bytes: PLACE + 2, max_pending_requests: 1, ..limits() });
    let open = slot(&outbox, "open");
    outbox.send(plain("1")).await.unwrap();
    let mut sending = Box::pin(outbox.send(plain("2")));
    let mut reserving = Box::pin(outbox.reserve(Vec::new));
    assert!(waits(&mut sending).await && waits(&mut reserving).await);

    let (client, server) = duplex(1024);
    drop(client);
    assert_eq!(drain(backlog, server).await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    assert_eq!(sending.await, Err(Closed));
    assert_eq!(reserving.await.unwrap_err(), Closed);
    assert_eq!(open.reply(b"answer\n".to_vec()), Err(Closed));
    assert_eq!(outbox.try_send(plain("3")), Err(Refused::Closed));
    assert_eq!((outbox.message_bytes(), outbox.answer_bytes(), outbox.open_requests()), (0, 0, 0));
}
