//! The agent tools of one thread, carried out.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use engine::SubagentLine;
use futures_util::future::{join_all, select_all};
use protocol::{
    ServerNotification, SubagentPlacement, ThreadId, ThreadStatus, ThreadStatusChangedNotification,
    ToolEffects, TurnId, UserInput,
};
use tokio::sync::oneshot;
use tools::{AgentStatus, SpawnOrder, Spawned};

use super::{Agent, Place};
use crate::audience::BoxFuture;
use crate::error::RuntimeError;
use crate::handle::{Answer, TurnOptions};
use crate::runtime::{Inner, Runtime};
use crate::settings::SettingsChange;

/// The children of a thread.
#[derive(Debug)]
pub(crate) struct Children {
    runtime: Weak<Inner>,
    thread: ThreadId,
}

impl Children {
    pub(crate) fn of(runtime: &Runtime, thread: &ThreadId) -> Self {
        Self { runtime: Arc::downgrade(&runtime.inner), thread: thread.clone() }
    }

    fn runtime(&self) -> Result<Runtime, String> {
        let inner = self.runtime.upgrade().ok_or_else(|| "the runtime is stopping".to_owned())?;
        Ok(Runtime { inner })
    }

    /// One of its own, or of theirs.
    fn find(&self, runtime: &Runtime, id: &str) -> Option<Arc<Agent>> {
        runtime.inner.agents.find_below(id, &self.thread)
    }

    /// One that can be spoken to.
    async fn reach(&self, runtime: &Runtime, id: &str) -> Result<Arc<Agent>, String> {
        let agent = self.find(runtime, id).ok_or_else(|| not_found(id))?;
        if !agent.is_open() {
            return Err(format!("agent {id} is closed: open it with resume_agent first"));
        }
        runtime.bring_back(&agent).await?;
        Ok(agent)
    }

    async fn spawn_child(&self, order: SpawnOrder) -> Result<Spawned, String> {
        let runtime = self.runtime()?;
        runtime.spawn_agent(&self.thread, order).await
    }

    async fn send_to(&self, id: &str, input: Vec<UserInput>, interrupt: bool) -> Result<String, String> {
        let runtime = self.runtime()?;
        let agent = self.reach(&runtime, id).await?;
        if let Place::Away { .. } = &agent.place {
            return runtime.send_away(&agent, input).await;
        }
        runtime.say(&agent, input, interrupt).await
    }

    async fn close_child(&self, id: &str) -> Result<(), String> {
        let runtime = self.runtime()?;
        let agent = self.find(&runtime, id).ok_or_else(|| not_found(id))?;
        agent.dismiss();
        runtime.close_agent(&agent).await;
        Ok(())
    }

    async fn resume_child(&self, id: &str) -> Result<(), String> {
        let runtime = self.runtime()?;
        let agent = match self.find(&runtime, id) {
            Some(agent) if agent.is_open() => return runtime.bring_back(&agent).await,
            Some(agent) => agent,
            None => runtime.known_from_record(&self.thread, id).await.ok_or_else(|| not_found(id))?,
        };
        runtime.resume_agent(&self.thread, &agent).await
    }

    async fn status_of(&self, id: &str) -> AgentStatus {
        let Ok(runtime) = self.runtime() else { return AgentStatus::NotFound };
        let Some(agent) = self.find(&runtime, id) else { return AgentStatus::NotFound };
        runtime.learn(&agent).await;
        agent.status()
    }

    async fn ended(&self, ids: &[String]) -> BTreeMap<String, AgentStatus> {
        let statuses = join_all(ids.iter().map(|id| self.status_of(id))).await;
        let known = ids.iter().cloned().zip(statuses);
        known.filter(|(_, status)| status.is_final()).collect()
    }

    async fn until_ended(&self, ids: &[String]) -> BTreeMap<String, AgentStatus> {
        loop {
            let mut watches: Vec<_> = match self.runtime() {
                Ok(runtime) => {
                    ids.iter().filter_map(|id| self.find(&runtime, id)).map(|agent| agent.watch()).collect()
                }
                Err(_) => return BTreeMap::new(),
            };
            let ended = self.ended(ids).await;
            if !ended.is_empty() {
                return ended;
            }
            let changes: Vec<_> = watches.iter_mut().map(|watch| Box::pin(watch.changed())).collect();
            // Without any, one came to be known just now.
            if !changes.is_empty() {
                let _ = select_all(changes).await;
            }
        }
    }
}

impl tools::Agents for Children {
    fn roster(&self) -> Arc<[SubagentLine]> {
        let Ok(runtime) = self.runtime() else { return Arc::new([]) };
        let open = runtime.inner.agents.open_children(&self.thread);
        open.iter()
            .map(|agent| SubagentLine { id: agent.id.clone(), nickname: agent.nickname.clone() })
            .collect()
    }

    fn check<'a>(&'a self, order: &'a SpawnOrder) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move { self.runtime()?.check_spawn(&self.thread, order).await })
    }

    fn spawn_effects(&self) -> ToolEffects {
        let seat = self.runtime().ok().and_then(|runtime| runtime.inner.delegation.seat(&self.thread));
        match seat.and_then(|seat| seat.effective().subagents) {
            // A host that is asked again for the same child says where it is.
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

impl Runtime {
    /// The turn that takes it up, begun or joined.
    pub(super) async fn say(
        &self,
        agent: &Arc<Agent>,
        input: Vec<UserInput>,
        interrupt: bool,
    ) -> Result<String, String> {
        let thread = self.thread(&agent.thread()).map_err(|error| error.to_string())?;
        if interrupt {
            // One that does nothing need not be stopped.
            let _ = thread.interrupt(None).await;
        }
        let text = self.read_input(&thread, None, input).await.map_err(|error| error.to_string())?;
        let turn_id = self.new_turn_id();
        let options = TurnOptions {
            turn_id: turn_id.clone(),
            text,
            output_schema: None,
            change: SettingsChange::default(),
            service_tier: None,
        };
        let (told, wait) = oneshot::channel();
        let begins = agent.clone();
        // Called between the child's own events: what it told of an earlier turn is behind it.
        let answer = Answer::new(move |taken: Result<TurnId, RuntimeError>| {
            if taken.as_ref().is_ok_and(|taken| *taken == turn_id) {
                begins.begin();
            }
            let _ = told.send(taken);
        });
        thread.start_turn_then(options, answer).await;
        let taken = wait.await.unwrap_or_else(|_| Err(RuntimeError::Gone(agent.thread())));
        taken.map(|turn| turn.to_string()).map_err(|error| error.to_string())
    }

    /// Ends an agent and everything below it. Those at the host come first, while who started them can still write it
    /// down; of the others the deepest come last, so that nothing is started again meanwhile.
    pub(super) async fn close_agent(&self, agent: &Arc<Agent>) {
        let mut below = vec![agent.clone()];
        let mut at = 0;
        while let Some(next) = below.get(at).cloned() {
            let children = self.inner.agents.open_children(&next.thread()).into_iter();
            let new: Vec<_> = children.filter(|child| below.iter().all(|one| one.id != child.id)).collect();
            below.extend(new);
            at += 1;
        }
        below.sort_by_key(|agent| agent.place == Place::Here);
        for agent in below {
            match &agent.place {
                Place::Away { .. } => self.cancel_away(&agent).await,
                Place::Here => self.unload_agent(&agent).await,
                Place::Asked(_) => {}
            }
            agent.close();
        }
    }

    async fn unload_agent(&self, agent: &Agent) {
        let id = agent.thread();
        if let Ok(thread) = self.thread(&id) {
            // Closed means stopped, and not put away for somebody to take up. One that does nothing need not be.
            let _ = thread.interrupt(None).await;
        }
        match self.unload(&id).await {
            Ok(true) => {
                let told = ThreadStatusChangedNotification {
                    thread_id: id.clone(),
                    status: ThreadStatus::NotLoaded,
                };
                self.inner.audience.tell(&id, ServerNotification::ThreadStatusChanged(told)).await;
                self.inner.audience.left(&id);
            }
            Ok(false) => {}
            Err(error) => tracing::warn!(%error, thread = %id, "an agent did not stop"),
        }
    }
}
