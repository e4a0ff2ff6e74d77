//! Streams at their limits: credit, silence, cancellation, and foreign hosts.

use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use model::{EventStream, Metadata, ModelFailure, ModelTransport, PreparedRequest, StreamEvent};
use protocol::{
    ModelCancelReason, ModelRequestId, ModelRequestResponse, ModelStreamEventResponse, Raw, StreamCredit,
    ThreadId, TurnId,
};
use serde_json::{Value, json};

use super::error::DelegationError;
use super::failure;
use super::host::HostId;
use super::session::HostSession;
use super::stream::Stream;
use super::testing::{ScriptedHost, THREAD, terms};
use super::transport::DelegatedTransport;
use support::Responder;

type Taken = Result<ModelStreamEventResponse, DelegationError>;

/// A thread's session, its host and its transport.
struct Table {
    host: Arc<ScriptedHost>,
    session: Arc<HostSession>,
    transport: DelegatedTransport,
}

impl Table {
    fn new(stream: &Value) -> Self {
        let host = Arc::new(ScriptedHost::default());
        let session = Arc::new(HostSession::new(ThreadId::new(THREAD), terms(stream), host.clone()));
        let transport = DelegatedTransport::new(session.clone());
        Self { host, session, transport }
    }

    fn request(attempt: u32) -> PreparedRequest {
        let body = json!({
            "model": "m", "instructions": "", "input": [], "tools": [], "tool_choice": "auto",
            "parallel_tool_calls": false, "reasoning": null, "store": false, "stream": true, "include": [],
            "prompt_cache_key": THREAD,
        });
        let body = Arc::new(serde_json::from_value(body).expect("a body"));
        let metadata = Metadata { attempt, ..Metadata::first(ThreadId::new(THREAD), TurnId::new("u1")) };
        PreparedRequest { body, metadata }
    }

    /// An attempt with a disposition.
    async fn opened(&self, attempt: u32) -> (EventStream, Arc<Stream>) {
        let mut reading = self.transport.open(Self::request(attempt));
        let opened = reading.next().await;
        assert!(matches!(opened, Some(Ok(StreamEvent::Opened(_)))), "{opened:?}");
        let (stream, _) = self.session.stream(self.host.number(), &self.host.last_request()).expect("known");
        (reading, stream)
    }
}

fn delta(text: &str) -> Raw {
    Raw::parse(json!({"type": "response.output_text.delta", "delta": text}).to_string()).expect("JSON")
}

fn deltas(from: usize, count: usize) -> Vec<Raw> {
    (from..from + count).map(|n| delta(&n.to_string())).collect()
}

fn completed() -> Raw {
    Raw::parse(json!({"type": "response.completed", "response": {"id": "r"}}).to_string()).expect("JSON")
}

/// The response, or where it will be stored.
fn take(stream: &Stream, seq: u64, events: &[Raw]) -> Arc<Mutex<Option<Taken>>> {
    let place = Arc::new(Mutex::new(None));
    let given = place.clone();
    let responder = Responder::new(move |taken| *given.lock() = Some(taken));
    stream.take(seq, events, responder);
    place
}

fn now(place: &Mutex<Option<Taken>>) -> Taken {
    place.lock().clone().expect("answered at once")
}

async fn failure_of(reading: &mut EventStream) -> ModelFailure {
    loop {
        match reading.next().await.expect("an end") {
            Ok(StreamEvent::Failed(failure)) | Err(failure) => return failure,
            Ok(_) => {}
        }
    }
}

#[tokio::test]
async fn credit_is_granted_while_the_turn_reads_and_never_exceeds_the_window() {
    let table = Table::new(&json!({"windowEvents": 4, "windowBytes": 100_000}));
    let (mut reading, stream) = table.opened(1).await;
    let first = now(&take(&stream, 0, &deltas(0, 4))).expect("taken");
    assert_eq!((first.next_seq, first.credit.events, first.duplicate), (4, 4, false));
    // Uses up the credit: its response waits until there is more to grant.
    let second = take(&stream, 4, &deltas(4, 4));
    assert_eq!(*second.lock(), None);
    let over = now(&take(&stream, 8, &deltas(8, 1)));
    assert!(matches!(over, Err(DelegationError::OverCredit { next_seq: 8, .. })), "{over:?}");
    for n in 0..2 {
        let event = reading.next().await.expect("an event").expect("no failure");
        assert_eq!(event, StreamEvent::TextDelta { delta: n.to_string() });
    }
    let second = now(&second).expect("acknowledged");
    assert_eq!((second.next_seq, second.credit.events), (8, 2));
    // A batch that arrives while another waits releases that one, and waits itself.
    let third = take(&stream, 8, &deltas(8, 2));
    assert_eq!(*third.lock(), None);
    let fourth = take(&stream, 10, &[]);
    let third = now(&third).expect("acknowledged");
    assert_eq!((third.next_seq, third.credit.events), (10, 0));
    assert_eq!(*fourth.lock(), None);
    let many = now(&take(&stream, 10, &deltas(10, 5)));
    assert_eq!(many, Err(DelegationError::BatchTooLarge { events: 5, window: 4 }));
    for n in 2..10 {
        let event = reading.next().await.expect("an event").expect("no failure");
        assert_eq!(event, StreamEvent::TextDelta { delta: n.to_string() });
    }
    let fourth = now(&fourth).expect("acknowledged");
    assert_eq!((fourth.next_seq, fourth.credit.events), (10, 2));
}

#[tokio::test]
async fn an_event_larger_than_the_window_is_accepted_alone() {
    let table = Table::new(&json!({"windowEvents": 64, "windowBytes": 300}));
    let (mut reading, stream) = table.opened(1).await;
    now(&take(&stream, 0, &deltas(0, 1))).expect("taken");
    let large = [delta(&"x".repeat(5_000))];
    let over = now(&take(&stream, 1, &large));
    assert!(matches!(over, Err(DelegationError::OverCredit { .. })), "{over:?}");
    reading.next().await.expect("an event").expect("no failure");
    let taken = now(&take(&stream, 1, &large)).expect("taken");
    assert_eq!(taken.credit, StreamCredit { events: 63 + 1, bytes: 300 });
    reading.next().await.expect("an event").expect("no failure");
}

#[tokio::test]
async fn the_same_number_with_other_bytes_ends_the_request() {
    let table = Table::new(&json!({}));
    let (mut reading, stream) = table.opened(1).await;
    now(&take(&stream, 0, &deltas(0, 3))).expect("taken");
    // It overlaps an accepted batch; only the rest is new.
    let overlapping = now(&take(&stream, 1, &deltas(1, 3))).expect("taken");
    assert_eq!((overlapping.next_seq, overlapping.duplicate), (4, false));
    let other = now(&take(&stream, 2, &[delta("other"), delta("3")]));
    assert_eq!(other, Err(DelegationError::EventMismatch { seq: 2 }));
    let failure = failure_of(&mut reading).await;
    assert!(!failure.is_retryable() && failure.message.contains("other bytes"), "{failure}");
    drop(reading);
    let told: Vec<_> = table.host.canceled.lock().iter().map(|told| told.reason.clone()).collect();
    assert_eq!(told, [ModelCancelReason::ProtocolError]);
    let late = now(&take(&stream, 4, &deltas(4, 1)));
    assert_eq!(late, Err(DelegationError::StreamClosed { next_seq: 4 }));
    assert!(now(&take(&stream, 0, &deltas(0, 2))).expect("acknowledged again").duplicate);
}

#[tokio::test]
async fn a_bad_event_refuses_its_batch_and_fails_the_turn() {
    let table = Table::new(&json!({}));
    let (mut reading, stream) = table.opened(1).await;
    now(&take(&stream, 0, &deltas(0, 2))).expect("taken");
    let bad = Raw::parse("{\"type\":\"response.completed\"}".to_owned()).expect("JSON");
    let refused = now(&take(&stream, 2, &[delta("2"), bad]));
    assert!(matches!(refused, Err(DelegationError::BadEvent { seq: 3, .. })), "{refused:?}");
    let mut seen = 0;
    let failure = loop {
        match reading.next().await.expect("an end") {
            Ok(_) => seen += 1,
            Err(failure) => break failure,
        }
    };
    assert_eq!(seen, 2, "what was taken before counts; of the bad batch nothing does");
    assert!(!failure.is_retryable(), "{failure}");
}

#[tokio::test]
async fn notifications_are_bounded_and_a_gap_in_them_is_fatal() {
    let table = Table::new(&json!({"windowEvents": 2}));
    let (mut reading, stream) = table.opened(1).await;
    stream.hear(0, &deltas(0, 100)).expect("no credit is needed");
    stream.hear(50, &deltas(50, 51)).expect("what is new of it is taken");
    for n in 0..101 {
        let event = reading.next().await.expect("an event").expect("no failure");
        assert_eq!(event, StreamEvent::TextDelta { delta: n.to_string() });
    }
    assert!(matches!(
        stream.hear(103, &deltas(103, 1)),
        Err(DelegationError::SequenceGap { expected: 101, .. })
    ));
    assert!(failure_of(&mut reading).await.message.contains("gap"));

    let (mut reading, stream) = table.opened(2).await;
    let flood = deltas(0, 10_000);
    let mut refused = None;
    for round in 0..10 {
        if let Err(error) = stream.hear(round * 10_000, &flood) {
            refused.get_or_insert((round, error));
        }
    }
    assert!(matches!(refused, Some((6, DelegationError::OverCredit { .. }))), "{refused:?}");
    let mut got = 0;
    while let Some(Ok(_)) = reading.next().await {
        got += 1;
    }
    assert_eq!(got, 60_000);
}

#[tokio::test(start_paused = true)]
async fn a_request_of_a_silent_host_is_cancelled_and_retried() {
    let table = Table::new(&json!({"firstEventTimeoutMs": 50, "idleTimeoutMs": 20}));
    let (mut reading, stream) = table.opened(1).await;
    let failure = failure_of(&mut reading).await;
    assert!(failure.is_retryable() && failure.message.contains("50 ms"), "{failure}");
    stream.end(failure::gone());

    let (mut reading, stream) = table.opened(2).await;
    now(&take(&stream, 0, &deltas(0, 1))).expect("taken");
    let failure = failure_of(&mut reading).await;
    assert!(failure.is_retryable() && failure.message.contains("20 ms"), "{failure}");
    let told: Vec<_> = table.host.canceled.lock().iter().map(|told| told.reason.clone()).collect();
    assert_eq!(told, [ModelCancelReason::Superseded, ModelCancelReason::Superseded]);
    let late = now(&take(&stream, 1, &[completed()]));
    assert_eq!(late, Err(DelegationError::StreamClosed { next_seq: 1 }));
}

#[tokio::test(start_paused = true)]
async fn a_host_that_never_answers_fails_the_turn() {
    let table = Table::new(&json!({"firstEventTimeoutMs": 50}));
    *table.host.disposition.lock() = None;
    let mut reading = table.transport.open(Table::request(1));
    let failure = failure_of(&mut reading).await;
    assert!(!failure.is_retryable() && failure.message.starts_with("hostTimeout"), "{failure}");
    assert_eq!(table.host.canceled.lock().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn one_request_is_under_way_at_a_time() {
    let table = Table::new(&json!({}));
    let (reading, stream) = table.opened(1).await;
    drop(reading);
    let told = table.host.canceled.lock()[0].clone();
    assert_eq!(
        (told.reason, told.model_request_id.as_str()),
        (ModelCancelReason::TurnInterrupted, "u1:0:a1")
    );
    let mut next = table.transport.open(Table::request(2));
    tokio::select! {
        biased;
        _ = next.next() => panic!("the one before has not ended"),
        () = tokio::time::sleep(Duration::from_millis(1_900)) => {}
    }
    assert_eq!(table.host.requests(), 1);
    // The host ends it, so the next one need not wait for the limit.
    stream.end(failure::gone());
    assert!(matches!(next.next().await, Some(Ok(StreamEvent::Opened(_)))));
    drop(next);
    let began = tokio::time::Instant::now();
    let (_reading, _) = table.opened(3).await;
    assert_eq!(began.elapsed().as_millis(), 2_000, "a host that says nothing holds up the next for so long");
    table.session.close();
    let requests: Vec<_> = table.host.asked.lock().iter().map(|asked| asked.retry_of.clone()).collect();
    let id = |text: &str| Some(ModelRequestId::new(text));
    assert_eq!(requests, [None, id("u1:0:a1"), id("u1:0:a2")]);
}

#[tokio::test]
async fn nothing_is_sent_before_the_first_poll_or_after_a_refusal() {
    let table = Table::new(&json!({}));
    drop(table.transport.open(Table::request(1)));
    assert_eq!((table.host.requests(), table.host.canceled.lock().len()), (0, 0));
    let error = json!({"code": "unauthorized", "message": "no key"});
    let rejected = ModelRequestResponse::Rejected { error: serde_json::from_value(error).expect("an error") };
    *table.host.disposition.lock() = Some(rejected);
    let mut reading = table.transport.open(Table::request(1));
    let failure = failure_of(&mut reading).await;
    assert_eq!((failure.is_retryable(), failure.message.as_str()), (false, "no key"));
    drop(reading);
    assert_eq!((table.host.requests(), table.host.canceled.lock().len()), (1, 0));
}

#[tokio::test]
async fn only_the_threads_host_may_send_events() {
    let table = Table::new(&json!({}));
    let (mut reading, stream) = table.opened(1).await;
    let id = table.host.last_request();
    let stranger = table.session.stream(HostId(8), &id).map(|_| ());
    assert_eq!(stranger, Err(DelegationError::NotTheHost(THREAD.to_owned())));
    let unknown = table.session.stream(table.host.number(), &ModelRequestId::new("u1:9:a1")).map(|_| ());
    assert_eq!(unknown, Err(DelegationError::UnknownRequest(ModelRequestId::new("u1:9:a1"))));
    now(&take(&stream, 0, &[delta("a"), completed(), delta("b")])).expect("taken");
    // Late messages about an ended stream have no effect.
    stream.end(failure::gone());
    table.session.detach(table.host.number());
    assert!(matches!(reading.next().await, Some(Ok(StreamEvent::TextDelta { .. }))));
    assert!(matches!(reading.next().await, Some(Ok(StreamEvent::Completed { .. }))));
    assert!(reading.next().await.is_none());
    drop(reading);
    assert!(table.host.canceled.lock().is_empty());
}

#[tokio::test]
async fn a_host_that_is_gone_fails_what_it_carried() {
    let table = Table::new(&json!({}));
    let (mut reading, stream) = table.opened(1).await;
    now(&take(&stream, 0, &deltas(0, 1))).expect("taken");
    table.session.detach(table.host.number());
    assert!(reading.next().await.expect("what came before").is_ok());
    let failure = failure_of(&mut reading).await;
    assert!(!failure.is_retryable() && failure.message.contains("host"), "{failure}");
}
