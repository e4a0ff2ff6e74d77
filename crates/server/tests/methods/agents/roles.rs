//! Kinds of agents, and what they are called.

use serde_json::{Value, json};
use testkit::text;

use super::{Play, output};

/// The description of starting agents, as the model reads it.
fn described(body: &Value) -> String {
    let tools = body["tools"].as_array().expect("tools");
    let tool = tools.iter().find(|tool| tool["name"] == "spawn_agent").expect("it is offered");
    text(&tool["description"])
}

#[tokio::test]
async fn a_role_says_how_its_agents_think_and_what_they_are_called() {
    let mut play = Play::new("").await;
    let file = play.stage.home().join("tester.toml");
    let keys = "model = \"gpt-5.2\"\nmodel_reasoning_effort = \"high\"\ndeveloper_instructions = \"Break it.\"\n\
                sandbox_mode = \"danger-full-access\"\napproval_policy = \"never\"\n";
    std::fs::write(&file, keys).expect("a file");
    play.stop().await;
    let roles = format!(
        "sandbox_mode = \"read-only\"\napproval_policy = \"on-request\"\n\
         [agents.tester]\ndescription = \"Finds out what fails.\"\nconfig_file = \"{}\"\n\
         nickname_candidates = [\"Crash\"]\n[agents.explorer]\ndescription = \"My own explorer.\"\n",
        file.display()
    );
    play.stage.configure_port(play.model.port(), &roles);
    let (server, client) = play.stage.open().await;
    (play.server, play.client) = (Some(server), client);
    play.root = play.client.start_thread(json!({"cwd": play.stage.cwd()})).await;

    let asked = play.begin("go").await;
    let about = described(&asked.body);
    for line in
        ["- tester: Finds out what fails.", "- explorer: My own explorer.", "- worker: ", "- default: "]
    {
        assert!(about.contains(line), "{line}: {about}");
    }
    let arguments =
        json!({"message": "try", "agent_type": "tester", "model": "gpt-5.1", "reasoning_effort": "low"});
    let (agent, child, asked) = play.spawn(asked, "c1", arguments.clone()).await;
    assert_eq!(output(&asked, "c1")["nickname"], "Crash");
    // The role's settings hold, whatever the model asked for.
    assert_eq!(
        (&child.body["model"], &child.body["reasoning"]["effort"]),
        (&json!("gpt-5.2"), &json!("high"))
    );
    assert!(child.texts().iter().any(|text| text.contains("Break it.")), "{:?}", child.texts());
    assert!(!asked.texts().iter().any(|text| text.contains("Break it.")));
    // A role does not decide about permissions.
    let own = play.client.ask("thread/resume", json!({"threadId": agent})).await;
    assert_eq!((&own["sandbox"]["type"], &own["approvalPolicy"]), (&json!("readOnly"), &json!("on-request")));
    let (_, _child, asked) = play.spawn(asked, "c2", arguments).await;
    assert_eq!(output(&asked, "c2")["nickname"], "Crash the 2nd");
    let (_, child, asked) =
        play.spawn(asked, "c3", json!({"message": "look", "agent_type": "explorer"})).await;
    assert_eq!(child.body["model"], "mock-model");
    play.end(asked, "done").await;
    let spawned = play.client.wait_for("item/completed", |params| params["item"]["id"] == "c1").await;
    assert_eq!(
        (&spawned["item"]["model"], &spawned["item"]["reasoningEffort"]),
        (&json!("gpt-5.2"), &json!("high"))
    );
}

#[tokio::test]
async fn an_order_that_cannot_be_had_starts_nothing() {
    let broken = "[agents.broken]\nconfig_file = \"/nowhere/at/all.toml\"";
    let mut play = Play::new(broken).await;
    let mut asked = play.begin("go").await;
    for (at, (arguments, problem)) in [
        (json!({"message": "x", "agent_type": "nobody"}), "unknown agent_type 'nobody'"),
        (json!({"message": "x", "agent_type": "broken"}), "config_file of the role"),
        (json!({}), "message or items"),
        (json!({"message": "x", "items": [{"type": "text", "text": "y"}]}), "not both"),
        (json!({"message": " "}), "must not be empty"),
        (json!({"items": []}), "must not be empty"),
        (json!({"items": [{"type": "song", "text": "y"}]}), "there are no items of type song"),
        (json!({"items": [{"type": "skill", "name": "sew"}]}), "needs path"),
        (json!({"message": "x", "reasoning_effort": "weird"}), "failed to parse"),
        (json!({"message": "x", "colour": "red"}), "failed to parse"),
    ]
    .into_iter()
    .enumerate()
    {
        let id = format!("c{at}");
        asked = play.call(asked, &id, "spawn_agent", arguments.clone()).await;
        assert!(asked.output_of(&id).contains(problem), "{arguments}: {}", asked.output_of(&id));
    }
    play.end(asked, "done").await;
    let loaded = play.client.ask("thread/loaded/list", json!({})).await;
    assert_eq!(loaded["data"], json!([play.root]));
}
