//! Limits: the delay of a retry, the number of retries, and when a window is full.

use std::sync::Arc;

use model::{FailureClass, ModelFailure};
use oarlock_engine::{Effect, Input, ModelInfo, ToolOutcome};
use protocol::TurnId;
use serde_json::json;

use crate::support::{Fixture, call, completed, done, event, message};

/// The turn's delay after a broken stream, in milliseconds; `None` when it does not retry.
fn pause(fixture: &mut Fixture, failure: ModelFailure) -> Option<i64> {
    let attempt = fixture.attempt;
    let effects = fixture.on(Input::Model { attempt, event: Err(failure) }).expect("accepted");
    let now = fixture.now_ms;
    effects.iter().find_map(|effect| match effect {
        Effect::Wake { at_ms } => Some(at_ms - now),
        _ => None,
    })
}

fn wake(fixture: &mut Fixture) {
    fixture.put(Input::Woken);
}

#[test]
fn each_retry_waits_twice_as_long_as_the_one_before() {
    let mut fixture = Fixture::new();
    fixture.step.model.stream_max_retries = 20;
    fixture.start("u1", "hi");
    let mut expected = 200.0;
    for number in 1..=20 {
        let found = pause(&mut fixture, ModelFailure::stream("gone")).expect("it is tried again") as f64;
        let (least, most) = (expected * 0.9 - 1.0, expected * 1.1 + 1.0);
        assert!((least..=most).contains(&found), "try {number}: {found} is not about {expected}");
        // From the seventeenth on, the delay stays the same.
        expected = (expected * 2.0_f64).min(200.0 * 65_536.0);
        wake(&mut fixture);
    }
    assert_eq!(pause(&mut fixture, ModelFailure::stream("gone")), None, "the last one was used");
}

#[test]
fn pauses_differ() {
    let pauses: std::collections::BTreeSet<i64> = (0..20)
        .filter_map(|number| {
            let mut fixture = Fixture::new();
            fixture.now_ms = number * 1_000;
            fixture.start("u1", "hi");
            pause(&mut fixture, ModelFailure::stream("gone"))
        })
        .collect();
    assert!(pauses.len() > 5, "{pauses:?}");
}

#[test]
fn a_pause_that_the_provider_asks_for_is_kept_exactly() {
    let mut fixture = Fixture::new();
    fixture.start("u1", "hi");
    let failure = ModelFailure { retry_after_ms: Some(7_777), ..ModelFailure::stream("slow down") };
    assert_eq!(pause(&mut fixture, failure), Some(7_777));
}

#[test]
fn permanent_failures_are_not_retried() {
    for class in [FailureClass::Quota, FailureClass::InvalidRequest, FailureClass::Unauthorized] {
        let mut fixture = Fixture::new();
        fixture.start("u1", "hi");
        assert_eq!(pause(&mut fixture, ModelFailure::new(class, "no")), None, "{class:?}");
        assert_eq!(fixture.completed_turns(), 1, "{class:?}");
    }
}

#[test]
fn a_model_without_retries_has_none() {
    let mut fixture = Fixture::new();
    fixture.step.model.stream_max_retries = 0;
    fixture.start("u1", "hi");
    assert_eq!(pause(&mut fixture, ModelFailure::stream("gone")), None);
}

/// Whether the next turn starts with a summary, after a response of this many tokens.
fn compacts_after(total: i64, change: impl FnOnce(&mut ModelInfo)) -> bool {
    let mut fixture = Fixture::new();
    change(&mut fixture.step.model);
    fixture.start("u1", "hi").model(done(message("m", "ok"))).model(completed(total)).take();
    fixture.start("u2", "x");
    fixture.take().iter().any(|line| line.contains("compaction"))
}

#[test]
fn a_window_is_full_at_nine_tenths() {
    // Newer items would be estimated on top, and there are none: the turn's own message comes after the check.
    let window = |model: &mut ModelInfo| model.context_window = Some(10_000);
    assert!(!compacts_after(8_999, window));
    assert!(compacts_after(9_000, window));
    assert!(compacts_after(9_001, window));
}

#[test]
fn a_lower_limit_counts_and_a_higher_one_does_not() {
    let limited = |limit| {
        move |model: &mut ModelInfo| {
            (model.context_window, model.auto_compact_token_limit) = (Some(10_000), Some(limit));
        }
    };
    assert!(!compacts_after(4_999, limited(5_000)));
    assert!(compacts_after(5_000, limited(5_000)));
    assert!(!compacts_after(8_999, limited(50_000)));
    assert!(compacts_after(9_000, limited(50_000)));
    let unlimited = |model: &mut ModelInfo| model.context_window = None;
    assert!(!compacts_after(1_000_000, unlimited));
}

#[test]
fn items_since_the_last_response_count_too() {
    let fills = |bytes: usize| {
        let mut fixture = Fixture::new();
        fixture.step.model.context_window = Some(10_000);
        fixture.start("u1", "hi").model(done(call("c1", "update_plan", "{}"))).model(completed(8_000)).take();
        let outcome = ToolOutcome::text("x".repeat(bytes));
        fixture.put(Input::ToolFinished { call_id: "c1".into(), outcome });
        fixture.take().iter().any(|line| line.contains("compaction"))
    };
    // A thousand tokens are missing, which are about four thousand bytes with their JSON.
    assert!(!fills(3_900));
    assert!(fills(4_000));
}

#[test]
fn every_kind_of_item_that_a_model_writes_is_counted_by_its_provider() {
    let filler = "x".repeat(20_000);
    let action = json!({ "type": "exec", "command": [filler], "timeout_ms": null, "working_directory": null,
        "env": null, "user": null });
    let written = [
        json!({ "type": "reasoning", "id": "r", "summary": [{ "type": "summary_text", "text": filler }] }),
        json!({ "type": "function_call", "call_id": "c", "name": "nobody", "arguments": filler }),
        json!({ "type": "custom_tool_call", "call_id": "c", "name": "nobody", "input": filler }),
        json!({ "type": "local_shell_call", "call_id": "c", "status": "completed", "action": action }),
        json!({ "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": filler }] }),
    ];
    for item in written {
        let mut fixture = Fixture::new();
        fixture.step.model.context_window = Some(10_000);
        fixture.start("u1", "hi");
        fixture.model(event(json!({ "type": "response.output_item.done", "item": item })));
        fixture.model(completed(6_000));
        let trace = fixture.take();
        assert!(!trace.iter().any(|line| line.contains("compaction")), "{}: counted twice", item["type"]);
    }
}

#[test]
fn a_history_that_does_not_fit_is_counted_as_full() {
    let mut fixture = Fixture::new();
    fixture.step.model.context_window = Some(10_000);
    fixture.start("u1", "hi");
    fixture.breaks(ModelFailure::new(FailureClass::ContextWindow, "too long")).take();
    let usage = fixture.thread.usage().expect("counted").clone();
    assert_eq!((usage.last.total_tokens, usage.total.total_tokens), (9_500, 9_500));
    assert_eq!(usage.model_context_window, Some(9_500));
    fixture.start("u2", "again");
    assert!(fixture.take().iter().any(|line| line.contains("compaction")), "room is made first");
}

#[test]
fn a_provider_may_count_what_it_likes() {
    for (total, fills) in [(i64::MAX, true), (i64::MIN + 1_000, false), (-1, false)] {
        let mut fixture = Fixture::new();
        fixture.step.model.context_window = Some(10_000);
        fixture.start("u1", "hi").model(done(call("c1", "update_plan", "{}"))).model(completed(total)).take();
        let outcome = ToolOutcome::text("planned");
        fixture.put(Input::ToolFinished { call_id: "c1".into(), outcome });
        assert_eq!(fixture.take().iter().any(|line| line.contains("compaction")), fills, "{total}");
    }
}

#[test]
fn a_sum_that_is_larger_than_the_window_stays() {
    let mut fixture = Fixture::new();
    (fixture.step.model.context_window, fixture.step.model.auto_compact_token_limit) = (Some(10_000), None);
    fixture.start("u1", "hi").model(completed(8_000));
    fixture.start("u2", "hi").model(completed(8_000));
    fixture.start("u3", "hi");
    fixture.breaks(ModelFailure::new(FailureClass::ContextWindow, "too long"));
    let usage = fixture.thread.usage().expect("counted");
    assert_eq!((usage.last.total_tokens, usage.total.total_tokens), (9_500, 16_000));
}

#[test]
fn another_failure_does_not_fill_the_window() {
    let mut fixture = Fixture::new();
    fixture.start("u1", "hi").model(completed(50));
    fixture.start("u2", "hi").breaks(ModelFailure::new(FailureClass::Quota, "used up"));
    assert_eq!(fixture.thread.usage().expect("counted").last.total_tokens, 50);
}

#[test]
fn a_resumed_turn_with_a_full_window_compacts_first() {
    for (total, compacts) in [(9_000, true), (8_000, false)] {
        let mut fixture = Fixture::new();
        fixture.step.model.context_window = Some(10_000);
        fixture.start("u1", "hi").model(done(message("m", "ok"))).model(completed(total)).take();
        let step = Arc::new(fixture.step.clone());
        fixture.put(Input::Resume { turn_id: TurnId::new("u1"), said: vec![], earlier: vec![], step });
        let trace = fixture.take();
        assert_eq!(trace.iter().any(|line| line.contains("compaction")), compacts, "{total}: {trace:?}");
    }
}
