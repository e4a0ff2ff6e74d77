//! Questions before a command runs, and the effect of answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use protocol::{AskForApproval, ServerNotification};
use serde_json::{Value, json};

use crate::stage::{Answer, Heard, Stage};

fn full() -> Value {
    json!({"type": "dangerFullAccess"})
}

/// Approves everything and counts.
fn approving_counter(answer: Answer) -> (Stage, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let stage = Stage::asking(AskForApproval::Untrusted, full(), move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        answer.clone()
    });
    (stage, asked)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_question_has_all_fields() {
    let stage = Stage::asking(AskForApproval::OnRequest, json!({"type": "readOnly"}), |_| Answer::Accept);
    let arguments = json!({"cmd": "echo hi > out.txt; cat out.txt", "sandbox_permissions": "require_escalated",
                           "justification": "needs it"});
    let (text, _) = stage.call("exec_command", arguments).await;
    assert!(text.ends_with("Output:\nhi\n"), "{text}");
    let [asked] = &stage.questions()[..] else { panic!("one question") };
    let asked = serde_json::to_value(asked).expect("plain data");
    let cwd = stage.folder.path().canonicalize().expect("there");
    assert_eq!(
        asked,
        json!({
            "threadId": "", "turnId": "", "itemId": "", "startedAtMs": 0, "reason": "needs it",
            "command": "/bin/sh -c 'echo hi > out.txt; cat out.txt'", "cwd": cwd,
            "commandActions": [{"type": "unknown", "command": "echo hi > out.txt; cat out.txt"}],
            "availableDecisions": ["accept", "cancel"],
        })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_declined_command_does_not_run() {
    for (tool, arguments, expected) in [
        (
            "exec_command",
            json!({"cmd": "touch x"}),
            "exec_command failed for `/bin/sh -c 'touch x'`: \
             rejected by user",
        ),
        ("shell", json!({"command": ["touch", "x"]}), "exec command rejected by user"),
        ("shell_command", json!({"command": "touch x"}), "exec command rejected by user"),
    ] {
        let (stage, asked) = approving_counter(Answer::Decline);
        let (text, success) = stage.call(tool, arguments).await;
        assert_eq!((text.as_str(), success), (expected, false));
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        assert!(!stage.path("x").exists());
        // The thread ends the item of a declined proposal.
        assert!(matches!(stage.heard()[..], [Heard::Proposed(_)]), "{:?}", stage.heard());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_counts_once_and_a_session_approval_for_the_same_command() {
    let (stage, asked) = approving_counter(Answer::Accept);
    for expected in 1..=2 {
        stage.exec("touch x").await;
        assert_eq!(asked.load(Ordering::Relaxed), expected);
    }
    let (stage, asked) = approving_counter(Answer::ForSession);
    std::fs::create_dir(stage.path("sub")).expect("made");
    let cases = [
        (json!({"cmd": "touch x"}), 1),
        (json!({"cmd": "touch x"}), 1),
        (json!({"cmd": "touch x", "workdir": "sub"}), 2),
        (json!({"cmd": "touch x", "tty": true}), 3),
        (json!({"cmd": "touch y"}), 4),
        (json!({"cmd": "touch x"}), 4),
    ];
    for (arguments, expected) in cases {
        stage.call("exec_command", arguments.clone()).await;
        assert_eq!(asked.load(Ordering::Relaxed), expected, "{arguments}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_permanent_approval_becomes_a_rule() {
    let (stage, asked) = approving_counter(Answer::Amend(vec!["touch".to_owned(), "amended".to_owned()]));
    for _ in 0..2 {
        let text = stage.exec("touch amended").await;
        assert!(text.contains("exited with code 0"), "{text}");
    }
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    assert_eq!(
        stage.questions()[0].proposed_execpolicy_amendment,
        Some(vec!["touch".into(), "amended".into()])
    );
    let rules = std::fs::read_to_string(&stage.bench.options().rules_file).expect("written");
    assert_eq!(rules, "prefix_rule(pattern=[\"touch\", \"amended\"], decision=\"allow\")\n");
    // Another thread of the same home reads it.
    let (other, asked_there) = approving_counter(Answer::Decline);
    let options = stage.bench.options().clone();
    let other = other.with_options(|own| own.rule_folders = options.rule_folders);
    assert!(other.exec("touch amended").await.contains("exited with code 0"));
    assert_eq!(asked_there.load(Ordering::Relaxed), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_that_cannot_be_saved_still_applies_and_clients_are_notified() {
    let (stage, asked) = approving_counter(Answer::Amend(vec!["touch".to_owned()]));
    let stage = stage.with_options(|options| options.rules_file = "/proc/nowhere/default.rules".into());
    stage.exec("touch a").await;
    stage.exec("touch b").await;
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    assert!(matches!(&stage.told()[..], [ServerNotification::ConfigWarning(warning)]
        if warning.path.as_deref() == Some("/proc/nowhere/default.rules")));
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_forbid_and_invalid_ones_are_reported_once() {
    let (stage, asked) = approving_counter(Answer::Accept);
    let folder = stage.bench.options().rule_folders[0].join("rules");
    std::fs::create_dir_all(&folder).expect("made");
    let rule = "prefix_rule(pattern=[\"touch\"], decision=\"forbidden\", justification=\"no traces\")\n";
    std::fs::write(folder.join("a.rules"), rule).expect("written");
    std::fs::write(folder.join("b.rules"), "prefix_rule(").expect("written");
    for _ in 0..2 {
        let (text, success) = stage.call("exec_command", json!({"cmd": "touch x"})).await;
        assert!(!success && text.contains("no traces") && text.contains("was rejected: "), "{text}");
    }
    let (text, _) = stage.call("shell", json!({"command": ["touch", "x"]})).await;
    assert!(text.contains("was rejected: no traces"), "{text}");
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    assert!(stage.proposals().is_empty() && !stage.path("x").exists());
    let warnings =
        stage.told().into_iter().filter(|told| matches!(told, ServerNotification::ConfigWarning(_)));
    assert_eq!(warnings.count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn some_policies_forbid_leaving_the_sandbox() {
    for (approval, name) in [
        (AskForApproval::Never, "Never"),
        (AskForApproval::OnFailure, "OnFailure"),
        (AskForApproval::Untrusted, "UnlessTrusted"),
    ] {
        let stage = Stage::asking(approval, full(), |_| Answer::Accept);
        for (tool, command) in
            [("exec_command", json!({"cmd": "touch x"})), ("shell_command", json!({"command": "touch x"}))]
        {
            let mut arguments = command;
            arguments["sandbox_permissions"] = json!("require_escalated");
            let (text, success) = stage.call(tool, arguments).await;
            assert!(!success);
            assert_eq!(
                text,
                format!(
                    "approval policy is {name}; reject command — you cannot ask for escalated permissions if the \
                     approval policy is {name}"
                )
            );
        }
        // No question is asked, and clients see the request and the reason.
        assert!(stage.proposals().is_empty() && !stage.path("x").exists());
        let begun = |told: &ServerNotification| matches!(told, ServerNotification::ItemStarted(_));
        assert_eq!(stage.told().iter().filter(|told| begun(told)).count(), 2);
        // A command that runs to its end has its item in its outcome.
        let [ended] = &stage.ended()[..] else { panic!("{:?}", stage.ended()) };
        assert_eq!(ended["status"], "declined");
        assert!(ended["aggregatedOutput"].as_str().is_some_and(|text| text.contains("reject command")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_hides_nothing() {
    let (stage, _) = approving_counter(Answer::Decline);
    let arguments = json!({"cmd": "./good\u{202e}gnp.sh\u{200b}\u{1b}[2K", "justification": "a\u{7}b"});
    stage.call("exec_command", arguments).await;
    let asked = &stage.questions()[0];
    let command = asked.command.as_deref().expect("a command");
    assert!(command.contains("good\\u{202e}gnp.sh\\u{200b}\\u{1b}[2K"), "{command}");
    assert_eq!(asked.reason.as_deref(), Some("a\\u{7}b"));
    let actions = serde_json::to_string(&asked.command_actions).expect("plain data");
    assert!(!actions.contains('\u{202e}'), "{actions}");
    // The item has the unescaped text.
    let item = serde_json::to_value(stage.proposals()[0].item.as_ref()).expect("plain data");
    assert!(item["command"].as_str().is_some_and(|command| command.contains('\u{202e}')));
}

#[tokio::test(flavor = "multi_thread")]
async fn known_safe_commands_run_sandboxed_and_a_planted_name_is_asked_about() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let sandbox = json!({"type": "workspaceWrite", "excludeSlashTmp": true});
    let stage = Stage::asking(AskForApproval::Untrusted, sandbox, move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        Answer::Decline
    });
    std::fs::write(stage.path("a.txt"), "inside\n").expect("written");
    let text = stage.exec("cat a.txt").await;
    assert!(text.ends_with("Output:\ninside\n"), "{text}");
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    assert_eq!(stage.proposals()[0].arguments["sandboxed"], true);
    assert!(stage.proposals()[0].arguments.get("commandActions").is_none());
    std::fs::copy("/bin/cat", stage.path("cat")).expect("copied");
    for cmd in ["./cat a.txt", "cat a.txt > b.txt", "cat $(touch x)", "find . -delete", "cat a.txt & touch x"]
    {
        let before = asked.load(Ordering::Relaxed);
        let (_, success) = stage.call("exec_command", json!({"cmd": cmd})).await;
        assert!(!success && asked.load(Ordering::Relaxed) == before + 1, "{cmd}");
        // Clients get the runtime's analysis of it.
        let proposals = stage.proposals();
        let actions = proposals.last().and_then(|proposal| proposal.arguments["commandActions"].as_array());
        assert!(actions.is_some_and(|actions| actions.iter().all(|one| one["type"].is_string())), "{cmd}");
    }
    assert!(!stage.path("x").exists() && !stage.path("b.txt").exists());
}
