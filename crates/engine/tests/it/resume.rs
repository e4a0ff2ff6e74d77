//! Turns that a restart interrupted, resumed from the record; and calls that wait for the host.

use std::sync::Arc;

use oarlock_engine::{
    Earlier, EarlierState, Effect, Gate, Input, Question, Reply, ThreadMachine, ThreadSeed, ToolCall,
    ToolKind, ToolOutcome, ToolPayload, UNKNOWN_OUTCOME,
};
use protocol::{
    DynamicToolCallOutputContentItem, DynamicToolCallResponse, FunctionCallOutputBody, ItemId,
    OperationDecision, OperationId, ResponseItem, ThreadId, ToolApprovalDecision, TurnId,
};
use serde_json::{Value, json};

use crate::support::{Fixture, call, completed, done, message, proposal, said};

#[track_caller]
fn check(fixture: &mut Fixture, expected: &[&str]) {
    assert_eq!(fixture.take(), expected);
}

fn item(value: Value) -> ResponseItem {
    serde_json::from_value(value).expect("an item")
}

fn user(text: &str) -> ResponseItem {
    item(json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": text }] }))
}

/// A thread whose process stopped after the model made these calls, all unanswered.
fn cut_off(calls: &[(&str, &str)]) -> Fixture {
    let mut fixture = Fixture::new();
    let calls = calls.iter().map(|(id, name)| item(call(id, name, "{}")));
    let history = std::iter::once(user("go")).chain(calls).collect();
    fixture.thread = ThreadMachine::new(ThreadSeed {
        history,
        shows_operations: true,
        ..ThreadSeed::new(ThreadId::new("t"))
    });
    fixture
}

fn earlier(call: &str, state: EarlierState) -> Earlier {
    let item = match state {
        EarlierState::Started { .. } => proposal("c1", 0, false).item.map(|item| *item),
        _ => None,
    };
    let operation_id = OperationId::new(format!("t:u1:{call}"));
    Earlier { operation_id, digest: "sha256:d".into(), state, has_started: false, item }
}

fn resume(fixture: &mut Fixture, earlier: Vec<Earlier>) {
    let step = Arc::new(fixture.step.clone());
    fixture.put(Input::Resume { turn_id: TurnId::new("u1"), said: vec![], earlier, step });
}

const BEGINS: &[&str] = &["record turnStarted", "thread/status/changed active", "turn/started"];

fn propose(fixture: &mut Fixture) {
    let proposal = proposal("c1", 0, true);
    fixture.put(Input::Proposed { turn_id: TurnId::new("u1"), call_id: "c1".into(), proposal });
}

#[test]
fn a_turn_without_open_calls_continues_with_the_next_request() {
    let mut fixture = cut_off(&[]);
    resume(&mut fixture, vec![]);
    check(&mut fixture, &[BEGINS[0], BEGINS[1], BEGINS[2], "capture"]);
    fixture.captured();
    assert_eq!(fixture.prompt()[0], "user: go");
}

#[test]
fn accepted_input_that_was_not_sent_is_sent() {
    let mut fixture = cut_off(&[]);
    let step = Arc::new(fixture.step.clone());
    let said = vec![(ItemId::new("s1"), said("and that"))];
    fixture.put(Input::Resume { turn_id: TurnId::new("u1"), said, earlier: vec![], step });
    fixture.captured();
    assert_eq!(fixture.prompt().last().expect("a line"), "user: and that");
}

#[test]
fn a_call_that_never_started_is_run() {
    let mut fixture = cut_off(&[("c1", "update_plan")]);
    resume(&mut fixture, vec![]);
    check(&mut fixture, &[BEGINS[0], BEGINS[1], BEGINS[2], "run c1 update_plan"]);
}

#[test]
fn a_call_that_waits_is_asked_about_again_and_recorded_once() {
    let mut fixture = cut_off(&[("c1", "update_plan")]);
    resume(&mut fixture, vec![earlier("c1", EarlierState::Proposed)]);
    fixture.take();
    propose(&mut fixture);
    check(
        &mut fixture,
        &["item/started command InProgress", "thread/status/changed active", "ask c1 command touch x"],
    );
}

#[test]
fn a_changed_operation_needs_a_new_decision() {
    let mut fixture = cut_off(&[("c1", "update_plan")]);
    let decided =
        EarlierState::Decided(OperationDecision::Approve { scope: None, execpolicy_amendment: None });
    let other = Earlier { digest: "sha256:other".into(), ..earlier("c1", decided) };
    resume(&mut fixture, vec![other]);
    fixture.take();
    propose(&mut fixture);
    check(
        &mut fixture,
        &[
            "record operation withdrawn",
            "record operation proposed",
            "item/started command InProgress",
            "thread/status/changed active",
            "ask c1 command touch x",
        ],
    );
}

#[test]
fn a_decision_is_not_asked_for_twice() {
    let words = vec![DynamicToolCallOutputContentItem::InputText { text: "by hand".into() }];
    let cases: Vec<(OperationDecision, &[&str])> = vec![
        (
            OperationDecision::Approve { scope: None, execpolicy_amendment: None },
            &[
                "record operation started",
                "record threadItem command InProgress",
                "item/started command InProgress",
                "decide c1 0 run agreed=true",
            ],
        ),
        (OperationDecision::Reject { message: None, end_turn: false }, &["decide c1 0 declined"]),
        (
            OperationDecision::Replace { command: Some(vec!["ls".into()]), arguments: None },
            &["decide c1 0 instead ls"],
        ),
        (
            OperationDecision::Respond { content_items: words, success: true },
            &["cancel tool c1", "record responseItem output \"c1\": \"by hand\"", "capture"],
        ),
    ];
    for (decision, expected) in cases {
        let mut fixture = cut_off(&[("c1", "update_plan")]);
        resume(&mut fixture, vec![earlier("c1", EarlierState::Decided(decision))]);
        fixture.take();
        propose(&mut fixture);
        check(&mut fixture, expected);
    }
}

/// The question of `proposal` offers a rule for `touch "a b"`.
fn approved_with(rule: &[&str]) -> EarlierState {
    let execpolicy_amendment = Some(rule.iter().map(|word| (*word).to_owned()).collect());
    EarlierState::Decided(OperationDecision::Approve { scope: None, execpolicy_amendment })
}

#[test]
fn an_approved_rule_is_still_saved_and_the_model_notified_once() {
    let mut fixture = cut_off(&[("c1", "update_plan")]);
    resume(&mut fixture, vec![earlier("c1", approved_with(&["touch", "a b"]))]);
    fixture.take();
    propose(&mut fixture);
    let told = |trace: &[String]| trace.iter().filter(|line| line.contains("prefix saved")).count();
    let trace = fixture.take();
    assert_eq!(trace.iter().filter(|line| *line == "save rule touch a b").count(), 1, "{trace:?}");
    assert_eq!(trace.last().map(String::as_str), Some("decide c1 0 run agreed=true"));
    assert_eq!(told(&trace), 1, "{trace:?}");

    // The process stopped after the history was written.
    let history = fixture.thread.history().iter().map(|item| (**item).clone()).collect();
    let mut fixture = Fixture::new();
    fixture.thread = ThreadMachine::new(ThreadSeed {
        history,
        shows_operations: true,
        ..ThreadSeed::new(ThreadId::new("t"))
    });
    resume(&mut fixture, vec![earlier("c1", approved_with(&["touch", "a b"]))]);
    propose(&mut fixture);
    let trace = fixture.take();
    assert_eq!(trace.iter().filter(|line| *line == "save rule touch a b").count(), 1, "{trace:?}");
    assert_eq!(trace.last().map(String::as_str), Some("decide c1 0 run agreed=true"));
    assert_eq!(told(&trace), 0, "{trace:?}");
}

#[test]
fn a_rule_that_the_question_did_not_offer_is_no_rule() {
    let mut fixture = cut_off(&[("c1", "update_plan")]);
    resume(&mut fixture, vec![earlier("c1", approved_with(&["touch"]))]);
    propose(&mut fixture);
    let trace = fixture.take();
    assert_eq!(trace.last().map(String::as_str), Some("decide c1 0 run agreed=true"));
    assert!(!trace.iter().any(|line| line.starts_with("save rule")), "{trace:?}");
}

#[test]
fn an_operation_without_an_end_is_unknown_and_not_run_again() {
    let mut fixture = cut_off(&[("c1", "update_plan")]);
    resume(&mut fixture, vec![earlier("c1", EarlierState::Started { attempt: 1 })]);
    check(
        &mut fixture,
        &[
            BEGINS[0],
            BEGINS[1],
            BEGINS[2],
            "record operation unknown",
            "item/started command InProgress",
            "record threadItem command Failed",
            "item/completed command Failed",
            &format!("record responseItem output \"c1\": \"{UNKNOWN_OUTCOME}\""),
            "capture",
        ],
    );
}

#[test]
fn an_unknown_outcome_is_retried_only_by_a_decision() {
    let mut fixture = cut_off(&[("c1", "update_plan")]);
    resume(&mut fixture, vec![earlier("c1", EarlierState::Again { attempt: 1 })]);
    fixture.take();
    propose(&mut fixture);
    let trace = fixture.take();
    assert!(trace.contains(&"decide c1 0 run agreed=true".to_owned()), "{trace:?}");
    assert!(!trace.iter().any(|line| line.starts_with("ask")), "{trace:?}");
}

#[test]
fn a_stored_output_is_used() {
    let mut fixture = cut_off(&[("c1", "update_plan"), ("c2", "update_plan")]);
    let output = vec![DynamicToolCallOutputContentItem::InputText { text: "ran".into() }];
    resume(&mut fixture, vec![earlier("c1", EarlierState::Finished { output, success: true })]);
    check(&mut fixture, &[BEGINS[0], BEGINS[1], BEGINS[2], "run c2 update_plan"]);
    fixture.put(Input::ToolFinished { call_id: "c2".into(), outcome: ToolOutcome::text("too") });
    check(
        &mut fixture,
        &[
            "record responseItem output \"c1\": \"ran\"",
            "record responseItem output \"c2\": \"too\"",
            "capture",
        ],
    );
}

#[test]
fn a_second_attempt_that_waited_is_not_made_from_the_beginning() {
    let mut fixture = cut_off(&[("c1", "update_plan")]);
    let output = vec![DynamicToolCallOutputContentItem::InputText { text: "stopped by the sandbox".into() }];
    let first = earlier("c1", EarlierState::Finished { output, success: false });
    resume(&mut fixture, vec![first, earlier("c1:1", EarlierState::Proposed)]);
    check(
        &mut fixture,
        &[
            BEGINS[0],
            BEGINS[1],
            BEGINS[2],
            "record operation withdrawn",
            "record responseItem output \"c1\": \"stopped by the sandbox\"",
            "capture",
        ],
    );
}

#[test]
fn a_clients_tool_is_called_again_under_its_own_name() {
    let mut fixture = cut_off(&[("c1", "lookup")]);
    fixture.begun_before("t:u1:c1");
    resume(&mut fixture, vec![earlier("c1", EarlierState::Proposed)]);
    check(
        &mut fixture,
        &[BEGINS[0], BEGINS[1], BEGINS[2], "item/started dynamic InProgress", "ask c1 lookup"],
    );
    let text = DynamicToolCallOutputContentItem::InputText { text: "found".into() };
    let answer = Ok(DynamicToolCallResponse { content_items: vec![text], success: true });
    fixture.put(Input::DynamicToolAnswered { call_id: "c1".into(), answer });
    let trace = fixture.take();
    assert!(trace.contains(&"record operation finished".to_owned()), "{trace:?}");
}

/// The lines of a gate's question.
const ASKS: &[&str] =
    &["record operation proposed", "thread/status/changed active", "ask c1 tool update_plan"];

fn gated() -> Fixture {
    let mut fixture = Fixture::new();
    fixture
        .step
        .tools
        .iter_mut()
        .filter(|tool| tool.kind == ToolKind::Builtin)
        .for_each(|tool| tool.gate = Gate::Ask);
    fixture.start("u1", "go").take();
    fixture.model(done(call("c1", "update_plan", "{\"a\":1}")));
    fixture
}

#[test]
fn the_host_decides_about_calls_that_ask_nothing_themselves() {
    let cases: Vec<(ToolApprovalDecision, &[&str])> = vec![
        (
            ToolApprovalDecision::Accept,
            &[
                "record operation decided",
                "thread/status/changed active",
                "record operation started",
                "run c1 update_plan",
            ],
        ),
        (
            ToolApprovalDecision::AcceptWithArguments { arguments: json!({ "a": 2 }) },
            &[
                "record operation decided",
                "thread/status/changed active",
                "record operation started",
                "run c1 update_plan",
            ],
        ),
        (ToolApprovalDecision::Decline, &["record operation decided", "thread/status/changed active"]),
    ];
    for (decision, expected) in cases {
        let mut fixture = gated();
        let trace = fixture.take();
        assert_eq!(trace[trace.len() - 3..], *ASKS);
        fixture.answer("c1", Ok(Reply::Tool(decision.into())));
        check(&mut fixture, expected);
    }
}

#[test]
fn an_unknown_outcome_that_was_settled_is_not_run_again_when_the_call_would_do_something_else() {
    let text = DynamicToolCallOutputContentItem::InputText { text: "it had run".into() };
    let respond = OperationDecision::Respond { content_items: vec![text], success: true };
    let refuse = OperationDecision::Reject { message: None, end_turn: false };
    let cases: [(OperationDecision, &[&str]); 2] = [
        (respond, &["cancel tool c1", "record responseItem output \"c1\": \"it had run\"", "capture"]),
        (refuse, &["decide c1 0 declined"]),
    ];
    for (decision, expected) in cases {
        let mut fixture = cut_off(&[("c1", "update_plan")]);
        let settled = earlier("c1", EarlierState::Decided(decision));
        resume(&mut fixture, vec![Earlier { digest: "sha256:other".into(), has_started: true, ..settled }]);
        fixture.take();
        propose(&mut fixture);
        check(&mut fixture, expected);
    }
}

#[test]
fn a_decided_gate_is_not_asked_about_again() {
    let text = DynamicToolCallOutputContentItem::InputText { text: "no need".into() };
    let respond = OperationDecision::Respond { content_items: vec![text], success: true };
    let replace = OperationDecision::Replace { command: None, arguments: Some(json!({ "a": 2 })) };
    let no = |end_turn| OperationDecision::Reject { message: None, end_turn };
    let begins = &["record operation started", "run c1 update_plan"][..];
    let cases = [
        (
            EarlierState::Decided(OperationDecision::Approve { scope: None, execpolicy_amendment: None }),
            begins,
        ),
        (EarlierState::Decided(replace), begins),
        (EarlierState::Again { attempt: 1 }, begins),
        (EarlierState::Decided(respond), &["record responseItem output \"c1\": \"no need\"", "capture"]),
        (
            EarlierState::Decided(no(false)),
            &["record responseItem output \"c1\": \"the call was refused", "capture"],
        ),
        // The decision ended the turn, whether or not the process could still record that.
        (
            EarlierState::Decided(no(true)),
            &[
                "record responseItem output \"c1\": \"aborted by user",
                "record responseItem user: <turn_aborted>",
                "record turnEnded Interrupted",
                "thread/status/changed idle",
                "turn/completed interrupted",
                "finish Interrupted",
            ],
        ),
        (EarlierState::Proposed, &["thread/status/changed active", "ask c1 tool update_plan"]),
    ];
    for (state, expected) in cases {
        let mut fixture = cut_off(&[("c1", "update_plan")]);
        fixture.step.tools.iter_mut().for_each(|tool| tool.gate = Gate::Ask);
        let digest = oarlock_engine::digest_of(&json!(["update_plan", {}]));
        resume(&mut fixture, vec![Earlier { digest, ..earlier("c1", state.clone()) }]);
        let trace = fixture.take();
        let rest = &trace[BEGINS.len()..];
        assert_eq!(rest.len(), expected.len(), "{state:?}: {rest:?}");
        let mut pairs = rest.iter().zip(expected);
        assert!(pairs.all(|(line, begin)| line.starts_with(begin)), "{state:?}: {rest:?}");
    }
}

#[test]
fn a_closed_tool_is_not_called() {
    let mut fixture = Fixture::new();
    fixture.step.tools.iter_mut().for_each(|tool| tool.gate = Gate::Closed);
    fixture.start("u1", "go");
    fixture.model(done(call("c1", "update_plan", "{}"))).model(done(call("c2", "lookup", "{}")));
    fixture.model(completed(5));
    let trace = fixture.take();
    assert!(!trace.iter().any(|line| line.starts_with("run") || line.starts_with("ask")), "{trace:?}");
    assert_eq!(trace.iter().filter(|line| line.contains("the call was refused")).count(), 2);
}

/// A thread in which calls start when their response is complete.
fn waiting_for_responses() -> Fixture {
    let mut fixture = Fixture::new();
    fixture.thread =
        ThreadMachine::new(ThreadSeed { calls_wait: true, ..ThreadSeed::new(ThreadId::new("t")) });
    fixture.start("u1", "go").take();
    fixture
}

#[test]
fn nothing_runs_before_the_response_is_complete() {
    let mut fixture = waiting_for_responses();
    fixture.model(done(call("c1", "update_plan", "{}"))).model(done(message("m", "and")));
    let trace = fixture.take();
    assert!(!trace.iter().any(|line| line.starts_with("run") || line.contains("responseItem")), "{trace:?}");
    fixture.model(completed(5));
    let trace: Vec<_> = fixture.take().into_iter().filter(|line| !line.contains("okenUsage")).collect();
    assert_eq!(
        trace,
        [
            "record responseItem function_call \"c1\"",
            "record responseItem assistant: and",
            "run c1 update_plan"
        ]
    );
}

#[test]
fn a_response_that_breaks_off_is_dropped_and_its_calls_may_come_again() {
    let mut fixture = waiting_for_responses();
    fixture.model(done(call("c1", "update_plan", "{}")));
    fixture.breaks(model::ModelFailure::stream("lost"));
    fixture.put(Input::Woken);
    let trace = fixture.take();
    assert!(!trace.iter().any(|line| line.starts_with("run") || line.contains("responseItem")), "{trace:?}");
    fixture.model(done(call("c1", "update_plan", "{}"))).model(completed(5));
    assert!(fixture.take().contains(&"run c1 update_plan".to_owned()));
}

#[test]
fn a_suspended_turn_keeps_results_and_waiting_operations() {
    let mut fixture = Fixture::new();
    fixture.start("u1", "go");
    fixture.model(done(call("c1", "update_plan", "{}"))).model(done(call("c2", "lookup", "{}")));
    fixture.model(done(call("c3", "update_plan", "{}"))).model(completed(5));
    fixture.put(Input::ToolFinished { call_id: "c3".into(), outcome: ToolOutcome::text("ran") });
    assert!(!fixture.thread.is_pending(), "one of them is at work");
    propose(&mut fixture);
    assert!(fixture.thread.is_pending());
    fixture.take();
    fixture.put(Input::Suspend { when_pending: false });
    check(
        &mut fixture,
        &[
            "cancel tool c1",
            "await stopped",
            "withdraw c1",
            "withdraw c2",
            "record responseItem output \"c3\": \"ran\"",
            "thread/status/changed idle",
            "turn/suspended",
            "suspended",
        ],
    );
    assert_eq!(fixture.thread.active_turn(), None);
    // Resumed in the same process, it asks again.
    resume(&mut fixture, vec![earlier("c1", EarlierState::Proposed), earlier("c2", EarlierState::Proposed)]);
    let trace = fixture.take();
    assert!(trace.contains(&"run c1 update_plan".to_owned()), "{trace:?}");
    assert!(!trace.iter().any(|line| line.contains("c3")), "{trace:?}");
}

/// The tool proposes a replaced patch again; it is not applied unseen.
#[test]
fn a_replacement_patch_decided_before_a_restart_is_proposed() {
    let mut fixture = cut_off(&[("c1", "update_plan")]);
    let arguments = Some(json!({ "input": "*** Begin Patch" }));
    let decided = EarlierState::Decided(OperationDecision::Replace { command: None, arguments });
    resume(&mut fixture, vec![earlier("c1", decided)]);
    fixture.take();
    let mut proposal = proposal("c1", 0, true);
    let asked = json!({ "threadId": "", "turnId": "", "itemId": "", "reason": null, "grantRoot": null });
    proposal.question = Some(Box::new(Question::FileChange(serde_json::from_value(asked).expect("params"))));
    fixture.put(Input::Proposed { turn_id: TurnId::new("u1"), call_id: "c1".into(), proposal });
    check(&mut fixture, &["decide c1 0 instead the patch *** Begin Patch"]);
}

#[test]
fn a_nested_call_carried_out_before_a_restart_is_not_repeated() {
    let mut fixture = cut_off(&[("c1", "update_plan")]);
    let output = vec![DynamicToolCallOutputContentItem::InputText { text: "it was done".into() }];
    let before = vec![
        earlier("c1-tool-0", EarlierState::Finished { output, success: true }),
        earlier("c1-tool-1", EarlierState::Started { attempt: 1 }),
    ];
    resume(&mut fixture, before);
    // The tool itself had proposed nothing, so it runs again and repeats its calls.
    assert!(fixture.take().contains(&"run c1 update_plan".to_owned()));
    for (id, expected) in
        [("c1-tool-0", Some("it was done")), ("c1-tool-1", Some(UNKNOWN_OUTCOME)), ("c1-tool-2", None)]
    {
        let payload = ToolPayload::Function { arguments: "{}".into() };
        let call = ToolCall { call_id: id.into(), name: "update_plan".into(), namespace: None, payload };
        let began_in = Arc::new(fixture.step.clone());
        let input = Input::NestedCall { turn_id: TurnId::new("u1"), parent: "c1".into(), call, began_in };
        let effects = fixture.on(input).expect("accepted");
        let answer = effects.iter().find_map(|effect| match effect {
            Effect::AnswerNested { output: FunctionCallOutputBody::Text(text), .. } => Some(text.as_str()),
            _ => None,
        });
        assert_eq!(answer, expected, "{id}");
        let runs = effects.iter().any(|effect| matches!(effect, Effect::RunTool { .. }));
        assert_eq!(runs, expected.is_none(), "{id}");
    }
}

#[test]
fn session_approvals_from_before_a_restart_still_hold() {
    let mut fixture = Fixture::new();
    fixture.thread = ThreadMachine::new(ThreadSeed {
        history: vec![user("go"), item(call("c1", "update_plan", "{}"))],
        shows_operations: true,
        agreed: vec!["touch x".to_owned()],
        ..ThreadSeed::new(ThreadId::new("t"))
    });
    resume(&mut fixture, vec![earlier("c1", EarlierState::Proposed)]);
    propose(&mut fixture);
    let trace = fixture.take();
    assert_eq!(trace.last().map(String::as_str), Some("decide c1 0 run agreed=true"), "{trace:?}");
    assert!(!trace.iter().any(|line| line.starts_with("ask")), "{trace:?}");
}
