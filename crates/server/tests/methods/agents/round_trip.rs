//! One agent from its beginning to its end, and what everybody hears of it.

use serde_json::{Value, json};
use testkit::{told, turn, within};

use super::{Play, output};

const TURN: [&str; 8] = [
    "active",
    "turn/started",
    "item/started userMessage",
    "item/completed userMessage",
    "item/started agentMessage",
    "item/completed agentMessage",
    "idle",
    "turn/completed",
];

#[tokio::test]
async fn an_agent_is_started_waited_for_told_more_closed_and_opened_again() {
    let mut play = Play::new("").await;
    let root = play.root.clone();
    let asked = play.begin("go").await;
    let (agent, child, asked) = play.spawn(asked, "c1", json!({"message": "look around"})).await;
    assert!(output(&asked, "c1")["nickname"].as_str().is_some_and(|name| !name.is_empty()));
    assert_eq!(child.header("x-openai-subagent"), Some("collab_spawn"));
    assert_eq!(asked.header("x-openai-subagent"), None);
    assert_eq!(child.texts().last().map(String::as_str), Some("user: look around"));
    assert!(!child.texts().iter().any(|text| text.contains("user: go")), "{:?}", child.texts());

    asked.call("c2", "wait_agent", &json!({"targets": [agent], "timeout_ms": 3_600_000})).await;
    child.say("nothing there").await;
    let asked = play.model.of(&root).await;
    let ended = json!({"completed": "nothing there"});
    assert_eq!(output(&asked, "c2"), json!({"status": {&agent: ended}, "timed_out": false}));

    asked.call("c3", "send_input", &json!({"target": agent, "message": "look again"})).await;
    let child = play.model.of(&agent).await;
    let said = child.texts();
    assert_eq!(said[said.len() - 3..], ["user: look around", "assistant: nothing there", "user: look again"]);
    let asked = play.model.of(&root).await;
    let sent = output(&asked, "c3");
    asked.call("c4", "wait_agent", &json!({"targets": [agent]})).await;
    child.say("a mouse").await;
    let asked = play.model.of(&root).await;
    assert_eq!(output(&asked, "c4")["status"][&agent], json!({"completed": "a mouse"}));
    let stored = play.read(&agent).await;
    assert_eq!(told(&stored), ["completed: look around", "completed: look again"]);
    assert_eq!(sent, json!({"submission_id": stored["turns"][1]["id"]}));

    let asked = play.call(asked, "c5", "close_agent", json!({"target": agent})).await;
    assert_eq!(output(&asked, "c5"), json!({"previous_status": {"completed": "a mouse"}}));
    let asked = play.call(asked, "c6", "send_input", json!({"target": agent, "message": "x"})).await;
    assert!(asked.output_of("c6").contains("is closed"), "{}", asked.output_of("c6"));
    let asked = play.call(asked, "c7", "wait_agent", json!({"targets": [agent]})).await;
    assert_eq!(output(&asked, "c7"), json!({"status": {&agent: "shutdown"}, "timed_out": false}));
    let asked = play.call(asked, "c8", "resume_agent", json!({"id": agent})).await;
    assert_eq!(output(&asked, "c8"), json!({"status": "pending_init"}));
    asked.call("c9", "send_input", &json!({"target": agent, "message": "once more"})).await;
    let child = play.model.of(&agent).await;
    assert_eq!(child.texts()[said.len()..], ["assistant: a mouse", "user: once more"]);
    let asked = play.model.of(&root).await;
    asked.call("c10", "wait_agent", &json!({"targets": [agent]})).await;
    child.say("gone").await;
    let asked = play.model.of(&root).await;
    assert_eq!(output(&asked, "c10")["status"][&agent], json!({"completed": "gone"}));
    let asked = play.call(asked, "c11", "close_agent", json!({"target": agent})).await;
    // Once for each of its three ends.
    assert_eq!(asked.news_of(&agent), 3, "{:?}", asked.texts());
    assert_eq!(play.end(asked, "done").await["status"], "completed");

    let heard = play.client.rest_whole().await;
    let of = |thread: &str| -> Vec<String> {
        let of = heard.iter().filter(|message| message["params"]["threadId"] == thread);
        of.filter_map(super::word).collect()
    };
    let mut expected = vec!["idle"];
    expected.extend(TURN.iter().chain(&TURN));
    expected.extend(["notLoaded", "idle"]);
    expected.extend(TURN);
    expected.push("notLoaded");
    assert_eq!(of(&agent), expected);
    let tools = ["spawnAgent", "wait", "sendInput", "wait", "closeAgent", "sendInput", "wait", "resumeAgent"];
    let tools = tools.iter().chain(&["sendInput", "wait", "closeAgent"]);
    let items = tools.flat_map(|tool| [format!("item/started {tool}"), format!("item/completed {tool}")]);
    let collab = |word: &String| word.starts_with("item/") && !word.contains("Message");
    assert_eq!(of(&root).into_iter().filter(collab).collect::<Vec<_>>(), items.collect::<Vec<_>>());
    check_items(&heard, &root, &agent);
}

/// The calls as clients see them.
fn check_items(heard: &[Value], root: &str, agent: &str) {
    let at = |method: &str, id: &str| -> Value {
        let is_it = |message: &&Value| message["method"] == method && message["params"]["item"]["id"] == id;
        heard.iter().find(is_it).unwrap_or_else(|| panic!("{method} {id}"))["params"]["item"].clone()
    };
    let item = |id: &str, tool: &str| {
        json!({
            "type": "collabAgentToolCall", "id": id, "tool": tool, "status": "completed", "senderThreadId": root,
            "receiverThreadIds": [agent], "prompt": null, "model": null, "reasoningEffort": null, "agentsStates": {},
        })
    };
    let mut spawned = item("c1", "spawnAgent");
    (spawned["prompt"], spawned["model"]) = (json!("look around"), json!("mock-model"));
    spawned["reasoningEffort"] = json!("medium");
    let mut begun = spawned.clone();
    (begun["status"], begun["receiverThreadIds"]) = (json!("inProgress"), json!([]));
    assert_eq!(at("item/started", "c1"), begun);
    spawned["agentsStates"] = json!({agent: {"status": "pendingInit", "message": null}});
    assert_eq!(at("item/completed", "c1"), spawned);
    let mut waited = item("c2", "wait");
    waited["agentsStates"] = json!({agent: {"status": "completed", "message": "nothing there"}});
    assert_eq!(at("item/completed", "c2"), waited);
    let mut refused = item("c6", "sendInput");
    (refused["prompt"], refused["status"]) = (json!("x"), json!("failed"));
    refused["agentsStates"] = json!({agent: {"status": "shutdown", "message": null}});
    assert_eq!(at("item/completed", "c6"), refused);
}

#[tokio::test]
async fn every_connection_hears_of_an_agent() {
    let mut play = Play::new("").await;
    play.stop().await;
    let server = play.stage.listen();
    let mut bystander = server.connect().await;
    play.client = server.connect().await;
    play.root = play.client.start_thread(json!({"cwd": play.stage.cwd()})).await;
    let asked = play.begin("go").await;
    let (agent, child, asked) = play.spawn(asked, "c1", json!({"message": "look"})).await;
    child.say("seen").await;
    play.end(asked, "done").await;
    play.over(&agent).await;
    let hearing = async {
        let mut heard: Vec<String> = Vec::new();
        while heard.last().is_none_or(|word| word != "turn/completed") {
            let message = bystander.next().await;
            if message["params"]["threadId"] == agent.as_str() {
                heard.extend(super::word(&message));
            }
        }
        heard
    };
    let heard = within("the end of the agent's turn", hearing).await;
    let expected: Vec<&str> = ["idle"].into_iter().chain(TURN).collect();
    assert_eq!(heard, expected);
    // A bystander may also speak up.
    bystander.ask("turn/start", turn(&agent, "and you?")).await;
    let child = play.model.of(&agent).await;
    assert_eq!(child.texts().last().map(String::as_str), Some("user: and you?"));
    child.say("me too").await;
    play.over(&agent).await;
    server.stop().await;
}

#[tokio::test]
async fn a_task_can_have_images_skills_and_mentions() {
    let mut play = Play::new("").await;
    let picture = play.stage.cwd().join("a.png");
    std::fs::write(&picture, PIXEL).expect("a picture");
    let folder = play.stage.home().join("skills/sew");
    std::fs::create_dir_all(&folder).expect("a folder");
    let skill = folder.join("SKILL.md");
    let text = "---\nname: sew\ndescription: how to sew\n---\nTake a thread of silk.\n";
    std::fs::write(&skill, text).expect("a skill");
    // The thread may have looked for skills before there was one.
    play.client.ask("skills/list", json!({"cwds": [play.stage.cwd()], "forceReload": true})).await;
    let asked = play.begin("go").await;
    let items = json!([
        {"type": "text", "text": "mend it"},
        {"type": "image", "image_url": "data:image/png;base64,iVBORw0KGgo="},
        {"type": "local_image", "path": picture},
        {"type": "skill", "name": "sew", "path": skill},
    ]);
    let (_, child, asked) = play.spawn(asked, "c1", json!({"items": items})).await;
    let input = child.body["input"].to_string();
    for wanted in ["mend it", "data:image/png;base64,iVBORw0KGgo=", "Take a thread of silk."] {
        assert!(input.contains(wanted), "{wanted}: {input}");
    }
    assert_eq!(input.matches("\"input_image\"").count(), 2, "{input}");
    play.end(asked, "done").await;
    let spawned =
        play.client.wait_for("item/completed", |params| params["item"]["tool"] == "spawnAgent").await["item"]
            .clone();
    let words = format!("mend it\n[image]\n[image: {}]\n[skill: sew]", picture.display());
    assert_eq!(spawned["prompt"], json!(words));
}

/// A picture of one point.
const PIXEL: &[u8] = &[
    0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13, b'I', b'H', b'D', b'R', 0, 0, 0, 1, 0, 0, 0,
    1, 8, 6, 0, 0, 0, 0x1f, 0x15, 0xc4, 0x89, 0, 0, 0, 13, b'I', b'D', b'A', b'T', 0x78, 0x9c, 0x63, 0xf8,
    0xcf, 0xc0, 0xf0, 0x1f, 0, 5, 0, 1, 0xff, 0x56, 0xc7, 0x2f, 0x0d, 0, 0, 0, 0, b'I', b'E', b'N', b'D',
    0xae, 0x42, 0x60, 0x82,
];

#[tokio::test]
async fn a_fork_knows_what_was_said_and_who_it_is() {
    let mut play = Play::new("").await;
    let asked = play.begin("remember seven").await;
    play.end(asked, "seven it is").await;
    let asked = play.begin("go").await;
    let (agent, child, asked) =
        play.spawn(asked, "c1", json!({"message": "count", "fork_context": true})).await;
    let texts = child.texts();
    for said in ["user: remember seven", "assistant: seven it is", "user: go"] {
        assert!(texts.iter().any(|text| text == said), "{said}: {texts:?}");
    }
    assert_eq!(texts.last().map(String::as_str), Some("user: count"));
    assert!(child.output_of("c1").contains("You are the agent"), "{}", child.output_of("c1"));
    play.end(asked, "done").await;
    play.end(child, "eight").await;
    // Its own record has it all.
    play.kill().await;
    play.reopen().await;
    let asked = play.begin("more").await;
    asked.call("c2", "send_input", &json!({"target": agent, "message": "on"})).await;
    let child = play.model.of(&agent).await;
    let again = child.texts();
    assert_eq!(again[..texts.len()], texts);
    assert_eq!(again[texts.len()], "assistant: eight");
    assert_eq!(again.last().map(String::as_str), Some("user: on"));
    assert!(child.output_of("c1").contains("You are the agent"));
}

#[tokio::test]
async fn agents_are_listed_and_read_as_what_they_are() {
    let mut play = Play::new("").await;
    let asked = play.begin("go").await;
    let (agent, child, asked) =
        play.spawn(asked, "c1", json!({"message": "look", "agent_type": "explorer"})).await;
    let nickname = output(&asked, "c1")["nickname"].clone();
    play.end(asked, "done").await;
    play.end(child, "seen").await;
    let read = play.read(&agent).await;
    let source = json!({"subAgent": {"thread_spawn": {
        "parent_thread_id": play.root, "depth": 1, "agent_path": null, "agent_nickname": nickname,
        "agent_role": "explorer",
    }}});
    assert_eq!(read["source"], source);
    assert_eq!((&read["agentNickname"], &read["agentRole"]), (&nickname, &json!("explorer")));
    assert_eq!(read["sessionId"], json!(play.root));
    assert_eq!(read["cwd"], json!(play.stage.cwd()));
    let ids = |listed: Value| -> Vec<Value> {
        listed["data"].as_array().expect("threads").iter().map(|thread| thread["id"].clone()).collect()
    };
    assert_eq!(ids(play.client.ask("thread/list", json!({})).await), [json!(play.root)]);
    for kind in ["subAgentThreadSpawn", "subAgent"] {
        let listed = play.client.ask("thread/list", json!({"sourceKinds": [kind]})).await;
        assert_eq!(ids(listed), [json!(agent)], "{kind}");
    }
    let loaded = play.client.ask("thread/loaded/list", json!({})).await;
    assert!(loaded["data"].as_array().is_some_and(|all| all.contains(&json!(agent))), "{loaded}");
}
