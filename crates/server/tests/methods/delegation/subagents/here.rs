//! Children in this process, whose requests the host carries like their parent's.

use serde_json::{Value, json};
use testkit::{Stage, text, told};

use super::{Keeper, NEWS, news, output_json};

#[tokio::test]
async fn the_host_carries_the_requests_of_a_child() {
    let stage = Stage::new(json!([])).await;
    let (server, mut host) = Keeper::new(&stage, "runtime", false).await;
    let request = host.begin("go").await;
    assert_eq!(request["agentPath"], json!(["root"]));
    host.calls(&request, "c1", "spawn_agent", json!({"message": "look"})).await;
    let request = host.root().await;
    let agent = text(&output_json(&request, "c1")["agent_id"]);
    let child = host.request(&agent).await;
    assert_eq!((&child["threadId"], &child["agentPath"]), (&json!(agent), &json!(["root", agent])));
    assert_eq!(child["segmentId"], json!(format!("{}:0", text(&child["turnId"]))));
    host.calls(&request, "c2", "wait_agent", json!({"targets": [agent]})).await;
    host.says(&child, "seen").await;
    let request = host.root().await;
    assert_eq!(output_json(&request, "c2")["status"][&agent], json!({"completed": "seen"}));
    assert!(!host.has_heard("delegation/request").await);
    server.kill().await;
}

#[tokio::test]
async fn the_host_keeps_the_record_of_a_child_by_itself() {
    let stage = Stage::new(json!([])).await;
    let (server, mut host) = Keeper::new(&stage, "runtime", true).await;
    let request = host.begin("go").await;
    host.calls(&request, "c1", "spawn_agent", json!({"message": "look", "agent_type": "explorer"})).await;
    let request = host.root().await;
    let agent = text(&output_json(&request, "c1")["agent_id"]);
    let child = host.request(&agent).await;
    assert_eq!(host.ends(&request, "done").await["status"], "completed");
    assert_eq!(host.ends(&child, "seen").await["status"], "completed");
    // The parent was told; that is in its record before its next request is made.
    let request = host.begin("and?").await;
    assert_eq!(news(&request).len(), 1, "{:?}", news(&request));
    let record = host.records.as_ref().expect("records")[&agent].clone();
    assert_eq!(record[0]["kind"], "sessionMeta", "{}", record[0]);
    let meta = record[0].to_string();
    assert!(meta.contains(&host.thread) && meta.contains("explorer"), "{meta}");
    let ordinals: Vec<Value> = record.iter().map(|item| item["ordinal"].clone()).collect();
    assert_eq!(ordinals, (0..record.len()).map(|at| json!(at)).collect::<Vec<_>>());
    assert!(record.iter().any(|item| item["kind"] == "turnEnded"), "{record:?}");
    // Nothing of it is on this machine.
    assert!(!stage.home().join("oarlock/threads").exists());
    server.kill().await;

    // In the next process the host brings both back.
    let server = host.resume(&stage).await;
    let opened = host.open(&agent).await;
    assert_eq!(told(&opened["thread"]), ["completed: look"]);
    let request = host.begin("still?").await;
    host.calls(&request, "c2", "wait_agent", json!({"targets": [agent]})).await;
    let request = host.root().await;
    assert_eq!(output_json(&request, "c2")["status"][&agent], json!({"completed": "seen"}));
    host.calls(&request, "c3", "send_input", json!({"target": agent, "message": "more"})).await;
    let child = host.request(&agent).await;
    assert_eq!(child["agentPath"], json!(["root", agent]));
    host.says(&child, "seen more").await;
    server.kill().await;
}

#[tokio::test]
async fn a_fork_at_the_host_has_its_past_in_its_own_record() {
    let stage = Stage::new(json!([])).await;
    let (server, mut host) = Keeper::new(&stage, "runtime", true).await;
    let request = host.begin("remember seven").await;
    host.ends(&request, "seven").await;
    let request = host.begin("go").await;
    host.calls(&request, "c1", "spawn_agent", json!({"message": "count", "fork_context": true})).await;
    let request = host.root().await;
    let agent = text(&output_json(&request, "c1")["agent_id"]);
    let child = host.request(&agent).await;
    let lines = crate::delegation::prompt(&child);
    assert!(lines.contains(&"user: remember seven".to_owned()), "{lines:?}");
    assert_eq!(lines.last().map(String::as_str), Some("user: count"));
    let record = json!(host.records.as_ref().expect("records")[&agent]).to_string();
    assert!(record.contains("remember seven") && record.contains("count"), "{record}");
    host.ends(&child, "eight").await;
    server.kill().await;
}

/// The process ends between the end of a child and the news of it, and the host brings both records back.
#[tokio::test]
async fn an_end_that_nobody_told_is_told_once_when_the_host_has_brought_both() {
    for parent_first in [true, false] {
        let stage = Stage::new(json!([])).await;
        let (server, mut host) = Keeper::new(&stage, "runtime", true).await;
        let request = host.begin("go").await;
        host.calls(&request, "c1", "spawn_agent", json!({"message": "look"})).await;
        let request = host.root().await;
        let agent = text(&output_json(&request, "c1")["agent_id"]);
        let child = host.request(&agent).await;
        host.ends(&request, "later").await;
        host.ends(&child, "seen").await;
        let root = host.thread.clone();
        host.until_told(&root).await;
        server.kill().await;
        let record = host.records.as_mut().expect("records").get_mut(&root).expect("a record");
        let at = record.iter().position(|item| item.to_string().contains(NEWS)).expect("news");
        record.truncate(at);

        for said in ["and?", "and now?"] {
            let server = host.restart(&stage).await;
            let mut both = [root.clone(), agent.clone()];
            if !parent_first {
                both.reverse();
            }
            for thread in both {
                host.open(&thread).await;
            }
            host.until_told(&root).await;
            let request = host.begin(said).await;
            assert_eq!(news(&request).len(), 1, "{:?}", news(&request));
            assert!(news(&request)[0].contains(r#"{"completed":"seen"}"#), "{:?}", news(&request));
            host.ends(&request, "so").await;
            let record = &host.records.as_ref().expect("records")[&root];
            assert_eq!(record.iter().filter(|item| item.to_string().contains(NEWS)).count(), 1);
            server.kill().await;
        }
    }
}
