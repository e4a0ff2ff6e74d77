//! Calls that a running tool makes, and searches in the provider's own form.

use std::sync::Arc;

use oarlock_engine::{DirectCalls, Effect, Input, Step, StepEnvironment, ToolCall, ToolOutcome, ToolPayload};
use protocol::{AskForApproval, FunctionCallOutputBody, TurnId};
use serde_json::json;

use crate::support::{Fixture, call, completed, done, message, proposal};

/// A turn in which one tool runs.
fn running() -> Fixture {
    let mut fixture = Fixture::new();
    fixture.start("u1", "go").model(done(call("c1", "update_plan", "{}"))).model(completed(10)).take();
    fixture
}

fn nested(fixture: &mut Fixture, parent: &str, id: &str, name: &str) -> Vec<Effect> {
    let payload = ToolPayload::Function { arguments: "{}".into() };
    let call = ToolCall { call_id: id.into(), name: name.into(), namespace: None, payload };
    let began_in = Arc::new(fixture.step.clone());
    nested_from(fixture, parent, call, began_in)
}

fn nested_from(fixture: &mut Fixture, parent: &str, call: ToolCall, began_in: Arc<Step>) -> Vec<Effect> {
    let input = Input::NestedCall { turn_id: TurnId::new("u1"), parent: parent.into(), call, began_in };
    fixture.on(input).expect("accepted")
}

fn answers(effects: &[Effect]) -> Vec<(String, String)> {
    let answer = |effect: &Effect| match effect {
        Effect::AnswerNested { call_id, output: FunctionCallOutputBody::Text(text) } => {
            Some((call_id.clone(), text.clone()))
        }
        _ => None,
    };
    effects.iter().filter_map(answer).collect()
}

fn finish(fixture: &mut Fixture, id: &str) -> Vec<Effect> {
    let outcome = ToolOutcome::text(format!("{id} ran"));
    fixture.on(Input::ToolFinished { call_id: id.into(), outcome }).expect("accepted")
}

fn starts(effects: &[Effect], id: &str) -> bool {
    effects.iter().any(|effect| matches!(effect, Effect::RunTool { call, .. } if call.call_id == id))
}

#[test]
fn the_tool_that_made_a_call_gets_its_output_and_the_model_does_not() {
    let mut fixture = running();
    let effects = nested(&mut fixture, "c1", "c1-tool-0", "update_plan");
    assert!(starts(&effects, "c1-tool-0") && answers(&effects).is_empty());
    let effects = finish(&mut fixture, "c1-tool-0");
    assert_eq!(answers(&effects), [("c1-tool-0".to_owned(), "c1-tool-0 ran".to_owned())]);
    finish(&mut fixture, "c1");
    fixture.captured();
    let prompt = fixture.last_request.clone().expect("a request").to_string();
    assert!(prompt.contains("c1 ran") && !prompt.contains("c1-tool-0"), "{prompt}");
    fixture.model(done(message("m1", "ok"))).model(completed(10));
    fixture.assert_all_closed();
}

#[test]
fn a_call_runs_in_the_environments_that_its_tool_began_in_under_the_rules_of_this_turn() {
    let mut fixture = running();
    let elsewhere = Step {
        cwd: "/a".into(),
        environments: Arc::new([StepEnvironment::here("/a")]),
        approval_policy: AskForApproval::OnRequest,
        tools: Vec::new(),
        ..fixture.step.clone()
    };
    let payload = ToolPayload::Function { arguments: "{}".into() };
    let call = ToolCall { call_id: "c1-tool-0".into(), name: "update_plan".into(), namespace: None, payload };
    let effects = nested_from(&mut fixture, "c1", call, Arc::new(elsewhere.clone()));
    let ran = effects.iter().find_map(|effect| match effect {
        Effect::RunTool { step, .. } => Some(step),
        _ => None,
    });
    let step = ran.expect("it runs");
    assert_eq!((&step.cwd, &step.environments), (&elsewhere.cwd, &elsewhere.environments));
    assert_ne!(step.approval_policy, elsewhere.approval_policy);
    assert_eq!(step.tools, fixture.step.tools);
}

#[test]
fn its_effects_are_decided_and_recorded_like_those_of_any_call() {
    let mut fixture = running();
    nested(&mut fixture, "c1", "c1-tool-0", "update_plan");
    fixture.take();
    fixture.put(Input::Proposed {
        turn_id: TurnId::new("u1"),
        call_id: "c1-tool-0".into(),
        proposal: proposal("c1-tool-0", 0, false),
    });
    let trace = fixture.take();
    let at = |wanted: &str| trace.iter().position(|line| line.starts_with(wanted)).expect(wanted);
    assert!(at("record operation proposed") < at("record operation started"), "{trace:?}");
    assert!(at("record operation started") < at("decide c1-tool-0 0"), "{trace:?}");
    finish(&mut fixture, "c1-tool-0");
    assert!(fixture.take().iter().any(|line| line.starts_with("record operation")), "its end is recorded");
    finish(&mut fixture, "c1");
    fixture.captured().model(done(message("m1", "ok"))).model(completed(10));
    fixture.assert_all_closed();
}

#[test]
fn a_call_of_a_clients_tool_is_asked_of_the_client() {
    let mut fixture = running();
    let effects = nested(&mut fixture, "c1", "c1-tool-0", "lookup");
    assert!(
        effects
            .iter()
            .any(|effect| matches!(effect, Effect::AskClient { call_id, .. } if call_id == "c1-tool-0"))
    );
    let answer = serde_json::from_value(
        json!({"contentItems": [{"type": "inputText", "text": "7"}], "success": true}),
    );
    let answer = Ok(answer.expect("an answer"));
    let effects =
        fixture.on(Input::DynamicToolAnswered { call_id: "c1-tool-0".into(), answer }).expect("accepted");
    assert_eq!(answers(&effects), [("c1-tool-0".to_owned(), "7".to_owned())]);
}

#[test]
fn impossible_calls_are_answered_at_once() {
    let mut fixture = running();
    let effects = nested(&mut fixture, "c1", "c1-tool-0", "nope");
    assert_eq!(answers(&effects)[0].1, "unsupported call: nope");
    let effects = nested(&mut fixture, "gone", "gone-tool-0", "update_plan");
    assert_eq!(answers(&effects)[0].1, "the call it was made from is over");
    // An id that the turn already uses is refused.
    let effects = nested(&mut fixture, "c1", "c1", "update_plan");
    assert_eq!(answers(&effects)[0].1, "the call it was made from is over");
    for number in 0..16 {
        assert!(starts(
            &nested(&mut fixture, "c1", &format!("n{number}"), "update_plan"),
            &format!("n{number}")
        ));
    }
    let effects = nested(&mut fixture, "c1", "n16", "update_plan");
    assert!(answers(&effects)[0].1.starts_with("too many calls at once"));
}

#[test]
fn a_tool_that_ends_and_a_turn_that_is_stopped_end_its_calls() {
    for stops_turn in [false, true] {
        let mut fixture = running();
        nested(&mut fixture, "c1", "c1-tool-0", "update_plan");
        let effects = match stops_turn {
            true => fixture.on(Input::Interrupt).expect("accepted"),
            false => finish(&mut fixture, "c1"),
        };
        let is_cancel =
            |effect: &Effect| matches!(effect, Effect::CancelTool { call_id } if call_id == "c1-tool-0");
        assert!(effects.iter().any(is_cancel), "{effects:?}");
        assert!(answers(&finish(&mut fixture, "c1-tool-0")).is_empty());
        if !stops_turn {
            fixture.captured().model(done(message("m1", "ok"))).model(completed(10));
        }
        fixture.assert_all_closed();
    }
}

#[test]
fn with_scripts_alone_a_direct_call_is_refused() {
    for hides_others in [false, true] {
        let mut fixture = Fixture::new();
        let direct = DirectCalls { names: &["update_plan"], hides_others, refusal: "use a script" };
        fixture.step.direct = Some(direct);
        fixture.start("u1", "go");
        let tools = fixture.last_request.clone().expect("a request")["tools"].as_array().map(Vec::len);
        assert_eq!(tools, Some(if hides_others { 1 } else { 2 }));
        fixture.model(done(call("c1", "lookup", "{}"))).model(done(call("c2", "update_plan", "{}")));
        fixture.model(completed(10));
        // From a script it can be called.
        let effects = nested(&mut fixture, "c2", "c2-tool-0", "lookup");
        assert!(effects.iter().any(|effect| matches!(effect, Effect::AskClient { .. })));
        finish(&mut fixture, "c2");
        fixture.captured();
        let prompt = fixture.last_request.clone().expect("a request").to_string();
        assert!(prompt.contains("use a script"), "{prompt}");
    }
}

#[test]
fn a_search_of_the_provider_is_answered_in_its_own_form() {
    let mut fixture = Fixture::new();
    let mut search = fixture.step.tools[0].clone();
    search.name = "tool_search".into();
    fixture.step.tools.push(search);
    let item = json!({"type": "tool_search_call", "call_id": "s1", "execution": "client",
                      "arguments": {"query": "customers"}});
    fixture.start("u1", "go").model(done(item)).model(completed(10));
    let tools = json!([{"type": "function", "name": "merge", "defer_loading": true}]);
    let outcome = ToolOutcome::text(tools.to_string());
    fixture.put(Input::ToolFinished { call_id: "s1".into(), outcome }).captured();
    let request = fixture.last_request.clone().expect("a request");
    let output = request["input"].as_array().expect("input").last().expect("one").clone();
    let expected = json!({"type": "tool_search_output", "call_id": "s1", "status": "completed",
                          "execution": "client", "tools": tools});
    assert_eq!(output, expected);
}

#[test]
fn tools_found_by_a_provider_search_can_be_called_and_are_not_listed() {
    for searches in [true, false] {
        let mut step = crate::support::step();
        let mut tool = step.tools[0].clone();
        tool.name = "merge".into();
        step.deferred = vec![tool.clone()];
        if searches {
            tool.name = "tool_search".into();
            step.tools.push(tool);
        }
        let before = step.tools_json().len();
        step.reveal(&["merge".to_owned()]);
        assert!(step.tool("merge").is_some() && step.deferred.is_empty());
        assert_eq!(step.tools_json().len(), if searches { before } else { before + 1 });
    }
}
