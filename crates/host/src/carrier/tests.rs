//! How the events of an answer are put into batches.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use serde_json::{Value, json};

use super::*;

/// Text that came in bursts: `None` is where the provider has sent nothing yet.
struct Bursts(VecDeque<Option<&'static str>>);

impl Stream for Bursts {
    type Item = Result<StreamEvent, ModelFailure>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.0.pop_front() {
            Some(Some(text)) => Poll::Ready(Some(Ok(StreamEvent::TextDelta { delta: text.to_owned() }))),
            Some(None) => {
                context.waker().wake_by_ref();
                Poll::Pending
            }
            None => Poll::Ready(None),
        }
    }
}

fn params() -> ModelRequestParams {
    serde_json::from_value(json!({
        "threadId": "t", "turnId": "u", "segmentId": "s", "modelRequestId": "m", "attempt": 1, "agentPath": [],
        "purpose": "turn", "body": {"model": "any"}, "requestDigest": "d", "toolSetDigest": "d", "requires": [],
        "window": {"events": 3, "bytes": 10_000},
    }))
    .expect("params")
}

fn deltas(batch: &[Raw]) -> Vec<String> {
    let events = batch.iter().map(|event| serde_json::from_str::<Value>(event.get()).expect("JSON"));
    events.filter_map(|event| event["delta"].as_str().map(str::to_owned)).collect()
}

#[tokio::test]
async fn events_that_came_together_go_on_together() {
    let params = params();
    let bursts = [Some("a"), Some("b"), None, Some("c"), Some("d"), Some("e"), Some("f"), None];
    let mut reading = CarriedStream::live(Box::pin(Bursts(bursts.into())), &params);

    reading.read().await;
    assert_eq!(deltas(&reading.batch(&params.window)), ["a", "b"]);
    assert!(reading.buffer.is_empty(), "nothing waits for another event");

    // No more than the credit of the runtime.
    reading.read().await;
    assert_eq!(deltas(&reading.batch(&params.window)), ["c", "d", "e"]);
    assert_eq!(deltas(&reading.batch(&params.window)), ["f"]);
    assert!(!reading.is_over());
    reading.read().await;
    assert!(matches!(reading.end, Some(CarriedEnd::Failed(_))), "{:?}", reading.end);
}

/// A runtime that lies may name any thread, and each would have requests of its own.
#[test]
fn requests_under_way_are_bounded_whatever_threads_they_name() {
    let of = |number: usize| ModelRequestParams {
        thread_id: ThreadId::new(format!("t{number}")),
        model_request_id: ModelRequestId::new(format!("m{number}")),
        ..params()
    };
    let code = |open: &_, params: &_| no_room(open, params, CarrierLane::Turn).map(|error| error.code);
    let mut open = BTreeMap::new();
    for number in 0..MOST_OPEN {
        let params = of(number);
        assert_eq!(code(&open, &params), None, "{number}");
        let (thread, (cancel, _)) = (params.thread_id, watch::channel(None));
        open.insert(params.model_request_id, OpenStream { thread, lane: CarrierLane::Turn, cancel });
    }
    assert_eq!(code(&open, &of(MOST_OPEN)).as_deref(), Some("tooManyRequests"));
    open.remove(&of(0).model_request_id);
    assert_eq!(code(&open, &of(MOST_OPEN)), None);
    let same_thread = ModelRequestParams { model_request_id: ModelRequestId::new("other"), ..of(1) };
    assert_eq!(code(&open, &same_thread).as_deref(), Some("singleFlightViolation"));
    let same_id = ModelRequestParams { thread_id: ThreadId::new("other"), ..of(1) };
    assert_eq!(code(&open, &same_id).as_deref(), Some("singleFlightViolation"));
}

#[test]
fn a_pause_has_a_code_that_runtimes_know() {
    let paused = model_error(&ModelFailure::new(FailureClass::Paused, "it paused"));
    assert_eq!((paused.code.as_str(), paused.replay_safe), ("paused", false));
    let broken = model_error(&ModelFailure::stream("it broke"));
    assert_eq!((broken.code.as_str(), broken.replay_safe), ("providerError", true));
}
