//! Reviews: what clients see, what the record has, and what the thread's history keeps.

use std::sync::Arc;

use oarlock_engine::{Input, Refusal, ReviewOrder, ToolOutcome};
use protocol::{NonSteerableTurnKind, ReviewTarget, TurnId};

use crate::support::{Fixture, call, completed, done, message, proposal, said, text};

fn order() -> ReviewOrder {
    ReviewOrder::of(&ReviewTarget::Commit { sha: "1234567deadbeef".into(), title: None })
}

/// A thread with an earlier message and a review that has just started.
fn reviewing() -> Fixture {
    let mut fixture = Fixture::new();
    fixture.start("u1", "hello").model(done(message("m1", "hi"))).model(completed(10)).take();
    let step = Arc::new(fixture.step.clone());
    fixture.put(Input::Review { turn_id: TurnId::new("r1"), order: order(), step });
    fixture
}

const PROMPT: &str = "Review the code changes introduced by commit 1234567deadbeef. Provide prioritized, actionable \
    findings.";

#[test]
fn a_review_is_recorded_before_it_is_notified_and_its_answer_is_text() {
    let mut fixture = reviewing();
    let user = format!("user {PROMPT:?}");
    let expected: Vec<String> = [
        "record turnStarted".to_owned(),
        "record threadItem entered \"commit 1234567\"".to_owned(),
        format!("record threadItem {user}"),
        "thread/status/changed active".to_owned(),
        "turn/started".to_owned(),
        "item/started entered \"commit 1234567\"".to_owned(),
        "item/completed entered \"commit 1234567\"".to_owned(),
        format!("item/started {user}"),
        format!("item/completed {user}"),
        "request 2".to_owned(),
    ]
    .into();
    assert_eq!(fixture.take(), expected);
    assert!(!fixture.prompt().iter().any(|line| line.contains("hello")), "{:?}", fixture.prompt());
    fixture
        .model(text("{"))
        .model(done(message("m2", "{\"overall_explanation\": \"Fine.\"}")))
        .model(completed(50));
    let trace = fixture.take();
    let shown: Vec<&String> = trace.iter().filter(|line| line.starts_with("item/")).collect();
    assert_eq!(
        shown,
        [
            "item/started exited \"Fine.\"",
            "item/completed exited \"Fine.\"",
            "item/started agent \"Fine.\"",
            "item/completed agent \"Fine.\""
        ]
    );
    assert!(!trace.iter().any(|line| line.contains("overall_explanation")), "{trace:?}");
    fixture.assert_all_closed();
    // The review's tokens count for the thread; they do not change the fill level of its window.
    let usage = fixture.thread.usage().expect("counted");
    assert_eq!((usage.total.total_tokens, usage.last.total_tokens), (60, 10));
    fixture.start("u2", "next");
    let prompt = fixture.prompt().join("\n");
    assert!(prompt.contains("user: hello") && prompt.contains("<user_action>"), "{prompt}");
    assert!(!prompt.contains("introduced by"), "{prompt}");
}

#[test]
fn a_reviewer_s_calls_are_operations_and_its_history_is_in_no_record() {
    let mut fixture = reviewing();
    fixture.take();
    fixture.model(done(call("c1", "update_plan", "{}"))).model(completed(20));
    let turn_id = TurnId::new("r1");
    fixture.put(Input::Proposed { turn_id, call_id: "c1".into(), proposal: proposal("c1", 0, false) });
    fixture.put(Input::ToolFinished { call_id: "c1".into(), outcome: ToolOutcome::text("ran") }).captured();
    let trace = fixture.take();
    assert!(trace.contains(&"record operation started".to_owned()), "{trace:?}");
    assert!(trace.contains(&"record operation finished".to_owned()), "{trace:?}");
    assert!(!trace.iter().any(|line| line.starts_with("record responseItem")), "{trace:?}");
    assert!(fixture.prompt().iter().any(|line| line.contains("ran")), "{:?}", fixture.prompt());
}

#[test]
fn a_review_is_not_steered_and_ends_when_the_process_does() {
    let stops =
        [Input::Interrupt, Input::Close { waits_for_host: true }, Input::Suspend { when_pending: true }];
    for stop in stops {
        let mut fixture = reviewing();
        let refused = Refusal::NotSteerable(NonSteerableTurnKind::Review);
        assert_eq!(fixture.on(Input::Steer(said("more"))), Err(refused));
        fixture.put(stop);
        let trace = fixture.take();
        assert_eq!(trace.last().map(String::as_str), Some("finish Interrupted"), "{trace:?}");
        assert!(
            trace.contains(&"item/completed exited \"Reviewer failed to output a response.\"".to_owned())
        );
        fixture.assert_all_closed();
    }
}
