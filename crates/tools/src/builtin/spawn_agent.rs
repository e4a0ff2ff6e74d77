//! `spawn_agent`: starts a child agent for a part of the work.

use std::collections::BTreeMap;

use engine::ToolOutcome;
use protocol::{CollabAgentTool, ReasoningEffort};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::agents::{self, Act, MessagePart, said, shown_words};
use crate::child_agents::{AgentStatus, SpawnOrder, Spawned};
use crate::schema::function_json;
use crate::{BuiltinTool, Offer, Standing, ToolCx, ToolError};

#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// The task, with everything the agent needs to know. Use either this or items.
    #[serde(default)]
    message: Option<String>,
    /// The task in parts, where it has images, skills or mentions.
    #[serde(default)]
    items: Option<Vec<MessagePart>>,
    /// What kind of agent, from the list above. Left out: default.
    #[serde(default)]
    agent_type: Option<String>,
    /// The agent also gets to know everything said here so far.
    #[serde(default)]
    fork_context: Option<bool>,
    /// Another model than yours. Leave it out unless you were asked for one.
    #[serde(default)]
    model: Option<String>,
    /// Another reasoning effort than yours.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    reasoning_effort: Option<ReasoningEffort>,
}

#[derive(Debug, Clone, Copy)]
pub struct SpawnAgent;

impl BuiltinTool for SpawnAgent {
    const NAME: &'static str = "spawn_agent";
    const ABOUT: &'static str = "Start another agent on a task of its own and go on with yours meanwhile. It works in \
        the same folder and may do no more than you may. Gives its agent_id, by which the other agent tools know it, \
        and a nickname for people.";
    const PROMPT: Option<&'static str> = Some(include_str!("spawn_agent.md"));
    type Args = Args;

    fn standing(offer: &Offer) -> Standing {
        agents::standing(offer)
    }

    fn spec(offer: &Offer) -> Value {
        let mut about = format!("{}\nagent_type is one of:", Self::ABOUT);
        for (name, description) in &offer.roles {
            about.push_str(&format!("\n- {name}: {description}"));
        }
        function_json::<Args>(Self::NAME, &about)
    }

    async fn call(&self, args: Args, cx: &ToolCx) -> Result<ToolOutcome, ToolError> {
        let arguments = json!(args);
        let agents = agents::of(cx)?;
        let input = said(args.message, args.items)?;
        let step = cx.shared_step();
        let order = SpawnOrder {
            turn_id: cx.turn_id().clone(),
            call_id: cx.call_id().to_owned(),
            input,
            role: args.agent_type.filter(|role| !role.trim().is_empty()),
            with_history: args.fork_context.unwrap_or(false),
            model: args.model.filter(|model| !model.trim().is_empty()),
            effort: args.reasoning_effort,
            step,
        };
        agents.check(&order).await.map_err(ToolError::Failed)?;
        let mut act = Act {
            prompt: Some(shown_words(&order.input)),
            model: order.model.clone().or_else(|| Some(order.step.model.slug.clone())),
            // The effort that providers use by default.
            effort: order.effort.or(order.step.effort).or(Some(ReasoningEffort::Medium)),
            effects: agents.spawn_effects(),
            ..Act::new(CollabAgentTool::SpawnAgent, arguments, Vec::new())
        };
        act.begin(cx).await?;
        let spawned = match agents.spawn(order).await {
            Ok(spawned) => spawned,
            Err(problem) => return Ok(act.done(cx, Err(problem), &BTreeMap::new())),
        };
        let Spawned { id, nickname, model, effort, is_away } = spawned;
        act.receivers.push(id.clone());
        (act.model, act.effort) = (Some(model), effort.or(act.effort));
        let state = BTreeMap::from([(id.clone(), AgentStatus::PendingInit)]);
        let outcome = act.done(cx, Ok(json!({ "agent_id": id, "nickname": nickname })), &state);
        Ok(ToolOutcome { goes_on: is_away, ..outcome })
    }
}

#[cfg(test)]
mod tests {
    use protocol::ToolEffects;

    use super::*;
    use crate::fake_agents::{FakeAgents, called, check_declined, check_said};

    #[tokio::test]
    async fn a_child_gets_its_task_and_the_model_its_id() {
        let called = called(FakeAgents::default(), "spawn_agent", json!({"message": "look"})).await;
        assert_eq!(called.result(), json!({"agent_id": "a1", "nickname": "Wren"}));
        assert!(!called.outcome.goes_on);
        let (effects, begun) = called.proposed();
        assert_eq!(effects, ToolEffects::Once);
        assert_eq!(
            begun,
            json!({
                "type": "collabAgentToolCall", "id": "call_1", "tool": "spawnAgent", "status": "inProgress",
                "senderThreadId": "thread", "receiverThreadIds": [], "prompt": "look", "model": "m",
                "reasoningEffort": "medium", "agentsStates": {},
            })
        );
        assert_eq!(
            called.item(),
            json!({
                "type": "collabAgentToolCall", "id": "call_1", "tool": "spawnAgent", "status": "completed",
                "senderThreadId": "thread", "receiverThreadIds": ["a1"], "prompt": "look", "model": "m2",
                "reasoningEffort": "high", "agentsStates": {"a1": {"status": "pendingInit", "message": null}},
            })
        );
        let orders = called.agents.orders();
        let [order] = orders.as_slice() else { panic!("{orders:?}") };
        assert_eq!((order.turn_id.as_str(), order.call_id.as_str()), ("turn", "call_1"));
        assert_eq!(json!(order.input), json!([{"type": "text", "text": "look", "text_elements": []}]));
        assert_eq!(
            (&order.role, &order.model, order.effort, order.with_history),
            (&None, &None, None, false)
        );
        assert_eq!(order.step.cwd, "/w");
    }

    #[tokio::test]
    async fn a_model_can_choose_kind_model_effort_and_memory() {
        let arguments = json!({
            "items": [{"text": "look at"}, {"type": "local_image", "path": "a.png"}], "agent_type": "explorer",
            "fork_context": true, "model": "big", "reasoning_effort": "low",
        });
        let mut agents = FakeAgents::default();
        (agents.spawned.nickname, agents.spawned.effort) = (None, None);
        let called = called(agents, "spawn_agent", arguments.clone()).await;
        assert_eq!(called.result(), json!({"agent_id": "a1", "nickname": null}));
        let (_, begun) = called.proposed();
        assert_eq!((&begun["model"], &begun["reasoningEffort"]), (&json!("big"), &json!("low")));
        assert_eq!(begun["prompt"], "look at\n[image: a.png]");
        assert_eq!(called.proposals[0].arguments["fork_context"], arguments["fork_context"]);
        let item = called.item();
        assert_eq!((&item["model"], &item["reasoningEffort"]), (&json!("m2"), &json!("low")));
        let orders = called.agents.orders();
        let [order] = orders.as_slice() else { panic!("{orders:?}") };
        assert_eq!((order.role.as_deref(), order.model.as_deref()), (Some("explorer"), Some("big")));
        assert_eq!((order.effort, order.with_history), (Some(ReasoningEffort::Low), true));
    }

    #[tokio::test]
    async fn empty_choices_count_as_unset() {
        let arguments = json!({"message": "go", "agent_type": " ", "model": "", "fork_context": null});
        let called = called(FakeAgents::default(), "spawn_agent", arguments).await;
        let orders = called.agents.orders();
        assert_eq!((&orders[0].role, &orders[0].model, orders[0].with_history), (&None, &None, false));
    }

    #[tokio::test]
    async fn a_child_at_the_host_outlives_its_call() {
        let mut agents = FakeAgents { effects: ToolEffects::Idempotent, ..FakeAgents::default() };
        agents.spawned.is_away = true;
        let called = called(agents, "spawn_agent", json!({"message": "go"})).await;
        assert!(called.outcome.goes_on && called.outcome.success);
        assert_eq!(called.proposed().0, ToolEffects::Idempotent);
    }

    #[tokio::test]
    async fn an_impossible_order_is_not_proposed() {
        check_said("spawn_agent", json!({})).await;
        let agents = FakeAgents { objection: Some("unknown agent_type 'x'"), ..FakeAgents::default() };
        let refused = called(agents, "spawn_agent", json!({"message": "go"})).await;
        refused.assert_refused("unknown agent_type 'x'");
        let refused =
            called(FakeAgents::default(), "spawn_agent", json!({"message": "a", "reasoning_effort": "x"}))
                .await;
        assert!(refused.text.starts_with("failed to parse function arguments: "), "{}", refused.text);
        assert!(refused.proposals.is_empty() && refused.asked.is_empty());
    }

    #[tokio::test]
    async fn a_failed_start_is_reported_to_model_and_clients() {
        let mut agents = FakeAgents { problem: Some("there are 6 open agents"), ..FakeAgents::default() };
        agents.spawned.is_away = true;
        let called = called(agents, "spawn_agent", json!({"message": "go"})).await;
        assert_eq!((called.text.as_str(), called.outcome.success), ("there are 6 open agents", false));
        assert!(!called.outcome.goes_on);
        let item = called.item();
        assert_eq!((&item["status"], &item["receiverThreadIds"]), (&json!("failed"), &json!([])));
        assert_eq!((&item["agentsStates"], &item["prompt"]), (&json!({}), &json!("go")));
    }

    #[tokio::test]
    async fn a_refusal_starts_nothing() {
        check_declined("spawn_agent", json!({"message": "go"})).await;
    }

    #[test]
    fn the_roles_of_agents_are_listed() {
        let roles = [("default", "for anything."), ("tester", "to test.")];
        let roles = roles.map(|(name, about)| (name.to_owned(), about.to_owned())).to_vec();
        let spec = SpawnAgent::spec(&Offer { roles, ..Offer::default() });
        let about = spec["description"].as_str().expect("a text");
        assert!(about.ends_with("\nagent_type is one of:\n- default: for anything.\n- tester: to test."));
        let parameters = spec["parameters"]["properties"].as_object().expect("an object");
        let names: Vec<_> = parameters.keys().map(String::as_str).collect();
        assert_eq!(names, ["agent_type", "fork_context", "items", "message", "model", "reasoning_effort"]);
        assert_eq!(spec["parameters"]["required"], Value::Null);
    }
}
