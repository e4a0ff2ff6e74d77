//! `wait_agent`: waits until one of the children has ended.

use std::time::Duration;

use engine::ToolOutcome;
use protocol::{CollabAgentTool, ToolEffects};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::agents::{self, Act};
use crate::{BuiltinTool, Offer, Standing, ToolCx, ToolError};

/// In milliseconds. Shorter waits only cost requests.
const SHORTEST: u64 = 10_000;
const USUAL: u64 = 30_000;
const LONGEST: u64 = 3_600_000;

#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// The agent_ids of the agents to wait for; the first that has finished ends the wait.
    targets: Vec<String>,
    /// How long to wait at most, between 10000 and 3600000; 30000 when left out. Prefer long waits.
    #[serde(default)]
    #[schemars(with = "Option<f64>")]
    timeout_ms: Option<i64>,
}

#[derive(Debug, Clone, Copy)]
pub struct WaitAgent;

impl BuiltinTool for WaitAgent {
    const NAME: &'static str = "wait_agent";
    const ABOUT: &'static str = "Wait until one of several agents has finished. Gives the status of each that has, with \
        its last words, or an empty status and timed_out when none has in time.";
    const PARALLEL: bool = true;
    type Args = Args;

    fn standing(offer: &Offer) -> Standing {
        agents::standing(offer)
    }

    async fn call(&self, args: Args, cx: &ToolCx) -> Result<ToolOutcome, ToolError> {
        let arguments = json!(args);
        let agents = agents::of(cx)?;
        if args.targets.is_empty() {
            return Err(ToolError::Failed("targets must name at least one agent".to_owned()));
        }
        let asked = args.timeout_ms.map(u64::try_from);
        let limit = match asked {
            None => USUAL,
            Some(Ok(limit)) if limit > 0 => limit.clamp(SHORTEST, LONGEST),
            Some(_) => return Err(ToolError::Failed("timeout_ms must be greater than zero".to_owned())),
        };
        let mut act = Act::new(CollabAgentTool::Wait, arguments, args.targets.clone());
        act.effects = ToolEffects::Readonly;
        act.begin(cx).await?;
        let states = agents.wait(&args.targets, Duration::from_millis(limit)).await;
        // The item lists only the agents that have ended.
        act.receivers.retain(|id| states.contains_key(id));
        let result = json!({ "status": states, "timed_out": states.is_empty() });
        Ok(act.done(cx, Ok(result), &states))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::child_agents::AgentStatus;
    use crate::fake_agents::{FakeAgents, called, check_declined};

    fn done() -> FakeAgents {
        FakeAgents::standing(AgentStatus::Completed(Some("found it".to_owned())))
    }

    #[tokio::test]
    async fn the_model_gets_the_agents_that_have_ended() {
        let called = called(done(), "wait_agent", json!({"targets": ["a1", "busy"]})).await;
        assert_eq!(called.result(), json!({"status": {"a1": {"completed": "found it"}}, "timed_out": false}));
        assert_eq!(called.asked, ["wait a1 busy 30000 ms"]);
        let (effects, begun) = called.proposed();
        assert_eq!(effects, ToolEffects::Readonly);
        assert_eq!((&begun["tool"], &begun["receiverThreadIds"]), (&json!("wait"), &json!(["a1", "busy"])));
        assert_eq!(
            called.item(),
            json!({
                "type": "collabAgentToolCall", "id": "call_1", "tool": "wait", "status": "completed",
                "senderThreadId": "thread", "receiverThreadIds": ["a1"], "prompt": null,
                "model": null, "reasoningEffort": null,
                "agentsStates": {"a1": {"status": "completed", "message": "found it"}},
            })
        );
    }

    #[tokio::test]
    async fn after_the_time_limit_none_have_ended() {
        let called = called(FakeAgents::default(), "wait_agent", json!({"targets": ["a1"]})).await;
        assert_eq!(called.result(), json!({"status": {}, "timed_out": true}));
        let item = called.item();
        assert_eq!((&item["status"], &item["receiverThreadIds"]), (&json!("completed"), &json!([])));
        assert_eq!(item["agentsStates"], json!({}));
    }

    #[tokio::test]
    async fn failed_ends_are_shown_as_failures() {
        for (status, word) in [
            (AgentStatus::Errored("bad".to_owned()), json!({"errored": "bad"})),
            (AgentStatus::NotFound, json!("not_found")),
        ] {
            let called = called(FakeAgents::standing(status), "wait_agent", json!({"targets": ["a1"]})).await;
            assert_eq!(called.result(), json!({"status": {"a1": word}, "timed_out": false}));
            assert_eq!(called.item()["status"], "failed");
        }
        let agents = FakeAgents::standing(AgentStatus::Shutdown);
        let called = called(agents, "wait_agent", json!({"targets": ["a1"]})).await;
        assert_eq!(called.item()["status"], "completed");
    }

    #[tokio::test]
    async fn waits_are_neither_too_short_nor_too_long() {
        for (asked, expected) in [
            (Value::Null, "30000"),
            (json!(1), "10000"),
            (json!(9_999), "10000"),
            (json!(10_001), "10001"),
            (json!(3_600_000), "3600000"),
            (json!(3_600_001), "3600000"),
            (json!(i64::MAX), "3600000"),
            (json!(20_000.0), "20000"),
        ] {
            let called = called(done(), "wait_agent", json!({"targets": ["a1"], "timeout_ms": asked})).await;
            assert_eq!(called.asked, [format!("wait a1 {expected} ms")], "{asked}");
        }
    }

    #[tokio::test]
    async fn a_wait_without_agents_or_time_is_refused() {
        for asked in [0, -1, i64::MIN] {
            let refused = called(done(), "wait_agent", json!({"targets": ["a1"], "timeout_ms": asked})).await;
            refused.assert_refused("timeout_ms must be greater than zero");
        }
        let refused = called(done(), "wait_agent", json!({"targets": []})).await;
        refused.assert_refused("targets must name at least one agent");
    }

    #[tokio::test]
    async fn after_a_refusal_it_does_not_wait() {
        check_declined("wait_agent", json!({"targets": ["a1"]})).await;
    }
}
