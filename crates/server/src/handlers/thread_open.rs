//! Opening threads. Whoever opens one is subscribed to it.

use std::sync::Arc;

use protocol::{
    SdkDelegationConfiguredNotification, ServerNotification, Thread, ThreadFork, ThreadForkParams, ThreadId,
    ThreadResume, ThreadResumeParams, ThreadStart, ThreadStartParams, ThreadStartedNotification,
};
use runtime::{Identity, Opened, RuntimeError, Then, shown_bridge_url};
use tokio::sync::oneshot;

use crate::app::App;
use crate::handlers::thread::warn_of_damage;
use crate::hub::{Caller, HubHost};
use crate::reply::Reply;

pub(crate) async fn start(
    app: Arc<App>,
    caller: Caller,
    params: ThreadStartParams,
    reply: Reply<ThreadStart>,
) {
    introduce(&app, &caller);
    let bridge_url = params.sdk_delegation.as_ref().map(shown_bridge_url);
    match app.runtime.start_thread(params, HubHost::of(&app.hub, &caller)).await {
        Ok(mut opened) => {
            let thread = joined(&app, &caller, &opened).await;
            app.runtime.skills_watched(&thread.id).await;
            let notices = opened.take_notices();
            reply.send(Ok(opened.into()));
            let (thread_id, model_provider) = (thread.id.clone(), thread.model_provider.clone());
            announce(&app, thread).await;
            tell_all(&app, &thread_id, notices).await;
            if let Some(bridge_url) = bridge_url {
                let id = thread_id.clone();
                let told = SdkDelegationConfiguredNotification { thread_id, model_provider, bridge_url };
                app.hub.tell(&id, ServerNotification::SdkDelegationConfigured(told)).await;
            }
        }
        Err(error) => reply.send(Err(error.into())),
    }
}

pub(crate) async fn fork(app: Arc<App>, caller: Caller, params: ThreadForkParams, reply: Reply<ThreadFork>) {
    introduce(&app, &caller);
    reply.room().await;
    match app.runtime.fork_thread(params, HubHost::of(&app.hub, &caller)).await {
        Ok(mut opened) => {
            let thread = joined(&app, &caller, &opened).await;
            app.runtime.skills_watched(&thread.id).await;
            let notices = opened.take_notices();
            reply.send(Ok(opened.into()));
            let thread_id = thread.id.clone();
            announce(&app, thread).await;
            tell_all(&app, &thread_id, notices).await;
        }
        Err(error) => reply.send(Err(error.into())),
    }
}

/// The answer, then the thread's open questions, then its events: none is missed and none comes twice.
pub(crate) async fn resume(
    app: Arc<App>,
    caller: Caller,
    params: ThreadResumeParams,
    reply: Reply<ThreadResume>,
) {
    introduce(&app, &caller);
    reply.room().await;
    let (hub, joining) = (Arc::clone(&app.hub), caller.clone());
    let (told, opened) = oneshot::channel();
    let then = Then::new(move |opened: Result<Opened, RuntimeError>| {
        Box::pin(async move {
            match opened {
                Ok(mut opened) => {
                    let id = opened.thread.id.clone();
                    let notices = opened.take_notices();
                    reply.send(Ok(opened.into()));
                    hub.join(&id, joining.id()).await;
                    let _ = told.send((id, notices));
                }
                Err(error) => reply.send(Err(error.into())),
            }
        })
    });
    app.runtime.resume_thread(params, HubHost::of(&app.hub, &caller), then).await;
    if let Ok((id, notices)) = opened.await {
        warn_of_damage(&app, &caller, &id).await;
        tell_all(&app, &id, notices).await;
    }
}

async fn tell_all(app: &App, thread: &ThreadId, notices: Vec<ServerNotification>) {
    for notice in notices {
        app.hub.tell(thread, notice).await;
    }
}

/// Providers are told which client a thread is opened for.
fn introduce(app: &App, caller: &Caller) {
    let user_agent = caller.user_agent();
    let originator = user_agent.split('/').next().unwrap_or(user_agent);
    app.runtime
        .set_identity(Identity { originator: originator.to_owned(), user_agent: user_agent.to_owned() });
}

async fn joined(app: &App, caller: &Caller, opened: &Opened) -> Thread {
    app.hub.join(&opened.thread.id, caller.id()).await;
    opened.thread.clone()
}

async fn announce(app: &App, thread: Thread) {
    let id = thread.id.clone();
    let told = ServerNotification::ThreadStarted(ThreadStartedNotification { thread });
    app.hub.tell(&id, told).await;
}
