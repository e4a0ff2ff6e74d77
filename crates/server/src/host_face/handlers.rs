//! One handler per method of a host: typed params in, one call into the host, typed answer out.

use std::collections::BTreeMap;
use std::sync::Arc;

use host::{ResumeManner, TaskError, TaskHost};
use protocol::{
    AuditListParams, AuditListResponse, HostStatus, McpServerRefresh, McpServerRefreshResponse, NoParams,
    Operation, OperationDecideParams, OperationDecideResponse, OperationListParams, OperationListResponse,
    ReplicaListParams, ReplicaListResponse, RequestMethod, ReviewDelivery, ReviewStart, ReviewStartParams,
    ReviewTarget, ServerKind, ServerNotification, ServerStatusResponse, TaskDeleteParams, TaskDeleteResponse,
    TaskListParams, TaskListResponse, TaskReadParams, TaskReadResponse, TaskResumeParams, TaskResumeResponse,
    TaskSuspendParams, TaskSuspendResponse, Thread, ThreadArchive, ThreadArchiveParams,
    ThreadArchiveResponse, ThreadArchivedNotification, ThreadBackgroundTerminalsClean, ThreadCompactStart,
    ThreadDelegation, ThreadDelete, ThreadDeleteParams, ThreadDeleteResponse, ThreadDeletedNotification,
    ThreadFork, ThreadForkParams, ThreadForkResponse, ThreadGoalClear, ThreadGoalGet, ThreadGoalGetParams,
    ThreadGoalSet, ThreadId, ThreadListParams, ThreadListResponse, ThreadLoadedListParams,
    ThreadLoadedListResponse, ThreadNameUpdatedNotification, ThreadReadParams, ThreadReadResponse,
    ThreadResume, ThreadResumeParams, ThreadResumeResponse, ThreadRollback, ThreadSetName,
    ThreadSetNameParams, ThreadSetNameResponse, ThreadShellCommand, ThreadStart, ThreadStartParams,
    ThreadStartResponse, ThreadStartedNotification, ThreadSuspendParams, ThreadSuspendResponse,
    ThreadUnarchive, ThreadUnarchiveParams, ThreadUnarchiveResponse, ThreadUnarchivedNotification,
    ThreadUnsubscribeParams, ThreadUnsubscribeResponse, ThreadUnsubscribeStatus, TurnInterrupt,
    TurnInterruptParams, TurnInterruptResponse, TurnStart, TurnStartParams, TurnStartResponse, TurnSteer,
    TurnSteerParams, TurnSteerResponse, TurnSuspend, UsageListParams, UsageListResponse,
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::oneshot;

use crate::handlers::server_status::status;
use crate::host_face::app::HostApp;
use crate::host_face::carriers::CarrierClaim;
use crate::host_face::providers::provided_at_start;
use crate::host_face::resync::resync;
use crate::hub::{Leave, Requester};
use crate::reply::MethodReply;
use crate::roles::{ClientRole, check_config, check_follow, forbidden};
use crate::wire_error::WireError;

pub(super) fn name_of(caller: &Requester) -> String {
    caller.name()
}

/// Over the network, a thread's configuration may not reach into the host's own.
fn check_keys(caller: &Requester, config: Option<&BTreeMap<String, Value>>) -> Result<(), WireError> {
    match caller.identity().is_local {
        true => Ok(()),
        false => check_config(config.into_iter().flatten()),
    }
}

fn read<T: DeserializeOwned>(text: &str) -> Result<T, WireError> {
    serde_json::from_str(text).map_err(|error| TaskError::Unreadable(error.to_string()).into())
}

/// Of the requests that are passed on, those that start or stop something.
const AUDITED: &[&str] = &[
    ReviewStart::METHOD,
    ThreadBackgroundTerminalsClean::METHOD,
    ThreadCompactStart::METHOD,
    ThreadGoalClear::METHOD,
    ThreadGoalSet::METHOD,
    ThreadRollback::METHOD,
    ThreadShellCommand::METHOD,
    TurnSuspend::METHOD,
];

/// Passes the request on to the runtime of its thread.
pub(crate) async fn forward<M: RequestMethod>(
    app: Arc<HostApp>,
    caller: Requester,
    params: M::Params,
    reply: MethodReply<M>,
) {
    let Some(thread) = M::order_key(&params).map(ThreadId::new) else {
        return reply.send(Err(WireError::invalid_request("`threadId` is missing")));
    };
    let params = match to_raw_value(&params) {
        Ok(params) => params,
        Err(error) => return reply.send(Err(WireError::internal(error.to_string()))),
    };
    let answer = move |result: Result<Box<RawValue>, TaskError>| {
        reply.send(result.map_err(WireError::from).and_then(|result| read(result.get())));
    };
    match AUDITED.contains(&M::METHOD) {
        true => app.host.pass_for(&thread, (M::METHOD, &name_of(&caller)), &params, answer).await,
        false => app.host.pass(&thread, M::METHOD, &params, answer).await,
    }
}

/// The goal is the runtime's to tell. Whoever may only look on starts none for it.
pub(crate) async fn goal_get(
    app: Arc<HostApp>,
    caller: Requester,
    params: ThreadGoalGetParams,
    reply: MethodReply<ThreadGoalGet>,
) {
    let role = caller.identity().role;
    if role < ClientRole::Operator && !app.host.has_runtime(&params.thread_id).await {
        let message =
            format!("no runtime has this thread, and a {} starts none; look again later", role.word());
        return reply.send(Err(forbidden(message)));
    }
    forward::<ThreadGoalGet>(app, caller, params, reply).await;
}

async fn announce(app: &HostApp, thread: Thread) {
    let id = thread.id.clone();
    let told = ServerNotification::ThreadStarted(ThreadStartedNotification { thread });
    app.hub.notify_thread(&id, told).await;
}

pub(crate) async fn start(
    app: Arc<HostApp>,
    caller: Requester,
    mut params: ThreadStartParams,
    reply: MethodReply<ThreadStart>,
) {
    if let Err(error) = check_keys(&caller, params.config.as_ref()) {
        return reply.send(Err(error));
    }
    if !caller.identity().is_local
        && let Some(reason) = app.host.network_refusal(&params)
    {
        return reply.send(Err(forbidden(reason)));
    }
    let provides = provided_at_start(&params);
    // Whoever starts a thread hears how its placement is made, before there is a thread to follow.
    let thread = params.thread_id.get_or_insert_with(|| app.host.new_thread_id()).clone();
    let _starter = app.hub.note_starter(&thread, caller.id());
    let claim = match claim(&app, &caller, &thread, params.delegation.as_ref()) {
        Ok(claim) => claim,
        Err(error) => return reply.send(Err(error)),
    };
    let delegation = params.delegation.clone();
    app.host.hold_notices(&thread);
    let started = app.host.start_thread(params, &name_of(&caller), caller.user_agent()).await;
    let started =
        started.map_err(WireError::from).and_then(|opened| read::<ThreadStartResponse>(opened.get()));
    match started {
        Ok(response) => {
            let started = response.thread.clone();
            app.hub.join(&started.id, caller.id()).await;
            app.providers.declare(&started.id, caller.id(), provides);
            reply.send(Ok(ThreadStartResponse { delegation, ..response }));
            if let Some(claim) = claim {
                claim.settle();
            }
            announce(&app, started).await;
        }
        Err(error) => reply.send(Err(error)),
    }
    app.host.release_notices(&thread).await;
}

/// The task for whoever is to carry its model requests, before anything is done about it.
fn claim(
    app: &HostApp,
    caller: &Requester,
    task: &ThreadId,
    asked: Option<&ThreadDelegation>,
) -> Result<Option<CarrierClaim>, WireError> {
    let claim = asked.map(|asked| app.carriers.claim(&app.hub, (task, caller.id()), asked));
    claim.transpose().map_err(Into::into)
}

pub(crate) async fn fork(
    app: Arc<HostApp>,
    caller: Requester,
    params: ThreadForkParams,
    reply: MethodReply<ThreadFork>,
) {
    if let Err(error) = check_keys(&caller, params.config.as_ref()) {
        return reply.send(Err(error));
    }
    reply.room().await;
    let forked = app.host.fork_thread(&params, &name_of(&caller)).await;
    let forked =
        forked.map_err(WireError::from).and_then(|opened| read::<ThreadForkResponse>(&opened.to_string()));
    match forked {
        Ok(mut response) => {
            let thread = response.thread.clone();
            if params.exclude_turns {
                response.thread.turns.clear();
            }
            app.hub.join(&thread.id, caller.id()).await;
            reply.send(Ok(response));
            announce(&app, thread).await;
        }
        Err(error) => reply.send(Err(error)),
    }
}

/// A detached review is a review of a copy, which is announced before the answer that names it.
pub(crate) async fn review(
    app: Arc<HostApp>,
    caller: Requester,
    mut params: ReviewStartParams,
    reply: MethodReply<ReviewStart>,
) {
    // A request without anything to review is refused by the runtime, before there is a copy.
    let names_nothing = match &params.target {
        ReviewTarget::UncommittedChanges => false,
        ReviewTarget::BaseBranch { branch: text }
        | ReviewTarget::Commit { sha: text, .. }
        | ReviewTarget::Custom { instructions: text } => text.trim().is_empty(),
    };
    if params.delivery != Some(ReviewDelivery::Detached) || names_nothing {
        return forward::<ReviewStart>(app, caller, params, reply).await;
    }
    reply.room().await;
    let copy = ThreadForkParams::copy_of(params.thread_id.clone());
    let forked = app.host.fork_thread(&copy, &name_of(&caller)).await;
    let forked =
        forked.map_err(WireError::from).and_then(|opened| read::<ThreadForkResponse>(&opened.to_string()));
    let thread = match forked {
        Ok(response) => Thread { turns: Vec::new(), ..response.thread },
        Err(error) => return reply.send(Err(error)),
    };
    params.thread_id = thread.id.clone();
    params.delivery = Some(ReviewDelivery::Inline);
    app.hub.join(&thread.id, caller.id()).await;
    announce(&app, thread).await;
    forward::<ReviewStart>(app, caller, params, reply).await;
}

/// Runtimes that are up read their servers anew; others do so when they start.
pub(crate) async fn reload_servers(
    app: Arc<HostApp>,
    _: Requester,
    _: NoParams,
) -> Result<McpServerRefreshResponse, TaskError> {
    for thread in app.host.list_loaded() {
        let (told, answered) = oneshot::channel();
        let answer = move |result: Result<Box<RawValue>, TaskError>| drop(told.send(result));
        app.host.pass(&thread, McpServerRefresh::METHOD, &Value::Null, answer).await;
        match answered.await {
            // A runtime that ends meanwhile has no servers to read.
            Ok(Ok(_) | Err(TaskError::RuntimeGone(_))) | Err(_) => {}
            Ok(Err(error)) => return Err(error),
        }
    }
    Ok(McpServerRefreshResponse {})
}

/// The answer, then the thread's open questions, then its events: none is missed and none comes twice.
pub(crate) async fn resume(
    app: Arc<HostApp>,
    caller: Requester,
    mut params: ThreadResumeParams,
    reply: MethodReply<ThreadResume>,
) {
    if let Some(path) = params.path.take() {
        match TaskHost::thread_at(&path) {
            Ok(thread) => params.thread_id = thread,
            Err(error) => return reply.send(Err(error.into())),
        }
    }
    let role = caller.identity().role;
    let allowed = check_keys(&caller, params.config.as_ref())
        .and_then(|()| check_follow(role, &serde_json::to_value(&params).unwrap_or_default()));
    let allowed = match params.resume_turn && app.hub.is_stopping() {
        true => Err(WireError::stopping()),
        false => allowed,
    };
    if let Err(error) = allowed {
        return reply.send(Err(error));
    }
    reply.room().await;
    let knows_hosts = app.hub.knows_hosts(caller.id());
    let manner = match (role >= ClientRole::Operator, knows_hosts) {
        (false, _) => ResumeManner::Look,
        (true, true) => ResumeManner::Follow,
        (true, false) => ResumeManner::Load,
    };
    let delegation = params.delegation.clone();
    let claimed = match &delegation {
        Some(_) => app.host.carried_task(&params.thread_id).await.map_err(WireError::from),
        None => Ok(params.thread_id.clone()),
    };
    let claim = match claimed.and_then(|task| claim(&app, &caller, &task, delegation.as_ref())) {
        Ok(claim) => claim,
        Err(error) => return reply.send(Err(error)),
    };
    let (hub, thread) = (app.hub.clone(), params.thread_id.clone());
    let (wants_open, wants_all) = (params.include_open_items, params.resync);
    let host = app.host.clone();
    let (providers, provides) = (app.providers.clone(), params.provides.clone().unwrap_or_default());
    let join = move |answer: host::JoinReply| async move {
        let answer = answer.map_err(WireError::from);
        match answer.and_then(|opened| read::<ThreadResumeResponse>(&opened.to_string())) {
            Ok(mut response) => {
                response.rollout_ordinal = response.rollout_ordinal.filter(|_| knows_hosts);
                response.delegation = delegation;
                reply.send(Ok(response));
                hub.join(&thread, caller.id()).await;
                if wants_all {
                    resync(&host, &hub, &thread, caller.id()).await;
                } else if wants_open {
                    hub.send_open_items(&thread, caller.id()).await;
                }
                providers.declare(&thread, caller.id(), provides);
                if let Some(claim) = claim {
                    claim.settle();
                }
            }
            Err(error) => reply.send(Err(error)),
        }
    };
    app.host.resume_thread(params, manner, join).await;
}

pub(crate) async fn list(
    app: Arc<HostApp>,
    _: Requester,
    params: ThreadListParams,
) -> Result<ThreadListResponse, TaskError> {
    let page = app.host.list_threads(&params).await?;
    Ok(ThreadListResponse { data: page.threads, next_cursor: page.cursor })
}

pub(crate) async fn loaded_list(
    app: Arc<HostApp>,
    _: Requester,
    params: ThreadLoadedListParams,
) -> Result<ThreadLoadedListResponse, TaskError> {
    let loaded = app.host.list_loaded();
    let after = params.cursor.unwrap_or_default();
    let limit = params.limit.map_or(usize::MAX, |limit| limit.max(1) as usize);
    let ids = loaded.into_iter().map(ThreadId::into_string).filter(|id| *id > after);
    let mut data: Vec<String> = ids.take(limit.saturating_add(1)).collect();
    let has_more = data.len() > limit;
    data.truncate(limit);
    let next_cursor = data.last().filter(|_| has_more).cloned();
    Ok(ThreadLoadedListResponse { data, next_cursor })
}

pub(crate) async fn read_thread(
    app: Arc<HostApp>,
    _: Requester,
    params: ThreadReadParams,
) -> Result<ThreadReadResponse, TaskError> {
    let with_turns = params.include_turns && !params.exclude_turns;
    let thread = app.host.read_thread(&params.thread_id, with_turns).await?;
    let decisions = match with_turns {
        true => app.host.list_decisions(&params.thread_id).await?,
        false => Vec::new(),
    };
    Ok(ThreadReadResponse { thread, decisions })
}

pub(crate) async fn name_set(
    app: Arc<HostApp>,
    _: Requester,
    params: ThreadSetNameParams,
    reply: MethodReply<ThreadSetName>,
) {
    let thread_id = params.thread_id;
    match app.host.set_name(&thread_id, &params.name).await {
        Ok(name) => {
            reply.send(Ok(ThreadSetNameResponse {}));
            let told =
                ThreadNameUpdatedNotification { thread_id: thread_id.clone(), thread_name: Some(name) };
            app.hub.notify_thread(&thread_id, ServerNotification::ThreadNameUpdated(told)).await;
        }
        Err(error) => reply.send(Err(error.into())),
    }
}

pub(crate) async fn archive(
    app: Arc<HostApp>,
    caller: Requester,
    params: ThreadArchiveParams,
    reply: MethodReply<ThreadArchive>,
) {
    let thread_id = params.thread_id;
    match app.host.archive(&thread_id, &name_of(&caller)).await {
        Ok(_) => {
            app.hub.forget(&thread_id);
            reply.send(Ok(ThreadArchiveResponse {}));
            let told = ThreadArchivedNotification { thread_id: thread_id.clone() };
            app.hub.notify_thread(&thread_id, ServerNotification::ThreadArchived(told)).await;
        }
        Err(error) => reply.send(Err(error.into())),
    }
}

/// The same as `task/delete`, but for a task in which a turn runs.
pub(crate) async fn delete(
    app: Arc<HostApp>,
    caller: Requester,
    params: ThreadDeleteParams,
    reply: MethodReply<ThreadDelete>,
) {
    let thread_id = params.thread_id;
    match app.host.delete_idle_task(&thread_id, &name_of(&caller)).await {
        Ok(()) => {
            app.hub.forget(&thread_id);
            reply.send(Ok(ThreadDeleteResponse { deleted_thread_ids: vec![thread_id.clone()] }));
            let told = ThreadDeletedNotification { thread_id: thread_id.clone() };
            app.hub.notify_thread(&thread_id, ServerNotification::ThreadDeleted(told)).await;
        }
        Err(error) => reply.send(Err(error.into())),
    }
}

pub(crate) async fn unarchive(
    app: Arc<HostApp>,
    caller: Requester,
    params: ThreadUnarchiveParams,
    reply: MethodReply<ThreadUnarchive>,
) {
    match app.host.unarchive(&params.thread_id, &name_of(&caller)).await {
        Ok(thread) => {
            let thread_id = thread.id.clone();
            reply.send(Ok(ThreadUnarchiveResponse { thread }));
            let told = ThreadUnarchivedNotification { thread_id: thread_id.clone() };
            app.hub.notify_thread(&thread_id, ServerNotification::ThreadUnarchived(told)).await;
        }
        Err(error) => reply.send(Err(error.into())),
    }
}

/// Unsubscribing never stops a turn.
pub(crate) async fn unsubscribe(
    app: Arc<HostApp>,
    caller: Requester,
    params: ThreadUnsubscribeParams,
) -> Result<ThreadUnsubscribeResponse, TaskError> {
    app.providers.leave(&params.thread_id, caller.id());
    app.carriers.leave(&params.thread_id, caller.id());
    if let Some(peers) = app.peers.get() {
        peers.unsubscribe(caller.id(), &params.thread_id);
    }
    let status = match app.hub.leave(&params.thread_id, caller.id()) {
        Leave::Left { .. } => ThreadUnsubscribeStatus::Unsubscribed,
        Leave::NotSubscribed if app.host.is_loaded(&params.thread_id) => {
            ThreadUnsubscribeStatus::NotSubscribed
        }
        Leave::NotSubscribed => ThreadUnsubscribeStatus::NotLoaded,
    };
    Ok(ThreadUnsubscribeResponse { status })
}

pub(crate) async fn turn_start(
    app: Arc<HostApp>,
    caller: Requester,
    params: TurnStartParams,
    reply: MethodReply<TurnStart>,
) {
    let answer = move |turn: Result<protocol::Turn, TaskError>| {
        reply.send(turn.map(|turn| TurnStartResponse { turn }).map_err(Into::into));
    };
    app.host.start_turn(params, &name_of(&caller), answer).await;
}

pub(crate) async fn turn_steer(
    app: Arc<HostApp>,
    caller: Requester,
    params: TurnSteerParams,
    reply: MethodReply<TurnSteer>,
) {
    let answer = move |turn: Result<protocol::Turn, TaskError>| {
        reply.send(turn.map(|turn| TurnSteerResponse { turn_id: turn.id }).map_err(Into::into));
    };
    app.host.steer_turn(params, &name_of(&caller), answer).await;
}

pub(crate) async fn turn_interrupt(
    app: Arc<HostApp>,
    caller: Requester,
    params: TurnInterruptParams,
    reply: MethodReply<TurnInterrupt>,
) {
    let answer = move |stopped: Result<(), TaskError>| {
        reply.send(stopped.map(|()| TurnInterruptResponse {}).map_err(Into::into));
    };
    let thread = params.thread_id.clone();
    app.host.interrupt_turn(&thread, &params, &name_of(&caller), answer).await;
}

pub(crate) async fn task_list(
    app: Arc<HostApp>,
    _: Requester,
    params: TaskListParams,
) -> Result<TaskListResponse, TaskError> {
    app.host.list_tasks(params).await
}

pub(crate) async fn task_read(
    app: Arc<HostApp>,
    _: Requester,
    params: TaskReadParams,
) -> Result<TaskReadResponse, TaskError> {
    app.host.read_task(&params.thread_id).await
}

pub(crate) async fn task_suspend(
    app: Arc<HostApp>,
    caller: Requester,
    params: TaskSuspendParams,
) -> Result<TaskSuspendResponse, TaskError> {
    let task = app.host.suspend_task(&params.thread_id, &name_of(&caller)).await?;
    Ok(TaskSuspendResponse { task })
}

pub(crate) async fn thread_suspend(
    app: Arc<HostApp>,
    caller: Requester,
    params: ThreadSuspendParams,
) -> Result<ThreadSuspendResponse, TaskError> {
    app.host.suspend_thread(&params, &name_of(&caller)).await
}

pub(crate) async fn task_resume(
    app: Arc<HostApp>,
    caller: Requester,
    params: TaskResumeParams,
) -> Result<TaskResumeResponse, TaskError> {
    let task = app.host.resume_task(&params.thread_id, &name_of(&caller)).await?;
    Ok(TaskResumeResponse { task })
}

pub(crate) async fn task_delete(
    app: Arc<HostApp>,
    caller: Requester,
    params: TaskDeleteParams,
) -> Result<TaskDeleteResponse, TaskError> {
    app.host.delete_task(&params.thread_id, &name_of(&caller)).await?;
    app.hub.forget(&params.thread_id);
    Ok(TaskDeleteResponse {})
}

pub(crate) async fn operation_list(
    app: Arc<HostApp>,
    _: Requester,
    params: OperationListParams,
) -> Result<OperationListResponse, TaskError> {
    app.host.list_operations(params).await
}

pub(crate) async fn operation_decide(
    app: Arc<HostApp>,
    caller: Requester,
    params: OperationDecideParams,
) -> Result<OperationDecideResponse, TaskError> {
    let operation: Operation = app.host.decide(params, &name_of(&caller)).await?;
    Ok(OperationDecideResponse { operation })
}

pub(crate) async fn usage_list(
    app: Arc<HostApp>,
    _: Requester,
    params: UsageListParams,
) -> Result<UsageListResponse, TaskError> {
    app.host.list_usage(params).await
}

pub(crate) async fn audit_list(
    app: Arc<HostApp>,
    _: Requester,
    params: AuditListParams,
) -> Result<AuditListResponse, TaskError> {
    app.host.list_audit(params).await
}

pub(crate) async fn replica_list(
    app: Arc<HostApp>,
    _: Requester,
    _: ReplicaListParams,
) -> Result<ReplicaListResponse, TaskError> {
    Ok(ReplicaListResponse { data: app.host.list_replicas().await? })
}

pub(crate) async fn server_status(
    app: Arc<HostApp>,
    _: Requester,
    _: NoParams,
) -> Result<ServerStatusResponse, TaskError> {
    let numbers = app.host.numbers().await?;
    let count = |count: i64| u64::try_from(count).unwrap_or_default();
    Ok(ServerStatusResponse {
        kind: ServerKind::Host,
        threads_loaded: numbers.runtimes as u64,
        turns_running: numbers.turns_running as u64,
        waiting: count(numbers.waiting),
        oldest_waiting_ms: (numbers.waiting > 0).then_some(numbers.oldest_waiting_ms),
        host: Some(HostStatus {
            tasks: numbers.tasks.into_iter().collect(),
            runtimes: numbers.runtimes as u64,
            queued: numbers.queued as u64,
        }),
        ..status(&app.local).await
    })
}
