//! Random orders of events: one end per turn, every started item completed, deltas inside their item, no notification
//! before its record, no effect after the end, and the same inputs give the same effects. The fixture checks all of
//! this on every effect.

use std::sync::Arc;

use model::{FailureClass, ModelFailure, StreamEvent};
use oarlock_engine::{ChildEnd, GoalChange, Input, OperationEnd, Reply, ReviewOrder, ToolOutcome};
use proptest::prelude::*;
use protocol::{
    CommandExecutionApprovalDecision as Decision, DynamicToolCallResponse, OperationId, ReviewTarget,
    TriState, TurnId,
};
use serde_json::json;

use crate::support::{Fixture, added, call, completed, done, message, proposal, said, storage_failed, text};

#[derive(Debug, Clone, Copy)]
enum Move {
    Start,
    Compact,
    Steer,
    Interrupt,
    CutOff,
    Rollback,
    Model(u8, Stale),
    Break(u8),
    ToolEnds(u8, bool),
    ChildEnds(u8),
    ClientAnswers(u8, bool),
    Proposes(u8, bool),
    Answers(u8, u8),
    UserShell(u8),
    Captured,
    Woken,
    StorageFails,
    Review,
    SetGoal(bool),
    ClearGoal,
    PursueGoal,
    Deadline,
}

#[derive(Debug, Clone, Copy)]
enum Stale {
    No,
    Yes,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let stale = prop_oneof![9 => Just(Stale::No), 1 => Just(Stale::Yes)];
    let one = prop_oneof![
        3 => Just(Move::Start),
        1 => Just(Move::Compact),
        2 => Just(Move::Steer),
        1 => Just(Move::Interrupt),
        1 => Just(Move::CutOff),
        1 => Just(Move::Rollback),
        12 => (any::<u8>(), stale).prop_map(|(kind, stale)| Move::Model(kind, stale)),
        2 => any::<u8>().prop_map(Move::Break),
        4 => (any::<u8>(), any::<bool>()).prop_map(|(id, goes_on)| Move::ToolEnds(id, goes_on)),
        3 => any::<u8>().prop_map(Move::ChildEnds),
        3 => (any::<u8>(), any::<bool>()).prop_map(|(id, ok)| Move::ClientAnswers(id, ok)),
        5 => (any::<u8>(), any::<bool>()).prop_map(|(id, asks)| Move::Proposes(id, asks)),
        4 => (any::<u8>(), any::<u8>()).prop_map(|(id, kind)| Move::Answers(id, kind)),
        1 => any::<u8>().prop_map(Move::UserShell),
        4 => Just(Move::Captured),
        3 => Just(Move::Woken),
        1 => Just(Move::StorageFails),
        1 => Just(Move::Review),
        1 => any::<bool>().prop_map(Move::SetGoal),
        1 => Just(Move::ClearGoal),
        2 => Just(Move::PursueGoal),
        1 => Just(Move::Deadline),
    ];
    prop::collection::vec(one, 1..60)
}

fn model_event(kind: u8) -> StreamEvent {
    let id = kind / 16 % 4;
    match kind % 12 {
        0 => added(message(&format!("m{id}"), "")),
        1 | 2 => text("word <proposed_plan>\nx"),
        3 => done(message(&format!("m{id}"), "word")),
        4 => added(serde_json::json!({ "type": "reasoning", "id": format!("r{id}"), "summary": [] })),
        5 => StreamEvent::ReasoningSummaryDelta { summary_index: i64::from(id), delta: "s".into() },
        6 => done(serde_json::json!({ "type": "reasoning", "id": format!("r{id}"), "summary": [] })),
        7 if kind >= 128 => done(call(&format!("long{id}"), "update_plan", "{}")),
        7 => done(call(&format!("c{id}"), "update_plan", "{}")),
        8 => done(call(&format!("c{id}"), "lookup", "{}")),
        9 => done(serde_json::json!({ "type": "web_search_call", "id": format!("w{id}") })),
        10 => StreamEvent::ReasoningSummaryPartAdded { summary_index: 0 },
        _ => completed(i64::from(kind) * 10),
    }
}

/// A call of the model, or the user's last command.
fn any_call(id: u8) -> String {
    if id >= 192 { format!("long{}", id % 4) } else { format!("c{}", id % 4) }
}

fn reply(kind: u8) -> Result<Reply, String> {
    let decision = match kind % 6 {
        0 | 1 => Decision::Accept,
        2 => Decision::AcceptForSession,
        3 => Decision::AcceptWithExecpolicyAmendment {
            execpolicy_amendment: vec!["touch".into(), "a b".into()],
        },
        4 => Decision::Decline,
        _ if kind > 128 => Decision::Cancel,
        _ => return Err("the client is gone".into()),
    };
    Ok(Reply::Command(decision.into()))
}

/// The end of a child here, or of one elsewhere with a running operation.
fn child_end(fixture: &Fixture, kind: u8) -> ChildEnd {
    let operation = fixture.away().filter(|_| kind >= 96).map(|id| OperationEnd {
        operation_id: OperationId::new(id),
        success: kind.is_multiple_of(2),
        output: vec![],
    });
    let status = (!kind.is_multiple_of(4)).then(|| json!({ "completed": format!("done {kind}") }));
    ChildEnd { id: format!("a{}", kind % 4), turn_id: None, status, operation }
}

fn play(fixture: &mut Fixture, number: usize, one: Move) {
    let turn_id = TurnId::new(format!("u{number}"));
    let step = Arc::new(fixture.step.clone());
    let input = match one {
        // A turn in which everything waits is suspended, and is resumed in another thread than this one.
        Move::CutOff if fixture.thread.is_pending() => return,
        Move::Start => Input::Start { turn_id, text: said("go"), output_schema: None, step },
        Move::Compact => Input::Compact { turn_id, step },
        Move::Review => {
            let order = ReviewOrder::of(&ReviewTarget::UncommittedChanges);
            Input::Review { turn_id, order, step }
        }
        Move::SetGoal(is_limited) => {
            let token_budget = if is_limited { TriState::Set(500) } else { TriState::Keep };
            let change = GoalChange { objective: Some("x".into()), token_budget, ..GoalChange::default() };
            let goal = change.apply(fixture.thread.id(), fixture.thread.goal(), 1_000).expect("a goal");
            Input::SetGoal { goal: Box::new(goal), begin: Some((turn_id, step)) }
        }
        Move::ClearGoal => Input::ClearGoal,
        Move::PursueGoal => Input::PursueGoal { turn_id, step },
        Move::Deadline => Input::DeadlinePassed { attempt: fixture.attempt },
        Move::Steer => Input::Steer(said("more")),
        Move::Interrupt => Input::Interrupt,
        Move::CutOff => Input::Close { waits_for_host: false },
        Move::Rollback => Input::Rollback { num_turns: 1, turn_id, step },
        Move::Model(kind, stale) => {
            let attempt = match stale {
                Stale::No => fixture.attempt,
                Stale::Yes => fixture.attempt.saturating_sub(1),
            };
            Input::Model { attempt, event: Ok(model_event(kind)) }
        }
        Move::Break(kind) => {
            let failure = match kind % 5 {
                0 => ModelFailure::new(FailureClass::Quota, "used up"),
                4 => ModelFailure::new(FailureClass::CarrierGone, "away"),
                1 => ModelFailure::new(FailureClass::ContextWindow, "too long"),
                _ => ModelFailure::stream("gone"),
            };
            Input::Model { attempt: fixture.attempt, event: Err(failure) }
        }
        Move::ToolEnds(id, goes_on) => {
            let outcome = ToolOutcome { goes_on, ..ToolOutcome::text("ok") };
            Input::ToolFinished { call_id: any_call(id), outcome }
        }
        Move::ChildEnds(kind) => Input::ChildEnded(Box::new(child_end(fixture, kind))),
        Move::Proposes(id, asks) => {
            let call_id = any_call(id);
            // Tools number their proposals, and wait for each.
            let number = if fixture.shows(&call_id) { u32::try_from(number).expect("few") } else { 0 };
            let proposal = proposal(&call_id, number, asks);
            if !fixture.may_propose(&call_id) {
                return;
            }
            let Some(turn_id) = fixture.thread.active_turn().cloned() else { return };
            Input::Proposed { turn_id, call_id, proposal }
        }
        Move::Answers(id, kind) => {
            fixture.answer(&any_call(id), reply(kind));
            return;
        }
        Move::UserShell(id) => {
            Input::UserShell { turn_id, call_id: format!("s{number}-{id}"), command: "ls".into(), step }
        }
        Move::ClientAnswers(id, ok) => Input::DynamicToolAnswered {
            call_id: format!("c{}", id % 4),
            answer: if ok {
                Ok(DynamicToolCallResponse { content_items: vec![], success: true })
            } else {
                Err("broke".into())
            },
        },
        Move::Captured => Input::StepCaptured(step),
        Move::Woken => Input::Woken,
        Move::StorageFails => storage_failed("full"),
    };
    // Refusals are fine; the fixture has checked that nothing changed.
    let before = fixture.thread.history().len();
    if fixture.on(input).is_err() {
        assert_eq!(fixture.thread.history().len(), before);
    }
}

/// Every call in a finished thread's record has exactly one output.
fn assert_paired(fixture: &Fixture) {
    let (mut calls, mut outputs) = (Vec::new(), Vec::new());
    for item in fixture.thread.history() {
        let item = serde_json::to_value(&**item).expect("serialises");
        let id = item["call_id"].as_str().unwrap_or_default().to_owned();
        match item["type"].as_str() {
            Some("function_call") => calls.push(id),
            Some("function_call_output") => outputs.push(id),
            _ => {}
        }
    }
    calls.sort();
    outputs.sort();
    assert_eq!(calls, outputs);
}

/// Overridden by `PROPTEST_CASES`; `scripts/figures` runs 3,000.
const CASES: u32 = 600;

fn config() -> ProptestConfig {
    let chosen = ProptestConfig::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { chosen.cases } else { CASES };
    ProptestConfig { cases, failure_persistence: None, ..chosen }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_invariants_hold(plan_mode in any::<bool>(), judged in any::<bool>(), limit in prop_oneof![Just(None), Just(Some(200i64))], moves in moves()) {
        let mut fixture = Fixture::new();
        fixture.step.model.auto_compact_token_limit = limit;
        fixture.step.reviews_approvals = judged;
        if plan_mode {
            let settings = protocol::Settings { model: "m".into(), reasoning_effort: None, developer_instructions: None };
            fixture.step.collaboration_mode =
                Some(protocol::CollaborationMode { mode: protocol::ModeKind::Plan, settings });
        }
        for (number, one) in moves.into_iter().enumerate() {
            play(&mut fixture, number, one);
        }
        let _ = fixture.on(Input::Interrupt);
        fixture.assert_all_closed();
        assert_paired(&fixture);
        fixture.take();
        let effects = fixture.on(Input::Model { attempt: fixture.attempt, event: Ok(text("late")) }).expect("ignored");
        prop_assert!(effects.is_empty(), "no effect after the end");
    }
}
