//! Turns from input to end: inputs on the left, effects as lines on the right.

use std::sync::Arc;

use model::{FailureClass, ModelFailure, ResponseHead, StreamEvent};
use oarlock_engine::{Effect, Input, Refusal, ToolOutcome};
use protocol::{
    CollaborationMode, DynamicToolCallOutputContentItem, DynamicToolCallResponse, ModeKind,
    RateLimitSnapshot, ServerNotification, Settings, TurnId,
};
use serde_json::{Value, json};

use crate::support::{Fixture, added, call, completed, done, event, message, said, storage_failed, text};

#[track_caller]
fn check(fixture: &mut Fixture, expected: &[&str]) {
    assert_eq!(fixture.take(), expected);
}

#[test]
fn a_plain_turn() {
    let mut fixture = Fixture::new();
    fixture.start("u1", "hi");
    check(
        &mut fixture,
        &[
            "record turnStarted",
            "record threadItem user \"hi\"",
            "record responseItem developer: <permissions instructions>",
            "record responseItem user: <environment_context>",
            "record turnContext",
            "record responseItem user: hi",
            "thread/status/changed active",
            "turn/started",
            "item/started user \"hi\"",
            "item/completed user \"hi\"",
            "request 1",
        ],
    );
    fixture
        .model(added(message("m", "")))
        .model(text("he"))
        .model(text("llo"))
        .model(done(message("m", "hello")));
    fixture.model(completed(120));
    check(
        &mut fixture,
        &[
            "item/started agent \"\"",
            "item/agentMessage/delta he",
            "item/agentMessage/delta llo",
            "record responseItem assistant: hello",
            "record threadItem agent \"hello\"",
            "item/completed agent \"hello\"",
            "record tokenUsage",
            "thread/tokenUsage/updated",
            "record turnEnded Completed",
            "thread/status/changed idle",
            "turn/completed completed",
            "finish Completed",
        ],
    );
    fixture.assert_all_closed();
    fixture.start("u2", "again");
    assert_eq!(
        fixture.prompt(),
        [
            "developer: <permissions instructions>",
            "user: <environment_context>",
            "user: hi",
            "assistant: hello",
            "user: again"
        ]
    );
}

#[test]
fn a_turn_waits_for_tools_that_are_starting() {
    let mut fixture = Fixture::new();
    fixture.step.is_preliminary = true;
    fixture.start("u1", "hi");
    let begun = [
        "record turnStarted",
        "record threadItem user \"hi\"",
        "thread/status/changed active",
        "turn/started",
        "capture",
    ];
    check(&mut fixture, &begun);
    fixture.put(Input::Woken);
    check(&mut fixture, &["capture"]);
    fixture.step.is_preliminary = false;
    fixture.captured();
    check(
        &mut fixture,
        &[
            "record responseItem developer: <permissions instructions>",
            "record responseItem user: <environment_context>",
            "record turnContext",
            "record responseItem user: hi",
            "item/started user \"hi\"",
            "item/completed user \"hi\"",
            "request 1",
        ],
    );
    fixture.put(Input::Interrupt);
    fixture.step.is_preliminary = true;
    fixture.start("u2", "again").take();
    fixture.put(Input::Interrupt);
    assert!(fixture.take().contains(&"turn/completed interrupted".to_owned()));
    fixture.assert_all_closed();
}

#[test]
fn rate_limits_follow_the_opening() {
    let mut fixture = Fixture::new();
    let limits = RateLimitSnapshot {
        limit_id: Some("codex".into()),
        limit_name: None,
        primary: None,
        secondary: None,
        credits: None,
        plan_type: None,
    };
    fixture.start("u1", "hi").take();
    fixture.model(StreamEvent::Opened(ResponseHead {
        rate_limits: Some(Box::new(limits)),
        ..ResponseHead::default()
    }));
    check(&mut fixture, &["account/rateLimits/updated"]);
}

#[test]
fn an_exhausted_account_is_reported_with_its_limits() {
    let mut fixture = Fixture::new();
    fixture.start("u1", "hi").take();
    let limits: RateLimitSnapshot = serde_json::from_value(json!({"limitId": "codex"})).expect("limits");
    let mut failure = ModelFailure::new(FailureClass::UsageLimit, "spent");
    failure.rate_limits = Some(Box::new(limits));
    fixture.breaks(failure);
    assert_eq!(fixture.take().first().map(String::as_str), Some("account/rateLimits/updated"));
}

/// The error that clients get when the provider sends these limits.
fn reported_limits(fixture: &mut Fixture, limits: Value) -> Value {
    let limits: RateLimitSnapshot = serde_json::from_value(limits).expect("limits");
    let input = Input::Model { attempt: 1, event: Ok(StreamEvent::RateLimits(Box::new(limits))) };
    let effects = fixture.on(input).expect("accepted");
    let told = effects.iter().find_map(|effect| match effect {
        Effect::Emit(told) => match &**told {
            ServerNotification::AccountRateLimitsUpdated(updated) => Some(&updated.rate_limits),
            _ => None,
        },
        _ => None,
    });
    serde_json::to_value(told).expect("JSON")
}

#[test]
fn credits_stay_known_when_an_answer_does_not_name_them() {
    let mut fixture = Fixture::new();
    fixture.start("u1", "hi").take();
    let credits = json!({"hasCredits": true, "unlimited": false, "balance": "3"});
    let window = json!({"usedPercent": 5, "windowDurationMins": null, "resetsAt": null});
    reported_limits(
        &mut fixture,
        json!({"limitId": "codex", "primary": window, "credits": credits, "planType": "plus"}),
    );
    let next = reported_limits(&mut fixture, json!({"limitId": "codex"}));
    assert_eq!(next["credits"], credits);
    assert_eq!((&next["planType"], &next["primary"]), (&json!("plus"), &json!(null)));
}

#[test]
fn a_tool_call_is_answered_and_the_turn_goes_on() {
    let mut fixture = Fixture::new();
    fixture.start("u1", "plan it").take();
    fixture.model(done(call("c1", "update_plan", "{}")));
    check(&mut fixture, &["record responseItem function_call \"c1\"", "run c1 update_plan"]);
    fixture.model(completed(10)).take();
    let outcome = ToolOutcome::text("Plan updated");
    fixture.put(Input::ToolFinished { call_id: "c1".into(), outcome });
    check(&mut fixture, &["record responseItem output \"c1\": \"Plan updated\"", "capture"]);
    fixture.captured();
    check(&mut fixture, &["request 2"]);
    assert_eq!(fixture.prompt().last().map(String::as_str), Some("output \"c1\": \"Plan updated\""));
}

#[test]
fn outputs_go_back_in_call_order_and_a_repeated_call_runs_once() {
    let mut fixture = Fixture::new();
    fixture.start("u1", "go").take();
    for id in ["c1", "c2", "c1"] {
        fixture.model(done(call(id, "update_plan", "{}")));
    }
    fixture.model(done(call("c3", "rm_everything", "{}"))).model(completed(10));
    let runs: Vec<String> = fixture.take().into_iter().filter(|line| line.starts_with("run")).collect();
    assert_eq!(runs, ["run c1 update_plan", "run c2 update_plan"]);
    for id in ["c2", "c1"] {
        let outcome = ToolOutcome::text(id);
        fixture.put(Input::ToolFinished { call_id: id.into(), outcome });
    }
    check(
        &mut fixture,
        &[
            "record responseItem output \"c1\": \"c1\"",
            "record responseItem output \"c2\": \"c2\"",
            "record responseItem output \"c3\": \"unsupported call: rm_everything\"",
            "capture",
        ],
    );
}

#[test]
fn a_dynamic_tool_is_asked_of_the_client() {
    let mut fixture = Fixture::new();
    fixture.start("u1", "look").take();
    fixture.model(done(call("c1", "lookup", r#"{"id":"7"}"#)));
    check(
        &mut fixture,
        &[
            "record responseItem function_call \"c1\"",
            "record operation proposed",
            "item/started dynamic InProgress",
            "ask c1 lookup",
        ],
    );
    fixture.model(completed(10)).take();
    let found = DynamicToolCallOutputContentItem::InputText { text: "found".into() };
    let answer = Ok(DynamicToolCallResponse { content_items: vec![found], success: true });
    fixture.put(Input::DynamicToolAnswered { call_id: "c1".into(), answer: answer.clone() });
    check(
        &mut fixture,
        &[
            "record operation finished",
            "record threadItem dynamic Completed",
            "item/completed dynamic Completed",
            "record responseItem output \"c1\": \"found\"",
            "capture",
        ],
    );
    fixture.put(Input::DynamicToolAnswered { call_id: "c1".into(), answer });
    check(&mut fixture, &[]);
}

#[test]
fn the_model_gets_the_error_of_bad_arguments_for_a_client_tool() {
    let mut fixture = Fixture::new();
    fixture.start("u1", "look").take();
    fixture.model(done(call("c1", "lookup", "{not json"))).model(completed(10));
    let trace = fixture.take();
    assert!(!trace.iter().any(|line| line.starts_with("ask")), "{trace:?}");
    assert!(trace.iter().any(|line| line.contains("failed to parse function arguments")), "{trace:?}");
}

#[test]
fn steering_joins_the_turn_after_the_response() {
    let mut fixture = Fixture::new();
    fixture.start("u1", "hi").take();
    fixture.put(Input::Steer(said("also this")));
    check(&mut fixture, &["record threadItem user \"also this\""]);
    fixture.model(done(message("m", "first"))).model(completed(10)).take();
    fixture.captured();
    check(
        &mut fixture,
        &[
            "record responseItem user: also this",
            "item/started user \"also this\"",
            "item/completed user \"also this\"",
            "request 2",
        ],
    );
    assert_eq!(fixture.on(Input::Steer(said(""))).err(), None, "an empty string is still something said");
    let nothing = oarlock_engine::UserText::default();
    assert_eq!(fixture.on(Input::Steer(nothing)).err(), Some(Refusal::EmptyInput));
}

#[test]
fn without_a_turn_there_is_nothing_to_steer() {
    assert_eq!(Fixture::new().on(Input::Steer(said("x"))).err(), Some(Refusal::NoActiveTurn));
}

#[test]
fn an_interrupt_ends_everything_that_started() {
    let mut fixture = Fixture::new();
    fixture.start("u1", "hi");
    fixture.model(done(call("c1", "update_plan", "{}"))).model(done(call("c2", "lookup", "{}")));
    fixture.model(added(message("m", ""))).model(text("par"));
    fixture.put(Input::Steer(said("late"))).take();
    fixture.put(Input::Interrupt);
    check(
        &mut fixture,
        &[
            "cancel 1",
            "cancel tool c1",
            "await stopped",
            "record threadItem agent \"par\"",
            "item/completed agent \"par\"",
            "record responseItem output \"c1\": \"aborted by user after 0.1s\"",
            "withdraw c2",
            "record operation withdrawn",
            "record threadItem dynamic Failed",
            "item/completed dynamic Failed",
            "record responseItem output \"c2\": \"aborted by user after 0.1s\"",
            "record responseItem user: late",
            "item/started user \"late\"",
            "item/completed user \"late\"",
            "record responseItem user: <turn_aborted>",
            "record turnEnded Interrupted",
            "thread/status/changed idle",
            "turn/completed interrupted",
            "finish Interrupted",
        ],
    );
    fixture.assert_all_closed();
    let outcome = ToolOutcome::text("late");
    fixture.put(Input::ToolFinished { call_id: "c1".into(), outcome }).model(text("late"));
    check(&mut fixture, &[]);
}

#[test]
fn a_broken_stream_is_retried_with_the_same_request() {
    let mut fixture = Fixture::new();
    fixture.start("u1", "hi").take();
    let first = fixture.last_request.clone();
    fixture.model(added(message("m", ""))).model(text("pa")).breaks(ModelFailure::stream("gone"));
    check(
        &mut fixture,
        &[
            "item/started agent \"\"",
            "item/agentMessage/delta pa",
            "record threadItem agent \"pa\"",
            "item/completed agent \"pa\"",
            "error Reconnecting... 1/2 retry=true",
            "wake",
        ],
    );
    fixture.put(Input::Woken);
    check(&mut fixture, &["request 2"]);
    assert_eq!(fixture.last_request, first);
    fixture
        .breaks(ModelFailure::stream("gone"))
        .put(Input::Woken)
        .breaks(ModelFailure::stream("gone"))
        .take();
    fixture.assert_all_closed();
    assert_eq!(fixture.thread.status(), protocol::ThreadStatus::SystemError);
}

#[test]
fn calls_of_a_broken_stream_are_not_hidden() {
    let mut fixture = Fixture::new();
    fixture.start("u1", "hi");
    fixture.model(done(call("c1", "update_plan", "{}"))).breaks(ModelFailure::stream("gone")).take();
    let outcome = ToolOutcome::text("ran");
    fixture.put(Input::ToolFinished { call_id: "c1".into(), outcome });
    check(
        &mut fixture,
        &["record responseItem output \"c1\": \"ran\"", "error Reconnecting... 1/2 retry=true", "wake"],
    );
    fixture.put(Input::Woken).captured();
    assert_eq!(fixture.prompt().last().map(String::as_str), Some("output \"c1\": \"ran\""));
    fixture.model(done(call("c1", "update_plan", "{}")));
    assert!(!fixture.take().iter().any(|line| line.starts_with("run")), "a call id runs once");
}

#[test]
fn a_model_that_pauses_is_continued_a_few_times() {
    let paused = || ModelFailure::new(FailureClass::Paused, "paused too often");
    let mut fixture = Fixture::new();
    fixture.start("u1", "hi").take();
    for n in 0..3 {
        fixture.model(done(message("m", &format!("part {n}")))).breaks(paused());
        let lines = fixture.take();
        assert!(!lines.iter().any(|line| line.starts_with("error") || line == "wake"), "{lines:?}");
        fixture.captured();
        assert_eq!(fixture.prompt().last(), Some(&format!("assistant: part {n}")));
    }
    fixture.take();
    fixture.breaks(paused());
    let lines = fixture.take();
    assert!(lines.contains(&"error paused too often retry=false".to_owned()), "{lines:?}");
    fixture.assert_all_closed();
}

#[test]
fn permanent_failures_fail_at_once() {
    let mut fixture = Fixture::new();
    fixture.start("u1", "hi").take();
    fixture.breaks(ModelFailure::new(FailureClass::Quota, "used up"));
    check(
        &mut fixture,
        &[
            "record turnEnded Failed",
            "thread/status/changed systemError",
            "error used up retry=false",
            "turn/completed failed",
            "finish Failed",
        ],
    );
}

#[test]
fn an_event_of_a_past_attempt_is_ignored() {
    let mut fixture = Fixture::new();
    fixture.start("u1", "hi").breaks(ModelFailure::stream("gone")).put(Input::Woken).take();
    fixture.put(Input::Model { attempt: 1, event: Ok(completed(10)) });
    check(&mut fixture, &[]);
}

#[test]
fn plan_mode_shows_the_plan_as_an_item_of_its_own() {
    let mut fixture = Fixture::new();
    let settings =
        Settings { model: "test-model".into(), reasoning_effort: None, developer_instructions: None };
    fixture.step.collaboration_mode = Some(CollaborationMode { mode: ModeKind::Plan, settings });
    fixture.start("u1", "plan").take();
    let whole = "Intro\n<proposed_plan>\n- a\n</proposed_plan>\nOutro";
    fixture.model(added(message("m", "")));
    for delta in ["Intro\n<prop", "osed_plan>\n- a\n</", "proposed_plan>\nOutro"] {
        fixture.model(text(delta));
    }
    fixture.model(done(message("m", whole)));
    check(
        &mut fixture,
        &[
            "item/started agent \"\"",
            "item/agentMessage/delta Intro\n",
            "item/started plan \"\"",
            "item/plan/delta - a\n",
            "item/agentMessage/delta Outro",
            "record responseItem assistant: Intro",
            "record threadItem plan \"- a\\n\"",
            "item/completed plan \"- a\\n\"",
            "record threadItem agent \"Intro\\nOutro\"",
            "item/completed agent \"Intro\\nOutro\"",
        ],
    );
}

#[test]
fn a_plan_in_one_piece_starts_empty_and_the_last_one_counts() {
    let mut fixture = Fixture::new();
    let settings =
        Settings { model: "test-model".into(), reasoning_effort: None, developer_instructions: None };
    fixture.step.collaboration_mode = Some(CollaborationMode { mode: ModeKind::Plan, settings });
    fixture.start("u1", "plan").take();
    let plan = |text| format!("<proposed_plan>\n{text}\n</proposed_plan>\n");
    fixture.model(done(message("m", &(plan("- a") + &plan("- b")))));
    check(
        &mut fixture,
        &[
            "record responseItem assistant: <proposed_plan>",
            "item/started plan \"\"",
            "record threadItem plan \"- b\\n\"",
            "item/completed plan \"- b\\n\"",
        ],
    );
}

#[test]
fn citations_are_in_no_delta_and_text_that_only_looks_like_one_is_not_lost() {
    let mut fixture = Fixture::new();
    fixture.start("u1", "hi").take();
    fixture.model(added(message("m", "")));
    for delta in ["Made.<oai-mem-cit", "ation>x</oai-mem-citation> 1 <", " 2 <oai"] {
        fixture.model(text(delta));
    }
    fixture.model(done(message("m", "Made.<oai-mem-citation>x</oai-mem-citation> 1 < 2 <oai")));
    check(
        &mut fixture,
        &[
            "item/started agent \"\"",
            "item/agentMessage/delta Made.",
            "item/agentMessage/delta  1 ",
            "item/agentMessage/delta < 2 ",
            "item/agentMessage/delta <oai",
            "record responseItem assistant: Made.<oai-mem-citation>x</oai-mem-citation> 1 < 2 <oai",
            "record threadItem agent \"Made. 1 < 2 <oai\"",
            "item/completed agent \"Made. 1 < 2 <oai\"",
        ],
    );
}

#[test]
fn a_full_window_is_compacted_before_the_next_turn() {
    let mut fixture = Fixture::new();
    fixture.step.model.auto_compact_token_limit = Some(100);
    fixture.start("u1", "one").model(done(message("m", "a1"))).model(completed(120)).take();
    fixture.start("u2", "two");
    check(
        &mut fixture,
        &[
            "record turnStarted",
            "record threadItem user \"two\"",
            "thread/status/changed active",
            "turn/started",
            "item/started compaction",
            "request 2",
        ],
    );
    fixture.model(done(message("s", "the summary"))).model(completed(50));
    let trace = fixture.take();
    assert!(
        trace.contains(&"record compacted".to_owned())
            && trace.contains(&"item/completed compaction".to_owned())
    );
    fixture.captured();
    let prompt = fixture.prompt();
    assert_eq!(prompt.len(), 5, "{prompt:?}");
    assert_eq!((prompt[0].as_str(), prompt[4].as_str()), ("user: one", "user: two"));
    assert!(prompt[1].starts_with("user: What follows is the summary"), "{prompt:?}");
    assert!(prompt[2].starts_with("developer: <permissions"), "{prompt:?}");
}

#[test]
fn compaction_on_request_is_a_turn_of_its_own() {
    let mut fixture = Fixture::new();
    fixture.start("u1", "one").model(done(message("m", "a1"))).model(completed(20)).take();
    let step = Arc::new(fixture.step.clone());
    fixture.put(Input::Compact { turn_id: TurnId::new("u2"), step });
    assert_eq!(
        fixture.on(Input::Steer(said("x"))).err(),
        Some(Refusal::NotSteerable(protocol::NonSteerableTurnKind::Compact))
    );
    fixture.model(done(message("s", "sum"))).model(completed(30));
    assert_eq!(
        fixture.take(),
        [
            "record turnStarted",
            "thread/status/changed active",
            "turn/started",
            "item/started compaction",
            "request 2",
            "record tokenUsage",
            "thread/tokenUsage/updated",
            "record compacted",
            "record tokenUsage",
            "thread/tokenUsage/updated",
            "record threadItem compaction",
            "item/completed compaction",
            "thread/compacted",
            "record turnEnded Completed",
            "thread/status/changed idle",
            "turn/completed completed",
            "finish Completed",
        ]
    );
}

#[test]
fn a_model_reroute_is_notified_once() {
    let mut fixture = Fixture::new();
    fixture.start("u1", "hi").take();
    let served = serde_json::json!({ "type": "response.created", "response": { "headers": { "openai-model": "other" } } });
    fixture.model(event(served.clone())).model(event(served));
    let trace = fixture.take();
    assert_eq!(trace.iter().filter(|line| line.starts_with("model/rerouted")).count(), 1, "{trace:?}");
}

#[test]
fn a_rollback_reads_the_remaining_history_from_the_record() {
    let mut fixture = Fixture::new();
    fixture.start("u1", "one").model(done(message("m", "ok"))).model(completed(20));
    let kept: Vec<_> = fixture.thread.history().iter().map(|item| (**item).clone()).collect();
    fixture.start("u2", "two").model(done(message("m", "ok"))).model(completed(20));
    fixture.take();
    let (turn_id, step) = (TurnId::new("r"), Arc::new(crate::support::step()));
    let rollback = || Input::Rollback { num_turns: 1, turn_id: turn_id.clone(), step: step.clone() };
    fixture.put(rollback());
    check(&mut fixture, &["record rolledBack", "read back"]);
    fixture.put(Input::ReadBack {
        history: kept,
        context: None,
        turn_id: turn_id.clone(),
        step: step.clone(),
    });
    check(&mut fixture, &["record tokenUsage", "thread/tokenUsage/updated"]);
    fixture.start("u3", "three");
    // The turn's context was rolled back with it, so it is sent again.
    assert_eq!(fixture.prompt()[2..4], ["user: one", "assistant: ok"]);
    assert_eq!(fixture.prompt().last().map(String::as_str), Some("user: three"));
    assert_eq!(fixture.on(rollback()).err(), Some(Refusal::RollbackWhileRunning));
}

/// Even if the failed first turn counted no tokens, the estimate for the next request is notified.
#[test]
fn a_rollback_notifies_the_estimate_even_without_a_count() {
    let mut fixture = Fixture::new();
    let (turn_id, step) = (TurnId::new("r"), Arc::new(crate::support::step()));
    let read_back =
        || Input::ReadBack { history: vec![], context: None, turn_id: turn_id.clone(), step: step.clone() };
    fixture.put(read_back());
    check(&mut fixture, &[]);
    fixture.start("u1", "one").breaks(ModelFailure::new(FailureClass::InvalidRequest, "no"));
    fixture.take();
    fixture.put(read_back());
    check(&mut fixture, &["record tokenUsage", "thread/tokenUsage/updated"]);
}

#[test]
fn a_failed_write_ends_the_turn() {
    let mut fixture = Fixture::new();
    fixture.start("u1", "hi").take();
    fixture.put(storage_failed("no space left"));
    check(
        &mut fixture,
        &[
            "cancel 1",
            "record turnEnded Failed",
            "thread/status/changed systemError",
            "error the thread's record could not be written: no space left retry=false",
            "turn/completed failed",
            "finish Failed",
        ],
    );
}

#[test]
fn changed_settings_are_sent_as_a_difference() {
    let mut fixture = Fixture::new();
    fixture.start("u1", "one").model(done(message("m", "ok"))).model(completed(20));
    fixture.step.cwd = "/other".into();
    fixture.step.approval_policy = protocol::AskForApproval::OnRequest;
    fixture.start("u2", "two");
    assert_eq!(
        fixture.prompt()[4..],
        ["developer: <permissions instructions>", "user: <environment_context>", "user: two"]
    );
}
