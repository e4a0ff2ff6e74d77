//! Scripts that call tools: their calls are decided, shown and recorded like those of the model.

use serde_json::{Value, json};
use testkit::{Stage, kinds};

fn last_output(asked: &Value) -> Value {
    asked["input"].as_array().expect("input").last().expect("an item").clone()
}

#[tokio::test]
async fn a_cell_calls_a_tool_and_the_model_reads_what_the_cell_says() {
    let cell = |id: &str, code: &str| json!({"call": {"name": "js_repl", "callId": id, "input": code}});
    let script = json!([
        cell("c1", "const r = await codex.tool('exec_command', {cmd: 'echo nested'}); globalThis.kept = r.output"),
        cell("c2", "console.log(kept.includes('nested'), typeof r)"),
        {"text": "done"},
    ]);
    let stage = Stage::new(script).await;
    let (_server, mut client) = stage.open().await;
    let config = json!({"features.js_repl": true});
    let params = json!({"config": config, "sandbox": "danger-full-access", "approvalPolicy": "never"});
    let id = client.start_thread(params).await;
    client.turn(&id, "go").await;
    let asked = stage.asked();
    let names: Vec<&Value> =
        asked[0]["tools"].as_array().expect("tools").iter().map(|tool| &tool["name"]).collect();
    assert!(names.contains(&&json!("js_repl")) && names.contains(&&json!("js_repl_reset")), "{names:?}");
    let output = last_output(&asked[2]);
    assert_eq!(
        (&output["type"], &output["output"]),
        (&json!("custom_tool_call_output"), &json!("true object"))
    );
    let read = client.ask("thread/read", json!({"threadId": id, "includeTurns": true})).await;
    let turn = &read["thread"]["turns"][0];
    let commands: Vec<&Value> = turn["items"]
        .as_array()
        .expect("items")
        .iter()
        .filter(|item| item["type"] == "commandExecution")
        .collect();
    let ids: Vec<&Value> = commands.iter().map(|item| &item["id"]).collect();
    assert!(ids.contains(&&json!("c1")) && ids.contains(&&json!("c1-tool-0")), "{:?}", kinds(turn));
    assert!(commands.iter().all(|item| item["status"] == "completed"), "{commands:?}");
    stage.assert_played();
}

#[tokio::test]
async fn with_scripts_alone_only_they_are_offered() {
    let call = |id: &str, input: &str| json!({"call": {"name": "exec", "callId": id, "input": input}});
    let script = json!([
        call("c1", "const plan = [{step: 'a', status: 'pending'}]; text(await tools.update_plan({plan}))"),
        {"call": {"name": "update_plan", "callId": "c2", "arguments": {"plan": []}}},
        {"text": "done"},
    ]);
    let stage = Stage::new(script).await;
    let (_server, mut client) = stage.open().await;
    let config = json!({"features.code_mode": true, "features.code_mode_only": true});
    let params = json!({"config": config, "sandbox": "danger-full-access", "approvalPolicy": "never"});
    let id = client.start_thread(params).await;
    client.turn(&id, "go").await;
    let asked = stage.asked();
    let tools = asked[0]["tools"].as_array().expect("tools");
    let names: Vec<&Value> =
        tools.iter().filter(|tool| tool["type"] != "web_search").map(|tool| &tool["name"]).collect();
    assert_eq!(names, [&json!("exec"), &json!("wait")]);
    let about = tools[0]["description"].as_str().expect("a description");
    assert!(
        about.contains("### `tools.update_plan`") && about.contains("### `tools.exec_command`"),
        "{about}"
    );
    let output = last_output(&asked[1])["output"].to_string();
    assert!(output.contains("Script completed") && output.contains("Plan updated"), "{output}");
    let refused = last_output(&asked[2])["output"].to_string();
    assert!(refused.contains("direct tool calls are disabled"), "{refused}");
    stage.assert_played();
}
