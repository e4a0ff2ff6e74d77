//! Resuming threads: joined if they are in memory, else read from their record or from the host's history.

use std::path::Path;
use std::sync::Arc;

use delegation::{
    DelegationError, RecordedChild, Terms, asked_tool_set, recorded_status, report_late, reported_now,
};
use journal::{JournalError, ReadThread, ReferenceRollout, Resumed, Store, ThreadHistory};
use protocol::{ThreadId, ThreadResumeParams, Turn, TurnId, TurnStatus};

use crate::agents::AgentControl;
use crate::error::RuntimeError;
use crate::open::checks::id_of_path;
use crate::open::import::{import_fields, split};
use crate::open::open;
use crate::open::opened::{HostAnswer, OpenedThread};
use crate::open::request::{OpenRequest, RecordSource};
use crate::providers::identity::{ClientIdentity, Opener};
use crate::state::{Loaded, RuntimeState};
use driver::{Snapshot, agreed_rules, check_thread_id, is_resumable, pending, recover, resolve};

/// A resumed thread.
pub(crate) enum ResumedThread {
    /// It was in memory. The response is a snapshot of it.
    Joined(Box<JoinedThread>),
    Opened(Box<OpenedThread>),
}

/// A thread in memory, and data for its response.
pub(crate) struct JoinedThread {
    pub(crate) loaded: Loaded,
    pub(crate) with_turns: bool,
    pub(crate) shows_pending: bool,
    resumes_turn: bool,
    shows_tools: bool,
    answer: HostAnswer,
}

pub(crate) async fn resume(
    state: &Arc<RuntimeState>,
    mut params: ThreadResumeParams,
    opener: Opener,
) -> Result<ResumedThread, RuntimeError> {
    let Opener { client, host } = opener;
    let terms = Terms::of(params.delegation.as_ref(), params.rollout_ownership, host)?;
    params.tool_set = asked_tool_set(params.tool_set.as_ref(), &terms)?.map(|set| *set);
    if params.history.is_some() {
        let request = of_items(state, &params, client, terms)?;
        return Ok(ResumedThread::Opened(Box::new(open(state, request).await?)));
    }
    let id = match (&params.path, check_thread_id(&params.thread_id)) {
        // For a thread in memory the path only confirms its id.
        (Some(_), Ok(id)) if state.loaded(&id).is_some() => id,
        (Some(path), _) => id_of_path(path)?,
        (None, id) => id?,
    };
    let _opening = state.threads.opening(&id).await;
    if let Some(loaded) = state.loaded(&id) {
        let joined = join(state, loaded, params, &terms).await?;
        return Ok(ResumedThread::Joined(Box::new(joined)));
    }
    let (history, record) = match import_fields!(params).read(&state.uploads, Some(&id), &id)? {
        Some(imported) => split(imported),
        None if terms.host_keeps_record() => {
            let problem = "is missing: with rolloutOwnership `client` the host brings the record".to_owned();
            return Err(DelegationError::Unsupported { field: "initialItems", problem }.into());
        }
        None => read_record(state, &id, params.path.as_deref()).await?,
    };
    let opened = load(state, id, &params, client, terms, (history, record)).await?;
    Ok(ResumedThread::Opened(Box::new(opened)))
}

/// A new thread with the caller's items as its history.
fn of_items(
    state: &RuntimeState,
    params: &ThreadResumeParams,
    client: ClientIdentity,
    terms: Terms,
) -> Result<OpenRequest, RuntimeError> {
    if let Ok(id) = check_thread_id(&params.thread_id)
        && state.loaded(&id).is_some()
    {
        return Err(RuntimeError::HistoryWhileLoaded(id));
    }
    match params.history.clone().unwrap_or_default() {
        items if items.is_empty() => Err(RuntimeError::EmptyHistory),
        items => Ok(OpenRequest::of_items(params, client, terms, items)),
    }
}

async fn read_record(
    state: &Arc<RuntimeState>,
    id: &ThreadId,
    path: Option<&str>,
) -> Result<(ThreadHistory, RecordSource), RuntimeError> {
    check_path(state, id, path).await?;
    let wanted = id.clone();
    let resumed = match state.on_disk(move |store| resume_or_read(store, &wanted)).await? {
        Ok(FoundRecord::Own(resumed)) => *resumed,
        Ok(FoundRecord::Reference(read, _)) if read.row.is_archived => {
            return Err(RuntimeError::NoRecord(id.clone()));
        }
        Ok(FoundRecord::Reference(read, rollout)) => {
            return Ok((read.history, RecordSource::Reference(rollout)));
        }
        Err(JournalError::NotFound(_)) => return Err(RuntimeError::NoRecord(id.clone())),
        Err(error @ (JournalError::Unreadable { .. } | JournalError::Headless { .. })) => {
            return Err(RuntimeError::UnreadableRecord {
                path: path.map_or_else(|| id.to_string(), str::to_owned),
                problem: error.to_string(),
            });
        }
        Err(error) => return Err(error.into()),
    };
    // An archived thread must be unarchived first.
    if resumed.journal.row().is_archived {
        return Err(RuntimeError::NoRecord(id.clone()));
    }
    if !resumed.recovery.damage.is_empty() {
        let lost = resumed.recovery.damage.total();
        tracing::warn!(thread = %id, lost, "a damaged record was read as far as possible");
    }
    Ok((resumed.history, RecordSource::Journal(Box::new(resumed.journal))))
}

/// The record of a stored thread.
enum FoundRecord {
    Own(Box<Resumed>),
    Reference(Box<ReadThread>, Box<ReferenceRollout>),
}

/// Our own record of a thread, or else the reference's.
fn resume_or_read(store: &Store, id: &ThreadId) -> Result<FoundRecord, JournalError> {
    match store.resume(id) {
        Err(not_found @ JournalError::NotFound(_)) => {
            let read = store.read_reference(id)?.ok_or(not_found)?;
            Ok(FoundRecord::Reference(Box::new(read.0), Box::new(read.1)))
        }
        resumed => Ok(FoundRecord::Own(Box::new(resumed?))),
    }
}

async fn load(
    state: &Arc<RuntimeState>,
    id: ThreadId,
    params: &ThreadResumeParams,
    client: ClientIdentity,
    terms: Terms,
    (mut history, record): (ThreadHistory, RecordSource),
) -> Result<OpenedThread, RuntimeError> {
    // An invalid decision is refused before the thread is opened; the others are recorded when the turn is resumed.
    let now_ms = state.now_ms();
    if let Some(resolved) = params.resolved_operations.as_deref().filter(|resolved| !resolved.is_empty()) {
        resolve(&mut history.clone(), resolved, now_ms)?;
    }
    let agents = AgentControl::new(state);
    let mut children = RecordedChild::known(&history);
    let entries = match &record {
        RecordSource::Imported { entries, .. } => Some(entries.as_slice()),
        _ => None,
    };
    let late = agents.late_reports(&id, entries, &mut children).await;
    let mut recovered = report_late(&mut history);
    let mut rules = Vec::new();
    if !params.resume_turn || !is_resumable(&history) {
        // A record from a host is not ours, so it has no effects outside the thread.
        if matches!(record, RecordSource::Journal(_)) {
            rules = agreed_rules(&history);
        }
        recovered.extend(recover(&mut history, now_ms));
    }
    recovered.extend(reported_now(&mut history, late));
    let shows_pending = params.resume_turn || terms.shows_operations();
    let pending_operations = shows_pending.then(|| pending(&history));
    let unfinished = history.unfinished_turn.clone().filter(|_| params.resume_turn);
    let (stood, reports) = (recorded_status(&history.turns), agents.pending_reports(&id, &history.turns));
    let turns = match params.exclude_turns {
        true => Vec::new(),
        false => going_on(std::mem::take(&mut history.turns), unfinished.as_ref()),
    };
    let request = OpenRequest::of_resume(params, id.clone(), client, terms, history);
    request.check_carrier()?;
    let request =
        OpenRequest { record, recovered, agreed_rules: rules, turns, pending_operations, ..request };
    let opened = open(state, request).await?;
    if let Some(reports) = reports {
        agents.deliver_reports(&id, reports);
    }
    agents.recall(&id, stood, unfinished.is_some());
    agents.adopt(&id, opened.settings.tools.agents.max_threads, children);
    Ok(opened)
}

/// Joins a thread in memory. Other options of the request have no effect.
async fn join(
    state: &RuntimeState,
    loaded: Loaded,
    mut params: ThreadResumeParams,
    terms: &Terms,
) -> Result<JoinedThread, RuntimeError> {
    let id = loaded.handle.id().clone();
    state.delegation.expect(&id, terms)?;
    let now = loaded.handle.snapshot(false).await?;
    if let (Some(requested), Some(active)) = (&params.path, &loaded.identity.path)
        && Path::new(requested) != active
        // A thread of the reference moves to a record of our own.
        && now.row.as_ref().is_none_or(|row| Path::new(requested) != row.path)
    {
        let (requested, active) = (requested.clone(), active.display().to_string());
        return Err(RuntimeError::OtherPath { id, requested, active });
    }
    if now.row.is_none() && now.next_ordinal.is_none() {
        return Err(RuntimeError::NoRecord(id));
    }
    if params.tool_set.is_some() && now.settings.host.tool_set.as_deref() != params.tool_set.as_ref() {
        let problem = "differs from that of the thread, which is in memory".to_owned();
        return Err(DelegationError::Unsupported { field: "toolSet", problem }.into());
    }
    let imported = match terms.host_keeps_record() {
        true => import_fields!(params).read(&state.uploads, Some(&id), &id)?,
        false => None,
    };
    if state.delegation.attach(&id, terms)? {
        loaded.handle.rejoin(imported.map(|imported| imported.entries)).await?;
    }
    let answer = HostAnswer { rollout_ownership: params.rollout_ownership, ..HostAnswer::default() };
    Ok(JoinedThread {
        loaded,
        with_turns: !params.exclude_turns,
        shows_pending: params.resume_turn || terms.shows_operations(),
        resumes_turn: params.resume_turn,
        shows_tools: terms.has_host(),
        answer,
    })
}

impl JoinedThread {
    /// The response to a client that joined the thread at this moment.
    pub(crate) fn respond(self, state: &RuntimeState, mut snapshot: Snapshot) -> OpenedThread {
        let Self { loaded, mut answer, .. } = self;
        answer.pending_operations = self.shows_pending.then(|| std::mem::take(&mut snapshot.pending));
        let unfinished = snapshot.unfinished.take().filter(|_| self.resumes_turn);
        snapshot.turns = match self.with_turns {
            true => going_on(snapshot.turns, unfinished.as_ref()),
            false => Vec::new(),
        };
        if self.shows_tools {
            answer.offer(state.steps.effective_tools(&snapshot.settings));
        }
        loaded.respond(snapshot, answer)
    }
}

impl Loaded {
    pub(crate) fn respond(&self, snapshot: Snapshot, answer: HostAnswer) -> OpenedThread {
        let thread = self.identity.describe(snapshot.row.as_ref(), snapshot.status, snapshot.turns);
        let delegation = self.session.as_ref().map(|session| session.effective());
        let answer = HostAnswer { delegation, rollout_ordinal: snapshot.next_ordinal, ..answer };
        let settings = snapshot.settings;
        OpenedThread {
            thread,
            settings,
            answer,
            deprecations: Vec::new(),
            warnings: Vec::new(),
            unknown_model: None,
        }
    }
}

/// A turn that is about to be resumed has no end yet.
fn going_on(mut turns: Vec<Turn>, unfinished: Option<&TurnId>) -> Vec<Turn> {
    if let Some(turn) = turns.iter_mut().rfind(|turn| Some(&turn.id) == unfinished) {
        (turn.status, turn.completed_at, turn.duration_ms) = (TurnStatus::InProgress, None, None);
    }
    turns
}

/// The path must name this thread's record, not another one of the same name.
pub(crate) async fn check_path(
    state: &Arc<RuntimeState>,
    id: &ThreadId,
    path: Option<&str>,
) -> Result<(), RuntimeError> {
    let Some(path) = path.map(str::to_owned) else { return Ok(()) };
    let (wanted, asked) = (id.clone(), path.clone());
    let is_it = state.on_disk(move |store| store.is_record(&wanted, Path::new(&asked)));
    match is_it.await? {
        Ok(true) => Ok(()),
        Ok(false) | Err(_) => {
            let problem = "it is not the record of a thread in this home".to_owned();
            Err(RuntimeError::UnreadableRecord { path, problem })
        }
    }
}
