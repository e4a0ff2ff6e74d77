//! Commands whose output comes with the answer.

use serde_json::{Value, json};
use testkit::Stage;

use super::{CommandClient, NO_WALLS, answer, count_processes, open, script, unique_seconds};

#[tokio::test]
async fn output_errors_and_code_are_answered() {
    let (_stage, _server, mut client) = open().await;
    let ended = client.exec(script("echo out; echo err >&2; exit 4", &json!({}))).await;
    assert_eq!(ended, answer(4, "out\n", "err\n"));
    assert_eq!(client.exec(json!({"command": ["true"]})).await, answer(0, "", ""));
}

#[tokio::test]
async fn nothing_is_there_to_read() {
    let (_stage, _server, mut client) = open().await;
    assert_eq!(client.exec(json!({"command": ["cat"]})).await, answer(0, "", ""));
}

#[tokio::test]
async fn the_directory_is_the_servers_own_unless_given() {
    let (stage, _server, mut client) = open().await;
    let own = std::env::current_dir().expect("a directory").display().to_string();
    assert_eq!(client.exec(json!({"command": ["pwd"]})).await, answer(0, &format!("{own}\n"), ""));
    let cwd = stage.cwd().display().to_string();
    let given = client.exec(json!({"command": ["pwd"], "cwd": cwd})).await;
    assert_eq!(given, answer(0, &format!("{cwd}\n"), ""));
    let relative = client.exec(json!({"command": ["pwd"], "cwd": "src"})).await;
    assert_eq!(relative, answer(0, &format!("{own}/src\n"), ""));
}

#[tokio::test]
async fn the_environment_is_the_configured_one_with_changes() {
    let keys = format!(
        "{NO_WALLS}\nshell_environment_policy.inherit = \"core\"\n\
         shell_environment_policy.set = {{ SET = \"1\", GONE = \"2\", OVER = \"3\" }}"
    );
    let stage = Stage::configured(json!([]), &keys).await;
    let (_server, mut client) = stage.open().await;
    let env = json!({"OVER": "4", "GONE": null, "NEVER": null, "NEW": "5"});
    let ended = client.exec(json!({"command": ["env"], "env": env})).await;
    let stdout = ended["stdout"].as_str().expect("text");
    let has = |line: &str| stdout.lines().any(|other| other == line);
    assert!(has("SET=1") && has("OVER=4") && has("NEW=5"), "{stdout}");
    assert!(stdout.lines().any(|line| line.starts_with("PATH=")), "{stdout}");
    assert!(!stdout.contains("GONE") && !stdout.contains("CARGO"), "{stdout}");
}

#[tokio::test]
async fn each_stream_is_cut_at_the_cap() {
    let (_stage, _server, mut client) = open().await;
    let both = "printf 0123456789; printf abcdefghij >&2";
    assert_eq!(client.exec(script(both, &json!({"outputBytesCap": 4}))).await, answer(0, "0123", "abcd"));
    assert_eq!(client.exec(script(both, &json!({"outputBytesCap": 0}))).await, answer(0, "", ""));
    let euros = client.exec(script("printf '€€'", &json!({"outputBytesCap": 4}))).await;
    assert_eq!(euros, answer(0, "€", ""));
}

#[tokio::test]
async fn the_cap_is_a_mebibyte_unless_switched_off() {
    let (_stage, _server, mut client) = open().await;
    let length = |ended: &Value| ended["stdout"].as_str().map(str::len);
    let much = "head -c 3000000 /dev/zero | tr '\\0' a";
    assert_eq!(length(&client.exec(script(much, &json!({}))).await), Some(1 << 20));
    assert_eq!(length(&client.exec(script(much, &json!({"disableOutputCap": true}))).await), Some(3_000_000));
}

#[tokio::test]
async fn more_than_an_answer_can_hold_is_an_error_and_not_a_cut() {
    let (_stage, _server, mut client) = open().await;
    let seconds = unique_seconds();
    let much = format!("head -c 40000000 /dev/zero; sleep {seconds}");
    let refused =
        client.exec_refused("command/exec", script(&much, &json!({"disableOutputCap": true}))).await;
    assert_eq!(refused.0, -32603);
    assert!(refused.1.starts_with("exec failed: the output is larger than 33554432 bytes"), "{}", refused.1);
    assert_eq!(count_processes(&seconds), 0);
}

#[tokio::test]
async fn bytes_that_are_no_text_are_replaced() {
    let (_stage, _server, mut client) = open().await;
    let ended = client.exec(script("printf '\\377a\\0\\033[1m'", &json!({}))).await;
    assert_eq!(ended, answer(0, "\u{fffd}a\0\u{1b}[1m", ""));
}

#[tokio::test]
async fn a_timeout_ends_the_whole_tree_and_keeps_what_was_said() {
    let (_stage, _server, mut client) = open().await;
    let seconds = unique_seconds();
    let tree = format!("trap '' TERM; echo hi; setsid sleep {seconds} & sleep {seconds}; sleep {seconds}");
    assert_eq!(client.exec(script(&tree, &json!({"timeoutMs": 300}))).await, answer(124, "hi\n", ""));
    assert_eq!(count_processes(&seconds), 0);
    let at_once = client.exec(json!({"command": ["sleep", seconds], "timeoutMs": 0})).await;
    assert_eq!(at_once, answer(124, "", ""));
    let free = client.exec(json!({"command": ["sleep", "0.3"], "disableTimeout": true})).await;
    assert_eq!(free, answer(0, "", ""));
}

#[tokio::test]
async fn a_command_that_a_signal_ends_has_no_code_of_its_own() {
    let (_stage, _server, mut client) = open().await;
    assert_eq!(client.exec(script("kill -9 $$", &json!({}))).await, answer(-1, "", ""));
    let terminal = script("kill -9 $$", &json!({"processId": "p", "tty": true}));
    assert_eq!(client.exec(terminal).await, answer(1, "", ""));
}

#[tokio::test]
async fn many_run_at_once_and_nothing_else_waits_for_them() {
    let (_stage, _server, mut client) = open().await;
    let mut commands = Vec::new();
    for number in 0..20 {
        // Each ends only once it is told, so all of them run at the same time.
        let id = format!("p{number}");
        let params =
            script(&format!("read x; echo {number} $x"), &json!({"processId": id, "streamStdin": true}));
        commands.push((client.send("command/exec", params).await, id));
    }
    client.ask("model/list", json!({})).await;
    let unnamed = client.exec(script("echo unnamed", &json!({}))).await;
    assert_eq!(unnamed, answer(0, "unnamed\n", ""));
    for (number, (request, id)) in commands.into_iter().enumerate().rev() {
        client.ask("command/exec/write", super::written(&id, "go\n")).await;
        let ended = client.outcome(request).await.expect("it ends");
        assert_eq!(ended, answer(0, &format!("{number} go\n"), ""));
    }
}

#[tokio::test]
async fn one_connection_cannot_start_without_end() {
    let (_stage, _server, mut client) = open().await;
    let mut running = Vec::new();
    for number in 0..128 {
        let params = json!({"command": ["sleep", "1000"], "processId": number.to_string()});
        running.push(client.send("command/exec", params).await);
    }
    let (code, message) = client.exec_refused("command/exec", json!({"command": ["true"]})).await;
    assert_eq!(code, -32001, "{message}");
    client.ask("command/exec/terminate", json!({"processId": "0"})).await;
    client.outcome(running[0]).await.expect("it ends");
    assert_eq!(client.exec(json!({"command": ["true"]})).await, answer(0, "", ""));
}
