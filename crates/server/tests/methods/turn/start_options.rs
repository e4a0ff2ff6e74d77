//! Settings that a `turn/start` may change, and for how long.

use serde_json::{Value, json};
use testkit::{ScriptedModel, Stage, turn_plus};

#[tokio::test]
async fn choices_of_a_turn_stay_for_the_next() {
    let stage = Stage::new(json!([])).await;
    let mut model = ScriptedModel::answering("", json!({"id": "r1"})).await;
    stage.configure_port(model.port(), "model = \"gpt-5.3-codex\"");
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({})).await;
    let choices = json!({
        "threadId": id,
        "input": [{"type": "text", "text": "one"}],
        "model": "gpt-5.4",
        "effort": "low",
        "summary": "detailed",
        "serviceTier": "flex",
        "cwd": stage.cwd(),
        "sandboxPolicy": {"type": "dangerFullAccess"},
        "approvalPolicy": "never",
    });
    client.turn_with(choices).await;
    client.turn(&id, "two").await;
    let asked = [model.next().await.body, model.next().await.body];
    let context = asked[0]["input"].to_string();
    assert!(context.contains(stage.cwd().to_string_lossy().as_ref()), "{context}");
    for request in &asked {
        assert_eq!((&request["model"], &request["service_tier"]), (&json!("gpt-5.4"), &json!("flex")));
        assert_eq!(request["reasoning"], json!({"effort": "low", "summary": "detailed"}));
    }
    // Nothing changed, so nothing is told again.
    let messages = |request: &Value| request["input"].as_array().expect("input").len();
    assert_eq!(messages(&asked[1]), messages(&asked[0]) + 2);
    let joined = client.ask("thread/resume", json!({"threadId": id})).await;
    assert_eq!(joined["cwd"], stage.cwd().to_string_lossy().as_ref());
    assert_eq!((&joined["model"], &joined["approvalPolicy"]), (&json!("gpt-5.4"), &json!("never")));
    assert_eq!(joined["sandbox"], json!({"type": "dangerFullAccess"}));
}

#[tokio::test]
async fn a_changed_folder_and_sandbox_are_told_to_the_model() {
    let stage = Stage::new(json!([{"text": "a"}, {"text": "b"}])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.spoken_thread("one").await;
    let mut params = turn_plus(&id, "two", "cwd", json!(stage.cwd()));
    params["sandboxPolicy"] = json!({"type": "dangerFullAccess"});
    client.turn_with(params).await;
    let asked = stage.asked();
    let before = asked[0]["input"].as_array().expect("input").len();
    let added = json!(asked[1]["input"].as_array().expect("input")[before..]).to_string();
    assert!(added.contains(stage.cwd().to_string_lossy().as_ref()), "{added}");
    assert!(added.contains("danger-full-access"), "{added}");
}

#[tokio::test]
async fn a_collaboration_mode_decides_model_and_effort() {
    let stage = Stage::new(json!([])).await;
    let mut model = ScriptedModel::answering("", json!({"id": "r1"})).await;
    stage.configure_port(model.port(), "");
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({})).await;
    let settings = json!({"model": "gpt-5.4", "reasoning_effort": "high", "developer_instructions": "my way of working"});
    let mut params =
        turn_plus(&id, "hi", "collaborationMode", json!({"mode": "default", "settings": settings}));
    params["model"] = json!("loses");
    params["effort"] = json!("low");
    client.turn_with(params).await;
    let asked = model.next().await.body;
    assert_eq!((&asked["model"], &asked["reasoning"]["effort"]), (&json!("gpt-5.4"), &json!("high")));
    let context = asked["input"].to_string();
    assert!(context.contains("<collaboration_mode>my way of working</collaboration_mode>"), "{context}");
}

#[tokio::test]
async fn plan_mode_has_an_effort_of_its_own() {
    let stage = Stage::new(json!([])).await;
    let mut model = ScriptedModel::answering("", json!({"id": "r1"})).await;
    stage.configure_port(
        model.port(),
        "model_reasoning_effort = \"low\"\nplan_mode_reasoning_effort = \"xhigh\"",
    );
    let (_server, mut client) = stage.open().await;
    let modes = client.ask("collaborationMode/list", json!({})).await;
    assert_eq!(modes["data"][0]["reasoning_effort"], "xhigh", "{modes}");
    let id = client.start_thread(json!({})).await;
    for (mode, own, effort) in
        [("plan", Value::Null, "xhigh"), ("plan", json!("high"), "high"), ("default", json!("low"), "low")]
    {
        let settings = json!({"model": "gpt-5.4", "reasoning_effort": own});
        let mode = json!({"mode": mode, "settings": settings});
        client.turn_with(turn_plus(&id, "hi", "collaborationMode", mode)).await;
        assert_eq!(model.next().await.body["reasoning"]["effort"], effort);
    }
}

#[tokio::test]
async fn a_personality_is_told_at_the_start_and_when_it_changes() {
    let stage = Stage::configured(
        json!([{"text": "a"}, {"text": "b"}, {"text": "c"}, {"text": "d"}]),
        "model = \"gpt-5.3-codex\"",
    )
    .await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"personality": "friendly"})).await;
    client.turn(&id, "one").await;
    client.turn_with(turn_plus(&id, "two", "personality", json!("pragmatic"))).await;
    client.turn(&id, "three").await;
    let other = client.start_thread(json!({})).await;
    client.turn_with(turn_plus(&other, "four", "personality", json!("friendly"))).await;
    let asked = stage.asked();
    let told = |request: &Value| request["input"].to_string().matches("<personality_spec>").count();
    // Our instructions have no tone of their own, so it is told beside them, and again when it is another.
    assert_eq!([told(&asked[0]), told(&asked[1]), told(&asked[2])], [1, 2, 2]);
    assert_eq!(asked[0]["instructions"], asked[3]["instructions"]);
    assert_eq!(told(&asked[3]), 1);
}

#[tokio::test]
async fn a_schema_counts_for_one_turn() {
    let stage = Stage::new(json!([{"text": "{}"}, {"text": "free"}])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({})).await;
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]});
    client.turn_with(turn_plus(&id, "one", "outputSchema", schema.clone())).await;
    client.turn(&id, "two").await;
    let asked = stage.asked();
    let format = &asked[0]["text"]["format"];
    assert_eq!(
        (&format["type"], &format["schema"], &format["strict"]),
        (&json!("json_schema"), &schema, &json!(true))
    );
    assert!(asked[1]["text"].get("format").is_none_or(Value::is_null), "{}", asked[1]["text"]);
}
