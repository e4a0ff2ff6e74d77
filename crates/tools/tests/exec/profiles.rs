//! The user's profile: read by login shells, unless its effect is cached.

use std::fs;
use std::time::Duration;

use protocol::AskForApproval;
use serde_json::json;

use crate::stage::{Answer, PATIENCE, Stage};

/// Commands run in the user's login shell, whose profile leaves a mark each time it is read.
fn stage(sandbox: &str, profile: &str) -> Stage {
    let stage = Stage::asking(AskForApproval::Never, json!({"type": sandbox}), |_| Answer::Decline);
    let stage = stage.with_options(|options| {
        options.shell = "/bin/bash".into();
        options.login_shell = true;
        options.features.insert("shell_snapshot".to_owned());
    });
    write_profile(&stage, profile);
    stage
}

fn write_profile(stage: &Stage, profile: &str) {
    let text = format!("{{ echo read >> {}; }} 2>/dev/null\n{profile}", stage.path("marks").display());
    fs::write(stage.path(".bash_profile"), text).expect("written");
}

fn marks(stage: &Stage) -> usize {
    fs::read_to_string(stage.path("marks")).unwrap_or_default().lines().count()
}

async fn run(stage: &Stage, script: &str) -> String {
    let (text, _) = stage.call("shell_command", json!({"command": script})).await;
    text.split_once("Output:\n").map_or(text.clone(), |(_, output)| output.to_owned())
}

/// Runs the script until the profile is no longer read. The output must stay the same.
async fn until_unread(stage: &Stage, script: &str, expected: &str) {
    let again = async {
        loop {
            let before = marks(stage);
            assert_eq!(run(stage, script).await, expected);
            if marks(stage) == before {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, again).await.expect("it is known soon");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_effect_of_a_profile_is_cached() {
    let profile =
        "export GREETING='hello  there' PATH=/opt/own:$PATH; unset -v GONE\nuse() { echo \"used $1\n\"; }\n";
    let stage = stage("dangerFullAccess", profile).with_options(|options| {
        options.env.insert("GONE".to_owned(), "still here".to_owned());
    });
    let script = "echo \"$GREETING ${PATH%%:*} ${GONE-gone} $0\"; use it; nowhere";
    let expected =
        "hello  there /opt/own gone /bin/bash\nused it\n\n/bin/bash: line 1: nowhere: command not found\n";
    until_unread(&stage, script, expected).await;
    // A terminal of the model adds its own variables.
    let (text, _) = stage.call("exec_command", json!({"cmd": "use it; echo $GREETING $TERM $PAGER"})).await;
    assert!(text.ends_with("Output:\nused it\n\nhello there dumb cat\n"), "{text}");
    let before = marks(&stage);
    // In another folder, in another shell and in a terminal nothing is cached.
    fs::create_dir(stage.path("sub")).expect("made");
    for arguments in [json!({"cmd": "use it", "workdir": "sub"}), json!({"cmd": "use it", "tty": true})] {
        let (text, _) = stage.call("exec_command", arguments).await;
        assert!(text.contains("used it"), "{text}");
    }
    assert_eq!(marks(&stage), before + 2);
    // The command is shown and decided in the model's form.
    let shown = serde_json::to_value(stage.proposals().remove(3).item).expect("plain data");
    assert!(shown["command"].as_str().expect("a line").starts_with("/bin/bash -lc "), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_profile_is_read_at_once() {
    let stage = stage("dangerFullAccess", "export LEVEL=1\n");
    until_unread(&stage, "echo $LEVEL", "1\n").await;
    write_profile(&stage, "export LEVEL=22\n");
    until_unread(&stage, "echo $LEVEL", "22\n").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_changes_nothing_about_it() {
    let stage = stage("workspaceWrite", "export LEVEL=1\n");
    until_unread(&stage, "echo $LEVEL", "1\n").await;
    let said = run(&stage, "echo $CODEX_SANDBOX_NETWORK_DISABLED; echo $LEVEL > /usr/made").await;
    assert!(said.starts_with("1\n") && said.contains("Read-only file system"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_with_other_effects_is_always_read() {
    for profile in [
        "export ROLL=$RANDOM$RANDOM",
        "shopt -s extglob",
        "set -o pipefail",
        "alias ll='ls -l'",
        "umask 077",
        "inner=only-here",
        "trap 'echo bye' EXIT",
        "cd /",
        "export BASH_ENV=/dev/null",
        "exit 0",
        "sleep 0.2; false; exit 1",
    ] {
        let stage = stage("dangerFullAccess", profile);
        // Enough runs for the search to finish.
        for _ in 0..4 {
            run(&stage, "echo hi; :").await;
            stage.bench.profile_settled().await;
        }
        assert_eq!(marks(&stage), 4, "{profile}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_feature_every_profile_is_read() {
    let stage =
        stage("dangerFullAccess", "export LEVEL=1\n").with_options(|options| options.features.clear());
    for _ in 0..4 {
        assert_eq!(run(&stage, "echo $LEVEL").await, "1\n");
    }
    assert_eq!(marks(&stage), 4);
}
