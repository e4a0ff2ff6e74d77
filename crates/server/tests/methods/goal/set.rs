//! Setting, reading and clearing a goal, and how the work on it ends.

use serde_json::{Value, json};
use testkit::{Stage, endless};

use super::{costly, reached, set, stands};

#[tokio::test]
async fn the_server_works_from_turn_to_turn_until_the_model_calls_it_done() {
    let steps = json!([{"text": "hello"}, costly("a first step", 100), reached("g1"), {"text": "reached"}]);
    let stage = Stage::new(steps).await;
    let (_server, mut client) = stage.open().await;
    let id = client.spoken_thread("hi").await;
    client.rest().await;
    let goal =
        set(&mut client, &id, json!({"objective": " Reach the shore. ", "tokenBudget": 100_000})).await;
    assert_eq!((&goal["objective"], &goal["status"]), (&json!("Reach the shore."), &json!("active")));
    let goal = stands(&mut client, "complete").await;
    assert!(goal["tokensUsed"].as_i64().expect("a number") >= 100, "{goal}");
    let read = client.ask("thread/read", json!({"threadId": id, "includeTurns": true})).await;
    let turns = read["thread"]["turns"].as_array().expect("turns").clone();
    assert_eq!(turns.len(), 3, "one of the user's and two for the goal");
    assert!(turns.iter().all(|turn| turn["status"] == "completed"));
    let input = stage.asked()[1]["input"].to_string();
    assert!(input.contains("Reach the shore.") && input.contains("<goal_context>"), "{input}");
    let offered = |at: usize| stage.asked()[at]["tools"].to_string().contains("update_goal");
    assert!(!offered(0) && offered(1) && offered(2), "offered while the goal is active");
    let got = client.ask("thread/goal/get", json!({"threadId": id})).await;
    assert_eq!(got["goal"]["status"], "complete");
    stage.assert_played();
}

#[tokio::test]
async fn a_spent_budget_ends_the_work() {
    let stage = Stage::new(json!([{"text": "hello"}, costly("one", 600), costly("two", 600)])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.spoken_thread("hi").await;
    set(&mut client, &id, json!({"objective": "x", "tokenBudget": 1_000})).await;
    let goal = stands(&mut client, "budgetLimited").await;
    assert_eq!(goal["tokensUsed"], 1_200);
    client.rest().await;
    stage.assert_played();
    // Active again without more to spend is no change.
    assert_eq!(set(&mut client, &id, json!({"status": "active"})).await["status"], "budgetLimited");
}

#[tokio::test]
async fn an_interrupt_pauses_the_goal_and_a_client_can_go_on() {
    let stage =
        Stage::new(json!([{"text": "hello"}, endless("part"), reached("g1"), {"text": "reached"}])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.spoken_thread("hi").await;
    client.rest().await;
    set(&mut client, &id, json!({"objective": "x"})).await;
    client.next_of("item/agentMessage/delta").await;
    client.ask("turn/interrupt", json!({"threadId": id, "turnId": ""})).await;
    stands(&mut client, "paused").await;
    assert_eq!(stage.asked().len(), 2);
    set(&mut client, &id, json!({"status": "active"})).await;
    stands(&mut client, "complete").await;
    stage.assert_played();
}

#[tokio::test]
async fn a_failed_turn_and_endless_talk_block_the_goal() {
    let fail = json!({"fail": {"status": 400, "body": {"error": {"message": "no"}}}});
    for steps in [vec![fail], vec![json!({"text": "words"}); 5]] {
        let count = steps.len();
        let stage = Stage::new(Value::Array(steps)).await;
        let (_server, mut client) = stage.open().await;
        let id = client.start_thread(json!({})).await;
        set(&mut client, &id, json!({"objective": "x"})).await;
        stands(&mut client, "blocked").await;
        client.rest().await;
        assert_eq!(stage.asked().len(), count);
    }
}

/// There is never a second turn: what the user says joins the one that works on the goal.
#[tokio::test]
async fn a_user_who_speaks_joins_the_turn_for_the_goal() {
    let stage = Stage::new(
        json!([{"text": "hello"}, {"text": "slowly", "delayMs": 300}, reached("g1"), {"text": "reached"}]),
    )
    .await;
    let (_server, mut client) = stage.open().await;
    let id = client.spoken_thread("hi").await;
    client.rest().await;
    set(&mut client, &id, json!({"objective": "x"})).await;
    let started = client.next_of("turn/started").await;
    let joined = client.start_turn(&id, "and hurry").await;
    assert_eq!(started["turn"]["id"], json!(joined));
    stands(&mut client, "complete").await;
    let read = client.ask("thread/read", json!({"threadId": id, "includeTurns": true})).await;
    assert_eq!(read["thread"]["turns"].as_array().map(Vec::len), Some(2));
    assert!(stage.asked()[2]["input"].to_string().contains("and hurry"));
}

#[tokio::test]
async fn a_goal_is_cleared_once_and_bad_ones_are_refused() {
    let stage = Stage::new(json!([{"text": "hello"}])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.spoken_thread("hi").await;
    let unset = json!({"threadId": id});
    assert_eq!(client.ask("thread/goal/get", unset.clone()).await["goal"], Value::Null);
    set(&mut client, &id, json!({"objective": "later", "status": "paused"})).await;
    assert_eq!(client.ask("thread/goal/clear", unset.clone()).await["cleared"], true);
    client.next_of("thread/goal/cleared").await;
    assert_eq!(client.ask("thread/goal/clear", unset.clone()).await["cleared"], false);
    for (fields, words) in [
        (json!({}), "no goal to change"),
        (json!({"objective": "  "}), "objective must not be empty"),
        (json!({"objective": "x".repeat(4_001)}), "4000 are allowed"),
        (json!({"objective": "x", "tokenBudget": 0}), "tokenBudget must be greater than 0"),
    ] {
        let mut params = json!({"threadId": id});
        params.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
        let refused = client.refused("thread/goal/set", params).await;
        assert!(refused.contains(words), "{refused}");
    }
    let memory = client.start_thread(json!({"ephemeral": true})).await;
    let refused = client.refused("thread/goal/set", json!({"threadId": memory, "objective": "x"})).await;
    assert!(refused.contains("ephemeral"), "{refused}");
    stage.assert_played();
}

#[tokio::test]
async fn a_fork_has_no_goal() {
    let stage = Stage::new(json!([{"text": "hello"}])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.spoken_thread("hi").await;
    set(&mut client, &id, json!({"objective": "x", "status": "paused"})).await;
    let forked = client.ask("thread/fork", json!({"threadId": id})).await["thread"]["id"].clone();
    assert_eq!(client.ask("thread/goal/get", json!({"threadId": forked})).await["goal"], Value::Null);
}

/// The page's example, as it is written there.
#[tokio::test]
async fn the_example_of_the_page_works() {
    let page = include_str!("../../../../../docs/goals.md");
    let example =
        page.split("```json\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
    let stage =
        Stage::new(json!([{"text": "hello"}, {"text": "one"}, reached("g1"), {"text": "reached"}])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.spoken_thread("hi").await;
    let request: Value = serde_json::from_str(&example.replace("THREAD", &id)).expect("JSON");
    client.ask(request["method"].as_str().expect("a method"), request["params"].clone()).await;
    stands(&mut client, "complete").await;
    stage.assert_played();
}
