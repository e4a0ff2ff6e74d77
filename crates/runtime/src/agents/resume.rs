//! Agents whose thread is not in memory: after a restart, or after they were closed.

use std::sync::Arc;

use delegation::{
    Agent, AgentPlace, Family, HOST_PREFIX, HostChoices, RecordedChild, Terms, depth_of, recorded_status,
    report_late, reported_now,
};
use environments::stored_choice;
use journal::Resumed;
use protocol::{SessionMeta, ThreadId};
use tools::AgentStatus;

use super::AgentControl;
use super::child_observer::notify_parent;
use super::roles::with_role;
use super::spawn::{child_request, too_many};
use crate::error::RuntimeError;
use crate::open::OpenRequest;
use crate::open::request::{ChildOptions, EnvironmentChoice, RecordSource, RequestedId};
use crate::step::agent_roles::find_role;
use driver::{ThreadSettings, agreed_rules, recover};

impl AgentControl {
    /// Restores the children of a thread that was opened again.
    pub(crate) fn adopt(&self, parent: &ThreadId, most: usize, children: Vec<RecordedChild>) {
        let agents = &self.state.agents;
        // Of closed ones only the name is restored, unless a host may still report about them.
        let wanted = children.into_iter().filter(|child| child.is_open || child.is_away());
        for RecordedChild { id, nickname, away, ended, is_open, heard, account } in wanted {
            if let Some(known) = agents.find_below(&id, parent) {
                self.take_back(&known, most);
                continue;
            }
            let family = agents.family_below(parent, &id);
            let child_ref = id.strip_prefix(HOST_PREFIX).unwrap_or(&id).to_owned();
            let (place, goes_on) = match away {
                Some((delegation_id, goes_on)) => (AgentPlace::Away { delegation_id, child_ref }, goes_on),
                None => (AgentPlace::Here, false),
            };
            let is_away = place != AgentPlace::Here;
            let mut agent = Agent::new(id, family, place);
            agent.nickname = nickname;
            if !goes_on {
                agent.report_nothing();
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

    /// Restores a known agent: it was closed with its parent, or it ended while its parent was not loaded.
    fn take_back(&self, agent: &Arc<Agent>, most: usize) {
        if agent.place == AgentPlace::Here && !agent.is_open() {
            if agent.is_dismissed() {
                return;
            }
            if let Err(most) = self.state.agents.readmit(agent, most) {
                tracing::warn!(agent = %agent.id, most, "an agent stays closed because the limit of open agents is reached");
            }
            return;
        }
        let status = agent.status();
        if status.is_final() && agent.is_awaited() {
            agent.report_nothing();
            notify_parent(&Arc::downgrade(&self.state), agent, &status);
        }
    }

    /// Restores the status of an agent whose thread a client opened with its history.
    pub(crate) fn recall(&self, thread: &ThreadId, past: AgentStatus, goes_on: bool) {
        let Some(agent) = self.state.agents.find(thread.as_str()) else { return };
        if agent.status() == AgentStatus::PendingInit {
            agent.set(past);
        }
        if goes_on {
            agent.begin();
        }
    }

    /// Reads the status of an agent that is not loaded from its record.
    pub(super) async fn learn(&self, agent: &Agent) {
        let id = agent.thread();
        let is_cold = agent.place == AgentPlace::Here
            && agent.is_open()
            && agent.status() == AgentStatus::PendingInit
            && self.state.loaded(&id).is_none();
        if !is_cold {
            return;
        }
        match self.state.on_disk(move |store| store.read(&id)).await {
            Ok(Ok(read)) => agent.set(recorded_status(&read.history.turns)),
            // The keeper of its record has to send it first.
            Ok(Err(_)) | Err(_) => agent.set(AgentStatus::Interrupted),
        }
    }

    /// Opens an agent that was open before a restart, after its ancestors, before anything is sent to it.
    pub(super) async fn bring_back(&self, agent: &Arc<Agent>) -> Result<(), String> {
        if agent.place != AgentPlace::Here || self.state.loaded(&agent.thread()).is_some() {
            return Ok(());
        }
        if let Some(above) = self.state.agents.find(agent.family.parent.as_str()) {
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

    /// Opens a closed agent again, with all below it that were open when it was closed.
    pub(super) async fn resume_agent(&self, above: &ThreadId, agent: &Arc<Agent>) -> Result<(), String> {
        if agent.place != AgentPlace::Here {
            return Err(format!("agent {} ran at the host and cannot be opened again", agent.id));
        }
        let loaded = self.state.loaded(above);
        let above = loaded.ok_or_else(|| RuntimeError::UnknownThread(above.clone()).to_string())?;
        let above = above.handle.snapshot(false).await;
        let most = above.map_err(|error| error.to_string())?.settings.tools.agents.max_threads;
        let was_dismissed = agent.is_dismissed();
        self.state.agents.readmit(agent, most).map_err(too_many)?;
        let back = self.bring_back(agent).await;
        if back.is_err() {
            agent.close();
            if was_dismissed {
                agent.dismiss();
            }
        }
        back
    }

    /// An agent of this family that is known only from its record.
    pub(super) async fn known_from_record(&self, family: &ThreadId, id: &str) -> Option<Arc<Agent>> {
        let agents = &self.state.agents;
        if agents.find(id).is_some() {
            // An agent of another family stays as it is.
            return None;
        }
        let wanted = ThreadId::new(id);
        let meta = self.state.on_disk(move |store| store.read(&wanted)).await.ok()?.ok()?.history.meta?;
        let agent = agents.enter(&meta)?;
        agent.close();
        if !agents.is_below(&agent, family) {
            agents.remove(id);
            return None;
        }
        Some(agent)
    }

    /// Settings with those of its role, and the instructions it was started with.
    async fn as_it_was(&self, settings: ThreadSettings, meta: Option<&SessionMeta>) -> ThreadSettings {
        let Some(meta) = meta else { return settings };
        let role = find_role(&settings.tools.agents.roles, meta.agent_role.as_deref());
        let applied = match role.map(Option::<&_>::cloned) {
            Ok(Some(role)) => with_role(&self.state, settings.clone(), &role).await,
            Ok(None) => Ok(settings.clone()),
            Err(problem) => Err(RuntimeError::Config(problem)),
        };
        let mut settings = applied.unwrap_or_else(|error| {
            tracing::warn!(%error, thread = %meta.thread_id, "an agent continues without the settings of its role");
            settings
        });
        settings.base_instructions = meta.base_instructions.as_deref().map(Into::into);
        settings.developer_instructions = meta.developer_instructions.as_deref().map(Into::into);
        settings
    }

    /// Opens an agent again, with its parent's current permissions and its own history.
    async fn reopen(&self, agent: &Arc<Agent>) -> Result<(), RuntimeError> {
        let id = agent.thread();
        let _opening = self.state.threads.opening(&id).await;
        if self.state.loaded(&id).is_some() {
            return Ok(());
        }
        let Family { parent, depth, .. } = agent.family.clone();
        let parent = self.state.loaded(&parent).ok_or(RuntimeError::UnknownThread(parent))?;
        let snapshot = parent.handle.snapshot(false).await?;
        let wanted = id.clone();
        let resumed = self.state.on_disk(move |store| store.resume(&wanted)).await??;
        let Resumed { journal, mut history, .. } = resumed;
        let mut children = RecordedChild::known(&history);
        let late = self.late_reports(&id, None, &mut children).await;
        let mut recovered = report_late(&mut history);
        let agreed_rules = agreed_rules(&history);
        recovered.extend(recover(&mut history, self.state.now_ms()));
        recovered.extend(reported_now(&mut history, late));
        let most = snapshot.settings.tools.agents.max_threads;
        let mut settings = self.as_it_was(snapshot.settings.clone(), history.meta.as_ref()).await;
        settings.agent_depth = history.meta.as_ref().map_or(depth, depth_of);
        if let Some(model) = &history.summary.model {
            settings.model.clone_from(model);
        }
        settings.effort = history.summary.reasoning_effort.or(settings.effort);
        settings.host = Arc::new(HostChoices::of(&history));
        settings.environments = None;
        let child = ChildOptions {
            settings,
            transport: parent.transport.clone(),
            session_id: parent.identity.meta.session_id.clone(),
            source: parent.identity.meta.source.clone(),
            nickname: agent.nickname.clone(),
            role: agent.role.clone(),
        };
        let terms = Terms::of_child(parent.session.as_deref(), false);
        let existing = RequestedId::Existing(id.clone());
        let request = child_request(existing, &parent, terms, &snapshot.settings, child);
        let environments = stored_choice(history.turn_context.as_ref()).map(EnvironmentChoice::Stored);
        let record = RecordSource::Journal(Box::new(journal));
        self.appear(OpenRequest { history, record, recovered, agreed_rules, environments, ..request })
            .await?;
        self.adopt(&id, most, children);
        Ok(())
    }
}
