//! Turns whose process stops or whose host disconnects: suspended or ended, and reported accordingly.

use std::collections::HashSet;

use model::{FailureClass, ModelFailure};
use oarlock_engine::{
    Effect, Input, Question, Reply, Stamp, StorageFailure, ThreadMachine, ThreadSeed, ToolOutcome,
};
use protocol::{
    CommandExecutionApprovalDecision as Decision, FileChangeApprovalDecision, ItemId, OperationId,
    RolloutRecord, ServerNotification, ThreadId, TokenUsageBreakdown, TurnId, TurnStatus,
};
use serde_json::json;

use crate::support::{Fixture, added, call, completed, done, message, proposal, storage_failed, text};

#[track_caller]
fn check(fixture: &mut Fixture, expected: &[&str]) {
    assert_eq!(fixture.take(), expected);
}

fn gone() -> ModelFailure {
    ModelFailure::new(FailureClass::CarrierGone, "nobody is there")
}

#[test]
fn a_turn_without_a_host_waits_and_has_no_recorded_end() {
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
            "suspended",
        ],
    );
    assert_eq!(fixture.thread.active_turn(), None);
}

#[test]
fn running_calls_end_before_the_next_request() {
    let mut fixture = Fixture::new();
    fixture.start("u1", "hi").model(done(call("c1", "update_plan", "{}"))).take();
    fixture.breaks(gone());
    check(&mut fixture, &[]);
    fixture.put(Input::ToolFinished { call_id: "c1".into(), outcome: ToolOutcome::text("planned") });
    check(&mut fixture, &["record responseItem output \"c1\": \"planned\"", "capture"]);
    // No retry is counted: the host may be back.
    fixture.captured().take();
    fixture.breaks(gone());
    check(&mut fixture, &["thread/status/changed idle", "turn/suspended", "suspended"]);
}

#[test]
fn a_turn_that_only_compacts_cannot_wait() {
    let mut fixture = Fixture::new();
    fixture.start("u1", "hi").model(completed(5)).take();
    let step = std::sync::Arc::new(fixture.step.clone());
    fixture.put(Input::Compact { turn_id: TurnId::new("u2"), step }).take();
    fixture.breaks(gone());
    let trace = fixture.take();
    assert!(trace.contains(&"record turnEnded Failed".to_owned()), "{trace:?}");
}

/// A command that has started.
fn begun() -> Fixture {
    let mut fixture = Fixture::new();
    fixture.start("u1", "hi").model(done(call("c1", "update_plan", "{}"))).model(completed(5));
    let proposal = proposal("c1", 0, false);
    fixture.put(Input::Proposed { turn_id: TurnId::new("u1"), call_id: "c1".into(), proposal }).take();
    fixture
}

#[test]
fn only_an_interrupt_is_recorded_as_the_users() {
    for (input, says, ends) in [
        (Input::Interrupt, "aborted by user after", true),
        (
            Input::Close { waits_for_host: false },
            "stopped because the program that ran it was shut down or lost its host after",
            true,
        ),
        (
            Input::Suspend { when_pending: false },
            "stopped because the program that ran it was shut down or lost its host after",
            false,
        ),
        (storage_failed("full"), "stopped because the thread's record could not be written after", true),
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
fn a_turn_stopped_by_the_process_is_reported_as_such() {
    let mut fixture = Fixture::new();
    fixture.start("u1", "hi");
    fixture.put(Input::Close { waits_for_host: false });
    let prompt = format!("{:?}", fixture.thread.history());
    assert!(prompt.contains("<turn_aborted>") && prompt.contains("the user did not ask for"), "{prompt}");
    assert!(!prompt.contains("on purpose"), "{prompt}");
}

#[test]
fn tokens_of_a_broken_stream_are_added_and_do_not_change_the_window() {
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
        cache_write_input_tokens: None,
        is_estimated: false,
    };
    let failure = ModelFailure { spent: Some(spent), ..ModelFailure::stream("lost") };
    fixture.breaks(failure.clone());
    let usage = fixture.thread.usage().expect("usage").clone();
    assert_eq!((usage.last.total_tokens, usage.total.total_tokens), (50, i64::MAX - 10));
    let trace = fixture.take();
    assert!(trace.iter().any(|line| line.starts_with("thread/tokenUsage/updated")), "{trace:?}");
    // A cancelled attempt costs nothing, and nothing overflows.
    fixture.breaks(failure);
    assert_eq!(fixture.thread.usage().expect("usage").total.total_tokens, i64::MAX - 10);
}

/// A command or patch that waits for approval, with or without a host that has `operations`.
fn asked(for_host: bool, question: Option<Question>) -> (Fixture, Vec<Effect>) {
    let mut fixture = Fixture::new();
    let seed = ThreadSeed { shows_operations: for_host, ..ThreadSeed::new(ThreadId::new("t")) };
    fixture.thread = ThreadMachine::new(seed);
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
fn hosts_with_operations_get_more_decisions() {
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
        let decision = FileChangeApprovalDecision::AcceptWithArguments { arguments };
        fixture.answer("c1", Ok(Reply::FileChange(decision.into())));
        let trace = fixture.take();
        assert!(trace.contains(&"record operation decided".to_owned()), "{trace:?}");
        assert_eq!(trace.last().map(String::as_str), Some(expected));
    }
}

fn host_gone(started: &[&str], unseen: &[&str]) -> Input {
    Input::StorageFailed(Box::new(StorageFailure {
        message: "the host is gone".into(),
        unseen: unseen.iter().map(|id| ItemId::new(*id)).collect(),
        started_at_host: Some(started.iter().map(|id| OperationId::new(*id)).collect()),
    }))
}

#[test]
fn operations_that_the_host_has_as_started_are_recorded_as_run() {
    let mut fixture = begun();
    fixture.put(host_gone(&["t:u1:c1"], &[]));
    let trace = fixture.take();
    for line in
        ["record operation finished", "record threadItem command Failed", "turn/suspended", "suspended"]
    {
        assert!(trace.contains(&line.to_owned()), "{line} is missing: {trace:?}");
    }
    assert!(trace.iter().any(|line| line.contains("output \"c1\"")), "{trace:?}");
}

#[test]
fn operations_that_the_host_does_not_have_did_not_start() {
    // Clients see the item start and end; the record has nothing of it.
    let mut fixture = begun();
    let effects = fixture.thread.on(STAMP, host_gone(&[], &[])).expect("accepted");
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Record(_))), "{effects:?}");
    let ended = |effects: &[Effect]| effects.iter().filter(|effect| is_item_end(effect)).count();
    assert_eq!(ended(&effects), 1, "{effects:?}");
    assert_eq!(effects.last(), Some(&Effect::Suspended));

    // Clients did not see it start either.
    let mut fixture = begun();
    let effects = fixture.thread.on(STAMP, host_gone(&[], &["c1"])).expect("accepted");
    assert_eq!(ended(&effects), 0, "{effects:?}");
}

const STAMP: Stamp = Stamp { now_ms: 5_000, entropy: 7 };

fn is_item_end(effect: &Effect) -> bool {
    matches!(effect, Effect::Emit(told) if matches!(**told, ServerNotification::ItemCompleted(_)))
}

#[test]
fn an_item_that_clients_did_not_see_begin_has_no_end_for_them() {
    let mut fixture = begun();
    let failure = StorageFailure {
        message: "full".into(),
        unseen: HashSet::from([ItemId::new("c1")]),
        started_at_host: None,
    };
    let input = Input::StorageFailed(Box::new(failure));
    let effects = fixture.thread.on(STAMP, input).expect("accepted");
    assert!(!effects.iter().any(is_item_end), "{effects:?}");
    assert_eq!(effects.last(), Some(&Effect::Finish(TurnStatus::Failed)));
}

#[test]
fn a_turn_that_was_about_to_end_when_its_host_left_is_resumed_by_it() {
    let mut fixture = Fixture::new();
    fixture.start("u1", "hi").model(completed(5)).take();
    fixture.put(host_gone(&[], &[]));
    check(&mut fixture, &["thread/status/changed idle", "suspended"]);
    fixture.put(storage_failed("full"));
    check(&mut fixture, &[]);
}

#[test]
fn a_turn_that_only_compacts_fails_when_its_host_leaves() {
    let mut fixture = Fixture::new();
    fixture.start("u1", "hi").model(completed(5)).take();
    let step = std::sync::Arc::new(fixture.step.clone());
    fixture.put(Input::Compact { turn_id: TurnId::new("u2"), step }).take();
    fixture.put(host_gone(&[], &[]));
    assert_eq!(fixture.take().last().map(String::as_str), Some("finish Failed"));
}

#[test]
fn a_turn_is_suspended_as_soon_as_everything_in_it_waits() {
    let mut fixture = Fixture::new();
    fixture.start("u1", "go").model(done(call("c1", "update_plan", "{}"))).model(completed(5)).take();
    fixture.put(Input::Suspend { when_pending: true });
    check(&mut fixture, &[]);
    let proposal = proposal("c1", 0, true);
    fixture.put(Input::Proposed { turn_id: TurnId::new("u1"), call_id: "c1".into(), proposal });
    let trace = fixture.take();
    assert_eq!(trace.last().map(String::as_str), Some("suspended"), "{trace:?}");
    assert!(trace.contains(&"withdraw c1".to_owned()), "{trace:?}");
    assert_eq!(fixture.thread.active_turn(), None);
}

#[test]
fn a_process_that_stops_suspends_what_waits_and_what_its_host_resumes() {
    for (waits_for_host, asks, suspends) in
        [(false, false, false), (false, true, true), (true, false, true), (true, true, true)]
    {
        let mut fixture = Fixture::new();
        fixture.start("u1", "go").model(done(call("c1", "update_plan", "{}"))).model(completed(5));
        let proposal = proposal("c1", 0, asks);
        fixture.put(Input::Proposed { turn_id: TurnId::new("u1"), call_id: "c1".into(), proposal }).take();
        fixture.put(Input::Close { waits_for_host });
        let trace = fixture.take();
        let expected = if suspends { "suspended" } else { "finish Interrupted" };
        assert_eq!(trace.last().map(String::as_str), Some(expected), "{waits_for_host} {asks}: {trace:?}");
    }
}

#[test]
fn settings_of_the_thread_are_recorded_with_the_context_and_not_shown_to_the_model() {
    let mut fixture = Fixture::new();
    let noted = json!({ "builtinTools": ["zebra"] });
    fixture.step.recorded_with = Some(("host", std::sync::Arc::new(noted.clone())));
    let step = std::sync::Arc::new(fixture.step.clone());
    let (turn_id, output_schema) = (TurnId::new("u1"), None);
    let input = Input::Start { turn_id, text: crate::support::said("hi"), output_schema, step };
    let effects = fixture.on(input).expect("accepted");
    let recorded = effects.iter().find_map(|effect| match effect {
        Effect::Record(record) => match &**record {
            RolloutRecord::TurnContext { context, .. } => Some(context.clone()),
            _ => None,
        },
        _ => None,
    });
    assert_eq!(recorded.expect("a context")["host"], noted);
    assert!(!fixture.prompt().iter().any(|line| line.contains("zebra")));
    assert!(!fixture.last_request.as_ref().is_some_and(|request| request.to_string().contains("zebra")));
}
