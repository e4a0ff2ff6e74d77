//! `shell`, `shell_command` and the user's own commands: they end with their call.

use std::time::{Duration, Instant};

use engine::ToolPayload;
use protocol::AskForApproval;
use serde_json::{Value, json};

use crate::stage::{Answer, Heard, PATIENCE, Stage, text, unique_seconds, until_gone, until_there};

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_words_gives_json() {
    let stage = Stage::new();
    for name in ["shell", "container.exec", "local_shell"] {
        let outcome =
            stage.start(name, &json!({"command": ["sh", "-c", "echo out; echo err >&2; exit 3"]})).await;
        assert!(!outcome.success);
        let result: Value = serde_json::from_str(&text(&outcome)).expect("JSON");
        assert_eq!(result["output"], "out\nerr\n");
        assert_eq!(result["metadata"]["exit_code"], 3);
        assert!(result["metadata"]["duration_seconds"].is_f64());
        let item = serde_json::to_value(outcome.item).expect("plain data");
        assert_eq!((&item["source"], &item["processId"]), (&json!("agent"), &Value::Null));
        assert_eq!((&item["status"], &item["exitCode"]), (&json!("failed"), &json!(3)));
        assert_eq!(item["aggregatedOutput"], "out\nerr\n");
    }
    let Heard::Proposed(proposal) = &stage.heard()[0] else { panic!("{:?}", stage.heard()) };
    assert!(!proposal.outlives);
    assert!(stage.ended().is_empty(), "the thread ends it with the call");
    assert!(stage.deltas().concat().contains("out\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_gives_plain_text() {
    let stage = Stage::new();
    let (text, success) = stage.call("shell_command", json!({"command": "echo hi"})).await;
    assert!(success);
    assert!(text.starts_with("Exit code: 0\nWall time: 0."), "{text}");
    assert!(text.ends_with(" seconds\nOutput:\nhi\n"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn time_runs_out_for_a_whole_tree() {
    let stage = Stage::new();
    let seconds = unique_seconds();
    let script = format!("trap '' TERM INT HUP; echo begun; setsid sleep {seconds} & sleep {seconds}");
    let began = Instant::now();
    let (text, success) = stage.call("shell_command", json!({"command": script, "timeout_ms": 300})).await;
    assert!(began.elapsed() < Duration::from_millis(300 + 2_000));
    assert!(!success);
    assert!(text.starts_with("Exit code: 124\n"), "{text}");
    assert!(text.ends_with("Output:\ncommand timed out after 300 milliseconds\nbegun\n"), "{text}");
    until_gone(&seconds).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_kills() {
    for (tool, key) in [("shell", "words"), ("shell_command", "script"), ("user_shell", "custom")] {
        let stage = Stage::new();
        let seconds = unique_seconds();
        let script = format!("setsid sleep {seconds} & sleep {seconds}");
        let payload = match key {
            "words" => json!({"command": ["sh", "-c", script], "timeout_ms": 60_000}),
            _ => json!({"command": script, "timeout_ms": 60_000}),
        };
        let payload = match key {
            "custom" => ToolPayload::Custom { input: script },
            _ => ToolPayload::Function { arguments: payload.to_string() },
        };
        let call = tokio::spawn(stage.call_as("call_1", tool, payload));
        until_there(&seconds).await;
        call.abort();
        until_gone(&seconds).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_run_says_why() {
    let stage = Stage::new();
    let cases = [
        (json!({"command": []}), "command must name a program"),
        (
            json!({"command": ["/nonexistent/program"]}),
            "the command could not be run: /nonexistent/program: no such program",
        ),
        (
            json!({"command": ["true"], "workdir": "nowhere"}),
            "the command could not be run: the working directory",
        ),
        (json!({"command": "true"}), "failed to parse function arguments: invalid type: string"),
    ];
    for (arguments, expected) in cases {
        let (text, success) = stage.call("shell", arguments).await;
        assert!(!success && text.starts_with(expected), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_of_the_user_runs_as_the_user() {
    let never = Stage::asking(AskForApproval::Untrusted, json!({"type": "readOnly"}), |_| Answer::Decline);
    let payload = ToolPayload::Custom { input: "echo out; touch made; exit 2".to_owned() };
    let outcome = tokio::time::timeout(PATIENCE, never.call_as("item_1", "user_shell", payload))
        .await
        .expect("it ends");
    let result = text(&outcome);
    assert!(result.starts_with("Exit code: 2\nDuration: 0."), "{result}");
    assert!(result.ends_with(" seconds\nOutput:\nout\n"), "{result}");
    assert!(never.path("made").exists());
    let item = serde_json::to_value(outcome.item).expect("plain data");
    assert_eq!((&item["id"], &item["source"]), (&json!("item_1"), &json!("userShell")));
    assert_eq!((&item["processId"], &item["aggregatedOutput"]), (&Value::Null, &json!("out\n")));
    assert_eq!(never.deltas().concat(), "out\n");
    assert!(never.questions().is_empty() && never.proposals().len() == 1);
}
