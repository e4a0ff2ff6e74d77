//! Opening threads. Whoever opens one is subscribed to it.

use std::sync::Arc;

use protocol::{
    SdkDelegationConfiguredNotification, ServerNotification, Thread, ThreadFork, ThreadForkParams, ThreadId,
    ThreadResume, ThreadResumeParams, ThreadStart, ThreadStartParams, ThreadStartedNotification,
};
use runtime::{ClientIdentity, OpenedThread, Opener, RuntimeError, Then, shown_bridge_url};
use tokio::sync::oneshot;

use crate::app::App;
use crate::handlers::thread::warn_of_damage;
use crate::hub::{HubHost, Requester};
use crate::reply::MethodReply;
use crate::wire_error::WireError;

pub(crate) async fn start(
    app: Arc<App>,
    caller: Requester,
    params: ThreadStartParams,
    reply: MethodReply<ThreadStart>,
) {
    if params.placement.is_some() {
        let problem = "placement: only a host runs threads elsewhere; start one with `oarlock host`";
        return reply.send(Err(WireError::invalid_params(problem)));
    }
    let bridge_url = params.sdk_delegation.as_ref().map(shown_bridge_url);
    match app.runtime.start_thread(params, opener(&app, &caller)).await {
        Ok(mut opened) => {
            let thread = joined(&app, &caller, &opened).await;
            app.runtime.skills_watched(&thread.id).await;
            let notices = opened.take_notices();
            reply.send(Ok(opened.into()));
            let (thread_id, model_provider) = (thread.id.clone(), thread.model_provider.clone());
            announce(&app, thread).await;
            notify_all(&app, &thread_id, notices).await;
            if let Some(bridge_url) = bridge_url {
                let id = thread_id.clone();
                let told = SdkDelegationConfiguredNotification { thread_id, model_provider, bridge_url };
                app.hub.notify_thread(&id, ServerNotification::SdkDelegationConfigured(told)).await;
            }
        }
        Err(error) => reply.send(Err(error.into())),
    }
}

pub(crate) async fn fork(
    app: Arc<App>,
    caller: Requester,
    params: ThreadForkParams,
    reply: MethodReply<ThreadFork>,
) {
    reply.room().await;
    match app.runtime.fork_thread(params, opener(&app, &caller)).await {
        Ok(mut opened) => {
            let thread = joined(&app, &caller, &opened).await;
            app.runtime.skills_watched(&thread.id).await;
            let notices = opened.take_notices();
            reply.send(Ok(opened.into()));
            let thread_id = thread.id.clone();
            announce(&app, thread).await;
            notify_all(&app, &thread_id, notices).await;
        }
        Err(error) => reply.send(Err(error.into())),
    }
}

/// The answer, then the thread's open questions, then its events: none is missed and none comes twice.
pub(crate) async fn resume(
    app: Arc<App>,
    caller: Requester,
    params: ThreadResumeParams,
    reply: MethodReply<ThreadResume>,
) {
    if params.resume_turn && app.hub.is_stopping() {
        return reply.send(Err(WireError::stopping()));
    }
    reply.room().await;
    let (hub, joining) = (Arc::clone(&app.hub), caller.clone());
    let wants_open = params.include_open_items;
    let (told, opened) = oneshot::channel();
    let then = Then::new(move |opened: Result<OpenedThread, RuntimeError>| {
        Box::pin(async move {
            match opened {
                Ok(mut opened) => {
                    let id = opened.thread.id.clone();
                    let notices = opened.take_notices();
                    reply.send(Ok(opened.into()));
                    hub.join(&id, joining.id()).await;
                    if wants_open {
                        hub.send_open_items(&id, joining.id()).await;
                    }
                    let _ = told.send((id, notices));
                }
                Err(error) => reply.send(Err(error.into())),
            }
        })
    });
    app.runtime.resume_thread(params, opener(&app, &caller), then).await;
    if let Ok((id, notices)) = opened.await {
        warn_of_damage(&app, &caller, &id).await;
        notify_all(&app, &id, notices).await;
    }
}

pub(crate) async fn notify_all(app: &App, thread: &ThreadId, notices: Vec<ServerNotification>) {
    for notice in notices {
        app.hub.notify_thread(thread, notice).await;
    }
    app.runtime.connect_mcp_servers(thread);
}

/// The client as its model provider and the record of its thread name it, with its connection if it is a host.
pub(crate) fn opener(app: &App, caller: &Requester) -> Opener {
    let user_agent = caller.user_agent();
    let originator = user_agent.split('/').next().unwrap_or(user_agent);
    let client = ClientIdentity { originator: originator.to_owned(), user_agent: user_agent.to_owned() };
    Opener { client, host: HubHost::of(&app.hub, caller) }
}

pub(crate) async fn joined(app: &App, caller: &Requester, opened: &OpenedThread) -> Thread {
    app.hub.join(&opened.thread.id, caller.id()).await;
    opened.thread.clone()
}

pub(crate) async fn announce(app: &App, thread: Thread) {
    let id = thread.id.clone();
    let told = ServerNotification::ThreadStarted(ThreadStartedNotification { thread });
    app.hub.notify_thread(&id, told).await;
}
