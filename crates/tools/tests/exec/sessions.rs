//! `exec_command` and `write_stdin`: results for the model, and items for clients.

use std::time::Instant;

use protocol::ServerNotification;
use serde_json::{Value, json};

use crate::stage::{
    Heard, PATIENCE, Stage, count_processes, output, session_id, text, unique_seconds, until_gone,
    until_there,
};

/// The text with run-specific parts replaced.
fn shape(text: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for line in &mut lines {
        if let Some(id) = line.strip_prefix("Chunk ID: ") {
            assert!(id.len() == 6 && id.chars().all(|c| c.is_ascii_hexdigit() && !c.is_uppercase()), "{id}");
            *line = "Chunk ID: <chunk>".to_owned();
        } else if let Some(rest) = line.strip_prefix("Wall time: ") {
            let seconds = rest.strip_suffix(" seconds").expect("seconds");
            assert_eq!(seconds.split_once('.').expect("a fraction").1.len(), 4);
            *line = "Wall time: <secs> seconds".to_owned();
        }
    }
    lines.join("\n") + if text.ends_with('\n') { "\n" } else { "" }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_ends_in_time_gives_its_output_and_code() {
    let stage = Stage::new();
    let (text, success) = stage.call("exec_command", json!({"cmd": "echo hi; exit 3"})).await;
    assert!(success, "a command that fails is a call that worked");
    assert_eq!(
        shape(&text),
        "Command: /bin/sh -c 'echo hi; exit 3'\nChunk ID: <chunk>\nWall time: <secs> seconds\n\
         Process exited with code 3\nOriginal token count: 1\nOutput:\nhi\n"
    );
    let [Heard::Proposed(proposal), Heard::Ended(_)] = &stage.heard()[..] else {
        panic!("{:?}", stage.heard())
    };
    let begun = serde_json::to_value(proposal.item.as_ref().expect("an item")).expect("plain data");
    let process_id = begun["processId"].as_str().expect("an id").parse::<u32>().expect("a number");
    assert!((1_000..=99_999).contains(&process_id));
    let cwd = stage.folder.path().canonicalize().expect("there");
    let mut expected = json!({
        "type": "commandExecution", "id": "call_1", "command": "/bin/sh -c 'echo hi; exit 3'", "cwd": cwd,
        "processId": process_id.to_string(), "source": "unifiedExecStartup", "status": "inProgress",
        "commandActions": [{"type": "unknown", "command": "echo hi; exit 3"}],
        "aggregatedOutput": null, "exitCode": null, "durationMs": null,
    });
    assert_eq!(begun, expected);
    assert!(proposal.outlives && proposal.question.is_none() && proposal.digest.starts_with("sha256:"));
    let ended = &stage.ended()[0];
    expected["status"] = json!("failed");
    expected["aggregatedOutput"] = json!("hi\n");
    expected["exitCode"] = json!(3);
    expected["durationMs"] = ended["durationMs"].clone();
    assert!(ended["durationMs"].as_i64().is_some_and(|duration| duration < 10_000));
    assert_eq!(*ended, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shell_is_shown_as_the_file_it_is() {
    let stage = Stage::new();
    std::fs::create_dir(stage.path("bin")).expect("made");
    std::os::unix::fs::symlink("/bin/sh", stage.path("bin/other")).expect("made");
    let folder = stage.path("bin");
    let stage = stage.with_options(|options| {
        options.env.insert("PATH".to_owned(), format!("relative:{}:/usr/bin:/bin", folder.display()));
    });
    let other = format!("{}/other", folder.display());
    for (shell, expected) in
        [("sh", "/bin/sh"), ("other", other.as_str()), ("/bin/sh", "/bin/sh"), ("", "/bin/sh")]
    {
        let text = stage.call("exec_command", json!({"cmd": "echo hi", "shell": shell})).await.0;
        assert!(text.starts_with(&format!("Command: {expected} -c 'echo hi'\n")), "{text}");
    }
    let text = stage.call("exec_command", json!({"cmd": "echo hi", "shell": "nowhere"})).await.0;
    assert!(text.contains("nowhere: no such program"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_output_is_null() {
    let stage = Stage::new();
    assert_eq!(output(&stage.exec("true").await), "");
    let ended = &stage.ended()[0];
    assert_eq!((&ended["aggregatedOutput"], &ended["exitCode"]), (&Value::Null, &json!(0)));
    assert_eq!(ended["status"], "completed");
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_output_is_shown_as_it_arrives() {
    let stage = Stage::new();
    let text = stage.exec("for i in 1 2 3; do sleep 0.1; echo $i; done").await;
    assert_eq!(output(&text), "1\n2\n3\n");
    assert_eq!(stage.deltas().concat(), "1\n2\n3\n");
    assert!(matches!(stage.heard().last(), Some(Heard::Ended(_))), "the end comes last");
    assert_eq!(stage.ended()[0]["aggregatedOutput"], "1\n2\n3\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn long_output_loses_its_middle_for_the_model_alone() {
    let stage = Stage::new();
    let (text, _) = stage.call("exec_command", json!({"cmd": "seq 1 20000", "max_output_tokens": 200})).await;
    assert!(
        text.contains("Original token count: 27224\nOutput:\nTotal output lines: 20000\n\n1\n2\n"),
        "{text}"
    );
    assert!(text.contains("\n127\n…27024 tokens truncated…934\n19935\n"), "{text}");
    assert_eq!(stage.ended()[0]["aggregatedOutput"].as_str().map(str::len), Some(108_894));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_can_be_typed_into() {
    let stage = Stage::new();
    let script = "read x; echo got:$x; read y; echo bye:$y";
    let started =
        stage.call("exec_command", json!({"cmd": script, "tty": true, "yield_time_ms": 250})).await.0;
    let id = session_id(&started);
    let header = format!("Command: /bin/sh -c '{script}'\nChunk ID: <chunk>\nWall time: <secs> seconds\n");
    let running = format!("{header}Process running with session ID {id}\n");
    assert_eq!(shape(&started), format!("{running}Original token count: 0\nOutput:\n"));
    let write = |chars: &str| json!({"session_id": id, "chars": chars});
    let one = stage.call("write_stdin", write("one\n")).await.0;
    assert_eq!(output(&one), "one\r\ngot:one\r\n");
    assert!(one.contains(&format!("session ID {id}\nOriginal token count: 4\n")), "{one}");
    let two = stage.call("write_stdin", write("two\n")).await.0;
    assert_eq!(output(&two), "two\r\nbye:two\r\n");
    assert!(two.contains("\nProcess exited with code 0\n"), "{two}");
    let interaction = |told: ServerNotification| match told {
        ServerNotification::TerminalInteraction(typed) => {
            Some(serde_json::to_value(typed).expect("plain data"))
        }
        _ => None,
    };
    let typed: Vec<_> = stage.told().into_iter().filter_map(interaction).collect();
    let expected = |stdin: &str| json!({"threadId": "thread", "turnId": "turn", "itemId": "call_1", "processId": id.to_string(), "stdin": stdin});
    assert_eq!(typed, [expected("one\n"), expected("two\n")]);
    // The last typed text ended it, and clients are notified of that text first.
    let heard = stage.heard();
    let [.., Heard::Told(told), Heard::Ended(_)] = &heard[..] else { panic!("{heard:?}") };
    assert!(matches!(**told, ServerNotification::TerminalInteraction(_)), "{told:?}");
    assert_eq!(stage.deltas().concat(), "one\r\ngot:one\r\ntwo\r\nbye:two\r\n");
    assert_eq!(stage.ended()[0]["aggregatedOutput"], "one\r\ngot:one\r\ntwo\r\nbye:two\r\n");
    let (gone, success) = stage.call("write_stdin", write("three\n")).await;
    assert_eq!(gone, format!("write_stdin failed: there is no session {id}; it may have ended"));
    assert!(!success);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_without_a_terminal_has_no_input() {
    let stage = Stage::new();
    let seconds = unique_seconds();
    let cmd = format!("cat; exec sleep {seconds}");
    let started = stage.call("exec_command", json!({"cmd": cmd, "yield_time_ms": 250})).await.0;
    let (text, success) =
        stage.call("write_stdin", json!({"session_id": session_id(&started), "chars": "x"})).await;
    assert!(!success && text.starts_with("write_stdin failed: ") && text.contains("`tty`"), "{text}");
    stage.bench.clear_terminals().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_terminal_gets_control_c() {
    let stage = Stage::new();
    let cmd = format!("sleep {}", unique_seconds());
    let started = stage.call("exec_command", json!({"cmd": cmd, "tty": true, "yield_time_ms": 250})).await.0;
    let typed = json!({"session_id": session_id(&started), "chars": "\u{3}", "yield_time_ms": 5_000});
    let text = stage.call("write_stdin", typed).await.0;
    assert!(text.contains("\nProcess exited with code 130\n"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poll_is_notified_between_its_output_and_the_end() {
    let stage = Stage::new();
    let go = stage.path("go");
    let cmd = format!("until [ -e {} ]; do sleep 0.01; done; echo late", go.display());
    let started = stage.call("exec_command", json!({"cmd": cmd, "yield_time_ms": 250})).await.0;
    let look = stage.start("write_stdin", &json!({"session_id": session_id(&started)}));
    // Polled in this order, the call is waiting when the command may end.
    let (look, ()) = tokio::join!(look, async { std::fs::write(go, "").expect("written") });
    assert_eq!(output(&text(&look)), "late\n");
    let heard = stage.heard();
    let [.., Heard::Told(delta), Heard::Told(look), Heard::Ended(_)] = &heard[..] else {
        panic!("{heard:?}")
    };
    assert!(matches!(**delta, ServerNotification::CommandExecutionOutputDelta(_)), "{delta:?}");
    assert!(matches!(**look, ServerNotification::TerminalInteraction(_)), "{look:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_in_the_background_ends_later_with_its_item() {
    let stage = Stage::new();
    let go = stage.path("go");
    let cmd = format!("echo early; until [ -e {} ]; do sleep 0.01; done; echo late; exit 4", go.display());
    let started = stage.call("exec_command", json!({"cmd": cmd, "yield_time_ms": 250})).await.0;
    let id = session_id(&started);
    assert_eq!(output(&started), "early\n");
    assert!(stage.ended().is_empty());
    std::fs::write(go, "").expect("written");
    stage.until(|stage| !stage.ended().is_empty()).await;
    let ended = &stage.ended()[0];
    assert_eq!((&ended["exitCode"], &ended["status"]), (&json!(4), &json!("failed")));
    assert_eq!(ended["aggregatedOutput"], "early\nlate\n");
    // The last output waits until the model reads it.
    let polled = stage.call("write_stdin", json!({"session_id": id})).await.0;
    assert!(polled.contains("\nProcess exited with code 4\n"), "{polled}");
    assert_eq!(output(&polled), "late\n");
    assert!(!stage.call("write_stdin", json!({"session_id": id})).await.1);
}

#[tokio::test(flavor = "multi_thread")]
async fn terminals_end_with_a_stopped_call_or_with_their_thread() {
    let stage = Stage::new();
    let seconds = unique_seconds();
    let call = tokio::spawn(stage.start("exec_command", &json!({"cmd": format!("exec sleep {seconds}")})));
    until_there(&seconds).await;
    call.abort();
    assert!(call.await.is_err());
    stage.until(|stage| !stage.ended().is_empty()).await;
    assert_eq!(count_processes(&seconds), 0);
    let ended = stage.ended();
    assert_eq!((ended.len(), &ended[0]["exitCode"]), (1, &json!(137)));
    let seconds = unique_seconds();
    let (text, _) = stage
        .call("exec_command", json!({"cmd": format!("exec sleep {seconds}"), "yield_time_ms": 250}))
        .await;
    session_id(&text);
    let Stage { bench, .. } = stage;
    drop(bench);
    until_gone(&seconds).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clearing_ends_all_processes_and_every_item() {
    let stage = Stage::new();
    let all: Vec<_> = (0..3).map(|_| unique_seconds()).collect();
    for seconds in &all {
        let cmd = format!("trap '' TERM HUP INT; setsid sleep {seconds} & sleep {seconds}");
        let text = stage.call("exec_command", json!({"cmd": cmd, "yield_time_ms": 250})).await.0;
        session_id(&text);
    }
    let began = Instant::now();
    stage.bench.clear_terminals().await;
    assert!(began.elapsed() < PATIENCE);
    assert!(all.iter().all(|seconds| count_processes(seconds) == 0));
    assert_eq!(stage.ended().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sixty_fifth_terminal_ends_the_one_used_longest_ago() {
    let stage = Stage::new();
    let arguments = json!({"cmd": "exec sleep 1000", "yield_time_ms": 250});
    let first = session_id(&stage.call("exec_command", arguments.clone()).await.0);
    let second = session_id(&stage.call("exec_command", arguments.clone()).await.0);
    let others: Vec<_> = (3..=64).map(|_| tokio::spawn(stage.start("exec_command", &arguments))).collect();
    let mut warned = 0;
    for other in others {
        let outcome = other.await.expect("it returns");
        session_id(&text(&outcome));
        warned += usize::from(outcome.note.is_some());
    }
    assert_eq!(warned, 5, "from the sixtieth on");
    // The first is used, so that the second is now the oldest.
    let typed = stage.call("write_stdin", json!({"session_id": first, "chars": "x"})).await.0;
    assert!(typed.contains("terminal"), "{typed}");
    session_id(&stage.call("exec_command", arguments).await.0);
    stage.until(|stage| !stage.ended().is_empty()).await;
    assert_eq!(stage.ended()[0]["processId"], second.to_string());
    let gone = stage.call("write_stdin", json!({"session_id": second, "chars": "x"})).await.0;
    assert!(gone.contains("there is no session"), "{gone}");
    stage.bench.clear_terminals().await;
    assert_eq!(stage.ended().len(), 65);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_start_is_reported_and_ends_its_item() {
    let stage = Stage::new();
    let (text, success) =
        stage.call("exec_command", json!({"cmd": "true", "shell": "/nonexistent/sh"})).await;
    assert!(!success);
    assert_eq!(
        text,
        "exec_command failed for `/nonexistent/sh -c true`: \
         /nonexistent/sh: no such program"
    );
    let ended = &stage.ended()[0];
    assert_eq!((&ended["status"], &ended["exitCode"]), (&json!("failed"), &json!(-1)));
    assert_eq!(ended["processId"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_folders_are_refused_before_anything_is_shown() {
    let stage = Stage::new();
    for workdir in ["nowhere", "\0", &"x".repeat(5_000)] {
        let (text, success) = stage.call("exec_command", json!({"cmd": "true", "workdir": workdir})).await;
        assert!(!success && text.contains("not"), "{text}");
    }
    assert!(stage.heard().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_runs_where_it_says_with_the_environment_of_its_thread() {
    let stage = Stage::new();
    std::fs::create_dir(stage.path("sub")).expect("made");
    let (text, _) = stage.call("exec_command", json!({"cmd": "pwd; env", "workdir": "sub"})).await;
    let output = output(&text);
    assert!(output.lines().next().is_some_and(|line| line.ends_with("/sub")), "{output}");
    let value = |name: &str| output.lines().find_map(|line| line.strip_prefix(&format!("{name}=")));
    let expected =
        [("NO_COLOR", "1"), ("TERM", "dumb"), ("LC_ALL", "C.UTF-8"), ("COLORTERM", ""), ("PAGER", "cat")];
    for (name, expected) in expected {
        assert_eq!(value(name), Some(expected), "{name}");
    }
    assert_eq!(value("PATH"), Some("/usr/local/bin:/usr/bin:/bin"));
    // The server's own variables are not passed on.
    let own = [
        "PATH",
        "HOME",
        "PWD",
        "OLDPWD",
        "SHLVL",
        "_",
        "LANG",
        "LC_CTYPE",
        "GIT_PAGER",
        "GH_PAGER",
        "CODEX_CI",
    ];
    for line in output.lines().skip(1) {
        let name = line.split('=').next().expect("a name");
        assert!(own.contains(&name) || expected.iter().any(|(known, _)| *known == name), "{line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_utf_8_is_replaced() {
    let stage = Stage::new();
    let script = r"printf 'a\377b'; sleep 0.3; printf '\303'; sleep 0.1; printf '\244\n\342\202'";
    let text = stage.exec(script).await;
    assert_eq!(output(&text), "a\u{fffd}bä\n\u{fffd}");
    assert_eq!(stage.deltas().concat(), "a\u{fffd}bä\n\u{fffd}");
    assert_eq!(stage.ended()[0]["aggregatedOutput"], "a\u{fffd}bä\n\u{fffd}");
}

#[tokio::test(flavor = "multi_thread")]
async fn login_shells_can_be_switched_off() {
    let stage = Stage::new();
    let (text, success) = stage.call("exec_command", json!({"cmd": "true", "login": true})).await;
    assert!(!success && text.contains("login"), "{text}");
    let stage = Stage::new().with_options(|options| options.login_shell = true);
    assert!(stage.exec("true").await.starts_with("Command: /bin/sh -lc true\n"));
    let (text, _) = stage.call("exec_command", json!({"cmd": "true", "login": false, "shell": "bash"})).await;
    assert!(text.contains("/bash -c true\n"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn single_bytes_are_sent_together() {
    let stage = Stage::new();
    stage.exec("sleep 0.2; i=0; while [ $i -lt 3000 ]; do printf x; i=$((i+1)); done").await;
    let deltas = stage.deltas();
    assert_eq!(deltas.concat().len(), 3_000);
    assert!(deltas.len() < 300, "{} pieces", deltas.len());
}

/// Some models write every number with a fraction.
#[tokio::test(flavor = "multi_thread")]
async fn a_whole_number_may_be_written_with_a_fraction_of_zero() {
    let stage = Stage::new();
    let cmd = json!({"cmd": "read line; echo got $line", "tty": true, "yield_time_ms": 250.0});
    let (started, success) = stage.call("exec_command", cmd).await;
    assert!(success, "{started}");
    let id: f64 = session_id(&started).to_string().parse().expect("a number");
    let typed =
        json!({"session_id": id, "chars": "it\n", "yield_time_ms": 5_000.0, "max_output_tokens": 100.0});
    let (text, success) = stage.call("write_stdin", typed).await;
    assert!(success && text.contains("got it"), "{text}");
    for (tool, arguments) in [
        ("shell_command", json!({"command": "echo hi", "timeout_ms": 5_000.0})),
        ("shell", json!({"command": ["echo", "hi"], "timeout_ms": 5_000.0})),
        ("list_dir", json!({"dir_path": stage.folder.path(), "offset": 1.0, "limit": 1.0, "depth": 1.0})),
    ] {
        let (text, _) = stage.call(tool, arguments).await;
        assert!(!text.contains("failed to parse"), "{tool}: {text}");
    }
    let (text, success) = stage.call("shell_command", json!({"command": "echo hi", "timeout_ms": 0.5})).await;
    assert!(!success && text.contains("floating point `0.5`"), "{text}");
}
