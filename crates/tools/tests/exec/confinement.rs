//! Sandboxed commands, and what happens when the sandbox stops them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use protocol::{AskForApproval, CommandExecutionApprovalDecision};
use serde_json::{Value, json};

use crate::stage::{Answer, Stage};

fn read_only() -> Value {
    json!({"type": "readOnly"})
}

fn stage(approval: AskForApproval, sandbox: Value, answer: Answer) -> (Stage, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let stage = Stage::asking(approval, sandbox, move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        answer.clone()
    });
    // Long enough for the sandbox to stop a command at its start, even on a slow machine.
    let stage = stage.with_options(|options| options.early = Duration::from_secs(30));
    (stage, asked)
}

fn tools(script: &str) -> [(&'static str, Value); 3] {
    [
        ("exec_command", json!({"cmd": script})),
        ("shell", json!({"command": ["sh", "-c", script]})),
        ("shell_command", json!({"command": script})),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_sandbox_keeps_files_as_they_are() {
    for (tool, arguments) in tools("touch x; echo code $?; echo $CODEX_SANDBOX_NETWORK_DISABLED") {
        let (stage, asked) = stage(AskForApproval::Never, read_only(), Answer::Accept);
        let (text, _) = stage.call(tool, arguments).await;
        assert!(text.replace("\\n", "\n").contains("code 1\n1\n"), "{text}");
        assert!(!stage.path("x").exists());
        assert_eq!(asked.load(Ordering::Relaxed), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workspace_is_writable_except_for_files_that_control_later_commands() {
    let sandbox = json!({"type": "workspaceWrite", "excludeSlashTmp": true});
    let (stage, _) = stage(AskForApproval::Never, sandbox, Answer::Accept);
    std::fs::create_dir(stage.path(".git")).expect("made");
    let text = stage.exec("touch x; touch .git/config; mkdir .codex; touch .oarlock/x; echo done").await;
    assert!(text.contains("done\n"), "{text}");
    assert!(stage.path("x").exists());
    for name in [".git/config", ".codex", ".oarlock/x"] {
        assert!(!stage.path(name).exists(), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_control_later_commands_are_protected_at_depth() {
    let sandbox = json!({"type": "workspaceWrite", "excludeSlashTmp": true});
    for (tool, arguments) in
        tools("touch sub/x; echo x > sub/.codex/config.toml; touch a/b/.git/hooks/x; mv sub s; echo done")
    {
        let (stage, _) = stage(AskForApproval::Never, sandbox.clone(), Answer::Accept);
        for folder in ["sub/.codex", "a/b/.git/hooks"] {
            std::fs::create_dir_all(stage.path(folder)).expect("made");
        }
        let (text, _) = stage.call(tool, arguments).await;
        assert!(text.contains("done"), "{text}");
        assert!(stage.path("sub/x").exists(), "{text}");
        assert!(!stage.path("sub/.codex/config.toml").exists(), "{text}");
        assert!(!stage.path("a/b/.git/hooks/x").exists(), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_root_whose_link_another_thread_changed_is_refused() {
    let (mut stage, _) = stage(AskForApproval::Never, read_only(), Answer::Accept);
    let root = stage.path("root");
    std::fs::create_dir(&root).expect("made");
    std::fs::create_dir(stage.path("other")).expect("made");
    let sandbox = json!({"type": "workspaceWrite", "excludeSlashTmp": true, "writableRoots": [root]});
    stage.step.sandbox = serde_json::from_value(sandbox).expect("a policy");
    stage.step.cwd = stage.path("other").display().to_string();
    assert!(stage.exec("touch ../root/x && echo done").await.contains("done"));
    std::fs::rename(&root, stage.path("away")).expect("moved");
    std::os::unix::fs::symlink(stage.path("home"), &root).expect("made");
    std::fs::create_dir_all(stage.path("home")).expect("made");
    let (text, success) = stage.call("exec_command", json!({"cmd": "touch ../root/y"})).await;
    assert!(!success && text.contains("when it was decided on"), "{text}");
    assert!(!stage.path("home/y").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn hidden_files_cannot_be_read() {
    let (stage, _) = stage(AskForApproval::Never, read_only(), Answer::Accept);
    let secret = stage.path("auth.json");
    std::fs::write(&secret, "the secret").expect("written");
    let stage = stage.with_options(|options| options.off_limits.sealed = vec![secret]);
    assert!(!stage.exec("cat auth.json; true").await.contains("the secret"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_the_sandbox_stopped_runs_without_it_after_approval() {
    for approval in [AskForApproval::OnFailure, AskForApproval::Untrusted] {
        for (tool, arguments) in tools("touch x && echo made") {
            let (stage, asked) = stage(approval.clone(), read_only(), Answer::Accept);
            let (text, success) = stage.call(tool, arguments).await;
            assert!(success && text.contains("made"), "{tool}: {text}");
            assert!(stage.path("x").exists());
            let untrusted = approval == AskForApproval::Untrusted;
            assert_eq!(asked.load(Ordering::Relaxed), if untrusted { 2 } else { 1 }, "{tool}");
            let proposals = stage.proposals();
            let sandboxed: Vec<_> =
                proposals.iter().map(|proposal| &proposal.arguments["sandboxed"]).collect();
            assert_eq!(sandboxed, [true, false]);
            assert_eq!([proposals[0].number, proposals[1].number], [0, 1]);
            let asked = stage.questions().pop().expect("a question");
            assert!(asked.reason.is_some_and(|reason| reason.contains("without a sandbox")));
            let words = ["touch".to_owned(), "x".to_owned()].to_vec();
            assert_eq!(asked.proposed_execpolicy_amendment.as_ref(), Some(&words));
            let for_good = CommandExecutionApprovalDecision::AcceptWithExecpolicyAmendment {
                execpolicy_amendment: words,
            };
            assert!(asked.available_decisions.is_some_and(|offered| offered.contains(&for_good)));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_permanent_approval_runs_the_next_command_without_a_sandbox() {
    let answer = Answer::Amend(vec!["touch".to_owned(), "x".to_owned()]);
    let (stage, asked) = stage(AskForApproval::OnFailure, read_only(), answer);
    for _ in 0..2 {
        assert!(stage.exec("touch x").await.contains("exited with code 0"));
    }
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    // No general rule is offered for removals.
    stage.exec("rm -f x").await;
    let question = stage.questions().pop().expect("a question");
    assert_eq!(question.proposed_execpolicy_amendment, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_declined_retry_does_not_run() {
    for (tool, arguments) in tools("touch x") {
        let (stage, asked) = stage(AskForApproval::OnFailure, read_only(), Answer::Decline);
        let (text, success) = stage.call(tool, arguments).await;
        assert!(!success && text.contains("rejected by user"), "{text}");
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        assert!(!stage.path("x").exists());
        assert!(stage.ended().is_empty(), "the thread ends what was declined");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_without_questions_ask_nothing() {
    for approval in [AskForApproval::Never, AskForApproval::OnRequest] {
        for (tool, arguments) in tools("touch x") {
            let (stage, asked) = stage(approval.clone(), read_only(), Answer::Accept);
            let (text, _) = stage.call(tool, arguments).await;
            assert!(text.contains("Read-only file system"), "{text}");
            assert_eq!(asked.load(Ordering::Relaxed), 0);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn grants_and_additional_permissions_extend_the_sandbox() {
    let (mut stage, asked) = stage(AskForApproval::OnRequest, read_only(), Answer::Accept);
    stage = stage.with_options(|options| options.features.extend(["exec_permission_approvals".to_owned()]));
    for name in ["granted", "asked", "closed"] {
        std::fs::create_dir(stage.path(name)).expect("made");
    }
    let granted = json!({"fileSystem": {"read": null, "write": [stage.path("granted")]}});
    stage.grants = serde_json::from_value(granted).expect("grants");
    stage.exec("touch granted/x closed/x").await;
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    let more = |path: &str| {
        json!({"cmd": format!("touch {path}/x"), "sandbox_permissions": "with_additional_permissions",
               "additional_permissions": {"file_system": {"write": [path]}}})
    };
    stage.call("exec_command", more("granted")).await;
    assert_eq!(asked.load(Ordering::Relaxed), 0, "granted before");
    stage.call("exec_command", more("asked")).await;
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    let question = serde_json::to_value(&stage.questions()[0]).expect("plain data");
    assert_eq!(
        question["additionalPermissions"]["fileSystem"]["write"][0],
        json!(stage.path("asked").canonicalize().expect("there"))
    );
    assert_eq!(question["availableDecisions"], json!(["accept", "cancel"]));
    let made = |name: &str| stage.path(name).join("x").exists();
    assert_eq!([made("granted"), made("asked"), made("closed")], [true, true, false]);
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_are_hidden_until_they_are_granted() {
    let (stage, _) = stage(AskForApproval::Never, read_only(), Answer::Accept);
    let folder = stage.path("keys");
    std::fs::create_dir(&folder).expect("made");
    std::fs::write(folder.join("id"), "the secret").expect("written");
    let mut stage =
        stage.with_options(|options| options.off_limits.credentials = vec![folder.clone()].into());
    let tries = "cat keys/id; cat keys/../keys/id; ln -s $PWD/keys /tmp/.l$$ && cat /tmp/.l$$/id; true";
    assert!(!stage.exec(tries).await.contains("the secret"));
    let (read, success) = stage.call("read_file", json!({"file_path": "keys/id"})).await;
    assert!(!success && read.contains("is not among what you may read"), "{read}");
    stage.grants =
        serde_json::from_value(json!({"fileSystem": {"read": [folder], "write": null}})).expect("grants");
    assert!(stage.exec("cat keys/id").await.contains("the secret"));
    assert!(stage.call("read_file", json!({"file_path": "keys/id"})).await.0.contains("the secret"));
}

/// An approval may take minutes; a file that is stored meanwhile is hidden like every other.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_stored_during_an_approval_is_hidden_from_the_command() {
    let elsewhere = tempfile::tempdir().expect("a folder");
    let key = elsewhere.path().canonicalize().expect("there").join("key");
    let stored = key.clone();
    let stage = Stage::asking(AskForApproval::Untrusted, read_only(), move |_| {
        std::fs::write(&stored, "the secret").expect("written");
        Answer::Accept
    });
    let place = key.clone();
    let stage = stage.with_options(move |options| options.off_limits.credentials = vec![place].into());
    let text = stage
        .exec(&format!("python3 -c 'print(open(\"{0}\").read())' || head {0}; echo over", key.display()))
        .await;
    assert!(key.exists(), "nobody was asked");
    assert!(text.contains("over") && !text.contains("the secret"), "{text}");
}
