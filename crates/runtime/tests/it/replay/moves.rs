//! Random events of a thread, and the inputs they become.

use std::sync::Arc;

use engine::{
    ChildEnd, Input, ModelInfo, OperationEnd, Proposal, Question, Reply, Step, ToolKind, ToolOutcome,
    ToolSpec, Truncation, UserText,
};
use model::{FailureClass, ModelFailure, StreamEvent, parse_event};
use proptest::prelude::*;
use protocol::{
    AskForApproval, CollaborationMode, CommandExecutionApprovalDecision as Decision, DynamicToolCallResponse,
    ItemId, ModeKind, OperationId, OperationType, ReadOnlyAccess, SandboxPolicy, Settings, ThreadItem,
    ToolEffects, TurnId,
};
use serde_json::{Value, json};

#[derive(Debug, Clone, Copy)]
pub(crate) enum Move {
    Start(Place),
    Compact,
    Steer,
    Interrupt,
    Rollback(u32),
    Model(u8, Stale),
    Break(u8),
    ToolEnds(u8),
    ChildEnds(u8),
    ClientAnswers(u8, bool),
    Proposes(u8),
    Decides(u8),
    Captured(Place),
    Woken,
}

/// The thread's environment from now on. The model is notified of a change.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place {
    Here,
    Elsewhere,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Stale {
    No,
    Yes,
}

/// Constant within a case.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting {
    pub(crate) plan_mode: bool,
    pub(crate) compaction_limit: Option<i64>,
}

pub(crate) const PLAIN: Setting = Setting { plan_mode: false, compaction_limit: None };

pub(crate) fn settings() -> impl Strategy<Value = Setting> {
    let limit = prop_oneof![Just(None), Just(Some(200_i64)), Just(Some(2_000_i64))];
    (any::<bool>(), limit).prop_map(|(plan_mode, compaction_limit)| Setting { plan_mode, compaction_limit })
}

/// Made from plain numbers, small ones for simple moves: a strategy per move would take longer than the moves.
pub(crate) fn moves(most: usize) -> impl Strategy<Value = Vec<Move>> {
    prop::collection::vec(any::<(u8, u8)>().prop_map(|(choice, detail)| Move::of(choice, detail)), 1..=most)
}

impl Move {
    fn of(choice: u8, detail: u8) -> Self {
        let place = if detail % 4 == 3 { Place::Elsewhere } else { Place::Here };
        match choice % 49 {
            0..4 => Self::Start(place),
            4..20 => Self::Model(detail, if choice < 240 { Stale::No } else { Stale::Yes }),
            20..26 => Self::Captured(place),
            26..30 => Self::ToolEnds(detail),
            30..32 => Self::ClientAnswers(detail / 2, detail.is_multiple_of(2)),
            32..34 => Self::Steer,
            34 => Self::Interrupt,
            35 => Self::Rollback(1 + u32::from(detail % 3)),
            36 => Self::Break(detail),
            37 | 38 => Self::Woken,
            40..43 => Self::Proposes(detail),
            43..46 => Self::Decides(detail),
            46..49 => Self::ChildEnds(detail),
            _ => Self::Compact,
        }
    }

    /// Whether it needs a running turn.
    pub(crate) fn needs_a_turn(self) -> bool {
        !matches!(
            self,
            Self::Start(_) | Self::Compact | Self::Rollback(_) | Self::Interrupt | Self::ChildEnds(_)
        )
    }

    /// The move's input for this turn, while this attempt is the last.
    pub(crate) fn input(self, setting: Setting, turn_id: TurnId, attempt: u64) -> Input {
        let here = || Arc::new(step(setting, Place::Here));
        match self {
            Self::Start(place) => {
                let text = UserText::typed(&format!("go {turn_id}"));
                Input::Start { turn_id, text, output_schema: None, step: Arc::new(step(setting, place)) }
            }
            Self::Compact => Input::Compact { turn_id, step: here() },
            Self::Steer => Input::Steer(UserText::typed(&format!("more {turn_id}"))),
            Self::Interrupt => Input::Interrupt,
            Self::Rollback(num_turns) => Input::Rollback { num_turns, turn_id, step: here() },
            Self::Model(kind, stale) => {
                let attempt = match stale {
                    Stale::No => attempt,
                    Stale::Yes => attempt.saturating_sub(1),
                };
                Input::Model { attempt, event: Ok(model_event(kind)) }
            }
            Self::Break(kind) => Input::Model { attempt, event: Err(failure(kind)) },
            Self::ToolEnds(kind) => tool_end(kind),
            Self::ChildEnds(kind) => child_end(&turn_id, kind),
            Self::ClientAnswers(id, ok) => Input::DynamicToolAnswered {
                call_id: format!("c{}", id % 4),
                answer: if ok {
                    Ok(DynamicToolCallResponse { content_items: vec![], success: true })
                } else {
                    Err("broke".to_owned())
                },
            },
            Self::Proposes(kind) => proposes(turn_id, kind),
            Self::Decides(kind) => Input::Answered {
                call_id: format!("c{}", kind % 4),
                reply: Box::new(match kind / 4 % 6 {
                    0..3 => Ok(Reply::Command(Decision::Accept.into())),
                    3 => Ok(Reply::Command(Decision::Decline.into())),
                    4 => Err("the client is gone".to_owned()),
                    _ => Ok(Reply::Command(Decision::Cancel.into())),
                }),
            },
            Self::Captured(place) => Input::StepCaptured(Arc::new(step(setting, place))),
            Self::Woken => Input::Woken,
        }
    }
}

/// A command that a tool proposes, with or without a question.
fn proposes(turn_id: TurnId, kind: u8) -> Input {
    let call_id = format!("c{}", kind % 4);
    let item = json!({
        "type": "commandExecution", "id": call_id, "command": "touch x", "cwd": "/repo", "processId": null,
        "source": "agent", "status": "inProgress", "commandActions": [], "aggregatedOutput": null,
        "exitCode": null, "durationMs": null,
    });
    let asked = json!({ "threadId": "", "turnId": "", "itemId": "", "command": "touch x" });
    let question = Question::Command(serde_json::from_value(asked).expect("fits"));
    let proposal = Proposal {
        number: u32::from(kind / 4 % 2),
        kind: OperationType::Command,
        effects: ToolEffects::Once,
        item: Some(serde_json::from_value(item).expect("fits")),
        outlives: false,
        arguments: json!({}),
        digest: String::new(),
        question: (kind >= 128).then(|| Box::new(question)),
        session_keys: vec![],
    };
    Input::Proposed { turn_id, call_id, proposal: Box::new(proposal) }
}

fn tool_end(kind: u8) -> Input {
    let call_id = format!("c{}", kind % 4);
    let image = || ThreadItem::ImageView { id: ItemId::new(call_id.clone()), path: "/repo/a.png".into() };
    let item = (kind >= 128).then(|| Box::new(image()));
    let goes_on = kind % 16 >= 12;
    Input::ToolFinished { outcome: ToolOutcome { item, goes_on, ..ToolOutcome::text("ok") }, call_id }
}

/// The end of a child, with or without a report to the model and an operation.
fn child_end(number: &TurnId, kind: u8) -> Input {
    let status = (!kind.is_multiple_of(4)).then(|| json!({ "completed": format!("done {number}") }));
    let operation = (kind >= 128).then(|| OperationEnd {
        operation_id: OperationId::new(format!("{number}:child")),
        success: kind.is_multiple_of(2),
        output: vec![],
    });
    let (id, turn_id) = (format!("a{}", kind % 3), kind.is_multiple_of(2).then(|| number.clone()));
    Input::ChildEnded(Box::new(ChildEnd { id, turn_id, status, operation }))
}

fn failure(kind: u8) -> ModelFailure {
    match kind % 4 {
        0 => ModelFailure::new(FailureClass::Quota, "used up"),
        1 => ModelFailure::new(FailureClass::ContextWindow, "too long"),
        _ => ModelFailure::stream("gone"),
    }
}

fn model_event(kind: u8) -> StreamEvent {
    let id = kind / 16 % 4;
    match kind % 12 {
        0 => added(&message(id, "")),
        1 | 2 => event(&json!({
            "type": "response.output_text.delta", "delta": "word <proposed_plan>\nx" })),
        3 => done(&message(id, "word\n<proposed_plan>\nx\n</proposed_plan>\n")),
        4 => added(&reasoning(id, &[])),
        5 => StreamEvent::ReasoningSummaryDelta { summary_index: i64::from(id), delta: "s".to_owned() },
        6 => done(&reasoning(id, &["because"])),
        7 => done(&call(id, "update_plan")),
        8 => done(&call(id, "lookup")),
        9 => done(&json!({ "type": "web_search_call", "id": format!("w{id}") })),
        10 => StreamEvent::ReasoningSummaryPartAdded { summary_index: 0 },
        _ => completed(i64::from(kind) * 10),
    }
}

/// Events that tests name, by their codes.
pub(crate) const MESSAGE_DONE: Move = Move::Model(3, Stale::No);
pub(crate) const CALL: Move = Move::Model(7, Stale::No);
pub(crate) const COMPLETED: Move = Move::Model(11, Stale::No);

fn message(id: u8, text: &str) -> Value {
    let content = if text.is_empty() { json!([]) } else { json!([{ "type": "output_text", "text": text }]) };
    json!({ "type": "message", "role": "assistant", "id": format!("m{id}"), "content": content })
}

fn reasoning(id: u8, summary: &[&str]) -> Value {
    let summary: Vec<Value> =
        summary.iter().map(|text| json!({ "type": "summary_text", "text": text })).collect();
    json!({ "type": "reasoning", "id": format!("r{id}"), "summary": summary })
}

fn call(id: u8, name: &str) -> Value {
    json!({ "type": "function_call", "id": "fc", "call_id": format!("c{id}"), "name": name, "arguments": "{}" })
}

fn added(item: &Value) -> StreamEvent {
    event(&json!({ "type": "response.output_item.added", "item": item }))
}

fn done(item: &Value) -> StreamEvent {
    event(&json!({ "type": "response.output_item.done", "item": item }))
}

fn completed(total: i64) -> StreamEvent {
    let usage = json!({ "input_tokens": total - 1, "output_tokens": 1, "total_tokens": total });
    event(&json!({ "type": "response.completed", "response": { "id": "r", "usage": usage } }))
}

fn event(value: &Value) -> StreamEvent {
    parse_event(&value.to_string()).expect("a good event").expect("a known event")
}

fn step(setting: Setting, place: Place) -> Step {
    let tool = |name: &str, kind| ToolSpec {
        namespace: None,
        name: name.to_owned(),
        kind,
        json: Some(Arc::new(json!({ "type": "function", "name": name }))),
        parallel: true,
        gate: engine::Gate::Open,
        effects: Default::default(),
    };
    let plan = || CollaborationMode {
        mode: ModeKind::Plan,
        settings: Settings {
            model: "test-model".into(),
            reasoning_effort: None,
            developer_instructions: None,
        },
    };
    Step {
        model: ModelInfo {
            slug: "test-model".into(),
            context_window: Some(272_000),
            effective_window_percent: 95,
            auto_compact_token_limit: setting.compaction_limit,
            supports_reasoning_summaries: true,
            supports_parallel_tool_calls: true,
            truncation: Truncation::Bytes(10_000),
            stream_max_retries: 2,
            price: None,
        },
        base_instructions: "Be useful.".into(),
        collaboration_mode: setting.plan_mode.then(plan),
        approval_policy: AskForApproval::Never,
        sandbox: SandboxPolicy::ReadOnly { access: ReadOnlyAccess::FullAccess, network_access: false },
        cwd: match place {
            Place::Here => "/repo".into(),
            Place::Elsewhere => "/elsewhere".into(),
        },
        shell: "bash".into(),
        current_date: "2026-11-15".into(),
        tools: vec![tool("update_plan", ToolKind::Builtin), tool("lookup", ToolKind::Dynamic)],
        ..Step::bare("test-model", "/repo")
    }
}
