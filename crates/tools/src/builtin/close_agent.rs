//! `close_agent`: closes a child that is no longer needed.

use engine::ToolOutcome;
use protocol::{CollabAgentTool, ToolEffects};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::agents::{self, Act, state};
use crate::{BuiltinTool, Offer, Standing, ToolCx, ToolError};

#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// The agent_id that spawn_agent gave.
    target: String,
}

#[derive(Debug, Clone, Copy)]
pub struct CloseAgent;

impl BuiltinTool for CloseAgent {
    const NAME: &'static str = "close_agent";
    const ABOUT: &'static str = "Close an agent that you no longer need, with every agent it started. What it does is \
        stopped. Gives the status it had.";
    type Args = Args;

    fn standing(offer: &Offer) -> Standing {
        agents::standing(offer)
    }

    async fn call(&self, args: Args, cx: &ToolCx) -> Result<ToolOutcome, ToolError> {
        let agents = agents::of(cx)?;
        let mut act = Act::new(CollabAgentTool::CloseAgent, json!(args), vec![args.target.clone()]);
        act.effects = ToolEffects::Idempotent;
        act.begin(cx).await?;
        let before = state(&*agents, &args.target).await;
        let closed = agents.close(&args.target).await;
        let previous = json!({ "previous_status": before.get(&args.target) });
        Ok(act.done(cx, closed.map(|()| previous), &before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::child_agents::AgentStatus;
    use crate::fake_agents::{FakeAgents, called, check_declined};

    #[tokio::test]
    async fn the_model_gets_the_previous_status() {
        let agents = FakeAgents::standing(AgentStatus::Completed(None));
        let called = called(agents, "close_agent", json!({"target": "a1"})).await;
        assert_eq!(called.result(), json!({"previous_status": {"completed": null}}));
        assert_eq!(called.asked, ["status a1", "close a1"]);
        let (effects, begun) = called.proposed();
        assert_eq!(effects, ToolEffects::Idempotent);
        assert_eq!((&begun["tool"], &begun["receiverThreadIds"]), (&json!("closeAgent"), &json!(["a1"])));
        assert_eq!(
            called.item(),
            json!({
                "type": "collabAgentToolCall", "id": "call_1", "tool": "closeAgent", "status": "completed",
                "senderThreadId": "thread", "receiverThreadIds": ["a1"], "prompt": null,
                "model": null, "reasoningEffort": null,
                "agentsStates": {"a1": {"status": "completed", "message": null}},
            })
        );
    }

    #[tokio::test]
    async fn a_failed_agent_can_be_closed() {
        let agents = FakeAgents::standing(AgentStatus::Errored("bad".to_owned()));
        let called = called(agents, "close_agent", json!({"target": "a1"})).await;
        assert_eq!(called.result(), json!({"previous_status": {"errored": "bad"}}));
        assert_eq!(called.asked.last().map(String::as_str), Some("close a1"));
        assert_eq!(called.item()["agentsStates"], json!({"a1": {"status": "errored", "message": "bad"}}));
    }

    #[tokio::test]
    async fn an_unknown_agent_cannot_be_closed() {
        let agents =
            FakeAgents { problem: Some("no such agent"), ..FakeAgents::standing(AgentStatus::NotFound) };
        let called = called(agents, "close_agent", json!({"target": "x"})).await;
        assert_eq!((called.text.as_str(), called.outcome.success), ("no such agent", false));
        assert_eq!(called.item()["status"], "failed");
    }

    #[tokio::test]
    async fn a_refusal_closes_nothing() {
        check_declined("close_agent", json!({"target": "a1"})).await;
    }
}
