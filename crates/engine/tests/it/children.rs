//! The ends of child agents in their parent's history: between turns, during a turn, and only once.

use std::sync::Arc;

use model::{FailureClass, ModelFailure};
use oarlock_engine::{
    ChildEnd, Effect, Input, OperationEnd, Stamp, ToolOutcome, fragments_of, operation_of,
    subagent_notification,
};
use protocol::{
    DynamicToolCallOutputContentItem, OperationId, ResponseItem, RolloutRecord, ThreadId, TurnId,
};
use serde_json::{Value, json};

use crate::support::{Fixture, call, completed, done, message, proposal, said, storage_failed};

const NEWS: &str = "record responseItem developer: <subagent_notification>";
const TOLD: &str = "developer: <subagent_notification>";

fn ended(id: &str, status: Value) -> Input {
    Input::ChildEnded(Box::new(ChildEnd {
        id: id.into(),
        turn_id: None,
        status: Some(status),
        operation: None,
    }))
}

fn with_operation(status: Option<Value>, operation_id: &str) -> Input {
    let output = vec![DynamicToolCallOutputContentItem::InputText { text: "found it".into() }];
    let operation = OperationEnd { operation_id: OperationId::new(operation_id), success: true, output };
    let (id, turn_id, operation) = ("host:x".into(), None, Some(operation));
    Input::ChildEnded(Box::new(ChildEnd { id, turn_id, status, operation }))
}

#[track_caller]
fn check(fixture: &mut Fixture, expected: &[&str]) {
    assert_eq!(fixture.take(), expected);
}

/// A turn with a complete response and a running tool call.
fn called() -> Fixture {
    let mut fixture = Fixture::new();
    fixture.start("u1", "hi");
    fixture.model(done(call("c1", "update_plan", "{}"))).model(completed(5)).take();
    fixture
}

fn finish_tool(fixture: &mut Fixture, outcome: ToolOutcome) {
    fixture.put(Input::ToolFinished { call_id: "c1".into(), outcome });
}

/// A thread between turns, with a child operation that the previous turn started.
fn with_running_child() -> Fixture {
    let mut fixture = called();
    let proposal = proposal("c1", 0, false);
    fixture.put(Input::Proposed { turn_id: TurnId::new("u1"), call_id: "c1".into(), proposal });
    finish_tool(&mut fixture, ToolOutcome { goes_on: true, ..ToolOutcome::text("started") });
    fixture
}

fn end_turn(fixture: &mut Fixture) {
    fixture.captured().model(done(message("m", "bye"))).model(completed(9));
    fixture.assert_all_closed();
    fixture.take();
}

#[test]
fn between_turns_it_is_one_record_and_no_turn() {
    let mut fixture = Fixture::new();
    fixture.put(ended("a1", json!({ "completed": "found it" })));
    check(&mut fixture, &[NEWS]);
    assert_eq!(fixture.thread.active_turn(), None);
    let [item] = fixture.thread.history() else { panic!("{:?}", fixture.thread.history()) };
    assert_eq!(**item, subagent_notification("a1", None, &json!({ "completed": "found it" })));
    let fragments = fragments_of(item);
    let told: Vec<_> = fragments.iter().map(|told| (told.role, told.name)).collect();
    assert_eq!(told, [("developer", "sub-agent notification")]);
    let body = fragments[0].text.lines().nth(1).expect("a line of JSON");
    let body: Value = serde_json::from_str(body).expect("JSON");
    assert_eq!(body, json!({ "agent_path": "a1", "status": { "completed": "found it" } }));
    fixture.start("u1", "hi");
    let count = fixture.prompt().iter().filter(|line| *line == TOLD).count();
    assert_eq!((count, fixture.completed_turns()), (1, 0));
}

#[test]
fn within_a_turn_it_follows_the_outputs_and_precedes_the_next_request() {
    let mut fixture = called();
    fixture.put(ended("a1", json!("shutdown"))).put(ended("a2", json!({ "errored": "bad" })));
    check(&mut fixture, &[]);
    finish_tool(&mut fixture, ToolOutcome::text("ok"));
    check(&mut fixture, &["record responseItem output \"c1\": \"ok\"", "capture"]);
    fixture.captured();
    check(&mut fixture, &[NEWS, NEWS, "request 2"]);
    assert_eq!(fixture.prompt()[3..], ["function_call \"c1\"", "output \"c1\": \"ok\"", TOLD, TOLD]);
    // The notification was sent once: the turn may end now.
    fixture.model(done(message("m", "bye"))).model(completed(9));
    assert!(fixture.take().contains(&"finish Completed".to_owned()));
}

#[test]
fn a_turn_that_would_have_ended_makes_one_more_request() {
    let mut fixture = Fixture::new();
    fixture.start("u1", "hi");
    fixture.model(done(message("m", "waiting"))).take();
    fixture.put(ended("a1", json!({ "completed": null })));
    check(&mut fixture, &[]);
    fixture.model(completed(5));
    check(&mut fixture, &["record tokenUsage", "thread/tokenUsage/updated", "capture"]);
    fixture.captured();
    check(&mut fixture, &[NEWS, "request 2"]);
    fixture.model(done(message("n", "bye"))).model(completed(9));
    assert!(fixture.take().contains(&"finish Completed".to_owned()));
    assert_eq!(fixture.completed_turns(), 1);
    fixture.assert_all_closed();
}

#[test]
fn user_messages_follow_earlier_notifications() {
    let mut fixture = called();
    fixture.put(Input::Steer(said("more"))).put(ended("a1", json!("shutdown")));
    finish_tool(&mut fixture, ToolOutcome::text("ok"));
    fixture.captured();
    let prompt = fixture.prompt();
    assert_eq!(prompt[prompt.len() - 2..], [TOLD, "user: more"]);
}

#[test]
fn a_stopped_turn_keeps_its_notifications() {
    for (stop, last) in [
        (Input::Interrupt, "record responseItem user: <turn_aborted>"),
        (storage_failed("full"), "finish Failed"),
    ] {
        let mut fixture = called();
        fixture.put(ended("a1", json!("shutdown"))).put(stop);
        let trace = fixture.take();
        assert_eq!(trace.iter().filter(|line| *line == NEWS).count(), 1, "{trace:?}");
        let at = |wanted: &str| trace.iter().position(|line| line == wanted).expect(wanted);
        assert!(at(NEWS) < at(last), "{trace:?}");
        fixture.assert_all_closed();
        assert!(fixture.thread.history().contains(&Arc::new(subagent_notification(
            "a1",
            None,
            &json!("shutdown")
        ))));
    }
}

#[test]
fn after_a_failed_request_the_next_turn_has_the_notification() {
    let mut fixture = Fixture::new();
    fixture.start("u1", "hi");
    fixture.put(ended("a1", json!("shutdown"))).take();
    fixture.breaks(ModelFailure::new(FailureClass::Quota, "used up"));
    let trace = fixture.take();
    assert!(trace.contains(&NEWS.to_owned()) && trace.contains(&"finish Failed".to_owned()), "{trace:?}");
    fixture.start("u2", "again");
    assert_eq!(fixture.prompt().iter().filter(|line| *line == TOLD).count(), 1);
}

#[test]
fn a_retried_request_is_unchanged_and_the_next_one_has_the_notification() {
    let mut fixture = Fixture::new();
    fixture.start("u1", "hi");
    let asked = fixture.last_request.clone();
    fixture.put(ended("a1", json!("shutdown")));
    fixture.breaks(ModelFailure::stream("gone")).put(Input::Woken);
    assert_eq!((fixture.attempt, &fixture.last_request), (2, &asked));
    fixture.model(done(message("m", "hello"))).model(completed(9)).captured();
    let prompt = fixture.prompt();
    assert_eq!(prompt[prompt.len() - 2..], ["assistant: hello", TOLD]);
    fixture.model(done(message("n", "bye"))).model(completed(9));
    assert_eq!(fixture.completed_turns(), 1);
}

#[test]
fn a_requested_compaction_keeps_the_notification() {
    let mut fixture = Fixture::new();
    let step = Arc::new(fixture.step.clone());
    fixture.start("u1", "hi").model(done(message("m", "hello"))).model(completed(5));
    fixture.put(Input::Compact { turn_id: TurnId::new("u2"), step }).take();
    fixture.put(ended("a1", json!("shutdown")));
    check(&mut fixture, &[]);
    fixture.model(done(message("n", "summary"))).model(completed(9));
    let trace = fixture.take();
    assert!(trace.contains(&"finish Completed".to_owned()), "no request is made for it: {trace:?}");
    let last = fixture.thread.history().last().expect("a history");
    assert_eq!(**last, subagent_notification("a1", None, &json!("shutdown")));
    fixture.start("u3", "again");
    assert_eq!(fixture.prompt().iter().filter(|line| *line == TOLD).count(), 1);
}

#[test]
fn a_compaction_within_a_turn_keeps_the_notification() {
    let mut fixture = Fixture::new();
    fixture.step.model.auto_compact_token_limit = Some(100);
    fixture.start("u1", "hi").model(done(call("c1", "update_plan", "{}"))).model(completed(200));
    finish_tool(&mut fixture, ToolOutcome::text("ok"));
    fixture.put(ended("a1", json!("shutdown"))).take();
    fixture.model(done(message("s", "summary"))).model(completed(20)).captured();
    assert_eq!(fixture.prompt().last().map(String::as_str), Some(TOLD));
    fixture.model(done(message("m", "bye"))).model(completed(30));
    assert_eq!(fixture.completed_turns(), 1);
}

#[test]
fn a_turn_of_a_user_command_does_not_ask_the_model() {
    let mut fixture = Fixture::new();
    let step = Arc::new(fixture.step.clone());
    let turn_id = TurnId::new("u1");
    fixture.put(Input::UserShell { turn_id, call_id: "s".into(), command: "ls".into(), step });
    fixture.put(ended("a1", json!("shutdown"))).take();
    fixture.put(Input::ToolFinished { call_id: "s".into(), outcome: ToolOutcome::text("a.txt") });
    let trace = fixture.take();
    assert!(trace.contains(&NEWS.to_owned()) && trace.contains(&"finish Completed".to_owned()), "{trace:?}");
    assert!(!trace.iter().any(|line| line.starts_with("request") || line == "capture"), "{trace:?}");
    let history: Vec<_> = fixture.thread.history().iter().flat_map(|item| fragments_of(item)).collect();
    let names: Vec<_> = history.iter().map(|told| told.name).collect();
    assert_eq!(names, ["sub-agent notification", "user shell command"]);
}

#[test]
fn a_turn_continues_when_the_user_command_ends_after_the_model() {
    let mut fixture = Fixture::new();
    let step = Arc::new(fixture.step.clone());
    fixture.start("u1", "hi");
    let turn_id = TurnId::new("u1");
    fixture.put(Input::UserShell { turn_id, call_id: "s".into(), command: "sleep 9".into(), step });
    fixture.model(done(message("m", "bye"))).model(completed(5)).take();
    fixture.put(ended("a1", json!("shutdown")));
    check(&mut fixture, &[]);
    fixture.put(Input::ToolFinished { call_id: "s".into(), outcome: ToolOutcome::text("") });
    assert_eq!(fixture.take().last().map(String::as_str), Some("capture"));
    fixture.captured();
    assert!(fixture.prompt().contains(&TOLD.to_owned()), "{:?}", fixture.prompt());
    fixture.model(done(message("n", "bye"))).model(completed(9));
    assert_eq!(fixture.completed_turns(), 1);
}

/// Only the record distinguishes two ends with the same text.
#[test]
fn only_the_record_names_the_turn_of_the_child() {
    for is_running in [false, true] {
        let mut fixture = Fixture::new();
        if is_running {
            fixture.start("u1", "hi");
        }
        let (id, turn_id, status) = ("a1".into(), Some(TurnId::new("t1")), Some(json!({ "completed": "x" })));
        let end = ChildEnd { id, turn_id, status, operation: None };
        let stamp = Stamp { now_ms: 1, entropy: 1 };
        let mut effects = fixture.thread.on(stamp, Input::ChildEnded(Box::new(end))).expect("taken");
        if is_running {
            effects = fixture.thread.on(stamp, Input::Interrupt).expect("taken");
        }
        let told = effects.iter().find_map(|effect| match effect {
            Effect::Record(record) => match &**record {
                RolloutRecord::ResponseItem { item: ResponseItem::Message { id: Some(id), .. }, .. } => {
                    Some(id)
                }
                _ => None,
            },
            _ => None,
        });
        assert_eq!(told.map(String::as_str), Some("t1"));
        let known = subagent_notification("a1", None, &json!({ "completed": "x" }));
        assert!(fixture.thread.history().contains(&Arc::new(known)));
    }
}

#[test]
fn the_model_is_not_notified_twice() {
    let nothing = || ChildEnd { id: "a1".into(), turn_id: None, status: None, operation: None };
    let mut fixture = Fixture::new();
    fixture.put(Input::ChildEnded(Box::new(nothing())));
    check(&mut fixture, &[]);
    fixture.start("u1", "hi").take();
    fixture.put(Input::ChildEnded(Box::new(nothing())));
    fixture.model(done(message("m", "bye"))).model(completed(5));
    let trace = fixture.take();
    assert!(trace.contains(&"finish Completed".to_owned()) && !trace.contains(&NEWS.to_owned()), "{trace:?}");
}

#[test]
fn an_operation_that_goes_on_outlives_its_call_and_its_turn() {
    let mut fixture = with_running_child();
    let trace = fixture.take();
    assert!(trace.contains(&"record operation started".to_owned()), "{trace:?}");
    assert!(trace.contains(&"record responseItem output \"c1\": \"started\"".to_owned()), "{trace:?}");
    assert!(!trace.iter().any(|line| line.contains("finished")), "{trace:?}");
    let id = operation_of(&ThreadId::new("t"), &TurnId::new("u1"), "c1");
    assert_eq!((fixture.away(), id.as_str()), (Some("t:u1:c1"), "t:u1:c1"));
    end_turn(&mut fixture);
    assert_eq!(fixture.away(), Some("t:u1:c1"));
}

#[test]
fn the_end_of_a_child_operation_is_recorded_once_and_before_the_notification() {
    let mut fixture = with_running_child();
    end_turn(&mut fixture);
    fixture.put(with_operation(Some(json!({ "completed": "found it" })), "t:u1:c1"));
    check(&mut fixture, &["record operation finished", NEWS]);
    assert_eq!(fixture.away(), None);
    fixture.start("u2", "and?");
    assert!(fixture.take().iter().all(|line| !line.contains("operation")));
}

#[test]
fn an_operation_that_ends_in_its_own_turn_is_recorded_at_once() {
    let mut fixture = with_running_child();
    fixture.take();
    fixture.put(with_operation(Some(json!({ "completed": null })), "t:u1:c1"));
    check(&mut fixture, &["record operation finished"]);
    fixture.captured();
    check(&mut fixture, &[NEWS, "request 2"]);
    fixture.model(done(message("m", "bye"))).model(completed(9));
    assert!(fixture.take().iter().all(|line| !line.contains("operation")));
}

#[test]
fn a_closed_child_ends_only_in_the_record() {
    for in_turn in [false, true] {
        let mut fixture = with_running_child();
        end_turn(&mut fixture);
        if in_turn {
            fixture.start("u2", "close it").take();
        }
        let before = fixture.thread.history().len();
        fixture.put(with_operation(None, "t:u1:c1"));
        check(&mut fixture, &["record operation finished"]);
        assert_eq!(fixture.thread.history().len(), before);
    }
}

#[test]
fn an_interrupt_does_not_end_operations_of_children() {
    let mut fixture = with_running_child();
    fixture.take();
    fixture.put(Input::Interrupt);
    assert!(fixture.take().iter().all(|line| !line.contains("operation")));
    assert_eq!(fixture.away(), Some("t:u1:c1"));
}

#[test]
fn a_fork_starts_with_the_history_and_context() {
    let mut fixture = called();
    fixture.put(ended("a1", json!("shutdown")));
    finish_tool(&mut fixture, ToolOutcome::text("ok"));
    fixture.captured();
    let (history, context) = fixture.thread.remembered();
    assert_eq!(json!(history), json!(fixture.thread.history()));
    let seed = oarlock_engine::ThreadSeed {
        history,
        context,
        context_is_borrowed: true,
        ..oarlock_engine::ThreadSeed::new(ThreadId::new("child"))
    };
    let mut child = Fixture::new();
    child.thread = oarlock_engine::ThreadMachine::new(seed);
    child.start("u1", "your task");
    // The environment of both is already in the history, so it is not sent again.
    let mut expected = fixture.prompt();
    expected.push("user: your task".to_owned());
    assert_eq!(child.prompt(), expected);
    // The child's own record has the context, once.
    let notes = |child: &mut Fixture| child.take().iter().filter(|line| line.contains("turnContext")).count();
    assert_eq!(notes(&mut child), 1);
    child.model(done(message("m", "bye"))).model(completed(5)).start("u2", "more");
    assert_eq!(notes(&mut child), 0);
}
