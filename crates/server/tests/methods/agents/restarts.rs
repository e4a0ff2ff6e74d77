//! Agents and their parents in the next process.

use serde_json::{Value, json};
use testkit::{text, told};

use super::{Play, output};

#[tokio::test]
async fn an_agent_that_had_finished_is_there_for_its_parent() {
    for is_killed in [true, false] {
        let mut play = Play::new("").await;
        let asked = play.begin("go").await;
        let (agent, child, asked) = play.spawn(asked, "c1", json!({"message": "look"})).await;
        play.end(asked, "done").await;
        play.end(child, "seen").await;
        play.told(1).await;
        if is_killed {
            play.kill().await;
        } else {
            play.stop().await;
        }
        play.reopen().await;
        let asked = play.begin("and?").await;
        assert_eq!(asked.news_of(&agent), 1, "{:?}", asked.texts());
        let asked = play.call(asked, "c3", "wait_agent", json!({"targets": [agent]})).await;
        assert_eq!(output(&asked, "c3")["status"][&agent], json!({"completed": "seen"}));
        // Looking at it did not wake it up.
        let loaded = play.client.ask("thread/loaded/list", json!({})).await;
        assert_eq!(loaded["data"], json!([play.root]));
        asked.call("c4", "send_input", &json!({"target": agent, "message": "look again"})).await;
        let child = play.model.of(&agent).await;
        assert_eq!(child.header("x-openai-subagent"), Some("collab_spawn"));
        let said = child.texts();
        assert_eq!(said[said.len() - 3..], ["user: look", "assistant: seen", "user: look again"]);
        let asked = play.model.of(&play.root.clone()).await;
        asked.call("c5", "wait_agent", &json!({"targets": [agent]})).await;
        child.say("more").await;
        let asked = play.model.of(&play.root.clone()).await;
        assert_eq!(output(&asked, "c5")["status"][&agent], json!({"completed": "more"}));
        let asked = play.call(asked, "c6", "close_agent", json!({"target": agent})).await;
        assert_eq!(output(&asked, "c6"), json!({"previous_status": {"completed": "more"}}));
        assert_eq!(asked.news_of(&agent), 2, "{:?}", asked.texts());
        play.end(asked, "done").await;
        // Closed is closed, in the next process too; and it can be opened again.
        play.kill().await;
        play.reopen().await;
        let asked = play.begin("once more").await;
        let asked = play.call(asked, "c7", "send_input", json!({"target": agent, "message": "x"})).await;
        assert!(asked.output_of("c7").contains("not found") || asked.output_of("c7").contains("closed"));
        let asked = play.call(asked, "c8", "resume_agent", json!({"id": agent})).await;
        assert_eq!(output(&asked, "c8"), json!({"status": "pending_init"}));
        asked.call("c9", "send_input", &json!({"target": agent, "message": "last"})).await;
        let child = play.model.of(&agent).await;
        assert_eq!(child.texts().last().map(String::as_str), Some("user: last"));
        let read = play.read(&agent).await;
        assert_eq!(told(&read)[..2], ["completed: look", "completed: look again"]);
    }
}

#[tokio::test]
async fn an_agent_that_was_cut_off_can_be_told_more() {
    for is_killed in [true, false] {
        let mut play = Play::new("").await;
        let asked = play.begin("go").await;
        let (agent, _child, asked) = play.spawn(asked, "c1", json!({"message": "look"})).await;
        play.end(asked, "done").await;
        if is_killed {
            play.kill().await;
        } else {
            play.stop().await;
        }
        play.reopen().await;
        let asked = play.begin("and?").await;
        assert_eq!(asked.news_of(&agent), 0, "{:?}", asked.texts());
        let again = json!({"target": agent, "message": "look again"});
        asked.call("c2", "send_input", &again).await;
        let child = play.model.of(&agent).await;
        let said = child.texts();
        assert!(said.contains(&"user: look".to_owned()), "{said:?}");
        assert_eq!(said.last().map(String::as_str), Some("user: look again"));
        let asked = play.model.of(&play.root.clone()).await;
        asked.call("c3", "wait_agent", &json!({"targets": [agent]})).await;
        child.say("seen").await;
        let asked = play.model.of(&play.root.clone()).await;
        assert_eq!(output(&asked, "c3")["status"][&agent], json!({"completed": "seen"}));
        play.end(asked, "done").await;
        assert_eq!(told(&play.read(&agent).await), ["interrupted: look", "completed: look again"]);
    }
}

#[tokio::test]
async fn an_agent_that_was_cut_off_is_interrupted() {
    let mut play = Play::new("").await;
    let asked = play.begin("go").await;
    let (agent, _child, asked) = play.spawn(asked, "c1", json!({"message": "look"})).await;
    play.end(asked, "done").await;
    play.kill().await;
    play.reopen().await;
    let asked = play.begin("and?").await;
    let asked = play.call(asked, "c2", "close_agent", json!({"target": agent})).await;
    assert_eq!(output(&asked, "c2"), json!({"previous_status": "interrupted"}));
    play.end(asked, "done").await;
}

/// Those that are open count in the next process.
#[tokio::test]
async fn the_limit_holds_in_the_next_process() {
    let mut play = Play::new("[agents]\nmax_threads = 2").await;
    let asked = play.begin("go").await;
    let (first, _one, asked) = play.spawn(asked, "c1", json!({"message": "one"})).await;
    let (second, _two, asked) = play.spawn(asked, "c2", json!({"message": "two"})).await;
    play.end(asked, "done").await;
    play.kill().await;
    play.reopen().await;
    let asked = play.begin("more").await;
    let asked = play.call(asked, "c3", "spawn_agent", json!({"message": "three"})).await;
    assert!(asked.output_of("c3").contains("there are 2 open agents"), "{}", asked.output_of("c3"));
    let asked = play.call(asked, "c4", "close_agent", json!({"target": first})).await;
    let (_, _three, asked) = play.spawn(asked, "c5", json!({"message": "three"})).await;
    let asked = play.call(asked, "c6", "resume_agent", json!({"id": first})).await;
    assert!(asked.output_of("c6").contains("there are 2 open agents"), "{}", asked.output_of("c6"));
    let asked = play.call(asked, "c7", "close_agent", json!({"target": second})).await;
    let asked = play.call(asked, "c8", "resume_agent", json!({"id": first})).await;
    assert_eq!(output(&asked, "c8"), json!({"status": "pending_init"}));
    play.end(asked, "done").await;
}

/// Whoever opens an agent's thread first, it is the same agent.
#[tokio::test]
async fn a_client_may_open_an_agent_before_its_parent_asks() {
    for parent_first in [true, false] {
        let mut play = Play::new("").await;
        let asked = play.begin("go").await;
        let (agent, child, asked) = play.spawn(asked, "c1", json!({"message": "look"})).await;
        play.end(asked, "done").await;
        play.end(child, "seen").await;
        play.kill().await;
        let (server, client) = play.stage.open().await;
        (play.server, play.client) = (Some(server), client);
        let mut both = [play.root.clone(), agent.clone()];
        if !parent_first {
            both.reverse();
        }
        for thread in both {
            let opened = play.client.ask("thread/resume", json!({"threadId": thread})).await;
            assert_eq!(opened["thread"]["id"], json!(thread));
        }
        let asked = play.begin("and?").await;
        let asked = play.call(asked, "c2", "wait_agent", json!({"targets": [agent]})).await;
        assert_eq!(output(&asked, "c2")["status"][&agent], json!({"completed": "seen"}));
        let asked = play.call(asked, "c3", "close_agent", json!({"target": agent})).await;
        assert_eq!(output(&asked, "c3"), json!({"previous_status": {"completed": "seen"}}));
        play.end(asked, "done").await;
        play.client.status(&agent, "notLoaded").await;
    }
}

/// An agent of an agent, opened by a client, is as deep as it was.
#[tokio::test]
async fn depth_is_in_the_record() {
    let mut play = Play::new("[agents]\nmax_depth = 2").await;
    let asked = play.begin("go").await;
    let (_, child, asked) = play.spawn(asked, "c1", json!({"message": "look"})).await;
    let (below, deepest, _child) = play.spawn(child, "d1", json!({"message": "deeper"})).await;
    play.end(deepest, "deep").await;
    play.end(asked, "done").await;
    play.kill().await;
    let (server, client) = play.stage.open().await;
    (play.server, play.client) = (Some(server), client);
    play.client.ask("thread/resume", json!({"threadId": below})).await;
    play.client.start_turn(&below, "hello").await;
    let deepest = play.model.of(&below).await;
    assert!(!deepest.tools().contains(&"spawn_agent".to_owned()), "{:?}", deepest.tools());
    assert_eq!(deepest.header("x-openai-subagent"), Some("collab_spawn"));
}

/// Cuts a record off after the first line that fits.
fn cut_after(path: &str, fits: impl Fn(&Value) -> bool) {
    let record = std::fs::read_to_string(path).expect("a record");
    let mut kept = String::new();
    for line in record.lines() {
        kept.push_str(line);
        kept.push('\n');
        if fits(&serde_json::from_str(line).expect("JSON")) {
            std::fs::write(path, kept).expect("written");
            return;
        }
    }
    panic!("no such line in {record}");
}

#[tokio::test]
async fn a_start_whose_end_is_lost_is_not_repeated() {
    let mut play = Play::new("").await;
    let asked = play.begin("go").await;
    let (agent, child, asked) = play.spawn(asked, "c1", json!({"message": "look"})).await;
    let path = text(&play.read(&play.root.clone()).await["path"]);
    play.kill().await;
    drop((child, asked));
    cut_after(&path, |line| line.to_string().contains("\"started\""));
    play.reopen().await;
    let asked = play.begin("and?").await;
    let lost = asked.output_of("c1");
    assert!(lost.contains("The outcome of this call is not known"), "{lost}");
    // It stays known by its own record.
    let asked = play.call(asked, "c2", "resume_agent", json!({"id": agent})).await;
    assert_eq!(output(&asked, "c2"), json!({"status": "pending_init"}));
    play.end(asked, "done").await;
    let listed = play.client.ask("thread/list", json!({"sourceKinds": ["subAgentThreadSpawn"]})).await;
    assert_eq!(listed["data"].as_array().map(Vec::len), Some(1), "{listed}");
    assert_eq!(play.model.waiting(), Vec::<&str>::new());
}

/// Context from before an agent existed is in its own record too: it is not sent again.
#[tokio::test]
async fn an_agent_that_knew_what_its_parent_knew_is_told_nothing_twice() {
    for by_client in [false, true] {
        let mut play = Play::started("model_reasoning_effort = \"high\"", json!({})).await;
        let asked = play.begin("go").await;
        let order = json!({"message": "look", "fork_context": true});
        let (agent, child, asked) = play.spawn(asked, "c1", order).await;
        play.end(asked, "done").await;
        let before = child.body.clone();
        play.end(child, "seen").await;
        play.told(1).await;
        for said in ["look again", "and again"] {
            play.kill().await;
            play.reopen().await;
            if by_client {
                play.client.ask("thread/resume", json!({"threadId": agent})).await;
                play.client.ask("turn/start", testkit::turn(&agent, said)).await;
            } else {
                let asked = play.begin("more").await;
                asked.call(said, "send_input", &json!({"target": agent, "message": said})).await;
                let asked = play.model.of(&play.root.clone()).await;
                play.end(asked, "done").await;
            }
            let child = play.model.of(&agent).await;
            for field in ["instructions", "tools", "reasoning", "model", "parallel_tool_calls"] {
                assert_eq!(child.body[field], before[field], "{field}");
            }
            let input = |body: &Value| body["input"].as_array().expect("input").clone();
            let (known, now) = (input(&before), input(&child.body));
            assert_eq!(now[..known.len()], known, "what was said stays said");
            if said == "look again" {
                assert_eq!(now.len(), known.len() + 2, "{:?}", child.texts());
            }
            play.end(child, "seen").await;
        }
    }
}

/// An agent of a role is the same agent in the next process.
#[tokio::test]
async fn a_role_is_kept() {
    let mut play = Play::new("").await;
    let (file, words) = (play.stage.cwd().join("role.toml"), play.stage.cwd().join("role.md"));
    std::fs::write(&words, "You break things.").expect("a file");
    let keys = "model_instructions_file = \"role.md\"\nmodel_verbosity = \"low\"\nmodel = \"gpt-5.2\"\n";
    std::fs::write(&file, keys).expect("a file");
    let role = format!("[agents.tester]\nconfig_file = \"{}\"\n", file.display());
    play.stage.configure_port(play.model.port(), &role);
    play.root = play.client.start_thread(json!({"cwd": play.stage.cwd()})).await;
    let asked = play.begin("go").await;
    let (agent, child, asked) =
        play.spawn(asked, "c1", json!({"message": "try", "agent_type": "tester"})).await;
    assert!(
        text(&child.body["instructions"]).contains("You break things."),
        "{}",
        child.body["instructions"]
    );
    let before = child.body.clone();
    play.end(asked, "done").await;
    play.end(child, "broken").await;
    play.told(1).await;
    play.kill().await;
    play.reopen().await;
    let asked = play.begin("more").await;
    asked.call("c2", "send_input", &json!({"target": agent, "message": "again"})).await;
    let child = play.model.of(&agent).await;
    for field in ["instructions", "text", "model", "tools"] {
        assert_eq!(child.body[field], before[field], "{field}");
    }
}

/// Closed is closed, whoever above it did that.
#[tokio::test]
async fn an_agent_of_an_agent_that_was_closed_from_above_stays_closed() {
    for is_killed in [false, true] {
        let mut play = Play::new("[agents]\nmax_depth = 2\nmax_threads = 3").await;
        let asked = play.begin("go").await;
        let (agent, child, asked) = play.spawn(asked, "c1", json!({"message": "look"})).await;
        let mut below = Vec::new();
        let mut child = child;
        for id in ["d1", "d2"] {
            child.call(id, "spawn_agent", &json!({"message": "deeper"})).await;
            child = play.model.of(&agent).await;
            below.push(text(&output(&child, id)["agent_id"]));
            let deepest = play.model.of(&below[below.len() - 1]).await;
            play.end(deepest, "deep").await;
        }
        play.end(child, "sent two down").await;
        let asked = play.call(asked, "c2", "close_agent", json!({"target": below[0]})).await;
        assert_eq!(output(&asked, "c2")["previous_status"], json!({"completed": "deep"}));
        let asked = play.call(asked, "c3", "close_agent", json!({"target": agent})).await;
        let mut asked = asked;
        if is_killed {
            play.end(asked, "done").await;
            play.kill().await;
            play.reopen().await;
            asked = play.begin("go on").await;
        }
        let asked = play.call(asked, "c4", "resume_agent", json!({"id": agent})).await;
        assert_eq!(output(&asked, "c4"), json!({"status": "pending_init"}));
        let asked = play.call(asked, "c5", "wait_agent", json!({"targets": below})).await;
        let stands = &output(&asked, "c5")["status"];
        assert!(stands[&below[0]] == "shutdown" || stands[&below[0]] == "not_found", "{stands}");
        assert_eq!(stands[&below[1]], json!({"completed": "deep"}), "{stands}");
        // Its place is free, and what opens it again counts from then on.
        let asked = play.call(asked, "c6", "resume_agent", json!({"id": below[0]})).await;
        assert_eq!(output(&asked, "c6"), json!({"status": "pending_init"}));
        play.end(asked, "done").await;
        play.kill().await;
        play.reopen().await;
        let asked = play.begin("go on").await;
        let told = json!({"target": agent, "message": "more"});
        let asked = play.call(asked, "c7", "send_input", told).await;
        let asked = play.call(asked, "c8", "wait_agent", json!({"targets": [below[0]]})).await;
        assert_eq!(output(&asked, "c8")["status"][&below[0]], json!({"completed": "deep"}));
    }
}

/// An agent of an agent needs the one between, which comes back with it unless it is closed.
#[tokio::test]
async fn an_agent_of_an_agent_is_opened_with_the_one_above_it() {
    let mut play = Play::new("[agents]\nmax_depth = 2").await;
    let asked = play.begin("go").await;
    let (agent, child, asked) = play.spawn(asked, "c1", json!({"message": "look"})).await;
    let (below, deepest, child) = play.spawn(child, "d1", json!({"message": "deeper"})).await;
    play.end(deepest, "deep").await;
    play.end(child, "sent one down").await;
    play.end(asked, "done").await;
    play.kill().await;
    play.reopen().await;
    let asked = play.begin("go on").await;
    let asked = play.call(asked, "c2", "resume_agent", json!({"id": below})).await;
    assert!(asked.output_of("c2").contains("status"), "{}", asked.output_of("c2"));
    asked.call("c3", "send_input", &json!({"target": below, "message": "deeper still"})).await;
    let deepest = play.model.of(&below).await;
    assert_eq!(deepest.texts().last().map(String::as_str), Some("user: deeper still"));
    let asked = play.model.of(&play.root.clone()).await;
    play.end(deepest, "deeper").await;
    let asked = play.call(asked, "c4", "close_agent", json!({"target": agent})).await;
    let asked = play.call(asked, "c5", "resume_agent", json!({"id": below})).await;
    let refused = asked.output_of("c5");
    assert!(refused.contains(&agent) && refused.contains("closed"), "{refused}");
    play.end(asked, "done").await;
}
