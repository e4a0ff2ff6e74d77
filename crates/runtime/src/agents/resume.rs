//! Agents whose thread is not in memory: after a restart, or after they were closed.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::ThreadSeed;
use journal::{History, Resumed};
use protocol::{
    CollabAgentState, CollabAgentStatus, CollabAgentTool, CollabAgentToolCallStatus, FunctionCallOutputBody,
    ItemId, OperationId, ResponseItem, ThreadId, ThreadItem, TurnId,
};
use serde_json::Value;
use tools::AgentStatus;

use super::away_record::{HOST_PREFIX, still_away, tell_late, told_status};
use super::overheard::tell_parent;
use super::spawn::{recorded_status, too_many};
use super::{Agent, Family, Place, depth_of};
use crate::delegation::Terms;
use crate::error::RuntimeError;
use crate::host_choices::HostChoices;
use crate::open::Opening;
use crate::recover::recover;
use crate::runtime::Runtime;

/// A child that a parent's record says is open.
#[derive(Debug)]
pub(crate) struct Adopted {
    id: String,
    nickname: Option<String>,
    /// Of one that the host runs: its operation, and whether that goes on.
    away: Option<(OperationId, bool)>,
    /// How such a one ended.
    ended: Option<AgentStatus>,
    is_open: bool,
}

impl Adopted {
    /// The children that this thread spawned, or opened again, and did not close.
    #[cfg(test)]
    fn of(history: &History) -> Vec<Self> {
        Self::all(history).into_iter().filter(|(_, is_open)| *is_open).map(|(child, _)| child).collect()
    }

    /// The children that this thread spawned, or opened again, and did not close; with those at the host that it did:
    /// the host may still say what became of them.
    pub(crate) fn known(history: &History) -> Vec<Self> {
        let known = Self::all(history).into_iter();
        let wanted = known.filter(|(child, is_open)| *is_open || child.away.is_some());
        wanted.map(|(child, is_open)| Self { is_open, ..child }).collect()
    }

    /// Everyone this thread spawned, each with whether it is open.
    fn all(history: &History) -> Vec<(Self, bool)> {
        let mut children: Vec<(Self, bool)> = Vec::new();
        for (turn, call) in calls_in(history) {
            for child in call.receivers {
                let known = children.iter_mut().find(|(known, _)| known.id == child.as_str());
                match (call.tool, known) {
                    (CollabAgentTool::SpawnAgent, None) if call.is_done(child) => {
                        let place = (call.sender, turn, call.id.as_str());
                        children.push((Self::found(history, place, child), true));
                    }
                    // The host gave the name of one that had ended to another.
                    (CollabAgentTool::SpawnAgent, Some(known)) if call.is_done(child) => {
                        let place = (call.sender, turn, call.id.as_str());
                        *known = (Self::found(history, place, child), true);
                    }
                    (CollabAgentTool::ResumeAgent, Some(known)) if call.is_done(child) => known.1 = true,
                    (CollabAgentTool::CloseAgent, Some(known)) if call.is_done(child) => known.1 = false,
                    _ => {}
                }
            }
        }
        children
    }

    /// Whether this thread closed such a child, and has not opened it since.
    pub(super) fn is_closed(history: &History, id: &str) -> bool {
        Self::all(history).iter().any(|(child, is_open)| child.id == id && !is_open)
    }

    fn found(history: &History, call: (&ThreadId, &TurnId, &str), child: &ThreadId) -> Self {
        let (thread, turn, call_id) = call;
        let away = child.as_str().starts_with(HOST_PREFIX).then(|| {
            let operation = engine::operation_of(thread, turn, call_id);
            let goes_on = still_away(history, &operation);
            (operation, goes_on)
        });
        let ended = away.as_ref().and_then(|_| told_status(&history.model, child.as_str()));
        Self {
            id: child.to_string(),
            nickname: nickname_in(&history.model, call_id),
            away,
            ended,
            is_open: true,
        }
    }
}

/// One use of a tool for agents.
struct Call<'a> {
    id: &'a ItemId,
    sender: &'a ThreadId,
    tool: CollabAgentTool,
    receivers: &'a [ThreadId],
    status: CollabAgentToolCallStatus,
    states: &'a BTreeMap<String, CollabAgentState>,
}

impl Call<'_> {
    /// Whether it did what it was for. One that is shown as failed because of how the agent stood did.
    fn is_done(&self, child: &ThreadId) -> bool {
        let stood = self.states.get(child.as_str()).map(|state| state.status);
        match self.status {
            CollabAgentToolCallStatus::Completed => true,
            CollabAgentToolCallStatus::Failed => stood == Some(CollabAgentStatus::Errored),
            CollabAgentToolCallStatus::InProgress => false,
        }
    }
}

/// This thread's own, oldest first: a copy of another's past has that one's children in it, and they stay there.
fn calls_in(history: &History) -> impl Iterator<Item = (&TurnId, Call<'_>)> {
    let own = history.meta.as_ref().map(|meta| &meta.thread_id);
    let items = history.turns.iter().flat_map(|turn| turn.items.iter().map(move |item| (&turn.id, item)));
    let calls = items.filter_map(|(turn, item)| match item {
        ThreadItem::CollabAgentToolCall {
            id,
            tool,
            status,
            sender_thread_id: sender,
            receiver_thread_ids: receivers,
            agents_states: states,
            ..
        } => Some((turn, Call { id, sender, tool: *tool, receivers, status: *status, states })),
        _ => None,
    });
    calls.filter(move |(_, call)| own.is_none_or(|own| own == call.sender))
}

/// What the model was told that its child is called.
fn nickname_in(model: &[ResponseItem], wanted: &str) -> Option<String> {
    let output = model.iter().find_map(|item| match item {
        ResponseItem::FunctionCallOutput { call_id, output: FunctionCallOutputBody::Text(text) }
            if call_id == wanted =>
        {
            Some(text)
        }
        _ => None,
    })?;
    let told: Value = serde_json::from_str(output).ok()?;
    told["nickname"].as_str().map(str::to_owned)
}

impl Runtime {
    /// A thread that is back in memory has its children again.
    pub(crate) fn adopt(&self, parent: &ThreadId, most: usize, children: Vec<Adopted>) {
        let agents = &self.inner.agents;
        for Adopted { id, nickname, away, ended, is_open } in children {
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
            *agent.is_awaited.get_mut() = goes_on;
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

    /// An agent that was open before a restart is in memory again before anything is asked of it.
    pub(super) async fn bring_back(&self, agent: &Arc<Agent>) -> Result<(), String> {
        if agent.place != Place::Here || self.loaded(&agent.thread()).is_some() {
            return Ok(());
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
        self.inner.agents.readmit(agent, most).map_err(too_many)?;
        let back = self.bring_back(agent).await;
        if back.is_err() {
            agent.close();
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
        let children = Adopted::known(&history);
        let mut recovered = tell_late(&mut history);
        recovered.extend(recover(&mut history, self.inner.clock.stamp().now_ms));
        let config = self.config_of(&snapshot.settings)?;
        let most = snapshot.settings.tools.agents.max_threads;
        let terms = Terms::of_child(&snapshot.settings.host, false);
        let mut settings = snapshot.settings.clone();
        settings.agent_depth = history.meta.as_ref().map_or(depth, depth_of);
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

#[cfg(test)]
mod tests {
    use super::super::testing::{PARENT, Story};
    use super::*;

    fn open(story: &Story) -> Vec<(String, Option<String>)> {
        let children = Adopted::of(&story.history()).into_iter();
        children.map(|child| (child.id, child.nickname)).collect()
    }

    fn named(ids: &[&str]) -> Vec<(String, Option<String>)> {
        ids.iter().map(|id| ((*id).to_owned(), Some(format!("{id} by name")))).collect()
    }

    const DONE: (&str, &str) = ("completed", "completed");

    #[test]
    fn children_that_were_spawned_are_there_until_they_are_closed() {
        let story = Story::new().spawns("c1", "a").spawns("c2", "b").end();
        assert_eq!(open(&story), named(&["a", "b"]));
        let closed = story.turn("u2").uses("closeAgent", "c3", "a", DONE);
        assert_eq!(open(&closed), named(&["b"]));
        let again = closed.uses("resumeAgent", "c4", "a", ("completed", "pendingInit"));
        assert_eq!(open(&again), named(&["a", "b"]), "with the name it had");
        assert_eq!(open(&again.uses("closeAgent", "c5", "a", DONE)), named(&["b"]));
    }

    #[test]
    fn one_that_had_failed_is_closed_though_the_call_is_shown_as_failed() {
        let story = Story::new().spawns("c1", "a");
        let closed = story.clone().uses("closeAgent", "c2", "a", ("failed", "errored"));
        assert!(open(&closed).is_empty());
        assert!(Adopted::is_closed(&closed.history(), "a") && !Adopted::is_closed(&story.history(), "a"));
    }

    #[test]
    fn calls_that_did_nothing_change_nothing() {
        let story = Story::new().spawns("c1", "a");
        for (tool, stood) in [
            ("closeAgent", ("failed", "notFound")),
            ("closeAgent", ("failed", "")),
            ("closeAgent", ("inProgress", "")),
            ("sendInput", ("completed", "running")),
            ("wait", DONE),
        ] {
            let story = story.clone().uses(tool, "c2", "a", stood);
            assert_eq!(open(&story), named(&["a"]), "{tool} {stood:?}");
        }
        let failed = Story::new().uses("spawnAgent", "c1", "a", ("failed", ""));
        assert!(open(&failed).is_empty());
        let closed = story.uses("closeAgent", "c2", "a", DONE);
        assert!(open(&closed.uses("resumeAgent", "c3", "a", ("failed", "shutdown"))).is_empty());
    }

    #[test]
    fn children_of_children_and_of_others_are_not_its_own() {
        let story = Story::new().spawns("c1", "a").uses("resumeAgent", "c2", "below-a", DONE);
        assert_eq!(open(&story), named(&["a"]));
        // As in a fork: the past is another thread's, and so are the children in it.
        let copied = Story::new().uses_from("another", "spawnAgent", ("c1", "a"), DONE);
        assert!(open(&copied).is_empty());
    }

    fn away(story: &Story) -> Vec<(String, bool)> {
        let children = Adopted::of(&story.history()).into_iter();
        let away = children.map(|child| child.away.expect("at the host"));
        away.map(|(operation, goes_on)| (operation.to_string(), goes_on)).collect()
    }

    #[test]
    fn one_at_the_host_is_found_with_its_operation() {
        let story = Story::new().spawns("c1", "host:x");
        let operation = format!("{PARENT}:u1:c1");
        assert_eq!(away(&story), [(operation.clone(), true)]);
        let later = story.clone().end().turn("u2").end();
        assert_eq!(away(&later), [(operation.clone(), true)], "it goes on after its turn");
        let ended = later.finishes_as(OperationId::new(operation.as_str()), true, Some("found it"));
        assert_eq!(away(&ended), [(operation.clone(), false)]);
        let asked_for = story.end().turn("u2").uses("resumeAgent", "c2", "host:x", ("completed", "running"));
        assert_eq!(away(&asked_for), [(operation, true)], "one that is open stays what it was");
    }

    #[test]
    fn the_name_of_one_that_was_closed_can_be_given_again() {
        let story = Story::new().spawns("c1", "host:x").finishes("c1", false, Some("closed"));
        let story = story.uses("closeAgent", "c2", "host:x", ("completed", "running")).end();
        assert!(away(&story).is_empty());
        let again = story.turn("u2").spawns("c3", "host:x");
        assert_eq!(away(&again), [(format!("{PARENT}:u2:c3"), true)]);
    }

    #[test]
    fn without_the_output_there_is_no_nickname() {
        let story = Story::new().uses("spawnAgent", "c1", "a", ("completed", "pendingInit"));
        assert_eq!(open(&story), [("a".to_owned(), None)]);
        assert_eq!(open(&story.answers("c1", "no JSON".to_owned())), [("a".to_owned(), None)]);
    }
}
