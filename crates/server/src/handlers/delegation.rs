//! Messages of hosts about the model requests they carry and the children they run.

use std::sync::Arc;
use std::time::Duration;

use protocol::{
    DelegationHeartbeatNotification, DelegationProgressNotification, DelegationResultParams,
    DelegationResultResponse, ModelRequestRejectedParams, ModelRequestRejectedResponse,
    ModelStreamAbortedParams, ModelStreamAbortedResponse, ModelStreamEvent, ModelStreamEventParams,
    RolloutLoadParams, RolloutLoadResponse,
};
use runtime::{Responder, RuntimeError};

use crate::app::App;
use crate::hub::Requester;
use crate::reply::MethodReply;

/// The answer is queued before anything that the events lead to.
pub(crate) async fn stream_event(
    app: Arc<App>,
    caller: Requester,
    params: ModelStreamEventParams,
    reply: MethodReply<ModelStreamEvent>,
) {
    let answer = Responder::new(move |taken: Result<_, RuntimeError>| reply.send(taken.map_err(Into::into)));
    app.runtime.stream_event(caller.id().into(), &params, answer);
}

/// Nobody waits for an answer, so what is wrong can only be logged. The turn hears of it too.
pub(crate) async fn stream_event_unacknowledged(
    app: Arc<App>,
    caller: Requester,
    params: ModelStreamEventParams,
) {
    if let Err(error) = app.runtime.stream_event_unacknowledged(caller.id().into(), &params) {
        tracing::warn!(connection = %caller.id(), request = %params.model_request_id, "events were refused: {error}");
    }
}

pub(crate) async fn stream_aborted(
    app: Arc<App>,
    caller: Requester,
    params: ModelStreamAbortedParams,
) -> Result<ModelStreamAbortedResponse, RuntimeError> {
    app.runtime.stream_aborted(caller.id().into(), &params)?;
    Ok(ModelStreamAbortedResponse {})
}

pub(crate) async fn request_rejected(
    app: Arc<App>,
    caller: Requester,
    params: ModelRequestRejectedParams,
) -> Result<ModelRequestRejectedResponse, RuntimeError> {
    app.runtime.request_rejected(caller.id().into(), &params)?;
    Ok(ModelRequestRejectedResponse {})
}

/// One part of a history that is too long for one message.
pub(crate) async fn load(
    app: Arc<App>,
    caller: Requester,
    params: RolloutLoadParams,
) -> Result<RolloutLoadResponse, RuntimeError> {
    app.runtime.load_part(caller.id().into(), params)
}

/// The result of a child that the host ran.
pub(crate) async fn result(
    app: Arc<App>,
    caller: Requester,
    params: DelegationResultParams,
) -> Result<DelegationResultResponse, RuntimeError> {
    app.runtime.delegation_result(caller.id().into(), params).await
}

/// Nobody waits for an answer, so what is wrong can only be logged.
pub(crate) async fn progress(app: Arc<App>, caller: Requester, params: DelegationProgressNotification) {
    if let Err(error) = app.runtime.delegation_progress(caller.id().into(), &params) {
        tracing::warn!(connection = %caller.id(), delegation = %params.delegation_id, "progress was refused: {error}");
    }
}

/// Only a connection that agreed on delegation has a lease that matters here.
pub(crate) async fn heartbeat(app: Arc<App>, caller: Requester, params: DelegationHeartbeatNotification) {
    if caller.agreed().is_some_and(|agreed| agreed.host_delegation.is_some()) {
        app.runtime.lease_renewed(Duration::from_millis(params.valid_for_ms));
    }
}
