//! Commands that are heard and written to while they run.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Stage, TestClient, until};

use super::{CommandClient, DELTA, NO_WALLS, answer, bytes, open, script, written};

fn streamed(id: &str) -> Value {
    json!({"processId": id, "streamStdoutStderr": true})
}

fn both_ways(id: &str) -> Value {
    json!({"processId": id, "streamStdin": true, "streamStdoutStderr": true})
}

#[tokio::test]
async fn output_comes_before_the_answer_and_not_in_it() {
    let (_stage, _server, mut client) = open().await;
    client.transcript();
    let ended = client.exec(script("echo out; echo err >&2; exit 3", &streamed("p"))).await;
    assert_eq!(ended, answer(3, "", ""));
    assert_eq!(client.transcript(), [DELTA, DELTA, "= command/exec"]);
    let mut deltas = [client.next_of(DELTA).await, client.next_of(DELTA).await];
    deltas.sort_by_key(|delta| delta["stream"].to_string());
    let delta = |stream: &str, text: &str| json!({"processId": "p", "stream": stream, "deltaBase64": super::encode(text), "capReached": false});
    assert_eq!(deltas, [delta("stderr", "err\n"), delta("stdout", "out\n")]);
}

#[tokio::test]
async fn bytes_arrive_as_they_are() {
    let (_stage, _server, mut client) = open().await;
    client.exec(script("printf '\\377\\0\\033€'", &streamed("p"))).await;
    assert_eq!(client.heard("p", "stdout").await.0, b"\xff\0\x1b\xe2\x82\xac");
}

#[tokio::test]
async fn what_is_written_is_read_in_order_and_then_ends() {
    let (_stage, _server, mut client) = open().await;
    // Written at once, without waiting for the command to run.
    let running =
        client.send("command/exec", json!({"command": ["cat"], "processId": "p", "streamStdin": true})).await;
    let mut expected = String::new();
    let mut writes = Vec::new();
    for number in 0..100 {
        let line = format!("line {number}\n");
        writes.push(client.send("command/exec/write", written("p", &line)).await);
        expected += &line;
    }
    let last = json!({"processId": "p", "deltaBase64": super::encode("end"), "closeStdin": true});
    writes.push(client.send("command/exec/write", last).await);
    for write in writes {
        assert_eq!(client.outcome(write).await, Ok(json!({})));
    }
    assert_eq!(client.outcome(running).await, Ok(answer(0, &(expected + "end"), "")));
}

/// A command may end as soon as it has what it wanted, right before its input is closed.
#[tokio::test]
async fn bytes_that_were_taken_are_no_error_when_the_command_has_ended_since() {
    let (_stage, _server, mut client) = open().await;
    for round in 0..200 {
        let command = json!({"command": ["head", "-c", "3"], "processId": "p", "streamStdin": true});
        let running = client.send("command/exec", command).await;
        let last = json!({"processId": "p", "deltaBase64": super::encode("end"), "closeStdin": true});
        let write = client.send("command/exec/write", last).await;
        assert_eq!(client.outcome(write).await, Ok(json!({})), "round {round}");
        assert_eq!(client.outcome(running).await, Ok(answer(0, "end", "")), "round {round}");
    }
}

#[tokio::test]
async fn a_conversation_goes_both_ways() {
    let (_stage, _server, mut client) = open().await;
    let running =
        client.send("command/exec", script("while read x; do echo \"<$x>\"; done", &both_ways("p"))).await;
    for word in ["one", "two"] {
        client.ask("command/exec/write", written("p", &format!("{word}\n"))).await;
        assert_eq!(client.hear_until("p", "\n").await, format!("<{word}>\n"));
    }
    client.ask("command/exec/write", json!({"processId": "p", "closeStdin": true})).await;
    assert_eq!(client.outcome(running).await.expect("it ends")["stdout"], "");
}

#[tokio::test]
async fn at_the_cap_the_rest_is_dropped_and_the_command_goes_on() {
    let (stage, _server, mut client) = open().await;
    let mut params = script(
        "printf abcdef; printf ghi; head -c 300000 /dev/zero; printf err >&2; touch went-on",
        &streamed("p"),
    );
    params["outputBytesCap"] = json!(4);
    params["cwd"] = json!(stage.cwd());
    assert_eq!(client.exec(params).await, answer(0, "", ""));
    assert!(stage.cwd().join("went-on").exists());
    let all = client.rest_whole().await;
    let of = |stream: &str| -> Vec<(Vec<u8>, Value)> {
        let deltas = all.iter().map(|message| &message["params"]).filter(|delta| delta["stream"] == stream);
        deltas.map(|delta| (bytes(delta), delta["capReached"].clone())).collect()
    };
    assert_eq!(of("stdout"), [(b"abcd".to_vec(), json!(true))]);
    assert_eq!(of("stderr"), [(b"err".to_vec(), json!(false))]);
}

#[tokio::test]
async fn with_no_room_at_all_the_cap_is_told_once() {
    let (_stage, _server, mut client) = open().await;
    let mut params = script("echo a; echo b", &streamed("p"));
    params["outputBytesCap"] = json!(0);
    client.exec(params).await;
    assert_eq!(client.heard("p", "stdout").await, (Vec::new(), vec![true]));
}

#[tokio::test]
async fn small_writes_become_few_messages() {
    let (_stage, _server, mut client) = open().await;
    let one_by_one = "i=0; while [ $i -lt 2000 ]; do printf x; i=$((i+1)); done";
    client.exec(script(one_by_one, &streamed("p"))).await;
    let (all, caps) = client.heard("p", "stdout").await;
    assert_eq!(all, [b'x'; 2000]);
    assert!(caps.len() < 500, "{} messages", caps.len());
}

#[tokio::test]
async fn who_opted_out_hears_nothing() {
    let stage = Stage::configured(json!([]), NO_WALLS).await;
    let (_server, mut client) = stage.open_raw(None);
    client.initialize(json!({"optOutNotificationMethods": [DELTA]})).await;
    let ended = client.exec(script("head -c 3000000 /dev/zero", &streamed("p"))).await;
    assert_eq!(ended, answer(0, "", ""));
    assert!(!client.rest().await.contains(&DELTA.to_owned()));
}

#[tokio::test]
async fn a_command_that_does_not_read_holds_up_nothing_else() {
    let (_stage, _server, mut client) = open().await;
    let running = client.send("command/exec", script("exec sleep 1000", &both_ways("p"))).await;
    let piece = "x".repeat(1 << 20);
    let mut writes = Vec::new();
    for _ in 0..12 {
        writes.push(client.send("command/exec/write", written("p", &piece)).await);
    }
    client.ask("model/list", json!({})).await;
    // Input that does not fit is refused at once; the rest when the command ends.
    client.ask("command/exec/terminate", json!({"processId": "p"})).await;
    client.outcome(running).await.expect("it ends");
    let mut codes = Vec::new();
    for write in writes {
        codes.push(client.outcome(write).await.expect_err("a refusal").code);
    }
    assert_eq!(codes, [vec![-32600; 8], vec![-32001; 4]].concat());
}

const BLOCK_BYTES: usize = 65536;

/// Writes so many blocks, and after each says in a file how many there were.
fn much(stage: &Stage, blocks: usize) -> Value {
    let blocks = format!(
        "i=0; while [ $i -lt {blocks} ]; do head -c {BLOCK_BYTES} /dev/zero; i=$((i+1)); echo $i > blocks; done"
    );
    let mut params = script(&blocks, &streamed("p"));
    params["cwd"] = json!(stage.cwd());
    params["disableOutputCap"] = json!(true);
    params["disableTimeout"] = json!(true);
    params
}

/// Waits until the command makes no progress, and gives the bytes that it has got rid of.
async fn stalled(stage: &Stage) -> usize {
    let blocks = || -> usize {
        let text = std::fs::read_to_string(stage.cwd().join("blocks")).unwrap_or_default();
        text.trim().parse().unwrap_or_default()
    };
    let mut last = (0, std::time::Instant::now());
    until("the command waits", || {
        let now = blocks();
        if now != last.0 {
            last = (now, std::time::Instant::now());
        }
        last.0 > 0 && last.1.elapsed() > Duration::from_millis(300)
    })
    .await;
    last.0 * BLOCK_BYTES
}

/// Reads it all.
async fn read_much(client: &mut TestClient, running: i64, blocks: usize) {
    let mut total = 0;
    client.outcome(running).await.expect("it ends");
    let deltas = client.rest_whole().await;
    for delta in deltas.iter().filter(|message| message["method"] == DELTA) {
        let bytes = bytes(&delta["params"]);
        assert!(bytes.iter().all(|byte| *byte == 0));
        total += bytes.len();
    }
    assert_eq!(total, blocks * BLOCK_BYTES);
}

/// All that the server holds, the command has got rid of.
const HELD_BYTES: usize = 2 * 1024 * 1024;

#[tokio::test]
async fn a_command_waits_for_a_slow_reader() {
    let (stage, _server, mut client) = open().await;
    // 26 MB.
    let running = client.send("command/exec", much(&stage, 400)).await;
    let held = stalled(&stage).await;
    assert!(held <= HELD_BYTES, "{held} bytes are held");
    read_much(&mut client, running, 400).await;
    assert_eq!(client.transcript().last().map(String::as_str), Some("= model/list"));
}

#[tokio::test]
async fn a_slow_reader_keeps_its_connection() {
    let stage = Stage::configured(json!([]), NO_WALLS).await;
    let server = stage.listen();
    let (mut slow, mut other) = (server.connect().await, server.connect().await);
    let running = slow.send("command/exec", much(&stage, 160)).await;
    stalled(&stage).await;
    // Told to everyone, the slow one included.
    other.start_thread(json!({})).await;
    read_much(&mut slow, running, 160).await;
}
