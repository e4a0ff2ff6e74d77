//! Refusals, with the codes and words that known clients look for.

use serde_json::{Value, json};
use testkit::Stage;

use super::{CommandClient, NO_WALLS, answer, open, script, written};

const INVALID_REQUEST: i64 = -32600;
const INVALID_PARAMS: i64 = -32602;
const INTERNAL: i64 = -32603;

#[tokio::test]
async fn a_command_that_cannot_be_run_is_refused() {
    let (_stage, _server, mut client) = open().await;
    let no_id = "command/exec tty or streaming requires a client-supplied processId";
    let missing = "failed to spawn command: No such file or directory (os error 2)";
    let cases = [
        (json!({"command": []}), INVALID_REQUEST, "command must not be empty"),
        (json!({"tty": true}), INVALID_REQUEST, no_id),
        (json!({"streamStdin": true}), INVALID_REQUEST, no_id),
        (json!({"streamStdoutStderr": true}), INVALID_REQUEST, no_id),
        (
            json!({"outputBytesCap": 5, "disableOutputCap": true}),
            INVALID_PARAMS,
            "command/exec cannot set both outputBytesCap and disableOutputCap",
        ),
        (
            json!({"timeoutMs": 5, "disableTimeout": true}),
            INVALID_PARAMS,
            "command/exec cannot set both timeoutMs and disableTimeout",
        ),
        (json!({"timeoutMs": -1}), INVALID_PARAMS, "command/exec timeoutMs must be non-negative, got -1"),
        (json!({"size": {"rows": 1, "cols": 1}}), INVALID_PARAMS, "command/exec size requires tty: true"),
        (
            json!({"processId": "p", "tty": true, "size": {"rows": 0, "cols": 0}}),
            INVALID_PARAMS,
            "command/exec size rows and cols must be greater than 0",
        ),
        (json!({"command": ["/no/such/binary"]}), INTERNAL, missing),
        (json!({"command": ["no-such-program"]}), INTERNAL, missing),
        (json!({"cwd": "/no/such/dir"}), INTERNAL, missing),
        (json!({"cwd": "/etc/passwd"}), INTERNAL, "failed to spawn command: Not a directory (os error 20)"),
        (
            json!({"command": ["/etc/passwd"]}),
            INTERNAL,
            "failed to spawn command: Permission denied (os error 13)",
        ),
        (json!({"command": [""]}), INTERNAL, "failed to spawn command: argv names no program"),
        (json!({"command": ["a\0b"]}), INTERNAL, "failed to spawn command: argv contains a NUL byte"),
        (
            json!({"env": {"A=B": "x"}}),
            INTERNAL,
            "failed to spawn command: env contains a name that is empty or has `=` in it",
        ),
        (
            json!({"processId": "x".repeat(1025)}),
            INVALID_PARAMS,
            "command/exec processId must not be longer than 1024 bytes",
        ),
    ];
    for (more, code, message) in cases {
        let mut params = json!({"command": ["true"]});
        params.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let refused = client.exec_refused("command/exec", params).await;
        assert_eq!(refused, (code, message.to_owned()), "{more}");
    }
    // Nothing is left of any of them.
    let again = json!({"command": ["true"], "processId": "p"});
    assert_eq!(client.exec(again).await, answer(0, "", ""));
}

/// As recorded: what can be said without looking at the process comes first.
#[tokio::test]
async fn requests_about_no_command_are_refused() {
    let (_stage, _server, mut client) = open().await;
    let ghost = "no active command/exec for process id \"ghost\"";
    let size = |rows: u16| json!({"processId": "ghost", "size": {"rows": rows, "cols": 5}});
    let cases = [
        ("write", json!({"processId": "ghost", "deltaBase64": ""}), INVALID_REQUEST, ghost),
        ("write", json!({"processId": "ghost", "closeStdin": true}), INVALID_REQUEST, ghost),
        (
            "write",
            json!({"processId": "ghost"}),
            INVALID_PARAMS,
            "command/exec/write requires deltaBase64 or closeStdin",
        ),
        (
            "write",
            json!({"processId": "ghost", "deltaBase64": "***"}),
            INVALID_PARAMS,
            "invalid deltaBase64: Invalid symbol 42, offset 0.",
        ),
        ("terminate", json!({"processId": "ghost"}), INVALID_REQUEST, ghost),
        ("resize", size(5), INVALID_REQUEST, ghost),
        ("resize", size(0), INVALID_PARAMS, "command/exec size rows and cols must be greater than 0"),
    ];
    for (method, params, code, message) in cases {
        let refused = client.exec_refused(&format!("command/exec/{method}"), params.clone()).await;
        assert_eq!(refused, (code, message.to_owned()), "{method} {params}");
    }
}

#[tokio::test]
async fn a_command_without_stdin_or_terminal_refuses_what_needs_them() {
    let (_stage, _server, mut client) = open().await;
    let running = client.send("command/exec", json!({"command": ["sleep", "1000"], "processId": "p"})).await;
    let no_stdin = (INVALID_REQUEST, "stdin streaming is not enabled for this command/exec".to_owned());
    assert_eq!(client.exec_refused("command/exec/write", written("p", "x")).await, no_stdin);
    let close = json!({"processId": "p", "closeStdin": true});
    assert_eq!(client.exec_refused("command/exec/write", close).await, no_stdin);
    let resize = json!({"processId": "p", "size": {"rows": 5, "cols": 5}});
    let no_terminal = (INVALID_REQUEST, "failed to resize PTY: process is not attached to a PTY".to_owned());
    assert_eq!(client.exec_refused("command/exec/resize", resize).await, no_terminal);
    client.ask("command/exec/terminate", json!({"processId": "p"})).await;
    assert_eq!(client.outcome(running).await, Ok(answer(-1, "", "")));
}

#[tokio::test]
async fn a_name_is_taken_while_its_command_runs() {
    let (_stage, _server, mut client) = open().await;
    let cat = json!({"command": ["cat"], "processId": "p", "streamStdin": true});
    let running = client.send("command/exec", cat.clone()).await;
    let taken = (INVALID_REQUEST, "duplicate active command/exec process id: \"p\"".to_owned());
    assert_eq!(client.exec_refused("command/exec", cat.clone()).await, taken);
    let close = json!({"processId": "p", "closeStdin": true});
    client.ask("command/exec/write", close.clone()).await;
    assert_eq!(client.outcome(running).await, Ok(answer(0, "", "")));
    // The answer says that the name is free.
    let again = client.send("command/exec", cat).await;
    client.ask("command/exec/write", close).await;
    assert_eq!(client.outcome(again).await, Ok(answer(0, "", "")));
}

#[tokio::test]
async fn what_is_written_behind_a_start_that_fails_is_answered() {
    let (_stage, _server, mut client) = open().await;
    let params = json!({"command": ["/no/such/binary"], "processId": "p", "tty": true});
    let start = client.send("command/exec", params).await;
    let write = client.send("command/exec/write", written("p", "x")).await;
    let size = json!({"rows": 5, "cols": 5});
    let resize = client.send("command/exec/resize", json!({"processId": "p", "size": size})).await;
    assert_eq!(client.outcome(start).await.expect_err("a refusal").code, INTERNAL);
    for request in [write, resize] {
        let refused = client.outcome(request).await.expect_err("a refusal");
        let known =
            ["command/exec \"p\" is no longer running", "no active command/exec for process id \"p\""];
        assert!(refused.code == INVALID_REQUEST && known.contains(&refused.message.as_str()), "{refused:?}");
    }
}

#[tokio::test]
async fn stdin_is_closed_once_and_for_all() {
    let (_stage, _server, mut client) = open().await;
    let sleeps = script("sleep 1000", &json!({"processId": "p", "streamStdin": true}));
    client.send("command/exec", sleeps).await;
    let close = json!({"processId": "p", "closeStdin": true});
    client.ask("command/exec/write", close.clone()).await;
    let closed = (INVALID_REQUEST, "stdin is already closed".to_owned());
    assert_eq!(client.exec_refused("command/exec/write", written("p", "more")).await, closed);
    assert_eq!(client.ask("command/exec/write", close).await, json!({}));
}

#[tokio::test]
async fn a_command_that_closes_its_stdin_cannot_be_written_to() {
    let (_stage, _server, mut client) = open().await;
    let params = json!({"processId": "p", "streamStdin": true, "streamStdoutStderr": true});
    let running =
        client.send("command/exec", script("exec <&-; echo closed; exec sleep 1000", &params)).await;
    client.hear_until("p", "closed").await;
    let closed = (INVALID_REQUEST, "stdin is already closed".to_owned());
    assert_eq!(client.exec_refused("command/exec/write", written("p", "x")).await, closed);
    client.ask("command/exec/terminate", json!({"processId": "p"})).await;
    client.outcome(running).await.expect("it ends");
}

#[tokio::test]
async fn what_the_administrator_does_not_allow_is_refused() {
    let stage = Stage::configured(json!([]), "").await;
    stage.write_machine("managed.toml", "sandbox_mode = \"read-only\"");
    let (_server, mut client) = stage.open().await;
    let free = json!({"command": ["true"], "sandboxPolicy": {"type": "dangerFullAccess"}});
    let (code, message) = client.exec_refused("command/exec", free).await;
    assert_eq!(code, INVALID_REQUEST);
    assert!(message.starts_with("invalid sandbox policy: "), "{message}");
    let allowed = json!({"command": ["true"], "sandboxPolicy": {"type": "readOnly"}});
    assert_eq!(client.exec(allowed).await, answer(0, "", ""));
}

#[tokio::test]
async fn with_a_broken_configuration_nothing_runs() {
    let stage = Stage::configured(json!([]), NO_WALLS).await;
    let (_server, mut client) = stage.open().await;
    stage.configure("sandbox_mode = \"bogus\"");
    let (code, message) = client.exec_refused("command/exec", json!({"command": ["true"]})).await;
    assert_eq!(code, INVALID_REQUEST);
    assert!(message.starts_with("failed to load configuration: "), "{message}");
    stage.configure(NO_WALLS);
    assert_eq!(client.exec(json!({"command": ["true"]})).await["exitCode"], Value::from(0));
}
