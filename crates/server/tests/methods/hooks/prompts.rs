//! `SessionStart` and `UserPromptSubmit`.

use std::fs;

use serde_json::{Value, json};
use testkit::text;

use super::{asked, ended, run, stage, thread};

#[tokio::test]
async fn a_prompt_is_seen_and_context_goes_to_the_model() {
    let hooks = json!({
        "SessionStart": run("cat > start.json; echo know the house rules"),
        "UserPromptSubmit": run("cat > prompt.json; echo the user is in a hurry"),
    });
    let stage = stage(json!([{"text": "one"}, {"text": "two"}]), hooks).await;
    let (_server, mut client) = stage.open().await;
    let id = thread(&stage, &mut client).await;
    let turn_id = client.start_turn(&id, "hello there").await;
    let started = client.next_of("hook/started").await;
    assert_eq!((&started["threadId"], &started["turnId"]), (&json!(id), &json!(turn_id)));
    let run = &started["run"];
    assert_eq!((&run["eventName"], &run["status"]), (&json!("sessionStart"), &json!("running")));
    assert_eq!((&run["scope"], &run["executionMode"]), (&json!("thread"), &json!("sync")));
    assert!(run["completedAt"].is_null() && run["startedAt"].is_i64(), "{run}");
    let first = ended(&mut client).await;
    let file = stage.home().join("hooks.json");
    assert_eq!(text(&first["id"]), format!("session_start:0:{}", file.display()));
    assert_eq!(first["entries"], json!([{"kind": "context", "text": "know the house rules"}]));
    assert_eq!(ended(&mut client).await["eventName"], "userPromptSubmit");
    client.next_of("turn/completed").await;
    let read = |name: &str| -> Value {
        serde_json::from_str(&fs::read_to_string(stage.cwd().join(name)).expect("a file")).expect("JSON")
    };
    let (start, prompt) = (read("start.json"), read("prompt.json"));
    assert_eq!((&start["hook_event_name"], &start["source"]), (&json!("SessionStart"), &json!("startup")));
    assert_eq!(start.get("turn_id"), None);
    assert_eq!((&prompt["prompt"], &prompt["turn_id"]), (&json!("hello there"), &json!(turn_id)));
    assert_eq!(
        (&prompt["session_id"], &prompt["permission_mode"]),
        (&json!(id), &json!("bypassPermissions"))
    );
    assert_eq!((&prompt["model"], &prompt["cwd"]), (&json!("mock-model"), &json!(stage.cwd())));
    let input = stage.asked()[0]["input"].as_array().expect("input").clone();
    let at =
        |words: &str| input.iter().position(|item| item.to_string().contains(words)).expect("it is there");
    assert!(at("hello there") < at("the user is in a hurry"), "{input:?}");
    assert_eq!(input[at("know the house rules")]["role"], "developer");
    // The session starts once.
    client.turn(&id, "again").await;
    assert_eq!(asked(&stage).matches("know the house rules").count(), 2, "in the history of both requests");
    assert_eq!(read("prompt.json")["prompt"], "again");
}

#[tokio::test]
async fn a_blocked_prompt_is_in_no_record() {
    let block = "read -r input; case $input in *secret*) echo no secrets >&2; exit 2;; esac";
    let stage = stage(json!([{"text": "fine"}]), json!({"UserPromptSubmit": run(block)})).await;
    let (_server, mut client) = stage.open().await;
    let id = thread(&stage, &mut client).await;
    client.start_turn(&id, "the secret is 4711").await;
    let blocked = ended(&mut client).await;
    assert_eq!(blocked["status"], "blocked");
    assert_eq!(blocked["entries"], json!([{"kind": "feedback", "text": "no secrets"}]));
    let over = client.next_of("turn/completed").await;
    assert_eq!(over["turn"]["status"], "completed");
    assert!(stage.asked().is_empty(), "the model was not asked");
    client.turn(&id, "hello").await;
    assert!(!asked(&stage).contains("4711"));
    let thread = stage.read(&id).await.to_string();
    assert!(!thread.contains("4711") && thread.contains("hello"), "{thread}");
}

#[tokio::test]
async fn a_session_start_can_stop_the_turn() {
    let stop = run("echo '{\"continue\":false,\"stopReason\":\"closed today\"}'");
    let stage = stage(json!([]), json!({"SessionStart": stop})).await;
    let (_server, mut client) = stage.open().await;
    let id = thread(&stage, &mut client).await;
    client.start_turn(&id, "work").await;
    let stopped = ended(&mut client).await;
    assert_eq!((&stopped["status"], &stopped["entries"][0]["kind"]), (&json!("stopped"), &json!("stop")));
    assert_eq!(client.next_of("turn/completed").await["turn"]["status"], "completed");
    assert!(stage.asked().is_empty());
}

#[tokio::test]
async fn a_steered_prompt_waits_for_its_hook() {
    let hook =
        run("read -r input; case $input in *wait*) exit 0;; *bad*) echo no >&2; exit 2;; esac; exit 0");
    let tool = json!({"name": "lookup", "description": "d", "inputSchema": {"type": "object"}});
    let steps = json!([{"call": {"name": "lookup", "callId": "c", "arguments": {}}}, {"text": "done"}]);
    let stage = stage(steps, json!({"UserPromptSubmit": hook})).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"cwd": stage.cwd(), "dynamicTools": [tool]})).await;
    let turn_id = client.start_turn(&id, "wait").await;
    let question = client.next_of("item/tool/call").await;
    ended(&mut client).await;
    for (words, status) in [("bad words", "blocked"), ("good words", "completed")] {
        let input = json!([{"type": "text", "text": words}]);
        let params = json!({"threadId": id, "input": input, "expectedTurnId": turn_id});
        client.ask("turn/steer", params).await;
        assert_eq!(ended(&mut client).await["status"], status, "{words}");
    }
    let found = json!({"contentItems": [{"type": "inputText", "text": "seven"}], "success": true});
    client.answer(&question, found).await;
    client.next_of("turn/completed").await;
    let last = stage.asked().last().expect("a request")["input"].to_string();
    assert!(last.contains("good words") && !last.contains("bad words"), "{last}");
}

#[tokio::test]
async fn without_the_feature_nothing_runs() {
    let stage = stage(json!([{"text": "one"}]), json!({"UserPromptSubmit": run("touch ran")})).await;
    stage.configure("sandbox_mode = \"danger-full-access\"");
    let (_server, mut client) = stage.open().await;
    let id = thread(&stage, &mut client).await;
    client.turn(&id, "hello").await;
    assert!(!stage.cwd().join("ran").exists());
}
