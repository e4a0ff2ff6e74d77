//! Websockets: who is let in, what frames mean, and slow readers.

use std::sync::Arc;

use futures_util::{SinkExt, StreamExt};
use oarlock_server::{AuthFlags, WsAuthMode};
use protocol::{ServerNotification, ThreadId, TurnDiffUpdatedNotification};
use runtime::SystemClock;
use serde_json::{Value, json};
use testkit::within;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;

use crate::app::{Running, over_websockets};
use crate::client::{Peer, Ws};

const UPGRADE: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                       Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

/// The status and body of the answer to a raw request.
async fn http(server: &Running, line: &str, headers: &str) -> (u16, String) {
    let (head, body) = exchange(server, line, headers).await;
    (head[9..12].parse().unwrap(), body)
}

/// The status and head of the answer.
async fn head_of(server: &Running, line: &str, headers: &str) -> (u16, String) {
    let (head, _) = exchange(server, line, headers).await;
    (head[9..12].parse().unwrap(), head)
}

async fn exchange(server: &Running, line: &str, headers: &str) -> (String, String) {
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    stream.write_all(format!("{line} HTTP/1.1\r\n{headers}\r\n").as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // A websocket stays open: its head is all there is to read.
    while !answer.ends_with(b"\r\n\r\n") || !answer.starts_with(b"HTTP/1.1 101") {
        let mut byte = [0];
        if within("a byte of the answer", stream.read(&mut byte)).await.unwrap() == 0 {
            break;
        }
        answer.push(byte[0]);
    }
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

async fn check(server: &Running, line: &str, headers: &str, status: u16, body: &str) {
    let expected = (status, body.to_owned());
    assert_eq!(http(server, line, headers).await, expected, "{line} {headers}");
}

#[tokio::test]
async fn who_is_let_in() {
    let server = over_websockets(|_| {}).await;
    let host = format!("Host: {}\r\n", server.address());
    let upgrade = format!("{host}{UPGRADE}");
    check(&server, "GET /", &upgrade, 101, "").await;
    check(&server, "GET /any/path?token=x", &upgrade, 101, "").await;
    for health in ["/readyz", "/healthz"] {
        check(&server, &format!("GET {health}"), &host, 200, "").await;
        check(&server, &format!("HEAD {health}"), &host, 200, "").await;
        check(&server, &format!("POST {health}"), &host, 405, "").await;
        check(&server, &format!("GET {health}"), &format!("{host}Origin: null\r\n"), 403, "").await;
    }
    check(&server, "GET /other", &host, 400, "expected a websocket upgrade").await;
    check(&server, "GET /", &format!("{upgrade}Origin: http://{}\r\n", server.address()), 101, "").await;
    for origin in ["http://evil", "null"] {
        check(&server, "GET /", &format!("{upgrade}Origin: {origin}\r\n"), 403, "").await;
    }
    let rebound = format!("Host: evil.example\r\n{UPGRADE}");
    check(&server, "GET /", &rebound, 403, "the host is not this machine").await;
}

/// Everything a browser needs to keep what a model printed from running, and nothing of the page in a cache.
#[tokio::test]
async fn the_console_is_served_with_strict_headers() {
    let server = over_websockets(|_| {}).await;
    let host = format!("Host: {}\r\n", server.address());
    let (status, head) = head_of(&server, "HEAD /", &host).await;
    assert_eq!(status, 200);
    for expected in [
        "content-type: text/html; charset=utf-8",
        "content-encoding: gzip",
        "cache-control: no-store",
        "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self';",
        "frame-ancestors 'none'",
        "x-content-type-options: nosniff",
        "connection: close",
    ] {
        assert!(head.contains(expected), "{expected} is not in {head}");
    }
    assert!(!head.contains("unsafe"), "{head}");
}

#[tokio::test]
async fn a_token_is_asked_for_on_upgrade_only() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "open-sesame\n").unwrap();
    let flags = AuthFlags {
        mode: Some(WsAuthMode::CapabilityToken),
        token_file: Some(token),
        ..AuthFlags::default()
    };
    let server = over_websockets(|options| options.auth = flags.load(Arc::new(SystemClock)).unwrap()).await;
    let host = format!("Host: {}\r\n", server.address());
    let upgrade = |authorization: &str| format!("{host}{UPGRADE}{authorization}");
    check(&server, "GET /readyz", &host, 200, "").await;
    check(&server, "GET /", &upgrade(""), 401, "missing websocket bearer token").await;
    check(&server, "GET /?token=open-sesame", &upgrade(""), 401, "missing websocket bearer token").await;
    check(&server, "GET /", &upgrade("Authorization: Basic x\r\n"), 401, "invalid authorization header")
        .await;
    let wrong = upgrade("Authorization: Bearer no\r\n");
    check(&server, "GET /", &wrong, 401, "invalid websocket bearer token").await;
    check(&server, "GET /", &upgrade("Authorization: bearer open-sesame\r\n"), 101, "").await;
}

#[tokio::test]
async fn each_text_frame_is_a_message() {
    let server = over_websockets(|_| {}).await;
    let mut client = Ws::connect(server.address()).await;
    client.initialize(Value::Null).await;
    client.0.send(Message::binary(b"{\"id\":1,\"method\":\"account/logout\"}".to_vec())).await.unwrap();
    client.send_text("  ").await;
    client.send_text("{not json}").await;
    assert_eq!(client.receive().await["error"]["code"], -32700);
    client.send_text("{\"id\":2,\n \"method\":\"account/logout\"}").await;
    assert_eq!(client.receive().await, json!({"id": 2, "result": {}}));
}

#[tokio::test]
async fn a_ping_is_answered_once() {
    let server = over_websockets(|_| {}).await;
    let mut client = Ws::connect(server.address()).await;
    client.initialize(Value::Null).await;
    client.0.send(Message::Ping(b"are you there".to_vec().into())).await.unwrap();
    client.ask(1, "thread/loaded/list", json!({})).await;
    client.ask(2, "thread/loaded/list", json!({})).await;
    let mut pongs = 0;
    let mut answers = 0;
    while answers < 2 || pongs == 0 {
        match within("a frame", client.0.next()).await.unwrap().unwrap() {
            Message::Pong(payload) => {
                assert_eq!(&payload[..], b"are you there");
                pongs += 1;
            }
            Message::Text(_) => answers += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(pongs, 1);
}

/// The code with which the server closes after these bytes.
async fn close_code(server: &Running, bytes: &[u8]) -> Option<u16> {
    let mut client = Ws::connect(server.address()).await;
    client.initialize(Value::Null).await;
    client.0.get_mut().write_all(bytes).await.unwrap();
    loop {
        match within("a frame", client.0.next()).await? {
            Ok(Message::Close(frame)) => return frame.map(|frame| frame.code.into()),
            Ok(_) => {}
            Err(_) => return None,
        }
    }
}

#[tokio::test]
async fn frames_against_the_rules_close_their_connection_only() {
    let server = over_websockets(|options| options.max_line_bytes = 1000).await;
    let mut other = Ws::connect(server.address()).await;
    other.initialize(Value::Null).await;
    let bad_text = [&[0x81, 0x82, 0, 0, 0, 0][..], b"\xff\xfe"].concat();
    let terabyte = [&[0x81, 0xff][..], &(1_u64 << 40).to_be_bytes(), &[0; 4]].concat();
    let unmasked = [&[0x81, 0x02][..], b"{}"].concat();
    assert_eq!(close_code(&server, &bad_text).await, Some(1007));
    assert_eq!(close_code(&server, &terabyte).await, Some(1009));
    assert_eq!(close_code(&server, &unmasked).await, Some(1002));
    other.call(1, "thread/loaded/list", json!({})).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_stops_is_disconnected_and_others_go_on() {
    let mut server = over_websockets(|options| options.outbox.max_message_bytes = 256 * 1024).await;
    let hub = server.app.hub.clone();
    let thread = ThreadId::from("t");
    let mut slow = Ws::connect(server.address()).await;
    slow.initialize(Value::Null).await;
    slow.join_quietly("t").await;
    let slow_id = hub.subscribers(&thread)[0];
    let mut quick = Ws::connect(server.address()).await;
    quick.initialize(Value::Null).await;
    quick.join_quietly("t").await;
    let diff = "x".repeat(32 * 1024);
    let mut told = 0;
    while hub.subscribers(&thread).contains(&slow_id) {
        assert!(told < 10_000, "the slow reader is still there");
        let notification = ServerNotification::TurnDiffUpdated(TurnDiffUpdatedNotification {
            thread_id: thread.clone(),
            turn_id: "turn".into(),
            diff: diff.clone(),
        });
        within("room for a notification", hub.notify_thread(&thread, notification)).await;
        assert_eq!(quick.receive().await["method"], "turn/diff/updated");
        told += 1;
    }
    assert_eq!(within("a connection to be gone", server.gone.recv()).await, Some(slow_id));
    quick.call(1, "thread/loaded/list", json!({})).await;
    // It may come back.
    let mut again = Ws::connect(server.address()).await;
    again.initialize(Value::Null).await;
    again.join_quietly("t").await;
    assert_eq!(hub.subscribers(&thread).len(), 2);
}
