//! Starting a child: what it inherits, and that it is never more than its parent has.

use std::sync::Arc;

use config::Config;
use engine::ThreadSeed;
use environments::attached_selections;
use journal::Entry;
use protocol::{
    ResponseItem, RolloutRecord, ServerNotification, SessionSource, SubAgentSource, SubagentPlacement,
    ThreadId, ThreadStatus, ThreadStatusChangedNotification,
};
use tools::{AgentStatus, SpawnOrder, Spawned};

use super::names::nickname;
use super::{Agent, Place, roles};
use crate::delegation::Terms;
use crate::error::RuntimeError;
use crate::fork::history_batch;
use crate::handle::Snapshot;
use crate::host_record::HostRecord;
use crate::load::Wishes;
use crate::open::Opening;
use crate::runtime::{Loaded, Runtime};
use crate::settings::ThreadSettings;

/// What the child of a fork reads as the outcome of the call that made it.
const FORKED: &str = "You are the agent that this call started. What was said before is background; your task is the \
                      next message.";

/// A child about to be there.
pub(super) struct Birth {
    pub(super) parent: Loaded,
    pub(super) order: SpawnOrder,
    pub(super) config: Config,
    pub(super) settings: ThreadSettings,
    pub(super) nickname: Option<String>,
    pub(super) snapshot: Snapshot,
}

impl Runtime {
    /// Everything about an order that can be known to be wrong before anything is done.
    pub(super) async fn check_spawn(&self, parent: &ThreadId, order: &SpawnOrder) -> Result<(), String> {
        let loaded =
            self.loaded(parent).ok_or_else(|| RuntimeError::UnknownThread(parent.clone()).to_string())?;
        let snapshot = loaded.handle.look(false).await.map_err(|error| error.to_string())?;
        let agents = &snapshot.settings.tools.agents;
        let depth = usize::try_from(snapshot.settings.agent_depth).unwrap_or(usize::MAX);
        if depth >= agents.max_depth {
            return Err("agents may not go deeper than this: do the task yourself".to_owned());
        }
        roles::find(&agents.roles, order.role.as_deref())?;
        let Some(model) = &order.model else { return Ok(()) };
        let is_free = *model == order.step.model.slug || snapshot.settings.host.is_delegated;
        if is_free || self.inner.catalogue.knows(model) {
            return Ok(());
        }
        let known = self.inner.catalogue.names().collect::<Vec<_>>().join(", ");
        Err(format!("unknown model `{model}`: there are {known}"))
    }

    pub(super) async fn spawn_agent(&self, parent: &ThreadId, order: SpawnOrder) -> Result<Spawned, String> {
        let birth = self.prepare(parent, order).await.map_err(|error| error.to_string())?;
        let seat = birth.snapshot.settings.host.seat.clone();
        let asked = seat.filter(|seat| seat.effective().subagents == Some(SubagentPlacement::Host));
        match asked {
            Some(seat) => self.spawn_where_the_host_says(birth, &seat).await,
            None => {
                let id = self.inner.ids.thread(self.inner.clock.stamp());
                self.spawn_here(birth, id).await
            }
        }
    }

    async fn prepare(&self, parent: &ThreadId, order: SpawnOrder) -> Result<Birth, RuntimeError> {
        let loaded = self.loaded(parent).ok_or_else(|| RuntimeError::UnknownThread(parent.clone()))?;
        let snapshot = loaded.handle.look(false).await?;
        let config = self.config_of(&snapshot.settings)?;
        let mut settings = inherited(&snapshot.settings, &order);
        let role = roles::find(&snapshot.settings.tools.agents.roles, order.role.as_deref());
        let role = role.map_err(RuntimeError::Config)?.cloned();
        if let Some(role) = &role {
            self.apply_role(&mut settings, role)?;
        }
        if settings.model != snapshot.settings.model {
            // Another model may come with tools that its parent does not have.
            settings.host = Arc::new(settings.host.only(&order.step));
        }
        let own = role.map(|role| role.nicknames).unwrap_or_default();
        let root = self.inner.agents.find(parent.as_str()).map(|agent| agent.family.root.clone());
        let taken = self.inner.agents.nicknames_below(root.as_ref().unwrap_or(parent));
        let nickname = nickname(&own, &taken, self.inner.clock.stamp().entropy);
        Ok(Birth { parent: loaded, order, config, settings, nickname, snapshot })
    }

    /// As it is on disk now; what the thread chose is in its settings.
    pub(super) fn config_of(&self, settings: &ThreadSettings) -> Result<Config, RuntimeError> {
        self.load(&Wishes::of_child(&settings.cwd, None).going_on(&settings.model_provider))
    }

    pub(super) async fn spawn_here(&self, birth: Birth, id: ThreadId) -> Result<Spawned, String> {
        let most = birth.settings.tools.agents.max_threads;
        let parent = birth.parent.handle.id().clone();
        let family = self.inner.agents.family_below(&parent, id.as_str());
        let mut agent = Agent::new(id.to_string(), family, Place::Here);
        (agent.nickname, agent.role) = (birth.nickname.clone(), birth.order.role.clone());
        let agent = self.inner.agents.admit(agent, most).map_err(too_many)?;
        let input = birth.order.input.clone();
        let (model, effort) = (birth.settings.model.clone(), birth.settings.effort);
        let begun = match self.open_newborn(birth, id, &agent).await {
            Ok(()) => self.say(&agent, input, false).await,
            Err(error) => Err(error.to_string()),
        };
        if let Err(problem) = begun {
            self.close_agent(&agent).await;
            self.inner.agents.remove(&agent.id);
            return Err(format!("the agent could not be started: {problem}"));
        }
        Ok(Spawned { id: agent.id.clone(), nickname: agent.nickname.clone(), model, effort, is_away: false })
    }

    async fn open_newborn(&self, birth: Birth, id: ThreadId, agent: &Agent) -> Result<(), RuntimeError> {
        let Birth { parent, order, config, mut settings, nickname, snapshot } = birth;
        let terms = Terms::of_child(&snapshot.settings.host, snapshot.next_ordinal.is_some());
        settings.agent_depth = agent.family.depth;
        settings.host = Arc::new((*settings.host).clone().seated(self.seat(&id, &terms)?));
        if let Some(chosen) = attached_selections(&order.step) {
            settings.environments = Some(self.inner.environments.choose(&id, chosen)?);
        }
        let mut meta = self.meta(&id, &settings);
        meta.session_id.clone_from(&parent.identity.meta.session_id);
        (meta.agent_nickname, meta.agent_role) = (nickname.clone(), order.role.clone());
        meta.source = SessionSource::SubAgent(SubAgentSource::ThreadSpawn {
            parent_thread_id: parent.handle.id().clone(),
            depth: i32::try_from(agent.family.depth).unwrap_or(i32::MAX),
            agent_path: None,
            agent_nickname: nickname,
            agent_role: order.role.clone(),
        });
        let ephemeral = parent.identity.ephemeral;
        let mut opening = Opening { ephemeral, ..Opening::new(meta, settings, config) };
        let mut seed = terms.seed(id.clone());
        if order.with_history {
            (seed.history, seed.context) = self.forked(&parent, &order.call_id).await?;
            seed.context_is_borrowed = true;
        }
        if terms.host_keeps_record() {
            let entries = entries_of(self.inner.clock.stamp().now_ms, &seed.history);
            opening.keep_at_host(|seat, meta| match entries.is_empty() {
                true => HostRecord::fresh(seat, meta),
                false => HostRecord::rebuilt(seat, meta, entries),
            });
        } else if order.with_history && !ephemeral {
            let batch = history_batch(self.inner.clock.stamp().now_ms, &opening.meta, &seed.history)?;
            opening.journal = Some(self.store()?.create(&id, batch)?);
        }
        opening.transport = Some(parent.transport.clone());
        self.appear(opening, seed).await
    }

    /// What the parent's model knows, and that this call made the child.
    async fn forked(
        &self,
        parent: &Loaded,
        call_id: &str,
    ) -> Result<(Vec<ResponseItem>, Option<serde_json::Value>), RuntimeError> {
        let (mut history, context) = parent.handle.remembered().await?;
        let (call_id, output) =
            (call_id.to_owned(), protocol::FunctionCallOutputBody::Text(FORKED.to_owned()));
        history.push(ResponseItem::FunctionCallOutput { call_id, output });
        Ok((history, context))
    }

    /// A thread that no client opened: all of them hear of it.
    pub(super) async fn appear(&self, opening: Opening, seed: ThreadSeed) -> Result<(), RuntimeError> {
        let id = opening.meta.thread_id.clone();
        self.open(opening, seed, Vec::new())?;
        self.inner.audience.appeared(&id);
        let told = ThreadStatusChangedNotification { thread_id: id.clone(), status: ThreadStatus::Idle };
        self.inner.audience.tell(&id, ServerNotification::ThreadStatusChanged(told)).await;
        Ok(())
    }
}

/// What the parent has at the moment of its call. What clients granted on top is for the parent alone.
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

fn entries_of(at_ms: i64, items: &[ResponseItem]) -> Vec<Entry> {
    let records = items.iter().map(|item| RolloutRecord::ResponseItem { turn_id: None, item: item.clone() });
    records.map(|record| Entry { seq: 0, at_ms, record: record.into() }).collect()
}

/// The status of an agent whose turns are known from its record.
pub(crate) fn recorded_status(turns: &[protocol::Turn]) -> AgentStatus {
    let Some(last) = turns.last() else { return AgentStatus::PendingInit };
    let words = last.items.iter().rev().find_map(|item| match item {
        protocol::ThreadItem::AgentMessage { text, .. } => Some(text.clone()),
        _ => None,
    });
    super::overheard::ended(last.status, last.error.as_ref(), words)
}
