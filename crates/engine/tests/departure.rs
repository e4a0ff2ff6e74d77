//! Turns whose process stops, or whose carrier of model requests leaves: put away or ended, and told as what it was.
#![allow(clippy::expect_used, reason = "a test may panic")]

mod support;

use model::{FailureClass, ModelFailure};
use oarlock_engine::{Effect, Input, Question, Reply, Thread, ThreadSeed, ToolOutcome};
use protocol::{
    CommandExecutionApprovalDecision as Decision, FileChangeApprovalDecision, ThreadId, TokenUsageBreakdown,
    TurnId,
};
use serde_json::json;
use support::{Fixture, added, call, completed, done, message, proposal, text};

#[track_caller]
fn check(fixture: &mut Fixture, expected: &[&str]) {
    assert_eq!(fixture.take(), expected);
}

fn gone() -> ModelFailure {
    ModelFailure::new(FailureClass::CarrierGone, "nobody is there")
}

#[test]
fn a_turn_whose_carrier_left_waits_and_has_no_end_in_the_record() {
    let mut fixture = Fixture::new();
    fixture.start("u1", "hi");
    fixture.model(added(message("m", ""))).model(text("par")).take();
    fixture.breaks(gone());
    check(
        &mut fixture,
        &[
            "record threadItem agent \"par\"",
            "item/completed agent \"par\"",
            "thread/status/changed idle",
            "turn/suspended",
        ],
    );
    assert_eq!(fixture.thread.active_turn(), None);
}

#[test]
fn calls_that_run_end_first_and_the_next_request_finds_out() {
    let mut fixture = Fixture::new();
    fixture.start("u1", "hi").model(done(call("c1", "update_plan", "{}"))).take();
    fixture.breaks(gone());
    check(&mut fixture, &[]);
    fixture.put(Input::ToolFinished { call_id: "c1".into(), outcome: ToolOutcome::text("planned") });
    check(&mut fixture, &["record responseItem output \"c1\": \"planned\"", "capture"]);
    // No try is counted: somebody may be there again.
    fixture.captured().take();
    fixture.breaks(gone());
    check(&mut fixture, &["thread/status/changed idle", "turn/suspended"]);
}

#[test]
fn a_turn_that_only_compacts_cannot_wait() {
    let mut fixture = Fixture::new();
    fixture.start("u1", "hi").model(completed(5)).take();
    let step = std::sync::Arc::new(fixture.step.clone());
    fixture.put(Input::Compact { turn_id: TurnId::new("u2"), step }).take();
    assert!(!fixture.thread.can_be_put_away());
    fixture.breaks(gone());
    let trace = fixture.take();
    assert!(trace.contains(&"record turnEnded Failed".to_owned()), "{trace:?}");
}

/// A command that has begun.
fn begun() -> Fixture {
    let mut fixture = Fixture::new();
    fixture.start("u1", "hi").model(done(call("c1", "update_plan", "{}"))).model(completed(5));
    let proposal = proposal("c1", 0, false);
    fixture.put(Input::Proposed { turn_id: TurnId::new("u1"), call_id: "c1".into(), proposal }).take();
    fixture
}

#[test]
fn only_the_user_aborts_in_the_name_of_the_user() {
    for (input, says, ends) in [
        (Input::Interrupt, "aborted by user after", true),
        (Input::CutOff, "stopped because the program that ran it was shut down or lost its host after", true),
        (
            Input::Suspend,
            "stopped because the program that ran it was shut down or lost its host after",
            false,
        ),
        (
            Input::StorageFailed { message: "full".into() },
            "stopped because the thread's record could not be written after",
            true,
        ),
    ] {
        let mut fixture = begun();
        let label = format!("{input:?}");
        fixture.put(input);
        let trace = fixture.take();
        assert!(
            trace.iter().any(|line| line.contains("output \"c1\"") && line.contains(says)),
            "{label}: {trace:?}"
        );
        assert_eq!(trace.iter().any(|line| line.starts_with("record turnEnded")), ends, "{label}: {trace:?}");
        assert!(trace.contains(&"record operation finished".to_owned()), "{label}: {trace:?}");
    }
}

#[test]
fn a_turn_that_is_cut_off_is_told_as_that() {
    let mut fixture = Fixture::new();
    fixture.start("u1", "hi");
    fixture.put(Input::CutOff);
    let prompt = format!("{:?}", fixture.thread.history());
    assert!(prompt.contains("<turn_aborted>") && prompt.contains("the user did not ask for"), "{prompt}");
    assert!(!prompt.contains("on purpose"), "{prompt}");
}

#[test]
fn what_a_broken_stream_cost_is_added_and_says_nothing_of_the_size() {
    let mut fixture = Fixture::new();
    fixture.start("u1", "hi").model(done(call("c1", "update_plan", "{}"))).model(completed(50));
    fixture.put(Input::ToolFinished { call_id: "c1".into(), outcome: ToolOutcome::text("planned") });
    fixture.captured().take();
    let spent = TokenUsageBreakdown {
        total_tokens: i64::MAX - 60,
        input_tokens: 7,
        cached_input_tokens: 0,
        output_tokens: 2,
        reasoning_output_tokens: 0,
    };
    let failure = ModelFailure { spent: Some(spent), ..ModelFailure::stream("lost") };
    fixture.breaks(failure.clone());
    let usage = fixture.thread.usage().expect("usage").clone();
    assert_eq!((usage.last.total_tokens, usage.total.total_tokens), (50, i64::MAX - 10));
    let trace = fixture.take();
    assert!(trace.iter().any(|line| line.starts_with("thread/tokenUsage/updated")), "{trace:?}");
    // One that nobody listens to any more costs nothing here, and nothing overflows.
    fixture.breaks(failure);
    assert_eq!(fixture.thread.usage().expect("usage").total.total_tokens, i64::MAX - 10);
}

/// A command or patch that is asked about, in a thread whose host agreed on operations or not.
fn asked(for_host: bool, question: Option<Question>) -> (Fixture, Vec<Effect>) {
    let mut fixture = Fixture::new();
    let seed = ThreadSeed { shows_operations: for_host, ..ThreadSeed::new(ThreadId::new("t")) };
    fixture.thread = Thread::new(seed);
    fixture.start("u1", "hi").model(done(call("c1", "update_plan", "{}"))).take();
    let mut proposal = proposal("c1", 0, true);
    proposal.arguments = json!({ "command": ["touch", "x"], "cwd": "/w" });
    if let Some(Question::Command(asked)) = proposal.question.as_deref_mut() {
        asked.available_decisions = Some(vec![Decision::Accept, Decision::Cancel]);
    }
    if let Some(question) = question {
        proposal.question = Some(Box::new(question));
    }
    let effects = fixture
        .on(Input::Proposed { turn_id: TurnId::new("u1"), call_id: "c1".into(), proposal })
        .expect("accepted");
    (fixture, effects)
}

#[test]
fn hosts_that_agreed_on_it_see_what_else_they_may_answer() {
    for for_host in [false, true] {
        let (_, effects) = asked(for_host, None);
        let found = effects.iter().find_map(|effect| match effect {
            Effect::AskClient { question, .. } => match &**question {
                Question::Command(asked) => asked.available_decisions.clone(),
                _ => None,
            },
            _ => None,
        });
        let command = vec!["touch".to_owned(), "x".to_owned()];
        let arguments = json!({ "command": ["touch", "x"], "cwd": "/w" });
        let mut expected = vec![Decision::Accept];
        if for_host {
            expected.push(Decision::AcceptWithCommandOverride { command });
            expected.push(Decision::AcceptWithArguments { arguments });
            expected.push(Decision::Respond { content_items: vec![], success: true });
        }
        expected.push(Decision::Cancel);
        assert_eq!(found, Some(expected), "for_host {for_host}");
        let recorded = format!("{effects:?}");
        assert_eq!(recorded.contains("\"acceptWithArguments\""), for_host, "{recorded}");
    }
}

#[test]
fn a_patch_can_be_replaced_by_another() {
    let params = json!({ "threadId": "", "turnId": "", "itemId": "", "reason": null, "grantRoot": null });
    for (arguments, expected) in [
        (json!({ "input": "*** Begin Patch" }), "decide c1 0 instead the patch *** Begin Patch"),
        (json!({ "input": "" }), "decide c1 0 declined"),
        (json!({ "patch": "x" }), "decide c1 0 declined"),
    ] {
        let question = Question::FileChange(serde_json::from_value(params.clone()).expect("params"));
        let (mut fixture, _) = asked(true, Some(question));
        fixture.take();
        let reply = Reply::FileChange(FileChangeApprovalDecision::AcceptWithArguments { arguments });
        fixture.answer("c1", Ok(reply));
        let trace = fixture.take();
        assert!(trace.contains(&"record operation decided".to_owned()), "{trace:?}");
        assert_eq!(trace.last().map(String::as_str), Some(expected));
    }
}
