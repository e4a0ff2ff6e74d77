//! How agents end, and who is told.

use serde_json::{Value, json};
use testkit::turn;

use super::{Play, output};

#[tokio::test]
async fn an_idle_parent_is_told_with_its_next_request_and_once() {
    let mut play = Play::new("").await;
    let asked = play.begin("go").await;
    let (agent, child, asked) = play.spawn(asked, "c1", json!({"message": "look"})).await;
    assert_eq!(asked.news_of(&agent), 0);
    play.end(asked, "later, then").await;
    play.end(child, "seen").await;
    play.told(1).await;
    for said in ["and?", "and now?"] {
        let asked = play.begin(said).await;
        assert_eq!(asked.news_of(&agent), 1, "{:?}", asked.texts());
        let texts = asked.texts();
        let news = texts.iter().find(|text| text.contains("<subagent_notification>")).expect("news");
        assert!(news.starts_with("developer: "), "{news}");
        assert!(news.contains(r#""status":{"completed":"seen"}"#) && news.contains(&agent), "{news}");
        play.end(asked, "so").await;
    }
    // It stays said after a restart.
    play.kill().await;
    play.reopen().await;
    let asked = play.begin("still?").await;
    assert_eq!(asked.news_of(&agent), 1, "{:?}", asked.texts());
}

#[tokio::test]
async fn a_parent_at_work_makes_one_more_request_for_it() {
    let mut play = Play::new("").await;
    let asked = play.begin("go").await;
    let (agent, child, mut asked) = play.spawn(asked, "c1", json!({"message": "look"})).await;
    asked.begin("let me see").await;
    play.client.wait_for("item/agentMessage/delta", |params| params["delta"] == "let me see").await;
    play.end(child, "seen").await;
    asked.say("let me see").await;
    let asked = play.model.of(&play.root.clone()).await;
    assert_eq!(asked.news_of(&agent), 1, "{:?}", asked.texts());
    assert!(asked.texts().contains(&"assistant: let me see".to_owned()), "{:?}", asked.texts());
    assert_eq!(play.end(asked, "it saw").await["status"], "completed");
    assert_eq!(play.model.waiting(), Vec::<&str>::new());
}

#[tokio::test]
async fn interrupting_the_parent_leaves_its_agents_at_work() {
    let mut play = Play::new("").await;
    let root = play.root.clone();
    let asked = play.begin("go").await;
    let (agent, child, asked) = play.spawn(asked, "c1", json!({"message": "look"})).await;
    asked.call("c2", "wait_agent", &json!({"targets": [agent]})).await;
    let waits = |params: &Value| params["item"]["id"] == "c2";
    let begun = play.client.wait_for("item/started", waits).await;
    let params = json!({"threadId": root, "turnId": begun["turnId"]});
    play.client.ask("turn/interrupt", params).await;
    assert_eq!(play.over(&root).await["status"], "interrupted");
    play.end(child, "seen").await;
    play.told(1).await;
    let asked = play.begin("and?").await;
    assert_eq!(asked.news_of(&agent), 1, "{:?}", asked.texts());
    let asked = play.call(asked, "c3", "wait_agent", json!({"targets": [agent]})).await;
    assert_eq!(output(&asked, "c3")["status"][&agent], json!({"completed": "seen"}));
}

#[tokio::test]
async fn an_agent_that_fails_says_why_and_can_be_told_more() {
    let mut play = Play::new("").await;
    let asked = play.begin("go").await;
    let (agent, child, asked) = play.spawn(asked, "c1", json!({"message": "look"})).await;
    asked.call("c2", "wait_agent", &json!({"targets": [agent]})).await;
    child.fail("it is too dark").await;
    let asked = play.model.of(&play.root.clone()).await;
    let status = output(&asked, "c2")["status"][&agent].clone();
    assert!(status["errored"].as_str().is_some_and(|why| why.contains("it is too dark")), "{status}");
    let item =
        play.client.wait_for("item/completed", |params| params["item"]["id"] == "c2").await["item"].clone();
    assert_eq!(
        (&item["status"], &item["agentsStates"][&agent]["status"]),
        (&json!("failed"), &json!("errored"))
    );
    asked.call("c3", "send_input", &json!({"target": agent, "message": "take a lamp"})).await;
    let child = play.model.of(&agent).await;
    let asked = play.model.of(&play.root.clone()).await;
    asked.call("c4", "wait_agent", &json!({"targets": [agent]})).await;
    child.say("a cave").await;
    let asked = play.model.of(&play.root.clone()).await;
    assert_eq!(output(&asked, "c4")["status"][&agent], json!({"completed": "a cave"}));
    play.end(asked, "done").await;
}

#[tokio::test]
async fn an_agent_that_a_client_stops_is_interrupted_and_no_news() {
    let mut play = Play::new("").await;
    let asked = play.begin("go").await;
    let (agent, _child, asked) = play.spawn(asked, "c1", json!({"message": "look"})).await;
    let turn_id = play.read(&agent).await["turns"][0]["id"].clone();
    play.client.ask("turn/interrupt", json!({"threadId": agent, "turnId": turn_id})).await;
    assert_eq!(play.over(&agent).await["status"], "interrupted");
    asked.call("c2", "send_input", &json!({"target": agent, "message": "go on"})).await;
    let child = play.model.of(&agent).await;
    assert!(child.texts().contains(&"user: look".to_owned()), "{:?}", child.texts());
    let asked = play.model.of(&play.root.clone()).await;
    assert_eq!(asked.news_of(&agent), 0, "{:?}", asked.texts());
    let turn_id = output(&asked, "c2")["submission_id"].clone();
    play.client.ask("turn/interrupt", json!({"threadId": agent, "turnId": turn_id})).await;
    play.over(&agent).await;
    let asked = play.call(asked, "c3", "close_agent", json!({"target": agent})).await;
    assert_eq!(output(&asked, "c3"), json!({"previous_status": "interrupted"}));
    play.end(asked, "done").await;
}

#[tokio::test]
async fn words_for_an_agent_at_work_join_what_it_does_or_stop_it() {
    let mut play = Play::new("").await;
    let asked = play.begin("go").await;
    let (agent, child, asked) = play.spawn(asked, "c1", json!({"message": "look"})).await;
    let first = play.read(&agent).await["turns"][0]["id"].clone();
    let asked = play.call(asked, "c2", "send_input", json!({"target": agent, "message": "left"})).await;
    assert_eq!(output(&asked, "c2"), json!({"submission_id": first}));
    child.say("right").await;
    let child = play.model.of(&agent).await;
    assert_eq!(child.texts().last().map(String::as_str), Some("user: left"));
    let arguments = json!({"target": agent, "message": "stop it", "interrupt": true});
    asked.call("c3", "send_input", &arguments).await;
    let child = play.model.of(&agent).await;
    assert_eq!(child.texts().last().map(String::as_str), Some("user: stop it"));
    let asked = play.model.of(&play.root.clone()).await;
    assert_ne!(output(&asked, "c3")["submission_id"], first);
    assert_eq!(play.over(&agent).await["status"], "interrupted");
    asked.call("c4", "wait_agent", &json!({"targets": [agent]})).await;
    child.say("stopped").await;
    let asked = play.model.of(&play.root.clone()).await;
    assert_eq!(output(&asked, "c4")["status"][&agent], json!({"completed": "stopped"}));
    play.end(asked, "done").await;
}

/// One that has ended is enough, whoever else is at work.
#[tokio::test]
async fn waiting_ends_with_the_first() {
    let mut play = Play::new("").await;
    let asked = play.begin("go").await;
    let (slow, _at_work, asked) = play.spawn(asked, "c1", json!({"message": "slow"})).await;
    let (quick, child, asked) = play.spawn(asked, "c2", json!({"message": "quick"})).await;
    asked.call("c3", "wait_agent", &json!({"targets": [slow, quick]})).await;
    child.say("here").await;
    let asked = play.model.of(&play.root.clone()).await;
    assert_eq!(output(&asked, "c3"), json!({"status": {&quick: {"completed": "here"}}, "timed_out": false}));
    let asked = play.call(asked, "c4", "wait_agent", json!({"targets": ["nobody", slow]})).await;
    assert_eq!(output(&asked, "c4"), json!({"status": {"nobody": "not_found"}, "timed_out": false}));
    play.end(asked, "done").await;
}

/// Agents are their own family's business.
#[tokio::test]
async fn the_agents_of_another_thread_are_not_there() {
    let mut play = Play::new("").await;
    let asked = play.begin("go").await;
    let (agent, child, asked) = play.spawn(asked, "c1", json!({"message": "look"})).await;
    play.end(asked, "done").await;
    play.end(child, "seen").await;
    let other = play.client.start_thread(json!({"cwd": play.stage.cwd()})).await;
    let family = std::mem::replace(&mut play.root, other);
    for is_open in [true, false] {
        let mut asked = play.begin("steal it").await;
        for (id, name, arguments) in [
            ("s1", "send_input", json!({"target": agent, "message": "mine"})),
            ("s2", "close_agent", json!({"target": agent})),
            ("s3", "resume_agent", json!({"id": agent})),
            ("s4", "resume_agent", json!({"id": family})),
            ("s5", "send_input", json!({"target": family, "message": "mine"})),
            ("s6", "close_agent", json!({"target": family})),
        ] {
            let id = format!("{id}{is_open}");
            asked = play.call(asked, &id, name, arguments).await;
            assert!(asked.output_of(&id).contains("not found"), "{id}: {}", asked.output_of(&id));
        }
        let id = format!("s7{is_open}");
        let asked = play.call(asked, &id, "wait_agent", json!({"targets": [agent]})).await;
        assert_eq!(output(&asked, &id)["status"][&agent], "not_found");
        play.end(asked, "nothing").await;
        // Its own family finds it as it was.
        let thief = std::mem::replace(&mut play.root, family.clone());
        let asked = play.begin("check").await;
        let id = format!("f1{is_open}");
        let asked = play.call(asked, &id, "wait_agent", json!({"targets": [agent]})).await;
        let expected = if is_open { json!({"completed": "seen"}) } else { json!("shutdown") };
        assert_eq!(output(&asked, &id)["status"][&agent], expected);
        let id = format!("f2{is_open}");
        let asked = play.call(asked, &id, "close_agent", json!({"target": agent})).await;
        play.end(asked, "closed").await;
        play.root = thief;
    }
    let loaded = play.client.ask("thread/loaded/list", json!({})).await;
    assert_eq!(loaded["data"].as_array().map(Vec::len), Some(2), "{loaded}");
}

/// A parent nobody listens to is put away; its agent works on.
#[tokio::test]
async fn a_parent_that_was_put_away_is_told_when_it_is_back() {
    let mut play = Play::new("").await;
    let root = play.root.clone();
    let asked = play.begin("go").await;
    let (agent, child, asked) = play.spawn(asked, "c1", json!({"message": "look"})).await;
    play.end(asked, "later").await;
    play.client.ask("thread/unsubscribe", json!({"threadId": root})).await;
    play.client.status(&root, "notLoaded").await;
    play.end(child, "seen").await;
    play.client.ask("thread/resume", json!({"threadId": root})).await;
    play.told(1).await;
    for said in ["and?", "and now?"] {
        let asked = play.begin(said).await;
        assert_eq!(asked.news_of(&agent), 1, "{:?}", asked.texts());
        play.end(asked, "so").await;
    }
}

/// A turn that a client begins in an agent's thread is an agent's turn like any other.
#[tokio::test]
async fn a_parent_hears_of_what_a_client_had_its_agent_do() {
    let mut play = Play::new("").await;
    let asked = play.begin("go").await;
    let (agent, child, asked) = play.spawn(asked, "c1", json!({"message": "look"})).await;
    play.end(asked, "done").await;
    play.end(child, "seen").await;
    play.client.ask("turn/start", turn(&agent, "look again")).await;
    let child = play.model.of(&agent).await;
    play.end(child, "seen more").await;
    let asked = play.begin("and?").await;
    let asked = play.call(asked, "c2", "wait_agent", json!({"targets": [agent]})).await;
    assert_eq!(output(&asked, "c2")["status"][&agent], json!({"completed": "seen more"}));
    play.end(asked, "done").await;
}
