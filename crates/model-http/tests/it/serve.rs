//! The offline model as an endpoint, with our own client and with raw requests.

use std::net::SocketAddr;
use std::sync::Arc;

use model::{FailureClass, StreamEvent};
use oarlock_model_http::{ModelScript, OfflineModel, OfflineResponder, Provider, serve};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::*;

async fn start(model: Arc<dyn OfflineResponder>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(serve(listener, model));
    address
}

fn provider(address: SocketAddr) -> Provider {
    Provider::new("offline", format!("http://{address}/v1"))
}

#[tokio::test]
async fn over_http_it_says_the_same_as_in_the_process() {
    let address = start(Arc::new(OfflineModel)).await;
    let remote = transport(&provider(address));
    let tool = json!({ "type": "function", "name": "exec_command", "parameters": {} });
    for user in ["say one two three four five", "run ls", "what?"] {
        let request = prepared(vec![user_message(user)], vec![tool.clone()]);
        let here = events(&OfflineModel, request.clone()).await;
        let there = events(&remote, request).await;
        assert_eq!(here[1..].len(), there[1..].len());
        // Ids and usage are made from the body, which the wire form writes anew; all else is equal.
        assert_eq!(lines(&here)[2..4], lines(&there)[2..4], "{user}");
    }
}

#[tokio::test]
async fn a_script_over_http() {
    let script = ModelScript::from_json(
        &json!([
            { "fail": { "status": 503, "body": "busy" } },
            { "text": "hello", "delayMs": 20 },
            { "fail": { "status": 400, "body": "no" } },
            { "events": [{ "type": "response.created", "response": { "id": "r" } }] },
        ])
        .to_string(),
    );
    let script = script.unwrap();
    let address = start(Arc::new(script.clone())).await;
    let remote = transport(&provider(address));
    let found = events(&remote, request("a")).await;
    assert!(matches!(found.last(), Some(Ok(StreamEvent::Completed { .. }))), "{found:?}");
    let refused = events(&remote, request("b")).await;
    let refused = refused[0].as_ref().unwrap_err();
    assert_eq!((refused.class, refused.message.as_str()), (FailureClass::InvalidRequest, "no"));
    let cut = lines(&events(&remote, request("c")).await);
    assert_eq!(
        cut.last().unwrap(),
        "Stream: stream disconnected before completion: stream closed before response.completed"
    );
    assert_eq!(script.finish(), Ok(()));
}

/// Sends one request as it is; the status, the head and the body.
async fn raw(address: SocketAddr, method: &str, path: &str, body: &str) -> (u16, String, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let text = format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head[9..12].parse().unwrap(), head.to_ascii_lowercase(), body.to_owned())
}

async fn check(method: &str, path: &str, body: &str, status: u16, expected: &str) {
    let address = start(Arc::new(OfflineModel)).await;
    let (found, head, answer) = raw(address, method, path, body).await;
    assert_eq!(found, status, "{method} {path}");
    assert!(head.contains("content-type: application/json"), "{head}");
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let shown = answer.pointer("/error/message").or_else(|| answer.pointer("/data/0/id")).unwrap();
    assert!(shown.as_str().unwrap().starts_with(expected), "{answer}");
}

#[tokio::test]
async fn everything_else_is_answered_with_a_json_error() {
    check("GET", "/v1/models", "", 200, "offline").await;
    check("GET", "/models", "", 200, "offline").await;
    check("GET", "/v1/responses", "", 405, "use POST").await;
    check("POST", "/v1/models", "", 405, "use GET").await;
    check("GET", "/", "", 404, "there is only POST /v1/responses").await;
    check("POST", "/v1/responses", "{", 400, "the body is no request: EOF").await;
    check("POST", "/v1/responses", "{}", 400, "`input` is missing").await;
}

#[tokio::test]
async fn a_client_may_do_without_a_stream() {
    let address = start(Arc::new(OfflineModel)).await;
    let (status, _, body) =
        raw(address, "POST", "/responses", r#"{"model":"offline","input":"say hi"}"#).await;
    let response: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, response["status"].as_str()), (200, Some("completed")));
    assert_eq!(response["output"][0]["content"][0]["text"], "Offline model: hi");
    let (_, head, body) = raw(address, "POST", "/v1/responses", r#"{"input":"say hi","stream":true}"#).await;
    assert!(head.contains("content-type: text/event-stream"), "{head}");
    assert!(body.contains("data: {\"type\":\"response.created\""), "{body}");
}

#[tokio::test]
async fn many_clients_at_once() {
    let address = start(Arc::new(OfflineModel)).await;
    let remote = transport(&provider(address));
    let clients = Vec::from_iter((0..50).map(|number| {
        let remote = remote.clone();
        tokio::spawn(async move {
            let found = events(&remote, request(&format!("say number {number}"))).await;
            assert!(lines(&found).join("").contains(&format!("number {number}")));
        })
    }));
    for client in clients {
        client.await.unwrap();
    }
}
