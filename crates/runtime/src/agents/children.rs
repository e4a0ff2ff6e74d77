//! The agent tools of one thread.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use engine::SubagentLine;
use futures_util::future::{join_all, select_all};
use protocol::{
    ServerNotification, SubagentPlacement, ThreadId, ThreadStatus, ThreadStatusChangedNotification,
    ToolEffects, TurnId, UserInput,
};
use support::Responder;
use tokio::sync::oneshot;
use tools::{AgentStatus, SpawnOrder, Spawned};

use super::AgentControl;
use crate::error::RuntimeError;
use crate::open::close::unload;
use crate::state::RuntimeState;
use delegation::{Agent, AgentPlace};
use driver::{BoxFuture, SettingsChange, ThreadError, TurnOptions};

/// The children of a thread.
#[derive(Debug)]
pub(crate) struct Children {
    state: Weak<RuntimeState>,
    thread: ThreadId,
}

impl Children {
    pub(crate) fn of(state: &Arc<RuntimeState>, thread: &ThreadId) -> Self {
        Self { state: Arc::downgrade(state), thread: thread.clone() }
    }

    fn control(&self) -> Result<AgentControl, String> {
        let state = self.state.upgrade().ok_or_else(|| "the runtime is stopping".to_owned())?;
        Ok(AgentControl { state })
    }

    /// A direct or indirect child.
    fn find(&self, control: &AgentControl, id: &str) -> Option<Arc<Agent>> {
        control.state.agents.find_below(id, &self.thread)
    }

    /// A child that can get input.
    async fn reach(&self, control: &AgentControl, id: &str) -> Result<Arc<Agent>, String> {
        let agent = self.find(control, id).ok_or_else(|| not_found(id))?;
        if !agent.is_open() {
            return Err(format!("agent {id} is closed: open it with resume_agent first"));
        }
        control.bring_back(&agent).await?;
        Ok(agent)
    }

    async fn spawn_child(&self, order: SpawnOrder) -> Result<Spawned, String> {
        let control = self.control()?;
        control.spawn_agent(&self.thread, order).await
    }

    async fn send_to(&self, id: &str, input: Vec<UserInput>, interrupt: bool) -> Result<String, String> {
        let control = self.control()?;
        let agent = self.reach(&control, id).await?;
        if let AgentPlace::Away { .. } = &agent.place {
            return control.send_away(&agent, input).await;
        }
        control.say(&agent, input, interrupt).await
    }

    async fn close_child(&self, id: &str) -> Result<(), String> {
        let control = self.control()?;
        let agent = self.find(&control, id).ok_or_else(|| not_found(id))?;
        agent.dismiss();
        control.close_agent(&agent).await;
        Ok(())
    }

    async fn resume_child(&self, id: &str) -> Result<(), String> {
        let control = self.control()?;
        let agent = match self.find(&control, id) {
            Some(agent) if agent.is_open() => return control.bring_back(&agent).await,
            Some(agent) => agent,
            None => control.known_from_record(&self.thread, id).await.ok_or_else(|| not_found(id))?,
        };
        control.resume_agent(&self.thread, &agent).await
    }

    async fn status_of(&self, id: &str) -> AgentStatus {
        let Ok(control) = self.control() else { return AgentStatus::NotFound };
        let Some(agent) = self.find(&control, id) else { return AgentStatus::NotFound };
        control.learn(&agent).await;
        agent.status()
    }

    async fn ended(&self, ids: &[String]) -> BTreeMap<String, AgentStatus> {
        let statuses = join_all(ids.iter().map(|id| self.status_of(id))).await;
        let known = ids.iter().cloned().zip(statuses);
        known.filter(|(_, status)| status.is_final()).collect()
    }

    async fn until_ended(&self, ids: &[String]) -> BTreeMap<String, AgentStatus> {
        loop {
            let mut watches: Vec<_> = match self.control() {
                Ok(control) => {
                    ids.iter().filter_map(|id| self.find(&control, id)).map(|agent| agent.watch()).collect()
                }
                Err(_) => return BTreeMap::new(),
            };
            let ended = self.ended(ids).await;
            if !ended.is_empty() {
                return ended;
            }
            let changes: Vec<_> = watches.iter_mut().map(|watch| Box::pin(watch.changed())).collect();
            // Without a watch, an agent was added just now: check again.
            if !changes.is_empty() {
                let _ = select_all(changes).await;
            }
        }
    }
}

impl tools::ChildAgents for Children {
    fn roster(&self) -> Arc<[SubagentLine]> {
        let Ok(control) = self.control() else { return Arc::new([]) };
        let open = control.state.agents.open_children(&self.thread);
        open.iter()
            .map(|agent| SubagentLine { id: agent.id.clone(), nickname: agent.nickname.clone() })
            .collect()
    }

    fn check<'a>(&'a self, order: &'a SpawnOrder) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move { self.control()?.check_spawn(&self.thread, order).await })
    }

    fn spawn_effects(&self) -> ToolEffects {
        let session = self.control().ok().and_then(|control| control.state.delegation.session(&self.thread));
        match session.and_then(|session| session.effective().subagents) {
            // A host that is asked again for the same child returns the same one.
            Some(SubagentPlacement::Host) => ToolEffects::Idempotent,
            Some(SubagentPlacement::Runtime) | None => ToolEffects::Once,
        }
    }

    fn spawn(&self, order: SpawnOrder) -> BoxFuture<'_, Result<Spawned, String>> {
        Box::pin(self.spawn_child(order))
    }

    fn send<'a>(
        &'a self,
        id: &'a str,
        input: Vec<UserInput>,
        interrupt: bool,
    ) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(self.send_to(id, input, interrupt))
    }

    fn resume<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(self.resume_child(id))
    }

    fn close<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(self.close_child(id))
    }

    fn status<'a>(&'a self, id: &'a str) -> BoxFuture<'a, AgentStatus> {
        Box::pin(self.status_of(id))
    }

    fn wait<'a>(
        &'a self,
        ids: &'a [String],
        limit: Duration,
    ) -> BoxFuture<'a, BTreeMap<String, AgentStatus>> {
        Box::pin(async move { tokio::time::timeout(limit, self.until_ended(ids)).await.unwrap_or_default() })
    }
}

fn not_found(id: &str) -> String {
    format!("agent with id {id} not found: use the agent_id that spawn_agent gave")
}

impl AgentControl {
    /// Sends input. Returns the turn that gets it, new or running.
    pub(super) async fn say(
        &self,
        agent: &Arc<Agent>,
        input: Vec<UserInput>,
        interrupt: bool,
    ) -> Result<String, String> {
        let loaded = self.state.loaded(&agent.thread());
        let thread = loaded.ok_or_else(|| RuntimeError::UnknownThread(agent.thread()).to_string())?.handle;
        if interrupt {
            // An idle child need not be stopped.
            let _ = thread.interrupt(None).await;
        }
        let text = self.state.read_input(&thread, None, input).await.map_err(|error| error.to_string())?;
        let turn_id = self.state.new_turn_id();
        let options = TurnOptions {
            turn_id: turn_id.clone(),
            text,
            output_schema: None,
            change: SettingsChange::default(),
            service_tier: None,
        };
        let (told, wait) = oneshot::channel();
        let begins = agent.clone();
        // Runs between the child's events: notifications of its earlier turns came before.
        let answer = Responder::new(move |taken: Result<TurnId, ThreadError>| {
            if taken.as_ref().is_ok_and(|taken| *taken == turn_id) {
                begins.begin();
            }
            let _ = told.send(taken);
        });
        thread.start_turn_then(options, answer).await;
        let taken = wait.await.unwrap_or_else(|_| Err(ThreadError::Gone(agent.thread())));
        taken.map(|turn| turn.to_string()).map_err(|error| error.to_string())
    }

    /// Closes an agent and all below it. First those at the host, while their parent can still record the end; then the
    /// others, parents before children, so that none is started again meanwhile.
    pub(super) async fn close_agent(&self, agent: &Arc<Agent>) {
        let mut below = vec![agent.clone()];
        let mut at = 0;
        while let Some(next) = below.get(at).cloned() {
            let children = self.state.agents.open_children(&next.thread()).into_iter();
            let new: Vec<_> = children.filter(|child| below.iter().all(|one| one.id != child.id)).collect();
            below.extend(new);
            at += 1;
        }
        below.sort_by_key(|agent| agent.place == AgentPlace::Here);
        for agent in below {
            match &agent.place {
                AgentPlace::Away { .. } => self.cancel_away(&agent).await,
                AgentPlace::Here => self.unload_agent(&agent).await,
                AgentPlace::Asked(_) => {}
            }
            agent.close();
        }
    }

    async fn unload_agent(&self, agent: &Agent) {
        let id = agent.thread();
        if let Some(loaded) = self.state.loaded(&id) {
            // The turn is interrupted and not suspended, so that nobody resumes it. Fails for an idle agent.
            let _ = loaded.handle.interrupt(None).await;
        }
        match unload(&self.state, &id).await {
            Ok(true) => {
                let told = ThreadStatusChangedNotification {
                    thread_id: id.clone(),
                    status: ThreadStatus::NotLoaded,
                };
                self.state.audience.notify(&id, ServerNotification::ThreadStatusChanged(told)).await;
                self.state.audience.left(&id);
            }
            Ok(false) => {}
            Err(error) => tracing::warn!(%error, thread = %id, "an agent did not stop"),
        }
    }
}
