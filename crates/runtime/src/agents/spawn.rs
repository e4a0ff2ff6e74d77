//! Starting a child: the settings it inherits. Its permissions never exceed its parent's.

use std::sync::Arc;

use delegation::{Agent, AgentPlace, Terms, nickname};
use environments::attached_selections;
use journal::ThreadHistory;
use protocol::{
    ResponseItem, ServerNotification, SessionSource, SubAgentSource, SubagentPlacement, ThreadId,
    ThreadStatus, ThreadStatusChangedNotification,
};
use tools::{SpawnOrder, Spawned};

use super::AgentControl;
use super::roles::with_role;
use crate::error::RuntimeError;
use crate::open::config_request::ConfigRequest;
use crate::open::request::{ChildOptions, EnvironmentChoice, RecordSource, RequestedId};
use crate::open::{OpenRequest, open};
use crate::providers::identity::ClientIdentity;
use crate::state::Loaded;
use crate::step::agent_roles::find_role;
use driver::{ClockExt, Snapshot, ThreadSettings};

/// The output of the spawn call in a forked child's history.
const FORKED: &str = "You are the agent that this call started. What was said before is background; your task is the \
                      next message.";

/// A child agent that is to be started.
pub(super) struct SpawnPlan {
    pub(super) parent: Loaded,
    pub(super) order: SpawnOrder,
    pub(super) settings: ThreadSettings,
    pub(super) nickname: Option<String>,
    pub(super) snapshot: Snapshot,
}

impl AgentControl {
    /// Checks everything about an order that can fail before anything is done.
    pub(super) async fn check_spawn(&self, parent: &ThreadId, order: &SpawnOrder) -> Result<(), String> {
        let loaded = self
            .state
            .loaded(parent)
            .ok_or_else(|| RuntimeError::UnknownThread(parent.clone()).to_string())?;
        let snapshot = loaded.handle.snapshot(false).await.map_err(|error| error.to_string())?;
        let agents = &snapshot.settings.tools.agents;
        let depth = usize::try_from(snapshot.settings.agent_depth).unwrap_or(usize::MAX);
        if depth >= agents.max_depth {
            return Err("agents may not go deeper than this: do the task yourself".to_owned());
        }
        find_role(&agents.roles, order.role.as_deref())?;
        let Some(model) = &order.model else { return Ok(()) };
        let is_free = *model == order.step.model.slug || snapshot.settings.host.is_delegated;
        if is_free || self.state.catalogue.knows(model) {
            return Ok(());
        }
        let known = self.state.catalogue.names().collect::<Vec<_>>().join(", ");
        Err(format!("unknown model `{model}`: there are {known}"))
    }

    pub(super) async fn spawn_agent(&self, parent: &ThreadId, order: SpawnOrder) -> Result<Spawned, String> {
        let plan = self.prepare(parent, order).await.map_err(|error| error.to_string())?;
        let session = plan.parent.session.clone();
        let asked = session.filter(|session| session.effective().subagents == Some(SubagentPlacement::Host));
        match asked {
            Some(session) => self.spawn_where_the_host_says(plan, &session).await,
            None => {
                let id = self.state.new_thread_id();
                self.spawn_here(plan, id).await
            }
        }
    }

    async fn prepare(&self, parent: &ThreadId, order: SpawnOrder) -> Result<SpawnPlan, RuntimeError> {
        let loaded = self.state.loaded(parent).ok_or_else(|| RuntimeError::UnknownThread(parent.clone()))?;
        let snapshot = loaded.handle.snapshot(false).await?;
        let mut settings = inherited(&snapshot.settings, &order);
        let role = find_role(&snapshot.settings.tools.agents.roles, order.role.as_deref());
        let role = role.map_err(RuntimeError::Config)?.cloned();
        if let Some(role) = &role {
            settings = with_role(&self.state, settings, role).await?;
        }
        if settings.model != snapshot.settings.model {
            // Another model may come with tools that the parent does not have.
            settings.host = Arc::new(settings.host.only(&order.step));
        }
        let own = role.map(|role| role.nicknames).unwrap_or_default();
        let root = self.state.agents.find(parent.as_str()).map(|agent| agent.family.root.clone());
        let taken = self.state.agents.nicknames_below(root.as_ref().unwrap_or(parent));
        let nickname = nickname(&own, &taken, self.state.clock.stamp().entropy);
        Ok(SpawnPlan { parent: loaded, order, settings, nickname, snapshot })
    }

    pub(super) async fn spawn_here(&self, plan: SpawnPlan, id: ThreadId) -> Result<Spawned, String> {
        let most = plan.settings.tools.agents.max_threads;
        let parent = plan.parent.handle.id().clone();
        let family = self.state.agents.family_below(&parent, id.as_str());
        let mut agent = Agent::new(id.to_string(), family, AgentPlace::Here);
        (agent.nickname, agent.role) = (plan.nickname.clone(), plan.order.role.clone());
        let agent = self.state.agents.admit(agent, most).map_err(too_many)?;
        let input = plan.order.input.clone();
        let (model, effort) = (plan.settings.model.clone(), plan.settings.effort);
        let begun = match self.open_child(plan, id, &agent).await {
            Ok(()) => self.say(&agent, input, false).await,
            Err(error) => Err(error.to_string()),
        };
        if let Err(problem) = begun {
            self.close_agent(&agent).await;
            self.state.agents.remove(&agent.id);
            return Err(format!("the agent could not be started: {problem}"));
        }
        Ok(Spawned { id: agent.id.clone(), nickname: agent.nickname.clone(), model, effort, is_away: false })
    }

    async fn open_child(&self, plan: SpawnPlan, id: ThreadId, agent: &Agent) -> Result<(), RuntimeError> {
        let SpawnPlan { parent, order, mut settings, nickname, snapshot } = plan;
        settings.agent_depth = agent.family.depth;
        let terms = Terms::of_child(parent.session.as_deref(), snapshot.next_ordinal.is_some());
        let (history, record) = match order.with_history {
            true => (self.forked(&parent, &order.call_id).await?, RecordSource::Items),
            false => (ThreadHistory::default(), RecordSource::Nothing),
        };
        let child = ChildOptions {
            transport: parent.transport.clone(),
            session_id: parent.identity.meta.session_id.clone(),
            source: SessionSource::SubAgent(SubAgentSource::ThreadSpawn {
                parent_thread_id: parent.handle.id().clone(),
                depth: i32::try_from(agent.family.depth).unwrap_or(i32::MAX),
                agent_path: None,
                agent_nickname: nickname.clone(),
                agent_role: order.role.clone(),
            }),
            nickname,
            role: order.role.clone(),
            settings,
        };
        let request = child_request(RequestedId::Reserved(id), &parent, terms, &snapshot.settings, child);
        let environments = attached_selections(&order.step).map(EnvironmentChoice::Requested);
        let ephemeral = parent.identity.ephemeral;
        self.appear(OpenRequest { history, record, environments, ephemeral, ..request }).await
    }

    /// The history of the parent's model, ending with the spawn call.
    async fn forked(&self, parent: &Loaded, call_id: &str) -> Result<ThreadHistory, RuntimeError> {
        let (mut model, told_context) = parent.handle.remembered().await?;
        let (call_id, output) =
            (call_id.to_owned(), protocol::FunctionCallOutputBody::Text(FORKED.to_owned()));
        model.push(ResponseItem::FunctionCallOutput { call_id, output });
        Ok(ThreadHistory { model, told_context, ..ThreadHistory::default() })
    }

    /// Opens a thread that no client requested, and notifies all clients of it.
    pub(super) async fn appear(&self, request: OpenRequest) -> Result<(), RuntimeError> {
        let thread_id = open(&self.state, request).await?.thread.id;
        let audience = &self.state.audience;
        audience.appeared(&thread_id);
        let status = ThreadStatus::Idle;
        let changed = ThreadStatusChangedNotification { thread_id: thread_id.clone(), status };
        audience.notify(&thread_id, ServerNotification::ThreadStatusChanged(changed)).await;
        Ok(())
    }
}

/// Uses the current configuration from disk; the parent's choices are in its settings.
pub(super) fn child_request(
    id: RequestedId,
    parent: &Loaded,
    terms: Terms,
    of_parent: &ThreadSettings,
    child: ChildOptions,
) -> OpenRequest {
    let originator = parent.identity.meta.originator.clone();
    let client = ClientIdentity { originator, ..ClientIdentity::default() };
    let config = ConfigRequest::of_child(&of_parent.cwd, None).going_on(&of_parent.model_provider);
    let choices = (*child.settings.host).clone();
    OpenRequest { choices, child: Some(Box::new(child)), ..OpenRequest::new(id, client, terms, config) }
}

/// The parent's settings at the time of its call, without permissions that clients granted on top.
fn inherited(parent: &ThreadSettings, order: &SpawnOrder) -> ThreadSettings {
    let step = &order.step;
    let mut settings = parent.clone();
    settings.model.clone_from(&step.model.slug);
    settings.approval_policy = step.approval_policy.clone();
    settings.sandbox = step.sandbox.clone();
    settings.cwd.clone_from(&step.cwd);
    settings.dynamic_tools = settings.host.dynamic_tools().unwrap_or_default();
    if let Some(model) = order.model.as_ref().filter(|model| **model != step.model.slug) {
        settings.model.clone_from(model);
        settings.effort = None;
    }
    settings.effort = order.effort.or(settings.effort);
    settings
}

pub(super) fn too_many(most: usize) -> String {
    format!("there are {most} open agents, which is as many as there may be: close one first")
}
