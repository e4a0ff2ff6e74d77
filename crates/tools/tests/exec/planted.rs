//! Rules are about programs, not about whatever bears their name or stands in a script.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use protocol::AskForApproval;
use serde_json::{Value, json};

use crate::stage::{Answer, Stage};

fn workspace() -> Value {
    json!({"type": "workspaceWrite", "excludeSlashTmp": true, "excludeTmpdirEnvVar": true})
}

fn stage(rules: &str) -> Stage {
    let stage = Stage::asking(AskForApproval::OnRequest, workspace(), |_| Answer::Decline);
    stage.rules(rules);
    stage
}

fn ran_sandboxed(stage: &Stage) -> Vec<Value> {
    stage.proposals().iter().map(|proposal| proposal.arguments["sandboxed"].clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_planted_program_does_not_leave_the_sandbox_by_a_rule_for_its_name() {
    let outside = tempfile::tempdir().expect("a folder");
    let mark = outside.path().join("escaped");
    for tool in ["exec_command", "shell_command"] {
        let stage = stage("prefix_rule(pattern=[\"git\", \"fetch\"], decision=\"allow\")\n");
        let venv = stage.path(".venv/bin");
        std::fs::create_dir_all(&venv).expect("made");
        stage.program(".venv/bin/git", &format!("#!/bin/sh\ntouch {}\n", mark.display()));
        let path = format!("{}:/usr/bin:/bin", venv.display());
        let stage = stage.with_options(|options| {
            options.env.insert("PATH".to_owned(), path);
        });
        let script = "git fetch";
        let arguments = match tool {
            "exec_command" => json!({"cmd": script}),
            _ => json!({"command": script}),
        };
        stage.call(tool, arguments).await;
        assert_eq!(ran_sandboxed(&stage), [true], "{tool}");
        assert!(!mark.exists(), "{tool}: the planted program ran without a sandbox");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_for_a_program_of_the_system_holds() {
    let outside = tempfile::tempdir().expect("a folder");
    let mark = outside.path().join("made");
    let stage = stage("prefix_rule(pattern=[\"touch\"], decision=\"allow\")\n");
    let stage = stage.with_options(|options| {
        options.env.insert("PATH".to_owned(), "/usr/bin:/bin".to_owned());
    });
    stage.exec(&format!("touch {}", mark.display())).await;
    assert_eq!(ran_sandboxed(&stage), [false]);
    assert!(mark.exists());
}

/// A profile that puts a folder of the workspace first does so for login shells alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_profile_puts_no_other_program_in_the_place_of_the_one_that_a_rule_is_about() {
    let outside = tempfile::tempdir().expect("a folder");
    let (mark, home) = (outside.path().join("escaped"), outside.path().join("home"));
    std::fs::create_dir(&home).expect("made");
    std::fs::write(home.join(".profile"), "PATH=./bin:$PATH\n").expect("written");
    let stage = stage("prefix_rule(pattern=[\"touch\"], decision=\"allow\")\n");
    std::fs::create_dir(stage.path("bin")).expect("made");
    stage.program("bin/touch", &format!("#!/bin/sh\necho planted > {}\n", mark.display()));
    let stage = stage.with_options(|options| {
        options.env.insert("PATH".to_owned(), "/usr/bin:/bin".to_owned());
        options.env.insert("HOME".to_owned(), home.display().to_string());
        options.login_shell = true;
    });
    stage.call("exec_command", json!({"cmd": "touch made", "shell": "/bin/bash", "login": true})).await;
    assert_eq!(ran_sandboxed(&stage), [false]);
    assert!(!mark.exists() && stage.path("made").exists());
}

/// A rule that an earlier release wrote after a permanent approval.
#[tokio::test(flavor = "multi_thread")]
async fn a_rewritten_script_does_not_leave_the_sandbox_by_a_rule_that_an_approval_left() {
    let outside = tempfile::tempdir().expect("a folder");
    let mark = outside.path().join("escaped");
    for (pattern, script) in [
        ("\"./run.sh\"", "./run.sh"),
        ("\"sh\", \"run.sh\"", "sh run.sh"),
        ("\"python3\", \"build.py\"", "python3 build.py"),
        ("\"make\", \"x\"", "make x"),
    ] {
        let stage = stage(&format!("prefix_rule(pattern=[{pattern}], decision=\"allow\")\n"));
        stage.program("run.sh", &format!("#!/bin/sh\ntouch {}\n", mark.display()));
        stage.program("build.py", &format!("open('{}', 'w')\n", mark.display()));
        stage.program("Makefile", &format!("x:\n\ttouch {}\n", mark.display()));
        stage.exec(script).await;
        assert_eq!(ran_sandboxed(&stage), [true], "{script}");
        assert!(!mark.exists(), "{script}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_yes_for_the_session_does_not_count_for_what_the_project_says_later() {
    for (script, expected) in [("make x", 2), ("sh run.sh", 2), ("touch y", 1)] {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let stage = Stage::asking(AskForApproval::OnRequest, workspace(), move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            Answer::ForSession
        });
        for text in ["echo one", "echo two"] {
            stage.program("run.sh", &format!("{text}\n"));
            stage.program("Makefile", &format!("x:\n\t{text}\n"));
            let escalated = json!({"cmd": script, "sandbox_permissions": "require_escalated",
                                   "justification": "needs it"});
            stage.call("exec_command", escalated).await;
        }
        assert_eq!(asked.load(Ordering::Relaxed), expected, "{script}");
    }
}
