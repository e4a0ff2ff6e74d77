//! Code shared by the tools for child agents.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::{Proposal, ToolOutcome};
use protocol::{
    CollabAgentTool, CollabAgentToolCallStatus, ItemId, OperationType, ReasoningEffort, ThreadId, ThreadItem,
    ToolEffects, UserInput,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::child_agents::{AgentStatus, ChildAgents};
use crate::digest::digest_of;
use crate::offer::{Offer, Standing};
use crate::{ToolCx, ToolError};

/// The feature that enables the tools for child agents.
const FEATURE: &str = "multi_agent";

/// No tools for child agents without the feature or at the maximum depth.
pub(crate) fn standing(offer: &Offer) -> Standing {
    Standing::offered_if(offer.has_feature(FEATURE) && offer.may_spawn)
}

/// A part of what is said to a child.
#[derive(Debug, Clone, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MessagePart {
    /// `text`, `image`, `local_image`, `skill` or `mention`.
    #[serde(rename = "type", default)]
    kind: Option<String>,
    /// The words, for `text`.
    #[serde(default)]
    text: Option<String>,
    /// For `image`.
    #[serde(default)]
    image_url: Option<String>,
    /// For `local_image`, `skill` and `mention`.
    #[serde(default)]
    path: Option<String>,
    /// For `skill` and `mention`.
    #[serde(default)]
    name: Option<String>,
}

impl MessagePart {
    fn read(self) -> Result<UserInput, ToolError> {
        let missing =
            |field: &str, kind: &str| ToolError::Failed(format!("an item of type {kind} needs {field}"));
        let Self { kind, text, image_url, path, name } = self;
        let kind = kind.unwrap_or_else(|| "text".to_owned());
        let named = |path: Option<String>, name: Option<String>| {
            let name = name.ok_or_else(|| missing("name", &kind))?;
            Ok::<_, ToolError>((path.ok_or_else(|| missing("path", &kind))?, name))
        };
        Ok(match kind.as_str() {
            "text" => UserInput::Text {
                text: text.ok_or_else(|| missing("text", &kind))?,
                text_elements: Vec::new(),
            },
            "image" => UserInput::Image { url: image_url.ok_or_else(|| missing("image_url", &kind))? },
            "local_image" => UserInput::LocalImage { path: path.ok_or_else(|| missing("path", &kind))? },
            "skill" => {
                let (path, name) = named(path, name)?;
                UserInput::Skill { path, name }
            }
            "mention" => {
                let (path, name) = named(path, name)?;
                UserInput::Mention { path, name }
            }
            other => {
                return Err(ToolError::Failed(format!(
                    "there are no items of type {other}: use text, image, local_image, skill or mention"
                )));
            }
        })
    }
}

/// The input for a child, given in exactly one of the two ways.
pub(crate) fn said(
    message: Option<String>,
    items: Option<Vec<MessagePart>>,
) -> Result<Vec<UserInput>, ToolError> {
    let failed = |problem: &str| Err(ToolError::Failed(problem.to_owned()));
    match (message, items) {
        (None, None) => failed("give the agent something to do: message or items"),
        (Some(_), Some(_)) => failed("give either message or items, not both"),
        (Some(message), None) if message.trim().is_empty() => failed("message must not be empty"),
        (Some(text), None) => Ok(vec![UserInput::Text { text, text_elements: Vec::new() }]),
        (None, Some(items)) if items.is_empty() => failed("items must not be empty"),
        (None, Some(items)) => items.into_iter().map(MessagePart::read).collect(),
    }
}

/// The input as text for people.
pub(crate) fn shown_words(input: &[UserInput]) -> String {
    let words = input.iter().map(|part| match part {
        UserInput::Text { text, .. } => text.clone(),
        UserInput::Image { .. } => "[image]".to_owned(),
        UserInput::LocalImage { path } => format!("[image: {path}]"),
        UserInput::Skill { name, .. } => format!("[skill: {name}]"),
        UserInput::Mention { name, .. } => format!("[mention: {name}]"),
    });
    words.collect::<Vec<_>>().join("\n")
}

/// One operation on children, as clients see it and the record stores it.
#[derive(Debug)]
pub(crate) struct Act {
    pub(crate) tool: CollabAgentTool,
    pub(crate) effects: ToolEffects,
    /// As the model sent them.
    pub(crate) arguments: Value,
    pub(crate) receivers: Vec<String>,
    pub(crate) prompt: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) effort: Option<ReasoningEffort>,
}

impl Act {
    /// Without prompt and agent settings.
    pub(crate) fn new(tool: CollabAgentTool, arguments: Value, receivers: Vec<String>) -> Self {
        let (prompt, model, effort) = (None, None, None);
        Self { tool, effects: ToolEffects::Once, arguments, receivers, prompt, model, effort }
    }

    /// Waits until the operation is recorded; nothing is done before.
    pub(crate) async fn begin(&self, cx: &ToolCx) -> Result<(), ToolError> {
        let proposal = Proposal {
            number: 0,
            kind: OperationType::Delegation,
            effects: self.effects,
            item: Some(Box::new(self.item(cx, CollabAgentToolCallStatus::InProgress, &BTreeMap::new()))),
            outlives: false,
            digest: digest_of(&self.arguments),
            arguments: self.arguments.clone(),
            question: None,
            session_keys: Vec::new(),
        };
        match cx.propose(proposal).await {
            decided if decided.is_approved() => Ok(()),
            _ => Err(ToolError::Refused("the call was refused".to_owned())),
        }
    }

    pub(crate) fn done(
        &self,
        cx: &ToolCx,
        outcome: Result<Value, String>,
        states: &BTreeMap<String, AgentStatus>,
    ) -> ToolOutcome {
        let is_failure = outcome.is_err() || states.values().any(AgentStatus::is_failure);
        let status = match is_failure {
            true => CollabAgentToolCallStatus::Failed,
            false => CollabAgentToolCallStatus::Completed,
        };
        let item = Some(Box::new(self.item(cx, status, states)));
        match outcome {
            Ok(value) => ToolOutcome { item, ..ToolOutcome::text(value.to_string()) },
            Err(problem) => ToolOutcome { item, ..ToolOutcome::failure(problem) },
        }
    }

    fn item(
        &self,
        cx: &ToolCx,
        status: CollabAgentToolCallStatus,
        states: &BTreeMap<String, AgentStatus>,
    ) -> ThreadItem {
        ThreadItem::CollabAgentToolCall {
            id: ItemId::new(cx.call_id()),
            tool: self.tool,
            status,
            sender_thread_id: cx.thread_id().clone(),
            receiver_thread_ids: self.receivers.iter().map(|id| ThreadId::new(id.as_str())).collect(),
            prompt: self.prompt.clone(),
            model: self.model.clone(),
            reasoning_effort: self.effort,
            agents_states: states.iter().map(|(id, status)| (id.clone(), status.shown())).collect(),
        }
    }
}

/// The children of the caller's thread.
pub(crate) fn of(cx: &ToolCx) -> Result<Arc<dyn ChildAgents>, ToolError> {
    let none = || ToolError::Refused("there are no child agents here".to_owned());
    cx.bench().agents().ok_or_else(none)
}

/// The state of one child, for its item.
pub(crate) async fn state(agents: &dyn ChildAgents, id: &str) -> BTreeMap<String, AgentStatus> {
    BTreeMap::from([(id.to_owned(), agents.status(id).await)])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use engine::ProposalDecision;

    use super::*;
    use crate::Registry;

    const TOOLS: [&str; 5] = ["spawn_agent", "send_input", "resume_agent", "wait_agent", "close_agent"];

    #[test]
    fn a_model_reads_these_words_of_a_status() {
        for (status, word, is_final, shown) in [
            (AgentStatus::PendingInit, json!("pending_init"), false, "pendingInit"),
            (AgentStatus::Running, json!("running"), false, "running"),
            (AgentStatus::Interrupted, json!("interrupted"), false, "interrupted"),
            (AgentStatus::Shutdown, json!("shutdown"), true, "shutdown"),
            (AgentStatus::NotFound, json!("not_found"), true, "notFound"),
            (AgentStatus::Completed(None), json!({"completed": null}), true, "completed"),
            (AgentStatus::Completed(Some("ok".to_owned())), json!({"completed": "ok"}), true, "completed"),
            (AgentStatus::Errored("bad".to_owned()), json!({"errored": "bad"}), true, "errored"),
        ] {
            assert_eq!((json!(status), status.is_final()), (word.clone(), is_final));
            let message = word.as_object().map(|words| words.values().next().cloned());
            let expected = json!({"status": shown, "message": message.unwrap_or_default()});
            assert_eq!(json!(status.shown()), expected);
        }
    }

    #[test]
    fn the_tools_are_there_with_the_feature_and_where_agents_may_be_started() {
        for (features, may_spawn, offered) in [
            (&["multi_agent"][..], true, true),
            (&["multi_agent"], false, false),
            (&[], true, false),
            (&["multi_agent_v2"], true, false),
        ] {
            let features = features.iter().map(|key| (*key).to_owned()).collect();
            let offer = Offer { features, may_spawn, ..Offer::default() };
            let specs = Registry::builtin().specs(&offer);
            let standing = |name: &str| specs.iter().find(|spec| spec.name == name).map(|spec| &spec.json);
            for name in TOOLS {
                assert_eq!(standing(name).is_some_and(Option::is_some), offered, "{name} {offer:?}");
            }
        }
    }

    #[test]
    fn every_kind_of_part_becomes_what_a_client_could_have_said() {
        for (part, expected, words) in [
            (json!({"text": "a"}), json!({"type": "text", "text": "a", "text_elements": []}), "a"),
            (
                json!({"type": "text", "text": "a"}),
                json!({"type": "text", "text": "a", "text_elements": []}),
                "a",
            ),
            (
                json!({"type": "image", "image_url": "data:x"}),
                json!({"type": "image", "url": "data:x"}),
                "[image]",
            ),
            (
                json!({"type": "local_image", "path": "/a.png"}),
                json!({"type": "localImage", "path": "/a.png"}),
                "[image: /a.png]",
            ),
            (
                json!({"type": "skill", "path": "/s", "name": "sew"}),
                json!({"type": "skill", "path": "/s", "name": "sew"}),
                "[skill: sew]",
            ),
            (
                json!({"type": "mention", "path": "app://x", "name": "X"}),
                json!({"type": "mention", "path": "app://x", "name": "X"}),
                "[mention: X]",
            ),
        ] {
            let part = serde_json::from_value(part).expect("a part");
            let input = said(None, Some(vec![part])).expect("all there");
            assert_eq!(json!(input), json!([expected]));
            assert_eq!(shown_words(&input), words);
        }
    }

    #[test]
    fn what_a_part_lacks_is_named() {
        for (part, expected) in [
            (json!({"type": "text", "path": "a"}), "an item of type text needs text"),
            (json!({"type": "image", "path": "a"}), "an item of type image needs image_url"),
            (json!({"type": "local_image", "image_url": "a"}), "an item of type local_image needs path"),
            (json!({"type": "skill", "path": "a"}), "an item of type skill needs name"),
            (json!({"type": "skill", "name": "a"}), "an item of type skill needs path"),
            (json!({"type": "mention", "path": "a"}), "an item of type mention needs name"),
            (json!({"type": "mention", "name": "a"}), "an item of type mention needs path"),
        ] {
            let part = serde_json::from_value(part).expect("a part");
            let problem = said(None, Some(vec![part])).expect_err("something is missing");
            assert_eq!(problem.to_string(), expected);
        }
        assert!(serde_json::from_value::<MessagePart>(json!({"txt": "a"})).is_err());
    }

    #[test]
    fn parts_are_shown_one_below_the_other() {
        let part = |part| serde_json::from_value(part).expect("a part");
        let parts = vec![part(json!({"text": "look:"})), part(json!({"type": "local_image", "path": "a"}))];
        assert_eq!(shown_words(&said(None, Some(parts)).expect("two parts")), "look:\n[image: a]");
    }

    #[tokio::test]
    async fn where_nobody_can_have_agents_the_tools_say_so() {
        let scene = crate::scene::Scene::deciding(ProposalDecision::approved(false));
        for (name, arguments) in [
            ("spawn_agent", json!({"message": "go"})),
            ("send_input", json!({"target": "a1", "message": "go"})),
            ("resume_agent", json!({"id": "a1"})),
            ("wait_agent", json!({"targets": ["a1"]})),
            ("close_agent", json!({"target": "a1"})),
        ] {
            let (text, success) = scene.run_text(name, arguments).await;
            assert_eq!((text.as_str(), success), ("there are no child agents here", false), "{name}");
        }
        assert!(scene.proposals().is_empty());
    }
}
