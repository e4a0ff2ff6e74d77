//! Tools that are not read-only ask; an approval lasts as long as it says.

use serde_json::{Value, json};
use testkit::Stage;

use super::{ended, heard, output, server, stage};

const ASKS: &str = "approval_policy = \"on-request\"\nsandbox_mode = \"read-only\"\n";
const QUESTION: &str = "mcpServer/elicitation/request";

async fn writing(calls: usize, keys: &str) -> Stage {
    let calls = vec![("mcp__t__write", json!({"text": "x"})); calls];
    stage(&calls, &format!("{ASKS}{}", server("t", "plain", keys))).await
}

fn answer(action: &str, persist: Option<&str>) -> Value {
    json!({"action": action, "content": null, "_meta": persist.map(|persist| json!({"persist": persist}))})
}

#[tokio::test]
async fn a_yes_is_for_one_call() {
    let stage = writing(2, "").await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"cwd": stage.cwd()})).await;
    client.start_turn(&id, "go").await;
    let question = client.next_of(QUESTION).await;
    let params = &question["params"];
    assert_eq!((&params["serverName"], &params["mode"]), (&json!("t"), &json!("form")));
    assert_eq!(params["requestedSchema"], json!({"type": "object", "properties": {}}));
    let meta = &params["_meta"];
    assert_eq!(meta["codex_approval_kind"], "mcp_tool_call");
    assert_eq!(
        (&meta["persist"], &meta["tool_params"]),
        (&json!(["session", "always"]), &json!({"text": "x"}))
    );
    let read = client.ask("thread/read", json!({"threadId": id})).await;
    assert_eq!(read["thread"]["status"]["activeFlags"], json!(["waitingOnApproval"]));
    assert!(!heard(&stage).contains("call write"));
    client.answer(&question, answer("accept", None)).await;
    assert_eq!(ended(&mut client, "call-1").await["status"], "completed");
    let question = client.next_of(QUESTION).await;
    client.answer(&question, answer("decline", None)).await;
    let declined = ended(&mut client, "call-2").await;
    assert_eq!(declined["status"], "failed");
    assert_eq!(client.next_of("turn/completed").await["turn"]["status"], "completed");
    assert_eq!(heard(&stage).matches("call write").count(), 1);
    assert!(output(&stage, "call-2").to_string().contains("did not allow"));
}

#[tokio::test]
async fn a_yes_for_the_session_is_not_asked_for_again() {
    let stage = writing(2, "").await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"cwd": stage.cwd()})).await;
    client.start_turn(&id, "go").await;
    let question = client.next_of(QUESTION).await;
    client.answer(&question, answer("accept", Some("session"))).await;
    assert_eq!(client.next_of("turn/completed").await["turn"]["status"], "completed");
    assert_eq!(heard(&stage).matches("call write").count(), 2);
}

#[tokio::test]
async fn a_yes_for_good_is_written_down() {
    let stage = writing(1, "").await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"cwd": stage.cwd()})).await;
    client.start_turn(&id, "go").await;
    let question = client.next_of(QUESTION).await;
    client.answer(&question, answer("accept", Some("always"))).await;
    assert_eq!(client.next_of("turn/completed").await["turn"]["status"], "completed");
    let config = std::fs::read_to_string(stage.home().join("config.toml")).expect("readable");
    assert!(config.contains("[mcp_servers.t.tools.write]\napproval_mode = \"approve\""), "{config}");
}

#[tokio::test]
async fn configuration_decides_who_is_asked() {
    for (keys, is_asked) in
        [("tools.write.approval_mode = \"approve\"", false), ("tools.write.approval_mode = \"prompt\"", true)]
    {
        let stage = writing(1, keys).await;
        let (_server, mut client) = stage.open().await;
        let id = client.start_thread(json!({"cwd": stage.cwd()})).await;
        client.start_turn(&id, "go").await;
        if is_asked {
            let question = client.next_of(QUESTION).await;
            assert_eq!(question["params"]["_meta"]["persist"], json!(null));
            client.answer(&question, answer("cancel", None)).await;
        }
        assert_eq!(client.next_of("turn/completed").await["turn"]["status"], "completed");
        assert_eq!(heard(&stage).contains("call write"), !is_asked, "{keys}");
    }
}
