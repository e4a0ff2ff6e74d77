//! A terminal keeps the permissions it was opened with; typing into it is decided by the current sandbox.

use protocol::AskForApproval;
use serde_json::{Value, json};

use crate::stage::{Answer, Stage, session_id};

async fn opened(approval: AskForApproval, answer: Answer) -> (Stage, u32) {
    let mut stage =
        Stage::asking(approval.clone(), json!({"type": "dangerFullAccess"}), move |_| answer.clone());
    stage.step.approval_policy = AskForApproval::Never;
    let begun = stage.call("exec_command", json!({"cmd": "sh", "tty": true, "yield_time_ms": 250})).await.0;
    stage.step.approval_policy = approval;
    let id = session_id(&begun);
    (stage, id)
}

fn narrow(stage: &mut Stage, sandbox: Value) {
    stage.step.sandbox = serde_json::from_value(sandbox).expect("a policy");
}

fn typed(id: u32, chars: &str) -> Value {
    json!({"session_id": id, "chars": chars, "yield_time_ms": 250})
}

#[tokio::test]
async fn without_questions_typing_into_a_terminal_with_more_permissions_is_refused() {
    let (mut stage, id) = opened(AskForApproval::Never, Answer::Accept).await;
    assert!(stage.call("write_stdin", typed(id, "touch before\n")).await.1);
    assert!(stage.path("before").exists());
    for sandbox in [json!({"type": "readOnly"}), json!({"type": "workspaceWrite"})] {
        narrow(&mut stage, sandbox);
        let (text, success) = stage.call("write_stdin", typed(id, "touch outside\n")).await;
        assert!(!success && text.contains("more rights") && text.contains("open a new one"), "{text}");
        // Reading and interrupting need no approval.
        assert!(stage.call("write_stdin", typed(id, "\u{3}")).await.1);
    }
    assert!(stage.questions().is_empty() && !stage.path("outside").exists());
    narrow(&mut stage, json!({"type": "dangerFullAccess"}));
    assert!(stage.call("write_stdin", typed(id, "touch after\n")).await.1);
    assert!(stage.path("after").exists());
}

#[tokio::test]
async fn typed_text_is_shown_and_asked_about() {
    for (answer, expected) in [(Answer::Accept, true), (Answer::Decline, false)] {
        let (mut stage, id) = opened(AskForApproval::OnRequest, answer).await;
        narrow(&mut stage, json!({"type": "readOnly"}));
        let (text, success) = stage.call("write_stdin", typed(id, "touch outside\n")).await;
        assert_eq!((success, stage.path("outside").exists()), (expected, expected), "{text}");
        let questions = stage.questions();
        assert_eq!(questions.len(), 1);
        assert!(questions[0].command.as_ref().expect("shown").contains("touch outside"));
        assert!(questions[0].reason.as_ref().expect("a reason").contains("more rights"));
    }
}

#[tokio::test]
async fn a_session_approval_applies_to_the_terminal() {
    let (mut stage, id) = opened(AskForApproval::OnRequest, Answer::ForSession).await;
    narrow(&mut stage, json!({"type": "readOnly"}));
    for name in ["one", "two"] {
        assert!(stage.call("write_stdin", typed(id, &format!("touch {name}\n"))).await.1);
        assert!(stage.path(name).exists());
    }
    // The second is approved already; the thread does not ask its client again.
    assert_eq!(stage.proposals().iter().filter(|proposal| proposal.question.is_some()).count(), 2);
}

#[tokio::test]
async fn a_terminal_of_the_same_sandbox_is_typed_into_freely() {
    let sandbox = json!({"type": "workspaceWrite"});
    let stage = Stage::asking(AskForApproval::OnRequest, sandbox, |_| Answer::Decline);
    let begun = stage.call("exec_command", json!({"cmd": "sh", "tty": true, "yield_time_ms": 250})).await.0;
    let (text, success) = stage.call("write_stdin", typed(session_id(&begun), "touch typed\n")).await;
    assert!(success && stage.path("typed").exists(), "{text}");
}
