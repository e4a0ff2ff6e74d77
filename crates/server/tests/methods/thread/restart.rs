//! Servers that end in the middle of things, and what the next one finds.

use serde_json::{Value, json};
use testkit::{Stage, endless, kinds, text, told, turn};

fn tool() -> Value {
    json!({"name": "lookup", "description": "d", "inputSchema": {"type": "object"}})
}

#[tokio::test]
async fn after_a_kill_all_that_was_acknowledged_is_there() {
    let fail = json!({"fail": {"status": 400, "body": {"error": {"message": "no"}}}});
    let stage = Stage::new(json!([{"text": "hello"}, fail, endless("part"), {"text": "after"}])).await;
    let (server, mut client) = stage.open().await;
    let id = client.spoken_thread("one").await;
    let failed = client.turn(&id, "two").await;
    let begun = client.ask("turn/start", turn(&id, "three")).await["turn"].clone();
    client.wait_for("item/agentMessage/delta", |params| params["turnId"] == begun["id"]).await;
    server.kill().await;

    let (_server, mut client) = stage.open().await;
    let expected = ["completed: one", "failed: two", "interrupted: three"];
    let read = client.ask("thread/read", json!({"threadId": id, "includeTurns": true})).await;
    assert_eq!(told(&read["thread"]), expected);
    assert_eq!(read["thread"]["turns"][1]["error"], failed["error"]);
    assert_eq!(read["thread"]["turns"][2]["id"], begun["id"]);
    // Twice: the first resume changes nothing about it.
    for _ in 0..2 {
        let resumed = client.ask("thread/resume", json!({"threadId": id})).await;
        assert_eq!(told(&resumed["thread"]), expected);
        assert_eq!(resumed["thread"]["status"], json!({"type": "idle"}));
    }
    assert_eq!(client.turn(&id, "four").await["status"], "completed");
    let input = stage.asked()[3]["input"].to_string();
    for said in ["one", "hello", "two", "three"] {
        assert!(input.contains(&format!("\"{said}\"")), "{said}: {input}");
    }
    let read = client.ask("thread/read", json!({"threadId": id, "includeTurns": true})).await;
    assert_eq!(told(&read["thread"])[..3], expected);
}

/// Killed right after the answer: whatever a client was told happened has happened.
#[tokio::test]
async fn what_was_answered_survives_a_kill_at_once() {
    let stage = Stage::new(json!([endless("part")])).await;
    let (server, mut client) = stage.open().await;
    let id = client.start_thread(json!({})).await;
    client.ask("turn/start", turn(&id, "said and acknowledged")).await;
    server.kill().await;
    assert_eq!(told(&stage.read(&id).await), ["interrupted: said and acknowledged"]);
    let (_server, mut client) = stage.open().await;
    let listed = client.ask("thread/list", json!({})).await;
    assert_eq!(listed["data"][0]["preview"], "said and acknowledged");
}

/// A power cut after each message of a turn: every item that was told to be complete is in the record.
#[tokio::test]
async fn nothing_told_is_lost_wherever_the_power_fails() {
    const MOST: usize = 30;
    let stage = Stage::new(Value::Array(vec![json!({"text": "one two three four"}); MOST])).await;
    for cut in 0..MOST {
        let (server, mut client) = stage.open().await;
        let id = client.start_thread(json!({})).await;
        client.rest().await;
        client.ask("turn/start", turn(&id, "count")).await;
        let mut told = Vec::new();
        for _ in 0..cut {
            told.push(client.next().await);
        }
        server.kill().await;
        let read = stage.read(&id).await;
        let turns = read["turns"].as_array().expect("turns");
        assert_eq!(turns.len(), 1, "cut {cut}");
        let items = turns[0]["items"].as_array().expect("items");
        assert_eq!(items[0]["content"][0]["text"], "count", "cut {cut}");
        for message in told.iter().filter(|message| message["method"] == "item/completed") {
            let item = &message["params"]["item"];
            assert!(items.contains(item), "cut {cut}: {item} is not in {items:?}");
        }
        if told.last().is_some_and(|message| message["method"] == "turn/completed") {
            assert_eq!(turns[0]["status"], "completed");
            return;
        }
    }
    panic!("the turn did not end in {MOST} messages");
}

#[tokio::test]
async fn names_rollbacks_and_the_archive_survive_a_kill() {
    let stage = Stage::new(json!([{"text": "a"}, {"text": "b"}, {"text": "c"}])).await;
    let (server, mut client) = stage.open().await;
    let kept = client.spoken_thread("one").await;
    client.turn(&kept, "two").await;
    client.ask("thread/name/set", json!({"threadId": kept, "name": "named"})).await;
    client.ask("thread/rollback", json!({"threadId": kept, "numTurns": 1})).await;
    let put_away = client.spoken_thread("three").await;
    client.ask("thread/archive", json!({"threadId": put_away})).await;
    server.kill().await;
    let (_server, mut client) = stage.open().await;
    let listed = client.ask("thread/list", json!({})).await;
    assert_eq!((&listed["data"][0]["id"], &listed["data"][0]["name"]), (&json!(kept), &json!("named")));
    assert_eq!(listed["data"].as_array().map(Vec::len), Some(1));
    let read = client.ask("thread/read", json!({"threadId": kept, "includeTurns": true})).await;
    assert_eq!(told(&read["thread"]), ["completed: one"]);
    let archived = client.ask("thread/list", json!({"archived": true})).await;
    assert_eq!(archived["data"][0]["id"], json!(put_away));
}

#[tokio::test]
async fn a_call_that_was_open_at_a_kill_is_not_run_again() {
    let call = json!({"name": "lookup", "callId": "call-1", "arguments": {"id": 7}});
    let stage = Stage::new(json!([{"call": call}, {"text": "after"}])).await;
    let (server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"dynamicTools": [tool()]})).await;
    client.start_turn(&id, "look it up").await;
    client.next_of("item/tool/call").await;
    server.kill().await;

    let (_server, mut client) = stage.open().await;
    let resumed = client.ask("thread/resume", json!({"threadId": id})).await;
    assert_eq!(told(&resumed["thread"]), ["interrupted: look it up"]);
    assert!(!client.rest().await.contains(&"item/tool/call".to_owned()));
    // The tools of the thread came back with it, and the model sees that the call has no result.
    assert_eq!(client.turn(&id, "go on").await["status"], "completed");
    let asked = &stage.asked()[1];
    let input = asked["input"].as_array().expect("input");
    let calls = input.iter().filter(|item| item["type"] == "function_call").count();
    let outputs: Vec<&Value> = input.iter().filter(|item| item["type"] == "function_call_output").collect();
    assert_eq!((calls, outputs.len()), (1, 1), "{input:?}");
    assert_eq!(outputs[0]["call_id"], "call-1");
    let offered = asked["tools"].as_array().expect("tools").iter().any(|tool| tool["name"] == "lookup");
    assert!(offered, "{}", asked["tools"]);
}

#[tokio::test]
async fn a_server_that_stops_records_the_turn_it_cut_off() {
    let stage = Stage::new(json!([endless("part")])).await;
    let (server, mut client) = stage.open().await;
    let id = client.start_thread(json!({})).await;
    client.start_turn(&id, "work").await;
    client.next_of("item/agentMessage/delta").await;
    server.stop().await;
    let read = stage.read(&id).await;
    assert_eq!(told(&read), ["interrupted: work"]);
    assert_eq!(kinds(&read["turns"][0]), ["userMessage", "agentMessage"]);
}

#[tokio::test]
async fn a_torn_last_line_costs_only_itself() {
    let stage = Stage::new(json!([{"text": "hello"}, {"text": "again"}])).await;
    let (server, mut client) = stage.open().await;
    let id = client.spoken_thread("one").await;
    let path = text(&client.ask("thread/read", json!({"threadId": id})).await["thread"]["path"]);
    server.kill().await;
    let mut bytes = std::fs::read(&path).expect("a record");
    bytes.extend_from_slice(b"{\"seq\":99,\"at\":\"20");
    std::fs::write(&path, bytes).expect("a record");
    let (_server, mut client) = stage.open().await;
    let resumed = client.ask("thread/resume", json!({"threadId": id})).await;
    assert_eq!(told(&resumed["thread"]), ["completed: one"]);
    assert_eq!(client.turn(&id, "two").await["status"], "completed");
    let read = client.ask("thread/read", json!({"threadId": id, "includeTurns": true})).await;
    assert_eq!(told(&read["thread"]), ["completed: one", "completed: two"]);
}

/// A defect in the work of one thread: the clock panics under it.
#[tokio::test]
async fn a_panic_marks_one_thread_and_nothing_else() {
    let call = json!({"name": "lookup", "callId": "call-1", "arguments": {"id": 7}});
    let stage =
        Stage::new(json!([{"text": "calm"}, {"call": call}, {"text": "still calm"}, {"text": "back"}])).await;
    let (_server, mut client) = stage.open().await;
    let calm = client.spoken_thread("one").await;
    let id = client.start_thread(json!({"dynamicTools": [tool()]})).await;
    client.start_turn(&id, "look it up").await;
    let question = client.next_of("item/tool/call").await;
    stage.clock.break_once();
    client.answer(&question, json!({"contentItems": [], "success": true})).await;
    client.status(&id, "systemError").await;

    // The other thread, and the server, go on.
    assert_eq!(client.turn(&calm, "two").await["status"], "completed");
    let loaded = client.ask("thread/read", json!({"threadId": calm})).await;
    assert_eq!(loaded["thread"]["status"], json!({"type": "idle"}));
    // The broken one has left memory and can be taken up again.
    let message = client.request("turn/start", turn(&id, "hello?")).await.expect_err("a refusal").message;
    assert!(message.contains(&id), "{message}");
    let resumed = client.ask("thread/resume", json!({"threadId": id})).await;
    assert_eq!(told(&resumed["thread"]), ["interrupted: look it up"]);
    assert_eq!(client.turn(&id, "back to work").await["status"], "completed");
    assert_eq!(client.ask("thread/loaded/list", json!({})).await["data"].as_array().map(Vec::len), Some(2));
}
