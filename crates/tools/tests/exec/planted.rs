//! Rules are about programs, not about any file with that name or in a script.

use std::path::Path;
use std::process::Command;
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

/// A profile that puts a workspace folder first affects login shells only.
#[tokio::test(flavor = "multi_thread")]
async fn a_profile_does_not_replace_the_program_of_a_rule() {
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

#[tokio::test(flavor = "multi_thread")]
async fn an_administrators_rule_overrides_the_users_rules() {
    let required = policy::PrefixRule {
        pattern: vec![vec!["touch".to_owned()]],
        decision: policy::RuleDecision::Forbidden,
        justification: Some("not here".to_owned()),
        source: policy::RuleSource { file: "/etc/codex/requirements.toml".to_owned(), line: 0 },
        by_approval: false,
    };
    for rules in ["prefix_rule(pattern=[\"touch\"], decision=\"allow\")\n", "not a rule"] {
        let stage = stage(rules);
        let required = required.clone();
        let stage = stage.with_options(|options| options.required_rules = vec![required]);
        let text = stage.exec("touch made").await;
        assert!(text.contains("not here") && !stage.path("made").exists(), "{text}");
    }
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

/// Makes the workspace a repository with a hook that runs a script of the project.
fn repository(stage: &Stage, mark: &Path) {
    let git = |words: &[&str]| {
        let made =
            Command::new("git").args(words).current_dir(stage.folder.path()).output().expect("git runs");
        assert!(made.status.success(), "{words:?}: {made:?}");
    };
    git(&["init", "-q"]);
    git(&["config", "user.name", "Somebody"]);
    git(&["config", "user.email", "somebody@example.com"]);
    stage.program(".git/hooks/pre-commit", "#!/bin/sh\n./check.sh\n");
    stage.program("check.sh", &format!("#!/bin/sh\ntouch {}\n", mark.display()));
}

fn at_home_in(stage: Stage, home: &Path) -> Stage {
    let home = home.display().to_string();
    stage.with_options(|options| drop(options.env.insert("HOME".to_owned(), home)))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_that_runs_files_of_the_project_does_not_leave_the_sandbox_by_a_rule_for_git() {
    let outside = tempfile::tempdir().expect("a folder");
    let mark = outside.path().join("escaped");
    let stage = at_home_in(stage(""), outside.path());
    let rule = "prefix_rule(pattern=[\"git\", \"commit\"], decision=\"allow\")\n";
    std::fs::write(stage.path("home/rules/own.rules"), rule).expect("written");
    repository(&stage, &mark);
    stage.exec("git commit --allow-empty -m x").await;
    assert_eq!(ran_sandboxed(&stage), [true]);
    assert!(!mark.exists(), "the script of the project ran without a sandbox");
    // Without the hook, the rule applies.
    std::fs::remove_file(stage.path(".git/hooks/pre-commit")).expect("removed");
    let text = stage.exec("git commit --allow-empty -m x").await;
    assert_eq!(ran_sandboxed(&stage), [true, false], "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_of_the_user_that_commands_can_write_do_not_leave_the_sandbox_by_a_rule_for_git() {
    let outside = tempfile::tempdir().expect("a folder");
    let mark = outside.path().join("escaped");
    // The home folder is the workspace.
    let stage = stage("prefix_rule(pattern=[\"git\", \"fetch\"], decision=\"allow\")\n");
    repository(&stage, &mark);
    let settings = format!("[core]\n\tsshCommand = touch {};\n", mark.display());
    std::fs::write(stage.path(".gitconfig"), settings).expect("written");
    stage.exec("git fetch ssh://nowhere.invalid/x").await;
    assert_eq!(ran_sandboxed(&stage), [true]);
    assert!(!mark.exists(), "the settings were obeyed without a sandbox");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_approval_does_not_cover_later_project_files() {
    let elsewhere = tempfile::tempdir().expect("a folder");
    let commit = "git commit --allow-empty -m x";
    for (script, expected) in [("make x", 2), ("sh run.sh", 2), ("touch y", 1), (commit, 2)] {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let stage = Stage::asking(AskForApproval::OnRequest, workspace(), move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            Answer::ForSession
        });
        let stage = at_home_in(stage, elsewhere.path());
        repository(&stage, &elsewhere.path().join("mark"));
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
