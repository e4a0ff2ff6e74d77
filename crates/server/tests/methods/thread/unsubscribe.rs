//! `thread/unsubscribe`, and clients that go away without it.

use serde_json::json;
use testkit::{Stage, UNKNOWN_THREAD, endless, told};

#[tokio::test]
async fn the_last_to_leave_unloads_the_thread() {
    let stage = Stage::new(json!([{"text": "hello"}])).await;
    let server = stage.listen();
    let (mut first, mut second) = (server.connect().await, server.connect().await);
    let id = first.spoken_thread("hi").await;
    second.ask("thread/resume", json!({"threadId": id})).await;
    let leave = json!({"threadId": id});
    assert_eq!(second.ask("thread/unsubscribe", leave.clone()).await["status"], "unsubscribed");
    assert_eq!(second.ask("thread/unsubscribe", leave.clone()).await["status"], "notSubscribed");
    assert_eq!(first.ask("thread/loaded/list", json!({})).await["data"], json!([id]));
    first.rest().await;
    second.rest().await;
    assert_eq!(first.ask("thread/unsubscribe", leave.clone()).await["status"], "unsubscribed");
    for client in [&mut first, &mut second] {
        client.status(&id, "notLoaded").await;
        assert_eq!(client.next_of("thread/closed").await, json!({"threadId": id}));
        assert!(client.rest().await.is_empty());
    }
    assert_eq!(first.ask("thread/loaded/list", json!({})).await["data"], json!([]));
    assert_eq!(first.ask("thread/unsubscribe", leave).await["status"], "notLoaded");
    assert_eq!(
        first.ask("thread/unsubscribe", json!({"threadId": UNKNOWN_THREAD})).await["status"],
        "notLoaded"
    );
    let message = first.refused("thread/unsubscribe", json!({"threadId": "zzz"})).await;
    assert!(message.starts_with("invalid thread id: "), "{message}");
}

#[tokio::test]
async fn leaving_during_a_turn_interrupts_it() {
    let stage = Stage::new(json!([endless("part")])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({})).await;
    client.start_turn(&id, "work").await;
    client.next_of("item/agentMessage/delta").await;
    client.transcript();
    client.ask("thread/unsubscribe", json!({"threadId": id})).await;
    client.next_of("thread/closed").await;
    // How the thread stands between the turn and its own end is nobody's news.
    assert_eq!(client.transcript(), ["= thread/unsubscribe", "thread/status/changed", "thread/closed"]);
    // Nobody listens any more, so nobody hears of the turn's end; the record has it.
    assert!(!client.rest().await.contains(&"turn/completed".to_owned()));
    let read = client.ask("thread/read", json!({"threadId": id, "includeTurns": true})).await;
    assert_eq!(told(&read["thread"]), ["interrupted: work"]);
}

#[tokio::test]
async fn leaving_drops_an_open_question_without_a_word() {
    let call = json!({"name": "lookup", "callId": "call-1", "arguments": {"id": 7}});
    let stage = Stage::new(json!([{"call": call}])).await;
    let (_server, mut client) = stage.open().await;
    let tool = json!({"name": "lookup", "description": "d", "inputSchema": {"type": "object"}});
    let id = client.start_thread(json!({"dynamicTools": [tool]})).await;
    client.start_turn(&id, "look it up").await;
    let question = client.next_of("item/tool/call").await;
    client.ask("thread/unsubscribe", json!({"threadId": id})).await;
    client.next_of("thread/closed").await;
    client.answer(&question, json!({"contentItems": [], "success": true})).await;
    let resumed = client.ask("thread/resume", json!({"threadId": id})).await;
    assert_eq!(told(&resumed["thread"]), ["interrupted: look it up"]);
    let heard = client.rest().await;
    for method in ["item/tool/call", "serverRequest/resolved", "turn/completed"] {
        assert!(!heard.contains(&method.to_owned()), "{heard:?}");
    }
    stage.assert_played();
}

#[tokio::test]
async fn a_client_that_goes_away_leaves_its_threads_loaded() {
    let stage = Stage::new(json!([{"text": "hello"}, {"text": "again"}])).await;
    let server = stage.listen();
    let mut first = server.connect().await;
    let id = first.spoken_thread("hi").await;
    drop(first);
    let mut second = server.connect().await;
    assert_eq!(second.ask("thread/loaded/list", json!({})).await["data"], json!([id]));
    // Turns need no subscription; without one only broadcasts come.
    second.start_turn(&id, "more").await;
    second.status(&id, "idle").await;
    let heard = second.rest().await;
    assert!(heard.iter().all(|method| method == "thread/status/changed"), "{heard:?}");
}
