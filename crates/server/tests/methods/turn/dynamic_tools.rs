//! Tools that the client carries out.

use serde_json::{Value, json};
use testkit::{Stage, TestClient, kinds};

fn tool(name: &str, defer_loading: bool) -> Value {
    let schema =
        json!({"type": "object", "properties": {"id": {"type": "number"}}, "additionalProperties": false});
    json!({"name": name, "description": "Looks it up.", "inputSchema": schema, "deferLoading": defer_loading})
}

fn script() -> Value {
    json!([{"call": {"name": "lookup", "callId": "call-1", "arguments": {"id": 7}}}, {"text": "done"}])
}

/// Starts a turn that calls the tool; gives the thread and the question.
async fn called(client: &mut TestClient) -> (String, Value) {
    let id = client.start_thread(json!({"dynamicTools": [tool("lookup", false)]})).await;
    client.rest().await;
    client.transcript();
    client.start_turn(&id, "look it up").await;
    let question = client.next_of("item/tool/call").await;
    (id, question)
}

#[tokio::test]
async fn the_model_is_offered_what_is_not_deferred() {
    let stage = Stage::new(json!([{"text": "hello"}])).await;
    let (_server, mut client) = stage.open().await;
    let tools = json!([tool("lookup", false), tool("hidden", true)]);
    let id = client.start_thread(json!({"dynamicTools": tools})).await;
    client.turn(&id, "hi").await;
    let asked = &stage.asked()[0];
    let offered: Vec<&Value> = asked["tools"].as_array().expect("tools").iter().collect();
    let lookup = offered.iter().find(|tool| tool["name"] == "lookup").expect("the tool");
    assert_eq!((&lookup["type"], &lookup["description"]), (&json!("function"), &json!("Looks it up.")));
    assert_eq!(lookup["parameters"], tool("lookup", false)["inputSchema"]);
    assert!(!offered.iter().any(|tool| tool["name"] == "hidden"), "{offered:?}");
}

#[tokio::test]
async fn a_call_is_asked_answered_and_told() {
    let stage = Stage::new(script()).await;
    let (_server, mut client) = stage.open().await;
    let (id, question) = called(&mut client).await;
    let params = &question["params"];
    assert_eq!((&params["threadId"], &params["callId"]), (&json!(id), &json!("call-1")));
    assert_eq!((&params["tool"], &params["arguments"]), (&json!("lookup"), &json!({"id": 7})));
    let content = json!([{"type": "inputText", "text": "seven"}]);
    client.answer(&question, json!({"contentItems": content, "success": true})).await;
    client.next_of("turn/completed").await;
    let is_call = |params: &Value| params["item"]["type"] == "dynamicToolCall";
    let begun = client.wait_for("item/started", is_call).await["item"].clone();
    assert_eq!((&begun["id"], &begun["status"]), (&json!("call-1"), &json!("inProgress")));
    let done = client.wait_for("item/completed", is_call).await["item"].clone();
    assert_eq!((&done["status"], &done["success"]), (&json!("completed"), &json!(true)));
    assert_eq!((&done["contentItems"], &done["arguments"]), (&content, &json!({"id": 7})));
    assert!(done["durationMs"].is_i64(), "{done}");
    let heard = client.transcript();
    let asked_at = heard.iter().position(|word| word == "? item/tool/call").expect("a question");
    let count = |words: &[String], wanted: &str| words.iter().filter(|word| *word == wanted).count();
    // The user's message and the call have begun, and the call has not ended.
    assert_eq!(count(&heard[..asked_at], "item/started"), 2, "{heard:?}");
    assert_eq!(count(&heard[..asked_at], "item/completed"), 1, "{heard:?}");
    // A call of a tool is no question to a person: no flag, and nothing is resolved.
    assert_eq!(count(&heard, "thread/status/changed"), 2, "{heard:?}");
    assert!(!heard.contains(&"serverRequest/resolved".to_owned()), "{heard:?}");
    let read = client.ask("thread/read", json!({"threadId": id, "includeTurns": true})).await;
    let turn = &read["thread"]["turns"][0];
    assert_eq!(kinds(turn), ["userMessage", "dynamicToolCall", "agentMessage"]);
    assert_eq!(turn["items"][1], done);
    stage.assert_played();
}

#[tokio::test]
async fn answers_reach_the_model_and_bad_ones_as_failures() {
    let text = json!({"type": "inputText", "text": "seven"});
    let image = json!({"type": "inputImage", "imageUrl": "data:image/png;base64,AAAA"});
    let parts = json!([
        {"type": "input_text", "text": "seven"},
        {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
    ]);
    let result = |items: Value, success: bool| json!({"result": {"contentItems": items, "success": success}});
    let cases = [
        (result(json!([text]), true), "completed", json!("seven")),
        (result(json!([text, image]), true), "completed", parts),
        (result(json!([text]), false), "failed", json!("seven")),
        (json!({"result": {"nonsense": 1}}), "failed", json!("dynamic tool response was invalid")),
        (json!({"error": {"code": 1, "message": "no"}}), "failed", json!("dynamic tool request failed")),
    ];
    for (answer, status, output) in cases {
        let stage = Stage::new(script()).await;
        let (_server, mut client) = stage.open().await;
        let (_, question) = called(&mut client).await;
        let mut message = answer.clone();
        message["id"] = question["id"].clone();
        client.send_line(&message.to_string()).await;
        assert_eq!(client.next_of("turn/completed").await["turn"]["status"], "completed");
        assert_eq!(client.item("dynamicToolCall").await["status"], status, "{answer}");
        let asked = stage.asked();
        let last = asked[1]["input"].as_array().expect("input").last().expect("an item");
        assert_eq!((&last["type"], &last["call_id"]), (&json!("function_call_output"), &json!("call-1")));
        assert_eq!(last["output"], output, "{answer}");
    }
}

#[tokio::test]
async fn several_calls_are_asked_one_after_the_other() {
    let call = |id: &str| json!({"name": "lookup", "callId": id, "arguments": {"id": 1}});
    let stage = Stage::new(json!([{"calls": [call("a"), call("b")]}, {"text": "done"}])).await;
    let (_server, mut client) = stage.open().await;
    let (_, mut question) = called(&mut client).await;
    for id in ["a", "b"] {
        assert_eq!(question["params"]["callId"], id);
        let content = json!([{"type": "inputText", "text": id}]);
        client.answer(&question, json!({"contentItems": content, "success": true})).await;
        if id == "a" {
            question = client.next_of("item/tool/call").await;
        }
    }
    assert_eq!(client.next_of("turn/completed").await["turn"]["status"], "completed");
    let asked = stage.asked();
    let outputs: Vec<(&Value, &Value)> = asked[1]["input"]
        .as_array()
        .expect("input")
        .iter()
        .filter(|item| item["type"] == "function_call_output")
        .map(|item| (&item["call_id"], &item["output"]))
        .collect();
    assert_eq!(outputs, [(&json!("a"), &json!("a")), (&json!("b"), &json!("b"))]);
}

#[tokio::test]
async fn a_deferred_tool_is_found_and_then_offered_also_after_a_restart() {
    let script = json!([
        {"call": {"name": "search_tool_bm25", "callId": "call-1", "arguments": {"query": "look it up"}}},
        {"call": {"name": "hidden", "callId": "call-2", "arguments": {"id": 7}}},
        {"text": "done"},
        {"text": "again"},
    ]);
    let stage = Stage::new(script).await;
    let (server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"dynamicTools": [tool("hidden", true)]})).await;
    client.start_turn(&id, "look it up").await;
    let question = client.next_of("item/tool/call").await;
    assert_eq!(question["params"]["tool"], "hidden");
    client.answer(&question, json!({"contentItems": [], "success": true})).await;
    client.next_of("turn/completed").await;
    server.stop().await;
    let (_server, mut client) = stage.open().await;
    client.ask("thread/resume", json!({"threadId": id})).await;
    client.turn(&id, "and now?").await;
    let offered = |request: &Value| {
        let names = request["tools"].as_array().expect("tools").iter().map(|tool| tool["name"].clone());
        names.filter(|name| name == "hidden" || name == "search_tool_bm25").collect::<Vec<_>>()
    };
    let asked = stage.asked();
    assert_eq!(offered(&asked[0]), ["search_tool_bm25"]);
    for request in &asked[1..] {
        assert_eq!(offered(request), ["search_tool_bm25", "hidden"]);
    }
}

/// A group as today's clients send it, beside a tool of the same name in no group.
fn groups() -> Value {
    let typed = |name: &str, defer: bool| {
        let mut tool = tool(name, defer);
        tool["type"] = json!("function");
        tool
    };
    let inside = json!([typed("lookup", false), typed("change", false), typed("merge", true)]);
    json!([
        {"type": "namespace", "name": "crm", "description": "The customers.", "tools": inside},
        typed("lookup", false),
        {"name": "order", "description": "Orders it.", "inputSchema": {}, "namespace": "erp"},
    ])
}

#[tokio::test]
async fn tools_of_a_group_are_offered_and_called_with_it() {
    let call = |id: &str, namespace: Option<&str>, name: &str| json!({"call": {"name": name, "namespace": namespace, "callId": id, "arguments": {"id": 1}}});
    let script = json!([
        call("a", Some("crm"), "lookup"),
        call("b", None, "lookup"),
        call("c", Some("erp"), "lookup"),
        call("d", None, "change"),
        {"text": "done"},
    ]);
    let stage = Stage::new(script).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"dynamicTools": groups()})).await;
    client.start_turn(&id, "look it up").await;
    for (call_id, namespace) in [("a", json!("crm")), ("b", Value::Null)] {
        let question = client.next_of("item/tool/call").await;
        let params = &question["params"];
        assert_eq!((&params["callId"], &params["tool"]), (&json!(call_id), &json!("lookup")));
        assert_eq!(params["namespace"], namespace);
        let content = json!([{"type": "inputText", "text": call_id}]);
        client.answer(&question, json!({"contentItems": content, "success": true})).await;
        let of_call = |params: &Value| params["item"]["id"] == call_id;
        let item = client.wait_for("item/completed", of_call).await["item"].clone();
        assert_eq!(item["namespace"], namespace, "{item}");
    }
    client.next_of("turn/completed").await;
    let asked = stage.asked();
    let tools = asked[0]["tools"].as_array().expect("tools");
    let group = |name: &str| tools.iter().find(|tool| tool["name"] == name).expect("a group");
    let names = |group: &Value| -> Vec<Value> {
        group["tools"].as_array().expect("tools").iter().map(|tool| tool["name"].clone()).collect()
    };
    let crm = group("crm");
    assert_eq!((&crm["type"], &crm["description"]), (&json!("namespace"), &json!("The customers.")));
    assert_eq!(names(crm), ["lookup", "change"]);
    assert_eq!(crm["tools"][0]["parameters"], tool("lookup", false)["inputSchema"]);
    assert_eq!(group("erp")["description"], "Tools in the erp namespace.");
    assert_eq!(tools.iter().filter(|tool| tool["name"] == "lookup").count(), 1);
    // Neither a tool of another group nor one without its group can be called.
    let output =
        |at: usize| asked[at]["input"].as_array().expect("input").last().expect("one")["output"].clone();
    assert_eq!(
        (output(3), output(4)),
        (json!("unsupported call: lookup"), json!("unsupported call: change"))
    );
    stage.assert_played();
}

#[tokio::test]
async fn a_tool_of_a_group_that_is_found_is_called_with_its_group() {
    let script = json!([
        {"call": {"name": "search_tool_bm25", "callId": "s", "arguments": {"query": "merge customers"}}},
        {"call": {"name": "merge", "namespace": "crm", "callId": "m", "arguments": {"id": 1}}},
        {"text": "done"},
    ]);
    let stage = Stage::new(script).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"dynamicTools": groups()})).await;
    client.start_turn(&id, "merge").await;
    let question = client.next_of("item/tool/call").await;
    assert_eq!(
        (&question["params"]["namespace"], &question["params"]["tool"]),
        (&json!("crm"), &json!("merge"))
    );
    client.answer(&question, json!({"contentItems": [], "success": true})).await;
    client.next_of("turn/completed").await;
    let asked = stage.asked();
    let crm = |at: usize| {
        let tools = asked[at]["tools"].as_array().expect("tools");
        tools.iter().find(|tool| tool["name"] == "crm").expect("a group")["tools"].as_array().map(Vec::len)
    };
    assert_eq!((crm(0), crm(1)), (Some(2), Some(3)));
}

#[tokio::test]
async fn groups_that_cannot_be_are_refused_by_name() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open().await;
    let group = |name: &str, tools: Value| json!({"type": "namespace", "name": name, "description": "", "tools": tools});
    let one = || json!([tool("a", false)]);
    for (tools, expected) in [
        (json!([group("crm", json!([]))]), "dynamic tool namespace must contain at least one tool: crm"),
        (json!([group("crm", one()), group("crm", one())]), "duplicate dynamic tool namespace: crm"),
        (json!([group("functions", one())]), "collides with a reserved Responses API namespace: functions"),
        (json!([group("crm", json!([{"name": "a"}]))]), "[0].tools[0]: missing field `description`"),
        (json!([{"type": "hosted", "name": "a"}]), "[0].type: must be `function`, or `namespace`"),
    ] {
        let error = client.refused("thread/start", json!({"dynamicTools": tools})).await;
        assert!(error.to_string().contains(expected), "{error}");
    }
}
