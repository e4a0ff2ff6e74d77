//! Questions before something happens in an environment without a sandbox.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use protocol::AskForApproval;
use serde_json::{Value, json};

use crate::stage::{Answer, Stage};

const PREFIX: &[&str] = &["env", "-i", "PATH=/usr/bin:/bin"];

fn stage(approval: AskForApproval, sandbox: Value, answer: Answer) -> (Stage, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let stage = Stage::asking(approval, sandbox, move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        answer.clone()
    });
    (stage.behind("box", PREFIX), asked)
}

fn granular(sandbox_approval: bool) -> AskForApproval {
    AskForApproval::Granular {
        sandbox_approval,
        rules: true,
        skill_approval: true,
        request_permissions: true,
        mcp_elicitations: true,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_there_leaves_the_sandbox() {
    let (read_only, workspace) = (json!({"type": "readOnly"}), json!({"type": "workspaceWrite"}));
    let (full, external) = (json!({"type": "dangerFullAccess"}), json!({"type": "externalSandbox"}));
    let cases = [
        (AskForApproval::Untrusted, &read_only, true),
        (AskForApproval::OnRequest, &read_only, true),
        (AskForApproval::OnFailure, &workspace, true),
        (granular(true), &workspace, true),
        (AskForApproval::Untrusted, &full, true),
        (AskForApproval::Untrusted, &external, true),
        (AskForApproval::OnRequest, &full, false),
        (AskForApproval::Never, &full, false),
        (AskForApproval::Never, &external, false),
        (AskForApproval::OnFailure, &external, false),
    ];
    for (approval, sandbox, asks) in cases {
        // The last one is known to be safe on this machine.
        for cmd in ["touch x", "cat f"] {
            let (stage, asked) = stage(approval.clone(), sandbox.clone(), Answer::Accept);
            std::fs::write(stage.path("f"), "hi\n").expect("written");
            let (text, success) = stage.call("exec_command", json!({"cmd": cmd})).await;
            assert!(success && text.contains("exited with code 0"), "{approval:?} {sandbox}: {text}");
            assert_eq!(asked.load(Ordering::Relaxed), usize::from(asks), "{approval:?} {sandbox} {cmd}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_without_questions_refuse_with_advice() {
    for (approval, sandbox) in [
        (AskForApproval::Never, json!({"type": "readOnly"})),
        (AskForApproval::Never, json!({"type": "workspaceWrite"})),
        (granular(false), json!({"type": "workspaceWrite"})),
    ] {
        let (stage, asked) = stage(approval, sandbox, Answer::Accept);
        let patch = "*** Begin Patch\n*** Add File: x\n+x\n*** End Patch";
        for (tool, arguments) in [
            ("exec_command", json!({"cmd": "touch x"})),
            ("shell", json!({"command": ["touch", "x"]})),
            ("shell_command", json!({"command": "cat f"})),
            ("apply_patch", json!({"input": patch})),
        ] {
            let (text, success) = stage.call(tool, arguments).await;
            assert!(!success && text.contains("environment `box` cannot be confined from here"), "{text}");
            assert!(text.contains("set sandboxPolicy to externalSandbox"), "{text}");
        }
        assert_eq!(asked.load(Ordering::Relaxed), 0);
        assert!(stage.proposals().is_empty() && !stage.path("x").exists());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_question_names_the_environment_and_an_approval_covers_only_it() {
    let (mut stage, asked) =
        stage(AskForApproval::OnRequest, json!({"type": "readOnly"}), Answer::ForSession);
    for _ in 0..2 {
        assert!(stage.call("shell_command", json!({"command": "touch x"})).await.1);
    }
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    let question = &stage.questions()[0];
    assert_eq!(question.command.as_deref(), Some("/bin/sh -c 'touch x'"));
    assert_eq!(question.cwd.as_deref(), Some(stage.step.cwd.as_str()));
    let reason = question.reason.as_deref().expect("a reason");
    assert_eq!(reason, "it runs in environment `box`, which cannot be confined from here");
    assert_eq!(question.proposed_execpolicy_amendment, None);
    let first = stage.proposals()[0].digest.clone();
    for (id, prefix) in [("other", PREFIX), ("box", &["env", "-i", "PATH=/bin:/usr/bin"])] {
        stage.go_to(id, prefix);
        let before = asked.load(Ordering::Relaxed);
        assert!(stage.call("shell_command", json!({"command": "touch x"})).await.1);
        assert_eq!(asked.load(Ordering::Relaxed), before + 1, "{id}");
        assert_ne!(stage.proposals().last().expect("one").digest, first);
    }
    let arguments =
        json!({"command": "touch y", "sandbox_permissions": "require_escalated", "justification": "why"});
    assert!(stage.call("shell_command", arguments).await.1);
    let question = stage.questions().pop().expect("asked");
    assert_eq!(question.reason.as_deref(), Some("why (in environment `box`)"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_declined_command_does_not_run_and_rules_apply_there_too() {
    let (stage, asked) = stage(AskForApproval::OnRequest, json!({"type": "readOnly"}), Answer::Decline);
    let rules = stage.path("home/rules");
    std::fs::create_dir_all(&rules).expect("made");
    let text = "prefix_rule(pattern=[\"touch\"], decision=\"allow\")\n\
                prefix_rule(pattern=[\"mkdir\"], decision=\"forbidden\", justification=\"no folders\")\n";
    std::fs::write(rules.join("default.rules"), text).expect("written");
    assert!(stage.call("shell_command", json!({"command": "touch x"})).await.1);
    assert!(stage.path("x").exists());
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    let (text, _) = stage.call("shell_command", json!({"command": "mkdir y"})).await;
    assert!(text.contains("no folders"), "{text}");
    let (text, _) = stage.call("shell_command", json!({"command": "cp x z"})).await;
    assert_eq!(text, "exec command rejected by user");
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    assert!(!stage.path("y").exists() && !stage.path("z").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn reading_needs_no_question() {
    let (stage, asked) = stage(AskForApproval::Never, json!({"type": "readOnly"}), Answer::Decline);
    std::fs::write(stage.path("f"), "hi\n").expect("written");
    assert_eq!(stage.call("read_file", json!({"file_path": "f"})).await, ("L1: hi".to_owned(), true));
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    assert!(stage.proposals().is_empty());
}
