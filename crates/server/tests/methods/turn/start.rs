//! `turn/start`: what may be said, what it changes, and what follows.

use serde_json::{Value, json};
use testkit::{ScriptedModel, Stage, UNKNOWN_THREAD, endless, text, turn, turn_plus};

const LIMIT: usize = 1 << 20;

#[tokio::test]
async fn the_provider_is_told_who_asks() {
    let stage = Stage::new(json!([])).await;
    let mut model = ScriptedModel::answering("", json!({"id": "r1"})).await;
    stage.configure_port(model.port(), "");
    let (_server, mut client) = stage.open().await;
    client.spoken_thread("hi").await;
    let head = model.next().await.head;
    assert!(head.contains("\r\noriginator: methods_test\r\n"), "{head}");
}

#[tokio::test]
async fn a_plain_turn_goes_in_this_order() {
    let stage = Stage::new(json!([{"text": "hello there"}])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({})).await;
    client.rest().await;
    client.transcript();
    let answered =
        client.ask("turn/start", turn_plus(&id, "hi", "model", json!("another"))).await["turn"].clone();
    assert_eq!((&answered["status"], &answered["items"]), (&json!("inProgress"), &json!([])));
    assert_eq!(answered.get("error"), Some(&Value::Null));
    let ended = client.next_of("turn/completed").await;
    assert_eq!((&ended["threadId"], &ended["turn"]["id"]), (&json!(id), &answered["id"]));
    assert_eq!((&ended["turn"]["status"], &ended["turn"]["items"]), (&json!("completed"), &json!([])));
    let heard: Vec<String> = client.transcript();
    let heard: Vec<&str> =
        heard.iter().map(String::as_str).filter(|word| *word != "account/rateLimits/updated").collect();
    let expected = [
        "= turn/start",
        "thread/status/changed",
        "turn/started",
        "item/started",
        "item/completed",
        "item/started",
        "item/agentMessage/delta",
        "item/completed",
        "thread/tokenUsage/updated",
        "thread/status/changed",
        "turn/completed",
    ];
    assert_eq!(heard, expected);
    assert_eq!(client.next_of("turn/started").await["turn"]["id"], answered["id"]);
    let agent = |params: &Value| params["item"]["type"] == "agentMessage";
    let begun = client.wait_for("item/started", agent).await;
    assert_eq!((&begun["item"]["text"], &begun["turnId"]), (&json!(""), &answered["id"]));
    let done = client.wait_for("item/completed", agent).await;
    assert_eq!(done["item"]["text"], "hello there");
    assert_eq!(done["item"]["id"], begun["item"]["id"]);
    let usage = client.next_of("thread/tokenUsage/updated").await["tokenUsage"].clone();
    assert!(usage["total"]["totalTokens"].as_i64() > Some(0) && usage["last"] == usage["total"], "{usage}");
    assert_eq!(stage.asked()[0]["model"], "another");
}

#[tokio::test]
async fn text_elements_stay_in_the_item() {
    let stage = Stage::new(json!([{"text": "hello"}])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({})).await;
    let elements = json!([{"byteRange": {"start": 0, "end": 5}, "placeholder": null}]);
    let input = json!([{"type": "text", "text": "Hello", "text_elements": elements}]);
    client.turn_with(json!({"threadId": id, "input": input})).await;
    let item = client.item("userMessage").await;
    assert_eq!(item["content"], input);
}

#[tokio::test]
async fn text_up_to_the_limit_is_taken_and_mentions_do_not_count() {
    let stage = Stage::new(json!([{"text": "long"}])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({})).await;
    let input = json!([
        {"type": "text", "text": "é".repeat(LIMIT)},
        {"type": "mention", "name": "App", "path": "app://x"},
    ]);
    let ended = client.turn_with(json!({"threadId": id, "input": input})).await;
    assert_eq!(ended["status"], "completed");
}

#[tokio::test]
async fn text_over_the_limit_is_refused_with_data() {
    let stage = Stage::new(json!([endless("part")])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({})).await;
    let input = json!([
        {"type": "text", "text": "x".repeat(LIMIT / 2)},
        {"type": "text", "text": "x".repeat(LIMIT / 2 + 1)},
    ]);
    let data = json!({"input_error_code": "input_too_large", "max_chars": LIMIT, "actual_chars": LIMIT + 1});
    // The size is looked at before the thread.
    for thread in [id.as_str(), UNKNOWN_THREAD] {
        let params = json!({"threadId": thread, "input": input});
        let refused = client.request("turn/start", params).await.expect_err("a refusal");
        assert_eq!((refused.code, &refused.data), (-32602, &data));
        assert_eq!(refused.message, "Input exceeds the maximum length of 1048576 characters.");
    }
    let heard = client.rest().await;
    assert!(!heard.contains(&"turn/started".to_owned()), "{heard:?}");
    let turn_id = client.start_turn(&id, "work").await;
    let params = json!({"threadId": id, "input": input, "expectedTurnId": turn_id});
    let refused = client.request("turn/steer", params).await.expect_err("a refusal");
    assert_eq!((refused.code, refused.data), (-32602, data));
}

#[tokio::test]
async fn a_turn_needs_a_loaded_thread_and_something_to_say() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({})).await;
    assert_eq!(
        client.refused("turn/start", turn(UNKNOWN_THREAD, "hi")).await,
        format!("thread not found: {UNKNOWN_THREAD}")
    );
    let empty = client.refused("turn/start", json!({"threadId": id, "input": []})).await;
    assert_eq!(empty, "input must not be empty");
    let read = client.ask("thread/read", json!({"threadId": id})).await;
    assert_eq!(read["thread"]["status"], json!({"type": "idle"}));
}

#[tokio::test]
async fn a_local_image_is_sent_and_shown_by_its_path() {
    let stage = Stage::new(json!([{"text": "nice"}])).await;
    let image = stage.cwd().join("image.png");
    std::fs::write(&image, b"\x89PNG\r\n\x1a\nrest").expect("a file");
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({})).await;
    let input = json!([{"type": "localImage", "path": image}]);
    let ended = client.turn_with(json!({"threadId": id, "input": input})).await;
    assert_eq!(ended["status"], "completed");
    assert_eq!(client.item("userMessage").await["content"], input);
    assert!(stage.asked()[0]["input"].to_string().contains("data:image/png;base64,"));
}

#[tokio::test]
async fn another_model_than_asked_for_is_told_once() {
    let header = ("openai-model: elsewhere", json!({"id": "r1"}));
    let field = ("openai-model: mock-model", json!({"id": "r1", "headers": {"OpenAI-Model": "elsewhere"}}));
    for (header, created) in [header, field] {
        let stage = Stage::new(json!([])).await;
        let model = ScriptedModel::answering(header, created).await;
        stage.configure_port(model.port(), "");
        let (_server, mut client) = stage.open().await;
        let id = client.spoken_thread("hi").await;
        let told = client.next_of("model/rerouted").await;
        assert_eq!((&told["threadId"], &told["fromModel"]), (&json!(id), &json!("mock-model")));
        assert_eq!(
            (&told["toModel"], &told["reason"]),
            (&json!("elsewhere"), &json!("highRiskCyberActivity"))
        );
        let heard = client.rest_whole().await;
        let items = heard.iter().filter(|message| message["method"] == "item/completed");
        let kinds: Vec<String> = items.map(|message| text(&message["params"]["item"]["type"])).collect();
        assert_eq!(kinds, ["userMessage", "agentMessage"], "no warning among the items");
        assert!(!heard.iter().any(|message| message["method"] == "model/rerouted"));
    }
}

#[tokio::test]
async fn the_model_that_was_asked_for_is_no_news() {
    let stage = Stage::new(json!([])).await;
    let model = ScriptedModel::answering("openai-model: mock-model", json!({"id": "r1"})).await;
    stage.configure_port(model.port(), "");
    let (_server, mut client) = stage.open().await;
    client.spoken_thread("hi").await;
    assert!(!client.rest().await.contains(&"model/rerouted".to_owned()));
}

#[tokio::test]
async fn a_failure_is_told_and_stays_until_the_next_turn() {
    let fail = json!({"fail": {"status": 400, "body": {"error": {"message": "no such thing"}}}});
    let stage = Stage::new(json!([fail, {"text": "better"}])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({})).await;
    client.rest().await;
    client.transcript();
    let ended = client.turn(&id, "hi").await;
    let error = client.next_of("error").await;
    assert_eq!((&ended["status"], &error["willRetry"]), (&json!("failed"), &json!(false)));
    assert_eq!(error["error"], ended["error"]);
    assert_eq!(error["error"]["codexErrorInfo"], "other");
    let heard = client.transcript();
    assert_eq!(heard[heard.len() - 3..], ["thread/status/changed", "error", "turn/completed"], "{heard:?}");
    client.status(&id, "systemError").await;
    assert_eq!(client.turn(&id, "again").await["status"], "completed");
    client.status(&id, "idle").await;
}

#[tokio::test]
async fn a_broken_stream_is_tried_again() {
    let broken = json!({"events": [{"type": "response.created", "response": {"id": "r"}}]});
    let stage = Stage::new(json!([broken, {"text": "at last"}])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"modelProvider": "patient"})).await;
    assert_eq!(client.turn(&id, "hi").await["status"], "completed");
    let error = client.next_of("error").await;
    assert_eq!(
        (&error["error"]["message"], &error["willRetry"]),
        (&json!("Reconnecting... 1/1"), &json!(true))
    );
    assert_eq!(
        error["error"]["codexErrorInfo"],
        json!({"responseStreamDisconnected": {"httpStatusCode": null}})
    );
    assert_eq!(client.item("agentMessage").await["text"], "at last");
}

#[tokio::test]
async fn raw_items_come_to_threads_that_asked_for_them() {
    let stage = Stage::new(json!([{"text": "hello"}, {"text": "hello"}])).await;
    let (_server, mut client) = stage.open().await;
    for asked in [true, false] {
        let id = client.start_thread(json!({"experimentalRawEvents": asked})).await;
        client.turn(&id, "hi").await;
        let heard = client.rest_whole().await;
        let raw: Vec<String> = heard
            .iter()
            .filter(|message| message["method"] == "rawResponseItem/completed")
            .map(|message| message["params"]["item"].to_string())
            .collect();
        assert_eq!(raw.iter().any(|item| item.contains("hello")), asked, "{raw:?}");
        assert_eq!(raw.is_empty(), !asked, "{raw:?}");
    }
}
