//! `server/status`.

use serde_json::{Value, json};
use testkit::{Stage, within};

#[tokio::test]
async fn the_status_counts_what_there_is() {
    let keys = "approval_policy = \"untrusted\"\nsandbox_mode = \"danger-full-access\"";
    let call = json!({"call": {"name": "exec_command", "callId": "c1", "arguments": {"cmd": "touch made"}}});
    let stage = Stage::configured(json!([call, {"text": "done"}]), keys).await;
    let (_server, mut client) = stage.open().await;
    let read = client.ask("server/status", Value::Null).await;
    assert_eq!((&read["kind"], &read["host"]), (&json!("appServer"), &Value::Null));
    assert_eq!(
        (&read["processId"], &read["version"]),
        (&json!(std::process::id()), &json!(env!("CARGO_PKG_VERSION")))
    );
    assert_eq!((&read["isStopping"], &read["connections"]), (&json!(false), &json!(1)));
    let counts = |read: &Value| ["threadsLoaded", "turnsRunning", "waiting"].map(|name| read[name].clone());
    assert_eq!(counts(&read), [0, 0, 0]);
    assert!(read["memoryBytes"].as_u64().is_some_and(|bytes| bytes > 1 << 20), "{read}");
    let level = read["sandbox"]["level"].as_str().expect("a level");
    assert_eq!(read["sandbox"]["reason"].is_null(), level == "full", "{read}");

    let id = client.start_thread(json!({"cwd": stage.cwd()})).await;
    client.start_turn(&id, "make it").await;
    let question = client.next_of("item/commandExecution/requestApproval").await;
    assert_eq!(question["params"]["threadId"], json!(id));
    let read = client.ask("server/status", Value::Null).await;
    assert_eq!(counts(&read), [1, 1, 1]);
    client.ask("turn/interrupt", json!({"threadId": id, "turnId": ""})).await;
    client.next_of("turn/completed").await;
    let read = client.ask("server/status", Value::Null).await;
    assert_eq!(counts(&read), [1, 0, 0]);
}

#[tokio::test]
async fn every_connection_counts_as_long_as_it_is_open() {
    let stage = Stage::new(json!([])).await;
    let server = stage.listen();
    let mut first = server.connect().await;
    let second = server.connect().await;
    assert_eq!(first.ask("server/status", Value::Null).await["connections"], 2);
    drop(second);
    let forgotten = async { while first.ask("server/status", Value::Null).await["connections"] != 1 {} };
    within("the connection to be forgotten", forgotten).await;
}
