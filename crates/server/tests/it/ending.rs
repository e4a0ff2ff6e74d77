//! How the server ends.

use std::sync::atomic::Ordering;
use std::time::Duration;

use oarlock_server::{ExitReason, Listen};
use serde_json::{Value, json};
use testkit::within;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::app::{over, over_pipes, over_websockets};
use crate::client::{Lines, Peer, Ws};

#[tokio::test]
async fn at_the_end_of_input_the_last_answers_are_written() {
    let (mut client, mut server) = over_pipes(|_| {});
    client.initialize(Value::Null).await;
    client.ask(1, "thread/name/set", json!({"threadId": "t", "name": "wait"})).await;
    client.finish();
    within("a connection to be gone", server.gone.recv()).await.unwrap();
    assert!(!server.ended.is_finished());
    server.app.release("wait");
    assert_eq!(client.receive().await, json!({"id": 1, "result": {}}));
    assert_eq!(within("the next message or the end", client.next()).await, None);
    assert_eq!(within("the server to end", server.ended).await.unwrap(), ExitReason::EndOfInput);
    assert!(server.app.is_shut_down.load(Ordering::SeqCst));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_never_ends_does_not_hold_up_the_end() {
    let (mut client, server) = over_pipes(|options| options.grace = Duration::from_millis(50));
    client.initialize(Value::Null).await;
    client.ask(1, "thread/name/set", json!({"threadId": "t", "name": "wait for ever"})).await;
    client.finish();
    assert_eq!(within("the server to end", server.ended).await.unwrap(), ExitReason::EndOfInput);
    assert!(server.app.is_shut_down.load(Ordering::SeqCst));
}

#[tokio::test]
async fn a_client_that_cannot_be_written_to_is_gone() {
    let (mut client, server) = over_pipes(|_| {});
    client.initialize(Value::Null).await;
    let output = client.output.take();
    drop(client);
    let mut writer = crate::client::Lines::new(tokio::io::empty(), output.unwrap());
    writer.ask(1, "thread/loaded/list", json!({})).await;
    assert_eq!(within("the server to end", server.ended).await.unwrap(), ExitReason::EndOfInput);
}

#[tokio::test]
async fn a_signal_stops_a_single_client_in_good_order() {
    let (mut client, server) = over_pipes(|_| {});
    client.initialize(Value::Null).await;
    server.signals.send(()).await.unwrap();
    assert_eq!(within("the next message or the end", client.next()).await, None);
    assert_eq!(within("the server to end", server.ended).await.unwrap(), ExitReason::Stopped);
    assert!(server.app.is_shut_down.load(Ordering::SeqCst));
}

#[tokio::test]
async fn a_second_signal_does_not_wait() {
    let (mut client, server) = over_pipes(|_| {});
    client.initialize(Value::Null).await;
    server.app.may_shut_down.forget_permits(1);
    server.signals.send(()).await.unwrap();
    server.signals.send(()).await.unwrap();
    assert_eq!(within("the server to end", server.ended).await.unwrap(), ExitReason::Forced);
    assert!(!server.app.is_shut_down.load(Ordering::SeqCst));
}

#[tokio::test]
async fn a_listener_serves_until_no_turn_runs() {
    let server = over_websockets(|_| {}).await;
    let address = server.address();
    let mut client = Ws::connect(address).await;
    client.initialize(Value::Null).await;
    server.signals.send(()).await.unwrap();
    within("the request to stop", server.app.hub.stopping()).await;
    client.call(1, "thread/loaded/list", json!({})).await;
    let refused = client.call(2, "turn/start", json!({"threadId": "t", "input": []})).await;
    assert_eq!(refused["error"]["data"], json!({"code": "stopping"}), "{refused}");
    let mut page = tokio::net::TcpStream::connect(address).await.unwrap();
    page.write_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut text = String::new();
    within("the page", page.read_to_string(&mut text)).await.unwrap();
    assert!(text.starts_with("HTTP/1.1 503 ") && text.ends_with("stopping\n"), "{text}");
    let mut late = Ws::connect(address).await;
    late.initialize(Value::Null).await;
    server.app.idle.add_permits(1);
    assert_eq!(within("the next message or the end", client.next()).await, None);
    assert_eq!(within("the next message or the end", late.next()).await, None);
    assert_eq!(within("the server to end", server.ended).await.unwrap(), ExitReason::Stopped);
    assert!(server.app.is_shut_down.load(Ordering::SeqCst));
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn turns_that_do_not_end_in_time_are_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let server =
        over(Listen::Unix(path.clone()), |options| options.drain_timeout = Duration::from_secs(5)).await;
    let mut client = Lines::connect(&path).await;
    client.initialize(Value::Null).await;
    server.signals.send(()).await.unwrap();
    assert_eq!(within("the server to end", server.ended).await.unwrap(), ExitReason::Stopped);
    assert!(server.app.is_shut_down.load(Ordering::SeqCst));
}

#[tokio::test]
async fn a_second_signal_ends_a_listener_at_once() {
    let server = over_websockets(|_| {}).await;
    let mut client = Ws::connect(server.address()).await;
    client.initialize(Value::Null).await;
    server.signals.send(()).await.unwrap();
    server.signals.send(()).await.unwrap();
    assert_eq!(within("the server to end", server.ended).await.unwrap(), ExitReason::Forced);
    assert!(!server.app.is_shut_down.load(Ordering::SeqCst));
}
