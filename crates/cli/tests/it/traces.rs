//! Traces of real processes at a small collector: one trace from the client's span down to the provider's answer.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::host::{APPROVAL, HostClient, LIMIT, job, runs, socket, until};
use crate::support::{Place, signal};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CLIENT_SPAN: &str = "00f067aa0ba902b7";

/// How a collector treats those who send it spans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Takes,
    Refuses,
    NeverAnswers,
    Closes,
}

/// A request as it was sent: its head and its body.
type Posts = Arc<Mutex<Vec<(String, String)>>>;

struct Collector {
    url: String,
    posts: Posts,
}

impl Collector {
    fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let posts = Posts::default();
        let kept = posts.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let kept = kept.clone();
                thread::spawn(move || serve(&stream, manner, &kept));
            }
        });
        Self { url, posts }
    }

    fn spans(&self) -> Vec<TracedSpan> {
        self.posts.lock().iter().flat_map(|(_, body)| TracedSpan::all_in(body)).collect()
    }

    /// Waits for a span of this name, of a host or an app-server, that fits.
    #[track_caller]
    fn span(&self, component: &str, name: &str, fits: impl Fn(&TracedSpan) -> bool) -> TracedSpan {
        let is_it = |span: &TracedSpan| span.component == component && span.name == name && fits(span);
        let deadline = Instant::now() + LIMIT;
        loop {
            let spans = self.spans();
            if let Some(found) = spans.iter().find(|span| is_it(span)) {
                return found.clone();
            }
            assert!(Instant::now() < deadline, "no {name} of the {component} in {spans:#?}");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Several requests may come over one connection.
fn serve(stream: &TcpStream, manner: Manner, kept: &Mutex<Vec<(String, String)>>) {
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).unwrap_or(0) == 0 {
                return;
            }
        }
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.and_then(|length| length.parse().ok()).expect("a length")];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        kept.lock().push((head, String::from_utf8(body).expect("text")));
        let status = match manner {
            Manner::Takes => "200 OK",
            Manner::Refuses => "500 No",
            Manner::NeverAnswers => continue,
            Manner::Closes => return,
        };
        let answer =
            format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{{}}");
        if (&mut &*stream).write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

#[derive(Debug, Clone)]
struct TracedSpan {
    component: String,
    name: String,
    trace: String,
    id: String,
    parent: String,
    began: u64,
    ended: u64,
    attributes: BTreeMap<String, String>,
}

impl TracedSpan {
    fn all_in(body: &str) -> Vec<Self> {
        let body: Value = serde_json::from_str(body).expect("JSON");
        let resource = &body["resourceSpans"][0];
        let component = attributes(&resource["resource"])["oarlock.component"].clone();
        let spans = resource["scopeSpans"][0]["spans"].as_array().expect("spans");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let time = |value: &Value| text(value).parse().expect("nanoseconds");
        let span = |span: &Value| Self {
            component: component.clone(),
            name: text(&span["name"]),
            trace: text(&span["traceId"]),
            id: text(&span["spanId"]),
            parent: text(&span["parentSpanId"]),
            began: time(&span["startTimeUnixNano"]),
            ended: time(&span["endTimeUnixNano"]),
            attributes: attributes(span),
        };
        spans.iter().map(span).collect()
    }

    fn has(&self, name: &str, value: &str) -> bool {
        self.attributes.get(name).is_some_and(|found| found == value)
    }

    /// Within the other, also by its times: both are of one process.
    #[track_caller]
    fn check_within(&self, other: &Self) {
        assert_eq!((&self.trace, &self.parent), (&other.trace, &other.id), "{self:?} below {other:?}");
        assert!(other.began <= self.began && self.ended <= other.ended, "{self:?} within {other:?}");
    }
}

fn attributes(of: &Value) -> BTreeMap<String, String> {
    let all = of["attributes"].as_array().cloned().unwrap_or_default();
    let pair = |attribute: &Value| {
        let value = attribute["value"]["stringValue"].as_str().or(attribute["value"]["intValue"].as_str());
        Some((attribute["key"].as_str()?.to_owned(), value?.to_owned()))
    };
    all.iter().filter_map(pair).collect()
}

/// A server that traces, with its log in a file.
struct TracedServer {
    child: Child,
    socket: PathBuf,
    log: PathBuf,
}

impl TracedServer {
    fn host(place: &Place, variables: &[(&str, &str)]) -> Self {
        let store = format!("sqlite:{}", place.root().join("tasks.sqlite").display());
        let arguments = ["host", "--provider", "offline", "--store", &store];
        Self::start(place, place.command(&arguments), socket(place), variables)
    }

    fn app_server(place: &Place, variables: &[(&str, &str)]) -> Self {
        let socket = place.root().join("app.sock");
        let url = format!("unix://{}", socket.display());
        let command = place.command(&["app-server", "-c", "model_provider=offline", "--listen", &url]);
        Self::start(place, command, socket, variables)
    }

    fn start(place: &Place, mut command: Command, socket: PathBuf, variables: &[(&str, &str)]) -> Self {
        let log = place.root().join("log");
        let file = File::create(&log).expect("a file");
        command.envs(variables.iter().copied()).stderr(file);
        let child = command.spawn().expect("the server starts");
        let server = Self { child, socket, log };
        until("the socket", || std::os::unix::net::UnixStream::connect(&server.socket).ok());
        server
    }

    fn client(&self, flags: &str) -> HostClient {
        let mut client = HostClient::open(&self.socket).0;
        client.trace = Some(json!({"traceparent": format!("00-{TRACE}-{CLIENT_SPAN}-{flags}")}));
        client
    }

    fn log(&self) -> String {
        fs::read_to_string(&self.log).expect("a log")
    }

    fn warnings(&self) -> Vec<String> {
        let is_warning = |line: &&str| line.contains("WARN") || line.contains("ERROR");
        self.log().lines().filter(is_warning).map(str::to_owned).collect()
    }

    /// After a signal that asks for it, in good order. Says how long that took.
    fn stop(&mut self) -> Duration {
        let began = Instant::now();
        signal(&self.child, "TERM");
        let code = until("the end of the server", || self.child.try_wait().expect("a child"));
        assert_eq!(code.code(), Some(0), "{}", self.log());
        began.elapsed()
    }
}

impl Drop for TracedServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn endpoint(collector: &Collector) -> [(&str, &str); 1] {
    [("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url)]
}

#[track_caller]
fn complete(client: &mut HostClient) {
    let completed = client.wait_for("turn/completed");
    assert_eq!(completed["params"]["turn"]["status"], "completed", "{completed}");
}

/// The span that a request of the server belongs to.
fn asked_within(request: &Value) -> String {
    let parent = request["trace"]["traceparent"].as_str().unwrap_or_default();
    let rest = parent.strip_prefix(&format!("00-{TRACE}-")).unwrap_or_default();
    rest.split('-').next().unwrap_or_default().to_owned()
}

#[test]
fn a_turn_of_an_app_server_is_one_trace_below_the_client() {
    let (place, collector) = (Place::new(), Collector::start(Manner::Takes));
    job(&place, "");
    let mut server = TracedServer::app_server(&place, &endpoint(&collector));
    let mut client = server.client("01");
    let thread = client.start_thread(&place, "untrusted");
    client.turn(&thread, "run sh job.sh", "i1");
    let asked = client.wait_for(APPROVAL);
    client.write(&json!({"id": asked["id"], "result": {"decision": "accept"}}));
    complete(&mut client);
    // The last spans are sent before the process ends.
    server.stop();
    let turn = collector.span("app-server", "turn", |_| true);
    assert_eq!((turn.trace.as_str(), turn.parent.as_str()), (TRACE, CLIENT_SPAN));
    assert!(turn.has("oarlock.thread.id", &thread) && turn.has("oarlock.outcome", "completed"), "{turn:?}");
    let requests: Vec<TracedSpan> =
        collector.spans().into_iter().filter(|span| span.name == "model.request").collect();
    assert_eq!(requests.len(), 2, "one for the call, one for the answer");
    for request in &requests {
        request.check_within(&turn);
        assert!(request.has("oarlock.purpose", "turn"), "{request:?}");
        assert!(request.attributes["gen_ai.usage.output_tokens"].parse::<i64>().is_ok_and(|count| count > 0));
    }
    let operation = collector.span("app-server", "operation", |_| true);
    operation.check_within(&turn);
    assert!(operation.has("gen_ai.tool.name", "exec_command"), "{operation:?}");
    assert_eq!(asked_within(&asked), operation.id, "whoever is asked may go on with the trace");
    assert_eq!(collector.spans().len(), 4, "{:#?}", collector.spans());
    assert_eq!((runs(&place), server.warnings()), (1, vec![]));
}

#[test]
fn client_host_and_runtime_are_one_trace() {
    let (place, collector) = (Place::new(), Collector::start(Manner::Takes));
    job(&place, "");
    let mut server = TracedServer::host(&place, &endpoint(&collector));
    let mut client = server.client("01");
    let thread = client.start_thread(&place, "untrusted");
    client.turn(&thread, "run sh job.sh", "i1");
    let asked = client.wait_for(APPROVAL);
    client.write(&json!({"id": asked["id"], "result": {"decision": "accept"}}));
    complete(&mut client);
    server.stop();

    let turn = collector.span("app-server", "turn", |_| true);
    let task = collector.span("host", "task", |span| span.id == turn.parent);
    assert_eq!((task.trace.as_str(), task.parent.as_str()), (TRACE, CLIENT_SPAN));
    assert_eq!(turn.trace, TRACE);
    assert!(task.has("oarlock.thread.id", &thread) && turn.has("oarlock.thread.id", &thread));
    let started = collector.span("host", "placement.start", |_| true);
    let at_work = collector.span("host", "task", |span| span.id == started.parent);
    started.check_within(&at_work);
    assert_eq!((at_work.trace.as_str(), at_work.parent.as_str()), (TRACE, CLIENT_SPAN));
    let spans = collector.spans();
    let requests = |component: &'static str| {
        spans.iter().filter(move |span| span.name == "model.request" && span.component == component)
    };
    assert_eq!((requests("app-server").count(), requests("host").count()), (2, 2), "{spans:#?}");
    assert!(requests("app-server").all(|span| span.parent == turn.id && span.trace == TRACE));
    for request in requests("host") {
        assert!(requests("app-server").any(|above| above.id == request.parent), "{request:?} in {spans:#?}");
        assert!(request.trace == TRACE && request.has("gen_ai.provider.name", "offline"), "{request:?}");
    }
    let operation = collector.span("app-server", "operation", |_| true);
    operation.check_within(&turn);
    let waited = collector.span("host", "operation", |_| true);
    assert_eq!((waited.trace.as_str(), &waited.parent), (TRACE, &operation.id));
    assert!(waited.has("rpc.method", APPROVAL), "{waited:?}");
    assert_eq!(asked_within(&asked), waited.id);
    assert_eq!((runs(&place), server.warnings()), (1, vec![]));
}

#[test]
fn the_turn_of_an_agent_belongs_to_the_call_that_gave_it_work() {
    let (place, collector) = (Place::new(), Collector::start(Manner::Takes));
    let _model = crate::host_children::configured(&place);
    job(&place, "");
    let app = place.root().join("app.sock");
    let url = format!("unix://{}", app.display());
    let command = place.command(&["app-server", "-c", "model_provider=test", "--listen", &url]);
    let mut server = TracedServer::start(&place, command, app, &endpoint(&collector));
    let mut client = server.client("01");
    let thread = client.start_thread(&place, "never");
    client.turn(&thread, "Delegate", "i1");
    until("the end of the turn", || {
        let completed = client.wait_for("turn/completed");
        (completed["params"]["threadId"] == thread.as_str()).then_some(())
    });
    server.stop();
    let turn = collector.span("app-server", "turn", |span| span.has("oarlock.thread.id", &thread));
    let spawned =
        collector.span("app-server", "operation", |span| span.has("gen_ai.tool.name", "spawn_agent"));
    spawned.check_within(&turn);
    let child = collector.span("app-server", "turn", |span| span.id != turn.id);
    assert_eq!((child.trace.as_str(), &child.parent), (TRACE, &spawned.id));
}

#[test]
fn a_trace_that_nobody_wants_recorded_goes_on_and_is_not_recorded() {
    let (place, collector) = (Place::new(), Collector::start(Manner::Takes));
    job(&place, "");
    let mut server = TracedServer::host(&place, &endpoint(&collector));
    let mut client = server.client("00");
    let thread = client.start_thread(&place, "untrusted");
    client.turn(&thread, "run sh job.sh", "i1");
    let asked = client.wait_for(APPROVAL);
    assert_eq!(asked["trace"]["traceparent"], format!("00-{TRACE}-{CLIENT_SPAN}-00"));
    client.write(&json!({"id": asked["id"], "result": {"decision": "accept"}}));
    complete(&mut client);
    server.stop();
    assert_eq!(collector.posts.lock().len(), 0, "{:?}", collector.spans());
}

#[test]
fn without_a_collector_a_trace_goes_on_and_without_a_trace_nothing_does() {
    let place = Place::new();
    job(&place, "");
    let mut server = TracedServer::app_server(&place, &[("OTEL_SERVICE_NAME", "mine")]);
    let mut client = server.client("01");
    let thread = client.start_thread(&place, "untrusted");
    client.turn(&thread, "run sh job.sh", "i1");
    let asked = client.wait_for(APPROVAL);
    assert_eq!(asked["trace"]["traceparent"], format!("00-{TRACE}-{CLIENT_SPAN}-01"));
    client.write(&json!({"id": asked["id"], "result": {"decision": "decline"}}));
    client.wait_for("turn/completed");
    client.trace = None;
    client.turn(&thread, "run sh job.sh", "i2");
    assert_eq!(client.wait_for(APPROVAL).get("trace"), None);
    server.stop();
    assert_eq!((runs(&place), server.warnings()), (0, vec![]));
}

#[test]
fn a_collector_that_is_wrong_costs_one_warning_and_nothing_else() {
    let answering = [Manner::Refuses, Manner::NeverAnswers, Manner::Closes]
        .map(|manner| (manner, Collector::start(manner)));
    thread::scope(|scope| {
        for (manner, collector) in &answering {
            scope.spawn(|| work_beside(&collector.url, *manner == Manner::NeverAnswers));
        }
        for url in ["http://127.0.0.1:9", "grpc://127.0.0.1:4317", "nowhere"] {
            scope.spawn(|| work_beside(url, false));
        }
    });
}

/// Three turns, and an end in time, whatever the collector does.
fn work_beside(url: &str, never_answers: bool) {
    let place = Place::new();
    let mut server = TracedServer::app_server(&place, &[("OTEL_EXPORTER_OTLP_ENDPOINT", url)]);
    let mut client = server.client("01");
    let thread = client.start_thread(&place, "never");
    for input in ["i1", "i2", "i3"] {
        client.turn(&thread, "say hello", input);
        complete(&mut client);
    }
    // Long enough for spans to be sent before the end, and for second attempts.
    thread::sleep(Duration::from_millis(2_500));
    let took = server.stop();
    assert!(took < Duration::from_secs(10), "{url}: {took:?}");
    let warnings = server.warnings();
    let told = warnings.iter().filter(|line| line.contains("traces are")).count();
    assert_eq!(told, usize::from(!never_answers), "{url}: {warnings:?}");
    // How many spans that cost may be told, too.
    assert!(warnings.len() <= 2 && !server.log().contains("ERROR"), "{url}: {warnings:?}");
}

#[test]
fn neither_words_of_people_and_models_nor_keys_are_in_spans_or_logs() {
    let (place, collector) = (Place::new(), Collector::start(Manner::Takes));
    fs::write(place.folder().join("job.sh"), "env > seen\necho planted-output\n").expect("written");
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url.as_str()),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-planted=planted-header"),
        ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test"),
        ("OTEL_SERVICE_NAME", "mine"),
        ("OPENAI_API_KEY", "planted-key"),
        ("RUST_LOG", "info"),
    ];
    let mut server = TracedServer::host(&place, &variables);
    let mut client = server.client("01");
    let thread = client.start_thread(&place, "never");
    client.turn(&thread, "run sh job.sh planted-prompt", "i1");
    complete(&mut client);
    server.stop();
    collector.span("app-server", "operation", |_| true);
    collector.span("host", "task", |_| true);
    let posts = collector.posts.lock();
    for (head, body) in &*posts {
        assert!(head.contains("x-planted: planted-header\r\n"), "{head}");
        assert!(!body.contains("planted"), "{body}");
        assert!(body.contains("deployment.environment") && body.contains("\"mine\""), "{body}");
    }
    let log = server.log();
    assert!(log.contains("the host is open") && !log.contains("planted"), "{log}");
    let seen = fs::read_to_string(place.folder().join("seen")).expect("the command ran");
    assert!(!seen.contains("planted"), "{seen}");
}
