//! Questions that servers ask in the middle of a call.

use serde_json::{Value, json};

use super::{ended, server, stage};

const ASKS: &str = "approval_policy = \"on-request\"\n";

async fn asked(tool: &str, answer: Value) -> (Value, String) {
    let keys = format!("{ASKS}{}", server("t", "plain", ""));
    let stage = stage(&[(tool, json!({}))], &keys).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"cwd": stage.cwd()})).await;
    client.start_turn(&id, "go").await;
    let question = client.next_of("mcpServer/elicitation/request").await;
    let read = client.ask("thread/read", json!({"threadId": id})).await;
    assert_eq!(read["thread"]["status"]["activeFlags"], json!(["waitingOnApproval"]));
    client.answer(&question, answer).await;
    let done = ended(&mut client, "call-1").await;
    assert_eq!(client.next_of("turn/completed").await["turn"]["status"], "completed");
    (question["params"].clone(), done["result"]["content"][0]["text"].as_str().expect("a text").to_owned())
}

#[tokio::test]
async fn a_form_is_filled_in() {
    let filled = json!({"action": "accept", "content": {"sure": true}, "_meta": null});
    let (question, told) = asked("mcp__t__ask", filled).await;
    assert_eq!((&question["mode"], &question["message"]), (&json!("form"), &json!("Sure?")));
    assert_eq!(question["requestedSchema"]["properties"], json!({"sure": {"type": "boolean"}}));
    assert_eq!(told, "answer: {\"action\": \"accept\", \"content\": {\"sure\": true}}");
}

#[tokio::test]
async fn a_no_and_a_bad_answer_are_no_yes() {
    for (given, expected) in [
        (json!({"action": "decline", "content": null, "_meta": null}), "answer: {\"action\": \"decline\"}"),
        (json!({"action": "cancel", "content": null, "_meta": null}), "answer: {\"action\": \"cancel\"}"),
        (json!({"action": "perhaps"}), "answer: {\"action\": \"decline\"}"),
    ] {
        let (_, told) = asked("mcp__t__ask", given).await;
        assert_eq!(told, expected);
    }
}

#[tokio::test]
async fn a_page_is_shown() {
    let (question, told) =
        asked("mcp__t__page", json!({"action": "accept", "content": null, "_meta": null})).await;
    assert_eq!(
        (&question["mode"], &question["url"], &question["elicitationId"]),
        (&json!("url"), &json!("https://example.com/login"), &json!("7"))
    );
    assert_eq!(told, "answer: {\"action\": \"accept\"}");
}

#[tokio::test]
async fn nobody_is_asked_where_nobody_wants_to_be() {
    let keys = format!("approval_policy = \"never\"\n{}", server("t", "plain", ""));
    let stage = stage(&[("mcp__t__ask", json!({})), ("mcp__t__sample", json!({}))], &keys).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"cwd": stage.cwd()})).await;
    client.start_turn(&id, "go").await;
    let done = ended(&mut client, "call-1").await;
    assert_eq!(done["result"]["content"][0]["text"], "answer: {\"action\": \"decline\"}");
    let refused = ended(&mut client, "call-2").await;
    assert!(
        refused["result"]["content"][0]["text"].as_str().expect("a text").contains("sampling is refused")
    );
}

#[tokio::test]
async fn an_interrupt_takes_the_question_back() {
    let keys = format!("{ASKS}{}", server("t", "plain", ""));
    let stage = stage(&[("mcp__t__ask", json!({}))], &keys).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"cwd": stage.cwd()})).await;
    let turn = client.start_turn(&id, "go").await;
    client.next_of("mcpServer/elicitation/request").await;
    client.ask("turn/interrupt", json!({"threadId": id, "turnId": turn})).await;
    assert_eq!(client.next_of("turn/completed").await["turn"]["status"], "interrupted");
    client.next_of("serverRequest/resolved").await;
    let read = client.ask("thread/read", json!({"threadId": id})).await;
    assert_eq!(read["thread"]["status"], json!({"type": "idle"}));
}
