//! Streams that go as they should: the request, its events, what comes of them, and in which order.

use serde_json::{Value, json};
use testkit::{Stage, text};

use super::{Host, added, call, completed, delta, done, full, full_with, message, prompt, whole};

#[tokio::test]
async fn a_turn_is_carried_by_the_host_and_looks_like_any_other() {
    let stage = Stage::new(json!([])).await;
    let (server, mut host) = Host::new(&stage, full()).await;
    host.client.transcript();
    let request = host.begin("hello").await;
    let turn_id = text(&request["turnId"]);
    assert_eq!(request["threadId"], json!(host.thread));
    assert_eq!(request["segmentId"], json!(format!("{turn_id}:0")));
    assert_eq!(request["modelRequestId"], json!(format!("{turn_id}:0:a1")));
    assert_eq!((&request["attempt"], &request["purpose"]), (&json!(1), &json!("turn")));
    assert_eq!(request.get("retryOf"), None);
    assert_eq!(request["agentPath"], json!(["root"]));
    assert_eq!(request["window"], json!({"events": 256, "bytes": 1_048_576}));
    assert_eq!(request["hint"], json!({"replaySafe": true, "cachePrefixItems": 0}));
    let body = &request["body"];
    assert_eq!(
        (&body["model"], &body["stream"], &body["store"]),
        (&json!("mock-model"), &json!(true), &json!(false))
    );
    assert_eq!(text(&request["requestDigest"]).len(), "sha256:".len() + 64);

    let ack = host.push(&request, 0, json!([{"type": "response.created"}, added("m1"), delta("hi ")])).await;
    assert_eq!(ack["nextSeq"], 3);
    assert!(ack["credit"]["events"].as_u64().expect("a number") > 0);
    assert_eq!(ack.get("duplicate"), None);
    host.push(&request, 3, json!([delta("there"), done(message("m1", "hi there")), completed()])).await;
    let turn = host.ended().await;
    assert_eq!(turn["status"], "completed");
    assert_eq!(host.client.item("agentMessage").await["text"], "hi there");
    let heard = host.client.transcript();
    let first_ack = heard.iter().position(|word| word == "= model/streamEvent").expect("an answer");
    let started = heard.iter().rposition(|word| word == "item/started").expect("the item");
    assert!(first_ack < started, "what an event leads to comes after its acknowledgement: {heard:?}");
    let usage = host.client.next_of("thread/tokenUsage/updated").await;
    assert_eq!(usage["tokenUsage"]["last"]["totalTokens"], 11);

    let second = host.turn("and?", "that is all").await;
    assert_eq!(second["segmentId"], json!(format!("{}:0", text(&second["turnId"]))));
    assert!(second["hint"]["cachePrefixItems"].as_u64().expect("a number") > 0);
    server.stop().await;
    let stored = stage.read(&host.thread).await;
    assert_eq!(testkit::told(&stored), ["completed: hello", "completed: and?"]);
}

#[tokio::test]
async fn tools_run_here_and_their_outputs_are_in_the_next_request() {
    let stage = Stage::new(json!([])).await;
    let (server, mut host) = Host::new(&stage, full()).await;
    let request = host.begin("plan it").await;
    let plan = json!({"plan": [{"step": "think", "status": "pending"}]});
    host.push(&request, 0, json!([done(call("c1", "update_plan", &plan)), completed()])).await;
    let next = host.accept().await;
    let turn_id = text(&request["turnId"]);
    assert_eq!(next["modelRequestId"], json!(format!("{turn_id}:1:a1")));
    assert_eq!(next.get("retryOf"), None);
    let lines = prompt(&next);
    assert!(lines.iter().any(|line| line.starts_with("function_call_output: ")), "{lines:?}");
    host.finish(&next, "planned").await;
    server.stop().await;
}

#[tokio::test]
async fn a_digest_is_of_the_prompt_and_nothing_else() {
    let stage = Stage::new(json!([])).await;
    let (server, mut host) = Host::new(&stage, full()).await;
    let request = host.begin("hello").await;
    host.abort(&request, 0, "disconnected", true).await;
    let again = host.accept().await;
    assert_eq!((&again["attempt"], &again["retryOf"]), (&json!(2), &request["modelRequestId"]));
    assert_eq!(again["segmentId"], request["segmentId"]);
    assert_eq!((&again["requestDigest"], &again["body"]), (&request["requestDigest"], &request["body"]));
    host.push(&again, 0, whole("hi")).await;
    host.ended().await;
    let other = host.turn("something else", "ok").await;
    assert_ne!(other["requestDigest"], request["requestDigest"]);
    server.stop().await;
}

#[tokio::test]
async fn nothing_secret_is_in_a_request() {
    let stage = Stage::configured(json!([]), "[shell_environment_policy]\ninherit = \"all\"").await;
    let (server, mut host) = Host::new(&stage, full()).await;
    let request = host.turn("hello", "hi").await.to_string();
    for secret in ["Bearer", "api_key", "apiKey", "Authorization", "base_url", "http://127.0.0.1"] {
        assert!(!request.contains(secret), "{secret} is in {request}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_compaction_is_a_request_of_its_own_kind() {
    let stage = Stage::new(json!([])).await;
    let (server, mut host) = Host::new(&stage, full()).await;
    host.turn("hello", "hi").await;
    host.client.ask("thread/compact/start", json!({"threadId": host.thread})).await;
    let request = host.accept().await;
    assert_eq!(request["purpose"], "compaction");
    assert_eq!(request["segmentId"], json!(format!("{}:c0", text(&request["turnId"]))));
    host.finish(&request, "in short: hi").await;
    server.stop().await;
}

#[tokio::test]
async fn events_may_come_without_acknowledgement() {
    let stage = Stage::new(json!([])).await;
    let (server, mut host) = Host::new(&stage, full_with(json!({"windowEvents": 2}))).await;
    let request = host.begin("hello").await;
    let events = whole("hi").as_array().expect("events").clone();
    for (seq, event) in events.iter().enumerate() {
        let params = host.batch(&request, seq as u64, json!([event]));
        host.client.send_line(&json!({"method": "model/streamEvent", "params": params}).to_string()).await;
    }
    assert_eq!(host.ended().await["status"], "completed");
    assert_eq!(host.client.item("agentMessage").await["text"], "hi");
    server.stop().await;
}

#[tokio::test]
async fn an_interrupt_cancels_and_late_events_are_dropped() {
    let stage = Stage::new(json!([])).await;
    let (server, mut host) = Host::new(&stage, full()).await;
    let request = host.begin("hello").await;
    host.push(&request, 0, json!([added("m1"), delta("a")])).await;
    host.client.ask("turn/interrupt", json!({"threadId": host.thread, "turnId": request["turnId"]})).await;
    assert_eq!(host.ended().await["status"], "interrupted");
    let cancel = host.client.next_of("model/cancel").await;
    assert_eq!(cancel["params"]["modelRequestId"], request["modelRequestId"]);
    assert_eq!(cancel["params"]["reason"], "turnInterrupted");
    host.client.answer(&cancel, json!({"disposition": "canceled"})).await;
    // The end the provider sent crossed with the cancel: it changes nothing any more.
    let (code, data) = host.refused(&request, 2, json!([completed()])).await;
    assert_eq!((code, &data["code"]), (-32602, &json!("streamClosed")));
    host.abort(&request, 2, "canceled", false).await;
    host.abort(&request, 2, "canceled", false).await;
    host.turn("again", "hi").await;
    server.stop().await;
}

#[tokio::test]
async fn the_next_request_waits_until_the_one_before_has_ended() {
    let stage = Stage::new(json!([])).await;
    let (server, mut host) = Host::new(&stage, full()).await;
    let request = host.begin("hello").await;
    host.client.ask("turn/interrupt", json!({"threadId": host.thread, "turnId": request["turnId"]})).await;
    host.ended().await;
    let cancel = host.client.next_of("model/cancel").await;
    host.client.answer(&cancel, json!({"disposition": "canceled"})).await;
    host.client.start_turn(&host.thread.clone(), "again").await;
    host.client.next_of("turn/started").await;
    assert!(!host.client.rest().await.iter().any(|method| method == "model/request"));
    host.abort(&request, 0, "canceled", false).await;
    let next = host.accept().await;
    host.finish(&next, "hi").await;
    server.stop().await;
}

#[tokio::test]
async fn two_threads_are_carried_side_by_side() {
    let stage = Stage::new(json!([])).await;
    let (server, mut host) = Host::new(&stage, full()).await;
    let first = host.begin("one").await;
    let params = json!({"cwd": stage.cwd(), "model": "mock-model", "delegation": full()});
    let (mine, other) = (host.thread.clone(), host.client.start_thread(params).await);
    host.thread.clone_from(&other);
    let second = host.begin("two").await;
    host.finish(&second, "b").await;
    host.thread = mine;
    host.finish(&first, "a").await;
    server.stop().await;
}

#[tokio::test]
async fn a_host_that_keeps_to_its_credit_is_never_refused() {
    let stage = Stage::new(json!([])).await;
    let (server, mut host) =
        Host::new(&stage, full_with(json!({"windowEvents": 8, "windowBytes": 2_000}))).await;
    let request = host.begin("hello").await;
    let mut events = vec![added("m1")];
    events.extend((0..2_000).map(|n| delta(&format!("{n} "))));
    events.extend([done(message("m1", "numbers")), completed()]);
    // Several batches under way, each as large as the credit allows; answers come in order.
    let (mut sent, mut limit, mut waiting) = (0, 8_usize, std::collections::VecDeque::new());
    while sent < events.len() || !waiting.is_empty() {
        let end = events.len().min(limit).min(sent + 5);
        if sent < end {
            let batch = host.batch(&request, sent as u64, json!(events[sent..end]));
            waiting.push_back(host.client.send("model/streamEvent", batch).await);
            sent = end;
            continue;
        }
        let id = waiting.pop_front().expect("an answer that is to come gives credit");
        let ack = host.client.outcome(id).await.expect("within the credit");
        let credit = |name: &str| ack["credit"][name].as_u64().expect("a number");
        let (next_seq, by_bytes) = (ack["nextSeq"].as_u64().expect("a number"), credit("bytes") / 90);
        limit = limit.max(usize::try_from(next_seq + credit("events").min(by_bytes)).expect("small"));
    }
    assert_eq!(host.ended().await["status"], "completed");
    server.stop().await;
}

#[tokio::test]
async fn many_deltas_keep_their_order() {
    let stage = Stage::new(json!([])).await;
    let (server, mut host) = Host::new(&stage, full()).await;
    let request = host.begin("count").await;
    host.push(&request, 0, json!([added("m1")])).await;
    // Whoever waits for each answer has half a window left at least.
    for round in 0..80_u64 {
        let events: Vec<Value> = (0..125).map(|n| delta(&format!("{} ", round * 125 + n))).collect();
        host.push(&request, 1 + round * 125, json!(events)).await;
    }
    host.push(&request, 10_001, json!([done(message("m1", "done")), completed()])).await;
    let mut told = String::new();
    while !told.ends_with("9999 ") {
        told.push_str(&text(&host.client.next_of("item/agentMessage/delta").await["delta"]));
    }
    assert!(told.split_whitespace().map(|n| n.parse::<u64>().expect("a number")).eq(0..10_000));
    assert_eq!(host.ended().await["status"], "completed");
    server.stop().await;
}

#[tokio::test]
async fn whoever_did_not_agree_sees_nothing_of_it() {
    let stage = Stage::new(json!([{"text": "hi"}])).await;
    let (server, mut client) = stage.open().await;
    let thread = client.start_thread(json!({})).await;
    client.turn(&thread, "hello").await;
    let params = json!({"threadId": thread, "modelRequestId": "u:0:a1", "seq": 0, "events": []});
    let refused = client.request("model/streamEvent", params).await.expect_err("nothing is delegated");
    assert_eq!((refused.code, &refused.data["code"]), (-32602, &json!("unknownRequest")));
    server.stop().await;
    let server = stage.listen();
    let mut plain = server.connect_with(json!({})).await;
    let message = plain.refused("model/streamEvent", json!({})).await;
    assert!(message.contains("experimentalApi"), "{message}");
    server.stop().await;
}
