//! `resume_agent`: opens a closed child again.

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
    id: String,
}

#[derive(Debug, Clone, Copy)]
pub struct ResumeAgent;

impl BuiltinTool for ResumeAgent {
    const NAME: &'static str = "resume_agent";
    const ABOUT: &'static str =
        "Open an agent again that you closed. It knows what it knew, and waits for send_input.";
    type Args = Args;

    fn standing(offer: &Offer) -> Standing {
        agents::standing(offer)
    }

    async fn call(&self, args: Args, cx: &ToolCx) -> Result<ToolOutcome, ToolError> {
        let agents = agents::of(cx)?;
        let mut act = Act::new(CollabAgentTool::ResumeAgent, json!(args), vec![args.id.clone()]);
        act.effects = ToolEffects::Idempotent;
        act.begin(cx).await?;
        let resumed = agents.resume(&args.id).await;
        let states = state(&*agents, &args.id).await;
        let status = json!({ "status": states.get(&args.id) });
        Ok(act.done(cx, resumed.map(|()| status), &states))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::child_agents::AgentStatus;
    use crate::fake_agents::{FakeAgents, called, check_declined};

    #[tokio::test]
    async fn the_model_gets_the_status_of_the_opened_agent() {
        let agents = FakeAgents::standing(AgentStatus::PendingInit);
        let called = called(agents, "resume_agent", json!({"id": "a1"})).await;
        assert_eq!(called.result(), json!({"status": "pending_init"}));
        assert_eq!(called.asked, ["resume a1", "status a1"]);
        let (effects, begun) = called.proposed();
        assert_eq!(effects, ToolEffects::Idempotent);
        assert_eq!((&begun["tool"], &begun["receiverThreadIds"]), (&json!("resumeAgent"), &json!(["a1"])));
        assert_eq!(
            called.item(),
            json!({
                "type": "collabAgentToolCall", "id": "call_1", "tool": "resumeAgent", "status": "completed",
                "senderThreadId": "thread", "receiverThreadIds": ["a1"], "prompt": null,
                "model": null, "reasoningEffort": null,
                "agentsStates": {"a1": {"status": "pendingInit", "message": null}},
            })
        );
    }

    #[tokio::test]
    async fn the_model_gets_the_error() {
        let agents =
            FakeAgents { problem: Some("no such agent"), ..FakeAgents::standing(AgentStatus::NotFound) };
        let called = called(agents, "resume_agent", json!({"id": "x"})).await;
        assert_eq!((called.text.as_str(), called.outcome.success), ("no such agent", false));
        assert_eq!(called.item()["status"], "failed");
    }

    #[tokio::test]
    async fn a_refusal_opens_nothing() {
        check_declined("resume_agent", json!({"id": "a1"})).await;
    }
}
