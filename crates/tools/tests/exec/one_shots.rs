//! `shell`, `shell_command` and the user's own commands: they end with their call.

use std::time::{Duration, Instant};

use engine::ToolPayload;
use protocol::{AskForApproval, ServerNotification};
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
    assert!(text.starts_with("Exit code: 0\nWall time: "), "{text}");
    assert!(text.ends_with(" seconds\nOutput:\nhi\n"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_ends_the_whole_process_tree() {
    let stage = Stage::new();
    let seconds = unique_seconds();
    let script = format!("trap '' TERM INT HUP; echo begun; setsid sleep {seconds} & sleep {seconds}");
    let began = Instant::now();
    let outcome = stage.start("shell_command", &json!({"command": script, "timeout_ms": 2_000})).await;
    assert!(began.elapsed() < PATIENCE);
    let said = text(&outcome);
    assert!(!outcome.success && said.starts_with("Exit code: 124\n"), "{said}");
    assert!(said.ends_with("Output:\ncommand timed out after 2000 milliseconds\nbegun\n"), "{said}");
    let item = serde_json::to_value(outcome.item).expect("plain data");
    assert_eq!((&item["exitCode"], &item["aggregatedOutput"]), (&json!(124), &json!("begun\n")));
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
async fn impossible_commands_are_reported() {
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
async fn impossible_commands_are_shown_too() {
    for (arguments, started_here) in [
        (json!({"command": ["true"], "workdir": "nowhere"}), true),
        (json!({"command": ["/nonexistent/program"]}), false),
    ] {
        let stage = Stage::new();
        let outcome = stage.start("shell", &arguments).await;
        let item = serde_json::to_value(outcome.item).expect("plain data");
        assert_eq!((&item["status"], &item["exitCode"]), (&json!("failed"), &json!(-1)), "{item}");
        // A proposed item starts with its proposal.
        let started = |told: &ServerNotification| matches!(told, ServerNotification::ItemStarted(_));
        assert_eq!(stage.told().iter().any(started), started_here);
        assert_eq!(stage.proposals().is_empty(), started_here);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_time_limit_is_paused_during_an_elicitation() {
    let stage = Stage::new();
    let marker = stage.path("go");
    let script = format!("until [ -e {} ]; do sleep 0.01; done; echo done", marker.display());
    stage.bench.clock().hold(1);
    let shot = stage.start("shell_command", &json!({"command": script, "timeout_ms": 1}));
    let look = stage.start("exec_command", &json!({"cmd": script, "yield_time_ms": 250}));
    let release = async {
        // Far longer than either may wait.
        tokio::time::sleep(Duration::from_millis(400)).await;
        std::fs::write(&marker, "").expect("written");
    };
    let (shot, look, ()) = tokio::join!(shot, look, release);
    assert!(shot.success && text(&shot).ends_with("Output:\ndone\n"), "{}", text(&shot));
    assert!(text(&look).contains("exited with code 0"), "{}", text(&look));
    assert_eq!(stage.bench.clock().release(1), Some(0));
    let late = stage.call("shell_command", json!({"command": "sleep 5", "timeout_ms": 1})).await;
    assert!(late.0.starts_with("Exit code: 124\n"), "{}", late.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_for_an_answer_does_not_count_as_running() {
    let stage =
        Stage::asking(AskForApproval::Untrusted, json!({"type": "dangerFullAccess"}), |_| Answer::Accept);
    stage.meddle(|| std::thread::sleep(Duration::from_millis(5_100)));
    let (text, success) =
        stage.call("shell_command", json!({"command": "echo hi; :", "timeout_ms": 5_000})).await;
    assert!(success && stage.questions().len() == 1, "{text}");
}

/// The path in the line that names the whole output.
fn whole_output(text: &str) -> &str {
    let line = text.lines().find_map(|line| line.trim_start_matches('[').strip_prefix("Full output: "));
    line.and_then(|line| line.split(" (").next()).unwrap_or_else(|| panic!("a path: {text:.200}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_output_can_be_read_whole() {
    let lines: String = (1..=70_000).map(|number| format!("{number}\n")).collect();
    for (tool, arguments) in [
        ("shell_command", json!({"command": "seq 70000"})),
        ("shell", json!({"command": ["seq", "70000"]})),
        ("exec_command", json!({"cmd": "seq 70000", "tty": false})),
        ("user_shell", Value::Null),
    ] {
        let stage = Stage::new();
        let payload = match &arguments {
            Value::Null => ToolPayload::Custom { input: "seq 70000".to_owned() },
            arguments => ToolPayload::Function { arguments: arguments.to_string() },
        };
        let outcome = stage.call_as("call_1", tool, payload).await;
        let said = text(&outcome).replace("\\n", "\n");
        let path = whole_output(&said);
        assert!(path.starts_with(&*stage.path("home/outputs/thread").to_string_lossy()), "{path}");
        assert_eq!(std::fs::read_to_string(path).expect("readable"), lines, "{tool}");
        let item = match outcome.item {
            Some(item) => serde_json::to_value(item).expect("plain data"),
            None => stage.ended().pop().expect("an item"),
        };
        let shown = item["aggregatedOutput"].as_str().expect("output");
        assert!(shown.len() < 400_000 && shown.starts_with("1\n2\n"), "{tool}");
        assert!(
            shown.trim_end().ends_with(&format!("\n70000\n\n[Full output: {path} (408894 bytes)]")),
            "{tool}"
        );
    }
    let stage = Stage::new();
    assert!(!stage.call("shell_command", json!({"command": "seq 60000"})).await.0.contains("Full output"));
    assert!(!stage.path("home/outputs").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_command_has_a_declined_item() {
    let stage = Stage::asking(AskForApproval::Never, json!({"type": "readOnly"}), |_| Answer::Accept);
    stage.rules(
        "prefix_rule(pattern=['touch'], decision='forbidden', justification='files are made by patches')",
    );
    let refused = [
        ("shell", json!({"command": ["rm", "-rf", "x"]}), "rm -rf x", "deletes without asking back"),
        ("shell", json!({"command": ["touch", "x"]}), "touch x", "files are made by patches"),
        ("shell_command", json!({"command": "touch x"}), "/bin/sh -c 'touch x'", "files are made by patches"),
    ];
    for (number, (tool, arguments, command, why)) in refused.into_iter().enumerate() {
        let outcome = stage.start(tool, &arguments).await;
        let said = text(&outcome);
        assert!(!outcome.success && said.contains(why), "{said}");
        let item = serde_json::to_value(outcome.item).expect("plain data");
        assert_eq!((&item["status"], &item["exitCode"]), (&json!("declined"), &json!(-1)), "{item}");
        assert_eq!((&item["command"], &item["aggregatedOutput"]), (&json!(command), &json!(said)));
        let told = stage.told();
        let ServerNotification::ItemStarted(started) = &told[number] else { panic!("{told:?}") };
        let started = serde_json::to_value(&started.item).expect("plain data");
        assert_eq!((&started["id"], &started["status"]), (&item["id"], &json!("inProgress")));
    }
    // No question was asked, and nothing ran. A refused terminal starts and ends like any other command.
    assert!(stage.proposals().is_empty());
    assert!(stage.exec("rm -rf x").await.contains("was rejected"));
    assert_eq!((stage.told().len(), stage.ended().len()), (4, 1));
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
