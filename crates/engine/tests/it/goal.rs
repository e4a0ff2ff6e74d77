//! Goals: when turns start for one, and its status when they end.

use std::sync::Arc;

use oarlock_engine::{GoalChange, Input, ToolOutcome};
use protocol::{ThreadGoal, ThreadGoalStatus, ThreadId, TriState, TurnId};

use crate::support::{Fixture, call, completed, done, message};

fn goal(budget: Option<i64>) -> ThreadGoal {
    let token_budget = budget.map_or(TriState::Keep, TriState::Set);
    let change = GoalChange { objective: Some("x".into()), token_budget, ..GoalChange::default() };
    change.apply(&ThreadId::new("t"), None, 1_000).expect("a goal")
}

/// A thread that has begun to work on a goal.
fn working(budget: Option<i64>) -> Fixture {
    let mut fixture = Fixture::new();
    let step = Arc::new(fixture.step.clone());
    let begin = Some((TurnId::new("g1"), step));
    fixture.put(Input::SetGoal { goal: Box::new(goal(budget)), begin });
    fixture
}

fn go_on(fixture: &mut Fixture, turn: &str) {
    let step = Arc::new(fixture.step.clone());
    fixture.put(Input::PursueGoal { turn_id: TurnId::new(turn), step });
}

fn status(fixture: &Fixture) -> ThreadGoalStatus {
    fixture.thread.goal().expect("a goal").status
}

#[test]
fn a_goal_is_recorded_and_notified_and_starts_turn_after_turn() {
    let mut fixture = working(None);
    assert_eq!(
        fixture.take()[..5],
        [
            "record metadata",
            "thread/goal/updated Active",
            "record turnStarted",
            "thread/status/changed active",
            "turn/started"
        ]
    );
    assert!(fixture.prompt().last().expect("a line").contains("<goal_context>"));
    fixture.model(done(message("m1", "one"))).model(completed(10));
    assert_eq!(fixture.take().last().map(String::as_str), Some("pursue"));
    go_on(&mut fixture, "g2");
    assert_eq!(fixture.thread.active_turn(), Some(&TurnId::new("g2")));
    // Late or duplicate: a turn already runs.
    go_on(&mut fixture, "g3");
    assert_eq!(fixture.thread.active_turn(), Some(&TurnId::new("g2")));
    fixture.model(done(call("c1", "update_plan", "{}"))).model(completed(10));
    let outcome = ToolOutcome { goal: Some(ThreadGoalStatus::Complete), ..ToolOutcome::text("done") };
    fixture.put(Input::ToolFinished { call_id: "c1".into(), outcome }).captured();
    fixture.model(done(message("m2", "reached"))).model(completed(10));
    assert_eq!(fixture.take().last().map(String::as_str), Some("finish Completed"));
    assert_eq!(status(&fixture), ThreadGoalStatus::Complete);
    go_on(&mut fixture, "g4");
    assert_eq!(fixture.thread.active_turn(), None);
}

#[test]
fn the_end_of_a_turn_decides_the_status_of_the_goal() {
    let failure = || model::ModelFailure::new(model::FailureClass::InvalidRequest, "no");
    for (input, expected) in [
        (Input::Interrupt, ThreadGoalStatus::Paused),
        (Input::MakeWay, ThreadGoalStatus::Active),
        (Input::Close { waits_for_host: false }, ThreadGoalStatus::Active),
        (Input::Model { attempt: 1, event: Err(failure()) }, ThreadGoalStatus::Blocked),
    ] {
        let mut fixture = working(None);
        fixture.put(input.clone());
        assert_eq!(status(&fixture), expected, "{input:?}");
        assert!(!fixture.take().contains(&"pursue".to_owned()), "{input:?}");
        fixture.assert_all_closed();
    }
}

#[test]
fn a_spent_budget_asks_the_model_to_end_and_no_turn_follows() {
    let mut fixture = working(Some(10));
    fixture.model(done(call("c1", "update_plan", "{}"))).model(completed(15));
    assert_eq!(status(&fixture), ThreadGoalStatus::BudgetLimited);
    fixture.put(Input::ToolFinished { call_id: "c1".into(), outcome: ToolOutcome::text("ok") }).captured();
    assert!(fixture.prompt().last().expect("a line").contains("<goal_budget>"), "{:?}", fixture.prompt());
    fixture.model(done(message("m1", "so far"))).model(completed(20));
    assert_eq!(fixture.take().last().map(String::as_str), Some("finish Completed"));
    assert_eq!(fixture.thread.goal().map(|goal| goal.tokens_used), Some(15));
}

#[test]
fn a_cleared_goal_is_over() {
    let mut fixture = working(None);
    fixture.put(Input::ClearGoal).model(done(message("m1", "one"))).model(completed(10));
    let trace = fixture.take();
    assert!(trace.contains(&"thread/goal/cleared".to_owned()));
    assert_eq!(trace.last().map(String::as_str), Some("finish Completed"));
}
