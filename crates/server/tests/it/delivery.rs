//! Which connections get which message.

use protocol::{ServerNotification, ThreadId, ThreadStatus, ThreadStatusChangedNotification};
use serde_json::{Value, json};
use testkit::within;

use crate::app::{clients, delta, over_pipes};
use crate::client::{Lines, Peer};

fn status(thread: &ThreadId) -> ServerNotification {
    let status = ThreadStatus::Idle;
    ServerNotification::ThreadStatusChanged(ThreadStatusChangedNotification {
        thread_id: thread.clone(),
        status,
    })
}

/// The methods of what came until the answer to a request that is sent now.
async fn heard(client: &mut Lines) -> Vec<String> {
    client.ask(50, "thread/unsubscribe", json!({"threadId": "nowhere"})).await;
    let mut methods = Vec::new();
    loop {
        let message = client.receive().await;
        if message["id"] == 50 {
            return methods;
        }
        methods.push(message["method"].as_str().unwrap().to_owned());
    }
}

#[tokio::test]
async fn subscribers_hear_the_thread_and_everyone_hears_broadcasts() {
    let opted_out = json!({"optOutNotificationMethods": ["thread/status/changed", "item/plan/delta"]});
    let (_folder, server, [mut first, mut second, mut third]) =
        clients([Value::Null, Value::Null, opted_out]).await;
    let hub = &server.app.hub;
    let thread = ThreadId::from("t");
    first.join_quietly("t").await;
    third.join_quietly("t").await;
    hub.notify_thread(&thread, delta(&thread, "a")).await;
    hub.notify_thread(&thread, status(&thread)).await;
    hub.notify_thread(&ThreadId::from("other"), delta(&ThreadId::from("other"), "b")).await;
    assert_eq!(heard(&mut first).await, ["item/agentMessage/delta", "thread/status/changed"]);
    assert_eq!(heard(&mut second).await, ["thread/status/changed"]);
    assert_eq!(heard(&mut third).await, ["item/agentMessage/delta"]);

    hub.join_all(&thread);
    assert_eq!(hub.subscribers(&thread).len(), 3);
    hub.notify_thread(&thread, delta(&thread, "c")).await;
    assert_eq!(heard(&mut second).await, ["item/agentMessage/delta"]);
    hub.forget(&thread);
    hub.notify_thread(&thread, delta(&thread, "d")).await;
    assert_eq!(heard(&mut second).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_connection_hears_nothing_before_it_is_initialized_or_after_it_left() {
    let (folder, mut server, [first, mut second]) = clients([Value::Null, Value::Null]).await;
    let thread = ThreadId::from("t");
    let mut stranger = Lines::connect(&folder.path().join("socket")).await;
    let refused = stranger.call(1, "thread/loaded/list", json!({})).await;
    assert_eq!(refused["error"]["message"], "Not initialized");
    server.app.hub.notify_thread(&thread, status(&thread)).await;
    stranger.initialize(Value::Null).await;
    drop(first);
    within("a connection to be gone", server.gone.recv()).await.unwrap();
    assert_eq!(server.app.hub.connections(), 2);
    server.app.hub.notify_thread(&thread, status(&thread)).await;
    assert_eq!(heard(&mut second).await.len(), 2);
}

#[tokio::test]
async fn an_answer_that_sums_up_comes_behind_what_was_told_before() {
    let (mut client, _server) = over_pipes(|_| {});
    client.initialize(Value::Null).await;
    client.join_quietly("t").await;
    client.ask(5, "thread/unsubscribe", json!({"threadId": "t"})).await;
    assert_eq!(client.receive().await["params"]["delta"], "last words");
    assert_eq!(client.receive().await, json!({"id": 5, "result": {"status": "unsubscribed"}}));
}

#[tokio::test]
async fn deltas_that_wait_are_merged_and_nothing_is_lost() {
    const PIECES: usize = 20_000;
    let (mut client, server) = over_pipes(|_| {});
    client.initialize(Value::Null).await;
    client.join_quietly("t").await;
    let thread = ThreadId::from("t");
    let mut expected = String::new();
    // Nobody reads, and the queue has room for all of it.
    for number in 0..PIECES {
        let piece = format!("{number} \"é\"\n");
        server.app.hub.notify_thread(&thread, delta(&thread, &piece)).await;
        expected.push_str(&piece);
    }
    server.app.hub.notify_thread(&thread, status(&thread)).await;
    let (mut text, mut lines) = (String::new(), 0);
    loop {
        let message = client.receive().await;
        if message["method"] == "thread/status/changed" {
            break;
        }
        assert_eq!(message["params"]["itemId"], "item");
        text.push_str(message["params"]["delta"].as_str().unwrap());
        lines += 1;
    }
    assert!(text == expected);
    assert!(lines < PIECES / 2, "{lines} lines");
}
