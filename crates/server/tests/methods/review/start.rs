//! A review from its start to what the thread remembers of it.

use serde_json::{Value, json};
use testkit::{Stage, endless, kinds};

use super::{ANSWER, SHOWN, commit, last_input, review};

#[tokio::test]
async fn an_inline_review_is_a_turn_with_a_history_of_its_own() {
    let stage = Stage::new(json!([{"text": "base"}, {"text": ANSWER}, {"text": "after"}])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.spoken_thread("start").await;
    client.rest().await;
    let response = client.ask("review/start", json!({"threadId": id, "target": commit()})).await;
    let turn = response["turn"].clone();
    let turn_id = turn["id"].as_str().expect("an id").to_owned();
    assert_eq!(turn["items"][0]["id"], turn["id"]);
    assert_eq!(turn["items"][0]["content"][0]["text"], "commit 1234567: Tidy UI");
    let done = client.wait_for("turn/completed", |params| params["turn"]["id"] == turn["id"]).await;
    assert_eq!(done["turn"]["status"], "completed");

    let read = client.ask("thread/read", json!({"threadId": id, "includeTurns": true})).await;
    let reviewed = &read["thread"]["turns"][1];
    assert_eq!(kinds(reviewed), ["enteredReviewMode", "userMessage", "exitedReviewMode", "agentMessage"]);
    let items = reviewed["items"].as_array().expect("items");
    assert_eq!((&items[0]["id"], &items[2]["id"]), (&json!(turn_id), &json!(turn_id)));
    assert_eq!((&items[2]["review"], &items[3]["text"]), (&json!(SHOWN), &json!(SHOWN)));

    let asked = stage.asked();
    let input = asked[1]["input"].to_string();
    assert!(
        !input.contains("\"start\"") && input.contains("introduced by commit 1234567deadbeef"),
        "{input}"
    );
    assert_ne!(asked[1]["prompt_cache_key"], asked[0]["prompt_cache_key"]);
    let tools: Vec<_> =
        asked[1]["tools"].as_array().expect("tools").iter().map(|tool| &tool["name"]).collect();
    assert_eq!(json!(tools), json!(["exec_command", "write_stdin", "update_plan", "view_image"]));

    client.turn(&id, "next").await;
    let input = last_input(&stage);
    assert!(input.contains("\"start\"") && input.contains("Prefer X") && input.contains("<user_action>"));
    assert!(!input.contains("overall_correctness") && !input.contains("introduced by commit"), "{input}");
    stage.assert_played();
}

#[tokio::test]
async fn the_items_come_in_order_and_the_answer_of_the_reviewer_is_not_one() {
    let stage = Stage::new(json!([{"text": "base"}, {"text": ANSWER}])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.spoken_thread("start").await;
    client.rest().await;
    review(&mut client, &id, commit()).await;
    let mut told = Vec::new();
    loop {
        let message = client.next().await;
        let method = message["method"].as_str().expect("a method").to_owned();
        match message["params"]["item"]["type"].as_str() {
            Some(kind) => told.push(kind.to_owned()),
            None => told.push(method.clone()),
        }
        if method == "turn/completed" {
            break;
        }
    }
    let beside = ["thread/tokenUsage/updated", "account/rateLimits/updated", "thread/status/changed"];
    told.retain(|told| !beside.contains(&told.as_str()));
    told.dedup();
    let expected = [
        "turn/started",
        "enteredReviewMode",
        "userMessage",
        "exitedReviewMode",
        "agentMessage",
        "turn/completed",
    ];
    assert_eq!(told, expected);
}

#[tokio::test]
async fn each_target_becomes_a_prompt_and_an_empty_one_is_refused() {
    let targets = [
        (json!({"type": "uncommittedChanges"}), "untracked files"),
        (json!({"type": "baseBranch", "branch": "main"}), "git merge-base HEAD main"),
        (json!({"type": "commit", "sha": "abc"}), "introduced by commit abc"),
        (json!({"type": "custom", "instructions": " look at a.rs "}), "look at a.rs"),
    ];
    let stage = Stage::new(Value::Array(vec![json!({"text": "plain words"}); targets.len()])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({})).await;
    for (target, prompt) in targets {
        let turn_id = review(&mut client, &id, target).await;
        client.wait_for("turn/completed", |params| params["turn"]["id"] == *turn_id).await;
        assert!(last_input(&stage).contains(prompt), "{prompt}");
    }
    for (target, words) in [
        (json!({"type": "baseBranch", "branch": " "}), "branch must not be empty"),
        (json!({"type": "commit", "sha": ""}), "sha must not be empty"),
        (json!({"type": "custom", "instructions": "\n"}), "instructions must not be empty"),
    ] {
        for delivery in ["inline", "detached"] {
            let params = json!({"threadId": id, "target": target, "delivery": delivery});
            assert!(client.refused("review/start", params).await.contains(words));
        }
    }
}

#[tokio::test]
async fn a_detached_review_leaves_the_thread_as_it_is() {
    let stage = Stage::new(json!([{"text": "base"}, {"text": ANSWER}, {"text": "after"}])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.spoken_thread("start").await;
    client.rest().await;
    let params = json!({"threadId": id, "target": commit(), "delivery": "detached"});
    let response = client.ask("review/start", params).await;
    let other = response["reviewThreadId"].as_str().expect("an id").to_owned();
    assert_ne!(other, id);
    let started = client.wait_for("thread/started", |params| params["thread"]["id"] == *other).await;
    assert_eq!((&started["thread"]["turns"], &started["thread"]["preview"]), (&json!([]), &json!("start")));
    client.wait_for("turn/completed", |params| params["threadId"] == *other).await;
    let read = client.ask("thread/read", json!({"threadId": id, "includeTurns": true})).await;
    assert_eq!(read["thread"]["turns"].as_array().map(Vec::len), Some(1));
    let read = client.ask("thread/read", json!({"threadId": other, "includeTurns": true})).await;
    assert_eq!(kinds(&read["thread"]["turns"][1]).last(), Some(&"agentMessage"));
    client.turn(&id, "next").await;
    assert!(!last_input(&stage).contains("Prefer X"));
}

#[tokio::test]
async fn a_detached_review_may_do_no_more_than_its_thread() {
    let call = json!({"name": "exec_command", "callId": "call-1", "arguments": {"cmd": "touch /var/tmp/../tmp/x; touch ran"}});
    let stage = Stage::configured(
        json!([{"text": "base"}, {"call": call}, {"text": ANSWER}]),
        "approval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"",
    )
    .await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"cwd": stage.cwd(), "sandbox": "read-only"})).await;
    client.turn(&id, "start").await;
    let params = json!({"threadId": id, "target": commit(), "delivery": "detached"});
    let other = client.ask("review/start", params).await["reviewThreadId"].clone();
    client.wait_for("turn/completed", |params| params["threadId"] == other).await;
    assert!(!stage.cwd().join("ran").exists());
}

#[tokio::test]
async fn a_review_cannot_be_steered_and_can_be_stopped() {
    let stage = Stage::new(json!([{"text": "base"}, endless("part"), {"text": "after"}])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.spoken_thread("start").await;
    let turn_id = review(&mut client, &id, commit()).await;
    let input = json!([{"type": "text", "text": "more"}]);
    let steered = json!({"threadId": id, "input": input, "expectedTurnId": turn_id});
    let refused = format!("{:?}", client.request("turn/steer", steered).await.expect_err("refused"));
    assert!(refused.contains("cannot steer a review turn"), "{refused}");
    client.ask("turn/interrupt", json!({"threadId": id, "turnId": turn_id})).await;
    let done = client.wait_for("turn/completed", |params| params["turn"]["id"] == *turn_id).await;
    assert_eq!(done["turn"]["status"], "interrupted");
    let read = client.ask("thread/read", json!({"threadId": id, "includeTurns": true})).await;
    let items = &read["thread"]["turns"][1]["items"];
    assert_eq!(items[2]["review"], "Reviewer failed to output a response.");
    client.turn(&id, "next").await;
    assert!(last_input(&stage).contains("stopped before it had a result"));
}

#[tokio::test]
async fn a_review_takes_the_place_of_the_turn_that_runs() {
    let stage = Stage::new(json!([endless("part"), {"text": ANSWER}])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({})).await;
    let running = client.start_turn(&id, "start").await;
    client.next_of("item/agentMessage/delta").await;
    let turn_id = review(&mut client, &id, commit()).await;
    let ended = client.next_of("turn/completed").await;
    assert_eq!((&ended["turn"]["id"], &ended["turn"]["status"]), (&json!(running), &json!("interrupted")));
    let done = client.next_of("turn/completed").await;
    assert_eq!((&done["turn"]["id"], &done["turn"]["status"]), (&json!(turn_id), &json!("completed")));
}

/// The page's example, as it is written there.
#[tokio::test]
async fn the_example_of_the_page_works() {
    let page = include_str!("../../../../../docs/review.md");
    let example =
        page.split("```json\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
    let stage = Stage::new(json!([{"text": "base"}, {"text": ANSWER}])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.spoken_thread("start").await;
    let request: Value = serde_json::from_str(&example.replace("THREAD", &id)).expect("JSON");
    let method = request["method"].as_str().expect("a method");
    client.ask(method, request["params"].clone()).await;
    let exited =
        client.wait_for("item/completed", |params| params["item"]["type"] == "exitedReviewMode").await;
    assert_eq!(exited["item"]["review"], SHOWN);
    for line in SHOWN.lines() {
        assert!(page.contains(line), "the page does not show {line:?}");
    }
}
