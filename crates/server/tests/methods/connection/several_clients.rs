//! Several clients of one server, and the order in which each hears things.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use testkit::{ScriptedModel, Stage, text, turn};

#[tokio::test]
async fn each_client_has_its_own_opt_outs() {
    let stage = Stage::new(json!([{"text": "one two three four"}, {"text": "again"}])).await;
    let server = stage.listen();
    let deltas = json!({"optOutNotificationMethods": ["item/agentMessage/delta"]});
    let statuses = json!({"optOutNotificationMethods": ["thread/status/changed", "thread/started"]});
    let mut first = server.connect_with(deltas).await;
    let mut second = server.connect_with(statuses).await;
    let id = first.spoken_thread("hi").await;
    second.ask("thread/resume", json!({"threadId": id})).await;
    first.turn(&id, "more").await;
    second.wait_for("turn/completed", |params| params["threadId"] == json!(id)).await;
    let (first, second) = (first.rest().await, second.rest().await);
    let has = |heard: &[String], method: &str| heard.iter().any(|word| word == method);
    assert!(!has(&first, "item/agentMessage/delta") && has(&second, "item/agentMessage/delta"));
    assert!(has(&first, "thread/status/changed") && !has(&second, "thread/status/changed"));
    assert!(has(&first, "thread/started") && !has(&second, "thread/started"));
    assert!(has(&first, "item/completed") && has(&second, "item/completed"));
}

#[tokio::test]
async fn only_subscribers_hear_of_turns_and_everyone_of_threads() {
    let stage = Stage::new(json!([{"text": "hello"}])).await;
    let server = stage.listen();
    let (mut first, mut second) = (server.connect().await, server.connect().await);
    let id = first.spoken_thread("hi").await;
    let heard = second.rest_whole().await;
    let methods: Vec<&str> = heard.iter().filter_map(|message| message["method"].as_str()).collect();
    assert_eq!(methods, ["thread/started", "thread/status/changed", "thread/status/changed"]);
    assert_eq!(heard[0]["params"]["thread"]["id"], json!(id));
}

#[tokio::test]
async fn equal_request_ids_of_two_clients_do_not_mix() {
    let stage = Stage::new(json!([])).await;
    let server = stage.listen();
    let (mut first, mut second) = (server.connect().await, server.connect().await);
    let one = first.send("model/list", json!({"limit": 1})).await;
    let two = second.send("experimentalFeature/list", json!({"limit": 2})).await;
    assert_eq!(one, two);
    let one = first.outcome(one).await.expect("models");
    let two = second.outcome(two).await.expect("features");
    assert!(one["data"][0].get("isDefault").is_some() && two["data"].as_array().map(Vec::len) == Some(2));
}

/// Both clients open threads at the same time, so that each opening overlaps with openings of the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_provider_is_told_the_client_that_opened_the_thread() {
    const ROUNDS: usize = 8;
    let stage = Stage::new(json!([])).await;
    let mut model = ScriptedModel::answering("", json!({"id": "r1"})).await;
    stage.configure_port(model.port(), "");
    let server = stage.listen();
    let mut clients = Vec::new();
    for name in ["first_client", "second_client"] {
        let mut client = server.connect_raw().await;
        let params = json!({"clientInfo": {"name": name, "version": "1"}});
        // The model has headers in lower case.
        let agent = text(&client.ask("initialize", params).await["userAgent"]).to_lowercase();
        assert!(agent.ends_with(&format!("({name}; 1)")), "{agent}");
        clients.push((agent, client));
    }
    for _ in 0..ROUNDS {
        let mut sent = Vec::new();
        for (_, client) in &mut clients {
            sent.push(client.send("thread/start", json!({"cwd": stage.cwd()})).await);
        }
        let mut threads = Vec::new();
        for ((_, client), request) in clients.iter_mut().zip(sent) {
            threads.push(text(&client.outcome(request).await.expect("a thread")["thread"]["id"]));
        }
        for ((agent, client), thread) in clients.iter_mut().zip(threads) {
            client.turn(&thread, "hi").await;
            let request = model.of(&thread).await;
            assert_eq!(request.header("originator"), agent.split('/').next());
            assert_eq!(request.header("user-agent"), Some(agent.as_str()));
        }
    }
}

/// Each thread's events, whatever happens in others at the same time.
#[tokio::test]
async fn events_of_a_thread_keep_their_order() {
    const THREADS: usize = 8;
    let words = "a b c d e f g h i j k l m n o p";
    let stage = Stage::new(Value::Array(vec![json!({"text": words}); THREADS * 2])).await;
    let (_server, mut client) = stage.open().await;
    let mut threads = Vec::new();
    for _ in 0..THREADS {
        threads.push(client.start_thread(json!({})).await);
    }
    client.rest().await;
    for round in 0..2 {
        for id in &threads {
            client.send("turn/start", turn(id, &format!("round {round}"))).await;
        }
        for id in &threads {
            client.wait_for("turn/completed", |params| params["threadId"] == json!(id)).await;
        }
    }
    let mut by_thread: BTreeMap<String, Vec<(String, Value)>> = BTreeMap::new();
    for message in client.rest_whole().await {
        if let (Some(id), Some(method)) = (message["params"]["threadId"].as_str(), message["method"].as_str())
        {
            by_thread.entry(id.to_owned()).or_default().push((method.to_owned(), message["params"].clone()));
        }
    }
    assert_eq!(by_thread.len(), THREADS);
    for events in by_thread.values() {
        let mut open: Option<(Value, String)> = None;
        let mut turns = 0;
        for (method, params) in events {
            match method.as_str() {
                "turn/started" => turns += 1,
                "item/started" => {
                    assert!(open.is_none(), "an item began before another ended");
                    open = Some((params["item"]["id"].clone(), String::new()));
                }
                "item/agentMessage/delta" => {
                    let (id, text) = open.as_mut().expect("an item that began");
                    assert_eq!(*id, params["itemId"]);
                    text.push_str(params["delta"].as_str().expect("text"));
                }
                "item/completed" => {
                    let (id, text) = open.take().expect("an item that began");
                    assert_eq!(id, params["item"]["id"]);
                    if params["item"]["type"] == "agentMessage" {
                        assert_eq!(text, words);
                    }
                }
                _ => {}
            }
        }
        assert_eq!((turns, open), (2, None));
    }
    stage.assert_played();
}

/// Many turns in a row: what follows from a request never comes before its answer.
#[tokio::test]
async fn notifications_follow_their_answers() {
    let stage = Stage::new(Value::Array(vec![json!({"text": "ok"}); 10])).await;
    let (_server, mut client) = stage.open().await;
    client.transcript();
    for _ in 0..10 {
        client.spoken_thread("hi").await;
    }
    let heard = client.transcript();
    let pairs = [("thread/started", "= thread/start"), ("turn/started", "= turn/start")];
    for (told, answer) in pairs {
        let (mut answers, mut seen) = (0, 0);
        for word in &heard {
            answers += usize::from(word == answer);
            seen += usize::from(word == told);
            assert!(seen <= answers, "{told} came before {answer}");
        }
        assert_eq!((answers, seen), (10, 10));
    }
}

#[tokio::test]
async fn a_bad_line_is_answered_and_the_connection_lives() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open().await;
    for (line, code) in [("{nonsense", -32700), ("[1]", -32600), ("{\"id\":1.5,\"method\":\"x\"}", -32600)] {
        client.send_line(line).await;
        let error = client.next_error().await;
        assert_eq!(error["error"]["code"], code, "{line}: {error}");
    }
    client.ask("model/list", json!({})).await;
}
