//! Environments that are unreachable, or become so.

use engine::EnvironmentState;
use oarlock_tools::{Offer, Registry};
use serde_json::{Value, json};

use crate::stage::{Stage, session_id, text};

/// One call of every tool that needs an environment.
fn calls() -> Vec<(&'static str, Value)> {
    vec![
        ("exec_command", json!({"cmd": "echo hi"})),
        ("shell", json!({"command": ["echo", "hi"]})),
        ("shell_command", json!({"command": "echo hi"})),
        ("apply_patch", json!({"input": "*** Begin Patch\n*** Add File: new\n+x\n*** End Patch"})),
        ("list_dir", json!({"dir_path": "."})),
        ("read_file", json!({"file_path": "f"})),
        ("grep_files", json!({"pattern": "x"})),
        ("view_image", json!({"path": "f"})),
    ]
}

async fn check_all(stage: &Stage, expected: &str) {
    for (tool, arguments) in calls() {
        let (text, success) = stage.call(tool, arguments).await;
        assert!(!success && text.contains(expected), "{tool}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_environment_that_cannot_be_reached_fails_its_calls_and_no_others() {
    let mut stage = Stage::new();
    std::fs::write(stage.path("f"), "x\n").expect("written");
    for (prefix, expected) in [
        (
            &["/nonexistent/client"][..],
            "environment `box` cannot be reached: /nonexistent/client: no such program",
        ),
        (
            &["sh", "-c", "echo 'Connection refused' >&2; exit 255"],
            "environment `box` cannot be reached: its client ended with code 255: Connection refused",
        ),
        (
            &["sh", "-c", "echo no such box; exit 125"],
            "cannot be reached: its client ended with code 125: no such box",
        ),
        (&["true"], "environment `box` cannot be reached: its client ended with code 0"),
        (&[], "environment `box` cannot be reached: no command is known that leads there"),
    ] {
        stage.go_to("box", prefix);
        check_all(&stage, expected).await;
    }
    stage.go_to("box", &["env"]);
    assert!(stage.call("shell_command", json!({"command": "true"})).await.1);
    assert!(stage.call("read_file", json!({"file_path": "f"})).await.1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_environment_that_vanishes_fails_the_next_call() {
    let stage = Stage::new();
    let client = stage.program("client", "#!/bin/sh\nexec \"$@\"\n");
    let stage = stage.behind("box", &[&client]);
    assert!(stage.call("shell_command", json!({"command": "true"})).await.1);
    std::fs::remove_file(&client).expect("removed");
    check_all(&stage, "environment `box` cannot be reached").await;
    stage.program("client", "#!/bin/sh\nexec \"$@\"\n");
    assert!(stage.call("shell_command", json!({"command": "true"})).await.1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_environment_that_is_lost_while_a_command_runs_is_an_error_of_the_call() {
    let stage = Stage::new();
    // Ends as soon as it gets a signal, whatever runs there.
    let client = stage.program(
        "client",
        "#!/bin/sh\nexec 3<&0\n\"$@\" <&3 &\nwhile [ ! -e die ]; do sleep 0.02; done; exit 255\n",
    );
    let cwd = stage.step.cwd.clone();
    let stage = stage.behind("box", &["env", "-C", &cwd, &client]);
    let script = "echo before; touch die; sleep 100";
    for (tool, arguments) in
        [("shell_command", json!({"command": script})), ("exec_command", json!({"cmd": script}))]
    {
        let (text, success) = stage.call(tool, arguments).await;
        assert!(!success && text.contains("before\n"), "{text}");
        assert!(text.starts_with("environment `box` was lost: its client ended with code 255"), "{text}");
        assert!(!text.contains("exited with code"), "{text}");
        std::fs::remove_file(stage.path("die")).expect("it was there");
    }
    let ended = &stage.ended()[0];
    assert_eq!((&ended["status"], &ended["exitCode"]), (&json!("failed"), &json!(-1)));
    assert!(ended["aggregatedOutput"].as_str().is_some_and(|text| text.contains("was lost")), "{ended}");
    let started = stage.call("exec_command", json!({"cmd": "sleep 100", "yield_time_ms": 250})).await.0;
    std::fs::write(stage.path("die"), "").expect("written");
    let poll = json!({"session_id": session_id(&started)});
    let (text, success) = stage.call("write_stdin", poll).await;
    assert!(!success && text.starts_with("environment `box` was lost"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn an_environment_that_never_answers_times_out() {
    let stage = Stage::new().behind("box", &["sh", "-c", "sleep 1000; exec \"$@\"", "sh"]);
    for (tool, arguments) in calls() {
        let outcome = stage.start(tool, &arguments).await;
        let text = text(&outcome);
        let expected = "environment `box` cannot be reached: it did not answer within 30 seconds";
        assert!(!outcome.success && text.contains(expected), "{tool}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_for_an_environment_can_be_interrupted() {
    let stage = Stage::new().behind("box", &["sh", "-c", "sleep 1000; exec \"$@\"", "sh"]);
    let call = tokio::spawn(stage.start("exec_command", &json!({"cmd": "true"})));
    stage.until(|stage| !stage.proposals().is_empty()).await;
    call.abort();
    stage.until(|stage| !stage.ended().is_empty()).await;
    assert_eq!(stage.ended()[0]["aggregatedOutput"], "aborted by user");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_environment_nothing_that_needs_one_is_offered_or_runs() {
    let known = ["list_dir", "read_file", "grep_files"].map(str::to_owned).to_vec();
    let features = ["request_permissions_tool".to_owned()].into();
    let offer = Offer { experimental: known, features, ..Offer::default() };
    let names = |offer: &Offer| -> Vec<String> {
        Registry::builtin().specs(offer).into_iter().map(|spec| spec.name).collect()
    };
    let mut stage = Stage::new();
    let local = stage.step.environments[0].clone();
    let (all, fewer) = (names(&offer), names(&Offer { has_environment: false, ..offer.clone() }));
    for (tool, arguments) in calls() {
        assert!(all.contains(&tool.to_owned()) && !fewer.contains(&tool.to_owned()), "{tool}");
        for (state, expected) in [
            (
                Some(EnvironmentState::Starting),
                "no environment is attached: `local` is still starting; try again later",
            ),
            (Some(EnvironmentState::Disconnected), "no environment is attached: `local` is disconnected"),
            (None, "no environment is attached: there is no place to run this in"),
        ] {
            let places = state.map(|state| engine::StepEnvironment { state, ..local.clone() });
            stage.step.environments = places.into_iter().collect();
            assert_eq!(stage.call(tool, arguments.clone()).await, (expected.to_owned(), false), "{tool}");
        }
    }
    assert!(!fewer.contains(&"request_permissions".to_owned()));
    for kept in ["write_stdin", "update_plan", "request_user_input"] {
        assert!(fewer.contains(&kept.to_owned()), "{fewer:?}");
    }
    assert!(stage.heard().is_empty());
}
