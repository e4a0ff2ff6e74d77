//! Turns that run: `turn/steer`, `turn/interrupt`, and a second `turn/start`.

use serde_json::{Value, json};

use crate::client::{Client, text, told, turn};
use crate::stage::{Stage, endless};

const UNKNOWN: &str = "019a8b3c-0000-7000-8000-000000000001";

/// A model that asks the client for something, then says two things.
fn asking() -> Value {
    let call = json!({"name": "lookup", "callId": "call-1", "arguments": {"id": 7}});
    json!([{"call": call}, {"text": "seen"}, {"text": "next"}])
}

/// A thread with a turn that waits for the client; gives thread, turn and question.
async fn waiting(client: &mut Client) -> (String, String, Value) {
    let tool = json!({"name": "lookup", "description": "d", "inputSchema": {"type": "object"}});
    let id = client.start_thread(json!({"dynamicTools": [tool]})).await;
    let turn_id = client.start_turn(&id, "look it up").await;
    let question = client.next_of("item/tool/call").await;
    (id, turn_id, question)
}

fn found() -> Value {
    json!({"contentItems": [{"type": "inputText", "text": "seven"}], "success": true})
}

fn steer(thread: &str, said: &str, expected: &str) -> Value {
    json!({"threadId": thread, "input": [{"type": "text", "text": said}], "expectedTurnId": expected})
}

#[tokio::test]
async fn steering_needs_the_turn_that_runs() {
    let stage = Stage::new(asking()).await;
    let (_server, mut client) = stage.open().await;
    let idle = client.start_thread(json!({})).await;
    let (id, turn_id, _) = waiting(&mut client).await;
    let cases = [
        (steer(UNKNOWN, "x", "t"), format!("thread not found: {UNKNOWN}")),
        (steer(&idle, "x", "t"), "no active turn to steer".to_owned()),
        (steer(&id, "x", ""), "expectedTurnId must not be empty".to_owned()),
        (steer(&id, "x", "t"), format!("expected active turn id `t` but found `{turn_id}`")),
        (
            json!({"threadId": id, "input": [], "expectedTurnId": turn_id}),
            "input must not be empty".to_owned(),
        ),
    ];
    for (params, expected) in cases {
        assert_eq!(client.refused("turn/steer", params).await, expected);
    }
}

#[tokio::test]
async fn whoever_joins_sees_what_is_under_way() {
    let stage = Stage::new(asking()).await;
    let (_server, mut client) = stage.open().await;
    let (id, turn_id, question) = waiting(&mut client).await;
    let params = json!({"threadId": id, "includeTurns": true});
    let joined = client.ask("thread/resume", json!({"threadId": id})).await;
    for thread in [&joined["thread"], &client.ask("thread/read", params.clone()).await["thread"]] {
        let turn = &thread["turns"][0];
        assert_eq!((&turn["id"], &turn["status"]), (&json!(turn_id), &json!("inProgress")));
        let call = &turn["items"][1];
        assert_eq!((&call["type"], &call["id"]), (&json!("dynamicToolCall"), &json!("call-1")), "{turn}");
        assert_eq!((&call["status"], &call["arguments"]), (&json!("inProgress"), &json!({"id": 7})));
    }
    client.answer(&question, found()).await;
    client.next_of("turn/completed").await;
    let read = client.ask("thread/read", params).await;
    assert_eq!(read["thread"]["turns"][0]["items"][1]["status"], "completed");
}

#[tokio::test]
async fn a_command_that_runs_on_is_shown_as_running() {
    let call = json!({"name": "exec_command", "callId": "call-1",
                      "arguments": {"cmd": "sleep 600", "login": false, "yield_time_ms": 250}});
    let config = "approval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"";
    let stage = Stage::configured(json!([{"call": call}, {"text": "done"}]), config).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"cwd": stage.cwd()})).await;
    client.turn(&id, "go").await;
    let params = json!({"threadId": id, "includeTurns": true});
    let read = client.ask("thread/read", params.clone()).await;
    let turn = &read["thread"]["turns"][0];
    assert_eq!((&turn["status"], &turn["items"][1]["status"]), (&json!("completed"), &json!("inProgress")));
    client.ask("thread/backgroundTerminals/clean", json!({"threadId": id})).await;
    client.wait_for("item/completed", |params| params["item"]["id"] == "call-1").await;
    let read = client.ask("thread/read", params).await;
    assert_eq!(read["thread"]["turns"][0]["items"][1]["status"], "failed");
}

#[tokio::test]
async fn steered_words_join_the_turn_at_the_next_request() {
    for method in ["turn/steer", "turn/start"] {
        let stage = Stage::new(asking()).await;
        let (_server, mut client) = stage.open().await;
        let (id, turn_id, question) = waiting(&mut client).await;
        let answered = match method {
            "turn/steer" => client.ask(method, steer(&id, "and quickly", &turn_id)).await["turnId"].clone(),
            // While a turn runs it is the same, and the answer is the turn that was joined.
            _ => client.ask(method, turn(&id, "and quickly")).await["turn"]["id"].clone(),
        };
        assert_eq!(answered, json!(turn_id), "{method}");
        client.answer(&question, found()).await;
        let ended = client.next_of("turn/completed").await;
        assert_eq!(ended["turn"]["id"], json!(turn_id));
        client.item("userMessage").await;
        let said = client.wait_for("item/completed", |params| params["item"]["type"] == "userMessage").await;
        assert_eq!(
            (&said["turnId"], &said["item"]["content"][0]["text"]),
            (&json!(turn_id), &json!("and quickly"))
        );
        let asked = stage.asked();
        assert!(!asked[0]["input"].to_string().contains("and quickly"));
        assert!(asked[1]["input"].to_string().contains("and quickly"), "{method}");
        let heard = client.rest().await;
        assert!(!heard.iter().any(|method| method == "turn/completed"), "{heard:?}");
        let read = client.ask("thread/read", json!({"threadId": id, "includeTurns": true})).await;
        assert_eq!(told(&read["thread"]), ["completed: look it up"]);
    }
}

#[tokio::test]
async fn an_interrupt_is_answered_then_told() {
    let stage = Stage::new(json!([endless("part"), {"text": "after"}])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({})).await;
    let turn_id = client.start_turn(&id, "work").await;
    client.next_of("item/agentMessage/delta").await;
    client.transcript();
    let answer = client.ask("turn/interrupt", json!({"threadId": id, "turnId": turn_id})).await;
    assert_eq!(answer, json!({}));
    let ended = client.next_of("turn/completed").await["turn"].clone();
    assert_eq!((&ended["status"], &ended["error"]), (&json!("interrupted"), &Value::Null));
    assert_eq!(
        client.transcript(),
        ["= turn/interrupt", "item/completed", "thread/status/changed", "turn/completed"]
    );
    // What had arrived is kept, and the model hears that it was stopped.
    assert_eq!(client.item("agentMessage").await["text"], "part");
    client.turn(&id, "go on").await;
    let input = stage.asked()[1]["input"].to_string();
    assert!(input.contains("<turn_aborted>"), "{input}");
}

#[tokio::test]
async fn an_interrupt_without_its_turn_is_refused_and_changes_nothing() {
    let stage = Stage::new(json!([{"text": "hello"}, endless("part")])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.spoken_thread("hi").await;
    client.rest().await;
    for (thread, turn_id, expected) in [
        (id.as_str(), "t", "no active turn to interrupt".to_owned()),
        (&id, "", "no active turn to interrupt".to_owned()),
        (UNKNOWN, "t", format!("thread not found: {UNKNOWN}")),
    ] {
        let params = json!({"threadId": thread, "turnId": turn_id});
        assert_eq!(client.refused("turn/interrupt", params).await, expected);
    }
    assert!(client.rest().await.is_empty());

    let turn_id = client.start_turn(&id, "work").await;
    client.next_of("item/agentMessage/delta").await;
    let late = client.refused("turn/interrupt", json!({"threadId": id, "turnId": "earlier"})).await;
    assert!(late.contains(&turn_id), "{late}");
    assert!(!client.rest().await.contains(&"turn/completed".to_owned()));
    // An empty id means whatever runs.
    assert_eq!(client.ask("turn/interrupt", json!({"threadId": id, "turnId": ""})).await, json!({}));
    let ended = client.next_of("turn/completed").await["turn"].clone();
    assert_eq!((&ended["id"], &ended["status"]), (&json!(turn_id), &json!("interrupted")));
}

#[tokio::test]
async fn an_interrupt_ends_a_pending_tool_call() {
    let stage = Stage::new(asking()).await;
    let (_server, mut client) = stage.open().await;
    let (id, turn_id, question) = waiting(&mut client).await;
    client.ask("turn/steer", steer(&id, "too late", &turn_id)).await;
    client.ask("turn/interrupt", json!({"threadId": id, "turnId": turn_id})).await;
    assert_eq!(client.next_of("turn/completed").await["turn"]["status"], "interrupted");
    let call = client.item("dynamicToolCall").await;
    assert_eq!((&call["status"], &call["id"]), (&json!("failed"), &json!("call-1")));
    // An answer that comes too late changes nothing.
    client.answer(&question, found()).await;
    let heard = client.rest().await;
    assert!(!heard.contains(&"serverRequest/resolved".to_owned()), "{heard:?}");
    let joined = client.ask("thread/resume", json!({"threadId": id})).await;
    assert!(!client.rest().await.contains(&"item/tool/call".to_owned()));
    // What was steered is not lost.
    let items = joined["thread"]["turns"][0]["items"].as_array().expect("items");
    let said: Vec<String> = items
        .iter()
        .filter(|item| item["type"] == "userMessage")
        .map(|item| text(&item["content"][0]["text"]))
        .collect();
    assert_eq!(said, ["look it up", "too late"]);
    client.turn(&id, "go on").await;
    let input = stage.asked()[1]["input"].to_string();
    assert!(input.contains("too late") && input.contains("aborted by user"), "{input}");
}
