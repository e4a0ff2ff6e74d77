//! How many agents there may be, and how deep they may go.

use serde_json::{Value, json};

use super::{AGENT_TOOLS, Play, output};

/// A task, and nothing else.
fn task(number: usize) -> Value {
    json!({"message": format!("task {number}")})
}

#[tokio::test]
async fn there_are_six_at_once_until_one_is_closed() {
    let mut play = Play::new("").await;
    let mut asked = play.begin("go").await;
    let (mut agents, mut children) = (Vec::new(), Vec::new());
    for number in 0..6 {
        let (agent, child, next) = play.spawn(asked, &format!("c{number}"), task(number)).await;
        agents.push(agent);
        children.push(child);
        asked = next;
    }
    let asked = play.call(asked, "c6", "spawn_agent", task(6)).await;
    let refused = asked.output_of("c6");
    assert!(refused.contains("there are 6 open agents"), "{refused}");
    let item =
        play.client.wait_for("item/completed", |params| params["item"]["id"] == "c6").await["item"].clone();
    assert_eq!((&item["status"], &item["receiverThreadIds"]), (&json!("failed"), &json!([])));

    // One that has finished still counts; one that is closed does not.
    children.remove(0).say("ready").await;
    play.over(&agents[0]).await;
    let asked = play.call(asked, "c7", "spawn_agent", task(7)).await;
    assert!(asked.output_of("c7").contains("there are 6 open agents"), "{}", asked.output_of("c7"));
    let asked = play.call(asked, "c8", "close_agent", json!({"target": agents[0]})).await;
    let (seventh, _child, asked) = play.spawn(asked, "c9", task(9)).await;
    // The place is taken, so the closed one has to stay closed.
    let asked = play.call(asked, "c10", "resume_agent", json!({"id": agents[0]})).await;
    assert!(asked.output_of("c10").contains("there are 6 open agents"), "{}", asked.output_of("c10"));
    let asked = play.call(asked, "c11", "close_agent", json!({"target": seventh})).await;
    assert_eq!(output(&asked, "c11"), json!({"previous_status": "running"}));
    let asked = play.call(asked, "c12", "resume_agent", json!({"id": agents[0]})).await;
    assert_eq!(output(&asked, "c12"), json!({"status": "pending_init"}));
    assert_eq!(play.end(asked, "done").await["status"], "completed");
}

/// Whatever a model asks for in one breath, only so many are started.
#[tokio::test]
async fn a_flood_of_calls_ends_at_the_limit() {
    const MANY: usize = 100;
    let mut play = Play::new("[agents]\nmax_threads = 3").await;
    let asked = play.begin("go").await;
    asked.call_all((0..MANY).map(|number| (format!("c{number}"), "spawn_agent", task(number)))).await;
    let asked = play.model.of(&play.root.clone()).await;
    let outputs: Vec<String> = (0..MANY).map(|number| asked.output_of(&format!("c{number}"))).collect();
    assert!(outputs[..3].iter().all(|output| output.contains("agent_id")), "{:?}", &outputs[..3]);
    assert!(outputs[3..].iter().all(|output| output.contains("there are 3 open agents")));
    let loaded = play.client.ask("thread/loaded/list", json!({})).await;
    assert_eq!(loaded["data"].as_array().map(Vec::len), Some(4));
    assert_eq!(play.end(asked, "done").await["status"], "completed");
}

#[tokio::test]
async fn an_agent_as_deep_as_may_be_has_no_tools_for_more() {
    let mut play = Play::new("[features]\ndefault_mode_request_user_input = true").await;
    let asked = play.begin("go").await;
    for tool in AGENT_TOOLS.iter().chain(&["request_user_input"]) {
        assert!(asked.tools().contains(&(*tool).to_owned()), "{tool}: {:?}", asked.tools());
    }
    let (agent, child, asked) = play.spawn(asked, "c1", task(1)).await;
    let mut expected = asked.tools();
    expected.retain(|tool| tool != "request_user_input" && !AGENT_TOOLS.contains(&tool.as_str()));
    assert_eq!(child.tools(), expected);
    // It may try all the same.
    child.call("d1", "spawn_agent", &task(2)).await;
    let child = play.model.of(&agent).await;
    assert!(child.output_of("d1").contains("unsupported call"), "{}", child.output_of("d1"));
    let question = json!({"questions": [{"id": "q", "header": "h", "question": "?", "options": [
        {"label": "A", "description": "a"}, {"label": "B", "description": "b"}]}]});
    child.call("d2", "request_user_input", &question).await;
    let child = play.model.of(&agent).await;
    assert!(child.output_of("d2").contains("unsupported call"), "{}", child.output_of("d2"));
    play.end(child, "alone").await;
    play.end(asked, "done").await;
    assert!(!play.client.rest().await.contains(&"item/tool/requestUserInput".to_owned()));
}

#[tokio::test]
async fn agents_of_agents_are_closed_with_those_above() {
    let mut play = Play::new("[agents]\nmax_depth = 2\nmax_threads = 2").await;
    let asked = play.begin("go").await;
    let (agent, child, asked) = play.spawn(asked, "c1", task(1)).await;
    assert!(child.tools().contains(&"spawn_agent".to_owned()), "{:?}", child.tools());
    let (below, deepest, child) = play.spawn(child, "d1", task(2)).await;
    assert_eq!(deepest.header("x-openai-subagent"), Some("collab_spawn"));
    assert!(!deepest.tools().contains(&"spawn_agent".to_owned()), "{:?}", deepest.tools());
    deepest.say("deep down").await;
    play.over(&below).await;
    // Its own parent hears of it, and nobody else; but whoever is above may ask.
    child.call("d2", "wait_agent", &json!({"targets": [below]})).await;
    let child = play.model.of(&agent).await;
    assert_eq!(output(&child, "d2")["status"][&below], json!({"completed": "deep down"}));
    let asked = play.call(asked, "c2", "wait_agent", json!({"targets": [below]})).await;
    assert_eq!(output(&asked, "c2")["status"][&below], json!({"completed": "deep down"}));
    assert_eq!(asked.news_of(&below), 0, "{:?}", asked.texts());
    // A child is no child of its own child.
    child.call("d3", "close_agent", &json!({"target": agent})).await;
    let child = play.model.of(&agent).await;
    assert!(child.output_of("d3").contains("not found"), "{}", child.output_of("d3"));
    let asked = play.call(asked, "c3", "spawn_agent", task(3)).await;
    assert!(asked.output_of("c3").contains("there are 2 open agents"), "{}", asked.output_of("c3"));
    let read = play.read(&below).await;
    assert_eq!(read["source"]["subAgent"]["thread_spawn"]["depth"], 2, "{read}");
    assert_eq!(read["sessionId"], json!(play.root));

    let asked = play.call(asked, "c4", "close_agent", json!({"target": agent})).await;
    assert_eq!(output(&asked, "c4"), json!({"previous_status": "running"}));
    for thread in [&agent, &below] {
        play.client.status(thread, "notLoaded").await;
    }
    let loaded = play.client.ask("thread/loaded/list", json!({})).await;
    assert_eq!(loaded["data"], json!([play.root]));
    let (_, _first, asked) = play.spawn(asked, "c5", task(5)).await;
    let (_, _second, asked) = play.spawn(asked, "c6", task(6)).await;
    play.end(asked, "done").await;
    drop(child);
}

#[tokio::test]
async fn an_agent_that_is_opened_again_has_those_below_it() {
    let mut play = Play::new("[agents]\nmax_depth = 2").await;
    let asked = play.begin("go").await;
    let (agent, child, asked) = play.spawn(asked, "c1", task(1)).await;
    let (below, deepest, child) = play.spawn(child, "d1", task(2)).await;
    play.end(deepest, "deep down").await;
    play.end(child, "up here").await;
    let asked = play.call(asked, "c2", "close_agent", json!({"target": agent})).await;
    let asked = play.call(asked, "c3", "resume_agent", json!({"id": agent})).await;
    assert_eq!(output(&asked, "c3"), json!({"status": "pending_init"}));
    asked.call("c4", "send_input", &json!({"target": agent, "message": "ask it"})).await;
    let child = play.model.of(&agent).await;
    child.call("d2", "wait_agent", &json!({"targets": [below]})).await;
    let child = play.model.of(&agent).await;
    assert_eq!(output(&child, "d2")["status"][&below], json!({"completed": "deep down"}));
    child.call("d3", "send_input", &json!({"target": below, "message": "more"})).await;
    let deepest = play.model.of(&below).await;
    assert_eq!(deepest.texts().last().map(String::as_str), Some("user: more"));
    assert!(!deepest.tools().contains(&"spawn_agent".to_owned()), "{:?}", deepest.tools());
}

/// Each starts the next, as deep as it gets.
#[tokio::test]
async fn a_chain_of_agents_ends_at_the_limit() {
    let mut play = Play::new("[agents]\nmax_depth = 50").await;
    let asked = play.begin("go").await;
    let (_, mut last, asked) = play.spawn(asked, "c1", task(1)).await;
    let mut at_work = Vec::new();
    for _ in 1..6 {
        let (_, deepest, above) = play.spawn(last, "d1", task(2)).await;
        at_work.push(above);
        last = deepest;
    }
    let agent = last.thread().to_owned();
    last.call("d1", "spawn_agent", &task(9)).await;
    let last = play.model.of(&agent).await;
    assert!(last.output_of("d1").contains("there are 6 open agents"), "{}", last.output_of("d1"));
    play.end(asked, "done").await;
    let loaded = play.client.ask("thread/loaded/list", json!({})).await;
    assert_eq!(loaded["data"].as_array().map(Vec::len), Some(7));
}
