//! An agent inherits from its parent, and never gets more.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use testkit::{ReceivedRequest, text, turn};

use super::{Play, output};

const COMMAND: &str = "item/commandExecution/requestApproval";

fn touch(name: &str) -> Value {
    json!({"cmd": format!("touch {name}")})
}

/// An agent that runs a command; gives its next request.
async fn child_runs(play: &mut Play, child: ReceivedRequest, id: &str, arguments: &Value) -> ReceivedRequest {
    let agent = child.thread().to_owned();
    child.call(id, "exec_command", arguments).await;
    play.model.of(&agent).await
}

/// Every field that the parent's turn chose, with the words of the answer to `thread/resume`.
#[tokio::test]
async fn an_agent_works_where_and_as_its_parent_does() {
    let mut play = Play::new("").await;
    let below = play.stage.cwd().join("below");
    std::fs::create_dir(&below).expect("a folder");
    let mut params = turn(&play.root, "go");
    for (field, value) in [
        ("cwd", json!(below)),
        ("model", json!("gpt-5.2")),
        ("effort", json!("high")),
        ("approvalPolicy", json!("on-request")),
        (
            "sandboxPolicy",
            json!({"type": "workspaceWrite", "writableRoots": ["/tmp"], "networkAccess": true}),
        ),
    ] {
        params[field] = value;
    }
    let asked = play.begin_with(params).await;
    let (agent, child, asked) = play.spawn(asked, "c1", json!({"message": "look"})).await;
    assert_eq!(
        (&child.body["model"], &child.body["reasoning"]["effort"]),
        (&json!("gpt-5.2"), &json!("high"))
    );
    // Without what is said of agents of its own.
    let (own, theirs) = (text(&child.body["instructions"]), text(&asked.body["instructions"]));
    assert!(theirs.starts_with(&own), "{own}");
    let context = child.context().concat();
    assert!(context.contains(&format!("<cwd>{}</cwd>", below.display())), "{context}");
    play.end(asked, "done").await;
    play.end(child, "seen").await;
    let theirs = play.client.ask("thread/resume", json!({"threadId": play.root})).await;
    let own = play.client.ask("thread/resume", json!({"threadId": agent})).await;
    for field in ["model", "modelProvider", "cwd", "approvalPolicy", "sandbox", "reasoningEffort"] {
        assert_eq!(own[field], theirs[field], "{field}");
    }
    assert_eq!(own["cwd"], json!(below));
    assert_eq!(own["approvalPolicy"], "on-request");
    assert_eq!(own["sandbox"]["type"], "workspaceWrite");
}

#[tokio::test]
async fn what_its_parent_may_not_write_an_agent_may_not_either() {
    let mut play = Play::started("", json!({"sandbox": "read-only", "approvalPolicy": "never"})).await;
    let asked = play.begin("go").await;
    let (_, child, asked) = play.spawn(asked, "c1", json!({"message": "write"})).await;
    let child = child_runs(&mut play, child, "d1", &touch("there")).await;
    assert!(!child.output_of("d1").contains("exited with code 0"), "{}", child.output_of("d1"));
    // Nor by asking for it.
    let mut asking = touch("there");
    (asking["sandbox_permissions"], asking["justification"]) = (json!("require_escalated"), json!("please"));
    let child = child_runs(&mut play, child, "d2", &asking).await;
    assert!(!child.output_of("d2").contains("exited with code 0"), "{}", child.output_of("d2"));
    assert!(!play.stage.cwd().join("there").exists());
    let child = child_runs(&mut play, child, "d3", &json!({"cmd": "echo read only"})).await;
    assert!(child.output_of("d3").contains("read only"), "{}", child.output_of("d3"));
    play.end(asked, "done").await;
    assert!(!play.client.rest().await.contains(&COMMAND.to_owned()));
}

/// A parent that is held closer after its agent was closed.
#[tokio::test]
async fn an_agent_that_is_opened_again_may_do_what_its_parent_may_now() {
    let mut play =
        Play::started("", json!({"sandbox": "danger-full-access", "approvalPolicy": "never"})).await;
    let asked = play.begin("go").await;
    let (agent, child, asked) = play.spawn(asked, "c1", json!({"message": "write"})).await;
    let child = child_runs(&mut play, child, "d1", &touch("first")).await;
    assert!(play.stage.cwd().join("first").exists(), "{}", child.output_of("d1"));
    child.say("written").await;
    play.over(&agent).await;
    let asked = play.call(asked, "c2", "close_agent", json!({"target": agent})).await;
    play.end(asked, "done").await;
    let mut params = turn(&play.root, "again");
    params["sandboxPolicy"] = json!({"type": "readOnly"});
    let asked = play.begin_with(params).await;
    let asked = play.call(asked, "c3", "resume_agent", json!({"id": agent})).await;
    assert_eq!(output(&asked, "c3"), json!({"status": "pending_init"}));
    asked.call("c4", "send_input", &json!({"target": agent, "message": "write more"})).await;
    let child = play.model.of(&agent).await;
    let child = child_runs(&mut play, child, "d2", &touch("second")).await;
    assert!(!child.output_of("d2").contains("exited with code 0"), "{}", child.output_of("d2"));
    assert!(!play.stage.cwd().join("second").exists());
}

#[tokio::test]
async fn what_was_granted_to_the_parent_is_asked_of_an_agent_on_its_own_thread() {
    let mut play =
        Play::started("", json!({"sandbox": "danger-full-access", "approvalPolicy": "untrusted"})).await;
    let root = play.root.clone();
    let asked = play.begin("go").await;
    asked.call("c1", "exec_command", &touch("mine")).await;
    let question = play.client.next_of(COMMAND).await;
    assert_eq!(question["params"]["threadId"], json!(root));
    play.client.answer(&question, json!({"decision": "acceptForSession"})).await;
    let asked = play.model.of(&root).await;
    let asked = play.call(asked, "c2", "exec_command", touch("mine")).await;
    assert!(asked.output_of("c2").contains("exited with code 0"), "{}", asked.output_of("c2"));
    std::fs::remove_file(play.stage.cwd().join("mine")).expect("it was there");

    let (agent, child, asked) = play.spawn(asked, "c3", json!({"message": "touch it"})).await;
    child.call("d1", "exec_command", &touch("mine")).await;
    let question = play.client.next_of(COMMAND).await;
    assert_eq!(question["params"]["threadId"], json!(agent));
    play.client
        .wait_for("thread/status/changed", |params| {
            params["threadId"] == agent.as_str()
                && params["status"]["activeFlags"] == json!(["waitingOnApproval"])
        })
        .await;
    play.client.answer(&question, json!({"decision": "decline"})).await;
    let child = play.model.of(&agent).await;
    assert!(child.output_of("d1").contains("rejected"), "{}", child.output_of("d1"));
    assert!(!play.stage.cwd().join("mine").exists());
    child.call("d2", "exec_command", &touch("yours")).await;
    let question = play.client.next_of(COMMAND).await;
    play.client.answer(&question, json!({"decision": "accept"})).await;
    let child = play.model.of(&agent).await;
    assert!(child.output_of("d2").contains("exited with code 0"), "{}", child.output_of("d2"));
    assert!(play.stage.cwd().join("yours").exists());
    // And what was granted to the agent is not the parent's.
    asked.call("c4", "exec_command", &touch("yours")).await;
    let question = play.client.next_of(COMMAND).await;
    assert_eq!(question["params"]["threadId"], json!(root));
}

#[tokio::test]
async fn another_model_brings_no_more_tools() {
    let mut play = Play::started("", json!({"builtinTools": null})).await;
    let asked = play.begin("go").await;
    let (_, child, asked) = play
        .spawn(asked, "c1", json!({"message": "look", "model": "gpt-5.3-codex", "reasoning_effort": "low"}))
        .await;
    assert_eq!(
        (&child.body["model"], &child.body["reasoning"]["effort"]),
        (&json!("gpt-5.3-codex"), &json!("low"))
    );
    let (theirs, own) = (asked.tools(), child.tools());
    let more: Vec<_> = own.iter().filter(|tool| !theirs.contains(tool)).collect();
    assert!(more.is_empty(), "{more:?} beyond {theirs:?}");
    assert!(own.contains(&"update_plan".to_owned()), "{own:?}");
    let asked =
        play.call(asked, "c2", "spawn_agent", json!({"message": "x", "model": "no-such-model"})).await;
    assert!(asked.output_of("c2").contains("unknown model `no-such-model`"), "{}", asked.output_of("c2"));
    play.end(asked, "done").await;
    let spawned = play.client.wait_for("item/completed", |params| params["item"]["id"] == "c1").await;
    assert_eq!(
        (&spawned["item"]["model"], &spawned["item"]["reasoningEffort"]),
        (&json!("gpt-5.3-codex"), &json!("low"))
    );
}

/// A client's own tools are its agreement with one thread.
#[tokio::test]
async fn tools_of_the_client_are_for_the_thread_they_were_given_to() {
    let tool = json!({"name": "lookup", "description": "d", "inputSchema": {"type": "object"}});
    let mut play = Play::started("", json!({"dynamicTools": [tool]})).await;
    let asked = play.begin("go").await;
    assert!(asked.tools().contains(&"lookup".to_owned()));
    let (_, child, _asked) = play.spawn(asked, "c1", json!({"message": "look"})).await;
    assert!(!child.tools().contains(&"lookup".to_owned()), "{:?}", child.tools());
}

/// An environment that is still starting when an agent is started is not for it.
#[tokio::test]
async fn an_agent_works_in_the_environments_that_are_attached() {
    let mut play = Play::new("").await;
    let (folder, prefix) = (play.stage.cwd().join("a"), play.stage.cwd().join("prefix"));
    std::fs::create_dir(&folder).expect("a folder");
    std::fs::write(&prefix, "#!/bin/sh\necho still booting >&2\nexit 1\n").expect("a script");
    std::fs::set_permissions(&prefix, std::fs::Permissions::from_mode(0o755)).expect("executable");
    for (id, environment) in [
        ("a", json!({"type": "local", "cwd": folder})),
        ("box", json!({"type": "command", "argv": [prefix], "cwd": "/"})),
    ] {
        let params = json!({"environmentId": id, "environment": environment});
        play.client.ask("environment/add", params).await;
    }
    let chosen = json!([{"environmentId": "a", "cwd": folder}, {"environmentId": "box", "cwd": "/"}]);
    let params = json!({"environments": chosen, "approvalPolicy": "never", "sandbox": "danger-full-access"});
    play.root = play.client.start_thread(params).await;
    let asked = play.begin("go").await;
    let told = asked.context().concat();
    assert!(told.contains("<environment id=\"box\" status=\"starting\">"), "{told}");
    let (_, child, _asked) = play.spawn(asked, "c1", json!({"message": "look"})).await;
    let told = child.context().concat();
    assert!(told.contains(&format!("<cwd>{}</cwd>", folder.display())), "{told}");
    assert!(!told.contains("box"), "{told}");
    let child = child_runs(&mut play, child, "d1", &touch("there")).await;
    assert!(folder.join("there").exists(), "{}", child.output_of("d1"));
}

#[tokio::test]
async fn a_short_list_of_tools_is_as_short_for_an_agent() {
    let tools = json!(["exec_command", "spawn_agent", "wait_agent"]);
    let mut play = Play::started("[agents]\nmax_depth = 2", json!({"builtinTools": tools})).await;
    let asked = play.begin("go").await;
    assert_eq!(asked.tools(), ["exec_command", "spawn_agent", "wait_agent"]);
    let (agent, child, _asked) =
        play.spawn(asked, "c1", json!({"message": "look", "model": "gpt-5.2"})).await;
    assert_eq!(child.tools(), ["exec_command", "spawn_agent", "wait_agent"]);
    child.call("d1", "update_plan", &json!({"plan": []})).await;
    let child = play.model.of(&agent).await;
    assert!(child.output_of("d1").contains("unsupported call"), "{}", child.output_of("d1"));
}

#[tokio::test]
async fn the_agents_of_a_thread_without_a_record_have_none_either() {
    let mut play = Play::started("", json!({"ephemeral": true})).await;
    let asked = play.begin("go").await;
    let (agent, child, asked) = play.spawn(asked, "c1", json!({"message": "look"})).await;
    child.say("seen").await;
    play.over(&agent).await;
    let asked = play.call(asked, "c2", "wait_agent", json!({"targets": [agent]})).await;
    assert_eq!(output(&asked, "c2")["status"][&agent], json!({"completed": "seen"}));
    let params = json!({"threadId": agent});
    let read = play.client.ask("thread/read", params).await["thread"].clone();
    assert_eq!((&read["ephemeral"], &read["path"]), (&json!(true), &Value::Null));
    let asked = play.call(asked, "c3", "close_agent", json!({"target": agent})).await;
    let asked = play.call(asked, "c4", "resume_agent", json!({"id": agent})).await;
    let refused = asked.output_of("c4");
    assert!(serde_json::from_str::<Value>(&refused).is_err(), "{refused}");
    // Nothing holds its place.
    let asked = play.call(asked, "c5", "wait_agent", json!({"targets": [agent]})).await;
    assert_eq!(text(&output(&asked, "c5")["status"][&agent]), "shutdown");
    play.end(asked, "done").await;
    play.stop().await;
    let left = std::fs::read_dir(play.stage.home().join("oarlock/threads"));
    assert!(left.map_or(0, Iterator::count) == 0);
}
