//! `turn/start` with `toolOutput`: a message from outside that the model reads as the output of a tool.

use serde_json::{Value, json};
use testkit::{Stage, kinds};

#[expect(clippy::needless_pass_by_value, reason = "the callers read better")]
fn outside(thread: &str, input: Value) -> Value {
    json!({"threadId": thread, "input": input, "toolOutput": {"name": "ticker", "output": "The build is red."}})
}

fn outputs(request: &Value) -> Vec<Value> {
    let input = request["input"].as_array().expect("input");
    input.iter().filter(|item| item["type"] == "function_call_output").cloned().collect()
}

#[tokio::test]
async fn it_starts_a_turn_and_says_nothing_in_the_users_name() {
    let stage = Stage::new(json!([{"text": "noted"}, {"text": "next"}])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({})).await;
    let turn = client.turn_with(outside(&id, json!([]))).await;
    assert_eq!(turn["status"], "completed");
    let asked = stage.asked()[0].clone();
    let [output] = outputs(&asked).try_into().expect("one output");
    assert_eq!(output["output"], "The build is red.");
    let input = asked["input"].as_array().expect("input");
    let called = input.iter().find(|item| item["type"] == "function_call").expect("a call");
    assert_eq!((&called["name"], &called["call_id"]), (&json!("ticker"), &output["call_id"]));
    assert!(
        input.iter().all(|item| item["role"] != "user" || !item.to_string().contains("The build is red."))
    );
    let read = client.ask("thread/read", json!({"threadId": id, "includeTurns": true})).await;
    assert_eq!(kinds(&read["thread"]["turns"][0]), ["functionCallOutput", "agentMessage"]);
    client.turn(&id, "go on").await;
    assert_eq!(outputs(&stage.asked()[1]).len(), 1, "it stays in the history");
}

#[tokio::test]
async fn it_comes_beside_the_users_words_and_joins_a_turn_that_runs() {
    let stage = Stage::new(json!([{"text": "slowly", "delayMs": 300}, {"text": "noted"}])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({})).await;
    let running = client.start_turn(&id, "begin").await;
    let said = json!([{"type": "text", "text": "what now?"}]);
    let joined = client.ask("turn/start", outside(&id, said)).await;
    assert_eq!(joined["turn"]["id"], json!(running));
    client.next_of("turn/completed").await;
    let asked = stage.asked()[1].clone();
    assert!(asked["input"].to_string().contains("what now?"));
    assert_eq!(outputs(&asked).len(), 1);
    let read = client.ask("thread/read", json!({"threadId": id, "includeTurns": true})).await;
    let shown = kinds(&read["thread"]["turns"][0]).join(" ");
    assert!(shown.contains("userMessage functionCallOutput"), "{shown}");
}

#[tokio::test]
async fn it_needs_a_name_and_is_not_endless() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({})).await;
    for (tool_output, words) in [
        (json!({"name": " ", "output": "x"}), "toolOutput.name must not be empty"),
        (json!({"name": "x", "output": "x".repeat(1_048_577)}), "exceeds the maximum length"),
    ] {
        let params = json!({"threadId": id, "input": [], "toolOutput": tool_output});
        let refused = format!("{:?}", client.request("turn/start", params).await.expect_err("refused"));
        assert!(refused.contains(words), "{refused}");
    }
    assert!(
        client
            .refused("turn/start", json!({"threadId": id, "input": []}))
            .await
            .contains("must not be empty")
    );
}
