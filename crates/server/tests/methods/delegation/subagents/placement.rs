//! The question where a child is to run, and every answer to it.

use serde_json::{Value, json};
use testkit::{Stage, text};

use super::{Keeper, offer, output, output_json, terms};
use crate::delegation::full;

#[tokio::test]
async fn placing_children_is_agreed_on_by_name() {
    let stage = Stage::new(json!([])).await;
    let (server, mut client) = stage.open_raw(None);
    let told = client.initialize(offer()).await;
    let features = told["capabilities"]["hostDelegation"]["features"].as_array().expect("features").clone();
    assert!(features.contains(&json!("subagents")), "{features:?}");
    server.stop().await;
    let (server, mut client) = stage.open_raw(None);
    let without = json!({"versions": [1], "features": ["modelTransport"]});
    client.initialize(json!({"experimentalApi": true, "hostDelegation": without})).await;
    let params = json!({"delegation": terms("host", 1)});
    let refused = client.request("thread/start", params).await.expect_err("not agreed");
    assert_eq!((refused.code, &refused.data["code"]), (-32602, &json!("delegationUnsupported")));
    assert!(refused.message.contains("delegation.subagents"), "{refused:?}");
    assert_eq!(client.ask("thread/loaded/list", json!({})).await["data"], json!([]));
    // Without a word about it children run here.
    client.start_thread(json!({"delegation": full()})).await;
    server.stop().await;
}

#[tokio::test]
async fn the_host_is_asked_with_all_it_needs_to_know() {
    for keeps in [false, true] {
        let stage = Stage::new(json!([])).await;
        let more = json!({
            "approvalPolicy": "never", "sandbox": "read-only",
            "toolSet": {"mode": "replace", "builtin": {"allow": ["update_plan", "spawn_agent", "wait_agent"]}},
        });
        let (server, mut host) = Keeper::with(&stage, "host", keeps, more).await;
        let arguments = json!({"message": "look", "agent_type": "explorer", "reasoning_effort": "low", "fork_context": keeps});
        let asked = host.spawns("c1", arguments).await;
        let params = asked["params"].clone();
        let turn = text(&params["parent"]["turnId"]);
        assert_eq!(params["delegationId"], json!(format!("{}:{turn}:c1", host.thread)));
        let parent = json!({
            "threadId": host.thread, "turnId": turn, "callId": "c1", "agentPath": ["root"], "depth": 0,
        });
        assert_eq!(params["parent"], parent);
        assert_eq!(params["role"], "explorer");
        assert!(params["nickname"].as_str().is_some_and(|name| !name.is_empty()), "{params}");
        assert_eq!(params["input"], json!([{"type": "text", "text": "look", "text_elements": []}]));
        assert_eq!(params["history"], if keeps { json!("full") } else { json!("none") });
        match keeps {
            false => assert_eq!(params.get("historyRef"), None),
            true => {
                let known = host.records.as_ref().expect("records")[&host.thread].len();
                let expected = json!({"fromOrdinal": 0, "toOrdinal": known - 1});
                assert_eq!(params["historyRef"], expected);
            }
        }
        assert_eq!(
            params["toolSet"]["builtin"]["allow"],
            json!(["update_plan", "spawn_agent", "wait_agent"])
        );
        let hints = &params["hints"];
        assert_eq!((&hints["cwd"], &hints["model"]), (&json!(stage.cwd()), &json!("mock-model")));
        assert_eq!((&hints["sandbox"]["type"], &hints["effort"]), (&json!("readOnly"), &json!("low")));
        assert_eq!(params["limits"], json!({"maxDepth": 1}));
        // The operation has begun in the record before anybody is asked.
        if keeps {
            let record = &host.records.as_ref().expect("records")[&host.thread];
            let states: Vec<&Value> = record.iter().filter(|item| item["kind"] == "operation").collect();
            assert_eq!(
                states.last().map(|state| state["state"].clone()),
                Some(json!("started")),
                "{states:?}"
            );
            assert!(states.iter().all(|state| state["operationId"] == params["delegationId"]), "{states:?}");
        }
        server.kill().await;
    }
}

#[tokio::test]
async fn a_child_that_the_host_sends_back_runs_here_under_its_name() {
    let stage = Stage::new(json!([])).await;
    let (server, mut host) = Keeper::new(&stage, "host", false).await;
    let asked = host.spawns("c1", json!({"message": "look"})).await;
    let id = "019a0000-0000-7000-8000-000000000001";
    host.client.answer(&asked, json!({"disposition": "runtime", "childThreadId": id})).await;
    let child = host.request(id).await;
    assert_eq!(child["agentPath"], json!(["root", id]));
    let mut request = host.root().await;
    assert_eq!(output_json(&request, "c1")["agent_id"], id);
    // No two of one name, and no name that is none.
    let parent = host.thread.clone();
    for (call, name) in [("c2", id), ("c3", &parent), ("c4", "../../etc")] {
        host.calls(&request, call, "spawn_agent", json!({"message": "again"})).await;
        let asked = host.wait("delegation/request", |_| true).await;
        host.client.answer(&asked, json!({"disposition": "runtime", "childThreadId": name})).await;
        request = host.root().await;
        assert!(output(&request, call).contains("no agent was started"), "{}", output(&request, call));
    }
    let loaded = host.ask("thread/loaded/list", json!({})).await.expect("threads");
    assert_eq!(loaded["data"].as_array().map(Vec::len), Some(2), "{loaded}");
    server.kill().await;
}

/// Whatever is no place for a child: the model reads why, and the turn goes on.
#[tokio::test]
async fn answers_that_start_nothing() {
    let stage = Stage::configured(json!([]), "[agents]\nmax_threads = 1").await;
    let (server, mut host) = Keeper::new(&stage, "host", false).await;
    let mut asked = host.spawns("c0", json!({"message": "look"})).await;
    let long = "x".repeat(300);
    for (at, (answer, problem)) in [
        (json!({"result": {"disposition": "rejected", "message": "no budget"}}), "no budget"),
        (json!({"error": {"code": -32000, "message": "out of order"}}), "out of order"),
        (json!({"result": {"disposition": "perhaps"}}), "no agent was started"),
        (json!({"result": {}}), "no agent was started"),
        (json!({"result": {"disposition": "host", "childRef": " "}}), "no usable name"),
        (json!({"result": {"disposition": "host", "childRef": long}}), "no usable name"),
    ]
    .into_iter()
    .enumerate()
    {
        let mut answer = answer;
        answer["id"] = asked["id"].clone();
        host.client.send_line(&answer.to_string()).await;
        let request = host.root().await;
        let told = output(&request, &format!("c{at}"));
        assert!(told.contains(problem), "{answer}: {told}");
        // Its place is free again.
        host.calls(&request, &format!("c{}", at + 1), "spawn_agent", json!({"message": "look"})).await;
        asked = host.wait("delegation/request", |_| true).await;
    }
    host.client.answer(&asked, json!({"disposition": "host", "childRef": "job-1"})).await;
    let request = host.root().await;
    assert_eq!(output_json(&request, "c6")["agent_id"], "host:job-1");
    host.calls(&request, "c7", "spawn_agent", json!({"message": "look"})).await;
    let request = host.root().await;
    assert!(output(&request, "c7").contains("there are 1 open agents"), "{}", output(&request, "c7"));
    assert!(!host.has_heard("delegation/request").await);
    server.kill().await;
}

/// An agent of an agent, each of them asked about.
#[tokio::test]
async fn the_host_is_told_who_is_above_a_child() {
    let stage = Stage::configured(json!([]), "[agents]\nmax_depth = 2").await;
    let (server, mut host) = Keeper::new(&stage, "host", false).await;
    let asked = host.spawns("c1", json!({"message": "look"})).await;
    assert_eq!(asked["params"]["limits"]["maxDepth"], 2);
    let id = "019a0000-0000-7000-8000-000000000002";
    host.client.answer(&asked, json!({"disposition": "runtime", "childThreadId": id})).await;
    let child = host.request(id).await;
    host.calls(&child, "d1", "spawn_agent", json!({"message": "deeper"})).await;
    let asked = host.wait("delegation/request", |_| true).await;
    let parent = json!({
        "threadId": id, "turnId": child["turnId"], "callId": "d1", "agentPath": ["root", id], "depth": 1,
    });
    assert_eq!(asked["params"]["parent"], parent);
    host.client.answer(&asked, json!({"disposition": "host", "childRef": "deep"})).await;
    let child = host.request(id).await;
    let delegation = asked["params"]["delegationId"].clone();
    // Whoever closes the child in between has the host stop the one below.
    let request = host.root().await;
    host.calls(&request, "c2", "close_agent", json!({"target": id})).await;
    let asked = host.wait("delegation/cancel", |_| true).await;
    assert_eq!(asked["params"]["delegationId"], delegation);
    host.client.answer(&asked, json!({"disposition": "canceled"})).await;
    let request = host.root().await;
    assert_eq!(output_json(&request, "c2"), json!({"previous_status": "running"}));
    drop(child);
    server.kill().await;
}

/// Names are each host's own.
#[tokio::test]
async fn children_of_several_hosts_may_have_one_name() {
    let stage = Stage::new(json!([])).await;
    let server = stage.listen();
    let mut hosts = Vec::new();
    for _ in 0..2 {
        let client = server.connect_with(offer()).await;
        hosts.push(Keeper::start(client, &stage, "host", false, json!({})).await);
    }
    let mut given = Vec::new();
    for host in &mut hosts {
        let (delegation, request) = host.away("c1", "1").await;
        assert_eq!(output_json(&request, "c1")["agent_id"], "host:1");
        given.push((delegation, request));
    }
    for (at, host) in hosts.iter_mut().enumerate() {
        let (delegation, request) = &given[at];
        // Two of one thread may not, as long as both are at work.
        host.calls(request, "c3", "spawn_agent", json!({"message": "look"})).await;
        let asked = host.wait("delegation/request", |_| true).await;
        host.client.answer(&asked, json!({"disposition": "host", "childRef": "1"})).await;
        let request = host.root().await;
        assert!(output(&request, "c3").contains("the name of another"), "{}", output(&request, "c3"));
        host.calls(&request, "c2", "wait_agent", json!({"targets": ["host:1"]})).await;
        let words = format!("result {at}");
        assert_eq!(host.result(super::finished(delegation, "completed", &words)).await, Ok(json!({})));
        let request = host.root().await;
        assert_eq!(output_json(&request, "c2")["status"]["host:1"], json!({"completed": words}));
    }
    server.kill().await;
}
