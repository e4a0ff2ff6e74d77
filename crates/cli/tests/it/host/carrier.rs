//! Clients that carry the model requests of a task: asked one at a time, waited for, replaced, and never trusted with more
//! than their own task.

use super::*;
use crate::relay::configure;
use crate::replicas::{Replica, postgres};

const REQUEST: &str = "model/request";

fn delegation(id: &str) -> Value {
    json!({"mode": "full", "version": 1, "provider": {"id": id, "capabilities": {"wire": "responses"}}})
}

/// A task whose model requests this client carries.
fn start(client: &mut HostClient, place: &Place) -> String {
    let params = json!({
        "cwd": place.folder(), "approvalPolicy": "never", "sandbox": "danger-full-access",
        "delegation": delegation("mine"),
    });
    let started = client.ask("thread/start", &params);
    let effective = &started["delegation"];
    assert_eq!(
        (&effective["mode"], &effective["provider"]["id"]),
        (&json!("full"), &json!("mine")),
        "{started}"
    );
    started["thread"]["id"].as_str().expect("an id").to_owned()
}

fn carry(client: &mut HostClient, thread: &str) -> Result<Value, Value> {
    let params = json!({"threadId": thread, "excludeTurns": true, "delegation": delegation("mine")});
    client.try_ask("thread/resume", &params)
}

/// The next request, which the client says it carries.
fn accepted(client: &mut HostClient) -> Value {
    let mut request = client.wait_for(REQUEST);
    let answer = json!({"disposition": "accepted", "provider": "mine", "model": "m", "replayed": false});
    client.write(&json!({"id": request["id"], "result": answer}));
    request["params"].take()
}

fn send(client: &mut HostClient, request: &Value, seq: usize, events: &[Value]) -> Result<Value, Value> {
    let params = json!({
        "threadId": request["threadId"], "modelRequestId": request["modelRequestId"], "seq": seq, "events": events,
    });
    client.try_ask("model/streamEvent", &params)
}

fn delta(text: &str) -> Value {
    json!({"type": "response.output_text.delta", "item_id": "m1", "delta": text})
}

/// A whole answer, as a provider of the Responses API streams it.
fn answer(text: &str) -> Vec<Value> {
    let message =
        |content: Value| json!({"type": "message", "role": "assistant", "id": "m1", "content": content});
    vec![
        json!({"type": "response.created", "response": {"id": "r1"}}),
        json!({"type": "response.output_item.added", "item": message(json!([]))}),
        delta(text),
        json!({"type": "response.output_item.done", "item": message(json!([{"type": "output_text", "text": text}]))}),
        json!({"type": "response.completed", "response": {"id": "r1", "usage": {
            "input_tokens": 100, "output_tokens": 7, "total_tokens": 107, "input_tokens_details": {"cached_tokens": 40},
        }}}),
    ]
}

/// Answers the request in two batches.
fn say(client: &mut HostClient, request: &Value, text: &str) {
    let events = answer(text);
    let taken = send(client, request, 0, &events[..3]).expect("taken");
    assert_eq!(taken["nextSeq"], 3, "{taken}");
    let taken = send(client, request, 3, &events[3..]).expect("taken");
    assert_eq!(taken["nextSeq"], 5, "{taken}");
}

fn ended(client: &mut HostClient) -> Value {
    client.wait_for("turn/completed")["params"]["turn"].take()
}

/// The text of the last message of the model, of a turn that is over.
fn said(client: &mut HostClient, thread: &str) -> String {
    let read = client.ask("thread/read", &json!({"threadId": thread, "includeTurns": true}));
    let turns = read["thread"]["turns"].as_array().expect("turns");
    let items = turns.last().and_then(|turn| turn["items"].as_array()).expect("items");
    let texts: Vec<&str> = items
        .iter()
        .filter(|item| item["type"] == "agentMessage")
        .filter_map(|item| item["text"].as_str())
        .collect();
    assert_eq!(texts.len(), 1, "the model is heard once: {read}");
    texts[0].to_owned()
}

fn code_of(refused: Result<Value, Value>) -> String {
    let error = refused.expect_err("refused");
    error["data"]["code"].as_str().unwrap_or_else(|| panic!("no code: {error}")).to_owned()
}

#[test]
fn a_client_carries_a_turn_and_its_tokens_are_counted() {
    let place = Place::new();
    let _host = RunningHost::start(&place, &[]);
    let mut watcher = HostClient::connect(&place);
    let mut client = HostClient::connect(&place);
    let thread = start(&mut client, &place);
    let joined = watcher.ask("thread/resume", &json!({"threadId": thread}));
    assert_eq!((&joined["modelProvider"], &joined["delegation"]), (&json!("mine"), &Value::Null), "{joined}");
    client.turn(&thread, "say hello", "i1");
    let request = accepted(&mut client);
    assert_eq!((&request["threadId"], &request["attempt"]), (&json!(thread), &json!(1)), "{request}");
    assert!(request["body"]["input"].to_string().contains("say hello"), "{request}");
    assert_eq!(request["window"], json!({"events": 256, "bytes": 1_048_576}));
    say(&mut client, &request, "hello from afar");
    assert_eq!(ended(&mut client)["status"], "completed");
    assert_eq!(ended(&mut watcher)["status"], "completed");
    assert_eq!(said(&mut client, &thread), "hello from afar");
    assert!(watcher.log.iter().all(|message| message["method"] != REQUEST), "one client is asked");

    // Sent again after the end, the last batch is known; anything more is refused.
    let late = send(&mut client, &request, 5, &[delta("more")]);
    assert!(["streamClosed", "staleRequest"].contains(&code_of(late).as_str()));
    let foreign = send(&mut watcher, &request, 0, &[delta("x")]);
    assert_eq!(code_of(foreign), "unknownRequest");
    let used = client.ask("usage/list", &json!({"threadId": thread, "groupBy": "task"}));
    let row = &used["data"][0];
    assert_eq!(
        (&row["requests"], &row["inputTokens"], &row["outputTokens"]),
        (&json!(1), &json!(100), &json!(7))
    );

    // With tools: the call runs at the runtime, and its output is in the next request.
    client.turn(&thread, "look around", "i2");
    let request = accepted(&mut client);
    let arguments =
        json!({"cmd": "echo from-the-place", "command": ["sh", "-c", "echo from-the-place"]}).to_string();
    let tools = request["body"]["tools"].as_array().expect("tools").iter();
    let names: Vec<&str> = tools.filter_map(|tool| tool["name"].as_str()).collect();
    let name = ["exec_command", "shell", "shell_command"].into_iter().find(|name| names.contains(name));
    let call = json!({
        "type": "function_call", "call_id": "c1", "name": name.unwrap_or_else(|| panic!("{names:?}")),
        "arguments": arguments,
    });
    let events = [
        json!({"type": "response.created", "response": {"id": "r2"}}),
        json!({"type": "response.output_item.done", "item": call}),
        json!({"type": "response.completed", "response": {"id": "r2"}}),
    ];
    send(&mut client, &request, 0, &events).expect("taken");
    let next = accepted(&mut client);
    assert_ne!(next["segmentId"], request["segmentId"]);
    assert!(next["body"]["input"].to_string().contains("from-the-place"), "{next}");
    say(&mut client, &next, "seen");
    assert_eq!(ended(&mut client)["status"], "completed");
}

#[test]
fn a_task_without_a_carrier_waits_also_without_a_process_until_one_comes() {
    let place = Place::new();
    let host = RunningHost::start(&place, &["-c", "host.suspend_after=0"]);
    let mut starter = HostClient::connect(&place);
    let thread = start(&mut starter, &place);
    drop(starter);
    let mut follower = HostClient::connect(&place);
    follower.ask("thread/resume", &json!({"threadId": thread}));
    follower.turn(&thread, "say hello", "i1");
    loop {
        let updated = follower.wait_for("task/updated");
        if updated["params"]["task"]["state"] == "waitingForCarrier" {
            break;
        }
    }
    until("the end of the runtime", || host.runtimes().is_empty().then_some(()));
    assert_eq!(state(&place), "waitingForCarrier");
    let listed = follower.ask("task/list", &json!({"state": "waitingForCarrier"}));
    assert_eq!(listed["data"][0]["id"], *thread, "{listed}");
    host.kill();

    let host = RunningHost::start(&place, &["-c", "host.suspend_after=0"]);
    let mut follower = HostClient::connect(&place);
    follower.ask("thread/resume", &json!({"threadId": thread}));
    assert_eq!(
        (state(&place).as_str(), host.runtimes()),
        ("waitingForCarrier", vec![]),
        "looking changes nothing"
    );
    let mut carrier = HostClient::connect(&place);
    carry(&mut carrier, &thread).expect("the carrier");
    let request = accepted(&mut carrier);
    say(&mut carrier, &request, "here at last");
    assert_eq!(ended(&mut follower)["status"], "completed");
    assert_eq!(said(&mut follower, &thread), "here at last");
    assert!(follower.log.iter().all(|message| message["method"] != REQUEST));
}

#[test]
fn another_client_takes_over_from_one_that_left_in_mid_stream() {
    let place = Place::new();
    let _host = RunningHost::start(&place, &[]);
    let mut first = HostClient::connect(&place);
    let thread = start(&mut first, &place);
    first.turn(&thread, "say hello", "i1");
    // Before it answers: the next one is asked the very same.
    let asked = first.wait_for(REQUEST)["params"].take();
    drop(first);
    until("the wait", || (state(&place) == "waitingForCarrier").then_some(()));
    let mut second = HostClient::connect(&place);
    carry(&mut second, &thread).expect("the carrier");
    let request = accepted(&mut second);
    assert_eq!(request["modelRequestId"], asked["modelRequestId"]);
    // In mid-stream: what was sent does not count, and the next one is asked by another attempt.
    send(&mut second, &request, 0, &answer("forgotten")[..3]).expect("taken");
    drop(second);
    until("the wait", || (state(&place) == "waitingForCarrier").then_some(()));
    let mut third = HostClient::connect(&place);
    carry(&mut third, &thread).expect("the carrier");
    let again = accepted(&mut third);
    assert_eq!(again["attempt"], 2, "{again}");
    for same in ["segmentId", "requestDigest", "threadId", "turnId"] {
        assert_eq!(again[same], request[same], "{same}");
    }
    say(&mut third, &again, "hello");
    assert_eq!(ended(&mut third)["status"], "completed");
    assert_eq!(said(&mut third, &thread), "hello");
}

#[test]
fn a_second_carrier_is_refused_by_name_until_the_first_is_gone() {
    let place = Place::new();
    let _host = RunningHost::start(&place, &[]);
    let mut first = HostClient::connect(&place);
    let thread = start(&mut first, &place);
    let mut second = HostClient::connect(&place);
    let refused = carry(&mut second, &thread).expect_err("taken");
    assert_eq!(
        (&refused["data"]["code"], &refused["data"]["by"]),
        (&json!("carrierTaken"), &json!("client:tests"))
    );
    assert!(refused["message"].to_string().contains("carries the model requests"), "{refused}");
    let direct = json!({"threadId": thread, "delegation": {"mode": "direct", "version": 1}});
    assert_eq!(code_of(second.try_ask("thread/resume", &direct)), "carrierTaken");
    second.ask("thread/resume", &json!({"threadId": thread}));
    carry(&mut first, &thread).expect("the same again");
    for (field, wrong) in [
        ("version", json!({"mode": "full", "version": 2})),
        ("provider", json!({"mode": "full", "version": 1})),
        ("hostEpoch", json!({"mode": "full", "version": 1, "hostEpoch": 9})),
        (
            "provider.id",
            json!({"mode": "full", "version": 1, "provider": {"id": " ", "capabilities": {"wire": "chat"}}}),
        ),
    ] {
        let start = json!({"cwd": place.folder(), "delegation": wrong});
        let refused = first.try_ask("thread/start", &start).expect_err(field);
        assert!(refused["message"].to_string().contains("delegation"), "{refused}");
    }
    first.ask("thread/unsubscribe", &json!({"threadId": thread}));
    carry(&mut second, &thread).expect("free again");
    second.turn(&thread, "say hello", "i1");
    let request = accepted(&mut second);
    say(&mut second, &request, "hello");
    assert_eq!(ended(&mut second)["status"], "completed");

    // Back to the host's own provider: nobody is asked any more.
    second.ask("thread/resume", &direct);
    let turn = second.turn(&thread, "say hello", "i2");
    let ended = ended(&mut second);
    assert_eq!((&ended["id"], &ended["status"]), (&turn["id"], &json!("completed")));
    assert!(second.heard.iter().all(|message| message["method"] != REQUEST), "{:?}", second.heard);
}

#[test]
fn an_interrupted_turn_takes_its_request_back() {
    let place = Place::new();
    let _host = RunningHost::start(&place, &[]);
    let mut client = HostClient::connect(&place);
    let thread = start(&mut client, &place);
    let turn = client.turn(&thread, "say hello", "i1");
    let request = accepted(&mut client);
    send(&mut client, &request, 0, &answer("never")[..3]).expect("taken");
    client.ask("turn/interrupt", &json!({"threadId": thread, "turnId": turn["id"]}));
    let canceled = client.wait_for("model/cancel");
    assert_eq!(canceled["params"]["modelRequestId"], request["modelRequestId"]);
    assert_eq!(canceled["params"]["reason"], "turnInterrupted", "{canceled}");
    client.write(&json!({"id": canceled["id"], "result": {"disposition": "canceled"}}));
    assert_eq!(code_of(send(&mut client, &request, 3, &[delta("late")])), "staleRequest");
    let aborted = json!({
        "threadId": thread, "modelRequestId": request["modelRequestId"], "seq": 3, "reason": "canceled",
        "replaySafe": false,
    });
    client.ask("model/streamAborted", &aborted);
    assert_eq!(ended(&mut client)["status"], "interrupted");
    client.turn(&thread, "say hello", "i2");
    let request = accepted(&mut client);
    say(&mut client, &request, "hello");
    assert_eq!(ended(&mut client)["status"], "completed");

    // One that waits for a carrier as well.
    client.ask("thread/unsubscribe", &json!({"threadId": thread}));
    client.ask("thread/resume", &json!({"threadId": thread}));
    let turn = client.turn(&thread, "say hello", "i3");
    until("the wait", || (state(&place) == "waitingForCarrier").then_some(()));
    client.ask("turn/interrupt", &json!({"threadId": thread, "turnId": turn["id"]}));
    assert_eq!(ended(&mut client)["status"], "interrupted");
    carry(&mut client, &thread).expect("the carrier");
    client.turn(&thread, "say hello", "i4");
    assert_eq!(
        accepted(&mut client)["turnId"],
        client
            .log
            .iter()
            .rev()
            .find_map(|m| { (m["method"] == "turn/started").then(|| m["params"]["turn"]["id"].clone()) })
            .unwrap_or_default(),
        "nothing is left of the one that was interrupted"
    );
}

#[test]
fn a_request_that_a_client_answers_is_not_asked_again_when_the_runtime_dies() {
    let place = Place::new();
    let host = RunningHost::start(&place, &[]);
    let mut client = HostClient::connect(&place);
    let thread = start(&mut client, &place);
    client.turn(&thread, "say hello", "i1");
    let request = accepted(&mut client);
    let events = answer("paid for once");
    send(&mut client, &request, 0, &events[..3]).expect("taken");
    let runtime = host.runtimes();
    kill_9(&runtime[0]);
    until("another runtime", || host.runtimes().first().filter(|next| **next != runtime[0]).cloned());
    send(&mut client, &request, 3, &events[3..]).expect("the host reads on");
    assert_eq!(ended(&mut client)["status"], "completed");
    assert_eq!(said(&mut client, &thread), "paid for once");
    assert!(client.heard.iter().all(|message| message["method"] != REQUEST), "{:?}", client.heard);
    let used = client.ask("usage/list", &json!({"threadId": thread, "groupBy": "task"}));
    assert_eq!(used["data"][0]["requests"], 1, "{used}");
}

#[test]
fn a_runtime_that_does_not_read_holds_its_carrier_back_and_nobody_else() {
    let place = Place::new();
    let host = RunningHost::start(&place, &[]);
    let mut client = HostClient::connect(&place);
    let thread = start(&mut client, &place);
    client.turn(&thread, "say a lot", "i1");
    let request = accepted(&mut client);
    let mut events = answer("x");
    let last = events.split_off(3);
    send(&mut client, &request, 0, &events).expect("taken");
    let runtime = host.runtimes()[0].clone();
    signal("STOP", &runtime);
    // Sent without waiting for answers, as fast as it goes. The host takes what its bounds allow, and refuses the rest.
    let texts: Vec<Value> = (0..200).map(|_| delta(&"y".repeat(1_000))).collect();
    let batches = 12;
    for batch in 0..batches {
        let params = json!({
            "threadId": thread, "modelRequestId": request["modelRequestId"], "seq": 3 + batch * 200, "events": texts,
        });
        client.write(&json!({"id": 10_000 + batch, "method": "model/streamEvent", "params": params}));
    }
    let is_refusal = |message: &Value| message["error"]["data"]["code"] == "creditExceeded";
    let refused = loop {
        let message = client.read();
        if is_refusal(&message) {
            break message;
        }
    };
    assert_eq!(refused["error"]["code"], -32001, "{refused}");
    let mut other = HostClient::connect(&place);
    let free = start(&mut other, &place);
    other.turn(&free, "say hello", "i1");
    let beside = accepted(&mut other);
    say(&mut other, &beside, "hello");
    assert_eq!(ended(&mut other)["status"], "completed");

    signal("CONT", &runtime);
    // Whatever was not taken is sent again, until the end.
    let total = 3 + batches * 200;
    let mut next = refused["error"]["data"]["nextSeq"].as_u64().expect("a number");
    while next < total {
        let params = json!({
            "threadId": thread, "modelRequestId": request["modelRequestId"], "seq": next,
            "events": texts[..usize::try_from((total - next).min(200)).expect("small")],
        });
        next = match client.try_ask("model/streamEvent", &params) {
            Ok(taken) => taken["nextSeq"].as_u64().expect("a number"),
            Err(error) if error["data"]["code"] == "creditExceeded" => {
                std::thread::sleep(Duration::from_millis(20));
                error["data"]["nextSeq"].as_u64().expect("a number")
            }
            Err(error) => panic!("{error}"),
        };
    }
    send(&mut client, &request, usize::try_from(next).expect("small"), &last).expect("taken");
    assert_eq!(ended(&mut client)["status"], "completed");
    assert_eq!(said(&mut client, &thread), "x");
}

fn signal(name: &str, process: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), process]).status().expect("kill runs");
    assert!(sent.success());
}

#[test]
fn a_host_that_is_killed_in_mid_stream_asks_again_when_the_client_is_back() {
    let place = Place::new();
    let host = RunningHost::start(&place, &[]);
    let mut client = HostClient::connect(&place);
    let thread = start(&mut client, &place);
    client.turn(&thread, "say hello", "i1");
    let request = accepted(&mut client);
    send(&mut client, &request, 0, &answer("lost")[..3]).expect("taken");
    host.kill();
    let _host = RunningHost::start(&place, &[]);
    until("the wait", || (state(&place) == "waitingForCarrier").then_some(()));
    let mut client = HostClient::connect(&place);
    carry(&mut client, &thread).expect("the carrier");
    let again = accepted(&mut client);
    assert_eq!(
        (&again["segmentId"], &again["requestDigest"]),
        (&request["segmentId"], &request["requestDigest"])
    );
    say(&mut client, &again, "found");
    assert_eq!(ended(&mut client)["status"], "completed");
    assert_eq!(said(&mut client, &thread), "found");
}

#[test]
fn a_carrier_that_sends_garbage_fails_its_own_turn_alone() {
    let place = Place::new();
    let _host = RunningHost::start(&place, &[]);
    let mut bad = HostClient::connect(&place);
    let mut good = HostClient::connect(&place);
    let (broken, sound) = (start(&mut bad, &place), start(&mut good, &place));
    good.turn(&sound, "say hello", "i1");
    let beside = accepted(&mut good);

    // Events that the host cannot read, and events that only the runtime recognizes as nonsense.
    bad.turn(&broken, "say hello", "i1");
    let request = accepted(&mut bad);
    assert_eq!(code_of(send(&mut bad, &request, 1, &[delta("a gap")])), "sequenceGap");
    assert_eq!(code_of(send(&mut bad, &request, 0, &[json!(["no", "event"])])), "badEvent");
    let late = code_of(send(&mut bad, &request, 0, &[delta("late")]));
    assert!(["streamClosed", "staleRequest"].contains(&late.as_str()), "{late}");
    assert_eq!(ended(&mut bad)["status"], "failed");
    bad.turn(&broken, "say hello", "i2");
    let request = accepted(&mut bad);
    let nonsense = json!({"type": "message_start", "message": {"id": "m"}});
    send(&mut bad, &request, 0, &[nonsense]).expect("the runtime reads it");
    let failed = ended(&mut bad);
    assert_eq!(failed["status"], "failed", "{failed}");
    let canceled = bad.wait_for("model/cancel");
    assert_eq!(canceled["params"]["modelRequestId"], request["modelRequestId"], "{canceled}");

    // A refusal with a reason, and an answer that is none.
    bad.turn(&broken, "say hello", "i3");
    let request = bad.wait_for(REQUEST);
    let error = json!({"code": "badRequest", "message": "not today"});
    bad.write(&json!({"id": request["id"], "result": {"disposition": "rejected", "error": error}}));
    let failed = ended(&mut bad);
    assert!(failed["error"]["message"].to_string().contains("not today"), "{failed}");
    bad.turn(&broken, "say hello", "i4");
    let request = bad.wait_for(REQUEST);
    bad.write(&json!({"id": request["id"], "result": {"disposition": 12}}));
    assert_eq!(ended(&mut bad)["status"], "failed");

    say(&mut good, &beside, "hello");
    assert_eq!(ended(&mut good)["status"], "completed");
    // Without acknowledgements, for clients that want none.
    bad.turn(&broken, "say hello", "i5");
    let request = accepted(&mut bad);
    let params = json!({
        "threadId": broken, "modelRequestId": request["modelRequestId"], "seq": 0, "events": answer("short"),
    });
    bad.write(&json!({"method": "model/streamEvent", "params": params}));
    assert_eq!(ended(&mut bad)["status"], "completed");
    assert_eq!(said(&mut bad, &broken), "short");
}

#[test]
fn a_client_carries_a_task_that_another_host_has_and_goes_on_when_its_own_takes_over() {
    let Some(server) = postgres() else { return };
    let place = Place::new();
    configure(&place);
    let [here, owner] = ["a", "b"].map(|name| Replica::start(&place, &server, name));
    let mut starter = owner.client();
    let thread = starter.start_thread(&place, "never");
    let mut client = here.client();
    // The task has the host's own provider so far; its idle runtime is ended for that.
    carry(&mut client, &thread).expect("the carrier");
    assert_eq!(code_of(carry(&mut starter, &thread)), "carrierTaken");
    client.turn(&thread, "say hello", "i1");
    let request = accepted(&mut client);
    say(&mut client, &request, "hello");
    assert_eq!(ended(&mut client)["status"], "completed");
    assert_eq!(ended(&mut starter)["status"], "completed");

    client.turn(&thread, "say goodbye", "i2");
    let request = accepted(&mut client);
    send(&mut client, &request, 0, &answer("lost")[..3]).expect("taken");
    owner.kill();
    let again = accepted(&mut client);
    assert_eq!(
        (&again["segmentId"], &again["requestDigest"]),
        (&request["segmentId"], &request["requestDigest"])
    );
    say(&mut client, &again, "goodbye");
    assert_eq!(ended(&mut client)["status"], "completed");
    assert_eq!(said(&mut client, &thread), "goodbye");
}
