//! One handler per method of a host: typed params in, one call into the host, typed answer out.

use std::sync::Arc;

use host::{TaskError, TaskHost};
use protocol::{
    Operation, OperationDecideParams, OperationDecideResponse, OperationListParams, OperationListResponse,
    RequestMethod, ServerNotification, TaskDeleteParams, TaskDeleteResponse, TaskListParams,
    TaskListResponse, TaskReadParams, TaskReadResponse, TaskResumeParams, TaskResumeResponse,
    TaskSuspendParams, TaskSuspendResponse, Thread, ThreadArchive, ThreadArchiveParams,
    ThreadArchiveResponse, ThreadArchivedNotification, ThreadFork, ThreadForkParams, ThreadForkResponse,
    ThreadId, ThreadListParams, ThreadListResponse, ThreadLoadedListParams, ThreadLoadedListResponse,
    ThreadNameUpdatedNotification, ThreadReadParams, ThreadReadResponse, ThreadResume, ThreadResumeParams,
    ThreadSetName, ThreadSetNameParams, ThreadSetNameResponse, ThreadStart, ThreadStartParams,
    ThreadStartResponse, ThreadStartedNotification, ThreadUnarchive, ThreadUnarchiveParams,
    ThreadUnarchiveResponse, ThreadUnarchivedNotification, ThreadUnsubscribeParams,
    ThreadUnsubscribeResponse, ThreadUnsubscribeStatus, TurnInterrupt, TurnInterruptParams,
    TurnInterruptResponse, TurnStart, TurnStartParams, TurnStartResponse, TurnSteer, TurnSteerParams,
    TurnSteerResponse,
};
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};

use crate::host_face::app::HostApp;
use crate::host_face::clients::client_name;
use crate::host_face::providers::provided_at_start;
use crate::hub::{Leave, Requester};
use crate::reply::MethodReply;
use crate::wire_error::WireError;

pub(super) fn name_of(caller: &Requester) -> String {
    client_name(caller.client_name())
}

fn read<T: DeserializeOwned>(text: &str) -> Result<T, WireError> {
    serde_json::from_str(text).map_err(|error| TaskError::Unreadable(error.to_string()).into())
}

/// Passes the request on to the runtime of its thread.
pub(crate) async fn forward<M: RequestMethod>(
    app: Arc<HostApp>,
    _: Requester,
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
    app.host.pass(&thread, M::METHOD, &params, answer).await;
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
    let provides = provided_at_start(&params);
    // Whoever starts a thread hears how its placement is made, before there is a thread to follow.
    let thread = params.thread_id.get_or_insert_with(TaskHost::new_thread_id).clone();
    let _starter = app.hub.note_starter(&thread, caller.id());
    let started = app.host.start_thread(params, &name_of(&caller)).await;
    let started =
        started.map_err(WireError::from).and_then(|opened| read::<ThreadStartResponse>(opened.get()));
    match started {
        Ok(response) => {
            let thread = response.thread.clone();
            app.hub.join(&thread.id, caller.id()).await;
            app.providers.declare(&thread.id, caller.id(), provides);
            reply.send(Ok(response));
            announce(&app, thread).await;
        }
        Err(error) => reply.send(Err(error)),
    }
}

pub(crate) async fn fork(
    app: Arc<HostApp>,
    caller: Requester,
    params: ThreadForkParams,
    reply: MethodReply<ThreadFork>,
) {
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

/// The answer, then the thread's open questions, then its events: none is missed and none comes twice.
pub(crate) async fn resume(
    app: Arc<HostApp>,
    caller: Requester,
    params: ThreadResumeParams,
    reply: MethodReply<ThreadResume>,
) {
    reply.room().await;
    let (hub, thread) = (app.hub.clone(), params.thread_id.clone());
    let (providers, provides) = (app.providers.clone(), params.provides.clone().unwrap_or_default());
    let join = move |answer: host::JoinReply| async move {
        match answer.map_err(WireError::from).and_then(|opened| read(&opened.to_string())) {
            Ok(response) => {
                reply.send(Ok(response));
                hub.join(&thread, caller.id()).await;
                providers.declare(&thread, caller.id(), provides);
            }
            Err(error) => reply.send(Err(error)),
        }
    };
    app.host.resume_thread(params, join).await;
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
    Ok(ThreadReadResponse { thread: app.host.read_thread(&params.thread_id, with_turns).await? })
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

pub(crate) async fn unarchive(
    app: Arc<HostApp>,
    _: Requester,
    params: ThreadUnarchiveParams,
    reply: MethodReply<ThreadUnarchive>,
) {
    match app.host.unarchive(&params.thread_id).await {
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
    _: Requester,
    params: TurnStartParams,
    reply: MethodReply<TurnStart>,
) {
    let answer = move |turn: Result<protocol::Turn, TaskError>| {
        reply.send(turn.map(|turn| TurnStartResponse { turn }).map_err(Into::into));
    };
    app.host.start_turn(params, answer).await;
}

pub(crate) async fn turn_steer(
    app: Arc<HostApp>,
    _: Requester,
    params: TurnSteerParams,
    reply: MethodReply<TurnSteer>,
) {
    let answer = move |turn: Result<protocol::Turn, TaskError>| {
        reply.send(turn.map(|turn| TurnSteerResponse { turn_id: turn.id }).map_err(Into::into));
    };
    app.host.steer_turn(params, answer).await;
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
