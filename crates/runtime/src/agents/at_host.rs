//! Children that the host runs: placing them, and their results. Such a child is an operation that outlives its call,
//! so it survives restarts of either process.

use std::sync::Arc;
use std::time::Duration;

use engine::{ChildEnd, OperationEnd};
use protocol::{
    DelegatedHistory, DelegationCancelParams, DelegationHints, DelegationInputParams, DelegationLimits,
    DelegationParent, DelegationProgressNotification, DelegationRequestParams, DelegationRequestResponse,
    DelegationResultParams, DelegationResultResponse, DelegationStatus, DynamicToolCallOutputContentItem,
    HistoryRef, OperationId, UserInput,
};
use serde_json::json;
use tools::{AgentStatus, Spawned};

use super::AgentControl;
use super::spawn::{SpawnPlan, too_many};
use crate::error::RuntimeError;
use crate::open::pipeline::check_unused;
use delegation::{
    Agent, AgentPlace, AgentRegistry, DelegationError, Family, HOST_PREFIX, HostError, HostId, HostSession,
    result_status,
};
use driver::check_thread_id;

/// Limit of the id that a host gives a child.
const LONGEST_REF: usize = 256;

/// How long a result waits for the response that places its child.
const SETTLING_LIMIT: Duration = Duration::from_secs(5);

/// How long a host may take to confirm that it stops a child.
const CANCEL_LIMIT: Duration = Duration::from_secs(10);

/// A reserved slot among the open agents, freed unless a child takes it.
struct ReservedPlace<'a> {
    agents: &'a AgentRegistry,
    agent: Arc<Agent>,
}

impl Drop for ReservedPlace<'_> {
    fn drop(&mut self) {
        self.agents.give_back(&self.agent);
    }
}

impl AgentControl {
    pub(super) async fn spawn_where_the_host_says(
        &self,
        plan: SpawnPlan,
        session: &Arc<HostSession>,
    ) -> Result<Spawned, String> {
        let (most, delegation_id) = (plan.settings.tools.agents.max_threads, plan.delegation_id());
        let agents = &self.state.agents;
        if let Some(known) = agents.with_delegation(&delegation_id).filter(|agent| !agent.is_asked_for()) {
            // The call is repeated, and its child exists already.
            return Ok(plan.spawned_away(&known));
        }
        // The slot stays reserved while the host decides.
        let family = agents.family_below(plan.parent.handle.id(), delegation_id.as_str());
        let waiting = Agent::new(delegation_id.to_string(), family.clone(), AgentPlace::Asked(delegation_id));
        let held = ReservedPlace { agents, agent: agents.admit(waiting, most).map_err(too_many)? };
        match ask_where(session, plan.request(&family)).await {
            Ok(DelegationRequestResponse::Runtime { child_thread_id }) => {
                drop(held);
                let refused = |error: RuntimeError| format!("no agent was started: {error}");
                let id = check_thread_id(&child_thread_id).map_err(|error| refused(error.into()))?;
                check_unused(&self.state, &id).await.map_err(refused)?;
                self.spawn_here(plan, id).await
            }
            Ok(DelegationRequestResponse::Host { child_ref }) => self.settle_away(&plan, child_ref),
            Ok(DelegationRequestResponse::Rejected { message }) => {
                Err(format!("no agent was started: {message}"))
            }
            Err(error) => Err(format!("no agent was started: {error}")),
        }
    }

    /// The host accepted the child. When asked again after a restart, it returns the same child.
    fn settle_away(&self, plan: &SpawnPlan, child_ref: String) -> Result<Spawned, String> {
        if child_ref.trim().is_empty() || child_ref.len() > LONGEST_REF {
            return Err("no agent was started: the host gave it no usable name".to_owned());
        }
        let id = format!("{HOST_PREFIX}{child_ref}");
        let place = AgentPlace::Away { delegation_id: plan.delegation_id(), child_ref };
        let family = self.state.agents.family_below(plan.parent.handle.id(), &id);
        let mut agent = Agent::new(id, family, place);
        if self.state.agents.has_namesake(&agent) {
            return Err("no agent was started: the host gave it the name of another".to_owned());
        }
        (agent.nickname, agent.role) = (plan.nickname.clone(), plan.order.role.clone());
        agent.set(AgentStatus::Running);
        Ok(plan.spawned_away(&self.state.agents.add(agent)))
    }

    pub(super) async fn send_away(&self, agent: &Agent, input: Vec<UserInput>) -> Result<String, String> {
        let (session, delegation_id, child_ref) = self.session_of(agent).ok_or("its host is gone")?;
        if agent.status().is_final() {
            return Err(format!("agent {} has finished: start another one", agent.id));
        }
        let params = DelegationInputParams { delegation_id: delegation_id.clone(), child_ref, input };
        let sent = session.host().delegate_input(agent.family.parent.clone(), params).await;
        sent.map_err(|error| error.to_string())?;
        Ok(delegation_id.to_string())
    }

    /// Asks the host to stop it. Later reports about it are ignored.
    pub(super) async fn cancel_away(&self, agent: &Agent) {
        if agent.status().is_final() {
            return;
        }
        let Some((session, delegation_id, child_ref)) = self.session_of(agent) else { return };
        agent.report_nothing();
        let reason = Some("the agent that started it closed it".to_owned());
        let params = DelegationCancelParams { delegation_id: delegation_id.clone(), child_ref, reason };
        let parent = agent.family.parent.clone();
        let confirmed = session.host().delegate_cancel(parent.clone(), params);
        match tokio::time::timeout(CANCEL_LIMIT, confirmed).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, agent = %agent.id, "a host did not confirm that it stops an agent");
            }
            Err(_) => {
                tracing::warn!(agent = %agent.id, "a host did not confirm in time that it stops an agent");
            }
        }
        let _opening = self.state.threads.opening(&agent.thread()).await;
        if agent.status().is_final() {
            // The host reported its end before it answered.
            return;
        }
        let output = vec![text("closed")];
        let operation = Some(OperationEnd { operation_id: delegation_id, success: false, output });
        let end = ChildEnd { id: agent.id.clone(), turn_id: None, status: None, operation };
        if let Some(parent) = self.state.loaded(&parent)
            && let Err(error) = parent.handle.child_ended(end).await
        {
            tracing::warn!(%error, agent = %agent.id, "the end of an agent could not be recorded");
        }
    }

    fn session_of(&self, agent: &Agent) -> Option<(Arc<HostSession>, OperationId, String)> {
        let AgentPlace::Away { delegation_id, child_ref } = &agent.place else { return None };
        let session = self.state.delegation.session(&agent.family.parent)?;
        Some((session, delegation_id.clone(), child_ref.clone()))
    }

    /// Takes the result of a child that the host ran. Responds when it is recorded; a repetition changes nothing.
    pub(crate) async fn delegation_result(
        &self,
        from: HostId,
        params: DelegationResultParams,
    ) -> Result<DelegationResultResponse, RuntimeError> {
        let agent = self.settled_agent(from, &params.delegation_id).await?;
        if let (Some(given), AgentPlace::Away { child_ref, .. }) = (&params.child_ref, &agent.place)
            && given != child_ref
        {
            let problem = format!("must be `{child_ref}`, as it was when the child was taken");
            return Err(invalid("unknownDelegation", "childRef", problem));
        }
        // One at a time: a result that is acknowledged must be recorded.
        let _opening = self.state.threads.opening(&agent.thread()).await;
        if agent.status().is_final() {
            return Ok(DelegationResultResponse { duplicate: true });
        }
        let status = result_status(&params);
        let operation = Some(OperationEnd {
            operation_id: params.delegation_id,
            success: params.status == DelegationStatus::Completed,
            output: match params.output.is_empty() {
                true => params.final_message.map(text).into_iter().collect(),
                false => params.output,
            },
        });
        // The end of a child that is being closed is not reported to the model.
        let told = agent.is_awaited().then(|| json!(status));
        let end = ChildEnd { id: agent.id.clone(), turn_id: None, status: told, operation };
        let parent = &agent.family.parent;
        let loaded = self.state.loaded(parent).ok_or_else(|| RuntimeError::UnknownThread(parent.clone()))?;
        loaded.handle.child_ended(end).await?;
        agent.end(None, status);
        Ok(DelegationResultResponse { duplicate: false })
    }

    /// Progress is only logged; the parent's model gets the result.
    pub(crate) fn delegation_progress(
        &self,
        from: HostId,
        params: &DelegationProgressNotification,
    ) -> Result<(), RuntimeError> {
        let agent = self.delegated_agent(from, &params.delegation_id)?;
        tracing::debug!(agent = %agent.id, message = params.message.as_deref(), "an agent at the host reported progress");
        Ok(())
    }

    /// The agent of an operation. Waits for its placement, because the result may arrive before the placement response.
    async fn settled_agent(&self, from: HostId, id: &OperationId) -> Result<Arc<Agent>, RuntimeError> {
        let agent = self.delegated_agent(from, id)?;
        if !agent.is_asked_for() {
            return Ok(agent);
        }
        let mut watch = agent.watch();
        // On a timeout, the check below decides.
        let _ = tokio::time::timeout(SETTLING_LIMIT, watch.wait_for(AgentStatus::is_final)).await;
        self.delegated_agent(from, id).and_then(|agent| match agent.is_asked_for() {
            true => Err(unknown(id)),
            false => Ok(agent),
        })
    }

    fn delegated_agent(&self, from: HostId, id: &OperationId) -> Result<Arc<Agent>, RuntimeError> {
        let agent = self.state.agents.with_delegation(id).ok_or_else(|| unknown(id))?;
        let parent = &agent.family.parent;
        let session = self.state.delegation.session(parent).ok_or_else(|| unknown(id))?;
        if session.host().id() != from {
            return Err(DelegationError::NotTheHost(parent.to_string()).into());
        }
        Ok(agent)
    }
}

impl SpawnPlan {
    fn spawned_away(&self, agent: &Agent) -> Spawned {
        let (model, effort) = (self.settings.model.clone(), self.settings.effort);
        Spawned { id: agent.id.clone(), nickname: agent.nickname.clone(), model, effort, is_away: true }
    }

    pub(super) fn delegation_id(&self) -> OperationId {
        engine::operation_of(self.parent.handle.id(), &self.order.turn_id, &self.order.call_id)
    }

    fn request(&self, family: &Family) -> DelegationRequestParams {
        let Self { order, settings, snapshot, .. } = self;
        let next = snapshot.next_ordinal.filter(|next| *next > 0 && order.with_history);
        let above = family.path.len().saturating_sub(1);
        DelegationRequestParams {
            delegation_id: self.delegation_id(),
            parent: DelegationParent {
                thread_id: family.parent.clone(),
                turn_id: order.turn_id.clone(),
                call_id: order.call_id.clone(),
                agent_path: family.path[..above].to_vec(),
                depth: family.depth.saturating_sub(1),
            },
            role: order.role.clone(),
            nickname: self.nickname.clone(),
            instructions: settings.developer_instructions.as_deref().map(str::to_owned),
            input: order.input.clone(),
            history: if order.with_history { DelegatedHistory::Full } else { DelegatedHistory::None },
            history_ref: next.map(|next| HistoryRef { from_ordinal: 0, to_ordinal: next - 1 }),
            tool_set: settings.host.tool_set.as_deref().cloned(),
            hints: DelegationHints {
                cwd: Some(settings.cwd.clone()),
                sandbox: Some(settings.sandbox.clone()),
                model: Some(settings.model.clone()),
                effort: settings.effort,
                environment_id: order.step.primary().filter(|one| one.is_chosen).map(|one| one.id.clone()),
            },
            limits: DelegationLimits {
                tokens: None,
                usd: None,
                deadline_ms: None,
                max_depth: u32::try_from(settings.tools.agents.max_depth).unwrap_or(u32::MAX),
            },
        }
    }
}

/// Asks the host where to run the child. A host that disconnects may have started it; only a host that attaches again
/// can say.
async fn ask_where(
    session: &HostSession,
    request: DelegationRequestParams,
) -> Result<DelegationRequestResponse, HostError> {
    loop {
        let host = session.host();
        match host.delegate(request.clone()).await {
            Err(HostError::Gone) => session.taken_from(host.id()).await,
            answer => return answer,
        }
    }
}

fn unknown(id: &OperationId) -> RuntimeError {
    let problem = format!("is unknown: no thread in memory has given a child away as {id}");
    invalid("unknownDelegation", "delegationId", problem)
}

fn invalid(code: &'static str, field: &str, problem: String) -> RuntimeError {
    DelegationError::Invalid { code, field: field.to_owned(), problem }.into()
}

fn text(text: impl Into<String>) -> DynamicToolCallOutputContentItem {
    DynamicToolCallOutputContentItem::InputText { text: text.into() }
}
