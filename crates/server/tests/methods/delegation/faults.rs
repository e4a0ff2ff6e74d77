//! Hosts that lose, repeat, mix up, break off and go away.

use serde_json::{Value, json};
use testkit::{Stage, text};

use super::{Host, added, call, completed, delta, done, full, full_with, message, offer, prompt, whole};

/// A stage and a host at a thread with a turn that waits for events.
macro_rules! begun {
    ($stage:ident, $server:ident, $host:ident, $request:ident, $delegation:expr) => {
        let $stage = Stage::new(json!([])).await;
        let ($server, mut $host) = Host::new(&$stage, $delegation).await;
        let $request = $host.begin("hello").await;
    };
}

fn code(refused: &(i64, Value)) -> (i64, &str) {
    (refused.0, refused.1["code"].as_str().unwrap_or_default())
}

#[tokio::test]
async fn gaps_repeats_and_late_batches_have_their_words() {
    begun!(_stage, server, host, request, full());
    host.push(&request, 0, json!([added("m1"), delta("a")])).await;
    let gap = host.refused(&request, 3, json!([delta("c")])).await;
    assert_eq!((code(&gap), &gap.1["expected"]), ((-32602, "sequenceGap"), &json!(2)));
    let again = host.push(&request, 0, json!([added("m1"), delta("a")])).await;
    assert_eq!((&again["nextSeq"], &again["duplicate"]), (&json!(2), &json!(true)));
    // Of a batch that begins with what was taken before, the rest is taken.
    let overlap = host.push(&request, 1, json!([delta("a"), delta("b")])).await;
    assert_eq!((&overlap["nextSeq"], overlap.get("duplicate")), (&json!(3), None));
    host.push(&request, 3, json!([done(message("m1", "ab")), completed(), completed()])).await;
    let turn = host.ended().await;
    assert_eq!(turn["status"], "completed");
    let after = host.push(&request, 3, json!([done(message("m1", "ab")), completed()])).await;
    assert_eq!((&after["nextSeq"], &after["duplicate"]), (&json!(6), &json!(true)));
    let late = host.refused(&request, 6, json!([completed()])).await;
    assert_eq!((code(&late), &late.1["nextSeq"]), ((-32602, "streamClosed"), &json!(6)));
    // After the terminal an abort is ignored, as often as it comes.
    host.abort(&request, 6, "disconnected", true).await;
    host.abort(&request, 0, "timeout", true).await;
    let told = host.client.rest_whole().await;
    let deltas: String = told
        .iter()
        .filter(|message| message["method"] == "item/agentMessage/delta")
        .map(|message| text(&message["params"]["delta"]))
        .collect();
    assert_eq!(deltas, "ab", "everything counted once");
    let next = host.turn("again", "hi").await;
    let stale = host.refused(&request, 6, json!([completed()])).await;
    assert_eq!(code(&stale), (-32602, "staleRequest"));
    assert_ne!(next["modelRequestId"], request["modelRequestId"]);
    server.stop().await;
}

#[tokio::test]
async fn what_is_not_known_changes_nothing() {
    begun!(_stage, server, host, request, full());
    let mut other = request.clone();
    other["modelRequestId"] = json!("nothing:0:a1");
    assert_eq!(code(&host.refused(&other, 0, json!([completed()])).await), (-32602, "unknownRequest"));
    let params = json!({"threadId": host.thread, "modelRequestId": "nothing", "seq": 0, "reason": "timeout"});
    let refused = host.client.request("model/streamAborted", params).await.expect_err("unknown");
    assert_eq!((refused.code, &refused.data["code"]), (-32602, &json!("unknownRequest")));
    let error = json!({"code": "x", "message": "no"});
    let params = json!({"threadId": host.thread, "modelRequestId": "nothing", "error": error});
    let refused = host.client.request("model/requestRejected", params).await.expect_err("unknown");
    assert_eq!(refused.data["code"], "unknownRequest");
    host.finish(&request, "hi").await;
    server.stop().await;
}

#[tokio::test]
async fn a_repeat_with_other_bytes_ends_the_request() {
    begun!(_stage, server, host, request, full());
    host.push(&request, 0, json!([added("m1"), delta("a")])).await;
    let mismatch = host.refused(&request, 1, json!([delta("b")])).await;
    assert_eq!((code(&mismatch), &mismatch.1["seq"]), ((-32602, "eventMismatch"), &json!(1)));
    let turn = host.ended().await;
    assert_eq!(turn["status"], "failed");
    let cancel = host.client.next_of("model/cancel").await;
    assert_eq!(cancel["params"]["reason"], "protocolError");
    server.stop().await;
}

#[tokio::test]
async fn a_bad_event_fails_the_turn_and_the_thread_lives_on() {
    for bad in [
        json!(5),
        json!({}),
        json!({"type": "response.completed"}),
        json!({"type": "response.output_text.delta"}),
    ] {
        begun!(_stage, server, host, request, full());
        host.push(&request, 0, json!([added("m1")])).await;
        let refused = host.refused(&request, 1, json!([delta("a"), bad])).await;
        assert_eq!((code(&refused), &refused.1["seq"]), ((-32602, "badEvent"), &json!(2)));
        let turn = host.ended().await;
        assert_eq!(turn["status"], "failed", "{turn}");
        assert!(text(&turn["error"]["message"]).contains("event 2"), "{turn}");
        let cancel = host.client.next_of("model/cancel").await;
        assert_eq!(cancel["params"]["reason"], "protocolError");
        host.client.answer(&cancel, json!({"disposition": "alreadyTerminal"})).await;
        host.turn("again", "hi").await;
        server.stop().await;
    }
}

#[tokio::test]
async fn events_in_an_order_no_provider_has_come_to_what_they_come_to_directly() {
    let odd = json!([
        delta("before its item"),
        done(message("m1", "done before added")),
        added("m1"),
        delta("x"),
        done(message("m2", "another id")),
        delta("after done"),
        completed(),
    ]);
    let script = json!([{"events": odd.clone()}]);
    let stage = Stage::new(script).await;
    let (server, mut client) = stage.open().await;
    let thread = client.start_thread(json!({"cwd": stage.cwd()})).await;
    client.turn(&thread, "hello").await;
    let told = |messages: Vec<Value>| -> Vec<String> {
        let of_item = |message: &&Value| text(&message["method"]).starts_with("item/");
        let shown = |message: &Value| {
            let params = &message["params"];
            format!("{} {} {}", text(&message["method"]), params["item"]["text"], params["delta"])
        };
        messages.iter().filter(of_item).map(shown).collect()
    };
    let direct = told(client.rest_whole().await);
    server.stop().await;
    stage.assert_played();

    let (server, mut host) = Host::new(&stage, full()).await;
    let request = host.begin("hello").await;
    host.push(&request, 0, odd).await;
    assert_eq!(host.ended().await["status"], "completed");
    assert_eq!(told(host.client.rest_whole().await), direct);
    server.stop().await;
}

#[tokio::test]
async fn more_than_the_credit_is_refused_whole_and_may_come_again() {
    begun!(_stage, server, host, request, full_with(json!({"windowEvents": 4})));
    let many: Vec<Value> = (0..5).map(|n| delta(&n.to_string())).collect();
    let refused = host.refused(&request, 0, json!(many)).await;
    assert_eq!((code(&refused), &refused.1["windowEvents"]), ((-32602, "batchTooLarge"), &json!(4)));
    let ack = host.push(&request, 0, json!([added("m1")])).await;
    assert_eq!(ack["nextSeq"], 1, "nothing of the large batch was taken");
    host.push(&request, 1, json!([done(message("m1", "hi")), completed()])).await;
    assert_eq!(host.ended().await["status"], "completed");
    server.stop().await;
}

#[tokio::test]
async fn a_lost_stream_is_tried_again_only_where_that_is_safe() {
    begun!(_stage, server, host, request, full());
    host.push(&request, 0, json!([added("m1"), delta("half")])).await;
    host.abort(&request, 2, "disconnected", true).await;
    let error = host.client.next_of("error").await;
    assert_eq!(error["willRetry"], true);
    let again = host.accept().await;
    assert_eq!(again["retryOf"], request["modelRequestId"]);
    host.abort(&again, 0, "disconnected", false).await;
    let turn = host.ended().await;
    assert_eq!(turn["status"], "failed");
    assert!(turn["error"]["codexErrorInfo"].get("responseStreamDisconnected").is_some(), "{turn}");
    host.turn("again", "hi").await;
    server.stop().await;
}

#[tokio::test]
async fn what_a_lost_stream_cost_is_counted() {
    begun!(_stage, server, host, request, full());
    let usage = json!({
        "totalTokens": 30, "inputTokens": 20, "cachedInputTokens": 0, "outputTokens": 10, "reasoningOutputTokens": 0,
    });
    let params = json!({
        "threadId": host.thread, "modelRequestId": request["modelRequestId"], "seq": 0, "reason": "disconnected",
        "replaySafe": true, "usage": usage,
    });
    host.client.ask("model/streamAborted", params.clone()).await;
    let told = host.client.next_of("thread/tokenUsage/updated").await["tokenUsage"].clone();
    assert_eq!((&told["total"], &told["last"]["totalTokens"]), (&usage, &json!(0)));
    let again = host.accept().await;
    host.client.ask("model/streamAborted", params).await;
    host.push(&again, 0, whole("hi")).await;
    let told = host.client.next_of("thread/tokenUsage/updated").await["tokenUsage"].clone();
    assert_eq!((&told["total"]["totalTokens"], &told["last"]["totalTokens"]), (&json!(41), &json!(11)));
    assert_eq!(host.ended().await["status"], "completed");
    server.stop().await;
}

#[tokio::test]
async fn calls_that_ran_before_a_stream_broke_run_once_and_are_in_the_next_request() {
    begun!(_stage, server, host, request, full());
    let plan = json!({"plan": [{"step": "think", "status": "pending"}]});
    host.push(&request, 0, json!([done(call("c1", "update_plan", &plan))])).await;
    host.client.next_of("turn/plan/updated").await;
    host.abort(&request, 1, "disconnected", true).await;
    let next = host.accept().await;
    assert_eq!(next["segmentId"], json!(format!("{}:1", text(&request["turnId"]))));
    let lines = prompt(&next);
    assert_eq!(lines.iter().filter(|line| line.starts_with("function_call_output")).count(), 1, "{lines:?}");
    host.finish(&next, "planned").await;
    assert!(!host.client.rest().await.iter().any(|method| method == "turn/plan/updated"), "run once");
    server.stop().await;
}

#[tokio::test]
async fn rejections_end_the_turn_with_their_own_error() {
    let stage = Stage::new(json!([])).await;
    let (server, mut host) = Host::new(&stage, full()).await;
    for (error, info) in [
        (
            json!({"code": "unauthorized", "message": "no key", "codexErrorInfo": "unauthorized"}),
            json!("unauthorized"),
        ),
        (json!({"code": "badRequest", "message": "no", "replaySafe": true}), json!("badRequest")),
        (
            json!({"code": "unsupportedFeature", "message": "no", "feature": "x", "replaySafe": true}),
            json!("badRequest"),
        ),
        (json!({"code": "sessionBudgetExceeded", "message": "spent"}), json!("sessionBudgetExceeded")),
        (json!({"code": "modelNotFound", "message": "no such model"}), json!("modelNotFound")),
    ] {
        host.client.start_turn(&host.thread.clone(), "hello").await;
        let asked = host.client.next_of("model/request").await;
        host.client.answer(&asked, json!({"disposition": "rejected", "error": error})).await;
        // The first answer counts.
        host.client.answer(&asked, json!({"disposition": "accepted", "provider": "p", "model": "m"})).await;
        let turn = host.ended().await;
        assert_eq!((&turn["status"], &turn["error"]["codexErrorInfo"]), (&json!("failed"), &info), "{turn}");
        assert!(text(&turn["error"]["message"]).contains(error["message"].as_str().expect("text")));
        assert_eq!(
            code(&host.refused(&asked["params"], 0, json!([completed()])).await),
            (-32602, "streamClosed")
        );
    }
    // Found out late, it means the same.
    let request = host.begin("hello").await;
    let error = json!({"code": "unauthorized", "message": "the key was withdrawn"});
    let params =
        json!({"threadId": host.thread, "modelRequestId": request["modelRequestId"], "error": error});
    host.client.ask("model/requestRejected", params.clone()).await;
    let turn = host.ended().await;
    assert_eq!(turn["error"]["codexErrorInfo"], "unauthorized");
    host.client.ask("model/requestRejected", params).await;
    let rest = host.client.rest().await;
    assert!(!rest.iter().any(|method| method == "model/request" || method == "model/cancel"), "{rest:?}");
    server.stop().await;
}

#[tokio::test]
async fn a_rate_limit_is_waited_out() {
    begun!(_stage, server, host, request, full());
    let error =
        json!({"code": "rateLimitExceeded", "message": "slow down", "retryAfterMs": 5, "httpStatus": 429});
    let params =
        json!({"threadId": host.thread, "modelRequestId": request["modelRequestId"], "error": error});
    host.client.ask("model/requestRejected", params).await;
    let again = host.accept().await;
    assert_eq!((&again["attempt"], &again["retryOf"]), (&json!(2), &request["modelRequestId"]));
    host.finish(&again, "hi").await;
    server.stop().await;
}

#[tokio::test]
async fn a_host_that_refuses_or_says_nonsense_fails_the_turn() {
    let stage = Stage::new(json!([])).await;
    let (server, mut host) = Host::new(&stage, full()).await;
    for answer in [
        json!({"error": {"code": -32000, "message": "busy", "data": {"code": "singleFlightViolation"}}}),
        json!({"result": {"disposition": "perhaps"}}),
    ] {
        host.client.start_turn(&host.thread.clone(), "hello").await;
        let asked = host.client.next_of("model/request").await;
        let mut answer = answer;
        answer["id"] = asked["id"].clone();
        host.client.send_line(&answer.to_string()).await;
        let turn = host.ended().await;
        assert_eq!(turn["status"], "failed");
        assert!(text(&turn["error"]["message"]).starts_with("the host refused"), "{turn}");
    }
    server.stop().await;
}

#[tokio::test]
async fn silence_is_not_waited_for_for_ever() {
    let stage = Stage::new(json!([])).await;
    let limits = json!({"firstEventTimeoutMs": 40, "idleTimeoutMs": 40});
    let (server, mut host) = Host::new(&stage, full_with(limits)).await;
    let request = host.begin("hello").await;
    let cancel = host.client.next_of("model/cancel").await;
    assert_eq!(cancel["params"]["reason"], "superseded");
    host.client.answer(&cancel, json!({"disposition": "unknown"})).await;
    let again = host.accept().await;
    assert_eq!(again["retryOf"], request["modelRequestId"]);
    host.finish(&again, "hi").await;
    // A host that says nothing at all gets no second request.
    host.client.start_turn(&host.thread.clone(), "hello?").await;
    let asked = host.client.next_of("model/request").await;
    let turn = host.ended().await;
    assert_eq!(turn["status"], "failed");
    assert!(text(&turn["error"]["message"]).starts_with("hostTimeout"), "{turn}");
    let cancel = host.client.next_of("model/cancel").await;
    assert_eq!(cancel["params"]["modelRequestId"], asked["params"]["modelRequestId"]);
    server.stop().await;
}

#[tokio::test]
async fn only_the_host_speaks_for_its_thread_and_a_new_one_takes_over_on_the_same_terms() {
    let stage = Stage::new(json!([])).await;
    let server = stage.listen();
    let client = server.connect_with(offer()).await;
    let mut host = Host::start(client, &stage, full()).await;
    let thread = host.thread.clone();
    host.turn("hello", "hi").await;
    let mut watcher = server.connect().await;
    watcher.ask("thread/resume", json!({"threadId": thread})).await;
    let request = host.begin("more").await;
    let batch = host.batch(&request, 0, json!([completed()]));
    let refused = watcher.request("model/streamEvent", batch).await.expect_err("a stranger");
    assert_eq!((refused.code, &refused.data["code"]), (-32602, &json!("notTheHost")));

    let mut client = server.connect_with(offer()).await;
    let mut changed = full();
    changed["provider"]["id"] = json!("another");
    let params = json!({"threadId": thread, "delegation": changed});
    let refused = client.request("thread/resume", params).await.expect_err("another provider");
    assert_eq!(refused.data["code"], "delegationUnsupported");
    let resumed = client.ask("thread/resume", json!({"threadId": thread, "delegation": full()})).await;
    assert_eq!(resumed["delegation"]["mode"], "full");
    // The one before is still there, and is no longer asked.
    let mut newer = Host { client, thread };
    let again = newer.accept().await;
    assert_eq!(again["retryOf"], request["modelRequestId"]);
    newer.finish(&again, "welcome").await;
    server.stop().await;
}
