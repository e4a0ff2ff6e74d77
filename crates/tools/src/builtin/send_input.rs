//! `send_input`: sends a child more input.

use engine::ToolOutcome;
use protocol::CollabAgentTool;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::agents::{self, Act, MessagePart, said, shown_words, state};
use crate::{BuiltinTool, Offer, Standing, ToolCx, ToolError};

#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// The agent_id that spawn_agent gave.
    target: String,
    /// What to tell it. Use either this or items.
    #[serde(default)]
    message: Option<String>,
    /// The same in parts, where it has images, skills or mentions.
    #[serde(default)]
    items: Option<Vec<MessagePart>>,
    /// Stop what it does first. Otherwise it reads this when it can, and goes on.
    #[serde(default)]
    interrupt: Option<bool>,
}

#[derive(Debug, Clone, Copy)]
pub struct SendInput;

impl BuiltinTool for SendInput {
    const NAME: &'static str = "send_input";
    const ABOUT: &'static str = "Tell an agent you started something more: a correction while it works, or the next \
        task when it has finished.";
    type Args = Args;

    fn standing(offer: &Offer) -> Standing {
        agents::standing(offer)
    }

    async fn call(&self, args: Args, cx: &ToolCx) -> Result<ToolOutcome, ToolError> {
        let arguments = json!(args);
        let agents = agents::of(cx)?;
        let input = said(args.message, args.items)?;
        let act = Act {
            prompt: Some(shown_words(&input)),
            ..Act::new(CollabAgentTool::SendInput, arguments, vec![args.target.clone()])
        };
        act.begin(cx).await?;
        let sent = agents.send(&args.target, input, args.interrupt.unwrap_or(false)).await;
        let states = state(&*agents, &args.target).await;
        Ok(act.done(cx, sent.map(|turn| json!({ "submission_id": turn })), &states))
    }
}

#[cfg(test)]
mod tests {
    use protocol::ToolEffects;

    use super::*;
    use crate::child_agents::AgentStatus;
    use crate::fake_agents::{FakeAgents, called, check_declined, check_said};

    #[tokio::test]
    async fn a_child_gets_the_input_and_the_model_its_turn() {
        for (interrupt, expected) in [(json!(null), false), (json!(false), false), (json!(true), true)] {
            let arguments = json!({"target": "a1", "message": "more", "interrupt": interrupt});
            let called = called(FakeAgents::default(), "send_input", arguments).await;
            assert_eq!(called.result(), json!({"submission_id": "turn_2"}));
            let sent = format!(
                r#"send a1 interrupt={expected} [{{"type":"text","text":"more","text_elements":[]}}]"#
            );
            assert_eq!(called.asked, [sent.as_str(), "status a1"]);
        }
    }

    #[tokio::test]
    async fn clients_see_the_receiver_and_its_status() {
        let arguments = json!({"target": "a1", "items": [{"type": "skill", "name": "sew", "path": "/s"}]});
        let called = called(FakeAgents::default(), "send_input", arguments).await;
        let (effects, begun) = called.proposed();
        assert_eq!(effects, ToolEffects::Once);
        assert_eq!((&begun["tool"], &begun["receiverThreadIds"]), (&json!("sendInput"), &json!(["a1"])));
        assert_eq!((&begun["prompt"], &begun["agentsStates"]), (&json!("[skill: sew]"), &json!({})));
        assert_eq!(
            called.item(),
            json!({
                "type": "collabAgentToolCall", "id": "call_1", "tool": "sendInput", "status": "completed",
                "senderThreadId": "thread", "receiverThreadIds": ["a1"], "prompt": "[skill: sew]",
                "model": null, "reasoningEffort": null,
                "agentsStates": {"a1": {"status": "running", "message": null}},
            })
        );
    }

    #[tokio::test]
    async fn input_for_an_unknown_agent_fails() {
        let agents = FakeAgents { problem: Some("not found"), ..FakeAgents::standing(AgentStatus::NotFound) };
        let called = called(agents, "send_input", json!({"target": "x", "message": "more"})).await;
        assert_eq!((called.text.as_str(), called.outcome.success), ("not found", false));
        let item = called.item();
        assert_eq!(item["status"], "failed");
        assert_eq!(item["agentsStates"], json!({"x": {"status": "notFound", "message": null}}));
    }

    #[tokio::test]
    async fn incomplete_input_is_not_sent() {
        check_said("send_input", json!({"target": "a1"})).await;
        let refused = called(FakeAgents::default(), "send_input", json!({"message": "a"})).await;
        assert!(refused.text.contains("missing field `target`"), "{}", refused.text);
        assert!(refused.proposals.is_empty() && refused.asked.is_empty());
    }

    #[tokio::test]
    async fn a_refusal_sends_nothing() {
        check_declined("send_input", json!({"target": "a1", "message": "go"})).await;
    }
}
