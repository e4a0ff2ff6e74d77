//! Plan mode, and the plan a working agent shows.

use serde_json::{Value, json};
use testkit::{Stage, kinds, turn};

fn in_plan_mode(thread: &str) -> Value {
    let mut params = turn(thread, "plan it");
    params["collaborationMode"] = json!({"mode": "plan", "settings": {"model": "mock-model"}});
    params
}

#[tokio::test]
async fn a_proposed_plan_becomes_an_item() {
    let said = "Here it is.\n<proposed_plan>\n# Steps\n- look\n- leap\n</proposed_plan>\nShall I?";
    let stage = Stage::new(json!([{"text": said}])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({})).await;
    let ended = client.turn_with(in_plan_mode(&id)).await;
    let plan_id = format!("{}-plan", ended["id"].as_str().expect("an id"));
    let is_plan = |params: &Value| params["item"]["type"] == "plan";
    let begun = client.wait_for("item/started", is_plan).await["item"].clone();
    assert_eq!(begun, json!({"type": "plan", "id": plan_id, "text": ""}));
    let done = client.wait_for("item/completed", is_plan).await["item"].clone();
    assert_eq!(done["text"].as_str().expect("text").trim(), "# Steps\n- look\n- leap");
    let message = client.item("agentMessage").await["text"].as_str().expect("text").to_owned();
    assert!(message.contains("Here it is.") && message.contains("Shall I?"), "{message}");
    assert!(!message.contains("proposed_plan") && !message.contains("leap"), "{message}");
    let mut deltas = String::new();
    for message in client.rest_whole().await {
        if message["method"] == "item/plan/delta" {
            assert_eq!(message["params"]["itemId"], json!(plan_id));
            deltas.push_str(message["params"]["delta"].as_str().expect("text"));
        }
    }
    assert_eq!(deltas, done["text"].as_str().expect("text"));
    let context = stage.asked()[0]["input"].to_string();
    assert!(context.contains("<collaboration_mode>"), "{context}");
    let read = client.ask("thread/read", json!({"threadId": id, "includeTurns": true})).await;
    let kinds = kinds(&read["thread"]["turns"][0]);
    assert!(kinds.contains(&"plan") && kinds.contains(&"agentMessage"), "{kinds:?}");
}

#[tokio::test]
async fn without_a_proposed_plan_there_is_no_such_item() {
    let stage = Stage::new(json!([{"text": "Which one?"}])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({})).await;
    client.turn_with(in_plan_mode(&id)).await;
    assert_eq!(client.item("agentMessage").await["text"], "Which one?");
    let heard = client.rest_whole().await;
    assert!(!heard.iter().any(|message| message["params"]["item"]["type"] == "plan"), "{heard:?}");
}

#[tokio::test]
async fn a_plan_of_work_under_way_is_told_without_an_item() {
    let plan = json!([{"step": "look", "status": "completed"}, {"step": "leap", "status": "in_progress"}]);
    let call = json!({"name": "update_plan", "arguments": {"explanation": "so far", "plan": plan}});
    let stage =
        Stage::new(json!([{"expect": {"toolOffered": "update_plan"}, "call": call}, {"text": "ok"}])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.spoken_thread("work").await;
    let told = client.next_of("turn/plan/updated").await;
    assert_eq!((&told["threadId"], &told["explanation"]), (&json!(id), &json!("so far")));
    let steps = json!([{"step": "look", "status": "completed"}, {"step": "leap", "status": "inProgress"}]);
    assert_eq!(told["plan"], steps);
    let heard = client.rest_whole().await;
    assert!(!heard.iter().any(|message| message["params"]["item"]["type"] == "plan"), "{heard:?}");
    stage.assert_played();
}
