//! Agents of a task at `oarlock host`: they survive its processes as their task does.

use std::fs;
use std::sync::Arc;

use model_http::{OfflineReply, OfflineRequest, OfflineResponder, Wire};
use serde_json::{Value, json};
use testkit::{VendorServer, call_event, completed_event, text_event};

use crate::host::{APPROVAL, HostClient, RunningHost, job, pending, runs, state, until};
use crate::support::Place;

/// A root that starts an agent and waits for it; an agent that runs a command and answers.
#[derive(Debug)]
struct Parent;

/// The output of the call.
fn output(body: &Value, call: &str) -> Option<String> {
    let items = body["input"].as_array()?;
    let found =
        items.iter().find(|item| item["type"] == "function_call_output" && item["call_id"] == call)?;
    Some(found["output"].as_str().map_or_else(|| found["output"].to_string(), str::to_owned))
}

/// The id that stands between quotes after this name.
fn agent_in(text: &str) -> String {
    let rest = text.split("agent_id").nth(1).unwrap_or_default();
    rest.split('"').find(|part| part.len() == 36).unwrap_or_default().to_owned()
}

impl OfflineResponder for Parent {
    fn respond(&self, request: OfflineRequest<'_>) -> OfflineReply {
        let body = serde_json::to_value(request.body).expect("JSON");
        let said = body["input"].to_string();
        let mut events = Vec::new();
        if said.contains("Run the job") && !said.contains("Delegate") {
            match output(&body, "run") {
                None => events.push(call_event("run", "exec_command", &json!({"cmd": "sh job.sh"}))),
                Some(_) if said.contains("Say more") => events.push(text_event("the agent said more")),
                Some(ran) => events.push(text_event(&format!("the agent saw {ran}"))),
            }
        } else if said.contains("Ask again") {
            let agent = agent_in(&output(&body, "spawn").unwrap_or_default());
            if let Some(waited) = output(&body, "wait again") {
                events.push(text_event(&format!("then the root heard {waited}")));
            } else if output(&body, "send").is_some() {
                let targets = json!({"targets": [agent], "timeout_ms": 60_000});
                events.push(call_event("wait again", "wait_agent", &targets));
            } else {
                events.push(call_event(
                    "send",
                    "send_input",
                    &json!({"target": agent, "message": "Say more"}),
                ));
            }
        } else if let Some(waited) = output(&body, "wait") {
            events.push(text_event(&format!("the root heard {waited}")));
        } else if let Some(spawned) = output(&body, "spawn") {
            let targets = json!({"targets": [agent_in(&spawned)], "timeout_ms": 60_000});
            events.push(call_event("wait", "wait_agent", &targets));
        } else {
            events.push(call_event("spawn", "spawn_agent", &json!({"message": "Run the job"})));
        }
        events.push(completed_event(10, 5));
        OfflineReply::events(events)
    }
}

pub(crate) fn configured(place: &Place) -> VendorServer {
    let server = VendorServer::start(Wire::Responses, Arc::new(Parent));
    fs::create_dir_all(place.home()).expect("made");
    let config =
        format!("allow_login_shell = false\nmodel = \"mock-model\"\n{}", server.provider_table("test"));
    fs::write(place.home().join("config.toml"), config).expect("written");
    server
}

/// The answers of a thread, oldest first.
fn answers(client: &mut HostClient, thread: &str) -> Vec<String> {
    let read = client.ask("thread/read", &json!({"threadId": thread, "includeTurns": true}));
    let turns = read["thread"]["turns"].as_array().cloned().unwrap_or_default();
    let items = turns.iter().flat_map(|turn| turn["items"].as_array().cloned().unwrap_or_default());
    let messages = items.filter(|item| item["type"] == "agentMessage");
    messages.map(|item| item["text"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn a_decision_about_an_agent_is_carried_out_after_a_kill_of_host_and_runtime() {
    let place = Place::new();
    job(&place, "echo done");
    let _model = configured(&place);
    let host = RunningHost::with_provider(&place, "test", &[]);
    let mut client = HostClient::connect(&place);
    let thread = client.start_thread(&place, "untrusted");
    client.turn(&thread, "Delegate the job", "i1");
    let asked = client.wait_for(APPROVAL);
    let agent = asked["params"]["threadId"].as_str().expect("a thread").to_owned();
    assert_ne!(agent, thread, "the agent asks");
    let mut started = || client.wait_for("thread/started")["params"]["thread"].take();
    assert_eq!(started()["id"], thread.as_str());
    let announced = started();
    assert_eq!(announced["id"], agent.as_str(), "before anything else about it: {announced}");
    assert!(announced["source"].to_string().contains(&thread), "{announced}");
    client.write(&json!({"id": asked["id"], "result": {"decision": "defer"}}));
    // The agent may ask before its root has said that it waits for it.
    until("the root to wait for its agent", || {
        let started = client.ask("operation/list", &json!({"threadId": thread, "state": "started"}));
        let mut tools = started["data"].as_array().into_iter().flatten().map(|one| &one["tool"]);
        tools.any(|tool| tool == "wait_agent").then_some(())
    });
    until("the task to wait", || (state(&place) == "waiting").then_some(()));
    let mut states = Vec::new();
    while states.last().map(String::as_str) != Some("waiting") {
        let told = client.wait_for("task/updated");
        assert_eq!(told["params"]["task"]["id"], thread.as_str(), "{told}");
        states.extend(told["params"]["task"]["state"].as_str().map(str::to_owned));
    }
    assert!(states.contains(&"running".to_owned()), "{states:?}");
    host.kill();
    drop(client);

    let host = RunningHost::with_provider(&place, "test", &[]);
    let waiting = pending(&place);
    assert_eq!(waiting.len(), 1, "{waiting:?}");
    assert_eq!((&waiting[0]["threadId"], &waiting[0]["state"]), (&json!(agent), &json!("proposed")));
    assert_eq!(host.runtimes(), Vec::<String>::new(), "it waits without a process");
    let mut client = HostClient::connect(&place);
    let decision = json!({
        "operationId": waiting[0]["operationId"], "argumentsDigest": waiting[0]["argumentsDigest"],
        "decision": {"type": "approve"},
    });
    client.ask("operation/decide", &decision);
    until("the agent's end", || (!answers(&mut client, &agent).is_empty()).then_some(()));
    until("the root's end", || (state(&place) == "idle").then_some(()));
    assert_eq!(runs(&place), 1, "once");
    assert!(answers(&mut client, &agent)[0].contains("done"), "{:?}", answers(&mut client, &agent));
    let root = answers(&mut client, &thread);
    assert!(root.last().is_some_and(|text| text.contains("the agent saw")), "{root:?}");
    let listed = client.ask("operation/list", &json!({"state": "decided"}));
    assert_eq!(listed["data"], json!([]), "nothing is left to be carried out");
    host.kill();
}

/// The runtime is gone between two turns, and the root speaks to its agent again.
#[test]
fn an_agent_is_there_for_the_next_runtime_of_its_task() {
    let place = Place::new();
    job(&place, "echo done");
    let _model = configured(&place);
    let host = RunningHost::with_provider(&place, "test", &[]);
    let mut client = HostClient::connect(&place);
    let thread = client.start_thread(&place, "never");
    client.turn(&thread, "Delegate the job", "i1");
    until("the root's end", || {
        (!answers(&mut client, &thread).is_empty() && state(&place) == "idle").then_some(())
    });
    host.kill();
    drop(client);

    let _host = RunningHost::with_provider(&place, "test", &[]);
    let mut client = HostClient::connect(&place);
    client.turn(&thread, "Ask again", "i2");
    until("the second answer", || (answers(&mut client, &thread).len() > 1).then_some(()));
    let root = answers(&mut client, &thread);
    assert!(root[1].contains("the agent said more"), "{root:?}");
    assert_eq!(runs(&place), 1);
}
