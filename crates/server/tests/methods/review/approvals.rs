//! The automatic reviewer decides about what needs approval; whatever it does not clearly allow does not run.

use serde_json::{Value, json};
use testkit::{Stage, TestClient};

const REVIEWED: &str = "approval_policy = \"on-request\"\nsandbox_mode = \"read-only\"\n\
                        approvals_reviewer = \"guardian_subagent\"";

fn touching(id: &str) -> Value {
    let arguments =
        json!({"cmd": "touch ran", "sandbox_permissions": "require_escalated", "justification": "needed"});
    json!({"call": {"name": "exec_command", "callId": id, "arguments": arguments}})
}

fn verdict(score: u64) -> Value {
    let level = if score < 80 { "low" } else { "high" };
    let verdict = json!({"risk_level": level, "risk_score": score, "rationale": "seen", "evidence": []});
    json!({"text": verdict.to_string()})
}

async fn begun(stage: &Stage) -> (testkit::TestServer, TestClient, String) {
    let (server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"cwd": stage.cwd()})).await;
    client.start_turn(&id, "make the file").await;
    (server, client, id)
}

fn ran(stage: &Stage) -> bool {
    stage.cwd().join("ran").exists()
}

#[tokio::test]
async fn what_the_reviewer_allows_runs_and_nobody_is_asked() {
    let stage = Stage::configured(json!([touching("c1"), verdict(20), {"text": "done"}]), REVIEWED).await;
    let (_server, mut client, _) = begun(&stage).await;
    let started = client.next_of("item/autoApprovalReview/started").await;
    assert_eq!(
        (&started["targetItemId"], &started["review"]["status"]),
        (&json!("c1"), &json!("inProgress"))
    );
    let completed = client.next_of("item/autoApprovalReview/completed").await;
    assert_eq!(completed["review"]["status"], "approved");
    assert_eq!(
        (&completed["review"]["riskScore"], &completed["review"]["riskLevel"]),
        (&json!(20), &json!("low"))
    );
    assert_eq!(client.next_of("turn/completed").await["turn"]["status"], "completed");
    assert!(ran(&stage));
    let asked = &stage.asked()[1];
    let input = asked["input"].to_string();
    assert!(input.contains("make the file") && input.contains("touch ran"), "{input}");
    assert!(asked["tools"].as_array().is_none_or(Vec::is_empty), "the reviewer has no tools");
    assert_eq!(asked["text"]["format"]["type"], "json_schema");
}

#[tokio::test]
async fn whatever_is_no_clear_yes_runs_nothing() {
    let bad = [
        verdict(80),
        json!({"text": "go ahead"}),
        json!({"text": "{\"risk_score\": 1}"}),
        json!({"fail": {"status": 400, "body": {"error": {"message": "no"}}}}),
    ];
    for answer in bad {
        let stage = Stage::configured(json!([touching("c1"), answer, {"text": "done"}]), REVIEWED).await;
        let (_server, mut client, _) = begun(&stage).await;
        let completed = client.next_of("item/autoApprovalReview/completed").await;
        assert_eq!(completed["review"]["status"], "denied", "{answer}");
        let ended = client.wait_for("item/completed", |params| params["item"]["id"] == "c1").await;
        assert_eq!(ended["item"]["status"], "declined", "{answer}");
        assert_eq!(client.next_of("turn/completed").await["turn"]["status"], "completed", "{answer}");
        assert!(!ran(&stage), "{answer}");
        let input = stage.asked().last().expect("a request")["input"].to_string();
        assert!(input.contains("automatic reviewer refused it"), "{input}");
    }
}

#[tokio::test]
async fn three_refusals_in_a_row_end_the_turn() {
    let refused = |id: &str| [touching(id), verdict(95)];
    let steps: Vec<Value> = [refused("c1"), refused("c2"), refused("c3")].into_iter().flatten().collect();
    let stage = Stage::configured(Value::Array(steps), REVIEWED).await;
    let (_server, mut client, _) = begun(&stage).await;
    let done = client.next_of("turn/completed").await;
    assert_eq!(done["turn"]["status"], "failed");
    let message = done["turn"]["error"]["message"].as_str().expect("words");
    assert!(message.contains("refused 3 requests in a row"), "{message}");
    assert!(!ran(&stage));
    stage.assert_played();
}

#[tokio::test]
async fn a_stopped_turn_waits_for_no_verdict() {
    let stage = Stage::configured(json!([touching("c1"), testkit::endless("…")]), REVIEWED).await;
    let (_server, mut client, id) = begun(&stage).await;
    client.next_of("item/autoApprovalReview/started").await;
    client.ask("turn/interrupt", json!({"threadId": id, "turnId": ""})).await;
    let completed = client.next_of("item/autoApprovalReview/completed").await;
    assert_eq!(completed["review"]["status"], "aborted");
    assert_eq!(client.next_of("turn/completed").await["turn"]["status"], "interrupted");
    assert!(!ran(&stage));
}

#[tokio::test]
async fn without_the_setting_the_client_is_asked() {
    let keys = REVIEWED.replace("guardian_subagent", "user");
    let stage = Stage::configured(json!([touching("c1"), {"text": "done"}]), &keys).await;
    let (_server, mut client, _) = begun(&stage).await;
    let question = client.next_of("item/commandExecution/requestApproval").await;
    client.answer(&question, json!({"decision": "decline"})).await;
    client.next_of("turn/completed").await;
    assert!(!ran(&stage));
}
