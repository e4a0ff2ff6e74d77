//! Threads whose tools a host chooses, and whose calls it decides about.

use serde_json::{Value, json};
use testkit::{RefusedRequest, Stage, TestClient, TestServer, text, turn};

const GATE: &str = "item/tool/requestApproval";
const COMMAND: &str = "item/commandExecution/requestApproval";

/// A server with a client that agreed on these features.
async fn open(stage: &Stage, features: &[&str]) -> (TestServer, TestClient) {
    let (server, mut client) = stage.open_raw(None);
    let offer = json!({"versions": [1], "features": features});
    let answer = client.initialize(json!({"experimentalApi": true, "hostDelegation": offer})).await;
    assert_eq!(answer["capabilities"]["hostDelegation"]["features"], json!(features), "{answer}");
    (server, client)
}

async fn open_host(stage: &Stage) -> (TestServer, TestClient) {
    open(stage, &["operations", "toolSet"]).await
}

fn tool(name: &str) -> Value {
    let schema = json!({"type": "object", "properties": {}});
    json!({"name": name, "description": "The host's own.", "inputSchema": schema})
}

/// Nothing but the rules of the set keeps a command from running.
fn start(stage: &Stage, tool_set: &Value) -> Value {
    json!({
        "cwd": stage.cwd(), "approvalPolicy": "never", "sandbox": "danger-full-access", "toolSet": tool_set,
    })
}

fn call(id: &str, name: &str, arguments: &Value) -> Value {
    json!({"name": name, "callId": id, "arguments": arguments})
}

fn command(id: &str) -> Value {
    call(id, "exec_command", &json!({"cmd": "echo x >> runs"}))
}

fn plan(step: &str) -> Value {
    json!({"plan": [{"step": step, "status": "pending"}]})
}

fn runs(stage: &Stage) -> usize {
    std::fs::read_to_string(stage.cwd().join("runs")).map_or(0, |text| text.lines().count())
}

/// By name, where the model provider's own have none by what they are.
fn offered(request: &Value) -> Vec<String> {
    let name = |tool: &Value| text(tool.get("name").unwrap_or(&tool["type"]));
    request["tools"].as_array().expect("tools").iter().map(name).collect()
}

/// The outputs that the model read of the previous request's calls, in order.
fn outputs(request: &Value) -> Vec<String> {
    let items = request["input"].as_array().expect("input").iter();
    items.filter(|item| item["type"] == "function_call_output").map(|item| text(&item["output"])).collect()
}

#[tokio::test]
async fn replaced_tools_are_all_there_is() {
    let patch = "*** Begin Patch\n*** Add File: made\n+x\n*** End Patch";
    let script = json!([
        {"calls": [command("a"), call("b", "shell", &json!({"command": ["touch", "made"]})), call("c", "update_plan", &plan("one"))]},
        {"text": "done"},
        {"call": call("d", "apply_patch", &json!({"input": patch}))},
        {"text": "done"},
    ]);
    let stage = Stage::new(script).await;
    let (_server, mut client) = open_host(&stage).await;
    let set = json!({"mode": "replace", "builtin": {"allow": ["update_plan"]}, "dynamic": [tool("lookup")]});
    let opened = client.ask("thread/start", start(&stage, &set)).await;
    let expected = json!([
        {"name": "update_plan", "origin": "builtin", "approval": "runtime"},
        {"name": "lookup", "origin": "dynamic", "approval": "runtime"},
    ]);
    assert_eq!(opened["effectiveTools"], expected);
    let id = text(&opened["thread"]["id"]);
    client.turn(&id, "go").await;
    client.turn(&id, "again").await;
    let asked = stage.asked();
    assert!(asked.iter().all(|request| offered(request) == ["update_plan", "lookup"]));
    let outputs = outputs(&asked[1]);
    assert_eq!(outputs[..2], ["unsupported call: exec_command", "unsupported call: shell"]);
    assert_eq!(outputs[2], "Plan updated");
    assert!(runs(&stage) == 0 && !stage.cwd().join("made").exists());
    stage.assert_played();
}

#[tokio::test]
async fn added_tools_are_there_beside_the_usual_ones() {
    let stage = Stage::new(json!([{"text": "done"}])).await;
    let (_server, mut client) = open_host(&stage).await;
    let set = json!({"mode": "additive", "builtin": {"allow": ["read_file", "list_dir"]}});
    let id = client.start_thread(start(&stage, &set)).await;
    client.turn(&id, "go").await;
    let offered = offered(&stage.asked()[0]);
    for name in ["read_file", "list_dir", "update_plan", "exec_command"] {
        assert!(offered.iter().any(|other| other == name), "{name}: {offered:?}");
    }
    assert!(!offered.iter().any(|other| other == "grep_files"), "{offered:?}");
}

#[tokio::test]
async fn a_host_decides_about_a_tool_that_never_asked() {
    let content = json!([{"type": "inputText", "text": "no need"}]);
    let cases = [
        (json!("accept"), Some("one"), "Plan updated"),
        (json!({"acceptWithArguments": {"arguments": plan("two")}}), Some("two"), "Plan updated"),
        (json!({"respond": {"contentItems": content, "success": true}}), None, "no need"),
        (json!("decline"), None, "the call was refused"),
    ];
    for (decision, planned, output) in cases {
        let script = json!([{"call": call("a", "update_plan", &plan("one"))}, {"text": "done"}]);
        let stage = Stage::new(script).await;
        let (_server, mut client) = open_host(&stage).await;
        let rules = json!({"default": "runtime", "perTool": {"update_plan": "host"}});
        let set = json!({"mode": "default", "approval": rules});
        let id = client.start_thread(start(&stage, &set)).await;
        client.start_turn(&id, "go").await;
        let question = client.next_of(GATE).await;
        let params = &question["params"];
        assert_eq!((&params["tool"], &params["arguments"]), (&json!("update_plan"), &plan("one")));
        assert!(params["operationId"].is_string() && params["argumentsDigest"].is_string(), "{params}");
        let decisions = params["availableDecisions"].as_array().expect("decisions");
        let has = |name: &str| decisions.iter().any(|one| one == name || one.get(name).is_some());
        assert!(has("accept") && has("acceptWithArguments") && has("respond") && has("cancel"), "{params}");
        client.answer(&question, json!({"decision": decision})).await;
        assert_eq!(client.next_of("turn/completed").await["turn"]["status"], "completed", "{decision}");
        let told = client.rest_whole().await;
        let told = told.iter().find(|message| message["method"] == "turn/plan/updated");
        let told = told.map(|message| text(&message["params"]["plan"][0]["step"]));
        assert_eq!(told.as_deref(), planned, "{decision}");
        let read = &outputs(&stage.asked()[1])[0];
        assert!(read.starts_with(output), "{decision}: {read}");
    }
}

#[tokio::test]
async fn rules_hold_for_commands_and_patches_too() {
    let patch = "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: made\n+x\n*** End Patch\nEOF";
    let script = json!([
        {"calls": [command("a"), command("b")]},
        {"calls": [
            call("c", "exec_command", &json!({"cmd": patch})),
            call("d", "update_plan", &plan("one")),
            call("e", "container.exec", &json!({"command": ["touch", "made"]})),
        ]},
        {"text": "done"},
    ]);
    let stage = Stage::new(script).await;
    let (_server, mut client) = open_host(&stage).await;
    let rules = json!({"default": "never", "perTool": {"exec_command": "host"}});
    let opened =
        client.ask("thread/start", start(&stage, &json!({"mode": "default", "approval": rules}))).await;
    let tools = opened["effectiveTools"].as_array().expect("tools");
    let rule =
        |name: &str| tools.iter().find(|tool| tool["name"] == name).map(|tool| text(&tool["approval"]));
    assert_eq!(
        (rule("exec_command").as_deref(), rule("update_plan").as_deref()),
        (Some("host"), Some("never"))
    );
    // A tool that the provider itself runs cannot be refused by anybody, so it is not offered.
    assert_eq!(rule("web_search"), None);
    let id = text(&opened["thread"]["id"]);
    client.start_turn(&id, "go").await;
    // They run side by side, so either may be asked about first.
    let questions = [client.next_of(COMMAND).await, client.next_of(COMMAND).await];
    assert_eq!(runs(&stage), 0);
    for question in &questions {
        let decision = if question["params"]["itemId"] == "a" { "decline" } else { "accept" };
        client.answer(question, json!({"decision": decision})).await;
    }
    client.next_of("turn/completed").await;
    assert!(runs(&stage) == 1 && !stage.cwd().join("made").exists());
    let asked = stage.asked();
    assert!(!offered(&asked[0]).contains(&"web_search".to_owned()));
    let read = outputs(&asked[2]);
    assert!(read[2].contains("patches are not applied in this thread"), "{read:?}");
    assert!(read[3..].iter().all(|output| output.starts_with("the call was refused")), "{read:?}");
    assert!(!client.rest().await.contains(&"turn/plan/updated".to_owned()));
    stage.assert_played();
}

#[tokio::test]
async fn a_tool_of_the_host_takes_the_place_of_a_built_in_one() {
    let script = json!([{"call": call("a", "update_plan", &plan("one"))}, {"text": "done"}]);
    let stage = Stage::new(script).await;
    let (_server, mut client) = open_host(&stage).await;
    let mut theirs = tool("update_plan");
    theirs["override"] = json!(true);
    let set = json!({"mode": "additive", "builtin": {"deny": ["exec_command"]}, "dynamic": [theirs]});
    let id = client.start_thread(start(&stage, &set)).await;
    client.start_turn(&id, "go").await;
    let question = client.next_of("item/tool/call").await;
    assert_eq!(
        (&question["params"]["tool"], &question["params"]["arguments"]),
        (&json!("update_plan"), &plan("one"))
    );
    let content = json!([{"type": "inputText", "text": "noted"}]);
    client.answer(&question, json!({"contentItems": content, "success": true})).await;
    client.next_of("turn/completed").await;
    let asked = stage.asked();
    assert_eq!(outputs(&asked[1]), ["noted"]);
    let names = offered(&asked[0]);
    assert_eq!(names.iter().filter(|name| *name == "update_plan").count(), 1, "{names:?}");
    assert!(names.contains(&"web_search".to_owned()), "{names:?}");
    assert!(
        names.contains(&"view_image".to_owned()) && !names.contains(&"exec_command".to_owned()),
        "{names:?}"
    );
    let of_host = asked[0]["tools"].as_array().and_then(|tools| tools.last()).expect("tools");
    assert_eq!(of_host["description"], "The host's own.");
}

#[tokio::test]
async fn a_set_outlives_the_process_and_only_a_new_one_takes_its_place() {
    let stage = Stage::new(json!([
        {"text": "hello"},
        {"call": call("a", "update_plan", &plan("one"))},
        {"text": "again"},
        {"text": "other"},
        {"text": "last"},
    ]))
    .await;
    let rules = json!({"default": "runtime", "perTool": {"update_plan": "never"}});
    let set = json!({
        "mode": "replace", "builtin": {"allow": ["update_plan"]}, "dynamic": [tool("lookup")], "approval": rules,
    });
    let (server, mut client) = open_host(&stage).await;
    let opened = client.ask("thread/start", start(&stage, &set)).await;
    let id = text(&opened["thread"]["id"]);
    client.turn(&id, "hi").await;
    server.stop().await;

    // Whoever comes next gets the same tools, and a client that agreed on nothing is told nothing of them.
    let (server, mut client) = stage.open().await;
    let resumed = client.ask("thread/resume", json!({"threadId": id})).await;
    assert!(resumed.get("effectiveTools").is_none() && resumed.get("toolSetDigest").is_none(), "{resumed}");
    client.turn(&id, "go on").await;
    server.stop().await;

    let (server, mut client) = open_host(&stage).await;
    let resumed = client.ask("thread/resume", json!({"threadId": id})).await;
    assert_eq!(resumed["toolSetDigest"], opened["toolSetDigest"]);
    assert_eq!(resumed["effectiveTools"], opened["effectiveTools"]);
    let other = json!({"mode": "replace", "builtin": {"allow": ["view_image"]}});
    let params = json!({"threadId": id, "toolSet": other});
    let refused = client.request("thread/resume", params.clone()).await.expect_err("it is in memory");
    assert_eq!(refused.data, json!({"code": "delegationUnsupported", "field": "toolSet"}));
    let joined = client.ask("thread/resume", json!({"threadId": id, "toolSet": set})).await;
    assert_eq!(joined["toolSetDigest"], opened["toolSetDigest"]);
    let forked = client.ask("thread/fork", params.clone()).await;
    assert_eq!(forked["effectiveTools"][0]["name"], "view_image", "{forked}");
    client.turn(&text(&forked["thread"]["id"]), "what now").await;
    server.stop().await;

    let (_server, mut client) = open_host(&stage).await;
    let resumed = client.ask("thread/resume", params).await;
    assert_eq!(resumed["toolSetDigest"], forked["toolSetDigest"]);
    client.turn(&id, "and here").await;

    let asked = stage.asked();
    for (at, names) in [
        (0, &["update_plan", "lookup"][..]),
        (1, &["update_plan", "lookup"]),
        (3, &["view_image"]),
        (4, &["view_image"]),
    ] {
        assert_eq!(offered(&asked[at]), names, "request {at}");
    }
    assert!(outputs(&asked[2])[0].starts_with("the call was refused"));
}

#[tokio::test]
async fn every_request_proves_what_was_offered() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) =
        open(&stage, &["modelTransport", "clientRollout", "operations", "toolSet"]).await;
    let provider = json!({"id": "host-provider", "capabilities": {"wire": "responses"}});
    let mut lookup = tool("lookup");
    lookup["effects"] = json!("idempotent");
    let mut hidden = tool("hidden");
    hidden["deferLoading"] = json!(true);
    let set = json!({
        "mode": "additive", "dynamic": [lookup, hidden], "approval": {"default": "host", "perTool": {"hidden": "never"}},
    });
    let mut params = start(&stage, &set);
    params["delegation"] = json!({"mode": "full", "version": 1, "hostEpoch": 1, "provider": provider});
    params["rolloutOwnership"] = json!("client");
    let opened = client.ask("thread/start", params).await;
    let digest = opened["toolSetDigest"].clone();
    assert_eq!(digest, json!(digest_of(&opened["effectiveTools"])));
    let hidden = json!({"name": "hidden", "origin": "dynamic", "approval": "never"});
    assert_eq!(opened["effectiveTools"].as_array().and_then(|tools| tools.last()), Some(&hidden));
    let id = text(&opened["thread"]["id"]);
    client.send("turn/start", turn(&id, "go")).await;
    let (mut requests, mut proposed) = (0, Value::Null);
    loop {
        let message = client.next().await;
        let params = message["params"].clone();
        match message["method"].as_str().unwrap_or_default() {
            "rollout/append" => {
                let items = params["items"].as_array().expect("items");
                let operation = items.iter().find(|item| item["state"] == "proposed");
                proposed = operation.cloned().unwrap_or(proposed);
                let next = params["fromOrdinal"].as_u64().expect("an ordinal") + items.len() as u64;
                client.answer(&message, json!({"nextOrdinal": next})).await;
            }
            "model/request" => {
                requests += 1;
                assert_eq!(params["toolSetDigest"], digest);
                let accepted = json!({"disposition": "accepted", "provider": "p", "model": "m"});
                client.answer(&message, accepted).await;
                client.send("model/streamEvent", response(&params, requests == 1)).await;
            }
            "item/tool/call" => {
                client.answer(&message, json!({"contentItems": [], "success": true})).await;
            }
            "turn/completed" => break,
            _ => {}
        }
    }
    assert_eq!(requests, 2);
    assert_eq!(
        (&proposed["effects"], &proposed["toolSetDigest"]),
        (&json!("idempotent"), &digest),
        "{proposed}"
    );
}

/// One call first, then words.
fn response(request: &Value, is_first: bool) -> Value {
    let item = if is_first {
        json!({"type": "function_call", "id": "f", "name": "lookup", "call_id": "a", "arguments": "{}"})
    } else {
        let content = json!([{"type": "output_text", "text": "done"}]);
        json!({"type": "message", "role": "assistant", "id": "m", "content": content})
    };
    let usage = json!({"input_tokens": 1, "output_tokens": 1, "total_tokens": 2});
    let events = json!([
        {"type": "response.created", "response": {"id": "r"}},
        {"type": "response.output_item.done", "item": item},
        {"type": "response.completed", "response": {"id": "r", "usage": usage}},
    ]);
    json!({
        "threadId": request["threadId"], "modelRequestId": request["modelRequestId"], "seq": 0, "events": events,
    })
}

/// Over the canonical JSON, as a host would compute it.
fn digest_of(value: &Value) -> String {
    let mut sorted = value.clone();
    sorted.sort_all_objects();
    let bytes = ring::digest::digest(&ring::digest::SHA256, sorted.to_string().as_bytes());
    format!("sha256:{}", data_encoding::HEXLOWER.encode(bytes.as_ref()))
}

#[tokio::test]
async fn what_does_not_fit_is_refused_before_a_thread_exists() {
    let stage = Stage::new(json!([{"text": "hello"}])).await;
    let (server, mut client) = open_host(&stage).await;
    let beside = |field: &str, value: Value| {
        let mut params = json!({"toolSet": {"mode": "default"}});
        params[field] = value;
        params
    };
    let set = |set: Value| json!({"toolSet": set});
    let rules = json!({"default": "host", "perTool": {"fly": "host"}});
    let cases = [
        (set(json!({"mode": "replace", "builtin": {"allow": ["fly"]}})), "unknownTool", "fly"),
        (set(json!({"mode": "additive", "builtin": {"deny": ["fly"]}})), "unknownTool", "fly"),
        (set(json!({"mode": "default", "approval": rules})), "unknownTool", "fly"),
        (set(json!({"mode": "additive", "dynamic": [tool("shell")]})), "toolConflict", "shell"),
        (set(json!({"mode": "replace", "dynamic": [tool("a"), tool("a")]})), "invalidToolSet", "duplicate"),
        (set(json!({"mode": "default", "dynamic": [tool("a")]})), "invalidToolSet", "toolSet.dynamic"),
        (set(json!({"mode": "default", "builtin": {"allow": []}})), "invalidToolSet", "allow"),
        (beside("builtinTools", json!([])), "invalidToolSet", "builtinTools"),
        (beside("dynamicTools", json!([tool("a")])), "invalidToolSet", "dynamicTools"),
    ];
    for (params, code, names) in cases {
        check_refused(client.request("thread/start", params.clone()).await, code, names);
    }
    assert_eq!(client.ask("thread/loaded/list", json!({})).await["data"], json!([]));
    let id = client.spoken_thread("hi").await;
    server.stop().await;

    // Without the feature there is no set of tools, whatever opens the thread.
    let (_server, mut client) = open(&stage, &["operations"]).await;
    for method in ["thread/start", "thread/resume", "thread/fork"] {
        let params = json!({"threadId": id, "toolSet": {"mode": "default"}});
        check_refused(client.request(method, params).await, "delegationUnsupported", "toolSet");
    }
    assert_eq!(client.ask("thread/loaded/list", json!({})).await["data"], json!([]));
}

fn check_refused(outcome: Result<Value, RefusedRequest>, code: &str, names: &str) {
    let refused = outcome.expect_err("refused");
    assert_eq!((refused.code, &refused.data["code"]), (-32602, &json!(code)), "{refused:?}");
    assert!(refused.message.contains(names), "{}", refused.message);
}
