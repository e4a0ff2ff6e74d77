//! The HTTP transport against a provider made of raw bytes.

use std::time::Duration;

use futures_util::StreamExt;
use model::{FailureClass, ModelFailure, ModelTransport, StreamEvent};
use oarlock_model_http::{ClientOptions, HttpTransport, Provider, UnavailableTransport};
use serde_json::json;

use crate::support::*;

/// The lines of the stream, and how many requests it took.
async fn check(answers: Vec<Answer>, expected: &[&str], requests: usize) {
    let server = Server::start(answers).await;
    let found = lines(&events(&server.transport(), request("hi")).await);
    assert_eq!(
        (found, server.requests().len()),
        (expected.iter().map(|line| (*line).to_owned()).collect(), requests)
    );
}

async fn failure(server: &Server) -> ModelFailure {
    let found = events(&server.transport(), request("hi")).await;
    found.into_iter().next().unwrap().unwrap_err()
}

#[tokio::test]
async fn a_stream_from_beginning_to_end() {
    check(
        vec![Answer::stream(&[delta("a"), delta("b"), completed()])],
        &["opened", "delta a", "delta b", "completed resp_1"],
        1,
    )
    .await;
}

#[tokio::test]
async fn nothing_follows_the_end() {
    check(vec![Answer::stream(&[completed(), delta("late")])], &["opened", "completed resp_1"], 1).await;
}

#[tokio::test]
async fn chunks_may_be_cut_anywhere() {
    let text = format!("data: {}\r\n\r\n: ping\r\n\r\ndata: {}\r\n\r\n", delta("漢字 🦀"), completed());
    let mut pieces = vec![b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec()];
    pieces.extend(
        text.as_bytes()
            .chunks(3)
            .map(|part| [format!("{:x}\r\n", part.len()).as_bytes(), part, b"\r\n"].concat()),
    );
    pieces.push(b"0\r\n\r\n".to_vec());
    check(vec![Answer { pieces, then: Then::Close }], &["opened", "delta 漢字 🦀", "completed resp_1"], 1)
        .await;
}

#[tokio::test]
async fn an_end_without_completion_is_a_broken_stream() {
    let closed = "Stream: stream disconnected before completion: stream closed before response.completed";
    check(vec![Answer::stream(&[delta("a")])], &["opened", "delta a", closed], 1).await;
    check(vec![Answer::stream(&[])], &["opened", closed], 1).await;
    // Cut in the middle of a chunk.
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nff\r\ndata: ";
    let server = Server::start(vec![Answer::raw(head)]).await;
    let found = events(&server.transport(), request("hi")).await;
    let failure = found.last().unwrap().as_ref().unwrap_err();
    assert_eq!((failure.class, server.requests().len()), (FailureClass::Stream, 1));
    assert!(failure.is_retryable());
}

#[tokio::test]
async fn a_failed_response_ends_the_stream_at_once() {
    let failed =
        json!({ "type": "response.failed", "response": { "error": { "code": "context_length_exceeded" } } });
    let server = Server::start(vec![Answer::stream(&[failed]).then(Then::Hold)]).await;
    let found = events(&server.transport(), request("hi")).await;
    assert!(
        matches!(found.last(), Some(Ok(StreamEvent::Failed(failure))) if failure.class == FailureClass::ContextWindow)
    );
    let incomplete =
        json!({ "type": "response.incomplete", "response": { "incomplete_details": { "reason": "max" } } });
    check(
        vec![Answer::stream(&[incomplete, delta("late")])],
        &[
            "opened",
            "failed Stream: stream disconnected before completion: the response is incomplete, reason: max",
        ],
        1,
    )
    .await;
}

#[tokio::test]
async fn an_error_in_place_of_a_stream_is_read() {
    let refused = Answer::status(200, r#"{"error":{"message":"no such deployment"}}"#);
    let expected = "InvalidRequest: the provider failed: no such deployment";
    check(vec![refused], &["opened", expected], 1).await;
}

#[tokio::test]
async fn only_the_end_must_be_well_formed() {
    let bad = "failed Stream: stream disconnected before completion: stream event `response.completed` has no `response.id`";
    check(
        vec![Answer::stream(&[
            json!({"type": "response.output_text.delta"}),
            json!("[DONE]"),
            json!({"type": "response.completed"}),
        ])],
        &["opened", bad],
        1,
    )
    .await;
}

#[tokio::test]
async fn failures_of_the_provider_are_tried_again() {
    let ok = || Answer::stream(&[completed()]);
    check(
        vec![Answer::status(500, ""), Answer::status(503, "busy"), ok()],
        &["opened", "completed resp_1"],
        3,
    )
    .await;
    // A connection that closes without an answer.
    check(vec![Answer::raw(""), ok()], &["opened", "completed resp_1"], 2).await;
    check(
        vec![Answer::status(500, ""), Answer::status(500, ""), Answer::status(500, "")],
        &["InternalServerError: the provider failed: unexpected status 500 Internal Server Error"],
        3,
    )
    .await;
    let busy = || Answer::status(503, r#"{"error":{"code":"server_is_overloaded"}}"#);
    check(vec![busy(), busy(), ok()], &["opened", "completed resp_1"], 3).await;
    check(vec![busy(), busy(), busy()], &["Overloaded: the model is overloaded: server_is_overloaded"], 3)
        .await;
}

#[tokio::test]
async fn a_refusal_says_how_its_provider_finds_it() {
    let head = "HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\nconnection: close\r\n";
    let server =
        Server::start(vec![Answer::raw(format!("{head}x-request-id: req_1\r\ncf-ray: ray_1\r\n\r\n{{}}"))])
            .await;
    let failure = failure(&server).await;
    let expected = format!("{}/responses answered 404 Not Found; check base_url", server.base_url());
    assert_eq!(failure.message, expected);
    let expected = format!("url: {}/responses, cf-ray: ray_1, request id: req_1", server.base_url());
    assert_eq!(failure.details, Some(expected));
}

#[tokio::test]
async fn a_spent_account_says_where_it_stands() {
    let body = r#"{"error":{"type":"usage_limit_reached"}}"#;
    let head = "HTTP/1.1 429 Too Many Requests\r\nconnection: close\r\nx-codex-primary-used-percent: 100\r\n";
    let answer = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
    let spent = failure(&Server::start(vec![Answer::raw(answer)]).await).await;
    let window = spent.rate_limits.and_then(|limits| limits.primary);
    assert_eq!(window.map(|window| window.used_percent), Some(100));
    let slow = failure(&Server::start(vec![Answer::status(429, "{}")]).await).await;
    assert_eq!(slow.rate_limits, None);
}

#[tokio::test]
async fn refusals_are_not_tried_again() {
    for (status, body, class) in [
        (400, r#"{"error":{"message":"bad"}}"#, FailureClass::InvalidRequest),
        (401, "{}", FailureClass::Unauthorized),
        (403, "{}", FailureClass::Unauthorized),
        (404, "{}", FailureClass::InvalidRequest),
        (429, "{}", FailureClass::TooManyAttempts),
        (429, r#"{"error":{"type":"usage_limit_reached"}}"#, FailureClass::UsageLimit),
        // A redirect could carry the key to another host.
        (302, "", FailureClass::UnexpectedStatus),
    ] {
        let server = Server::start(vec![Answer::status(status, body), Answer::stream(&[completed()])]).await;
        let failure = failure(&server).await;
        assert_eq!((failure.class, failure.http_status), (class, Some(status)), "{status} {body}");
        assert_eq!(server.requests().len(), 1, "{status} {body}");
    }
}

#[tokio::test]
async fn every_attempt_sends_the_same_bytes_and_headers() {
    let server = Server::start(vec![Answer::status(502, ""), Answer::stream(&[completed()])]).await;
    let mut provider = server.provider();
    provider.api_key = Some("key-1".into());
    provider.query_params.insert("api-version".into(), "2024 02".into());
    provider.http_headers.insert("X-Extra".into(), "more".into());
    let request = request("hi");
    let body = serde_json::to_vec(request.body.as_ref()).unwrap();
    events(&transport(&provider), request).await;
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    for request in requests {
        assert_eq!(request.body, body);
        assert!(
            request.head.starts_with("POST /v1/responses?api-version=2024%2002 HTTP/1.1\r\n"),
            "{}",
            request.head
        );
        for (name, value) in [
            ("host", server.address.to_string().as_str()),
            ("authorization", "Bearer key-1"),
            ("x-extra", "more"),
            ("session_id", "thread-1"),
            ("x-client-request-id", "thread-1"),
            ("x-codex-turn-metadata", r#"{"session_id":"thread-1","turn_id":"turn-1","sandbox":"none"}"#),
            ("x-codex-turn-state", "state-1"),
            ("originator", "oarlock_test"),
            ("user-agent", "oarlock_test/1.0 (test)"),
            ("accept", "text/event-stream"),
            ("content-type", "application/json"),
        ] {
            assert_eq!(request.header(name), Some(value), "{name}");
        }
    }
}

#[tokio::test]
async fn the_headers_of_the_answer_come_first() {
    let head = "HTTP/1.1 200 OK\r\nOpenAI-Model: other\r\nx-codex-turn-state: s2\r\nx-reasoning-included: true\r\n\
                x-codex-primary-used-percent: 40\r\nconnection: close\r\n\r\n";
    let server = Server::start(vec![Answer::raw(format!("{head}data: {}\n\n", completed()))]).await;
    let found = events(&server.transport(), request("hi")).await;
    let Some(Ok(StreamEvent::Opened(opened))) = found.first() else { panic!("{found:?}") };
    assert_eq!((opened.served_by.as_deref(), opened.turn_state.as_deref()), (Some("other"), Some("s2")));
    assert!(opened.reasoning_included);
    let limits = opened.rate_limits.as_ref().unwrap();
    assert_eq!(
        (limits.limit_id.as_deref(), limits.primary.as_ref().unwrap().used_percent),
        (Some("codex"), 40)
    );
}

#[tokio::test]
async fn silence_ends_the_stream() {
    let server = Server::start(vec![Answer::stream(&[delta("a")]).then(Then::Hold)]).await;
    let mut provider = server.provider();
    provider.stream_idle_timeout = Duration::from_millis(300);
    let found = lines(&events(&transport(&provider), request("hi")).await);
    let silent = "Stream: stream disconnected before completion: idle timeout waiting for the provider";
    assert_eq!(found, ["opened", "delta a", silent]);
    server.client_closed().await;
}

#[tokio::test]
async fn a_provider_that_never_answers_is_given_up() {
    let server = Server::start(vec![Answer::raw("").then(Then::Hold)]).await;
    let mut provider = server.provider();
    provider.stream_idle_timeout = Duration::from_millis(50);
    provider.request_max_retries = 0;
    let found = events(&transport(&provider), request("hi")).await;
    let failure = found[0].as_ref().unwrap_err();
    assert_eq!(failure.class, FailureClass::Connection);
    let problem = format!("timed out waiting for {}: no answer came in time", server.address);
    assert_eq!(failure.message, format!("cannot reach the model provider test: {problem}"));
    assert_eq!(failure.details, Some(format!("url: {}/responses", server.base_url())));
}

#[tokio::test]
async fn nobody_listens() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut provider = Provider::new("gone", format!("http://me:hunter22@{address}/v1?k=vvvvvvvvv"));
    provider.request_max_retries = 1;
    let found = events(&transport(&provider), request("hi")).await;
    let failure = found[0].as_ref().unwrap_err();
    assert_eq!(failure.class, FailureClass::Connection);
    assert_eq!(
        failure.message,
        format!(
            "cannot reach the model provider gone: nothing answers on {address} (connection refused); start the server \
             that listens there, or change base_url"
        )
    );
    assert_eq!(failure.details, Some(format!("url: http://{address}/v1/responses?k=***")));
}

#[tokio::test]
async fn an_event_beyond_the_bound_ends_the_stream() {
    let server = Server::start(vec![Answer::stream(&[delta(&"x".repeat(5_000)), completed()])]).await;
    let mut options = ClientOptions::new("o", "u");
    options.max_event_bytes = 4_096;
    let transport = HttpTransport::new(&server.provider(), &options).unwrap();
    let found = lines(&events(&transport, request("hi")).await);
    assert_eq!(
        found,
        ["opened", "Stream: stream disconnected before completion: an event is larger than 4096 bytes"]
    );
}

#[tokio::test]
async fn dropping_the_stream_closes_the_connection() {
    let server = Server::start(vec![Answer::stream(&[delta("a")]).then(Then::Hold)]).await;
    let mut stream = server.transport().open(request("hi"));
    assert!(matches!(stream.next().await, Some(Ok(StreamEvent::Opened(_)))));
    drop(stream);
    tokio::time::timeout(Duration::from_secs(10), server.client_closed()).await.expect("the client closes");
}

#[tokio::test]
async fn nothing_is_sent_before_the_stream_is_polled() {
    let server = Server::start(Vec::new()).await;
    drop(server.transport().open(request("hi")));
    tokio::task::yield_now().await;
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_slow_consumer_slows_the_provider() {
    let event = format!("data: {}\n\n", delta(&"x".repeat(64 << 10)));
    let mut pieces = vec![STREAM_HEAD.as_bytes().to_vec()];
    pieces.extend(std::iter::repeat_n(event.into_bytes(), 500));
    let server = Server::start(vec![Answer { pieces, then: Then::Close }]).await;
    let mut stream = server.transport().open(request("hi"));
    assert!(matches!(stream.next().await, Some(Ok(StreamEvent::Opened(_)))));
    // 31 MiB do not fit into the buffers of two sockets: without reading ahead, the provider is stuck. A clock that stands
    // still goes on once nothing else can.
    tokio::time::pause();
    tokio::time::sleep(Duration::from_millis(100)).await;
    tokio::time::resume();
    assert!(!server.is_done());
    let deltas =
        stream.filter(|event| std::future::ready(matches!(event, Ok(StreamEvent::TextDelta { .. })))).count();
    assert_eq!(deltas.await, 500);
}

#[tokio::test]
async fn a_connection_is_used_again() {
    let body = format!("data: {}\n\n", completed());
    let whole = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let answer = || Answer::raw(whole.clone()).then(Then::KeepAlive);
    let server = Server::start(vec![answer(), answer(), answer()]).await;
    let transport = server.transport();
    for _ in 0..3 {
        assert_eq!(lines(&events(&transport, request("hi")).await), ["opened", "completed resp_1"]);
    }
    assert_eq!((server.requests().len(), server.connections()), (3, 1));
}

#[tokio::test]
async fn a_proxy_is_asked_for_a_tunnel() {
    let proxy = Server::start(vec![Answer::raw("HTTP/1.1 407 No\r\n\r\n")]).await;
    let mut options = ClientOptions::new("o", "u");
    options.proxy = Some(format!("http://me:hunter22@{}", proxy.address).as_str().into());
    let mut provider = Provider::new("far", "https://model.example/v1");
    provider.request_max_retries = 0;
    let transport = HttpTransport::new(&provider, &options).unwrap();
    let found = events(&transport, request("hi")).await;
    assert_eq!(found[0].as_ref().unwrap_err().class, FailureClass::Connection);
    let asked = proxy.requests();
    assert!(asked[0].head.starts_with("CONNECT model.example:443 HTTP/1.1\r\n"), "{}", asked[0].head);
    assert_eq!(asked[0].header("proxy-authorization"), Some("Basic bWU6aHVudGVyMjI="));
    assert!(!format!("{transport:?} {found:?}").contains("hunter22"));
    // This machine is reached directly.
    let server = Server::start(vec![Answer::stream(&[completed()])]).await;
    let near = HttpTransport::new(&server.provider(), &options).unwrap();
    assert_eq!(lines(&events(&near, request("hi")).await), ["opened", "completed resp_1"]);
    for bad in ["socks5://host:1", "https://host:1", "http://", "no spaces allowed"] {
        options.proxy = Some(bad.into());
        let refused = HttpTransport::new(&provider, &options).unwrap_err().to_string();
        assert!(refused.starts_with("the proxy address is not usable"), "{bad}");
    }
}

#[tokio::test]
async fn without_a_provider_the_ways_out_are_named() {
    let found = events(&UnavailableTransport::new("openai", "OPENAI_API_KEY", None), request("hi")).await;
    assert_eq!(
        lines(&found),
        [
            "NotConfigured: No key for the model provider `openai`: set OPENAI_API_KEY, or choose the offline model with \
          `--provider offline` or `model_provider = \"offline\"`."
        ]
    );
}
