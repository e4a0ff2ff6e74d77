//! Threads besides opening them: questions about them, and changes that are not turns.

use std::sync::Arc;

use protocol::{
    ServerNotification, ThreadArchive, ThreadArchiveParams, ThreadArchiveResponse,
    ThreadArchivedNotification, ThreadClosedNotification, ThreadCompactStart, ThreadCompactStartParams,
    ThreadCompactStartResponse, ThreadDelete, ThreadDeleteParams, ThreadDeleteResponse,
    ThreadDeletedNotification, ThreadId, ThreadListParams, ThreadListResponse, ThreadLoadedListParams,
    ThreadLoadedListResponse, ThreadMetadataUpdateParams, ThreadMetadataUpdateResponse,
    ThreadNameUpdatedNotification, ThreadRead, ThreadReadParams, ThreadReadResponse, ThreadRollbackParams,
    ThreadRollbackResponse, ThreadSetName, ThreadSetNameParams, ThreadSetNameResponse, ThreadStatus,
    ThreadStatusChangedNotification, ThreadUnarchive, ThreadUnarchiveParams, ThreadUnarchiveResponse,
    ThreadUnarchivedNotification, ThreadUnsubscribe, ThreadUnsubscribeParams, ThreadUnsubscribeResponse,
    ThreadUnsubscribeStatus,
};
use runtime::{Responder, RuntimeError};

use crate::app::App;
use crate::hub::{Leave, Requester};
use crate::reply::MethodReply;

pub(crate) async fn read(
    app: Arc<App>,
    caller: Requester,
    params: ThreadReadParams,
    reply: MethodReply<ThreadRead>,
) {
    reply.room().await;
    match app.runtime.read_thread(params).await {
        Ok(thread) => {
            let thread_id = thread.id.clone();
            reply.send(Ok(ThreadReadResponse { thread, decisions: Vec::new() }));
            warn_of_damage(&app, &caller, &thread_id).await;
        }
        Err(error) => reply.send(Err(error.into())),
    }
}

/// A reader learns that something it does not see was there.
pub(crate) async fn warn_of_damage(app: &App, caller: &Requester, thread_id: &ThreadId) {
    if let Some(warning) = app.runtime.record_warning(thread_id).await {
        caller.notify(ServerNotification::ConfigWarning(warning)).await;
    }
}

pub(crate) async fn list(
    app: Arc<App>,
    _: Requester,
    params: ThreadListParams,
) -> Result<ThreadListResponse, RuntimeError> {
    app.runtime.list_threads(params).await
}

pub(crate) async fn loaded_list(
    app: Arc<App>,
    _: Requester,
    params: ThreadLoadedListParams,
) -> Result<ThreadLoadedListResponse, RuntimeError> {
    app.runtime.list_loaded(&params)
}

pub(crate) async fn metadata_update(
    app: Arc<App>,
    _: Requester,
    params: ThreadMetadataUpdateParams,
) -> Result<ThreadMetadataUpdateResponse, RuntimeError> {
    let thread = app.runtime.update_metadata(params).await?;
    Ok(ThreadMetadataUpdateResponse { thread })
}

pub(crate) async fn rollback(
    app: Arc<App>,
    _: Requester,
    params: ThreadRollbackParams,
) -> Result<ThreadRollbackResponse, RuntimeError> {
    let opened = app.runtime.roll_back(&params).await?;
    Ok(ThreadRollbackResponse { thread: opened.thread })
}

pub(crate) async fn name_set(
    app: Arc<App>,
    _: Requester,
    params: ThreadSetNameParams,
    reply: MethodReply<ThreadSetName>,
) {
    let thread_id = params.thread_id;
    match app.runtime.set_name(&thread_id, &params.name).await {
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
    app: Arc<App>,
    _: Requester,
    params: ThreadArchiveParams,
    reply: MethodReply<ThreadArchive>,
) {
    let thread_id = params.thread_id;
    match app.runtime.archive(&thread_id).await {
        Ok(was_loaded) => {
            app.hub.forget(&thread_id);
            if was_loaded {
                notify_unloaded(&app, &thread_id).await;
            }
            reply.send(Ok(ThreadArchiveResponse {}));
            let told = ThreadArchivedNotification { thread_id: thread_id.clone() };
            app.hub.notify_thread(&thread_id, ServerNotification::ThreadArchived(told)).await;
        }
        Err(error) => reply.send(Err(error.into())),
    }
}

pub(crate) async fn delete(
    app: Arc<App>,
    _: Requester,
    params: ThreadDeleteParams,
    reply: MethodReply<ThreadDelete>,
) {
    let thread_id = params.thread_id;
    match app.runtime.delete_thread(&thread_id).await {
        Ok(deleted) => {
            deleted.ids.iter().for_each(|id| app.hub.forget(id));
            if deleted.was_loaded {
                notify_unloaded(&app, &thread_id).await;
            }
            reply.send(Ok(ThreadDeleteResponse { deleted_thread_ids: deleted.ids.clone() }));
            for thread_id in deleted.ids {
                let told = ThreadDeletedNotification { thread_id: thread_id.clone() };
                app.hub.notify_thread(&thread_id, ServerNotification::ThreadDeleted(told)).await;
            }
        }
        Err(error) => reply.send(Err(error.into())),
    }
}

pub(crate) async fn unarchive(
    app: Arc<App>,
    _: Requester,
    params: ThreadUnarchiveParams,
    reply: MethodReply<ThreadUnarchive>,
) {
    match app.runtime.unarchive(&params.thread_id).await {
        Ok(thread) => {
            let thread_id = thread.id.clone();
            reply.send(Ok(ThreadUnarchiveResponse { thread }));
            let told = ThreadUnarchivedNotification { thread_id: thread_id.clone() };
            app.hub.notify_thread(&thread_id, ServerNotification::ThreadUnarchived(told)).await;
        }
        Err(error) => reply.send(Err(error.into())),
    }
}

/// The last subscriber to leave unloads the thread.
pub(crate) async fn unsubscribe(
    app: Arc<App>,
    caller: Requester,
    params: ThreadUnsubscribeParams,
    reply: MethodReply<ThreadUnsubscribe>,
) {
    let thread_id = params.thread_id;
    let status = match app.runtime.thread(&thread_id) {
        Ok(_) => match app.hub.leave(&thread_id, caller.id()) {
            Leave::NotSubscribed => ThreadUnsubscribeStatus::NotSubscribed,
            Leave::Left { others } if others > 0 => ThreadUnsubscribeStatus::Unsubscribed,
            Leave::Left { .. } => return unload(&app, thread_id, reply).await,
        },
        Err(RuntimeError::UnknownThread(_)) => ThreadUnsubscribeStatus::NotLoaded,
        Err(error) => return reply.send(Err(error.into())),
    };
    reply.send(Ok(ThreadUnsubscribeResponse { status }));
}

async fn unload(app: &App, thread_id: ThreadId, reply: MethodReply<ThreadUnsubscribe>) {
    // A turn that runs ends with it, and nobody listens to the turn any more.
    let hush = app.hub.hush(&thread_id);
    let unloaded = app.runtime.unload(&thread_id).await;
    drop(hush);
    if let Err(error) = unloaded {
        return reply.send(Err(error.into()));
    }
    app.hub.forget(&thread_id);
    reply.send(Ok(ThreadUnsubscribeResponse { status: ThreadUnsubscribeStatus::Unsubscribed }));
    notify_closed(app, thread_id).await;
}

/// Unloads a thread that nobody listens to, if nothing runs in it. Everybody is told as when the last subscriber leaves.
pub(crate) async fn unload_idle(app: &App, thread_id: ThreadId) -> bool {
    let (hub, wanted) = (Arc::clone(&app.hub), thread_id.clone());
    match app.runtime.unload_idle(&thread_id, move || hub.take_departed(&wanted)).await {
        Ok(true) => {
            app.hub.forget(&thread_id);
            notify_closed(app, thread_id).await;
            true
        }
        Ok(false) => app.runtime.thread(&thread_id).is_err(),
        Err(error) => {
            tracing::warn!(%error, thread = %thread_id, "an idle thread could not be unloaded");
            false
        }
    }
}

async fn notify_closed(app: &App, thread_id: ThreadId) {
    notify_unloaded(app, &thread_id).await;
    let closed = ThreadClosedNotification { thread_id: thread_id.clone() };
    app.hub.notify_thread(&thread_id, ServerNotification::ThreadClosed(closed)).await;
}

async fn notify_unloaded(app: &App, thread_id: &ThreadId) {
    let status = ThreadStatus::NotLoaded;
    let told = ThreadStatusChangedNotification { thread_id: thread_id.clone(), status };
    app.hub.notify_thread(thread_id, ServerNotification::ThreadStatusChanged(told)).await;
}

pub(crate) async fn compact_start(
    app: Arc<App>,
    _: Requester,
    params: ThreadCompactStartParams,
    reply: MethodReply<ThreadCompactStart>,
) {
    let answer = Responder::new(move |started: Result<(), RuntimeError>| {
        reply.send(started.map(|()| ThreadCompactStartResponse {}).map_err(Into::into));
    });
    app.runtime.compact(&params.thread_id, answer).await;
}
