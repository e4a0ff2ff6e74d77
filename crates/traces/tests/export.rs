//! Spans on their way to a collector: a small HTTP server that reads them as JSON, and several that do not.
#![allow(clippy::expect_used, reason = "a test may panic")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use oarlock_traces::{Span, TraceContext, TraceSettings, Tracer, current};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use support::SystemClock;

const LIMIT: Duration = Duration::from_secs(20);

/// Answers the requests that come with these statuses in turn, the last one for ever; 0 is no answer at all.
struct Collector {
    url: String,
    posts: Receiver<(String, Value)>,
}

impl Collector {
    fn start(statuses: &'static [u16]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (tell, posts) = channel();
        thread::spawn(move || {
            let mut next = 0;
            let mut held = Vec::new();
            for stream in listener.incoming().flatten() {
                let Some(post) = read(&stream) else { continue };
                let status = statuses[next.min(statuses.len() - 1)];
                next += 1;
                match status {
                    0 => held.push(stream),
                    _ => answer(stream, status),
                }
                let _ = tell.send(post);
            }
        });
        Self { url, posts }
    }

    fn tracer(&self) -> Tracer {
        let url = self.url.clone();
        let variable = move |name: &str| (name == "OTEL_EXPORTER_OTLP_ENDPOINT").then(|| url.clone());
        let settings = TraceSettings::read("test", "1.2", &variable);
        Tracer::open(settings, http::Client::new(None), Arc::new(SystemClock))
    }

    /// The spans of the next request.
    fn spans(&self) -> Vec<Value> {
        let (head, body) = self.posts.recv_timeout(LIMIT).expect("a request");
        assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("content-type: application/json\r\n"), "{head}");
        let scope = &body["resourceSpans"][0]["scopeSpans"][0];
        scope["spans"].as_array().cloned().expect("spans")
    }
}

fn read(stream: &TcpStream) -> Option<(String, Value)> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?;
    let mut body = vec![0; length.parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    Some((head, serde_json::from_slice(&body).expect("JSON")))
}

fn answer(mut stream: TcpStream, status: u16) {
    let head = format!("HTTP/1.1 {status} X\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{}}");
    let _ = stream.write_all(head.as_bytes());
}

fn context(flags: &str) -> TraceContext {
    let parent = format!("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-{flags}");
    let trace = to_raw_value(&json!({"traceparent": parent, "tracestate": "a=1"})).expect("JSON");
    TraceContext::read(Some(&trace)).expect("a context")
}

fn traceparent(span: &Span) -> String {
    let context = serde_json::to_value(span.context()).expect("JSON");
    context["traceparent"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn spans_arrive_with_their_parents_and_what_they_hold() {
    let collector = Collector::start(&[200]);
    let tracer = collector.tracer();
    let mut above = tracer.start("task", Some(context("01")));
    above.word("oarlock.thread.id", "t-1");
    above.word("said", "a text of somebody");
    above.word("said", "");
    above.word("said", &"x".repeat(129));
    let below: Result<(), ()> = tracer.spanned("nothing", async { Err(()) }).await;
    assert_eq!((below, current()), (Err(()), None));
    let mut below = tracer.start("model.request", above.context());
    below.number("n", 7);
    assert!(traceparent(&below).starts_with("00-4bf92f3577b34da6a3ce929d0e0e4736-"));
    drop((below, above));
    let (closed, spans) = tokio::join!(tracer.close(LIMIT), async {
        tokio::task::spawn_blocking(move || collector.spans()).await.expect("spans")
    });
    assert_eq!((closed, tracer.lost()), ((), 0));
    let [alone, below, above] = &spans[..] else { panic!("{spans:?}") };
    assert_eq!((&alone["name"], &alone["status"]["code"]), (&json!("nothing"), &json!(2)), "{alone}");
    assert!(alone["traceId"] != above["traceId"] && alone.get("parentSpanId").is_none(), "{alone}");
    assert_eq!(above["parentSpanId"], "00f067aa0ba902b7");
    assert_eq!(above["traceState"], "a=1");
    assert_eq!(
        above["attributes"],
        json!([{"key": "oarlock.thread.id", "value": {"stringValue": "t-1"}}]),
        "no text fits into a span"
    );
    assert_eq!((&below["parentSpanId"], &below["traceId"]), (&above["spanId"], &above["traceId"]));
    let time = |span: &Value, name: &str| {
        let text = span[name].as_str().expect("a text");
        text.parse::<u64>().expect("a number")
    };
    assert!(time(above, "startTimeUnixNano") <= time(below, "startTimeUnixNano"));
    assert!(time(below, "endTimeUnixNano") <= time(above, "endTimeUnixNano"));
}

#[tokio::test]
async fn what_is_not_wanted_is_not_recorded_and_its_context_goes_on() {
    let collector = Collector::start(&[200]);
    let tracer = collector.tracer();
    let span = tracer.start("task", Some(context("00")));
    assert_eq!((span.context(), span.is_recorded()), (Some(context("00")), false));
    drop(span);
    let off = Tracer::open(None, http::Client::new(None), Arc::new(SystemClock));
    let span = off.start("task", Some(context("01")));
    assert_eq!((span.context(), span.is_recorded()), (Some(context("01")), false));
    assert_eq!(off.start("task", None).context(), None);
    off.close(LIMIT).await;
    tracer.close(LIMIT).await;
    assert!(collector.posts.try_recv().is_err(), "nothing was sent");
}

#[tokio::test]
async fn many_spans_go_in_batches() {
    let collector = Collector::start(&[200]);
    let tracer = collector.tracer();
    (0..1_300).for_each(|_| drop(tracer.start("turn", None)));
    tracer.close(LIMIT).await;
    let batches: Vec<usize> = (0..3).map(|_| collector.spans().len()).collect();
    assert_eq!((batches, tracer.lost()), (vec![512, 512, 276], 0));
}

#[tokio::test]
async fn spans_are_sent_again_to_a_collector_that_is_busy_and_not_to_one_that_refuses_them() {
    let collector = Collector::start(&[503, 200, 400, 200]);
    let tracer = collector.tracer();
    drop(tracer.start("first", None));
    let (collector, first, again) = tokio::task::spawn_blocking(move || {
        let (first, again) = (collector.spans(), collector.spans());
        (collector, first, again)
    })
    .await
    .expect("two requests");
    assert_eq!(first, again);
    drop(tracer.start("second", None));
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    drop(tracer.start("third", None));
    tracer.close(LIMIT).await;
    assert_eq!(
        (&collector.spans()[0]["name"], &collector.spans()[0]["name"]),
        (&json!("second"), &json!("third"))
    );
    assert_eq!(tracer.lost(), 1);
}

#[tokio::test]
async fn a_collector_that_never_answers_costs_spans_and_no_time() {
    let collector = Collector::start(&[0]);
    let tracer = collector.tracer();
    drop(tracer.start("first", None));
    let until = Instant::now() + LIMIT;
    while collector.posts.try_recv().is_err() {
        assert!(Instant::now() < until, "the first span is sent");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let began = Instant::now();
    (0..5_000).for_each(|_| drop(tracer.start("turn", None)));
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    assert_eq!(tracer.lost(), 5_000 - 2_048);
    tracer.close(Duration::from_millis(200)).await;
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
}
