//! Function tools through `oarlock host`: at one client at a time, never twice by itself, and waiting for as long as it takes.

use serde_json::{Value, json};

use crate::host::{HostClient, RunningHost, code, command, pending, state, until};
use crate::support::Place;

const CALL: &str = "item/tool/call";
const GATE: &str = "item/tool/requestApproval";

fn tool(name: &str, effects: &str) -> Value {
    let schema = json!({"type": "object", "properties": {"order": {"type": "string"}}});
    json!({"name": name, "description": "Does something.", "inputSchema": schema, "effects": effects})
}

fn start(client: &mut HostClient, place: &Place, rule: &str, provides: &Value) -> String {
    let tools = [tool("refund", "once"), tool("look", "readonly")];
    let approval = json!({"default": "runtime", "perTool": {"refund": rule, "look": rule}});
    let params = json!({
        "cwd": place.folder(), "approvalPolicy": "never", "sandbox": "danger-full-access",
        "toolSet": {"mode": "additive", "dynamic": tools, "approval": approval}, "provides": provides,
    });
    let started = client.ask("thread/start", &params);
    started["thread"]["id"].as_str().expect("an id").to_owned()
}

fn join(client: &mut HostClient, thread: &str, provides: &Value) {
    client.ask("thread/resume", &json!({"threadId": thread, "provides": provides, "excludeTurns": true}));
}

fn answer(client: &mut HostClient, call: &Value, text: &str) {
    let content = json!([{"type": "inputText", "text": text}]);
    client.write(&json!({"id": call["id"], "result": {"contentItems": content, "success": true}}));
}

/// Everything that was heard by the end of the turn.
fn end_of_turn(client: &mut HostClient) -> Value {
    let completed = client.wait_for("turn/completed");
    assert_eq!(completed["params"]["turn"]["status"], "completed", "{completed}");
    completed
}

fn refund() -> Value {
    json!([{"name": "refund", "schemaDigest": "one"}, {"name": "look", "schemaDigest": "one"}])
}

#[test]
fn a_call_goes_to_one_provider_and_one_that_may_not_run_twice_waits_when_it_is_lost() {
    let place = Place::new();
    let _host = RunningHost::start(&place, &[]);
    let mut watcher = HostClient::connect(&place);
    let mut first = HostClient::connect(&place);
    let thread = start(&mut first, &place, "runtime", &refund());
    join(&mut watcher, &thread, &json!([]));
    first.turn(&thread, "call refund {\"order\": \"A-17\"}", "i1");
    let call = first.wait_for(CALL);
    assert_eq!(call["params"]["arguments"], json!({"order": "A-17"}), "{call}");
    drop(first);
    let lost = until("the loss", || pending(&place).pop());
    assert_eq!((&lost["state"], &lost["attempt"]), (&json!("unknown"), &json!(1)), "{lost}");
    assert_eq!(lost["operationId"], call["params"]["operationId"]);
    assert_eq!(lost["availableDecisions"], json!(["retry", "respond", "reject"]));

    let mut second = HostClient::connect(&place);
    join(&mut second, &thread, &refund());
    command(&place, &["retry", &code(&place)]).good();
    let again = second.wait_for(CALL);
    assert_eq!(again["params"]["operationId"], call["params"]["operationId"], "one key for both");
    answer(&mut second, &again, "refunded");
    end_of_turn(&mut second);
    end_of_turn(&mut watcher);
    assert!(watcher.heard.iter().all(|message| message["method"] != CALL), "{:?}", watcher.heard);
    let finished = second.ask("operation/list", &json!({"threadId": thread, "state": "finished"}));
    assert_eq!(finished["data"][0]["attempt"], 2, "{finished}");
}

#[test]
fn a_call_that_may_run_twice_goes_to_the_next_provider() {
    let place = Place::new();
    let host = RunningHost::start(&place, &[]);
    let mut first = HostClient::connect(&place);
    let thread = start(&mut first, &place, "runtime", &refund());
    let mut second = HostClient::connect(&place);
    join(&mut second, &thread, &refund());
    first.turn(&thread, "call look {\"order\": \"A\"} then call refund {\"order\": \"B\"}", "i1");
    let call = first.wait_for(CALL);
    drop(first);
    let again = second.wait_for(CALL);
    assert_eq!(again["params"]["operationId"], call["params"]["operationId"]);
    answer(&mut second, &again, "seen");
    // The runtime dies while a client runs the call: the call goes on, and its result is for the next runtime.
    let call = second.wait_for(CALL);
    assert_eq!(call["params"]["tool"], "refund");
    let runtime = host.runtimes();
    crate::host::kill_9(&runtime[0]);
    until("another runtime", || host.runtimes().first().filter(|next| **next != runtime[0]).cloned());
    answer(&mut second, &call, "refunded");
    end_of_turn(&mut second);
    assert!(second.heard.iter().all(|message| message["method"] != CALL), "not called again");
    let finished = second.ask("operation/list", &json!({"threadId": thread, "state": "finished"}));
    let attempts: Vec<&Value> = (0..2).map(|at| &finished["data"][at]["attempt"]).collect();
    assert_eq!(attempts, [2, 1], "{finished}");
}

#[test]
fn a_call_without_a_provider_waits_through_a_restart_of_the_host() {
    let place = Place::new();
    let host = RunningHost::start(&place, &["--suspend-after", "0"]);
    let mut starter = HostClient::connect(&place);
    let thread = start(&mut starter, &place, "runtime", &refund());
    starter.ask("thread/unsubscribe", &json!({"threadId": thread}));
    starter.turn(&thread, "call refund {\"order\": \"A\"}", "i1");
    until("the call", || pending(&place).pop());
    until("the end of the runtime", || host.runtimes().is_empty().then_some(()));
    host.kill();
    let _host = RunningHost::start(&place, &["--suspend-after", "0"]);
    let waiting = pending(&place);
    assert_eq!((waiting.len(), &waiting[0]["state"]), (1, &json!("proposed")), "{waiting:?}");
    let mut other = HostClient::connect(&place);
    join(&mut other, &thread, &json!([{"name": "refund", "schemaDigest": "another"}]));
    let mut provider = HostClient::connect(&place);
    join(&mut provider, &thread, &refund());
    let call = provider.wait_for(CALL);
    answer(&mut provider, &call, "refunded");
    end_of_turn(&mut provider);
    end_of_turn(&mut other);
    assert!(other.heard.iter().all(|message| message["method"] != CALL), "its schema is another");
}

/// As `join`, with tools that are declared in another way than at the start.
fn join_anew(client: &mut HostClient, thread: &str, digest: &str) {
    let tools = [
        tool("refund", "once"),
        json!({"name": "look", "description": "Looks.", "effects": "readonly",
        "inputSchema": {"type": "object", "properties": {"order": {"type": "string"}, "deep": {"type": "boolean"}}}}),
    ];
    let approval = json!({"default": "runtime", "perTool": {"refund": "host", "look": "runtime"}});
    let params = json!({
        "threadId": thread, "excludeTurns": true,
        "toolSet": {"mode": "additive", "dynamic": tools, "approval": approval},
        "provides": [{"name": "refund", "schemaDigest": digest}, {"name": "look", "schemaDigest": digest}],
    });
    client.ask("thread/resume", &params);
}

#[test]
fn a_tool_that_is_declared_anew_is_asked_about_again_and_runs_as_it_is_now() {
    let place = Place::new();
    let _host = RunningHost::start(&place, &[]);
    let mut first = HostClient::connect(&place);
    let thread = start(&mut first, &place, "host", &refund());
    first.turn(&thread, "call refund {\"order\": \"A\"} then call look {\"order\": \"A\"}", "i1");
    first.wait_for(GATE);
    drop(first);
    // Agreed to while nobody runs the tool; the runtime is up, with the tools as they were.
    command(&place, &["approve", &code(&place)]).good();
    let mut second = HostClient::connect(&place);
    join_anew(&mut second, &thread, "two");
    let asked = second.wait_for(GATE);
    assert_eq!(asked["params"]["tool"], "refund", "{asked}");
    assert!(
        second.heard.iter().all(|message| message["method"] != CALL),
        "the decision was about another schema"
    );
    let waiting = until("the call", || pending(&place).pop());
    assert_eq!((&waiting["state"], &waiting["attempt"]), (&json!("proposed"), &json!(0)), "{waiting}");
    second.write(&json!({"id": asked["id"], "result": {"decision": "accept"}}));
    for name in ["refund", "look"] {
        let call = second.wait_for(CALL);
        assert_eq!(call["params"]["tool"], name, "{call}");
        answer(&mut second, &call, "done");
    }
    end_of_turn(&mut second);
    // The same tools again change nothing: what was agreed to stays agreed to.
    let audit = second.ask("operation/list", &json!({"threadId": thread, "state": "finished"}));
    join_anew(&mut second, &thread, "two");
    assert_eq!(second.ask("operation/list", &json!({"threadId": thread, "state": "finished"})), audit);
    second.turn(&thread, "call look {\"order\": \"B\"}", "i2");
    let call = second.wait_for(CALL);
    answer(&mut second, &call, "seen");
    end_of_turn(&mut second);
}

#[test]
fn a_call_that_is_asked_about_runs_after_the_decision_with_what_was_decided() {
    let place = Place::new();
    let _host = RunningHost::start(&place, &[]);
    let mut client = HostClient::connect(&place);
    let thread = start(&mut client, &place, "host", &refund());
    client.turn(&thread, "call refund {\"order\": \"A\"}", "i1");
    let asked = client.wait_for(GATE);
    assert_eq!(asked["params"]["arguments"], json!({"order": "A"}), "{asked}");
    client.write(&json!({"id": asked["id"], "result": {"decision": "defer"}}));
    let waiting = until("the call", || pending(&place).pop());
    assert_eq!((&waiting["state"], &waiting["type"]), (&json!("proposed"), &json!("function")), "{waiting}");
    assert!(client.heard.iter().all(|message| message["method"] != CALL), "nothing runs before the decision");
    let decision = json!({"type": "replace", "arguments": {"order": "B"}});
    let params = json!({
        "operationId": waiting["operationId"], "argumentsDigest": waiting["argumentsDigest"], "decision": decision,
    });
    client.ask("operation/decide", &params);
    let call = client.wait_for(CALL);
    assert_eq!(call["params"]["arguments"], json!({"order": "B"}), "{call}");
    answer(&mut client, &call, "refunded");
    end_of_turn(&mut client);

    client.turn(&thread, "call refund {\"order\": \"C\"}", "i2");
    client.wait_for(GATE);
    command(&place, &["reject", &code(&place), "--message", "not on a Friday"]).good();
    end_of_turn(&mut client);
    until("the end of the turn", || (state(&place) == "idle").then_some(()));
    assert!(client.heard.iter().all(|message| message["method"] != CALL), "it was refused");
    let read = client.ask("thread/read", &json!({"threadId": thread, "includeTurns": true}));
    assert!(read.to_string().contains("not on a Friday"), "{read}");
}

#[test]
fn a_decision_holds_for_every_attempt_of_the_call() {
    let place = Place::new();
    let host = RunningHost::start(&place, &[]);
    let mut first = HostClient::connect(&place);
    let thread = start(&mut first, &place, "host", &refund());
    first.turn(&thread, "call look {\"order\": \"A\"}", "i1");
    first.wait_for(GATE);
    let waiting = until("the question", || pending(&place).pop());
    let decision = json!({
        "operationId": waiting["operationId"], "argumentsDigest": waiting["argumentsDigest"],
        "decision": {"type": "replace", "arguments": {"order": "B"}},
    });
    first.ask("operation/decide", &decision);
    assert_eq!(first.wait_for(CALL)["params"]["arguments"], json!({"order": "B"}));
    drop(first);
    // The first attempt is lost and nobody is there for the second. Another runtime asks for the result again.
    let runtime = host.runtimes();
    crate::host::kill_9(&runtime[0]);
    until("another runtime", || host.runtimes().first().filter(|next| **next != runtime[0]).cloned());
    let mut second = HostClient::connect(&place);
    join(&mut second, &thread, &refund());
    let call = second.wait_for(CALL);
    assert_eq!(call["params"]["arguments"], json!({"order": "B"}), "as decided: {call}");
    answer(&mut second, &call, "seen");
    end_of_turn(&mut second);
    let read = second.ask("thread/read", &json!({"threadId": thread, "includeTurns": true}));
    assert!(read.to_string().contains("seen"), "{read}");
}

#[test]
fn a_call_that_waits_for_a_client_takes_decisions_too() {
    let place = Place::new();
    let _host = RunningHost::start(&place, &[]);
    let mut client = HostClient::connect(&place);
    let thread = start(&mut client, &place, "runtime", &json!([]));
    client.turn(&thread, "call refund {\"order\": \"A\"}", "i1");
    until("the call", || pending(&place).pop());
    command(&place, &["respond", &code(&place), "it is done already"]).good();
    end_of_turn(&mut client);

    client.turn(&thread, "call refund {\"order\": \"C\"}", "i2");
    until("the call", || pending(&place).pop());
    command(&place, &["approve", &code(&place)]).good();
    let mut provider = HostClient::connect(&place);
    join(&mut provider, &thread, &refund());
    let call = provider.wait_for(CALL);
    assert_eq!(call["params"]["arguments"], json!({"order": "C"}), "{call}");
    answer(&mut provider, &call, "refunded");
    end_of_turn(&mut client);
    let finished = client.ask("operation/list", &json!({"threadId": thread, "state": "finished"}));
    assert_eq!(finished["data"][1]["attempt"], 1, "{finished}");
}
