//! `update_plan`: the agent's own list of steps, shown to the user as it changes.

use engine::ToolOutcome;
use protocol::{ModeKind, ServerNotification, TurnPlanStep, TurnPlanStepStatus, TurnPlanUpdatedNotification};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::tool::text;
use crate::{BuiltinTool, ToolCx, ToolError};

// No doc comments on the types: the model would read them as well.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    #[serde(default)]
    explanation: Option<String>,
    /// Every step, in order, also those already done.
    plan: Vec<PlanStep>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PlanStep {
    step: String,
    /// `pending`, `in_progress` or `completed`.
    #[schemars(with = "String")]
    status: StepStatus,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StepStatus {
    Pending,
    InProgress,
    Completed,
}

/// Keeps no state: the plan is in the conversation and with the clients.
#[derive(Debug, Clone, Copy)]
pub struct UpdatePlan;

impl BuiltinTool for UpdatePlan {
    const NAME: &'static str = "update_plan";
    const ABOUT: &'static str = "Show the user your plan for this task, or show how far it has got. Send the \
        whole list of steps each time; it replaces the one before. At most one step is in_progress.";
    const PROMPT: Option<&'static str> = Some(include_str!("update_plan.md"));
    type Args = Args;

    async fn call(&self, args: Args, cx: &ToolCx) -> Result<ToolOutcome, ToolError> {
        // In Plan mode the plan is the subject of the turn, and proposed to the user as an item.
        if cx.step().collaboration_mode.as_ref().is_some_and(|mode| mode.mode == ModeKind::Plan) {
            return Err(ToolError::Refused(
                "update_plan reports progress of work under way, and in Plan mode none is. Propose the plan in \
                 your answer instead."
                    .to_owned(),
            ));
        }
        let notification = TurnPlanUpdatedNotification {
            thread_id: cx.thread_id().clone(),
            turn_id: cx.turn_id().clone(),
            explanation: args.explanation,
            plan: args.plan.into_iter().map(TurnPlanStep::from).collect(),
        };
        cx.notify(ServerNotification::TurnPlanUpdated(notification)).await;
        Ok(text("Plan updated"))
    }
}

impl From<PlanStep> for TurnPlanStep {
    fn from(PlanStep { step, status }: PlanStep) -> Self {
        let status = match status {
            StepStatus::Pending => TurnPlanStepStatus::Pending,
            StepStatus::InProgress => TurnPlanStepStatus::InProgress,
            StepStatus::Completed => TurnPlanStepStatus::Completed,
        };
        Self { step, status }
    }
}

#[cfg(test)]
mod tests {
    use protocol::{CollaborationMode, Settings};
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{call, run_text, step};
    use crate::{Offer, Registry};

    fn in_mode(mode: ModeKind) -> CollaborationMode {
        let settings =
            Settings { model: "m".to_owned(), reasoning_effort: None, developer_instructions: None };
        CollaborationMode { mode, settings }
    }

    #[test]
    fn clients_get_the_plan() {
        let cases = [
            (
                json!({"explanation": "why", "plan": [
                    {"step": "a", "status": "completed"},
                    {"step": "b", "status": "in_progress"},
                    {"step": "c", "status": "pending"},
                ]}),
                json!({"threadId": "thread", "turnId": "turn", "explanation": "why", "plan": [
                    {"step": "a", "status": "completed"},
                    {"step": "b", "status": "inProgress"},
                    {"step": "c", "status": "pending"},
                ]}),
            ),
            (
                json!({"explanation": null, "plan": []}),
                json!({"threadId": "thread", "turnId": "turn", "explanation": null, "plan": []}),
            ),
        ];
        for (arguments, expected) in cases {
            for mode in [None, Some(in_mode(ModeKind::Default))] {
                let step = engine::Step { collaboration_mode: mode, ..step() };
                let (text, told) = run_text(call("update_plan", &arguments.to_string()), step);
                assert_eq!(text, "Plan updated");
                let [ServerNotification::TurnPlanUpdated(plan)] = told.as_slice() else {
                    panic!("exactly one notification is sent, not {told:?}");
                };
                assert_eq!(serde_json::to_value(plan).expect("plain data"), expected);
            }
        }
    }

    #[test]
    fn plan_mode_refuses_it() {
        let step = engine::Step { collaboration_mode: Some(in_mode(ModeKind::Plan)), ..step() };
        let (text, told) = run_text(call("update_plan", r#"{"plan": []}"#), step);
        assert!(text.contains("Plan mode"), "{text}");
        assert!(told.is_empty());
    }

    #[test]
    fn wrong_arguments_are_reported() {
        let cases = [
            (r#"{"plan": [], "extra": 1}"#, "unknown field `extra`"),
            (r#"{"plan": [{"step": "a", "status": "inProgress"}]}"#, "unknown variant `inProgress`"),
            (r#"{"plan": [{"step": "a"}]}"#, "missing field `status`"),
            ("", "EOF while parsing"),
        ];
        for (arguments, expected) in cases {
            let (text, told) = run_text(call("update_plan", arguments), step());
            assert!(text.starts_with("failed to parse function arguments: "), "{text}");
            assert!(text.contains(expected), "{text}");
            assert!(told.is_empty());
        }
    }

    /// Replaces every text, so that only the structure is left.
    fn shape(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                for (key, value) in fields {
                    match value {
                        Value::String(text) if key == "description" => "<text>".clone_into(text),
                        value => shape(value),
                    }
                }
            }
            Value::Array(values) => values.iter_mut().for_each(shape),
            _ => {}
        }
    }

    #[test]
    fn the_spec_has_the_shape_clients_of_the_protocol_record() {
        let specs = Registry::builtin().specs(&Offer::default());
        let spec = specs.iter().find(|spec| spec.name == "update_plan").expect("always offered");
        let mut json = spec.json.as_deref().expect("advertised").clone();
        shape(&mut json);
        let expected = json!({
            "type": "function",
            "name": "update_plan",
            "description": "<text>",
            "strict": false,
            "parameters": {
                "type": "object",
                "properties": {
                    "explanation": {"type": "string"},
                    "plan": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {
                                "status": {"type": "string", "description": "<text>"},
                                "step": {"type": "string"},
                            },
                            "required": ["step", "status"],
                            "additionalProperties": false,
                        },
                        "description": "<text>",
                    },
                },
                "required": ["plan"],
                "additionalProperties": false,
            },
        });
        assert_eq!(json, expected);
    }
}
