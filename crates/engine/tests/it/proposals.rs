//! Proposals of tools: shown, decided, recorded, and only then carried out.

use std::sync::Arc;

use oarlock_engine::{Effect, Input, Question, Reply, ToolOutcome};
use protocol::{
    AskForApproval, CommandExecutionApprovalDecision as Decision, DynamicToolCallOutputContentItem,
    GrantedPermissionProfile, PermissionGrantScope, PermissionsRequestApprovalResponse, ServerNotification,
    TurnId,
};
use serde_json::{from_value, json};

use crate::support::{Fixture, call, completed, done, message, proposal};

#[track_caller]
fn check(fixture: &mut Fixture, expected: &[&str]) {
    assert_eq!(fixture.take(), expected);
}

fn decided(decision: Decision) -> Result<Reply, String> {
    Ok(Reply::Command(decision.into()))
}

/// A turn with one running call.
fn called(ids: &[&str]) -> Fixture {
    let mut fixture = Fixture::new();
    fixture.start("u1", "go");
    for id in ids {
        fixture.model(done(call(id, "update_plan", "{}")));
    }
    fixture.model(completed(10)).take();
    fixture
}

fn propose(fixture: &mut Fixture, call_id: &str, number: u32, asks: bool) {
    fixture.put(Input::Proposed {
        turn_id: TurnId::new("u1"),
        call_id: call_id.into(),
        proposal: proposal(call_id, number, asks),
    });
}

fn finish(fixture: &mut Fixture, call_id: &str) {
    fixture.put(Input::ToolFinished { call_id: call_id.into(), outcome: ToolOutcome::text("ran") });
}

const BEGINS: &[&str] = &["record operation started", "record threadItem command InProgress"];

#[test]
fn a_command_that_the_policy_allows_is_recorded_before_it_runs() {
    let mut fixture = called(&["c1"]);
    propose(&mut fixture, "c1", 0, false);
    check(
        &mut fixture,
        &[
            "record operation proposed",
            BEGINS[0],
            BEGINS[1],
            "item/started command InProgress",
            "decide c1 0 run agreed=false",
        ],
    );
    finish(&mut fixture, "c1");
    check(
        &mut fixture,
        &[
            "record operation finished",
            "record threadItem command Completed",
            "item/completed command Completed",
            "record responseItem output \"c1\": \"ran\"",
            "capture",
        ],
    );
}

/// A question of an MCP server during a call.
fn elicit(fixture: &mut Fixture, number: u32) {
    let asked = json!({"threadId": "t", "turnId": "u1", "serverName": "s", "mode": "form", "_meta": null,
        "message": "sure?", "requestedSchema": {"type": "object", "properties": {}}});
    let mut asking = proposal("c1", number, false);
    asking.item = None;
    asking.question = Some(Box::new(Question::Elicitation(from_value(asked).expect("a question"))));
    fixture.put(Input::Proposed { turn_id: TurnId::new("u1"), call_id: "c1".into(), proposal: asking });
}

#[test]
fn a_question_beside_a_call_is_no_operation_and_the_call_goes_on() {
    let mut fixture = called(&["c1"]);
    propose(&mut fixture, "c1", 0, false);
    fixture.take();
    elicit(&mut fixture, 1000);
    check(&mut fixture, &["thread/status/changed active", "ask c1 elicitation"]);
    elicit(&mut fixture, 1001);
    check(&mut fixture, &["decide c1 1001 declined"]);
    let answer = from_value(json!({"action": "accept", "content": null, "_meta": null})).expect("an answer");
    let reply = Box::new(Ok(Reply::Elicitation(answer)));
    fixture.put(Input::Answered { call_id: "c1".into(), reply });
    let told = fixture.take();
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!(told[0], "thread/status/changed active");
    assert!(told[1].starts_with("decide c1 1000 "), "{told:?}");
    finish(&mut fixture, "c1");
    assert!(fixture.take().contains(&"record operation finished".to_owned()));
}

#[test]
fn a_question_beside_a_call_ends_with_it() {
    for interrupts in [false, true] {
        let mut fixture = called(&["c1"]);
        propose(&mut fixture, "c1", 0, false);
        elicit(&mut fixture, 1000);
        fixture.take();
        match interrupts {
            true => drop(fixture.put(Input::Interrupt)),
            false => finish(&mut fixture, "c1"),
        }
        let told = fixture.take();
        assert!(told.iter().any(|line| line.starts_with("withdraw")), "{told:?}");
    }
}

#[test]
fn a_client_sees_the_command_before_it_is_asked() {
    let mut fixture = called(&["c1"]);
    propose(&mut fixture, "c1", 0, true);
    check(
        &mut fixture,
        &[
            "record operation proposed",
            "item/started command InProgress",
            "thread/status/changed active",
            "ask c1 command touch x",
        ],
    );
    fixture.answer("c1", decided(Decision::Accept));
    check(
        &mut fixture,
        &[
            "record operation decided",
            "thread/status/changed active",
            BEGINS[0],
            BEGINS[1],
            "decide c1 0 run agreed=true",
        ],
    );
    // Only the first answer counts.
    fixture.answer("c1", decided(Decision::Cancel));
    check(&mut fixture, &[]);
}

#[test]
fn another_command_is_proposed_in_its_place() {
    let mut fixture = called(&["c1"]);
    propose(&mut fixture, "c1", 0, true);
    fixture.take();
    fixture.answer("c1", decided(Decision::AcceptWithCommandOverride { command: vec!["ls".into()] }));
    check(
        &mut fixture,
        &["record operation decided", "thread/status/changed active", "decide c1 0 instead ls"],
    );
    propose(&mut fixture, "c1", 1, false);
    check(&mut fixture, &["record operation proposed", BEGINS[0], BEGINS[1], "decide c1 1 run agreed=false"]);
}

#[test]
fn a_response_replaces_the_run() {
    let mut fixture = called(&["c1"]);
    propose(&mut fixture, "c1", 0, true);
    fixture.take();
    let content_items = vec![DynamicToolCallOutputContentItem::InputText { text: "done by hand".into() }];
    fixture.answer("c1", decided(Decision::Respond { content_items, success: true }));
    check(
        &mut fixture,
        &[
            "record operation decided",
            "record threadItem command Completed",
            "item/completed command Completed",
            "thread/status/changed active",
            "cancel tool c1",
            "record responseItem output \"c1\": \"done by hand\"",
            "capture",
        ],
    );
}

#[test]
fn a_rejection_ends_the_item_once_and_the_turn_continues() {
    for (reply, status) in [
        (decided(Decision::Decline), "Declined"),
        (decided(Decision::AcceptWithCommandOverride { command: vec![] }), "Declined"),
        (Err("refused".to_owned()), "Failed"),
        (Ok(Reply::Permissions(nothing())), "Declined"),
    ] {
        let mut fixture = called(&["c1"]);
        propose(&mut fixture, "c1", 0, true);
        fixture.take();
        fixture.answer("c1", reply);
        check(
            &mut fixture,
            &[
                "record operation decided",
                &format!("record threadItem command {status}"),
                &format!("item/completed command {status}"),
                "thread/status/changed active",
                "decide c1 0 declined",
            ],
        );
        finish(&mut fixture, "c1");
        check(&mut fixture, &["record responseItem output \"c1\": \"ran\"", "capture"]);
    }
}

#[test]
fn cancel_ends_the_turn() {
    let mut fixture = called(&["c1"]);
    propose(&mut fixture, "c1", 0, true);
    fixture.take();
    fixture.answer("c1", decided(Decision::Cancel));
    let trace = fixture.take();
    assert!(trace.contains(&"item/completed command Declined".to_owned()), "{trace:?}");
    assert!(trace.contains(&"turn/completed interrupted".to_owned()), "{trace:?}");
    assert!(!trace.iter().any(|line| line.starts_with("decide")), "{trace:?}");
    fixture.assert_all_closed();
}

#[test]
fn an_interrupt_withdraws_the_question_and_nothing_runs() {
    let mut fixture = called(&["c1"]);
    propose(&mut fixture, "c1", 0, true);
    fixture.take();
    fixture.put(Input::Interrupt);
    check(
        &mut fixture,
        &[
            "cancel tool c1",
            "await stopped",
            "record operation withdrawn",
            "withdraw c1",
            "record threadItem command Declined",
            "item/completed command Declined",
            "record responseItem output \"c1\": \"aborted by user after 0.1s\"",
            "record responseItem user: <turn_aborted>",
            "record turnEnded Interrupted",
            "thread/status/changed idle",
            "turn/completed interrupted",
            "finish Interrupted",
        ],
    );
    fixture.answer("c1", decided(Decision::Accept));
    check(&mut fixture, &[]);
}

#[test]
fn an_approval_for_the_session_is_not_requested_again() {
    let mut fixture = called(&["c1", "c2"]);
    propose(&mut fixture, "c1", 0, true);
    fixture.answer("c1", decided(Decision::AcceptForSession)).take();
    propose(&mut fixture, "c2", 0, true);
    let trace = fixture.take();
    assert_eq!(trace.last().map(String::as_str), Some("decide c2 0 run agreed=true"));
    assert!(!trace.iter().any(|line| line.starts_with("ask")), "{trace:?}");
}

#[test]
fn the_model_is_notified_of_a_saved_prefix() {
    let mut fixture = called(&["c1"]);
    propose(&mut fixture, "c1", 0, true);
    fixture.take();
    let execpolicy_amendment = vec!["touch".to_owned(), "a b".to_owned()];
    fixture.answer("c1", decided(Decision::AcceptWithExecpolicyAmendment { execpolicy_amendment }));
    let trace = fixture.take();
    assert!(
        trace.contains(&"record responseItem developer: Approved command prefix saved:".to_owned()),
        "{trace:?}"
    );
    // A crash at any point leaves either a decision that is carried out again, or the saved rule.
    let at = |wanted: &str| trace.iter().position(|line| line == wanted).expect("it happens");
    let (decided, saved) = (at("record operation decided"), at("save rule touch a b"));
    assert!(decided < saved && saved < at("record operation started"), "{trace:?}");
}

/// A client cannot make up a rule: the answer counts as a single approval.
#[test]
fn a_prefix_that_was_not_offered_is_not_saved() {
    let others: [&[&str]; 6] =
        [&["touch"], &["touch", "a b", "c"], &["touch", "a", "b"], &["bash"], &[""], &[]];
    for prefix in others {
        let mut fixture = called(&["c1", "c2"]);
        propose(&mut fixture, "c1", 0, true);
        fixture.take();
        let execpolicy_amendment = prefix.iter().map(|word| (*word).to_owned()).collect();
        fixture.answer("c1", decided(Decision::AcceptWithExecpolicyAmendment { execpolicy_amendment }));
        let trace = fixture.take();
        assert!(
            trace.iter().any(|line| line.contains("decide c1 0 run agreed=true")),
            "{prefix:?}: {trace:?}"
        );
        let is_saved = |line: &String| line.contains("prefix saved") || line.starts_with("save rule");
        assert!(!trace.iter().any(is_saved), "{prefix:?}: {trace:?}");
        propose(&mut fixture, "c2", 0, true);
        assert!(fixture.take().iter().any(|line| line.starts_with("ask")), "{prefix:?}: a yes for once");
    }
}

#[test]
fn a_saved_prefix_is_not_sent_again_with_the_list() {
    let mut fixture = Fixture::new();
    fixture.step.approval_policy = AskForApproval::OnRequest;
    fixture.start("u1", "hi");
    fixture.model(done(call("c1", "update_plan", "{}"))).model(completed(5));
    propose(&mut fixture, "c1", 0, true);
    let execpolicy_amendment = vec!["touch".to_owned(), "a b".to_owned()];
    fixture.answer("c1", decided(Decision::AcceptWithExecpolicyAmendment { execpolicy_amendment }));
    fixture.put(Input::ToolFinished { call_id: "c1".into(), outcome: ToolOutcome::text("ok") });
    fixture.take();
    fixture.step.approved_prefixes = Arc::new([vec![vec!["touch".to_owned()], vec!["a b".to_owned()]]]);
    fixture.captured();
    let told = fixture.prompt();
    let count = |words: &str| told.iter().filter(|line| line.contains(words)).count();
    assert_eq!((count("Approved command prefix saved:"), count("<permissions instructions>")), (1, 1));
}

#[test]
fn a_retry_is_decided_again_under_the_same_item() {
    let mut fixture = called(&["c1"]);
    propose(&mut fixture, "c1", 0, false);
    fixture.take();
    propose(&mut fixture, "c1", 1, true);
    check(
        &mut fixture,
        &[
            "record operation finished",
            "record operation proposed",
            "thread/status/changed active",
            "ask c1 command touch x",
        ],
    );
    fixture.answer("c1", decided(Decision::Accept));
    finish(&mut fixture, "c1");
    fixture.put(Input::Interrupt);
    fixture.assert_all_closed();
}

#[test]
fn grants_apply_to_later_calls_as_far_as_requested() {
    let mut fixture = called(&["c1"]);
    let mut asks = proposal("c1", 0, false);
    let question = json!({
        "threadId": "", "turnId": "", "itemId": "", "reason": null,
        "permissions": { "network": null, "fileSystem": { "read": null, "write": ["/w"] } },
    });
    asks.item = None;
    asks.question = Some(Box::new(oarlock_engine::Question::Permissions(
        serde_json::from_value(question).expect("fits"),
    )));
    fixture.put(Input::Proposed { turn_id: TurnId::new("u1"), call_id: "c1".into(), proposal: asks });
    let given =
        json!({ "network": { "enabled": true }, "fileSystem": { "read": null, "write": ["/w", "/etc"] } });
    let permissions: GrantedPermissionProfile = serde_json::from_value(given).expect("fits");
    let scope = PermissionGrantScope::Session;
    let reply = PermissionsRequestApprovalResponse { permissions, scope, origin: None };
    fixture.answer("c1", Ok(Reply::Permissions(reply)));
    finish(&mut fixture, "c1");
    fixture.captured();
    let attempt = fixture.attempt;
    let event = Ok(done(call("c2", "update_plan", "{}")));
    let effects = fixture.on(Input::Model { attempt, event }).expect("accepted");
    let grants = effects.iter().find_map(|effect| match effect {
        oarlock_engine::Effect::RunTool { grants, .. } => Some(json!(grants)),
        _ => None,
    });
    assert_eq!(grants, Some(json!({ "fileSystem": { "read": null, "write": ["/w"] } })));
}

#[test]
fn a_call_that_must_run_alone_waits_and_delays_later_calls() {
    let mut fixture = Fixture::new();
    fixture.step.tools[1].kind = oarlock_engine::ToolKind::Builtin;
    fixture.step.tools[1].parallel = false;
    fixture.start("u1", "go").take();
    for (id, tool) in [("c1", "update_plan"), ("c2", "update_plan"), ("c3", "lookup"), ("c4", "update_plan")]
    {
        fixture.model(done(call(id, tool, "{}")));
    }
    let runs = |fixture: &mut Fixture| -> Vec<String> {
        fixture.take().into_iter().filter(|line| line.starts_with("run")).collect()
    };
    assert_eq!(runs(&mut fixture), ["run c1 update_plan", "run c2 update_plan"]);
    finish(&mut fixture, "c1");
    assert!(runs(&mut fixture).is_empty());
    finish(&mut fixture, "c2");
    assert_eq!(runs(&mut fixture), ["run c3 lookup"]);
    finish(&mut fixture, "c3");
    assert_eq!(runs(&mut fixture), ["run c4 update_plan"]);
}

#[test]
fn a_thousand_calls_run_a_few_at_a_time() {
    let mut fixture = Fixture::new();
    fixture.start("u1", "go").take();
    for id in 0..1_000 {
        fixture.model(done(call(&format!("c{id}"), "update_plan", "{}")));
    }
    fixture.model(completed(10));
    let mut started = fixture.take().iter().filter(|line| line.starts_with("run")).count();
    assert_eq!(started, 16);
    for id in 0..1_000 {
        finish(&mut fixture, &format!("c{id}"));
        started += fixture.take().iter().filter(|line| line.starts_with("run")).count();
        assert!(started <= id + 17);
    }
    assert_eq!(started, 1_000);
}

#[test]
fn a_user_command_is_a_turn_when_none_runs() {
    let mut fixture = Fixture::new();
    let step = Arc::new(fixture.step.clone());
    let turn_id = TurnId::new("u1");
    fixture.put(Input::UserShell { turn_id, call_id: "s".into(), command: "ls".into(), step });
    check(
        &mut fixture,
        &["record turnStarted", "thread/status/changed active", "turn/started", "run s user_shell"],
    );
    finish(&mut fixture, "s");
    check(
        &mut fixture,
        &[
            "record responseItem user: <user_shell_command>",
            "record turnEnded Completed",
            "thread/status/changed idle",
            "turn/completed completed",
            "finish Completed",
        ],
    );
}

#[test]
fn a_user_command_beside_the_model_keeps_the_turn_open() {
    let mut fixture = Fixture::new();
    fixture.start("u1", "go");
    let step = Arc::new(fixture.step.clone());
    let turn_id = TurnId::new("u2");
    fixture.put(Input::UserShell { turn_id, call_id: "s".into(), command: "ls".into(), step });
    fixture.model(done(message("m", "hello"))).model(completed(10)).take();
    finish(&mut fixture, "s");
    let trace = fixture.take();
    assert_eq!(trace.first().map(String::as_str), Some("record responseItem user: <user_shell_command>"));
    assert!(trace.contains(&"turn/completed completed".to_owned()), "{trace:?}");
}

#[test]
fn a_user_command_that_ends_while_the_model_works_causes_a_request() {
    let mut fixture = Fixture::new();
    fixture.start("u1", "go");
    let step = Arc::new(fixture.step.clone());
    let turn_id = TurnId::new("u2");
    fixture.put(Input::UserShell { turn_id, call_id: "s".into(), command: "ls".into(), step }).take();
    finish(&mut fixture, "s");
    check(&mut fixture, &[]);
    fixture.model(done(message("m", "hello"))).model(completed(10)).captured();
    let prompt = fixture.prompt();
    assert!(prompt.last().is_some_and(|last| last.starts_with("user: <user_shell_command>")), "{prompt:?}");
    fixture.model(done(message("m2", "seen"))).model(completed(10));
    assert!(fixture.take().contains(&"turn/completed completed".to_owned()));
}

#[test]
fn an_interrupted_user_command_is_reported_to_clients_and_model() {
    let mut fixture = Fixture::new();
    let step = Arc::new(fixture.step.clone());
    let turn_id = TurnId::new("u1");
    fixture.put(Input::UserShell { turn_id, call_id: "s".into(), command: "ls".into(), step });
    propose(&mut fixture, "s", 0, false);
    fixture.take();
    let effects = fixture.on(Input::Interrupt).expect("taken");
    let ended = effects.iter().find_map(|effect| match effect {
        Effect::Emit(told) if let ServerNotification::ItemCompleted(ended) = &**told => Some(&ended.item),
        _ => None,
    });
    let ended = serde_json::to_value(ended.expect("an item that ended")).expect("plain data");
    assert_eq!((&ended["status"], &ended["exitCode"]), (&"failed".into(), &(-1).into()), "{ended}");
    assert_eq!(ended["aggregatedOutput"], "command aborted by user");
    assert!(ended["durationMs"].is_i64());
    let history: Vec<_> = fixture.thread.history().iter().map(|item| format!("{item:?}")).collect();
    let [.., shell, aborted] = &history[..] else { panic!("{history:?}") };
    assert!(shell.contains("<user_shell_command>") && shell.contains("Exit code: -1"), "{shell}");
    assert!(aborted.contains("<turn_aborted>"), "{aborted}");
}

#[test]
fn a_late_proposal_is_refused_and_leaves_no_item_open() {
    let mut fixture = called(&["long"]);
    propose(&mut fixture, "long", 0, false);
    fixture.put(Input::Interrupt).take();
    propose(&mut fixture, "long", 1, true);
    check(
        &mut fixture,
        &["record threadItem command Failed", "item/completed command Failed", "decide long 1 declined"],
    );
    propose(&mut fixture, "other", 0, true);
    check(&mut fixture, &["decide other 0 declined"]);
}

fn nothing() -> PermissionsRequestApprovalResponse {
    PermissionsRequestApprovalResponse {
        permissions: GrantedPermissionProfile { network: None, file_system: None },
        scope: PermissionGrantScope::Turn,
        origin: None,
    }
}
