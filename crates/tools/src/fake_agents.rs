//! Child agents for tool tests: nothing runs, and requests are recorded.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use engine::{Proposal, ProposalDecision, SubagentLine, ToolOutcome};
use parking_lot::Mutex;
use protocol::{FunctionCallOutputBody, OperationType, ReasoningEffort, ToolEffects, UserInput};
use serde_json::{Value, json};

use crate::child_agents::{AgentStatus, ChildAgents, SpawnOrder, Spawned};
use crate::scene::Scene;
use crate::tool::BoxFuture;

/// Agents that all have the same status.
#[derive(Debug)]
pub(crate) struct FakeAgents {
    pub(crate) status: AgentStatus,
    /// The error for every order, before anything is done.
    pub(crate) objection: Option<&'static str>,
    /// The error for every operation.
    pub(crate) problem: Option<&'static str>,
    pub(crate) spawned: Spawned,
    pub(crate) effects: ToolEffects,
    pub(crate) asked: Mutex<Vec<String>>,
    pub(crate) orders: Mutex<Vec<SpawnOrder>>,
}

impl Default for FakeAgents {
    fn default() -> Self {
        let (id, nickname, model) = ("a1".to_owned(), Some("Wren".to_owned()), "m2".to_owned());
        Self {
            status: AgentStatus::Running,
            objection: None,
            problem: None,
            spawned: Spawned { id, nickname, model, effort: Some(ReasoningEffort::High), is_away: false },
            effects: ToolEffects::Once,
            asked: Mutex::default(),
            orders: Mutex::default(),
        }
    }
}

impl FakeAgents {
    pub(crate) fn standing(status: AgentStatus) -> Self {
        Self { status, ..Self::default() }
    }

    fn hear(&self, asked: String) {
        self.asked.lock().push(asked);
    }

    fn answer<T: Send + 'static>(&self, asked: String, answer: T) -> BoxFuture<'_, Result<T, String>> {
        self.hear(asked);
        let answer = self.problem.map_or(Ok(answer), |problem| Err(problem.to_owned()));
        Box::pin(std::future::ready(answer))
    }

    pub(crate) fn orders(&self) -> Vec<SpawnOrder> {
        self.orders.lock().clone()
    }
}

impl ChildAgents for FakeAgents {
    fn roster(&self) -> Arc<[SubagentLine]> {
        Arc::new([])
    }

    fn check<'a>(&'a self, _: &'a SpawnOrder) -> BoxFuture<'a, Result<(), String>> {
        let answer = self.objection.map_or(Ok(()), |objection| Err(objection.to_owned()));
        Box::pin(std::future::ready(answer))
    }

    fn spawn_effects(&self) -> ToolEffects {
        self.effects
    }

    fn spawn(&self, order: SpawnOrder) -> BoxFuture<'_, Result<Spawned, String>> {
        self.orders.lock().push(order);
        self.answer("spawn".to_owned(), self.spawned.clone())
    }

    fn send<'a>(
        &'a self,
        id: &'a str,
        input: Vec<UserInput>,
        interrupt: bool,
    ) -> BoxFuture<'a, Result<String, String>> {
        self.answer(format!("send {id} interrupt={interrupt} {}", json!(input)), "turn_2".to_owned())
    }

    fn resume<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), String>> {
        self.answer(format!("resume {id}"), ())
    }

    fn close<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), String>> {
        self.answer(format!("close {id}"), ())
    }

    fn status<'a>(&'a self, id: &'a str) -> BoxFuture<'a, AgentStatus> {
        self.hear(format!("status {id}"));
        Box::pin(std::future::ready(self.status.clone()))
    }

    fn wait<'a>(
        &'a self,
        ids: &'a [String],
        limit: Duration,
    ) -> BoxFuture<'a, BTreeMap<String, AgentStatus>> {
        self.hear(format!("wait {} {} ms", ids.join(" "), limit.as_millis()));
        let ended = ids.iter().filter(|id| self.status.is_final() && id.as_str() != "busy");
        let ended = ended.map(|id| (id.clone(), self.status.clone())).collect();
        Box::pin(std::future::ready(ended))
    }
}

/// One tool call with its effects.
#[derive(Debug)]
pub(crate) struct Called {
    /// The text for the model.
    pub(crate) text: String,
    pub(crate) outcome: ToolOutcome,
    pub(crate) proposals: Vec<Proposal>,
    /// The requests to the agents, in order.
    pub(crate) asked: Vec<String>,
    pub(crate) agents: Arc<FakeAgents>,
}

pub(crate) async fn called(agents: FakeAgents, name: &str, arguments: Value) -> Called {
    called_deciding(ProposalDecision::approved(false), agents, name, arguments).await
}

pub(crate) async fn called_deciding(
    decided: ProposalDecision,
    agents: FakeAgents,
    name: &str,
    arguments: Value,
) -> Called {
    let agents = Arc::new(agents);
    let scene = Scene::deciding(decided).with_agents(agents.clone());
    let outcome = scene.run(name, &arguments).await;
    let FunctionCallOutputBody::Text(text) = outcome.output.clone() else { panic!("one text") };
    let (proposals, asked) = (scene.proposals(), agents.asked.lock().clone());
    Called { text, outcome, proposals, asked, agents }
}

impl Called {
    /// The result, parsed as JSON.
    pub(crate) fn result(&self) -> Value {
        assert!(self.outcome.success, "{}", self.text);
        serde_json::from_str(&self.text).expect("a result is JSON")
    }

    /// The completed item, as clients see it.
    pub(crate) fn item(&self) -> Value {
        json!(self.outcome.item.as_deref().expect("what was begun has an item"))
    }

    /// The only proposal: its effects, and its item at the start.
    pub(crate) fn proposed(&self) -> (ToolEffects, Value) {
        let [proposal] = self.proposals.as_slice() else { panic!("{:?}", self.proposals) };
        let Proposal { kind, effects, item, question, outlives, .. } = proposal;
        assert_eq!((kind, question, *outlives), (&OperationType::Delegation, &None, false));
        assert_eq!(proposal.digest, engine::digest_of(&proposal.arguments));
        let item = json!(item.as_deref().expect("clients see it begin"));
        assert_eq!(item["status"], "inProgress");
        (*effects, item)
    }

    /// The call was refused before anything was proposed or asked.
    pub(crate) fn assert_refused(&self, expected: &str) {
        assert_eq!((self.text.as_str(), self.outcome.success), (expected, false));
        assert_eq!(self.outcome.item, None);
        assert!(self.proposals.is_empty() && self.asked.is_empty(), "{self:?}");
    }
}

/// The call is proposed and declined, and nothing is done.
pub(crate) async fn check_declined(name: &str, arguments: Value) {
    let called = called_deciding(ProposalDecision::declined(), FakeAgents::default(), name, arguments).await;
    assert_eq!((called.text.as_str(), called.outcome.success), ("the call was refused", false));
    assert_eq!((called.proposals.len(), called.outcome.goes_on), (1, false));
    assert!(called.asked.is_empty(), "{:?}", called.asked);
}

/// Checks that input for an agent is given in exactly one way, and completely.
pub(crate) async fn check_said(name: &str, others: Value) {
    for (said, expected) in [
        (json!({}), "give the agent something to do: message or items"),
        (json!({"message": null, "items": null}), "give the agent something to do: message or items"),
        (json!({"message": "a", "items": [{"text": "b"}]}), "give either message or items, not both"),
        (json!({"message": ""}), "message must not be empty"),
        (json!({"message": " \n"}), "message must not be empty"),
        (json!({"items": []}), "items must not be empty"),
        (
            json!({"items": [{"type": "video", "path": "a"}]}),
            "there are no items of type video: use text, image, local_image, skill or mention",
        ),
        (json!({"items": [{"text": "a"}, {"type": "image"}]}), "an item of type image needs image_url"),
        (json!({"items": [{}]}), "an item of type text needs text"),
    ] {
        let mut arguments = others.as_object().expect("an object").clone();
        arguments.extend(said.as_object().expect("an object").clone());
        called(FakeAgents::default(), name, arguments.into()).await.assert_refused(expected);
    }
}
