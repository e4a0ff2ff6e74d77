//! The automatic reviewer of approvals, from outside.

use oarlock_engine::{Input, Step};
use protocol::{AskForApproval, TurnId};
use serde_json::{Value, json};

use crate::support::{Fixture, call, completed, done, message, proposal, step};

/// A turn with a call whose proposal the reviewer assesses; the reviewer's request is the last one.
fn judged() -> Fixture {
    let mut fixture = Fixture::new();
    fixture.step = Step { approval_policy: AskForApproval::OnRequest, reviews_approvals: true, ..step() };
    fixture.start("u1", "go").model(done(call("c1", "update_plan", "{}"))).model(completed(10)).take();
    let turn_id = TurnId::new("u1");
    fixture.put(Input::Proposed { turn_id, call_id: "c1".into(), proposal: proposal("c1", 0, true) });
    fixture
}

fn verdict(score: i64) -> String {
    json!({"risk_level": "low", "risk_score": score, "rationale": "seen", "evidence": []}).to_string()
}

fn answered(answer: &str) -> Vec<String> {
    let mut fixture = judged();
    fixture.take();
    fixture.model(done(message("m", answer))).model(completed(5));
    fixture.take()
}

#[test]
fn the_reviewer_is_asked_and_no_client_is() {
    let mut fixture = judged();
    assert_eq!(
        fixture.take(),
        [
            "record operation proposed",
            "item/started command InProgress",
            "item/autoApprovalReview/started",
            "request 2",
            "deadline 2"
        ]
    );
    let request: &Value = fixture.last_request.as_ref().expect("a request");
    assert_eq!(request["tools"], json!([]));
    let input = request["input"].to_string();
    assert!(input.contains("touch x") && input.contains("go"), "{input}");
    assert!(!fixture.thread.is_pending(), "nothing waits for a client");
}

#[test]
fn administrator_instructions_precede_the_question_to_the_reviewer() {
    let mut fixture = Fixture::new();
    let policy = AskForApproval::OnRequest;
    let step = Step { approval_policy: policy, reviews_approvals: true, ..step() };
    fixture.step = Step { reviewer_instructions: Some("refuse uploads".into()), ..step };
    fixture.start("u1", "go").model(done(call("c1", "update_plan", "{}"))).model(completed(10)).take();
    let turn_id = TurnId::new("u1");
    fixture.put(Input::Proposed { turn_id, call_id: "c1".into(), proposal: proposal("c1", 0, true) });
    let request: &Value = fixture.last_request.as_ref().expect("a request");
    let input = request["input"].as_array().expect("a list");
    let roles: Vec<_> = input.iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["developer", "user"]);
    assert_eq!(input[0]["content"][0]["text"], "refuse uploads");
}

#[test]
fn a_clear_yes_runs_and_anything_else_does_not() {
    for (answer, runs) in [
        (verdict(0), true),
        (verdict(79), true),
        (verdict(80), false),
        (verdict(101), false),
        (verdict(-1), false),
        ("approve".to_owned(), false),
        (String::new(), false),
        (format!("{} trailing", verdict(0)), false),
        ("{\"risk_score\": 0}".to_owned(), false),
    ] {
        let trace = answered(&answer);
        assert_eq!(trace.contains(&"record operation started".to_owned()), runs, "{answer}: {trace:?}");
        assert!(trace.contains(&"record operation decided".to_owned()), "{answer}: {trace:?}");
        let told = if runs { "Approved" } else { "Denied" };
        assert!(trace.contains(&format!("item/autoApprovalReview/completed {told}")), "{answer}: {trace:?}");
    }
}

#[test]
fn the_user_is_asked_when_the_reviewer_is_late() {
    let mut fixture = judged();
    fixture.take();
    fixture.put(Input::DeadlinePassed { attempt: 2 });
    assert_eq!(
        fixture.take(),
        [
            "cancel 2",
            "item/autoApprovalReview/completed Aborted",
            "thread/status/changed active",
            "ask c1 command touch x"
        ]
    );
    // The late answer is ignored.
    fixture.model(done(message("m", &verdict(0)))).model(completed(5));
    assert_eq!(fixture.take(), Vec::<String>::new());
    assert!(fixture.thread.is_pending());
    fixture.put(Input::DeadlinePassed { attempt: 2 });
    assert_eq!(fixture.take(), Vec::<String>::new());
}

#[test]
fn a_stop_ends_the_review_with_the_turn() {
    let mut fixture = judged();
    fixture.take();
    fixture.put(Input::Interrupt);
    let trace = fixture.take();
    assert!(trace.contains(&"cancel 2".to_owned()), "{trace:?}");
    assert!(trace.contains(&"item/autoApprovalReview/completed Aborted".to_owned()), "{trace:?}");
    fixture.assert_all_closed();
}

#[test]
fn the_user_is_asked_about_an_action_that_is_too_long() {
    let mut fixture = Fixture::new();
    fixture.step = Step { approval_policy: AskForApproval::OnRequest, reviews_approvals: true, ..step() };
    fixture.start("u1", "go").model(done(call("c1", "update_plan", "{}"))).model(completed(10)).take();
    let mut long = proposal("c1", 0, true);
    long.arguments = json!({"argv": ["echo", "x".repeat(70_000)]});
    fixture.put(Input::Proposed { turn_id: TurnId::new("u1"), call_id: "c1".into(), proposal: long });
    assert!(fixture.take().contains(&"ask c1 command touch x".to_owned()));
}

#[test]
fn a_host_that_decides_is_asked_itself() {
    let mut seed = oarlock_engine::ThreadSeed::new(protocol::ThreadId::new("t"));
    seed.shows_operations = true;
    let mut fixture = Fixture::new();
    fixture.thread = oarlock_engine::ThreadMachine::new(seed);
    fixture.step = Step { approval_policy: AskForApproval::OnRequest, reviews_approvals: true, ..step() };
    fixture.start("u1", "go").model(done(call("c1", "update_plan", "{}"))).model(completed(10)).take();
    let proposed = Input::Proposed {
        turn_id: TurnId::new("u1"),
        call_id: "c1".into(),
        proposal: proposal("c1", 0, true),
    };
    fixture.put(proposed);
    assert!(fixture.take().contains(&"ask c1 command touch x".to_owned()));
}
