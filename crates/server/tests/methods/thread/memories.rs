//! Memories: threads that have come to rest leave notes, and later threads are told.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::{ReceivedRequest, ScriptedModel, Stage, TestClient, text, until};

use crate::delegation::{Host, full, message};

const ON: &str = "suppress_unstable_features_warning = true\n[features]\nmemories = true\n";
const HOUR_MS: i64 = 3_600_000;

fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    i64::try_from(since.as_millis()).expect("not so late")
}

fn folder(stage: &Stage) -> PathBuf {
    stage.home().join("memories/mock")
}

fn notes(stage: &Stage, thread: &str) -> Option<Value> {
    let text = fs::read(folder(stage).join(format!("threads/{thread}.json"))).ok()?;
    serde_json::from_slice(&text).ok()
}

/// A turn with one answer of the scripted model.
async fn turn(client: &mut TestClient, model: &mut ScriptedModel, thread: &str, said: &str) -> Value {
    client.start_turn(thread, said).await;
    let request = model.of(thread).await;
    let body = request.body.clone();
    request.say("done").await;
    client.next_of("turn/completed").await;
    body
}

/// A thread with one turn, made while the feature is off and at rest for seven hours since.
async fn rested(stage: &Stage, model: &mut ScriptedModel, config: Value) -> String {
    stage.configure_port(model.port(), "");
    let (server, mut client) = stage.open().await;
    let thread = client.start_thread(json!({"config": config})).await;
    turn(&mut client, model, &thread, "we build with make").await;
    server.stop().await;
    assert!(!stage.home().join("memories").exists(), "off means off");
    stage.clock.set(now_ms() + 7 * HOUR_MS);
    stage.configure_port(model.port(), ON);
    thread
}

async fn next_for_memory(model: &mut ScriptedModel) -> ReceivedRequest {
    let is_memory =
        |request: &ReceivedRequest| request.header("x-openai-subagent") == Some("memory_consolidation");
    model.take("a request for memories", is_memory).await
}

#[tokio::test]
async fn notes_of_a_thread_at_rest_are_told_to_the_next_and_their_use_is_counted() {
    let stage = Stage::new(json!([])).await;
    let mut model = ScriptedModel::new().await;
    let old = rested(&stage, &mut model, json!({})).await;
    let (server, mut client) = stage.open().await;
    client.start_thread(json!({})).await;
    let asked = next_for_memory(&mut model).await;
    assert!(asked.body["input"].to_string().contains("we build with make"), "{}", asked.body);
    assert_eq!(asked.body["tools"], json!([]));
    let token = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let raw = format!("Builds with make. The token is {token}.");
    asked.say(&json!({"rollout_summary": "a build", "raw_memory": raw}).to_string()).await;
    let asked = next_for_memory(&mut model).await;
    let input = asked.body["input"].to_string();
    assert!(input.contains("Builds with make") && input.contains(&old) && !input.contains(token), "{input}");
    asked.say(&json!({"memory": format!("# General\n\nBuilds with make [{old}]")}).to_string()).await;
    let page = folder(&stage).join("MEMORY.md");
    until("the page", || page.exists()).await;
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!((mode(&page), mode(&folder(&stage))), (0o600, 0o700));

    let thread = client.start_thread(json!({})).await;
    client.start_turn(&thread, "build it").await;
    let mut request = model.of(&thread).await;
    let told = request.body["input"][0].to_string();
    assert!(told.contains("3 Builds with make") && request.body["input"][0]["role"] == "developer", "{told}");
    let cited = format!(
        "<oai-mem-citation><citation_entries>\nMEMORY.md:3-3|note=[how to build]\n</citation_entries>\
         <rollout_ids>\n{old}\n../x\n</rollout_ids></oai-mem-citation>"
    );
    request.begin("I ran make.<oai-mem-").await;
    request.say(&format!("I ran make.{cited}")).await;
    let delta = client.next_of("item/agentMessage/delta").await;
    assert_eq!(delta["delta"], "I ran make.");
    let item = client.item("agentMessage").await;
    assert_eq!(item["text"], "I ran make.");
    let entry = json!({"path": "MEMORY.md", "lineStart": 3, "lineEnd": 3, "note": "how to build"});
    assert_eq!(item["memoryCitation"], json!({"entries": [entry], "threadIds": [old, "../x"]}));
    until("the use is counted", || notes(&stage, &old).is_some_and(|notes| notes["usageCount"] == 1)).await;
    server.stop().await;
    let stored = stage.read(&thread).await;
    let kept = &stored["turns"][0]["items"][1];
    assert_eq!(kept["memoryCitation"]["threadIds"][0], json!(old), "{stored}");
}

#[tokio::test]
async fn a_thread_that_opts_out_leaves_none() {
    let stage = Stage::new(json!([])).await;
    let mut model = ScriptedModel::new().await;
    let old = rested(&stage, &mut model, json!({"memories.generate_memories": false})).await;
    let (server, mut client) = stage.open().await;
    let thread = client.start_thread(json!({"config": {"memories.use_memories": false}})).await;
    until("it was looked at", || notes(&stage, &old).is_some()).await;
    let body = turn(&mut client, &mut model, &thread, "hello").await;
    assert!(!body.to_string().contains("MEMORY.md"));
    assert_eq!(notes(&stage, &old).expect("there")["rawMemory"], Value::Null);
    assert!(!folder(&stage).join("MEMORY.md").exists());
    server.stop().await;
}

#[tokio::test]
async fn a_model_that_fails_or_talks_harms_nothing_and_is_asked_again_later() {
    let stage = Stage::new(json!([])).await;
    let mut model = ScriptedModel::new().await;
    let old = rested(&stage, &mut model, json!({})).await;
    let (server, mut client) = stage.open().await;
    let thread = client.start_thread(json!({})).await;
    next_for_memory(&mut model).await.say("I would rather not.").await;
    until("the failure is noted", || notes(&stage, &old).is_some_and(|notes| notes["failures"] == 1)).await;
    turn(&mut client, &mut model, &thread, "hello").await;
    server.stop().await;
    stage.clock.set(now_ms() + 9 * HOUR_MS);
    let (server, mut client) = stage.open().await;
    client.start_thread(json!({})).await;
    next_for_memory(&mut model).await.fail("no").await;
    until("noted again", || notes(&stage, &old).is_some_and(|notes| notes["failures"] == 2)).await;
    server.stop().await;
}

#[tokio::test]
async fn a_host_carries_requests_for_memories_beside_a_turn() {
    let stage = Stage::new(json!([])).await;
    let (server, mut host) = Host::new(&stage, full()).await;
    host.turn("we build with make", "ok").await;
    server.stop().await;
    stage.clock.set(now_ms() + 7 * HOUR_MS);
    stage.configure(ON);
    let (server, mut host) = Host::new(&stage, full()).await;
    let memory = host.accept().await;
    assert_eq!(memory["purpose"], "memory");
    assert!(text(&memory["modelRequestId"]).contains(":m0:"), "{memory}");
    assert!(memory["body"]["input"].to_string().contains("we build with make"));
    // The turn does not wait for it.
    host.turn("hello", "hi").await;
    let extracted = json!({"rollout_summary": "", "raw_memory": ""}).to_string();
    let done = json!([
        {"type": "response.output_item.done", "item": message("m1", &extracted)},
        {"type": "response.completed", "response": {"id": "r"}},
    ]);
    host.push(&memory, 0, done).await;
    server.stop().await;
}
