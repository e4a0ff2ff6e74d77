//! Whatever comes over the line: every line has a defined outcome, and none ends the connection.

use std::collections::BTreeMap;

use oarlock_server::ExitReason;
use serde_json::{Value, json};
use testkit::within;

use crate::app::over_pipes;
use crate::client::Peer;

#[tokio::test]
async fn a_bad_line_gets_one_error_and_the_next_one_is_read() {
    let (mut client, _server) = over_pipes(|options| options.max_line_bytes = 300_000);
    client.initialize(Value::Null).await;
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth)).into_bytes();
    let deep_params = format!(
        r#"{{"id":4,"method":"thread/loaded/list","params":{{"cursor":{}1{}}}}}"#,
        "[".repeat(200),
        "]".repeat(200)
    );
    let cases: Vec<(Vec<u8>, i64, Value)> = vec![
        (b"{not json}".to_vec(), -32700, Value::Null),
        (br#"{"id":3,"method":"thread/loaded/list","params":{]}"#.to_vec(), -32700, json!(3)),
        (br#"{"id":4}"#.to_vec(), -32600, json!(4)),
        (br#"[{"id":4,"method":"account/logout"}]"#.to_vec(), -32600, Value::Null),
        (br#"{"id":null,"method":"account/logout"}"#.to_vec(), -32600, Value::Null),
        (br#"{"id":1.5,"method":"account/logout"}"#.to_vec(), -32600, Value::Null),
        (br#"{"id":9223372036854775808,"method":"account/logout"}"#.to_vec(), -32600, Value::Null),
        (br#"{"id":{},"method":"account/logout"}"#.to_vec(), -32600, Value::Null),
        (deep(200), -32700, Value::Null),
        (deep(100_000), -32700, Value::Null),
        (deep_params.into_bytes(), -32700, json!(4)),
        (b"{\"id\":5,\"method\":\"\xff\"}".to_vec(), -32700, json!(5)),
        (
            br#"{"id":6,"method":"thread/loaded/list","params":{"cursor":"\ud800"}}"#.to_vec(),
            -32700,
            json!(6),
        ),
        (b"{\"id\":7,\"method\":\"account/logout\"}\0".to_vec(), -32700, json!(7)),
        (br#"{"id":8,"method":"thread/loaded/list","params":{"limit":1e999}}"#.to_vec(), -32600, json!(8)),
        (
            br#"{"id":8,"method":"thread/loaded/list","params":{"limit":4294967296}}"#.to_vec(),
            -32600,
            json!(8),
        ),
        ([br#"{"id":9,"x":""#.to_vec(), vec![b'x'; 400_000], b"\"}".to_vec()].concat(), -32600, json!(9)),
    ];
    for (line, code, id) in cases {
        client.write(&[line.as_slice(), b"\n"].concat()).await;
        let answer = client.receive().await;
        let shown = String::from_utf8_lossy(&line[..line.len().min(80)]).into_owned();
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &id), "{shown} -> {answer}");
        assert!(answer.to_string().len() < 1024, "{shown}");
        assert_eq!(client.call(99, "thread/loaded/list", json!({})).await["result"]["data"], json!([]));
    }
}

#[tokio::test]
async fn what_needs_no_answer_gets_none() {
    let (mut client, server) = over_pipes(|_| {});
    client.initialize(Value::Null).await;
    for line in [
        "",
        "   ",
        "\r",
        r#"{"method":"initialized"}"#,
        r#"{"method":"no/such","params":[1]}"#,
        r#"{"method":"delegation/progress","params":{"delegationId":"d"}}"#,
        r#"{"id":77,"result":{}}"#,
        r#"{"id":77,"error":{"code":1,"message":"m"}}"#,
        r#"{"id":null,"error":{"code":1,"message":"m"}}"#,
        r#"{"id":"text","error":"bad"}"#,
    ] {
        client.write(format!("{line}\n").as_bytes()).await;
    }
    client.call(1, "thread/loaded/list", json!({})).await;
    // A stable connection may not send it.
    assert_eq!(server.app.log(), Vec::<String>::new());
}

#[tokio::test]
async fn a_line_may_come_in_pieces_with_marks_and_line_breaks_of_other_systems() {
    let (mut client, _server) = over_pipes(|_| {});
    client.initialize(Value::Null).await;
    client.write(b"\xef\xbb\xbf{\"id\":1,\"jsonrpc\":\"2.0\",\"meth").await;
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    client.write(b"od\":\"account/logout\",\"trace\":{\"traceparent\":\"x\"}}\r\n").await;
    assert_eq!(client.receive().await, json!({"id": 1, "result": {}}));
    client.write(b"{\"id\":2,\"method\":\"account/logout\"}").await;
    client.finish();
    assert_eq!(client.receive().await, json!({"id": 2, "result": {}}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_request_of_a_burst_is_answered_once() {
    const REQUESTS: i64 = 20_000;
    let (mut client, server) = over_pipes(|_| {});
    client.initialize(Value::Null).await;
    let methods = ["thread/loaded/list", "thread/name/set", "thread/archive", "no/such"];
    let burst: String = (0..REQUESTS)
        .map(|id| {
            let method = methods[usize::try_from(id % 97).unwrap().min(3)];
            let params = json!({"threadId": format!("t{}", id % 5), "name": "n"});
            json!({"id": id, "method": method, "params": params}).to_string() + "\n"
        })
        .collect();
    let mut output = client.output.take().unwrap();
    let writing = tokio::spawn(async move {
        tokio::io::AsyncWriteExt::write_all(&mut output, burst.as_bytes()).await.unwrap();
    });
    let mut answers: BTreeMap<i64, usize> = BTreeMap::new();
    while let Some(answer) = within("the next message or the end", client.next()).await {
        *answers.entry(answer["id"].as_i64().unwrap()).or_default() += 1;
    }
    assert_eq!(answers.len(), usize::try_from(REQUESTS).unwrap());
    assert!(answers.values().all(|count| *count == 1));
    writing.await.unwrap();
    assert_eq!(within("the server to end", server.ended).await.unwrap(), ExitReason::EndOfInput);
}

#[tokio::test]
async fn a_handler_that_panics_or_forgets_is_answered_for() {
    let (mut client, _server) = over_pipes(|_| {});
    client.initialize(Value::Null).await;
    for (method, params) in
        [("thread/archive", json!({"threadId": "t"})), ("gitDiffToRemote", json!({"cwd": "/"}))]
    {
        let answer = client.call(1, method, params).await;
        assert_eq!(answer["error"]["code"], -32603, "{answer}");
    }
    // The thread's lane is free again.
    let params = json!({"threadId": "t", "name": "n"});
    assert_eq!(client.call(2, "thread/name/set", params).await["result"], json!({}));
}

#[tokio::test]
async fn two_requests_under_one_id_are_both_answered() {
    let (mut client, server) = over_pipes(|_| {});
    client.initialize(Value::Null).await;
    client.ask(1, "thread/name/set", json!({"threadId": "t", "name": "wait"})).await;
    client.ask(1, "thread/loaded/list", json!({})).await;
    assert_eq!(client.receive().await["result"]["data"], json!([]));
    server.app.release("wait");
    assert_eq!(client.receive().await, json!({"id": 1, "result": {}}));
}

#[tokio::test]
async fn more_than_the_process_can_do_is_refused_as_overload() {
    let (mut client, server) = over_pipes(|options| options.max_requests = 1);
    client.initialize(Value::Null).await;
    client.ask(1, "thread/name/set", json!({"threadId": "t", "name": "wait"})).await;
    let refused = client.call(2, "thread/loaded/list", json!({})).await;
    assert_eq!(refused["error"], json!({"code": -32001, "message": "Server overloaded; retry later."}));
    server.app.release("wait");
    assert_eq!(client.receive().await, json!({"id": 1, "result": {}}));
}

#[tokio::test]
async fn large_requests_wait_for_each_other() {
    let (mut client, server) = over_pipes(|options| options.max_request_bytes = 1000);
    client.initialize(Value::Null).await;
    let large = format!("wait {}", "x".repeat(5000));
    client.ask(1, "thread/name/set", json!({"threadId": "t", "name": large})).await;
    client.ask(2, "thread/loaded/list", json!({})).await;
    server.app.release(&large);
    assert_eq!(client.receive().await["id"], 1);
    assert_eq!(client.receive().await["id"], 2);
}
