//! Voice conversations on a thread.

use std::sync::Arc;

use protocol::{
    ThreadRealtimeAppendAudioParams, ThreadRealtimeAppendAudioResponse, ThreadRealtimeAppendTextParams,
    ThreadRealtimeAppendTextResponse, ThreadRealtimeStart, ThreadRealtimeStartParams,
    ThreadRealtimeStartResponse, ThreadRealtimeStop, ThreadRealtimeStopParams, ThreadRealtimeStopResponse,
};
use runtime::RuntimeError;

use crate::app::App;
use crate::hub::Requester;
use crate::reply::MethodReply;

/// Subscribes the caller first, so that it hears the conversation begin.
pub(crate) async fn start(
    app: Arc<App>,
    requester: Requester,
    params: ThreadRealtimeStartParams,
    reply: MethodReply<ThreadRealtimeStart>,
) {
    if let Ok(thread) = app.runtime.thread(&params.thread_id) {
        app.hub.join(thread.id(), requester.id()).await;
    }
    let started = app.runtime.start_realtime(params, requester.id().into()).await;
    reply.send(started.map(|()| ThreadRealtimeStartResponse {}).map_err(Into::into));
}

pub(crate) async fn append_audio(
    app: Arc<App>,
    _: Requester,
    params: ThreadRealtimeAppendAudioParams,
) -> Result<ThreadRealtimeAppendAudioResponse, RuntimeError> {
    app.runtime.append_realtime_audio(&params).await?;
    Ok(ThreadRealtimeAppendAudioResponse {})
}

pub(crate) async fn append_text(
    app: Arc<App>,
    _: Requester,
    params: ThreadRealtimeAppendTextParams,
) -> Result<ThreadRealtimeAppendTextResponse, RuntimeError> {
    app.runtime.append_realtime_text(&params).await?;
    Ok(ThreadRealtimeAppendTextResponse {})
}

/// Answers before the notification that it is over.
pub(crate) async fn stop(
    app: Arc<App>,
    _: Requester,
    params: ThreadRealtimeStopParams,
    reply: MethodReply<ThreadRealtimeStop>,
) {
    if let Err(error) = app.runtime.check_realtime(&params.thread_id).await {
        return reply.send(Err(error.into()));
    }
    reply.send(Ok(ThreadRealtimeStopResponse {}));
    app.runtime.stop_realtime(&params.thread_id).await;
}
