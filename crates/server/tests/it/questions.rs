//! The server's own requests.

use std::pin::pin;
use std::sync::Arc;

use oarlock_server::{AskError, AskTarget, Hub, HubAudience};
use protocol::{
    ChatgptAuthTokensRefresh, ChatgptAuthTokensRefreshParams, CommandExecutionApprovalDecision,
    CommandExecutionRequestApproval, CommandExecutionRequestApprovalParams,
    CommandExecutionRequestApprovalResponse, DynamicToolCall, DynamicToolCallParams, ServerNotification,
    ThreadId, ThreadStatus, ThreadStatusChangedNotification, Turn, TurnCompletedNotification, TurnStatus,
};
use runtime::Audience;
use serde_json::{Value, json};
use testkit::{until, within};
use tokio::task::JoinHandle;

use crate::app::{clients, delta};
use crate::client::{Lines, Peer};

fn approval(item: &str) -> CommandExecutionRequestApprovalParams {
    serde_json::from_value(json!({
        "threadId": "t", "turnId": "turn", "itemId": item, "command": "ls",
        "availableDecisions": ["accept", "cancel"],
        "skillMetadata": {"pathToSkillsMd": "/skill"},
        "operationId": "t:turn:item",
    }))
    .unwrap()
}

fn tool_call() -> DynamicToolCallParams {
    serde_json::from_value(json!({
        "threadId": "t", "turnId": "turn", "callId": "call", "tool": "x", "arguments": {},
    }))
    .unwrap()
}

type Answer = Result<CommandExecutionRequestApprovalResponse, AskError>;

/// Asks, and comes back when the question is open.
async fn ask(hub: &Arc<Hub>, item: &str) -> JoinHandle<Answer> {
    let before = hub.open_questions();
    let target = AskTarget::Thread(ThreadId::from("t"));
    let asking = tokio::spawn(hub.ask::<CommandExecutionRequestApproval>(target, approval(item)));
    until("the question is open", || hub.open_questions() != before).await;
    asking
}

fn decision(answer: &Answer) -> &CommandExecutionApprovalDecision {
    &answer.as_ref().unwrap().decision
}

fn resolved(id: i64) -> Value {
    json!({"method": "serverRequest/resolved", "params": {"threadId": "t", "requestId": id}})
}

fn completed() -> ServerNotification {
    let turn = Turn {
        id: "turn".into(),
        items: Vec::new(),
        status: TurnStatus::Interrupted,
        error: None,
        started_at: None,
        completed_at: None,
        duration_ms: None,
        plan: None,
    };
    ServerNotification::TurnCompleted(TurnCompletedNotification { thread_id: "t".into(), turn, cost: None })
}

fn idle() -> ServerNotification {
    let status = ThreadStatus::Idle;
    ServerNotification::ThreadStatusChanged(ThreadStatusChangedNotification { thread_id: "t".into(), status })
}

#[tokio::test]
async fn the_first_answer_wins_and_everybody_hears_of_it() {
    let (_folder, server, [mut first, mut second, mut stranger]) =
        clients([Value::Null, json!({"experimentalApi": true}), Value::Null]).await;
    let hub = &server.app.hub;
    first.join_quietly("t").await;
    second.join_quietly("t").await;
    let asking = ask(hub, "item").await;
    let stable = first.receive().await;
    assert_eq!(
        (&stable["id"], &stable["method"]),
        (&json!(0), &json!("item/commandExecution/requestApproval"))
    );
    assert_eq!(stable["params"]["availableDecisions"], json!(["accept", "cancel"]));
    assert_eq!((stable["params"].get("skillMetadata"), stable["params"].get("operationId")), (None, None));
    let full = second.receive().await;
    assert_eq!(full["params"]["skillMetadata"], json!({"pathToSkillsMd": "/skill"}));

    // A client that was not asked has no say, nor has the text of the number.
    stranger.send(json!({"id": 0, "result": {"decision": "accept"}})).await;
    stranger.call(5, "thread/loaded/list", json!({})).await;
    first.send(json!({"id": "0", "result": {"decision": "accept"}})).await;
    first.call(5, "thread/loaded/list", json!({})).await;
    assert_eq!(hub.open_questions(), 1);

    second.send(json!({"id": 0, "result": {"decision": "decline"}})).await;
    assert_eq!(second.receive().await, resolved(0));
    first.send(json!({"id": 0, "result": {"decision": "accept"}})).await;
    assert_eq!(first.receive().await, resolved(0));
    assert_eq!(decision(&asking.await.unwrap()), &CommandExecutionApprovalDecision::Decline);
    assert_eq!(stranger.call(6, "thread/loaded/list", json!({})).await["id"], 6);
}

#[tokio::test]
async fn what_is_no_usable_answer_is_told_to_the_asker() {
    let (_folder, server, [mut client]) = clients([Value::Null]).await;
    client.join_quietly("t").await;
    for (answer, is_expected) in [
        (
            json!({"error": {"code": -1, "message": "no"}}),
            (|error| matches!(error, AskError::Refused { error, .. } if error.message == "no"))
                as fn(&AskError) -> bool,
        ),
        (json!({"error": "badly made"}), |error| matches!(error, AskError::Refused { .. })),
        (json!({"result": {"decision": "perhaps"}}), |error| matches!(error, AskError::Unreadable(_))),
        (json!({"result": null}), |error| matches!(error, AskError::Unreadable(_))),
    ] {
        let asking = ask(&server.app.hub, "item").await;
        let id = client.receive().await["id"].clone();
        let mut message = answer.clone();
        message["id"] = id.clone();
        client.send(message).await;
        assert_eq!(client.receive().await, resolved(id.as_i64().unwrap()));
        let error = asking.await.unwrap().unwrap_err();
        assert!(is_expected(&error), "{answer} -> {error}");
    }
}

#[tokio::test]
async fn questions_wait_for_a_subscriber_and_are_sent_again_to_each_new_one() {
    let (folder, server, [mut first]) = clients([Value::Null]).await;
    let hub = &server.app.hub;
    let one = ask(hub, "one").await;
    let two = ask(hub, "two").await;
    first.join("t").await;
    for id in [0, 1] {
        assert_eq!(first.receive().await["id"], id);
    }
    assert_eq!(first.receive().await["id"], 1001);
    // The first leaves without an answer; a second one finds the questions as they were.
    drop(first);
    let mut second = Lines::connect(&folder.path().join("socket")).await;
    second.initialize(Value::Null).await;
    second.join("t").await;
    for id in [0, 1] {
        assert_eq!(second.receive().await["id"], id);
    }
    assert_eq!(second.receive().await["id"], 1001);
    second.send(json!({"id": 1, "result": {"decision": "accept"}})).await;
    assert_eq!(second.receive().await, resolved(1));
    second.send(json!({"id": 0, "result": {"decision": "cancel"}})).await;
    assert_eq!(second.receive().await, resolved(0));
    assert_eq!(decision(&two.await.unwrap()), &CommandExecutionApprovalDecision::Accept);
    assert_eq!(decision(&one.await.unwrap()), &CommandExecutionApprovalDecision::Cancel);
}

#[tokio::test]
async fn a_turn_takes_its_questions_with_it() {
    let (_folder, server, [mut client]) = clients([Value::Null]).await;
    let hub = &server.app.hub;
    let thread = ThreadId::from("t");
    client.join_quietly("t").await;
    let one = ask(hub, "one").await;
    let tool = tokio::spawn(hub.ask::<DynamicToolCall>(AskTarget::Thread(thread.clone()), tool_call()));
    assert_eq!(client.receive().await["id"], 0);
    assert_eq!(client.receive().await["method"], "item/tool/call");
    let two = ask(hub, "two").await;
    assert_eq!(client.receive().await["id"], 2);
    hub.notify_thread(&thread, completed()).await;
    assert_eq!(client.receive().await["method"], "turn/completed");
    assert_eq!(client.receive().await, resolved(0));
    assert_eq!(client.receive().await, resolved(2));
    for asking in [one, two] {
        assert!(matches!(asking.await.unwrap(), Err(AskError::TurnEnded)));
    }
    assert!(matches!(tool.await.unwrap(), Err(AskError::TurnEnded)));
    client.send(json!({"id": 0, "result": {"decision": "accept"}})).await;
    client.call(5, "thread/loaded/list", json!({})).await;
    assert_eq!(hub.open_questions(), 0);
}

#[tokio::test]
async fn a_question_that_is_taken_back_is_told_with_the_next_event() {
    let (_folder, server, [mut client]) = clients([Value::Null]).await;
    let hub = &server.app.hub;
    let thread = ThreadId::from("t");
    client.join_quietly("t").await;
    for (event, method) in [(completed(), "turn/completed"), (delta(&thread, "x"), "item/agentMessage/delta")]
    {
        let asking = ask(hub, "item").await;
        let id = client.receive().await["id"].as_i64().unwrap();
        asking.abort();
        assert!(asking.await.unwrap_err().is_cancelled());
        hub.notify_thread(&thread, idle()).await;
        hub.notify_thread(&thread, event).await;
        assert_eq!(client.receive().await["method"], "thread/status/changed");
        assert_eq!(client.receive().await["method"], method);
        assert_eq!(client.receive().await, resolved(id));
    }
}

#[tokio::test]
async fn an_unloaded_thread_leaves_without_a_word() {
    let (_folder, server, [mut client]) = clients([Value::Null]).await;
    client.join_quietly("t").await;
    let asking = ask(&server.app.hub, "item").await;
    assert_eq!(client.receive().await["id"], 0);
    server.app.hub.forget(&ThreadId::from("t"));
    assert!(matches!(asking.await.unwrap(), Err(AskError::Gone)));
    client.call(5, "thread/loaded/list", json!({})).await;
}

#[tokio::test]
async fn one_connection_can_be_asked_alone() {
    let (_folder, mut server, [mut host, mut other]) = clients([Value::Null, Value::Null]).await;
    let hub = server.app.hub.clone();
    host.join_quietly("t").await;
    let connection = hub.subscribers(&ThreadId::from("t"))[0];
    let target = AskTarget::Connection { connection, thread: Some("t".into()) };
    other.join_quietly("t").await;
    let asking = tokio::spawn(hub.ask::<DynamicToolCall>(target.clone(), tool_call()));
    assert_eq!(host.receive().await["id"], 0);
    other.send(json!({"id": 0, "result": {"contentItems": [], "success": true}})).await;
    other.call(5, "thread/loaded/list", json!({})).await;
    assert_eq!(hub.open_questions(), 1);
    drop(host);
    within("a connection to be gone", server.gone.recv()).await.unwrap();
    assert!(matches!(asking.await.unwrap(), Err(AskError::Gone)));
    assert!(matches!(hub.ask::<DynamicToolCall>(target, tool_call()).await, Err(AskError::Gone)));
}

#[tokio::test]
async fn the_runtime_asks_for_tools_and_logins_go_to_everyone() {
    let (_folder, server, [mut client, mut other]) = clients([Value::Null, Value::Null]).await;
    client.join_quietly("t").await;
    let audience = HubAudience(server.app.hub.clone());
    let calling = tokio::spawn(audience.call_tool(tool_call()));
    assert_eq!(client.receive().await["params"]["tool"], "x");
    client.send(json!({"id": 0, "result": {"contentItems": [], "success": true}})).await;
    assert!(calling.await.unwrap().unwrap().success);
    let calling = tokio::spawn(audience.call_tool(tool_call()));
    assert_eq!(client.receive().await["id"], 1);
    client.send(json!({"id": 1, "result": {"success": "yes"}})).await;
    assert_eq!(calling.await.unwrap().unwrap_err(), "dynamic tool response was invalid");

    let params: ChatgptAuthTokensRefreshParams =
        serde_json::from_value(json!({"reason": "unauthorized"})).unwrap();
    let mut asking = pin!(server.app.hub.ask::<ChatgptAuthTokensRefresh>(AskTarget::Everyone, params));
    tokio::select! {
        _ = &mut asking => panic!("nobody answered"),
        message = other.receive() => assert_eq!(message["id"], 2),
    }
    assert_eq!(client.receive().await["method"], "account/chatgptAuthTokens/refresh");
    other.send(json!({"id": 2, "error": {"code": 1, "message": "not me"}})).await;
    assert!(matches!(asking.await, Err(AskError::Refused { .. })));
    client.call(5, "thread/loaded/list", json!({})).await;
}
