//! Agents whose thread is not in memory: after a restart, or after they were closed.

use std::sync::Arc;

use engine::ThreadSeed;
use journal::{History, Resumed};
use protocol::{SessionMeta, ThreadId};
use tools::AgentStatus;

use super::adopted::Adopted;
use super::away_record::{HOST_PREFIX, tell_late};
use super::late_news::told_now;
use super::overheard::tell_parent;
use super::spawn::{recorded_status, too_many};
use super::{Agent, Family, Place, depth_of, roles};
use crate::delegation::Terms;
use crate::error::RuntimeError;
use crate::host_choices::HostChoices;
use crate::open::Opening;
use crate::recover::recover;
use crate::runtime::Runtime;
use crate::settings::ThreadSettings;

impl Runtime {
    /// A thread that is back in memory has its children again.
    pub(crate) fn adopt(&self, parent: &ThreadId, most: usize, children: Vec<Adopted>) {
        let agents = &self.inner.agents;
        // Those that are closed come back by name alone, unless a host may still speak of them.
        let wanted = children.into_iter().filter(|child| child.is_open || child.is_away());
        for Adopted { id, nickname, away, ended, is_open, heard, account } in wanted {
            if let Some(known) = agents.find_below(&id, parent) {
                self.take_back(&known, most);
                continue;
            }
            let family = agents.family_below(parent, &id);
            let child_ref = id.strip_prefix(HOST_PREFIX).unwrap_or(&id).to_owned();
            let (place, goes_on) = match away {
                Some((delegation_id, goes_on)) => (Place::Away { delegation_id, child_ref }, goes_on),
                None => (Place::Here, false),
            };
            let is_away = place != Place::Here;
            let mut agent = Agent::new(id, family, place);
            agent.nickname = nickname;
            if !goes_on {
                agent.expect_nothing();
            }
            if let Some(heard) = &heard {
                agent.settle(heard);
            }
            if let Some(account) = account {
                agent.owe(account);
            }
            if is_away {
                agent.set(if goes_on {
                    AgentStatus::Running
                } else {
                    ended.unwrap_or(AgentStatus::Completed(None))
                });
            }
            let agent = agents.add(agent);
            if !is_open {
                agent.close();
            }
        }
    }

    /// One that this process knows: it was closed with its parent, or it ended while its parent was away.
    fn take_back(&self, agent: &Arc<Agent>, most: usize) {
        if agent.place == Place::Here && !agent.is_open() {
            if agent.is_dismissed() {
                return;
            }
            if let Err(most) = self.inner.agents.readmit(agent, most) {
                tracing::warn!(agent = %agent.id, most, "an agent stays closed because others have its place");
            }
            return;
        }
        let status = agent.status();
        if status.is_final() && agent.is_awaited() {
            agent.expect_nothing();
            tell_parent(&Arc::downgrade(&self.inner), agent, &status);
        }
    }

    /// How an agent stands whose thread a client has opened with its past.
    pub(crate) fn recall(&self, thread: &ThreadId, past: AgentStatus, goes_on: bool) {
        let Some(agent) = self.inner.agents.find(thread.as_str()) else { return };
        if agent.status() == AgentStatus::PendingInit {
            agent.set(past);
        }
        if goes_on {
            agent.begin();
        }
    }

    /// Learns from its record how an agent stands that is not in memory.
    pub(super) async fn learn(&self, agent: &Agent) {
        let id = agent.thread();
        let is_cold = agent.place == Place::Here
            && agent.is_open()
            && agent.status() == AgentStatus::PendingInit
            && self.loaded(&id).is_none();
        if !is_cold {
            return;
        }
        match self.on_disk(move |store| store.read(&id)).await {
            Ok(Ok(read)) => agent.set(recorded_status(&read.history.turns)),
            // Whoever keeps its record has to bring it back.
            Ok(Err(_)) | Err(_) => agent.set(AgentStatus::Interrupted),
        }
    }

    /// An agent that was open before a restart is in memory again before anything is asked of it, after the one it
    /// works for.
    pub(super) async fn bring_back(&self, agent: &Arc<Agent>) -> Result<(), String> {
        if agent.place != Place::Here || self.loaded(&agent.thread()).is_some() {
            return Ok(());
        }
        if let Some(above) = self.inner.agents.find(agent.family.parent.as_str()) {
            if !above.is_open() {
                return Err(format!(
                    "agent {}, for which it works, is closed: open that one with resume_agent first",
                    above.id
                ));
            }
            Box::pin(self.bring_back(&above)).await?;
        }
        self.reopen(agent).await.map_err(|error| error.to_string())
    }

    /// Opens a closed one again, with all below it that were open when it was closed.
    pub(super) async fn resume_agent(&self, above: &ThreadId, agent: &Arc<Agent>) -> Result<(), String> {
        if agent.place != Place::Here {
            return Err(format!("agent {} ran at the host and cannot be opened again", agent.id));
        }
        let above = self.thread(above).map_err(|error| error.to_string())?.look(false).await;
        let most = above.map_err(|error| error.to_string())?.settings.tools.agents.max_threads;
        let was_dismissed = agent.is_dismissed();
        self.inner.agents.readmit(agent, most).map_err(too_many)?;
        let back = self.bring_back(agent).await;
        if back.is_err() {
            agent.close();
            if was_dismissed {
                agent.dismiss();
            }
        }
        back
    }

    /// An agent of this family that only its record knows of.
    pub(super) async fn known_from_record(&self, family: &ThreadId, id: &str) -> Option<Arc<Agent>> {
        let agents = &self.inner.agents;
        if agents.find(id).is_some() {
            // One that works for others is left as it stands.
            return None;
        }
        let wanted = ThreadId::new(id);
        let meta = self.on_disk(move |store| store.read(&wanted)).await.ok()?.ok()?.history.meta?;
        let agent = agents.enter(&meta)?;
        agent.close();
        if !agents.is_below(&agent, family) {
            agents.remove(id);
            return None;
        }
        Some(agent)
    }

    /// What its role makes of an agent, and the instructions it was started with.
    fn as_it_was(&self, settings: &mut ThreadSettings, meta: Option<&SessionMeta>) {
        let Some(meta) = meta else { return };
        let applied = match roles::find(&settings.tools.agents.roles, meta.agent_role.as_deref()) {
            Ok(role) => role.cloned().map_or(Ok(()), |role| self.apply_role(settings, &role)),
            Err(problem) => Err(RuntimeError::Config(problem)),
        };
        if let Err(error) = applied {
            tracing::warn!(%error, thread = %meta.thread_id, "an agent goes on without what its role says");
        }
        settings.base_instructions = meta.base_instructions.as_deref().map(Into::into);
        settings.developer_instructions = meta.developer_instructions.as_deref().map(Into::into);
    }

    /// With what its parent may do now, and what it said and heard before.
    async fn reopen(&self, agent: &Arc<Agent>) -> Result<(), RuntimeError> {
        let id = agent.thread();
        let _opening = self.opening(&id).await;
        if self.loaded(&id).is_some() {
            return Ok(());
        }
        let Family { parent, depth, .. } = agent.family.clone();
        let parent = self.loaded(&parent).ok_or(RuntimeError::UnknownThread(parent))?;
        let snapshot = parent.handle.look(false).await?;
        let wanted = id.clone();
        let resumed = self.on_disk(move |store| store.resume(&wanted)).await??;
        let Resumed { journal, mut history, .. } = resumed;
        let mut children = Adopted::known(&history);
        let late = self.late_news(&id, None, &mut children).await;
        let mut recovered = tell_late(&mut history);
        recovered.extend(recover(&mut history, self.inner.clock.stamp().now_ms));
        recovered.extend(told_now(&mut history, late));
        let config = self.config_of(&snapshot.settings)?;
        let most = snapshot.settings.tools.agents.max_threads;
        let terms = Terms::of_child(&snapshot.settings.host, false);
        let mut settings = snapshot.settings.clone();
        settings.agent_depth = history.meta.as_ref().map_or(depth, depth_of);
        self.as_it_was(&mut settings, history.meta.as_ref());
        if let Some(model) = &history.summary.model {
            settings.model.clone_from(model);
        }
        settings.effort = history.summary.reasoning_effort.or(settings.effort);
        settings.host = Arc::new(HostChoices::of(&history).seated(self.seat(&id, &terms)?));
        settings.dynamic_tools = settings.host.dynamic_tools().unwrap_or_default();
        settings.environments = self.chosen_before(&id, &history);
        let meta = history.meta.clone().unwrap_or_else(|| self.meta(&id, &settings));
        let mut opening = Opening { recovered, ..Opening::new(meta, settings, config) };
        opening.journal = Some(journal);
        opening.transport = Some(parent.transport.clone());
        let History { model, token_usage, told_context, .. } = history;
        let (history, usage, context) = (model, token_usage, told_context);
        let seed = ThreadSeed { history, usage, context, ..terms.seed(id.clone()) };
        self.appear(opening, seed).await?;
        self.adopt(&id, most, children);
        Ok(())
    }
}
