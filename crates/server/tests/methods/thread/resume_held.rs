//! `thread/resume` and `thread/archive` of a thread that another process has open.

use serde_json::json;
use testkit::Stage;

#[tokio::test]
async fn a_thread_that_another_server_has_open_is_refused_with_its_holder() {
    let stage = Stage::new(json!([{"text": "hello"}])).await;
    let (_first, mut client) = stage.open().await;
    let id = client.spoken_thread("hi").await;
    let (_second, mut other) = stage.open().await;
    for method in ["thread/resume", "thread/archive"] {
        let asked = other.send(method, json!({"threadId": id})).await;
        let refused = other.outcome(asked).await.expect_err("it is held");
        assert_eq!(refused.code, -32600, "{method} {}", refused.message);
        let said = "is being written by";
        assert!(
            refused.message.contains(said) && refused.message.contains("stop that process"),
            "{}",
            refused.message
        );
    }
}
