//! Which requests wait for which.

use serde_json::{Value, json};
use testkit::within;

use crate::app::{over_pipes, over_unix};
use crate::client::{Lines, Peer};

fn name(thread: &str, name: &str) -> Value {
    json!({"threadId": thread, "name": name})
}

#[tokio::test]
async fn requests_of_one_thread_run_in_order_and_others_do_not_wait() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let server = over_unix(&path).await;
    let mut client = Lines::connect(&path).await;
    let mut other = Lines::connect(&path).await;
    client.initialize(Value::Null).await;
    other.initialize(Value::Null).await;
    client.ask(1, "thread/name/set", name("a", "wait 1")).await;
    client.ask(2, "thread/name/set", name("a", "second")).await;
    // Both were read before the other connection asks, for its answer is asked for afterwards.
    client.call(3, "thread/name/set", name("b", "elsewhere")).await;
    client.call(4, "thread/loaded/list", json!({})).await;
    other.ask(1, "thread/name/set", name("a", "third")).await;
    other.call(2, "thread/loaded/list", json!({})).await;
    assert_eq!(server.app.log(), ["start wait 1", "start elsewhere", "end elsewhere"]);
    server.app.release("wait 1");
    assert_eq!(client.receive().await["id"], 1);
    assert_eq!(client.receive().await["id"], 2);
    assert_eq!(other.receive().await["id"], 1);
    assert_eq!(
        server.app.log()[3..],
        ["end wait 1", "start second", "end second", "start third", "end third"]
    );
}

#[tokio::test]
async fn notifications_of_a_client_are_carried_out_in_order() {
    let (mut client, server) = over_pipes(|_| {});
    client.initialize(json!({"experimentalApi": true})).await;
    for number in 0..50 {
        let params = json!({"delegationId": "d", "message": format!("{number}")});
        client.send(json!({"method": "delegation/progress", "params": params})).await;
    }
    client.send(json!({"method": "delegation/progress", "params": {"delegationId": 5}})).await;
    client.finish();
    assert_eq!(client.next().await, None);
    within("the server to end", server.ended).await.unwrap();
    let expected: Vec<String> = (0..50).map(|number| format!("heard {number}")).collect();
    assert_eq!(server.app.log(), expected);
}
