//! `thread/resume`: stored threads, running ones, and threads made of a given history.

use serde_json::{Value, json};
use testkit::{Stage, UNKNOWN_THREAD, endless, kinds, text, told, turn};

#[tokio::test]
async fn a_thread_without_a_record_cannot_be_resumed() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open().await;
    let thread = client.start_thread(json!({})).await;
    for id in [thread.as_str(), UNKNOWN_THREAD] {
        let message = client.refused("thread/resume", json!({"threadId": id})).await;
        assert_eq!(message, format!("no rollout found for thread id {id}"));
    }
}

#[tokio::test]
async fn the_past_comes_back_with_texts_and_elements() {
    let stage = Stage::new(json!([{"text": "hello there"}])).await;
    let elements = json!([{"byteRange": {"start": 0, "end": 5}, "placeholder": "<note>"}]);
    let (server, mut client) = stage.open().await;
    let opened = client.ask("thread/start", json!({"cwd": stage.cwd()})).await;
    let id = text(&opened["thread"]["id"]);
    let input = json!([{"type": "text", "text": "hello you", "text_elements": elements}]);
    client.turn_with(json!({"threadId": id, "input": input})).await;
    let live = client.item("agentMessage").await;
    server.stop().await;

    let (_server, mut client) = stage.open().await;
    client.transcript();
    let resumed = client.ask("thread/resume", json!({"threadId": id})).await;
    let thread = &resumed["thread"];
    assert_eq!((&thread["id"], &thread["path"]), (&opened["thread"]["id"], &opened["thread"]["path"]));
    assert_eq!((&thread["preview"], &thread["status"]), (&json!("hello you"), &json!({"type": "idle"})));
    assert_eq!((&thread["cwd"], &thread["source"]), (&json!(stage.cwd()), &json!("vscode")));
    assert_eq!(told(thread), ["completed: hello you"]);
    let items = &thread["turns"][0]["items"];
    assert_eq!(kinds(&thread["turns"][0]), ["userMessage", "agentMessage"]);
    assert_eq!(items[0]["content"], input);
    // Live ids stay in the rebuilt history.
    assert_eq!(items[1], live);
    assert_eq!(client.transcript(), ["thread/status/changed", "= thread/resume"]);
    assert_eq!(client.status(&id, "idle").await["threadId"], json!(id));
    assert!(client.rest().await.is_empty());
}

#[tokio::test]
async fn a_resumed_thread_remembers_for_the_model() {
    let stage = Stage::new(json!([{"text": "first"}, {"text": "second"}])).await;
    let (server, mut client) = stage.open().await;
    let id = client.spoken_thread("one").await;
    server.stop().await;
    let (_server, mut client) = stage.open().await;
    client.ask("thread/resume", json!({"threadId": id})).await;
    client.turn(&id, "two").await;
    let said: Vec<String> = stage.asked()[1]["input"].as_array().expect("input").iter().map(spoken).collect();
    let tail: Vec<&str> = said.iter().map(String::as_str).filter(|text| !text.starts_with('<')).collect();
    assert!(tail.ends_with(&["one", "first", "two"]), "{said:?}");
    stage.assert_played();
}

fn spoken(item: &Value) -> String {
    item["content"][0]["text"].as_str().unwrap_or("<none>").to_owned()
}

#[tokio::test]
async fn the_stored_branch_wins() {
    let stage = Stage::new(json!([{"text": "hello"}])).await;
    let (server, mut client) = stage.open().await;
    let id = client.spoken_thread("hi").await;
    client.ask("thread/metadata/update", json!({"threadId": id, "gitInfo": {"branch": "kept"}})).await;
    server.stop().await;
    let (_server, mut client) = stage.open().await;
    let resumed = client.ask("thread/resume", json!({"threadId": id})).await;
    assert_eq!(resumed["thread"]["gitInfo"]["branch"], "kept");
}

#[tokio::test]
async fn resuming_changes_nothing_until_a_turn_runs() {
    let stage = Stage::new(json!([{"text": "hello"}, {"text": "again"}])).await;
    stage.clock.set(1_000_000_000_000);
    let (server, mut client) = stage.open().await;
    let id = client.spoken_thread("hi").await;
    server.stop().await;
    let path = text(&stage.read(&id).await["path"]);
    let stamp = || std::fs::metadata(&path).expect("a file").modified().expect("a time");
    let (before, updated) = (stamp(), stage.read(&id).await["updatedAt"].clone());
    assert_eq!(updated, 1_000_000_000);

    stage.clock.set(1_000_000_500_000);
    let (_server, mut client) = stage.open().await;
    for params in [json!({"threadId": id}), json!({"threadId": id, "model": "another"})] {
        let resumed = client.ask("thread/resume", params).await;
        assert_eq!((&resumed["thread"]["updatedAt"], stamp()), (&updated, before));
        client.ask("thread/unsubscribe", json!({"threadId": id})).await;
    }
    client.ask("thread/resume", json!({"threadId": id, "model": "another"})).await;
    client.turn(&id, "more").await;
    let read = client.ask("thread/read", json!({"threadId": id})).await;
    assert_eq!(read["thread"]["updatedAt"], 1_000_000_500);
    assert_eq!(stage.asked()[1]["model"], "another");
}

#[tokio::test]
async fn a_model_that_a_turn_chose_is_gone_on_with() {
    let stage = Stage::new(json!([{"text": "hello"}])).await;
    let (server, mut client) = stage.open().await;
    let id = client.start_thread(json!({})).await;
    let mut params = turn(&id, "hi");
    params["model"] = json!("chosen");
    params["effort"] = json!("low");
    client.turn_with(params).await;
    server.stop().await;
    let (_server, mut client) = stage.open().await;
    let resumed = client.ask("thread/resume", json!({"threadId": id})).await;
    assert_eq!((&resumed["model"], &resumed["reasoningEffort"]), (&json!("chosen"), &json!("low")));
    client.ask("thread/unsubscribe", json!({"threadId": id})).await;
    let resumed = client.ask("thread/resume", json!({"threadId": id, "model": "other"})).await;
    assert_eq!(resumed["model"], "other");
}

#[tokio::test]
async fn a_running_thread_is_joined_as_it_is() {
    let stage = Stage::new(json!([{"text": "zero"}, endless("part")])).await;
    let server = stage.listen();
    let mut first = server.connect().await;
    let id = first.spoken_thread("before").await;
    let turn_id = first.start_turn(&id, "work").await;
    first.wait_for("item/agentMessage/delta", |params| params["turnId"] == json!(turn_id)).await;

    let mut second = server.connect().await;
    second.transcript();
    let joined = second.ask("thread/resume", json!({"threadId": id, "model": "ignored"})).await;
    assert_eq!(joined["model"], "mock-model");
    let thread = &joined["thread"];
    assert_eq!(thread["status"], json!({"type": "active", "activeFlags": []}));
    assert_eq!(told(thread), ["completed: before", "inProgress: work"]);
    assert_eq!(thread["turns"][1]["id"], json!(turn_id));
    // No status event for a thread that was in memory already.
    assert_eq!(second.transcript(), ["= thread/resume"]);

    let history = json!([{"type": "message", "role": "user", "content": []}]);
    let message = second.refused("thread/resume", json!({"threadId": id, "history": history})).await;
    assert_eq!(message, format!("cannot resume thread {id} with history while it is already running"));
    let active = text(&thread["path"]);
    let other = format!("/elsewhere/{id}.jsonl");
    let expected = "cannot resume running thread";
    for other in [other.as_str(), "/elsewhere/old.jsonl"] {
        let message = second.refused("thread/resume", json!({"threadId": id, "path": other})).await;
        assert_eq!(
            message,
            format!("{expected} {id} with mismatched path: requested `{other}`, active `{active}`")
        );
    }

    // Both see the end; joining twice does not make it come twice.
    second.ask("thread/resume", json!({"threadId": id})).await;
    first.ask("turn/interrupt", json!({"threadId": id, "turnId": turn_id})).await;
    for client in [&mut first, &mut second] {
        let ended = client.wait_for("turn/completed", |params| params["turn"]["id"] == json!(turn_id)).await;
        assert_eq!(ended["turn"]["status"], "interrupted");
        assert!(!client.rest().await.contains(&"turn/completed".to_owned()));
    }
}

#[tokio::test]
async fn a_path_wins_over_the_id() {
    let stage = Stage::new(json!([{"text": "hello"}])).await;
    let (server, mut client) = stage.open().await;
    let id = client.spoken_thread("hi").await;
    let path = client.ask("thread/read", json!({"threadId": id})).await["thread"]["path"].clone();
    server.stop().await;
    let (_server, mut client) = stage.open().await;
    let resumed = client.ask("thread/resume", json!({"threadId": "not-an-id", "path": path})).await;
    assert_eq!(resumed["thread"]["id"], json!(id));
    let params = json!({"threadId": UNKNOWN_THREAD, "path": "/no/such.jsonl"});
    let missing = client.refused("thread/resume", params).await;
    assert!(missing.starts_with("failed to load rollout `/no/such.jsonl`: "), "{missing}");
}

/// The path is the record that is meant, not a way to spell the id.
#[tokio::test]
async fn a_path_to_another_place_is_not_the_stored_record() {
    let stage = Stage::new(json!([{"text": "hello"}])).await;
    let (server, mut client) = stage.open().await;
    let id = client.spoken_thread("hi").await;
    server.stop().await;
    let (_server, mut client) = stage.open().await;
    let path = stage.cwd().join(format!("{id}.jsonl"));
    let outcome = client.request("thread/resume", json!({"threadId": id, "path": path})).await;
    let message = outcome.expect_err("a refusal").message;
    assert!(message.starts_with(&format!("failed to load rollout `{}`: ", path.display())), "{message}");
}

#[tokio::test]
async fn a_history_makes_a_new_thread() {
    let stage = Stage::new(json!([{"text": "hello"}])).await;
    let (_server, mut client) = stage.open().await;
    let history = json!([{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "from afar"}]}]);
    let params =
        json!({"threadId": UNKNOWN_THREAD, "history": history, "model": "another", "modelProvider": "other"});
    let resumed = client.ask("thread/resume", params).await;
    let thread = &resumed["thread"];
    assert_ne!(thread["id"], UNKNOWN_THREAD);
    assert_eq!((&resumed["model"], &resumed["modelProvider"]), (&json!("another"), &json!("other")));
    assert_eq!((&thread["preview"], &thread["modelProvider"]), (&json!("from afar"), &json!("other")));
    assert_eq!(thread["status"], json!({"type": "idle"}));
    let id = text(&thread["id"]);
    assert_eq!(client.turn(&id, "go on").await["status"], "completed");
    let input = stage.asked()[0]["input"].to_string();
    assert!(input.contains("from afar") && input.contains("go on"), "{input}");
}

#[tokio::test]
async fn a_history_thread_is_listed_and_resumed_like_any_other() {
    let stage = Stage::new(json!([])).await;
    let (server, mut client) = stage.open().await;
    let history = json!([{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "from afar"}]}]);
    let made = client.ask("thread/resume", json!({"threadId": UNKNOWN_THREAD, "history": history})).await;
    server.stop().await;
    let (_server, mut client) = stage.open().await;
    let listed = client.ask("thread/list", json!({})).await;
    assert_eq!(listed["data"].as_array().map(Vec::len), Some(1), "{listed}");
    assert_eq!(listed["data"][0]["preview"], "from afar");
    let resumed = client.ask("thread/resume", json!({"threadId": made["thread"]["id"]})).await;
    assert_eq!(resumed["thread"]["preview"], "from afar");
}

#[tokio::test]
async fn an_empty_history_is_refused() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open().await;
    let empty = client.refused("thread/resume", json!({"threadId": UNKNOWN_THREAD, "history": []})).await;
    assert_eq!(empty, "history must not be empty");
}

#[tokio::test]
async fn a_personality_of_the_resume_reaches_the_model() {
    let stage =
        Stage::configured(json!([{"text": "one"}, {"text": "two"}]), "model = \"gpt-5.3-codex\"").await;
    let (server, mut client) = stage.open().await;
    let id = client.spoken_thread("hi").await;
    server.stop().await;
    let (_server, mut client) = stage.open().await;
    client.ask("thread/resume", json!({"threadId": id, "personality": "friendly"})).await;
    client.turn(&id, "more").await;
    let asked = stage.asked();
    let without = |request: &Value| !request["input"].to_string().contains("<personality_spec>");
    assert!(without(&asked[0]) && !without(&asked[1]), "{:#}", asked[1]["input"]);
}

#[tokio::test]
async fn a_pending_tool_call_is_asked_again_of_who_joins() {
    let call = json!({"name": "lookup", "callId": "call-1", "arguments": {"id": 7}});
    let stage = Stage::new(json!([{"text": "zero"}, {"call": call}, {"text": "done"}])).await;
    let server = stage.listen();
    let mut first = server.connect().await;
    let tool = json!({"name": "lookup", "description": "d", "inputSchema": {"type": "object"}});
    let id = first.start_thread(json!({"dynamicTools": [tool]})).await;
    first.turn(&id, "zero").await;
    first.start_turn(&id, "look it up").await;
    let asked = first.next_of("item/tool/call").await;

    let mut second = server.connect().await;
    second.transcript();
    second.ask("thread/resume", json!({"threadId": id})).await;
    let again = second.next_of("item/tool/call").await;
    assert_eq!(again, asked);
    assert_eq!(second.transcript(), ["= thread/resume", "? item/tool/call"]);
    let answer = json!({"contentItems": [{"type": "inputText", "text": "seven"}], "success": true});
    second.answer(&again, answer.clone()).await;
    // The first answer counts; a second one is nobody's business.
    first.answer(&asked, answer).await;
    for client in [&mut first, &mut second] {
        let ended =
            client.wait_for("turn/completed", |params| params["turn"]["id"] == asked["params"]["turnId"]);
        assert_eq!(ended.await["turn"]["status"], "completed");
    }
    stage.assert_played();
    assert_eq!(stage.asked().len(), 3);
}

#[tokio::test]
async fn a_call_nobody_is_there_to_answer_waits_for_the_next_client() {
    let call = json!({"name": "lookup", "callId": "call-1", "arguments": {"id": 7}});
    let stage = Stage::new(json!([{"call": call}, {"text": "done"}])).await;
    let server = stage.listen();
    let mut first = server.connect().await;
    let tool = json!({"name": "lookup", "description": "d", "inputSchema": {"type": "object"}});
    let id = first.start_thread(json!({"dynamicTools": [tool]})).await;
    first.start_turn(&id, "look it up").await;
    let asked = first.next_of("item/tool/call").await;
    drop(first);
    let mut second = server.connect().await;
    let joined = second.ask("thread/resume", json!({"threadId": id})).await;
    assert_eq!(told(&joined["thread"]), ["inProgress: look it up"]);
    let again = second.next_of("item/tool/call").await;
    assert_eq!(again, asked);
    second.answer(&again, json!({"contentItems": [], "success": true})).await;
    assert_eq!(second.next_of("turn/completed").await["turn"]["status"], "completed");
    stage.assert_played();
}
