//! Commands on a terminal.

use serde_json::{Value, json};
use testkit::TestClient;

use super::{CommandClient, DELTA, answer, open, script, written};

async fn start(client: &mut TestClient, text: &str, more: Value) -> i64 {
    let mut params = script(text, &json!({"processId": "t", "tty": true}));
    params.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    client.send("command/exec", params).await
}

fn size(rows: u16, cols: u16) -> Value {
    json!({"processId": "t", "size": {"rows": rows, "cols": cols}})
}

/// As recorded.
#[tokio::test]
async fn a_terminal_has_a_size_that_can_change() {
    let (_stage, _server, mut client) = open().await;
    let first = json!({"size": {"rows": 31, "cols": 77}});
    let running = start(&mut client, "stty size; read x; stty size; read y", first).await;
    assert_eq!(
        client.next_of(DELTA).await,
        json!({"processId": "t", "stream": "stdout", "deltaBase64": "MzEgNzcNCg==", "capReached": false})
    );
    assert_eq!(client.ask("command/exec/resize", size(40, 100)).await, json!({}));
    assert_eq!(client.ask("command/exec/write", written("t", "go\n")).await, json!({}));
    assert_eq!(client.hear_until("t", "40 100\r\n").await, "go\r\n40 100\r\n");
    assert_eq!(client.ask("command/exec/terminate", json!({"processId": "t"})).await, json!({}));
    assert_eq!(client.outcome(running).await, Ok(answer(1, "", "")));
}

#[tokio::test]
async fn a_terminal_has_the_usual_size_unless_told() {
    let (_stage, _server, mut client) = open().await;
    let running = start(&mut client, "stty size; echo err >&2", json!({})).await;
    assert_eq!(client.outcome(running).await, Ok(answer(0, "", "")));
    // Everything on a terminal is one stream.
    assert_eq!(client.heard("t", "stdout").await.0, b"24 80\r\nerr\r\n");
}

#[tokio::test]
async fn it_can_be_resized_and_written_to_before_it_runs() {
    let (_stage, _server, mut client) = open().await;
    let running = start(&mut client, "read x; stty size", json!({})).await;
    let resize = client.send("command/exec/resize", size(11, 22)).await;
    assert_eq!(client.outcome(resize).await, Ok(json!({})));
    client.ask("command/exec/write", written("t", "\n")).await;
    client.hear_until("t", "11 22\r\n").await;
    assert_eq!(client.outcome(running).await, Ok(answer(0, "", "")));
}

#[tokio::test]
async fn it_controls_its_command() {
    let (_stage, _server, mut client) = open().await;
    // A terminal signals and then throws away what was not read yet, which may be the answer of a quick command.
    let keeps_output = "stty noflsh";
    // A signal between two commands is seen after the next one, which therefore has to be short.
    let waits = "while :; do sleep 0.01; done";
    let text = format!("{keeps_output}; trap 'echo stopped; exit 7' INT; echo up; {waits}");
    let running = start(&mut client, &text, json!({})).await;
    client.hear_until("t", "up").await;
    client.ask("command/exec/write", written("t", "\u{3}")).await;
    client.hear_until("t", "stopped").await;
    assert_eq!(client.outcome(running).await, Ok(answer(7, "", "")));
}

#[tokio::test]
async fn closing_stdin_ends_a_program_that_reads_lines() {
    let (_stage, _server, mut client) = open().await;
    for typed in ["whole line\n", "half a line"] {
        let running = start(&mut client, "cat; echo end", json!({})).await;
        let write = json!({"processId": "t", "deltaBase64": super::encode(typed), "closeStdin": true});
        client.ask("command/exec/write", write).await;
        client.hear_until("t", "end\r\n").await;
        assert_eq!(client.outcome(running).await, Ok(answer(0, "", "")), "{typed:?}");
    }
}

#[tokio::test]
async fn a_closed_terminal_takes_no_more() {
    let (_stage, _server, mut client) = open().await;
    let running = start(&mut client, "cat; echo end; exec sleep 1000", json!({})).await;
    client.ask("command/exec/write", json!({"processId": "t", "closeStdin": true})).await;
    client.hear_until("t", "end").await;
    let refused = client.exec_refused("command/exec/write", written("t", "more")).await;
    assert_eq!(refused, (-32600, "stdin is already closed".to_owned()));
    client.ask("command/exec/terminate", json!({"processId": "t"})).await;
    assert_eq!(client.outcome(running).await, Ok(answer(1, "", "")));
}
