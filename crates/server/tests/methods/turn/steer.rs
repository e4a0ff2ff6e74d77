//! `turn/steer`.

use serde_json::json;
use testkit::{Stage, UNKNOWN_THREAD, told, turn};

use super::{asking, found, steer, waiting};

#[tokio::test]
async fn steering_needs_the_turn_that_runs() {
    let stage = Stage::new(asking()).await;
    let (_server, mut client) = stage.open().await;
    let idle = client.start_thread(json!({})).await;
    let (id, turn_id, _) = waiting(&mut client).await;
    let cases = [
        (steer(UNKNOWN_THREAD, "x", "t"), format!("thread not found: {UNKNOWN_THREAD}")),
        (steer(&idle, "x", "t"), "no active turn to steer".to_owned()),
        (steer(&id, "x", ""), "expectedTurnId must not be empty".to_owned()),
        (steer(&id, "x", "t"), format!("expected active turn id `t` but found `{turn_id}`")),
        (
            json!({"threadId": id, "input": [], "expectedTurnId": turn_id}),
            "input must not be empty".to_owned(),
        ),
    ];
    for (params, expected) in cases {
        assert_eq!(client.refused("turn/steer", params).await, expected);
    }
}

#[tokio::test]
async fn steered_words_join_the_turn_at_the_next_request() {
    for method in ["turn/steer", "turn/start"] {
        let stage = Stage::new(asking()).await;
        let (_server, mut client) = stage.open().await;
        let (id, turn_id, question) = waiting(&mut client).await;
        let answered = match method {
            "turn/steer" => client.ask(method, steer(&id, "and quickly", &turn_id)).await["turnId"].clone(),
            // While a turn runs it is the same, and the answer is the turn that was joined.
            _ => client.ask(method, turn(&id, "and quickly")).await["turn"]["id"].clone(),
        };
        assert_eq!(answered, json!(turn_id), "{method}");
        client.answer(&question, found()).await;
        let ended = client.next_of("turn/completed").await;
        assert_eq!(ended["turn"]["id"], json!(turn_id));
        client.item("userMessage").await;
        let said = client.wait_for("item/completed", |params| params["item"]["type"] == "userMessage").await;
        assert_eq!(
            (&said["turnId"], &said["item"]["content"][0]["text"]),
            (&json!(turn_id), &json!("and quickly"))
        );
        let asked = stage.asked();
        assert!(!asked[0]["input"].to_string().contains("and quickly"));
        assert!(asked[1]["input"].to_string().contains("and quickly"), "{method}");
        let heard = client.rest().await;
        assert!(!heard.iter().any(|method| method == "turn/completed"), "{heard:?}");
        let read = client.ask("thread/read", json!({"threadId": id, "includeTurns": true})).await;
        assert_eq!(told(&read["thread"]), ["completed: look it up"]);
    }
}
